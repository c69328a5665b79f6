//! Commits on the tracks of their journals, with their steps inside, and flows from the requests that wait for them.

use super::PerfettoTrace;
use super::fields::{coloured_head, head, row};
use super::proto::fixed64;
use crate::error::Result;
use crate::event::{CommitStep, Dev, FastCommitStatus, UNKNOWN_TASK};
use crate::names::Names;
use crate::rows::{Commit, CommitKind};
use crate::trace_layout::fields::event;
use crate::trace_layout::{Category, flow_of_commit};

/// The steps of a commit, as their slices are named.
const STEPS: [(CommitStep, &str); CommitStep::COUNT] =
    [(CommitStep::Locking, "locking"), (CommitStep::Flushing, "flushing"), (CommitStep::Logging, "logging")];

impl PerfettoTrace {
    /// Writes a commit on the track of its journal. One whose start or end is missing has duration 0.
    pub(super) fn commit_slice(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        let end = commit.end.unwrap_or(commit.start);
        let track = self.journal_lane(commit, end, names)?;
        self.event(commit.start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Commit, interner.event_name(&name(commit)));
            // The arrow leads from what began first to the other one.
            for &sync_id in commit.waiters.iter().flatten() {
                fixed64(b, event::FLOW_IDS, flow_of_commit(commit.commit_id, sync_id));
            }
            row(b, commit, ids.commit, interner, names);
        })?;
        if commit.end.is_some() {
            for (step, name) in STEPS {
                let Some((begin, end)) = commit.step(step) else { continue };
                self.event(begin, track, event::SLICE_BEGIN, |b, interner, _| {
                    coloured_head(b, Category::CommitStep, name, interner);
                })?;
                self.end(end, track, &[])?;
            }
        }
        self.end(end, track, &[])
    }

    /// Returns a track of the journal that is free for a commit: fast commits of several threads may overlap.
    fn journal_lane(&mut self, commit: &Commit, end: i64, names: &Names) -> Result<u64> {
        let key = if commit.dev.is_known() { (commit.dev, UNKNOWN_TASK) } else { (Dev::UNKNOWN, commit.tid) };
        if let Some(uuid) = self.journals.get_mut(&key).and_then(|lanes| lanes.find_free(commit.start, end)) {
            return Ok(uuid);
        }
        let name = if !commit.dev.is_known() {
            super::bios::thread_name(commit.tid, &names.text(commit.comm))
        } else if let Some(device) = self.device_names.get(&commit.dev) {
            format!("{device} ({})", commit.dev)
        } else {
            format!("({})", commit.dev)
        };
        let description =
            "Commits of the journal, and in each its steps. An arrow connects it with each request that waits for it.";
        let (name, merge_key) = (format!("Journal {name}"), format!("journal {name}"));
        let is_first = !self.journals.contains_key(&key);
        let uuid = self.top_track(is_first, &name, &merge_key, description)?;
        self.journals.entry(key).or_default().add(uuid, end);
        Ok(uuid)
    }
}

/// The name of a commit's slice: what it was started for, and for a fast commit, why it gave up.
fn name(commit: &Commit) -> String {
    let kind = commit.kind.name();
    match (commit.kind, commit.status, commit.reason, commit.started_by) {
        (CommitKind::Fast, Some(FastCommitStatus::Ineligible), Some(reason), _) => {
            format!("{kind}, ineligible: {}", reason.name())
        }
        (CommitKind::Fast, Some(status), ..) if status != FastCommitStatus::Ok => format!("{kind}, {}", status.name()),
        (CommitKind::Full, _, _, Some(by)) => format!("{kind} ({})", by.name()),
        _ => kind.to_owned(),
    }
}
