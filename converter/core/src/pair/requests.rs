//! Sync requests: from `sync_start` to `sync_end`, and until their bios are complete.

use super::parts::{MAX_IN_CALL, Part};
use super::phases::{self, Frame};
use super::stores::probe_request::ProbeRequest;
use super::stores::requests::Requests;
use super::stores::slots::RequestSlot;
use super::stores::tasks::{OpenGroup, Tasks};
use super::stores::threads::add;
use super::waits::{reported_waits, tear};
use super::{Out, Pairer, first_event_of, of_request};
use crate::error::Result;
use crate::event::{Event, Kind, NO_ID, WaitKind};
use crate::losses::Reason;
use crate::rows::{Bio, Call, CallOf, Confidence, Request};

impl Pairer {
    pub(super) fn sync_start(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::SyncStart { id, path, fs, ino, dev, datasync, by_thread, .. } = e.kind else { return Ok(()) };
        let task = self.tasks.id_of(e);
        if self.is_nested_start(task, id) {
            self.count(Reason::Duplicate, e.ts, self.location(), || "the file system's start".to_owned());
            if id == NO_ID {
                return Ok(());
            }
        }
        let mut found = self.find_own_request(task, id);
        if let Some(slot) = found
            && id == NO_ID
            && self.requests[slot].probe.is_none()
        {
            let row = &self.requests[slot].row;
            if row.start > Some(e.ts) {
                // It is counted as late. The request after it is open, and its own end has come or was lost.
                return Ok(());
            }
            // A thread is in one sync function at a time, so the end of the open request was lost, unless this is its start again.
            if (row.start, row.fs, row.dev, row.ino) != (Some(e.ts), fs, dev, ino) {
                found = None;
            }
        }
        let slot = match found {
            Some(slot) if self.requests[slot].probe.is_some() => {
                self.count(Reason::Duplicate, e.ts, self.location(), || "the file system's start".to_owned());
                return Ok(());
            }
            Some(slot) if self.requests[slot].row.start.is_some() => {
                return self.lose(Reason::DuplicateStart, e.ts, out, || format!("start{}", of_request(id)));
            }
            // Its start is late: the reorder window was too short for it.
            Some(slot) => slot,
            None => self.open_request(e, id, out)?,
        };
        if self.requests[slot].row.end.is_none() {
            self.requests.in_flight += 1;
        }
        let in_flight = self.requests.in_flight;
        self.requests[slot].by_thread = by_thread;
        self.requests[slot].is_apart = self.provenance.is_apart;
        self.requests[slot].highest_before = self.requests.highest_ended();
        let row = &mut self.requests[slot].row;
        row.start = Some(e.ts);
        row.path = path;
        row.fs = fs;
        row.ino = ino;
        row.dev = dev;
        let reports_datasync = id != NO_ID || matches!(out.names.get(fs), b"ext4" | b"btrfs");
        row.datasync = reports_datasync.then_some(datasync);
        row.waits_known = reported_waits(out.names.get(fs), ino);
        row.comm = e.comm;
        row.in_flight.0 = in_flight;
        self.files.see(dev, ino, 0, path);
        if found.is_none() {
            row.confidence = Confidence::Exact;
            self.take_call(task, slot);
        }
        Ok(())
    }

    /// Whether a start reports the request that the thread has open: a kernel may have two tracepoints for it, one with an id and one
    /// without. The id is used, whichever comes first.
    fn is_nested_start(&mut self, task_id: u32, id: u64) -> bool {
        let Some(task) = self.tasks.get_mut(task_id) else { return false };
        task.has_nested_start = false;
        let Some(slot) = task.open_request else { return false };
        let row = &mut self.requests[slot].row;
        if row.start.is_none() || (row.id == NO_ID) == (id == NO_ID) || row.bios > 0 && row.id == NO_ID {
            return false;
        }
        task.has_nested_start = true;
        self.seen.nested_starts = true;
        if row.id == NO_ID {
            row.start = None;
            self.requests.in_flight -= 1;
            self.name_request(task_id, slot, id);
        }
        true
    }

    pub(super) fn sync_end(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::SyncEnd { id, ret, fs, dev, ino, datasync } = e.kind else { return Ok(()) };
        let task = self.tasks.id_of(e);
        if id == NO_ID {
            self.ends.see(fs);
        }
        if id == NO_ID && self.ends_request_with_id(task) {
            self.count(Reason::Duplicate, e.ts, self.location(), || "the file system's end".to_owned());
            return Ok(());
        }
        let damaged = self.request_with_damaged_end(task, id, e.ts);
        if let Some(slot) = damaged {
            self.repair_end(slot, id, e.ts, out)?;
        }
        let slot = match damaged.or_else(|| self.find_request(task, id)) {
            Some(slot) if id == NO_ID && self.requests[slot].probe.is_some() => {
                self.count(Reason::Duplicate, e.ts, self.location(), || "the file system's end".to_owned());
                return Ok(());
            }
            // It is counted as late.
            Some(slot) if id == NO_ID && self.requests[slot].row.start > Some(e.ts) => return Ok(()),
            Some(slot) if id != NO_ID || self.requests[slot].may_be_of(fs, (dev, ino)) => slot,
            None if self.requests.has_ended(task, id)
                || id == NO_ID && self.tasks.has_just_ended(task, (e.ts, dev, ino)) =>
            {
                return self.lose(Reason::DuplicateEnd, e.ts, out, || format!("exit{}", of_request(id)));
            }
            // The start of its request was lost, and so was the end of the one that is open.
            _ => self.open_orphan(e, id, out)?,
        };
        let row = &mut self.requests[slot].row;
        row.datasync = datasync.or(row.datasync);
        if row.start.is_none() && id == NO_ID {
            (row.dev, row.ino) = (dev, ino);
        }
        self.end_request(e, slot, Some(ret), out)?;
        if id == NO_ID {
            self.tasks.by_id.entry(task).or_default().ended = Some((e.ts, dev, ino));
        }
        Ok(())
    }

    /// Takes a pass through a sync function whose recorder reports it when it is over. Others of the same process may have run meanwhile, and the
    /// recorder has reported only those that are over.
    pub(super) fn sync_done(&mut self, e: &Event, out: &mut Out<'_>) -> Result<()> {
        let Kind::SyncDone { fs, path, ret, .. } = e.kind else { return Ok(()) };
        let since = e.since();
        let slot = self.open_request(e, NO_ID, out)?;
        self.requests.in_flight += 1;
        let row = &mut self.requests[slot].row;
        row.first_event = since;
        (row.start, row.fs, row.path) = (Some(since), fs, path);
        row.is_report = true;
        self.end_request(e, slot, ret, out)
    }

    /// Whether an end without an id is that of a request that the thread has, or has just had, with an id. The start without an id may have been
    /// lost.
    pub(super) fn ends_request_with_id(&mut self, task_id: u32) -> bool {
        let Some(task) = self.tasks.get_mut(task_id) else { return false };
        let is_nested = std::mem::take(&mut task.has_nested_start);
        // The start of that may be lost, or before the beginning of the log.
        let is_inside = task.open_request.is_some_and(|slot| self.requests[slot].row.id != NO_ID);
        is_nested || is_inside || task.open_request.is_none() && task.has_ended_with_id
    }

    /// Gives the open request of a thread, whose start has no id, the id of another event of the thread. The start with the id was lost.
    pub(super) fn adopt_id(&mut self, task_id: u32, id: u64) -> Option<RequestSlot> {
        let slot =
            self.open_request_without_id(task_id).filter(|_| id != NO_ID && id != 0 && !self.is_background(id))?;
        self.requests[slot].row.start.take()?;
        self.requests.in_flight -= 1;
        self.name_request(task_id, slot, id);
        Some(slot)
    }

    /// Gives a request without an id the one that a nested event has.
    fn name_request(&mut self, task_id: u32, slot: RequestSlot, id: u64) {
        self.requests.set_id(slot, id);
        let probe = self.requests[slot].probe.take();
        if let Some(task) = self.tasks.get_mut(task_id) {
            // The exits of probes are recognized without this.
            task.has_nested_start = probe.is_none();
        }
        if let Some(probe) = probe {
            self.probes.ignore(task_id, &probe);
        }
    }

    /// Ends a request.
    pub(super) fn end_request(
        &mut self,
        e: &Event,
        slot: RequestSlot,
        ret: Option<i64>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let open = &mut self.requests[slot];
        if open.row.start.is_some_and(|start| start > e.ts) {
            // It is counted as late. A negative duration would be wrong, so the request has no end.
            return Ok(());
        }
        let may_lack_a_bio = self.may_lack_a_bio(slot);
        let open = &mut self.requests[slot];
        open.row.bio_lost |= may_lack_a_bio;
        if self.seen.nested_starts && open.row.id == NO_ID && open.row.start.is_some() && open.row.ino != 0 {
            // The start and the end with an id were lost, which are some microseconds apart from these.
            open.row.confidence = open.row.confidence.max(Confidence::Inferred);
        }
        if self.provenance.log != open.log {
            // Two clocks have measured it.
            open.row.confidence = open.row.confidence.max(Confidence::Inferred);
        }
        open.row.end = Some(e.ts);
        open.row.ret = ret;
        if open.by_thread {
            open.last_commit = self.journals.last_ended(open.row.dev);
        }
        self.end_states(slot, e.ts);
        let open = &mut self.requests[slot];
        open.row.last_event = open.row.last_event.max(e.ts);
        open.over = true;
        let (has_start, has_open_bios, owner) = (open.row.start.is_some(), !open.open_bios.is_empty(), open.task);
        self.decide_origins(owner, !has_start || may_lack_a_bio, out)?;
        self.requests.in_flight -= u32::from(has_start);
        self.requests[slot].row.in_flight.1 = self.requests.in_flight;
        self.requests.unlink(slot);
        self.requests.remember_end(slot);
        let has_id = self.requests[slot].row.id != NO_ID;
        if let Some(task) = self.tasks.get_mut(owner)
            && task.open_request == Some(slot)
        {
            task.open_request = None;
            task.has_ended_with_id = has_id;
        }
        if has_open_bios {
            // It has waited for them, so their completions are lost.
            for &bio in &self.requests[slot].open_bios {
                self.bios.remove_load(bio);
            }
            let after = self.requests[slot].open_bios.last().map(|&bio| {
                let Bio { dev, in_flight_at_complete: (bios, bytes), .. } = self.bios[bio].row;
                (dev, bios, bytes)
            });
            self.requests[slot].row.device_at_end = after;
            self.requests.linger(e.ts, slot);
            return Ok(());
        }
        self.settle(slot);
        self.flush(owner, out)
    }

    /// The request without an id that a thread has open.
    pub(super) fn open_request_without_id(&self, task: u32) -> Option<RequestSlot> {
        let slot = self.tasks.open_request(task)?;
        (self.requests[slot].row.id == NO_ID).then_some(slot)
    }

    /// The open request of this task and id.
    pub(super) fn find_own_request(&self, task: u32, id: u64) -> Option<RequestSlot> {
        if id == NO_ID { self.open_request_without_id(task) } else { self.requests.find_own(task, id) }
    }

    /// The open request of this task and id, else the only open request with this id.
    pub(super) fn find_request(&self, task: u32, id: u64) -> Option<RequestSlot> {
        if id == NO_ID { self.open_request_without_id(task) } else { self.requests.find(task, id) }
    }

    /// Opens a request at its first event.
    pub(super) fn open_request(&mut self, e: &Event, id: u64, out: &mut Out<'_>) -> Result<RequestSlot> {
        let task_id = self.tasks.id_of(e);
        self.leave_request(task_id, out)?;
        self.decide_origins_at(e, task_id, out)?;
        self.take_back_call(task_id);
        self.leave_write_waits(task_id, e.ts);
        let process = self.process(e.pid);
        let row = Request {
            tid: e.tid,
            pid: e.pid,
            comm: e.comm,
            process: process.name,
            cgroup: process.cgroup,
            in_flight: (self.requests.in_flight, self.requests.in_flight),
            // An event that was held back begins the request that follows the one of its thread.
            ..Request::new(self.requests.take_sync_id(), id, self.replayed.map_or(e.ts, |from| from.max(e.ts)))
        };
        let location = self.location();
        let slot = self.requests.open(row, task_id, (location, self.provenance.log));
        self.requests[slot].orphans_at_start = self.orphans;

        let may_overlap = self.tasks.may_overlap(task_id);
        // Another input may say later when the call has returned.
        let part = if self.provenance.is_apart || self.may_be_below(task_id, e, out.names) {
            Part::Unknown
        } else {
            Part::of(e)
        };
        let exits = &self.exits;
        let task = self.tasks.by_id.entry(task_id).or_default();
        task.open_request = (!may_overlap).then_some(slot);
        let mut call_was_closed = false;
        let open_call = task.groups.back_mut().filter(|group| group.call_open && !may_overlap);
        // A second request in a call is a part of it too, unless the exit of the call was lost.
        let call_of_request = open_call.and_then(|group| {
            group.leave_flight(&mut self.requests.in_flight);
            let is_late = group.call.as_ref().is_some_and(|call| e.ts < call.enter);
            let is_part = is_late || group.call.as_ref().is_none_or(|call| group.parts.take(call.op, part, false));
            let joins = is_part && group.requests.len() < MAX_IN_CALL;
            call_was_closed = !joins && group.close_without_exit(exits);
            joins.then_some(group)
        });
        if let Some(group) = call_of_request {
            group.requests.push(slot);
        } else {
            task.groups.push_back(OpenGroup::of_request(slot, e.ts, location));
            self.await_exit(e, task_id, out)?;
        }
        if call_was_closed {
            self.flush(task_id, out)?;
        }
        Ok(slot)
    }

    /// Opens a request whose start is not in the log, at another event with its id. If the start is there with a damaged id, the request is
    /// the one that it has opened.
    pub(super) fn open_orphan(&mut self, e: &Event, id: u64, out: &mut Out<'_>) -> Result<RequestSlot> {
        if let Some(slot) = self.request_with_damaged_start(self.tasks.id_of(e), id) {
            self.repair_start(slot, id, out)?;
            return Ok(slot);
        }
        let task = self.tasks.id_of(e);
        if let Some(slot) = self.adopt_id(task, id) {
            return Ok(slot);
        }
        let slot = self.open_request(e, id, out)?;
        self.requests[slot].begins_with_bio = matches!(e.kind, Kind::BioAddFolio { .. } | Kind::BioSubmit { .. });
        self.take_call(task, slot);
        let row = &mut self.requests[slot].row;
        if row.call.is_some() {
            row.confidence = Confidence::Inferred;
        }
        Ok(slot)
    }

    /// A thread that enters or leaves a call, or another sync function, has left the request that it had open. The end of that was lost.
    pub(super) fn leave_request(&mut self, task: u32, out: &mut Out<'_>) -> Result<()> {
        self.probes.leave(task);
        let Some(task) = self.tasks.get_mut(task) else { return Ok(()) };
        task.has_ended_with_id = false;
        match task.open_request.take() {
            Some(slot) => self.close_without_end(slot, out),
            None => Ok(()),
        }
    }

    fn close_without_end(&mut self, slot: RequestSlot, out: &mut Out<'_>) -> Result<()> {
        // An end that comes after all would make it overlap the next request.
        self.requests.unlink(slot);
        let (owner, id) = (self.requests[slot].task, self.requests[slot].row.id);
        if id != NO_ID {
            self.requests.left.insert((owner, id));
        }
        // An event that was held back is older than what decided about it.
        let left_at = self.replayed.unwrap_or(self.now);
        if self.may_lack_a_bio(slot) {
            self.decide_origins(owner, true, out)?;
        }
        let open = &mut self.requests[slot];
        open.over = true;
        open.left_at = Some(left_at);
        if open.open_bios.is_empty() {
            let task = open.task;
            self.settle(slot);
            return self.flush(task, out);
        }
        self.requests.linger(self.now, slot);
        Ok(())
    }

    /// Makes the row final: no event of the request can come any more.
    pub(super) fn settle(&mut self, slot: RequestSlot) {
        let row = &self.requests[slot].row;
        let is_late = self.may_be_late(row.first_event, row.last_event);
        let open = &mut self.requests[slot];
        if open.settled {
            return;
        }
        open.settled = true;
        let row = &mut open.row;
        if is_late {
            row.confidence = row.confidence.max(Confidence::Inferred);
        }
        (row.extent.ranges, row.extent.span) = open.ranges.summary();
        let is_stacked = open.devices.len() > 1
            && open.devices.iter().any(|&dev| !self.block_requests.sees_requests_of(dev) && dev != row.dev);
        // Without an id, only its thread says which bios a request has, and only from its start on.
        let sees_bios = if row.start.is_none() || self.tasks.may_overlap(open.task) {
            false
        } else if is_stacked {
            // Some of its bios may be those of others of them, on the device below.
            false
        } else {
            let has_requests = self.block_requests.sees_inserts && !self.seen.bios && !self.probes.sees_bios;
            // Bios that were merged into a request of somebody else are in no event of the thread, and a device below may be all that is recorded.
            let sees_none = self.block_requests.sees_submits_of(row.dev);
            self.seen.block_submits && (row.bios > 0 || sees_none)
                // Probes may still report bios, and then the requests of the block layer are no rows.
                || has_requests && row.bios > 0 && open.probe.is_none()
                || open.probe.is_some() && self.probes.sees_bios
        };
        row.bios_unseen = if row.id == NO_ID { !sees_bios } else { !self.seen.any_of_bio };
        row.extent.of_bios |= row.bio_lost;
        row.extent.offsets_unknown |= row.bio_lost;
        row.extent.of_probes = open.probe.is_some() && self.probes.sees_folios;
        if row.start.is_some() && row.end.is_none() {
            self.requests.in_flight -= 1;
            self.requests[slot].row.in_flight.1 = self.requests.in_flight;
        }
        self.infer_wait(slot);
        let torn_waits = self.settle_waits(slot);
        self.settle_phases(slot);
        let open = &self.requests[slot];
        let (id, first, location) = (open.row.id, open.row.first_event, open.location);
        let (has_start, has_end) = (open.row.start.is_some(), open.row.end.is_some());
        let (is_without_id, fs) = (has_start && id == NO_ID && open.probe.is_none(), open.row.fs);
        if !has_start {
            self.count(Reason::StartMissing, first, location, || first_event_of(id));
        }
        for (wait, start) in torn_waits {
            self.count(Reason::UnmatchedWait, start, location, || format!("{}{}", wait.name(), of_request(id)));
        }
        let what = || if has_start { format!("start{}", of_request(id)) } else { first_event_of(id) };
        if !has_end && is_without_id {
            let locations = &self.locations;
            self.ends.count_missing(fs, first, || locations.describe(location, &what()));
        } else if !has_end {
            self.count(Reason::EndMissing, first, location, what);
        }
        self.requests.unlink(slot);
    }

    /// Adds the wait for a commit that a request without recorded waits has probably made.
    fn infer_wait(&mut self, slot: RequestSlot) {
        let knows_state = self.knows_state(slot);
        let open = &mut self.requests[slot];
        let row = &mut open.row;
        let (Some((start, end)), Some(commit)) = (row.phase_bounds(), open.last_commit.take()) else { return };
        if row.complete_missing || row.bio_lost || !row.waits.is_empty() {
            return;
        }
        let done = row.last_complete.map_or(start, |last| last.max(start));
        let blocked = knows_state.then_some(&open.evidence.blocked[..]);
        if let Some(wait) = commit.inferred_wait(row.sync_id, done, end, blocked) {
            commit.steps_in(&wait, &mut open.evidence.commit_parts);
            row.waits.push(wait);
            row.confidence = row.confidence.max(Confidence::Inferred);
        }
    }

    /// Whether the input has what the scheduler did with the thread of a request. Recorders may follow a thread only for a time, so a request
    /// that waited for long although its thread never left a CPU shows that they did not follow it then.
    fn knows_state(&self, slot: RequestSlot) -> bool {
        let open = &self.requests[slot];
        let watched_from = self.tasks.by_id.get(&open.task).and_then(|task| task.watched_from);
        let Some((_, end)) = open.row.phase_bounds() else { return false };
        watched_from.is_some_and(|from| from <= end) && (open.watch.has_switched() || !open.has_waited_long())
    }

    /// Keeps the waits that have both ends and are inside of the request. Returns the others, by their starts.
    fn settle_waits(&mut self, slot: RequestSlot) -> Vec<(WaitKind, i64)> {
        let has_waits = self.seen.waits;
        // A flush of btrfs is known by its bio.
        let lacks_flushes = |probe: &ProbeRequest| probe.flushes_are_bios && !self.probes.sees_bios;
        let lacks_flushes = self.requests[slot].probe.as_ref().is_some_and(lacks_flushes);
        let open = &mut self.requests[slot];
        let row = &mut open.row;
        row.waits_known.1 &= !lacks_flushes;
        let (from, to) = (row.start.unwrap_or(i64::MIN), row.end.unwrap_or(i64::MAX));
        let mut open_waits = open.open_waits.take().into_iter().peekable();
        let (mut at, mut torn) = (0, Vec::new());
        let no_waits = open.probe.as_mut().map(|probe| std::mem::take(&mut probe.no_waits)).unwrap_or_default();
        let mut no_waits = no_waits.into_iter().peekable();
        row.waits.retain(|wait| {
            if no_waits.next_if_eq(&at).is_some() {
                at += 1;
                return false;
            }
            let is_open = open_waits.next_if_eq(&at).is_some();
            let is_inside = from <= wait.start && wait.end <= to;
            at += 1;
            if is_open || !is_inside {
                tear(&mut open.torn_waits, wait.wait);
                add(&mut open.evidence.torn, (wait.start, if is_open { to } else { wait.end }));
            }
            // For a request without an end, `end_missing` covers the wait without an end.
            if !is_inside || is_open && row.end.is_some() {
                torn.push((wait.wait, wait.start));
            }
            !is_open && is_inside
        });
        row.waits.sort_by_key(|wait| (wait.start, std::cmp::Reverse(wait.end)));
        row.waits.iter_mut().zip(1..).for_each(|(wait, number)| wait.number = number);
        // Waits that carry no id are of no request.
        let is_known = |reported: bool, torn: bool| reported && has_waits && !open.by_thread && !torn;
        row.waits_known =
            (is_known(row.waits_known.0, open.torn_waits[0]), is_known(row.waits_known.1, open.torn_waits[1]));
        if open.probe.as_ref().is_some_and(|probe| probe.by_functions) {
            row.waits_known.0 &= row.waits.iter().any(|wait| wait.wait.is_of_journal());
            row.waits_known.1 &= row.waits.iter().any(|wait| wait.wait == WaitKind::Flush);
        }
        torn
    }

    /// Finds what the time of a request went to, if both its bounds are known.
    fn settle_phases(&mut self, slot: RequestSlot) {
        let knows_state = self.knows_state(slot);
        // Without wake-ups, nothing says since when a thread could have run.
        let sees_wakes = self.phases_seen.wakes;
        let open = &mut self.requests[slot];
        let row = &mut open.row;
        let Some((start, end)) = row.phase_bounds() else { return };
        row.knows_states = knows_state && sees_wakes && open.evidence.unseen.is_empty();
        let flushes = &open.evidence.flushes;
        let waits = || row.waits.iter().map(|wait| (wait.start, wait.end)).chain(flushes.iter().copied());
        let waited = waits().map(|(_, end)| end).max();
        let (begun, done) = if row.bios_unseen || row.bio_lost {
            (None, None)
        } else if row.bios == 0 {
            (waits().map(|(start, _)| start).min(), waited)
        } else {
            let complete = row.last_complete.filter(|_| !row.complete_missing);
            (row.before_submit().map(|ns| start + ns), complete.map(|ts| waited.map_or(ts, |end| end.max(ts))))
        };
        let frame = Frame { start, end, begun, done, knows_state, knows_bios: !row.bios_unseen && !row.bio_lost };
        for wait in std::mem::take(&mut open.evidence.open_commits) {
            self.journals.parts(row.dev, &wait, &mut open.evidence.commit_parts);
        }
        phases::find(&mut open.evidence, &row.waits, frame, &mut row.phases);
    }

    /// Takes back a request that was opened for an id of background writeback. Its bios belong to no request.
    pub(super) fn dissolve(&mut self, slot: RequestSlot) {
        self.requests.unlink(slot);
        let open = &mut self.requests[slot];
        for &bio in &open.open_bios {
            self.bios[bio].detach();
        }
        open.settled = true;
        let (owner, sync_id) = (open.task, open.row.sync_id);
        self.requests.release(slot);
        let Some(task) = self.tasks.get_mut(owner) else { return };
        if task.open_request == Some(slot) {
            task.open_request = None;
        }
        for group in &mut task.groups {
            group.requests.retain(|&other| other != slot);
            if let Some(call) = group.call.as_mut().filter(|call| call.sync_id == Some(sync_id)) {
                call.sync_id = None;
            }
        }
        task.groups.retain(|group| group.call.is_some() || !group.requests.is_empty());
        (task.over_first, task.undecided_first) = (0, 0);
    }

    /// Settles a request whose open bios will not complete any more.
    pub(super) fn give_up_request(&mut self, slot: RequestSlot, out: &mut Out<'_>) -> Result<()> {
        // A copy: each bio that is given up leaves the list, and the last one settles the request.
        let mut open_bios = self.requests[slot].open_bios.clone();
        open_bios.sort_unstable_by_key(|&bio| self.bios[bio].row.bio_id);
        for bio in open_bios {
            self.give_up_bio(bio, out)?;
        }
        if !self.requests[slot].settled {
            let task = self.requests[slot].task;
            self.settle(slot);
            self.flush(task, out)?;
        }
        Ok(())
    }
}

impl Pairer {
    pub(super) fn take_call(&mut self, task: u32, slot: RequestSlot) {
        take_call(&mut self.tasks, &mut self.requests, task, slot);
        if self.torn_lines.have_been {
            self.tear_call_of(task, slot);
        }
    }
}

/// Gives a request the last call of its task that no other request has taken.
fn take_call(tasks: &mut Tasks, requests: &mut Requests, task_id: u32, slot: RequestSlot) {
    let may_overlap = tasks.may_overlap(task_id);
    let Some(task) = tasks.get_mut(task_id) else { return };
    let row = &mut requests[slot].row;
    // A late request may be older than the open call.
    let since = row.first_event;
    let is_free = |group: &OpenGroup| {
        group.call_open && group.call.as_ref().is_some_and(|call| call.sync_id.is_none() && call.enter <= since)
    };
    let take = |call: &mut Call, row: &mut Request| {
        call.sync_id = Some(row.sync_id);
        row.call = Some(CallOf::from(&*call));
    };
    if !may_overlap {
        if let Some(group) = task.groups.back_mut().filter(|group| is_free(group))
            && let Some(call) = &mut group.call
        {
            take(call, row);
        }
        return;
    }
    let candidates = task.groups.iter().filter(|group| is_free(group)).count();
    if candidates > 1 {
        task.guesses.guess();
    }
    if task.guesses.are_in_force() {
        row.confidence = Confidence::Inferred;
    }
    let Some(index) = task.groups.iter().rposition(is_free) else { return };
    if let Some(call) = &mut task.groups[index].call {
        take(call, row);
    }
    task.groups[index].leave_flight(&mut requests.in_flight);
    // The request leaves the group of its own that it was opened in.
    if let Some(own) = task.groups.iter().rposition(|group| group.call.is_none() && group.requests == [slot]) {
        task.remove_group(own);
        let index = if own < index { index - 1 } else { index };
        task.groups[index].requests.push(slot);
    }
}
