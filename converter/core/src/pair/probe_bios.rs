//! Bios that probes report. A bio is of the sync in which its thread is.
//!
//! Its folios are kept until its submit, because only then its size is known, and what it writes: page cache, or the journal.

use super::probe_request::Folio;
use super::requests::OpenRequest;
use super::{LINGER_NS, Map, NO_SLOT, Out, Pairer, Slot};
use crate::error::Result;
use crate::event::bio_flags::BioFlags;
use crate::event::probe::{BioRole, NO_OFFSET};
use crate::event::{Dev, Event, NO_ID, WaitKind};
use crate::losses::Reason;
use crate::names::Names;
use crate::rows::{Extent, Ranges};

/// Bios that are being filled. Those of reads are among them, and their submits may not be recorded.
const MAX_FILLING: usize = 65_536;
/// Folios that were added to them. Without events of submits, nothing else removes them.
const MAX_FOLIOS: usize = 1 << 18;
/// The inode of a file system on btrfs whose page cache is its trees.
const BTRFS_TREES: u64 = 1;
/// What the names of the kernel's workers begin with.
const WORKER: &[u8] = b"kworker/";
const SECTOR_BYTES: u64 = 512;

/// A bio to which folios were added.
#[derive(Debug, Default)]
struct Filling {
    folios: Vec<Folio>,
    /// The last folio was reported by the function for folios, which may call the one for pages.
    may_repeat: bool,
}

/// The bios that are being filled, by address.
#[derive(Debug, Default)]
pub(super) struct FillingBios {
    by_address: Map<u64, Filling>,
    folios: usize,
}

impl FillingBios {
    fn add(&mut self, address: u64, folio: Folio, is_page: bool) {
        if self.by_address.len() >= MAX_FILLING || self.folios >= MAX_FOLIOS {
            self.by_address.clear();
            self.folios = 0;
        }
        let filling = self.by_address.entry(address).or_default();
        if is_page
            && std::mem::take(&mut filling.may_repeat)
            && filling.folios.last().is_some_and(|f| f.len == folio.len)
        {
            return;
        }
        filling.may_repeat = !is_page;
        filling.folios.push(folio);
        self.folios += 1;
    }

    fn take(&mut self, address: u64) -> Vec<Folio> {
        let folios = self.by_address.remove(&address).map(|filling| filling.folios).unwrap_or_default();
        self.folios -= folios.len();
        folios
    }

    /// Forgets bios that were filled long ago. They were reads, or their submit was lost.
    pub(super) fn expire(&mut self, now: i64) {
        let is_recent = |folio: &Folio| now.saturating_sub(folio.ts) <= LINGER_NS;
        self.by_address.retain(|_, filling| filling.folios.last().is_some_and(is_recent));
        self.folios = self.by_address.values().map(|filling| filling.folios.len()).sum();
    }
}

impl Pairer {
    pub(super) fn probe_folio(
        &mut self,
        e: &Event,
        address: u64,
        (dev, ino): (Dev, u64),
        (offset, len): (u64, u64),
        is_page: bool,
    ) {
        self.probes.sees_folios = true;
        let task = self.tasks.id_of(e);
        let owner = self.probe_request(task).map(|slot| (slot, self.requests[slot].row.sync_id));
        self.probes.filling.add(address, Folio { ts: e.ts, owner, task, dev, ino, offset, len }, is_page);
    }

    pub(super) fn probe_submit(
        &mut self,
        e: &Event,
        address: u64,
        (dev, sector): (Dev, i64),
        (bytes, flags): (u64, Option<BioFlags>),
        role: BioRole,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let task = self.tasks.id_of(e);
        let filled = self.probes.filling.take(address);
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
        let folios = folios_of(&filled, bytes);
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
        let parts_left = if role == BioRole::Original { self.probes.copies.remove(&task).unwrap_or(0) } else { 0 };
        let shares = self.shares(e, role, (folios, &filled), out.names);
        let is_shared = shares.len() > 1;
        let mut last_share = None;
        for (request, folios) in shares {
            let slot = self.open_bio_of(e, NO_ID, address, request);
            let bytes = if is_shared { folios.iter().map(|folio| folio.len).sum() } else { bytes };
            let bio = &mut self.bios[slot];
            (bio.by_probe, bio.parts_left, bio.other_share) = (true, parts_left, last_share);
            bio.file =
                folios.first().map(|folio| (folio.dev, folio.ino)).filter(|&(dev, ino)| dev.is_known() && ino != 0);
            for folio in &folios {
                bio.pages.add(folio.dev, folio.ino);
            }
            bio.row.flags = flags;
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

    /// The requests that a bio is of, with the folios of each. f2fs puts folios of several syncs into one bio. `filled` are the folios that were
    /// given to it, `folios` those that are in it.
    fn shares(
        &mut self,
        e: &Event,
        role: BioRole,
        (folios, filled): (&[Folio], &[Folio]),
        names: &Names,
    ) -> Vec<(Slot, Vec<Folio>)> {
        let task = self.tasks.id_of(e);
        if role == BioRole::NotPageCache {
            if let Some(state) = self.probe_request(task).and_then(|slot| self.requests[slot].probe.as_mut()) {
                state.has_journal_bio = true;
            }
            return vec![(NO_SLOT, Vec::new())];
        }
        if folios.is_empty() {
            // A bio of page cache has folios, if probes report these and it is not a part of another bio.
            let is_page_cache = !filled.is_empty() || !self.probes.sees_folios || role != BioRole::PageCache;
            let request = self.probe_request(task).filter(|_| is_page_cache);
            return vec![(request.unwrap_or(NO_SLOT), Vec::new())];
        }
        let mut shares: Vec<(Slot, Vec<Folio>)> = Vec::new();
        let mut places: Map<Slot, usize> = Map::default();
        let mut of_submitter = None;
        for folio in folios {
            let filler = folio.owner.filter(|&(slot, id)| self.requests.is_open(slot, id)).map(|(slot, _)| slot);
            let request = filler.unwrap_or_else(|| {
                // The thread that added it was in no sync, or is no longer.
                let is_own = folio.task == task;
                let find = || self.request_of_submitter(e, role, folios, names).unwrap_or(NO_SLOT);
                if is_own { *of_submitter.get_or_insert_with(find) } else { NO_SLOT }
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

    pub(super) fn probe_end(
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
        self.probes.filling.take(address);
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
