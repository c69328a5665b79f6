//! The summary of a conversion for its caller: what it has read and lost.

use crate::event::{Kind, MarkPhase};
use crate::losses::Losses;
use crate::merge::clock::Clock;
use crate::names::NameId;
use crate::source::OtherEvents;

/// One input, as it was read.
#[derive(Clone, Debug)]
pub struct InputRead {
    pub path: String,
    /// Name of its format.
    pub source: &'static str,
    /// It is a log of its own and not a piece of the input before it.
    pub is_standalone: bool,
    pub clock: Clock,
    pub lines: u64,
    /// Number of events, without those that no report uses.
    pub events: u64,
    /// The beginning of the text of its unparsed lines, which may be the output of another tool.
    pub other_text: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Summary {
    /// Name of the format of the input that is used first.
    pub source: &'static str,
    /// In the order in which they are used.
    pub inputs: Vec<InputRead>,
    pub lines: u64,
    /// By kind.
    pub events: [u64; Kind::COUNT],
    /// The events of `Kind::Other` by the tracer's names for them, if they were to be counted.
    pub other_events: Option<OtherEvents>,
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    pub losses: Losses,
    /// The first unparsed lines: `file:line: text (why)`.
    pub unparsed: Vec<String>,
    /// Number of requests before the filter; `None` for the low-level log.
    pub requests: Option<u64>,
    /// Pairs of inputs without a common time: the first ends this many ns before the second begins.
    pub disjoint: Vec<(String, String, i64)>,
    /// Number of predicted writes, which only a trace holds.
    pub predicted_writes: u64,
    /// What to add to its times for ns since 1970, if known.
    pub realtime_offset_ns: Option<i64>,
    /// Number of marks that the output has.
    pub marks: u64,
    /// Number of requests that the output format cannot hold.
    pub left_out: u64,
    /// Description of the filter; empty without one.
    pub filter: String,
}

impl Summary {
    pub fn event_count(&self) -> u64 {
        self.events.iter().sum()
    }

    /// Whether an event has to do with a sync.
    pub(crate) fn has_sync_events(&self) -> bool {
        let mark = Kind::Mark { phase: MarkPhase::Instant, name: NameId::NONE, key: 0 };
        let others = self.events[Kind::Other.index()] + self.events[mark.index()];
        self.event_count() > others
    }

    /// Whether the recorder shows syncs, as far as its events say. One that only follows the block layer or a journal sees none, so a
    /// count of 0 would be no finding.
    pub(crate) fn records_syncs(&self) -> bool {
        const OF_SYNCS: [&str; 12] = [
            "call_enter",
            "call_exit",
            "sync_start",
            "sync_end",
            "sync_done",
            "bio_add_folio",
            "bio_submit",
            "bio_complete",
            "wait_start",
            "wait_end",
            "wb_start",
            "wb_end",
        ];
        // Probes count only if a request came of them: some are of writes.
        self.requests.is_some_and(|requests| requests > 0)
            || Kind::NAMES.iter().zip(self.events).any(|(name, count)| count > 0 && OF_SYNCS.contains(name))
    }

    pub(crate) fn add_losses(&mut self, losses: &Losses) {
        self.losses.merge(losses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: &[&str]) -> Summary {
        let mut summary = Summary::default();
        for name in names {
            let kind = Kind::NAMES.iter().position(|known| known == name).unwrap();
            summary.events[kind] = 3;
        }
        summary
    }

    #[test]
    fn only_events_of_syncs_say_that_syncs_are_recorded() {
        assert!(
            !with(&["block_submit", "block_issue", "block_complete", "journal_commit_start", "other"]).records_syncs()
        );
        assert!(with(&["block_submit", "call_enter"]).records_syncs());
        assert!(!with(&["probe"]).records_syncs());
        assert!(Summary { requests: Some(1), ..with(&["probe"]) }.records_syncs());
    }
}
