//! The requests that each device has reported, and the rows of requests that wait until it is known whether a bio has them.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::slots::RequestSlot;
use crate::event::Dev;
use crate::event::bio_flags::{BioFlags, Traffic};
use crate::event::place::Place;
use crate::location::Location;
use crate::names::NameId;
use crate::rows::Bio;

/// Ends of writes that are kept.
const MAX_ENDED: usize = 65_536;

#[derive(Debug, Default)]
pub(in crate::pair) struct BlockRequests {
    /// Devices to which the log records submits, of each kind.
    pub(in crate::pair) submits: HashSet<(Dev, Traffic), FixedState>,
    /// The drivers of devices to which submits of writes are recorded, by their numbers.
    pub(in crate::pair) drivers: HashSet<u32, FixedState>,
    /// Devices whose requests have completions in the log.
    completions: HashSet<Dev, FixedState>,
    /// Devices that have requests. One without them is stacked on others.
    pub(in crate::pair) requests: HashSet<Dev, FixedState>,
    /// Where writes have ended lately. One with a flush ends once more.
    ended: HashSet<Place, FixedState>,
    /// Devices, and kinds of traffic, of which both the submit and the completion of a bio are in the log.
    pub(in crate::pair) completed: HashSet<(Dev, Traffic), FixedState>,
    /// The first log that reports requests of a device without their bios, by device and kind. Others report the same ones.
    pub(in crate::pair) logs: HashMap<(Dev, Traffic), usize, FixedState>,
    pub(in crate::pair) held: Vec<HeldRequest>,
    /// Rows are no longer held back.
    pub(in crate::pair) is_certain: bool,
    /// Requests that begin, or enter the queue of the scheduler, are recorded: they do so in the thread that submits.
    pub(in crate::pair) sees_inserts: bool,
}

/// A complete row that is held back.
#[derive(Debug)]
pub(in crate::pair) struct HeldRequest {
    pub(in crate::pair) row: Bio,
    /// The request that it belongs to, which may have been written since.
    pub(in crate::pair) request: RequestSlot,
    pub(in crate::pair) location: Location,
    /// It was in flight when the log began.
    pub(in crate::pair) began_before: bool,
}

impl BlockRequests {
    /// Notes that the log records submits to a device.
    pub(in crate::pair) fn note_submits(&mut self, dev: Dev, flags: BioFlags) {
        self.submits.insert((dev, flags.traffic()));
        if flags.is_write() {
            self.drivers.insert(dev.major());
        }
    }

    /// Notes that a bio has completed that was submitted in the log.
    pub(in crate::pair) fn note_completed(&mut self, dev: Dev, flags: BioFlags) {
        self.completed.insert((dev, flags.traffic()));
    }

    /// Visits every name of the rows that are held back.
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.held.iter().flat_map(|held| [held.row.path, held.row.request_file.0]).for_each(f);
    }

    /// Whether bios of a file system on this device would be in the log. Those of a disk may be those of its partitions, so the driver counts.
    pub(in crate::pair) fn sees_submits_of(&self, dev: Dev) -> bool {
        dev.major() == 0 || self.drivers.contains(&dev.major())
    }

    pub(in crate::pair) fn note_completion(&mut self, dev: Dev) {
        self.completions.insert(dev);
    }

    pub(in crate::pair) fn note_request(&mut self, dev: Dev) {
        self.requests.insert(dev);
    }

    pub(in crate::pair) fn sees_requests_of(&self, dev: Dev) -> bool {
        self.requests.contains(&dev)
    }

    /// Notes that a write has ended.
    pub(in crate::pair) fn note_end(&mut self, place: Place) {
        if self.ended.len() >= MAX_ENDED {
            self.ended.clear();
        }
        self.ended.insert(place);
    }

    /// Whether a write has ended there. Each recorder of a device may report that it ends once more.
    pub(in crate::pair) fn has_ended(&self, place: Place) -> bool {
        self.ended.contains(&place)
    }

    /// Whether the log records submits of writes to a device.
    pub(in crate::pair) fn sees_writes_to(&self, dev: Dev) -> bool {
        self.submits.contains(&(dev, Traffic::Writes))
    }

    /// Whether the log records submits of a kind to a device.
    pub(in crate::pair) fn has_submits_to(&self, dev: Dev, flags: BioFlags) -> bool {
        self.submits.contains(&(dev, flags.traffic()))
    }

    /// Whether a bio has completed that was submitted in the log.
    pub(in crate::pair) fn has_completed(&self, dev: Dev, traffic: Traffic) -> bool {
        self.completed.contains(&(dev, traffic))
    }

    pub(in crate::pair) fn sees_completions_of(&self, dev: Dev) -> bool {
        self.completions.contains(&dev)
    }
}
