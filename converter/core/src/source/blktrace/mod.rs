//! The binary files of blktrace, `NAME.blktrace.N` for CPU N: `struct blk_io_trace` of linux/blktrace_api.h, versions 7 and 8,
//! of either byte order.
//!
//! All files of a recording are read together and merged by time. The name of a thread is recorded once, in one of the files,
//! before the thread's first record. So thread names are collected while files are merged, and each chunk carries the number of
//! names that were known before it.

mod file;
mod record;
mod thread_names;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

pub(super) use self::file::parts;
use self::file::{
    File, LOST, MESSAGE_HEADER_BYTES, MESSAGE_MAGIC, NO_FILE, NO_FILE_REASON, NO_HIGHER_FILE, NO_HIGHER_FILE_REASON,
    ONLY_FILE, REASONS, last_file, missing_files, write_message,
};
use self::record::{Record, Shape, category};
use self::thread_names::Names;
use super::{Batch, Chunks, Explanation, Extra, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions};
use crate::error::{Error, Result};
use crate::event::{Dev, Event, Kind, UNKNOWN_TASK};
use crate::input_file::{Chunk, Input};
use crate::names::NameId;

const CHUNK_BYTES: usize = 1 << 18;
/// Bytes per read of one file, and the limit for all files together.
const READ_BYTES: usize = 1 << 18;
const MAX_READ_BYTES_TOTAL: usize = 1 << 26;
/// Size of the number of known names, which precedes the records of a chunk.
const CHUNK_HEADER_BYTES: usize = 4;

pub struct Blktrace;

impl Source for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }

    fn hidden_losses(&self) -> &'static str {
        "Events of a CPU have numbers, so a lost one leaves a gap. Events after the last one of a CPU, the \
         files of CPUs that are missing at the end, and a mask that left actions out leave none."
    }

    fn may_have_far_times(&self) -> bool {
        false
    }

    fn sniff(&self, head: &[u8]) -> bool {
        Shape::of(head).is_some()
    }

    fn describe(&self, input: &Input) -> InputTraits {
        let has_other_parts = parts(&input.path).len() > 1;
        let cpus = if has_other_parts { None } else { cpus_of(input.head()) };
        InputTraits { cpus, ..InputTraits::standalone() }
    }

    fn parts(&self, path: &str) -> Vec<String> {
        parts(path)
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let recording = Recording::open(input)?;
        // The kernel stamps records with ktime_get().
        let mut facts = vec![("clock", "monotonic".to_owned())];
        facts.extend(recording.realtime_offset_ns().map(|offset| ("realtime_offset_ns", offset.to_string())));
        let parse = Arc::new(Records { names: Arc::clone(&recording.names), keep_extras: options.keep_extras });
        let chunks = Box::new(recording);
        Ok(Reader {
            chunks,
            parse,
            stateful_pass: None,
            facts,
            piece_options: None,
            records_requests: false,
            may_have_far_times: false,
        })
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        explain(problem)
    }
}

/// As `Source::explain`, for every format of events of the block layer.
pub(super) fn explain(problem: Problem) -> Option<Explanation> {
    matches!(problem, Problem::NoEvents { .. }).then(|| Explanation {
        message: None,
        hint: "it records no write with data; record while something is written: `blktrace -d DEVICE -o NAME`".into(),
    })
}

/// Returns the CPUs of the records in a head; `None` if there are none.
fn cpus_of(head: &[u8]) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    let mut rest = head;
    while let Some(shape) = Shape::of(rest) {
        let Some(bytes) = rest.get(..shape.header_bytes()? + shape.pdu_bytes(rest)) else { break };
        let record = Record::read(shape, bytes)?;
        if !record.is(category::NOTIFY) && !cpus.contains(&record.cpu) {
            cpus.push(record.cpu);
        }
        rest = &rest[bytes.len()..];
    }
    Some(cpus).filter(|cpus| !cpus.is_empty())
}

/// The files of one recording, merged by time.
struct Recording {
    path: String,
    files: Vec<File>,
    /// (time of the next record, index in `files`)
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// Each file holds the records of one CPU in the order of time.
    per_cpu: bool,
    watermark: i64,
    names: Arc<RwLock<Names>>,
    /// Sequence number of the last record, by device and CPU.
    sequences: HashMap<(u32, u32), u32, FixedState>,
    /// Messages for the next chunk.
    messages: Vec<u8>,
    /// Keys of the threads that have records; the last one, which most often is the next one.
    threads: HashSet<(u32, u32), FixedState>,
    last_thread: Option<(u32, u32)>,
    /// The kernel's note of the time of day has been seen.
    has_timestamp: bool,
    /// No files below the highest CPU are missing, and it is not known whether one above is.
    may_lack_higher_file: bool,
}

impl Recording {
    fn open(input: Input) -> Result<Self> {
        let path = input.path.clone();
        let parts = parts(&path);
        let mut messages = Vec::new();
        let missing = missing_files(&path);
        let may_lack_higher_file = missing.is_empty() && !parts.is_empty();
        for file in missing {
            write_message(&mut messages, NO_FILE, file.len() as u64, file.as_bytes());
        }
        let mut inputs: Vec<Input> = Vec::new();
        for part in &parts {
            let input = Input::open(part)?;
            if let Some(first) = inputs.iter().find(|first| first.is_same_log(&input, false)) {
                return Err(Error::Twice { first: first.path.clone(), second: input.path });
            }
            inputs.push(input);
        }
        if inputs.is_empty() {
            inputs.push(input);
        }
        let files = inputs.into_iter().map(|input| File::open(input, &path)).collect::<Result<Vec<_>>>()?;
        let mut recording = Self {
            heads: BinaryHeap::new(),
            per_cpu: !parts.is_empty(),
            watermark: i64::MIN,
            names: Arc::default(),
            sequences: HashMap::default(),
            messages,
            threads: HashSet::default(),
            last_thread: None,
            has_timestamp: false,
            may_lack_higher_file,
            files,
            path,
        };
        recording.queue_files().map_err(|source| Error::Read { path: recording.path.clone(), source })?;
        Ok(recording)
    }

    fn queue_files(&mut self) -> io::Result<()> {
        let read_bytes = (MAX_READ_BYTES_TOTAL / self.files.len()).clamp(1 << 12, READ_BYTES);
        for (at, file) in self.files.iter_mut().enumerate() {
            file.advance(&mut self.messages)?;
            file.read_bytes = read_bytes;
            self.heads.extend(file.head.map(|(_, time)| Reverse((time, at))));
        }
        Ok(())
    }

    /// Offset from record times to ns since 1970, from the notification that the kernel writes at the start.
    fn realtime_offset_ns(&self) -> Option<i64> {
        self.files.iter().find_map(|file| {
            let mut rest = file.rest();
            while let Some(shape) = Shape::of(rest) {
                let record = rest.get(..shape.header_bytes()? + shape.pdu_bytes(rest))?;
                let note = Record::read(shape, record)?;
                if note.notification() == Some("timestamp") && note.data.len() >= 8 {
                    let realtime =
                        i64::from(shape.u32(note.data, 0)) * 1_000_000_000 + i64::from(shape.u32(note.data, 4));
                    return realtime.checked_sub_unsigned(note.time);
                }
                rest = &rest[record.len()..];
            }
            None
        })
    }

    /// Writes a message if a file of another CPU seems to be missing, after the last record. The kernel names a thread once, in the file of the CPU
    /// that records it first, and the time of day once.
    fn check_files(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.may_lack_higher_file) {
            return;
        }
        let Some((cpu, files, next)) = last_file(&self.path) else { return };
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let lacks_name = self.threads.iter().any(|key| !names.has(*key));
        // Other programs than blktrace write no notes.
        if names.count == 0 && !self.has_timestamp {
            return;
        }
        if lacks_name || !self.has_timestamp {
            let name = format!("{next} or of a higher CPU");
            write_message(out, NO_HIGHER_FILE, name.len() as u64, name.as_bytes());
        } else if cpu == 0 && files == 1 {
            write_message(out, ONLY_FILE, 0, &[]);
        }
    }

    fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        if self.heads.is_empty() {
            let mut message = std::mem::take(&mut self.messages);
            self.check_files(&mut message);
            self.messages = message;
        }
        let Self { files, heads, names, sequences, messages, threads, last_thread, has_timestamp, .. } = self;
        let buffer = chunk.begin();
        buffer.extend_from_slice(&[0; CHUNK_HEADER_BYTES]);
        buffer.append(messages);
        while buffer.len() < CHUNK_BYTES {
            let Some(Reverse((_, at))) = heads.pop() else { break };
            let file = &mut files[at];
            // Records of this file are next until another file has an older one.
            let bound = heads.peek().map_or((i64::MAX, usize::MAX), |Reverse(head)| *head);
            while let Some((len, _)) = file.head {
                let bytes = &file.rest()[..len];
                if let Some(record) = Shape::of(bytes).and_then(|shape| Record::read(shape, bytes)) {
                    if record.is(category::NOTIFY) {
                        match record.notification() {
                            Some("process") => names.write().unwrap_or_else(PoisonError::into_inner).add(&record),
                            Some("timestamp") => *has_timestamp = true,
                            _ => {}
                        }
                    } else {
                        let thread = Names::key(&record);
                        // A damaged record is of no thread.
                        if *last_thread != Some(thread) && i32::try_from(record.pid).is_ok() {
                            *last_thread = Some(thread);
                            threads.insert(thread);
                        }
                        let last = sequences.entry((record.device, record.cpu)).or_insert(0);
                        let lost = record.sequence.checked_sub(*last).map_or(0, |step| step.saturating_sub(1));
                        *last = record.sequence;
                        if lost > 0 {
                            write_message(buffer, LOST, u64::from(lost), &[]);
                        }
                    }
                }
                buffer.extend_from_slice(bytes);
                file.take();
                file.advance(messages)?;
                buffer.append(messages);
                if let Some((_, time)) = file.head
                    && ((time, at) > bound || buffer.len() >= CHUNK_BYTES)
                {
                    heads.push(Reverse((time, at)));
                    break;
                }
            }
        }
        let known = names.read().unwrap_or_else(PoisonError::into_inner).count;
        buffer[..CHUNK_HEADER_BYTES].copy_from_slice(&known.to_le_bytes());
        let any = buffer.len() > CHUNK_HEADER_BYTES;
        chunk.end();
        // Times in a damaged file may go backwards. A record older than this is late.
        self.watermark = self.heads.peek().map_or(i64::MAX, |Reverse((time, _))| *time).max(self.watermark);
        chunk.watermark = self.per_cpu.then_some(self.watermark);
        Ok(any)
    }
}

impl Chunks for Recording {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.fill(chunk).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    fn consumed_bytes(&self) -> u64 {
        self.files.iter().map(File::position).sum()
    }
}

struct Records {
    names: Arc<RwLock<Names>>,
    keep_extras: bool,
}

/// Cache of thread names in a chunk, and the time ranges in which they hold.
type Comms = HashMap<(u32, u32), (NameId, Range<u64>), FixedState>;

impl Records {
    fn comm(&self, record: &Record<'_>, known: u32, comms: &mut Comms, batch: &mut Batch) -> NameId {
        let key = Names::key(record);
        if let Some((comm, times)) = comms.get(&key)
            && times.contains(&record.time)
        {
            return *comm;
        }
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let (comm, times) = names
            .find(key, record.time, known)
            .map_or((NameId::NONE, 0..u64::MAX), |(comm, times)| (batch.names.intern(comm), times));
        comms.insert(key, (comm, times));
        comm
    }

    fn record(&self, record: &Record<'_>, known: u32, comms: &mut Comms, batch: &mut Batch) {
        let kind = record.kind();
        // The same records are valid with every option.
        let (Ok(ts), Ok(_)) = (i64::try_from(record.time), i32::try_from(record.pid)) else {
            let text = format!("record {} of CPU {}", record.sequence, record.cpu);
            return batch.unparsed(text.as_bytes(), "its time or its process is out of range");
        };
        if kind == Kind::Other && !self.keep_extras {
            batch.other(|| record.log_name());
            return;
        }
        let comm = self.comm(record, known, comms, batch);
        if self.keep_extras {
            extras(record, kind, batch);
        }
        batch.events.push(Event { ts, tid: record.pid, pid: UNKNOWN_TASK, comm, line: 0, kind });
    }
}

/// Stores blkparse's name of the action, and every field that the event has no field for.
fn extras(record: &Record<'_>, kind: Kind, batch: &mut Batch) {
    let name = batch.names.intern(&record.log_name());
    batch.event_names.push(name);
    let mut fields = Fields { event: batch.events.len() as u32, batch };
    let name = record.name().unwrap_or_default();
    let is_note = record.is(category::NOTIFY);
    let is_plug = matches!(name, "P" | "U" | "UT" | "ZP" | "ZU");
    if kind == Kind::Other && record.dev().is_known() {
        fields.text("dev", record.dev().to_string().as_bytes());
    }
    if kind == Kind::Other && !is_note && !is_plug {
        // All ones mean that there is no sector.
        fields.number("sector", record.sector as i64);
        // The low-level log recognizes writes by `bytes`; a SCSI command is not a write.
        fields.number(if record.is(category::PC) { "pc_bytes" } else { "bytes" }, record.bytes);
    }
    if !is_note {
        let rwbs: Vec<u8> = record.rwbs().collect();
        fields.text("rwbs", &rwbs);
    }
    if record.error != 0 || matches!(name, "C" | "R") {
        fields.number("error", record.error);
    }
    match name {
        "A" if record.is_remap() => {
            if kind == Kind::Other {
                fields.text("from_dev", Dev(record.data_u32(0)).to_string().as_bytes());
                fields.number("from_sector", record.data_u64(8) as i64);
            }
        }
        "U" | "UT" | "ZU" if record.data.len() >= 8 => fields.number("requests", record.data_u64(0)),
        "X" if record.data.len() >= 8 => fields.number("new_sector", record.data_u64(0)),
        "timestamp" if record.data.len() >= 8 => {
            let (s, ns) = (record.shape.u32(record.data, 0), record.shape.u32(record.data, 4));
            fields.number("realtime_ns", u64::from(s) * 1_000_000_000 + u64::from(ns));
        }
        "process" => fields.text("name", record.text()),
        "m" => fields.text("message", record.text()),
        _ if record.data.is_empty() => {}
        _ => {
            // Without the prefix, digits would be read as a number.
            let digits = record.data.iter().flat_map(|&byte| [byte >> 4, byte & 15]);
            let hex = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]);
            fields.text("data", &b"0x".iter().copied().chain(hex).collect::<Vec<u8>>());
        }
    }
    if let Some(cgroup) = record.cgroup {
        fields.number("cgroup", cgroup);
    }
    fields.number("cpu", record.cpu);
    if !is_note {
        fields.number("sequence", record.sequence);
    }
}

/// Appends fields of the next event.
pub(super) struct Fields<'a> {
    pub(super) event: u32,
    pub(super) batch: &'a mut Batch,
}

impl Fields<'_> {
    pub(super) fn text(&mut self, key: &str, value: &[u8]) {
        let (key, value) = (self.batch.names.intern(key.as_bytes()), self.batch.names.intern(value));
        self.batch.extras.push(Extra { event: self.event, key, value });
    }

    pub(super) fn number(&mut self, key: &str, value: impl itoa::Integer) {
        self.text(key, itoa::Buffer::new().format(value).as_bytes());
    }
}

impl Parse for Records {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let Some((known, mut rest)) = chunk.split_first_chunk() else { return };
        let known = u32::from_le_bytes(*known);
        let mut comms = Comms::default();
        while let Some(magic) = rest.first_chunk::<4>() {
            if *magic == MESSAGE_MAGIC {
                let Some((head, after)) = rest.split_at_checked(MESSAGE_HEADER_BYTES) else { return };
                let little = Shape { version: 7, big_endian: false };
                let (code, number) = (little.u32(head, 4), little.u64(head, 8));
                rest = after;
                if code == LOST {
                    batch.note(NoteKind::Lost { count: number });
                    continue;
                }
                if code == ONLY_FILE {
                    batch.note(NoteKind::OnlyCpu);
                    continue;
                }
                let (text, after) = rest.split_at(rest.len().min(number as usize));
                rest = after;
                let other = if code == NO_HIGHER_FILE { &NO_HIGHER_FILE_REASON } else { &NO_FILE_REASON };
                batch.unparsed(text, REASONS.get(code as usize).unwrap_or(other));
                continue;
            }
            let Some(shape) = Shape::of(rest) else { return };
            let Some(header) = shape.header_bytes() else { return };
            let len = header + shape.pdu_bytes(rest);
            let Some((bytes, after)) = rest.split_at_checked(len) else { return };
            rest = after;
            if let Some(record) = Record::read(shape, bytes) {
                self.record(&record, known, &mut comms, batch);
            }
        }
    }
}
