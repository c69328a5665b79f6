//! The requests that are open, or that wait for their bios.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use super::journals::EndedCommit;
use super::lost_bios::Orphans;
use super::probe_request::ProbeRequest;
use super::slots::{BioSlot, RequestSlot};
use super::threads::{State, Watch, add};
use super::waits::OpenWaits;
use crate::collections::Map;
use crate::collections::recent::Recent;
use crate::event::bio_flags::Direction;
use crate::event::{Dev, NO_ID};
use crate::location::Location;
use crate::names::NameId;
use crate::pair::lingering::{LINGER_NS, MAX_LINGERING};
use crate::pair::phases::Evidence;
use crate::rows::{Bio, CallOf, Confidence, Ranges, Request};

/// Ends that are remembered, to distinguish a line that is there twice from a lost start.
const MAX_ENDED_IDS: usize = 4096;

/// Ids of requests that their threads have left without an end.
const MAX_LEFT_IDS: usize = 4096;

/// How long a thread may run although it has nothing to do but wait.
const MAX_SPIN_NS: i64 = 1_000_000;

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(in crate::pair) struct OpenRequest {
    pub(in crate::pair) row: Request,
    pub(in crate::pair) task: u32,
    /// Where its first event is in the inputs.
    pub(in crate::pair) location: Location,
    /// The log of that.
    pub(in crate::pair) log: usize,
    pub(in crate::pair) ranges: Ranges,
    /// The recorder made its id of thread and time. An event with this id is from the thread, which need not work for the request.
    pub(in crate::pair) by_thread: bool,
    /// One of its events had a damaged id.
    pub(in crate::pair) has_damaged_id: bool,
    /// Its start is of an input that records no calls.
    pub(in crate::pair) is_apart: bool,
    /// Its first event is one of a bio: what came before is not in the log.
    pub(in crate::pair) begins_with_bio: bool,
    /// A torn line may have been the return of its call. So it may for the requests before it in the call.
    pub(in crate::pair) may_have_returned: bool,
    /// The highest id of the requests that had ended at its start. 0 without one.
    pub(in crate::pair) highest_before: u64,
    pub(in crate::pair) bio_ids: Vec<u64>,
    /// Its bios that are not complete.
    pub(in crate::pair) open_bios: Vec<BioSlot>,
    /// The first submit of the bios with data that are closed.
    pub(in crate::pair) closed_submit: Option<i64>,
    /// Devices to which it has submitted bios that the block layer reports, the first ones.
    pub(in crate::pair) devices: Vec<Dev>,
    /// Its newest bio to the device of its file system, and the `bio_id` of that.
    pub(in crate::pair) newest_on_own: Option<(BioSlot, u64)>,
    /// Waits without their end, as indexes into the row's waits.
    pub(in crate::pair) open_waits: OpenWaits,
    /// An end of a wait was lost: [of the journal, of a flush].
    pub(in crate::pair) torn_waits: [bool; 2],
    pub(in crate::pair) watch: Watch,
    /// The evidence for its phases.
    pub(in crate::pair) evidence: Evidence,
    /// The commit of its file system that had ended last at its end, if its source records no waits.
    pub(in crate::pair) last_commit: Option<EndedCommit>,
    /// Facts that only probes report.
    pub(in crate::pair) probe: Option<ProbeRequest>,
    /// The completions of unknown bios when it was opened.
    pub(in crate::pair) orphans_at_start: Orphans,
    /// When its thread was seen to have left it without an end.
    pub(in crate::pair) left_at: Option<i64>,
    /// It has ended, or its thread has left it without an end.
    pub(in crate::pair) over: bool,
    /// The row is final.
    pub(in crate::pair) settled: bool,
    /// Open requests of other threads with the same id, opened before and after this one; `RequestSlot::NONE` without one.
    older_of_id: RequestSlot,
    newer_of_id: RequestSlot,
}

impl OpenRequest {
    /// Not everything that is said of it is certain.
    pub(in crate::pair) fn infer(&mut self) {
        self.row.confidence = self.row.confidence.max(Confidence::Inferred);
    }

    /// A thread has a state that it cannot have after the one before: an event in between was lost, and nobody knows when it came.
    pub(in crate::pair) fn lose_state(&mut self, ts: i64, next: State) {
        let start = self.row.start.unwrap_or(self.row.first_event);
        let (_, since) = self.watch.change_state(ts, next, start);
        self.watch.is_doubtful = false;
        add(&mut self.evidence.unseen, (since, ts));
    }

    /// Whether the end of a sync function may be its own, which has no id either: both are of one file, as far as that is recorded.
    pub(in crate::pair) fn may_be_of(&self, fs: NameId, (dev, ino): (Dev, u64)) -> bool {
        let row = &self.row;
        let is_same_dev = row.dev == dev || !row.dev.is_known() || !dev.is_known();
        let is_same_ino = row.ino == ino || row.ino == 0 || ino == 0;
        row.fs == fs && is_same_dev && is_same_ino
    }

    /// Extends the slice of the request to an event of it. Events that come after its end do not count.
    pub(in crate::pair) fn extend_to(&mut self, ts: i64) {
        if !self.over {
            self.row.last_event = self.row.last_event.max(ts);
        }
    }

    /// Its copy of a call, if it has taken that call.
    pub(in crate::pair) fn call_of(&mut self, call_id: u64) -> Option<&mut CallOf> {
        self.row.call.as_mut().filter(|call| call.call_id == call_id)
    }

    /// Whether its thread must have left the CPU: it had nothing to do but wait for longer than a thread spins.
    pub(in crate::pair) fn has_waited_long(&self) -> bool {
        let Some((start, end)) = self.row.phase_bounds() else { return false };
        let bios = || self.evidence.bios.iter().filter(|bio| start <= bio.submit && bio.submit < bio.complete.min(end));
        let for_bios = bios().map(|bio| bio.submit).max().zip(bios().map(|bio| bio.complete).max());
        let waits = self.row.waits.iter().map(|wait| (wait.start, wait.end));
        waits.chain(for_bios).any(|(from, to)| to.min(end).saturating_sub(from) > MAX_SPIN_NS)
    }

    /// Prepares the slot for another request. Its buffers are used again.
    fn clear(&mut self) {
        self.ranges.clear();
        self.bio_ids.clear();
        self.open_bios.clear();
        self.evidence.clear();
    }
}

/// The requests that are open, or that wait for their bios.
pub(in crate::pair) struct Requests {
    slab: Vec<OpenRequest>,
    free: Vec<RequestSlot>,
    /// The newest open request with each id.
    pub(in crate::pair) by_id: Map<u64, RequestSlot>,
    /// By task and id: the requests whose id another open request has too.
    by_owner: Map<(u32, u64), RequestSlot>,
    /// Requests that have ended and wait for bios: (end, slot, sync_id).
    lingering: VecDeque<(i64, RequestSlot, u64)>,
    /// The requests that have ended last.
    pub(in crate::pair) ended: Recent<(u32, u64), MAX_ENDED_IDS>,
    /// The requests that their threads have left without an end last.
    pub(in crate::pair) left: Recent<(u32, u64), MAX_LEFT_IDS>,
    /// The highest id of a request with a start and an end, and no damaged id. 0 without one.
    pub(in crate::pair) highest_ended: u64,
    /// Requests between start and end.
    pub(in crate::pair) in_flight: u32,
    next_sync_id: u64,
}

impl Index<RequestSlot> for Requests {
    type Output = OpenRequest;

    fn index(&self, slot: RequestSlot) -> &OpenRequest {
        &self.slab[slot.index()]
    }
}

impl IndexMut<RequestSlot> for Requests {
    fn index_mut(&mut self, slot: RequestSlot) -> &mut OpenRequest {
        &mut self.slab[slot.index()]
    }
}

impl Requests {
    /// A request of the block layer has no row, so it is no bio of its request either.
    pub(in crate::pair) fn take_back(&mut self, request: RequestSlot, bio: &Bio) {
        if request.is_none() || bio.direction() != Direction::Write {
            return;
        }
        let open = &mut self[request];
        if bio.sync_id == Some(open.row.sync_id) && !open.settled {
            open.row.bios -= 1;
            open.row.extent.bytes -= bio.extent.bytes;
        }
    }

    pub(in crate::pair) fn new() -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            by_id: Map::default(),
            by_owner: Map::default(),
            lingering: VecDeque::new(),
            ended: Recent::default(),
            left: Recent::default(),
            highest_ended: 0,
            in_flight: 0,
            next_sync_id: 1,
        }
    }

    /// The rows of all slots, also of those that are free.
    pub(in crate::pair) fn rows(&self) -> impl Iterator<Item = &Request> {
        self.slab.iter().map(|open| &open.row)
    }

    pub(in crate::pair) fn take_sync_id(&mut self) -> u64 {
        let id = self.next_sync_id;
        self.next_sync_id += 1;
        id
    }

    /// Whether the log has had a request.
    pub(in crate::pair) fn has_been_any(&self) -> bool {
        self.next_sync_id > 1
    }

    /// Stores a new request.
    pub(in crate::pair) fn open(&mut self, row: Request, task: u32, (location, log): (Location, usize)) -> RequestSlot {
        let id = row.id;
        let slot = if let Some(slot) = self.free.pop() {
            let open = &mut self[slot];
            let mut phases = std::mem::take(&mut open.row.phases);
            phases.clear();
            open.row = Request { phases, ..row };
            open.task = task;
            (open.location, open.log) = (location, log);
            open.by_thread = false;
            (open.has_damaged_id, open.is_apart) = (false, false);
            (open.begins_with_bio, open.may_have_returned) = (false, false);
            open.highest_before = 0;
            open.open_waits.clear();
            open.torn_waits = [false; 2];
            open.watch = Watch::default();
            open.last_commit = None;
            open.probe = None;
            open.orphans_at_start = Orphans::default();
            open.left_at = None;
            open.over = false;
            open.settled = false;
            open.closed_submit = None;
            (open.older_of_id, open.newer_of_id) = (RequestSlot::NONE, RequestSlot::NONE);
            slot
        } else {
            self.slab.push(OpenRequest {
                row,
                task,
                location,
                log,
                ranges: Ranges::default(),
                by_thread: false,
                has_damaged_id: false,
                is_apart: false,
                begins_with_bio: false,
                may_have_returned: false,
                highest_before: 0,
                bio_ids: Vec::new(),
                open_bios: Vec::new(),
                devices: Vec::new(),
                newest_on_own: None,
                open_waits: OpenWaits::default(),
                torn_waits: [false; 2],
                watch: Watch::default(),
                evidence: Evidence::default(),
                last_commit: None,
                probe: None,
                orphans_at_start: Orphans::default(),
                left_at: None,
                over: false,
                closed_submit: None,
                settled: false,
                older_of_id: RequestSlot::NONE,
                newer_of_id: RequestSlot::NONE,
            });
            RequestSlot::at(self.slab.len() - 1)
        };
        if id != NO_ID {
            self.link(slot);
        }
        slot
    }

    /// Adds a request to the map of ids.
    fn link(&mut self, slot: RequestSlot) {
        let (id, task) = (self[slot].row.id, self[slot].task);
        let Some(before) = self.by_id.insert(id, slot) else { return };
        self[slot].older_of_id = before;
        self[before].newer_of_id = slot;
        let task_before = self[before].task;
        self.by_owner.entry((task_before, id)).or_insert(before);
        self.by_owner.insert((task, id), slot);
    }

    /// Frees the slot of a request.
    pub(in crate::pair) fn release(&mut self, slot: RequestSlot) {
        self[slot].clear();
        self.free.push(slot);
    }

    /// Whether a slot still holds this request, and it has not ended.
    pub(in crate::pair) fn is_open(&self, slot: RequestSlot, sync_id: u64) -> bool {
        self[slot].row.sync_id == sync_id && !self[slot].over
    }

    pub(in crate::pair) fn has_id(&self, id: u64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The request of this task and id.
    pub(in crate::pair) fn find_own(&self, task: u32, id: u64) -> Option<RequestSlot> {
        let newest = *self.by_id.get(&id)?;
        if self[newest].task == task {
            return Some(newest);
        }
        // Recorders that count requests for each thread give many requests the same id.
        if self[newest].older_of_id.is_none() { None } else { self.by_owner.get(&(task, id)).copied() }
    }

    /// The request of this task and id, else the only one with this id.
    pub(in crate::pair) fn find(&self, task: u32, id: u64) -> Option<RequestSlot> {
        let newest = *self.by_id.get(&id)?;
        if self[newest].older_of_id.is_none() { Some(newest) } else { self.find_own(task, id) }
    }

    /// Gives a request that was opened without an id the id of a later event.
    pub(in crate::pair) fn set_id(&mut self, slot: RequestSlot, id: u64) {
        self[slot].row.id = id;
        self.link(slot);
    }

    /// Removes a request from the map of ids.
    pub(in crate::pair) fn unlink(&mut self, slot: RequestSlot) {
        let id = self[slot].row.id;
        let Some(&newest) = self.by_id.get(&id) else { return };
        let open = &mut self[slot];
        let older = std::mem::replace(&mut open.older_of_id, RequestSlot::NONE);
        let newer = std::mem::replace(&mut open.newer_of_id, RequestSlot::NONE);
        let owner = (open.task, id);
        if !self.by_owner.is_empty() && self.by_owner.get(&owner) == Some(&slot) {
            self.by_owner.remove(&owner);
        }
        if older.is_some() {
            self[older].newer_of_id = newer;
        }
        if newer.is_some() {
            self[newer].older_of_id = older;
        }
        if newest != slot {
            return;
        }
        if older.is_none() {
            self.by_id.remove(&id);
        } else {
            self.by_id.insert(id, older);
        }
    }

    pub(in crate::pair) fn has_ended(&self, task: u32, id: u64) -> bool {
        self.ended.contains((task, id))
    }

    /// Whether a thread has left its request with this id, without an end.
    pub(in crate::pair) fn was_left(&self, task: u32, id: u64) -> bool {
        self.left.contains((task, id))
    }

    /// The highest id of a request with a start and an end, and no damaged id. 0 without one.
    pub(in crate::pair) fn highest_ended(&self) -> u64 {
        self.highest_ended
    }

    pub(in crate::pair) fn remember_end(&mut self, slot: RequestSlot) {
        let open = &self[slot];
        let (task, id) = (open.task, open.row.id);
        let counts = open.row.start.is_some() && !open.by_thread && !open.has_damaged_id;
        if id == NO_ID {
            return;
        }
        self.ended.insert((task, id));
        if counts {
            self.highest_ended = self.highest_ended.max(id);
        }
    }

    /// Keeps an ended request until its bios are complete.
    pub(in crate::pair) fn linger(&mut self, since: i64, slot: RequestSlot) {
        let sync_id = self[slot].row.sync_id;
        self.lingering.push_back((since, slot, sync_id));
    }

    /// Takes the next request that has waited long enough for its bios.
    pub(in crate::pair) fn take_expired(&mut self, now: i64) -> Option<RequestSlot> {
        while let Some(&(since, slot, sync_id)) = self.lingering.front() {
            let is_gone = self[slot].settled || self[slot].row.sync_id != sync_id;
            if !is_gone && now.saturating_sub(since) <= LINGER_NS && self.lingering.len() <= MAX_LINGERING {
                return None;
            }
            self.lingering.pop_front();
            if !is_gone {
                return Some(slot);
            }
        }
        None
    }
}
