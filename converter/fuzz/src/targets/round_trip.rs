//! Any bytes as a log of any format, written as a low-level log and read again. Both give the same events, and the same log.

use crate::checks::source_options;
use syncline_core::event::probe::Probe;
use syncline_core::event::{Event, Kind};
use syncline_core::input_file::{Chunk, Input};
use syncline_core::names::Names;
use syncline_core::sink::events_jsonl::EventsJsonl;
use syncline_core::source::{Batch, SOURCES, Source, SourceOptions, TornTimes};

pub(super) fn run(data: &[u8]) {
    let [text @ .., how, format] = data else { return };
    // The low-level log does not hold operations on files.
    let options = SourceOptions { keep_extras: true, keep_file_ops: false, ..source_options(*how) };
    let source = SOURCES[usize::from(*format) % SOURCES.len()];
    let Some((first, events)) = low_level_log(source, &options, text) else { return };
    let log = SOURCES.iter().find(|source| source.name() == "events-jsonl").expect("it is a format");
    // Times in the log are in ns, whatever those of its source were.
    let options = SourceOptions { keep_extras: true, time_unit_ns: 1, ..SourceOptions::default() };
    let (second, again) = low_level_log(*log, &options, &first).expect("a low-level log can be read");
    for (a, b) in events.iter().zip(&again) {
        assert_eq!(a, b, "read from the low-level log");
    }
    assert_eq!(events.len(), again.len(), "events read from the low-level log");
    let first = renamed(&first, source.name());
    if let Some((a, b)) = first.lines().zip(String::from_utf8_lossy(&second).lines()).find(|(a, b)| a != b) {
        panic!("the second low-level log differs:\n{a}\n{b}");
    }
}

/// Reads a log. Returns its low-level log and its events as text; `None` if it cannot be read.
fn low_level_log(source: &'static dyn Source, options: &SourceOptions, text: &[u8]) -> Option<(Vec<u8>, Vec<String>)> {
    let input = Input::from_bytes("fuzz.0", text.to_vec()).ok()?;
    let mut reader = source.open(input, options).ok()?;
    let (mut chunk, mut batch) = (Chunk::default(), Batch::default());
    let mut torn_times = TornTimes::default();
    let mut log = EventsJsonl::in_memory();
    let mut events = Vec::new();
    let mut lines = 0;
    while reader.chunks.next(&mut chunk).ok()? {
        batch.clear();
        reader.parse.parse(chunk.bytes(), &mut batch);
        if let Some(pass) = &mut reader.stateful_pass {
            pass.apply(&mut batch);
        }
        torn_times.place(&mut batch);
        log.batch(&batch, source.name(), lines).ok()?;
        lines += batch.lines;
        events.extend(batch.events.iter().map(|event| plain(event, &batch.names)));
    }
    Some((log.into_bytes(), events))
}

/// The second log names the first as its source.
fn renamed(log: &[u8], source: &str) -> String {
    String::from_utf8_lossy(log).replace(&format!("\"source\":\"{source}\""), "\"source\":\"events-jsonl\"")
}

/// An event with its names written out, without its place in the input.
fn plain(event: &Event, names: &Names) -> String {
    let text = |id| String::from_utf8_lossy(names.get(id)).into_owned();
    // How far its frames are indented says nothing.
    let frames =
        |id| text(id).lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let kind = match event.kind {
        Kind::CallEnter { op, stack, path, call_only } => {
            format!("{op:?} {:?} {:?} {call_only}", frames(stack), text(path))
        }
        Kind::CallExit { op, ret, stack, untimed, entry_lost } => {
            format!("{op:?} {ret:?} {:?} {untimed} {entry_lost}", frames(stack))
        }
        Kind::SyncStart { id, start, end, path, fs, ino, dev, datasync, by_thread } => {
            format!("{id} {start} {end} {:?} {:?} {ino} {dev} {datasync} {by_thread}", text(path), text(fs))
        }
        Kind::Probe(Probe::SyncEnter { path, fs, function, scope, dev, ino, generation, datasync, .. }) => {
            let texts = [path, fs, function].map(text);
            format!("{texts:?} {scope:?} {dev} {ino} {generation} {datasync:?}")
        }
        Kind::SyncEnd { id, ret, fs, dev, ino, datasync } => {
            format!("{id} {ret} {:?} {dev} {ino} {datasync:?}", text(fs))
        }
        Kind::SyncDone { dur, fs, path, ret } => format!("{dur} {:?} {ret:?}", [fs, path].map(text)),
        Kind::Mark { phase, name, key } => format!("{phase:?} {:?} {key}", text(name)),
        other => format!("{other:?}"),
    };
    format!("{} {} {} {:?} {kind}", event.ts, event.tid, event.pid, text(event.comm))
}
