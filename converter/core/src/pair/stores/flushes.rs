//! The flushes in flight, by device.

use std::collections::{HashSet, VecDeque};

use foldhash::fast::FixedState;

use super::slots::BioSlot;
use crate::collections::Map;
use crate::event::Dev;
use crate::event::bio_flags::BioFlags;
use crate::event::place::Place;

/// Flushes in flight that are kept for each device.
pub(in crate::pair) const MAX_IN_FLIGHT: usize = 4096;

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
#[derive(Debug)]
pub(in crate::pair) struct Flush {
    /// `BioSlot::NONE`: a bio of another device that was redirected.
    pub(in crate::pair) slot: BioSlot,
    /// A device mapper flushes with the sector of the write that asks for it. Others have none.
    pub(in crate::pair) sector: Option<i64>,
    /// The device may flush once more for it, as after a write with FUA.
    pub(in crate::pair) is_twice: bool,
    /// The bios that it is for are not in the log.
    pub(in crate::pair) is_request: bool,
    pub(in crate::pair) is_issued: bool,
    /// Nothing else waited for the request that it was issued with, as far as is known.
    pub(in crate::pair) is_alone: bool,
    /// When the device had emptied its cache, and how often it has since the issue. The bio is complete a moment later.
    pub(in crate::pair) flushed: Option<Flushed>,
    pub(in crate::pair) times_flushed: u32,
    /// The largest number that may be done before the bio is complete: those of other queues of the device may be among them.
    pub(in crate::pair) max_times: u32,
    /// Another queue flushed at the same time, so which end is its own is not known.
    pub(in crate::pair) is_overlapped: bool,
    /// Its end may have been taken for that of another one.
    pub(in crate::pair) is_doubtful: bool,
}

/// When a cache flush was done, and its error.
pub(in crate::pair) type Flushed = (i64, Option<i32>);

/// How often each cache flush that runs at the issue of a flush may be done before the bio that waits is complete.
pub(in crate::pair) const TIMES_OF_EACH: u32 = 2;

/// The same where bios end with completions of their own: then that of the bio was lost.
const TIMES_OF_LOST: u32 = 4;

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
#[derive(Debug, Default)]
pub(in crate::pair) struct Device {
    pub(in crate::pair) in_flight: VecDeque<Flush>,
    /// The devices of flushes that were redirected to it and are not queued there yet.
    pub(in crate::pair) redirected: VecDeque<Dev>,
    /// Cache flushes that the device works on. Each of its queues has one at a time.
    pub(in crate::pair) running: u32,
    /// Bios have ended with a completion of their own, so others without one have lost it.
    pub(in crate::pair) sees_ends: bool,
    /// Ends since the last cache flush, as long as more bios wait for theirs.
    pub(in crate::pair) ends: Vec<Flushed>,
    /// Ends that may still come of bios that were given up because of a doubt.
    pub(in crate::pair) surplus: usize,
    /// When the last cache flush was done, and whether another bio has asked for one since.
    pub(in crate::pair) last_done: Option<i64>,
    pub(in crate::pair) is_asked: bool,
    /// Issues of flushes are recorded.
    pub(in crate::pair) sees_issues: bool,
    /// Two of its queues have flushed at the same time.
    pub(in crate::pair) has_queues: bool,
    /// A bio has asked for a flush when none was in flight any more that began before the log.
    pub(in crate::pair) is_settled: bool,
}

impl Device {
    /// Removes the oldest flush in flight that `is_wanted`. If several are, and more than one queue flushed, the end may be that of any.
    pub(in crate::pair) fn take_first(&mut self, is_wanted: impl Fn(&Flush) -> bool) -> Option<Flush> {
        let mut wanted = self.in_flight.iter().enumerate().filter(|(_, flush)| is_wanted(flush));
        let (at, _) = wanted.next()?;
        if wanted.next().is_some() && self.in_flight.iter().any(|flush| is_wanted(flush) && flush.is_overlapped) {
            self.in_flight.iter_mut().filter(|flush| is_wanted(flush)).for_each(|flush| flush.is_doubtful = true);
        }
        self.in_flight.remove(at)
    }

    /// The bios whose cache flush is done, and that end in their order, each with a completion of its own. If that of no cache flush is known,
    /// those that were issued.
    pub(in crate::pair) fn ending(&self) -> impl Iterator<Item = &Flush> {
        let are_done = self.in_flight.iter().any(Flush::may_end);
        self.in_flight.iter().filter(move |flush| flush.is_ending(are_done))
    }

    /// Removes these of the bios of `ending`, by their numbers.
    pub(in crate::pair) fn take_ending(&mut self, wanted: std::ops::Range<usize>) -> Vec<Flush> {
        let are_done = self.in_flight.iter().any(Flush::may_end);
        let (mut number, mut taken) = (0, Vec::new());
        self.in_flight = std::mem::take(&mut self.in_flight)
            .into_iter()
            .filter_map(|flush| {
                let is_ending = flush.is_ending(are_done);
                number += usize::from(is_ending);
                if is_ending && wanted.contains(&(number - 1)) {
                    taken.push(flush);
                    return None;
                }
                Some(flush)
            })
            .collect();
        taken
    }
}

impl Flush {
    /// A bio of a device with a cache, which ends with a completion that names nothing.
    fn is_plain(&self) -> bool {
        self.sector.is_none() && !self.is_request && !self.is_overlapped
    }

    pub(in crate::pair) fn may_end(&self) -> bool {
        self.flushed.is_some() && self.is_plain()
    }

    fn is_ending(&self, are_done: bool) -> bool {
        self.is_plain() && if are_done { self.flushed.is_some() } else { self.is_issued }
    }
}

/// The flushes in flight, by device.
#[derive(Debug, Default)]
pub(in crate::pair) struct Flushes {
    pub(in crate::pair) by_device: Map<Dev, Device>,
}

impl Flushes {
    /// Moves flushes to the device that they were redirected to, if the device above never reports that they are queued there.
    pub(in crate::pair) fn take_redirected(&mut self, dev: Dev, queues_below: &HashSet<Dev, FixedState>) {
        let Some(device) = self.by_device.get_mut(&dev).filter(|device| !device.redirected.is_empty()) else {
            return;
        };
        for from in std::mem::take(&mut device.redirected) {
            let is_copied = queues_below.contains(&from);
            let upper = self.by_device.get_mut(&from).filter(|_| !is_copied && from != dev);
            let moved = upper.and_then(|upper| upper.in_flight.pop_front());
            if let Some(device) = self.by_device.get_mut(&dev) {
                device.in_flight.extend(moved);
                if is_copied {
                    device.redirected.push_back(from);
                }
            }
        }
    }

    pub(in crate::pair) fn add(
        &mut self,
        Place { dev, sector }: Place,
        slot: BioSlot,
        flags: BioFlags,
        is_request: bool,
    ) -> Option<BioSlot> {
        let device = self.by_device.entry(dev).or_default();
        // Its end may be taken for one that is still to come.
        let may_follow = device.surplus > 0 && device.running > 0;
        let is_doubtful = sector <= 0 && (may_follow || device.in_flight.iter().any(|flush| flush.is_doubtful));
        let in_flight = &mut device.in_flight;
        in_flight.push_back(Flush {
            slot,
            sector: Some(sector).filter(|&sector| sector > 0),
            is_twice: flags.contains(BioFlags::FUA),
            is_request,
            is_issued: false,
            is_alone: false,
            flushed: None,
            times_flushed: 0,
            max_times: TIMES_OF_EACH,
            is_overlapped: false,
            is_doubtful,
        });
        if in_flight.len() > MAX_IN_FLIGHT { in_flight.pop_front().map(|flush| flush.slot) } else { None }
    }

    /// Whether flushes of a place are in flight.
    pub(in crate::pair) fn are_at(&self, Place { dev, sector }: Place) -> bool {
        self.by_device.get(&dev).is_some_and(|device| device.in_flight.iter().any(|flush| flush.sector == Some(sector)))
    }

    /// The oldest flush in flight on a device that has a row.
    pub(in crate::pair) fn oldest(&self, dev: Dev) -> Option<BioSlot> {
        let mut slots = self.by_device.get(&dev)?.in_flight.iter().map(|flush| flush.slot);
        slots.find(|&slot| slot.is_some())
    }

    /// Removes those whose cache flush is certainly done, with that time, if it is known: it is not one that still runs.
    pub(in crate::pair) fn take_flushed(&mut self, dev: Dev) -> Vec<(BioSlot, Option<Flushed>)> {
        let Some(device) = self.by_device.get_mut(&dev) else { return Vec::new() };
        let mut flushed = Vec::new();
        let sees_ends = device.sees_ends;
        let may_run = |flush: &Flush| {
            if sees_ends {
                flush.times_flushed < flush.max_times.saturating_mul(TIMES_OF_LOST)
            } else {
                let is_first = flush.is_twice && flush.times_flushed < 2;
                is_first || device.running > 0 && flush.times_flushed < flush.max_times
            }
        };
        device.in_flight.retain(|flush| {
            let done = flush.flushed.filter(|_| !may_run(flush));
            let is_known = !flush.is_overlapped && !flush.is_doubtful && !sees_ends;
            flushed.extend(done.map(|done| (flush.slot, Some(done).filter(|_| is_known))));
            done.is_none()
        });
        flushed
    }

    /// Removes all.
    pub(in crate::pair) fn take_all(&mut self) -> Vec<(BioSlot, Option<Flushed>)> {
        let mut devices: Vec<_> = self.by_device.drain().collect();
        devices.sort_unstable_by_key(|(dev, _)| *dev);
        let flushes = devices.into_iter().flat_map(|(_, device)| {
            let is_known = move |flush: &Flush| !flush.is_overlapped && !flush.is_doubtful && !device.sees_ends;
            device.in_flight.into_iter().map(move |flush| (flush.slot, flush.flushed.filter(|_| is_known(&flush))))
        });
        flushes.filter(|(slot, _)| slot.is_some()).collect()
    }
}
