//! Sources turn bytes into events; they never pair. A new format is one file here and one line in `SOURCES`.

pub mod blkparse;
pub mod blktrace;
pub mod bpftrace_json;
mod cursor;
mod escape;
mod event_names;
pub mod events_jsonl;
pub mod ftrace_text;
pub mod perf_script;
pub mod strace;
pub mod thesis;
pub mod trace_dat;
mod tracepoint_text;
pub mod tracepoints;

use std::any::Any;
use std::sync::Arc;

use self::tracepoints::Machine;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::input::{Chunk, ChunkReader, Input};
use crate::names::{NameId, Names};

/// A script for kernels without the patch: its ids are made of thread and time, so what has them is what the thread did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stock {
    /// At functions of the kernel.
    Functions,
    /// At tracepoints: it tells the bytes of bios, and no page cache.
    Tracepoints,
}

/// What the caller says of an input that its text does not tell.
#[derive(Clone, Copy, Debug)]
pub struct SourceOptions {
    /// ns per unit of the source's times.
    pub time_unit_ns: i64,
    /// The PID column is a process, not a thread.
    pub pid_is_process: bool,
    /// The tracer's words and fields that no report uses are wanted too (for the low-level log).
    pub keep_extras: bool,
    pub escapes: Escapes,
    /// It was recorded without the patch, by one of our own scripts.
    pub stock: Option<Stock>,
    /// Whose numbers of syscalls the input tells; its header says so.
    pub machine: Option<Machine>,
}

/// How an input writes names that may hold anything; its header says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Escapes {
    pub comm_hex: bool,
    pub path: PathEscape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathEscape {
    #[default]
    None,
    Octal,
    Hex,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            time_unit_ns: 1,
            pid_is_process: false,
            keep_extras: false,
            escapes: Escapes::default(),
            stock: None,
            machine: None,
        }
    }
}

/// A field of an event that has no place in `Event`.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    pub event: u32,
    pub key: NameId,
    pub value: NameId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A line that is not of the format; the text is cut at `MAX_NOTE_BYTES`.
    Unparsed { text: Box<[u8]>, why: &'static str },
    /// The tracer says that it lost events here.
    Lost { count: u64 },
    /// It does not say how many.
    LostUncounted,
    /// The recorder has counted so many events of this kind.
    Counted { kind: usize, count: u64 },
    /// The recorder says that this is the end.
    End,
    /// So many that a recorder had counted were not in the log from which a low-level log was made.
    Missing { count: u64 },
    /// That log ended before its recorder had.
    Truncated,
    /// Something was handed to io_uring, which the recorder does not see into.
    IoUring,
}

/// Something in the input that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How many events of the batch come before it.
    pub after: u32,
    /// Line within the chunk, from 1; 0 where there are no lines.
    pub line: u64,
    pub kind: NoteKind,
}

pub const MAX_NOTE_BYTES: usize = 4096;

/// What one chunk held. Names are the batch's own until the run takes them over.
#[derive(Default)]
pub struct Batch {
    pub names: Names,
    pub events: Vec<Event>,
    /// The tracer's own word for each event, with `keep_extras`.
    pub words: Vec<NameId>,
    pub extras: Vec<Extra>,
    pub notes: Vec<Note>,
    pub lines: u64,
    /// Events that nobody asked for: `Kind::Other` without `keep_extras`.
    pub others: u64,
    /// The same by the tracer's word, where that is wanted; it stays so when the batch is cleared.
    pub other_events: Option<OtherEvents>,
    /// No event that comes later is older than this, where the source knows.
    pub until: Option<i64>,
    /// What `Parse` leaves to `StatefulPass`; its memory is used again.
    pub aside: Option<Box<dyn Any + Send>>,
}

/// How many there are of each word. A broken log may have any number of words: those that are too many are not told apart.
#[derive(Debug, Default)]
pub struct OtherEvents {
    names: Names,
    /// By the ids of the names.
    counts: Vec<u64>,
}

const MAX_OTHERS: usize = 4096;

impl OtherEvents {
    fn add(&mut self, word: &[u8], count: u64) {
        let id = if self.counts.len() < MAX_OTHERS { self.names.intern(word) } else { self.names.find(word) };
        let at = id.0 as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    pub fn join(&mut self, other: &Self) {
        for (id, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.add(other.names.get(NameId(id as u32)), *count);
        }
    }

    /// The most frequent first; the empty word is all that were too many.
    pub fn sorted(&self) -> Vec<(String, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut sorted: Vec<_> =
            counts.map(|(id, count)| (self.names.text(NameId(id as u32)).into_owned(), *count)).collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sorted
    }
}

impl Batch {
    pub fn clear(&mut self) {
        self.names.clear();
        self.events.clear();
        self.words.clear();
        self.extras.clear();
        self.notes.clear();
        self.lines = 0;
        self.others = 0;
        if let Some(named) = &mut self.other_events {
            *named = OtherEvents::default();
        }
        self.until = None;
    }

    /// Counts an event that nobody asked for.
    #[inline]
    fn other<W: AsRef<[u8]>>(&mut self, word: impl FnOnce() -> W) {
        self.others += 1;
        if let Some(named) = &mut self.other_events {
            named.add(word().as_ref(), 1);
        }
    }

    /// The same, of a word that is a name of the batch.
    #[inline]
    fn other_name(&mut self, word: NameId) {
        let Self { names, others, other_events, .. } = self;
        *others += 1;
        if let Some(named) = other_events {
            named.add(names.get(word), 1);
        }
    }

    fn note(&mut self, kind: NoteKind) {
        self.note_at(self.events.len() as u32, kind);
    }

    fn note_at(&mut self, after: u32, kind: NoteKind) {
        self.notes.push(Note { after, line: self.lines, kind });
    }

    fn unparsed(&mut self, line: &[u8], why: &'static str) {
        let text = line[..line.len().min(MAX_NOTE_BYTES)].into();
        self.note(NoteKind::Unparsed { text, why });
    }
}

/// A format of input.
pub trait Source: Sync {
    /// As in `--from`.
    fn name(&self) -> &'static str;

    /// Whether the first bytes of an input look like this format. Sources are asked in the order of `SOURCES`.
    fn sniff(&self, head: &[u8]) -> bool;

    /// Whether the ids of an input are processes, where its format tells.
    fn pid_is_process(&self, _head: &[u8]) -> Option<bool> {
        None
    }

    /// Whether an input that begins so is a log of its own, and no piece of the one before it.
    fn is_standalone(&self, _head: &[u8]) -> bool {
        false
    }

    /// The CPUs whose records a file holds that is not read along with others of its name: several such files may be parts of one recording.
    fn cpus_of(&self, _input: &Input) -> Option<Vec<u32>> {
        None
    }

    /// Whether inputs that stand alone may each hold a part of one recording, as that of one CPU or of one thread.
    fn lies_in_parts(&self) -> bool {
        false
    }

    /// Whether an input that begins so is no piece that goes on where another ended.
    fn begins(&self, head: &[u8]) -> bool {
        self.is_standalone(head)
    }

    /// Whether an input that begins so tells its end, by `NoteKind::End`.
    fn says_its_end(&self, _head: &[u8]) -> bool {
        false
    }

    /// Files that are read as one with that of this name, itself among them; `open` takes them in, and they are no inputs of their own.
    fn parts(&self, _path: &str) -> Vec<String> {
        Vec::new()
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader>;
}

/// An input taken apart: what cuts it into chunks, one at a time, and what parses them, several at once.
pub struct Reader {
    pub chunks: Box<dyn Chunks>,
    pub parse: Arc<dyn Parse>,
    /// Where the meaning of a record depends on those before it.
    pub settle: Option<Box<dyn StatefulPass>>,
    /// What the input says of itself: keys and values of `syncline_meta`.
    pub facts: Vec<(&'static str, String)>,
    /// How the pieces are written that follow this one, where it says so.
    pub pieces: Option<SourceOptions>,
}

pub trait Chunks: Send {
    /// Fills `chunk` with whole records; false at the end.
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool>;

    /// Bytes taken from the input so far, for progress.
    fn consumed_bytes(&self) -> u64;
}

/// Keeps no state between chunks: they are parsed in parallel, in any order.
pub trait Parse: Send + Sync {
    /// Appends the events of a chunk to an empty batch, in the order of the input. Counts the lines.
    fn parse(&self, chunk: &[u8], batch: &mut Batch);
}

/// Follows `Parse` in the order of the input, on one thread, and may keep state.
pub trait StatefulPass {
    /// Whether an input that begins so, on the same clock, goes on where this one has ended.
    fn is_continued_by(&self, _head: &[u8]) -> bool {
        true
    }

    /// Makes the events of a batch from what `Parse` has left aside.
    fn settle(&mut self, batch: &mut Batch);
}

/// A format whose records are lines.
pub trait Lines: Sync {
    /// After how many bytes of `bytes` a record surely ends, so that what follows can be parsed on its own; `None` if nowhere.
    fn cut(&self, bytes: &[u8]) -> Option<usize>;

    /// As `Parse::parse`.
    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch);
}

/// The lines of a text, without what ends them.
fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (line, rest) = match memchr::memchr(b'\n', text) {
            Some(newline) => (&text[..newline], &text[newline + 1..]),
            None if text.is_empty() => return None,
            None => (text, &text[text.len()..]),
        };
        text = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Threaded the last newline that parts what stands before it from what follows, as `parts` says of the two.
fn last_newline(bytes: &[u8], parts: impl Fn(&[u8], &[u8]) -> bool) -> Option<usize> {
    memchr::memrchr_iter(b'\n', bytes)
        .find(|&newline| parts(&bytes[..newline], &bytes[newline + 1..]))
        .map(|newline| newline + 1)
}

/// As `Lines::cut`.
type Cut = Box<dyn Fn(&[u8]) -> Option<usize> + Send>;

struct LineChunks {
    cut: Cut,
    reader: ChunkReader,
}

impl Chunks for LineChunks {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.reader.next(chunk, &self.cut)
    }

    fn consumed_bytes(&self) -> u64 {
        self.reader.input().consumed_bytes()
    }
}

struct LineParse {
    lines: &'static dyn Lines,
    options: SourceOptions,
}

impl Parse for LineParse {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        self.lines.parse_lines(&self.options, chunk, batch);
    }
}

impl Reader {
    pub fn of_lines(lines: &'static dyn Lines, input: Input, options: &SourceOptions) -> Self {
        Self::of_text(|bytes| lines.cut(bytes), Arc::new(LineParse { lines, options: *options }), input)
    }

    /// `cut` as in `Lines`.
    fn of_text(cut: impl Fn(&[u8]) -> Option<usize> + Send + 'static, parse: Arc<dyn Parse>, input: Input) -> Self {
        let chunks = Box::new(LineChunks { cut: Box::new(cut), reader: ChunkReader::new(input) });
        Self { chunks, parse, settle: None, facts: Vec::new(), pieces: None }
    }
}

pub static SOURCES: &[&dyn Source] = &[
    &trace_dat::TraceDatSource,
    &blktrace::Blktrace,
    &bpftrace_json::BpftraceJson,
    &events_jsonl::EventsJsonl,
    &ftrace_text::FtraceText,
    &perf_script::PerfScript,
    &strace::Strace,
    &blkparse::Blkparse,
    &thesis::Thesis,
];

/// The file to look at in place of one that is empty, if its name says that it is one of several.
pub fn instead_of_empty(path: &str) -> Option<String> {
    blktrace::parts(path).into_iter().next()
}

pub fn by_name(name: &str) -> Result<&'static dyn Source> {
    SOURCES.iter().copied().find(|s| s.name() == name).ok_or_else(|| Error::UnknownSource {
        name: name.to_owned(),
        known: SOURCES.iter().map(|s| s.name()).collect::<Vec<_>>().join(", "),
    })
}

pub fn sniff(path: &str, head: &[u8]) -> Result<&'static dyn Source> {
    if head.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    SOURCES
        .iter()
        .copied()
        .find(|s| s.sniff(head))
        .ok_or_else(|| Error::Foreign { path: path.to_owned(), detail: describe_head(head) })
}

/// A few words on what a foreign file seems to be, and its first line.
fn describe_head(head: &[u8]) -> String {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF program"),
        (b"PERFILE2", "a perf.data"),
        (b"PAR1", "a Parquet file"),
        (b"\x89PNG", "a PNG picture"),
        (b"PK\x03\x04", "a zip archive"),
        (b"SQLite format 3", "an SQLite database"),
        (b"ts_ns,", "a high-level log"),
    ];
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return format!(": it looks like {what}");
    }
    if head.starts_with(b"\x0a") && std::str::from_utf8(&head[..head.len().min(256)]).is_err() {
        return ": it looks like a Perfetto trace".into();
    }
    let line = head.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or(head);
    let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
    if shown.chars().any(|c| c.is_control() && c != '\t' || c == '\u{fffd}') {
        ": it is binary".into()
    } else {
        format!("; it begins with `{shown}`")
    }
}
