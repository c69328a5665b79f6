//! Reads from the first lines of a log its clock, its first thread, and whether it starts with the program.

use std::collections::HashSet;

use memchr::{memmem, memrchr};

use super::line::{Call, Clock, MAX_PID, Phase, Prefix, SECOND_NS, Text};
use super::other_lines::message;
use super::syscall::Known;
use crate::event::UNKNOWN_TASK;
use crate::source::{lines, trim_line};

/// Iterates over the complete lines of a head; the last one may be cut off.
pub(super) fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memrchr(b'\n', head).unwrap_or(head.len());
    lines(&head[..end]).map(trim_line).filter(|line| !line.is_empty())
}

/// Returns whether a line is a call as truss of FreeBSD prints it: `fsync(3) = 0 (0x0)`, or `ERR#5 'Input/output error'`. Its times and its
/// system calls have other meanings than those of strace.
pub(super) fn is_of_truss(line: &[u8]) -> bool {
    let is_twice = || {
        let returned = &line[memmem::rfind(line, b"= ")? + 2..];
        let (number, again) = returned.split_at(memmem::find(returned, b" (0x")?);
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        Some(!digits.is_empty() && digits.iter().all(u8::is_ascii_digit) && again.ends_with(b")"))
    };
    let is_error = || {
        let (call, error) = line.split_at(memmem::rfind(line, b" ERR#").or_else(|| memmem::rfind(line, b"\tERR#"))?);
        Some(call.trim_ascii_end().ends_with(b")") && error.ends_with(b"'"))
    };
    is_twice().or_else(is_error).unwrap_or(false)
}

/// Returns the clock of the first time.
pub(super) fn clock_of(head: &[u8]) -> Option<Clock> {
    prefixes(head).find_map(|prefix| prefix.time).map(|time| time.clock)
}

/// Returns the unit of the first time, in ns.
pub(super) fn resolution_of(head: &[u8]) -> Option<i64> {
    prefixes(head).find_map(|prefix| prefix.time).map(|time| time.resolution)
}

/// Returns whether the lines begin with relative times, which strace right-aligns. A number without a fraction may be a PID in a text that is
/// indented as a whole.
pub(super) fn has_aligned_times(head: &[u8]) -> bool {
    /// Width of the seconds.
    const SECONDS: usize = 6;
    let first = whole_lines(head).find_map(|line| Some((line, Prefix::take(line)?.time?)));
    first.is_some_and(|(line, time)| {
        let is_aligned = || line.get(SECONDS - 1).is_some_and(u8::is_ascii_digit) && line.get(SECONDS) == Some(&b' ');
        time.clock == Clock::Relative && (time.resolution < SECOND_NS || is_aligned())
    })
}

/// Returns whether the first call is the exec that starts the program.
pub(super) fn begins_with_exec(head: &[u8]) -> bool {
    let first = whole_lines(head).filter_map(Prefix::take).find_map(|prefix| match Text::of(prefix.rest) {
        Some(Text::Call { phase, name, .. }) => Some((phase, name)),
        _ => None,
    });
    first.is_some_and(|(phase, name)| phase != Phase::Resumed && Known::of(name) == Some(Known::Exec))
}

/// Whether nearly all calls of a head have a duration, as `strace -T` writes it.
pub(super) fn has_durations(head: &[u8]) -> bool {
    const MOST: usize = 10;
    let (mut timed, mut others) = (0, 0);
    for line in whole_lines(head).filter(|line| !line.ends_with(b"...>")) {
        let returned = memmem::rfind(line, b" = ").filter(|at| line.get(at + 3) != Some(&b'?'));
        let Some(returned) = returned else { continue };
        let is_timed = memrchr(b'<', &line[returned..]).filter(|_| line.ends_with(b">")).is_some_and(|at| {
            let text = &line[returned + at + 1..line.len() - 1];
            !text.is_empty() && text.iter().all(|b| b.is_ascii_digit() || *b == b'.')
        });
        *if is_timed { &mut timed } else { &mut others } += 1;
    }
    timed > 0 && others * MOST <= timed
}

/// Iterates over the line prefixes of a head.
pub(super) fn prefixes(head: &[u8]) -> impl Iterator<Item = Prefix<'_>> {
    whole_lines(head).filter_map(Prefix::take).filter(|prefix| Text::of(prefix.rest).is_some())
}

/// Returns whether relative times cannot refer to the previous line of this log: a time is shorter than the duration of the call on that
/// line.
pub(super) fn counts_from_others(head: &[u8]) -> bool {
    /// Tolerance, because `-T` uses another clock.
    const TOLERANCE_NS: i64 = 1_000_000;
    let mut lasted = None;
    whole_lines(head).filter_map(Prefix::take).any(|prefix| {
        let sooner =
            lasted.zip(prefix.time).is_some_and(|(lasted, time)| time.ns + time.resolution + TOLERANCE_NS < lasted);
        lasted = match Text::of(prefix.rest) {
            Some(Text::Call { phase: Phase::Whole, rest, .. }) => {
                Call::of(rest, Phase::Whole).ok().and_then(|call| call.end.dur)
            }
            _ => None,
        };
        sooner
    })
}

/// File name suffixes of compressed logs.
const COMPRESSED: [&str; 3] = [".gz", ".zst", ".zstd"];

/// Returns the thread of lines without a PID. strace prints the first thread's PID only once there are others; with `-ff` the file name
/// ends with it.
pub(super) fn first_task(path: &str, head: &[u8]) -> u32 {
    let mut attached = HashSet::new();
    for line in whole_lines(head) {
        if let Some((_, number)) = message(line) {
            attached.insert(number);
            continue;
        }
        let Some(prefix) = Prefix::take(line) else { continue };
        if let Some(tid) = prefix.tid
            && !attached.contains(&tid)
        {
            return tid;
        }
        // With `-q` only the clone call reports the child.
        if let Some(Text::Call { phase, name, rest }) = Text::of(prefix.rest)
            && Known::of(name) == Some(Known::Clone)
            && let Ok(call) = Call::of(rest, phase)
        {
            attached.extend(call.end.ret.and_then(|ret| u32::try_from(ret).ok()));
        }
    }
    let path = COMPRESSED.iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(path);
    let number = path.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
    number.filter(|tid| (1..=MAX_PID as u32).contains(tid)).unwrap_or(UNKNOWN_TASK)
}
