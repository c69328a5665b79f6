//! The commits of each thread, what started them, and who waits for them.

use std::collections::BTreeMap;

use super::changes::Changes;
use super::requests::Requests;
use super::slots::RequestSlot;
use crate::collections::Map;
use crate::event::bio_flags::BioFlags;
use crate::event::probe::WriteWaitKind;
use crate::event::{CommitStep, Dev, FastCommitReason};
use crate::names::NameId;
use crate::rows::{Bio, Commit, StartedBy};

/// How many waiters are kept before those that no longer wait are removed.
const MIN_SWEEP: usize = 64;
/// Journals that are kept.
const MAX_JOURNALS: usize = 4096;

/// The commits of each thread.
#[derive(Default)]
pub(in crate::pair) struct Commits {
    pub(in crate::pair) open: Map<u32, Commit>,
    pub(in crate::pair) open_fast: Map<u32, Commit>,
    /// The commit that each thread ended last.
    pub(in crate::pair) last: Map<u32, Ended>,
    pub(in crate::pair) count: u64,
    journals: Map<Dev, Journal>,
    /// Requests for commits are recorded.
    pub(in crate::pair) sees_requests: bool,
    /// When the timer of some journal expired last.
    pub(in crate::pair) timer: Option<i64>,
    /// By thread: the wait for room in a journal that it is in.
    pub(in crate::pair) room: Map<u32, WriteWaitKind>,
    /// The thread whose open commit is of this device and transaction.
    pub(in crate::pair) by_transaction: Map<(Dev, u64), u32>,
    /// The requests that wait for each transaction, in the order in which they began to.
    pub(in crate::pair) waiters: Map<u64, BTreeMap<Waiter, RequestSlot>>,
    pub(in crate::pair) waiter_count: usize,
    /// The number of waiters at which those that no longer wait are removed.
    pub(in crate::pair) sweep_at: usize,
}

/// A commit that has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct Ended {
    pub(in crate::pair) commit_id: u64,
    pub(in crate::pair) dev: Dev,
    pub(in crate::pair) transaction: u64,
    pub(in crate::pair) start: i64,
    pub(in crate::pair) end: Option<i64>,
}

/// The state of a device's journal: who has asked for its next commit, and whether a fast one can do.
#[derive(Debug, Default)]
pub(in crate::pair) struct Journal {
    /// A commit has begun, so all requests for the next one are recorded.
    pub(in crate::pair) has_begun: bool,
    pub(in crate::pair) requested: Option<Requested>,
    /// When ext4 last did something that a fast commit cannot hold, and what, unless a full commit has made it durable.
    pub(in crate::pair) ineligible: Option<(i64, Option<FastCommitReason>)>,
    pub(in crate::pair) changes: Changes,
}

/// The first request for the commit of a transaction.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct Requested {
    pub(in crate::pair) transaction: u64,
    /// `None` if it is not known.
    pub(in crate::pair) by: Option<StartedBy>,
    pub(in crate::pair) sync_id: Option<u64>,
}

/// A request that waits for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::pair) struct Waiter {
    pub(in crate::pair) start: i64,
    pub(in crate::pair) sync_id: u64,
    /// The index of the wait in its row.
    pub(in crate::pair) at: usize,
}

impl Commits {
    /// A request begins to wait for a transaction.
    pub(in crate::pair) fn add_waiter(
        &mut self,
        transaction: u64,
        waiter: Waiter,
        slot: RequestSlot,
        requests: &Requests,
    ) {
        if self.waiter_count >= self.sweep_at.max(MIN_SWEEP) {
            self.waiters.retain(|_, waiters| {
                waiters.retain(|waiter, slot| requests.is_open(*slot, waiter.sync_id));
                !waiters.is_empty()
            });
            self.waiter_count = self.waiters.values().map(BTreeMap::len).sum();
            self.sweep_at = 2 * self.waiter_count;
        }
        if self.waiters.entry(transaction).or_default().insert(waiter, slot).is_none() {
            self.waiter_count += 1;
        }
    }

    /// The request that was the first to wait for a transaction, of those that still do.
    pub(in crate::pair) fn first_waiter(&mut self, dev: Dev, transaction: u64, requests: &Requests) -> Option<u64> {
        let waiters = self.waiters.get_mut(&transaction)?;
        while let Some(first) = waiters.first_entry() {
            if requests.is_open(*first.get(), first.key().sync_id) {
                break;
            }
            first.remove();
            self.waiter_count -= 1;
        }
        let mut open = waiters.iter().filter(|(waiter, slot)| requests.is_open(**slot, waiter.sync_id));
        open.find(|(_, slot)| fits(requests[**slot].row.dev, dev)).map(|(waiter, _)| waiter.sync_id)
    }

    /// Removes and returns the requests that wait for a transaction.
    pub(in crate::pair) fn take_waiters(
        &mut self,
        dev: Dev,
        transaction: u64,
        requests: &Requests,
    ) -> Vec<(Waiter, RequestSlot)> {
        let Some(waiters) = self.waiters.remove(&transaction) else { return Vec::new() };
        self.waiter_count -= waiters.len();
        let is_open = |(waiter, slot): &(Waiter, RequestSlot)| requests.is_open(*slot, waiter.sync_id);
        let open = waiters.into_iter().filter(is_open);
        let (taken, others): (Vec<_>, Vec<_>) = open.partition(|(_, slot)| fits(requests[*slot].row.dev, dev));
        if !others.is_empty() {
            self.waiter_count += others.len();
            self.waiters.insert(transaction, others.into_iter().collect());
        }
        taken
    }

    /// Whether a thread is in a commit.
    pub(in crate::pair) fn is_committing(&self, task: u32) -> bool {
        self.open.contains_key(&task)
    }

    /// The timer of a journal expires. It is not recorded which one.
    pub(in crate::pair) fn timer_expired(&mut self, ts: i64) {
        self.timer = Some(ts);
    }

    /// A thread begins to wait. Before it waits for the running transaction, or for space in the journal, it asks for the commit that
    /// makes room.
    pub(in crate::pair) fn wait_for_room(&mut self, task: u32, kind: WriteWaitKind) {
        if matches!(kind, WriteWaitKind::JournalHandle | WriteWaitKind::JournalSpace) {
            self.room.insert(task, kind);
        }
    }

    /// A wait of a thread ends. The end of another kind of wait does not matter: some are within the wait for room.
    pub(in crate::pair) fn has_room(&mut self, task: u32, kind: WriteWaitKind) {
        if self.room.get(&task) == Some(&kind) {
            self.room.remove(&task);
        }
    }

    /// A file system has done something that no fast commit can hold, until the next full commit.
    pub(in crate::pair) fn ineligible(&mut self, dev: Dev, ts: i64, reason: Option<FastCommitReason>) {
        self.journal(dev).ineligible = Some((ts, reason));
    }

    pub(in crate::pair) fn journal(&mut self, dev: Dev) -> &mut Journal {
        if self.journals.len() >= MAX_JOURNALS && !self.journals.contains_key(&dev) {
            self.journals.retain(|_, journal| journal.changes.holds_rows());
        }
        self.journals.entry(dev).or_default()
    }

    /// The wait of a request for a transaction ends. Returns the commit, if that is still open. Else it has been noted at its end.
    pub(in crate::pair) fn waited(&mut self, transaction: u64, dev: Dev, waiter: Waiter) -> Option<u64> {
        let waiters = self.waiters.get_mut(&transaction)?;
        waiters.remove(&waiter)?;
        self.waiter_count -= 1;
        if waiters.is_empty() {
            self.waiters.remove(&transaction);
        }
        let of = |dev| self.by_transaction.get(&(dev, transaction));
        let task = of(dev).or_else(|| of(Dev::UNKNOWN))?;
        let commit = self.open.get_mut(task)?;
        commit.waiters.get_or_insert_default().push(waiter.sync_id);
        Some(commit.commit_id)
    }

    /// The commit that a thread has open.
    pub(in crate::pair) fn open_of(&self, task: u32) -> Option<u64> {
        self.open.get(&task).map(|commit| commit.commit_id)
    }

    /// The commit in which a thread is at a time. An event that was held back may be older than the commit that is open now.
    pub(in crate::pair) fn at(&self, task: u32, ts: i64) -> Option<u64> {
        // A fast commit may be given up for a full one of the thread itself, which is the inner one.
        let open = [&self.open, &self.open_fast].into_iter().find_map(|open| open.get(&task));
        let ended = || self.last.get(&task).filter(|last| last.start <= ts && last.end.is_some_and(|end| ts < end));
        match open {
            Some(commit) if commit.start <= ts => Some(commit.commit_id),
            _ => ended().map(|last| last.commit_id),
        }
    }

    /// A thread submits a bio in a commit: a block of the journal, unless it is one of data, which are written before, or the last block.
    pub(in crate::pair) fn write_block(&mut self, task: u32, row: &Bio) {
        let is_last =
            row.flags.is_some_and(|flags| flags.contains(BioFlags::PREFLUSH) || flags.contains(BioFlags::FUA));
        let open = self.open.get(&task).filter(|open| Some(open.commit_id) == row.commit_id && !is_last);
        let logs = open.filter(|open| open.steps[CommitStep::Logging as usize].is_some());
        if let Some((dev, transaction)) = logs.map(|open| (open.dev, open.transaction))
            && let Some(journal) = self.journals.get_mut(&dev)
        {
            journal.changes.write(transaction, row.bio_id, row.extent.bytes);
        }
    }

    /// Takes the row of a bio that is complete, if it is known only at the end of a commit who changed its block. Returns whether it does.
    pub(in crate::pair) fn hold(&mut self, task: u32, row: &Bio) -> bool {
        let open = self.open.get(&task).filter(|open| Some(open.commit_id) == row.commit_id);
        let Some((dev, transaction)) = open.map(|open| (open.dev, open.transaction)) else { return false };
        self.journals.get_mut(&dev).is_some_and(|journal| journal.changes.hold(transaction, row))
    }

    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.journals.values().for_each(|journal| journal.changes.visit_names(f));
    }

    pub(in crate::pair) fn next_id(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// Whether two devices may be the same. One that is not recorded fits any.
pub(in crate::pair) fn fits(a: Dev, b: Dev) -> bool {
    a == b || !a.is_known() || !b.is_known()
}
