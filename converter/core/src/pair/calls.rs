//! Sync calls: which requests were made in them, and the rows that leave together.

use std::sync::Arc;

use super::ends::OF_CALLS;
use super::lingering::{LINGER_NS, MAX_LINGERING};
use super::stores::lone_calls::LoneCalls;
use super::stores::tasks::OpenGroup;
use super::{Out, Pairer};
use crate::dedup::CallDetail;
use crate::error::Result;
use crate::event::{Event, Kind, NO_ID, Op};
use crate::losses::Reason;
use crate::rows::{Call, CallOf, Confidence, Request};
use crate::sink::{Group, GroupRequest};

impl Pairer {
    pub(super) fn call_enter(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::CallEnter { op, stack, path, call_only } = e.kind else { return Ok(()) };
        let is_lone = !call_only && self.lone_calls == LoneCalls::Requests;
        let is_undecided = !call_only && self.lone_calls.are_undecided();
        let call_only = call_only || is_lone;
        let task_id = self.tasks.id_of(e);
        let call = Call {
            call_id: self.next_call_id,
            op,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            process: self.process(e.pid),
            stack,
            path,
            call_only,
            enter: e.ts,
            exit: None,
            untimed: false,
            exit_lost: false,
            ret: None,
            sync_id: None,
            request_end: None,
        };
        self.next_call_id += 1;
        self.seen.calls = true;
        self.leave_write_waits(task_id, e.ts);
        if self.enter_behind(task_id, &call) {
            return Ok(());
        }
        self.leave_request(task_id, out)?;
        self.decide_origins(task_id, false, out)?;
        self.enter_next_call(task_id, out)?;
        if self.torn_lines.have_been {
            self.tasks.end_torn_call(task_id);
        }
        let place = (self.location(), self.provenance.log);
        let may_overlap = self.tasks.may_overlap(task_id);
        let task = self.tasks.by_id.entry(task_id).or_default();
        let mut closed_a_call = false;
        if !may_overlap && let Some(group) = task.groups.back_mut() {
            closed_a_call = group.close_without_exit(&self.exits);
            group.leave_flight(&mut self.requests.in_flight);
        }
        if may_overlap {
            let requests = &self.requests;
            task.end_guesses(|slot| requests[slot].over);
            self.tasks.note_overlapping(task_id);
        }
        let task = self.tasks.by_id.entry(task_id).or_default();
        self.requests.in_flight += u32::from(call_only || is_undecided);
        let group = OpenGroup::of_call(call, place, self.requests.in_flight, is_undecided);
        task.groups.push_back(OpenGroup { is_lone, ..group });
        if is_undecided {
            self.add_lone_call(out)?;
        }
        if closed_a_call || may_overlap { self.flush(task_id, out) } else { Ok(()) }
    }

    /// Adds what another log has recorded of the open call of a thread.
    pub fn call_detail(&mut self, detail: &CallDetail) {
        let task_id = self.tasks.id(detail.tid, detail.pid);
        let Some(group) = self.tasks.get_mut(task_id).and_then(|task| task.groups.back_mut()) else { return };
        let Some(call) = group.call.as_mut().filter(|call| group.call_open && call.op == detail.op) else { return };
        if !call.path.is_some() {
            call.path = detail.path;
        }
        if !call.stack.is_some() {
            call.stack = detail.stack;
        }
        if let Some(enter) = detail.enter
            && group.requests.is_empty()
        {
            call.enter = enter;
        }
        call.call_only = detail.call_only || self.lone_calls == LoneCalls::Requests;
        for &slot in &group.requests {
            if let Some(of) = self.requests[slot].call_of(call.call_id) {
                of.stack = call.stack;
            }
        }
        if !call.call_only && !group.is_undecided {
            group.leave_flight(&mut self.requests.in_flight);
        }
    }

    pub(super) fn call_exit(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        if let Kind::CallExit { op, .. } = e.kind {
            self.exits.note(self.provenance.log, op);
        }
        if self.hold_exit(e, self.tasks.id_of(e)) { Ok(()) } else { self.leave_call(e, out) }
    }

    /// A call returns. The request in it has ended, unless its end was lost.
    pub(super) fn leave_call(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::CallExit { op, ret, stack, untimed, entry_lost } = e.kind else { return Ok(()) };
        self.ends.see(OF_CALLS);
        let task_id = self.tasks.id_of(e);
        if self.torn_lines.have_been {
            self.tasks.end_torn_call(task_id);
        }
        if entry_lost {
            return self.exit_without_entry(e, task_id, out);
        }
        self.end_request_with_call(e, task_id, ret, out)?;
        self.leave_request(task_id, out)?;
        let at = if self.tasks.may_overlap(task_id) {
            self.call_of_exit(e, op, task_id, out)?
        } else {
            // A thread has left every call but its last one.
            let groups = self.tasks.by_id.get(&task_id).map(|task| &task.groups);
            let last = groups.and_then(|groups| groups.back().zip(groups.len().checked_sub(1)));
            last.filter(|(group, _)| group.may_return(op, e.ts, &self.requests)).map(|(_, at)| at)
        };
        let task = self.tasks.get_mut(task_id);
        let Some(group) = task.zip(at).and_then(|(task, at)| task.groups.get_mut(at)) else {
            self.decide_origins(task_id, true, out)?;
            if self.leave_lost_call(task_id, op, out)? {
                return Ok(());
            }
            return self.lose(Reason::UnmatchedExit, e.ts, out, || format!("{} exit", op.name()));
        };
        let requests = &mut self.requests;
        group.call_open = false;
        group.exit_lost = untimed;
        group.leave_flight(&mut requests.in_flight);
        let exit = (!untimed).then_some(e.ts);
        if let Some(call) = &mut group.call {
            call.exit = exit;
            call.untimed = untimed;
            call.ret = ret;
            if stack.is_some() {
                call.stack = stack;
            }
            // The row of the request that took the call has the exit too.
            for &slot in &group.requests {
                if let Some(of) = requests[slot].call_of(call.call_id) {
                    of.exit = exit;
                    of.stack = call.stack;
                }
            }
        }
        if untimed {
            self.count(Reason::DurationMissing, e.ts, self.location(), || op.name().to_owned());
        }
        self.decide_origins(task_id, false, out)?;
        self.flush(task_id, out)
    }

    /// Finds the call of a process to which an exit belongs, as an index into its groups. If there are several, none of them is known to have
    /// returned until all of them have.
    fn call_of_exit(&mut self, e: &Event, op: Op, task_id: u32, out: &mut Out<'_>) -> Result<Option<usize>> {
        let was_guessed = self.tasks.by_id.entry(task_id).or_default().guesses.see_exit();
        let Some(task) = self.tasks.by_id.get(&task_id) else { return Ok(None) };
        let groups = || task.groups.iter().enumerate();
        let found = groups().filter(|(_, group)| group.may_return(op, e.ts, &self.requests)).map(|(at, _)| at);
        let candidates: Vec<usize> = found.collect();
        let open: Vec<usize> = groups().filter(|(_, group)| group.call_open).map(|(at, _)| at).collect();
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(None) };
        let are_several = candidates.len() > 1;
        let uncertain =
            if was_guessed { &open[..] } else { &candidates[..usize::from(are_several) * candidates.len()] };
        for &slot in uncertain.iter().flat_map(|&at| &task.groups[at].requests) {
            let confidence = &mut self.requests[slot].row.confidence;
            *confidence = (*confidence).max(Confidence::Inferred);
        }
        if !are_several {
            return Ok(candidates.first().copied());
        }
        if task.guesses.guess_exit(op, candidates.len()) {
            for at in candidates {
                task.groups[at].close_without_exit(&self.exits);
                task.groups[at].leave_flight(&mut self.requests.in_flight);
            }
            self.flush(task_id, out)?;
        }
        Ok(None)
    }

    /// Takes an exit whose entry its source lacks. The thread has left the call that it had open before, whose exit was lost.
    fn exit_without_entry(&mut self, e: &Event, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        let Kind::CallExit { op, .. } = e.kind else { return Ok(()) };
        self.leave_request(task_id, out)?;
        self.lose(Reason::UnmatchedExit, e.ts, out, || format!("{} exit", op.name()))?;
        self.decide_origins(task_id, true, out)?;
        if self.tasks.may_overlap(task_id) {
            return Ok(());
        }
        if let Some(group) = self.tasks.get_mut(task_id).and_then(|task| task.groups.back_mut()) {
            group.close_without_exit(&self.exits);
            group.leave_flight(&mut self.requests.in_flight);
        }
        self.flush(task_id, out)
    }

    /// Ends the open request of a thread with its call, if its file system has reported no end of a sync until now.
    fn end_request_with_call(&mut self, e: &Event, task: u32, ret: Option<i64>, out: &mut Out<'_>) -> Result<()> {
        let Some(slot) = self.open_request_without_id(task) else { return Ok(()) };
        if self.requests[slot].probe.is_some() {
            return Ok(());
        }
        let row = &mut self.requests[slot].row;
        if row.start.is_none() || self.ends.are_seen(row.fs) {
            return Ok(());
        }
        row.confidence = row.confidence.max(Confidence::Inferred);
        self.end_request(e, slot, ret, out)
    }

    /// Passes on the groups of a task that are final, and its waits in writes, in their order.
    pub(super) fn flush(&mut self, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        if self.flush_groups(task_id, usize::MAX, out)? {
            self.emit_write_waits(task_id, i64::MAX, out)
        } else {
            Ok(())
        }
    }

    /// Passes on the first group of a task that is final.
    pub(super) fn flush_one(&mut self, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        if self.flush_groups(task_id, 1, out)? { self.emit_write_waits(task_id, i64::MAX, out) } else { Ok(()) }
    }

    /// Passes on groups of a task that are final, `limit` at most. Returns whether none is left.
    fn flush_groups(&mut self, task_id: u32, limit: usize, out: &mut Out<'_>) -> Result<bool> {
        let may_overlap = self.tasks.may_overlap(task_id);
        let are_undecided = may_overlap && self.lone_calls.are_undecided();
        let mut at = if are_undecided { self.tasks.get_mut(task_id).map_or(0, |task| task.undecided_first) } else { 0 };
        let mut passed = 0;
        loop {
            let Some(task) = self.tasks.get_mut(task_id) else { return Ok(true) };
            let Some(group) = task.groups.get(at) else { return Ok(at == 0) };
            if passed == limit {
                return Ok(false);
            }
            // A call that lasts is asked at the end of each of its requests, which are asked last.
            let is_open = group.call_open || group.is_undecided || group.awaits_exit;
            if is_open || !group.requests.iter().all(|&slot| self.requests[slot].settled) {
                if may_overlap {
                    // Overlapping requests have no order to keep.
                    if are_undecided && group.is_undecided && at == task.undecided_first {
                        task.undecided_first += 1;
                    }
                    at += 1;
                    continue;
                }
                return Ok(false);
            }
            let Some(mut group) = task.remove_group(at) else { return Ok(false) };
            passed += 1;
            self.emit_write_waits(task_id, group.since, out)?;
            self.emit(&mut group, out)?;
        }
    }

    /// Writes the rows of a group.
    fn emit(&mut self, group: &mut OpenGroup, out: &mut Out<'_>) -> Result<()> {
        group.leave_flight(&mut self.requests.in_flight);
        let call_only_request = self.call_only_request(group);
        group.join_requests(&mut self.requests);
        if let Some(call) = &group.call
            && call.path.is_some()
        {
            // Another log may know the file of the call where the kernel reports no path, or only the last part of it.
            let path = out.names.get(call.path);
            for &slot in &group.requests {
                let row = &mut self.requests[slot].row;
                let is_part = |own: &[u8]| !own.starts_with(b"/") && path.ends_with(own) && path.starts_with(b"/");
                if call.sync_id == Some(row.sync_id) && (!row.path.is_some() || is_part(out.names.get(row.path))) {
                    row.path = call.path;
                }
            }
        }
        if group.exit_lost {
            let call_id = group.call.as_ref().map(|call| call.call_id);
            for &slot in &group.requests {
                if let Some(of) = call_id.and_then(|call_id| self.requests[slot].call_of(call_id)) {
                    of.exit_lost = true;
                }
            }
        }
        if let Some(call) = &mut group.call {
            let mut rows = group.requests.iter().map(|&slot| &self.requests[slot].row).chain(&call_only_request);
            let own = rows.find(|row| Some(row.sync_id) == call.sync_id);
            let end = own.and_then(|row| row.end);
            // Without its start, only the thread says that the request is of this call.
            call.request_end = end.filter(|_| own.is_some_and(|row| row.start.is_some()));
            call.exit_lost = group.exit_lost;
            if group.exit_lost && !call.untimed && end.is_some() {
                let (op, enter) = (call.op, call.enter);
                self.count(Reason::ExitMissing, enter, group.location, || op.name().to_owned());
            }
            if call.sync_id.is_none() {
                let (op, enter) = (call.op, call.enter);
                self.count(Reason::UnmatchedCall, enter, group.location, || op.name().to_owned());
            }
        }
        let mut group_requests: Vec<GroupRequest<'_>> = group
            .requests
            .iter()
            .map(|&slot| {
                let open = &self.requests[slot];
                GroupRequest { request: &open.row, bio_ids: &open.bio_ids }
            })
            .collect();
        group_requests.extend(call_only_request.iter().map(|request| GroupRequest { request, bio_ids: &[] }));
        self.request_count += group_requests.len() as u64;
        out.sink.group(&Group { call: group.call.as_ref(), requests: &group_requests }, out.names)?;
        drop(group_requests);
        for slot in group.requests.drain(..) {
            self.requests.release(slot);
        }
        Ok(())
    }

    /// Makes the request of a call that no request has taken, if its sources report calls only.
    fn call_only_request(&mut self, group: &mut OpenGroup) -> Option<Request> {
        let call =
            group.call.as_mut().filter(|call| call.call_only && call.sync_id.is_none() && group.requests.is_empty())?;
        let row = Request {
            tid: call.tid,
            pid: call.pid,
            comm: call.comm,
            process: call.process.name,
            cgroup: call.process.cgroup,
            path: call.path,
            call: Some(CallOf::from(&*call)),
            call_only: true,
            last_event: call.exit.unwrap_or(call.enter),
            end: call.exit,
            ret: call.ret,
            bios_unseen: true,
            confidence: Confidence::Unknown,
            in_flight: group.in_flight,
            ..Request::new(self.requests.take_sync_id(), NO_ID, call.enter)
        };
        call.sync_id = Some(row.sync_id);
        let (op, enter) = (call.op.name(), call.enter);
        self.count(Reason::CallOnly, enter, group.location, || op.to_owned());
        let (locations, location) = (Arc::clone(&self.locations), group.location);
        let what = || format!("{op} without its return");
        match row.missing() {
            None => {}
            Some(_) if group.is_lone => {
                self.ends.count_missing(OF_CALLS, enter, || locations.describe(location, &what()));
            }
            Some(_) => self.count(Reason::EndMissing, enter, location, what),
        }
        Some(row)
    }

    /// Closes calls of processes that no request has taken for a long time.
    pub(super) fn expire_calls(&mut self, out: &mut Out<'_>) -> Result<()> {
        let now = self.now;
        let mut due = Vec::new();
        for id in self.tasks.take_overlapping() {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            let are_too_many = task.groups.len() > MAX_LINGERING;
            let (mut has_closed, mut has_open) = (false, false);
            for group in task.groups.range_mut(task.over_first.min(task.groups.len())..) {
                if group.call_open {
                    has_open = !are_too_many && now.saturating_sub(group.since) <= LINGER_NS;
                    if has_open {
                        break;
                    }
                    group.close_without_exit(&self.exits);
                    has_closed = true;
                    if let Some(call) = &group.call {
                        task.guesses.give_up_call(call.op);
                    }
                }
                task.over_first += 1;
            }
            if has_closed {
                due.push(id);
            }
            if has_open {
                self.tasks.note_overlapping(id);
            }
        }
        due.into_iter().try_for_each(|id| self.flush(id, out))
    }
}
