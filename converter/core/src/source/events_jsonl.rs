//! The low-level log that `sink/events_jsonl.rs` writes: one JSON object per line.
//!
//! In addition to events, it holds objects for lost, missing and unparsed records. A text with NUL or bytes that are not UTF-8 has a
//! second field with the exact bytes in hex (`comm_hex`). The low-level log of several recordings is refused, because it holds duplicates.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::{Map, Value};

use super::dynamic_events::{self, DynamicEvent, PROBE_FIELDS, ProbeFields, is_on_tracepoint};
use super::event_names::{COMMON_FIELDS, EventName, extra_key, is_background};
use super::low_level_log::{
    self, BAD_FIELD, Codec, LogObject, SEVERAL_RECORDINGS, SYNC_PATH, Text, Unread, may_have_written, text_of,
};
use super::torn::JsonKeys;
use super::tracepoints::{Field, Fields, Tracepoint, of_print};
use super::values::device;
use super::write_events::WriteEventName;
use super::{
    Batch, Explanation, Extra, InputTraits, Lines, MAX_NOTE_BYTES, Note, NoteKind, Problem, Reader, SOURCES, Source,
    SourceOptions, TORN_LINE, babeltrace, biosnoop, bpftrace_json, by_name, perf_data, perf_script, perf_trace,
    perfetto, strace, syncsnoop, torn, trace_dat,
};
use crate::error::{Error, Refused, Result};
use crate::event::probe::Probe;
use crate::event::{Dev, Event, Kind, Op, UNKNOWN_TASK};
use crate::input_file::Input;
use crate::names::{NameId, Names};

pub struct EventsJsonl;

const NAME: &str = "events-jsonl";
/// Why an `unparsed_line` object is unparsed. Its line number is that of the original log.
const UNPARSED_BEFORE: &str = "it could not be parsed when the log was written";

impl Source for EventsJsonl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It holds the losses that its recording showed. A line that was deleted from it leaves no gap, and \
         neither does a loss that the format of the recording (`source`) would not show."
    }

    fn may_have_far_times(&self) -> bool {
        false
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(line) = head.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()) else { return false };
        let has = |key: &[u8]| memchr::memmem::find(line, key).is_some();
        line.starts_with(b"{") && has(b"\"event\":") && has(b"\"source\":")
    }

    fn describe(&self, input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: ids_are_processes(input.head()), ..InputTraits::default() }
    }

    fn may_hold_writes(&self) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        if input.head().starts_with(SEVERAL_RECORDINGS.as_bytes()) {
            let message = "it is the low-level log of several recordings, which hold duplicates of each other";
            let hint = "convert the recordings themselves, all in one command, so that duplicates are removed";
            return Err(Error::Read { path: input.path, source: Refused::error(message, hint) });
        }
        let may_have_far_times = may_have_far_times(input.head());
        Ok(Reader { may_have_far_times, ..Reader::of_lines(self, input, options) })
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        bpftrace_json::explain(problem)
    }
}

/// See `InputTraits::ids_are_processes`. Any single line may be damaged or cut off, so this looks at all lines of the head. The log of a
/// single thread may have no ids at all.
fn ids_are_processes(head: &[u8]) -> Option<bool> {
    let has = |key: &'static [u8]| {
        let mut events = head.split(|&b| b == b'\n').filter(|line| line.starts_with(b"{\"ts_ns\":"));
        events.any(|line| memchr::memmem::find(line, key).is_some())
    };
    if has(b"\"tid\":") { Some(false) } else { has(b"\"pid\":").then_some(true) }
}

/// Whether the format that the events were read from says so. Its jumps of time are no damage if it does not.
fn may_have_far_times(head: &[u8]) -> bool {
    const SOURCE: &[u8] = br#""source":""#;
    let begin = memchr::memmem::find(head, SOURCE).map(|at| &head[at + SOURCE.len()..]);
    let name = begin.and_then(|begin| begin.split(|&byte| byte == b'"').next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    name.and_then(|name| by_name(SOURCES, name).ok()).is_some_and(Source::may_have_far_times)
}

impl Lines for EventsJsonl {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        memchr::memrchr(b'\n', bytes).map(|n| n + 1)
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        let mut at = 0;
        while at < chunk.len() {
            let end = memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |n| at + n);
            let line = chunk[at..end].trim_ascii();
            at = end + 1;
            batch.lines += 1;
            if line.is_empty() {
                continue;
            }
            if let Err(why) = parse_line(options, line, batch) {
                batch.unparsed(line, why);
                if why == NO_OBJECT {
                    torn::json_line(&TORN_KEYS, line, options, batch);
                }
            }
        }
    }
}

const NO_OBJECT: &str = "it is not a JSON object";

/// The texts before the values that say what a torn line was about.
const TORN_KEYS: JsonKeys = JsonKeys {
    begin: b"{\"ts_ns\":",
    ts: b"\"ts_ns\":",
    tid: b"\"tid\":",
    pid: b"\"pid\":",
    event: b"\"event\":\"",
    id: b"\"id\":",
    bio: b"\"bio\":\"",
    ids_are_first: true,
    facts: torn::facts_of_name,
};

fn parse_line(options: &SourceOptions, line: &[u8], batch: &mut Batch) -> Result<(), &'static str> {
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(|_| NO_OBJECT)?;
    let object = &LogObject::new(&object);
    let tracer_name = object.bytes("event").ok_or("it has no `event`")?;
    if parse_note(options, object, &tracer_name, batch)? {
        return Ok(());
    }
    let args = object.word("args").unwrap_or_default();
    if strace::is_io_uring(&tracer_name, args.as_bytes()) && !object.has("resumed") {
        batch.note(NoteKind::IoUring);
    }
    let is_probe = is_on_tracepoint(&tracer_name) || PROBE_FIELDS.iter().any(|field| object.has(field));
    let SourceOptions { keep_extras, keep_writes, .. } = *options;
    if keep_writes && let Some(write) = WriteEventName::parse(&tracer_name, is_probe) {
        let kind = write.kind(object, &mut batch.names).ok_or(BAD_FIELD)?;
        let event = event(object, kind, batch)?;
        batch.events.push(event);
        return Ok(());
    }
    if is_probe {
        return parse_probe(options, object, &tracer_name, batch);
    }
    let event_name = EventName::parse_any(&tracer_name).or_else(|| write_event_name(object, &tracer_name));
    // An exit that is printed as `fsync ret 0` has the name of an entry.
    let event_name = event_name.map(|name| match name {
        EventName::Enter(op) if object.signed("ret").is_some() => EventName::Exit(op),
        name => name,
    });
    let kind = match event_name {
        Some(event_name) => kind(event_name, &tracer_name, object, &mut batch.names).ok_or(BAD_FIELD)?,
        None => Kind::Other,
    };
    let event_name = event_name.filter(|_| kind != Kind::Other && !keep_writes);
    let kind = if keep_writes { Kind::Other } else { kind };
    let event = event(object, kind, batch)?;
    // All checks come before this point, so that `keep_extras` does not change which lines are valid.
    if event_name.is_none() && !keep_extras && !(keep_writes && batch.needs_time()) {
        batch.other(|| &tracer_name);
        return Ok(());
    }
    if keep_extras {
        let is_field = |key: &str, value: &Value| {
            // As the tracer prints it.
            let is_sector = key == "sector" && kind.is_without_sector();
            !is_sector && event_name.is_some_and(|event| may_have_written(event, key, value))
        };
        extras(object, is_field, batch);
        let name = batch.names.intern(&tracer_name);
        batch.event_names.push(name);
    }
    batch.events.push(event);
    Ok(())
}

/// Parses an object that stands for lost, missing or unparsed input; false if it is an event.
fn parse_note(
    options: &SourceOptions,
    object: &LogObject<'_>,
    name: &[u8],
    batch: &mut Batch,
) -> Result<bool, &'static str> {
    const NO_COUNT: &str = "`count` is not a number of events";
    match name {
        b"lost_events" if !object.has("count") => batch.note(NoteKind::LostUncounted),
        b"lost_events" => batch.note(NoteKind::Lost { count: object.unsigned("count").ok_or(NO_COUNT)? }),
        b"missing_events" => batch.note(NoteKind::Missing { count: object.unsigned("count").ok_or(NO_COUNT)? }),
        b"cut_off" => batch.note(NoteKind::Truncated),
        b"unparsed_line" => {
            let mut text = object.bytes("text").unwrap_or_default();
            text.truncate(MAX_NOTE_BYTES);
            let line = object.unsigned("line").unwrap_or(batch.lines);
            let kind = NoteKind::Unparsed { text: text.into(), why: UNPARSED_BEFORE };
            batch.notes.push(Note { after: batch.events.len() as u32, line, is_of_original_log: true, kind });
        }
        TORN_LINE => {
            let kind = low_level_log::read_torn(object, &mut batch.names).ok_or(BAD_FIELD)?;
            let event = event(object, kind, batch).or_else(|_| torn_event(object, kind))?;
            batch.torn(&event, kind, options);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Parses a dynamic event. The log has its fields as the tracer has.
fn parse_probe(
    options: &SourceOptions,
    object: &LogObject<'_>,
    tracer_name: &[u8],
    batch: &mut Batch,
) -> Result<(), &'static str> {
    let mut kind = match DynamicEvent::from_name(tracer_name) {
        Some(event) => event.kind(object, &mut batch.names).ok_or(BAD_FIELD)?,
        None => Kind::Other,
    };
    if let Kind::Probe(Probe::SyncEnter { path, .. }) = &mut kind {
        *path = Text.read(SYNC_PATH, object, &mut batch.names).map_err(|_| BAD_FIELD)?;
    }
    let SourceOptions { keep_extras, keep_writes, .. } = *options;
    let kind = if keep_writes { Kind::Other } else { kind };
    let event = event(object, kind, batch)?;
    if kind == Kind::Other && !keep_extras && !(keep_writes && batch.needs_time()) {
        batch.other(|| tracer_name);
        return Ok(());
    }
    if keep_extras {
        let has_path = matches!(kind, Kind::Probe(Probe::SyncEnter { .. }));
        extras(object, |key, _| has_path && key == SYNC_PATH, batch);
        let name = batch.names.intern(tracer_name);
        batch.event_names.push(name);
    }
    batch.events.push(event);
    Ok(())
}

/// Decodes an event by the fields of the log, or by those of the tracer where the log has no other ones.
fn kind(event: EventName, name: &[u8], object: &LogObject<'_>, names: &mut Names) -> Option<Kind> {
    match low_level_log::read(event, object, names) {
        Ok(Some(kind)) => return Some(kind),
        Ok(None) => {}
        Err(Unread::Unused) => return Some(Kind::Other),
        Err(Unread::Bad) => return None,
    }
    match of_print(event).zip(object.get("text")) {
        Some((of_print, text)) => of_print(text_of(text).as_bytes()),
        None => Tracepoint::Named(event).kind(name, None, object, names),
    }
}

impl Fields for LogObject<'_> {
    fn number(&self, field: Field) -> Option<u64> {
        match field {
            // All events have a field `tid` and one `pid`.
            Field::Transaction => self.number("data_tid").or_else(|| self.number("transaction")),
            Field::Thread => self.number("data_pid"),
            _ => self.number(field.name()),
        }
    }

    fn text(&self, field: Field) -> Option<&[u8]> {
        let text = match field {
            Field::Buf => Some(self.mark()),
            Field::Bdi => self.word("bdi").or_else(|| self.word("name")),
            _ => self.word(field.name()),
        };
        text.map(str::as_bytes)
    }

    fn dev(&self, field: Field) -> Option<Dev> {
        match self.get(field.name())? {
            Value::Number(number) => number.as_u64().and_then(|dev| u32::try_from(dev).ok()).map(Dev),
            text => device(text.as_str()?.as_bytes()),
        }
    }

    fn is_background(&self) -> bool {
        self.word(Field::Origin.name()).is_some_and(is_background)
    }
}

impl ProbeFields for LogObject<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        self.number(std::str::from_utf8(&extra_key(field.as_bytes())).ok()?)
    }

    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        let key = extra_key(field.as_bytes());
        self.get(std::str::from_utf8(&key).ok()?).map(|value| text_of(value).into_bytes().into())
    }

    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        ProbeFields::text(self, field)
    }

    fn function(&self) -> Cow<'_, [u8]> {
        let place = PROBE_FIELDS.iter().find_map(|field| self.get(field)).map(text_of).unwrap_or_default();
        dynamic_events::probed_function(place.as_bytes()).to_vec().into()
    }
}

/// Makes the event of a torn line that does not name its thread.
fn torn_event(object: &LogObject<'_>, kind: Kind) -> Result<Event, &'static str> {
    let ts = object.signed("ts_ns").filter(|&ts| ts >= 0).ok_or("it has no `ts_ns`")?;
    Ok(Event { ts, tid: UNKNOWN_TASK, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind })
}

/// Makes the event of an object.
fn event(object: &LogObject<'_>, kind: Kind, batch: &mut Batch) -> Result<Event, &'static str> {
    let ts = object.signed("ts_ns").filter(|&ts| ts >= 0).ok_or("it has no `ts_ns`")?;
    let (tid, pid) = (task(object, "tid")?, task(object, "pid")?);
    let comm = object.bytes("comm").map_or(NameId::NONE, |comm| batch.names.intern(&comm));
    let event = Event { ts, tid, pid, comm, line: batch.lines as u32, kind };
    if event.tid == UNKNOWN_TASK && event.pid == UNKNOWN_TASK && !may_lack_task(object) {
        return Err("it has neither `tid` nor `pid`");
    }
    Ok(event)
}

/// Returns whether an event may lack a thread. strace and perf trace do not print the id of a single thread, bcc's syncsnoop that of any, and biosnoop none where it has missed the begin of a request. LTTng records it if
/// the session has it as a context. An event for btetto may be on a track that
/// is not a thread. perf and the kernel's binary records have -1 for a CPU without a thread, and a switch of Perfetto names only the next one. If a low-level log is converted to another one,
/// the source of its events is this format.
fn may_lack_task(object: &LogObject<'_>) -> bool {
    matches!(
        object.word("source"),
        Some(
            strace::NAME
                | perf_trace::NAME
                | syncsnoop::NAME
                | babeltrace::NAME
                | biosnoop::NAME
                | bpftrace_json::NAME
                | perf_script::NAME
                | perf_data::NAME
                | trace_dat::NAME
                | perfetto::NAME
                | NAME
        )
    )
}

/// Returns the event of a durable write, whatever the name of its syscall.
fn write_event_name(object: &LogObject<'_>, name: &[u8]) -> Option<EventName> {
    let is_sync = object.word("op") == Some(Op::Write.name());
    is_sync.then(|| if name.ends_with(b"_exit") { EventName::Exit(Op::Write) } else { EventName::Enter(Op::Write) })
}

fn task(object: &LogObject<'_>, key: &str) -> Result<u32, &'static str> {
    match object.get(key) {
        None => Ok(UNKNOWN_TASK),
        Some(value) => {
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|&id| i32::try_from(id).is_ok());
            id.ok_or("`tid` or `pid` is out of range")
        }
    }
}

/// Stores the fields that the event has no field for.
fn extras(object: &LogObject<'_>, is_field: impl Fn(&str, &Value) -> bool, batch: &mut Batch) {
    for (key, value) in object.iter() {
        if COMMON_FIELDS.contains(&key.as_bytes()) || is_field(key, value) {
            continue;
        }
        let text = text_of(value);
        let (key, value) = (batch.names.intern(key.as_bytes()), batch.names.intern(text.as_bytes()));
        batch.extras.push(Extra { event: batch.events.len() as u32, key, value });
    }
}
