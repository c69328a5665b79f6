//! Any sink, of which only the requests that a user asks for are seen, with their bios. What belongs to no request passes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Group, GroupRequest, RunFacts, Sink};
use crate::error::Result;
use crate::event::{Dev, UNKNOWN_TASK};
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::{Bio, Call, Request};

/// What a request has to be; `None` is anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub pid: Option<u32>,
    /// Name of the thread.
    pub comm: Option<String>,
    /// With what its path begins.
    pub path: Option<String>,
    pub dev: Option<Dev>,
    /// It took so long, from the call's entry.
    pub min_latency_ns: Option<i64>,
}

/// Whether something passes; the least of several is that of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fails,
    /// The log does not tell what the filter asks.
    Unknown,
    Passes,
}

/// Passes where nothing is wanted.
fn ask<T>(wanted: Option<T>, answer: impl FnOnce(T) -> Option<bool>) -> Verdict {
    match wanted.map(answer) {
        Some(None) => Verdict::Unknown,
        Some(Some(false)) => Verdict::Fails,
        None | Some(Some(true)) => Verdict::Passes,
    }
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// In words, for `syncline_meta`.
    pub fn tell(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.pid.map(|pid| format!("pid {pid}")));
        words.extend(self.comm.as_ref().map(|comm| format!("comm {comm}")));
        words.extend(self.path.as_ref().map(|path| format!("path {path}")));
        words.extend(self.dev.map(|dev| format!("device {dev}")));
        words.extend(self.min_latency_ns.map(|ns| format!("{} or longer", length(ns))));
        words.join(", ")
    }

    fn task(&self, pid: u32, comm: &[u8]) -> Verdict {
        let pid_is = ask(self.pid, |wanted| (pid != UNKNOWN_TASK).then_some(pid == wanted));
        let comm_is = ask(self.comm.as_ref(), |wanted| (!comm.is_empty()).then_some(comm == wanted.as_bytes()));
        pid_is.min(comm_is)
    }

    fn request(&self, request: &Request, names: &Names) -> Verdict {
        let path = names.get(request.path);
        let path_is =
            ask(self.path.as_ref(), |wanted| request.path.is_some().then(|| path.starts_with(wanted.as_bytes())));
        let dev_is = ask(self.dev, |wanted| request.dev.is_known().then_some(request.dev == wanted));
        let slow = ask(self.min_latency_ns, |least| request.dur().map(|dur| dur >= least));
        self.task(request.pid, names.get(request.comm)).min(path_is).min(dev_is).min(slow)
    }

    /// A call without a request has neither path nor device.
    fn call(&self, call: &Call, names: &Names) -> Verdict {
        let path_is = ask(self.path.as_ref(), |_| None);
        let dev_is = ask(self.dev, |_| None);
        let slow = ask(self.min_latency_ns, |least| call.dur().map(|dur| dur >= least));
        self.task(call.pid, names.get(call.comm)).min(path_is).min(dev_is).min(slow)
    }
}

/// In the largest unit that it is a whole number of.
fn length(ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns != 0 && ns % unit == 0).unwrap_or((1, "ns"));
    format!("{} {}", ns / unit.0, unit.1)
}

pub struct Filtered<S> {
    sink: S,
    filter: Filter,
    /// Bios that are done, of requests that are not yet.
    held: HashMap<u64, Vec<Bio>, FixedState>,
    losses: Losses,
}

impl<S: Sink> Filtered<S> {
    pub fn new(sink: S, filter: Filter) -> Self {
        Self { sink, filter, held: HashMap::default(), losses: Losses::default() }
    }

    /// Counts what does not pass.
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
        self.sink.begin(first_ts)
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        match bio.sync_id {
            Some(sync_id) => {
                self.held.entry(sync_id).or_default().push(bio.clone());
                Ok(())
            }
            None => self.sink.bio(bio, names),
        }
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let mut passing = Vec::new();
        for of in group.requests {
            let verdict = self.filter.request(of.request, names);
            let bios = self.held.remove(&of.request.sync_id).unwrap_or_default();
            if self.passes(verdict, of.request.ts()) {
                for bio in &bios {
                    self.sink.bio(bio, names)?;
                }
                passing.push(GroupRequest { request: of.request, bio_ids: of.bio_ids });
            }
        }
        let mut call = group.call.cloned();
        if let Some(call) = &mut call {
            let taken = |passing: &[GroupRequest<'_>]| passing.iter().any(|r| Some(r.request.sync_id) == call.sync_id);
            if group.requests.is_empty() {
                let verdict = self.filter.call(call, names);
                if !self.passes(verdict, call.enter) {
                    return Ok(());
                }
            } else if !taken(&passing) {
                // The request that took it is left out; one beside it may be shown all the same.
                call.sync_id = passing.first().map(|r| r.request.sync_id);
            }
        }
        if passing.is_empty() && !group.requests.is_empty() {
            return Ok(());
        }
        self.sink.group(&Group { call: call.as_ref(), requests: &passing }, names)
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        self.sink.loss(reason, ts, text)
    }

    fn losses(&self) -> Option<&Losses> {
        Some(&self.losses)
    }

    fn left_out(&self) -> u64 {
        self.sink.left_out()
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.sink.finish(facts, losses, names)
    }
}
