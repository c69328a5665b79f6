//! The effect of a system call, determined from its name and arguments.

use std::borrow::Cow;

use memchr::{memchr3, memmem};

use super::args::{AT_FDCWD, Args, descriptor, flags, has_flag, is_whole_string, path_of, quoted, symbolic};
use crate::event::Op;
use crate::source::cursor::{Cursor, whole};

pub(super) const NO_FD: i32 = -1;
/// `TASK_COMM_LEN` without its NUL.
const COMM_BYTES: usize = 15;

/// Calls that Syncline uses, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Sync(Op),
    Write,
    Open,
    Close,
    CloseRange,
    Dup,
    Fcntl,
    /// `ioctl` that sets or clears close-on-exec.
    Cloexec,
    /// It returns a descriptor that is not a file.
    Returns,
    /// It stores two such descriptors.
    ReturnsTwo,
    /// It may receive descriptors from another process.
    Receives,
    Unshare,
    Clone,
    Exec,
    Exit,
    Prctl,
    Rename,
    /// It changes the working directory, or shows it.
    Chdir,
    IoUring,
    /// An operation on files that no other rule needs.
    FileOp,
}

/// Distinguishes the calls of one `Known` by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallName {
    bytes: u8,
    first: u8,
    last: u8,
}

impl CallName {
    #[inline]
    pub(super) fn of(name: &[u8]) -> Self {
        let byte = |byte: Option<&u8>| byte.copied().unwrap_or_default();
        Self { bytes: name.len() as u8, first: byte(name.first()), last: byte(name.last()) }
    }
}

/// The state that a child shares with its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sharing {
    /// The descriptor table.
    pub(super) files: bool,
    /// The working directory.
    pub(super) fs: bool,
    pub(super) thread: bool,
}

impl Known {
    #[inline]
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"write" | b"pwrite64" | b"writev" | b"pwritev" | b"pwritev2" => Self::Write,
            b"openat" | b"open" | b"openat2" | b"creat" => Self::Open,
            b"close" => Self::Close,
            b"close_range" => Self::CloseRange,
            b"dup" | b"dup2" | b"dup3" => Self::Dup,
            b"fcntl" | b"fcntl64" => Self::Fcntl,
            b"socket" | b"accept" | b"accept4" | b"eventfd" | b"eventfd2" | b"epoll_create" | b"epoll_create1"
            | b"timerfd_create" | b"signalfd" | b"signalfd4" | b"inotify_init" | b"inotify_init1" | b"memfd_create"
            | b"pidfd_open" | b"userfaultfd" | b"fanotify_init" | b"perf_event_open" | b"open_by_handle_at" => {
                Self::Returns
            }
            b"ioctl" => Self::Cloexec,
            b"pipe" | b"pipe2" | b"socketpair" => Self::ReturnsTwo,
            b"recvmsg" | b"recvmmsg" => Self::Receives,
            b"unshare" => Self::Unshare,
            b"clone" | b"clone3" | b"fork" | b"vfork" => Self::Clone,
            b"execve" | b"execveat" => Self::Exec,
            b"exit" | b"exit_group" => Self::Exit,
            b"prctl" => Self::Prctl,
            b"rename" | b"renameat" | b"renameat2" => Self::Rename,
            b"chdir" | b"fchdir" | b"getcwd" => Self::Chdir,
            b"io_uring_setup" | b"io_uring_enter" | b"io_submit" => Self::IoUring,
            _ => return Op::from_name(name).map(Self::Sync),
        })
    }

    /// Whether the second line of a call in two parts shows that it is this call. The arguments that say so may be on either line.
    pub(super) fn is_known_when_resumed(self) -> bool {
        !matches!(self, Self::Cloexec | Self::Receives | Self::Unshare | Self::IoUring)
    }

    /// Whether the first line of a call in two parts is always kept until the second one.
    pub(super) fn is_always_pending(self) -> bool {
        matches!(
            self,
            Self::Sync(_)
                | Self::Open
                | Self::Dup
                | Self::Returns
                | Self::ReturnsTwo
                | Self::Clone
                | Self::Exec
                | Self::Chdir
        )
    }

    /// Like `of`, but calls with many functions count only if their arguments show the relevant one.
    #[inline]
    pub(super) fn of_line(name: &[u8], rest: &[u8]) -> Option<Self> {
        let known = Self::of(name)?;
        let marker: &[u8] = match known {
            Self::Cloexec => b"CLEX",
            Self::Receives => b"SCM_RIGHTS",
            Self::Unshare => b"CLONE_F",
            Self::IoUring if name == b"io_submit" => b"SYNC",
            _ => return Some(known),
        };
        memmem::find(rest, marker).map(|_| known)
    }
}

/// The effect of a call, as far as its line shows it. The text that belongs to it is the line's `name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `fd`: descriptor of the file.
    Sync {
        op: Op,
        fd: i32,
    },
    /// A sync if the file was opened with O_SYNC or O_DSYNC, or if `says_sync`.
    Write {
        fd: i32,
        says_sync: bool,
    },
    /// `dir`: directory of a relative path.
    Open {
        dir: i32,
        sync: bool,
        cloexec: bool,
    },
    Close {
        first: u32,
        last: u32,
        unshare: bool,
    },
    /// The new descriptor is the result of the call.
    Dup {
        fd: i32,
        cloexec: bool,
    },
    Cloexec {
        first: u32,
        last: u32,
        on: bool,
        unshare: bool,
    },
    /// The thread gets a descriptor table or a working directory of its own.
    Unshare {
        files: bool,
        fs: bool,
    },
    /// The working directory is the path of the text, or the directory `dir`. `dir` is also that of a relative path.
    Chdir {
        dir: i32,
    },
    Returns,
    /// A descriptor that the call on the previous line stored.
    Stored {
        fd: i32,
    },
    Clone(Sharing),
    Exec,
    Named,
    /// `all`: with all threads of its process.
    Exit {
        all: bool,
    },
    Ended,
    /// The thread took the PID of its process, because another thread (`by`) called exec.
    Superseded {
        by: u32,
    },
    Attached,
    /// A thread whose calls are not needed.
    Seen,
    /// A line that is not whole. It may have been any call of its thread, or of any thread if the line does not name it.
    Torn,
    Other,
}

impl Action {
    /// Closes one descriptor.
    #[inline]
    pub(super) fn close(fd: i32) -> Self {
        u32::try_from(fd).map_or(Self::Other, |fd| Self::Close { first: fd, last: fd, unshare: false })
    }
}

/// Parses `exited with 0`, `killed by SIGKILL`, `superseded by execve in pid 12`.
pub(super) fn ended(text: &[u8]) -> Action {
    let by = text.strip_prefix(b"superseded by execve in pid ");
    match by.and_then(|number| whole(number, Cursor::decimal)).and_then(|number| u32::try_from(number).ok()) {
        Some(by) => Action::Superseded { by },
        None => Action::Ended,
    }
}

/// The signal of `+++ killed by SIGABRT (core dumped) +++`.
pub(super) fn killed_by(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"killed by ")?.split(|&b| b == b' ').next()
}

/// A resumed line names only the call. Its arguments were on an earlier line.
pub(super) fn resumed(known: Known) -> Action {
    match known {
        Known::Sync(op) => Action::Sync { op, fd: NO_FD },
        Known::Write => Action::Write { fd: NO_FD, says_sync: false },
        Known::Open => Action::Open { dir: AT_FDCWD, sync: false, cloexec: false },
        Known::Close | Known::CloseRange => Action::Close { first: 1, last: 0, unshare: false },
        Known::Dup | Known::Fcntl => Action::Dup { fd: NO_FD, cloexec: false },
        Known::Unshare => Action::Unshare { files: false, fs: false },
        Known::Chdir => Action::Chdir { dir: AT_FDCWD },
        Known::Returns => Action::Returns,
        Known::Clone => Action::Clone(Sharing::default()),
        Known::Exec => Action::Exec,
        Known::Exit
        | Known::Prctl
        | Known::Rename
        | Known::IoUring
        | Known::Cloexec
        | Known::ReturnsTwo
        | Known::Receives
        | Known::FileOp => Action::Other,
    }
}

/// Returns the effect of a call and the text that belongs to it; `None` if the arguments do not fit the call.
pub(super) fn call_action<'a>(known: Known, name: &[u8], args: Args<'a>) -> Option<(Action, Option<Cow<'a, [u8]>>)> {
    let (args, mut arg) = (args.text, args);
    let mut next = || symbolic(arg.next().unwrap_or_default());
    let plain = |action| Some((action, None));
    match known {
        // These have no descriptor that matters: msync syncs memory, sync and syncfs sync file systems.
        Known::Sync(op @ (Op::Msync | Op::Sync | Op::Syncfs)) => plain(Action::Sync { op, fd: NO_FD }),
        Known::Sync(op) => {
            let (fd, path) = file_of(next())?;
            Some((Action::Sync { op, fd }, path))
        }
        Known::Write => {
            let (fd, path) = file_of(next())?;
            let says_sync = name == b"pwritev2" && {
                let flags = symbolic(last_arg(args).trim_ascii());
                if flags != b"0" && is_raw(flags) {
                    return None;
                }
                has_flag(flags, b"RWF_SYNC") || has_flag(flags, b"RWF_DSYNC")
            };
            Some((Action::Write { fd, says_sync }, path))
        }
        Known::Open => {
            let (dir, dir_annotation) = match name {
                b"openat" | b"openat2" => descriptor(next())?,
                _ => (AT_FDCWD, None),
            };
            let name_arg = next();
            if !is_whole_string(name_arg) {
                return None;
            }
            let path = quoted(name_arg).map(|path| resolve(path, dir_annotation));
            let flags_arg = if name == b"creat" { b"".as_slice() } else { next() };
            // The text of another line may have been joined to the name.
            let is_list = [b"O_" as &[u8], b"__O_", b"{"].iter().any(|begin| flags_arg.starts_with(begin));
            if is_raw(flags_arg) || !is_list && name != b"creat" {
                return None;
            }
            let OpenFlags { sync, cloexec, has_no_name } = OpenFlags::of(flags_arg);
            Some((Action::Open { dir, sync, cloexec }, path.filter(|_| !has_no_name)))
        }
        Known::Close => {
            let (fd, _) = descriptor(next())?;
            plain(Action::close(fd))
        }
        Known::CloseRange => {
            let first = whole(next(), Cursor::decimal)?;
            let last = whole(next(), Cursor::decimal).unwrap_or(u64::from(u32::MAX));
            let flags = next();
            let bound = |fd: u64| u32::try_from(fd).unwrap_or(u32::MAX);
            let (first, last) = (bound(first), bound(last));
            let unshare = has_flag(flags, b"CLOSE_RANGE_UNSHARE");
            plain(if has_flag(flags, b"CLOSE_RANGE_CLOEXEC") {
                Action::Cloexec { first, last, on: true, unshare }
            } else {
                Action::Close { first, last, unshare }
            })
        }
        Known::Dup => {
            let (fd, _) = file_of(next())?;
            plain(Action::Dup { fd, cloexec: has_flag(last_arg(args), b"O_CLOEXEC") })
        }
        Known::Fcntl => {
            let (fd, _) = file_of(next())?;
            plain(match next() {
                b"F_DUPFD" => Action::Dup { fd, cloexec: false },
                b"F_DUPFD_CLOEXEC" => Action::Dup { fd, cloexec: true },
                b"F_SETFD" => set_cloexec(fd, has_flag(next(), b"FD_CLOEXEC")),
                _ => Action::Other,
            })
        }
        Known::Cloexec => {
            let (fd, _) = descriptor(next())?;
            plain(match next() {
                b"FIOCLEX" => set_cloexec(fd, true),
                b"FIONCLEX" => set_cloexec(fd, false),
                _ => Action::Other,
            })
        }
        Known::Unshare => {
            plain(Action::Unshare { files: has_flag(args, b"CLONE_FILES"), fs: has_flag(args, b"CLONE_FS") })
        }
        Known::Chdir if name == b"fchdir" => {
            let (dir, path) = file_of(next())?;
            Some((Action::Chdir { dir }, path))
        }
        Known::Chdir => Some((Action::Chdir { dir: AT_FDCWD }, quoted(next()))),
        Known::Returns => plain(Action::Returns),
        // Raw flags or the address of a struct do not show what is shared.
        Known::Clone if name.starts_with(b"clone") && !args.is_empty() && memmem::find(args, b"flags=").is_none() => {
            None
        }
        Known::Clone => {
            let has = |flag| has_flag(args, flag);
            plain(Action::Clone(Sharing {
                files: has(b"CLONE_FILES"),
                fs: has(b"CLONE_FS"),
                thread: has(b"CLONE_THREAD"),
            }))
        }
        Known::Exec => {
            if name == b"execveat" {
                next();
            }
            let comm = quoted(next()).map(|path| {
                let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
                name[..name.len().min(COMM_BYTES)].to_vec().into()
            });
            Some((Action::Exec, comm))
        }
        Known::Exit => plain(Action::Exit { all: name == b"exit_group" }),
        Known::Prctl => match next() {
            // strace truncates the name no shorter than the kernel does.
            b"PR_SET_NAME" => {
                Some((Action::Named, quoted(next()).map(|name| name[..name.len().min(COMM_BYTES)].to_vec().into())))
            }
            _ => plain(Action::Other),
        },
        Known::Rename | Known::IoUring | Known::ReturnsTwo | Known::Receives | Known::FileOp => plain(Action::Other),
    }
}

/// The flags of an open that matter.
#[derive(Default)]
pub(super) struct OpenFlags {
    pub(super) sync: bool,
    pub(super) cloexec: bool,
    pub(super) has_no_name: bool,
}

impl OpenFlags {
    #[inline]
    pub(super) fn of(arg: &[u8]) -> Self {
        let mut found = Self::default();
        // Every relevant flag contains one of these letters.
        if memchr3(b'S', b'X', b'M', arg).is_none() {
            return found;
        }
        for flag in flags(arg) {
            match flag {
                b"O_SYNC" | b"O_DSYNC" => found.sync = true,
                b"O_CLOEXEC" => found.cloexec = true,
                b"O_TMPFILE" | b"__O_TMPFILE" => found.has_no_name = true,
                _ => {}
            }
        }
        found
    }
}

/// Returns whether flags are printed as by `-X raw`.
fn is_raw(flags: &[u8]) -> bool {
    flags.first().is_some_and(u8::is_ascii_digit)
}

fn set_cloexec(fd: i32, on: bool) -> Action {
    u32::try_from(fd).map_or(Action::Other, |fd| Action::Cloexec { first: fd, last: fd, on, unshare: false })
}

/// Returns a descriptor and its path, if printed. If the annotation shows that it is not a file, the descriptor is `NO_FD`.
pub(super) fn file_of(arg: &[u8]) -> Option<(i32, Option<Cow<'_, [u8]>>)> {
    let (fd, file) = descriptor(arg)?;
    let path = file.and_then(path_of);
    Some((if file.is_some() && path.is_none() { NO_FD } else { fd }, path))
}

fn last_arg(args: &[u8]) -> &[u8] {
    memchr::memrchr(b',', args).map_or(args, |comma| &args[comma + 1..])
}

/// Resolves a path against the directory that is printed with it.
fn resolve<'a>(path: Cow<'a, [u8]>, dir: Option<&[u8]>) -> Cow<'a, [u8]> {
    match dir.filter(|_| !path.starts_with(b"/")).and_then(path_of) {
        Some(dir) => join(&dir, &path).into(),
        None => path,
    }
}

pub(super) fn join(dir: &[u8], path: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if dir.ends_with(b"/") { b"" } else { b"/" };
    [dir, slash, path].concat()
}
