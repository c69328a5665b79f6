//! Reads a trace that Syncline wrote back into rows, and hands them to a sink. docs/reference/trace-layout.md describes the layout.
//!
//! The columns that the trace leaves out are derived by the rules of `rows::derived`, as its writer does. Anything that the writer does not
//! write ends the reading: another program's packets, a second trace behind the first, a row that cannot be rebuilt. Such a trace is for the
//! trace processor.

mod argument;
mod blocks;
mod decompress;
mod integrity;
mod interned;
mod predicted_write;
mod rebuild;
mod slices;

use std::thread;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::argument::{Argument, arguments};
use self::blocks::{Block, Blocks};
use self::integrity::Integrity;
use self::interned::{Interned, Tracks};
use self::slices::{Counters, Event, Open};
use crate::error::{Error, Refused, Result};
use crate::event::Dev;
use crate::input_file::Input;
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::Value;
use crate::rows::derived::{BioSums, Known, KnownCall};
use crate::sink::{Mark, PredictedWrite, RunFacts, Sink};
use crate::trace_layout::fields::{clock, event, packet, trace};
use crate::trace_layout::wire::{Damaged, Fields, Wire};
use crate::trace_layout::{CHECKSUM_KEY, Category, SEQUENCE_ID};

/// The oldest version of the trace layout that is read. Version 3 has a new name for a column, and a column that older rows imply.
const OLDEST_VERSION: u32 = 2;

/// Why a trace is not read to its end.
#[derive(Debug)]
pub enum Stop {
    /// It is not a whole trace of this version of Syncline; why.
    Refused(&'static str),
    Failed(Error),
}

impl Stop {
    const FOREIGN: Self = Self::Refused("it holds what Syncline does not write");
    const DAMAGED: Self = Self::Refused("it is damaged or cut off");
}

impl From<Damaged> for Stop {
    fn from(_: Damaged) -> Self {
        Self::DAMAGED
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The facts of its run that a trace holds.
#[derive(Debug, Default)]
pub struct RunRead {
    pub facts: RunFacts,
    pub losses: Losses,
    /// Number of rows of requests.
    pub requests: u64,
}

impl RunRead {
    /// Returns the value of a key of `syncline_meta`.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.facts.meta.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns the names of devices, such as `sda`.
    pub fn device_names(&self) -> Vec<(Dev, String)> {
        let named = self.facts.meta.iter().filter_map(|(key, name)| Some((key.strip_prefix("device_name.")?, name)));
        named.filter_map(|(dev, name)| Some((rebuild::dev(dev)?, name.clone()))).collect()
    }

    /// Adds conditions to those that the trace was written with.
    pub fn add_filter(&mut self, conditions: &str) {
        const KEY: &str = "request_filter";
        match self.facts.meta.iter_mut().find(|(known, _)| known == KEY) {
            Some((_, all)) => *all = format!("{all}, {conditions}"),
            None => self.facts.meta.push((KEY.to_owned(), conditions.to_owned())),
        }
    }
}

/// Reads the rows of a trace into a sink, which is not finished. `progress` is called with the number of bytes that were read from disk;
/// if it returns false, the reading stops.
pub fn read(
    input: Input,
    sink: &mut dyn Sink,
    names: &mut Names,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<RunRead, Stop> {
    let path = input.path.clone();
    let mut reader = Reader::new(sink, names);
    thread::scope(|scope| {
        let blocks = Blocks::start(scope, input)?;
        let mut has_begun = false;
        while let Some(block) = blocks.next()? {
            match reader.packets(&block.packets, &path) {
                // A whole trace of ours that cannot be read is damaged. It is not for the trace processor, which would not notice.
                Err(Stop::Refused(why)) if reader.checksum.is_none() => {
                    compare(Integrity::new(reader.crc, path, has_begun), Some(block), &blocks, progress)?;
                    return Err(Stop::Refused(why));
                }
                read => read?,
            }
            has_begun |= !block.packets.is_empty();
            if !progress(block.consumed_bytes) {
                return Err(Error::Interrupted.into());
            }
            blocks.recycle(block);
        }
        reader.finish()
    })
}

/// Compares a trace with its checksum, if Syncline wrote all its packets up to that. `progress` is as for `read`.
pub fn verify(input: Input, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), Error> {
    let integrity = Integrity::new(flate2::Crc::new(), input.path.clone(), false);
    thread::scope(|scope| compare(integrity, None, &Blocks::start(scope, input)?, progress))
}

/// Compares the rest of a trace, first `block`, with its checksum.
fn compare(
    mut integrity: Integrity,
    mut block: Option<Block>,
    blocks: &Blocks,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    loop {
        if let Some(block) = block {
            if !integrity.packets(&block.packets)? {
                return Ok(());
            }
            if !progress(block.consumed_bytes) {
                return Err(Error::Interrupted);
            }
            blocks.recycle(block);
        }
        block = match blocks.next() {
            Ok(Some(next)) => Some(next),
            // It ends without a checksum, or in something that is no packet: it is for the trace processor.
            Ok(None) | Err(Stop::Refused(_)) => return Ok(()),
            Err(Stop::Failed(error)) => return Err(error),
        };
    }
}

/// Compares the checksum of a trace with the one that it holds.
fn check(have: u32, want: u32, path: &str) -> Result<(), Error> {
    if have == want {
        return Ok(());
    }
    let message = "the trace is damaged: it is not what was written, by its checksum";
    let source = Refused::error(message, "copy it again, or convert the log again");
    Err(Error::Read { path: path.to_owned(), source })
}

struct Reader<'a> {
    sink: &'a mut dyn Sink,
    names: &'a mut Names,
    interned: Interned,
    tracks: Tracks<Open>,
    has_clock: bool,
    /// The values that the trace holds once for all rows.
    known: Known,
    /// The trace leaves out what can be derived.
    derives: bool,
    bio_sums: HashMap<u64, BioSums, FixedState>,
    /// The `bio_id` of each bio of a request that has not ended, and the device of the last one, by `sync_id`.
    bio_ids: HashMap<u64, (Vec<u64>, Dev), FixedState>,
    /// The last call, unless it was written in full.
    last_call: Option<KnownCall>,
    run: RunRead,
    /// By `mark_id`.
    marks: Vec<(i64, Mark)>,
    predicted_writes: Vec<PredictedWrite>,
    /// Time and track of the instant with the facts of the run.
    facts_at: Option<(i64, u64)>,
    /// Checksum of the packets that were read.
    crc: flate2::Crc,
    /// The value of `crc` that the last packet of the trace holds.
    checksum: Option<u32>,
}

impl<'a> Reader<'a> {
    fn new(sink: &'a mut dyn Sink, names: &'a mut Names) -> Self {
        Self {
            sink,
            names,
            interned: Interned::default(),
            tracks: Tracks::default(),
            has_clock: false,
            known: Known::default(),
            derives: false,
            bio_sums: HashMap::default(),
            bio_ids: HashMap::default(),
            last_call: None,
            run: RunRead::default(),
            marks: Vec::new(),
            predicted_writes: Vec::new(),
            facts_at: None,
            crc: flate2::Crc::new(),
            checksum: None,
        }
    }

    /// Takes packets that are not compressed.
    fn packets(&mut self, bytes: &[u8], path: &str) -> Result<(), Stop> {
        let mut packets = Fields(bytes);
        let mut begin = bytes;
        while let Some(field) = packets.next() {
            let (trace::PACKET, Wire::Bytes(data)) = field? else { return Err(Stop::FOREIGN) };
            if self.checksum.is_some() {
                // It is in the last packet.
                return Err(Stop::FOREIGN);
            }
            self.packet(data)?;
            if let Some(checksum) = self.checksum {
                self.crc.update(&bytes[..bytes.len() - begin.len()]);
                check(self.crc.sum(), checksum, path)?;
            }
            begin = packets.0;
        }
        if self.checksum.is_none() {
            self.crc.update(bytes);
        }
        Ok(())
    }

    fn packet(&mut self, data: &[u8]) -> Result<(), Stop> {
        let (mut ts, mut sequence, mut flags) = (None, None, 0);
        let (mut interned, mut track_event, mut descriptor, mut snapshot) = (None, None, None, None);
        for field in Fields(data) {
            let (field, value) = field?;
            match field {
                packet::TIMESTAMP => ts = Some(value.int()? as i64),
                packet::TRUSTED_PACKET_SEQUENCE_ID => sequence = Some(value.int()?),
                packet::SEQUENCE_FLAGS => flags = value.int()?,
                packet::INTERNED_DATA => interned = Some(value.bytes()?),
                packet::TRACK_EVENT => track_event = Some(value.bytes()?),
                packet::TRACK_DESCRIPTOR => descriptor = Some(value.bytes()?),
                // Only counters have defaults, and no row has counters.
                packet::TRACE_PACKET_DEFAULTS => {}
                packet::CLOCK_SNAPSHOT => snapshot = Some(value.bytes()?),
                _ => return Err(Stop::FOREIGN),
            }
        }
        let known_flags = packet::SEQ_INCREMENTAL_STATE_CLEARED | packet::SEQ_NEEDS_INCREMENTAL_STATE;
        if flags & !known_flags != 0 {
            return Err(Stop::FOREIGN);
        }
        // Only the first packet has a clock: a second one begins another trace.
        if sequence != Some(SEQUENCE_ID) || snapshot.is_some() == self.has_clock {
            return Err(Stop::FOREIGN);
        }
        if flags & packet::SEQ_INCREMENTAL_STATE_CLEARED != 0 {
            self.interned = Interned::default();
            self.forget_names();
        }
        if let Some(snapshot) = snapshot {
            self.has_clock = true;
            self.sink.begin(first_ts(snapshot)?)?;
        }
        if let Some(interned) = interned {
            self.interned.add(interned, self.names)?;
        }
        if let Some(descriptor) = descriptor {
            self.tracks.add(descriptor)?;
        }
        match track_event {
            Some(data) => self.track_event(ts.ok_or(Stop::DAMAGED)?, flags, data),
            None => Ok(()),
        }
    }

    /// Forgets the names that no open slice has. Those that the trace uses again follow.
    fn forget_names(&mut self) {
        let Self { names, tracks, known, last_call, .. } = self;
        names.forget(|in_use| {
            known.visit_names(in_use);
            if let Some(KnownCall { stack: Value::Name(stack), .. }) = last_call {
                in_use(*stack);
            }
            tracks.open().for_each(|open| open.visit_names(in_use));
        });
    }

    fn track_event(&mut self, ts: i64, flags: u64, data: &[u8]) -> Result<(), Stop> {
        let (mut kind, mut track, mut category, mut name) = (0, 0, 0, 0);
        let mut fields = Fields(data);
        let mut arguments: &[u8] = &[];
        let mut flows = Vec::new();
        let (mut counters, mut counter) = (Counters::default(), 0);
        loop {
            let rest = fields.0;
            let Some(field) = fields.next() else { break };
            let (field, value) = field?;
            match field {
                // Syncline writes them last, and their reader refuses other fields.
                event::DEBUG_ANNOTATIONS => {
                    arguments = rest;
                    break;
                }
                event::TYPE => kind = value.int()?,
                event::TRACK_UUID => track = value.int()?,
                event::CATEGORY_IIDS => category = value.int()?,
                event::NAME_IID => name = value.int()?,
                event::FLOW_IDS if category == Category::Commit as u64 => flows.push(value.int()?),
                event::EXTRA_COUNTER_VALUES => {
                    *counters.get_mut(counter).ok_or(Stop::FOREIGN)? = Some(value.int()?);
                    counter += 1;
                }
                event::FLOW_IDS
                | event::EXTRA_COUNTER_TRACK_UUIDS
                | event::TERMINATING_FLOW_IDS
                | event::COUNTER_VALUE
                | event::CORRELATION_ID
                | event::CORRELATION_ID_STR
                | event::CORRELATION_ID_STR_IID => {}
                _ => return Err(Stop::FOREIGN),
            }
        }
        let has_arguments = !arguments.is_empty();
        if has_arguments && (kind == event::SLICE_END || kind == event::COUNTER) {
            return Err(Stop::FOREIGN);
        }
        if kind == event::SLICE_END {
            return self.end_slice(ts, track, &counters);
        }
        if flags & packet::SEQ_NEEDS_INCREMENTAL_STATE == 0 {
            return Err(Stop::FOREIGN);
        }
        if kind == event::COUNTER {
            return Ok(());
        }
        let is_instant = kind == event::INSTANT;
        if !is_instant && kind != event::SLICE_BEGIN {
            return Err(Stop::FOREIGN);
        }
        let category = self.interned.category(category)?;
        self.begin_slice(&Event { ts, track, category, name, is_instant, flows, counters, data: arguments })
    }

    /// Takes the instant with the facts of the run, that with the checksum, or one with the number of losses of a reason. `at` is its time and
    /// track.
    fn meta(&mut self, at: (i64, u64), name: u64, data: &[u8]) -> Result<(), Stop> {
        let kind = match self.interned.event_name(name)? {
            "syncline" => Meta::Facts,
            "loss_summary" => Meta::Loss,
            "checksum" => Meta::Checksum,
            _ => return Err(Stop::FOREIGN),
        };
        let mut loss = LossRead::default();
        for argument in arguments(data) {
            let Argument { name, value } = argument?;
            match (kind, value) {
                (Meta::Facts, argument::Value::Text(text)) => {
                    self.run.facts.meta.push((name.to_owned(), text.to_owned()));
                }
                (Meta::Loss, value) => loss.add(name, value)?,
                (Meta::Checksum, argument::Value::Number(sum)) if name == CHECKSUM_KEY => {
                    self.checksum = u32::try_from(sum).ok();
                }
                _ => return Err(Stop::FOREIGN),
            }
        }
        match kind {
            Meta::Facts if self.facts_at.is_some() => Err(Stop::FOREIGN),
            Meta::Facts => {
                self.facts_at = Some(at);
                Ok(())
            }
            Meta::Loss => loss.count(&mut self.run.losses),
            // The checksum covers the packets before its own, so what else its packet says is compared.
            Meta::Checksum if self.checksum.is_none() || self.facts_at != Some(at) => Err(Stop::DAMAGED),
            Meta::Checksum => Ok(()),
        }
    }

    fn finish(mut self) -> Result<RunRead, Stop> {
        // Traces that hold all values have no checksum.
        let is_cut_off = self.derives && self.checksum.is_none();
        if self.tracks.open().next().is_some() || self.facts_at.is_none() || is_cut_off {
            return Err(Stop::DAMAGED);
        }
        let version = self.run.fact("schema_version").and_then(|version| version.parse().ok());
        if !version.is_some_and(|version: u32| (OLDEST_VERSION..=crate::SCHEMA_VERSION).contains(&version)) {
            return Err(Stop::Refused("another version of Syncline wrote it"));
        }
        // With a filter, the number is that of the requests before it.
        let is_filtered = self.run.fact("request_filter").is_some();
        if !is_filtered && self.run.fact("requests") != Some(&self.run.requests.to_string()) {
            return Err(Stop::DAMAGED);
        }
        self.marks.sort_by_key(|(mark_id, _)| *mark_id);
        self.run.facts.marks = self.marks.into_iter().map(|(_, mark)| mark).collect();
        self.run.facts.prediction.rules = self.run.fact("write_model_rules").unwrap_or_default().to_owned();
        self.run.facts.prediction.writes = self.predicted_writes;
        let time = |key: &str| self.run.fact(key).and_then(|text| text.parse().ok());
        (self.run.facts.first_ts, self.run.facts.last_ts) = (time("first_ts_ns"), time("last_ts_ns"));
        Ok(self.run)
    }
}

/// Returns the time of the first clock of a snapshot.
fn first_ts(snapshot: &[u8]) -> Result<i64, Stop> {
    for field in Fields(snapshot) {
        let (clock::CLOCKS, value) = field? else { continue };
        for part in Fields(value.bytes()?) {
            if let (clock::TIMESTAMP, value) = part? {
                return Ok(value.int()? as i64);
            }
        }
    }
    Err(Stop::DAMAGED)
}

/// The instants of the category `syncline.meta`.
#[derive(Clone, Copy)]
enum Meta {
    Facts,
    Loss,
    Checksum,
}

/// The arguments of a `loss_summary`.
#[derive(Default)]
struct LossRead {
    reason: Option<Reason>,
    count: u64,
    first_ts: Option<i64>,
    last_ts: Option<i64>,
    example: Option<String>,
}

impl LossRead {
    fn add(&mut self, name: &str, value: argument::Value) -> Result<(), Stop> {
        match (name, value) {
            ("reason", argument::Value::Text(text)) => {
                self.reason = Reason::ALL.iter().copied().find(|reason| reason.name() == text);
            }
            ("count", argument::Value::Number(count)) => {
                self.count = u64::try_from(count).map_err(|_| Stop::DAMAGED)?;
            }
            ("first_ts_ns", argument::Value::Number(ts)) => self.first_ts = Some(ts),
            ("last_ts_ns", argument::Value::Number(ts)) => self.last_ts = Some(ts),
            ("example", argument::Value::Text(text)) => self.example = Some(text.to_owned()),
            // The reason says them.
            ("severity" | "meaning", _) => {}
            _ => return Err(Stop::FOREIGN),
        }
        Ok(())
    }

    fn count(self, losses: &mut Losses) -> Result<(), Stop> {
        let loss = losses.add(self.reason.ok_or(Stop::FOREIGN)?, self.count, None);
        (loss.first_ts, loss.last_ts, loss.example) = (self.first_ts, self.last_ts, self.example);
        Ok(())
    }
}
