//! The rows of the table of file operations.

use super::{Confidence, Missing, Row, Type, Value, columns};
use crate::event::errno;
use crate::event::file_op::{Creates, FileOpKind, NO_FD, NO_NUMBER, Naming};
use crate::names::NameId;

/// An operation on files.
#[derive(Clone, Debug)]
pub struct FileOp {
    pub op_id: u64,
    pub op: FileOpKind,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    /// `NO_FD` if it has none, or if that is not known.
    pub fd: i32,
    pub path: NameId,
    pub to_path: NameId,
    pub flags: NameId,
    pub stack: NameId,
    pub created: Option<bool>,
    pub offset: Option<i64>,
    pub bytes: Option<i64>,
    pub ret: Option<i64>,
    pub start: i64,
    pub dur: Option<i64>,
    pub confidence: Confidence,
    pub missing: Option<Missing>,
}

impl FileOp {
    /// Whether the file exists because of the call. One that fails may have created its file all the same, unless it says that it is there.
    pub(crate) fn creation(creates: Creates, ret: Option<i64>) -> Option<bool> {
        let is_there = |ret: i64| errno::number("EEXIST".as_bytes()).is_some_and(|number| ret == -number);
        match (creates, ret) {
            (Creates::NotAsked, _) | (_, None) | (Creates::Perhaps, Some(0..)) => None,
            (Creates::Always, Some(0..)) => Some(true),
            (Creates::Never, Some(_)) => Some(false),
            (Creates::Always | Creates::Perhaps, Some(ret)) => is_there(ret).then_some(false),
        }
    }

    pub(crate) fn confidence(naming: Naming) -> Confidence {
        match naming {
            Naming::Shown => Confidence::Exact,
            Naming::Followed => Confidence::Inferred,
            Naming::Unknown => Confidence::Unknown,
        }
    }

    pub(crate) fn number(value: i64) -> Option<i64> {
        (value != NO_NUMBER).then_some(value)
    }
}

impl Row for FileOp {
    const TABLE: &'static str = "syncline_file_op";
    const COLUMNS: &'static [(&'static str, Type)] = columns::FILE_OP;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("op_id", Value::Int(self.op_id as i64));
        f("ts_ns", Value::Int(self.start));
        f("dur_ns", Value::int(self.dur));
        f("tid", Value::task(self.tid));
        f("pid", Value::task(self.pid));
        f("comm", Value::name(self.comm));
        f("op", Value::Word(self.op.name()));
        f("fd", if self.fd == NO_FD { Value::Null } else { Value::Int(i64::from(self.fd)) });
        f("path", Value::name(self.path));
        f("to_path", Value::name(self.to_path));
        f("flags", Value::name(self.flags));
        f("created", self.created.map_or(Value::Null, Value::Bool));
        f("offset_bytes", Value::int(self.offset));
        f("bytes", Value::int(self.bytes));
        f("ret", Value::int(self.ret));
        f("stack", Value::name(self.stack));
        f("confidence", Value::Word(self.confidence.name()));
        f("incomplete", self.missing.map_or(Value::Null, |missing| Value::Word(missing.name())));
    }
}
