//! Sources turn bytes into events. They never pair events.
//!
//! A new format is one file in this folder, which implements `Source`, and one line in `SOURCES`.

pub mod babeltrace;
mod batch;
mod binary;
pub mod biosnoop;
pub mod blkparse;
pub mod blktrace;
mod block_event;
pub mod bpftrace_json;
pub mod bpftrace_text;
mod cursor;
mod described;
mod dynamic_events;
mod escape;
mod event_names;
pub mod events_jsonl;
mod far_times;
pub mod ftrace_text;
pub mod function_graph;
pub(crate) mod low_level_log;
mod markers;
mod mends;
pub mod perf_data;
pub mod perf_script;
pub mod perf_trace;
pub mod perfetto;
mod reserved_names;
pub mod slower;
pub mod strace;
pub mod syncsnoop;
mod text_lines;
mod time_of_day;
mod torn;
pub mod trace_dat;
mod tracepoint_text;
pub mod tracepoints;
mod values;
mod write_events;

use std::sync::Arc;

pub use self::batch::{Batch, ENTRY_TIME, Extra, MAX_NOTE_BYTES, Note, NoteKind, OtherEvents, TORN_LINE, TornTimes};
pub use self::far_times::FarTimes;
pub use self::text_lines::Lines;
use self::text_lines::{last_newline, lines, trim_line};
use self::tracepoints::Machine;
use crate::error::{Error, Refused, Result, UnreadHead};
use crate::input_file::{Chunk, Input};

/// The formats that Syncline reads, in the order in which detection asks them.
pub static SOURCES: &[&dyn Source] = &[
    &trace_dat::TraceDatSource,
    &perf_data::PerfData,
    &blktrace::Blktrace,
    &perfetto::Perfetto,
    &bpftrace_json::BpftraceJson,
    &events_jsonl::EventsJsonl,
    &function_graph::FunctionGraph,
    &ftrace_text::FtraceText,
    &perf_script::PerfScript,
    &perf_trace::PerfTrace,
    &babeltrace::Babeltrace,
    &slower::Slower,
    &syncsnoop::SyncSnoop,
    &biosnoop::Biosnoop,
    &strace::Strace,
    &blkparse::Blkparse,
    &bpftrace_text::BpftraceText,
];

/// An input format.
///
/// A source detects its format, describes an input before it is read, and opens it. It holds no state: everything that belongs to one
/// input is in the `Reader` that `open` returns. No method may panic, whatever the bytes are.
///
/// The rest of the program knows a format only through this trait. Facts that hold for one format only belong in `describe`, and advice
/// in `explain`.
pub trait Source: Sync {
    /// Name of the format: the value of `--from`, and the column `source` of every output.
    ///
    /// It is unique among the sources, lower case and without spaces.
    fn name(&self) -> &'static str;

    /// The name that the format had before, which commands and manifests of older recordings still hold.
    fn earlier_name(&self) -> Option<&'static str> {
        None
    }

    /// Whether the time of an event may be damaged, because a line of the text was torn or joined to another one. See `FarTimes`.
    fn may_have_far_times(&self) -> bool {
        true
    }

    /// Returns whether an input looks like this format.
    ///
    /// `head` is the first 64 KiB of the decompressed input, or more if its first line is longer. It is not empty and may end within a record.
    /// The first source that returns true reads the input, so a source must not claim the formats that follow it in the list.
    fn sniff(&self, head: &[u8]) -> bool;

    /// Returns whether the blanks that all lines of a head begin with are of the format, which has recognized the head. Otherwise the text was
    /// pasted into another one, and it is read without them.
    fn has_indent(&self, _head: &[u8]) -> bool {
        false
    }

    /// Describes an input from its head and its path, before `open`.
    ///
    /// Whether inputs are pieces of one log, and whether they can be converted together, is decided by this description.
    /// The default fits a text format that is split into pieces at any line and says nothing about itself.
    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits::default()
    }

    /// Returns the time of the first line of an input, if lines that are no events have times with a date. Pieces are sorted by it.
    fn begin(&self, _head: &[u8]) -> Option<i64> {
        None
    }

    /// Returns whether an input holds nothing but the rest of a stack, which began in the input before it. Detection cannot know its format.
    fn is_rest_of_stack(&self, _head: &[u8]) -> bool {
        false
    }

    /// Returns the files that `open` reads together with the file at `path`, itself among them; empty if `open` reads only that file.
    ///
    /// Each of these files is an input only once, however many of them the user names. If the named file is empty, the first of its parts
    /// is opened instead. The method looks at names, not at contents: the file need not be of this format.
    fn parts(&self, _path: &str) -> Vec<String> {
        Vec::new()
    }

    /// Opens an input. The reader cuts it into chunks and holds their parser.
    ///
    /// `options` hold what the user says of the input. The input's own header takes precedence.
    ///
    /// # Errors
    /// `Error::Read` with a `Refused` if the input cannot be used, with the reason and with what to do about it.
    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader>;

    /// Whether the events of this format may be of writes (`SourceOptions::keep_writes`).
    fn may_hold_writes(&self) -> bool {
        false
    }

    /// Says which losses an input of this format would not show, in whole sentences. `inspect` prints it.
    fn hidden_losses(&self) -> &'static str;

    /// Explains a problem with an input in the terms of this format; `None` if the general message says it all.
    fn explain(&self, _problem: Problem) -> Option<Explanation> {
        None
    }
}

/// What is known of an input before it is read, and what its format implies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub struct InputTraits {
    /// The input is a log with a header of its own and not a piece of the input before it. It is read in parallel with the others.
    /// Default: it is a piece.
    pub is_standalone: bool,
    /// The input starts a log: it does not continue the log of the input before it, even where it is read after that one.
    /// True of every standalone input.
    pub starts_log: bool,
    /// Standalone inputs of this format may each hold a part of one recording, such as one CPU or one thread.
    /// Their records are then not duplicates of each other.
    pub is_part_of_recording: bool,
    /// The CPUs whose records this file holds. Files of different CPUs are parts of one recording. `None` if the format does not say,
    /// or if `Source::parts` has found the other files.
    pub cpus: Option<Vec<u32>>,
    /// The input is complete only if it holds a `NoteKind::End`.
    pub records_its_end: bool,
    /// Whether the ids of the input's events are process ids (true) or thread ids (false). `None`: the user says it, with `--pid-is`.
    pub ids_are_processes: Option<bool>,
    /// The input holds one thread. Two threads may record the same few lines, so a short input is not taken for a copy of another.
    pub is_single_thread: bool,
    /// An input without events is accepted next to others: its recorder writes a file even for a thread that does nothing of interest.
    pub may_be_without_events: bool,
    /// Clock of an input that does not name its clock, by the names of docs/reference/tables.md. `None` if it may be any.
    pub default_clock: Option<&'static str>,
}

impl InputTraits {
    /// Traits of an input that is a log of its own.
    pub fn standalone() -> Self {
        Self { is_standalone: true, starts_log: true, ..Self::default() }
    }
}

/// A problem with an input that a format may have a cause and a remedy for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The input has no event that Syncline uses. `lines` is 0 for a format without lines; `io_uring` is the number of uses of io_uring
    /// or Linux AIO.
    NoEvents { lines: u64, io_uring: u64 },
    /// Calls do not name their thread, so they cannot be distinguished from the calls of other inputs.
    NoThreadIds,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// What is wrong, following `PATH: `; `None` for the general message.
    pub message: Option<String>,
    /// What to do, as a clause in the imperative. For `NoThreadIds` it follows "convert it on its own, or ".
    pub hint: String,
}

/// An opened input: what cuts it into chunks, one at a time, and what parses them, several in parallel.
pub struct Reader {
    pub chunks: Box<dyn Chunks>,
    pub parse: Arc<dyn Parse>,
    /// Present if the meaning of a record depends on the records before it.
    pub stateful_pass: Option<Box<dyn StatefulPass>>,
    /// What the input says about itself: keys and values of `syncline_meta`.
    pub facts: Vec<(&'static str, String)>,
    /// Options for the pieces that follow this one, if its header sets them.
    pub piece_options: Option<SourceOptions>,
    /// The input says that its recorder follows the syncs of some file system, even if there is none in it.
    pub records_requests: bool,
    /// Its lines may be torn, so a time may have lost digits, or have those of two lines: see `FarTimes`.
    pub may_have_far_times: bool,
}

/// Cuts an input into chunks. It runs on one thread at a time.
pub trait Chunks: Send {
    /// Fills `chunk` with whole records. Returns false at the end of the input.
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool>;

    /// Bytes read from the input until now, for progress.
    fn consumed_bytes(&self) -> u64;
}

/// Parses chunks in parallel and in any order. It keeps no state between chunks.
pub trait Parse: Send + Sync {
    /// Appends the events of a chunk to an empty batch, in the order of the input, and counts the lines.
    fn parse(&self, chunk: &[u8], batch: &mut Batch);
}

/// Runs after `Parse`, in the order of the input and on one thread. It may keep state.
pub trait StatefulPass {
    /// Returns whether an input on the same clock, with this head, continues the input that this pass has read.
    fn is_continued_by(&self, _head: &[u8]) -> bool {
        true
    }

    /// Completes the events of a batch from what `Parse` left in `Batch::aside`.
    fn apply(&mut self, batch: &mut Batch);

    /// Adds the events that were left to the end of the input to an empty batch.
    fn finish(&mut self, _batch: &mut Batch) {}
}

/// What the user says about an input, and what its header adds to that.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub struct SourceOptions {
    /// ns per unit of the source's times.
    pub time_unit_ns: i64,
    /// The PID column holds process ids, not thread ids.
    pub pid_is_process: bool,
    /// Keep the tracer's event names and the fields that no report uses, for the low-level log.
    pub keep_extras: bool,
    /// Keep the events of writes, and no others of the ring buffer.
    pub keep_writes: bool,
    /// Keep operations on files that are no syncs.
    pub keep_file_ops: bool,
    pub escapes: Escapes,
    /// One of Syncline's scripts wrote the input, so `bytes` of a submit is the size of its bio.
    pub by_own_script: bool,
    /// The input was recorded on a stock kernel by one of Syncline's scripts.
    pub stock: Option<Stock>,
    /// The machine whose syscall numbers the input uses.
    pub machine: Option<Machine>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            time_unit_ns: 1,
            pid_is_process: false,
            keep_extras: false,
            keep_writes: false,
            keep_file_ops: false,
            escapes: Escapes::default(),
            by_own_script: false,
            stock: None,
            machine: None,
        }
    }
}

/// How an input escapes names that may hold any byte; its header says so.
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

/// The kind of script that recorded a stock kernel. Its request ids are made from thread and time, so an event belongs to a request if the
/// thread ran it during the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stock {
    /// Probes on kernel functions.
    Functions,
    /// Tracepoints: they record the bytes of bios, but no folios.
    Tracepoints,
}

/// Returns the source that has this name, or had it earlier.
///
/// # Errors
/// `Error::UnknownSource`.
pub fn by_name(sources: &[&'static dyn Source], name: &str) -> Result<&'static dyn Source> {
    sources
        .iter()
        .copied()
        .find(|source| source.name() == name || source.earlier_name() == Some(name))
        .ok_or_else(|| Error::UnknownSource { name: name.to_owned(), known: names(sources) })
}

/// Key of the unit of the times in `syncline_meta`, in ns. An input states one so coarse that nothing can be said of what overlaps.
const TIME_RESOLUTION: &str = "time_resolution_ns";

/// Lines of other text that a log may begin with.
const MAX_FOREIGN_LINES: usize = 24;
/// After more of them than this, one line that looks like a log's is not enough.
const FEW_FOREIGN_LINES: usize = 4;
/// Lines of a text in no format that are compared with each format.
const MAX_COMPARED_LINES: usize = 200;

/// Detects the format of an input by its head, from its first line on.
pub fn sniff(sources: &[&'static dyn Source], head: &[u8]) -> Option<&'static dyn Source> {
    sources.iter().copied().find(|source| source.sniff(head))
}

/// Detects the format of an input by its head.
///
/// # Errors
/// `Error::Empty`, `Error::Foreign`.
pub fn detect(sources: &[&'static dyn Source], path: &str, head: &[u8]) -> Result<&'static dyn Source> {
    if head.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    recognize(sources, head).ok_or_else(|| foreign(sources, path, head))
}

/// Detects the format of an input by its head. Other text may come before a log.
pub fn recognize(sources: &[&'static dyn Source], head: &[u8]) -> Option<&'static dyn Source> {
    let after_text = |head: &[u8]| sniff(sources, head).or_else(|| sniff_after_text(sources, head));
    // Marks where lines were left out are counted as unparsed, as other text is.
    after_text(head).or_else(|| mends::has_marks(head).then(|| after_text(&mends::without_marks(head))).flatten())
}

/// A pasted log may begin with a prompt, a comment or the rest of a line, which is then counted as unparsed, or with a letter. Two lines must
/// follow it, because a single one may be an example in other text.
fn sniff_after_text(sources: &[&'static dyn Source], head: &[u8]) -> Option<&'static dyn Source> {
    let has_two =
        |rest: &[u8]| rest.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty()).nth(1).is_some();
    let rests = memchr::memchr_iter(b'\n', head).map(|newline| &head[newline + 1..]).filter(|rest| has_two(rest));
    let mut numbered = rests.take(MAX_FOREIGN_LINES).enumerate();
    numbered.find_map(|(number, rest)| {
        let source = sniff(sources, rest)?;
        let next = memchr::memchr(b'\n', rest).map_or(&rest[..0], |newline| &rest[newline + 1..]);
        (number < FEW_FOREIGN_LINES || source.sniff(next)).then_some(source)
    })
}

/// The formats that lines of a text look like, the likeliest one first.
fn likely(sources: &[&'static dyn Source], head: &[u8]) -> Vec<&'static str> {
    let whole = lines(head).filter(|line| !line.trim_ascii().is_empty()).take(MAX_COMPARED_LINES);
    let mut counts = vec![0; sources.len()];
    for line in whole {
        let line = [line, b"\n"].concat();
        for (count, source) in counts.iter_mut().zip(sources) {
            *count += usize::from(source.sniff(&line));
        }
    }
    let mut found: Vec<_> = counts.into_iter().zip(sources).filter(|(count, _)| *count > 0).collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.into_iter().map(|(_, source)| source.name()).collect()
}

fn foreign(sources: &[&'static dyn Source], path: &str, head: &[u8]) -> Error {
    let is_known = |text: &[u8]| recognize(sources, text).is_some();
    let mend = mends::find(head, is_known);
    // A text that a mend makes readable is no output of another tool.
    let unread = mend.is_none().then(|| {
        let message = format!("{path} is in no format that Syncline reads");
        Box::new(UnreadHead { message, head: head.into(), is_detected: false, other_text: Box::default() })
    });
    let is_text = !head.contains(&0);
    let likely = if is_text { likely(sources, head) } else { Vec::new() };
    let (detail, hint) = match (mend, &likely[..]) {
        (Some(mend), _) => (format!(": it is {}", mend.what), mend.hint.to_owned()),
        (None, [first, second, ..]) => (
            format!("; some of its lines look like those of {first}, and some like those of {second}"),
            format!("read it as one of them: `--from {first}`, or else `--from {second}`"),
        ),
        (None, [first]) => (
            format!("; only some of its lines look like those of {first}"),
            format!("read it as that: `--from {first}`"),
        ),
        (None, []) => (
            describe_foreign(head),
            format!(
                "if it is of a format that was not recognized, name the format with `--from`: {}; \
                 docs/reference/formats.md shows an example of each; to record syncs instead: \
                 `sudo syncline record --for 30s --and-report`",
                names(sources)
            ),
        ),
    };
    Error::Foreign { path: path.to_owned(), detail, hint, unread }
}

/// Returns what to do about a text that a source has recognized by its header alone, because the numbers of its rows have decimal commas.
/// `rows` are those that it did not parse.
pub(crate) fn decimal_commas_hint(source: &dyn Source, rows: &[u8]) -> Option<&'static str> {
    let mut texts = std::iter::once(rows).chain(lines(rows).take(MAX_COMPARED_LINES));
    texts
        .find_map(|text| {
            let text = [text, b"\n"].concat();
            let is_known = |text: &[u8]| source.sniff(text);
            if is_known(&text) { None } else { mends::decimal_commas(&text, is_known) }
        })
        .map(|mend| mend.hint)
}

fn names(sources: &[&'static dyn Source]) -> String {
    sources.iter().map(|source| source.name()).collect::<Vec<_>>().join(", ")
}

/// Returns the first of the files that are read together with a file whose name says that it is one of several.
/// It can be read instead of the file.
pub fn first_part(sources: &[&'static dyn Source], path: &str) -> Option<String> {
    sources.iter().find_map(|source| source.parts(path).into_iter().next())
}

/// Refuses an archive: the lines of the files in it would be read as those of one recording.
///
/// # Errors
/// `Error::Read`.
pub fn refuse_archive(path: &str, head: &[u8]) -> Result<()> {
    let (what, unpack) = match head {
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..] => ("an ar archive", "ar x"),
        [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', ..] => ("a cpio archive", "cpio -i <"),
        _ if is_tar(head) => ("a tar archive", "tar xf"),
        _ => return Ok(()),
    };
    let hint = format!("unpack it (`{unpack}`), and name the logs in it");
    Err(Error::Read { path: path.to_owned(), source: Refused::error(format!("it is {what}"), hint) })
}

/// Whether a file begins with the header of a member of a tar archive, whose sum is in it.
fn is_tar(head: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(header) = head.get(..512) else { return false };
    let text = header[SUM].split(|&b| b == 0).next().unwrap_or_default();
    let stored = std::str::from_utf8(text).ok().and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    let sum = header.iter().enumerate().map(|(at, &byte)| u32::from(if SUM.contains(&at) { b' ' } else { byte })).sum();
    header[0] != 0 && stored == Some(sum)
}

/// Says what a file of an unknown format seems to be, or how it begins.
fn describe_foreign(head: &[u8]) -> String {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF program"),
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
    if rustix::process::geteuid().is_root() {
        // The file may be one that only root can read, and the reader of the message somebody else.
        return "; as root, its content is not shown".into();
    }
    let line = head.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or(head);
    let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
    if shown.chars().any(|c| c.is_control() && c != '\t' || c == '\u{fffd}') {
        ": it is binary".into()
    } else {
        format!("; it begins with `{shown}`")
    }
}
