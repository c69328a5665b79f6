//! Requests of the block layer in logs that record no submit: only when they were issued and completed is known.

use std::collections::{HashMap, VecDeque};

use super::{Out, Pairer};
use crate::block_queue::Completion;
use crate::error::Result;
use crate::event::bio_flags::BioFlags;
use crate::event::{Dev, NO_ID, UNKNOWN_TASK};
use crate::location::Location;
use crate::losses::Reason;
use crate::names::NameId;
use crate::rows::{Bio, Confidence, Extent};

const SECTOR_BYTES: u64 = 512;
/// Completed requests that are held back until it is certain that the log records no submits. A log with submits may begin with the
/// completions of bios that were in flight.
const MAX_HELD: usize = 4096;
/// Requests in flight that are remembered.
const MAX_ISSUED: usize = 65_536;
/// Requests in flight that are remembered at one sector. Only writes that overlap have the same first sector.
const MAX_AT_SECTOR: usize = 8;

/// A request without a bio.
#[derive(Clone, Copy, Debug)]
struct BlockRequest {
    dev: Dev,
    sector: i64,
    bytes: u64,
    issue: Option<i64>,
    complete: i64,
    flags: BioFlags,
    error: Option<i32>,
    location: Location,
}

/// A request that the driver has. It may complete in parts.
#[derive(Clone, Copy, Debug)]
struct Issued {
    ts: i64,
    sector: i64,
    bytes: u64,
    left_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Unsubmitted {
    /// A submit has been seen.
    has_ended: bool,
    /// By device and the first sector that is not complete.
    issued: HashMap<(Dev, i64), VecDeque<Issued>>,
    held: Vec<BlockRequest>,
    /// The first log that reports requests of a device. Others report the same ones.
    logs: HashMap<Dev, usize>,
    /// Completed requests are no longer held back.
    is_certain: bool,
}

impl Unsubmitted {
    /// Forgets all, because the log records submits.
    #[inline]
    pub(super) fn end(&mut self) {
        if !self.has_ended {
            *self = Self { has_ended: true, ..Self::default() };
        }
    }

    /// Whether requests of a device that this log reports are used.
    fn uses(&mut self, dev: Dev, log: usize) -> bool {
        !self.has_ended && *self.logs.entry(dev).or_insert(log) == log
    }

    pub(super) fn issue(&mut self, (dev, sector): (Dev, i64), bytes: u64, ts: i64, log: usize) {
        if !self.uses(dev, log) {
            return;
        }
        if self.issued.len() >= MAX_ISSUED {
            self.issued.clear();
        }
        let issued = Issued { ts, sector, bytes, left_bytes: bytes };
        let at_sector = self.issued.entry((dev, sector)).or_default();
        // The driver has not taken it the first time.
        at_sector.retain(|other| other.bytes != bytes);
        if at_sector.len() >= MAX_AT_SECTOR {
            at_sector.pop_front();
        }
        at_sector.push_back(issued);
    }

    /// Returns the request that a completion ends.
    fn complete(&mut self, completion: &Completion, location: Location) -> Option<BlockRequest> {
        let &Completion { dev, sector, bytes, flags, error, ts, .. } = completion;
        let request = BlockRequest { dev, sector, bytes, issue: None, complete: ts, flags, error, location };
        let Some(at_sector) = self.issued.get_mut(&(dev, sector)) else { return Some(request) };
        let mut issued = at_sector.pop_front()?;
        if at_sector.is_empty() {
            self.issued.remove(&(dev, sector));
        }
        if bytes < issued.left_bytes {
            issued.left_bytes -= bytes;
            let next = sector.saturating_add_unsigned(bytes / SECTOR_BYTES);
            self.issued.entry((dev, next)).or_default().push_back(issued);
            return None;
        }
        Some(BlockRequest { sector: issued.sector, bytes: issued.bytes, issue: Some(issued.ts), ..request })
    }
}

impl Pairer {
    /// Completes a request, if no log records submits.
    pub(super) fn complete_unsubmitted(&mut self, completion: &Completion, out: &mut Out<'_>) -> Result<()> {
        if !self.unsubmitted.uses(completion.dev, self.provenance.log) {
            return Ok(());
        }
        let Some(request) = self.unsubmitted.complete(completion, self.location()) else { return Ok(()) };
        self.unsubmitted.held.push(request);
        self.unsubmitted.is_certain |= self.unsubmitted.held.len() >= MAX_HELD;
        if self.unsubmitted.is_certain { self.write_unsubmitted(out) } else { Ok(()) }
    }

    /// Writes the requests that were held back.
    pub(super) fn write_unsubmitted(&mut self, out: &mut Out<'_>) -> Result<()> {
        for request in std::mem::take(&mut self.unsubmitted.held) {
            let BlockRequest { dev, sector, bytes, issue, complete, flags, error, location } = request;
            let first_event = issue.unwrap_or(complete);
            let row = Bio {
                bio_id: self.bios.take_bio_id(),
                sync_id: None,
                commit_id: None,
                is_unsubmitted: true,
                id: NO_ID,
                address: 0,
                dev,
                sector,
                // Any thread may issue a request.
                tid: UNKNOWN_TASK,
                pid: UNKNOWN_TASK,
                comm: NameId::NONE,
                process: NameId::NONE,
                cgroup: NameId::NONE,
                writers: NameId::NONE,
                writers_cgroup: NameId::NONE,
                below: Dev::UNKNOWN,
                first_event,
                submit: None,
                issue,
                requeue_ns: 0,
                requeues: 0,
                parts: 0,
                complete: Some(complete),
                error,
                extent: Extent { bytes, of_bios: true, ..Extent::default() },
                flags: Some(flags),
                ino: 0,
                path: NameId::NONE,
                confidence: Confidence::Unknown,
                request_file: (NameId::NONE, 0),
                in_flight_at_submit: (0, 0),
                in_flight_at_complete: (0, 0),
            };
            out.sink.bio(&row, out.names)?;
            self.lose_at(Reason::SubmitsMissing, complete, location, out, || {
                format!("completion of dev {dev} sector {sector}")
            })?;
        }
        Ok(())
    }
}
