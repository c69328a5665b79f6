//! The path of an output: its folder, and the symbolic links on it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The kernel follows as many links in one path.
const MAX_LINKS: usize = 40;

/// Returns the final path of a file. A symbolic link is followed, so that it is kept. The folder must exist.
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
    // With a slash at its end, a link would be its target already.
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
pub fn refuse_foreign_links(path: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // The user who has called sudo.
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse::<u32>().ok());
    match foreign_link(path, &|uid| uid == 0 || Some(uid) == caller, MAX_LINKS) {
        Some(link) => Err(Error::ForeignLink { path: path.to_owned(), link }),
        None => Ok(()),
    }
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
