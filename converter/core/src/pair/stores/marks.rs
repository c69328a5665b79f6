//! The marks, open and closed.

use crate::collections::Map;
use crate::location::Location;
use crate::names::NameId;

/// Maximum number of marks, so that memory does not grow with the log. More are no phases that a person named.
const MAX_MARKS: usize = 100_000;

#[derive(Clone, Copy)]
pub(in crate::pair) struct OpenMark {
    pub(in crate::pair) ts: i64,
    pub(in crate::pair) name: NameId,
    pub(in crate::pair) location: Location,
}

pub(in crate::pair) struct ClosedMark {
    pub(in crate::pair) ts: i64,
    pub(in crate::pair) dur: Option<i64>,
    pub(in crate::pair) name: NameId,
}

#[derive(Default)]
pub(in crate::pair) struct Marks {
    /// By thread, the innermost last.
    pub(in crate::pair) nested: Map<u32, Vec<OpenMark>>,
    /// By key.
    pub(in crate::pair) asynchronous: Map<u64, OpenMark>,
    pub(in crate::pair) open_count: usize,
    pub(in crate::pair) closed: Vec<ClosedMark>,
}

impl Marks {
    pub(in crate::pair) fn is_full(&self) -> bool {
        self.open_count + self.closed.len() >= MAX_MARKS
    }

    pub(in crate::pair) fn close(&mut self, open: OpenMark, end: i64) {
        self.open_count -= 1;
        let dur = Some(end.saturating_sub(open.ts).max(0));
        self.closed.push(ClosedMark { ts: open.ts, dur, name: open.name });
    }

    pub(in crate::pair) fn take_open(&mut self) -> Vec<OpenMark> {
        let nested = std::mem::take(&mut self.nested).into_values().flatten();
        let mut open: Vec<_> = nested.chain(std::mem::take(&mut self.asynchronous).into_values()).collect();
        open.sort_by_key(|mark| (mark.ts, mark.location, mark.name.0));
        open
    }
}
