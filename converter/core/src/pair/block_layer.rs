//! The block layer's own events: a bio is queued, issued, remapped and completed by device and sector.

use super::bios::set_issue;
use super::{NO_SLOT, Out, Pairer, Slot};
use crate::block_queue::{Arrival, Completed, Completion, sectors};
use crate::error::Result;
use crate::event::bio_flags::BioFlags;
use crate::event::{Dev, Event, NO_ID};
use crate::losses::Reason;

/// Threads whose last remap is kept.
pub(super) const MAX_LAST_REMAPS: usize = 65_536;

impl Pairer {
    /// A bio that only the block layer reports. It belongs to the open request of its thread if that has no id, else to background writeback.
    pub(super) fn block_submit(&mut self, e: &Event, target: (Dev, i64), bytes: u64, flags: BioFlags) {
        let (dev, sector) = target;
        self.unsubmitted.end();
        if self.block_queue.arrival(dev, sector) == Arrival::Remapped {
            self.count(Reason::Remapped, e.ts, self.location(), || format!("to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, flags, e.ts, NO_SLOT);
            return;
        }
        if self.bios.is_in_flight_at(target) {
            // The file system's own event has reported this bio.
            self.bios.note_flags(target, flags);
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, flags, e.ts, NO_SLOT);
            return;
        }
        let request = self
            .open_request_without_id(self.tasks.id_of(e))
            .filter(|&slot| self.requests[slot].row.start.is_some())
            // Probes have reported all bios of the sync, so this one is of another kind.
            .filter(|&slot| self.requests[slot].probe.is_none() || !self.probes.sees_bios)
            // After the end of every log that reports the thread it is unknown whether it is still in the request.
            .filter(|_| self.provenance.thread_is_covered);
        let slot = self.open_bio_of(e, NO_ID, 0, request.unwrap_or(NO_SLOT));
        self.block_queue.queue(target, bytes, flags, e.ts, slot);
        let commit_id = self.commits.at(self.tasks.id_of(e), e.ts);
        let row = &mut self.bios[slot].row;
        row.submit = Some(e.ts);
        row.commit_id = commit_id;
        row.sector = sector;
        row.dev = dev;
        row.extent.bytes = bytes;
        row.flags = Some(flags);
        self.bios.add_load(slot);
        if let Some(request) = request {
            let open = &mut self.requests[request];
            open.row.extent.bytes += bytes;
            open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            open.extend_to(e.ts);
        }
    }

    /// A request is handed to the driver: of bios that the block layer reports, or that the file system reports with their sector.
    pub(super) fn block_issue(&mut self, e: &Event, (dev, sector): (Dev, i64), bytes: u64) {
        if !self.is_authoritative_at(dev, sector, bytes) {
            return;
        }
        self.block_queue.issue(dev, sector, bytes, e.ts);
        self.bios.issue(dev, sector..sector.saturating_add(sectors(bytes)), e.ts);
        self.bios.issue_below(dev, sector..sector.saturating_add(sectors(bytes)), e.ts);
        self.unsubmitted.issue((dev, sector), bytes, e.ts, self.provenance.log);
    }

    /// Whether the log of the current event says what becomes of the bios in a range of sectors.
    fn is_authoritative_at(&self, dev: Dev, sector: i64, bytes: u64) -> bool {
        let queued = self.block_queue.find(dev, sector, bytes, |slot| slot != NO_SLOT);
        // The file system's own event may have reported the bio.
        match queued.or_else(|| self.bios.oldest_in_flight_at((dev, sector))) {
            Some(slot) => self.provenance.completable.contains(self.bios[slot].log),
            None => self.provenance.must_complete,
        }
    }

    pub(super) fn block_complete(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let &Completion { dev, sector, bytes, ts, .. } = completion;
        if !self.is_authoritative_at(dev, sector, bytes) {
            return Ok(());
        }
        let done = if bytes == 0 {
            // Nothing waits for it if the device has FUA, or if it ends a flush without data.
            Some(self.block_queue.complete_flush(completion).into_iter().collect())
        } else {
            self.block_queue.complete(completion)
        };
        let Some(done) = done else {
            // On a device without queued bios the completions belong to bios that other events report.
            if self.block_queue.has_seen(Some(dev)) {
                let what = || format!("completion of dev {dev} sector {sector}");
                return self.lose(Reason::UnmatchedComplete, ts, out, what);
            }
            // Without submits, the requests of the device below are the rows.
            return if completion.is_bio { Ok(()) } else { self.complete_unsubmitted(completion, out) };
        };
        for Completed { bio: slot, issue, error } in done.into_iter().filter(|done| done.bio != NO_SLOT) {
            self.bios.remove_overtaken(dev);
            self.bios.remove_load(slot);
            let below = self.bios[slot].issue;
            let row = &mut self.bios[slot].row;
            (row.complete, row.error) = (Some(ts), error);
            set_issue(row, issue.or(below));
            self.close_bio(slot, out)?;
        }
        Ok(())
    }

    /// A bio in flight is redirected to another device. What is queued there is the same bio, and may be redirected again.
    ///
    /// The kernel names the whole disk as the target, also where a device mapper redirects a bio to a partition: the sector is then that of
    /// the partition, and the next event of the thread redirects the bio from there to the disk's sector.
    pub(super) fn block_remap(&mut self, e: &Event, from: (Dev, i64), to: (Dev, i64), bytes: u64) {
        let task = self.tasks.id_of(e);
        let named = (to.0, from.1);
        if self.last_remaps.len() >= MAX_LAST_REMAPS {
            self.last_remaps.clear();
        }
        let last = self.last_remaps.insert(task, (from.0, to));
        let continued = last.filter(|&(upper, target)| target == named && from.0 != to.0 && upper != from.0);
        // An empty flush is redirected to a partition and not from there.
        if bytes > 0 {
            if let Some((upper, _)) = continued {
                self.devices_below.take_back(upper, to.0);
                self.devices_below.add(upper, from.0);
            }
            self.devices_below.add(from.0, to.0);
        }
        let queued = self.block_queue.find(from.0, from.1, 0, |_| true);
        let of_file_system = self.bios.oldest_in_flight_at(from);
        let submitted = of_file_system.or(queued.filter(|&slot: &Slot| slot != NO_SLOT));
        let is_redirected = self.bios.redirect(from, to, submitted)
            || continued.is_some() && self.bios.redirect(named, to, None)
            // The patch names the disk at the submit too.
            || from.0 != to.0
                && submitted.is_none()
                && self.bios.just_submitted_at(named, e.tid).is_some_and(|slot| self.bios.redirect(named, to, Some(slot)));
        if is_redirected || queued.is_some() || of_file_system.is_some() {
            self.block_queue.remap(to);
        }
    }
}
