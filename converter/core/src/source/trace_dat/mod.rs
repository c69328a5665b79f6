//! The binary ring buffer: trace.dat, versions 6 and 7, as trace-cmd and `syncline record` write it.
//!
//! Sub-buffer pages of all CPUs are read in the order of their first record's time. A page may extend far beyond the start of the next
//! one. So each chunk has a watermark, and newer events wait in the reorder stage.

mod file;
mod page;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::sync::Arc;

use self::file::{Buffer, Compression, Cpu, Stats, TraceDat, TscToNs};
use self::page::{Lost, Shape};
use super::binary::format::Format;
use super::binary::{EventTypes, RecordTask, bad};
use super::tracepoints::Machine;
use super::{Batch, Chunks, Explanation, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions};
use crate::error::{Error, Refused, Result};
use crate::event::UNKNOWN_TASK;
use crate::input_file::{Chunk, Input, Store};
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

pub const NAME: &str = "trace-dat";

pub struct TraceDatSource;

impl Source for TraceDatSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "The ring buffer counts the events that each CPU lost, so a loss while recording shows. Hits that a \
         dynamic event missed are not in the file; `syncline record` adds their number."
    }

    fn may_have_far_times(&self) -> bool {
        false
    }

    fn sniff(&self, head: &[u8]) -> bool {
        file::is_trace_dat(head)
    }

    fn describe(&self, _: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn may_hold_writes(&self) -> bool {
        true
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
        // Whose inode must say so: `dynamic_events` has the fields.
        let shows_files = |format: &Format| format.name == "read" && format.field("own").is_some();
        facts.extend(file.formats.iter().any(shows_files).then(|| ("page_reads", "recorded".to_owned())));
        let records_requests = file.formats.iter().any(Format::is_of_requests);
        let chunks = Box::new(Pages::new(store, &file, path.clone()).map_err(fail)?);
        let parse = Arc::new(Records::new(file, options));
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

struct Records {
    shape: Shape,
    clock: Clock,
    types: EventTypes,
    comms: HashMap<u32, Vec<u8>>,
}

impl Records {
    fn new(file: TraceDat, options: &SourceOptions) -> Self {
        let machine = file.uname.as_deref().and_then(Machine::of);
        Self {
            shape: file.shape,
            clock: Clock { offset_ns: file.offset_ns, tsc: file.tsc },
            types: EventTypes::new(
                file.formats,
                file.shape.order,
                machine,
                (options.keep_extras, options.keep_writes),
                file.symbols,
            ),
            comms: file.comms,
        }
    }

    fn record(&self, ts: i64, record: &[u8], comms: &mut HashMap<u32, NameId>, batch: &mut Batch) {
        self.types.record(ts, record, batch, |tid, batch| {
            let comm = *comms.entry(tid).or_insert_with(|| {
                // The kernel stores no name for its idle tasks, whose PID is 0.
                let comm = self.comms.get(&tid).map(Vec::as_slice).or((tid == 0).then_some(b"<idle>"));
                comm.map_or(NameId::NONE, |comm| batch.names.intern(comm))
            });
            RecordTask { tid, pid: UNKNOWN_TASK, comm }
        });
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
            let before = batch.events.len();
            let read = page::records(self.shape, page, |time, record| {
                self.record(self.clock.ns(time), record, &mut comms, batch);
            });
            match read {
                // No recorder writes such a page. The file has a hole from an incomplete copy.
                Ok(Lost::None) if page.iter().all(|b| *b == 0) => {
                    batch.unparsed(page_name(header).as_bytes(), "it is all zeros: was the file copied whole?");
                }
                Ok(Lost::None) => {}
                // The loss precedes the first event of the page, and what is noted about its records.
                Ok(Lost::Some(count)) => batch.insert_note_before(before, 0, NoteKind::Lost { count }),
                Ok(Lost::Unknown) => batch.insert_note_before(before, 0, NoteKind::LostUncounted),
                Err(why) => batch.unparsed(page_name(header).as_bytes(), why),
            }
        }
    }
}
