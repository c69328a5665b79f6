//! How long what is over waits for what may still come.

/// How long an ended request waits for its bios, in time of the log.
pub(super) const LINGER_NS: i64 = 60_000_000_000;
/// How many requests may wait.
pub(super) const MAX_LINGERING: usize = 65_536;
