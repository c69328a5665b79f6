//! Events of probes that a recorder places on a stock kernel (kprobe, fprobe). They name no request: pairing finds it by the thread, by the
//! address of the bio and by the inode of the folio.

use super::bio_flags::BioFlags;
use super::file_op::{ProbedCall, ProbedReturn};
use super::write::WriteEvent;
use super::{Dev, FastCommitReason, FastCommitStatus, WaitKind};
use crate::names::NameId;

/// A folio whose place in its file is not recorded.
pub const NO_OFFSET: u64 = u64::MAX;

/// What a bio writes, as far as that is known from the function that the kernel calls at its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BioRole {
    /// Page cache.
    PageCache,
    /// Not known. It is of a sync only if a folio was added to it.
    Unknown,
    /// Page cache of a file system that splits bios. A part of a bio has no folios of its own.
    MaybePart,
    /// The last of the bios that a file system writes to several places. The others are its `Mirror`s.
    Original,
    /// A copy of the next `Original`, which the file system submits as a bio of its own, perhaps to another device.
    Mirror,
    /// A bio by which a driver carries out another one on the device below. It is not counted.
    Copy,
    /// A part that the block layer split off, or a bio that completes together with another one.
    Chained,
    /// The journal, metadata, swap, direct I/O.
    NotPageCache,
    /// A flush without data. If its thread waits for it in a sync, another event reports the wait.
    Flush,
    /// A flush without data that a file system sends, and waits for later.
    SentFlush,
    /// It does not write.
    Read,
}

/// A function of the kernel in which a sync waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitSite {
    Jbd2Commit,
    Ext4FastCommit,
    XfsLogForce,
    BtrfsLog,
    BtrfsCommit,
    F2fsFlush,
    F2fsCheckpoint,
    Flush,
    Buffer,
}

impl WaitSite {
    pub fn wait(self) -> WaitKind {
        match self {
            Self::Jbd2Commit | Self::XfsLogForce | Self::F2fsCheckpoint => WaitKind::CommitWait,
            Self::Ext4FastCommit => WaitKind::FastCommit,
            Self::BtrfsLog | Self::BtrfsCommit => WaitKind::Commit,
            Self::F2fsFlush | Self::Flush => WaitKind::Flush,
            Self::Buffer => WaitKind::Metadata,
        }
    }

    /// The only file system that calls it.
    pub fn file_system(self) -> Option<&'static str> {
        match self {
            Self::Jbd2Commit | Self::Flush | Self::Buffer => None,
            Self::Ext4FastCommit => Some("ext4"),
            Self::XfsLogForce => Some("xfs"),
            Self::BtrfsLog | Self::BtrfsCommit => Some("btrfs"),
            Self::F2fsFlush | Self::F2fsCheckpoint => Some("f2fs"),
        }
    }
}

/// What a sync function syncs, and so which other ones it may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncScope {
    File,
    /// A range of a file by `sync_file_range()`: data without metadata.
    Range,
    /// A whole file system, by a function that calls those for its data and its journal.
    FileSystem,
    /// The data of a file system. It calls no other sync function.
    Data,
    /// The journal of a file system. It calls no other sync function.
    Journal,
}

impl SyncScope {
    pub fn is_whole_fs(self) -> bool {
        matches!(self, Self::FileSystem | Self::Data | Self::Journal)
    }
}

/// Why a thread that writes to a file waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteWaitKind {
    /// The kernel makes it pause, because too much page cache is dirty.
    Throttling,
    /// Another thread holds the lock of the file.
    InodeLock,
    /// A commit has begun, and waits until the open handles of its transaction are closed. The thread needs a handle of the next one.
    JournalHandle,
    /// The journal has no room for another transaction.
    JournalSpace,
    /// A commit writes a block of metadata that the thread needs to change.
    JournalBuffer,
    /// Page cache that it needs is under writeback.
    PageWriteback,
    /// It changes a part of a page that is not cached, so the page is read first.
    PageRead,
}

impl WriteWaitKind {
    pub const COUNT: usize = 7;
    pub const ALL: [Self; Self::COUNT] = [
        Self::Throttling,
        Self::InodeLock,
        Self::JournalHandle,
        Self::JournalSpace,
        Self::JournalBuffer,
        Self::PageWriteback,
        Self::PageRead,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Throttling => "throttling",
            Self::InodeLock => "inode lock",
            Self::JournalHandle => "journal handle",
            Self::JournalSpace => "journal space",
            Self::JournalBuffer => "journal buffer",
            Self::PageWriteback => "page writeback",
            Self::PageRead => "page read",
        }
    }
}

/// What a thread waits for, as far as the event records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WaitedFor {
    /// Device of the file, or of the file system; the disk while a thread is throttled.
    pub dev: Dev,
    /// 0 if it is not recorded.
    pub ino: u64,
    /// 0 if it is not recorded.
    pub transaction: u64,
    /// The thread that holds the lock, and its name. 0 if it is not recorded.
    pub holder: u32,
    pub holder_comm: NameId,
    /// The bytes that the thread made dirty since the kernel last checked. 0 if they are not recorded, and in further pauses.
    pub bytes: u64,
    /// The bio that reads the page, by its number. 0 if it is not recorded.
    pub bio: u64,
}

/// Page cache of a file that is read in a buffer of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileBuffer {
    pub dev: Dev,
    pub ino: u64,
    /// Where it is on the device; `NO_SECTOR` if that is not recorded.
    pub sector: i64,
}

/// What a probe reports. Lengths and offsets are in bytes, sectors in units of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// A sync function is entered. It may call another one: overlayfs calls that of the file system below. `function` is its name, or its
    /// address.
    SyncEnter {
        function: NameId,
        scope: SyncScope,
        dev: Dev,
        /// 0 for a whole file system.
        ino: u64,
        generation: u32,
        /// Complete, or `.../` and the last parts.
        path: NameId,
        /// Its path in the container of the thread. Only the recorder's table of files has it.
        container_path: NameId,
        fs: NameId,
        /// `None` if it is not recorded.
        datasync: Option<bool>,
    },
    /// It is left. `ret` is `None` if it returns nothing.
    SyncExit {
        scope: SyncScope,
        ret: Option<i64>,
    },
    /// A folio is about to be added to a bio, which may fail for lack of room. `ino` is 0 and `dev` unknown where they are not recorded.
    /// `is_page`: by the function for pages, which the one for folios may call for the same bytes.
    AddFolio {
        bio: u64,
        dev: Dev,
        ino: u64,
        offset: u64,
        len: u64,
        is_page: bool,
    },
    /// `bytes` is 0 for a flush. `flags`: `None` where they are not recorded.
    Submit {
        bio: u64,
        dev: Dev,
        sector: i64,
        bytes: u64,
        role: BioRole,
        flags: Option<BioFlags>,
    },
    /// A bio that reads is submitted. `file`: device and inode of the file whose page cache it fills, where that is known.
    Read {
        dev: Dev,
        sector: i64,
        bytes: u64,
        flags: BioFlags,
        file: Option<(Dev, u64)>,
    },
    /// A part of a bio or all of it is complete. `remaining`: how many parts had not been, with this one; 0 where it is not recorded.
    /// `parent`: what the bio says of its origin, which is the address of a bio if that was split. `error`: as for `BioComplete`. `role`: as of
    /// its submit, where it is recorded.
    End {
        bio: u64,
        error: Option<i32>,
        remaining: u32,
        parent: u64,
        role: Option<BioRole>,
    },
    /// `dev`: the device that is waited for, where it is recorded. `buffer`: what is waited for is of a file, and no metadata.
    WaitStart {
        site: WaitSite,
        transaction: u64,
        dev: Dev,
        buffer: Option<FileBuffer>,
    },
    WaitEnd {
        site: WaitSite,
    },
    /// A thread waits until folios are no longer under writeback. Such waits may be nested. `ino` is 0 and `dev` unknown where they are not
    /// recorded.
    FolioWait {
        dev: Dev,
        ino: u64,
    },
    FolioWaitEnd,
    /// A flusher thread begins a piece of work on a file system. `for_sync`: sync() or syncfs() asked for it.
    WorkStart {
        dev: Dev,
        for_sync: bool,
    },
    WorkEnd,
    /// A thread asks the journal's thread to commit a transaction. `is_due`: the transaction has reached the age at which the journal commits
    /// it; `None` if that is not recorded.
    CommitRequest {
        dev: Dev,
        transaction: u64,
        is_due: Option<bool>,
    },
    /// The timer of a journal expires: a transaction has reached its age.
    CommitTimer,
    /// ext4 does something that a fast commit cannot hold.
    FastCommitIneligible {
        dev: Dev,
        reason: Option<FastCommitReason>,
    },
    /// A thread begins a fast commit of ext4. `transaction` is 0 where it is not recorded.
    FastCommitStart {
        dev: Dev,
        transaction: u64,
    },
    /// It has ended, or given up.
    FastCommitStop {
        dev: Dev,
        transaction: u64,
        status: Option<FastCommitStatus>,
    },
    /// A thread begins to wait in a function that is called in writes, or waits no longer. The end may occur without a start.
    WriteWaitStart {
        kind: WriteWaitKind,
        waited_for: WaitedFor,
    },
    WriteWaitEnd {
        kind: WriteWaitKind,
    },
    /// A thread waits for the lock of a page of a file, or waits no longer. If it reads the page itself, it waits for the read.
    PageLock {
        dev: Dev,
        ino: u64,
    },
    PageLockEnd,
    /// A thread begins an operation on a file, or has ended it.
    FileCall(ProbedCall),
    FileReturn(ProbedReturn),
    /// A thread that writes is about to pause for this time, because too much page cache is dirty.
    Throttle {
        pause_ns: i64,
        waited_for: WaitedFor,
    },
    /// Only a conversion to the table of writes has them.
    Write(WriteEvent),
}
