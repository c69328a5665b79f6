//! Flushes of their own: a bio without data asks for one, the block layer makes a request of it, and may answer several with the same request.

use std::collections::VecDeque;

use super::{Map, NO_SLOT, Out, Pairer, Slot};
use crate::block_queue::{Completion, Issue};
use crate::error::Result;
use crate::event::bio_flags::BioFlags;
use crate::event::{Dev, Event, NO_SECTOR};
use crate::losses::Reason;

/// Flushes in flight that are kept for each device.
const MAX_IN_FLIGHT: usize = 4096;

#[derive(Debug)]
struct Flush {
    /// `NO_SLOT`: a bio of another device that was redirected.
    slot: Slot,
    /// The bios that it is for are not in the log.
    is_request: bool,
    is_issued: bool,
    /// When the device had emptied its cache, and how often it has since the issue. The bio is complete a moment later.
    flushed: Option<Flushed>,
    times_flushed: u8,
}

/// When a cache flush was done, and its error.
type Flushed = (i64, Option<i32>);

/// So many cache flushes may be done before the bio that waited for one of them is complete: those of other queues of the device may be among
/// them.
const MAX_TIMES_FLUSHED: u8 = 2;

#[derive(Debug, Default)]
struct Device {
    in_flight: VecDeque<Flush>,
    /// Flushes that were redirected to it and are not queued there yet.
    redirected: u32,
    /// Cache flushes that the device works on. Each of its queues has one at a time.
    running: u32,
}

/// The flushes in flight, by device.
#[derive(Debug, Default)]
pub(super) struct Flushes(Map<Dev, Device>);

impl Flushes {
    fn add(&mut self, dev: Dev, slot: Slot, is_request: bool) -> Option<Slot> {
        let in_flight = &mut self.0.entry(dev).or_default().in_flight;
        in_flight.push_back(Flush { slot, is_request, is_issued: false, flushed: None, times_flushed: 0 });
        if in_flight.len() > MAX_IN_FLIGHT { in_flight.pop_front().map(|flush| flush.slot) } else { None }
    }

    /// The oldest flush in flight on a device that has a row.
    pub(super) fn oldest(&self, dev: Dev) -> Option<Slot> {
        let mut slots = self.0.get(&dev)?.in_flight.iter().map(|flush| flush.slot);
        slots.find(|&slot| slot != NO_SLOT)
    }

    /// Removes those whose cache flush is certainly done, with that time: it is not one that still runs.
    fn take_flushed(&mut self, dev: Dev) -> Vec<(Slot, Flushed)> {
        let Some(device) = self.0.get_mut(&dev) else { return Vec::new() };
        let mut flushed = Vec::new();
        let may_run = |flush: &Flush| device.running > 0 && flush.times_flushed < MAX_TIMES_FLUSHED;
        device.in_flight.retain(|flush| {
            let done = flush.flushed.filter(|_| !may_run(flush));
            flushed.extend(done.map(|done| (flush.slot, done)));
            done.is_none()
        });
        flushed
    }

    /// Removes all.
    pub(super) fn take_all(&mut self) -> Vec<(Slot, Option<Flushed>)> {
        let mut devices: Vec<_> = self.0.drain().collect();
        devices.sort_unstable_by_key(|(dev, _)| *dev);
        let flushes = devices.into_iter().flat_map(|(_, device)| device.in_flight);
        flushes.filter(|flush| flush.slot != NO_SLOT).map(|flush| (flush.slot, flush.flushed)).collect()
    }
}

impl Pairer {
    /// A bio without data asks for a flush.
    pub(super) fn flush_submit(&mut self, e: &Event, dev: Dev, flags: BioFlags, out: &mut Out<'_>) -> Result<()> {
        self.end_flushed(dev, out)?;
        let device = self.flushes.0.entry(dev).or_default();
        if let Some(left) = device.redirected.checked_sub(1) {
            device.redirected = left;
            self.flushes.add(dev, NO_SLOT, false);
            self.count(Reason::Remapped, e.ts, self.location(), || format!("a flush of dev {dev}"));
            return Ok(());
        }
        // Probes report the flushes of syncs as waits.
        if self.probes.sees_bios {
            self.flushes.add(dev, NO_SLOT, false);
            return Ok(());
        }
        self.open_flush(e, dev, flags, false, out)
    }

    fn open_flush(&mut self, e: &Event, dev: Dev, flags: BioFlags, is_request: bool, out: &mut Out<'_>) -> Result<()> {
        let is_by_submitter = !is_request || self.block_requests.sees_inserts;
        let slot = self.open_block_bio_of(e, (dev, NO_SECTOR), 0, flags, is_by_submitter);
        let row = &mut self.bios[slot].row;
        (row.is_request, row.queue_unknown) = (is_request, is_request);
        let lost = self.flushes.add(dev, slot, is_request).filter(|&lost| lost != NO_SLOT);
        lost.map_or(Ok(()), |lost| self.give_up_bio(lost, out))
    }

    /// A flush is redirected to the device below.
    pub(super) fn flush_remap(&mut self, from: Dev, to: Dev) {
        if from != to && self.flushes.0.get(&from).is_some_and(|device| !device.in_flight.is_empty()) {
            self.flushes.0.entry(to).or_default().redirected += 1;
        }
    }

    /// The request of a flush is handed to the driver. It is for all flushes that wait.
    pub(super) fn flush_issue(&mut self, e: &Event, dev: Dev, flags: BioFlags, out: &mut Out<'_>) -> Result<()> {
        self.end_flushed(dev, out)?;
        let is_waiting = |device: &Device| device.in_flight.iter().any(|flush| !flush.is_issued);
        let is_known = self.flushes.0.get(&dev).is_some_and(is_waiting)
            // It is for the bio of a write that asks for a flush.
            || self.block_queue.is_flushing(dev);
        if !is_known && self.makes_requests_of(dev, flags) {
            self.open_flush(e, dev, flags, true, out)?;
        }
        let Some(device) = self.flushes.0.get_mut(&dev) else { return Ok(()) };
        device.running = device.running.saturating_add(1);
        for flush in &mut device.in_flight {
            let is_first = !std::mem::replace(&mut flush.is_issued, true);
            if flush.slot == NO_SLOT {
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
        let Some(device) = self.flushes.0.get_mut(&dev) else { return Ok(()) };
        device.running = device.running.saturating_sub(1);
        for flush in device.in_flight.iter_mut().filter(|flush| flush.is_issued) {
            flush.flushed = Some(done);
            flush.times_flushed = flush.times_flushed.saturating_add(1);
        }
        let request = device.in_flight.iter().position(|flush| flush.is_issued && flush.is_request);
        let request = request.and_then(|at| device.in_flight.remove(at));
        request.map_or(Ok(()), |request| self.end_flush(request.slot, done, out))
    }

    /// A bio without data is complete, or the flush after a write that nothing is known of.
    pub(super) fn flush_complete(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        let &Completion { dev, sector, ts, error, .. } = completion;
        // A bio without data has no sector, so this one had data, and is complete with the flush after it.
        if sector > 0 {
            return Ok(());
        }
        let sees_issues = self.phases_seen.issues;
        let Some(device) = self.flushes.0.get_mut(&dev) else { return Ok(()) };
        let oldest = |is_wanted: fn(&Flush) -> bool| device.in_flight.iter().position(is_wanted);
        let at = oldest(|flush| flush.flushed.is_some()).or_else(|| oldest(|flush| flush.is_issued));
        // A device of a device mapper has no requests, so nothing issues its flushes; and not every recording has the issues of others.
        let at = at.or_else(|| oldest(|_| true).filter(|_| completion.is_bio || !sees_issues));
        let Some(flush) = at.and_then(|at| device.in_flight.remove(at)) else { return Ok(()) };
        self.end_flush(flush.slot, (ts, error), out)
    }

    /// Ends the flushes whose own completion has not come.
    fn end_flushed(&mut self, dev: Dev, out: &mut Out<'_>) -> Result<()> {
        let flushed = self.flushes.take_flushed(dev);
        flushed.into_iter().try_for_each(|(slot, done)| self.end_flush(slot, done, out))
    }

    /// Ends what is in flight at the end of the inputs.
    pub(super) fn finish_flushes(&mut self, out: &mut Out<'_>) -> Result<()> {
        for (slot, flushed) in self.flushes.take_all() {
            match flushed {
                Some(done) => self.end_flush(slot, done, out)?,
                None => self.give_up_bio(slot, out)?,
            }
        }
        Ok(())
    }

    fn end_flush(&mut self, slot: Slot, (ts, error): Flushed, out: &mut Out<'_>) -> Result<()> {
        if slot == NO_SLOT { Ok(()) } else { self.end_block_bio(slot, ts, (None, error), out) }
    }
}
