//! The binary ring buffer: trace.dat, versions 6 and 7, as trace-cmd and `syncline record` write it.
//!
//! Sub-buffer pages of all CPUs are read in the order of their first record's time. A page may extend far beyond the start of the next
//! one. So each chunk has a watermark, and newer events wait in the reorder stage.

mod events;
mod file;
mod format;
mod page;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use self::events::{Number, RecordDecoder, field_text};
use self::file::{Buffer, Compression, Cpu, Stats, TraceDat, TscToNs, bad};
use self::format::{Field, Format, Layout};
use self::page::{Lost, Shape};
use super::event_names::extra_key;
use super::tracepoints::Machine;
use super::{Batch, Chunks, Explanation, Extra, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions};
use crate::error::{Error, Refused, Result};
use crate::event::{Dev, Event, Kind, UNKNOWN_TASK};
use crate::input::{Chunk, Input, Store};
use crate::names::NameId;

/// Approximate size of a chunk of pages.
const CHUNK_BYTES: usize = 1 << 18;
/// Bytes per read of one CPU's pages, and the limit for all CPUs together.
const READ_BYTES: usize = 1 << 16;
const MAX_READ_BYTES_TOTAL: usize = 1 << 26;
/// Size of the CPU and length that precede each page of a chunk.
const PAGE_HEADER_BYTES: usize = 8;
/// Replaces a length: the next eight bytes are the number of lost events that no page reports.
const UNREPORTED_LOSS: u32 = u32::MAX;
/// Four times the largest sub-buffer of a kernel.
const MAX_PAGE_BYTES: usize = 1 << 22;
/// trace-cmd compresses ten pages at a time.
const MAX_PAGES_PACKED: usize = 64;
const CHUNK_COUNT_BYTES: u64 = 4;
/// Limit for all CPUs together. Ten pages for each of 8192 CPUs use a little more than half.
const MAX_READY_BYTES: usize = 1 << 29;
/// Prefix of the fields that every event has.
const COMMON: &str = "common_";

pub struct TraceDatSource;

impl Source for TraceDatSource {
    fn name(&self) -> &'static str {
        "trace-dat"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        file::is_trace_dat(head)
    }

    fn describe(&self, _: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let path = input.path.clone();
        let fail = |source| Error::Read { path: path.clone(), source };
        let store = input.into_store().map_err(fail)?;
        let file = TraceDat::read(&store).map_err(fail)?;
        let clock = clock_of(&file).map_err(fail)?;
        let mut facts = vec![("clock", clock_name(clock).to_owned())];
        facts.extend(file.uname.clone().map(|uname| ("kernel", uname)));
        facts.extend(file.recorder.clone().map(|recorder| ("recorder", format!("trace-cmd {recorder}"))));
        let chunks = Box::new(Pages::new(store, &file, path.clone()).map_err(fail)?);
        let parse = Arc::new(Records::new(file, options));
        Ok(Reader { chunks, parse, stateful_pass: None, facts, piece_options: None })
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        matches!(problem, Problem::NoEvents { .. }).then(|| Explanation {
            message: None,
            hint: "record them, too: `trace-cmd record -e wb_tracer -e 'syscalls:sys_*_fsync'`, and the same for other syscalls; \
                   docs/reference/formats.md lists all events"
                .into(),
        })
    }
}

/// Returns the clock of all buffers, if it counts ns.
fn clock_of(file: &TraceDat) -> io::Result<&str> {
    const HINT: &str = "record with one that counts ns: `trace-cmd record -C boot`";
    let clock = file.buffers.first().map_or("", |buffer| buffer.clock.as_str());
    if let Some(other) = file.buffers.iter().map(|buffer| buffer.clock.as_str()).find(|other| *other != clock) {
        return Err(Refused::error(
            format!("its buffers have different clocks, {clock} and {other}"),
            "record all of them with the same clock: `trace-cmd record -C boot`",
        ));
    }
    match clock {
        _ if file.tsc.is_some() => Ok("tsc"),
        "counter" => Err(Refused::error("its clock, counter, counts events and not time", HINT)),
        "x86-tsc" | "tsc2nsec" => {
            Err(Refused::error("its clock, x86-tsc, counts cycles, and it does not say how long they are", HINT))
        }
        // From trace_clocks[] of kernel/trace/trace.c: clocks without `in_ns`.
        "uptime" => {
            Err(Refused::error("its clock, uptime, counts jiffies, and it does not say how long they are", HINT))
        }
        "ppc-tb" | "s390-tod" => Err(Refused::error(
            format!("its clock, {clock}, counts ticks, and it does not say how long they are"),
            HINT,
        )),
        other => Ok(other),
    }
}

/// Converts the tracefs name of a clock to its name in docs/reference/tables.md.
fn clock_name(clock: &str) -> &str {
    match clock {
        "boot" => "boottime",
        "mono" => "monotonic",
        "mono_raw" => "monotonic_raw",
        "" => "local",
        other => other,
    }
}

/// The unread pages of one CPU.
struct CpuPages {
    cpu: u32,
    page_bytes: usize,
    compression: Compression,
    at: u64,
    end: u64,
    /// Number of compressed chunks left.
    packed_chunks: u32,
    read_bytes: usize,
    ready: Vec<u8>,
    taken: usize,
}

impl CpuPages {
    /// The file was already checked to contain all pages.
    fn new(cpu: &Cpu, buffer: &Buffer, read_bytes: usize, store: &Store, shape: Shape) -> io::Result<Self> {
        let mut pages = Self {
            cpu: cpu.number,
            page_bytes: buffer.page_bytes,
            compression: buffer.compression,
            at: cpu.offset,
            end: cpu.offset + cpu.size,
            packed_chunks: 0,
            read_bytes: (read_bytes / buffer.page_bytes).max(1) * buffer.page_bytes,
            ready: Vec::new(),
            taken: 0,
        };
        if buffer.compression != Compression::None && cpu.size > 0 {
            // The size includes the number of chunks in trace-cmd 3.3, but not in 3.1.
            pages.end = store.len().min(pages.end + CHUNK_COUNT_BYTES);
            pages.packed_chunks = pages.read_u32(store, shape)?;
        }
        Ok(pages)
    }

    fn read_u32(&mut self, store: &Store, shape: Shape) -> io::Result<u32> {
        let bytes = store.read_at(self.at, 4.min(self.end - self.at))?;
        self.at += bytes.len() as u64;
        shape.number(&bytes, 0, 4).map(|n| n as u32).ok_or_else(|| self.error("end before the last of them"))
    }

    fn error(&self, why: &str) -> io::Error {
        bad(format!("the packed events of CPU {} {why}", self.cpu))
    }

    /// Returns the next page and keeps it until `take`.
    fn peek(&mut self, store: &Store, shape: Shape) -> io::Result<Option<&[u8]>> {
        if self.taken == self.ready.len() {
            self.taken = 0;
            self.ready.clear();
            self.fill(store, shape)?;
        }
        if self.ready.is_empty() {
            return Ok(None);
        }
        // The last page of a truncated file may be incomplete.
        let end = self.ready.len().min(self.taken + self.page_bytes);
        Ok(Some(&self.ready[self.taken..end]))
    }

    fn fill(&mut self, store: &Store, shape: Shape) -> io::Result<()> {
        if self.compression == Compression::None {
            self.ready = store.read_at(self.at, (self.end - self.at).min(self.read_bytes as u64))?;
            self.at += self.ready.len() as u64;
            return Ok(());
        }
        if self.packed_chunks == 0 {
            if self.at + CHUNK_COUNT_BYTES < self.end {
                return Err(self.error("are more than it says"));
            }
            return Ok(());
        }
        self.packed_chunks -= 1;
        let packed = u64::from(self.read_u32(store, shape)?);
        let unpacked = self.read_u32(store, shape)? as usize;
        if packed > self.end - self.at {
            return Err(self.error("extend into the data after them"));
        }
        if unpacked == 0 || unpacked > self.page_bytes.max(READ_BYTES) * MAX_PAGES_PACKED {
            return Err(self.error(&format!("have an impossible size, {unpacked} bytes at once")));
        }
        let bytes = store.read_at(self.at, packed)?;
        self.at += packed;
        self.ready = self.compression.unpack(&bytes, unpacked)?;
        Ok(())
    }

    fn take(&mut self) {
        self.taken = self.ready.len().min(self.taken + self.page_bytes);
    }
}

/// Pages of all CPUs in the order of time.
struct Pages {
    path: String,
    store: Store,
    shape: Shape,
    clock: Clock,
    cpus: Vec<CpuPages>,
    /// (time of the next page, index in `cpus`)
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    watermark: i64,
    ready_bytes: usize,
    stats: Stats,
    /// Number of lost events that pages reported, and number of pages that reported a loss without a number.
    reported: u64,
    reported_uncounted: u64,
}

impl Pages {
    fn new(store: Store, file: &TraceDat, path: String) -> io::Result<Self> {
        let mut pages = Self {
            path,
            shape: file.shape,
            clock: Clock { offset_ns: file.offset_ns, tsc: file.tsc },
            cpus: Vec::new(),
            heads: BinaryHeap::new(),
            watermark: i64::MIN,
            ready_bytes: 0,
            stats: file.stats,
            reported: 0,
            reported_uncounted: 0,
            store,
        };
        let cpus: usize = file.buffers.iter().map(|buffer| buffer.cpus.len()).sum();
        let read_bytes = (MAX_READ_BYTES_TOTAL / cpus.max(1)).min(READ_BYTES);
        for buffer in &file.buffers {
            if !(64..=MAX_PAGE_BYTES).contains(&buffer.page_bytes) {
                return Err(bad(format!("its pages have an impossible size, {} bytes", buffer.page_bytes)));
            }
            for cpu in &buffer.cpus {
                let at = pages.cpus.len();
                pages.cpus.push(CpuPages::new(cpu, buffer, read_bytes, &pages.store, pages.shape)?);
                pages.queue_next_page(at)?;
            }
        }
        Ok(pages)
    }

    /// Queues the next page of a CPU by its time.
    fn queue_next_page(&mut self, at: usize) -> io::Result<()> {
        let (shape, clock) = (self.shape, self.clock);
        let pages = &mut self.cpus[at];
        self.ready_bytes -= pages.ready.len();
        if let Some(page) = pages.peek(&self.store, shape)? {
            let time = shape.time(page).map_or(i64::MIN, |time| clock.ns(time));
            self.heads.push(Reverse((time, at)));
        }
        self.ready_bytes += pages.ready.len();
        if self.ready_bytes > MAX_READY_BYTES {
            return Err(bad("its CPUs have more packed events at once than any recorder writes"));
        }
        Ok(())
    }

    /// Number of lost events that no page reported.
    fn unreported_losses(&self) -> u64 {
        // A page that reports a loss without a number was counted as one event.
        let reported = self.reported.saturating_add(self.reported_uncounted);
        let overrun = if self.reported_uncounted > 0 { self.stats.overrun.saturating_sub(reported) } else { 0 };
        overrun.saturating_add(self.stats.dropped)
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
                match page::lost(self.shape, page) {
                    Some(Lost::Some(count)) => self.reported = self.reported.saturating_add(count),
                    Some(Lost::Unknown) => self.reported_uncounted += 1,
                    Some(Lost::None) | None => {}
                }
                self.cpus[at].take();
            }
            self.queue_next_page(at)?;
        }
        if self.heads.is_empty() {
            let lost = self.unreported_losses();
            self.stats = Stats::default();
            if lost > 0 {
                any = true;
                buffer.extend_from_slice(&[0; 4]);
                buffer.extend_from_slice(&UNREPORTED_LOSS.to_le_bytes());
                buffer.extend_from_slice(&lost.to_le_bytes());
            }
        }
        chunk.end();
        // A damaged file may go back in time; what is older than this then comes late.
        self.watermark = self.heads.peek().map_or(i64::MAX, |Reverse((time, _))| *time).max(self.watermark);
        chunk.watermark = Some(self.watermark);
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

/// Converts times of the buffer to ns.
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

/// An event that the file describes, and its decoder.
struct EventType {
    decoder: RecordDecoder,
    /// Of a printed text: the address of the function that prints it.
    printed_by: Option<Number>,
    pid: Option<Number>,
    format: Format,
}

struct Records {
    shape: Shape,
    clock: Clock,
    /// By the id that each record begins with.
    event_types: HashMap<u16, EventType>,
    comms: HashMap<u32, Vec<u8>>,
    machine: Option<Machine>,
    marker_writer: Option<Range<u64>>,
    /// Of what the kernel prints.
    other: RecordDecoder,
    keep_extras: bool,
}

impl Records {
    fn new(file: TraceDat, options: &SourceOptions) -> Self {
        let machine = file.uname.as_deref().and_then(Machine::of);
        let event_types = file.formats.into_iter().map(|format| {
            let pid = format.field("common_pid").and_then(Number::of);
            let printed_by = format.field("ip").filter(|_| format.is_print()).and_then(Number::of);
            (format.id, EventType { decoder: RecordDecoder::of(&format, machine), printed_by, pid, format })
        });
        Self {
            shape: file.shape,
            clock: Clock { offset_ns: file.offset_ns, tsc: file.tsc },
            event_types: event_types.collect(),
            comms: file.comms,
            machine,
            marker_writer: file.marker_writer,
            other: RecordDecoder::of_other(),
            keep_extras: options.keep_extras,
        }
    }

    /// Returns the decoder of a record. Without the address of the writer of markers, every printed text is taken for a marker.
    fn decoder_of<'a>(&'a self, event_type: &'a EventType, record: &[u8]) -> &'a RecordDecoder {
        let printed_by = event_type.printed_by.and_then(|ip| ip.unsigned(self.shape, record));
        match (&self.marker_writer, printed_by) {
            (Some(writer), Some(ip)) if !writer.contains(&ip) => &self.other,
            _ => &event_type.decoder,
        }
    }

    fn record(&self, ts: i64, record: &[u8], comms: &mut HashMap<u32, NameId>, batch: &mut Batch) {
        const NO_EVENT: &str = "a record of an event that the file does not describe";
        let Some(id) = self.shape.number(record, 0, 2) else { return batch.unparsed(&[], NO_EVENT) };
        let Some(event_type) = self.event_types.get(&(id as u16)) else {
            return batch.unparsed(format!("event number {id}").as_bytes(), NO_EVENT);
        };
        if ts < 0 {
            return batch.unparsed(event_type.format.name.as_bytes(), "its time is out of range");
        }
        let decoder = self.decoder_of(event_type, record);
        if decoder.is_other() && !self.keep_extras {
            batch.other(|| &event_type.format.name);
            return;
        }
        if let Some(field) = decoder.missing_field {
            let event = format!("{}: its format has no usable field '{field}'", event_type.format.name);
            return batch.unparsed(event.as_bytes(), "Syncline needs it");
        }
        let kind = decoder.kind(&event_type.format.name, self.machine, self.shape, record, &mut batch.names);
        let Some(kind) = kind else {
            return batch
                .unparsed(event_type.format.name.as_bytes(), "a field of the event is missing or out of range");
        };
        if kind == Kind::Other && !self.keep_extras {
            batch.other(|| &event_type.format.name);
            return;
        }
        let pid = event_type.pid.and_then(|pid| pid.unsigned(self.shape, record));
        let tid = pid.and_then(|pid| i32::try_from(pid).ok()).map_or(UNKNOWN_TASK, |pid| pid as u32);
        let comm = *comms.entry(tid).or_insert_with(|| {
            // The kernel stores no name for its idle tasks, whose PID is 0.
            let comm = self.comms.get(&tid).map(Vec::as_slice).or((tid == 0).then_some(b"<idle>"));
            comm.map_or(NameId::NONE, |comm| batch.names.intern(comm))
        });
        if self.keep_extras {
            self.extras(event_type, decoder, kind, record, batch);
        }
        batch.events.push(Event { ts, tid, pid: UNKNOWN_TASK, comm, line: 0, kind });
    }

    /// Stores the tracer's name of the event, and every field that the event has no field for.
    fn extras(&self, event_type: &EventType, decoder: &RecordDecoder, kind: Kind, record: &[u8], batch: &mut Batch) {
        let word = batch.names.intern(&decoder.log_name(&event_type.format.name, kind));
        batch.event_names.push(word);
        let event = batch.events.len() as u32;
        let stored = decoder.fields(kind);
        for field in &event_type.format.fields {
            if field.name.starts_with(COMMON) || stored.contains(&field.name.as_str()) {
                continue;
            }
            let value = self.format_value(event_type, field, record);
            let key = batch.names.intern(&extra_key(field.name.as_bytes()));
            let value = batch.names.intern(&value);
            batch.extras.push(Extra { event, key, value });
        }
    }

    fn format_value(&self, event_type: &EventType, field: &Field, record: &[u8]) -> Vec<u8> {
        if let Some(number) = Number::of(field) {
            let value = number.unsigned(self.shape, record).unwrap_or_default();
            if let Some(symbol) = event_type.format.symbol(&field.name, value) {
                return symbol.into();
            }
            return match field.layout {
                Layout::Dev => Some(Dev(value as u32).to_string()),
                Layout::Number { signed: true } => number.signed(self.shape, record).map(|n| n.to_string()),
                _ => number.unsigned(self.shape, record).map(|n| n.to_string()),
            }
            .unwrap_or_default()
            .into_bytes();
        }
        if field.layout == Layout::Bytes {
            let bytes = field.bytes(record).unwrap_or_default();
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            return bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        }
        field_text(field, self.shape, record).unwrap_or_default().to_vec()
    }
}

fn page_name(header: &[u8]) -> String {
    format!("a page of CPU {}", u32::from_le_bytes([header[0], header[1], header[2], header[3]]))
}

impl Parse for Records {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut comms = HashMap::new();
        let mut rest = chunk;
        while let Some((header, after)) = rest.split_at_checked(PAGE_HEADER_BYTES) {
            let len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            if len == UNREPORTED_LOSS {
                let Some((count, after)) = after.split_first_chunk() else { return };
                batch.note(NoteKind::Lost { count: u64::from_le_bytes(*count) });
                rest = after;
                continue;
            }
            let len = len as usize;
            let (page, after) = after.split_at(len.min(after.len()));
            rest = after;
            let before = batch.events.len() as u32;
            let read = page::records(self.shape, page, |time, record| {
                self.record(self.clock.ns(time), record, &mut comms, batch);
            });
            match read {
                // No recorder writes such a page. The file has a hole from an incomplete copy.
                Ok(Lost::None) if page.iter().all(|b| *b == 0) => {
                    batch.unparsed(page_name(header).as_bytes(), "it is all zeros: was the file copied whole?");
                }
                Ok(Lost::None) => {}
                // The loss precedes the first event of the page.
                Ok(Lost::Some(count)) => batch.note_at(before, NoteKind::Lost { count }),
                Ok(Lost::Unknown) => batch.note_at(before, NoteKind::LostUncounted),
                Err(why) => batch.unparsed(page_name(header).as_bytes(), why),
            }
        }
    }
}
