//! The Perfetto trace: `TrackEvent` packets of one sequence, encoded by hand. docs/reference/trace-layout.md describes the layout.
//!
//! This file writes the packets and the head of the trace: clock snapshot, categories.

mod bios;
pub(crate) mod compressed;
mod facts;
mod fields;
mod file_ops;
mod human;
mod intern;
mod journal;
mod known;
mod page_cache;
mod proto;
mod slices;
mod slowest;
mod tracks;

use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::bios::File;
use self::compressed::Compress;
use self::fields::{AnnotationNames, counters};
use self::intern::Interner;
use self::proto::{bytes, nested, nested_long, uint};
use self::slowest::Slowest;
use self::tracks::{DeviceTracks, Lanes, Unowned};
use super::{Group, RunFacts, Sink};
use crate::collections::by_device::ByDevice;
use crate::error::Result;
use crate::event::bio_flags::Direction;
use crate::event::{Dev, Op};
use crate::losses::{Losses, Reason};
use crate::names::{NameId, Names};
use crate::output::Output;
use crate::rows::derived::{BioSums, Known};
use crate::rows::file_op::FileOp;
use crate::rows::{Bio, Commit, WriteWait};
use crate::trace_layout::fields::{clock, defaults, descriptor, event, packet, trace};
use crate::trace_layout::{CATEGORIES, SEQUENCE_ID};

/// What the name of a request is made from: file system or else the op of its call, path or else inode, what is missing,
/// its error.
type RequestKey = (NameId, Option<Op>, NameId, u64, Option<u8>, Option<i64>);
/// What the name of a bio is made from: its size, whether it is a flush, its file or else its thread, what is missing, its error.
type BioKey = (Option<u64>, Direction, File, Option<u8>, Option<i64>);

/// The bios of a request that arrows lead to if it has many: (time of the begin or duration, `bio_id`).
#[derive(Clone, Copy, Default)]
struct Arrows {
    first: Option<(i64, u64)>,
    last: Option<(i64, u64)>,
    slowest: Option<(i64, u64)>,
}

/// Iids of the event names of requests and bios, by what the names are made from. Formatting a name each time is slow.
#[derive(Default)]
struct EventNames {
    /// Each with the iid of its colour, or 0.
    requests: HashMap<RequestKey, (u64, u64), FixedState>,
    bios: HashMap<BioKey, u64, FixedState>,
    /// By bytes and number of bios.
    amounts: HashMap<(u64, u64), u64, FixedState>,
}

pub struct PerfettoTrace {
    out: Output,
    interner: Interner,
    max_interned_bytes: usize,
    /// The size of the interned strings at which they are forgotten.
    forget_at_bytes: usize,
    names: AnnotationNames,
    event_names: EventNames,
    /// The facts that the trace has stated once for all rows.
    known: Known,
    /// Sums of the bios that were written, by the `sync_id` of the request, until the request is written.
    bio_sums: HashMap<u64, (BioSums, Arrows), FixedState>,
    /// Number of requests that were written, and the sum of their known lengths.
    written: (u64, i64),
    next_uuid: u64,
    /// The tracks of each thread, by (tid, pid): more than one where its slices overlap.
    threads: HashMap<(u32, u32), Lanes, FixedState>,
    /// Threads whose process is not known, in the order of their first slices.
    unowned: Unowned,
    /// The track of each known process, and its lanes for events without a tid.
    processes: HashMap<u32, (u64, Lanes), FixedState>,
    /// The name of a thread of each process that has tracks of threads.
    first_threads: HashMap<u32, String, FixedState>,
    devices: ByDevice<DeviceTracks>,
    /// The counter tracks of the first device: the defaults of the sequence.
    default_counters: Option<[u64; 2]>,
    device_names: HashMap<Dev, String, FixedState>,
    /// Its counter track, once there is a request.
    syncs_in_flight: Option<u64>,
    /// The tracks of each journal, by its device, or by its thread where that is not known.
    journals: HashMap<(Dev, u32), Lanes, FixedState>,
    recording: Option<u64>,
    losses_track: Option<u64>,
    /// The group of operations on files, and the tracks of each thread in it, by (tid, pid).
    files_track: Option<u64>,
    file_lanes: HashMap<(u32, u32), Lanes, FixedState>,
    run_track: Option<u64>,
    slowest: Slowest,
    /// Number of losses of each reason that have a time.
    loss_instants: Vec<u64>,
    first_ts: i64,
}

impl PerfettoTrace {
    /// `device_names` are the names of block devices, such as `sda`, as far as they are known.
    /// When interned strings need more than `max_interned_bytes`, they are forgotten. Those that are used again are interned again.
    pub fn create(path: &Path, gzip: bool, device_names: &[(Dev, String)], max_interned_bytes: usize) -> Result<Self> {
        let mut out =
            if gzip { Output::create(path, true) } else { Output::create_packed(path, Box::new(Compress::default())) }?;
        out.sum();
        Ok(Self {
            out,
            interner: Interner::default(),
            max_interned_bytes,
            forget_at_bytes: 0,
            names: AnnotationNames::default(),
            event_names: EventNames::default(),
            known: Known::default(),
            bio_sums: HashMap::default(),
            written: (0, 0),
            next_uuid: 1,
            threads: HashMap::default(),
            unowned: Unowned::default(),
            processes: HashMap::default(),
            first_threads: HashMap::default(),
            devices: ByDevice::default(),
            default_counters: None,
            device_names: device_names.iter().cloned().collect(),
            syncs_in_flight: None,
            journals: HashMap::default(),
            recording: None,
            losses_track: None,
            files_track: None,
            file_lanes: HashMap::default(),
            run_track: None,
            slowest: Slowest::default(),
            loss_instants: vec![0; Reason::ALL.len()],
            first_ts: 0,
        })
    }

    /// Writes one packet, with the interned data that is pending.
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

    /// Writes a track event of type `kind` that begins something.
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

    /// Writes one value of a counter.
    fn counter(&mut self, ts: i64, track: u64, value: u64) -> Result<()> {
        self.event(ts, track, event::COUNTER, |b, _, _| uint(b, event::COUNTER_VALUE, value))
    }

    /// Ends the innermost open slice of a track. `values` are those of counter tracks, by uuid.
    ///
    /// Half of all packets do so. They are short, and need no interned data.
    #[inline]
    fn end(&mut self, ts: i64, track: u64, values: &[(u64, u64)]) -> Result<()> {
        nested(self.out.buffer(), trace::PACKET, |b| {
            uint(b, packet::TIMESTAMP, ts as u64);
            nested(b, packet::TRACK_EVENT, |b| {
                uint(b, event::TYPE, event::SLICE_END);
                uint(b, event::TRACK_UUID, track);
                counters(b, values);
            });
            uint(b, packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE_ID);
        });
        self.out.spill()
    }

    /// Forgets the interned strings if there are many: a log may have any number of stacks and paths.
    #[inline]
    fn bound_interned(&mut self) -> Result<()> {
        if self.interner.bytes > self.forget_at_bytes { self.forget_interned() } else { Ok(()) }
    }

    #[cold]
    fn forget_interned(&mut self) -> Result<()> {
        self.interner = Interner::default();
        self.event_names = EventNames::default();
        self.intern_common();
        let defaults = self.default_counters;
        self.packet(packet::SEQ_INCREMENTAL_STATE_CLEARED | packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, _, _| {
            if let Some(tracks) = defaults {
                counter_defaults(b, tracks);
            }
        })
    }

    /// Makes counter tracks the defaults of the events that follow.
    fn set_default_counters(&mut self, tracks: [u64; 2]) -> Result<()> {
        self.default_counters = Some(tracks);
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, _, _| counter_defaults(b, tracks))
    }

    /// Interns the strings whose iids are kept: categories, columns, names of devices.
    fn intern_common(&mut self) {
        for (category, name) in CATEGORIES {
            self.interner.category(category as u64, name);
        }
        self.names = AnnotationNames::intern(&mut self.interner);
        self.intern_device_names();
        self.forget_at_bytes = 2 * self.interner.bytes + self.max_interned_bytes;
    }

    fn take_uuid(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid - 1
    }

    /// Writes a track descriptor and returns the uuid of the track.
    fn descriptor(&mut self, ts: Option<i64>, write: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        let uuid = self.take_uuid();
        self.descriptor_of(uuid, ts, write)?;
        Ok(uuid)
    }

    fn descriptor_of(&mut self, uuid: u64, ts: Option<i64>, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |b, _, _| {
            if let Some(ts) = ts {
                uint(b, packet::TIMESTAMP, ts as u64);
            }
            nested(b, packet::TRACK_DESCRIPTOR, |b| {
                uint(b, descriptor::UUID, uuid);
                write(b);
            });
        })
    }
}

fn counter_defaults(b: &mut Vec<u8>, tracks: [u64; 2]) {
    nested(b, packet::TRACE_PACKET_DEFAULTS, |b| {
        nested(b, defaults::TRACK_EVENT, |b| {
            for track in tracks {
                uint(b, defaults::EXTRA_COUNTER_TRACK_UUIDS, track);
            }
        });
    });
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

        self.intern_common();
        self.packet(packet::SEQ_NEEDS_INCREMENTAL_STATE, |_, _, _| {})?;

        self.begin_known()
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.bound_interned()?;
        self.bio_slice(bio, names)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        self.bound_interned()?;
        self.group_slices(group, names)
    }

    fn commit(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        self.bound_interned()?;
        self.commit_slice(commit, names)
    }

    fn write_wait(&mut self, wait: &WriteWait, names: &Names) -> Result<()> {
        self.bound_interned()?;
        self.write_wait_slice(wait, names)
    }

    fn wants_file_ops(&self) -> bool {
        true
    }

    fn file_op(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        self.bound_interned()?;
        self.file_op_slice(op, names)
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        self.loss_instant(reason, ts, text)
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.mark_slices(&facts.marks)?;
        self.page_cache_tracks(&facts.prediction)?;
        self.never_completed(facts.last_ts.unwrap_or(self.first_ts))?;
        self.slowest_syncs()?;
        self.thread_descriptors()?;
        self.name_processes(names)?;
        self.run_instants(facts, losses)?;
        self.out.commit()
    }
}
