//! Perfetto's system traces: events of ftrace that `traced_probes` or `tracebox` recorded.
//!
//! A trace is read twice: first `scan` finds the bundles of events, which are then parsed in the order of time.

mod bundle;
mod clock;
mod event_types;
mod packets;
mod scan;
mod table;

use std::io;
use std::sync::Arc;

use self::bundle::{Bundle, Payload};
use self::clock::Clock;
use self::event_types::{EventTypes, Record};
use self::packets::Look;
use self::scan::{Entry, Place, Scan, Unread};
use super::event_names::extra_key;
use super::reserved_names::other_event_name;
use super::tracepoints::Machine;
use super::{Batch, Chunks, Explanation, Extra, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions};
use crate::collections::Map;
use crate::error::{Error, Refused, Result};
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input_file::{Chunk, ChunkReader, Input, Store};
use crate::names::NameId;
use crate::trace_layout::wire::{Damaged, end_of_whole};

/// Approximate size of a chunk of bundles.
const CHUNK_BYTES: usize = 1 << 18;

pub const NAME: &str = "perfetto";

pub struct Perfetto;

impl Source for Perfetto {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "Bundles of events say that their CPU lost events before them, and the counts at the end say how many, so a loss while \
         recording shows. Hits that a dynamic event missed are not in the trace."
    }

    fn may_have_far_times(&self) -> bool {
        false
    }

    fn sniff(&self, head: &[u8]) -> bool {
        matches!(Look::at(head), Look::Trace | Look::Ftrace)
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
        let (mut scan, unpacked) = Scan::of(&store).map_err(fail)?;
        if scan.bundles.is_empty() {
            return Err(fail(Refused::error(
                "it is a Perfetto trace without events of ftrace",
                "record them: docs/reference/formats.md has the configuration for tracebox",
            )));
        }
        let mut facts = vec![("clock", scan.clock_name().to_owned())];
        let offset = scan.realtime_offset_ns.filter(|_| scan.clock_name() == "boottime");
        facts.extend(offset.map(|offset| ("realtime_offset_ns", offset.to_string())));
        facts.extend(scan.uname.clone().map(|uname| ("kernel", uname)));
        facts.extend(scan.recorder.take().map(|recorder| ("recorder", recorder)));
        let machine = Machine::of(&scan.machine).or_else(|| scan.uname.as_deref().and_then(Machine::of));
        let described = std::mem::take(&mut scan.described).into_iter();
        let types = EventTypes::new(described, machine.or(options.machine), options.keep_writes);
        let parse = Arc::new(Bundles {
            types,
            clocks: std::mem::take(&mut scan.clocks),
            comms: scan.take_comms(),
            tgids: std::mem::take(&mut scan.tgids),
            keep_extras: options.keep_extras,
            keep_writes: options.keep_writes,
        });
        let records_requests = scan.messages.keys().any(|&number| parse.types.starts_request(number));
        let chunks = Box::new(InOrder { path, store, unpacked, scan, next: 0, is_at_end: false });
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
            hint: "record them, too: ftrace_events: \"ext4/ext4_sync_file_enter\" and the others that \
                   docs/reference/formats.md has in its configuration for tracebox"
                .into(),
        })
    }
}

/// Returns whether a file is a trace with events of ftrace and without tracks of Syncline. It is read to its end if it is one.
///
/// # Errors
/// The file cannot be read.
pub fn is_system_trace(path: &str) -> Result<bool> {
    let input = Input::open(path)?;
    if !Perfetto.sniff(input.head()) {
        return Ok(false);
    }
    let mut chunks = ChunkReader::new(input);
    let mut chunk = Chunk::default();
    let mut has_ftrace = false;
    while chunks.next(&mut chunk, end_of_whole)? {
        match Look::in_packets(chunk.bytes()) {
            Look::Own => return Ok(false),
            Look::Ftrace => has_ftrace = true,
            Look::Trace | Look::Other => {}
        }
    }
    Ok(has_ftrace)
}

/// The header before a part of a chunk.
struct Header {
    tag: Tag,
    len: u32,
    clock: u32,
    running: Option<u32>,
    has_loss: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Bundle,
    /// A number of lost events that no bundle reports; 0: not known.
    Lost,
    /// Something that cannot be read: where it is, and why.
    Unread,
}

const HEADER_BYTES: usize = 16;
const NO_THREAD: u32 = u32::MAX;
const LOSS: u32 = 1 << 2;

impl Header {
    fn of(tag: Tag, len: usize) -> Self {
        Self { tag, len: len as u32, clock: 0, running: None, has_loss: false }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let flags = self.tag as u32 | if self.has_loss { LOSS } else { 0 };
        for word in [flags, self.len, self.clock, self.running.unwrap_or(NO_THREAD)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn read(bytes: [u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let tag = match word(0) & !LOSS {
            0 => Tag::Bundle,
            1 => Tag::Lost,
            _ => Tag::Unread,
        };
        let running = Some(word(12)).filter(|&tid| tid != NO_THREAD);
        Self { tag, len: word(4), clock: word(8), running, has_loss: word(0) & LOSS != 0 }
    }
}

/// The bundles of a trace in the order of time, and at its end what cannot be read.
struct InOrder {
    path: String,
    store: Store,
    unpacked: Option<Store>,
    scan: Scan,
    next: usize,
    is_at_end: bool,
}

impl InOrder {
    fn fill(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        let buffer = chunk.begin();
        while let Some(&Entry { place, len, clock, running, has_loss, .. }) = self.scan.bundles.get(self.next)
            && buffer.len() < CHUNK_BYTES
        {
            Header { clock, running, has_loss, ..Header::of(Tag::Bundle, len as usize) }.write(buffer);
            match (place, &self.unpacked) {
                (Place::File(at), _) => self.store.append(at, u64::from(len), buffer)?,
                (Place::Unpacked(at), Some(unpacked)) => unpacked.append(at, u64::from(len), buffer)?,
                (Place::Unpacked(_), None) => {}
            }
            self.next += 1;
        }
        let watermark = self.scan.bundles.get(self.next).map_or(i64::MAX, |entry| entry.earliest);
        if watermark == i64::MAX {
            self.is_at_end = true;
            self.end(buffer);
        }
        chunk.end();
        chunk.watermark = Some(watermark);
        Ok(true)
    }

    fn end(&self, buffer: &mut Vec<u8>) {
        for Unread { at, why } in &self.scan.unread {
            let text = format!("the packet at byte {at}: {why}");
            Header::of(Tag::Unread, text.len()).write(buffer);
            buffer.extend_from_slice(text.as_bytes());
        }
        for _ in 0..self.scan.more_unread {
            Header::of(Tag::Unread, 0).write(buffer);
        }
        let lost = self.scan.unreported_losses();
        let uncounted = self.scan.has_discarded().then_some(0);
        for count in Some(lost).filter(|&lost| lost > 0).into_iter().chain(uncounted) {
            Header::of(Tag::Lost, 8).write(buffer);
            buffer.extend_from_slice(&count.to_le_bytes());
        }
    }
}

impl Chunks for InOrder {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.fill(chunk).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    fn consumed_bytes(&self) -> u64 {
        // By the share of its bundles.
        let (done, all) = (self.next as u128, self.scan.bundles.len().max(1) as u128);
        (u128::from(self.store.len()) * done / all) as u64
    }
}

/// Makes events of bundles.
struct Bundles {
    types: EventTypes,
    clocks: Vec<Clock>,
    comms: Map<u32, Vec<u8>>,
    tgids: Map<u32, u32>,
    keep_extras: bool,
    keep_writes: bool,
}

impl Parse for Bundles {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut comms = Map::default();
        let mut rest = chunk;
        while let Some((header, after)) = rest.split_first_chunk() {
            let header = Header::read(*header);
            let (content, after) = after.split_at((header.len as usize).min(after.len()));
            rest = after;
            match (header.tag, content.first_chunk()) {
                (Tag::Bundle, _) => self.bundle(&header, content, &mut comms, batch),
                (Tag::Lost, Some(count)) => batch.note(match u64::from_le_bytes(*count) {
                    0 => NoteKind::LostUncounted,
                    count => NoteKind::Lost { count },
                }),
                (Tag::Lost | Tag::Unread, _) => {
                    batch.unparsed(content, "it is not a packet as Perfetto writes it: was the file copied whole?");
                }
            }
        }
    }
}

impl Bundles {
    fn bundle(&self, header: &Header, bytes: &[u8], comms: &mut Map<u32, NameId>, batch: &mut Batch) {
        let bundle = Bundle::read(bytes);
        let clock = &self.clocks[header.clock as usize];
        if header.has_loss {
            batch.note(NoteKind::LostUncounted);
        }
        let of_cpu = |what: &str| format!("{what} of CPU {}", bundle.cpu.unwrap_or_default()).into_bytes();
        for _ in 0..bundle.unreadable {
            batch.unparsed(&of_cpu("a page"), "its recorder could not read it from the ring buffer");
        }
        for why in &bundle.damaged {
            batch.unparsed(&of_cpu("a bundle"), why);
        }
        let mut values = Vec::new();
        bundle.each(header.running, |item, running| {
            if matches!(item.payload, Payload::Switch { .. }) && running.is_none() {
                // Nobody knows which thread leaves the CPU: it is the first event of it, or events are lost before it.
                self.without_meaning(clock.boot(item.ts), running, b"sched_switch", comms, batch);
                return;
            }
            match self.types.read(&item.payload, running, std::mem::take(&mut values)) {
                Ok(Some(record)) => {
                    self.event(clock.boot(item.ts), running, &record, comms, batch);
                    values = record.values;
                }
                Ok(None) => {
                    let name = match item.payload {
                        Payload::Message { number, .. } => format!("message {number}"),
                        Payload::Switch { .. } | Payload::Waking { .. } => String::new(),
                    };
                    self.without_meaning(clock.boot(item.ts), running, name.as_bytes(), comms, batch);
                }
                Err(Damaged) => batch.unparsed(&of_cpu("an event"), "its message is damaged"),
            }
        });
    }

    fn event(&self, ts: i64, tid: Option<u32>, record: &Record<'_>, comms: &mut Map<u32, NameId>, batch: &mut Batch) {
        let keeps_others = self.keep_extras || self.keep_writes && batch.needs_time();
        if record.is_other() && !keeps_others {
            batch.other(|| record.name);
            return;
        }
        let Some(kind) = record.kind(&self.types, &mut batch.names) else {
            batch.unparsed(record.name, "a field of the event is missing or out of range");
            return;
        };
        let kind = if self.keep_writes && !record.is_write() { Kind::Other } else { kind };
        if kind == Kind::Other && !keeps_others {
            batch.other(|| record.name);
            return;
        }
        if self.keep_extras {
            let name = batch.names.intern(&record.log_name(kind));
            batch.event_names.push(name);
            let event = batch.events.len() as u32;
            for (key, value) in record.extras(kind) {
                let key = batch.names.intern(&extra_key(key));
                let value = batch.names.intern(&value);
                batch.extras.push(Extra { event, key, value });
            }
        }
        self.push(ts, tid, kind, comms, batch);
    }

    /// An event whose message nobody can read. The low-level log has it by its name.
    fn without_meaning(&self, ts: i64, tid: Option<u32>, name: &[u8], comms: &mut Map<u32, NameId>, batch: &mut Batch) {
        if !self.keep_extras {
            batch.other(|| name);
            return;
        }
        let name = batch.names.intern(&other_event_name("event", name));
        batch.event_names.push(name);
        self.push(ts, tid, Kind::Other, comms, batch);
    }

    fn push(&self, ts: i64, tid: Option<u32>, kind: Kind, comms: &mut Map<u32, NameId>, batch: &mut Batch) {
        let comm = tid.map_or(NameId::NONE, |tid| {
            *comms
                .entry(tid)
                .or_insert_with(|| self.comms.get(&tid).map_or(NameId::NONE, |comm| batch.names.intern(comm)))
        });
        let pid = tid.and_then(|tid| self.tgids.get(&tid)).copied().unwrap_or(UNKNOWN_TASK);
        batch.events.push(Event { ts, tid: tid.unwrap_or(UNKNOWN_TASK), pid, comm, line: 0, kind });
    }
}
