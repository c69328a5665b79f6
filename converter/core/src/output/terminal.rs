//! Text for a terminal: names come from a log, and an escape sequence in a name would control the terminal.

use std::fmt::Write as _;

/// Returns text in which each character that is not printable is escaped, as `\x1b` or `\u202e`. Ends of lines and tabs are kept.
pub(crate) fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_printable(char) { text.push(char) } else { push_escape(&mut text, char) }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.into_bytes()
}

fn push_escape(text: &mut String, char: char) {
    let code = u32::from(char);
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// Controls have no width, and format characters change the order or the look of others.
fn is_printable(char: char) -> bool {
    match char {
        '\n' | '\t' | ' '..='~' => true,
        _ if char.is_control() => false,
        // Unicode 16, general categories Cf, Zl and Zp.
        '\u{ad}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'..='\u{891}'
        | '\u{8e2}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn what_is_not_printable_is_escaped() {
        for (bytes, shown) in [
            (&b"a\x1b[31mb\x07\n\tc\r\x7f\0"[..], "a\\x1b[31mb\\x07\n\tc\\x0d\\x7f\\x00"),
            ("\u{9b}2J \u{202e}abc\u{2066} \u{e0041}".as_bytes(), "\\x9b2J \\u202eabc\\u2066 \\U000e0041"),
            ("/data/Ünïcode 数据 e\u{301}".as_bytes(), "/data/Ünïcode 数据 e\u{301}"),
            (b"\xff\xfe cut \xe6\x95", "\\xff\\xfe cut \\xe6\\x95"),
        ] {
            assert_eq!(String::from_utf8(escape(bytes)).unwrap(), shown);
        }
    }
}
