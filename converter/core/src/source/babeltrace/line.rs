//! The parts of a line: time, host, name, and the structures that follow it.

use std::borrow::Cow;

use memchr::{memchr, memmem, memrchr};

use super::fields;
use super::names::Name;
use crate::event::UNKNOWN_TASK;
use crate::source::NoteKind;
use crate::source::cursor::{Cursor, whole};
use crate::source::time_of_day;

const SECOND_NS: i64 = 1_000_000_000;
/// Digits of a counter.
const COUNTER_DIGITS: usize = 20;
/// Seconds before this are those since the machine started: 2001.
const YEAR_2001: i64 = 1_000_000_000 * SECOND_NS;

/// Days from the first of March of the year 0 to 1970.
const MARCH_1ST_OF_YEAR_0: i64 = 719_468;

/// What a time counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// `10:11:12.123456789`
    OfDay,
    /// `2026-11-30 10:11:12.123456789`, with `--clock-date`.
    Date,
    /// `1795318181.029531000`, with `--clock-seconds`.
    Seconds,
    /// `00000016587236300123`, with `--clock-cycles`.
    Counter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) clock: Clock,
    /// `None` if babeltrace2 does not know it.
    pub(super) ns: Option<i64>,
}

impl Time {
    fn parse(text: &[u8]) -> Option<Self> {
        let time = |clock, ns| Some(Self { clock, ns });
        if text == b"??:??:??.?????????" {
            return time(Clock::OfDay, None);
        }
        if let Some((of_day, rest)) = time_of_day::take_clock(text) {
            return time(Clock::OfDay, Some(i64::try_from(of_day).ok()? + fraction(rest)?));
        }
        if text.len() == COUNTER_DIGITS && text.iter().all(u8::is_ascii_digit) {
            return time(Clock::Counter, Some(i64::try_from(whole(text, Cursor::decimal)?).ok()?));
        }
        if let Some(blank) = memchr(b' ', text) {
            let (of_day, rest) = time_of_day::take_clock(&text[blank + 1..])?;
            let day = days_since_1970(&text[..blank])?;
            let midnight = day.checked_mul(time_of_day::DAY_NS)?;
            return time(Clock::Date, Some(midnight.checked_add(i64::try_from(of_day).ok()?)? + fraction(rest)?));
        }
        let dot = memchr(b'.', text)?;
        let seconds = i64::try_from(whole(&text[..dot], Cursor::decimal)?).ok()?;
        time(Clock::Seconds, Some(seconds.checked_mul(SECOND_NS)?.checked_add(fraction(&text[dot..])?)?))
    }

    pub(super) fn clock_name(&self) -> &'static str {
        match self.clock {
            Clock::OfDay | Clock::Date => "time_of_day",
            Clock::Seconds if self.ns.is_some_and(|ns| ns >= YEAR_2001) => "realtime",
            Clock::Seconds | Clock::Counter => "unknown",
        }
    }
}

/// Parses `.123456789` to the end of a text.
fn fraction(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b".").filter(|digits| digits.len() == 9)?;
    whole(digits, Cursor::decimal).map(|ns| ns as i64)
}

/// Parses `2026-11-30`.
fn days_since_1970(text: &[u8]) -> Option<i64> {
    let mut parts = text.splitn(3, |&byte| byte == b'-');
    let mut part = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        whole(part, Cursor::decimal).map(|part| part as i64)
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the day of leap years at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = year * 365 + year / 4 - year / 100 + year / 400;
    Some(days_of_years + (month * 153 + 2) / 5 + day - 1 - MARCH_1ST_OF_YEAR_0)
}

#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) time: Time,
    /// Empty if the trace does not name it.
    pub(super) host: &'a [u8],
    /// As babeltrace2 prints it.
    printed_name: &'a [u8],
    /// From the first `{` on.
    pub(super) rest: &'a [u8],
}

impl<'a> Line<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let text = text.trim_ascii_end().strip_prefix(b"[")?;
        let end = memmem::find(text, b"] ")?;
        let time = Time::parse(&text[..end])?;
        let mut rest = &text[end + 2..];
        if let Some(delta) = rest.strip_prefix(b"(+") {
            let end = memmem::find(delta, b") ")?;
            let is_delta = delta[..end].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'?'));
            rest = is_delta.then_some(&delta[end + 2..])?;
        }
        let colon = memmem::find(rest, b": {")?;
        let head = &rest[..colon];
        let (origin, name) = match memrchr(b' ', head) {
            Some(blank) => (&head[..blank], &head[blank + 1..]),
            None => (&head[..0], head),
        };
        let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        // A domain, the program and its process may follow the host.
        let host = origin.split(|&byte| byte == b':').next().unwrap_or_default();
        let is_host = host.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        (is_name && is_host).then_some(Self { time, host, printed_name: name, rest: &rest[colon + 2..] })
    }

    /// The structures of the line; the last one has the fields of the event. `None` if one is torn.
    pub(super) fn scopes(&self) -> Option<Vec<&'a [u8]>> {
        let mut scopes = Vec::with_capacity(4);
        let mut rest = self.rest;
        loop {
            let inside = rest.strip_prefix(b"{")?;
            let end = fields::end_of_structure(inside)?;
            scopes.push(inside[..end].trim_ascii());
            rest = &inside[end + 1..];
            if rest.is_empty() {
                return Some(scopes);
            }
            rest = rest.strip_prefix(b", ")?;
        }
    }

    /// The thread that the contexts name, or that perf has among the fields. LTTng's events of the block layer have that of their issuer.
    pub(super) fn thread(&self, scopes: Option<&[&'a [u8]]>) -> Thread<'a> {
        let mut thread = Thread { tid: UNKNOWN_TASK, pid: UNKNOWN_TASK, comm: Cow::Borrowed(b"") };
        let whole_scopes;
        // Those before a torn one are whole.
        let scopes = if let Some(scopes) = scopes {
            scopes
        } else {
            whole_scopes = self.whole_scopes();
            &whole_scopes
        };
        let contexts = scopes.len().saturating_sub(1);
        for (index, scope) in scopes.iter().enumerate() {
            let is_context = index < contexts;
            let has_issuer = thread.tid == UNKNOWN_TASK && self.printed_name.starts_with(b"block_");
            fields::each(scope, |key, value| match key {
                b"tid" if is_context || has_issuer => thread.tid = task_id(value),
                b"pid" if is_context => thread.pid = task_id(value),
                b"procname" if is_context => thread.comm = fields::text(value),
                b"comm" if !is_context && has_issuer => thread.comm = fields::text(value),
                b"perf_tid" => thread.tid = task_id(value),
                b"perf_pid" => thread.pid = task_id(value),
                _ => {}
            });
        }
        thread
    }

    /// The structures before a torn one, and an empty one in the place of that.
    fn whole_scopes(&self) -> Vec<&'a [u8]> {
        let mut scopes = Vec::new();
        let mut rest = self.rest;
        while let Some(inside) = rest.strip_prefix(b"{") {
            let Some(end) = fields::end_of_structure(inside) else { break };
            scopes.push(inside[..end].trim_ascii());
            let Some(next) = inside[end + 1..].strip_prefix(b", ") else { break };
            rest = next;
        }
        scopes.push(b"");
        scopes
    }

    pub(super) fn name(&self) -> Name<'a> {
        Name::of(self.printed_name)
    }
}

/// Whether a second line is joined to the first one.
pub(super) fn is_joined(rest: &[u8]) -> bool {
    memmem::find(rest, b"] (+").is_some() || memmem::find(rest, b": { cpu_id = ").is_some()
}

pub(super) struct Thread<'a> {
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) comm: Cow<'a, [u8]>,
}

fn task_id(value: &[u8]) -> u32 {
    let id = whole(value, Cursor::decimal).and_then(|id| i32::try_from(id).ok());
    id.map_or(UNKNOWN_TASK, |id| id as u32)
}

/// What a message says of events that the tracer discarded.
pub(super) fn lost(line: &[u8]) -> Option<NoteKind> {
    let line = line.trim_ascii();
    let said = line.strip_prefix(b"[warning] ").or_else(|| line.strip_prefix(b"WARNING: "))?;
    if said.starts_with(b"Tracer may have discarded ") {
        return Some(NoteKind::LostUncounted);
    }
    let mut cursor = Cursor::new(said.strip_prefix(b"Tracer discarded ")?);
    let count = cursor.decimal()?;
    cursor.literal(b" ")?;
    // A packet holds an unknown number of events.
    Some(if cursor.rest.starts_with(b"event") { NoteKind::Lost { count } } else { NoteKind::LostUncounted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let of = |text: &str| Time::parse(text.as_bytes()).map(|time| (time.clock, time.ns, time.clock_name()));
        assert_eq!(of("00:00:01.000000002"), Some((Clock::OfDay, Some(1_000_000_002), "time_of_day")));
        assert_eq!(of("1970-01-02 00:00:01.000000002"), Some((Clock::Date, Some(86_401_000_000_002), "time_of_day")));
        assert_eq!(of("1795318181.029531000"), Some((Clock::Seconds, Some(1_795_318_181_029_531_000), "realtime")));
        assert_eq!(of("16587.236300123"), Some((Clock::Seconds, Some(16_587_236_300_123), "unknown")));
        assert_eq!(of("00000016587236300123"), Some((Clock::Counter, Some(16_587_236_300_123), "unknown")));
        assert_eq!(of("??:??:??.?????????"), Some((Clock::OfDay, None, "time_of_day")));
        for text in ["1.5", "00:00:01", "00:00:61.000000000", "1970-13-02 00:00:01.000000002", "x", "", "-5.000000000"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn days() {
        // `date -u -d DATE +%s` by 86400.
        for (date, days) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2000-03-01", 11_017), ("2026-11-30", 20_787)]
        {
            assert_eq!(days_since_1970(date.as_bytes()), Some(days), "{date}");
        }
    }
}
