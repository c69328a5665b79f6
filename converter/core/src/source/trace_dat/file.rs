//! Reads the metadata of trace.dat (trace-cmd.dat(5)), versions 6 and 7: formats, names, and where each CPU's pages are.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use super::page::Shape;
use crate::error::Refused;
use crate::input_file::Store;
use crate::source::binary::format::{FTRACE, Format, parse_formats};
use crate::source::binary::{ByteOrder, CUT_OFF, Cursor, Functions, bad};
use crate::source::dynamic_events::end_functions;
use crate::source::event_names::MARKER;
use crate::source::function_graph::functions;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Limit for everything before the pages, decompressed. It exceeds the formats and symbols of any kernel.
const MAX_HEAD_BYTES: u64 = 256 << 20;
/// Exceeds the metadata of most files.
const FIRST_READ_BYTES: u64 = 16 << 20;
const MAX_CPUS: u32 = 1 << 16;

/// Ids of options and of the sections to which they point.
mod option {
    pub(super) const DONE: u16 = 0;
    pub(super) const CPU_STAT: u16 = 2;
    pub(super) const BUFFER: u16 = 3;
    pub(super) const TRACE_CLOCK: u16 = 4;
    pub(super) const UNAME: u16 = 5;
    pub(super) const OFFSET: u16 = 7;
    pub(super) const CPU_COUNT: u16 = 8;
    pub(super) const VERSION: u16 = 9;
    pub(super) const TSC_TO_NS: u16 = 14;
    pub(super) const HEADER_INFO: u16 = 16;
    pub(super) const FTRACE_FORMATS: u16 = 17;
    pub(super) const EVENT_FORMATS: u16 = 18;
    pub(super) const KALLSYMS: u16 = 19;
    pub(super) const CMDLINES: u16 = 21;
    pub(super) const BUFFER_TEXT: u16 = 22;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Self::None),
            "zlib" => Some(Self::Zlib),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    pub(super) fn unpack(self, packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let unpacked = match self {
            Self::None => Ok(packed.to_vec()),
            Self::Zlib => {
                let mut out = Vec::new();
                let decoder = flate2::read::ZlibDecoder::new(packed);
                io::Read::read_to_end(&mut io::Read::take(decoder, size as u64 + 1), &mut out).map(|_| out)
            }
            Self::Zstd => zstd::bulk::decompress(packed, size),
        };
        match unpacked {
            Ok(unpacked) if unpacked.len() == size => Ok(unpacked),
            Ok(unpacked) => {
                let has = if unpacked.len() > size { "more".to_owned() } else { unpacked.len().to_string() };
                Err(bad(format!("a compressed part should have {size} bytes, and has {has}")))
            }
            Err(why) => Err(bad(format!("a compressed part cannot be unpacked: {why}"))),
        }
    }
}

/// The pages of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) number: u32,
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

/// The kernel's counts of a buffer (`per_cpu/cpu*/stats`), summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stats {
    /// Events that were overwritten before they were read. Pages report these too, though not always with their number.
    pub(super) overrun: u64,
    /// Events that were dropped for lack of room. No page reports these.
    pub(super) dropped: u64,
}

impl Stats {
    fn add(&mut self, text: &str) {
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let count = || value.trim().parse().unwrap_or(0);
            match key.trim() {
                "overrun" => self.overrun = self.overrun.saturating_add(count()),
                "commit overrun" | "dropped events" => self.dropped = self.dropped.saturating_add(count()),
                _ => {}
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct TraceDat {
    pub(super) shape: Shape,
    pub(super) formats: Vec<Format>,
    pub(super) comms: HashMap<u32, Vec<u8>>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) uname: Option<String>,
    pub(super) recorder: Option<String>,
    /// Offset in ns that is added to every time.
    pub(super) offset_ns: i64,
    pub(super) tsc: Option<TscToNs>,
    pub(super) stats: Stats,
    /// Where the kernel's writer of markers is, `None` if the file does not say, and the functions that say what a bio is.
    pub(super) symbols: (Option<Range<u64>>, Functions),
}

pub(super) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

const TOO_LARGE: &str = "its metadata is larger than any kernel writes";
const NO_EVENTS: &str = "it holds the text of a latency tracer, and no events";

fn latency_error() -> io::Error {
    Refused::error(NO_EVENTS, "record events instead of a latency tracer: `trace-cmd record -e wb_tracer`")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').trim().to_owned()
}

impl TraceDat {
    pub(super) fn read(store: &Store) -> io::Result<Self> {
        let head = store.read_at(0, 256)?;
        if !is_trace_dat(&head) {
            let hint = "leave out `--from`: the format is detected from the file itself";
            return Err(Refused::error("it is not a trace.dat file: it does not begin like one", hint));
        }
        let mut cursor = Cursor { bytes: &head, at: MAGIC.len(), big_endian: false };
        let version = cursor.string()?;
        if !matches!(version.as_str(), "6" | "7") {
            let version: String = version.chars().filter(|c| !c.is_control()).take(20).collect();
            return Err(Refused::error(
                format!("its format is version {version}, and Syncline reads versions 6 and 7"),
                "rewrite it with `trace-cmd convert --file-version 7 -i IN -o OUT`",
            ));
        }
        cursor.big_endian = match cursor.take(1)?[0] {
            0 => false,
            1 => true,
            _ => return Err(bad("its byte order is neither little nor big endian")),
        };
        let big_endian = cursor.big_endian;
        // The size of a long in user space. The page header has that of the kernel.
        cursor.take(1)?;
        let page_bytes = cursor.u32()? as usize;
        let mut file = if version == "6" {
            Self::read_version_6(store, big_endian, cursor.at, page_bytes)?
        } else {
            let name = cursor.string()?;
            cursor.string()?;
            let Some(compression) = Compression::from_name(&name) else {
                let name: String = name.chars().filter(|c| !c.is_control()).take(20).collect();
                return Err(Refused::error(
                    format!("it is compressed by '{name}', and Syncline knows zstd and zlib"),
                    "rewrite it with `trace-cmd convert --compression none -i IN -o OUT`",
                ));
            };
            let first = cursor.u64()?;
            Self::read_version_7(&mut Sections { store, big_endian, compression, left_bytes: MAX_HEAD_BYTES }, first)?
        };
        if file.formats.is_empty() {
            return Err(bad("it describes no events"));
        }
        if file.buffers.is_empty() {
            return Err(Refused::error(
                "it has no events: what recorded it was ended before it had written them",
                "`trace-cmd restore` makes a file of trace.dat.cpu0 and so on, if those are still there",
            ));
        }
        // Where nothing was recorded, one buffer still says which clock would have been.
        let has_pages = |buffer: &Buffer| buffer.cpus.iter().any(|cpu| cpu.size > 0);
        if file.buffers.iter().any(has_pages) {
            file.buffers.retain(has_pages);
        } else {
            file.buffers.truncate(1);
        }
        file.check_page_ranges(store)?;
        Ok(file)
    }

    fn new(big_endian: bool) -> Self {
        Self {
            shape: Shape { order: ByteOrder { big_endian }, commit_at: 8, commit_bytes: 8, data_at: 16 },
            formats: Vec::new(),
            comms: HashMap::new(),
            buffers: Vec::new(),
            uname: None,
            recorder: None,
            offset_ns: 0,
            tsc: None,
            stats: Stats::default(),
            symbols: (None, Functions::default()),
        }
    }

    /// Checks that all pages are within the file and do not overlap.
    fn check_page_ranges(&self, store: &Store) -> io::Result<()> {
        let mut cpus: Vec<&Cpu> = self.buffers.iter().flat_map(|b| &b.cpus).filter(|cpu| cpu.size > 0).collect();
        cpus.sort_by_key(|cpu| cpu.offset);
        let mut before = 0;
        for Cpu { number: cpu, offset, size } in cpus {
            let end = offset.saturating_add(*size);
            if end > store.len() {
                let has = store.len();
                return Err(bad(format!(
                    "it is cut off: the events of CPU {cpu} reach to byte {end}, and it has {has}"
                )));
            }
            if *offset < before {
                return Err(bad(format!(
                    "the events of CPU {cpu}, at byte {offset}, overlap those of another CPU or buffer"
                )));
            }
            before = end;
        }
        Ok(())
    }

    /// Version 6 is sequential: header, formats, symbols, command lines, options, then the locations of the pages.
    fn read_version_6(store: &Store, big_endian: bool, at: usize, page_bytes: usize) -> io::Result<Self> {
        // The file does not record the size of its metadata.
        let mut read = FIRST_READ_BYTES;
        loop {
            match Self::parse_version_6(store, &store.read_at(0, read)?, big_endian, at, page_bytes) {
                Err(error) if error.to_string() == CUT_OFF && read < store.len() => {
                    if read >= MAX_HEAD_BYTES {
                        return Err(bad(TOO_LARGE));
                    }
                    read = (read * 4).min(MAX_HEAD_BYTES);
                }
                done => return done,
            }
        }
    }

    fn parse_version_6(store: &Store, all: &[u8], big_endian: bool, at: usize, page_bytes: usize) -> io::Result<Self> {
        let mut file = Self::new(big_endian);
        let mut cursor = Cursor { bytes: all, at, big_endian };
        file.parse_header_info(&mut cursor)?;
        file.parse_ftrace_formats(&mut cursor)?;
        file.formats.extend(parse_formats(&mut cursor)?);
        file.symbols = find_symbols(cursor.sized(4)?);
        // The formats of trace_printk.
        cursor.sized(4)?;
        file.comms = parse_comms(cursor.sized(8)?);
        let mut cpus = cursor.u32()?;
        let mut clock = String::new();
        // Other buffers: name, number of CPUs, and file offset.
        let mut others: Vec<(String, Option<u32>, u64)> = Vec::new();
        loop {
            match cursor.take(10)? {
                b"options  \0" => {
                    while let Some((id, bytes)) = next_option(&mut cursor, false)? {
                        let mut data = Cursor { bytes, at: 0, big_endian };
                        match id {
                            option::TRACE_CLOCK => clock = chosen_clock(&text(bytes)),
                            option::BUFFER => {
                                let offset = data.u64()?;
                                others.push((data.string()?, None, offset));
                            }
                            // For the preceding buffer, or for all.
                            option::CPU_COUNT => match others.last_mut() {
                                Some(other) => other.1 = Some(data.u32()?),
                                None => cpus = data.u32()?,
                            },
                            _ => file.parse_simple_option(id, bytes),
                        }
                    }
                }
                b"flyrecord\0" => break,
                b"latency  \0" => return Err(latency_error()),
                _ => return Err(bad("what follows its options is neither events nor text")),
            }
        }
        let buffer = |cpus| Buffer { clock: clock.clone(), page_bytes, cpus, compression: Compression::None };
        let table = parse_cpu_table(&mut cursor, cpus)?;
        file.buffers.push(buffer(table));
        for (name, own_cpus, offset) in others {
            let own_cpus = own_cpus.unwrap_or(cpus);
            if offset == 0 || own_cpus > MAX_CPUS {
                return Err(bad(CUT_OFF));
            }
            let bytes = store.read_at(offset, 10 + 16 * u64::from(own_cpus))?;
            let mut cursor = Cursor { bytes: &bytes, at: 0, big_endian };
            if cursor.take(10).ok() != Some(b"flyrecord\0") {
                return Err(bad(format!("the events of its buffer '{name}' are not where it says")));
            }
            let table = parse_cpu_table(&mut cursor, own_cpus)?;
            file.buffers.push(buffer(table));
        }
        Ok(file)
    }

    /// Version 7 consists of options that point to sections.
    fn read_version_7(sections: &mut Sections<'_>, first: u64) -> io::Result<Self> {
        let big_endian = sections.big_endian;
        let mut file = Self::new(big_endian);
        let mut described = false;
        let mut at = first;
        let mut seen = Vec::new();
        while at != 0 {
            if seen.contains(&at) {
                return Err(bad("its options go round in a circle"));
            }
            seen.push(at);
            let options = sections.read(at, option::DONE)?;
            let mut cursor = Cursor { bytes: &options, at: 0, big_endian };
            at = 0;
            while !cursor.is_at_end() {
                let Some((id, bytes)) = next_option(&mut cursor, true)? else { break };
                let mut data = Cursor { bytes, at: 0, big_endian };
                match id {
                    option::DONE => {
                        at = data.u64()?;
                        break;
                    }
                    option::HEADER_INFO
                    | option::FTRACE_FORMATS
                    | option::EVENT_FORMATS
                    | option::KALLSYMS
                    | option::CMDLINES => {
                        let body = sections.read(data.u64()?, id)?;
                        let mut body = Cursor { bytes: &body, at: 0, big_endian };
                        match id {
                            option::HEADER_INFO => file.parse_header_info(&mut body)?,
                            option::FTRACE_FORMATS => file.parse_ftrace_formats(&mut body)?,
                            option::EVENT_FORMATS => file.formats.extend(parse_formats(&mut body)?),
                            option::KALLSYMS => file.symbols = find_symbols(body.sized(4)?),
                            _ => file.comms = parse_comms(body.sized(8)?),
                        }
                        described |= id == option::HEADER_INFO;
                    }
                    option::BUFFER => {
                        let offset = data.u64()?;
                        // The name of the buffer; empty for the first one.
                        data.string()?;
                        let clock = data.string()?;
                        let page_bytes = data.u32()? as usize;
                        let cpus = data.u32()?;
                        if cpus > MAX_CPUS {
                            return Err(bad(CUT_OFF));
                        }
                        let cpus = (0..cpus)
                            .map(|_| Ok(Cpu { number: data.u32()?, offset: data.u64()?, size: data.u64()? }))
                            .collect::<io::Result<_>>()?;
                        let (packed, _) = sections.header(offset, option::BUFFER)?;
                        let compression = if packed { sections.compression } else { Compression::None };
                        file.buffers.push(Buffer { clock, page_bytes, cpus, compression });
                    }
                    option::BUFFER_TEXT => return Err(latency_error()),
                    _ => file.parse_simple_option(id, bytes),
                }
            }
        }
        if !described {
            return Err(bad("the description of its pages is missing"));
        }
        Ok(file)
    }

    fn parse_simple_option(&mut self, id: u16, bytes: &[u8]) {
        let mut data = Cursor { bytes, at: 0, big_endian: self.shape.order.big_endian };
        match id {
            option::CPU_STAT => self.stats.add(&text(bytes)),
            option::UNAME => self.uname = Some(text(bytes)),
            option::VERSION => self.recorder = Some(text(bytes)),
            option::OFFSET => self.offset_ns = self.offset_ns.wrapping_add(parse_offset_ns(&text(bytes))),
            option::TSC_TO_NS => {
                if let (Ok(mult @ 1..), Ok(shift), Ok(offset)) = (data.u32(), data.u32(), data.u64()) {
                    self.tsc = Some(TscToNs { mult, shift: shift.min(63), offset });
                }
            }
            _ => {}
        }
    }

    fn parse_header_info(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        if cursor.take(12)? != b"header_page\0" {
            return Err(bad("the description of its pages is missing"));
        }
        let page = text(cursor.sized(8)?);
        if cursor.take(13)? != b"header_event\0" {
            return Err(bad("the description of its records is missing"));
        }
        cursor.sized(8)?;
        // It is like an event format, without the name and id.
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

    /// ftrace's own events have no system of their own in tracefs.
    fn parse_ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> io::Result<()> {
        for _ in 0..cursor.u32()? {
            let text = String::from_utf8_lossy(cursor.sized(8)?);
            self.formats.extend(Format::parse(FTRACE, &text));
        }
        Ok(())
    }
}

fn parse_cpu_table(cursor: &mut Cursor<'_>, cpus: u32) -> io::Result<Vec<Cpu>> {
    if cpus > MAX_CPUS {
        return Err(bad(CUT_OFF));
    }
    (0..cpus).map(|cpu| Ok(Cpu { number: cpu, offset: cursor.u64()?, size: cursor.u64()? })).collect()
}

/// Parses a number as C's strtoll does: `-12`, `0x1f`.
fn parse_offset_ns(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map_or(0, |value| if negative { value.wrapping_neg() } else { value })
}

/// Finds what Syncline needs among the kernel's symbols.
fn find_symbols(symbols: &[u8]) -> (Option<Range<u64>>, Functions) {
    let names = end_functions().chain(functions::names());
    let wanted: HashMap<&[u8], &'static str> = names.map(|name| (name.as_bytes(), name)).collect();
    let functions = symbols.split(|&b| b == b'\n').filter_map(|line| {
        let mut words = line.split(|&b| b == b' ' || b == b'\t').filter(|word| !word.is_empty());
        let (digits, name) = (words.next()?, words.nth(1)?);
        let name = *wanted.get(name.split(|&b| b == b'.').next()?)?;
        let address = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (address != 0).then_some((address, name))
    });
    (find_marker_writer(symbols), functions.collect())
}

/// Finds the writer of markers among lines of `ffffffff81234560 T name`. Addresses are 0 for a user who may not read them.
fn find_marker_writer(symbols: &[u8]) -> Option<Range<u64>> {
    let parse = |line: &'_ [u8]| {
        let mut words = line.split(|&b| b == b' ' || b == b'\t').filter(|word| !word.is_empty());
        let address =
            std::str::from_utf8(words.next()?).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
        words.next()?;
        let is_writer = words.next().is_some_and(|name| name.split(|&b| b == b'.').next() == Some(MARKER));
        Some((address, is_writer))
    };
    let all = || symbols.split(|&b| b == b'\n').filter_map(parse);
    let start = all().find(|(_, is_writer)| *is_writer)?.0;
    let end = all().map(|(address, _)| address).filter(|&address| address > start).min().unwrap_or(u64::MAX);
    (start != 0).then_some(start..end)
}

/// Parses lines of `1234 comm`.
fn parse_comms(lines: &[u8]) -> HashMap<u32, Vec<u8>> {
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

/// Returns the clock in brackets of `[local] global counter`.
fn chosen_clock(clocks: &str) -> String {
    let chosen = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(clocks, |(clock, _)| clock).to_owned()
}

/// Reads an option. Returns `None` at the end of the options of version 6, where the last option has no data.
fn next_option<'a>(cursor: &mut Cursor<'a>, done_has_data: bool) -> io::Result<Option<(u16, &'a [u8])>> {
    let id = cursor.u16()?;
    if id == option::DONE && !done_has_data {
        return Ok(None);
    }
    let size = cursor.u32()?;
    Ok(Some((id, cursor.take(u64::from(size))?)))
}

const SECTION_HEADER_BYTES: u64 = 16;

/// Sections of version 7.
struct Sections<'a> {
    store: &'a Store,
    big_endian: bool,
    compression: Compression,
    /// Number of bytes that may still be read.
    left_bytes: u64,
}

impl Sections<'_> {
    /// Returns whether a section is compressed, and its size in the file.
    fn header(&self, at: u64, id: u16) -> io::Result<(bool, u64)> {
        let header = self.store.read_at(at, SECTION_HEADER_BYTES)?;
        if header.len() as u64 != SECTION_HEADER_BYTES {
            let has = self.store.len();
            return Err(bad(format!("it is cut off: more is said to be at byte {at}, and it has {has}")));
        }
        let mut cursor = Cursor { bytes: &header, at: 0, big_endian: self.big_endian };
        let (found, flags) = (cursor.u16()?, cursor.u16()?);
        cursor.u32()?;
        if found != id {
            return Err(bad(format!("the part at byte {at} is not what the file says it is")));
        }
        Ok((flags & 1 != 0, cursor.u64()?))
    }

    /// Returns the bytes of a section, decompressed.
    fn read(&mut self, at: u64, id: u16) -> io::Result<Vec<u8>> {
        let (packed, size) = self.header(at, id)?;
        let body_at = at + SECTION_HEADER_BYTES;
        let has = self.store.len();
        if size > has - body_at {
            let end = body_at.saturating_add(size);
            return Err(bad(format!("it is cut off: a part of it reaches from byte {at} to {end}, and it has {has}")));
        }
        self.spend(size.saturating_add(SECTION_HEADER_BYTES))?;
        let body = self.store.read_at(body_at, size)?;
        if !packed {
            return Ok(body);
        }
        let mut cursor = Cursor { bytes: &body, at: 0, big_endian: self.big_endian };
        let (packed, unpacked) = (cursor.u32()?, cursor.u32()?);
        self.spend(u64::from(unpacked))?;
        self.compression.unpack(cursor.take(u64::from(packed))?, unpacked as usize)
    }

    fn spend(&mut self, bytes: u64) -> io::Result<()> {
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or_else(|| bad(TOO_LARGE))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_as_c_reads_them() {
        let read = ["12", "-12", "+7", "0x1f", "-0x10", "", "x", "9223372036854775807"].map(parse_offset_ns);
        assert_eq!(read, [12, -12, 7, 31, -16, 0, 0, i64::MAX]);
    }

    #[test]
    fn the_writer_of_markers_ends_at_the_next_symbol() {
        let find = |text: &str| find_marker_writer(text.as_bytes());
        let text =
            "ffffffff81001000 T do_fsync\nffffffff81003000 t later\t[mod]\nffffffff81002000 t tracing_mark_write\n";
        assert_eq!(find(text), Some(0xffff_ffff_8100_2000..0xffff_ffff_8100_3000));
        assert_eq!(find("0000000000000000 t tracing_mark_write\n0000000000000000 T x\n"), None);
        assert_eq!(find("ffffffff81001000 T do_fsync\n"), None);
        assert_eq!(find("ffffffff81002000 t tracing_mark_write.part.0\n"), Some(0xffff_ffff_8100_2000..u64::MAX));
        assert_eq!(find(""), None);
    }

    #[test]
    fn stats_are_summed() {
        let mut stats = Stats::default();
        stats.add("CPU: 0\nentries: 12\noverrun: 3\ncommit overrun: 1\ndropped events: 4\nread events: 9\n");
        stats.add("\nBuffer: b\n\n");
        stats.add("CPU: 1\noverrun: 5\ndropped events: x\n");
        assert_eq!(stats, Stats { overrun: 8, dropped: 5 });
    }
}
