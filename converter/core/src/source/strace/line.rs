//! Parses one line of strace: the prefix, the call, its result and its duration. `args` parses the arguments.

use memchr::{memchr, memmem, memrchr};

use super::args::{Args, annotation, byte_set, close_parenthesis, deleted_len};
use crate::event::errno;
use crate::source::cursor::{Cursor, digit_and_micros, whole};

/// The largest PID of a kernel. A larger number at the start of a line is a time.
pub(super) const MAX_PID: u64 = 1 << 22;
/// A shorter PID is padded to this width.
pub(super) const PID_COLUMN: usize = 6;
pub(super) const SECOND_NS: i64 = 1_000_000_000;
/// Smaller values are not wall-clock times in s since 1970.
const FIRST_UNIX_SECOND: u64 = 100_000_000;
pub(super) const UNFINISHED: &[u8] = b"<unfinished ...>";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// `-ttt`: time since 1970.
    Unix,
    /// `-t`, `-tt`: time since midnight.
    Day,
    /// `-r`: time since the previous line.
    Relative,
    /// No line has a time. A line is placed after the calls of the lines before it.
    LineOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) clock: Clock,
    pub(super) ns: i64,
    /// The time is truncated to a multiple of this, in ns.
    pub(super) resolution: i64,
}

/// The columns before the call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    pub(super) tid: Option<u32>,
    /// Thread name of `-Y`, as printed.
    pub(super) comm: Option<&'a [u8]>,
    pub(super) time: Option<Time>,
    pub(super) rest: &'a [u8],
}

impl<'a> Prefix<'a> {
    /// Parses `[pid  12] `, `12    ` or `12<comm> `, then `1795292306.737302 `, `20:18:27.121444 `, `     0.000012 ` or several of them.
    #[inline]
    pub(super) fn take(line: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(line);
        let (mut tid, mut comm) = (None, None);
        // Only relative times are padded on the left.
        let mut padding = 0;
        let mut fills_column = false;
        if cursor.literal(b"[pid ").is_some() {
            skip_spaces(&mut cursor);
            tid = Some(task_id(cursor.decimal()?)?);
            comm = task_comm(&mut cursor)?;
            cursor.literal(b"]")?;
            padding = skip_spaces(&mut cursor).checked_sub(1)?;
        } else if line.first().is_some_and(u8::is_ascii_digit) {
            let number = cursor.decimal()?;
            let digits = line.len() - cursor.rest.len();
            match cursor.rest.first()? {
                b' ' if number <= MAX_PID => {
                    tid = Some(number as u32);
                    padding = skip_spaces(&mut cursor).saturating_sub(1.max(PID_COLUMN.saturating_sub(digits)));
                    fills_column = digits + 1 >= PID_COLUMN;
                }
                b'<' => {
                    tid = Some(task_id(number)?);
                    comm = task_comm(&mut cursor)?;
                    padding = skip_spaces(&mut cursor).checked_sub(1)?;
                }
                b' ' | b'.' | b':' => cursor.rest = line,
                _ => return None,
            }
        } else {
            padding = skip_spaces(&mut cursor);
        }
        let mut time = None;
        if cursor.rest.first().is_some_and(u8::is_ascii_digit) {
            let taken = take_time(&mut cursor, padding > 0)?;
            // The rest of a torn line has become a part of a shorter PID.
            if fills_column && padding > 0 && taken.clock != Clock::Relative {
                return None;
            }
            time = Some(taken);
            cursor.literal(b" ")?;
            if cursor.literal(b"(+").is_some() {
                cursor.rest = &cursor.rest[memchr(b')', cursor.rest)? + 1..];
                cursor.literal(b" ")?;
            }
        }
        Some(Self { tid, comm, time, rest: cursor.rest })
    }
}

fn task_id(number: u64) -> Option<u32> {
    (number <= MAX_PID).then_some(number as u32)
}

/// Parses `<comm>`, in which strace escapes `>`; `Some(None)` without one.
#[expect(clippy::option_option, reason = "a malformed comm, no comm, or a comm")]
fn task_comm<'a>(cursor: &mut Cursor<'a>) -> Option<Option<&'a [u8]>> {
    if cursor.literal(b"<").is_none() {
        return Some(None);
    }
    let (comm, rest) = cursor.rest.split_at(memchr(b'>', cursor.rest)?);
    cursor.rest = &rest[1..];
    Some(Some(comm))
}

fn skip_spaces(cursor: &mut Cursor<'_>) -> usize {
    let before = cursor.rest.len();
    cursor.rest = cursor.rest.trim_ascii_start();
    before - cursor.rest.len()
}

fn take_time(cursor: &mut Cursor<'_>, padded: bool) -> Option<Time> {
    let first = cursor.decimal()?;
    let (clock, seconds) = if cursor.literal(b":").is_some() {
        let minutes = cursor.decimal().filter(|m| *m < 60)?;
        cursor.literal(b":")?;
        // 60 is a leap second.
        let seconds = cursor.decimal().filter(|s| *s <= 60)?;
        (Clock::Day, (first < 24).then(|| (first * 60 + minutes) * 60 + seconds)?)
    } else if padded && first < FIRST_UNIX_SECOND {
        (Clock::Relative, first)
    } else {
        (Clock::Unix, first)
    };
    let (fraction, resolution) = fraction(cursor)?;
    let ns = i64::try_from(seconds).ok()?.checked_mul(SECOND_NS)?.checked_add(fraction)?;
    Some(Time { clock, ns, resolution })
}

/// Value of the last digit in ns, by the number of digits of a fraction.
const UNITS_NS: [i64; 10] = [SECOND_NS, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1];

/// Parses `.123456` or nothing. Returns ns, and the value of the last digit.
fn fraction(cursor: &mut Cursor<'_>) -> Option<(i64, i64)> {
    if cursor.literal(b".").is_none() {
        return Some((0, SECOND_NS));
    }
    let before = cursor.rest.len();
    let value = cursor.decimal()?;
    let digits = before - cursor.rest.len();
    let unit = *UNITS_NS.get(digits)?;
    Some((value as i64 * unit, unit))
}

/// Which part of a call a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Whole,
    /// A line of another thread interrupts the call.
    Begun,
    Resumed,
}

#[derive(Debug)]
pub(super) enum Text<'a> {
    Call {
        phase: Phase,
        name: &'a [u8],
        /// The text after the parenthesis, or after `resumed>`.
        rest: &'a [u8],
    },
    /// `--- SIGCHLD {...} ---`
    Signal(&'a [u8]),
    /// `+++ exited with 0 +++`
    Ended(&'a [u8]),
}

impl<'a> Text<'a> {
    #[inline]
    pub(super) fn of(text: &'a [u8]) -> Option<Self> {
        let surrounded = |mark: &[u8]| text.strip_prefix(mark)?.strip_prefix(b" ")?.strip_suffix(mark);
        match text.first()? {
            b'-' => Some(Self::Signal(surrounded(b"---")?.trim_ascii())),
            b'+' => Some(Self::Ended(surrounded(b"+++")?.trim_ascii())),
            b'<' => {
                let name = text.strip_prefix(b"<... ")?;
                let (name, rest) = name.split_at(memchr(b' ', name)?);
                let rest = rest.strip_prefix(b" resumed>")?;
                Some(Self::Call { phase: Phase::Resumed, name, rest })
            }
            _ => {
                let len = text[..text.len().min(MAX_NAME)].iter().position(|&b| !NAME_CHARS[usize::from(b)])?;
                let (name, rest) = text.split_at(len);
                let rest = rest.strip_prefix(b"(").filter(|_| len > 0)?;
                let phase = if is_unfinished(rest) { Phase::Begun } else { Phase::Whole };
                Some(Self::Call { phase, name, rest })
            }
        }
    }
}

const MAX_NAME: usize = 64;
/// strace prints `????` for a call that it attached too late to identify.
const NAME_CHARS: [bool; 256] = byte_set(b"abcdefghijklmnopqrstuvwxyz0123456789_?");

#[inline]
fn is_unfinished(rest: &[u8]) -> bool {
    match rest {
        [.., b'.', b'>'] => {
            rest.ends_with(UNFINISHED)
                || rest.ends_with(b"<detached ...>")
                // Another thread of the process called exec and continues under the PID of the process.
                || rest.ends_with(b" ...>") && memmem::rfind(rest, b"<pid changed to ").is_some()
        }
        // strace lost the thread during the call.
        [.., b's', b'>'] => rest.ends_with(b"No such process>"),
        _ => false,
    }
}

/// Arguments and result of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) args: Args<'a>,
    pub(super) end: Returned<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Returned<'a> {
    /// The result, or the negative error number; `None` if the call did not return.
    pub(super) ret: Option<i64>,
    pub(super) error: Option<&'a [u8]>,
    /// Annotation of the returned descriptor, with `-y`.
    pub(super) file: Option<&'a [u8]>,
    pub(super) dur: Option<i64>,
}

impl<'a> Call<'a> {
    /// `rest` is the text from the parenthesis to the end of the line.
    #[inline]
    pub(super) fn of(rest: &'a [u8], phase: Phase) -> Result<Self, &'static str> {
        if is_unfinished(rest) {
            let end = memrchr(b'<', rest).unwrap_or(rest.len());
            return Ok(Self { args: Args::of(rest[..end].trim_ascii()), end: Returned::default() });
        }
        let (end, commas) = close_parenthesis(rest).ok_or("the call has no end")?;
        let text = &rest[..end];
        let args = if phase == Phase::Resumed {
            // It begins with the remaining arguments.
            let text = text.trim_ascii();
            Args::of(text.strip_prefix(b",").unwrap_or(text).trim_ascii())
        } else {
            Args::with_commas(text, commas)
        };
        Ok(Self { args, end: Returned::of(&rest[end + 1..])? })
    }
}

impl<'a> Returned<'a> {
    /// Parses exactly `200 <0.000123>`. `of` parses every result, and gives the same for this form.
    #[inline]
    fn parse_fast(text: &[u8]) -> Option<Self> {
        let (ret, dur) = text.split_at_checked(text.len().checked_sub(USUAL_DURATION.len())?)?;
        let ([b'<', time @ ..], b">") = dur.split_at(USUAL_DURATION.len() - 1) else { return None };
        let (second, micros) = digit_and_micros(*time.first_chunk()?)?;
        let mut cursor = Cursor::new(ret);
        let ret = i64::try_from(cursor.decimal()?).ok()?;
        cursor.literal(b" ")?;
        cursor.at_end()?;
        let dur = second as i64 * SECOND_NS + micros as i64 * 1000;
        Some(Self { ret: Some(ret), dur: Some(dur), ..Self::default() })
    }

    /// Parses ` = -1 EIO (Input/output error) <0.000123>`.
    #[inline]
    pub(super) fn of(tail: &'a [u8]) -> Result<Self, &'static str> {
        const WRONG: &str = "the result is not a number";
        const OTHER_LINE: &str = "text that is not of the call follows its result";
        let text = tail.trim_ascii_start().strip_prefix(b"= ").ok_or("the call has no result")?;
        if let Some(end) = Self::parse_fast(text) {
            return Ok(end);
        }
        if has_cut_duration(text) {
            return Err("its duration is cut off");
        }
        let mut end = Self { dur: duration(text), ..Self::default() };
        let mut cursor = Cursor::new(text);
        if cursor.literal(b"?").is_some() {
            // The call was interrupted and the kernel will restart it, or the process is gone.
            end.error = error_name(cursor.rest);
            end.ret = end.error.and_then(errno::number).map(|number| -number);
            return Ok(end);
        }
        if text.starts_with(b"0x") {
            end.ret = Some(cursor.hex().ok_or(WRONG)? as i64);
            return if is_whole_tail(cursor.rest) { Ok(end) } else { Err(OTHER_LINE) };
        }
        let ret = cursor.signed().ok_or(WRONG)?;
        if !is_whole_tail(cursor.rest) {
            return Err(OTHER_LINE);
        }
        let ret = in_own_namespace(text).unwrap_or(ret);
        end.ret = Some(ret);
        if ret == -1
            && let Some(name) = error_name(cursor.rest)
        {
            end.error = Some(name);
            end.ret = Some(-errno::number(name).ok_or("the error has a name that Syncline does not know")?);
        } else if let Some(number) = cursor.rest.strip_prefix(b" (errno ").filter(|_| ret == -1) {
            let number = Cursor::new(number).decimal().and_then(|n| i64::try_from(n).ok()).ok_or(WRONG)?;
            end.ret = Some(-number);
        } else if let Some(inner) = cursor.rest.strip_prefix(b"<") {
            let len = annotation(inner).ok_or("the file of its result is cut off")?;
            end.file = Some(&cursor.rest[..len + 2 + deleted_len(&inner[len + 1..])]);
        }
        Ok(end)
    }
}

/// The PID in strace's own namespace, if it differs: `3 /* 26533 in strace's PID NS */`.
fn in_own_namespace(text: &[u8]) -> Option<i64> {
    let text = &text[..memmem::find(text, b" in strace's PID NS */")?];
    whole(&text[memmem::rfind(text, b"/* ")? + 3..], Cursor::signed)
}

const USUAL_DURATION: &[u8] = b"<0.000123>";

/// Parses ` EIO (...` after a result.
fn error_name(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b" ")?;
    let len =
        text.iter().position(|b| !b.is_ascii_uppercase() && !b.is_ascii_digit() && *b != b'_').unwrap_or(text.len());
    (text.first() == Some(&b'E') && len > 1).then_some(&text[..len])
}

/// Whether nothing follows a number but what strace prints after one: an error or the file of a descriptor, remarks in parentheses, a duration.
/// Anything else is another line, which was joined to this one.
#[inline]
fn is_whole_tail(text: &[u8]) -> bool {
    let before_duration = || {
        let at = memrchr(b'<', text).filter(|_| text.ends_with(b">"))?;
        let is_duration = text[at + 1..text.len() - 1].iter().all(|b| b.is_ascii_digit() || *b == b'.');
        is_duration.then(|| text[..at].trim_ascii_end())
    };
    let remarks = before_duration().unwrap_or(text);
    match remarks {
        // `annotation` checks what begins with `<`.
        [] | [b'<', ..] => true,
        [b' ', b'(' | b'E', ..] => remarks.ends_with(b")") || remarks.iter().skip(1).all(u8::is_ascii_uppercase),
        [b' ', b'/', b'*', ..] => remarks.ends_with(b" */") || remarks.ends_with(b")"),
        _ => false,
    }
}

/// Whether a result ends within a duration: ` <`, ` <0.0001`.
fn has_cut_duration(text: &[u8]) -> bool {
    memrchr(b'<', text).is_some_and(|at| {
        let is_number = text[at + 1..].iter().all(|b| b.is_ascii_digit() || *b == b'.');
        is_number && text[..at].ends_with(b" ")
    })
}

/// Parses `<0.000123>` at the end of a line, in ns.
pub(super) fn duration(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b">")?;
    let usual = text
        .len()
        .checked_sub(USUAL_DURATION.len() - 1)
        .filter(|&at| text[at] == b'<' && !text[at + 1..].contains(&b'<'));
    let mut cursor = Cursor::new(&text[usual.or_else(|| memrchr(b'<', text))? + 1..]);
    let seconds = i64::try_from(cursor.decimal()?).ok()?.checked_mul(SECOND_NS)?;
    let (fraction, resolution) = fraction(&mut cursor)?;
    cursor.at_end()?;
    // With `--syscall-times=s` all durations are 0 and mean nothing.
    seconds.checked_add(fraction).filter(|dur| *dur > 0 || resolution <= 1000)
}

#[cfg(test)]
mod tests {
    use super::super::args::path_of;
    use super::*;

    fn call(text: &str) -> (String, Option<i64>, Option<i64>) {
        let Some(Text::Call { phase, rest, .. }) = Text::of(text.as_bytes()) else { panic!("{text}") };
        let call = Call::of(rest, phase).unwrap();
        (String::from_utf8_lossy(call.args.text.trim_ascii()).into_owned(), call.end.ret, call.end.dur)
    }

    #[test]
    fn impossible_times_are_refused() {
        assert!(take_time(&mut Cursor::new(b"23:59:60.5 x"), true).is_some());
        assert!(take_time(&mut Cursor::new(b"24:00:00 x"), true).is_none());
        assert!(take_time(&mut Cursor::new(b"18446744073709551615:00:00 x"), true).is_none());
    }

    #[test]
    fn every_prefix() {
        let time = |clock, ns, resolution| Some(Time { clock, ns, resolution });
        for (line, tid, comm, want) in [
            ("f() = 0", None, None, None),
            ("12    f() = 0", Some(12), None, None),
            ("[pid    12] f() = 0", Some(12), None, None),
            ("2680  1795196963.863384 f() = 0", Some(2680), None, time(Clock::Unix, 1_795_196_963_863_384_000, 1000)),
            ("1795196963.863384 f() = 0", None, None, time(Clock::Unix, 1_795_196_963_863_384_000, 1000)),
            ("21436 1795292308 f() = 0", Some(21436), None, time(Clock::Unix, 1_795_292_308_000_000_000, SECOND_NS)),
            ("1795292308 f() = 0", None, None, time(Clock::Unix, 1_795_292_308_000_000_000, SECOND_NS)),
            ("7 1795292308.000000001 f() = 0", Some(7), None, time(Clock::Unix, 1_795_292_308_000_000_001, 1)),
            ("20:18:28 f() = 0", None, None, time(Clock::Day, 73_108_000_000_000, SECOND_NS)),
            ("[pid 21428] 00:00:00.5 f() = 0", Some(21428), None, time(Clock::Day, 500_000_000, 100_000_000)),
            ("21412      0.000172 f() = 0", Some(21412), None, time(Clock::Relative, 172_000, 1000)),
            ("2141       0.000172 f() = 0", Some(2141), None, time(Clock::Relative, 172_000, 1000)),
            ("     0.000172 f() = 0", None, None, time(Clock::Relative, 172_000, 1000)),
            // A board whose clock starts in 1970.
            ("2141  45.000172 f() = 0", Some(2141), None, time(Clock::Unix, 45_000_172_000, 1000)),
            (
                "21408<a b\\76) => 20:18:27.350016 (+     0.000051) f() = 0",
                Some(21408),
                Some("a b\\76) ="),
                time(Clock::Day, 73_107_350_016_000, 1000),
            ),
        ] {
            let prefix = Prefix::take(line.as_bytes()).expect(line);
            assert_eq!(prefix.rest, b"f() = 0", "{line}");
            assert_eq!((prefix.tid, prefix.comm, prefix.time), (tid, comm.map(str::as_bytes), want), "{line}");
        }
        for line in ["252 53 wl fsync", "7x f()", "24:00:00 f()", "1.0000000001 f()", "[pid x] f()"] {
            let prefix = Prefix::take(line.as_bytes());
            assert!(prefix.is_none_or(|p| Text::of(p.rest).is_none()), "{line}");
        }
    }

    #[test]
    fn strings_and_files_may_contain_anything() {
        for (text, args, ret, dur) in [
            ("fsync(3)        = 0 <0.000738>", "3", Some(0), Some(738_000)),
            (
                "fsync(3</a (x) \\76 \\074\\n\\\"q) = 3>) = -1 EIO (Input/output error) <1.5>",
                "3</a (x) \\76 \\074\\n\\\"q) = 3>",
                Some(-5),
                Some(1_500_000_000),
            ),
            ("fdatasync(5</a) = 3>(deleted)) = 0", "5</a) = 3>(deleted)", Some(0), None),
            (
                "write(4<TCP:[1.2.3.4:5->6.7.8.9:10]>, \"a\\\") = 7\"..., 9) = 9",
                "4<TCP:[1.2.3.4:5->6.7.8.9:10]>, \"a\\\") = 7\"..., 9",
                Some(9),
                None,
            ),
            ("write(1</dev/null<char 1:3>>, \"\\\\\", 1) = 1", "1</dev/null<char 1:3>>, \"\\\\\", 1", Some(1), None),
            ("write(5<UNIX:[12->13, \"/a>b\"]>, \"\", 0) = 0", "5<UNIX:[12->13, \"/a>b\"]>, \"\", 0", Some(0), None),
            (
                "msync(0x7f, 4096, MS_SYNC) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.01>",
                "0x7f, 4096, MS_SYNC",
                Some(-512),
                Some(10_000_000),
            ),
            ("fsync(3) = -1 (errno 117)", "3", Some(-117), None),
            ("fsync(3) = -1 EIO (Input/output error) (INJECTED)", "3", Some(-5), None),
            ("exit_group(0) = ?", "0", None, None),
            (
                "mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7eff1f849000 <0.1>",
                "NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0",
                Some(0x7eff_1f84_9000),
                Some(100_000_000),
            ),
            ("fsync(3 <unfinished ...>", "3", None, None),
            ("write(3, \"<unfinished ...>\", 3, <unfinished ...>", "3, \"<unfinished ...>\", 3,", None, None),
            ("<... clone3 resumed> => {parent_tid=[9]}, 88) = 9", "=> {parent_tid=[9]}, 88", Some(9), None),
            ("<... fsync resumed>)    = 0 <0.2>", "", Some(0), Some(200_000_000)),
            ("<... write resumed>, \"a)\", 2) = 2", "\"a)\", 2", Some(2), None),
        ] {
            assert_eq!(call(text), (args.to_owned(), ret, dur), "{text}");
        }
        for text in [
            "fsync(3",
            "fsync(3) = x",
            "fsync(3) = -1 ENONSENSE (Nonsense)",
            "write(3, \"a\\",
            "f(3))",
            "fsync(3) = 0 <",
            "fsync(3) = 2853  1795793335.1 <... write resumed>) = 200 <0.000046>",
            "fsync(3) = -1 EIO (Input/output error) <0.0001",
            "openat(AT_FDCWD, \"a\", O_RDONLY) = 3</a",
        ] {
            let Some(Text::Call { phase, rest, .. }) = Text::of(text.as_bytes()) else { panic!("{text}") };
            assert!(Call::of(rest, phase).is_err(), "{text}");
        }
        let file = Returned::of(b" = 3</a b>(deleted) <0.1>").unwrap().file.unwrap();
        assert_eq!(*path_of(file).unwrap(), *b"/a b (deleted)");
        assert_eq!(*path_of(b"</dev/null<char 1:3>>").unwrap(), *b"/dev/null");
        assert_eq!(path_of(b"<socket:[17]>"), None);
        assert_eq!(*path_of(b"<\\x2fa\\76>").unwrap(), *b"/a>");
    }
}
