//! Who belongs to whom: the only place that pairs. The rules are in docs/pairing.md.
//!
//! Events come in the order of time. What is open lives in slabs and leaves as soon as it is settled.

pub mod block_layer;

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::dedup::authority::{Authority, Standing};
use crate::error::Result;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, Op, UNKNOWN_TASK, WaitKind};
use crate::location::{Location, Locations};
use crate::losses::{Losses, Reason};
use crate::names::{NameId, Names};
use crate::pair::block_layer::{BlockQueue, Queued};
use crate::rows::{Bio, Call, CallOf, Confidence, Extent, Ranges, Request, WaitInterval};
use crate::sink::{Group, GroupRequest, Sink};

/// A request that has ended waits so long for its bios.
const LINGER_NS: i64 = 60_000_000_000;
/// So many may wait.
const MAX_LINGERING: usize = 65_536;
/// Ends that are remembered, to tell a doubled line from a lost start.
const REMEMBERED_ENDS: usize = 4096;
/// Two inputs that tell of a call when it has begun its request tell of the same one if so little is between them.
const SAME_CALL_NS: u64 = 100_000;
const REMEMBERED_PASSES: usize = 65_536;
/// Requests that one open call may gather (sync() has one an inode) before it is written without its exit.
const MAX_IN_CALL: usize = 16_384;

/// A tracer of calls tells that one has begun so long before the kernel does at most, when it has told its end too.
const TRACED_BEFORE_NS: i64 = 100_000_000;
/// So much may one log be behind another when it tells a call that has returned.
const LATE_NS: u64 = 20_000_000;

type Map<K, V> = HashMap<K, V, FixedState>;

/// The bit of a log among those that have told a call.
fn bit(log: usize) -> u64 {
    1 << log.min(63)
}

/// Whether a call that was told aside is the one that begins now.
fn is_of(aside: &PendingCall, op: Op, enter: i64) -> bool {
    let last = aside.call.exit.unwrap_or(aside.call.enter);
    aside.call.op == op && (!aside.over || enter.saturating_sub(last) <= TRACED_BEFORE_NS)
}

/// Takes what another log tells of a call in addition.
fn join(call: &mut Call, other: &Call) {
    if !call.path.is_some() {
        call.path = other.path;
    }
    if !call.stack.is_some() {
        call.stack = other.stack;
    }
}

/// Larger than any number of a task.
const OF_OTHER_KIND: u32 = 1 << 31;

fn overlaps(tasks_are_processes: bool, task: u32) -> bool {
    tasks_are_processes || task != UNKNOWN_TASK && task & OF_OTHER_KIND != 0
}

/// Index into a slab.
type Slot = u32;
const NO_SLOT: Slot = Slot::MAX;

struct OpenRequest {
    row: Request,
    /// Of its first event.
    place: Location,
    ranges: Ranges,
    /// It has an id that its thread was made into: what has it is the thread's doing, no more.
    by_thread: bool,
    bio_ids: Vec<u64>,
    /// Its bios that are not done.
    open_bios: Vec<Slot>,
    /// Waits without their end, by their place among the row's.
    open_waits: Vec<usize>,
    /// An end of a wait is lost: [of the journal, of a flush].
    torn_waits: [bool; 2],
    /// It has ended, or its thread has gone on without an end of it.
    over: bool,
    /// Nothing more can come for it.
    settled: bool,
    /// The next open request with the same id, of another thread.
    same_id: Slot,
}

impl OpenRequest {
    /// Its slice in a trace reaches to its last event, but not into what its thread did after it.
    fn seen(&mut self, ts: i64) {
        if !self.over {
            self.row.last_event = self.row.last_event.max(ts);
        }
    }
}

struct OpenBio {
    row: Bio,
    /// Of its first event, then of its submit.
    place: Location,
    ranges: Ranges,
    request: Slot,
    /// A completion that came while it was being filled: its own if the submit was lost.
    early_complete: Option<(i64, Location)>,
}

/// A call with its requests, or a request without a call.
struct OpenGroup {
    call: Option<Call>,
    call_open: bool,
    since: i64,
    /// Of the call's entry.
    place: Location,
    requests: Vec<Slot>,
    /// Requests in flight at the entry and the exit of a call that stands for one itself.
    in_flight: (u32, u32),
    /// It is one of them still.
    flies: bool,
    /// Other logs that have told its call, by their bits.
    told_by: u64,
}

/// A call as told by a log that is not believed for its thread: it may be one that the other log has yet to tell.
struct PendingCall {
    log: usize,
    place: Location,
    call: Call,
    /// It has returned.
    over: bool,
}

/// What an exit is where several logs tell of calls.
enum Exit {
    First,
    /// Another log has told it, or will.
    Again,
    /// It is of a call that was told aside, and is counted when it is known what that is.
    PendingCall,
}

impl OpenGroup {
    /// Its call is no longer in flight as a request.
    fn land(&mut self, in_flight: &mut u32) {
        if std::mem::take(&mut self.flies) {
            *in_flight -= 1;
            self.in_flight.1 = *in_flight;
        }
    }
}

#[derive(Default)]
struct Task {
    groups: VecDeque<OpenGroup>,
    /// The request between start and end; not used where a task is a process.
    open: Option<Slot>,
    /// The last exit, and the log that told it, until the next call.
    exited: Option<(Op, usize)>,
    /// A file system tells without an id of a request that another event tells of with one.
    told_inside: bool,
    asides: Vec<PendingCall>,
    /// When its last call returned, and the other logs that have told it.
    closed: Option<(Op, i64, u64)>,
}

#[derive(Clone, Copy, Default)]
struct InFlight {
    bios: u32,
    bytes: u64,
}

/// Whether the patched kernel tells what a request of this file system waits for: (of the journal, of flushes).
fn tells_waits(fs: &[u8], ino: u64) -> (bool, bool) {
    match fs {
        b"ext2" | b"ext3" | b"ext4" | b"f2fs" | b"bdev" => (true, true),
        // Of a pass over all of it the log is forced another way.
        b"xfs" => (ino != 0, true),
        // btrfs makes its commits and flushes its devices in its own way.
        _ => (false, false),
    }
}

pub struct Pairer {
    /// ThreadTable are processes, whose calls overlap.
    pub tasks_are_processes: bool,
    /// Of processes, where they are known.
    process_names: Map<u32, NameId>,
    tasks: Map<u32, Task>,
    requests: Vec<OpenRequest>,
    free_requests: Vec<Slot>,
    by_id: Map<u64, Slot>,
    bios: Vec<OpenBio>,
    free_bios: Vec<Slot>,
    /// Bios being filled, and in flight, by address.
    filling: Map<u64, Slot>,
    flying: Map<u64, Slot>,
    /// Those without an address, oldest first.
    flying_by_sector: Map<(Dev, i64), VecDeque<Slot>>,
    /// Those that the block layer tells of; `NO_SLOT` is one that is told by another event too.
    blocks: BlockQueue<Slot>,
    /// Ended requests that wait for bios: (end, slot, sync_id).
    lingering: VecDeque<(i64, Slot, u64)>,
    /// Ids of background writeback: what has them belongs to no request.
    passes: HashSet<u64, FixedState>,
    passes_order: VecDeque<u64>,
    /// The inputs have told of a wait.
    tells_waits: bool,
    ended: HashSet<(u32, u64), FixedState>,
    ended_order: VecDeque<(u32, u64)>,
    device_load: Vec<(Dev, InFlight)>,
    requests_in_flight: u32,
    next_sync: u64,
    next_bio: u64,
    next_call: u64,
    now: i64,
    /// Of the event at hand.
    at: Location,
    places: Locations,
    tellers: Authority,
    /// When what is open was last looked through.
    looked_at: i64,
    pub losses: Losses,
    /// Requests that have been handed on.
    pub requests_made: u64,
}

impl Pairer {
    pub fn new(tasks_are_processes: bool, places: Locations, process_names: Map<u32, NameId>) -> Self {
        Self {
            tasks_are_processes,
            process_names,
            tasks: Map::default(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            by_id: Map::default(),
            bios: Vec::new(),
            free_bios: Vec::new(),
            filling: Map::default(),
            flying: Map::default(),
            flying_by_sector: Map::default(),
            blocks: BlockQueue::new(),
            lingering: VecDeque::new(),
            passes: HashSet::default(),
            passes_order: VecDeque::new(),
            tells_waits: false,
            ended: HashSet::default(),
            ended_order: VecDeque::new(),
            device_load: Vec::new(),
            requests_in_flight: 0,
            next_sync: 1,
            next_bio: 1,
            next_call: 1,
            now: i64::MIN,
            at: Location::default(),
            tellers: Authority::of_logs(if tasks_are_processes { &[] } else { &places.logs }),
            places,
            looked_at: i64::MIN,
            losses: Losses::default(),
            requests_made: 0,
        }
    }

    fn process_name(&self, pid: u32) -> NameId {
        self.process_names.get(&pid).copied().unwrap_or(NameId::NONE)
    }

    /// The number of a thread, or that of a process where ids are processes; a task that tells the other one alone is told apart by a bit.
    fn task(&self, tid: u32, pid: u32) -> u32 {
        let (task, other) = if self.tasks_are_processes { (pid, tid) } else { (tid, pid) };
        if task == UNKNOWN_TASK && other != UNKNOWN_TASK { other | OF_OTHER_KIND } else { task }
    }

    fn task_of(&self, event: &Event) -> u32 {
        self.task(event.tid, event.pid)
    }

    /// Whether it is a process, of which several threads may be in a call.
    fn overlaps(&self, task: u32) -> bool {
        overlaps(self.tasks_are_processes, task)
    }

    pub fn event<S: Sink + ?Sized>(
        &mut self,
        event: &Event,
        place: Location,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        self.at = place;
        self.now = self.now.max(event.ts);
        self.expire(names, sink)?;
        if self.tellers.several() && self.is_told_elsewhere(event) {
            return Ok(());
        }
        match event.kind {
            Kind::BioAddFolio { id, bio, offset, len } => self.add_folio(event, id, bio, offset, len, names, sink),
            Kind::BioSubmit { id, bio, sector, dev, background, bytes } => {
                if background {
                    self.is_background(event, id);
                }
                self.submit(event, id, bio, (dev, sector), bytes, names, sink)
            }
            Kind::BioComplete { bio, sector, dev } => self.complete(event, bio, sector, dev, names, sink),
            Kind::CallEnter { .. } => self.call_enter(event, names, sink),
            Kind::CallExit { .. } => self.call_exit(event, names, sink),
            Kind::SyncStart { .. } => self.sync_start(event, names, sink),
            Kind::SyncEnd { id, ret } => self.sync_end(event, id, ret, names, sink),
            Kind::WbStart { id } => {
                self.remember_pass(id);
                Ok(())
            }
            Kind::BlockSubmit { dev, sector, bytes } => {
                self.block_submit(event, dev, sector, bytes);
                Ok(())
            }
            Kind::BlockComplete { dev, sector, bytes } => self.block_complete(event, dev, sector, bytes, names, sink),
            Kind::BlockRemap { dev, sector, from_dev, from_sector, .. } => {
                self.block_remap((from_dev, from_sector), (dev, sector));
                Ok(())
            }
            Kind::WaitStart { id, wait, transaction } => self.wait_start(event, id, wait, transaction, sink),
            Kind::WaitEnd { id, wait, transaction } => self.wait_end(event, id, wait, transaction, sink),
            Kind::WbEnd { .. } | Kind::Other => Ok(()),
        }
    }

    /// Events that a log will tell; all of them are announced before any of that time comes.
    pub fn announce(&mut self, file: usize, events: &[Event]) {
        if self.tellers.several() {
            self.tellers.announce(self.places.log_of(Location::new(file, 0)), events.iter());
        }
    }

    /// A file has been read to its end.
    pub fn ended(&mut self, file: usize) {
        self.tellers.ended(self.places.log_of(Location::new(file, 0)));
    }

    /// Whether another log is believed in what an event tells. Of calls it may still tell more than that one.
    fn is_told_elsewhere(&mut self, e: &Event) -> bool {
        let log = self.places.log_of(self.at);
        let told = self.tellers.told(e, log);
        let place = match e.kind {
            Kind::BlockSubmit { dev, sector, .. } => Some((dev, sector)),
            Kind::BioSubmit { dev, sector, .. } if dev.is_known() && sector != NO_SECTOR => Some((dev, sector)),
            _ => None,
        };
        if let Some((dev, sector)) = place {
            let alone = self.tellers.bio(dev, sector, e.ts, log, told);
            self.tell_alone(alone, e.ts);
        }
        if told == Standing::Authoritative || matches!(e.kind, Kind::CallEnter { .. } | Kind::CallExit { .. }) {
            return false;
        }
        if place.is_some() || matches!(e.kind, Kind::SyncStart { .. } | Kind::SyncEnd { .. } | Kind::BioSubmit { .. }) {
            self.count(Reason::Duplicate, e.ts, self.at, || Kind::NAMES[e.kind.index()].to_owned());
        }
        true
    }

    /// Bios that a log tells which is not believed for their device, and the one that is does not.
    fn tell_alone(&mut self, bios: u64, ts: i64) {
        if bios > 0 {
            self.losses.add(Reason::SupersededBio, bios, Some(ts));
        }
    }

    /// An event that comes when a newer one has gone through; `event` follows all the same.
    pub fn late<S: Sink + ?Sized>(&mut self, event: &Event, place: Location, sink: &mut S) -> Result<()> {
        let text = || Kind::NAMES[event.kind.index()].to_owned();
        self.lose_at(Reason::LateEvent, event.ts, place, sink, text)
    }

    /// Closes all that is open.
    pub fn finish<S: Sink + ?Sized>(&mut self, names: &Names, sink: &mut S) -> Result<()> {
        let mut aside: Vec<u32> =
            self.tasks.iter().filter(|(_, task)| !task.asides.is_empty()).map(|(&id, _)| id).collect();
        aside.sort_unstable();
        for id in aside {
            self.release_aside(id, names, sink, true, |_| true)?;
        }
        let alone = self.tellers.forget(i64::MAX);
        self.tell_alone(alone, self.now);
        let mut left: Vec<Slot> = self.filling.drain().map(|(_, slot)| slot).collect();
        left.extend(self.flying.drain().map(|(_, slot)| slot));
        left.extend(self.blocks.take_older(i64::MAX).into_iter().filter(|&slot| slot != NO_SLOT));
        // All of them fly by their address too.
        self.flying_by_sector.clear();
        left.sort_unstable_by_key(|&slot| self.bios[slot as usize].row.bio_id);
        for slot in left {
            self.give_up_bio(slot, names, sink)?;
        }
        let mut open: Vec<(u64, Slot)> = self
            .tasks
            .values()
            .flat_map(|t| &t.groups)
            .flat_map(|g| &g.requests)
            .map(|&slot| (self.requests[slot as usize].row.sync_id, slot))
            .collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.settle(slot);
        }
        let mut tasks: Vec<(i64, u32)> =
            self.tasks.iter().filter_map(|(&id, t)| t.groups.front().map(|g| (g.since, id))).collect();
        tasks.sort_unstable();
        for (_, id) in tasks {
            if let Some(task) = self.tasks.get_mut(&id) {
                task.groups.iter_mut().for_each(|g| g.call_open = false);
            }
            self.flush(id, names, sink)?;
        }
        Ok(())
    }

    // ---- calls

    fn call_enter<S: Sink + ?Sized>(&mut self, e: &Event, names: &Names, sink: &mut S) -> Result<()> {
        let Kind::CallEnter { op, stack, path, call_only } = e.kind else { return Ok(()) };
        let call = Call {
            call_id: 0,
            op,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            process: self.process_name(e.pid),
            stack,
            path,
            call_only,
            enter: e.ts,
            exit: None,
            untimed: false,
            ret: None,
            sync_id: None,
            request_end: None,
        };
        if self.tellers.several() && self.told_of_call(e) == Standing::Duplicate {
            return self.call_told_again(call, names, sink);
        }
        let id = self.task_of(e);
        if self.tellers.several() {
            if self.is_open_call(&call) {
                self.count(Reason::Duplicate, e.ts, self.at, || op.name().to_owned());
                return Ok(());
            }
            self.release_aside(id, names, sink, false, |aside| aside.over && !is_of(aside, op, e.ts))?;
        }
        self.begin_call(id, call, self.at, names, sink)
    }

    /// Whether a call is that which the thread has open by the word of another log: it cannot make two at once. From now on it is
    /// this log's.
    fn is_open_call(&mut self, call: &Call) -> bool {
        let task = self.task(call.tid, call.pid);
        let log = self.places.log_of(self.at);
        let Some(group) = self.tasks.get_mut(&task).and_then(|task| task.groups.back_mut()) else { return false };
        let other = self.places.log_of(group.place);
        if !group.call_open || other == log || group.told_by & bit(log) != 0 {
            return false;
        }
        let Some(its) = group.call.as_mut().filter(|its| its.op == call.op) else { return false };
        if group.requests.is_empty() {
            its.enter = call.enter;
        }
        let alone = call.call_only || its.call_only && !self.tellers.tells_requests(call.tid);
        let was_alone = std::mem::replace(&mut its.call_only, alone);
        join(its, call);
        group.told_by |= bit(other);
        group.place = self.at;
        if was_alone && !alone {
            group.land(&mut self.requests_in_flight);
        }
        true
    }

    fn told_of_call(&mut self, e: &Event) -> Standing {
        self.tellers.told(e, self.places.log_of(self.at))
    }

    fn begin_call<S: Sink + ?Sized>(
        &mut self,
        id: u32,
        mut call: Call,
        place: Location,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        let log = self.places.log_of(place);
        call.call_id = self.next_call;
        self.next_call += 1;
        self.leave_sync(id, names, sink)?;
        let overlaps = self.overlaps(id);
        let task = self.tasks.entry(id).or_default();
        task.exited = None;
        let mut closed = false;
        if !overlaps && let Some(group) = task.groups.back_mut() {
            closed = std::mem::take(&mut group.call_open);
            group.land(&mut self.requests_in_flight);
        }
        let mut told_by = 0;
        let mut joined = Vec::new();
        for aside in std::mem::take(&mut task.asides) {
            if aside.log != log && is_of(&aside, call.op, call.enter) {
                call.call_only |= aside.call.call_only && !self.tellers.tells_requests(call.tid);
                join(&mut call, &aside.call);
                told_by |= bit(aside.log);
                joined.extend([Some(aside.place), aside.over.then_some(aside.place)].into_iter().flatten());
            } else {
                task.asides.push(aside);
            }
        }
        let (alone, since, op) = (call.call_only, call.enter, call.op);
        self.requests_in_flight += u32::from(alone);
        task.groups.push_back(OpenGroup {
            call: Some(call),
            call_open: true,
            since,
            place,
            requests: Vec::new(),
            in_flight: (self.requests_in_flight, self.requests_in_flight),
            flies: alone,
            told_by,
        });
        for place in joined {
            self.count(Reason::Duplicate, since, place, || op.name().to_owned());
        }
        if closed || overlaps { self.flush(id, names, sink) } else { Ok(()) }
    }

    /// A call is told by a log that is not believed for its thread: it is that which the other log has told, or tells next. A tracer
    /// of calls stops the thread before the kernel's own word of it, and may tell of one that is not in the other log.
    fn call_told_again<S: Sink + ?Sized>(&mut self, call: Call, names: &Names, sink: &mut S) -> Result<()> {
        let (log, tid, op) = (self.places.log_of(self.at), call.tid, call.op);
        let by_tracer = self.tellers.is_tracer(tid, log);
        self.release_aside(tid, names, sink, false, |aside| aside.log == log && aside.over)?;
        let tells_requests = self.tellers.tells_requests(tid);
        let alone = call.call_only && !tells_requests;
        let task = self.tasks.entry(tid).or_default();
        task.asides.retain(|aside| aside.log != log || aside.over);
        let last = task.groups.back_mut().filter(|group| group.call_open && group.told_by & bit(log) == 0);
        if let Some(group) = last
            && let Some(its) = group.call.as_mut().filter(|its| its.op == op)
        {
            group.told_by |= bit(log);
            let was_alone = its.call_only;
            its.call_only = alone || was_alone && (by_tracer || !tells_requests);
            if was_alone && !its.call_only {
                // It began by a tracer's word, before any other log had told of the thread.
                group.place = self.at;
                if group.requests.is_empty() {
                    its.enter = call.enter;
                }
            }
            join(its, &call);
            if !by_tracer && group.requests.is_empty() && call.enter.abs_diff(its.enter) <= SAME_CALL_NS {
                // What lies between is a tracer's own work: a stack takes time to walk. Of the exits the first one counts.
                its.enter = its.enter.max(call.enter);
            }
            for &slot in &group.requests {
                if let Some(of) = &mut self.requests[slot as usize].row.call
                    && of.call_id == its.call_id
                {
                    of.stack = its.stack;
                }
            }
            if !its.call_only {
                group.land(&mut self.requests_in_flight);
            }
            self.count(Reason::Duplicate, call.enter, self.at, || op.name().to_owned());
            return Ok(());
        }
        let is_of_last = |&(of, exit, told_by): &(Op, i64, u64)| {
            of == op && told_by & bit(log) == 0 && call.enter.abs_diff(exit) <= LATE_NS
        };
        if task.closed.as_ref().is_some_and(is_of_last) {
            if let Some((_, _, told_by)) = &mut task.closed {
                *told_by |= bit(log);
            }
            self.count(Reason::Duplicate, call.enter, self.at, || op.name().to_owned());
        } else {
            task.asides.push(PendingCall { log, place: self.at, call, over: false });
        }
        Ok(())
    }

    /// Calls that have returned by the word of a log that is not believed, and are in no other.
    fn release_aside<S: Sink + ?Sized>(
        &mut self,
        id: u32,
        names: &Names,
        sink: &mut S,
        at_end: bool,
        which: impl Fn(&PendingCall) -> bool,
    ) -> Result<()> {
        let Some(task) = self.tasks.get_mut(&id).filter(|task| !task.asides.is_empty()) else { return Ok(()) };
        // The call that the thread has open by another's word goes on.
        if !at_end && (task.open.is_some() || task.groups.back().is_some_and(|group| group.call_open)) {
            return Ok(());
        }
        let (go, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut task.asides).into_iter().partition(|aside| which(aside));
        task.asides = stay;
        for PendingCall { place, mut call, .. } in go {
            let (exit, ret, untimed) = (call.exit.take(), call.ret.take(), std::mem::take(&mut call.untimed));
            self.begin_call(id, call, place, names, sink)?;
            if let Some(group) = self.tasks.get_mut(&id).and_then(|task| task.groups.back_mut()) {
                group.call_open = false;
                group.land(&mut self.requests_in_flight);
                if let Some(call) = &mut group.call {
                    (call.exit, call.ret, call.untimed) = (exit, ret, untimed);
                }
            }
            self.flush(id, names, sink)?;
        }
        Ok(())
    }

    fn call_exit<S: Sink + ?Sized>(&mut self, e: &Event, names: &Names, sink: &mut S) -> Result<()> {
        let Kind::CallExit { op, ret, stack, untimed } = e.kind else { return Ok(()) };
        let id = self.task_of(e);
        if self.tellers.several() {
            match self.exit_is_told(e, op, ret, untimed) {
                Exit::First => {}
                Exit::PendingCall => return Ok(()),
                Exit::Again => {
                    self.count(Reason::Duplicate, e.ts, self.at, || format!("{} exit", op.name()));
                    return Ok(());
                }
            }
        }
        self.end_with_call(e, id, ret, names, sink)?;
        self.leave_sync(id, names, sink)?;
        let requests = &mut self.requests;
        let mut candidates = self
            .tasks
            .get_mut(&id)
            .into_iter()
            .flat_map(|t| &mut t.groups)
            .filter(|g| g.call_open && g.call.as_ref().is_some_and(|c| c.op == op && c.enter <= e.ts))
            // A call does not return before its sync function has.
            .filter(|g| g.requests.iter().all(|&slot| requests[slot as usize].over));
        let (first, second) = (candidates.next(), candidates.next());
        let (Some(group), None) = (first, second) else {
            return self.lose(Reason::UnmatchedExit, e.ts, sink, || format!("{} exit", op.name()));
        };
        group.call_open = false;
        group.land(&mut self.requests_in_flight);
        let told_by = group.told_by;
        let exit = (!untimed).then_some(e.ts);
        if let Some(call) = &mut group.call {
            call.exit = exit;
            call.untimed = untimed;
            call.ret = ret;
            if stack.is_some() {
                call.stack = stack;
            }
            // The row of the request that took it carries the exit.
            for &slot in &group.requests {
                if let Some(of) = &mut requests[slot as usize].row.call
                    && of.call_id == call.call_id
                {
                    of.exit = exit;
                    of.stack = call.stack;
                }
            }
        }
        if let Some(task) = self.tasks.get_mut(&id) {
            task.closed = Some((op, e.ts, told_by));
        }
        if untimed {
            self.count(Reason::DurationMissing, e.ts, self.at, || op.name().to_owned());
        }
        self.flush(id, names, sink)
    }

    fn exit_is_told(&mut self, e: &Event, op: Op, ret: Option<i64>, untimed: bool) -> Exit {
        let log = self.places.log_of(self.at);
        let again = self.told_of_call(e) == Standing::Duplicate;
        let by_tracer = self.tellers.is_tracer(e.tid, log);
        let task = self.task_of(e);
        let requests = &self.requests;
        let Some(task) = self.tasks.get_mut(&task) else { return Exit::First };
        if let Some(aside) = task.asides.iter_mut().find(|a| a.log == log && a.call.op == op && !a.over) {
            aside.over = true;
            aside.call.exit = (!untimed).then_some(e.ts);
            (aside.call.ret, aside.call.untimed) = (ret, untimed);
            return Exit::PendingCall;
        }
        if again {
            let ends_it = task.groups.back().is_some_and(|group| {
                let none = !self.tellers.tells_exits(self.places.log_of(group.place), e.tid);
                let done = group.requests.iter().all(|&slot| requests[slot as usize].over);
                group.call_open
                    && group.told_by & bit(log) != 0
                    && done
                    // Where the other log has no exits, this one's is the only one.
                    && (none || !by_tracer && !group.requests.is_empty())
            });
            if !ends_it {
                return Exit::Again;
            }
        }
        match task.exited {
            Some((before, other)) if before == op && other != log => Exit::Again,
            _ => {
                task.exited = Some((op, log));
                Exit::First
            }
        }
    }

    /// Of a file system whose tracepoints tell where a sync begins and not where it ends, the call's return is its end.
    fn end_with_call<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        task: u32,
        ret: Option<i64>,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        let Some(slot) = self.open_without_id(task) else { return Ok(()) };
        let row = &mut self.requests[slot as usize].row;
        if row.start.is_none() || !matches!(names.get(row.fs), b"btrfs" | b"xfs") {
            return Ok(());
        }
        row.confidence = row.confidence.max(Confidence::Inferred);
        self.sync_end(e, NO_ID, ret.unwrap_or_default(), names, sink)
    }

    // ---- requests

    fn sync_start<S: Sink + ?Sized>(&mut self, e: &Event, names: &Names, sink: &mut S) -> Result<()> {
        let Kind::SyncStart { id, path, fs, ino, dev, datasync, by_thread, .. } = e.kind else { return Ok(()) };
        let task = self.task_of(e);
        if self.is_told_inside(task, id) {
            self.count(Reason::Duplicate, e.ts, self.at, || "the file system's start".to_owned());
            if id == NO_ID {
                return Ok(());
            }
        }
        let found = self.find_exact(task, id);
        let slot = match found {
            Some(slot)
                if self.requests[slot as usize].row.start.is_some()
                    && self.places.log_of(self.requests[slot as usize].place) != self.places.log_of(self.at) =>
            {
                self.requests[slot as usize].place = self.at;
                self.count(Reason::Duplicate, e.ts, self.at, || "the file system's start".to_owned());
                return Ok(());
            }
            Some(slot) if self.requests[slot as usize].row.start.is_some() => {
                return self.lose(Reason::DuplicateStart, e.ts, sink, || format!("start id {id}"));
            }
            // Its start is late: the window was too short for it.
            Some(slot) => slot,
            None => self.open_request(e, id, names, sink)?,
        };
        if self.requests[slot as usize].row.end.is_none() {
            self.requests_in_flight += 1;
        }
        let in_flight = self.requests_in_flight;
        self.requests[slot as usize].by_thread = by_thread;
        let row = &mut self.requests[slot as usize].row;
        row.start = Some(e.ts);
        row.path = path;
        row.fs = fs;
        row.ino = ino;
        row.dev = dev;
        let tells = id != NO_ID || matches!(names.get(fs), b"ext4" | b"btrfs");
        row.datasync = tells.then_some(datasync);
        row.waits_known = tells_waits(names.get(fs), ino);
        row.comm = e.comm;
        row.in_flight.0 = in_flight;
        if found.is_none() {
            row.confidence = Confidence::Exact;
            self.take_call(task, slot);
        }
        Ok(())
    }

    /// Whether a start is of the request that the thread has open: with an id the kernel tells it at one place, without one at
    /// another. The id counts, whichever comes first.
    fn is_told_inside(&mut self, task_id: u32, id: u64) -> bool {
        let Some(task) = self.tasks.get_mut(&task_id) else { return false };
        task.told_inside = false;
        let Some(slot) = task.open else { return false };
        let row = &mut self.requests[slot as usize].row;
        if row.start.is_none() || (row.id == NO_ID) == (id == NO_ID) || row.bios > 0 && row.id == NO_ID {
            return false;
        }
        task.told_inside = true;
        if row.id == NO_ID {
            row.id = id;
            row.start = None;
            self.requests_in_flight -= 1;
            self.requests[slot as usize].same_id = self.by_id.insert(id, slot).unwrap_or(NO_SLOT);
        }
        true
    }

    fn sync_end<S: Sink + ?Sized>(&mut self, e: &Event, id: u64, ret: i64, names: &Names, sink: &mut S) -> Result<()> {
        let task = self.task_of(e);
        if id == NO_ID && self.tasks.get_mut(&task).is_some_and(|task| std::mem::take(&mut task.told_inside)) {
            self.count(Reason::Duplicate, e.ts, self.at, || "the file system's end".to_owned());
            return Ok(());
        }
        let slot = match self.find(task, id) {
            Some(slot) => slot,
            None if self.ended.contains(&(task, id)) => {
                return self.lose(Reason::DuplicateEnd, e.ts, sink, || format!("exit id {id}"));
            }
            None => self.open_orphan(e, id, names, sink)?,
        };
        let open = &mut self.requests[slot as usize];
        if open.row.start.is_some_and(|start| start > e.ts) {
            // Counted as late; a length below zero would be a lie, so the request has no end.
            return Ok(());
        }
        if open.row.start.is_some() {
            self.requests_in_flight -= 1;
        }
        open.row.end = Some(e.ts);
        open.row.ret = Some(ret);
        open.row.last_event = open.row.last_event.max(e.ts);
        open.over = true;
        open.row.in_flight.1 = self.requests_in_flight;
        let waits = !open.open_bios.is_empty();
        let sync_id = open.row.sync_id;
        let owner = self.owner(slot);
        self.unlink(slot);
        self.remember_end(owner, id);
        if let Some(task) = self.tasks.get_mut(&owner)
            && task.open == Some(slot)
        {
            task.open = None;
        }
        if waits {
            self.lingering.push_back((e.ts, slot, sync_id));
            return Ok(());
        }
        self.settle(slot);
        self.flush(owner, names, sink)
    }

    /// Of a request in its own thread; a journal's thread has an id of its own.
    fn wait_start<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        id: u64,
        wait: WaitKind,
        transaction: u64,
        sink: &mut S,
    ) -> Result<()> {
        self.tells_waits = true;
        let Some(slot) = self.find_exact(self.task_of(e), id) else {
            if wait == WaitKind::Commit {
                self.remember_pass(id);
                return Ok(());
            }
            return self.wait_of_nobody(e, id, wait, sink);
        };
        let open = &mut self.requests[slot as usize];
        open.seen(e.ts);
        let waits = &mut open.row.waits;
        open.open_waits.push(waits.len());
        waits.push(WaitInterval { sync_id: open.row.sync_id, number: 0, wait, start: e.ts, end: e.ts, transaction });
        Ok(())
    }

    fn wait_end<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        id: u64,
        wait: WaitKind,
        transaction: u64,
        sink: &mut S,
    ) -> Result<()> {
        self.tells_waits = true;
        let Some(slot) = self.find_exact(self.task_of(e), id) else {
            return if wait == WaitKind::Commit { Ok(()) } else { self.wait_of_nobody(e, id, wait, sink) };
        };
        let open = &mut self.requests[slot as usize];
        open.seen(e.ts);
        let waits = &mut open.row.waits;
        let Some(at) = open.open_waits.iter().rposition(|&at| waits[at].wait == wait && waits[at].start <= e.ts) else {
            open.torn_waits[usize::from(wait == WaitKind::Flush)] = true;
            return self.lose(Reason::UnmatchedWait, e.ts, sink, || format!("end of a {} id {id}", wait.name()));
        };
        let waited = &mut waits[open.open_waits.remove(at)];
        waited.end = e.ts;
        if transaction != 0 {
            waited.transaction = transaction;
        }
        Ok(())
    }

    /// In a thread that works for nothing, for the background or for another's request it is none of ours.
    fn wait_of_nobody<S: Sink + ?Sized>(&mut self, e: &Event, id: u64, wait: WaitKind, sink: &mut S) -> Result<()> {
        if id == 0 || self.passes.contains(&id) || self.by_id.contains_key(&id) {
            return Ok(());
        }
        self.lose(Reason::UnmatchedWait, e.ts, sink, || format!("{} of no request, id {id}", wait.name()))
    }

    fn owner(&self, slot: Slot) -> u32 {
        let row = &self.requests[slot as usize].row;
        self.task(row.tid, row.pid)
    }

    /// The request that a thread has open, if no id tells it.
    fn open_without_id(&self, task: u32) -> Option<Slot> {
        let slot = self.tasks.get(&task)?.open?;
        (self.requests[slot as usize].row.id == NO_ID).then_some(slot)
    }

    fn find_exact(&self, task: u32, id: u64) -> Option<Slot> {
        if id == NO_ID {
            return self.open_without_id(task);
        }
        let mut slot = *self.by_id.get(&id)?;
        while slot != NO_SLOT {
            if self.owner(slot) == task {
                return Some(slot);
            }
            slot = self.requests[slot as usize].same_id;
        }
        None
    }

    /// By (task, id), else the one open request with that id.
    fn find(&self, task: u32, id: u64) -> Option<Slot> {
        if id == NO_ID {
            return self.open_without_id(task);
        }
        let first = *self.by_id.get(&id)?;
        if self.owner(first) == task || self.requests[first as usize].same_id == NO_SLOT {
            return Some(first);
        }
        self.find_exact(task, id)
    }

    /// A new request, first named by this event.
    fn open_request<S: Sink + ?Sized>(&mut self, e: &Event, id: u64, names: &Names, sink: &mut S) -> Result<Slot> {
        let task_id = self.task_of(e);
        self.leave_sync(task_id, names, sink)?;
        let row = Request {
            sync_id: self.next_sync,
            id,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            process: self.process_name(e.pid),
            fs: NameId::NONE,
            path: NameId::NONE,
            dev: Dev::UNKNOWN,
            ino: 0,
            datasync: None,
            call: None,
            call_only: false,
            first_event: e.ts,
            last_event: e.ts,
            start: None,
            end: None,
            ret: None,
            first_submit: None,
            last_complete: None,
            submit_missing: false,
            complete_missing: false,
            extent: Extent::default(),
            bios: 0,
            bios_unseen: false,
            confidence: Confidence::Exact,
            waits: Vec::new(),
            waits_known: (false, false),
            in_flight: (self.requests_in_flight, self.requests_in_flight),
        };
        self.next_sync += 1;
        let same_id = if id == NO_ID { NO_SLOT } else { self.by_id.get(&id).copied().unwrap_or(NO_SLOT) };
        let slot = if let Some(slot) = self.free_requests.pop() {
            let open = &mut self.requests[slot as usize];
            open.row = row;
            open.place = self.at;
            open.by_thread = false;
            open.open_waits.clear();
            open.torn_waits = [false; 2];
            open.over = false;
            open.settled = false;
            open.same_id = same_id;
            slot
        } else {
            self.requests.push(OpenRequest {
                row,
                place: self.at,
                ranges: Ranges::default(),
                by_thread: false,
                bio_ids: Vec::new(),
                open_bios: Vec::new(),
                open_waits: Vec::new(),
                torn_waits: [false; 2],
                over: false,
                settled: false,
                same_id,
            });
            (self.requests.len() - 1) as Slot
        };
        if id != NO_ID {
            self.by_id.insert(id, slot);
        }

        let overlap = self.overlaps(task_id);
        let task = self.tasks.entry(task_id).or_default();
        task.open = (!overlap).then_some(slot);
        let mut closed_a_call = false;
        let joins = match task.groups.back_mut() {
            Some(group) if group.call_open && !overlap => {
                group.land(&mut self.requests_in_flight);
                // A second request under a call is inside it too, unless its exit was lost; then it stands beside it.
                let joins = group.requests.len() < MAX_IN_CALL;
                if !joins {
                    group.call_open = false;
                    closed_a_call = true;
                }
                joins
            }
            _ => false,
        };
        if joins {
            task.groups.back_mut().into_iter().for_each(|g| g.requests.push(slot));
        } else {
            task.groups.push_back(OpenGroup {
                call: None,
                call_open: false,
                since: e.ts,
                place: self.at,
                requests: vec![slot],
                in_flight: (0, 0),
                flies: false,
                told_by: 0,
            });
        }
        if closed_a_call {
            self.flush(task_id, names, sink)?;
        }
        Ok(slot)
    }

    /// A request whose start is not in the log, opened by another event that names its id.
    fn open_orphan<S: Sink + ?Sized>(&mut self, e: &Event, id: u64, names: &Names, sink: &mut S) -> Result<Slot> {
        let slot = self.open_request(e, id, names, sink)?;
        let task = self.task_of(e);
        self.take_call(task, slot);
        let row = &mut self.requests[slot as usize].row;
        if row.call.is_some() {
            row.confidence = Confidence::Inferred;
        }
        Ok(slot)
    }

    /// The last call of the task that no request has taken becomes the request's.
    fn take_call(&mut self, task_id: u32, slot: Slot) {
        let overlaps = self.overlaps(task_id);
        let Some(task) = self.tasks.get_mut(&task_id) else { return };
        let row = &mut self.requests[slot as usize].row;
        // A late request may be older than the call that stands open now.
        let since = row.first_event;
        let free =
            |g: &OpenGroup| g.call_open && g.call.as_ref().is_some_and(|c| c.sync_id.is_none() && c.enter <= since);
        let take = |call: &mut Call, row: &mut Request| {
            call.sync_id = Some(row.sync_id);
            row.call = Some(CallOf {
                call_id: call.call_id,
                op: call.op,
                enter: call.enter,
                exit: call.exit,
                stack: call.stack,
            });
        };
        if !overlaps {
            if let Some(group) = task.groups.back_mut().filter(|g| free(g))
                && let Some(call) = &mut group.call
            {
                take(call, row);
            }
            return;
        }
        let candidates = task.groups.iter().filter(|g| free(g)).count();
        let Some(index) = task.groups.iter().rposition(free) else { return };
        if candidates > 1 {
            row.confidence = Confidence::Inferred;
        }
        task.groups[index].land(&mut self.requests_in_flight);
        if let Some(call) = &mut task.groups[index].call {
            take(call, row);
        }
        // It leaves the group of its own that it was opened in.
        if let Some(own) = task.groups.iter().rposition(|g| g.call.is_none() && g.requests == [slot]) {
            task.groups.remove(own);
            let index = if own < index { index - 1 } else { index };
            task.groups[index].requests.push(slot);
        }
    }

    /// A thread that enters or leaves a call, or another sync function, is in none: the end of what is open there was lost.
    fn leave_sync<S: Sink + ?Sized>(&mut self, task: u32, names: &Names, sink: &mut S) -> Result<()> {
        match self.tasks.get_mut(&task).and_then(|t| t.open.take()) {
            Some(before) => self.abandon(before, names, sink),
            None => Ok(()),
        }
    }

    /// The end of an open request is lost.
    fn abandon<S: Sink + ?Sized>(&mut self, slot: Slot, names: &Names, sink: &mut S) -> Result<()> {
        // An end that comes after all would make it overlap the next one.
        self.unlink(slot);
        let open = &mut self.requests[slot as usize];
        open.over = true;
        if open.open_bios.is_empty() {
            self.settle(slot);
            let owner = self.owner(slot);
            return self.flush(owner, names, sink);
        }
        let sync_id = open.row.sync_id;
        self.lingering.push_back((self.now, slot, sync_id));
        Ok(())
    }

    /// Nothing more can come: the row is final.
    fn settle(&mut self, slot: Slot) {
        let open = &mut self.requests[slot as usize];
        if open.settled {
            return;
        }
        open.settled = true;
        let row = &mut open.row;
        (row.extent.ranges, row.extent.span) = open.ranges.summary();
        row.bios_unseen = row.id == NO_ID && !self.blocks.knows(None);
        if row.start.is_some() && row.end.is_none() {
            self.requests_in_flight -= 1;
            row.in_flight.1 = self.requests_in_flight;
        }
        // A wait that has one end, or that lies outside of its request, is none whose length is known.
        let (from, to) = (row.start.unwrap_or(i64::MIN), row.end.unwrap_or(i64::MAX));
        let (mut at, mut torn) = (0, Vec::new());
        row.waits.retain(|waited| {
            let (is_open, inside) = (open.open_waits.contains(&at), from <= waited.start && waited.end <= to);
            at += 1;
            if is_open || !inside {
                open.torn_waits[usize::from(waited.wait == WaitKind::Flush)] = true;
            }
            // Where the request has no end either, that says it all.
            if !inside || is_open && row.end.is_some() {
                torn.push((waited.wait, waited.start));
            }
            !is_open && inside
        });
        row.waits.sort_by_key(|waited| (waited.start, std::cmp::Reverse(waited.end)));
        row.waits.iter_mut().zip(1..).for_each(|(waited, number)| waited.number = number);
        open.open_waits.clear();
        let told = |known: bool, torn: bool| known && self.tells_waits && !torn;
        row.waits_known = (told(row.waits_known.0, open.torn_waits[0]), told(row.waits_known.1, open.torn_waits[1]));
        let (id, first, place) = (row.id, row.first_event, open.place);
        let (started, ended) = (row.start.is_some(), row.end.is_some());
        if !started {
            self.count(Reason::StartMissing, first, place, || format!("the first event of request id {id}"));
        }
        for (wait, start) in torn {
            self.count(Reason::UnmatchedWait, start, place, || format!("{} id {id}", wait.name()));
        }
        if !ended {
            let what = if started { "start" } else { "the first event of request" };
            self.count(Reason::EndMissing, first, place, || format!("{what} id {id}"));
        }
        self.unlink(slot);
    }

    /// A worker may submit for a pass when it has ended, so it is not forgotten at once.
    fn remember_pass(&mut self, id: u64) {
        // A flusher that works for a sync() or syncfs() has the id of that.
        if !self.by_id.contains_key(&id) && self.passes.insert(id) {
            self.passes_order.push_back(id);
            if self.passes_order.len() > REMEMBERED_PASSES
                && let Some(old) = self.passes_order.pop_front()
            {
                self.passes.remove(&old);
            }
        }
    }

    /// An id that no event begins, and that a submit says to be for nobody's sync: what its folios opened is no request.
    fn is_background(&mut self, e: &Event, id: u64) {
        if id == 0 || !self.passes.is_empty() && self.passes.contains(&id) {
            return;
        }
        if let Some(slot) = self.find(self.task_of(e), id) {
            let open = &self.requests[slot as usize];
            // Of a sync() or the like, which has begun; or some bio has been told as its own.
            if open.row.start.is_some() || open.over || open.open_bios.len() != open.bio_ids.len() {
                return;
            }
            self.dissolve(slot);
        }
        self.remember_pass(id);
    }

    /// Takes back a request that no start has told; its bios are nobody's.
    fn dissolve(&mut self, slot: Slot) {
        self.unlink(slot);
        let owner = self.owner(slot);
        let open = &mut self.requests[slot as usize];
        for &bio in &open.open_bios {
            let bio = &mut self.bios[bio as usize];
            bio.request = NO_SLOT;
            bio.row.sync_id = None;
        }
        open.settled = true;
        open.ranges.clear();
        open.bio_ids.clear();
        open.open_bios.clear();
        self.free_requests.push(slot);
        let sync_id = open.row.sync_id;
        let Some(task) = self.tasks.get_mut(&owner) else { return };
        if task.open == Some(slot) {
            task.open = None;
        }
        for group in &mut task.groups {
            group.requests.retain(|&other| other != slot);
            if let Some(call) = group.call.as_mut().filter(|call| call.sync_id == Some(sync_id)) {
                call.sync_id = None;
            }
        }
        task.groups.retain(|group| group.call.is_some() || !group.requests.is_empty());
    }

    fn remember_end(&mut self, task: u32, id: u64) {
        if id != NO_ID && self.ended.insert((task, id)) {
            self.ended_order.push_back((task, id));
            if self.ended_order.len() > REMEMBERED_ENDS
                && let Some(old) = self.ended_order.pop_front()
            {
                self.ended.remove(&old);
            }
        }
    }

    /// Its id no longer finds it.
    fn unlink(&mut self, slot: Slot) {
        let (id, next) = (self.requests[slot as usize].row.id, self.requests[slot as usize].same_id);
        let Some(&first) = self.by_id.get(&id) else { return };
        if first == slot {
            if next == NO_SLOT {
                self.by_id.remove(&id);
            } else {
                self.by_id.insert(id, next);
            }
            return;
        }
        let mut at = first;
        while at != NO_SLOT {
            let after = self.requests[at as usize].same_id;
            if after == slot {
                self.requests[at as usize].same_id = next;
                return;
            }
            at = after;
        }
    }

    /// Hands on the groups of a task that are settled, in their order.
    fn flush<S: Sink + ?Sized>(&mut self, task_id: u32, names: &Names, sink: &mut S) -> Result<()> {
        let overlaps = self.overlaps(task_id);
        let mut at = 0;
        loop {
            let Some(task) = self.tasks.get_mut(&task_id) else { return Ok(()) };
            let Some(group) = task.groups.get(at) else { return Ok(()) };
            let ready = !group.call_open && group.requests.iter().all(|&r| self.requests[r as usize].settled);
            if !ready {
                if overlaps {
                    // Overlapping requests have no order to keep.
                    at += 1;
                    continue;
                }
                return Ok(());
            }
            let Some(mut group) = task.groups.remove(at) else { return Ok(()) };
            self.emit(&mut group, names, sink)?;
        }
    }

    fn emit<S: Sink + ?Sized>(&mut self, group: &mut OpenGroup, names: &Names, sink: &mut S) -> Result<()> {
        group.land(&mut self.requests_in_flight);
        let alone = self.request_alone(group);
        if let Some(call) = &group.call
            && call.path.is_some()
        {
            // Another log knows which file the call was made for, where the kernel tells none, or the last part of its name.
            let path = names.get(call.path);
            for &slot in &group.requests {
                let row = &mut self.requests[slot as usize].row;
                let is_less = |own: &[u8]| !own.starts_with(b"/") && path.ends_with(own) && path.starts_with(b"/");
                if call.sync_id == Some(row.sync_id) && (!row.path.is_some() || is_less(names.get(row.path))) {
                    row.path = call.path;
                }
            }
        }
        if let Some(call) = &mut group.call {
            let mut rows = group.requests.iter().map(|&slot| &self.requests[slot as usize].row).chain(&alone);
            let own = rows.find(|row| Some(row.sync_id) == call.sync_id);
            call.request_end = own.and_then(|row| row.end);
            if call.sync_id.is_none() {
                let (op, enter) = (call.op, call.enter);
                self.count(Reason::UnmatchedCall, enter, group.place, || op.name().to_owned());
            }
        }
        let mut group_requests: Vec<GroupRequest<'_>> = group
            .requests
            .iter()
            .map(|&slot| {
                let open = &self.requests[slot as usize];
                GroupRequest { request: &open.row, bio_ids: &open.bio_ids }
            })
            .collect();
        group_requests.extend(alone.iter().map(|request| GroupRequest { request, bio_ids: &[] }));
        self.requests_made += group_requests.len() as u64;
        sink.group(&Group { call: group.call.as_ref(), requests: &group_requests }, names)?;
        drop(group_requests);
        for slot in group.requests.drain(..) {
            let open = &mut self.requests[slot as usize];
            open.ranges.clear();
            open.bio_ids.clear();
            open.open_bios.clear();
            self.free_requests.push(slot);
        }
        Ok(())
    }

    /// The request of a call that nobody took, if nobody could: no source tells more of it than that it was made.
    fn request_alone(&mut self, group: &mut OpenGroup) -> Option<Request> {
        let call =
            group.call.as_mut().filter(|call| call.call_only && call.sync_id.is_none() && group.requests.is_empty())?;
        let row = Request {
            sync_id: self.next_sync,
            id: NO_ID,
            tid: call.tid,
            pid: call.pid,
            comm: call.comm,
            process: call.process,
            fs: NameId::NONE,
            path: call.path,
            dev: Dev::UNKNOWN,
            ino: 0,
            datasync: None,
            call: Some(CallOf {
                call_id: call.call_id,
                op: call.op,
                enter: call.enter,
                exit: call.exit,
                stack: call.stack,
            }),
            call_only: true,
            first_event: call.enter,
            last_event: call.exit.unwrap_or(call.enter),
            start: None,
            end: call.exit,
            ret: call.ret,
            first_submit: None,
            last_complete: None,
            submit_missing: false,
            complete_missing: false,
            extent: Extent::default(),
            bios: 0,
            bios_unseen: true,
            confidence: Confidence::Unknown,
            waits: Vec::new(),
            waits_known: (false, false),
            in_flight: group.in_flight,
        };
        self.next_sync += 1;
        call.sync_id = Some(row.sync_id);
        let (op, enter) = (call.op.name(), call.enter);
        self.count(Reason::CallOnly, enter, group.place, || op.to_owned());
        if row.missing().is_some() {
            self.count(Reason::EndMissing, enter, group.place, || format!("{op} without its return"));
        }
        Some(row)
    }

    /// Requests that have waited long enough for their bios, and calls of processes that nobody will take any more.
    fn expire<S: Sink + ?Sized>(&mut self, names: &Names, sink: &mut S) -> Result<()> {
        while let Some(&(since, slot, sync_id)) = self.lingering.front() {
            let open = &self.requests[slot as usize];
            let gone = open.settled || open.row.sync_id != sync_id;
            if !gone && self.now.saturating_sub(since) <= LINGER_NS && self.lingering.len() <= MAX_LINGERING {
                break;
            }
            self.lingering.pop_front();
            if !gone {
                self.give_up(slot, names, sink)?;
            }
        }
        if self.now.saturating_sub(self.looked_at) > LINGER_NS / 16 {
            self.looked_at = self.now;
            for slot in self.blocks.take_older(self.now.saturating_sub(LINGER_NS)) {
                if slot != NO_SLOT {
                    self.give_up_bio(slot, names, sink)?;
                }
            }
            self.expire_calls(names, sink)?;
        }
        Ok(())
    }

    fn expire_calls<S: Sink + ?Sized>(&mut self, names: &Names, sink: &mut S) -> Result<()> {
        let mut due = Vec::new();
        let of_processes = self.tasks_are_processes;
        for (&id, task) in self.tasks.iter_mut().filter(|(id, _)| overlaps(of_processes, **id)) {
            let too_many = task.groups.len() > MAX_LINGERING;
            for group in task.groups.iter_mut().filter(|group| group.call_open) {
                if too_many || self.now.saturating_sub(group.since) > LINGER_NS {
                    group.call_open = false;
                    due.push(id);
                } else {
                    break;
                }
            }
        }
        due.dedup();
        for id in due {
            self.flush(id, names, sink)?;
        }
        Ok(())
    }

    /// Its bios that are not done never will be.
    fn give_up<S: Sink + ?Sized>(&mut self, slot: Slot, names: &Names, sink: &mut S) -> Result<()> {
        // A copy: each that is given up leaves the list, and the last one settles the request.
        for bio in self.requests[slot as usize].open_bios.clone() {
            self.give_up_bio(bio, names, sink)?;
        }
        if !self.requests[slot as usize].settled {
            self.settle(slot);
            let owner = self.owner(slot);
            self.flush(owner, names, sink)?;
        }
        Ok(())
    }

    // ---- bios

    fn add_folio<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        offset: u64,
        len: u64,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        let task = self.task_of(e);
        let mut slot = self.filling.get(&address).copied();
        if let Some(other) = slot {
            // A completion without a submit has ended it, so this is the next bio at its address.
            if self.bios[other as usize].early_complete.is_some() || !self.is_filled_by(other, task, id) {
                self.filling.remove(&address);
                self.give_up_bio(other, names, sink)?;
                slot = None;
            }
        }
        let slot = if let Some(slot) = slot {
            slot
        } else {
            // The kernel frees a bio before its address comes back: the completion of the one before is lost.
            if let Some(before) = self.flying.remove(&address) {
                self.give_up_bio(before, names, sink)?;
            }
            let slot = self.open_bio(e, id, address, names, sink)?;
            self.filling.insert(address, slot);
            slot
        };
        let bio = &mut self.bios[slot as usize];
        bio.row.extent.bytes += len;
        bio.row.extent.folios += 1;
        bio.ranges.add(offset, len);
        if bio.request != NO_SLOT {
            let open = &mut self.requests[bio.request as usize];
            open.row.extent.bytes += len;
            open.row.extent.folios += 1;
            open.seen(e.ts);
            open.ranges.add(offset, len);
        }
        Ok(())
    }

    /// Whether a folio or a submit of this task and id belongs to a bio that is being filled.
    fn is_filled_by(&self, slot: Slot, task: u32, id: u64) -> bool {
        let bio = &self.bios[slot as usize];
        bio.row.id == id
            && (bio.request == NO_SLOT || self.owner(bio.request) == task || self.find_exact(task, id).is_none())
    }

    fn open_bio<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        names: &Names,
        sink: &mut S,
    ) -> Result<Slot> {
        let request = if id == 0 || !self.passes.is_empty() && self.passes.contains(&id) {
            NO_SLOT
        } else {
            match self.find(self.task_of(e), id) {
                Some(slot) => slot,
                None => self.open_orphan(e, id, names, sink)?,
            }
        };
        Ok(self.bio_of(e, id, address, request))
    }

    /// A new bio of a request, or of none.
    fn bio_of(&mut self, e: &Event, id: u64, address: u64, request: Slot) -> Slot {
        let bio_id = self.next_bio;
        self.next_bio += 1;
        let mut sync_id = None;
        let mut confidence = Confidence::Exact;
        if request != NO_SLOT {
            let open = &mut self.requests[request as usize];
            if open.by_thread {
                confidence = Confidence::Inferred;
                open.row.confidence = open.row.confidence.max(confidence);
            }
            open.row.bios += 1;
            open.bio_ids.push(bio_id);
            sync_id = Some(open.row.sync_id);
        }
        let row = Bio {
            bio_id,
            sync_id,
            id,
            address,
            dev: Dev::UNKNOWN,
            sector: NO_SECTOR,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            first_event: e.ts,
            submit: None,
            complete: None,
            extent: Extent::default(),
            confidence,
            in_flight_at_submit: (0, 0),
            in_flight_at_complete: (0, 0),
        };
        let slot = if let Some(slot) = self.free_bios.pop() {
            let bio = &mut self.bios[slot as usize];
            bio.row = row;
            bio.place = self.at;
            bio.ranges.clear();
            bio.request = request;
            bio.early_complete = None;
            slot
        } else {
            self.bios.push(OpenBio { row, place: self.at, ranges: Ranges::default(), request, early_complete: None });
            (self.bios.len() - 1) as Slot
        };
        if request != NO_SLOT {
            self.requests[request as usize].open_bios.push(slot);
        }
        slot
    }

    fn submit<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        (dev, sector): (Dev, i64),
        bytes_of_bio: u64,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        let filled = self.filling.get(&address).copied();
        let slot = match filled {
            Some(slot) if self.is_filled_by(slot, self.task_of(e), id) => {
                self.filling.remove(&address);
                slot
            }
            Some(other) => {
                self.filling.remove(&address);
                self.give_up_bio(other, names, sink)?;
                self.open_bio(e, id, address, names, sink)?
            }
            None => self.open_bio(e, id, address, names, sink)?,
        };
        if let Some(before) = self.flying.remove(&address) {
            self.give_up_bio(before, names, sink)?;
        }
        if let Some((ts, place)) = self.bios[slot as usize].early_complete.take() {
            self.lose_at(Reason::UnmatchedComplete, ts, place, sink, || format!("bio_complete bio 0x{address:x}"))?;
        }
        self.flying.insert(address, slot);
        if bytes_of_bio > 0 {
            let bio = &mut self.bios[slot as usize];
            bio.row.extent.bytes += bytes_of_bio;
            bio.row.extent.of_bios = true;
            if bio.request != NO_SLOT {
                let extent = &mut self.requests[bio.request as usize].row.extent;
                extent.bytes += bytes_of_bio;
                extent.of_bios = true;
            }
        }
        let bytes = self.bios[slot as usize].row.extent.bytes;
        let load = self.load(dev);
        load.bios += 1;
        load.bytes += bytes;
        let in_flight = (load.bios, load.bytes);
        let bio = &mut self.bios[slot as usize];
        bio.row.in_flight_at_submit = in_flight;
        bio.row.submit = Some(e.ts);
        bio.place = self.at;
        bio.row.sector = sector;
        bio.row.dev = dev;
        bio.row.tid = e.tid;
        bio.row.pid = e.pid;
        bio.row.comm = e.comm;
        let request = bio.request;
        if dev.is_known() && sector != NO_SECTOR {
            self.flying_by_sector.entry((dev, sector)).or_default().push_back(slot);
        }
        if request != NO_SLOT {
            let open = &mut self.requests[request as usize];
            open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            open.seen(e.ts);
        }
        Ok(())
    }

    /// A bio that the block layer tells of: the request's that its thread is in, if no id says whose it is.
    fn block_submit(&mut self, e: &Event, dev: Dev, sector: i64, bytes: u64) {
        if self.blocks.arrives(dev, sector) == Queued::GoesOn {
            self.count(Reason::Remapped, e.ts, self.at, || format!("to dev {dev} sector {sector}"));
            self.blocks.queue(dev, sector, bytes, e.ts, NO_SLOT);
            return;
        }
        if self.flying_by_sector.contains_key(&(dev, sector)) {
            self.count(Reason::Duplicate, e.ts, self.at, || format!("a bio to dev {dev} sector {sector}"));
            self.blocks.queue(dev, sector, bytes, e.ts, NO_SLOT);
            return;
        }
        let inside =
            self.open_without_id(self.task_of(e)).filter(|&slot| self.requests[slot as usize].row.start.is_some());
        // Where every log that could tell the request's end is over, it is not known what the thread does.
        let log = self.places.log_of(self.at);
        let inside = inside.filter(|_| !self.tellers.several() || self.tellers.anyone_tells(e.tid, e.ts, log));
        let slot = self.bio_of(e, NO_ID, 0, inside.unwrap_or(NO_SLOT));
        self.blocks.queue(dev, sector, bytes, e.ts, slot);
        let load = self.load(dev);
        load.bios += 1;
        load.bytes += bytes;
        let in_flight = (load.bios, load.bytes);
        let bio = &mut self.bios[slot as usize];
        bio.row.in_flight_at_submit = in_flight;
        bio.row.submit = Some(e.ts);
        bio.row.sector = sector;
        bio.row.dev = dev;
        bio.row.extent.bytes = bytes;
        if let Some(request) = inside {
            let open = &mut self.requests[request as usize];
            open.row.extent.bytes += bytes;
            open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            open.seen(e.ts);
        }
    }

    fn block_complete<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        dev: Dev,
        sector: i64,
        bytes: u64,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        if self.tellers.several() {
            let slot = self.blocks.at(dev, sector).filter(|&slot| slot != NO_SLOT);
            let of = slot.map(|slot| self.places.log_of(self.bios[slot as usize].place));
            if !self.tellers.completes(dev, e.ts, self.places.log_of(self.at), of) {
                return Ok(());
            }
        }
        let mut done = Vec::new();
        if !self.blocks.complete(dev, sector, bytes, e.ts, |slot| done.push(slot)) {
            // Where no bio is told by the block layer, its completions are of those that are told otherwise.
            if self.blocks.knows(Some(dev)) {
                let what = || format!("completion of dev {dev} sector {sector}");
                return self.lose(Reason::UnmatchedComplete, e.ts, sink, what);
            }
            return Ok(());
        }
        for slot in done.into_iter().filter(|&slot| slot != NO_SLOT) {
            self.unload(slot);
            self.bios[slot as usize].row.complete = Some(e.ts);
            self.close_bio(slot, names, sink)?;
        }
        Ok(())
    }

    /// A bio that is told, here or by another event, goes on to another device; what is queued there is the same one.
    fn block_remap(&mut self, from: (Dev, i64), to: (Dev, i64)) {
        if self.flying_by_sector.contains_key(&from) || self.blocks.flies(from.0, from.1) {
            self.blocks.remap(to);
        }
    }

    fn complete<S: Sink + ?Sized>(
        &mut self,
        e: &Event,
        address: u64,
        sector: i64,
        dev: Dev,
        names: &Names,
        sink: &mut S,
    ) -> Result<()> {
        let slot = if address == 0 {
            self.flying_by_sector.get(&(dev, sector)).and_then(|slots| slots.front().copied())
        } else {
            self.flying.get(&address).copied()
        };
        // One that is late may be older than the submit: then it is of an earlier bio at this address.
        let slot = slot.filter(|&slot| self.bios[slot as usize].row.submit.is_none_or(|submit| submit <= e.ts));
        let Some(slot) = slot else {
            // Perhaps of a bio whose submit is lost; that is known only when no submit comes.
            if address != 0
                && let Some(&filling) = self.filling.get(&address)
                && self.bios[filling as usize].early_complete.is_none()
                && self.bios[filling as usize].row.first_event <= e.ts
            {
                self.bios[filling as usize].early_complete = Some((e.ts, self.at));
                return Ok(());
            }
            return self.lose(Reason::UnmatchedComplete, e.ts, sink, || {
                if address == 0 {
                    format!("bio_complete dev {dev} sector {sector}")
                } else {
                    format!("bio_complete bio 0x{address:x}")
                }
            });
        };
        self.forget_address(slot);
        self.unload(slot);
        self.bios[slot as usize].row.complete = Some(e.ts);
        self.close_bio(slot, names, sink)
    }

    /// Takes a bio out of the maps that find it by its address.
    fn forget_address(&mut self, slot: Slot) {
        let row = &self.bios[slot as usize].row;
        for map in [&mut self.filling, &mut self.flying] {
            if map.get(&row.address) == Some(&slot) {
                map.remove(&row.address);
            }
        }
        if row.dev.is_known() && row.sector != NO_SECTOR {
            let key = (row.dev, row.sector);
            if let Some(slots) = self.flying_by_sector.get_mut(&key) {
                slots.retain(|&s| s != slot);
                if slots.is_empty() {
                    self.flying_by_sector.remove(&key);
                }
            }
        }
    }

    /// A bio whose submit or completion will not come; it is in none of the maps any more.
    fn give_up_bio<S: Sink + ?Sized>(&mut self, slot: Slot, names: &Names, sink: &mut S) -> Result<()> {
        self.forget_address(slot);
        let row = &self.bios[slot as usize].row;
        self.blocks.forget(row.dev, row.sector, slot);
        let bio = &mut self.bios[slot as usize];
        let (ts, address, id, place) = (bio.row.ts(), bio.row.address, bio.row.id, bio.place);
        let (dev, sector) = (bio.row.dev, bio.row.sector);
        let (reason, event) = if bio.row.submit.is_none() {
            bio.row.complete = bio.early_complete.take().map(|(ts, _)| ts);
            (Reason::NeverSubmitted, "bio_add_folio")
        } else {
            (Reason::NeverCompleted, "bio_submit")
        };
        if reason == Reason::NeverCompleted {
            self.unload(slot);
        }
        self.lose_at(reason, ts, place, sink, || {
            if id == NO_ID {
                format!("a bio to dev {dev} sector {sector}")
            } else {
                format!("{event} id {id} bio 0x{address:x}")
            }
        })?;
        self.close_bio(slot, names, sink)
    }

    fn close_bio<S: Sink + ?Sized>(&mut self, slot: Slot, names: &Names, sink: &mut S) -> Result<()> {
        let bio = &mut self.bios[slot as usize];
        (bio.row.extent.ranges, bio.row.extent.span) = bio.ranges.summary();
        sink.bio(&bio.row, names)?;
        let (submit, complete, request, address) = (bio.row.submit, bio.row.complete, bio.request, bio.row.address);
        self.free_bios.push(slot);
        if request == NO_SLOT {
            return Ok(());
        }
        let open = &mut self.requests[request as usize];
        open.open_bios.retain(|&s| s != slot);
        if let Some(ts) = complete {
            open.seen(ts);
        }
        let over = open.over;
        let row = &mut open.row;
        row.submit_missing |= submit.is_none();
        match complete {
            None => row.complete_missing = true,
            Some(ts) => row.last_complete = Some(row.last_complete.map_or(ts, |last| last.max(ts))),
        }
        let late = complete.zip(row.end).is_some_and(|(complete, end)| complete > end);
        if late && let Some(ts) = complete {
            self.count(Reason::CompletedAfterEnd, ts, self.at, || format!("bio_complete bio 0x{address:x}"));
        }
        if over && self.requests[request as usize].open_bios.is_empty() && !self.requests[request as usize].settled {
            self.settle(request);
            let owner = self.owner(request);
            self.flush(owner, names, sink)?;
        }
        Ok(())
    }

    fn load(&mut self, dev: Dev) -> &mut InFlight {
        let at = self.device_load.iter().position(|(d, _)| *d == dev).unwrap_or_else(|| {
            self.device_load.push((dev, InFlight::default()));
            self.device_load.len() - 1
        });
        &mut self.device_load[at].1
    }

    fn unload(&mut self, slot: Slot) {
        let (dev, bytes) = (self.bios[slot as usize].row.dev, self.bios[slot as usize].row.extent.bytes);
        let load = self.load(dev);
        load.bios -= 1;
        load.bytes -= bytes;
        let left = (load.bios, load.bytes);
        self.bios[slot as usize].row.in_flight_at_complete = left;
    }

    fn lose<S: Sink + ?Sized>(
        &mut self,
        reason: Reason,
        ts: i64,
        sink: &mut S,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        self.lose_at(reason, ts, self.at, sink, text)
    }

    fn lose_at<S: Sink + ?Sized>(
        &mut self,
        reason: Reason,
        ts: i64,
        place: Location,
        sink: &mut S,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        let tally = self.losses.add(reason, 1, Some(ts));
        let text = self.places.tell(place, &text());
        sink.loss(reason, ts, &text)?;
        tally.example.get_or_insert(text);
        Ok(())
    }

    /// A loss that has no mark in the trace of its own: its request or call shows it.
    fn count(&mut self, reason: Reason, ts: i64, place: Location, text: impl FnOnce() -> String) {
        let tally = self.losses.add(reason, 1, Some(ts));
        if tally.example.is_none() {
            tally.example = Some(self.places.tell(place, &text()));
        }
    }
}
