//! Parses chunks of lines, each line independently of the others. `state` turns the parsed lines into events.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use memchr::{memchr, memmem};

use super::args::{Args, descriptor, list_end, path_of, quoted, unescape};
use super::fast_path::{FastCall, parse_fast};
use super::file_call::{FileArgs, file_args, is_always, kind_of, may_be};
use super::head::has_durations;
use super::line::{Call, Clock, PID_COLUMN, Phase, Prefix, Returned, SECOND_NS, Text, Time, duration};
use super::other_lines::{is_message, is_stack, message};
use super::syscall::{Action, CallName, Known, call_action, ended, killed_by, resumed};
use crate::event::file_op::FileOpKind;
use crate::names::NameId;
use crate::source::cursor::{Cursor, all_digits, digit_and_micros};
use crate::source::time_of_day::continue_over_midnight;
use crate::source::{Batch, NoteKind, Parse, SourceOptions, lines, trim_line};

/// Why a call without a duration is not used.
const NO_DURATION: &str = "it has no duration, and the calls at the begin of the log have one: it is cut off, or a recording without \
    `strace -T` follows; convert that in a file of its own, or record with -T";

/// Time between two lines of a log without times.
const STEP_NS: i64 = 1000;
/// Event names in the low-level log of lines that are not calls.
const SIGNAL: &[u8] = b"signal";
const ENDED: &[u8] = b"ended";
/// Marks the first line of a call that has two, in the low-level log.
pub(super) const UNFINISHED_KEY: &[u8] = b"unfinished";

/// Returns the event name of a call in the low-level log, where `exit` would mean the end of a request.
fn log_name(name: &[u8]) -> &[u8] {
    if name == b"exit" { b"_exit" } else { name }
}

/// A parsed line. Names are interned in the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) number: u32,
    pub(super) tid: Option<u32>,
    /// Name of the thread, if printed.
    pub(super) comm: NameId,
    /// Relative to the start of the chunk if the clock is relative, else as printed.
    pub(super) time: i64,
    pub(super) resolution: i64,
    /// Times of the lines before and after it, whatever their calls. `None` where another chunk has that line.
    pub(super) before: Option<i64>,
    pub(super) after: Option<i64>,
    pub(super) phase: Phase,
    pub(super) known: Option<Known>,
    pub(super) call: CallName,
    pub(super) action: Action,
    /// Path, comm or signal, depending on `action`.
    pub(super) name: NameId,
    /// Path of the returned descriptor, if printed.
    pub(super) file: NameId,
    pub(super) ret: Option<i64>,
    pub(super) dur: Option<i64>,
    /// The duration is cut off.
    pub(super) has_cut_dur: bool,
    pub(super) stack: NameId,
    pub(super) word: NameId,
    /// Range in `DeferredLines::extras`.
    pub(super) extras: (u32, u32),
    pub(super) file_op: FileLine,
}

/// The part of an operation on files that a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileLine {
    None,
    /// Its begin, or all of it: index in `DeferredLines::file_calls`.
    Call(u32),
    /// Its return. `is_certain`: the name of the call says that it is one.
    Return {
        op: FileOpKind,
        is_certain: bool,
    },
}

/// The parsed lines of a chunk, which `settle` turns into events.
#[derive(Default)]
pub(super) struct DeferredLines {
    pub(super) lines: Vec<Line>,
    pub(super) extras: Vec<(NameId, NameId)>,
    pub(super) file_calls: Vec<FileArgs>,
    /// Times of the first and the last line.
    pub(super) times: Option<(i64, i64)>,
    /// Time of the first line. A relative clock begins with the line before it.
    pub(super) first_line: Option<i64>,
}

pub(super) struct Records {
    pub(super) clock: Clock,
    pub(super) keep_extras: bool,
    pub(super) keep_file_ops: bool,
    /// Bytes before the time of the log's first line with a PID.
    pub(super) time_column: usize,
    /// The blanks between its PID and its time.
    pub(super) pid_blanks: usize,
    /// Nearly all calls at the start of the log have a duration.
    pub(super) has_durations: bool,
}

impl Records {
    pub(super) fn new(clock: Clock, options: &SourceOptions, head: &[u8]) -> Self {
        let &SourceOptions { keep_extras, keep_file_ops, .. } = options;
        let (digits, time_column) = lines(head).find_map(pid_columns).unwrap_or_default();
        let pid_blanks = time_column - digits;
        let has_durations = has_durations(head);
        Self { clock, keep_extras, keep_file_ops, time_column, pid_blanks, has_durations }
    }
}

impl Parse for Records {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut deferred =
            batch.deferred.take().and_then(|deferred| deferred.downcast::<DeferredLines>().ok()).unwrap_or_default();
        deferred.lines.clear();
        deferred.extras.clear();
        deferred.file_calls.clear();
        deferred.times = None;
        deferred.first_line = None;
        let mut parser = Parser {
            records: self,
            batch,
            deferred: &mut deferred,
            in_event: None,
            stack: None,
            last_unneeded: None,
            before: None,
            noted_threads: HashSet::default(),
            is_ended: true,
        };
        parser.chunk(chunk);
        batch.deferred = Some(deferred);
    }
}

/// Whether a text holds a time of day, or one since 1970: another line was joined to it.
fn has_time(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut rest = text;
    while let Some(at) = rest.iter().position(u8::is_ascii_digit) {
        let len = digits(&rest[at..]);
        let after = &rest[at + len..];
        let is_time = match after.first() {
            Some(b'.') => len >= 9 && digits(&after[1..]) >= 3,
            Some(b':') => digits(&after[1..]) == 2 && after.get(3) == Some(&b':'),
            _ => false,
        };
        if is_time {
            return true;
        }
        rest = after;
    }
    false
}

/// The digits of the PID that a line begins with, and with the blanks after it. `None` without a PID.
fn pid_columns(line: &[u8]) -> Option<(usize, usize)> {
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    let blanks = line[digits..].iter().take_while(|b| **b == b' ').count();
    (digits > 0 && blanks > 0).then_some((digits, digits + blanks))
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
    /// Time of the line before the current one.
    before: Option<i64>,
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
            let line = trim_line(&chunk[at..end]);
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
        self.drop_cut_results(chunk);
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

    /// Whether the time of a line begins where it does in the other lines. strace pads a short PID to `PID_COLUMN`, strace-log-merge pads all
    /// PIDs to the longest one, and what collapses blanks leaves one.
    #[inline]
    fn is_in_column(&self, line: &[u8]) -> bool {
        let Some((digits, column)) = pid_columns(line) else { return true };
        let columns = [digits + 1, digits + self.records.pid_blanks, PID_COLUMN, self.records.time_column];
        columns.contains(&column)
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
                let line = &self.deferred.lines[before];
                let wants_stack =
                    matches!(line.action, Action::Sync { .. } | Action::Write { .. }) || line.file_op != FileLine::None;
                self.in_event = Some(wants_stack.then_some(before));
            }
            Ok(()) => self.in_event = Some(None),
            Err(why) => {
                self.deferred.lines.truncate(before);
                self.batch.unparsed(line, why);
                if let Some(tid) = self.torn_call(line) {
                    self.push(tid, Action::Torn);
                }
            }
        }
    }

    /// Whether an unparsed line may have been a call, rather than the text of a program. Returns its thread, if it says that.
    #[cold]
    #[expect(clippy::option_option, reason = "no call, a call of an unknown thread, or one of a known thread")]
    fn torn_call(&self, line: &[u8]) -> Option<Option<u32>> {
        let Some(Prefix { tid, time, rest, .. }) = Prefix::take(line) else {
            let begins = line.starts_with(b"[pid") || line.first().is_some_and(u8::is_ascii_digit);
            return (begins && self.records.clock != Clock::LineOrder).then_some(None);
        };
        let is_call = time.is_some() || Text::of(rest).is_some();
        is_call.then_some(tid.filter(|_| !has_time(rest)))
    }

    /// Where nearly all calls have a duration, one without a duration is cut off: its result may have had more digits. A sync has none to lose,
    /// as it returns 0 or an error.
    fn drop_cut_results(&mut self, chunk: &[u8]) {
        if !self.records.has_durations {
            return;
        }
        let is_returned = |line: &&Line| line.known.is_some() && line.ret.is_some();
        let is_cut = |line: &&Line| line.dur.is_none();
        let mut texts = chunk.split(|&b| b == b'\n').zip(1u32..).peekable();
        for line in self.deferred.lines.iter_mut().filter(|line| is_returned(&&**line) && is_cut(&&**line)) {
            if matches!(line.known, Some(Known::Sync(_))) {
                line.has_cut_dur = true;
                continue;
            }
            if let Some((text, number)) = texts.find(|(_, number)| *number == line.number) {
                let kind = NoteKind::unparsed(trim_line(text), NO_DURATION);
                self.batch.insert_note(u64::from(number), kind);
            }
            *line = Line { action: Action::Torn, known: None, ret: None, ..*line };
        }
    }

    fn event(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let prefix = if let Some(prefix) = self.fast_prefix(line) {
            prefix
        } else {
            let prefix = Prefix::take(line).ok_or("it begins with neither a PID, a time nor a call")?;
            let is_aligned = prefix.time.is_some_and(|time| time.clock != Clock::Relative);
            if is_aligned && !self.is_in_column(line) {
                return Err("its PID has more digits than its column: it is joined to the line before it");
            }
            prefix
        };
        if !self.wants_names()
            && !self.records.keep_file_ops
            && let Some(call) = parse_fast(prefix.rest)
        {
            return self.fast_call(&prefix, call);
        }
        let text = Text::of(prefix.rest).ok_or("it is not a call, a signal or the end of a process")?;
        let time = self.time(&prefix)?;
        self.batch.has_interrupted_calls |= matches!(text, Text::Call { phase: Phase::Resumed, .. });
        let (known, action) = match text {
            Text::Call { name, rest, phase } => {
                let known = Known::of_line(name, rest);
                (known.or_else(|| self.is_file_op(name, rest, phase).then_some(Known::FileOp)), Action::Other)
            }
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
                line.call = CallName::of(name);
                self.call(&mut line, known, name, rest)?;
            }
            Text::Signal(text) => self.text_line(&mut line, SIGNAL, text),
            Text::Ended(text) => {
                line.name = killed_by(text).map_or(NameId::NONE, |signal| self.batch.names.intern(signal));
                self.text_line(&mut line, ENDED, text);
            }
        }
        // A container may refuse it, and the program then goes without.
        if known == Some(Known::IoUring) && line.phase != Phase::Resumed && line.ret.is_none_or(|ret| ret >= 0) {
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

    /// Whether a call is wanted only as an operation on files.
    #[inline]
    fn is_file_op(&self, name: &[u8], rest: &[u8], phase: Phase) -> bool {
        self.records.keep_file_ops && if phase == Phase::Resumed { kind_of(name).is_some() } else { may_be(name, rest) }
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
        line.call = call.call;
        line.name = call.path.map_or(NameId::NONE, |path| self.batch.names.intern(&path));
        self.set_result(&mut line, &call.end)?;
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
            before: self.before,
            after: None,
            phase: Phase::Whole,
            known,
            call: CallName::default(),
            action,
            name: NameId::NONE,
            file: NameId::NONE,
            ret: None,
            dur: None,
            has_cut_dur: false,
            stack: NameId::NONE,
            word: NameId::NONE,
            extras: (0, 0),
            file_op: FileLine::None,
        }
    }

    #[inline]
    fn set_result(&mut self, line: &mut Line, end: &Returned<'_>) -> Result<(), &'static str> {
        line.ret = end.ret;
        line.dur = end.dur;
        if !self.is_ended && end.dur.is_none() {
            // More of the line may be missing.
            if end.ret == Some(-1) && end.error.is_none() {
                return Err("its error is cut off");
            }
            let is_count = self.records.keep_file_ops && matches!(line.known, Some(Known::Write | Known::FileOp));
            if is_count || matches!(line.known, Some(Known::Open | Known::Returns | Known::Dup | Known::Fcntl)) {
                line.ret = None;
            }
        }
        if let Some(file) = end.file
            && let Some(path) = path_of(file)
        {
            line.file = self.batch.names.intern(&path);
        }
        Ok(())
    }

    /// Returns whether event names are needed.
    #[inline]
    fn wants_names(&self) -> bool {
        self.records.keep_extras || self.batch.other_events.is_some()
    }

    /// Returns the time of a line and its resolution. Relative times and times of day are accumulated.
    #[inline]
    fn time(&mut self, prefix: &Prefix<'_>) -> Result<(i64, i64), &'static str> {
        if self.records.clock == Clock::LineOrder {
            return self.time_by_order(prefix);
        }
        let Time { clock, ns, resolution } = prefix.time.ok_or("it has no time")?;
        if clock != self.records.clock {
            return Err("its time does not have the format of the first line");
        }
        self.before = self.deferred.times.map(|(_, last)| last);
        let (first, last) = self.deferred.times.unwrap_or(match clock {
            Clock::Relative | Clock::LineOrder => (0, 0),
            Clock::Unix | Clock::Day => (ns, ns),
        });
        let now = match clock {
            Clock::Unix => ns,
            Clock::Relative | Clock::LineOrder => last.saturating_add(ns),
            Clock::Day => continue_over_midnight(last, ns),
        };
        self.deferred.times = Some((first, now));
        self.deferred.first_line.get_or_insert(now);
        if let Some(line) = self.deferred.lines.last_mut().filter(|line| line.phase == Phase::Begun) {
            line.after.get_or_insert(now);
        }
        Ok((now, resolution))
    }

    /// Returns the time of a line in a log without times: after the calls of the lines before it, and a step later.
    #[cold]
    fn time_by_order(&mut self, prefix: &Prefix<'_>) -> Result<(i64, i64), &'static str> {
        if prefix.time.is_some() {
            return Err("it has a time, and the lines before it have none");
        }
        let now = self.deferred.times.map_or(0, |(_, last)| last);
        // `state` adds what an interrupted call lasted longer than the lines in between.
        let is_resumed = prefix.rest.starts_with(b"<... ");
        let dur = if is_resumed { 0 } else { duration(prefix.rest).unwrap_or(0) };
        self.deferred.times = Some((0, now.saturating_add(dur).saturating_add(STEP_NS)));
        Ok((now, SECOND_NS))
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
            before: None,
            after: None,
            phase: Phase::Whole,
            known: None,
            call: CallName::default(),
            action,
            name: none,
            file: none,
            ret: None,
            dur: None,
            has_cut_dur: false,
            stack: none,
            word: none,
            extras: (0, 0),
            file_op: FileLine::None,
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
                // The first line has all arguments of these calls.
                if matches!(known, Known::Sync(_) | Known::Open | Known::Close | Known::Dup)
                    && !call.args.text.is_empty()
                {
                    return Err("arguments of another line follow the call");
                }
                line.action = resumed(known);
            } else {
                let (action, text) =
                    call_action(known, name, call.args.clone()).ok_or("its arguments are not those of the call")?;
                line.action = action;
                line.name = text.map_or(NameId::NONE, |text| self.batch.names.intern(&text));
            }
            if self.records.keep_file_ops {
                line.file_op = self.file_line(line.phase, name, &call)?;
            }
            self.set_result(line, &call.end)?;
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

    fn file_line(&mut self, phase: Phase, name: &[u8], call: &Call<'_>) -> Result<FileLine, &'static str> {
        if phase == Phase::Resumed {
            let is_certain = is_always(name);
            return Ok(kind_of(name).map_or(FileLine::None, |op| FileLine::Return { op, is_certain }));
        }
        let Some(args) = file_args(name, call.args.clone(), &mut self.batch.names)? else { return Ok(FileLine::None) };
        self.deferred.file_calls.push(args);
        Ok(FileLine::Call(self.deferred.file_calls.len() as u32 - 1))
    }

    fn extras(&mut self, line: &Line, known: Option<Known>, call: &Call<'_>) {
        match line.phase {
            Phase::Whole => {}
            Phase::Begun => self.extra(UNFINISHED_KEY, b"1"),
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
