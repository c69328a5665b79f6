//! Runs a conversion: opens the inputs, merges them, and sends their batches through a pipeline into a sink.
//!
//! Worker threads parse the inputs. The calling thread merges and pairs. Another thread writes, except that the calling thread writes the
//! low-level log.

pub mod unresolved_frames;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::event::{Dev, Kind};
use crate::input::grouping::{are_several, assign_logs, assign_recordings};
use crate::input::open::{OpenInput, check_pid_is, open_inputs};
use crate::input::order::arrange;
use crate::input::tally::{InputLosses, InputTally, find_disjoint, find_missing_events};
use crate::input_file::Input;
use crate::losses::{Losses, Reason};
use crate::merge::{Merge, MergeOptions, MergeStep, MergedBatch};
use crate::names::Names;
use crate::options::{Options, OutputFormat, Progress};
use crate::own_trace::{self, RunRead, Stop};
use crate::pipeline::low_level::LowLevelPipeline;
use crate::pipeline::pairing::PairingPipeline;
use crate::pipeline::writes::WritesPipeline;
use crate::pipeline::{FinishedInputs, Pipeline};
use crate::sink::columns::writes::WritesParquet;
use crate::sink::columns::{RequestsParquet, TablesFolder};
use crate::sink::csv::Csv;
use crate::sink::events_jsonl::EventsJsonl;
use crate::sink::filtered::Filtered;
use crate::sink::folded::Folded;
use crate::sink::jsonl::Jsonl;
use crate::sink::perf_script::PerfScript;
use crate::sink::perfetto::PerfettoTrace;
use crate::sink::threaded::Threaded;
use crate::sink::{Group, RunFacts, Sink, WriteSink};
use crate::source::NoteKind;
use crate::summary::{InputRead, Summary};

/// Minimum interval between two reports of progress after a batch.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Converts the inputs of `options` to the file or folder `output`, which appears complete or not at all.
///
/// If `format` is `None`, the ending of `output` decides. While batches arrive, `progress` is called at most once in
/// `PROGRESS_INTERVAL`. If it returns false, the conversion stops.
pub fn convert(
    options: &Options,
    output: &str,
    format: Option<OutputFormat>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let path = PathBuf::from(output);
    let format = format
        .or_else(|| OutputFormat::of_path(output))
        .ok_or_else(|| Error::UnknownSink { path: path.clone(), endings: OutputFormat::file_endings() })?;
    check_output(options, &path, format)?;
    // Open the inputs before the output, so that a wrong input name leaves no output behind.
    let inputs = open(options)?;
    check_pid_is(&inputs, options.source_options.pid_is_process)?;
    if format == OutputFormat::EventsJsonl {
        return convert_into_log(options, inputs, &mut EventsJsonl::create(&path)?, progress);
    }
    if format == OutputFormat::Writes {
        return convert_into_writes(options, inputs, &mut WritesParquet::create(&path)?, progress);
    }
    let sink = Threaded::new(create_sink(options, &options.device_names, &path, format)?)?;
    if options.filter.is_empty() {
        let mut sink = sink;
        convert_into(options, inputs, &mut sink, progress)
    } else {
        convert_into(options, inputs, &mut Filtered::new(sink, options.filter.clone()), progress)
    }
}

/// Compares a trace with the checksum that it holds. One that Syncline did not write, or that was cut off or merged with another, has none to
/// compare with.
pub fn verify_trace(input: &str, progress: &mut dyn FnMut(Progress) -> bool) -> Result<(), Error> {
    let input = Input::open(input)?;
    let total_bytes = input.total_bytes;
    own_trace::verify(input, &mut |read_bytes| progress(Progress { read_bytes, total_bytes, events: 0 }))
}

/// Converts a trace that Syncline wrote, the one input of `options`, to the file or folder `output`, which appears complete or not at all.
///
/// `format` and `progress` are as for `convert`; of `options` only the filter and those of the output count. A trace without a filter would be
/// the same trace, so that is refused.
pub fn convert_trace(
    options: &Options,
    output: &str,
    format: Option<OutputFormat>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary, Stop> {
    let path = PathBuf::from(output);
    let format = format
        .or_else(|| OutputFormat::of_path(output))
        .ok_or_else(|| Error::UnknownSink { path: path.clone(), endings: OutputFormat::file_endings() })?;
    let is_trace = matches!(format, OutputFormat::Perfetto | OutputFormat::PerfettoGzip);
    if matches!(format, OutputFormat::EventsJsonl | OutputFormat::Writes) || (is_trace && options.filter.is_empty()) {
        let hint = "convert the log instead; a trace becomes DIR/, .parquet, .csv, .jsonl, .perf or .folded".into();
        return Err(Stop::Failed(Error::NotHere {
            path,
            message: "the input is a trace, which holds requests and no events",
            hint,
        }));
    }
    check_output(options, &path, format)?;
    let input = options.inputs.first().map_or("-", String::as_str);
    // Tracks have the names of devices, which are at the end of a trace.
    let device_names = if is_trace {
        own_trace::read(Input::open(input)?, &mut Nowhere, &mut Names::default(), &mut |_| true)?.device_names()
    } else {
        Vec::new()
    };
    let input = Input::open(input)?;
    let total_bytes = input.total_bytes;
    let mut output = Threaded::new(create_sink(options, &device_names, &path, format)?)?;
    let mut filtered;
    let sink: &mut dyn Sink = if options.filter.is_empty() {
        &mut output
    } else {
        filtered = Filtered::new(output, options.filter.clone());
        &mut filtered
    };
    let mut names = Names::default();
    let mut last_progress = Instant::now();
    let mut run = own_trace::read(input, sink, &mut names, &mut |read_bytes| {
        if last_progress.elapsed() < PROGRESS_INTERVAL {
            return true;
        }
        last_progress = Instant::now();
        progress(Progress { read_bytes, total_bytes, events: 0 })
    })?;
    if !options.filter.is_empty() {
        run.add_filter(&options.filter.describe());
        if let Some(losses) = sink.losses() {
            run.losses.merge(losses);
        }
    }
    let mut summary = summary_of_trace(&run);
    if let Some(max_loss) = options.max_loss {
        max_loss.check(&summary.losses, summary.event_count())?;
    }
    sink.finish(&run.facts, &run.losses, &names)?;
    summary.left_out = sink.unweighted_requests();
    Ok(summary)
}

/// Takes rows for a reader who wants the facts of the run only.
struct Nowhere;

impl Sink for Nowhere {
    fn group(&mut self, _: &Group<'_>, _: &Names) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        Ok(())
    }
}

/// Returns the summary of the conversion that wrote a trace, as the trace states it.
fn summary_of_trace(run: &RunRead) -> Summary {
    let number = |key: &str| run.fact(key).and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut summary = Summary {
        source: "trace",
        lines: number("lines"),
        first_ts: run.facts.first_ts,
        last_ts: run.facts.last_ts,
        losses: run.losses.clone(),
        requests: Some(run.requests),
        predicted_writes: run.facts.prediction.writes.len() as u64,
        filter: run.fact("request_filter").unwrap_or_default().to_owned(),
        ..Summary::default()
    };
    for (count, kind) in summary.events.iter_mut().zip(Kind::NAMES) {
        *count = number(&format!("events.{kind}"));
    }
    summary
}

/// Like `convert`, but writes opened inputs into any sink.
pub fn convert_into(
    options: &Options,
    inputs: Vec<OpenInput>,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let mut pipeline = PairingPipeline::new(options, &inputs, sink)?;
    run(options, inputs, &mut pipeline, progress)
}

/// Like `convert`, but writes opened inputs into a low-level log.
pub fn convert_into_log(
    options: &Options,
    inputs: Vec<OpenInput>,
    log: &mut EventsJsonl,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    if are_several(&assign_recordings(&inputs)) {
        log.of_several();
    }
    let count = inputs.len();
    run(options, inputs, &mut LowLevelPipeline::new(log, count), progress)
}

/// Like `convert`, but writes the table of writes of opened inputs.
pub fn convert_into_writes(
    options: &Options,
    inputs: Vec<OpenInput>,
    sink: &mut dyn WriteSink,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let count = inputs.len();
    run(options, inputs, &mut WritesPipeline::new(sink, count, options.max_idle_name_bytes), progress)
}

/// Opens the inputs of `options`, in the order in which they are used.
pub fn open(options: &Options) -> Result<Vec<OpenInput>> {
    let offset_of = |path: &str| options.hints.get(path).and_then(|hints| hints.offset_ns);
    let inputs = open_inputs(&options.inputs, &options.sources, options.source.as_deref(), offset_of)?;
    Ok(arrange(inputs, &options.sources, &options.source_options))
}

fn check_output(options: &Options, path: &Path, format: OutputFormat) -> Result<()> {
    if path == Path::new("-") && !format.can_be_streamed() {
        let hint = if format == OutputFormat::Tables { "give a folder: -o DIR/" } else { "give a name with -o" };
        return Err(Error::NotHere { path: path.into(), message: "this format needs a file", hint: hint.into() });
    }
    let is_output = |input: &String| match (Path::new(input).canonicalize(), path.canonicalize()) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    };
    if options.inputs.iter().any(is_output) {
        let hint = "give another name with -o".into();
        return Err(Error::NotHere { path: path.into(), message: "it is an input of the same command", hint });
    }
    Ok(())
}

fn create_sink(
    options: &Options,
    device_names: &[(Dev, String)],
    path: &Path,
    format: OutputFormat,
) -> Result<Box<dyn Sink + Send>> {
    Ok(match format {
        OutputFormat::Perfetto | OutputFormat::PerfettoGzip => Box::new(PerfettoTrace::create(
            path,
            format == OutputFormat::PerfettoGzip,
            device_names,
            options.max_idle_name_bytes,
        )?),
        OutputFormat::Parquet => Box::new(RequestsParquet::create(path)?),
        OutputFormat::Tables => Box::new(TablesFolder::create(path, &options.table_contents)?),
        OutputFormat::Csv => Box::new(Csv::create(path, options.quotes_formulas)?),
        OutputFormat::Jsonl => Box::new(Jsonl::create(path)?),
        OutputFormat::PerfScript => Box::new(PerfScript::create(path, options.weight, options.by)?),
        OutputFormat::Folded => Box::new(Folded::create(path, options.weight, options.by)?),
        OutputFormat::EventsJsonl | OutputFormat::Writes => unreachable!("they have sinks of their own"),
    })
}

fn run(
    options: &Options,
    inputs: Vec<OpenInput>,
    pipeline: &mut dyn Pipeline,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary> {
    let mut run = Run::new(options, &inputs);
    let mut source_options = options.source_options;
    source_options.keep_extras = pipeline.keeps_all_events();
    source_options.keep_writes = pipeline.keeps_writes();
    source_options.keep_file_ops = pipeline.keeps_file_ops();
    let merge_options = MergeOptions {
        window_ns: options.window_ns,
        workers: options.workers,
        source_options,
        hints: options.hints.clone(),
        count_other_events: options.count_other_events,
    };
    let mut merge = Merge::new(inputs, merge_options);
    let mut last_progress = Instant::now();
    loop {
        match merge.step()? {
            MergeStep::End => break,
            MergeStep::Idle => {}
            MergeStep::InputEnded(input) => {
                if let Some(ts) = merge.known_until(input) {
                    run.tallies[input].add_ended_early(ts, &mut run.found.losses);
                }
                run.end_input(input, pipeline)?;
            }
            MergeStep::MergedBatch(mut merged) => {
                run.add_batch(&mut merged, pipeline)?;
                merge.recycle(merged);
                if last_progress.elapsed() < PROGRESS_INTERVAL {
                    continue;
                }
                last_progress = Instant::now();
            }
        }
        if !progress(run.progress()) {
            return Err(Error::Interrupted);
        }
    }
    let mut summary = run.summarize(&merge);
    if !summary.has_sync_events()
        && !pipeline.keeps_all_events()
        && !pipeline.keeps_writes()
        && !options.one_of_several
        && options.prediction.writes.is_empty()
        && let Some(first) = run.tallies.first()
    {
        return Err(first.no_events());
    }
    pipeline.flush(&mut summary)?;
    if let Some(max_loss) = options.max_loss {
        max_loss.check(&summary.losses, summary.event_count())?;
    }
    pipeline.finish(&FinishedInputs { options, tallies: &run.tallies, facts: merge.facts() }, &mut summary)?;
    Ok(summary)
}

/// The inputs of a run, as far as they have been read.
struct Run {
    tallies: Vec<InputTally>,
    recordings: Vec<usize>,
    found: InputLosses,
    total_bytes: Option<u64>,
    /// There are several inputs, or the one input will be converted together with others or with predicted writes.
    has_others: bool,
    /// How many of the lost events probes missed.
    missed_by_probes: u64,
}

impl Run {
    fn new(options: &Options, inputs: &[OpenInput]) -> Self {
        let logs = assign_logs(inputs);
        Self {
            tallies: inputs.iter().zip(logs).map(|(open, log)| InputTally::new(open, log)).collect(),
            recordings: assign_recordings(inputs),
            found: InputLosses::default(),
            total_bytes: inputs.iter().map(|open| open.input.total_bytes).sum(),
            has_others: inputs.len() > 1 || options.one_of_several || !options.prediction.writes.is_empty(),
            missed_by_probes: options.hints.values().fold(0, |sum, hints| hints.missed_by_probes.saturating_add(sum)),
        }
    }

    fn add_batch(&mut self, merged: &mut MergedBatch, pipeline: &mut dyn Pipeline) -> Result<()> {
        let tally = &mut self.tallies[merged.input];
        tally.add_notes(&merged.batch, merged.lines_before, &mut self.found, |ts, text| {
            pipeline.add_lost_events(ts, text)
        })?;
        tally.add_events(&merged.batch, merged.consumed_bytes);
        pipeline.add_batch(merged, tally)
    }

    fn end_input(&mut self, input: usize, pipeline: &mut dyn Pipeline) -> Result<()> {
        let tally = &self.tallies[input];
        // The pieces of a log are read one after the other, so the log ends with its last piece.
        let is_last_piece = !self.tallies[input + 1..].iter().any(|other| other.log == tally.log);
        // An input without writes is no input without events.
        let has_events = |other: &InputTally| other.events() > 0 || pipeline.keeps_writes() && other.dropped_events > 0;
        let log_has_events = self.tallies.iter().any(|other| other.log == tally.log && has_events(other));
        // A piece may hold only the stack of the last call of the piece before it.
        if is_last_piece && !log_has_events {
            tally.check_has_events(self.has_others)?;
        }
        let mut missing = if is_last_piece {
            let pieces: Vec<_> = self.tallies.iter().filter(|other| other.log == tally.log).collect();
            find_missing_events(&pieces, &mut self.found.losses)
        } else {
            Vec::new()
        };
        if tally.has_ended_early {
            // The low-level log has one note for logs that end too early.
            missing.push(NoteKind::Truncated);
        }
        pipeline.end_input(input, tally, &missing)
    }

    fn progress(&self) -> Progress {
        Progress {
            read_bytes: self.tallies.iter().map(|tally| tally.read_bytes).sum(),
            total_bytes: self.total_bytes,
            events: self.tallies.iter().map(|tally| tally.events() + tally.dropped_events).sum(),
        }
    }

    /// Returns the summary of all inputs. Moves the losses out of `self`.
    fn summarize(&mut self, merge: &Merge) -> Summary {
        let InputLosses { mut losses, unparsed } = std::mem::take(&mut self.found);
        losses.recount(Reason::LostByTracer, Reason::MissedByProbe, self.missed_by_probes);
        let spans = || self.tallies.iter().filter_map(|tally| tally.span);
        let mut summary = Summary {
            source: self.tallies.first().map_or("", |tally| tally.source.name()),
            lines: self.tallies.iter().map(|tally| tally.lines).sum(),
            first_ts: spans().map(|(oldest, _)| oldest).min(),
            last_ts: spans().map(|(_, newest)| newest).max(),
            losses,
            unparsed,
            disjoint: find_disjoint(&self.tallies, &self.recordings),
            ..Summary::default()
        };
        for (index, tally) in self.tallies.iter().enumerate() {
            for (total, count) in summary.events.iter_mut().zip(tally.kinds) {
                *total += count;
            }
            summary.events[Kind::Other.index()] += tally.dropped_events;
            if let Some(counts) = &tally.other_events {
                summary.other_events.get_or_insert_default().join(counts);
            }
            summary.inputs.push(InputRead {
                path: tally.path.clone(),
                source: tally.source.name(),
                is_standalone: tally.traits.is_standalone,
                clock: merge.clock_of(index).cloned().unwrap_or_default(),
                lines: tally.lines,
                events: tally.events(),
                other_text: tally.other_text.clone(),
            });
        }
        summary
    }
}
