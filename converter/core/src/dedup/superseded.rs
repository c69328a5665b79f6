//! Bios that only a log without authority reports. They are counted, not used.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::authority::Standing;
use crate::event::Dev;

/// Two logs that report the same bio report it within this time.
const SAME_BIO_NS: i64 = 1_000_000_000;

/// A log without authority, and a device and sector.
type Key = (usize, Dev, i64);

/// Compares, for each log without authority, the submits at a sector with those of the authoritative log.
#[derive(Debug, Default)]
pub(super) struct SupersededBios {
    /// Submits of the authoritative log minus those of the other one.
    balance: HashMap<Key, i32, FixedState>,
    recent: VecDeque<(i64, Key, i32)>,
}

impl SupersededBios {
    /// Registers a submit that one of `log_count` logs reports. Returns the number of bios that are now known to be superseded.
    pub(super) fn submit(
        &mut self,
        (dev, sector): (Dev, i64),
        ts: i64,
        log: usize,
        standing: Standing,
        log_count: usize,
    ) -> u64 {
        let (others, by) = match standing {
            Standing::Authoritative => (0..log_count, 1),
            Standing::Duplicate => (log..log + 1, -1),
        };
        for other in others.filter(|&other| standing == Standing::Duplicate || other != log) {
            let key = (other, dev, sector);
            *self.balance.entry(key).or_insert(0) += by;
            self.recent.push_back((ts, key, by));
        }
        self.settle(ts.saturating_sub(SAME_BIO_NS))
    }

    /// Settles all submits up to a time. Returns the number of bios that only a log without authority has reported.
    pub(super) fn settle(&mut self, until: i64) -> u64 {
        let mut superseded = 0;
        while let Some(&(ts, key, by)) = self.recent.front() {
            if ts > until {
                break;
            }
            self.recent.pop_front();
            let Some(left) = self.balance.get_mut(&key) else { continue };
            // A balance of this sign has no counterpart, and this is its oldest submit.
            if left.signum() == by {
                *left -= by;
                superseded += u64::from(by < 0);
            }
            if *left == 0 {
                self.balance.remove(&key);
            }
        }
        superseded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bios_that_only_a_log_without_authority_reports_are_counted() {
        use Standing::{Authoritative, Duplicate};
        let mut bios = SupersededBios::default();
        let mut submit = |sector, ts, log, standing| bios.submit((Dev(8 << 20), sector), ts, log, standing, 3);
        // Three logs report sector 1, in any order; two report sector 2; only the authoritative log reports sector 3.
        assert_eq!(submit(1, 5, 1, Duplicate) + submit(1, 7, 0, Authoritative) + submit(1, 9, 2, Duplicate), 0);
        assert_eq!(submit(2, 10, 0, Authoritative) + submit(2, 11, 1, Duplicate) + submit(3, 12, 0, Authoritative), 0);
        // Only a log without authority reports sector 4, twice.
        assert_eq!(submit(4, 13, 2, Duplicate) + submit(4, 14, 2, Duplicate), 0);
        assert_eq!(submit(4, 13 + SAME_BIO_NS, 1, Duplicate), 1);
        assert_eq!(bios.settle(i64::MAX), 2);
        assert_eq!(bios.balance.len(), 0);
    }
}
