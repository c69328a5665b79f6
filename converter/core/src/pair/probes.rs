//! Events of probes on a stock kernel, which name no request. The thread, the address of the bio and the inode of its folios say whose they are.
//!
//! A bio is of the sync in which its thread is. Its folios are kept until its submit, because only then its size is known, and what it
//! writes: page cache, or the journal.

use super::requests::OpenRequest;
use super::{LINGER_NS, Map, NO_SLOT, Out, Pairer, Slot};
use crate::error::Result;
use crate::event::probe::{BioRole, NO_OFFSET, Probe, WaitSite};
use crate::event::{Dev, Event, NO_ID, WaitKind};
use crate::losses::Reason;
use crate::names::{NameId, Names};
use crate::rows::{Extent, Ranges};

/// Bios that are being filled. Those of reads are among them, and their submits may not be recorded.
const MAX_FILLING: usize = 65_536;
/// Sync functions in one another. Overlayfs on overlayfs makes four.
const MAX_DEPTH: usize = 8;
/// The inode of a file system on btrfs whose page cache is its trees.
const BTRFS_TREES: u64 = 1;
/// What the names of the kernel's workers begin with.
const WORKER: &[u8] = b"kworker/";
const SECTOR_BYTES: u64 = 512;

/// What is known of a request that probes report.
#[derive(Debug, Default)]
pub(super) struct ProbeRequest {
    /// The sync functions that its thread is in: function, device and inode.
    functions: Vec<(NameId, Dev, u64)>,
    whole_fs: bool,
    /// Open waits in an open wait of the same kind.
    inner_waits: [u32; WaitKind::ALL.len()],
    /// Waits that turned out to be none, as indexes into the row's waits.
    pub(super) no_waits: Vec<usize>,
    /// The thread has submitted a bio of the journal in the open fast commit.
    has_journal_bio: bool,
    /// Another thread was in a fast commit when this one entered it.
    other_in_fast_commit: bool,
}

impl ProbeRequest {
    /// Whether a sync function is called by the one that the thread is in. Otherwise the end of that was lost.
    fn is_inner(&self, function: NameId, dev: Dev) -> bool {
        let is_recursion = |&(outer, on, _): &(NameId, Dev, u64)| outer == function && on == dev;
        !self.functions.is_empty() && self.functions.len() < MAX_DEPTH && !self.functions.iter().any(is_recursion)
    }

    /// Whether a folio is of a file that is being synced.
    fn syncs(&self, folio: &Folio) -> bool {
        let is_on = |dev: Dev| !dev.is_known() || !folio.dev.is_known() || dev == folio.dev;
        self.functions.iter().any(|&(_, dev, ino)| {
            if self.whole_fs { dev.is_known() && dev == folio.dev } else { ino != 0 && ino == folio.ino && is_on(dev) }
        })
    }
}

/// A folio that was added to a bio.
#[derive(Clone, Copy, Debug)]
struct Folio {
    ts: i64,
    /// The request of the thread that added it.
    owner: Owner,
    task: u32,
    dev: Dev,
    ino: u64,
    offset: u64,
    len: u64,
}

/// A bio to which folios were added.
#[derive(Debug, Default)]
struct Filling {
    folios: Vec<Folio>,
    /// The last folio was reported by the function for folios, which may call the one for pages.
    may_repeat: bool,
}

/// A request by its slot, and its `sync_id` to know whether the slot is still its own.
type Owner = Option<(Slot, u64)>;

#[derive(Debug, Default)]
pub(super) struct Probes {
    /// By address.
    filling: Map<u64, Filling>,
    /// Flushes that a file system sends and waits for later, by the address of their bio.
    flushes: Map<u64, (Slot, u64)>,
    /// By thread: the copies of the next `Original` that it has submitted.
    copies: Map<u32, u32>,
    /// By flusher thread: the device that it works on, and whether sync() or syncfs() asked for it.
    work: Map<u32, (Dev, bool)>,
    /// By thread: sync functions that it is in, whose request other events report.
    ignored: Map<u32, u32>,
    /// The requests that probes report, open or not.
    open: Vec<(Slot, u64)>,
    /// Probes report bios, and folios.
    pub(super) sees_bios: bool,
    pub(super) sees_folios: bool,
}

/// Which waits probes report for the requests of a file system: (commits, flushes).
fn reported_waits(fs: &[u8], whole_fs: bool) -> (bool, bool) {
    match fs {
        b"ext2" | b"ext3" | b"ext4" | b"f2fs" | b"btrfs" => (true, true),
        // A request for the whole file system forces the log in another function.
        b"xfs" => (!whole_fs, true),
        _ => (false, false),
    }
}

impl Probes {
    /// A thread enters or leaves a call, so it is in no sync function.
    pub(super) fn leave(&mut self, task: u32) {
        if !self.ignored.is_empty() {
            self.ignored.remove(&task);
        }
    }

    /// The request of a thread is reported by other events too, which have an id.
    pub(super) fn ignore(&mut self, task: u32, request: &ProbeRequest) {
        *self.ignored.entry(task).or_default() += request.functions.len() as u32;
    }

    /// Forgets bios that were filled long ago. They were reads, or their submit was lost.
    pub(super) fn expire(&mut self, now: i64) {
        let is_recent = |folio: &Folio| now.saturating_sub(folio.ts) <= LINGER_NS;
        self.filling.retain(|_, filling| filling.folios.last().is_some_and(is_recent));
    }
}

impl Pairer {
    pub(super) fn probe(&mut self, e: &Event, probe: Probe, out: &mut Out<'_>) -> Result<()> {
        match probe {
            Probe::SyncEnter { .. } => return self.probe_enter(e, &probe, out),
            Probe::SyncExit { ret, .. } => return self.probe_exit(e, ret, out),
            Probe::AddFolio { bio, dev, ino, offset, len, is_page } => {
                self.probe_folio(bio, self.folio(e, dev, ino, (offset, len)), is_page);
            }
            Probe::Submit { bio, dev, sector, bytes, role } => {
                return self.probe_submit(e, bio, (dev, sector), bytes, role, out);
            }
            Probe::End { bio, error, remaining, parent } => {
                return self.probe_end(e, bio, (error, remaining), parent, out);
            }
            Probe::WaitStart { site, transaction } => self.probe_wait_start(e, site, transaction),
            Probe::WaitEnd { site } => return self.probe_wait_end(e, site, out),
            Probe::WorkStart { dev, for_sync } => _ = self.probes.work.insert(self.tasks.id_of(e), (dev, for_sync)),
            Probe::WorkEnd => _ = self.probes.work.remove(&self.tasks.id_of(e)),
        }
        Ok(())
    }

    /// The open request of a thread, if probes report it.
    fn probe_request(&self, task: u32) -> Option<Slot> {
        self.tasks.open_request(task).filter(|&slot| self.requests[slot].probe.is_some())
    }

    fn probe_enter(&mut self, e: &Event, probe: &Probe, out: &mut Out<'_>) -> Result<()> {
        let Probe::SyncEnter { function, whole_fs, dev, ino, path, fs, datasync, .. } = *probe else { return Ok(()) };
        let task = self.tasks.id_of(e);
        if let Some(slot) = self.tasks.open_request(task) {
            let open = &mut self.requests[slot];
            match &mut open.probe {
                Some(state) if state.is_inner(function, dev) => {
                    // The outer function gives the bounds. The inner one is that of the file system which has the data.
                    state.functions.push((function, dev, ino));
                    let row = &mut open.row;
                    if ino != 0 && !whole_fs {
                        (row.dev, row.ino) = (dev, ino);
                    }
                    if fs.is_some() {
                        row.fs = fs;
                        row.waits_known = reported_waits(out.names.get(fs), whole_fs);
                    }
                    if !row.path.is_some() {
                        row.path = path;
                    }
                    row.datasync = row.datasync.or(datasync);
                    return Ok(());
                }
                None if open.row.start.is_some() => {
                    *self.probes.ignored.entry(task).or_default() += 1;
                    self.count(Reason::Duplicate, e.ts, self.location(), || "the sync function's start".to_owned());
                    return Ok(());
                }
                _ => {}
            }
        }
        let slot = self.open_request(e, NO_ID, out)?;
        self.requests.in_flight += 1;
        let in_flight = self.requests.in_flight;
        let open = &mut self.requests[slot];
        open.probe = Some(ProbeRequest { functions: vec![(function, dev, ino)], whole_fs, ..ProbeRequest::default() });
        let row = &mut open.row;
        (row.start, row.path, row.fs, row.ino, row.dev) = (Some(e.ts), path, fs, ino, dev);
        row.datasync = datasync;
        row.waits_known = reported_waits(out.names.get(fs), whole_fs);
        row.in_flight.0 = in_flight;
        let sync_id = row.sync_id;
        self.take_call(task, slot);
        let requests = &self.requests;
        self.probes.open.retain(|&(slot, id)| requests.is_open(slot, id));
        self.probes.open.push((slot, sync_id));
        Ok(())
    }

    fn probe_exit(&mut self, e: &Event, ret: i64, out: &mut Out<'_>) -> Result<()> {
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
            let slot = self.open_orphan(e, NO_ID, out)?;
            self.requests[slot].probe = Some(ProbeRequest::default());
            return self.end_request(e, slot, Some(ret), out);
        };
        if let Some(state) = &mut self.requests[slot].probe
            && state.functions.len() > 1
        {
            // The files of all functions stay those of the request.
            let (_, dev, ino) = state.functions.remove(state.functions.len() - 1);
            state.functions[0] = if ino == 0 { state.functions[0] } else { (state.functions[0].0, dev, ino) };
            return Ok(());
        }
        self.end_request(e, slot, Some(ret), out)
    }

    fn folio(&self, e: &Event, dev: Dev, ino: u64, (offset, len): (u64, u64)) -> Folio {
        let task = self.tasks.id_of(e);
        let owner = self.probe_request(task).map(|slot| (slot, self.requests[slot].row.sync_id));
        Folio { ts: e.ts, owner, task, dev, ino, offset, len }
    }

    fn probe_folio(&mut self, address: u64, folio: Folio, is_page: bool) {
        self.probes.sees_folios = true;
        if self.probes.filling.len() >= MAX_FILLING {
            self.probes.filling.clear();
        }
        let filling = self.probes.filling.entry(address).or_default();
        if is_page && std::mem::take(&mut filling.may_repeat) && filling.folios.last().is_some_and(|f| f.len == folio.len)
        {
            return;
        }
        filling.may_repeat = !is_page;
        filling.folios.push(folio);
    }

    fn probe_submit(
        &mut self,
        e: &Event,
        address: u64,
        (dev, sector): (Dev, i64),
        bytes: u64,
        role: BioRole,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        let filling = self.probes.filling.remove(&address);
        if role == BioRole::Read {
            return Ok(());
        }
        self.probes.sees_bios = true;
        let what = || format!("bio 0x{address:x}");
        if let Some(before) = self.bios.in_flight_at(address) {
            let before_row = &self.bios[before].row;
            if !self.bios[before].by_probe {
                self.count(Reason::Duplicate, e.ts, self.location(), what);
                return Ok(());
            }
            let end = before_row.sector.saturating_add_unsigned(before_row.extent.bytes / SECTOR_BYTES);
            if before_row.dev == dev && before_row.sector < sector && sector < end {
                // The block layer submits what it has not yet split off.
                self.count(Reason::Remapped, e.ts, self.location(), what);
                return Ok(());
            }
            self.give_up_bio(before, out)?;
        }
        let folios = filling.as_ref().map_or(&[][..], |filling| folios_of(&filling.folios, bytes));
        match role {
            BioRole::Copy => *self.probes.copies.entry(task).or_default() += 1,
            BioRole::Flush => {
                self.probe_flush(e, task, address);
                return Ok(());
            }
            _ => {}
        }
        if role == BioRole::Copy || role == BioRole::Chained && folios.is_empty() {
            self.count(Reason::Remapped, e.ts, self.location(), what);
            return Ok(());
        }
        self.unsubmitted.end();
        let parts_left = if role == BioRole::Original { self.probes.copies.remove(&task).unwrap_or(0) } else { 0 };
        let shares = self.shares(e, role, folios, out.names);
        let is_shared = shares.len() > 1;
        let mut last_share = None;
        for (request, folios) in shares {
            let slot = self.open_bio_of(e, NO_ID, address, request);
            let bytes = if is_shared { folios.iter().map(|folio| folio.len).sum() } else { bytes };
            let bio = &mut self.bios[slot];
            (bio.by_probe, bio.parts_left, bio.other_share) = (true, parts_left, last_share);
            last_share = Some((slot, bio.row.bio_id));
            bio.row.first_event = folios.first().map_or(e.ts, |folio| folio.ts.min(e.ts));
            bio.row.extent = extent_of(&folios, bytes);
            add_ranges(&mut bio.ranges, &folios);
            self.begin_flight(e, slot, address, (dev, sector));
            if request != NO_SLOT {
                self.add_to_request(request, slot, &folios);
            }
        }
        Ok(())
    }

    /// Adds a bio to the sums of its request.
    fn add_to_request(&mut self, request: Slot, bio: Slot, folios: &[Folio]) {
        let extent = self.bios[bio].row.extent;
        let open = &mut self.requests[request];
        add_ranges(&mut open.ranges, folios);
        let sum = &mut open.row.extent;
        sum.bytes += extent.bytes;
        sum.folios += extent.folios;
        sum.of_bios |= extent.of_bios;
        sum.offsets_unknown |= extent.offsets_unknown;
        let is_own = open.probe.as_ref().is_some_and(|state| folios.iter().any(|folio| state.syncs(folio)));
        if !is_own {
            self.infer(request, Some(bio));
        }
    }

    /// The requests that a bio is of, with the folios of each. f2fs puts folios of several syncs into one bio.
    fn shares(&mut self, e: &Event, role: BioRole, folios: &[Folio], names: &Names) -> Vec<(Slot, Vec<Folio>)> {
        let task = self.tasks.id_of(e);
        if role == BioRole::NotPageCache {
            if let Some(state) = self.probe_request(task).and_then(|slot| self.requests[slot].probe.as_mut()) {
                state.has_journal_bio = true;
            }
            return vec![(NO_SLOT, Vec::new())];
        }
        if folios.is_empty() {
            // A bio of page cache has folios, if probes report these and it is not a part of another bio.
            let is_page_cache = !self.probes.sees_folios || role != BioRole::PageCache;
            let request = self.probe_request(task).filter(|_| is_page_cache);
            return vec![(request.unwrap_or(NO_SLOT), Vec::new())];
        }
        let mut shares: Vec<(Slot, Vec<Folio>)> = Vec::new();
        let mut of_submitter = None;
        for folio in folios {
            let filler = folio.owner.filter(|&(slot, id)| self.requests.is_open(slot, id)).map(|(slot, _)| slot);
            let request = filler.unwrap_or_else(|| {
                // The thread that added it was in no sync, or is no longer.
                let is_own = folio.task == task;
                let find = || self.request_of_submitter(e, role, folios, names).unwrap_or(NO_SLOT);
                if is_own { *of_submitter.get_or_insert_with(find) } else { NO_SLOT }
            });
            match shares.iter_mut().find(|(other, _)| *other == request) {
                Some((_, of_request)) => of_request.push(*folio),
                None => shares.push((request, vec![*folio])),
            }
        }
        shares
    }

    /// The request for which a thread submits a bio that it has filled.
    fn request_of_submitter(&self, e: &Event, role: BioRole, folios: &[Folio], names: &Names) -> Option<Slot> {
        let task = self.tasks.id_of(e);
        self.probe_request(task).or_else(|| match self.probes.work.get(&task) {
            Some(&(dev, true)) => self.only_open(|open, state| state.whole_fs && open.row.dev == dev),
            Some(_) => None,
            None if role == BioRole::PageCache || !names.get(e.comm).starts_with(WORKER) => None,
            None => self.request_of_worker(folios, names),
        })
    }

    /// The sync for which a worker of btrfs writes: the only one that is open, or that writes its log.
    fn request_of_worker(&self, folios: &[Folio], names: &Names) -> Option<Slot> {
        let is_open = |open: &OpenRequest| names.get(open.row.fs) == b"btrfs";
        let writes_log = |open: &OpenRequest| open.open_waits.is_waiting(WaitKind::Commit);
        self.only_open(|open, state| {
            is_open(open)
                && folios.iter().all(|folio| match folio.ino {
                    // Compressed data are no page cache of an inode.
                    0 => true,
                    BTRFS_TREES => writes_log(open),
                    _ => state.syncs(folio),
                })
        })
    }

    /// The open request that probes report and that fulfils a condition, if it is the only one.
    fn only_open(&self, condition: impl Fn(&OpenRequest, &ProbeRequest) -> bool) -> Option<Slot> {
        let open = self.probes.open.iter().filter(|&&(slot, id)| self.requests.is_open(slot, id));
        let mut fitting = open.map(|&(slot, _)| slot).filter(|&slot| {
            let open = &self.requests[slot];
            open.probe.as_ref().is_some_and(|state| condition(open, state))
        });
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// A file system sends a flush, and waits for it later.
    fn probe_flush(&mut self, e: &Event, task: u32, address: u64) {
        let Some(slot) = self.probe_request(task) else { return };
        self.has_waits = true;
        self.begin_wait(e, slot, WaitKind::Flush, 0);
        self.probes.flushes.insert(address, (slot, self.requests[slot].row.sync_id));
    }

    fn probe_end(
        &mut self,
        e: &Event,
        address: u64,
        (error, remaining): (Option<i32>, u32),
        parent: u64,
        out: &mut Out<'_>,
    ) -> Result<()> {
        if let Some((slot, id)) = self.probes.flushes.remove(&address) {
            if self.requests.is_open(slot, id) {
                self.end_wait(e, slot, WaitKind::Flush, 0);
            }
            return Ok(());
        }
        let found = self.bios.in_flight_at(address).filter(|&slot| self.bios[slot].row.submit <= Some(e.ts));
        if let Some(slot) = found {
            let bio = &mut self.bios[slot];
            if !bio.by_probe {
                return Ok(());
            }
            let first_error = bio.row.error.filter(|&error| error != 0);
            bio.row.error = first_error.or(error);
            if remaining > 1 {
                bio.parts_left = remaining - 1;
                return Ok(());
            }
            if remaining == 0 && bio.parts_left > 0 {
                bio.parts_left -= 1;
                return Ok(());
            }
            let error = bio.row.error;
            return self.end_flight(e, slot, error, out);
        }
        // It was filled for a read, or its submit was lost.
        self.probes.filling.remove(&address);
        let is_partly_complete = |&slot: &Slot| self.bios[slot].by_probe && self.bios[slot].parts_left > 0;
        if let Some(slot) = self.bios.in_flight_at(parent).filter(|slot| parent != 0 && is_partly_complete(slot)) {
            let bio = &mut self.bios[slot];
            bio.parts_left -= 1;
            bio.row.error = bio.row.error.filter(|&error| error != 0).or(error);
            if bio.parts_left == 0 {
                let error = bio.row.error;
                return self.end_flight(e, slot, error, out);
            }
            return Ok(());
        }
        self.count(Reason::OtherCompletion, e.ts, self.location(), || format!("completion of bio 0x{address:x}"));
        Ok(())
    }

    fn probe_wait_start(&mut self, e: &Event, site: WaitSite, transaction: u64) {
        self.has_waits = true;
        let Some(slot) = self.probe_request(self.tasks.id_of(e)) else { return };
        let wait = site.wait();
        let dev = self.requests[slot].row.dev;
        let others_commit = wait == WaitKind::FastCommit && self.is_in_fast_commit(dev);
        let open = &mut self.requests[slot];
        if let Some(fs) = site.file_system()
            && !open.row.fs.is_some()
        {
            open.row.waits_known = reported_waits(fs.as_bytes(), open.row.ino == 0);
        }
        let Some(state) = &mut open.probe else { return };
        if open.open_waits.is_waiting(wait) {
            // f2fs sends a flush in the function in which it waits for one.
            state.inner_waits[wait as usize] += 1;
            return;
        }
        if wait == WaitKind::FastCommit {
            (state.has_journal_bio, state.other_in_fast_commit) = (false, others_commit);
        }
        self.begin_wait(e, slot, wait, transaction);
    }

    /// Whether a request of a device is in a fast commit.
    fn is_in_fast_commit(&self, dev: Dev) -> bool {
        let mut open = self.probes.open.iter().filter(|&&(slot, id)| self.requests.is_open(slot, id));
        open.any(|&(slot, _)| {
            let open = &self.requests[slot];
            open.row.dev == dev && open.open_waits.is_waiting(WaitKind::FastCommit)
        })
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
        let Some(at) = self.end_wait(e, slot, wait, 0) else {
            return self.lose(Reason::UnmatchedWait, e.ts, out, || format!("end of a {}", wait.name()));
        };
        let open = &mut self.requests[slot];
        let Some(state) = open.probe.as_mut().filter(|_| wait == WaitKind::FastCommit) else { return Ok(()) };
        // The function makes a fast commit, waits for that of another thread, or asks for a full commit and waits for it.
        if open.row.waits[at + 1..].iter().any(|inner| inner.wait == WaitKind::CommitWait) {
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

/// Which of the folios that were given to a bio of this size are in it. Adding the last one may have failed for lack of room. The first ones
/// may be of a read that used the address before. None if the sizes do not fit.
fn folios_of(folios: &[Folio], bytes: u64) -> &[Folio] {
    for failed in 0..=1 {
        let Some(end) = folios.len().checked_sub(failed) else { break };
        let mut sum = 0;
        for begin in (0..end).rev() {
            sum += folios[begin].len;
            if sum == bytes {
                return &folios[begin..end];
            }
            if sum > bytes {
                break;
            }
        }
    }
    &[]
}

/// The extent of a bio of this size, by its folios.
fn extent_of(folios: &[Folio], bytes: u64) -> Extent {
    Extent {
        bytes,
        folios: folios.len() as u64,
        of_bios: folios.is_empty(),
        of_probes: true,
        offsets_unknown: folios.iter().any(|folio| folio.offset == NO_OFFSET),
        ..Extent::default()
    }
}

fn add_ranges(ranges: &mut Ranges, folios: &[Folio]) {
    for folio in folios.iter().filter(|folio| folio.offset != NO_OFFSET) {
        ranges.add(folio.offset, folio.len);
    }
}
