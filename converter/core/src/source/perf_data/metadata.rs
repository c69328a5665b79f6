//! The metadata of a file: attributes, ids, features, and the formats of the tracepoints.

use std::collections::HashMap;
use std::io;

use foldhash::fast::FixedState;

use super::attr::Attr;
use crate::source::binary::format::{Format, parse_formats};
use crate::source::binary::{ByteOrder, Cursor, bad};

/// Numbers of the features of a file (`enum` in tools/perf/util/header.h).
pub(super) mod feature {
    pub(in super::super) const TRACING_DATA: usize = 1;
    pub(super) const HOSTNAME: usize = 3;
    pub(super) const OS_RELEASE: usize = 4;
    pub(super) const VERSION: usize = 5;
    pub(super) const ARCH: usize = 6;
    pub(super) const EVENT_DESC: usize = 12;
    pub(in super::super) const DIR_FORMAT: usize = 24;
    pub(super) const CLOCK_DATA: usize = 29;
    pub(in super::super) const COUNT: usize = 256;
}

/// The first bytes of the description of the tracepoints, which are those of a trace.dat.
const TRACING_MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// An event that perf recorded.
#[derive(Clone, Debug)]
pub(super) struct PerfEvent {
    pub(super) attr: Attr,
    /// As `-e` names it; empty if the file does not say.
    pub(super) name: String,
}

#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) order: ByteOrder,
    pub(super) events: Vec<PerfEvent>,
    /// Index of the event with an id. Each event has an id for each CPU or thread.
    pub(super) by_id: HashMap<u64, u32, FixedState>,
    pub(super) formats: Option<Vec<Format>>,
    pub(super) host: Option<String>,
    pub(super) release: Option<String>,
    pub(super) version: Option<String>,
    pub(super) arch: Option<String>,
    pub(super) realtime_offset_ns: Option<i64>,
}

impl Metadata {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self {
            order,
            events: Vec::new(),
            by_id: HashMap::default(),
            formats: None,
            host: None,
            release: None,
            version: None,
            arch: None,
            realtime_offset_ns: None,
        }
    }

    fn cursor<'a>(&self, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, big_endian: self.order.big_endian }
    }

    /// Adds an event. `ids` holds numbers of eight bytes.
    pub(super) fn add_event(&mut self, attr: &[u8], ids: &[u8]) -> io::Result<()> {
        let attr = Attr::parse(attr, self.order).ok_or_else(|| bad("the description of an event is not understood"))?;
        let index = self.events.len() as u32;
        self.events.push(PerfEvent { attr, name: String::new() });
        for id in ids.chunks_exact(8) {
            self.by_id.extend(self.order.number(id, 0, 8).map(|id| (id, index)));
        }
        Ok(())
    }

    /// Takes the content of a feature. One that cannot be read is left out, except the formats of the tracepoints.
    pub(super) fn add_feature(&mut self, number: usize, bytes: &[u8]) -> io::Result<()> {
        match number {
            feature::TRACING_DATA => self.add_tracing_data(bytes)?,
            feature::HOSTNAME => self.host = self.text(bytes),
            feature::OS_RELEASE => self.release = self.text(bytes),
            feature::VERSION => self.version = self.text(bytes),
            feature::ARCH => self.arch = self.text(bytes),
            feature::EVENT_DESC => {
                let _ = self.add_event_names(bytes);
            }
            feature::CLOCK_DATA => self.realtime_offset_ns = self.parse_clock_data(bytes),
            _ => {}
        }
        Ok(())
    }

    /// Reads a text with its length before it and zeros after it.
    fn text(&self, bytes: &[u8]) -> Option<String> {
        let text = self.cursor(bytes).sized(4).ok()?;
        let text = text.split(|&b| b == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Version, number of the clock, and one moment on both the clock of the day and that clock, in ns.
    fn parse_clock_data(&self, bytes: &[u8]) -> Option<i64> {
        let mut cursor = self.cursor(bytes);
        cursor.take(8).ok()?;
        let (day, clock) = (cursor.u64().ok()?, cursor.u64().ok()?);
        i64::try_from(day).ok()?.checked_sub_unsigned(clock)
    }

    /// Reads the names of the events, each with its ids.
    fn add_event_names(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut cursor = self.cursor(bytes);
        let (count, attr_bytes) = (cursor.u32()?, cursor.u32()?);
        for position in 0..count {
            cursor.take(u64::from(attr_bytes))?;
            let ids = cursor.u32()?;
            let name = text_at(&mut cursor)?;
            let ids = cursor.take(u64::from(ids) * 8)?;
            let of_id = self.order.number(ids, 0, 8).and_then(|id| self.by_id.get(&id).copied());
            if let Some(event) = self.events.get_mut(of_id.unwrap_or(position) as usize) {
                event.name = name;
            }
        }
        Ok(())
    }

    /// Reads the formats of the tracepoints. They are as in a trace.dat of version 6.
    pub(super) fn add_tracing_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut cursor = self.cursor(bytes);
        if cursor.take(TRACING_MAGIC.len() as u64)? != TRACING_MAGIC {
            return Err(bad("the description of its tracepoints is not understood"));
        }
        cursor.string()?;
        cursor.big_endian = cursor.take(1)?[0] != 0;
        // The size of a long, and that of a page.
        cursor.take(5)?;
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            if cursor.take(name.len() as u64)? != name {
                return Err(bad("the description of its tracepoints is not understood"));
            }
            cursor.sized(8)?;
        }
        // Events of ftrace itself.
        for _ in 0..cursor.u32()? {
            cursor.sized(8)?;
        }
        self.formats = Some(parse_formats(&mut cursor)?);
        Ok(())
    }

    /// Names the tracepoints by their formats, and checks that events can be distinguished.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for event in &mut self.events {
            let id = event.attr.config;
            let format = self.formats.iter().flatten().find(|format| u64::from(format.id) == id);
            if let Some(format) = format.filter(|_| event.attr.is_tracepoint()) {
                event.name = format!("{}:{}", format.system, format.name);
            } else if event.name.is_empty() {
                event.name = format!("event {id:#x}");
            }
        }
        let Some((first, others)) = self.events.split_first() else { return Err(bad("it describes no events")) };
        let place = |event: &PerfEvent| (event.attr.id_at(), event.attr.id_from_end());
        let is_clear = others.is_empty()
            || others.iter().all(|event| place(event) == place(first)) && first.attr.id_at().is_some()
            || others.iter().all(|event| event.attr == first.attr);
        if is_clear { Ok(()) } else { Err(bad("its samples do not name their events")) }
    }

    /// Whether samples have call chains.
    pub(super) fn has_chains(&self) -> bool {
        self.events.iter().any(|event| event.attr.has_chain())
    }

    /// Returns the index of the event with this id. A file with one event needs no ids.
    #[inline]
    pub(super) fn event_of_id(&self, id: u64) -> Option<u32> {
        if self.events.len() == 1 { Some(0) } else { self.by_id.get(&id).copied() }
    }

    /// Returns the index of the event of a sample.
    #[inline]
    pub(super) fn event_of_sample(&self, body: &[u8]) -> Option<u32> {
        let Some(at) = self.events[0].attr.id_at() else { return Some(0) };
        self.event_of_id(self.order.number(body, at, 8)?)
    }

    /// Splits a record other than a sample from the fields that follow it. Returns its time in ns; `None` without one.
    pub(super) fn split_trailer<'a>(&self, body: &'a [u8]) -> (&'a [u8], Option<i64>) {
        let id_at = self.events[0].attr.id_from_end().and_then(|from_end| body.len().checked_sub(from_end));
        let id = id_at.and_then(|at| self.order.number(body, at, 8));
        // Records that perf itself writes have the id 0.
        let event = id.and_then(|id| self.event_of_id(id)).unwrap_or(0);
        let (bytes, time_at) = self.events[event as usize].attr.trailer();
        let (body, trailer) = body.split_at(body.len().saturating_sub(bytes));
        let time = time_at.and_then(|at| self.order.number(trailer, at, 8));
        (body, time.filter(|time| !matches!(*time, 0 | u64::MAX)).map(|time| time as i64))
    }
}

fn text_at(cursor: &mut Cursor<'_>) -> io::Result<String> {
    let text = cursor.sized(4)?;
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}
