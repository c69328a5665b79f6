//! The waits of threads that write, open and ended.

use std::collections::VecDeque;

use super::slots::BioSlot;
use crate::collections::Map;
use crate::event::probe::{WaitedFor, WriteWaitKind};
use crate::event::{Dev, Event};
use crate::names::NameId;
use crate::rows::{Confidence, WriteWait};

/// A wait that has not ended.
#[derive(Debug)]
pub(in crate::pair) struct OpenWait {
    pub(in crate::pair) row: WriteWait,
    /// How long the thread is to pause.
    pub(in crate::pair) pause_ns: Option<i64>,
    /// How many waits for page cache are open, one in another.
    pub(in crate::pair) depth: u32,
}

impl OpenWait {
    pub(in crate::pair) fn new(e: &Event, kind: WriteWaitKind, waited_for: WaitedFor) -> Self {
        let (tid, pid, comm, path) = (e.tid, e.pid, e.comm, NameId::NONE);
        let (start, end, confidence) = (e.ts, e.ts, Confidence::Exact);
        let row = WriteWait { wait_id: 0, tid, pid, comm, kind, waited_for, path, start, end, confidence };
        Self { row, pause_ns: None, depth: 1 }
    }
}

/// A bio by which a thread reads a file into page cache.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct LastRead {
    pub(in crate::pair) slot: BioSlot,
    /// The slot may be used again.
    pub(in crate::pair) bio_id: u64,
    pub(in crate::pair) file: (Dev, u64),
}

#[derive(Debug, Default)]
pub(in crate::pair) struct WriteWaits {
    /// By thread, the newest last.
    pub(in crate::pair) last_reads: Map<u32, VecDeque<LastRead>>,
    /// By thread. One may wait for page cache while it waits for a handle.
    pub(in crate::pair) open: Map<u32, Vec<OpenWait>>,
    /// By thread: waits that have ended. They are written after the syncs of the thread that began before them.
    pub(in crate::pair) ended: Map<u32, VecDeque<WriteWait>>,
    pub(in crate::pair) count: u64,
}

impl WriteWaits {
    /// Visits the paths of all rows.
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.ended.values().flatten().for_each(|row| f(row.path));
    }
}
