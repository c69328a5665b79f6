//! Columns that hold one field of their row, unchanged. One line says both ways: the value that a field is, and the field that a value makes when
//! a trace is read.

use super::Value;
use crate::event::{Dev, NO_ID, NO_SECTOR, UNKNOWN_TASK};
use crate::names::NameId;

/// The kind of a field: how it becomes a value of a column, and how it is read back. A null value makes a field that is not known.
pub(super) trait Field {
    type Of: Copy;

    fn value(field: Self::Of) -> Value;
    fn read(value: Value) -> Self::Of;
}

fn int(value: Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

/// Defines what a field is: a name, its type, its value, and the way back.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $of:ty, $value:expr, $read:expr;)*) => {
        $($(#[$doc])*
        pub(super) struct $name;

        impl Field for $name {
            type Of = $of;

            #[inline]
            fn value(field: $of) -> Value {
                $value(field)
            }

            fn read(value: Value) -> $of {
                $read(value)
            }
        })*
    };
}

fields! {
    /// A number that every row has.
    Number: u64, |number| Value::Int(number as i64), |value| int(value).unwrap_or_default() as u64;
    MaybeNumber: Option<u64>, |number: Option<u64>| Value::int(number.map(|number| number as i64)), |value| int(value).map(|number| number as u64);
    /// Unsigned, as the source has it.
    Id: u64, Value::id, |value| if let Value::UInt(id) = value { id } else { NO_ID };
    /// 0 is not known.
    Inode: u64, |ino| if ino == 0 { Value::Null } else { Value::Int(ino as i64) }, |value| int(value).unwrap_or_default() as u64;
    Address: u64, |address| if address == 0 { Value::Null } else { Value::Address(address) }, |value| if let Value::Address(address) = value { address } else { 0 };
    Sector: i64, |sector| if sector == NO_SECTOR { Value::Null } else { Value::Int(sector) }, |value| int(value).unwrap_or(NO_SECTOR);
    /// 0 or a negative errno.
    Errno: Option<i32>, |error: Option<i32>| Value::int(error.map(i64::from)), |value| int(value).and_then(|error| i32::try_from(error).ok());
    Device: Dev, Value::dev, |value| if let Value::Dev(dev) = value { dev } else { Dev::UNKNOWN };
    Task: u32, Value::task, |value| int(value).and_then(|id| u32::try_from(id).ok()).unwrap_or(UNKNOWN_TASK);
    Name: NameId, Value::name, |value| if let Value::Name(name) = value { name } else { NameId::NONE };
}

/// Defines the columns of a row, in their order: `column: Kind(field)` for one that holds a field, `column = value` for any other.
macro_rules! columns_of {
    ($(#[$doc:meta])* $row:ident, $table:literal, $columns:expr, |$this:ident| {
        $($column:ident $(: $kind:ident($field:ident))? $(= $value:expr)?;)*
    }) => {
        impl Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [(&'static str, Type)] = $columns;

            fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
                let $this = self;
                $(f(
                    stringify!($column),
                    $(<fields::$kind as fields::Field>::value($this.$field))? $($value)?,
                );)*
            }
        }

        impl $row {
            /// Takes the fields that columns hold as they are from the values of the columns.
            pub(crate) fn read_fields(&mut self, values: &[Value; $columns.len()]) {
                $($(self.$field = <fields::$kind as fields::Field>::read(
                    values[const { derived::column::<Self>(stringify!($column)) }],
                );)?)*
            }
        }
    };
}
pub(super) use columns_of;
