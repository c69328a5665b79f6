//! Bios of threads that may be in a sync whose start is not in the log: the start was lost, or the log begins within the sync.
//!
//! What the thread does next decides. The end of a sync function without its start, or the exit of a call without its entry, says that the
//! thread was in a sync, and nothing says since when: whose its bios before that are is not known. The start of a sync, or the entry of a
//! call, says that it was in none. So the row of a bio without an owner waits for the next such event of its thread. A piece of work of a
//! flusher thread, which may be a part of a sync, says the same by its begin and its end.

use super::stores::origins::Waiting;
use super::stores::slots::BioSlot;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::bio_flags::Direction;
use crate::event::probe::Probe;
use crate::event::{Event, Kind, NO_ID, UNKNOWN_TASK};
use crate::rows::Bio;

/// Rows that wait for the next event of one thread, and of all. The oldest ones of more are background writeback.
const MAX_OF_THREAD: usize = 4096;

const MAX_WAITING: usize = 16_384;

/// Threads that write what others have changed, and make no sync, have names that begin with one of these.
const JOURNAL: &[u8] = b"jbd2/";
pub(super) const FLUSHER: &[u8] = b"kworker/";

impl Pairer {
    /// Notes that a thread begins a request or a call, or ends one. `was_in_sync`: nothing in the log has said that it was in the one that ends.
    pub(super) fn decide_origins(&mut self, task_id: u32, was_in_sync: bool, out: &mut Out<'_>) -> Result<()> {
        let next = self.bios.next_bio_id();
        let origins = &mut self.tasks.by_id.entry(task_id).or_default().origins;
        if origins.decided == next {
            return Ok(());
        }
        if was_in_sync {
            origins.unknown = (origins.decided, next);
        }
        origins.decided = next;
        if origins.waiting.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut origins.waiting);
        self.waiting_origins.rows -= waiting.len();
        for Waiting { mut row, others } in waiting.drain(..) {
            if was_in_sync {
                row.forget_origin();
                out.sink.bio(&row, out.names)?;
            } else {
                self.pass_on(row, others, out)?;
            }
        }
        self.tasks.by_id.entry(task_id).or_default().origins.waiting = waiting;
        Ok(())
    }

    /// The same for the first event of a request.
    pub(super) fn decide_origins_at(&mut self, e: &Event, task_id: u32, out: &mut Out<'_>) -> Result<()> {
        let is_start = matches!(e.kind, Kind::SyncStart { .. } | Kind::Probe(Probe::SyncEnter { .. }));
        self.decide_origins(task_id, !is_start, out)
    }

    /// Passes on the row of a bio without an owner, as soon as it is known whether its thread was in a sync.
    pub(super) fn write_without_owner(&mut self, slot: BioSlot, out: &mut Out<'_>) -> Result<()> {
        let bio = &mut self.bios[slot];
        let (direction, row) = (bio.row.direction(), &mut bio.row);
        let task_id = self.tasks.id(row.tid, row.pid);
        // Where a file system or probes report bios, what only the block layer reports is of another kind. Their events of a bio of the
        // request that the thread is in may be lost: that is known when it ends.
        let is_other_kind = row.address == 0
            && direction == Direction::Write
            && (self.seen.bios || self.probes.sees_bios)
            && self.tasks.open_request(task_id).is_none();
        let (comm, shows_syncs) = (out.names.get(row.comm), self.seen.calls || self.requests.has_been_any());
        let has_begun = self.tasks.by_id.get(&task_id).is_some_and(|task| task.has_begun);
        let may_be_at_work = self.probes.sees_bios && !self.probes.work.contains_key(&task_id);
        let is_writer =
            shows_syncs && !has_begun && (comm.starts_with(JOURNAL) || comm.starts_with(FLUSHER) && !may_be_at_work);
        row.origin_unknown &= !is_other_kind && (!is_writer || bio.is_doubtful);
        if row.origin_unknown {
            row.forget_origin();
            return out.sink.bio(row, out.names);
        }
        // Its thread makes a commit, so it was in no sync.
        if self.commits.hold(task_id, row) {
            return Ok(());
        }
        // An id says whose a bio is.
        let is_nobodys = task_id == UNKNOWN_TASK && bio.fillers.is_empty();
        let is_decided = row.id != NO_ID || bio.is_background || is_nobodys || is_writer;
        if is_decided || direction == Direction::Read {
            return out.sink.bio(row, out.names);
        }
        let (row, fillers) = (row.clone(), std::mem::take(&mut bio.fillers));
        self.pass_on(row, if fillers.is_empty() { vec![task_id] } else { fillers }, out)
    }

    /// Passes on a row of no owner, unless one of these threads may be in the sync that it is of. Then it waits for the next event of that.
    fn pass_on(&mut self, mut row: Bio, mut threads: Vec<u32>, out: &mut Out<'_>) -> Result<()> {
        while let Some(task_id) = threads.pop() {
            let origins = &mut self.tasks.by_id.entry(task_id).or_default().origins;
            if row.bio_id < origins.decided {
                if (origins.unknown.0..origins.unknown.1).contains(&row.bio_id) {
                    row.forget_origin();
                    break;
                }
                continue;
            }
            let is_full = self.waiting_origins.rows >= MAX_WAITING || origins.waiting.len() >= MAX_OF_THREAD;
            if is_full && let Some(oldest) = origins.waiting.pop_front() {
                self.waiting_origins.rows -= 1;
                out.sink.bio(&oldest.row, out.names)?;
            }
            if is_full && origins.waiting.is_empty() {
                break;
            }
            self.waiting_origins.rows += 1;
            if origins.waiting.is_empty() {
                self.waiting_origins.threads.push_back((since(&row), task_id));
            }
            origins.waiting.push_back(Waiting { row, others: threads });
            return Ok(());
        }
        out.sink.bio(&row, out.names)
    }

    /// Passes on the rows that have waited since before a time.
    pub(super) fn expire_origins(&mut self, before: i64, out: &mut Out<'_>) -> Result<()> {
        let mut due = Vec::new();
        while let Some(&(_, task_id)) = self.waiting_origins.threads.front().filter(|(since, _)| *since < before) {
            self.waiting_origins.threads.pop_front();
            let Some(task) = self.tasks.get_mut(task_id) else { continue };
            let waiting = &mut task.origins.waiting;
            while waiting.front().is_some_and(|waiting| since(&waiting.row) < before) {
                due.extend(waiting.pop_front().map(|waiting| waiting.row));
            }
            if let Some(Waiting { row, .. }) = waiting.front() {
                self.waiting_origins.threads.push_back((since(row), task_id));
            }
        }
        self.waiting_origins.rows -= due.len();
        due.sort_unstable_by_key(|row| row.bio_id);
        due.iter().try_for_each(|row| out.sink.bio(row, out.names))
    }
}

/// Since when a row waits.
fn since(row: &Bio) -> i64 {
    row.complete.unwrap_or(row.ts())
}
