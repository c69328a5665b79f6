//! The binary files of blktrace, `NAME.blktrace.N` for CPU N: `struct blk_io_trace` of linux/blktrace_api.h, versions 7 and 8,
//! of either byte order.
//!
//! All files of a recording are read together and merged by time. The name of a thread is recorded once, in one of the files,
//! before the thread's first record. So thread names are collected while files are merged, and each chunk carries the number of
//! names that were known before it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Batch, Chunks, Extra, NoteKind, Parse, Reader, Source, SourceOptions};
use crate::error::{Error, Refused, Result};
use crate::event::{Dev, Event, Kind, NO_SECTOR, UNKNOWN_TASK};
use crate::input::{Chunk, Input, Store};
use crate::names::NameId;

const CHUNK_BYTES: usize = 1 << 18;
/// Bytes per read of one file, and the limit for all files together.
const READ_BYTES: usize = 1 << 18;
const MAX_READ_BYTES_TOTAL: usize = 1 << 26;
/// Size of the longest possible record, plus the magic of the next one.
const MAX_RECORD_BYTES: usize = 64 + u16::MAX as usize + 4;
/// The notification with the wall-clock time is among the first records of a file.
const HEAD_BYTES: usize = 1 << 16;
/// Size of the number of known names, which precedes the records of a chunk.
const CHUNK_HEADER_BYTES: usize = 4;
/// Replaces the magic where a chunk holds a message instead of a record.
const MESSAGE_MAGIC: [u8; 4] = [0; 4];
const MESSAGE_HEADER_BYTES: usize = 16;
const COMM_BYTES: usize = 16;

/// Category bits of an action, above its lower 16 bits.
mod category {
    pub(super) const WRITE: u64 = 1 << 17;
    pub(super) const FLUSH: u64 = 1 << 18;
    pub(super) const SYNC: u64 = 1 << 19;
    pub(super) const PC: u64 = 1 << 25;
    pub(super) const NOTIFY: u64 = 1 << 26;
    pub(super) const AHEAD: u64 = 1 << 27;
    pub(super) const META: u64 = 1 << 28;
    pub(super) const DISCARD: u64 = 1 << 29;
    pub(super) const FUA: u64 = 1 << 31;
    pub(super) const WRITE_ZEROES: u64 = 1 << 38;
}

/// Flag: the record's data begin with a cgroup id.
const HAS_CGROUP: u64 = 1 << 8;
/// blkparse's names of the actions, indexed by number.
const ACTIONS: [&str; 20] =
    ["", "Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "abort", "drv_data", "ZP", "ZU"];
const NOTIFICATIONS: [&str; 3] = ["process", "timestamp", "m"];

pub struct Blktrace;

impl Source for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        Shape::of(head).is_some()
    }

    fn is_standalone(&self, _: &[u8]) -> bool {
        true
    }

    fn parts(&self, path: &str) -> Vec<String> {
        parts(path)
    }

    fn cpus_of(&self, input: &Input) -> Option<Vec<u32>> {
        if parts(&input.path).len() > 1 {
            return None;
        }
        let mut cpus = Vec::new();
        let mut rest = input.head();
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

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let recording = Recording::open(input)?;
        // The kernel stamps records by ktime_get().
        let mut facts = vec![("clock", "monotonic".to_owned())];
        facts.extend(recording.realtime_offset_ns().map(|offset| ("realtime_offset_ns", offset.to_string())));
        let parse = Arc::new(Records { names: Arc::clone(&recording.names), keep_extras: options.keep_extras });
        Ok(Reader { chunks: Box::new(recording), parse, settle: None, facts, pieces: None })
    }
}

/// Splits the name of a per-CPU file into the recording's name and the CPU.
fn split_name(path: &Path) -> Option<(&str, u32)> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (recording, cpu) = name.rsplit_once(".blktrace.")?;
    let all_digits = !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit());
    Some((recording, cpu.parse().ok().filter(|_| all_digits)?))
}

/// Lists all files of the recording to which a per-CPU file belongs: CPU, path, and whether the file is empty.
fn siblings(path: &Path) -> Vec<(u32, PathBuf, bool)> {
    let Some((recording, _)) = split_name(path) else { return Vec::new() };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut found = Vec::new();
    for entry in folder.unwrap_or(Path::new(".")).read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named = path.file_name() == Some(&name);
        let file = if is_named { path.to_path_buf() } else { path.with_file_name(&name) };
        if let Some((name, cpu)) = split_name(&file)
            && name == recording
            && let Ok(meta) = file.metadata()
            && meta.is_file()
        {
            found.push((cpu, !is_named, file.clone(), meta.len() == 0));
        }
    }
    // An uncompressed copy may exist next to a compressed file. The file that the user named wins.
    found.sort();
    found.dedup_by_key(|(cpu, ..)| *cpu);
    found.into_iter().map(|(cpu, _, file, empty)| (cpu, file, empty)).collect()
}

/// Returns the files that are read together with a per-CPU file, ordered by CPU: all non-empty files of its recording. blkparse
/// does the same.
pub(super) fn parts(path: &str) -> Vec<String> {
    let full = siblings(Path::new(path)).into_iter().filter(|(.., empty)| !empty);
    full.filter_map(|(_, file, _)| file.to_str().map(str::to_owned)).collect()
}

/// Returns the names of missing per-CPU files below the highest CPU that has one.
fn missing_files(path: &str) -> Vec<String> {
    let mut next = 0;
    let mut found = Vec::new();
    for (cpu, file, _) in siblings(Path::new(path)) {
        let name = |cpu: u32| split_name(&file).map_or_else(String::new, |(of, _)| format!("{of}.blktrace.{cpu}"));
        match cpu - next {
            0 => {}
            1 => found.push(name(next)),
            _ => found.push(format!("{} to {}", name(next), name(cpu - 1))),
        }
        next = cpu.saturating_add(1);
    }
    found
}

/// Version and byte order, from the magic of each record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    version: u8,
    big_endian: bool,
}

impl Shape {
    #[inline]
    fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes.first_chunk()? {
            [version, b't', b'a', b'e'] => Some(Self { version, big_endian: false }),
            [b'e', b'a', b't', version] => Some(Self { version, big_endian: true }),
            _ => None,
        }
    }

    fn magic(self) -> [u8; 4] {
        let mut magic = [self.version, b't', b'a', b'e'];
        if self.big_endian {
            magic.reverse();
        }
        magic
    }

    #[inline]
    fn header_bytes(self) -> Option<usize> {
        match self.version {
            7 => Some(48),
            8 => Some(64),
            _ => None,
        }
    }

    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    fn pdu_bytes(self, header: &[u8]) -> usize {
        usize::from(self.u16(header, if self.version == 7 { 46 } else { 50 }))
    }
}

/// A complete record.
struct Record<'a> {
    shape: Shape,
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    cgroup: Option<u64>,
    data: &'a [u8],
}

impl<'a> Record<'a> {
    #[inline]
    fn read(shape: Shape, record: &'a [u8]) -> Option<Self> {
        let header = shape.header_bytes()?;
        let mut data = record.get(header..)?;
        let (action, pid, rest) = match shape.version {
            7 => (u64::from(shape.u32(record, 28)), shape.u32(record, 32), 36),
            _ => (shape.u64(record, 32), shape.u32(record, 28), 40),
        };
        let mut cgroup = None;
        if action & HAS_CGROUP != 0 && data.len() >= 8 {
            cgroup = Some(shape.u64(data, 0));
            data = &data[8..];
        }
        Some(Self {
            shape,
            sequence: shape.u32(record, 4),
            time: shape.u64(record, 8),
            sector: shape.u64(record, 16),
            bytes: shape.u32(record, 24),
            action,
            pid,
            device: shape.u32(record, rest),
            cpu: shape.u32(record, rest + 4),
            error: shape.u16(record, rest + 8),
            cgroup,
            data,
        })
    }

    #[inline]
    fn is(&self, category: u64) -> bool {
        self.action & category != 0
    }

    /// The number of the action.
    #[inline]
    fn number(&self) -> usize {
        (self.action & 0xffff & !HAS_CGROUP) as usize
    }

    fn notification(&self) -> Option<&'static str> {
        if self.is(category::NOTIFY) { NOTIFICATIONS.get(self.number()).copied() } else { None }
    }

    /// The event name in the low-level log.
    fn log_name(&self) -> Cow<'static, [u8]> {
        let number = self.number();
        match self.name() {
            Some(name) => name.as_bytes().into(),
            None if self.is(category::NOTIFY) => format!("note_{number}").into_bytes().into(),
            None => format!("action_{number}").into_bytes().into(),
        }
    }

    fn name(&self) -> Option<&'static str> {
        let names: &[&str] = if self.is(category::NOTIFY) { &NOTIFICATIONS } else { &ACTIONS };
        names.get(self.number()).copied().filter(|name| !name.is_empty())
    }

    /// Reads a number of the data, which the kernel stores in big-endian order.
    fn data_u64(&self, at: usize) -> u64 {
        Shape { version: 7, big_endian: true }.u64(self.data, at)
    }

    fn data_u32(&self, at: usize) -> u32 {
        Shape { version: 7, big_endian: true }.u32(self.data, at)
    }

    fn is_remap(&self) -> bool {
        self.name() == Some("A") && self.data.len() >= 16
    }

    /// The target device. A remap records it in its data.
    fn dev(&self) -> Dev {
        Dev(if self.is_remap() { self.data_u32(4) } else { self.device })
    }

    #[inline]
    fn kind(&self) -> Kind {
        let without_data = category::DISCARD | category::WRITE_ZEROES | category::PC | category::NOTIFY;
        if !self.is(category::WRITE) || self.is(without_data) || self.bytes == 0 {
            return Kind::Other;
        }
        let (dev, bytes) = (self.dev(), u64::from(self.bytes));
        let Ok(sector) = i64::try_from(self.sector) else { return Kind::Other };
        match self.name() {
            Some("Q") => Kind::BlockSubmit { dev, sector, bytes },
            Some("C") => Kind::BlockComplete { dev, sector, bytes },
            Some("A") if self.is_remap() => {
                let from_sector = i64::try_from(self.data_u64(8)).unwrap_or(NO_SECTOR);
                Kind::BlockRemap { dev, sector, bytes, from_dev: Dev(self.data_u32(0)), from_sector }
            }
            _ => Kind::Other,
        }
    }

    /// The RWBS letters, as blkparse prints them.
    fn rwbs(&self) -> impl Iterator<Item = u8> {
        let when = |is: bool, letter: u8| is.then_some(letter);
        let letter = match () {
            () if self.is(category::DISCARD) => b'D',
            () if self.is(category::WRITE | category::WRITE_ZEROES) => b'W',
            () if self.bytes > 0 => b'R',
            () => b'N',
        };
        [
            when(self.is(category::FLUSH), b'F'),
            Some(letter),
            when(self.is(category::WRITE_ZEROES) && letter == b'W', b'Z'),
            when(self.is(category::FUA), b'F'),
            when(self.is(category::AHEAD), b'A'),
            when(self.is(category::SYNC), b'S'),
            when(self.is(category::META), b'M'),
        ]
        .into_iter()
        .flatten()
    }

    /// The text of a notification. It may end before the data.
    fn text(&self) -> &'a [u8] {
        let end = memchr::memchr(0, self.data).unwrap_or(self.data.len());
        &self.data[..end]
    }
}

/// A thread name from a notification.
struct Name {
    /// Number of name notifications before this one.
    number: u32,
    time: u64,
    comm: [u8; COMM_BYTES],
}

impl Name {
    fn comm(&self) -> &[u8] {
        &self.comm[..memchr::memchr(0, &self.comm).unwrap_or(COMM_BYTES)]
    }
}

/// All names of one thread.
struct Thread {
    /// Number of its first notification.
    first: u32,
    /// Ordered by time; names with equal times keep their input order.
    names: Vec<Name>,
}

#[derive(Default)]
struct Names {
    by_thread: HashMap<(u32, u32), Thread, FixedState>,
    count: u32,
}

impl Names {
    /// Returns the key of a record's thread. The idle threads of all CPUs have PID 0, so their key includes the CPU.
    fn key(record: &Record<'_>) -> (u32, u32) {
        (record.pid, if record.pid == 0 { record.cpu } else { 0 })
    }

    fn add(&mut self, note: &Record<'_>) {
        let mut comm = [0; COMM_BYTES];
        let text = note.text();
        let len = text.len().min(COMM_BYTES - 1);
        comm[..len].copy_from_slice(&text[..len]);
        let name = Name { number: self.count, time: note.time, comm };
        let new = || Thread { first: name.number, names: Vec::new() };
        let names = &mut self.by_thread.entry(Self::key(note)).or_insert_with(new).names;
        let at = names.partition_point(|other| other.time <= name.time);
        names.insert(at, name);
        self.count += 1;
    }

    /// Returns the name of a thread at `time`, considering only the first `known` notifications, and the time range in which the name
    /// holds. This is the last name up to that time or, if there is none, the thread's first name.
    fn find(&self, key: (u32, u32), time: u64, known: u32) -> Option<(&[u8], Range<u64>)> {
        let thread = self.by_thread.get(&key).filter(|thread| thread.first < known)?;
        let next = thread.names.partition_point(|name| name.time <= time);
        let until = thread.names.get(next).map_or(u64::MAX, |name| name.time);
        if let Some(name) = thread.names[..next].iter().rfind(|name| name.number < known) {
            return Some((name.comm(), name.time..until));
        }
        let first = thread.names.iter().find(|name| name.number == thread.first)?;
        Some((first.comm(), 0..until))
    }
}

/// Reasons why bytes are not a record.
const REASONS: [&str; 4] = [
    "these bytes are not a record of blktrace: the file is damaged",
    "a record whose data are shorter than its recorded length",
    "the file ends within a record: it is cut off",
    "a record of a version that Syncline does not read",
];
const GARBAGE: u32 = 0;
const SHORT_DATA: u32 = 1;
const CUT_OFF: u32 = 2;
const FOREIGN: u32 = 3;
/// Used instead of a reason: the sequence numbers show that this many records are missing.
const LOST: u32 = 4;
/// Used instead of a reason: files of CPUs below the highest one are missing.
const NO_FILE: u32 = 5;
const NO_FILE_REASON: &str = "this file is missing, although files of higher CPUs exist: was it not copied?";

/// One file of the recording, and the read position in it.
struct File {
    /// File name without the folder.
    name: String,
    store: Store,
    shape: Shape,
    /// File offset of the buffer.
    at: u64,
    buffer: Vec<u8>,
    taken: usize,
    read_bytes: usize,
    /// Length and time of the next record.
    head: Option<(usize, i64)>,
}

impl File {
    /// Opens a file. `named_path` is the file of the recording that the user named.
    fn open(input: Input, named_path: &str) -> Result<Self> {
        let path = input.path.clone();
        let fail = |source| Error::Read { path: path.clone(), source };
        let shape = Shape::of(input.head()).ok_or_else(|| {
            let hint = if path == named_path {
                "leave out `--from`: the format is detected from the file itself".to_owned()
            } else {
                format!(
                    "its name belongs to the recording of {named_path}, so it is read together with it: copy it again, or move it away"
                )
            };
            fail(Refused::error("it is not a file of blktrace: it does not begin with a record", hint))
        })?;
        if shape.header_bytes().is_none() {
            return Err(fail(Refused::error(
                format!("its records are of version {}, and Syncline reads versions 7 and 8", shape.version),
                "print it with the blkparse that came with its blktrace: `blkparse -i NAME > NAME.txt`, and convert that",
            )));
        }
        let store = input.into_store().map_err(fail)?;
        let name = Path::new(&path).file_name().map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned());
        Ok(Self { name, store, shape, at: 0, buffer: Vec::new(), taken: 0, read_bytes: HEAD_BYTES, head: None })
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// File offset of the next byte.
    fn position(&self) -> u64 {
        self.at + self.taken as u64
    }

    /// Buffers at least `bytes` bytes, or fewer at the end of the file.
    fn ensure_buffered(&mut self, bytes: usize) -> io::Result<()> {
        let end = self.at + self.buffer.len() as u64;
        if self.rest().len() >= bytes || end >= self.store.len() {
            return Ok(());
        }
        self.at += self.taken as u64;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.store.append(end, self.read_bytes.max(bytes) as u64, &mut self.buffer)
    }

    /// Advances to the next record and keeps it until `take`. Reports bytes that are not a record in `messages`.
    fn advance(&mut self, messages: &mut Vec<u8>) -> io::Result<()> {
        self.head = None;
        loop {
            self.ensure_buffered(MAX_RECORD_BYTES)?;
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(());
            }
            let why = match Shape::of(rest) {
                None => GARBAGE,
                Some(shape) => match shape.header_bytes() {
                    None => FOREIGN,
                    Some(header) if rest.len() < header => CUT_OFF,
                    Some(header) => {
                        let len = header + shape.pdu_bytes(rest);
                        match rest.get(len..) {
                            // No record follows, but one begins within the data: the data are shorter than the recorded length.
                            Some(next)
                                if len > header && !is_record_start(next) && self.has_record_within(header, len) =>
                            {
                                SHORT_DATA
                            }
                            Some(_) => {
                                // An invalid time is reported when the record is parsed.
                                self.head = Some((len, shape.u64(rest, 8) as i64));
                                return Ok(());
                            }
                            // The buffer holds as many bytes as the longest record, except at the end of the file.
                            None if self.has_record_within(header, len) => SHORT_DATA,
                            None => CUT_OFF,
                        }
                    }
                },
            };
            self.skip(why, messages)?;
        }
    }

    /// Returns whether a record begins in this range, relative to the read position.
    fn has_record_within(&self, from: usize, to: usize) -> bool {
        let to = self.rest().len().min(to + 3);
        memchr::memmem::find(&self.rest()[from..to], &self.shape.magic()).is_some()
    }

    /// Skips bytes that are not a record, up to the next magic.
    fn skip(&mut self, why: u32, messages: &mut Vec<u8>) -> io::Result<()> {
        let from = self.position();
        let finder = memchr::memmem::Finder::new(&self.shape.magic()).into_owned();
        self.taken += 1;
        loop {
            if let Some(at) = finder.find(self.rest()) {
                self.taken += at;
                break;
            }
            // The last bytes of the buffer may be the start of a magic.
            let is_last = self.at + self.buffer.len() as u64 >= self.store.len();
            self.taken = if is_last { self.buffer.len() } else { self.buffer.len() - 3.min(self.rest().len()) };
            if is_last {
                break;
            }
            self.ensure_buffered(MAX_RECORD_BYTES)?;
        }
        let text = format!("{} bytes from byte {from} of {}", self.position() - from, self.name);
        write_message(messages, why, text.len() as u64, text.as_bytes());
        Ok(())
    }

    fn take(&mut self) {
        if let Some((len, _)) = self.head.take() {
            self.taken += len;
        }
    }
}

/// Returns whether `bytes` begin with a record or are the end of the file.
fn is_record_start(bytes: &[u8]) -> bool {
    bytes.len() < 4 || Shape::of(bytes).is_some()
}

/// Writes a message between the records of a chunk.
fn write_message(out: &mut Vec<u8>, code: u32, number: u64, text: &[u8]) {
    out.extend_from_slice(&MESSAGE_MAGIC);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(text);
}

/// The files of one recording, merged by time.
struct Recording {
    path: String,
    files: Vec<File>,
    /// (time of the next record, index in `files`)
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// Each file holds the records of one CPU in the order of time.
    per_cpu: bool,
    until: i64,
    names: Arc<RwLock<Names>>,
    /// Sequence number of the last record, by device and CPU.
    sequences: HashMap<(u32, u32), u32, FixedState>,
    /// Messages for the next chunk.
    messages: Vec<u8>,
}

impl Recording {
    fn open(input: Input) -> Result<Self> {
        let path = input.path.clone();
        let parts = parts(&path);
        let mut messages = Vec::new();
        for file in missing_files(&path) {
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
            until: i64::MIN,
            names: Arc::default(),
            sequences: HashMap::default(),
            messages,
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

    fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        let Self { files, heads, names, sequences, messages, .. } = self;
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
                        if record.notification() == Some("process") {
                            names.write().unwrap_or_else(PoisonError::into_inner).add(&record);
                        }
                    } else {
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
        self.until = self.heads.peek().map_or(i64::MAX, |Reverse((time, _))| *time).max(self.until);
        chunk.until = self.per_cpu.then_some(self.until);
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
    batch.words.push(name);
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
                let (text, after) = rest.split_at(rest.len().min(number as usize));
                rest = after;
                batch.unparsed(text, REASONS.get(code as usize).unwrap_or(&NO_FILE_REASON));
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
