//! A parser for the JSON of bpftrace, which is not always valid JSON.
//!
//! Where C++'s `char` is signed, bpftrace writes a byte from 0x80 on as `\uffffff80`; elsewhere it writes it unchanged, even if it is
//! not UTF-8. Numbers may need all 64 bits. Early versions write addresses as `0x...`; 0.24 and later write some counts in hex. So texts
//! are bytes here, and a number keeps its text.

use std::borrow::Cow;

use memchr::memchr2;

use crate::source::cursor::{Cursor, whole};

/// Deeper than any tuple. It bounds the stack on a hostile line.
const MAX_DEPTH: u32 = 32;

/// A value, and its text in the input.
pub(super) struct Value<'a> {
    pub(super) raw: &'a [u8],
    pub(super) shape: Shape<'a>,
}

pub(super) enum Shape<'a> {
    Text(Cow<'a, [u8]>),
    /// A number, `true`, `false` or `null`.
    Plain,
    List(Vec<Value<'a>>),
    Object(Vec<(Cow<'a, [u8]>, Value<'a>)>),
}

impl Value<'_> {
    /// Returns the last member of this name.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Self> {
        let Shape::Object(pairs) = &self.shape else { return None };
        pairs.iter().rev().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match &self.shape {
            Shape::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes of a text, or the JSON of any other value.
    pub(super) fn shown(&self) -> &[u8] {
        self.text().unwrap_or(self.raw)
    }

    /// Returns a number; negative values are in two's complement. From 0.24 on, numbers that a double cannot hold are texts.
    pub(super) fn number(&self) -> Option<u64> {
        let text = match &self.shape {
            Shape::Plain => self.raw,
            Shape::Text(text) => text,
            _ => return None,
        };
        let signed = || whole(text, Cursor::signed).map(|number| number as u64);
        whole(text, Cursor::decimal).or_else(signed).or_else(|| whole(text, Cursor::hex))
    }
}

/// Parses all of `text` as one value. Also returns whether a character in it is written as a number.
pub(super) fn parse(text: &[u8]) -> Option<(Value<'_>, bool)> {
    let mut reader = Reader { rest: text, numbered: false };
    let value = reader.value(0)?;
    reader.skip_space();
    reader.rest.is_empty().then_some((value, reader.numbered))
}

struct Reader<'a> {
    rest: &'a [u8],
    numbered: bool,
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn value(&mut self, depth: u32) -> Option<Value<'a>> {
        self.skip_space();
        let before = self.rest;
        let shape = match self.rest.first()? {
            b'"' => Shape::Text(self.text()?),
            b'[' if depth < MAX_DEPTH => {
                let mut items = Vec::new();
                self.items(b'[', b']', |reader| {
                    items.push(reader.value(depth + 1)?);
                    Some(())
                })?;
                Shape::List(items)
            }
            b'{' if depth < MAX_DEPTH => {
                let mut pairs = Vec::new();
                self.items(b'{', b'}', |reader| {
                    reader.skip_space();
                    let name = reader.text()?;
                    reader.take(b':')?;
                    pairs.push((name, reader.value(depth + 1)?));
                    Some(())
                })?;
                Shape::Object(pairs)
            }
            _ => {
                let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
                let len = self.rest.iter().take_while(|b| is_plain(b)).count();
                self.rest = &self.rest[len..];
                (len > 0).then_some(Shape::Plain)?
            }
        };
        Some(Value { raw: &before[..before.len() - self.rest.len()], shape })
    }

    fn items(&mut self, open: u8, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(open)?;
        if self.take(close).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.take(close).is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn text(&mut self) -> Option<Cow<'a, [u8]>> {
        let inner = self.rest.strip_prefix(b"\"")?;
        let mut end = memchr2(b'"', b'\\', inner)?;
        let escaped = inner[end] == b'\\';
        while inner[end] == b'\\' {
            let after = end + 2;
            end = after + memchr2(b'"', b'\\', inner.get(after..)?)?;
        }
        self.rest = &inner[end + 1..];
        if !escaped {
            return Some(Cow::Borrowed(&inner[..end]));
        }
        let mut text = Vec::with_capacity(end);
        self.numbered |= unescape(&inner[..end], &mut text)?;
        Some(Cow::Owned(text))
    }
}

/// Appends the unescaped content of a string. Returns whether a character of it is written as a number; `None` if it is not a valid string.
#[inline]
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (mut rest, mut numbered) = (text, false);
    while let Some(at) = memchr2(b'\\', b'"', rest) {
        let (plain, after) = rest.split_at(at);
        out.extend_from_slice(plain);
        let &[b'\\', letter, ref after @ ..] = after else { return None };
        rest = after;
        out.push(match letter {
            b'n' => b'\n',
            b'"' | b'\\' | b'/' => letter,
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                numbered = true;
                rest = append_character(after, out)?;
                continue;
            }
            _ => return None,
        });
    }
    out.extend_from_slice(rest);
    Some(numbered)
}

/// Appends the character or byte of a `\u` escape. Returns the text after it.
fn append_character<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let hex = |from: usize, len: usize| {
        let digits = text.get(from..from + len)?;
        digits.iter().try_fold(0u32, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    };
    let first = hex(0, 4)?;
    if first == 0xffff
        && let Some(byte) = hex(4, 4).filter(|byte| (0xff80..=0xffff).contains(byte))
    {
        out.push(byte as u8);
        return Some(&text[8..]);
    }
    let (code, len) = match first {
        // A surrogate pair, written by another program that rewrote the JSON.
        0xd800..0xdc00 if text.get(4..6) == Some(b"\\u") => {
            let second = hex(6, 4).filter(|second| (0xdc00..0xe000).contains(second))?;
            (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 10)
        }
        _ => (first, 4),
    };
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(&text[len..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(inner: &str) -> Option<(Vec<u8>, bool)> {
        let mut out = Vec::new();
        let numbered = unescape(inner.as_bytes(), &mut out)?;
        Some((out, numbered))
    }

    #[test]
    fn escapes_of_bpftrace_and_of_json() {
        assert_eq!(text(r#"a\tb\n\"\\\/"#), Some((b"a\tb\n\"\\/".to_vec(), false)));
        assert_eq!(text(r"caf\uffffffc3\uffffffa9 \u0001"), Some(("caf\u{e9} \u{1}".into(), true)));
        // A byte that is not UTF-8, followed by digits of the text.
        assert_eq!(text(r"\uffffff80ff"), Some((b"\x80ff".to_vec(), true)));
        assert_eq!(text(r"\uffff0080 \\u00e9 \ud83d\ude00"), Some(("\u{ffff}0080 \\u00e9 \u{1f600}".into(), true)));
        for torn in [r"\", r"\x41", r"\u12", r"\ud83d", r"\ud83d\u0041", "a\"b"] {
            assert_eq!(text(torn), None, "{torn}");
        }
    }

    #[test]
    fn values_as_bpftrace_writes_them() {
        let line = b"[1,\"x\",[\"k\",-5], 18446744073709551615,\"9007199254740993\",0xff,{\"a\": true, \"a\": null}]";
        let Some((Value { shape: Shape::List(items), .. }, false)) = parse(line) else { panic!() };
        let numbers: Vec<_> = items.iter().map(Value::number).collect();
        assert_eq!(numbers, [Some(1), None, None, Some(u64::MAX), Some(9_007_199_254_740_993), Some(255), None]);
        assert_eq!(items[2].raw, b"[\"k\",-5]");
        assert_eq!(items[6].get(b"a").map(|value| value.raw), Some(&b"null"[..]));
        let Shape::List(pair) = &items[2].shape else { panic!() };
        assert_eq!((pair[0].text(), pair[1].number()), (Some(&b"k"[..]), Some(-5i64 as u64)));
        for torn in [&b"[1"[..], b"[1,]", b"{\"a\" 1}", b"1 2", b"", b"\"a", b"\"a\\", &[b'['; 1000]] {
            assert!(parse(torn).is_none(), "{torn:?}");
        }
    }
}
