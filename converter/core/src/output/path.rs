//! The path of an output: its folder, and the symbolic links on it.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, mkdirat, open, openat, readlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// The kernel follows as many links in one path.
const MAX_LINKS: usize = 40;
/// How a folder is opened in which names are looked up: it need not be readable.
const OPEN: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Returns the path that a file is written to. If `path` is a symbolic link, that is its target, because a rename to the link itself would
/// replace it. The folder must exist.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    refuse_foreign_links(path)?;
    let path = follow(path)?;
    let folder = folder(&path);
    if path != Path::new("-") && !folder.is_dir() {
        return Err(Error::NoFolder { path: path.clone(), folder: folder.to_owned() });
    }
    Ok(path)
}

/// Returns what a path leads to, which need not exist: a link that leads nowhere yet is kept, too.
pub fn follow(path: &Path) -> Result<PathBuf> {
    // `components` drops a slash at the end, with which `read_link` would look at the target of a link instead of the link.
    let mut at = path.components().as_path().to_owned();
    for _ in 0..=MAX_LINKS {
        match at.read_link() {
            Ok(target) => at = folder(&at).join(target),
            Err(_) => return Ok(at.canonicalize().unwrap_or(at)),
        }
    }
    let source = std::io::Error::from(rustix::io::Errno::LOOP);
    Err(Error::Write { path: path.to_owned(), source })
}

/// Returns the folder of a file; `.` for a bare name.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// As root, refuses a path with a symbolic link that another user made, who could thereby choose which file root overwrites.
///
/// This check gives the error before anything is created. It does not protect what follows, because a link may be put there after it, so
/// files are then created through `open_above`.
pub fn refuse_foreign_links(path: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    match foreign_link(path, &trusted(), MAX_LINKS) {
        Some(link) => Err(Error::ForeignLink { path: path.to_owned(), link }),
        None => Ok(()),
    }
}

/// Returns a test whether root may follow the links of a user. It passes for root, and for the user who called sudo.
fn trusted() -> impl Fn(u32) -> bool {
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok());
    move |uid| uid == 0 || Some(uid) == caller
}

/// Returns the first symbolic link on a path whose owner is not trusted.
fn foreign_link(path: &Path, is_trusted: &dyn Fn(u32) -> bool, links_left: usize) -> Option<PathBuf> {
    let mut reached = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        reached.push(component);
        let meta = reached.symlink_metadata().ok()?;
        if !meta.is_symlink() {
            continue;
        }
        if links_left == 0 || !is_trusted(meta.uid()) {
            return Some(reached);
        }
        let target = folder(&reached).join(reached.read_link().ok()?);
        return foreign_link(&target.join(components.as_path()), is_trusted, links_left - 1);
    }
    None
}

/// A new folder: the open one above it, and its name there.
pub type Made = (OwnedFd, OsString);

/// Opens the folder above a file or folder: each name is looked up in the open folder before it, so nobody can put a link in its place meanwhile.
/// As root, a symbolic link of another user is not followed.
///
/// With `made`, it creates folders that are missing, and notes them there. Returns the folder, and the name in it, which is no link.
pub fn open_above(path: &Path, mut made: Option<&mut Vec<Made>>) -> Result<(OwnedFd, OsString)> {
    let fail = |errno: Errno| Error::Write { path: path.to_owned(), source: errno.into() };
    let is_trusted: Box<dyn Fn(u32) -> bool> =
        if rustix::process::geteuid().is_root() { Box::new(trusted()) } else { Box::new(|_| true) };
    let mut names: VecDeque<OsString> = path.components().map(|name| name.as_os_str().to_owned()).collect();
    let mut at = open(".", OPEN, Mode::empty()).map_err(fail)?;
    let mut reached = PathBuf::new();
    let mut links_left = MAX_LINKS;
    while let Some(name) = names.pop_front() {
        if name == "/" {
            at = open("/", OPEN, Mode::empty()).map_err(fail)?;
            reached = PathBuf::from("/");
            continue;
        }
        match link(&at, &name).map_err(fail)? {
            Some((_, owner)) if !is_trusted(owner) => {
                return Err(Error::ForeignLink { path: path.to_owned(), link: reached.join(name) });
            }
            Some(_) if links_left == 0 => return Err(fail(Errno::LOOP)),
            Some((None, _)) if !names.is_empty() => {
                at = openat(&at, &name, OPEN - OFlags::NOFOLLOW, Mode::empty()).map_err(fail)?;
                reached.push(name);
                continue;
            }
            Some((target, _)) => {
                links_left -= 1;
                let target = match target {
                    Some(target) => target,
                    None => PathBuf::from(OsString::from_vec(
                        readlinkat(&at, &name, Vec::new()).map_err(fail)?.into_bytes(),
                    )),
                };
                target.components().rev().for_each(|name| names.push_front(name.as_os_str().to_owned()));
                continue;
            }
            None if names.is_empty() => return Ok((at, name)),
            None => {}
        }
        let below = match (openat(&at, &name, OPEN, Mode::empty()), &mut made) {
            (Err(Errno::NOENT), Some(made)) => {
                let above = at.try_clone().map_err(|source| Error::Write { path: path.to_owned(), source })?;
                make(above, &name, made).map_err(fail)?;
                openat(&at, &name, OPEN, Mode::empty()).map_err(fail)?
            }
            (below, _) => below.map_err(fail)?,
        };
        at = below;
        reached.push(name);
    }
    Ok((at, ".".into()))
}

/// Creates a folder and notes it, unless there is one. A link in its place is not followed.
pub fn make(above: OwnedFd, name: &OsStr, made: &mut Vec<Made>) -> Result<(), Errno> {
    match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => {
            made.push((above, name.to_owned()));
            Ok(())
        }
        Err(Errno::EXIST) => openat(&above, name, OPEN, Mode::empty()).map(drop),
        Err(errno) => Err(errno),
    }
}

/// Returns target and owner of a symbolic link; `None` if it is no link, or does not exist. A link of /proc to what a process has open has no
/// target: its text may be the name of something else.
fn link(folder: &OwnedFd, name: &OsStr) -> Result<Option<(Option<PathBuf>, u32)>, Errno> {
    let opened = match openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let status = fstat(&opened)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    if fstatfs(&opened)?.f_type == PROC_SUPER_MAGIC {
        return Ok(Some((None, status.st_uid)));
    }
    let target = OsString::from_vec(readlinkat(&opened, "", Vec::new())?.into_bytes());
    Ok(Some((Some(target.into()), status.st_uid)))
}
