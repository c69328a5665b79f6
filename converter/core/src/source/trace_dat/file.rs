//! The file that trace-cmd writes (trace-cmd.dat(5)), versions 6 and 7: where the formats and each CPU's pages are.

use std::collections::HashMap;
use std::io;

use super::format::Format;
use super::page::Shape;
use crate::input::Store;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// What a file may say of the size of anything but its trace data.
const MAX_SECTION_BYTES: u64 = 1 << 30;
/// More than what stands before the pages of most files.
const FIRST_READ_BYTES: u64 = 16 << 20;
const MAX_CPUS: u32 = 1 << 16;

/// Ids of options and of the sections that they point to.
mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const CPU_STAT: u16 = 2;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACE_CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const OFFSET: u16 = 7;
    pub(super) const VERSION: u16 = 9;
    pub(super) const TSC_TO_NS: u16 = 14;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const CMDLINES: u16 = 21;
    pub(super) const BUFFER_TEXT: u16 = 22;
    pub(super) const SAVED_TGIDS: u16 = 23;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    fn named(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Self::None),
            "zlib" => Some(Self::Zlib),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(super) fn unpack(self, packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let unpacked = match self {
            Self::None => packed.to_vec(),
            Self::Zlib => {
                let mut out = Vec::with_capacity(size);
                let decoder = flate2::read::ZlibDecoder::new(packed);
                io::Read::read_to_end(&mut io::Read::take(decoder, size as u64 + 1), &mut out)?;
                out
            }
            Self::Zstd => zstd::bulk::decompress(packed, size)?,
        };
        if unpacked.len() == size {
            Ok(unpacked)
        } else {
            Err(bad("a compressed section has not the size that it says"))
        }
    }
}

/// Pages of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) clock: String,
    pub(super) page_bytes: usize,
    pub(super) cpus: Vec<Cpu>,
    pub(super) compression: Compression,
}

/// ns = (ticks * mult >> shift) + offset
#[derive(Clone, Copy, Debug)]
pub(super) struct TscToNs {
    pub(super) mult: u32,
    pub(super) shift: u32,
    pub(super) offset: u64,
}

#[derive(Debug)]
pub(super) struct TraceDat {
    pub(super) shape: Shape,
    pub(super) formats: Vec<Format>,
    pub(super) comms: HashMap<u32, Vec<u8>>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) uname: Option<String>,
    pub(super) recorder: Option<String>,
    /// ns that are added to every time.
    pub(super) offset_ns: i64,
    pub(super) tsc: Option<TscToNs>,
    /// The kernel's own counts of each CPU's buffer.
    pub(super) stats: Vec<String>,
}

pub(super) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

fn bad(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

const CUT_OFF: &str = "the file is cut off";

/// Takes numbers and strings off bytes, in the file's own byte order.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, size: u64) -> io::Result<&'a [u8]> {
        let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size));
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| bad(CUT_OFF))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> io::Result<u64> {
        let bytes = self.take(size as u64)?;
        let fold = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Ok(if self.big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.number(2).map(|n| n as u16)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.number(4).map(|n| n as u32)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.number(8)
    }

    /// Up to a NUL.
    fn string(&mut self) -> io::Result<String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(0, rest).ok_or_else(|| bad(CUT_OFF))?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    /// A size of so many bytes and what it is the size of.
    fn sized(&mut self, size_bytes: usize) -> io::Result<&'a [u8]> {
        let size = self.number(size_bytes)?;
        self.take(size)
    }

    fn ended(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').trim().to_owned()
}

impl TraceDat {
    pub(super) fn read(store: &Store) -> io::Result<Self> {
        let head = store.read_at(0, 256)?;
        let mut cursor = Cursor { bytes: &head, at: MAGIC.len(), big_endian: false };
        let version = cursor.string()?;
        cursor.big_endian = match cursor.take(1)?[0] {
            0 => false,
            1 => true,
            _ => return Err(bad("its byte order is neither little nor big endian")),
        };
        let big_endian = cursor.big_endian;
        // The long of user space; the kernel's is told by its page header.
        cursor.take(1)?;
        let page_bytes = cursor.u32()?;
        let mut file = Self {
            shape: Shape { big_endian, commit_at: 8, commit_bytes: 8, data_at: 16 },
            formats: Vec::new(),
            comms: HashMap::new(),
            buffers: Vec::new(),
            uname: None,
            recorder: None,
            offset_ns: 0,
            tsc: None,
            stats: Vec::new(),
        };
        match version.as_str() {
            "6" => file.version_6(store, cursor.at, page_bytes)?,
            "7" => {
                let name = cursor.string()?;
                cursor.string()?;
                let compression = Compression::named(&name)
                    .ok_or_else(|| bad(format!("it is compressed by '{name}', which Syncline does not know")))?;
                let first = cursor.u64()?;
                file.version_7(store, first, compression)?;
            }
            _ => return Err(bad(format!("its format is version {version}; Syncline reads versions 6 and 7"))),
        }
        if file.formats.is_empty() {
            return Err(bad("it describes no events"));
        }
        Ok(file)
    }

    /// All in a row: header, formats, symbols, command lines, options, then where the pages are.
    fn version_6(&mut self, store: &Store, at: usize, page_bytes: u32) -> io::Result<()> {
        // How long all that stands before the pages is, it does not say.
        let mut read = FIRST_READ_BYTES;
        loop {
            let before = (self.formats.len(), self.stats.len());
            match self.version_6_from(&store.read_at(0, read)?, at, page_bytes) {
                Err(error) if error.to_string() == CUT_OFF && read < store.len().min(MAX_SECTION_BYTES) => {
                    self.formats.truncate(before.0);
                    self.stats.truncate(before.1);
                    read *= 8;
                }
                done => return done,
            }
        }
    }

    fn version_6_from(&mut self, all: &[u8], at: usize, page_bytes: u32) -> io::Result<()> {
        let mut cursor = Cursor { bytes: all, at, big_endian: self.shape.big_endian };
        self.header_info(&mut cursor)?;
        for _ in 0..cursor.u32()? {
            cursor.sized(8)?;
        }
        self.event_formats(&mut cursor)?;
        cursor.sized(4)?;
        cursor.sized(4)?;
        self.comms = comms(cursor.sized(8)?);
        let cpus = cursor.u32()?;
        let mut clock = String::new();
        loop {
            match cursor.take(10)? {
                b"options  \0" => {
                    while let Some((id, data)) = next_option(&mut cursor, false)? {
                        if id == option::TRACE_CLOCK {
                            clock = chosen_clock(&text(data));
                        }
                        self.simple_option(id, data);
                    }
                }
                b"flyrecord\0" => break,
                b"latency  \0" => return Err(bad("it holds text of a latency tracer, no events")),
                _ => return Err(bad("what follows the options is not known")),
            }
        }
        if cpus > MAX_CPUS {
            return Err(bad(CUT_OFF));
        }
        let cpus = (0..cpus)
            .map(|cpu| Ok(Cpu { cpu, offset: cursor.u64()?, size: cursor.u64()? }))
            .collect::<io::Result<_>>()?;
        self.buffers.push(Buffer { clock, page_bytes: page_bytes as usize, cpus, compression: Compression::None });
        Ok(())
    }

    /// Options that point to sections.
    fn version_7(&mut self, store: &Store, first: u64, compression: Compression) -> io::Result<()> {
        let mut at = first;
        let mut seen = Vec::new();
        while at != 0 {
            if seen.contains(&at) || seen.len() > 1000 {
                return Err(bad("its options go round in a circle"));
            }
            seen.push(at);
            let (_, options) = section(store, at, self.shape.big_endian, compression)?;
            let mut cursor = Cursor { bytes: &options, at: 0, big_endian: self.shape.big_endian };
            at = 0;
            while !cursor.ended() {
                let Some((id, data)) = next_option(&mut cursor, true)? else { break };
                let mut of = Cursor { bytes: data, at: 0, big_endian: self.shape.big_endian };
                match id {
                    option::DONE => {
                        at = of.u64()?;
                        break;
                    }
                    option::HEADER_INFO | option::EVENT_FORMATS | option::CMDLINES => {
                        let (_, body) = section(store, of.u64()?, self.shape.big_endian, compression)?;
                        let mut body = Cursor { bytes: &body, at: 0, big_endian: self.shape.big_endian };
                        match id {
                            option::HEADER_INFO => self.header_info(&mut body)?,
                            option::EVENT_FORMATS => self.event_formats(&mut body)?,
                            _ => self.comms = comms(body.sized(8)?),
                        }
                    }
                    option::BUFFER => {
                        let place = of.u64()?;
                        of.string()?;
                        let clock = of.string()?;
                        let page_bytes = of.u32()? as usize;
                        let cpus = of.u32()?;
                        if cpus > MAX_CPUS {
                            return Err(bad(CUT_OFF));
                        }
                        let cpus = (0..cpus)
                            .map(|_| Ok(Cpu { cpu: of.u32()?, offset: of.u64()?, size: of.u64()? }))
                            .collect::<io::Result<_>>()?;
                        let packed = section_is_packed(store, place, self.shape.big_endian)?;
                        let compression = if packed { compression } else { Compression::None };
                        self.buffers.push(Buffer { clock, page_bytes, cpus, compression });
                    }
                    option::BUFFER_TEXT => return Err(bad("it holds text of a latency tracer, no events")),
                    _ => self.simple_option(id, data),
                }
            }
        }
        Ok(())
    }

    fn simple_option(&mut self, id: u16, data: &[u8]) {
        let mut of = Cursor { bytes: data, at: 0, big_endian: self.shape.big_endian };
        match id {
            option::CPU_STAT => self.stats.push(text(data)),
            option::UNAME => self.uname = Some(text(data)),
            option::VERSION => self.recorder = Some(text(data)),
            option::OFFSET => self.offset_ns = self.offset_ns.wrapping_add(text(data).parse().unwrap_or(0)),
            option::TSC_TO_NS => {
                if let (Ok(mult), Ok(shift), Ok(offset)) = (of.u32(), of.u32(), of.u64()) {
                    self.tsc = Some(TscToNs { mult, shift: shift.min(63), offset });
                }
            }
            option::SAVED_TGIDS => {}
            _ => {}
        }
    }

    fn header_info(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        if cursor.take(12)? != b"header_page\0" {
            return Err(bad("the description of its pages is missing"));
        }
        let page = text(cursor.sized(8)?);
        if cursor.take(13)? != b"header_event\0" {
            return Err(bad("the description of its records is missing"));
        }
        cursor.sized(8)?;
        // It has the shape of an event's format, but for the name and number.
        let described = Format::parse("", &format!("name: page\nID: 0\n{page}"));
        let field = |name| described.as_ref().and_then(|format| format.field(name));
        let (Some(commit), Some(data)) = (field("commit"), field("data")) else {
            return Err(bad("the description of its pages is not understood"));
        };
        if !matches!(commit.size, 4 | 8) {
            return Err(bad("the description of its pages is not understood"));
        }
        self.shape.commit_at = commit.offset;
        self.shape.commit_bytes = commit.size;
        self.shape.data_at = data.offset;
        Ok(())
    }

    fn event_formats(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        for _ in 0..cursor.u32()? {
            let system = cursor.string()?;
            for _ in 0..cursor.u32()? {
                let text = String::from_utf8_lossy(cursor.sized(8)?);
                self.formats.extend(Format::parse(&system, &text));
            }
        }
        Ok(())
    }
}

/// `1234 comm` a line.
fn comms(lines: &[u8]) -> HashMap<u32, Vec<u8>> {
    lines
        .split(|&b| b == b'\n')
        .filter_map(|line| {
            let space = memchr::memchr(b' ', line)?;
            let pid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
            let comm = line[space + 1..].split(|&b| b == 0).next()?;
            Some((pid, comm.to_vec()))
        })
        .collect()
}

/// `[local] global counter`: the one in brackets.
fn chosen_clock(clocks: &str) -> String {
    let chosen = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(clocks, |(clock, _)| clock).to_owned()
}

/// `None` at the end of the options of version 6, which have no data there.
fn next_option<'a>(cursor: &mut Cursor<'a>, done_has_data: bool) -> io::Result<Option<(u16, &'a [u8])>> {
    let id = cursor.u16()?;
    if id == option::DONE && !done_has_data {
        return Ok(None);
    }
    let size = cursor.u32()?;
    Ok(Some((id, cursor.take(u64::from(size))?)))
}

const SECTION_HEADER_BYTES: u64 = 16;

fn section_header(store: &Store, at: u64, big_endian: bool) -> io::Result<(u16, bool, u64)> {
    let header = store.read_at(at, SECTION_HEADER_BYTES)?;
    let mut cursor = Cursor { bytes: &header, at: 0, big_endian };
    let (id, flags) = (cursor.u16()?, cursor.u16()?);
    cursor.u32()?;
    Ok((id, flags & 1 != 0, cursor.u64()?))
}

fn section_is_packed(store: &Store, at: u64, big_endian: bool) -> io::Result<bool> {
    section_header(store, at, big_endian).map(|(_, packed, _)| packed)
}

/// A section's id and its bytes, unpacked.
fn section(store: &Store, at: u64, big_endian: bool, compression: Compression) -> io::Result<(u16, Vec<u8>)> {
    let (id, packed, size) = section_header(store, at, big_endian)?;
    if size > MAX_SECTION_BYTES {
        return Err(bad("a section is larger than any can be"));
    }
    let body = store.read_at(at + SECTION_HEADER_BYTES, size)?;
    if body.len() as u64 != size {
        return Err(bad(CUT_OFF));
    }
    if !packed {
        return Ok((id, body));
    }
    let mut cursor = Cursor { bytes: &body, at: 0, big_endian };
    let (packed, unpacked) = (cursor.u32()?, cursor.u32()?);
    if u64::from(unpacked) > MAX_SECTION_BYTES {
        return Err(bad("a section is larger than any can be"));
    }
    Ok((id, compression.unpack(cursor.take(u64::from(packed))?, unpacked as usize)?))
}
