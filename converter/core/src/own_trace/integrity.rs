//! Distinguishes a damaged trace of ours from one that holds something else too, without a look at what its packets say.

use super::argument::{Argument, Value, arguments, from_first};
use super::check;
use crate::error::Error;
use crate::trace_layout::fields::{packet, trace};
use crate::trace_layout::wire::{Damaged, Fields, Wire};
use crate::trace_layout::{CHECKSUM_KEY, SEQUENCE_ID};

/// Compares packets with the checksum that ends a trace.
pub(super) struct Integrity {
    crc: flate2::Crc,
    path: String,
    /// The first packet was seen, the only one with a clock.
    has_begun: bool,
}

impl Integrity {
    /// `crc` is of the packets that were read before, if any were: `has_begun`.
    pub(super) fn new(crc: flate2::Crc, path: String, has_begun: bool) -> Self {
        Self { crc, path, has_begun }
    }

    /// Takes packets that are not compressed. Returns whether further ones are needed: neither has the trace ended, nor is a packet one that
    /// Syncline does not write.
    ///
    /// Fails if the checksum is not that of the packets before it.
    pub(super) fn packets(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let mut packets = Fields(bytes);
        let mut begin = bytes;
        while let Some(field) = packets.next() {
            let Ok((trace::PACKET, Wire::Bytes(data))) = field else { return Ok(false) };
            let Ok(packet) = Packet::of(data) else { return Ok(false) };
            // Another program may use the same sequence. A second clock begins another trace.
            if packet.sequence != Some(SEQUENCE_ID) || packet.has_clock == self.has_begun {
                return Ok(false);
            }
            self.has_begun = true;
            match packet.checksum {
                None => begin = packets.0,
                Some(checksum) => {
                    self.crc.update(&bytes[..bytes.len() - begin.len()]);
                    return check(self.crc.sum(), checksum, &self.path).map(|()| false);
                }
            }
        }
        self.crc.update(bytes);
        Ok(true)
    }
}

#[derive(Default)]
struct Packet {
    sequence: Option<u64>,
    has_clock: bool,
    checksum: Option<u32>,
}

impl Packet {
    fn of(data: &[u8]) -> Result<Self, Damaged> {
        let mut packet = Self::default();
        for field in Fields(data) {
            match field? {
                (packet::TRUSTED_PACKET_SEQUENCE_ID, value) => packet.sequence = Some(value.int()?),
                (packet::CLOCK_SNAPSHOT, _) => packet.has_clock = true,
                (packet::TRACK_EVENT, value) => packet.checksum = checksum(value.bytes()?)?,
                _ => {}
            }
        }
        Ok(packet)
    }
}

/// Returns the checksum that an event holds.
fn checksum(track_event: &[u8]) -> Result<Option<u32>, Damaged> {
    for argument in arguments(from_first(track_event)?) {
        if let Argument { name: CHECKSUM_KEY, value } = argument? {
            return Ok(if let Value::Number(sum) = value { u32::try_from(sum).ok() } else { None });
        }
    }
    Ok(None)
}
