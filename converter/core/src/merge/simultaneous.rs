//! Events of equal times from several inputs.
//!
//! Inputs may hold the same event: pieces of a log that overlap, an excerpt of it, or two texts of one ring buffer. Such an event is used
//! once. Times may also be cut to µs, so that events of different inputs have equal times. Their order then follows from what they are: a
//! bio enters the block layer after the file system has submitted it.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::event::probe::Probe;
use crate::event::write::WriteEvent;
use crate::event::{Event, Kind, ThreadEvent, UNKNOWN_TASK};
use crate::location::Location;
use crate::names::NameId;

/// Whether an event is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Once,
    /// The input with this index holds the same event.
    Repeat(usize),
}

/// An event, where it is, and the index of its input.
type Waiting = (Event, Location, usize);

/// Collects the events of one time.
#[derive(Debug)]
pub struct Simultaneous {
    has_several_inputs: bool,
    group: Vec<Waiting>,
    /// For each input, whether it has had an event of an earlier time.
    has_begun: Vec<bool>,
}

impl Simultaneous {
    pub fn new(inputs: usize) -> Self {
        Self { has_several_inputs: inputs > 1, group: Vec::new(), has_begun: vec![false; inputs] }
    }

    /// Takes the next event in the order of time. `input` is the index of its input. Passes on the events of the time before it.
    pub fn event<E>(
        &mut self,
        event: Event,
        location: Location,
        input: usize,
        mut take: impl FnMut(Event, Location, Use) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.has_several_inputs {
            return take(event, location, Use::Once);
        }
        if self.group.first().is_some_and(|(first, ..)| first.ts != event.ts) {
            self.finish(take)?;
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
        if group.windows(2).any(|pair| pair[0].2 != pair[1].2) {
            // An input that begins now may be the next piece of one that ends now.
            let has_begun = |input: usize| self.has_begun.get(input).copied().unwrap_or_default();
            group.sort_by_key(|&(.., input)| (!has_begun(input), input));
            remove_repeats(&mut group, |event, location, first| take(event, location, Use::Repeat(first)))?;
            let begun = group.iter().take_while(|&&(.., input)| has_begun(input)).count();
            let beginning = group.split_off(begun);
            group = sort_by_cause(group);
            group.extend(sort_by_cause(beginning));
        }
        for &(.., input) in &group {
            if let Some(has_begun) = self.has_begun.get_mut(input) {
                *has_begun = true;
            }
        }
        for (event, location, _) in group.drain(..) {
            take(event, location, Use::Once)?;
        }
        self.group = group;
        Ok(())
    }
}

/// Removes events that an earlier input holds as often as this one. The inputs are in order.
fn remove_repeats<E>(
    group: &mut Vec<Waiting>,
    mut on_repeat: impl FnMut(Event, Location, usize) -> Result<(), E>,
) -> Result<(), E> {
    /// How often an event occurs.
    struct Count {
        used: u32,
        /// The input that holds it first.
        first: usize,
        /// The input that holds it last until now, and how often.
        input: usize,
        in_input: u32,
    }
    let mut counts: HashMap<Event, Count, FixedState> = HashMap::default();
    let mut failed = Ok(());
    group.retain(|&(event, location, input)| {
        let count =
            counts.entry(identity(event)).or_insert_with(|| Count { used: 0, first: input, input, in_input: 0 });
        if count.input != input {
            (count.input, count.in_input) = (input, 0);
        }
        count.in_input += 1;
        let is_repeat = count.in_input <= count.used;
        if !is_repeat {
            count.used += 1;
        } else if failed.is_ok() {
            failed = on_repeat(event, location, count.first);
        }
        !is_repeat
    });
    failed
}

/// What identifies an event. Its names, its process and its stack may be known to one input only.
fn identity(mut event: Event) -> Event {
    event.names_mut(&mut |name| *name = NameId::NONE);
    event.line = 0;
    if event.tid != UNKNOWN_TASK {
        event.pid = UNKNOWN_TASK;
    }
    if let Kind::CallEnter { call_only, .. } = &mut event.kind {
        *call_only = false;
    }
    event
}

/// Puts events of equal times into the order of their causes. Those of one input keep their order.
fn sort_by_cause(group: Vec<Waiting>) -> Vec<Waiting> {
    let mut inputs: Vec<VecDeque<Waiting>> = Vec::new();
    let count = group.len();
    for waiting in group {
        match inputs.last_mut().filter(|queue| queue.back().is_some_and(|last| last.2 == waiting.2)) {
            Some(queue) => queue.push_back(waiting),
            None => inputs.push(VecDeque::from([waiting])),
        }
    }
    let rank_of = |queue: &VecDeque<Waiting>| queue.front().map_or(u8::MAX, |(event, ..)| rank(&event.kind));
    let mut sorted = Vec::with_capacity(count);
    while let Some(next) = inputs.iter_mut().filter(|queue| !queue.is_empty()).min_by_key(|queue| rank_of(queue)) {
        sorted.extend(next.pop_front());
    }
    sorted
}

/// The lower rank comes first. The kernel frees a bio at its completion and may use its address at once.
fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::BioComplete { .. }
        | Kind::BlockComplete { .. }
        | Kind::BlockDone { .. }
        | Kind::Probe(Probe::End { .. }) => 0,
        Kind::CallEnter { .. } | Kind::Probe(Probe::Write(WriteEvent::Lost)) => 1,
        Kind::SyncStart { .. }
        | Kind::WbStart { .. }
        | Kind::Probe(Probe::SyncEnter { .. } | Probe::WorkStart { .. } | Probe::Write(WriteEvent::Start(_))) => 2,
        Kind::WaitStart { .. }
        | Kind::CommitStart { .. }
        | Kind::CommitStep { .. }
        | Kind::Thread(ThreadEvent::LockWait)
        | Kind::Probe(
            Probe::WaitStart { .. }
            | Probe::FolioWait { .. }
            | Probe::CommitRequest { .. }
            | Probe::CommitTimer
            | Probe::FastCommitIneligible { .. }
            | Probe::FastCommitStart { .. }
            | Probe::WriteWaitStart { .. }
            | Probe::Throttle { .. },
        ) => 3,
        Kind::BioAddFolio { .. } | Kind::Probe(Probe::AddFolio { .. }) => 4,
        Kind::BioSubmit { .. } | Kind::Probe(Probe::Submit { .. }) => 5,
        Kind::BlockSubmit { .. } => 6,
        Kind::BlockRemap { .. } | Kind::BlockInsert { .. } => 7,
        Kind::BlockIssue { .. } => 8,
        Kind::WaitEnd { .. }
        | Kind::CommitEnd { .. }
        | Kind::Thread(_)
        | Kind::Probe(
            Probe::WaitEnd { .. } | Probe::FolioWaitEnd | Probe::FastCommitStop { .. } | Probe::WriteWaitEnd { .. },
        ) => 9,
        Kind::SyncEnd { .. }
        | Kind::WbEnd { .. }
        | Kind::Probe(Probe::SyncExit { .. } | Probe::WorkEnd | Probe::Write(WriteEvent::End(_))) => 10,
        Kind::CallExit { .. } => 11,
        Kind::Mark { .. } | Kind::Other | Kind::Probe(Probe::Write(WriteEvent::Limits { .. })) => 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
