//! Any sink on a thread of its own: rows are encoded while the next ones are paired.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Group, GroupRequest, RunFacts, Sink};
use crate::error::{Error, Result};
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::{Bio, Call, Request};

/// Steps that are handed over at once.
const BATCH_STEPS: usize = 1024;
/// Batches on their way.
const BATCHES: usize = 4;

/// What was told to the sink, in its order; rows stand in vectors of their own, one after the other.
enum SinkCall {
    Begin(i64),
    Bio,
    Group { call: bool, requests: u32 },
    Loss { reason: Reason, ts: i64, text: String },
    Finish(Box<(RunFacts, Losses)>),
}

#[derive(Default)]
struct RowBatch {
    steps: Vec<SinkCall>,
    bios: Vec<Bio>,
    calls: Vec<Call>,
    requests: Vec<(Request, u32)>,
    bio_ids: Vec<u64>,
    /// Names that the rows may use and no batch before has, in the order of their ids.
    names: Names,
}

impl RowBatch {
    fn clear(&mut self) {
        self.steps.clear();
        self.bios.clear();
        self.calls.clear();
        self.requests.clear();
        self.bio_ids.clear();
        self.names.clear();
    }

    fn tell(&self, sink: &mut dyn Sink, names: &mut Names) -> Result<()> {
        names.append(&self.names, 1);
        let (mut bios, mut calls, mut requests) = (self.bios.iter(), self.calls.iter(), self.requests.iter());
        let mut bio_ids = &self.bio_ids[..];
        let mut group = Vec::new();
        for step in &self.steps {
            match step {
                SinkCall::Begin(ts) => sink.begin(*ts)?,
                SinkCall::Bio => bios.next().map_or(Ok(()), |bio| sink.bio(bio, names))?,
                SinkCall::Group { call, requests: count } => {
                    group.clear();
                    for (request, count) in requests.by_ref().take(*count as usize) {
                        let (own, rest) = bio_ids.split_at(*count as usize);
                        bio_ids = rest;
                        group.push(GroupRequest { request, bio_ids: own });
                    }
                    let call = if *call { calls.next() } else { None };
                    sink.group(&Group { call, requests: &group }, names)?;
                }
                SinkCall::Loss { reason, ts, text } => sink.loss(*reason, *ts, text)?,
                SinkCall::Finish(end) => sink.finish(&end.0, &end.1, names)?,
            }
        }
        Ok(())
    }
}

pub struct Threaded {
    batch: RowBatch,
    names_taken: usize,
    full: Option<SyncSender<RowBatch>>,
    empty: Receiver<RowBatch>,
    thread: Option<JoinHandle<Result<u64>>>,
    left_out: u64,
}

impl Threaded {
    pub fn new(mut sink: Box<dyn Sink + Send>) -> Result<Self> {
        let (full, batches) = sync_channel::<RowBatch>(BATCHES);
        let (recycle, empty) = sync_channel(BATCHES + 2);
        let work = move || {
            let mut names = Names::default();
            for mut batch in batches {
                batch.tell(sink.as_mut(), &mut names)?;
                batch.clear();
                let _ = recycle.try_send(batch);
            }
            Ok(sink.left_out())
        };
        let thread = thread::Builder::new().name("syncline-encode".into()).spawn(work).map_err(Error::Thread)?;
        let batch = RowBatch::default();
        Ok(Self { batch, names_taken: 1, full: Some(full), empty, thread: Some(thread), left_out: 0 })
    }

    /// Names that a row at hand may use go with it.
    #[inline]
    fn take_names(&mut self, names: &Names) {
        if self.names_taken < names.len() {
            self.batch.names.append(names, self.names_taken);
            self.names_taken = names.len();
        }
    }

    #[inline]
    fn step(&mut self, step: SinkCall) -> Result<()> {
        self.batch.steps.push(step);
        if self.batch.steps.len() >= BATCH_STEPS { self.send() } else { Ok(()) }
    }

    #[cold]
    fn send(&mut self) -> Result<()> {
        let batch = mem::replace(&mut self.batch, self.empty.try_recv().unwrap_or_default());
        let sent = self.full.as_ref().is_some_and(|full| full.send(batch).is_ok());
        if sent { Ok(()) } else { self.join() }
    }

    /// The end of the thread, with its error.
    fn join(&mut self) -> Result<()> {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            self.left_out = thread.join().map_err(|_| Error::Reader)??;
        }
        Ok(())
    }
}

impl Drop for Threaded {
    /// A sink that is not finished removes what it wrote, which must be done before the program ends.
    fn drop(&mut self) {
        let _ = self.join();
    }
}

impl Sink for Threaded {
    fn begin(&mut self, first_ts: i64) -> Result<()> {
        self.step(SinkCall::Begin(first_ts))
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.take_names(names);
        self.batch.bios.push(bio.clone());
        self.step(SinkCall::Bio)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        self.take_names(names);
        self.batch.calls.extend(group.call.cloned());
        for GroupRequest { request, bio_ids } in group.requests {
            self.batch.requests.push(((*request).clone(), bio_ids.len() as u32));
            self.batch.bio_ids.extend_from_slice(bio_ids);
        }
        self.step(SinkCall::Group { call: group.call.is_some(), requests: group.requests.len() as u32 })
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        self.step(SinkCall::Loss { reason, ts, text: text.to_owned() })
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.take_names(names);
        self.batch.steps.push(SinkCall::Finish(Box::new((facts.clone(), losses.clone()))));
        self.send()?;
        self.join()
    }
}
