//! Notes which file systems report ends, and counts the requests that lack one.

use crate::losses::{LossCount, Losses, Reason};
use crate::names::NameId;

#[derive(Debug, Default)]
pub(in crate::pair) struct Ends {
    /// By file system, in a list because there are few.
    by_fs: Vec<(NameId, FsEnds)>,
}

#[derive(Debug, Default)]
struct FsEnds {
    pub(in crate::pair) are_seen: bool,
    /// The requests with a start and no end.
    pub(in crate::pair) missing: LossCount,
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

    /// Notes that a sync function of this file system has reported its end.
    pub(in crate::pair) fn see(&mut self, fs: NameId) {
        self.of(fs).are_seen = true;
    }

    /// Returns whether a sync function of this file system has reported its end so far.
    pub(in crate::pair) fn are_seen(&self, fs: NameId) -> bool {
        self.find(fs).is_some_and(|ends| ends.are_seen)
    }

    /// Returns whether requests of this file system have lacked their ends so far, and none has had one.
    pub(in crate::pair) fn are_missing(&self, fs: NameId) -> bool {
        self.find(fs).is_some_and(|ends| !ends.are_seen && ends.missing.count > 0)
    }

    /// Counts a request without its end.
    pub(in crate::pair) fn count_missing(&mut self, fs: NameId, ts: i64, example: impl FnOnce() -> String) {
        let missing = &mut self.of(fs).missing;
        missing.add(1, Some(ts));
        missing.show(Some(ts), example);
    }

    /// Passes on the counts at the end of the inputs. A file system without any end has another reason: nobody recorded its ends.
    pub(in crate::pair) fn finish(&mut self, losses: &mut Losses) {
        for (_, FsEnds { are_seen, missing }) in self.by_fs.drain(..) {
            losses.merge_one(if are_seen { Reason::EndMissing } else { Reason::EndsNotRecorded }, &missing);
        }
    }
}
