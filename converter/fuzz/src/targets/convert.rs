//! Any bytes through all stages: detect, parse, reorder, pair, write. The output is standard output.

use std::convert::Infallible;
use std::path::Path;

use crate::checks::{Checker, CollectedRows, Ledger, source_options};
use syncline_core::error::{Error, Result};
use syncline_core::event::{Event, Kind};
use syncline_core::input::open::OpenInput;
use syncline_core::input_file::{Chunk, Input};
use syncline_core::location::Location;
use syncline_core::merge::simultaneous::{Simultaneous, Use};
use syncline_core::options::Options;
use syncline_core::run;
use syncline_core::sink::Sink;
use syncline_core::sink::csv::Csv;
use syncline_core::sink::events_jsonl::EventsJsonl;
use syncline_core::sink::folded::Folded;
use syncline_core::sink::jsonl::Jsonl;
use syncline_core::sink::perf_script::PerfScript;
use syncline_core::sink::perfetto::PerfettoTrace;
use syncline_core::sink::samples::{By, Weight};
use syncline_core::source::{Batch, FarTimes, SOURCES, SourceOptions, TornTimes};
use syncline_core::summary::Summary;

pub(super) fn run(data: &[u8]) {
    let [text @ .., how, what] = data else { return };
    let Some(options) = options_for(text, *how) else { return };
    if what & 7 == 7 {
        round_trip(&options, text);
    } else {
        tables(&options, text, *what);
    }
}

fn options_for(text: &[u8], how: u8) -> Option<Options> {
    let mut options = Options {
        source: match how >> 4 & 3 {
            0 | 1 => None,
            2 => Some(if how & 8 == 0 { "bpftrace" } else { "strace" }.into()),
            _ => Some("events-jsonl".into()),
        },
        source_options: source_options(how),
        window_ns: if how & 0x40 == 0 { 5_000_000_000 } else { 100 },
        workers: 1,
        max_idle_name_bytes: if how & 1 == 0 { 4 << 20 } else { 0 },
        ..Options::default()
    };
    let input = Input::from_bytes("fuzz", text.to_vec()).ok()?;
    let open = open(&options, input)?;
    // A low-level log says what its ids are.
    options.source_options.pid_is_process &= matches!(open.source.name(), "bpftrace" | "bpftrace-json");
    Some(options)
}

fn open(options: &Options, input: Input) -> Option<OpenInput> {
    OpenInput::with_format(input, &options.sources, options.source.as_deref()).ok()
}

fn tables(options: &Options, text: &[u8], what: u8) {
    let Ok(input) = Input::from_bytes("fuzz", text.to_vec()) else { return };
    let Some(input) = open(options, input) else { return };
    let out = Path::new("-");
    let weight = Weight::NAMES[usize::from(what >> 3 & 3)].1;
    let by = By::NAMES[usize::from(what >> 5 & 1)].1;
    let sink: Result<Box<dyn Sink>> = match what & 7 {
        0..=2 => PerfettoTrace::create(out, false, &[], options.max_idle_name_bytes).map(|s| Box::new(s) as _),
        3 => Csv::create(out, false).map(|s| Box::new(s) as _),
        4 => Jsonl::create(out).map(|s| Box::new(s) as _),
        5 => PerfScript::create(out, weight, by).map(|s| Box::new(s) as _),
        _ => Folded::create(out, weight, by).map(|s| Box::new(s) as _),
    };
    let mut sink = sink.expect("standard output is open");
    let Some(Read { events, others, late }) = read(options, sink.wants_file_ops(), text) else { return };
    let ledger = |events: &[Event]| {
        let mut ledger = Ledger::default();
        for event in events {
            ledger.add(event);
        }
        ledger.kinds[Kind::Other.index()] += others;
        ledger
    };
    let mut checker = Checker::new(sink.as_mut(), !late);
    match run::convert_into(options, vec![input], &mut checker, &mut |_| true) {
        Ok(summary) => {
            assert_eq!(summary.events, ledger(&events).kinds);
            checker.balance(&ledger(&used_once(events)), &summary.losses);
        }
        Err(Error::NoEvents { .. } | Error::Read { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

struct Read {
    events: Vec<Event>,
    /// Number of events that no report uses.
    others: u64,
    /// Events may be late. Intervals are not checked then.
    late: bool,
}

/// Parses an input in one thread. `None` if it cannot be read to its end.
fn read(options: &Options, keep_file_ops: bool, text: &[u8]) -> Option<Read> {
    let input = Input::from_bytes("fuzz", text.to_vec()).ok()?;
    let OpenInput { input, source, .. } = open(options, input)?;
    let source_options = SourceOptions { keep_extras: false, keep_file_ops, ..options.source_options };
    let mut reader = source.open(input, &source_options).ok()?;
    let (mut chunk, mut far_times, mut torn_times) = (Chunk::default(), FarTimes::of(&reader), TornTimes::default());
    let mut read = Read { events: Vec::new(), others: 0, late: false };
    let mut watermark = None;
    while reader.chunks.next(&mut chunk).ok()? {
        let mut batch = Box::new(Batch::default());
        reader.parse.parse(chunk.bytes(), &mut batch);
        if let Some(pass) = &mut reader.stateful_pass {
            pass.apply(&mut batch);
        }
        torn_times.place(&mut batch);
        // A damaged file has events that are older than its watermark.
        read.late |= watermark.is_some_and(|watermark| batch.events.iter().any(|event| event.ts < watermark));
        watermark = chunk.watermark;
        far_times.add(batch, 0);
    }
    if let Some(pass) = &mut reader.stateful_pass {
        let mut batch = Box::new(Batch::default());
        pass.finish(&mut batch);
        far_times.add(batch, 0);
    }
    far_times.end();
    while let Some((batch, _)) = far_times.take() {
        read.events.extend_from_slice(&batch.events);
        read.others += batch.dropped_events;
    }
    read.late |= watermark.is_none() && may_be_late(&read.events, options.window_ns);
    Some(read)
}

/// The events of a text in the order of time, without those that a part of it holds again.
fn used_once(mut events: Vec<Event>) -> Vec<Event> {
    let mut simultaneous = Simultaneous::new(1);
    let at = |event: &Event| Location::new(0, u64::from(event.line));
    for event in &events {
        simultaneous.observe(event, at(event), u64::from(event.line), 0);
    }
    events.sort_by_key(|event| event.ts);
    let mut used = Vec::with_capacity(events.len());
    let mut take = |event, _, what| -> std::result::Result<(), Infallible> {
        if what == Use::Once {
            used.push(event);
        }
        Ok(())
    };
    for event in events {
        let Ok(()) = simultaneous.event(event, at(&event), 0, &mut take);
    }
    let Ok(()) = simultaneous.finish(take);
    used
}

/// Whether an event may come later than the window allows.
fn may_be_late(events: &[Event], window_ns: i64) -> bool {
    let mut newest = i64::MIN;
    events.iter().any(|event| {
        newest = newest.max(event.ts);
        newest - event.ts > window_ns
    })
}

/// The low-level log gives the same events and the same rows, and is written again byte for byte.
fn round_trip(options: &Options, text: &[u8]) {
    let of = |source: Option<&str>, source_options| Options {
        source: source.map(str::to_owned),
        source_options,
        workers: 1,
        ..Options::default()
    };
    let direct = of(options.source.as_deref(), options.source_options);
    // The low-level log records what its ids are.
    let low_level =
        of(Some("events-jsonl"), SourceOptions { time_unit_ns: 1, pid_is_process: false, ..options.source_options });
    let Some(Ok((before, log))) = low_level_log(&direct, text) else { return };
    assert!(SOURCES.iter().any(|s| s.name() == before.source));
    let (after, again) =
        low_level_log(&low_level, &log).and_then(Result::ok).expect("a low-level log can be read again");
    assert_eq!(before.events, after.events);
    assert_eq!(before.losses.total(), after.losses.total());
    // A damaged file may hold a record twice, or bpftrace's JSON the same line in one string. What is there again is recognized by its line, and in
    // the low-level log each event has one.
    if !repeats_without_lines(&direct, text) {
        assert_eq!(rows(&direct, text), rows(&low_level, &log), "rows of the log itself, and of its low-level log");
    }
    if before.source != "events-jsonl" {
        assert!(same_but_source(&log, &again), "the second low-level log differs from the first");
    }
}

/// Whether the time goes back in an input of a format without lines.
fn repeats_without_lines(options: &Options, text: &[u8]) -> bool {
    let goes_back = |pair: &[Event]| pair[0].line == pair[1].line && pair[1].ts < pair[0].ts;
    let is_again = |pair: &[Event]| pair[0].line == pair[1].line && pair[0].identity() == pair[1].identity();
    read(options, false, text).is_some_and(|read| read.events.windows(2).any(|pair| goes_back(pair) || is_again(pair)))
}

/// `None` if the input cannot be opened.
fn low_level_log(options: &Options, text: &[u8]) -> Option<Result<(Summary, Vec<u8>)>> {
    let input = open(options, Input::from_bytes("fuzz", text.to_vec()).ok()?)?;
    let mut log = EventsJsonl::in_memory();
    let summary = run::convert_into_log(options, vec![input], &mut log, &mut |_| true);
    Some(summary.map(|summary| (summary, log.into_bytes())))
}

/// The counts of the losses of an input, and its rows.
type LossesAndRows = (Vec<(&'static str, u64)>, Vec<String>);

/// `None` if the input cannot be converted.
fn rows(options: &Options, text: &[u8]) -> Option<LossesAndRows> {
    let input = open(options, Input::from_bytes("fuzz", text.to_vec()).ok()?)?;
    let mut rows = CollectedRows::default();
    let summary = run::convert_into(options, vec![input], &mut rows, &mut |_| true).ok()?;
    Some((summary.losses.iter().map(|(reason, loss)| (reason.name(), loss.count)).collect(), rows.0))
}

/// The second log names the first as its source.
fn same_but_source(a: &[u8], b: &[u8]) -> bool {
    let a = String::from_utf8_lossy(a);
    let named = |name: &str| a.replace(&format!("\"source\":\"{name}\""), "\"source\":\"events-jsonl\"");
    SOURCES.iter().any(|source| named(source.name()).as_bytes() == b) || a.as_bytes() == b
}
