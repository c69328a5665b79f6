//! One input parsed on several threads, its batches in the order of the input.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::input::Chunk;
use crate::source::{Batch, Chunks, OtherEvents, Parse, Reader, StatefulPass};

/// So long the wait for the next batch is silent.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the workers of one input share.
struct Workers {
    /// With the number of the next chunk.
    chunks: Mutex<(Box<dyn Chunks>, u64)>,
    used: Mutex<Receiver<Batch>>,
    parse: Arc<dyn Parse>,
}

/// A chunk's number, its events and the bytes read so far.
type Parsed = (u64, Result<(Batch, u64)>);

impl Workers {
    fn work(&self, done: &SyncSender<Parsed>) {
        let mut chunk = Chunk::default();
        loop {
            // A batch first: as many chunks are on their way as there are batches, however long one of them takes.
            let Ok(mut batch) = self.used.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
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
            batch.until = chunk.until;
            self.parse.parse(chunk.bytes(), &mut batch);
            if done.send((number, Ok((batch, consumed)))).is_err() {
                return;
            }
        }
    }
}

pub struct Stream {
    parsed: Receiver<Parsed>,
    recycle: Sender<Batch>,
    threads: Vec<JoinHandle<()>>,
    waiting: BTreeMap<u64, Result<(Batch, u64)>>,
    next: u64,
    settle: Option<Box<dyn StatefulPass>>,
}

pub enum Next {
    /// A batch, with the bytes read so far.
    Batch(Box<Batch>, u64),
    /// Nothing has come for a while.
    Idle,
    End,
}

impl Stream {
    /// Dropped before its end it returns at once: a worker that waits for a slow pipe is left to itself.
    pub fn start(reader: Reader, workers: usize, count_other_events: bool) -> Self {
        let workers = if workers == 0 { thread::available_parallelism().map_or(1, usize::from) } else { workers };
        let (done, parsed): (SyncSender<Parsed>, Receiver<Parsed>) = sync_channel(workers);
        let (recycle, used): (Sender<Batch>, Receiver<Batch>) = channel();
        for _ in 0..=workers * 2 {
            let other_events = count_other_events.then(OtherEvents::default);
            let _ = recycle.send(Batch { other_events, ..Batch::default() });
        }
        let Reader { chunks, parse, settle, .. } = reader;
        let shared = Arc::new(Workers { chunks: Mutex::new((chunks, 0)), used: Mutex::new(used), parse });
        let threads = (0..workers)
            .map(|_| {
                let (shared, done) = (Arc::clone(&shared), done.clone());
                thread::spawn(move || shared.work(&done))
            })
            .collect();
        Self { parsed, recycle, threads, waiting: BTreeMap::new(), next: 0, settle }
    }

    /// The next batch in the order of the input.
    pub fn take(&mut self) -> Result<Next> {
        loop {
            if let Some(result) = self.waiting.remove(&self.next) {
                self.next += 1;
                let (mut batch, consumed) = result?;
                if let Some(settle) = &mut self.settle {
                    settle.settle(&mut batch);
                }
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

    /// What the input before leaves to a piece that goes on.
    pub fn into_stateful_pass(self) -> Option<Box<dyn StatefulPass>> {
        self.settle
    }

    /// Its memory is used again.
    pub fn recycle(&self, batch: Batch) {
        let _ = self.recycle.send(batch);
    }
}
