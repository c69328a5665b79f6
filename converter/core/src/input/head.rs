//! Looks at the events in the head and the tail of an input before the input is read.

use std::collections::BTreeSet;

use crate::event::{Event, Kind};
use crate::input_file::{Chunk, Input};
use crate::source::{Batch, FarTimes, InputTraits, Source, SourceOptions};

/// Clocks that begin again each day or with each log, so their times do not show which of two pieces comes first.
const CLOCKS_WITHOUT_DATE: [&str; 2] = ["time_of_day", "relative"];

/// The events at the ends of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadEvents {
    /// Time of the oldest event in the head in ns, or of its first line where lines have times, on the input's own clock. `None` if the head
    /// shows no event, or times without a date.
    pub start: Option<i64>,
    /// Time of the newest event in the tail. `None` if it is not known, or not needed.
    pub end: Option<i64>,
    /// The kinds of events of each thread: (thread, index of the kind). Without completions, which any thread may report.
    pub kinds: BTreeSet<(u32, usize)>,
}

impl HeadEvents {
    /// Whether one of two inputs comes after the other, whichever is first, like the pieces of a text: they have at most a hundredth of the
    /// shorter one's time in common. `None` if it is not known.
    pub(super) fn are_consecutive(&self, other: &Self) -> Option<bool> {
        let (first, second) = if self.start <= other.start { (self, other) } else { (other, self) };
        let ((from, to), (next, end)) = (first.start.zip(first.end)?, second.start.zip(second.end)?);
        let shorter = to.saturating_sub(from).min(end.saturating_sub(next));
        Some(to.min(end).saturating_sub(next) <= shorter / 100)
    }
}

/// Parses the head of a text, and its tail if the input may be a part of a recording. Also returns the options for its pieces, if it has a
/// header that sets them.
///
/// The head of a binary file is only a part of what its source needs, so nothing is known of it.
pub(super) fn read_head(
    source: &'static dyn Source,
    input: &Input,
    options: &SourceOptions,
    traits: &InputTraits,
) -> (HeadEvents, Option<SourceOptions>) {
    let mut found = HeadEvents::default();
    if input.head().contains(&0) || !source.parts(&input.path).is_empty() {
        return (found, None);
    }
    let Some(mut head) = parse(source, &input.path, input.head().to_vec(), options) else { return (found, None) };
    if head.events.is_empty() && !traits.is_standalone {
        // The place of a piece among the others shows in any event.
        let options = SourceOptions { keep_extras: true, ..*options };
        head.events = parse(source, &input.path, input.head().to_vec(), &options).map_or(Vec::new(), |all| all.events);
    }
    let oldest = head.events.iter().map(|event| event.ts).min().filter(|_| head.has_date);
    found.start = source.begin(input.head()).or(oldest);
    let kinds = head
        .events
        .iter()
        .filter(|event| !matches!(event.kind, Kind::BioComplete { .. } | Kind::BlockComplete { .. } | Kind::Other));
    found.kinds = kinds.map(|event| (event.tid, event.kind.index())).collect();
    if traits.is_part_of_recording && traits.is_standalone && head.has_date {
        // The tail may begin within a line, so its first line is left out.
        let tail = input.tail().map(|tail| tail.splitn(2, |&b| b == b'\n').last().unwrap_or_default().to_vec());
        let tail = tail.and_then(|tail| parse(source, &input.path, tail, options));
        found.end = tail.and_then(|tail| tail.events.iter().map(|event| event.ts).max());
    }
    (found, head.piece_options)
}

/// Events of a part of an input.
struct Part {
    events: Vec<Event>,
    has_date: bool,
    piece_options: Option<SourceOptions>,
}

/// Parses a part of a text. If it ends within a line, its last event is left out.
fn parse(source: &'static dyn Source, path: &str, text: Vec<u8>, options: &SourceOptions) -> Option<Part> {
    let ends_within_line = text.last() != Some(&b'\n');
    let mut reader = source.open(Input::from_bytes(path, text).ok()?, options).ok()?;
    let has_date = !reader.facts.iter().any(|(key, value)| *key == "clock" && CLOCKS_WITHOUT_DATE.contains(&&**value));
    let (mut chunk, mut far_times, mut events) = (Chunk::default(), FarTimes::of(&reader), Vec::new());
    while reader.chunks.next(&mut chunk).is_ok_and(|has_more| has_more) {
        let mut batch = Box::new(Batch::default());
        reader.parse.parse(chunk.bytes(), &mut batch);
        if let Some(pass) = &mut reader.stateful_pass {
            pass.apply(&mut batch);
        }
        far_times.add(batch, 0);
    }
    far_times.end();
    while let Some((batch, _)) = far_times.take() {
        events.extend(batch.events.iter().filter(|event| !matches!(event.kind, Kind::Torn { .. })));
    }
    if ends_within_line && events.len() > 1 {
        events.pop();
    }
    Some(Part { events, has_date, piece_options: reader.piece_options })
}
