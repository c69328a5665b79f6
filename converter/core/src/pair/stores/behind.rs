//! Exits of calls that are held back.

use super::slots::RequestSlot;
use crate::dedup::Provenance;
use crate::event::Event;

/// The exit of a call that waits for the end of the request in it.
#[derive(Clone, Copy)]
pub(in crate::pair) struct HeldExit {
    pub(in crate::pair) event: Event,
    pub(in crate::pair) provenance: Provenance,
    pub(in crate::pair) task: u32,
    pub(in crate::pair) request: RequestSlot,
    pub(in crate::pair) sync_id: u64,
}

impl HeldExit {
    pub(in crate::pair) fn event(&self) -> Event {
        self.event
    }
}
