//! Several inputs of one run: which is read next, and up to when all have been read.
//!
//! Inputs of one format are pieces of one log, read one after the other, unless they say that they are not. All others tell of
//! the same time side by side: the one that is furthest behind is read on, so that little has to wait in memory.

pub mod parallel_parse;
pub mod reorder;

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::error::{Error, Result};
use crate::input::Input;
use crate::merge::parallel_parse::{Next, Stream};
use crate::source::{Batch, Reader, Source, SourceOptions, StatefulPass, bpftrace_json};

pub type OpenInput = (Input, &'static dyn Source);

/// What two clocks showed at two moments: (CLOCK_REALTIME, CLOCK_BOOTTIME), in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    pub first: (i64, i64),
    pub last: (i64, i64),
}

impl ClockPair {
    /// The time on CLOCK_BOOTTIME: both go evenly between the two moments, and alike before and after them.
    fn moved(self, realtime: i64) -> i64 {
        let (since, span) = (realtime - self.first.0, self.last.0 - self.first.0);
        let gained = (self.last.1 - self.first.1) - span;
        let part = i128::from(since.clamp(0, span.max(0)));
        let gain = if span > 0 { (i128::from(gained) * part / i128::from(span)) as i64 } else { 0 };
        self.first.1.saturating_add(since).saturating_add(gain).max(0)
    }
}

/// What is known of an input, and does not stand in it.
#[derive(Clone, Debug, Default)]
pub struct InputHints {
    /// Times of the first clock are moved to the second.
    pub boot: Option<ClockPair>,
    pub boot_id: Option<String>,
    /// By the names of clocks, what is to be added to their times for ns since 1970.
    pub to_realtime: BTreeMap<String, i64>,
    /// What is to be added to its times for those of the other inputs: nothing more is asked about its clock.
    pub offset_ns: Option<i64>,
}

/// How times are laid beside those of other inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockShift {
    By(i64),
    Boot(ClockPair),
}

impl ClockShift {
    fn moved(self, ts: i64) -> i64 {
        match self {
            Self::By(offset) => ts.saturating_add(offset),
            Self::Boot(clocks) => clocks.moved(ts),
        }
    }

    fn apply(self, batch: &mut Batch) {
        batch.events.iter_mut().for_each(|event| event.ts = self.moved(event.ts));
        batch.until = batch.until.map(|until| if until == i64::MAX { until } else { self.moved(until) });
    }
}

const REALTIME: &str = "realtime";
const BOOTTIME: &str = "boottime";
const CLOCK: &str = "clock";
const REALTIME_OFFSET: &str = "realtime_offset_ns";
/// Clocks whose zero is another in each log.
const OF_ONE_LOG: [&str; 2] = ["time_of_day", "relative"];

struct Current {
    file: usize,
    path: String,
    stream: Stream,
    lines: u64,
    moved: Option<ClockShift>,
}

/// Inputs that are read one after the other.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<(usize, OpenInput)>,
    current: Option<Current>,
    newest: Option<i64>,
    /// How its pieces are written, where one of them has said so.
    options: Option<SourceOptions>,
    /// What the last piece leaves to the next, and how its times were moved.
    settle: Option<(Box<dyn StatefulPass>, Option<ClockShift>)>,
    /// All that is older has been read, as the source itself says.
    until: Option<i64>,
    /// It has said so before.
    is_exact: bool,
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
        match (self.until, self.newest) {
            // Nothing more is to come, but that the log has ended is not told yet: the others wait for it.
            (Some(i64::MAX), newest) => newest.unwrap_or(i64::MIN),
            (Some(until), _) => until,
            (None, newest) => newest.map_or(i64::MIN, |ts| ts.saturating_sub(window_ns)),
        }
    }
}

/// More than all pages of many CPUs hold: a file that says that all is still to come is not kept in memory whole.
const MAX_WAITING_EXACT: usize = 4_000_000;

/// A batch of one of the inputs.
pub struct MergedBatch {
    pub batch: Box<Batch>,
    pub file: usize,
    /// Lines of the file before it.
    pub lines_before: u64,
    /// Bytes of the file that have been read.
    pub consumed_bytes: u64,
    lane: usize,
}

pub enum MergeStep {
    MergedBatch(MergedBatch),
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
    /// By their paths.
    beside: HashMap<String, InputHints>,
    /// Events that no report uses are counted by the tracer's words.
    count_other_events: bool,
    begun: bool,
    seen: Clocks,
    /// Of each input that has been opened.
    pub clocks: HashMap<usize, Clock>,
    /// What the inputs say of themselves; the first word counts.
    pub facts: Vec<(&'static str, String)>,
}

/// The log that each input is a piece of, from 0.
pub fn logs_of(inputs: &[OpenInput]) -> Vec<usize> {
    logs_of_formats(inputs.iter().map(|(input, source)| (source.name(), source.is_standalone(input.head()))))
}

/// As `logs_of`, but what begins anew is a log of its own, though it be read after another.
pub fn whole_logs_of(inputs: &[OpenInput]) -> Vec<usize> {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let logs = logs_of(inputs).into_iter().zip(inputs).enumerate();
    logs.map(|(at, (lane, (input, source)))| {
        let log = last.entry(lane).or_insert(at);
        if source.begins(input.head()) {
            *log = at;
        }
        *log
    })
    .collect()
}

/// As `logs_of`, with those as one that are parts of one recording.
pub fn recordings_of(inputs: &[OpenInput]) -> Vec<usize> {
    let alone = |(_, source): &OpenInput, head: &[u8]| source.is_standalone(head) && !source.lies_in_parts();
    let mut recordings = logs_of_formats(inputs.iter().map(|input| (input.1.name(), alone(input, input.0.head()))));
    // What is of other CPUs than all that came before is of the same recorder.
    let mut seen: Vec<(&str, usize, Vec<u32>)> = Vec::new();
    for (at, (input, source)) in inputs.iter().enumerate() {
        let Some(cpus) = source.cpus_of(input) else { continue };
        match seen
            .iter_mut()
            .find(|(name, _, others)| *name == source.name() && !others.iter().any(|other| cpus.contains(other)))
        {
            Some((_, recording, others)) => {
                recordings[at] = *recording;
                others.extend(cpus);
            }
            None => seen.push((source.name(), recordings[at], cpus)),
        }
    }
    recordings
}

/// As `logs_of`, of the name of each input's format and whether it stands alone.
pub fn logs_of_formats<'a>(inputs: impl Iterator<Item = (&'a str, bool)>) -> Vec<usize> {
    let mut names: Vec<&str> = Vec::new();
    inputs
        .map(|(format, is_standalone)| {
            names.iter().rposition(|name| !is_standalone && *name == format).unwrap_or_else(|| {
                names.push(format);
                names.len() - 1
            })
        })
        .collect()
}

/// The clock of an input, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    pub name: Option<String>,
    /// The input says so itself; else its format lets it be taken for that.
    pub is_told: bool,
    pub boot_id: Option<String>,
    /// By the names of clocks, its own and others of its machine, what is to be added to their times for ns since 1970.
    pub to_realtime: BTreeMap<String, i64>,
}

impl Clock {
    fn of(source: &str, facts: &[(&'static str, String)]) -> Self {
        let told = |wanted| facts.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.clone());
        let name = told(CLOCK);
        let offset = told(REALTIME_OFFSET).and_then(|offset| offset.parse().ok());
        Self {
            is_told: name.as_ref().is_some_and(|name| !name.starts_with("unknown")),
            name: name.or_else(|| assumed_clock(source).map(str::to_owned)),
            boot_id: told("boot_id"),
            to_realtime: told(CLOCK).zip(offset).into_iter().collect(),
        }
    }
}

/// What an input of this format has that does not tell its clock: what bpftrace writes is on its own, the low-level log may have any.
pub fn assumed_clock(source: &str) -> Option<&'static str> {
    matches!(source, "thesis" | bpftrace_json::NAME).then_some(BOOTTIME)
}

/// A clock's time of day may be set while it runs, by less than this; by another boot it is off by more.
const MAX_APART_NS: u64 = 1_000_000_000;

/// The first input that has a clock, and the first that tells of its boot.
#[derive(Default)]
pub struct Clocks {
    clock: Option<(String, String)>,
    boot: Option<(String, String)>,
    /// What is to be added to the times of clocks for ns since 1970, and the first input that tells it.
    to_realtime: HashMap<String, (String, i64)>,
}

impl Clocks {
    /// Who knows several clocks has read them at one time, and knows best how far they are from each other.
    pub fn best_first<T>(inputs: &[T], clock: impl Fn(&T) -> &Clock) -> Vec<&T> {
        let mut inputs: Vec<_> = inputs.iter().collect();
        inputs.sort_by_key(|input| std::cmp::Reverse(clock(input).to_realtime.len()));
        inputs
    }

    /// Takes what an input knows of the time of day, for all that are on its clock.
    pub fn tell(&mut self, path: &str, its: &Clock) -> Result<()> {
        for (name, offset) in &its.to_realtime {
            if OF_ONE_LOG.contains(&name.as_str()) {
                continue;
            }
            let (first, told) = self.to_realtime.entry(name.clone()).or_insert_with(|| (path.to_owned(), *offset));
            let apart_ns = told.abs_diff(*offset);
            if apart_ns > MAX_APART_NS {
                return Err(Error::TimeOfDay {
                    first: first.clone(),
                    second: path.to_owned(),
                    clock: name.clone(),
                    apart_ns,
                });
            }
        }
        Ok(())
    }

    fn to_realtime(&self, clock: &str) -> Option<i64> {
        if clock == REALTIME { Some(0) } else { self.to_realtime.get(clock).map(|(_, offset)| *offset) }
    }

    /// What is to be added to the times of an input, so that they can be laid beside those of the inputs before it.
    pub fn add(&mut self, path: &str, its: &Clock) -> Result<i64> {
        let Some(clock) = &its.name else { return Ok(0) };
        if let Some((first, first_clock)) = &self.clock {
            if first_clock != clock || OF_ONE_LOG.contains(&clock.as_str()) {
                // Through the time of day, which both know.
                return match (self.to_realtime(clock), self.to_realtime(first_clock)) {
                    (Some(its), Some(first)) => Ok(its.saturating_sub(first)),
                    _ => Err(Error::Clocks {
                        first: first.clone(),
                        first_clock: first_clock.clone(),
                        second: path.to_owned(),
                        second_clock: clock.clone(),
                    }),
                };
            }
        } else {
            self.clock = Some((path.to_owned(), clock.clone()));
        }
        // Any other clock begins anew with each boot.
        let Some(boot) = its.boot_id.as_ref().filter(|_| clock != REALTIME) else { return Ok(0) };
        let (first, first_boot) = self.boot.get_or_insert_with(|| (path.to_owned(), boot.clone()));
        if first_boot == boot {
            return Ok(0);
        }
        Err(Error::Boots {
            first: first.clone(),
            first_boot: first_boot.clone(),
            second: path.to_owned(),
            second_boot: boot.clone(),
        })
    }
}

/// An input of which nothing has been read but its beginning.
struct Opened {
    file: usize,
    path: String,
    reader: Reader,
    clock: Clock,
    /// Known without the other inputs.
    moved: Option<ClockShift>,
}

impl Opened {
    fn of(file: usize, (input, source): OpenInput, options: &SourceOptions, beside: InputHints) -> Result<Self> {
        let path = input.path.clone();
        let mut reader = source.open(input, options)?;
        let is = |reader: &Reader, clock: &str| reader.facts.iter().any(|(k, v)| *k == CLOCK && v == clock);
        let mut moved = None;
        if let Some(clocks) = beside.boot
            && is(&reader, REALTIME)
        {
            forget_clock(&mut reader);
            reader.facts.push((CLOCK, BOOTTIME.to_owned()));
            moved = Some(ClockShift::Boot(clocks));
        }
        let mut clock = Clock::of(source.name(), &reader.facts);
        if let Some(offset) = clock.name.as_ref().and_then(|name| beside.to_realtime.get(name))
            && !reader.facts.iter().any(|(key, _)| *key == REALTIME_OFFSET)
        {
            reader.facts.push((REALTIME_OFFSET, offset.to_string()));
        }
        for (name, offset) in beside.to_realtime {
            clock.to_realtime.entry(name).or_insert(offset);
        }
        clock.boot_id = clock.boot_id.or(beside.boot_id);
        if let Some(offset) = beside.offset_ns {
            forget_clock(&mut reader);
            (clock, moved) = (Clock::default(), Some(ClockShift::By(offset)));
        }
        Ok(Self { file, path, reader, clock, moved })
    }
}

/// What an input says of its own clock holds no more where its times are moved to another.
fn forget_clock(reader: &mut Reader) {
    reader.facts.retain(|(key, _)| ![CLOCK, REALTIME_OFFSET].contains(key));
}

impl Merge {
    pub fn new(
        inputs: Vec<OpenInput>,
        window_ns: i64,
        workers: usize,
        options: SourceOptions,
        beside: HashMap<String, InputHints>,
        count_other_events: bool,
    ) -> Self {
        let logs = logs_of(&inputs);
        let mut lanes: Vec<Lane> =
            logs.iter().max().map_or_else(Vec::new, |last| (0..=*last).map(|_| Lane::default()).collect());
        for ((file, input), log) in inputs.into_iter().enumerate().zip(logs) {
            lanes[log].waiting.push_back((file, input));
        }
        Self {
            lanes,
            window_ns,
            workers,
            options,
            beside,
            count_other_events,
            begun: false,
            seen: Clocks::default(),
            clocks: HashMap::new(),
            facts: Vec::new(),
        }
    }

    /// Whether the low-level log can be written as it is read.
    pub fn is_one_log(&self) -> bool {
        self.lanes.len() <= 1
    }

    pub fn step(&mut self) -> Result<MergeStep> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin()?;
        }
        let window_ns = self.window_ns;
        let behind = self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_over());
        let Some((at, lane)) = behind.min_by_key(|(_, lane)| lane.reached(window_ns)) else {
            return Ok(MergeStep::End);
        };
        if lane.current.is_none()
            && let Some(input) = lane.waiting.pop_front()
        {
            let (_, (log, source)) = &input;
            let begins = source.begins(log.head());
            let options = lane.options.filter(|_| !begins).unwrap_or(self.options);
            lane.settle.take_if(|(settle, _)| begins || !settle.is_continued_by(log.head()));
            let opened = self.open(input, &options)?;
            self.seen.tell(&opened.path, &opened.clock)?;
            self.start(at, opened)?;
        }
        let lane = &mut self.lanes[at];
        let Some(current) = &mut lane.current else { return Ok(MergeStep::End) };
        match current.stream.take()? {
            Next::Idle => Ok(MergeStep::Idle),
            Next::End => {
                let file = current.file;
                let ended = lane.current.take();
                lane.settle = ended.and_then(|current| Some((current.stream.into_stateful_pass()?, current.moved)));
                lane.until = None;
                Ok(MergeStep::EndOf(file))
            }
            Next::Batch(mut batch, consumed_bytes) => {
                if let Some(moved) = current.moved {
                    moved.apply(&mut batch);
                    if batch.events.iter().any(|event| event.ts < 0) {
                        return Err(Error::BeforeZero { path: current.path.clone() });
                    }
                }
                let lines_before = current.lines;
                current.lines += batch.lines;
                lane.until = batch.until;
                lane.is_exact |= batch.until.is_some();
                lane.newest = batch.events.iter().map(|e| e.ts).max().max(lane.newest);
                Ok(MergeStep::MergedBatch(MergedBatch {
                    batch,
                    file: current.file,
                    lines_before,
                    consumed_bytes,
                    lane: at,
                }))
            }
        }
    }

    /// All lanes begin at once: what one of them tells of its clock may be what another's is known by.
    fn begin(&mut self) -> Result<()> {
        let first: Vec<_> = self.lanes.iter_mut().map(|lane| lane.waiting.pop_front()).collect();
        let mut opened = Vec::new();
        for (at, input) in first.into_iter().enumerate() {
            let Some(input) = input else { continue };
            opened.push((at, self.open(input, &self.options)?));
        }
        for (_, input) in Clocks::best_first(&opened, |(_, input)| &input.clock) {
            self.seen.tell(&input.path, &input.clock)?;
        }
        opened.into_iter().try_for_each(|(at, input)| self.start(at, input))
    }

    fn open(&self, (file, input): (usize, OpenInput), options: &SourceOptions) -> Result<Opened> {
        let beside = self.beside.get(&input.0.named).cloned().unwrap_or_default();
        Opened::of(file, input, options, beside)
    }

    fn start(&mut self, lane: usize, opened: Opened) -> Result<()> {
        let Opened { file, path, mut reader, clock, mut moved } = opened;
        let offset = self.seen.add(&path, &clock)?;
        if offset != 0 {
            forget_clock(&mut reader);
            moved = Some(ClockShift::By(offset));
        }
        self.clocks.insert(file, clock);
        for (key, value) in &reader.facts {
            if !self.facts.iter().any(|(k, _)| k == key) {
                self.facts.push((key, value.clone()));
            }
        }
        self.lanes[lane].options = reader.pieces.or(self.lanes[lane].options);
        if let Some((settle, of)) = self.lanes[lane].settle.take()
            && of == moved
        {
            reader.settle = Some(settle);
        }
        let stream = Stream::start(reader, self.workers, self.count_other_events);
        self.lanes[lane].current = Some(Current { file, path, stream, lines: 0, moved });
        Ok(())
    }

    /// All that is older than this has been read.
    pub fn until(&self) -> i64 {
        self.lanes.iter().map(|lane| lane.reached(self.window_ns)).min().unwrap_or(i64::MAX)
    }

    /// How many events may wait for older ones: a source that knows until when it has been read says that none comes.
    pub fn may_wait(&self) -> usize {
        if self.lanes.iter().any(|lane| lane.is_exact) { MAX_WAITING_EXACT } else { crate::merge::reorder::MAX_WAITING }
    }

    pub fn recycle(&self, piece: MergedBatch) {
        if let Some(current) = &self.lanes[piece.lane].current {
            current.stream.recycle(*piece.batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_drift_are_moved_at_both_ends() {
        let clocks = ClockPair { first: (1_000_000, 500), last: (2_000_000, 1_000_600) };
        assert_eq!([1_000_000, 1_500_000, 2_000_000].map(|t| clocks.moved(t)), [500, 500_550, 1_000_600]);
        // What was before and after has the offset of the nearer end.
        assert_eq!([999_900, 2_000_100].map(|t| clocks.moved(t)), [400, 1_000_700]);
        let one = ClockPair { first: (1_000_000, 500), last: (1_000_000, 500) };
        assert_eq!(one.moved(1_000_007), 507);
    }

    fn clock(source: &str, told: &[(&'static str, &str)]) -> Clock {
        let facts: Vec<_> = told.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        Clock::of(source, &facts)
    }

    #[test]
    fn inputs_on_different_clocks_are_refused() {
        let mut seen = Clocks::default();
        seen.add("a", &clock("strace", &[("clock", "realtime")])).unwrap();
        seen.add("b", &clock("strace", &[("clock", "realtime")])).unwrap();
        seen.add("c", &clock("events-jsonl", &[])).unwrap();
        let error = seen.add("d", &clock("thesis", &[])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a and d are not on one clock: that of the one is realtime, that of the other boottime"
        );
        let mut seen = Clocks::default();
        seen.add("a", &clock("strace", &[("clock", "relative")])).unwrap();
        seen.add("b", &clock("strace", &[("clock", "relative")])).unwrap_err();
    }

    #[test]
    fn clocks_that_tell_the_time_of_day_are_joined_by_it() {
        let on = |clock, offset: &str| self::clock("x", &[("clock", clock), ("realtime_offset_ns", offset)]);
        let mut seen = Clocks::default();
        // That of the first is known by another on its clock.
        let inputs = [
            clock("ftrace", &[("clock", "monotonic")]),
            on("monotonic", "1000"),
            on("boottime", "400"),
            clock("strace", &[("clock", "realtime")]),
        ];
        for input in &inputs {
            seen.tell("a", input).unwrap();
        }
        let offsets = inputs.iter().map(|input| seen.add("a", input).unwrap()).collect::<Vec<_>>();
        // At 1400 by the time of day the one is at 400, the other at 1000.
        assert_eq!(offsets, [0, 0, -600, -1000]);
        seen.add("b", &clock("strace", &[("clock", "relative")])).unwrap_err();
        seen.add("b", &clock("ftrace", &[("clock", "local")])).unwrap_err();
        // Who knows both clocks knows best how far they are apart, wherever it stands.
        let both =
            Clock { to_realtime: [("boottime".into(), 400), ("monotonic".into(), 700)].into(), ..inputs[2].clone() };
        let known = [inputs[1].clone(), both];
        let mut better = Clocks::default();
        for input in Clocks::best_first(&known, |input| input) {
            better.tell("a", input).unwrap();
        }
        assert_eq!(known.each_ref().map(|input| better.add("a", input).unwrap()), [0, -300]);
        // A clock that is read twice in one boot is not off by seconds.
        seen.tell("c", &on("boottime", "999999999")).unwrap();
        let error = seen.tell("d", &on("boottime", "-5000000000")).unwrap_err();
        assert_eq!(error.to_string(), "a and d tell different times of day of the clock boottime, 5.0 s apart");
    }

    #[test]
    fn inputs_of_different_boots_are_refused() {
        let boot = |clock, id| self::clock("thesis", &[("clock", clock), ("boot_id", id)]);
        let mut seen = Clocks::default();
        // Of the first it is not known.
        seen.add("a", &clock("thesis", &[])).unwrap();
        seen.add("b", &boot("boottime", "1f")).unwrap();
        seen.add("c", &boot("boottime", "1f")).unwrap();
        let error = seen.add("d", &boot("boottime", "2f")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "b and d are of different boots, 1f and 2f, of which each has a clock of its own"
        );
        // The time of day goes on over boots.
        let mut seen = Clocks::default();
        seen.add("a", &boot("realtime", "1f")).unwrap();
        seen.add("b", &boot("realtime", "2f")).unwrap();
    }

    #[test]
    fn a_clock_is_told_or_assumed() {
        assert!(clock("thesis", &[("clock", "boottime")]).is_told);
        let assumed = clock("thesis", &[]);
        assert_eq!((assumed.name.as_deref(), assumed.is_told), (Some("boottime"), false));
        assert!(!clock("ftrace", &[("clock", "unknown; its times are taken for ns")]).is_told);
        assert_eq!(clock("events-jsonl", &[]), Clock::default());
    }
}
