//! Track descriptors: tracks of threads, processes and devices, and the groups that hold them. Also selects the track of a slice.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::bios::Cause;
use super::fields::DEFAULT_TRACK;
use super::proto::{bytes, int, nested, uint};
use super::{PerfettoTrace, human};
use crate::error::Result;
use crate::event::{Dev, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::rows::derived::{column, tid_of_track};
use crate::rows::{Bio, Value};
use crate::trace_layout::Category;
use crate::trace_layout::fields::descriptor;

/// Sibling order ranks below the root, and below a device.
pub(super) mod rank {
    pub(in super::super) const MARKS: i64 = 0;
    pub(in super::super) const SYNCS_IN_FLIGHT: i64 = 1;
    pub(in super::super) const PAGE_CACHE: i64 = 2;
    pub(in super::super) const THREADS: i64 = 3;
    pub(in super::super) const DEVICE: i64 = 4;
    pub(in super::super) const JOURNAL: i64 = 5;
    /// More than a window shows.
    pub(in super::super) const MANY_THREADS: i64 = 6;
    pub(in super::super) const LOSSES: i64 = 7;
    pub(in super::super) const RUN: i64 = 8;
    pub(in super::super) const FILES: i64 = 9;

    // Those of the causes of bios come before.
    pub(in super::super) const INCOMPLETE_BIOS: i64 = super::Cause::COUNT as i64;
    pub(in super::super) const BIOS_IN_FLIGHT: i64 = INCOMPLETE_BIOS + 1;
    pub(in super::super) const BYTES_IN_FLIGHT: i64 = INCOMPLETE_BIOS + 2;
    pub(in super::super) const NEVER_COMPLETED: i64 = INCOMPLETE_BIOS + 3;
}

/// So many threads are above the devices, more are below, so that nobody has to look for either.
const FEW_THREADS: usize = 12;

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

/// Threads whose process is not known.
#[derive(Default)]
pub(super) struct Unowned {
    threads: Vec<UnownedThread>,
    /// By (tid, pid).
    places: HashMap<(u32, u32), usize, FixedState>,
    /// The thread of each name.
    names: HashMap<String, u32, FixedState>,
}

struct UnownedThread {
    /// tid, pid
    id: (u32, u32),
    name: String,
    tracks: Vec<u64>,
    waited_ns: i64,
}

impl Unowned {
    /// Adds a thread and returns its place.
    fn add(&mut self, id: (u32, u32), comm: &str) -> usize {
        let tid = id.0;
        let mut name = match (comm, tid) {
            ("", UNKNOWN_TASK) => "thread of unknown number".to_owned(),
            ("", _) => format!("thread {tid}"),
            (_, UNKNOWN_TASK) => comm.to_owned(),
            _ => format!("{comm} {tid}"),
        };
        // The name of a track says its thread.
        while *self.names.entry(name.clone()).or_insert(tid) != tid {
            name.push('\'');
        }
        self.places.insert(id, self.threads.len());
        self.threads.push(UnownedThread { id, name, tracks: Vec::new(), waited_ns: 0 });
        self.threads.len() - 1
    }
}

pub(super) struct DeviceTracks {
    /// Iid of the device's name as a string value, where the name is known.
    pub(super) name_iid: Option<u64>,
    group: u64,
    /// Counter tracks, as `counters` takes them.
    pub(super) bios_in_flight: u64,
    pub(super) bytes_in_flight: u64,
    /// The same, by their uuids.
    pub(super) counter_tracks: [u64; 2],
    /// By their cause.
    lanes: [Lanes; Cause::COUNT],
    incomplete: Option<u64>,
    /// The submits of bios whose completion is not recorded.
    pub(super) never_completed: Vec<i64>,
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
            self.unowned_thread_track((tid, pid), &comm, start)?
        } else {
            // The main thread has the name of the process.
            if tid == pid || !self.first_threads.contains_key(&pid) {
                self.first_threads.insert(pid, comm.to_string());
            }
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

    /// Returns a new plain track, named as the thread is, for a thread whose process is not known. Its descriptor follows at the end, when it
    /// is known how long each thread waited.
    ///
    /// A Perfetto thread track needs a pid. Next to a system trace a made-up pid would show a second thread with the same tid.
    fn unowned_thread_track(&mut self, (tid, pid): (u32, u32), comm: &str, start: i64) -> Result<u64> {
        let thread = match self.unowned.places.get(&(tid, pid)) {
            Some(&at) => at,
            None => self.unowned.add((tid, pid), comm),
        };
        let uuid = self.take_uuid();
        self.unowned.threads[thread].tracks.push(uuid);
        let name = self.interner.event_name(&self.unowned.threads[thread].name);
        let tid = (self.names.bio.iid(const { column::<Bio>("tid") }), tid_of_track(tid));
        let values = [tid, (self.names.track, Value::Int(uuid as i64))];
        // The engine drops the arguments of more than 512 instants of one time.
        self.known_instant(start, Category::Track, name, &values, &Names::default())?;
        Ok(uuid)
    }

    /// Notes that a thread was in a sync for a time.
    pub(super) fn add_waited(&mut self, (tid, pid): (u32, u32), ns: i64) {
        if let Some(&at) = self.unowned.places.get(&(tid, pid)) {
            let waited = &mut self.unowned.threads[at].waited_ns;
            *waited = waited.saturating_add(ns);
        }
    }

    /// Writes the descriptors of the tracks of threads whose process is not known, those that waited longest first.
    pub(super) fn thread_descriptors(&mut self) -> Result<()> {
        let mut threads = std::mem::take(&mut self.unowned.threads);
        if threads.is_empty() {
            return Ok(());
        }
        let description = "One track per thread: its sync calls, in each the request with its file, in that the phases: \
             before the first bio submit, until the last bio completion (writeback), and after it. \
             Those that waited longest come first. The log does not record the processes of the threads.";
        let rank = if threads.len() > FEW_THREADS { rank::MANY_THREADS } else { rank::THREADS };
        let group = self.group_track(Some(self.root), rank, "Threads", description)?;
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.waited_ns), thread.id));
        for (rank, thread) in threads.iter().enumerate() {
            // Tracks of the same name may be of several threads, so the UI does not merge them by name.
            let merge_key = format!("{} {}", thread.id.0, thread.id.1);
            let mut description = b"It was in syncs for ".to_vec();
            human::push_ms(&mut description, thread.waited_ns);
            for &uuid in &thread.tracks {
                self.descriptor_of(uuid, None, |b| {
                    bytes(b, descriptor::NAME, thread.name.as_bytes());
                    bytes(b, descriptor::DESCRIPTION, &description);
                    uint(b, descriptor::PARENT_UUID, group);
                    int(b, descriptor::SIBLING_ORDER_RANK, rank as i64);
                    uint(b, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
                    bytes(b, descriptor::SIBLING_MERGE_KEY, merge_key.as_bytes());
                })?;
            }
        }
        Ok(())
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

    /// Writes the names of processes that have tracks of threads and are in no sync: the UI calls them by their number otherwise.
    pub(super) fn name_processes(&mut self, names: &Names) -> Result<()> {
        let mut threads: Vec<(u32, String)> = std::mem::take(&mut self.first_threads).into_iter().collect();
        threads.sort();
        for (pid, comm) in threads.into_iter().filter(|(_, comm)| !comm.is_empty()) {
            if self.processes.contains_key(&pid) {
                continue;
            }
            let name = self.known.process_name(pid).map_or(comm, |name| names.text(name).into_owned());
            self.descriptor(Some(self.first_ts), |b| {
                nested(b, descriptor::PROCESS, |b| {
                    uint(b, descriptor::PROCESS_PID, u64::from(pid));
                    bytes(b, descriptor::PROCESS_NAME, name.as_bytes());
                });
            })?;
        }
        Ok(())
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
        let in_flight = "Bios between submit and completion. A bio whose completion is not recorded counts until its request ends, \
             its address is used again, or many later bios have completed.";
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
            counter_tracks: [bios_in_flight, bytes_in_flight],
            lanes: Default::default(),
            incomplete: None,
            never_completed: Vec::new(),
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
    pub(super) fn bio_lane(&mut self, device: usize, cause: Cause, start: i64, end: i64) -> Result<u64> {
        if let Some(uuid) = self.devices[device].lanes[cause as usize].find_free(start, end) {
            return Ok(uuid);
        }
        let (name, merge_key, description) = match cause {
            Cause::Sync => (
                "bios of syncs",
                "sync",
                "One slice per bio of a sync request, named by its size and file. Flow arrows lead from the request to its bios, or to the \
                 first, the last and the slowest of many.",
            ),
            Cause::Journal => {
                ("bios of the journal", "journal", "Bios that a journal thread submitted: syncs may wait for them.")
            }
            Cause::Unknown => (
                "bios of no known sync",
                "unknown",
                "The recording says neither that a sync caused them, nor that none did.",
            ),
            Cause::Background => ("background writeback", "background", "Bios that no sync request caused."),
            Cause::Read => ("reads", "read", "Bios that read. They use the device too, so syncs may wait behind them."),
            Cause::Other => (
                "discards and zeroes",
                "other",
                "Bios that discard sectors or fill them with zeroes, and those that the kernel does not name. Syncs may wait behind them.",
            ),
        };
        let group = self.devices[device].group;
        let uuid = self.merged_track(group, cause as i64, name, merge_key, description)?;
        self.devices[device].lanes[cause as usize].add(uuid, end);
        Ok(uuid)
    }

    /// Writes the counter track of a device for bios without a recorded completion.
    pub(super) fn never_completed_track(&mut self, device: usize) -> Result<u64> {
        let description = "Number of bios that were submitted until then and have no completion in the recording.";
        let group = self.devices[device].group;
        self.counter_track(group, rank::NEVER_COMPLETED, "bios with no recorded completion", "bios", description)
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
