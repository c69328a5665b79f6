//! The one low-level event that every source produces and `assemble` consumes.

use crate::names::NameId;

/// Task id or similar that the source does not tell.
pub const UNKNOWN_TASK: u32 = u32::MAX;

/// A sync syscall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Fsync,
    Fdatasync,
    Msync,
    Sync,
    Syncfs,
    SyncFileRange,
    /// A write that is durable when it returns: to a file opened with `O_SYNC` or `O_DSYNC`, or with such a flag of its own.
    Write,
}

impl Op {
    pub const ALL: [Self; 7] =
        [Self::Fsync, Self::Fdatasync, Self::Msync, Self::Sync, Self::Syncfs, Self::SyncFileRange, Self::Write];

    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Msync => "msync",
            Self::Sync => "sync",
            Self::Syncfs => "syncfs",
            Self::SyncFileRange => "sync_file_range",
            Self::Write => "write",
        }
    }

    /// The syscall of this name, if each call of it is a sync: not of `write`.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"fsync" => Self::Fsync,
            b"fdatasync" => Self::Fdatasync,
            b"msync" => Self::Msync,
            b"sync" => Self::Sync,
            b"syncfs" => Self::Syncfs,
            b"sync_file_range" => Self::SyncFileRange,
            _ => return None,
        })
    }
}

/// What a thread does or waits for in a sync when its data is on its way or written. Called as the kernel's events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// A commit of the journal that it makes itself, as f2fs does.
    Commit,
    CommitWait,
    /// A fast commit of ext4, which it makes itself.
    FastCommit,
    FastCommitWait,
    /// A cache flush of a device.
    Flush,
}

impl WaitKind {
    pub const ALL: [Self; 5] = [Self::Commit, Self::CommitWait, Self::FastCommit, Self::FastCommitWait, Self::Flush];

    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::CommitWait => "commit wait",
            Self::FastCommit => "fast commit",
            Self::FastCommitWait => "fast commit wait",
            Self::Flush => "flush",
        }
    }

    /// `start` and `end` alike: what its events are called by before `_start` and `_end`.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"commit" => Self::Commit,
            b"commit_wait" => Self::CommitWait,
            b"fc" => Self::FastCommit,
            b"fc_wait" => Self::FastCommitWait,
            b"flush" => Self::Flush,
            _ => return None,
        })
    }
}

/// A block device, as `major << 20 | minor`, the kernel's own packing; 0 is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dev(pub u32);

impl Dev {
    pub const UNKNOWN: Self = Self(0);

    pub fn new(major: u32, minor: u32) -> Self {
        Self(major << 20 | (minor & 0xf_ffff))
    }

    pub fn is_known(self) -> bool {
        self.0 != 0
    }
}

impl std::fmt::Display for Dev {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.0 >> 20, self.0 & 0xf_ffff)
    }
}

/// The id of a request where the source tells none: the thread says whose an event is.
pub const NO_ID: u64 = u64::MAX;

/// No sector; flushes carry sector -1 as well.
pub const NO_SECTOR: i64 = -1;

/// What happened. Offsets and lengths are in bytes, sectors in 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Entry of a sync syscall; `stack` is the raw lines as printed, innermost first. `alone`: its source tells of calls
    /// alone, and not of what a file system does in them.
    CallEnter { op: Op, stack: NameId, path: NameId, call_only: bool },
    /// Exit of a sync syscall; a stack that is printed when the call returns. `untimed`: it is not known when it returned.
    CallExit { op: Op, ret: Option<i64>, stack: NameId, untimed: bool },
    /// The file system's sync function is entered. `by_thread`: the kernel knows no id; the recorder made one of thread and time, so what
    /// has it is what the thread did meanwhile.
    SyncStart {
        id: u64,
        start: u64,
        end: u64,
        path: NameId,
        fs: NameId,
        ino: u64,
        dev: Dev,
        datasync: bool,
        by_thread: bool,
    },
    /// A piece of page cache joins a bio.
    BioAddFolio { id: u64, bio: u64, offset: u64, len: u64 },
    /// A bio goes to the block layer.
    /// `background`: the source says that it is for nobody's sync, whatever its id. `bytes`: those of the bio, where the source tells no
    /// page cache; else 0.
    BioSubmit { id: u64, bio: u64, sector: i64, dev: Dev, background: bool, bytes: u64 },
    /// A bio is done. `bio` is 0 where the source has no address.
    BioComplete { bio: u64, sector: i64, dev: Dev },
    /// The file system's sync function returns.
    SyncEnd { id: u64, ret: i64 },
    /// A flusher thread begins to write an inode for nobody's sync; what has this id is background.
    WbStart { id: u64 },
    /// It has written it.
    WbEnd { id: u64 },
    /// A thread begins to wait, in the request of this id; or a journal's thread begins a commit, of an id of its own.
    WaitStart { id: u64, wait: WaitKind, transaction: u64 },
    /// `transaction` is 0 where it is not told.
    WaitEnd { id: u64, wait: WaitKind, transaction: u64 },
    /// The block layer's own telling of a bio that writes data: neither an address nor an id goes with it.
    BlockSubmit { dev: Dev, sector: i64, bytes: u64 },
    /// Of so many bytes, which may be several bios that were merged, or a part of one.
    BlockComplete { dev: Dev, sector: i64, bytes: u64 },
    /// What is to go to one device goes to another: that of a partition, or below a device mapper.
    BlockRemap { dev: Dev, sector: i64, bytes: u64, from_dev: Dev, from_sector: i64 },
    /// An event of the tracer's that Syncline has no use for; only the low-level log has it.
    Other,
}

impl Kind {
    pub const COUNT: usize = 15;
    pub const NAMES: [&'static str; Self::COUNT] = [
        "call_enter",
        "call_exit",
        "sync_start",
        "bio_add_folio",
        "bio_submit",
        "bio_complete",
        "sync_end",
        "wb_start",
        "wb_end",
        "other",
        "block_submit",
        "block_complete",
        "block_remap",
        "wait_start",
        "wait_end",
    ];

    pub fn index(&self) -> usize {
        match self {
            Self::CallEnter { .. } => 0,
            Self::CallExit { .. } => 1,
            Self::SyncStart { .. } => 2,
            Self::BioAddFolio { .. } => 3,
            Self::BioSubmit { .. } => 4,
            Self::BioComplete { .. } => 5,
            Self::SyncEnd { .. } => 6,
            Self::WbStart { .. } => 7,
            Self::WbEnd { .. } => 8,
            Self::Other => 9,
            Self::BlockSubmit { .. } => 10,
            Self::BlockComplete { .. } => 11,
            Self::BlockRemap { .. } => 12,
            Self::WaitStart { .. } => 13,
            Self::WaitEnd { .. } => 14,
        }
    }

    /// Every name in the event, so that a batch's own ids can be replaced by the run's.
    fn names_mut(&mut self, f: &mut impl FnMut(&mut NameId)) {
        match self {
            Self::CallEnter { stack, path, .. } => {
                f(stack);
                f(path);
            }
            Self::CallExit { stack, .. } => f(stack),
            Self::SyncStart { path, fs, .. } => {
                f(path);
                f(fs);
            }
            _ => {}
        }
    }
}

/// One event of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// ns on the source's clock.
    pub ts: i64,
    /// Thread id, or `UNKNOWN_TASK`.
    pub tid: u32,
    /// Process id, or `UNKNOWN_TASK`.
    pub pid: u32,
    pub comm: NameId,
    /// Line of the chunk that it stands in, from 1; 0 where there are no lines.
    pub line: u32,
    pub kind: Kind,
}

impl Kind {
    pub fn enter(op: Op) -> Self {
        Self::CallEnter { op, stack: NameId::NONE, path: NameId::NONE, call_only: false }
    }

    pub fn exit(op: Op, ret: Option<i64>) -> Self {
        Self::CallExit { op, ret, stack: NameId::NONE, untimed: false }
    }
}

impl Event {
    pub fn names_mut(&mut self, f: &mut impl FnMut(&mut NameId)) {
        f(&mut self.comm);
        self.kind.names_mut(f);
    }
}
