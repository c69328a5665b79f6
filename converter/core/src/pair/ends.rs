//! Ends of requests without an id: which file systems report them, and the requests that lack theirs.
//!
//! xfs and btrfs have no event of the end, and a recording of another file system may have left it out. Whether it has is known for sure at
//! the end of the inputs only, so what is missing is counted until then.

use super::Pairer;
use super::stores::slots::RequestSlot;
use crate::event::NO_ID;
use crate::names::NameId;

/// How long all bios of a request are complete until its thread may have left the request, where no end will say so.
const MAX_IDLE_NS: i64 = 10_000_000;

/// Stands for the file system where only calls are recorded.
pub(super) const OF_CALLS: NameId = NameId::NONE;

impl Pairer {
    /// Whether the thread of a request may have left it: no end and no call will say when it does, and nothing has been in flight for it for
    /// a while. The thread may write anything from then on.
    pub(super) fn may_have_ended(&self, slot: RequestSlot, ts: i64) -> bool {
        let open = &self.requests[slot];
        let row = &open.row;
        row.id == NO_ID
            && row.call.is_none()
            && open.probe.is_none()
            && open.open_bios.is_empty()
            && row.last_complete.is_some_and(|last| ts.saturating_sub(last) > MAX_IDLE_NS)
            && self.ends.are_missing(row.fs)
    }
}
