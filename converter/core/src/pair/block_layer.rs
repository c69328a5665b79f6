//! What the block layer has in flight, as it tells itself: by device and place, since no address and no id goes with it.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::event::Dev;

const SECTOR_BYTES: u64 = 512;
/// Locations that a remap has named and no bio has come to.
const MAX_REMAPS: usize = 65_536;

/// A bio that has been queued; requests may be a part of it, or of several.
#[derive(Clone, Copy, Debug)]
struct Flight<T> {
    of: T,
    queued: i64,
    end: i64,
    left_bytes: u64,
}

/// What becomes of a bio that is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// It is a bio of its own.
    New,
    /// A bio that is told already goes on to another device.
    GoesOn,
}

/// `T` is what the caller calls a bio by.
#[derive(Debug, Default)]
pub struct BlockQueue<T> {
    devices: Vec<(Dev, OnDevice<T>)>,
    /// Where a bio that is told already will be queued next.
    remaps: HashSet<(Dev, i64)>,
    remaps_order: VecDeque<(Dev, i64)>,
}

#[derive(Debug)]
struct OnDevice<T> {
    /// By first sector; of two at one place the older comes first.
    flights: BTreeMap<i64, VecDeque<Flight<T>>>,
    longest_sectors: i64,
}

fn sectors(bytes: u64) -> i64 {
    i64::try_from(bytes.div_ceil(SECTOR_BYTES)).unwrap_or(i64::MAX)
}

impl<T: Copy + PartialEq> BlockQueue<T> {
    pub fn new() -> Self {
        Self { devices: Vec::new(), remaps: HashSet::new(), remaps_order: VecDeque::new() }
    }

    fn on(&mut self, dev: Dev) -> &mut OnDevice<T> {
        let at = self.devices.iter().position(|(known, _)| *known == dev).unwrap_or_else(|| {
            self.devices.push((dev, OnDevice { flights: BTreeMap::new(), longest_sectors: 0 }));
            self.devices.len() - 1
        });
        &mut self.devices[at].1
    }

    /// Whether a bio has ever been queued, on the device or on any.
    pub fn knows(&self, dev: Option<Dev>) -> bool {
        self.devices.iter().any(|(known, _)| dev.is_none_or(|dev| *known == dev))
    }

    /// Whether one that is queued there is new, or one that a remap has told of.
    pub fn arrives(&mut self, dev: Dev, sector: i64) -> Queued {
        if self.remaps.remove(&(dev, sector)) { Queued::GoesOn } else { Queued::New }
    }

    pub fn queue(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64, of: T) {
        let on = self.on(dev);
        let length = sectors(bytes);
        on.longest_sectors = on.longest_sectors.max(length);
        let flight = Flight { of, queued: ts, end: sector.saturating_add(length), left_bytes: bytes };
        on.flights.entry(sector).or_default().push_back(flight);
    }

    /// What is in flight at a place, the oldest of it.
    pub fn at(&self, dev: Dev, sector: i64) -> Option<T> {
        let (_, on) = self.devices.iter().find(|(known, _)| *known == dev)?;
        let from = sector.saturating_sub(on.longest_sectors);
        let mut flights = on.flights.range(from..=sector).flat_map(|(_, flights)| flights);
        flights.find(|flight| flight.end > sector).map(|flight| flight.of)
    }

    /// Whether a bio is in flight there.
    pub fn flies(&self, dev: Dev, sector: i64) -> bool {
        let Some((_, on)) = self.devices.iter().find(|(known, _)| *known == dev) else { return false };
        let from = sector.saturating_sub(on.longest_sectors);
        on.flights.range(from..=sector).any(|(_, flights)| flights.iter().any(|flight| flight.end > sector))
    }

    /// What begins at a place will go on at another one.
    pub fn remap(&mut self, to: (Dev, i64)) {
        if self.remaps.insert(to) {
            self.remaps_order.push_back(to);
            if self.remaps_order.len() > MAX_REMAPS
                && let Some(old) = self.remaps_order.pop_front()
            {
                self.remaps.remove(&old);
            }
        }
    }

    /// Takes what is done from what flies; those that are done wholly leave. False where nothing flies there.
    pub fn complete(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64, mut done: impl FnMut(T)) -> bool {
        let Some((_, on)) = self.devices.iter_mut().find(|(known, _)| *known == dev) else { return false };
        let end = sector.saturating_add(sectors(bytes));
        let from = sector.saturating_sub(on.longest_sectors);
        let mut any = false;
        let mut empty = Vec::new();
        if from >= end {
            return false;
        }
        for (&start, flights) in on.flights.range_mut(from..end) {
            // A place that is written twice at once is done by the older first.
            let Some(flight) = flights.iter_mut().find(|flight| flight.queued <= ts && flight.end > sector) else {
                continue;
            };
            any = true;
            let overlap = (end.min(flight.end) - sector.max(start)).unsigned_abs().saturating_mul(SECTOR_BYTES);
            flight.left_bytes = flight.left_bytes.saturating_sub(overlap);
            if flight.left_bytes == 0 {
                let of = flight.of;
                done(of);
                flights.retain(|flight| flight.of != of);
                if flights.is_empty() {
                    empty.push(start);
                }
            }
        }
        for start in empty {
            on.flights.remove(&start);
        }
        any
    }

    /// One that will not be completed.
    pub fn forget(&mut self, dev: Dev, sector: i64, of: T) {
        let Some((_, on)) = self.devices.iter_mut().find(|(known, _)| *known == dev) else { return };
        if let Some(flights) = on.flights.get_mut(&sector) {
            flights.retain(|flight| flight.of != of);
            if flights.is_empty() {
                on.flights.remove(&sector);
            }
        }
    }

    /// Those that were queued before a time, which leave.
    pub fn take_older(&mut self, ts: i64) -> Vec<T> {
        let mut old = Vec::new();
        for (_, on) in &mut self.devices {
            on.flights.retain(|_, flights| {
                while let Some(flight) = flights.front().filter(|flight| flight.queued < ts) {
                    old.push(flight.of);
                    flights.pop_front();
                }
                !flights.is_empty()
            });
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);

    fn done(blocks: &mut BlockQueue<u32>, sector: i64, bytes: u64) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        blocks.complete(DISK, sector, bytes, 100, |of| found.push(of)).then_some(found)
    }

    #[test]
    fn merged_ones_are_done_together_and_split_ones_when_the_last_part_is() {
        let mut blocks = BlockQueue::new();
        for (of, sector) in [(1, 0), (2, 8), (3, 16), (4, 64)] {
            blocks.queue(DISK, sector, 4096, 10, of);
        }
        assert_eq!(done(&mut blocks, 0, 3 * 4096), Some(vec![1, 2, 3]));
        assert_eq!(done(&mut blocks, 0, 4096), None);
        assert_eq!(done(&mut blocks, 68, 2048), Some(vec![]));
        assert_eq!(done(&mut blocks, 64, 2048), Some(vec![4]));
        assert!(!blocks.flies(DISK, 64));
    }

    #[test]
    fn of_two_at_one_place_the_older_is_done_first_and_none_before_it_was_queued() {
        let mut blocks = BlockQueue::new();
        blocks.queue(DISK, 8, 512, 10, 1);
        blocks.queue(DISK, 8, 512, 20, 2);
        blocks.queue(DISK, 9, 512, 200, 3);
        assert_eq!(done(&mut blocks, 8, 1024), Some(vec![1]));
        assert_eq!(done(&mut blocks, 8, 512), Some(vec![2]));
        assert!(blocks.take_older(200).is_empty());
        assert_eq!(blocks.take_older(201), [3]);
        assert!(blocks.take_older(201).is_empty());
    }

    #[test]
    fn a_remap_counts_once() {
        let mut blocks: BlockQueue<u32> = BlockQueue::new();
        blocks.remap((DISK, 8));
        assert_eq!(blocks.arrives(DISK, 8), Queued::GoesOn);
        assert_eq!(blocks.arrives(DISK, 8), Queued::New);
    }
}
