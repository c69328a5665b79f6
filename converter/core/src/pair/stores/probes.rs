//! Facts that probes have reported.

use super::probe_bios::FillingBios;
use super::probe_request::ProbeRequest;
use super::requests::{OpenRequest, Requests};
use super::slots::RequestSlot;
use crate::collections::Map;
use crate::event::{Dev, WaitKind};

/// Bios that are no rows and whose ends are awaited.
const MAX_APART: usize = 65_536;

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
#[derive(Debug, Default)]
pub(in crate::pair) struct Probes {
    pub(in crate::pair) filling: FillingBios,
    /// Flushes that a file system sends and waits for later, by the address of their bio.
    pub(in crate::pair) flushes: Map<u64, (RequestSlot, u64)>,
    /// By thread: the copies of the next `Original` that it has submitted.
    pub(in crate::pair) copies: Map<u32, u32>,
    /// By thread: the bytes of parts without folios that it has submitted since its last bio with folios. btrfs splits them off that.
    pub(in crate::pair) parts: Map<u32, u64>,
    /// By flusher thread: the device that it works on, and whether sync() or syncfs() asked for it.
    pub(in crate::pair) work: Map<u32, (Dev, bool)>,
    /// By thread: sync functions that it is in, whose request other events report.
    pub(in crate::pair) ignored: Map<u32, u32>,
    /// The requests that probes report, open or not.
    pub(in crate::pair) open: Vec<(RequestSlot, u64)>,
    /// The length of `open` at which those that have ended are removed.
    pub(in crate::pair) sweep_at: usize,
    /// Bios in flight that are no rows, such as reads and copies, by their address: their ends are known.
    pub(in crate::pair) apart: Map<u64, ()>,
    /// Completions of bios that are not known.
    pub(in crate::pair) unknown_ends: u64,
    /// A bio has been submitted and completed.
    pub(in crate::pair) sees_ends: bool,
    /// Probes report bios, and folios.
    pub(in crate::pair) sees_bios: bool,
    pub(in crate::pair) sees_folios: bool,
    /// Folios of page cache are reported without their files.
    pub(in crate::pair) sees_unnamed_folios: bool,
}

impl Probes {
    /// The open request that probes report and that fulfils a condition, if it is the only one.
    pub(in crate::pair) fn only_open(
        &self,
        requests: &Requests,
        condition: impl Fn(&OpenRequest, &ProbeRequest) -> bool,
    ) -> Option<RequestSlot> {
        let open = self.open.iter().filter(|&&(slot, id)| requests.is_open(slot, id));
        let mut fitting = open.map(|&(slot, _)| slot).filter(|&slot| {
            let open = &requests[slot];
            open.probe.as_ref().is_some_and(|state| condition(open, state))
        });
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// Whether a request of a device is in a fast commit.
    pub(in crate::pair) fn is_in_fast_commit(&self, requests: &Requests, dev: Dev) -> bool {
        let mut open = self.open.iter().filter(|&&(slot, id)| requests.is_open(slot, id));
        open.any(|&(slot, _)| {
            let open = &requests[slot];
            open.row.dev == dev && open.open_waits.is_waiting(WaitKind::FastCommit)
        })
    }

    /// Notes the submit of a bio that is no row.
    pub(in crate::pair) fn keep_apart(&mut self, address: u64) {
        if self.apart.len() >= MAX_APART {
            self.apart.clear();
        }
        self.apart.insert(address, ());
    }

    /// A thread enters or leaves a call, so it is in no sync function.
    pub(in crate::pair) fn leave(&mut self, task: u32) {
        if !self.ignored.is_empty() {
            self.ignored.remove(&task);
        }
    }

    /// The request of a thread is reported by other events too, which have an id.
    pub(in crate::pair) fn ignore(&mut self, task: u32, request: &ProbeRequest) {
        *self.ignored.entry(task).or_default() += request.functions.len() as u32;
    }
}
