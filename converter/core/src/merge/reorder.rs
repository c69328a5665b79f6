//! Sorts events by time. An event waits for older ones for a bounded time.
//!
//! bpftrace drains the buffers of the CPUs one after the other, so a log is a sequence of long sorted runs. Events wait in a few
//! sorted runs. The oldest front of these is released next, in constant time for each event of a real log. Events that extend no sorted
//! run wait in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::event::Event;
use crate::location::Location;
use crate::names::NameId;

/// The default reorder window, 5 s: three times the worst disorder seen in a real log (1.5 s, bpftrace 0.17).
pub const DEFAULT_WINDOW_NS: i64 = 5_000_000_000;
/// Maximum number of waiting events: seven times the number in that log, about 14 MB.
pub const MAX_WAITING: usize = 200_000;
const MAX_RUNS: usize = 8;

struct Waiting {
    event: Event,
    /// Events with equal times keep the order of the input.
    location: Location,
    /// Order of arrival, for events with equal times in an input without lines.
    number: u64,
}

/// The sort key of an event.
type Key = (i64, Location, u64);
const LAST: Key = (i64::MAX, Location::MAX, u64::MAX);

impl Waiting {
    fn key(&self) -> Key {
        (self.event.ts, self.location, self.number)
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
    /// Sorted runs: the events of each are in the order of time.
    runs: Vec<VecDeque<Waiting>>,
    /// The run that the last event was added to.
    current: usize,
    /// Events that extend no sorted run.
    strays: BinaryHeap<Reverse<ByKey>>,
    waiting: usize,
    pushed: u64,
    /// Time of the newest released event.
    released: i64,
}

impl Default for Reorder {
    fn default() -> Self {
        Self {
            runs: vec![VecDeque::new()],
            current: 0,
            strays: BinaryHeap::new(),
            waiting: 0,
            pushed: 0,
            released: i64::MIN,
        }
    }
}

impl Reorder {
    /// Adds an event. Returns true if it is late: a newer event has already been released.
    pub fn push(&mut self, event: Event, location: Location) -> bool {
        let is_late = event.ts < self.released;
        let waiting = Waiting { event, location, number: self.pushed };
        self.waiting += 1;
        self.pushed += 1;
        let fits = |run: &VecDeque<Waiting>| run.back().is_none_or(|last| last.event.ts <= event.ts);
        if fits(&self.runs[self.current]) {
            self.runs[self.current].push_back(waiting);
            return is_late;
        }
        // Choose the run with the latest end, so that the others still fit older events.
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
        is_late
    }

    /// Visits every name of the waiting events.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.waiting().for_each(|(event, _)| event.visit_names(f));
    }

    /// The waiting events, in no order, with their locations.
    pub fn waiting(&self) -> impl Iterator<Item = (&Event, Location)> {
        let strays = self.strays.iter().map(|Reverse(ByKey(waiting))| waiting);
        self.runs.iter().flatten().chain(strays).map(|waiting| (&waiting.event, waiting.location))
    }

    /// Releases all events in order, at the end of the input.
    pub fn release_all<E>(&mut self, take: impl FnMut(Event, Location) -> Result<(), E>) -> Result<(), E> {
        self.release(i64::MAX, 0, take)
    }

    /// Releases, in order, the events that are older than `watermark`, and the oldest events while more than `max_waiting` wait.
    pub fn release<E>(
        &mut self,
        watermark: i64,
        max_waiting: usize,
        take: impl FnMut(Event, Location) -> Result<(), E>,
    ) -> Result<(), E> {
        self.release_until(None, watermark, max_waiting, take).map(|_| ())
    }

    /// As `release`, but only events that are older than `limit`. Returns whether it has kept others back.
    pub fn release_until<E>(
        &mut self,
        limit: Option<i64>,
        watermark: i64,
        max_waiting: usize,
        mut take: impl FnMut(Event, Location) -> Result<(), E>,
    ) -> Result<bool, E> {
        loop {
            // Release from the run with the oldest front until the front of another run, or a stray, is older.
            let mut oldest: Option<(Key, usize)> = None;
            let mut bound = self.strays.peek().map_or(LAST, |Reverse(ByKey(w))| w.key());
            for (i, run) in self.runs.iter().enumerate() {
                let Some(front) = run.front().map(Waiting::key) else { continue };
                match oldest {
                    Some((key, _)) if key < front => bound = bound.min(front),
                    Some((key, _)) => {
                        bound = bound.min(key);
                        oldest = Some((front, i));
                    }
                    None => oldest = Some((front, i)),
                }
            }
            if oldest.is_none_or(|(key, _)| bound < key) {
                if self.strays.is_empty() || (bound.0 >= watermark && self.waiting <= max_waiting) {
                    return Ok(false);
                }
                if limit.is_some_and(|limit| bound.0 >= limit) {
                    return Ok(true);
                }
                let Some(Reverse(ByKey(stray))) = self.strays.pop() else { return Ok(false) };
                self.waiting -= 1;
                self.released = self.released.max(stray.event.ts);
                take(stray.event, stray.location)?;
                continue;
            }
            let Some((_, run)) = oldest else { return Ok(false) };
            while let Some(front) = self.runs[run].front() {
                if front.key() > bound {
                    break;
                }
                if front.event.ts >= watermark && self.waiting <= max_waiting {
                    return Ok(false);
                }
                if limit.is_some_and(|limit| front.event.ts >= limit) {
                    return Ok(true);
                }
                let Waiting { event, location, .. } = *front;
                self.runs[run].pop_front();
                self.waiting -= 1;
                self.released = self.released.max(event.ts);
                take(event, location)?;
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
            kind: Kind::BioComplete { bio: mark, sector: NO_SECTOR, dev: Dev::UNKNOWN, error: None },
        }
    }

    /// Releases each event after the arrival of one that is newer by more than the window.
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
    fn events_within_the_window_are_sorted() {
        assert_eq!(run(10, &[5, 9, 3, 7, 14, 4, 30]), (vec![3, 4, 5, 7, 9, 14, 30], 0));
    }

    #[test]
    fn events_beyond_the_window_are_late_but_not_lost() {
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
