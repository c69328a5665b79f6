//! The Perfetto trace: `TrackEvent` packets, written by hand. docs/trace-layout.md describes the layout.

mod intern;
mod proto;

use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::intern::Interner;
use self::proto::{
    Tag, annotation, bytes, clock, descriptor, event, fixed64, int, nested, nested_long, packet, small_pair, tagged,
    trace, uint,
};
use super::{Group, GroupRequest, RunFacts, Sink};
use crate::error::Result;
use crate::event::{Dev, Op, UNKNOWN_TASK};
use crate::losses::{Losses, Reason};
use crate::names::{NameId, Names};
use crate::output::Output;
use crate::rows::{Bio, Call, Confidence, Missing, Request, Row, Value, WaitInterval};

/// One sequence is enough: all is written by one thread.
const SEQUENCE_ID: u64 = 1;
/// Instants of one reason; the summary has the whole count.
const MAX_LOSS_INSTANTS: u64 = 10_000;

/// Order of what stands under the root, and of what stands under a device.
mod rank {
    pub(super) const MARKS: i64 = 0;
    pub(super) const THREADS: i64 = 1;
    pub(super) const DEVICE: i64 = 2;
    pub(super) const SYNCS_IN_FLIGHT: i64 = 3;
    pub(super) const LOSSES: i64 = 4;
    pub(super) const RUN: i64 = 5;

    pub(super) const SYNC_BIOS: i64 = 0;
    pub(super) const INCOMPLETE_BIOS: i64 = 1;
    pub(super) const BACKGROUND_BIOS: i64 = 2;
    pub(super) const BIOS_IN_FLIGHT: i64 = 3;
    pub(super) const BYTES_IN_FLIGHT: i64 = 4;
}

#[derive(Clone, Copy)]
#[repr(u64)]
enum Category {
    Call = 1,
    Sync,
    Phase,
    WaitKind,
    Bio,
    Mark,
    Loss,
    Meta,
}

const CATEGORIES: [(Category, &str); 8] = [
    (Category::Call, "syncline.call"),
    (Category::Sync, "syncline.sync"),
    (Category::Phase, "syncline.phase"),
    (Category::WaitKind, "syncline.wait"),
    (Category::Bio, "syncline.bio"),
    (Category::Mark, "syncline.mark"),
    (Category::Loss, "syncline.loss"),
    (Category::Meta, "syncline.meta"),
];

/// First annotation iid of each row's columns, and of single ones.
#[derive(Default)]
struct AnnotationNames {
    sync: Columns,
    sync_id: u64,
    bio: Columns,
    /// An edge that is exact is not said to be.
    exact_bio: Columns,
    call: Columns,
    wait: Columns,
    call_ts: u64,
    open: u64,
    mark_id: u64,
    text: u64,
}

/// Tracks that never overlap themselves, so many as there are slices at once.
#[derive(Default)]
struct Lanes {
    /// (uuid, end of its last slice)
    lanes: Vec<(u64, i64)>,
}

/// What a request is called by: file system or else its call, path or else inode, what is missing.
type RequestKey = (NameId, Option<Op>, NameId, u64, Option<u8>);
/// What a bio is called by: name and number of its thread, what is missing.
type BioKey = (NameId, u32, Option<u8>);

/// Event names that are put together, by what they are made from: the same few come over and over.
#[derive(Default)]
struct EventNames {
    requests: HashMap<RequestKey, u64, FixedState>,
    bios: HashMap<BioKey, u64, FixedState>,
}

struct DeviceTracks {
    group: u64,
    bios_in_flight: u64,
    bytes_in_flight: u64,
    /// [sync, background]
    lanes: [Lanes; 2],
    incomplete: Option<u64>,
}

pub struct PerfettoTrace {
    out: Output,
    interner: Interner,
    names: AnnotationNames,
    event_names: EventNames,
    next_uuid: u64,
    /// The group that holds all but the tracks of known processes.
    root: u64,
    /// The group of threads whose process is not known.
    threads_group: Option<u64>,
    /// The track of each thread, and more of them where its slices overlap.
    threads: HashMap<(u32, u32), Lanes, FixedState>,
    /// Lanes of processes whose threads are not known.
    processes: HashMap<u32, (u64, Lanes), FixedState>,
    devices: Vec<(Dev, DeviceTracks)>,
    syncs_in_flight: u64,
    losses_track: Option<u64>,
    loss_instants: Vec<u64>,
    first_ts: i64,
}

/// Columns that the slice itself tells, or the lack of another.
const FROM_SLICE: &[&str] = &["ts_ns", "dur_ns", "start_ns", "lone", "origin"];

impl PerfettoTrace {
    pub fn create(path: &Path, gzip: bool) -> Result<Self> {
        Ok(Self {
            out: Output::create(path, gzip)?,
            interner: Interner::default(),
            names: AnnotationNames::default(),
            event_names: EventNames::default(),
            next_uuid: 1,
            root: 0,
            threads_group: None,
            threads: HashMap::default(),
            processes: HashMap::default(),
            devices: Vec::new(),
            syncs_in_flight: 0,
            losses_track: None,
            loss_instants: vec![0; Reason::ALL.len()],
            first_ts: 0,
        })
    }

    // ---- packets

    /// Writes one packet; what was interned since the last one goes with it.
    #[inline]
    fn packet(&mut self, flags: u64, write: impl FnOnce(&mut Vec<u8>, &mut Interner, &AnnotationNames)) -> Result<()> {
        let Self { out, interner, names, .. } = self;
        nested_long(out.buffer(), trace::PACKET, |b| {
            write(b, interner, names);
            if !interner.pending.is_empty() {
                bytes(b, packet::INTERNED_DATA, &interner.pending);
                interner.pending.clear();
            }
            uint(b, packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
            uint(b, packet::SEQUENCE_FLAGS, flags);
        });
        self.out.spill()
    }

    #[inline]
    fn event(
        &mut self,
        ts: i64,
        track: u64,
        kind: u64,
        write: impl FnOnce(&mut Vec<u8>, &mut Interner, &AnnotationNames),
    ) -> Result<()> {
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, interner, names| {
            uint(b, packet::TIMESTAMP, ts as u64);
            nested_long(b, packet::TRACK_EVENT, |b| {
                uint(b, event::TYPE, kind);
                uint(b, event::TRACK_UUID, track);
                write(b, interner, names);
            });
        })
    }

    fn end(&mut self, ts: i64, track: u64) -> Result<()> {
        self.event(ts, track, event::SLICE_END, |_, _, _| {})
    }

    fn descriptor(&mut self, ts: Option<i64>, write: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        let uuid = self.next_uuid;
        self.next_uuid += 1;
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, _, _| {
            if let Some(ts) = ts {
                uint(b, packet::TIMESTAMP, ts as u64);
            }
            nested(b, packet::TRACK_DESCRIPTOR, |b| {
                uint(b, descriptor::UUID, uuid);
                write(b);
            });
        })?;
        Ok(uuid)
    }

    // ---- tracks

    fn group_track(&mut self, parent: Option<u64>, rank: i64, name: &str, description: &str) -> Result<u64> {
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

    fn counter_track(&mut self, parent: u64, rank: i64, name: &str, unit: &str, description: &str) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            nested(b, descriptor::COUNTER, |b| bytes(b, descriptor::COUNTER_UNIT_NAME, unit.as_bytes()));
        })
    }

    fn child_track(&mut self, parent: u64, rank: i64, name: &str, merge_key: &str, description: &str) -> Result<u64> {
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            bytes(b, descriptor::DESCRIPTION, description.as_bytes());
            uint(b, descriptor::PARENT_UUID, parent);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
            uint(b, descriptor::SIBLING_MERGE_BEHAVIOR, descriptor::BY_SIBLING_MERGE_KEY);
            bytes(b, descriptor::SIBLING_MERGE_KEY, merge_key.as_bytes());
        })
    }

    /// Where the slices of a task stand from `start` to `end`: on its track, or beside it when that is taken.
    fn task_lane(&mut self, task: (u32, u32, NameId), start: i64, end: i64, names: &Names) -> Result<u64> {
        let (tid, pid, comm) = task;
        if tid == UNKNOWN_TASK && pid != UNKNOWN_TASK {
            return self.process_lane(pid, comm, start, end, names);
        }
        let known = self.threads.get_mut(&(tid, pid));
        let is_first = known.is_none();
        if let Some(uuid) = known.and_then(|lanes| lanes.free(start, end)) {
            return Ok(uuid);
        }
        let comm = names.text(comm);
        let uuid = if pid == UNKNOWN_TASK || !is_first {
            // A second one has the same name, and so is merged with the first in the UI.
            self.named_track(tid, &comm)?
        } else {
            self.descriptor(Some(self.first_ts), |b| {
                nested(b, descriptor::THREAD, |b| {
                    uint(b, descriptor::THREAD_PID, u64::from(pid));
                    uint(b, descriptor::THREAD_TID, u64::from(tid));
                    bytes(b, descriptor::THREAD_NAME, comm.as_bytes());
                });
            })?
        };
        self.threads.entry((tid, pid)).or_default().lanes.push((uuid, end));
        Ok(uuid)
    }

    /// The track of a thread whose process is not known.
    ///
    /// Perfetto has no thread without a process, and an invented one would be a lie that a system trace beside this one turns
    /// into a second thread of the same number. So this is a track with the name of a thread.
    fn named_track(&mut self, tid: u32, comm: &str) -> Result<u64> {
        let group = if let Some(group) = self.threads_group {
            group
        } else {
            let description = "One track a thread: its sync calls, in each the file that it waited for, in that what it waited for: \
                 before the first bio's submit, until the last one's completion (writeback), and after that. \
                 The log does not tell the threads' processes.";
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
        self.descriptor(None, |b| {
            bytes(b, descriptor::NAME, name.as_bytes());
            uint(b, descriptor::PARENT_UUID, group);
            int(b, descriptor::SIBLING_ORDER_RANK, rank);
        })
    }

    fn process_track(&mut self, pid: u32, name: &str) -> Result<u64> {
        self.descriptor(Some(self.first_ts), |b| {
            nested(b, descriptor::PROCESS, |b| {
                uint(b, descriptor::PROCESS_PID, u64::from(pid));
                bytes(b, descriptor::PROCESS_NAME, name.as_bytes());
            });
        })
    }

    /// A lane of a process that is free from `start` to `end`.
    fn process_lane(&mut self, pid: u32, comm: NameId, start: i64, end: i64, names: &Names) -> Result<u64> {
        let parent = if let Some((uuid, _)) = self.processes.get(&pid) {
            *uuid
        } else {
            let uuid = self.process_track(pid, &names.text(comm))?;
            self.processes.insert(pid, (uuid, Lanes::default()));
            uuid
        };
        if let Some(uuid) = self.processes.get_mut(&pid).and_then(|(_, lanes)| lanes.free(start, end)) {
            return Ok(uuid);
        }
        let uuid =
            self.child_track(parent, 0, "syncs", "syncs", "Sync calls of the process; its threads are not known.")?;
        if let Some((_, lanes)) = self.processes.get_mut(&pid) {
            lanes.lanes.push((uuid, end));
        }
        Ok(uuid)
    }

    fn device(&mut self, dev: Dev) -> Result<usize> {
        if let Some(at) = self.devices.iter().position(|(d, _)| *d == dev) {
            return Ok(at);
        }
        let name = if dev.is_known() { format!("Block I/O ({dev})") } else { "Block I/O (device unknown)".into() };
        let description = "Bios from submit to completion. One below the other: at the same time.";
        let group = self.group_track(Some(self.root), rank::DEVICE, &name, description)?;
        let in_flight = "A bio whose completion is missing counts until its address is used again.";
        let bios_in_flight = self.counter_track(group, rank::BIOS_IN_FLIGHT, "bios in flight", "bios", in_flight)?;
        let bytes_in_flight =
            self.counter_track(group, rank::BYTES_IN_FLIGHT, "bytes in flight", "bytes", in_flight)?;
        let tracks =
            DeviceTracks { group, bios_in_flight, bytes_in_flight, lanes: Default::default(), incomplete: None };
        self.devices.push((dev, tracks));
        Ok(self.devices.len() - 1)
    }

    fn bio_lane(&mut self, device: usize, bio: &Bio, start: i64, end: i64) -> Result<u64> {
        let kind = usize::from(bio.sync_id.is_none());
        if let Some(uuid) = self.devices[device].1.lanes[kind].free(start, end) {
            return Ok(uuid);
        }
        let group = self.devices[device].1.group;
        let uuid = if kind == 0 {
            let description = "One slice a bio that a sync request made, named by the thread that submitted it. \
                 It has the colour of its request, and an arrow leads from there.";
            self.child_track(group, rank::SYNC_BIOS, "bios of syncs", "sync", description)?
        } else {
            let description = "Bios that no sync request made, named by the thread that submitted them.";
            self.child_track(group, rank::BACKGROUND_BIOS, "background writeback", "background", description)?
        };
        self.devices[device].1.lanes[kind].lanes.push((uuid, end));
        Ok(uuid)
    }

    fn incomplete_track(&mut self, device: usize) -> Result<u64> {
        if let Some(uuid) = self.devices[device].1.incomplete {
            return Ok(uuid);
        }
        let group = self.devices[device].1.group;
        let uuid = self.child_track(
            group,
            rank::INCOMPLETE_BIOS,
            "bios not fully recorded",
            "incomplete",
            "Bios whose submit or completion is not in the log, where they begin.",
        )?;
        self.devices[device].1.incomplete = Some(uuid);
        Ok(uuid)
    }

    // ---- slices

    fn request_name(&mut self, request: &Request, names: &Names) -> u64 {
        let missing = request.missing().filter(|m| *m != Missing::Bio);
        let ino = if request.path.is_some() { 0 } else { request.ino };
        let key = (request.fs, call_only(request), request.path, ino, missing.map(|m| m as u8));
        let Self { event_names, interner, .. } = self;
        *event_names.requests.entry(key).or_insert_with(|| interner.event_name(&request_text(request, missing, names)))
    }

    fn bio_name(&mut self, bio: &Bio, names: &Names) -> u64 {
        let owner = if bio.tid == UNKNOWN_TASK { bio.pid } else { bio.tid };
        let missing = bio.missing();
        let Self { event_names, interner, .. } = self;
        *event_names.bios.entry((bio.comm, owner, missing.map(|m| m as u8))).or_insert_with(|| {
            let comm = names.text(bio.comm);
            let thread = if owner == UNKNOWN_TASK { comm.into_owned() } else { format!("{comm} {owner}") };
            let missing = match missing {
                Some(Missing::Start) => ", submit not recorded",
                Some(_) => ", completion not recorded",
                None => "",
            };
            interner.event_name(&(thread + missing))
        })
    }

    fn call(&mut self, call: &Call, track: u64, names: &Names) -> Result<()> {
        let open = call.dur().is_none();
        self.event(call.enter, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Call, interner.word_name(call.op.name()));
            row(b, call, ids.call, interner, names);
            if open {
                value(b, ids.open, Value::Int(1), interner, names);
            }
        })
    }

    fn request(&mut self, r: &GroupRequest<'_>, track: u64, names: &Names) -> Result<()> {
        let request = r.request;
        let (start, end) = extent(request);
        let counter = self.syncs_in_flight;
        let name = self.request_name(request, names);
        // Where a bound is missing or lies outside of the request, that phase is not drawn.
        let inside = |from: Option<i64>, to: Option<i64>| {
            from.zip(to).filter(|&(from, to)| start <= from && from <= to && to <= end)
        };
        let before = request.before_submit().and_then(|_| inside(Some(start), request.first_submit));
        let data = request.writeback().and_then(|_| inside(request.first_submit, request.last_complete));
        let after = request.after_complete().and_then(|_| inside(request.last_complete, Some(end)));
        // Times that run backwards: phases of one request never overlap.
        let after = after.filter(|&(from, _)| before.is_none_or(|(_, to)| to <= from));
        self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Sync, name);
            uint(b, event::CORRELATION_ID, request.sync_id);
            if before.is_none() {
                flows(b, r.bio_ids);
            }
            if request.start.is_some() || request.call_only {
                counters(b, &[(counter, u64::from(request.in_flight.0))]);
            }
            row(b, request, ids.sync, interner, names);
            if let Some(call) = request.call {
                value(b, ids.call_ts, Value::Int(call.enter), interner, names);
            }
        })?;
        let phases = [("before submit", before), ("writeback", data), ("after completion", after)];
        let mut reached = start;
        for (name, phase) in phases {
            let Some((from, to)) = phase else { continue };
            self.waits(request, (reached, from), track, names)?;
            self.phase(name, (from, to), r, track, names)?;
            reached = to;
        }
        self.waits(request, (reached, end), track, names)?;
        self.event(end, track, event::SLICE_END, |b, _, _| {
            if request.start.is_some() || request.call_only {
                counters(b, &[(counter, u64::from(request.in_flight.1))]);
            }
        })
    }

    fn phase(
        &mut self,
        name: &'static str,
        (from, to): (i64, i64),
        of: &GroupRequest<'_>,
        track: u64,
        names: &Names,
    ) -> Result<()> {
        self.event(from, track, event::SLICE_BEGIN, |b, interner, ids| {
            // No correlation id, which would give it the colour of its request: a phase has the same colour everywhere.
            head(b, Category::Phase, interner.word_name(name));
            if name == "before submit" {
                flows(b, of.bio_ids);
            }
            value(b, ids.sync_id, Value::Int(of.request.sync_id as i64), interner, names);
        })?;
        self.waits(of.request, (from, to), track, names)?;
        self.end(to, track)
    }

    /// What of the waits lies from `from` to `to`: one that reaches further is drawn in pieces, which `syncline_wait` joins.
    fn waits(&mut self, request: &Request, (from, to): (i64, i64), track: u64, names: &Names) -> Result<()> {
        let mut open: Vec<i64> = Vec::new();
        for waited in &request.waits {
            let (start, end) = (waited.start.max(from), waited.end.min(to));
            // One of no length may stand at a border, and then twice.
            if start > end || start == end && waited.start < waited.end {
                continue;
            }
            while let Some(until) = open.pop_if(|until| *until <= start) {
                self.end(until, track)?;
            }
            // One that outlasts what it lies in, which no thread does, would break the order of slices.
            let end = open.last().map_or(end, |&until| end.min(until));
            self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
                head(b, Category::WaitKind, interner.word_name(waited.wait.name()));
                row(b, waited, ids.wait, interner, names);
            })?;
            open.push(end);
        }
        while let Some(until) = open.pop() {
            self.end(until, track)?;
        }
        Ok(())
    }

    fn meta_instant(
        &mut self,
        ts: i64,
        track: u64,
        name: &str,
        args: &[(&str, Value)],
        texts: &[(&str, &str)],
    ) -> Result<()> {
        let none = Names::default();
        self.event(ts, track, event::INSTANT, |b, interner, _| {
            head(b, Category::Meta, interner.event_name(name));
            for &(key, v) in args {
                nested(b, event::DEBUG_ANNOTATIONS, |b| {
                    bytes(b, annotation::NAME, key.as_bytes());
                    if let Some((tag, v)) = wire(v, interner, &none) {
                        tagged(b, tag, v);
                    }
                });
            }
            for &(key, text) in texts {
                nested(b, event::DEBUG_ANNOTATIONS, |b| {
                    bytes(b, annotation::NAME, key.as_bytes());
                    bytes(b, annotation::STRING_VALUE, text.as_bytes());
                });
            }
        })
    }
}

impl Lanes {
    /// A lane whose last slice ended by `start`; it is taken until `end`.
    fn free(&mut self, start: i64, end: i64) -> Option<u64> {
        let lane = self.lanes.iter_mut().find(|(_, last)| *last <= start)?;
        lane.1 = end;
        Some(lane.0)
    }
}

/// Where the slice of a request lies.
fn extent(request: &Request) -> (i64, i64) {
    let start = request.start.unwrap_or(request.first_event);
    (start, request.end.unwrap_or(request.last_event).max(start))
}

/// The call of a request of which nothing else is known.
fn call_only(request: &Request) -> Option<Op> {
    request.call.filter(|_| request.call_only).map(|call| call.op)
}

/// The file comes first: that is what the thread waits for, and what a narrow slice still shows.
fn request_text(request: &Request, missing: Option<Missing>, names: &Names) -> String {
    let fs = names.text(request.fs);
    let function = match call_only(request) {
        Some(op) => op.name().to_owned(),
        None if fs.is_empty() => "sync_file".to_owned(),
        None => format!("{fs}_sync_file"),
    };
    let name = if request.path.is_some() {
        let path = names.text(request.path);
        let file = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&path);
        format!("{file} ({function})")
    } else if request.ino != 0 {
        format!("inode {} ({function})", request.ino)
    } else {
        function
    };
    name + match missing {
        Some(Missing::Start) => ", start not recorded",
        Some(Missing::End) => ", end not recorded",
        Some(Missing::Bio) | None => "",
    }
}

fn head(b: &mut Vec<u8>, category: Category, name_iid: u64) {
    uint(b, event::CATEGORY_IIDS, category as u64);
    uint(b, event::NAME_IID, name_iid);
}

/// The UI draws an arrow from the end of the slice with these to the start of each bio.
fn flows(b: &mut Vec<u8>, bio_ids: &[u64]) {
    for &bio_id in bio_ids {
        fixed64(b, event::FLOW_IDS, bio_id);
    }
}

fn counters(b: &mut Vec<u8>, tracks: &[(u64, u64)]) {
    for &(track, _) in tracks {
        uint(b, event::EXTRA_COUNTER_TRACK_UUIDS, track);
    }
    for &(_, value) in tracks {
        int(b, event::EXTRA_COUNTER_VALUES, value as i64);
    }
}

fn columns<R: Row>() -> impl Iterator<Item = &'static str> {
    R::COLUMNS.iter().map(|(name, _)| *name)
}

/// Location of a column among its row's.
fn column<R: Row>(name: &str) -> u64 {
    columns::<R>().position(|n| n == name).unwrap_or_default() as u64
}

/// A row's columns as annotations: the iid of the first column's name, and a bit for each column that is left out.
#[derive(Clone, Copy, Default)]
struct Columns {
    first: u64,
    left_out: u64,
}

impl Columns {
    fn of<R: Row>(interner: &mut Interner) -> Self {
        let left_out =
            columns::<R>().enumerate().filter(|(_, name)| FROM_SLICE.contains(name)).map(|(i, _)| 1 << i).sum();
        Self { first: interner.annotation_names(columns::<R>()), left_out }
    }

    fn without<R: Row>(self, name: &str) -> Self {
        Self { left_out: self.left_out | 1 << column::<R>(name), ..self }
    }
}

#[inline]
fn row<R: Row>(b: &mut Vec<u8>, row: &R, columns: Columns, interner: &mut Interner, names: &Names) {
    let mut at = 0;
    row.visit(&mut |_, v| {
        if v != Value::Null && columns.left_out >> at & 1 == 0 {
            value(b, columns.first + at, v, interner, names);
        }
        at += 1;
    });
}

#[inline]
fn value(b: &mut Vec<u8>, name_iid: u64, value: Value, interner: &mut Interner, names: &Names) {
    const OUTER: u8 = (event::DEBUG_ANNOTATIONS << 3 | 2) as u8;
    const NAME_IID: u8 = (annotation::NAME_IID << 3) as u8;
    // All names of columns fit one byte.
    let first = [NAME_IID, name_iid as u8];
    if let Some((tag, v)) = wire(value, interner, names) {
        small_pair(b, OUTER, first, tag, v);
    }
}

/// An annotation's value: its field, and what stands in it.
#[inline]
fn wire(value: Value, interner: &mut Interner, names: &Names) -> Option<(Tag, u64)> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => (const { Tag::of(annotation::INT_VALUE) }, v as u64),
        Value::UInt(v) => (const { Tag::of(annotation::UINT_VALUE) }, v),
        Value::Bool(v) => (const { Tag::of(annotation::BOOL_VALUE) }, u64::from(v)),
        Value::Name(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.string(v, names)),
        Value::Word(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.word(v)),
        Value::Address(v) => (const { Tag::of(annotation::POINTER_VALUE) }, v),
        Value::Dev(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.dev(v)),
    })
}

impl Sink for PerfettoTrace {
    fn begin(&mut self, first_ts: i64) -> Result<()> {
        self.first_ts = first_ts;
        self.packet(packet::SEQ_INCREMENTAL_STATE_CLEARED | packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, _, _| {
            uint(b, packet::TIMESTAMP, first_ts as u64);
            nested(b, packet::CLOCK_SNAPSHOT, |b| {
                nested(b, clock::CLOCKS, |b| {
                    uint(b, clock::CLOCK_ID, clock::BOOTTIME);
                    uint(b, clock::TIMESTAMP, first_ts as u64);
                });
                uint(b, clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
            });
        })?;

        for (category, name) in CATEGORIES {
            self.interner.category(category as u64, name);
        }
        let interner = &mut self.interner;
        self.names.sync = Columns::of::<Request>(interner);
        self.names.sync_id = self.names.sync.first + column::<Request>("sync_id");
        self.names.bio = Columns::of::<Bio>(interner);
        self.names.exact_bio = self.names.bio.without::<Bio>("confidence");
        self.names.call = Columns::of::<Call>(interner);
        // Its slice may be a piece of it.
        self.names.wait = Columns { left_out: 0, ..Columns::of::<WaitInterval>(interner) };
        let single = interner.annotation_names(["call_ts_ns", "open", "mark_id", "text"]);
        self.names.call_ts = single;
        self.names.open = single + 1;
        self.names.mark_id = single + 2;
        self.names.text = single + 3;
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |_, _, _| {})?;

        self.root = self.group_track(
            None,
            0,
            "Syncs and writeback",
            "Which thread waited for which file, and what the block layer did meanwhile (Syncline).",
        )?;
        self.syncs_in_flight = self.counter_track(
            self.root,
            rank::SYNCS_IN_FLIGHT,
            "Syncs in flight",
            "syncs",
            "Requests between their start and their end, over all threads.",
        )?;
        Ok(())
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        let device = self.device(bio.dev)?;
        let tracks = &self.devices[device].1;
        let (count, size) = (tracks.bios_in_flight, tracks.bytes_in_flight);
        let name = self.bio_name(bio, names);
        let (track, end) = match (bio.submit, bio.complete) {
            (Some(submit), Some(complete)) => {
                let end = complete.max(submit);
                (self.bio_lane(device, bio, submit, end)?, Some(end))
            }
            _ => (self.incomplete_track(device)?, None),
        };
        let kind = if end.is_some() { event::SLICE_BEGIN } else { event::INSTANT };
        self.event(bio.ts(), track, kind, |b, interner, ids| {
            head(b, Category::Bio, name);
            if let Some(sync_id) = bio.sync_id {
                fixed64(b, event::TERMINATING_FLOW_IDS, bio.bio_id);
                uint(b, event::CORRELATION_ID, sync_id);
            }
            if bio.submit.is_some() {
                let (bios, bytes) = bio.in_flight_at_submit;
                counters(b, &[(count, u64::from(bios)), (size, bytes)]);
            }
            let columns = if bio.confidence == Confidence::Exact { ids.exact_bio } else { ids.bio };
            row(b, bio, columns, interner, names);
        })?;
        let Some(end) = end else { return Ok(()) };
        self.event(end, track, event::SLICE_END, |b, _, _| {
            let (bios, bytes) = bio.in_flight_at_complete;
            counters(b, &[(count, u64::from(bios)), (size, bytes)]);
        })
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let first = group.call.map(|c| (c.tid, c.pid, c.comm));
        let Some(task) =
            first.or_else(|| group.requests.first().map(|r| (r.request.tid, r.request.pid, r.request.comm)))
        else {
            return Ok(());
        };
        let process = group.call.map(|c| c.process).or_else(|| group.requests.first().map(|r| r.request.process));
        if let Some(process) = process.filter(|process| process.is_some())
            && !self.processes.contains_key(&task.1)
        {
            let uuid = self.process_track(task.1, &names.text(process))?;
            self.processes.insert(task.1, (uuid, Lanes::default()));
        }
        let taken = group.call.and_then(|c| group.requests.iter().find(|r| Some(r.request.sync_id) == c.sync_id));
        // A call whose end is not known is drawn around the request that took it.
        let call = group.call.map(|c| {
            let end = c.dur().map_or_else(|| taken.map_or(c.enter, |r| extent(r.request).1), |dur| c.enter + dur);
            (c, end.max(c.enter))
        });
        let spans = group.requests.iter().map(|r| extent(r.request));
        let inside =
            |start, end| call.is_none_or(|(c, call_end)| start >= c.enter && (end <= call_end || start >= call_end));
        let mut reached = i64::MIN;
        let nests = spans.clone().all(|(start, end)| {
            let follows = start >= reached;
            reached = end;
            follows && inside(start, end)
        });
        if !nests {
            // Times that run backwards, or a call that is not surely theirs: each stands where there is room.
            if let Some((call, end)) = call {
                let track = self.task_lane(task, call.enter, end, names)?;
                self.call(call, track, names)?;
                self.end(end, track)?;
            }
            for r in group.requests {
                let (start, end) = extent(r.request);
                let track = self.task_lane(task, start, end, names)?;
                self.request(r, track, names)?;
            }
            return Ok(());
        }
        let start = call.map(|(c, _)| c.enter).into_iter().chain(spans.clone().map(|(start, _)| start)).min();
        let end = call.map(|(_, end)| end).into_iter().chain(spans.map(|(_, end)| end)).max();
        let track = self.task_lane(task, start.unwrap_or_default(), end.unwrap_or_default(), names)?;
        let mut open_call = None;
        if let Some((call, end)) = call {
            self.call(call, track, names)?;
            open_call = Some(end);
        }
        for r in group.requests {
            // Requests that come after a call whose exit was not recorded stand beside it.
            if let Some(end) = open_call
                && extent(r.request).0 >= end
                && Some(r.request.sync_id) != group.call.and_then(|c| c.sync_id)
            {
                self.end(end, track)?;
                open_call = None;
            }
            self.request(r, track, names)?;
        }
        match open_call {
            Some(end) => self.end(end, track),
            None => Ok(()),
        }
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        let count = &mut self.loss_instants[reason as usize];
        *count += 1;
        if *count > MAX_LOSS_INSTANTS {
            return Ok(());
        }
        let track = if let Some(uuid) = self.losses_track {
            uuid
        } else {
            let description = "What was not used, or is missing, by its reason. The report `losses` explains each.";
            let uuid = self.group_track(Some(self.root), rank::LOSSES, "Losses", description)?;
            self.losses_track = Some(uuid);
            uuid
        };
        self.event(ts, track, event::INSTANT, |b, interner, ids| {
            head(b, Category::Loss, interner.event_name(reason.name()));
            nested(b, event::DEBUG_ANNOTATIONS, |b| {
                uint(b, annotation::NAME_IID, ids.text);
                bytes(b, annotation::STRING_VALUE, text.as_bytes());
            });
        })
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, _: &Names) -> Result<()> {
        if !facts.marks.is_empty() {
            let mut lanes = Lanes::default();
            for (i, mark) in facts.marks.iter().enumerate() {
                let end = mark.ts + mark.dur.unwrap_or(0);
                let track = if let Some(uuid) = lanes.free(mark.ts, end) {
                    uuid
                } else {
                    let description = "Application marks, from --marks.";
                    let uuid = self.child_track(self.root, rank::MARKS, "Marks", "marks", description)?;
                    lanes.lanes.push((uuid, end));
                    uuid
                };
                self.event(mark.ts, track, event::SLICE_BEGIN, |b, interner, ids| {
                    head(b, Category::Mark, interner.event_name(&mark.name));
                    let none = Names::default();
                    value(b, ids.mark_id, Value::Int(i as i64 + 1), interner, &none);
                })?;
                self.end(end, track)?;
            }
        }
        let track =
            self.group_track(Some(self.root), rank::RUN, "Run", "RunFacts about this recording and its conversion.")?;
        let ts = facts.first_ts.unwrap_or_default();
        let meta: Vec<(&str, &str)> = facts.meta.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        self.meta_instant(ts, track, "syncline", &[], &meta)?;
        for (reason, tally) in losses.iter() {
            let optional = |v: Option<i64>| v.map_or(Value::Null, Value::Int);
            let args: Vec<(&str, Value)> = [
                ("count", Value::Int(tally.count as i64)),
                ("first_ts_ns", optional(tally.first_ts)),
                ("last_ts_ns", optional(tally.last_ts)),
            ]
            .into_iter()
            .filter(|(_, v)| *v != Value::Null)
            .collect();
            let mut texts =
                vec![("reason", reason.name()), ("severity", reason.severity().name()), ("meaning", reason.meaning())];
            texts.extend(tally.example.as_deref().map(|text| ("example", text)));
            self.meta_instant(ts, track, "loss_summary", &args, &texts)?;
        }
        self.out.commit()
    }
}
