//! The order in which the inputs of a command are used. It depends on what they hold. The order in which the user names them decides only
//! where that is not enough: for pieces without times, and for which of several logs a piece belongs to.
//!
//! A piece follows the piece that began before it. Logs are sorted by their formats, then by their times, then by their sizes and
//! their bytes.

use std::cmp::{Ordering, Reverse};

use crate::input::head::read_head;
use crate::input::open_input::OpenInput;
use crate::source::{Source, SourceOptions};

/// A log: the input that begins it, and its pieces.
struct Log {
    format: &'static str,
    inputs: Vec<OpenInput>,
    /// The options for its pieces.
    options: SourceOptions,
}

impl Log {
    fn of(input: OpenInput, options: SourceOptions) -> Self {
        Self { format: input.source.name(), inputs: vec![input], options }
    }

    fn start(&self) -> Option<i64> {
        self.inputs[0].head_events.start
    }

    /// Whether an input without a header can be a piece of this log: it does not begin before the log.
    fn may_have_piece(&self, piece: &mut OpenInput) -> bool {
        if self.format != piece.source.name() {
            return false;
        }
        look_into(piece, &self.options);
        self.start().zip(piece.head_events.start).is_none_or(|(start, of_piece)| start <= of_piece)
    }

    /// Sorts the pieces by their times. If one has no time in its head, they keep the given order.
    fn sort_pieces(&mut self) {
        if self.inputs.iter().all(|input| input.head_events.start.is_some()) {
            let key = |input: &OpenInput| (!input.traits.starts_log, input.head_events.start);
            self.inputs.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| compare_bytes(a, b)));
        }
    }
}

/// Reads the head of an input. Returns the options for its pieces.
fn look_into(input: &mut OpenInput, options: &SourceOptions) -> SourceOptions {
    let (head, piece_options) = read_head(input.source, &input.input, options, &input.traits);
    input.head_events = head;
    piece_options.unwrap_or(*options)
}

/// Puts inputs into the order in which they are used, and reads what their heads say about their events.
///
/// An input without a header is a piece of the last log of its format that is named before it, else of the first one that is named after
/// it, unless it begins before that log. Those that are pieces of no log with a header are one log.
pub fn arrange(inputs: Vec<OpenInput>, sources: &[&'static dyn Source], options: &SourceOptions) -> Vec<OpenInput> {
    if inputs.len() < 2 {
        return inputs;
    }
    let mut logs: Vec<Log> = Vec::new();
    let mut pieces = Vec::new();
    for mut input in inputs {
        if input.traits.starts_log {
            let of_pieces = look_into(&mut input, options);
            logs.push(Log::of(input, of_pieces));
        } else {
            pieces.push((logs.len(), input));
        }
    }
    let with_header = logs.len();
    for (logs_before, mut piece) in pieces {
        let order = (0..logs_before).rev().chain(logs_before..with_header);
        let log = order.into_iter().find(|&at| logs[at].may_have_piece(&mut piece));
        let of_pieces = || logs[with_header..].iter().position(|log| log.format == piece.source.name());
        if let Some(at) = log.or_else(|| of_pieces().map(|at| with_header + at)) {
            look_into(&mut piece, &logs[at].options);
            logs[at].inputs.push(piece);
        } else {
            let of_pieces = look_into(&mut piece, options);
            logs.push(Log::of(piece, of_pieces));
        }
    }
    logs.iter_mut().for_each(Log::sort_pieces);
    let rank = |format| sources.iter().position(|source| source.name() == format);
    logs.sort_by(|a, b| rank(a.format).cmp(&rank(b.format)).then_with(|| compare_logs(a, b)));
    logs.into_iter().flat_map(|log| log.inputs).collect()
}

/// Compares logs of one format.
fn compare_logs(a: &Log, b: &Log) -> Ordering {
    let (first, second) = (&a.inputs[0], &b.inputs[0]);
    // A log that is not standalone continues the lane of the one before it, so it must not follow one with a header.
    // An excerpt of a log may begin with the same event as the log. The larger input comes first, so that what both hold is taken from the log.
    let key = |open: &OpenInput| {
        let start = open.head_events.start;
        (open.traits.is_standalone, start.is_none(), start, Reverse(open.input.estimated_bytes()))
    };
    key(first).cmp(&key(second)).then_with(|| compare_bytes(first, second))
}

/// Compares inputs by their heads, then by their sizes. Only inputs with equal heads and sizes are compared by their names.
fn compare_bytes(a: &OpenInput, b: &OpenInput) -> Ordering {
    let key = |open: &OpenInput| (open.input.total_bytes.is_none(), open.input.total_bytes);
    a.input.head().cmp(b.input.head()).then_with(|| key(a).cmp(&key(b))).then_with(|| a.input.path.cmp(&b.input.path))
}
