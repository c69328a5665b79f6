//! Writes packets in packets.

use libdeflater::{CompressionLvl, Compressor};

use super::proto::{nested_long, varint};
use crate::output::{BUFFER_BYTES, Pack};
use crate::trace_layout::compressed::{MAX_BYTES, TAG};
use crate::trace_layout::fields::trace;

/// The fastest. docs/benchmarks.md compares others.
const LEVEL: i32 = 1;
/// Compresses each full buffer into one packet. The end of a trace is not compressed, and neither is a small trace.
pub(crate) struct Compress {
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
