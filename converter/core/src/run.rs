//! One run: inputs through source, order and assemble into a sink, on all cores.
//!
//! Workers take chunks of the input in turn and parse them; the calling thread puts the batches back in order, pairs and writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::dedup::{Dedup, Deduplicated};
use crate::error::{Error, Result};
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input::open::{open_inputs, pid_is_process};
use crate::input::tally::{InputTally, apart};
use crate::location::{Location, Locations};
use crate::losses::Losses;
use crate::merge::reorder::Reorder;
use crate::merge::{
    Clock, InputHints, Merge, MergeStep, MergedBatch, OpenInput, assumed_clock, logs_of, recordings_of, whole_logs_of,
};
use crate::names::{NameId, Names};
use crate::pair::{Out, Pairer};
use crate::sink::columns::{RequestsParquet, TablesFolder};
use crate::sink::events_jsonl::EventsJsonl;
use crate::sink::filtered::{Filter, Filtered};
use crate::sink::perfetto::PerfettoTrace;
use crate::sink::rows::{Csv, Jsonl};
use crate::sink::samples::{By, Folded, PerfScript, Weight};
use crate::sink::threaded::Threaded;
use crate::sink::{Mark, RunFacts, Sink};
use crate::source::{Batch, OtherEvents, SourceOptions};
use crate::stacks::Stacks;
use crate::stacks::symbols::Symbols;
use crate::thread_table::ThreadTable;

/// Version of the tables in docs/tables.md and of the trace layout.
pub const SCHEMA_VERSION: u32 = 2;

/// So often the caller is told how far it is.
const SHOW_EVERY: Duration = Duration::from_millis(50);

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
    /// What is known of inputs and does not stand in them, by their paths.
    pub hints: HashMap<String, InputHints>,
    pub marks: Vec<Mark>,
    pub max_loss: Option<MaxLoss>,
    /// Of which requests the output is.
    pub filter: Filter,
    pub tasks: ThreadTable,
    pub symbols: Symbols,
    pub weight: Weight,
    pub by: By,
    /// Stacks as Perfetto callstacks too, which its engine and UI know from v53 on.
    pub callstacks: bool,
    /// Events that no report uses are counted by the tracer's words.
    pub count_other_events: bool,
    /// The inputs are looked at alone, and will be read beside others.
    pub one_of_several: bool,
    /// 0: as many as there are cores.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            source: None,
            source_options: SourceOptions::default(),
            window_ns: crate::merge::reorder::DEFAULT_WINDOW_NS,
            hints: HashMap::new(),
            marks: Vec::new(),
            max_loss: None,
            filter: Filter::default(),
            tasks: ThreadTable::default(),
            symbols: Symbols::default(),
            weight: Weight::Count,
            by: By::Stack,
            callstacks: false,
            count_other_events: false,
            one_of_several: false,
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

/// One input, as it was read.
#[derive(Clone, Debug)]
pub struct InputRead {
    pub path: String,
    pub source: &'static str,
    /// It is a log of its own, and no piece of the one before it.
    pub is_standalone: bool,
    pub clock: Clock,
    pub lines: u64,
    /// Without those that nobody asked for.
    pub events: u64,
}

/// What was done, for the caller to tell.
#[derive(Debug, Default)]
pub struct Summary {
    pub source: &'static str,
    pub inputs: Vec<InputRead>,
    pub lines: u64,
    pub events: [u64; Kind::COUNT],
    /// Those of `Kind::Other` by the tracer's words, where they were to be counted.
    pub others: Option<OtherEvents>,
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    pub losses: Losses,
    /// The first unparsed lines: `file:line: text (why)`.
    pub unparsed: Vec<String>,
    /// Requests that were made of them, before any was filtered out; None for the low-level log.
    pub requests: Option<u64>,
    /// Pairs of inputs, of which the one has ended so many ns before the other begins.
    pub apart: Vec<(String, String, i64)>,
    /// Requests that the output has no place for.
    pub left_out: u64,
    /// Which requests were wanted, in words; empty for all.
    pub filter: String,
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
        let recordings = recordings_of(&inputs);
        if recordings.iter().any(|recording| Some(recording) != recordings.first()) {
            log.of_several();
        }
        return run(options, inputs, &mut Through::Log(&mut Log::new(&mut log)), progress);
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
    let behind = Threaded::new(sink)?;
    if options.filter.is_empty() {
        let mut sink = behind;
        convert_into(options, inputs, &mut sink, progress)
    } else {
        convert_into(options, inputs, &mut Filtered::new(behind, options.filter.clone()), progress)
    }
}

/// As `convert`, into any sink.
pub fn convert_into(
    options: &Options,
    inputs: Vec<OpenInput>,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let pid_is_process = pid_is_process(&inputs, options.source_options.pid_is_process)?;
    let files = inputs.iter().map(|(input, _)| input.path.clone()).collect();
    let locations = Arc::new(Locations { files, logs: recordings_of(&inputs) });
    let mut names = Names::default();
    let process_names = options.tasks.names().map(|(pid, name)| (pid, names.intern(name.as_bytes()))).collect();
    let mut pairing = Pairing {
        names,
        stacks: Stacks::default(),
        reorder: Reorder::default(),
        dedup: Dedup::new(Arc::clone(&locations), !pid_is_process),
        pairer: Pairer::new(pid_is_process, locations, process_names),
        ids_are_processes: pid_is_process,
        begun: false,
        map: Vec::new(),
        tasks: &options.tasks,
        symbols: &options.symbols,
        sink,
    };
    run(options, inputs, &mut Through::Pairing(&mut pairing), progress)
}

struct Pairing<'a> {
    names: Names,
    stacks: Stacks,
    reorder: Reorder,
    dedup: Dedup,
    pairer: Pairer,
    ids_are_processes: bool,
    begun: bool,
    /// Names of the batch at hand as names of the run; NONE where not yet asked.
    map: Vec<NameId>,
    tasks: &'a ThreadTable,
    symbols: &'a Symbols,
    sink: &'a mut dyn Sink,
}

enum Through<'a, 'b> {
    Pairing(&'a mut Pairing<'b>),
    /// Events go to the low-level log without being paired.
    Log(&'a mut Log<'b>),
}

/// The low-level log has the order of its one input, or that of time where inputs are merged.
struct Log<'a> {
    sink: &'a mut EventsJsonl,
    reorder: Reorder,
    /// Batches with events that still wait; those know theirs by its place.
    held: HashMap<usize, Held>,
    next: usize,
}

struct Held {
    batch: Box<Batch>,
    source: &'static str,
    left: usize,
}

impl<'a> Log<'a> {
    fn new(sink: &'a mut EventsJsonl) -> Self {
        Self { sink, reorder: Reorder::default(), held: HashMap::new(), next: 0 }
    }

    fn merged(&mut self, batch: Box<Batch>, source: &'static str, lines_before: u64, until: i64) -> Result<()> {
        for note in &batch.notes {
            self.sink.note(&note.kind, note.line + lines_before, source);
        }
        for (i, event) in batch.events.iter().enumerate() {
            self.reorder.push(*event, Location::new(self.next, i as u64));
        }
        let left = batch.events.len();
        if left > 0 {
            self.held.insert(self.next, Held { batch, source, left });
            self.next += 1;
        }
        self.write(until)
    }

    fn write(&mut self, until: i64) -> Result<()> {
        let Self { sink, reorder, held, .. } = self;
        reorder.release(until, usize::MAX, |_, place| {
            let Some(of) = held.get_mut(&place.file()) else { return Ok(()) };
            sink.event(&of.batch, place.line() as usize, of.source)?;
            of.left -= 1;
            if of.left == 0 {
                held.remove(&place.file());
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.write(i64::MAX)?;
        self.sink.finish()
    }
}

impl Pairing<'_> {
    /// `watermark`: no event that arrives later is older, apart from late ones. At most `may_wait` events wait for it.
    fn piece(&mut self, piece: &MergedBatch, watermark: i64, may_wait: usize) -> Result<()> {
        let batch = &piece.batch;
        self.map.clear();
        self.map.resize(batch.names.len(), NameId::NONE);
        self.dedup.observe(piece.file, &batch.events);
        for event in &batch.events {
            let event = self.adopt(*event, batch);
            let place = Location::new(piece.file, piece.lines_before + u64::from(event.line));
            if self.reorder.push(event, place) {
                let mut out = Out { names: &self.names, sink: &mut *self.sink };
                self.pairer.late(&event, place, &mut out)?;
            }
        }
        self.pass_on(|reorder, take| reorder.release(watermark, may_wait, take))
    }

    /// Passes the events that leave the reorder window through dedup and pairing.
    fn pass_on(
        &mut self,
        release: impl FnOnce(&mut Reorder, &mut dyn FnMut(Event, Location) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let Self { names, reorder, dedup, pairer, begun, sink, .. } = self;
        let mut out = Out { names, sink: &mut **sink };
        release(reorder, &mut |event, location| {
            if !*begun {
                *begun = true;
                out.sink.begin(event.ts)?;
            }
            dedup.event(&event, location, |fact| pair(pairer, &fact, &mut out))
        })
    }

    /// The same event with the run's names. A stack is folded here: from now on it is compared and shown, not printed as it came.
    fn adopt(&mut self, mut event: Event, batch: &Batch) -> Event {
        let Self { names, stacks, map, tasks, symbols, .. } = self;
        if event.pid == UNKNOWN_TASK && !tasks.is_empty() {
            event.pid = tasks.process_of(event.tid);
        }
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
            Kind::CallEnter { stack, path, .. } => {
                adopt(path);
                if stack.is_some() {
                    let raw = batch.names.get(*stack);
                    *stack = if symbols.is_empty() {
                        stacks.fold(raw, names)
                    } else {
                        stacks.fold(&symbols.name(event.pid, raw), names)
                    };
                }
            }
            Kind::CallExit { stack, .. } if stack.is_some() => *stack = stacks.fold(batch.names.get(*stack), names),
            _ => {}
        }
        event
    }

    fn finish(&mut self) -> Result<()> {
        self.pass_on(|reorder, take| reorder.release_all(take))?;
        let Self { names, dedup, pairer, sink, .. } = self;
        let mut out = Out { names, sink: &mut **sink };
        dedup.finish(|fact| pair(pairer, &fact, &mut out))?;
        pairer.finish(&mut out)
    }
}

fn pair(pairer: &mut Pairer, fact: &Deduplicated, out: &mut Out<'_>) -> Result<()> {
    match fact {
        Deduplicated::Event(event, provenance) => pairer.event(event, provenance, out),
        Deduplicated::CallDetail(detail) => {
            pairer.call_detail(detail);
            Ok(())
        }
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
    let mut files: Vec<InputTally> =
        inputs.iter().zip(whole_logs_of(&inputs)).map(|(input, log)| InputTally::of(input, log)).collect();
    let logs = logs_of(&inputs);
    let are_several = logs.iter().any(|log| Some(log) != logs.first());
    let mut sources: Vec<&str> = Vec::new();
    for file in &files {
        if !sources.contains(&file.source) {
            sources.push(file.source);
        }
    }
    let recordings = recordings_of(&inputs);
    let mut merge = Merge::new(
        inputs,
        options.window_ns,
        options.workers,
        source_options,
        options.hints.clone(),
        options.count_other_events,
    );
    let mut shown = Instant::now();
    loop {
        match merge.step()? {
            MergeStep::End => break,
            MergeStep::Idle => {}
            MergeStep::EndOf(file) => {
                files[file].check(files.len() > 1 || options.one_of_several)?;
                let log = files[file].log;
                let pieces: Vec<&InputTally> = files.iter().filter(|file| file.log == log).collect();
                // They are read one after the other.
                let is_last = files.iter().rposition(|file| file.log == log) == Some(file);
                let lacks = if is_last { InputTally::lacks(&pieces, &mut summary.losses) } else { Vec::new() };
                match through {
                    Through::Pairing(pairing) => pairing.dedup.end_file(file),
                    Through::Log(log) => lacks.iter().for_each(|note| log.sink.note(note, 0, files[file].source)),
                }
            }
            MergeStep::MergedBatch(piece) => {
                let file = &mut files[piece.file];
                let batch = &piece.batch;
                let sink = match &mut *through {
                    Through::Pairing(pairing) if pairing.begun => Some(&mut *pairing.sink as &mut dyn Sink),
                    _ => None,
                };
                file.take_notes(batch, piece.lines_before, sink, &mut summary)?;
                file.take_events(batch, piece.consumed_bytes);
                summary.lines += batch.lines;
                summary.events[Kind::Other.index()] += batch.others;
                if let Some(named) = &batch.other_events {
                    summary.others.get_or_insert_default().join(named);
                }
                for event in &batch.events {
                    summary.events[event.kind.index()] += 1;
                    summary.first_ts = Some(summary.first_ts.map_or(event.ts, |ts| ts.min(event.ts)));
                    summary.last_ts = Some(summary.last_ts.map_or(event.ts, |ts| ts.max(event.ts)));
                }
                let until = merge.until();
                match through {
                    Through::Pairing(pairing) => {
                        if are_several && !pairing.ids_are_processes {
                            file.check_threads(batch, piece.lines_before)?;
                        }
                        pairing.piece(&piece, until, merge.may_wait())?;
                        merge.recycle(piece);
                    }
                    Through::Log(log) if merge.is_one_log() && batch.until.is_none() => {
                        log.sink.batch(batch, file.source, piece.lines_before)?;
                        merge.recycle(piece);
                    }
                    Through::Log(log) => {
                        // The batch stays; another takes its place among those on their way.
                        let mut piece = piece;
                        let batch = std::mem::take(&mut piece.batch);
                        log.merged(batch, file.source, piece.lines_before, until)?;
                        merge.recycle(piece);
                    }
                }
                if shown.elapsed() < SHOW_EVERY {
                    continue;
                }
                shown = Instant::now();
            }
        }
        let read_bytes = files.iter().map(|file| file.read_bytes).sum();
        if !progress(Progress { read_bytes, total_bytes, events: summary.event_count() }) {
            return Err(Error::Interrupted);
        }
    }
    if summary.event_count() == summary.events[Kind::Other.index()]
        && !matches!(through, Through::Log(_))
        && !options.one_of_several
        && let Some(file) = files.first()
    {
        return Err(file.no_events());
    }
    summary.source = sources.first().copied().unwrap_or_default();
    summary.inputs = files
        .iter()
        .enumerate()
        .map(|(number, file)| InputRead {
            path: file.path.clone(),
            source: file.source,
            is_standalone: file.is_standalone,
            clock: merge.clocks.get(&number).cloned().unwrap_or_default(),
            lines: file.lines,
            events: file.events,
        })
        .collect();
    summary.apart = apart(&files, &recordings);
    match through {
        Through::Log(log) => {
            check_loss(options, &summary)?;
            log.finish()?;
        }
        Through::Pairing(pairing) => {
            pairing.finish()?;
            merge_losses(&mut summary.losses, &pairing.dedup.losses);
            merge_losses(&mut summary.losses, &pairing.pairer.losses);
            if let Some(losses) = pairing.sink.losses() {
                merge_losses(&mut summary.losses, losses);
            }
            check_loss(options, &summary)?;
            summary.requests = Some(pairing.pairer.request_count);
            let of_processes = pairing.ids_are_processes;
            let facts = facts(options, of_processes, &summary, &sources, &merge.facts);
            pairing.sink.finish(&facts, &summary.losses, &pairing.names)?;
            summary.left_out = pairing.sink.left_out();
            summary.filter = options.filter.tell();
        }
    }
    Ok(summary)
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

fn facts(
    options: &Options,
    of_processes: bool,
    summary: &Summary,
    sources: &[&str],
    told: &[(&str, String)],
) -> RunFacts {
    let names: Vec<String> = options
        .inputs
        .iter()
        .map(|path| Path::new(path).file_name().map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned()))
        .collect();
    let optional = |ts: Option<i64>| ts.map_or_else(String::new, |ts| ts.to_string());
    // Those of inputs that `--offset` has moved are another's.
    let assumed = summary.inputs.iter().find_map(|input| input.clock.name.as_ref().and(assumed_clock(input.source)));
    let mut meta = vec![
        ("schema_version", SCHEMA_VERSION.to_string()),
        ("syncline_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("source", sources.join(", ")),
        ("input", names.join(", ")),
        ("pid_is", if of_processes { "process" } else { "thread" }.to_owned()),
        ("time_unit", if options.source_options.time_unit_ns == 1000 { "us" } else { "ns" }.to_owned()),
        ("clock", assumed.unwrap_or("unknown").to_owned()),
        ("first_ts_ns", optional(summary.first_ts)),
        ("last_ts_ns", optional(summary.last_ts)),
        ("lines", summary.lines.to_string()),
        ("events", summary.event_count().to_string()),
        ("requests", summary.requests.unwrap_or_default().to_string()),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect::<Vec<_>>();
    if !options.filter.is_empty() {
        meta.push(("request_filter".to_owned(), options.filter.tell()));
    }
    for (key, value) in told {
        match meta.iter_mut().find(|(k, _)| k == key) {
            Some((_, assumed)) => assumed.clone_from(value),
            None => meta.push(((*key).to_owned(), value.clone())),
        }
    }
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
    RunFacts { first_ts: summary.first_ts, last_ts: summary.last_ts, meta, marks }
}
