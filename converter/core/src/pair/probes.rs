//! Probes on a stock kernel name no request. The thread says which one an event is of: this file has sync functions, waits and flusher
//! threads, `probe_bios` the bios.

use super::stores::probe_request::{Left, ProbeRequest, SyncFunction};
use super::stores::slots::RequestSlot;
use super::stores::threads::add;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::place::Place;
use crate::event::probe::{FileBuffer, Probe, SyncScope, WaitSite, WaitedFor, WriteWaitKind};
use crate::event::{Dev, Event, NO_ID, NO_SECTOR, WaitKind};
use crate::losses::Reason;

/// How many requests are kept before those that have ended are removed.
const MIN_SWEEP: usize = 64;

/// Which waits probes report for the requests of a file system: (commits, flushes).
fn reported_waits(fs: &[u8], whole_fs: bool) -> (bool, bool) {
    match fs {
        b"ext2" | b"ext3" | b"ext4" | b"f2fs" | b"btrfs" => (true, true),
        // A request for the whole file system forces the log in another function.
        b"xfs" => (!whole_fs, true),
        _ => (false, false),
    }
}

impl Pairer {
    pub(super) fn probe(&mut self, e: &Event, probe: Probe, out: &mut Out<'_>) -> Result<()> {
        match probe {
            Probe::SyncEnter { .. } => return self.probe_enter(e, &probe, out),
            Probe::SyncExit { scope, ret } => return self.probe_exit(e, scope, ret, out),
            Probe::AddFolio { bio, dev, ino, offset, len, is_page } => {
                return self.probe_folio(e, bio, (dev, ino), (offset, len), is_page, out);
            }
            Probe::Submit { bio, dev, sector, bytes, role, flags } => {
                return self.probe_submit(e, bio, Place { dev, sector }, (bytes, flags), role, out);
            }
            Probe::Read { dev, sector, bytes, flags, file } => {
                return self.read_submit(e, Place { dev, sector }, (bytes, flags), file, out);
            }
            Probe::End { bio, error, remaining, parent, role } => {
                return self.probe_end(e, bio, (error, remaining), (parent, role), out);
            }
            Probe::WaitStart { site, transaction, dev, buffer } => {
                self.probe_wait_start(e, site, transaction, dev);
                if let Some(FileBuffer { dev, ino, sector }) = buffer {
                    self.page_read_start(e, (dev, ino), sector);
                }
            }
            Probe::WaitEnd { site } => {
                if site == WaitSite::Buffer {
                    self.write_wait_end(e, WriteWaitKind::PageRead, out)?;
                }
                return self.probe_wait_end(e, site, out);
            }
            Probe::WorkStart { dev, for_sync } => {
                let task = self.tasks.id_of(e);
                self.probes.work.insert(task, (dev, for_sync));
                return self.decide_origins(task, false, out);
            }
            Probe::CommitRequest { dev, transaction, is_due } => self.commit_request(e, dev, transaction, is_due),
            Probe::CommitTimer => self.commits.timer_expired(e.ts),
            Probe::FastCommitIneligible { dev, reason } => self.commits.ineligible(dev, e.ts, reason),
            Probe::FastCommitStart { dev, transaction } => return self.fast_commit_start(e, dev, transaction, out),
            Probe::FastCommitStop { dev, transaction, status } => {
                return self.fast_commit_stop(e, dev, transaction, status, out);
            }
            Probe::FolioWait { dev, ino } => {
                self.folio_wait(e);
                let waited_for = WaitedFor { dev, ino, ..WaitedFor::default() };
                self.write_wait_start(e, WriteWaitKind::PageWriteback, waited_for);
            }
            Probe::FolioWaitEnd => {
                self.folio_wait_end(e);
                return self.write_wait_end(e, WriteWaitKind::PageWriteback, out);
            }
            Probe::WriteWaitStart { kind: WriteWaitKind::PageRead, waited_for } => {
                self.page_read_start(e, (waited_for.dev, waited_for.ino), NO_SECTOR);
            }
            Probe::FileCall(call) => return self.probed_call(e, &call, out),
            Probe::FileReturn(returned) => return self.probed_return(e, &returned, out),
            Probe::PageLock { dev, ino } => self.page_lock(e, (dev, ino)),
            Probe::PageLockEnd => return self.write_wait_end(e, WriteWaitKind::PageRead, out),
            Probe::WriteWaitStart { kind, waited_for } => {
                self.commits.wait_for_room(self.tasks.id_of(e), kind);
                self.write_wait_start(e, kind, waited_for);
            }
            Probe::WriteWaitEnd { kind } => {
                self.commits.has_room(self.tasks.id_of(e), kind);
                return self.write_wait_end(e, kind, out);
            }
            Probe::Throttle { pause_ns, waited_for } => return self.throttle(e, pause_ns, waited_for, out),
            Probe::WorkEnd => {
                let task = self.tasks.id_of(e);
                let was_known = self.probes.work.remove(&task).is_some();
                return self.decide_origins(task, !was_known, out);
            }
            // `WritePairer` pairs them.
            Probe::Write(_) => {}
        }
        Ok(())
    }

    /// The open request of a thread, if probes report it.
    pub(super) fn probe_request(&self, task: u32) -> Option<RequestSlot> {
        self.tasks.open_request(task).filter(|&slot| self.requests[slot].probe.is_some())
    }

    fn probe_enter(&mut self, e: &Event, probe: &Probe, out: &mut Out<'_>) -> Result<()> {
        let Probe::SyncEnter { function, scope, dev, ino, path, container_path, fs, datasync, generation } = *probe
        else {
            return Ok(());
        };
        self.files.see(dev, ino, generation, path);
        let is_on_disk = reported_waits(out.names.get(fs), false) != (false, false);
        let is_btrfs = out.names.get(fs) == b"btrfs";
        let entered = SyncFunction { name: function, scope, file: (dev, ino), is_on_disk };
        let task = self.tasks.id_of(e);
        if let Some(slot) = self.tasks.open_request(task) {
            let open = &mut self.requests[slot];
            if let Some(state) = &mut open.probe {
                state.leave_leaves();
            }
            match &mut open.probe {
                Some(state) if state.is_inner(&entered) => {
                    // The outer function gives the bounds. The inner one is that of the file system which has the data.
                    state.enter(entered);
                    let row = &mut open.row;
                    if ino != 0 && !state.is_whole_fs() {
                        (row.dev, row.ino) = (dev, ino);
                    }
                    if fs.is_some() {
                        state.flushes_are_bios = is_btrfs;
                        row.fs = fs;
                        row.waits_known = reported_waits(out.names.get(fs), state.is_whole_fs());
                    }
                    if !row.path.is_some() {
                        (row.path, row.container_path) = (path, container_path);
                    } else if !row.container_path.is_some() {
                        // A file in an overlay has its path in the container by the inode below.
                        row.container_path = container_path;
                    }
                    row.datasync = row.datasync.or(datasync);
                    return Ok(());
                }
                None if open.row.start.is_some() => {
                    *self.probes.ignored.entry(task).or_default() += 1;
                    self.seen.nested_starts = true;
                    self.count(Reason::Duplicate, e.ts, self.location(), || "the sync function's start".to_owned());
                    return Ok(());
                }
                _ => {}
            }
        }
        let slot = self.open_request(e, NO_ID, out)?;
        self.requests.in_flight += 1;
        let in_flight = self.requests.in_flight;
        // A probe records the file. The tracer of functions does not.
        let by_functions = !scope.is_whole_fs() && !dev.is_known() && ino == 0;
        let mut state = ProbeRequest { flushes_are_bios: is_btrfs, by_functions, ..ProbeRequest::new(scope) };
        state.enter(entered);
        let is_apart = self.provenance.is_apart;
        let open = &mut self.requests[slot];
        (open.probe, open.is_apart) = (Some(state), is_apart);
        let row = &mut open.row;
        (row.start, row.path, row.fs, row.ino, row.dev) = (Some(e.ts), path, fs, ino, dev);
        (row.container_path, row.datasync) = (container_path, datasync);
        row.waits_known = reported_waits(out.names.get(fs), scope.is_whole_fs());
        row.in_flight.0 = in_flight;
        let sync_id = row.sync_id;
        self.take_call(task, slot);
        if self.probes.open.len() >= self.probes.sweep_at {
            let requests = &self.requests;
            self.probes.open.retain(|&(slot, id)| requests.is_open(slot, id));
            self.probes.sweep_at = (self.probes.open.len() * 2).max(MIN_SWEEP);
        }
        self.probes.open.push((slot, sync_id));
        Ok(())
    }

    fn probe_exit(&mut self, e: &Event, scope: SyncScope, ret: Option<i64>, out: &mut Out<'_>) -> Result<()> {
        let task = self.tasks.id_of(e);
        if let Some(ignored) = self.probes.ignored.get_mut(&task) {
            *ignored -= 1;
            if *ignored == 0 {
                self.probes.ignored.remove(&task);
            }
            self.count(Reason::Duplicate, e.ts, self.location(), || "the sync function's end".to_owned());
            return Ok(());
        }
        let Some(slot) = self.probe_request(task) else {
            if self.ends_request_with_id(task) {
                self.count(Reason::Duplicate, e.ts, self.location(), || "the sync function's end".to_owned());
                return Ok(());
            }
            return self.probe_orphan(e, scope, ret, out);
        };
        let left = self.requests[slot].probe.as_mut().map_or(Left::Other, |state| state.leave(scope));
        match left {
            Left::Inner => Ok(()),
            Left::UnknownInner => {
                self.infer(slot, None);
                Ok(())
            }
            Left::Outermost => {
                self.find_never_submitted(slot, out)?;
                self.end_request(e, slot, ret, out)
            }
            Left::Other => self.probe_orphan(e, scope, ret, out),
        }
    }

    /// A sync function ends whose begin is not in the log. The requests that the thread has made before may be parts of it.
    fn probe_orphan(&mut self, e: &Event, scope: SyncScope, ret: Option<i64>, out: &mut Out<'_>) -> Result<()> {
        let slot = self.open_orphan(e, NO_ID, out)?;
        let parts = self.parts_of_orphan(self.tasks.id_of(e), slot, scope);
        for &part in &parts {
            self.infer(part, None);
        }
        if let Some(&first) = parts.first() {
            let (first, dev, fs) = {
                let row = &self.requests[first].row;
                (row.call_sync_id, row.dev, row.fs)
            };
            for &part in parts.iter().chain([&slot]) {
                self.requests[part].row.call_sync_id = first;
            }
            let row = &mut self.requests[slot].row;
            (row.dev, row.fs) = (dev, fs);
        }
        self.requests[slot].probe = Some(ProbeRequest::new(scope));
        self.end_request(e, slot, ret, out)
    }

    /// A file system sends a flush, and waits for it later.
    pub(super) fn probe_flush(&mut self, e: &Event, task: u32, address: u64) {
        let Some(slot) = self.probe_request(task) else { return };
        self.seen.waits = true;
        self.begin_wait(e, slot, WaitKind::Flush, 0);
        self.probes.flushes.insert(address, (slot, self.requests[slot].row.sync_id));
    }

    fn probe_wait_start(&mut self, e: &Event, site: WaitSite, transaction: u64, of: Dev) {
        let wait = site.wait();
        if wait == WaitKind::Metadata {
            self.phases_seen.metadata_waits = true;
        } else {
            self.seen.waits = true;
        }
        let Some(slot) = self.probe_request(self.tasks.id_of(e)) else { return };
        let dev = self.requests[slot].row.dev;
        if wait == WaitKind::Metadata && of != dev {
            return;
        }
        let others_commit = wait == WaitKind::FastCommit && self.probes.is_in_fast_commit(&self.requests, dev);
        let open = &mut self.requests[slot];
        if let Some(fs) = site.file_system()
            && !open.row.fs.is_some()
        {
            open.row.waits_known = reported_waits(fs.as_bytes(), open.row.ino == 0);
        }
        let Some(state) = &mut open.probe else { return };
        state.flushes_are_bios |= site.file_system() == Some("btrfs");
        if open.open_waits.is_waiting(wait) {
            // f2fs sends a flush in the function in which it waits for one.
            state.inner_waits[wait as usize] += 1;
            return;
        }
        if wait == WaitKind::FastCommit {
            (state.has_journal_bio, state.has_torn_wait, state.other_in_fast_commit) = (false, false, others_commit);
            state.ends_before = self.probes.unknown_ends;
        }
        self.begin_wait(e, slot, wait, transaction);
    }

    fn probe_wait_end(&mut self, e: &Event, site: WaitSite, out: &mut Out<'_>) -> Result<()> {
        let Some(slot) = self.probe_request(self.tasks.id_of(e)) else { return Ok(()) };
        let wait = site.wait();
        if let Some(state) = &mut self.requests[slot].probe
            && let Some(inner) = state.inner_waits[wait as usize].checked_sub(1)
        {
            state.inner_waits[wait as usize] = inner;
            return Ok(());
        }
        // The function has other callers.
        if wait == WaitKind::Metadata && !self.requests[slot].open_waits.is_waiting(wait) {
            return Ok(());
        }
        let Some(at) = self.end_wait(e, slot, wait, 0) else {
            if let Some(state) = self.requests[slot].probe.as_mut().filter(|_| wait == WaitKind::CommitWait) {
                state.has_torn_wait = true;
            }
            return self.lose(Reason::UnmatchedWait, e.ts, out, || format!("end of a {}", wait.name()));
        };
        let open = &mut self.requests[slot];
        let Some(state) = open.probe.as_mut().filter(|_| wait == WaitKind::FastCommit) else { return Ok(()) };
        // The function makes a fast commit, waits for that of another thread, or asks for a full commit and waits for it.
        let has_inner = open.row.waits[at + 1..].iter().any(|inner| inner.wait == WaitKind::CommitWait);
        // A bio that completes in it may be one of the journal, whose submit was lost.
        let sees_all = self.probes.sees_bios && state.ends_before == self.probes.unknown_ends;
        let may_lack_a_bio = !state.has_journal_bio && !sees_all;
        if state.has_torn_wait || may_lack_a_bio && !has_inner {
            open.torn_waits[0] = true;
            add(&mut open.evidence.torn, (open.row.waits[at].start, open.row.waits[at].end));
            state.no_waits.push(at);
        } else if has_inner {
            state.no_waits.push(at);
        } else if !state.has_journal_bio {
            if state.other_in_fast_commit {
                open.row.waits[at].wait = WaitKind::FastCommitWait;
            } else {
                state.no_waits.push(at);
            }
        }
        Ok(())
    }
}
