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

/// Sibling order ranks below a device.
pub(super) mod rank {
    pub(in super::super) const BYTES_IN_FLIGHT: i64 = 0;
    /// The rows of bios stand above it, and each cause of bios has a rank.
    pub(in super::super) const INCOMPLETE_BIOS: i64 = 1 + super::Cause::COUNT as i64;
    pub(in super::super) const NEVER_COMPLETED: i64 = 1 + INCOMPLETE_BIOS;
}

/// The names of top-level tracks. The UI sorts these by name: threads, which begin with a digit, are above all others.
mod top {
    pub(super) const SYNCS_IN_FLIGHT: &str = "All threads: syncs in flight";
    pub(super) const MORE_THREADS: &str = "More threads";
    pub(super) const RECORDING: &str = "Recording";
}

/// The name of the hidden child of a top-level track.
const AT_TOP: &str = "at the top level";
/// How the name of that of a thread begins.
const TRACK_OF_THREAD: &str = "track of thread ";

/// So many threads are at the top level: with the devices below them, they fill a window.
const THREADS_AT_TOP: usize = 6;
/// So many rows of bios of a device and a cause are at the top level.
const ROWS_AT_TOP: usize = 4;

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

    pub(super) fn first(&self) -> Option<u64> {
        self.tracks.first().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.tracks.len()
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
        let name = match (comm, id.0) {
            ("", UNKNOWN_TASK) => "thread of unknown number".to_owned(),
            ("", tid) => format!("thread {tid}"),
            (_, UNKNOWN_TASK) => comm.to_owned(),
            (_, tid) => format!("{comm} {tid}"),
        };
        self.places.insert(id, self.threads.len());
        self.threads.push(UnownedThread { id, name, tracks: Vec::new(), waited_ns: 0 });
        self.threads.len() - 1
    }
}

pub(super) struct DeviceTracks {
    /// Iid of the device's name as a string value, where the name is known.
    pub(super) name_iid: Option<u64>,
    /// The top-level track of the device, which counts the bios in flight.
    group: u64,
    /// How the names of its top-level tracks begin.
    name: String,
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
        unit: Option<&str>,
        description: &str,
    ) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            nested(b, descriptor::COUNTER, |b| {
                if let Some(unit) = unit {
                    bytes(b, descriptor::COUNTER_UNIT_NAME, unit.as_bytes());
                }
            });
        })
    }

    /// Writes the descriptor of a counter track at the top level. It has no unit, because the UI would write `1 syncs`.
    pub(super) fn top_counter_track(&mut self, name: &str, description: &str) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::CHILD_ORDERING, descriptor::CHILD_ORDERING_EXPLICIT);
            nested(b, descriptor::COUNTER, |_| {});
        })
    }

    /// Writes the descriptor of a track at the top level that the UI merges with others of the same `merge_key`. `is_first`: it is the first one.
    pub(super) fn top_track(&mut self, is_first: bool, name: &str, merge_key: &str, description: &str) -> Result<u64> {
        let uuid = self.descriptor(None, |b| merged(b, name, merge_key, description))?;
        if is_first {
            self.keep_at_top(uuid, AT_TOP)?;
        }
        Ok(uuid)
    }

    /// Gives a track a child, because the UI shows a track without children and parents in a closed group of its own. The UI hides the child, a
    /// counter of CPU time. It has one value, because the trace processor leaves out tracks without any.
    pub(super) fn keep_at_top(&mut self, uuid: u64, name: &str) -> Result<()> {
        let child = self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            uint(b, descriptor::PARENT_UUID, uuid);
            nested(b, descriptor::COUNTER, |b| uint(b, descriptor::COUNTER_TYPE, descriptor::COUNTER_THREAD_TIME_NS));
        })?;
        self.counter(self.first_ts, child, 0)
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
            merged(b, name, merge_key, description);
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
        })
    }

    /// Returns the counter track of requests in flight; writes it the first time, because a log may have no requests.
    pub(super) fn syncs_in_flight(&mut self) -> Result<u64> {
        if let Some(uuid) = self.syncs_in_flight {
            return Ok(uuid);
        }
        let description = "Requests between their start and their end, over all threads.";
        let uuid = self.top_counter_track(top::SYNCS_IN_FLIGHT, description)?;
        self.keep_at_top(uuid, AT_TOP)?;
        self.syncs_in_flight = Some(uuid);
        Ok(uuid)
    }

    /// Returns a track of a task that is free from `start` to `end`.
    pub(super) fn task_lane(&mut self, task: (u32, u32, NameId), start: i64, end: i64, names: &Names) -> Result<u64> {
        let (tid, pid, comm) = task;
        if tid == UNKNOWN_TASK && pid != UNKNOWN_TASK {
            return self.process_lane(pid, comm, start, end, names);
        }
        if let Some(uuid) = self.threads.get_mut(&(tid, pid)).and_then(|lanes| lanes.find_free(start, end)) {
            return Ok(uuid);
        }
        let comm = names.text(comm);
        let uuid = if pid == UNKNOWN_TASK {
            self.unowned_thread_track((tid, pid), &comm, start)?
        } else {
            self.thread_track((tid, pid), &comm)?
        };
        self.threads.entry((tid, pid)).or_default().add(uuid, end);
        Ok(uuid)
    }

    /// Writes a new track of a thread whose process is known, so that the tables of Perfetto relate it to the thread.
    fn thread_track(&mut self, (tid, pid): (u32, u32), comm: &str) -> Result<u64> {
        if let Some(thread) = self.threads.get(&(tid, pid)).and_then(Lanes::first) {
            // A thread has one track of its own. A track below that one is of the thread too.
            let description = "Syncs of the thread that overlap others of it.";
            return self.merged_track(thread, 0, "overlapping syncs", "overlapping", description);
        }
        // The main thread has the name of the process.
        if tid == pid || !self.first_threads.contains_key(&pid) {
            self.first_threads.insert(pid, comm.to_owned());
        }
        self.descriptor(Some(self.first_ts), |b| {
            nested(b, descriptor::THREAD, |b| {
                uint(b, descriptor::THREAD_PID, u64::from(pid));
                uint(b, descriptor::THREAD_TID, u64::from(tid));
                bytes(b, descriptor::THREAD_NAME, comm.as_bytes());
            });
        })
    }

    /// Returns a new plain track for a thread whose process is not known. Its descriptor follows at the end, when it is known how long each
    /// thread waited.
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
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.waited_ns), thread.id));
        let group = if threads.len() > THREADS_AT_TOP {
            let description = "Threads that waited less than those at the top.";
            Some(self.group_track(None, 0, top::MORE_THREADS, description)?)
        } else {
            None
        };
        for (place, thread) in threads.iter().enumerate() {
            let waited = human::duration(thread.waited_ns);
            let name = match thread.waited_ns {
                1.. => format!("{}. {} waited {waited}", place + 1, thread.name),
                _ => format!("{}. {}", place + 1, thread.name),
            };
            // Tracks of the same name may be of several threads, so the UI does not merge them by name.
            let merge_key = format!("thread {} {}", thread.id.0, thread.id.1);
            let description = format!(
                "It was in syncs for {waited}: a slice for each call, in it the request with its file, and in that the phases. \
                 The log does not record the processes of the threads."
            );
            let parent = group.filter(|_| place >= THREADS_AT_TOP);
            for &uuid in &thread.tracks {
                self.descriptor_of(uuid, None, |b| {
                    merged(b, &name, &merge_key, &description);
                    if let Some(parent) = parent {
                        uint(b, descriptor::PARENT_UUID, parent);
                        int(b, descriptor::SIBLING_ORDER_RANK, place as i64);
                    }
                })?;
            }
            // SQL reads the number of the thread here.
            let child = match thread.id.0 {
                UNKNOWN_TASK => AT_TOP.to_owned(),
                tid => format!("{TRACK_OF_THREAD}{tid}"),
            };
            self.keep_at_top(thread.tracks[0], &child)?;
        }
        Ok(())
    }

    /// Returns the track of facts about the run; writes it the first time.
    pub(super) fn run_track(&mut self) -> Result<u64> {
        if let Some(uuid) = self.run_track {
            return Ok(uuid);
        }
        let description = "Facts about this recording and its conversion.";
        let recording = self.recording()?;
        let uuid = self.group_track(Some(recording), 1, "Run", description)?;
        self.run_track = Some(uuid);
        Ok(uuid)
    }

    /// Returns the group of what is known of the recording itself; writes it the first time.
    pub(super) fn recording(&mut self) -> Result<u64> {
        if let Some(uuid) = self.recording {
            return Ok(uuid);
        }
        let uuid = self.group_track(None, 0, top::RECORDING, "What it lost, and facts about it and its conversion.")?;
        self.recording = Some(uuid);
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
            Some(name) => format!("Disk {name} ({dev})"),
            None if dev.is_known() => format!("Disk ({dev})"),
            None => "Disk (device unknown)".to_owned(),
        };
        let known_name = known_name.cloned();
        let in_flight = "Bios between submit and completion. A bio whose completion is not recorded counts until its request ends, \
             its address is used again, or many later bios have completed.";
        let bios_in_flight = self.top_counter_track(&format!("{name}: all in flight"), in_flight)?;
        let group = bios_in_flight;
        let bytes_in_flight =
            self.counter_track(group, rank::BYTES_IN_FLIGHT, "bytes in flight", Some("bytes"), in_flight)?;
        // Most logs have one device.
        let is_first = self.default_counters.is_none();
        if is_first {
            self.set_default_counters([bios_in_flight, bytes_in_flight])?;
        }
        let tracks = DeviceTracks {
            name_iid: known_name.map(|name| self.intern_device_name(dev, &name)),
            group,
            name,
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
        let (cause_name, merge_key, description) = match cause {
            Cause::Sync => (
                "bios of syncs",
                "sync",
                "One slice per bio of a sync request, named by its size and file. Flow arrows lead from the request to its bios, or to the \
                 first, the last and the slowest of many.",
            ),
            Cause::Journal => ("journal", "journal", "Bios that a journal thread submitted: syncs may wait for them."),
            Cause::Unknown => {
                ("no known sync", "unknown", "The recording says neither that a sync caused them, nor that none did.")
            }
            Cause::Background => ("writeback", "background", "Bios that no sync request caused: background writeback."),
            Cause::Read => ("reads", "read", "Bios that read. They use the device too, so syncs may wait behind them."),
            Cause::Other => (
                "trims and zeroes",
                "other",
                "Bios that discard sectors or fill them with zeroes, and those that the kernel does not name. Syncs may wait behind them.",
            ),
        };
        let DeviceTracks { group, name, lanes, .. } = &self.devices[device];
        let (group, rows) = (*group, lanes[cause as usize].len());
        let uuid = if rows < ROWS_AT_TOP {
            let (merge_key, name) = (format!("{name} {merge_key}"), format!("{name}: {cause_name}"));
            self.top_track(rows == 0, &name, &merge_key, description)?
        } else {
            // Many of them would push everything below out of the window.
            let name = format!("{cause_name}, more than {ROWS_AT_TOP} at once");
            self.merged_track(group, 1 + cause as i64, &name, merge_key, description)?
        };
        self.devices[device].lanes[cause as usize].add(uuid, end);
        Ok(uuid)
    }

    /// Writes the counter track of a device for bios without a recorded completion.
    pub(super) fn never_completed_track(&mut self, device: usize) -> Result<u64> {
        let description = "Number of bios that were submitted until then and have no completion in the recording.";
        let group = self.devices[device].group;
        self.counter_track(group, rank::NEVER_COMPLETED, "bios with no recorded completion", None, description)
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

/// Writes the fields of a track that the UI merges with its siblings of the same `merge_key`.
fn merged(b: &mut Vec<u8>, name: &str, merge_key: &str, description: &str) {
    bytes(b, descriptor::NAME, name.as_bytes());
    bytes(b, descriptor::DESCRIPTION, description.as_bytes());
    uint(b, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
    bytes(b, descriptor::SIBLING_MERGE_KEY, merge_key.as_bytes());
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
