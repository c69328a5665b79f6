//! What the sample formats for flame graphs share: the weight of a sample and its frames. A sample is one request.

use crate::names::{NameId, Names, text_of};
use crate::rows::Request;
use crate::stacks::demangle::one_line;

/// What the weight of a sample measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Count,
    SyscallNs,
    WritebackNs,
    JournalNs,
    FlushNs,
    Bytes,
}

impl Weight {
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("count", Self::Count),
        ("syscall", Self::SyscallNs),
        ("writeback", Self::WritebackNs),
        ("journal", Self::JournalNs),
        ("flush", Self::FlushNs),
        ("bytes", Self::Bytes),
    ];

    /// Returns the weight of a request, `None` where it is not known.
    pub(super) fn value(self, request: &Request) -> Option<u64> {
        match self {
            Self::Count => Some(1),
            Self::SyscallNs => request.syscall().map(|ns| ns.max(0) as u64),
            Self::WritebackNs => request.writeback().map(|ns| ns.max(0) as u64),
            Self::JournalNs => request.journal().map(|ns| ns.max(0) as u64),
            Self::FlushNs => request.flush().map(|ns| ns.max(0) as u64),
            Self::Bytes => request.bytes(),
        }
    }

    /// Returns the event name in perf-script text.
    pub(super) fn event_name(self) -> &'static str {
        match self {
            Self::Count => "syncs",
            Self::SyscallNs => "syscall_ns",
            Self::WritebackNs => "writeback_ns",
            Self::JournalNs => "journal_ns",
            Self::FlushNs => "flush_ns",
            Self::Bytes => "bytes",
        }
    }
}

/// What the frames of a sample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The call stack of the sync call.
    Stack,
    /// The components of the file's path.
    File,
}

impl By {
    pub const NAMES: &'static [(&'static str, Self)] = &[("stack", Self::Stack), ("file", Self::File)];

    /// Returns the name that the frames are made from: the folded stack or the path.
    pub(super) fn frames_name(self, request: &Request) -> NameId {
        match self {
            Self::Stack => request.call.map_or(NameId::NONE, |c| c.stack),
            Self::File => request.path,
        }
    }

    /// Returns the frames of a name of `frames_name`, outermost first, joined by `;`.
    pub(super) fn folded_frames(self, name: NameId, names: &Names) -> String {
        match self {
            Self::Stack if !name.is_some() => "[no stack]".into(),
            Self::File if !name.is_some() => "[unknown file]".into(),
            Self::Stack => names.text(name).into_owned(),
            Self::File => folded_path(names.get(name)),
        }
    }
}

/// `/run/mnt/a` becomes `/;run;mnt;a`, so that the flame graph shows the directory tree.
fn folded_path(path: &[u8]) -> String {
    let text = text_of(path);
    let mut frames = Vec::new();
    if text.starts_with('/') {
        frames.push("/".to_owned());
    }
    frames.extend(text.split('/').filter(|part| !part.is_empty()).map(one_line));
    frames.join(";")
}
