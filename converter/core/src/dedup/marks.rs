//! Markers that two logs of one run record: the two buffers hold copies of the same text of the same thread.

use std::collections::VecDeque;

use crate::event::{Event, Kind};

/// Maximum difference of the times of two copies: the resolution of a text, and the time from one buffer to the next.
const MAX_SKEW_NS: i64 = 1_000_000;

#[derive(Default)]
pub(super) struct RecentMarks(VecDeque<(Event, usize)>);

impl RecentMarks {
    /// Returns whether another log has recorded this marker. Events come in the order of time.
    pub(super) fn is_duplicate(&mut self, event: &Event, log: usize) -> bool {
        while self.0.front().is_some_and(|(old, _)| old.ts < event.ts.saturating_sub(MAX_SKEW_NS)) {
            self.0.pop_front();
        }
        let is_copy = |(other, of): &(Event, usize)| *of != log && other.tid == event.tid && other.kind == event.kind;
        if let Some(copy) = self.0.iter().position(is_copy) {
            self.0.remove(copy);
            return true;
        }
        if matches!(event.kind, Kind::Mark { .. }) {
            self.0.push_back((*event, log));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MarkPhase, UNKNOWN_TASK};
    use crate::names::NameId;

    #[test]
    fn each_copy_of_another_log_is_a_duplicate_once() {
        let mut marks = RecentMarks::default();
        let mut is_duplicate = |ts, tid, log| {
            let kind = Kind::Mark { phase: MarkPhase::Instant, name: NameId(1), key: 0 };
            let event = Event { ts, tid, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind };
            marks.is_duplicate(&event, log)
        };
        assert!(!is_duplicate(0, 7, 0));
        assert!(is_duplicate(500, 7, 1));
        assert!(!is_duplicate(600, 7, 1), "the same text again");
        assert!(!is_duplicate(700, 8, 0), "another thread");
        assert!(!is_duplicate(2_000_000, 7, 0), "too late for the one at 600");
        assert!(!is_duplicate(2_000_001, 7, 0), "the same log");
    }
}
