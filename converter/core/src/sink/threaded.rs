//! Runs another sink on a thread of its own, so that rows are encoded while the next ones are paired.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Group, GroupRequest, RunFacts, Sink};
use crate::error::{Error, Result};
use crate::losses::{Losses, Reason};
use crate::names::{Copied, Names, Update};
use crate::rows::file_op::FileOp;
use crate::rows::{Bio, Call, Commit, Request, WriteWait};

/// Number of calls that are sent to the thread at once.
const BATCH_CALLS: usize = 1024;
/// Capacity of the channel, in batches.
const BATCHES: usize = 4;

/// One call of a method of `Sink`. Its rows are in the vectors of the batch, in the order of the calls.
enum SinkCall {
    Begin(i64),
    Bio,
    Commit(Box<Commit>),
    WriteWait(Box<WriteWait>),
    FileOp,
    Group { call: bool, requests: u32 },
    Loss { reason: Reason, ts: i64, text: String },
    Finish(Box<(RunFacts, Losses)>),
}

#[derive(Default)]
struct RowBatch {
    sink_calls: Vec<SinkCall>,
    bios: Vec<Bio>,
    file_ops: Vec<FileOp>,
    calls: Vec<Call>,
    /// Each with the number of its `bio_ids`.
    requests: Vec<(Request, u32)>,
    bio_ids: Vec<u64>,
    /// Names that the rows may use and that no earlier batch carried.
    names: Update,
}

impl RowBatch {
    fn clear(&mut self) {
        self.sink_calls.clear();
        self.bios.clear();
        self.file_ops.clear();
        self.calls.clear();
        self.requests.clear();
        self.bio_ids.clear();
        self.names.clear();
    }

    /// Makes the calls of the batch on the sink.
    fn replay(&self, sink: &mut dyn Sink, names: &mut Names) -> Result<()> {
        names.apply(&self.names);
        let (mut bios, mut calls, mut requests) = (self.bios.iter(), self.calls.iter(), self.requests.iter());
        let mut file_ops = self.file_ops.iter();
        let mut bio_ids = &self.bio_ids[..];
        let mut group = Vec::new();
        for sink_call in &self.sink_calls {
            match sink_call {
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
                SinkCall::Commit(commit) => sink.commit(commit, names)?,
                SinkCall::WriteWait(wait) => sink.write_wait(wait, names)?,
                SinkCall::FileOp => file_ops.next().map_or(Ok(()), |op| sink.file_op(op, names))?,
                SinkCall::Loss { reason, ts, text } => sink.loss(*reason, *ts, text)?,
                SinkCall::Finish(facts_and_losses) => {
                    let (facts, losses) = facts_and_losses.as_ref();
                    sink.finish(facts, losses, names)?;
                }
            }
        }
        Ok(())
    }
}

pub struct Threaded {
    batch: RowBatch,
    /// The names that were sent, or are in `batch`.
    copied: Copied,
    full: Option<SyncSender<RowBatch>>,
    /// Batches that the thread has written, for reuse.
    empty: Receiver<RowBatch>,
    thread: Option<JoinHandle<Result<u64>>>,
    /// Known once the thread has ended.
    unweighted: u64,
    wants_file_ops: bool,
}

impl Threaded {
    pub fn new(mut sink: Box<dyn Sink + Send>) -> Result<Self> {
        let wants_file_ops = sink.wants_file_ops();
        let (full, batches) = sync_channel::<RowBatch>(BATCHES);
        let (recycle, empty) = sync_channel(BATCHES + 2);
        let work = move || {
            let mut names = Names::default();
            for mut batch in batches {
                batch.replay(sink.as_mut(), &mut names)?;
                batch.clear();
                let _ = recycle.try_send(batch);
            }
            Ok(sink.unweighted_requests())
        };
        let thread = thread::Builder::new().name("syncline-encode".into()).spawn(work).map_err(Error::Thread)?;
        let batch = RowBatch::default();
        Ok(Self {
            batch,
            copied: Copied::default(),
            full: Some(full),
            empty,
            thread: Some(thread),
            unweighted: 0,
            wants_file_ops,
        })
    }

    /// Adds the new names to the batch. Called before a row that may use them is added.
    #[inline]
    fn add_names(&mut self, names: &Names) -> Result<()> {
        if names.has_forgotten(&self.copied) {
            // The rows of the batch may refer to names that were forgotten.
            self.send()?;
        }
        names.add_new_to(&mut self.batch.names, &mut self.copied);
        Ok(())
    }

    #[inline]
    fn add_call(&mut self, sink_call: SinkCall) -> Result<()> {
        self.batch.sink_calls.push(sink_call);
        if self.batch.sink_calls.len() >= BATCH_CALLS { self.send() } else { Ok(()) }
    }

    #[cold]
    fn send(&mut self) -> Result<()> {
        let batch = mem::replace(&mut self.batch, self.empty.try_recv().unwrap_or_default());
        let sent = self.full.as_ref().is_some_and(|full| full.send(batch).is_ok());
        if sent { Ok(()) } else { self.join() }
    }

    /// Waits for the thread to end and returns its error.
    fn join(&mut self) -> Result<()> {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            self.unweighted = thread.join().map_err(|_| Error::Reader)??;
        }
        Ok(())
    }
}

impl Drop for Threaded {
    /// An unfinished sink removes its temporary file. Waiting for that ensures that it happens before the program exits.
    fn drop(&mut self) {
        let _ = self.join();
    }
}

impl Sink for Threaded {
    fn begin(&mut self, first_ts: i64) -> Result<()> {
        self.add_call(SinkCall::Begin(first_ts))
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.batch.bios.push(bio.clone());
        self.add_call(SinkCall::Bio)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.batch.calls.extend(group.call.cloned());
        for GroupRequest { request, bio_ids } in group.requests {
            self.batch.requests.push(((*request).clone(), bio_ids.len() as u32));
            self.batch.bio_ids.extend_from_slice(bio_ids);
        }
        self.add_call(SinkCall::Group { call: group.call.is_some(), requests: group.requests.len() as u32 })
    }

    fn commit(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.add_call(SinkCall::Commit(Box::new(commit.clone())))
    }

    fn write_wait(&mut self, wait: &WriteWait, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.add_call(SinkCall::WriteWait(Box::new(wait.clone())))
    }

    fn wants_file_ops(&self) -> bool {
        self.wants_file_ops
    }

    fn file_op(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.batch.file_ops.push(op.clone());
        self.add_call(SinkCall::FileOp)
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        self.add_call(SinkCall::Loss { reason, ts, text: text.to_owned() })
    }

    fn unweighted_requests(&self) -> u64 {
        self.unweighted
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.add_names(names)?;
        self.batch.sink_calls.push(SinkCall::Finish(Box::new((facts.clone(), losses.clone()))));
        self.send()?;
        self.join()
    }
}
