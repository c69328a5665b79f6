//! Parses the arguments of a call as strace prints them: descriptors with their annotations, strings, flags, lists.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::source::cursor::{Cursor, whole};

/// Instead of a descriptor: the working directory of the process.
pub(super) const AT_FDCWD: i32 = -100;

/// Makes a lookup table of a set of bytes.
pub(super) const fn byte_set(members: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < members.len() {
        table[members[i] as usize] = true;
        i += 1;
    }
    table
}
/// Bytes that can end a call, or start or end something in it.
const SPECIAL: [bool; 256] = byte_set(b"\"()[]{}<,");

/// Finds the parenthesis that closes the arguments. Strings and file names may contain parentheses.
#[inline]
pub(super) fn close_parenthesis(text: &[u8]) -> Option<(usize, Commas)> {
    let mut commas = [text.len(); COMMAS];
    let mut n = 0;
    let end = skip_to(text, |at, byte| {
        if byte == b',' && n < COMMAS {
            commas[n] = at;
            n += 1;
        }
        byte == b')'
    })?;
    Some((end, commas))
}

/// Positions of the first commas between arguments; the end of the text for absent ones.
pub(super) type Commas = [usize; COMMAS];
const COMMAS: usize = 3;

/// Finds the end of a list. `text` follows its opening bracket.
pub(super) fn list_end(text: &[u8]) -> Option<usize> {
    skip_to(text, |_, byte| byte == b']')
}

/// Finds the first byte that `stop` accepts outside of strings, brackets and file names.
#[inline]
fn skip_to(text: &[u8], mut stop: impl FnMut(usize, u8) -> bool) -> Option<usize> {
    let (mut at, mut depth) = (0usize, 0usize);
    loop {
        at += text.get(at..)?.iter().position(|&b| SPECIAL[usize::from(b)])?;
        let byte = text[at];
        if depth == 0 && stop(at, byte) {
            return Some(at);
        }
        match byte {
            b'"' => at += string(&text[at + 1..])?.len() + 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            // The annotation of a descriptor or of AT_FDCWD. With `-X verbose` a comment with the symbolic name precedes it.
            b'<' if at > 0 && matches!(text[at - 1], b'0'..=b'9' | b'D' | b'/') => {
                if let Some(len) = annotation(&text[at + 1..]) {
                    at += len + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Returns a string up to its closing quote, still escaped. `text` follows the opening quote.
#[inline]
pub(super) fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(chunk) = text.get(at..)?.first_chunk::<16>() {
        let mut marks = [0; 16];
        for (mark, &byte) in marks.iter_mut().zip(chunk) {
            // Branch-free, so that the compiler vectorizes the comparison.
            *mark = (u8::from(byte == b'"') | u8::from(byte == b'\\')).wrapping_neg();
        }
        let mut marks = u128::from_le_bytes(marks);
        let mut next = chunk.len();
        while marks != 0 {
            let n = marks.trailing_zeros() as usize / 8;
            if chunk[n] == b'"' {
                return Some(&text[..at + n]);
            }
            // The byte after a backslash is escaped.
            next = next.max(n + 2);
            marks &= u128::MAX.checked_shl(8 * (n as u32 + 2)).unwrap_or(0);
        }
        at += next;
    }
    loop {
        at += text.get(at..)?.iter().position(|b| matches!(b, b'"' | b'\\'))?;
        if text[at] == b'"' {
            return Some(&text[..at]);
        }
        at += 2;
    }
}

/// Length of the annotation up to its `>`. Paths escape `<` and `>`; names of sockets and devices do not.
pub(super) fn annotation(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => at += string(&text[at + 1..])?.len() + 1,
            b'<' => depth += 1,
            // `1.2.3.4:5->6.7.8.9:10`. In a path `>` is escaped.
            b'>' if at > 0 && text[at - 1] == b'-' && text[0] != b'/' && memchr(b'[', &text[..at]).is_some() => {}
            b'>' if depth == 0 => return Some(at),
            b'>' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Length of `(deleted)` at the start of `text`.
pub(super) fn deleted_len(text: &[u8]) -> usize {
    if text.starts_with(b"(deleted)") { 9 } else { 0 }
}

/// Iterates over the arguments of a call.
#[derive(Clone, Debug)]
pub(super) struct Args<'a> {
    pub(super) text: &'a [u8],
    /// Start of the next argument.
    at: Option<usize>,
    commas: Commas,
    /// Number of commas that were passed; `COMMAS` if no positions are known.
    passed: usize,
}

impl<'a> Args<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, at: Some(0), commas: [0; COMMAS], passed: COMMAS }
    }

    /// `commas` as `close_parenthesis` returns them for `text`.
    #[inline]
    pub(super) fn with_commas(text: &'a [u8], commas: Commas) -> Self {
        Self { text, at: Some(0), commas, passed: 0 }
    }
}

impl<'a> Iterator for Args<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let from = self.at?;
        let end = match self.commas.get(self.passed) {
            Some(&comma) => Some(comma).filter(|comma| *comma < self.text.len()),
            None => skip_to(&self.text[from..], |_, byte| byte == b',').map(|len| from + len),
        };
        self.passed += usize::from(self.passed < COMMAS);
        self.at = end.map(|end| end + 1);
        Some(self.text[from..end.unwrap_or(self.text.len())].trim_ascii())
    }
}

/// Parses a descriptor and its annotation, if printed: `3`, `3</a/b>`, `3</a/b>(deleted)`, `AT_FDCWD</a>`.
#[inline]
pub(super) fn descriptor(arg: &[u8]) -> Option<(i32, Option<&[u8]>)> {
    if let [digit @ b'0'..=b'9'] = arg {
        return Some((i32::from(digit - b'0'), None));
    }
    let at = memchr(b'<', arg).unwrap_or(arg.len());
    let fd = match symbolic(&arg[..at]) {
        b"AT_FDCWD" => AT_FDCWD,
        number => i32::try_from(whole(number, Cursor::signed)?).ok()?,
    };
    Some((fd, (at < arg.len()).then_some(&arg[at..])))
}

/// Returns the path in `</a/b>` or `</a/b>(deleted)`; `None` if it is not a file. The kernel names a deleted file `/a/b (deleted)`.
pub(super) fn path_of(file: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (name, after) = file.split_at(1 + file[1..].iter().position(|b| matches!(b, b'<' | b'>'))?);
    let mut path = unescape(&name[1..]);
    // `</dev/null<char 1:3>>` has two closing brackets.
    if after.ends_with(b"(deleted)") {
        path.to_mut().extend_from_slice(b" (deleted)");
    }
    (path.first() == Some(&b'/')).then_some(path)
}

/// Returns the unescaped text in quotes. A string that strace truncated ends with `...`.
pub(super) fn quoted(arg: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text = arg.strip_prefix(b"\"")?;
    let raw = string(text)?;
    let mut text = unescape(raw);
    if arg[raw.len() + 2..].starts_with(b"...") {
        text.to_mut().extend_from_slice(b"...");
    }
    Some(text)
}

/// Whether a text in quotes ends with them, or with the dots of a truncated one. Any other argument is whole.
pub(super) fn is_whole_string(arg: &[u8]) -> bool {
    let Some(text) = arg.strip_prefix(b"\"") else { return true };
    string(text).is_some_and(|raw| matches!(&arg[raw.len() + 2..], b"" | b"..."))
}

/// Decodes `\n`, `\"`, `\303`, `\0`, `\xc3` and the like.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', text).is_none() {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = |from: usize, most: usize, radix: u32| {
            rest[from.min(rest.len())..].iter().take(most).take_while(|b| char::from(**b).is_digit(radix)).count()
        };
        let value = |digits: &[u8], radix: u32| {
            digits.iter().fold(0u32, |value, digit| value * radix + char::from(*digit).to_digit(radix).unwrap_or(0))
                as u8
        };
        let (byte, taken) = match rest.first() {
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'r') => (b'\r', 1),
            Some(b'v') => (0x0b, 1),
            Some(b'f') => (0x0c, 1),
            Some(b'x') if digits(1, 2, 16) > 0 => {
                let n = digits(1, 2, 16);
                (value(&rest[1..=n], 16), 1 + n)
            }
            Some(b'0'..=b'7') => {
                let n = digits(0, 3, 8);
                (value(&rest[..n], 8), n)
            }
            Some(&other) => (other, 1),
            None => (b'\\', 0),
        };
        out.push(byte);
        rest = &rest[taken..];
    }
    out.extend_from_slice(rest);
    out.into()
}

/// Iterates over the names of a set of flags.
pub(super) fn flags(arg: &[u8]) -> impl Iterator<Item = &[u8]> {
    arg.split(|b| !b.is_ascii_alphanumeric() && *b != b'_')
}

/// Returns whether `arg` contains a flag: `O_RDWR|O_DSYNC`, `{flags=O_SYNC, resolve=0}`.
pub(super) fn has_flag(arg: &[u8], flag: &[u8]) -> bool {
    flags(arg).any(|word| word == flag)
}
/// Returns the symbolic name that `-X verbose` prints after a number: `-100 /* AT_FDCWD */`, `0x1042 /* O_RDWR|O_CREAT|O_DSYNC */`.
#[inline]
pub(super) fn symbolic(arg: &[u8]) -> &[u8] {
    const BEGIN: &[u8] = b" /* ";
    let Some(inner) = arg.strip_suffix(b" */") else { return arg };
    memmem::find(inner, BEGIN).map_or(arg, |at| &inner[at + BEGIN.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn arguments() {
        let text = b"AT_FDCWD</a, b>, \"c, \\\"d\", {flags=O_RDWR|O_SYNC, x=[1, 2]}, 24";
        let args: Vec<_> = Args::of(text).collect();
        assert_eq!(args.len(), 4);
        assert_eq!(descriptor(args[0]), Some((AT_FDCWD, Some(b"</a, b>".as_slice()))));
        assert_eq!(*quoted(args[1]).unwrap(), *b"c, \"d");
        assert!(has_flag(args[2], b"O_SYNC") && !has_flag(args[2], b"SYNC") && !has_flag(b"O_DSYNC", b"O_SYNC"));
        assert_eq!(descriptor(b"99"), Some((99, None)));
        assert_eq!(descriptor(b"0x3"), None);
        assert_eq!(*quoted(b"\"abc\"...").unwrap(), *b"abc...");
    }

    #[test]
    fn escapes() {
        assert_eq!(*unescape(br#"a\n\t\"\\\303\251\0\76 \0740\x2f\x"#), *b"a\n\t\"\\\xc3\xa9\0> <0/x");
    }

    /// Escapes a string as strace does.
    fn escape(bytes: &[u8]) -> String {
        let mut out = String::new();
        for (i, &byte) in bytes.iter().enumerate() {
            let digit_follows = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
            let _ = match byte {
                b'"' => write!(out, "\\\""),
                b'\\' => write!(out, "\\\\"),
                b'\n' => write!(out, "\\n"),
                b' '..=b'~' => write!(out, "{}", char::from(byte)),
                _ if digit_follows => write!(out, "\\{byte:03o}"),
                _ => write!(out, "\\{byte:o}"),
            };
        }
        out
    }

    proptest! {
        #[test]
        fn escaped_strings_round_trip(bytes: Vec<u8>, more: Vec<u8>) {
            let line = format!("\"{}\", \"{}\"", escape(&bytes), escape(&more));
            let args: Vec<_> = Args::of(line.as_bytes()).collect();
            prop_assert_eq!(args.len(), 2);
            prop_assert_eq!(&*quoted(args[0]).unwrap(), &bytes[..]);
            prop_assert_eq!(&*quoted(args[1]).unwrap(), &more[..]);
        }
    }
}
