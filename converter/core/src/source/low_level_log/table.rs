//! The fields of each event in the low-level log: their names, their types, and their places in `Kind`.
//!
//! An event that has no row is read from the tracer's fields, which the log keeps: `Tracepoint::kind` decodes it, as for every other format.

use serde_json::Value;

use super::codec::{
    Address, Always, AnyBit, AnyDevice, AnyRet, AskedWord, Background, BioSize, Bit, BlockBytes, CallOp, Codec, Device,
    Errno, Fact, FileSystem, Flag, FromSector, Id, LogWriter, MaybeUnsigned, OfThread, Opf, Ret, Rwbs, Sector, Stack,
    Status, Text, TracerCodec, Unread, Unsigned,
};
use super::object::LogObject;
use crate::event::{Dev, Kind, NO_ID};
use crate::names::{NameId, Names};
use crate::source::block_event::is_used;
use crate::source::event_names::{BlockEvent, EventName};
use crate::source::values::sane_range;

/// Makes a reader and a writer of rows.
///
/// ```text
/// EVENT => KIND { FIELD "KEY": TYPE, ... } tracer { FIELD "KEY": TYPE, ... } known { FIELD: VALUE, ... }, when W, valid V, used U;
/// ```
///
/// The fields in the first braces are written, in this order. Those in `tracer` are among the fields of the tracer, which the log has as
/// well, and those in `known` follow from the name of the event. A row names all fields of its kind, so that none can be forgotten.
/// `by_type` after a key says that tracers have fields of this name too, so that only the type of the value shows whose it is. If a kind has
/// several rows, the first whose `when` holds writes it. An object is damaged unless V holds, and was not used unless U does.
macro_rules! rows {
    ($table:ident($line:ty): $(
        $event:pat => $kind:ident { $($field:ident $key:literal $($by_type:ident)?: $codec:expr),* $(,)? }
        $(tracer { $($traced:ident $traced_key:literal: $tracer_codec:expr),* $(,)? })?
        $(known { $($known:ident: $value:expr),* $(,)? })?
        $(, when $when:expr)? $(, valid $valid:expr)? $(, used $used:expr)?;
    )*) => {
        struct $table;

        #[allow(unused_variables, dead_code, reason = "not all fields depend on the event, and torn lines have no other fields")]
        impl $table {
            /// Reads an event; `None` if it has no row.
            fn read(line: $line, object: &LogObject<'_>, names: &mut Names) -> Result<Option<Kind>, Unread> {
                Ok(Some(match line {
                    $($event => {
                        $($(let $traced = TracerCodec::read($tracer_codec, $traced_key, object, names)?;)*)?
                        $(let $field = Codec::read($codec, $key, object, names)?;)*
                        $($(let $known = $value;)*)?
                        $(if !$valid { return Err(Unread::Bad); })?
                        $(if !$used { return Err(Unread::Unused); })?
                        Kind::$kind { $($field,)* $($($traced,)*)? $($($known,)*)? }
                    })*
                    #[allow(unreachable_patterns, reason = "a table may have a row for each event")]
                    _ => return Ok(None),
                }))
            }

            /// Writes the fields of an event; false if it has no row.
            fn write(kind: Kind, log: &mut impl LogWriter) -> bool {
                match kind {
                    $(Kind::$kind { $($field,)* $($($traced,)*)? $($($known,)*)? } $(if $when)? => {
                        $(Codec::write($codec, $key, $field, log);)*
                    })*
                    _ => return false,
                }
                true
            }

            /// Whether the log has a field of this name for an event, whatever the value.
            fn has_field(line: $line, key: &[u8]) -> bool {
                match line {
                    $($event => {
                        const KEYS: &[(&str, bool)] = &[$(($key, rows!(@by_type $($by_type)?))),*];
                        KEYS.iter().any(|(known, by_type)| known.as_bytes() == key && !by_type)
                    })*
                    #[allow(unreachable_patterns, reason = "a table may have a row for each event")]
                    _ => false,
                }
            }

            /// Whether `write` may have written this value of a field.
            fn may_have_written(line: $line, key: &str, value: &Value) -> bool {
                match line {
                    $($event => false $(|| key == $key && Codec::is_own($codec, value))*,)*
                    #[allow(unreachable_patterns, reason = "a table may have a row for each event")]
                    _ => false,
                }
            }

            /// Makes an event, and what the tracer says of it in the log. `pick` chooses one of so many samples of the next field. `None` if
            /// the fields contradict each other, or if the event has no row.
            #[cfg(test)]
            fn sample(
                line: $line,
                pick: &mut dyn FnMut(usize) -> usize,
                names: &mut Names,
            ) -> Option<(Kind, Vec<(&'static str, &'static str)>)> {
                #[allow(unused_mut, reason = "not all tables have fields of the tracer")]
                let mut extras = Vec::new();
                match line {
                    $($event => {
                        $(
                            let samples = Codec::samples($codec, names);
                            let $field = samples[pick(samples.len())];
                        )*
                        $($(
                            let samples = TracerCodec::samples($tracer_codec, names);
                            let ($traced, json) = samples[pick(samples.len())];
                            extras.extend(json.map(|json| ($traced_key, json)));
                        )*)?
                        $($(let $known = $value;)*)?
                        $(if !$valid { return None; })?
                        $(if !$used { return None; })?
                        Some((Kind::$kind { $($field,)* $($($traced,)*)? $($($known,)*)? }, extras))
                    })*
                    #[allow(unreachable_patterns, reason = "a table may have a row for each event")]
                    _ => None,
                }
            }
        }
    };
    (@by_type) => { false };
    (@by_type by_type) => { true };
}

rows! { Events(EventName):
    EventName::Enter(op) => CallEnter {
        op "op" by_type: CallOp(op),
        call_only "call_only" by_type: Flag,
        stack "stack": Stack,
        path "path" by_type: Text,
    };
    EventName::Exit(op) => CallExit {
        op "op" by_type: CallOp(op),
        ret "ret": AnyRet,
        untimed "untimed" by_type: Flag,
        entry_lost "entry_lost" by_type: Flag,
        stack "stack" by_type: Stack,
    };
    EventName::StartWithoutId => SyncStart {
        datasync "datasync": Bit::OR_UNSET,
        dev "dev": Device::Text,
        ino "ino": Unsigned::NON_ZERO,
        fs "fs": Text,
    }
    known { id: NO_ID, start: 0, end: i64::MAX as u64, path: NameId::NONE, by_thread: true }, when id == NO_ID;
    // The kernel names no range of the file system and no datasync.
    EventName::FsStart => SyncStart {
        id "id": Id,
        start "start": Always(0_u64),
        end "end": Always(i64::MAX as u64),
        datasync "datasync": Always(false),
        dev "dev": Device::Text,
        fs "fs": Text,
    }
    known { ino: 0, path: NameId::NONE, by_thread: false }, when ino == 0 && path == NameId::NONE && !by_thread;
    EventName::Start => SyncStart {
        id "id": Id,
        by_thread "id_of": OfThread,
        start "start": Unsigned::REQUIRED,
        end "end": Unsigned::REQUIRED,
        datasync "datasync": Bit::REQUIRED,
        dev "dev": Device::Text,
        ino "ino": Unsigned::NON_ZERO,
        fs "fs": Text,
        path "path": Text,
    };
    EventName::EndWithoutId => SyncEnd {
        ret "ret": Ret,
        dev "dev": Device::OrNumber,
        ino "ino": Unsigned::NON_ZERO,
        datasync "datasync": AnyBit,
    }
    tracer { fs "event": FileSystem }
    known { id: NO_ID }, when id == NO_ID;
    EventName::Done => SyncDone { dur "dur_ns": Unsigned::REQUIRED, ret "ret": AnyRet, fs "fs": Text, path "path": Text };
    EventName::BlockReport => BlockReport {
        dev "dev": AnyDevice,
        sector "sector": Sector::OfBio,
        bytes "bytes": Unsigned::NON_ZERO,
        asked "asks": AskedWord,
        since_begin "since_begin_ns": MaybeUnsigned,
        since_issue "since_issue_ns": MaybeUnsigned,
    };
    EventName::End => SyncEnd { id "id": Id, ret "ret": Ret }
    known { fs: NameId::NONE, dev: Dev::UNKNOWN, ino: 0, datasync: None };
    EventName::AddFolio => BioAddFolio {
        id "id": Id,
        bio "bio": Address::REQUIRED,
        offset "start": Unsigned::REQUIRED,
        len "len": Unsigned::REQUIRED,
        dev "dev": Device::Text,
        ino "ino": Unsigned::NON_ZERO,
    }, valid sane_range(offset, len).is_some();
    EventName::Submit => BioSubmit {
        id "id": Id,
        bytes "bytes_of": BioSize,
        bio "bio": Address::REQUIRED,
        dev "dev": Device::Text,
        sector "sector": Sector::OfBio,
    }
    tracer { background "origin": Background, flags "opf": Opf };
    EventName::Complete => BioComplete { bio "bio": Address::ANY, dev "dev": Device::Text, sector "sector": Sector::OfBio }
    tracer { error "status": Status };
    EventName::WbStart => WbStart { id "id": Id };
    EventName::WbEnd => WbEnd { id "id": Id };
    EventName::WaitStart(kind) => WaitStart { id "id": Id, transaction "transaction": Unsigned::NON_ZERO }
    known { wait: kind };
    EventName::WaitEnd(kind) => WaitEnd { id "id": Id, transaction "transaction": Unsigned::NON_ZERO }
    known { wait: kind };
    EventName::CommitStart => CommitStart { dev "dev": Device::Text, transaction "transaction": Unsigned::OR_ZERO };
    EventName::CommitEnd => CommitEnd { dev "dev": Device::Text, transaction "transaction": Unsigned::OR_ZERO };
    EventName::CommitStep(part) => CommitStep { dev "dev": Device::Text, transaction "transaction": Unsigned::OR_ZERO }
    known { step: part };
    EventName::HandleEnd => HandleEnd {
        dev "dev": Device::Text, transaction "transaction": Unsigned::OR_ZERO, blocks "dirtied_blocks": Unsigned::OR_ZERO,
    };
    EventName::Block(BlockEvent::Submit) => BlockSubmit {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent, bytes "bytes": BlockBytes,
    }
    tracer { flags "rwbs": Rwbs }, used is_used(BlockEvent::Submit, sector, bytes, flags);
    EventName::Block(BlockEvent::Insert) => BlockInsert {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent, bytes "bytes": BlockBytes,
    }
    tracer { flags "rwbs": Rwbs }, used is_used(BlockEvent::Insert, sector, bytes, flags);
    EventName::Block(BlockEvent::Issue) => BlockIssue {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent, bytes "bytes": BlockBytes,
    }
    tracer { flags "rwbs": Rwbs }, used is_used(BlockEvent::Issue, sector, bytes, flags);
    EventName::Block(BlockEvent::BioComplete) => BlockComplete {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent, bytes "bytes": BlockBytes,
    }
    tracer { flags "rwbs": Rwbs, error "error": Errno }
    known { is_bio: true }, when is_bio, used is_used(BlockEvent::BioComplete, sector, bytes, flags);
    EventName::Block(BlockEvent::Complete) => BlockComplete {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent, bytes "bytes": BlockBytes,
    }
    tracer { flags "rwbs": Rwbs, error "error": Errno }
    known { is_bio: false }, used is_used(BlockEvent::Complete, sector, bytes, flags);
    EventName::Block(BlockEvent::Done) => BlockDone {
        dev "dev": Device::OfBlockEvent, sector "sector": Sector::OfBlockEvent,
    }
    tracer { flags "rwbs": Rwbs }, used is_used(BlockEvent::Done, sector, 0, flags);
    EventName::Block(BlockEvent::Remap) => BlockRemap {
        dev "dev": Device::OfBlockEvent,
        sector "sector": Sector::OfBlockEvent,
        bytes "bytes": BlockBytes,
        from_dev "from_dev": Device::Text,
        from_sector "from_sector": FromSector,
    }
    tracer { flags "rwbs": Rwbs }, used is_used(BlockEvent::Remap, sector, bytes, flags);
}

rows! { TornLines(()):
    () => Torn { id "id": Unsigned::ANY_ID, bio "bio": Address::ANY, fact "fact": Fact };
}

/// The only field of a probe that the tracer has not, since it consists of several of the tracer's.
pub(crate) const SYNC_PATH: &str = "path";

/// Reads an event of this name; `None` if the table has no row for it.
pub(in crate::source) fn read(
    event: EventName,
    object: &LogObject<'_>,
    names: &mut Names,
) -> Result<Option<Kind>, Unread> {
    Events::read(event, object, names)
}

pub(in crate::source) fn read_torn(object: &LogObject<'_>, names: &mut Names) -> Option<Kind> {
    TornLines::read((), object, names).ok().flatten()
}

/// Writes the fields of an event. The log keeps those of a tracer beside them.
pub(crate) fn write(kind: Kind, log: &mut impl LogWriter) {
    let _ = Events::write(kind, log) || TornLines::write(kind, log);
}

/// Whether the log has a field of this name for an event, whatever the value.
pub(in crate::source) fn has_field(event: EventName, key: &[u8]) -> bool {
    Events::has_field(event, key)
}

/// Whether the value of a field is one that the log has for an event.
pub(in crate::source) fn may_have_written(event: EventName, key: &str, value: &Value) -> bool {
    has_field(event, key.as_bytes()) || Events::may_have_written(event, key, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, UNKNOWN_TASK};
    use crate::sink::events_jsonl::EventsJsonl;
    use crate::source::event_names::{PATCHED, STOCK};
    use crate::source::events_jsonl::EventsJsonl as Reader;
    use crate::source::{Batch, Extra, Lines as _, SourceOptions};

    /// Writes an event and reads it again.
    fn round_trip(name: &[u8], kind: Kind, extras: &[(&str, &str)], mut batch: Batch) -> (String, Batch) {
        let event = Event { ts: 41, tid: 559, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 1, kind };
        batch.events.push(event);
        batch.event_names.push(batch.names.intern(name));
        for (key, value) in extras {
            let (key, value) =
                (batch.names.intern(key.as_bytes()), batch.names.intern(value.trim_matches('"').as_bytes()));
            batch.extras.push(Extra { event: 0, key, value });
        }
        let mut log = EventsJsonl::in_memory();
        log.batch(&batch, "ftrace", 0).unwrap();
        let log = log.into_bytes();
        let mut again = Batch { names: batch.names, ..Batch::default() };
        let options = SourceOptions { keep_extras: true, ..SourceOptions::default() };
        Reader.parse_lines(&options, &log, &mut again);
        (String::from_utf8(log).unwrap(), again)
    }

    /// All events with all fields known, then each with one of its fields unknown, and each with none known.
    #[test]
    fn each_field_is_read_as_it_was_written() {
        let others =
            [&b"commit_wait_start"[..], b"flush_end", b"sys_enter_fsync", b"exit_msync", b"sync_done", b"block_report"];
        let mut with_row = 0;
        for name in PATCHED.iter().chain(STOCK).copied().chain(others) {
            // Their log has the name of another file system.
            if name.starts_with(b"f2fs") {
                continue;
            }
            let event = EventName::parse_any(name).unwrap();
            let (mut unknown, mut tested) = (0, 0);
            loop {
                let mut batch = Batch::default();
                let mut field = 0;
                let mut pick = |samples: usize| {
                    field += 1;
                    // The first round has 0, the last one all.
                    if field == unknown || unknown == 99 { samples - 1 } else { 0 }
                };
                let sample = Events::sample(event, &mut pick, &mut batch.names);
                let fields = field;
                if fields == 0 {
                    break;
                }
                if let Some((kind, mut extras)) = sample {
                    // The size of a bio is a field of the tracer.
                    if matches!(kind, Kind::BioSubmit { bytes: 1.., .. }) {
                        extras.push(("bytes", "4096"));
                    }
                    let (line, again) = round_trip(name, kind, &extras, batch);
                    assert!(again.notes.is_empty(), "{line}");
                    assert_eq!(again.events.iter().map(|event| event.kind).collect::<Vec<_>>(), [kind], "{line}");
                    assert_eq!(again.extras.len(), extras.len(), "{line}");
                    tested += 1;
                }
                unknown = match unknown {
                    99 => break,
                    last if last == fields => 99,
                    unknown => unknown + 1,
                };
            }
            // The log has the others as the tracer printed them.
            with_row += usize::from(tested > 0);
        }
        // 9 of the patch, 8 of the block layer, 6 of jbd2, 4 of file systems, and the others.
        assert_eq!(with_row, 9 + 8 + 6 + 4 + 6);
    }

    #[test]
    fn a_torn_line_is_read_as_it_was_written() {
        for unknown in 0..=3 {
            let mut batch = Batch::default();
            let mut field = 0;
            let mut pick = |samples: usize| {
                field += 1;
                if field == unknown { samples - 1 } else { 0 }
            };
            let (kind, _) = TornLines::sample((), &mut pick, &mut batch.names).unwrap();
            let (line, again) = round_trip(b"torn_line", kind, &[], batch);
            let kinds: Vec<_> = again.events.iter().map(|event| event.kind).collect();
            assert_eq!(kinds, [kind], "{line}");
        }
    }
}
