//! The tables of `syncsnoop`, of bcc, libbpf-tools and bpftrace: the sync calls that programs begin, each with its time.
//!
//! No table has the end of a call, its file or its result. bcc and libbpf-tools do not print the process either.
//!
//! ```text
//! TIME      PID    COMM             EVENT
//! 02:02:17  27933  sync             tracepoint:syscalls:sys_enter_sync
//! TIME(s)            COMM             CALL
//! 1173253.856512000  worker           fdatasync
//! TIME(s)            CALL
//! 16458.148611000    sync()
//! ```

use memchr::memrchr;

use super::cursor::{Cursor, whole};
use super::time_of_day::{self, Days};
use super::{
    Batch, Explanation, InputTraits, Lines, NoteKind, Problem, Reader, Source, SourceOptions, StatefulPass,
    TIME_RESOLUTION, lines,
};
use crate::error::Result;
use crate::event::{Event, Kind, Op, UNKNOWN_TASK};
use crate::input_file::Input;
use crate::names::NameId;

pub const NAME: &str = "syncsnoop";
const BANNER: &[u8] = b"Tracing sync syscalls... Hit Ctrl-C to end.";
const TRACEPOINT: &[u8] = b"tracepoint:syscalls:sys_enter_";
const ENTRY: &[u8] = b"sys_enter_";
/// The largest id of a task in the kernel.
const MAX_PID: u64 = 1 << 22;
const SECOND: i64 = 1_000_000_000;
const MAX_COMM: usize = 16;
const BAD_LINE: &str =
    "it is no row of syncsnoop: `TIME PID COMM tracepoint:syscalls:sys_enter_CALL`, or `TIME COMM CALL`";

pub struct SyncSnoop;

impl Source for SyncSnoop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It has the entries of calls, and nothing in it shows that a row is missing, unless the tool's message about lost events is in the text."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut used = lines(head).filter(|line| !line.trim_ascii().is_empty() && !is_attaching(line));
        used.next().is_some_and(|line| is_header(line) || Row::parse(line).is_some())
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(true), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        // Rows of two clocks are of two tables, so the first row decides.
        let first = lines(input.head()).find_map(Row::parse);
        let is_of_day = first.is_none_or(|row| row.is_of_day);
        let mut reader = Reader::of_lines(self, input, options);
        reader.facts.push(("recorder", NAME.to_owned()));
        if is_of_day {
            reader.facts.push(("clock", "time_of_day".to_owned()));
            reader.facts.push((TIME_RESOLUTION, SECOND.to_string()));
            reader.stateful_pass = Some(Box::new(TimesOfDay(Days::new(0))));
        } else {
            reader.facts.push(("clock", "monotonic".to_owned()));
        }
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no row of a call".to_owned()),
                hint: "record the calls with what they wait for: `sudo syncline record --for 30s --and-report`"
                    .to_owned(),
            }),
            Problem::NoThreadIds => None,
        }
    }
}

impl Lines for SyncSnoop {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        memrchr(b'\n', bytes).map(|newline| newline + 1)
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        for text in lines(chunk) {
            batch.lines += 1;
            if text.trim_ascii().is_empty() || text == b"^C" || is_attaching(text) || is_header(text) {
                continue;
            }
            if let Some(count) = lost(text.trim_ascii()) {
                batch.note(NoteKind::Lost { count });
                continue;
            }
            let Some(row) = Row::parse(text) else {
                batch.unparsed(text, BAD_LINE);
                continue;
            };
            let comm = if row.comm.is_empty() { NameId::NONE } else { batch.names.intern(row.comm) };
            if options.keep_extras {
                let name = batch.names.intern(&[ENTRY, row.op.name().as_bytes()].concat());
                batch.event_names.push(name);
            }
            let (line, kind) = (batch.lines as u32, Kind::enter(row.op));
            batch.events.push(Event { ts: row.ts, tid: UNKNOWN_TASK, pid: row.pid, comm, line, kind });
        }
    }
}

/// Gives times of day a day.
struct TimesOfDay(Days);

impl StatefulPass for TimesOfDay {
    fn apply(&mut self, batch: &mut Batch) {
        batch.events.iter_mut().for_each(|event| event.ts = self.0.time(event.ts));
    }
}

/// bpftrace says so before the table.
fn is_attaching(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    (line.starts_with(b"Attaching ") || line.starts_with(b"Attached ")) && line.ends_with(b"probes")
        || line.starts_with(b"Attaching ") && line.ends_with(b" probes...")
}

fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    line == BANNER
        || match words.next() {
            // The line format of bpftrace has these words too, with one blank between them.
            Some(b"TIME") => line.starts_with(b"TIME      PID") && words.eq([&b"PID"[..], b"COMM", b"EVENT"]),
            Some(b"TIME(s)") => {
                let rest: Vec<_> = words.collect();
                rest == [&b"COMM"[..], b"CALL"] || rest == [&b"CALL"[..]]
            }
            _ => false,
        }
}

/// `Lost 3 events on CPU #1!` by libbpf-tools, `Lost 3 events` by bpftrace, `Possibly lost 3 samples` by bcc.
fn lost(line: &[u8]) -> Option<u64> {
    if let Some(rest) = line.strip_prefix(b"Possibly lost ") {
        return whole(rest.strip_suffix(b" samples")?, Cursor::decimal);
    }
    let mut cursor = Cursor::new(line.strip_prefix(b"Lost ")?);
    let count = cursor.decimal()?;
    cursor.literal(b" events")?;
    (cursor.rest.is_empty() || cursor.rest.starts_with(b" on CPU #")).then_some(count)
}

#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    is_of_day: bool,
    /// ns, of the day or since the machine started.
    ts: i64,
    pid: u32,
    comm: &'a [u8],
    op: Op,
}

impl<'a> Row<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        match time_of_day::take(text) {
            Some((time, rest)) => Self::of_bpftrace(i64::try_from(time).ok()?, rest),
            None => Self::of_bcc(text),
        }
    }

    fn of_bpftrace(ts: i64, rest: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(rest);
        cursor.spaces();
        let pid = cursor.decimal().filter(|pid| *pid <= MAX_PID)? as u32;
        let rest = cursor.rest.strip_prefix(b" ")?;
        let (comm, call) = name_and_call(rest)?;
        let op = op(call.strip_prefix(TRACEPOINT)?)?;
        Some(Self { is_of_day: true, ts, pid, comm, op })
    }

    fn of_bcc(text: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(text.trim_ascii_start());
        let seconds = i64::try_from(cursor.decimal()?).ok()?;
        cursor.literal(b".")?;
        let (digits, rest) = cursor.rest.split_at_checked(9)?;
        let ns = whole(digits, Cursor::decimal)?;
        let ts = seconds.checked_mul(SECOND)?.checked_add(ns as i64)?;
        let (comm, call) = name_and_call(rest.strip_prefix(b" ")?)?;
        // Before July 2024, bcc traced sync() only, and printed no name.
        let op = if comm.is_empty() { (call == b"sync()").then_some(Op::Sync)? } else { op(call)? };
        Some(Self { is_of_day: false, ts, pid: UNKNOWN_TASK, comm, op })
    }
}

/// The name of the thread, which may hold blanks, and the word after it, which ends the line.
fn name_and_call(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.trim_ascii_end();
    let (name, call) = match memrchr(b' ', rest) {
        Some(blank) => (rest[..blank].trim_ascii_end(), &rest[blank + 1..]),
        None => (&rest[..0], rest),
    };
    // The column before it is padded with blanks.
    let name = if name.len() > MAX_COMM { name.trim_ascii_start() } else { name };
    (name.len() <= MAX_COMM).then_some((name.trim_ascii_start(), call))
}

fn op(call: &[u8]) -> Option<Op> {
    match call {
        // The forms that other architectures have.
        b"sync_file_range2" | b"arm_sync_file_range" => Some(Op::SyncFileRange),
        _ => Op::from_name(call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Option<Row<'_>> {
        Row::parse(text.as_bytes())
    }

    #[test]
    fn rows_of_all_tools() {
        let of_bpftrace = row("02:02:17  27933  a b 7 S 0        tracepoint:syscalls:sys_enter_fdatasync");
        let ts = (2 * 3600 + 2 * 60 + 17) * SECOND;
        let (comm, op) = (&b"a b 7 S 0"[..], Op::Fdatasync);
        assert_eq!(of_bpftrace, Some(Row { is_of_day: true, ts, pid: 27933, comm, op }));
        let of_bcc = row("1173253.856512000  worker           sync_file_range2   ");
        let (ts, comm, op) = (1_173_253_856_512_000, &b"worker"[..], Op::SyncFileRange);
        assert_eq!(of_bcc, Some(Row { is_of_day: false, ts, pid: UNKNOWN_TASK, comm, op }));
        let of_old_bcc = row("16458.148611000    sync()").unwrap();
        assert_eq!((of_old_bcc.ts, of_old_bcc.comm, of_old_bcc.op), (16_458_148_611_000, &b""[..], Op::Sync));
    }

    #[test]
    fn what_is_no_row() {
        for text in [
            "02:02:17  27933  sync             tracepoint:syscalls:sys_enter_sy",
            "02:02:17  27933  sync             fsync",
            "02:02:17  sync             tracepoint:syscalls:sys_enter_sync",
            "25:02:17  27933  sync             tracepoint:syscalls:sys_enter_sync",
            "1173253.85651  worker           fdatasync",
            "1173253.856512000  worker           write",
            "1173253.856512000  fsync",
            "1173253.856512000",
        ] {
            assert_eq!(row(text), None, "{text}");
        }
    }
}
