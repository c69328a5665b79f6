//! Operations on files, as their calls show them. `state` adds what follows from earlier lines: the files of descriptors, the working
//! directory.

use super::args::{AT_FDCWD, Args, descriptor, has_flag, is_whole_string, path_of, quoted, symbolic};
use super::syscall::NO_FD;
use crate::event::file_op::{Creates, FileOpKind, NO_NUMBER};
use crate::names::{NameId, Names};
use crate::source::cursor::{Cursor, whole};

/// A file as a call names it. Names are interned in the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The descriptor of the file, or of the directory of a relative path. `NO_FD`: the call shows none.
    pub(super) fd: i32,
    /// The file of that descriptor, as strace shows it with `-y`.
    pub(super) shown: NameId,
    /// The path of the file, as the program gives it.
    pub(super) path: NameId,
}

impl Named {
    const NONE: Self = Self { fd: NO_FD, shown: NameId::NONE, path: NameId::NONE };
}

/// An operation on files, before its paths are resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileArgs {
    pub(super) op: FileOpKind,
    pub(super) creates: Creates,
    pub(super) file: Named,
    /// The new name of `file`. The text of a symbolic link has no directory.
    pub(super) to: Named,
    pub(super) flags: NameId,
    pub(super) offset: i64,
    pub(super) len: i64,
}

/// The operation of a call, if the name alone says so. That of `unlinkat` depends on its flags.
pub(super) fn kind_of(name: &[u8]) -> Option<FileOpKind> {
    Some(match name {
        b"open" | b"openat" | b"openat2" | b"creat" => FileOpKind::Open,
        b"write" | b"pwrite64" | b"writev" | b"pwritev" | b"pwritev2" | b"sendfile" | b"sendfile64"
        | b"copy_file_range" | b"splice" => FileOpKind::Write,
        b"sendto" | b"sendmsg" | b"sendmmsg" | b"send" => FileOpKind::Send,
        b"truncate" | b"ftruncate" | b"truncate64" | b"ftruncate64" => FileOpKind::Truncate,
        // An ioctl that gives the file data of another one (FICLONE).
        b"fallocate" | b"ioctl" => FileOpKind::Allocate,
        b"mmap" | b"mmap2" => FileOpKind::Map,
        b"rename" | b"renameat" | b"renameat2" => FileOpKind::Rename,
        b"link" | b"linkat" => FileOpKind::Link,
        b"symlink" | b"symlinkat" => FileOpKind::Symlink,
        b"unlink" | b"unlinkat" => FileOpKind::Unlink,
        b"rmdir" => FileOpKind::Rmdir,
        b"mkdir" | b"mkdirat" => FileOpKind::Mkdir,
        b"close" => FileOpKind::Close,
        b"dup" | b"dup2" | b"dup3" | b"fcntl" | b"fcntl64" => FileOpKind::Dup,
        b"exit" | b"exit_group" => FileOpKind::Exit,
        _ => return None,
    })
}

/// Whether each call of this name is an operation on files, whatever its arguments: its return is one without its begin.
pub(super) fn is_always(name: &[u8]) -> bool {
    !matches!(name, b"ioctl" | b"mmap" | b"mmap2" | b"fcntl" | b"fcntl64" | b"exit" | b"exit_group")
}

/// In the name of each ioctl that copies data by sharing their blocks: `BTRFS_IOC_CLONE or FICLONE`, `... FICLONERANGE`.
const CLONE: &[u8] = b"FICLONE";

/// Whether a call that strace shows may be an operation on files. For most calls of `mmap` and `fcntl` a look at the line rules it out.
#[inline]
pub(super) fn may_be(name: &[u8], rest: &[u8]) -> bool {
    let has = |marker: &[u8]| memchr::memmem::find(rest, marker).is_some();
    match name {
        b"mmap" | b"mmap2" => has(b"MAP_SHARED") && has(b"PROT_WRITE") && !has(b"MAP_ANONYMOUS"),
        b"fcntl" | b"fcntl64" => has(b"F_DUPFD"),
        b"ioctl" => has(CLONE),
        _ => kind_of(name).is_some(),
    }
}

/// The arguments of a call.
struct Reader<'a, 'b> {
    args: Args<'a>,
    names: &'b mut Names,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> &'a [u8] {
        symbolic(self.args.next().unwrap_or_default())
    }

    /// A descriptor, with what strace shows to be its file: a path, or a socket or pipe in its own notation.
    fn descriptor(&mut self) -> Option<Named> {
        let arg = self.next();
        let (fd, file) = descriptor(arg)?;
        let shown = file.map_or(NameId::NONE, |file| {
            if let Some(path) = path_of(file) {
                return self.names.intern(&path);
            }
            let inner = file.strip_prefix(b"<").unwrap_or(file);
            self.names.intern(inner.strip_suffix(b">").unwrap_or(inner))
        });
        Some(Named { fd, shown, path: NameId::NONE })
    }

    /// A path relative to a directory. `None` if the text of another line may have been joined to it. strace prints an address if it cannot
    /// read the path.
    fn path(&mut self, directory: Named) -> Option<Named> {
        let arg = self.next();
        if !is_whole_string(arg) || arg.is_empty() {
            return None;
        }
        Some(match quoted(arg) {
            None => Named::NONE,
            // The file is that of the descriptor (AT_EMPTY_PATH).
            Some(path) if path.is_empty() => directory,
            Some(path) => Named { path: self.names.intern(&path), ..directory },
        })
    }

    fn number(&mut self) -> Option<i64> {
        whole(self.next(), Cursor::signed)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    /// The flags as strace prints them. `NONE` for an empty argument, and for 0.
    fn flags(&mut self) -> NameId {
        match self.next() {
            b"" | b"0" => NameId::NONE,
            flags => self.names.intern(flags),
        }
    }
}

/// The value of `flags` in `{flags=O_RDWR|O_CREAT, mode=0600, resolve=0}`.
fn flags_in_struct(arg: &[u8]) -> &[u8] {
    let Some(inner) = arg.strip_prefix(b"{flags=") else { return arg };
    let end = inner.iter().position(|b| matches!(b, b',' | b'}')).unwrap_or(inner.len());
    symbolic(&inner[..end])
}

/// Whether an open makes a file without a name: its path is that of the folder.
fn is_nameless(flags: &[u8]) -> bool {
    has_flag(flags, b"O_TMPFILE") || has_flag(flags, b"__O_TMPFILE")
}

/// Whether an open creates its file.
fn creates(flags: &[u8]) -> Creates {
    if is_nameless(flags) {
        Creates::Always
    } else if !has_flag(flags, b"O_CREAT") {
        Creates::Never
    } else if has_flag(flags, b"O_EXCL") {
        Creates::Always
    } else {
        Creates::Perhaps
    }
}

/// An offset that is -1 means the position of the descriptor.
fn offset_or_none(offset: i64) -> i64 {
    if offset < 0 { NO_NUMBER } else { offset }
}

/// Returns the operation of a call; `Err` if the arguments do not fit the call, `Ok(None)` if it is no operation on files.
pub(super) fn file_args(name: &[u8], args: Args<'_>, names: &mut Names) -> Result<Option<FileArgs>, &'static str> {
    let Some(op) = kind_of(name) else { return Ok(None) };
    of_kind(op, name, args, names).ok_or("its arguments are not those of the call")
}

#[expect(clippy::option_option, reason = "arguments of another call, no operation on files, or one")]
fn of_kind(op: FileOpKind, name: &[u8], args: Args<'_>, names: &mut Names) -> Option<Option<FileArgs>> {
    let cwd = Named { fd: AT_FDCWD, ..Named::NONE };
    let mut arg = Reader { args, names };
    let mut found = FileArgs {
        op,
        creates: Creates::NotAsked,
        file: Named::NONE,
        to: Named::NONE,
        flags: NameId::NONE,
        offset: NO_NUMBER,
        len: NO_NUMBER,
    };
    match name {
        b"open" | b"openat" | b"openat2" | b"creat" => {
            let directory = if name.starts_with(b"openat") { arg.descriptor()? } else { cwd };
            found.file = arg.path(directory)?;
            let flags = if name == b"creat" { b"O_WRONLY|O_CREAT|O_TRUNC" } else { flags_in_struct(arg.next()) };
            found.creates = creates(flags);
            if is_nameless(flags) {
                found.file = Named::NONE;
            }
            found.flags = arg.names.intern(flags);
        }
        b"write" | b"writev" | b"sendfile" | b"sendfile64" | b"sendto" | b"sendmsg" | b"sendmmsg" | b"send"
        | b"close" | b"dup" | b"dup2" => {
            found.file = arg.descriptor()?;
        }
        b"pwrite64" | b"pwritev" | b"pwritev2" => {
            found.file = arg.descriptor()?;
            arg.skip(2);
            found.offset = offset_or_none(arg.number()?);
            if name == b"pwritev2" {
                found.flags = arg.flags();
            }
        }
        b"copy_file_range" | b"splice" => {
            arg.skip(2);
            found.file = arg.descriptor()?;
            let offset = arg.next().strip_prefix(b"[").and_then(|offset| offset.strip_suffix(b"]"));
            found.offset = offset.and_then(|offset| whole(offset, Cursor::signed)).unwrap_or(NO_NUMBER);
        }
        b"truncate" | b"truncate64" => {
            found.file = arg.path(cwd)?;
            found.offset = arg.number()?;
        }
        b"ftruncate" | b"ftruncate64" => {
            found.file = arg.descriptor()?;
            found.offset = arg.number()?;
        }
        b"fallocate" => {
            found.file = arg.descriptor()?;
            found.flags = arg.flags();
            found.offset = arg.number()?;
            found.len = arg.number()?;
        }
        b"ioctl" => {
            found.file = arg.descriptor()?;
            found.flags = arg.flags();
            if memchr::memmem::find(arg.names.get(found.flags), CLONE).is_none() {
                return Some(None);
            }
        }
        b"mmap" | b"mmap2" => {
            arg.skip(1);
            found.len = arg.number()?;
            let (protection, sharing) = (arg.next(), arg.next());
            found.file = arg.descriptor()?;
            found.offset = mapped_offset(arg.next())?;
            let is_written = has_flag(protection, b"PROT_WRITE") && sharing.starts_with(b"MAP_SHARED");
            if !is_written || found.file.fd < 0 {
                return Some(None);
            }
            found.flags = arg.names.intern(&[protection, b"|", sharing].concat());
        }
        b"rename" | b"link" => {
            found.file = arg.path(cwd)?;
            found.to = arg.path(cwd)?;
        }
        b"renameat" | b"renameat2" | b"linkat" => {
            let from = arg.descriptor()?;
            found.file = arg.path(from)?;
            let to = arg.descriptor()?;
            found.to = arg.path(to)?;
            if name != b"renameat" {
                found.flags = arg.flags();
            }
        }
        b"symlink" | b"symlinkat" => {
            found.to = arg.path(Named::NONE)?;
            let directory = if name == b"symlink" { cwd } else { arg.descriptor()? };
            found.file = arg.path(directory)?;
        }
        b"unlink" | b"rmdir" | b"mkdir" => found.file = arg.path(cwd)?,
        b"unlinkat" => {
            let directory = arg.descriptor()?;
            found.file = arg.path(directory)?;
            let flags = arg.next();
            found.op = if has_flag(flags, b"AT_REMOVEDIR") { FileOpKind::Rmdir } else { FileOpKind::Unlink };
            if !matches!(flags, b"" | b"0") {
                found.flags = arg.names.intern(flags);
            }
        }
        b"mkdirat" => {
            let directory = arg.descriptor()?;
            found.file = arg.path(directory)?;
        }
        b"dup3" => {
            found.file = arg.descriptor()?;
            arg.skip(1);
            found.flags = arg.flags();
        }
        b"fcntl" | b"fcntl64" => {
            found.file = arg.descriptor()?;
            match arg.next() {
                b"F_DUPFD" => {}
                b"F_DUPFD_CLOEXEC" => found.flags = arg.names.intern(b"F_DUPFD_CLOEXEC"),
                _ => return Some(None),
            }
        }
        b"exit" | b"exit_group" => {}
        _ => return Some(None),
    }
    if matches!(op, FileOpKind::Link | FileOpKind::Symlink | FileOpKind::Mkdir) {
        found.creates = Creates::Always;
    }
    Some(Some(found))
}

/// The last argument of `mmap`: `0`, `0x1000`.
fn mapped_offset(arg: &[u8]) -> Option<i64> {
    if arg.starts_with(b"0x") {
        return i64::try_from(whole(arg, Cursor::hex)?).ok();
    }
    whole(arg, Cursor::signed)
}
