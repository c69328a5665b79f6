//! Interned byte strings: comms, paths, stacks, event names. Strings of the kernel are bytes, and stay bytes until they are shown.

mod passing;
mod table;
mod update;

use std::borrow::Cow;
use std::fmt::Write as _;

use self::passing::Passing;
use self::table::Table;
pub use self::update::{Copied, Update};

/// The id of a name in one `Names`; 0 is no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    pub const NONE: Self = Self(0);

    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    fn is_passing(self) -> bool {
        self.0 >= passing::FIRST_ID
    }
}

/// An interner of byte strings.
///
/// Most names are kept: there are few of them, such as those of threads. A log may have any number of stacks and paths. These are passing
/// names: they are forgotten when nothing refers to them any more.
#[derive(Debug, Default)]
pub struct Names {
    /// The id of a name is its place + 1.
    lasting: Table,
    passing: Passing,
}

impl Names {
    /// Returns the number of names that are kept, with NONE.
    pub fn len(&self) -> usize {
        self.lasting.len() + 1
    }

    pub fn is_empty(&self) -> bool {
        self.lasting.len() == 0
    }

    /// Returns a name; an empty one for NONE.
    ///
    /// # Panics
    ///
    /// If the name was forgotten although something still refers to it. That is a fault of this program, which must not show another name.
    #[inline]
    pub fn get(&self, id: NameId) -> &[u8] {
        if id.is_passing() {
            return self.passing.get(id.0).expect("a name that is in use is not forgotten");
        }
        id.0.checked_sub(1).map_or(&[], |place| self.lasting.get(place as usize))
    }

    pub fn intern(&mut self, name: &[u8]) -> NameId {
        NameId(self.lasting.add(name) as u32 + 1)
    }

    /// Interns a stack or a path. `forget` forgets it unless its id is in use.
    pub fn intern_passing(&mut self, name: &[u8]) -> NameId {
        NameId(self.passing.intern(name))
    }

    /// Returns the id of an interned name that is kept, NONE if it is not interned.
    pub fn find(&self, name: &[u8]) -> NameId {
        self.lasting.find(name).map_or(NameId::NONE, |place| NameId(place as u32 + 1))
    }

    /// Number of bytes of the passing names.
    pub fn passing_bytes(&self) -> usize {
        self.passing.size()
    }

    /// Forgets the passing names that are not in use. `visit` calls its argument with every id that something keeps; other ids may be among
    /// them.
    pub fn forget(&mut self, visit: impl FnOnce(&mut dyn FnMut(NameId))) {
        let mut in_use = Vec::new();
        visit(&mut |id| {
            if id.is_passing() {
                in_use.push(id.0);
            }
        });
        self.passing.forget_all_but(in_use);
    }

    /// Removes all names that are kept, and keeps the memory.
    pub fn clear(&mut self) {
        self.lasting.clear();
    }

    /// Returns the name as text; NUL and bytes that are not UTF-8 appear as `\xNN`.
    pub fn text(&self, id: NameId) -> Cow<'_, str> {
        text_of(self.get(id))
    }
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
    fn passing_names_are_forgotten_unless_they_are_in_use() {
        let mut names = Names::default();
        let lasting = names.intern(b"a");
        let ids: Vec<_> = [&b"a"[..], b"", b"bc"].iter().map(|name| names.intern_passing(name)).collect();
        assert_ne!(ids[0], lasting);
        names.forget(|in_use| [ids[2], lasting, NameId::NONE].into_iter().for_each(in_use));
        assert_eq!((names.get(ids[2]), names.get(lasting), names.passing_bytes()), (&b"bc"[..], &b"a"[..], 2));
        // A name in use keeps its id; one that was forgotten gets another.
        let again: Vec<_> = [&b"a"[..], b"", b"bc"].iter().map(|name| names.intern_passing(name)).collect();
        assert_eq!(again[2], ids[2]);
        assert!(again[..2].iter().all(|id| !ids.contains(id)));
        names.forget(|in_use| [again[1], ids[0], ids[2]].into_iter().for_each(in_use));
        assert_eq!((names.get(again[1]), names.get(ids[2]), names.passing_bytes()), (&b""[..], &b"bc"[..], 2));
    }

    #[test]
    #[should_panic(expected = "in use")]
    fn a_forgotten_name_cannot_be_read() {
        let mut names = Names::default();
        let id = names.intern_passing(b"a");
        names.forget(|_| {});
        names.intern_passing(b"b");
        names.get(id);
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
