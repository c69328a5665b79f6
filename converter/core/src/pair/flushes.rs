//! Flushes of their own: a bio without data asks for one, the block layer makes a request of it, and may answer several with the same request.

use super::stores::bios::set_issue;
use super::stores::flushes::{Device, Flush, Flushed, MAX_IN_FLIGHT, TIMES_OF_EACH};
use super::stores::slots::BioSlot;
use super::{Out, Pairer};
use crate::block::queue::{Completion, Issue};
use crate::error::Result;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::place::Place;
use crate::event::{Dev, Event, NO_SECTOR};
use crate::losses::Reason;
use crate::rows::Confidence;

/// How soon after a cache flush the next one begins for a bio that came too late for it.
const MAX_KICK_NS: i64 = 1_000_000;

impl Pairer {
    /// A bio without data asks for a flush.
    pub(super) fn flush_submit(&mut self, e: &Event, target: Place, flags: BioFlags, out: &mut Out<'_>) -> Result<()> {
        let Place { dev, sector } = target;
        if sector > 0 {
            self.block_requests.note_end(target);
        }
        self.end_flushed(dev, out)?;
        let device = self.flushes.by_device.entry(dev).or_default();
        device.is_asked = true;
        device.is_settled |= device.in_flight.is_empty() && (device.last_done.is_some() || device.sees_ends);
        if let Some(from) = device.redirected.pop_front() {
            self.queues_below.insert(from);
            self.flushes.add(target, BioSlot::NONE, flags, false);
            self.count(Reason::Remapped, e.ts, self.location(), || format!("a flush of dev {dev}"));
            return Ok(());
        }
        if self.bio_above(e, dev, Direction::Flush).is_some() {
            self.flushes.add(target, BioSlot::NONE, flags, false);
            self.count(Reason::Remapped, e.ts, self.location(), || format!("a flush of dev {dev}"));
            return Ok(());
        }
        // Probes report the flushes of syncs as waits.
        if self.probes.sees_bios {
            self.flushes.add(target, BioSlot::NONE, flags, false);
            return Ok(());
        }
        self.open_flush(e, target, flags, false, out)
    }

    fn open_flush(
        &mut self,
        e: &Event,
        target: Place,
        flags: BioFlags,
        is_request: bool,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let is_by_submitter = !is_request || self.block_requests.sees_inserts;
        let slot = self.open_block_bio_of(e, Place { sector: NO_SECTOR, ..target }, 0, flags, is_by_submitter);
        let row = &mut self.bios[slot].row;
        (row.is_request, row.queue_unknown) = (is_request, is_request);
        let lost = self.flushes.add(target, slot, flags, is_request).filter(|&lost| lost.is_some());
        lost.map_or(Ok(()), |lost| self.give_up_bio(lost, out))
    }

    /// A flush is redirected to the device below.
    pub(super) fn flush_remap(&mut self, from: Dev, place: Place) {
        let Place { dev: to, sector } = place;
        if sector > 0 {
            self.block_requests.note_end(place);
        }
        if from != to && self.flushes.by_device.get(&from).is_some_and(|device| !device.in_flight.is_empty()) {
            let redirected = &mut self.flushes.by_device.entry(to).or_default().redirected;
            redirected.push_back(from);
            if redirected.len() > MAX_IN_FLIGHT {
                redirected.pop_front();
            }
        }
    }

    /// The request of a flush is handed to the driver. It is for all flushes that wait.
    pub(super) fn flush_issue(&mut self, e: &Event, dev: Dev, flags: BioFlags, out: &mut Out<'_>) -> Result<()> {
        self.end_flushed(dev, out)?;
        self.flushes.take_redirected(dev, &self.queues_below);
        self.end_burst(dev, e.ts, true, out)?;
        let is_waiting = |device: &Device| device.in_flight.iter().any(|flush| !flush.is_issued);
        let is_flushing = self.queues.writes.is_flushing(dev);
        let is_known = self.flushes.by_device.get(&dev).is_some_and(is_waiting)
            // It is for the bio of a write that asks for a flush.
            || is_flushing;
        if !is_known && self.makes_requests_of(dev, flags) {
            self.open_flush(e, Place { dev, sector: NO_SECTOR }, flags, true, out)?;
        }
        let device = self.flushes.by_device.entry(dev).or_default();
        device.running = device.running.saturating_add(1);
        device.sees_issues = true;
        device.has_queues |= device.running > 1;
        let is_alone = !is_flushing && device.in_flight.iter().filter(|flush| !flush.is_issued).count() == 1;
        for flush in &mut device.in_flight {
            let is_first = !std::mem::replace(&mut flush.is_issued, true);
            flush.is_alone |= is_first && is_alone;
            flush.is_overlapped |= device.running > 1;
            if is_first {
                flush.max_times = device.running.saturating_mul(TIMES_OF_EACH);
            }
            if flush.slot.is_none() || flush.is_doubtful {
                continue;
            }
            let issue = &mut self.bios[flush.slot].issue;
            if is_first {
                Issue::update(issue, e.ts, &(NO_SECTOR..NO_SECTOR));
            } else if !flush.is_request && flush.flushed.is_none() && issue.is_some_and(|issue| issue.ts != e.ts) {
                // Another queue of the device flushes too, and which of the two is for this bio is not known.
                *issue = None;
            }
        }
        Ok(())
    }

    /// The device has emptied its cache.
    pub(super) fn flush_done(&mut self, dev: Dev, done: Flushed, out: &mut Out<'_>) -> Result<()> {
        self.end_flushed(dev, out)?;
        self.flushes.take_redirected(dev, &self.queues_below);
        self.end_burst(dev, done.0, false, out)?;
        let Some(device) = self.flushes.by_device.get_mut(&dev) else { return Ok(()) };
        // Without its issue, it may have been that of any.
        let is_unknown = device.running == 0;
        (device.last_done, device.is_asked) = (Some(done.0), false);
        device.running = device.running.saturating_sub(1);
        // A bio that the device flushes for twice may have lost its first issue. Then the second one does not say whether this flush is the first.
        device.in_flight.iter_mut().for_each(|flush| flush.is_issued |= is_unknown && flush.is_twice);
        for flush in device.in_flight.iter_mut().filter(|flush| flush.is_issued) {
            flush.flushed = Some(done);
            flush.times_flushed = flush.times_flushed.saturating_add(1);
            flush.is_overlapped |= is_unknown;
            if is_unknown && flush.slot.is_some() {
                self.bios[flush.slot].issue = None;
            }
        }
        let request = device.take_first(|flush| flush.is_issued && flush.is_request);
        request.map_or(Ok(()), |request| self.end_flush(&request, done, out))
    }

    /// A bio without data is complete, or the flush after a write that nothing is known of.
    pub(super) fn flush_complete(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let &Completion { dev, sector, ts, error, .. } = completion;
        let of_place = Some(sector).filter(|&sector| sector > 0);
        let sees_issues = self.phases_seen.issues;
        let Some(device) = self.flushes.by_device.get_mut(&dev) else { return Ok(()) };
        if of_place.is_none() && !completion.is_bio {
            device.ends.push((ts, error));
            let ending = device.ending().count();
            if ending >= device.ends.len() {
                return self.end_in_order(dev, ending, out);
            }
            device.ends.pop();
        }
        let flush = match of_place {
            // A request that has no flush there had data, and is complete with the flush after it.
            Some(_) => device.take_first(|flush| flush.sector == of_place),
            None => device.take_first(|flush| flush.flushed.is_some() && flush.sector.is_none()),
        };
        let flush = flush
            .or_else(|| device.take_first(|flush| flush.is_issued && flush.sector.is_none() && of_place.is_none()));
        // A device of a device mapper has no requests, so nothing issues its flushes; and not every recording has the issues of others.
        let is_any = of_place.is_none() && (completion.is_bio || !sees_issues);
        let flush = flush.or_else(|| if is_any { device.take_first(|flush| flush.sector.is_none()) } else { None });
        let Some(flush) = flush else { return self.end_waiting(completion, out) };
        device.sees_ends = true;
        if flush.is_twice
            && flush.times_flushed < 2
            && !completion.flags.contains(BioFlags::FUA)
            && flush.slot.is_some()
        {
            // The device has no FUA, so it flushes twice. An issue was lost, and nothing says which one.
            self.bios[flush.slot].issue = None;
        }
        let may_be_older = is_any && !flush.is_issued && !device.is_settled;
        if may_be_older && flush.slot.is_some() {
            self.infer_flush(flush.slot);
        }
        self.rest_if_idle(dev);
        self.end_flush(&flush, (ts, error), out)
    }

    /// Nothing is left to flush for. The end of a cache flush may have been lost.
    fn rest_if_idle(&mut self, dev: Dev) {
        let is_flushing = self.queues.writes.is_flushing(dev);
        if let Some(device) =
            self.flushes.by_device.get_mut(&dev).filter(|device| device.in_flight.is_empty() && !is_flushing)
        {
            device.running = 0;
        }
    }

    /// As many bios as waited for a cache flush have ended: in the order in which they asked for it.
    fn end_in_order(&mut self, dev: Dev, ending: usize, out: &mut Out<'_>) -> Result<()> {
        let Some(device) = self.flushes.by_device.get_mut(&dev) else { return Ok(()) };
        device.sees_ends = true;
        if device.ends.len() < ending {
            return Ok(());
        }
        if !device.in_flight.iter().any(Flush::may_end) {
            // The end of the cache flush was lost.
            device.running = device.running.saturating_sub(1);
        }
        let flushes = device.take_ending(0..ending);
        let ends = std::mem::take(&mut device.ends);
        self.rest_if_idle(dev);
        flushes.iter().zip(ends).try_for_each(|(flush, end)| self.end_flush(flush, end, out))
    }

    /// A bio has ended although none is known that was issued. The issue was lost, or the bio is not in the log.
    fn end_waiting(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let &Completion { dev, sector, flags, ts, is_bio, .. } = completion;
        let is_row = self.makes_requests_of(dev, flags);
        let Some(device) = self.flushes.by_device.get_mut(&dev) else { return Ok(()) };
        // Before the first issue, the bio was in flight when the log began.
        if sector > 0 || is_bio || !device.sees_issues {
            return Ok(());
        }
        device.sees_ends = true;
        if device.surplus > 0 {
            device.surplus -= 1;
            return Ok(());
        }
        device.in_flight.iter_mut().filter(|flush| flush.sector.is_none()).for_each(|flush| flush.is_doubtful = true);
        let Some(flush) = device.take_first(|flush| flush.sector.is_none()) else {
            // The request is a row, unless the bios of writes are known otherwise.
            if !is_row && self.block_requests.sees_writes_to(dev) {
                self.count(Reason::UnmatchedComplete, ts, self.location(), || format!("a flush of dev {dev}"));
            }
            return Ok(());
        };
        self.leave_open(flush.slot, out)
    }

    /// The next cache flush of a device begins, or is done although its begin was lost. A queue has one at a time, and the bios that wait for it
    /// end before the next one begins. So the ends of bios that still wait were lost, unless they came too late for it: the block layer chooses
    /// the bios a moment before it issues the request.
    fn end_burst(&mut self, dev: Dev, ts: i64, is_issue: bool, out: &mut Out<'_>) -> Result<()> {
        let Some(device) = self.flushes.by_device.get_mut(&dev) else { return Ok(()) };
        if !is_issue && device.running > 0 {
            return Ok(());
        }
        device.surplus = 0;
        let ending = device.ending().count();
        let ends = std::mem::take(&mut device.ends);
        if ending == 0 || !device.sees_ends || device.running > 0 {
            return Ok(());
        }
        if ends.is_empty() && device.ending().all(|flush| flush.is_alone) {
            let lost = device.take_ending(0..ending);
            return lost.iter().try_for_each(|flush| self.give_up_flush(flush.slot, out));
        }
        let is_soon = device.last_done.is_some_and(|done| ts.saturating_sub(done) <= MAX_KICK_NS);
        let is_asked =
            device.is_asked || device.in_flight.iter().any(|flush| !flush.is_issued && flush.sector.is_none());
        // A single bio is too late, because the device flushes again for somebody. If there are several, ends may be lost.
        let are_late = is_issue && is_soon && !is_asked && !device.has_queues && ending == ends.len() + 1;
        if are_late {
            let ended = device.take_ending(0..ends.len());
            let issued_again: Vec<BioSlot> = device.ending().map(|flush| flush.slot).collect();
            for flush in device.in_flight.iter_mut().filter(|flush| flush.may_end()) {
                (flush.is_issued, flush.flushed, flush.times_flushed) = (false, None, 0);
            }
            for slot in issued_again.into_iter().filter(|&slot| slot.is_some()) {
                self.bios[slot].issue = None;
            }
            return ended.iter().zip(ends).try_for_each(|(flush, end)| self.end_flush(flush, end, out));
        }
        device.surplus = ending - ends.len();
        let doubtful = device.take_ending(0..ending);
        // An end of these may come before theirs.
        device.in_flight.iter_mut().filter(|flush| flush.sector.is_none()).for_each(|flush| flush.is_doubtful = true);
        doubtful.iter().try_for_each(|flush| self.leave_open(flush.slot, out))
    }

    /// Ends the flushes whose own completion has not come.
    fn end_flushed(&mut self, dev: Dev, out: &mut Out<'_>) -> Result<()> {
        for (slot, done) in self.flushes.take_flushed(dev) {
            match done {
                _ if slot.is_none() => {}
                Some(done) => self.end_with_cache(slot, done, out)?,
                None if self.flushes.by_device.get(&dev).is_some_and(|device| device.sees_ends) => {
                    self.give_up_flush(slot, out)?;
                }
                None => self.leave_open(slot, out)?,
            }
        }
        Ok(())
    }

    /// Ends what is in flight at the end of the inputs.
    pub(super) fn finish_flushes(&mut self, out: &mut Out<'_>) -> Result<()> {
        for (slot, flushed) in self.flushes.take_all() {
            match flushed {
                Some(done) => self.end_with_cache(slot, done, out)?,
                None => self.give_up_flush(slot, out)?,
            }
        }
        Ok(())
    }

    fn end_flush(&mut self, flush: &Flush, (ts, error): Flushed, out: &mut Out<'_>) -> Result<()> {
        match flush.slot {
            BioSlot::NONE => Ok(()),
            slot if flush.is_doubtful => self.leave_open(slot, out),
            slot => self.end_block_bio(slot, ts, (None, error), out),
        }
    }

    /// Ends a flush whose own completion is not in the log when the device had emptied its cache, which is a little earlier.
    fn end_with_cache(&mut self, slot: BioSlot, (ts, error): Flushed, out: &mut Out<'_>) -> Result<()> {
        self.infer_flush(slot);
        self.end_block_bio(slot, ts, (None, error), out)
    }

    fn infer_flush(&mut self, slot: BioSlot) {
        let bio = &mut self.bios[slot];
        bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
        let request = bio.request;
        if request.is_some() {
            self.infer(request, None);
        }
    }

    fn give_up_flush(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        if slot.is_none() {
            return Ok(());
        }
        let issue = self.bios[slot].issue;
        set_issue(&mut self.bios[slot].row, issue);
        self.give_up_bio(slot, out)
    }

    /// Writes a flush whose end is in the log, although which one it is is not known.
    fn leave_open(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        if slot.is_none() {
            return Ok(());
        }
        self.bios.remove_load(slot);
        let issue = self.bios[slot].issue;
        set_issue(&mut self.bios[slot].row, issue);
        let (ts, location, dev) = (self.bios[slot].row.ts(), self.bios[slot].location, self.bios[slot].row.dev);
        self.count(Reason::FlushEndUnknown, ts, location, || format!("a flush of dev {dev}"));
        self.close_bio(slot, out)
    }
}
