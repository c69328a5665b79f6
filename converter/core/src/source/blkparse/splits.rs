//! Completions of split bios. From version 1.3.0 on, blkparse prints the completion of a part with the first sector of the whole bio and
//! the length up to the end of the part. Later bios at the sectors of these parts are printed like parts too, unless it ran with `-t`.
//! This pass restores the sector and the length that the kernel recorded.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::SECTOR_BYTES;
use super::sequences::{LastNumbers, Sequences};
use crate::event::{Dev, Kind};
use crate::source::{Batch, StatefulPass};

/// Parts that are remembered. The oldest are forgotten first.
const MAX_PARTS: usize = 65_536;
/// Requests in flight that are remembered.
const MAX_ISSUED: usize = 65_536;
/// Requests in flight with the same end that are remembered. Only writes that overlap have the same end.
const MAX_SAME_END: usize = 8;

/// A split: the bio that begins at `sector` is cut at `new_sector`.
pub(super) struct SplitBio {
    pub(super) dev: Dev,
    pub(super) sector: i64,
    pub(super) new_sector: i64,
}

/// The records that the parser leaves to the pass.
#[derive(Default)]
pub(super) struct Deferred {
    /// The splits of a batch, each with the number of events before it.
    splits: Vec<(usize, SplitBio)>,
    pub(super) sequences: Sequences,
}

impl Deferred {
    /// Takes the value of the batch, whose memory is used again.
    pub(super) fn take(batch: &mut Batch) -> Box<Self> {
        let before = batch.deferred.take().and_then(|deferred| deferred.downcast::<Self>().ok());
        let mut deferred = before.unwrap_or_default();
        deferred.splits.clear();
        deferred.sequences.clear();
        deferred
    }
}

impl SplitBio {
    /// Leaves the split for the pass.
    pub(super) fn defer(self, at: usize, deferred: &mut Deferred) {
        deferred.splits.push((at, self));
    }
}

#[derive(Default)]
pub(super) struct SplitBios {
    pub(super) numbers: LastNumbers,
    /// By device and first sector of a part: the first sector of its bio. The first part is among them.
    parts: HashMap<(u32, i64), i64>,
    /// Device, first sector of a bio, first sector of a part.
    parts_of_bios: BTreeSet<(u32, i64, i64)>,
    order: VecDeque<(u32, i64)>,
    /// By device and the sector after the last one: the first sectors of requests in flight.
    issued: HashMap<(u32, i64), Vec<i64>>,
}

impl SplitBios {
    fn split(&mut self, split: &SplitBio) {
        let dev = split.dev.0;
        let begin = self.add_part(dev, split.sector, split.sector);
        self.add_part(dev, split.new_sector, begin);
        while self.order.len() > MAX_PARTS
            && let Some((dev, start)) = self.order.pop_front()
            && let Some(begin) = self.parts.remove(&(dev, start))
        {
            self.parts_of_bios.remove(&(dev, begin, start));
        }
    }

    /// Adds a part, unless it is known. Returns the first sector of its bio.
    fn add_part(&mut self, dev: u32, start: i64, begin: i64) -> i64 {
        *self.parts.entry((dev, start)).or_insert_with(|| {
            self.order.push_back((dev, start));
            self.parts_of_bios.insert((dev, begin, start));
            begin
        })
    }

    fn issue(&mut self, dev: Dev, sector: i64, bytes: u64) {
        if self.issued.len() >= MAX_ISSUED {
            self.issued.clear();
        }
        let starts = self.issued.entry((dev.0, end_of(sector, bytes))).or_default();
        if starts.len() >= MAX_SAME_END {
            starts.remove(0);
        }
        starts.push(sector);
    }

    /// Returns the first sector of the part that a completion is of, as printed from `sector` on.
    fn complete(&mut self, dev: Dev, sector: i64, bytes: u64) -> i64 {
        let end = end_of(sector, bytes);
        let is_of_bio = |start: i64| self.parts.get(&(dev.0, start)) == Some(&sector);
        if let Some(starts) = self.issued.get_mut(&(dev.0, end)) {
            let own = starts.iter().position(|&start| start == sector);
            let found = own.or_else(|| starts.iter().position(|&start| is_of_bio(start)));
            if let Some(found) = found {
                let start = starts.remove(found);
                if starts.is_empty() {
                    self.issued.remove(&(dev.0, end));
                }
                return start;
            }
        }
        // Without the events at which requests are issued, a part ends where the next one begins.
        let parts = self.parts_of_bios.range((dev.0, sector, sector)..(dev.0, sector, end));
        parts.last().map_or(sector, |(_, _, start)| *start)
    }
}

fn end_of(sector: i64, bytes: u64) -> i64 {
    sector.saturating_add_unsigned(bytes / SECTOR_BYTES)
}

impl StatefulPass for SplitBios {
    fn apply(&mut self, batch: &mut Batch) {
        let Some(mut deferred) = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok()) else {
            return;
        };
        self.numbers.apply(&mut deferred.sequences, batch);
        let mut splits = std::mem::take(&mut deferred.splits).into_iter().peekable();
        if self.parts.is_empty() && splits.peek().is_none() {
            batch.deferred = Some(deferred);
            return;
        }
        for (at, event) in batch.events.iter_mut().enumerate() {
            while let Some((_, split)) = splits.next_if(|(before, _)| *before <= at) {
                self.split(&split);
            }
            match &mut event.kind {
                Kind::BlockIssue { dev, sector, bytes, .. } if *bytes > 0 => self.issue(*dev, *sector, *bytes),
                Kind::BlockComplete { dev, sector, bytes, .. } if *bytes > 0 => {
                    let start = self.complete(*dev, *sector, *bytes);
                    *bytes -= (start - *sector).unsigned_abs() * SECTOR_BYTES;
                    *sector = start;
                }
                _ => {}
            }
        }
        splits.for_each(|(_, split)| self.split(&split));
        batch.deferred = Some(deferred);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);

    fn split(bios: &mut SplitBios, sector: i64, new_sector: i64) {
        bios.split(&SplitBio { dev: DISK, sector, new_sector });
    }

    #[test]
    fn a_completion_is_of_the_part_with_its_end() {
        for are_issues_recorded in [true, false] {
            let mut bios = SplitBios::default();
            split(&mut bios, 1000, 1010);
            split(&mut bios, 1010, 1020);
            for start in [1000, 1010, 1020].into_iter().filter(|_| are_issues_recorded) {
                bios.issue(DISK, start, 10 * SECTOR_BYTES);
            }
            // Out of order, as blkparse prints them.
            for (bytes, start) in [(20, 1010), (10, 1000), (30, 1020)] {
                assert_eq!(bios.complete(DISK, 1000, bytes * SECTOR_BYTES), start);
            }
            assert!(bios.issued.is_empty());
        }
    }

    #[test]
    fn a_bio_that_is_not_split_keeps_its_place() {
        let mut bios = SplitBios::default();
        split(&mut bios, 1000, 1010);
        assert_eq!(bios.complete(DISK, 2000, 8 * SECTOR_BYTES), 2000);
        // A later bio over both parts, and one at the second part.
        bios.issue(DISK, 1000, 20 * SECTOR_BYTES);
        assert_eq!(bios.complete(DISK, 1000, 20 * SECTOR_BYTES), 1000);
        bios.issue(DISK, 1010, 4 * SECTOR_BYTES);
        assert_eq!(bios.complete(DISK, 1000, 14 * SECTOR_BYTES), 1010);
    }

    #[test]
    fn parts_are_bounded() {
        let mut bios = SplitBios::default();
        for at in 0..MAX_PARTS as i64 {
            split(&mut bios, at * 100, at * 100 + 10);
            bios.issue(DISK, at * 100, 10);
        }
        assert_eq!((bios.parts.len(), bios.order.len()), (MAX_PARTS, MAX_PARTS));
        assert!(bios.issued.len() <= MAX_ISSUED);
    }
}
