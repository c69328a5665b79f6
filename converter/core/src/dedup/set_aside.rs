//! Bios of the block layer that are set aside, because another log is authoritative for what their threads do. Their completions in the
//! same log complete no bio that is used, and are no losses.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::block::queue::{BlockQueue, Completion};
use crate::event::bio_flags::BioFlags;
use crate::event::place::Place;

/// How long a bio waits for its completion.
const LINGER_NS: i64 = 60_000_000_000;

#[derive(Debug, Default)]
pub(super) struct SetAsideBios {
    /// By log. The value identifies a bio.
    queues: HashMap<usize, BlockQueue<u64>, FixedState>,
    count: u64,
    last_sweep: i64,
}

impl SetAsideBios {
    /// Takes a bio that is set aside.
    pub(super) fn submit(&mut self, log: usize, target: Place, bytes: u64, flags: BioFlags, ts: i64) {
        self.count += 1;
        let queue = self.queues.entry(log).or_default();
        queue.decide(target.dev, target.sector);
        queue.queue(target, bytes, flags, ts, self.count);
        if ts.saturating_sub(self.last_sweep) > LINGER_NS / 16 {
            self.last_sweep = ts;
            for queue in self.queues.values_mut() {
                queue.take_older(ts.saturating_sub(LINGER_NS));
            }
        }
    }

    /// Takes a completion. Returns whether it completes a bio of its log that was set aside, or a part of one.
    pub(super) fn complete(&mut self, log: usize, completion: &Completion) -> bool {
        let Some(queue) = self.queues.get_mut(&log) else { return false };
        if completion.bytes == 0 {
            queue.complete_flush(completion).is_some()
        } else {
            queue.complete(completion).is_known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Dev;

    const DISK: Dev = Dev(8 << 20);

    fn place(sector: i64) -> Place {
        Place { dev: DISK, sector }
    }

    fn at(sector: i64, bytes: u64, ts: i64) -> Completion {
        Completion { dev: DISK, sector, bytes, flags: BioFlags::default(), error: None, is_bio: false, ts }
    }

    #[test]
    fn a_completion_belongs_to_a_bio_of_its_own_log() {
        let mut bios = SetAsideBios::default();
        bios.submit(1, place(8), 8192, BioFlags::default(), 5);
        assert!(!bios.complete(0, &at(8, 8192, 6)));
        // In two parts.
        assert!(bios.complete(1, &at(8, 4096, 6)));
        assert!(bios.complete(1, &at(16, 4096, 7)));
        assert!(!bios.complete(1, &at(8, 8192, 8)));
    }

    #[test]
    fn a_bio_that_does_not_complete_is_forgotten() {
        let mut bios = SetAsideBios::default();
        bios.submit(1, place(8), 4096, BioFlags::default(), 5);
        bios.submit(1, place(64), 4096, BioFlags::default(), 6 + LINGER_NS);
        assert!(!bios.complete(1, &at(8, 4096, 7 + LINGER_NS)));
    }
}
