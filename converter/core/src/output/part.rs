//! Temporary files and folders next to an output. They get its name when they are complete.
//!
//! Whoever writes one holds a lock on it (flock). A killed run leaves its file without a lock, so the next run that writes to the folder removes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::output::path::{self, Made, folder, open_above};

/// A name is `.NAME.syncline-XXXXXX.part`.
const MARKER: &str = ".syncline-";
const SUFFIX: &str = ".part";
const RANDOM_CHARS: usize = 6;
/// Longest part of NAME that is used, so that the whole is a valid file name.
const NAME_CHARS: usize = 40;
/// A new file may be locked and removed by another run before it is locked here.
const TRIES: usize = 100;

/// Who can read a new file.
#[derive(Clone, Copy)]
pub enum Access {
    /// Whoever the umask allows.
    Usual,
    /// The user.
    Private,
}

/// A file under a temporary name. It is removed unless `persist` renames it.
pub struct Part {
    file: File,
    place: Place,
}

/// A file or folder that has a temporary name in an open folder.
struct Place {
    folder: OwnedFd,
    /// `None` once it has its name.
    temporary: Option<OsString>,
    last: OsString,
    is_folder: bool,
}

impl Place {
    /// Gives it its name.
    fn persist(mut self) -> Result<(), Errno> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        renameat(&self.folder, temporary, &self.folder, &self.last)?;
        self.temporary = None;
        Ok(())
    }

    /// The folder of it, whatever happens to its name.
    fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(temporary) = &self.temporary else { return };
        if self.is_folder {
            let _ = remove_folder(&self.path().join(temporary));
        } else {
            let _ = unlinkat(&self.folder, temporary, AtFlags::empty());
        }
    }
}

impl Part {
    /// Creates a file in the folder of `path`, so that the rename stays in one file system.
    pub fn create(path: &Path, access: Access) -> Result<Self> {
        let mode = match access {
            Access::Usual => 0o666,
            Access::Private => 0o600,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, place) = temporary(path, |folder, name| openat(folder, name, flags, Mode::from_raw_mode(mode)))?;
        Ok(Self { file, place })
    }

    /// Its path until it is persisted, through the open folder.
    pub fn path(&self) -> PathBuf {
        self.place.path().join(self.place.temporary.as_deref().unwrap_or_default())
    }

    /// Gives the file its name.
    pub fn persist(self, path: &Path) -> Result<()> {
        self.place.persist().map_err(|errno| Error::Write { path: path.to_owned(), source: errno.into() })
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A folder under a temporary name. It is removed with its files unless `persist` renames it.
pub struct PartFolder {
    path: PathBuf,
    place: Place,
    _lock: File,
}

impl PartFolder {
    /// Creates a folder next to the future `path`.
    pub fn create(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (lock, mut place) = temporary(path, |folder, name| {
            mkdirat(folder, name, Mode::from_raw_mode(0o777))?;
            openat(folder, name, flags, Mode::empty())
        })?;
        place.is_folder = true;
        let name = place.temporary.as_deref().unwrap_or_default();
        Ok(Self { path: folder(path).join(name), place, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder its name. Nothing but an empty folder may have it.
    pub fn persist(self, path: &Path) -> Result<()> {
        self.place.persist().map_err(|errno| Error::Write { path: path.to_owned(), source: errno.into() })
    }
}

/// Makes something with a temporary name in the folder of `path`, and locks it.
fn temporary(path: &Path, create: impl Fn(&OwnedFd, &OsStr) -> Result<OwnedFd, Errno>) -> Result<(File, Place)> {
    let fail = |source| Error::Write { path: path.to_owned(), source };
    let (folder, last) = open_above(path, None)?;
    let mut place = Place { folder, temporary: None, last, is_folder: false };
    let prefix = prefix(path);
    for _ in 0..TRIES {
        let name = OsString::from(format!("{prefix}{}{SUFFIX}", random().map_err(fail)?));
        let file = match create(&place.folder, &name) {
            // The file is that of another run, or one removed it before it was opened.
            Err(Errno::EXIST | Errno::NOENT) => continue,
            file => File::from(file.map_err(|errno| fail(errno.into()))?),
        };
        if lock(&file).map_err(fail)? {
            place.temporary = Some(name);
            return Ok((file, place));
        }
    }
    Err(fail(io::Error::other("another process removes temporary files")))
}

/// Returns characters that no other run chooses.
fn random() -> io::Result<String> {
    const CHARS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; RANDOM_CHARS];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| char::from(CHARS[usize::from(byte % 32)])).collect())
}

fn prefix(path: &Path) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().take(NAME_CHARS).collect();
    format!(".{name}{MARKER}")
}

/// Locks a new file or folder. Returns whether it still exists.
fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
        Err(Errno::WOULDBLOCK) => Ok(false),
        // A file system without locks. There, nobody else gets the lock and removes it.
        Err(_) => Ok(true),
    }
}

/// Removes what killed runs of this user have left in a folder. Ignores errors: the caller reports those that matter to it.
pub fn remove_dead(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(is_part) {
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn is_part(name: &str) -> bool {
    let Some((start, random)) = name.strip_suffix(SUFFIX).and_then(|rest| rest.rsplit_once(MARKER)) else {
        return false;
    };
    start.starts_with('.') && random.len() == RANDOM_CHARS && random.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    let meta = path.symlink_metadata()?;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || !(meta.is_file() || meta.is_dir()) {
        return Ok(());
    }
    // NFS locks only what is open for writing, which a folder cannot be.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).write(meta.is_file()).custom_flags(flags.bits() as i32).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if meta.is_dir() { remove_folder(path) } else { fs::remove_file(path) }
}

/// Removes a folder that holds only tables and their temporary files.
fn remove_folder(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if is_part(&name) || (name.starts_with("syncline_") && name.ends_with(".parquet")) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// Folders that did not exist before, the ones above first. They are removed again if they are empty when this is dropped.
pub struct CreatedFolders(Vec<Made>);

impl CreatedFolders {
    /// Creates a folder and the missing ones above it. As root, it makes nothing through a link of another user.
    pub fn create(folder: &Path) -> Result<Self> {
        let mut created = Self(Vec::new());
        created.add(folder)?;
        Ok(created)
    }

    /// Creates one more folder.
    pub fn add(&mut self, folder: &Path) -> Result<()> {
        let (above, name) = open_above(folder, Some(&mut self.0))?;
        let fail = |errno: Errno| Error::Write { path: folder.to_owned(), source: errno.into() };
        path::make(above, &name, &mut self.0).map_err(fail)
    }

    /// Keeps the folders, also empty ones.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for (above, name) in self.0.iter().rev() {
            let _ = unlinkat(above, name, AtFlags::REMOVEDIR);
        }
    }
}
