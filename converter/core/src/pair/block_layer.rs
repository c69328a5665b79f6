//! Bios that only the block layer reports: they are queued, remapped and completed by device and sector.

use super::{NO_SLOT, Out, Pairer};
use crate::block_queue::Arrival;
use crate::error::Result;
use crate::event::{Dev, Event, NO_ID};
use crate::losses::Reason;

impl Pairer {
    /// A bio that only the block layer reports. It belongs to the open request of its thread if that has no id, else to background writeback.
    pub(super) fn block_submit(&mut self, e: &Event, target: (Dev, i64), bytes: u64) {
        let (dev, sector) = target;
        if self.block_queue.arrival(dev, sector) == Arrival::Remapped {
            self.count(Reason::Remapped, e.ts, self.location(), || format!("to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, e.ts, NO_SLOT);
            return;
        }
        if self.bios.is_in_flight_at(target) {
            // The file system's own event has reported this bio.
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, e.ts, NO_SLOT);
            return;
        }
        let request = self
            .open_request_without_id(self.tasks.id_of(e))
            .filter(|&slot| self.requests[slot].row.start.is_some())
            // After the end of every log that reports the thread it is unknown whether it is still in the request.
            .filter(|_| self.provenance.thread_is_covered);
        let slot = self.open_bio_of(e, NO_ID, 0, request.unwrap_or(NO_SLOT));
        self.block_queue.queue(target, bytes, e.ts, slot);
        let row = &mut self.bios[slot].row;
        row.submit = Some(e.ts);
        row.sector = sector;
        row.dev = dev;
        row.extent.bytes = bytes;
        self.bios.add_load(slot);
        if let Some(request) = request {
            let open = &mut self.requests[request];
            open.row.extent.bytes += bytes;
            open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            open.extend_to(e.ts);
        }
    }

    pub(super) fn block_complete(
        &mut self,
        e: &Event,
        (dev, sector): (Dev, i64),
        bytes: u64,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let first = self.block_queue.in_range(dev, sector, bytes).find(|&slot| slot != NO_SLOT);
        let is_authoritative = match first {
            Some(slot) => self.provenance.completable.contains(self.bios[slot].log),
            None => self.provenance.must_complete,
        };
        if !is_authoritative {
            return Ok(());
        }
        let Some(done) = self.block_queue.complete(dev, sector, bytes, e.ts) else {
            // On a device without queued bios the completions belong to bios that other events report.
            if self.block_queue.has_seen(Some(dev)) {
                let what = || format!("completion of dev {dev} sector {sector}");
                return self.lose(Reason::UnmatchedComplete, e.ts, out, what);
            }
            return Ok(());
        };
        for slot in done.into_iter().filter(|&slot| slot != NO_SLOT) {
            self.bios.remove_load(slot);
            self.bios[slot].row.complete = Some(e.ts);
            self.close_bio(slot, out)?;
        }
        Ok(())
    }

    /// A bio in flight is redirected to another device. What is queued there is the same bio.
    pub(super) fn block_remap(&mut self, from: (Dev, i64), to: (Dev, i64)) {
        if self.bios.is_in_flight_at(from) || self.block_queue.find(from.0, from.1).is_some() {
            self.block_queue.remap(to);
        }
    }
}
