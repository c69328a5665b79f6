//! The bios that are being filled or in flight.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut, Range};

use super::files::PagesOf;
use super::slots::{BioSlot, RequestSlot};
use crate::block::queue::{self, Completed, Issue};
use crate::collections::Map;
use crate::collections::by_device::ByDevice;
use crate::dedup::LogSet;
use crate::event::Dev;
use crate::event::bio_flags::BioFlags;
use crate::event::place::Place;
use crate::location::Location;
use crate::rows::{Bio, Confidence, Ranges};

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(in crate::pair) struct OpenBio {
    pub(in crate::pair) row: Bio,
    /// Where its submit is in the inputs, else its first event.
    pub(in crate::pair) location: Location,
    /// The log that reports it.
    pub(in crate::pair) log: usize,
    pub(in crate::pair) ranges: Ranges,
    /// `RequestSlot::NONE` for background writeback.
    pub(in crate::pair) request: RequestSlot,
    /// Its index in `open_bios` of that request.
    pub(in crate::pair) place: u32,
    /// Its neighbours at its device and sector, if it is found by these.
    at_sector: Option<Neighbours>,
    /// A completion that came while the bio was being filled. It is its own if the submit was lost.
    pub(in crate::pair) early_complete: Option<EarlyComplete>,
    pub(in crate::pair) issue: Option<Issue>,
    /// Probes report it.
    pub(in crate::pair) by_probe: bool,
    /// The threads that have filled it, if probes report it and it is of no request.
    pub(in crate::pair) fillers: Vec<u32>,
    /// The file of its first folio, if probes report it.
    pub(in crate::pair) file: Option<(Dev, u64)>,
    /// The file of all its folios.
    pub(in crate::pair) pages: PagesOf,
    /// A device mapper has redirected it. It may redirect copies too, such as those of a mirror.
    is_redirected: bool,
    /// How often it will still complete in part, as far as is known.
    pub(in crate::pair) parts_left: u32,
    /// It is written to several places, and no submit to another one is in the log.
    pub(in crate::pair) lacks_copies: bool,
    /// It counts as in flight on its device.
    is_counted: bool,
    /// Where the block layer's queue has it, if that is not where it was submitted.
    pub(in crate::pair) queued_at: Option<Place>,
    /// It began before the log, or may have.
    pub(in crate::pair) began_before: bool,
    /// The block layer has queued it, before any submit of it.
    pub(in crate::pair) is_queued: bool,
    /// A line that said something of it, or of whose it is, may be torn.
    pub(in crate::pair) is_torn: bool,
    /// That line may have been a folio of it, and nothing else says its size.
    pub(in crate::pair) lacks_folios: bool,
    /// The same bio as that of another request, which has other folios in it, and its `bio_id`.
    pub(in crate::pair) other_share: Option<(BioSlot, u64)>,
    /// Probes report it, and the patch would too: where it does, its own submit was lost, or is before the beginning of the log.
    pub(in crate::pair) is_of_patch: bool,
    /// Nothing of it is of a sync, whatever its thread is in.
    pub(in crate::pair) is_background: bool,
    /// A flusher thread has submitted it, perhaps for a sync of a whole file system.
    pub(in crate::pair) is_doubtful: bool,
    /// Bytes that other requests had added at its address when it was begun, and that were not submitted.
    pub(in crate::pair) foreign_bytes: u64,
    /// Its size, with the shares of other requests, if probes report it.
    pub(in crate::pair) size: u64,
    /// The block layer has completed all of it, with this error. Its own completion comes after that, unless it is lost.
    pub(in crate::pair) done: Option<(i64, Option<i32>)>,
}

/// A completion that may belong to a bio whose submit was lost.
#[derive(Clone, Copy)]
pub(in crate::pair) struct EarlyComplete {
    pub(in crate::pair) ts: i64,
    pub(in crate::pair) location: Location,
    pub(in crate::pair) error: Option<i32>,
}

impl OpenBio {
    /// A line that said something of it may be torn.
    pub(in crate::pair) fn tear(&mut self) {
        self.is_torn = true;
        self.infer();
    }

    /// Not everything that is said of it is certain.
    pub(in crate::pair) fn infer(&mut self) {
        self.row.confidence = self.row.confidence.max(Confidence::Inferred);
    }

    pub(in crate::pair) fn is_redirected(&self) -> bool {
        self.is_redirected
    }

    /// Makes it a bio of background writeback.
    pub(in crate::pair) fn detach(&mut self) {
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

/// The bios in flight on a device, without those that the log does not show.
#[derive(Default)]
struct Load {
    pub(in crate::pair) bios: u32,
    pub(in crate::pair) bytes: u64,
    /// Number of completions so far.
    completions: u64,
    /// The bios that count, in the order of their submits, and some that have completed since.
    submits: VecDeque<Submit>,
}

struct Submit {
    slot: BioSlot,
    pub(in crate::pair) bio_id: u64,
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
pub(in crate::pair) struct Bios {
    slab: Vec<OpenBio>,
    pub(in crate::pair) free: Vec<BioSlot>,
    /// By address: bios to which folios are being added.
    pub(in crate::pair) filling: Map<u64, BioSlot>,
    /// By address: bios that were submitted.
    pub(in crate::pair) in_flight: Map<u64, BioSlot>,
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
    /// Notes what the block layer's queue knows of a bio that is not complete.
    pub(in crate::pair) fn note_queued(&mut self, queued: &Completed<BioSlot>) {
        let below = self[queued.bio].issue;
        let row = &mut self[queued.bio].row;
        row.error = queued.error;
        set_issue(row, queued.issue.or(below));
    }

    pub(in crate::pair) fn new() -> Self {
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

    pub(in crate::pair) fn take_bio_id(&mut self) -> u64 {
        let id = self.next_bio_id;
        self.next_bio_id += 1;
        id
    }

    /// The `bio_id` of the next bio.
    pub(in crate::pair) fn next_bio_id(&self) -> u64 {
        self.next_bio_id
    }

    /// Whether a bio may have this address, by those that have been seen: the kernel's memory has the same upper half.
    pub(in crate::pair) fn may_be_address(&self, address: u64) -> bool {
        [self.addresses.0, self.addresses.1].iter().any(|seen| seen >> 32 == address >> 32)
    }

    /// Whether the log has named a bio by its address, other than by its completion.
    pub(in crate::pair) fn have_addresses(&self) -> bool {
        self.addresses.0 <= self.addresses.1
    }

    pub(in crate::pair) fn store(&mut self, row: Bio, location: Location, log: usize, request: RequestSlot) -> BioSlot {
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
    pub(in crate::pair) fn filling_at(&self, address: u64) -> Option<BioSlot> {
        self.filling.get(&address).copied()
    }

    /// The bio that is being filled or in flight at an address.
    pub(in crate::pair) fn last_at(&self, address: u64) -> Option<BioSlot> {
        self.filling.get(&address).or_else(|| self.in_flight.get(&address)).copied()
    }

    /// The bio that was submitted from an address and is in flight.
    pub(in crate::pair) fn in_flight_at(&self, address: u64) -> Option<BioSlot> {
        self.in_flight.get(&address).copied()
    }

    /// Whether a bio that was submitted to this device and sector is in flight.
    pub(in crate::pair) fn is_in_flight_at(&self, target: Place) -> bool {
        self.in_flight_by_sector.contains_key(&target)
    }

    /// Returns the bio in flight that was submitted first to this device and sector.
    pub(in crate::pair) fn oldest_in_flight_at(&self, target: Place) -> Option<BioSlot> {
        self.in_flight_by_sector.get(&target).map(|at| at.oldest)
    }

    /// Notes the flags of the bio that was submitted last to a device and sector, if its own event has none.
    pub(in crate::pair) fn note_flags(&mut self, target: Place, flags: BioFlags) {
        if let Some(at) = self.in_flight_by_sector.get(&target) {
            self.slab[at.newest.index()].row.flags.get_or_insert(flags);
        }
    }

    /// Issues a request with the bios of these logs that were submitted to these sectors.
    pub(in crate::pair) fn issue(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, logs: LogSet) {
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
    pub(in crate::pair) fn note_done(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, error: Option<i32>) {
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
    pub(in crate::pair) fn redirect(&mut self, from: Place, to: Place, submitted: Option<BioSlot>) -> bool {
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
    pub(in crate::pair) fn just_submitted_at(&self, target: Place, tid: u32) -> Option<BioSlot> {
        let slot = self.in_flight_by_sector.get(&target)?.newest;
        let bio = &self[slot];
        (bio.row.tid == tid && bio.issue.is_none() && !bio.is_redirected).then_some(slot)
    }

    /// Issues a request with the bios of these logs that were redirected to these sectors.
    pub(in crate::pair) fn issue_below(&mut self, dev: Dev, sectors: Range<i64>, ts: i64, logs: LogSet) {
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
    pub(in crate::pair) fn unlink(&mut self, slot: BioSlot) {
        let (address, place) = (self[slot].row.address, self[slot].row.place());
        for map in [&mut self.filling, &mut self.in_flight] {
            if map.get(&address) == Some(&slot) {
                map.remove(&address);
            }
        }
        self.unlink_from_sector(slot, place);
    }

    /// Makes a bio the newest one at a device and sector.
    pub(in crate::pair) fn link_at_sector(&mut self, slot: BioSlot, target: Place) {
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
    pub(in crate::pair) fn take_other_share(&mut self, slot: BioSlot) -> Option<BioSlot> {
        let (other, bio_id) = self[slot].other_share.take()?;
        (self[other].by_probe && self[other].row.bio_id == bio_id).then_some(other)
    }

    /// Removes all bios from the maps and returns them.
    pub(in crate::pair) fn take_all(&mut self) -> Vec<BioSlot> {
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
    pub(in crate::pair) fn add_load(&mut self, slot: BioSlot) {
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
    pub(in crate::pair) fn remove_load(&mut self, slot: BioSlot) {
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
    pub(in crate::pair) fn remove_overtaken(&mut self, dev: Dev) {
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

/// Whether a bio is in flight, and still the one with this `bio_id`.
fn is_open(bio: &OpenBio, bio_id: u64) -> bool {
    bio.row.bio_id == bio_id && bio.row.complete.is_none()
}

/// Says of a bio when it was handed to the driver, and how often.
pub(in crate::pair) fn set_issue(row: &mut Bio, issue: Option<Issue>) {
    row.issue = issue.map(|issue| issue.ts);
    if let Some(issue) = issue {
        (row.requeue_ns, row.requeues, row.parts) = (issue.ts - issue.first_ts, issue.requeues, issue.parts);
    }
}
