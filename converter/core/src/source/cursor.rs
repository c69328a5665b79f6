//! A byte cursor for the hot paths of the text decoders, and searches for short texts.

pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Takes `literal`, or takes nothing and returns `None`.
    #[inline]
    pub(super) fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    /// Takes one or more decimal digits that fit a u64.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "else the cursor lives in memory, which costs as much again")]
    pub(super) fn decimal(&mut self) -> Option<u64> {
        let Some(chunk) = self.rest.first_chunk::<8>() else { return self.few_digits() };
        let digits = u64::from_le_bytes(*chunk) ^ 0x3030_3030_3030_3030;
        let n = first_set_byte(not_digits(digits));
        if n == 0 {
            return None;
        }
        if n < 8 {
            self.rest = &self.rest[n..];
            return Some(eight_digits(digits << (64 - 8 * n)));
        }
        self.many_digits(digits)
    }

    /// Reads fewer than eight remaining bytes, whose digits cannot overflow.
    #[inline]
    fn few_digits(&mut self) -> Option<u64> {
        let mut value = 0;
        let mut n = 0;
        while let Some(digit) = self.rest.get(n).map(|b| b.wrapping_sub(b'0')).filter(|&d| d <= 9) {
            value = value * 10 + u64::from(digit);
            n += 1;
        }
        self.rest = &self.rest[n..];
        (n > 0).then_some(value)
    }

    /// Continues after the first eight digits.
    fn many_digits(&mut self, digits: u64) -> Option<u64> {
        let mut value = eight_digits(digits);
        self.rest = &self.rest[8..];
        if let Some(chunk) = self.rest.first_chunk::<8>() {
            let digits = u64::from_le_bytes(*chunk) ^ 0x3030_3030_3030_3030;
            let n = first_set_byte(not_digits(digits));
            if n == 0 {
                return Some(value);
            }
            if n < 8 {
                self.rest = &self.rest[n..];
                return Some(value * POWERS[n] + eight_digits(digits << (64 - 8 * n)));
            }
            value = value * 100_000_000 + eight_digits(digits);
            self.rest = &self.rest[8..];
        }
        while let Some(digit) = self.rest.first().map(|b| b.wrapping_sub(b'0')).filter(|&d| d <= 9) {
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
            self.rest = &self.rest[1..];
        }
        Some(value)
    }

    /// Takes `0x` and one to sixteen hex digits.
    #[inline]
    pub(super) fn hex(&mut self) -> Option<u64> {
        self.literal(b"0x")?;
        self.hex_digits()
    }

    /// Takes one to sixteen hex digits.
    #[inline]
    pub(super) fn hex_digits(&mut self) -> Option<u64> {
        if let Some((chunk, after)) = self.rest.split_first_chunk::<16>() {
            let (high, low) = chunk.split_at(8);
            if let (Some(high), Some(low)) = (eight_hex_digits(high), eight_hex_digits(low)) {
                self.rest = after;
                // A seventeenth digit would not fit.
                return (!after.first().is_some_and(u8::is_ascii_hexdigit)).then_some(high << 32 | low);
            }
        }
        let mut value = 0u64;
        let mut n = 0;
        while let Some(digit) = self.rest.get(n).and_then(|&b| char::from(b).to_digit(16)) {
            value = value << 4 | u64::from(digit);
            n += 1;
        }
        self.rest = &self.rest[n..];
        (1..=16).contains(&n).then_some(value)
    }

    /// Takes a decimal number with an optional minus that fits an i64.
    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        if self.literal(b"-").is_some() {
            0i64.checked_sub_unsigned(self.decimal()?)
        } else {
            i64::try_from(self.decimal()?).ok()
        }
    }

    #[inline]
    pub(super) fn spaces(&mut self) {
        self.rest = without_spaces(self.rest);
    }

    pub(super) fn at_end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}

/// Returns the text without its leading spaces.
#[inline]
pub(super) fn without_spaces(mut text: &[u8]) -> &[u8] {
    while let Some(chunk) = text.first_chunk::<8>() {
        let others = u64::from_le_bytes(*chunk) ^ ONES * u64::from(b' ');
        let n = first_set_byte(others);
        text = &text[n..];
        if n < 8 {
            return text;
        }
    }
    while let Some(rest) = text.strip_prefix(b" ") {
        text = rest;
    }
    text
}

/// Returns the position of a byte that is expected early in the text.
#[inline]
pub(super) fn find(byte: u8, text: &[u8]) -> Option<usize> {
    let at_byte = |chunk: &[u8; 8]| {
        let others = u64::from_le_bytes(*chunk) ^ ONES * u64::from(byte);
        first_set_byte(others.wrapping_sub(ONES) & !others & HIGH_BITS)
    };
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk::<8>() {
        let n = at_byte(chunk);
        if n < 8 {
            return Some(at + n);
        }
        at += 8;
    }
    if let Some(chunk) = text.last_chunk::<8>() {
        // The bytes that were already searched do not contain it.
        let n = at_byte(chunk);
        return (n < 8).then(|| text.len() - 8 + n);
    }
    text.iter().position(|&b| b == byte)
}

/// Letters, digits and `_`.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// Number of letters, digits and `_` at the start of a text.
#[inline]
pub(super) fn word_len(text: &[u8]) -> usize {
    text.iter().position(|&b| !WORD[usize::from(b)]).unwrap_or(text.len())
}

/// Parses `4.488395`: one digit and six digits of a fraction.
#[inline]
pub(super) fn digit_and_micros(text: [u8; 8]) -> Option<(u64, u64)> {
    const POINT: u64 = 0xff << 8;
    let digits = (u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030) & !POINT;
    (text[1] == b'.' && not_digits(digits) == 0).then(|| (digits & 0xf, eight_digits(digits & !0xff)))
}

/// Parses exactly eight digits.
#[inline]
pub(super) fn all_digits(text: [u8; 8]) -> Option<u64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    (not_digits(digits) == 0).then(|| eight_digits(digits))
}

/// Index of the first of eight bytes that is not zero; 8 if all are zero.
#[inline]
fn first_set_byte(bytes: u64) -> usize {
    bytes.trailing_zeros() as usize / 8
}

/// Returns the highest bit of each byte that is not a digit value (0 to 9).
#[inline]
fn not_digits(digits: u64) -> u64 {
    ((digits & LOW_BITS) + 0x7676_7676_7676_7676 | digits) & HIGH_BITS
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Converts eight digits, the first in the lowest byte: neighbours are joined, then pairs, then groups of four.
#[inline]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// Converts eight hex digits; `None` if a byte is not a hex digit.
#[inline]
fn eight_hex_digits(text: &[u8]) -> Option<u64> {
    let text = u64::from_be_bytes(text.try_into().ok()?);
    let digits = text ^ 0x3030_3030_3030_3030;
    let not_digit = (digits & LOW_BITS) + 0x7676_7676_7676_7676 | digits;
    // `a` to `f` in either case become 1 to 6.
    let letters = (text | 0x2020_2020_2020_2020) ^ 0x6060_6060_6060_6060;
    let not_letter = (letters & LOW_BITS) + 0x7979_7979_7979_7979 | letters | !((letters & LOW_BITS) + LOW_BITS);
    if not_digit & not_letter & HIGH_BITS != 0 {
        return None;
    }
    let nibbles = (text & 0x0f0f_0f0f_0f0f_0f0f) + 9 * (text >> 6 & 0x0101_0101_0101_0101);
    let bytes = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let words = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    Some((words | words >> 16) & 0xffff_ffff)
}

/// Parses all of `text` with `take`; `None` if bytes remain.
pub(super) fn whole<'a, T>(text: &'a [u8], take: impl Fn(&mut Cursor<'a>) -> Option<T>) -> Option<T> {
    let mut cursor = Cursor::new(text);
    let value = take(&mut cursor)?;
    cursor.at_end()?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimals_as_the_standard_library_reads_them(text in "[0-9]{0,22}[^0-9]?.{0,9}") {
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            let mut cursor = Cursor::new(text.as_bytes());
            let value = cursor.decimal();
            prop_assert_eq!(value, digits.parse().ok());
            if value.is_some() {
                prop_assert_eq!(cursor.rest, &text.as_bytes()[digits.len()..]);
            }
        }

        #[test]
        fn fixed_width_digits(text in "[0-9]{8}|[0-9][.][0-9]{6}|[0-9][./0-9x-][0-9.x]{6}|[ -~]{8}") {
            let bytes: [u8; 8] = text.as_bytes().try_into().unwrap();
            let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().unwrap());
            prop_assert_eq!(all_digits(bytes), number(&text));
            let split = number(&text[..1]).zip(number(&text[2..])).filter(|_| &text[1..2] == ".");
            prop_assert_eq!(digit_and_micros(bytes), split);
        }

        #[test]
        fn hex_as_the_standard_library_reads_it(text in "[0-9a-fA-F]{0,18}.{0,9}") {
            let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
            let line = format!("0x{text}");
            let want = (digits.len() <= 16).then(|| u64::from_str_radix(&digits, 16).ok()).flatten();
            prop_assert_eq!(Cursor::new(line.as_bytes()).hex(), want);
        }

        #[test]
        fn any_byte_may_follow(digits in "[0-9]{1,9}", next: u8, more in prop::collection::vec(any::<u8>(), 0..12)) {
            prop_assume!(!next.is_ascii_digit());
            let line = [digits.as_bytes(), &[next], &more].concat();
            let mut cursor = Cursor::new(&line);
            prop_assert_eq!(cursor.decimal(), digits.parse().ok());
            prop_assert_eq!(cursor.rest.first(), Some(&next));
        }

        #[test]
        fn find_returns_the_first_position(text in prop::collection::vec(prop_oneof![Just(b' '), Just(b'!'), any::<u8>()], 0..40)) {
            for byte in [b' ', b'!', 0, 0x80, 0xff] {
                prop_assert_eq!(find(byte, &text), text.iter().position(|&b| b == byte));
            }
        }

        #[test]
        fn leading_spaces_are_removed(spaces in 0usize..30, rest in "[^ ]?.{0,12}") {
            let text = format!("{}{rest}", " ".repeat(spaces));
            prop_assert_eq!(without_spaces(text.as_bytes()), text.trim_start_matches(' ').as_bytes());
        }

        #[test]
        fn no_other_byte_is_a_hex_digit(at in 0usize..16, byte: u8) {
            let mut digits = *b"00000000ffFF1234";
            digits[at] = byte;
            let text = [b"0x".as_slice(), &digits].concat();
            let all = digits.iter().all(u8::is_ascii_hexdigit);
            prop_assert_eq!(whole(&text, Cursor::hex).is_some(), all);
        }
    }

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
