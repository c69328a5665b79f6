//! `syncline._core`: the core as a Python module. Nothing here knows events; it turns arguments into options and errors into exceptions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use syncline_core::error::{Error, ErrorClass};
use syncline_core::event::{Dev, Kind};
use syncline_core::input::Input;
use syncline_core::input::open;
use syncline_core::merge::{Clock, ClockPair, Clocks, InputHints, OpenInput, logs_of_formats};
use syncline_core::output::Output;
use syncline_core::run::{self, Format, MaxLoss, Options, Progress, SCHEMA_VERSION, Summary};
use syncline_core::sink::Mark;
use syncline_core::sink::filtered::Filter;
use syncline_core::sink::samples::{By, Weight, write_sample};
use syncline_core::source::{self, Escapes, OtherEvents, SOURCES, Source, SourceOptions};
use syncline_core::stacks::demangle;
use syncline_core::stacks::flamegraph::{self, PALETTES, Stack, Style};
use syncline_core::stacks::symbols::{self, Symbols, UnresolvedFrames};
use syncline_core::thread_table::ThreadTable;

create_exception!(
    _core,
    CoreError,
    PyException,
    "args: message, hint or None, class (usage, input, output, loss, interrupted)"
);

/// pid, comm, path, device, least latency.
type FilterOf = (Option<u32>, Option<String>, Option<String>, Option<u32>, Option<i64>);

fn raise(error: &Error) -> PyErr {
    let class = match error.class() {
        ErrorClass::Usage => "usage",
        ErrorClass::Input => "input",
        ErrorClass::Output => "output",
        ErrorClass::Loss => "loss",
        ErrorClass::Interrupted => "interrupted",
    };
    CoreError::new_err((error.to_string(), error.hint(), class))
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

fn max_loss(text: &str) -> PyResult<MaxLoss> {
    let bad =
        || usage(format!("--max-loss is a number of losses or a share from 0% to 100% such as 0.1%, not '{text}'"));
    match text.strip_suffix('%') {
        Some(share) => {
            let share: f64 = share.trim().parse().map_err(|_| bad())?;
            if (0.0..=100.0).contains(&share) { Ok(MaxLoss::Share(share / 100.0)) } else { Err(bad()) }
        }
        None => text.parse().map(MaxLoss::Count).map_err(|_| bad()),
    }
}

/// What is known of an input and does not stand in it, each None where it is not:
/// - CLOCK_REALTIME and CLOCK_BOOTTIME at its begin and at its end: times of the first are moved to the second
/// - the id of the boot
/// - by the names of clocks, what is to be added to their times for ns since 1970
/// - what is to be added to its times
type HintsOf = (Option<[i64; 4]>, Option<String>, Option<BTreeMap<String, i64>>, Option<i64>);

fn hints_of((clocks, boot_id, to_realtime, offset_ns): HintsOf) -> InputHints {
    let boot = clocks.map(|[r0, b0, r1, b1]| ClockPair { first: (r0, b0), last: (r1, b1) });
    InputHints { boot, boot_id, to_realtime: to_realtime.unwrap_or_default(), offset_ns }
}

/// Converts `inputs` (paths, `-` is standard input) to `output`, whole or not at all.
///
/// `filter` is (pid, comm, path prefix, device as major << 20 | minor, least latency in ns), each None for any; `processes` are threads
/// with their processes, `frames` texts for the addresses of processes.
/// `hints`: of inputs by their path, what is known beside them (`HintsOf`).
///
/// `progress(read_bytes, total_bytes or None, events)` is called a few times a second; an exception in it stops the work.
/// Returns a dict of what was read and lost. Raises CoreError.
#[pyfunction]
#[pyo3(signature = (inputs, output, *, to=None, source=None, time_unit="ns", pid_is="thread", window_ns=None, hints=HashMap::new(), marks=Vec::new(), max_loss=None, weight="count", by="stack", callstacks=false, count_other_events=false, one_of_several=false, filter=None, processes=Vec::new(), process_names=HashMap::new(), frames=Vec::new(), progress=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
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
    max_loss: Option<&str>,
    weight: &str,
    by: &str,
    callstacks: bool,
    count_other_events: bool,
    one_of_several: bool,
    filter: Option<FilterOf>,
    processes: Vec<(u32, u32)>,
    process_names: HashMap<u32, String>,
    frames: Vec<(u32, u64, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let format = match to {
        None => None,
        Some(name) => Some(Format::by_name(name).ok_or_else(|| {
            let known: Vec<_> = Format::ALL.iter().map(|(n, ..)| *n).collect();
            usage(format!("there is no output format '{name}'; use one of {}", known.join(", ")))
        })?),
    };
    let defaults = Options::default();
    let options = Options {
        inputs,
        source,
        source_options: SourceOptions {
            escapes: Escapes::default(),
            time_unit_ns: choose("time_unit", time_unit, &[("ns", 1), ("us", 1000)])?,
            pid_is_process: choose("pid_is", pid_is, PID_IS)?,
            keep_extras: false,
            stock: None,
            machine: None,
        },
        window_ns: window_ns.unwrap_or(defaults.window_ns),
        hints: hints.into_iter().map(|(path, told)| (path, hints_of(told))).collect(),
        marks: marks.into_iter().map(|(ts, name, dur)| Mark { name, ts, dur }).collect(),
        max_loss: max_loss.map(self::max_loss).transpose()?,
        weight: choose("weight", weight, Weight::NAMES)?,
        by: choose("by", by, By::NAMES)?,
        callstacks,
        count_other_events,
        one_of_several,
        filter: filter.map_or_else(Filter::default, |(pid, comm, path, dev, min_latency_ns)| Filter {
            pid,
            comm,
            path,
            dev: dev.map(Dev),
            min_latency_ns,
        }),
        tasks: ThreadTable::new(processes, process_names),
        symbols: Symbols::new(frames),
        workers: 0,
    };
    let mut raised = None;
    let result = py.detach(|| {
        run::convert(&options, output, format, &mut |now: Progress| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (now.read_bytes, now.total_bytes, now.events))?;
                }
                Ok(())
            });
            raised = told.err();
            raised.is_none()
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    summary(py, &result.map_err(|e| raise(&e))?)
}

const PID_IS: &[(&str, bool)] = &[("thread", false), ("process", true)];

/// (path, format, whether it stands alone, clock, boot id, by clock what to add for ns since 1970), as `convert` tells them of each of its inputs.
type InputOf = (String, String, bool, Option<String>, Option<String>, BTreeMap<String, i64>);

/// Refuses inputs that cannot be converted together, whatever their clocks are: two that are one log, or whose threads cannot be told apart.
/// Raises CoreError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn check_compatible(inputs: Vec<InputOf>, pid_is: &str) -> PyResult<()> {
    let mut files: Vec<OpenInput> = Vec::new();
    for (path, format, ..) in inputs.iter().filter(|input| input.0 != "-") {
        let Ok(file) = Input::open(path) else { continue };
        let opened = (file, source::by_name(format).map_err(|e| raise(&e))?);
        open::check_twice(&files, &opened).map_err(|e| raise(&e))?;
        files.push(opened);
    }
    open::pid_is_process(&files, choose("pid_is", pid_is, PID_IS)?).map(|_| ()).map_err(|e| raise(&e))
}

/// The log that each of several inputs is a piece of, from 0, if their clocks allow that they are converted together. Raises CoreError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn join_logs(inputs: Vec<InputOf>) -> PyResult<Vec<usize>> {
    let mut clocks = Clocks::default();
    let told = |(_, _, _, name, boot_id, to_realtime): &InputOf| {
        let (name, boot_id, to_realtime) = (name.clone(), boot_id.clone(), to_realtime.clone());
        Clock { name, boot_id, to_realtime, is_told: false }
    };
    let known: Vec<_> = inputs.iter().map(|input| (&input.0, told(input))).collect();
    for (path, clock) in Clocks::best_first(&known, |(_, clock)| clock) {
        clocks.tell(path, clock).map_err(|e| raise(&e))?;
    }
    for input in &inputs {
        clocks.add(&input.0, &told(input)).map_err(|e| raise(&e))?;
    }
    Ok(logs_of_formats(inputs.iter().map(|(_, format, alone, ..)| (format.as_str(), *alone))))
}

/// Threads of logs that have stacks with addresses that have no name: (tid, comm, addresses). Raises CoreError.
#[pyfunction]
fn unresolved_addresses(py: Python<'_>, inputs: Vec<String>) -> PyResult<Vec<(u32, String, BTreeSet<u64>)>> {
    let found = py.detach(|| symbols::nameless(inputs)).map_err(|e| raise(&e))?;
    Ok(found.into_iter().map(|UnresolvedFrames { tid, comm, addresses }| (tid, comm, addresses)).collect())
}

/// The name of the format that a file begins as; None if it is in none, or empty.
#[pyfunction]
fn detect_format(py: Python<'_>, path: &str) -> PyResult<Option<&'static str>> {
    let input = py.detach(|| Input::open(path)).map_err(|e| raise(&e))?;
    Ok(source::sniff(path, input.head()).ok().map(Source::name))
}

/// What is at offsets in an ELF file, as `function+offset`; None where nothing is known. Raises OSError.
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
        one.set_item("clock_is_recorded", input.clock.is_told)?;
        one.set_item("boot_id", input.clock.boot_id.as_deref())?;
        one.set_item("to_realtime_ns", &input.clock.to_realtime)?;
        one.set_item("lines", input.lines)?;
        one.set_item("events", input.events)?;
        inputs.append(one)?;
    }
    dict.set_item("inputs", inputs)?;
    dict.set_item("lines", summary.lines)?;
    dict.set_item("events", summary.event_count())?;
    let by_kind = PyDict::new(py);
    for (name, count) in Kind::NAMES.iter().zip(summary.events) {
        by_kind.set_item(name, count)?;
    }
    dict.set_item("events_by_kind", by_kind)?;
    dict.set_item("other_events", summary.others.as_ref().map(OtherEvents::sorted))?;
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
    dict.set_item("disjoint", &summary.apart)?;
    dict.set_item("left_out", summary.left_out)?;
    dict.set_item("filter", &summary.filter)?;
    Ok(dict)
}

/// Frames as people read them: demangled, without what parts or breaks lines.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments as Python hands them over")]
fn readable(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| demangle::readable(name)).collect()
}

/// (SVG, number of frames that are too narrow to be shown) of stacks (frames, weight, base or None), outermost first.
///
/// `perhaps` says of frames (with their callers) how much more the weight and the base may be.
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

/// perf-script text of samples (comm, thread, time, weight, frames), outermost first.
#[pyfunction]
fn perf_script(samples: Vec<(String, u32, i64, u64, Vec<String>)>, weight: &str) -> PyResult<Vec<u8>> {
    let what = choose("weight", weight, Weight::NAMES)?;
    let mut text = Vec::new();
    for (comm, task, ts_ns, weight, frames) in samples {
        write_sample(&mut text, &comm, task, ts_ns, weight, what, frames.iter().rev().map(String::as_str));
    }
    Ok(text)
}

/// Writes `data` to `path` (`-` is standard output), whole or not at all.
#[pyfunction]
fn write(py: Python<'_>, path: &str, data: &[u8]) -> PyResult<()> {
    let written = py.detach(|| {
        let mut output = Output::create(Path::new(path), false)?;
        output.buffer().extend_from_slice(data);
        output.commit()
    });
    written.map_err(|e| raise(&e))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CoreError", module.py().get_type::<CoreError>())?;
    module.add("SCHEMA_VERSION", SCHEMA_VERSION)?;
    module.add("SOURCES", SOURCES.iter().map(|s| s.name()).collect::<Vec<_>>())?;
    module.add("FORMATS", Format::ALL.iter().map(|(name, endings, _)| (*name, *endings)).collect::<Vec<_>>())?;
    module.add("WEIGHTS", Weight::NAMES.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    module.add("BY", By::NAMES.iter().map(|(n, _)| *n).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(convert, module)?)?;
    module.add_function(wrap_pyfunction!(join_logs, module)?)?;
    module.add_function(wrap_pyfunction!(check_compatible, module)?)?;
    module.add_function(wrap_pyfunction!(unresolved_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(detect_format, module)?)?;
    module.add_function(wrap_pyfunction!(functions_at, module)?)?;
    module.add_function(wrap_pyfunction!(readable, module)?)?;
    module.add_function(wrap_pyfunction!(draw, module)?)?;
    module.add_function(wrap_pyfunction!(perf_script, module)?)?;
    module.add_function(wrap_pyfunction!(write, module)?)
}
