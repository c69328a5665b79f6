//! The text of a marker that an application writes to `trace_marker`.
//!
//! Any text is a moment with this name. Android's trace library writes the begin and the end of an interval:
//!
//! ```text
//! B|PID|NAME   E|PID   E                       of one thread, nested
//! S|PID|NAME|COOKIE   F|PID|NAME|COOKIE        of any thread
//! G|PID|TRACK|NAME|COOKIE   H|PID|TRACK|COOKIE   the same on a track
//! I|PID|NAME   N|PID|TRACK|NAME                a moment
//! C|PID|NAME|VALUE                             a counter, which is no mark
//! ```

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::event_names::MARKER;
use crate::event::{Kind, MarkPhase};
use crate::names::{NameId, Names};

/// Addresses in the kernel have at least this many hex digits. BPF programs of older kernels print as if they were at 0 or 1.
const MIN_ADDRESS_DIGITS: usize = 8;
/// Markers by which tracing tools relate their clocks.
const CLOCK_SYNC: &[u8] = b"trace_event_clock_sync:";

/// Returns the text of a marker without the name of the function that wrote it: `tracing_mark_write: TEXT`, also with an offset.
pub(super) fn strip_writer(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(MARKER)?;
    let end = memchr::memmem::find(rest, b": ").or_else(|| rest.strip_suffix(b":").map(<[u8]>::len))?;
    let offset = &rest[..end];
    (offset.is_empty() || offset.starts_with(b"+0x") || offset.starts_with(b" <"))
        .then(|| rest.get(end + 2..).unwrap_or_default())
}

/// Returns the text of a marker from what trace-cmd prints as `print`: `FUNCTION: TEXT`. An address instead of the function is not resolved;
/// it is taken for that of the writer of markers.
pub(super) fn of_print(data: &[u8]) -> Option<&[u8]> {
    if let Some(text) = strip_writer(data) {
        return Some(text);
    }
    let colon = memchr::memmem::find(data, b": ")?;
    let (function, text) = (&data[..colon], &data[colon + 2..]);
    let digits = function.strip_prefix(b"0x").unwrap_or(function);
    let is_address = digits.len() >= MIN_ADDRESS_DIGITS && digits.iter().all(u8::is_ascii_hexdigit);
    strip_writer(text).or(is_address.then_some(text))
}

/// Decodes the text of a marker.
pub(super) fn kind(text: &[u8], names: &mut Names) -> Kind {
    let text = text.trim_ascii();
    let mut mark = |phase, name: &[u8], key| {
        let name = name.trim_ascii();
        let name = if name.is_empty() { NameId::NONE } else { names.intern(name) };
        // A mark without a name says nothing.
        if name.is_some() || matches!(phase, MarkPhase::End | MarkPhase::AsyncEnd) {
            Kind::Mark { phase, name, key }
        } else {
            Kind::Other
        }
    };
    if text.starts_with(CLOCK_SYNC) {
        return Kind::Other;
    }
    let Some((letter, rest)) = atrace(text) else { return mark(MarkPhase::Instant, text, 0) };
    // The name may contain the separator, the other fields do not.
    let (pid, rest) = split_first(rest);
    match letter {
        b'B' => mark(MarkPhase::Begin, rest, 0),
        b'E' => mark(MarkPhase::End, b"", 0),
        b'I' => mark(MarkPhase::Instant, rest, 0),
        b'N' => mark(MarkPhase::Instant, split_first(rest).1, 0),
        b'S' => {
            let (name, cookie) = split_last(rest);
            mark(MarkPhase::AsyncBegin, name, key([pid, name, cookie]))
        }
        b'F' => {
            let (name, cookie) = split_last(rest);
            mark(MarkPhase::AsyncEnd, b"", key([pid, name, cookie]))
        }
        b'G' => {
            let (track, rest) = split_first(rest);
            let (name, cookie) = split_last(rest);
            mark(MarkPhase::AsyncBegin, name, key([pid, track, cookie]))
        }
        b'H' => {
            let (track, rest) = split_first(rest);
            let cookie = rest.rsplit(|&b| b == b'|').next().unwrap_or_default();
            mark(MarkPhase::AsyncEnd, b"", key([pid, track, cookie]))
        }
        _ => Kind::Other,
    }
}

/// Returns the letter of a marker of Android's form, and what follows its process id.
fn atrace(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        b"E" => Some((b'E', b"")),
        [letter @ (b'B' | b'E' | b'S' | b'F' | b'G' | b'H' | b'I' | b'N' | b'C'), b'|', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let is_pid = rest.get(digits).is_none_or(|&b| b == b'|') && (digits > 0 || *letter == b'E');
            is_pid.then_some((*letter, rest))
        }
        _ => None,
    }
}

fn split_first(text: &[u8]) -> (&[u8], &[u8]) {
    memchr::memchr(b'|', text).map_or((text, &[]), |at| (&text[..at], &text[at + 1..]))
}

fn split_last(text: &[u8]) -> (&[u8], &[u8]) {
    memchr::memrchr(b'|', text).map_or((text, &[]), |at| (&text[..at], &text[at + 1..]))
}

/// Identifies an asynchronous mark. A cookie may be new for each mark, so it is no name that is kept.
fn key(parts: [&[u8]; 3]) -> u64 {
    FixedState::default().hash_one(parts) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(MarkPhase, String)> {
        let mut names = Names::default();
        match kind(text.as_bytes(), &mut names) {
            Kind::Mark { phase, name, .. } => Some((phase, names.text(name).into_owned())),
            _ => None,
        }
    }

    fn key_of(text: &str) -> u64 {
        match kind(text.as_bytes(), &mut Names::default()) {
            Kind::Mark { key, .. } => key,
            _ => 0,
        }
    }

    #[test]
    fn texts_are_moments_and_atrace_has_intervals() {
        use MarkPhase::{AsyncBegin, AsyncEnd, Begin, End, Instant};
        for (text, want) in [
            ("page 1\n", Some((Instant, "page 1"))),
            ("B|12|a|b", Some((Begin, "a|b"))),
            ("B|12|dequeueBuffer\n", Some((Begin, "dequeueBuffer"))),
            ("E", Some((End, ""))),
            ("E|12", Some((End, ""))),
            ("E|", Some((End, ""))),
            ("E|12|name", Some((End, ""))),
            ("S|12|load|7", Some((AsyncBegin, "load"))),
            ("F|12|load|7", Some((AsyncEnd, ""))),
            ("G|12|track|load|7", Some((AsyncBegin, "load"))),
            ("H|12|track|7", Some((AsyncEnd, ""))),
            ("I|12|now", Some((Instant, "now"))),
            ("N|12|track|now", Some((Instant, "now"))),
            // Not of this form: the text is the name.
            ("B|x|y", Some((Instant, "B|x|y"))),
            ("Exit", Some((Instant, "Exit"))),
            ("C|12|heap|4096", None),
            ("B|12|", None),
            (" \n", None),
            ("trace_event_clock_sync: parent_ts=12.5", None),
        ] {
            assert_eq!(read(text), want.map(|(phase, name)| (phase, name.to_owned())), "{text}");
        }
    }

    #[test]
    fn an_asynchronous_end_has_the_key_of_its_begin() {
        assert_eq!(key_of("S|12|load|7"), key_of("F|12|load|7"));
        assert_eq!(key_of("G|12|track|load|7"), key_of("H|12|track|7"));
        assert_eq!(key_of("G|12|track|load|7"), key_of("H|12|track|load|7"));
        for other in ["F|13|load|7", "F|12|load|8", "F|12|loads|7"] {
            assert_ne!(key_of("S|12|load|7"), key_of(other), "{other}");
        }
    }

    #[test]
    fn the_writer_is_stripped() {
        for (text, want) in [
            ("tracing_mark_write: a: b", Some("a: b")),
            ("tracing_mark_write+0x5a/0x150: a", Some("a")),
            ("tracing_mark_write <ffffffff8115>: a", Some("a")),
            ("tracing_mark_write:", Some("")),
            ("tracing_mark_writer: a", None),
            ("do_fsync: a", None),
        ] {
            assert_eq!(strip_writer(text.as_bytes()), want.map(str::as_bytes), "{text}");
        }
        for (text, want) in [
            ("tracing_mark_write: a: b", Some("a: b")),
            ("0xffffffff8115a0b0: a", Some("a")),
            ("ffffffff8115a0b0: a", Some("a")),
            ("do_fsync: tracing_mark_write: B|1|a", Some("B|1|a")),
            ("do_fsync: a", None),
            ("0x1: a", None),
            ("a", None),
        ] {
            assert_eq!(of_print(text.as_bytes()), want.map(str::as_bytes), "{text}");
        }
    }
}
