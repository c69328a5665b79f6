//! Events of the block layer: which of them are used, whatever format they come in.

use super::event_names::BlockEvent;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::{Dev, Kind, NO_SECTOR};

pub(super) const SECTOR_BYTES: u64 = 512;

/// The fields of an event of the block layer.
pub(super) struct BlockFields<'a> {
    pub(super) dev: Dev,
    /// `None` if it has none: flushes have all ones there.
    pub(super) sector: Option<i64>,
    pub(super) bytes: u64,
    pub(super) rwbs: &'a [u8],
    pub(super) error: Option<i32>,
    /// Where a bio is redirected from.
    pub(super) from: Option<(Dev, i64)>,
}

impl BlockFields<'_> {
    /// Makes the event. All but flushes need a place on the device. Requests that manage zones, and commands of drivers, are not used.
    #[inline]
    pub(super) fn kind(&self, event: BlockEvent) -> Kind {
        let &Self { dev, bytes, error, .. } = self;
        let Some(flags) = BioFlags::of_rwbs(self.rwbs) else { return Kind::Other };
        let sector = self.sector.unwrap_or(NO_SECTOR);
        if !is_used(event, sector, bytes, flags) {
            return Kind::Other;
        }
        match event {
            BlockEvent::Submit => Kind::BlockSubmit { dev, sector, bytes, flags },
            BlockEvent::Insert => Kind::BlockInsert { dev, sector, bytes, flags },
            BlockEvent::Issue => Kind::BlockIssue { dev, sector, bytes, flags },
            BlockEvent::Complete => Kind::BlockComplete { dev, sector, bytes, flags, error, is_bio: false },
            BlockEvent::BioComplete => Kind::BlockComplete { dev, sector, bytes, flags, error, is_bio: true },
            BlockEvent::Done => Kind::BlockDone { dev, sector, flags },
            BlockEvent::Remap => match self.from {
                Some((from_dev, from_sector)) => Kind::BlockRemap { dev, sector, bytes, from_dev, from_sector, flags },
                None => Kind::Other,
            },
        }
    }
}

/// Whether an event of the block layer is used. All but flushes need a place on the device. What manages zones, and commands of drivers, are
/// not used.
#[inline]
pub(super) fn is_used(event: BlockEvent, sector: i64, bytes: u64, flags: BioFlags) -> bool {
    let has_place = sector != NO_SECTOR && bytes > 0;
    let is_flush = bytes == 0 && flags.direction(bytes) == Direction::Flush;
    match event {
        BlockEvent::Submit | BlockEvent::Insert | BlockEvent::BioComplete | BlockEvent::Remap => has_place || is_flush,
        BlockEvent::Issue => has_place || flags.is_flush_request(),
        // A write is complete without a length when the flush after it is done, and so is a flush.
        BlockEvent::Complete => has_place || bytes == 0 && flags.is_write(),
        BlockEvent::Done => sector != NO_SECTOR,
    }
}
