//! Passes only the requests that the user selected, with their bios, to another sink. Rows that belong to no request pass too, if they are in the
//! selected time.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Group, GroupRequest, RunFacts, Sink};
use crate::error::Result;
use crate::event::{Dev, UNKNOWN_TASK};
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::file_op::FileOp;
use crate::rows::{Bio, Call, Commit, Request, WriteWait};

/// Conditions on a request; `None` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub pid: Option<u32>,
    pub cgroup: Option<Cgroup>,
    /// Name of the thread.
    pub comm: Option<String>,
    /// Prefix of its path.
    pub path: Option<String>,
    pub dev: Option<Dev>,
    /// Minimum duration, from the entry of its call.
    pub min_latency_ns: Option<i64>,
    /// Begin of the selected time, since the first event. A request that ended before it is left out.
    pub since_ns: Option<i64>,
    /// End of the selected time, since the first event. A request that begins at it or later is left out.
    pub until_ns: Option<i64>,
}

/// The processes of control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// The group, or the part of its name, that the user selected.
    pub name: String,
    /// By process, whether it is in one of the selected groups. The group of others is not known.
    pub has_process: BTreeMap<u32, bool>,
}

/// Result of a condition. The smallest result of several conditions is that of all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fails,
    /// The log does not record what the condition is about.
    Unknown,
    Passes,
}

/// Checks one condition. `matches` returns `None` where the log does not record the value.
fn check<T>(condition: Option<T>, matches: impl FnOnce(T) -> Option<bool>) -> Verdict {
    match condition.map(matches) {
        Some(None) => Verdict::Unknown,
        Some(Some(false)) => Verdict::Fails,
        None | Some(Some(true)) => Verdict::Passes,
    }
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Describes the conditions in words, for `syncline_meta`.
    pub fn describe(&self) -> String {
        let mut conditions = Vec::new();
        conditions.extend(self.pid.map(|pid| format!("pid {pid}")));
        conditions.extend(self.cgroup.as_ref().map(|cgroup| format!("cgroup {}", cgroup.name)));
        conditions.extend(self.comm.as_ref().map(|comm| format!("comm {comm}")));
        conditions.extend(self.path.as_ref().map(|path| format!("path {path}")));
        conditions.extend(self.dev.map(|dev| format!("device {dev}")));
        conditions.extend(self.min_latency_ns.map(|ns| format!("{} or longer", duration(ns))));
        conditions.extend(self.since_ns.map(|ns| format!("from {} after the first event", duration(ns))));
        conditions.extend(self.until_ns.map(|ns| format!("before {} after the first event", duration(ns))));
        conditions.join(", ")
    }

    /// Returns whether a row is in the selected time. `start` and `end` are since the first event.
    fn has_time(&self, start: i64, end: i64) -> bool {
        self.since_ns.is_none_or(|since| end >= since) && self.until_ns.is_none_or(|until| start < until)
    }

    fn check_task(&self, pid: u32, comm: &[u8]) -> Verdict {
        let pid_matches = check(self.pid, |wanted| (pid != UNKNOWN_TASK).then_some(pid == wanted));
        let comm_matches = check(self.comm.as_ref(), |wanted| (!comm.is_empty()).then_some(comm == wanted.as_bytes()));
        let cgroup_matches = check(self.cgroup.as_ref(), |wanted| wanted.has_process.get(&pid).copied());
        pid_matches.min(comm_matches).min(cgroup_matches)
    }

    fn check_request(&self, request: &Request, names: &Names) -> Verdict {
        let path = names.get(request.path);
        let path_matches =
            check(self.path.as_ref(), |wanted| request.path.is_some().then(|| path.starts_with(wanted.as_bytes())));
        let dev_matches = check(self.dev, |wanted| request.dev.is_known().then_some(request.dev == wanted));
        let is_slow = check(self.min_latency_ns, |min| request.dur().map(|dur| dur >= min));
        self.check_task(request.pid, names.get(request.comm)).min(path_matches).min(dev_matches).min(is_slow)
    }

    /// Checks an operation on files, of whose two paths one is enough. It has no device. How long it took does not matter: a short write is as
    /// unsafe as a long one.
    fn check_file_op(&self, op: &FileOp, names: &Names) -> Verdict {
        let paths = [op.path, op.to_path].into_iter().filter(|path| path.is_some());
        let starts =
            |wanted: &String| paths.map(|path| names.get(path).starts_with(wanted.as_bytes())).reduce(|a, b| a || b);
        let path_matches = check(self.path.as_ref(), starts);
        let dev_matches = check(self.dev, |_| None);
        self.check_task(op.pid, names.get(op.comm)).min(path_matches).min(dev_matches)
    }

    /// Checks a call without a request. It has neither path nor device.
    fn check_call(&self, call: &Call, names: &Names) -> Verdict {
        let path_matches = check(self.path.as_ref(), |_| None);
        let dev_matches = check(self.dev, |_| None);
        let is_slow = check(self.min_latency_ns, |min| call.dur().map(|dur| dur >= min));
        self.check_task(call.pid, names.get(call.comm)).min(path_matches).min(dev_matches).min(is_slow)
    }
}

/// Formats a duration in the largest unit that divides it without a remainder.
fn duration(ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns != 0 && ns % unit == 0).unwrap_or((1, "ns"));
    format!("{} {}", ns / unit.0, unit.1)
}

pub struct Filtered<S> {
    sink: S,
    filter: Filter,
    /// Bios of requests that have not ended, by `sync_id`.
    held: HashMap<u64, Vec<Bio>, FixedState>,
    losses: Losses,
    /// Time of the first event.
    first_ts: i64,
}

impl<S: Sink> Filtered<S> {
    pub fn new(sink: S, filter: Filter) -> Self {
        Self { sink, filter, held: HashMap::default(), losses: Losses::default(), first_ts: 0 }
    }

    /// Checks the time of a row that has begun at `start`; one whose length is not known is an instant.
    fn check_time(&self, start: i64, dur: Option<i64>) -> Verdict {
        let start = start - self.first_ts;
        if self.filter.has_time(start, start + dur.unwrap_or(0)) { Verdict::Passes } else { Verdict::Fails }
    }

    /// Returns whether the verdict is to pass; counts a loss if not.
    fn passes(&mut self, verdict: Verdict, ts: i64) -> bool {
        let reason = match verdict {
            Verdict::Passes => return true,
            Verdict::Fails => Reason::FilteredOut,
            Verdict::Unknown => Reason::FilterUnknown,
        };
        self.losses.add(reason, 1, Some(ts));
        false
    }
}

impl<S: Sink> Sink for Filtered<S> {
    fn begin(&mut self, first_ts: i64) -> Result<()> {
        self.first_ts = first_ts;
        self.sink.begin(first_ts)
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        match bio.sync_id {
            Some(sync_id) => {
                self.held.entry(sync_id).or_default().push(bio.clone());
                Ok(())
            }
            None if self.check_time(bio.ts(), bio.dur()) == Verdict::Passes => self.sink.bio(bio, names),
            None => Ok(()),
        }
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let mut passing = Vec::new();
        for r in group.requests {
            let in_time = self.check_time(r.request.ts(), r.request.dur());
            let verdict = self.filter.check_request(r.request, names).min(in_time);
            let bios = self.held.remove(&r.request.sync_id).unwrap_or_default();
            if self.passes(verdict, r.request.ts()) {
                for bio in &bios {
                    self.sink.bio(bio, names)?;
                }
                passing.push(GroupRequest { request: r.request, bio_ids: r.bio_ids });
            }
        }
        let mut call = group.call.cloned();
        if let Some(call) = &mut call {
            let own_request_passes = passing.iter().any(|r| Some(r.request.sync_id) == call.sync_id);
            if group.requests.is_empty() {
                let in_time = self.check_time(call.enter, call.dur());
                let verdict = self.filter.check_call(call, names).min(in_time);
                if !self.passes(verdict, call.enter) {
                    return Ok(());
                }
            } else if !own_request_passes {
                // The request that the call was paired with is filtered out, another request in the call is not.
                call.sync_id = passing.first().map(|r| r.request.sync_id);
            }
        }
        if passing.is_empty() && !group.requests.is_empty() {
            return Ok(());
        }
        self.sink.group(&Group { call: call.as_ref(), requests: &passing }, names)
    }

    fn commit(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        match self.check_time(commit.start, commit.end.map(|end| end - commit.start)) {
            Verdict::Passes => self.sink.commit(commit, names),
            _ => Ok(()),
        }
    }

    fn write_wait(&mut self, wait: &WriteWait, names: &Names) -> Result<()> {
        match self.check_time(wait.start, Some(wait.end - wait.start)) {
            Verdict::Passes => self.sink.write_wait(wait, names),
            _ => Ok(()),
        }
    }

    fn wants_file_ops(&self) -> bool {
        self.sink.wants_file_ops()
    }

    fn file_op(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        let verdict = self.filter.check_file_op(op, names).min(self.check_time(op.start, op.dur));
        if verdict == Verdict::Passes { self.sink.file_op(op, names) } else { Ok(()) }
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        self.sink.loss(reason, ts, text)
    }

    fn losses(&self) -> Option<&Losses> {
        Some(&self.losses)
    }

    fn unweighted_requests(&self) -> u64 {
        self.sink.unweighted_requests()
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.sink.finish(facts, losses, names)
    }
}
