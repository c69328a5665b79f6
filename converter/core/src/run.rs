//! One run: inputs through source, order and assemble into a sink, on all cores.
//!
//! Workers take chunks of the input in turn and parse them; the calling thread puts the batches back in order, pairs and writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::assemble::Assemble;
use crate::error::{Error, Result};
use crate::event::{Event, Kind};
use crate::input::{Chunk, ChunkReader, Input};
use crate::losses::{Losses, Reason};
use crate::names::{NameId, Names, text_of};
use crate::order::Reorder;
use crate::place::{Place, Places};
use crate::sink::behind::Behind;
use crate::sink::columns::{RequestsParquet, TablesFolder};
use crate::sink::events_jsonl::EventsJsonl;
use crate::sink::perfetto::PerfettoTrace;
use crate::sink::rows::{Csv, Jsonl};
use crate::sink::samples::{By, Folded, PerfScript, Weight};
use crate::sink::{Facts, Mark, Sink};
use crate::source::{self, Batch, NoteKind, Source, SourceOptions};
use crate::stack::Stacks;

/// Version of the tables in docs/tables.md and of the trace layout.
pub const SCHEMA_VERSION: u32 = 1;

/// Unparsed lines that are shown whole.
const SHOWN_LINES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Perfetto,
    PerfettoGzip,
    Parquet,
    Tables,
    Csv,
    Jsonl,
    EventsJsonl,
    PerfScript,
    Folded,
}

impl Format {
    /// As in `--to`, with the endings that choose it; a longer ending stands before a shorter one.
    pub const ALL: &'static [(&'static str, &'static [&'static str], Self)] = &[
        ("pftrace.gz", &[".pftrace.gz", ".perfetto-trace.gz"], Self::PerfettoGzip),
        ("pftrace", &[".pftrace", ".perfetto-trace"], Self::Perfetto),
        ("tables", &["/"], Self::Tables),
        ("parquet", &[".parquet"], Self::Parquet),
        ("csv", &[".csv"], Self::Csv),
        ("events.jsonl", &[".events.jsonl"], Self::EventsJsonl),
        ("jsonl", &[".jsonl"], Self::Jsonl),
        ("perf", &[".perf"], Self::PerfScript),
        ("folded", &[".folded"], Self::Folded),
    ];

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(n, ..)| *n == name).map(|(.., format)| *format)
    }

    pub fn of_path(path: &str) -> Option<Self> {
        if Path::new(path).is_dir() {
            return Some(Self::Tables);
        }
        Self::ALL.iter().find(|(_, endings, _)| endings.iter().any(|e| path.ends_with(e))).map(|(.., format)| *format)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxLoss {
    Count(u64),
    /// Of events and losses together.
    Share(f64),
}

pub struct Options {
    /// `-` is standard input. Several are read one after the other, as pieces of one log.
    pub inputs: Vec<String>,
    /// By name, or told from the input.
    pub source: Option<String>,
    pub source_options: SourceOptions,
    pub window_ns: i64,
    pub marks: Vec<Mark>,
    pub max_loss: Option<MaxLoss>,
    pub weight: Weight,
    pub by: By,
    /// Stacks as Perfetto callstacks too, which its engine and UI know from v53 on.
    pub callstacks: bool,
    /// 0: as many as there are cores.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            source: None,
            source_options: SourceOptions::default(),
            window_ns: crate::order::DEFAULT_WINDOW_NS,
            marks: Vec::new(),
            max_loss: None,
            weight: Weight::Count,
            by: By::Stack,
            callstacks: false,
            workers: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub read_bytes: u64,
    pub total_bytes: Option<u64>,
    pub events: u64,
}

/// What was done, for the caller to tell.
#[derive(Debug, Default)]
pub struct Summary {
    pub source: &'static str,
    pub lines: u64,
    pub events: [u64; Kind::COUNT],
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    pub losses: Losses,
    /// The first unparsed lines: `file:line: text (why)`.
    pub unparsed: Vec<String>,
    /// Requests that the output has no place for.
    pub left_out: u64,
}

impl Summary {
    pub fn event_count(&self) -> u64 {
        self.events.iter().sum()
    }
}

/// Converts the inputs to `output`, which appears whole or not at all. `progress` may stop it by returning false.
pub fn convert(
    options: &Options,
    output: &str,
    format: Option<Format>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let path = PathBuf::from(output);
    let format = format.or_else(|| Format::of_path(output)).ok_or_else(|| Error::UnknownSink { path: path.clone() })?;
    if output == "-" && matches!(format, Format::Parquet | Format::Tables | Format::PerfettoGzip) {
        let hint = if format == Format::Tables { "give a folder: -o DIR/" } else { "give a name with -o" };
        return Err(Error::NotHere { path, message: "this format needs a file", hint: hint.into() });
    }
    for input in &options.inputs {
        if let (Ok(a), Ok(b)) = (Path::new(input).canonicalize(), path.canonicalize())
            && a == b
        {
            let hint = "give another name with -o".into();
            return Err(Error::NotHere { path, message: "it is an input of the same command", hint });
        }
    }
    // Inputs first, so that a wrong name leaves no output behind.
    let inputs = open_inputs(options)?;
    if format == Format::EventsJsonl {
        let mut log = EventsJsonl::create(&path)?;
        return run(options, inputs, &mut Through::Log(&mut log), progress);
    }
    let sink: Box<dyn Sink + Send> = match format {
        Format::Perfetto | Format::PerfettoGzip => {
            Box::new(PerfettoTrace::create(&path, format == Format::PerfettoGzip, options.callstacks)?)
        }
        Format::Parquet => Box::new(RequestsParquet::create(&path)?),
        Format::Tables => Box::new(TablesFolder::create(&path)?),
        Format::Csv => Box::new(Csv::create(&path)?),
        Format::Jsonl => Box::new(Jsonl::create(&path)?),
        Format::PerfScript => Box::new(PerfScript::create(&path, options.weight, options.by)?),
        Format::Folded => Box::new(Folded::create(&path, options.weight, options.by)?),
        Format::EventsJsonl => unreachable!("handled above"),
    };
    convert_into(options, inputs, &mut Behind::new(sink)?, progress)
}

type OpenInput = (Input, &'static dyn Source);

pub fn open_inputs(options: &Options) -> Result<Vec<OpenInput>> {
    options
        .inputs
        .iter()
        .map(|path| {
            let input = Input::open(path)?;
            with_source(options, input)
        })
        .collect()
}

pub fn with_source(options: &Options, input: Input) -> Result<OpenInput> {
    let source = match &options.source {
        Some(name) => {
            let source = source::by_name(name)?;
            if input.head().is_empty() {
                return Err(Error::Empty { path: input.path });
            }
            source
        }
        None => source::sniff(&input.path, input.head())?,
    };
    Ok((input, source))
}

/// As `convert`, into any sink.
pub fn convert_into(
    options: &Options,
    inputs: Vec<OpenInput>,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let told = inputs.iter().find_map(|(input, source)| source.pid_is_process(input.head()));
    let pid_is_process = told.unwrap_or(options.source_options.pid_is_process);
    let places = Places { files: inputs.iter().map(|(input, _)| input.path.clone()).collect() };
    let mut pairing = Pairing {
        names: Names::default(),
        stacks: Stacks::default(),
        reorder: Reorder::new(options.window_ns),
        assemble: Assemble::new(pid_is_process, places),
        begun: false,
        map: Vec::new(),
        sink,
    };
    run(options, inputs, &mut Through::Pairing(&mut pairing), progress)
}

struct Pairing<'a> {
    names: Names,
    stacks: Stacks,
    reorder: Reorder,
    assemble: Assemble,
    begun: bool,
    /// Names of the batch at hand as names of the run; NONE where not yet asked.
    map: Vec<NameId>,
    sink: &'a mut dyn Sink,
}

enum Through<'a, 'b> {
    Pairing(&'a mut Pairing<'b>),
    /// Events go straight to the low-level log, in the order of the input.
    Log(&'a mut EventsJsonl),
}

impl Pairing<'_> {
    fn batch(&mut self, batch: &Batch, file: usize, lines_before: u64) -> Result<()> {
        self.map.clear();
        self.map.resize(batch.names.len(), NameId::NONE);
        for event in &batch.events {
            let event = self.adopt(*event, batch);
            let place = Place::new(file, lines_before + u64::from(event.line));
            if self.reorder.push(event, place) {
                self.assemble.late(&event, place, self.sink)?;
            }
        }
        let Self { names, reorder, assemble, begun, sink, .. } = self;
        reorder.hand_on_ready(|event, place| Self::event(&event, place, names, assemble, begun, *sink))
    }

    /// The same event with the run's names. A stack is folded here: from now on it is compared and shown, not printed as it came.
    fn adopt(&mut self, mut event: Event, batch: &Batch) -> Event {
        let Self { names, stacks, map, .. } = self;
        let mut adopt = |id: &mut NameId| {
            if id.is_some() {
                let slot = &mut map[id.0 as usize];
                if !slot.is_some() {
                    *slot = names.intern(batch.names.get(*id));
                }
                *id = *slot;
            }
        };
        adopt(&mut event.comm);
        match &mut event.kind {
            Kind::SyncStart { path, fs, .. } => {
                adopt(path);
                adopt(fs);
            }
            Kind::CallEnter { stack, .. } if stack.is_some() => *stack = stacks.fold(batch.names.get(*stack), names),
            _ => {}
        }
        event
    }

    fn event(
        event: &Event,
        place: Place,
        names: &Names,
        assemble: &mut Assemble,
        begun: &mut bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if !*begun {
            *begun = true;
            sink.begin(event.ts)?;
        }
        assemble.event(event, place, names, sink)
    }

    fn finish(&mut self) -> Result<()> {
        let Self { names, reorder, assemble, begun, sink, .. } = self;
        reorder.hand_on_all(|event, place| Self::event(&event, place, names, assemble, begun, *sink))?;
        assemble.finish(names, *sink)
    }
}

fn run(
    options: &Options,
    inputs: Vec<OpenInput>,
    through: &mut Through<'_, '_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let mut summary = Summary::default();
    let mut source_options = options.source_options;
    source_options.keep_extras = matches!(through, Through::Log(_));
    let total_bytes = inputs.iter().map(|(input, _)| input.total_bytes).sum::<Option<u64>>();
    let mut read_before = 0;
    let mut sources = Vec::new();
    let mut last_event = None;
    let mut shown = Instant::now();
    for (file, (input, source)) in inputs.into_iter().enumerate() {
        let path = input.path.clone();
        if !sources.contains(&source.name()) {
            sources.push(source.name());
        }
        let (lines_before, events_before) = (summary.lines, summary.event_count());
        let mut read_bytes = 0;
        let mut unparsed_here = None;
        parse_chunks(options.workers, source, &source_options, input, |parsed| {
            let Some((batch, consumed)) = parsed else {
                let now = Progress { read_bytes: read_before + read_bytes, total_bytes, events: summary.event_count() };
                return if progress(now) { Ok(()) } else { Err(Error::Interrupted) };
            };
            read_bytes = consumed;
            take_notes(&mut summary, batch, &path, lines_before, last_event, through, &mut unparsed_here)?;
            last_event = batch.events.last().map(|e| e.ts).or(last_event);
            for event in &batch.events {
                summary.events[event.kind.index()] += 1;
                summary.first_ts = Some(summary.first_ts.map_or(event.ts, |ts| ts.min(event.ts)));
                summary.last_ts = Some(summary.last_ts.map_or(event.ts, |ts| ts.max(event.ts)));
            }
            match through {
                Through::Pairing(pairing) => pairing.batch(batch, file, summary.lines - lines_before)?,
                Through::Log(log) => log.batch(batch, source.name(), summary.lines - lines_before)?,
            }
            summary.lines += batch.lines;
            if shown.elapsed() > Duration::from_millis(50) {
                shown = Instant::now();
                let events = summary.event_count();
                if !progress(Progress { read_bytes: read_before + consumed, total_bytes, events }) {
                    return Err(Error::Interrupted);
                }
            }
            Ok(())
        })?;
        read_before += read_bytes;
        if summary.event_count() == events_before {
            return Err(Error::NoEvents {
                path,
                lines: summary.lines - lines_before,
                detail: unparsed_here.map_or(String::new(), |line| format!("; the first that is none: {line}")),
            });
        }
    }
    summary.source = sources.first().copied().unwrap_or_default();
    match through {
        Through::Log(log) => {
            check_loss(options, &summary)?;
            log.finish()?;
        }
        Through::Pairing(pairing) => {
            pairing.finish()?;
            merge_losses(&mut summary.losses, &pairing.assemble.losses);
            check_loss(options, &summary)?;
            let facts = facts(options, &summary, &sources);
            pairing.sink.finish(&facts, &summary.losses, &pairing.names)?;
            summary.left_out = pairing.sink.left_out();
        }
    }
    Ok(summary)
}

/// Counts what in a batch is no event.
fn take_notes(
    summary: &mut Summary,
    batch: &Batch,
    path: &str,
    lines_before: u64,
    last_event: Option<i64>,
    through: &mut Through<'_, '_>,
    first_unparsed: &mut Option<String>,
) -> Result<()> {
    for note in &batch.notes {
        // A low-level log tells the line of the log that it was made from.
        let told = matches!(note.kind, NoteKind::Unparsed { why, .. } if why == source::events_jsonl::UNPARSED_BEFORE);
        let line = if told { note.line } else { summary.lines - lines_before + note.line };
        match &note.kind {
            NoteKind::Lost { count } => {
                // It has no time of its own: that of the event before it.
                let before = (note.after as usize).checked_sub(1).and_then(|i| batch.events.get(i));
                let ts = before.map(|e| e.ts).or(last_event);
                let tally = summary.losses.add(Reason::LostByTracer, *count, ts);
                let text = format!("{path}:{line}: Lost {count} events");
                if let (Through::Pairing(pairing), Some(ts)) = (&mut *through, ts)
                    && pairing.begun
                {
                    pairing.sink.loss(Reason::LostByTracer, ts, &text)?;
                }
                tally.example.get_or_insert(text);
            }
            NoteKind::Unparsed { text, why } => {
                let tally = summary.losses.add(Reason::UnparsedLine, 1, None);
                let wanted =
                    summary.unparsed.len() < SHOWN_LINES || tally.example.is_none() || first_unparsed.is_none();
                if wanted {
                    let shown = shorten(&text_of(text));
                    let example = format!("{path}:{line}: {shown}");
                    if summary.unparsed.len() < SHOWN_LINES {
                        summary.unparsed.push(format!("{example} ({why})"));
                    }
                    first_unparsed.get_or_insert_with(|| format!("{example} ({why})"));
                    tally.example.get_or_insert(example);
                }
            }
        }
    }
    Ok(())
}

/// A line as it can stand in a message.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 160;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{b7}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

fn merge_losses(into: &mut Losses, from: &Losses) {
    for (reason, tally) in from.iter() {
        let merged = into.add(reason, tally.count, tally.first_ts);
        merged.last_ts = merged.last_ts.max(tally.last_ts);
        if merged.example.is_none() {
            merged.example.clone_from(&tally.example);
        }
    }
}

fn check_loss(options: &Options, summary: &Summary) -> Result<()> {
    let Some(max) = options.max_loss else { return Ok(()) };
    let lost = summary.losses.total();
    let total = summary.event_count().saturating_add(lost);
    let (allowed, limit) = match max {
        MaxLoss::Count(n) => (n as f64, n.to_string()),
        MaxLoss::Share(share) => (share * total as f64, format!("{}%", share * 100.0)),
    };
    if lost as f64 <= allowed {
        return Ok(());
    }
    let worst: Vec<String> = summary
        .losses
        .iter()
        .filter(|(r, _)| r.severity() == crate::losses::Severity::Loss)
        .map(|(reason, tally)| format!("{} {}", tally.count, reason.name()))
        .collect();
    Err(Error::TooMuchLoss { lost, total, limit, detail: format!(": {}", worst.join(", ")) })
}

fn facts(options: &Options, summary: &Summary, sources: &[&str]) -> Facts {
    let names: Vec<String> = options
        .inputs
        .iter()
        .map(|path| Path::new(path).file_name().map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned()))
        .collect();
    let optional = |ts: Option<i64>| ts.map_or_else(String::new, |ts| ts.to_string());
    let mut meta = vec![
        ("schema_version", SCHEMA_VERSION.to_string()),
        ("syncline_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("source", sources.join(", ")),
        ("input", names.join(", ")),
        ("pid_is", if options.source_options.pid_is_process { "process" } else { "thread" }.to_owned()),
        ("time_unit", if options.source_options.time_unit_ns == 1000 { "us" } else { "ns" }.to_owned()),
        ("clock", "boottime".to_owned()),
        ("first_ts_ns", optional(summary.first_ts)),
        ("last_ts_ns", optional(summary.last_ts)),
        ("lines", summary.lines.to_string()),
        ("events", summary.event_count().to_string()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect::<Vec<_>>();
    meta.extend(
        Kind::NAMES.iter().zip(summary.events).map(|(name, count)| (format!("events.{name}"), count.to_string())),
    );
    let mut marks = options.marks.clone();
    marks.sort_by_key(|m| m.ts);
    for i in 0..marks.len() {
        let until = marks.get(i + 1).map(|next| next.ts).or(summary.last_ts);
        let mark = &mut marks[i];
        if mark.dur.is_none() {
            mark.dur = until.map(|until| (until - mark.ts).max(0));
        }
    }
    Facts { first_ts: summary.first_ts, last_ts: summary.last_ts, meta, marks }
}

/// What the workers of one input share.
struct Workers {
    reader: Mutex<(ChunkReader, u64)>,
    used: Mutex<Receiver<Batch>>,
    source: &'static dyn Source,
    options: SourceOptions,
}

/// A chunk's number, its events and the bytes read so far.
type Parsed = (u64, Result<(Batch, u64)>);

impl Workers {
    fn work(&self, done: &SyncSender<Parsed>) {
        let mut chunk = Chunk::default();
        loop {
            // A batch first: as many chunks are on their way as there are batches, however long one of them takes.
            let Ok(mut batch) = self.used.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
            let (number, consumed) = {
                let mut guard = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
                let (chunks, next) = &mut *guard;
                let number = *next;
                *next += 1;
                match chunks.next(&mut chunk, |bytes| self.source.cut(bytes)) {
                    Ok(false) => return,
                    Ok(true) => (number, chunks.input().consumed_bytes()),
                    Err(error) => {
                        let _ = done.send((number, Err(error)));
                        return;
                    }
                }
            };
            batch.clear();
            self.source.parse(&self.options, chunk.bytes(), &mut batch);
            if done.send((number, Ok((batch, consumed)))).is_err() {
                return;
            }
        }
    }
}

/// Parses an input on several threads and hands its batches to `take` in the order of the input, with the bytes read so far;
/// `None` says that nothing has come for a while.
///
/// When `take` fails this returns at once: a worker that waits for a slow pipe is left to itself.
fn parse_chunks(
    workers: usize,
    source: &'static dyn Source,
    options: &SourceOptions,
    input: Input,
    mut take: impl FnMut(Option<(&Batch, u64)>) -> Result<()>,
) -> Result<()> {
    const PATIENCE: Duration = Duration::from_millis(100);
    let workers = if workers == 0 { thread::available_parallelism().map_or(1, usize::from) } else { workers };
    let (done, parsed): (SyncSender<Parsed>, Receiver<Parsed>) = sync_channel(workers);
    let (give_back, used): (Sender<Batch>, Receiver<Batch>) = channel();
    for _ in 0..=workers * 2 {
        let _ = give_back.send(Batch::default());
    }
    let reader = Mutex::new((ChunkReader::new(input), 0));
    let shared = Arc::new(Workers { reader, used: Mutex::new(used), source, options: *options });
    let threads: Vec<_> = (0..workers)
        .map(|_| {
            let (shared, done) = (Arc::clone(&shared), done.clone());
            thread::spawn(move || shared.work(&done))
        })
        .collect();
    drop(done);
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    loop {
        match parsed.recv_timeout(PATIENCE) {
            Ok((number, result)) => {
                waiting.insert(number, result);
            }
            Err(RecvTimeoutError::Timeout) => take(None)?,
            Err(RecvTimeoutError::Disconnected) => {
                let failed = threads.into_iter().any(|t| t.join().is_err());
                return if failed { Err(Error::Reader) } else { Ok(()) };
            }
        }
        while let Some(result) = waiting.remove(&next) {
            next += 1;
            let (batch, consumed) = result?;
            take(Some((&batch, consumed)))?;
            let _ = give_back.send(batch);
        }
    }
}
