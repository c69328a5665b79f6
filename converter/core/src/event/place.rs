//! A place on a device.

use super::Dev;

/// A sector of a device. The order is that of devices, then of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub dev: Dev,
    pub sector: i64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dev {} sector {}", self.dev, self.sector)
    }
}
