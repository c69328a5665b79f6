//! Interned byte strings: comms, paths, stacks, event names. Strings of the kernel are bytes, and stay bytes until they are shown.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The id of a name in one `Names`; 0 is no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    pub const NONE: Self = Self(0);

    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// An interner of byte strings. Ids are 1, 2, 3... in the order of first use.
#[derive(Debug)]
pub struct Names {
    bytes: Vec<u8>,
    /// End of each name in `bytes`; `ends[0]` belongs to NONE, which is empty.
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: FixedState,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: vec![0],
            table: HashTable::new(),
            // A fixed seed, so that output does not differ from run to run.
            hasher: FixedState::with_seed(0x5359_4e43),
        }
    }
}

impl Names {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.len() == 1
    }

    pub fn get(&self, id: NameId) -> &[u8] {
        slice(&self.bytes, &self.ends, id.0)
    }

    pub fn intern(&mut self, name: &[u8]) -> NameId {
        let Self { bytes, ends, table, hasher } = self;
        let hash = hasher.hash_one(name);
        let entry =
            table.entry(hash, |&id| slice(bytes, ends, id) == name, |&id| hasher.hash_one(slice(bytes, ends, id)));
        match entry {
            hashbrown::hash_table::Entry::Occupied(found) => NameId(*found.get()),
            hashbrown::hash_table::Entry::Vacant(free) => {
                let id = ends.len() as u32;
                free.insert(id);
                bytes.extend_from_slice(name);
                ends.push(bytes.len());
                NameId(id)
            }
        }
    }

    /// Appends the names of another interner, from the id `from` on. They are not deduplicated; they can be read by id but not found by name.
    pub fn append(&mut self, other: &Self, from: usize) {
        let Some(&[begin, ..]) = other.ends.get(from - 1..) else { return };
        let moved = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes[begin..]);
        self.ends.extend(other.ends[from..].iter().map(|end| end - begin + moved));
    }

    /// Returns the id of an interned name, NONE if it is not interned.
    pub fn find(&self, name: &[u8]) -> NameId {
        let hash = self.hasher.hash_one(name);
        let found = self.table.find(hash, |&id| slice(&self.bytes, &self.ends, id) == name);
        found.map_or(NameId::NONE, |&id| NameId(id))
    }

    /// Removes all names and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.truncate(1);
        self.table.clear();
    }

    /// Returns the name as text; NUL and bytes that are not UTF-8 appear as `\xNN`.
    pub fn text(&self, id: NameId) -> Cow<'_, str> {
        text_of(self.get(id))
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    if id == 0 { &[] } else { &bytes[ends[id - 1]..ends[id]] }
}

/// Returns whether bytes are UTF-8 without NUL, which SQLite and others take for the end of a string.
pub fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && memchr::memchr(0, bytes).is_none()
}

/// Returns bytes as text; NUL and those that are not UTF-8 appear as `\xNN`.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(0, bytes).is_none()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\0', "\\x00"));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_bytes_same_id() {
        let mut names = Names::default();
        let a = names.intern(b"a");
        let b = names.intern(b"b");
        assert_ne!(a, b);
        assert_eq!(names.intern(b"a"), a);
        assert_eq!(names.get(b), b"b");
        assert_eq!(names.get(NameId::NONE), b"");
    }

    #[test]
    fn appended_names_keep_their_order() {
        let (mut from, mut to) = (Names::default(), Names::default());
        for name in [&b"a"[..], b"", b"bc", b"d"] {
            from.intern(name);
        }
        to.append(&from, 1);
        from.intern(b"ef");
        to.append(&from, 5);
        to.append(&from, 6);
        assert_eq!(to.len(), from.len());
        for id in 0..6 {
            assert_eq!(to.get(NameId(id)), from.get(NameId(id)));
        }
        let mut rest = Names::default();
        rest.append(&from, 3);
        assert_eq!((rest.len(), rest.get(NameId(1)), rest.get(NameId(3))), (4, &b"bc"[..], &b"ef"[..]));
    }

    #[test]
    fn the_empty_name_has_an_id() {
        let mut names = Names::default();
        assert!(names.intern(b"").is_some());
    }

    #[test]
    fn invalid_utf8_is_shown_as_hex() {
        assert_eq!(text_of(b"caf\xc3\xa9 \xff\xfe!"), "caf\u{e9} \\xff\\xfe!");
        assert_eq!(text_of(b"a\0b"), "a\\x00b");
    }
}
