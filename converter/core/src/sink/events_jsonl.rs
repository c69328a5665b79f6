//! The low-level log: one JSON object an event, in the order of the input. `source/events_jsonl.rs` reads it.

use std::io::Write as _;
use std::path::Path;

use super::text::{json_key, json_string};
use crate::error::Result;
use crate::event::probe::Probe;
use crate::event::{Dev, Event, Kind, UNKNOWN_TASK};
use crate::names::{NameId, Names, is_text};
use crate::output::Output;
use crate::source::low_level_log::{self, LogWriter, SEVERAL_RECORDINGS, SYNC_PATH};
use crate::source::{Batch, NoteKind};

pub struct EventsJsonl {
    out: Output,
}

impl EventsJsonl {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { out: Output::create(path, false)? })
    }

    /// A log that stays in memory: `into_bytes` returns it.
    pub fn in_memory() -> Self {
        Self { out: Output::in_memory() }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    /// Writes the line that marks the log as one of several recordings of the same run.
    pub fn of_several(&mut self) {
        let buffer = self.out.buffer();
        buffer.extend_from_slice(SEVERAL_RECORDINGS.as_bytes());
        buffer.push(b'\n');
    }

    /// Appends the events and notes of a batch in the order of the input. `source` is the name of its format, `lines_before` the number of
    /// lines of its file before it.
    pub fn batch(&mut self, batch: &Batch, source: &str, lines_before: u64) -> Result<()> {
        let mut notes = batch.notes.iter().peekable();
        for i in 0..batch.events.len() {
            while let Some(note) = notes.next_if(|n| n.after as usize <= i) {
                self.note(&note.kind, note.line_in_file(lines_before), source);
            }
            self.event(batch, i, source)?;
        }
        for note in notes {
            self.note(&note.kind, note.line_in_file(lines_before), source);
        }
        self.out.spill()
    }

    /// Appends one event of a batch.
    pub fn event(&mut self, batch: &Batch, i: usize, source: &str) -> Result<()> {
        let event = &batch.events[i];
        let buffer = self.out.buffer();
        begin(buffer, event, batch.event_names[i], &batch.names, source);
        let mut object = Object { buffer, names: &batch.names };
        match event.kind {
            Kind::Probe(Probe::SyncEnter { path, .. }) => object.name(SYNC_PATH, path),
            kind => low_level_log::write(kind, &mut object),
        }
        let Object { buffer, .. } = object;
        let first = batch.extras.partition_point(|extra| (extra.event as usize) < i);
        for extra in batch.extras[first..].iter().take_while(|extra| extra.event as usize == i) {
            let (key, value) = (batch.names.get(extra.key), batch.names.get(extra.value));
            buffer.push(b',');
            json_string(buffer, key);
            buffer.push(b':');
            if is_plain_number(value) {
                buffer.extend_from_slice(value);
            } else {
                json_string(buffer, value);
            }
        }
        buffer.extend_from_slice(b"}\n");
        self.out.spill()
    }

    /// Appends a note, if it stands for lost, missing or unparsed input.
    pub fn note(&mut self, kind: &NoteKind, line: u64, source: &str) {
        let buffer = self.out.buffer();
        match kind {
            NoteKind::Counted { .. } | NoteKind::End | NoteKind::IoUring | NoteKind::OnlyCpu => return,
            NoteKind::LostUncounted => {
                let _ = write!(buffer, "{{\"event\":\"lost_events\",\"source\":\"{source}\"");
            }
            NoteKind::Lost { count } => {
                let _ = write!(buffer, "{{\"event\":\"lost_events\",\"source\":\"{source}\",\"count\":{count}");
            }
            NoteKind::Missing { count } => {
                let _ = write!(buffer, "{{\"event\":\"missing_events\",\"source\":\"{source}\",\"count\":{count}");
            }
            NoteKind::Truncated => {
                let _ = write!(buffer, "{{\"event\":\"cut_off\",\"source\":\"{source}\"");
            }
            NoteKind::Unparsed { text, .. } => {
                let _ = write!(buffer, "{{\"event\":\"unparsed_line\",\"source\":\"{source}\",\"line\":{line}");
                bytes_field(buffer, "text", text);
            }
        }
        buffer.extend_from_slice(b"}\n");
    }

    pub fn finish(&mut self) -> Result<()> {
        self.out.commit()
    }
}

fn begin(buffer: &mut Vec<u8>, event: &Event, word: NameId, names: &Names, source: &str) {
    let _ = write!(buffer, "{{\"ts_ns\":{}", event.ts);
    if event.tid != UNKNOWN_TASK {
        number(buffer, "tid", event.tid);
    }
    if event.pid != UNKNOWN_TASK {
        number(buffer, "pid", event.pid);
    }
    name(buffer, "comm", event.comm, names);
    name(buffer, "event", word, names);
    buffer.extend_from_slice(b",\"source\":\"");
    buffer.extend_from_slice(source.as_bytes());
    buffer.push(b'"');
}

/// The fields of one event.
struct Object<'a> {
    buffer: &'a mut Vec<u8>,
    names: &'a Names,
}

impl LogWriter for Object<'_> {
    fn unsigned(&mut self, key: &'static str, value: u64) {
        number(self.buffer, key, value);
    }

    fn signed(&mut self, key: &'static str, value: i64) {
        number(self.buffer, key, value);
    }

    fn word(&mut self, key: &'static str, value: &str) {
        self.key(key);
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(value.as_bytes());
        self.buffer.push(b'"');
    }

    fn flag(&mut self, key: &'static str) {
        self.key(key);
        self.buffer.extend_from_slice(b"true");
    }

    fn address(&mut self, key: &'static str, value: u64) {
        let _ = write!(self.buffer, ",\"{key}\":\"0x{value:x}\"");
    }

    fn device(&mut self, key: &'static str, value: Dev) {
        let _ = write!(self.buffer, ",\"{key}\":\"{value}\"");
    }

    fn name(&mut self, key: &'static str, value: NameId) {
        name(self.buffer, key, value, self.names);
    }

    fn stack(&mut self, key: &'static str, value: NameId) {
        let raw = self.names.get(value);
        self.key(key);
        self.buffer.push(b'[');
        for (i, line) in crate::stacks::lines(raw).enumerate() {
            if i > 0 {
                self.buffer.push(b',');
            }
            json_string(self.buffer, line);
        }
        self.buffer.push(b']');
        exact_bytes(self.buffer, key, raw);
    }
}

impl Object<'_> {
    fn key(&mut self, key: &str) {
        self.buffer.push(b',');
        json_key(self.buffer, key);
    }
}

fn number(buffer: &mut Vec<u8>, key: &str, value: impl itoa::Integer) {
    buffer.push(b',');
    json_key(buffer, key);
    buffer.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn name(buffer: &mut Vec<u8>, key: &str, id: NameId, names: &Names) {
    if id.is_some() {
        bytes_field(buffer, key, names.get(id));
    }
}

/// Appends bytes as text, and in hex as well where the text does not determine them.
fn bytes_field(buffer: &mut Vec<u8>, key: &str, bytes: &[u8]) {
    buffer.push(b',');
    json_key(buffer, key);
    json_string(buffer, bytes);
    exact_bytes(buffer, key, bytes);
}

/// Appends bytes in hex, unless they are text.
fn exact_bytes(buffer: &mut Vec<u8>, key: &str, bytes: &[u8]) {
    if is_text(bytes) {
        return;
    }
    let _ = write!(buffer, ",\"{key}_hex\":\"");
    for byte in bytes {
        let _ = write!(buffer, "{byte:02x}");
    }
    buffer.push(b'"');
}

/// Returns whether text is an integer that a JSON reader prints with the same digits.
fn is_plain_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    (1..=18).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits.len() == 1 || digits[0] != b'0')
        && text != b"-0"
}
