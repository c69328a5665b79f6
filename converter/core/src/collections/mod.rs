//! Collections that know nothing of events.

pub(crate) mod by_device;
pub(crate) mod recent;
