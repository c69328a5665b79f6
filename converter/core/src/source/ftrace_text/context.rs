//! The columns before an event on its line: thread, CPU, flags and time.
//!
//! ```text
//!               wl-262     [000] .....    20.527240:             trace, trace_pipe, trace-cmd report
//!               wl-262     (    260) [000] .....    20.527240:   with the process, as options/record-tgid has it
//!       wl-2206    0.....   208.252485:                          trace-cmd report -l: eight bytes of the name
//!       wl-262       0.....   12us+:                             options/latency-format: since the first event
//! ```

use memchr::memchr;

use crate::event::UNKNOWN_TASK;
use crate::source::cursor::{Cursor, find, without_spaces};

/// Width of the right-aligned comm column. A comm is at least one byte shorter.
const COMM_COLUMN: usize = 16;
const COMM_COLUMN_LATENCY: usize = 8;
/// trace-cmd prefixes each line with the name of the file or buffer if there are several.
const MAX_PREFIX: usize = 512;
/// Number of flag characters that trace-cmd prints, and an upper bound for the kernel's flags and their count.
const FLAGS: usize = 5;
const MAX_FLAGS: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::source) struct Context<'a> {
    pub(in crate::source) comm: &'a [u8],
    pub(in crate::source) tid: u32,
    pub(in crate::source) pid: u32,
    pub(in crate::source) time: Time,
    /// The rest of the line.
    pub(in crate::source) event: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Time {
    Ns(i64),
    /// A count in an unknown unit: ns if trace-cmd does not know the clock (boot), cycles, or events.
    Count(i64),
    /// It does not fit 63 bits.
    TooLarge,
}

/// Parses the columns before an event. Returns `None` if the line does not begin with them.
#[inline]
pub(in crate::source) fn context(line: &[u8]) -> Option<Context<'_>> {
    for column in [COMM_COLUMN, COMM_COLUMN_LATENCY] {
        if line.get(column) == Some(&b'-')
            && let Some(found) = parse_columns(&line[..column], &line[column + 1..])
        {
            return Some(found);
        }
    }
    unaligned(line)
}

/// Parses shifted columns: a file name precedes them, or their leading spaces are missing. A comm may contain dashes and digits.
#[cold]
fn unaligned(line: &[u8]) -> Option<Context<'_>> {
    let mut from = 0;
    while let Some(dash) = memchr(b'-', &line[from..]).map(|n| from + n) {
        if dash > MAX_PREFIX {
            return None;
        }
        let column = dash.saturating_sub(COMM_COLUMN);
        let (prefix, comm) = line[..dash].split_at(column);
        let prefix = prefix.trim_ascii_end();
        if (prefix.is_empty() || prefix.ends_with(b":"))
            && comm.trim_ascii_start().len() < COMM_COLUMN
            && let Some(found) = parse_columns(comm, &line[dash + 1..])
        {
            return Some(found);
        }
        from = dash + 1;
    }
    None
}

/// Parses the columns after the comm. `comm` still has its padding; `rest` follows its dash.
#[inline]
fn parse_columns<'a>(comm: &'a [u8], rest: &'a [u8]) -> Option<Context<'a>> {
    let mut cursor = Cursor::new(rest);
    let tid = task_id(cursor.decimal()?)?;
    if cursor.rest.first() != Some(&b' ') {
        return None;
    }
    cursor.spaces();
    let mut pid = UNKNOWN_TASK;
    if cursor.literal(b"(").is_some() {
        cursor.spaces();
        if let Some(process) = cursor.decimal() {
            pid = task_id(process)?;
        } else {
            let dashes = cursor.rest.iter().take_while(|&&b| b == b'-').count();
            cursor.rest = &cursor.rest[dashes..];
        }
        cursor.literal(b")")?;
        cursor.spaces();
    }
    if cursor.literal(b"[").is_some() {
        cursor.decimal()?;
        cursor.literal(b"]")?;
    } else {
        // The flags follow the CPU directly.
        cursor.decimal()?;
        if matches!(cursor.rest.first()?, b' ' | b':') {
            return None;
        }
    }
    let comm = without_spaces(comm).trim_ascii_start();
    // The flags are five characters, fewer in older kernels, more with lazy preemption; a number with `-R`; or absent.
    let columns = without_spaces(cursor.rest).trim_ascii_start();
    let flags = find(b' ', &columns[..columns.len().min(MAX_FLAGS + 1)])?;
    if columns[flags - 1] != b':' {
        cursor.rest = &columns[flags..];
    } else if !columns[0].is_ascii_digit() {
        // A count that fills its column follows the flags directly. After numeric flags its start cannot be determined.
        cursor.rest = columns.get(FLAGS..).filter(|_| columns[0] != b'-')?;
    }
    cursor.spaces();
    let time = parse_time(&mut cursor)?;
    cursor.literal(b": ")?;
    Some(Context { comm, tid, pid, time, event: cursor.rest })
}

/// The kernel's thread ids end at 2^22, those of Perfetto at 2^31.
fn task_id(id: u64) -> Option<u32> {
    i32::try_from(id).ok().map(|id| id as u32)
}

/// Parses `S.FRACTION`, `Nus` and a mark, or a bare number.
#[inline]
fn parse_time(cursor: &mut Cursor<'_>) -> Option<Time> {
    const TENS: [i64; 10] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1];
    let units = cursor.decimal()?;
    let ns = |units: u64, unit_ns: i64, more: i64| {
        let ns = i64::try_from(units).ok().and_then(|n| n.checked_mul(unit_ns)).and_then(|n| n.checked_add(more));
        ns.map_or(Time::TooLarge, Time::Ns)
    };
    if cursor.literal(b".").is_some() {
        let before = cursor.rest.len();
        let fraction = cursor.decimal()?;
        let digits = before - cursor.rest.len();
        return Some(ns(units, 1_000_000_000, fraction as i64 * TENS.get(digits)?));
    }
    if cursor.literal(b"us").is_some() {
        // A mark for the rough time to the next event.
        if matches!(cursor.rest.first()?, b' ' | b'+' | b'!' | b'#' | b'*' | b'@' | b'$') {
            cursor.rest = &cursor.rest[1..];
        }
        return Some(ns(units, 1000, 0));
    }
    Some(i64::try_from(units).map_or(Time::TooLarge, Time::Count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, u32, u32, Time, String)> {
        let found = context(line.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(found.comm), found.tid, found.pid, found.time, text(found.event)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of the value it is compared with")]
    fn want(comm: &str, tid: u32, pid: u32, ns: i64) -> Option<(String, u32, u32, Time, String)> {
        Some((comm.into(), tid, pid, Time::Ns(ns), "x: a=1".into()))
    }

    #[test]
    fn every_column_layout() {
        const NONE: u32 = UNKNOWN_TASK;
        let us = 20_527_240_000;
        for (line, expected) in [
            ("              wl-262     [000] .....    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262     [000] d.h2.    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262     [000] d.h2    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262     [000] dNL.h2..    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262   [000]    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262   [1000] 120.527240: x: a=1", want("wl", 262, NONE, us + 100_000_000_000)),
            ("              wl-262   [000] .....    20.527240123: x: a=1", want("wl", 262, NONE, us + 123)),
            ("              wl-262     [000]-0x0    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("              wl-262     (    260) [000] .....    20.527240: x: a=1", want("wl", 262, 260, us)),
            ("              wl-262     (-------) [000] .....    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("           <...>-262     (-----) [000]    20.527240: x: a=1", want("<...>", 262, NONE, us)),
            ("      wl-262     0.....    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("      wl-2206  120dN.h.    20.527240123: x: a=1", want("wl", 2206, NONE, us + 123)),
            ("      wl-262     0-0x0    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("      wl-262       0.....   12us+: x: a=1", want("wl", 262, NONE, 12000)),
            ("  <idle>-0         1d.h.. 2012us : x: a=1", want("<idle>", 0, NONE, 2_012_000)),
            ("wl-262     [000] .....    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("a.dat:               wl-262   [000]    20.527240: x: a=1", want("wl", 262, NONE, us)),
            ("                     wl-262   [000]    20.527240: x: a=1", want("wl", 262, NONE, us)),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn comms_may_contain_anything() {
        for comm in
            ["iou-wrk-2224", "a-1 [000] .", "kworker/u8:2", "-", "a b", "7", "x: y", "[sh]-3", "12345678-012345"]
        {
            let line = format!("{comm:>16}-99      [001] d..1.     1.000002: x: a=1");
            assert_eq!(read(&line), want(comm, 99, UNKNOWN_TASK, 1_000_002_000), "{line}");
        }
        // Without the leading spaces, too.
        let line = "iou-wrk-2224-2225  [000] .....     1.000002: x: a=1";
        assert_eq!(read(line), want("iou-wrk-2224", 2225, UNKNOWN_TASK, 1_000_002_000));
    }

    #[test]
    fn times_in_unknown_units() {
        for (line, time) in [
            ("              wl-262     [000] .....       123456: x: a=1", Time::Count(123_456)),
            ("              wl-262   [000]366798777064: x: a=1", Time::Count(366_798_777_064)),
            ("              wl-262   [000] .....366798777064: x: a=1", Time::Count(366_798_777_064)),
            ("              wl-262   [000] d..12366798777064: x: a=1", Time::Count(366_798_777_064)),
            ("      wl-262     0.....366798777064: x: a=1", Time::Count(366_798_777_064)),
            ("              wl-262     [000] ..... 99999999999.000000: x: a=1", Time::TooLarge),
        ] {
            let found = read(line).unwrap();
            assert_eq!((found.0.as_str(), found.1, found.3, found.4.as_str()), ("wl", 262, time, "x: a=1"), "{line}");
        }
    }

    #[test]
    fn lines_without_an_event() {
        for line in [
            "",
            "-",
            "cpus=2",
            "252 53 bio_aof fdatasync",
            "              wl-262     [000] .....    20.527240",
            "              wl-262     [000] .....    20.527240:x",
            "              wl-99999999999 [000] .....    20.527240: x: a=1",
            "              wl-262     [000 .....    20.527240: x: a=1",
            "              wl-262     0    20.527240: x: a=1",
            "              wl-262     [000] .....    20.5272400000: x: a=1",
            "a name that is too long-262     [000] .....    20.527240: x: a=1",
            "              wl-262     [000]-0x0366798777064: x: a=1",
            "wl 2206 [000] 208.252485: syscalls:sys_enter_fsync: fd: 0x3",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
