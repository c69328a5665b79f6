//! Goes through a trace once: finds its bundles of events, and what it says about itself.
//!
//! A bundle holds the events of one CPU. Bundles of other CPUs that follow it may be older, so they are sorted before they are parsed. The
//! scan also finds what a bundle needs of those before it: which thread runs on its CPU.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::bundle::{Bundle, FtraceClock, Payload, SCHED_SWITCH};
use super::clock::Clock;
use super::event_types::EventType;
use super::packets::{End, Packets, unpacked};
use crate::collections::Map;
use crate::error::Refused;
use crate::input_file::Store;
use crate::trace_layout::fields::{clock, packet, trace};
use crate::trace_layout::wire::{Damaged, Fields, Wire};

/// Where the bytes of a bundle are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this byte of the file.
    File(u64),
    /// At this byte of the file of unpacked bundles.
    Unpacked(u64),
}

/// A bundle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) len: u32,
    /// Index in `Scan::clocks`.
    pub(super) clock: u32,
    /// Times of its first and its last event, on its clock.
    first: u64,
    last: u64,
    /// A time on CLOCK_BOOTTIME that none of its events precedes.
    pub(super) earliest: i64,
    /// The thread that ran on its CPU before it, if that is known.
    pub(super) running: Option<u32>,
    /// Events of its CPU are lost before it.
    pub(super) has_loss: bool,
}

/// Something of the trace that cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unread {
    pub(super) at: u64,
    pub(super) why: &'static str,
}

/// The clock of a bundle's times. `global` and `local` are kept for each sequence of packets, because its own bundles relate them to
/// CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClockKey {
    Boot,
    MonotonicRaw,
    Of { sequence: u64, clock: &'static str },
}

/// The bundles of a CPU until now.
#[derive(Clone, Copy, Default)]
struct Stream {
    /// The thread that runs, if that is known.
    running: Option<u32>,
    /// `Scan::drops` at the last bundle.
    drops: u64,
}

#[derive(Default)]
struct CpuStats {
    overrun: u64,
    dropped: u64,
}

#[derive(Default)]
pub(super) struct Scan {
    /// In the order of time, after `finish`.
    pub(super) bundles: Vec<Entry>,
    pub(super) clocks: Vec<Clock>,
    clock_keys: Vec<ClockKey>,
    clock_by_key: Map<ClockKey, usize>,
    pub(super) unread: Vec<Unread>,
    /// The number of further ones, which are not kept.
    pub(super) more_unread: u64,
    /// Events that the trace describes, by the number of their message.
    pub(super) described: Map<u32, EventType>,
    /// The numbers of the messages that the trace has or describes.
    pub(super) messages: Map<u32, ()>,
    /// Names of threads as the scheduler saw them, and as the process tree has them.
    comms: Map<u32, Vec<u8>>,
    tree: Map<u32, Vec<u8>>,
    /// Process of each thread.
    pub(super) tgids: Map<u32, u32>,
    pub(super) uname: Option<String>,
    pub(super) machine: String,
    pub(super) recorder: Option<String>,
    /// By sequence of packets and CPU.
    streams: Map<(u64, u32), Stream>,
    /// By sequence of packets: how often its service dropped packets of it.
    drops: Map<u64, u64>,
    /// Counts of lost events by CPU, at the begin and at the end of the trace.
    begin: Map<u64, CpuStats>,
    end: Map<u64, CpuStats>,
    /// What to add to CLOCK_BOOTTIME for ns since 1970, at the first snapshot of both.
    pub(super) realtime_offset_ns: Option<i64>,
    machine_id: Option<u64>,
    /// Chunks of the trace that its service threw away.
    discarded: bool,
}

/// Examples of what cannot be read; the rest is counted.
const MAX_UNREAD: usize = 1000;

/// The bundles that were compressed.
pub(super) struct Spool {
    file: BufWriter<File>,
    at: u64,
}

impl Spool {
    fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), at: 0 })
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<Place> {
        let place = Place::Unpacked(self.at);
        self.file.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(place)
    }
}

impl Scan {
    /// Goes through a trace. Also returns the bundles that were compressed in it.
    pub(super) fn of(store: &Store) -> io::Result<(Self, Option<Store>)> {
        let mut scan = Self::default();
        let mut spool = None;
        let mut packets = Packets::new(store);
        let end = loop {
            let (at, packet) = match packets.next()? {
                Ok(next) => next,
                Err(end) => break end,
            };
            match unpacked(packet) {
                None => scan.packet(packet, at, |offset, _| Ok(Place::File(at + offset as u64)))?,
                Some(Err(Damaged)) => scan.unread(at, "its compressed packets are damaged"),
                Some(Ok(inner)) => {
                    let spool = match &mut spool {
                        Some(spool) => spool,
                        none => none.insert(Spool::new()?),
                    };
                    for field in Fields(&inner) {
                        match field {
                            Ok((trace::PACKET, Wire::Bytes(packet))) if unpacked(packet).is_none() => {
                                scan.packet(packet, at, |_, bundle| spool.add(bundle))?;
                            }
                            Ok((trace::PACKET, _)) | Err(Damaged) => {
                                scan.unread(at, "its compressed packets are damaged");
                                break;
                            }
                            Ok(_) => {}
                        }
                    }
                }
            }
        };
        if let End::CutOff(at) = end {
            scan.unread(at, "it is damaged or cut off, and nothing after it is read");
        }
        scan.finish()?;
        let spool = spool.map(|spool| Store::of_file(spool.file.into_inner().map_err(io::IntoInnerError::into_error)?));
        Ok((scan, spool.transpose()?))
    }

    fn unread(&mut self, at: u64, why: &'static str) {
        if self.unread.len() < MAX_UNREAD {
            self.unread.push(Unread { at, why });
        } else {
            self.more_unread += 1;
        }
    }

    /// Takes a packet at a byte of the file. `place` returns where a bundle is, given the offset of the bundle in the packet, and its
    /// bytes.
    fn packet(
        &mut self,
        packet: &[u8],
        at: u64,
        mut place: impl FnMut(usize, &[u8]) -> io::Result<Place>,
    ) -> io::Result<()> {
        let (mut sequence, mut dropped, mut machine, mut bundles) = (0, false, 0, Vec::new());
        let mut fields = Fields(packet);
        while let Some(field) = fields.next() {
            let read = match field {
                Ok((packet::FTRACE_EVENTS, Wire::Bytes(bytes))) => {
                    bundles.push((packet.len() - fields.0.len() - bytes.len(), bytes));
                    Ok(())
                }
                Ok((packet::TRUSTED_PACKET_SEQUENCE_ID, id)) => id.int().map(|id| sequence = id),
                Ok((packet::PREVIOUS_PACKET_DROPPED, flag)) => flag.int().map(|flag| dropped = flag != 0),
                Ok((packet::MACHINE_ID, id)) => id.int().map(|id| machine = id),
                Ok((packet::CLOCK_SNAPSHOT, Wire::Bytes(bytes))) => self.clock_snapshot(bytes),
                Ok((packet::PROCESS_TREE, Wire::Bytes(bytes))) => self.process_tree(bytes),
                Ok((packet::SYSTEM_INFO, Wire::Bytes(bytes))) => self.system_info(bytes),
                Ok((packet::FTRACE_STATS, Wire::Bytes(bytes))) => self.ftrace_stats(bytes),
                Ok((packet::TRACE_STATS, Wire::Bytes(bytes))) => self.trace_stats(bytes),
                Ok(_) => Ok(()),
                Err(damaged) => Err(damaged),
            };
            if read.is_err() {
                self.unread(at, "a packet is damaged");
                break;
            }
        }
        match self.drops.get_mut(&sequence) {
            Some(drops) => *drops += u64::from(dropped),
            // The first packet of a sequence may have this flag although nothing was dropped.
            None => {
                self.drops.insert(sequence, 0);
            }
        }
        for (offset, bytes) in bundles {
            if *self.machine_id.get_or_insert(machine) != machine {
                return Err(Refused::error(
                    "it holds the events of several machines",
                    "Syncline reads one machine at a time: record each machine's trace on its own",
                ));
            }
            self.bundle(bytes, at, sequence, place(offset, bytes)?)?;
        }
        Ok(())
    }

    fn bundle(&mut self, bytes: &[u8], at: u64, sequence: u64, place: Place) -> io::Result<()> {
        let bundle = Bundle::read(bytes);
        let Some(cpu) = bundle.cpu else {
            self.unread(at, "a bundle of events does not name its CPU");
            return Ok(());
        };
        let Ok(len) = u32::try_from(bytes.len()) else {
            return Err(Refused::error(
                "it holds more than 4 GiB of events in one packet",
                "copy it again: it is damaged",
            ));
        };
        for descriptor in &bundle.descriptors {
            match EventType::of_descriptor(descriptor) {
                Ok((number, event)) => {
                    self.messages.insert(number, ());
                    self.described.entry(number).or_insert(event);
                }
                Err(Damaged) => self.unread(at, "the description of an event is damaged"),
            }
        }
        let key = match bundle.clock {
            FtraceClock::Boot => ClockKey::Boot,
            FtraceClock::MonotonicRaw => ClockKey::MonotonicRaw,
            FtraceClock::Global => ClockKey::Of { sequence, clock: "global" },
            FtraceClock::Local => ClockKey::Of { sequence, clock: "local" },
            FtraceClock::Unknown => {
                return Err(Refused::error(
                    "it does not say which clock its ring buffer had",
                    "record with CLOCK_BOOTTIME, which Perfetto takes by itself: leave use_monotonic_raw_clock out",
                ));
            }
        };
        let clock = self.clock(key);
        if let (Some(own), Some(boot)) = bundle.moment
            && key != ClockKey::Boot
        {
            self.clocks[clock].add((own, boot));
        }
        let drops = self.drops.get(&sequence).copied().unwrap_or_default();
        let before = self.streams.get(&(sequence, cpu)).copied();
        // The dropped events may be of any CPU.
        let has_dropped = before.unwrap_or_default().drops != drops;
        let has_loss = bundle.lost_events || has_dropped || before.is_none() && bundle.incomplete_until > 0;
        let running = before.and_then(|stream| stream.running).filter(|_| !has_loss);
        let after = bundle.each(running, |item, _| match item.payload {
            Payload::Switch { to, comm, .. } => self.saw(to, comm),
            Payload::Waking { tid, comm, .. } => self.saw(tid, comm),
            Payload::Message { number: SCHED_SWITCH, bytes } => self.saw_switch(bytes),
            Payload::Message { number, .. } => {
                self.messages.entry(number).or_insert(());
            }
        });
        self.streams.insert((sequence, cpu), Stream { running: after, drops });
        let first = bundle.items.first().map_or(0, |item| item.ts);
        let last = bundle.items.last().map_or(0, |item| item.ts);
        self.bundles.push(Entry { place, len, clock: clock as u32, first, last, earliest: 0, running, has_loss });
        Ok(())
    }

    fn clock(&mut self, key: ClockKey) -> usize {
        *self.clock_by_key.entry(key).or_insert_with(|| {
            self.clock_keys.push(key);
            self.clocks.push(Clock::default());
            self.clocks.len() - 1
        })
    }

    fn saw(&mut self, tid: u32, comm: &[u8]) {
        match self.comms.get_mut(&tid) {
            Some(known) if known == comm => {}
            Some(known) => comm.clone_into(known),
            None => {
                self.comms.insert(tid, comm.to_vec());
            }
        }
    }

    fn saw_switch(&mut self, bytes: &[u8]) {
        let mut names: [(Option<u32>, &[u8]); 2] = [(None, b""); 2];
        for field in Fields(bytes).map_while(Result::ok) {
            match field {
                (1, Wire::Bytes(comm)) => names[0].1 = comm,
                (2, Wire::Int(tid)) => names[0].0 = u32::try_from(tid as i32).ok(),
                (5, Wire::Bytes(comm)) => names[1].1 = comm,
                (6, Wire::Int(tid)) => names[1].0 = u32::try_from(tid as i32).ok(),
                _ => {}
            }
        }
        for (tid, comm) in names {
            if let Some(tid) = tid.filter(|_| !comm.is_empty()) {
                self.saw(tid, comm);
            }
        }
    }

    fn clock_snapshot(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        let (mut raw, mut boot, mut real) = (None, None, None);
        for field in Fields(bytes) {
            let (clock::CLOCKS, one) = field? else { continue };
            let (mut id, mut time) = (0, None);
            for part in Fields(one.bytes()?) {
                match part? {
                    (clock::CLOCK_ID, value) => id = value.int()?,
                    (clock::TIMESTAMP, value) => time = Some(value.int()?),
                    _ => {}
                }
            }
            match id {
                clock::MONOTONIC_RAW => raw = time,
                clock::BOOTTIME => boot = time,
                clock::REALTIME => real = time,
                _ => {}
            }
        }
        if let (Some(raw), Some(boot)) = (raw, boot) {
            let clock = self.clock(ClockKey::MonotonicRaw);
            self.clocks[clock].add((raw, boot));
        }
        if let (Some(real), Some(boot)) = (real, boot) {
            self.realtime_offset_ns.get_or_insert_with(|| real.wrapping_sub(boot).cast_signed());
        }
        Ok(())
    }

    fn process_tree(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        const PROCESSES: u32 = 1;
        const THREADS: u32 = 2;
        // The field of the id, in both messages.
        const ID: u32 = 1;
        const NAME: u32 = 2;
        const TGID: u32 = 3;
        const CMDLINE: u32 = 3;
        const CMDLINE_IS_COMM: u32 = 9;
        let tid = |wire: Wire<'_>| wire.int().map(|tid| u32::try_from(tid as i32).ok());
        for field in Fields(bytes) {
            let (kind, one) = field?;
            if !matches!(kind, PROCESSES | THREADS) {
                continue;
            }
            let (mut id, mut tgid, mut name, mut is_comm) = (None, None, None, kind == THREADS);
            for part in Fields(one.bytes()?) {
                match part? {
                    (ID, value) => id = tid(value)?,
                    (NAME, value) if kind == THREADS => name = Some(value.bytes()?),
                    (TGID, value) if kind == THREADS => tgid = tid(value)?,
                    (CMDLINE, value) if kind == PROCESSES => name = name.or(Some(value.bytes()?)),
                    (CMDLINE_IS_COMM, value) if kind == PROCESSES => is_comm = value.int()? != 0,
                    _ => {}
                }
            }
            let Some(id) = id else { continue };
            if let Some(name) = name.filter(|_| is_comm) {
                self.tree.insert(id, name.to_vec());
            }
            if let Some(tgid) = if kind == PROCESSES { Some(id) } else { tgid } {
                self.tgids.insert(id, tgid);
            }
        }
        Ok(())
    }

    fn system_info(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        const UTSNAME: u32 = 1;
        const TRACING_SERVICE_VERSION: u32 = 4;
        const SYSNAME: u32 = 1;
        const RELEASE: u32 = 3;
        const MACHINE: u32 = 4;
        for field in Fields(bytes) {
            match field? {
                (UTSNAME, utsname) => {
                    let mut words = [""; 3];
                    for part in Fields(utsname.bytes()?) {
                        match part? {
                            (SYSNAME, text) => words[0] = text.text()?,
                            (RELEASE, text) => words[1] = text.text()?,
                            (MACHINE, text) => words[2] = text.text()?,
                            _ => {}
                        }
                    }
                    words[2].clone_into(&mut self.machine);
                    let known: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
                    self.uname = Some(known.join(" ")).filter(|uname| !uname.is_empty());
                }
                (TRACING_SERVICE_VERSION, version) => self.recorder = Some(version.text()?.to_owned()),
                _ => {}
            }
        }
        Ok(())
    }

    fn ftrace_stats(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        const PHASE: u32 = 1;
        const CPU_STATS: u32 = 2;
        const START_OF_TRACE: u64 = 1;
        let (mut phase, mut cpus) = (0, Vec::new());
        for field in Fields(bytes) {
            match field? {
                (PHASE, number) => phase = number.int()?,
                (CPU_STATS, stats) => {
                    let (mut cpu, mut of) = (0, CpuStats::default());
                    for part in Fields(stats.bytes()?) {
                        match part? {
                            (1, number) => cpu = number.int()?,
                            (3, overrun) => of.overrun = overrun.int()?,
                            // `commit_overrun` and `dropped_events`
                            (4 | 8, dropped) => of.dropped = of.dropped.saturating_add(dropped.int()?),
                            _ => {}
                        }
                    }
                    cpus.push((cpu, of));
                }
                _ => {}
            }
        }
        let counts = if phase == START_OF_TRACE { &mut self.begin } else { &mut self.end };
        counts.extend(cpus);
        Ok(())
    }

    fn trace_stats(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        const BUFFER_STATS: u32 = 1;
        const CHUNKS_DISCARDED: u32 = 18;
        for field in Fields(bytes) {
            let (BUFFER_STATS, stats) = field? else { continue };
            for part in Fields(stats.bytes()?) {
                if let (CHUNKS_DISCARDED, count) = part? {
                    self.discarded |= count.int()? > 0;
                }
            }
        }
        Ok(())
    }

    /// Sorts the bundles by time.
    fn finish(&mut self) -> io::Result<()> {
        let has_clock = |clock: u32| {
            let clock = clock as usize;
            self.clock_keys[clock] == ClockKey::Boot || self.clocks[clock].is_related()
        };
        let mut used: Vec<u32> = self.bundles.iter().map(|bundle| bundle.clock).collect();
        used.sort_unstable();
        used.dedup();
        if used.len() > 1 && !used.iter().all(|&clock| has_clock(clock)) {
            return Err(Refused::error(
                "its events are on several clocks, and it does not say how these are related",
                "record one ring buffer at a time, with CLOCK_BOOTTIME: leave use_monotonic_raw_clock out",
            ));
        }
        for bundle in &mut self.bundles {
            bundle.earliest = self.clocks[bundle.clock as usize].earliest(bundle.first, bundle.last);
        }
        // Bundles of equal times keep their order.
        self.bundles.sort_by_key(|bundle| bundle.earliest);
        Ok(())
    }

    /// The clock of all events.
    pub(super) fn clock_name(&self) -> &'static str {
        match self.bundles.first().map(|bundle| bundle.clock as usize) {
            Some(clock) if !self.clocks[clock].is_related() => match self.clock_keys[clock] {
                ClockKey::Boot => "boottime",
                ClockKey::MonotonicRaw => "monotonic_raw",
                ClockKey::Of { clock, .. } => clock,
            },
            _ => "boottime",
        }
    }

    /// The names of threads: as the scheduler saw them last, and else as the process tree has them.
    pub(super) fn take_comms(&mut self) -> Map<u32, Vec<u8>> {
        let mut comms = std::mem::take(&mut self.tree);
        comms.extend(std::mem::take(&mut self.comms));
        // The kernel names its idle tasks after their CPUs, although they have one thread id.
        comms.insert(0, b"<idle>".to_vec());
        comms
    }

    /// Number of lost events that no bundle reports. A bundle that reports a loss is counted as one event.
    pub(super) fn unreported_losses(&self) -> u64 {
        let sum = |of: &dyn Fn(&CpuStats) -> u64| {
            let by_cpu = self.end.iter().map(|(cpu, end)| of(end).saturating_sub(self.begin.get(cpu).map_or(0, of)));
            by_cpu.fold(0, u64::saturating_add)
        };
        let reported = self.bundles.iter().filter(|bundle| bundle.has_loss).count() as u64;
        sum(&|stats| stats.overrun).saturating_sub(reported).saturating_add(sum(&|stats| stats.dropped))
    }

    /// The service of Perfetto threw away parts of the trace, and does not say which.
    pub(super) fn has_discarded(&self) -> bool {
        self.discarded
    }
}
