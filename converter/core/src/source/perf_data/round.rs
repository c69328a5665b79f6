//! Puts records into the order of time.
//!
//! perf empties the buffers of the CPUs one after the other. When it has emptied all of them once, it writes that a round is finished.
//! What it reads in the next round may be older than what it has read in this one, but not older than what it had read before this one.

use super::attr::Sample;

/// Maximum size of what waits. It is many times a round of the buffers that perf uses by default, on hundreds of CPUs.
const MAX_HELD_BYTES: usize = 1 << 28;

/// A held record, with the bytes that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'a> {
    /// A sample of the event with this index.
    Sample { event: u32, sample: Sample<'a> },
    /// Another record, with its type, flags and body.
    Record { kind: u32, misc: u16, body: &'a [u8] },
}

/// Where a held record is.
#[derive(Clone, Copy)]
struct Entry {
    time: i64,
    at: usize,
    lens: [u32; 2],
    is_sample: bool,
    /// The event, or the type.
    number: u32,
    /// Process and thread, or the flags.
    ids: [u32; 2],
}

#[derive(Default)]
pub(super) struct Rounds {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Entries from here to `ready` are next; all before are done.
    done: usize,
    /// Entries before this one are sorted, and no older record follows.
    ready: usize,
    newest: i64,
    /// Time of the newest record of all rounds but the current one.
    newest_before: Option<i64>,
    /// No record that comes later is older.
    watermark: Option<i64>,
}

impl Rounds {
    /// Takes a record. All that was ready must have been taken out.
    pub(super) fn push(&mut self, time: i64, held: &Held<'_>) {
        let at = self.bytes.len();
        let (is_sample, number, ids, parts) = match *held {
            Held::Sample { event, sample } => (true, event, [sample.pid, sample.tid], [sample.raw, sample.chain]),
            Held::Record { kind, misc, body } => (false, kind, [u32::from(misc), 0], [body, &[]]),
        };
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let lens = parts.map(|part| part.len() as u32);
        self.entries.push(Entry { time, at, lens, is_sample, number, ids });
        self.newest = self.newest.max(time);
    }

    /// Notes the time of a record that need not wait.
    pub(super) fn note_time(&mut self, time: i64) {
        self.newest = self.newest.max(time);
    }

    /// Releases the older half of what waits, if it is too much.
    pub(super) fn make_room(&mut self) {
        if self.is_full() {
            self.compact();
            if self.is_full() {
                self.release_half();
            }
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() + self.entries.len() * size_of::<Entry>() >= MAX_HELD_BYTES
    }

    /// All buffers have been read once more.
    pub(super) fn finish_round(&mut self) {
        if let Some(limit) = self.newest_before.replace(self.newest) {
            self.watermark = Some(limit);
            self.release(limit);
        }
    }

    fn release_half(&mut self) {
        let mut times: Vec<i64> = self.entries.iter().map(|entry| entry.time).collect();
        let middle = times.len() / 2;
        if !times.is_empty() {
            let (_, time, _) = times.select_nth_unstable(middle);
            self.release(*time);
        }
    }

    pub(super) fn release_all(&mut self) {
        self.release(i64::MAX);
    }

    fn release(&mut self, limit: i64) {
        self.compact();
        // Stable: records of one time keep their order. The records of each CPU are sorted already.
        self.entries.sort_by_key(|entry| entry.time);
        self.ready = self.entries.partition_point(|entry| entry.time <= limit);
    }

    /// Drops what has been taken out.
    fn compact(&mut self) {
        if self.done == 0 {
            return;
        }
        let old = std::mem::take(&mut self.bytes);
        self.entries.drain(..self.done);
        for entry in &mut self.entries {
            let len = entry.lens.iter().map(|&len| len as usize).sum::<usize>();
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&old[entry.at..entry.at + len]);
            entry.at = at;
        }
        self.ready -= self.done;
        self.done = 0;
    }

    /// Returns the next record in the order of time, with its time; `None` if more must be read first.
    pub(super) fn next(&mut self) -> Option<(i64, Held<'_>)> {
        let entry = *self.entries[..self.ready].get(self.done)?;
        self.done += 1;
        let [first, second] = entry.lens.map(|len| len as usize);
        let (first, rest) = self.bytes[entry.at..entry.at + first + second].split_at(first);
        let [pid, tid] = entry.ids;
        let held = if entry.is_sample {
            let sample = Sample { time: entry.time as u64, pid, tid, chain: rest, raw: first };
            Held::Sample { event: entry.number, sample }
        } else {
            Held::Record { kind: entry.number, misc: pid as u16, body: first }
        };
        Some((entry.time, held))
    }

    /// No record that comes later is older than this; `None` if that is not known yet.
    pub(super) fn watermark(&self) -> Option<i64> {
        let next = self.entries[..self.ready].get(self.done).map(|entry| entry.time);
        next.or(self.watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(rounds: &mut Rounds, time: i64) {
        let text = time.to_string();
        rounds.push(time, &Held::Record { kind: 3, misc: 1, body: text.as_bytes() });
    }

    fn taken(rounds: &mut Rounds) -> Vec<i64> {
        let mut times = Vec::new();
        while let Some((time, held)) = rounds.next() {
            assert_eq!(held, Held::Record { kind: 3, misc: 1, body: time.to_string().as_bytes() });
            times.push(time);
        }
        times
    }

    #[test]
    fn a_record_waits_for_the_round_after_the_next() {
        let mut rounds = Rounds::default();
        // First the buffer of one CPU, then that of another.
        for time in [10, 20, 30, 5, 15] {
            push(&mut rounds, time);
        }
        rounds.finish_round();
        assert_eq!((taken(&mut rounds), rounds.watermark()), (vec![], None));
        for time in [40, 25, 35] {
            push(&mut rounds, time);
        }
        rounds.finish_round();
        assert_eq!((taken(&mut rounds), rounds.watermark()), (vec![5, 10, 15, 20, 25, 30], Some(30)));
        for time in [32, 50] {
            push(&mut rounds, time);
        }
        rounds.finish_round();
        assert_eq!((taken(&mut rounds), rounds.watermark()), (vec![32, 35, 40], Some(40)));
        rounds.release_all();
        assert_eq!(taken(&mut rounds), [50]);
    }

    #[test]
    fn half_is_released_when_there_is_too_much() {
        let mut rounds = Rounds::default();
        for time in [4, 1, 3, 2] {
            push(&mut rounds, time);
        }
        assert!(!rounds.is_full());
        rounds.release_half();
        assert_eq!(taken(&mut rounds), [1, 2, 3]);
        push(&mut rounds, 0);
        rounds.release_all();
        assert_eq!(taken(&mut rounds), [0, 4]);
    }
}
