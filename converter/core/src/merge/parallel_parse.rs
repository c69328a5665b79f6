//! Parses one input on several threads and returns its batches in the order of the input. A small input is parsed on the calling thread.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::input_file::Chunk;
use crate::source::{Batch, Chunks, FarTimes, OtherEvents, Parse, Reader, StatefulPass, TornTimes};

/// Maximum time that `Stream::take` waits for a batch.
const PATIENCE: Duration = Duration::from_millis(100);

/// The state that the worker threads of one input share.
struct Workers {
    /// The input, and the number of its next chunk.
    chunks: Mutex<(Box<dyn Chunks>, u64)>,
    free_batches: Mutex<Receiver<Batch>>,
    parse: Arc<dyn Parse>,
}

/// The number of a chunk, its batch, and the bytes that have been read up to its end.
type Parsed = (u64, Result<(Batch, u64)>);

impl Workers {
    /// Parses chunks until the input ends.
    fn work(&self, done: &SyncSender<Parsed>) {
        let mut chunk = Chunk::default();
        loop {
            // The number of batches limits the number of chunks in flight, even if one of them takes long. So take a batch first.
            let Ok(mut batch) = self.free_batches.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
            let (number, consumed) = {
                let mut guard = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
                let (chunks, next) = &mut *guard;
                let number = *next;
                *next += 1;
                match chunks.next(&mut chunk) {
                    Ok(false) => return,
                    Ok(true) => (number, chunks.consumed_bytes()),
                    Err(error) => {
                        let _ = done.send((number, Err(error)));
                        return;
                    }
                }
            };
            batch.clear();
            batch.watermark = chunk.watermark;
            self.parse.parse(chunk.bytes(), &mut batch);
            if done.send((number, Ok((batch, consumed)))).is_err() {
                return;
            }
        }
    }
}

/// One input that is being read.
pub struct Stream {
    batches: Batches,
    stateful_pass: Option<Box<dyn StatefulPass>>,
    torn_times: TornTimes,
    far_times: FarTimes,
    count_other_events: bool,
    /// Bytes that have been read, up to the end of the last batch.
    consumed: u64,
}

enum Batches {
    Here(Box<Here>),
    OfThreads(OfThreads),
}

/// Batches that the calling thread parses. To start a thread would take longer than a small input.
struct Here {
    chunks: Box<dyn Chunks>,
    parse: Arc<dyn Parse>,
    chunk: Chunk,
    /// An empty batch whose memory is reused.
    free: Batch,
}

/// Batches that worker threads parse. Dropping it does not wait for them: one of them may be blocked on a slow pipe.
struct OfThreads {
    parsed: Receiver<Parsed>,
    free_batches: Sender<Batch>,
    threads: Vec<JoinHandle<()>>,
    /// Results that came before the result of chunk `next`.
    waiting: BTreeMap<u64, Result<(Batch, u64)>>,
    /// Number of the next chunk to return.
    next: u64,
}

pub enum Next {
    /// A batch, and the bytes that have been read up to its end.
    Batch(Box<Batch>, u64),
    /// No batch came within `PATIENCE`.
    Idle,
    End,
}

impl Stream {
    /// Starts the worker threads, as many as there are cores if `workers` is 0; none if the input `is_small`.
    pub fn start(reader: Reader, workers: usize, count_other_events: bool, is_small: bool) -> Self {
        let empty_batch = || empty_batch(count_other_events);
        let far_times = FarTimes::of(&reader);
        let Reader { chunks, parse, stateful_pass, .. } = reader;
        let batches = if is_small {
            Batches::Here(Box::new(Here { chunks, parse, chunk: Chunk::default(), free: empty_batch() }))
        } else {
            Batches::OfThreads(OfThreads::start(chunks, parse, workers, empty_batch))
        };
        Self { batches, stateful_pass, torn_times: TornTimes::default(), far_times, count_other_events, consumed: 0 }
    }

    /// Returns the next batch in the order of the input.
    pub fn take(&mut self) -> Result<Next> {
        loop {
            if let Some((batch, consumed)) = self.far_times.take() {
                return Ok(Next::Batch(batch, consumed));
            }
            let next = match &mut self.batches {
                Batches::Here(here) => here.take(),
                Batches::OfThreads(threads) => threads.take(),
            };
            match next? {
                Next::Idle => return Ok(Next::Idle),
                Next::End => {
                    if let Some(pass) = &mut self.stateful_pass {
                        let mut batch = empty_batch(self.count_other_events);
                        pass.finish(&mut batch);
                        if !batch.events.is_empty() {
                            self.far_times.add(Box::new(batch), self.consumed);
                        }
                    }
                    self.far_times.end();
                    return Ok(self
                        .far_times
                        .take()
                        .map_or(Next::End, |(batch, consumed)| Next::Batch(batch, consumed)));
                }
                Next::Batch(mut batch, consumed) => {
                    self.consumed = consumed;
                    if let Some(pass) = &mut self.stateful_pass {
                        pass.apply(&mut batch);
                    }
                    self.torn_times.place(&mut batch);
                    if self.far_times.add(batch, consumed) {
                        // It is kept for a while, so another one takes its place.
                        self.recycle(empty_batch(self.count_other_events));
                    }
                }
            }
        }
    }

    /// Returns the state at the end of the input, for a piece that continues it.
    pub fn into_stateful_pass(self) -> Option<Box<dyn StatefulPass>> {
        self.stateful_pass
    }

    /// Reuses the memory of a batch.
    pub fn recycle(&mut self, batch: Batch) {
        match &mut self.batches {
            Batches::Here(here) => here.free = batch,
            Batches::OfThreads(threads) => {
                let _ = threads.free_batches.send(batch);
            }
        }
    }
}

fn empty_batch(count_other_events: bool) -> Batch {
    Batch { other_events: count_other_events.then(OtherEvents::default), ..Batch::default() }
}

impl Here {
    fn take(&mut self) -> Result<Next> {
        if !self.chunks.next(&mut self.chunk)? {
            return Ok(Next::End);
        }
        let mut batch = std::mem::take(&mut self.free);
        batch.clear();
        batch.watermark = self.chunk.watermark;
        // As on a thread, a fault of a source is an error of the input. Fuzzing shows it.
        let parse = AssertUnwindSafe(|| self.parse.parse(self.chunk.bytes(), &mut batch));
        catch_unwind(parse).map_err(|_| Error::Reader)?;
        Ok(Next::Batch(Box::new(batch), self.chunks.consumed_bytes()))
    }
}

impl OfThreads {
    fn start(chunks: Box<dyn Chunks>, parse: Arc<dyn Parse>, workers: usize, empty_batch: impl Fn() -> Batch) -> Self {
        let workers = if workers == 0 { thread::available_parallelism().map_or(1, usize::from) } else { workers };
        let (done, parsed): (SyncSender<Parsed>, Receiver<Parsed>) = sync_channel(workers);
        let (free_batches, batches): (Sender<Batch>, Receiver<Batch>) = channel();
        for _ in 0..=workers * 2 {
            let _ = free_batches.send(empty_batch());
        }
        let shared = Arc::new(Workers { chunks: Mutex::new((chunks, 0)), free_batches: Mutex::new(batches), parse });
        let threads = (0..workers)
            .map(|_| {
                let (shared, done) = (Arc::clone(&shared), done.clone());
                thread::spawn(move || shared.work(&done))
            })
            .collect();
        Self { parsed, free_batches, threads, waiting: BTreeMap::new(), next: 0 }
    }

    fn take(&mut self) -> Result<Next> {
        loop {
            if let Some(result) = self.waiting.remove(&self.next) {
                self.next += 1;
                let (batch, consumed) = result?;
                return Ok(Next::Batch(Box::new(batch), consumed));
            }
            match self.parsed.recv_timeout(PATIENCE) {
                Ok((number, result)) => {
                    self.waiting.insert(number, result);
                }
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Idle),
                Err(RecvTimeoutError::Disconnected) => {
                    let failed = self.threads.drain(..).any(|t| t.join().is_err());
                    return if failed { Err(Error::Reader) } else { Ok(Next::End) };
                }
            }
        }
    }
}
