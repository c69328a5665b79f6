//! The parts that all sample formats for flame graphs share: the weight of a sample and its frames. A sample is one request.

use std::borrow::Cow;

use crate::names::{NameId, Names, text_of};
use crate::rows::Request;
use crate::stacks::demangle::one_line;

/// The measure by which a sample is weighted.
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

/// The source of a sample's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The call stack of the sync call.
    Stack,
    /// The components of the file's path, or its inode if there is no path.
    File,
}

impl By {
    pub const NAMES: &'static [(&'static str, Self)] = &[("stack", Self::Stack), ("file", Self::File)];

    /// Returns what the frames are made from: the folded stack, the path or the inode. It is empty if none is recorded.
    pub(super) fn frames_name<'a>(self, request: &Request, names: &'a Names) -> Cow<'a, [u8]> {
        match self {
            Self::Stack => names.get(request.call.map_or(NameId::NONE, |c| c.stack)).into(),
            Self::File if !request.path.is_some() && request.ino != 0 && request.dev.is_known() => {
                // Signed, as in the tables.
                format!("inode {} on {}", request.ino as i64, request.dev).into_bytes().into()
            }
            Self::File => names.get(request.path).into(),
        }
    }

    /// Returns the frames of a name of `frames_name`, outermost first, joined by `;`.
    pub(super) fn folded_frames(self, name: &[u8]) -> String {
        match self {
            Self::Stack if name.is_empty() => "[no stack]".into(),
            Self::File if name.is_empty() => "[unknown file]".into(),
            Self::Stack => text_of(name).into_owned(),
            Self::File => folded_path(name),
        }
    }
}

/// Returns the name of a thread, also where none is recorded.
pub(super) fn thread_name(comm: &str) -> &str {
    if comm.trim().is_empty() { "[no name]" } else { comm }
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
