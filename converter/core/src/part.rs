//! Temporary files and folders next to an output. They get its name when they are complete.
//!
//! Whoever writes one holds a lock on it (flock). What a killed run has left has no lock, so the next run that writes to the folder removes it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile, TempDir};

use crate::error::{Error, Result};
use crate::output_path::{folder, refuse_foreign_links};

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
pub struct Part(NamedTempFile);

impl Part {
    /// Creates a file in the folder of `path`, so that the rename stays in one file system.
    pub fn create(path: &Path, access: Access) -> io::Result<Self> {
        let mode = match access {
            Access::Usual => 0o666,
            Access::Private => 0o600,
        };
        let prefix = prefix(path);
        for _ in 0..TRIES {
            let file = builder(&prefix).permissions(Permissions::from_mode(mode)).tempfile_in(folder(path))?;
            if lock(file.as_file())? {
                return Ok(Self(file));
            }
        }
        Err(io::Error::other("another process removes temporary files"))
    }

    /// Its path until it is persisted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the file its name.
    pub fn persist(self, path: &Path) -> Result<()> {
        self.0.persist(path).map(drop).map_err(|e| Error::Write { path: path.to_owned(), source: e.error })
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

/// A folder under a temporary name. It is removed with its files unless `persist` renames it.
pub struct PartFolder {
    folder: TempDir,
    _lock: File,
}

impl PartFolder {
    /// Creates a folder next to the future `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let prefix = prefix(path);
        for _ in 0..TRIES {
            let folder = builder(&prefix).permissions(Permissions::from_mode(0o777)).tempdir_in(folder(path))?;
            let opened = File::open(folder.path());
            if let Ok(opened) = opened
                && lock(&opened)?
            {
                return Ok(Self { folder, _lock: opened });
            }
        }
        Err(io::Error::other("another process removes temporary folders"))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its name. Nothing but an empty folder may have it.
    pub fn persist(mut self, path: &Path) -> Result<()> {
        fs::rename(self.folder.path(), path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        self.folder.disable_cleanup(true);
        Ok(())
    }
}

fn builder(prefix: &str) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).suffix(SUFFIX).rand_bytes(RANDOM_CHARS);
    builder
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

/// Folders that did not exist before. They are removed again if they are empty when this is dropped.
pub struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Creates a folder and the missing ones above it. As root, it makes nothing through a link of another user.
    pub fn create(folder: &Path) -> Result<Self> {
        let mut created = Self(Vec::new());
        created.add(folder)?;
        Ok(created)
    }

    /// Creates one more folder.
    pub fn add(&mut self, folder: &Path) -> Result<()> {
        refuse_foreign_links(folder)?;
        let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let missing: Vec<_> = missing.map(Path::to_owned).collect();
        let fail = |source| Error::Write { path: folder.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o777).create(folder).map_err(fail)?;
        // Those below come first.
        self.0.splice(0..0, missing);
        Ok(())
    }

    /// Keeps the folders, also empty ones.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}
