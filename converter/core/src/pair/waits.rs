//! Waits of requests: for a commit of the journal, and in a cache flush.

use super::stores::commits::Waiter;
use super::stores::slots::RequestSlot;
use super::stores::threads::add;
use super::{Out, Pairer, of_request};
use crate::error::Result;
use crate::event::{Dev, Event, WaitKind};
use crate::losses::Reason;
use crate::rows::{Confidence, WaitInterval};

/// Which waits the patched kernel reports for the requests of a file system: (commits, flushes).
pub(super) fn reported_waits(fs: &[u8], ino: u64) -> (bool, bool) {
    match fs {
        b"ext2" | b"ext3" | b"ext4" | b"f2fs" | b"bdev" => (true, true),
        // A request for the whole file system forces the log on another path, which has no tracepoint.
        b"xfs" => (ino != 0, true),
        // The commits and flushes of btrfs have no tracepoints.
        _ => (false, false),
    }
}

/// Notes that an end of a wait was lost.
pub(super) fn tear(torn_waits: &mut [bool; 2], wait: WaitKind) {
    match wait {
        WaitKind::Flush => torn_waits[1] = true,
        _ => torn_waits[0] |= wait.is_of_journal(),
    }
}

impl Pairer {
    /// The start of a wait. It belongs to the request with this id in the same thread. The thread of a journal has an id of its own.
    pub(super) fn wait_start(
        &mut self,
        e: &Event,
        id: u64,
        wait: WaitKind,
        transaction: u64,
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.seen.waits = true;
        let task = self.tasks.id_of(e);
        let Some(slot) = self.find_own_request(task, id).or_else(|| self.adopt_id(task, id)) else {
            if wait == WaitKind::Commit {
                self.remember_background(id);
                return self.commit_start(e, Dev::UNKNOWN, transaction, out);
            }
            return self.unmatched_wait(e, id, wait, out);
        };
        self.begin_wait(e, slot, wait, transaction);
        Ok(())
    }

    /// A wait of a request begins.
    pub(super) fn begin_wait(&mut self, e: &Event, slot: RequestSlot, wait: WaitKind, transaction: u64) {
        let open = &mut self.requests[slot];
        open.extend_to(e.ts);
        open.open_waits.push(wait, e.ts, open.row.waits.len());
        let (at, sync_id) = (open.row.waits.len(), open.row.sync_id);
        open.row.waits.push(WaitInterval {
            sync_id: open.row.sync_id,
            number: 0,
            wait,
            start: e.ts,
            end: e.ts,
            transaction,
            commit_id: None,
            confidence: Confidence::Exact,
        });
        if wait == WaitKind::CommitWait && transaction != 0 {
            self.commits.add_waiter(transaction, Waiter { start: e.ts, sync_id, at }, slot, &self.requests);
        }
    }

    /// The last open wait of a kind ends. Returns its index in the row's waits; `None` if none is open.
    pub(super) fn end_wait(&mut self, e: &Event, slot: RequestSlot, wait: WaitKind, transaction: u64) -> Option<usize> {
        let open = &mut self.requests[slot];
        open.extend_to(e.ts);
        let Some(at) = open.open_waits.end(wait, e.ts) else {
            tear(&mut open.torn_waits, wait);
            add(&mut open.evidence.torn, (open.row.start.unwrap_or(open.row.first_event), e.ts));
            return None;
        };
        let interval = &mut open.row.waits[at];
        let transaction_at_start = interval.transaction;
        interval.end = e.ts;
        if transaction != 0 {
            interval.transaction = transaction;
        }
        if wait == WaitKind::CommitWait {
            if transaction_at_start != 0 {
                let waiter = Waiter { start: interval.start, sync_id: open.row.sync_id, at };
                let commit = self.commits.waited(transaction_at_start, open.row.dev, waiter);
                interval.commit_id = interval.commit_id.or(commit);
            }
            if self.journals.is_open(open.row.dev, interval) {
                open.evidence.open_commits.push(*interval);
            } else {
                self.journals.parts(open.row.dev, interval, &mut open.evidence.commit_parts);
            }
        }
        Some(at)
    }

    /// The end of a wait. It ends the last open wait of its kind.
    pub(super) fn wait_end(
        &mut self,
        e: &Event,
        id: u64,
        wait: WaitKind,
        transaction: u64,
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.seen.waits = true;
        let task = self.tasks.id_of(e);
        let Some(slot) = self.find_own_request(task, id).or_else(|| self.adopt_id(task, id)) else {
            if wait == WaitKind::Commit {
                return self.commit_end(e, Dev::UNKNOWN, transaction, out);
            }
            return self.unmatched_wait(e, id, wait, out);
        };
        if self.end_wait(e, slot, wait, transaction).is_none() {
            return self
                .lose(Reason::UnmatchedWait, e.ts, out, || format!("end of a {}{}", wait.name(), of_request(id)));
        }
        Ok(())
    }

    /// A wait of a thread that has no open request with this id. It is a loss, unless the thread works for background writeback or for the
    /// request of another thread.
    fn unmatched_wait(&mut self, e: &Event, id: u64, wait: WaitKind, out: &mut Out<'_>) -> Result<()> {
        if id == 0 || self.is_background(id) || self.requests.has_id(id) {
            return Ok(());
        }
        self.lose(Reason::UnmatchedWait, e.ts, out, || format!("{} of no request,{}", wait.name(), of_request(id)))
    }
}
