//! Events as scripts print them for btetto: a tuple of its kind and of name-value pairs, with a time of its own.
//!
//! ```text
//! ["track_event",["name","fsync"],["type","BEGIN"],["ts",41753514022],["pid",559],["tid",559],["thread_name","wl"],["fd",3]]
//! ```

use std::borrow::Cow;

use super::json::{Shape, Value};
use crate::event::{Dev, Event, Kind, Op, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::event_names::{Word, extra_key, is_background};
use crate::source::thesis::device;
use crate::source::tracepoints::{Field, Fields, Tracepoint};
use crate::source::{Batch, Extra, SourceOptions, strace};

/// More pairs than fit bpftrace's stack. It bounds the work on a hostile line.
const MAX_PAIRS: usize = 64;
/// Names that every event has a field for.
const OF_EVERY_EVENT: [&[u8]; 5] = [b"name", b"ts", b"pid", b"tid", b"thread_name"];
/// Fields of the low-level log that define the meaning of an event. A pair with one of these names and another meaning must be renamed.
const MEANT: [&[u8]; 18] = [
    b"id",
    b"id_of",
    b"bytes_of",
    b"bio",
    b"start",
    b"end",
    b"len",
    b"ret",
    b"path",
    b"fs",
    b"bytes",
    b"from_dev",
    b"from_sector",
    b"stack",
    b"op",
    b"call_only",
    b"untimed",
    b"transaction",
];

type Pair<'v, 'a> = (&'v [u8], &'v Value<'a>);

/// Appends the event of a printed value, if the value is an event.
pub(super) fn event(options: &SourceOptions, value: &Value<'_>, batch: &mut Batch) -> Result<(), &'static str> {
    const NO_TUPLE: &str =
        "it is no tuple of `track_event` or `call_stack` and pairs of a name and a value, as btetto takes them";
    let Shape::List(items) = &value.shape else { return Err(NO_TUPLE) };
    let what = items.first().and_then(Value::text).ok_or(NO_TUPLE)?;
    match what {
        b"track_event" | b"call_stack" => {}
        // Output for the terminal, and track descriptors of btetto 0.1.
        b"stdout" | b"track_descriptor" => return Ok(()),
        _ => return Err(NO_TUPLE),
    }
    if items.len() > MAX_PAIRS {
        return Err("it has more pairs than any script prints");
    }
    let pairs: Option<Vec<_>> = items[1..].iter().map(pair).collect();
    let said = TextRecord { pairs: pairs.ok_or(NO_TUPLE)? };

    // btetto accepts samples without a time for flame graphs. A log cannot hold them.
    if what == b"call_stack" && said.get(b"ts").is_none() {
        return Ok(());
    }
    let ts = said.get(b"ts").and_then(Value::number).and_then(|ts| i64::try_from(ts).ok());
    let ts = ts.and_then(|ts| ts.checked_mul(options.time_unit_ns)).ok_or("it has no `ts` of 63 bits of ns")?;
    let name = if what == b"call_stack" {
        what
    } else {
        said.text(b"name").filter(|name| !name.is_empty()).ok_or("it has no `name`")?
    };
    let phase = if what == b"call_stack" {
        Phase::Other
    } else {
        Phase::of(said.text(b"type")).ok_or("its `type` is not BEGIN, END, INSTANT or COUNTER")?
    };
    let (tid, pid) = (said.task(b"tid")?, said.task(b"pid")?);
    let meant = Meant::of(name, phase);
    let kind = match &meant {
        Some(meant) => meant.kind(&said, batch).ok_or_else(|| missing(meant.word))?,
        None => Kind::Other,
    };
    let of_thread = !matches!(
        kind,
        Kind::Other
            | Kind::BlockSubmit { .. }
            | Kind::BlockComplete { .. }
            | Kind::BlockRemap { .. }
            | Kind::BioComplete { .. }
    );
    if of_thread && tid == UNKNOWN_TASK && pid == UNKNOWN_TASK {
        return Err("it has neither `tid` nor `pid`: whose sync it is cannot be told");
    }
    if kind == Kind::Other && !options.keep_extras {
        batch.others += 1;
        return Ok(());
    }
    if options.keep_extras {
        let word = meant.as_ref().map_or_else(|| word_of_other(name), |meant| meant.name.as_ref().into());
        let word = batch.names.intern(&word);
        batch.words.push(word);
        extras(&said, meant.as_ref(), kind, batch);
    }
    let comm = said.get(b"thread_name").map_or(NameId::NONE, |comm| batch.names.intern(comm.shown()));
    batch.events.push(Event { ts, tid, pid, comm, line: batch.lines as u32, kind });
    Ok(())
}

fn pair<'v, 'a>(item: &'v Value<'a>) -> Option<Pair<'v, 'a>> {
    let Shape::List(pair) = &item.shape else { return None };
    let [name, value] = pair.as_slice() else { return None };
    Some((name.text()?, value))
}

struct TextRecord<'v, 'a> {
    pairs: Vec<Pair<'v, 'a>>,
}

impl<'v, 'a> TextRecord<'v, 'a> {
    /// Returns the last value of this name, as btetto does.
    fn get(&self, name: &[u8]) -> Option<&'v Value<'a>> {
        self.pairs.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &[u8]) -> Option<&'v [u8]> {
        self.get(name).and_then(Value::text)
    }

    fn task(&self, name: &[u8]) -> Result<u32, &'static str> {
        let Some(value) = self.get(name) else { return Ok(UNKNOWN_TASK) };
        let id = value.number().and_then(|id| u32::try_from(id).ok()).filter(|&id| i32::try_from(id).is_ok());
        id.ok_or("its `tid` or `pid` is out of range")
    }
}

impl Fields for TextRecord<'_, '_> {
    fn number(&self, field: Field) -> Option<u64> {
        // In these tuples `tid` is the thread.
        let name = if field == Field::Transaction { "transaction" } else { field.name() };
        let value = self.get(name.as_bytes());
        let value = value.or_else(|| (field == Field::Start).then(|| self.get(b"offset"))?);
        value.and_then(Value::number)
    }

    fn text(&self, field: Field) -> Option<&[u8]> {
        TextRecord::text(self, field.name().as_bytes())
    }

    fn dev(&self, field: Field) -> Option<Dev> {
        let value = self.get(field.name().as_bytes())?;
        value.text().and_then(device).or_else(|| u32::try_from(value.number()?).ok().map(Dev))
    }

    fn is_background(&self) -> bool {
        Fields::text(self, Field::Origin).and_then(|origin| std::str::from_utf8(origin).ok()).is_some_and(is_background)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    End,
    Instant,
    Other,
}

impl Phase {
    fn of(text: Option<&[u8]>) -> Option<Self> {
        Some(match text? {
            b"BEGIN" => Self::Begin,
            b"END" => Self::End,
            b"INSTANT" => Self::Instant,
            b"COUNTER" => Self::Other,
            _ => return None,
        })
    }
}

/// The meaning of a name that Syncline knows.
struct Meant<'a> {
    word: Word,
    /// The event name in the low-level log.
    name: Cow<'a, [u8]>,
}

impl<'a> Meant<'a> {
    /// Decodes a name. A slice may have the name of a system call, of a file system's sync function, or of the tracepoint with which it begins.
    /// An instant must have the name of a tracepoint, because it does not show where in a call it is.
    fn of(name: &'a [u8], phase: Phase) -> Option<Self> {
        let point = tracepoint(name);
        let word = |name: &[u8]| match Tracepoint::of(name) {
            Some(Tracepoint::Of(word)) => Some(word),
            _ => None,
        };
        let of_fs = matches!(point, b"ext4_sync_file" | b"f2fs_sync_file");
        let join = |a: &[u8], b: &[u8]| Cow::Owned([a, b].concat());
        let (word, name) = match phase {
            Phase::Other => return None,
            Phase::Instant => (word(point)?, Cow::Borrowed(point)),
            Phase::Begin => match Op::from_name(name) {
                Some(op) => (Word::Enter(op), Cow::Borrowed(name)),
                None if of_fs => (Word::StartWithoutId, join(point, b"_enter")),
                None => match word(point)? {
                    word @ (Word::Enter(_) | Word::StartWithoutId) => (word, Cow::Borrowed(point)),
                    _ => return None,
                },
            },
            Phase::End => match Op::from_name(name) {
                Some(op) => (Word::Exit(op), join(name, b"_exit")),
                None if of_fs => (Word::EndWithoutId, join(point, b"_exit")),
                None => match word(point)? {
                    Word::Enter(op) | Word::Exit(op) => (Word::Exit(op), join(b"sys_exit_", op.name().as_bytes())),
                    Word::EndWithoutId => (Word::EndWithoutId, Cow::Borrowed(point)),
                    // xfs and btrfs have no tracepoint at the end of a sync; this is the return of the function.
                    Word::StartWithoutId => (Word::EndWithoutId, join(point.strip_suffix(b"_enter")?, b"_exit")),
                    _ => return None,
                },
            },
        };
        Some(Self { word, name })
    }

    fn kind(&self, said: &TextRecord<'_, '_>, batch: &mut Batch) -> Option<Kind> {
        let ret = match said.get(b"ret") {
            Some(ret) => Some(ret.number()? as i64),
            None => None,
        };
        Some(match self.word {
            Word::Enter(op) => {
                let stack = said.text(b"ustack").map_or(NameId::NONE, |stack| stack_of(stack, batch));
                let path = said.text(b"path").map_or(NameId::NONE, |path| batch.names.intern(path));
                Kind::CallEnter { op, stack, path, call_only: false }
            }
            Word::Exit(op) => Kind::exit(op, ret),
            Word::StartWithoutId => {
                Tracepoint::Of(self.word).kind(&self.name, None, &WithIno(said), &mut batch.names)?
            }
            word => Tracepoint::Of(word).kind(&self.name, None, said, &mut batch.names)?,
        })
    }

    /// Returns whether its event has a field for this pair.
    fn takes(&self, key: &[u8], kind: Kind) -> bool {
        if kind == Kind::Other {
            return false;
        }
        let fields = [self.word.fields(), Tracepoint::Of(self.word).fields(kind)];
        let is_field = key != b"stack" && fields.iter().any(|fields| fields.iter().any(|name| name.as_bytes() == key));
        let of_call = matches!(self.word, Word::Enter(_)) && matches!(key, b"ustack" | b"path");
        is_field || of_call
    }
}

/// A script need not print the inode.
struct WithIno<'a, 'v, 'b>(&'a TextRecord<'v, 'b>);

impl Fields for WithIno<'_, '_, '_> {
    fn number(&self, field: Field) -> Option<u64> {
        let absent = field == Field::Ino && self.0.get(b"ino").is_none();
        if absent { Some(0) } else { self.0.number(field) }
    }

    fn text(&self, field: Field) -> Option<&[u8]> {
        Fields::text(self.0, field)
    }

    fn dev(&self, field: Field) -> Option<Dev> {
        self.0.dev(field)
    }

    fn is_background(&self) -> bool {
        self.0.is_background()
    }
}

/// Returns NAME of `tracepoint:SYSTEM:NAME`, as bpftrace's `probe` prints it.
fn tracepoint(name: &[u8]) -> &[u8] {
    let rest = name.strip_prefix(b"tracepoint:").or_else(|| name.strip_prefix(b"rawtracepoint:"));
    rest.map_or(name, |rest| rest.rsplit(|&b| b == b':').next().unwrap_or(rest))
}

/// Interns the lines of a stack, in the form of a text log.
fn stack_of(text: &[u8], batch: &mut Batch) -> NameId {
    let begin = text.iter().position(|&b| b != b'\n').unwrap_or(text.len());
    match text[begin..].trim_ascii_end() {
        b"" => NameId::NONE,
        lines => batch.names.intern(lines),
    }
}

fn missing(word: Word) -> &'static str {
    match word {
        Word::StartWithoutId => "its `ino` or `ret` is no number",
        Word::EndWithoutId => "the end of a file system's sync has no `ret`; print (\"ret\", args.ret)",
        Word::Enter(_) | Word::Exit(_) => "its `ret` is no number",
        Word::BlockSubmit | Word::BlockComplete => {
            "its `dev`, `sector`, `nr_sector` or `rwbs` is missing or out of range"
        }
        Word::BlockRemap => {
            "its `dev`, `sector`, `nr_sector`, `rwbs`, `old_dev` or `old_sector` is missing or out of range"
        }
        _ => "it is called as a tracepoint of the patch, and a field of that is missing or out of range",
    }
}

/// Returns the name of an unknown event in the low-level log, changed where it would be read as a known event.
fn word_of_other(name: &[u8]) -> Cow<'_, [u8]> {
    let means = Word::of_any(name).is_some()
        || strace::is_io_uring(name, b"")
        || matches!(name, b"lost_events" | b"unparsed_line");
    if means { [b"track_event ", name].concat().into() } else { name.into() }
}

/// Stores every pair that the event has no field for.
fn extras(said: &TextRecord<'_, '_>, meant: Option<&Meant<'_>>, kind: Kind, batch: &mut Batch) {
    let (event, before) = (batch.events.len() as u32, batch.extras.len());
    for (key, value) in &said.pairs {
        if OF_EVERY_EVENT.contains(key) || meant.is_some_and(|meant| meant.takes(key, kind)) {
            continue;
        }
        let is_meant = if meant.is_some() { MEANT.contains(key) } else { *key == b"op" };
        let key = if is_meant { [b"data_", *key].concat().into() } else { extra_key(key) };
        let (key, value) = (batch.names.intern(&key), batch.names.intern(value.shown()));
        match batch.extras[before..].iter_mut().find(|extra| extra.key == key) {
            Some(extra) => extra.value = value,
            None => batch.extras.push(Extra { event, key, value }),
        }
    }
}
