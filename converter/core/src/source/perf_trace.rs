//! The text of `perf trace`: system calls, each with the time of its entry and how long it took.
//!
//! A call is a line. If another thread enters a call meanwhile, `...` ends the line, and a second one has the rest: it repeats the time of the
//! entry. perf puts `?` there if it no longer knows the entry, and `:TID` for a thread whose name it does not know. Times are ms, since the
//! beginning of the recording or, with `-T`, of perf's clock. A recording of a single thread need not name it.
//!
//! ```text
//!      0.000 (185.882 ms): python3/219 fdatasync(fd: 4)                         = 0
//!    301.064 (         ): python3/221 fsync(fd: 6</data/wal>)                ...
//!    301.064 (65.862 ms): python3/221  ... [continued]: fsync())               = 0
//!          ? (         ): python3/213  ... [continued]: fdatasync())           = 0
//!    700.100 ( 0.010 ms): :213/213 fsync(fd: 9)                                = -1 EBADF (Bad file descriptor)
//! LOST 12 events!
//! ```

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::cursor::{Cursor, whole};
use super::{Batch, Explanation, InputTraits, Lines, NoteKind, Problem, Reader, Source, SourceOptions, lines};
use crate::error::Result;
use crate::event::{Event, Kind, Op, UNKNOWN_TASK, errno};
use crate::input_file::Input;
use crate::names::NameId;

pub const NAME: &str = "perf-trace";
/// `TASK_COMM_LEN` without its NUL.
const COMM_BYTES: usize = 15;
/// The largest thread id of the kernel.
const MAX_TID: u64 = 1 << 22;
const MICRO: i64 = 1_000;
const BAD_LINE: &str = "it is not `TIME (DURATION ms): NAME/TID CALL(...) = RESULT`, as perf trace prints a call";
const NO_TIME: &str = "it has no time, because perf no longer knew when the call began";

pub struct PerfTrace;

impl Source for PerfTrace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "perf trace prints how many events were lost, but not which: a call whose entry or exit is among them is \
         missing, or has no end."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut used = lines(head).filter(|line| !line.trim_ascii().is_empty() && lost(line).is_none());
        used.next().is_some_and(|line| Line::parse(line).is_some())
    }

    /// Times are right-aligned.
    fn has_indent(&self, _head: &[u8]) -> bool {
        true
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let mut reader = Reader::of_lines(self, input, options);
        // Nothing says whether `-T` was used, and nobody else uses the clock of which the times are then.
        reader.facts.push(("clock", "relative".to_owned()));
        reader.facts.push(("recorder", NAME.to_owned()));
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no sync call".to_owned()),
                hint: "record the calls that sync: `perf trace -a -T -e fsync,fdatasync,sync,syncfs,msync,sync_file_range`"
                    .to_owned(),
            }),
            Problem::NoThreadIds => Some(Explanation {
                message: None,
                hint: "record all threads with `perf trace -a` or `-p PID`, which names them".to_owned(),
            }),
        }
    }
}

impl Lines for PerfTrace {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        memrchr(b'\n', bytes).map(|newline| newline + 1)
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        for text in lines(chunk) {
            batch.lines += 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            if let Some(count) = lost(text) {
                batch.note(NoteKind::Lost { count });
                continue;
            }
            let Some(line) = Line::parse(text) else {
                batch.unparsed(text, BAD_LINE);
                continue;
            };
            // perf no longer knows the entry of the call that the line ends.
            let Some(entered) = line.entered else {
                batch.unparsed(text, NO_TIME);
                continue;
            };
            let exited = entered.saturating_add(line.dur.unwrap_or(0));
            match line.op() {
                Some(op) => line.sync(op, (entered, exited), options, batch),
                None if line.part == Part::Rest => {}
                None if options.keep_extras => line.event(entered, Kind::Other, &[line.call], options, batch),
                None => batch.other(|| line.call),
            }
        }
    }
}

/// The number of events that perf says are lost.
fn lost(line: &[u8]) -> Option<u64> {
    whole(line.trim_ascii().strip_prefix(b"LOST ")?.strip_suffix(b" events!")?, Cursor::decimal)
}

/// The part of its call that a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// The entry: the call is not over when the line is printed.
    Begun,
    /// The exit of a call whose entry is in an earlier line.
    Rest,
}

#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    /// ns. `None` if perf does not know it.
    entered: Option<i64>,
    /// ns. `None` if the call is not over, or perf does not know its entry.
    dur: Option<i64>,
    /// Empty if it is not known.
    comm: &'a [u8],
    tid: u32,
    call: &'a [u8],
    args: &'a [u8],
    part: Part,
    /// `None` if the call has not returned, or returns nothing.
    ret: Option<i64>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(text.trim_ascii());
        let entered = if cursor.literal(b"?").is_some() { None } else { Some(ms(&mut cursor)?) };
        cursor.literal(b" (")?;
        cursor.spaces();
        let dur = if cursor.rest.starts_with(b")") {
            None
        } else {
            let dur = ms(&mut cursor)?;
            cursor.literal(b" ms")?;
            Some(dur)
        };
        cursor.literal(b"): ")?;
        let Task { comm, tid, rest } = task(cursor.rest);
        let (is_rest, rest) = match rest.trim_ascii_start().strip_prefix(b"... [continued]: ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (call, rest) = call_of(rest)?;
        if let Some(args) = rest.strip_suffix(b"...") {
            let is_begun = !is_rest && dur.is_none() && entered.is_some();
            let args = args.trim_ascii_end();
            let args = args.strip_suffix(b")").unwrap_or(args);
            let line = Self { entered, dur, comm, tid, call, args, part: Part::Begun, ret: None };
            return is_begun.then_some(line);
        }
        // The arguments may hold a `=` too.
        let equals = memmem::rfind(rest, b" = ")?;
        let args = rest[..equals].trim_ascii_end().strip_suffix(b")")?;
        let ret = result(&rest[equals + 3..])?;
        let part = if is_rest { Part::Rest } else { Part::Whole };
        if part == Part::Whole && (entered.is_none() || dur.is_none()) {
            return None;
        }
        Some(Self { entered, dur, comm, tid, call, args, part, ret: Some(ret) })
    }

    /// The sync that the call is.
    fn op(&self) -> Option<Op> {
        let op = Op::from_name(self.call)?;
        // The rest of a call has no arguments, so an exit may be that of a call that syncs nothing. It then has no entry.
        let is_sync = op != Op::Msync || self.part == Part::Rest || has_flag_sync(self.args);
        is_sync.then_some(op)
    }

    /// Adds the entry and the exit, as far as the line has them.
    fn sync(&self, op: Op, (entered, exited): (i64, i64), options: &SourceOptions, batch: &mut Batch) {
        if self.part != Part::Rest {
            let path = path(self.args).map_or(NameId::NONE, |path| batch.names.intern(path));
            let kind = Kind::CallEnter { op, stack: NameId::NONE, path, call_only: true };
            self.event(entered, kind, &[self.call], options, batch);
        }
        if self.ret.is_some() {
            let exit = Kind::CallExit {
                op,
                ret: self.ret,
                stack: NameId::NONE,
                untimed: self.dur.is_none(),
                entry_lost: false,
            };
            self.event(exited, exit, &[self.call, b"_exit"], options, batch);
        }
    }

    fn event(&self, ts: i64, kind: Kind, name: &[&[u8]], options: &SourceOptions, batch: &mut Batch) {
        let comm = if self.comm.is_empty() { NameId::NONE } else { batch.names.intern(self.comm) };
        if options.keep_extras {
            let name = batch.names.intern(&name.concat());
            batch.event_names.push(name);
        }
        batch.events.push(Event { ts, tid: self.tid, pid: UNKNOWN_TASK, comm, line: batch.lines as u32, kind });
    }
}

struct Task<'a> {
    comm: &'a [u8],
    tid: u32,
    rest: &'a [u8],
}

/// Takes `NAME/TID ` from the beginning of a text; a name may hold slashes and blanks. Without it, the thread is not known.
fn task(text: &[u8]) -> Task<'_> {
    for slash in memchr_iter(b'/', text).take_while(|&at| (1..=COMM_BYTES).contains(&at)) {
        let mut cursor = Cursor::new(&text[slash + 1..]);
        let Some(tid) = cursor.decimal().filter(|tid| (1..=MAX_TID).contains(tid)) else { continue };
        let Some(rest) = cursor.rest.strip_prefix(b" ") else { continue };
        // `:TID` stands for a name that perf does not know.
        let comm = &text[..slash];
        let is_name = comm.strip_prefix(b":").is_none_or(|number| whole(number, Cursor::decimal) != Some(tid));
        return Task { comm: if is_name { comm } else { b"" }, tid: tid as u32, rest };
    }
    Task { comm: b"", tid: UNKNOWN_TASK, rest: text }
}

/// The name of a call, and what follows its parenthesis.
fn call_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let open = memchr(b'(', text)?;
    let name = &text[..open];
    let is_name = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, &text[open + 1..]))
}

/// ns of a number of ms with three digits after its point.
fn ms(cursor: &mut Cursor<'_>) -> Option<i64> {
    let whole_ms = i64::try_from(cursor.decimal()?).ok()?;
    cursor.literal(b".")?;
    let digits = cursor.rest.get(..3)?;
    let us = whole(digits, Cursor::decimal)?;
    cursor.rest = &cursor.rest[3..];
    whole_ms.checked_mul(1_000)?.checked_add(us as i64)?.checked_mul(MICRO)
}

/// Returns the result of a call. -1 with the name of an error stands for the negative number of that error, which the kernel returned.
fn result(text: &[u8]) -> Option<i64> {
    let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let number = words.next()?;
    let value = match number.strip_prefix(b"0x") {
        Some(hex) => whole(hex, Cursor::hex_digits)? as i64,
        None => whole(number, Cursor::signed)?,
    };
    match words.next() {
        Some(error) if value == -1 => Some(-errno::number(error)?),
        // perf names each error, so the line is cut off before the name.
        None if value == -1 => None,
        // A descriptor may be followed by its path.
        None | Some(_) => Some(value),
    }
}

/// The path of the descriptor that a call begins with: `fd: 3</data/wal>`.
fn path(args: &[u8]) -> Option<&[u8]> {
    let text = args.strip_prefix(b"fd: ")?;
    let shown = text.strip_prefix(&text[..memchr(b'<', text)?])?;
    let path = shown.strip_prefix(b"<")?.strip_suffix(b">").or_else(|| {
        let end = memmem::find(shown, b">, ")?;
        shown.get(1..end)
    })?;
    path.starts_with(b"/").then_some(path)
}

/// Whether the flags of msync have `SYNC`, and not only `ASYNC`.
fn has_flag_sync(args: &[u8]) -> bool {
    let Some(at) = memmem::find(args, b"flags: ") else { return false };
    let flags = &args[at + 7..];
    flags.split(|&byte| byte == b'|').any(|flag| flag == b"SYNC" || flag == b"MS_SYNC")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Line<'_>> {
        Line::parse(text.as_bytes())
    }

    fn line(entered: Option<i64>, dur: Option<i64>, comm: &str, tid: u32, part: Part) -> Line<'_> {
        let ret = (part != Part::Begun).then_some(0);
        let args: &[u8] = if part == Part::Rest { b")" } else { b"fd: 4" };
        Line { entered, dur, comm: comm.as_bytes(), tid, call: b"fsync", args, part, ret }
    }

    #[test]
    fn a_call_is_one_line_or_two() {
        let begun = line(Some(301_064_000), None, "python3", 221, Part::Begun);
        assert_eq!(parsed("   301.064 (         ): python3/221 fsync(fd: 4)      ..."), Some(begun));
        let rest = line(Some(301_064_000), Some(65_862_000), "python3", 221, Part::Rest);
        assert_eq!(parsed("301.064 (65.862 ms): python3/221  ... [continued]: fsync())     = 0"), Some(rest));
        let whole = line(Some(0), Some(185_882_000), "python3", 219, Part::Whole);
        assert_eq!(parsed("     0.000 (185.882 ms): python3/219 fsync(fd: 4)    = 0"), Some(whole));
        let rest = line(None, None, "", 213, Part::Rest);
        assert_eq!(parsed("         ? (         ): :213/213  ... [continued]: fsync())   = 0"), Some(rest));
    }

    #[test]
    fn a_thread_may_have_any_name_or_none() {
        let of = |text: &'static str| {
            let task = task(text.as_bytes());
            (std::str::from_utf8(task.comm).expect("the names are ASCII"), task.tid)
        };
        assert_eq!(of("kworker/u8:2/41 fsync("), ("kworker/u8:2", 41));
        assert_eq!(of("(sd-pam)/12 fsync("), ("(sd-pam)", 12));
        assert_eq!(of("Web Content/7 fsync("), ("Web Content", 7));
        assert_eq!(of(":213/213 fsync("), ("", 213));
        assert_eq!(of("fsync(fd: 3</a/data/7 b>)"), ("", UNKNOWN_TASK));
        assert_eq!(of("fsync(fd: 3)"), ("", UNKNOWN_TASK));
    }

    #[test]
    fn results_and_paths() {
        assert_eq!(result(b"-1 EBADF (Bad file descriptor)"), Some(-9));
        assert_eq!(result(b"-1"), None);
        assert_eq!(result(b"-1 EI"), None);
        assert_eq!(result(b"0"), Some(0));
        assert_eq!(result(b"0x7f0000000000"), Some(0x7f00_0000_0000));
        assert_eq!(result(b"-1 ENOTANERROR (x)"), None);
        assert_eq!(path(b"fd: 3</data/a, b>"), Some(&b"/data/a, b"[..]));
        assert_eq!(path(b"fd: 3</data/a>, offset: 0"), Some(&b"/data/a"[..]));
        assert_eq!(path(b"fd: 3<socket:[1]>"), None);
        assert_eq!(path(b"fd: 3"), None);
    }

    #[test]
    fn msync_syncs_if_it_waits() {
        let of = |flags: &str| {
            parsed(&format!("1.000 ( 0.010 ms): a/1 msync(start: 0x1, len: 4096, flags: {flags}) = 0"))?.op()
        };
        assert_eq!(of("SYNC"), Some(Op::Msync));
        assert_eq!(of("SYNC|INVALIDATE"), Some(Op::Msync));
        assert_eq!(of("ASYNC"), None);
    }

    #[test]
    fn what_perf_trace_does_not_print_is_no_call() {
        for text in [
            "0.000 (1.000 ms): a/1 fsync(fd: 4)",
            "0.000 (         ): a/1 fsync(fd: 4) = 0",
            "? (         ): a/1 fsync(fd: 4) ...",
            "0.00 (1.000 ms): a/1 fsync(fd: 4) = 0",
            "0.000 (1.000 ms) a/1 fsync(fd: 4) = 0",
            "0.000 (1.000 ms): a/1 fsync(fd: 4) = ",
            "0.000 (1.000 ms): a/1 f-sync(fd: 4) = 0",
            "0.000 fsync(fd: 4) = 0",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
