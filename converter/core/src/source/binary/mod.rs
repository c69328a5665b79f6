//! Tracepoint records in the kernel's binary layout, as trace.dat and perf.data hold them: their descriptions, decoders and events.

pub(super) mod cursor;
mod decoder;
mod event_types;
pub(super) mod format;

pub(super) use self::cursor::{CUT_OFF, Cursor, bad};
pub(super) use self::decoder::Functions;
pub(super) use self::event_types::{EventTypes, RecordTask};

/// The byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteOrder {
    pub(super) big_endian: bool,
}

impl ByteOrder {
    /// Reads an unsigned number of up to eight bytes; `None` beyond the end.
    #[inline]
    pub(super) fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        Some(match (size, self.big_endian) {
            (8, false) => u64::from_le_bytes(bytes.try_into().ok()?),
            (8, true) => u64::from_be_bytes(bytes.try_into().ok()?),
            (4, false) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => u64::from(u32::from_be_bytes(bytes.try_into().ok()?)),
            (2, false) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, true) => u64::from(u16::from_be_bytes(bytes.try_into().ok()?)),
            (1, _) => u64::from(bytes[0]),
            _ => return None,
        })
    }
}
