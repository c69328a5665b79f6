//! Bios that probes report. A bio is of the sync in which its thread is.
//!
//! Its folios are kept until its submit, because only then its size is known, and what it writes: page cache, or the journal.

use super::stores::bios::EarlyComplete;
use super::stores::probe_request::{Folio, ProbeRequest};
use super::stores::requests::OpenRequest;
use super::stores::slots::{BioSlot, RequestSlot};
use super::{Out, Pairer};
use crate::collections::Map;
use crate::error::Result;
use crate::event::bio_flags::BioFlags;
use crate::event::place::Place;
use crate::event::probe::{BioRole, NO_OFFSET};
use crate::event::{Dev, Event, Kind, NO_ID, NO_SECTOR, Op, UNKNOWN_TASK, WaitKind};
use crate::losses::Reason;
use crate::names::{NameId, Names};
use crate::rows::{Confidence, Extent, Ranges};

/// The inode of a file system on btrfs whose page cache is its trees.
const BTRFS_TREES: u64 = 1;

/// The prefix of the names of the kernel's workers.
const WORKER: &[u8] = b"kworker/";

const SECTOR_BYTES: u64 = 512;

/// A bio has room for so many folios (`BIO_MAX_VECS`).
const MIN_FULL: usize = 256;

impl Pairer {
    pub(super) fn probe_folio(
        &mut self,
        e: &Event,
        address: u64,
        (dev, ino): (Dev, u64),
        (offset, len): (u64, u64),
        is_page: bool,
        out: &mut Out<'_>,
    ) -> Result<()> {
        self.probes.sees_folios = true;
        self.probes.apart.remove(&address);
        // The kernel frees a bio before it uses the address again, so the completion of the earlier bio was lost.
        if let Some(before) = self.bios.in_flight_at(address).filter(|&slot| self.bios[slot].by_probe) {
            self.give_up_bio(before, out)?;
        }
        let task = self.tasks.id_of(e);
        let request = self.probe_request(task).or_else(|| self.request_of_work(task));
        let owner = request.map(|slot| (slot, self.requests[slot].row.sync_id));
        self.probes.filling.add(address, Folio { ts: e.ts, owner, task, dev, ino, offset, len }, is_page);
        if let Some((slot, _)) = owner
            && let Some(state) = &mut self.requests[slot].probe
        {
            let filling = &self.probes.filling;
            state.note_filled(address, |address| filling.contains(address));
        }
        Ok(())
    }

    pub(super) fn probe_submit(
        &mut self,
        e: &Event,
        address: u64,
        place: Place,
        (bytes, flags): (u64, Option<BioFlags>),
        role: BioRole,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        let filled = self.probes.filling.take(address);
        self.probes.apart.remove(&address);
        let what = || format!("bio 0x{address:x}");
        let before = self.bios.in_flight_at(address);
        if let Some(before) = before.filter(|&slot| self.bios[slot].by_probe) {
            if self.is_rest_of(before, place, bytes) {
                // The block layer submits what it has not yet split off.
                self.count(Reason::Remapped, e.ts, self.location(), what);
                return Ok(());
            }
            self.give_up_bio(before, out)?;
        } else if (before.is_some() || self.bios.filling_at(address).is_some()) && role != BioRole::Read {
            // The patch's events report it, from its first folio on.
            self.count(Reason::Duplicate, e.ts, self.location(), what);
            return Ok(());
        }
        if role == BioRole::Read {
            self.probes.keep_apart(address);
            return Ok(());
        }
        // A flush does not show that bios with data are recorded.
        if role == BioRole::Flush {
            self.begin_probe_flush(e, address, place.dev, flags);
            return self.leave_folios(address, &filled, None, out);
        }
        self.probes.sees_bios = true;
        self.release_requests(out)?;
        let used = folios_of(&filled, bytes);
        let (left, folios) = (&filled[..used.start], &filled[used.clone()]);
        match role {
            BioRole::Mirror => {
                *self.probes.copies.entry(task).or_default() += 1;
                self.begin_mirror(e, address, place, (bytes, flags));
                return Ok(());
            }
            BioRole::SentFlush => {
                self.probe_flush(e, task, address);
                self.begin_probe_flush(e, address, place.dev, flags);
                return self.leave_folios(address, &filled, None, out);
            }
            _ => {}
        }
        if role == BioRole::Copy || role == BioRole::Chained && folios.is_empty() {
            self.probes.keep_apart(address);
            self.count(Reason::Remapped, e.ts, self.location(), what);
            return Ok(());
        }
        let submitter = self.probe_request(task);
        if matches!(role, BioRole::MaybePart | BioRole::Original) {
            let parts = self.probes.parts.entry(task).or_default();
            let left_bytes: u64 = left.iter().map(|folio| folio.len).sum();
            if filled.is_empty() {
                *parts += bytes;
            } else if std::mem::take(parts) != left_bytes && !folios.is_empty() {
                self.leave_folios(address, left, None, out)?;
            }
        } else if folios.is_empty() {
            self.leave_folios(address, &filled, submitter, out)?;
        } else {
            self.leave_folios(address, left, None, out)?;
        }
        let copies = if role == BioRole::Original { self.probes.copies.remove(&task).unwrap_or(0) } else { 0 };
        // It has at least one copy, and ends once more for that.
        let lacks_copies = role == BioRole::Original && copies == 0;
        let parts_left = copies.max(u32::from(lacks_copies));
        let has_folios = role == BioRole::PageCache || role != BioRole::NotPageCache && !filled.is_empty();
        let is_unnamed = |folio: &Folio| folio.ino == 0;
        self.probes.sees_unnamed_folios |= role == BioRole::PageCache && folios.iter().any(is_unnamed);
        let are_folios_lost = has_folios && folios.is_empty() && self.probes.sees_folios;
        if are_folios_lost {
            self.count(Reason::FoliosMissing, e.ts, self.location(), || format!("bio 0x{address:x} of {bytes} bytes"));
        }
        let shares = self.shares(e, role, (folios, &filled), out.names);
        let is_doubtful = has_folios && self.doubt_writer(e, &filled, out.names);
        let is_shared = shares.len() > 1;
        let mut last_share = None;
        for (request, folios) in shares {
            let share = if is_shared { folios.iter().map(|folio| folio.len).sum() } else { bytes };
            let slot = self.open_probe_bio(e, address, request, &folios, share);
            let bio = &mut self.bios[slot];
            (bio.parts_left, bio.other_share, bio.size) = (parts_left, last_share, bytes);
            bio.lacks_copies = lacks_copies;
            bio.is_background = role == BioRole::NotPageCache;
            // The patch reports all bios of page cache.
            bio.is_of_patch = role == BioRole::PageCache;
            bio.is_doubtful = is_doubtful && request.is_none();
            bio.row.origin_unknown = (bio.row.origin_unknown || bio.is_doubtful) && !bio.is_background;
            bio.row.flags = flags;
            bio.row.extent.offsets_unknown |= are_folios_lost;
            last_share = Some((slot, bio.row.bio_id));
            self.begin_flight(e, slot, address, place);
            if request.is_some() {
                self.add_to_request(request, slot, &folios);
            }
        }
        Ok(())
    }

    /// Folios were added at an address, and are not in the bio that is submitted there. They may be of a read that used the address before, or of a
    /// bio whose submit and completion were lost. `except`: a request whose folios may be in this bio all the same.
    fn leave_folios(
        &mut self,
        address: u64,
        left: &[Folio],
        except: Option<RequestSlot>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let mut own: Vec<Folio> = Vec::new();
        for folio in left {
            let owner = folio.owner.filter(|&(slot, id)| self.requests.is_open(slot, id)).map(|(slot, _)| slot);
            let Some(request) = owner.filter(|&slot| Some(slot) != except) else { continue };
            if self.is_page_cache(folio, request, false, out.names) {
                own.push(*folio);
            } else if self.is_page_cache(folio, request, true, out.names) {
                self.requests[request].row.bio_lost = true;
            }
        }
        // No sync reads what it syncs.
        self.probe_never_submitted(address, &own, None, out)?;
        Ok(())
    }

    /// Opens a copy of the next bio of the thread. Its device writes it, but the page cache counts only once.
    fn begin_mirror(&mut self, e: &Event, address: u64, target: Place, (bytes, flags): (u64, Option<BioFlags>)) {
        let slot = self.open_probe_bio(e, address, RequestSlot::NONE, &[], bytes);
        let bio = &mut self.bios[slot];
        (bio.size, bio.is_background) = (bytes, true);
        (bio.row.origin_unknown, bio.row.flags) = (false, flags);
        self.begin_flight(e, slot, address, target);
    }

    /// Opens a flush without data. It is of the sync in which its thread is, and no bio that writes back. Which request of the block layer
    /// flushes for it is not known: each queue of a device has its own, and one may flush for several bios.
    fn begin_probe_flush(&mut self, e: &Event, address: u64, dev: Dev, flags: Option<BioFlags>) {
        // Without flags, nothing distinguishes its row from that of a write.
        if flags.is_none() {
            self.probes.keep_apart(address);
            return;
        }
        let request = self.tasks.open_request(self.tasks.id_of(e)).unwrap_or(RequestSlot::NONE);
        let slot = self.open_probe_bio(e, address, request, &[], 0);
        self.bios[slot].row.flags = flags;
        if request.is_some() {
            self.requests[request].row.bios -= 1;
        }
        self.begin_flight(e, slot, address, Place { dev, sector: NO_SECTOR });
    }

    /// Whether a submit is of the part of a bio in flight that the block layer has not yet split off. Otherwise it is of another bio, and the
    /// completion of the one in flight was lost.
    fn is_rest_of(&self, before: BioSlot, Place { dev, sector }: Place, bytes: u64) -> bool {
        let bio = &self.bios[before];
        let end = |sector: i64, bytes: u64| sector.saturating_add_unsigned(bytes / SECTOR_BYTES);
        let is_within = bio.row.sector < sector && end(sector, bytes) == end(bio.row.sector, bio.size);
        // A sync waits for its bios.
        let is_over = bio.request.is_some() && self.requests[bio.request].over;
        bio.row.dev == dev && is_within && !is_over
    }

    /// Opens a bio with these folios. `bytes` is its size.
    fn open_probe_bio(
        &mut self,
        e: &Event,
        address: u64,
        request: RequestSlot,
        folios: &[Folio],
        bytes: u64,
    ) -> BioSlot {
        // Who has filled it is in the sync, not who submits it.
        let mut fillers: Vec<u32> = folios.iter().map(|folio| folio.task).collect();
        fillers.sort_unstable();
        fillers.dedup();
        if fillers.is_empty() {
            fillers.push(self.tasks.id_of(e));
        }
        let is_unknown = request.is_none() && fillers.iter().any(|&task| self.tasks.may_be_in_sync(task));
        let slot = self.open_bio_of(e, NO_ID, address, request);
        let bio = &mut self.bios[slot];
        bio.by_probe = true;
        bio.fillers = if request.is_none() { fillers } else { Vec::new() };
        bio.row.origin_unknown = is_unknown;
        bio.file = folios.first().map(|folio| (folio.dev, folio.ino)).filter(|&(dev, ino)| dev.is_known() && ino != 0);
        for folio in folios {
            bio.pages.add(folio.dev, folio.ino);
        }
        bio.row.first_event = folios.first().map_or(e.ts, |folio| folio.ts.min(e.ts));
        bio.row.extent = extent_of(folios, bytes);
        add_ranges(&mut bio.ranges, folios);
        slot
    }

    /// Opens and closes the bios to which these folios were added and whose submit was lost. `complete` is the completion at their address, with
    /// its error: without it, only folios of the file of a sync that has waited for them say that there was a submit. Returns whether there is
    /// a bio.
    fn probe_never_submitted(
        &mut self,
        address: u64,
        filled: &[Folio],
        complete: Option<(i64, Option<i32>)>,
        out: &mut Out<'_>,
    ) -> Result<bool> {
        let mut of_requests: Vec<(RequestSlot, Vec<Folio>)> = Vec::new();
        for folio in filled {
            let owner = folio.owner.filter(|&(slot, id)| self.requests.is_open(slot, id));
            let request = owner.map_or(RequestSlot::NONE, |(slot, _)| slot);
            if !self.is_page_cache(folio, request, complete.is_some(), out.names) {
                continue;
            }
            match of_requests.iter_mut().find(|(of, _)| *of == request) {
                Some((_, folios)) => folios.push(*folio),
                None => of_requests.push((request, vec![*folio])),
            }
        }
        for (request, folios) in &of_requests {
            let (tid, pid, comm) = match *request {
                RequestSlot::NONE => (UNKNOWN_TASK, UNKNOWN_TASK, NameId::NONE),
                request => {
                    let row = &self.requests[request].row;
                    (row.tid, row.pid, row.comm)
                }
            };
            let e = Event { ts: self.now, tid, pid, comm, line: 0, kind: Kind::Other };
            let bytes = folios.iter().map(|folio| folio.len).sum();
            let slot = self.open_probe_bio(&e, address, *request, folios, bytes);
            let location = self.location();
            self.bios[slot].early_complete = complete.map(|(ts, error)| EarlyComplete { ts, location, error });
            if request.is_some() {
                self.add_to_request(*request, slot, folios);
            }
            self.give_up_bio(slot, out)?;
        }
        Ok(!of_requests.is_empty())
    }

    /// Whether a folio in a bio without a submit is of a file, and not of the log of a file system, or of the bio of a driver. `is_complete`: the
    /// bio has written something.
    fn is_page_cache(&self, folio: &Folio, request: RequestSlot, is_complete: bool, names: &Names) -> bool {
        if request.is_none() {
            return is_complete && folio.ino != 0;
        }
        let open = &self.requests[request];
        let is_own = open.probe.as_ref().is_some_and(|state| state.syncs(folio));
        let is_on_device = !folio.dev.is_known() || folio.dev == open.row.dev;
        let is_of_file = || match folio.ino {
            // Before the first bio, nothing says whether the folios of files are named.
            0 => self.probes.sees_unnamed_folios || !self.probes.sees_bios || names.get(open.row.fs) == b"f2fs",
            _ => is_on_device,
        };
        is_own || is_complete && is_of_file()
    }

    /// Finds the bios of a request that ends to which its thread has added folios and whose submit was lost: it has waited for them.
    pub(super) fn find_never_submitted(&mut self, request: RequestSlot, out: &mut Out<'_>) -> Result<()> {
        let open = &mut self.requests[request];
        let Some(state) = &mut open.probe else { return Ok(()) };
        let filled = std::mem::take(&mut state.filled);
        // It may leave a bio to be filled further.
        if open.row.call.is_some_and(|call| call.op == Op::SyncFileRange) {
            return Ok(());
        }
        let owner = Some((request, open.row.sync_id));
        for address in filled {
            let has = |is_complete| {
                let mut folios = self.probes.filling.of(address, owner);
                folios.any(|folio| self.is_page_cache(folio, request, is_complete, out.names))
            };
            let (has_own, has_other) = (has(false), has(true));
            if has_own {
                let folios = self.probes.filling.take_of(address, owner);
                self.probe_never_submitted(address, &folios, None, out)?;
            } else if has_other {
                // It may have left the bio to be filled further, as f2fs does with what is of no file. Else it has waited for it.
                self.requests[request].row.bio_lost = true;
            }
        }
        Ok(())
    }

    /// Adds a bio to the sums of its request.
    fn add_to_request(&mut self, request: RequestSlot, bio: BioSlot, folios: &[Folio]) {
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

    /// The requests that a bio is of, with the folios of each. f2fs puts folios of several syncs into one bio. `filled` are the folios that were
    /// given to it, `folios` those that are in it.
    fn shares(
        &mut self,
        e: &Event,
        role: BioRole,
        (folios, filled): (&[Folio], &[Folio]),
        names: &Names,
    ) -> Vec<(RequestSlot, Vec<Folio>)> {
        let task = self.tasks.id_of(e);
        if role == BioRole::NotPageCache {
            if let Some(state) = self.probe_request(task).and_then(|slot| self.requests[slot].probe.as_mut()) {
                state.has_journal_bio = true;
            }
            return vec![(RequestSlot::NONE, Vec::new())];
        }
        if folios.is_empty() {
            // Nothing says of what it is, except that probes report no folio of it.
            let is_other = filled.is_empty() && self.probes.sees_folios && role == BioRole::Unknown;
            let request = match role {
                BioRole::PageCache => self.request_of_submitter(e, role, folios, names),
                _ => self.probe_request(task),
            };
            return vec![(request.filter(|_| !is_other).unwrap_or(RequestSlot::NONE), Vec::new())];
        }
        let mut shares: Vec<(RequestSlot, Vec<Folio>)> = Vec::new();
        let mut places: Map<RequestSlot, usize> = Map::default();
        let mut of_submitter = None;
        for folio in folios {
            let filler = folio.owner.filter(|&(slot, id)| self.requests.is_open(slot, id)).map(|(slot, _)| slot);
            let request = filler.unwrap_or_else(|| {
                // The thread that added it was in no sync, or is no longer.
                let is_own = folio.task == task;
                let find = || self.request_of_submitter(e, role, folios, names).unwrap_or(RequestSlot::NONE);
                if is_own { *of_submitter.get_or_insert_with(find) } else { RequestSlot::NONE }
            });
            let place = *places.entry(request).or_insert(shares.len());
            match shares.get_mut(place) {
                Some((_, of_request)) => of_request.push(*folio),
                None => shares.push((request, vec![*folio])),
            }
        }
        shares
    }

    /// The request for which a thread submits a bio that it has filled.
    fn request_of_submitter(&self, e: &Event, role: BioRole, folios: &[Folio], names: &Names) -> Option<RequestSlot> {
        let task = self.tasks.id_of(e);
        self.probe_request(task).or_else(|| match self.probes.work.get(&task) {
            Some(_) => self.request_of_work(task),
            None if matches!(role, BioRole::PageCache | BioRole::Unknown) || !names.get(e.comm).starts_with(WORKER) => {
                None
            }
            None => self.request_of_worker(folios, names),
        })
    }

    /// The sync for which a flusher thread works, if it is the only one of its file system.
    fn request_of_work(&self, task: u32) -> Option<RequestSlot> {
        match self.probes.work.get(&task) {
            Some(&(dev, true)) => {
                self.probes.only_open(&self.requests, |open, state| state.is_whole_fs() && open.row.dev == dev)
            }
            _ => None,
        }
    }

    /// Whether a thread may submit a bio of page cache for a sync of a whole file system, although nothing in the log says so: it is a flusher
    /// thread, and the begin of its work was lost, or that of the sync. In the first case any sync of the file system that is open may lack the bio.
    fn doubt_writer(&mut self, e: &Event, folios: &[Folio], names: &Names) -> bool {
        let task = self.tasks.id_of(e);
        if self.probe_request(task).is_some() || !names.get(e.comm).starts_with(WORKER) {
            return false;
        }
        let is_open = |&&(slot, id): &&(RequestSlot, u64)| self.requests.is_open(slot, id);
        let whole = self.probes.open.iter().filter(is_open).map(|&(slot, _)| slot).filter(|&slot| {
            let open = &self.requests[slot];
            open.probe.as_ref().is_some_and(ProbeRequest::is_whole_fs)
        });
        if let Some(&(dev, for_sync)) = self.probes.work.get(&task) {
            // A sync waits for such work. The one for all file systems has no device.
            return for_sync && dev.is_known() && !whole.into_iter().any(|slot| self.requests[slot].row.dev == dev);
        }
        // Workers of btrfs write what flusher threads hand over to them.
        let is_of = |slot: RequestSlot| {
            let row = &self.requests[slot].row;
            let is_on = |folio: &Folio| !folio.dev.is_known() || folio.dev == row.dev;
            names.get(row.fs) != b"btrfs" && (folios.is_empty() || folios.iter().any(is_on))
        };
        let may_lack: Vec<RequestSlot> = whole.filter(|&slot| is_of(slot)).collect();
        for &slot in &may_lack {
            self.requests[slot].row.bio_lost = true;
        }
        !may_lack.is_empty()
    }

    /// The sync for which a worker of btrfs writes: the only one that is open, or that writes its log.
    fn request_of_worker(&self, folios: &[Folio], names: &Names) -> Option<RequestSlot> {
        let is_open = |open: &OpenRequest| names.get(open.row.fs) == b"btrfs";
        let writes_log = |open: &OpenRequest| open.open_waits.is_waiting(WaitKind::Commit);
        self.probes.only_open(&self.requests, |open, state| {
            is_open(open)
                && folios.iter().all(|folio| match folio.ino {
                    // Compressed data are no page cache of an inode.
                    0 => true,
                    BTRFS_TREES => writes_log(open),
                    _ => state.syncs(folio),
                })
        })
    }

    pub(super) fn probe_end(
        &mut self,
        e: &Event,
        address: u64,
        (error, remaining): (Option<i32>, u32),
        (parent, role): (u64, Option<BioRole>),
        out: &mut Out<'_>,
    ) -> Result<()> {
        if let Some((slot, id)) = self.probes.flushes.remove(&address)
            && self.requests.is_open(slot, id)
        {
            self.end_wait(e, slot, WaitKind::Flush, 0);
        }
        let mut found = self.bios.in_flight_at(address).filter(|&slot| self.bios[slot].row.submit <= Some(e.ts));
        if let Some(old) = found
            && self.bios[old].by_probe
            && self.was_complete_before(old, e.ts)
        {
            self.give_up_bio(old, out)?;
            found = None;
        }
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
            let (error, request) = (bio.row.error, bio.request);
            if bio.lacks_copies && remaining == 0 {
                bio.row.confidence = bio.row.confidence.max(Confidence::Inferred);
                if request.is_some() {
                    self.infer(request, None);
                }
            }
            self.probes.sees_ends = true;
            return self.end_flight(e, slot, error, out);
        }
        // btrfs fills one bio, and submits it after its mirrors: a mirror that fails at once ends a part of it before.
        if remaining > 1 && self.probes.filling.contains(address) {
            return Ok(());
        }
        // It was filled for a read, or its submit was lost.
        let filled = self.probes.filling.take(address);
        let is_of_sync = self.probe_never_submitted(address, &filled, Some((e.ts, error)), out)?;
        let whole = self.bios.in_flight_at(parent).filter(|&slot| parent != 0 && self.bios[slot].by_probe);
        if let Some(slot) = whole.filter(|&slot| self.bios[slot].parts_left > 0) {
            let bio = &mut self.bios[slot];
            bio.parts_left -= 1;
            bio.row.error = bio.row.error.filter(|&error| error != 0).or(error);
            if bio.parts_left == 0 {
                let error = bio.row.error;
                return self.end_flight(e, slot, error, out);
            }
            return Ok(());
        }
        if is_of_sync {
            return Ok(());
        }
        let is_apart = whole.is_some() || self.probes.apart.contains_key(&address);
        if is_apart && remaining <= 1 {
            self.probes.apart.remove(&address);
        }
        let may_be_page_cache =
            matches!(role, None | Some(BioRole::PageCache | BioRole::MaybePart | BioRole::Original));
        let is_journal = !filled.is_empty();
        let is_lost = !is_apart && (may_be_page_cache || role == Some(BioRole::NotPageCache));
        self.probes.unknown_ends += u64::from(is_lost);
        self.orphans.of_probes += u64::from(is_lost && may_be_page_cache && !is_journal);
        // Before, it is of what was in flight when the log began.
        let is_unmatched = is_lost && self.probes.sees_ends;
        let reason = if is_unmatched { Reason::UnmatchedComplete } else { Reason::OtherCompletion };
        self.count(reason, e.ts, self.location(), || format!("completion of bio 0x{address:x}"));
        Ok(())
    }
}

/// Which of the folios that were given to a bio of this size are in it. Adding the last one may have failed for lack of room. The first ones
/// may be of a read that used the address before. None if the sizes do not fit.
fn folios_of(folios: &[Folio], bytes: u64) -> std::ops::Range<usize> {
    let whole: u64 = folios.iter().map(|folio| folio.len).sum();
    if let [first @ .., last] = folios
        && first.len() >= MIN_FULL
        && whole - last.len == bytes
    {
        return 0..first.len();
    }
    for failed in 0..=1 {
        let Some(end) = folios.len().checked_sub(failed) else { break };
        let mut sum = 0;
        for begin in (0..end).rev() {
            sum += folios[begin].len;
            if sum == bytes {
                return begin..end;
            }
            if sum > bytes {
                break;
            }
        }
    }
    0..0
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
