//! The paths of files, for logs that record inodes and only the last parts of paths. The recorder writes the table next to its log, one JSON
//! object a line: a file, or where a file system is mounted.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::event::Dev;

/// What a path that does not begin at the root begins with.
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

#[derive(Clone, Debug, Default)]
pub struct FileTable {
    /// By device and inode. The kernel gives the number of a deleted file to another one, with another generation.
    files: HashMap<(Dev, u64), Vec<File>>,
    mounts: HashMap<Dev, Vec<Mount>>,
}

impl FileTable {
    /// Adds the lines of a table. Fails with the number of the first line that is not one of a file or a mount, and the reason.
    pub fn add(&mut self, text: &[u8]) -> Result<(), (usize, String)> {
        for (number, line) in text.split(|&b| b == b'\n').enumerate() {
            if !line.trim_ascii().is_empty() {
                self.add_line(line).map_err(|why| (number + 1, why))?;
            }
        }
        Ok(())
    }

    fn add_line(&mut self, line: &[u8]) -> Result<(), String> {
        let object: Map<String, Value> = serde_json::from_slice(line).map_err(|why| why.to_string())?;
        let number = |key: &str| object.get(key).and_then(Value::as_u64).ok_or(format!("it has no number `{key}`"));
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let dev = Dev(u32::try_from(number("dev")?).map_err(|_| "`dev` is out of range")?);
        if let Some(at) = text("mount") {
            let root = text("root").ok_or("it has no text `root`")?;
            self.mounts.entry(dev).or_default().push(Mount { root, at });
            return Ok(());
        }
        let (ino, generation) = (number("ino")?, number("generation")? as u32);
        // The recorder did not find the path of every file.
        let Some(path) = text("path") else { return Ok(()) };
        let files = self.files.entry((dev, ino)).or_default();
        files.retain(|other| other.generation != generation);
        files.push(File { generation, path, container_path: text("container_path") });
        Ok(())
    }

    fn find(&self, dev: Dev, ino: u64, generation: u32) -> Option<&File> {
        let files = self.files.get(&(dev, ino))?;
        let known = files.iter().find(|file| file.generation == generation);
        // A log without generations does not say which of several files it was.
        known.or_else(|| files.first().filter(|_| generation == 0 && files.len() == 1))
    }

    /// Returns the path of a file in the container of its thread.
    pub fn container_path_of(&self, dev: Dev, ino: u64, generation: u32) -> Option<&str> {
        self.find(dev, ino, generation)?.container_path.as_deref()
    }

    /// Returns the path of a file. `names` is what the log says of it: from the root of its file system, or its last parts after `...`.
    pub fn path_of<'a>(&'a self, dev: Dev, ino: u64, generation: u32, names: &'a [u8]) -> Cow<'a, [u8]> {
        if let Some(file) = self.find(dev, ino, generation) {
            return file.path.as_bytes().into();
        }
        if !names.starts_with(b"/") {
            return names.into();
        }
        self.path_in_mount(dev, names).unwrap_or_else(|| [REST, names].concat()).into()
    }

    fn path_in_mount(&self, dev: Dev, names: &[u8]) -> Option<Vec<u8>> {
        let below = |mount: &Mount| {
            let rest = names.strip_prefix(mount.root.trim_end_matches('/').as_bytes())?;
            (rest.is_empty() || rest.starts_with(b"/")).then(|| (mount.root.len(), mount.at.clone(), rest.to_vec()))
        };
        let mounts = self.mounts.get(&dev)?.iter().filter_map(below);
        let (_, at, rest) = mounts.max_by_key(|(len, ..)| *len)?;
        Some([at.trim_end_matches('/').as_bytes(), &rest].concat())
    }
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
        assert_eq!(table.container_path_of(DEV, 8, 0), Some("/one"));
        assert_eq!(table.container_path_of(DEV, 7, 1), None);
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
