//! Bios: folios fill them, a submit sends them to the block layer, a completion ends them.

use super::lost_bios::CLOCK_SKEW_NS;
use super::phases::BioTimes;
use super::stores::bios::{EarlyComplete, set_issue};
use super::stores::slots::{BioSlot, RequestSlot};
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::place::Place;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR};
use crate::losses::Reason;
use crate::rows::{Bio, Confidence, Extent};

impl Pairer {
    pub(super) fn add_folio(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        (offset, len): (u64, u64),
        (dev, ino): (Dev, u64),
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        let mut found = self.bios.filling.get(&address).copied();
        let mut foreign_bytes = 0;
        if let Some(other) = found {
            let is_own = self.is_filled_by(other, task, id);
            if !is_own && self.hold_back(e, id, address) {
                return Ok(());
            }
            // A completion without a submit has ended it, so this folio is of the next bio at its address.
            if self.bios[other].early_complete.is_some() || !is_own {
                if !is_own {
                    foreign_bytes = self.bios[other].row.extent.bytes + self.bios[other].foreign_bytes;
                }
                self.bios.filling.remove(&address);
                self.give_up_bio(other, out)?;
                found = None;
            }
        }
        let slot = if let Some(slot) = found {
            slot
        } else if self.hold_back(e, id, address) {
            return Ok(());
        } else {
            // The kernel frees a bio before it uses the address again, so the completion of the earlier bio was lost.
            if let Some(before) = self.bios.in_flight.remove(&address) {
                self.give_up_bio(before, out)?;
            }
            let slot = self.open_bio(e, id, address, false, out)?;
            self.bios[slot].foreign_bytes = foreign_bytes;
            self.bios.filling.insert(address, slot);
            slot
        };
        if self.torn_lines.have_been {
            self.tear_next_bio(task, slot);
        }
        let bio_id = self.bios[slot].row.bio_id;
        if let Some(task) = self.tasks.get_mut(task) {
            task.last_filled = Some((slot, bio_id));
        }
        let bio = &mut self.bios[slot];
        bio.row.extent.bytes += len;
        bio.row.extent.folios += 1;
        bio.ranges.add(offset, len);
        bio.pages.add(dev, ino);
        if bio.request.is_some() {
            let open = &mut self.requests[bio.request];
            open.row.extent.bytes += len;
            open.row.extent.folios += 1;
            open.extend_to(e.ts);
            open.ranges.add(offset, len);
        }
        Ok(())
    }

    /// Whether a folio or a submit with this task and id belongs to a bio that is being filled.
    fn is_filled_by(&self, slot: BioSlot, task: u32, id: u64) -> bool {
        let bio = &self.bios[slot];
        bio.row.id == id
            && (bio.request.is_none()
                || self.requests[bio.request].task == task
                || self.find_own_request(task, id).is_none())
    }

    /// Whether a thread has filled a bio of this size last, and has not submitted it as far as the file system's events say.
    pub(super) fn is_filled_without_submit(&mut self, task: u32, bytes: u64) -> bool {
        let Some((slot, bio_id)) = self.tasks.get_mut(task).and_then(|task| task.last_filled) else { return false };
        let is_filling = self.bios.filling.get(&self.bios[slot].row.address) == Some(&slot);
        let bio = &mut self.bios[slot];
        let is_it = is_filling && bio.row.bio_id == bio_id && bio.row.extent.bytes == bytes;
        is_it && !std::mem::replace(&mut bio.is_queued, true)
    }

    /// Opens a bio of the request with this id. An id of background writeback has no request. `is_background`: the source says that it is
    /// background writeback.
    fn open_bio(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        is_background: bool,
        out: &mut Out<'_>,
    ) -> Result<BioSlot> {
        if id == 0 {
            let request = if is_background { RequestSlot::NONE } else { self.request_of_thread(e) };
            let bio = self.open_bio_of(e, id, address, request);
            if request.is_some() {
                self.infer(request, Some(bio));
            }
            return Ok(bio);
        }
        let request = if self.is_background(id) {
            RequestSlot::NONE
        } else {
            // An event that was held back is not of a request that began after it.
            let existed =
                |&slot: &RequestSlot| self.replayed.is_none_or(|at| self.requests[slot].row.first_event <= at);
            match self.find_request(self.tasks.id_of(e), id).filter(existed) {
                Some(slot) => slot,
                None => self.open_orphan(e, id, out)?,
            }
        };
        Ok(self.open_bio_of(e, id, address, request))
    }

    /// Opens a bio of a request, or of background writeback with `RequestSlot::NONE`.
    pub(super) fn open_bio_of(&mut self, e: &Event, id: u64, address: u64, request: RequestSlot) -> BioSlot {
        let bio_id = self.bios.take_bio_id();
        let mut sync_id = None;
        let mut confidence = Confidence::Exact;
        let mut is_partial = false;
        if request.is_some() {
            let open = &mut self.requests[request];
            if open.by_thread {
                confidence = Confidence::Inferred;
                open.row.confidence = open.row.confidence.max(confidence);
            }
            // Folios may have been added to it before the log began.
            is_partial = open.begins_with_bio && open.row.first_submit.is_none();
            open.row.bios += 1;
            open.bio_ids.push(bio_id);
            sync_id = Some(open.row.sync_id);
        }
        let row = Bio {
            sync_id,
            address,
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            extent: Extent { is_partial, ..Extent::default() },
            confidence,
            ..Bio::new(bio_id, id, e.ts)
        };
        let slot = self.bios.store(row, self.location(), self.provenance.log, request);
        if request.is_some() {
            let open_bios = &mut self.requests[request].open_bios;
            self.bios[slot].place = open_bios.len() as u32;
            open_bios.push(slot);
        }
        if self.torn_lines.have_been {
            self.tear_new_bio(self.tasks.id_of(e), id, address, slot);
        }
        slot
    }

    pub(super) fn submit(
        &mut self,
        e: &Event,
        id: u64,
        address: u64,
        place: Place,
        (bytes, flags): (u64, Option<BioFlags>),
        out: &mut Out<'_>,
    ) -> Result<()> {
        // A submit that was held back is of no bio that was begun after it.
        let had_begun = |&slot: &BioSlot| self.replayed.is_none_or(|at| self.bios[slot].row.first_event <= at);
        let filling = self.bios.filling.get(&address).copied().filter(had_begun);
        if filling.is_some() {
            self.bios.filling.remove(&address);
        }
        let slot = match filling {
            Some(slot) if self.is_filled_by(slot, self.tasks.id_of(e), id) => slot,
            other => {
                if self.hold_back(e, id, address) {
                    other.map(|other| self.bios.filling.insert(address, other));
                    return Ok(());
                }
                if let Some(other) = other {
                    self.give_up_bio(other, out)?;
                }
                let is_background = matches!(e.kind, Kind::BioSubmit { background: true, .. });
                self.open_bio(e, id, address, is_background, out)?
            }
        };
        if self.torn_lines.have_been {
            self.tear_next_bio(self.tasks.id_of(e), slot);
        }
        if let Some(before) = self.bios.in_flight.remove(&address) {
            self.give_up_bio(before, out)?;
        }
        if let Some(EarlyComplete { ts, location, .. }) = self.bios[slot].early_complete.take() {
            self.lose_at(Reason::UnmatchedComplete, ts, location, out, || format!("bio_complete bio 0x{address:x}"))?;
        }
        self.bios[slot].is_background |= matches!(e.kind, Kind::BioSubmit { background: true, .. });
        self.compare_size(slot, bytes, e.ts, out.names);
        if bytes > 0 {
            // The size counts, also if the log begins within the bio or lacks folios of it.
            let bio = &mut self.bios[slot];
            (bio.row.extent.is_partial, bio.lacks_folios) = (false, false);
        }
        self.bios[slot].row.flags = flags;
        self.begin_flight(e, slot, address, place);
        Ok(())
    }

    /// Submits a bio whose size is known.
    pub(super) fn begin_flight(&mut self, e: &Event, slot: BioSlot, address: u64, place: Place) {
        let Place { dev, sector } = place;
        self.bios.in_flight.insert(address, slot);
        let location = self.location();
        let task = self.tasks.id_of(e);
        let commit_id = self.commits.at(task, e.ts);
        let bio = &mut self.bios[slot];
        bio.location = location;
        bio.row.submit = Some(e.ts);
        bio.row.commit_id = commit_id;
        bio.row.sector = sector;
        bio.row.dev = dev;
        bio.row.tid = e.tid;
        bio.row.pid = e.pid;
        bio.row.comm = e.comm;
        self.commits.write_block(task, &bio.row);
        let (request, is_flush) = (bio.request, bio.row.direction() == Direction::Flush);
        self.bios.add_load(slot);
        if dev.is_known() && sector != NO_SECTOR {
            self.bios.link_at_sector(slot, place);
        }
        if request.is_some() {
            let open = &mut self.requests[request];
            if !is_flush {
                open.row.first_submit = Some(open.row.first_submit.map_or(e.ts, |first| first.min(e.ts)));
            }
            open.extend_to(e.ts);
        }
    }

    pub(super) fn complete(
        &mut self,
        e: &Event,
        address: u64,
        place: Place,
        error: Option<i32>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let slot = if address == 0 {
            self.bios.oldest_in_flight_at(place)
        } else {
            self.bios.in_flight.get(&address).copied()
        };
        // A late completion may be older than the submit. Then it belongs to an earlier bio at this address.
        let slot = slot.filter(|&slot| self.bios[slot].row.submit.is_none_or(|submit| submit <= e.ts));
        // The end of a bio that probes report is reported by probes.
        let mut slot = slot.filter(|&slot| !self.bios[slot].by_probe);
        if let Some(old) = slot
            && self.was_complete_before(old, e.ts)
        {
            self.give_up_bio(old, out)?;
            slot = None;
        }
        let Some(slot) = slot else {
            // It may belong to a bio whose submit was lost. That is known when no submit follows.
            if address != 0
                && let Some(&filling) = self.bios.filling.get(&address)
                && self.bios[filling].early_complete.is_none()
                && self.bios[filling].row.first_event <= e.ts
            {
                self.bios[filling].early_complete = Some(EarlyComplete { ts: e.ts, location: self.location(), error });
                self.last_complete = Some((address, e.ts));
                return Ok(());
            }
            self.note_orphan(address, e.ts);
            return self.lose(Reason::UnmatchedComplete, e.ts, out, || {
                if address == 0 { format!("bio_complete {place}") } else { format!("bio_complete bio 0x{address:x}") }
            });
        };
        self.last_complete = Some((address, e.ts));
        self.end_flight(e, slot, error, out)
    }

    /// Completes a bio, and the shares that other requests have in it.
    pub(super) fn end_flight(&mut self, e: &Event, slot: BioSlot, error: Option<i32>, out: &mut Out<'_>) -> Result<()> {
        let mut share = Some(slot);
        while let Some(slot) = share {
            self.bios.unlink(slot);
            self.bios.remove_overtaken(self.bios[slot].row.dev);
            self.bios.remove_load(slot);
            share = self.bios.take_other_share(slot);
            self.outlive(slot, e.ts);
            self.doubt_other_log(slot);
            let bio = &mut self.bios[slot];
            bio.row.complete = Some(e.ts);
            bio.row.error = error;
            set_issue(&mut bio.row, bio.issue);
            if self.phases_seen.states || self.phases_seen.folio_waits {
                let (file, sync_id, request) = (bio.file, bio.row.sync_id, bio.request);
                let of_request = || {
                    let row = (request.is_some()).then(|| &self.requests[request].row)?;
                    (row.ino != 0).then_some((row.dev, row.ino))
                };
                if let Some(file) = file.or_else(of_request) {
                    self.file_completions.complete(file, e.ts, sync_id);
                }
            }
            self.close_bio(slot, out)?;
        }
        Ok(())
    }

    /// The log that has recorded a bio has ended, or has no completions, and the current event, which ends the bio, is of another one: the bio's own end may
    /// be an earlier event, which counts as that of the other log.
    pub(super) fn doubt_other_log(&mut self, slot: BioSlot) {
        let bio = &mut self.bios[slot];
        if bio.log == self.provenance.log {
            return;
        }
        bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
        let request = bio.request;
        if request.is_some() {
            self.infer(request, None);
        }
    }

    /// Ends a bio whose own completion is lost when its request in the block layer was complete, which is a little earlier.
    fn end_by_request(&mut self, slot: BioSlot, (ts, error): (i64, Option<i32>)) {
        self.outlive(slot, ts);
        let bio = &mut self.bios[slot];
        (bio.row.complete, bio.row.error) = (Some(ts), bio.row.error.filter(|&error| error != 0).or(error));
        bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
        set_issue(&mut bio.row, bio.issue);
        let request = bio.request;
        if request.is_some() {
            self.infer(request, None);
        }
    }

    /// Closes a bio whose submit or completion will not come, and the shares that other requests have in it.
    pub(super) fn give_up_bio(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let mut share = Some(slot);
        while let Some(slot) = share {
            share = self.bios.take_other_share(slot);
            self.give_up_share(slot, out)?;
        }
        Ok(())
    }

    fn give_up_share(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        self.bios.unlink(slot);
        let Bio { dev, sector, extent: Extent { bytes, .. }, .. } = self.bios[slot].row;
        let bio = &mut self.bios[slot];
        let (ts, address, id, location) = (bio.row.ts(), bio.row.address, bio.row.id, bio.location);
        let (reason, event) = if bio.row.submit.is_none() {
            if let Some(early) = bio.early_complete.take() {
                (bio.row.complete, bio.row.error) = (Some(early.ts), early.error);
            }
            (Reason::NeverSubmitted, "bio_add_folio")
        } else {
            (Reason::NeverCompleted, "bio_submit")
        };
        let done = bio.done.filter(|_| reason == Reason::NeverCompleted);
        if reason == Reason::NeverCompleted {
            let place = self.bios[slot].queued_at.unwrap_or(Place { dev, sector });
            self.bios.remove_load(slot);
            self.doubt_size(slot);
            // The block layer may still have it: its request has waited long enough, not the bio itself.
            for decided in self.queues.each().map(|queue| queue.forget(place, bytes, slot)) {
                self.end_decided(decided, out)?;
            }
        }
        if let Some(done) = done {
            self.count(Reason::EndedByRequest, ts, location, || format!("a bio to dev {dev} sector {sector}"));
            self.end_by_request(slot, done);
            return self.close_bio(slot, out);
        }
        self.lose_at(reason, ts, location, out, || {
            if id == NO_ID && reason == Reason::NeverSubmitted {
                format!("{event} bio 0x{address:x}")
            } else if id == NO_ID {
                format!("a bio to dev {dev} sector {sector}")
            } else {
                format!("{event} id {id} bio 0x{address:x}")
            }
        })?;
        self.close_bio(slot, out)
    }

    /// Writes the row of a bio, and settles its request if that has waited for it.
    pub(super) fn close_bio(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let bio = &mut self.bios[slot];
        if bio.is_of_patch
            && self.seen.bios
            && let Some(submit) = bio.row.submit.take()
        {
            // The time of another event of the submit is not that of a complete recording.
            bio.row.first_event = submit;
            let (address, location) = (bio.row.address, bio.location);
            self.lose_at(Reason::NeverSubmitted, submit, location, out, || format!("bio_submit bio 0x{address:x}"))?;
        }
        let process = self.process(self.bios[slot].row.pid);
        let bio = &mut self.bios[slot];
        (bio.row.process, bio.row.cgroup) = (process.name, process.cgroup);
        (bio.row.extent.ranges, bio.row.extent.span) = bio.ranges.summary();
        if let Some((dev, ino)) = bio.pages.file() {
            if bio.row.direction() != Direction::Read {
                let writers = self.files.writers(dev, ino);
                if writers.names.is_some() {
                    (bio.row.writers, bio.row.writers_cgroup) = (writers.names, writers.cgroups);
                }
            }
            // A request says whose page cache its bios write.
            if bio.row.sync_id.is_none() {
                (bio.row.ino, bio.row.path) = (ino, self.files.path(dev, ino));
            }
        }
        if bio.request.is_some() {
            let of = &self.requests[bio.request].row;
            bio.row.request_file = (of.path, of.ino);
            // The start may come a little after an event that it precedes.
            let first = bio.row.first_event.saturating_add(CLOCK_SKEW_NS);
            bio.row.extent.is_partial &= of.start.is_none_or(|start| start > first);
        }
        bio.row.extent.is_partial |= bio.lacks_folios;
        self.write_bio(slot, out)?;
        let bio = &mut self.bios[slot];
        let (submit, complete, request, address) = (bio.row.submit, bio.row.complete, bio.request, bio.row.address);
        let (place, issue) = (bio.place, bio.row.issue);
        let (is_flush, is_request) = (bio.row.direction() == Direction::Flush, bio.row.is_request);
        let (is_partial, by_probe) = (bio.row.extent.is_partial, bio.by_probe);
        bio.by_probe = false;
        self.bios.free.push(slot);
        if request.is_none() {
            return Ok(());
        }
        let open = &mut self.requests[request];
        if is_partial {
            open.row.extent.lack_part();
        }
        open.open_bios.swap_remove(place as usize);
        if let Some(&moved) = open.open_bios.get(place as usize) {
            self.bios[moved].place = place;
        }
        if let Some(ts) = complete {
            open.extend_to(ts);
        }
        if let Some(submit) = submit.filter(|_| !open.settled) {
            match complete {
                Some(complete) if is_flush => open.evidence.flushes.push((submit, complete)),
                Some(complete) => open.evidence.bios.push(BioTimes { submit, issue, complete }),
                // Probes report the flush as a wait too, which has its end.
                None if is_flush && by_probe && open.row.waits_known.1 => {}
                None if is_flush => open.evidence.torn.push((submit, i64::MAX)),
                None => {}
            }
        }
        let is_last = open.over && open.open_bios.is_empty() && !open.settled;
        let task = open.task;
        let row = &mut open.row;
        row.submit_missing |= submit.is_none();
        open.closed_submit = open.closed_submit.into_iter().chain(submit.filter(|_| !is_flush)).min();
        if row.submit_missing && open.open_bios.is_empty() {
            // A submit that was counted may have turned out to be that of another event.
            row.first_submit = open.closed_submit;
        }
        row.has_requests |= is_request;
        match complete {
            // A flush writes nothing back.
            _ if is_flush => {}
            None => row.complete_missing = true,
            Some(ts) => row.last_complete = Some(row.last_complete.map_or(ts, |last| last.max(ts))),
        }
        let is_late = complete.zip(row.end).is_some_and(|(complete, end)| complete > end);
        if is_late && let Some(ts) = complete {
            self.count(Reason::CompletedAfterEnd, ts, self.location(), || format!("bio_complete bio 0x{address:x}"));
        }
        if is_last {
            self.settle(request);
            self.flush(task, out)?;
        }
        Ok(())
    }
}
