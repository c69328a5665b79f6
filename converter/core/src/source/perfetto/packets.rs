//! Reads the packets of a trace, one after the other, also those that are compressed in others.

use std::io::{self, Read};

use crate::input_file::Store;
use crate::trace_layout::fields::{interned, packet, trace};
use crate::trace_layout::wire::{Damaged, Fields, Wire};

/// Bytes per read.
const READ_BYTES: u64 = 1 << 20;
/// Longer than the tag and the length of a packet.
const HEADER_BYTES: usize = 20;
/// Limit for the packets in one packet. Perfetto compresses at most 1 MiB together.
const MAX_UNPACKED: u64 = 1 << 28;
/// The prefix of the categories of Syncline's own tracks.
const OWN: &[u8] = b"syncline.";

/// The packets of a trace in a file.
pub(super) struct Packets<'a> {
    store: &'a Store,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file, and how much of it has been taken.
    buffer_at: u64,
    taken: usize,
}

/// The end of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    /// Something that is no whole packet, from this byte on.
    CutOff(u64),
}

impl<'a> Packets<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, buffer: Vec::new(), buffer_at: 0, taken: 0 }
    }

    /// Returns where the next packet is in the file, and the packet.
    pub(super) fn next(&mut self) -> io::Result<Result<(u64, &[u8]), End>> {
        loop {
            let at = self.buffer_at + self.taken as u64;
            if at >= self.store.len() {
                return Ok(Err(End::Whole));
            }
            self.ensure(HEADER_BYTES)?;
            let Some((number, header, len)) = header(&self.buffer[self.taken..]) else {
                return Ok(Err(End::CutOff(at)));
            };
            // Nothing is allocated for a length beyond the end of the file.
            if len > self.store.len().saturating_sub(at + header as u64) {
                return Ok(Err(End::CutOff(at)));
            }
            let whole = header + len as usize;
            self.ensure(whole)?;
            let from = self.taken + header;
            self.taken += whole;
            if number == trace::PACKET {
                return Ok(Ok((at + header as u64, &self.buffer[from..self.taken])));
            }
        }
    }

    /// Reads until the buffer holds this many bytes that have not been taken, or the file ends.
    fn ensure(&mut self, bytes: usize) -> io::Result<()> {
        if self.buffer.len() - self.taken < bytes {
            self.buffer.drain(..self.taken);
            self.buffer_at += self.taken as u64;
            self.taken = 0;
            let missing = (bytes - self.buffer.len()) as u64;
            let at = self.buffer_at + self.buffer.len() as u64;
            self.store.append(at, missing.max(READ_BYTES), &mut self.buffer)?;
        }
        Ok(())
    }
}

/// Reads the tag and the length of a message: the number of its field, the size of both, and the length.
fn header(bytes: &[u8]) -> Option<(u32, usize, u64)> {
    let varint = |bytes: &[u8]| {
        let mut value = 0_u64;
        for (at, &byte) in bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
            if byte < 0x80 {
                return Some((value, at + 1));
            }
        }
        None
    };
    let (tag, tag_len) = varint(bytes)?;
    let (len, len_len) = varint(&bytes[tag_len..])?;
    let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0)?;
    (tag & 7 == 2).then_some((number, tag_len + len_len, len))
}

/// Decompresses the packets that a packet holds. `None` for an ordinary packet, which holds no others.
pub(super) fn unpacked(packet: &[u8]) -> Option<Result<Vec<u8>, Damaged>> {
    let mut fields = Fields(packet).map_while(Result::ok);
    let (number, data) = fields.find_map(|field| match field {
        (number @ (packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS), Wire::Bytes(data)) => {
            Some((number, data))
        }
        _ => None,
    })?;
    let mut out = Vec::new();
    Some(match unpack(number, data, &mut out) {
        Ok(()) if (out.len() as u64) < MAX_UNPACKED => Ok(out),
        _ => Err(Damaged),
    })
}

/// Decompresses as much as is whole.
fn unpack(number: u32, data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    if number == packet::ZSTD_COMPRESSED_PACKETS {
        zstd::stream::read::Decoder::new(data)?.take(MAX_UNPACKED).read_to_end(out)?;
    } else {
        flate2::read::ZlibDecoder::new(data).take(MAX_UNPACKED).read_to_end(out)?;
    }
    Ok(())
}

/// The kind of a trace, as its begin shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is no trace.
    Other,
    /// Syncline wrote tracks to it.
    Own,
    /// It holds events of ftrace, and so far none of Syncline's tracks.
    Ftrace,
    /// A trace in which neither has been found so far.
    Trace,
}

impl Look {
    /// Looks at the begin of a file, which may end within a packet.
    pub(super) fn at(head: &[u8]) -> Self {
        // A text may begin with the tag of a packet, too: with an empty line.
        let is_control = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
        if head[..head.len().min(256)].iter().any(is_control) { Self::in_packets(head) } else { Self::Other }
    }

    /// As `at`, for what is known to be of a trace.
    pub(super) fn in_packets(head: &[u8]) -> Self {
        let mut rest = head;
        let mut look = Self::Other;
        while let Some((trace::PACKET, header, len)) = header(rest) {
            let end = usize::try_from(len).ok().and_then(|len| header.checked_add(len)).unwrap_or(usize::MAX);
            let Some(packet) = rest.get(header..end) else {
                // It is cut off. What precedes it says more.
                return if look == Self::Other { Self::cut_off(&rest[header..]) } else { look };
            };
            match Self::packet(packet) {
                Some(Self::Own) => return Self::Own,
                Some(Self::Ftrace) => look = Self::Ftrace,
                Some(_) if look == Self::Other => look = Self::Trace,
                // One damaged packet does not make a trace something else.
                None if look == Self::Other => return Self::Other,
                Some(_) | None => {}
            }
            rest = &rest[end..];
        }
        look
    }

    /// Looks at a packet; `None` if it is empty or damaged.
    fn packet(packet: &[u8]) -> Option<Self> {
        let mut look = None;
        for field in Fields(packet) {
            let found = match field.ok()? {
                (packet::FTRACE_EVENTS, Wire::Bytes(_)) => Self::Ftrace,
                (packet::INTERNED_DATA, Wire::Bytes(data)) if names_own_category(data) => Self::Own,
                (number @ (packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS), Wire::Bytes(data)) => {
                    return Some(Self::compressed(number, data)).filter(|&found| found != Self::Other);
                }
                _ => Self::Trace,
            };
            if look != Some(Self::Ftrace) {
                look = Some(found);
            }
            if found == Self::Own {
                break;
            }
        }
        look
    }

    /// Looks at the begin of a packet.
    fn cut_off(packet: &[u8]) -> Self {
        match header(packet) {
            Some((packet::FTRACE_EVENTS, ..)) => Self::Ftrace,
            Some((number @ (packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS), header, _)) => {
                Self::compressed(number, &packet[header..])
            }
            _ => Self::Other,
        }
    }

    fn compressed(number: u32, data: &[u8]) -> Self {
        let mut out = Vec::new();
        // It may be cut off, and then the begin is enough.
        let _ = unpack(number, data, &mut out);
        match out.first() {
            Some(_) => Self::in_packets(&out),
            None => Self::Other,
        }
    }
}

fn names_own_category(interned_data: &[u8]) -> bool {
    let fields = |bytes| Fields(bytes).map_while(Result::ok);
    let is_own = |field| matches!(field, (interned::NAME, Wire::Bytes(name)) if name.starts_with(OWN));
    let names_own =
        |field| matches!(field, (interned::EVENT_CATEGORIES, Wire::Bytes(entry)) if fields(entry).any(is_own));
    fields(interned_data).any(names_own)
}
