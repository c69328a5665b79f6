//! One line of a table: what the tools print, in all of their forms.

use crate::source::cursor::{Cursor, whole};
use crate::source::time_of_day;

/// The largest id of a task in the kernel.
const MAX_PID: u64 = 1 << 22;
const MAX_COMM: usize = 16;
const SECOND: i64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
/// Where bpftrace prints the name of the disk, unless the time is longer than its column.
const DISK_AT: usize = 13;
/// Digits of a number of bytes that fill their column, so that what bcc prints next follows without a blank.
const FULL_COLUMN: usize = 7;

const BAD_LINE: &str = "it is no row of biosnoop: `TIME COMM PID DISK T SECTOR BYTES [QUE] LAT`, or with whole ms `TIME DISK COMM PID LAT`";
const NO_POINT: &str = "its latency has a comma, and the tool prints a point";
const NO_HEADER: &str = "no header before it says which columns it has";

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Header(Header),
    /// Something that a tool says beside its table.
    Beside,
    /// The tool says that it lost so many events.
    Lost(u64),
    Row(Row<'a>),
}

/// The first line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// Of bcc or libbpf-tools. Their rows show which columns they have.
    Seconds,
    /// As `Seconds`, with times of day.
    OfDay,
    /// Of bpftrace, by what it prints of the disk.
    Millis(Disk),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    None,
    Name,
    Number,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) is_of_day: bool,
    /// When it completed, in ns: since midnight, since the first row, or since the tool began.
    pub(super) time: i64,
    /// Empty if it is not known.
    pub(super) comm: &'a [u8],
    pub(super) pid: Option<u32>,
    pub(super) device: Device<'a>,
    pub(super) took: Took<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device<'a> {
    Unknown,
    Name(&'a [u8]),
    Number(u32, u32),
}

/// What the request did, and how long that took, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took<'a> {
    /// By bpftrace: since it began, in whole ms.
    Whole(u64),
    /// By bcc and libbpf-tools: since its issue. `queue`: before that; `None` if it is not printed, or not known.
    AtDevice { letters: &'a [u8], has_flags: bool, sector: i64, bytes: u64, queue: Option<u64>, device: u64 },
}

impl<'a> Line<'a> {
    /// `header`: the header of the table.
    ///
    /// # Errors
    /// Why it is no line of a table.
    pub(super) fn parse(text: &'a [u8], header: Option<Header>) -> Result<Self, &'static str> {
        let trimmed = text.trim_ascii();
        if let Some(header) = Header::parse(trimmed) {
            return Ok(Self::Header(header));
        }
        if is_beside(trimmed) {
            return Ok(Self::Beside);
        }
        if let Some(count) = lost(trimmed) {
            return Ok(Self::Lost(count));
        }
        if let Some(row) = Row::of_bcc(trimmed) {
            return Ok(Self::Row(row));
        }
        match header {
            Some(Header::Millis(disk)) => Row::of_bpftrace(text.trim_ascii_end(), disk).map(Self::Row),
            _ => None,
        }
        .ok_or_else(|| {
            let may_be_of_bpftrace = || {
                let is_any = |disk| Row::of_bpftrace(trimmed, disk).is_some();
                header.is_none() && (is_any(Disk::None) || is_any(Disk::Number))
            };
            if has_comma(trimmed) {
                NO_POINT
            } else if may_be_of_bpftrace() {
                NO_HEADER
            } else {
                BAD_LINE
            }
        })
    }
}

impl Header {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let first = words.next()?;
        let rest: Vec<&[u8]> = words.collect();
        let is = |names: &[&str]| rest.iter().copied().eq(names.iter().map(|name| name.as_bytes()));
        match first {
            b"TIME(ms)" if is(&["COMM", "PID", "LAT(ms)"]) => Some(Self::Millis(Disk::None)),
            b"TIME(ms)" if is(&["DISK", "COMM", "PID", "LAT(ms)"]) => Some(Self::Millis(Disk::Name)),
            b"TIME(ms)" if is(&["DISK", "ID", "COMM", "PID", "LAT(ms)"]) => Some(Self::Millis(Disk::Number)),
            b"TIME(s)" | b"TIMESTAMP" => {
                let after = rest.strip_prefix(&[&b"COMM"[..], b"PID", b"DISK", b"T", b"SECTOR", b"BYTES"][..])?;
                let after = after.strip_prefix(&[&b"P"[..]][..]).unwrap_or(after);
                let after = after.strip_prefix(&[&b"QUE(ms)"[..]][..]).unwrap_or(after);
                let header = if first == b"TIME(s)" { Self::Seconds } else { Self::OfDay };
                (after == [&b"LAT(ms)"[..]]).then_some(header)
            }
            _ => None,
        }
    }
}

/// bpftrace says how many probes it has attached, and has a second line of a header.
fn is_beside(text: &[u8]) -> bool {
    let words = || text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let is_attaching = text.starts_with(b"Attach") && words().any(|word| word.starts_with(b"probe"));
    is_attaching || words().eq([&b"MAJOR"[..], b"MINOR"])
}

/// `lost 3 events on CPU #1` by libbpf-tools, `Possibly lost 3 samples` by bcc, `Lost 3 events` by bpftrace.
fn lost(text: &[u8]) -> Option<u64> {
    if let Some(rest) = text.strip_prefix(b"Possibly lost ") {
        return whole(rest.strip_suffix(b" samples")?, Cursor::decimal);
    }
    let mut cursor = Cursor::new(text.strip_prefix(b"lost ").or_else(|| text.strip_prefix(b"Lost "))?);
    let count = cursor.decimal()?;
    cursor.literal(b" events")?;
    (cursor.rest.is_empty() || cursor.rest.starts_with(b" on CPU #")).then_some(count)
}

impl<'a> Row<'a> {
    /// Whether it is of libbpf-tools and not of bcc; `None` if it is of bpftrace.
    pub(super) fn has_flags(&self) -> Option<bool> {
        match self.took {
            Took::Whole(_) => None,
            Took::AtDevice { has_flags, .. } => Some(has_flags),
        }
    }

    /// A row of bcc or libbpf-tools. Only the name of the thread may hold blanks, so the columns after it are found from the end of the line.
    fn of_bcc(text: &'a [u8]) -> Option<Self> {
        let of_day = time_of_day::take_with_ms(text);
        let is_of_day = of_day.is_some();
        let (time, rest) = match of_day {
            Some((time, rest)) => (i64::try_from(time).ok()?, rest),
            None => seconds(text)?,
        };
        let mut words = Words(rest);
        let latency = words.next_back()?;
        let decimals = latency.iter().rev().position(|&byte| byte == b'.')?;
        let has_flags = match decimals {
            // bcc
            2 => false,
            // libbpf-tools
            3 => true,
            _ => return None,
        };
        let tail = Tail::parse(&words, latency, has_flags)?;
        let Tail { head, letters, sector, bytes, queue, device } = tail;
        let mut words = head;
        let disk = words.next_back()?;
        let pid = pid(words.next_back()?)?;
        let comm = comm(words.0)?;
        let is_known = comm != b"?" || pid != 0;
        // Where bcc does not know who began a request, it prints zeroes for the rest, too.
        let has_place = is_known || has_flags;
        let queue = queue.filter(|&ns| is_known && !has_flags || ns > 0);
        let device_of_row = match disk {
            b"Unknown" | b"<unknown>" | b"?" => Device::Unknown,
            _ if is_disk(disk) => Device::Name(disk),
            _ => return None,
        };
        Some(Self {
            is_of_day,
            time,
            comm: if is_known { comm } else { b"" },
            pid: is_known.then_some(pid),
            device: device_of_row,
            took: Took::AtDevice {
                letters,
                has_flags,
                sector: if has_place { sector } else { -1 },
                bytes,
                queue,
                device,
            },
        })
    }

    /// A row of bpftrace.
    fn of_bpftrace(text: &'a [u8], disk: Disk) -> Option<Self> {
        let mut cursor = Cursor::new(text);
        let time = i64::try_from(cursor.decimal()?.checked_mul(MILLI)?).ok()?;
        cursor.rest = cursor.rest.strip_prefix(b" ")?;
        // Where the kernel did not tell the name of the disk, its column is empty.
        let is_empty = text.get(DISK_AT) == Some(&b' ') && text.get(DISK_AT - 1) == Some(&b' ');
        let device = match disk {
            Disk::None => Device::Unknown,
            Disk::Name if is_empty => Device::Unknown,
            Disk::Name => Device::Name(word(&mut cursor).filter(|name| is_disk(name))?),
            Disk::Number => {
                let mut number = |below: u64| {
                    whole(word(&mut cursor)?, Cursor::decimal).filter(|&number| number < below).map(|n| n as u32)
                };
                Device::Number(number(1 << 12)?, number(1 << 20)?)
            }
        };
        let mut words = Words(cursor.rest);
        let latency = whole(words.next_back()?, Cursor::decimal)?.checked_mul(MILLI)?;
        i64::try_from(latency).ok()?;
        let pid = Some(pid(words.next_back()?)?);
        let comm = comm(words.0).filter(|comm| !comm.is_empty())?;
        Some(Self { is_of_day: false, time, comm, pid, device, took: Took::Whole(latency) })
    }
}

/// The columns between the name of the disk and the end of the line.
struct Tail<'a> {
    head: Words<'a>,
    letters: &'a [u8],
    sector: i64,
    bytes: u64,
    queue: Option<u64>,
    device: u64,
}

impl<'a> Tail<'a> {
    /// `words`: those before the latency.
    fn parse(words: &Words<'a>, latency: &'a [u8], has_flags: bool) -> Option<Self> {
        let mut head = words.clone();
        let queue = head.next_back().filter(|word| word.contains(&b'.'));
        if queue.is_none() {
            head = words.clone();
        }
        match queue {
            Some(queue) => {
                let device = millis(latency, has_flags)?;
                Self::apart(head.clone(), queue, has_flags)
                    .map(|tail| Self { device, ..tail })
                    .or_else(|| Self::joined(head, queue, has_flags).map(|tail| Self { device, ..tail }))
            }
            None => Self::bytes(head.clone(), has_flags)
                .and_then(|tail| Some(Self { device: millis(latency, has_flags)?, ..tail }))
                .or_else(|| {
                    let tail = Self::joined(head, latency, has_flags)?;
                    Some(Self { device: tail.queue?, queue: None, ..tail })
                }),
        }
    }

    fn apart(head: Words<'a>, queue: &[u8], has_flags: bool) -> Option<Self> {
        let queue = if has_flags && queue == b"-1.000" { 0 } else { millis(queue, has_flags)? };
        Some(Self { queue: Some(queue), ..Self::bytes(head, has_flags)? })
    }

    /// A full column of bytes, and the number after it without a blank, which only bcc prints. The bytes are whole sectors, and the number fills
    /// its column; where that leaves more than one way to read them, nobody knows.
    fn joined(head: Words<'a>, number: &'a [u8], has_flags: bool) -> Option<Self> {
        if has_flags {
            return None;
        }
        let mut found = None;
        for at in FULL_COLUMN..number.len().saturating_sub(FULL_COLUMN - 1) {
            let (bytes, rest) = number.split_at(at);
            let (Some(bytes), Some(ns)) = (whole(bytes, Cursor::decimal), millis(rest, false)) else { continue };
            if rest[0] == b'0' || bytes % 512 > 0 {
                continue;
            }
            if found.is_some() {
                return None;
            }
            found = Some((bytes, ns));
        }
        let (bytes, ns) = found?;
        Some(Self { queue: Some(ns), ..Self::of_bytes(head, bytes)? })
    }

    /// The number of bytes, which the pattern of bcc's `-P` may follow.
    fn bytes(mut words: Words<'a>, has_flags: bool) -> Option<Self> {
        let mut word = words.next_back()?;
        let is_pattern = |word: &[u8]| matches!(word, b"S" | b"R" | b"?");
        if !has_flags && is_pattern(word) {
            word = words.next_back()?;
        } else if let Some((last, digits)) = word.split_last()
            && !has_flags
            && is_pattern(&[*last])
            && digits.len() >= FULL_COLUMN
        {
            word = digits;
        }
        let bytes = match word.strip_prefix(b"-") {
            // libbpf-tools print 32 bits with a sign.
            Some(digits) if has_flags => (1_u64 << 32).checked_sub(whole(digits, Cursor::decimal)?)?,
            _ => whole(word, Cursor::decimal)?,
        };
        Self::of_bytes(words, bytes)
    }

    fn of_bytes(mut words: Words<'a>, bytes: u64) -> Option<Self> {
        let sector = words.next_back()?;
        let sector = match whole(sector, Cursor::signed) {
            Some(sector) if sector >= -1 => sector,
            Some(_) => return None,
            None => (whole(sector, Cursor::decimal)? == u64::MAX).then_some(-1)?,
        };
        let letters = words.next_back()?;
        let is_letters = letters.len() <= 8 && letters.iter().all(|letter| b"FWDERNASM".contains(letter));
        (is_letters && bytes <= 1 << 32).then_some(Self { head: words, letters, sector, bytes, queue: None, device: 0 })
    }
}

/// The words of a text, from its end.
#[derive(Clone)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn next_back(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_end();
        let at = text.iter().rposition(|&byte| byte == b' ').map_or(0, |blank| blank + 1);
        self.0 = &text[..at];
        (!text.is_empty()).then_some(&text[at..])
    }
}

/// Takes the first word, and the blanks before it.
fn word<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let text = cursor.rest.trim_ascii_start();
    let at = text.iter().position(|&byte| byte == b' ')?;
    cursor.rest = &text[at..];
    (at > 0).then_some(&text[..at])
}

/// No number, so that rows of other layouts are no rows of this one.
fn is_disk(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_alphabetic)
}

fn pid(word: &[u8]) -> Option<u32> {
    whole(word, Cursor::decimal).filter(|pid| *pid <= MAX_PID).map(|pid| pid as u32)
}

/// The name of a thread: what is left between the other columns.
fn comm(text: &[u8]) -> Option<&[u8]> {
    let comm = text.trim_ascii();
    (comm.iter().filter(|byte| (**byte & 0xc0) != 0x80).count() <= MAX_COMM).then_some(comm)
}

/// Takes `SECONDS.DIGITS ` from the beginning of a line, in ns.
fn seconds(text: &[u8]) -> Option<(i64, &[u8])> {
    let is_negative = text.first() == Some(&b'-');
    let mut cursor = Cursor::new(&text[usize::from(is_negative)..]);
    let whole_seconds = cursor.decimal()?;
    cursor.literal(b".")?;
    let digits = cursor.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit = match digits {
        6 => 1000,
        // bcc, until July 2022
        9 => 1,
        _ => return None,
    };
    let (fraction, rest) = cursor.rest.split_at(digits);
    let rest = rest.strip_prefix(b" ")?;
    let ns = i128::from(whole_seconds) * i128::from(SECOND) + i128::from(whole(fraction, Cursor::decimal)? * unit);
    // A row that libbpf-tools print after a later one: their difference has no sign.
    let ns = if ns > i128::from(i64::MAX) { ns - (1 << 64) } else { ns };
    let ns = i64::try_from(if is_negative { -ns } else { ns }).ok()?;
    // Half of the range is far beyond all times, and leaves room for sums.
    (ns.unsigned_abs() < 1 << 62).then_some((ns, rest))
}

/// A number of ms, in ns, with the decimals of the tool.
fn millis(word: &[u8], has_flags: bool) -> Option<u64> {
    let mut cursor = Cursor::new(word);
    let ns = cursor.decimal()?.checked_mul(MILLI)?;
    cursor.literal(b".")?;
    let (decimals, unit) = if has_flags { (3, 1000) } else { (2, 10_000) };
    let fraction = whole(cursor.rest, Cursor::decimal).filter(|_| cursor.rest.len() == decimals)?;
    let ns = ns.checked_add(fraction * unit)?;
    (ns < 1 << 62).then_some(ns)
}

/// Whether the line ends with a number with a comma.
fn has_comma(text: &[u8]) -> bool {
    let last = Words(text).next_back().unwrap_or_default();
    let mut parts = last.split(|&byte| byte == b',');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    parts.next().is_some_and(is_number)
        && parts.next().is_some_and(|part| is_number(part) && matches!(part.len(), 2 | 3))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, header: Option<Header>) -> Option<Row<'_>> {
        match Line::parse(text.as_bytes(), header) {
            Ok(Line::Row(row)) => Some(row),
            _ => None,
        }
    }

    fn at_device(letters: &str, has_flags: bool, sector: i64, bytes: u64, queue: Option<u64>, device: u64) -> Took<'_> {
        Took::AtDevice { letters: letters.as_bytes(), has_flags, sector, bytes, queue, device }
    }

    #[test]
    fn rows_of_libbpf_tools() {
        let text = "0.027903    a b vdb R 7    9       vdb     WSM  1049600    4096      0.012   0.638";
        let found = row(text, None).unwrap();
        assert_eq!(
            (found.is_of_day, found.time, found.comm, found.pid),
            (false, 27_903_000, &b"a b vdb R 7"[..], Some(9))
        );
        assert_eq!(found.device, Device::Name(b"vdb"));
        assert_eq!(found.took, at_device("WSM", true, 1_049_600, 4096, Some(12_000), 638_000));
        // A request that was in no queue of the scheduler has no time there.
        for queue in ["0.000", "-1.000"] {
            let text = text.replace("0.012", queue);
            let found = row(&text, None).unwrap();
            assert_eq!(found.took, at_device("WSM", true, 1_049_600, 4096, None, 638_000));
        }
        let found = row("23:18:13.754 ?              0       Unknown FF   -1         0         3.591", None).unwrap();
        assert_eq!((found.is_of_day, found.time), (true, ((23 * 60 + 18) * 60 + 13) * SECOND + 754_000_000));
        assert_eq!((found.comm, found.pid, found.device), (&b""[..], None, Device::Unknown));
        assert_eq!(found.took, at_device("FF", true, -1, 0, None, 3_591_000));
        // A row that is older than the first one, and a discard of 3 GiB.
        let found = row("18446744073.709 x 7 vdb DS 0 -1073741824 0.100", None);
        assert_eq!(found, None);
        let found = row("18446744073.609551 x 7 vdb DS 0 -1073741824 0.100", None).unwrap();
        assert_eq!(found.time, -100_000_616);
        assert_eq!(found.took, at_device("DS", true, 0, 3 << 30, None, 100_000));
    }

    #[test]
    fn rows_of_bcc() {
        let found = row("0.000000    supervise      1950   xvda1   W 13092560   4096      0.74", None).unwrap();
        assert_eq!((found.time, found.pid, found.device), (0, Some(1950), Device::Name(b"xvda1")));
        assert_eq!(found.took, at_device("W", false, 13_092_560, 4096, None, 740_000));
        let found = row("0.000004000    supervise      1950   xvda1   R  13092560  4096       0.74", None).unwrap();
        assert_eq!((found.time, found.took), (4000, at_device("R", false, 13_092_560, 4096, None, 740_000)));
        let found =
            row("-0.000012   x              7       sda       W 8          4096   S    0.00    1.50", None).unwrap();
        assert_eq!((found.time, found.took), (-12_000, at_device("W", false, 8, 4096, Some(0), 1_500_000)));
        // Nothing is known of it but its latency.
        let found = row("0.5000000   ?              0       <unknown> R 0          0         12.50", None);
        assert_eq!(found, None);
        let found = row("0.500000    ?              0       <unknown> R 0          4096      12.50", None).unwrap();
        assert_eq!((found.pid, found.device), (None, Device::Unknown));
        assert_eq!(found.took, at_device("R", false, -1, 4096, None, 12_500_000));
    }

    #[test]
    fn columns_of_bcc_that_run_into_each_other() {
        for (end, queue, device) in [
            ("10485761234.56", None, 1_234_560_000),
            ("10485761234.56    0.25", Some(1_234_560_000), 250_000),
            ("1048576R   0.25", None, 250_000),
            ("1048576?    0.02 1000.25", Some(20_000), 1_000_250_000),
        ] {
            let text = format!("1.000000    x              7       sda       W 8          {end}");
            let found = row(&text, None).unwrap();
            assert_eq!(found.took, at_device("W", false, 8, 1 << 20, queue, device), "{end}");
        }
        // Nobody knows where one ends and the other begins.
        assert_eq!(row("1.000000    x 7 sda W 8 10240005121234.56", None), None);
    }

    #[test]
    fn rows_of_bpftrace() {
        let number = Some(Header::Millis(Disk::Number));
        let found = row("2812         254   16       Web Content      9            5", number).unwrap();
        assert_eq!((found.time, found.comm, found.pid), (2812 * 1_000_000, &b"Web Content"[..], Some(9)));
        assert_eq!((found.device, found.took), (Device::Number(254, 16), Took::Whole(5_000_000)));
        let name = Some(Header::Millis(Disk::Name));
        let found = row("611          nvme0n1 bash             4179        10", name).unwrap();
        assert_eq!((found.device, found.comm), (Device::Name(b"nvme0n1"), &b"bash"[..]));
        let found = row("611                  bash 2           4179        10", name).unwrap();
        assert_eq!((found.device, found.comm), (Device::Unknown, &b"bash 2"[..]));
        let found = row("611          1 2 3            4179        10", Some(Header::Millis(Disk::None))).unwrap();
        assert_eq!((found.device, found.comm), (Device::Unknown, &b"1 2 3"[..]));
        assert_eq!(Line::parse(b"611          254   16       bash 4179 10", None), Err(NO_HEADER));
        assert_eq!(row("611          254   16       bash 4179 10", name), None);
        assert_eq!(row("611          nvme0n1 bash 4179 10", number), None);
    }

    #[test]
    fn other_lines() {
        for (text, expected) in [
            ("TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P QUE(ms) LAT(ms)", Header::Seconds),
            ("TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)", Header::OfDay),
            ("TIME(ms)     DISK ID        COMM             PID    LAT(ms)", Header::Millis(Disk::Number)),
            ("TIME(ms)     DISK    COMM             PID    LAT(ms)", Header::Millis(Disk::Name)),
            ("TIME(ms)     COMM             PID    LAT(ms)", Header::Millis(Disk::None)),
        ] {
            assert_eq!(Line::parse(text.as_bytes(), None), Ok(Line::Header(expected)));
        }
        for text in ["Attaching 4 probes...", "Attached 4 probes", "             MAJOR MINOR"] {
            assert_eq!(Line::parse(text.as_bytes(), None), Ok(Line::Beside));
        }
        for (text, count) in [("lost 3 events on CPU #1", 3), ("Possibly lost 4 samples", 4), ("Lost 5 events", 5)] {
            assert_eq!(Line::parse(text.as_bytes(), None), Ok(Line::Lost(count)));
        }
        for (text, why) in [
            ("0.000000    x 7 sda W 8 4096 0,74", NO_POINT),
            ("0.000000    x 7 sda W 8 4096 0.7", BAD_LINE),
            ("0.000000    x 7 sda W 8 4096 0.74 y", BAD_LINE),
            ("0.000000    x 7 sda Z 8 4096 0.74", BAD_LINE),
            ("0.000000    x 7 254 W 8 4096 0.74", BAD_LINE),
            ("0.000000    a name that is too long 7 sda W 8 4096 0.74", BAD_LINE),
            ("06:35:01 postgres       2211   S 0       0          61.22 wal", BAD_LINE),
        ] {
            assert_eq!(Line::parse(text.as_bytes(), None), Err(why), "{text}");
        }
    }
}
