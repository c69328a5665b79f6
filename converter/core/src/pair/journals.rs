//! The commits of journals that requests wait for: which steps each took, and when.

use std::collections::VecDeque;

use super::Map;
use crate::event::{CommitStep, Dev};
use crate::rows::{PhaseKind, PhaseSpan, WaitInterval};

/// Commits that are kept of each journal. One commits at a time, and a wait ends with its commit.
const MAX_COMMITS: usize = 8;
/// Journals that are kept.
const MAX_JOURNALS: usize = 4096;

/// A commit, as far as it is recorded.
#[derive(Clone, Copy, Debug)]
struct Commit {
    transaction: u64,
    start: i64,
    /// When each step began.
    steps: [Option<i64>; STEPS.len()],
    end: Option<i64>,
}

pub(super) const STEPS: [CommitStep; 3] = [CommitStep::Locking, CommitStep::Flushing, CommitStep::Logging];

/// The last commits of each journal, by its device.
#[derive(Debug, Default)]
pub(super) struct Journals {
    by_dev: Map<Dev, VecDeque<Commit>>,
}

impl Journals {
    pub(super) fn start(&mut self, dev: Dev, transaction: u64, ts: i64) {
        if !dev.is_known() {
            return;
        }
        if self.by_dev.len() >= MAX_JOURNALS && !self.by_dev.contains_key(&dev) {
            self.by_dev.clear();
        }
        let commits = self.by_dev.entry(dev).or_default();
        if commits.back().is_some_and(|last| last.transaction == transaction) {
            return;
        }
        if commits.len() >= MAX_COMMITS {
            commits.pop_front();
        }
        commits.push_back(Commit { transaction, start: ts, steps: [None; STEPS.len()], end: None });
    }

    fn find(&mut self, dev: Dev, transaction: u64) -> Option<&mut Commit> {
        self.by_dev.get_mut(&dev)?.iter_mut().rev().find(|commit| commit.transaction == transaction)
    }

    pub(super) fn step(&mut self, dev: Dev, transaction: u64, step: CommitStep, ts: i64) {
        if let Some(commit) = self.find(dev, transaction) {
            commit.steps[step as usize].get_or_insert(ts);
        }
    }

    pub(super) fn end(&mut self, dev: Dev, transaction: u64, ts: i64) {
        if let Some(commit) = self.find(dev, transaction) {
            commit.end.get_or_insert(ts);
        }
    }

    /// Appends the parts of a wait for a commit: another commit that was running, the time until its own begins, and the steps of that.
    /// Nothing if the start of the commit is not known.
    pub(super) fn parts(&self, dev: Dev, wait: &WaitInterval, parts: &mut Vec<PhaseSpan>) {
        let Some(commits) = self.by_dev.get(&dev).filter(|_| wait.transaction != 0) else { return };
        let is_own = |commit: &&Commit| commit.transaction == wait.transaction;
        let Some(own) = commits.iter().find(is_own) else { return };
        let mut add = |phase, from: i64, to: i64| {
            let (start, end) = (from.max(wait.start), to.min(wait.end));
            if start < end {
                parts.push(PhaseSpan { phase, start, end });
            }
        };
        let mut reached = wait.start;
        for other in commits.iter().take_while(|commit| commit.transaction != wait.transaction) {
            let end = other.end.unwrap_or(own.start).min(own.start);
            add(PhaseKind::CommitStart, reached, other.start.min(own.start));
            add(PhaseKind::EarlierCommit, other.start.max(reached), end);
            reached = reached.max(end);
        }
        add(PhaseKind::CommitStart, reached, own.start);
        let mut end = own.end.unwrap_or(wait.end);
        for (step, begun) in STEPS.iter().zip(own.steps).rev() {
            let Some(begun) = begun else { continue };
            // The first step begins with the commit.
            let begun = if *step == CommitStep::Locking { own.start } else { begun };
            add(PhaseKind::CommitStep(*step), begun, end);
            end = begun;
        }
    }
}
