//! The low-level log that `sink/events_jsonl.rs` writes: one JSON object per line.
//!
//! In addition to events, it holds objects for lost, missing and unparsed records. A text with NUL or bytes that are not UTF-8 has a
//! second field with the exact bytes in hex (`comm_hex`). The low-level log of several recordings is refused, because it holds duplicates.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::{Map, Value};

use super::block_event::{BlockFields, SECTOR_BYTES};
use super::bpftrace_text::{device, sane_range, whole_fs};
use super::cursor::{Cursor, whole};
use super::dynamic_events::{self, DynamicEvent, PROBE_FIELDS, ProbeFields, is_on_tracepoint};
use super::event_names::{EventName, bio_flags, bio_size, errno, errno_of_status, extra_key, is_background};
use super::torn::JsonKeys;
use super::tracepoints::{fast_commit, file_system, printed_fast_commit, printed_switch, thread_event};
use super::write_events::WriteEventName;
use super::{
    Batch, Explanation, Extra, InputTraits, Lines, MAX_NOTE_BYTES, Note, NoteKind, Problem, Reader, Source,
    SourceOptions, TORN_LINE, bpftrace_json, markers, perf_data, perf_script, strace, torn, trace_dat,
};
use crate::error::{Error, Refused, Result};
use crate::event::bio_flags::BioFlags;
use crate::event::probe::Probe;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, Op, TornFact, UNKNOWN_TASK};
use crate::input_file::Input;
use crate::low_level_log::SEVERAL_RECORDINGS;
use crate::names::{NameId, Names};

pub struct EventsJsonl;

const NAME: &str = "events-jsonl";
const BAD_FIELD: &str = "a field of the event is missing or out of range";

/// Fields that do not depend on the kind of the event. An event may lack some. `EventName::fields` has the other fields.
const KNOWN: &[&str] = &["ts_ns", "tid", "pid", "comm", "event", "source"];
/// Why an `unparsed_line` object is unparsed. Its line number is that of the original log.
const UNPARSED_BEFORE: &str = "it could not be parsed when the log was written";
/// Fields with the exact bytes of a text, in hex.
const BYTES: &[&str] = &["event_hex", "comm_hex", "path_hex", "stack_hex", "fs_hex"];

impl Source for EventsJsonl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It holds the losses that its recording showed. A line that was deleted from it leaves no gap, and \
         neither does a loss that the format of the recording (`source`) would not show."
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
        Ok(Reader::of_lines(self, input, options))
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

/// What precedes the values that say what a torn line was about.
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
    let object = &object;
    let tracer_name = bytes(object, "event").ok_or("it has no `event`")?;
    match tracer_name.as_slice() {
        b"lost_events" => {
            batch.note(match object.get("count") {
                None => NoteKind::LostUncounted,
                Some(count) => NoteKind::Lost { count: count.as_u64().ok_or("`count` is not a number of events")? },
            });
            return Ok(());
        }
        TORN_LINE => {
            let fact = object.get("fact").and_then(Value::as_str);
            let fact = TornFact::ALL.into_iter().find(|known| Some(known.name()) == fact).ok_or(BAD_FIELD)?;
            let bio = object.get("bio").and_then(Value::as_str).map(|bio| whole(bio.as_bytes(), Cursor::hex));
            let id = unsigned(object, "id").unwrap_or(NO_ID);
            let kind = Kind::Torn { id, bio: bio.map_or(Some(0), |bio| bio).ok_or(BAD_FIELD)?, fact };
            let event = event(object, kind, batch).or_else(|_| torn_event(object, kind))?;
            batch.torn(&event, kind, options);
            return Ok(());
        }
        b"missing_events" => {
            let count = unsigned(object, "count").ok_or("`count` is not a number of events")?;
            batch.note(NoteKind::Missing { count });
            return Ok(());
        }
        b"cut_off" => {
            batch.note(NoteKind::Truncated);
            return Ok(());
        }
        b"unparsed_line" => {
            let mut text = bytes(object, "text").unwrap_or_default();
            text.truncate(MAX_NOTE_BYTES);
            let line = unsigned(object, "line").unwrap_or(batch.lines);
            let kind = NoteKind::Unparsed { text: text.into(), why: UNPARSED_BEFORE };
            batch.notes.push(Note { after: batch.events.len() as u32, line, is_of_original_log: true, kind });
            return Ok(());
        }
        _ => {}
    }
    let args = object.get("args").and_then(Value::as_str).unwrap_or_default();
    if strace::is_io_uring(&tracer_name, args.as_bytes()) && !object.contains_key("resumed") {
        batch.note(NoteKind::IoUring);
    }
    let is_probe = is_on_tracepoint(&tracer_name) || PROBE_FIELDS.iter().any(|field| object.contains_key(*field));
    let SourceOptions { keep_extras, keep_writes, .. } = *options;
    if keep_writes && let Some(write) = WriteEventName::parse(&tracer_name, is_probe) {
        let kind = write.kind(&ProbeObject(object), &mut batch.names).ok_or(BAD_FIELD)?;
        let event = event(object, kind, batch)?;
        batch.events.push(event);
        return Ok(());
    }
    if is_probe {
        return parse_probe(options, object, &tracer_name, batch);
    }
    let event_name = EventName::parse_any(&tracer_name).or_else(|| write_event_name(object, &tracer_name));
    let kind = match event_name {
        Some(event_name) => kind(event_name, object, &mut batch.names).ok_or(BAD_FIELD)?,
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
        extras(object, event_name, kind, batch);
        let name = batch.names.intern(&tracer_name);
        batch.event_names.push(name);
    }
    batch.events.push(event);
    Ok(())
}

/// Parses a dynamic event. The log has its fields as the tracer has.
fn parse_probe(
    options: &SourceOptions,
    object: &Map<String, Value>,
    tracer_name: &[u8],
    batch: &mut Batch,
) -> Result<(), &'static str> {
    let kind = match DynamicEvent::from_name(tracer_name) {
        Some(event) => {
            let mut kind = event.kind(&ProbeObject(object), &mut batch.names).ok_or(BAD_FIELD)?;
            if let Kind::Probe(Probe::SyncEnter { path, .. }) = &mut kind {
                *path = name(object, "path", &mut batch.names);
            }
            kind
        }
        None => Kind::Other,
    };
    let SourceOptions { keep_extras, keep_writes, .. } = *options;
    let kind = if keep_writes { Kind::Other } else { kind };
    let event = event(object, kind, batch)?;
    if kind == Kind::Other && !keep_extras && !(keep_writes && batch.needs_time()) {
        batch.other(|| tracer_name);
        return Ok(());
    }
    if keep_extras {
        let is_field = |key: &str, _: &Value| {
            KNOWN.contains(&key)
                || BYTES.contains(&key)
                || key == "path" && matches!(kind, Kind::Probe(Probe::SyncEnter { .. }))
        };
        push_extras(object, is_field, batch);
        let name = batch.names.intern(tracer_name);
        batch.event_names.push(name);
    }
    batch.events.push(event);
    Ok(())
}

/// The fields of a dynamic event.
struct ProbeObject<'a>(&'a Map<String, Value>);

impl ProbeObject<'_> {
    fn get(&self, field: &str) -> Option<&Value> {
        let key = extra_key(field.as_bytes());
        self.0.get(std::str::from_utf8(&key).ok()?)
    }
}

impl ProbeFields for ProbeObject<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        match self.get(field)? {
            Value::Number(number) => number.as_u64().or_else(|| number.as_i64().map(|value| value as u64)),
            // A number with more digits than every reader of JSON keeps is a text.
            Value::String(digits) => whole(digits.as_bytes(), Cursor::decimal),
            _ => None,
        }
    }

    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        self.get(field).map(|value| text_of(value).into_bytes().into())
    }

    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        self.text(field)
    }

    fn function(&self) -> Cow<'_, [u8]> {
        let place = PROBE_FIELDS.iter().find_map(|field| self.0.get(*field)).map(text_of).unwrap_or_default();
        dynamic_events::probed_function(place.as_bytes()).to_vec().into()
    }
}

/// Makes the event of a torn line that does not name its thread.
fn torn_event(object: &Map<String, Value>, kind: Kind) -> Result<Event, &'static str> {
    let ts = object.get("ts_ns").and_then(Value::as_i64).filter(|&ts| ts >= 0).ok_or("it has no `ts_ns`")?;
    Ok(Event { ts, tid: UNKNOWN_TASK, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind })
}

/// Makes the event of an object.
fn event(object: &Map<String, Value>, kind: Kind, batch: &mut Batch) -> Result<Event, &'static str> {
    let ts = object.get("ts_ns").and_then(Value::as_i64).filter(|&ts| ts >= 0).ok_or("it has no `ts_ns`")?;
    let (tid, pid) = (task(object, "tid")?, task(object, "pid")?);
    let event = Event { ts, tid, pid, comm: name(object, "comm", &mut batch.names), line: batch.lines as u32, kind };
    if event.tid == UNKNOWN_TASK && event.pid == UNKNOWN_TASK && !may_lack_task(object) {
        return Err("it has neither `tid` nor `pid`");
    }
    Ok(event)
}

/// Returns whether an event may lack a thread. strace does not print the id of a single thread. An event for btetto may be on a track that
/// is not a thread. perf and the kernel's binary records have -1 for a CPU without a thread. If a low-level log is converted to another one,
/// the source of its events is this format.
fn may_lack_task(object: &Map<String, Value>) -> bool {
    matches!(
        object.get("source").and_then(Value::as_str),
        Some(strace::NAME | bpftrace_json::NAME | perf_script::NAME | perf_data::NAME | trace_dat::NAME | NAME)
    )
}

/// Returns the event of a durable write, whatever the name of its syscall.
fn write_event_name(object: &Map<String, Value>, name: &[u8]) -> Option<EventName> {
    let is_sync = object.get("op").and_then(Value::as_str) == Some(Op::Write.name());
    is_sync.then(|| if name.ends_with(b"_exit") { EventName::Exit(Op::Write) } else { EventName::Enter(Op::Write) })
}

/// Returns whether `fields` of the sink wrote this field for the entry or exit of a call. Tracers have no field of this name there.
fn is_call_field(key: &str, value: &Value, event: Option<EventName>) -> bool {
    match event {
        Some(EventName::Enter(op)) if key == "op" => op == Op::Write,
        Some(EventName::Exit(op)) if key == "op" => op == Op::Write,
        Some(EventName::Enter(_)) => key == "path" && value.is_string() || key == "call_only" && value.is_boolean(),
        Some(EventName::Exit(_)) => {
            key == "stack" && value.is_array() || matches!(key, "untimed" | "entry_lost") && value.is_boolean()
        }
        _ => false,
    }
}

fn kind(event: EventName, object: &Map<String, Value>, names: &mut Names) -> Option<Kind> {
    let rwbs = object.get("rwbs").and_then(Value::as_str).unwrap_or_default().as_bytes();
    // The fields of an event that was not used are as the tracer has them.
    let has_dev = object.get("dev").is_none_or(Value::is_string);
    if matches!(event, EventName::Block(_)) && (BioFlags::of_rwbs(rwbs).is_none() || !has_dev) {
        return Some(Kind::Other);
    }
    let is_true = |key| object.get(key).and_then(Value::as_bool) == Some(true);
    let id = unsigned(object, "id").filter(|&id| id != NO_ID);
    let used = |key| object.get(key).filter(|_| event.fields().contains(&key));
    let bio = match used("bio") {
        Some(value) => Some(whole(value.as_str()?.as_bytes(), Cursor::hex)?),
        None => None,
    };
    let dev = match used("dev") {
        // An end had no field for it before, and kept the tracer's number.
        Some(Value::Number(number)) if event == EventName::EndWithoutId => Dev(u32::try_from(number.as_u64()?).ok()?),
        Some(value) => device(value.as_str()?.as_bytes())?,
        None => Dev::UNKNOWN,
    };
    let from_dev = match used("from_dev") {
        Some(value) => device(value.as_str()?.as_bytes())?,
        None => Dev::UNKNOWN,
    };
    let sector = used("sector").and_then(Value::as_i64).unwrap_or(NO_SECTOR);
    let ret = object.get("ret").and_then(Value::as_i64);
    let transaction = unsigned(object, "transaction").unwrap_or(0);
    Some(match event {
        // An exit that is printed as `fsync ret 0` has the name of an entry.
        EventName::Enter(op) if ret.is_some() => Kind::exit(op, ret),
        EventName::Enter(op) => {
            let (stack, path) = (stack(object, names), name(object, "path", names));
            Kind::CallEnter { op, stack, path, call_only: is_true("call_only") }
        }
        EventName::Exit(op) => Kind::CallExit {
            op,
            ret,
            stack: stack(object, names),
            untimed: is_true("untimed"),
            entry_lost: is_true("entry_lost"),
        },
        EventName::Start => Kind::SyncStart {
            id: id?,
            start: unsigned(object, "start")?,
            end: unsigned(object, "end")?,
            datasync: unsigned(object, "datasync")? == 1,
            by_thread: object.get("id_of").and_then(Value::as_str) == Some("thread"),
            path: name(object, "path", names),
            fs: name(object, "fs", names),
            ino: unsigned(object, "ino").unwrap_or(0),
            dev,
        },
        EventName::AddFolio => {
            let (offset, len) = (unsigned(object, "start")?, unsigned(object, "len")?);
            sane_range(offset, len)?;
            Kind::BioAddFolio { id: id?, bio: bio?, offset, len, dev, ino: unsigned(object, "ino").unwrap_or(0) }
        }
        EventName::Submit => {
            let background = object.get("origin").and_then(Value::as_str).is_some_and(is_background);
            let is_bio_size = object.get("bytes_of").and_then(Value::as_str) == Some("bio");
            let size = object.get("bytes").filter(|_| is_bio_size).map(text_of);
            let bytes = bio_size(size.as_deref().unwrap_or_default().as_bytes());
            let flags = object.get("opf").and_then(|opf| bio_flags(text_of(opf).as_bytes()));
            Kind::BioSubmit { id: id?, bio: bio?, sector, dev, background, bytes, flags }
        }
        EventName::Complete => {
            let error = object.get("status").and_then(Value::as_i64).and_then(errno_of_status);
            Kind::BioComplete { bio: bio.unwrap_or(0), sector, dev, error }
        }
        EventName::End => Kind::end(id?, ret?),
        EventName::FsStart => whole_fs(id?, dev, name(object, "fs", names)),
        EventName::StartWithoutId => Kind::SyncStart {
            id: NO_ID,
            start: 0,
            end: i64::MAX as u64,
            path: NameId::NONE,
            fs: name(object, "fs", names),
            ino: unsigned(object, "ino").unwrap_or(0),
            dev,
            datasync: unsigned(object, "datasync").unwrap_or(0) == 1,
            by_thread: true,
        },
        EventName::EndWithoutId => Kind::SyncEnd {
            id: NO_ID,
            ret: ret?,
            fs: names.intern(file_system(object.get("event").and_then(Value::as_str).unwrap_or_default().as_bytes())),
            dev,
            ino: unsigned(object, "ino").unwrap_or(0),
            datasync: unsigned(object, "datasync").map(|datasync| datasync == 1),
        },
        EventName::Block(event) => {
            // The kernel's own `bytes` are those of a command that is no read and no write.
            let sectors = unsigned(object, "nr_sector").and_then(|sectors| sectors.checked_mul(SECTOR_BYTES));
            let Some(bytes) = sectors.or(unsigned(object, "bytes")) else { return Some(Kind::Other) };
            let from_sector = used("from_sector").and_then(Value::as_i64);
            let block = BlockFields {
                dev,
                // A sector that needs all 64 bits is a text in the log.
                sector: Some(sector).filter(|&sector| sector >= 0),
                bytes,
                rwbs,
                error: object.get("error").and_then(Value::as_i64).and_then(errno),
                from: from_sector.map(|sector| (from_dev, sector)),
            };
            block.kind(event)
        }
        EventName::Mark => {
            // The binary ring buffer names the text `buf`.
            let text = ["text", "buf"].into_iter().find_map(|key| object.get(key)).map(text_of);
            markers::kind(text.as_deref().unwrap_or_default().as_bytes(), names)
        }
        EventName::WbStart => Kind::WbStart { id: id? },
        EventName::WbEnd => Kind::WbEnd { id: id? },
        EventName::WaitStart(wait) => Kind::WaitStart { id: id?, wait, transaction },
        EventName::WaitEnd(wait) => Kind::WaitEnd { id: id?, wait, transaction },
        EventName::CommitStart => Kind::CommitStart { dev, transaction },
        EventName::CommitEnd => Kind::CommitEnd { dev, transaction },
        EventName::WorkStart => {
            let dev = match object.get("sb_dev")? {
                Value::Number(number) => Dev(u32::try_from(number.as_u64()?).ok()?),
                text => device(text.as_str()?.as_bytes())?,
            };
            let word = object.get("reason").and_then(Value::as_str);
            dynamic_events::work_start(dev, unsigned(object, "reason"), word.map(str::as_bytes))
        }
        EventName::WorkEnd => Kind::Probe(Probe::WorkEnd),
        EventName::FastCommitStart | EventName::FastCommitStop => {
            if let Some(text) = object.get("text").filter(|_| event == EventName::FastCommitStop) {
                return printed_fast_commit(text_of(text).as_bytes());
            }
            let dev = match object.get("dev")? {
                Value::Number(number) => Dev(u32::try_from(number.as_u64()?).ok()?),
                text => device(text.as_str()?.as_bytes())?,
            };
            let transaction = unsigned(object, "data_tid").or_else(|| unsigned(object, "transaction"));
            fast_commit(event, dev, transaction, unsigned(object, "reason"))
        }
        EventName::Throttle => {
            let number = |key: &str| object.get(key).and_then(Value::as_i64).map(|number| number as u64);
            let bdi = ["bdi", "name"].into_iter().find_map(|key| object.get(key)?.as_str()).map(str::as_bytes);
            dynamic_events::throttle(bdi, number("pause"), number("dirtied"), number("paused"))?
        }
        EventName::CommitStep(step) => Kind::CommitStep { dev, transaction, step },
        EventName::Switch | EventName::Wake | EventName::LockWait | EventName::LockWaitEnd => {
            if let Some(text) = object.get("text").filter(|_| event == EventName::Switch) {
                return Some(printed_switch(text_of(text).as_bytes()));
            }
            let number = |key: &str| object.get(key).and_then(Value::as_i64).map(|number| number as u64);
            let state = object.get("prev_state").and_then(Value::as_str).map(str::as_bytes);
            // `pid` is a field of all events of the log.
            let ids = [number("prev_pid"), number("next_pid"), number("data_pid")];
            thread_event(event, ids, (number("prev_state"), state))
        }
    })
}

/// The text of an extra field. The log has it as a number if it is one.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn unsigned(object: &Map<String, Value>, key: &str) -> Option<u64> {
    object.get(key)?.as_u64()
}

fn task(object: &Map<String, Value>, key: &str) -> Result<u32, &'static str> {
    match object.get(key) {
        None => Ok(UNKNOWN_TASK),
        Some(value) => {
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|&id| i32::try_from(id).is_ok());
            id.ok_or("`tid` or `pid` is out of range")
        }
    }
}

/// Returns a text field, or its exact bytes from the field `KEY_hex`.
fn bytes(object: &Map<String, Value>, key: &str) -> Option<Vec<u8>> {
    if let Some(hex) = object.get(&format!("{key}_hex")) {
        return unhex(hex.as_str()?);
    }
    Some(object.get(key)?.as_str()?.as_bytes().to_vec())
}

fn name(object: &Map<String, Value>, key: &str, names: &mut Names) -> NameId {
    bytes(object, key).map_or(NameId::NONE, |b| names.intern(&b))
}

fn stack(object: &Map<String, Value>, names: &mut Names) -> NameId {
    if let Some(raw) = object.get("stack_hex").and_then(Value::as_str).and_then(unhex) {
        return names.intern(&raw);
    }
    let Some(lines) = object.get("stack").and_then(Value::as_array) else { return NameId::NONE };
    let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
    names.intern(lines.join("\n").as_bytes())
}

fn extras(object: &Map<String, Value>, event: Option<EventName>, kind: Kind, batch: &mut Batch) {
    let is_field = |key: &str, value: &Value| {
        // As the tracer prints it.
        if key == "sector" && kind.is_without_sector() {
            return false;
        }
        // An exit that is printed as `fsync ret 0` has the name of an entry.
        let is_exit = key == "ret" && matches!(event, Some(EventName::Enter(_)));
        KNOWN.contains(&key)
            || BYTES.contains(&key)
            || event.is_some_and(|event| event.fields().contains(&key))
            || is_call_field(key, value, event)
            || is_exit
    };
    push_extras(object, is_field, batch);
}

/// Stores the fields that the event has no field for.
fn push_extras(object: &Map<String, Value>, is_field: impl Fn(&str, &Value) -> bool, batch: &mut Batch) {
    for (key, value) in object {
        if is_field(key, value) {
            continue;
        }
        let text = text_of(value);
        let (key, value) = (batch.names.intern(key.as_bytes()), batch.names.intern(text.as_bytes()));
        batch.extras.push(Extra { event: batch.events.len() as u32, key, value });
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect()
}
