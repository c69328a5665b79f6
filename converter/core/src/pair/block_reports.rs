//! Requests of the block layer whose recorder reports them when they are complete: an event is a row.

use super::stores::slots::RequestSlot;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction, Traffic};
use crate::event::{Asked, Event, Kind, NO_ID};
use crate::losses::Reason;

impl Pairer {
    /// Writes the row of a request that has completed. Others were in flight meanwhile, and the recorder has reported only those that are over.
    pub(super) fn block_report(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::BlockReport { dev, sector, bytes, asked, since_begin, since_issue } = e.kind else { return Ok(()) };
        let (flags, said) = match asked {
            Asked::Flags(flags) => (Some(flags), None),
            Asked::Way(way) => (None, Some(way)),
        };
        let traffic = flags.map_or_else(|| said.map_or(Traffic::Others, traffic_of), BioFlags::traffic);
        if !self.makes_requests(dev, traffic) {
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a request of dev {dev} sector {sector}"));
            return Ok(());
        }
        let before = |ns: Option<u64>| ns.map(|ns| e.ts.saturating_sub_unsigned(ns));
        let slot = self.open_bio_of(e, NO_ID, 0, RequestSlot::NONE);
        let row = &mut self.bios[slot].row;
        (row.dev, row.sector, row.extent.bytes, row.flags, row.said) = (dev, sector, bytes, flags, said);
        row.issue = before(since_issue);
        row.submit = before(since_begin).or(row.issue);
        row.complete = Some(e.ts);
        row.first_event = row.submit.unwrap_or(e.ts);
        (row.is_request, row.is_report, row.queue_unknown) = (true, true, since_begin.is_none());
        self.close_bio(slot, out)
    }
}

fn traffic_of(direction: Direction) -> Traffic {
    match direction {
        Direction::Write | Direction::Flush => Traffic::Writes,
        Direction::Read => Traffic::Reads,
        Direction::Discard | Direction::Zeroes | Direction::Unknown => Traffic::Others,
    }
}
