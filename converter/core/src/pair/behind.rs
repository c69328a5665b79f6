//! Calls and requests of different inputs, whose clocks may differ a little: by one clock, a request seems to begin before its call, or to end
//! after it.

use super::stores::behind::HeldExit;
use super::stores::slots::RequestSlot;
use super::{Out, Pairer};
use crate::dedup::MAX_SKEW_NS;
use crate::error::Result;
use crate::event::{Event, Kind};
use crate::rows::{Call, CallOf, Confidence};

impl Pairer {
    /// The open request of a thread, if only another input than that of the current event records requests, and has reported its start.
    fn request_of_other_input(&self, task: u32) -> Option<RequestSlot> {
        if !self.provenance.is_apart {
            return None;
        }
        let slot = self.tasks.open_request(task)?;
        let open = &self.requests[slot];
        (open.is_apart && open.row.start.is_some() && open.location.file() != self.location().file()).then_some(slot)
    }

    /// Gives a call to the request that its thread has just begun, by the clock of another input. Returns whether it does.
    pub(super) fn enter_behind(&mut self, task_id: u32, call: &Call) -> bool {
        let Some(slot) = self.request_of_other_input(task_id) else { return false };
        let row = &self.requests[slot].row;
        let is_near = row.start.is_some_and(|start| call.enter.saturating_sub(start) <= MAX_SKEW_NS);
        if !is_near || row.call.is_some() {
            return false;
        }
        let Some(task) = self.tasks.get_mut(task_id) else { return false };
        let Some(group) = task.groups.iter_mut().rfind(|group| group.requests == [slot] && group.call.is_none()) else {
            return false;
        };
        let row = &mut self.requests[slot].row;
        let call = Call { sync_id: Some(row.sync_id), ..call.clone() };
        row.call = Some(CallOf::from(&call));
        row.confidence = row.confidence.max(Confidence::Inferred);
        (group.call, group.call_open, group.is_behind) = (Some(call), true, true);
        group.log = self.provenance.log;
        group.awaits_exit = false;
        task.over_first = 0;
        true
    }

    /// The next request of a thread begins. If the one before has no end, the call that began behind it is not its own, but that of the next.
    pub(super) fn take_back_call(&mut self, task_id: u32) {
        let Some(task) = self.tasks.get_mut(task_id) else { return };
        let Some(group) = task.groups.back_mut().filter(|group| group.is_behind && group.call_open) else { return };
        group.is_behind = false;
        let Some(&slot) = group.requests.first().filter(|&&slot| self.requests[slot].row.end.is_none()) else { return };
        let Some(mut call) = group.call.take() else { return };
        group.call_open = false;
        self.requests[slot].row.call = None;
        call.sync_id = None;
        let (place, in_flight) = ((group.location, group.log), self.requests.in_flight);
        task.groups.push_back(super::stores::tasks::OpenGroup::of_call(call, place, in_flight, false));
    }

    /// Holds back the exit of a call while the request in it has no end, by the clock of another input. Returns whether it does.
    pub(super) fn hold_exit(&mut self, e: &Event, task: u32) -> bool {
        let Some(request) = self.request_of_other_input(task) else { return false };
        let is_held = self.held_exits.iter().any(|held| held.task == task);
        if is_held || self.replayed.is_some() {
            return false;
        }
        let sync_id = self.requests[request].row.sync_id;
        self.held_exits.push(HeldExit { event: *e, provenance: self.provenance, task, request, sync_id });
        true
    }

    /// Uses the exits that are held back, if the next event says that no end follows within the maximum skew.
    pub(super) fn resolve_exits(&mut self, next: &Event, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(next);
        let is_bound = matches!(next.kind, Kind::CallEnter { .. } | Kind::CallExit { .. } | Kind::SyncStart { .. });
        self.use_exits(out, |held| next.ts.saturating_sub(held.event.ts) > MAX_SKEW_NS || is_bound && held.task == task)
    }

    /// Uses the exits whose request has ended now. The clocks differ, so the time from the one to the other is not known exactly.
    pub(super) fn release_exits(&mut self, out: &mut Out<'_>) -> Result<()> {
        for at in 0..self.held_exits.len() {
            let HeldExit { event, request, sync_id, .. } = self.held_exits[at];
            let row = &mut self.requests[request].row;
            if row.sync_id == sync_id && row.end.is_some_and(|end| end > event.ts) {
                row.confidence = row.confidence.max(Confidence::Inferred);
            }
        }
        let ended: Vec<(RequestSlot, u64)> = self
            .held_exits
            .iter()
            .map(|held| (held.request, held.sync_id))
            .filter(|&(request, sync_id)| !self.requests.is_open(request, sync_id))
            .collect();
        self.use_exits(out, |held| ended.contains(&(held.request, held.sync_id)))
    }

    /// Uses all exits that are held back, at the end of the inputs.
    pub(super) fn finish_exits(&mut self, out: &mut Out<'_>) -> Result<()> {
        self.use_exits(out, |_| true)
    }

    fn use_exits(&mut self, out: &mut Out<'_>, is_due: impl Fn(&HeldExit) -> bool) -> Result<()> {
        let (due, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held_exits).into_iter().partition(is_due);
        self.held_exits = held;
        for exit in due {
            let current = std::mem::replace(&mut self.provenance, exit.provenance);
            let result = self.leave_call(&exit.event, out);
            self.provenance = current;
            result?;
        }
        Ok(())
    }
}
