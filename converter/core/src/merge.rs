//! Several inputs of one run: which is read next, and up to when all have been read.
//!
//! Inputs of one format are pieces of one log, read one after the other, unless they say that they are not. All others tell of
//! the same time side by side: the one that is furthest behind is read on, so that little has to wait in memory.

use std::collections::VecDeque;

use crate::error::Result;
use crate::input::Input;
use crate::source::{Batch, Source, SourceOptions};
use crate::stream::{Next, Stream};

pub type OpenInput = (Input, &'static dyn Source);

struct Current {
    file: usize,
    stream: Stream,
    lines: u64,
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

impl Merge {
    pub fn new(inputs: Vec<OpenInput>, window_ns: i64, workers: usize, options: SourceOptions) -> Self {
        let logs = logs_of(&inputs);
        let mut lanes: Vec<Lane> =
            logs.iter().max().map_or_else(Vec::new, |last| (0..=*last).map(|_| Lane::default()).collect());
        for ((file, input), log) in inputs.into_iter().enumerate().zip(logs) {
            lanes[log].waiting.push_back((file, input));
        }
        Self { lanes, window_ns, workers, options, facts: Vec::new() }
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
            let reader = source.open(input, &self.options)?;
            for (key, value) in &reader.facts {
                if !self.facts.iter().any(|(k, _)| k == key) {
                    self.facts.push((key, value.clone()));
                }
            }
            lane.current = Some(Current { file, stream: Stream::start(reader, self.workers), lines: 0 });
        }
        let Some(current) = &mut lane.current else { return Ok(Step::End) };
        match current.stream.take()? {
            Next::Idle => Ok(Step::Idle),
            Next::End => {
                let file = current.file;
                lane.current = None;
                Ok(Step::EndOf(file))
            }
            Next::Batch(batch, consumed_bytes) => {
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
