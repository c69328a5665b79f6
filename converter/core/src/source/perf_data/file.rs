//! Opens a perf.data file, or what `perf record -o -` writes to a pipe: where its records are, and what it says about them.

use std::io;

use super::attr::Attr;
use super::metadata::{Metadata, feature};
use super::records::{Record, Records, kind};
use crate::error::Refused;
use crate::input_file::Store;
use crate::source::binary::{ByteOrder, CUT_OFF, Cursor, bad};

/// The first bytes of a file, in both byte orders.
const LITTLE: &[u8] = b"PERFILE2";
const BIG: &[u8] = b"2ELIFREP";
/// Begins the files of perf before 2.6.33.
const OLD: &[u8] = b"PERFFILE";

const PIPE_HEADER_BYTES: u64 = 16;
const FILE_HEADER_BYTES: u64 = 104;
/// Offset and size of the ids that follow the attributes of an event.
const SECTION_BYTES: u64 = 16;
/// Limits for everything but the records. They exceed the formats and names of any recording.
const MAX_ATTRS_BYTES: u64 = 64 << 20;
const MAX_FEATURE_BYTES: u64 = 256 << 20;

pub(super) fn is_perf_data(head: &[u8]) -> bool {
    [LITTLE, BIG, OLD].iter().any(|magic| head.starts_with(magic))
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct Section {
    at: u64,
    size: u64,
}

impl Section {
    fn read(cursor: &mut Cursor<'_>) -> io::Result<Self> {
        Ok(Self { at: cursor.u64()?, size: cursor.u64()? })
    }

    fn bytes(self, store: &Store, max: u64) -> io::Result<Vec<u8>> {
        if self.size > max {
            return Err(bad("what it says about its events is larger than perf writes"));
        }
        let bytes = store.read_at(self.at, self.size)?;
        if bytes.len() as u64 == self.size { Ok(bytes) } else { Err(bad(CUT_OFF)) }
    }
}

/// Reads everything but the records, and returns it with a reader of the records.
pub(super) fn open(store: Store) -> io::Result<(Metadata, Records)> {
    let head = store.read_at(0, FILE_HEADER_BYTES)?;
    if head.starts_with(OLD) {
        return Err(Refused::error("a perf of before 2010 wrote it", "record again with a newer perf"));
    }
    if !is_perf_data(&head) {
        let hint = "leave out `--from`: the format is detected from the file itself";
        return Err(Refused::error("it is not a perf.data file: it does not begin like one", hint));
    }
    let order = ByteOrder { big_endian: head.starts_with(BIG) };
    let mut metadata = Metadata::new(order);
    let header_bytes = order.number(&head, 8, 8).ok_or_else(|| bad(CUT_OFF))?;
    let records = if header_bytes == PIPE_HEADER_BYTES {
        open_pipe(store, &mut metadata)?
    } else {
        open_file(store, &head, header_bytes, &mut metadata)?
    };
    metadata.finish()?;
    check(&metadata)?;
    Ok((metadata, records))
}

fn open_file(store: Store, head: &[u8], header_bytes: u64, metadata: &mut Metadata) -> io::Result<Records> {
    let order = metadata.order;
    if header_bytes < FILE_HEADER_BYTES {
        return Err(bad(format!("its header says that it has {header_bytes} bytes")));
    }
    let mut cursor = Cursor { bytes: head, at: 16, big_endian: order.big_endian };
    let attr_bytes = cursor.u64()?;
    let (attrs, data) = (Section::read(&mut cursor)?, Section::read(&mut cursor)?);
    // A part that perf does not use any more.
    Section::read(&mut cursor)?;
    let features = cursor.take(32)?;
    if data.size == 0 {
        return Err(Refused::error(
            "perf was killed before it completed the file: the descriptions of its events are missing, and so is the size of its data",
            "record again, and end perf with Ctrl-C or `kill -INT`; what `perf record -o -` writes to a pipe can be read \
             however it ends",
        ));
    }
    let end = data.at.checked_add(data.size).filter(|&end| end <= store.len()).ok_or_else(|| {
        bad(format!(
            "it is cut off: its events reach to byte {}, and it has {}",
            data.at.saturating_add(data.size),
            store.len()
        ))
    })?;
    add_events(&store, attrs, attr_bytes, metadata)?;
    let numbers: Vec<usize> = (0..feature::COUNT).filter(|&number| has_feature(features, number, order)).collect();
    if numbers.contains(&feature::DIR_FORMAT) {
        return Err(Refused::error(
            "its events are in other files of its folder (`perf record --threads`)",
            "record without --threads, or print it and convert the text: `perf script --header --ns -i FOLDER > perf.txt`",
        ));
    }
    let table = Section { at: end, size: SECTION_BYTES * numbers.len() as u64 }.bytes(&store, MAX_FEATURE_BYTES)?;
    let mut cursor = Cursor { bytes: &table, at: 0, big_endian: order.big_endian };
    for number in numbers {
        let section = Section::read(&mut cursor)?;
        metadata.add_feature(number, &section.bytes(&store, MAX_FEATURE_BYTES)?)?;
    }
    Ok(Records::new(store, order, data.at, end))
}

/// The features are bits of numbers of eight bytes.
fn has_feature(features: &[u8], number: usize, order: ByteOrder) -> bool {
    order.number(features, number / 64 * 8, 8).is_some_and(|bits| bits >> (number % 64) & 1 != 0)
}

fn add_events(store: &Store, attrs: Section, attr_bytes: u64, metadata: &mut Metadata) -> io::Result<()> {
    let all = attrs.bytes(store, MAX_ATTRS_BYTES)?;
    let size = attr_bytes.checked_sub(SECTION_BYTES).filter(|&size| size > 0 && attrs.size.is_multiple_of(attr_bytes));
    let size = size.ok_or_else(|| bad(format!("it says that the description of an event has {attr_bytes} bytes")))?;
    let mut left_bytes = MAX_ATTRS_BYTES;
    for described in all.chunks_exact(attr_bytes as usize) {
        let (attr, ids) = described.split_at(size as usize);
        let mut cursor = Cursor { bytes: ids, at: 0, big_endian: metadata.order.big_endian };
        let ids = Section::read(&mut cursor)?.bytes(store, left_bytes)?;
        left_bytes -= ids.len() as u64;
        metadata.add_event(attr, &ids)?;
    }
    Ok(())
}

/// In a pipe, records describe the events. They come before all others.
fn open_pipe(store: Store, metadata: &mut Metadata) -> io::Result<Records> {
    let order = metadata.order;
    let end = store.len();
    let mut records = Records::new(store, order, PIPE_HEADER_BYTES, end);
    loop {
        let before = records.position();
        let Some(Record { kind, body, .. }) = records.next()? else { break };
        if kind < kind::FIRST_OF_PERF || matches!(kind, kind::FINISHED_ROUND | kind::COMPRESSED | kind::COMPRESSED2) {
            records.rewind(before);
            break;
        }
        match kind {
            kind::HEADER_ATTR => {
                let size = Attr::size(body, order).filter(|&size| size <= body.len());
                let size = size.ok_or_else(|| bad("the description of an event is not understood"))?;
                let (attr, ids) = body.split_at(size);
                metadata.add_event(attr, ids)?;
            }
            kind::HEADER_FEATURE => {
                if let (Some(number), Some(content)) = (order.number(body, 0, 8), body.get(8..)) {
                    metadata.add_feature(number as usize, content)?;
                }
            }
            kind::TRACING_DATA => {
                let len = order.number(body, 0, 4).ok_or_else(|| bad(CUT_OFF))?;
                let data = records.take_data(len as usize)?.ok_or_else(|| bad(CUT_OFF))?;
                metadata.add_tracing_data(&data)?;
            }
            _ => {
                let len = data_after(kind, body, order);
                records.skip_data(len);
            }
        }
    }
    if metadata.events.is_empty() && records.is_cut_off() {
        return Err(bad(CUT_OFF));
    }
    Ok(records)
}

/// Size of the data that follow a record without being a part of it.
pub(super) fn data_after(kind: u32, body: &[u8], order: ByteOrder) -> u64 {
    match kind {
        kind::TRACING_DATA => order.number(body, 0, 4),
        kind::AUXTRACE => order.number(body, 0, 8),
        _ => None,
    }
    .unwrap_or(0)
}

/// Refuses a recording from which events are missing by the way in which it was made.
fn check(metadata: &Metadata) -> io::Result<()> {
    let mut tracepoints = metadata.events.iter().filter(|event| event.attr.is_tracepoint()).peekable();
    if tracepoints.peek().is_some() && metadata.formats.is_none() {
        return Err(Refused::error(
            "the formats of its tracepoints are missing",
            "record again with perf on the machine itself, and end it with Ctrl-C or `kill -INT`",
        ));
    }
    for event in tracepoints {
        if !event.attr.has_time() {
            return Err(Refused::error(
                format!("the samples of {} have no time", event.name),
                "record again without --no-timestamp",
            ));
        }
        if event.attr.is_sampled {
            return Err(Refused::error(
                format!("perf recorded only a sample of the events {}", event.name),
                "record again without -F and -c: then perf records every event of a tracepoint",
            ));
        }
    }
    Ok(())
}
