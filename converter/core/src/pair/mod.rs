//! Pairing: which call, bio and wait belongs to which request. docs/reference/pairing.md states the rules.
//!
//! Events arrive in the order of time, apart from late ones, and without the duplicates of other logs. A row leaves as soon as nothing
//! more can change it. This file dispatches the events, closes what has waited too long, and counts losses.
//!
//! `stores/` holds what is kept, and what each store can do on its own. The `Pairer` owns the stores. A rule works on several of them, in the
//! file of its name:
//!
//! | store | holds | who changes it |
//! |---|---|---|
//! | `tasks` | threads, and the calls and requests of each | rules of calls and requests; `behind`, `lone_calls`, `origins`, `torn` |
//! | `requests` | sync requests, by id and by thread | all rules but `flushes`, `marks` and `write_waits` |
//! | `bios` | bios, by address and by place | `bios`, `probe_bios`, `block_layer`, `block_requests`, `flushes`; `lost_bios` and `torn` doubt them |
//! | `queues` | what the block layer has in flight | `block_layer`, `block_requests`; `bios` takes out what it gives up |
//! | `flushes` | flushes in flight, by device | `flushes` |
//! | `block_requests` | what devices report, and rows that are held back | `block_layer`, `block_requests`, `flushes` |
//! | `probes`, `probe_bios` | what probes report, and bios that they fill | `probes`, `probe_bios` |
//! | `commits`, `journals` | commits and their waiters, the steps of commits | `commits`, `probes`, `waits`, and this file |
//! | `files` | paths and writers of files | `probes` and `requests`; `bios` and `write_waits` ask it |
//! | `threads` | states of threads, and which phases the inputs show | `threads`; others note what they see |
//! | `seen` | what the inputs report | the rule of each kind of event; all ask it |
//! | `lost_bios` | completions of unknown bios | rules of bios; `requests` asks it |
//! | `ends`, `file_ops`, `lone_calls`, `marks`, `origins`, `torn`, `waits`, `write_waits`, `behind`, `damaged`, `block_layer` | | the rule of the same name |
//!
//! `phases` and `parts` are rules that need no store. `names_in_use` visits all stores. `writes` is a pairer of its own, for the table of writes.

mod behind;
mod bios;
mod block_layer;
mod block_reports;
mod block_requests;
mod calls;
mod commits;
mod damaged;
mod ends;
mod file_ops;
mod flushes;
mod lingering;
mod lone_calls;
mod lost_bios;
mod lost_calls;
mod marks;
mod names_in_use;
mod origins;
mod parts;
mod phases;
mod probe_bios;
mod probes;
mod requests;
mod stores;
mod threads;
mod torn;
mod waits;
mod write_waits;
pub mod writes;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;

use self::lingering::LINGER_NS;
use self::stores::behind::HeldExit;
use self::stores::bios::Bios;
use self::stores::block_layer::LastSubmit;
use self::stores::block_requests::BlockRequests;
use self::stores::commits::Commits;
use self::stores::cpus::{CpuBefore, Cpus};
use self::stores::damaged::HeldEvent;
use self::stores::ends::Ends;
use self::stores::file_ops::FileOps;
pub use self::stores::files::{Files, Writers};
use self::stores::flushes::Flushes;
use self::stores::journals::Journals;
use self::stores::lone_calls::LoneCalls;
use self::stores::lost_bios::Orphans;
use self::stores::marks::Marks;
use self::stores::origins::WaitingOrigins;
use self::stores::probes::Probes;
use self::stores::queues::BlockQueues;
use self::stores::requests::Requests;
use self::stores::seen::Seen;
use self::stores::slots::{BioSlot, RequestSlot};
use self::stores::tasks::{Exits, Tasks};
use self::stores::threads::{FileCompletions, PhasesSeen};
use self::stores::torn::TornLines;
use self::stores::write_waits::WriteWaits;
use crate::block::devices_below::DevicesBelow;
use crate::block::queue::{Completion, Decided};
use crate::collections::Map;
use crate::dedup::Provenance;
use crate::error::Result;
use crate::event::background_ids::BackgroundIds;
use crate::event::place::Place;
use crate::event::{Dev, Event, Kind, NO_ID};
use crate::location::{Location, Locations};
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::Process;
use crate::sink::Sink;

/// Where rows go, and the names that they refer to.
pub struct Out<'a> {
    pub names: &'a Names,
    pub sink: &'a mut dyn Sink,
}

/// Names the first event of a request in an example of a loss.
fn first_event_of(id: u64) -> String {
    if id == NO_ID { "the first event of a request".to_owned() } else { format!("the first event of request id {id}") }
}

/// Names the id of a request in an example of a loss, if the source has ids.
fn of_request(id: u64) -> String {
    if id == NO_ID { String::new() } else { format!(" id {id}") }
}

/// All that is open, and what is known of the inputs.
pub struct Pairer {
    tasks: Tasks,
    requests: Requests,
    bios: Bios,
    queues: BlockQueues,
    flushes: Flushes,
    torn_lines: TornLines,
    /// Devices whose bios are queued once more after a remap: as copies, on the devices below.
    queues_below: HashSet<Dev, FixedState>,
    block_requests: BlockRequests,
    devices_below: DevicesBelow,
    /// By thread: from which device and to where it has redirected a bio last.
    last_remaps: Map<u32, (Dev, Place)>,
    /// By thread: what it has submitted last to the block layer.
    last_submits: Map<u32, LastSubmit>,
    ends: Ends,
    lone_calls: LoneCalls,
    commits: Commits,
    journals: Journals,
    file_completions: FileCompletions,
    orphans: Orphans,
    /// Address and time of the last completion by an address.
    last_complete: Option<(u64, i64)>,
    files: Files,
    seen: Seen,
    phases_seen: PhasesSeen,
    cpus: Cpus,
    cpu_before: CpuBefore,
    probes: Probes,
    write_waits: WriteWaits,
    file_ops: FileOps,
    background: BackgroundIds,
    marks: Marks,
    /// Events that wait for the next event of their threads, at most one of each thread.
    held: Vec<HeldEvent>,
    /// The time of the held event that is being used.
    replayed: Option<i64>,
    /// Exits of calls that wait for the ends of their requests, at most one of each thread.
    held_exits: Vec<HeldExit>,
    /// Threads with a request that waits for their next call, and when it began.
    awaiting: VecDeque<(i64, u32)>,
    exits: Exits,
    /// Processes, as far as they are known.
    processes: Map<u32, Process>,
    next_call_id: u64,
    /// Time of the first event.
    first_ts: i64,
    now: i64,
    /// `now` before the current event.
    now_before: i64,
    /// Between which times late events may have been, if there were any.
    late: Option<(i64, i64)>,
    /// Provenance of the current event.
    provenance: Provenance,
    /// Rows of bios that wait until it is known whether their threads were in a sync.
    waiting_origins: WaitingOrigins,
    /// When expired bios and calls were last looked for.
    last_sweep: i64,
    locations: Arc<Locations>,
    pub losses: Losses,
    /// Requests that were written.
    pub request_count: u64,
}

impl Pairer {
    /// `ids_are_processes`: the inputs know processes only, so the calls of a task may overlap.
    /// `files` are those of the recorder's tables.
    pub fn new(
        ids_are_processes: bool,
        locations: Arc<Locations>,
        processes: Map<u32, Process>,
        files: Files,
        devices_below: DevicesBelow,
    ) -> Self {
        Self {
            tasks: Tasks::new(ids_are_processes),
            requests: Requests::new(),
            bios: Bios::new(),
            queues: BlockQueues::new(),
            flushes: Flushes::default(),
            torn_lines: TornLines::default(),
            queues_below: HashSet::default(),
            block_requests: BlockRequests::default(),
            devices_below,
            last_remaps: Map::default(),
            last_submits: Map::default(),
            ends: Ends::default(),
            lone_calls: LoneCalls::Undecided(0),
            commits: Commits::default(),
            journals: Journals::default(),
            file_completions: FileCompletions::default(),
            orphans: Orphans::default(),
            last_complete: None,
            files,
            seen: Seen::default(),
            phases_seen: PhasesSeen::default(),
            cpus: Cpus::default(),
            cpu_before: CpuBefore::default(),
            probes: Probes::default(),
            write_waits: WriteWaits::default(),
            file_ops: FileOps::default(),
            background: BackgroundIds::default(),
            marks: Marks::default(),
            held: Vec::new(),
            replayed: None,
            held_exits: Vec::new(),
            awaiting: VecDeque::new(),
            exits: Exits::default(),
            processes,
            next_call_id: 1,
            first_ts: i64::MAX,
            now: i64::MIN,
            now_before: i64::MIN,
            late: None,
            provenance: Provenance::of_single_log(Location::default()),
            waiting_origins: WaitingOrigins::default(),
            last_sweep: i64::MIN,
            locations,
            losses: Losses::default(),
            request_count: 0,
        }
    }

    /// The devices below each device, as far as they are known.
    pub fn devices_below(&self) -> &DevicesBelow {
        &self.devices_below
    }

    /// Takes the next event in the order of time.
    pub fn event(&mut self, event: &Event, provenance: &Provenance, out: &mut Out<'_>) -> Result<()> {
        self.provenance = *provenance;
        // A torn line may have any time, so it is not the begin of the log, and nothing expires because of it.
        if let Kind::Torn { id, bio, fact } = event.kind {
            self.torn(event, id, bio, fact);
            return Ok(());
        }
        self.now_before = self.now;
        self.now = self.now.max(event.ts);
        self.first_ts = self.first_ts.min(event.ts);
        self.expire(out)?;
        self.note_recorder(&event.kind, out)?;
        if !self.held.is_empty() {
            self.resolve_held(event, out)?;
        }
        if !self.held_exits.is_empty() {
            self.resolve_exits(event, out)?;
        }
        if self.torn_lines.have_been {
            self.catch_up(event);
        }
        self.use_event(event, out)?;
        if self.held_exits.is_empty() { Ok(()) } else { self.release_exits(out) }
    }

    /// Takes note that the log has events of bios, though none has been paired yet.
    pub fn expect_bios(&mut self) {
        self.seen.any_of_bio = true;
    }

    fn use_event(&mut self, event: &Event, out: &mut Out<'_>) -> Result<()> {
        self.seen.any_of_bio = self.seen.any_of_bio || event.kind.is_of_bio();
        match event.kind {
            Kind::BioAddFolio { id, bio, offset, len, dev, ino } => {
                self.add_folio(event, id, bio, (offset, len), (dev, ino), out)
            }
            Kind::BioSubmit { id, bio, sector, dev, background, bytes, flags } => {
                self.seen.bios = true;
                self.release_requests(out)?;
                if background {
                    self.mark_background(event, id);
                }
                self.submit(event, id, bio, Place { dev, sector }, (bytes, flags), out)
            }
            Kind::BioComplete { bio, sector, dev, error } => {
                self.complete(event, bio, Place { dev, sector }, error, out)
            }
            Kind::CallEnter { .. } => self.call_enter(event, out),
            Kind::CallExit { .. } => self.call_exit(event, out),
            Kind::SyncStart { .. } => self.sync_start(event, out),
            Kind::SyncEnd { .. } => self.sync_end(event, out),
            Kind::SyncDone { .. } => self.sync_done(event, out),
            Kind::WbStart { id } => {
                self.remember_background(id);
                Ok(())
            }
            Kind::BlockSubmit { dev, sector, bytes, flags } => {
                self.block_submit(event, Place { dev, sector }, bytes, flags, out)
            }
            Kind::BlockInsert { dev, sector, bytes, flags } => {
                self.block_insert(event, Place { dev, sector }, bytes, flags, out)
            }
            Kind::BlockIssue { dev, sector, bytes, flags } => {
                self.phases_seen.issues = true;
                self.block_issue(event, Place { dev, sector }, bytes, flags, out)
            }
            Kind::BlockDone { dev, sector, flags } => self.block_done(event, Place { dev, sector }, flags, out),
            Kind::BlockComplete { dev, sector, bytes, flags, error, is_bio } => {
                self.block_complete(&Completion { dev, sector, bytes, flags, error, is_bio, ts: event.ts }, out)
            }
            Kind::BlockReport { .. } => self.block_report(event, out),
            Kind::BlockRemap { dev, sector, bytes, from_dev, from_sector, flags } => {
                self.block_remap(
                    event,
                    Place { dev: from_dev, sector: from_sector },
                    Place { dev, sector },
                    bytes,
                    flags,
                );
                Ok(())
            }
            Kind::WaitStart { id, wait, transaction } => self.wait_start(event, id, wait, transaction, out),
            Kind::WaitEnd { id, wait, transaction } => self.wait_end(event, id, wait, transaction, out),
            Kind::Mark { phase, name, key } => {
                self.mark(event, (phase, name, key), out);
                Ok(())
            }
            Kind::CommitStart { dev, transaction } => {
                self.phases_seen.commits = true;
                self.commit_start(event, dev, transaction, out)?;
                let commit_id = self.commits.open_of(self.tasks.id_of(event));
                self.journals.start(dev, transaction, commit_id, event.ts);
                Ok(())
            }
            Kind::CommitEnd { dev, transaction } => {
                self.journals.end(dev, transaction, event.ts);
                self.commit_end(event, dev, transaction, out)
            }
            Kind::CommitStep { dev, transaction, step } => {
                self.phases_seen.commit_steps = true;
                self.journals.step(dev, transaction, step, event.ts);
                self.commit_step(event, dev, transaction, step);
                Ok(())
            }
            Kind::HandleEnd { dev, transaction, blocks } => {
                self.handle_end(event, dev, transaction, blocks, out);
                Ok(())
            }
            Kind::Thread(thread) => {
                self.thread_event(event, thread);
                Ok(())
            }
            Kind::Probe(probe) => self.probe(event, probe, out),
            Kind::FileCall(call) => self.file_call(event, call, out),
            Kind::FileReturn(returned) => self.file_return(event, returned, out),
            Kind::WbEnd { .. } | Kind::Torn { .. } | Kind::Other => Ok(()),
        }
    }

    /// Counts an event that is older than one that has been passed on. `event` must follow with the same event.
    pub fn late(&mut self, event: &Event, location: Location, out: &mut Out<'_>) -> Result<()> {
        if matches!(event.kind, Kind::Torn { .. }) {
            return Ok(());
        }
        let (from, to) = self.late.unwrap_or((i64::MAX, i64::MIN));
        self.late = Some((from.min(event.ts), to.max(self.now)));
        self.lose_at(Reason::LateEvent, event.ts, location, out, || Kind::NAMES[event.kind.index()].to_owned())
    }

    /// Whether late events may be of what happened between two times: that is paired out of order, and may be in the log twice.
    fn may_be_late(&self, from: i64, to: i64) -> bool {
        self.late.is_some_and(|(first, last)| from <= last && to >= first)
    }

    /// Closes all that is open, at the end of the inputs.
    pub fn finish(&mut self, out: &mut Out<'_>) -> Result<()> {
        self.catch_up_all();
        self.finish_marks(out.names);
        self.finish_lone_calls(out)?;
        self.finish_exits(out)?;
        self.release_held(out)?;
        self.finish_awaiting(out)?;
        self.finish_flushes(out)?;
        let queued = self.take_queued_before(i64::MAX, out)?;
        let mut bios = self.bios.take_all();
        bios.extend(queued);
        bios.sort_unstable_by_key(|&slot| self.bios[slot].row.bio_id);
        for slot in bios {
            self.give_up_bio(slot, out)?;
        }
        self.release_requests(out)?;
        self.expire_origins(i64::MAX, out)?;
        let groups = self.tasks.by_id.values().flat_map(|task| &task.groups);
        let mut open: Vec<(u64, RequestSlot)> =
            groups.flat_map(|group| &group.requests).map(|&slot| (self.requests[slot].row.sync_id, slot)).collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.settle(slot);
        }
        self.finish_commits(out)?;
        for id in self.tasks.in_order() {
            if let Some(task) = self.tasks.get_mut(id) {
                task.groups.iter_mut().for_each(|group| _ = group.close_without_exit(&self.exits));
            }
            self.flush(id, out)?;
        }
        self.ends.finish(&mut self.losses);
        self.finish_write_waits(out)?;
        self.finish_file_ops(out)
    }

    /// Closes what has waited long enough: ended requests for their bios, bios for their completion, calls of processes for a request.
    fn expire(&mut self, out: &mut Out<'_>) -> Result<()> {
        while let Some(slot) = self.requests.take_expired(self.now) {
            self.give_up_request(slot, out)?;
        }
        self.expire_awaiting(out)?;
        if self.now.saturating_sub(self.last_sweep) > LINGER_NS / 16 {
            self.last_sweep = self.now;
            for slot in self.take_queued_before(self.now.saturating_sub(LINGER_NS), out)? {
                self.give_up_bio(slot, out)?;
            }
            self.expire_calls(out)?;
            self.expire_origins(self.now.saturating_sub(LINGER_NS), out)?;
            self.probes.filling.expire(self.now);
        }
        Ok(())
    }

    /// Takes the bios that the block layer queued before a time and that are not complete.
    fn take_queued_before(&mut self, ts: i64, out: &mut Out<'_>) -> Result<Vec<BioSlot>> {
        let mut taken = Vec::new();
        for Decided { completed, lost } in self.queues.each().map(|queue| queue.take_older(ts)) {
            self.end_decided(Decided { completed, lost: Vec::new() }, out)?;
            for queued in lost.iter().filter(|queued| queued.bio.is_some()) {
                self.bios.note_queued(queued);
                taken.push(queued.bio);
            }
        }
        Ok(taken)
    }

    fn process(&self, pid: u32) -> Process {
        self.processes.get(&pid).copied().unwrap_or_default()
    }

    /// Where the current event is in the inputs.
    fn location(&self) -> Location {
        self.provenance.location
    }

    fn is_background(&self, id: u64) -> bool {
        self.background.contains(id)
    }

    /// Remembers an id of background writeback. A worker may submit bios with it after the writeback has ended.
    fn remember_background(&mut self, id: u64) {
        // A flusher thread that works for sync() or syncfs() carries the id of that request.
        if !self.requests.has_id(id) {
            self.background.insert(id);
        }
    }

    /// Handles a submit that its source reports as background writeback. No start has announced the id, so its first folio has opened a
    /// request. That request is taken back.
    fn mark_background(&mut self, e: &Event, id: u64) {
        if id == 0 || self.is_background(id) {
            return;
        }
        if let Some(slot) = self.find_request(self.tasks.id_of(e), id) {
            let open = &self.requests[slot];
            // It is a request such as that of sync(), or a bio of it was reported as its own.
            if open.row.start.is_some() || open.over || open.open_bios.len() != open.bio_ids.len() {
                return;
            }
            self.dissolve(slot);
        }
        self.remember_background(id);
    }

    /// Counts a loss at the current event, and marks it in the output.
    fn lose(&mut self, reason: Reason, ts: i64, out: &mut Out<'_>, what: impl FnOnce() -> String) -> Result<()> {
        self.lose_at(reason, ts, self.location(), out, what)
    }

    /// Counts a loss, and marks it in the output.
    fn lose_at(
        &mut self,
        reason: Reason,
        ts: i64,
        location: Location,
        out: &mut Out<'_>,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        let count = self.losses.add(reason, 1, Some(ts));
        let text = self.locations.describe(location, &what());
        out.sink.loss(reason, ts, &text)?;
        count.show(Some(ts), || text);
        Ok(())
    }

    /// Counts a loss that has no mark of its own in the output, because its request or call shows it.
    fn count(&mut self, reason: Reason, ts: i64, location: Location, what: impl FnOnce() -> String) {
        let count = self.losses.add(reason, 1, Some(ts));
        count.show(Some(ts), || self.locations.describe(location, &what()));
    }
}
