//! Several inputs of one run: which is read next, and up to when all have been read.
//!
//! Inputs of one format are pieces of one log, read one after the other, unless they say that they are not. All others tell of
//! the same time side by side: the one that is furthest behind is read on, so that little has to wait in memory.

use std::collections::{HashMap, VecDeque};

use crate::error::{Error, Result};
use crate::input::Input;
use crate::source::{Batch, Source, SourceOptions};
use crate::stream::{Next, Stream};

pub type OpenInput = (Input, &'static dyn Source);

/// What two clocks showed at two moments: (CLOCK_REALTIME, CLOCK_BOOTTIME), in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BesideBoot {
    pub first: (i64, i64),
    pub last: (i64, i64),
}

impl BesideBoot {
    /// The time on CLOCK_BOOTTIME: both go evenly between the two moments, and alike before and after them.
    fn moved(self, realtime: i64) -> i64 {
        let (since, span) = (realtime - self.first.0, self.last.0 - self.first.0);
        let gained = (self.last.1 - self.first.1) - span;
        let part = i128::from(since.clamp(0, span.max(0)));
        let gain = if span > 0 { (i128::from(gained) * part / i128::from(span)) as i64 } else { 0 };
        self.first.1.saturating_add(since).saturating_add(gain).max(0)
    }
}

const REALTIME: &str = "realtime";
const BOOTTIME: &str = "boottime";
/// Clocks whose zero is another in each log.
const OF_ONE_LOG: [&str; 2] = ["time_of_day", "relative"];

struct Current {
    file: usize,
    stream: Stream,
    lines: u64,
    moved: Option<BesideBoot>,
}

/// Inputs that are read one after the other.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<(usize, OpenInput)>,
    current: Option<Current>,
    newest: Option<i64>,
    /// All that is older has been read, as the source itself says.
    until: Option<i64>,
}

impl Lane {
    fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.current.is_none()
    }

    /// All that is older than this has been read; what comes later than the window allows is late.
    fn reached(&self, window_ns: i64) -> i64 {
        if self.is_over() {
            return i64::MAX;
        }
        self.until.or_else(|| self.newest.map(|ts| ts.saturating_sub(window_ns))).unwrap_or(i64::MIN)
    }
}

/// More than all pages of many CPUs hold: a file that says that all is still to come is not kept in memory whole.
const MAX_WAITING_EXACT: usize = 4_000_000;

/// A batch of one of the inputs.
pub struct Piece {
    pub batch: Box<Batch>,
    pub file: usize,
    /// Lines of the file before it.
    pub lines_before: u64,
    /// Bytes of the file that have been read.
    pub consumed_bytes: u64,
    lane: usize,
}

pub enum Step {
    Piece(Piece),
    /// Nothing has come for a while.
    Idle,
    /// An input has ended.
    EndOf(usize),
    End,
}

pub struct Merge {
    lanes: Vec<Lane>,
    window_ns: i64,
    workers: usize,
    options: SourceOptions,
    clocks: HashMap<String, BesideBoot>,
    /// The first input that has a clock.
    clock: Option<(String, String)>,
    /// What the inputs say of themselves; the first word counts.
    pub facts: Vec<(&'static str, String)>,
}

/// The log that each input is a piece of, from 0.
pub fn logs_of(inputs: &[OpenInput]) -> Vec<usize> {
    let mut names: Vec<&str> = Vec::new();
    inputs
        .iter()
        .map(|(input, source)| {
            let piece = !source.stands_alone(input.head());
            names.iter().rposition(|name| piece && *name == source.name()).unwrap_or_else(|| {
                names.push(source.name());
                names.len() - 1
            })
        })
        .collect()
}

/// Whether the times of an input can be laid beside those of the first one.
fn check_clock(
    first: &mut Option<(String, String)>,
    path: &str,
    source: &str,
    facts: &[(&'static str, String)],
) -> Result<()> {
    let told = facts.iter().find(|(key, _)| *key == "clock").map(|(_, clock)| clock.as_str());
    // The low-level log does not tell; the thesis's has bpftrace's.
    let Some(clock) = told.or((source == "thesis").then_some(BOOTTIME)) else { return Ok(()) };
    let Some((of, its)) = first else {
        *first = Some((path.to_owned(), clock.to_owned()));
        return Ok(());
    };
    if its == clock && !OF_ONE_LOG.contains(&clock) {
        return Ok(());
    }
    Err(Error::Clocks {
        first: of.clone(),
        first_clock: its.clone(),
        second: path.to_owned(),
        second_clock: clock.to_owned(),
    })
}

impl Merge {
    pub fn new(
        inputs: Vec<OpenInput>,
        window_ns: i64,
        workers: usize,
        options: SourceOptions,
        clocks: HashMap<String, BesideBoot>,
    ) -> Self {
        let logs = logs_of(&inputs);
        let mut lanes: Vec<Lane> =
            logs.iter().max().map_or_else(Vec::new, |last| (0..=*last).map(|_| Lane::default()).collect());
        for ((file, input), log) in inputs.into_iter().enumerate().zip(logs) {
            lanes[log].waiting.push_back((file, input));
        }
        Self { lanes, window_ns, workers, options, clocks, clock: None, facts: Vec::new() }
    }

    /// Whether the low-level log can be written as it is read.
    pub fn is_one_log(&self) -> bool {
        self.lanes.len() <= 1
    }

    pub fn step(&mut self) -> Result<Step> {
        let window_ns = self.window_ns;
        let behind = self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_over());
        let Some((at, lane)) = behind.min_by_key(|(_, lane)| lane.reached(window_ns)) else { return Ok(Step::End) };
        if lane.current.is_none()
            && let Some((file, (input, source))) = lane.waiting.pop_front()
        {
            let path = input.path.clone();
            let mut reader = source.open(input, &self.options)?;
            let moved = self.clocks.get(&path).copied();
            let moved = moved.filter(|_| reader.facts.iter().any(|fact| *fact == ("clock", REALTIME.to_owned())));
            if moved.is_some() {
                reader.facts.retain(|(key, _)| *key != "clock");
                reader.facts.push(("clock", BOOTTIME.to_owned()));
            }
            check_clock(&mut self.clock, &path, source.name(), &reader.facts)?;
            for (key, value) in &reader.facts {
                if !self.facts.iter().any(|(k, _)| k == key) {
                    self.facts.push((key, value.clone()));
                }
            }
            lane.current = Some(Current { file, stream: Stream::start(reader, self.workers), lines: 0, moved });
        }
        let Some(current) = &mut lane.current else { return Ok(Step::End) };
        match current.stream.take()? {
            Next::Idle => Ok(Step::Idle),
            Next::End => {
                let file = current.file;
                lane.current = None;
                Ok(Step::EndOf(file))
            }
            Next::Batch(mut batch, consumed_bytes) => {
                if let Some(moved) = current.moved {
                    batch.events.iter_mut().for_each(|event| event.ts = moved.moved(event.ts));
                }
                let lines_before = current.lines;
                current.lines += batch.lines;
                lane.until = batch.until;
                lane.newest = batch.events.iter().map(|e| e.ts).max().max(lane.newest);
                Ok(Step::Piece(Piece { batch, file: current.file, lines_before, consumed_bytes, lane: at }))
            }
        }
    }

    /// All that is older than this has been read.
    pub fn until(&self) -> i64 {
        self.lanes.iter().map(|lane| lane.reached(self.window_ns)).min().unwrap_or(i64::MAX)
    }

    /// How many events may wait for older ones: a source that knows until when it has been read says that none comes.
    pub fn may_wait(&self) -> usize {
        if self.lanes.iter().any(|lane| lane.until.is_some()) { MAX_WAITING_EXACT } else { crate::order::MAX_WAITING }
    }

    pub fn give_back(&self, piece: Piece) {
        if let Some(current) = &self.lanes[piece.lane].current {
            current.stream.give_back(*piece.batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_drift_are_moved_at_both_ends() {
        let clocks = BesideBoot { first: (1_000_000, 500), last: (2_000_000, 1_000_600) };
        assert_eq!([1_000_000, 1_500_000, 2_000_000].map(|t| clocks.moved(t)), [500, 500_550, 1_000_600]);
        // What was before and after has the offset of the nearer end.
        assert_eq!([999_900, 2_000_100].map(|t| clocks.moved(t)), [400, 1_000_700]);
        let one = BesideBoot { first: (1_000_000, 500), last: (1_000_000, 500) };
        assert_eq!(one.moved(1_000_007), 507);
    }

    #[test]
    fn inputs_on_different_clocks_are_refused() {
        let facts = |clock: &str| [("clock", clock.to_owned())];
        let mut first = None;
        check_clock(&mut first, "a", "strace", &facts("realtime")).unwrap();
        check_clock(&mut first, "b", "strace", &facts("realtime")).unwrap();
        check_clock(&mut first, "c", "events-jsonl", &[]).unwrap();
        let error = check_clock(&mut first, "d", "thesis", &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a and d are not on one clock: that of the one is realtime, that of the other boottime"
        );
        let mut first = None;
        check_clock(&mut first, "a", "strace", &facts("relative")).unwrap();
        check_clock(&mut first, "b", "strace", &facts("relative")).unwrap_err();
    }
}
