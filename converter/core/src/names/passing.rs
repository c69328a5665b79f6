//! Names that are forgotten when nothing refers to them.

use super::table::Table;

/// Ids of these names begin here; lower ones are of names that are never forgotten.
pub(super) const FIRST_ID: u32 = 1 << 31;

/// Names by id. An id is never given to a second name.
#[derive(Debug)]
pub(super) struct Passing {
    /// In the order of the ids.
    pub(super) table: Table,
    /// Ids of the first names of the table: those that were in use when others were forgotten. The ids of the names behind them are
    /// `first_new` and up.
    pub(super) kept: Vec<u32>,
    pub(super) first_new: u32,
    /// How often names were forgotten.
    pub(super) forgotten: u64,
}

impl Default for Passing {
    fn default() -> Self {
        Self { table: Table::default(), kept: Vec::new(), first_new: FIRST_ID, forgotten: 0 }
    }
}

impl Passing {
    /// The id of the next name.
    pub(super) fn next_id(&self) -> u32 {
        let new = (self.table.len() - self.kept.len()) as u32;
        self.first_new.checked_add(new).expect("a log has fewer than 2^31 stacks and paths")
    }

    /// Number of bytes of all names.
    pub(super) fn size(&self) -> usize {
        self.table.size()
    }

    /// `None` if the name was forgotten.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let place = match id.checked_sub(self.first_new) {
            Some(offset) => Some(self.kept.len() + offset as usize).filter(|&place| place < self.table.len()),
            None => self.kept.binary_search(&id).ok(),
        };
        place.map(|place| self.table.get(place))
    }

    fn id(&self, place: usize) -> u32 {
        match place.checked_sub(self.kept.len()) {
            Some(offset) => self.first_new + offset as u32,
            None => self.kept[place],
        }
    }

    pub(super) fn intern(&mut self, name: &[u8]) -> u32 {
        let place = self.table.add(name);
        self.id(place)
    }

    /// Forgets all names but those with these ids. Ids of names that were forgotten before have no effect.
    pub(super) fn forget_all_but(&mut self, mut ids: Vec<u32>) {
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|&id| self.get(id).is_some());
        let mut table = Table::default();
        for &id in &ids {
            if let Some(name) = self.get(id) {
                table.add(name);
            }
        }
        *self = Self { first_new: self.next_id(), forgotten: self.forgotten + 1, table, kept: ids };
    }
}
