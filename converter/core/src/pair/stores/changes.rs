//! Who changed the blocks that a transaction of jbd2 holds.
//!
//! A handle that is closed says for how many blocks it was the first to change them in its transaction. The journal writes them in this order,
//! after a block that lists them.

use std::collections::{BTreeMap, VecDeque};

use super::files::Writers;

/// Transactions of a journal that are kept. It has one that commits, and one that runs.
const MAX_TRANSACTIONS: usize = 4;

/// The blocks of the transactions of one journal.
#[derive(Debug, Default)]
pub(in crate::pair) struct Changes {
    by_transaction: BTreeMap<u64, Blocks>,
}

/// The blocks of a transaction that the journal has not written.
#[derive(Debug, Default)]
struct Blocks {
    is_listed: bool,
    /// Who changed them, and how many each.
    changers: VecDeque<(Writers, u64)>,
}

impl Changes {
    /// A handle of a transaction, closed by this program, was the first to change so many blocks.
    pub(in crate::pair) fn add(&mut self, transaction: u64, changer: Writers, blocks: u64) {
        let changers = &mut self.by_transaction.entry(transaction).or_default().changers;
        match changers.back_mut() {
            Some((last, sum)) if *last == changer => *sum = sum.saturating_add(blocks),
            _ => changers.push_back((changer, blocks)),
        }
        while self.by_transaction.len() > MAX_TRANSACTIONS {
            self.by_transaction.pop_first();
        }
    }

    /// Returns who changed the block of a transaction that the journal writes next. `NONE` for the list, and if it is not known.
    pub(in crate::pair) fn next_block(&mut self, transaction: u64) -> Writers {
        let Some(blocks) = self.by_transaction.get_mut(&transaction) else { return Writers::default() };
        if !std::mem::replace(&mut blocks.is_listed, true) {
            return Writers::default();
        }
        let Some((changer, left)) = blocks.changers.front_mut() else { return Writers::default() };
        let changer = *changer;
        *left -= 1;
        if *left == 0 {
            blocks.changers.pop_front();
        }
        changer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn blocks_come_in_the_order_of_their_handles_after_the_list_of_them() {
        let mut names = Names::default();
        let [db, other] = [b"db", b"ls"].map(|name| Writers { names: names.intern(name), ..Writers::default() });
        let mut changes = Changes::default();
        for (changer, blocks) in [(db, 1), (db, 1), (other, 2), (db, 1)] {
            changes.add(7, changer, blocks);
        }
        changes.add(8, other, 1);
        let none = Writers::default();
        let written: Vec<Writers> = (0..7).map(|_| changes.next_block(7)).collect();
        assert_eq!(written, [none, db, db, other, other, db, none]);
        assert_eq!([9, 8, 8].map(|transaction| changes.next_block(transaction)), [none, none, other]);
    }

    #[test]
    fn only_the_newest_transactions_are_kept() {
        let mut names = Names::default();
        let db = Writers { names: names.intern(b"db"), ..Writers::default() };
        let mut changes = Changes::default();
        (1..=5).for_each(|transaction| changes.add(transaction, db, 1));
        let second = |transaction| [(); 2].map(|()| changes.next_block(transaction))[1];
        assert_eq!([1, 2, 5].map(second), [Writers::default(), db, db]);
    }
}
