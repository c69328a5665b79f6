//! Packets in packets: one may hold others, compressed by zlib. All readers of Perfetto's traces know these.

use super::fields::packet;
use crate::output::BUFFER_BYTES;

/// Maximum size of the packets in a packet. The reader allocates no more for one.
pub(crate) const MAX_BYTES: usize = 2 * BUFFER_BYTES;
/// The tag of the packets in a packet. It holds nothing else.
pub(crate) const TAG: [u8; 2] =
    [(packet::COMPRESSED_PACKETS << 3 | 2) as u8 & 0x7f | 0x80, (packet::COMPRESSED_PACKETS >> 4) as u8];

/// Returns whether a packet holds others.
pub(crate) fn is_compressed(packet: &[u8]) -> bool {
    packet.starts_with(&TAG)
}
