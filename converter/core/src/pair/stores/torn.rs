//! Facts from torn lines about events that are still to come.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use crate::collections::Map;

/// Ids and addresses of bios that are kept. A log that tears so many lines is torn throughout, so all of its next bios are doubtful.
const MAX_KEPT: usize = 4096;

/// Facts from torn lines about events that are still to come.
#[derive(Default)]
pub(in crate::pair) struct TornLines {
    /// There has been one.
    pub(in crate::pair) have_been: bool,
    /// How many did not name their thread.
    pub(in crate::pair) of_unknown: u64,
    /// By task: how many of these its events have come after.
    pub(in crate::pair) seen: Map<u32, u64>,
    /// Bios to which one may have added page cache: their addresses, and the ids of their requests where the address is not known.
    addresses: HashSet<u64, FixedState>,
    ids: HashSet<u64, FixedState>,
}

/// The facts that a torn line of a task may have stated.
#[derive(Clone, Copy, Default)]
pub(in crate::pair) struct TornTask {
    /// The entry of its next call.
    pub(in crate::pair) call: bool,
    /// The start or the end of the request that its next bio belongs to.
    pub(in crate::pair) request: bool,
    /// A folio of its next bio.
    pub(in crate::pair) pages: bool,
    /// A folio of any bio that it was filling until then.
    pub(in crate::pair) pages_until: Option<i64>,
}

impl TornTask {
    /// Whether the line may have been the begin of a call or of a request.
    pub(in crate::pair) fn may_be_begin(&self) -> bool {
        self.call || self.request
    }
}

impl TornLines {
    pub(in crate::pair) fn keep_id(&mut self, id: u64) {
        if self.ids.len() < MAX_KEPT { _ = self.ids.insert(id) } else { self.of_unknown += 1 }
    }

    pub(in crate::pair) fn keep_address(&mut self, address: u64) {
        if self.addresses.len() < MAX_KEPT { _ = self.addresses.insert(address) } else { self.of_unknown += 1 }
    }

    /// Whether a torn line named the bio that is opened, by its address or by the id of its request.
    pub(in crate::pair) fn take(&mut self, id: u64, address: u64) -> bool {
        let is_at = !self.addresses.is_empty() && self.addresses.remove(&address);
        is_at | (!self.ids.is_empty() && self.ids.remove(&id))
    }
}
