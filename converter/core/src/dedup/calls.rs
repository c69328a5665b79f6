//! Calls that several logs report: one of them is emitted, and the others add the path and the stack that it lacks.
//!
//! Clocks differ, so a duplicate is found by its order on the thread, not by its time: a thread makes one call at a time. Only a call that
//! no other log reports within `MAX_CALL_LEAD_NS` is a call of its own.

use super::authority::{Authority, MAX_CALL_LEAD_NS, MAX_SKEW_NS, Standing};
use super::{CallDetail, LogSet};
use crate::event::{Event, Kind, NO_ID, Op};
use crate::location::Location;
use crate::names::NameId;

/// Entries of one call that two kernel tracers report differ at most by this: the time that a tracer needs to walk a stack.
const SAME_ENTRY_NS: u64 = 100_000;
/// A log may report a call this long after the call has returned.
const MAX_REPORT_DELAY_NS: u64 = 20_000_000;

/// The entry of a call, as one log reports it.
#[derive(Clone, Copy)]
struct Entry {
    event: Event,
    op: Op,
    path: NameId,
    stack: NameId,
    call_only: bool,
    location: Location,
    log: usize,
}

impl Entry {
    /// The entry as an event, with what this stage has found out about it.
    fn event(&self) -> Event {
        let Self { op, path, stack, call_only, .. } = *self;
        Event { kind: Kind::CallEnter { op, stack, path, call_only }, ..self.event }
    }

    /// Takes the path and the stack from another log's report of the call.
    fn complete_from(&mut self, other: &Self) {
        if !self.path.is_some() {
            self.path = other.path;
        }
        if !self.stack.is_some() {
            self.stack = other.stack;
        }
    }
}

/// A call that was emitted and has not returned.
struct OpenCall {
    op: Op,
    enter: i64,
    /// Where its entry is.
    location: Location,
    log: usize,
    call_only: bool,
    /// It has the start or the end of a request. A request that only a folio or a submit shows is in `ThreadCalls::request`.
    has_request: bool,
    /// A request has ended in it, so it may have returned.
    request_has_ended: bool,
    /// Other logs that have reported it.
    reported_by: LogSet,
}

/// A call that a log without authority reports. The authoritative log may report it later.
struct PendingCall {
    entry: Entry,
    exit: Option<(Event, Location)>,
}

impl PendingCall {
    /// Whether it may be the call that begins now.
    fn may_be(&self, op: Op, enter: i64) -> bool {
        let last = self.exit.map_or(self.entry.event.ts, |(exit, _)| exit.ts);
        self.entry.op == op && (self.exit.is_none() || enter.saturating_sub(last) <= MAX_CALL_LEAD_NS)
    }
}

struct ReturnedCall {
    op: Op,
    exit: i64,
    /// Where its entry is.
    location: Location,
    reported_by: LogSet,
}

/// An exit that was emitted.
#[derive(Clone, Copy)]
struct Exit {
    op: Op,
    log: usize,
    location: Location,
}

/// The request that a thread is in.
#[derive(Clone, Copy)]
struct ThreadRequest {
    id: u64,
    /// The log that reports it, and where its first event is.
    log: usize,
    location: Location,
    /// Its start has been seen. Otherwise the id may turn out to be one of background writeback.
    has_start: bool,
    last_ts: i64,
}

/// The calls of one thread.
#[derive(Default)]
pub(super) struct ThreadCalls {
    open: Option<OpenCall>,
    request: Option<ThreadRequest>,
    /// The kernel reports the request at two tracepoints, with an id and without.
    has_nested_start: bool,
    pending: Vec<PendingCall>,
    /// Number of pending calls that have not returned: at most one of each log.
    unreturned: usize,
    /// The exit that was emitted last, until the next call.
    last_exit: Option<Exit>,
    returned: Option<ReturnedCall>,
    /// Exits of the open call that are not used, because the authoritative log will report it.
    unused_exits: Vec<Exit>,
}

/// The outcome of a thread's event.
#[derive(Default)]
pub(super) struct Outcome {
    /// Events to emit, in this order, with their locations.
    pub(super) events: Vec<(Event, Location)>,
    /// Details that a duplicate adds to the open call.
    pub(super) detail: Option<CallDetail>,
    /// Duplicates: where they are in the inputs, where the event is that is used, and what they are.
    pub(super) duplicates: Vec<(Location, Location, String)>,
    /// Events that only a log without authority has: where they are, and what they are.
    pub(super) superseded: Vec<(Location, String)>,
}

impl Outcome {
    /// Appends the outcome of another thread, which has no detail.
    pub(super) fn append(&mut self, other: Self) {
        self.events.extend(other.events);
        self.duplicates.extend(other.duplicates);
        self.superseded.extend(other.superseded);
    }

    fn duplicate(&mut self, location: Location, partner: Location, what: impl Into<String>) {
        self.duplicates.push((location, partner, what.into()));
    }
}

impl ThreadCalls {
    /// Visits every name of the calls that wait.
    pub(super) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        for pending in &self.pending {
            pending.entry.event().visit_names(f);
            if let Some((exit, _)) = pending.exit {
                exit.visit_names(f);
            }
        }
    }

    /// Takes the entry of a call. `event` is a `CallEnter`.
    pub(super) fn enter(&mut self, event: &Event, location: Location, log: usize, authority: &Authority) -> Outcome {
        let mut outcome = Outcome::default();
        let Kind::CallEnter { op, stack, path, call_only } = event.kind else { return outcome };
        let entry = Entry { event: *event, op, path, stack, call_only, location, log };
        match authority.standing(event, log) {
            Standing::Duplicate => self.enter_duplicate(entry, authority, &mut outcome),
            Standing::Authoritative if self.take_over_open_call(&entry, authority, &mut outcome) => {}
            Standing::Authoritative => {
                self.release_if(event.ts, &mut outcome, authority, |pending| {
                    pending.exit.is_some() && !pending.may_be(op, event.ts)
                });
                self.begin(entry, authority, &mut outcome);
            }
        }
        outcome
    }

    /// Returns whether the thread's open call is this one, which another log has reported first: a thread cannot make two calls at once. If
    /// so, the call belongs to the authoritative log from now on.
    fn take_over_open_call(&mut self, entry: &Entry, authority: &Authority, outcome: &mut Outcome) -> bool {
        let Some(open) = &mut self.open else { return false };
        if open.log == entry.log || open.op != entry.op || open.reported_by.contains(entry.log) {
            return false;
        }
        if open.request_has_ended && entry.event.ts.saturating_sub(open.enter) > MAX_SKEW_NS {
            // The log that has reported the open call records no exits, or has lost this one.
            return false;
        }
        let reports_requests = authority.reports_requests(entry.event.tid);
        open.call_only = entry.call_only || open.call_only && !reports_requests;
        outcome.duplicate(entry.location, open.location, entry.op.name());
        open.reported_by.insert(open.log);
        open.log = entry.log;
        if !open.has_request && self.request.is_none() {
            open.enter = entry.event.ts;
        }
        outcome.detail = Some(CallDetail::new(entry, Some(entry.event.ts), open.call_only));
        true
    }

    /// Emits an entry, joined with the pending reports of the same call.
    fn begin(&mut self, mut entry: Entry, authority: &Authority, outcome: &mut Outcome) {
        let (op, enter, log) = (entry.op, entry.event.ts, entry.log);
        let reports_requests = authority.reports_requests(entry.event.tid);
        let mut reported_by = LogSet::default();
        let (mut unreturned, mut unused_exits) = (self.unreturned, Vec::new());
        self.pending.retain(|pending| {
            if pending.entry.log == log || !pending.may_be(op, enter) {
                return true;
            }
            entry.call_only |= pending.entry.call_only && !reports_requests;
            entry.complete_from(&pending.entry);
            reported_by.insert(pending.entry.log);
            unreturned -= usize::from(pending.exit.is_none());
            outcome.duplicate(pending.entry.location, entry.location, op.name());
            // The exit of this call is still to come.
            unused_exits.extend(pending.exit.map(|(_, location)| Exit { op, log: pending.entry.log, location }));
            false
        });
        self.unreturned = unreturned;
        self.supersede_exits(outcome);
        self.unused_exits = unused_exits;
        self.last_exit = None;
        self.request = None;
        let (call_only, location) = (entry.call_only, entry.location);
        self.open = Some(OpenCall {
            op,
            enter,
            location,
            log,
            call_only,
            has_request: false,
            request_has_ended: false,
            reported_by,
        });
        outcome.events.push((entry.event(), entry.location));
    }

    /// A log without authority reports an entry: of the open call, of the call that has just returned, or of one that the authoritative log
    /// reports later.
    fn enter_duplicate(&mut self, entry: Entry, authority: &Authority, outcome: &mut Outcome) {
        let (op, enter, log, tid) = (entry.op, entry.event.ts, entry.log, entry.event.tid);
        let is_tracer = authority.is_call_tracer(tid, log);
        self.release_if(enter, outcome, authority, |pending| pending.entry.log == log && pending.exit.is_some());
        let reports_requests = authority.reports_requests(tid);
        let call_only = entry.call_only && !reports_requests;
        if let Some(lost) = self.take_unreturned(log) {
            // Its exit was lost, and the authoritative log has not reported it.
            outcome.superseded.push((lost.entry.location, lost.entry.op.name().to_owned()));
        }
        if let Some(open) = self.open.as_mut().filter(|open| open.op == op && !open.reported_by.contains(log)) {
            open.reported_by.insert(log);
            let was_call_only = open.call_only;
            open.call_only = call_only || was_call_only && (is_tracer || !reports_requests);
            let mut new_enter = None;
            if was_call_only && !open.call_only {
                // strace reported it before any other log had reported the thread.
                new_enter = Some(enter);
            }
            let begun = new_enter.unwrap_or(open.enter);
            if !is_tracer && enter.abs_diff(begun) <= SAME_ENTRY_NS {
                // The tracer's own work, such as a stack walk, happens between the two entries, so the later entry is used. If
                // several inputs have the exit, the first is used.
                new_enter = Some(begun.max(enter));
            }
            if let Some(new_enter) = new_enter.filter(|_| !open.has_request && self.request.is_none()) {
                open.enter = new_enter;
            }
            outcome.detail = Some(CallDetail::new(&entry, new_enter, open.call_only));
            outcome.duplicate(entry.location, open.location, op.name());
            return;
        }
        let is_returned_call = |returned: &&mut ReturnedCall| {
            returned.op == op
                && !returned.reported_by.contains(log)
                && enter.abs_diff(returned.exit) <= MAX_REPORT_DELAY_NS
        };
        if let Some(returned) = self.returned.as_mut().filter(is_returned_call) {
            returned.reported_by.insert(log);
            outcome.duplicate(entry.location, returned.location, op.name());
        } else {
            self.pending.push(PendingCall { entry, exit: None });
            self.unreturned += 1;
        }
    }

    /// The place of a log's pending call that has not returned. It is searched from the end, because any number of returned ones may
    /// precede it.
    fn find_unreturned(&self, log: usize) -> Option<usize> {
        if self.unreturned == 0 {
            return None;
        }
        self.pending.iter().rposition(|pending| pending.entry.log == log && pending.exit.is_none())
    }

    fn take_unreturned(&mut self, log: usize) -> Option<PendingCall> {
        let at = self.find_unreturned(log)?;
        self.unreturned -= 1;
        Some(self.pending.remove(at))
    }

    /// Takes the exit of a call. `event` is a `CallExit`.
    pub(super) fn exit(&mut self, event: &Event, location: Location, log: usize, authority: &Authority) -> Outcome {
        let mut outcome = Outcome::default();
        let Kind::CallExit { op, entry_lost, .. } = event.kind else { return outcome };
        if let Some(at) = self.find_unreturned(log)
            && self.pending[at].entry.op == op
            && !entry_lost
        {
            self.pending[at].exit = Some((*event, location));
            self.unreturned -= 1;
            return outcome;
        }
        self.begin_pending_call_of(event, op, log, authority, &mut outcome);
        let used = self.last_exit.filter(|used| used.op == op && used.log != log);
        let is_unused =
            authority.standing(event, log) == Standing::Duplicate && !self.ends_open_call(event, log, authority);
        if let Some(used) = used {
            outcome.duplicate(location, used.location, exit_of(op));
        } else if is_unused {
            self.unused_exits.push(Exit { op, log, location });
        } else {
            self.return_from_call(op, log, event, location, &mut outcome);
            outcome.events.push((*event, location));
        }
        outcome
    }

    /// The exit of a call is emitted.
    fn return_from_call(&mut self, op: Op, log: usize, exit: &Event, location: Location, outcome: &mut Outcome) {
        self.last_exit = Some(Exit { op, log, location });
        self.request = None;
        self.unused_exits.retain(|unused| {
            let is_duplicate = unused.op == op && unused.log != log;
            if is_duplicate {
                outcome.duplicate(unused.location, location, exit_of(op));
            }
            !is_duplicate
        });
        if let Some(open) = self.open.take_if(|open| open.op == op && open.enter <= exit.ts) {
            let OpenCall { location, reported_by, .. } = open;
            self.returned = Some(ReturnedCall { op, exit: exit.ts, location, reported_by });
        }
    }

    /// Counts the unused exits as superseded, because the exit of the authoritative log, whose duplicates they would be, will not come.
    fn supersede_exits(&mut self, outcome: &mut Outcome) {
        let unused = self.unused_exits.drain(..).map(|exit| (exit.location, exit_of(exit.op)));
        outcome.superseded.extend(unused);
    }

    /// Takes an exit of a log that has not reported the entry, because the log began within the call or lost the entry. A pending call of
    /// another log that waits for this entry would wait for nothing, so it begins now.
    fn begin_pending_call_of(
        &mut self,
        exit: &Event,
        op: Op,
        log: usize,
        authority: &Authority,
        outcome: &mut Outcome,
    ) {
        // It may be another log's report of the exit that was emitted last.
        if self.open.is_some() || self.last_exit.is_some_and(|used| used.log != log) {
            return;
        }
        let is_it = |pending: &PendingCall| {
            pending.entry.log != log && pending.entry.op == op && pending.entry.event.ts <= exit.ts
        };
        let Some(at) = self.pending.iter().position(is_it) else { return };
        let PendingCall { entry, exit: own_exit } = self.pending.remove(at);
        self.begin(entry, authority, outcome);
        if let Some(open) = &mut self.open {
            // This exit ends it, unless the exit of its own log has come before.
            open.reported_by.insert(log);
        }
        if let Some((own_exit, location)) = own_exit {
            self.return_from_call(op, entry.log, &own_exit, location, outcome);
            outcome.events.push((own_exit, location));
        }
    }

    /// Whether an exit from a log without authority ends the open call: the authoritative log may report no exits, and of several exits the
    /// first one counts.
    fn ends_open_call(&self, exit: &Event, log: usize, authority: &Authority) -> bool {
        let tid = exit.tid;
        self.open.as_ref().is_some_and(|open| {
            // The authoritative log lacks the entry.
            if open.log == log {
                return true;
            }
            let is_only_exit = !authority.reports_exits(open.log, tid);
            let is_tracer = authority.is_call_tracer(tid, log);
            let may_end = self.request.is_none() && (is_only_exit || !is_tracer && open.has_request);
            // The log that has reported the call may end within it.
            open.reported_by.contains(log) && (may_end || authority.is_over(open.log, exit.ts))
        })
    }

    /// Takes the start of a request. Returns where another log has reported the request that the thread is in.
    pub(super) fn start_request(&mut self, id: u64, log: usize, ts: i64, location: Location) -> Option<Location> {
        if let Some(open) = &mut self.open {
            open.has_request = true;
        }
        // A kernel may report one request at two tracepoints, with an id and without. The id counts.
        let is_in_request = self.request.filter(|before| before.has_start || self.open.is_some());
        let is_nested = is_in_request.is_some_and(|before| (before.id == NO_ID) != (id == NO_ID));
        self.has_nested_start = is_nested;
        if is_nested && id == NO_ID {
            return None;
        }
        let new = ThreadRequest { id, log, location, has_start: true, last_ts: ts };
        self.request.replace(new).filter(|before| before.id == id && before.log != log).map(|before| before.location)
    }

    /// Takes a folio or a submit with the id of a request, which is not one of background writeback as far as is known. If the start was
    /// lost, this event opens the request.
    pub(super) fn use_request(&mut self, id: u64, log: usize, ts: i64, location: Location) {
        if id == 0 {
            return;
        }
        match &mut self.request {
            Some(request) => request.last_ts = ts,
            None => self.request = Some(ThreadRequest { id, log, location, has_start: false, last_ts: ts }),
        }
    }

    /// Takes the end of a request. After a nested start, an end without an id ends nothing.
    pub(super) fn end_request(&mut self, id: u64) {
        if id == NO_ID && std::mem::take(&mut self.has_nested_start) {
            return;
        }
        // If the start was lost, the end opens a request in the call.
        if let Some(open) = &mut self.open {
            (open.has_request, open.request_has_ended) = (true, true);
        }
        self.request = None;
    }

    /// An id turns out to be one of background writeback. The thread is in no request with it.
    pub(super) fn leave_background(&mut self, id: u64) {
        self.request.take_if(|request| request.id == id && !request.has_start);
    }

    /// Emits the pending calls that no other log can report any more, unless the thread is in a call or a request that another log reports.
    fn release_if(
        &mut self,
        now: i64,
        outcome: &mut Outcome,
        authority: &Authority,
        is_due: impl Fn(&PendingCall) -> bool,
    ) {
        // The end of a request outside of a call may be lost.
        let is_in_request = self.request.is_some_and(|request| now.saturating_sub(request.last_ts) <= MAX_CALL_LEAD_NS);
        if self.open.is_none() && !is_in_request {
            self.release(outcome, authority, is_due);
        }
    }

    fn release(&mut self, outcome: &mut Outcome, authority: &Authority, is_due: impl Fn(&PendingCall) -> bool) {
        let (due, pending): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|pending| is_due(pending));
        self.pending = pending;
        self.unreturned -= due.iter().filter(|pending| pending.exit.is_none()).count();
        for PendingCall { entry, exit } in due {
            self.begin(entry, authority, outcome);
            self.open = None;
            outcome.events.extend(exit);
        }
    }

    /// Emits all pending calls, at the end of the inputs.
    pub(super) fn finish(&mut self, authority: &Authority) -> Outcome {
        let mut outcome = Outcome::default();
        self.release(&mut outcome, authority, |_| true);
        self.supersede_exits(&mut outcome);
        outcome
    }
}

/// The name of an exit in an example.
fn exit_of(op: Op) -> String {
    format!("{} exit", op.name())
}

impl CallDetail {
    fn new(entry: &Entry, enter: Option<i64>, call_only: bool) -> Self {
        Self {
            tid: entry.event.tid,
            pid: entry.event.pid,
            op: entry.op,
            path: entry.path,
            stack: entry.stack,
            enter,
            call_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::UNKNOWN_TASK;

    const STACK: NameId = NameId(1);
    const PATH: NameId = NameId(2);

    fn event(ts: i64, kind: Kind) -> Event {
        Event { ts, tid: 7, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind }
    }

    fn enter(ts: i64, stack: NameId, path: NameId, call_only: bool) -> Event {
        event(ts, Kind::CallEnter { op: Op::Fsync, stack, path, call_only })
    }

    fn exit(ts: i64) -> Event {
        event(ts, Kind::exit(Op::Fsync, Some(0)))
    }

    /// Passes the events of several logs through the stage, in the order of time. Returns the events and details that leave.
    fn run(logs: &[&[Event]]) -> (Vec<Event>, Vec<CallDetail>, usize) {
        let mut authority = Authority::new(&(0..logs.len()).collect::<Vec<_>>());
        let mut merged = Vec::new();
        for (log, events) in logs.iter().enumerate() {
            authority.observe(log, events.iter());
            authority.end_file(log);
            merged.extend(events.iter().map(|event| (event.ts, log, *event)));
        }
        merged.sort_by_key(|&(ts, log, _)| (ts, log));
        let mut thread = ThreadCalls::default();
        let (mut events, mut details, mut duplicates) = (Vec::new(), Vec::new(), 0);
        let mut take = |outcome: Outcome| {
            events.extend(outcome.events.into_iter().map(|(event, _)| event));
            details.extend(outcome.detail);
            duplicates += outcome.duplicates.len();
        };
        for (_, log, event) in merged {
            take(match event.kind {
                Kind::CallEnter { .. } => thread.enter(&event, Location::default(), log, &authority),
                _ => thread.exit(&event, Location::default(), log, &authority),
            });
        }
        take(thread.finish(&authority));
        (events, details, duplicates)
    }

    #[test]
    fn a_call_that_two_logs_report_is_emitted_once_with_what_both_know() {
        let kernel = [enter(100, STACK, NameId::NONE, false), exit(900)];
        let strace = [enter(120, NameId::NONE, PATH, true), exit(950)];
        let (events, details, duplicates) = run(&[&kernel, &strace]);
        assert_eq!(events, kernel);
        assert_eq!(details.iter().map(|detail| detail.path).collect::<Vec<_>>(), [PATH]);
        assert_eq!(duplicates, 2);
    }

    #[test]
    fn a_call_that_strace_reports_first_waits_for_the_kernel() {
        let kernel = [enter(10_000, STACK, NameId::NONE, false), exit(20_000)];
        let strace = [enter(100, NameId::NONE, PATH, true), exit(21_000)];
        let (events, details, duplicates) = run(&[&kernel, &strace]);
        assert_eq!(events, [enter(10_000, STACK, PATH, true), exit(20_000)]);
        assert_eq!((details.len(), duplicates), (0, 2));
    }

    #[test]
    fn a_call_that_only_strace_reports_is_emitted_when_the_kernel_reports_another() {
        let later = MAX_CALL_LEAD_NS + 10_000;
        let kernel = [enter(later, STACK, NameId::NONE, false), exit(later + 100)];
        let strace = [enter(100, NameId::NONE, PATH, true), exit(200), enter(later + 1, NameId::NONE, PATH, true)];
        let (events, details, duplicates) = run(&[&kernel, &strace]);
        assert_eq!(events, [&strace[..2], &kernel[..]].concat());
        assert_eq!((details.len(), duplicates), (1, 1));
    }

    #[test]
    fn a_log_that_begins_within_a_call_does_not_move_its_next_calls() {
        let later = 1_000_000;
        let kernel = [exit(890), enter(later, STACK, NameId::NONE, false), exit(later + 500)];
        let strace = [
            enter(100, NameId::NONE, PATH, true),
            exit(900),
            enter(later + 50, NameId::NONE, PATH, true),
            exit(later + 600),
        ];
        let (events, details, duplicates) = run(&[&kernel, &strace]);
        assert_eq!(events, [&strace[..2], &kernel[1..]].concat());
        // The exit of the first call, and the second call.
        assert_eq!((details.len(), duplicates), (1, 3));
    }

    #[test]
    fn an_exit_without_an_entry_is_passed_on_once() {
        let (events, _, duplicates) = run(&[&[exit(100)], &[exit(130)], &[exit(160)]]);
        assert_eq!((events, duplicates), (vec![exit(100)], 2));
    }

    #[test]
    fn an_id_of_background_writeback_does_not_hide_the_exit_of_another_log() {
        let logs =
            [vec![enter(100, STACK, NameId::NONE, false)], vec![enter(110, STACK, NameId::NONE, false), exit(900)]];
        let mut authority = Authority::new(&[0, 1]);
        for (log, events) in logs.iter().enumerate() {
            authority.observe(log, events.iter());
        }
        for (is_background, expected) in [(false, 0), (true, 1)] {
            let mut thread = ThreadCalls::default();
            thread.enter(&logs[0][0], Location::default(), 0, &authority);
            thread.enter(&logs[1][0], Location::default(), 1, &authority);
            thread.use_request(5, 0, 200, Location::default());
            if is_background {
                thread.leave_background(5);
            }
            assert_eq!(thread.exit(&logs[1][1], Location::default(), 1, &authority).events.len(), expected);
        }
    }
}
