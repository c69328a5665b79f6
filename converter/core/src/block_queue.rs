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
    fua: bool,
    /// Parts whose data are written and that wait for a flush of the device.
    unflushed: u32,
    issue: Option<Issue>,
    error: Option<i32>,
}

/// When a bio, or the first part of it, was handed to the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Issue {
    pub(crate) ts: i64,
    /// First sector of the request. If it is issued again, the driver has not taken it the first time.
    sector: i64,
}

impl Issue {
    /// Takes note that a request with a part of the bio is issued.
    pub(crate) fn update(issue: &mut Option<Self>, ts: i64, sector: i64) {
        if issue.is_none_or(|issue| issue.sector == sector) {
            *issue = Some(Self { ts, sector });
        }
    }
}

/// A bio that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed<T> {
    pub(crate) bio: T,
    pub(crate) issue_ts: Option<i64>,
    /// The first error of its parts.
    pub(crate) error: Option<i32>,
}

impl<T: Copy> QueuedBio<T> {
    fn fail(&mut self, error: Option<i32>) {
        if self.error.is_none_or(|known| known == 0) {
            self.error = error.or(self.error);
        }
    }

    fn is_complete(&self) -> bool {
        self.left_bytes == 0 && self.unflushed == 0
    }

    fn completed(&self) -> Completed<T> {
        Completed { bio: self.bio, issue_ts: self.issue.map(|issue| issue.ts), error: self.error }
    }
}

/// A completion of the block layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) dev: Dev,
    pub(crate) sector: i64,
    /// 0 once the flush after a write is done.
    pub(crate) bytes: u64,
    pub(crate) fua: bool,
    pub(crate) error: Option<i32>,
    pub(crate) ts: i64,
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

pub(crate) fn sectors(bytes: u64) -> i64 {
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

    pub(crate) fn queue(&mut self, (dev, sector): (Dev, i64), bytes: u64, fua: bool, ts: i64, bio: T) {
        if self.device(dev).is_none() {
            self.devices.push((dev, DeviceQueue { queued: BTreeMap::new(), longest_sectors: 0 }));
        }
        let Some(device) = self.device_mut(dev) else { return };
        let length = sectors(bytes);
        device.longest_sectors = device.longest_sectors.max(length);
        let end_sector = sector.saturating_add(length);
        let queued = QueuedBio {
            bio,
            queued_ts: ts,
            end_sector,
            left_bytes: bytes,
            fua,
            unflushed: 0,
            issue: None,
            error: None,
        };
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

    /// Issues a request with the bios in a range of sectors.
    pub(crate) fn issue(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64) {
        let Some(device) = self.device_mut(dev) else { return };
        let end = sector.saturating_add(sectors(bytes));
        let from = sector.saturating_sub(device.longest_sectors);
        for (_, bios) in device.queued.range_mut(from..end.max(from)) {
            // Those that wait for a flush have been written.
            let is_in_range = |queued: &&mut QueuedBio<T>| queued.end_sector > sector && queued.left_bytes > 0;
            if let Some(queued) = bios.iter_mut().find(is_in_range) {
                Issue::update(&mut queued.issue, ts, sector);
            }
        }
    }

    /// Completes a range of sectors. A bio leaves when all of its bytes are complete, and flushed where the device has no FUA. Returns
    /// the bios that leave, or `None` if no bio is in flight in the range.
    pub(crate) fn complete(&mut self, completion: &Completion) -> Option<Vec<Completed<T>>> {
        let &Completion { dev, sector, bytes, fua, error, ts } = completion;
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
            let is_hit = |queued: &&mut QueuedBio<T>| {
                queued.queued_ts <= ts && queued.end_sector > sector && queued.left_bytes > 0
            };
            let Some(queued) = bios.iter_mut().find(is_hit) else { continue };
            is_any_in_flight = true;
            let overlap = (end.min(queued.end_sector) - sector.max(start)).unsigned_abs().saturating_mul(SECTOR_BYTES);
            queued.left_bytes = queued.left_bytes.saturating_sub(overlap);
            queued.fail(error);
            // The block layer has taken the flag off: the device has no FUA, and a flush follows instead.
            queued.unflushed += u32::from(queued.fua && !fua);
            if queued.is_complete() {
                leave(bios, start, &mut done, &mut empty);
            }
        }
        for start in empty {
            device.queued.remove(&start);
        }
        is_any_in_flight.then_some(done)
    }

    /// Completes the flush after the write of a bio, or of its part that begins at the sector. Returns the bio if it leaves.
    pub(crate) fn complete_flush(&mut self, completion: &Completion) -> Option<Completed<T>> {
        let &Completion { dev, sector, error, ts, .. } = completion;
        let device = self.device_mut(dev)?;
        let from = sector.saturating_sub(device.longest_sectors);
        for (&start, bios) in device.queued.range_mut(from..=sector) {
            // The completion of the data may have been lost.
            let waits = |queued: &QueuedBio<T>| queued.unflushed > 0 || queued.fua && start == sector;
            let is_hit =
                |queued: &&mut QueuedBio<T>| queued.queued_ts <= ts && queued.end_sector > sector && waits(queued);
            let Some(queued) = bios.iter_mut().find(is_hit) else { continue };
            if queued.unflushed == 0 {
                queued.left_bytes = 0;
            }
            queued.unflushed = queued.unflushed.saturating_sub(1);
            queued.fail(error);
            let (mut done, mut empty) = (Vec::new(), Vec::new());
            if queued.is_complete() {
                leave(bios, start, &mut done, &mut empty);
            }
            for start in empty {
                device.queued.remove(&start);
            }
            return done.pop();
        }
        None
    }

    /// Removes and returns the bios that were queued before a time. They are not complete.
    pub(crate) fn take_older(&mut self, ts: i64) -> Vec<Completed<T>> {
        let mut old = Vec::new();
        for (_, device) in &mut self.devices {
            device.queued.retain(|_, bios| {
                while let Some(queued) = bios.front().filter(|queued| queued.queued_ts < ts) {
                    old.push(queued.completed());
                    bios.pop_front();
                }
                !bios.is_empty()
            });
        }
        old
    }
}

/// Removes the bios at one sector that are complete. `empty` receives the sector if none is left.
fn leave<T: Copy>(bios: &mut VecDeque<QueuedBio<T>>, start: i64, done: &mut Vec<Completed<T>>, empty: &mut Vec<i64>) {
    bios.retain(|queued| {
        if queued.is_complete() {
            done.push(queued.completed());
        }
        !queued.is_complete()
    });
    if bios.is_empty() {
        empty.push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);

    fn at(sector: i64, bytes: u64, ts: i64) -> Completion {
        Completion { dev: DISK, sector, bytes, fua: false, error: None, ts }
    }

    fn bios(completed: Option<Vec<Completed<u32>>>) -> Option<Vec<u32>> {
        completed.map(|completed| completed.into_iter().map(|completed| completed.bio).collect())
    }

    #[test]
    fn merged_bios_complete_together_and_a_split_bio_with_its_last_part() {
        let mut queue = BlockQueue::new();
        for (bio, sector) in [(1, 0), (2, 8), (3, 16), (4, 64)] {
            queue.queue((DISK, sector), 4096, false, 10, bio);
        }
        assert_eq!(bios(queue.complete(&at(0, 3 * 4096, 100))), Some(vec![1, 2, 3]));
        assert_eq!(bios(queue.complete(&at(0, 4096, 100))), None);
        assert_eq!(bios(queue.complete(&at(68, 2048, 100))), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(64, 2048, 100))), Some(vec![4]));
        assert_eq!(queue.find(DISK, 64), None);
    }

    #[test]
    fn the_older_of_two_bios_at_a_sector_completes_first_and_none_before_it_was_queued() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 512, false, 10, 1);
        queue.queue((DISK, 8), 512, false, 20, 2);
        queue.queue((DISK, 9), 512, false, 200, 3);
        assert_eq!(bios(queue.complete(&at(8, 1024, 100))), Some(vec![1]));
        assert_eq!(bios(queue.complete(&at(8, 512, 100))), Some(vec![2]));
        assert!(queue.take_older(200).is_empty());
        assert_eq!(bios(Some(queue.take_older(201))), Some(vec![3]));
        assert!(queue.take_older(201).is_empty());
    }

    #[test]
    fn fua_on_a_device_without_it_ends_with_the_flush() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 4096, true, 10, 1);
        queue.queue((DISK, 16), 4096, true, 10, 2);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        // The device has FUA.
        assert_eq!(bios(queue.complete(&Completion { fua: true, ..at(16, 4096, 20) })), Some(vec![2]));
        // A flush without data, and one that was lost before it.
        assert_eq!(queue.complete_flush(&at(0, 0, 25)), None);
        assert_eq!(queue.complete_flush(&at(16, 0, 25)), None);
        // The same sector is written again.
        queue.queue((DISK, 8), 4096, false, 26, 3);
        assert_eq!(bios(queue.complete(&at(8, 4096, 27))), Some(vec![3]));
        let failed = Completion { error: Some(-5), ..at(8, 0, 30) };
        assert_eq!(queue.complete_flush(&failed), Some(Completed { bio: 1, issue_ts: None, error: Some(-5) }));
        assert_eq!(queue.find(DISK, 8), None);
    }

    #[test]
    fn each_part_of_a_split_fua_bio_waits_for_its_flush() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 8192, true, 10, 1);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(8, 0, 25)), None);
        assert_eq!(bios(queue.complete(&at(16, 4096, 30))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(16, 0, 40)).map(|completed| completed.bio), Some(1));
    }

    #[test]
    fn a_bio_is_issued_with_its_first_part_and_again_after_a_requeue() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 0), 4096, false, 10, 1);
        queue.queue((DISK, 8), 8192, false, 10, 2);
        // Merged, and the driver does not take the request at once.
        queue.issue(DISK, 0, 8192, 15);
        queue.issue(DISK, 0, 8192, 20);
        queue.issue(DISK, 16, 4096, 25);
        let failed = Completion { error: Some(-28), ..at(0, 8192, 30) };
        assert_eq!(queue.complete(&failed), Some(vec![Completed { bio: 1, issue_ts: Some(20), error: Some(-28) }]));
        let second = Completion { error: Some(0), ..at(16, 4096, 40) };
        assert_eq!(queue.complete(&second), Some(vec![Completed { bio: 2, issue_ts: Some(20), error: Some(-28) }]));
    }

    #[test]
    fn a_remap_announces_its_target_once() {
        let mut queue: BlockQueue<u32> = BlockQueue::new();
        queue.remap((DISK, 8));
        assert_eq!(queue.arrival(DISK, 8), Arrival::Remapped);
        assert_eq!(queue.arrival(DISK, 8), Arrival::New);
    }
}
