//! Which file the page cache in a bio is of, its path, and who made it dirty.

use crate::collections::Map;
use crate::event::Dev;
use crate::names::NameId;

/// Files whose path is kept, the first ones that are synced or in the recorder's table.
const MAX_FILES: usize = 1 << 16;
/// btrfs and f2fs keep metadata in the page cache of inodes with the lowest numbers. No file has them there, nor on ext4 and xfs.
const LAST_METADATA_INODE: u64 = 2;

/// The file whose page cache is in a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::pair) enum PagesOf {
    #[default]
    Nothing,
    File(Dev, u64),
    /// Several files, or one that is not recorded.
    Unknown,
}

impl PagesOf {
    /// Adds a folio. `ino` is 0 if it is not recorded.
    pub(in crate::pair) fn add(&mut self, dev: Dev, ino: u64) {
        *self = match *self {
            _ if ino <= LAST_METADATA_INODE => Self::Unknown,
            Self::Nothing => Self::File(dev, ino),
            Self::File(of, number) if (of, number) == (dev, ino) => return,
            Self::File(..) | Self::Unknown => Self::Unknown,
        };
    }

    pub(in crate::pair) fn file(self) -> Option<(Dev, u64)> {
        if let Self::File(dev, ino) = self { Some((dev, ino)) } else { None }
    }
}

/// A file by its inode number, which the kernel gives to another file once the first one is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    /// 0 if it is not recorded.
    generation: u32,
    /// The path of its last sync; `NONE` if several files had the number.
    path: NameId,
}

/// Who made a file dirty: names of processes, and their control groups. `NONE` if they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    pub names: NameId,
    pub cgroups: NameId,
}

/// Files by device and inode, as syncs and the recorder's tables show them.
#[derive(Debug, Default)]
pub struct Files {
    by_inode: Map<(Dev, u64), File>,
    writers: Map<(Dev, u64), Writers>,
}

impl Files {
    /// Takes note of a file with this path. The same number with another generation is another file. Without generations, the same number with
    /// another path may be one.
    pub fn see(&mut self, dev: Dev, ino: u64, generation: u32, path: NameId) {
        if !dev.is_known() || ino == 0 || !path.is_some() {
            return;
        }
        if let Some(file) = self.by_inode.get_mut(&(dev, ino)) {
            let is_same = if generation == 0 { file.path == path } else { file.generation == generation };
            file.path = if is_same && file.path.is_some() { path } else { NameId::NONE };
        } else if self.by_inode.len() < MAX_FILES {
            self.by_inode.insert((dev, ino), File { generation, path });
        }
    }

    /// Visits every path. The names of writers are never forgotten.
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.by_inode.values().for_each(|file| f(file.path));
    }

    /// Takes note of who made a file dirty.
    pub fn see_writers(&mut self, dev: Dev, ino: u64, writers: Writers) {
        self.writers.insert((dev, ino), writers);
    }

    /// Returns who made a file dirty.
    pub(in crate::pair) fn writers(&self, dev: Dev, ino: u64) -> Writers {
        self.writers.get(&(dev, ino)).copied().unwrap_or_default()
    }

    /// Returns the path of a file; `NONE` if it is not known, or not which of several files it is.
    pub(in crate::pair) fn path(&self, dev: Dev, ino: u64) -> NameId {
        self.by_inode.get(&(dev, ino)).map_or(NameId::NONE, |file| file.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20);

    #[test]
    fn a_bio_is_of_a_file_if_all_its_folios_are() {
        let of = |folios: &[(u32, u64)]| {
            let mut pages = PagesOf::default();
            for &(dev, ino) in folios {
                pages.add(Dev(dev), ino);
            }
            pages.file()
        };
        assert_eq!(of(&[(1, 13), (1, 13)]), Some((Dev(1), 13)));
        for other in
            [&[][..], &[(1, 13), (1, 14)], &[(1, 13), (2, 13)], &[(1, 13), (1, 0)], &[(1, 0), (1, 13)], &[(1, 1)]]
        {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_path_of_a_number_that_two_files_had_is_unknown() {
        let (old, new) = (NameId(1), NameId(2));
        let path_after = |seen: &[(u32, NameId)]| {
            let mut files = Files::default();
            for &(generation, path) in seen {
                files.see(DISK, 13, generation, path);
            }
            files.path(DISK, 13)
        };
        // It was renamed.
        assert_eq!(path_after(&[(5, old), (5, new)]), new);
        assert_eq!(path_after(&[(0, old), (0, old)]), old);
        // It was deleted and its number used again, or that cannot be excluded.
        for seen in [[(5, old), (6, new)], [(5, old), (6, old)], [(0, old), (0, new)]] {
            assert_eq!(path_after(&seen), NameId::NONE);
        }
        assert_eq!(path_after(&[(5, old), (6, new), (6, new)]), NameId::NONE);
        assert_eq!(Files::default().path(DISK, 13), NameId::NONE);
    }
}
