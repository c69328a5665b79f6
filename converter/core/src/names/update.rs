//! Updates, which bring a copy of a `Names` up to date: the names that the original has and the copy lacks.

use super::Names;
use super::passing::FIRST_ID;
use super::table::Table;

/// How far the names of a `Names` were written to updates.
#[derive(Debug)]
pub struct Copied {
    lasting: usize,
    /// The next passing id.
    passing: u32,
    forgotten: u64,
}

impl Default for Copied {
    fn default() -> Self {
        Self { lasting: 0, passing: FIRST_ID, forgotten: 0 }
    }
}

#[derive(Debug, Default)]
pub struct Update {
    lasting: Table,
    passing: Table,
    /// The original has forgotten passing names, so `passing` holds all that it still has and replaces those of the copy. The first of them have
    /// the ids in `kept`, the others the ids from `first_new` on.
    replaces: bool,
    kept: Vec<u32>,
    first_new: u32,
}

impl Update {
    /// Removes all names and keeps the memory.
    pub fn clear(&mut self) {
        self.lasting.clear();
        self.passing.clear();
        self.kept.clear();
        self.replaces = false;
    }
}

impl Names {
    /// Whether names were forgotten since the last update. The next one removes them from the copy, so rows that refer to them must be written
    /// before it is applied.
    #[inline]
    pub fn has_forgotten(&self, copied: &Copied) -> bool {
        self.passing.forgotten != copied.forgotten
    }

    /// Adds the names that are new since the last call to an update. The update must be empty if names were forgotten.
    #[inline]
    pub fn add_new_to(&self, update: &mut Update, copied: &mut Copied) {
        if copied.lasting < self.lasting.len() {
            update.lasting.append(&self.lasting, copied.lasting);
            copied.lasting = self.lasting.len();
        }
        if copied.passing != self.passing.next_id() || self.has_forgotten(copied) {
            self.add_passing_to(update, copied);
        }
    }

    fn add_passing_to(&self, update: &mut Update, copied: &mut Copied) {
        let passing = &self.passing;
        if self.has_forgotten(copied) {
            update.passing.append(&passing.table, 0);
            update.kept.extend_from_slice(&passing.kept);
            (update.replaces, update.first_new) = (true, passing.first_new);
        } else {
            let from = passing.kept.len() + (copied.passing - passing.first_new) as usize;
            update.passing.append(&passing.table, from);
        }
        (copied.passing, copied.forgotten) = (passing.next_id(), passing.forgotten);
    }

    /// Takes the names of an update. They can be read by id, but not found.
    pub fn apply(&mut self, update: &Update) {
        self.lasting.append(&update.lasting, 0);
        if update.replaces {
            self.passing.table.clear();
            self.passing.kept.clone_from(&update.kept);
            self.passing.first_new = update.first_new;
        }
        self.passing.table.append(&update.passing, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NameId;

    #[test]
    fn a_copy_has_the_names_of_the_original_by_their_ids() {
        let (mut names, mut copy) = (Names::default(), Names::default());
        let (mut update, mut copied) = (Update::default(), Copied::default());
        let mut known: Vec<(NameId, Vec<u8>)> = Vec::new();
        for step in 0..40u32 {
            for number in 0..step % 4 {
                let text = format!("{step} {number}").into_bytes();
                let lasts = (step + number) % 3 == 0;
                known.push((if lasts { names.intern(&text) } else { names.intern_passing(&text) }, text));
            }
            if step % 5 == 4 {
                // Every second passing name is still in use, in an order that is not that of the ids.
                let mut at = 0;
                known.retain(|(id, _)| {
                    at += 1;
                    !id.is_passing() || at % 2 == 0
                });
                names.forget(|in_use| known.iter().rev().for_each(|(id, _)| in_use(*id)));
            }
            // Some updates hold the names of several steps.
            if step % 3 == 0 || names.has_forgotten(&copied) {
                copy.apply(&update);
                update.clear();
            }
            names.add_new_to(&mut update, &mut copied);
            if step % 7 == 0 {
                copy.apply(&update);
                update.clear();
                for (id, text) in &known {
                    assert_eq!((names.get(*id), copy.get(*id)), (&text[..], &text[..]), "{step}");
                }
            }
        }
        copy.apply(&update);
        assert!(known.len() > 20);
        for (id, text) in &known {
            assert_eq!((names.get(*id), copy.get(*id)), (&text[..], &text[..]));
        }
    }
}
