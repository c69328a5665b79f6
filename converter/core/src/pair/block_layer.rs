//! The block layer's own events: a bio is queued, issued, remapped and completed by device and sector.

use super::block_requests::Stage;
use super::stores::bios::set_issue;
use super::stores::block_layer::LastSubmit;
use super::stores::slots::{BioSlot, RequestSlot};
use super::{Out, Pairer};
use crate::block::queue::{Arrival, BlockQueue, Completed, Completion, Decided, Gap, Issue, Redirected, sectors};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction, Traffic};
use crate::event::place::Place;
use crate::event::{Dev, Event, NO_ID, UNKNOWN_TASK};
use crate::losses::Reason;
use crate::names::NameId;
use crate::rows::{Bio, Confidence};

/// Threads whose last remap is kept. With more, all are forgotten, since a remap only matters for the next one of its thread.
pub(super) const MAX_LAST_REMAPS: usize = 65_536;

/// Threads whose last submit is kept.
const MAX_LAST_SUBMITS: usize = 65_536;

/// How long after a bio its thread may submit the rest of it. The kernel splits it at once, but a thread that is preempted takes some ms.
const MAX_SPLIT_NS: i64 = 5_000_000;

/// How long after one rest its thread may submit the next. In between, it may wait for a free request.
const MAX_NEXT_SPLIT_NS: i64 = 1_000_000_000;

/// Devices of one request that are distinguished.
const MAX_DEVICES: usize = 8;

impl Pairer {
    /// Opens a bio that only the block layer reports. It belongs to the open request of its thread if that request has no id, else to background
    /// writeback.
    pub(super) fn block_submit(
        &mut self,
        e: &Event,
        target: Place,
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.block_requests.note_submits(target.dev, flags);
        match flags.direction(bytes) {
            Direction::Flush => return self.flush_submit(e, target, flags, out),
            Direction::Write => self.seen.block_submits = true,
            Direction::Read | Direction::Discard | Direction::Zeroes => {}
            Direction::Unknown => self.doubt_bytes(e),
        }
        if self.is_rest_of_split(e, target, bytes, flags) {
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("the rest of a split bio to {target}"));
            return Ok(());
        }
        let slot = self.submit_to_block_layer(e, target, bytes, flags, out)?;
        self.note_last_submit(e, target, bytes, flags, slot);
        Ok(())
    }

    /// Opens a bio that a probe reports as a read, and that is treated from then on like one that the block layer reports.
    pub(super) fn read_submit(
        &mut self,
        e: &Event,
        target: Place,
        (bytes, flags): (u64, BioFlags),
        file: Option<(Dev, u64)>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.block_requests.note_submits(target.dev, flags);
        let slot = self.submit_to_block_layer(e, target, bytes, flags, out)?;
        if let Some((dev, ino)) = file.filter(|_| slot.is_some()) {
            self.bios[slot].pages.add(dev, ino);
            self.note_page_read(e, (dev, ino), slot);
        }
        Ok(())
    }

    /// Takes note of what a thread submits, if the block layer can split it.
    fn note_last_submit(
        &mut self,
        e: &Event,
        Place { dev, sector }: Place,
        bytes: u64,
        flags: BioFlags,
        slot: BioSlot,
    ) {
        if self.last_submits.len() >= MAX_LAST_SUBMITS {
            self.last_submits.clear();
        }
        let bio = (slot.is_some()).then(|| (slot, self.bios[slot].row.bio_id));
        let (end, until) = (sector.saturating_add(sectors(bytes)), e.ts.saturating_add(MAX_SPLIT_NS));
        self.last_submits.insert(self.tasks.id_of(e), LastSubmit { dev, sector, end, until, flags, bio });
    }

    /// Whether a submit is of the rest of the bio that its thread has submitted last: Linux 4.3 to 4.11 queue it once more when they have split a
    /// part off. The rest ends where the bio does, which is in flight until its last part is complete.
    fn is_rest_of_split(&mut self, e: &Event, Place { dev, sector }: Place, bytes: u64, flags: BioFlags) -> bool {
        let end = sector.saturating_add(sectors(bytes));
        let task = self.tasks.id_of(e);
        let Some(&last) = self.last_submits.get(&task) else { return false };
        let is_within = (last.dev, last.end, last.flags) == (dev, end, flags) && last.sector < sector;
        if !is_within || e.tid == UNKNOWN_TASK || e.ts > last.until {
            return false;
        }
        let is_in_flight = match last.bio {
            // A sync waits for its bios, so the thread submits no rest after it.
            Some((slot, bio_id)) => {
                let Bio { bio_id: now, complete, .. } = self.bios[slot].row;
                let request = self.bios[slot].request;
                now == bio_id && complete.is_none() && (request.is_none() || !self.requests[request].over)
            }
            None => self.queues.of(flags).find(dev, sector, bytes, |_| true).is_some(),
        };
        if is_in_flight {
            let until = e.ts.saturating_add(MAX_NEXT_SPLIT_NS);
            self.last_submits.insert(task, LastSubmit { sector, until, ..last });
        }
        is_in_flight
    }

    /// Returns the bio, or `BioSlot::NONE` if another event reports it.
    fn submit_to_block_layer(
        &mut self,
        e: &Event,
        target: Place,
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<BioSlot> {
        let Place { dev, sector } = target;
        let decided = self.queues.of(flags).decide(dev, sector);
        self.end_decided(decided, out)?;
        if let Arrival::Remapped(from) = self.queues.of(flags).arrival(dev, sector) {
            self.queues_below.insert(from);
            self.count(Reason::Remapped, e.ts, self.location(), || format!("to {target}"));
            self.queues.of(flags).queue(target, bytes, flags, e.ts, BioSlot::NONE);
            return Ok(BioSlot::NONE);
        }
        if flags.is_write() && (self.bios.is_in_flight_at(target) || self.holds_submit_to(target)) {
            // The file system's own event has reported this bio.
            self.bios.note_flags(target, flags);
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to {target}"));
            self.queues.writes.queue(target, bytes, flags, e.ts, BioSlot::NONE);
            return Ok(BioSlot::NONE);
        }
        if flags.is_write() && self.is_filled_without_submit(self.tasks.id_of(e), bytes) {
            // The file system's own events have filled this bio, but its submit was lost.
            self.count(Reason::Duplicate, e.ts, self.location(), || format!("a bio to {target}"));
            self.queues.writes.queue(target, bytes, flags, e.ts, BioSlot::NONE);
            return Ok(BioSlot::NONE);
        }
        if flags.is_write()
            && let Some(upper) = self.bio_above(e, dev, Direction::Write)
        {
            // No remap says so, but it is a part of what the file system has submitted.
            self.count(Reason::Remapped, e.ts, self.location(), || format!("to {target}"));
            let row = &self.bios[upper].row;
            if row.extent.bytes == bytes {
                let from = row.place();
                self.bios.redirect(from, target, Some(upper));
            }
            self.queues.writes.queue(target, bytes, flags, e.ts, BioSlot::NONE);
            return Ok(BioSlot::NONE);
        }
        let slot = self.open_block_bio(e, target, bytes, flags);
        self.queues.of(flags).queue(target, bytes, flags, e.ts, slot);
        Ok(slot)
    }

    /// The bio in flight that a thread has submitted to the device of its file system, if a submit to another device carries that out: the
    /// device of the file system has no requests of its own, so it is stacked on others. Its remaps are not in the log.
    pub(super) fn bio_above(&self, e: &Event, dev: Dev, direction: Direction) -> Option<BioSlot> {
        let request =
            self.tasks.open_request(self.tasks.id_of(e)).filter(|&slot| self.requests[slot].row.id == NO_ID)?;
        let open = &self.requests[request];
        let own = open.row.dev;
        let (slot, bio_id) = open.newest_on_own?;
        let row = &self.bios[slot].row;
        let is_in_flight = row.bio_id == bio_id && row.complete.is_none() && row.direction() == direction;
        (own != dev && is_in_flight && !self.block_requests.sees_requests_of(own)).then_some(slot)
    }

    /// Queues what was redirected to a range of sectors and is not reported there. If the device above never reports that, a bio is no copy:
    /// it continues unchanged, like those of a multipath NVMe device, and ends with its request.
    fn queue_redirected(
        &mut self,
        Place { dev, sector }: Place,
        bytes: u64,
        flags: BioFlags,
        ts: i64,
        out: &mut Out<'_>,
    ) -> Result<()> {
        for (target, redirected) in self.queues.of(flags).take_redirected(dev, sector, bytes) {
            let Redirected { from, bytes, flags, whole } = redirected;
            let is_same = |&(slot, bio_id): &(BioSlot, u64)| {
                let bio = &self.bios[slot];
                bio.row.bio_id == bio_id && bio.row.complete.is_none() && bio.queued_at.is_none()
            };
            let Some((slot, _)) = whole.filter(|_| !self.queues_below.contains(&from)).filter(is_same) else {
                self.queues.of(flags).queue(target, bytes, BioFlags::default(), ts, BioSlot::NONE);
                continue;
            };
            let (place, submit) = (self.bios[slot].row.place(), self.bios[slot].row.submit);
            let decided = self.queues.of(flags).forget(place, bytes, slot);
            self.end_decided(decided, out)?;
            self.bios[slot].queued_at = Some(target);
            self.queues.of(flags).queue(target, bytes, flags, submit.unwrap_or(ts), slot);
        }
        Ok(())
    }

    /// Notes that the request of a thread may lack a bio, because the thread submits something that the kernel does not name.
    fn doubt_bytes(&mut self, e: &Event) {
        let task = self.tasks.id_of(e);
        if let Some(request) = self.open_request_without_id(task) {
            self.requests[request].row.bio_lost = true;
        }
    }

    /// Opens a bio, or a request, that its own thread begins.
    pub(super) fn open_block_bio(&mut self, e: &Event, target: Place, bytes: u64, flags: BioFlags) -> BioSlot {
        self.open_block_bio_of(e, target, bytes, flags, true)
    }

    /// Opens a bio, or a request. `is_by_submitter`: the thread of the event is the one that submits it, so its open request may own it.
    pub(super) fn open_block_bio_of(
        &mut self,
        e: &Event,
        target: Place,
        bytes: u64,
        flags: BioFlags,
        is_by_submitter: bool,
    ) -> BioSlot {
        let direction = flags.direction(bytes);
        let task = self.tasks.id_of(e);
        // A source with ids reports the bios of a request itself, so only a flush can be of a request that has one.
        let open = if direction == Direction::Flush {
            self.tasks.open_request(task)
        } else {
            self.open_request_without_id(task)
        };
        // Where probes report bios, they have reported all of those of a sync, so this one is of another kind.
        let may_have = |slot: RequestSlot| self.requests[slot].probe.is_none() || !self.probes.sees_bios;
        // After the end of every log that reports the thread it is unknown whether it is still in the request.
        let is_in = |slot: RequestSlot| {
            let has_start = self.requests[slot].row.start.is_some();
            has_start && self.provenance.thread_is_covered && !self.may_have_ended(slot, e.ts)
        };
        let of_thread = open.filter(|&slot| is_by_submitter && direction.is_writeback() && may_have(slot));
        let request = of_thread.filter(|&slot| is_in(slot));
        let is_unknown = of_thread.is_some() || open.is_none() && self.tasks.may_be_in_sync(task);
        let slot = self.open_bio_of(e, NO_ID, 0, request.unwrap_or(RequestSlot::NONE));
        let commit_id = self.commits.at(task, e.ts);
        let row = &mut self.bios[slot].row;
        row.origin_unknown = request.is_none() && is_unknown && is_by_submitter && direction.is_writeback();
        let bio_id = row.bio_id;
        row.submit = Some(e.ts);
        row.commit_id = commit_id;
        row.sector = target.sector;
        row.dev = target.dev;
        row.extent.bytes = bytes;
        row.flags = Some(flags);
        self.commits.write_block(task, row);
        self.bios.add_load(slot);
        if let Some(request) = request {
            let open = &mut self.requests[request];
            open.extend_to(e.ts);
            if target.dev == open.row.dev {
                open.newest_on_own = Some((slot, bio_id));
            }
            if direction == Direction::Flush {
                // `open_bio_of` has counted it, although a flush writes nothing back.
                open.row.bios -= 1;
            } else {
                if !open.devices.contains(&target.dev) && open.devices.len() < MAX_DEVICES {
                    open.devices.push(target.dev);
                }
                open.row.extent.bytes += bytes;
                open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            }
        }
        slot
    }

    /// Opens a request of which only the completion is known, so neither its begin nor its thread.
    pub(super) fn open_unknown_block_bio(
        &mut self,
        Place { dev, sector }: Place,
        bytes: u64,
        flags: BioFlags,
        ts: i64,
    ) -> BioSlot {
        let nobody = Event {
            ts,
            tid: UNKNOWN_TASK,
            pid: UNKNOWN_TASK,
            comm: NameId::NONE,
            line: 0,
            kind: crate::event::Kind::Other,
        };
        let slot = self.open_bio_of(&nobody, NO_ID, 0, RequestSlot::NONE);
        let row = &mut self.bios[slot].row;
        (row.dev, row.sector, row.extent.bytes, row.flags) = (dev, sector, bytes, Some(flags));
        row.confidence = Confidence::Unknown;
        slot
    }

    /// A request begins, or enters the queue of the scheduler.
    pub(super) fn block_insert(
        &mut self,
        e: &Event,
        place: Place,
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let Place { dev, sector } = place;
        self.block_requests.sees_inserts = true;
        self.block_requests.note_request(dev);
        // A flush is a row from its issue on.
        if bytes == 0 || !self.is_authoritative_at(dev, sector, bytes, flags) {
            return Ok(());
        }
        self.queue_redirected(place, bytes, flags, e.ts, out)?;
        let gaps = self.queues.of(flags).gaps(dev, sector, bytes);
        self.open_requests(e, (dev, sector, bytes), gaps, (flags, Stage::Inserted));
        Ok(())
    }

    /// A request is handed to the driver: of bios that the block layer reports, or that the file system reports with their sector.
    pub(super) fn block_issue(
        &mut self,
        e: &Event,
        place: Place,
        bytes: u64,
        flags: BioFlags,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let Place { dev, sector } = place;
        self.block_requests.note_request(dev);
        if !self.is_authoritative_at(dev, sector, bytes, flags) {
            return Ok(());
        }
        if bytes == 0 {
            return self.flush_issue(e, dev, flags, out);
        }
        self.queue_redirected(place, bytes, flags, e.ts, out)?;
        let gaps = self.queues.of(flags).issue(dev, sector, bytes, e.ts);
        let range = sector..sector.saturating_add(sectors(bytes));
        let logs = self.provenance.completable;
        if flags.is_write() {
            self.bios.issue(dev, range.clone(), e.ts, logs);
        }
        self.bios.issue_below(dev, range, e.ts, logs);
        self.open_requests(e, (dev, sector, bytes), gaps, (flags, Stage::Issued));
        Ok(())
    }

    /// Whether the log of the current event says what becomes of the bios in a range of sectors.
    fn is_authoritative_at(&mut self, dev: Dev, sector: i64, bytes: u64, flags: BioFlags) -> bool {
        let is_write = flags.is_write();
        let queued = self.queues.of(flags).find(dev, sector, bytes, BioSlot::is_some);
        // The file system's own event may have reported the bio.
        let of_file_system = || self.bios.oldest_in_flight_at(Place { dev, sector }).filter(|_| is_write);
        let flush = || self.flushes.oldest(dev).filter(|_| bytes == 0);
        match queued.or_else(of_file_system).or_else(flush) {
            Some(slot) => self.provenance.completable.contains(self.bios[slot].log),
            None => self.provenance.must_complete,
        }
    }

    pub(super) fn block_complete(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let mut completion = *completion;
        if completion.flags.is_zone_append() {
            let Completion { dev, sector, bytes, .. } = completion;
            completion.sector = self.queues.writes.append_at(dev, sector, bytes).unwrap_or(sector);
        }
        let completion = &completion;
        let &Completion { dev, sector, bytes, ts, flags, is_bio, error } = completion;
        let place = Place { dev, sector };
        if !self.is_authoritative_at(dev, sector, bytes, flags) {
            return Ok(());
        }
        if !is_bio {
            self.block_requests.note_request(dev);
            self.block_requests.note_completion(dev);
        }
        if bytes == 0 && flags.is_flush_request() {
            return self.flush_done(dev, (ts, error), out);
        }
        if bytes == 0 {
            // Nothing waits for it if the device has FUA.
            let done = if is_bio { None } else { self.queues.writes.complete_flush(completion) };
            return match done {
                Some(done) => done.into_iter().try_for_each(|done| self.end_completed(done, out)),
                None if sector > 0 && !is_bio && !self.flushes.are_at(place) => self.second_end(place, ts, out),
                None => self.flush_complete(completion, out),
            };
        }
        if !is_bio && flags.is_write() {
            self.bios.note_done(dev, sector..sector.saturating_add(sectors(bytes)), ts, error);
        }
        self.queue_redirected(place, bytes, flags, ts, out)?;
        if flags.is_write() && !is_bio {
            self.block_requests.note_end(place);
        }
        let ended = self.queues.of(flags).complete(completion);
        if !ended.gaps.is_empty() {
            // Something was merged into a request that only its begin has shown.
            for done in ended.done.iter().filter(|done| done.bio.is_some() && done.issue.is_none()) {
                self.doubt_bytes_of(done.bio);
            }
        }
        if ended.is_known {
            self.block_requests.note_completed(dev, flags);
        }
        ended.done.into_iter().try_for_each(|done| self.end_completed(done, out))?;
        if is_bio {
            let is_part = |queue: &BlockQueue<BioSlot>| queue.find(dev, sector, bytes, |_| true).is_some();
            if !ended.is_known && flags.is_write() && !is_part(&self.queues.writes) {
                self.note_lost_bio(completion);
            }
            return Ok(());
        }
        if !ended.is_known && self.sees_own_bios_on(dev, flags) {
            self.orphans.of_sectors += 1;
            let what = || format!("completion of {place}");
            return self.lose(Reason::UnmatchedComplete, ts, out, what);
        }
        if self.sees_own_bios_on(dev, flags) {
            // The file system reports the completions of its own bios, so only another gap has lost its submit.
            let is_lost = |&&(sector, _): &&Gap| !self.bios.is_in_flight_at(Place { dev, sector });
            if let Some(&(sector, _)) = ended.gaps.iter().find(is_lost) {
                let has_begun = self.block_requests.has_completed(dev, flags.traffic());
                let reason = if has_begun { Reason::UnmatchedComplete } else { Reason::OtherCompletion };
                self.count(reason, ts, self.location(), || format!("completion of dev {dev} sector {sector}"));
            }
            return Ok(());
        }
        self.complete_requests(completion, ended.gaps, out)
    }

    /// A bio of a stacked device has ended, and its submit is not in the log.
    fn note_lost_bio(&mut self, completion: &Completion) {
        let &Completion { dev, sector, flags, ts, .. } = completion;
        if !self.block_requests.has_submits_to(dev, flags) {
            return;
        }
        let has_begun = self.block_requests.has_completed(dev, flags.traffic());
        self.orphans.of_sectors += u64::from(has_begun);
        let reason = if has_begun { Reason::UnmatchedComplete } else { Reason::OtherCompletion };
        self.count(reason, ts, self.location(), || format!("the end of a bio to dev {dev} sector {sector}"));
    }

    /// A request is done once more, without a length. This ends a write with a flush, and nothing follows. If its first end is missing, the write
    /// is unknown.
    fn second_end(&mut self, place: Place, ts: i64, out: &mut Out<'_>) -> Result<()> {
        if self.block_requests.has_ended(place) {
            return Ok(());
        }
        let what = || format!("completion of {place} without a length");
        // Where submits are not recorded, it may be that of a flush, which a device mapper gives a sector.
        if self.block_requests.sees_writes_to(place.dev)
            && self.block_requests.has_completed(place.dev, Traffic::Writes)
        {
            self.orphans.of_sectors += 1;
            return self.lose(Reason::UnmatchedComplete, ts, out, what);
        }
        self.count(Reason::OtherCompletion, ts, self.location(), what);
        Ok(())
    }

    /// Nothing says how much was merged into a request after its begin, so its size, and that of its sync, are not known.
    pub(super) fn doubt_size(&mut self, slot: BioSlot) {
        let row = &self.bios[slot].row;
        if row.is_request && row.issue.is_none() && !row.queue_unknown {
            self.bios[slot].row.extent.size_unknown = self.bios[slot].row.extent.bytes > 0;
            self.doubt_bytes_of(slot);
        }
    }

    fn doubt_bytes_of(&mut self, slot: BioSlot) {
        let bio = &self.bios[slot];
        if bio.row.is_request && bio.request.is_some() && bio.row.extent.bytes > 0 {
            self.requests[bio.request].row.extent.size_unknown = true;
        }
    }

    /// Whether a file system or probes report the bios of a device, and the block layer too.
    fn sees_own_bios_on(&self, dev: Dev, flags: BioFlags) -> bool {
        flags.is_write() && (self.seen.bios || self.probes.sees_bios) && self.queues.writes.has_seen(Some(dev))
    }

    /// A request is done, all of it. Its completion may have ended it before.
    pub(super) fn block_done(&mut self, e: &Event, place: Place, flags: BioFlags, out: &mut Out<'_>) -> Result<()> {
        let Place { dev, sector } = place;
        if !self.is_authoritative_at(dev, sector, 0, flags) {
            return Ok(());
        }
        // It comes after the completion of the same request, and says nothing more.
        if self.block_requests.sees_completions_of(dev) {
            return Ok(());
        }
        self.block_requests.note_request(dev);
        let ended = self.queues.of(flags).complete_at(place, flags, e.ts);
        if !ended.is_known {
            // A file system or probes may have reported the bios.
            let is_of_queue = sector > 0 && flags.is_write() && !self.seen.bios && !self.probes.sees_bios;
            return if is_of_queue { self.second_end(place, e.ts, out) } else { Ok(()) };
        }
        self.block_requests.note_completed(dev, flags);
        if flags.is_write() {
            self.block_requests.note_end(place);
        }
        for done in ended.done {
            if done.bio.is_some() && done.issue.is_none() {
                self.doubt_size(done.bio);
            }
            self.end_completed(done, out)?;
        }
        Ok(())
    }

    fn end_completed(&mut self, done: Completed<BioSlot>, out: &mut Out<'_>) -> Result<()> {
        let Completed { bio, issue, error, ts } = done;
        if bio.is_none() { Ok(()) } else { self.end_block_bio(bio, ts, (issue, error), out) }
    }

    /// Completes, or gives up, the bios that the queue has decided on.
    pub(super) fn end_decided(&mut self, decided: Decided<BioSlot>, out: &mut Out<'_>) -> Result<()> {
        for lost in decided.lost {
            if lost.bio.is_some() {
                self.bios.note_queued(&lost);
                self.give_up_bio(lost.bio, out)?;
            }
        }
        decided.completed.into_iter().try_for_each(|done| self.end_completed(done, out))
    }

    /// A bio that the block layer reports is complete. `issue`: what its queue knows of it.
    pub(super) fn end_block_bio(
        &mut self,
        slot: BioSlot,
        ts: i64,
        (issue, error): (Option<Issue>, Option<i32>),
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.bios.remove_overtaken(self.bios[slot].row.dev);
        self.bios.remove_load(slot);
        self.doubt_other_log(slot);
        let below = self.bios[slot].issue;
        let row = &mut self.bios[slot].row;
        (row.complete, row.error) = (Some(ts), error);
        set_issue(row, issue.or(below));
        self.close_bio(slot, out)
    }

    /// A bio in flight is redirected to another device, where the same bio is queued, and may be redirected again.
    ///
    /// The kernel names the whole disk as the target, also where a device mapper redirects a bio to a partition: the sector is then that of
    /// the partition, and the next event of the thread redirects the bio from there to the disk's sector.
    pub(super) fn block_remap(&mut self, e: &Event, from: Place, to: Place, bytes: u64, flags: BioFlags) {
        let task = self.tasks.id_of(e);
        let is_write = flags.is_write();
        let named = Place { dev: to.dev, sector: from.sector };
        if self.last_remaps.len() >= MAX_LAST_REMAPS {
            self.last_remaps.clear();
        }
        let last = self.last_remaps.insert(task, (from.dev, to));
        let continued = last.filter(|&(upper, target)| target == named && from.dev != to.dev && upper != from.dev);
        // An empty flush is redirected to a partition and not from there.
        if bytes == 0 {
            return self.flush_remap(from.dev, to);
        }
        if let Some((upper, _)) = continued {
            self.queues.of(flags).take_back_remap(named);
            self.devices_below.take_back(upper, to.dev);
            self.devices_below.add(upper, from.dev);
        }
        self.devices_below.add(from.dev, to.dev);
        let queued = self.queues.of(flags).find(from.dev, from.sector, 0, |_| true);
        let of_file_system = self.bios.oldest_in_flight_at(from).filter(|_| is_write);
        let submitted = of_file_system.or(queued.filter(|&slot: &BioSlot| slot.is_some()));
        let was_redirected = submitted.is_some_and(|slot| self.bios[slot].is_redirected());
        let is_redirected = self.bios.redirect(from, to, submitted)
            || continued.is_some() && self.bios.redirect(named, to, None)
            // The patch names the disk at the submit too.
            || from.dev != to.dev
                && submitted.is_none()
                && self.bios.just_submitted_at(named, e.tid).is_some_and(|slot| self.bios.redirect(named, to, Some(slot)));
        // Submits to a partition name its disk, so no partition has recorded submits. What is redirected without one has lost its own.
        let is_lost = from.dev != to.dev && self.block_requests.has_submits_to(from.dev, flags);
        if is_redirected || queued.is_some() || of_file_system.is_some() || is_lost {
            let is_whole = |&slot: &BioSlot| {
                let row = &self.bios[slot].row;
                row.place() == from && row.extent.bytes == bytes && from.dev != to.dev
            };
            let whole = queued.filter(|&slot| slot.is_some() && of_file_system.is_none()).filter(is_whole);
            let whole = whole.map(|slot| (slot, self.bios[slot].row.bio_id));
            if was_redirected && whole.is_some() {
                // It was redirected before, so it has several copies.
                self.queues_below.insert(from.dev);
            }
            self.queues.of(flags).remap(to, Redirected { from: from.dev, bytes, flags, whole });
        }
    }
}
