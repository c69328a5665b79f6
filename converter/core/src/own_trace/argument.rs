//! Arguments with a name of their own, which only packets of the run and of predicted writes have. Slices of the run have interned names.

use crate::trace_layout::fields::{annotation, event};
use crate::trace_layout::wire::{Damaged, Fields};

pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) value: Value<'a>,
}

pub(super) enum Value<'a> {
    Text(&'a str),
    Number(i64),
    /// Syncline writes no such argument with a name of its own.
    Other,
}

/// Returns the fields of an event from its first argument on.
pub(super) fn from_first(event: &[u8]) -> Result<&[u8], Damaged> {
    let mut fields = Fields(event);
    loop {
        let rest = fields.0;
        match fields.next() {
            Some(Ok((event::DEBUG_ANNOTATIONS, _))) | None => return Ok(rest),
            Some(field) => field?,
        };
    }
}

/// Returns the arguments of an event, from its first one on. Syncline writes no other field behind them.
pub(super) fn arguments(data: &[u8]) -> impl Iterator<Item = Result<Argument<'_>, Damaged>> {
    Fields(data).map(|field| match field? {
        (event::DEBUG_ANNOTATIONS, value) => argument(value.bytes()?),
        _ => Err(Damaged),
    })
}

fn argument(data: &[u8]) -> Result<Argument<'_>, Damaged> {
    let (mut name, mut found, mut values) = ("", Value::Other, 0);
    for field in Fields(data) {
        let (number, value) = field?;
        if number == annotation::NAME {
            name = value.text()?;
            continue;
        }
        values += 1;
        found = match number {
            annotation::STRING_VALUE => Value::Text(value.text()?),
            annotation::INT_VALUE => Value::Number(value.int()? as i64),
            _ => Value::Other,
        };
    }
    Ok(Argument { name, value: if values == 1 { found } else { Value::Other } })
}
