//! Decides which requests may belong to one call, by what each syncs and by the order in which the kernel makes them.

use crate::collections::Map;
use crate::event::probe::{Probe, SyncScope};
use crate::event::{Dev, Event, Kind, Op};

/// Most requests in one open call, because `sync()` makes one for each inode. A call with more is closed without its exit.
pub(super) const MAX_IN_CALL: usize = 16_384;
/// A thread with so many requests after its last call makes them without calls.
pub(super) const MAX_WITHOUT_CALL: u32 = 8;

/// What a request of a call syncs, as far as its start says that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its start is not in the log.
    Unknown,
    /// Its start is an event with an id, or one of a stock kernel.
    Other,
    File,
    /// Its start is a probe, which says which function of the kernel syncs the file system.
    WholeFs(SyncScope, Dev),
}

impl Part {
    /// Returns what a request syncs, by its first event.
    pub(super) fn of(e: &Event) -> Self {
        match e.kind {
            Kind::Probe(Probe::SyncEnter { scope, dev, .. }) if scope.is_whole_fs() => Self::WholeFs(scope, dev),
            Kind::Probe(Probe::SyncEnter { .. }) => Self::File,
            Kind::SyncStart { .. } => Self::Other,
            _ => Self::Unknown,
        }
    }
}

/// What one call has synced. Most calls make one request, but `sync()` syncs the data of each file system, and then twice the journal of
/// each. `syncfs()` does so for one file system.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
#[derive(Debug, Default)]
pub(super) struct Parts {
    has_any: bool,
    has_data: bool,
    has_journal: bool,
    has_whole: bool,
    /// By file system: whether its data were synced, and how often its journal was.
    of_fs: Map<Dev, (bool, u8)>,
}

impl Parts {
    /// Adds the next request of a thread, or the one before if `is_backwards`. Returns whether it may belong to the same call. If not, the
    /// thread has left that call, and its exit was lost.
    pub(super) fn take(&mut self, op: Op, part: Part, is_backwards: bool) -> bool {
        let has_any = std::mem::replace(&mut self.has_any, true);
        match part {
            Part::Unknown => true,
            _ if !op.makes_several() => !has_any,
            Part::Other => true,
            Part::File => op == Op::Msync,
            Part::WholeFs(..) if op == Op::Msync => false,
            Part::WholeFs(SyncScope::Data, dev) => {
                let is_in_order = op == Op::Syncfs || is_backwards || !self.has_journal;
                self.has_data = true;
                let is_again = std::mem::replace(&mut self.of_fs.entry(dev).or_default().0, true);
                is_in_order && !is_again && !(op == Op::Syncfs && self.has_whole)
            }
            Part::WholeFs(SyncScope::FileSystem, _) if op == Op::Syncfs => {
                self.has_whole = true;
                !has_any
            }
            // sync() makes a file system without a disk sync those below it.
            Part::WholeFs(_, dev) => {
                let is_in_order = op == Op::Syncfs || !is_backwards || !self.has_data;
                self.has_journal = true;
                let times = &mut self.of_fs.entry(dev).or_default().1;
                *times = times.saturating_add(1);
                is_in_order && *times <= 2 && !(op == Op::Syncfs && self.has_whole)
            }
        }
    }
}
