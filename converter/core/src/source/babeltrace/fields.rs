//! The fields of a structure, as babeltrace2 prints them: `a = 1, b = "x", c = [ [0] = 1 ], d = ( "X" : container = 3 )`.

use std::borrow::Cow;

use memchr::memmem;

use super::names::Name;
use crate::source::cursor::{Cursor, whole};
use crate::source::event_names::EventName;
use crate::source::tracepoints::Tracepoint;

/// Offset of the `}` that ends a structure, from the text after its `{`.
pub(super) fn end_of_structure(text: &[u8]) -> Option<usize> {
    end_of(text, b"}")
}

/// Offset of the first of some bytes that is neither in a string nor in brackets.
fn end_of(text: &[u8], ends: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(&byte) = text.get(at) {
        if depth == 0 && ends.contains(&byte) {
            return Some(at);
        }
        match byte {
            b'"' => at = end_of_string(text, at + 1)?,
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Offset of the `"` that ends a string.
fn end_of_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Passes each field to `emit`. Returns false if they are not as babeltrace2 prints them.
pub(super) fn each<'a>(mut text: &'a [u8], mut emit: impl FnMut(&'a [u8], &'a [u8])) -> bool {
    while !text.is_empty() {
        let Some(equals) = memmem::find(text, b" = ") else { return false };
        let (key, value) = (&text[..equals], &text[equals + 3..]);
        let is_key = !key.is_empty() && key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let end = end_of(value, b",").unwrap_or(value.len());
        if !is_key || !is_value(&value[..end]) {
            return false;
        }
        emit(key, &value[..end]);
        text = match value[end..].strip_prefix(b", ") {
            Some(rest) if !rest.is_empty() => rest,
            None if end == value.len() => b"",
            _ => return false,
        };
    }
    true
}

/// Whether a value is whole: a string, a number, a word, or something in brackets, which end where it ends.
fn is_value(value: &[u8]) -> bool {
    match value {
        [b'"', rest @ ..] => end_of_string(rest, 0) == rest.len().checked_sub(1),
        [open @ (b'{' | b'[' | b'('), rest @ ..] => {
            let close: &[u8] = match open {
                b'{' => b"}",
                b'[' => b"]",
                _ => b")",
            };
            end_of(rest, close).is_some_and(|end| end + 1 == rest.len())
        }
        _ => !value.is_empty() && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-+._<>".contains(byte)),
    }
}

/// The value of a string without its escapes.
pub(super) fn text(value: &[u8]) -> Cow<'_, [u8]> {
    let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    if memchr::memchr(b'\\', inside).is_none() {
        return inside.into();
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let [first, after @ ..] = rest {
        let (byte, taken) = if *first == b'\\' { escaped(after) } else { (*first, 0) };
        out.push(byte);
        rest = &after[taken..];
    }
    out.into()
}

/// The byte that an escape stands for, and its length after the backslash.
fn escaped(after: &[u8]) -> (u8, usize) {
    let byte = match after {
        [b'n', ..] => b'\n',
        [b't', ..] => b'\t',
        [b'r', ..] => b'\r',
        [b'a', ..] => 7,
        [b'b', ..] => 8,
        [b'v', ..] => 11,
        [b'f', ..] => 12,
        [b'e', ..] => 27,
        [b'x', digits @ ..] if digits.len() >= 2 => match whole(&digits[..2], Cursor::hex_digits) {
            Some(byte) => return (byte as u8, 3),
            None => return (b'\\', 0),
        },
        [byte @ (b'\\' | b'\'' | b'"' | b'?'), ..] => *byte,
        _ => return (b'\\', 0),
    };
    (byte, 1)
}

/// The number of an enumeration, and any other value unchanged.
fn number_of(value: &[u8]) -> &[u8] {
    const CONTAINER: &[u8] = b" : container = ";
    let number = memmem::rfind(value, CONTAINER).map(|at| &value[at + CONTAINER.len()..]);
    number.and_then(|number| number.strip_suffix(b" )")).filter(|_| value.starts_with(b"(")).unwrap_or(value)
}

/// The fields of an event by the kernel's names: names and values in turn, each ended by a NUL. It is reused for each line.
#[derive(Default)]
pub(super) struct Payload {
    data: Vec<u8>,
    has_reason: bool,
}

impl Payload {
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Takes the fields. Returns false if they are torn.
    pub(super) fn fill(&mut self, name: &Name<'_>, scope: &[u8]) -> bool {
        self.data.clear();
        self.has_reason = false;
        let is_block = matches!(name.tracepoint, Some(Tracepoint::Named(EventName::Block(_))));
        if scope.contains(&0) {
            return false;
        }
        each(scope, |key, value| {
            let value = number_of(value);
            self.has_reason |= key == b"reason";
            let kernels = if name.is_lttngs { kernels_key(name, key) } else { key };
            self.data.extend_from_slice(kernels);
            self.data.push(0);
            match bits(value).filter(|_| is_block && key == b"rwbs") {
                Some(bits) => push_rwbs(bits, &mut self.data),
                // A name that holds a NUL would end there.
                None => self.data.extend(text(value).iter().filter(|byte| **byte != 0)),
            }
            self.data.push(0);
        })
    }

    /// LTTng's events of a flusher's work do not say of which file system and why.
    pub(super) fn is_usable(&self, name: &Name<'_>) -> bool {
        let is_work = matches!(name.tracepoint, Some(Tracepoint::Named(EventName::WorkStart | EventName::WorkEnd)));
        !(is_work && name.is_lttngs) || self.has_reason
    }
}

/// The kernel's name of a field of LTTng.
fn kernels_key<'a>(name: &Name<'_>, key: &'a [u8]) -> &'a [u8] {
    let is_sched = name.kernels.starts_with(b"sched_");
    match key {
        b"prev_tid" if is_sched => b"prev_pid",
        b"next_tid" if is_sched => b"next_pid",
        b"tid" if is_sched => b"pid",
        _ => key,
    }
}

fn bits(value: &[u8]) -> Option<u64> {
    whole(value, Cursor::decimal)
}

/// Prints LTTng's bits of a request as the kernel prints its letters.
fn push_rwbs(bits: u64, out: &mut Vec<u8>) {
    const WRITE: u64 = 1 << 0;
    const DISCARD: u64 = 1 << 1;
    const READ: u64 = 1 << 2;
    const SECURE: u64 = 1 << 7;
    const FLUSH: u64 = 1 << 8;
    const PREFLUSH: u64 = 1 << 10;
    let has = |bit: u64| bits & bit != 0;
    // Kernels before 4.8 had no operation that flushes, but writes with a flush before them.
    let is_old_preflush = has(FLUSH) && has(WRITE | DISCARD | READ);
    if has(PREFLUSH) || is_old_preflush {
        out.push(b'F');
    }
    out.extend_from_slice(match () {
        () if has(DISCARD) && has(SECURE) => b"DE",
        () if has(DISCARD) => b"D",
        () if has(WRITE) => b"W",
        () if has(READ) => b"R",
        () if has(FLUSH) => b"F",
        () => b"N",
    });
    for (bit, letter) in [(1 << 9, b'F'), (1 << 3, b'A'), (1 << 5, b'S'), (1 << 6, b'M')] {
        if has(bit) {
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        each(text.as_bytes(), |key, value| found.push((name(key), name(value)))).then_some(found)
    }

    #[test]
    fn values_of_all_kinds() {
        let of = |text: &str| all(text).map(|found| found.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
        assert_eq!(
            of(r#"a = 1, b = "x, \" }", c = [ [0] = 1, [1] = 2 ], d = ( "X", "Y" : container = 3 ), e = { f = -1 }"#),
            Some(vec![
                "1".into(),
                r#""x, \" }""#.into(),
                "[ [0] = 1, [1] = 2 ]".into(),
                r#"( "X", "Y" : container = 3 )"#.into(),
                "{ f = -1 }".into()
            ])
        );
        assert_eq!(of(""), Some(vec![]));
        for text in
            ["a", "a = ", "a = 1,", "a = 1, ", "a = \"x", "a = [ 1", "a = 1 b", "a = \"x\"y", "a b = 1", "a = 1,b = 2"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn strings_and_enumerations() {
        assert_eq!(&*text(br#""a \"b\" \\ \n \x01 \?""#), b"a \"b\" \\ \n \x01 ?");
        assert_eq!(number_of(br#"( "RWBS_FLAG_WRITE" : container = 33 )"#), b"33");
        assert_eq!(number_of(b"\"a : container = 3 )\""), b"\"a : container = 3 )\"");
    }

    #[test]
    fn flags_are_the_kernels_letters() {
        let of = |bits: u64| {
            let mut out = Vec::new();
            push_rwbs(bits, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(of(1 | 1 << 5), "WS");
        assert_eq!(of(1 | 1 << 5 | 1 << 9 | 1 << 10), "FWFS");
        assert_eq!(of(1 << 8 | 1 << 5), "FS");
        assert_eq!(of(1 << 8 | 1), "FW");
        assert_eq!(of(4 | 1 << 3), "RA");
        assert_eq!(of(2 | 1 << 7), "DE");
        assert_eq!((of(0), of(1 << 10)), ("N".into(), "FN".into()));
    }
}
