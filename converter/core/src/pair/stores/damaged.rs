//! Events that are held back.

use super::slots::RequestSlot;
use crate::dedup::Provenance;
use crate::event::Event;
use crate::names::NameId;

pub(in crate::pair) struct HeldEvent {
    pub(in crate::pair) event: Event,
    /// A request that it begins begins no earlier.
    pub(in crate::pair) from: i64,
    pub(in crate::pair) provenance: Provenance,
    pub(in crate::pair) task: u32,
    pub(in crate::pair) id: u64,
    pub(in crate::pair) bio: u64,
    /// The request that its thread is in.
    pub(in crate::pair) request: RequestSlot,
    pub(in crate::pair) sync_id: u64,
}

impl HeldEvent {
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.event.visit_names(f);
    }
}
