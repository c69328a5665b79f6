//! A byte cursor for the hot lines.

pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Takes `literal`, or nothing.
    #[inline]
    pub(super) fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    /// Takes one or more decimal digits that fit a u64.
    #[inline]
    pub(super) fn decimal(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut n = 0;
        while let Some(&byte) = self.rest.get(n) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // 19 digits always fit.
            value = if n < 19 {
                value * 10 + u64::from(digit)
            } else {
                value.checked_mul(10)?.checked_add(u64::from(digit))?
            };
            n += 1;
        }
        self.rest = &self.rest[n..];
        (n > 0).then_some(value)
    }

    /// Takes `0x` and one to sixteen hex digits.
    #[inline]
    pub(super) fn hex(&mut self) -> Option<u64> {
        self.literal(b"0x")?;
        let mut value = 0u64;
        let mut n = 0;
        while let Some(&byte) = self.rest.get(n) {
            let digit = HEX[byte as usize];
            if digit > 15 {
                break;
            }
            value = value << 4 | u64::from(digit);
            n += 1;
        }
        self.rest = &self.rest[n..];
        (1..=16).contains(&n).then_some(value)
    }

    /// Takes a decimal number with an optional minus that fits an i64.
    pub(super) fn signed(&mut self) -> Option<i64> {
        if self.literal(b"-").is_some() {
            0i64.checked_sub_unsigned(self.decimal()?)
        } else {
            i64::try_from(self.decimal()?).ok()
        }
    }

    pub(super) fn at_end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}

const HEX: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut i = 0;
    while i < 10 {
        table[b'0' as usize + i] = i as u8;
        i += 1;
    }
    i = 0;
    while i < 6 {
        table[b'a' as usize + i] = 10 + i as u8;
        table[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    table
};

/// All of `text` as a number.
pub(super) fn whole<'a, T>(text: &'a [u8], take: impl Fn(&mut Cursor<'a>) -> Option<T>) -> Option<T> {
    let mut cursor = Cursor::new(text);
    let value = take(&mut cursor)?;
    cursor.at_end()?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_u64_ends() {
        assert_eq!(whole(b"18446744073709551615", Cursor::decimal), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616", Cursor::decimal), None);
        assert_eq!(whole(b"99999999999999999999999", Cursor::decimal), None);
        assert_eq!(whole(b"0xffffffffffffffff", Cursor::hex), Some(u64::MAX));
        assert_eq!(whole(b"0x1ffffffffffffffff", Cursor::hex), None);
        assert_eq!(whole(b"0x", Cursor::hex), None);
        assert_eq!(whole(b"-9223372036854775808", Cursor::signed), Some(i64::MIN));
        assert_eq!(whole(b"9223372036854775808", Cursor::signed), None);
        assert_eq!(whole(b"-", Cursor::signed), None);
        assert_eq!(whole(b"", Cursor::decimal), None);
    }
}
