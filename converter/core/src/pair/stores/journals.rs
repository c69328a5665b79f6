//! The commits of journals that requests wait for: which steps each took, and when.

use std::collections::VecDeque;

use crate::collections::Map;
use crate::event::{CommitStep, Dev, WaitKind};
use crate::pair::phases::Blocked;
use crate::rows::{Confidence, PhaseKind, PhaseSpan, WaitInterval};

/// Commits that are kept of each journal. One commits at a time, and a wait ends with its commit.
const MAX_COMMITS: usize = 8;
/// Journals that are kept.
const MAX_JOURNALS: usize = 4096;

/// A commit, as far as it is recorded.
#[derive(Clone, Copy, Debug)]
struct Commit {
    transaction: u64,
    /// Its `commit_id` in the rows.
    id: Option<u64>,
    /// `None` if another event of it came first.
    start: Option<i64>,
    /// When each step began.
    steps: [Option<i64>; STEPS.len()],
    end: Option<i64>,
}

/// A commit that has ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct EndedCommit {
    commit: Commit,
    end: i64,
}

pub(in crate::pair) const STEPS: [CommitStep; 3] = [CommitStep::Locking, CommitStep::Flushing, CommitStep::Logging];

impl Commit {
    /// Its start, the begins of its steps after the first, and its end. The first step begins with it.
    fn borders(&self) -> [Option<i64>; STEPS.len() + 1] {
        let [_, flushing, logging] = self.steps;
        [self.start, flushing, logging, self.end]
    }

    /// The first and the last moment at which it is known to run.
    fn known(&self) -> Option<(i64, i64)> {
        let known = || self.steps.iter().copied().chain([self.start, self.end]).flatten();
        known().min().zip(known().max())
    }
}

/// The last commits of each journal, by its device.
#[derive(Debug, Default)]
pub(in crate::pair) struct Journals {
    by_dev: Map<Dev, VecDeque<Commit>>,
}

impl Journals {
    pub(in crate::pair) fn start(&mut self, dev: Dev, transaction: u64, commit_id: Option<u64>, ts: i64) {
        if let Some(commit) = self.commit(dev, transaction) {
            commit.start.get_or_insert(ts);
            commit.id = commit.id.or(commit_id);
        }
    }

    pub(in crate::pair) fn step(&mut self, dev: Dev, transaction: u64, step: CommitStep, ts: i64) {
        if let Some(commit) = self.commit(dev, transaction) {
            commit.steps[step as usize].get_or_insert(ts);
        }
    }

    pub(in crate::pair) fn end(&mut self, dev: Dev, transaction: u64, ts: i64) {
        if let Some(commit) = self.commit(dev, transaction) {
            commit.end.get_or_insert(ts);
        }
    }

    /// The commit of a transaction. A journal commits its transactions in their order, so an older one that is not kept has been forgotten.
    fn commit(&mut self, dev: Dev, transaction: u64) -> Option<&mut Commit> {
        if !dev.is_known() {
            return None;
        }
        if self.by_dev.len() >= MAX_JOURNALS && !self.by_dev.contains_key(&dev) {
            self.by_dev.clear();
        }
        let commits = self.by_dev.entry(dev).or_default();
        let found = commits.iter().rposition(|commit| commit.transaction == transaction);
        if let Some(found) = found {
            return commits.get_mut(found);
        }
        if commits.back().is_some_and(|last| last.transaction > transaction) {
            return None;
        }
        if commits.len() >= MAX_COMMITS {
            commits.pop_front();
        }
        commits.push_back(Commit { transaction, id: None, start: None, steps: [None; STEPS.len()], end: None });
        commits.back_mut()
    }

    /// Whether the end of the commit that a wait is for is not recorded yet. The kernel may wake the thread a moment before it reports the end.
    pub(in crate::pair) fn is_open(&self, dev: Dev, wait: &WaitInterval) -> bool {
        let commits = self.by_dev.get(&dev).filter(|_| wait.transaction != 0);
        let own = commits.and_then(|commits| commits.iter().find(|commit| commit.transaction == wait.transaction));
        own.is_some_and(|own| own.end.is_none())
    }

    /// Appends the parts of a wait for a commit: another commit that was running, the time until its own begins, and the steps of that.
    /// Nothing if the start of the commit is not known. What happened between two events of a commit is not known if one between them is
    /// missing, so it is no part.
    pub(in crate::pair) fn parts(&self, dev: Dev, wait: &WaitInterval, parts: &mut Vec<PhaseSpan>) {
        let Some(commits) = self.by_dev.get(&dev).filter(|_| wait.transaction != 0) else { return };
        let is_own = |commit: &&Commit| commit.transaction == wait.transaction;
        let Some((own, start)) = commits.iter().find(is_own).and_then(|own| Some((own, own.start?))) else { return };
        let mut add = |phase, from: i64, to: i64| {
            let (start, end) = (from.max(wait.start), to.min(wait.end));
            if start < end {
                parts.push(PhaseSpan::new(phase, start, end));
            }
        };
        // Until when the time before the commit is explained, and the transaction whose commit may come next.
        let (mut reached, mut next) = (Some(wait.start), None);
        for other in commits.iter().take_while(|commit| commit.transaction != wait.transaction) {
            let Some((first, last)) = other.known() else { continue };
            let is_next = next.is_none_or(|next| next == other.transaction);
            if let Some(reached) = reached.filter(|_| is_next && other.start.is_some()) {
                add(PhaseKind::CommitStart, reached, first.min(start));
            }
            add(PhaseKind::EarlierCommit, first, last.min(start));
            reached = other.end.map(|end| end.max(wait.start));
            next = Some(other.transaction.wrapping_add(1));
        }
        if let Some(reached) = reached.filter(|_| next.is_none_or(|next| next == own.transaction)) {
            add(PhaseKind::CommitStart, reached, start);
        }
        own.steps_in(wait, parts);
    }

    /// The commit of a journal that ended last, by the time of an event that is being used.
    pub(in crate::pair) fn last_ended(&self, dev: Dev) -> Option<EndedCommit> {
        let ended = self.by_dev.get(&dev)?.iter().filter_map(|&commit| Some(EndedCommit { commit, end: commit.end? }));
        ended.max_by_key(|ended| ended.end)
    }
}

impl Commit {
    /// Appends the steps of the commit whose bounds are both known, as far as they are in a wait for it, and what of the wait comes after the
    /// end of the commit: residue, because the thread may be ready to run then.
    fn steps_in(&self, wait: &WaitInterval, parts: &mut Vec<PhaseSpan>) {
        let borders = self.borders();
        for (step, pair) in STEPS.iter().zip(borders.windows(2)) {
            let &[Some(begin), Some(end)] = pair else { continue };
            let (from, to) = (begin.max(wait.start), end.min(wait.end));
            if from < to {
                parts.push(PhaseSpan::new(PhaseKind::CommitStep(*step), from, to));
            }
        }
        if let Some(start) = self.end.map(|end| end.max(wait.start)).filter(|&start| start < wait.end) {
            parts.push(PhaseSpan::new(PhaseKind::Residue, start, wait.end));
        }
    }
}

/// How long after the end of its commit a request may end: its thread has to be woken, and to run.
const MAX_RETURN_NS: i64 = 10_000_000;
/// How long after the end of a commit the thread of the journal wakes those that wait for it.
const MAX_WAKE_NS: i64 = 1_000_000;

impl EndedCommit {
    /// The wait of a request for this commit, where waits are not recorded, as far as its other events make it likely. `done`: since when
    /// nothing else is recorded that the request waited for.
    ///
    /// A sync that waits for a commit returns when that has ended, while one that merely runs at the same time continues.
    pub(in crate::pair) fn inferred_wait(
        &self,
        sync_id: u64,
        done: i64,
        end: i64,
        blocked: Option<&[Blocked]>,
    ) -> Option<WaitInterval> {
        let Self { commit, end: committed } = *self;
        let start = commit.start?.max(done);
        let (length, rest) = (committed - start, end - committed);
        let is_woken_by_it = |blocked: &[Blocked]| {
            let mut spans = blocked.iter();
            spans.any(|span| span.from < committed && (0..=MAX_WAKE_NS).contains(&(span.to - committed)))
        };
        let is_waited_for = blocked.map_or(rest <= length.min(MAX_RETURN_NS), is_woken_by_it);
        (length > 0 && rest >= 0 && is_waited_for).then_some(WaitInterval {
            sync_id,
            number: 0,
            wait: WaitKind::CommitWait,
            start,
            end: committed,
            transaction: commit.transaction,
            commit_id: commit.id,
            confidence: Confidence::Inferred,
        })
    }

    /// Appends the steps of the commit that are in a wait for it.
    pub(in crate::pair) fn steps_in(&self, wait: &WaitInterval, parts: &mut Vec<PhaseSpan>) {
        self.commit.steps_in(wait, parts);
    }
}
