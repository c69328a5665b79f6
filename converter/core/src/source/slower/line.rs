//! One line of a table: what the tools print, in both of their forms.

use crate::source::cursor::{Cursor, whole};
use crate::source::event_names::SYNC_DONE;
use crate::source::time_of_day;

/// The largest id of a task in the kernel.
const MAX_PID: u64 = 1 << 22;
const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;
/// Characters that the column of names has, by version.
const COMM_WIDTHS: [usize; 2] = [14, 16];
const MAX_COMM: usize = 16;
/// The kernel's largest errno, which its functions return as a negative number.
const MAX_ERRNO: u64 = 4095;
const CSV_HEADER_US: &[u8] = b"ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE";
const CSV_HEADER_NS: &[u8] = b"ENDTIME_ns,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE";

const BAD_LINE: &str = "it is neither `HH:MM:SS COMM PID T BYTES OFF_KB LAT(ms) FILENAME` nor the same with commas";
const NO_POINT: &str = "its latency has a comma, and the tool prints a point";

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Said(Said<'a>),
    /// The tool says that it lost so many events.
    Lost(u64),
    Row(Row<'a>),
}

/// What the tool says before its rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// Which file system it traces, and its threshold in ns: 0 if all calls are printed.
    Tracing {
        fs: &'a [u8],
        slower_than: u64,
    },
    Header,
    /// The header of the table with commas. Its times are ns rather than us.
    Csv {
        is_ns: bool,
    },
}

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letter {
    Read,
    Write,
    Open,
    /// By bcc, whose BYTES of a sync are what its function returned.
    Sync,
    /// By libbpf-tools, whose BYTES of a sync are the range that it was asked to sync.
    SyncRange,
    GetAttr,
    Commit,
}

impl Letter {
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'R' => Self::Read,
            b'W' => Self::Write,
            b'O' => Self::Open,
            b'S' => Self::Sync,
            b'F' => Self::SyncRange,
            b'G' => Self::GetAttr,
            b'C' => Self::Commit,
            _ => return None,
        })
    }

    pub(super) fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::SyncRange)
    }

    /// Its name among the events of the low-level log.
    pub(super) fn name(self) -> &'static [u8] {
        match self {
            Self::Read => b"slow_read",
            Self::Write => b"slow_write",
            Self::Open => b"slow_open",
            Self::Sync | Self::SyncRange => SYNC_DONE,
            Self::GetAttr => b"slow_getattr",
            Self::Commit => b"slow_commit",
        }
    }

    /// The bytes that a tool keeps of the name of a file, at least.
    pub(super) fn kept_of_name(self) -> usize {
        if self == Self::SyncRange { 31 } else { 32 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Whole seconds since midnight, in ns.
    OfDay,
    /// The kernel's time since it started, in the unit that the header names.
    SinceBoot,
}

/// A call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) clock: Clock,
    /// When it ended.
    pub(super) time: u64,
    pub(super) comm: &'a [u8],
    pub(super) pid: u32,
    pub(super) letter: Letter,
    /// As printed: a number, or `LL_MAX`.
    pub(super) bytes: &'a [u8],
    /// In kB, or in bytes in the table with commas.
    pub(super) offset: i64,
    /// ns.
    pub(super) dur: u64,
    /// The base name.
    pub(super) file: &'a [u8],
}

impl Row<'_> {
    /// What a sync returned: 0, or a negative errno that is printed as an unsigned number. `None` if the table does not have it.
    pub(super) fn ret(&self) -> Option<i64> {
        if self.letter != Letter::Sync {
            return None;
        }
        let value = whole(self.bytes, Cursor::decimal)?;
        match value {
            0 => Some(0),
            _ => [u64::from(u32::MAX), u64::MAX]
                .into_iter()
                .find(|most| (most - (MAX_ERRNO - 1)..=*most).contains(&value))
                .map(|most| -((most - value) as i64) - 1),
        }
    }
}

impl<'a> Line<'a> {
    /// # Errors
    /// Why it is no line of a table.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, &'static str> {
        let trimmed = text.trim_ascii();
        if let Some((said, b"")) = header(trimmed) {
            return Ok(Self::Said(said));
        }
        if let Some(said) = tracing(trimmed) {
            return Ok(Self::Said(said));
        }
        if is_header(trimmed) {
            return Ok(Self::Said(Said::Header));
        }
        if let Some(count) = lost(trimmed) {
            return Ok(Self::Lost(count));
        }
        let row = match time_of_day::take(text) {
            Some((time, rest)) => text_row(time, rest),
            None => csv_row(text),
        };
        row.map(Self::Row)
    }
}

/// The header of the table with commas, and what follows it: libbpf-tools before June 2021 printed no line end after it, and ns instead of us.
pub(super) fn header(text: &[u8]) -> Option<(Said<'static>, &[u8])> {
    if let Some(rest) = text.strip_prefix(CSV_HEADER_NS) {
        return rest.is_empty().then_some((Said::Csv { is_ns: true }, rest));
    }
    let rest = text.strip_prefix(CSV_HEADER_US)?;
    let is_joined = rest.first().is_some_and(u8::is_ascii_digit);
    (rest.is_empty() || is_joined).then_some((Said::Csv { is_ns: is_joined }, rest))
}

/// `Tracing ext4 operations slower than 10 ms`, after which libbpf-tools says how it ends.
fn tracing(text: &[u8]) -> Option<Said<'_>> {
    let rest = text.strip_prefix(b"Tracing ")?;
    let (fs, rest) = rest.split_at(rest.iter().position(|&byte| byte == b' ')?);
    let mut cursor = Cursor::new(rest);
    cursor.literal(b" operations")?;
    let _ = cursor.literal(b" that are");
    let mut slower_than = 0;
    if cursor.literal(b" slower than ").is_some() {
        slower_than = cursor.decimal()?.checked_mul(MILLI as u64)?;
        cursor.literal(b" ms")?;
    }
    let is_end = cursor.rest.is_empty() || cursor.rest.starts_with(b"...") || cursor.rest.starts_with(b" for ");
    let is_fs = !fs.is_empty() && fs.len() <= 16 && fs.iter().all(u8::is_ascii_alphanumeric);
    (is_end && is_fs).then_some(Said::Tracing { fs, slower_than })
}

fn is_header(text: &[u8]) -> bool {
    let words = ["TIME", "COMM", "PID", "T", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"];
    text.starts_with(b"TIME")
        && text.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).eq(words.iter().map(|word| word.as_bytes()))
}

/// `lost 3 events on CPU #1` by libbpf-tools, `Possibly lost 3 samples` by bcc.
fn lost(text: &[u8]) -> Option<u64> {
    if let Some(rest) = text.strip_prefix(b"Possibly lost ") {
        return whole(rest.strip_suffix(b" samples")?, Cursor::decimal);
    }
    let mut cursor = Cursor::new(text.strip_prefix(b"lost ")?);
    let count = cursor.decimal()?;
    cursor.literal(b" events on CPU #")?;
    whole(cursor.rest, Cursor::decimal).map(|_| count)
}

/// The rest of a row after its time. A name may hold blanks and digits, so the columns decide, unless somebody has changed the blanks.
fn text_row(time: u64, rest: &[u8]) -> Result<Row<'_>, &'static str> {
    for width in COMM_WIDTHS {
        let Some(at) = nth_character(rest, width) else { continue };
        if rest.get(at) == Some(&b' ')
            && let Some(tail) = Tail::parse(&rest[at + 1..], b' ')
        {
            return Ok(tail.row(Clock::OfDay, time, rest[..at].trim_ascii_end()));
        }
    }
    let begins = |at: &usize| rest[*at].is_ascii_digit() && *at > 0 && rest[*at - 1] == b' ';
    for at in (0..rest.len()).filter(begins) {
        let comm = rest[..at].trim_ascii_end();
        if character_count(comm) > MAX_COMM {
            break;
        }
        if let Some(tail) = Tail::parse(&rest[at..], b' ') {
            return Ok(tail.row(Clock::OfDay, time, comm));
        }
    }
    Err(if has_comma(rest) { NO_POINT } else { BAD_LINE })
}

/// `END,TASK,PID,TYPE,BYTES,OFFSET,LATENCY,FILE`. The name of the task may hold commas.
fn csv_row(text: &[u8]) -> Result<Row<'_>, &'static str> {
    let mut cursor = Cursor::new(text);
    let time = cursor.decimal().ok_or(BAD_LINE)?;
    let rest = cursor.rest.strip_prefix(b",").ok_or(BAD_LINE)?;
    for comma in memchr::memchr_iter(b',', rest).take_while(|&at| at <= 4 * MAX_COMM) {
        if let Some(tail) = Tail::parse(&rest[comma + 1..], b',') {
            return Ok(tail.row(Clock::SinceBoot, time, &rest[..comma]));
        }
    }
    Err(BAD_LINE)
}

/// What follows the name of the thread.
struct Tail<'a> {
    pid: u32,
    letter: Letter,
    bytes: &'a [u8],
    offset: i64,
    dur: u64,
    file: &'a [u8],
}

impl<'a> Tail<'a> {
    fn row(self, clock: Clock, time: u64, comm: &'a [u8]) -> Row<'a> {
        let Self { pid, letter, bytes, offset, dur, file } = self;
        Row { clock, time, comm, pid, letter, bytes, offset, dur, file }
    }

    fn parse(text: &'a [u8], separator: u8) -> Option<Self> {
        let is_csv = separator == b',';
        let mut cursor = Cursor::new(text);
        let separate = |cursor: &mut Cursor<'a>| {
            cursor.rest = cursor.rest.strip_prefix(&[separator])?;
            if !is_csv {
                cursor.spaces();
            }
            Some(())
        };
        let pid = cursor.decimal().filter(|pid| *pid <= MAX_PID)?;
        separate(&mut cursor)?;
        let (&letter, rest) = cursor.rest.split_first()?;
        cursor.rest = rest;
        let letter = Letter::of(letter)?;
        separate(&mut cursor)?;
        let before = cursor.rest;
        if cursor.literal(b"LL_MAX").is_none() {
            let _ = cursor.literal(b"-");
            cursor.decimal()?;
        }
        let bytes = &before[..before.len() - cursor.rest.len()];
        separate(&mut cursor)?;
        let offset = cursor.signed()?;
        separate(&mut cursor)?;
        let dur = if is_csv {
            cursor.decimal()?.checked_mul(MICRO as u64)?
        } else {
            let whole_ms = cursor.decimal()?.checked_mul(MILLI as u64)?;
            cursor.literal(b".")?;
            let (hundredths, rest) = cursor.rest.split_at_checked(2)?;
            let hundredths = whole(hundredths, Cursor::decimal)?;
            cursor.rest = rest;
            whole_ms.checked_add(hundredths * 10 * MICRO as u64)?
        };
        i64::try_from(dur).ok()?;
        // The name may begin with a blank of its own. No file is without a name, so the line is torn there.
        let file = cursor.rest.strip_prefix(&[separator])?;
        (!file.is_empty()).then_some(Self { pid: pid as u32, letter, bytes, offset, dur, file })
    }
}

/// The place after so many characters of UTF-8.
fn nth_character(text: &[u8], count: usize) -> Option<usize> {
    text.iter().enumerate().filter(|(_, byte)| (**byte & 0xc0) != 0x80).map(|(at, _)| at).nth(count)
}

fn character_count(text: &[u8]) -> usize {
    text.iter().filter(|byte| (**byte & 0xc0) != 0x80).count()
}

/// Whether a number of the line has a comma before its last two digits.
fn has_comma(text: &[u8]) -> bool {
    text.split(|&byte| byte == b' ').any(|word| {
        let mut parts = word.split(|&byte| byte == b',');
        let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        parts.next().is_some_and(is_number) && parts.next().is_some_and(|part| part.len() == 2 && is_number(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Option<Row<'_>> {
        match Line::parse(text.as_bytes()) {
            Ok(Line::Row(row)) => Some(row),
            _ => None,
        }
    }

    #[test]
    fn rows_of_both_tools() {
        let of_bcc = row("06:35:01 postgres       2211   S 0       0          61.22 two  blanks ").unwrap();
        assert_eq!((of_bcc.comm, of_bcc.pid, of_bcc.dur), (&b"postgres"[..], 2211, 61_220_000));
        assert_eq!((of_bcc.file, of_bcc.ret()), (&b"two  blanks "[..], Some(0)));
        assert_eq!((of_bcc.clock, of_bcc.time), (Clock::OfDay, (6 * 3600 + 35 * 60 + 1) * 1_000_000_000));
        let of_libbpf = row("23:17:14 a b 7 S 0        232     F LL_MAX  0         159.50 wal").unwrap();
        assert_eq!((of_libbpf.comm, of_libbpf.pid, of_libbpf.ret()), (&b"a b 7 S 0"[..], 232, None));
        let with_commas = row("87847348,a,1,S,b,7,S,0,4096,61220,1,2,S,3").unwrap();
        assert_eq!((with_commas.comm, with_commas.pid, with_commas.offset), (&b"a,1,S,b"[..], 7, 4096));
        assert_eq!((with_commas.dur, with_commas.file), (61_220_000, &b"1,2,S,3"[..]));
    }

    #[test]
    fn columns_decide_where_a_name_looks_like_them() {
        let comm = "a 7 S 0 0 0.01";
        let text = format!("06:35:01 {comm:<14} 2211   S 0       0          61.22 wal");
        let found = row(&text).unwrap();
        assert_eq!((found.comm, found.pid), (comm.as_bytes(), 2211));
        let squeezed = row("06:35:01 postgres 2211 S 0 0 61.22 wal").unwrap();
        assert_eq!((squeezed.comm, squeezed.pid), (&b"postgres"[..], 2211));
    }

    #[test]
    fn errors_are_printed_without_their_sign() {
        for (bytes, ret) in [
            ("0", Some(0)),
            ("4294967291", Some(-5)),
            ("18446744073709551611", Some(-5)),
            ("4294967295", Some(-1)),
            ("4294963201", Some(-4095)),
            ("4294963200", None),
            ("4096", None),
            ("LL_MAX", None),
        ] {
            let text = format!("06:35:01 postgres       2211   S {bytes} 0          61.22 wal");
            assert_eq!(row(&text).unwrap().ret(), ret, "{bytes}");
        }
    }

    #[test]
    fn what_the_tools_say_before_their_rows() {
        let said = |text: &'static str| match Line::parse(text.as_bytes()) {
            Ok(Line::Said(Said::Tracing { fs, slower_than })) => Some((std::str::from_utf8(fs).unwrap(), slower_than)),
            _ => None,
        };
        assert_eq!(said("Tracing ext4 operations slower than 10 ms"), Some(("ext4", 10_000_000)));
        assert_eq!(said("Tracing XFS operations"), Some(("XFS", 0)));
        assert_eq!(said("Tracing btrfs operations slower than 1 ms for 5 secs."), Some(("btrfs", 1_000_000)));
        let of_nfs = "Tracing NFS operations that are slower than 10 ms... Ctrl-C to quit";
        assert_eq!(said(of_nfs), Some(("NFS", 10_000_000)));
        assert_eq!(said("Tracing sync read/writes slower than 10 ms"), None);
        assert_eq!(said("Tracing block device I/O... Hit Ctrl-C to end."), None);
        assert_eq!(Line::parse(b"lost 7 events on CPU #1"), Ok(Line::Lost(7)));
        assert_eq!(Line::parse(b"Possibly lost 3 samples"), Ok(Line::Lost(3)));
    }

    #[test]
    fn what_is_no_row_says_why() {
        for text in [
            "06:35:01 postgres       2211   S 0       0          61.2 wal",
            "06:35:01 postgres       2211   S 0       0          61.22 ",
            "06:35:01 postgres       2211   S 0       0          61.22",
            "24:35:01 postgres       2211   S 0       0          61.22 wal",
            "06:35:01 postgres       2211   Z 0       0          61.22 wal",
            "06:35:01 postgres       9999999 S 0       0          61.22 wal",
            "0.000    randread.pl    4762   R 8192      12.70 data1",
            "87847348,postgres,2211,S,0,0,61.22,wal",
        ] {
            assert_eq!(Line::parse(text.as_bytes()), Err(BAD_LINE), "{text}");
        }
        let comma = b"06:35:01 postgres       2211   S 0       0          61,22 wal";
        assert_eq!(Line::parse(comma), Err(NO_POINT));
    }
}
