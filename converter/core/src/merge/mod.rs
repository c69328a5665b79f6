//! Merges the inputs of a run: which input is read next, and the watermark up to which all inputs have been read.
//!
//! Pieces of one log are read one after the other, in a lane. Lanes cover the same time, so they take turns: the lane that is furthest
//! behind is read next, so that few events have to wait in memory. A piece that begins long before the one before it ends gets a lane of
//! its own.

pub mod clock;
pub mod parallel_parse;
pub mod parts;
pub mod reorder;
pub mod simultaneous;

use std::collections::{HashMap, VecDeque};

use self::clock::{Clock, ClockShift, Clocks, InputHints, remove_clock_facts, resolve_clock};
use self::parallel_parse::{Next, Stream};
use crate::error::{Error, Result};
use crate::input::grouping::assign_lanes;
use crate::input::open::OpenInput;
use crate::input_file::Input;
use crate::source::{Batch, Reader, SourceOptions, StatefulPass};

/// Maximum number of waiting events if a source gives watermarks: more than all ring-buffer pages of many CPUs hold. A file whose
/// watermarks never rise must not be kept in memory whole.
const MAX_WAITING_BY_WATERMARK: usize = 4_000_000;

pub struct MergeOptions {
    /// Reorder window of inputs without watermarks, in ns.
    pub window_ns: i64,
    /// Parser threads of each lane; 0 for the number of cores.
    pub workers: usize,
    pub source_options: SourceOptions,
    /// By the path that the caller gave.
    pub hints: HashMap<String, InputHints>,
    /// Count the events that no report uses by the tracer's names for them.
    pub count_other_events: bool,
}

/// A batch of one of the inputs.
pub struct MergedBatch {
    pub batch: Box<Batch>,
    /// Index of the input.
    pub input: usize,
    /// Lines of the input before the batch.
    pub lines_before: u64,
    /// Bytes of the input that have been read, up to the end of the batch.
    pub consumed_bytes: u64,
    /// No event that comes later, from any input, is older than this, except late events.
    pub watermark: i64,
    /// Maximum number of events that may wait for the watermark.
    pub max_waiting: usize,
    /// One of the inputs that have been opened says that its recorder follows syncs of a file system.
    pub records_requests: bool,
    lane: usize,
}

pub enum MergeStep {
    MergedBatch(MergedBatch),
    /// No input has had data for a while.
    Idle,
    /// The input with this index has ended.
    InputEnded(usize),
    End,
}

/// A sequence of inputs that are read one after the other.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<(usize, OpenInput)>,
    /// When the first of the waiting inputs begins, if that is known. It may begin before the current one ends.
    next_start: Option<i64>,
    current: Option<CurrentInput>,
    /// Time of the newest event.
    newest: Option<i64>,
    /// The watermark that the current input has given.
    watermark: Option<i64>,
    /// An input of this lane has given watermarks.
    has_watermarks: bool,
    /// Options for its pieces, if the header of a piece has set them.
    piece_options: Option<SourceOptions>,
    /// The state at the end of the last piece, and how its times were shifted.
    carried_state: Option<(Box<dyn StatefulPass>, Option<ClockShift>)>,
    /// The end of the text that the state belongs to. The next piece may repeat it.
    tail: Option<Vec<u8>>,
}

struct CurrentInput {
    index: usize,
    path: String,
    stream: Stream,
    lines: u64,
    shift: Option<ClockShift>,
}

impl Lane {
    fn is_finished(&self) -> bool {
        self.waiting.is_empty() && self.current.is_none()
    }

    /// No event that this lane gives later is older than this, except events that are older than the reorder window allows.
    fn watermark(&self, window_ns: i64) -> i64 {
        if self.is_finished() {
            return i64::MAX;
        }
        let of_current = match (self.watermark, self.newest) {
            // Nothing more comes, but the end of the log has not been reported yet. The other lanes wait for that.
            (Some(i64::MAX), newest) => newest.unwrap_or(i64::MIN),
            (Some(watermark), _) => watermark,
            (None, newest) => newest.map_or(i64::MIN, |ts| ts.saturating_sub(window_ns)),
        };
        of_current.min(self.next_start.map_or(i64::MAX, |start| start.saturating_sub(window_ns)))
    }

    /// Whether the next input begins before the newest event of the current one.
    fn overlaps_next(&self) -> bool {
        self.next_start.zip(self.newest).is_some_and(|(start, newest)| start < newest)
    }

    /// Whether the next input began so long ago that the events since then would not fit into the reorder window.
    fn is_ahead_of_next(&self, window_ns: i64) -> bool {
        let since = self.newest.map_or(i64::MIN, |newest| newest.saturating_sub(window_ns));
        self.current.is_some() && self.next_start.is_some_and(|start| start < since)
    }

    /// Moves the next input into a lane of its own, so that both are read at the same time. If it starts a log, its pieces follow it.
    fn split_off_next(&mut self) -> Self {
        let is_piece = |(_, open): &&(usize, OpenInput)| !open.traits.starts_log;
        let starts_log = self.waiting.front().is_some_and(|next| !is_piece(&next));
        let pieces = if starts_log { self.waiting.iter().skip(1).take_while(is_piece).count() } else { 0 };
        let waiting = self.waiting.drain(..=pieces).collect();
        Self { waiting, piece_options: self.piece_options, ..Self::default() }
    }
}

/// An opened input whose records have not been read yet.
struct ReadyInput {
    index: usize,
    path: String,
    /// The number of its lines that are left out.
    skipped_lines: u64,
    /// Its place among the inputs of the command.
    place_in_command: usize,
    /// All of it is in the head that was read to detect its format, so no worker threads are worth it.
    is_small: bool,
    reader: Reader,
    clock: Clock,
    /// The shift that the caller's hints ask for.
    shift: Option<ClockShift>,
    known: Known,
}

/// The times between which an input has all that was recorded. `None`: from its first event on, or up to its last one.
#[derive(Clone, Copy, Default)]
struct Known {
    from: Option<i64>,
    until: Option<i64>,
}

pub struct Merge {
    lanes: Vec<Lane>,
    options: MergeOptions,
    has_started: bool,
    known_clocks: Clocks,
    clocks: HashMap<usize, Clock>,
    facts: Vec<(&'static str, String)>,
    records_requests: bool,
    /// By input, on the clock of the result.
    known: HashMap<usize, Known>,
}

impl Merge {
    pub fn new(inputs: Vec<OpenInput>, options: MergeOptions) -> Self {
        let lane_of = assign_lanes(&inputs);
        let count = lane_of.iter().max().map_or(0, |last| last + 1);
        let mut lanes: Vec<Lane> = (0..count).map(|_| Lane::default()).collect();
        for (input, lane) in inputs.into_iter().enumerate().zip(lane_of) {
            lanes[lane].waiting.push_back(input);
        }
        Self {
            lanes,
            options,
            has_started: false,
            known_clocks: Clocks::default(),
            clocks: HashMap::new(),
            facts: Vec::new(),
            records_requests: false,
            known: HashMap::new(),
        }
    }

    /// Returns the time from which an input says nothing, if its recorder ended early. It is known once the input has been opened.
    pub fn known_until(&self, input: usize) -> Option<i64> {
        self.known.get(&input).and_then(|known| known.until)
    }

    /// Returns the clock of an input. It is known once the input has been opened.
    pub fn clock_of(&self, input: usize) -> Option<&Clock> {
        self.clocks.get(&input)
    }

    /// Returns what the inputs say about themselves. If a key has several values, the first one is kept.
    pub fn facts(&self) -> &[(&'static str, String)] {
        &self.facts
    }

    /// Reads the next batch of the lane that is furthest behind.
    pub fn step(&mut self) -> Result<MergeStep> {
        if !std::mem::replace(&mut self.has_started, true) {
            self.start_all_lanes()?;
        }
        let window_ns = self.options.window_ns;
        self.split_overlapping_lanes();
        let unfinished = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.is_finished());
        let Some((at, _)) = unfinished.min_by_key(|(_, lane)| lane.watermark(window_ns)) else {
            return Ok(MergeStep::End);
        };
        if self.lanes[at].current.is_none()
            && let Some(repeat) = self.start_next_input(at)?
        {
            return Ok(MergeStep::InputEnded(repeat));
        }
        let lane = &mut self.lanes[at];
        let Some(current) = &mut lane.current else { return Ok(MergeStep::End) };
        match current.stream.take()? {
            Next::Idle => Ok(MergeStep::Idle),
            Next::End => {
                let index = current.index;
                let ended = lane.current.take();
                lane.carried_state =
                    ended.and_then(|current| Some((current.stream.into_stateful_pass()?, current.shift)));
                lane.watermark = None;
                Ok(MergeStep::InputEnded(index))
            }
            Next::Batch(batch, consumed_bytes) => {
                let merged = self.merge_batch(at, batch, consumed_bytes)?;
                Ok(MergeStep::MergedBatch(merged))
            }
        }
    }

    /// Gives a lane of its own to each waiting input that overlaps the one before it: an excerpt of that one, or another log.
    fn split_overlapping_lanes(&mut self) {
        for at in 0..self.lanes.len() {
            while self.lanes[at].is_ahead_of_next(self.options.window_ns) {
                let lane = self.lanes[at].split_off_next();
                self.lanes.push(lane);
                self.lanes[at].next_start = self.start_of_next(at);
            }
        }
    }

    /// When the first of a lane's waiting inputs begins, on the clock of the result.
    fn start_of_next(&self, at: usize) -> Option<i64> {
        let (_, next) = self.lanes[at].waiting.front()?;
        let start = next.head_events.start?;
        let own_offset = self.options.hints.get(&next.input.requested_path).and_then(|hints| hints.offset_ns);
        let shift = match own_offset {
            Some(offset) => Some(ClockShift::Offset(offset)),
            None => self.lanes[at].current.as_ref().and_then(|current| current.shift),
        };
        Some(shift.map_or(start, |shift| shift.shifted(start)))
    }

    /// Returns a batch to the input that it came from, so that its memory is reused.
    pub fn recycle(&mut self, merged: MergedBatch) {
        if let Some(current) = &mut self.lanes[merged.lane].current {
            current.stream.recycle(*merged.batch);
        }
    }

    fn merge_batch(&mut self, at: usize, mut batch: Box<Batch>, consumed_bytes: u64) -> Result<MergedBatch> {
        let lane = &mut self.lanes[at];
        let (mut input, mut lines_before) = (0, 0);
        if let Some(current) = &mut lane.current {
            if let Some(shift) = current.shift {
                shift.apply(&mut batch);
                if batch.events.iter().any(|event| event.ts < 0) {
                    return Err(Error::BeforeZero { path: current.path.clone() });
                }
            }
            (input, lines_before) = (current.index, current.lines);
            // Events before and after these times are not used, because others of the same times are missing.
            if let Some(Known { from, until }) = self.known.get(&input).copied() {
                if let Some(ts) = from {
                    batch.keep_from(ts);
                }
                if let Some(ts) = until {
                    batch.keep_until(ts);
                }
            }
            current.lines += batch.lines;
        }
        lane.watermark = batch.watermark;
        lane.has_watermarks |= batch.watermark.is_some();
        lane.newest = batch.events.iter().map(|event| event.ts).max().max(lane.newest);
        Ok(MergedBatch {
            batch,
            input,
            lines_before,
            consumed_bytes,
            watermark: self.watermark(),
            max_waiting: self.max_waiting(),
            records_requests: self.records_requests,
            lane: at,
        })
    }

    fn watermark(&self) -> i64 {
        self.lanes.iter().map(|lane| lane.watermark(self.options.window_ns)).min().unwrap_or(i64::MAX)
    }

    /// With watermarks, more events may wait: the source guarantees that none older comes. So may those that wait for the next piece.
    fn max_waiting(&self) -> usize {
        let is_sure = self.lanes.iter().any(|lane| lane.has_watermarks || lane.overlaps_next());
        if is_sure { MAX_WAITING_BY_WATERMARK } else { reorder::MAX_WAITING }
    }

    /// Starts all lanes at once: the clock of one input may be known from another one.
    fn start_all_lanes(&mut self) -> Result<()> {
        let first: Vec<_> = self.lanes.iter_mut().map(|lane| lane.waiting.pop_front()).collect();
        let mut ready = Vec::new();
        for (lane, input) in first.into_iter().enumerate() {
            let Some(input) = input else { continue };
            ready.push((lane, self.open(input, self.options.source_options)?));
        }
        for (_, input) in Clocks::most_clocks_first(&ready, |(_, input)| &input.clock) {
            self.known_clocks.record_time_of_day(&input.path, &input.clock)?;
        }
        // An offset refers to the clock of the input that the user names first.
        if self.options.hints.values().any(|hints| hints.offset_ns.is_some()) {
            ready.sort_by_key(|(_, input)| input.place_in_command);
        }
        ready.into_iter().try_for_each(|(lane, input)| self.start(lane, input))
    }

    /// Starts the next input of a lane. Returns its index if it holds nothing but what the one before it has ended with.
    fn start_next_input(&mut self, at: usize) -> Result<Option<usize>> {
        let lane = &mut self.lanes[at];
        let Some((index, mut open)) = lane.waiting.pop_front() else { return Ok(None) };
        let starts_log = open.traits.starts_log;
        if lane.carried_state.is_some() && !starts_log {
            // The state includes these lines already.
            let repeated = lane.tail.as_ref().map_or(0, |tail| open.input.repeated(tail));
            open.input.skip(repeated);
            if repeated > 0 && open.input.head().is_empty() && open.input.is_whole_in_head {
                self.lanes[at].next_start = self.start_of_next(at);
                return Ok(Some(index));
            }
        }
        lane.carried_state.take_if(|(pass, _)| starts_log || !pass.is_continued_by(open.input.head()));
        let options = lane.piece_options.filter(|_| !starts_log).unwrap_or(self.options.source_options);
        let ready = self.open((index, open), options)?;
        self.known_clocks.record_time_of_day(&ready.path, &ready.clock)?;
        self.start(at, ready)?;
        Ok(None)
    }

    fn open(&self, (index, open): (usize, OpenInput), options: SourceOptions) -> Result<ReadyInput> {
        let OpenInput { input, source, traits, place_in_command, .. } = open;
        let hints = self.options.hints.get(&input.requested_path).cloned().unwrap_or_default();
        let path = input.path.clone();
        let skipped_lines = input.skipped_lines();
        let is_small = input.is_whole_in_head && source.parts(&path).is_empty();
        let mut reader = source.open(input, &options)?;
        let known = Known { from: hints.known_from, until: hints.known_until };
        let (clock, shift) = resolve_clock(&mut reader, traits.default_clock, hints);
        Ok(ReadyInput { index, path, skipped_lines, place_in_command, is_small, reader, clock, shift, known })
    }

    fn start(&mut self, at: usize, ready: ReadyInput) -> Result<()> {
        let ReadyInput { index, path, skipped_lines, is_small, mut reader, clock, mut shift, known, .. } = ready;
        let offset = self.known_clocks.offset_of(&path, &clock)?;
        if offset != 0 {
            remove_clock_facts(&mut reader);
            shift = Some(ClockShift::Offset(offset));
        }
        if known.from.is_some() || known.until.is_some() {
            // They are on CLOCK_BOOTTIME already.
            let offset = shift.filter(|shift| matches!(shift, ClockShift::Offset(_)));
            let shifted = |ts: Option<i64>| ts.map(|ts| offset.map_or(ts, |shift| shift.shifted(ts)));
            self.known.insert(index, Known { from: shifted(known.from), until: shifted(known.until) });
        }
        self.clocks.insert(index, clock);
        self.records_requests |= reader.records_requests;
        for (key, value) in &reader.facts {
            if !self.facts.iter().any(|(known, _)| known == key) {
                self.facts.push((key, value.clone()));
            }
        }
        let lane = &mut self.lanes[at];
        lane.piece_options = reader.piece_options.or(lane.piece_options);
        if let Some((pass, shift_before)) = lane.carried_state.take()
            && shift_before == shift
        {
            reader.stateful_pass = Some(pass);
        }
        let may_be_repeated = reader.stateful_pass.is_some() && !lane.waiting.is_empty();
        lane.tail =
            if may_be_repeated && path != "-" { Input::open(&path).ok().and_then(|input| input.tail()) } else { None };
        let stream = Stream::start(reader, self.options.workers, self.options.count_other_events, is_small);
        lane.current = Some(CurrentInput { index, path, stream, lines: skipped_lines, shift });
        self.lanes[at].next_start = self.start_of_next(at);
        Ok(())
    }
}
