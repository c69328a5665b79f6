//! Threads, or processes where ids are processes: the calls that each has made and the requests in them.

use std::collections::{BTreeSet, VecDeque};

use super::{Map, Slot};
use crate::event::{Dev, Event, UNKNOWN_TASK};
use crate::location::Location;
use crate::rows::Call;

/// Marks the id of a task that is known by the other kind of id only. It is larger than any thread or process id.
const OTHER_KIND: u32 = 1 << 31;

/// A call with its requests, or one request without a call.
pub(super) struct OpenGroup {
    pub(super) call: Option<Call>,
    /// The exit of the call may still come.
    pub(super) call_open: bool,
    /// When it began.
    pub(super) since: i64,
    /// Where the entry of the call is in the inputs.
    pub(super) location: Location,
    pub(super) requests: Vec<Slot>,
    /// Requests in flight at the entry and at the exit of a call-only request.
    pub(super) in_flight: (u32, u32),
    /// It is counted in flight as a call-only request.
    pub(super) counts_in_flight: bool,
    /// Whether its call is a call-only request or of no request is not known yet.
    pub(super) is_undecided: bool,
    /// The inputs report nothing of requests, so its call is one.
    pub(super) is_lone: bool,
}

impl OpenGroup {
    pub(super) fn of_call(call: Call, location: Location, in_flight: u32, is_undecided: bool) -> Self {
        Self {
            since: call.enter,
            counts_in_flight: call.call_only || is_undecided,
            is_undecided,
            is_lone: false,
            call: Some(call),
            call_open: true,
            location,
            requests: Vec::new(),
            in_flight: (in_flight, in_flight),
        }
    }

    pub(super) fn of_request(request: Slot, since: i64, location: Location) -> Self {
        Self {
            call: None,
            call_open: false,
            since,
            location,
            requests: vec![request],
            in_flight: (0, 0),
            counts_in_flight: false,
            is_undecided: false,
            is_lone: false,
        }
    }

    /// Takes a call-only request out of the count of requests in flight.
    pub(super) fn leave_flight(&mut self, in_flight: &mut u32) {
        if std::mem::take(&mut self.counts_in_flight) {
            *in_flight -= 1;
            self.in_flight.1 = *in_flight;
        }
    }
}

#[derive(Default)]
pub(super) struct Task {
    /// In the order of time. A group leaves when all of it is known.
    pub(super) groups: VecDeque<OpenGroup>,
    /// The request between start and end. Not used where a task is a process.
    pub(super) open_request: Option<Slot>,
    /// What the scheduler does with it is recorded.
    pub(super) is_watched: bool,
    /// The kernel reports the open request at two tracepoints, with an id and without. The start without an id has been seen.
    pub(super) has_nested_start: bool,
    /// When its last request without an id ended, and of which file.
    pub(super) ended: Option<(i64, Dev, u64)>,
}

pub(super) struct Tasks {
    pub(super) by_id: Map<u32, Task>,
    pub(super) are_processes: bool,
    /// Tasks that may overlap and that have made a call since all of their groups left.
    overlapping: BTreeSet<u32>,
}

impl Tasks {
    pub(super) fn new(are_processes: bool) -> Self {
        Self { by_id: Map::default(), are_processes, overlapping: BTreeSet::new() }
    }

    /// The thread id, or the process id where ids are processes.
    pub(super) fn id(&self, tid: u32, pid: u32) -> u32 {
        let (id, other) = if self.are_processes { (pid, tid) } else { (tid, pid) };
        if id == UNKNOWN_TASK && other != UNKNOWN_TASK { other | OTHER_KIND } else { id }
    }

    pub(super) fn id_of(&self, event: &Event) -> u32 {
        self.id(event.tid, event.pid)
    }

    /// Whether calls and requests of this task may overlap: it is a process, and its threads are not known.
    pub(super) fn may_overlap(&self, id: u32) -> bool {
        may_overlap(self.are_processes, id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Task> {
        self.by_id.get_mut(&id)
    }

    /// The request that a task has open.
    pub(super) fn open_request(&self, id: u32) -> Option<Slot> {
        self.by_id.get(&id)?.open_request
    }

    /// Whether the last request without an id of a task ended at this time and is of this file.
    pub(super) fn has_just_ended(&self, id: u32, end: (i64, Dev, u64)) -> bool {
        self.by_id.get(&id).is_some_and(|task| task.ended == Some(end))
    }

    /// Notes that a task that may overlap has an open call.
    pub(super) fn note_overlapping(&mut self, id: u32) {
        self.overlapping.insert(id);
    }

    /// Removes and returns the tasks that were noted.
    pub(super) fn take_overlapping(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.overlapping)
    }

    /// All tasks that have groups, in the order of their first group.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let firsts = self.by_id.iter().filter_map(|(&id, task)| task.groups.front().map(|group| (group.since, id)));
        let mut order: Vec<(i64, u32)> = firsts.collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }
}

fn may_overlap(are_processes: bool, id: u32) -> bool {
    are_processes || id != UNKNOWN_TASK && id & OTHER_KIND != 0
}
