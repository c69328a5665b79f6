//! Waits of threads that write to files: for a lock, for the journal, for page cache that is under writeback, or because too much is dirty.
//! Those of a thread that is in a sync are phases of its request.

use super::stores::lone_calls::LoneCalls;
use super::stores::slots::BioSlot;
use super::stores::write_waits::{LastRead, OpenWait};
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::probe::{WaitedFor, WriteWaitKind};
use crate::event::{Dev, Event, NO_SECTOR, Op};
use crate::rows::{Confidence, WriteWait};

/// Shorter waits have no row: the functions are called for waits of all lengths, and most are short. Those for a page that is read have one,
/// because a fast device makes many short ones.
const MIN_WAIT_NS: i64 = 1_000_000;

/// The function that waits for the page cache of a file calls the one for a folio.
const MAX_DEPTH: u32 = 2;

/// Waits of a thread behind a call whose kind is undecided. With more, the inputs are taken to hold no request.
const MAX_BEHIND_CALL: usize = 65_536;

/// Threads whose last reads are kept, and how many of each: a page has few blocks that a write changes in part.
const MAX_READERS: usize = 65_536;
const MAX_LAST_READS: usize = 8;

impl Pairer {
    pub(super) fn write_wait_start(&mut self, e: &Event, kind: WriteWaitKind, waited_for: WaitedFor) {
        let task = self.tasks.id_of(e);
        if !self.is_writer(task) {
            return;
        }
        let open = self.write_waits.open.entry(task).or_default();
        match open.iter_mut().find(|wait| wait.row.kind == kind) {
            None => open.push(OpenWait::new(e, kind, waited_for)),
            Some(wait) if kind == WriteWaitKind::PageWriteback && wait.depth < MAX_DEPTH => wait.depth += 1,
            // Another log has the event too.
            Some(wait) if wait.row.start == e.ts => {}
            // The end of the one before was not recorded.
            Some(wait) => *wait = OpenWait::new(e, kind, waited_for),
        }
    }

    pub(super) fn write_wait_end(&mut self, e: &Event, kind: WriteWaitKind, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        let Some(open) = self.write_waits.open.get_mut(&task) else { return Ok(()) };
        let Some(at) = open.iter().position(|wait| wait.row.kind == kind) else { return Ok(()) };
        open[at].depth -= 1;
        if open[at].depth > 0 {
            return Ok(());
        }
        let wait = open.swap_remove(at);
        if open.is_empty() {
            self.write_waits.open.remove(&task);
        }
        self.end_write_wait(task, WriteWait { end: e.ts, ..wait.row });
        self.flush_write_waits(task, out)
    }

    /// A thread that changes a part of a page waits until the page is read: by a bio that it has submitted, or will submit next.
    pub(super) fn page_read_start(&mut self, e: &Event, file: (Dev, u64), sector: i64) {
        let bio = self.own_read(self.tasks.id_of(e), file, sector).unwrap_or(0);
        let waited_for = WaitedFor { dev: file.0, ino: file.1, bio, ..WaitedFor::default() };
        self.write_wait_start(e, WriteWaitKind::PageRead, waited_for);
    }

    /// A thread waits for the lock of a page. Only if it has just submitted a read of the file, it waits for that.
    pub(super) fn page_lock(&mut self, e: &Event, file: (Dev, u64)) {
        if self.own_read(self.tasks.id_of(e), file, NO_SECTOR).is_some() {
            self.page_read_start(e, file, NO_SECTOR);
        }
    }

    /// The bio in flight by which a thread reads a place of a file; without a sector, the one that it has submitted last.
    fn own_read(&self, task: u32, file: (Dev, u64), sector: i64) -> Option<u64> {
        let is_it = |read: &&LastRead| {
            let row = &self.bios[read.slot].row;
            let is_in_flight = row.bio_id == read.bio_id && row.complete.is_none();
            is_in_flight && read.file == file && (sector == NO_SECTOR || row.sector == sector)
        };
        self.write_waits.last_reads.get(&task)?.iter().rev().find(is_it).map(|read| read.bio_id)
    }

    /// Takes note of a bio by which a thread reads a file into page cache.
    pub(super) fn note_page_read(&mut self, e: &Event, file: (Dev, u64), slot: BioSlot) {
        let task = self.tasks.id_of(e);
        let bio_id = self.bios[slot].row.bio_id;
        if self.write_waits.last_reads.len() >= MAX_READERS {
            self.write_waits.last_reads.clear();
        }
        let reads = self.write_waits.last_reads.entry(task).or_default();
        if reads.len() == MAX_LAST_READS {
            reads.pop_front();
        }
        reads.push_back(LastRead { slot, bio_id, file });
        let Some(open) = self.write_waits.open.get_mut(&task) else { return };
        let waits_for_it = |wait: &&mut OpenWait| {
            let of = &wait.row.waited_for;
            wait.row.kind == WriteWaitKind::PageRead && (of.dev, of.ino) == file && of.bio == 0
        };
        if let Some(wait) = open.iter_mut().find(waits_for_it) {
            wait.row.waited_for.bio = bio_id;
        }
    }

    /// A thread is about to pause. Only a probe reports the end of the pause.
    pub(super) fn throttle(
        &mut self,
        e: &Event,
        pause_ns: i64,
        waited_for: WaitedFor,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        if !self.is_writer(task) {
            return Ok(());
        }
        let kind = WriteWaitKind::Throttling;
        let open = self.write_waits.open.entry(task).or_default();
        let before = open.iter().position(|wait| wait.row.kind == kind);
        if before.is_some_and(|at| open[at].row.start == e.ts) {
            return Ok(());
        }
        let before = before.map(|at| open.swap_remove(at));
        open.push(OpenWait { pause_ns: Some(pause_ns), ..OpenWait::new(e, kind, waited_for) });
        if let Some(before) = before {
            self.end_pause(task, before, e.ts);
        }
        self.flush_write_waits(task, out)
    }

    /// A thread begins a sync, so it waits for nothing. A wait whose end is missing must not end with a later one.
    pub(super) fn leave_write_waits(&mut self, task: u32, ts: i64) {
        if self.write_waits.open.is_empty() {
            return;
        }
        for wait in self.write_waits.open.remove(&task).unwrap_or_default() {
            self.end_pause(task, wait, ts);
        }
    }

    /// Ends the waits that are open at the end of the inputs. A pause may last beyond it.
    pub(super) fn finish_write_waits(&mut self, out: &mut Out<'_>) -> Result<()> {
        let mut tasks: Vec<u32> = self.write_waits.open.keys().copied().collect();
        tasks.sort_unstable();
        for task in tasks {
            self.leave_write_waits(task, i64::MAX);
        }
        let mut tasks: Vec<u32> = self.write_waits.ended.keys().copied().collect();
        tasks.sort_unstable();
        tasks.into_iter().try_for_each(|task| self.emit_write_waits(task, i64::MAX, out))
    }

    /// Writes the waits of a thread, unless a sync before them has not been written.
    fn flush_write_waits(&mut self, task: u32, out: &mut Out<'_>) -> Result<()> {
        if self.write_waits.ended.get(&task).is_some_and(|ended| ended.len() > MAX_BEHIND_CALL) {
            self.decide_lone_calls(LoneCalls::Requests, out)?;
        }
        let is_last = self.tasks.by_id.get(&task).is_none_or(|task| task.groups.is_empty());
        if is_last { self.emit_write_waits(task, i64::MAX, out) } else { Ok(()) }
    }

    /// Writes the waits of a thread that began before a time.
    pub(super) fn emit_write_waits(&mut self, task: u32, before: i64, out: &mut Out<'_>) -> Result<()> {
        if self.write_waits.ended.is_empty() {
            return Ok(());
        }
        let Some(ended) = self.write_waits.ended.get_mut(&task) else { return Ok(()) };
        while ended.front().is_some_and(|row| row.start < before) {
            let Some(row) = ended.pop_front() else { break };
            self.write_waits.count += 1;
            out.sink.write_wait(&WriteWait { wait_id: self.write_waits.count, ..row }, out.names)?;
        }
        if ended.is_empty() {
            self.write_waits.ended.remove(&task);
        }
        Ok(())
    }

    /// Whether a thread may be one that writes to a file: it is in no sync, is no flusher thread at work, and commits nothing.
    fn is_writer(&self, task: u32) -> bool {
        if self.tasks.are_processes || self.probes.work.contains_key(&task) || self.commits.is_committing(task) {
            return false;
        }
        self.tasks.by_id.get(&task).is_none_or(|task| {
            let call = task.groups.back().filter(|group| group.call_open).and_then(|group| group.call.as_ref());
            task.open_request.is_none() && call.is_none_or(|call| call.op == Op::Write)
        })
    }

    /// Ends a wait whose end is not recorded. How long the thread was to pause is known; how long it waited for something else is not.
    fn end_pause(&mut self, task: u32, OpenWait { row, pause_ns, .. }: OpenWait, now: i64) {
        if let Some(pause_ns) = pause_ns {
            let end = row.start.saturating_add(pause_ns).min(now);
            self.end_write_wait(task, WriteWait { end, confidence: Confidence::Inferred, ..row });
        }
    }

    fn end_write_wait(&mut self, task: u32, mut row: WriteWait) {
        let is_page_read = row.kind == WriteWaitKind::PageRead;
        if is_page_read && row.waited_for.bio == 0 {
            row.confidence = Confidence::Inferred;
        }
        if is_page_read || row.end.saturating_sub(row.start) >= MIN_WAIT_NS {
            row.path = self.files.path(row.waited_for.dev, row.waited_for.ino);
            self.write_waits.ended.entry(task).or_default().push_back(row);
        }
    }
}
