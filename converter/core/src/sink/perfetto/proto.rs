//! The protobuf wire formats that a trace needs, encoded directly into a buffer. The tests decode every packet with Perfetto's own classes.

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Varints of values below this take at most eight bytes, which fit a register.
const WIDE: u64 = 1 << 56;

/// Spreads a value below `WIDE` over the bytes of the result, seven bits a byte, the lowest first.
#[inline]
const fn spread(value: u64) -> u64 {
    let fours = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let pairs = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
    pairs & 0x007f_007f_007f_007f | (pairs & 0x3f80_3f80_3f80_3f80) << 1
}

/// The continuation bit of each byte of a varint.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Returns a value below `WIDE` as a varint, and its length in bytes.
#[inline]
const fn groups(value: u64) -> (u64, usize) {
    let groups = spread(value);
    let len = 8 - (groups | 1).leading_zeros() as usize / 8;
    (groups | MORE & ((1 << (8 * (len - 1))) - 1), len)
}

/// Appends the lowest `len` bytes of two registers with one capacity check and no loop.
#[inline]
fn put(buffer: &mut Vec<u8>, low: u64, high: u64, len: usize) {
    let end = buffer.len() + len;
    buffer.extend_from_slice(&(u128::from(low) | u128::from(high) << 64).to_le_bytes());
    buffer.truncate(end);
}

#[inline]
pub(super) fn varint(buffer: &mut Vec<u8>, value: u64) {
    if value >= WIDE {
        return wide_varint(buffer, value);
    }
    let (groups, len) = groups(value);
    put(buffer, groups, 0, len);
}

/// Appends a varint of nine bytes (times since 1970) or ten (negative numbers).
#[inline(never)]
fn wide_varint(buffer: &mut Vec<u8>, mut value: u64) {
    if value < 1 << 63 {
        return put(buffer, spread(value & (WIDE - 1)) | MORE, value >> 56, 9);
    }
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

/// The encoded tag of a varint field. Field numbers here take at most two bytes.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    bytes: u64,
    len: usize,
}

impl Tag {
    #[inline]
    pub(super) const fn of(field: u32) -> Self {
        let (bytes, len) = groups((field << 3 | VARINT) as u64);
        Self { bytes, len }
    }
}

#[inline]
pub(super) fn uint(buffer: &mut Vec<u8>, field: u32, value: u64) {
    tagged(buffer, Tag::of(field), value);
}

#[inline]
pub(super) fn tagged(buffer: &mut Vec<u8>, tag: Tag, value: u64) {
    // The length does not depend on the value here, so the CPU need not wait for the value.
    if value < 0x80 {
        put(buffer, tag.bytes | value << (8 * tag.len), 0, tag.len + 1);
    } else {
        long_uint(buffer, tag, value);
    }
}

#[inline(never)]
fn long_uint(buffer: &mut Vec<u8>, tag: Tag, value: u64) {
    if value >= WIDE {
        put(buffer, tag.bytes, 0, tag.len);
        return wide_varint(buffer, value);
    }
    let (groups, len) = groups(value);
    put(buffer, tag.bytes | groups << (8 * tag.len), groups >> (64 - 8 * tag.len), tag.len + len);
}

/// Appends an int64 or int32. Negative numbers take ten bytes.
#[inline]
pub(super) fn int(buffer: &mut Vec<u8>, field: u32, value: i64) {
    uint(buffer, field, value as u64);
}

#[inline]
pub(super) fn fixed64(buffer: &mut Vec<u8>, field: u32, value: u64) {
    varint(buffer, u64::from(field << 3 | FIXED64));
    buffer.extend_from_slice(&value.to_le_bytes());
}

#[inline]
pub(super) fn bytes(buffer: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(buffer, u64::from(field << 3 | BYTES));
    varint(buffer, value.len() as u64);
    buffer.extend_from_slice(value);
}

/// Appends a nested message that is rarely longer than 127 bytes.
#[inline]
pub(super) fn nested(buffer: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(buffer, u64::from(field << 3 | BYTES));
    let at = buffer.len();
    buffer.push(0);
    write(buffer);
    let len = buffer.len() - at - 1;
    if len < 0x80 { buffer[at] = len as u8 } else { insert_length(buffer, at, 1, len) }
}

/// Appends a nested message that is often longer than 127 bytes. Its length takes two bytes, padded if necessary, which every decoder accepts.
#[inline]
pub(super) fn nested_long(buffer: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(buffer, u64::from(field << 3 | BYTES));
    let at = buffer.len();
    buffer.extend_from_slice(&[0, 0]);
    write(buffer);
    let len = buffer.len() - at - 2;
    if len < 0x4000 {
        buffer[at] = len as u8 | 0x80;
        buffer[at + 1] = (len >> 7) as u8;
    } else {
        insert_length(buffer, at, 2, len);
    }
}

#[cold]
fn insert_length(buffer: &mut Vec<u8>, at: usize, reserved: usize, len: usize) {
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, len as u64);
    buffer.splice(at..at + reserved, prefix);
}

/// Appends a message with two varint fields. `outer` is its tag; `first` is the tag and the value of the first field, one byte each.
/// Most of a trace consists of these messages, so they are assembled in a register.
#[inline(never)]
pub(super) fn small_pair(buffer: &mut Vec<u8>, outer: u8, first: [u8; 2], tag: Tag, value: u64) {
    let head = u64::from(u32::from_le_bytes([outer, 0, first[0], first[1]])) | tag.bytes << 32;
    if value >= 0x4000 {
        return long_pair(buffer, head, tag.len, value);
    }
    let is_long = u64::from(value >= 0x80);
    let groups = value & 0x7f | is_long << 7 | (value >> 7) << 8;
    let len = 1 + is_long as usize;
    put(buffer, head | ((2 + tag.len + len) as u64) << 8 | groups << (32 + 8 * tag.len), 0, 4 + tag.len + len);
}

/// `head` is everything before the value, with 0 as the length.
#[inline(never)]
fn long_pair(buffer: &mut Vec<u8>, head: u64, tag_len: usize, value: u64) {
    let head = |len: usize| head | ((2 + tag_len + len) as u64) << 8;
    if value >= WIDE {
        put(buffer, head(if value < 1 << 63 { 9 } else { 10 }), 0, 4 + tag_len);
        return wide_varint(buffer, value);
    }
    let at = 32 + 8 * tag_len;
    let (groups, len) = groups(value);
    put(buffer, head(len) | groups << at, groups >> (64 - at), 4 + tag_len + len);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference_varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    proptest! {
        #[test]
        fn varints_match_reference(value: u64, zeros in 0u32..64, field in prop_oneof![1u32..16, 16u32..200]) {
            let value = value >> zeros;
            let mut have = vec![7];
            varint(&mut have, value);
            uint(&mut have, field, value);
            small_pair(&mut have, 0x22, [8, 5], Tag::of(field), value);
            let number = reference_varint(value);
            let pair = [reference_varint(u64::from(field) << 3), number.clone()].concat();
            let inner = [&[8, 5][..], &pair].concat();
            let want = [&[7][..], &number, &pair, &[0x22, inner.len() as u8], &inner].concat();
            prop_assert_eq!(have, want);
        }
    }

    #[test]
    fn varints_of_each_length() {
        for bits in 0..64 {
            for value in [(1u64 << bits) - 1, 1 << bits] {
                let mut have = Vec::new();
                varint(&mut have, value);
                assert_eq!(have, reference_varint(value), "{value}");
            }
        }
    }
}
