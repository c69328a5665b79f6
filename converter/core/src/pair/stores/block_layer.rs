//! The last submit of a thread to the block layer.

use super::slots::BioSlot;
use crate::event::Dev;
use crate::event::bio_flags::BioFlags;

/// The last submit of a thread.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct LastSubmit {
    pub(in crate::pair) dev: Dev,
    pub(in crate::pair) sector: i64,
    pub(in crate::pair) end: i64,
    /// Until when the rest of it may be submitted.
    pub(in crate::pair) until: i64,
    pub(in crate::pair) flags: BioFlags,
    /// The bio, unless another event reports it, and its number.
    pub(in crate::pair) bio: Option<(BioSlot, u64)>,
}
