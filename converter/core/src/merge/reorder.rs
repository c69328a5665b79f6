//! The reorder window: events go out in the order of time, as far as a bounded wait allows.
//!
//! bpftrace drains one CPU's buffer after the other, so a log is a few long sorted runs laid end to end. Events wait in such
//! runs, and what leaves is the least of their heads: constant time an event for real logs, a heap for anything stranger.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::event::Event;
use crate::location::Location;

/// 5 s: three times the worst disorder seen in a real log (1.5 s, bpftrace 0.17).
pub const DEFAULT_WINDOW_NS: i64 = 5_000_000_000;
/// Events that may wait: seven times that log's, and about 14 MB.
pub const MAX_WAITING: usize = 200_000;
const MAX_RUNS: usize = 8;

struct Waiting {
    event: Event,
    /// Keeps equal times in the order of the input.
    place: Location,
    /// The same where an input has no lines.
    number: u64,
}

/// What events are ordered by.
type Key = (i64, Location, u64);
const LAST: Key = (i64::MAX, Location::MAX, u64::MAX);

impl Waiting {
    fn key(&self) -> Key {
        (self.event.ts, self.place, self.number)
    }
}

struct ByKey(Waiting);

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}
impl Eq for ByKey {}
impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.key().cmp(&other.0.key())
    }
}

pub struct Reorder {
    runs: Vec<VecDeque<Waiting>>,
    /// The run that took the last event.
    current: usize,
    strays: BinaryHeap<Reverse<ByKey>>,
    waiting: usize,
    pushed: u64,
    handed_on: i64,
}

impl Default for Reorder {
    fn default() -> Self {
        Self {
            runs: vec![VecDeque::new()],
            current: 0,
            strays: BinaryHeap::new(),
            waiting: 0,
            pushed: 0,
            handed_on: i64::MIN,
        }
    }
}

impl Reorder {
    /// Takes an event; true if it is late: something newer has already gone out.
    pub fn push(&mut self, event: Event, place: Location) -> bool {
        let late = event.ts < self.handed_on;
        let waiting = Waiting { event, place, number: self.pushed };
        self.waiting += 1;
        self.pushed += 1;
        let fits = |run: &VecDeque<Waiting>| run.back().is_none_or(|last| last.event.ts <= event.ts);
        if fits(&self.runs[self.current]) {
            self.runs[self.current].push_back(waiting);
            return late;
        }
        // The run with the latest end that still fits leaves the others room.
        let best = (0..self.runs.len())
            .filter(|&i| fits(&self.runs[i]))
            .max_by_key(|&i| self.runs[i].back().map(|last| last.event.ts));
        if let Some(run) = best {
            self.current = run;
            self.runs[run].push_back(waiting);
        } else if self.runs.len() < MAX_RUNS {
            self.current = self.runs.len();
            self.runs.push(VecDeque::from([waiting]));
        } else {
            self.strays.push(Reverse(ByKey(waiting)));
        }
        late
    }

    /// Hands on all events, in order: at the end of the input.
    pub fn release_all<E>(&mut self, take: impl FnMut(Event, Location) -> Result<(), E>) -> Result<(), E> {
        self.release(i64::MAX, 0, take)
    }

    /// Hands on, in order, what is older than `until`, and the oldest while more than `keep` wait.
    pub fn release<E>(
        &mut self,
        until: i64,
        keep: usize,
        mut take: impl FnMut(Event, Location) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            // The run with the least head goes on until another's head, or a stray, is less.
            let mut least: Option<(Key, usize)> = None;
            let mut bound = self.strays.peek().map_or(LAST, |Reverse(ByKey(w))| w.key());
            for (i, run) in self.runs.iter().enumerate() {
                let Some(head) = run.front().map(Waiting::key) else { continue };
                match least {
                    Some((key, _)) if key < head => bound = bound.min(head),
                    Some((key, _)) => {
                        bound = bound.min(key);
                        least = Some((head, i));
                    }
                    None => least = Some((head, i)),
                }
            }
            if least.is_none_or(|(key, _)| bound < key) {
                if self.strays.is_empty() || (bound.0 >= until && self.waiting <= keep) {
                    return Ok(());
                }
                let Some(Reverse(ByKey(stray))) = self.strays.pop() else { return Ok(()) };
                self.waiting -= 1;
                self.handed_on = self.handed_on.max(stray.event.ts);
                take(stray.event, stray.place)?;
                continue;
            }
            let Some((_, run)) = least else { return Ok(()) };
            while let Some(head) = self.runs[run].front() {
                if head.key() > bound {
                    break;
                }
                if head.event.ts >= until && self.waiting <= keep {
                    return Ok(());
                }
                let Waiting { event, place, .. } = *head;
                self.runs[run].pop_front();
                self.waiting -= 1;
                self.handed_on = self.handed_on.max(event.ts);
                take(event, place)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Dev, Kind, NO_SECTOR};
    use crate::names::NameId;

    fn event(ts: i64, mark: u64) -> Event {
        Event {
            ts,
            tid: 1,
            pid: 1,
            comm: NameId::NONE,
            line: 1,
            kind: Kind::BioComplete { bio: mark, sector: NO_SECTOR, dev: Dev::UNKNOWN },
        }
    }

    /// Each event is handed on when one has come that is newer by more than the window.
    fn run(window_ns: i64, times: &[i64]) -> (Vec<i64>, usize) {
        let mut order = Reorder::default();
        let (mut out, mut late, mut newest) = (Vec::new(), 0, i64::MIN);
        for (i, &ts) in times.iter().enumerate() {
            newest = newest.max(ts);
            late += usize::from(order.push(event(ts, i as u64), Location::new(0, i as u64)));
            order
                .release(newest - window_ns, MAX_WAITING, |e, _| {
                    out.push(e.ts);
                    Ok::<_, ()>(())
                })
                .unwrap();
        }
        order
            .release_all(|e, _| {
                out.push(e.ts);
                Ok::<_, ()>(())
            })
            .unwrap();
        (out, late)
    }

    #[test]
    fn what_comes_within_the_window_goes_out_in_order() {
        assert_eq!(run(10, &[5, 9, 3, 7, 14, 4, 30]), (vec![3, 4, 5, 7, 9, 14, 30], 0));
    }

    #[test]
    fn what_comes_later_is_late_but_not_lost() {
        assert_eq!(run(10, &[1, 100, 2, 200]), (vec![1, 2, 100, 200], 0));
        assert_eq!(run(10, &[1, 100, 50, 200, 60]), (vec![1, 50, 100, 60, 200], 1));
    }

    #[test]
    fn the_number_of_waiting_events_is_bounded() {
        let mut order = Reorder::default();
        for ts in 0..100 {
            order.push(event(ts, 0), Location::default());
            order.release(i64::MIN, 4, |_, _| Ok::<_, ()>(())).unwrap();
            assert!(order.waiting <= 4);
        }
    }

    proptest! {
        #[test]
        fn a_wide_window_is_a_stable_sort(times in prop::collection::vec(0i64..50, 0..400), lines: bool) {
            let mut order = Reorder::default();
            let mut out = Vec::new();
            for (i, &ts) in times.iter().enumerate() {
                let line = if lines { i as u64 } else { 0 };
                prop_assert!(!order.push(event(ts, i as u64), Location::new(0, line)));
                order.release(ts - 1000, MAX_WAITING, |_, _| Err("too early")).unwrap();
            }
            order
                .release_all(|e, _| {
                    let Kind::BioComplete { bio, .. } = e.kind else { return Err("another event") };
                    out.push((e.ts, bio));
                    Ok(())
                })
                .unwrap();
            let mut want: Vec<_> = times.iter().enumerate().map(|(i, &ts)| (ts, i as u64)).collect();
            want.sort_by_key(|&(ts, _)| ts);
            prop_assert_eq!(out, want);
        }
    }
}
