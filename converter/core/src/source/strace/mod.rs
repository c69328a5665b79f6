//! The text of strace: system calls only, and nothing that the file system does in them.
//!
//! Reads the output of `-f`, `-ff` or a single thread, with times by `-t`, `-tt`, `-ttt` or `-r`, and optionally `-T`, `-y`, `-yy`, `-Y`,
//! `-k`, `-X` and `-C`. Without times a log is refused.
//!
//! ```text
//! 2694  1795196964.488395 openat(AT_FDCWD, "/run/mnt/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000707>
//! 2694  1795196964.493858 fsync(3 <unfinished ...>
//! 2695  1795196964.502176 write(4, "b"..., 200) = 200 <0.001046>
//! 2694  1795196964.503123 <... fsync resumed>) = 0 <0.003689>
//! 2694  1795196964.504110 +++ exited with 0 +++
//! ```
//!
//! Lines are parsed independently and in parallel. But the meaning of a line may depend on lines far before it: the start of a call,
//! the file of a descriptor, midnight. So `settle` makes the events afterwards, in the order of the lines.

mod args;
mod errno;
mod fast_path;
mod line;
mod state;
mod syscall;

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use memchr::{memchr, memmem};

use self::args::{Args, descriptor, list_end, path_of, quoted, unescape};
use self::fast_path::{FastCall, parse_fast};
use self::line::{Call, Clock, PID_COLUMN, Phase, Prefix, Returned, Text, Time};
use self::state::ThreadTable;
use self::syscall::{Action, Known, call_action, ended, resumed};
use super::cursor::{Cursor, all_digits, digit_and_micros, whole};
use super::{Batch, NoteKind, Parse, Reader, Source, SourceOptions, last_newline, lines};
use crate::error::{Error, Refused, Result};
use crate::event::UNKNOWN_TASK;
use crate::input::Input;
use crate::names::NameId;

pub const NAME: &str = "strace";
/// Number of lines that format detection reads.
const SNIFFED_LINES: usize = 200;
/// strace's message to its user, on a line of its own or in the middle of another.
const MESSAGE: &[u8] = b"strace: Process ";
/// Common system calls, some of which any strace log contains. They distinguish it from ltrace, whose lines look the same.
const COMMON: &str = "access arch_prctl bind brk chdir clock_nanosleep connect epoll_wait exit_group faccessat faccessat2 fallocate \
    fchmod fchown fstat ftruncate futex getcwd getdents64 getpid getrandom gettid getuid io_getevents io_submit \
    ioctl kill link linkat lseek lstat madvise mkdir mkdirat mmap mprotect munmap nanosleep newfstatat openat2 pause \
    poll ppoll pread64 preadv preadv2 prlimit64 read readlink readlinkat readv recvfrom recvmsg restart_syscall rseq \
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait select sendmsg sendto set_robust_list set_tid_address \
    stat statfs statx symlink symlinkat tgkill umask uname unlink unlinkat wait4 waitid";

pub struct Strace;

impl Source for Strace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let (mut ours, mut others) = (0, 0);
        for line in whole_lines(head).filter(|line| !is_stack(line) && !is_message(line)).take(SNIFFED_LINES) {
            match Prefix::take(line).and_then(|prefix| Text::of(prefix.rest)) {
                Some(Text::Call { phase, name, rest }) => {
                    let known = is_io_uring(name, rest)
                        || COMMON.split(' ').any(|common| common.as_bytes() == name)
                        || Known::of(name).is_some();
                    if known && (phase != Phase::Whole || Call::of(rest, phase).is_ok()) {
                        ours += 1;
                    } else {
                        // A call that is new tells nothing.
                        others += usize::from(!known && Call::of(rest, phase).is_err());
                    }
                }
                Some(Text::Signal(text)) if text.starts_with(b"SIG") || text.starts_with(b"stopped by ") => ours += 1,
                Some(Text::Ended(text)) if text.starts_with(b"exited with ") || text.starts_with(b"killed by ") => {
                    ours += 1;
                }
                _ => others += 1,
            }
        }
        ours > others
    }

    fn pid_is_process(&self, _: &[u8]) -> Option<bool> {
        Some(false)
    }

    /// Without PIDs it is the log of one thread, of which there may be several side by side (`-ff`).
    fn is_standalone(&self, head: &[u8]) -> bool {
        whole_lines(head).filter_map(Prefix::take).all(|prefix| prefix.tid.is_none())
    }

    fn lies_in_parts(&self) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let path = input.path.clone();
        let clock = clock_of(input.head()).ok_or_else(|| Error::Read {
            path: path.clone(),
            source: Refused::error(
                "its lines do not begin with a time",
                "record with times: strace -f -ttt -T -yy -o FILE COMMAND",
            ),
        })?;
        if clock == Clock::Relative && self.is_standalone(input.head()) && counts_from_others(input.head()) {
            return Err(Error::Read {
                path,
                source: Refused::error(
                    "a line of it comes sooner than the call before it has returned: with -ff, -r counts from the lines of other files, too",
                    "record with times that count from one zero: strace -ff -ttt -T -yy -o FILE COMMAND",
                ),
            });
        }
        let name = match clock {
            Clock::Unix => "realtime",
            Clock::Day => "time_of_day",
            Clock::Relative => "relative",
        };
        let parse = Arc::new(Records { clock, keep_extras: options.keep_extras });
        let first = first_task(&path, input.head());
        let settle = Box::new(ThreadTable::new(clock, first, begins_with_exec(input.head()), options.keep_extras));
        let facts = vec![("clock", name.to_owned()), ("recorder", NAME.to_owned())];
        Ok(Reader { settle: Some(settle), facts, ..Reader::of_text(cut, parse, input) })
    }
}

/// Event names in the low-level log of lines that are not calls.
const SIGNAL: &[u8] = b"signal";
const ENDED: &[u8] = b"ended";

/// Returns the event name of a call in the low-level log, where `exit` would mean the end of a request.
fn log_name(name: &[u8]) -> &[u8] {
    if name == b"exit" { b"_exit" } else { name }
}

/// Returns whether a call passes work to io_uring, which strace cannot see, or a sync to Linux AIO, whose end strace does not see.
pub(super) fn is_io_uring(name: &[u8], args: &[u8]) -> bool {
    match name {
        b"io_uring_setup" | b"io_uring_enter" => true,
        b"io_submit" => memmem::find(args, b"SYNC").is_some(),
        _ => false,
    }
}

/// Iterates over the complete lines of a head; the last one may be cut off.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memrchr(b'\n', head).unwrap_or(head.len());
    lines(&head[..end]).filter(|line| !line.trim_ascii().is_empty())
}

fn is_stack(line: &[u8]) -> bool {
    line.starts_with(b" > ")
}

/// Returns whether this is a message of strace between the calls.
fn is_message(line: &[u8]) -> bool {
    match line {
        [b's', ..] => line.starts_with(b"strace: "),
        [b'[', ..] => line.starts_with(b"[ Process PID="),
        // The summary that `-C` prints at the end.
        [b'%', ..] => line.starts_with(b"% time "),
        [b'-', ..] => line.starts_with(b"------ ----"),
        [b' ' | b'1', ..] => is_summary(line),
        _ => false,
    }
}

/// Matches a summary row, `  0.08    0.000003           1         3           gettid`: share of time, seconds and counts in fixed columns.
fn is_summary(line: &[u8]) -> bool {
    const SHARE: usize = 6;
    const SECONDS: usize = 12;
    let Some((share, rest)) = line.split_at_checked(SHARE) else { return false };
    let Some((seconds, rest)) = rest.split_at_checked(SECONDS) else { return false };
    let is_decimal = |text: &[u8], decimals: usize| {
        let text = text.trim_ascii_start();
        text.len() > decimals + 1
            && text.iter().rev().enumerate().all(|(i, b)| if i == decimals { *b == b'.' } else { b.is_ascii_digit() })
    };
    is_decimal(share, 2) && is_decimal(seconds, 6) && rest.first() == Some(&b' ')
}

/// Returns the clock of the first time.
fn clock_of(head: &[u8]) -> Option<Clock> {
    prefixes(head).find_map(|prefix| prefix.time).map(|time| time.clock)
}

/// Returns whether the first call is the exec that starts the program.
fn begins_with_exec(head: &[u8]) -> bool {
    let first = whole_lines(head).filter_map(Prefix::take).find_map(|prefix| match Text::of(prefix.rest) {
        Some(Text::Call { phase, name, .. }) => Some((phase, name)),
        _ => None,
    });
    first.is_some_and(|(phase, name)| phase != Phase::Resumed && Known::of(name) == Some(Known::Exec))
}

/// Iterates over the line prefixes of a head.
fn prefixes(head: &[u8]) -> impl Iterator<Item = Prefix<'_>> {
    whole_lines(head).filter_map(Prefix::take).filter(|prefix| Text::of(prefix.rest).is_some())
}

/// Returns whether relative times cannot refer to the previous line of this log: a time is shorter than the duration of the call on that
/// line.
fn counts_from_others(head: &[u8]) -> bool {
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
fn first_task(path: &str, head: &[u8]) -> u32 {
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
    number.filter(|tid| (1..=line::MAX_PID as u32).contains(tid)).unwrap_or(UNKNOWN_TASK)
}

/// Parses `strace: Process 12 attached`, which a terminal receives in the middle of a line. Returns the text before it, and the PID.
fn message(line: &[u8]) -> Option<(&[u8], u32)> {
    if !line.ends_with(b"tached") {
        return None;
    }
    let line = line.strip_suffix(b" attached").or_else(|| line.strip_suffix(b" detached"))?;
    let at = memmem::rfind(line, MESSAGE)?;
    let number = whole(&line[at + MESSAGE.len()..], Cursor::decimal)?;
    Some((&line[..at], u32::try_from(number).ok()?))
}

/// Stack lines belong to the call before them. Text after a message belongs to the line that the message interrupts.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |before, after| {
        let may_continue = before.ends_with(b"tached") || before.ends_with(b"tached\r");
        // Fewer bytes could be the start of a stack line.
        after.len() >= 3 && !is_stack(after) && !may_continue
    })
}

/// A parsed line. Names are interned in the batch.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u32,
    tid: Option<u32>,
    /// Name of the thread, if printed.
    comm: NameId,
    /// Relative to the start of the chunk if the clock is relative, else as printed.
    time: i64,
    resolution: i64,
    phase: Phase,
    known: Option<Known>,
    action: Action,
    /// Path or comm, depending on `action`.
    name: NameId,
    /// Path of the returned descriptor, if printed.
    file: NameId,
    ret: Option<i64>,
    dur: Option<i64>,
    stack: NameId,
    word: NameId,
    /// Range in `DeferredLines::extras`.
    extras: (u32, u32),
}

/// The parsed lines of a chunk, which `settle` turns into events.
#[derive(Default)]
struct DeferredLines {
    lines: Vec<Line>,
    extras: Vec<(NameId, NameId)>,
    /// Times of the first and the last line.
    times: Option<(i64, i64)>,
}

struct Records {
    clock: Clock,
    keep_extras: bool,
}

impl Parse for Records {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut deferred =
            batch.aside.take().and_then(|deferred| deferred.downcast::<DeferredLines>().ok()).unwrap_or_default();
        deferred.lines.clear();
        deferred.extras.clear();
        deferred.times = None;
        let mut parser = Parser {
            records: self,
            batch,
            deferred: &mut deferred,
            in_event: None,
            stack: None,
            last_unneeded: None,
            noted_threads: HashSet::default(),
            is_ended: true,
        };
        parser.chunk(chunk);
        batch.aside = Some(deferred);
    }
}

struct Parser<'a> {
    records: &'a Records,
    batch: &'a mut Batch,
    deferred: &'a mut DeferredLines,
    /// The line that a stack may follow; `Some(None)` is a line that needs no stack.
    #[expect(clippy::option_option, reason = "no line, one without a stack, or one with")]
    in_event: Option<Option<usize>>,
    /// Byte range of its stack in the chunk.
    stack: Option<(usize, usize)>,
    /// PID of the previous line, if that line was not needed.
    #[expect(clippy::option_option, reason = "no such line, one without a PID, or one with")]
    last_unneeded: Option<Option<u32>>,
    /// PIDs of all unneeded lines.
    noted_threads: HashSet<u32, FixedState>,
    /// A newline follows the current line. Without one, the log may be cut off in this line.
    is_ended: bool,
}

impl Parser<'_> {
    fn chunk(&mut self, chunk: &[u8]) {
        let mut interrupted: Vec<u8> = Vec::new();
        let mut at = 0;
        while at < chunk.len() {
            let newline = memchr(b'\n', &chunk[at..]);
            self.is_ended = newline.is_some();
            let end = newline.map_or(chunk.len(), |n| at + n);
            let line = chunk[at..end].strip_suffix(b"\r").unwrap_or(&chunk[at..end]);
            self.batch.lines += 1;
            if is_stack(line) {
                // The text after the message continues the line, not the stack below it.
                if !interrupted.is_empty() {
                    self.end_stack(chunk);
                    self.line(&std::mem::take(&mut interrupted));
                }
                match self.in_event {
                    Some(_) => self.stack = Some((self.stack.map_or(at, |(from, _)| from), at + line.len())),
                    None => self.batch.unparsed(line, "a stack line without a call before it"),
                }
            } else if let Some((before, number)) = message(line) {
                interrupted.extend_from_slice(before);
                self.push(Some(number), Action::Attached);
            } else if !interrupted.is_empty() {
                self.end_stack(chunk);
                interrupted.extend_from_slice(line);
                let line = std::mem::take(&mut interrupted);
                self.line(&line);
            } else if line.is_empty() {
                // A stack ends wherever the log may be cut into chunks.
                self.end_stack(chunk);
            } else if !is_message(line) {
                self.end_stack(chunk);
                self.line(line);
            }
            at = end + 1;
        }
        self.end_stack(chunk);
        if !interrupted.is_empty() {
            self.line(&interrupted);
        }
    }

    #[inline]
    fn end_stack(&mut self, chunk: &[u8]) {
        if let Some((from, to)) = self.stack.take()
            && let Some(Some(line)) = self.in_event
        {
            self.deferred.lines[line].stack = self.batch.names.intern(&chunk[from..to]);
        }
        self.in_event = None;
    }

    /// Parses a prefix in the exact form that `-f -ttt` prints. `Prefix::take` parses every prefix, with the same result.
    #[inline]
    fn fast_prefix<'a>(&self, line: &'a [u8]) -> Option<Prefix<'a>> {
        // `1795196964.488395 `
        const TIME: usize = 18;
        const RESOLUTION_NS: i64 = 1000;
        if self.records.clock != Clock::Unix {
            return None;
        }
        let mut cursor = Cursor::new(line);
        let pid = cursor.decimal()?;
        let digits = line.len() - cursor.rest.len();
        // A longer number is not a PID. A padded time has another format.
        let column = if digits <= PID_COLUMN { PID_COLUMN.max(digits + 1) } else { return None };
        let (padding, rest) = cursor.rest.split_at_checked(column - digits)?;
        let (time, rest) = rest.split_first_chunk::<TIME>()?;
        if padding.iter().any(|&b| b != b' ') || !time[8].is_ascii_digit() || time[17] != b' ' || rest.starts_with(b"(")
        {
            return None;
        }
        let (high, low) = (time.first_chunk::<8>()?, time[9..17].first_chunk::<8>()?);
        let (second, micros) = digit_and_micros(*low)?;
        let seconds = all_digits(*high)? * 100 + u64::from(time[8] - b'0') * 10 + second;
        let ns = i64::try_from(seconds * 1_000_000 + micros).ok()?.checked_mul(RESOLUTION_NS)?;
        let time = Time { clock: Clock::Unix, ns, resolution: RESOLUTION_NS };
        Some(Prefix { tid: Some(pid as u32), comm: None, time: Some(time), rest })
    }

    /// Registers the thread of an unneeded line: the set of live threads determines the owner of lines without a PID.
    #[inline]
    fn note_thread(&mut self, tid: Option<u32>) {
        if self.last_unneeded.replace(tid) == Some(tid) {
            return;
        }
        if tid.is_none_or(|tid| self.noted_threads.insert(tid)) {
            self.push(tid, Action::Seen);
        }
    }

    #[inline]
    fn line(&mut self, line: &[u8]) {
        let before = self.deferred.lines.len();
        match self.event(line) {
            Ok(()) if self.deferred.lines.len() > before => {
                let wants_stack =
                    matches!(self.deferred.lines[before].action, Action::Sync { .. } | Action::Write { .. });
                self.in_event = Some(wants_stack.then_some(before));
            }
            Ok(()) => self.in_event = Some(None),
            Err(why) => {
                self.deferred.lines.truncate(before);
                self.batch.unparsed(line, why);
            }
        }
    }

    fn event(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let prefix = self.fast_prefix(line).or_else(|| Prefix::take(line));
        let prefix = prefix.ok_or("it begins with neither a PID, a time nor a call")?;
        if !self.wants_names()
            && let Some(call) = parse_fast(prefix.rest)
        {
            return self.fast_call(&prefix, call);
        }
        let text = Text::of(prefix.rest).ok_or("it is not a call, a signal or the end of a process")?;
        let time = self.time(&prefix)?;
        let (known, action) = match text {
            Text::Call { name, rest, .. } => (Known::of_line(name, rest), Action::Other),
            Text::Signal(_) => (None, Action::Other),
            Text::Ended(text) => (None, ended(text)),
        };
        // The arguments of an unneeded call are not checked, unless the line may be cut off.
        if !self.is_ended
            && known.is_none()
            && let Text::Call { phase, rest, .. } = text
        {
            Call::of(rest, phase)?;
        }
        if known.is_none() && action == Action::Other && !self.records.keep_extras {
            self.batch.other(|| match text {
                Text::Call { name, .. } => log_name(name),
                Text::Signal(_) => SIGNAL,
                Text::Ended(_) => ENDED,
            });
            self.note_thread(prefix.tid);
            return Ok(());
        }
        self.last_unneeded = None;
        if matches!(action, Action::Ended | Action::Superseded { .. }) {
            self.noted_threads.clear();
        }
        let mut line = self.new_line(&prefix, time, known, action);
        match text {
            Text::Call { phase, name, rest } => {
                line.phase = phase;
                self.call(&mut line, known, name, rest)?;
            }
            Text::Signal(text) => self.text_line(&mut line, SIGNAL, text),
            Text::Ended(text) => self.text_line(&mut line, ENDED, text),
        }
        if known == Some(Known::IoUring) && line.phase != Phase::Resumed {
            self.batch.note(NoteKind::IoUring);
        }
        if matches!(line.action, Action::Exit { .. }) {
            self.noted_threads.clear();
        }
        self.deferred.lines.push(line);
        if let Text::Call { rest, .. } = text
            && matches!(known, Some(Known::ReturnsTwo | Known::Receives))
            && line.ret.is_some_and(|ret| ret >= 0)
        {
            self.stored_descriptors(line, known, rest);
        }
        Ok(())
    }

    /// Finds the descriptors that a call stored in its arguments: `pipe([3, 4])`, `cmsg_type=SCM_RIGHTS, cmsg_data=[5</a>]`.
    fn stored_descriptors(&mut self, line: Line, known: Option<Known>, rest: &[u8]) {
        const RIGHTS: &[u8] = b"SCM_RIGHTS, cmsg_data=[";
        let Ok(call) = Call::of(rest, line.phase) else { return };
        let mut text = call.args.text;
        if known == Some(Known::ReturnsTwo) {
            if let Some(list) = Args::of(text).filter_map(|arg| arg.strip_prefix(b"[")).last() {
                self.stored_list(line, list);
            }
            return;
        }
        while let Some(at) = memmem::find(text, RIGHTS) {
            text = &text[at + RIGHTS.len()..];
            self.stored_list(line, text);
        }
    }

    fn stored_list(&mut self, line: Line, text: &[u8]) {
        let Some(end) = list_end(text) else { return };
        for (fd, file) in Args::of(&text[..end]).map_while(descriptor) {
            let file = file.and_then(path_of).map_or(NameId::NONE, |path| self.batch.names.intern(&path));
            self.deferred.lines.push(Line { action: Action::Stored { fd }, file, extras: (0, 0), ..line });
        }
    }

    /// Appends a call that the fast path has parsed.
    #[inline]
    fn fast_call(&mut self, prefix: &Prefix<'_>, call: FastCall<'_>) -> Result<(), &'static str> {
        let time = self.time(prefix)?;
        self.last_unneeded = None;
        let mut line = self.new_line(prefix, time, Some(call.known), call.action);
        line.phase = call.phase;
        line.name = call.path.map_or(NameId::NONE, |path| self.batch.names.intern(&path));
        self.set_result(&mut line, &call.end);
        self.deferred.lines.push(line);
        Ok(())
    }

    #[inline]
    fn new_line(
        &mut self,
        prefix: &Prefix<'_>,
        (time, resolution): (i64, i64),
        known: Option<Known>,
        action: Action,
    ) -> Line {
        let comm = prefix.comm.map_or(NameId::NONE, |comm| self.batch.names.intern(&unescape(comm)));
        Line {
            number: self.batch.lines as u32,
            tid: prefix.tid,
            comm,
            time,
            resolution,
            phase: Phase::Whole,
            known,
            action,
            name: NameId::NONE,
            file: NameId::NONE,
            ret: None,
            dur: None,
            stack: NameId::NONE,
            word: NameId::NONE,
            extras: (0, 0),
        }
    }

    #[inline]
    fn set_result(&mut self, line: &mut Line, end: &Returned<'_>) {
        line.ret = end.ret;
        line.dur = end.dur;
        if let Some(file) = end.file
            && let Some(path) = path_of(file)
        {
            line.file = self.batch.names.intern(&path);
        }
    }

    /// Returns whether event names are needed.
    #[inline]
    fn wants_names(&self) -> bool {
        self.records.keep_extras || self.batch.other_events.is_some()
    }

    /// Returns the time of a line and its resolution. Relative times and times of day are accumulated.
    #[inline]
    fn time(&mut self, prefix: &Prefix<'_>) -> Result<(i64, i64), &'static str> {
        let Time { clock, ns, resolution } = prefix.time.ok_or("it has no time")?;
        if clock != self.records.clock {
            return Err("its time does not have the format of the first line");
        }
        let (first, last) = self.deferred.times.unwrap_or(match clock {
            Clock::Relative => (0, 0),
            Clock::Unix | Clock::Day => (ns, ns),
        });
        let now = match clock {
            Clock::Unix => ns,
            Clock::Relative => last.saturating_add(ns),
            Clock::Day => state::continue_over_midnight(last, ns),
        };
        self.deferred.times = Some((first, now));
        Ok((now, resolution))
    }

    /// Stores the text of a line that only the low-level log shows.
    fn text_line(&mut self, line: &mut Line, word: &[u8], text: &[u8]) {
        if self.wants_names() {
            line.word = self.batch.names.intern(word);
        }
        if self.records.keep_extras {
            let from = self.deferred.extras.len() as u32;
            self.extra(b"text", text);
            line.extras = (from, self.deferred.extras.len() as u32);
        }
    }

    fn extra(&mut self, key: &[u8], value: &[u8]) {
        let (key, value) = (self.batch.names.intern(key), self.batch.names.intern(value));
        self.deferred.extras.push((key, value));
    }

    fn push(&mut self, tid: Option<u32>, action: Action) {
        let number = self.batch.lines as u32;
        let none = NameId::NONE;
        self.deferred.lines.push(Line {
            number,
            tid,
            comm: none,
            time: 0,
            resolution: 0,
            phase: Phase::Whole,
            known: None,
            action,
            name: none,
            file: none,
            ret: None,
            dur: None,
            stack: none,
            word: none,
            extras: (0, 0),
        });
    }

    fn call(&mut self, line: &mut Line, known: Option<Known>, name: &[u8], rest: &[u8]) -> Result<(), &'static str> {
        let call = match Call::of(rest, line.phase) {
            Ok(call) => call,
            // The arguments of an unneeded call are not checked.
            Err(_) if known.is_none() => Call { args: Args::of(rest), end: Returned::default() },
            Err(why) => return Err(why),
        };
        if let Some(known) = known {
            if line.phase == Phase::Resumed {
                line.action = resumed(known);
            } else {
                let (action, text) =
                    call_action(known, name, call.args.clone()).ok_or("its arguments are not those of the call")?;
                line.action = action;
                line.name = text.map_or(NameId::NONE, |text| self.batch.names.intern(&text));
            }
            self.set_result(line, &call.end);
        } else {
            line.ret = call.end.ret;
            line.dur = call.end.dur;
        }
        if self.wants_names() {
            line.word = self.batch.names.intern(log_name(name));
        }
        if self.records.keep_extras {
            let from = self.deferred.extras.len() as u32;
            self.extras(line, known, &call);
            line.extras = (from, self.deferred.extras.len() as u32);
        }
        Ok(())
    }

    fn extras(&mut self, line: &Line, known: Option<Known>, call: &Call<'_>) {
        match line.phase {
            Phase::Whole => {}
            Phase::Begun => self.extra(b"unfinished", b"1"),
            Phase::Resumed => self.extra(b"resumed", b"1"),
        }
        let args = call.args.text.trim_ascii();
        if line.phase != Phase::Resumed || !args.is_empty() {
            self.extra(b"args", args);
        }
        if matches!(line.action, Action::Sync { .. }) {
            return;
        }
        // These fields are only for other calls; the event of a sync stores them itself.
        if known == Some(Known::Rename) && line.phase != Phase::Resumed {
            let paths: Vec<_> = call.args.clone().filter_map(quoted).collect();
            if let [from, to] = &paths[..] {
                self.extra(b"path", from);
                self.extra(b"new_path", to);
            }
        }
        if matches!(line.action, Action::Open { .. }) {
            let path = if line.file.is_some() { line.file } else { line.name };
            if path.is_some() {
                let key = self.batch.names.intern(b"path");
                self.deferred.extras.push((key, path));
            }
        }
        if let Some(ret) = line.ret.filter(|_| !matches!(line.action, Action::Write { .. })) {
            self.extra(b"ret", ret.to_string().as_bytes());
        }
        if let Some(error) = call.end.error {
            self.extra(b"error", error);
        }
        if let Some(dur) = line.dur {
            self.extra(b"dur_ns", dur.to_string().as_bytes());
        }
    }
}
