//! Marks that the application wrote to the log: which end belongs to which begin.

use super::{Map, Out, Pairer};
use crate::event::{Event, MarkPhase};
use crate::location::Location;
use crate::losses::Reason;
use crate::names::{NameId, Names};
use crate::sink::Mark;

/// Maximum number of marks, so that memory does not grow with the log. More are no phases that a person named.
const MAX_MARKS: usize = 100_000;

#[derive(Clone, Copy)]
struct OpenMark {
    ts: i64,
    name: NameId,
    location: Location,
}

struct ClosedMark {
    ts: i64,
    dur: Option<i64>,
    name: NameId,
}

#[derive(Default)]
pub(super) struct Marks {
    /// By thread, the innermost last.
    nested: Map<u32, Vec<OpenMark>>,
    /// By key.
    asynchronous: Map<u64, OpenMark>,
    open_count: usize,
    closed: Vec<ClosedMark>,
}

impl Marks {
    fn is_full(&self) -> bool {
        self.open_count + self.closed.len() >= MAX_MARKS
    }

    fn close(&mut self, open: OpenMark, end: i64) {
        self.open_count -= 1;
        let dur = Some(end.saturating_sub(open.ts).max(0));
        self.closed.push(ClosedMark { ts: open.ts, dur, name: open.name });
    }

    fn take_open(&mut self) -> Vec<OpenMark> {
        let nested = std::mem::take(&mut self.nested).into_values().flatten();
        let mut open: Vec<_> = nested.chain(std::mem::take(&mut self.asynchronous).into_values()).collect();
        open.sort_by_key(|mark| (mark.ts, mark.location, mark.name.0));
        open
    }
}

impl Pairer {
    pub(super) fn mark(&mut self, event: &Event, (phase, name, key): (MarkPhase, NameId, u64), out: &mut Out<'_>) {
        let open = OpenMark { ts: event.ts, name, location: self.location() };
        let begins = !matches!(phase, MarkPhase::End | MarkPhase::AsyncEnd);
        if begins && self.marks.is_full() {
            let what = || out.names.text(name).into_owned();
            self.count(Reason::UnusedMark, event.ts, open.location, what);
            return;
        }
        let marks = &mut self.marks;
        let ended = match phase {
            MarkPhase::Instant => {
                marks.closed.push(ClosedMark { ts: event.ts, dur: None, name });
                return;
            }
            MarkPhase::Begin => {
                marks.open_count += 1;
                marks.nested.entry(event.tid).or_default().push(open);
                return;
            }
            MarkPhase::AsyncBegin => {
                marks.open_count += 1;
                let Some(before) = marks.asynchronous.insert(key, open) else { return };
                // The end of the mark before is lost. When it was is not known.
                marks.open_count -= 1;
                self.count_unmatched(before, out.names);
                return;
            }
            MarkPhase::End => marks.nested.get_mut(&event.tid).and_then(Vec::pop),
            MarkPhase::AsyncEnd => marks.asynchronous.remove(&key),
        };
        match ended {
            Some(begin) => self.marks.close(begin, event.ts),
            None => self.count(Reason::UnmatchedMark, event.ts, open.location, || "the end of a mark".to_owned()),
        }
    }

    /// Ends the marks that are still open.
    pub(super) fn finish_marks(&mut self, names: &Names) {
        for open in self.marks.take_open() {
            self.count_unmatched(open, names);
            self.marks.close(open, self.now);
        }
    }

    fn count_unmatched(&mut self, begin: OpenMark, names: &Names) {
        let what = || format!("the begin of the mark {}", names.text(begin.name));
        self.count(Reason::UnmatchedMark, begin.ts, begin.location, what);
    }

    /// Returns the marks of the log, after `finish`.
    pub fn marks(&self, names: &Names) -> Vec<Mark> {
        let mark = |mark: &ClosedMark| Mark { name: names.text(mark.name).into_owned(), ts: mark.ts, dur: mark.dur };
        self.marks.closed.iter().map(mark).collect()
    }
}
