//! The numbers of flows, which are the arrows of the timeline. Those of bios are the bios' own.

/// Flows of commits have other numbers than those of bios.
const FLOW_OF_COMMIT: u64 = 1 << 63;
/// Bits of the number of the request.
const SYNC_BITS: u32 = 36;

/// The flow from a request to a commit that it waits for.
pub(crate) fn flow_of_commit(commit_id: u64, sync_id: u64) -> u64 {
    FLOW_OF_COMMIT | (commit_id << SYNC_BITS & !FLOW_OF_COMMIT) | sync_of_flow(sync_id)
}

/// The request whose wait has this flow.
pub(crate) fn sync_of_flow(flow: u64) -> u64 {
    flow & ((1 << SYNC_BITS) - 1)
}
