//! Decodes sub-buffer pages of the kernel's ring buffer (kernel/trace/ring_buffer.c). Their records hold time differences.

use crate::source::binary::ByteOrder;

/// Low bits of `commit`; the bits above are flags.
const COMMIT_BYTES: u64 = (1 << 27) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Number of bits of an absolute time. The bits above are those of the time before it.
const STAMP_BITS: u32 = 59;

/// Byte order, and the layout of a page header, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) order: ByteOrder,
    pub(super) commit_at: usize,
    /// Size of a long of the kernel.
    pub(super) commit_bytes: usize,
    pub(super) data_at: usize,
}

impl Shape {
    /// Reads an unsigned number of up to eight bytes; `None` beyond the end.
    #[inline]
    pub(super) fn number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        self.order.number(bytes, at, size)
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.number(bytes, at, 4).map(|value| value as u32)
    }

    /// Returns the time of a page's first record.
    pub(super) fn time(self, page: &[u8]) -> Option<u64> {
        self.number(page, 0, 8)
    }
}

/// Number of events that the kernel reports as lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    None,
    Some(u64),
    Unknown,
}

/// Returns the loss that a page reports; `None` if the page is cut off.
pub(super) fn lost(shape: Shape, page: &[u8]) -> Option<Lost> {
    let commit = shape.number(page, shape.commit_at, shape.commit_bytes)?;
    Some(match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
        (false, _) => Lost::None,
        (true, false) => Lost::Unknown,
        // Stored after the last record, if there was room for it.
        (true, true) => {
            let at = shape.data_at.saturating_add((commit & COMMIT_BYTES) as usize);
            let count = shape.number(page, at, shape.commit_bytes);
            // The kernel stores a positive long.
            let max = u64::MAX >> (65 - 8 * shape.commit_bytes as u32);
            count.filter(|count| (1..=max).contains(count)).map_or(Lost::Unknown, Lost::Some)
        }
    })
}

/// Passes each record of a page to `take`, with its time. An error describes why the page is invalid.
pub(super) fn records<'a>(
    shape: Shape,
    page: &'a [u8],
    mut take: impl FnMut(u64, &'a [u8]),
) -> Result<Lost, &'static str> {
    const OVERRUN: &str = "a record extends beyond the end of its page";
    let mut time = shape.time(page).ok_or("a page is cut off")?;
    let commit = shape.number(page, shape.commit_at, shape.commit_bytes).ok_or("a page is cut off")?;
    let used = (commit & COMMIT_BYTES) as usize;
    let data = page.get(shape.data_at..).ok_or("a page is cut off")?;
    let lost = lost(shape, page).unwrap_or(Lost::Unknown);
    let data = data.get(..used).ok_or("a page claims to hold more than fits")?;
    let mut at = 0;
    while at < data.len() {
        let header = shape.u32(data, at).ok_or(OVERRUN)?;
        let (kind, delta) =
            if shape.order.big_endian { (header >> 27, header & 0x07ff_ffff) } else { (header & 31, header >> 5) };
        at += 4;
        match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                // A discarded record.
                let size = shape.u32(data, at).ok_or(OVERRUN)? as usize;
                time = time.wrapping_add(u64::from(delta));
                at = at.checked_add(size.max(4)).filter(|&at| at <= data.len()).ok_or(OVERRUN)?;
            }
            TIME_EXTEND => {
                let high = u64::from(shape.u32(data, at).ok_or(OVERRUN)?);
                time = time.wrapping_add(high << 27 | u64::from(delta));
                at += 4;
            }
            TIME_STAMP => {
                let high = u64::from(shape.u32(data, at).ok_or(OVERRUN)?);
                let stamp = (high << 27 | u64::from(delta)) & ((1 << STAMP_BITS) - 1);
                let upper = time >> STAMP_BITS << STAMP_BITS;
                // The upper bits may have changed since the previous time.
                let carry = if upper > 0 && upper | stamp < time { 1 << STAMP_BITS } else { 0 };
                time = (upper | stamp).wrapping_add(carry);
                at += 4;
            }
            _ => {
                time = time.wrapping_add(u64::from(delta));
                let size = if kind == 0 {
                    let size = shape.u32(data, at).ok_or(OVERRUN)? as usize;
                    at += 4;
                    size.checked_sub(4).ok_or(OVERRUN)?
                } else {
                    kind as usize * 4
                };
                let end = at.checked_add(size).ok_or(OVERRUN)?;
                take(time, data.get(at..end).ok_or(OVERRUN)?);
                at = end.next_multiple_of(4);
            }
        }
    }
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Shape = Shape { order: ByteOrder { big_endian: false }, commit_at: 8, commit_bytes: 8, data_at: 16 };

    fn page(shape: Shape, time: u64, flags: u64, words: &[u32], after: &[u8]) -> Vec<u8> {
        let commit = words.len() as u64 * 4 | flags;
        let mut page = Vec::new();
        if shape.order.big_endian {
            page.extend_from_slice(&time.to_be_bytes());
            page.extend_from_slice(&(commit as u32).to_be_bytes());
            page.extend(words.iter().flat_map(|w| w.to_be_bytes()));
        } else {
            page.extend_from_slice(&time.to_le_bytes());
            page.extend_from_slice(&commit.to_le_bytes());
            page.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        }
        page.extend_from_slice(after);
        page.resize(4096, 0);
        page
    }

    type Records = Vec<(u64, Vec<u8>)>;

    fn read(shape: Shape, page: &[u8]) -> (Records, Result<Lost, &'static str>) {
        let mut out = Vec::new();
        let lost = records(shape, page, |time, data| out.push((time, data.to_vec())));
        (out, lost)
    }

    #[test]
    fn each_kind_of_record() {
        let words = [
            2 | 5 << 5,
            0x0403_0201,
            0x0807_0605, // eight bytes, 5 ns later
            TIME_EXTEND | 7 << 5,
            1, // 2^27 + 7 ns later
            PADDING | 3 << 5,
            4, // thrown away, 3 ns later
            0,
            6,
            0x0000_0201, // two bytes with a length of their own
            31 | 9 << 5,
            0, // at 9 ns
            1,
            42,
            29,
            99,
        ];
        let (records, lost) = read(LITTLE, &page(LITTLE, 100, 0, &words, &[]));
        let at = 105 + (1 << 27) + 7 + 3;
        assert_eq!(lost, Ok(Lost::None));
        assert_eq!(records, [(105, vec![1, 2, 3, 4, 5, 6, 7, 8]), (at, vec![1, 2]), (9, vec![42, 0, 0, 0])]);
    }

    #[test]
    fn upper_bits_of_a_stamp_come_from_the_previous_time() {
        let words = [31 | 9 << 5, 0, 1, 42, 31 | 8 << 5, 0, 1, 43];
        let times = |time| read(LITTLE, &page(LITTLE, time, 0, &words, &[])).0.into_iter().map(|(time, _)| time);
        let bit = 1u64 << STAMP_BITS;
        assert!(times(3).eq([9, 8]));
        assert!(times(bit + 3).eq([bit + 9, 2 * bit + 8]));
    }

    #[test]
    fn big_endian_with_short_longs() {
        let shape = Shape { order: ByteOrder { big_endian: true }, commit_at: 8, commit_bytes: 4, data_at: 12 };
        let (records, lost) = read(shape, &page(shape, 7, 0, &[1 << 27 | 3, 0x0102_0304], &[]));
        assert_eq!((records, lost), (vec![(10, vec![1, 2, 3, 4])], Ok(Lost::None)));
    }

    #[test]
    fn losses_are_reported() {
        let words = [1, 42];
        let stored = page(LITTLE, 0, MISSED | MISSED_STORED, &words, &123u64.to_le_bytes());
        assert_eq!(read(LITTLE, &stored).1, Ok(Lost::Some(123)));
        assert_eq!(read(LITTLE, &page(LITTLE, 0, MISSED, &words, &[])).1, Ok(Lost::Unknown));
        for odd in [0, u64::MAX] {
            let page = page(LITTLE, 0, MISSED | MISSED_STORED, &words, &odd.to_le_bytes());
            assert_eq!(read(LITTLE, &page).1, Ok(Lost::Unknown));
        }
    }

    #[test]
    fn inconsistent_pages_are_errors() {
        assert!(read(LITTLE, &[0; 10]).1.is_err());
        let mut long = page(LITTLE, 0, 0, &[1, 42], &[]);
        long[8..12].copy_from_slice(&5000u32.to_le_bytes());
        assert!(read(LITTLE, &long).1.is_err());
        // A record of twenty bytes where only four remain.
        let (records, lost) = read(LITTLE, &page(LITTLE, 0, 0, &[1, 42, 5, 1], &[]));
        assert_eq!(records.len(), 1);
        assert!(lost.is_err());
    }
}
