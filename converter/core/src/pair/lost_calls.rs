//! Requests whose call has no entry in the log: the log begins within the call, or the entry was lost. When such a call began is not known.
//!
//! Requests without any call exist too: of io_uring, of durable writes, of kernel threads. So a request waits for the next call of its thread.
//! An exit without an entry says that there was a call. A log without exits says it only of the first request of a thread: if the thread makes
//! calls later, the entry of the first one may precede the log.

use super::lingering::LINGER_NS;
use super::parts::{MAX_IN_CALL, MAX_WITHOUT_CALL, Part, Parts};
use super::stores::requests::OpenRequest;
use super::stores::slots::RequestSlot;
use super::{Out, Pairer, of_request};
use crate::error::Result;
use crate::event::probe::SyncScope;
use crate::event::{Event, Kind, NO_ID, Op};
use crate::losses::Reason;
use crate::names::Names;

/// A call begins at most this long before its request: later requests have begun after the log.
const BEGINNING_NS: i64 = 1_000_000_000;
/// File systems on a disk, which have no other one below them.
const ON_DISK: [&[u8]; 6] = [b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"f2fs"];
/// The prefixes of the names of kernel threads that make requests.
const WORKERS: [&[u8]; 2] = [b"iou-wrk-", b"kworker/"];

/// Returns what a request syncs.
fn part_of(open: &OpenRequest) -> Part {
    match open.probe.as_ref().map(|state| state.scope) {
        _ if open.row.start.is_none() => Part::Unknown,
        Some(Some(scope)) if scope.is_whole_fs() => Part::WholeFs(scope, open.row.dev),
        Some(_) => Part::File,
        None => Part::Other,
    }
}

impl Pairer {
    /// Whether the request that an event with an id begins may be of a file below that of the first request in the same call: that is of no
    /// file system on a disk, as far as is recorded. Probes, and the tracepoints of a stock kernel, do not report those one after the other.
    pub(super) fn may_be_below(&self, task_id: u32, e: &Event, names: &Names) -> bool {
        if !matches!(e.kind, Kind::SyncStart { id, .. } if id != NO_ID) {
            return false;
        }
        let group = self.tasks.by_id.get(&task_id).and_then(|task| task.groups.back());
        let Some(&first) = group.and_then(|group| group.requests.first()) else { return false };
        let row = &self.requests[first].row;
        !row.dev.is_known() || !ON_DISK.contains(&names.get(row.fs))
    }

    /// A request begins outside of a call. Decides whether it waits for the next call of its thread.
    pub(super) fn await_exit(&mut self, e: &Event, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        if self.tasks.may_overlap(task_id) {
            return Ok(());
        }
        let (sees_exits, is_beginning) = (self.exits.are_any(), e.ts.saturating_sub(self.first_ts) <= BEGINNING_NS);
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(()) };
        let is_first = !std::mem::replace(&mut task.has_begun, true);
        let is_whole = matches!(Part::of(e), Part::WholeFs(..));
        let count = if is_whole { &mut task.whole_without_call } else { &mut task.without_call };
        *count = count.saturating_add(1);
        if task.without_call > MAX_WITHOUT_CALL || task.whole_without_call as usize > MAX_IN_CALL {
            return self.release_awaiting(task_id, out);
        }
        // Until the first exit, nothing says whether the log has any.
        if let Some(group) = task.groups.back_mut()
            && (sees_exits || is_first || is_whole)
        {
            (group.awaits_exit, group.is_first) = (true, is_first && is_beginning);
            self.awaiting.push_back((e.ts, task_id));
        }
        Ok(())
    }

    /// A thread enters a call. The requests before it have lost no exit: if the log records exits, there was none.
    pub(super) fn enter_next_call(&mut self, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        let sees_exits = self.exits.are_any();
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(()) };
        task.has_begun = true;
        if std::mem::take(&mut task.without_call) + std::mem::take(&mut task.whole_without_call) == 0 {
            // None awaits it. Many may wait for their bios.
            return Ok(());
        }
        let Some(group) = task.groups.iter().find(|group| group.awaits_exit) else { return Ok(()) };
        let first = group.requests.first().copied().filter(|_| group.is_first && !sees_exits);
        if let Some(slot) = first {
            self.lose_call(slot, None);
        }
        self.release_awaiting(task_id, out)
    }

    /// A thread leaves a call whose entry is not in the log. Returns whether the requests in it are known.
    pub(super) fn leave_lost_call(&mut self, task_id: u32, op: Op, out: &mut Out<'_>) -> Result<bool> {
        let requests = &self.requests;
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(false) };
        task.has_begun = true;
        (task.without_call, task.whole_without_call) = (0, 0);
        let awaiting = task.groups.iter().filter(|group| group.awaits_exit);
        let mut inside: Vec<RequestSlot> = awaiting.flat_map(|group| &group.requests).copied().collect();
        let mut parts = Parts::default();
        let before = inside.iter().rposition(|&slot| !parts.take(op, part_of(&requests[slot]), true));
        inside.drain(..before.map_or(0, |at| at + 1));
        inside.retain(|&slot| requests[slot].row.start.is_some());
        // Only one of several requests has the op of the call, and it is not known which.
        let of_one = Some(op).filter(|_| inside.len() == 1);
        // The first ones may be parts of one request without a start.
        let first = inside.first().map(|&slot| requests[slot].row.call_sync_id);
        for &slot in &inside {
            self.lose_call(slot, of_one);
            let row = &mut self.requests[slot].row;
            row.call_sync_id = first.unwrap_or(row.sync_id);
        }
        self.release_awaiting(task_id, out)?;
        Ok(!inside.is_empty())
    }

    /// Releases the requests that have waited long enough for the next call of their threads.
    pub(super) fn expire_awaiting(&mut self, out: &mut Out<'_>) -> Result<()> {
        while let Some(&(ts, task_id)) = self.awaiting.front() {
            if self.now.saturating_sub(ts) <= LINGER_NS {
                break;
            }
            self.awaiting.pop_front();
            self.lose_first_call(task_id, out.names);
            self.release_awaiting_since(task_id, ts, out)?;
        }
        Ok(())
    }

    /// Releases all requests that wait for the next call of their threads, at the end of the inputs.
    pub(super) fn finish_awaiting(&mut self, out: &mut Out<'_>) -> Result<()> {
        for task_id in self.tasks.in_order() {
            self.lose_first_call(task_id, out.names);
            self.release_awaiting(task_id, out)?;
        }
        Ok(())
    }

    /// A thread has made no call after its first request. If others have, and the log has no exits, the request may have been made in a call.
    fn lose_first_call(&mut self, task_id: u32, names: &Names) {
        if self.exits.are_any() || !self.seen.calls {
            return;
        }
        let Some(task) = self.tasks.by_id.get(&task_id) else { return };
        let Some(group) = task.groups.iter().find(|group| group.awaits_exit && group.is_first) else { return };
        let Some(&slot) = group.requests.first() else { return };
        let comm = names.get(self.requests[slot].row.comm);
        if task.without_call + task.whole_without_call <= 1 && !WORKERS.iter().any(|worker| comm.starts_with(worker)) {
            self.lose_call(slot, None);
        }
    }

    /// The requests that a thread has made before a sync function ended whose begin is not in the log, and that may have been made in that: a
    /// call makes one request, and a function for a whole file system calls those for its data and its journal.
    pub(super) fn parts_of_orphan(&self, task_id: u32, orphan: RequestSlot, scope: SyncScope) -> Vec<RequestSlot> {
        let Some(task) = self.tasks.by_id.get(&task_id) else { return Vec::new() };
        let of_call = task.groups.back().filter(|group| group.call.is_some());
        let is_only = of_call.and_then(|group| group.call.as_ref()).is_some_and(|call| !call.op.makes_several());
        let groups = task.groups.iter().rev().take_while(|group| match of_call {
            Some(of_call) => std::ptr::eq(*group, of_call),
            None => group.call.is_none(),
        });
        let before = groups.flat_map(|group| group.requests.iter().rev()).copied().filter(|&slot| slot != orphan);
        let is_inside = |&slot: &RequestSlot| match self.requests[slot].probe.as_ref().and_then(|state| state.scope) {
            Some(SyncScope::Data | SyncScope::Journal) => scope == SyncScope::FileSystem || is_only,
            _ => is_only,
        };
        let mut inside: Vec<RequestSlot> = before.take_while(is_inside).collect();
        inside.reverse();
        inside
    }

    fn release_awaiting(&mut self, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(()) };
        let mut has_released = false;
        for group in &mut task.groups {
            has_released |= std::mem::take(&mut group.awaits_exit);
        }
        if has_released { self.flush(task_id, out) } else { Ok(()) }
    }

    /// Releases what has waited since a time. What waited longer has been released before. It may still wait for its bios, and not be passed
    /// over again for each request.
    fn release_awaiting_since(&mut self, task_id: u32, since: i64, out: &mut Out<'_>) -> Result<()> {
        let Some(task) = self.tasks.get_mut(task_id) else { return Ok(()) };
        let from = task.groups.partition_point(|group| group.since < since);
        let mut has_released = false;
        for group in task.groups.range_mut(from..).take_while(|group| group.since <= since) {
            has_released |= std::mem::take(&mut group.awaits_exit);
        }
        if !has_released {
            // A call that was found out later is not in its place among the groups.
            for group in task.groups.iter_mut().filter(|group| group.since <= since) {
                has_released |= std::mem::take(&mut group.awaits_exit);
            }
        }
        if has_released { self.flush(task_id, out) } else { Ok(()) }
    }

    /// Notes that a request may have been made in a call whose entry is not in the log. `op`: that of the call.
    pub(super) fn lose_call(&mut self, slot: RequestSlot, op: Option<Op>) {
        let open = &mut self.requests[slot];
        let row = &mut open.row;
        let Some(start) = row.start.filter(|_| row.call.is_none()) else { return };
        row.call_missing = true;
        row.lost_op = op;
        let (id, location) = (row.id, open.location);
        self.count(Reason::CallMissing, start, location, || format!("start{}", of_request(id)));
    }
}
