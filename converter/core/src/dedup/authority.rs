//! Several logs of one run may tell of the same thing: which of them is taken at its word.
//!
//! A log that tells of a thread's syncs, or of a device's bios, does so for as long as it lasts. The others' words are the same thing
//! told again, whatever their clocks are apart.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, UNKNOWN_TASK};

/// So far may the clocks of two logs be apart.
const SKEW_NS: i64 = 200_000;
/// So long before the first word of a log a call may have begun that it tells.
const CALL_NS: i64 = 100_000_000;
/// A bio that two logs tell of has been told by both within this time.
const SAME_BIO_NS: i64 = 1_000_000_000;

/// What is told, and of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Requests(u32),
    Calls(u32),
    /// Of a thread, on a device.
    Bios(Dev, u32),
    /// All bios that are told by their address.
    BiosByAddress,
    /// Those of them of which it is not told where they go: what the block layer tells cannot be laid beside them.
    BiosWithoutPlace(u32),
}

#[derive(Clone, Copy, Debug)]
struct Reporter {
    /// Better ones are lower: ids before none, the kernel before a tracer of calls, bios before what the block layer makes of them.
    rank: u8,
    log: usize,
    since: i64,
}

#[derive(Clone, Copy, Debug)]
struct Log {
    oldest: i64,
    newest: i64,
    open_files: usize,
}

/// What is to be done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It comes from the authoritative log.
    Authoritative,
    /// The authoritative log reports the same fact.
    Duplicate,
}

#[derive(Debug, Default)]
pub struct Authority {
    who: HashMap<Of, Vec<Reporter>, FixedState>,
    logs: Vec<Log>,
    /// Logs, and devices of whose bios they tell the end, or the begin.
    completes: HashSet<(usize, Dev), FixedState>,
    submits: HashSet<(usize, Dev), FixedState>,
    /// Logs, and threads of whose calls they tell the return.
    exits: HashSet<(usize, u32), FixedState>,
    /// How many more times a bio was told by the log that is believed than by another one.
    once: HashMap<Once, i32, FixedState>,
    recent: VecDeque<(i64, Once, i32)>,
}

/// A place on a device, and the log that is not believed there.
type Once = (usize, Dev, i64);

impl Authority {
    /// Whether there is more than one log.
    pub fn several(&self) -> bool {
        self.logs.len() > 1
    }

    /// Of the log of each file.
    pub fn of_logs(files: &[usize]) -> Self {
        let logs = 0..files.iter().max().map_or(0, |last| last + 1);
        let files_of = |log| files.iter().filter(|of| **of == log).count();
        let logs = logs.map(|log| Log { oldest: i64::MAX, newest: i64::MIN, open_files: files_of(log) }).collect();
        Self { logs, ..Self::default() }
    }

    /// Events that a log will tell; all of them are announced before any of that time is asked for.
    pub fn announce<'a>(&mut self, log: usize, events: impl Iterator<Item = &'a Event>) {
        for event in events {
            let span = &mut self.logs[log];
            (span.oldest, span.newest) = (span.oldest.min(event.ts), span.newest.max(event.ts));
            match event.kind {
                Kind::BlockComplete { dev, .. } => _ = self.completes.insert((log, dev)),
                Kind::BlockSubmit { dev, .. } | Kind::BioSubmit { dev, .. } => _ = self.submits.insert((log, dev)),
                Kind::CallExit { .. } => _ = self.exits.insert((log, event.tid)),
                _ => {}
            }
            let Some((of, rank)) = of(event) else { continue };
            // An exit does not tell what kind of tracer tells it; a completion may be of what no log tells the begin of.
            if matches!(event.kind, Kind::CallExit { .. } | Kind::BioComplete { .. }) {
                continue;
            }
            let new = Reporter { rank, log, since: event.ts };
            self.add(of, new);
            if let Kind::BioSubmit { dev, sector, .. } = event.kind {
                let is_placed = dev.is_known() && sector != NO_SECTOR;
                self.add(Of::BiosByAddress, new);
                self.add(if is_placed { Of::Bios(dev, event.tid) } else { Of::BiosWithoutPlace(event.tid) }, new);
            }
        }
    }

    fn add(&mut self, of: Of, new: Reporter) {
        let tellers = self.who.entry(of).or_default();
        match tellers.iter_mut().find(|teller| teller.log == new.log) {
            Some(teller) => {
                teller.since = teller.since.min(new.since);
                teller.rank = teller.rank.min(new.rank);
            }
            None => tellers.push(new),
        }
    }

    /// One of a log's files tells no more than it has announced.
    pub fn ended(&mut self, log: usize) {
        if let Some(log) = self.logs.get_mut(log) {
            log.open_files -= 1;
        }
    }

    pub fn told(&mut self, event: &Event, log: usize) -> Standing {
        let Some((of, _)) = of(event) else { return Standing::Authoritative };
        let Some(tellers) = self.who.get(&of) else { return Standing::Authoritative };
        let Some(its_rank) = tellers.iter().find(|teller| teller.log == log).map(|teller| teller.rank) else {
            return Standing::Authoritative;
        };
        if let Of::Bios(_, tid) = of
            && self.best(Of::BiosWithoutPlace(tid), event.ts, event.ts, log, None).is_some_and(|best| best != log)
        {
            return Standing::Duplicate;
        }
        // The first call that the kernel tells may have begun long before by a tracer's word, and must not be half of the one, half of the other.
        let by_tracer = matches!(of, Of::Calls(_)) && its_rank == TRACER;
        let ts = if by_tracer { event.ts.saturating_add(CALL_NS) } else { event.ts };
        // Calls and requests of one thread are paired best where one clock tells of both; a request begins some time after its call.
        let pairs = match of {
            Of::Calls(tid) => self.best(Of::Requests(tid), event.ts.saturating_add(CALL_NS), event.ts, log, None),
            _ => None,
        };
        if self.best(of, ts, event.ts, log, pairs).is_none_or(|best| best == log) {
            Standing::Authoritative
        } else {
            Standing::Duplicate
        }
    }

    /// The log that is believed at `ts`, of those that have `begun` by then; of those of one rank, `first`. `asked`: the log whose event it is.
    fn best(&self, of: Of, begun: i64, ts: i64, asked: usize, first: Option<usize>) -> Option<usize> {
        let lasts = |teller: &&Reporter| {
            let log = self.logs[teller.log];
            let until = if log.open_files == 0 { log.newest.saturating_add(SKEW_NS) } else { i64::MAX };
            let apart = self.has_ended_before(teller.log, asked) || self.has_ended_before(asked, teller.log);
            teller.since.saturating_sub(SKEW_NS) <= begun && ts <= until && !apart
        };
        let tellers = self.who.get(&of)?.iter().filter(lasts);
        tellers.min_by_key(|teller| (teller.rank, Some(teller.log) != first, teller.log)).map(|teller| teller.log)
    }

    /// What follows at once may be the next piece of a recording: nothing of it has been told before, whatever the clocks.
    fn has_ended_before(&self, one: usize, other: usize) -> bool {
        self.logs[one].open_files == 0 && self.logs[one].newest < self.logs[other].oldest
    }

    /// Whether a log's word of a completion counts. `of`: the log that has told the bio in flight there, if there is one.
    /// What comes after the end of that one counts by any.
    pub fn completes(&self, dev: Dev, ts: i64, log: usize, of: Option<usize>) -> bool {
        let is_over = |log: Log| log.open_files == 0 && log.newest.saturating_add(SKEW_NS) < ts;
        match of {
            Some(of) => of == log || !self.completes.contains(&(of, dev)) || is_over(self.logs[of]),
            // Another has told it, if another tells of this device at all.
            None => !(0..self.logs.len()).any(|other| other != log && self.submits.contains(&(other, dev))),
        }
    }

    pub fn tells_exits(&self, log: usize, tid: u32) -> bool {
        self.exits.contains(&(log, tid))
    }

    /// Whether any log tells of requests of a thread.
    pub fn tells_requests(&self, tid: u32) -> bool {
        self.who.contains_key(&Of::Requests(tid))
    }

    /// Whether any log that lasts at `ts`, the time of an event of `log`, tells of requests or calls of a thread.
    pub fn anyone_tells(&self, tid: u32, ts: i64, log: usize) -> bool {
        [Of::Requests(tid), Of::Calls(tid)].into_iter().any(|of| self.best(of, ts, ts, log, None).is_some())
    }

    /// Whether a log tells of the calls of a thread as a tracer of calls does, beside one of the kernel's.
    pub fn is_tracer(&self, tid: u32, log: usize) -> bool {
        let of = self.who.get(&Of::Calls(tid));
        of.is_some_and(|tellers| tellers.iter().any(|teller| teller.log == log && teller.rank == TRACER))
    }

    /// Takes a bio that a log tells; returns how many bios only a log has told that is not believed.
    pub fn bio(&mut self, dev: Dev, sector: i64, ts: i64, log: usize, told: Standing) -> u64 {
        let (others, by) = match told {
            Standing::Authoritative => (0..self.logs.len(), 1),
            Standing::Duplicate => (log..log + 1, -1),
        };
        for other in others.filter(|&other| told == Standing::Duplicate || other != log) {
            let key = (other, dev, sector);
            *self.once.entry(key).or_insert(0) += by;
            self.recent.push_back((ts, key, by));
        }
        self.forget(ts.saturating_sub(SAME_BIO_NS))
    }

    /// As `bio`, for all that is left.
    pub fn forget(&mut self, until: i64) -> u64 {
        let mut call_only = 0;
        while let Some(&(ts, key, by)) = self.recent.front() {
            if ts > until {
                break;
            }
            self.recent.pop_front();
            let Some(left) = self.once.get_mut(&key) else { continue };
            // What is left of this sign was told once, and the oldest of them is this one.
            if left.signum() == by {
                *left -= by;
                call_only += u64::from(by < 0);
            }
            if *left == 0 {
                self.once.remove(&key);
            }
        }
        call_only
    }
}

const TRACER: u8 = 1;

fn of(event: &Event) -> Option<(Of, u8)> {
    let of_thread = |of: fn(u32) -> Of, rank| (event.tid != UNKNOWN_TASK).then(|| (of(event.tid), rank));
    match event.kind {
        Kind::CallEnter { call_only, .. } => of_thread(Of::Calls, u8::from(call_only)),
        Kind::CallExit { .. } => of_thread(Of::Calls, TRACER),
        Kind::SyncStart { id, .. } | Kind::SyncEnd { id, .. } => of_thread(Of::Requests, u8::from(id == NO_ID)),
        Kind::BioAddFolio { .. } | Kind::BioSubmit { .. } | Kind::WaitStart { .. } | Kind::WaitEnd { .. } => {
            of_thread(Of::Requests, 0)
        }
        Kind::BlockSubmit { dev, .. } | Kind::BlockRemap { dev, .. } => Some((Of::Bios(dev, event.tid), 1)),
        Kind::BioComplete { .. } => Some((Of::BiosByAddress, 0)),
        // Whose thread a completion is means nothing: `completes` says whose word counts.
        Kind::BlockComplete { .. } | Kind::WbStart { .. } | Kind::WbEnd { .. } | Kind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    const BLOCK: Kind = Kind::BlockSubmit { dev: DISK, sector: 8, bytes: 4096 };
    const S: i64 = 1_000_000_000;

    fn bio(dev: Dev) -> Kind {
        Kind::BioSubmit { id: 1, bio: 2, sector: 8, dev, background: false, bytes: 0 }
    }

    /// What each log tells, and then what is believed.
    fn first(logs: &[&[Event]]) -> Vec<Vec<bool>> {
        let mut tellers = Authority::of_logs(&(0..logs.len()).collect::<Vec<_>>());
        for (log, events) in logs.iter().enumerate() {
            tellers.announce(log, events.iter());
            tellers.ended(log);
        }
        let told = |(log, events): (usize, &&[Event])| {
            events.iter().map(|event| tellers.told(event, log) == Standing::Authoritative).collect()
        };
        logs.iter().enumerate().map(told).collect()
    }

    #[test]
    fn ids_count_more_than_none_and_the_kernel_more_than_a_tracer() {
        let calls = [event(1, 7, enter(true)), event(2, 8, enter(true))];
        let stock = [event(1, 7, enter(false)), event(1, 7, start(NO_ID)), event(1, 9, start(NO_ID))];
        let patched = [event(1, 7, enter(false)), event(1, 7, start(5))];
        let believed = first(&[&calls, &stock, &patched]);
        // Only the tracer tells of thread 8, only the stock kernel's log of thread 9; calls are of the log that tells the requests.
        assert_eq!(believed, [vec![false, true], vec![false, false, true], vec![true, true]]);
    }

    #[test]
    fn a_log_is_believed_as_long_as_it_lasts() {
        let wait = |ts| event(ts, 7, Kind::WaitStart { id: 1, wait: WaitKind::Flush, transaction: 0 });
        let before = [wait(S), wait(2 * S)];
        let after = [wait(S), wait(2 * S + SKEW_NS), wait(3 * S)];
        assert_eq!(first(&[&before, &after]), [vec![true, true], vec![false, false, true]]);
        let next = [wait(2 * S + 1), wait(3 * S)];
        assert_eq!(first(&[&before, &next]), [vec![true, true], vec![true, true]]);
        assert_eq!(first(&[&next, &before]), [vec![true, true], vec![true, true]]);
    }

    #[test]
    fn bios_of_a_log_that_is_over_are_completed_by_any() {
        let done = |ts| event(ts, 0, Kind::BlockComplete { dev: DISK, sector: 8, bytes: 4096 });
        let mut tellers = Authority::of_logs(&[0, 1]);
        tellers.announce(0, [event(S, 7, BLOCK), done(2 * S)].iter());
        tellers.announce(1, [event(S, 7, BLOCK), done(3 * S)].iter());
        assert!(!tellers.completes(DISK, 3 * S, 1, Some(0)));
        tellers.ended(0);
        assert!(tellers.completes(DISK, 3 * S, 1, Some(0)));
        // Within what clocks are apart it may have been told.
        assert!(!tellers.completes(DISK, 2 * S + SKEW_NS, 1, Some(0)));
    }

    #[test]
    fn what_the_block_layer_tells_gives_way_to_bios() {
        let block = [event(S, 7, BLOCK), event(S, 7, Kind::BlockSubmit { dev: Dev(9 << 20), sector: 8, bytes: 1 })];
        assert_eq!(first(&[&block, &[event(S, 7, bio(DISK))]]), [vec![false, true], vec![true]]);
        // Where they go is not told: they may be any of them.
        assert_eq!(first(&[&block, &[event(S, 7, bio(Dev::UNKNOWN))]]), [vec![false, false], vec![true]]);
        assert_eq!(first(&[&block, &block]), [vec![true, true], vec![false, false]]);
    }

    #[test]
    fn bios_that_only_the_other_log_tells_are_counted() {
        let mut tellers = Authority::of_logs(&[0, 1, 2]);
        let mut bio = |sector, ts, log, told| tellers.bio(DISK, sector, ts, log, told);
        // By three logs, in any order; by two; by one that is believed; by one that is not, twice.
        assert_eq!(
            bio(1, 5, 1, Standing::Duplicate)
                + bio(1, 7, 0, Standing::Authoritative)
                + bio(1, 9, 2, Standing::Duplicate),
            0
        );
        assert_eq!(
            bio(2, 10, 0, Standing::Authoritative)
                + bio(2, 11, 1, Standing::Duplicate)
                + bio(3, 12, 0, Standing::Authoritative),
            0
        );
        assert_eq!(bio(4, 13, 2, Standing::Duplicate) + bio(4, 14, 2, Standing::Duplicate), 0);
        assert_eq!(bio(4, 13 + SAME_BIO_NS, 1, Standing::Duplicate), 1);
        assert_eq!(tellers.forget(i64::MAX), 2);
        assert_eq!(tellers.once.len(), 0);
    }
}
