//! Packets in packets: one may hold others, compressed by zlib. All readers of Perfetto's traces know these.

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use super::proto::{nested_long, packet, trace, varint};
use crate::output::{BUFFER_BYTES, Pack};

/// The fastest. docs/development.md compares others.
const LEVEL: i32 = 1;
/// Maximum size of the packets in a packet. The reader allocates no more for one.
const MAX_BYTES: usize = 2 * BUFFER_BYTES;
/// The tag of the packets in a packet. It holds nothing else.
const TAG: [u8; 2] =
    [(packet::COMPRESSED_PACKETS << 3 | 2) as u8 & 0x7f | 0x80, (packet::COMPRESSED_PACKETS >> 4) as u8];

/// Compresses each full buffer into one packet. The end of a trace is not compressed, and neither is a small trace.
pub(super) struct Compress {
    compressor: Compressor,
    compressed: Vec<u8>,
    packet: Vec<u8>,
}

impl Default for Compress {
    fn default() -> Self {
        let level = CompressionLvl::new(LEVEL).unwrap_or_default();
        Self { compressor: Compressor::new(level), compressed: Vec::new(), packet: Vec::new() }
    }
}

impl Pack for Compress {
    fn pack<'a>(&'a mut self, buffer: &'a [u8]) -> &'a [u8] {
        let Self { compressor, compressed, packet } = self;
        // A longer one holds a packet with a very long text.
        if !(BUFFER_BYTES..=MAX_BYTES).contains(&buffer.len()) {
            return buffer;
        }
        compressed.resize(compressor.zlib_compress_bound(buffer.len()), 0);
        let Ok(len) = compressor.zlib_compress(buffer, compressed) else { return buffer };
        packet.clear();
        nested_long(packet, trace::PACKET, |b| {
            b.extend_from_slice(&TAG);
            varint(b, len as u64);
            b.extend_from_slice(&compressed[..len]);
        });
        packet
    }
}

/// Returns whether a packet holds others.
pub(crate) fn is_compressed(packet: &[u8]) -> bool {
    packet.starts_with(&TAG)
}

/// Reads the packets that are compressed in others.
pub(crate) struct Decompress {
    decompressor: Decompressor,
    packets: Vec<u8>,
}

impl Default for Decompress {
    fn default() -> Self {
        Self { decompressor: Decompressor::new(), packets: Vec::new() }
    }
}

impl Decompress {
    /// Returns the packets in `data`, the field of a packet; `None` if it is damaged, or holds more than the writer writes.
    pub(crate) fn packets(&mut self, data: &[u8]) -> Option<&[u8]> {
        self.packets.resize(MAX_BYTES, 0);
        match self.decompressor.zlib_decompress(data, &mut self.packets) {
            Ok(len) => Some(&self.packets[..len]),
            Err(DecompressionError::BadData | DecompressionError::InsufficientSpace) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a packet of packets that is compressed.
    fn data(packet: &[u8]) -> &[u8] {
        assert_eq!(packet[0], 0x0a);
        let varint_len = |bytes: &[u8]| 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let inner = &packet[1 + varint_len(&packet[1..])..];
        assert!(is_compressed(inner));
        &inner[2 + varint_len(&inner[2..])..]
    }

    #[test]
    fn full_buffers_are_compressed_and_read_back() {
        let mut compress = Compress::default();
        let mut decompress = Decompress::default();
        for len in [BUFFER_BYTES, BUFFER_BYTES + 1, MAX_BYTES] {
            for noise in [0, 1] {
                let mut state = 1_u32;
                let mut next = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8 * noise
                };
                let buffer: Vec<u8> = (0..len).map(|_| next()).collect();
                let packet = compress.pack(&buffer);
                assert_eq!(decompress.packets(data(packet)), Some(&buffer[..]));
                let mut cut = data(packet).to_vec();
                cut.pop();
                assert_eq!(decompress.packets(&cut), None);
            }
        }
    }

    #[test]
    fn the_end_of_a_trace_and_long_packets_stay_as_they_are() {
        let mut compress = Compress::default();
        for len in [0, 1, BUFFER_BYTES - 1, MAX_BYTES + 1] {
            let buffer = vec![7; len];
            assert_eq!(compress.pack(&buffer), &buffer[..]);
        }
        // More than the writer puts into one packet.
        let mut compressor = Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default());
        let mut bomb = vec![0; 1 << 20];
        let len = compressor.zlib_compress(&vec![0; MAX_BYTES + 1], &mut bomb).unwrap();
        assert_eq!(Decompress::default().packets(&bomb[..len]), None);
    }
}
