//! Events as scripts print them for btetto: a tuple of its kind and of name-value pairs, with a time of its own.
//!
//! ```text
//! ["track_event",["name","fsync"],["type","BEGIN"],["ts",41753514022],["pid",559],["tid",559],["thread_name","wl"],["fd",3]]
//! ```

use std::borrow::Cow;

use super::json::{Shape, Value};
use crate::event::{Dev, Event, Kind, Op, TornFact, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::event_names::{BlockEvent, EventName, extra_key, is_background};
use crate::source::reserved_names::other_event_name;
use crate::source::torn::{JsonKeys, facts_of_tracepoint};
use crate::source::tracepoints::{Field, Fields, Tracepoint};
use crate::source::values::device;
use crate::source::{Batch, Extra, SourceOptions};

/// More pairs than fit bpftrace's stack. It bounds the work on a hostile line.
const MAX_PAIRS: usize = 64;
/// Names that every event has a field for.
const COMMON_NAMES: [&[u8]; 5] = [b"name", b"ts", b"pid", b"tid", b"thread_name"];
/// Fields of the low-level log that define the meaning of an event. A pair with one of these names and another meaning must be renamed.
const DEFINING_FIELDS: [&[u8]; 19] = [
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
    b"entry_lost",
    b"transaction",
];

/// The texts before the values that say what a torn line was about.
pub(super) const TORN_KEYS: JsonKeys = JsonKeys {
    begin: b"{\"type\":",
    ts: b"[\"ts\",",
    tid: b"[\"tid\",",
    pid: b"[\"pid\",",
    event: b"[\"name\",\"",
    id: b"[\"id\",",
    bio: b"[\"bio\",",
    ids_are_first: false,
    facts: torn_facts,
};

/// The facts that a torn line of an event of this name hides. Its phase may be cut off.
fn torn_facts(name: &[u8]) -> &'static [TornFact] {
    let tracepoint = strip_probe_prefix(name);
    match Tracepoint::from_name(tracepoint) {
        _ if Op::from_name(name).is_some() => &[TornFact::Call],
        _ if is_sync_function(tracepoint) => &[TornFact::Request],
        Some(tracepoint) => facts_of_tracepoint(tracepoint),
        None => &[],
    }
}

fn is_sync_function(name: &[u8]) -> bool {
    matches!(name, b"ext4_sync_file" | b"f2fs_sync_file")
}

type Pair<'v, 'a> = (&'v [u8], &'v Value<'a>);

/// Appends the event of a printed value, if the value is an event.
pub(super) fn event(options: &SourceOptions, value: &Value<'_>, batch: &mut Batch) -> Result<(), &'static str> {
    const NOT_A_TUPLE: &str =
        "it is not a tuple of `track_event` or `call_stack` and name-value pairs, as btetto accepts them";
    let Shape::List(items) = &value.shape else { return Err(NOT_A_TUPLE) };
    let tag = items.first().and_then(Value::text).ok_or(NOT_A_TUPLE)?;
    match tag {
        b"track_event" | b"call_stack" => {}
        // Output for the terminal, and track descriptors of btetto 0.1.
        b"stdout" | b"track_descriptor" => return Ok(()),
        _ => return Err(NOT_A_TUPLE),
    }
    if items.len() > MAX_PAIRS {
        return Err("it has more pairs than any script prints");
    }
    let pairs: Option<Vec<_>> = items[1..].iter().map(pair).collect();
    let tuple = Tuple { pairs: pairs.ok_or(NOT_A_TUPLE)? };

    // btetto accepts samples without a time for flame graphs. A log cannot hold them.
    if tag == b"call_stack" && tuple.get(b"ts").is_none() {
        return Ok(());
    }
    let ts = tuple.get(b"ts").and_then(Value::number).and_then(|ts| i64::try_from(ts).ok());
    let ts = ts.and_then(|ts| ts.checked_mul(options.time_unit_ns)).ok_or("it has no `ts` of 63 bits of ns")?;
    let name = if tag == b"call_stack" {
        tag
    } else {
        tuple.text(b"name").filter(|name| !name.is_empty()).ok_or("it has no `name`")?
    };
    let phase = if tag == b"call_stack" {
        Phase::Other
    } else {
        Phase::of(tuple.text(b"type")).ok_or("its `type` is not BEGIN, END, INSTANT or COUNTER")?
    };
    let (tid, pid) = (tuple.task(b"tid")?, tuple.task(b"pid")?);
    let meaning = Meaning::of(name, phase);
    let kind = match &meaning {
        Some(meaning) => meaning.kind(&tuple, batch).ok_or_else(|| missing_field(meaning.event))?,
        None => Kind::Other,
    };
    let needs_thread = !matches!(
        kind,
        Kind::Other
            | Kind::BlockSubmit { .. }
            | Kind::BlockInsert { .. }
            | Kind::BlockIssue { .. }
            | Kind::BlockComplete { .. }
            | Kind::BlockDone { .. }
            | Kind::BlockRemap { .. }
            | Kind::BioComplete { .. }
    );
    if needs_thread && tid == UNKNOWN_TASK && pid == UNKNOWN_TASK {
        return Err("it has neither `tid` nor `pid`: the thread of the sync is unknown");
    }
    if kind == Kind::Other && !options.keep_extras {
        batch.dropped_events += 1;
        return Ok(());
    }
    if options.keep_extras {
        let name = meaning
            .as_ref()
            .map_or_else(|| other_event_name("track_event", name), |meaning| meaning.name.as_ref().into());
        let name = batch.names.intern(&name);
        batch.event_names.push(name);
        extras(&tuple, meaning.as_ref(), kind, batch);
    }
    let comm = tuple.get(b"thread_name").map_or(NameId::NONE, |comm| batch.names.intern(comm.shown()));
    batch.events.push(Event { ts, tid, pid, comm, line: batch.lines as u32, kind });
    Ok(())
}

fn pair<'v, 'a>(item: &'v Value<'a>) -> Option<Pair<'v, 'a>> {
    let Shape::List(pair) = &item.shape else { return None };
    let [name, value] = pair.as_slice() else { return None };
    Some((name.text()?, value))
}

struct Tuple<'v, 'a> {
    pairs: Vec<Pair<'v, 'a>>,
}

impl<'v, 'a> Tuple<'v, 'a> {
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

impl Fields for Tuple<'_, '_> {
    fn number(&self, field: Field) -> Option<u64> {
        // In these tuples `tid` is the thread.
        let name = if field == Field::Transaction { "transaction" } else { field.name() };
        let value = self.get(name.as_bytes());
        let value = value.or_else(|| (field == Field::Start).then(|| self.get(b"offset"))?);
        value.and_then(Value::number)
    }

    fn text(&self, field: Field) -> Option<&[u8]> {
        Tuple::text(self, field.name().as_bytes())
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
struct Meaning<'a> {
    event: EventName,
    /// The event name in the low-level log.
    name: Cow<'a, [u8]>,
}

impl<'a> Meaning<'a> {
    /// Decodes a name. A slice may have the name of a system call, of a file system's sync function, or of the tracepoint with which it begins.
    /// An instant must have the name of a tracepoint, because it does not show where in a call it is.
    fn of(name: &'a [u8], phase: Phase) -> Option<Self> {
        let tracepoint = strip_probe_prefix(name);
        let parse = |name: &[u8]| match Tracepoint::from_name(name) {
            Some(Tracepoint::Named(event)) => Some(event),
            _ => None,
        };
        let join = |a: &[u8], b: &[u8]| Cow::Owned([a, b].concat());
        let (event, name) = match phase {
            Phase::Other => return None,
            Phase::Instant => (parse(tracepoint)?, Cow::Borrowed(tracepoint)),
            Phase::Begin => match Op::from_name(name) {
                Some(op) => (EventName::Enter(op), Cow::Borrowed(name)),
                None if is_sync_function(tracepoint) => (EventName::StartWithoutId, join(tracepoint, b"_enter")),
                None => match parse(tracepoint)? {
                    event @ (EventName::Enter(_) | EventName::StartWithoutId) => (event, Cow::Borrowed(tracepoint)),
                    _ => return None,
                },
            },
            Phase::End => match Op::from_name(name) {
                Some(op) => (EventName::Exit(op), join(name, b"_exit")),
                None if is_sync_function(tracepoint) => (EventName::EndWithoutId, join(tracepoint, b"_exit")),
                None => match parse(tracepoint)? {
                    EventName::Enter(op) | EventName::Exit(op) => {
                        (EventName::Exit(op), join(b"sys_exit_", op.name().as_bytes()))
                    }
                    EventName::EndWithoutId => (EventName::EndWithoutId, Cow::Borrowed(tracepoint)),
                    // xfs and btrfs have no tracepoint at the end of a sync; this is the return of the function.
                    EventName::StartWithoutId => {
                        (EventName::EndWithoutId, join(tracepoint.strip_suffix(b"_enter")?, b"_exit"))
                    }
                    _ => return None,
                },
            },
        };
        Some(Self { event, name })
    }

    fn kind(&self, tuple: &Tuple<'_, '_>, batch: &mut Batch) -> Option<Kind> {
        let ret = match tuple.get(b"ret") {
            Some(ret) => Some(ret.number()? as i64),
            None => None,
        };
        Some(match self.event {
            EventName::Enter(op) => {
                let stack = tuple.text(b"ustack").map_or(NameId::NONE, |stack| stack_of(stack, batch));
                let path = tuple.text(b"path").map_or(NameId::NONE, |path| batch.names.intern(path));
                Kind::CallEnter { op, stack, path, call_only: false }
            }
            EventName::Exit(op) => Kind::exit(op, ret),
            EventName::StartWithoutId => {
                Tracepoint::Named(self.event).kind(&self.name, None, &WithOptionalIno(tuple), &mut batch.names)?
            }
            event => Tracepoint::Named(event).kind(&self.name, None, tuple, &mut batch.names)?,
        })
    }

    /// Returns whether its event has a field for this pair.
    fn has_field_for(&self, key: &[u8], kind: Kind) -> bool {
        if kind == Kind::Other || key == b"sector" && kind.is_without_sector() {
            return false;
        }
        let is_field = key != b"stack" && Tracepoint::Named(self.event).stores(kind, key);
        let is_call_field = matches!(self.event, EventName::Enter(_)) && matches!(key, b"ustack" | b"path");
        is_field || is_call_field
    }
}

/// A script need not print the inode.
struct WithOptionalIno<'a, 'v, 'b>(&'a Tuple<'v, 'b>);

impl Fields for WithOptionalIno<'_, '_, '_> {
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
fn strip_probe_prefix(name: &[u8]) -> &[u8] {
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

fn missing_field(event: EventName) -> &'static str {
    match event {
        EventName::StartWithoutId => "its `ino` or `ret` is not a number",
        EventName::EndWithoutId => "the end of a file system's sync has no `ret`; print (\"ret\", args.ret)",
        EventName::Enter(_) | EventName::Exit(_) => "its `ret` is not a number",
        EventName::Block(BlockEvent::Remap) => {
            "its `dev`, `sector`, `nr_sector`, `rwbs`, `old_dev` or `old_sector` is missing or out of range"
        }
        EventName::Block(_) => "its `dev`, `sector`, `nr_sector` or `rwbs` is missing or out of range",
        _ => "it has the name of a tracepoint of the patch, and a field of that is missing or out of range",
    }
}

/// Stores every pair that the event has no field for.
fn extras(tuple: &Tuple<'_, '_>, meaning: Option<&Meaning<'_>>, kind: Kind, batch: &mut Batch) {
    let (event, before) = (batch.events.len() as u32, batch.extras.len());
    for (key, value) in &tuple.pairs {
        if COMMON_NAMES.contains(key) || meaning.is_some_and(|meaning| meaning.has_field_for(key, kind)) {
            continue;
        }
        let is_reserved = if meaning.is_some() { DEFINING_FIELDS.contains(key) } else { *key == b"op" };
        let key = if is_reserved { [b"data_", *key].concat().into() } else { extra_key(key) };
        let (key, value) = (batch.names.intern(&key), batch.names.intern(value.shown()));
        match batch.extras[before..].iter_mut().find(|extra| extra.key == key) {
            Some(extra) => extra.value = value,
            None => batch.extras.push(Extra { event, key, value }),
        }
    }
}
