//! Bios: folios fill them, a submit sends them to the block layer, a completion ends them.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut, Range};

use super::files::PagesOf;
use super::lost_bios::CLOCK_SKEW_NS;
use super::phases::BioTimes;
use super::slots::{BioSlot, RequestSlot};
use super::{Map, Out, Pairer};
use crate::block::queue::{self, Issue};
use crate::collections::by_device::ByDevice;
use crate::dedup::LogSet;
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::place::Place;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR};
use crate::location::Location;
use crate::losses::Reason;
use crate::rows::{Bio, Confidence, Extent, Ranges};

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(super) struct OpenBio {
    pub(super) row: Bio,
    /// Where its submit is in the inputs, else its first event.
    pub(super) location: Location,
    /// The log that reports it.
    pub(super) log: usize,
    pub(super) ranges: Ranges,
    /// `RequestSlot::NONE` for background writeback.
    pub(super) request: RequestSlot,
    /// Its index in `open_bios` of that request.
    pub(super) place: u32,
    /// Its neighbours at its device and sector, if it is found by these.
    at_sector: Option<Neighbours>,
    /// A completion that came while the bio was being filled. It is its own if the submit was lost.
    pub(super) early_complete: Option<EarlyComplete>,
    pub(super) issue: Option<Issue>,
    /// Probes report it.
    pub(super) by_probe: bool,
    /// The threads that have filled it, if probes report it and it is of no request.
    pub(super) fillers: Vec<u32>,
    /// The file of its first folio, if probes report it.
    pub(super) file: Option<(Dev, u64)>,
    /// The file of all its folios.
    pub(super) pages: PagesOf,
    /// A device mapper has redirected it. It may redirect copies too, such as those of a mirror.
    is_redirected: bool,
    /// How often it will still complete in part, as far as is known.
    pub(super) parts_left: u32,
    /// It is written to several places, and no submit to another one is in the log.
    pub(super) lacks_copies: bool,
    /// It counts as in flight on its device.
    is_counted: bool,
    /// Where the block layer's queue has it, if that is not where it was submitted.
    pub(super) queued_at: Option<Place>,
    /// It began before the log, or may have.
    pub(super) began_before: bool,
    /// The block layer has queued it, before any submit of it.
    is_queued: bool,
    /// A line that said something of it, or of whose it is, may be torn.
    pub(super) is_torn: bool,
    /// That line may have been a folio of it, and nothing else says its size.
    pub(super) lacks_folios: bool,
    /// The same bio as that of another request, which has other folios in it, and its `bio_id`.
    pub(super) other_share: Option<(BioSlot, u64)>,
    /// Probes report it, and the patch would too: where it does, its own submit was lost, or is before the beginning of the log.
    pub(super) is_of_patch: bool,
    /// Nothing of it is of a sync, whatever its thread is in.
    pub(super) is_background: bool,
    /// A flusher thread has submitted it, perhaps for a sync of a whole file system.
    pub(super) is_doubtful: bool,
    /// Bytes that other requests had added at its address when it was begun, and that were not submitted.
    pub(super) foreign_bytes: u64,
    /// Its size, with the shares of other requests, if probes report it.
    pub(super) size: u64,
    /// The block layer has completed all of it, with this error. Its own completion comes after that, unless it is lost.
    done: Option<(i64, Option<i32>)>,
}

/// A completion that may belong to a bio whose submit was lost.
#[derive(Clone, Copy)]
pub(super) struct EarlyComplete {
    pub(super) ts: i64,
    pub(super) location: Location,
    pub(super) error: Option<i32>,
}

impl OpenBio {
    pub(super) fn is_redirected(&self) -> bool {
        self.is_redirected
    }

    /// Makes it a bio of background writeback.
    pub(super) fn detach(&mut self) {
        self.request = RequestSlot::NONE;
        self.row.sync_id = None;
        if !self.is_torn {
            self.row.confidence = Confidence::Exact;
            self.row.extent.is_partial = false;
        }
    }
}

/// The bios in flight at the same device and sector that were submitted before and after a bio; `BioSlot::NONE` without one.
#[derive(Clone, Copy)]
struct Neighbours {
    older: BioSlot,
    newer: BioSlot,
}

/// The bios in flight at one device and sector, as a list through `Neighbours`.
#[derive(Clone, Copy)]
struct AtSector {
    oldest: BioSlot,
    newest: BioSlot,
}

/// What is in flight on a device, as far as is known.
#[derive(Default)]
struct Load {
    bios: u32,
    bytes: u64,
    /// Number of completions so far.
    completions: u64,
    /// The bios that count, in the order of their submits, and some that have completed since.
    submits: VecDeque<Submit>,
}

struct Submit {
    slot: BioSlot,
    bio_id: u64,
    /// After so many completions, its own one is taken for lost.
    lost_after: u64,
}

/// Bios at one sector among which the one that is issued is searched.
const MAX_COMPARED: u32 = 32;
/// Places on the devices below that are kept.
const MAX_BELOW: usize = 65_536;
/// How many completions may overtake a bio, in addition to those of the bios in flight at its submit, until its own one is taken for lost.
const MAX_OVERTAKEN: u64 = 16;

/// The bios that are being filled or in flight.
pub(super) struct Bios {
    slab: Vec<OpenBio>,
    free: Vec<BioSlot>,
    /// By address: bios to which folios are being added.
    filling: Map<u64, BioSlot>,
    /// By address: bios that were submitted.
    in_flight: Map<u64, BioSlot>,
    /// By device and sector: the same, for completions without an address.
    in_flight_by_sector: Map<Place, AtSector>,
    loads: ByDevice<Load>,
    next_bio_id: u64,
    /// By device and sector: where a partition or a device mapper has redirected a bio, and its `bio_id`.
    below: Map<Place, (BioSlot, u64)>,
    /// The lowest and the highest address of a bio.
    addresses: (u64, u64),
}

impl Index<BioSlot> for Bios {
    type Output = OpenBio;

    fn index(&self, slot: BioSlot) -> &OpenBio {
        &self.slab[slot.index()]
    }
}

impl IndexMut<BioSlot> for Bios {
    fn index_mut(&mut self, slot: BioSlot) -> &mut OpenBio {
        &mut self.slab[slot.index()]
    }
}

impl Bios {
    pub(super) fn new() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            filling: Map::default(),
            in_flight: Map::default(),
            in_flight_by_sector: Map::default(),
            loads: ByDevice::default(),
            next_bio_id: 1,
            below: Map::default(),
            addresses: (u64::MAX, 0),
        }
    }

    pub(super) fn take_bio_id(&mut self) -> u64 {
        let id = self.next_bio_id;
        self.next_bio_id += 1;
        id
    }

    /// The `bio_id` of the next bio.
    pub(super) fn next_bio_id(&self) -> u64 {
        self.next_bio_id
    }

    /// Whether a bio may have this address, by those that have been seen: the kernel's memory has the same upper half.
    pub(super) fn may_be_address(&self, address: u64) -> bool {
        [self.addresses.0, self.addresses.1].iter().any(|seen| seen >> 32 == address >> 32)
    }

    /// Whether the log has named a bio by its address, other than by its completion.
    pub(super) fn have_addresses(&self) -> bool {
        self.addresses.0 <= self.addresses.1
    }

    fn store(&mut self, row: Bio, location: Location, log: usize, request: RequestSlot) -> BioSlot {
        if row.address != 0 {
            self.addresses = (self.addresses.0.min(row.address), self.addresses.1.max(row.address));
        }
        if let Some(slot) = self.free.pop() {
            let bio = &mut self[slot];
            bio.row = row;
            bio.location = location;
            bio.log = log;
            bio.ranges.clear();
            bio.request = request;
            bio.early_complete = None;
            bio.issue = None;
            (bio.by_probe, bio.file, bio.parts_left, bio.other_share) = (false, None, 0, None);
            (bio.foreign_bytes, bio.size, bio.done) = (0, 0, None);
            (bio.is_counted, bio.is_redirected, bio.is_queued) = (false, false, false);
            (bio.is_torn, bio.lacks_folios) = (false, false);
            (bio.queued_at, bio.began_before) = (None, false);
            (bio.is_background, bio.is_doubtful, bio.is_of_patch, bio.lacks_copies) = (false, false, false, false);
            bio.pages = PagesOf::Nothing;
            bio.fillers.clear();
            return slot;
        }
        self.slab.push(OpenBio {
            row,
            location,
            log,
            ranges: Ranges::default(),
            request,
            place: 0,
            at_sector: None,
            early_complete: None,
            issue: None,
            by_probe: false,
            fillers: Vec::new(),
            file: None,
            pages: PagesOf::Nothing,
            parts_left: 0,
            lacks_copies: false,
            is_counted: false,
            is_redirected: false,
            is_queued: false,
            is_torn: false,
            lacks_folios: false,
            queued_at: None,
            began_before: false,
            other_share: None,
            is_background: false,
            is_doubtful: false,
            is_of_patch: false,
            foreign_bytes: 0,
            size: 0,
            done: None,
        });
        BioSlot::at(self.slab.len() - 1)
    }

    /// The bio that is being filled at an address.
    pub(super) fn filling_at(&self, address: u64) -> Option<BioSlot> {
        self.filling.get(&address).copied()
    }

    /// The bio that is being filled or in flight at an address.
    pub(super) fn last_at(&self, address: u64) -> Option<BioSlot> {
        self.filling.get(&address).or_else(|| self.in_flight.get(&address)).copied()
    }

    /// The bio that was submitted from an address and is in flight.
    pub(super) fn in_flight_at(&self, address: u64) -> Option<BioSlot> {
        self.in_flight.get(&address).copied()
    }

    /// Whether a bio that was submitted to this device and sector is in flight.
    pub(super) fn is_in_flight_at(&self, target: Place) -> bool {
        self.in_flight_by_sector.contains_key(&target)
    }

    /// Returns the bio in flight that was submitted first to this device and sector.
    pub(super) fn oldest_in_flight_at(&self, target: Place) -> Option<BioSlot> {
        self.in_flight_by_sector.get(&target).map(|at| at.oldest)
    }

    /// Notes the flags of the bio that was submitted last to a device and sector, if its own event has none.
    pub(super) fn note_flags(&mut self, target: Place, flags: BioFlags) {
        if let Some(at) = self.in_flight_by_sector.get(&target) {
            self.slab[at.newest.index()].row.flags.get_or_insert(flags);
        }
    }

    /// Issues a request with the bios of these logs that were submitted to these sectors.
    pub(super) fn issue(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, logs: LogSet) {
        self.for_each_at(dev, sectors.clone(), |slab, at| {
            // The oldest one that was not issued yet. Without one, the newest one is issued again.
            let mut slot = at.newest;
            for _ in 0..MAX_COMPARED {
                let older = slab[slot.index()].at_sector.map_or(BioSlot::NONE, |neighbours| neighbours.older);
                if older.is_none() || slab[older.index()].issue.is_some() {
                    break;
                }
                slot = older;
            }
            let bio = &mut slab[slot.index()];
            // A redirected bio is issued elsewhere. One that the block layer has completed only waits for its own end, which may be lost.
            if !bio.is_redirected && bio.done.is_none() && logs.contains(bio.log) {
                Issue::update(&mut bio.issue, ts, &sectors);
            }
        });
    }

    /// The block layer has completed these sectors. Notes it of each bio that is complete by that. The end of one that flushes is that of its
    /// flush, which comes later.
    pub(super) fn note_done(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, error: Option<i32>) {
        self.for_each_at(dev, sectors.clone(), |slab, at| {
            // Where several bios are at a sector, it is not known which one it was.
            let bio = &mut slab[at.oldest.index()];
            let is_alone = at.oldest == at.newest && !bio.is_redirected;
            let flushes = |flags: BioFlags| flags.contains(BioFlags::FUA) || flags.contains(BioFlags::PREFLUSH);
            let is_plain = bio.row.flags.is_some_and(|flags| !flushes(flags));
            let size = if bio.size > 0 { bio.size } else { bio.row.extent.bytes };
            let is_whole = size > 0 && bio.row.sector.saturating_add(queue::sectors(size)) <= sectors.end;
            if is_alone && is_plain && is_whole && bio.issue.is_some() {
                bio.done.get_or_insert((ts, error));
            }
        });
    }

    /// The bios in flight that were submitted to these sectors.
    fn for_each_at(&mut self, dev: Dev, sectors: Range<i64>, mut f: impl FnMut(&mut [OpenBio], &AtSector)) {
        let Self { in_flight_by_sector: by_sector, slab, .. } = self;
        // A recorder that loses completions leaves many bios in flight.
        if sectors.end.saturating_sub(sectors.start).unsigned_abs() < by_sector.len() as u64 {
            sectors.filter_map(|sector| by_sector.get(&Place { dev, sector })).for_each(|at| f(slab, at));
        } else {
            let is_in_range = |&Place { dev: of, sector }: &Place| of == dev && sectors.contains(&sector);
            by_sector.iter().filter(|(target, _)| is_in_range(target)).for_each(|(_, at)| f(slab, at));
        }
    }

    /// Redirects a bio in flight from a place on a device to one on the device below, where a request is then issued for it. `submitted`: the
    /// bio that was submitted to that place, unless another one was redirected there. If it has copies, only the first one counts.
    /// Returns whether a bio was there.
    pub(super) fn redirect(&mut self, from: Place, to: Place, submitted: Option<BioSlot>) -> bool {
        let redirected = self.below.remove(&from).filter(|&(slot, bio_id)| is_open(&self[slot], bio_id));
        let is_first = |slot: &BioSlot| !self[*slot].is_redirected;
        let Some(slot) = redirected.map(|(slot, _)| slot).or(submitted.filter(is_first)) else { return false };
        self[slot].is_redirected = true;
        let row = &mut self[slot].row;
        row.below = if row.dev == to.dev { Dev::UNKNOWN } else { to.dev };
        if self.below.len() >= MAX_BELOW {
            let slab = &self.slab;
            self.below.retain(|_, &mut (slot, bio_id)| is_open(&slab[slot.index()], bio_id));
            if self.below.len() >= MAX_BELOW {
                self.below.clear();
            }
        }
        let bio_id = self[slot].row.bio_id;
        self.below.insert(to, (slot, bio_id));
        true
    }

    /// The bio that a thread submitted to this device and sector last, if it is neither issued nor redirected.
    pub(super) fn just_submitted_at(&self, target: Place, tid: u32) -> Option<BioSlot> {
        let slot = self.in_flight_by_sector.get(&target)?.newest;
        let bio = &self[slot];
        (bio.row.tid == tid && bio.issue.is_none() && !bio.is_redirected).then_some(slot)
    }

    /// Issues a request with the bios of these logs that were redirected to these sectors.
    pub(super) fn issue_below(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, logs: LogSet) {
        let Self { below, slab, .. } = self;
        let mut update = |&(slot, bio_id): &(BioSlot, u64)| {
            let bio = &mut slab[slot.index()];
            if is_open(bio, bio_id) && logs.contains(bio.log) {
                Issue::update(&mut bio.issue, ts, &sectors);
            }
        };
        if sectors.end.saturating_sub(sectors.start).unsigned_abs() < below.len() as u64 {
            sectors.clone().filter_map(|sector| below.get(&Place { dev, sector })).for_each(update);
        } else {
            let is_in_range = |&Place { dev: of, sector }: &Place| of == dev && sectors.contains(&sector);
            below.iter().filter(|(at, _)| is_in_range(at)).for_each(|(_, at)| update(at));
        }
    }

    /// Removes a bio from the maps that find it by its address or its sector.
    fn unlink(&mut self, slot: BioSlot) {
        let (address, place) = (self[slot].row.address, self[slot].row.place());
        for map in [&mut self.filling, &mut self.in_flight] {
            if map.get(&address) == Some(&slot) {
                map.remove(&address);
            }
        }
        self.unlink_from_sector(slot, place);
    }

    /// Makes a bio the newest one at a device and sector.
    fn link_at_sector(&mut self, slot: BioSlot, target: Place) {
        let at = self.in_flight_by_sector.entry(target).or_insert(AtSector { oldest: slot, newest: BioSlot::NONE });
        let older = std::mem::replace(&mut at.newest, slot);
        self[slot].at_sector = Some(Neighbours { older, newer: BioSlot::NONE });
        if older.is_some()
            && let Some(neighbours) = &mut self[older].at_sector
        {
            neighbours.newer = slot;
        }
    }

    fn unlink_from_sector(&mut self, slot: BioSlot, target: Place) {
        let Some(Neighbours { older, newer }) = self[slot].at_sector.take() else { return };
        if older.is_none() && newer.is_none() {
            self.in_flight_by_sector.remove(&target);
            return;
        }
        for (neighbour, is_older) in [(older, true), (newer, false)] {
            if neighbour.is_some()
                && let Some(neighbours) = &mut self[neighbour].at_sector
            {
                *(if is_older { &mut neighbours.newer } else { &mut neighbours.older }) =
                    if is_older { newer } else { older };
            }
        }
        if let Some(at) = self.in_flight_by_sector.get_mut(&target) {
            at.oldest = if older.is_none() { newer } else { at.oldest };
            at.newest = if newer.is_none() { older } else { at.newest };
        }
    }

    /// Removes and returns the next share of a bio, if it is still open.
    fn take_other_share(&mut self, slot: BioSlot) -> Option<BioSlot> {
        let (other, bio_id) = self[slot].other_share.take()?;
        (self[other].by_probe && self[other].row.bio_id == bio_id).then_some(other)
    }

    /// Removes all bios from the maps and returns them.
    pub(super) fn take_all(&mut self) -> Vec<BioSlot> {
        let mut slots: Vec<BioSlot> = self.filling.drain().map(|(_, slot)| slot).collect();
        slots.extend(self.in_flight.drain().map(|(_, slot)| slot));
        // All of these are found by their address too.
        self.in_flight_by_sector.clear();
        for &slot in &slots {
            self[slot].at_sector = None;
        }
        slots
    }

    /// Adds a bio to the load of its device, at its submit.
    pub(super) fn add_load(&mut self, slot: BioSlot) {
        let Bio { dev, bio_id, .. } = self[slot].row;
        let bytes = self[slot].row.moved_bytes();
        let load = self.loads.get_or_default(dev);
        load.bios += 1;
        load.bytes += bytes;
        let lost_after = load.completions + u64::from(load.bios) + MAX_OVERTAKEN;
        load.submits.push_back(Submit { slot, bio_id, lost_after });
        self[slot].row.in_flight_at_submit = (load.bios, load.bytes);
        self[slot].is_counted = true;
    }

    /// Removes a bio from the load of its device: at its completion, or when that is taken for lost.
    pub(super) fn remove_load(&mut self, slot: BioSlot) {
        let dev = self[slot].row.dev;
        let bytes = self[slot].row.moved_bytes();
        let is_counted = std::mem::take(&mut self[slot].is_counted);
        let load = self.loads.get_or_default(dev);
        if is_counted {
            load.bios -= 1;
            load.bytes -= bytes;
        }
        self[slot].row.in_flight_at_complete = (load.bios, load.bytes);
    }

    /// Removes the bios that too many completions have overtaken from the load of a device, at a completion.
    pub(super) fn remove_overtaken(&mut self, dev: Dev) {
        let Self { loads, slab, .. } = self;
        let load = loads.get_or_default(dev);
        load.completions += 1;
        while let Some(oldest) = load.submits.front() {
            let bio = &mut slab[oldest.slot.index()];
            if bio.is_counted && bio.row.bio_id == oldest.bio_id {
                if load.completions < oldest.lost_after {
                    return;
                }
                bio.is_counted = false;
                load.bios -= 1;
                load.bytes -= bio.row.extent.bytes;
            }
            load.submits.pop_front();
        }
    }
}

impl Pairer {
    pub(super) fn add_folio(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        (offset, len): (u64, u64),
        (dev, ino): (Dev, u64),
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        let mut found = self.bios.filling.get(&address).copied();
        let mut foreign_bytes = 0;
        if let Some(other) = found {
            let is_own = self.is_filled_by(other, task, id);
            if !is_own && self.hold_back(e, id, address) {
                return Ok(());
            }
            // A completion without a submit has ended it, so this folio is of the next bio at its address.
            if self.bios[other].early_complete.is_some() || !is_own {
                if !is_own {
                    foreign_bytes = self.bios[other].row.extent.bytes + self.bios[other].foreign_bytes;
                }
                self.bios.filling.remove(&address);
                self.give_up_bio(other, out)?;
                found = None;
            }
        }
        let slot = if let Some(slot) = found {
            slot
        } else if self.hold_back(e, id, address) {
            return Ok(());
        } else {
            // The kernel frees a bio before it uses the address again, so the completion of the earlier bio was lost.
            if let Some(before) = self.bios.in_flight.remove(&address) {
                self.give_up_bio(before, out)?;
            }
            let slot = self.open_bio(e, id, address, false, out)?;
            self.bios[slot].foreign_bytes = foreign_bytes;
            self.bios.filling.insert(address, slot);
            slot
        };
        if self.torn_lines.have_been {
            self.tear_next_bio(task, slot);
        }
        let bio_id = self.bios[slot].row.bio_id;
        if let Some(task) = self.tasks.get_mut(task) {
            task.last_filled = Some((slot, bio_id));
        }
        let bio = &mut self.bios[slot];
        bio.row.extent.bytes += len;
        bio.row.extent.folios += 1;
        bio.ranges.add(offset, len);
        bio.pages.add(dev, ino);
        if bio.request.is_some() {
            let open = &mut self.requests[bio.request];
            open.row.extent.bytes += len;
            open.row.extent.folios += 1;
            open.extend_to(e.ts);
            open.ranges.add(offset, len);
        }
        Ok(())
    }

    /// Whether a folio or a submit with this task and id belongs to a bio that is being filled.
    fn is_filled_by(&self, slot: BioSlot, task: u32, id: u64) -> bool {
        let bio = &self.bios[slot];
        bio.row.id == id
            && (bio.request.is_none()
                || self.requests[bio.request].task == task
                || self.find_own_request(task, id).is_none())
    }

    /// Whether a thread has filled a bio of this size last, and has not submitted it as far as the file system's events say.
    pub(super) fn is_filled_without_submit(&mut self, task: u32, bytes: u64) -> bool {
        let Some((slot, bio_id)) = self.tasks.get_mut(task).and_then(|task| task.last_filled) else { return false };
        let is_filling = self.bios.filling.get(&self.bios[slot].row.address) == Some(&slot);
        let bio = &mut self.bios[slot];
        let is_it = is_filling && bio.row.bio_id == bio_id && bio.row.extent.bytes == bytes;
        is_it && !std::mem::replace(&mut bio.is_queued, true)
    }

    /// Opens a bio of the request with this id. An id of background writeback has no request. `is_background`: the source says that it is
    /// background writeback.
    fn open_bio(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        is_background: bool,
        out: &mut Out<'_>,
    ) -> Result<BioSlot> {
        if id == 0 {
            let request = if is_background { RequestSlot::NONE } else { self.request_of_thread(e) };
            let bio = self.open_bio_of(e, id, address, request);
            if request.is_some() {
                self.infer(request, Some(bio));
            }
            return Ok(bio);
        }
        let request = if self.is_background(id) {
            RequestSlot::NONE
        } else {
            // An event that was held back is not of a request that began after it.
            let existed =
                |&slot: &RequestSlot| self.replayed.is_none_or(|at| self.requests[slot].row.first_event <= at);
            match self.find_request(self.tasks.id_of(e), id).filter(existed) {
                Some(slot) => slot,
                None => self.open_orphan(e, id, out)?,
            }
        };
        Ok(self.open_bio_of(e, id, address, request))
    }

    /// Opens a bio of a request, or of background writeback with `RequestSlot::NONE`.
    pub(super) fn open_bio_of(&mut self, e: &Event, id: u64, address: u64, request: RequestSlot) -> BioSlot {
        let bio_id = self.bios.take_bio_id();
        let mut sync_id = None;
        let mut confidence = Confidence::Exact;
        let mut is_partial = false;
        if request.is_some() {
            let open = &mut self.requests[request];
            if open.by_thread {
                confidence = Confidence::Inferred;
                open.row.confidence = open.row.confidence.max(confidence);
            }
            // Folios may have been added to it before the log began.
            is_partial = open.begins_with_bio && open.row.first_submit.is_none();
            open.row.bios += 1;
            open.bio_ids.push(bio_id);
            sync_id = Some(open.row.sync_id);
        }
        let row = Bio {
            sync_id,
            address,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            extent: Extent { is_partial, ..Extent::default() },
            confidence,
            ..Bio::new(bio_id, id, e.ts)
        };
        let slot = self.bios.store(row, self.location(), self.provenance.log, request);
        if request.is_some() {
            let open_bios = &mut self.requests[request].open_bios;
            self.bios[slot].place = open_bios.len() as u32;
            open_bios.push(slot);
        }
        if self.torn_lines.have_been {
            self.tear_new_bio(self.tasks.id_of(e), id, address, slot);
        }
        slot
    }

    pub(super) fn submit(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        place: Place,
        (bytes, flags): (u64, Option<BioFlags>),
        out: &mut Out<'_>,
    ) -> Result<()> {
        // A submit that was held back is of no bio that was begun after it.
        let had_begun = |&slot: &BioSlot| self.replayed.is_none_or(|at| self.bios[slot].row.first_event <= at);
        let filling = self.bios.filling.get(&address).copied().filter(had_begun);
        if filling.is_some() {
            self.bios.filling.remove(&address);
        }
        let slot = match filling {
            Some(slot) if self.is_filled_by(slot, self.tasks.id_of(e), id) => slot,
            other => {
                if self.hold_back(e, id, address) {
                    other.map(|other| self.bios.filling.insert(address, other));
                    return Ok(());
                }
                if let Some(other) = other {
                    self.give_up_bio(other, out)?;
                }
                let is_background = matches!(e.kind, Kind::BioSubmit { background: true, .. });
                self.open_bio(e, id, address, is_background, out)?
            }
        };
        if self.torn_lines.have_been {
            self.tear_next_bio(self.tasks.id_of(e), slot);
        }
        if let Some(before) = self.bios.in_flight.remove(&address) {
            self.give_up_bio(before, out)?;
        }
        if let Some(EarlyComplete { ts, location, .. }) = self.bios[slot].early_complete.take() {
            self.lose_at(Reason::UnmatchedComplete, ts, location, out, || format!("bio_complete bio 0x{address:x}"))?;
        }
        self.bios[slot].is_background |= matches!(e.kind, Kind::BioSubmit { background: true, .. });
        self.compare_size(slot, bytes, e.ts, out.names);
        if bytes > 0 {
            // The size counts, also if the log begins within the bio or lacks folios of it.
            let bio = &mut self.bios[slot];
            (bio.row.extent.is_partial, bio.lacks_folios) = (false, false);
        }
        self.bios[slot].row.flags = flags;
        self.begin_flight(e, slot, address, place);
        Ok(())
    }

    /// Submits a bio whose size is known.
    pub(super) fn begin_flight(&mut self, e: &Event, slot: BioSlot, address: u64, place: Place) {
        let Place { dev, sector } = place;
        self.bios.in_flight.insert(address, slot);
        let location = self.location();
        let commit_id = self.commits.at(self.tasks.id_of(e), e.ts);
        let bio = &mut self.bios[slot];
        bio.location = location;
        bio.row.submit = Some(e.ts);
        bio.row.commit_id = commit_id;
        bio.row.sector = sector;
        bio.row.dev = dev;
        bio.row.tid = e.tid;
        bio.row.pid = e.pid;
        bio.row.comm = e.comm;
        let (request, is_flush) = (bio.request, bio.row.direction() == Direction::Flush);
        self.bios.add_load(slot);
        if dev.is_known() && sector != NO_SECTOR {
            self.bios.link_at_sector(slot, place);
        }
        if request.is_some() {
            let open = &mut self.requests[request];
            if !is_flush {
                open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            }
            open.extend_to(e.ts);
        }
    }

    pub(super) fn complete(
        &mut self,
        e: &Event,
        address: u64,
        place: Place,
        error: Option<i32>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let slot = if address == 0 {
            self.bios.oldest_in_flight_at(place)
        } else {
            self.bios.in_flight.get(&address).copied()
        };
        // A late completion may be older than the submit. Then it belongs to an earlier bio at this address.
        let slot = slot.filter(|&slot| self.bios[slot].row.submit.is_none_or(|submit| submit <= e.ts));
        // The end of a bio that probes report is reported by probes.
        let mut slot = slot.filter(|&slot| !self.bios[slot].by_probe);
        if let Some(old) = slot
            && self.was_complete_before(old, e.ts)
        {
            self.give_up_bio(old, out)?;
            slot = None;
        }
        let Some(slot) = slot else {
            // It may belong to a bio whose submit was lost. That is known when no submit follows.
            if address != 0
                && let Some(&filling) = self.bios.filling.get(&address)
                && self.bios[filling].early_complete.is_none()
                && self.bios[filling].row.first_event <= e.ts
            {
                self.bios[filling].early_complete = Some(EarlyComplete { ts: e.ts, location: self.location(), error });
                self.last_complete = Some((address, e.ts));
                return Ok(());
            }
            self.note_orphan(address, e.ts);
            return self.lose(Reason::UnmatchedComplete, e.ts, out, || {
                if address == 0 { format!("bio_complete {place}") } else { format!("bio_complete bio 0x{address:x}") }
            });
        };
        self.last_complete = Some((address, e.ts));
        self.end_flight(e, slot, error, out)
    }

    /// Completes a bio, and the shares that other requests have in it.
    pub(super) fn end_flight(&mut self, e: &Event, slot: BioSlot, error: Option<i32>, out: &mut Out<'_>) -> Result<()> {
        let mut share = Some(slot);
        while let Some(slot) = share {
            self.bios.unlink(slot);
            self.bios.remove_overtaken(self.bios[slot].row.dev);
            self.bios.remove_load(slot);
            share = self.bios.take_other_share(slot);
            self.outlive(slot, e.ts);
            self.doubt_other_log(slot);
            let bio = &mut self.bios[slot];
            bio.row.complete = Some(e.ts);
            bio.row.error = error;
            set_issue(&mut bio.row, bio.issue);
            if self.phases_seen.states || self.phases_seen.folio_waits {
                let (file, sync_id, request) = (bio.file, bio.row.sync_id, bio.request);
                let of_request = || {
                    let row = (request.is_some()).then(|| &self.requests[request].row)?;
                    (row.ino != 0).then_some((row.dev, row.ino))
                };
                if let Some(file) = file.or_else(of_request) {
                    self.file_completions.complete(file, e.ts, sync_id);
                }
            }
            self.close_bio(slot, out)?;
        }
        Ok(())
    }

    /// The log that has recorded a bio has ended, or has no completions, and the current event, which ends the bio, is of another one: the bio's own end may
    /// be an earlier event, which counts as that of the other log.
    pub(super) fn doubt_other_log(&mut self, slot: BioSlot) {
        let bio = &mut self.bios[slot];
        if bio.log == self.provenance.log {
            return;
        }
        bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
        let request = bio.request;
        if request.is_some() {
            self.infer(request, None);
        }
    }

    /// Ends a bio whose own completion is lost when its request in the block layer was complete, which is a little earlier.
    fn end_by_request(&mut self, slot: BioSlot, (ts, error): (i64, Option<i32>)) {
        self.outlive(slot, ts);
        let bio = &mut self.bios[slot];
        (bio.row.complete, bio.row.error) = (Some(ts), bio.row.error.filter(|&error| error != 0).or(error));
        bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
        set_issue(&mut bio.row, bio.issue);
        let request = bio.request;
        if request.is_some() {
            self.infer(request, None);
        }
    }

    /// Closes a bio whose submit or completion will not come, and the shares that other requests have in it.
    pub(super) fn give_up_bio(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let mut share = Some(slot);
        while let Some(slot) = share {
            share = self.bios.take_other_share(slot);
            self.give_up_share(slot, out)?;
        }
        Ok(())
    }

    fn give_up_share(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        self.bios.unlink(slot);
        let Bio { dev, sector, extent: Extent { bytes, .. }, .. } = self.bios[slot].row;
        let bio = &mut self.bios[slot];
        let (ts, address, id, location) = (bio.row.ts(), bio.row.address, bio.row.id, bio.location);
        let (reason, event) = if bio.row.submit.is_none() {
            if let Some(early) = bio.early_complete.take() {
                (bio.row.complete, bio.row.error) = (Some(early.ts), early.error);
            }
            (Reason::NeverSubmitted, "bio_add_folio")
        } else {
            (Reason::NeverCompleted, "bio_submit")
        };
        let done = bio.done.filter(|_| reason == Reason::NeverCompleted);
        if reason == Reason::NeverCompleted {
            let place = self.bios[slot].queued_at.unwrap_or(Place { dev, sector });
            self.bios.remove_load(slot);
            self.doubt_size(slot);
            // The block layer may still have it: its request has waited long enough, not the bio itself.
            for decided in [
                self.block_queue.forget(place, bytes, slot),
                self.read_queue.forget(place, bytes, slot),
                self.other_queue.forget(place, bytes, slot),
            ] {
                self.end_decided(decided, out)?;
            }
        }
        if let Some(done) = done {
            self.count(Reason::EndedByRequest, ts, location, || format!("a bio to dev {dev} sector {sector}"));
            self.end_by_request(slot, done);
            return self.close_bio(slot, out);
        }
        self.lose_at(reason, ts, location, out, || {
            if id == NO_ID && reason == Reason::NeverSubmitted {
                format!("{event} bio 0x{address:x}")
            } else if id == NO_ID {
                format!("a bio to dev {dev} sector {sector}")
            } else {
                format!("{event} id {id} bio 0x{address:x}")
            }
        })?;
        self.close_bio(slot, out)
    }

    /// Writes the row of a bio, and settles its request if that has waited for it.
    pub(super) fn close_bio(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let bio = &mut self.bios[slot];
        if bio.is_of_patch
            && self.sees_bios
            && let Some(submit) = bio.row.submit.take()
        {
            // The time of another event of the submit is not that of a complete recording.
            bio.row.first_event = submit;
            let (address, location) = (bio.row.address, bio.location);
            self.lose_at(Reason::NeverSubmitted, submit, location, out, || format!("bio_submit bio 0x{address:x}"))?;
        }
        let process = self.process(self.bios[slot].row.pid);
        let bio = &mut self.bios[slot];
        (bio.row.process, bio.row.cgroup) = (process.name, process.cgroup);
        (bio.row.extent.ranges, bio.row.extent.span) = bio.ranges.summary();
        if let Some((dev, ino)) = bio.pages.file() {
            let writers = self.files.writers(dev, ino);
            (bio.row.writers, bio.row.writers_cgroup) = (writers.names, writers.cgroups);
            // A request says whose page cache its bios write.
            if bio.row.sync_id.is_none() {
                (bio.row.ino, bio.row.path) = (ino, self.files.path(dev, ino));
            }
        }
        if bio.request.is_some() {
            let of = &self.requests[bio.request].row;
            bio.row.request_file = (of.path, of.ino);
            // The start may come a little after an event that it precedes.
            let first = bio.row.first_event.saturating_add(CLOCK_SKEW_NS);
            bio.row.extent.is_partial &= of.start.is_none_or(|start| start > first);
        }
        bio.row.extent.is_partial |= bio.lacks_folios;
        self.write_bio(slot, out)?;
        let bio = &mut self.bios[slot];
        let (submit, complete, request, address) = (bio.row.submit, bio.row.complete, bio.request, bio.row.address);
        let (place, issue) = (bio.place, bio.row.issue);
        let (is_flush, is_request) = (bio.row.direction() == Direction::Flush, bio.row.is_request);
        let (is_partial, by_probe) = (bio.row.extent.is_partial, bio.by_probe);
        bio.by_probe = false;
        self.bios.free.push(slot);
        if request.is_none() {
            return Ok(());
        }
        let open = &mut self.requests[request];
        if is_partial {
            open.row.extent.lack_part();
        }
        open.open_bios.swap_remove(place as usize);
        if let Some(&moved) = open.open_bios.get(place as usize) {
            self.bios[moved].place = place;
        }
        if let Some(ts) = complete {
            open.extend_to(ts);
        }
        if let Some(submit) = submit.filter(|_| !open.settled) {
            match complete {
                Some(complete) if is_flush => open.evidence.flushes.push((submit, complete)),
                Some(complete) => open.evidence.bios.push(BioTimes { submit, issue, complete }),
                // Probes report the flush as a wait too, which has its end.
                None if is_flush && by_probe && open.row.waits_known.1 => {}
                None if is_flush => open.evidence.torn.push((submit, i64::MAX)),
                None => {}
            }
        }
        let is_last = open.over && open.open_bios.is_empty() && !open.settled;
        let task = open.task;
        let row = &mut open.row;
        row.submit_missing |= submit.is_none();
        row.has_requests |= is_request;
        match complete {
            // A flush writes nothing back.
            _ if is_flush => {}
            None => row.complete_missing = true,
            Some(ts) => row.last_complete = Some(row.last_complete.map_or(ts, |last| last.max(ts))),
        }
        let is_late = complete.zip(row.end).is_some_and(|(complete, end)| complete > end);
        if is_late && let Some(ts) = complete {
            self.count(Reason::CompletedAfterEnd, ts, self.location(), || format!("bio_complete bio 0x{address:x}"));
        }
        if is_last {
            self.settle(request);
            self.flush(task, out)?;
        }
        Ok(())
    }
}
/// Whether a bio is in flight, and still the one with this `bio_id`.
fn is_open(bio: &OpenBio, bio_id: u64) -> bool {
    bio.row.bio_id == bio_id && bio.row.complete.is_none()
}

/// Says of a bio when it was handed to the driver, and how often.
pub(super) fn set_issue(row: &mut Bio, issue: Option<Issue>) {
    row.issue = issue.map(|issue| issue.ts);
    if let Some(issue) = issue {
        (row.requeue_ns, row.requeues, row.parts) = (issue.ts - issue.first_ts, issue.requeues, issue.parts);
    }
}
