//! The bios that the block layer has in flight, by device and sector. Its events carry neither an address nor an id.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::by_device::ByDevice;
use crate::event::Dev;
use crate::event::bio_flags::BioFlags;

const SECTOR_BYTES: u64 = 512;
/// Remap targets that are kept until a bio is queued there.
const MAX_REMAPS: usize = 65_536;

/// A bio that has been queued. One block request may complete a part of it, or several bios.
#[derive(Clone, Copy, Debug)]
struct QueuedBio<T> {
    bio: T,
    queued_ts: i64,
    /// In the order in which the bios of a device were queued.
    number: u64,
    end_sector: i64,
    left_bytes: u64,
    fua: bool,
    /// The device flushes before or after it.
    is_flushed: bool,
    /// Parts whose data are written and that wait for a flush of the device.
    unflushed: u32,
    issue: Option<Issue>,
    error: Option<i32>,
}

/// When a bio, or the first part of it, was handed to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) ts: i64,
    /// When it was handed over for the first time. The driver may return it.
    pub(crate) first_ts: i64,
    /// How often it was handed over again, with all of its parts.
    pub(crate) requeues: u32,
    /// The number of requests that it was split into.
    pub(crate) parts: u32,
    /// First sector of the request. If it is issued again, the driver has not taken it the first time.
    sector: i64,
    /// The same of the last part.
    last_sector: i64,
    last_ts: i64,
}

impl Issue {
    /// Takes note that a request with a part of the bio is issued.
    pub(crate) fn update(issue: &mut Option<Self>, ts: i64, sector: i64) {
        let Some(issue) = issue else {
            *issue = Some(Self { ts, first_ts: ts, requeues: 0, parts: 1, sector, last_sector: sector, last_ts: ts });
            return;
        };
        let is_again = sector == issue.last_sector || sector == issue.sector;
        if is_again && ts == issue.last_ts {
            // Another input has the same event.
            return;
        }
        issue.last_ts = ts;
        if is_again {
            issue.requeues += 1;
        } else {
            issue.parts += 1;
            issue.last_sector = sector;
        }
        if sector == issue.sector {
            issue.ts = ts;
        }
    }
}

/// A bio that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed<T> {
    pub(crate) bio: T,
    pub(crate) issue: Option<Issue>,
    /// The first error of its parts.
    pub(crate) error: Option<i32>,
}

/// Sectors, as the first one and the size in bytes.
pub(crate) type Gap = (i64, u64);

/// What a completion ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended<T> {
    /// The bios that leave.
    pub(crate) done: Vec<Completed<T>>,
    /// The parts of its range in which no bio was in flight.
    pub(crate) gaps: Vec<Gap>,
    /// A bio was in flight in its range.
    pub(crate) is_known: bool,
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
        Completed { bio: self.bio, issue: self.issue, error: self.error }
    }
}

/// A completion of the block layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) dev: Dev,
    pub(crate) sector: i64,
    /// 0 once the flush after a write is done.
    pub(crate) bytes: u64,
    /// What the device was asked for. FUA is missing if the device has none.
    pub(crate) flags: BioFlags,
    pub(crate) error: Option<i32>,
    /// It is the end of one bio, and not of a request.
    pub(crate) is_bio: bool,
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
    devices: ByDevice<DeviceQueue<T>>,
    /// Places in `devices` of those that have bios in flight, and of some that no longer have.
    busy: Vec<usize>,
    /// Where redirected bios will be queued next, and their sizes.
    remap_targets: BTreeMap<(Dev, i64), u64>,
    remap_order: VecDeque<(Dev, i64)>,
}

/// Bios by first sector. Of two bios at one sector the older comes first.
type BySector<T> = BTreeMap<i64, VecDeque<QueuedBio<T>>>;

#[derive(Debug)]
struct DeviceQueue<T> {
    /// The bios of each length class: those of 2^i to 2^(i+1)-1 sectors. A bio that covers a sector begins at most its length before it,
    /// so one long bio must not make the search for short ones long.
    classes: Vec<BySector<T>>,
    queued: u64,
    /// Number of bios in flight before or after which the device flushes.
    flushed: u64,
    /// The device is in `BlockQueue::busy`.
    is_busy: bool,
}

impl<T> Default for DeviceQueue<T> {
    fn default() -> Self {
        Self { classes: Vec::new(), queued: 0, flushed: 0, is_busy: false }
    }
}

/// Where a bio in flight is. The order is that of first sectors, then of age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: i64,
    number: u64,
    class: usize,
    /// The end of the longest bio of its class that begins there, or of one that covers the rest of the range.
    reach: i64,
}

pub(crate) fn sectors(bytes: u64) -> i64 {
    i64::try_from(bytes.div_ceil(SECTOR_BYTES)).unwrap_or(i64::MAX)
}

/// The parts of a range of sectors that no place covers. The places are sorted.
fn gaps_between(places: &[Place], sector: i64, end: i64) -> Vec<Gap> {
    let (mut gaps, mut reached) = (Vec::new(), sector);
    for (start, reach) in places.iter().map(|place| (place.start, place.reach)).chain([(end, end)]) {
        if start > reached {
            gaps.push((reached, (start - reached).unsigned_abs().saturating_mul(SECTOR_BYTES)));
        }
        reached = reached.max(reach);
    }
    gaps
}

/// The length class of a bio of this many sectors.
fn class_of(sectors: i64) -> usize {
    sectors.max(1).ilog2() as usize
}

/// The first sectors at which a bio of a class may begin that covers a sector from `sector` to `end - 1`.
fn starts(class: usize, sector: i64, end: i64) -> Range<i64> {
    let longest = i64::MAX >> (62 - class);
    sector.saturating_sub(longest - 1).min(end)..end
}

impl<T> DeviceQueue<T> {
    /// The oldest bio at each first sector that reaches from `sector` to `end - 1` and that `is_wanted`.
    fn oldest_in(
        &self,
        sector: i64,
        end: i64,
        is_wanted: impl Fn(i64, &QueuedBio<T>) -> bool,
    ) -> impl Iterator<Item = (Place, &QueuedBio<T>)> {
        let classes = self.classes.iter().enumerate().filter(|(_, bios)| !bios.is_empty());
        let bios = classes.flat_map(move |(class, by_sector)| {
            by_sector.range(starts(class, sector, end)).map(move |(&start, bios)| (class, start, bios))
        });
        bios.filter_map(move |(class, start, bios)| {
            let bio = bios.iter().find(|bio| bio.end_sector > sector && is_wanted(start, bio))?;
            // Many bios may begin at one sector. The first one mostly covers the rest of the range.
            let longest = || bios.iter().map(|bio| bio.end_sector).max().unwrap_or(start);
            let reach = if bio.end_sector >= end { bio.end_sector } else { longest() };
            Some((Place { start, number: bio.number, class, reach }, bio))
        })
    }

    /// The places of the bios of `oldest_in`, sorted, one for each first sector; and the parts of the range that none of them covers.
    fn places_in(
        &self,
        sector: i64,
        end: i64,
        is_wanted: impl Fn(i64, &QueuedBio<T>) -> bool,
    ) -> (Vec<Place>, Vec<Gap>) {
        let mut places: Vec<Place> = self.oldest_in(sector, end, is_wanted).map(|(place, _)| place).collect();
        places.sort_unstable();
        let gaps = gaps_between(&places, sector, end);
        places.dedup_by_key(|place| place.start);
        (places, gaps)
    }

    /// Removes and returns the bios that were queued before a time, with their first sectors.
    fn take_older(&mut self, ts: i64) -> Vec<(i64, QueuedBio<T>)>
    where
        T: Copy,
    {
        let mut old = Vec::new();
        for by_sector in &mut self.classes {
            by_sector.retain(|&start, bios| {
                while let Some(queued) = bios.front().filter(|queued| queued.queued_ts < ts) {
                    self.flushed -= u64::from(queued.is_flushed);
                    old.push((start, *queued));
                    bios.pop_front();
                }
                !bios.is_empty()
            });
        }
        old
    }

    /// Changes a bio in flight. It leaves if it is complete then.
    fn change(&mut self, place: Place, change: impl FnOnce(&mut QueuedBio<T>)) -> Option<Completed<T>>
    where
        T: Copy,
    {
        let Entry::Occupied(mut bios) = self.classes[place.class].entry(place.start) else { return None };
        let at = bios.get().binary_search_by_key(&place.number, |queued| queued.number).ok()?;
        let queued = &mut bios.get_mut()[at];
        change(queued);
        if !queued.is_complete() {
            return None;
        }
        let completed = queued.completed();
        self.flushed -= u64::from(queued.is_flushed);
        bios.get_mut().remove(at);
        if bios.get().is_empty() {
            bios.remove();
        }
        Some(completed)
    }
}

impl<T: Copy + PartialEq> BlockQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            devices: ByDevice::default(),
            busy: Vec::new(),
            remap_targets: BTreeMap::new(),
            remap_order: VecDeque::new(),
        }
    }

    /// Whether a bio has ever been queued on the device, or on any device with `None`.
    pub(crate) fn has_seen(&self, dev: Option<Dev>) -> bool {
        dev.map_or(!self.devices.is_empty(), |dev| self.devices.get(dev).is_some())
    }

    /// Whether a bio that is queued at this sector is new. A remap announces its target once.
    pub(crate) fn arrival(&mut self, dev: Dev, sector: i64) -> Arrival {
        if self.remap_targets.remove(&(dev, sector)).is_some() { Arrival::Remapped } else { Arrival::New }
    }

    pub(crate) fn queue(&mut self, (dev, sector): (Dev, i64), bytes: u64, flags: BioFlags, ts: i64, bio: T) {
        let place = self.devices.place_or_default(dev);
        let device = &mut self.devices[place];
        if !std::mem::replace(&mut device.is_busy, true) {
            self.busy.push(place);
        }
        let length = sectors(bytes);
        let class = class_of(length);
        if device.classes.len() <= class {
            device.classes.resize_with(class + 1, BTreeMap::new);
        }
        device.queued += 1;
        let queued = QueuedBio {
            bio,
            queued_ts: ts,
            number: device.queued,
            end_sector: sector.saturating_add(length),
            left_bytes: bytes,
            fua: flags.contains(BioFlags::FUA),
            is_flushed: flags.contains(BioFlags::FUA) || flags.contains(BioFlags::PREFLUSH),
            unflushed: 0,
            issue: None,
            error: None,
        };
        device.flushed += u64::from(queued.is_flushed);
        device.classes[class].entry(sector).or_default().push_back(queued);
    }

    /// Whether a bio is in flight before or after which the device flushes.
    pub(crate) fn is_flushing(&self, dev: Dev) -> bool {
        self.devices.get(dev).is_some_and(|device| device.flushed > 0)
    }

    /// The parts of a range of sectors in which no bio is in flight.
    pub(crate) fn gaps(&self, dev: Dev, sector: i64, bytes: u64) -> Vec<Gap> {
        let Some(device) = self.devices.get(dev) else { return vec![(sector, bytes)] };
        device.places_in(sector, sector.saturating_add(sectors(bytes)), |_, queued| queued.left_bytes > 0).1
    }

    /// A bio in flight in a range of sectors that `is_wanted`. Of several, the one with the lowest first sector, then the oldest.
    pub(crate) fn find(&self, dev: Dev, sector: i64, bytes: u64, is_wanted: impl Fn(T) -> bool) -> Option<T> {
        let end = sector.saturating_add(sectors(bytes).max(1));
        let bios = self.devices.get(dev)?.oldest_in(sector, end, |_, bio| is_wanted(bio.bio));
        bios.min_by_key(|(place, _)| *place).map(|(_, queued)| queued.bio)
    }

    /// Announces that a bio of this size will be queued again, at another device and sector.
    pub(crate) fn remap(&mut self, target: (Dev, i64), bytes: u64) {
        if self.remap_targets.insert(target, bytes).is_none() {
            self.remap_order.push_back(target);
            if self.remap_order.len() > MAX_REMAPS
                && let Some(old) = self.remap_order.pop_front()
            {
                self.remap_targets.remove(&old);
            }
        }
    }

    /// Queues, as `bio`, what was redirected to a range of sectors. A kernel need not report that it is queued there.
    pub(crate) fn queue_remapped(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64, bio: T) {
        if self.remap_targets.is_empty() {
            return;
        }
        let end = sector.saturating_add(sectors(bytes));
        let before = self.remap_targets.range((dev, i64::MIN)..(dev, sector)).next_back();
        let reaches = |&(&(_, start), &bytes): &(&(Dev, i64), &u64)| start.saturating_add(sectors(bytes)) > sector;
        let within = self.remap_targets.range((dev, sector)..(dev, end));
        let targets: Vec<((Dev, i64), u64)> =
            before.filter(reaches).into_iter().chain(within).map(|(k, v)| (*k, *v)).collect();
        for (target, bytes) in targets {
            self.remap_targets.remove(&target);
            self.queue(target, bytes, BioFlags::default(), ts, bio);
        }
    }

    /// Issues a request with the bios in a range of sectors. Returns the parts of the range in which no bio is in flight.
    pub(crate) fn issue(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64) -> Vec<Gap> {
        let Some(device) = self.devices.get_mut(dev) else { return vec![(sector, bytes)] };
        let end = sector.saturating_add(sectors(bytes));
        // Those that wait for a flush have been written.
        let (places, gaps) = device.places_in(sector, end, |_, queued| queued.left_bytes > 0);
        for place in places {
            device.change(place, |queued| Issue::update(&mut queued.issue, ts, sector));
        }
        gaps
    }

    /// Completes a range of sectors. A bio leaves when all of its bytes are complete, and flushed where the device has no FUA.
    pub(crate) fn complete(&mut self, completion: &Completion) -> Ended<T> {
        let &Completion { dev, sector, bytes, flags, error, ts, .. } = completion;
        if completion.is_bio {
            let done: Vec<_> = self.complete_bio(completion).into_iter().collect();
            return Ended { is_known: !done.is_empty(), done, gaps: Vec::new() };
        }
        let Some(device) = self.devices.get_mut(dev) else {
            return Ended { done: Vec::new(), gaps: vec![(sector, bytes)], is_known: false };
        };
        let end = sector.saturating_add(sectors(bytes));
        // Of two writes in flight to one sector the older completes first.
        let is_hit = |_, queued: &QueuedBio<T>| queued.queued_ts <= ts && queued.left_bytes > 0;
        let (places, gaps) = device.places_in(sector, end, is_hit);
        let is_known = !places.is_empty();
        let complete_at = |place: Place| {
            device.change(place, |queued| {
                let overlap = end.min(queued.end_sector) - sector.max(place.start);
                let overlap_bytes = overlap.unsigned_abs().saturating_mul(SECTOR_BYTES);
                queued.left_bytes = queued.left_bytes.saturating_sub(overlap_bytes);
                queued.fail(error);
                // The block layer has taken the flag off: the device has no FUA, and a flush follows instead.
                queued.unflushed += u32::from(queued.fua && !flags.contains(BioFlags::FUA));
            })
        };
        Ended { done: places.into_iter().filter_map(complete_at).collect(), gaps, is_known }
    }

    /// Completes the oldest bio that begins at a sector: the request that began with it is done, whatever its size.
    pub(crate) fn complete_at(&mut self, dev: Dev, sector: i64, ts: i64) -> Option<Completed<T>> {
        let device = self.devices.get_mut(dev)?;
        let is_hit = |start: i64, queued: &QueuedBio<T>| start == sector && queued.queued_ts <= ts;
        let (places, _) = device.places_in(sector, sector.saturating_add(1), is_hit);
        device.change(*places.first()?, |queued| (queued.left_bytes, queued.unflushed) = (0, 0))
    }

    /// Completes one bio, flushed and whole: its own event says that it has ended. The kernel may have advanced the bio past what it split off,
    /// so only the end has to agree. A bio with the same start counts first, then the oldest.
    fn complete_bio(&mut self, completion: &Completion) -> Option<Completed<T>> {
        let &Completion { dev, sector, bytes, error, ts, .. } = completion;
        let device = self.devices.get_mut(dev)?;
        let end = sector.saturating_add(sectors(bytes));
        let is_hit =
            |start: i64, queued: &QueuedBio<T>| queued.queued_ts <= ts && queued.end_sector == end && start <= sector;
        let (places, _) = device.places_in(sector, end, is_hit);
        let place = places
            .iter()
            .find(|place| place.start == sector)
            .or_else(|| places.iter().min_by_key(|place| place.number));
        device.change(*place?, |queued| {
            (queued.left_bytes, queued.unflushed) = (0, 0);
            queued.fail(error);
        })
    }

    /// Completes the flush after the write of a bio, or of its part that begins at the sector. Returns the bio if it leaves.
    pub(crate) fn complete_flush(&mut self, completion: &Completion) -> Option<Completed<T>> {
        let &Completion { dev, sector, error, ts, .. } = completion;
        let device = self.devices.get_mut(dev)?;
        // The completion of the data may have been lost.
        let waits = |start: i64, queued: &QueuedBio<T>| queued.unflushed > 0 || queued.fua && start == sector;
        let is_hit = |start: i64, queued: &QueuedBio<T>| queued.queued_ts <= ts && waits(start, queued);
        let place = device.oldest_in(sector, sector.saturating_add(1), is_hit).map(|(place, _)| place).min()?;
        device.change(place, |queued| {
            if queued.unflushed == 0 {
                queued.left_bytes = 0;
            }
            queued.unflushed = queued.unflushed.saturating_sub(1);
            queued.fail(error);
        })
    }

    /// Removes a bio that was queued with these values, if it is still there. Nothing completes it any more.
    pub(crate) fn forget(&mut self, (dev, sector): (Dev, i64), bytes: u64, bio: T) {
        let Some(device) = self.devices.get_mut(dev) else { return };
        let DeviceQueue { classes, flushed, .. } = device;
        let Some(by_sector) = classes.get_mut(class_of(sectors(bytes))) else { return };
        let Entry::Occupied(mut bios) = by_sector.entry(sector) else { return };
        bios.get_mut().retain(|queued| {
            let is_it = queued.bio == bio;
            *flushed -= u64::from(is_it && queued.is_flushed);
            !is_it
        });
        if bios.get().is_empty() {
            bios.remove();
        }
    }

    /// Removes and returns the bios that were queued before a time. They are not complete.
    pub(crate) fn take_older(&mut self, ts: i64) -> Vec<Completed<T>> {
        let mut taken = Vec::new();
        self.busy.sort_unstable();
        self.busy.retain(|&place| {
            let device = &mut self.devices[place];
            let mut old = device.take_older(ts);
            old.sort_unstable_by_key(|(start, queued)| (*start, queued.number));
            taken.extend(old.iter().map(|(_, queued)| queued.completed()));
            device.is_busy = device.classes.iter().any(|by_sector| !by_sector.is_empty());
            device.is_busy
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);
    const NONE: BioFlags = BioFlags::SYNC;

    fn at(sector: i64, bytes: u64, ts: i64) -> Completion {
        Completion { dev: DISK, sector, bytes, flags: NONE, error: None, is_bio: false, ts }
    }

    fn numbers(completed: Vec<Completed<u32>>) -> Vec<u32> {
        completed.into_iter().map(|completed| completed.bio).collect()
    }

    /// The bios that leave; `None` if none was in flight.
    fn bios(ended: Ended<u32>) -> Option<Vec<u32>> {
        ended.is_known.then(|| numbers(ended.done))
    }

    #[test]
    fn merged_bios_complete_together_and_a_split_bio_with_its_last_part() {
        let mut queue = BlockQueue::new();
        for (bio, sector) in [(1, 0), (2, 8), (3, 16), (4, 64)] {
            queue.queue((DISK, sector), 4096, NONE, 10, bio);
        }
        assert_eq!(bios(queue.complete(&at(0, 3 * 4096, 100))), Some(vec![1, 2, 3]));
        assert_eq!(bios(queue.complete(&at(0, 4096, 100))), None);
        assert_eq!(bios(queue.complete(&at(68, 2048, 100))), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(64, 2048, 100))), Some(vec![4]));
        assert_eq!(queue.find(DISK, 64, 0, |_| true), None);
    }

    #[test]
    fn the_older_of_two_bios_at_a_sector_completes_first_and_none_before_it_was_queued() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 512, NONE, 10, 1);
        queue.queue((DISK, 8), 512, NONE, 20, 2);
        queue.queue((DISK, 9), 512, NONE, 200, 3);
        assert_eq!(bios(queue.complete(&at(8, 1024, 100))), Some(vec![1]));
        assert_eq!(bios(queue.complete(&at(8, 512, 100))), Some(vec![2]));
        assert!(queue.take_older(200).is_empty());
        assert_eq!(numbers(queue.take_older(201)), [3]);
        assert!(queue.take_older(201).is_empty());
    }

    #[test]
    fn a_bio_that_is_given_up_is_not_completed() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 4096, NONE, 10, 1);
        queue.queue((DISK, 8), 4096, NONE, 20, 2);
        queue.forget((DISK, 8), 512, 1);
        queue.forget((DISK, 8), 4096, 1);
        queue.forget((DISK, 8), 4096, 1);
        assert_eq!(bios(queue.complete(&at(8, 4096, 100))), Some(vec![2]));
        queue.queue((DISK, 8), 4096, NONE, 110, 3);
        queue.forget((DISK, 8), 4096, 3);
        assert!(queue.take_older(200).is_empty());
    }

    #[test]
    fn fua_on_a_device_without_it_ends_with_the_flush() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 4096, BioFlags::FUA, 10, 1);
        queue.queue((DISK, 16), 4096, BioFlags::FUA, 10, 2);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        // The device has FUA.
        assert_eq!(bios(queue.complete(&Completion { flags: BioFlags::FUA, ..at(16, 4096, 20) })), Some(vec![2]));
        // A flush without data, and one that was lost before it.
        assert_eq!(queue.complete_flush(&at(0, 0, 25)), None);
        assert_eq!(queue.complete_flush(&at(16, 0, 25)), None);
        // The same sector is written again.
        queue.queue((DISK, 8), 4096, NONE, 26, 3);
        assert_eq!(bios(queue.complete(&at(8, 4096, 27))), Some(vec![3]));
        let failed = Completion { error: Some(-5), ..at(8, 0, 30) };
        assert_eq!(queue.complete_flush(&failed), Some(Completed { bio: 1, issue: None, error: Some(-5) }));
        assert_eq!(queue.find(DISK, 8, 0, |_| true), None);
    }

    #[test]
    fn each_part_of_a_split_fua_bio_waits_for_its_flush() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 8192, BioFlags::FUA, 10, 1);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(8, 0, 25)), None);
        assert_eq!(bios(queue.complete(&at(16, 4096, 30))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(16, 0, 40)).map(|completed| completed.bio), Some(1));
    }

    #[test]
    fn a_bio_is_issued_with_its_first_part_and_again_after_a_requeue() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 0), 4096, NONE, 10, 1);
        queue.queue((DISK, 8), 8192, NONE, 10, 2);
        // Merged, and the driver does not take the request at once.
        queue.issue(DISK, 0, 8192, 15);
        queue.issue(DISK, 0, 8192, 20);
        queue.issue(DISK, 16, 4096, 25);
        let failed = Completion { error: Some(-28), ..at(0, 8192, 30) };
        let issue = Issue { ts: 20, first_ts: 15, requeues: 1, parts: 1, sector: 0, last_sector: 0, last_ts: 20 };
        assert_eq!(queue.complete(&failed).done, [Completed { bio: 1, issue: Some(issue), error: Some(-28) }]);
        let second = Completion { error: Some(0), ..at(16, 4096, 40) };
        let issue = Issue { parts: 2, last_sector: 16, last_ts: 25, ..issue };
        assert_eq!(queue.complete(&second).done, [Completed { bio: 2, issue: Some(issue), error: Some(-28) }]);
    }

    #[test]
    fn what_no_bio_covers_is_a_gap() {
        let mut queue = BlockQueue::new();
        assert_eq!(queue.gaps(DISK, 8, 4096), [(8, 4096)]);
        queue.queue((DISK, 8), 4096, NONE, 10, 1);
        queue.queue((DISK, 32), 4096, NONE, 10, 2);
        assert_eq!(queue.gaps(DISK, 8, 4096), []);
        assert_eq!(queue.issue(DISK, 0, 48 * 512, 20), [(0, 4096), (16, 8192), (40, 4096)]);
        let ended = queue.complete(&at(8, 8192, 30));
        assert_eq!((numbers(ended.done), ended.gaps, ended.is_known), (vec![1], vec![(16, 4096)], true));
        // A longer bio at the same sector covers what the older one does not.
        queue.queue((DISK, 32), 8192, NONE, 40, 3);
        assert_eq!(queue.gaps(DISK, 32, 8192), []);
    }

    #[test]
    fn a_bio_with_a_flush_counts_until_it_leaves() {
        let mut queue = BlockQueue::new();
        queue.queue((DISK, 8), 4096, BioFlags::PREFLUSH, 10, 1);
        queue.queue((DISK, 16), 4096, BioFlags::FUA, 10, 2);
        queue.queue((DISK, 24), 4096, NONE, 10, 3);
        queue.complete(&at(8, 4096, 20));
        assert!(queue.is_flushing(DISK));
        queue.forget((DISK, 16), 4096, 2);
        assert!(!queue.is_flushing(DISK));
        queue.queue((DISK, 32), 4096, BioFlags::FUA, 30, 4);
        queue.take_older(40);
        assert!(!queue.is_flushing(DISK));
    }

    #[test]
    fn a_remap_announces_its_target_once() {
        let mut queue: BlockQueue<u32> = BlockQueue::new();
        queue.remap((DISK, 8), 4096);
        assert_eq!(queue.arrival(DISK, 8), Arrival::Remapped);
        assert_eq!(queue.arrival(DISK, 8), Arrival::New);
        // Not reported there, it is queued when a request for a part of it comes.
        queue.remap((DISK, 8), 8192);
        queue.queue_remapped(DISK, 16, 4096, 10, 7);
        assert_eq!((queue.gaps(DISK, 8, 8192), queue.arrival(DISK, 8)), (vec![], Arrival::New));
    }
}
