//! Completions of bios that are not in the log.

/// Completions of bios that are not in the log, by how their source names a bio. A request that was open at one of them may be the one whose
/// bio it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::pair) struct Orphans {
    /// By its address, with the ids of requests.
    pub(in crate::pair) of_addresses: u64,
    /// By its address, of probes. It may have held page cache.
    pub(in crate::pair) of_probes: u64,
    /// By its device and sector, without ids.
    pub(in crate::pair) of_sectors: u64,
    /// The same before any bio of the log has completed. If the log records submits at all, the first one may be lost: that of a request
    /// that has no other bio. Otherwise they are more likely of what was in flight when the log began.
    pub(in crate::pair) before_submits: u64,
}
