//! Decoders of binary records: which tracepoint a record is, and where its fields are.

use std::borrow::Cow;

use super::format::{Field, Format, Layout};
use super::page::Shape;
use crate::event::{Dev, Kind};
use crate::names::Names;
use crate::source::event_names::is_background;
use crate::source::tracepoints::{self, Machine, Tracepoint};

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
    pub(super) fn unsigned(self, shape: Shape, record: &[u8]) -> Option<u64> {
        shape.number(record, self.at, self.size)
    }

    #[inline]
    pub(super) fn signed(self, shape: Shape, record: &[u8]) -> Option<i64> {
        let value = self.unsigned(shape, record)?;
        let unused = 64 - 8 * self.size as u32;
        Some(if self.signed { (value << unused) as i64 >> unused } else { value as i64 })
    }
}

/// Returns the bytes of a text field; `None` if it extends beyond the record.
pub(super) fn text<'a>(field: &Field, shape: Shape, record: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match field.layout {
        Layout::Text | Layout::Bytes => record.get(field.offset..field.offset.checked_add(field.size)?)?,
        Layout::DataLoc | Layout::RelLoc => {
            let place = shape.number(record, field.offset, 4)?;
            let base = if field.layout == Layout::RelLoc { field.offset + 4 } else { 0 };
            let from = base + (place & 0xffff) as usize;
            record.get(from..from + (place >> 16) as usize)?
        }
        Layout::Number { .. } | Layout::Dev => return None,
    };
    Some(bytes.split(|&b| b == 0).next().unwrap_or_default())
}

/// Decodes the records of one event format: the slot of each field that Syncline uses.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    point: Option<Tracepoint>,
    places: [Option<Place>; tracepoints::Field::COUNT],
    /// Values of `origin` that mean a sync, if the format names its values.
    of_syncs: Option<Vec<u64>>,
    /// A required field that the format does not have.
    pub(super) lacks: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Place {
    Number(Number),
    Text(Field),
}

impl Plan {
    pub(super) fn of(format: &Format, machine: Option<Machine>) -> Self {
        let name = format.name.as_bytes();
        let point = Tracepoint::of(name).filter(|point| point.system(name) == format.system.as_bytes());
        let point = point.filter(|point| !point.is_raw() || machine.is_some());
        let mut places = [const { None }; tracepoints::Field::COUNT];
        for field in &format.fields {
            if let Some(known) = tracepoints::Field::of(field.name.as_bytes()) {
                places[known as usize] = match field.layout {
                    Layout::Bytes => None,
                    Layout::Number { .. } | Layout::Dev => Number::of(field).map(Place::Number),
                    _ => Some(Place::Text(field.clone())),
                };
            }
        }
        let lacks = point.and_then(|point| {
            let mut needed = point.needs().iter();
            needed.find(|&&field| match &places[field as usize] {
                Some(Place::Number(_)) => field.is_text(),
                Some(Place::Text(_)) => !field.is_text(),
                None => true,
            })
        });
        let of_syncs = format.symbols.get("origin").map(|values| {
            let of_syncs = values.iter().filter(|(_, name)| !is_background(name)).map(|(value, _)| *value);
            of_syncs.collect()
        });
        Self { point, places, of_syncs, lacks: lacks.map(|field| field.name()) }
    }

    /// Names of the tracepoint fields that the event stores.
    pub(super) fn fields(&self, kind: Kind) -> &'static [&'static str] {
        self.point.map_or(&[], |point| point.fields(kind))
    }

    /// Returns the event name in the low-level log.
    pub(super) fn word<'a>(&self, name: &'a str, kind: Kind) -> Cow<'a, [u8]> {
        self.point.map_or_else(|| name.as_bytes().into(), |point| point.word(name.as_bytes(), kind))
    }

    pub(super) fn is_other(&self) -> bool {
        self.point.is_none()
    }

    /// Decodes a record; `None` if a field extends beyond its end.
    pub(super) fn kind(
        &self,
        name: &str,
        machine: Option<Machine>,
        shape: Shape,
        record: &[u8],
        names: &mut Names,
    ) -> Option<Kind> {
        match self.point {
            Some(point) => point.kind(name.as_bytes(), machine, &Record { plan: self, shape, bytes: record }, names),
            None => Some(Kind::Other),
        }
    }
}

struct Record<'a> {
    plan: &'a Plan,
    shape: Shape,
    bytes: &'a [u8],
}

impl tracepoints::Fields for Record<'_> {
    #[inline]
    fn number(&self, field: tracepoints::Field) -> Option<u64> {
        match &self.plan.places[field as usize] {
            Some(Place::Number(number)) => number.signed(self.shape, self.bytes).map(|value| value as u64),
            _ => None,
        }
    }

    fn text(&self, field: tracepoints::Field) -> Option<&[u8]> {
        match &self.plan.places[field as usize] {
            Some(Place::Text(place)) => text(place, self.shape, self.bytes),
            _ => None,
        }
    }

    fn dev(&self, field: tracepoints::Field) -> Option<Dev> {
        self.number(field).map(|dev| Dev(dev as u32))
    }

    fn is_background(&self) -> bool {
        match (&self.plan.of_syncs, self.number(tracepoints::Field::Origin)) {
            (Some(of_syncs), Some(origin)) => !of_syncs.contains(&origin),
            _ => false,
        }
    }
}
