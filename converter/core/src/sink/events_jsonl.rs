//! The low-level log: one JSON object an event, in the order of the input. `source/events_jsonl.rs` reads it.

use std::io::Write as _;
use std::path::Path;

use super::text::{json_key, json_string};
use crate::error::Result;
use crate::event::probe::Probe;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, Op, UNKNOWN_TASK};
use crate::low_level_log::SEVERAL_RECORDINGS;
use crate::names::{NameId, Names, is_text};
use crate::output::Output;
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
        fields(buffer, event, &batch.names);
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

fn fields(buffer: &mut Vec<u8>, event: &Event, names: &Names) {
    match event.kind {
        Kind::CallEnter { op, stack, path, call_only } => {
            write_op(buffer, op);
            if call_only {
                buffer.extend_from_slice(b",\"call_only\":true");
            }
            if stack.is_some() {
                stack_field(buffer, names.get(stack));
            }
            name(buffer, "path", path, names);
        }
        Kind::CallExit { op, ret, stack, untimed, entry_lost } => {
            write_op(buffer, op);
            if let Some(ret) = ret {
                number(buffer, "ret", ret);
            }
            if untimed {
                buffer.extend_from_slice(b",\"untimed\":true");
            }
            if entry_lost {
                buffer.extend_from_slice(b",\"entry_lost\":true");
            }
            if stack.is_some() {
                stack_field(buffer, names.get(stack));
            }
        }
        Kind::SyncStart { id: NO_ID, fs, ino, dev, datasync, .. } => {
            number(buffer, "datasync", u8::from(datasync));
            device(buffer, dev);
            if ino != 0 {
                number(buffer, "ino", ino);
            }
            name(buffer, "fs", fs, names);
        }
        Kind::SyncStart { id, start, end, path, fs, ino, dev, datasync, by_thread } => {
            number(buffer, "id", id);
            if by_thread {
                buffer.extend_from_slice(b",\"id_of\":\"thread\"");
            }
            number(buffer, "start", start);
            number(buffer, "end", end);
            number(buffer, "datasync", u8::from(datasync));
            device(buffer, dev);
            if ino != 0 {
                number(buffer, "ino", ino);
            }
            name(buffer, "fs", fs, names);
            name(buffer, "path", path, names);
        }
        Kind::BioAddFolio { id, bio, offset, len, dev, ino } => {
            number(buffer, "id", id);
            address(buffer, bio);
            number(buffer, "start", offset);
            number(buffer, "len", len);
            device(buffer, dev);
            if ino != 0 {
                number(buffer, "ino", ino);
            }
        }
        // The field `opf` of the tracer has the flags.
        Kind::BioSubmit { id, bio, sector, dev, background: _, bytes, flags: _ } => {
            number(buffer, "id", id);
            if bytes != 0 {
                buffer.extend_from_slice(b",\"bytes_of\":\"bio\"");
            }
            address(buffer, bio);
            device(buffer, dev);
            if sector != NO_SECTOR {
                number(buffer, "sector", sector);
            }
        }
        // The field `status` of the tracer has the error.
        Kind::BioComplete { bio, sector, dev, error: _ } => {
            // 0: the source has no address.
            if bio != 0 {
                address(buffer, bio);
            }
            device(buffer, dev);
            if sector != NO_SECTOR {
                number(buffer, "sector", sector);
            }
        }
        Kind::WbStart { id } | Kind::WbEnd { id } => number(buffer, "id", id),
        Kind::WaitStart { id, wait: _, transaction } | Kind::WaitEnd { id, wait: _, transaction } => {
            number(buffer, "id", id);
            if transaction != 0 {
                number(buffer, "transaction", transaction);
            }
        }
        Kind::CommitStart { dev, transaction }
        | Kind::CommitEnd { dev, transaction }
        | Kind::CommitStep { dev, transaction, .. } => {
            device(buffer, dev);
            number(buffer, "transaction", transaction);
        }
        // Their names do not say which bytes they hold, if these are not UTF-8.
        Kind::Probe(Probe::SyncEnter { path, .. }) => name(buffer, "path", path, names),
        // The text of a mark is an extra field, and so are the fields of a probe and of the scheduler.
        Kind::Torn { id, bio, fact } => {
            if id != NO_ID {
                number(buffer, "id", id);
            }
            if bio != 0 {
                address(buffer, bio);
            }
            buffer.extend_from_slice(b",\"fact\":\"");
            buffer.extend_from_slice(fact.name().as_bytes());
            buffer.push(b'"');
        }
        Kind::Probe(_) | Kind::Thread(_) | Kind::Mark { .. } | Kind::Other => {}
        // The name of the event names the file system.
        Kind::SyncEnd { id: NO_ID, ret, fs: _, dev, ino, datasync } => {
            number(buffer, "ret", ret);
            device(buffer, dev);
            if ino != 0 {
                number(buffer, "ino", ino);
            }
            if let Some(datasync) = datasync {
                number(buffer, "datasync", u8::from(datasync));
            }
        }
        // The fields `rwbs` and `error` of the tracer have the rest.
        Kind::BlockDone { dev, sector, .. } => {
            device(buffer, dev);
            number(buffer, "sector", sector);
        }
        Kind::BlockSubmit { dev, sector, bytes, .. }
        | Kind::BlockInsert { dev, sector, bytes, .. }
        | Kind::BlockIssue { dev, sector, bytes, .. }
        | Kind::BlockComplete { dev, sector, bytes, .. } => {
            device(buffer, dev);
            if sector != NO_SECTOR {
                number(buffer, "sector", sector);
            }
            number(buffer, "bytes", bytes);
        }
        Kind::BlockRemap { dev, sector, bytes, from_dev, from_sector, flags: _ } => {
            device(buffer, dev);
            if sector != NO_SECTOR {
                number(buffer, "sector", sector);
            }
            number(buffer, "bytes", bytes);
            device_field(buffer, "from_dev", from_dev);
            number(buffer, "from_sector", from_sector);
        }
        Kind::SyncEnd { id, ret, .. } => {
            number(buffer, "id", id);
            number(buffer, "ret", ret);
        }
    }
}

/// Appends the op of a write. The event name does not imply it: a write is a sync call only by its flags or those of its file.
fn write_op(buffer: &mut Vec<u8>, op: Op) {
    if op == Op::Write {
        buffer.extend_from_slice(b",\"op\":\"write\"");
    }
}

fn number(buffer: &mut Vec<u8>, key: &str, value: impl itoa::Integer) {
    buffer.push(b',');
    json_key(buffer, key);
    buffer.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn address(buffer: &mut Vec<u8>, bio: u64) {
    let _ = write!(buffer, ",\"bio\":\"0x{bio:x}\"");
}

fn device(buffer: &mut Vec<u8>, dev: Dev) {
    device_field(buffer, "dev", dev);
}

fn device_field(buffer: &mut Vec<u8>, key: &str, dev: Dev) {
    if dev.is_known() {
        let _ = write!(buffer, ",\"{key}\":\"{dev}\"");
    }
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
    if !is_text(bytes) {
        let _ = write!(buffer, ",\"{key}_hex\":\"");
        hex(buffer, bytes);
        buffer.push(b'"');
    }
}

fn stack_field(buffer: &mut Vec<u8>, raw: &[u8]) {
    buffer.extend_from_slice(b",\"stack\":[");
    for (i, line) in crate::stacks::lines(raw).enumerate() {
        if i > 0 {
            buffer.push(b',');
        }
        json_string(buffer, line);
    }
    buffer.push(b']');
    if !is_text(raw) {
        buffer.extend_from_slice(b",\"stack_hex\":\"");
        hex(buffer, raw);
        buffer.push(b'"');
    }
}

fn hex(buffer: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(buffer, "{byte:02x}");
    }
}

/// Returns whether text is an integer that a JSON reader prints with the same digits.
fn is_plain_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    (1..=18).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && (digits.len() == 1 || digits[0] != b'0')
        && text != b"-0"
}
