//! The partners of duplicates. An event of a log without authority is a duplicate only if the authoritative log has the same fact. Their clocks
//! differ, and either of the two may come first, so facts of one kind and place are matched in their order.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::LogSet;
use crate::event::bio_flags::Direction;
use crate::event::probe::{BioRole, Probe};
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, WaitKind};
use crate::location::Location;

/// Two logs that report the same fact report it within this time.
const SAME_FACT_NS: i64 = 1_000_000_000;

/// A fact that several logs may report, apart from its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    /// A thread enters a sync function. The logs may know it by different ids.
    Start(u32),
    End(u32),
    /// A bio is submitted, by its address.
    Submit(u64),
    /// The block layer queues a bio. Flushes have no sector.
    Queue(Dev, i64, Direction),
    Folio {
        id: u64,
        bio: u64,
        offset: u64,
        len: u64,
    },
    Complete(u64),
    Wait {
        tid: u32,
        wait: WaitKind,
        is_end: bool,
    },
}

impl Fact {
    /// The facts that an event reports: a submit may be known by an address, or by a device and a sector. Empty for an event that belongs to
    /// another one. `Partners::bound` knows those of starts and ends.
    fn of(event: &Event) -> [Option<Self>; 2] {
        let queue = |dev: Dev, sector, direction| match direction {
            Direction::Flush => Some(Self::Queue(dev, NO_SECTOR, direction)),
            _ => (dev.is_known() && sector != NO_SECTOR).then_some(Self::Queue(dev, sector, direction)),
        };
        match event.kind {
            Kind::BioSubmit { bio, dev, sector, .. } => [Some(Self::Submit(bio)), queue(dev, sector, Direction::Write)],
            Kind::Probe(Probe::Submit { bio, role: BioRole::PageCache | BioRole::MaybePart, .. }) => {
                [Some(Self::Submit(bio)), None]
            }
            Kind::BlockSubmit { dev, sector, bytes, flags }
            | Kind::Probe(Probe::Read { dev, sector, bytes, flags, .. }) => {
                [queue(dev, sector, flags.direction(bytes)), None]
            }
            Kind::BioAddFolio { id, bio, offset, len, .. } => [Some(Self::Folio { id, bio, offset, len }), None],
            Kind::BioComplete { bio, .. } if bio != 0 => [Some(Self::Complete(bio)), None],
            Kind::WaitStart { wait, .. } => [Some(Self::Wait { tid: event.tid, wait, is_end: false }), None],
            Kind::WaitEnd { wait, .. } => [Some(Self::Wait { tid: event.tid, wait, is_end: true }), None],
            _ => [None, None],
        }
    }
}

/// Where a fact is in the inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) ts: i64,
    pub(super) location: Location,
    /// The name of its event.
    pub(super) what: &'static str,
    /// A bio that not every log need have: one of the block layer, or of a probe.
    pub(super) may_be_alone: bool,
    /// It is a fact of its own: the start or the end of a request, or the submit of a bio.
    pub(super) is_counted: bool,
}

/// The sync functions that a thread is in, as one log reports them. A kernel may report one request at several places: with an id, without
/// one, and by probes. The outermost of them is the fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Inside {
    with_id: bool,
    without_id: bool,
    probes: u32,
}

impl Inside {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    record: Record,
    log: usize,
    /// `Some`: it is used, and is the partner of a duplicate of each of these logs. `None`: it is not used, and has no partner yet.
    used: Option<LogSet>,
    number: u64,
}

/// Events that are not used, by the reason.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Those with a partner, and where that is.
    pub(super) duplicates: Vec<(Record, Location)>,
    /// Those that only a log without authority has.
    pub(super) superseded: Vec<Record>,
}

#[derive(Debug, Default)]
pub(super) struct Partners {
    /// In the order of time.
    waiting: HashMap<Fact, VecDeque<Waiting>, FixedState>,
    /// The same in one order, to remove those that have waited long enough.
    recent: VecDeque<(i64, Fact, u64)>,
    count: u64,
    /// By log and thread.
    inside: HashMap<(usize, u32), Inside, FixedState>,
}

impl Partners {
    /// A thread enters or leaves a call, as a log reports it, so it is in no sync function.
    pub(super) fn leave(&mut self, tid: u32, log: usize) {
        self.inside.remove(&(log, tid));
    }

    /// The fact that the start or the end of a request is.
    fn bound(&mut self, event: &Event, log: usize) -> Option<Fact> {
        let (is_start, of_probe, has_id) = match event.kind {
            Kind::SyncStart { id, .. } => (true, false, id != NO_ID),
            Kind::SyncEnd { id, .. } => (false, false, id != NO_ID),
            Kind::Probe(Probe::SyncEnter { .. }) => (true, true, false),
            Kind::Probe(Probe::SyncExit { .. }) => (false, true, false),
            _ => return None,
        };
        let inside = self.inside.entry((log, event.tid)).or_default();
        let is_in_own = if has_id { inside.with_id } else { inside.without_id };
        if is_start && !of_probe && is_in_own {
            // The end of the one before was lost.
            *inside = Inside::default();
        }
        let is_outermost = is_start && inside.is_nothing();
        match (of_probe, has_id) {
            (true, _) if is_start => inside.probes += 1,
            (true, _) => inside.probes = inside.probes.saturating_sub(1),
            (_, true) => inside.with_id = is_start,
            (_, false) => inside.without_id = is_start,
        }
        if is_start {
            return is_outermost.then_some(Fact::Start(event.tid));
        }
        let has_left = inside.is_nothing();
        if has_left {
            self.inside.remove(&(log, event.tid));
        }
        has_left.then_some(Fact::End(event.tid))
    }

    /// Takes an event that is used.
    pub(super) fn add_used(&mut self, event: &Event, location: Location, log: usize, settled: &mut Settled) {
        self.settle(event.ts.saturating_sub(SAME_FACT_NS), settled);
        let bound = self.bound(event, log);
        for fact in Fact::of(event).into_iter().chain([bound]).flatten() {
            let mut of = LogSet::default();
            if let Some(waiting) = self.waiting.get_mut(&fact) {
                waiting.retain(|other| {
                    let is_duplicate = other.used.is_none() && other.log != log && !of.contains(other.log);
                    if is_duplicate {
                        of.insert(other.log);
                        settled.duplicates.push((other.record, location));
                    }
                    !is_duplicate
                });
            }
            self.wait(fact, record_of(event, location), log, Some(of));
        }
    }

    /// Takes an event that is not used.
    pub(super) fn add_unused(&mut self, event: &Event, location: Location, log: usize, settled: &mut Settled) {
        let Some(fact) = self.bound(event, log).or(Fact::of(event)[0]) else { return };
        self.settle(event.ts.saturating_sub(SAME_FACT_NS), settled);
        let record = record_of(event, location);
        let partner = self.waiting.get_mut(&fact).and_then(|waiting| {
            waiting.iter_mut().find(|other| other.log != log && other.used.is_some_and(|of| !of.contains(log)))
        });
        match partner {
            Some(Waiting { used: Some(of), record: partner, .. }) => {
                of.insert(log);
                settled.duplicates.push((record, partner.location));
            }
            _ => self.wait(fact, record, log, None),
        }
    }

    fn wait(&mut self, fact: Fact, record: Record, log: usize, used: Option<LogSet>) {
        self.count += 1;
        self.waiting.entry(fact).or_default().push_back(Waiting { record, log, used, number: self.count });
        self.recent.push_back((record.ts, fact, self.count));
    }

    /// Settles the events up to a time.
    pub(super) fn settle(&mut self, until: i64, settled: &mut Settled) {
        while let Some(&(_, fact, number)) = self.recent.front().filter(|(ts, ..)| *ts < until) {
            self.recent.pop_front();
            let Some(waiting) = self.waiting.get_mut(&fact) else { continue };
            if let Some(at) = waiting.iter().position(|other| other.number == number)
                && let Some(Waiting { used: None, record, .. }) = waiting.remove(at)
            {
                settled.superseded.push(record);
            }
            if waiting.is_empty() {
                self.waiting.remove(&fact);
            }
        }
    }
}

fn record_of(event: &Event, location: Location) -> Record {
    let may_be_alone =
        matches!(event.kind, Kind::BlockSubmit { .. } | Kind::Probe(Probe::Submit { .. } | Probe::Read { .. }));
    let belongs_to_another = matches!(
        event.kind,
        Kind::BioAddFolio { .. } | Kind::BioComplete { .. } | Kind::WaitStart { .. } | Kind::WaitEnd { .. }
    );
    let what = Kind::NAMES[event.kind.index()];
    Record { ts: event.ts, location, what, may_be_alone, is_counted: !belongs_to_another }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::UNKNOWN_TASK;
    use crate::event::bio_flags::BioFlags;
    use crate::names::NameId;

    fn queue(ts: i64, sector: i64) -> Event {
        let kind = Kind::BlockSubmit { dev: Dev(8 << 20), sector, bytes: 4096, flags: BioFlags::default() };
        Event { ts, tid: 7, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind }
    }

    /// The numbers of duplicates and of superseded events. `events`: (event, log, whether it is used).
    fn settled(events: &[(Event, usize, bool)]) -> (usize, usize) {
        let (mut partners, mut settled) = (Partners::default(), Settled::default());
        for (number, (event, log, is_used)) in (1..).zip(events) {
            let location = Location::new(*log, number);
            if *is_used {
                partners.add_used(event, location, *log, &mut settled);
            } else {
                partners.add_unused(event, location, *log, &mut settled);
            }
        }
        partners.settle(i64::MAX, &mut settled);
        assert!(partners.waiting.is_empty());
        (settled.duplicates.len(), settled.superseded.len())
    }

    #[test]
    fn a_duplicate_has_a_partner_in_the_authoritative_log() {
        // Three logs report sector 1, in any order.
        assert_eq!(settled(&[(queue(5, 1), 1, false), (queue(7, 1), 0, true), (queue(9, 1), 2, false)]), (2, 0));
        // Only the authoritative log reports sector 2, only another one sector 3.
        assert_eq!(settled(&[(queue(5, 2), 0, true), (queue(6, 3), 1, false)]), (0, 1));
        // One record is the partner of one event of each log.
        assert_eq!(settled(&[(queue(5, 1), 0, true), (queue(6, 1), 1, false), (queue(7, 1), 1, false)]), (1, 1));
        assert_eq!(settled(&[(queue(5, 1), 1, false), (queue(6, 1), 1, false), (queue(7, 1), 0, true)]), (1, 1));
        // It comes too late.
        assert_eq!(settled(&[(queue(5, 1), 1, false), (queue(6 + SAME_FACT_NS, 1), 0, true)]), (0, 1));
    }
}
