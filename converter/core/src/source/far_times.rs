//! Lines whose time is damaged. A torn line whose rest another one is joined to, or a time that has lost a digit, is years or hours away from
//! the lines around it.
//!
//! Times of a text grow, apart from the few seconds by which tracers print them out of order. So a single line that is far from the line
//! before it, and that the next line comes back from, has a time that nothing was recorded at. Several lines that are far are another recording.

use std::collections::VecDeque;
use std::ops::Range;

use super::Reader;
use super::batch::{Batch, NoteKind, TORN_LINE};
use crate::event::probe::Probe;
use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};
use crate::names::NameId;

/// No tracer prints lines that much out of order.
const FAR_NS: u64 = 3_600_000_000_000;
/// Nor this much, unless they are printed by several buffers. A time that has lost a digit, or has one too many, is as far away soon after the
/// machine has started.
const NEAR_NS: u64 = 5_000_000_000;
/// The last line of a text has no next one. Nothing may happen for as long as this.
const FAR_AT_END_NS: u64 = 24 * FAR_NS;

/// Batches that wait for the next line that has a time. After so many others, nothing is known of what follows.
const MAX_WAITING: usize = 16;

/// Finds these lines, in the order of an input.
pub struct FarTimes {
    /// Only lines of a text can be torn.
    is_text: bool,
    /// Time of the last line that is not damaged.
    last: Option<i64>,
    /// Batches in the order of the input, each with the bytes that had been read up to its end.
    batches: VecDeque<(Box<Batch>, u64)>,
    /// How many of these have been looked at, and how many events of the next one. The rest waits for the line after it.
    done: usize,
    from: usize,
    /// Damaged lines of that batch: the indexes of their events.
    torn: Vec<Range<usize>>,
}

impl FarTimes {
    pub fn of(reader: &Reader) -> Self {
        Self::new(reader.may_have_far_times)
    }

    fn new(is_text: bool) -> Self {
        Self { is_text, last: None, batches: VecDeque::new(), done: 0, from: 0, torn: Vec::new() }
    }

    /// Adds the next batch of the input. Returns whether it waits for another one.
    pub fn add(&mut self, batch: Box<Batch>, consumed_bytes: u64) -> bool {
        self.batches.push_back((batch, consumed_bytes));
        self.look(false);
        self.done < self.batches.len()
    }

    /// The input has ended.
    pub fn end(&mut self) {
        self.look(true);
    }

    /// Returns the next batch that has been looked at.
    pub fn take(&mut self) -> Option<(Box<Batch>, u64)> {
        self.done = self.done.checked_sub(1)?;
        self.batches.pop_front()
    }

    fn look(&mut self, has_ended: bool) {
        while self.done < self.batches.len() {
            let Some(line) = self.next_suspect(self.done) else {
                leave_out_extras(&mut self.batches[self.done].0, &self.torn);
                self.torn.clear();
                (self.done, self.from) = (self.done + 1, 0);
                continue;
            };
            let ts = self.batches[self.done].0.events[line.start].ts;
            let [next, after] = self.next_times(self.done, line.end);
            let needed = if self.last.is_some() { next } else { after };
            if needed.is_none() && !has_ended && self.batches.len() - self.done <= MAX_WAITING {
                self.from = line.start;
                return;
            }
            self.from = line.start + 1;
            if is_damaged(ts, self.last, next, after) {
                let near = self.last.or(next).unwrap_or(ts);
                self.from = line.end;
                let (batch, _) = &mut self.batches[self.done];
                tear(batch, line.clone(), near);
                self.torn.push(line);
            } else {
                self.last = Some(ts);
            }
        }
    }

    /// Goes on to the first line of a batch that is far from the one before it, and returns the range of its events.
    fn next_suspect(&mut self, batch: usize) -> Option<Range<usize>> {
        let events = if self.is_text { &*self.batches[batch].0.events } else { &[] };
        for (at, event) in events.iter().enumerate().skip(self.from).filter(|(_, event)| has_time(event)) {
            if self.last.is_some_and(|last| is_near(event.ts, last)) {
                self.last = Some(event.ts);
                continue;
            }
            // A line of JSON may hold several lines of a log.
            let is_other = |other: &Event| other.line != event.line || !is_near(other.ts, event.ts);
            let others = events[at..].iter().position(is_other);
            return Some(at..others.map_or(events.len(), |others| at + others));
        }
        None
    }

    /// The times of the next two lines.
    fn next_times(&self, batch: usize, from: usize) -> [Option<i64>; 2] {
        let rest = self.batches[batch].0.events[from..].iter().map(|event| (batch, event));
        let later = self.batches.iter().enumerate().skip(batch + 1);
        let later = later.flat_map(|(at, (batch, _))| batch.events.iter().map(move |event| (at, event)));
        let mut events = rest.chain(later).filter(|(_, event)| has_time(event));
        let Some((batch, first)) = events.next() else { return [None, None] };
        let second = events.find(|&(at, event)| (at, event.line) != (batch, first.line));
        [Some(first.ts), second.map(|(_, event)| event.ts)]
    }
}

/// Events that no report uses are kept for the low-level log only.
fn has_time(event: &Event) -> bool {
    event.kind != Kind::Other
}

fn is_far(ts: i64, other: i64) -> bool {
    ts.abs_diff(other) > FAR_NS
}

fn is_near(ts: i64, other: i64) -> bool {
    ts.abs_diff(other) <= NEAR_NS
}

/// A time that has lost digits, or has those of another line too, is that much shorter or longer.
fn has_other_length(ts: i64, other: i64) -> bool {
    ts.unsigned_abs().checked_ilog10() != other.unsigned_abs().checked_ilog10()
}

/// Whether the time of a line is damaged, by that of the line before it and those of the next two.
fn is_damaged(ts: i64, last: Option<i64>, next: Option<i64>, after: Option<i64>) -> bool {
    match (last, next, after) {
        (Some(last), Some(next), _) => {
            let is_as_long = |other| is_near(ts, other) || !has_other_length(ts, other);
            is_far(ts, last) && is_far(ts, next) && !is_far(next, last)
                || is_near(next, last) && !is_as_long(last) && !is_as_long(next)
        }
        // Another recording may follow whose clock is behind.
        (None, Some(next), Some(after)) => ts > next && is_far(ts, next) && is_far(ts, after) && !is_far(next, after),
        // Or one that is much later.
        (Some(last), None, _) => {
            has_other_length(ts, last) && is_far(ts, last) && (ts < last || ts.abs_diff(last) > FAR_AT_END_NS)
        }
        (None, ..) => false,
    }
}

/// The line may be the rests of two, of any thread.
#[cold]
fn tear(batch: &mut Batch, range: Range<usize>, near: i64) {
    let (first, line) = (range.start, batch.events[range.start].line);
    let (seconds, ns) = (batch.events[first].ts / 1_000_000_000, batch.events[first].ts % 1_000_000_000);
    let is_new = batch.events[range.clone()].iter().any(|event| !matches!(event.kind, Kind::Torn { .. }));
    if is_new {
        let text = format!("an event at {seconds}.{ns:09} s");
        let note = NoteKind::unparsed(text.as_bytes(), "its time is far from those of the lines before and after it");
        batch.insert_note_before(first, u64::from(line), note);
    }
    let torn_line = if batch.event_names.is_empty() { NameId::NONE } else { batch.names.intern(TORN_LINE) };
    for at in range {
        let event = &mut batch.events[at];
        event.ts = near;
        match event.kind {
            Kind::Torn { .. } => continue,
            // The table of writes has rules of its own for lines that cannot be read.
            Kind::Probe(Probe::Write(_)) if batch.event_names.is_empty() => event.kind = Kind::Other,
            _ => event.kind = Kind::Torn { id: NO_ID, bio: 0, fact: TornFact::Any },
        }
        (event.tid, event.pid, event.comm) = (UNKNOWN_TASK, UNKNOWN_TASK, NameId::NONE);
        if let Some(name) = batch.event_names.get_mut(at) {
            *name = torn_line;
        }
    }
}

/// Drops the further fields of damaged lines. One pass drops all of a batch, because it may have many fields and many such lines.
fn leave_out_extras(batch: &mut Batch, torn: &[Range<usize>]) {
    if !torn.is_empty() {
        let is_torn = |event: usize| {
            torn[..torn.partition_point(|line| line.start <= event)].last().is_some_and(|line| line.contains(&event))
        };
        batch.extras.retain(|extra| !is_torn(extra.event as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// The times in s, and how many lines a batch has. Returns the times of the lines that are not damaged.
    fn kept(times: &[i64], of_batch: usize) -> Vec<i64> {
        let mut far = FarTimes::new(true);
        let mut found = Vec::new();
        for times in times.chunks(of_batch) {
            let mut batch = Batch::default();
            for (at, &seconds) in times.iter().enumerate() {
                let (ts, line, kind) = (seconds * S, at as u32 + 1, Kind::WbEnd { id: 1 });
                batch.events.push(Event { ts, tid: 7, pid: 7, comm: NameId::NONE, line, kind });
            }
            far.add(Box::new(batch), 0);
            found.extend(std::iter::from_fn(|| far.take()));
        }
        far.end();
        found.extend(std::iter::from_fn(|| far.take()));
        assert_eq!(found.len(), times.len().div_ceil(of_batch));
        let is_whole = |event: &&Event| !matches!(event.kind, Kind::Torn { .. });
        let notes: usize = found.iter().map(|(batch, _)| batch.notes.len()).sum();
        let kept: Vec<i64> = found
            .iter()
            .flat_map(|(batch, _)| batch.events.iter().filter(is_whole))
            .map(|event| event.ts / S)
            .collect();
        assert_eq!(kept.len() + notes, times.len());
        kept
    }

    #[test]
    fn a_line_that_the_next_one_comes_back_from_is_damaged() {
        let cases: [(&[i64], &[i64]); 16] = [
            (&[17_543, 17_543_000, 17_544], &[17_543, 17_544]),
            (&[17_543, 175, 17_544], &[17_543, 17_544]),
            (&[17_542, 17_543, 175, 17_544], &[17_542, 17_543, 17_544]),
            (&[17_543_000, 17_543, 17_544], &[17_543, 17_544]),
            (&[17_543, 17_544, 17_543_000], &[17_543, 17_544]),
            // Soon after the machine has started: a digit is missing, or one of another line is there.
            (&[100, 10, 101], &[100, 101]),
            (&[57, 557, 58], &[57, 58]),
            // A late line, one at the end, and one that nothing happens before or after.
            (&[100, 101, 10], &[100, 101, 10]),
            (&[200, 110, 201], &[200, 110, 201]),
            (&[99, 103, 99, 104], &[99, 103, 99, 104]),
            (&[90, 100, 110], &[90, 100, 110]),
            // Nothing happens in the night, or another recording follows.
            (&[17_543, 17_544, 60_000, 60_001], &[17_543, 17_544, 60_000, 60_001]),
            (&[17_543, 60_000], &[17_543, 60_000]),
            (&[1_600_000_000, 1_600_000_001, 1_700_000_000], &[1_600_000_000, 1_600_000_001, 1_700_000_000]),
            (&[60_000, 60_001, 100, 101], &[60_000, 60_001, 100, 101]),
            // A tracer prints lines out of order.
            (&[99, 102, 98, 103], &[99, 102, 98, 103]),
        ];
        for (times, expected) in cases {
            for of_batch in 1..=times.len() {
                assert_eq!(kept(times, of_batch), expected, "{times:?} in batches of {of_batch}");
            }
        }
    }

    #[test]
    fn one_line_of_json_holds_several_lines_of_a_log() {
        let mut far = FarTimes::new(true);
        let mut batch = Batch::default();
        for seconds in [17_543, 17_544, 1, 17_544, 17_545] {
            let (ts, kind) = (seconds * S, Kind::WbEnd { id: 1 });
            batch.events.push(Event { ts, tid: 7, pid: 7, comm: NameId::NONE, line: 1, kind });
        }
        far.add(Box::new(batch), 0);
        far.end();
        let (found, _) = far.take().unwrap();
        let torn: Vec<bool> = found.events.iter().map(|event| matches!(event.kind, Kind::Torn { .. })).collect();
        assert_eq!(torn, [false, false, true, false, false]);
        assert_eq!(found.events[2].ts, 17_544 * S);
    }
}
