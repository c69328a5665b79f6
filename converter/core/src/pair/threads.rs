//! Follows the threads of open requests: they run, could run, or are blocked; they wait for locks and for folios.

use super::Pairer;
use super::phases::{Blocked, Evidence, FolioWait};
use super::stores::cpus::CpuBefore;
use super::stores::journals::STEPS;
use super::stores::slots::RequestSlot;
use super::stores::threads::{State, add};
use crate::event::{Event, ThreadEvent, WaitKind};
use crate::names::Names;
use crate::rows::{CpuUser, PhaseKind};

/// Names of threads that the input is said to have.
const SAID_NAMES: usize = 3;

impl Pairer {
    pub(super) fn thread_event(&mut self, e: &Event, thread: ThreadEvent) {
        if self.tasks.are_processes {
            return;
        }
        match thread {
            ThreadEvent::Switch { from, is_runnable, to } => {
                self.phases_seen.states = true;
                let user = self.cpu_user(e, from);
                self.cpus.switch(e.ts, user, is_runnable, to);
                if let Some(slot) = self.tasks.watched(from, e.ts) {
                    self.requests[slot].watch.has_switched = true;
                    let next = if is_runnable { State::Runnable } else { State::Blocked };
                    if self.requests[slot].watch.state == State::Running {
                        _ = self.leave_state(slot, e.ts, next);
                    } else if self.phases_seen.switches_in {
                        self.requests[slot].lose_state(e.ts, next);
                    } else {
                        self.requests[slot].watch.is_doubtful = true;
                    }
                }
                if let Some(slot) = self.tasks.watched(to, e.ts) {
                    self.phases_seen.switches_in = true;
                    let watch = &mut self.requests[slot].watch;
                    watch.has_switched = true;
                    if watch.state == State::Blocked && watch.was_woken_before() {
                        watch.state = State::Runnable;
                    }
                    if self.requests[slot].watch.state == State::Running || self.requests[slot].watch.is_doubtful {
                        self.requests[slot].lose_state(e.ts, State::Running);
                    } else {
                        _ = self.leave_state(slot, e.ts, State::Running);
                    }
                }
            }
            ThreadEvent::Wake { thread } => {
                let waker = self.tasks.id_of(e);
                self.cpus.runs(waker);
                self.cpus.wake(e.ts, thread);
                if let Some(slot) = self.tasks.open_request(thread) {
                    self.phases_seen.wakes = true;
                    match self.requests[slot].watch.state {
                        State::Running => self.requests[slot].watch.woken = Some(e.ts),
                        State::Runnable => {}
                        State::Blocked => {
                            let since = self.leave_state(slot, e.ts, State::Runnable);
                            for wait in self.cpus.waits_within(waker, since, e.ts) {
                                add(&mut self.requests[slot].evidence.behind, wait);
                            }
                        }
                    }
                }
            }
            ThreadEvent::LockWait => {
                self.phases_seen.locks = true;
                if let Some(slot) = self.tasks.open_request(self.tasks.id_of(e)) {
                    // The kernel reports a mutex twice: when it begins to spin, and when it goes to sleep.
                    self.requests[slot].watch.lock_wait.get_or_insert(e.ts);
                }
            }
            ThreadEvent::LockWaitEnd => {
                if let Some(slot) = self.tasks.open_request(self.tasks.id_of(e)) {
                    let open = &mut self.requests[slot];
                    if let Some(since) = open.watch.lock_wait.take() {
                        add(&mut open.evidence.lock_waits, (since, e.ts));
                    }
                }
            }
        }
    }

    /// Who leaves a CPU at a switch. Some formats report it as an event of another thread, which does not say its name.
    fn cpu_user(&self, e: &Event, tid: u32) -> CpuUser {
        if self.tasks.id_of(e) != tid {
            return CpuUser { tid, ..CpuUser::UNKNOWN };
        }
        let process = self.process(e.pid);
        CpuUser { tid, pid: e.pid, comm: e.comm, process: process.name, cgroup: process.cgroup, ..CpuUser::UNKNOWN }
    }

    /// A thread passes to another state. Returns since when it had that before.
    fn leave_state(&mut self, slot: RequestSlot, ts: i64, next: State) -> i64 {
        let open = &mut self.requests[slot];
        let start = open.row.start.unwrap_or(open.row.first_event);
        let (before, since) = open.watch.change_state(ts, next, start);
        match before {
            State::Running => {}
            State::Runnable => {
                for wait in self.cpus.wait_of(open.task, since, ts) {
                    self.cpu_before.add(&wait);
                    add(&mut open.evidence.runnable, wait);
                }
            }
            State::Blocked => {
                let file = (open.row.dev, open.row.ino);
                let other_complete = self.file_completions.of_others(file, open.row.sync_id, since);
                let is_woken = next == State::Runnable;
                add(&mut open.evidence.blocked, Blocked { from: since, to: ts, is_woken, other_complete });
            }
        }
        since
    }

    /// A request ends, so its thread runs. If the log has recorded no event of a kind until now, it does not record that kind, and has lost none.
    pub(super) fn end_states(&mut self, slot: RequestSlot, end: i64) {
        if self.phases_seen.switches_in && self.requests[slot].watch.state != State::Running {
            self.requests[slot].lose_state(end, State::Running);
        }
        let has_ends = self.phases_seen.folio_wait_ends;
        let open = &mut self.requests[slot];
        if std::mem::take(&mut open.watch.folio_waits) > 0 && has_ends {
            // The end of the wait was lost, so nobody knows when the thread could continue.
            add(&mut open.evidence.torn, (open.watch.folio_wait, end));
        }
        let Evidence { blocked, unseen, .. } = &mut open.evidence;
        if self.phases_seen.wakes {
            blocked.retain(|blocked| {
                if !blocked.is_woken {
                    add(unseen, (blocked.from, blocked.to));
                }
                blocked.is_woken
            });
        }
    }

    pub(super) fn folio_wait(&mut self, e: &Event) {
        self.phases_seen.folio_waits = true;
        let Some(slot) = self.tasks.open_request(self.tasks.id_of(e)) else { return };
        let watch = &mut self.requests[slot].watch;
        if watch.folio_waits == 0 {
            watch.folio_wait = e.ts;
        }
        watch.folio_waits += 1;
    }

    pub(super) fn folio_wait_end(&mut self, e: &Event) {
        self.phases_seen.folio_wait_ends = true;
        let Some(slot) = self.tasks.open_request(self.tasks.id_of(e)) else { return };
        let open = &mut self.requests[slot];
        let Some(left) = open.watch.folio_waits.checked_sub(1) else { return };
        open.watch.folio_waits = left;
        if left == 0 {
            let from = open.watch.folio_wait;
            if open.probe.as_ref().is_some_and(|probe| probe.by_functions) {
                add(&mut open.evidence.data_waits, (from, e.ts));
            }
            let other_complete = self.file_completions.of_others((open.row.dev, open.row.ino), open.row.sync_id, from);
            add(&mut open.evidence.folio_waits, FolioWait { from, to: e.ts, other_complete });
        }
    }

    /// Facts for `syncline_meta`: who had the CPU while threads that sync waited for it, the longest first, as nanoseconds and a name.
    pub fn cpu_before(&self, names: &Names) -> Vec<(String, String)> {
        let CpuBefore { by_name, idle_ns } = &self.cpu_before;
        let mut found: Vec<(i64, String)> =
            by_name.iter().map(|(&name, &ns)| (ns, names.text(name).into_owned())).collect();
        found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        if found.is_empty() && *idle_ns == 0 {
            return Vec::new();
        }
        let named = found.into_iter().take(SAID_NAMES).zip(1..);
        let named = named.map(|((ns, name), number)| (format!("cpu_before.{number}"), format!("{ns} {name}")));
        std::iter::once(("cpu_idle_ns".to_owned(), idle_ns.to_string())).chain(named).collect()
    }

    /// The names of the phases that the inputs can show, for `syncline_meta`.
    pub fn phases_seen(&self) -> String {
        let seen = self.phases_seen;
        let sees_bios = self.seen.bios || self.probes.sees_bios || self.queues.writes.has_seen(None);
        let groups: [(bool, &[PhaseKind]); 7] = [
            (sees_bios, &[PhaseKind::BeforeSubmit, PhaseKind::Writeback, PhaseKind::AfterCompletion]),
            (sees_bios && seen.issues, &[PhaseKind::Queue, PhaseKind::Device]),
            (sees_bios && seen.states, &[PhaseKind::Submit, PhaseKind::Completion]),
            (seen.folio_waits, &[PhaseKind::EarlierWriteback]),
            (seen.states, &[PhaseKind::CpuWait]),
            (seen.locks, &[PhaseKind::LockWait]),
            (self.seen.waits && seen.commits, &[PhaseKind::EarlierCommit, PhaseKind::CommitStart]),
        ];
        let waits = WaitKind::ALL.map(|wait| PhaseKind::Wait(wait).name());
        // A flush is a bio of the block layer too.
        let sees_flushes = self.queues.writes.has_seen(None);
        let is_seen = |name: &&str| match *name {
            // Few recordings have its events, and few syncs wait so.
            name if name == WaitKind::Metadata.name() => seen.metadata_waits,
            name => self.seen.waits || sees_flushes && name == WaitKind::Flush.name(),
        };
        let waits = waits.into_iter().filter(is_seen);
        let steps = STEPS.map(|step| PhaseKind::CommitStep(step).name());
        let steps = steps.into_iter().filter(|_| self.seen.waits && seen.commit_steps);
        let others =
            groups.iter().filter(|(is_seen, _)| *is_seen).flat_map(|(_, kinds)| *kinds).map(|kind| kind.name());
        others.chain(waits).chain(steps).collect::<Vec<_>>().join(", ")
    }
}
