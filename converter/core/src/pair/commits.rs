//! Commits of a journal by its own thread. They are in no request, even if one waits for them.

use super::{Map, Out, Pairer};
use crate::error::Result;
use crate::event::{CommitStep, Dev, Event};
use crate::losses::Reason;
use crate::rows::{Commit, Missing};

/// The commits of each thread.
#[derive(Default)]
pub(super) struct Commits {
    open: Map<u32, Commit>,
    /// The transaction that each thread committed last.
    last: Map<u32, (Dev, u64)>,
    count: u64,
}

/// Whether two events are of the same commit of a thread. A value that is not recorded fits any.
fn is_same(a: (Dev, u64), b: (Dev, u64)) -> bool {
    let devs_fit = a.0 == b.0 || !a.0.is_known() || !b.0.is_known();
    devs_fit && (a.1 == b.1 || a.1 == 0 || b.1 == 0)
}

impl Pairer {
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
                self.close_commit(task, &Commit { missing: Some(Missing::End), ..open }, out)?;
            }
        }
        self.commits.open.insert(task, commit(e, dev, transaction));
        Ok(())
    }

    pub(super) fn commit_end(&mut self, e: &Event, dev: Dev, transaction: u64, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        let started = self.commits.open.remove(&task);
        if let Some(open) = started {
            if is_same((open.dev, open.transaction), (dev, transaction)) {
                let dev = if open.dev.is_known() { open.dev } else { dev };
                let transaction = open.transaction.max(transaction);
                let end = Some(e.ts.max(open.start));
                return self.close_commit(task, &Commit { dev, transaction, end, ..open }, out);
            }
            self.close_commit(task, &Commit { missing: Some(Missing::End), ..open }, out)?;
        } else if self.commits.last.get(&task).is_some_and(|last| is_same(*last, (dev, transaction))) {
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("end of commit {transaction}"));
            return Ok(());
        }
        self.close_commit(task, &Commit { missing: Some(Missing::Start), ..commit(e, dev, transaction) }, out)
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

    /// Writes the commits that have not ended.
    pub(super) fn finish_commits(&mut self, out: &mut Out<'_>) -> Result<()> {
        let mut open: Vec<(u32, Commit)> = self.commits.open.drain().collect();
        open.sort_unstable_by_key(|(task, commit)| (commit.start, *task));
        for (task, commit) in open {
            self.close_commit(task, &Commit { missing: Some(Missing::End), ..commit }, out)?;
        }
        Ok(())
    }

    fn close_commit(&mut self, task: u32, commit: &Commit, out: &mut Out<'_>) -> Result<()> {
        self.commits.count += 1;
        self.commits.last.insert(task, (commit.dev, commit.transaction));
        out.sink.commit(&Commit { commit_id: self.commits.count, ..commit.clone() }, out.names)
    }
}

/// A commit by one of its events.
fn commit(e: &Event, dev: Dev, transaction: u64) -> Commit {
    let (tid, pid, comm) = (e.tid, e.pid, e.comm);
    let steps = [None; CommitStep::COUNT];
    Commit { commit_id: 0, tid, pid, comm, dev, transaction, start: e.ts, end: None, steps, missing: None }
}
