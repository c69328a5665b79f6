//! Cuts the data of a file into records, and unpacks those that `perf record -z` packed.

use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::input_file::Store;
use crate::source::binary::{ByteOrder, bad};

/// Types of records. Those from 64 on are written by perf, the others by the kernel.
pub(super) mod kind {
    pub(in super::super) const MMAP: u32 = 1;
    pub(in super::super) const LOST: u32 = 2;
    pub(in super::super) const COMM: u32 = 3;
    pub(in super::super) const EXIT: u32 = 4;
    pub(in super::super) const THROTTLE: u32 = 5;
    pub(in super::super) const FORK: u32 = 7;
    pub(in super::super) const SAMPLE: u32 = 9;
    pub(in super::super) const MMAP2: u32 = 10;
    pub(in super::super) const LOST_SAMPLES: u32 = 13;
    pub(in super::super) const FIRST_OF_PERF: u32 = 64;
    pub(in super::super) const HEADER_ATTR: u32 = 64;
    pub(in super::super) const TRACING_DATA: u32 = 66;
    pub(in super::super) const FINISHED_ROUND: u32 = 68;
    pub(in super::super) const AUXTRACE: u32 = 71;
    pub(in super::super) const HEADER_FEATURE: u32 = 80;
    pub(in super::super) const COMPRESSED: u32 = 81;
    pub(in super::super) const COMPRESSED2: u32 = 83;
}

pub(super) const HEADER_BYTES: usize = 8;
const READ_BYTES: usize = 1 << 20;
/// perf compresses a part of its buffer at a time. A record that is not whole by then is damaged.
const UNPACK_BYTES: usize = 1 << 18;

#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// The bytes behind the header of eight.
    pub(super) body: &'a [u8],
}

/// Bytes from whose front records are taken.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl Buffer {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Drops what has been taken.
    fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
    }
}

/// Bytes that are being unpacked. All packed records of a file are one stream.
struct Unpacker {
    decoder: Decoder<'static>,
    packed: Buffer,
    unpacked: Buffer,
}

pub(super) struct Records {
    store: Store,
    order: ByteOrder,
    /// Offset in the file of the next byte to read, and the end of the records.
    at: u64,
    end: u64,
    buffer: Buffer,
    unpacker: Option<Unpacker>,
    /// The file ends within a record.
    pub(super) is_cut_off: bool,
}

/// Type, flags and size of the record that begins here; `None` if its header is not complete.
fn header(bytes: &[u8], order: ByteOrder) -> Option<(u32, u16, usize)> {
    let number = |at, size| order.number(bytes, at, size);
    Some((number(0, 4)? as u32, number(4, 2)? as u16, number(6, 2)? as usize))
}

impl Records {
    pub(super) fn new(store: Store, order: ByteOrder, at: u64, end: u64) -> Self {
        Self { store, order, at, end, buffer: Buffer::default(), unpacker: None, is_cut_off: false }
    }

    /// Offset in the file up to which the records have been taken.
    pub(super) fn position(&self) -> u64 {
        self.at - self.buffer.rest().len() as u64
    }

    /// Goes back to an offset in the file.
    pub(super) fn rewind(&mut self, at: u64) {
        self.at = at;
        self.buffer = Buffer::default();
    }

    /// Returns the next record; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        loop {
            if self.unpack()? {
                let Some(unpacker) = &mut self.unpacker else { return Ok(None) };
                return take(&mut unpacker.unpacked, self.order).map(Some);
            }
            if !self.fill(HEADER_BYTES)? {
                return Ok(None);
            }
            let (kind, _, size) = header(self.buffer.rest(), self.order).unwrap_or_default();
            if size < HEADER_BYTES {
                return Err(self.damaged(size));
            }
            if !self.fill(size)? {
                return Ok(None);
            }
            if !matches!(kind, kind::COMPRESSED | kind::COMPRESSED2) {
                return take(&mut self.buffer, self.order).map(Some);
            }
            self.take_packed(kind, size)?;
        }
    }

    fn damaged(&self, size: usize) -> io::Error {
        bad(format!("the record at byte {} says that it has {size} bytes", self.position()))
    }

    /// Reads until `len` bytes are available. Returns false at the end of the file.
    fn fill(&mut self, len: usize) -> io::Result<bool> {
        if self.buffer.rest().len() >= len {
            return Ok(true);
        }
        self.buffer.compact();
        let read = (self.end - self.at).min(READ_BYTES as u64);
        self.store.append(self.at, read, &mut self.buffer.bytes)?;
        self.at += read;
        let is_whole = self.buffer.bytes.len() >= len;
        self.is_cut_off |= !is_whole && !self.buffer.bytes.is_empty();
        Ok(is_whole)
    }

    /// Returns the next `len` bytes, which follow a record without being a part of it.
    pub(super) fn take_data(&mut self, len: usize) -> io::Result<Option<Vec<u8>>> {
        while self.buffer.rest().len() < len {
            let before = self.at;
            self.fill(len)?;
            if self.at == before {
                self.is_cut_off = true;
                return Ok(None);
            }
        }
        let data = self.buffer.rest()[..len].to_vec();
        self.buffer.taken += len;
        Ok(Some(data))
    }

    /// Skips the data that follow a record of perf without being a part of it.
    pub(super) fn skip_data(&mut self, len: u64) {
        let in_buffer = (self.buffer.rest().len() as u64).min(len);
        self.buffer.taken += in_buffer as usize;
        let beyond = len - in_buffer;
        self.is_cut_off |= beyond > self.end - self.at;
        self.at += beyond.min(self.end - self.at);
    }

    /// Moves the content of a packed record to the unpacker.
    fn take_packed(&mut self, kind: u32, size: usize) -> io::Result<()> {
        let record = &self.buffer.rest()[..size];
        let body = &record[HEADER_BYTES..];
        let packed = if kind == kind::COMPRESSED {
            body
        } else {
            // The second version is padded.
            let len = self.order.number(body, 0, 8).and_then(|len| usize::try_from(len).ok());
            len.and_then(|len| body.get(8..)?.get(..len)).ok_or_else(|| self.damaged(size))?
        };
        if self.unpacker.is_none() {
            let decoder = Decoder::new()?;
            self.unpacker = Some(Unpacker { decoder, packed: Buffer::default(), unpacked: Buffer::default() });
        }
        if let Some(unpacker) = &mut self.unpacker {
            unpacker.packed.compact();
            unpacker.packed.bytes.extend_from_slice(packed);
        }
        self.buffer.taken += size;
        Ok(())
    }

    /// Unpacks until a whole record is there. Returns false if more packed bytes are needed.
    fn unpack(&mut self) -> io::Result<bool> {
        let Some(Unpacker { decoder, packed, unpacked }) = &mut self.unpacker else { return Ok(false) };
        loop {
            if let Some((_, _, size)) = header(unpacked.rest(), self.order) {
                if size < HEADER_BYTES {
                    return Err(bad(format!("a packed record says that it has {size} bytes")));
                }
                if unpacked.rest().len() >= size {
                    return Ok(true);
                }
            }
            unpacked.compact();
            let before = unpacked.bytes.len();
            unpacked.bytes.resize(before + UNPACK_BYTES, 0);
            let mut input = InBuffer::around(packed.rest());
            let mut output = OutBuffer::around(&mut unpacked.bytes[before..]);
            let unpack = decoder.run(&mut input, &mut output);
            let (read, written) = (input.pos(), output.pos());
            unpack.map_err(|why| bad(format!("a packed record cannot be unpacked: {why}")))?;
            packed.taken += read;
            unpacked.bytes.truncate(before + written);
            if written == 0 && (read == 0 || packed.rest().is_empty()) {
                return Ok(false);
            }
        }
    }

    /// Whether a part of a packed record is left at the end.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off || self.unpacker.as_ref().is_some_and(|unpacker| !unpacker.unpacked.rest().is_empty())
    }
}

/// Takes the record at the front, which is known to be whole.
fn take(buffer: &mut Buffer, order: ByteOrder) -> io::Result<Record<'_>> {
    let at = buffer.taken;
    let found = header(&buffer.bytes[at..], order).filter(|(.., size)| buffer.bytes.len() - at >= *size);
    let (kind, misc, size) = found.ok_or_else(|| bad("a record is not whole"))?;
    buffer.taken += size;
    Ok(Record { kind, misc, body: &buffer.bytes[at + HEADER_BYTES..at + size] })
}
