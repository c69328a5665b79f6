//! Events of equal times from several inputs, or from several parts of one.
//!
//! Inputs of one log may hold the same event: pieces that overlap, an excerpt, or two texts of one ring buffer. Such an event is used once.
//! Two recorders may also report an event with equal times, when these are cut to µs. `dedup` compares such logs.
//!
//! One text may hold a part of itself again: somebody pasted it with an overlap, or appended a recording to itself. Time goes back where the
//! repeat begins, so `parts` counts what lies before and after such a place as two inputs.
//!
//! Events of different inputs may have equal times without being the same. Their order then follows from what they are: a bio enters the
//! block layer after the file system has submitted it.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::event::probe::Probe;
use crate::event::write::WriteEvent;
use crate::event::{Event, Kind, ThreadEvent};
use crate::location::Location;
use crate::merge::parts::Parts;
use crate::names::NameId;

/// Whether an event is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Once,
    /// Another input of its log, or an earlier part of its own, holds the same event, here, and that one is used.
    Repeat(Location),
}

/// An event, where it is, and the index of its input.
type Waiting = (Event, Location, usize);

/// Collects the events of one time.
#[derive(Debug)]
pub struct Simultaneous {
    has_several_inputs: bool,
    parts: Parts,
    group: Vec<Waiting>,
    /// For each input, whether it has had an event of an earlier time.
    has_begun: Vec<bool>,
    /// For each input, the log that it is a piece of.
    log_of: Vec<usize>,
}

impl Simultaneous {
    pub fn new(inputs: usize) -> Self {
        Self {
            has_several_inputs: inputs > 1,
            parts: Parts::new(inputs),
            group: Vec::new(),
            has_begun: vec![false; inputs],
            log_of: vec![0; inputs],
        }
    }

    /// Says for each input which log it is a piece of. Without this, all are pieces of one.
    pub fn set_logs(&mut self, log_of: Vec<usize>) {
        self.log_of = log_of;
    }

    /// Takes note of an event of an input, in the order of the input, before it is put into the order of time.
    pub fn observe(&mut self, event: &Event, location: Location, line: u64, input: usize) {
        self.parts.observe(event, location, line, input);
    }

    /// Takes the next event in the order of time. `input` is the index of its input. Passes on the events of the time before it.
    pub fn event<E>(
        &mut self,
        event: Event,
        location: Location,
        input: usize,
        mut take: impl FnMut(Event, Location, Use) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.group.first().is_some_and(|(first, ..)| first.ts != event.ts) {
            self.finish(&mut take)?;
            self.parts.forget_before(event.ts);
        }
        if !self.has_several_inputs && self.parts.has_no_seam() {
            return take(event, location, Use::Once);
        }
        self.group.push((event, location, input));
        Ok(())
    }

    /// Visits every name of the events that wait.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.group.iter().for_each(|(event, ..)| event.visit_names(f));
    }

    /// Passes on the events that wait.
    pub fn finish<E>(&mut self, mut take: impl FnMut(Event, Location, Use) -> Result<(), E>) -> Result<(), E> {
        let mut group = std::mem::take(&mut self.group);
        let parts = &self.parts;
        let part_of = |&(_, location, input): &Waiting| (input, parts.of(location, input));
        if group.windows(2).any(|pair| part_of(&pair[0]) != part_of(&pair[1])) {
            // An input that begins now may be the next piece of one that ends now.
            let has_begun = |input: usize| self.has_begun.get(input).copied().unwrap_or_default();
            group.sort_by_key(|&(.., input)| (!has_begun(input), input));
            let queues = queues_of(&group, &self.log_of, parts, |event, location, partner| {
                take(event, location, Use::Repeat(partner))
            })?;
            let (begun, beginning): (Vec<_>, Vec<_>) =
                queues.into_iter().partition(|queue| queue.iter().any(|&(.., input)| has_begun(input)));
            for &(.., input) in &group {
                if let Some(has_begun) = self.has_begun.get_mut(input) {
                    *has_begun = true;
                }
            }
            group.clear();
            sort_by_cause(begun, &mut group);
            sort_by_cause(beginning, &mut group);
        } else if let Some(&(.., input)) = group.first()
            && let Some(has_begun) = self.has_begun.get_mut(input)
        {
            *has_begun = true;
        }
        for (event, location, _) in group.drain(..) {
            take(event, location, Use::Once)?;
        }
        self.group = group;
        Ok(())
    }
}

/// How many parts of one text may repeat events of one time, and have their other events inserted between these. Each takes the time of all
/// events before it; those of further parts follow in the order of the text.
const MAX_INSERTED: usize = 64;

/// The events of inputs that have some events in common: each event once, in an order that agrees with every one of the inputs.
type Queue = VecDeque<Waiting>;

/// Puts the events of one time into queues. `group` is sorted by input. An input that repeats an event of an input before it, of the same log,
/// shares the queue of that one; any other has a queue of its own. An event that several inputs of a log hold is queued as often as the
/// input holds it that holds it most often, because one input may hold several equal ones. The parts of an input are like inputs, but always
/// share a queue.
fn queues_of<E>(
    group: &[Waiting],
    log_of: &[usize],
    parts: &Parts,
    mut on_repeat: impl FnMut(Event, Location, Location) -> Result<(), E>,
) -> Result<Vec<Queue>, E> {
    /// The events of a log that are equal: those that are used, by their places in the group.
    #[derive(Default)]
    struct Equal {
        used: Vec<usize>,
        part: (usize, usize),
        /// How many of them the current part of an input has had.
        in_part: usize,
    }
    let mut known: HashMap<(usize, Event, usize), Equal, FixedState> = HashMap::default();
    // Places in the group. Each is in one queue.
    let mut queues: Vec<Vec<usize>> = Vec::new();
    let mut queue_of: Vec<usize> = vec![usize::MAX; group.len()];
    let (mut first, mut inserted) = (0, 0);
    let part_of = |&(_, location, input): &Waiting| (input, parts.of(location, input));
    let mut queue_of_input: Option<(usize, usize)> = None;
    for input in group.chunk_by(|a, b| part_of(a) == part_of(b)) {
        let part = part_of(&input[0]);
        let log = log_of.get(input[0].2).copied().unwrap_or_default();
        // The input as places of events that are used.
        let mut own = Vec::with_capacity(input.len());
        let of_input = queue_of_input.filter(|&(of, _)| of == part.0).map(|(_, queue)| queue);
        let mut joined = of_input;
        let mut has_repeats = false;
        for (at, &(event, location, _)) in (first..).zip(input) {
            // It is not known what a torn line of another part held.
            let torn_in = if matches!(event.kind, Kind::Torn { .. }) { part.1 } else { 0 };
            let equal = known.entry((log, event.identity(), torn_in)).or_default();
            if equal.used.is_empty() || equal.part != part {
                (equal.part, equal.in_part) = (part, 0);
            }
            let place = equal.used.get(equal.in_part).copied();
            equal.in_part += 1;
            has_repeats |= place.is_some();
            if let Some(place) = place {
                joined = joined.or(Some(queue_of[place]));
                on_repeat(event, location, group[place].1)?;
                own.push(place);
            } else {
                equal.used.push(at);
                own.push(at);
            }
        }
        first += input.len();
        let queue = joined.unwrap_or(queues.len());
        if queue == queues.len() {
            queues.push(Vec::new());
        }
        if of_input.is_some() && (!has_repeats || inserted == MAX_INSERTED) {
            // The next part of a text comes after the one before it.
            for place in own {
                if queue_of[place] == usize::MAX {
                    queue_of[place] = queue;
                    queues[queue].push(place);
                }
            }
        } else {
            inserted += usize::from(of_input.is_some());
            insert(&mut queues[queue], &own, &mut queue_of, queue);
        }
        queue_of_input = Some((part.0, queue));
    }
    Ok(queues.into_iter().map(|queue| queue.into_iter().map(|place| group[place]).collect()).collect())
}

/// Inserts the events of an input that a queue does not hold, each after the one that precedes it in the input.
fn insert(queue: &mut Vec<usize>, own: &[usize], queue_of: &mut [usize], number: usize) {
    let at_of: HashMap<usize, usize, FixedState> = queue.iter().enumerate().map(|(at, &place)| (place, at)).collect();
    // How much of the queue precedes the next event.
    let mut passed = 0;
    let mut merged = Vec::with_capacity(queue.len() + own.len());
    for &place in own {
        if let Some(&at) = at_of.get(&place) {
            if at >= passed {
                merged.extend(&queue[passed..=at]);
                passed = at + 1;
            }
        } else if queue_of[place] == usize::MAX {
            queue_of[place] = number;
            merged.push(place);
        }
    }
    merged.extend(&queue[passed..]);
    *queue = merged;
}

/// Appends events of equal times in the order of their causes. Those of one queue keep their order.
fn sort_by_cause(mut queues: Vec<Queue>, sorted: &mut Vec<Waiting>) {
    let rank_of = |queue: &Queue| queue.front().map_or(u8::MAX, |(event, ..)| rank(&event.kind));
    while let Some(next) = queues.iter_mut().filter(|queue| !queue.is_empty()).min_by_key(|queue| rank_of(queue)) {
        sorted.extend(next.pop_front());
    }
}

/// The place of an event among those of equal times: causes come before effects. Completions come first, because the kernel frees a bio at its
/// completion, and the next bio may have its address.
fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::BioComplete { .. }
        | Kind::BlockComplete { .. }
        | Kind::BlockDone { .. }
        | Kind::BlockReport { .. }
        | Kind::Probe(Probe::End { .. }) => 0,
        Kind::CallEnter { .. }
        | Kind::FileCall(_)
        | Kind::Probe(Probe::FileCall(_) | Probe::Write(WriteEvent::Lost)) => 1,
        Kind::SyncStart { .. }
        | Kind::WbStart { .. }
        | Kind::Probe(Probe::SyncEnter { .. } | Probe::WorkStart { .. } | Probe::Write(WriteEvent::Start(_))) => 2,
        Kind::WaitStart { .. }
        | Kind::CommitStart { .. }
        | Kind::CommitStep { .. }
        | Kind::HandleEnd { .. }
        | Kind::Thread(ThreadEvent::LockWait)
        | Kind::Probe(
            Probe::WaitStart { .. }
            | Probe::FolioWait { .. }
            | Probe::CommitRequest { .. }
            | Probe::CommitTimer
            | Probe::FastCommitIneligible { .. }
            | Probe::FastCommitStart { .. }
            | Probe::WriteWaitStart { .. }
            | Probe::PageLock { .. }
            | Probe::Throttle { .. },
        ) => 3,
        Kind::BioAddFolio { .. } | Kind::Probe(Probe::AddFolio { .. }) => 4,
        Kind::BioSubmit { .. } | Kind::Probe(Probe::Submit { .. }) => 5,
        Kind::BlockSubmit { .. } | Kind::Probe(Probe::Read { .. }) => 6,
        Kind::BlockRemap { .. } | Kind::BlockInsert { .. } => 7,
        Kind::BlockIssue { .. } => 8,
        Kind::WaitEnd { .. }
        | Kind::CommitEnd { .. }
        | Kind::Thread(_)
        | Kind::Probe(
            Probe::WaitEnd { .. }
            | Probe::FolioWaitEnd
            | Probe::FastCommitStop { .. }
            | Probe::WriteWaitEnd { .. }
            | Probe::PageLockEnd,
        ) => 9,
        Kind::SyncEnd { .. }
        | Kind::SyncDone { .. }
        | Kind::WbEnd { .. }
        | Kind::Probe(Probe::SyncExit { .. } | Probe::WorkEnd | Probe::Write(WriteEvent::End(_))) => 10,
        Kind::CallExit { .. } | Kind::FileReturn(_) | Kind::Probe(Probe::FileReturn(_)) => 11,
        Kind::Mark { .. } | Kind::Torn { .. } | Kind::Other | Kind::Probe(Probe::Write(WriteEvent::Limits { .. })) => {
            12
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::UNKNOWN_TASK;
    use crate::event::bio_flags::BioFlags;
    use crate::event::{Dev, Op};

    const DISK: Dev = Dev(8 << 20);

    fn event(ts: i64, comm: u32, kind: Kind) -> Event {
        Event { ts, tid: 7, pid: UNKNOWN_TASK, comm: NameId(comm), line: 3, kind }
    }

    fn submit(sector: i64) -> Kind {
        Kind::BioSubmit { id: 1, bio: 2, sector, dev: DISK, background: false, bytes: 0, flags: None }
    }

    fn queue(sector: i64) -> Kind {
        Kind::BlockSubmit { dev: DISK, sector, bytes: 4096, flags: BioFlags::default() }
    }

    /// The kinds that are used, and the number of repeats. `events`: (index of the input, event).
    fn run(inputs: usize, events: &[(usize, Event)]) -> (Vec<Kind>, usize) {
        let mut stage = Simultaneous::new(inputs);
        let (mut used, mut repeats) = (Vec::new(), 0);
        let mut take = |event: Event, _: Location, what| {
            match what {
                Use::Once => used.push(event.kind),
                Use::Repeat(_) => repeats += 1,
            }
            Ok::<_, ()>(())
        };
        for &(input, event) in events {
            stage.event(event, Location::default(), input, &mut take).unwrap();
        }
        stage.finish(take).unwrap();
        (used, repeats)
    }

    #[test]
    fn an_event_that_two_inputs_hold_is_used_once() {
        let (first, second) = (event(5, 1, submit(8)), event(5, 9, submit(8)));
        assert_eq!(run(2, &[(0, first), (1, second)]), (vec![submit(8)], 1));
        // One input may hold two equal events, and another input both, or one of them.
        assert_eq!(run(2, &[(0, first), (0, first), (1, first), (1, first)]), (vec![submit(8); 2], 2));
        assert_eq!(run(2, &[(0, first), (1, first), (1, first)]), (vec![submit(8); 2], 1));
        assert_eq!(run(3, &[(0, first), (1, first), (2, first)]), (vec![submit(8)], 2));
        // Another time, another sector: other events.
        assert_eq!(run(2, &[(0, first), (1, event(6, 1, submit(8))), (1, event(6, 1, submit(16)))]).1, 0);
        assert_eq!(run(1, &[(0, first), (0, first)]), (vec![submit(8); 2], 0));
    }

    #[test]
    fn events_of_equal_times_follow_their_causes() {
        let exit = Kind::exit(Op::Fsync, Some(0));
        let enter = Kind::enter(Op::Fsync);
        let events = [(0, event(5, 0, queue(8))), (1, event(5, 0, submit(8)))];
        assert_eq!(run(2, &events).0, [submit(8), queue(8)]);
        // Events of one input keep their order.
        let events = [(0, event(5, 0, exit)), (0, event(5, 0, enter)), (1, event(5, 0, submit(8)))];
        assert_eq!(run(2, &events).0, [submit(8), exit, enter]);
        // One that begins now is the next piece of one that ends now.
        let events = [(0, event(5, 0, enter)), (1, event(4, 0, enter)), (1, event(5, 0, exit))];
        assert_eq!(run(2, &[events[1], events[0], events[2]]).0, [enter, exit, enter]);
    }
}
