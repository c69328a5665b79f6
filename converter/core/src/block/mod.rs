//! The block layer: the bios that it has in flight, and which device is below which.

pub mod devices_below;
pub(crate) mod queue;
