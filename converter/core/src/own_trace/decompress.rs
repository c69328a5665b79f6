//! Unpacks the packets that a packet holds in compressed form.

use libdeflater::{DecompressionError, Decompressor};

use crate::trace_layout::compressed::MAX_BYTES;

/// Reads the packets that are compressed in others.
pub(super) struct Decompress {
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
    pub(super) fn packets(&mut self, data: &[u8]) -> Option<&[u8]> {
        self.packets.resize(MAX_BYTES, 0);
        match self.decompressor.zlib_decompress(data, &mut self.packets) {
            Ok(len) => Some(&self.packets[..len]),
            Err(DecompressionError::BadData | DecompressionError::InsufficientSpace) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use libdeflater::{CompressionLvl, Compressor};

    use super::*;
    use crate::output::{BUFFER_BYTES, Pack};
    use crate::sink::perfetto::compressed::Compress;
    use crate::trace_layout::compressed::is_compressed;

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
        let mut compressor = Compressor::new(CompressionLvl::new(1).unwrap_or_default());
        let mut bomb = vec![0; 1 << 20];
        let len = compressor.zlib_compress(&vec![0; MAX_BYTES + 1], &mut bomb).unwrap();
        assert_eq!(Decompress::default().packets(&bomb[..len]), None);
    }
}
