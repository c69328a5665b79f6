//! Lines that are not events: the header and trailer of our own recorders, and bpftrace's own messages.

use memchr::memchr;

use crate::names::text_of;
use crate::source::cursor::{Cursor, whole};
use crate::source::event_names::EventName;
use crate::source::values::device;
use crate::source::{PathEscape, SourceOptions, Stock};

/// First line of a log that our own bpftrace scripts write, and the start of its last line.
const OWN: &[u8] = b"# syncline-log ";
pub(super) const END: &[u8] = b"# end ";

/// Reads the header of our own recorders: returns its facts and stores how the log is written in `options`.
pub(in crate::source) fn introduce(head: &[u8], options: &mut SourceOptions) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let Some(header) = own_header(head) else { return facts };
    let shown = |value| text_of(value).into_owned();
    for (key, value) in header_values(header) {
        match (key, value) {
            (b"comm", b"hex") => options.escapes.comm_hex = true,
            (b"path", b"hex") => options.escapes.path = PathEscape::Hex,
            (b"path", b"octal") => options.escapes.path = PathEscape::Octal,
            (b"clock", _) => facts.push(("clock", shown(value))),
            (b"kernel", _) => facts.push(("kernel", shown(value))),
            (b"boot_id", _) => facts.push(("boot_id", shown(value))),
            (b"host", _) => facts.push(("host", shown(value))),
            (b"script", script) => {
                options.by_own_script = true;
                options.stock = match script {
                    _ if script.starts_with(b"stock-tracepoints") => Some(Stock::Tracepoints),
                    _ if script.starts_with(b"stock") => Some(Stock::Functions),
                    _ => None,
                };
                facts.push(("recorder", format!("bpftrace {}", shown(value))));
            }
            (b"filter", _) => facts.push(("filter", shown(value))),
            _ => {}
        }
    }
    facts
}

/// Returns the log from the header of our own recorders on, if it begins with one. Messages of bpftrace may precede the header.
pub(in crate::source) fn own_header(head: &[u8]) -> Option<&[u8]> {
    let mut rest = head;
    while let Some(end) = memchr(b'\n', rest) {
        if rest.starts_with(OWN) {
            return Some(rest);
        }
        if !rest[..end].trim_ascii().is_empty() && !is_attach(&rest[..end]) {
            return None;
        }
        rest = &rest[end + 1..];
    }
    None
}

/// Iterates over the keys and values of the header, one `# KEY VALUE` per line.
fn header_values(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|&b| b == b'\n').take_while(|line| line.starts_with(b"#"));
    lines.filter_map(|line| {
        let mut parts = line.strip_prefix(b"# ")?.splitn(2, |&b| b == b' ');
        Some((parts.next()?, parts.next().unwrap_or_default().trim_ascii()))
    })
}

/// Returns whether this is a line of /proc/self/mountinfo, which our own recorders copy into their header.
pub(super) fn is_mount(line: &[u8]) -> bool {
    let mut words = line.split(|&b| b == b' ');
    let mut word = || words.next().unwrap_or_default();
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    number(word()) && number(word()) && device(word()).is_some() && memchr::memmem::find(line, b" - ").is_some()
}

/// Parses `@events[NAME]: N`, with which our own recorders report the number of events of one name.
pub(super) fn parse_event_count(line: &[u8]) -> Option<(usize, u64)> {
    let (name, count) = line.strip_prefix(b"@events[")?.split_at(memchr(b']', line)?.checked_sub(8)?);
    let count = whole(count.strip_prefix(b"]: ")?, Cursor::decimal)?;
    Some((EventName::parse(name)?.kind_index()?, count))
}

pub(super) fn is_header(line: &[u8]) -> bool {
    line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).eq([
        b"TIME".as_slice(),
        b"PID",
        b"COMM",
        b"EVENT",
        b"DATA",
    ])
}

/// Matches `Attaching N probes...` and `Attached N probe`.
pub(super) fn is_attach(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"Attaching ").or_else(|| line.strip_prefix(b"Attached "));
    rest.is_some_and(|rest| {
        let mut cursor = Cursor::new(rest);
        cursor.decimal().is_some() && cursor.rest.starts_with(b" probe")
    })
}

/// Matches bpftrace's report of a failed helper: `x.bt:23:21-28: WARNING: File exists`, `Additional Info - helper: ...`.
pub(super) fn is_warning(line: &[u8]) -> bool {
    line.starts_with(b"Additional Info - helper: ")
        || memchr::memmem::find(line, b": WARNING: ").is_some_and(|at| {
            let location = line[..at].rsplit(|&b| b == b':').next().unwrap_or_default();
            !location.is_empty() && location.iter().all(|b| b.is_ascii_digit() || *b == b'-')
        })
}

/// Matches `@: N`, `@name: N`, `@name[KEY]: N`, `@name:` before a histogram, `@name[` before a key of several lines.
pub(super) fn is_map(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"@") else { return false };
    let name = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    matches!(rest.get(name), Some(b':' | b'['))
}

/// Parses `Lost N events`.
pub(super) fn lost_events(line: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(line);
    cursor.literal(b"Lost ")?;
    let count = cursor.decimal()?;
    matches!(cursor.rest.trim_ascii_end(), b" events" | b" event").then_some(count)
}
