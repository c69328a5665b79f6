//! Which logs are pieces of one log: what a recorder wrote before and after it was started again, or a text that was cut with some overlap.
//!
//! No piece is authoritative over another one. An event that several hold is used once, and one that a single piece holds is always used.
//! Two recorders of one run read the clock on their own, so their logs differ by some µs or less. So two logs are compared where they
//! overlap, from the beginning of the later one: pieces hold equal events, other logs hold events that differ in their times only. A log that
//! begins after the end of another one of its format continues it.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::authority::MAX_SKEW_NS;
use crate::event::{Event, Kind, NO_ID};

/// Equal events after which two logs are not compared any more.
const ENOUGH_EQUAL: usize = 64;
/// Logs of different formats are pieces of one log only with so many equal events: few may be equal by chance.
const EQUAL_OF_FORMATS: usize = 4;
/// One event in this number may have a neighbour that looks like it at another time: a thread repeats itself.
const NEAR_OF_EQUAL: usize = 20;
/// How long to wait for events to compare.
const PATIENCE_NS: i64 = 100_000_000;

/// An event as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Compared {
    ts: i64,
    /// Identifies the event, whatever its time.
    key: u64,
    /// It names a request by an id, so no other event has its key.
    is_unique: bool,
}

impl Compared {
    fn of(event: &Event) -> Self {
        let key = FixedState::default().hash_one(Event { ts: 0, ..event.identity() });
        let is_unique = matches!(event.kind, Kind::SyncStart { id, .. } | Kind::SyncEnd { id, .. } if id != NO_ID);
        Self { ts: event.ts, key, is_unique }
    }
}

/// The time of the events of a file, as far as it has been read.
#[derive(Clone, Copy, Debug)]
struct Span {
    file: usize,
    oldest: i64,
    newest: i64,
}

#[derive(Debug)]
struct Log {
    format: &'static str,
    /// The oldest event of its first batch.
    begin: Option<i64>,
    newest: i64,
    /// Its files need not follow each other without a gap.
    spans: Vec<Span>,
    open_files: usize,
    /// The log that it is a piece of; itself if it is whole.
    piece_of: usize,
}

impl Log {
    /// Whether one of its files has begun before a time and ends after it, so that it holds all events of that time. Where a piece begins or
    /// ends, between two events of one time, it need not.
    fn covers(&self, ts: i64) -> bool {
        self.spans.iter().any(|span| span.oldest < ts && ts < span.newest)
    }
}

#[derive(Clone, Copy, Debug)]
struct Review {
    at: i64,
    log: usize,
    /// It has begun already, and is compared once more.
    is_again: bool,
}

/// The result of comparing two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Comparison {
    equal: usize,
    /// Events of the one log without an equal one in the other, which covers their time and has one at about the same time.
    near: usize,
    /// Up to when the logs were compared.
    until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// They are pieces of one log, with so many equal events.
    Pieces(usize),
    /// The one ended before the other began, at this time.
    Continues(i64),
    /// They have no event in common until now.
    Unknown,
    /// Two recorders have written them.
    Different,
}

/// A log becomes a piece of another one, or turns out to be a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Join {
        log: usize,
        to: usize,
    },
    /// With its files that are not read to their ends.
    Leave {
        log: usize,
        from: usize,
        open_files: usize,
    },
}

#[derive(Debug)]
pub(super) struct Pieces {
    logs: Vec<Log>,
    reviews: Vec<Review>,
}

impl Pieces {
    /// `log_of_file`, `formats`: for each input file the number of its log, from 0, and the name of its format.
    pub(super) fn new(log_of_file: &[usize], formats: &[&'static str]) -> Self {
        let count = log_of_file.iter().max().map_or(0, |last| last + 1);
        let logs = (0..count).map(|log| Log {
            format: log_of_file.iter().position(|&of| of == log).and_then(|at| formats.get(at)).copied().unwrap_or(""),
            begin: None,
            newest: i64::MIN,
            spans: Vec::new(),
            open_files: log_of_file.iter().filter(|&&of| of == log).count(),
            piece_of: log,
        });
        Self { logs: logs.collect(), reviews: Vec::new() }
    }

    /// The log that a log is a piece of.
    pub(super) fn log_of(&self, log: usize) -> usize {
        self.logs.get(log).map_or(log, |of| of.piece_of)
    }

    /// Registers the events of a batch of a file.
    pub(super) fn observe(&mut self, log: usize, file: usize, events: &[Event]) {
        let times = || events.iter().map(|event| event.ts);
        let Some((oldest, newest)) = times().min().zip(times().max()) else { return };
        let of = &mut self.logs[log];
        of.newest = of.newest.max(newest);
        match of.spans.iter_mut().rfind(|span| span.file == file) {
            Some(span) => (span.oldest, span.newest) = (span.oldest.min(oldest), span.newest.max(newest)),
            None => of.spans.push(Span { file, oldest, newest }),
        }
        if of.begin.is_none() {
            of.begin = Some(oldest);
            // Another log may report the same a little earlier.
            self.reviews.push(Review { at: oldest.saturating_sub(MAX_SKEW_NS), log, is_again: false });
        }
    }

    pub(super) fn end_file(&mut self, log: usize) {
        if let Some(log) = self.logs.get_mut(log) {
            log.open_files -= 1;
        }
    }

    /// The time before which no log must be looked at again. Events of that time must not be used before `review` has been called.
    pub(super) fn next_review(&self) -> Option<i64> {
        self.reviews.iter().map(|review| review.at).min()
    }

    /// Compares the logs that begin at this time, and those that nothing is known of yet, with the others. `waiting` are the events that are
    /// not used yet, each with its log.
    pub(super) fn review<'a>(&mut self, at: i64, waiting: impl Iterator<Item = (&'a Event, usize)>) -> Vec<Change> {
        let (due, later): (Vec<_>, Vec<_>) = self.reviews.drain(..).partition(|review| review.at <= at);
        self.reviews = later;
        let mut events: HashMap<usize, Vec<Compared>, FixedState> = HashMap::default();
        if due.iter().any(|review| self.has_others(review.log)) {
            for (event, log) in waiting {
                events.entry(log).or_default().push(Compared::of(event));
            }
            events.values_mut().for_each(|events| events.sort_unstable());
        }
        let mut changes = Vec::new();
        for review in due {
            let change =
                if review.is_again { self.compare_again(review, &events) } else { self.place(review, &events) };
            if let Some(change) = change {
                let (log, to) = match change {
                    Change::Join { log, to } => (log, to),
                    Change::Leave { log, .. } => (log, log),
                };
                self.logs[log].piece_of = to;
                changes.push(change);
            }
        }
        changes
    }

    /// Whether another log has begun.
    fn has_others(&self, log: usize) -> bool {
        self.logs.iter().enumerate().any(|(other, of)| other != log && of.begin.is_some())
    }

    /// The logs that are pieces of one log.
    fn members(&self, of: usize) -> impl Iterator<Item = usize> {
        self.logs.iter().enumerate().filter(move |(_, log)| log.piece_of == of && log.begin.is_some()).map(|(at, _)| at)
    }

    /// Finds the log that a log which begins is a piece of.
    fn place(
        &mut self,
        Review { at, log, .. }: Review,
        events: &HashMap<usize, Vec<Compared>, FixedState>,
    ) -> Option<Change> {
        let own = self.logs[log].begin;
        let has_begun = |other: usize| self.logs[other].begin.is_some() && (self.logs[other].begin, other) < (own, log);
        let begin = own.unwrap_or(at);
        let others: Vec<usize> = (0..self.logs.len())
            .filter(|&other| self.logs[other].piece_of == other && has_begun(other) && other != log)
            .collect();
        let mut best: Option<((u8, i64), usize, i64)> = None;
        for other in others {
            let members: Vec<usize> = self.members(other).filter(|&member| member != log).collect();
            let found = self.compare(log, &members, at, events);
            let rank = match self.verdict(log, &members, begin, found) {
                Verdict::Pieces(equal) => (2, equal as i64),
                Verdict::Continues(end) => (1, end),
                Verdict::Unknown => (0, 0),
                Verdict::Different => continue,
            };
            if best.is_none_or(|(before, ..)| before < rank) {
                best = Some((rank, other, found.until));
            }
        }
        let ((certainty, equal), to, until) = best?;
        if certainty == 0 || certainty == 2 && equal < ENOUGH_EQUAL as i64 {
            self.compare_later(log, at, until);
        }
        Some(Change::Join { log, to })
    }

    /// Compares a log with the others that it was taken for a piece of.
    fn compare_again(
        &mut self,
        Review { at, log, .. }: Review,
        events: &HashMap<usize, Vec<Compared>, FixedState>,
    ) -> Option<Change> {
        let members: Vec<usize> = self.members(self.logs[log].piece_of).filter(|&member| member != log).collect();
        let found = self.compare(log, &members, at, events);
        match self.verdict(log, &members, at, found) {
            Verdict::Different => {
                let Log { piece_of: from, open_files, .. } = self.logs[log];
                Some(Change::Leave { log, from, open_files })
            }
            Verdict::Pieces(equal) if equal >= ENOUGH_EQUAL => None,
            Verdict::Continues(_) => None,
            Verdict::Pieces(_) | Verdict::Unknown => {
                self.compare_later(log, at, found.until);
                None
            }
        }
    }

    fn compare_later(&mut self, log: usize, at: i64, until: i64) {
        let of = &self.logs[log];
        if of.open_files > 0 || of.newest > until {
            let at = if until >= at { until.saturating_add(1) } else { at.saturating_add(PATIENCE_NS) };
            self.reviews.push(Review { at, log, is_again: true });
        }
    }

    fn verdict(&self, log: usize, others: &[usize], at: i64, found: Comparison) -> Verdict {
        let is_of_format = others.iter().all(|&other| self.logs[other].format == self.logs[log].format);
        let end = others.iter().map(|&other| self.logs[other].newest).max().unwrap_or(i64::MIN);
        let have_ended = others.iter().all(|&other| self.logs[other].open_files == 0);
        let is_different = found.near * NEAR_OF_EQUAL > found.equal;
        match found.equal {
            _ if is_different => Verdict::Different,
            equal if equal >= EQUAL_OF_FORMATS => Verdict::Pieces(equal),
            _ if !is_of_format => Verdict::Different,
            0 if have_ended && end <= at => Verdict::Continues(end),
            0 => Verdict::Unknown,
            equal => Verdict::Pieces(equal),
        }
    }

    /// Compares the events of a log from a time on with those of other logs, as far as all of these are known and overlap.
    fn compare(
        &self,
        log: usize,
        others: &[usize],
        at: i64,
        events: &HashMap<usize, Vec<Compared>, FixedState>,
    ) -> Comparison {
        let newest = |log: usize| self.logs[log].newest;
        // An open file may hold older events than it has given until now. Those of a log that has ended are all known.
        let of_others =
            others.iter().filter(|&&other| self.logs[other].open_files > 0).map(|&other| newest(other)).min();
        let last_of_others = of_others.or(others.iter().map(|&other| newest(other)).max()).unwrap_or(i64::MIN);
        let until = newest(log).min(last_of_others);
        let since = |log: usize| {
            let events = events.get(&log).map_or(&[] as &[Compared], Vec::as_slice);
            let last = until.saturating_add(MAX_SKEW_NS);
            &events[events.partition_point(|event| event.ts < at)..events.partition_point(|event| event.ts <= last)]
        };
        let mut theirs: Vec<Compared> = others.iter().flat_map(|&other| since(other)).copied().collect();
        theirs.sort_unstable();
        let name_requests = theirs.iter().any(|event| event.is_unique);
        let (mut equal, mut own_rest) = (0, Vec::new());
        let mut rest: HashMap<u64, Vec<i64>, FixedState> = HashMap::default();
        let mut theirs = theirs.into_iter().peekable();
        for &own in since(log) {
            while let Some(other) = theirs.next_if(|&other| other < own) {
                rest.entry(other.key).or_default().push(other.ts);
            }
            if theirs.next_if_eq(&own).is_some() {
                equal += 1;
            } else {
                own_rest.push(own);
            }
        }
        theirs.for_each(|other| rest.entry(other.key).or_default().push(other.ts));
        let others_cover = |ts: i64| others.iter().any(|&other| self.logs[other].covers(ts));
        let is_near = |own: &&Compared| {
            let times = rest.get(&own.key).map_or(&[] as &[i64], Vec::as_slice);
            let skew_ns = if equal == 0 && own.is_unique { i64::MAX } else { MAX_SKEW_NS };
            let near = &times[times.partition_point(|&other| other < own.ts.saturating_sub(skew_ns))..];
            let mut near = near.iter().take_while(|&&other| other <= own.ts.saturating_add(skew_ns));
            near.any(|&other| others_cover(own.ts) || self.logs[log].covers(other))
        };
        // Where both name their requests, other requests of one time say that the logs complete each other: that of bpftrace is not in the
        // order of time. A thread may make the same call twice within the skew.
        let completes = |own: &Compared| name_requests && own.is_unique && others_cover(own.ts);
        let of_requests = own_rest.iter().any(completes);
        let near = own_rest.iter().filter(|own| own.is_unique || !of_requests).filter(is_near).count();
        Comparison { equal, near, until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Op, UNKNOWN_TASK};
    use crate::names::NameId;

    fn event(ts: i64, tid: u32) -> Event {
        Event { ts, tid, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind: Kind::enter(Op::Fsync) }
    }

    /// Places logs of these formats, each read to its end before another one begins to be used. Returns what each is a piece of.
    fn placed(logs: &[(&'static str, &[Event])]) -> Vec<usize> {
        let numbers: Vec<usize> = (0..logs.len()).collect();
        let mut pieces = Pieces::new(&numbers, &logs.iter().map(|(format, _)| *format).collect::<Vec<_>>());
        for (log, (_, events)) in logs.iter().enumerate() {
            pieces.observe(log, log, events);
            pieces.end_file(log);
        }
        while let Some(at) = pieces.next_review() {
            let waiting = logs.iter().enumerate().flat_map(|(log, (_, events))| events.iter().map(move |e| (e, log)));
            pieces.review(at, waiting.filter(|(event, _)| event.ts >= at));
        }
        numbers.into_iter().map(|log| pieces.log_of(log)).collect()
    }

    #[test]
    fn logs_with_equal_events_where_they_overlap_are_pieces() {
        let first = [event(100, 7), event(200, 7), event(300, 7)];
        let second = [event(200, 7), event(300, 7), event(400, 7)];
        let third = [event(400, 7), event(500, 7)];
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &second), ("ftrace", &third)]), [0, 0, 0]);
        // The order in which they are named does not matter: the first one in time is the log.
        assert_eq!(placed(&[("ftrace", &third), ("ftrace", &first), ("ftrace", &second)]), [1, 1, 1]);
    }

    #[test]
    fn a_log_that_begins_after_the_end_of_another_one_of_its_format_continues_it() {
        let (first, second) = ([event(100, 7)], [event(900_000_000_000, 7)]);
        assert_eq!(placed(&[("bpftrace", &first), ("bpftrace", &second)]), [0, 0]);
        assert_eq!(placed(&[("bpftrace", &first), ("ftrace", &second)]), [0, 1]);
    }

    #[test]
    fn logs_whose_events_differ_in_their_times_are_of_two_recorders() {
        let first = [event(100_000, 7), event(200_000, 7), event(300_000, 7), event(400_000, 7)];
        let second = [event(100_000, 7), event(201_000, 7), event(300_000, 7), event(401_000, 7)];
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &second)]), [0, 1]);
        // The second log begins within 0.2 ms of the end of the first one, and does not overlap it.
        let next = [event(450_000, 7), event(900_000, 7)];
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &next)]), [0, 0]);
        // The overlap is short: the first log has an event before it, the second one after it, that look alike.
        let [first, next] = [[event(100, 7), event(200, 8)], [event(200, 8), event(300, 7)]];
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &next)]), [0, 0]);
        // One call, as two recorders report it.
        assert_eq!(
            placed(&[("ftrace", &[event(100, 7), event(200, 8)]), ("ftrace", &[event(101, 7), event(201, 8)])]),
            [0, 1]
        );
    }

    #[test]
    fn logs_that_name_the_same_request_at_other_times_are_of_two_recorders() {
        let end = |ts, id| Event { kind: Kind::end(id, 0), ..event(ts, 7) };
        let first = [end(1_000_000, 1), end(2_000_000, 2), end(3_000_000, 3), end(4_000_000, 4)];
        let second = [end(2_500_000, 2), end(3_500_000, 3), end(4_500_000, 4)];
        assert_eq!(placed(&[("bpftrace", &first), ("bpftrace", &second)]), [0, 1]);
        // Times of a log need not be in order, so pieces may overlap without an equal event.
        let second = [end(2_500_000, 5), end(3_500_000, 6), end(4_500_000, 7)];
        assert_eq!(placed(&[("bpftrace", &first), ("bpftrace", &second)]), [0, 0]);
        let calls = |first: i64, ids: [u64; 2]| {
            let [one, other] = ids;
            [event(first, 7), end(first + 50_000, one), event(first + 100_000, 7), end(first + 150_000, other)]
        };
        let overlapping = [&calls(0, [1, 2])[..], &calls(400_000, [5, 6])].concat();
        let next = [&calls(400_000, [5, 6])[2..], &calls(160_000, [3, 4])].concat();
        assert_eq!(placed(&[("bpftrace", &overlapping), ("bpftrace", &next)]), [0, 0]);
    }

    #[test]
    fn logs_of_different_formats_need_more_equal_events() {
        let events: Vec<Event> = (0..4).map(|n| event(n * 1000, 7)).collect();
        assert_eq!(placed(&[("blktrace", &events), ("blkparse", &events)]), [0, 0]);
        assert_eq!(placed(&[("blktrace", &events[..3]), ("blkparse", &events[..3])]), [0, 1]);
    }

    #[test]
    fn logs_of_different_threads_are_kept_apart_when_they_turn_out_to_differ() {
        let first = [event(100, 7), event(1000, 8), event(2_000_000, 9), event(3_000_000, 9)];
        let second = [event(200, 6), event(1100, 5), event(2_000_700, 9), event(3_000_700, 9)];
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &second)]), [0, 1]);
        assert_eq!(placed(&[("ftrace", &first), ("ftrace", &second[..2])]), [0, 0]);
    }
}
