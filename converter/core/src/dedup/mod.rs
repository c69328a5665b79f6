//! Removes duplicates: facts that several logs of one run record.
//!
//! The stage runs between the reorder window and pairing. It passes on the events of the authoritative logs, counts the duplicates, and
//! attaches to each event what pairing must know about its log. With one log it passes on every event.
//!
//! Nothing is counted as a duplicate without its partner: the event, of another log or of another input, that is used instead. An event of a
//! log without authority that has no partner is not used, and is counted as superseded.

mod authority;
mod calls;
mod marks;
mod partners;
mod pieces;
mod set_aside;

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::authority::{Authority, Standing};
use self::calls::{Outcome, ThreadCalls};
use self::marks::RecentMarks;
use self::partners::{Partners, Settled};
use self::pieces::{Change, Pieces};
use self::set_aside::SetAsideBios;
use crate::block::queue::Completion;
use crate::error::Result;
use crate::event::background_ids::BackgroundIds;
use crate::event::place::Place;
use crate::event::probe::Probe;
use crate::event::{Event, Kind, NO_ID, Op};
use crate::location::{Location, Locations};
use crate::losses::{Losses, Reason};
use crate::names::NameId;

pub use self::authority::MAX_SKEW_NS;

/// Maximum number of logs of one run.
pub const MAX_LOGS: usize = 128;

/// A set of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSet(u128);

impl LogSet {
    pub const ALL: Self = Self(u128::MAX);

    fn bit(log: usize) -> u128 {
        debug_assert!(log < MAX_LOGS, "the pipeline refuses more logs");
        1 << (log % MAX_LOGS)
    }

    pub fn insert(&mut self, log: usize) {
        self.0 |= Self::bit(log);
    }

    pub fn contains(self, log: usize) -> bool {
        self.0 & Self::bit(log) != 0
    }
}

impl FromIterator<usize> for LogSet {
    fn from_iter<I: IntoIterator<Item = usize>>(logs: I) -> Self {
        let mut set = Self::default();
        logs.into_iter().for_each(|log| set.insert(log));
        set
    }
}

/// What pairing must know about the log of an event.
#[derive(Clone, Copy, Debug)]
pub struct Provenance {
    pub location: Location,
    pub log: usize,
    /// The logs whose bios may be in the request, if the event is one of a request of the block layer.
    pub completable: LogSet,
    /// The bios of the request must be known, because no other log reports submits on the device, and none of its bios was set aside.
    pub must_complete: bool,
    /// A log that has not ended reports what the thread of the bio or request does, so the thread's open sync call is known.
    pub thread_is_covered: bool,
    /// The input of the call reports no requests, or that of the request no calls. So the clock of another input has measured the other
    /// one.
    pub is_apart: bool,
}

impl Provenance {
    /// The provenance of an event whose log needs no comparison with others.
    pub fn of_single_log(location: Location) -> Self {
        Self {
            location,
            log: 0,
            completable: LogSet::ALL,
            must_complete: true,
            thread_is_covered: true,
            is_apart: false,
        }
    }
}

/// Details that another log adds to the open call of a thread.
#[derive(Clone, Copy, Debug)]
pub struct CallDetail {
    pub tid: u32,
    pub pid: u32,
    pub op: Op,
    pub path: NameId,
    pub stack: NameId,
    /// The better time of the entry, for a call in which no request has begun.
    pub enter: Option<i64>,
    /// No log reports what the file system does in the call.
    pub call_only: bool,
}

/// The output of the stage.
pub enum Deduplicated {
    Event(Event, Provenance),
    CallDetail(CallDetail),
}

/// The kinds of events that a file reports.
#[derive(Clone, Copy, Debug, Default)]
struct Reports {
    calls: bool,
    requests: bool,
}

/// The stage for the logs of one run.
pub struct Dedup {
    /// `None` with one log, and where ids are processes.
    logs: Option<SeveralLogs>,
    /// By file. Empty with one file.
    reports: Vec<Reports>,
    locations: Arc<Locations>,
    pub losses: Losses,
}

struct SeveralLogs {
    pieces: Pieces,
    authority: Authority,
    partners: Partners,
    marks: RecentMarks,
    set_aside: SetAsideBios,
    background: BackgroundIds,
    threads: HashMap<u32, ThreadCalls, FixedState>,
    last_ts: i64,
}

impl Dedup {
    /// `formats` are the names of the formats of all inputs. `ids_are_threads`: calls of processes cannot be matched between logs, so nothing
    /// is removed where ids are processes, but events that are equal in all.
    pub fn new(locations: Arc<Locations>, formats: &[&'static str], ids_are_threads: bool) -> Self {
        let authority = Authority::new(if ids_are_threads { &locations.logs } else { &[] });
        let logs = (authority.log_count() > 1).then(|| SeveralLogs {
            pieces: Pieces::new(&locations.logs, formats),
            authority,
            partners: Partners::default(),
            marks: RecentMarks::default(),
            set_aside: SetAsideBios::default(),
            background: BackgroundIds::default(),
            threads: HashMap::default(),
            last_ts: i64::MIN,
        });
        let count = locations.files.len();
        let reports = vec![Reports::default(); if count > 1 { count } else { 0 }];
        Self { logs, reports, locations, losses: Losses::default() }
    }

    /// For each file the log that it belongs to. If the files of a log hold equal events, one of these is used.
    pub fn log_of_files(&self) -> Vec<usize> {
        (0..self.locations.files.len()).map(|file| self.log_of_file(file)).collect()
    }

    fn log_of_file(&self, file: usize) -> usize {
        self.logs.as_ref().map_or(0, |logs| logs.pieces.log_of(self.recording_of(file)))
    }

    /// The recording that a file is a part of, as far as it was known before any was read.
    fn recording_of(&self, file: usize) -> usize {
        self.locations.log_of(Location::new(file, 0))
    }

    /// Registers the events of a batch of a file. All files must have been observed up to a time before an event of that time is passed to
    /// `event`.
    pub fn observe(&mut self, file: usize, events: &[Event]) {
        if let Some(reports) = self.reports.get_mut(file) {
            reports.calls |= events.iter().any(is_call);
            reports.requests |= events.iter().any(is_request);
        }
        let recording = self.recording_of(file);
        if let Some(logs) = &mut self.logs {
            logs.pieces.observe(recording, file, events);
            logs.authority.observe(logs.pieces.log_of(recording), events.iter());
        }
    }

    /// Marks a file as read to its end.
    pub fn end_file(&mut self, file: usize) {
        let recording = self.recording_of(file);
        if let Some(logs) = &mut self.logs {
            logs.pieces.end_file(recording);
            logs.authority.end_file(logs.pieces.log_of(recording));
        }
    }

    /// The time at which `review` must be called, before any event of it is passed on.
    pub fn next_review(&self) -> Option<i64> {
        self.logs.as_ref()?.pieces.next_review()
    }

    /// Finds out whether logs that begin at this time are pieces of others. `waiting` are all events that have been observed and not yet been
    /// passed on, from this time on.
    pub fn review<'a, I: Iterator<Item = (&'a Event, Location)>>(&mut self, at: i64, waiting: impl Fn() -> I) {
        let locations = &self.locations;
        let Some(SeveralLogs { pieces, authority, .. }) = &mut self.logs else { return };
        let with_log = || waiting().map(|(event, location)| (event, locations.log_of(location)));
        for change in pieces.review(at, with_log()) {
            match change {
                Change::Join { log, to } => authority.join(log, to),
                Change::Leave { log, from, open_files } => {
                    authority.leave(log, from, open_files);
                    authority.observe(log, with_log().filter(|(_, of)| *of == log).map(|(event, _)| event));
                }
            }
        }
    }

    /// Visits every name of the events that wait, apart from those of markers, which are kept.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        let threads = self.logs.iter().flat_map(|logs| logs.threads.values());
        threads.for_each(|thread| thread.visit_names(f));
    }

    /// Takes the next event in the order of time. Emits what is no duplicate.
    pub fn event(
        &mut self,
        event: &Event,
        location: Location,
        mut emit: impl FnMut(Deduplicated) -> Result<()>,
    ) -> Result<()> {
        let Some(logs) = &mut self.logs else {
            let has_one_file = self.reports.is_empty();
            let provenance =
                if has_one_file { Provenance::of_single_log(location) } else { self.provenance(event, location) };
            return emit(Deduplicated::Event(*event, provenance));
        };
        let log = logs.pieces.log_of(self.locations.log_of(location));
        logs.last_ts = logs.last_ts.max(event.ts);
        match event.kind {
            Kind::CallEnter { .. } => {
                logs.partners.leave(event.tid, log);
                let thread = logs.threads.entry(event.tid).or_default();
                let outcome = thread.enter(event, location, log, &logs.authority);
                self.emit(outcome, event.ts, &mut emit)
            }
            Kind::CallExit { .. } => {
                logs.partners.leave(event.tid, log);
                let thread = logs.threads.entry(event.tid).or_default();
                let outcome = thread.exit(event, location, log, &logs.authority);
                self.emit(outcome, event.ts, &mut emit)
            }
            Kind::Mark { .. } => {
                if let Some(partner) = logs.marks.find_copy(event, location, log) {
                    self.count_duplicate(event.ts, location, partner, Kind::NAMES[event.kind.index()]);
                    return Ok(());
                }
                emit(Deduplicated::Event(*event, self.provenance(event, location)))
            }
            _ => {
                if !self.is_used(event, location, log) {
                    return Ok(());
                }
                let mut provenance = self.provenance(event, location);
                provenance.must_complete &= !self.completes_set_aside(event, log);
                emit(Deduplicated::Event(*event, provenance))
            }
        }
    }

    /// Emits the calls that still wait for the report of another log.
    pub fn finish(&mut self, mut emit: impl FnMut(Deduplicated) -> Result<()>) -> Result<()> {
        let Some(logs) = &mut self.logs else { return Ok(()) };
        let last_ts = logs.last_ts;
        let mut settled = Settled::default();
        logs.partners.settle(i64::MAX, &mut settled);
        let mut threads: Vec<_> = logs.threads.iter_mut().collect();
        threads.sort_unstable_by_key(|(tid, _)| **tid);
        let mut pending = Outcome::default();
        for (_, thread) in threads {
            pending.append(thread.finish(&logs.authority));
        }
        // In the order of time, as all other events are.
        pending.events.sort_by_key(|(event, _)| event.ts);
        self.count_settled(settled);
        self.emit(pending, last_ts, &mut emit)
    }

    fn emit(&mut self, outcome: Outcome, ts: i64, emit: &mut impl FnMut(Deduplicated) -> Result<()>) -> Result<()> {
        for (location, partner, what) in outcome.duplicates {
            self.count_duplicate(ts, location, partner, &what);
        }
        for (location, what) in outcome.superseded {
            self.count_superseded(Reason::SupersededEvent, ts, location, &what);
        }
        if let Some(detail) = outcome.detail {
            emit(Deduplicated::CallDetail(detail))?;
        }
        for (event, location) in outcome.events {
            let provenance = self.provenance(&event, location);
            emit(Deduplicated::Event(event, provenance))?;
        }
        Ok(())
    }

    /// Whether an event completes a bio that was set aside.
    fn completes_set_aside(&mut self, event: &Event, log: usize) -> bool {
        match (&mut self.logs, event.kind) {
            (Some(logs), Kind::BlockComplete { dev, sector, bytes, flags, error, is_bio }) => {
                logs.set_aside.complete(log, &Completion { dev, sector, bytes, flags, error, is_bio, ts: event.ts })
            }
            _ => false,
        }
    }

    fn provenance(&self, event: &Event, location: Location) -> Provenance {
        let log = self.log_of_file(location.file());
        let is_apart = self
            .reports
            .get(location.file())
            .is_some_and(|reports| is_call(event) && !reports.requests || is_request(event) && !reports.calls);
        let mut provenance = Provenance { log, is_apart, ..Provenance::of_single_log(location) };
        let Some(SeveralLogs { authority, .. }) = &self.logs else { return provenance };
        match event.kind {
            Kind::BlockSubmit { .. } | Kind::Probe(Probe::Read { .. }) => {
                provenance.thread_is_covered = authority.covers_thread(event.tid, event.ts, log);
            }
            Kind::BlockInsert { dev, .. }
            | Kind::BlockIssue { dev, .. }
            | Kind::BlockComplete { dev, .. }
            | Kind::BlockDone { dev, .. } => {
                provenance.thread_is_covered = authority.covers_thread(event.tid, event.ts, log);
                provenance.completable = authority.completable(dev, event.ts, log);
                provenance.must_complete = authority.is_authoritative_on(dev, event.ts, log);
            }
            _ => {}
        }
        provenance
    }

    /// Whether an event that is no call is used, because no other log is authoritative for it.
    fn is_used(&mut self, event: &Event, location: Location, log: usize) -> bool {
        let Some(logs) = &mut self.logs else { return true };
        let mut settled = Settled::default();
        let mut partner = None;
        let is_used = logs.authority.standing(event, log) == Standing::Authoritative;
        if is_used {
            match event.kind {
                Kind::SyncStart { id, .. } => {
                    let thread = logs.threads.entry(event.tid).or_default();
                    partner = thread.start_request(id, log, event.ts, location);
                }
                Kind::WbStart { id } => logs.background.insert(id),
                Kind::BioSubmit { id, background: true, .. } => {
                    logs.background.insert(id);
                    logs.threads.entry(event.tid).or_default().leave_background(id);
                }
                Kind::BioAddFolio { id, .. } | Kind::BioSubmit { id, .. } if !logs.background.contains(id) => {
                    logs.threads.entry(event.tid).or_default().use_request(id, log, event.ts, location);
                }
                Kind::Probe(Probe::SyncEnter { .. }) => {
                    let thread = logs.threads.entry(event.tid).or_default();
                    partner = thread.start_request(NO_ID, log, event.ts, location);
                }
                Kind::Probe(Probe::SyncExit { .. }) => logs.threads.entry(event.tid).or_default().end_request(NO_ID),
                Kind::SyncEnd { id, .. } => {
                    logs.threads.entry(event.tid).or_default().end_request(id);
                }
                _ => {}
            }
        } else if let Kind::BlockSubmit { dev, sector, bytes, flags }
        | Kind::Probe(Probe::Read { dev, sector, bytes, flags, .. }) = event.kind
            && bytes > 0
        {
            logs.set_aside.submit(log, Place { dev, sector }, bytes, flags, event.ts);
        }
        match partner {
            None if !is_used => logs.partners.add_unused(event, location, log, &mut settled),
            None if logs.authority.is_shared(event) => logs.partners.add_used(event, location, log, &mut settled),
            _ => {}
        }
        if let Some(partner) = partner {
            self.count_duplicate(event.ts, location, partner, Kind::NAMES[event.kind.index()]);
        }
        self.count_settled(settled);
        is_used && partner.is_none()
    }

    /// Counts an event that another file of its log holds with the same time and fields, at `partner`.
    pub fn count_repeat(&mut self, event: &Event, location: Location, partner: Location) {
        self.count_duplicate(event.ts, location, partner, Kind::NAMES[event.kind.index()]);
    }

    /// Counts what has become of events that are not used. Folios, waits and completions belong to what is counted here.
    fn count_settled(&mut self, settled: Settled) {
        for (record, partner) in settled.duplicates {
            if record.is_counted {
                self.count_duplicate(record.ts, record.location, partner, record.what);
            }
        }
        for record in settled.superseded {
            let reason = if record.may_be_alone { Reason::SupersededBio } else { Reason::SupersededEvent };
            self.count_superseded(reason, record.ts, record.location, record.what);
        }
    }

    /// Counts an event that is not used, because the one at `partner` is the same.
    fn count_duplicate(&mut self, ts: i64, location: Location, partner: Location, what: &str) {
        debug_assert_ne!(location, partner, "an event is no duplicate of itself");
        let count = self.losses.add(Reason::Duplicate, 1, Some(ts));
        count.show(Some(ts), || {
            format!("{}, as {}", self.locations.describe(location, what), self.locations.name(partner))
        });
    }

    fn count_superseded(&mut self, reason: Reason, ts: i64, location: Location, what: &str) {
        let count = self.losses.add(reason, 1, Some(ts));
        count.show(Some(ts), || self.locations.describe(location, what));
    }
}

fn is_call(event: &Event) -> bool {
    matches!(event.kind, Kind::CallEnter { .. } | Kind::CallExit { .. })
}

/// Whether an event is the start or the end of a request.
fn is_request(event: &Event) -> bool {
    matches!(
        event.kind,
        Kind::SyncStart { .. } | Kind::SyncEnd { .. } | Kind::Probe(Probe::SyncEnter { .. } | Probe::SyncExit { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::UNKNOWN_TASK;

    fn enter(ts: i64, tid: u32, op: Op, call_only: bool) -> Event {
        let kind = Kind::CallEnter { op, stack: NameId::NONE, path: NameId::NONE, call_only };
        Event { ts, tid, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind }
    }

    #[test]
    fn calls_that_wait_until_the_end_leave_in_the_order_of_time() {
        let kernel = [enter(1000, 5, Op::Msync, false), enter(1000, 9, Op::Msync, false)];
        let strace = [enter(100, 9, Op::Fsync, true), enter(200, 5, Op::Fsync, true)];
        let locations = Locations { files: vec!["kernel".into(), "strace".into()], logs: vec![0, 1] };
        let mut dedup = Dedup::new(Arc::new(locations), &["ftrace", "strace"], true);
        dedup.observe(0, &kernel);
        dedup.observe(1, &strace);
        let mut left = Vec::new();
        let mut emit = |fact: Deduplicated| {
            if let Deduplicated::Event(event, _) = fact {
                left.push((event.ts, event.tid));
            }
            Ok(())
        };
        for (events, file) in [(&strace, 1), (&kernel, 0)] {
            for event in events {
                dedup.event(event, Location::new(file, 1), &mut emit).unwrap();
            }
        }
        dedup.finish(emit).unwrap();
        assert_eq!(left, [(1000, 5), (1000, 9), (100, 9), (200, 5)]);
    }

    #[test]
    fn a_set_of_logs_distinguishes_all_of_them() {
        let set: LogSet = [3, MAX_LOGS - 1].into_iter().collect();
        assert_eq!((0..MAX_LOGS).filter(|&log| set.contains(log)).collect::<Vec<_>>(), [3, MAX_LOGS - 1]);
    }
}
