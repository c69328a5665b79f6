//! Calls in inputs that report nothing of requests. Each is a call-only request, as in a log of strace.
//!
//! A tracer of the kernel may record what file systems do or leave it out, and its log does not say which. So calls that no request takes
//! wait until an event of a request shows that they are of none, or until the inputs end without one.

use super::stores::lone_calls::LoneCalls;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::Kind;
use crate::event::probe::Probe;

/// Calls that wait. With more, the inputs are taken to hold no request.
const MAX_WAITING: usize = 65_536;

/// Whether only a recorder that reports requests writes such an event: it belongs to a request, or has an id that says that it does not.
fn shows_requests(kind: &Kind) -> bool {
    match kind {
        Kind::SyncStart { .. }
        | Kind::SyncEnd { .. }
        | Kind::SyncDone { .. }
        | Kind::BioAddFolio { .. }
        | Kind::BioSubmit { .. }
        | Kind::BioComplete { .. }
        | Kind::WbStart { .. }
        | Kind::WbEnd { .. }
        | Kind::WaitStart { .. }
        | Kind::WaitEnd { .. } => true,
        Kind::Probe(probe) => matches!(
            probe,
            Probe::SyncEnter { .. }
                | Probe::SyncExit { .. }
                | Probe::AddFolio { .. }
                | Probe::Submit { .. }
                | Probe::End { .. }
                | Probe::WaitStart { .. }
                | Probe::WaitEnd { .. }
                | Probe::FolioWait { .. }
                | Probe::FolioWaitEnd
        ),
        _ => false,
    }
}

impl Pairer {
    /// Decides what the waiting calls are at the first event of a recorder that reports requests.
    pub(super) fn note_recorder(&mut self, kind: &Kind, out: &mut Out<'_>) -> Result<()> {
        if self.lone_calls != LoneCalls::Unmatched && shows_requests(kind) {
            self.records_requests(out)
        } else {
            Ok(())
        }
    }

    /// The inputs report requests, so a call that none takes is of a file system that they do not report, or its request was lost.
    pub fn records_requests(&mut self, out: &mut Out<'_>) -> Result<()> {
        self.decide_lone_calls(LoneCalls::Unmatched, out)?;
        self.lone_calls = LoneCalls::Unmatched;
        Ok(())
    }

    /// Adds a call that waits.
    pub(super) fn add_lone_call(&mut self, out: &mut Out<'_>) -> Result<()> {
        let LoneCalls::Undecided(waiting) = &mut self.lone_calls else { return Ok(()) };
        *waiting += 1;
        if *waiting > MAX_WAITING { self.decide_lone_calls(LoneCalls::Requests, out) } else { Ok(()) }
    }

    /// The inputs end, so nothing more comes of the calls that wait.
    pub(super) fn finish_lone_calls(&mut self, out: &mut Out<'_>) -> Result<()> {
        let groups = self.tasks.by_id.values_mut().flat_map(|task| &mut task.groups);
        groups.filter(|group| group.is_undecided).for_each(|group| group.call_open = false);
        self.decide_lone_calls(LoneCalls::Requests, out)
    }

    /// Decides what the calls are that wait, and passes on those that have returned, in the order in which they did.
    pub(super) fn decide_lone_calls(&mut self, decision: LoneCalls, out: &mut Out<'_>) -> Result<()> {
        if !self.lone_calls.are_undecided() {
            return Ok(());
        }
        self.lone_calls = decision;
        let are_requests = decision == LoneCalls::Requests;
        let mut returned = Vec::new();
        for (&id, task) in &mut self.tasks.by_id {
            for group in task.groups.iter_mut().filter(|group| group.is_undecided) {
                group.is_undecided = false;
                group.is_lone = are_requests;
                if !are_requests {
                    group.leave_flight(&mut self.requests.in_flight);
                }
                let Some(call) = &mut group.call else { continue };
                call.call_only = are_requests;
                if !group.call_open {
                    returned.push((call.exit.unwrap_or(call.enter), call.call_id, id));
                }
            }
        }
        returned.sort_unstable();
        returned.into_iter().try_for_each(|(.., task)| self.flush_one(task, out))
    }
}
