//! Finds signs that events of bios were lost: sizes that do not agree, and completions that cannot belong to the bios at their address.

use super::Pairer;
use super::stores::slots::{BioSlot, RequestSlot};
use crate::event::{NO_ID, Op};
use crate::losses::Reason;
use crate::names::Names;
use crate::rows::{Confidence, Request};

/// By how much the clocks of two CPUs may differ. A completion that is so much later than the end of a sync may be from before it.
pub(super) const CLOCK_SKEW_NS: i64 = 100_000;

/// Whether a request waits for its own bios before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Yes,
    /// It may only start writeback, or it failed.
    No,
    /// Its call is not recorded.
    Unknown,
}

fn waits(row: &Request) -> Waits {
    match row.call.map(|call| call.op) {
        _ if row.failure().is_some() => Waits::No,
        Some(Op::Fsync | Op::Fdatasync | Op::Msync | Op::Write) => Waits::Yes,
        // sync() goes over each file system several times, and the first times it does not wait.
        Some(Op::SyncFileRange | Op::Sync | Op::Syncfs) => Waits::No,
        None if row.ino == 0 && row.id == NO_ID => Waits::No,
        None => Waits::Unknown,
    }
}

impl Pairer {
    /// Compares the size of a bio that its submit names, 0 if it names none, with the folios that were added to it.
    pub(super) fn compare_size(&mut self, slot: BioSlot, bytes: u64, ts: i64, names: &Names) {
        let bio = &self.bios[slot];
        let (folios, request, location) = (bio.row.extent, bio.request, self.location());
        // f2fs puts folios of several requests into one bio. On another file system, folios of another request at the address were of a bio
        // before, whose submit was lost.
        let fs = if request.is_none() { b"" } else { names.get(self.requests[request].row.fs) };
        let foreign = if matches!(fs, b"f2fs" | b"") { bio.foreign_bytes } else { 0 };
        let fits = bytes == 0 || bytes == folios.bytes || bytes == folios.bytes + foreign;
        if folios.folios > 0 && fits {
            return;
        }
        // Other bios that a thread submits have no folios: the journal, metadata, direct I/O.
        let is_page_cache = request.is_some() && bio.row.id != 0 && !self.requests[request].by_thread;
        let are_lost = folios.folios > 0 || bytes == 0 || is_page_cache;
        let is_shared = foreign > 0 || fs == b"f2fs";
        let is_unknown = bytes == 0 || are_lost && is_shared;
        let of_request = (request.is_some()).then(|| &mut self.requests[request].row.extent);
        for extent in [Some(&mut self.bios[slot].row.extent), of_request].into_iter().flatten() {
            extent.bytes = extent.bytes - folios.bytes + bytes;
            extent.of_bios = true;
            extent.size_unknown |= is_unknown;
            extent.offsets_unknown |= are_lost;
        }
        if !are_lost {
            return;
        }
        if bytes > 0 && folios.bytes > bytes && request.is_some() {
            // Some of them were of a bio before it, and nothing else of that is in the log.
            self.requests[request].row.bio_lost = true;
        }
        // A folio of another request may be the one that is lost.
        self.orphans.of_addresses += u64::from(is_shared);
        let (id, address) = (self.bios[slot].row.id, self.bios[slot].row.address);
        self.count(Reason::FoliosMissing, ts, location, || match folios.folios {
            0 => format!("bio_submit id {id} bio 0x{address:x} without a folio"),
            _ => format!("bio_submit id {id} bio 0x{address:x} of {bytes} bytes with folios of {}", folios.bytes),
        });
    }

    /// Whether a completion at this time cannot be that of a bio in flight, because the sync that the bio belongs to waits for its bios and
    /// had ended before. The completion of the bio was lost, and its address is in use again.
    pub(super) fn was_complete_before(&self, slot: BioSlot, ts: i64) -> bool {
        let bio = &self.bios[slot];
        if bio.request.is_none() || bio.row.confidence != Confidence::Exact {
            return false;
        }
        let open = &self.requests[bio.request];
        let end = open.row.end.or(open.left_at).filter(|_| open.row.start.is_some());
        let is_after = end.is_some_and(|end| ts > end.saturating_add(CLOCK_SKEW_NS));
        is_after && waits(&open.row) == Waits::Yes
    }

    /// Notes that a bio completes after its request has ended. If nothing says that the request did not wait for it, the bio or the completion
    /// may be another one's.
    pub(super) fn outlive(&mut self, slot: BioSlot, ts: i64) {
        let request = self.bios[slot].request;
        if request.is_none() || self.requests[request].row.end.is_none_or(|end| ts <= end) {
            return;
        }
        if waits(&self.requests[request].row) != Waits::No {
            self.infer(request, Some(slot));
        }
    }

    /// Takes note of a completion of a bio that is not in the log. A torn line has an address that no bio has, and a line that is there twice is
    /// of a bio that is known.
    pub(super) fn note_orphan(&mut self, address: u64, ts: i64) {
        if self.last_complete == Some((address, ts)) {
            return;
        }
        if address == 0 || self.bios.may_be_address(address) || !self.bios.have_addresses() {
            self.orphans.of_addresses += 1;
        }
    }

    /// Whether a request that ends may lack a bio: one completed while it was open, and neither its folios nor its submit are in the log.
    pub(super) fn may_lack_a_bio(&self, request: RequestSlot) -> bool {
        let open = &self.requests[request];
        if open.row.start.is_none() {
            return false;
        }
        if open.probe.is_some() {
            return self.orphans.of_probes != open.orphans_at_start.of_probes;
        }
        if open.row.id == NO_ID {
            self.orphans.of_sectors != open.orphans_at_start.of_sectors
                || self.seen.block_submits
                    && open.row.bios == 0
                    && self.orphans.before_submits != open.orphans_at_start.before_submits
        } else {
            self.orphans.of_addresses != open.orphans_at_start.of_addresses
        }
    }
}
