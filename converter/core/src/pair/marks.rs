//! Marks that the application wrote to the log: which end belongs to which begin.

use super::stores::marks::{ClosedMark, OpenMark};
use super::{Out, Pairer};
use crate::event::{Event, MarkPhase};
use crate::losses::Reason;
use crate::names::{NameId, Names};
use crate::sink::Mark;

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
