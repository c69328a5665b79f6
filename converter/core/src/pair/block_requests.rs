//! Requests of the block layer whose bios are not in the log: they are rows themselves.
//!
//! Many recordings have requests only, and every recording begins while some are in flight. Where a request begins, or is handed to the
//! driver, or is complete, what no bio covers of its sectors becomes a row.

use super::stores::block_requests::{BlockRequests, HeldRequest};
use super::stores::slots::{BioSlot, RequestSlot};
use super::{Out, Pairer};
use crate::block::queue::{Completion, Gap};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Traffic};
use crate::event::place::Place;
use crate::event::{Dev, Event};
use crate::losses::Reason;
use crate::rows::{Bio, Confidence};

/// Complete rows that are held back until it is certain that no event of a file system reports bios.
const MAX_HELD: usize = 4096;

/// Where a request of the block layer is when its first event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It begins, or enters the queue of the scheduler.
    Inserted,
    /// It is handed to the driver.
    Issued,
}

impl Pairer {
    /// Whether requests of a device that no bio covers are rows. The bios of writes are known where a file system or probes report them.
    pub(super) fn makes_requests_of(&mut self, dev: Dev, flags: BioFlags) -> bool {
        self.makes_requests(dev, flags.traffic())
    }

    pub(super) fn makes_requests(&mut self, dev: Dev, traffic: Traffic) -> bool {
        let are_known = traffic == Traffic::Writes && (self.seen.bios || self.probes.sees_bios);
        let log = self.provenance.log;
        !are_known && *self.block_requests.logs.entry((dev, traffic)).or_insert(log) == log
    }

    /// Opens a row for each part of a request that no bio covers.
    pub(super) fn open_requests(
        &mut self,
        e: &Event,
        (dev, sector, bytes): (Dev, i64, u64),
        gaps: Vec<Gap>,
        (flags, stage): (BioFlags, Stage),
    ) {
        if gaps.is_empty() || !self.makes_requests_of(dev, flags) {
            return;
        }
        // Bios that were merged into a request may be anybody's, but most often are of the thread that began it.
        let known = self.queues.of(flags).find(dev, sector, bytes, BioSlot::is_some);
        let may_be_of_thread = known.is_none_or(|slot| self.bios[slot].row.tid == e.tid);
        for (sector, bytes) in gaps {
            let slot = self.open_request_row(e, Place { dev, sector }, bytes, (flags, stage, may_be_of_thread));
            self.note_lost_submit(dev, flags, self.bios[slot].request, true);
            let queue = self.queues.of(flags);
            queue.queue(Place { dev, sector }, bytes, flags, e.ts, slot);
            if stage == Stage::Issued {
                queue.issue(dev, sector, bytes, e.ts);
            }
        }
    }

    fn open_request_row(
        &mut self,
        e: &Event,
        target: Place,
        bytes: u64,
        (flags, stage, may_be_of_thread): (BioFlags, Stage, bool),
    ) -> BioSlot {
        // Any thread may hand a request to the driver, so whose it is then follows only where those that are inserted are recorded: the
        // others go straight to the driver.
        let began_before = stage == Stage::Issued && !self.block_requests.has_completed(target.dev, flags.traffic());
        let is_by_submitter = may_be_of_thread && (stage == Stage::Inserted || self.block_requests.sees_inserts);
        let slot = self.open_block_bio_of(e, target, bytes, flags, is_by_submitter);
        let bio = &mut self.bios[slot];
        bio.row.is_request = true;
        bio.began_before = began_before;
        bio.row.queue_unknown = stage == Stage::Issued;
        bio.row.confidence = Confidence::Inferred;
        slot
    }

    /// Writes a row for each part of a completed request that no bio covers: the request began before the log, or its other events are lost.
    pub(super) fn complete_requests(
        &mut self,
        completion: &Completion,
        gaps: Vec<Gap>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let &Completion { dev, flags, error, ts, .. } = completion;
        if gaps.is_empty() || !self.makes_requests_of(dev, flags) {
            return Ok(());
        }
        for (sector, bytes) in gaps {
            self.note_lost_submit(dev, flags, RequestSlot::NONE, !self.phases_seen.issues);
            let slot = self.open_unknown_block_bio(Place { dev, sector }, bytes, flags, ts);
            self.bios[slot].row.is_request = true;
            self.bios[slot].began_before = !self.block_requests.has_completed(dev, flags.traffic());
            self.end_block_bio(slot, ts, (None, error), out)?;
        }
        Ok(())
    }

    /// Takes note of a request without a known bio. If its submit was lost, and the request of a file system is not known either, any one
    /// that is open may be that. Until a bio has completed that was submitted in the log, it may have begun before the log, and does if its
    /// issue is recorded elsewhere and not here. `may_be_new`: nothing says so.
    fn note_lost_submit(&mut self, dev: Dev, flags: BioFlags, request: RequestSlot, may_be_new: bool) {
        let key = (dev, flags.traffic());
        if request.is_some() || key.1 != Traffic::Writes {
            return;
        }
        let BlockRequests { submits, completed, .. } = &self.block_requests;
        if submits.contains(&key) && completed.contains(&key) {
            self.orphans.of_sectors += 1;
        } else if may_be_new && completed.is_empty() {
            self.orphans.before_submits += 1;
        }
    }

    /// Passes on the row of a bio, unless it is a request whose bios a file system may report yet.
    pub(super) fn write_bio(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let row = &self.bios[slot].row;
        if self.may_be_late(row.first_event, row.complete.unwrap_or(self.now)) {
            self.bios[slot].infer();
        }
        let bio = &self.bios[slot];
        if !bio.row.is_request && bio.row.sync_id.is_some() {
            return out.sink.bio(&bio.row, out.names);
        }
        if bio.row.is_report {
            return out.sink.bio(&bio.row, out.names);
        }
        if !bio.row.is_request {
            return self.write_without_owner(slot, out);
        }
        let traffic = traffic_of(&bio.row);
        let are_known = traffic == Traffic::Writes && (self.seen.bios || self.probes.sees_bios);
        if are_known {
            let (request, row) = (bio.request, bio.row.clone());
            self.requests.take_back(request, &row);
            return Ok(());
        }
        let held = HeldRequest {
            row: bio.row.clone(),
            request: bio.request,
            location: bio.location,
            began_before: bio.began_before,
        };
        let requests = &mut self.block_requests;
        requests.is_certain |= !requests.submits.is_empty() || requests.held.len() >= MAX_HELD;
        if traffic != Traffic::Writes || requests.is_certain {
            self.release_requests(out)?;
            return self.write_request(&held, out);
        }
        requests.held.push(held);
        Ok(())
    }

    /// Writes the rows that were held back, or forgets them if a file system reports bios.
    pub(super) fn release_requests(&mut self, out: &mut Out<'_>) -> Result<()> {
        let held = std::mem::take(&mut self.block_requests.held);
        if self.seen.bios || self.probes.sees_bios {
            for held in &held {
                self.requests.take_back(held.request, &held.row);
            }
            return Ok(());
        }
        held.iter().try_for_each(|held| self.write_request(held, out))
    }

    fn write_request(&mut self, held: &HeldRequest, out: &mut Out<'_>) -> Result<()> {
        let &HeldRequest { ref row, location, began_before, .. } = held;
        let key = (row.dev, traffic_of(row));
        // What is known by its completion only is a row where nothing else is recorded. Else its bio began before the log, or is a row that
        // was given up.
        let has_row = row.submit.is_some() || !self.block_requests.submits.contains(&key);
        if has_row && !self.commits.hold(self.tasks.id(row.tid, row.pid), row) {
            out.sink.bio(row, out.names)?;
        }
        let Some(complete) = row.complete else { return Ok(()) };
        let reason = if !self.block_requests.submits.contains(&key) {
            Reason::SubmitsMissing
        } else if began_before {
            Reason::OtherCompletion
        } else {
            Reason::UnmatchedComplete
        };
        let place = row.place();
        self.count(reason, complete, location, || format!("a request of {place}"));
        Ok(())
    }
}

fn traffic_of(row: &Bio) -> Traffic {
    row.flags.map_or(Traffic::Writes, BioFlags::traffic)
}
