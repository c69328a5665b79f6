//! Markers that two logs of one run record: the two buffers hold copies of the same text of the same thread.

use std::collections::VecDeque;

use crate::event::{Event, Kind};
use crate::location::Location;

/// Maximum difference of the times of two copies: the resolution of a text, and the time from one buffer to the next.
const MAX_SKEW_NS: i64 = 1_000_000;

#[derive(Default)]
pub(super) struct RecentMarks(VecDeque<(Event, usize, Location)>);

impl RecentMarks {
    /// Returns where another log has recorded this marker. Events come in the order of time.
    pub(super) fn find_copy(&mut self, event: &Event, location: Location, log: usize) -> Option<Location> {
        while self.0.front().is_some_and(|(old, ..)| old.ts < event.ts.saturating_sub(MAX_SKEW_NS)) {
            self.0.pop_front();
        }
        let is_copy =
            |(other, of, _): &(Event, usize, _)| *of != log && other.tid == event.tid && other.kind == event.kind;
        if let Some(copy) = self.0.iter().position(is_copy) {
            return self.0.remove(copy).map(|(.., location)| location);
        }
        if matches!(event.kind, Kind::Mark { .. }) {
            self.0.push_back((*event, log, location));
        }
        None
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
            marks.find_copy(&event, Location::default(), log).is_some()
        };
        assert!(!is_duplicate(0, 7, 0));
        assert!(is_duplicate(500, 7, 1));
        assert!(!is_duplicate(600, 7, 1), "the same text again");
        assert!(!is_duplicate(700, 8, 0), "another thread");
        assert!(!is_duplicate(2_000_000, 7, 0), "too late for the one at 600");
        assert!(!is_duplicate(2_000_001, 7, 0), "the same log");
    }
}
