//! The result of parsing one chunk: events, the notes between them, and counts.

use std::any::Any;

use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::source::SourceOptions;

/// Key of the time of the entry of a call, at its return in the low-level log. It is on the clock of the events.
pub const ENTRY_TIME: &[u8] = b"entry_ns";

/// Name of a torn line among the events of the low-level log.
pub const TORN_LINE: &[u8] = b"torn_line";

/// A field of an event that `Event` has no member for.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// Index of the event in the batch.
    pub event: u32,
    pub key: NameId,
    pub value: NameId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A line that is not of the format. The text is cut at `MAX_NOTE_BYTES`.
    Unparsed { text: Box<[u8]>, why: &'static str },
    /// The tracer reports that it lost events here.
    Lost { count: u64 },
    /// The tracer reports that it lost events here, but not how many.
    LostUncounted,
    /// The recorder reports the number of events of one kind that it recorded.
    Counted { kind: usize, count: u64 },
    /// The recorder reports that the log ends here.
    End,
    /// Number of events that the recorder counted and that were missing from the log that a low-level log was written from.
    Missing { count: u64 },
    /// That log had no end of its recorder.
    Truncated,
    /// The program used io_uring, which the recorder does not see into.
    IoUring,
    /// The recording has the file of CPU 0 and no other, and nothing in it says whether there are other CPUs.
    OnlyCpu,
}

impl NoteKind {
    /// A line that is not of the format.
    pub(super) fn unparsed(line: &[u8], why: &'static str) -> Self {
        Self::Unparsed { text: line[..line.len().min(MAX_NOTE_BYTES)].into(), why }
    }
}

/// Something in the input that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Number of events of the batch that come before it.
    pub after: u32,
    /// Line within the chunk, from 1; 0 in a format without lines.
    pub line: u64,
    /// `line` is a line of another log: the one that this low-level log was written from.
    pub is_of_original_log: bool,
    pub kind: NoteKind,
}

impl Note {
    /// Returns the line within the file, 0 if there is none. `lines_before` is the number of lines before the chunk.
    pub fn line_in_file(&self, lines_before: u64) -> u64 {
        if self.is_of_original_log || self.line == 0 { self.line } else { lines_before + self.line }
    }
}

pub const MAX_NOTE_BYTES: usize = 4096;

/// The contents of one chunk. Name ids refer to the batch's own `names` until the run adopts them.
#[derive(Default)]
pub struct Batch {
    pub names: Names,
    pub events: Vec<Event>,
    /// The tracer's name for each event; empty without `keep_extras`.
    pub event_names: Vec<NameId>,
    /// In the order of their events.
    pub extras: Vec<Extra>,
    pub notes: Vec<Note>,
    pub lines: u64,
    /// Number of events that no report uses and that were not kept: `Kind::Other` without `keep_extras`.
    pub dropped_events: u64,
    /// The same by the tracer's name for them. `None` if they are not counted by name; `clear` keeps that choice.
    pub other_events: Option<OtherEvents>,
    /// No event that comes later is older than this, in ns; `None` if the source does not know.
    pub watermark: Option<i64>,
    /// It has torn lines without a time, which `TornTimes` gives them.
    pub has_untimed: bool,
    /// Lines of other calls stand between the two lines of a call.
    pub has_interrupted_calls: bool,
    /// The work that `Parse` leaves to `StatefulPass`. `clear` keeps it, so that its memory is reused.
    pub deferred: Option<Box<dyn Any + Send>>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.names.clear();
        self.events.clear();
        self.event_names.clear();
        self.extras.clear();
        self.notes.clear();
        self.lines = 0;
        self.dropped_events = 0;
        if let Some(counts) = &mut self.other_events {
            *counts = OtherEvents::default();
        }
        self.watermark = None;
        self.has_untimed = false;
        self.has_interrupted_calls = false;
    }

    /// Removes the events after a time. Notes stay.
    pub fn keep_until(&mut self, ts: i64) {
        self.keep_events(|event| event.ts <= ts);
    }

    /// Removes the events before a time, the losses before the first event from it on, and what the recorder counted, which includes both.
    /// Other notes stay.
    pub fn keep_from(&mut self, ts: i64) {
        let events = &self.events;
        let is_later = |after: u32| match events.get(after as usize) {
            Some(next) => next.ts > ts,
            None => events.last().is_none_or(|last| last.ts >= ts),
        };
        self.notes.retain(|note| match note.kind {
            NoteKind::Lost { .. } | NoteKind::LostUncounted => is_later(note.after),
            NoteKind::Counted { .. } => false,
            _ => true,
        });
        self.keep_events(|event| event.ts >= ts);
    }

    fn keep_events(&mut self, is_kept: impl Fn(&Event) -> bool) {
        if self.events.iter().all(&is_kept) {
            return;
        }
        // By index: the number of kept events before it.
        let mut before = Vec::with_capacity(self.events.len() + 1);
        let mut kept = 0;
        for event in &self.events {
            before.push(kept);
            kept += u32::from(is_kept(event));
        }
        before.push(kept);
        let is_kept_at = |event: u32| before[event as usize] < before[event as usize + 1];
        let mut index = 0;
        self.event_names.retain(|_| {
            index += 1;
            is_kept_at(index - 1)
        });
        self.extras.retain(|extra| is_kept_at(extra.event));
        self.extras.iter_mut().for_each(|extra| extra.event = before[extra.event as usize]);
        self.notes.iter_mut().for_each(|note| note.after = before[(note.after as usize).min(before.len() - 1)]);
        self.events.retain(is_kept);
    }

    /// Whether the batch has an event that is not merely a torn line.
    pub(super) fn has_whole_events(&self) -> bool {
        self.events.iter().any(|event| !matches!(event.kind, Kind::Torn { .. }))
    }

    /// Adds what is not known because a line is torn. `event` has the time and the thread of the line.
    #[cold]
    pub(super) fn torn(&mut self, event: &Event, kind: Kind, options: &SourceOptions) {
        // The table of writes has rules of its own for lines that cannot be read.
        if options.keep_writes {
            return;
        }
        if options.keep_extras {
            let name = self.names.intern(TORN_LINE);
            self.event_names.push(name);
        }
        self.events.push(Event { line: self.lines as u32, kind, ..*event });
    }

    /// As `torn`, for a line that does not even name its thread, and whose time is not known: `TornTimes` gives it one.
    #[cold]
    pub(super) fn torn_unknown(&mut self, options: &SourceOptions) {
        let kind = Kind::Torn { id: NO_ID, bio: 0, fact: TornFact::Any };
        self.has_untimed = true;
        let (ts, comm) = (TornTimes::UNKNOWN, NameId::NONE);
        self.torn(&Event { ts, tid: UNKNOWN_TASK, pid: UNKNOWN_TASK, comm, line: 0, kind }, kind, options);
    }

    /// Whether the time of the next event says when events were lost: no event follows the last note, or none is in the batch.
    pub(super) fn needs_time(&self) -> bool {
        self.notes.last().map_or(0, |note| note.after as usize) == self.events.len()
    }

    /// Counts an event that no report uses. `word` is the tracer's name for it.
    #[inline]
    pub fn other<W: AsRef<[u8]>>(&mut self, word: impl FnOnce() -> W) {
        self.others(word, 1);
    }

    /// As `other`, for `count` events.
    #[inline]
    pub(super) fn others<W: AsRef<[u8]>>(&mut self, word: impl FnOnce() -> W, count: u64) {
        self.dropped_events += count;
        if let Some(counts) = &mut self.other_events {
            counts.add(word().as_ref(), count);
        }
    }

    /// As `other`, for a word that is already a name of the batch.
    #[inline]
    pub(super) fn other_name(&mut self, word: NameId) {
        let Self { names, dropped_events, other_events, .. } = self;
        *dropped_events += 1;
        if let Some(counts) = other_events {
            counts.add(names.get(word), 1);
        }
    }

    /// Adds a note after the last event, at the current line.
    pub fn note(&mut self, kind: NoteKind) {
        let after = self.events.len() as u32;
        self.notes.push(Note { after, line: self.lines, is_of_original_log: false, kind });
    }

    /// Notes that the current line is not of the format. Messages show `why` in parentheses after the line.
    pub fn unparsed(&mut self, line: &[u8], why: &'static str) {
        self.note(NoteKind::unparsed(line, why));
    }

    /// Adds a note at an earlier line, whose place among the events is not known yet.
    pub(super) fn insert_note(&mut self, line: u64, kind: NoteKind) {
        let at = self.notes.partition_point(|note| note.line <= line);
        self.notes.insert(at, Note { after: 0, line, is_of_original_log: false, kind });
    }

    /// Notes something about a line, or a page, that events have been made from, the first of them at this index.
    pub(super) fn insert_note_before(&mut self, event: usize, line: u64, kind: NoteKind) {
        let at = self.notes.partition_point(|note| note.after as usize <= event);
        self.notes.insert(at, Note { after: event as u32, line, is_of_original_log: false, kind });
    }
}

/// Number of events by the tracer's name for them. A damaged log may have any number of names: those after the first `MAX_OTHER_NAMES`
/// are counted together.
#[derive(Debug, Default)]
pub struct OtherEvents {
    names: Names,
    /// Indexed by name id. Index 0 counts all events whose names were too many.
    counts: Vec<u64>,
}

const MAX_OTHER_NAMES: usize = 4096;

impl OtherEvents {
    fn add(&mut self, word: &[u8], count: u64) {
        let id = if self.counts.len() < MAX_OTHER_NAMES { self.names.intern(word) } else { self.names.find(word) };
        let index = id.0 as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += count;
    }

    pub fn join(&mut self, other: &Self) {
        for (id, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.add(other.names.get(NameId(id as u32)), *count);
        }
    }

    /// Returns names and counts, the most frequent first. The empty name counts all events whose names were too many.
    pub fn sorted(&self) -> Vec<(String, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut sorted: Vec<_> =
            counts.map(|(id, count)| (self.names.text(NameId(id as u32)).into_owned(), *count)).collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sorted
    }
}

/// Gives torn lines without a time the time of the event before them, in the order of an input.
#[derive(Debug, Default)]
pub struct TornTimes {
    last: Option<i64>,
}

impl TornTimes {
    /// The time of an event that has none yet.
    pub(super) const UNKNOWN: i64 = i64::MAX;

    /// Events that no report uses do not count: whether they are read at all depends on what is written.
    pub fn place(&mut self, batch: &mut Batch) {
        let is_used = |event: &&Event| event.ts != Self::UNKNOWN && !matches!(event.kind, Kind::Other);
        if !batch.has_untimed {
            self.last = batch.events.iter().rev().find(is_used).map_or(self.last, |event| Some(event.ts));
            return;
        }
        let Some(mut last) = self.last.or_else(|| batch.events.iter().find(is_used).map(|event| event.ts)) else {
            // Nothing is known of the time before the first event of a log.
            batch.keep_events(|event| event.ts != Self::UNKNOWN);
            return;
        };
        for event in &mut batch.events {
            if event.ts == Self::UNKNOWN && matches!(event.kind, Kind::Torn { .. }) {
                event.ts = last;
            }
            if !matches!(event.kind, Kind::Other) {
                last = event.ts;
            }
        }
        self.last = Some(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of a tracer that reads one buffer after the other: the second event is newer than the third. A loss follows each.
    fn three_events() -> (Batch, [NameId; 3]) {
        let mut batch = Batch::default();
        let names = [&b"a"[..], b"b", b"c"].map(|name| batch.names.intern(name));
        for (i, ts) in [10, 30, 20].into_iter().enumerate() {
            batch.events.push(Event {
                ts,
                tid: UNKNOWN_TASK,
                pid: UNKNOWN_TASK,
                comm: NameId::NONE,
                line: 0,
                kind: Kind::Other,
            });
            batch.event_names.push(names[i]);
            batch.extras.push(Extra { event: i as u32, key: names[i], value: names[i] });
            batch.notes.push(Note {
                after: i as u32 + 1,
                line: 0,
                is_of_original_log: false,
                kind: NoteKind::LostUncounted,
            });
        }
        (batch, names)
    }

    #[test]
    fn losses_before_the_first_known_event_go_with_the_events_before_it() {
        let (mut batch, names) = three_events();
        for kind in [NoteKind::Counted { kind: 0, count: 3 }, NoteKind::End] {
            batch.notes.insert(0, Note { after: 0, line: 0, is_of_original_log: false, kind });
        }
        batch.keep_from(20);
        assert_eq!(batch.events.iter().map(|event| event.ts).collect::<Vec<_>>(), [30, 20]);
        assert_eq!(batch.event_names, [names[1], names[2]]);
        // The end of the recorder is no loss. The loss before the event at 30 and the one at the end lie after the first known time.
        assert_eq!(batch.notes.iter().map(|note| note.after).collect::<Vec<_>>(), [0, 0, 2]);
        let (mut all, _) = three_events();
        all.keep_from(31);
        assert!(all.events.is_empty() && all.notes.is_empty());
    }

    #[test]
    fn events_after_a_time_go_with_what_belongs_to_them() {
        let (mut batch, names) = three_events();
        batch.keep_until(20);
        assert_eq!(batch.events.iter().map(|event| event.ts).collect::<Vec<_>>(), [10, 20]);
        assert_eq!(batch.event_names, [names[0], names[2]]);
        assert_eq!(
            batch.extras.iter().map(|extra| (extra.event, extra.key)).collect::<Vec<_>>(),
            [(0, names[0]), (1, names[2])]
        );
        assert_eq!(batch.notes.iter().map(|note| note.after).collect::<Vec<_>>(), [1, 1, 2]);
    }
}
