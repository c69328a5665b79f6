//! Distinct byte strings in one buffer.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Distinct byte strings. Each has a place: 0, 1, 2... in the order in which they were added.
#[derive(Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// End of each string in `bytes`.
    ends: Vec<usize>,
    places: HashTable<u32>,
    hasher: FixedState,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            places: HashTable::new(),
            // A fixed seed, so that output does not differ from run to run.
            hasher: FixedState::with_seed(0x5359_4e43),
        }
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of bytes of all strings.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> &[u8] {
        slice(&self.bytes, &self.ends, place)
    }

    /// Returns the place of a string, which is added if it is new.
    pub(super) fn add(&mut self, text: &[u8]) -> usize {
        let Self { bytes, ends, places, hasher } = self;
        let hash = hasher.hash_one(text);
        let is_text = |&place: &u32| slice(bytes, ends, place as usize) == text;
        match places.entry(hash, is_text, |&place| hasher.hash_one(slice(bytes, ends, place as usize))) {
            Entry::Occupied(found) => *found.get() as usize,
            Entry::Vacant(free) => {
                let place = ends.len();
                free.insert(place as u32);
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
                place
            }
        }
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(text);
        self.places.find(hash, |&place| self.get(place as usize) == text).map(|&place| place as usize)
    }

    /// Appends the strings of another table from a place on. They can be read by their place, but not found.
    pub(super) fn append(&mut self, other: &Self, from: usize) {
        let begin = from.checked_sub(1).map_or(0, |last| other.ends[last]);
        let moved = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes[begin..]);
        self.ends.extend(other.ends[from..].iter().map(|end| end - begin + moved));
    }

    /// Removes all strings and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.places.clear();
    }
}

#[inline]
fn slice<'a>(bytes: &'a [u8], ends: &[usize], place: usize) -> &'a [u8] {
    let begin = if place == 0 { 0 } else { ends[place - 1] };
    &bytes[begin..ends[place]]
}
