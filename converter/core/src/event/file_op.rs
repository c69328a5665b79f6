//! Operations on files that are no syncs: what a program opened, wrote, renamed, removed.

use super::Dev;
use crate::names::NameId;

/// No descriptor.
pub const NO_FD: i32 = -1;
/// No offset, no length, no duration.
pub const NO_NUMBER: i64 = -1;

/// The effect of a call on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOpKind {
    Open,
    Write,
    /// Data for a socket by a call that only sockets have.
    Send,
    Truncate,
    Allocate,
    /// A shared mapping that can be written, by which a program writes without further calls.
    Map,
    Rename,
    Link,
    Symlink,
    Unlink,
    Rmdir,
    Mkdir,
    Close,
    Dup,
    /// The thread, or its process, ends.
    Exit,
}

impl FileOpKind {
    pub const ALL: [Self; 15] = [
        Self::Open,
        Self::Write,
        Self::Send,
        Self::Truncate,
        Self::Allocate,
        Self::Map,
        Self::Rename,
        Self::Link,
        Self::Symlink,
        Self::Unlink,
        Self::Rmdir,
        Self::Mkdir,
        Self::Close,
        Self::Dup,
        Self::Exit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Write => "write",
            Self::Send => "send",
            Self::Truncate => "truncate",
            Self::Allocate => "allocate",
            Self::Map => "map",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Symlink => "symlink",
            Self::Unlink => "unlink",
            Self::Rmdir => "rmdir",
            Self::Mkdir => "mkdir",
            Self::Close => "close",
            Self::Dup => "dup",
            Self::Exit => "exit",
        }
    }
}

/// How the files of an operation are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// The call itself shows them.
    Shown,
    /// They follow from earlier calls: an open, a change of the working directory.
    Followed,
    Unknown,
}

/// Whether a call that succeeds creates a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Creates {
    Always,
    Never,
    /// It creates the file unless there is one already, which the event does not show.
    Perhaps,
    /// It is no call that creates files.
    NotAsked,
}

/// The first part of an operation: what it is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileCall {
    pub op: FileOpKind,
    pub creates: Creates,
    pub naming: Naming,
    /// `NO_FD` where it names its file by a path.
    pub fd: i32,
    pub path: NameId,
    /// The new name of a file, or the text of a symbolic link.
    pub to_path: NameId,
    /// As the tracer prints them.
    pub flags: NameId,
    pub stack: NameId,
    /// Where it writes, or the new size of a file; `NO_NUMBER` at the position of the descriptor.
    pub offset: i64,
    /// The length that it allocates or maps.
    pub len: i64,
}

/// The second part of an operation: what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileReturn {
    pub op: FileOpKind,
    /// The time of the return is not known.
    pub untimed: bool,
    /// The source knows that it lacks the first part.
    pub entry_lost: bool,
    /// The path of the returned descriptor, if the tracer shows it.
    pub path: NameId,
    pub stack: NameId,
    /// The result of the call, or a negative errno; `None` if it did not return.
    pub ret: Option<i64>,
    /// The duration that the tracer measured, or `NO_NUMBER`.
    pub lasted: i64,
    /// Whether it created its file, if the event says so.
    pub created: Option<bool>,
}

/// A function of the kernel begins an operation. It names its file from the root of the file system of `dev`, or by its last parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProbedCall {
    pub op: FileOpKind,
    pub dev: Dev,
    pub path: NameId,
    pub to_path: NameId,
    pub flags: NameId,
    pub offset: i64,
    pub len: i64,
}

/// The function returns. The kernel may have dropped its begin, because the file is on none of the file systems that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProbedReturn {
    pub op: FileOpKind,
    pub dev: Dev,
    /// The file that it opened.
    pub path: NameId,
    /// `None` if it has succeeded, and the descriptor is not recorded.
    pub ret: Option<i64>,
    pub created: Option<bool>,
}
