//! The paths of files, for logs that record inodes and only the last parts of paths. The recorder writes the table next to its log, one JSON
//! object a line: a file, or where a file system is mounted.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::event::Dev;
use crate::recorder_tables::{Row, each_row};

/// The prefix of a path that does not begin at the root.
const REST: &[u8] = b"...";

#[derive(Clone, Debug)]
struct File {
    generation: u32,
    path: String,
    container_path: Option<String>,
}

/// Where a file system, or a folder `root` of it, is mounted.
#[derive(Clone, Debug)]
struct Mount {
    root: String,
    at: String,
}

impl Mount {
    /// Returns the path of a file with these names from the root of its file system, if it is in the mounted folder.
    fn path(&self, names: &[u8]) -> Option<Vec<u8>> {
        if !names.starts_with(b"/") {
            return None;
        }
        let rest = names.strip_prefix(self.root.trim_end_matches('/').as_bytes())?;
        match rest {
            b"" | b"/" => Some(self.at.clone().into_bytes()),
            _ if rest.starts_with(b"/") => Some([self.at.trim_end_matches('/').as_bytes(), rest].concat()),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct FileTable {
    /// By device and inode. The kernel gives the number of a deleted file to another one, with another generation.
    files: HashMap<(Dev, u64), Vec<File>>,
    mounts: HashMap<Dev, Vec<Mount>>,
}

impl FileTable {
    /// Adds the lines of a table. Fails with the number of the first line that is not one of a file or a mount, and the reason.
    pub fn add(&mut self, text: &[u8]) -> Result<(), (usize, String)> {
        each_row(text, |row| self.add_row(row))
    }

    fn add_row(&mut self, row: &Row) -> Result<(), String> {
        let dev = Dev(row.number_32("dev")?);
        if let Some(at) = row.text("mount") {
            let root = row.text("root").ok_or("it has no text `root`")?;
            self.mounts.entry(dev).or_default().push(Mount { root, at });
            return Ok(());
        }
        let (ino, generation) = (row.number("ino")?, row.number("generation")? as u32);
        // The recorder did not find the path of every file.
        let Some(path) = row.text("path") else { return Ok(()) };
        let files = self.files.entry((dev, ino)).or_default();
        files.retain(|other| other.generation != generation);
        files.push(File { generation, path, container_path: row.text("container_path") });
        Ok(())
    }

    /// The files with a known path: device, inode, generation and path.
    pub fn paths(&self) -> impl Iterator<Item = (Dev, u64, u32, &str)> {
        let mut all: Vec<_> = self.files.iter().collect();
        all.sort_unstable_by_key(|((dev, ino), _)| (dev.0, *ino));
        all.into_iter()
            .flat_map(|(key, files)| files.iter().map(move |file| (key.0, key.1, file.generation, file.path.as_str())))
    }

    fn find(&self, dev: Dev, ino: u64, generation: u32) -> Option<&File> {
        let files = self.files.get(&(dev, ino))?;
        let known = files.iter().find(|file| file.generation == generation);
        // A log without generations does not say which of several files it was.
        known.or_else(|| files.first().filter(|_| generation == 0 && files.len() == 1))
    }

    /// Returns the path of a file in the container of its thread. `names` as in `path_of`.
    pub fn container_path_of<'a>(&'a self, dev: Dev, ino: u64, generation: u32, names: &[u8]) -> Option<Cow<'a, [u8]>> {
        let file = self.find(dev, ino, generation)?;
        let path = file.container_path.as_deref()?.as_bytes();
        if self.agrees(dev, file.path.as_bytes(), names) {
            return Some(path.into());
        }
        renamed(file.path.as_bytes(), names).map(|name| in_folder_of(path, name).into())
    }

    /// Returns the path of a file. `names` is what the log says of it at the time of the event: from the root of its file system, or its
    /// last parts after `...`. The table says where the recorder found it later. A file that was renamed in between has another path there.
    pub fn path_of<'a>(&'a self, dev: Dev, ino: u64, generation: u32, names: &'a [u8]) -> Cow<'a, [u8]> {
        let found = self.find(dev, ino, generation).map(|file| file.path.as_bytes());
        if let Some(path) = found.filter(|path| self.agrees(dev, path, names)) {
            return path.into();
        }
        if let Some(path) = self.path_in_mount(dev, names) {
            return path.into();
        }
        if let Some((path, name)) = found.and_then(|path| Some((path, renamed(path, names)?))) {
            return in_folder_of(path, name).into();
        }
        if names.starts_with(b"/") { [REST, names].concat().into() } else { names.into() }
    }

    /// Returns whether a path of the table may be that of a file with these names.
    fn agrees(&self, dev: Dev, path: &[u8], names: &[u8]) -> bool {
        let known = names.strip_prefix(REST).unwrap_or(names);
        path.ends_with(known)
            || self
                .mounts
                .get(&dev)
                .is_some_and(|mounts| mounts.iter().any(|mount| mount.path(names) == Some(path.to_vec())))
    }

    fn path_in_mount(&self, dev: Dev, names: &[u8]) -> Option<Vec<u8>> {
        let mounts = self.mounts.get(&dev)?.iter().filter_map(|mount| Some((mount.root.len(), mount.path(names)?)));
        mounts.max_by_key(|(len, _)| *len).map(|(_, path)| path)
    }
}

/// Returns the name that the log has for a file, if only this name differs from the path of the table: the folders that both know are the same.
fn renamed<'a>(path: &[u8], names: &'a [u8]) -> Option<&'a [u8]> {
    let (folders, name) = split(names.strip_prefix(REST).unwrap_or(names))?;
    let (folder, _) = split(path)?;
    folder.ends_with(folders).then_some(name)
}

/// Returns the path of another file in the folder of a file.
fn in_folder_of(path: &[u8], name: &[u8]) -> Vec<u8> {
    let folder = split(path).map_or(path, |(folder, _)| folder);
    [folder, b"/", name].concat()
}

/// Splits a path into its folder and the name in it.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().rposition(|&b| b == b'/')?;
    Some((&path[..slash], &path[slash + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: Dev = Dev(254 << 20 | 16);

    fn table(text: &str) -> FileTable {
        let mut table = FileTable::default();
        table.add(text.as_bytes()).unwrap();
        table
    }

    fn path(table: &FileTable, ino: u64, generation: u32, names: &str) -> String {
        String::from_utf8(table.path_of(DEV, ino, generation, names.as_bytes()).into_owned()).unwrap()
    }

    fn container_path(table: &FileTable, ino: u64, generation: u32, names: &str) -> Option<String> {
        let found = table.container_path_of(DEV, ino, generation, names.as_bytes());
        found.map(|path| String::from_utf8(path.into_owned()).unwrap())
    }

    #[test]
    fn a_file_that_was_renamed_has_the_name_of_the_event() {
        let table = table(
            "{\"dev\":266338320,\"mount\":\"/srv\",\"root\":\"/\"}\n\
             {\"dev\":266338320,\"mount\":\"/inside\",\"root\":\"/v\"}\n\
             {\"dev\":266338320,\"ino\":7,\"generation\":1,\"path\":\"/srv/v/a/conf\",\"container_path\":\"/data/a/conf\",\"container\":\"c\"}\n",
        );
        // It was not.
        for names in ["/v/a/conf", ".../a/conf", ".../conf", ""] {
            assert_eq!(path(&table, 7, 1, names), "/srv/v/a/conf", "{names}");
            assert_eq!(container_path(&table, 7, 1, names).unwrap(), "/data/a/conf", "{names}");
        }
        // Names from the root: below the deepest folder that is mounted.
        assert_eq!(path(&table, 7, 1, "/v/a/conf.tmp"), "/inside/a/conf.tmp");
        assert_eq!(path(&table, 7, 1, "/w/conf"), "/srv/w/conf");
        assert_eq!(container_path(&table, 7, 1, "/v/a/conf.tmp").unwrap(), "/data/a/conf.tmp");
        // The last parts: in the same folder, or not known.
        assert_eq!(path(&table, 7, 1, ".../a/conf.tmp"), "/srv/v/a/conf.tmp");
        assert_eq!(container_path(&table, 7, 1, ".../a/conf.tmp").unwrap(), "/data/a/conf.tmp");
        assert_eq!(path(&table, 7, 1, ".../b/conf"), ".../b/conf");
        assert_eq!(container_path(&table, 7, 1, ".../b/conf"), None);
    }

    #[test]
    fn a_file_is_found_by_device_inode_and_generation() {
        let table = table(
            "{\"dev\":266338320,\"ino\":7,\"generation\":1,\"path\":\"/data/old\"}\n\
             {\"dev\":266338320,\"ino\":7,\"generation\":2,\"path\":\"/data/new\"}\n\n\
             {\"dev\":266338320,\"ino\":8,\"generation\":4294967295,\"path\":\"/data/one\",\"container_path\":\"/one\",\"container\":\"c\"}\n\
             {\"dev\":266338320,\"ino\":9,\"generation\":1,\"reason\":\"deleted\"}\n",
        );
        assert_eq!(path(&table, 7, 1, ".../old"), "/data/old");
        assert_eq!(path(&table, 7, 2, ".../new"), "/data/new");
        // Neither of the two, and not known which of the two.
        assert_eq!(path(&table, 7, 3, ".../x"), ".../x");
        assert_eq!(path(&table, 7, 0, ".../x"), ".../x");
        assert_eq!(path(&table, 8, 0, ""), "/data/one");
        assert_eq!(container_path(&table, 8, 0, ""), Some("/one".to_owned()));
        assert_eq!(container_path(&table, 7, 1, ".../old"), None);
        assert_eq!(path(&table, 9, 1, "/a/b"), ".../a/b");
        assert_eq!(table.path_of(Dev(1), 7, 1, b".../old").as_ref(), b".../old");
    }

    #[test]
    fn names_from_the_root_of_a_file_system_follow_its_mount() {
        let table = table(
            "{\"dev\":266338320,\"mount\":\"/mnt\",\"root\":\"/\"}\n\
             {\"dev\":266338320,\"mount\":\"/srv/db\",\"root\":\"/volumes/db\"}\n",
        );
        assert_eq!(path(&table, 1, 1, "/a/b"), "/mnt/a/b");
        assert_eq!(path(&table, 1, 1, "/volumes/db/wal"), "/srv/db/wal");
        assert_eq!(path(&table, 1, 1, "/volumes/db2/wal"), "/mnt/volumes/db2/wal");
        assert_eq!(path(&table, 1, 1, ".../b"), ".../b");
        assert_eq!(path(&table, 1, 1, ""), "");
        // The root itself.
        assert_eq!(path(&table, 1, 1, "/"), "/mnt");
        assert_eq!(path(&table, 1, 1, "/volumes/db"), "/srv/db");
    }

    #[test]
    fn a_damaged_line_is_named() {
        for (text, line, why) in [
            ("{\"dev\":1,\"mount\":\"/\",\"root\":\"/\"}\n{\"dev\":1,\"ino\":2}", 2, "it has no number `generation`"),
            ("{\"ino\":1,\"generation\":1}", 1, "it has no number `dev`"),
            ("{\"dev\":4294967296,\"ino\":1,\"generation\":1}", 1, "`dev` is out of range"),
            ("{\"dev\":1,\"mount\":\"/\"}", 1, "it has no text `root`"),
        ] {
            assert_eq!(FileTable::default().add(text.as_bytes()), Err((line, why.to_owned())), "{text}");
        }
        assert_eq!(FileTable::default().add(b"\n[1]\n").unwrap_err().0, 2);
    }
}
