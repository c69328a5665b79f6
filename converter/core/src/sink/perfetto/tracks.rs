//! Track descriptors: tracks of threads, processes and devices, and the groups that hold them. Also selects the track of a slice.

use super::PerfettoTrace;
use super::fields::DEFAULT_TRACK;
use super::proto::{bytes, descriptor, int, nested, uint};
use crate::error::Result;
use crate::event::{Dev, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::rows::Bio;

/// Sibling order ranks below the root, and below a device.
pub(super) mod rank {
    pub(in super::super) const MARKS: i64 = 0;
    pub(in super::super) const THREADS: i64 = 1;
    pub(in super::super) const DEVICE: i64 = 2;
    pub(in super::super) const JOURNAL: i64 = 3;
    pub(in super::super) const SYNCS_IN_FLIGHT: i64 = 4;
    pub(in super::super) const LOSSES: i64 = 5;
    pub(in super::super) const RUN: i64 = 6;

    pub(in super::super) const SYNC_BIOS: i64 = 0;
    pub(in super::super) const INCOMPLETE_BIOS: i64 = 1;
    pub(in super::super) const BACKGROUND_BIOS: i64 = 2;
    pub(in super::super) const BIOS_IN_FLIGHT: i64 = 3;
    pub(in super::super) const BYTES_IN_FLIGHT: i64 = 4;
}

/// Tracks on which slices do not overlap: as many tracks as slices are open at the same time.
#[derive(Default)]
pub(super) struct Lanes {
    tracks: Vec<u64>,
    /// A binary tree of minima, the root at 1. Its second half holds the end of the last slice of each track, so that the first free track
    /// is found in logarithmic time: a log may have a million bios in flight.
    ends: Vec<i64>,
}

impl Lanes {
    /// Returns a track whose last slice ended by `start`, and occupies it until `end`.
    pub(super) fn find_free(&mut self, start: i64, end: i64) -> Option<u64> {
        if *self.ends.get(1)? > start {
            return None;
        }
        let capacity = self.ends.len() / 2;
        let mut node = 1;
        while node < capacity {
            node *= 2;
            node += usize::from(self.ends[node] > start);
        }
        self.occupy(node - capacity, end);
        self.tracks.get(node - capacity).copied()
    }

    fn occupy(&mut self, track: usize, end: i64) {
        let mut node = self.ends.len() / 2 + track;
        self.ends[node] = end;
        while node > 1 {
            node /= 2;
            self.ends[node] = self.ends[2 * node].min(self.ends[2 * node + 1]);
        }
    }

    /// Adds a track that is occupied until `end`.
    pub(super) fn add(&mut self, uuid: u64, end: i64) {
        let capacity = self.ends.len() / 2;
        if self.tracks.len() == capacity {
            let ends = std::mem::replace(&mut self.ends, vec![i64::MAX; 4 * capacity.max(1)]);
            for (track, &last) in ends.iter().skip(capacity).enumerate() {
                self.occupy(track, last);
            }
        }
        self.tracks.push(uuid);
        self.occupy(self.tracks.len() - 1, end);
    }
}

pub(super) struct DeviceTracks {
    /// Iid of the device's name as a string value, where the name is known.
    pub(super) name_iid: Option<u64>,
    group: u64,
    /// Counter tracks, as `counters` takes them.
    pub(super) bios_in_flight: u64,
    pub(super) bytes_in_flight: u64,
    /// Bios of syncs.
    sync_lanes: Lanes,
    background_lanes: Lanes,
    incomplete: Option<u64>,
}

impl PerfettoTrace {
    pub(super) fn group_track(&mut self, parent: Option<u64>, rank: i64, name: &str, description: &str) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::CHILD_ORDERING, descriptor::CHILD_ORDERING_EXPLICIT);
            if let Some(parent) = parent {
                uint(b, descriptor::PARENT_UUID, parent);
                int(b, descriptor::SIBLING_ORDER_RANK, rank);
            }
        })
    }

    pub(super) fn counter_track(
        &mut self,
        parent: u64,
        rank: i64,
        name: &str,
        unit: &str,
        description: &str,
    ) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            nested(b, descriptor::COUNTER, |b| bytes(b, descriptor::COUNTER_UNIT_NAME, unit.as_bytes()));
        })
    }

    /// Writes the descriptor of a track that the UI merges with its siblings of the same `merge_key`.
    pub(super) fn merged_track(
        &mut self,
        parent: u64,
        rank: i64,
        name: &str,
        merge_key: &str,
        description: &str,
    ) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            uint(b, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
            bytes(b, descriptor::SIBLING_MERGE_KEY, merge_key.as_bytes());
        })
    }

    /// Returns a track of a task that is free from `start` to `end`.
    pub(super) fn task_lane(&mut self, task: (u32, u32, NameId), start: i64, end: i64, names: &Names) -> Result<u64> {
        let (tid, pid, comm) = task;
        if tid == UNKNOWN_TASK && pid != UNKNOWN_TASK {
            return self.process_lane(pid, comm, start, end, names);
        }
        let known = self.threads.get_mut(&(tid, pid));
        let is_first = known.is_none();
        if let Some(uuid) = known.and_then(|lanes| lanes.find_free(start, end)) {
            return Ok(uuid);
        }
        let comm = names.text(comm);
        let uuid = if pid == UNKNOWN_TASK || !is_first {
            // A thread track cannot have several lanes.
            self.unowned_thread_track((tid, pid), &comm)?
        } else {
            self.descriptor(Some(self.first_ts), |b| {
                nested(b, descriptor::THREAD, |b| {
                    uint(b, descriptor::THREAD_PID, u64::from(pid));
                    uint(b, descriptor::THREAD_TID, u64::from(tid));
                    bytes(b, descriptor::THREAD_NAME, comm.as_bytes());
                });
            })?
        };
        self.threads.entry((tid, pid)).or_default().add(uuid, end);
        Ok(uuid)
    }

    /// Writes a plain track, named as the thread is, for a thread whose process is not known.
    ///
    /// A Perfetto thread track needs a pid. Next to a system trace a made-up pid would show a second thread with the same tid.
    fn unowned_thread_track(&mut self, (tid, pid): (u32, u32), comm: &str) -> Result<u64> {
        let group = if let Some(group) = self.threads_group {
            group
        } else {
            let description = "One track per thread: its sync calls, in each the request with its file, in that the phases: \
                 before the first bio submit, until the last bio completion (writeback), and after it. \
                 The log does not record the processes of the threads.";
            let group = self.group_track(Some(self.root), rank::THREADS, "Threads", description)?;
            self.threads_group = Some(group);
            group
        };
        let rank = i64::from(tid.min(i32::MAX as u32));
        let name = match (comm, tid) {
            ("", UNKNOWN_TASK) => "thread of unknown number".to_owned(),
            ("", _) => format!("thread {tid}"),
            (_, UNKNOWN_TASK) => comm.to_owned(),
            _ => format!("{comm} {tid}"),
        };
        // Tracks of the same name may be of several threads, so the UI does not merge them by name.
        let merge_key = format!("{tid} {pid}");
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            uint(b, descriptor::PARENT_UUID, group);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            uint(b, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
            bytes(b, descriptor::SIBLING_MERGE_KEY, merge_key.as_bytes());
        })
    }

    /// Returns the track of facts about the run; writes it the first time.
    pub(super) fn run_track(&mut self) -> Result<u64> {
        if let Some(uuid) = self.run_track {
            return Ok(uuid);
        }
        let description = "Facts about this recording and its conversion.";
        let uuid = self.group_track(Some(self.root), rank::RUN, "Run", description)?;
        self.run_track = Some(uuid);
        Ok(uuid)
    }

    /// Returns the track of a process; writes it with this name the first time.
    pub(super) fn process_track(&mut self, pid: u32, name: NameId, names: &Names) -> Result<u64> {
        if let Some((uuid, _)) = self.processes.get(&pid) {
            return Ok(*uuid);
        }
        let uuid = self.descriptor(Some(self.first_ts), |b| {
            nested(b, descriptor::PROCESS, |b| {
                uint(b, descriptor::PROCESS_PID, u64::from(pid));
                bytes(b, descriptor::PROCESS_NAME, names.text(name).as_bytes());
            });
        })?;
        self.processes.insert(pid, (uuid, Lanes::default()));
        Ok(uuid)
    }

    /// Returns a track below a process that is free from `start` to `end`, for events without a tid.
    fn process_lane(&mut self, pid: u32, comm: NameId, start: i64, end: i64, names: &Names) -> Result<u64> {
        let parent = self.process_track(pid, comm, names)?;
        if let Some(uuid) = self.processes.get_mut(&pid).and_then(|(_, lanes)| lanes.find_free(start, end)) {
            return Ok(uuid);
        }
        let uuid =
            self.merged_track(parent, 0, "syncs", "syncs", "Sync calls of the process; its threads are not known.")?;
        if let Some((_, lanes)) = self.processes.get_mut(&pid) {
            lanes.add(uuid, end);
        }
        Ok(uuid)
    }

    /// Returns the index of a device in `devices`; writes its tracks the first time.
    pub(super) fn device(&mut self, dev: Dev) -> Result<usize> {
        if let Some(at) = self.devices.place_of(dev) {
            return Ok(at);
        }
        let known_name = self.device_names.get(&dev);
        let name = match known_name {
            Some(name) => format!("Block I/O {name} ({dev})"),
            None if dev.is_known() => format!("Block I/O ({dev})"),
            None => "Block I/O (device unknown)".to_owned(),
        };
        let known_name = known_name.cloned();
        let description = "Bios from submit to completion. Bios in different rows are in flight at the same time.";
        let group = self.group_track(Some(self.root), rank::DEVICE, &name, description)?;
        let in_flight = "A bio whose completion is missing counts until its address is used again.";
        let bios_in_flight = self.counter_track(group, rank::BIOS_IN_FLIGHT, "bios in flight", "bios", in_flight)?;
        let bytes_in_flight =
            self.counter_track(group, rank::BYTES_IN_FLIGHT, "bytes in flight", "bytes", in_flight)?;
        // Most logs have one device.
        let is_first = self.default_counters.is_none();
        if is_first {
            self.set_default_counters([bios_in_flight, bytes_in_flight])?;
        }
        let tracks = DeviceTracks {
            name_iid: known_name.map(|name| self.intern_device_name(dev, &name)),
            group,
            bios_in_flight: if is_first { DEFAULT_TRACK } else { bios_in_flight },
            bytes_in_flight: if is_first { DEFAULT_TRACK } else { bytes_in_flight },
            sync_lanes: Lanes::default(),
            background_lanes: Lanes::default(),
            incomplete: None,
        };
        Ok(self.devices.add(dev, tracks))
    }

    /// Returns the iid of the name of a device.
    fn intern_device_name(&mut self, dev: Dev, name: &str) -> u64 {
        if self.names.device == 0 {
            self.names.device = self.interner.annotation_names(["device"]);
        }
        self.interner.device_name(dev, name)
    }

    /// Interns the names of the devices that have tracks.
    pub(super) fn intern_device_names(&mut self) {
        for place in 0..self.devices.len() {
            let dev = self.devices.dev(place);
            let Some(name) = self.device_names.get(&dev).cloned() else { continue };
            self.devices[place].name_iid = Some(self.intern_device_name(dev, &name));
        }
    }

    /// Returns a track of a device that is free for a bio from `start` to `end`.
    pub(super) fn bio_lane(&mut self, device: usize, bio: &Bio, start: i64, end: i64) -> Result<u64> {
        let is_background = bio.sync_id.is_none();
        if let Some(uuid) = self.bio_lanes(device, is_background).find_free(start, end) {
            return Ok(uuid);
        }
        let group = self.devices[device].group;
        let uuid = if is_background {
            let description = "Bios that no sync request caused, or whose owner is not known. Each slice is named after the thread that submitted it.";
            self.merged_track(group, rank::BACKGROUND_BIOS, "background writeback", "background", description)?
        } else {
            let description = "One slice per bio of a sync request, named after the thread that submitted it. \
                 A flow arrow leads from the request to it.";
            self.merged_track(group, rank::SYNC_BIOS, "bios of syncs", "sync", description)?
        };
        self.bio_lanes(device, is_background).add(uuid, end);
        Ok(uuid)
    }

    fn bio_lanes(&mut self, device: usize, is_background: bool) -> &mut Lanes {
        let tracks = &mut self.devices[device];
        if is_background { &mut tracks.background_lanes } else { &mut tracks.sync_lanes }
    }

    /// Returns the track of a device for bios whose submit or completion is missing.
    pub(super) fn incomplete_track(&mut self, device: usize) -> Result<u64> {
        if let Some(uuid) = self.devices[device].incomplete {
            return Ok(uuid);
        }
        let group = self.devices[device].group;
        let uuid = self.merged_track(
            group,
            rank::INCOMPLETE_BIOS,
            "bios not fully recorded",
            "incomplete",
            "Bios whose submit or completion is not in the log, as instants at their first event.",
        )?;
        self.devices[device].incomplete = Some(uuid);
        Ok(uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_goes_on_the_first_free_track() {
        let mut lanes = Lanes::default();
        let mut ends: Vec<i64> = Vec::new();
        let mut random = 7u64;
        for at in 0..2000i64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (start, end) = (at, at + (random >> 33) as i64 % 100);
            let first = ends.iter().position(|&last| last <= start);
            assert_eq!(lanes.find_free(start, end), first.map(|track| track as u64));
            if let Some(track) = first {
                ends[track] = end;
            } else {
                lanes.add(ends.len() as u64, end);
                ends.push(end);
            }
        }
        assert!(ends.len() > 50);
    }
}
