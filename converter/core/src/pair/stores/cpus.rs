//! Who has which CPU, and who had one while a thread that syncs waited for it.

use std::collections::VecDeque;

use crate::collections::Map;
use crate::names::NameId;
use crate::rows::{Confidence, CpuUser, PhaseKind, PhaseSpan};

/// Threads that are known to run. Where not all switches are recorded, some of them have left their CPU long ago.
const MAX_RUNNING: usize = 1 << 10;

/// Turns that are kept of a CPU.
const MAX_TURNS: usize = 1 << 8;

/// Threads that are known to be ready, and those whose waits for a CPU are kept.
const MAX_READY: usize = 1 << 12;

/// Waits for a CPU that are kept of a thread.
const MAX_WAITS: usize = 1 << 8;

/// Names of threads whose time is kept.
const MAX_NAMES: usize = 1 << 12;

/// The thread id of whoever leaves or gets a CPU when nothing runs there. Each CPU has its own.
const IDLE: u32 = 0;

/// A time in which a thread had a CPU. `since` is `None` if the switch to it is not recorded.
#[derive(Clone, Copy, Debug)]
struct Turn {
    user: CpuUser,
    since: Option<i64>,
    until: i64,
}

/// A CPU, which is known by the thread that has it: events do not say its number.
#[derive(Debug, Default)]
struct Cpu {
    since: Option<i64>,
    /// The turns before, the last one last.
    turns: VecDeque<Turn>,
}

/// The CPUs, as far as switches say who has them.
#[derive(Debug, Default)]
pub(in crate::pair) struct Cpus {
    by_thread: Map<u32, Cpu>,
    /// When a thread left a CPU last, or got one, and the switch before that is missing: from here on, nothing is known to be.
    gap: Option<i64>,
    /// Threads that could run, and since when.
    ready: Map<u32, i64>,
    /// The last waits of each thread for a CPU, in pieces by who had it. The thread may then wake one that syncs.
    waits: Map<u32, VecDeque<PhaseSpan>>,
}

impl Cpus {
    /// A thread runs. If it was ready until now, the switch to it is not recorded.
    pub(in crate::pair) fn runs(&mut self, thread: u32) {
        self.ready.remove(&thread);
    }

    /// A thread may run.
    pub(in crate::pair) fn wake(&mut self, ts: i64, thread: u32) {
        if self.by_thread.contains_key(&thread) {
            return;
        }
        if self.ready.len() >= MAX_READY {
            self.ready.clear();
        }
        self.ready.entry(thread).or_insert(ts);
    }

    /// `user` leaves a CPU, although it could continue or not, and the thread `to` gets it.
    pub(in crate::pair) fn switch(&mut self, ts: i64, user: CpuUser, is_runnable: bool, to: u32) {
        self.pass_on(ts, user, to);
        self.ready.remove(&user.tid);
        if is_runnable && user.tid != IDLE {
            self.wake(ts, user.tid);
        }
        let Some(since) = self.ready.remove(&to) else { return };
        let pieces = self.wait_of(to, since, ts);
        if self.waits.len() >= MAX_READY {
            self.waits.clear();
        }
        let kept = self.waits.entry(to).or_default();
        kept.extend(pieces);
        kept.drain(..kept.len().saturating_sub(MAX_WAITS));
    }

    /// The waits of a thread for a CPU between two times.
    pub(in crate::pair) fn waits_within(&self, thread: u32, from: i64, to: i64) -> Vec<PhaseSpan> {
        let kept = self.waits.get(&thread).into_iter().flatten();
        let within = kept.map(|wait| PhaseSpan { start: wait.start.max(from), end: wait.end.min(to), ..*wait });
        within.filter(|wait| wait.start < wait.end).collect()
    }

    fn pass_on(&mut self, ts: i64, user: CpuUser, to: u32) {
        let cpu = if user.tid == IDLE { None } else { self.by_thread.remove(&user.tid) };
        if cpu.is_none() && user.tid != IDLE {
            self.gap = Some(ts);
        }
        let Cpu { since, mut turns } = cpu.unwrap_or_default();
        if to == IDLE {
            return;
        }
        if turns.len() == MAX_TURNS {
            turns.pop_front();
        }
        turns.push_back(Turn { user, since, until: ts });
        if self.by_thread.len() >= MAX_RUNNING {
            self.by_thread.clear();
        }
        if self.by_thread.insert(to, Cpu { since: Some(ts), turns }).is_some() {
            self.gap = Some(ts);
        }
    }

    /// The time in which a thread waited for the CPU that it has just got, in pieces by who had it. A thread that is not known to have got it
    /// is inferred to have had it all the time before.
    pub(in crate::pair) fn wait_of(&self, thread: u32, from: i64, to: i64) -> Vec<PhaseSpan> {
        let (mut pieces, mut reached) = (Vec::new(), to);
        for turn in self.by_thread.get(&thread).into_iter().flat_map(|cpu| cpu.turns.iter().rev()) {
            let start = turn.since.map_or(from, |since| since.clamp(from, reached));
            let is_exact = turn.since.is_some() && turn.since >= self.gap;
            let confidence = if is_exact { Confidence::Exact } else { Confidence::Inferred };
            let cpu = CpuUser { confidence, ..turn.user };
            pieces.push(PhaseSpan { cpu, ..PhaseSpan::new(PhaseKind::CpuWait, start, turn.until.min(reached)) });
            reached = start;
            if reached <= from {
                break;
            }
        }
        pieces.push(PhaseSpan::new(PhaseKind::CpuWait, from, reached));
        pieces.retain(|piece| piece.start < piece.end);
        pieces.reverse();
        pieces
    }
}

/// Who had the CPU on which a thread that syncs ran next, while that thread was ready to run.
#[derive(Debug, Default)]
pub(in crate::pair) struct CpuBefore {
    pub(in crate::pair) by_name: Map<NameId, i64>,
    /// Nobody: the thread was held back although a CPU was free.
    pub(in crate::pair) idle_ns: i64,
}

impl CpuBefore {
    pub(in crate::pair) fn add(&mut self, wait: &PhaseSpan) {
        let (CpuUser { tid, comm, .. }, ns) = (wait.cpu, wait.end - wait.start);
        if tid == IDLE {
            self.idle_ns += ns;
        } else if self.by_name.len() < MAX_NAMES || self.by_name.contains_key(&comm) {
            *self.by_name.entry(comm).or_default() += ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(tid: u32) -> CpuUser {
        CpuUser { tid, ..CpuUser::UNKNOWN }
    }

    /// Who had the CPU in a wait: thread, begin, end, and whether that is certain. A thread of 0 is idle, and one of -1 is not known.
    fn wait(switches: &[(i64, u32, u32)], from: i64, to: i64) -> Vec<(i64, i64, i64, bool)> {
        let mut cpus = Cpus::default();
        for &(ts, left, got) in switches {
            cpus.switch(ts, user(left), false, got);
        }
        let of = |span: PhaseSpan| {
            let tid = if span.cpu.is_known() { i64::from(span.cpu.tid) } else { -1 };
            (tid, span.start, span.end, span.cpu.confidence == Confidence::Exact)
        };
        cpus.wait_of(7, from, to).into_iter().map(of).collect()
    }

    #[test]
    fn a_wait_is_of_whoever_had_the_cpu() {
        let switches = [(10, 7, 1), (20, 1, 2), (30, 2, 1), (50, 1, 7)];
        assert_eq!(wait(&switches[1..], 5, 50), [(1, 5, 20, false), (2, 20, 30, true), (1, 30, 50, true)]);
        // Thread 7 left at 10, and was woken at 25.
        assert_eq!(wait(&switches, 25, 50), [(2, 25, 30, true), (1, 30, 50, true)]);
    }

    #[test]
    fn two_cpus_do_not_mix() {
        let switches = [(5, 0, 1), (6, 0, 2), (10, 1, 3), (20, 2, 4), (30, 3, 7), (40, 4, 5)];
        assert_eq!(wait(&switches, 8, 30), [(1, 8, 10, true), (3, 10, 30, true)]);
    }

    #[test]
    fn nobody_had_an_idle_cpu() {
        assert_eq!(wait(&[(10, 1, 0), (30, 0, 7)], 5, 30), [(0, 5, 30, false)]);
        assert_eq!(wait(&[(10, 1, 0), (20, 0, 2), (30, 2, 7)], 5, 30), [(0, 5, 20, false), (2, 20, 30, true)]);
    }

    #[test]
    fn what_is_missing_makes_all_before_it_inferred() {
        // The switch to thread 2 is lost: it may have been as early as 20.
        assert_eq!(wait(&[(10, 7, 1), (30, 2, 7)], 10, 30), [(2, 10, 30, false)]);
        // Thread 1 gets a CPU although it has one, so the switch from it is lost.
        assert_eq!(wait(&[(10, 7, 1), (15, 3, 1), (30, 1, 7)], 10, 30), [(3, 10, 15, false), (1, 15, 30, true)]);
        // Nothing is recorded.
        assert_eq!(wait(&[], 10, 30), [(-1, 10, 30, true)]);
    }

    #[test]
    fn who_wakes_a_thread_may_have_waited_for_a_cpu() {
        let mut cpus = Cpus::default();
        cpus.switch(10, user(9), false, 1);
        cpus.wake(20, 8);
        // It is woken once more, and its CPU is taken from it.
        cpus.wake(25, 8);
        cpus.switch(30, user(1), true, 8);
        cpus.wake(35, 8);
        cpus.switch(40, user(8), true, 1);
        cpus.switch(50, user(1), true, 8);
        cpus.switch(60, user(8), false, 1);
        let of = |cpus: &Cpus, from, to| {
            let waits = cpus.waits_within(8, from, to).into_iter();
            waits.map(|wait| (wait.cpu.tid, wait.start, wait.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(&cpus, 0, 100), [(1, 20, 30), (1, 40, 50)]);
        assert_eq!(of(&cpus, 25, 45), [(1, 25, 30), (1, 40, 45)]);
        assert_eq!(of(&cpus, 30, 40), []);
        // It has got a CPU between 70 and 80, and then waits for another one.
        cpus.wake(70, 8);
        cpus.runs(8);
        cpus.wake(90, 8);
        cpus.switch(95, user(1), false, 8);
        assert_eq!(of(&cpus, 60, 100), [(1, 90, 95)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cpus = Cpus::default();
        for number in 0..100_000 {
            cpus.wake(i64::from(number), 2 * number + 2);
            cpus.wake(i64::from(number), 1_000_000 + number);
            cpus.switch(i64::from(number), user(2 * number + 1), true, 2 * number + 2);
        }
        assert!(cpus.by_thread.len() <= MAX_RUNNING && cpus.ready.len() <= MAX_READY && cpus.waits.len() <= MAX_READY);
        for number in 0..1000 {
            cpus.switch(1_000_000 + i64::from(number), user(1 + number % 2), true, 2 - number % 2);
        }
        assert!(cpus.by_thread.values().all(|cpu| cpu.turns.len() <= MAX_TURNS));
        assert!(cpus.waits.values().all(|waits| waits.len() <= MAX_WAITS));
    }
}
