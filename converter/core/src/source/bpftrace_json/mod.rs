//! The output of `bpftrace -f json`: one JSON object per line, for what a script prints and for bpftrace's own messages.
//!
//! ```text
//! {"type": "attached_probes", "data": {"probes": 27}}
//! {"type": "printf", "data": "252 53 wl fdatasync\n    fdatasync+60\n"}
//! {"type": "lost_events", "data": {"events": 3}}
//! {"type": "value", "data": ["track_event",["name","fsync"],["type","BEGIN"],["ts",252],["pid",53],["tid",53]]}
//! {"type": "map", "data": {"@events": {"fsync": 3, "start": 3}}}
//! ```
//!
//! The output of `printf` is joined to the text that bpftrace would write without `-f json`, and `bpftrace_text` reads that text. Tuples of
//! `track_event`, as scripts for btetto print them, are read by `btetto`.

mod btetto;
mod json;

use std::any::Any;
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use self::json::{Shape, Value};
use super::bpftrace_text::{self, BpftraceText, introduce, own_header};
use super::cursor::{Cursor, whole};
use super::{
    Batch, Explanation, InputTraits, Lines, NoteKind, Parse, Problem, Reader, Source, SourceOptions, StatefulPass,
    last_newline, torn,
};
use crate::error::Result;
use crate::event::{Kind, UNKNOWN_TASK};
use crate::input_file::Input;

pub const NAME: &str = "bpftrace-json";

/// The exact start and end of the most frequent line.
const PRINTF: &[u8] = b"{\"type\": \"printf\", \"data\": \"";
const PRINTF_END: &[u8] = b"\"}";

/// The first bytes of an object, with or without a blank after them.
const BEGIN: &[u8] = b"{\"type\":";

const TORN: &str = "it is not a complete object of `bpftrace -f json`";

pub struct BpftraceJson;

impl Source for BpftraceJson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "bpftrace reports events that its buffers lose, but not probes that the kernel skips: a lost event may \
         leave no gap, so nothing here can say that none is missing. Only the counts at the end of a \
         log by `syncline record` show it."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut at = 0;
        for line in head.split(|&b| b == b'\n') {
            if line.starts_with(b"{") {
                // In a log as text a program may print such a line, too.
                let mut before = Batch::default();
                BpftraceText.parse_lines(&SourceOptions::default(), &head[..at], &mut before);
                let is_output = Object::of(line).is_some_and(|object| object.kind().is_some());
                // A torn line does not say what the others are.
                if is_output || before.has_whole_events() || json::parse(line).is_some() {
                    return is_output && !before.has_whole_events();
                }
            }
            at += line.len() + 1;
        }
        false
    }

    fn describe(&self, input: &Input) -> InputTraits {
        let head = input.head();
        let first = head.split(|&b| b == b'\n').find_map(Object::of);
        let text = bpftrace_text::describe(&printed(head));
        let starts_log = text.starts_log || first.is_some_and(|object| object.name == b"attached_probes");
        InputTraits { is_standalone: starts_log, starts_log, ids_are_processes: ids_are_processes(head), ..text }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let mut options = *options;
        let text = printed(input.head());
        let facts = introduce(&text, &mut options);
        let follows_syncs = own_header(&text).is_some();
        let mut reader = Reader::of_text(cut, Arc::new(Parser { options }), input);
        reader.stateful_pass = Some(Box::new(Counts { in_hex: false }));
        reader.records_requests = follows_syncs;
        reader.facts = facts;
        reader.piece_options = Some(options);
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        explain(problem)
    }
}

/// As `Source::explain`, for everything that bpftrace records.
pub(super) fn explain(problem: Problem) -> Option<Explanation> {
    (problem == Problem::NoThreadIds)
        .then(|| Explanation { message: None, hint: "record it with thread ids: `tid` in bpftrace's tuples".into() })
}

/// As `InputTraits::ids_are_processes`. The text of a printf does not say what its ids are, and events that are no part of a sync may have
/// other ids.
fn ids_are_processes(head: &[u8]) -> Option<bool> {
    let mut batch = Batch::default();
    let values = head.split(|&b| b == b'\n').filter(|line| memmem::find(line, b"\"track_event\"").is_some());
    let values = values.collect::<Vec<_>>().join(&b'\n');
    Parser { options: SourceOptions::default() }.parse(&values, &mut batch);
    let mut events = batch.events.iter().filter(|event| event.kind != Kind::Other).peekable();
    events.peek()?;
    if events.clone().any(|event| event.tid != UNKNOWN_TASK) {
        return Some(false);
    }
    events.any(|event| event.pid != UNKNOWN_TASK).then_some(true)
}

/// Returns the text that the lines of a head print.
fn printed(head: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(head.len());
    let end = memrchr(b'\n', head).unwrap_or(head.len());
    for line in head[..end].split(|&b| b == b'\n') {
        // A torn line prints nothing.
        let before = text.len();
        if append_printed(line, &mut text).is_none() {
            text.truncate(before);
        }
    }
    text
}

/// The kind of an output line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Printed text.
    Text,
    /// Printed text without its newline.
    Join,
    Value,
    Lost,
    Map,
    /// Output without an event.
    Ignored,
}

/// The start of a line, `{"type": "NAME"`, and the rest of it.
struct Object<'a> {
    name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Object<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(line);
        for token in [b"{".as_slice(), b"\"type\"", b":", b"\""] {
            cursor.literal(token)?;
            // Other programs write no spaces.
            if token != b"\"" {
                cursor.rest = cursor.rest.trim_ascii_start();
            }
        }
        let (name, rest) = cursor.rest.split_at(memchr(b'"', cursor.rest)?);
        Some(Self { name, rest: &rest[1..] })
    }

    fn kind(&self) -> Option<Output> {
        Some(match self.name {
            b"printf" | b"cat" | b"time" | b"syscall" => Output::Text,
            b"join" => Output::Join,
            b"value" => Output::Value,
            b"lost_events" => Output::Lost,
            b"map" => Output::Map,
            b"attached_probes" | b"hist" | b"stats" | b"tseries" | b"helper_error" | b"runtime_error" | b"warnf" => {
                Output::Ignored
            }
            _ => return None,
        })
    }

    /// Returns the printed text after its first quote. The rest of the line may be absent.
    fn text(&self) -> Option<&'a [u8]> {
        self.kind().filter(|kind| matches!(kind, Output::Text | Output::Join))?;
        let mut cursor = Cursor::new(self.rest);
        for token in [b",".as_slice(), b"\"data\"", b":"] {
            cursor.rest = cursor.rest.trim_ascii_start();
            cursor.literal(token)?;
        }
        cursor.rest.trim_ascii_start().strip_prefix(b"\"")
    }
}

/// Appends the text that a line prints. Returns whether a character of it is written as a number; `None` if the line prints no text.
#[inline]
fn append_printed(line: &[u8], text: &mut Vec<u8>) -> Option<bool> {
    if let Some(inner) = line.strip_prefix(PRINTF).and_then(|rest| rest.strip_suffix(PRINTF_END)) {
        return json::unescape(inner, text);
    }
    let object = Object::of(line)?;
    let inner = object.text()?.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end().strip_suffix(b"\"")?;
    let numbered = json::unescape(inner, text)?;
    if object.kind() == Some(Output::Join) {
        text.push(b'\n');
    }
    Some(numbered)
}

/// Returns where a record is certain to end: a printed line may continue in the next object, and a stack on the next line.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |before, after| starts_record(after) && ends_with_newline(before))
}

/// Returns whether a new record begins here: not a stack line or another continuation.
fn starts_record(line: &[u8]) -> bool {
    match line.strip_prefix(PRINTF).or_else(|| Object::of(line)?.text()) {
        Some(text) => {
            text.first().is_some_and(|first| !matches!(first, b' ' | b'\t' | b'\\' | b'[' | b'(' | b']' | b'"'))
        }
        None => Object::of(line).is_some_and(|object| object.kind() == Some(Output::Value)),
    }
}

/// Returns whether the text printed up to here ends with a newline.
fn ends_with_newline(mut lines: &[u8]) -> bool {
    let mut text = Vec::new();
    loop {
        let begin = memrchr(b'\n', lines).map_or(0, |newline| newline + 1);
        if append_printed(&lines[begin..], &mut text).is_some()
            && let Some(last) = text.last()
        {
            return *last == b'\n';
        }
        if begin == 0 {
            return true;
        }
        text.clear();
        lines = &lines[..begin - 1];
    }
}

/// A number of lost events, which may be in hex.
struct Lost {
    note: usize,
    digits: Box<[u8]>,
    /// Earlier in the chunk, a character is written as a number.
    after_numbered: bool,
}

/// State that `Parser` passes to `Counts`; its memory is reused.
#[derive(Default)]
struct Deferred {
    /// Printed text that was not parsed yet.
    text: Vec<u8>,
    /// For each line of `text`, the line of the log in which it begins.
    lines: Vec<u32>,
    lost: Vec<Lost>,
    numbered: bool,
}

/// After bpftrace 0.24 or later has written a character as a number in hex, it writes all later counts in hex too: it never resets the
/// format of its stream.
struct Counts {
    in_hex: bool,
}

impl StatefulPass for Counts {
    fn apply(&mut self, batch: &mut Batch) {
        let Some(deferred) = batch.deferred.as_mut().and_then(|deferred| deferred.downcast_mut::<Deferred>()) else {
            return;
        };
        for lost in &deferred.lost {
            let decimal = whole(&lost.digits, Cursor::decimal).filter(|_| !self.in_hex && !lost.after_numbered);
            let hex = || whole(&[b"0x", &*lost.digits].concat(), Cursor::hex);
            batch.notes[lost.note].kind = match decimal.or_else(hex) {
                Some(count) => NoteKind::Lost { count },
                None => NoteKind::LostUncounted,
            };
        }
        self.in_hex |= deferred.numbered;
    }
}

struct Parser {
    options: SourceOptions,
}

impl Parse for Parser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let deferred =
            batch.deferred.take().and_then(|deferred: Box<dyn Any + Send>| deferred.downcast::<Deferred>().ok());
        let mut deferred = deferred.unwrap_or_default();
        deferred.text.clear();
        deferred.lines.clear();
        deferred.lost.clear();
        deferred.numbered = false;
        let mut chunk_parser = ChunkParser { options: &self.options, batch, deferred: &mut deferred };
        let mut at = 0;
        while at < chunk.len() {
            let end = memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |n| at + n);
            chunk_parser.batch.lines += 1;
            chunk_parser.line(&chunk[at..end]);
            at = end + 1;
        }
        // The last line of a log may be torn.
        let end = chunk_parser.deferred.text.len();
        chunk_parser.parse_until(end);
        batch.deferred = Some(deferred);
    }
}

struct ChunkParser<'a, 'b> {
    options: &'a SourceOptions,
    batch: &'b mut Batch,
    deferred: &'b mut Deferred,
}

impl ChunkParser<'_, '_> {
    #[inline]
    fn line(&mut self, line: &[u8]) {
        let from = self.deferred.text.len();
        if let Some(numbered) = append_printed(line, &mut self.deferred.text) {
            self.deferred.numbered |= numbered;
            self.record_line_starts(from);
        } else {
            self.deferred.text.truncate(from);
            self.other_line(line.trim_ascii());
        }
    }

    /// Records the log line in which each line of the text from `from` on begins.
    #[inline]
    fn record_line_starts(&mut self, from: usize) {
        let Deferred { text, lines, .. } = &mut *self.deferred;
        let line = self.batch.lines as u32;
        if from < text.len() && from.checked_sub(1).is_none_or(|before| text[before] == b'\n') {
            lines.push(line);
        }
        let begun = memchr_iter(b'\n', &text[from..]).filter(|newline| from + newline + 1 < text.len());
        lines.extend(begun.map(|_| line));
    }

    fn other_line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        if !line.starts_with(b"{") {
            // Warnings of bpftrace, and output of a command.
            return self.add_line(line);
        }
        if let Err(why) = self.object(line) {
            self.parse_complete_lines();
            self.batch.unparsed(line, why);
            if why == TORN {
                self.torn_line(line);
            }
        }
    }

    /// A line that is not an object: its end is missing, or other lines are joined to it.
    #[cold]
    fn torn_line(&mut self, line: &[u8]) {
        // Quotes in a text are escaped, so none holds it.
        let mut begins: Vec<usize> = memmem::find_iter(line, BEGIN).filter(|&at| at > 0).collect();
        if begins.is_empty() && line.ends_with(b"}") {
            return;
        }
        begins.push(line.len());
        let mut from = 0;
        for to in begins {
            self.torn(&line[from..to]);
            from = to;
        }
    }

    /// Says of a torn line what it was about, as far as it names that.
    fn torn(&mut self, line: &[u8]) {
        let object = Object::of(line);
        match object.as_ref().map(Object::kind) {
            Some(Some(Output::Text | Output::Join)) => {
                let mut text = Vec::new();
                if let Some(inner) = object.as_ref().and_then(Object::text) {
                    // An escape that is cut off hides what is before it too.
                    let inner = inner.split(|&b| b == b'"').next().unwrap_or_default();
                    let end = memrchr(b'\\', inner).filter(|at| at + 6 > inner.len()).unwrap_or(inner.len());
                    if json::unescape(inner, &mut text).is_none() {
                        text.clear();
                        _ = json::unescape(&inner[..end], &mut text);
                    }
                }
                BpftraceText::torn_line(self.options, &text, self.batch);
            }
            Some(Some(Output::Value)) => torn::json_line(&btetto::TORN_KEYS, line, self.options, self.batch),
            // Not even the kind of output is whole.
            None if line.starts_with(b"{") => self.batch.torn_unknown(self.options),
            // These hold no event.
            Some(Some(Output::Lost | Output::Map | Output::Ignored) | None) | None => {}
        }
    }

    fn object(&mut self, line: &[u8]) -> std::result::Result<(), &'static str> {
        let (object, numbered) = json::parse(line).ok_or(TORN)?;
        let kind =
            Object::of(line).ok_or("it is not an object of `bpftrace -f json`, which begins with its `type`")?.kind();
        // The state before this line counts.
        let after_numbered = self.deferred.numbered;
        self.deferred.numbered |= numbered;
        match kind {
            Some(Output::Value) => {
                let value = object.get(b"data").ok_or(TORN)?;
                self.parse_complete_lines();
                btetto::event(self.options, value, self.batch)
            }
            Some(Output::Lost) => self.lost(&object, after_numbered).ok_or("it does not say how many events were lost"),
            Some(Output::Map) => {
                self.event_counts(object.get(b"data").ok_or(TORN)?);
                Ok(())
            }
            Some(Output::Ignored) => Ok(()),
            Some(Output::Text | Output::Join) => Err("its `data` is not a text"),
            None => Err("its `type` is not one that Syncline knows"),
        }
    }

    /// Parses `{"events": N}`. From 0.24 on, `count` precedes it.
    fn lost(&mut self, object: &Value<'_>, after_numbered: bool) -> Option<()> {
        let count = object.get(b"data")?.get(b"events")?;
        self.parse_complete_lines();
        if object.get(b"count").is_some() {
            let lost = Lost { note: self.batch.notes.len(), digits: count.raw.into(), after_numbered };
            self.deferred.lost.push(lost);
            self.batch.note(NoteKind::LostUncounted);
        } else {
            self.batch.note(NoteKind::Lost { count: count.number()? });
        }
        Some(())
    }

    /// Parses `{"@events": {"NAME": N}}` by converting it to lines of text.
    fn event_counts(&mut self, maps: &Value<'_>) {
        let Some(Value { shape: Shape::Object(counts), .. }) = maps.get(b"@events") else { return };
        for (name, count) in counts {
            if let Some(count) = count.number().filter(|_| !name.contains(&b'\n')) {
                self.add_line(&[b"@events[", &**name, b"]: ", count.to_string().as_bytes()].concat());
            }
        }
    }

    /// Adds a complete line, even within a printed line.
    fn add_line(&mut self, line: &[u8]) {
        let is_open = self.deferred.text.last().is_some_and(|&last| last != b'\n');
        if is_open {
            self.parse_complete_lines();
            self.parse_text(line, &[self.batch.lines as u32]);
            return;
        }
        let from = self.deferred.text.len();
        self.deferred.text.extend_from_slice(line);
        self.deferred.text.push(b'\n');
        self.record_line_starts(from);
    }

    /// Parses the complete lines of the printed text.
    fn parse_complete_lines(&mut self) {
        let end = memrchr(b'\n', &self.deferred.text).map_or(0, |newline| newline + 1);
        self.parse_until(end);
    }

    fn parse_until(&mut self, end: usize) {
        if end == 0 {
            return;
        }
        let text = std::mem::take(&mut self.deferred.text);
        let lines = std::mem::take(&mut self.deferred.lines);
        self.parse_text(&text[..end], &lines);
        self.deferred.text = text;
        self.deferred.lines = lines;
        self.deferred.text.drain(..end);
        // The start of an incomplete line.
        let last = self.deferred.lines.pop().filter(|_| !self.deferred.text.is_empty());
        self.deferred.lines.clear();
        self.deferred.lines.extend(last);
    }

    /// `lines` holds, for each line of the text, the line of the log in which it begins.
    fn parse_text(&mut self, text: &[u8], lines: &[u32]) {
        let (events, notes) = (self.batch.events.len(), self.batch.notes.len());
        let line = std::mem::take(&mut self.batch.lines);
        BpftraceText.parse_lines(self.options, text, self.batch);
        let log_line = |line: u64| lines[line as usize - 1];
        for event in &mut self.batch.events[events..] {
            event.line = log_line(u64::from(event.line));
        }
        for note in &mut self.batch.notes[notes..] {
            note.line = u64::from(log_line(note.line));
        }
        self.batch.lines = line;
    }
}
