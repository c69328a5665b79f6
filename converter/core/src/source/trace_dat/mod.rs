//! The binary ring buffer, as trace-cmd and `syncline record` write it: trace.dat, versions 6 and 7.
//!
//! Pages of all CPUs are taken in the order of their first record's time. A page may reach far beyond the next one's
//! beginning, so each chunk says until when all has been read, and what is newer waits in `order`.

mod events;
mod file;
mod format;
mod page;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::sync::Arc;

use self::events::{Number, Plan, text};
use self::file::{Compression, Cpu, TraceDat, TscToNs};
use self::format::{Field, Format, Layout};
use self::page::{Lost, Shape};
use super::thesis::sane_range;
use super::words::extra_key;
use super::{Batch, Chunks, Extra, NoteKind, Parse, Reader, Source, SourceOptions};
use crate::error::{Error, Result};
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input::{Chunk, Input, Store};
use crate::names::NameId;

/// Pages are handed on in chunks of about so many bytes.
const CHUNK_BYTES: usize = 1 << 18;
/// Pages are read so many bytes at once.
const READ_BYTES: usize = 1 << 16;
/// `task` and length, before each page of a chunk.
const PAGE_HEADER_BYTES: usize = 8;
/// Larger sub-buffers than any kernel makes.
const MAX_PAGE_BYTES: usize = 1 << 26;
/// Fields that the event itself carries.
const COMMON: &str = "common_";

pub struct TraceDatSource;

impl Source for TraceDatSource {
    fn name(&self) -> &'static str {
        "trace-dat"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        file::is_trace_dat(head)
    }

    fn stands_alone(&self, _: &[u8]) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let path = input.path.clone();
        let fail = |source| Error::Read { path: path.clone(), source };
        let store = input.into_store().map_err(fail)?;
        let file = TraceDat::read(&store).map_err(fail)?;
        let clocks: Vec<&str> = file.buffers.iter().map(|buffer| buffer.clock.as_str()).collect();
        if let Some(other) = clocks.iter().find(|clock| **clock != clocks[0]) {
            let why = format!("its buffers have different clocks, {} and {other}", clocks[0]);
            return Err(fail(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        let clock = if file.tsc.is_some() { "tsc" } else { clocks.first().copied().unwrap_or_default() };
        let mut facts = vec![("clock", clock_name(clock).to_owned())];
        facts.extend(file.uname.clone().map(|uname| ("kernel", uname)));
        facts.extend(file.recorder.clone().map(|recorder| ("recorder", format!("trace-cmd {recorder}"))));
        let parse = Arc::new(Records::new(&file, options));
        let chunks = Box::new(Pages::new(store, &file, path.clone()).map_err(fail)?);
        Ok(Reader { chunks, parse, facts })
    }
}

/// The clock of tracefs by the name that docs/tables.md has for it.
fn clock_name(clock: &str) -> &str {
    match clock {
        "boot" => "boottime",
        "mono" => "monotonic",
        "mono_raw" => "monotonic_raw",
        "" => "local",
        other => other,
    }
}

/// The pages of one CPU that are still to be read.
struct CpuPages {
    cpu: u32,
    page_bytes: usize,
    compression: Compression,
    at: u64,
    end: u64,
    /// Compressed chunks left.
    packed_chunks: u32,
    ready: Vec<u8>,
    taken: usize,
}

impl CpuPages {
    fn new(cpu: &Cpu, page_bytes: usize, compression: Compression, store: &Store, shape: Shape) -> io::Result<Self> {
        let mut pages = Self {
            cpu: cpu.cpu,
            page_bytes,
            compression,
            at: cpu.offset,
            end: cpu.offset.checked_add(cpu.size).ok_or_else(beyond)?,
            packed_chunks: 0,
            ready: Vec::new(),
            taken: 0,
        };
        if pages.end > store.len() {
            return Err(beyond());
        }
        if compression != Compression::None && cpu.size > 0 {
            pages.packed_chunks = number(store, shape, pages.at)?;
            pages.at += 4;
        }
        Ok(pages)
    }

    /// The next page, which stays until `take`.
    fn peek(&mut self, store: &Store, shape: Shape) -> io::Result<Option<&[u8]>> {
        if self.taken == self.ready.len() {
            self.taken = 0;
            self.ready.clear();
            self.fill(store, shape)?;
        }
        if self.ready.is_empty() {
            return Ok(None);
        }
        // The last page of a file that was cut may be a part of one.
        let end = self.ready.len().min(self.taken + self.page_bytes);
        Ok(Some(&self.ready[self.taken..end]))
    }

    fn fill(&mut self, store: &Store, shape: Shape) -> io::Result<()> {
        if self.compression == Compression::None {
            let want = (READ_BYTES / self.page_bytes).max(1) * self.page_bytes;
            let want = (self.end - self.at).min(want as u64);
            self.ready = store.read_at(self.at, want)?;
            self.at += self.ready.len() as u64;
            return Ok(());
        }
        if self.packed_chunks == 0 {
            return Ok(());
        }
        self.packed_chunks -= 1;
        let (packed, unpacked) = (number(store, shape, self.at)?, number(store, shape, self.at + 4)?);
        self.at += 8;
        if self.at + u64::from(packed) > self.end || unpacked as usize > MAX_PAGE_BYTES {
            return Err(beyond());
        }
        let bytes = store.read_at(self.at, u64::from(packed))?;
        self.at += u64::from(packed);
        self.ready = self.compression.unpack(&bytes, unpacked as usize)?;
        Ok(())
    }

    fn take(&mut self) {
        self.taken = self.ready.len().min(self.taken + self.page_bytes);
    }
}

fn beyond() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a CPU's pages reach beyond the end of the file")
}

fn number(store: &Store, shape: Shape, at: u64) -> io::Result<u32> {
    let bytes = store.read_at(at, 4)?;
    shape.number(&bytes, 0, 4).map(|n| n as u32).ok_or_else(beyond)
}

/// Pages of all CPUs in the order of their times.
struct Pages {
    path: String,
    store: Store,
    shape: Shape,
    clock: Clock,
    cpus: Vec<CpuPages>,
    /// (time of its next page, place in `cpus`)
    heads: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Pages {
    fn new(store: Store, file: &TraceDat, path: String) -> io::Result<Self> {
        let mut pages = Self {
            path,
            shape: file.shape,
            clock: Clock { offset_ns: file.offset_ns, tsc: file.tsc },
            cpus: Vec::new(),
            heads: BinaryHeap::new(),
            store,
        };
        for buffer in &file.buffers {
            if !(64..=MAX_PAGE_BYTES).contains(&buffer.page_bytes) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its pages have an impossible size"));
            }
            for cpu in &buffer.cpus {
                let at = pages.cpus.len();
                pages.cpus.push(CpuPages::new(cpu, buffer.page_bytes, buffer.compression, &pages.store, pages.shape)?);
                pages.look_at(at)?;
            }
        }
        Ok(pages)
    }

    /// Puts a CPU in its place among the others.
    fn look_at(&mut self, at: usize) -> io::Result<()> {
        let (shape, clock) = (self.shape, self.clock);
        if let Some(page) = self.cpus[at].peek(&self.store, shape)? {
            let time = shape.time(page).map_or(i64::MIN, |time| clock.ns(time));
            self.heads.push(Reverse((time, at)));
        }
        Ok(())
    }

    fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        let mut any = false;
        let buffer = chunk.begin();
        while let Some(&Reverse((_, at))) = self.heads.peek() {
            if buffer.len() >= CHUNK_BYTES {
                break;
            }
            self.heads.pop();
            let cpu = self.cpus[at].cpu;
            if let Some(page) = self.cpus[at].peek(&self.store, self.shape)? {
                any = true;
                buffer.extend_from_slice(&cpu.to_le_bytes());
                buffer.extend_from_slice(&(page.len() as u32).to_le_bytes());
                buffer.extend_from_slice(page);
                self.cpus[at].take();
            }
            self.look_at(at)?;
        }
        chunk.end();
        chunk.until = Some(self.heads.peek().map_or(i64::MAX, |Reverse((time, _))| *time));
        Ok(any)
    }
}

impl Chunks for Pages {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.fill(chunk).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    fn consumed_bytes(&self) -> u64 {
        let left: u64 = self.cpus.iter().map(|cpu| cpu.end - cpu.at).sum();
        self.store.len().saturating_sub(left)
    }
}

/// From the buffer's times to ns.
#[derive(Clone, Copy)]
struct Clock {
    offset_ns: i64,
    tsc: Option<TscToNs>,
}

impl Clock {
    #[inline]
    fn ns(self, time: u64) -> i64 {
        let ns = match self.tsc {
            Some(TscToNs { mult, shift, offset }) => {
                { ((u128::from(time) * u128::from(mult)) >> shift) as u64 as i64 }.wrapping_add(offset as i64)
            }
            None => time as i64,
        };
        ns.wrapping_add(self.offset_ns)
    }
}

/// What an event's records are turned into.
struct Known {
    plan: Plan,
    pid: Option<Number>,
    format: Format,
}

struct Records {
    shape: Shape,
    clock: Clock,
    /// By the number that each record begins with.
    known: HashMap<u16, Known>,
    comms: HashMap<u32, Vec<u8>>,
    keep_extras: bool,
}

impl Records {
    fn new(file: &TraceDat, options: &SourceOptions) -> Self {
        let known = file.formats.iter().map(|format| {
            let pid = format.field("common_pid").and_then(Number::of);
            (format.id, Known { plan: Plan::of(format), pid, format: format.clone() })
        });
        Self {
            shape: file.shape,
            clock: Clock { offset_ns: file.offset_ns, tsc: file.tsc },
            known: known.collect(),
            comms: file.comms.clone(),
            keep_extras: options.keep_extras,
        }
    }

    fn record(&self, ts: i64, record: &[u8], comms: &mut HashMap<u32, NameId>, batch: &mut Batch) {
        const NO_EVENT: &str = "a record of an event that the file does not describe";
        let Some(id) = self.shape.number(record, 0, 2) else { return batch.unparsed(&[], NO_EVENT) };
        let Some(known) = self.known.get(&(id as u16)) else {
            return batch.unparsed(format!("event number {id}").as_bytes(), NO_EVENT);
        };
        if known.plan.is_other() && !self.keep_extras {
            batch.others += 1;
            return;
        }
        let kind = known.plan.kind(self.shape, record, &mut batch.names).filter(|kind| match *kind {
            Kind::BioAddFolio { offset, len, .. } => sane_range(offset, len).is_some(),
            _ => true,
        });
        let (Some(kind), Ok(ts)) = (kind, u64::try_from(ts)) else {
            return batch.unparsed(known.format.name.as_bytes(), "a field of the event is missing or out of range");
        };
        let pid = known.pid.and_then(|pid| pid.unsigned(self.shape, record));
        let tid = pid.and_then(|pid| i32::try_from(pid).ok()).map_or(UNKNOWN_TASK, |pid| pid as u32);
        let comm = *comms.entry(tid).or_insert_with(|| {
            // The kernel keeps no name of its idle tasks, which are all 0.
            let comm = self.comms.get(&tid).map(Vec::as_slice).or((tid == 0).then_some(b"<idle>"));
            comm.map_or(NameId::NONE, |comm| batch.names.intern(comm))
        });
        if self.keep_extras {
            self.extras(known, record, batch);
        }
        batch.events.push(Event { ts: ts as i64, tid, pid: UNKNOWN_TASK, comm, line: 0, kind });
    }

    /// The tracer's word and every field that the event has no place for.
    fn extras(&self, known: &Known, record: &[u8], batch: &mut Batch) {
        let word = batch.names.intern(known.format.name.as_bytes());
        batch.words.push(word);
        let event = batch.events.len() as u32;
        let taken = known.plan.fields(&known.format.name);
        for field in &known.format.fields {
            if field.name.starts_with(COMMON) || taken.contains(&field.name.as_str()) {
                continue;
            }
            let value = self.shown(field, record);
            let key = batch.names.intern(&extra_key(field.name.as_bytes()));
            let value = batch.names.intern(&value);
            batch.extras.push(Extra { event, key, value });
        }
    }

    fn shown(&self, field: &Field, record: &[u8]) -> Vec<u8> {
        if let Some(number) = Number::of(field) {
            return match field.layout {
                Layout::Number { signed: true } => number.signed(self.shape, record).map(|n| n.to_string()),
                _ => number.unsigned(self.shape, record).map(|n| n.to_string()),
            }
            .unwrap_or_default()
            .into_bytes();
        }
        if field.layout == Layout::Bytes {
            let bytes = record.get(field.offset..field.offset + field.size).unwrap_or_default();
            return bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes();
        }
        text(field, self.shape, record).unwrap_or_default().to_vec()
    }
}

impl Parse for Records {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut comms = HashMap::new();
        let mut rest = chunk;
        while let Some((header, after)) = rest.split_at_checked(PAGE_HEADER_BYTES) {
            let len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
            let (page, after) = after.split_at(len.min(after.len()));
            rest = after;
            let before = batch.events.len() as u32;
            let read = page::records(self.shape, page, |time, record| {
                self.record(self.clock.ns(time), record, &mut comms, batch);
            });
            match read {
                Ok(Lost::None) => {}
                // Before the page's first event.
                Ok(Lost::Some(count)) => batch.note_at(before, NoteKind::Lost { count }),
                Ok(Lost::Unknown) => batch.note_at(before, NoteKind::LostUncounted),
                Err(why) => {
                    let cpu = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
                    batch.unparsed(format!("a page of CPU {cpu}").as_bytes(), why);
                }
            }
        }
    }
}
