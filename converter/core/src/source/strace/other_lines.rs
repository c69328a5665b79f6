//! Lines of strace that are not calls: stack frames, messages, and the summary of `-C`.

use memchr::memmem;

use crate::source::cursor::{Cursor, whole};

/// strace's message to its user, on a line of its own or in the middle of another.
const MESSAGE: &[u8] = b"strace: Process ";

pub(super) fn is_stack(line: &[u8]) -> bool {
    line.starts_with(b" > ")
}

/// Returns whether this is a message of strace between the calls.
pub(super) fn is_message(line: &[u8]) -> bool {
    match line {
        [b's', ..] => line.starts_with(b"strace: "),
        [b'[', ..] => line.starts_with(b"[ Process PID="),
        // The summary that `-C` prints at the end.
        [b'%', ..] => line.starts_with(b"% time "),
        [b'-', ..] => line.starts_with(b"------ ----"),
        [b' ' | b'1', ..] => is_summary(line),
        _ => false,
    }
}

/// Matches a summary row, `  0.08    0.000003           1         3           gettid`: share of time, seconds and counts in fixed columns.
fn is_summary(line: &[u8]) -> bool {
    const SHARE: usize = 6;
    const SECONDS: usize = 12;
    let Some((share, rest)) = line.split_at_checked(SHARE) else { return false };
    let Some((seconds, rest)) = rest.split_at_checked(SECONDS) else { return false };
    let is_decimal = |text: &[u8], decimals: usize| {
        let text = text.trim_ascii_start();
        text.len() > decimals + 1
            && text.iter().rev().enumerate().all(|(i, b)| if i == decimals { *b == b'.' } else { b.is_ascii_digit() })
    };
    is_decimal(share, 2) && is_decimal(seconds, 6) && rest.first() == Some(&b' ')
}

/// Parses `strace: Process 12 attached`, which a terminal receives in the middle of a line. Returns the text before it, and the PID.
pub(super) fn message(line: &[u8]) -> Option<(&[u8], u32)> {
    if !line.ends_with(b"tached") {
        return None;
    }
    let line = line.strip_suffix(b" attached").or_else(|| line.strip_suffix(b" detached"))?;
    let at = memmem::rfind(line, MESSAGE)?;
    let number = whole(&line[at + MESSAGE.len()..], Cursor::decimal)?;
    Some((&line[..at], u32::try_from(number).ok()?))
}
