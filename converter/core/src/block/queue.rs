//! The bios that the block layer has in flight, by device and sector. Its events carry neither an address nor an id.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::collections::by_device::ByDevice;
use crate::event::Dev;
use crate::event::bio_flags::BioFlags;
use crate::event::place::Place;

const SECTOR_BYTES: u64 = 512;
/// Bios at one first sector that are compared with one another. If there are more, the oldest counts.
const MAX_COMPARED: usize = 32;
/// Bios at one first sector that may wait until it is known which completions are theirs. With more, that is decided.
const MAX_UNDECIDED: usize = 4;
/// The completion of a flush without data has this sector.
const EMPTY_FLUSH_SECTOR: i64 = 0;
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
    bytes: u64,
    left_bytes: u64,
    /// Bytes that have not been handed to the driver.
    unissued_bytes: u64,
    fua: bool,
    /// It begins at a zone, and the device chooses the place in that.
    is_append: bool,
    /// The device flushes before or after it.
    is_flushed: bool,
    /// Parts whose data are written and that wait for a flush of the device.
    unflushed: u32,
    issue: Option<Issue>,
    error: Option<i32>,
    /// Time and error of a completion that is its own, unless that of a newer bio at its sector does not come.
    tentative: Option<(i64, Option<i32>)>,
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
    /// The same of the last part, and its end.
    last_sector: i64,
    last_end: i64,
    last_ts: i64,
}

impl Issue {
    /// Takes note that a request with a part of the bio is issued.
    pub(crate) fn update(issue: &mut Option<Self>, ts: i64, sectors: &Range<i64>) {
        let (sector, last_end) = (sectors.start, sectors.end);
        let Some(issue) = issue else {
            let (requeues, parts, last_sector) = (0, 1, sector);
            *issue = Some(Self { ts, first_ts: ts, requeues, parts, sector, last_sector, last_end, last_ts: ts });
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
            (issue.last_sector, issue.last_end) = (sector, last_end);
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
    /// When it was complete.
    pub(crate) ts: i64,
}

/// Bios that leave the queue because it is decided which completions are theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided<T> {
    pub(crate) completed: Vec<Completed<T>>,
    /// Nothing completes them. Their times say nothing.
    pub(crate) lost: Vec<Completed<T>>,
}

impl<T> Default for Decided<T> {
    fn default() -> Self {
        Self { completed: Vec::new(), lost: Vec::new() }
    }
}

/// Sectors, as the first one and the size in bytes.
pub(crate) type Gap = (i64, u64);

/// The effect of a completion.
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

    fn is_open(&self) -> bool {
        self.left_bytes > 0 && self.tentative.is_none()
    }

    fn completed(&self, ts: i64) -> Completed<T> {
        Completed { bio: self.bio, issue: self.issue, error: self.error, ts }
    }
}

/// A completion of the block layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) dev: Dev,
    pub(crate) sector: i64,
    /// 0 once the flush after a write is done.
    pub(crate) bytes: u64,
    /// The flags that the device was given. FUA is missing if the device has none.
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
    /// A bio that was queued before, on this device, and is redirected to another one.
    Remapped(Dev),
}

/// A bio that will be queued again, on another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirected<T> {
    pub(crate) from: Dev,
    pub(crate) bytes: u64,
    pub(crate) flags: BioFlags,
    /// The bio in flight that is redirected as a whole, if it is known, and its number.
    pub(crate) whole: Option<(T, u64)>,
}

/// The bios that the block layer has in flight, by device and sector. `T` identifies a bio for the caller.
#[derive(Debug, Default)]
pub(crate) struct BlockQueue<T> {
    devices: ByDevice<DeviceQueue<T>>,
    /// Places in `devices` of those that have bios in flight, and of some that no longer have.
    busy: Vec<usize>,
    /// Where redirected bios will be queued next.
    remap_targets: BTreeMap<Place, Redirected<T>>,
    remap_order: VecDeque<Place>,
}

/// Bios by first sector, and at one sector by age, the oldest first.
type BySector<T> = BTreeMap<i64, VecDeque<QueuedBio<T>>>;

#[derive(Debug)]
struct DeviceQueue<T> {
    /// The bios of each length class: those of 2^i to 2^(i+1)-1 sectors. A bio that covers a sector begins at most its length before it,
    /// so one long bio must not make the search for short ones long.
    classes: Vec<BySector<T>>,
    queued: u64,
    /// Number of bios in flight before or after which the device flushes.
    flushed: u64,
    /// The first sectors of bios with a tentative completion.
    undecided: BTreeSet<i64>,
    /// The device is in `BlockQueue::busy`.
    is_busy: bool,
}

impl<T> Default for DeviceQueue<T> {
    fn default() -> Self {
        Self { classes: Vec::new(), queued: 0, flushed: 0, undecided: BTreeSet::new(), is_busy: false }
    }
}

/// Where a bio in flight is. The order is that of first sectors, then of age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    start: i64,
    number: u64,
    class: usize,
    /// The end of the longest bio of its class that begins there, or of one that covers the rest of the range.
    reach: i64,
}

/// A bio in flight that an event of the block layer may be of.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: Position,
    end_sector: i64,
    bytes: u64,
    left_bytes: u64,
    unissued_bytes: u64,
    fua: bool,
    issue: Option<Issue>,
}

impl Candidate {
    /// The bytes that it has in common with a range of sectors.
    fn overlap(&self, sectors: &Range<i64>) -> u64 {
        let overlap = sectors.end.min(self.end_sector) - sectors.start.max(self.place.start);
        overlap.unsigned_abs().saturating_mul(SECTOR_BYTES)
    }

    /// Whether it was issued last with exactly these sectors.
    fn is_issued_as(&self, sectors: &Range<i64>) -> bool {
        self.issue.is_some_and(|issue| issue.last_sector == sectors.start && issue.last_end == sectors.end)
    }

    /// Whether a completion of these sectors would be its only one.
    fn is_whole_in(&self, sectors: &Range<i64>) -> bool {
        let is_inside = sectors.start <= self.place.start && self.end_sector <= sectors.end;
        is_inside && self.left_bytes == self.bytes && !self.fua
    }
}

/// Which of several bios with the same first sector, in the order of their age, a completion is of, and whether it may as well be of a newer
/// one. Those that the driver has not got cannot be complete.
fn completed_of<'a>(group: &'a [Candidate], sectors: &Range<i64>) -> Option<(&'a Candidate, bool)> {
    let (oldest, newer) = group.split_first()?;
    if newer.is_empty() || group.len() > MAX_COMPARED {
        return Some((oldest, false));
    }
    let is_any_same = group.iter().any(|bio| bio.is_issued_as(sectors));
    let is_any_issued = group.iter().any(|bio| bio.issue.is_some());
    let fits = |bio: &&Candidate| {
        if is_any_same { bio.is_issued_as(sectors) } else { !is_any_issued || bio.issue.is_some() }
    };
    let mut fitting = group.iter().filter(fits);
    let oldest = fitting.next()?;
    let next = fitting.next();
    Some((oldest, next.is_some_and(|next| oldest.is_whole_in(sectors) && next.is_whole_in(sectors))))
}

pub(crate) fn sectors(bytes: u64) -> i64 {
    i64::try_from(bytes.div_ceil(SECTOR_BYTES)).unwrap_or(i64::MAX)
}

/// The parts of a range of sectors that no place covers. The places are sorted.
fn gaps_between(places: impl Iterator<Item = Position>, sector: i64, end: i64) -> Vec<Gap> {
    let (mut gaps, mut reached) = (Vec::new(), sector);
    for (start, reach) in places.map(|place| (place.start, place.reach)).chain([(end, end)]) {
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
    ) -> impl Iterator<Item = (Position, &QueuedBio<T>)> {
        let classes = self.classes.iter().enumerate().filter(|(_, bios)| !bios.is_empty());
        let bios = classes.flat_map(move |(class, by_sector)| {
            by_sector.range(starts(class, sector, end)).map(move |(&start, bios)| (class, start, bios))
        });
        bios.filter_map(move |(class, start, bios)| {
            let bio = bios.iter().find(|bio| bio.end_sector > sector && is_wanted(start, bio))?;
            // Many bios may begin at one sector. The first one mostly covers the rest of the range.
            let longest = || bios.iter().map(|bio| bio.end_sector).max().unwrap_or(start);
            let reach = if bio.end_sector >= end { bio.end_sector } else { longest() };
            Some((Position { start, number: bio.number, class, reach }, bio))
        })
    }

    /// The places of the bios of `oldest_in`, sorted, one for each first sector.
    fn places_in(&self, sector: i64, end: i64, is_wanted: impl Fn(i64, &QueuedBio<T>) -> bool) -> Vec<Position> {
        let mut places: Vec<Position> = self.oldest_in(sector, end, is_wanted).map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup_by_key(|place| place.start);
        places
    }

    /// The parts of a range of sectors in which no bio that `is_wanted` is in flight.
    fn gaps_in(&self, sector: i64, end: i64, is_wanted: impl Fn(i64, &QueuedBio<T>) -> bool) -> Vec<Gap> {
        let mut places: Vec<Position> = self.oldest_in(sector, end, is_wanted).map(|(place, _)| place).collect();
        places.sort_unstable();
        gaps_between(places.into_iter(), sector, end)
    }

    /// The bios that reach into a range of sectors and that `is_wanted`, by first sector and then by age; and the parts of the range that none of
    /// them covers. If many are at one sector, only the oldest ones, or the newest.
    fn all_in(
        &self,
        sectors: &Range<i64>,
        takes_newest: bool,
        is_wanted: impl Fn(&QueuedBio<T>) -> bool,
    ) -> (Vec<Candidate>, Vec<Gap>) {
        let mut found: Vec<Candidate> = Vec::new();
        for (class, by_sector) in self.classes.iter().enumerate().filter(|(_, bios)| !bios.is_empty()) {
            for (&start, bios) in by_sector.range(starts(class, sectors.start, sectors.end)) {
                let is_hit = |bio: &&QueuedBio<T>| bio.end_sector > sectors.start && is_wanted(bio);
                let candidate = |bio: &QueuedBio<T>| {
                    let &QueuedBio { number, end_sector, bytes, left_bytes, unissued_bytes, fua, issue, .. } = bio;
                    let place = Position { start, number, class, reach: end_sector };
                    Candidate { place, end_sector, bytes, left_bytes, unissued_bytes, fua, issue }
                };
                let first = found.len();
                if takes_newest {
                    found.extend(bios.iter().rev().filter(is_hit).take(MAX_COMPARED).map(candidate));
                } else {
                    found.extend(bios.iter().filter(is_hit).take(MAX_COMPARED + 1).map(candidate));
                }
                // Many bios may begin at one sector. One of the first ones mostly covers the rest of the range.
                if found.len() - first >= MAX_COMPARED && found[first..].iter().all(|bio| bio.end_sector < sectors.end)
                {
                    let longest = bios.iter().map(|bio| bio.end_sector).max().unwrap_or(start);
                    found[first].place.reach = longest;
                }
            }
        }
        if found.len() > 1 {
            found.sort_unstable_by_key(|bio| bio.place);
        }
        let gaps = gaps_between(found.iter().map(|bio| bio.place), sectors.start, sectors.end);
        (found, gaps)
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
    fn change(&mut self, place: Position, ts: i64, change: impl FnOnce(&mut QueuedBio<T>)) -> Option<Completed<T>>
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
        let completed = queued.completed(ts);
        self.flushed -= u64::from(queued.is_flushed);
        bios.get_mut().remove(at);
        if bios.get().is_empty() {
            bios.remove();
        }
        Some(completed)
    }

    /// The bios with a first sector, by age.
    fn at_sector(&self, start: i64) -> Vec<(Position, QueuedBio<T>)>
    where
        T: Copy,
    {
        let classes = self.classes.iter().enumerate();
        let place =
            |class: usize, bio: &QueuedBio<T>| Position { start, number: bio.number, class, reach: bio.end_sector };
        let mut found: Vec<_> = classes
            .filter_map(|(class, by_sector)| Some((class, by_sector.get(&start)?)))
            .flat_map(|(class, bios)| bios.iter().map(move |bio| (place(class, bio), *bio)))
            .collect();
        found.sort_unstable_by_key(|(place, _)| *place);
        found
    }

    /// Takes note of a completion that may be of this bio, or of a newer one at its sector.
    fn complete_tentatively(&mut self, place: Position, ts: i64, error: Option<i32>)
    where
        T: Copy,
    {
        self.change(place, ts, |queued| queued.tentative = Some((ts, error)));
        self.undecided.insert(place.start);
    }

    /// Completes the bios with a first sector that have a tentative completion, unless that of a newer one may still come.
    fn confirm(&mut self, start: i64, completed: &mut Vec<Completed<T>>)
    where
        T: Copy,
    {
        if !self.undecided.remove(&start) {
            return;
        }
        for (place, bio) in self.at_sector(start) {
            let Some((ts, error)) = bio.tentative else { continue };
            completed.extend(self.change(place, ts, |queued| {
                (queued.left_bytes, queued.unflushed) = (0, 0);
                queued.fail(error);
            }));
        }
    }

    /// Decides that as many completions as the bios with a first sector lack were lost: the tentative ones are those of the newest bios that
    /// were in flight then. The older ones are lost.
    fn decide(&mut self, start: i64, decided: &mut Decided<T>)
    where
        T: Copy,
    {
        if !self.undecided.remove(&start) {
            return;
        }
        let bios = self.at_sector(start);
        let mut completions: Vec<(i64, Option<i32>)> = bios.iter().filter_map(|(_, bio)| bio.tentative).collect();
        let (mut leaving, mut has_begun) = (Vec::new(), false);
        for &(place, bio) in bios.iter().rev().filter(|(_, bio)| !bio.is_complete()) {
            let since = bio.issue.map_or(bio.queued_ts, |issue| issue.ts);
            let own = completions.pop_if(|(ts, _)| since <= *ts);
            has_begun |= own.is_some();
            if has_begun {
                leaving.push((place, own));
            }
        }
        for (place, own) in leaving.into_iter().rev() {
            let (ts, error) = own.unwrap_or_default();
            let left = self.change(place, ts, |queued| {
                queued.left_bytes = 0;
                queued.unflushed = 0;
                queued.fail(error);
            });
            if own.is_some() { &mut decided.completed } else { &mut decided.lost }.extend(left);
        }
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
        self.remap_targets
            .remove(&Place { dev, sector })
            .map_or(Arrival::New, |redirected| Arrival::Remapped(redirected.from))
    }

    pub(crate) fn queue(&mut self, Place { dev, sector }: Place, bytes: u64, flags: BioFlags, ts: i64, bio: T) {
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
            bytes,
            left_bytes: bytes,
            unissued_bytes: bytes,
            fua: flags.contains(BioFlags::FUA),
            is_append: flags.is_zone_append(),
            is_flushed: flags.contains(BioFlags::FUA) || flags.contains(BioFlags::PREFLUSH),
            unflushed: 0,
            issue: None,
            error: None,
            tentative: None,
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
        device.gaps_in(sector, sector.saturating_add(sectors(bytes)), |_, queued| queued.left_bytes > 0)
    }

    /// The bio in flight in a range of sectors that `is_wanted`, with the lowest first sector, and of these the oldest.
    pub(crate) fn find(&self, dev: Dev, sector: i64, bytes: u64, is_wanted: impl Fn(T) -> bool) -> Option<T> {
        let end = sector.saturating_add(sectors(bytes).max(1));
        let bios = self.devices.get(dev)?.oldest_in(sector, end, |_, bio| is_wanted(bio.bio));
        bios.min_by_key(|(place, _)| *place).map(|(_, queued)| queued.bio)
    }

    /// Where an append to a zone was queued that is complete at a sector: at the nearest zone before it, with this size.
    pub(crate) fn append_at(&self, dev: Dev, sector: i64, bytes: u64) -> Option<i64> {
        let by_sector = self.devices.get(dev)?.classes.get(class_of(sectors(bytes)))?;
        let before = by_sector.range(..=sector).rev().take(MAX_COMPARED);
        let is_it = |bio: &&QueuedBio<T>| bio.is_append && bio.bytes == bytes && bio.is_open();
        before.filter(|(_, bios)| bios.iter().take(MAX_COMPARED).find(is_it).is_some()).map(|(&start, _)| start).next()
    }

    /// Announces that a bio will be queued again, at another device and sector.
    pub(crate) fn remap(&mut self, target: Place, redirected: Redirected<T>) {
        if self.remap_targets.insert(target, redirected).is_none() {
            self.remap_order.push_back(target);
            if self.remap_order.len() > MAX_REMAPS
                && let Some(old) = self.remap_order.pop_front()
            {
                self.remap_targets.remove(&old);
            }
        }
    }

    /// Takes back an announcement: the bio was redirected once more before it was queued.
    pub(crate) fn take_back_remap(&mut self, target: Place) {
        self.remap_targets.remove(&target);
    }

    /// Removes and returns what was redirected to a range of sectors. A kernel need not report that it is queued there.
    pub(crate) fn take_redirected(&mut self, dev: Dev, sector: i64, bytes: u64) -> Vec<(Place, Redirected<T>)> {
        if self.remap_targets.is_empty() {
            return Vec::new();
        }
        let end = sector.saturating_add(sectors(bytes));
        let before = self.remap_targets.range(Place { dev, sector: i64::MIN }..Place { dev, sector }).next_back();
        let reaches = |&(from, redirected): &(&Place, &Redirected<T>)| {
            from.sector.saturating_add(sectors(redirected.bytes)) > sector
        };
        let within = self.remap_targets.range(Place { dev, sector }..Place { dev, sector: end });
        let targets: Vec<(Place, Redirected<T>)> =
            before.filter(reaches).into_iter().chain(within).map(|(k, v)| (*k, *v)).collect();
        for (target, _) in &targets {
            self.remap_targets.remove(target);
        }
        targets
    }

    /// Issues a request with the bios in a range of sectors: those that have not been issued. Without them it is issued again. Returns the parts
    /// of the range in which no bio is in flight.
    pub(crate) fn issue(&mut self, dev: Dev, sector: i64, bytes: u64, ts: i64) -> Vec<Gap> {
        let Some(device) = self.devices.get_mut(dev) else { return vec![(sector, bytes)] };
        let sectors = sector..sector.saturating_add(sectors(bytes));
        // Those that wait for a flush have been written.
        let (found, gaps) = device.all_in(&sectors, true, QueuedBio::is_open);
        let groups = || found.chunk_by(|a, b| a.place.start == b.place.start);
        let first_of = |group: &[Candidate]| group.iter().find(|bio| bio.unissued_bytes > 0).copied();
        let last_of = |group: &[Candidate]| {
            let key = |bio: &&Candidate| (bio.issue.map(|issue| issue.last_ts), bio.place.number);
            group.iter().max_by_key(key).copied()
        };
        let new_bytes: u64 = groups().filter_map(first_of).map(|bio| bio.overlap(&sectors)).sum();
        let is_covered = new_bytes >= bytes;
        let issued = groups().filter_map(|group| first_of(group).or_else(|| last_of(group).filter(|_| !is_covered)));
        for bio in issued {
            device.change(bio.place, ts, |queued| {
                queued.unissued_bytes = queued.unissued_bytes.saturating_sub(bio.overlap(&sectors));
                Issue::update(&mut queued.issue, ts, &sectors);
            });
        }
        gaps
    }

    /// Completes a range of sectors. A bio leaves when all of its bytes are complete, and flushed where the device has no FUA, and when it is
    /// certain that the completion is not that of a newer bio at its sector.
    pub(crate) fn complete(&mut self, completion: &Completion) -> Ended<T> {
        let &Completion { dev, sector, bytes, flags, error, ts, .. } = completion;
        if completion.is_bio {
            return self.complete_bio(completion);
        }
        let Some(device) = self.devices.get_mut(dev) else {
            return Ended { done: Vec::new(), gaps: vec![(sector, bytes)], is_known: false };
        };
        let sectors = sector..sector.saturating_add(sectors(bytes));
        let (found, gaps) = device.all_in(&sectors, false, |queued| queued.queued_ts <= ts && queued.is_open());
        let groups = found.chunk_by(|a, b| a.place.start == b.place.start);
        let mut hit: Vec<(&Candidate, bool)> = groups.filter_map(|group| completed_of(group, &sectors)).collect();
        let is_known = !hit.is_empty();
        let is_same = |(bio, _): &(&Candidate, bool)| bio.is_issued_as(&sectors);
        if hit.iter().map(|(bio, _)| bio.overlap(&sectors)).sum::<u64>() > bytes && hit.iter().any(is_same) {
            // It is of a request with some of them. The completion of the others, which it overlaps, was lost, or is yet to come.
            hit.retain(is_same);
        }
        let mut done = Vec::new();
        for (bio, is_ambiguous) in hit {
            if is_ambiguous {
                device.complete_tentatively(bio.place, ts, error);
                continue;
            }
            let left = device.change(bio.place, ts, |queued| {
                queued.left_bytes = queued.left_bytes.saturating_sub(bio.overlap(&sectors));
                queued.fail(error);
                // The block layer has taken the flag off: the device has no FUA, and a flush follows instead.
                queued.unflushed += u32::from(queued.fua && !flags.contains(BioFlags::FUA));
            });
            if left.is_some() {
                device.confirm(bio.place.start, &mut done);
            }
            done.extend(left);
        }
        Ended { done, gaps, is_known }
    }

    /// Completes the oldest bio that begins at a sector: the request that began with it is done, whatever its size. Without FUA in `flags`, a
    /// bio with FUA has been written then, and is complete when the request of the flush after it is done.
    pub(crate) fn complete_at(&mut self, Place { dev, sector }: Place, flags: BioFlags, ts: i64) -> Ended<T> {
        let mut ended = Ended { done: Vec::new(), gaps: Vec::new(), is_known: false };
        let Some(device) = self.devices.get_mut(dev) else { return ended };
        ended.is_known = device.undecided.contains(&sector);
        let is_hit = |start: i64, queued: &QueuedBio<T>| start == sector && queued.queued_ts <= ts;
        let places = device.places_in(sector, sector.saturating_add(1), is_hit);
        let Some(&first) = places.first().filter(|_| !ended.is_known) else { return ended };
        ended.is_known = true;
        let mut places = vec![first];
        let issue =
            device.at_sector(sector).into_iter().find(|(place, _)| *place == first).and_then(|(_, bio)| bio.issue);
        if let Some(Issue { last_sector, last_end, .. }) = issue.filter(|issue| issue.last_sector == sector) {
            // Bios that were merged into the request are done with it.
            let sectors = last_sector..last_end;
            let (found, _) = device.all_in(&sectors, false, |queued| queued.queued_ts <= ts);
            let merged = found.iter().filter(|bio| bio.place.start > sector && bio.is_issued_as(&sectors));
            places.extend(merged.map(|bio| bio.place));
        }
        for place in places {
            ended.done.extend(device.change(place, ts, |queued| {
                let is_first = queued.left_bytes > 0;
                queued.unflushed = u32::from(is_first && queued.fua && !flags.contains(BioFlags::FUA));
                queued.left_bytes = 0;
            }));
        }
        ended
    }

    /// Completes one bio, flushed and whole: its own event says that it has ended. The kernel may have advanced the bio past what it split off,
    /// so only the end has to agree. A bio with the same start counts first, then the oldest.
    fn complete_bio(&mut self, completion: &Completion) -> Ended<T> {
        let &Completion { dev, sector, bytes, error, ts, .. } = completion;
        let mut ended = Ended { done: Vec::new(), gaps: Vec::new(), is_known: false };
        let Some(device) = self.devices.get_mut(dev) else { return ended };
        let sectors = sector..sector.saturating_add(sectors(bytes));
        let is_hit = |queued: &QueuedBio<T>| {
            queued.queued_ts <= ts && queued.end_sector == sectors.end && queued.tentative.is_none()
        };
        let (mut found, _) = device.all_in(&sectors, false, is_hit);
        found.retain(|bio| bio.place.start <= sector);
        let same: Vec<Candidate> = found.iter().filter(|bio| bio.place.start == sector).copied().collect();
        let oldest = || Some((found.iter().min_by_key(|bio| bio.place.number)?, false));
        let Some((bio, is_ambiguous)) = completed_of(&same, &sectors).or_else(oldest) else { return ended };
        ended.is_known = true;
        if is_ambiguous {
            device.complete_tentatively(bio.place, ts, error);
            return ended;
        }
        let left = device.change(bio.place, ts, |queued| {
            (queued.left_bytes, queued.unflushed) = (0, 0);
            queued.fail(error);
        });
        device.confirm(bio.place.start, &mut ended.done);
        ended.done.extend(left);
        ended
    }

    /// Decides which bios at a sector are complete, if a further one is queued there again and again while one completion is missing: the
    /// completions are those of the newest ones, and that of the oldest was lost.
    pub(crate) fn decide(&mut self, dev: Dev, sector: i64) -> Decided<T> {
        let mut decided = Decided::default();
        if let Some(device) = self.devices.get_mut(dev)
            && device.undecided.contains(&sector)
            && device.at_sector(sector).len() >= MAX_UNDECIDED
        {
            device.decide(sector, &mut decided);
        }
        decided
    }

    /// Completes the flush after the write of a bio, or of its part that begins at the sector. Returns the bios that leave, `None` if no bio
    /// waits there.
    pub(crate) fn complete_flush(&mut self, completion: &Completion) -> Option<Vec<Completed<T>>> {
        let &Completion { dev, sector, error, ts, .. } = completion;
        let device = self.devices.get_mut(dev)?;
        // The completion of the data may have been lost.
        let is_lost = |start: i64, queued: &QueuedBio<T>| queued.fua && start == sector && sector != EMPTY_FLUSH_SECTOR;
        let waits = |start: i64, queued: &QueuedBio<T>| queued.unflushed > 0 || is_lost(start, queued);
        let is_hit = |start: i64, queued: &QueuedBio<T>| {
            queued.queued_ts <= ts && queued.tentative.is_none() && waits(start, queued)
        };
        let place = device.oldest_in(sector, sector.saturating_add(1), is_hit).map(|(place, _)| place).min()?;
        let of_sector = device.at_sector(sector);
        let may_be = |(_, queued): &&(Position, QueuedBio<T>)| is_hit(sector, queued) && queued.issue.is_some();
        if sector != EMPTY_FLUSH_SECTOR && of_sector.iter().filter(may_be).count() > 1 {
            // A bio is written again only when it is complete, so one completion was lost.
            device.complete_tentatively(place, ts, error);
            return Some(Vec::new());
        }
        let left = device.change(place, ts, |queued| {
            if queued.unflushed == 0 {
                queued.left_bytes = 0;
            }
            queued.unflushed = queued.unflushed.saturating_sub(1);
            queued.fail(error);
        });
        let mut done = Vec::new();
        if left.is_some() {
            device.confirm(place.start, &mut done);
        }
        done.extend(left);
        Some(done)
    }

    /// Removes a bio that was queued with these values, if it is still there. Nothing completes it any more. A tentative completion is then that
    /// of the next bio at its sector.
    pub(crate) fn forget(&mut self, Place { dev, sector }: Place, bytes: u64, bio: T) -> Decided<T> {
        let mut decided = Decided::default();
        let Some(device) = self.devices.get_mut(dev) else { return decided };
        let DeviceQueue { classes, flushed, .. } = device;
        let Some(by_sector) = classes.get_mut(class_of(sectors(bytes))) else { return decided };
        let Entry::Occupied(mut bios) = by_sector.entry(sector) else { return decided };
        let tentative = bios.get().iter().find(|queued| queued.bio == bio).and_then(|queued| queued.tentative);
        bios.get_mut().retain(|queued| {
            let is_it = queued.bio == bio;
            *flushed -= u64::from(is_it && queued.is_flushed);
            !is_it
        });
        if bios.get().is_empty() {
            bios.remove();
        }
        if !device.undecided.contains(&sector) {
            return decided;
        }
        let is_open = |&(_, queued): &(Position, QueuedBio<T>)| !queued.is_complete() && queued.tentative.is_none();
        let next = device.at_sector(sector).into_iter().find(is_open);
        if let (Some((ts, error)), Some((place, _))) = (tentative, next) {
            device.complete_tentatively(place, ts, error);
        }
        if !device.at_sector(sector).iter().any(is_open) {
            device.decide(sector, &mut decided);
        }
        decided
    }

    /// Removes and returns the bios that were queued before a time.
    pub(crate) fn take_older(&mut self, ts: i64) -> Decided<T> {
        let mut taken = Decided::default();
        self.busy.sort_unstable();
        self.busy.retain(|&place| {
            let device = &mut self.devices[place];
            for start in device.undecided.clone() {
                if device.at_sector(start).iter().any(|(_, bio)| bio.queued_ts < ts) {
                    device.decide(start, &mut taken);
                }
            }
            let mut old = device.take_older(ts);
            old.sort_unstable_by_key(|(start, queued)| (*start, queued.number));
            taken.lost.extend(old.iter().map(|(_, queued)| queued.completed(ts)));
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

    fn place(sector: i64) -> Place {
        Place { dev: DISK, sector }
    }

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
            queue.queue(place(sector), 4096, NONE, 10, bio);
        }
        assert_eq!(bios(queue.complete(&at(0, 3 * 4096, 100))), Some(vec![1, 2, 3]));
        assert_eq!(bios(queue.complete(&at(0, 4096, 100))), None);
        assert_eq!(bios(queue.complete(&at(68, 2048, 100))), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(64, 2048, 100))), Some(vec![4]));
        assert_eq!(queue.find(DISK, 64, 0, |_| true), None);
    }

    /// The bios that are complete, and those that are lost.
    fn ids(decided: &Decided<u32>) -> (Vec<(u32, i64)>, Vec<u32>) {
        let completed = decided.completed.iter().map(|completed| (completed.bio, completed.ts)).collect();
        (completed, decided.lost.iter().map(|lost| lost.bio).collect())
    }

    #[test]
    fn the_older_of_two_bios_at_a_sector_completes_first_and_none_before_it_was_queued() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 512, NONE, 10, 1);
        queue.queue(place(8), 512, NONE, 20, 2);
        queue.queue(place(9), 512, NONE, 200, 3);
        // It may be of either, until the other one comes.
        let ended = queue.complete(&at(8, 1024, 100));
        assert_eq!((numbers(ended.done), ended.gaps, ended.is_known), (vec![], vec![(9, 512)], true));
        let done = queue.complete(&at(8, 512, 110)).done;
        let times: Vec<(u32, i64)> = done.iter().map(|completed| (completed.bio, completed.ts)).collect();
        assert_eq!(times, [(1, 100), (2, 110)]);
        assert_eq!(ids(&queue.take_older(200)), (vec![], vec![]));
        assert_eq!(ids(&queue.take_older(201)), (vec![], vec![3]));
        assert_eq!(ids(&queue.take_older(201)), (vec![], vec![]));
    }

    /// A sector is written again and again, each time when the write before is complete. One completion is lost.
    #[test]
    fn a_lost_completion_is_not_that_of_the_next_bio_at_its_sector() {
        for writes in [2, 5] {
            let mut queue = BlockQueue::new();
            let mut all = Decided::default();
            for bio in 1..=writes {
                let ts = 1000 * i64::from(bio);
                let decided = queue.decide(DISK, 8);
                all.completed.extend(decided.completed);
                all.lost.extend(decided.lost);
                queue.queue(place(8), 4096, NONE, ts, bio);
                queue.issue(DISK, 8, 4096, ts + 1);
                if bio > 1 {
                    all.completed.extend(queue.complete(&at(8, 4096, ts + 100)).done);
                }
            }
            let decided = queue.take_older(i64::MAX);
            all.completed.extend(decided.completed);
            all.lost.extend(decided.lost);
            let own = (2..=writes).map(|bio| (bio, 1000 * i64::from(bio) + 100)).collect();
            assert_eq!(ids(&all), (own, vec![1]));
            let issues = all.completed.iter().map(|bio| bio.issue.map(|issue| (issue.ts, issue.requeues)));
            let own = (2..=writes).map(|bio| Some((1000 * i64::from(bio) + 1, 0)));
            assert!(issues.eq(own));
            assert_eq!(all.lost[0].issue.map(|issue| issue.ts), Some(1001));
        }
    }

    /// Direct I/O may have several writes to one sector in flight.
    #[test]
    fn a_bio_that_is_queued_before_another_one_is_complete_takes_no_completion_of_it() {
        let mut queue = BlockQueue::new();
        for (bio, ts) in [(1, 10), (2, 20)] {
            queue.queue(place(8), 4096, NONE, ts, bio);
            queue.issue(DISK, 8, 4096, ts + 1);
        }
        assert_eq!(bios(queue.complete(&at(8, 4096, 30))), Some(vec![]));
        assert_eq!(ids(&queue.decide(DISK, 8)), (vec![], vec![]));
        queue.queue(place(8), 4096, NONE, 40, 3);
        queue.issue(DISK, 8, 4096, 41);
        assert_eq!(bios(queue.complete(&at(8, 4096, 50))), Some(vec![]));
        let done = queue.complete(&at(8, 4096, 60)).done;
        let times: Vec<(u32, i64)> = done.iter().map(|completed| (completed.bio, completed.ts)).collect();
        assert_eq!(times, [(1, 30), (2, 50), (3, 60)]);
    }

    #[test]
    fn a_bio_that_the_driver_has_not_got_is_not_complete() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, NONE, 10, 1);
        queue.issue(DISK, 8, 4096, 11);
        queue.queue(place(8), 4096, NONE, 20, 2);
        assert_eq!(bios(queue.complete(&at(8, 4096, 30))), Some(vec![1]));
    }

    #[test]
    fn three_bios_at_a_sector_complete_in_their_order() {
        let mut queue = BlockQueue::new();
        for bio in 1..=3 {
            queue.queue(place(8), 4096, NONE, 10 + i64::from(bio), bio);
            queue.issue(DISK, 8, 4096, 20 + i64::from(bio));
        }
        assert_eq!(bios(queue.complete(&at(8, 4096, 100))), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(8, 4096, 110))), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(8, 4096, 120))), Some(vec![1, 2, 3]));
        assert_eq!(ids(&queue.take_older(i64::MAX)), (vec![], vec![]));
    }

    #[test]
    fn a_bio_that_overlaps_a_request_is_not_complete_with_it() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, NONE, 10, 1);
        queue.issue(DISK, 8, 4096, 11);
        // The completion is lost, and the file system writes more there.
        queue.queue(place(0), 8192, NONE, 1000, 2);
        queue.issue(DISK, 0, 8192, 1001);
        assert_eq!(bios(queue.complete(&at(0, 8192, 1100))), Some(vec![2]));
        let decided = queue.take_older(i64::MAX);
        assert_eq!(ids(&decided), (vec![], vec![1]));
        assert_eq!(decided.lost[0].issue.map(|issue| (issue.ts, issue.requeues, issue.parts)), Some((11, 0, 1)));
    }

    #[test]
    fn the_completion_of_a_bio_that_is_given_up_is_that_of_the_next_one() {
        let mut queue = BlockQueue::new();
        for bio in 1..=2 {
            queue.queue(place(8), 4096, NONE, 10, bio);
        }
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        assert_eq!(ids(&queue.forget(place(8), 4096, 1)), (vec![(2, 20)], vec![]));
        assert_eq!(ids(&queue.take_older(i64::MAX)), (vec![], vec![]));
        for bio in 3..=4 {
            queue.queue(place(8), 4096, NONE, 30, bio);
        }
        assert_eq!(bios(queue.complete(&at(8, 4096, 40))), Some(vec![]));
        assert_eq!(ids(&queue.forget(place(8), 4096, 4)), (vec![(3, 40)], vec![]));
    }

    #[test]
    fn a_bio_that_is_given_up_is_not_completed() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, NONE, 10, 1);
        queue.queue(place(8), 4096, NONE, 20, 2);
        queue.forget(place(8), 512, 1);
        queue.forget(place(8), 4096, 1);
        queue.forget(place(8), 4096, 1);
        assert_eq!(bios(queue.complete(&at(8, 4096, 100))), Some(vec![2]));
        queue.queue(place(8), 4096, NONE, 110, 3);
        queue.forget(place(8), 4096, 3);
        assert_eq!(ids(&queue.take_older(200)), (vec![], vec![]));
    }

    #[test]
    fn fua_on_a_device_without_it_ends_with_the_flush() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, BioFlags::FUA, 10, 1);
        queue.queue(place(16), 4096, BioFlags::FUA, 10, 2);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        // The device has FUA.
        assert_eq!(bios(queue.complete(&Completion { flags: BioFlags::FUA, ..at(16, 4096, 20) })), Some(vec![2]));
        // A flush without data, and one that was lost before it.
        assert_eq!(queue.complete_flush(&at(0, 0, 25)), None);
        assert_eq!(queue.complete_flush(&at(16, 0, 25)), None);
        // The same sector is written again.
        queue.queue(place(8), 4096, NONE, 26, 3);
        assert_eq!(bios(queue.complete(&at(8, 4096, 27))), Some(vec![3]));
        let failed = Completion { error: Some(-5), ..at(8, 0, 30) };
        let completed = Completed { bio: 1, issue: None, error: Some(-5), ts: 30 };
        assert_eq!(queue.complete_flush(&failed), Some(vec![completed]));
        assert_eq!(queue.find(DISK, 8, 0, |_| true), None);
    }

    #[test]
    fn each_part_of_a_split_fua_bio_waits_for_its_flush() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 8192, BioFlags::FUA, 10, 1);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(8, 0, 25)), Some(vec![]));
        assert_eq!(bios(queue.complete(&at(16, 4096, 30))), Some(vec![]));
        assert_eq!(queue.complete_flush(&at(16, 0, 40)).map(numbers), Some(vec![1]));
    }

    #[test]
    fn the_flush_after_the_next_write_of_a_sector_is_not_that_of_the_one_before() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, BioFlags::FUA, 10, 1);
        queue.issue(DISK, 8, 4096, 11);
        assert_eq!(bios(queue.complete(&at(8, 4096, 20))), Some(vec![]));
        // Its flush ends, which is not in the log. The end of the next write's data is not either.
        queue.queue(place(8), 4096, BioFlags::FUA, 100, 2);
        queue.issue(DISK, 8, 4096, 101);
        assert_eq!(queue.complete_flush(&at(8, 0, 130)), Some(vec![]));
        // A sector is written again only once the bio before is complete. So the older of these two is complete, though no event says so.
        queue.queue(place(8), 4096, BioFlags::FUA, 200, 3);
        queue.queue(place(8), 4096, BioFlags::FUA, 300, 4);
        assert_eq!(ids(&queue.decide(DISK, 8)), (vec![(2, 130)], vec![1]));
    }

    #[test]
    fn a_bio_is_issued_with_its_first_part_and_again_after_a_requeue() {
        let mut queue = BlockQueue::new();
        queue.queue(place(0), 4096, NONE, 10, 1);
        queue.queue(place(8), 8192, NONE, 10, 2);
        // Merged, and the driver does not take the request at once.
        queue.issue(DISK, 0, 8192, 15);
        queue.issue(DISK, 0, 8192, 20);
        queue.issue(DISK, 16, 4096, 25);
        let failed = Completion { error: Some(-28), ..at(0, 8192, 30) };
        let issue =
            Issue { ts: 20, first_ts: 15, requeues: 1, parts: 1, sector: 0, last_sector: 0, last_end: 16, last_ts: 20 };
        let first = Completed { bio: 1, issue: Some(issue), error: Some(-28), ts: 30 };
        assert_eq!(queue.complete(&failed).done, [first]);
        let second = Completion { error: Some(0), ..at(16, 4096, 40) };
        let issue = Issue { parts: 2, last_sector: 16, last_end: 24, last_ts: 25, ..issue };
        assert_eq!(queue.complete(&second).done, [Completed { bio: 2, issue: Some(issue), error: Some(-28), ts: 40 }]);
    }

    #[test]
    fn what_no_bio_covers_is_a_gap() {
        let mut queue = BlockQueue::new();
        assert_eq!(queue.gaps(DISK, 8, 4096), [(8, 4096)]);
        queue.queue(place(8), 4096, NONE, 10, 1);
        queue.queue(place(32), 4096, NONE, 10, 2);
        assert_eq!(queue.gaps(DISK, 8, 4096), []);
        assert_eq!(queue.issue(DISK, 0, 48 * 512, 20), [(0, 4096), (16, 8192), (40, 4096)]);
        let ended = queue.complete(&at(8, 8192, 30));
        assert_eq!((numbers(ended.done), ended.gaps, ended.is_known), (vec![1], vec![(16, 4096)], true));
        // A longer bio at the same sector covers what the older one does not.
        queue.queue(place(32), 8192, NONE, 40, 3);
        assert_eq!(queue.gaps(DISK, 32, 8192), []);
    }

    #[test]
    fn a_bio_with_a_flush_counts_until_it_leaves() {
        let mut queue = BlockQueue::new();
        queue.queue(place(8), 4096, BioFlags::PREFLUSH, 10, 1);
        queue.queue(place(16), 4096, BioFlags::FUA, 10, 2);
        queue.queue(place(24), 4096, NONE, 10, 3);
        queue.complete(&at(8, 4096, 20));
        assert!(queue.is_flushing(DISK));
        queue.forget(place(16), 4096, 2);
        assert!(!queue.is_flushing(DISK));
        queue.queue(place(32), 4096, BioFlags::FUA, 30, 4);
        queue.take_older(40);
        assert!(!queue.is_flushing(DISK));
    }

    #[test]
    fn a_remap_announces_its_target_once() {
        let mut queue: BlockQueue<u32> = BlockQueue::new();
        let from = Dev(253 << 20);
        let redirected = |bytes| Redirected { from, bytes, flags: NONE, whole: Some((7, 1)) };
        queue.remap(place(8), redirected(4096));
        assert_eq!(queue.arrival(DISK, 8), Arrival::Remapped(from));
        assert_eq!(queue.arrival(DISK, 8), Arrival::New);
        // Not reported there, it is found when a request for a part of it comes.
        queue.remap(place(8), redirected(8192));
        assert_eq!(queue.take_redirected(DISK, 24, 4096), []);
        assert_eq!(queue.take_redirected(DISK, 16, 4096), [(place(8), redirected(8192))]);
        assert_eq!(queue.arrival(DISK, 8), Arrival::New);
    }
}
