//! Events of writes: their names and fields, shared by the text and the binary form of the ring buffer and by the low-level log. Without
//! `SourceOptions::keep_writes`, those of syncs have another meaning (`dynamic_events`), and the others none.

use super::dynamic_events::{ProbeFields, path};
use crate::event::probe::Probe;
use crate::event::write::{CallEnd, CallKind, CallStart, FileId, IocbFlags, WriteEvent};
use crate::event::{Dev, Kind};
use crate::names::{NameId, Names};

/// The names that a write records of its file and of the folders above it. A sync records more, but a file is to have one path.
const MAX_NAMES: usize = 4;

/// The tracepoint of the limits of dirty page cache, and its system in tracefs.
const LIMITS: &[u8] = b"global_dirty_state";
pub(super) const LIMITS_SYSTEM: &str = "writeback";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteEventName {
    Start(CallKind),
    End(CallKind),
    Limits,
}

impl WriteEventName {
    /// The event of this name. `is_dynamic`: it has the fields of a dynamic event, which the recorder has defined.
    pub(super) fn parse(name: &[u8], is_dynamic: bool) -> Option<Self> {
        if !is_dynamic {
            return (name == LIMITS).then_some(Self::Limits);
        }
        Some(match name {
            b"write_enter" => Self::Start(CallKind::Write),
            b"write_exit" => Self::End(CallKind::Write),
            b"fsync_enter" => Self::Start(CallKind::Fsync),
            b"fsync_exit" => Self::End(CallKind::Fsync),
            b"sync_inodes" => Self::Start(CallKind::SyncInodes),
            b"sync_inodes_end" => Self::End(CallKind::SyncInodes),
            _ => return None,
        })
    }

    /// Decodes the event; `None` if a field is missing or out of range.
    pub(super) fn kind(self, fields: &impl ProbeFields, names: &mut Names) -> Option<Kind> {
        let number = |field| fields.number(field);
        let dev = || number("dev").map(|dev| Dev(dev as u32));
        let file = || Some(FileId { dev: dev()?, ino: number("ino")?, generation: number("gen")? as u32 });
        let signed = |field| number(field).map(|value| value as i64);
        let name_of = |names: &mut Names| path(fields, MAX_NAMES).map_or(NameId::NONE, |path| names.intern(&path));
        let event = match self {
            Self::Start(kind @ CallKind::Write) => {
                let flags = IocbFlags(number("ki_flags")? as u32);
                let file_size = signed("file_size").filter(|&size| size >= 0);
                let offset = if flags.appends() { file_size } else { signed("offset") };
                let offset = offset.filter(|&offset| offset >= 0)?;
                let (file, path) = (file()?, name_of(names));
                let is_datasync = flags.is_datasync();
                WriteEvent::Start(CallStart { kind, file, path, offset, flags, file_size, is_datasync })
            }
            Self::Start(kind @ CallKind::Fsync) => {
                let is_datasync = number("datasync").map(|datasync| datasync != 0);
                WriteEvent::Start(CallStart { is_datasync, ..CallStart::of_sync(kind, file()?, name_of(names)) })
            }
            Self::Start(kind @ CallKind::SyncInodes) => {
                let file = FileId { dev: dev()?, ..FileId::default() };
                WriteEvent::Start(CallStart::of_sync(kind, file, NameId::NONE))
            }
            Self::End(kind) => {
                let ret = match kind {
                    CallKind::SyncInodes => 0,
                    CallKind::Write | CallKind::Fsync => signed("ret")?,
                };
                let pages = signed("nr_dirty").zip(signed("nr_writeback"));
                // Each CPU has a part of a counter, so that their sum may be negative.
                let dirty_pages = pages.map(|(dirty, writeback)| dirty.saturating_add(writeback).max(0));
                WriteEvent::End(CallEnd { kind, ret, dirty_pages })
            }
            Self::Limits => {
                // The text of the ring buffer has other names than the fields.
                let either = |name, printed| signed(name).or_else(|| signed(printed));
                WriteEvent::Limits {
                    background_pages: either("background_thresh", "bg_thresh")?,
                    hard_pages: either("dirty_thresh", "thresh")?,
                }
            }
        };
        Some(Kind::Probe(Probe::Write(event)))
    }
}
