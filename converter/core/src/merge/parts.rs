//! Parts of an input: what lies before and after the places where its time goes back.
//!
//! A log that repeats a part of itself has such a place where the repeat begins. So has the log of bpftrace, wherever the buffer of the
//! next CPU begins; but there, no thread has events of one time in two parts.
//!
//! Time does not go back where a single line is repeated. Most such lines are noticed when events are paired, as a second end or a bio that
//! never completes. Two kinds would not be: a folio makes its bio larger, and an entry begins one more call or request. Of these, two equal
//! lines one after the other are one, because no bio takes the same bytes twice, and no thread enters a function again before it has
//! returned. That it returned shows only where returns are recorded: without them, a thread may enter twice within one µs, as in a loop
//! that syncs a clean file.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::event::probe::Probe;
use crate::event::write::WriteEvent;
use crate::event::{Dev, Event, Kind, NO_ID, Op, UNKNOWN_TASK};
use crate::location::Location;

/// The resolution of a clock that is too coarse: a call may return, and the thread make another one, within one tick of it.
const COARSE_NS: i64 = 1_000_000;

/// The resolution of most clocks of the ring buffer, perf and strace: without their returns, two equal entries may be two.
const MICROSECOND_NS: i64 = 1_000;

/// Doubtful seams that are kept of an input. Entries at further ones are used, as other calls.
const MAX_DOUBTFUL: usize = 64;

/// A place where time goes back, or where a line is there again.
#[derive(Clone, Copy, Debug)]
struct Seam {
    /// The first event after it.
    at: Location,
    /// The newest time before it.
    newest: i64,
    /// It is one only if the input has an event of this kind.
    only_with: Option<Return>,
}

/// An event by which a thread is known to have returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Return {
    Call(Op),
    /// A sync function of a file system returns: its end has this device.
    Sync(Dev),
}

/// The seams of all inputs, as far as an event before them may still be compared with one after them.
#[derive(Debug)]
pub struct Parts {
    of_inputs: Vec<OfInput>,
    /// How many seams there are.
    count: usize,
}

#[derive(Clone, Debug)]
struct OfInput {
    newest: i64,
    last: Option<Event>,
    last_line: Option<u64>,
    seams: VecDeque<Seam>,
    /// Places that are seams only if the input has a certain return. Few, because they are looked at one by one.
    doubtful: VecDeque<Seam>,
    /// Which returns it records.
    returns: HashSet<Return, FixedState>,
}

impl OfInput {
    fn new() -> Self {
        Self {
            newest: i64::MIN,
            last: None,
            last_line: None,
            seams: VecDeque::new(),
            doubtful: VecDeque::new(),
            returns: HashSet::default(),
        }
    }

    /// Whether an event is that of the line before it once more.
    fn is_again(&self, event: &Event) -> bool {
        let cannot_recur = match event.kind {
            Kind::BioAddFolio { .. } | Kind::Probe(Probe::AddFolio { .. }) => true,
            // Two threads of a process may enter at one time, and one thread twice within a tick of a coarse clock.
            // A second start with the id of a request is noticed when it is paired.
            Kind::CallEnter { .. } | Kind::SyncStart { id: NO_ID, .. } | Kind::Probe(Probe::SyncEnter { .. }) => {
                event.tid != UNKNOWN_TASK && event.ts % COARSE_NS != 0
            }
            _ => false,
        };
        cannot_recur
            && self.last.is_some_and(|last| {
                last.ts == event.ts && last.line != event.line && last.identity() == event.identity()
            })
    }

    /// Takes note of the returns that it records.
    fn observe_return(&mut self, kind: &Kind) {
        let return_ = match *kind {
            Kind::CallExit { op, .. } => Return::Call(op),
            Kind::SyncEnd { dev, .. } => Return::Sync(dev),
            _ => return,
        };
        self.returns.insert(return_);
    }

    fn is_seam(&self, seam: &Seam) -> bool {
        seam.only_with.is_none_or(|return_| self.returns.contains(&return_))
    }
}

/// The return that the input must record for a second, equal entry to be a repeat; `None` if it is a repeat in any case.
fn return_of(entry: &Event) -> Option<Return> {
    let is_fine = entry.ts % MICROSECOND_NS != 0;
    match entry.kind {
        Kind::CallEnter { op, .. } if !is_fine => Some(Return::Call(op)),
        // No two requests have one id.
        Kind::SyncStart { id: NO_ID, dev, .. } if !is_fine => Some(Return::Sync(dev)),
        _ => None,
    }
}

impl Parts {
    pub fn new(inputs: usize) -> Self {
        Self { of_inputs: vec![OfInput::new(); inputs], count: 0 }
    }

    /// Whether no input has a seam.
    pub fn has_no_seam(&self) -> bool {
        self.count == 0
    }

    /// Takes the next event of an input, in the order of the input. `line`: its line there. A format without lines has no seams: nobody
    /// pastes it.
    pub fn observe(&mut self, event: &Event, location: Location, line: u64, input: usize) {
        // A torn or lost event may have the time of another event, or a wrong one.
        let has_own_time = !matches!(event.kind, Kind::Torn { .. } | Kind::Probe(Probe::Write(WriteEvent::Lost)));
        let has_place = event.line > 0 && has_own_time;
        let Some(of) = self.of_inputs.get_mut(input).filter(|_| has_place) else { return };
        // A repeat begins with a line. bpftrace may print the events of two CPUs on one line of JSON.
        let begins_line = of.last_line.replace(line) != Some(line);
        let goes_back = begins_line && event.ts < of.newest;
        if goes_back || of.is_again(event) {
            let only_with = return_of(event).filter(|return_| !goes_back && !of.returns.contains(return_));
            let seam = Seam { at: location, newest: of.newest, only_with };
            if only_with.is_none() {
                of.seams.push_back(seam);
                self.count += 1;
            } else if of.doubtful.len() < MAX_DOUBTFUL {
                of.doubtful.push_back(seam);
                self.count += 1;
            }
        }
        of.observe_return(&event.kind);
        // What follows is compared with what comes after the seam, or else each event of a repeat would be a part of its own.
        of.newest = event.ts;
        of.last = Some(*event);
    }

    /// The number of the part of an input that a location is in, after the parts that are forgotten.
    pub fn of(&self, location: Location, input: usize) -> usize {
        self.of_inputs.get(input).map_or(0, |of| {
            let doubtful = of.doubtful.iter().take_while(|seam| seam.at <= location);
            of.seams.partition_point(|seam| seam.at <= location) + doubtful.filter(|seam| of.is_seam(seam)).count()
        })
    }

    /// Forgets the seams that lie before all events of this time and of later ones.
    pub fn forget_before(&mut self, ts: i64) {
        if self.count == 0 {
            return;
        }
        for of in &mut self.of_inputs {
            for seams in [&mut of.seams, &mut of.doubtful] {
                while seams.front().is_some_and(|seam| seam.newest < ts) {
                    seams.pop_front();
                    self.count -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Dev, Op};
    use crate::names::NameId;

    /// The parts of the events of an input, each with its time and its line.
    fn parts_of(events: &[(i64, Kind)]) -> Vec<usize> {
        let mut parts = Parts::new(1);
        let at = |index: usize| Location::new(0, index as u64 + 1);
        for (index, &(ts, kind)) in events.iter().enumerate() {
            let line = index as u32 + 1;
            parts.observe(
                &Event { ts, tid: 7, pid: UNKNOWN_TASK, comm: NameId::NONE, line, kind },
                at(index),
                u64::from(line),
                0,
            );
        }
        (0..events.len()).map(|index| parts.of(at(index), 0)).collect()
    }

    #[test]
    fn a_part_ends_where_time_goes_back() {
        let parts_at =
            |times: &[i64]| parts_of(&times.iter().map(|&ts| (ts, Kind::enter(Op::Fsync))).collect::<Vec<_>>());
        assert_eq!(parts_at(&[1, 2, 3, 2, 3, 4]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(parts_at(&[6, 8, 9]), [0; 3]);
    }

    #[test]
    fn a_part_ends_before_a_line_that_is_repeated() {
        let folio = Kind::BioAddFolio { id: 1, bio: 2, offset: 0, len: 4096, dev: Dev::UNKNOWN, ino: 12 };
        assert_eq!(parts_of(&[(1, folio), (2, folio), (2, folio), (3, folio)]), [0, 0, 1, 1]);
        let call = Kind::enter(Op::Fsync);
        assert_eq!(parts_of(&[(2, call), (2, call)]), [0, 1]);
        assert_eq!(parts_of(&[(2_000_000, call), (2_000_000, call)]), [0, 0]);
        let end = Kind::WbEnd { id: 1 };
        assert_eq!(parts_of(&[(2, end), (2, end)]), [0, 0]);
    }

    #[test]
    fn equal_entries_within_a_microsecond_are_one_only_if_returns_are_recorded() {
        let call = Kind::enter(Op::Fsync);
        let exit = |op| Kind::CallExit { op, ret: Some(0), stack: NameId::NONE, untimed: false, entry_lost: false };
        assert_eq!(parts_of(&[(2_000, call), (2_000, call)]), [0, 0]);
        assert_eq!(parts_of(&[(2_000, call), (2_000, call), (3_000, exit(Op::Fdatasync))]), [0; 3]);
        assert_eq!(parts_of(&[(2_000, call), (2_000, call), (3_000, exit(Op::Fsync))]), [0, 1, 1]);
    }

    #[test]
    fn parts_are_forgotten_once_all_of_the_first_one_is_passed() {
        let mut parts = Parts::new(1);
        let event = |ts| Event { ts, tid: 7, pid: 7, comm: NameId::NONE, line: 1, kind: Kind::enter(Op::Fsync) };
        parts.observe(&event(10), Location::new(0, 1), 1, 0);
        parts.observe(&event(5), Location::new(0, 2), 2, 0);
        parts.forget_before(10);
        assert!(!parts.has_no_seam());
        parts.forget_before(11);
        assert!(parts.has_no_seam());
    }
}
