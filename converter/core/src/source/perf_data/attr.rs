//! Attributes of perf's events (`struct perf_event_attr`): which fields their samples have, and where.

use crate::source::binary::ByteOrder;

/// Bits of `sample_type`. Samples hold these fields in the order of `Attr::sample`.
mod sample {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `read_format`.
mod read {
    pub(super) const TIMES: [u64; 2] = [1, 1 << 1];
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Bits of the flags.
mod flag {
    pub(super) const FREQ: u64 = 1 << 10;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

const TRACEPOINT: u32 = 2;
/// Size of the first version of the attributes.
const MIN_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attr {
    kind: u32,
    /// The id of a tracepoint.
    pub(super) config: u64,
    sample_type: u64,
    read_format: u64,
    sample_id_all: bool,
    /// Not each event is recorded.
    pub(super) is_sampled: bool,
    /// The clock of the times; `None` for perf's own.
    pub(super) clock: Option<i32>,
}

/// The fields of a sample that Syncline uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    pub(super) time: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Addresses of eight bytes, innermost first, in the byte order of the file.
    pub(super) chain: &'a [u8],
    pub(super) raw: &'a [u8],
}

impl Attr {
    /// Size of the attributes that begin here, as they say themselves.
    pub(super) fn size(bytes: &[u8], order: ByteOrder) -> Option<usize> {
        match order.number(bytes, 4, 4)? as usize {
            0 => Some(MIN_BYTES),
            size if size >= MIN_BYTES => Some(size),
            _ => None,
        }
    }

    pub(super) fn parse(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        if bytes.len() < MIN_BYTES {
            return None;
        }
        let number = |at, size| order.number(bytes, at, size);
        let flags = number(40, 8)?;
        // C puts the first bit field into the lowest bit on little endian, and into the highest on big endian.
        let flags = if order.big_endian { flags.reverse_bits() } else { flags };
        let clock = number(92, 4).map(|clock| clock as i32);
        Some(Self {
            kind: number(0, 4)? as u32,
            config: number(8, 8)?,
            sample_type: number(24, 8)?,
            read_format: number(32, 8)?,
            sample_id_all: flags & flag::SAMPLE_ID_ALL != 0,
            is_sampled: flags & flag::FREQ != 0 || number(16, 8)? > 1,
            clock: clock.filter(|_| flags & flag::USE_CLOCKID != 0),
        })
    }

    pub(super) fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT
    }

    pub(super) fn has_time(&self) -> bool {
        self.has(sample::TIME)
    }

    pub(super) fn has_chain(&self) -> bool {
        self.has(sample::CALLCHAIN)
    }

    fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Number of eight bytes that these fields take.
    fn words(&self, fields: u64) -> usize {
        (self.sample_type & fields).count_ones() as usize
    }

    /// Position of the event's id in a sample; `None` without an id.
    pub(super) fn id_at(&self) -> Option<usize> {
        if self.has(sample::IDENTIFIER) {
            return Some(0);
        }
        self.has(sample::ID).then(|| 8 * self.words(sample::IP | sample::TID | sample::TIME | sample::ADDR))
    }

    /// Distance of the event's id from the end of a record other than a sample; `None` without an id.
    pub(super) fn id_from_end(&self) -> Option<usize> {
        if !self.sample_id_all {
            return None;
        }
        if self.has(sample::IDENTIFIER) {
            return Some(8);
        }
        self.has(sample::ID).then(|| 8 + 8 * self.words(sample::STREAM_ID | sample::CPU))
    }

    /// Size of the fields that follow a record other than a sample, and the position of the time in them.
    pub(super) fn trailer(&self) -> (usize, Option<usize>) {
        if !self.sample_id_all {
            return (0, None);
        }
        let fields = sample::TID | sample::TIME | sample::ID | sample::STREAM_ID | sample::CPU | sample::IDENTIFIER;
        (8 * self.words(fields), self.has_time().then(|| 8 * self.words(sample::TID)))
    }

    /// Reads a sample; `None` if it ends too early.
    #[inline]
    pub(super) fn sample<'a>(&self, body: &'a [u8], order: ByteOrder) -> Option<Sample<'a>> {
        let mut found = Sample { pid: u32::MAX, tid: u32::MAX, ..Sample::default() };
        let mut at = 8 * self.words(sample::IDENTIFIER | sample::IP);
        if self.has(sample::TID) {
            found.pid = order.number(body, at, 4)? as u32;
            found.tid = order.number(body, at + 4, 4)? as u32;
            at += 8;
        }
        if self.has(sample::TIME) {
            found.time = order.number(body, at, 8)?;
            at += 8;
        }
        at += 8 * self.words(sample::ADDR | sample::ID | sample::STREAM_ID | sample::CPU | sample::PERIOD);
        if self.has(sample::READ) {
            at = at.checked_add(self.read_bytes(body, at, order)?)?;
        }
        if self.has(sample::CALLCHAIN) {
            let bytes = usize::try_from(order.number(body, at, 8)?).ok()?.checked_mul(8)?;
            found.chain = body.get(at + 8..(at + 8).checked_add(bytes)?)?;
            at += 8 + bytes;
        }
        if self.has(sample::RAW) {
            let bytes = order.number(body, at, 4)? as usize;
            found.raw = body.get(at + 4..(at + 4).checked_add(bytes)?)?;
        }
        body.get(..at).map(|_| found)
    }

    /// Size of the counter values in a sample.
    fn read_bytes(&self, body: &[u8], at: usize, order: ByteOrder) -> Option<usize> {
        let has = |bit| usize::from(self.read_format & bit != 0);
        let times: usize = read::TIMES.into_iter().map(has).sum();
        let value = 1 + has(read::ID) + has(read::LOST);
        if has(read::GROUP) == 0 {
            return Some(8 * (times + value));
        }
        let values = usize::try_from(order.number(body, at, 8)?).ok()?;
        values.checked_mul(value)?.checked_add(1 + times)?.checked_mul(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: ByteOrder = ByteOrder { big_endian: false };

    fn attr(sample_type: u64, read_format: u64) -> Attr {
        Attr { kind: 2, config: 7, sample_type, read_format, sample_id_all: true, is_sampled: false, clock: None }
    }

    #[test]
    fn flags_are_in_the_order_of_the_machine() {
        for big_endian in [false, true] {
            let order = ByteOrder { big_endian };
            let mut bytes = [0; 96];
            // `freq` is the 11th bit field, `use_clockid` the 26th.
            let (freq, clock) = if big_endian { (41, 0b0010_0000) } else { (41, 0b0000_0100) };
            bytes[freq] = clock;
            bytes[43] = if big_endian { 0b0100_0000 } else { 0b0000_0010 };
            bytes[if big_endian { 95 } else { 92 }] = 7;
            let attr = Attr::parse(&bytes, order).unwrap();
            assert!(attr.is_sampled);
            assert_eq!(attr.clock, Some(7));
        }
    }

    #[test]
    fn fields_before_the_raw_data_are_skipped() {
        let all = sample::IDENTIFIER
            | sample::IP
            | sample::TID
            | sample::TIME
            | sample::ADDR
            | sample::ID
            | sample::STREAM_ID
            | sample::CPU
            | sample::PERIOD
            | sample::READ
            | sample::CALLCHAIN
            | sample::RAW;
        let mut body: Vec<u8> = Vec::new();
        for word in [1u64, 2, 3 | 4 << 32, 5, 6, 7, 8, 9, 10] {
            body.extend(word.to_le_bytes());
        }
        // A group of two counters, each with its id and its losses, after one of the two times.
        for word in [2u64, 99, 1, 1, 1, 1, 1, 1] {
            body.extend(word.to_le_bytes());
        }
        body.extend([2u64, 0xaa, 0xbb].iter().flat_map(|word| word.to_le_bytes()));
        body.extend(3u32.to_le_bytes());
        body.extend(b"raw");
        let attr = attr(all, read::GROUP | read::ID | read::LOST | 1);
        let sample = attr.sample(&body, LITTLE).unwrap();
        assert_eq!((sample.time, sample.pid, sample.tid, sample.raw), (5, 3, 4, &b"raw"[..]));
        assert_eq!(sample.chain.len(), 16);
        for len in 0..body.len() {
            assert_eq!(attr.sample(&body[..len], LITTLE), None, "{len}");
        }
    }

    #[test]
    fn an_id_is_found_from_either_end() {
        let plain = attr(sample::IP | sample::TID | sample::TIME | sample::ID | sample::CPU, 0);
        assert_eq!((plain.id_at(), plain.id_from_end()), (Some(24), Some(16)));
        assert_eq!(plain.trailer(), (32, Some(8)));
        let first = attr(sample::IDENTIFIER | sample::TIME, 0);
        assert_eq!((first.id_at(), first.id_from_end()), (Some(0), Some(8)));
        assert_eq!(first.trailer(), (16, Some(0)));
    }
}
