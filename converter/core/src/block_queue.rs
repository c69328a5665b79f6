//! The bios that the block layer has in flight, by device and sector. Its events carry neither an address nor an id.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::event::Dev;

const SECTOR_BYTES: u64 = 512;
/// Remap targets that are kept until a bio is queued there.
const MAX_REMAPS: usize = 65_536;

/// A bio that has been queued. One block request may complete a part of it, or several bios.
#[derive(Clone, Copy, Debug)]
struct QueuedBio<T> {
    bio: T,
    queued_ts: i64,
    end_sector: i64,
    left_bytes: u64,
}

/// Whether a bio that is queued is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// A bio that was queued before and is redirected to another device.
    Remapped,
}

/// The bios that the block layer has in flight, by device and sector. `T` identifies a bio for the caller.
#[derive(Debug, Default)]
pub(crate) struct BlockQueue<T> {
    devices: Vec<(Dev, DeviceQueue<T>)>,
    /// Where redirected bios will be queued next.
    remap_targets: HashSet<(Dev, i64)>,
    remap_order: VecDeque<(Dev, i64)>,
}

#[derive(Debug)]
struct DeviceQueue<T> {
    /// By first sector. Of two bios at one sector the older comes first.
    queued: BTreeMap<i64, VecDeque<QueuedBio<T>>>,
    longest_sectors: i64,
}

fn sectors(bytes: u64) -> i64 {
    i64::try_from(bytes.div_ceil(SECTOR_BYTES)).unwrap_or(i64::MAX)
}

impl<T> DeviceQueue<T> {
    /// The bios in flight that cover a sector, the lowest first sector first.
    fn covering(&self, sector: i64) -> impl Iterator<Item = &QueuedBio<T>> {
        let from = sector.saturating_sub(self.longest_sectors);
        let bios = self.queued.range(from..=sector).flat_map(|(_, bios)| bios);
        bios.filter(move |bio| bio.end_sector > sector)
    }
}

impl<T: Copy + PartialEq> BlockQueue<T> {
    pub(crate) fn new() -> Self {
        Self { devices: Vec::new(), remap_targets: HashSet::new(), remap_order: VecDeque::new() }
    }

    fn device(&self, dev: Dev) -> Option<&DeviceQueue<T>> {
        self.devices.iter().find(|(known, _)| *known == dev).map(|(_, device)| device)
    }

    fn device_mut(&mut self, dev: Dev) -> Option<&mut DeviceQueue<T>> {
        self.devices.iter_mut().find(|(known, _)| *known == dev).map(|(_, device)| device)
    }

    /// Whether a bio has ever been queued on the device, or on any device with `None`.
    pub(crate) fn has_seen(&self, dev: Option<Dev>) -> bool {
        self.devices.iter().any(|(known, _)| dev.is_none_or(|dev| *known == dev))
    }

    /// Whether a bio that is queued at this sector is new. A remap announces its target once.
    pub(crate) fn arrival(&mut self, dev: Dev, sector: i64) -> Arrival {
        if self.remap_targets.remove(&(dev, sector)) { Arrival::Remapped } else { Arrival::New }
    }

    pub(crate) fn queue(&mut self, (dev, sector): (Dev, i64), bytes: u64, ts: i64, bio: T) {
        if self.device(dev).is_none() {
            self.devices.push((dev, DeviceQueue { queued: BTreeMap::new(), longest_sectors: 0 }));
        }
        let Some(device) = self.device_mut(dev) else { return };
        let length = sectors(bytes);
        device.longest_sectors = device.longest_sectors.max(length);
        let queued = QueuedBio { bio, queued_ts: ts, end_sector: sector.saturating_add(length), left_bytes: bytes };
        device.queued.entry(sector).or_default().push_back(queued);
    }

    /// The bios in flight in a range of sectors, the lowest first sector first.
    pub(crate) fn in_range(&self, dev: Dev, sector: i64, bytes: u64) -> impl Iterator<Item = T> {
        let end = sector.saturating_add(sectors(bytes).max(1));
        let bios = self.device(dev).into_iter().flat_map(move |device| {
            let from = sector.saturating_sub(device.longest_sectors);
            device.queued.range(from.min(end)..end).flat_map(|(_, bios)| bios)
        });
        bios.filter(move |bio| bio.end_sector > sector).map(|queued| queued.bio)
    }

    /// A bio in flight that covers a sector. Of several, the one with the lowest first sector, then the oldest.
    pub(crate) fn find(&self, dev: Dev, sector: i64) -> Option<T> {
        self.device(dev)?.covering(sector).next().map(|queued| queued.bio)
    }

    /// Announces that a bio will be queued again, at another device and sector.
    pub(crate) fn remap(&mut self, target: (Dev, i64)) {
        if self.remap_targets.insert(target) {
            self.remap_order.push_back(target);
            if self.remap_order.len() > MAX_REMAPS
                && let Some(old) = self.remap_order.pop_front()
            {
                self.remap_targets.remove(&old);
            }
        }
    }

    /// Completes a range of sectors. A bio leaves when all of its bytes are complete. Returns the bios that leave, or `None` if no bio is in
    /// flight in the range.
    pub(crate) fn complete(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64) -> Option<Vec<T>> {
        let device = self.device_mut(dev)?;
        let end = sector.saturating_add(sectors(bytes));
        let from = sector.saturating_sub(device.longest_sectors);
        if from >= end {
            return None;
        }
        let mut is_any_in_flight = false;
        let (mut done, mut empty) = (Vec::new(), Vec::new());
        for (&start, bios) in device.queued.range_mut(from..end) {
            // Of two writes in flight to one sector the older completes first.
            let Some(queued) = bios.iter_mut().find(|queued| queued.queued_ts <= ts && queued.end_sector > sector)
            else {
                continue;
            };
            is_any_in_flight = true;
            let overlap = (end.min(queued.end_sector) - sector.max(start)).unsigned_abs().saturating_mul(SECTOR_BYTES);
            queued.left_bytes = queued.left_bytes.saturating_sub(overlap);
            if queued.left_bytes == 0 {
                let bio = queued.bio;
                done.push(bio);
                bios.retain(|queued| queued.bio != bio);
                if bios.is_empty() {
                    empty.push(start);
                }
            }
        }
        for start in empty {
            device.queued.remove(&start);
        }
        is_any_in_flight.then_some(done)
    }

    /// Removes a bio that will not be completed.
    pub(crate) fn remove(&mut self, dev: Dev, sector: i64, bio: T) {
        let Some(device) = self.device_mut(dev) else { return };
        if let Some(bios) = device.queued.get_mut(&sector) {
            bios.retain(|queued| queued.bio != bio);
            if bios.is_empty() {
                device.queued.remove(&sector);
            }
        }
    }

    /// Removes and returns the bios that were queued before a time.
    pub(crate) fn take_older(&mut self, ts: i64) -> Vec<T> {
        let mut old = Vec::new();
        for (_, device) in &mut self.devices {
            device.queued.retain(|_, bios| {
                while let Some(queued) = bios.front().filter(|queued| queued.queued_ts < ts) {
                    old.push(queued.bio);
                    bios.pop_front();
                }
                !bios.is_empty()
            });
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);

    #[test]
    fn merged_bios_complete_together_and_a_split_bio_with_its_last_part() {
        let mut queue = BlockQueue::new();
        for (bio, sector) in [(1, 0), (2, 8), (3, 16), (4, 64)] {
            queue.queue((DISK, sector), 4096, 10, bio);
        }
        assert_eq!(queue.complete(DISK, 0, 3 * 4096, 100), Some(vec![1, 2, 3]));
        assert_eq!(queue.complete(DISK, 0, 4096, 100), None);
        assert_eq!(queue.complete(DISK, 68, 2048, 100), Some(vec![]));
        assert_eq!(queue.complete(DISK, 64, 2048, 100), Some(vec![4]));
        assert_eq!(queue.find(DISK, 64), None);
    }

    #[test]
    fn the_older_of_two_bios_at_a_sector_completes_first_and_none_before_it_was_queued() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 512, 10, 1);
        queue.queue((DISK, 8), 512, 20, 2);
        queue.queue((DISK, 9), 512, 200, 3);
        assert_eq!(queue.complete(DISK, 8, 1024, 100), Some(vec![1]));
        assert_eq!(queue.complete(DISK, 8, 512, 100), Some(vec![2]));
        assert!(queue.take_older(200).is_empty());
        assert_eq!(queue.take_older(201), [3]);
        assert!(queue.take_older(201).is_empty());
    }

    #[test]
    fn a_remap_announces_its_target_once() {
        let mut queue: BlockQueue<u32> = BlockQueue::new();
        queue.remap((DISK, 8));
        assert_eq!(queue.arrival(DISK, 8), Arrival::Remapped);
        assert_eq!(queue.arrival(DISK, 8), Arrival::New);
    }
}
