//! Decodes the escapes with which recorders keep a name on one line.

use std::borrow::Cow;

/// Decodes `\NNN`, three octal digits, as the kernel's `mangle_path` writes them.
pub(super) fn octal(text: &[u8]) -> Cow<'_, [u8]> {
    unescape(text, |rest| {
        let digits: &[u8; 3] = rest.first_chunk()?;
        let in_range = matches!(digits[0], b'0'..=b'3') && digits[1..].iter().all(|d| matches!(d, b'0'..=b'7'));
        in_range.then(|| (digits.iter().fold(0u8, |value, digit| value << 3 | (digit - b'0')), 3))
    })
}

/// Decodes `\xNN`, two hex digits, as bpftrace's `%r` writes them.
pub(super) fn hex(text: &[u8]) -> Cow<'_, [u8]> {
    unescape(text, |rest| {
        let [b'x', digits @ ..] = rest.first_chunk::<3>()? else { return None };
        let digit = |d: u8| char::from(d).to_digit(16);
        Some(((digit(digits[0])? << 4 | digit(digits[1])?) as u8, 3))
    })
}

/// `decode` gets the text after a backslash. It returns the decoded byte and the number of characters that encode it.
fn unescape(text: &[u8], decode: impl Fn(&[u8]) -> Option<(u8, usize)>) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match (first, decode(after)) {
            (b'\\', Some((decoded, taken))) => {
                out.push(decoded);
                rest = &after[taken..];
            }
            _ => out.push(first),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        assert_eq!(&*octal(br"/a\012b\134c \08 \400 \1"), b"/a\nb\\c \\08 \\400 \\1");
        assert_eq!(&*hex(br"w\x0al\x00 \xg0 \x"), b"w\nl\0 \\xg0 \\x");
        assert!(matches!(octal(b"/plain"), Cow::Borrowed(_)));
    }
}
