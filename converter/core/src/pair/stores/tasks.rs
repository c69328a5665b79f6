//! Threads, or processes where ids are processes: the calls that each has made and the requests in them.

use std::collections::{BTreeSet, VecDeque};

use super::origins::Origins;
use super::requests::Requests;
use super::slots::{BioSlot, RequestSlot};
use super::torn::TornTask;
use crate::collections::Map;
use crate::event::{Dev, Event, Op, UNKNOWN_TASK};
use crate::location::Location;
use crate::pair::parts::Parts;
use crate::rows::Call;

/// Marks the id of a task that is known by the other kind of id only. It is larger than any thread or process id.
const OTHER_KIND: u32 = 1 << 31;

/// A call with its requests, or one request without a call.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(in crate::pair) struct OpenGroup {
    pub(in crate::pair) call: Option<Call>,
    /// The exit of the call may still come.
    pub(in crate::pair) call_open: bool,
    /// The exit of the call was lost.
    pub(in crate::pair) exit_lost: bool,
    /// The log of the call's entry.
    pub(in crate::pair) log: usize,
    /// When it began.
    pub(in crate::pair) since: i64,
    /// Where the entry of the call is in the inputs.
    pub(in crate::pair) location: Location,
    pub(in crate::pair) requests: Vec<RequestSlot>,
    /// What these sync.
    pub(in crate::pair) parts: Parts,
    /// Requests in flight at the entry and at the exit of a call-only request.
    pub(in crate::pair) in_flight: (u32, u32),
    /// It is counted in flight as a call-only request.
    pub(in crate::pair) counts_in_flight: bool,
    /// Whether its call is a call-only request or of no request is not known yet.
    pub(in crate::pair) is_undecided: bool,
    /// The inputs report nothing of requests, so its call is one.
    pub(in crate::pair) is_lone: bool,
    /// A request without a call, which may have been made in one: the exit of a call whose entry is not in the log may still come.
    pub(in crate::pair) awaits_exit: bool,
    /// It is the first request of its thread, at the beginning of the log.
    pub(in crate::pair) is_first: bool,
    /// The call is of an input with another clock, by which it began just after its request.
    pub(in crate::pair) is_behind: bool,
}

impl OpenGroup {
    /// Whether the call of the group may return now: it does not before its sync function has.
    pub(in crate::pair) fn may_return(&self, op: Op, ts: i64, requests: &Requests) -> bool {
        self.call_open
            && self.call.as_ref().is_some_and(|call| call.op == op && call.enter <= ts)
            && self.requests.iter().all(|&slot| requests[slot].over)
    }

    /// Gives the requests that were made in one call the number of the first one. Without its exit, a call may have returned before the later
    /// ones, which are then of durable writes: only calls that make several requests are known to have made them.
    pub(in crate::pair) fn join_requests(&self, requests: &mut Requests) {
        let Some(call) = &self.call else { return };
        let Some(first) = self.requests.first().map(|&slot| requests[slot].row.sync_id) else { return };
        if call.exit.is_some() || call.untimed || call.op.makes_several() {
            for &slot in &self.requests {
                requests[slot].row.call_sync_id = first;
            }
        }
    }

    pub(in crate::pair) fn of_call(
        call: Call,
        (location, log): (Location, usize),
        in_flight: u32,
        is_undecided: bool,
    ) -> Self {
        Self {
            since: call.enter,
            counts_in_flight: call.call_only || is_undecided,
            is_undecided,
            is_lone: false,
            call: Some(call),
            call_open: true,
            exit_lost: false,
            log,
            location,
            requests: Vec::new(),
            parts: Parts::default(),
            in_flight: (in_flight, in_flight),
            awaits_exit: false,
            is_first: false,
            is_behind: false,
        }
    }

    pub(in crate::pair) fn of_request(request: RequestSlot, since: i64, location: Location) -> Self {
        Self {
            call: None,
            call_open: false,
            exit_lost: false,
            log: 0,
            since,
            location,
            requests: vec![request],
            parts: Parts::default(),
            in_flight: (0, 0),
            counts_in_flight: false,
            is_undecided: false,
            is_lone: false,
            awaits_exit: false,
            is_first: false,
            is_behind: false,
        }
    }

    /// No exit comes any more. Returns whether the call was open.
    pub(in crate::pair) fn close_without_exit(&mut self, exits: &Exits) -> bool {
        let was_open = std::mem::take(&mut self.call_open);
        self.exit_lost |= was_open && self.call.as_ref().is_some_and(|call| exits.are_recorded(self.log, call.op));
        was_open
    }

    /// Takes a call-only request out of the count of requests in flight.
    pub(in crate::pair) fn leave_flight(&mut self, in_flight: &mut u32) {
        if std::mem::take(&mut self.counts_in_flight) {
            *in_flight -= 1;
            self.in_flight.1 = *in_flight;
        }
    }
}

/// The kinds of calls whose exits each log has recorded. An exit that is missing there was lost.
#[derive(Default)]
pub(in crate::pair) struct Exits(Vec<(usize, Op)>);

impl Exits {
    pub(in crate::pair) fn note(&mut self, log: usize, op: Op) {
        if !self.are_recorded(log, op) {
            self.0.push((log, op));
        }
    }

    /// Whether any is recorded.
    pub(in crate::pair) fn are_any(&self) -> bool {
        !self.0.is_empty()
    }

    fn are_recorded(&self, log: usize, op: Op) -> bool {
        self.0.contains(&(log, op))
    }
}

#[derive(Default)]
pub(in crate::pair) struct Task {
    /// In the order of time. A group leaves when all of it is known.
    pub(in crate::pair) groups: VecDeque<OpenGroup>,
    /// How many of the first groups have a call that is over, and how many have one of which it is not decided what it is. A process may have
    /// thousands of either, which nobody need ask again.
    pub(in crate::pair) over_first: usize,
    pub(in crate::pair) undecided_first: usize,
    /// The request between start and end. Not used where a task is a process.
    pub(in crate::pair) open_request: Option<RequestSlot>,
    /// Since when it is recorded what the scheduler does with it.
    pub(in crate::pair) watched_from: Option<i64>,
    /// The kernel reports the open request at two tracepoints, with an id and without. The start without an id has been seen.
    pub(in crate::pair) has_nested_start: bool,
    /// When its last request without an id ended, and its file.
    pub(in crate::pair) ended: Option<(i64, Dev, u64)>,
    pub(in crate::pair) torn: TornTask,
    /// What is not known of the calls of a process, whose threads are not known.
    pub(in crate::pair) guesses: Guesses,
    /// The last event of its calls and requests was the end of a request with an id. An end without one is of the same request.
    pub(in crate::pair) has_ended_with_id: bool,
    /// It has made a call or a request.
    pub(in crate::pair) has_begun: bool,
    /// Requests for files since its last call, or since its beginning.
    pub(in crate::pair) without_call: u32,
    /// The same for whole file systems: one call may sync many.
    pub(in crate::pair) whole_without_call: u32,
    /// The bio that it has added a folio to last, and its `bio_id`.
    pub(in crate::pair) last_filled: Option<(BioSlot, u64)>,
    /// Its bios that belong to no request.
    pub(in crate::pair) origins: Origins,
}

/// Which calls of a process are its requests' and have returned, as far as that was guessed. The rest after a guess is no surer than the
/// guess itself, so it stays in force until nothing is left.
#[derive(Default)]
pub(in crate::pair) struct Guesses {
    /// A guess is in force.
    in_force: bool,
    /// There has been one.
    has_been: bool,
    /// The log has exits of calls.
    sees_exits: bool,
    /// By op: exits that each belong to one of several calls.
    exits: Vec<(Op, usize)>,
}

impl Guesses {
    pub(in crate::pair) fn guess(&mut self) {
        (self.in_force, self.has_been) = (true, true);
    }

    pub(in crate::pair) fn are_in_force(&self) -> bool {
        self.in_force
    }

    /// Notes an exit. Returns whether it is the first one of a process with guesses: they concern exits too.
    pub(in crate::pair) fn see_exit(&mut self) -> bool {
        !std::mem::replace(&mut self.sees_exits, true) && self.has_been
    }

    /// Notes an exit of one of `candidates` calls. Returns whether all of them have returned by now.
    pub(in crate::pair) fn guess_exit(&mut self, op: Op, candidates: usize) -> bool {
        self.guess();
        let at = self.exits.iter().position(|(of, _)| *of == op).unwrap_or(self.exits.len());
        if at == self.exits.len() {
            self.exits.push((op, 0));
        }
        self.exits[at].1 += 1;
        let have_returned = self.exits[at].1 >= candidates;
        if have_returned {
            self.exits.swap_remove(at);
        }
        have_returned
    }

    /// A call is closed without its exit, which may be one of those that have been seen.
    pub(in crate::pair) fn give_up_call(&mut self, op: Op) {
        if let Some((_, exits)) = self.exits.iter_mut().find(|(of, _)| *of == op) {
            *exits = exits.saturating_sub(1);
        }
    }
}

impl Task {
    pub(in crate::pair) fn remove_group(&mut self, index: usize) -> Option<OpenGroup> {
        self.over_first -= usize::from(index < self.over_first);
        self.undecided_first -= usize::from(index < self.undecided_first);
        self.groups.remove(index)
    }

    /// Ends the guesses of a process if nothing of what they concern is left.
    pub(in crate::pair) fn end_guesses(&mut self, is_over: impl Fn(RequestSlot) -> bool) {
        if !self.guesses.in_force {
            return;
        }
        let sees_exits = self.guesses.sees_exits;
        let is_left = |group: &OpenGroup| {
            let is_free = group.call.as_ref().is_some_and(|call| call.sync_id.is_none());
            group.call_open && (is_free || sees_exits) || !group.requests.iter().all(|&slot| is_over(slot))
        };
        // A call of which it is not decided what it is has no request.
        let are_undecided = self.groups.front().is_some_and(|group| group.is_undecided);
        let known = if are_undecided { self.over_first.min(self.undecided_first) } else { 0 };
        if !self.groups.range(known..).any(is_left) {
            self.guesses.in_force = false;
            self.guesses.exits.clear();
        }
    }
}

pub(in crate::pair) struct Tasks {
    pub(in crate::pair) by_id: Map<u32, Task>,
    pub(in crate::pair) are_processes: bool,
    /// Tasks that may overlap and that have a call which may be open.
    overlapping: BTreeSet<u32>,
}

impl Tasks {
    /// Whether a thread may be in a sync whose request is not in the log: it is in a call whose file system reports none, or whose start was
    /// lost, or a torn line may have been the begin of either.
    pub(in crate::pair) fn may_be_in_sync(&self, task_id: u32) -> bool {
        let task = self.by_id.get(&task_id);
        let last = task.and_then(|task| task.groups.back());
        let is_in_call = self.is_in_call(task_id) && last.is_some_and(|last| last.requests.is_empty());
        is_in_call || task.is_some_and(|task| task.torn.may_be_begin())
    }

    /// The open request of a thread whose states are recorded.
    pub(in crate::pair) fn watched(&mut self, thread: u32, ts: i64) -> Option<RequestSlot> {
        // Threads that have only submitted bios until now are tasks, too.
        let task = self.get_mut(thread).filter(|task| task.has_begun)?;
        task.watched_from.get_or_insert(ts);
        task.open_request
    }

    /// A call of a task begins or ends, so a torn line was not of the next one.
    pub(in crate::pair) fn end_torn_call(&mut self, task_id: u32) {
        if let Some(task) = self.get_mut(task_id) {
            task.torn = TornTask::default();
        }
    }

    pub(in crate::pair) fn new(are_processes: bool) -> Self {
        Self { by_id: Map::default(), are_processes, overlapping: BTreeSet::new() }
    }

    /// The thread id, or the process id where ids are processes.
    pub(in crate::pair) fn id(&self, tid: u32, pid: u32) -> u32 {
        let (id, other) = if self.are_processes { (pid, tid) } else { (tid, pid) };
        if id == UNKNOWN_TASK && other != UNKNOWN_TASK { other | OTHER_KIND } else { id }
    }

    pub(in crate::pair) fn id_of(&self, event: &Event) -> u32 {
        self.id(event.tid, event.pid)
    }

    /// Whether calls and requests of this task may overlap: it is a process, and its threads are not known.
    pub(in crate::pair) fn may_overlap(&self, id: u32) -> bool {
        may_overlap(self.are_processes, id)
    }

    pub(in crate::pair) fn get_mut(&mut self, id: u32) -> Option<&mut Task> {
        self.by_id.get_mut(&id)
    }

    /// The request that a task has open.
    pub(in crate::pair) fn open_request(&self, id: u32) -> Option<RequestSlot> {
        self.by_id.get(&id)?.open_request
    }

    /// Whether the last request without an id of a task ended at this time and is of this file.
    pub(in crate::pair) fn has_just_ended(&self, id: u32, end: (i64, Dev, u64)) -> bool {
        self.by_id.get(&id).is_some_and(|task| task.ended == Some(end))
    }

    /// Whether a thread is in a sync call.
    pub(in crate::pair) fn is_in_call(&self, id: u32) -> bool {
        let group = self.by_id.get(&id).and_then(|task| task.groups.back());
        group.is_some_and(|group| group.call_open && group.call.as_ref().is_some_and(|call| call.op != Op::Write))
    }

    /// Notes that a task that may overlap has an open call.
    pub(in crate::pair) fn note_overlapping(&mut self, id: u32) {
        self.overlapping.insert(id);
    }

    /// Removes and returns the tasks that were noted.
    pub(in crate::pair) fn take_overlapping(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.overlapping)
    }

    /// All tasks that have groups, in the order of their first group.
    pub(in crate::pair) fn in_order(&self) -> Vec<u32> {
        let firsts = self.by_id.iter().filter_map(|(&id, task)| task.groups.front().map(|group| (group.since, id)));
        let mut order: Vec<(i64, u32)> = firsts.collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }
}

fn may_overlap(are_processes: bool, id: u32) -> bool {
    are_processes || id != UNKNOWN_TASK && id & OTHER_KIND != 0
}
