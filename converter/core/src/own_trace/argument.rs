//! Arguments with a name of their own, which only packets of the run and of predicted writes have. Slices of the run have interned names.

use super::wire::{Damaged, Fields};
use crate::sink::perfetto::proto::{annotation, event};

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

/// Returns the arguments of an event, or of its fields from one of them on.
pub(super) fn arguments(event: &[u8]) -> impl Iterator<Item = Result<Argument<'_>, Damaged>> {
    Fields(event).filter_map(|field| match field {
        Ok((event::DEBUG_ANNOTATIONS, value)) => Some(value.bytes().and_then(argument)),
        Ok(_) => None,
        Err(damaged) => Some(Err(damaged)),
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
