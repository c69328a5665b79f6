//! Ends of requests without an id: which file systems report them, and the requests that lack theirs.
//!
//! xfs and btrfs have no event of the end, and a recording of another file system may have left it out. Whether it has is known for sure at
//! the end of the inputs only, so what is missing is counted until then.

use super::Pairer;
use super::slots::RequestSlot;
use crate::event::NO_ID;
use crate::losses::{LossCount, Losses, Reason};
use crate::names::NameId;

/// How long all bios of a request are complete until its thread may have left the request, where no end will say so.
const MAX_IDLE_NS: i64 = 10_000_000;

/// Stands for the file system where only calls are recorded.
pub(super) const OF_CALLS: NameId = NameId::NONE;

#[derive(Debug, Default)]
pub(super) struct Ends {
    /// By file system. There are few.
    by_fs: Vec<(NameId, FsEnds)>,
}

#[derive(Debug, Default)]
struct FsEnds {
    are_seen: bool,
    /// The requests with a start and no end.
    missing: LossCount,
}

impl Ends {
    fn of(&mut self, fs: NameId) -> &mut FsEnds {
        let at = self.by_fs.iter().position(|(name, _)| *name == fs).unwrap_or_else(|| {
            self.by_fs.push((fs, FsEnds::default()));
            self.by_fs.len() - 1
        });
        &mut self.by_fs[at].1
    }

    fn find(&self, fs: NameId) -> Option<&FsEnds> {
        self.by_fs.iter().find(|(name, _)| *name == fs).map(|(_, ends)| ends)
    }

    /// A sync function of this file system has reported its end.
    pub(super) fn see(&mut self, fs: NameId) {
        self.of(fs).are_seen = true;
    }

    /// Whether a sync function of this file system has reported its end until now.
    pub(super) fn are_seen(&self, fs: NameId) -> bool {
        self.find(fs).is_some_and(|ends| ends.are_seen)
    }

    /// Counts a request without its end.
    pub(super) fn count_missing(&mut self, fs: NameId, ts: i64, example: impl FnOnce() -> String) {
        let missing = &mut self.of(fs).missing;
        missing.add(1, Some(ts));
        missing.show(Some(ts), example);
    }

    /// Passes on what was counted, at the end of the inputs.
    pub(super) fn finish(&mut self, losses: &mut Losses) {
        for (_, FsEnds { are_seen, missing }) in self.by_fs.drain(..) {
            losses.merge_one(if are_seen { Reason::EndMissing } else { Reason::EndsNotRecorded }, &missing);
        }
    }
}

impl Pairer {
    /// Whether the thread of a request may have left it: no end and no call will say when it does, and nothing has been in flight for it for
    /// a while. The thread may write anything from then on.
    pub(super) fn may_have_ended(&self, slot: RequestSlot, ts: i64) -> bool {
        let open = &self.requests[slot];
        let row = &open.row;
        let lacks_ends = || self.ends.find(row.fs).is_some_and(|ends| !ends.are_seen && ends.missing.count > 0);
        row.id == NO_ID
            && row.call.is_none()
            && open.probe.is_none()
            && open.open_bios.is_empty()
            && row.last_complete.is_some_and(|last| ts.saturating_sub(last) > MAX_IDLE_NS)
            && lacks_ends()
    }
}
