//! Facts about a request, or about a folio, that only probes report.

use super::slots::RequestSlot;
use crate::event::probe::SyncScope;
use crate::event::{Dev, WaitKind};
use crate::names::NameId;

/// Sync functions in one another. Overlayfs on overlayfs makes four.
const MAX_DEPTH: usize = 8;
/// Addresses of bios that a request fills and that are kept.
const MAX_FILLED: usize = 1024;

/// A request by its slot, and its `sync_id` to know whether the slot is still its own.
pub(in crate::pair) type Owner = Option<(RequestSlot, u64)>;

/// A sync function that a thread is in.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct SyncFunction {
    pub(in crate::pair) name: NameId,
    pub(in crate::pair) scope: SyncScope,
    /// The file that it syncs.
    pub(in crate::pair) file: (Dev, u64),
    /// Its file system is on a disk, and no other is below it.
    pub(in crate::pair) is_on_disk: bool,
}

impl SyncFunction {
    /// Whether it calls no other one.
    fn is_leaf(&self) -> bool {
        matches!(self.scope, SyncScope::Data | SyncScope::Journal)
    }

    /// Whether it may have called another one. A file system on a disk passes its file on to a function of its own only, and that for a whole
    /// file system calls none for a file.
    fn may_call(&self, inner: &Self) -> bool {
        if self.is_leaf() || self.scope.is_whole_fs() && !inner.scope.is_whole_fs() {
            return false;
        }
        let is_same_ino = self.file.1 == inner.file.1 || self.file.1 == 0 || inner.file.1 == 0;
        !self.is_on_disk || self.file.0 == inner.file.0 && is_same_ino
    }
}

/// The meaning that leaving a function has for the request that its thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pair) enum Left {
    /// The request ends.
    Outermost,
    Inner,
    /// The log lacks its begin, which would have said on which file system the data are.
    UnknownInner,
    /// No function that the thread is in may have called it, so the thread has left them.
    Other,
}

/// Facts about a request that probes report.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(in crate::pair) struct ProbeRequest {
    /// The sync functions that its thread is in, the innermost last.
    pub(in crate::pair) functions: Vec<SyncFunction>,
    /// The files that these functions sync, or have synced.
    pub(in crate::pair) files: Vec<(Dev, u64)>,
    /// The file systems whose data it has synced, by a function for that.
    pub(in crate::pair) synced: Vec<Dev>,
    /// The scope of its outermost function. `None` if the begin of that function is not in the log.
    pub(in crate::pair) scope: Option<SyncScope>,
    /// Its functions were traced, and nothing else of them: whoever did that chose them, so a wait that is not in the log may not have been traced.
    pub(in crate::pair) by_functions: bool,
    /// It waits for flushes as for other bios, whose submits are reported.
    pub(in crate::pair) flushes_are_bios: bool,
    /// Addresses at which its thread has added folios. Most of these bios have been submitted since.
    pub(in crate::pair) filled: Vec<u64>,
    /// Open waits in an open wait of the same kind.
    pub(in crate::pair) inner_waits: [u32; WaitKind::ALL.len()],
    /// Waits in which the thread did not wait, or which another one covers, as indexes into the row's waits, in order.
    pub(in crate::pair) no_waits: Vec<usize>,
    /// The thread has submitted a bio of the journal in the open fast commit.
    pub(in crate::pair) has_journal_bio: bool,
    /// The start of a wait for a commit in the open fast commit was lost.
    pub(in crate::pair) has_torn_wait: bool,
    /// The completions of unknown bios when it entered that.
    pub(in crate::pair) ends_before: u64,
    /// Another thread was in a fast commit when this one entered it.
    pub(in crate::pair) other_in_fast_commit: bool,
}

impl ProbeRequest {
    pub(in crate::pair) fn new(scope: SyncScope) -> Self {
        Self { scope: Some(scope), ..Self::default() }
    }

    pub(in crate::pair) fn is_whole_fs(&self) -> bool {
        self.scope.is_some_and(SyncScope::is_whole_fs)
    }

    /// A sync function is entered.
    pub(in crate::pair) fn enter(&mut self, function: SyncFunction) {
        let file = function.file;
        if function.scope == SyncScope::Data && self.synced.len() < MAX_DEPTH {
            self.synced.push(file.0);
        }
        self.functions.push(function);
        if !self.files.contains(&file) && self.files.len() < MAX_DEPTH {
            self.files.push(file);
        }
    }

    /// Its thread adds a folio to a bio. `is_filling`: whether a bio that has not been submitted is at an address.
    pub(in crate::pair) fn note_filled(&mut self, address: u64, is_filling: impl Fn(u64) -> bool) {
        if self.filled.last() == Some(&address) {
            return;
        }
        if self.filled.len() >= MAX_FILLED {
            self.filled.retain(|&address| is_filling(address));
            self.filled.truncate(MAX_FILLED / 2);
        }
        self.filled.push(address);
    }

    /// Leaves the inner functions that call no other one, because another one is entered: their ends were lost.
    pub(in crate::pair) fn leave_leaves(&mut self) {
        while self.functions.len() > 1 && self.functions.last().is_some_and(SyncFunction::is_leaf) {
            self.functions.pop();
        }
    }

    /// Whether a sync function is called by the one that the thread is in. Otherwise the end of that was lost.
    pub(in crate::pair) fn is_inner(&self, function: &SyncFunction) -> bool {
        let is_recursion = |outer: &SyncFunction| outer.name == function.name && outer.file.0 == function.file.0;
        let is_called = self.functions.last().is_some_and(|outer| outer.may_call(function));
        // A sync of a file system syncs the data of it once.
        let is_again = function.scope == SyncScope::Data && self.synced.contains(&function.file.0);
        is_called && !is_again && self.functions.len() < MAX_DEPTH && !self.functions.iter().any(is_recursion)
    }

    /// A sync function is left. The ends of those in it were lost.
    pub(in crate::pair) fn leave(&mut self, scope: SyncScope) -> Left {
        if let Some(at) = self.functions.iter().rposition(|function| function.scope == scope) {
            self.functions.truncate(at);
            return if at == 0 { Left::Outermost } else { Left::Inner };
        }
        let may_be_inner = matches!(scope, SyncScope::Data | SyncScope::Journal)
            && self.functions.iter().any(|function| function.scope == SyncScope::FileSystem);
        match self.functions.first() {
            _ if !may_be_inner => Left::Other,
            Some(outermost) if outermost.is_on_disk => Left::Inner,
            _ => Left::UnknownInner,
        }
    }

    /// Whether a folio is of a file that is being synced.
    pub(in crate::pair) fn syncs(&self, folio: &Folio) -> bool {
        let is_on = |dev: Dev| !dev.is_known() || !folio.dev.is_known() || dev == folio.dev;
        self.files.iter().any(|&(dev, ino)| {
            if self.is_whole_fs() {
                dev.is_known() && dev == folio.dev
            } else {
                ino != 0 && ino == folio.ino && is_on(dev)
            }
        })
    }
}

/// A folio that was added to a bio.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct Folio {
    pub(in crate::pair) ts: i64,
    /// The request of the thread that added it.
    pub(in crate::pair) owner: Owner,
    pub(in crate::pair) task: u32,
    pub(in crate::pair) dev: Dev,
    pub(in crate::pair) ino: u64,
    pub(in crate::pair) offset: u64,
    pub(in crate::pair) len: u64,
}
