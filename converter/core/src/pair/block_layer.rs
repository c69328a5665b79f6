//! The block layer's own events: a bio is queued, issued, remapped and completed by device and sector.

use super::bios::set_issue;
use super::block_requests::Stage;
use super::{NO_SLOT, Out, Pairer, Slot};
use crate::block_queue::{Arrival, BlockQueue, Completed, Completion, Decided, Issue, sectors};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction, Traffic};
use crate::event::{Dev, Event, NO_ID, UNKNOWN_TASK};
use crate::losses::Reason;
use crate::names::NameId;
use crate::rows::Confidence;

/// Threads whose last remap is kept.
pub(super) const MAX_LAST_REMAPS: usize = 65_536;

impl Pairer {
    /// The queue of writes, of reads, or of all others.
    pub(super) fn queue_of(&mut self, flags: BioFlags) -> &mut BlockQueue<Slot> {
        match flags.traffic() {
            Traffic::Writes => &mut self.block_queue,
            Traffic::Reads => &mut self.read_queue,
            Traffic::Others => &mut self.other_queue,
        }
    }

    /// A bio that only the block layer reports. It belongs to the open request of its thread if that has no id, else to background writeback.
    pub(super) fn block_submit(
        &mut self,
        e: &Event,
        target: (Dev, i64),
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let (dev, sector) = target;
        self.note_submits(dev, flags);
        match flags.direction(bytes) {
            Direction::Flush => return self.flush_submit(e, dev, flags, out),
            Direction::Write => self.sees_block_submits = true,
            Direction::Read | Direction::Discard | Direction::Zeroes => {}
            Direction::Unknown => self.doubt_bytes(e),
        }
        let decided = self.queue_of(flags).decide(dev, sector);
        self.end_decided(decided, out)?;
        if self.queue_of(flags).arrival(dev, sector) == Arrival::Remapped {
            self.count(Reason::Remapped, e.ts, self.location(), || format!("to dev {dev} sector {sector}"));
            self.queue_of(flags).queue(target, bytes, flags, e.ts, NO_SLOT);
            return Ok(());
        }
        if flags.is_write() && self.bios.is_in_flight_at(target) {
            // The file system's own event has reported this bio.
            self.bios.note_flags(target, flags);
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, flags, e.ts, NO_SLOT);
            return Ok(());
        }
        if flags.is_write() && self.is_filled_without_submit(self.tasks.id_of(e), bytes) {
            // So has this one, but its submit was lost.
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to dev {dev} sector {sector}"));
            self.block_queue.queue(target, bytes, flags, e.ts, NO_SLOT);
            return Ok(());
        }
        let slot = self.open_block_bio(e, target, bytes, flags);
        self.queue_of(flags).queue(target, bytes, flags, e.ts, slot);
        Ok(())
    }

    /// The thread of an event submits something that the kernel does not name. It may write data.
    fn doubt_bytes(&mut self, e: &Event) {
        let task = self.tasks.id_of(e);
        if let Some(request) = self.open_request_without_id(task) {
            self.requests[request].row.bio_lost = true;
        }
    }

    /// Opens a bio, or a request, that its own thread begins.
    pub(super) fn open_block_bio(&mut self, e: &Event, target: (Dev, i64), bytes: u64, flags: BioFlags) -> Slot {
        self.open_block_bio_of(e, target, bytes, flags, true)
    }

    /// Opens a bio, or a request. `is_by_submitter`: the thread of the event is the one that submits it, so its open request may own it.
    pub(super) fn open_block_bio_of(
        &mut self,
        e: &Event,
        target: (Dev, i64),
        bytes: u64,
        flags: BioFlags,
        is_by_submitter: bool,
    ) -> Slot {
        let direction = flags.direction(bytes);
        let task = self.tasks.id_of(e);
        // Sources with ids report the bios of a request, and not its flushes.
        let open = if direction == Direction::Flush {
            self.tasks.open_request(task)
        } else {
            self.open_request_without_id(task)
        };
        let request = open
            .filter(|_| is_by_submitter && direction.is_writeback())
            .filter(|&slot| self.requests[slot].row.start.is_some())
            // Probes have reported all bios of the sync, so this one is of another kind.
            .filter(|&slot| self.requests[slot].probe.is_none() || !self.probes.sees_bios)
            .filter(|&slot| !self.may_have_ended(slot, e.ts))
            // After the end of every log that reports the thread it is unknown whether it is still in the request.
            .filter(|_| self.provenance.thread_is_covered);
        let slot = self.open_bio_of(e, NO_ID, 0, request.unwrap_or(NO_SLOT));
        let commit_id = self.commits.at(self.tasks.id_of(e), e.ts);
        let row = &mut self.bios[slot].row;
        row.submit = Some(e.ts);
        row.commit_id = commit_id;
        row.sector = target.1;
        row.dev = target.0;
        row.extent.bytes = bytes;
        row.flags = Some(flags);
        self.bios.add_load(slot);
        if let Some(request) = request {
            let open = &mut self.requests[request];
            open.extend_to(e.ts);
            if direction == Direction::Flush {
                // A request without data writes nothing back.
                open.row.bios -= 1;
            } else {
                open.row.extent.bytes += bytes;
                open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            }
        }
        slot
    }

    /// Opens a request that is known by its completion only: not since when, nor whose.
    pub(super) fn open_unknown_block_bio(
        &mut self,
        (dev, sector): (Dev, i64),
        bytes: u64,
        flags: BioFlags,
        ts: i64,
    ) -> Slot {
        let nobody = Event {
            ts,
            tid: UNKNOWN_TASK,
            pid: UNKNOWN_TASK,
            comm: NameId::NONE,
            line: 0,
            kind: crate::event::Kind::Other,
        };
        let slot = self.open_bio_of(&nobody, NO_ID, 0, NO_SLOT);
        let row = &mut self.bios[slot].row;
        (row.dev, row.sector, row.extent.bytes, row.flags) = (dev, sector, bytes, Some(flags));
        row.confidence = Confidence::Unknown;
        slot
    }

    /// A request begins, or enters the queue of the scheduler.
    pub(super) fn block_insert(&mut self, e: &Event, (dev, sector): (Dev, i64), bytes: u64, flags: BioFlags) {
        self.block_requests.sees_inserts = true;
        // A flush is a row from its issue on.
        if bytes == 0 || !self.is_authoritative_at(dev, sector, bytes, flags) {
            return;
        }
        let queue = self.queue_of(flags);
        queue.queue_remapped(dev, sector, bytes, e.ts, NO_SLOT);
        let gaps = queue.gaps(dev, sector, bytes);
        self.open_requests(e, (dev, sector, bytes), gaps, (flags, Stage::Inserted));
    }

    /// A request is handed to the driver: of bios that the block layer reports, or that the file system reports with their sector.
    pub(super) fn block_issue(
        &mut self,
        e: &Event,
        (dev, sector): (Dev, i64),
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        if !self.is_authoritative_at(dev, sector, bytes, flags) {
            return Ok(());
        }
        if bytes == 0 {
            return self.flush_issue(e, dev, flags, out);
        }
        let queue = self.queue_of(flags);
        queue.queue_remapped(dev, sector, bytes, e.ts, NO_SLOT);
        let gaps = queue.issue(dev, sector, bytes, e.ts);
        let range = sector..sector.saturating_add(sectors(bytes));
        if flags.is_write() {
            self.bios.issue(dev, range.clone(), e.ts);
        }
        self.bios.issue_below(dev, range, e.ts);
        self.open_requests(e, (dev, sector, bytes), gaps, (flags, Stage::Issued));
        Ok(())
    }

    /// Whether the log of the current event says what becomes of the bios in a range of sectors.
    fn is_authoritative_at(&mut self, dev: Dev, sector: i64, bytes: u64, flags: BioFlags) -> bool {
        let is_write = flags.is_write();
        let queued = self.queue_of(flags).find(dev, sector, bytes, |slot| slot != NO_SLOT);
        // The file system's own event may have reported the bio.
        let of_file_system = || self.bios.oldest_in_flight_at((dev, sector)).filter(|_| is_write);
        let flush = || self.flushes.oldest(dev).filter(|_| bytes == 0);
        match queued.or_else(of_file_system).or_else(flush) {
            Some(slot) => self.provenance.completable.contains(self.bios[slot].log),
            None => self.provenance.must_complete,
        }
    }

    pub(super) fn block_complete(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let &Completion { dev, sector, bytes, ts, flags, is_bio, error } = completion;
        if !self.is_authoritative_at(dev, sector, bytes, flags) {
            return Ok(());
        }
        if !is_bio {
            self.block_requests.note_completion(dev);
        }
        if bytes == 0 && flags.is_flush_request() {
            return self.flush_done(dev, (ts, error), out);
        }
        if bytes == 0 {
            // Nothing waits for it if the device has FUA.
            let done = if is_bio { None } else { self.block_queue.complete_flush(completion) };
            return match done {
                Some(done) => self.end_completed(done, out),
                None => self.flush_complete(completion, out),
            };
        }
        if !is_bio && !flags.contains(BioFlags::READ) {
            self.bios.note_done(dev, sector..sector.saturating_add(sectors(bytes)), ts, error);
        }
        self.queue_of(flags).queue_remapped(dev, sector, bytes, ts, NO_SLOT);
        let ended = self.queue_of(flags).complete(completion);
        if ended.is_known {
            self.note_completed(dev, flags);
        }
        ended.done.into_iter().try_for_each(|done| self.end_completed(done, out))?;
        if is_bio {
            return Ok(());
        }
        if !ended.is_known && self.sees_own_bios_on(dev, flags) {
            self.orphans.of_sectors += 1;
            let what = || format!("completion of dev {dev} sector {sector}");
            return self.lose(Reason::UnmatchedComplete, ts, out, what);
        }
        self.complete_requests(completion, ended.gaps, out)
    }

    /// Whether a file system or probes report the bios of a device, and the block layer too.
    fn sees_own_bios_on(&self, dev: Dev, flags: BioFlags) -> bool {
        flags.is_write() && (self.sees_bios || self.probes.sees_bios) && self.block_queue.has_seen(Some(dev))
    }

    /// A request is done, all of it. Its completion may have ended it before.
    pub(super) fn block_done(
        &mut self,
        e: &Event,
        (dev, sector): (Dev, i64),
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        if !self.is_authoritative_at(dev, sector, 0, flags) {
            return Ok(());
        }
        // It comes after the completion of the same request, and says nothing more.
        if self.block_requests.sees_completions_of(dev) {
            return Ok(());
        }
        match self.queue_of(flags).complete_at((dev, sector), flags, e.ts) {
            Some(done) => self.end_completed(done, out),
            None => Ok(()),
        }
    }

    fn end_completed(&mut self, done: Completed<Slot>, out: &mut Out<'_>) -> Result<()> {
        let Completed { bio, issue, error, ts } = done;
        if bio == NO_SLOT { Ok(()) } else { self.end_block_bio(bio, ts, (issue, error), out) }
    }

    /// Completes, or gives up, the bios that the queue has decided on.
    pub(super) fn end_decided(&mut self, decided: Decided<Slot>, out: &mut Out<'_>) -> Result<()> {
        for lost in decided.lost {
            if lost.bio != NO_SLOT {
                self.note_queued(&lost);
                self.give_up_bio(lost.bio, out)?;
            }
        }
        decided.completed.into_iter().try_for_each(|done| self.end_completed(done, out))
    }

    /// Notes what the block layer's queue knows of a bio that is not complete.
    pub(super) fn note_queued(&mut self, queued: &Completed<Slot>) {
        let below = self.bios[queued.bio].issue;
        let row = &mut self.bios[queued.bio].row;
        row.error = queued.error;
        set_issue(row, queued.issue.or(below));
    }

    /// A bio that the block layer reports is complete. `issue`: what its queue knows of it.
    pub(super) fn end_block_bio(
        &mut self,
        slot: Slot,
        ts: i64,
        (issue, error): (Option<Issue>, Option<i32>),
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.bios.remove_overtaken(self.bios[slot].row.dev);
        self.bios.remove_load(slot);
        let below = self.bios[slot].issue;
        let row = &mut self.bios[slot].row;
        (row.complete, row.error) = (Some(ts), error);
        set_issue(row, issue.or(below));
        self.close_bio(slot, out)
    }

    /// A bio in flight is redirected to another device. What is queued there is the same bio, and may be redirected again.
    ///
    /// The kernel names the whole disk as the target, also where a device mapper redirects a bio to a partition: the sector is then that of
    /// the partition, and the next event of the thread redirects the bio from there to the disk's sector.
    pub(super) fn block_remap(&mut self, e: &Event, from: (Dev, i64), to: (Dev, i64), bytes: u64, flags: BioFlags) {
        let task = self.tasks.id_of(e);
        let is_write = flags.is_write();
        let named = (to.0, from.1);
        if self.last_remaps.len() >= MAX_LAST_REMAPS {
            self.last_remaps.clear();
        }
        let last = self.last_remaps.insert(task, (from.0, to));
        let continued = last.filter(|&(upper, target)| target == named && from.0 != to.0 && upper != from.0);
        // An empty flush is redirected to a partition and not from there.
        if bytes == 0 {
            return self.flush_remap(from.0, to.0);
        }
        if let Some((upper, _)) = continued {
            self.queue_of(flags).take_back_remap(named);
            self.devices_below.take_back(upper, to.0);
            self.devices_below.add(upper, from.0);
        }
        self.devices_below.add(from.0, to.0);
        let queued = self.queue_of(flags).find(from.0, from.1, 0, |_| true);
        let of_file_system = self.bios.oldest_in_flight_at(from).filter(|_| is_write);
        let submitted = of_file_system.or(queued.filter(|&slot: &Slot| slot != NO_SLOT));
        let is_redirected = self.bios.redirect(from, to, submitted)
            || continued.is_some() && self.bios.redirect(named, to, None)
            // The patch names the disk at the submit too.
            || from.0 != to.0
                && submitted.is_none()
                && self.bios.just_submitted_at(named, e.tid).is_some_and(|slot| self.bios.redirect(named, to, Some(slot)));
        if is_redirected || queued.is_some() || of_file_system.is_some() {
            self.queue_of(flags).remap(to, bytes);
        }
    }
}
