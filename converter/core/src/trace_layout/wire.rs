//! Reads the protobuf wire format. Nothing is copied.

/// The bytes are not of the format, or an id is not defined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damaged;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire<'a> {
    /// A varint, or a number of fixed length.
    Int(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub(crate) fn int(self) -> Result<u64, Damaged> {
        match self {
            Self::Int(value) => Ok(value),
            Self::Bytes(_) => Err(Damaged),
        }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], Damaged> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Int(_) => Err(Damaged),
        }
    }

    pub(crate) fn text(self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }
}

/// The fields of a message: (number, value).
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() { None } else { Some(self.field().ok_or(Damaged)) }
    }
}

impl<'a> Fields<'a> {
    #[inline]
    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let tag = varint(&mut self.0)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0)?;
        let value = match tag & 7 {
            0 => Wire::Int(varint(&mut self.0)?),
            1 => Wire::Int(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let len = varint(&mut self.0)?;
                Wire::Bytes(self.take(usize::try_from(len).ok()?)?)
            }
            5 => Wire::Int(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((number, value))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Reads a varint. `None` if it is cut off or longer than 64 bits.
#[inline]
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most tags, lengths and values take one byte.
    match bytes {
        [byte @ ..0x80, rest @ ..] => {
            let value = u64::from(*byte);
            *bytes = rest;
            Some(value)
        }
        _ => long_varint(bytes),
    }
}

/// Reads a varint of any length.
fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    const LAST: u64 = 0x8080_8080_8080_8080;
    if let Some(head) = bytes.first_chunk() {
        let head = u64::from_le_bytes(*head);
        let ends = !head & LAST;
        if ends != 0 {
            let len = ends.trailing_zeros() / 8 + 1;
            let value = join(head & (u64::MAX >> (64 - 8 * len)));
            *bytes = &bytes[len as usize..];
            return Some(value);
        }
    }
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return (at < 9 || byte < 2).then_some(value);
        }
    }
    None
}

/// Joins the lower seven bits of each byte, the lowest first.
fn join(groups: u64) -> u64 {
    let pairs = groups & 0x007f_007f_007f_007f | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// The numbers of a packed repeated field.
pub(crate) struct Varints<'a>(pub(crate) &'a [u8]);

impl Iterator for Varints<'_> {
    type Item = Result<u64, Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let number = varint(&mut self.0).ok_or(Damaged);
        if number.is_err() {
            self.0 = &[];
        }
        Some(number)
    }
}

/// Returns the end of the last whole message of repeated messages; `None` if none is whole.
pub(crate) fn end_of_whole(bytes: &[u8]) -> Option<usize> {
    let mut rest = Fields(bytes);
    let mut end = 0;
    while let Some(Ok(_)) = rest.next() {
        end = bytes.len() - rest.0.len();
    }
    Some(end).filter(|&end| end > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_each_length() {
        for bits in 0..64 {
            for value in [(1u64 << bits) - 1, 1 << bits, u64::MAX >> bits] {
                let mut bytes = Vec::new();
                let mut rest = value;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                let len = bytes.len();
                // With and without bytes behind it, and cut off.
                for more in [0, 3, 9] {
                    bytes.resize(len + more, 0xff);
                    let mut left = &bytes[..];
                    assert_eq!(varint(&mut left), Some(value));
                    assert_eq!(left.len(), more);
                }
                assert_eq!(varint(&mut &bytes[..len - 1]), None);
                let two = [&bytes[..len], &bytes[..len - 1]].concat();
                let read: Vec<_> = Varints(&two).map(Result::ok).collect();
                assert_eq!(read, if len == 1 { vec![Some(value)] } else { vec![Some(value), None] });
            }
        }
        assert_eq!(varint(&mut &[0xff; 12][..]), None);
    }

    #[test]
    fn fields_of_each_type_and_broken_ones() {
        let whole = [0x08, 0x96, 0x01, 0x12, 0x02, b'a', b'b', 0x19, 1, 0, 0, 0, 0, 0, 0, 0, 0x25, 2, 0, 0, 0];
        let fields: Vec<_> = Fields(&whole).map(Result::ok).collect();
        let want = [(1, Wire::Int(150)), (2, Wire::Bytes(b"ab")), (3, Wire::Int(1)), (4, Wire::Int(2))];
        assert_eq!(fields, want.map(Some));
        for len in [1, 2, 4, 5, 6, 8, 15, 17, 20] {
            assert!(Fields(&whole[..len]).any(|field| field.is_err()), "{len}");
        }
        for wrong in
            [&[0x00, 1][..], &[0x0b], &[0x0f], &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
        {
            assert!(Fields(wrong).any(|field| field.is_err()), "{wrong:x?}");
        }
        assert_eq!(end_of_whole(&whole[..20]), Some(16));
        assert_eq!(end_of_whole(&whole[..2]), None);
    }
}
