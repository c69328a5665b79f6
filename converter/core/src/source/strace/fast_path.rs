//! A fast path for the most frequent lines of a program that syncs, in their usual form. It parses them from left to right in one
//! pass. For every line that it accepts, `Call::of` and `call_action` give the same result.

use std::borrow::Cow;

use super::args::{AT_FDCWD, byte_set, string, unescape};
use super::line::{Phase, Returned};
use super::syscall::{Action, CallName, Known, OpenFlags, resumed};
use crate::event::Op;
use crate::source::cursor::{Cursor, find};

/// A parsed call: its effect, and the path that belongs to it.
#[derive(Debug)]
pub(super) struct FastCall<'a> {
    pub(super) known: Known,
    pub(super) call: CallName,
    pub(super) phase: Phase,
    pub(super) action: Action,
    pub(super) path: Option<Cow<'a, [u8]>>,
    pub(super) end: Returned<'a>,
}

/// `text` follows the time.
#[inline]
pub(super) fn parse_fast(text: &[u8]) -> Option<FastCall<'_>> {
    if let Some(text) = text.strip_prefix(b"<... ") {
        return parse_resumed(text);
    }
    let (name, rest) = text.split_at(find(b'(', text)?);
    let mut cursor = Cursor::new(&rest[1..]);
    let known = Known::of(name)?;
    let call = CallName::of(name);
    let (action, path) = match known {
        Known::Sync(Op::Fsync | Op::Fdatasync) | Known::Close => {
            let fd = i32::try_from(cursor.decimal()?).ok()?;
            let path = path_annotation(&mut cursor)?;
            let action = match known {
                Known::Sync(op) => Action::Sync { op, fd },
                _ => Action::close(fd),
            };
            let path = path.filter(|_| known != Known::Close);
            if cursor.rest == b" <unfinished ...>" {
                return Some(FastCall { known, call, phase: Phase::Begun, action, path, end: Returned::default() });
            }
            (action, path)
        }
        Known::Write if name == b"write" || name == b"pwrite64" => {
            let fd = i32::try_from(cursor.decimal()?).ok()?;
            let path = path_annotation(&mut cursor)?;
            cursor.literal(b", \"")?;
            cursor.rest = &cursor.rest[string(cursor.rest)?.len() + 1..];
            let _ = cursor.literal(b"...");
            while cursor.literal(b", ").is_some() {
                cursor.decimal()?;
            }
            (Action::Write { fd, says_sync: false }, path)
        }
        Known::Open if name == b"openat" => {
            cursor.literal(b"AT_FDCWD")?;
            let directory = path_annotation(&mut cursor)?;
            cursor.literal(b", \"")?;
            let raw = string(cursor.rest)?;
            let path = unescape(raw);
            // The general parser resolves a relative path against the printed directory.
            if directory.is_some() && !path.starts_with(b"/") {
                return None;
            }
            cursor.rest = &cursor.rest[raw.len() + 1..];
            cursor.literal(b", ")?;
            let args = &cursor.rest[..find(b')', cursor.rest)?];
            if args.iter().any(|&b| !FLAG_CHARS[usize::from(b)]) {
                return None;
            }
            cursor.rest = &cursor.rest[args.len()..];
            let args = args.split(|&b| b == b',').next().unwrap_or_default();
            if !args.starts_with(b"O_") {
                return None;
            }
            let OpenFlags { sync, cloexec, has_no_name } = OpenFlags::of(args);
            (Action::Open { dir: AT_FDCWD, sync, cloexec }, Some(path).filter(|_| !has_no_name))
        }
        _ => return None,
    };
    Some(FastCall { known, call, phase: Phase::Whole, action, path, end: end(&mut cursor)? })
}

/// Parses `<... fsync resumed>) = 0 <0.003689>`.
fn parse_resumed(text: &[u8]) -> Option<FastCall<'_>> {
    let (name, rest) = text.split_at(find(b' ', text)?);
    let known = Known::of(name).filter(|known| matches!(known, Known::Sync(_) | Known::Write | Known::Close))?;
    let mut cursor = Cursor::new(rest);
    cursor.literal(b" resumed>")?;
    let (call, action) = (CallName::of(name), resumed(known));
    Some(FastCall { known, call, phase: Phase::Resumed, action, path: None, end: end(&mut cursor)? })
}

/// Characters of the flags and mode of an open.
const FLAG_CHARS: [bool; 256] = byte_set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_|0123456789, ");

/// The path annotation of a descriptor, if printed. Any other annotation is left to the general parser.
#[inline]
#[expect(clippy::option_option, reason = "no annotation, a path, or another annotation")]
fn path_annotation<'a>(cursor: &mut Cursor<'a>) -> Option<Option<Cow<'a, [u8]>>> {
    if cursor.rest.first() != Some(&b'<') {
        return Some(None);
    }
    let text = &cursor.rest[1..];
    let len = text.iter().position(|b| matches!(b, b'<' | b'>' | b'\\' | b'"'))?;
    if text[len] != b'>' || text[0] != b'/' {
        return None;
    }
    cursor.rest = &text[len + 1..];
    Some(Some(Cow::Borrowed(&text[..len])))
}

/// Parses `) = 200 <0.000123>`, or another result that does not end like an unfinished call: in a letter or in dots.
#[inline]
fn end<'a>(cursor: &mut Cursor<'a>) -> Option<Returned<'a>> {
    cursor.literal(b")")?;
    let text = cursor.rest.strip_suffix(b">").unwrap_or(cursor.rest);
    text.last().filter(|last| last.is_ascii_digit())?;
    Returned::of(cursor.rest).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::{Call, Text};
    use super::super::syscall::call_action;
    use super::*;

    const LINES: [&str; 16] = [
        "close(4) = 0 <0.000010>",
        "close(31</run/mnt/a b>)              = -1 EIO (Input/output error) <0.000010>",
        "fsync(4 <unfinished ...>",
        "fsync(4</run/mnt/s4/small-00000001>) = 0 <1.000089>",
        "fdatasync(17</run/mnt/s4/a> <unfinished ...>",
        "fdatasync(3)            = 0",
        "<... fsync resumed>) = 0 <0.000089>",
        "<... write resumed>)    = 200 <0.000089>",
        "<... close resumed>)    = ? <0.000089>",
        r#"write(4, "bb\n\"b"..., 200) = 200 <0.000046>"#,
        r#"write(4</run/a>, "", 0) = 0 <0.000046>"#,
        r#"pwrite64(4</run/a>, "b)\\", 3, 4096) = 3 <0.000046>"#,
        r#"openat(AT_FDCWD, "/run/mnt/s4/small-00000001", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4 <0.000707>"#,
        r#"openat(AT_FDCWD</root>, "/run/\303\244", O_RDWR|O_DSYNC|O_CLOEXEC) = 4</run/\303\244> <0.000707>"#,
        r#"openat(AT_FDCWD, "a", O_RDWR|O_TMPFILE, 0600) = 4 <0.000707>"#,
        r#"openat(AT_FDCWD, "a", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000707>"#,
    ];

    /// All facts of a parsed call: name, phase, effect, path, result.
    type All = (Known, Phase, Action, Option<Vec<u8>>, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>, Option<i64>);

    fn all(known: Known, phase: Phase, action: Action, path: Option<&[u8]>, end: &Returned<'_>) -> All {
        let own = |text: Option<&[u8]>| text.map(<[u8]>::to_vec);
        (known, phase, action, own(path), end.ret, own(end.error), own(end.file), end.dur)
    }

    fn fast(text: &[u8]) -> Option<All> {
        parse_fast(text).map(|call| all(call.known, call.phase, call.action, call.path.as_deref(), &call.end))
    }

    /// The same by the general parser.
    fn general(text: &[u8]) -> Option<All> {
        let Text::Call { phase, name, rest } = Text::of(text)? else { return None };
        let known = Known::of_line(name, rest)?;
        let call = Call::of(rest, phase).ok()?;
        let (action, path) =
            if phase == Phase::Resumed { (resumed(known), None) } else { call_action(known, name, call.args.clone())? };
        Some(all(known, phase, action, path.as_deref(), &call.end))
    }

    #[test]
    fn usual_lines_take_the_fast_path() {
        for line in LINES {
            assert_eq!(fast(line.as_bytes()), Some(general(line.as_bytes()).expect(line)), "{line}");
        }
        for line in [
            r#"openat(AT_FDCWD</root>, "a", O_RDONLY) = 3 <0.000707>"#,
            r#"openat(AT_FDCWD, "a", 0x42) = 3 <0.000707>"#,
            r#"openat(AT_FDCWD, "a"..., O_RDONLY) = 3 <0.000707>"#,
            "fsync(4<pipe:[1]>) = 0 <0.000010>",
            "fsync(4</a>(deleted)) = 0 <0.000010>",
            "futex(0x7f2d34e6f0, FUTEX_WAKE_PRIVATE, 1) = 0 <0.000012>",
        ] {
            assert_eq!(fast(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        /// The start of one line, some bytes, and the end of another line.
        #[test]
        fn fast_path_agrees_with_the_general_parser(
            (one, other) in (0..LINES.len(), 0..LINES.len()),
            (from, to) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            between in r#"([ -~]|[<>(){}"\\,=.]|, |\) = |</a>){0,4}"#,
        ) {
            let (one, other) = (LINES[one], LINES[other]);
            let line = [&one[..from.index(one.len())], &between, &other[to.index(other.len())..]].concat();
            if let Some(call) = fast(line.as_bytes()) {
                prop_assert_eq!(Some(call), general(line.as_bytes()), "{}", line);
            }
        }
    }
}
