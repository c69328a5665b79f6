//! One record of blktrace, `struct blk_io_trace`: its fields, and the event that it means.

use std::borrow::Cow;

use crate::event::{Dev, Kind, NO_SECTOR};
use crate::source::block_event::BlockFields;
use crate::source::event_names::{EventName, errno};

/// Category bits of an action, above its lower 16 bits.
pub(super) mod category {
    pub(in crate::source::blktrace) const WRITE: u64 = 1 << 17;
    pub(in crate::source::blktrace) const FLUSH: u64 = 1 << 18;
    pub(in crate::source::blktrace) const SYNC: u64 = 1 << 19;
    pub(in crate::source::blktrace) const PC: u64 = 1 << 25;
    pub(in crate::source::blktrace) const NOTIFY: u64 = 1 << 26;
    pub(in crate::source::blktrace) const AHEAD: u64 = 1 << 27;
    pub(in crate::source::blktrace) const META: u64 = 1 << 28;
    pub(in crate::source::blktrace) const DISCARD: u64 = 1 << 29;
    pub(in crate::source::blktrace) const FUA: u64 = 1 << 31;
    pub(in crate::source::blktrace) const WRITE_ZEROES: u64 = 1 << 38;
}

/// Flag: the record's data begin with a cgroup id.
const HAS_CGROUP: u64 = 1 << 8;
/// blkparse's names of the actions, indexed by number.
const ACTIONS: [&str; 20] =
    ["", "Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "abort", "drv_data", "ZP", "ZU"];
const NOTIFICATIONS: [&str; 3] = ["process", "timestamp", "m"];
/// The letters that `rwbs` has at most.
const MAX_RWBS: usize = 7;
/// Version and byte order, from the magic of each record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) version: u8,
    pub(super) big_endian: bool,
}

impl Shape {
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes.first_chunk()? {
            [version, b't', b'a', b'e'] => Some(Self { version, big_endian: false }),
            [b'e', b'a', b't', version] => Some(Self { version, big_endian: true }),
            _ => None,
        }
    }

    pub(super) fn magic(self) -> [u8; 4] {
        let mut magic = [self.version, b't', b'a', b'e'];
        if self.big_endian {
            magic.reverse();
        }
        magic
    }

    #[inline]
    pub(super) fn header_bytes(self) -> Option<usize> {
        match self.version {
            7 => Some(48),
            8 => Some(64),
            _ => None,
        }
    }

    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u16::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let number = bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    pub(super) fn pdu_bytes(self, header: &[u8]) -> usize {
        usize::from(self.u16(header, if self.version == 7 { 46 } else { 50 }))
    }
}

/// A complete record.
pub(super) struct Record<'a> {
    pub(super) shape: Shape,
    pub(super) sequence: u32,
    pub(super) time: u64,
    pub(super) sector: u64,
    pub(super) bytes: u32,
    pub(super) action: u64,
    pub(super) pid: u32,
    pub(super) device: u32,
    pub(super) cpu: u32,
    pub(super) error: u16,
    pub(super) cgroup: Option<u64>,
    pub(super) data: &'a [u8],
}

impl<'a> Record<'a> {
    #[inline]
    pub(super) fn read(shape: Shape, record: &'a [u8]) -> Option<Self> {
        let header = shape.header_bytes()?;
        let mut data = record.get(header..)?;
        let (action, pid, rest) = match shape.version {
            7 => (u64::from(shape.u32(record, 28)), shape.u32(record, 32), 36),
            _ => (shape.u64(record, 32), shape.u32(record, 28), 40),
        };
        let mut cgroup = None;
        if action & HAS_CGROUP != 0 && data.len() >= 8 {
            cgroup = Some(shape.u64(data, 0));
            data = &data[8..];
        }
        Some(Self {
            shape,
            sequence: shape.u32(record, 4),
            time: shape.u64(record, 8),
            sector: shape.u64(record, 16),
            bytes: shape.u32(record, 24),
            action,
            pid,
            device: shape.u32(record, rest),
            cpu: shape.u32(record, rest + 4),
            error: shape.u16(record, rest + 8),
            cgroup,
            data,
        })
    }

    #[inline]
    pub(super) fn is(&self, category: u64) -> bool {
        self.action & category != 0
    }

    /// The number of the action.
    #[inline]
    fn number(&self) -> usize {
        (self.action & 0xffff & !HAS_CGROUP) as usize
    }

    pub(super) fn notification(&self) -> Option<&'static str> {
        if self.is(category::NOTIFY) { NOTIFICATIONS.get(self.number()).copied() } else { None }
    }

    /// The event name in the low-level log.
    pub(super) fn log_name(&self) -> Cow<'static, [u8]> {
        let number = self.number();
        match self.name() {
            Some(name) => name.as_bytes().into(),
            None if self.is(category::NOTIFY) => format!("note_{number}").into_bytes().into(),
            None => format!("action_{number}").into_bytes().into(),
        }
    }

    pub(super) fn name(&self) -> Option<&'static str> {
        let names: &[&str] = if self.is(category::NOTIFY) { &NOTIFICATIONS } else { &ACTIONS };
        names.get(self.number()).copied().filter(|name| !name.is_empty())
    }

    /// Reads a number of the data, which the kernel stores in big-endian order.
    pub(super) fn data_u64(&self, at: usize) -> u64 {
        Shape { version: 7, big_endian: true }.u64(self.data, at)
    }

    pub(super) fn data_u32(&self, at: usize) -> u32 {
        Shape { version: 7, big_endian: true }.u32(self.data, at)
    }

    pub(super) fn is_remap(&self) -> bool {
        self.name() == Some("A") && self.data.len() >= 16
    }

    /// The target device. A remap records it in its data.
    pub(super) fn dev(&self) -> Dev {
        Dev(if self.is_remap() { self.data_u32(4) } else { self.device })
    }

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        if self.is(category::PC | category::NOTIFY) {
            return Kind::Other;
        }
        let Some(event) = self.name().and_then(|name| EventName::of_action(name.as_bytes())) else {
            return Kind::Other;
        };
        let from_sector = || i64::try_from(self.data_u64(8)).unwrap_or(NO_SECTOR);
        let mut letters = [0; MAX_RWBS];
        let mut len = 0;
        for (to, letter) in letters.iter_mut().zip(self.rwbs()) {
            *to = letter;
            len += 1;
        }
        let block = BlockFields {
            dev: self.dev(),
            sector: i64::try_from(self.sector).ok(),
            bytes: u64::from(self.bytes),
            rwbs: &letters[..len],
            error: errno(i64::from(self.error)),
            from: self.is_remap().then(|| (Dev(self.data_u32(0)), from_sector())),
        };
        block.kind(event)
    }

    /// The RWBS letters, as blkparse prints them.
    pub(super) fn rwbs(&self) -> impl Iterator<Item = u8> {
        let when = |is: bool, letter: u8| is.then_some(letter);
        let letter = match () {
            () if self.is(category::DISCARD) => b'D',
            () if self.is(category::WRITE | category::WRITE_ZEROES) => b'W',
            () if self.bytes > 0 => b'R',
            () => b'N',
        };
        [
            when(self.is(category::FLUSH), b'F'),
            Some(letter),
            when(self.is(category::WRITE_ZEROES) && letter == b'W', b'Z'),
            when(self.is(category::FUA), b'F'),
            when(self.is(category::AHEAD), b'A'),
            when(self.is(category::SYNC), b'S'),
            when(self.is(category::META), b'M'),
        ]
        .into_iter()
        .flatten()
    }

    /// The text of a notification. It may end before the data.
    pub(super) fn text(&self) -> &'a [u8] {
        let end = memchr::memchr(0, self.data).unwrap_or(self.data.len());
        &self.data[..end]
    }
}
