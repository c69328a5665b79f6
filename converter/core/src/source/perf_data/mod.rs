//! perf.data, as `perf record` writes it to a file or to a pipe.
//!
//! `Ordered` reads the records, puts them into the order of time, and follows the names of threads and the mappings of processes. It
//! gives each sample to its chunk with its thread's name and the files of its stack, so that chunks are parsed without state.

mod attr;
mod chunk;
mod file;
mod metadata;
mod records;
mod round;
mod tasks;

use std::io;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::attr::Sample;
use self::chunk::{Item, Items, Problem as BadSample, SampleItem};
use self::file::data_after;
use self::metadata::{Metadata, PerfEvent};
use self::records::{Record, Records, kind};
use self::round::{Held, Rounds};
use self::tasks::{Comm, Files, KERNEL, NO_FILE, Tasks};
use super::binary::format::Format;
use super::binary::{ByteOrder, EventTypes, Functions, RecordTask};
use super::perf_script::{attach_stack, push_line};
use super::tracepoints::Machine;
use super::{Batch, Chunks, Explanation, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions};
use crate::error::{Error, Result};
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input_file::{Chunk, Input};
use crate::names::NameId;

const CHUNK_BYTES: usize = 1 << 18;
/// Flags of records.
const COMM_EXEC: u16 = 1 << 13;
const FORK_EXEC: u16 = 1 << 13;
const MMAP_DATA: u16 = 1 << 13;
/// The samples were dropped on purpose, by a filter.
const LOST_BY_FILTER: u16 = 1 << 15;

pub const NAME: &str = "perf-data";

pub struct PerfData;

impl Source for PerfData {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "perf records how many events the kernel lost (`PERF_RECORD_LOST`), so a loss while recording shows, \
         although not which events or whose."
    }

    fn may_have_far_times(&self) -> bool {
        false
    }

    fn sniff(&self, head: &[u8]) -> bool {
        file::is_perf_data(head)
    }

    fn describe(&self, _: &Input) -> InputTraits {
        InputTraits { is_part_of_recording: true, ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn may_hold_writes(&self) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let path = input.path.clone();
        let fail = |source| Error::Read { path: path.clone(), source };
        let (mut metadata, records) = input.into_store().and_then(file::open).map_err(fail)?;
        let facts = facts_of(&metadata);
        let machine = metadata.release.as_deref().map(|release| metadata.arch.as_deref().unwrap_or(release));
        let formats = metadata.formats.take().unwrap_or_default();
        let records_requests = formats.iter().any(Format::is_of_requests);
        let types = EventTypes::new(
            formats,
            metadata.order,
            machine.and_then(Machine::of),
            (options.keep_extras, options.keep_writes),
            (None, Functions::default()),
        );
        let tasks = Tasks::default();
        let parse = Arc::new(Samples {
            types,
            events: metadata.events.clone(),
            files: Arc::clone(&tasks.files),
            keep_extras: options.keep_extras,
        });
        let chunks = Box::new(Ordered {
            path: path.clone(),
            uses: parse.events.iter().map(|event| parse.use_of(event)).collect(),
            metadata,
            records,
            rounds: Rounds::default(),
            tasks,
            others: vec![0; parse.events.len()],
            watermark: i64::MIN,
            lost: 0,
            lost_samples: 0,
            has_ended: false,
        });
        Ok(Reader {
            chunks,
            parse,
            stateful_pass: None,
            facts,
            piece_options: None,
            records_requests,
            may_have_far_times: false,
        })
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        matches!(problem, Problem::NoEvents { .. }).then(|| Explanation {
            message: None,
            hint: "record them, too: `perf record -a -e 'syscalls:sys_*_fsync' -e 'syscalls:sys_*_fdatasync' -e 'ext4:ext4_sync_file_*' \
                   -e block:block_bio_queue -e block:block_rq_complete`; docs/reference/formats.md lists all events"
                .into(),
        })
    }
}

fn facts_of(metadata: &Metadata) -> Vec<(&'static str, String)> {
    let clock = metadata.events.iter().find(|event| event.attr.is_tracepoint()).and_then(|event| event.attr.clock);
    let mut facts = vec![("clock", clock_name(clock))];
    facts.extend(metadata.release.as_ref().map(|release| ("kernel", format!("Linux {release}"))));
    facts.extend(metadata.host.clone().map(|host| ("host", host)));
    let offset = metadata.realtime_offset_ns.filter(|_| clock.is_some());
    facts.extend(offset.map(|offset| ("realtime_offset_ns", offset.to_string())));
    let version = metadata.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
    facts.push(("recorder", format!("perf{version}")));
    facts
}

/// Returns the name that docs/reference/tables.md gives the clock with this number.
fn clock_name(clock: Option<i32>) -> String {
    match clock {
        None => "local".into(),
        Some(0) => "realtime".into(),
        Some(1) => "monotonic".into(),
        Some(4) => "monotonic_raw".into(),
        Some(7) => "boottime".into(),
        Some(11) => "tai".into(),
        Some(other) => format!("clockid {other}"),
    }
}

/// How an event is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Only the number of its samples.
    Count,
    Data,
    /// The data, and the frames of user space.
    UserStack,
    /// The data, and all frames.
    Stack,
}

/// The records of a file in the order of time.
struct Ordered {
    path: String,
    metadata: Metadata,
    /// For each event.
    uses: Vec<Use>,
    records: Records,
    rounds: Rounds,
    tasks: Tasks,
    /// Samples of each event that is only counted, since the last chunk.
    others: Vec<u64>,
    watermark: i64,
    /// Number of lost events by the records of the kernel, and by the counts that perf reads at its end. Both count the same losses, but the
    /// kernel may have had no occasion to write the last of them.
    lost: u64,
    lost_samples: u64,
    has_ended: bool,
}

impl Ordered {
    fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        let buffer = chunk.begin();
        while buffer.len() < CHUNK_BYTES {
            if self.take_next(buffer) {
                continue;
            }
            if self.has_ended {
                break;
            }
            self.read(buffer)?;
        }
        for (event, count) in self.others.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            Item::Others { event: event as u32, count: std::mem::take(count) }.write(buffer);
        }
        let is_last = buffer.len() < CHUNK_BYTES;
        let unreported = self.lost_samples.saturating_sub(self.lost);
        if is_last && unreported > 0 {
            self.lost_samples = 0;
            Item::Lost(unreported).write(buffer);
        }
        let any = !buffer.is_empty();
        chunk.end();
        // The times of a damaged file may run backwards, so a record that is older than this comes late.
        let known = if is_last { Some(i64::MAX) } else { self.rounds.watermark() };
        self.watermark = known.map_or(self.watermark, |time| time.max(self.watermark));
        chunk.watermark = Some(self.watermark);
        Ok(any)
    }

    /// Writes the next record in the order of time. Returns false if more must be read first.
    fn take_next(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Self { rounds, tasks, uses, metadata, lost, .. } = self;
        let Some((time, held)) = rounds.next() else { return false };
        match held {
            Held::Sample { event, sample } => {
                write_sample(tasks, (event, uses[event as usize]), time, &sample, metadata.order, buffer);
            }
            Held::Record { kind, misc, body } => {
                let record = Record { kind, misc, body };
                *lost = lost.saturating_add(apply(tasks, &record, metadata, uses, buffer).unwrap_or(0));
            }
        }
        true
    }

    /// Reads one record.
    fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Self { records, rounds, tasks, metadata, uses, others, lost, lost_samples, .. } = self;
        let order = metadata.order;
        let Some(record) = records.next()? else {
            if records.is_cut_off() {
                Item::CutOff.write(buffer);
            }
            self.has_ended = true;
            rounds.release_all();
            return Ok(());
        };
        match record.kind {
            kind::SAMPLE => read_sample(metadata, uses, record.body, rounds, others, buffer),
            kind::FINISHED_ROUND => rounds.finish_round(),
            kind::LOST_SAMPLES if record.misc & LOST_BY_FILTER == 0 => {
                *lost_samples = lost_samples.saturating_add(order.number(record.body, 0, 8).unwrap_or(0));
            }
            kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT | kind::LOST | kind::THROTTLE => {
                let (body, time) = metadata.split_trailer(record.body);
                let record = Record { body, ..record };
                match time {
                    Some(time) => rounds.push(time, &Held::Record { kind: record.kind, misc: record.misc, body }),
                    // perf itself wrote what was true when it began.
                    None => *lost = lost.saturating_add(apply(tasks, &record, metadata, uses, buffer).unwrap_or(0)),
                }
            }
            kind => {
                let len = data_after(kind, record.body, order);
                records.skip_data(len);
            }
        }
        rounds.make_room();
        Ok(())
    }
}

impl Chunks for Ordered {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.fill(chunk).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    fn consumed_bytes(&self) -> u64 {
        self.records.position()
    }
}

fn read_sample(
    metadata: &Metadata,
    uses: &[Use],
    body: &[u8],
    rounds: &mut Rounds,
    others: &mut [u64],
    buffer: &mut Vec<u8>,
) {
    let Some(event) = metadata.event_of_sample(body) else {
        return Item::Bad { event: u32::MAX, problem: BadSample::NoEvent }.write(buffer);
    };
    let Some(mut sample) = metadata.events[event as usize].attr.sample(body, metadata.order) else {
        return Item::Bad { event, problem: BadSample::TooShort }.write(buffer);
    };
    let time = sample.time as i64;
    match uses[event as usize] {
        Use::Count => {
            others[event as usize] += 1;
            return rounds.note_time(time);
        }
        Use::Data => sample.chain = &[],
        Use::UserStack | Use::Stack => {}
    }
    rounds.push(time, &Held::Sample { event, sample });
}

/// Writes a sample with its thread's name and the files of its stack.
fn write_sample(
    tasks: &Tasks,
    (event, needed): (u32, Use),
    time: i64,
    sample: &Sample<'_>,
    order: ByteOrder,
    buffer: &mut Vec<u8>,
) {
    let Sample { pid, tid, chain, raw, .. } = *sample;
    let mut frames = Vec::new();
    if !chain.is_empty() {
        let addresses = chain.chunks_exact(8).filter_map(|address| order.number(address, 0, 8));
        tasks.frames(pid, addresses, needed == Use::UserStack, |address, file| {
            chunk::write_frame(address, file, &mut frames);
        });
    }
    Item::Sample(SampleItem { event, time, pid, tid, comm: tasks.comm(tid), raw, frames: &frames }).write(buffer);
}

/// Takes a record other than a sample, in the order of time. Returns the number of events that it reports as lost; `None` if it is too short.
fn apply(
    tasks: &mut Tasks,
    record: &Record<'_>,
    metadata: &Metadata,
    uses: &[Use],
    buffer: &mut Vec<u8>,
) -> Option<u64> {
    let (body, misc) = (record.body, record.misc);
    let u32_at = |at| metadata.order.number(body, at, 4).map(|n| n as u32);
    let u64_at = |at| metadata.order.number(body, at, 8);
    match record.kind {
        kind::COMM => tasks.rename(u32_at(0)?, u32_at(4)?, body.get(8..)?, misc & COMM_EXEC != 0),
        kind::FORK => {
            let (child, parent) = ((u32_at(0)?, u32_at(8)?), (u32_at(4)?, u32_at(12)?));
            tasks.fork(child, parent, misc & FORK_EXEC == 0);
        }
        kind::EXIT => tasks.exit(u32_at(0)?, u32_at(8)?),
        kind::MMAP | kind::MMAP2 if misc & MMAP_DATA == 0 && metadata.has_chains() => {
            let name = if record.kind == kind::MMAP { 32 } else { 64 };
            tasks.map(u32_at(0)?, u64_at(8)?, u64_at(16)?, body.get(name..)?);
        }
        kind::LOST => {
            let count = u64_at(8)?;
            if count > 0 {
                Item::Lost(count).write(buffer);
            }
            return Some(count);
        }
        kind::THROTTLE => {
            let event = metadata.event_of_id(u64_at(8)?)?;
            if uses[event as usize] != Use::Count {
                Item::LostUncounted.write(buffer);
            }
        }
        _ => {}
    }
    Some(0)
}

/// Parses the samples of chunks.
struct Samples {
    types: EventTypes,
    events: Vec<PerfEvent>,
    files: Arc<Files>,
    keep_extras: bool,
}

/// Names of threads that a chunk has had, by thread.
type Comms = HashMap<u32, (Comm, NameId), FixedState>;

impl Samples {
    fn use_of(&self, event: &PerfEvent) -> Use {
        let attr = &event.attr;
        let is_described = attr.is_tracepoint() && self.types.name(attr.config).is_some();
        match (self.keep_extras, attr.has_chain()) {
            (true, true) => Use::Stack,
            (true, false) => Use::Data,
            _ if !attr.is_tracepoint() || is_described && !self.types.is_used(attr.config) => Use::Count,
            (false, true) if self.types.may_be_call(attr.config) => Use::UserStack,
            _ => Use::Data,
        }
    }

    /// The name of an event as other formats have it: a tracepoint without its system.
    fn name(&self, event: u32) -> &str {
        let Some(event) = self.events.get(event as usize) else { return "a sample" };
        let described = if event.attr.is_tracepoint() { self.types.name(event.attr.config) } else { None };
        described.unwrap_or(&event.name)
    }

    fn sample(&self, sample: &SampleItem<'_>, comms: &mut Comms, batch: &mut Batch) {
        let Some(event) = self.events.get(sample.event as usize) else { return };
        let is_kept = if event.attr.is_tracepoint() {
            if self.types.id_of(sample.raw) != Some(event.attr.config) {
                return batch.unparsed(event.name.as_bytes(), "the data of its sample are those of another event");
            }
            self.types.record(sample.time, sample.raw, batch, |_, batch| task_of(sample, comms, batch))
        } else {
            self.other(sample, comms, batch)
        };
        if is_kept && !sample.frames.is_empty() {
            let (mut frames, mut user_frames) = (Vec::new(), Vec::new());
            for (address, file) in chunk::frames(sample.frames) {
                let file = if file == NO_FILE { None } else { self.files.get(file) };
                let file = file.as_deref().unwrap_or(b"[unknown]");
                let frame = [format!("{address:x} [unknown] (").as_bytes(), file, b")"].concat();
                push_line(&mut frames, &frame);
                if address & KERNEL == 0 {
                    push_line(&mut user_frames, &frame);
                }
            }
            attach_stack(batch, batch.events.len() - 1, &frames, &user_frames, self.keep_extras);
        }
    }

    /// Appends an event that is not a tracepoint, and returns whether it is needed.
    fn other(&self, sample: &SampleItem<'_>, comms: &mut Comms, batch: &mut Batch) -> bool {
        let name = self.name(sample.event);
        if sample.time < 0 {
            batch.unparsed(name.as_bytes(), "its time is out of range");
            return false;
        }
        if !self.keep_extras {
            batch.other(|| name);
            return false;
        }
        let RecordTask { tid, pid, comm } = task_of(sample, comms, batch);
        let name = batch.names.intern(name.as_bytes());
        batch.event_names.push(name);
        batch.events.push(Event { ts: sample.time, tid, pid, comm, line: 0, kind: Kind::Other });
        true
    }
}

/// perf gives -1 to a thread that has no id any more.
fn task_of(sample: &SampleItem<'_>, comms: &mut Comms, batch: &mut Batch) -> RecordTask {
    let comm = match comms.get(&sample.tid) {
        Some((comm, id)) if *comm == sample.comm => *id,
        _ => {
            let len = sample.comm.iter().position(|&b| b == 0).unwrap_or(sample.comm.len());
            let id = if len > 0 { batch.names.intern(&sample.comm[..len]) } else { NameId::NONE };
            comms.insert(sample.tid, (sample.comm, id));
            id
        }
    };
    let task = |id: u32| if i32::try_from(id).is_ok() { id } else { UNKNOWN_TASK };
    RecordTask { tid: task(sample.tid), pid: task(sample.pid), comm }
}

impl Parse for Samples {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut comms = Comms::default();
        for item in Items(chunk) {
            match item {
                Item::Sample(sample) => self.sample(&sample, &mut comms, batch),
                Item::Others { event, count } => batch.others(|| self.name(event), count),
                Item::Lost(count) => batch.note(NoteKind::Lost { count }),
                Item::LostUncounted => batch.note(NoteKind::LostUncounted),
                Item::Bad { event, problem } => batch.unparsed(self.name(event).as_bytes(), problem.text()),
                Item::CutOff => batch.note(NoteKind::Truncated),
            }
        }
    }
}
