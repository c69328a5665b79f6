//! `syncline._core`: the core as a Python module. It turns arguments into options, results into dicts, and errors into exceptions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::IntoRawFd as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use syncline_core::block::devices_below::DevicesBelow;
use syncline_core::error::{Error, ErrorClass, UnreadHead};
use syncline_core::event::{Dev, Kind, Op};
use syncline_core::input::grouping::assign_lanes_by_format;
use syncline_core::input::open::{self, OpenInput};
use syncline_core::input::order::arrange;
use syncline_core::input_file::Input;
use syncline_core::losses::max_loss::MaxLoss;
use syncline_core::merge::clock::{Clock, ClockPair, Clocks, InputHints};
use syncline_core::options::{MarksClock, Options, OutputFormat, Progress};
use syncline_core::output::part::CreatedFolders;
use syncline_core::output::path;
use syncline_core::output::{self, Output};
use syncline_core::own_trace::Stop;
use syncline_core::recorder_tables::files::FileTable;
use syncline_core::recorder_tables::threads::ThreadTable;
use syncline_core::recorder_tables::writers::WriterTable;
use syncline_core::run::unresolved_frames::{UnresolvedFrames, find_unresolved_frames};
use syncline_core::sink::columns::{Contents, is_damaged};
use syncline_core::sink::csv::FORMULA_STARTS;
use syncline_core::sink::filtered::{Cgroup, Filter};
use syncline_core::sink::folded::folded_line;
use syncline_core::sink::perf_script::write_sample;
use syncline_core::sink::samples::{By, Weight};
use syncline_core::sink::{Mark, PredictedWrite, Prediction};
use syncline_core::source::{self, OtherEvents, SOURCES, SourceOptions};
use syncline_core::stacks::demangle;
use syncline_core::stacks::flamegraph::{self, PALETTES, Stack, Style};
use syncline_core::stacks::symbols::{self, Symbols};
use syncline_core::summary::Summary;
use syncline_core::{SCHEMA_VERSION, run};

create_exception!(
    _core,
    CoreError,
    PyException,
    "args: message, hint or None, class (usage, input, foreign, output, closed, loss, interrupted)"
);

/// Which requests are kept: `syncline.recordings.Filter` as a dict. Each is None for any.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FilterOf {
    pid: Option<u32>,
    comm: Option<String>,
    /// The prefix of the path.
    path: Option<String>,
    /// `major << 20 | minor`.
    device: Option<u32>,
    min_latency_ns: Option<i64>,
    /// What the user selected, and by process whether it is in it. Processes whose cgroup is not known are left out.
    cgroup: Option<(String, BTreeMap<u32, bool>)>,
    /// The begin and the end of a time, since the first event.
    since_ns: Option<i64>,
    until_ns: Option<i64>,
}

fn filter_of(filter: FilterOf) -> Filter {
    let FilterOf { pid, comm, path, device, min_latency_ns, cgroup, since_ns, until_ns } = filter;
    Filter {
        pid,
        comm,
        path,
        dev: device.map(Dev),
        cgroup: cgroup.map(|(name, has_process)| Cgroup { name, has_process }),
        min_latency_ns,
        since_ns,
        until_ns,
    }
}

/// A write and what the model predicts of it, as a dict. `PredictedWrite` says what each is.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PredictedWriteOf {
    ts_ns: i64,
    dur_ns: i64,
    kind: String,
    path: String,
    offset: i64,
    bytes: i64,
    predicted_ns: i64,
    predicted_commit_ns: Option<i64>,
    naive_ns: i64,
    state: String,
    predicted_dirty_bytes: i64,
    dirty_bytes: Option<i64>,
    scenario: Option<String>,
}

/// Name of the rules, and the writes in the order of their starts.
type PredictionOf = (String, Vec<PredictedWriteOf>);

fn prediction_of((rules, writes): PredictionOf) -> Prediction {
    let write = |write: PredictedWriteOf| PredictedWrite {
        ts: write.ts_ns,
        dur: write.dur_ns,
        kind: write.kind,
        path: write.path,
        offset: write.offset,
        bytes: write.bytes,
        predicted_ns: write.predicted_ns,
        predicted_commit_ns: write.predicted_commit_ns,
        naive_ns: write.naive_ns,
        state: write.state,
        predicted_dirty_bytes: write.predicted_dirty_bytes,
        dirty_bytes: write.dirty_bytes,
        scenario: write.scenario,
    };
    Prediction { rules, writes: writes.into_iter().map(write).collect() }
}

fn raise(error: &Error) -> PyErr {
    let class = match error.class() {
        ErrorClass::Usage => "usage",
        ErrorClass::Input => "input",
        ErrorClass::Output => "output",
        ErrorClass::Closed => "closed",
        ErrorClass::Loss => "loss",
        ErrorClass::Interrupted => "interrupted",
    };
    let raised = CoreError::new_err((error.to_string(), error.hint(), class));
    if let Some(UnreadHead { message, head, is_detected, other_text }) = error.unread() {
        // The error is raised without it if there is no memory for it.
        let set = |py: Python<'_>| {
            let texts = (message, PyBytes::new(py, head), *is_detected, PyBytes::new(py, other_text));
            raised.value(py).setattr("unread", texts)
        };
        let _ = Python::attach(set);
    }
    raised
}

fn usage(message: String) -> PyErr {
    CoreError::new_err((message, None::<String>, "usage"))
}

fn choose<T: Copy>(what: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    choices.iter().find(|(n, _)| *n == name).map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<_> = choices.iter().map(|(n, _)| *n).collect();
        usage(format!("{what} is one of {}, not '{name}'", known.join(", ")))
    })
}

fn parse_max_loss(text: &str) -> PyResult<MaxLoss> {
    text.parse().map_err(|e| raise(&e))
}

/// Reads tables that lie next to logs. `add` takes the text of one and may fail with the number of a line and the reason.
fn read_tables(paths: &[String], mut add: impl FnMut(&[u8]) -> Result<(), (usize, String)>) -> PyResult<()> {
    for path in paths {
        let damaged = |why: String| {
            let hint = "convert without it: name the log in the folder instead of the folder".to_owned();
            CoreError::new_err((format!("{path} is damaged: {why}"), Some(hint), "input"))
        };
        let text = std::fs::read(path).map_err(|why| damaged(why.to_string()))?;
        add(&text).map_err(|(line, why)| damaged(format!("line {line}: {why}")))?;
    }
    Ok(())
}

/// Whether the limit `max_loss` (`N` or `N%`) allows `lost` losses next to `events` events. Raises CoreError if it is not a limit.
#[pyfunction]
fn allows_loss(max_loss: &str, lost: u64, events: u64) -> PyResult<bool> {
    Ok(parse_max_loss(max_loss)?.allows(lost, events))
}

/// Raises CoreError if `max_loss` is not a limit (`N` or `N%`).
#[pyfunction]
fn check_max_loss(max_loss: &str) -> PyResult<()> {
    parse_max_loss(max_loss).map(|_| ())
}

/// What the caller knows about an input that the input does not say: `syncline.recordings.InputHints`. Each is None if it is not known.
#[derive(FromPyObject)]
struct HintsOf {
    /// CLOCK_REALTIME and CLOCK_BOOTTIME at the begin and at the end of the recording: times are converted from the first to the second.
    clocks: Option<[i64; 4]>,
    boot_id: Option<String>,
    /// By the name of a clock, the offset from its times to ns since 1970.
    to_realtime_ns: Option<BTreeMap<String, i64>>,
    /// The offset to add to the times of the input.
    offset_ns: Option<i64>,
    /// The time of CLOCK_BOOTTIME from which all that was recorded is in the input.
    known_from_ns: Option<i64>,
    /// The time of CLOCK_BOOTTIME from which the input says nothing, because its recorder ended early.
    known_until_ns: Option<i64>,
    /// How many of the lost events probes missed.
    missed_by_probes: u64,
}

fn hints_of(hints: HintsOf) -> InputHints {
    let boot = hints.clocks.map(|[r0, b0, r1, b1]| ClockPair { first: (r0, b0), last: (r1, b1) });
    InputHints {
        boot,
        boot_id: hints.boot_id,
        to_realtime: hints.to_realtime_ns.unwrap_or_default(),
        offset_ns: hints.offset_ns,
        known_from: hints.known_from_ns,
        known_until: hints.known_until_ns,
        missed_by_probes: hints.missed_by_probes,
    }
}

/// Converts `inputs` (paths, `-` is standard input) to `output`, whole or not at all. With `predicted_writes`, which a trace shows, there may be
/// no input.
///
/// For `filter` see `FilterOf`. `processes` are pairs of a thread and its process, `process_names` and `cgroups` are keyed by process, `frames` are (process, address, symbol). `hints` is keyed by the path of the input; see `HintsOf`.
/// `file_tables` are paths of files with the paths of files by inode, as `syncline record` writes them.
/// `writer_tables` are paths of files with the threads that made files dirty.
/// `device_names` maps major << 20 | minor to a name such as `sda`, `devices_below` to the numbers of all devices directly below it, `write_caches` to `write back` or `write through`. `limits` says in words what limits each control group. `max_idle_name_bytes` limits the stacks and paths that are kept although
/// nothing refers to them. `csv_safe` writes a quote before a text in CSV that a spreadsheet would take for a formula. A folder of tables that `is_temporary` is not compressed; `needed` names what it has: `TABLE`, `TABLE.COLUMN`, `TABLE.*`.
/// Other tables are empty, apart from that of requests, and other columns null.
///
/// `progress(read_bytes, total_bytes or None, events)` is called a few times a second; an exception in it stops the conversion.
/// Returns a dict of what was read and lost. Raises CoreError.
#[pyfunction]
#[pyo3(signature = (inputs, output, *, to=None, source=None, time_unit="ns", pid_is="thread", window_ns=None, hints=HashMap::new(), marks=Vec::new(), marks_are_times_of_day=false, predicted_writes=None, max_loss=None, weight="count", by="stack", csv_safe=false, device_names=BTreeMap::new(), devices_below=BTreeMap::new(), write_caches=BTreeMap::new(), limits=BTreeMap::new(), count_other_events=false, one_of_several=false, filter=None, processes=Vec::new(), process_names=BTreeMap::new(), cgroups=BTreeMap::new(), frames=Vec::new(), file_tables=Vec::new(), writer_tables=Vec::new(), max_idle_name_bytes=None, is_temporary=false, needed=None, progress=None))]
#[expect(
    clippy::fn_params_excessive_bools,
    clippy::needless_pass_by_value,
    reason = "arguments as Python hands them over"
)]
fn convert<'py>(
    py: Python<'py>,
    inputs: Vec<String>,
    output: &str,
    to: Option<&str>,
    source: Option<String>,
    time_unit: &str,
    pid_is: &str,
    window_ns: Option<i64>,
    hints: HashMap<String, HintsOf>,
    marks: Vec<(i64, String, Option<i64>)>,
    marks_are_times_of_day: bool,
    predicted_writes: Option<PredictionOf>,
    max_loss: Option<&str>,
    weight: &str,
    by: &str,
    csv_safe: bool,
    device_names: BTreeMap<u32, String>,
    devices_below: BTreeMap<u32, Vec<u32>>,
    write_caches: BTreeMap<u32, String>,
    limits: BTreeMap<String, String>,
    count_other_events: bool,
    one_of_several: bool,
    filter: Option<FilterOf>,
    processes: Vec<(u32, u32)>,
    process_names: BTreeMap<u32, String>,
    cgroups: BTreeMap<u32, String>,
    frames: Vec<(u32, u64, String)>,
    file_tables: Vec<String>,
    writer_tables: Vec<String>,
    max_idle_name_bytes: Option<usize>,
    is_temporary: bool,
    needed: Option<HashSet<String>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let format = output_format(to)?;
    let defaults = Options::default();
    let (mut file_table, mut writer_table) = (FileTable::default(), WriterTable::default());
    read_tables(&file_tables, |text| file_table.add(text))?;
    read_tables(&writer_tables, |text| writer_table.add(text))?;
    let options = Options {
        inputs,
        source,
        source_options: SourceOptions {
            time_unit_ns: choose("time_unit", time_unit, &[("ns", 1), ("us", 1000)])?,
            pid_is_process: choose("pid_is", pid_is, PID_IS)?,
            ..SourceOptions::default()
        },
        window_ns: window_ns.unwrap_or(defaults.window_ns),
        hints: hints.into_iter().map(|(path, known)| (path, hints_of(known))).collect(),
        marks: marks.into_iter().map(|(ts, name, dur)| Mark { name, ts, dur }).collect(),
        marks_clock: if marks_are_times_of_day { MarksClock::Realtime } else { MarksClock::Log },
        prediction: predicted_writes.map_or_else(Prediction::default, prediction_of),
        max_loss: max_loss.map(parse_max_loss).transpose()?,
        weight: choose("weight", weight, Weight::NAMES)?,
        by: choose("by", by, By::NAMES)?,
        device_names: device_names.into_iter().map(|(dev, name)| (Dev(dev), name)).collect(),
        devices_below: DevicesBelow::new(
            devices_below.into_iter().map(|(dev, below)| (Dev(dev), below.into_iter().map(Dev).collect())),
        ),
        write_caches: write_caches.into_iter().map(|(dev, cache)| (Dev(dev), cache)).collect(),
        limits: limits.into_iter().collect(),
        count_other_events,
        one_of_several,
        filter: filter.map_or_else(Filter::default, filter_of),
        thread_table: ThreadTable::new(processes, process_names, cgroups),
        file_table,
        writer_table,
        symbols: Symbols::new(frames),
        table_contents: Contents { is_temporary, needed },
        quotes_formulas: csv_safe,
        max_idle_name_bytes: max_idle_name_bytes.unwrap_or(defaults.max_idle_name_bytes),
        ..defaults
    };
    let result = with_progress(py, progress.as_ref(), |progress| run::convert(&options, output, format, progress))?;
    summary(py, &result.map_err(|e| raise(&e))?)
}

fn output_format(name: Option<&str>) -> PyResult<Option<OutputFormat>> {
    let Some(name) = name else { return Ok(None) };
    let format = OutputFormat::by_name(name).ok_or_else(|| {
        let known: Vec<_> = OutputFormat::ALL.iter().map(|(n, ..)| *n).collect();
        usage(format!("there is no output format '{name}'; use one of {}", known.join(", ")))
    })?;
    Ok(Some(format))
}

/// Runs a conversion, which calls `progress(read_bytes, total_bytes or None, events)`. An exception in it stops the conversion.
fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    convert: impl FnOnce(&mut dyn FnMut(Progress) -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| {
        convert(&mut |now: Progress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = progress {
                    progress.call1(py, (now.read_bytes, now.total_bytes, now.events))?;
                }
                Ok(())
            });
            raised = called.err();
            raised.is_none()
        })
    });
    raised.map_or(Ok(result), Err)
}

/// Converts `input`, a trace that Syncline wrote, to `output`, whole or not at all. With a `filter`, the output may be a trace, too. The other
/// arguments are as for `convert`.
///
/// Returns a dict of what the conversion that wrote the trace has read and lost. Raises CoreError; its class is `foreign` if the trace is not a
/// whole trace of this version of Syncline.
#[pyfunction]
#[pyo3(signature = (input, output, *, to=None, max_loss=None, weight="count", by="stack", csv_safe=false, filter=None, is_temporary=false, needed=None, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn convert_trace<'py>(
    py: Python<'py>,
    input: String,
    output: &str,
    to: Option<&str>,
    max_loss: Option<&str>,
    weight: &str,
    by: &str,
    csv_safe: bool,
    filter: Option<FilterOf>,
    is_temporary: bool,
    needed: Option<HashSet<String>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let format = output_format(to)?;
    let options = Options {
        inputs: vec![input],
        filter: filter.map_or_else(Filter::default, filter_of),
        max_loss: max_loss.map(parse_max_loss).transpose()?,
        weight: choose("weight", weight, Weight::NAMES)?,
        by: choose("by", by, By::NAMES)?,
        table_contents: Contents { is_temporary, needed },
        quotes_formulas: csv_safe,
        ..Options::default()
    };
    match with_progress(py, progress.as_ref(), |progress| run::convert_trace(&options, output, format, progress))? {
        Ok(read) => summary(py, &read),
        Err(Stop::Failed(error)) => Err(raise(&error)),
        Err(Stop::Refused(why)) => {
            let message = format!("{}: Syncline cannot read the rows of this trace: {why}", options.inputs[0]);
            let hint = "only whole traces that this version wrote can be read; convert the log again, or open the trace with `syncline query`";
            Err(CoreError::new_err((message, Some(hint), "foreign")))
        }
    }
}

/// Returns whether a file is a Perfetto trace with events of ftrace, and without tracks of Syncline. Raises CoreError.
#[pyfunction]
fn is_system_trace(py: Python<'_>, path: &str) -> PyResult<bool> {
    py.detach(|| source::perfetto::is_system_trace(path)).map_err(|error| raise(&error))
}

/// Compares a trace with the checksum that it holds, if Syncline wrote it and it is whole. Raises CoreError.
#[pyfunction]
#[pyo3(signature = (input, *, progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn verify_trace(py: Python<'_>, input: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
    with_progress(py, progress.as_ref(), |progress| run::verify_trace(input, progress))?.map_err(|error| raise(&error))
}

const PID_IS: &[(&str, bool)] = &[("thread", false), ("process", true)];

/// An input of a conversion, as `convert` describes it in its summary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct InputOf {
    path: String,
    /// The name of its format.
    source: String,
    is_standalone: bool,
    clock: Option<String>,
    boot_id: Option<String>,
    to_realtime_ns: BTreeMap<String, i64>,
}

/// Checks whether inputs can be converted together, apart from their clocks. Copies of one log cannot, and neither can thread ids and process
/// ids. Raises CoreError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn check_compatible(inputs: Vec<InputOf>, pid_is: &str) -> PyResult<()> {
    let mut files: Vec<OpenInput> = Vec::new();
    for InputOf { path, source, .. } in inputs.iter().filter(|input| input.path != "-") {
        let Ok(file) = Input::open(path) else { continue };
        let source = source::by_name(SOURCES, source).map_err(|e| raise(&e))?;
        let opened = OpenInput::new(file, source).map_err(|e| raise(&e))?;
        open::check_distinct(&files, &opened).map_err(|e| raise(&e))?;
        files.push(opened);
    }
    let pid_is_process = choose("pid_is", pid_is, PID_IS)?;
    open::check_pid_is(&files, pid_is_process).map_err(|e| raise(&e))?;
    open::ids_are_processes(&files, pid_is_process).map(|_| ()).map_err(|e| raise(&e))
}

/// Returns, for each input, the number of the log that it is a piece of, from 0. The logs are numbered in the order in which a conversion uses
/// them. Raises CoreError if their clocks cannot be combined.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn join_logs(inputs: Vec<InputOf>) -> PyResult<Vec<usize>> {
    let mut clocks = Clocks::default();
    let clock_of = |input: &InputOf| Clock {
        name: input.clock.clone(),
        boot_id: input.boot_id.clone(),
        to_realtime: input.to_realtime_ns.clone(),
        is_recorded: false,
    };
    let order = order_of_use(&inputs)?;
    let known: Vec<_> = order.iter().map(|&at| (&inputs[at].path, clock_of(&inputs[at]))).collect();
    for (path, clock) in Clocks::most_clocks_first(&known, |(_, clock)| clock) {
        clocks.record_time_of_day(path, clock).map_err(|e| raise(&e))?;
    }
    for (path, clock) in &known {
        clocks.offset_of(path, clock).map_err(|e| raise(&e))?;
    }
    let used = order.iter().map(|&at| (inputs[at].source.as_str(), inputs[at].is_standalone));
    let mut logs = vec![0; inputs.len()];
    for (&at, log) in order.iter().zip(assign_lanes_by_format(used)) {
        logs[at] = log;
    }
    Ok(logs)
}

/// The places of inputs in the order in which a conversion uses them. Those that cannot be opened again, as stdin, come last.
fn order_of_use(inputs: &[InputOf]) -> PyResult<Vec<usize>> {
    let mut files = Vec::new();
    for InputOf { path, source, .. } in inputs.iter().filter(|input| input.path != "-") {
        let Ok(file) = Input::open(path) else { continue };
        let source = source::by_name(SOURCES, source).map_err(|e| raise(&e))?;
        files.push(OpenInput::new(file, source).map_err(|e| raise(&e))?);
    }
    let arranged: Vec<_> = arrange(files, SOURCES, &SourceOptions::default());
    let place = |path: &str| arranged.iter().position(|file| file.input.path == path).unwrap_or(arranged.len());
    let mut order: Vec<_> = (0..inputs.len()).collect();
    order.sort_by_key(|&at| place(&inputs[at].path));
    Ok(order)
}

/// Finds the unresolved frames in the stacks of logs. Returns (tid, comm, addresses) for each thread that has some. Raises CoreError.
#[pyfunction]
fn unresolved_addresses(py: Python<'_>, inputs: Vec<String>) -> PyResult<Vec<(u32, String, BTreeSet<u64>)>> {
    let found = py.detach(|| find_unresolved_frames(inputs)).map_err(|e| raise(&e))?;
    Ok(found.into_iter().map(|UnresolvedFrames { tid, comm, addresses }| (tid, comm, addresses)).collect())
}

/// Detects the format of a file by its head. Returns its name; None if the file is in no known format, or empty. Raises CoreError.
#[pyfunction]
fn detect_format(py: Python<'_>, path: &str) -> PyResult<Option<&'static str>> {
    let input = py.detach(|| Input::open(path)).map_err(|e| raise(&e))?;
    Ok(OpenInput::with_format(input, SOURCES, None).ok().map(|opened| opened.source.name()))
}

/// Returns the first of the files that are read together with a file whose name says that it is one of several; None if it is read by itself.
#[pyfunction]
fn first_part(path: &str) -> Option<String> {
    source::first_part(SOURCES, path)
}

/// Returns the functions at offsets in an ELF file, as `function+offset`; None for an offset without a symbol. Raises OSError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn functions_at(py: Python<'_>, file: PathBuf, offsets: Vec<u64>) -> PyResult<Vec<Option<String>>> {
    Ok(py.detach(|| symbols::functions(&file, &offsets))?)
}

fn summary<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("source", summary.source)?;
    let inputs = PyList::empty(py);
    for input in &summary.inputs {
        let one = PyDict::new(py);
        one.set_item("path", &input.path)?;
        one.set_item("source", input.source)?;
        one.set_item("is_standalone", input.is_standalone)?;
        one.set_item("clock", input.clock.name.as_deref())?;
        one.set_item("clock_is_recorded", input.clock.is_recorded)?;
        one.set_item("boot_id", input.clock.boot_id.as_deref())?;
        one.set_item("to_realtime_ns", &input.clock.to_realtime)?;
        one.set_item("lines", input.lines)?;
        one.set_item("events", input.events)?;
        inputs.append(one)?;
    }
    dict.set_item("inputs", inputs)?;
    let with_other_text = summary.inputs.iter().filter(|input| !input.other_text.is_empty());
    let other_texts: Vec<_> = with_other_text.map(|input| (&input.path, PyBytes::new(py, &input.other_text))).collect();
    dict.set_item("other_texts", other_texts)?;
    dict.set_item("lines", summary.lines)?;
    dict.set_item("events", summary.event_count())?;
    let by_kind = PyDict::new(py);
    for (name, count) in Kind::NAMES.iter().zip(summary.events) {
        by_kind.set_item(name, count)?;
    }
    dict.set_item("events_by_kind", by_kind)?;
    dict.set_item("other_events", summary.other_events.as_ref().map(OtherEvents::sorted))?;
    dict.set_item("first_ts_ns", summary.first_ts)?;
    dict.set_item("last_ts_ns", summary.last_ts)?;
    let losses = PyList::empty(py);
    for (reason, tally) in summary.losses.iter() {
        let loss = PyDict::new(py);
        loss.set_item("reason", reason.name())?;
        loss.set_item("severity", reason.severity().name())?;
        loss.set_item("count", tally.count)?;
        loss.set_item("first_ts_ns", tally.first_ts)?;
        loss.set_item("last_ts_ns", tally.last_ts)?;
        loss.set_item("example", tally.example.as_deref())?;
        loss.set_item("meaning", reason.meaning())?;
        losses.append(loss)?;
    }
    dict.set_item("losses", losses)?;
    dict.set_item("unparsed", &summary.unparsed)?;
    dict.set_item("requests", summary.requests)?;
    dict.set_item("disjoint", &summary.disjoint)?;
    dict.set_item("predicted_writes", summary.predicted_writes)?;
    dict.set_item("realtime_offset_ns", summary.realtime_offset_ns)?;
    dict.set_item("marks", summary.marks)?;
    dict.set_item("left_out", summary.left_out)?;
    dict.set_item("filter", &summary.filter)?;
    Ok(dict)
}

/// Returns frames in readable form: demangled, and without the characters that separate frames or end lines.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn readable(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| demangle::readable(name)).collect()
}

/// Draws stacks of (frames, weight, base or None), outermost frame first. Returns (SVG, number of frames that are too narrow to be shown).
///
/// `perhaps` holds, for frames with their callers, by how much the weight and the base may be larger.
#[pyfunction]
#[pyo3(signature = (stacks, *, title, subtitle, notes, unit, factor, frame_is, palette, hide_under, perhaps))]
fn draw(
    py: Python<'_>,
    stacks: Vec<(Vec<String>, u64, Option<f64>)>,
    title: &str,
    subtitle: &str,
    notes: &str,
    unit: &str,
    factor: f64,
    frame_is: &str,
    palette: &str,
    hide_under: f64,
    perhaps: Vec<(Vec<String>, f64, f64)>,
) -> PyResult<(Vec<u8>, usize)> {
    choose("palette", palette, PALETTES)?;
    let perhaps = perhaps.into_iter().map(|(frames, more, more_base)| (frames, (more, more_base))).collect();
    let look = Style { title, subtitle, notes, unit, factor, frame_is, palette, hide_under, perhaps };
    let stacks = stacks.into_iter().map(|(frames, weight, base)| Stack { frames, weight, base }).collect();
    let drawing = py.detach(|| flamegraph::draw(stacks, &look)).map_err(usage)?;
    Ok((drawing.svg, drawing.hidden))
}

/// Returns samples of (comm, thread, time, weight, frames), outermost frame first, as perf-script text.
#[pyfunction]
fn perf_script(samples: Vec<(String, u32, i64, u64, Vec<String>)>, weight: &str) -> PyResult<Vec<u8>> {
    let what = choose("weight", weight, Weight::NAMES)?;
    let mut text = Vec::new();
    for (comm, task, ts_ns, weight, frames) in samples {
        write_sample(&mut text, &comm, task, ts_ns, weight, what, frames.iter().rev().map(String::as_str));
    }
    Ok(text)
}

/// Folded text of rows (frames, weight, weight of the base or None), frames outermost first; sorted by line.
///
/// With a base the lines are those of difffolded.pl and inferno-diff-folded: `FRAMES BASE WEIGHT`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn folded(rows: Vec<(Vec<String>, u64, Option<f64>)>) -> Vec<u8> {
    let line = |(frames, weight, base): &(Vec<String>, u64, Option<f64>)| {
        folded_line(&frames.join(";"), base.map(|base| base.round_ties_even() as u64), *weight)
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.sort_unstable();
    lines.concat().into_bytes()
}

/// Writes `data` to `path` (`-` is standard output), whole or not at all. With `private`, only the user can read the file.
#[pyfunction]
#[pyo3(signature = (path, data, *, private = false))]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn write(py: Python<'_>, path: PathBuf, data: &[u8], private: bool) -> PyResult<()> {
    let written = py.detach(|| {
        let mut output = if private { Output::create_private(&path) } else { Output::create(&path, false) }?;
        output.buffer().extend_from_slice(data);
        output.commit()
    });
    written.map_err(|e| raise(&e))
}

/// Writes pairs of a path and data, with the folders above them, all of them or none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn write_all(py: Python<'_>, files: Vec<(PathBuf, Vec<u8>)>) -> PyResult<()> {
    py.detach(|| output::write_all(&files)).map_err(|e| raise(&e))
}

/// Creates a folder and the missing ones above it. As root, a link of another user on the path is refused before anything is made.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn create_folder(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| CreatedFolders::create(&path).map(CreatedFolders::keep)).map_err(|e| raise(&e))
}

/// Opens the folder above `path`, and creates those that are missing. Returns its descriptor, and the name in it, which is no link.
///
/// As root, a link of another user on the path is refused.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn open_above(py: Python<'_>, path: PathBuf) -> PyResult<(i32, OsString)> {
    let (folder, name) = py.detach(|| path::open_above(&path, Some(&mut Vec::new()))).map_err(|e| raise(&e))?;
    Ok((folder.into_raw_fd(), name))
}

/// Returns those of the Parquet files that Syncline has written and that have changed since.
#[pyfunction]
fn damaged_tables(py: Python<'_>, paths: Vec<PathBuf>) -> Vec<PathBuf> {
    // What cannot be read is for the reader of the table to say.
    py.detach(|| paths.into_iter().filter(|path| is_damaged(path).unwrap_or(false)).collect())
}

/// An output file that is created before its content is known, so that a path that cannot be written is reported before the work.
#[pyclass(module = "syncline._core")]
struct OutputFile(Mutex<Option<Output>>);

#[pymethods]
impl OutputFile {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
    fn new(path: PathBuf) -> PyResult<Self> {
        Output::create(&path, false).map(|output| Self(Mutex::new(Some(output)))).map_err(|e| raise(&e))
    }

    /// Writes the content and gives the file its name.
    fn commit(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let Some(mut output) = self.take() else { return Err(usage("the file was written already".into())) };
        let written = py.detach(|| {
            output.buffer().extend_from_slice(data);
            output.commit()
        });
        written.map_err(|e| raise(&e))
    }

    /// Removes the temporary file if nothing was written.
    fn close(&self) {
        drop(self.take());
    }
}

impl OutputFile {
    fn take(&self) -> Option<Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CoreError", module.py().get_type::<CoreError>())?;
    module.add_class::<OutputFile>()?;
    module.add("SCHEMA_VERSION", SCHEMA_VERSION)?;
    module.add("HIDDEN_LOSSES", SOURCES.iter().map(|s| (s.name(), s.hidden_losses())).collect::<HashMap<_, _>>())?;
    let earlier = SOURCES.iter().filter_map(|s| Some((s.earlier_name()?, s.name())));
    module.add("EARLIER_SOURCES", earlier.collect::<HashMap<_, _>>())?;
    module.add("SOURCES", SOURCES.iter().map(|s| s.name()).collect::<Vec<_>>())?;
    module.add("FORMATS", OutputFormat::ALL.iter().map(|(name, endings, _)| (*name, *endings)).collect::<Vec<_>>())?;
    // Every call of these syscalls is a sync; a write is one only with some flags.
    let sync_calls = Op::ALL.into_iter().filter(|op| *op != Op::Write).map(Op::name);
    module.add("SYNC_CALLS", sync_calls.collect::<Vec<_>>())?;
    module.add("WEIGHTS", Weight::NAMES.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    module.add("FORMULA_STARTS", FORMULA_STARTS)?;
    module.add("BY", By::NAMES.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(convert, module)?)?;
    module.add_function(wrap_pyfunction!(convert_trace, module)?)?;
    module.add_function(wrap_pyfunction!(is_system_trace, module)?)?;
    module.add_function(wrap_pyfunction!(verify_trace, module)?)?;
    module.add_function(wrap_pyfunction!(allows_loss, module)?)?;
    module.add_function(wrap_pyfunction!(check_max_loss, module)?)?;
    module.add_function(wrap_pyfunction!(join_logs, module)?)?;
    module.add_function(wrap_pyfunction!(check_compatible, module)?)?;
    module.add_function(wrap_pyfunction!(unresolved_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(detect_format, module)?)?;
    module.add_function(wrap_pyfunction!(first_part, module)?)?;
    module.add_function(wrap_pyfunction!(functions_at, module)?)?;
    module.add_function(wrap_pyfunction!(readable, module)?)?;
    module.add_function(wrap_pyfunction!(draw, module)?)?;
    module.add_function(wrap_pyfunction!(perf_script, module)?)?;
    module.add_function(wrap_pyfunction!(folded, module)?)?;
    module.add_function(wrap_pyfunction!(write_all, module)?)?;
    module.add_function(wrap_pyfunction!(create_folder, module)?)?;
    module.add_function(wrap_pyfunction!(open_above, module)?)?;
    module.add_function(wrap_pyfunction!(damaged_tables, module)?)?;
    module.add_function(wrap_pyfunction!(write, module)?)
}
