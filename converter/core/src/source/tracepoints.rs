//! The meaning of kernel tracepoints by name and fields, shared by all formats that carry them.

use std::borrow::Cow;

use super::block_event::{BlockFields, SECTOR_BYTES};
use super::cursor::{Cursor, whole};
use super::dynamic_events::{DynamicEvent, throttle, work_start};
use super::event_names::{BlockEvent, EventName, MARKER, errno, errno_of_status, file_system};
use super::low_level_log::has_field;
use super::values::{sane_range, whole_fs};
use super::{escape, markers};
use crate::event::bio_flags::BioFlags;
use crate::event::probe::Probe;
use crate::event::{Dev, FastCommitStatus, Kind, NO_ID, NO_SECTOR, Op, ThreadEvent};
use crate::names::{NameId, Names};

/// `VARIANT NAME | OTHER NAME: text`. Those without `text` are numbers.
macro_rules! fields {
    ($($variant:ident $name:literal $(| $alias:literal)* $(: $text:ident)?,)*) => {
        /// A tracepoint field that Syncline uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field { $($variant),* }

        impl Field {
            pub(super) const ALL: &[Self] = &[$(Self::$variant),*];
            pub(super) const COUNT: usize = Self::ALL.len();

            #[inline]
            pub(super) fn of(name: &[u8]) -> Option<Self> {
                Some(match name {
                    $($name $(| $alias)* => Self::$variant,)*
                    _ => return None,
                })
            }

            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$variant => const { utf8($name) }),* }
            }

            pub(super) fn is_text(self) -> bool {
                match self { $(Self::$variant => fields!(@is_text $($text)?)),* }
            }
        }
    };
    (@is_text) => { false };
    (@is_text text) => { true };
}

const fn utf8(name: &[u8]) -> &str {
    match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => "",
    }
}

fields! {
    Id b"id",
    Bio b"bio",
    Start b"start" | b"offset",
    End b"end",
    Len b"len",
    Datasync b"datasync",
    Dev b"dev",
    Ino b"ino",
    Sector b"sector",
    Ret b"ret",
    Path b"path": text,
    Fs b"fs": text,
    Origin b"origin",
    Rwbs b"rwbs": text,
    Opf b"opf",
    Bytes b"bytes",
    Sectors b"nr_sector",
    FromDev b"old_dev",
    FromSector b"old_sector",
    Transaction b"tid" | b"transaction",
    Buf b"buf": text,
    Error b"error",
    Status b"status",
    SbDev b"sb_dev",
    Reason b"reason",
    FromThread b"prev_pid",
    FromState b"prev_state",
    ToThread b"next_pid",
    Thread b"pid",
    // The text of an event has it as the name of a `bdi`.
    Bdi b"bdi" | b"name": text,
    Pause b"pause",
    Dirtied b"dirtied",
    Changed b"dirtied_blocks",
    Paused b"paused",
}

/// The fields of one event. A value that is absent or of the wrong type is `None`.
pub(super) trait Fields {
    /// A number; negative values are in two's complement.
    fn number(&self, field: Field) -> Option<u64>;
    fn text(&self, field: Field) -> Option<&[u8]>;
    fn dev(&self, field: Field) -> Option<Dev>;
    /// Whether a bio belongs to no sync, according to its `origin`.
    fn is_background(&self) -> bool;
}

/// An architecture whose syscall numbers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    /// Also every other architecture that uses the numbers of `asm-generic/unistd.h`.
    Arm64,
}

impl Machine {
    /// Detects it from a kernel release or the output of `uname`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut words = text.split(|c: char| c.is_whitespace() || c == '-' || c == '.');
        words.find_map(|word| match word {
            "x86_64" | "amd64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Arm64),
            _ => None,
        })
    }

    fn sync_op(self, number: i64) -> Option<Op> {
        Some(match (self, number) {
            (Self::X86_64, 74) | (Self::Arm64, 82) => Op::Fsync,
            (Self::X86_64, 75) | (Self::Arm64, 83) => Op::Fdatasync,
            (Self::X86_64, 26) | (Self::Arm64, 227) => Op::Msync,
            (Self::X86_64, 162) | (Self::Arm64, 81) => Op::Sync,
            (Self::X86_64, 306) | (Self::Arm64, 267) => Op::Syncfs,
            (Self::X86_64, 277) | (Self::Arm64, 84) => Op::SyncFileRange,
            _ => return None,
        })
    }
}

/// A tracepoint that Syncline may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracepoint {
    Named(EventName),
    /// Entry of any syscall, identified by number.
    RawEnter,
    RawExit,
    /// A probe of the recorder. It has fields of its own: see `dynamic_events`.
    Dynamic(DynamicEvent),
}

impl Tracepoint {
    #[inline]
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"sys_enter" => return Some(Self::RawEnter),
            b"sys_exit" => return Some(Self::RawExit),
            _ => {}
        }
        let event = EventName::parse_any(name)?;
        // Names that only other recorders use are not tracepoint names.
        let is_tracepoint = match event {
            EventName::Enter(_) => name.starts_with(b"sys_enter_"),
            EventName::Exit(_) => name.starts_with(b"sys_exit_"),
            EventName::Start | EventName::End => name.starts_with(b"sync_"),
            EventName::Block(_) => name.starts_with(b"block_"),
            _ => true,
        };
        is_tracepoint.then_some(Self::Named(event))
    }

    pub(super) fn is_raw(self) -> bool {
        matches!(self, Self::RawEnter | Self::RawExit)
    }

    /// Whether it is the entry or the exit of a syscall.
    pub(super) fn is_call(self) -> bool {
        self.is_raw() || matches!(self, Self::Named(EventName::Enter(_) | EventName::Exit(_)))
    }

    /// Whether it is the start of a sync of a file system.
    pub(super) fn starts_request(self) -> bool {
        let is_start = |event| matches!(event, EventName::Start | EventName::FsStart | EventName::StartWithoutId);
        match self {
            Self::Named(event) => is_start(event),
            Self::Dynamic(event) => matches!(event, DynamicEvent::SyncEnter(_)),
            Self::RawEnter | Self::RawExit => false,
        }
    }

    /// Whether it is the start or the end of a sync without an id, which only its thread tells from others.
    pub(super) fn is_sync_without_id(self) -> bool {
        matches!(self, Self::Named(EventName::StartWithoutId | EventName::EndWithoutId))
    }

    /// Its system in tracefs.
    pub(super) fn system(self, name: &[u8]) -> &'static str {
        match self {
            Self::RawEnter | Self::RawExit => "raw_syscalls",
            Self::Named(event) => event.system(name),
            // The recorder chooses it.
            Self::Dynamic(_) => "",
        }
    }

    /// Fields without which the event cannot be used.
    pub(super) fn required_fields(self) -> &'static [Field] {
        use Field::{
            Bio, Buf, Changed, Datasync, Dev, End, FromDev, FromSector, FromState, FromThread, Fs, Id, Ino, Len, Path,
            Pause, Reason, Ret, Rwbs, SbDev, Sector, Sectors, Start, Thread, ToThread, Transaction,
        };
        match self {
            Self::RawEnter
            | Self::Named(EventName::WbStart | EventName::WbEnd | EventName::WaitStart(_) | EventName::WaitEnd(_)) => {
                &[Id]
            }
            Self::RawExit | Self::Named(EventName::End) => &[Id, Ret],
            Self::Dynamic(_) => &[],
            Self::Named(event) => match event {
                EventName::Exit(_) | EventName::EndWithoutId => &[Ret],
                EventName::Start => &[Id, Start, End, Datasync, Dev, Ino, Path],
                EventName::FsStart => &[Id, Dev, Fs],
                EventName::AddFolio => &[Id, Bio, Start, Len],
                EventName::Mark => &[Buf],
                EventName::Submit => &[Id, Bio, Dev, Sector],
                EventName::Complete => &[Bio],
                EventName::StartWithoutId => &[Ino],
                EventName::CommitStart | EventName::CommitEnd | EventName::CommitStep(_) => &[Dev, Transaction],
                EventName::HandleEnd => &[Dev, Transaction, Changed],
                EventName::Switch => &[FromThread, FromState, ToThread],
                EventName::Wake => &[Thread],
                EventName::WorkStart => &[SbDev, Reason],
                EventName::FastCommitStart | EventName::FastCommitStop => &[Dev],
                EventName::Throttle => &[Pause],
                EventName::Block(BlockEvent::Remap) => &[Dev, Sector, Sectors, Rwbs, FromDev, FromSector],
                EventName::Block(_) => &[Dev, Sector, Sectors, Rwbs],
                _ => &[],
            },
        }
    }

    /// Whether the event stores a field of the tracepoint. All others become extras.
    pub(super) fn stores(self, kind: Kind, name: &[u8]) -> bool {
        match (self, kind) {
            // An unused event, such as the reset of a zone, keeps all of its fields.
            // The low-level log holds all fields of a dynamic event.
            (_, Kind::Other) | (Self::RawEnter | Self::Dynamic(_), _) => false,
            (Self::RawExit, _) => name == b"ret",
            // A flush has no sector: the low-level log keeps the number of all ones that the tracer printed.
            (Self::Named(_), kind) if name == b"sector" && kind.is_without_sector() => false,
            (Self::Named(event), _) => has_field(event, log_key(name)),
        }
    }

    /// Returns the event name in the low-level log, from which the event can be decoded again.
    pub(super) fn log_name(self, name: &[u8], kind: Kind) -> Cow<'_, [u8]> {
        match (self, kind) {
            (Self::Named(EventName::Mark), _) => MARKER.into(),
            (Self::RawEnter | Self::RawExit, Kind::CallEnter { op, .. } | Kind::CallExit { op, .. }) => {
                [name, b"_", op.name().as_bytes()].concat().into()
            }
            _ => name.into(),
        }
    }

    /// Decodes the event; `None` if a field is missing or out of range.
    #[inline]
    pub(super) fn kind(
        self,
        name: &[u8],
        machine: Option<Machine>,
        fields: &impl Fields,
        names: &mut Names,
    ) -> Option<Kind> {
        let number = |field| fields.number(field);
        let event = match self {
            Self::Named(event) => event,
            Self::Dynamic(_) => return None,
            Self::RawEnter | Self::RawExit => {
                let call = number(Field::Id)? as i64;
                return Some(match (machine.and_then(|machine| machine.sync_op(call)), self) {
                    (None, _) => Kind::Other,
                    (Some(op), Self::RawEnter) => Kind::enter(op),
                    (Some(op), _) => Kind::exit(op, Some(number(Field::Ret)? as i64)),
                });
            }
        };
        // The largest number means "no id".
        let id = || number(Field::Id).filter(|&id| id != NO_ID);
        Some(match event {
            EventName::Enter(op) => Kind::enter(op),
            EventName::Exit(op) => Kind::exit(op, Some(number(Field::Ret)? as i64)),
            EventName::Start => {
                let path = fields.text(Field::Path)?;
                let fs = fields.text(Field::Fs);
                Kind::SyncStart {
                    id: id()?,
                    start: number(Field::Start)?,
                    end: number(Field::End)?,
                    // The first version of the patch supported only ext4 and wrote no escapes.
                    path: names.intern(&if fs.is_some() { escape::octal(path) } else { path.into() }),
                    fs: names.intern(fs.unwrap_or(b"ext4")),
                    ino: number(Field::Ino)?,
                    dev: fields.dev(Field::Dev)?,
                    datasync: number(Field::Datasync)? != 0,
                    by_thread: false,
                }
            }
            EventName::FsStart => whole_fs(id()?, fields.dev(Field::Dev)?, names.intern(fields.text(Field::Fs)?)),
            EventName::AddFolio => {
                let (offset, len) = (number(Field::Start)?, number(Field::Len)?);
                sane_range(offset, len)?;
                let dev = fields.dev(Field::Dev).unwrap_or(Dev::UNKNOWN);
                let ino = number(Field::Ino).unwrap_or(0);
                Kind::BioAddFolio { id: id()?, bio: number(Field::Bio)?, offset, len, dev, ino }
            }
            EventName::Submit => Kind::BioSubmit {
                id: id()?,
                bio: number(Field::Bio)?,
                dev: fields.dev(Field::Dev)?,
                sector: sector(number(Field::Sector)?),
                background: fields.is_background(),
                bytes: number(Field::Bytes).filter(|&bytes| u32::try_from(bytes).is_ok()).unwrap_or(0),
                flags: number(Field::Opf).and_then(BioFlags::of_opf),
            },
            EventName::Complete => {
                let error = number(Field::Status).and_then(|status| errno_of_status(status as i64));
                Kind::BioComplete { bio: number(Field::Bio)?, sector: NO_SECTOR, dev: Dev::UNKNOWN, error }
            }
            EventName::End => Kind::end(id()?, number(Field::Ret)? as i64),
            EventName::WbStart => Kind::WbStart { id: id()? },
            EventName::WbEnd => Kind::WbEnd { id: id()? },
            EventName::WaitStart(wait) => {
                Kind::WaitStart { id: id()?, wait, transaction: number(Field::Transaction).unwrap_or(0) }
            }
            EventName::WaitEnd(wait) => {
                Kind::WaitEnd { id: id()?, wait, transaction: number(Field::Transaction).unwrap_or(0) }
            }
            EventName::CommitStart => {
                Kind::CommitStart { dev: fields.dev(Field::Dev)?, transaction: number(Field::Transaction)? }
            }
            EventName::CommitEnd => {
                Kind::CommitEnd { dev: fields.dev(Field::Dev)?, transaction: number(Field::Transaction)? }
            }
            EventName::WorkStart => {
                work_start(fields.dev(Field::SbDev)?, number(Field::Reason), fields.text(Field::Reason))
            }
            EventName::WorkEnd => Kind::Probe(Probe::WorkEnd),
            EventName::FastCommitStart | EventName::FastCommitStop => {
                fast_commit(event, fields.dev(Field::Dev)?, number(Field::Transaction), number(Field::Reason))
            }
            EventName::Throttle => {
                let [pause, dirtied, paused] = [Field::Pause, Field::Dirtied, Field::Paused].map(number);
                throttle(fields.text(Field::Bdi), pause, dirtied, paused)?
            }
            EventName::CommitStep(step) => {
                Kind::CommitStep { dev: fields.dev(Field::Dev)?, transaction: number(Field::Transaction)?, step }
            }
            EventName::HandleEnd => {
                // Older kernels have a number below 0 if the handle got more room than it had asked for.
                let blocks = u32::try_from(number(Field::Changed)? as i32).unwrap_or(0);
                let (dev, transaction) = (fields.dev(Field::Dev)?, number(Field::Transaction)?);
                Kind::HandleEnd { dev, transaction, blocks: u64::from(blocks) }
            }
            EventName::Switch | EventName::Wake | EventName::LockWait | EventName::LockWaitEnd => {
                let ids = [Field::FromThread, Field::ToThread, Field::Thread].map(number);
                let state = Field::FromState;
                thread_event(event, ids, (number(state), fields.text(state)))
            }
            EventName::StartWithoutId => Kind::SyncStart {
                id: NO_ID,
                start: 0,
                end: i64::MAX as u64,
                path: NameId::NONE,
                fs: names.intern(file_system(name)),
                ino: number(Field::Ino)?,
                // btrfs records its own file system id instead; f2fs records datasync at the end, xfs not at all.
                dev: fields.dev(Field::Dev).unwrap_or(Dev::UNKNOWN),
                datasync: number(Field::Datasync).unwrap_or(0) != 0,
                by_thread: true,
            },
            EventName::Mark => markers::kind(fields.text(Field::Buf)?, names),
            EventName::EndWithoutId => Kind::SyncEnd {
                id: NO_ID,
                ret: number(Field::Ret)? as i64,
                fs: names.intern(file_system(name)),
                dev: fields.dev(Field::Dev).unwrap_or(Dev::UNKNOWN),
                ino: number(Field::Ino).unwrap_or(0),
                datasync: number(Field::Datasync).map(|datasync| datasync != 0),
            },
            EventName::Block(event) => {
                let from = match event {
                    BlockEvent::Remap => Some((fields.dev(Field::FromDev)?, number(Field::FromSector)?)),
                    _ => None,
                };
                let block = BlockFields {
                    dev: fields.dev(Field::Dev)?,
                    sector: i64::try_from(number(Field::Sector)?).ok(),
                    bytes: number(Field::Sectors)?.checked_mul(SECTOR_BYTES)?,
                    rwbs: fields.text(Field::Rwbs)?,
                    error: number(Field::Error).and_then(|error| errno(error as i64)),
                    from: from.and_then(|(dev, sector)| Some((dev, i64::try_from(sector).ok()?))),
                };
                block.kind(event)
            }
            // No tracepoints: only tables of calls or requests that are over have them.
            EventName::Done | EventName::BlockReport => Kind::Other,
        })
    }
}

/// Makes an event of a text.
type OfPrint = fn(&[u8]) -> Option<Kind>;

/// Returns the parser for an event that a tracer may print as a text without the names of its fields.
pub(super) fn of_print(event: EventName) -> Option<OfPrint> {
    match event {
        EventName::Switch => Some(|text| Some(printed_switch(text))),
        EventName::FastCommitStop => Some(printed_fast_commit),
        _ => None,
    }
}

/// Makes the event of a thread. `ids` are the thread that leaves a CPU, the one that gets it, and the one that is woken; `state` is that of
/// the first one, as a number or as letters. Without what it needs of these, the event is not used.
fn thread_event(event: EventName, ids: [Option<u64>; 3], state: (Option<u64>, Option<&[u8]>)) -> Kind {
    let [from, to, woken] = ids.map(|id| id.and_then(|id| u32::try_from(id).ok()));
    let thread_event = match event {
        EventName::LockWait => Some(ThreadEvent::LockWait),
        EventName::LockWaitEnd => Some(ThreadEvent::LockWaitEnd),
        EventName::Wake => woken.map(|thread| ThreadEvent::Wake { thread }),
        _ => from.zip(to).zip(is_runnable(state)).map(|((from, to), is_runnable)| ThreadEvent::Switch {
            from,
            is_runnable,
            to,
        }),
    };
    thread_event.map_or(Kind::Other, Kind::Thread)
}

/// Makes the start or the end of a fast commit. `status` is how it ended.
fn fast_commit(event: EventName, dev: Dev, transaction: Option<u64>, status: Option<u64>) -> Kind {
    let transaction = transaction.unwrap_or(0);
    if event == EventName::FastCommitStart {
        return Kind::Probe(Probe::FastCommitStart { dev, transaction });
    }
    let status = status.and_then(|n| FastCommitStatus::ALL.get(usize::try_from(n).ok()?).copied());
    Kind::Probe(Probe::FastCommitStop { dev, transaction, status })
}

/// Makes the end of a fast commit as the kernel prints it: `dev 254,16 nblks 0, reason 1, fc = 3, ..., tid 9`.
fn printed_fast_commit(text: &[u8]) -> Option<Kind> {
    let after = |name: &[u8]| {
        let at = memchr::memmem::find(text, name)? + name.len();
        text[at..].split(|b| *b == b' ').next()
    };
    let number = |name: &[u8]| whole(after(name)?.strip_suffix(b",").or(after(name))?, Cursor::decimal);
    let (major, minor) = after(b"dev ")?.split_at_checked(memchr::memchr(b',', after(b"dev ")?)?)?;
    let dev = Dev::new(whole(major, Cursor::decimal)? as u32, whole(&minor[1..], Cursor::decimal)? as u32);
    Some(fast_commit(EventName::FastCommitStop, dev, number(b", tid "), number(b", reason ")))
}

/// Makes the event of a switch as `trace-cmd report` prints it: `COMM:PID [PRIO] STATE ==> COMM:PID [PRIO]`.
fn printed_switch(text: &[u8]) -> Kind {
    let thread = |text: &[u8]| {
        let name = &text[..memchr::memmem::rfind(text, b" [")?];
        whole(&name[memchr::memrchr(b':', name)? + 1..], Cursor::decimal)
    };
    let switch = || {
        let at = memchr::memmem::find(text, b" ==> ")?;
        let (from, to) = (&text[..at], &text[at + 5..]);
        let state = &from[memchr::memrchr(b' ', from)? + 1..];
        Some((thread(from)?, state, thread(to)?))
    };
    switch().map_or(Kind::Other, |(from, state, to)| {
        thread_event(EventName::Switch, [Some(from), Some(to), None], (None, Some(state)))
    })
}

/// Whether a thread that leaves a CPU in this state could have continued: `R`, or `R+` if it was preempted.
fn is_runnable((number, letters): (Option<u64>, Option<&[u8]>)) -> Option<bool> {
    // The bits above are not of the state: one of them says that the thread was preempted.
    const STATES: u64 = 0xff;
    let by_letters = || letters.and_then(|letters| letters.first()).map(|&letter| letter == b'R');
    number.map(|state| state & STATES == 0).or_else(by_letters)
}

/// A flush has sector -1.
fn sector(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(NO_SECTOR)
}

/// The name in the low-level log of a field that has another one in its tracepoint.
fn log_key(name: &[u8]) -> &[u8] {
    match name {
        b"offset" => b"start",
        b"tid" => b"transaction",
        b"old_dev" => b"from_dev",
        b"old_sector" => b"from_sector",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_found_by_its_name() {
        for &field in Field::ALL {
            assert_eq!(Field::of(field.name().as_bytes()), Some(field));
        }
    }

    #[test]
    fn other_names_are_not_tracepoints() {
        let parse = |name: &str| Tracepoint::from_name(name.as_bytes());
        assert_eq!(parse("sys_enter_fsync"), Some(Tracepoint::Named(EventName::Enter(Op::Fsync))));
        assert_eq!(parse("sys_exit"), Some(Tracepoint::RawExit));
        for name in ["fsync", "fsync_exit", "exit_fsync", "start", "exit", "Q", "C", "sys_enter_write", "sync"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_switch_says_whether_the_thread_could_have_continued() {
        let switch = |text: &str| match printed_switch(text.as_bytes()) {
            Kind::Thread(ThreadEvent::Switch { from, is_runnable, to }) => Some((from, is_runnable, to)),
            _ => None,
        };
        assert_eq!(switch("a [b]:c d:133 [120] D ==> kworker/0:1:9 [120]"), Some((133, false, 9)));
        assert_eq!(switch("db:133 [120] R+ ==> x y:7 [120]"), Some((133, true, 7)));
        assert_eq!(switch("db:133 [120] R"), None);
        let by_number = |state| thread_event(EventName::Switch, [Some(1), Some(2), None], (Some(state), None));
        let expected = |is_runnable| Kind::Thread(ThreadEvent::Switch { from: 1, is_runnable, to: 2 });
        // Preempted, and blocked without being interruptible.
        assert_eq!((by_number(0x100), by_number(2)), (expected(true), expected(false)));
        assert_eq!(thread_event(EventName::Wake, [None, None, None], (None, None)), Kind::Other);
    }

    #[test]
    fn machines_are_detected_from_uname_and_releases() {
        for (text, machine) in [
            ("Linux (none) 6.12.117-wbtrace x86_64", Some(Machine::X86_64)),
            ("6.1.0-13-amd64", Some(Machine::X86_64)),
            ("6.5.6-300.fc39.aarch64", Some(Machine::Arm64)),
            ("6.12.117-wbtrace", None),
        ] {
            assert_eq!(Machine::of(text), machine, "{text}");
        }
    }
}
