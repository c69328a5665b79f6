//! The types of a trace's events, and what their fields mean.

use std::borrow::Cow;

use super::bundle::{PRINT, Payload, SCHED_SWITCH, SCHED_WAKING};
use super::table::MESSAGES;
use crate::collections::Map;
use crate::event::{Dev, Kind};
use crate::names::Names;
use crate::source::described::{Described, Meaning};
use crate::source::dynamic_events::{PROBE_FIELDS, ProbeFields};
use crate::source::reserved_names::other_event_name;
use crate::source::tracepoints::{Field, Fields, Machine, Tracepoint};
use crate::trace_layout::wire::{self, Damaged, Wire};

const GENERIC: u32 = 327;
/// A kprobe that Perfetto defined itself. It has a name and no fields.
const KPROBE: u32 = 542;
/// Messages from this number on are described in the trace.
const FIRST_DESCRIBED: u32 = 65_536;
/// The values of `origin` that mean a sync: `enum wb_trace_origin` of the patch.
const SYNC_ORIGINS: std::ops::RangeInclusive<u64> = 1..=3;
/// The fields that the kernel declares as `dev_t`. Perfetto writes them as programs see them.
const DEVICES: [&[u8]; 4] = [b"dev", b"sb_dev", b"old_dev", b"s_dev"];

/// How the value of a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    I32,
    U32,
    I64,
    U64,
    Text,
    Bytes,
    /// Several numbers.
    Numbers,
}

impl FieldType {
    fn of_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'i' => Self::I32,
            b'u' => Self::U32,
            b'I' => Self::I64,
            b'U' => Self::U64,
            b's' => Self::Text,
            b'b' => Self::Bytes,
            b'r' => Self::Numbers,
            _ => return None,
        })
    }

    /// The type of a field by its number in `FieldDescriptorProto.Type`.
    fn of_descriptor(number: u64) -> Option<Self> {
        Some(match number {
            3 => Self::I64,
            4 => Self::U64,
            5 => Self::I32,
            8 | 13 | 14 => Self::U32,
            9 => Self::Text,
            12 => Self::Bytes,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug)]
struct FieldDef {
    number: u32,
    name: Box<str>,
    of_type: FieldType,
    used: Option<Field>,
}

/// An event whose message has a number of its own.
#[derive(Clone, Debug)]
pub(super) struct EventType {
    name: Box<str>,
    group: Option<Box<str>>,
    fields: Vec<FieldDef>,
}

impl EventType {
    fn of_table((_, name, fields): &(u32, &str, &str)) -> Self {
        let words: Vec<_> = fields.split(' ').collect();
        let field = |pair: &[&str]| {
            let [number, name] = pair else { return None };
            let (number, letter) = number.split_at_checked(number.len().checked_sub(1)?)?;
            let used = Field::of(name.as_bytes());
            let of_type = FieldType::of_letter(*letter.as_bytes().first()?)?;
            Some(FieldDef { number: number.parse().ok()?, name: (*name).into(), of_type, used })
        };
        let fields = words.chunks(2).filter_map(field).collect();
        Self { name: (*name).into(), group: None, fields }
    }

    /// Reads a `GenericEventDescriptor`: the number of the message, and its description.
    pub(super) fn of_descriptor(bytes: &[u8]) -> Result<(u32, Self), Damaged> {
        const FIELD_ID: u32 = 1;
        const DESCRIPTOR: u32 = 2;
        const GROUP_NAME: u32 = 3;
        const NAME: u32 = 1;
        const FIELD: u32 = 2;
        let (mut number, mut event) = (None, Self { name: "".into(), group: None, fields: Vec::new() });
        for field in wire::Fields(bytes) {
            match field? {
                (FIELD_ID, id) => number = u32::try_from(id.int()?).ok(),
                (GROUP_NAME, group) => event.group = Some(group.text()?.into()),
                (DESCRIPTOR, descriptor) => {
                    for field in wire::Fields(descriptor.bytes()?) {
                        match field? {
                            (NAME, name) => event.name = name.text()?.into(),
                            (FIELD, field) => event.fields.extend(described_field(field.bytes()?)?),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let number = number.filter(|&number| number >= FIRST_DESCRIBED).ok_or(Damaged)?;
        if event.name.is_empty() { Err(Damaged) } else { Ok((number, event)) }
    }

    fn field(&self, number: u32) -> Option<&FieldDef> {
        // The fields of almost all messages are numbered from 1 on, in order.
        let by_place = self.fields.get((number as usize).wrapping_sub(1)).filter(|field| field.number == number);
        by_place.or_else(|| self.fields.iter().find(|field| field.number == number))
    }

    fn meaning(&self, machine: Option<Machine>, keep_writes: bool, is_print: bool) -> Meaning {
        let is_probe = self.fields.iter().any(|field| PROBE_FIELDS.contains(&&*field.name));
        let (name, system) = (self.name.as_bytes(), self.group.as_deref());
        Described { name, system, is_print, is_probe }.meaning(machine, keep_writes)
    }
}

/// Reads a `FieldDescriptorProto`; `None` if the field has a type that Perfetto does not give to one of the kernel's.
fn described_field(bytes: &[u8]) -> Result<Option<FieldDef>, Damaged> {
    const NAME: u32 = 1;
    const NUMBER: u32 = 3;
    const TYPE: u32 = 5;
    let (mut name, mut number, mut of_type) = ("", None, None);
    for field in wire::Fields(bytes) {
        match field? {
            (NAME, text) => name = text.text()?,
            (NUMBER, id) => number = u32::try_from(id.int()?).ok(),
            (TYPE, id) => of_type = FieldType::of_descriptor(id.int()?),
            _ => {}
        }
    }
    let def = |(number, of_type)| FieldDef { number, name: name.into(), of_type, used: Field::of(name.as_bytes()) };
    Ok(number.zip(of_type).map(def))
}

/// A field of an event, and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub(super) name: &'a [u8],
    used: Option<Field>,
    data: Data<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Data<'a> {
    /// Negative numbers are in two's complement.
    Number {
        value: u64,
        signed: bool,
    },
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// All of the same field: one of several numbers.
    OneOf(u64),
}

impl<'a> Value<'a> {
    fn new(name: &'a [u8], used: Option<Field>, of_type: FieldType, wire: Wire<'a>) -> Result<Self, Damaged> {
        let data = match of_type {
            FieldType::I32 => Data::Number { value: i64::from(wire.int()? as i32) as u64, signed: true },
            FieldType::U32 => Data::Number { value: u64::from(wire.int()? as u32), signed: false },
            FieldType::I64 => Data::Number { value: wire.int()?, signed: true },
            FieldType::U64 => Data::Number { value: wire.int()?, signed: false },
            FieldType::Text => Data::Text(wire.bytes()?),
            FieldType::Bytes => Data::Bytes(wire.bytes()?),
            FieldType::Numbers => Data::OneOf(wire.int()?),
        };
        Ok(Self { name, used, data })
    }

    fn is_of_probe(&self) -> bool {
        PROBE_FIELDS.iter().any(|field| field.as_bytes() == self.name)
    }

    pub(super) fn number(name: &'a str, value: i64) -> Self {
        let name = name.as_bytes();
        Self { name, used: Field::of(name), data: Data::Number { value: value as u64, signed: true } }
    }

    pub(super) fn text(name: &'a str, text: &'a [u8]) -> Self {
        Self { name: name.as_bytes(), used: Field::of(name.as_bytes()), data: Data::Text(text) }
    }
}

/// An event, read from its message.
pub(super) struct Record<'a> {
    pub(super) name: &'a [u8],
    meaning: Meaning,
    pub(super) values: Vec<Value<'a>>,
}

/// The events that a trace can have.
pub(super) struct EventTypes {
    machine: Option<Machine>,
    keep_writes: bool,
    by_number: Map<u32, (EventType, Meaning)>,
}

impl EventTypes {
    /// `described` are those that the trace describes itself.
    pub(super) fn new(
        described: impl Iterator<Item = (u32, EventType)>,
        machine: Option<Machine>,
        keep_writes: bool,
    ) -> Self {
        let known = MESSAGES.iter().map(|row| (row.0, EventType::of_table(row)));
        let by_number = known.chain(described).map(|(number, event)| {
            let meaning = event.meaning(machine, keep_writes, number == PRINT);
            (number, (event, meaning))
        });
        Self { machine, keep_writes, by_number: by_number.collect() }
    }

    /// Reads an event; `Ok(None)` if the trace does not describe it. `memory` is that of a record that is not needed any more.
    pub(super) fn read<'a>(
        &'a self,
        payload: &Payload<'a>,
        from: Option<u32>,
        mut values: Vec<Value<'a>>,
    ) -> Result<Option<Record<'a>>, Damaged> {
        values.clear();
        let (name, meaning) = match *payload {
            Payload::Message { number: GENERIC, bytes } => return self.generic(bytes, values).map(Some),
            Payload::Message { number: KPROBE, bytes } => {
                const NAME: u32 = 1;
                let mut name: &[u8] = b"";
                for field in wire::Fields(bytes) {
                    if let (NAME, text) = field? {
                        name = text.bytes()?;
                    }
                }
                return Ok(Some(Record { name, meaning: Meaning::Other, values }));
            }
            Payload::Message { number, bytes } => {
                let Some((event, meaning)) = self.by_number.get(&number) else { return Ok(None) };
                for field in wire::Fields(bytes) {
                    let (number, wire) = field?;
                    // A newer version may have added a field.
                    let Some(def) = event.field(number) else { continue };
                    values.push(Value::new(def.name.as_bytes(), def.used, def.of_type, wire)?);
                }
                (event.name.as_bytes(), *meaning)
            }
            Payload::Switch { to, state, prio, comm } => {
                values.extend(from.map(|from| Value::number("prev_pid", i64::from(from))));
                values.push(Value::number("prev_state", state));
                values.push(Value::text("next_comm", comm));
                values.push(Value::number("next_pid", i64::from(to)));
                values.push(Value::number("next_prio", i64::from(prio)));
                (&b"sched_switch"[..], self.meaning_of(SCHED_SWITCH))
            }
            Payload::Waking { tid, cpu, prio, comm } => {
                values.push(Value::text("comm", comm));
                values.push(Value::number("pid", i64::from(tid)));
                values.push(Value::number("prio", i64::from(prio)));
                values.push(Value::number("target_cpu", i64::from(cpu)));
                (&b"sched_waking"[..], self.meaning_of(SCHED_WAKING))
            }
        };
        Ok(Some(Record { name, meaning, values }))
    }

    /// Whether the message of this number is the start of a sync of a file system.
    pub(super) fn starts_request(&self, number: u32) -> bool {
        matches!(self.meaning_of(number), Meaning::Tracepoint(tracepoint) if tracepoint.starts_request())
    }

    fn meaning_of(&self, number: u32) -> Meaning {
        self.by_number.get(&number).map_or(Meaning::Other, |(_, meaning)| *meaning)
    }

    /// Reads a `GenericFtraceEvent`, which has the names of its fields.
    fn generic<'a>(&self, bytes: &'a [u8], mut values: Vec<Value<'a>>) -> Result<Record<'a>, Damaged> {
        const EVENT_NAME: u32 = 1;
        const FIELD: u32 = 2;
        const NAME: u32 = 1;
        const STR_VALUE: u32 = 3;
        const INT_VALUE: u32 = 4;
        const UINT_VALUE: u32 = 5;
        let mut name: &[u8] = b"";
        for field in wire::Fields(bytes) {
            match field? {
                (EVENT_NAME, text) => name = text.bytes()?,
                (FIELD, field) => {
                    let (mut name, mut value): (&[u8], _) = (b"", None);
                    for part in wire::Fields(field.bytes()?) {
                        match part? {
                            (NAME, text) => name = text.bytes()?,
                            (STR_VALUE, wire) => value = Some((FieldType::Text, wire)),
                            (INT_VALUE, wire) => value = Some((FieldType::I64, wire)),
                            (UINT_VALUE, wire) => value = Some((FieldType::U64, wire)),
                            _ => {}
                        }
                    }
                    // An empty text has no value.
                    let (of_type, wire) = value.unwrap_or((FieldType::Text, Wire::Bytes(b"")));
                    values.push(Value::new(name, Field::of(name), of_type, wire)?);
                }
                _ => {}
            }
        }
        let is_probe = values.iter().any(Value::is_of_probe);
        let described = Described { name, system: None, is_print: false, is_probe };
        Ok(Record { name, meaning: described.meaning(self.machine, self.keep_writes), values })
    }
}

impl Record<'_> {
    pub(super) fn is_write(&self) -> bool {
        matches!(self.meaning, Meaning::Write(_))
    }

    pub(super) fn is_other(&self) -> bool {
        self.meaning == Meaning::Other
    }

    /// Decodes the event; `None` if a field is missing or out of range.
    pub(super) fn kind(&self, types: &EventTypes, names: &mut Names) -> Option<Kind> {
        match self.meaning {
            Meaning::Write(write) => write.kind(self, names),
            Meaning::Tracepoint(Tracepoint::Dynamic(event)) => {
                let has = |field: &&'static str| self.by_name(field).is_some();
                event.required_fields().iter().all(has).then_some(())?;
                event.kind(self, names)
            }
            Meaning::Tracepoint(tracepoint) => {
                let has = |field: Field| match self.used(field) {
                    Some(Data::Number { .. }) => !field.is_text(),
                    Some(Data::Text(_)) => field.is_text(),
                    _ => false,
                };
                tracepoint.required_fields().iter().all(|&field| has(field)).then_some(())?;
                tracepoint.kind(self.name, types.machine, self, names)
            }
            Meaning::Other => Some(Kind::Other),
        }
    }

    /// Returns the event name in the low-level log.
    pub(super) fn log_name(&self, kind: Kind) -> Cow<'_, [u8]> {
        match self.meaning {
            Meaning::Tracepoint(tracepoint) => tracepoint.log_name(self.name, kind),
            Meaning::Write(_) | Meaning::Other => other_event_name("event", self.name),
        }
    }

    /// Returns the fields that the event does not store, as the low-level log prints them.
    pub(super) fn extras(&self, kind: Kind) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
        let is_stored = move |name| match self.meaning {
            Meaning::Tracepoint(tracepoint) => tracepoint.stores(kind, name),
            Meaning::Write(_) | Meaning::Other => false,
        };
        let others = self.values.iter().enumerate().filter(move |(_, value)| !is_stored(value.name));
        others.filter_map(|(at, value)| Some((value.name, self.shown(at, value)?)))
    }

    fn shown(&self, at: usize, value: &Value<'_>) -> Option<Cow<'_, [u8]>> {
        let hex = |bytes: &[u8]| bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect::<Vec<_>>();
        Some(match value.data {
            Data::Number { value: number, .. } if !self.is_dynamic() && DEVICES.contains(&value.name) => {
                device(number)?.to_string().into_bytes().into()
            }
            Data::Number { value, signed: true } => (value as i64).to_string().into_bytes().into(),
            Data::Number { value, signed: false } => value.to_string().into_bytes().into(),
            Data::Text(_) => match self.values[at].data {
                Data::Text(text) => text.into(),
                _ => return None,
            },
            Data::Bytes(bytes) => hex(bytes).into(),
            // All of them at the first one, as the kernel stores them.
            Data::OneOf(_) => {
                let is_first = !self.values[..at].iter().any(|before| before.name == value.name);
                let same = self.values[at..].iter().filter(|other| other.name == value.name);
                let numbers = same.filter_map(|other| match other.data {
                    Data::OneOf(number) => Some(number.to_le_bytes()),
                    _ => None,
                });
                is_first.then(|| numbers.flat_map(|bytes| hex(&bytes)).collect::<Vec<_>>())?.into()
            }
        })
    }

    /// Whether it is a dynamic event, which has its device as the kernel numbers it.
    fn is_dynamic(&self) -> bool {
        matches!(self.meaning, Meaning::Tracepoint(Tracepoint::Dynamic(_)))
            || self.values.iter().any(Value::is_of_probe)
    }

    #[inline]
    fn used(&self, field: Field) -> Option<Data<'_>> {
        self.values.iter().find(|value| value.used == Some(field)).map(|value| value.data)
    }

    fn by_name(&self, name: &str) -> Option<Data<'_>> {
        self.values.iter().find(|value| value.name == name.as_bytes()).map(|value| value.data)
    }
}

/// Returns the device that a program sees as this number (`makedev`); `None` if the kernel has none of these numbers.
fn device(number: u64) -> Option<Dev> {
    let major = number >> 8 & 0xfff | number >> 32 & 0xffff_f000;
    let minor = number & 0xff | number >> 12 & 0xffff_ff00;
    (major < 1 << 12 && minor < 1 << 20).then(|| Dev::new(major as u32, minor as u32))
}

impl Fields for Record<'_> {
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        match self.used(field)? {
            Data::Number { value, .. } => Some(value),
            _ => None,
        }
    }

    fn text(&self, field: Field) -> Option<&[u8]> {
        match self.used(field)? {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    fn dev(&self, field: Field) -> Option<Dev> {
        device(Fields::number(self, field)?)
    }

    fn is_background(&self) -> bool {
        Fields::number(self, Field::Origin).is_some_and(|origin| !SYNC_ORIGINS.contains(&origin))
    }
}

impl ProbeFields for Record<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        match self.by_name(field)? {
            Data::Number { value, .. } => Some(value),
            _ => None,
        }
    }

    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        match self.by_name(field)? {
            Data::Text(text) => Some(text.into()),
            _ => None,
        }
    }

    /// Perfetto has no symbols for the fields of a dynamic event, so only one that the kernel stored as a text has a name.
    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        ProbeFields::text(self, field)
    }

    fn function(&self) -> Cow<'_, [u8]> {
        let address = PROBE_FIELDS[1..].iter().find_map(|field| ProbeFields::number(self, field)).unwrap_or_default();
        format!("{address}").into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_the_table_has_all_its_fields() {
        for row in MESSAGES {
            let event = EventType::of_table(row);
            assert_eq!(event.fields.len() * 2, row.2.split_whitespace().count(), "{row:?}");
            assert!(event.fields.iter().all(|field| event.field(field.number).is_some()));
        }
        for (number, name) in [(PRINT, "print"), (SCHED_SWITCH, "sched_switch"), (SCHED_WAKING, "sched_waking")] {
            assert!(MESSAGES.iter().any(|row| (row.0, row.1) == (number, name)));
        }
    }

    #[test]
    fn devices_are_numbered_as_programs_see_them() {
        // makedev(3) of glibc: the lower eight bits of both numbers come first.
        assert_eq!(device(0xfe10), Some(Dev::new(254, 16)));
        assert_eq!(device(0x1000_0801), Some(Dev::new(8, 0x10001)));
        assert_eq!(device(0x1000_0000_0000), None);
    }
}
