//! Gaps in the sequence numbers of a CPU: events that blktrace recorded, or lost, and that the text lacks.

use std::collections::{BTreeSet, HashMap};

use crate::event::Dev;
use crate::source::{Batch, Note, NoteKind};

/// A text that lacks more than this share of the numbers in its head is evidently filtered: one in so many.
const MAX_LACKING: u64 = 4;

/// So many lines of a CPU may come before a line that they follow.
const MAX_LATE: u64 = 10_000;

/// A late line may fill one of this number of gaps.
const MAX_GAPS: usize = 64;

/// The numbers of one CPU's events on one device in a part of a text.
struct Stretch {
    dev: Dev,
    cpu: u64,
    first: u64,
    last: u64,
    /// Line of the first number, and the number of events before it.
    line: u64,
    after: u32,
}

/// Numbers of remaps, by CPU, that have not filled a gap yet. blkparse prints a remap under the device that the bio has then: for a bio of a
/// partition not the traced disk, whose numbers it is counted in.
#[derive(Default)]
struct Remaps(HashMap<u64, BTreeSet<u64>>);

impl Remaps {
    /// Takes out the numbers of a gap, and returns how many they are.
    fn fill(&mut self, cpu: u64, from: u64, to: u64) -> u64 {
        let Some(numbers) = self.0.get_mut(&cpu) else { return 0 };
        let mut count = 0;
        while let Some(&number) = numbers.range(from..=to).next() {
            numbers.remove(&number);
            count += 1;
        }
        count
    }
}

/// The numbers in a chunk.
#[derive(Default)]
pub(super) struct Sequences {
    stretches: Vec<Stretch>,
    remaps: Remaps,
    by_cpu: HashMap<(Dev, u64), usize>,
    /// Index in `stretches` of the last line's stretch.
    current: usize,
    /// Gaps: index of the note, stretch, first and last number that lacks.
    gaps: Vec<(usize, usize, u64, u64)>,
    seen: u64,
}

impl Sequences {
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.by_cpu.clear();
        self.gaps.clear();
        self.remaps.0.clear();
        (self.current, self.seen) = (0, 0);
    }

    /// Takes the number of the current line, before its event. A gap is noted as lost events.
    #[inline]
    pub(super) fn add(&mut self, dev: Dev, cpu: u64, sequence: u64, batch: &mut Batch) {
        self.seen += 1;
        let is_of_stretch = |stretch: &Stretch| stretch.dev == dev && stretch.cpu == cpu;
        if !self.stretches.get(self.current).is_some_and(is_of_stretch) {
            self.current = *self.by_cpu.entry((dev, cpu)).or_insert(self.stretches.len());
            if self.current == self.stretches.len() {
                let (line, after) = (batch.lines, batch.events.len() as u32);
                self.stretches.push(Stretch { dev, cpu, first: sequence, last: sequence, line, after });
                return;
            }
        }
        let stretch = &mut self.stretches[self.current];
        if sequence == stretch.last.saturating_add(1) {
            stretch.last = sequence;
        } else if sequence > stretch.last {
            let (from, to) = (stretch.last + 1, sequence - 1);
            stretch.last = sequence;
            let count = to - from + 1 - self.remaps.fill(cpu, from, to);
            if count > 0 {
                self.gaps.push((batch.notes.len(), self.current, from, to));
                batch.note(NoteKind::Lost { count });
            }
        } else {
            self.go_back(sequence, batch);
        }
    }

    /// Takes the number of a remap, which may be of any device.
    pub(super) fn add_remap(&mut self, cpu: u64, sequence: u64, batch: &mut Batch) {
        self.seen += 1;
        let is_in = |&&(_, stretch, from, to): &&(usize, usize, u64, u64)| {
            self.stretches[stretch].cpu == cpu && (from..=to).contains(&sequence)
        };
        let late = self.gaps.iter().rev().take(MAX_GAPS).find(is_in).map(|&(note, ..)| &mut batch.notes[note].kind);
        match late {
            Some(NoteKind::Lost { count }) if *count > 0 => *count -= 1,
            _ => _ = self.remaps.0.entry(cpu).or_default().insert(sequence),
        }
    }

    /// Takes a number that is not above the last one of its stretch: it fills a gap, or another recording begins.
    #[cold]
    fn go_back(&mut self, sequence: u64, batch: &mut Batch) {
        let is_in = |&&(_, stretch, from, to): &&(usize, usize, u64, u64)| {
            stretch == self.current && (from..=to).contains(&sequence)
        };
        let Some(&(note, stretch, from, to)) = self.gaps.iter().rev().take(MAX_GAPS).find(is_in) else {
            self.stretches[self.current].last = sequence;
            return;
        };
        let NoteKind::Lost { count } = &mut batch.notes[note].kind else { return };
        if sequence == from && to - from > MAX_LATE {
            // The number before was damaged.
            *count = 0;
            self.stretches[stretch].last = sequence;
        } else {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether a part of a text lacks so many numbers that it is filtered. Its notes are those of `add`.
    pub(super) fn are_filtered(&self, batch: &Batch) -> bool {
        let lacking = self.gaps.iter().map(|&(note, ..)| match batch.notes[note].kind {
            NoteKind::Lost { count } => count,
            _ => 0,
        });
        let lacking = lacking.fold(0u64, u64::saturating_add);
        lacking.saturating_mul(MAX_LACKING) > lacking.saturating_add(self.seen)
    }
}

/// The last number of each CPU on each device, through all chunks.
#[derive(Default)]
pub(super) struct LastNumbers {
    /// The text is filtered, so its gaps say nothing.
    pub(super) is_filtered: bool,
    last: HashMap<(Dev, u64), u64>,
    remaps: Remaps,
    /// Events that gaps have shown and that no statistics of blkparse have reported.
    lacking: u64,
}

impl LastNumbers {
    /// Adds the gaps between this chunk and the one before. blkparse reports at its end the events that it skipped: these are not counted twice.
    pub(super) fn apply(&mut self, sequences: &mut Sequences, batch: &mut Batch) {
        let is_gap = |at: usize| sequences.gaps.binary_search_by_key(&at, |&(note, ..)| note).is_ok();
        let mut notes = Vec::with_capacity(batch.notes.len());
        for (at, mut note) in std::mem::take(&mut batch.notes).into_iter().enumerate() {
            if let NoteKind::Lost { count } = &mut note.kind {
                if is_gap(at) {
                    *count *= u64::from(!self.is_filtered);
                    self.lacking = self.lacking.saturating_add(*count);
                } else {
                    let reported = *count;
                    *count = reported.saturating_sub(self.lacking);
                    self.lacking = self.lacking.saturating_sub(reported);
                }
                if *count == 0 {
                    continue;
                }
            }
            notes.push(note);
        }
        for (cpu, numbers) in sequences.remaps.0.drain() {
            let remaps = self.remaps.0.entry(cpu).or_default();
            remaps.extend(numbers);
            while remaps.len() as u64 > MAX_LATE {
                remaps.pop_first();
            }
        }
        for stretch in &sequences.stretches {
            let Some(last) = self.last.insert((stretch.dev, stretch.cpu), stretch.last) else { continue };
            let mut count = stretch.first.saturating_sub(last.saturating_add(1));
            if count > 0 {
                count -= self.remaps.fill(stretch.cpu, last + 1, stretch.first - 1);
            }
            if count > 0 && !self.is_filtered {
                self.lacking = self.lacking.saturating_add(count);
                let at = notes.partition_point(|note: &Note| note.line < stretch.line);
                let kind = NoteKind::Lost { count };
                notes.insert(at, Note { after: stretch.after, line: stretch.line, is_of_original_log: false, kind });
            }
        }
        batch.notes = notes;
    }
}
