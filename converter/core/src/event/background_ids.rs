//! The ids of background writeback, by which its events are distinguished from those of requests.

use crate::collections::recent::Recent;

/// The ids of background writeback that were seen last.
pub(crate) type BackgroundIds = Recent<u64, 65_536>;
