//! The event: every source produces it, and pairing consumes it.

use crate::names::NameId;

pub(crate) mod background_ids;
pub mod bio_flags;
mod disk_name;
pub mod errno;
pub mod file_op;
pub mod place;
pub mod probe;
pub mod write;

use self::bio_flags::{BioFlags, Direction};
use self::file_op::{FileCall, FileReturn};
use self::probe::Probe;
use self::write::WriteEvent;

/// A thread or process id that the source does not record.
pub const UNKNOWN_TASK: u32 = u32::MAX;

/// A sync call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Fsync,
    Fdatasync,
    Msync,
    Sync,
    Syncfs,
    SyncFileRange,
    /// A write that is durable when it returns: the file was opened with `O_SYNC` or `O_DSYNC`, or the call has `RWF_SYNC` or `RWF_DSYNC`.
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

    /// Whether one call may make several requests: for each file system, or for each file that is mapped.
    pub fn makes_several(self) -> bool {
        matches!(self, Self::Sync | Self::Syncfs | Self::Msync)
    }

    /// The syscall of this name, if every call of it is a sync. A `write` is one only with certain flags.
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

/// What the thread of a request waits for besides its data, named as in the kernel's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// A commit of the journal that the thread makes itself. f2fs does this.
    Commit,
    /// A commit of the journal that another thread makes.
    CommitWait,
    /// A fast commit of ext4 that the thread makes itself.
    FastCommit,
    /// A fast commit of ext4 that another thread makes.
    FastCommitWait,
    /// A cache flush of the device.
    Flush,
    /// A block of metadata that is read, or written outside of a journal.
    Metadata,
}

impl WaitKind {
    pub const ALL: [Self; 6] =
        [Self::Commit, Self::CommitWait, Self::FastCommit, Self::FastCommitWait, Self::Flush, Self::Metadata];

    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::CommitWait => "commit wait",
            Self::FastCommit => "fast commit",
            Self::FastCommitWait => "fast commit wait",
            Self::Flush => "flush",
            Self::Metadata => "metadata wait",
        }
    }

    /// Whether it is a wait for a journal, or makes a commit of it.
    pub fn is_of_journal(self) -> bool {
        !matches!(self, Self::Flush | Self::Metadata)
    }

    /// The wait whose events have this name before `_start` and `_end`.
    pub fn from_event_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"commit" => Self::Commit,
            b"commit_wait" => Self::CommitWait,
            b"fc" => Self::FastCommit,
            b"fc_wait" => Self::FastCommitWait,
            b"flush" => Self::Flush,
            _ => return None,
        })
    }
}

/// A part of a commit of jbd2 that has an event at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitStep {
    /// The thread of the journal waits until the open handles of the transaction are closed.
    Locking,
    /// It writes the data of the transaction's files, and waits for it.
    Flushing,
    /// It writes the transaction to the journal, and waits for it.
    Logging,
}

impl CommitStep {
    pub const COUNT: usize = 3;
}

/// How a fast commit of ext4 ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FastCommitStatus {
    Ok,
    /// Something was done that a fast commit cannot hold. A full commit took its place.
    Ineligible,
    /// Another commit had made the same durable.
    Skipped,
    /// It could not be begun or written. A full commit took its place.
    Failed,
}

impl FastCommitStatus {
    /// In the order of the kernel's numbers.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Ineligible, Self::Skipped, Self::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Ineligible => "ineligible",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// A change that a fast commit of ext4 cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FastCommitReason {
    Xattr,
    CrossRename,
    JournalFlagChange,
    NoMemory,
    SwapBoot,
    Resize,
    RenameDir,
    FallocRange,
    InodeJournalData,
    EncryptedFilename,
}

impl FastCommitReason {
    /// In the order of the kernel's numbers.
    pub const ALL: [Self; 10] = [
        Self::Xattr,
        Self::CrossRename,
        Self::JournalFlagChange,
        Self::NoMemory,
        Self::SwapBoot,
        Self::Resize,
        Self::RenameDir,
        Self::FallocRange,
        Self::InodeJournalData,
        Self::EncryptedFilename,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Xattr => "xattr",
            Self::CrossRename => "cross rename",
            Self::JournalFlagChange => "journal flag change",
            Self::NoMemory => "no memory",
            Self::SwapBoot => "swap boot",
            Self::Resize => "resize",
            Self::RenameDir => "rename dir",
            Self::FallocRange => "falloc range",
            Self::InodeJournalData => "inode journal data",
            Self::EncryptedFilename => "encrypted filename",
        }
    }
}

/// A report of the scheduler, or of a lock, about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadEvent {
    /// A CPU passes from one thread to another. `is_runnable`: the thread that leaves it could have continued.
    Switch {
        from: u32,
        is_runnable: bool,
        to: u32,
    },
    /// A thread that was blocked may run.
    Wake {
        thread: u32,
    },
    /// The thread of the event begins to wait for a lock, or has it.
    LockWait,
    LockWaitEnd,
}

/// The part of a mark that a marker of the application states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkPhase {
    /// A moment. The mark lasts until the next one.
    Instant,
    /// The thread begins a mark. The marks of a thread nest.
    Begin,
    /// The thread ends the mark that it began last.
    End,
    /// A mark begins that any thread may end, with the same `key`.
    AsyncBegin,
    AsyncEnd,
}

/// A block device number in the kernel's packing, `major << 20 | minor`, or what stands for the name of a disk whose number is not recorded. 0 is
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dev(pub u32);

impl Dev {
    pub const UNKNOWN: Self = Self(0);

    pub fn new(major: u32, minor: u32) -> Self {
        Self(major << 20 | (minor & 0xf_ffff))
    }

    /// The device whose recorder prints only this name of the disk, such as `vdb`; `None` for what is no such name.
    pub fn named(name: &str) -> Option<Self> {
        disk_name::number(name)
    }

    pub fn is_known(self) -> bool {
        self.0 != 0
    }

    /// The number of the driver: disks and partitions of one driver have the same. 0 if the file system has made up the device, as btrfs does.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }
}

impl std::fmt::Display for Dev {
    /// `major,minor`, or the name if only that is recorded.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(written) = disk_name::fmt(*self, f) {
            return written;
        }
        write!(f, "{},{}", self.major(), self.0 & 0xf_ffff)
    }
}

/// The id of a request in a source without request ids. Events are then assigned by their thread.
pub const NO_ID: u64 = u64::MAX;

/// No sector. Flushes have sector -1 too.
pub const NO_SECTOR: i64 = -1;

/// What a request of the block layer asks of the device, as far as its recorder prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    Flags(BioFlags),
    /// The recorder prints no flags.
    Way(Direction),
}

/// What happened. Offsets and lengths are in bytes, sectors in units of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Entry of a sync call. `stack` holds the frames as printed, one a line, innermost first. `call_only`: the source records calls, and
    /// not what the file system does in them.
    CallEnter { op: Op, stack: NameId, path: NameId, call_only: bool },
    /// Exit of a sync call. `stack` is set if the tracer prints it at the exit. `untimed`: the time of the return is not known.
    /// `entry_lost`: the source knows that it lacks the entry of this call, so the exit belongs to no entry before it.
    CallExit { op: Op, ret: Option<i64>, stack: NameId, untimed: bool, entry_lost: bool },
    /// The file system's sync function is entered. `by_thread`: the kernel has no request ids, and the recorder made one of thread and
    /// time. Whatever the thread does until the end then has this id.
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
    /// A folio is added to a bio. Lengths are in bytes. `ino` is 0 and `dev` unknown where the source does not record the file.
    BioAddFolio { id: u64, bio: u64, offset: u64, len: u64, dev: Dev, ino: u64 },
    /// A bio is submitted to the block layer. `background`: the source reports it as background writeback, whatever its id. `bytes`: the
    /// size of the bio; 0 where the source does not record it. `flags`: `None` where the source records none.
    BioSubmit { id: u64, bio: u64, sector: i64, dev: Dev, background: bool, bytes: u64, flags: Option<BioFlags> },
    /// A bio is complete. `bio` is 0 where the source has no address. `error`: 0 or a negative errno; `None` where the source records none.
    BioComplete { bio: u64, sector: i64, dev: Dev, error: Option<i32> },
    /// The file system's sync function returns. Without an id, the file says which request ends: `ino` is 0 and `dev` unknown where the
    /// source does not record it. `datasync`: `None` where the end does not record it.
    SyncEnd { id: u64, ret: i64, fs: NameId, dev: Dev, ino: u64, datasync: Option<bool> },
    /// The file system's sync function has returned, by a recorder that reports it only then: the event has both ends, `dur` ns apart. `ret`:
    /// `None` where the source does not record it.
    SyncDone { dur: u64, fs: NameId, path: NameId, ret: Option<i64> },
    /// A flusher thread begins background writeback of an inode. Events with this id belong to no request.
    WbStart { id: u64 },
    /// Background writeback of an inode ends.
    WbEnd { id: u64 },
    /// A thread begins to wait in the request with this id, or a journal thread begins a commit that has an id of its own.
    WaitStart { id: u64, wait: WaitKind, transaction: u64 },
    /// A wait ends. `transaction` is 0 where the source does not record it.
    WaitEnd { id: u64, wait: WaitKind, transaction: u64 },
    /// A stock kernel's journal thread begins to commit a transaction. It records no id.
    CommitStart { dev: Dev, transaction: u64 },
    /// The commit of a stock kernel's journal thread ends.
    CommitEnd { dev: Dev, transaction: u64 },
    /// The next step of a commit by a stock kernel's journal thread begins.
    CommitStep { dev: Dev, transaction: u64, step: CommitStep },
    /// A thread closes a handle of a transaction, for which it was the first to change so many blocks. They are in the commit of it.
    HandleEnd { dev: Dev, transaction: u64, blocks: u64 },
    /// The state of a thread changes.
    Thread(ThreadEvent),
    /// The block layer queues a bio: a write, a read, or with 0 bytes a flush. The event has neither an address nor an id.
    BlockSubmit { dev: Dev, sector: i64, bytes: u64, flags: BioFlags },
    /// A request of the block layer begins, or enters the queue of the scheduler: several bios that were merged, or a part of one bio.
    BlockInsert { dev: Dev, sector: i64, bytes: u64, flags: BioFlags },
    /// The block layer hands a request to the driver. 0 bytes: a flush.
    BlockIssue { dev: Dev, sector: i64, bytes: u64, flags: BioFlags },
    /// The block layer completes `bytes` bytes: several bios that were merged, or a part of one bio. 0 bytes: the flushes before and after
    /// a write are done too. `flags`: what the device was asked for. `error`: as for `BioComplete`.
    /// `is_bio`: it is the end of one bio, and not of a request.
    BlockComplete { dev: Dev, sector: i64, bytes: u64, flags: BioFlags, error: Option<i32>, is_bio: bool },
    /// A request is complete, by a recorder that reports it only then: the event has both ends. `bytes`: 0 where the source does not record it,
    /// and for a flush. `since_begin`: ns since it began or entered the queue of the scheduler, and `since_issue` since its last issue; `None`
    /// where the source does not record it.
    BlockReport { dev: Dev, sector: i64, bytes: u64, asked: Asked, since_begin: Option<u64>, since_issue: Option<u64> },
    /// A request that began at a sector is done, all of it.
    BlockDone { dev: Dev, sector: i64, flags: BioFlags },
    /// The block layer redirects a bio from a partition or a device mapper to the device below.
    BlockRemap { dev: Dev, sector: i64, bytes: u64, from_dev: Dev, from_sector: i64, flags: BioFlags },
    /// The application has written a marker. An end has no name. `key` is 0 unless the phase is asynchronous.
    Mark { phase: MarkPhase, name: NameId, key: u64 },
    /// A probe on a stock kernel has been hit.
    Probe(Probe),
    /// A thread begins an operation on files that is no sync.
    FileCall(FileCall),
    /// It returns.
    FileReturn(FileReturn),
    /// A line that is torn. `id` is `NO_ID` and `bio` 0 where the line does not name them.
    Torn { id: u64, bio: u64, fact: TornFact },
    /// An event of the tracer that no report uses. Only the low-level log holds it.
    Other,
}

/// The fact that a torn line would have stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TornFact {
    /// Page cache of a bio, or a bio of a request.
    Pages,
    /// The entry or the exit of a call.
    Call,
    /// Something else of a request.
    Request,
    /// It may have been anything.
    Any,
}

impl TornFact {
    pub const ALL: [Self; 4] = [Self::Pages, Self::Call, Self::Request, Self::Any];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Call => "call",
            Self::Request => "request",
            Self::Any => "any",
        }
    }
}

impl Kind {
    pub const COUNT: usize = 29;
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
        "mark",
        "journal_commit_start",
        "journal_commit_end",
        "block_issue",
        "probe",
        "journal_commit_step",
        "thread_state",
        "block_insert",
        "block_done",
        "file_call",
        "file_return",
        "sync_done",
        "block_report",
        "journal_handle_end",
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
            Self::Torn { .. } | Self::Other => 9,
            Self::BlockSubmit { .. } => 10,
            Self::BlockComplete { .. } => 11,
            Self::BlockRemap { .. } => 12,
            Self::WaitStart { .. } => 13,
            Self::WaitEnd { .. } => 14,
            Self::Mark { .. } => 15,
            Self::CommitStart { .. } => 16,
            Self::CommitEnd { .. } => 17,
            Self::BlockIssue { .. } => 18,
            Self::Probe(_) => 19,
            Self::CommitStep { .. } => 20,
            Self::Thread(_) => 21,
            Self::BlockInsert { .. } => 22,
            Self::BlockDone { .. } => 23,
            Self::FileCall(_) => 24,
            Self::FileReturn(_) => 25,
            Self::SyncDone { .. } => 26,
            Self::BlockReport { .. } => 27,
            Self::HandleEnd { .. } => 28,
        }
    }

    /// Visits every name of the event, so that it can be replaced.
    fn names_mut(&mut self, f: &mut impl FnMut(&mut NameId)) {
        match self {
            Self::Probe(Probe::WriteWaitStart { waited_for, .. }) => f(&mut waited_for.holder_comm),
            Self::Probe(Probe::Write(WriteEvent::Start(call))) => f(&mut call.path),
            Self::Probe(Probe::FileCall(call)) => {
                f(&mut call.path);
                f(&mut call.to_path);
                f(&mut call.flags);
            }
            Self::Probe(Probe::FileReturn(returned)) => f(&mut returned.path),
            Self::Probe(Probe::SyncEnter { function, path, container_path, fs, .. }) => {
                f(function);
                f(path);
                f(container_path);
                f(fs);
            }
            Self::CallEnter { stack, path, .. } => {
                f(stack);
                f(path);
            }
            Self::CallExit { stack, .. } => f(stack),
            Self::FileCall(FileCall { path, to_path, flags, stack, .. }) => {
                f(path);
                f(to_path);
                f(flags);
                f(stack);
            }
            Self::FileReturn(FileReturn { path, stack, .. }) => {
                f(path);
                f(stack);
            }
            Self::Mark { name, .. } => f(name),
            Self::SyncEnd { fs, .. } => f(fs),
            Self::SyncStart { path, fs, .. } | Self::SyncDone { path, fs, .. } => {
                f(path);
                f(fs);
            }
            _ => {}
        }
    }
}

/// One event of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// ns on the clock of the source.
    pub ts: i64,
    /// Thread id, or `UNKNOWN_TASK`.
    pub tid: u32,
    /// Process id, or `UNKNOWN_TASK`.
    pub pid: u32,
    pub comm: NameId,
    /// Line in its chunk, from 1. 0 where the format has no lines.
    pub line: u32,
    pub kind: Kind,
}

impl Kind {
    pub fn enter(op: Op) -> Self {
        Self::CallEnter { op, stack: NameId::NONE, path: NameId::NONE, call_only: false }
    }

    /// Whether it is of a flush that the tracer reports without a sector.
    pub fn is_without_sector(&self) -> bool {
        matches!(
            self,
            Self::BlockSubmit { sector: NO_SECTOR, .. }
                | Self::BlockInsert { sector: NO_SECTOR, .. }
                | Self::BlockIssue { sector: NO_SECTOR, .. }
                | Self::BlockComplete { sector: NO_SECTOR, .. }
                | Self::BlockRemap { sector: NO_SECTOR, .. }
        )
    }

    /// Whether its recorder follows the bios of syncs: the file system or a probe reports it, and not the block layer, which knows no sync.
    pub fn is_of_bio(&self) -> bool {
        matches!(
            self,
            Self::BioAddFolio { .. }
                | Self::BioSubmit { .. }
                | Self::BioComplete { .. }
                | Self::Probe(Probe::AddFolio { .. } | Probe::Submit { .. } | Probe::End { .. })
        )
    }

    pub fn exit(op: Op, ret: Option<i64>) -> Self {
        Self::CallExit { op, ret, stack: NameId::NONE, untimed: false, entry_lost: false }
    }

    /// The end of the request with this id.
    pub fn end(id: u64, ret: i64) -> Self {
        Self::SyncEnd { id, ret, fs: NameId::NONE, dev: Dev::UNKNOWN, ino: 0, datasync: None }
    }
}

impl Event {
    /// When what it reports began: before its own time if it reports something that is over.
    pub fn since(&self) -> i64 {
        match self.kind {
            Kind::SyncDone { dur, .. } => self.ts.saturating_sub_unsigned(dur),
            Kind::BlockReport { since_begin, since_issue, .. } => {
                self.ts.saturating_sub_unsigned(since_begin.max(since_issue).unwrap_or(0))
            }
            _ => self.ts,
        }
    }

    /// Returns the part of an event that identifies it. Names, process and stack are left out, because only one input may know them.
    #[must_use]
    pub fn identity(mut self) -> Self {
        self.names_mut(&mut |name| *name = NameId::NONE);
        self.line = 0;
        if self.tid != UNKNOWN_TASK {
            self.pid = UNKNOWN_TASK;
        }
        if let Kind::CallEnter { call_only, .. } = &mut self.kind {
            *call_only = false;
        }
        self
    }

    pub fn names_mut(&mut self, f: &mut impl FnMut(&mut NameId)) {
        f(&mut self.comm);
        self.kind.names_mut(f);
    }

    /// Visits every name of the event.
    pub fn visit_names(mut self, f: &mut dyn FnMut(NameId)) {
        self.names_mut(&mut |name| f(*name));
    }
}
