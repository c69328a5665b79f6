//! The events that a file describes: turns their records into events.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::ByteOrder;
use super::decoder::{Functions, Number, RecordDecoder, field_text};
use super::format::{Field, Format, Layout};
use crate::event::{Dev, Event, Kind, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::event_names::extra_key;
use crate::source::tracepoints::Machine;
use crate::source::{Batch, Extra};

/// Prefix of the fields that every event has.
const COMMON: &str = "common_";

/// The thread of a record.
pub(in crate::source) struct RecordTask {
    pub(in crate::source) tid: u32,
    pub(in crate::source) pid: u32,
    pub(in crate::source) comm: NameId,
}

/// An event that the file describes, and its decoder.
struct EventType {
    decoder: RecordDecoder,
    /// The address of the function that prints a text.
    printed_by: Option<Number>,
    pid: Option<Number>,
    format: Format,
}

pub(in crate::source) struct EventTypes {
    order: ByteOrder,
    machine: Option<Machine>,
    keep_extras: bool,
    keep_writes: bool,
    /// By the id that each record begins with.
    by_id: HashMap<u16, EventType, FixedState>,
    /// Addresses of the kernel's function that writes markers, where they are known.
    marker_writer: Option<Range<u64>>,
    /// The functions that may be the value of a field, as far as their addresses are known.
    functions: Functions,
    /// Decoder of what the kernel prints.
    other: RecordDecoder,
}

impl EventTypes {
    pub(in crate::source) fn new(
        formats: Vec<Format>,
        order: ByteOrder,
        machine: Option<Machine>,
        (keep_extras, keep_writes): (bool, bool),
        (marker_writer, functions): (Option<Range<u64>>, Functions),
    ) -> Self {
        let by_id = formats.into_iter().map(|format| {
            let pid = format.field("common_pid").and_then(Number::of);
            let printed_by = format.field("ip").filter(|_| format.is_print()).and_then(Number::of);
            (
                format.id,
                EventType { decoder: RecordDecoder::of(&format, machine, keep_writes), printed_by, pid, format },
            )
        });
        let by_id = by_id.collect();
        Self {
            order,
            machine,
            keep_extras,
            keep_writes,
            by_id,
            marker_writer,
            functions,
            other: RecordDecoder::of_other(),
        }
    }

    /// Returns the decoder of a record. Without the address of the writer of markers, every printed text is taken for a marker.
    #[inline]
    fn decoder_of<'a>(&'a self, event_type: &'a EventType, record: &[u8]) -> &'a RecordDecoder {
        let printed_by = event_type.printed_by.and_then(|ip| ip.unsigned(self.order, record));
        match (&self.marker_writer, printed_by) {
            (Some(writer), Some(ip)) if !writer.contains(&ip) => &self.other,
            _ => &event_type.decoder,
        }
    }

    /// Returns the id that a record begins with.
    #[inline]
    pub(in crate::source) fn id_of(&self, record: &[u8]) -> Option<u64> {
        self.order.number(record, 0, 2)
    }

    /// Returns the name of the event with this id; `None` if the file does not describe it.
    pub(in crate::source) fn name(&self, id: u64) -> Option<&str> {
        self.get(id).map(|of| of.format.name.as_str())
    }

    /// Whether Syncline uses the event with this id.
    pub(in crate::source) fn is_used(&self, id: u64) -> bool {
        self.get(id).is_some_and(|of| !of.decoder.is_other())
    }

    /// Whether the event with this id may be the entry or the exit of a sync call.
    pub(in crate::source) fn may_be_call(&self, id: u64) -> bool {
        self.get(id).is_some_and(|of| of.decoder.may_be_call())
    }

    #[inline]
    fn get(&self, id: u64) -> Option<&EventType> {
        self.by_id.get(&u16::try_from(id).ok()?)
    }

    /// Appends the event of a record, if it is needed, and returns whether it did. `task` returns the thread of the record; it gets the thread id
    /// that the record itself has.
    #[inline]
    pub(in crate::source) fn record(
        &self,
        ts: i64,
        record: &[u8],
        batch: &mut Batch,
        task: impl FnOnce(u32, &mut Batch) -> RecordTask,
    ) -> bool {
        let id = self.id_of(record);
        let Some(event_type) = id.and_then(|id| self.get(id)) else {
            undescribed(id, batch);
            return false;
        };
        let name = &event_type.format.name;
        if ts < 0 {
            batch.unparsed(name.as_bytes(), "its time is out of range");
            return false;
        }
        let decoder = self.decoder_of(event_type, record);
        let keeps_others = self.keep_extras || self.keep_writes && batch.needs_time();
        if decoder.is_other() && !keeps_others {
            batch.other(|| name);
            return false;
        }
        if let Some(field) = decoder.missing_field {
            let event = format!("{name}: its format has no usable field '{field}'");
            batch.unparsed(event.as_bytes(), "Syncline needs it");
            return false;
        }
        let kind = decoder.kind(name, (self.machine, &self.functions), self.order, record, &mut batch.names);
        let Some(kind) = kind else {
            batch.unparsed(name.as_bytes(), "a field of the event is missing or out of range");
            return false;
        };
        let kind = if self.keep_writes && !decoder.is_write() { Kind::Other } else { kind };
        if kind == Kind::Other && !keeps_others {
            batch.other(|| name);
            return false;
        }
        let pid = event_type.pid.and_then(|pid| pid.unsigned(self.order, record));
        let tid = pid.and_then(|pid| i32::try_from(pid).ok()).map_or(UNKNOWN_TASK, |pid| pid as u32);
        let RecordTask { tid, pid, comm } = task(tid, batch);
        if self.keep_extras {
            self.extras(event_type, decoder, kind, record, batch);
        }
        batch.events.push(Event { ts, tid, pid, comm, line: 0, kind });
        true
    }

    /// Stores the tracer's name of the event, and every field that the event has no field for.
    fn extras(&self, event_type: &EventType, decoder: &RecordDecoder, kind: Kind, record: &[u8], batch: &mut Batch) {
        let of_function = || decoder.logged(&self.functions, self.order, record);
        if let Some(logged) = (kind != Kind::Other).then(of_function).flatten() {
            let word = batch.names.intern(&logged.event);
            batch.event_names.push(word);
            let event = batch.events.len() as u32;
            for (key, value) in logged.fields {
                let (key, value) = (batch.names.intern(key), batch.names.intern(&value));
                batch.extras.push(Extra { event, key, value });
            }
            return;
        }
        let word = batch.names.intern(&decoder.log_name(&event_type.format.name, kind));
        batch.event_names.push(word);
        let event = batch.events.len() as u32;
        for field in &event_type.format.fields {
            if field.name.starts_with(COMMON) || decoder.stores(kind, &field.name) {
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
            let value = number.unsigned(self.order, record).unwrap_or_default();
            if let Some(symbol) = event_type.format.symbol(&field.name, value) {
                return symbol.into();
            }
            if field.name == "end_io"
                && let Some(function) = self.functions.get(&value)
            {
                return (*function).into();
            }
            return match field.layout {
                Layout::Dev => Some(Dev(value as u32).to_string()),
                Layout::Number { signed: true } => number.signed(self.order, record).map(|n| n.to_string()),
                _ => number.unsigned(self.order, record).map(|n| n.to_string()),
            }
            .unwrap_or_default()
            .into_bytes();
        }
        if field.layout == Layout::Bytes {
            let bytes = field.bytes(record).unwrap_or_default();
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            return bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        }
        field_text(field, self.order, record).unwrap_or_default().to_vec()
    }
}

#[cold]
fn undescribed(id: Option<u64>, batch: &mut Batch) {
    let event = id.map_or(String::new(), |id| format!("event number {id}"));
    batch.unparsed(event.as_bytes(), "a record of an event that the file does not describe");
}
