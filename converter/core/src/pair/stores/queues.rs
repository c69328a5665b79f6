//! The block layer's queues: bios by device and sector.

use super::slots::BioSlot;
use crate::block::queue::BlockQueue;
use crate::event::bio_flags::{BioFlags, Traffic};

/// A bio that another event has reported is `BioSlot::NONE`.
pub(in crate::pair) struct BlockQueues {
    pub(in crate::pair) writes: BlockQueue<BioSlot>,
    pub(in crate::pair) reads: BlockQueue<BioSlot>,
    /// Such as discards.
    pub(in crate::pair) others: BlockQueue<BioSlot>,
}

impl BlockQueues {
    pub(in crate::pair) fn new() -> Self {
        Self { writes: BlockQueue::new(), reads: BlockQueue::new(), others: BlockQueue::new() }
    }

    pub(in crate::pair) fn of(&mut self, flags: BioFlags) -> &mut BlockQueue<BioSlot> {
        match flags.traffic() {
            Traffic::Writes => &mut self.writes,
            Traffic::Reads => &mut self.reads,
            Traffic::Others => &mut self.others,
        }
    }

    pub(in crate::pair) fn each(&mut self) -> [&mut BlockQueue<BioSlot>; 3] {
        [&mut self.writes, &mut self.reads, &mut self.others]
    }
}
