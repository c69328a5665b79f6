//! Decoders of binary records: which tracepoint a record is, and where its fields are.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ByteOrder;
use super::format::{FTRACE, Field, Format, Layout};
use crate::event::{Dev, Kind};
use crate::names::Names;
use crate::source::described::{Described, Meaning};
use crate::source::dynamic_events::{DynamicEvent, PROBE_FIELDS, ProbeFields};
use crate::source::event_names::is_background;
use crate::source::function_graph::functions::{self, Logged};
use crate::source::reserved_names::other_event_name;
use crate::source::tracepoints::{self, Machine, Tracepoint};
use crate::source::write_events::WriteEventName;

/// The location of a number in a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    at: usize,
    size: usize,
    signed: bool,
}

impl Number {
    pub(super) fn of(field: &Field) -> Option<Self> {
        match field.layout {
            Layout::Number { signed } => Some(Self { at: field.offset, size: field.size, signed }),
            Layout::Dev => Some(Self { at: field.offset, size: field.size, signed: false }),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn unsigned(self, order: ByteOrder, record: &[u8]) -> Option<u64> {
        order.number(record, self.at, self.size)
    }

    #[inline]
    pub(super) fn signed(self, order: ByteOrder, record: &[u8]) -> Option<i64> {
        let value = self.unsigned(order, record)?;
        let unused_bits = 64 - 8 * self.size as u32;
        Some(if self.signed { (value << unused_bits) as i64 >> unused_bits } else { value as i64 })
    }
}

/// Returns the bytes of a text field; `None` if it extends beyond the record.
pub(super) fn field_text<'a>(field: &Field, order: ByteOrder, record: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match field.layout {
        Layout::Text | Layout::Bytes => field.bytes(record)?,
        Layout::DataLoc | Layout::RelLoc => {
            // The kernel packs the length above the offset, which `__rel_loc` counts from its own end.
            let location = order.number(record, field.offset, 4)?;
            let base = if field.layout == Layout::RelLoc { field.offset + 4 } else { 0 };
            let from = base + (location & 0xffff) as usize;
            record.get(from..from + (location >> 16) as usize)?
        }
        Layout::Number { .. } | Layout::Dev => return None,
    };
    Some(bytes.split(|&b| b == 0).next().unwrap_or_default())
}

/// Decodes the records of one event format: the slot of each field that Syncline uses.
#[derive(Clone, Debug)]
pub(super) struct RecordDecoder {
    tracepoint: Option<Tracepoint>,
    /// The event of a write, which is decoded only with `keep_writes`.
    write: Option<WriteEventName>,
    slots: [Option<Slot>; tracepoints::Field::COUNT],
    /// All fields of a dynamic event, and of an event of writes.
    probe_fields: Vec<(String, Slot)>,
    /// Values of `origin` that mean a sync, if the format names its values.
    sync_origins: Option<Vec<u64>>,
    /// It is of the tracer function_graph.
    graph: Option<Graph>,
    /// A required field that the format does not have.
    pub(super) missing_field: Option<&'static str>,
}

/// A record of the tracer function_graph: the entry or the return of a function.
#[derive(Clone, Debug)]
struct Graph {
    is_entry: bool,
    function: Number,
    ret: Option<Number>,
}

/// How far behind the address of a function its record may name it: the instructions for branches (`endbr64`, `bti`) are before the traced place.
const PATCHED_AT: [u64; 4] = [0, 4, 8, 12];

impl Graph {
    fn of(format: &Format) -> Option<Self> {
        let is_entry = match format.name.as_str() {
            "funcgraph_entry" => true,
            "funcgraph_exit" => false,
            _ => return None,
        };
        let function = Number::of(format.field("func")?).filter(|_| format.system == FTRACE)?;
        Some(Self { is_entry, function, ret: format.field("retval").and_then(Number::of) })
    }

    /// The name of the function, if its address is known.
    fn name(&self, functions: &Functions, order: ByteOrder, record: &[u8]) -> Option<&'static str> {
        let address = self.function.unsigned(order, record)?;
        PATCHED_AT.iter().find_map(|at| functions.get(&address.wrapping_sub(*at))).copied()
    }

    /// Functions that sync return an int.
    fn returned(&self, order: ByteOrder, record: &[u8]) -> Option<i64> {
        self.ret?.unsigned(order, record).map(|ret| i64::from(ret as u32 as i32))
    }
}

#[derive(Clone, Debug)]
enum Slot {
    Number(Number),
    Text(Field),
}

impl RecordDecoder {
    pub(super) fn of(format: &Format, machine: Option<Machine>, keep_writes: bool) -> Self {
        let is_probe = |field: &Field| PROBE_FIELDS.contains(&field.name.as_str());
        let described = Described {
            name: format.name.as_bytes(),
            system: Some(&format.system),
            is_print: format.is_print(),
            is_probe: format.fields.iter().any(is_probe),
        };
        if let Some(graph) = Graph::of(format).filter(|_| !keep_writes) {
            return Self { graph: Some(graph), ..Self::of_other() };
        }
        let tracepoint = match described.meaning(machine, keep_writes) {
            Meaning::Write(write) => {
                return Self { write: Some(write), probe_fields: all_fields(format), ..Self::of_other() };
            }
            Meaning::Tracepoint(Tracepoint::Dynamic(event)) => return Self::of_probe(event, format),
            Meaning::Tracepoint(tracepoint) => Some(tracepoint),
            Meaning::Other => None,
        };
        let mut slots = [const { None }; tracepoints::Field::COUNT];
        for field in &format.fields {
            if let Some(used) = tracepoints::Field::of(field.name.as_bytes()) {
                slots[used as usize] = match field.layout {
                    Layout::Bytes => None,
                    Layout::Number { .. } | Layout::Dev => Number::of(field).map(Slot::Number),
                    _ => Some(Slot::Text(field.clone())),
                };
            }
        }
        let missing_field = tracepoint.and_then(|tracepoint| {
            let mut needed = tracepoint.required_fields().iter();
            needed.find(|&&field| match &slots[field as usize] {
                Some(Slot::Number(_)) => field.is_text(),
                Some(Slot::Text(_)) => !field.is_text(),
                None => true,
            })
        });
        let sync_origins = format.symbols.get("origin").map(|values| {
            let sync_origins = values.iter().filter(|(_, name)| !is_background(name)).map(|(value, _)| *value);
            sync_origins.collect()
        });
        let missing_field = missing_field.map(|field| field.name());
        Self { tracepoint, write: None, slots, probe_fields: Vec::new(), sync_origins, graph: None, missing_field }
    }

    /// The decoder of a dynamic event.
    fn of_probe(event: DynamicEvent, format: &Format) -> Self {
        let missing = event.required_fields().iter().find(|&&name| format.field(name).is_none());
        Self {
            tracepoint: Some(Tracepoint::Dynamic(event)),
            probe_fields: all_fields(format),
            missing_field: missing.copied(),
            ..Self::of_other()
        }
    }

    /// The decoder of an event that no report uses, whatever its name is.
    pub(super) fn of_other() -> Self {
        const NONE: Option<Slot> = None;
        Self {
            tracepoint: None,
            write: None,
            slots: [NONE; tracepoints::Field::COUNT],
            probe_fields: Vec::new(),
            sync_origins: None,
            graph: None,
            missing_field: None,
        }
    }

    /// Whether the event stores a field of the tracepoint. The low-level log has the others as extras.
    pub(super) fn stores(&self, kind: Kind, field: &str) -> bool {
        self.tracepoint.is_some_and(|tracepoint| tracepoint.stores(kind, field.as_bytes()))
    }

    /// Returns the event name in the low-level log.
    pub(super) fn log_name<'a>(&self, name: &'a str, kind: Kind) -> Cow<'a, [u8]> {
        let name = name.as_bytes();
        self.tracepoint.map_or_else(|| other_event_name("event", name), |tracepoint| tracepoint.log_name(name, kind))
    }

    pub(super) fn is_write(&self) -> bool {
        self.write.is_some()
    }

    pub(super) fn is_other(&self) -> bool {
        self.tracepoint.is_none() && self.write.is_none() && self.graph.is_none()
    }

    /// Whether the event may be the entry or the exit of a sync call.
    pub(super) fn may_be_call(&self) -> bool {
        self.tracepoint.is_some_and(Tracepoint::is_call)
    }

    /// The event of a function in the low-level log; `None` for another event.
    pub(super) fn logged(&self, functions: &Functions, order: ByteOrder, record: &[u8]) -> Option<Logged> {
        let graph = self.graph.as_ref()?;
        let name = graph.name(functions, order, record)?;
        let ret = if graph.is_entry { None } else { graph.returned(order, record) };
        Some(functions::logged(name.as_bytes(), graph.is_entry, ret))
    }

    /// Decodes a record; `None` if a field extends beyond its end.
    pub(super) fn kind(
        &self,
        name: &str,
        (machine, functions): (Option<Machine>, &Functions),
        order: ByteOrder,
        record: &[u8],
        names: &mut Names,
    ) -> Option<Kind> {
        if let Some(write) = self.write {
            return write.kind(&ProbeRecord { decoder: self, functions, order, bytes: record }, names);
        }
        if let Some(graph) = &self.graph {
            let name = graph.name(functions, order, record).map(str::as_bytes);
            let kind = name.and_then(|name| {
                if graph.is_entry {
                    functions::entry(name, names)
                } else {
                    functions::returned(name, graph.returned(order, record))
                }
            });
            return Some(kind.unwrap_or(Kind::Other));
        }
        match self.tracepoint {
            Some(Tracepoint::Dynamic(event)) => {
                event.kind(&ProbeRecord { decoder: self, functions, order, bytes: record }, names)
            }
            Some(tracepoint) => {
                tracepoint.kind(name.as_bytes(), machine, &Record { decoder: self, order, bytes: record }, names)
            }
            None => Some(Kind::Other),
        }
    }
}

fn all_fields(format: &Format) -> Vec<(String, Slot)> {
    let slot = |field: &Field| match field.layout {
        Layout::Bytes => None,
        Layout::Number { .. } | Layout::Dev => Number::of(field).map(Slot::Number),
        _ => Some(Slot::Text(field.clone())),
    };
    format.fields.iter().filter_map(|field| Some((field.name.clone(), slot(field)?))).collect()
}

/// Functions of the kernel by their address.
pub(in crate::source) type Functions = HashMap<u64, &'static str>;

/// A record of a dynamic event.
struct ProbeRecord<'a> {
    decoder: &'a RecordDecoder,
    functions: &'a Functions,
    order: ByteOrder,
    bytes: &'a [u8],
}

impl ProbeRecord<'_> {
    fn slot(&self, field: &str) -> Option<&Slot> {
        self.decoder.probe_fields.iter().find(|(name, _)| name == field).map(|(_, slot)| slot)
    }
}

impl ProbeFields for ProbeRecord<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        match self.slot(field)? {
            Slot::Number(number) => number.signed(self.order, self.bytes).map(|value| value as u64),
            Slot::Text(_) => None,
        }
    }

    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        match self.slot(field)? {
            Slot::Number(_) => None,
            Slot::Text(field) => field_text(field, self.order, self.bytes).map(Cow::Borrowed),
        }
    }

    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        let by_address = || self.functions.get(&self.number(field)?).map(|name| name.as_bytes().into());
        self.text(field).or_else(by_address)
    }

    fn function(&self) -> Cow<'_, [u8]> {
        // The first of them, `probe`, is only in what Syncline prints.
        let address = PROBE_FIELDS[1..].iter().find_map(|field| self.number(field)).unwrap_or_default();
        format!("{address}").into_bytes().into()
    }
}

struct Record<'a> {
    decoder: &'a RecordDecoder,
    order: ByteOrder,
    bytes: &'a [u8],
}

impl tracepoints::Fields for Record<'_> {
    #[inline]
    fn number(&self, field: tracepoints::Field) -> Option<u64> {
        match &self.decoder.slots[field as usize] {
            Some(Slot::Number(number)) => number.signed(self.order, self.bytes).map(|value| value as u64),
            _ => None,
        }
    }

    fn text(&self, field: tracepoints::Field) -> Option<&[u8]> {
        match &self.decoder.slots[field as usize] {
            Some(Slot::Text(field)) => field_text(field, self.order, self.bytes),
            _ => None,
        }
    }

    fn dev(&self, field: tracepoints::Field) -> Option<Dev> {
        self.number(field).map(|dev| Dev(dev as u32))
    }

    fn is_background(&self) -> bool {
        // Without the names of the values, `origin` says nothing.
        match (&self.decoder.sync_origins, self.number(tracepoints::Field::Origin)) {
            (Some(sync_origins), Some(origin)) => !sync_origins.contains(&origin),
            _ => false,
        }
    }
}
