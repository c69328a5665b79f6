//! Events of writes on a stock kernel: of calls that write to a file, of the syncs that write back what they made dirty, and of the limits of
//! dirty page cache. They become the table of writes. All other outputs leave them out.

use super::Dev;
use crate::names::NameId;

/// A function of the kernel that is probed at its entry and at its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A write to a file.
    Write,
    /// A sync of a file.
    Fsync,
    /// A sync of the inodes of a device.
    SyncInodes,
}

impl CallKind {
    pub const COUNT: usize = 3;

    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::SyncInodes => "sync_inodes",
        }
    }
}

/// How a file is written: the flags of an iocb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IocbFlags(pub u32);

impl IocbFlags {
    const DSYNC: u32 = 1 << 1;
    const SYNC: u32 = 1 << 2;
    const APPEND: u32 = 1 << 4;
    const DIRECT: u32 = 1 << 17;

    /// The write is durable when it returns: it calls a sync function.
    pub fn is_durable(self) -> bool {
        self.0 & (Self::DSYNC | Self::SYNC) != 0
    }

    /// It is durable, but the times of the file are not: O_DSYNC, `None` if it is not durable.
    pub fn is_datasync(self) -> Option<bool> {
        self.is_durable().then_some(self.0 & Self::SYNC == 0)
    }

    /// It begins at the end of the file, whatever its offset is.
    pub fn appends(self) -> bool {
        self.0 & Self::APPEND != 0
    }

    /// It bypasses page cache.
    pub fn is_direct(self) -> bool {
        self.0 & Self::DIRECT != 0
    }
}

/// The identity of a file, which no other file of the run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    pub dev: Dev,
    /// 0 for all inodes of the device.
    pub ino: u64,
    pub generation: u32,
}

/// The start of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallStart {
    pub kind: CallKind,
    pub file: FileId,
    /// Complete, or `.../` and the last names; NONE if no name is recorded.
    pub path: NameId,
    /// Where a write begins.
    pub offset: i64,
    /// Flags of a write.
    pub flags: IocbFlags,
    /// Size of the file at the start of a write; `None` if it is not recorded.
    pub file_size: Option<i64>,
    /// Whether no more than the data, and what is needed to read it, is durable at the return: O_DSYNC, fdatasync. `None` if nothing is, or if
    /// it is not recorded.
    pub is_datasync: Option<bool>,
}

impl CallStart {
    /// A sync whose other facts are not known.
    pub fn of_sync(kind: CallKind, file: FileId, path: NameId) -> Self {
        Self { kind, file, path, offset: 0, flags: IocbFlags::default(), file_size: None, is_datasync: None }
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallEnd {
    pub kind: CallKind,
    /// Bytes that were written, 0, or a negative errno. 0 if the function returns nothing.
    pub ret: i64,
    /// Pages of the machine that were dirty or under writeback after a write; `None` where they are not recorded.
    pub dirty_pages: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteEvent {
    Start(CallStart),
    End(CallEnd),
    /// The limits of dirty page cache at this time.
    Limits {
        background_pages: i64,
        hard_pages: i64,
    },
    /// Events were lost at this time, or just before it. No source makes it: it stands for a note of a batch.
    Lost,
}
