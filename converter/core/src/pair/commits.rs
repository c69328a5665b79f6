//! Commits of journals: by the thread of the journal, and fast commits by the thread of a sync; with what started each, and who waited for it.

use super::origins::FLUSHER;
use super::stores::commits::{Ended, Requested, fits};
use super::stores::files::Writers;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::{CommitStep, Dev, Event, FastCommitStatus};
use crate::losses::Reason;
use crate::rows::{Commit, CommitKind, Missing, StartedBy};

/// How long after its timer expired the thread of a journal may take until it begins to commit.
const TIMER_NS: i64 = 1_000_000_000;

/// Whether two events are of the same commit of a thread. A value that is not recorded fits any.
fn is_same(a: (Dev, u64), b: (Dev, u64)) -> bool {
    fits(a.0, b.0) && (a.1 == b.1 || a.1 == 0 || b.1 == 0)
}

impl Pairer {
    /// A thread asks for the commit of a transaction. The first one starts it.
    pub(super) fn commit_request(&mut self, e: &Event, dev: Dev, transaction: u64, is_due: Option<bool>) {
        let task = self.tasks.id_of(e);
        self.commits.sees_requests = true;
        let sync_id = self.tasks.open_request(task).map(|slot| self.requests[slot].row.sync_id);
        let by = match sync_id {
            Some(_) => Some(StartedBy::Sync),
            None if self.commits.room.contains_key(&task) => Some(StartedBy::Space),
            None if is_due == Some(true) => Some(StartedBy::Timer),
            // The start of its request may be lost.
            None if self.tasks.is_in_call(task) => None,
            None => Some(StartedBy::Other),
        };
        let requested = &mut self.commits.journal(dev).requested;
        if requested.is_none_or(|before| before.transaction != transaction) {
            *requested = Some(Requested { transaction, by, sync_id });
        }
    }

    pub(super) fn commit_start(&mut self, e: &Event, dev: Dev, transaction: u64, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        if let Some(open) = self.commits.open.get_mut(&task) {
            if is_same((open.dev, open.transaction), (dev, transaction)) {
                if !open.dev.is_known() {
                    open.dev = dev;
                }
                self.count(Reason::Duplicate, e.ts, self.location(), || format!("start of commit {transaction}"));
                return Ok(());
            }
            if let Some(open) = self.commits.open.remove(&task) {
                self.close_commit(task, Commit { missing: Some(Missing::End), ..open }, out)?;
            }
        }
        let (started_by, sync_id) = self.starter(dev, transaction, e.ts);
        let commit_id = self.commits.next_id();
        self.commits.by_transaction.insert((dev, transaction), task);
        self.commits.open.insert(task, Commit { commit_id, started_by, sync_id, ..commit(e, dev, transaction) });
        Ok(())
    }

    /// Returns what started the commit of a transaction that begins now, and which request.
    fn starter(&mut self, dev: Dev, transaction: u64, ts: i64) -> (Option<StartedBy>, Option<u64>) {
        let sees_requests = self.commits.sees_requests;
        let timer = self.commits.timer;
        if dev.is_known() {
            let journal = self.commits.journal(dev);
            let has_begun = std::mem::replace(&mut journal.has_begun, true);
            if let Some(requested) = journal.requested.take_if(|requested| requested.transaction == transaction) {
                return (requested.by, requested.sync_id);
            }
            // Nobody asked for it. The thread of the journal does so itself when the transaction is old enough.
            let has_expired = timer.is_some_and(|expired| ts - expired < TIMER_NS);
            if sees_requests && has_begun && has_expired {
                return (Some(StartedBy::Timer), None);
            }
        }
        let first = if sees_requests { None } else { self.commits.first_waiter(dev, transaction, &self.requests) };
        (first.map(|_| StartedBy::Sync), first)
    }

    pub(super) fn commit_end(&mut self, e: &Event, dev: Dev, transaction: u64, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        let started = self.commits.open.remove(&task);
        if let Some(open) = started {
            if is_same((open.dev, open.transaction), (dev, transaction)) {
                let dev = if open.dev.is_known() { open.dev } else { dev };
                let transaction = open.transaction.max(transaction);
                let end = Some(e.ts.max(open.start));
                return self.close_commit(task, Commit { dev, transaction, end, ..open }, out);
            }
            self.close_commit(task, Commit { missing: Some(Missing::End), ..open }, out)?;
        } else if self
            .commits
            .last
            .get(&task)
            .is_some_and(|last| is_same((last.dev, last.transaction), (dev, transaction)))
        {
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("end of commit {transaction}"));
            return Ok(());
        }
        let commit_id = self.commits.next_id();
        let missing = Some(Missing::Start);
        self.close_commit(task, Commit { commit_id, missing, ..commit(e, dev, transaction) }, out)
    }

    /// The next step of the commit of a thread begins.
    pub(super) fn commit_step(&mut self, e: &Event, dev: Dev, transaction: u64, step: CommitStep) {
        let task = self.tasks.id_of(e);
        if let Some(open) = self.commits.open.get_mut(&task)
            && is_same((open.dev, open.transaction), (dev, transaction))
        {
            // A late event is not older than the commit.
            open.steps[step as usize].get_or_insert(e.ts.max(open.start));
        }
    }

    /// A thread closes a handle. Blocks that the kernel's own threads changed count as nobody's, because it is not known for whom they did.
    pub(super) fn handle_end(&mut self, e: &Event, dev: Dev, transaction: u64, blocks: u64, out: &Out<'_>) {
        if blocks == 0 || transaction == 0 {
            return;
        }
        let process = self.process(e.pid);
        let names = if process.name.is_some() { process.name } else { e.comm };
        let is_kernel = out.names.get(e.comm).starts_with(FLUSHER);
        let changer = if is_kernel { Writers::default() } else { Writers { names, cgroups: process.cgroup } };
        self.commits.journal(dev).changes.add(transaction, changer, blocks);
    }

    /// The thread of a sync begins a fast commit.
    pub(super) fn fast_commit_start(&mut self, e: &Event, dev: Dev, transaction: u64, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        if let Some(open) = self.commits.open_fast.get(&task) {
            if is_same((open.dev, open.transaction), (dev, transaction)) && open.start == e.ts {
                self.count(Reason::Duplicate, e.ts, self.location(), || "start of a fast commit".to_owned());
                return Ok(());
            }
            if let Some(open) = self.commits.open_fast.remove(&task) {
                self.write_commit(Commit { missing: Some(Missing::End), ..open }, out)?;
            }
        }
        let row = self.fast_commit(e, dev, transaction);
        self.commits.open_fast.insert(task, row);
        Ok(())
    }

    pub(super) fn fast_commit_stop(
        &mut self,
        e: &Event,
        dev: Dev,
        transaction: u64,
        status: Option<FastCommitStatus>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        if status == Some(FastCommitStatus::Ok)
            && let Some(state) = self.tasks.open_request(task).and_then(|slot| self.requests[slot].probe.as_mut())
        {
            // Its thread has written to the journal, even if that bio is not in the log.
            state.has_journal_bio = true;
        }
        let row = match self.commits.open_fast.remove(&task) {
            Some(open) if is_same((open.dev, open.transaction), (dev, transaction)) => {
                Commit { end: Some(e.ts.max(open.start)), transaction: open.transaction.max(transaction), ..open }
            }
            open => {
                if let Some(open) = open {
                    self.write_commit(Commit { missing: Some(Missing::End), ..open }, out)?;
                }
                Commit { missing: Some(Missing::Start), ..self.fast_commit(e, dev, transaction) }
            }
        };
        // The full commit that took its place has ended before.
        let reason = row.reason.or(self.commits.journal(dev).ineligible.and_then(|(_, reason)| reason));
        let reason = reason.filter(|_| status == Some(FastCommitStatus::Ineligible));
        self.write_commit(Commit { status, reason, ..row }, out)
    }

    /// A fast commit by one of its events. The request of its thread starts it.
    fn fast_commit(&mut self, e: &Event, dev: Dev, transaction: u64) -> Commit {
        let request = self.tasks.open_request(self.tasks.id_of(e)).map(|slot| self.requests[slot].row.sync_id);
        let reason = self.commits.journal(dev).ineligible.and_then(|(_, reason)| reason);
        let commit_id = self.commits.next_id();
        let started_by = request.map(|_| StartedBy::Sync);
        let kind = CommitKind::Fast;
        Commit { commit_id, kind, started_by, sync_id: request, reason, ..commit(e, dev, transaction) }
    }

    /// Writes the commits that have not ended.
    pub(super) fn finish_commits(&mut self, out: &mut Out<'_>) -> Result<()> {
        let fast = std::mem::take(&mut self.commits.open_fast);
        let mut open: Vec<(u32, Commit)> = self.commits.open.drain().chain(fast).collect();
        open.sort_unstable_by_key(|(task, commit)| (commit.start, *task, commit.commit_id));
        for (task, commit) in open {
            let commit = Commit { missing: Some(Missing::End), ..commit };
            match commit.kind {
                CommitKind::Full => self.close_commit(task, commit, out)?,
                CommitKind::Fast => self.write_commit(commit, out)?,
            }
        }
        Ok(())
    }

    fn close_commit(&mut self, task: u32, mut commit: Commit, out: &mut Out<'_>) -> Result<()> {
        let Commit { commit_id, dev, transaction, start, end, .. } = commit;
        self.commits.last.insert(task, Ended { commit_id, dev, transaction, start, end });
        if commit.dev.is_known() {
            // This commit holds what a fast commit cannot.
            self.commits.journal(commit.dev).ineligible.take_if(|(ts, _)| *ts < commit.start);
        }
        for dev in [commit.dev, Dev::UNKNOWN] {
            // Another thread may commit a transaction of the same number.
            let key = (dev, commit.transaction);
            if self.commits.by_transaction.get(&key) == Some(&task) {
                self.commits.by_transaction.remove(&key);
            }
        }
        if commit.dev.is_known() {
            let blocks = self.commits.journal(commit.dev).changes.end(commit.transaction);
            blocks.iter().try_for_each(|row| out.sink.bio(row, out.names))?;
        }
        for (waiter, slot) in self.commits.take_waiters(commit.dev, commit.transaction, &self.requests) {
            if let Some(wait) = self.requests[slot].row.waits.get_mut(waiter.at) {
                wait.commit_id.get_or_insert(commit.commit_id);
            }
            commit.waiters.get_or_insert_default().push(waiter.sync_id);
        }
        self.write_commit(commit, out)
    }

    fn write_commit(&mut self, mut commit: Commit, out: &mut Out<'_>) -> Result<()> {
        if self.seen.waits && commit.kind == CommitKind::Full {
            let waiters = commit.waiters.get_or_insert_default();
            waiters.sort_unstable();
            waiters.dedup();
        }
        out.sink.commit(&commit, out.names)
    }
}

/// A commit by one of its events.
fn commit(e: &Event, dev: Dev, transaction: u64) -> Commit {
    let (tid, pid, comm) = (e.tid, e.pid, e.comm);
    Commit {
        commit_id: 0,
        tid,
        pid,
        comm,
        dev,
        transaction,
        kind: CommitKind::Full,
        started_by: None,
        sync_id: None,
        waiters: None,
        status: None,
        reason: None,
        start: e.ts,
        end: None,
        steps: [None; CommitStep::COUNT],
        missing: None,
    }
}
