//! The rows of the table of writes. `syncline model` reads them, and no other sink writes them: see `sink/columns/writes`.

use super::{Row, Type, Value};
use crate::event::write::{CallEnd, CallStart};
use crate::names::NameId;

/// Why a call, or one of its ends, is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unused {
    /// Events were lost while it was open.
    Loss,
    /// Its return is not in the recording.
    NoReturn,
    /// Its start is not in the recording.
    NoStart,
    /// It began in another call of its thread that has no return, so its return may be that of the other one.
    Doubtful,
    /// The event came after later ones had been paired.
    Late,
}

impl Unused {
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::NoReturn => "no return",
            Self::NoStart => "no start",
            Self::Doubtful => "doubtful",
            Self::Late => "late",
        }
    }
}

/// The time and the thread of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub ts: i64,
    pub tid: u32,
    pub comm: NameId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRow {
    /// A call. `number` counts the starts of calls. `end` is its time and what it returned.
    Call { number: u64, at: At, start: CallStart, end: Option<(i64, CallEnd)>, unused: Option<Unused> },
    /// The return of a call without its start.
    Return { at: At, end: CallEnd, unused: Unused },
    /// The limits of dirty page cache at a time.
    Limits { at: At, background_pages: i64, hard_pages: i64 },
}

impl Row for WriteRow {
    const TABLE: &'static str = "writes";
    /// `part` is `call`, `return` or `limits`. `path` is null if no name is recorded, `dirty_pages` where they are not recorded.
    /// `file_size_bytes` is that at the start of a write. `is_datasync`: data is durable at the return, but not the times of the file.
    const COLUMNS: &'static [(&'static str, Type)] = &[
        ("part", Type::Text),
        ("unused", Type::Text),
        ("kind", Type::Text),
        ("call_number", Type::Int),
        ("ts_ns", Type::Int),
        ("dur_ns", Type::Int),
        ("tid", Type::Int),
        ("comm", Type::Text),
        ("dev", Type::Int),
        ("ino", Type::UInt),
        ("generation", Type::Int),
        ("path", Type::Text),
        ("is_direct", Type::Bool),
        ("is_synchronized", Type::Bool),
        ("is_datasync", Type::Bool),
        ("offset_bytes", Type::Int),
        ("file_size_bytes", Type::Int),
        ("ret", Type::Int),
        ("dirty_pages", Type::Int),
        ("background_pages", Type::Int),
        ("hard_pages", Type::Int),
    ];

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        let unused = |reason: Option<Unused>| reason.map_or(Value::Null, |reason| Value::Word(reason.name()));
        let (part, unused, kind, at) = match self {
            Self::Call { at, start, unused: why, .. } => ("call", unused(*why), start.kind.name(), at),
            Self::Return { at, end, unused: why } => ("return", unused(Some(*why)), end.kind.name(), at),
            Self::Limits { at, .. } => ("limits", Value::Null, "limits", at),
        };
        let (number, start, end) = match self {
            Self::Call { number, start, end, .. } => (Some(*number as i64), Some(start), end.as_ref()),
            Self::Return { .. } | Self::Limits { .. } => (None, None, None),
        };
        let ret = match self {
            Self::Return { end, .. } => Some(end),
            Self::Call { .. } | Self::Limits { .. } => end.map(|(_, end)| end),
        };
        let limits = match self {
            Self::Limits { background_pages, hard_pages, .. } => Some((*background_pages, *hard_pages)),
            Self::Call { .. } | Self::Return { .. } => None,
        };
        let of_start = |value: &dyn Fn(&CallStart) -> Value| start.map_or(Value::Null, value);
        f("part", Value::Word(part));
        f("unused", unused);
        f("kind", Value::Word(kind));
        f("call_number", Value::int(number));
        f("ts_ns", Value::Int(at.ts));
        f("dur_ns", Value::int(end.map(|(ts, _)| ts - at.ts)));
        f("tid", Value::task(at.tid));
        f("comm", Value::name(at.comm));
        f("dev", of_start(&|start| Value::Int(i64::from(start.file.dev.0))));
        f("ino", of_start(&|start| Value::UInt(start.file.ino)));
        f("generation", of_start(&|start| Value::Int(i64::from(start.file.generation))));
        f("path", of_start(&|start| Value::name(start.path)));
        f("is_direct", of_start(&|start| Value::Bool(start.flags.is_direct())));
        f("is_synchronized", of_start(&|start| Value::Bool(start.flags.is_durable())));
        f("is_datasync", of_start(&|start| start.is_datasync.map_or(Value::Null, Value::Bool)));
        f("offset_bytes", of_start(&|start| Value::Int(start.offset)));
        f("file_size_bytes", of_start(&|start| Value::int(start.file_size)));
        f("ret", Value::int(ret.map(|end| end.ret)));
        f("dirty_pages", Value::int(ret.and_then(|end| end.dirty_pages)));
        f("background_pages", Value::int(limits.map(|(background, _)| background)));
        f("hard_pages", Value::int(limits.map(|(_, hard)| hard)));
    }
}
