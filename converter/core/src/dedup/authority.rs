//! Which log is authoritative for a fact that several logs of one run record.
//!
//! A log that reports the requests of a thread, or the bios of a device, reports them from its first such event to its end. While the
//! authoritative log lasts, what the other logs report of the same subject is a duplicate, even if their clocks differ.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::LogSet;
use crate::event::bio_flags::Direction;
use crate::event::probe::Probe;
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, UNKNOWN_TASK};

/// Maximum clock skew between two logs.
pub const MAX_SKEW_NS: i64 = 200_000;
/// A log of calls may report an entry this long before another log reports the call or its request.
pub(super) const MAX_CALL_LEAD_NS: i64 = 100_000_000;

/// What a log reports, and for which thread or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    Requests(u32),
    Calls(u32),
    /// The bios that a thread submits to a device.
    Bios(Dev, u32),
    /// Reads to a device by their sector. No event of a file system reports them, so a log of the block layer is the only one that does.
    Reads(Dev, u32),
    OtherBios(Dev, u32),
    /// Flushes to a device, which are bios without data.
    Flushes(Dev, u32),
    /// All bios that are identified by their address.
    BiosByAddress,
    /// Bios of a thread that are reported without device and sector. Events of the block layer cannot be matched with them.
    BiosWithoutSector(u32),
}

impl Subject {
    /// The thread for which the kinds of events with an id are noted. Completions have none.
    fn task_of_kinds(self) -> Option<u32> {
        match self {
            Self::Requests(tid) => Some(tid),
            Self::BiosByAddress => Some(UNKNOWN_TASK),
            _ => None,
        }
    }
}

/// A log that reports a subject.
#[derive(Clone, Copy, Debug)]
struct Reporter {
    /// The lowest rank wins: ids before none, the kernel before a tracer of calls, bios before block-layer requests.
    rank: u8,
    log: usize,
    first_ts: i64,
}

impl Reporter {
    /// Adds what the same log has reported elsewhere.
    fn join(&mut self, other: Self) {
        self.first_ts = self.first_ts.min(other.first_ts);
        self.rank = self.rank.min(other.rank);
    }
}

/// The rank of a tracer that sees calls only.
const CALL_TRACER: u8 = 1;

/// The part of a log that has been read.
#[derive(Clone, Copy, Debug)]
struct LogSpan {
    oldest: i64,
    newest: i64,
    open_files: usize,
}

impl LogSpan {
    fn has_ended(&self) -> bool {
        self.open_files == 0
    }
}

/// A time, and the logs that matter at it: which of those that report a subject have begun or ended is asked for it.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The logs that have reported it by then,
    begun: i64,
    /// and that last until then.
    ts: i64,
    /// The log that holds the event.
    asking: usize,
    /// Only logs that report this kind of event.
    kind: Option<usize>,
}

/// How one log's record of a fact relates to the authoritative log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It comes from the authoritative log.
    Authoritative,
    /// The authoritative log records the same fact.
    Duplicate,
}

#[derive(Debug)]
pub(super) struct Authority {
    reporters: HashMap<Subject, Vec<Reporter>, FixedState>,
    logs: Vec<LogSpan>,
    /// (log, device): the log reports completions on the device.
    completes: HashSet<(usize, Dev), FixedState>,
    /// (log, device): the log reports submits on the device.
    submits: HashSet<(usize, Dev), FixedState>,
    /// (log, thread): the log reports exits of the thread's calls.
    exits: HashSet<(usize, u32), FixedState>,
    /// (log, thread): the kinds of events with the id of a request that the log reports of the thread, one bit each.
    kinds: HashMap<(usize, u32), u32, FixedState>,
}

impl Authority {
    /// `log_of_file`: for each input file the number of its log, from 0.
    pub(super) fn new(log_of_file: &[usize]) -> Self {
        let logs = 0..log_of_file.iter().max().map_or(0, |last| last + 1);
        let files_of = |log| log_of_file.iter().filter(|of| **of == log).count();
        Self {
            reporters: HashMap::default(),
            logs: logs.map(|log| LogSpan { oldest: i64::MAX, newest: i64::MIN, open_files: files_of(log) }).collect(),
            completes: HashSet::default(),
            submits: HashSet::default(),
            exits: HashSet::default(),
            kinds: HashMap::default(),
        }
    }

    pub(super) fn log_count(&self) -> usize {
        self.logs.len()
    }

    /// Registers the events of a batch. It must be called before `standing` is asked about any time in the batch.
    pub(super) fn observe<'a>(&mut self, log: usize, events: impl Iterator<Item = &'a Event>) {
        for event in events {
            let span = &mut self.logs[log];
            (span.oldest, span.newest) = (span.oldest.min(event.ts), span.newest.max(event.ts));
            match event.kind {
                Kind::BlockComplete { dev, .. } => _ = self.completes.insert((log, dev)),
                Kind::BlockSubmit { dev, .. } | Kind::BioSubmit { dev, .. } | Kind::Probe(Probe::Read { dev, .. }) => {
                    _ = self.submits.insert((log, dev));
                }
                Kind::CallExit { .. } => _ = self.exits.insert((log, event.tid)),
                _ => {}
            }
            let Some((subject, rank)) = subject_of(event) else { continue };
            if let Some(tid) = subject.task_of_kinds() {
                *self.kinds.entry((log, tid)).or_default() |= 1 << event.kind.index();
            }
            // An exit does not say which kind of tracer recorded it. A completion may belong to a bio that no log has submitted.
            if matches!(event.kind, Kind::CallExit { .. } | Kind::BioComplete { .. }) {
                continue;
            }
            let reporter = Reporter { rank, log, first_ts: event.ts };
            self.add(subject, reporter);
            if let Kind::BioSubmit { dev, sector, .. } = event.kind {
                let has_sector = dev.is_known() && sector != NO_SECTOR;
                self.add(Subject::BiosByAddress, reporter);
                let bios =
                    if has_sector { Subject::Bios(dev, event.tid) } else { Subject::BiosWithoutSector(event.tid) };
                self.add(bios, reporter);
            }
        }
    }

    fn add(&mut self, subject: Subject, new: Reporter) {
        let reporters = self.reporters.entry(subject).or_default();
        match reporters.iter_mut().find(|reporter| reporter.log == new.log) {
            Some(reporter) => reporter.join(new),
            None => reporters.push(new),
        }
    }

    /// Makes a log a piece of another one, for which its reports until now count too.
    pub(super) fn join(&mut self, log: usize, to: usize) {
        for reporters in self.reporters.values_mut() {
            let Some(at) = reporters.iter().position(|reporter| reporter.log == log) else { continue };
            let own = reporters.remove(at);
            match reporters.iter_mut().find(|reporter| reporter.log == to) {
                Some(reporter) => reporter.join(own),
                None => reporters.push(Reporter { log: to, ..own }),
            }
        }
        let renamed = |of: usize| if of == log { to } else { of };
        for devices in [&mut self.completes, &mut self.submits] {
            *devices = devices.drain().map(|(of, dev)| (renamed(of), dev)).collect();
        }
        self.exits = self.exits.drain().map(|(of, tid)| (renamed(of), tid)).collect();
        let of_log: Vec<_> = self.kinds.extract_if(|&(of, _), _| of == log).collect();
        for ((_, tid), kinds) in of_log {
            *self.kinds.entry((to, tid)).or_default() |= kinds;
        }
        let LogSpan { oldest, newest, open_files } = self.logs[log];
        let span = &mut self.logs[to];
        (span.oldest, span.newest) = (span.oldest.min(oldest), span.newest.max(newest));
        span.open_files += open_files;
    }

    /// Takes a log that has become a piece of another one out of it. Its open files are no longer those of that one.
    pub(super) fn leave(&mut self, log: usize, from: usize, open_files: usize) {
        self.logs[from].open_files -= open_files;
        self.logs[log] = LogSpan { oldest: i64::MAX, newest: i64::MIN, open_files };
    }

    /// Marks one file of a log as read to its end.
    pub(super) fn end_file(&mut self, log: usize) {
        if let Some(log) = self.logs.get_mut(log) {
            log.open_files -= 1;
        }
    }

    /// Whether `log` is authoritative for an event that it holds.
    pub(super) fn standing(&self, event: &Event, log: usize) -> Standing {
        let Some((subject, _)) = subject_of(event) else { return Standing::Authoritative };
        let Some(reporters) = self.reporters.get(&subject) else { return Standing::Authoritative };
        let Some(rank) = reporters.iter().find(|reporter| reporter.log == log).map(|reporter| reporter.rank) else {
            return Standing::Authoritative;
        };
        let at = |begun| Moment { begun, ts: event.ts, asking: log, kind: None };
        if let Subject::Bios(_, tid) = subject
            && self.best(Subject::BiosWithoutSector(tid), at(event.ts), None).is_some_and(|best| best != log)
        {
            return Standing::Duplicate;
        }
        // strace may report the first call long before the kernel does. The call must not be split between the two logs.
        let by_call_tracer = matches!(subject, Subject::Calls(_)) && rank == CALL_TRACER;
        let ts = if by_call_tracer { event.ts.saturating_add(MAX_CALL_LEAD_NS) } else { event.ts };
        // Calls and requests of a thread pair best when one clock has measured both. A request begins some time after its call.
        let log_of_requests = match subject {
            Subject::Calls(tid) => {
                self.best(Subject::Requests(tid), at(event.ts.saturating_add(MAX_CALL_LEAD_NS)), None)
            }
            _ => None,
        };
        // A log that records the bounds of requests only, or no completions, has no duplicates of what it does not record.
        let kind = matches!(
            event.kind,
            Kind::BioAddFolio { .. }
                | Kind::BioSubmit { .. }
                | Kind::BioComplete { .. }
                | Kind::WaitStart { .. }
                | Kind::WaitEnd { .. }
        );
        let at = Moment { kind: kind.then(|| event.kind.index()), ..at(ts) };
        let best = self.best(subject, at, log_of_requests);
        if best.is_none_or(|best| best == log) { Standing::Authoritative } else { Standing::Duplicate }
    }

    /// The authoritative log for `subject` at a moment. If several have the lowest rank, `preferred` wins, then the first to begin.
    fn best(&self, subject: Subject, moment: Moment, preferred: Option<usize>) -> Option<usize> {
        let Moment { begun, ts, asking, kind } = moment;
        let kinds_of = |log| self.kinds.get(&(log, subject.task_of_kinds()?)).copied();
        let lasts = |reporter: &&Reporter| {
            let log = self.logs[reporter.log];
            let last_ts = if log.has_ended() { log.newest.saturating_add(MAX_SKEW_NS) } else { i64::MAX };
            let is_disjoint = self.precedes(reporter.log, asking) || self.precedes(asking, reporter.log);
            reporter.first_ts.saturating_sub(MAX_SKEW_NS) <= begun && ts <= last_ts && !is_disjoint
        };
        let reports = |reporter: &&Reporter| {
            kind.is_none_or(|kind| kinds_of(reporter.log).is_some_and(|kinds| kinds & 1 << kind != 0))
        };
        let reporters = self.reporters.get(&subject)?.iter().filter(lasts).filter(reports);
        reporters
            .min_by_key(|reporter| {
                let begun = self.logs[reporter.log].oldest;
                (reporter.rank, Some(reporter.log) != preferred, begun, reporter.log)
            })
            .map(|reporter| reporter.log)
    }

    /// Whether one log ends before another begins. The second may be the next piece of a recording, so it holds no duplicate of the first.
    fn precedes(&self, first: usize, second: usize) -> bool {
        let (first, second) = (self.logs[first], self.logs[second]);
        // The log that begins earlier comes first where two have a time in common.
        first.has_ended() && first.newest <= second.oldest && first.oldest < second.oldest
    }

    /// The logs whose bios a completion on `dev` at `ts` from `log` may complete: its own, those that report no completion on the device,
    /// and those that have ended.
    pub(super) fn completable(&self, dev: Dev, ts: i64, log: usize) -> LogSet {
        let is_over = |other: usize| {
            let last_ts = self.logs[other].newest.saturating_add(MAX_SKEW_NS);
            self.logs[other].has_ended() && last_ts < ts || self.precedes(other, log)
        };
        (0..self.logs.len())
            .filter(|&other| other == log || !self.completes.contains(&(other, dev)) || is_over(other))
            .collect()
    }

    /// Whether a log has ended before this time, so that no event of it follows.
    pub(super) fn is_over(&self, log: usize, ts: i64) -> bool {
        self.logs.get(log).is_some_and(|span| span.has_ended() && span.newest < ts)
    }

    /// Whether no other log that lasts at `ts` reports submits on the device, and none that begins earlier reports its completions.
    pub(super) fn is_authoritative_on(&self, dev: Dev, ts: i64, log: usize) -> bool {
        let lasts = |other: usize| {
            let span = self.logs[other];
            span.oldest.saturating_sub(MAX_SKEW_NS) <= ts
                && (!span.has_ended() || ts <= span.newest.saturating_add(MAX_SKEW_NS))
        };
        let begins_earlier = |other: usize| (self.logs[other].oldest, other) < (self.logs[log].oldest, log);
        let knows_better = |other: usize| {
            self.submits.contains(&(other, dev)) || self.completes.contains(&(other, dev)) && begins_earlier(other)
        };
        !(0..self.logs.len()).any(|other| other != log && knows_better(other) && lasts(other))
    }

    /// Whether a log reports exits of a thread's calls.
    pub(super) fn reports_exits(&self, log: usize, tid: u32) -> bool {
        self.exits.contains(&(log, tid))
    }

    /// Whether several logs report the subject of an event, so that it may be the partner of a duplicate.
    pub(super) fn is_shared(&self, event: &Event) -> bool {
        let has_several = |subject| self.reporters.get(&subject).is_some_and(|reporters| reporters.len() > 1);
        match event.kind {
            // The other logs may be of the block layer.
            Kind::BioSubmit { dev, .. } => {
                has_several(Subject::Requests(event.tid)) || has_several(Subject::Bios(dev, event.tid))
            }
            _ => subject_of(event).is_some_and(|(subject, _)| has_several(subject)),
        }
    }

    /// Whether any log reports requests of a thread.
    pub(super) fn reports_requests(&self, tid: u32) -> bool {
        self.reporters.contains_key(&Subject::Requests(tid))
    }

    /// Whether a log that lasts at `ts` reports requests or calls of a thread. `asking` is the log that holds the event.
    pub(super) fn covers_thread(&self, tid: u32, ts: i64, asking: usize) -> bool {
        let subjects = [Subject::Requests(tid), Subject::Calls(tid)];
        let moment = Moment { begun: ts, ts, asking, kind: None };
        subjects.into_iter().any(|subject| self.best(subject, moment, None).is_some())
    }

    /// Whether a log is that of a tracer that sees the thread's calls only, such as strace.
    pub(super) fn is_call_tracer(&self, tid: u32, log: usize) -> bool {
        let reporters = self.reporters.get(&Subject::Calls(tid));
        reporters.is_some_and(|reporters| {
            reporters.iter().any(|reporter| reporter.log == log && reporter.rank == CALL_TRACER)
        })
    }
}

/// The subject of an event, and the rank that the event gives its log.
fn subject_of(event: &Event) -> Option<(Subject, u8)> {
    let of_thread = |subject: fn(u32) -> Subject, rank| (event.tid != UNKNOWN_TASK).then(|| (subject(event.tid), rank));
    match event.kind {
        Kind::CallEnter { call_only, .. } => of_thread(Subject::Calls, u8::from(call_only)),
        Kind::CallExit { .. } => of_thread(Subject::Calls, CALL_TRACER),
        Kind::SyncStart { id, .. } | Kind::SyncEnd { id, .. } => of_thread(Subject::Requests, u8::from(id == NO_ID)),
        Kind::BioAddFolio { .. } | Kind::BioSubmit { .. } | Kind::WaitStart { .. } | Kind::WaitEnd { .. } => {
            of_thread(Subject::Requests, 0)
        }
        Kind::BlockSubmit { dev, bytes, flags, .. } | Kind::BlockRemap { dev, bytes, flags, .. } => {
            let subject = match flags.direction(bytes) {
                Direction::Write => Subject::Bios(dev, event.tid),
                Direction::Read => Subject::Reads(dev, event.tid),
                Direction::Flush => Subject::Flushes(dev, event.tid),
                Direction::Discard | Direction::Zeroes | Direction::Unknown => Subject::OtherBios(dev, event.tid),
            };
            Some((subject, 1))
        }
        Kind::Probe(Probe::Read { dev, .. }) => Some((Subject::Reads(dev, event.tid), 0)),
        // A kernel that names the request knows better than a probe.
        Kind::Probe(Probe::End { .. }) => Some((Subject::BiosByAddress, 1)),
        Kind::BioComplete { .. } => Some((Subject::BiosByAddress, 0)),
        // A tracepoint reports the work of a flusher thread too, without any request. The thread of a completion means nothing.
        // `completable` decides which completions are used, `marks` which marks. Pairing recognizes a commit, or a wait of a write, that
        // several logs have, and a state of a thread that does not change.
        Kind::Probe(
            Probe::WorkStart { .. }
            | Probe::WorkEnd
            | Probe::CommitRequest { .. }
            | Probe::CommitTimer
            | Probe::FastCommitIneligible { .. }
            | Probe::FastCommitStart { .. }
            | Probe::FastCommitStop { .. }
            | Probe::WriteWaitStart { .. }
            | Probe::WriteWaitEnd { .. }
            | Probe::PageLock { .. }
            | Probe::PageLockEnd
            | Probe::Throttle { .. }
            | Probe::Write(_),
        )
        | Kind::BlockInsert { .. }
        | Kind::BlockIssue { .. }
        | Kind::BlockComplete { .. }
        | Kind::BlockDone { .. }
        | Kind::WbStart { .. }
        | Kind::WbEnd { .. }
        | Kind::CommitStart { .. }
        | Kind::CommitEnd { .. }
        | Kind::CommitStep { .. }
        | Kind::HandleEnd { .. }
        | Kind::Thread(_)
        | Kind::FileCall(_)
        | Kind::FileReturn(_)
        | Kind::SyncDone { .. }
        | Kind::BlockReport { .. }
        | Kind::Mark { .. }
        | Kind::Torn { .. }
        | Kind::Other => None,
        Kind::Probe(_) => of_thread(Subject::Requests, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::bio_flags::BioFlags;
    use crate::event::{Op, WaitKind};
    use crate::names::NameId;

    fn event(ts: i64, tid: u32, kind: Kind) -> Event {
        Event { ts, tid, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind }
    }

    fn start(id: u64) -> Kind {
        let (path, fs) = (NameId::NONE, NameId::NONE);
        Kind::SyncStart { id, start: 0, end: 0, path, fs, ino: 0, dev: Dev::UNKNOWN, datasync: false, by_thread: false }
    }

    fn enter(call_only: bool) -> Kind {
        Kind::CallEnter { op: Op::Fsync, stack: NameId::NONE, path: NameId::NONE, call_only }
    }

    const DISK: Dev = Dev(8 << 20);
    const FLAGS: BioFlags = BioFlags::SYNC;
    const BLOCK: Kind = Kind::BlockSubmit { dev: DISK, sector: 8, bytes: 4096, flags: FLAGS };
    const S: i64 = 1_000_000_000;

    fn bio(dev: Dev) -> Kind {
        Kind::BioSubmit { id: 1, bio: 2, sector: 8, dev, background: false, bytes: 0, flags: None }
    }

    /// For each event of each log: whether its log is authoritative.
    fn authoritative(logs: &[&[Event]]) -> Vec<Vec<bool>> {
        let mut authority = Authority::new(&(0..logs.len()).collect::<Vec<_>>());
        for (log, events) in logs.iter().enumerate() {
            authority.observe(log, events.iter());
            authority.end_file(log);
        }
        let standing = |(log, events): (usize, &&[Event])| {
            events.iter().map(|event| authority.standing(event, log) == Standing::Authoritative).collect()
        };
        logs.iter().enumerate().map(standing).collect()
    }

    #[test]
    fn ids_rank_before_none_and_the_kernel_before_a_call_tracer() {
        let calls = [event(1, 7, enter(true)), event(2, 8, enter(true))];
        let stock = [event(1, 7, enter(false)), event(1, 7, start(NO_ID)), event(1, 9, start(NO_ID))];
        let patched = [event(1, 7, enter(false)), event(1, 7, start(5))];
        // Only the call tracer reports thread 8, only the stock kernel's log thread 9. Calls follow the log of the requests.
        let expected = [vec![false, true], vec![false, false, true], vec![true, true]];
        assert_eq!(authoritative(&[&calls, &stock, &patched]), expected);
    }

    #[test]
    fn a_log_is_authoritative_until_it_ends() {
        let wait = |ts| event(ts, 7, Kind::WaitStart { id: 1, wait: WaitKind::Flush, transaction: 0 });
        let before = [wait(S), wait(2 * S)];
        let after = [wait(S), wait(2 * S + MAX_SKEW_NS), wait(3 * S)];
        assert_eq!(authoritative(&[&before, &after]), [vec![true, true], vec![false, false, true]]);
        let next = [wait(2 * S + 1), wait(3 * S)];
        assert_eq!(authoritative(&[&before, &next]), [vec![true, true], vec![true, true]]);
        assert_eq!(authoritative(&[&next, &before]), [vec![true, true], vec![true, true]]);
    }

    #[test]
    fn any_log_completes_the_bios_of_a_log_that_has_ended() {
        let completion =
            Kind::BlockComplete { dev: DISK, sector: 8, bytes: 4096, flags: FLAGS, error: None, is_bio: false };
        let done = |ts| event(ts, 0, completion);
        let mut authority = Authority::new(&[0, 1]);
        authority.observe(0, [event(S, 7, BLOCK), done(2 * S)].iter());
        authority.observe(1, [event(S, 7, BLOCK), done(3 * S)].iter());
        assert!(!authority.completable(DISK, 3 * S, 1).contains(0));
        authority.end_file(0);
        assert!(authority.completable(DISK, 3 * S, 1).contains(0));
        // Within the maximum clock skew log 0 may still have reported it.
        assert!(!authority.completable(DISK, 2 * S + MAX_SKEW_NS, 1).contains(0));
    }

    #[test]
    fn bios_rank_before_block_layer_requests() {
        let other = Kind::BlockSubmit { dev: Dev(9 << 20), sector: 8, bytes: 1, flags: FLAGS };
        let block = [event(S, 7, BLOCK), event(S, 7, other)];
        assert_eq!(authoritative(&[&block, &[event(S, 7, bio(DISK))]]), [vec![false, true], vec![true]]);
        // A bio without device and sector may be any of them.
        assert_eq!(authoritative(&[&block, &[event(S, 7, bio(Dev::UNKNOWN))]]), [vec![false, false], vec![true]]);
        assert_eq!(authoritative(&[&block, &block]), [vec![true, true], vec![false, false]]);
    }

    #[test]
    fn a_probe_that_names_the_file_ranks_before_a_read_of_the_block_layer() {
        let read = |flags| Kind::BlockSubmit { dev: DISK, sector: 8, bytes: 4096, flags };
        let probe = Kind::Probe(Probe::Read { dev: DISK, sector: 8, bytes: 4096, flags: BioFlags::READ, file: None });
        let block = [event(S, 7, read(BioFlags::READ)), event(S, 7, read(FLAGS)), event(S, 8, read(BioFlags::READ))];
        // It says nothing of writes, nor of other threads.
        assert_eq!(authoritative(&[&block, &[event(S, 7, probe)]]), [vec![false, true, true], vec![true]]);
    }
}
