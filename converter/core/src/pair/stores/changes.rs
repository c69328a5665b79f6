//! Who changed the blocks that a transaction of jbd2 holds.
//!
//! A handle that is closed says for how many blocks it was the first to change them in its transaction. The journal writes them in this order,
//! after a block that lists them, and after another list whenever one is full.
//!
//! One handle that is not recorded gives every block after it to somebody else. So nobody is known to have changed a block until the commit
//! has ended, and then only if the blocks that it wrote are as many as the handles have changed, and the lists that these need.

use std::collections::{BTreeMap, VecDeque};

use super::files::Writers;
use crate::names::NameId;
use crate::rows::Bio;

/// Transactions of a journal that are kept. It has one that commits, and one that runs.
const MAX_TRANSACTIONS: usize = 4;

/// Bytes of an entry of a list where blocks have checksums and long addresses, as `mke2fs` makes them. With shorter ones a commit needs fewer
/// lists, so that their number shows it.
const LIST_ENTRY_BYTES: u64 = 16;

/// Entries that have no room in a list: its head and the number of the file system take the bytes of nearly two, and the journal begins another
/// list before this one is full.
const LIST_SPARE_ENTRIES: u64 = 3;

/// The blocks of the transactions of one journal.
#[derive(Debug, Default)]
pub(in crate::pair) struct Changes {
    by_transaction: BTreeMap<u64, Transaction>,
}

/// The blocks of a transaction: those that were changed, and those that its commit has written.
#[derive(Debug, Default)]
struct Transaction {
    /// Who changed the blocks that are not written yet, and how many each.
    changers: VecDeque<(Writers, u64)>,
    changed: u64,
    lists: u64,
    listed: u64,
    /// How many a list has room for. 0 until the first list is written.
    room: u64,
    /// The bios of blocks, each with who changed it.
    bios: BTreeMap<u64, Writers>,
    /// The rows of these that are complete.
    rows: Vec<Bio>,
}

impl Changes {
    /// A handle of a transaction, closed by this program, was the first to change so many blocks.
    pub(in crate::pair) fn add(&mut self, transaction: u64, changer: Writers, blocks: u64) {
        let of_transaction = self.by_transaction.entry(transaction).or_default();
        of_transaction.changed = of_transaction.changed.saturating_add(blocks);
        match of_transaction.changers.back_mut() {
            Some((last, sum)) if *last == changer => *sum = sum.saturating_add(blocks),
            _ => of_transaction.changers.push_back((changer, blocks)),
        }
        if self.by_transaction.len() > MAX_TRANSACTIONS {
            // A commit that has not ended needs its blocks.
            let mut unwritten = self.by_transaction.iter().filter(|(_, known)| known.bios.is_empty());
            let oldest = unwritten.next().map(|(transaction, _)| *transaction);
            oldest.map(|oldest| self.by_transaction.remove(&oldest));
        }
    }

    /// The commit of a transaction writes its next block, by a bio of this size. The transaction does not matter if no handle of it is known.
    pub(in crate::pair) fn write(&mut self, transaction: u64, bio_id: u64, bytes: u64) {
        if let Some(of_transaction) = self.by_transaction.get_mut(&transaction) {
            let changer = of_transaction.next_changer(bytes);
            of_transaction.bios.insert(bio_id, changer);
        }
    }

    /// Takes the row of a bio until the commit has ended, if it is one of its blocks. Returns whether it does.
    pub(in crate::pair) fn hold(&mut self, transaction: u64, row: &Bio) -> bool {
        let of_transaction = self.by_transaction.get_mut(&transaction);
        let Some(of_transaction) = of_transaction.filter(|known| known.bios.contains_key(&row.bio_id)) else {
            return false;
        };
        of_transaction.rows.push(row.clone());
        true
    }

    /// The commit of a transaction has ended. Returns the rows of its blocks, with who changed each, if that is known.
    pub(in crate::pair) fn end(&mut self, transaction: u64) -> Vec<Bio> {
        let Some(mut ended) = self.by_transaction.remove(&transaction) else { return Vec::new() };
        if ended.is_whole() {
            for row in &mut ended.rows {
                if let Some(changer) = ended.bios.get(&row.bio_id) {
                    (row.writers, row.writers_cgroup) = (changer.names, changer.cgroups);
                }
            }
        }
        ended.rows
    }

    pub(in crate::pair) fn holds_rows(&self) -> bool {
        self.by_transaction.values().any(|known| !known.rows.is_empty())
    }

    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.by_transaction.values().flat_map(|known| &known.rows).for_each(|row| f(row.path));
    }
}

impl Transaction {
    /// Who changed the block that the journal writes next. `NONE` for a list, and where it is not known.
    fn next_changer(&mut self, bytes: u64) -> Writers {
        if self.lists == 0 || self.listed == self.room {
            self.room = (bytes / LIST_ENTRY_BYTES).saturating_sub(LIST_SPARE_ENTRIES).max(1);
            self.lists += 1;
            self.listed = 0;
            return Writers::default();
        }
        self.listed += 1;
        let Some((changer, left)) = self.changers.front_mut() else { return Writers::default() };
        let changer = *changer;
        *left -= 1;
        if *left == 0 {
            self.changers.pop_front();
        }
        changer
    }

    /// Whether the commit has written what the handles changed, and nothing else.
    fn is_whole(&self) -> bool {
        self.lists > 0
            && self.lists == self.changed.div_ceil(self.room)
            && self.bios.len() as u64 == self.changed.saturating_add(self.lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    const BLOCK_BYTES: u64 = 1024;
    /// After 61 entries, `1024 - 12 - 16 - 16 * 61` bytes are left of a block of 1024, and below `16 + 16 + 4` the kernel begins another list.
    const ROOM: u64 = 61;

    fn changers() -> [Writers; 2] {
        let mut names = Names::default();
        [b"db".as_slice(), b"ls"].map(|name| Writers { names: names.intern(name), ..Writers::default() })
    }

    /// Who changed the blocks of transaction 7 in its commit, which writes so many.
    fn ended(changes: &mut Changes, blocks: u64) -> Vec<NameId> {
        for bio_id in 1..=blocks {
            changes.write(7, bio_id, BLOCK_BYTES);
        }
        for bio_id in 1..=blocks {
            assert!(changes.hold(7, &Bio::new(bio_id, 0, 0)));
        }
        changes.end(7).iter().map(|row| row.writers).collect()
    }

    #[test]
    fn blocks_come_in_the_order_of_their_handles_after_the_list_of_them() {
        let [db, other] = changers();
        let mut changes = Changes::default();
        for (changer, blocks) in [(db, 1), (db, 1), (other, 2), (db, 1)] {
            changes.add(7, changer, blocks);
        }
        changes.add(8, other, 1);
        let (db, other) = (db.names, other.names);
        assert_eq!(ended(&mut changes, 6), [NameId::NONE, db, db, other, other, db]);
    }

    #[test]
    fn another_list_follows_when_one_is_full() {
        let [db, other] = changers();
        for (blocks, lists) in [(ROOM, 1), (ROOM + 1, 2), (2 * ROOM, 2), (2 * ROOM + 1, 3)] {
            let mut changes = Changes::default();
            changes.add(7, db, ROOM);
            if blocks > ROOM {
                changes.add(7, other, blocks - ROOM);
            }
            let found = ended(&mut changes, blocks + lists);
            let count = |of: NameId| found.iter().filter(|&&name| name == of).count() as u64;
            assert_eq!((count(db.names), count(other.names), count(NameId::NONE)), (ROOM, blocks - ROOM, lists));
            assert!(found.get(ROOM as usize + 1).is_none_or(|name| *name == NameId::NONE), "the second list");
        }
    }

    #[test]
    fn nobody_is_known_to_have_changed_a_block_if_a_handle_or_a_block_is_missing() {
        let [db, other] = changers();
        // 3 and 2 blocks were changed, so the commit writes 6. A handle of 3 is missing, or of 2, or a block that the commit wrote.
        for (handles, blocks) in [(vec![(other, 2)], 6), (vec![(db, 3)], 6), (vec![(db, 3), (other, 2)], 5)] {
            let mut changes = Changes::default();
            for (changer, blocks) in handles {
                changes.add(7, changer, blocks);
            }
            assert_eq!(ended(&mut changes, blocks), vec![NameId::NONE; blocks as usize]);
        }
    }

    #[test]
    fn only_the_newest_transactions_are_kept_beside_those_that_are_being_written() {
        let [db, _] = changers();
        let mut changes = Changes::default();
        changes.add(1, db, 1);
        changes.write(1, 1, BLOCK_BYTES);
        for transaction in 2..100 {
            changes.add(transaction, db, 1);
        }
        assert_eq!(changes.by_transaction.keys().copied().collect::<Vec<_>>(), [1, 97, 98, 99]);
    }
}
