//! Removes duplicates: facts that several logs of one run record.
//!
//! The stage runs between the reorder window and pairing. It passes on the events of the authoritative logs, counts the duplicates, and
//! attaches to each event what pairing must know about its log. With one log it passes on every event.

mod authority;
mod calls;
mod marks;
mod set_aside;
mod superseded;

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use self::authority::{Authority, Standing};
use self::calls::{Outcome, ThreadCalls};
use self::marks::RecentMarks;
use self::set_aside::SetAsideBios;
use self::superseded::SupersededBios;
use crate::background_ids::BackgroundIds;
use crate::block_queue::Completion;
use crate::error::Result;
use crate::event::probe::Probe;
use crate::event::{Event, Kind, NO_ID, NO_SECTOR, Op};
use crate::location::{Location, Locations};
use crate::losses::{Losses, Reason};
use crate::names::NameId;

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
    /// Of a request of the block layer: the logs whose bios may be in it.
    pub completable: LogSet,
    /// Of a request of the block layer: its bios must be known. No other log reports submits on the device, and the bio was not set aside.
    pub must_complete: bool,
    /// Of a bio or a request of the block layer: a log that has not ended reports what the thread does.
    pub thread_is_covered: bool,
}

impl Provenance {
    /// Of an event whose log needs no comparison with others.
    pub fn of_single_log(location: Location) -> Self {
        Self { location, log: 0, completable: LogSet::ALL, must_complete: true, thread_is_covered: true }
    }
}

/// What another log adds to the open call of a thread.
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

/// What the stage emits.
pub enum Deduplicated {
    Event(Event, Provenance),
    CallDetail(CallDetail),
}

/// The stage for the logs of one run.
pub struct Dedup {
    /// `None` with one log, and where ids are processes.
    logs: Option<SeveralLogs>,
    locations: Arc<Locations>,
    pub losses: Losses,
}

struct SeveralLogs {
    authority: Authority,
    superseded: SupersededBios,
    marks: RecentMarks,
    set_aside: SetAsideBios,
    background: BackgroundIds,
    threads: HashMap<u32, ThreadCalls, FixedState>,
    last_ts: i64,
}

impl Dedup {
    /// `ids_are_threads`: calls of processes cannot be matched between logs, so nothing is removed where ids are processes.
    pub fn new(locations: Arc<Locations>, ids_are_threads: bool) -> Self {
        let authority = Authority::new(if ids_are_threads { &locations.logs } else { &[] });
        let logs = (authority.log_count() > 1).then(|| SeveralLogs {
            authority,
            superseded: SupersededBios::default(),
            marks: RecentMarks::default(),
            set_aside: SetAsideBios::default(),
            background: BackgroundIds::default(),
            threads: HashMap::default(),
            last_ts: i64::MIN,
        });
        Self { logs, locations, losses: Losses::default() }
    }

    /// Registers the events of a batch of a file. All files must have been observed up to a time before an event of that time is passed to
    /// `event`.
    pub fn observe(&mut self, file: usize, events: &[Event]) {
        if let Some(logs) = &mut self.logs {
            logs.authority.observe(self.locations.log_of(Location::new(file, 0)), events.iter());
        }
    }

    /// Marks a file as read to its end.
    pub fn end_file(&mut self, file: usize) {
        if let Some(logs) = &mut self.logs {
            logs.authority.end_file(self.locations.log_of(Location::new(file, 0)));
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
            return emit(Deduplicated::Event(*event, Provenance::of_single_log(location)));
        };
        let log = self.locations.log_of(location);
        logs.last_ts = logs.last_ts.max(event.ts);
        match event.kind {
            Kind::CallEnter { .. } => {
                let thread = logs.threads.entry(event.tid).or_default();
                let outcome = thread.enter(event, location, log, &logs.authority);
                self.emit(outcome, event.ts, &mut emit)
            }
            Kind::CallExit { .. } => {
                let thread = logs.threads.entry(event.tid).or_default();
                let outcome = thread.exit(event, location, log, &logs.authority);
                self.emit(outcome, event.ts, &mut emit)
            }
            Kind::Mark { .. } => {
                if logs.marks.is_duplicate(event, log) {
                    self.count_duplicate(event.ts, location, Kind::NAMES[event.kind.index()]);
                    return Ok(());
                }
                emit(Deduplicated::Event(*event, self.provenance(event, location)))
            }
            _ => {
                if self.is_duplicate(event, location, log) {
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
        let superseded = logs.superseded.settle(i64::MAX);
        let mut threads: Vec<_> = logs.threads.iter_mut().collect();
        threads.sort_unstable_by_key(|(tid, _)| **tid);
        let mut pending = Outcome::default();
        for (_, thread) in threads {
            pending.append(thread.finish(&logs.authority));
        }
        // In the order of time, as all other events are.
        pending.events.sort_by_key(|(event, _)| event.ts);
        self.count_superseded(superseded, last_ts);
        self.emit(pending, last_ts, &mut emit)
    }

    fn emit(&mut self, outcome: Outcome, ts: i64, emit: &mut impl FnMut(Deduplicated) -> Result<()>) -> Result<()> {
        for (location, what) in outcome.duplicates {
            self.count_duplicate(ts, location, &what);
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
        let log = self.locations.log_of(location);
        let mut provenance = Provenance { log, ..Provenance::of_single_log(location) };
        let Some(SeveralLogs { authority, .. }) = &self.logs else { return provenance };
        match event.kind {
            Kind::BlockSubmit { .. } => {
                provenance.thread_is_covered = authority.covers_thread(event.tid, event.ts, log);
            }
            Kind::BlockInsert { dev, .. }
            | Kind::BlockIssue { dev, .. }
            | Kind::BlockComplete { dev, .. }
            | Kind::BlockDone { dev, .. } => {
                provenance.thread_is_covered = authority.covers_thread(event.tid, event.ts, log);
                provenance.completable = authority.completable(dev, event.ts, log);
                provenance.must_complete = authority.is_only_submitter(dev, log);
            }
            _ => {}
        }
        provenance
    }

    /// Whether another log is authoritative for an event that is no call. Counts it.
    fn is_duplicate(&mut self, event: &Event, location: Location, log: usize) -> bool {
        let Some(logs) = &mut self.logs else { return false };
        let mut standing = logs.authority.standing(event, log);
        let target = match event.kind {
            Kind::BlockSubmit { dev, sector, bytes, .. } if bytes > 0 => Some((dev, sector)),
            Kind::BioSubmit { dev, sector, .. } if dev.is_known() && sector != NO_SECTOR => Some((dev, sector)),
            _ => None,
        };
        let mut superseded = 0;
        if let Some(target) = target {
            let log_count = logs.authority.log_count();
            superseded = logs.superseded.submit(target, event.ts, log, standing, log_count);
        }
        if standing == Standing::Duplicate
            && let Kind::BlockSubmit { dev, sector, bytes, flags } = event.kind
            && bytes > 0
        {
            logs.set_aside.submit(log, (dev, sector), bytes, flags, event.ts);
        }
        if standing == Standing::Authoritative {
            match event.kind {
                Kind::SyncStart { id, .. }
                    if logs.threads.entry(event.tid).or_default().start_request(id, log, event.ts) =>
                {
                    standing = Standing::Duplicate;
                }
                Kind::WbStart { id } => logs.background.insert(id),
                Kind::BioSubmit { id, background: true, .. } => {
                    logs.background.insert(id);
                    logs.threads.entry(event.tid).or_default().leave_background(id);
                }
                Kind::BioAddFolio { id, .. } | Kind::BioSubmit { id, .. } if !logs.background.contains(id) => {
                    logs.threads.entry(event.tid).or_default().use_request(id, log, event.ts);
                }
                Kind::Probe(Probe::SyncEnter { .. })
                    if logs.threads.entry(event.tid).or_default().start_request(NO_ID, log, event.ts) =>
                {
                    standing = Standing::Duplicate;
                }
                Kind::Probe(Probe::SyncExit { .. }) => logs.threads.entry(event.tid).or_default().end_request(NO_ID),
                Kind::SyncEnd { id, .. } => {
                    logs.threads.entry(event.tid).or_default().end_request(id);
                }
                _ => {}
            }
        }
        self.count_superseded(superseded, event.ts);
        let is_duplicate = standing == Standing::Duplicate;
        // Folios, waits and completions belong to what is counted here.
        let is_counted = target.is_some()
            || matches!(
                event.kind,
                Kind::BlockSubmit { .. } | Kind::SyncStart { .. } | Kind::SyncEnd { .. } | Kind::BioSubmit { .. }
            )
            || matches!(
                event.kind,
                Kind::Probe(Probe::SyncEnter { .. } | Probe::SyncExit { .. } | Probe::Submit { .. })
            );
        if is_duplicate && is_counted {
            self.count_duplicate(event.ts, location, Kind::NAMES[event.kind.index()]);
        }
        is_duplicate
    }

    /// Counts an event that an earlier file holds with the same time and fields.
    pub fn count_repeat(&mut self, event: &Event, location: Location, first: usize) {
        let log = self.locations.log_of(location);
        if let Some(logs) = &mut self.logs {
            logs.authority.add_repeat(log, self.locations.log_of(Location::new(first, 0)));
        }
        self.count_duplicate(event.ts, location, Kind::NAMES[event.kind.index()]);
    }

    fn count_duplicate(&mut self, ts: i64, location: Location, what: &str) {
        let count = self.losses.add(Reason::Duplicate, 1, Some(ts));
        count.example.get_or_insert_with(|| self.locations.describe(location, what));
    }

    fn count_superseded(&mut self, bios: u64, ts: i64) {
        if bios > 0 {
            self.losses.add(Reason::SupersededBio, bios, Some(ts));
        }
    }
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
        let mut dedup = Dedup::new(Arc::new(locations), true);
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
