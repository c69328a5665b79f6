//! The lines that bpftrace scripts print: `TIME PID COMM EVENT DATA`, with stack lines below the entry of a syscall. The format is that of
//! the thesis, after which `--from` names it.
//!
//! The patched kernel's script of the thesis and the recorders in `bpf/` write it with bpftrace. Columns may be aligned with spaces
//! or tabs, and COMM may contain spaces or event names. A log of our own recorders begins with a header (`# syncline-log`) that
//! names the clock, the script and the escapes of names; it ends with counts of events and `# end`.
//!
//! ```text
//! 252 53 bio_aof fdatasync
//!     768c __GI_fdatasync+60 (/usr/lib64/libc.so.6)
//! 294 53 bio_aof start id 8 start 0 end 4294967295 datasync 1 path /var/lib/valkey/a.aof
//! 313 53 bio_aof bio_add_folio id 8 bio 0x762 start 1424 len 4096
//! 321 53 bio_aof bio_submit id 8 bio 0x762
//! 661 0 swapper/26 bio_complete bio 0x762
//! 856 53 bio_aof exit id 8 ret 0
//! ```

mod fields;
mod header;

use memchr::memchr;

use self::fields::{find_event, find_other_event, parse_fast_data};
use self::header::{END, is_attach, is_header, is_map, is_mount, is_warning, lost_events, parse_event_count};
pub(super) use self::header::{introduce, own_header};
use super::cursor::{Cursor, whole};
use super::escape;
use super::event_names::{EventName, bio_flags, bio_size, extra_key};
use super::torn::facts_of;
use super::{
    Batch, Extra, InputTraits, Lines, NoteKind, PathEscape, Reader, Source, SourceOptions, last_newline, lines,
};
use crate::error::Result;
use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};
use crate::input_file::Input;
use crate::names::NameId;

/// `TASK_COMM_LEN` without its NUL.
const COMM_BYTES: usize = 15;
/// `TASK_COMM_LEN`, with each byte written as `\xNN`.
const COMM_HEX_BYTES: usize = 64;

/// Digits of a time in ns, a tenth of a second after the machine has started. No program's text begins with such a number.
const TIME_DIGITS: usize = 9;

/// bpftrace indents stack lines by eight blanks, some scripts by four.
const STACK_INDENT: &[u8] = b"    ";

/// The clock of bpftrace's `nsecs`.
const BPFTRACE_CLOCK: &str = "boottime";

pub struct BpftraceText;

impl Source for BpftraceText {
    fn name(&self) -> &'static str {
        "bpftrace"
    }

    fn earlier_name(&self) -> Option<&'static str> {
        Some("thesis")
    }

    fn hidden_losses(&self) -> &'static str {
        "bpftrace reports events that its buffers lose, but not probes that the kernel skips: a lost event may \
         leave no gap, so nothing here can say that none is missing. Only the counts at the end of a \
         log by `syncline record` show it. A path or stack frame that is cut short looks like a shorter one."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut batch = Batch::default();
        self.parse_lines(&SourceOptions::default(), head, &mut batch);
        batch.has_whole_events()
            || own_header(head).is_some()
            || head
                .split(|&b| b == b'\n')
                .find(|l| !l.trim_ascii().is_empty())
                .is_some_and(|l| is_header(l.trim_ascii()) || is_attach(l.trim_ascii()))
    }

    fn describe(&self, input: &Input) -> InputTraits {
        describe(input.head())
    }

    fn is_rest_of_stack(&self, head: &[u8]) -> bool {
        let mut lines = lines(head).filter(|line| !line.trim_ascii().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| matches!(line[0], b' ' | b'\t'))
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let mut options = *options;
        let facts = introduce(input.head(), &mut options);
        let follows_syncs = own_header(input.head()).is_some();
        let mut reader = Reader::of_lines(self, input, &options);
        reader.records_requests = follows_syncs;
        reader.facts = facts;
        reader.piece_options = Some(options);
        Ok(reader)
    }
}

/// As `Source::describe`, for text that `Thesis` parses.
pub(super) fn describe(head: &[u8]) -> InputTraits {
    let has_own_header = own_header(head).is_some();
    let first = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    let starts_log = has_own_header || first.is_some_and(|line| is_header(line) || is_attach(line));
    InputTraits {
        is_standalone: starts_log,
        starts_log,
        records_its_end: has_own_header,
        default_clock: Some(BPFTRACE_CLOCK),
        ..InputTraits::default()
    }
}

impl BpftraceText {
    /// Says of a torn line that another format holds what it was about.
    #[cold]
    pub(super) fn torn_line(options: &SourceOptions, text: &[u8], batch: &mut Batch) {
        let line = text.split(|&b| b == b'\n').next().unwrap_or_default();
        Parser::new(options, batch).torn(line);
    }
}

impl Lines for BpftraceText {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        // Stack lines and the inner lines of a printed map belong to the line before them.
        last_newline(bytes, |_, after| {
            !matches!(after.first(), Some(b' ' | b'\t' | b'\n' | b'\r' | b'[' | b'(' | b']') | None)
        })
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        Parser::new(options, batch).chunk(chunk);
    }
}

/// Event names of the four most frequent kinds of line.
const HOT_NAMES: [&[u8]; 4] = [b"bio_add_folio", b"bio_submit", b"bio_complete", b"exit"];

struct Parser<'a, 'b> {
    options: &'a SourceOptions,
    batch: &'b mut Batch,
    /// Cache of the last comm of a few threads: its bytes, its length, its interned name.
    comms: [(u128, u8, NameId); 64],
    fs: NameId,
    /// The call entry whose stack lines may follow, and the byte range of these lines in the chunk.
    stack_of: Option<(usize, Option<(usize, usize)>)>,
    in_map: bool,
}

impl<'a, 'b> Parser<'a, 'b> {
    fn new(options: &'a SourceOptions, batch: &'b mut Batch) -> Self {
        let fs = batch.names.intern(b"ext4");
        Self { options, batch, comms: [(0, 0, NameId::NONE); 64], fs, stack_of: None, in_map: false }
    }

    fn chunk(&mut self, chunk: &[u8]) {
        let mut at = 0;
        while at < chunk.len() {
            if let Some(taken) = self.hot_event(chunk, at) {
                self.batch.lines += 1;
                at += taken;
                continue;
            }
            let end = memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |n| at + n);
            let line = chunk[at..end].strip_suffix(b"\r").unwrap_or(&chunk[at..end]);
            self.batch.lines += 1;
            match line.first() {
                Some(b'0'..=b'9') => {
                    self.end_stack(chunk);
                    self.in_map = false;
                    match self.event(line) {
                        Ok(()) => {}
                        Err(_) if is_mount(line) => {}
                        Err(why) => {
                            self.batch.unparsed(line, why);
                            self.torn(line);
                        }
                    }
                }
                None => {}
                Some(b' ' | b'\t') => match &mut self.stack_of {
                    Some((_, Some((_, stack_end)))) => *stack_end = at + line.len(),
                    Some((_, stack @ None)) => *stack = Some((at, at + line.len())),
                    None if self.in_map || line.trim_ascii().is_empty() => {}
                    None => self.batch.unparsed(line, "a stack line without a syscall entry before it"),
                },
                Some(_) => {
                    self.end_stack(chunk);
                    self.non_event_line(line);
                }
            }
            at = end + 1;
        }
        self.end_stack(chunk);
    }

    #[inline]
    fn end_stack(&mut self, chunk: &[u8]) {
        if let Some((event, Some((from, to)))) = self.stack_of.take() {
            let name = self.batch.names.intern(&chunk[from..to]);
            if let Kind::CallEnter { stack, .. } = &mut self.batch.events[event].kind {
                *stack = name;
            }
        }
    }

    /// Handles lines that are not events: the header and bpftrace's own messages.
    fn non_event_line(&mut self, line: &[u8]) {
        if line.first() == Some(&b'#') {
            self.in_map = false;
            if line.strip_prefix(END).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit)) {
                self.batch.note(NoteKind::End);
            }
            return;
        }
        if is_map(line) {
            self.in_map = true;
            if let Some((kind, count)) = parse_event_count(line) {
                self.batch.note(NoteKind::Counted { kind, count });
            }
            return;
        }
        if self.in_map && matches!(line[0], b'[' | b'(' | b']') {
            return;
        }
        self.in_map = false;
        if is_header(line) || is_attach(line) {
            return;
        }
        if is_warning(line) {
            // An indented excerpt of the script follows.
            self.in_map = true;
            return;
        }
        if let Some(count) = lost_events(line) {
            self.batch.note(NoteKind::Lost { count });
            return;
        }
        self.batch.unparsed(line, "it does not begin with a time");
    }

    /// Decodes a line of the four most frequent kinds in its exact printed form and returns its length with the line end.
    /// Returns `None` for any other line; `event` decodes those, and gives the same result for these. This function does not
    /// search for the end of the line first.
    #[inline]
    fn hot_event(&mut self, chunk: &[u8], at: usize) -> Option<usize> {
        let mut cursor = Cursor::new(&chunk[at..]);
        let time = i64::try_from(cursor.decimal()?).ok()?.checked_mul(self.options.time_unit_ns)?;
        cursor.literal(b" ")?;
        let task = u32::try_from(cursor.decimal()?).ok().filter(|&t| i32::try_from(t).is_ok())?;
        cursor.literal(b" ")?;
        let with_comm = cursor.rest;
        let comm_len = with_comm.iter().take(COMM_BYTES + 1).position(|&b| matches!(b, b' ' | b'\n' | b'\t'))?;
        if comm_len == 0 || with_comm[comm_len] != b' ' {
            return None;
        }
        let (comm, data) = with_comm.split_at(comm_len);
        let (hot, (kind, rest)) = if let Some(data) = data.strip_prefix(b" bio_add_folio") {
            (0, parse_fast_data(EventName::AddFolio, data)?)
        } else if let Some(data) = data.strip_prefix(b" bio_submit") {
            (1, parse_fast_data(EventName::Submit, data)?)
        } else if let Some(data) = data.strip_prefix(b" bio_complete") {
            (2, parse_fast_data(EventName::Complete, data)?)
        } else {
            (3, parse_fast_data(EventName::End, data.strip_prefix(b" exit")?)?)
        };
        let taken = match rest.first() {
            Some(b'\n') => chunk.len() - at - rest.len() + 1,
            None => chunk.len() - at,
            Some(_) => return None,
        };
        self.end_stack(chunk);
        self.in_map = false;
        if self.options.keep_extras {
            let name = self.batch.names.intern(HOT_NAMES[hot]);
            self.batch.event_names.push(name);
        }
        let comm = self.hot_comm(task, comm, with_comm);
        let (tid, pid) = if self.options.pid_is_process { (UNKNOWN_TASK, task) } else { (task, UNKNOWN_TASK) };
        self.batch.events.push(Event { ts: time, tid, pid, comm, line: self.batch.lines as u32 + 1, kind });
        Some(taken)
    }

    /// Interns `comm`. `text` is the rest of the line and begins with it.
    #[inline]
    fn hot_comm(&mut self, task: u32, comm: &[u8], text: &[u8]) -> NameId {
        // Compares sixteen bytes at once; only the shortest lines at the end of a chunk have fewer.
        let Some(bytes) = text.first_chunk::<16>() else { return self.batch.names.intern(comm) };
        let key = u128::from_le_bytes(*bytes) & ((1u128 << (8 * comm.len())) - 1);
        let slot = &mut self.comms[task as usize % 64];
        if slot.0 == key && slot.1 == comm.len() as u8 && slot.2.is_some() {
            return slot.2;
        }
        let name = self.batch.names.intern(comm);
        *slot = (key, comm.len() as u8, name);
        name
    }

    /// Says of a torn line what it was about, as far as it names that. Other lines may be joined to it.
    #[cold]
    fn torn(&mut self, line: &[u8]) {
        let mut words = line.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty());
        let time = words.next().and_then(|word| whole(word, Cursor::decimal)).and_then(|time| i64::try_from(time).ok());
        let ts = time.and_then(|time| time.checked_mul(self.options.time_unit_ns));
        let task = words.next().and_then(|word| whole(word, Cursor::decimal)).and_then(|task| i32::try_from(task).ok());
        let words: Vec<&[u8]> = words.collect();
        let Some(ts) = ts.filter(|_| task.is_some()) else {
            if may_be_begin(line) {
                self.batch.torn_unknown(self.options);
            }
            return;
        };
        // The last number of the line may be cut off, and so may one that blanks follow: a stack line is joined to it.
        let is_whole = !words.is_empty() && !is_joined_to_stack(line);
        let task = task.filter(|_| is_whole).map_or(UNKNOWN_TASK, |task| task as u32);
        // Words such as `start` are names of fields too, and a field has a number.
        let is_number = |word: Option<&&[u8]>| word.is_some_and(|word| word.first().is_some_and(u8::is_ascii_digit));
        let names = words.iter().enumerate().filter(|&(at, _)| !is_number(words.get(at + 1)));
        let events: Vec<(usize, EventName)> =
            names.filter_map(|(at, word)| EventName::parse(word).map(|name| (at, name))).collect();
        if events.is_empty() {
            self.torn_event(ts, task, Kind::Torn { id: NO_ID, bio: 0, fact: TornFact::Any });
        }
        for (nth, &(at, name)) in events.iter().enumerate() {
            // The time of a line that is joined may have become a part of the word before it, and the thread of that line is not certain.
            let end = events.get(nth + 1).map_or(words.len(), |(next, _)| next.saturating_sub(2));
            let field =
                |key: &[u8]| words[at..end.max(at)].windows(3).find(|words| words[0] == key).map(|words| words[1]);
            let id = field(b"id").and_then(|id| whole(id, Cursor::decimal)).unwrap_or(NO_ID);
            let bio = field(b"bio").and_then(|bio| whole(bio, Cursor::hex)).unwrap_or(0);
            let task = if nth == 0 { task } else { UNKNOWN_TASK };
            for &fact in facts_of(Some(name)) {
                self.torn_event(ts, task, Kind::Torn { id, bio, fact });
            }
        }
    }

    fn torn_event(&mut self, ts: i64, task: u32, kind: Kind) {
        let (tid, pid) = if self.options.pid_is_process { (UNKNOWN_TASK, task) } else { (task, UNKNOWN_TASK) };
        self.batch.torn(&Event { ts, tid, pid, comm: NameId::NONE, line: 0, kind }, kind, self.options);
    }

    fn event(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let mut cursor = Cursor::new(line);
        let time = cursor
            .decimal()
            .and_then(|t| i64::try_from(t).ok())
            .and_then(|t| t.checked_mul(self.options.time_unit_ns))
            .ok_or("the time does not fit 63 bits of ns")?;
        let after_time = cursor.rest;
        cursor.rest = skip_separators(after_time).ok_or("the time is not followed by a space")?;
        let aligned = after_time.len() - cursor.rest.len() > 1 || after_time[0] == b'\t';
        let task = cursor.decimal().ok_or("the PID is not a number")?;
        // The kernel's thread ids end at 2^22, those of Perfetto at 2^31.
        let task = u32::try_from(task).ok().filter(|&t| i32::try_from(t).is_ok()).ok_or("the PID is too large")?;
        let rest = match cursor.rest.strip_prefix(b" ") {
            Some(rest) => rest,
            None => skip_separators(cursor.rest).ok_or("the PID is not followed by a space")?,
        };

        let comm_bytes = if self.options.escapes.comm_hex { COMM_HEX_BYTES } else { COMM_BYTES };
        let found = find_event(rest, comm_bytes);
        // Other event names may be common words, so they are accepted only in logs of our own recorders.
        let found =
            if self.options.escapes.comm_hex { found.or_else(|why| find_other_event(rest).ok_or(why)) } else { found };
        let (comm, name, data) = found?;
        if data.kind == Kind::Other && !self.options.keep_extras {
            self.batch.other(|| name);
            self.stack_of = None;
            return Ok(());
        }
        // Our recorders print the size of each bio.
        if self.options.escapes.comm_hex
            && matches!(data.kind, Kind::BioSubmit { .. })
            && !data.extras.iter().any(|(key, _)| *key == b"bytes")
        {
            return Err("the data of bio_submit ends before `bytes N`");
        }
        let comm = trim_alignment(comm, aligned);
        if self.options.escapes.comm_hex && is_too_long(&escape::hex(comm)) {
            // Another line is joined to it.
            return Err("the name of the thread is longer than the kernel's are");
        }
        let comm = match &*if self.options.escapes.comm_hex { escape::hex(comm) } else { comm.into() } {
            comm if self.options.escapes.comm_hex => self.batch.names.intern(until_nul(comm)),
            comm => self.batch.names.intern(comm),
        };
        let mut kind = data.kind;
        if let Kind::SyncStart { path, fs, by_thread, .. } = &mut kind {
            *by_thread = self.options.stock.is_some();
            *path = data.path.map_or(NameId::NONE, |path| {
                let path = match self.options.escapes.path {
                    PathEscape::None => return self.batch.names.intern(path),
                    PathEscape::Octal => escape::octal(path),
                    PathEscape::Hex => escape::hex(path),
                };
                self.batch.names.intern(until_nul(&path))
            });
            *fs = data.fs.map_or(self.fs, |f| self.batch.names.intern(f));
        }
        if let Kind::BioSubmit { bytes, flags, .. } = &mut kind {
            let field = |name| data.extras.iter().find(|(key, _)| *key == name).map(|&(_, value)| value);
            *flags = field(b"opf" as &[u8]).and_then(bio_flags);
            if self.options.by_own_script {
                *bytes = field(b"bytes").map_or(0, bio_size);
            }
        }
        let index = self.batch.events.len();
        if self.options.keep_extras {
            let name = if data.is_exit { &[name, b" exit"].concat() } else { name };
            let name = self.batch.names.intern(name);
            self.batch.event_names.push(name);
            for (key, value) in data.extras {
                let key = self.batch.names.intern(&extra_key(key));
                let value = self.batch.names.intern(value);
                self.batch.extras.push(Extra { event: index as u32, key, value });
            }
        }
        let (tid, pid) = if self.options.pid_is_process { (UNKNOWN_TASK, task) } else { (task, UNKNOWN_TASK) };
        self.batch.events.push(Event { ts: time, tid, pid, comm, line: self.batch.lines as u32, kind });
        self.stack_of = matches!(kind, Kind::CallEnter { .. }).then_some((index, None));
        Ok(())
    }
}

/// Removes the padding of columns that are aligned with tabs or several spaces. A single space may belong to the comm.
fn trim_alignment(comm: &[u8], aligned: bool) -> &[u8] {
    let is_alignment = |b: &[u8]| b.contains(&b'\t') || b.len() > 1;
    let left = comm.len() - comm.trim_ascii_start().len();
    let right = comm.trim_ascii_end().len();
    if aligned || left < right && (is_alignment(&comm[..left]) || is_alignment(&comm[right..])) {
        comm.trim_ascii()
    } else {
        comm
    }
}

fn skip_separators(text: &[u8]) -> Option<&[u8]> {
    let rest = text.trim_ascii_start();
    (rest.len() < text.len()).then_some(rest)
}

/// Whether a line without a thread, or without a time, is the begin of an event or a rest of two. It ends within its time or its thread, or has
/// lost what follows its time, or a stack line is joined to it. Any other line is the text of a program, or lacks its begin.
fn may_be_begin(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = &line[digits..];
    let is_long = digits >= TIME_DIGITS && rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b' ');
    is_long || rest.iter().all(|b| b.is_ascii_digit() || *b == b' ') || rest.starts_with(STACK_INDENT)
}

/// Whether a line is the begin of an event up to its thread, and a stack line.
fn is_joined_to_stack(line: &[u8]) -> bool {
    let mut columns = line.splitn(3, |&b| b == b' ');
    let mut number = || columns.next().is_some_and(|column| column.iter().all(u8::is_ascii_digit));
    number() && number() && columns.next().is_some_and(|rest| rest.starts_with(&STACK_INDENT[1..]))
}

/// Whether a name has more bytes than the kernel's, so that another line is joined to it. bpftrace prints its NUL, and what follows that.
fn is_too_long(comm: &[u8]) -> bool {
    until_nul(comm).len() > COMM_BYTES || comm.len() > COMM_BYTES + 1
}

/// Returns the text before the first NUL.
fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&b| b == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;
    use crate::source::Note;

    fn parse(text: &[u8]) -> Batch {
        let mut batch = Batch::default();
        let options = SourceOptions { keep_extras: true, ..SourceOptions::default() };
        BpftraceText.parse_lines(&options, text, &mut batch);
        batch
    }

    fn one(line: &[u8]) -> (Vec<u8>, Kind, Batch) {
        let batch = parse(&[line, b"\n"].concat());
        assert_eq!(batch.notes, [], "{}", String::from_utf8_lossy(line));
        assert_eq!(batch.events.len(), 1);
        let event = batch.events[0];
        (batch.names.get(event.comm).to_vec(), event.kind, batch)
    }

    fn comm_and_kind(line: &str) -> (String, usize) {
        let (comm, kind, _) = one(line.as_bytes());
        (String::from_utf8(comm).unwrap(), kind.index())
    }

    #[test]
    fn the_listing_of_the_thesis() {
        let batch = parse(
            b"TIME PID COMM EVENT DATA
252 53 bio_aof fdatasync
    768c __GI_fdatasync+60 (/usr/lib64/libc.so.6)
    44b1 bioProcessBackgroundJobs+545 (/usr/bin/valkey-server)
294 53 bio_aof start id 8 start 0 end 4294967295 datasync 1 path /var/lib/valkey/a.aof
313 53 bio_aof bio_add_folio id 8 bio 0x762 start 1424 len 4096
321 53 bio_aof bio_submit id 8 bio 0x762
661 0 swapper/26 bio_complete bio 0x762
856 53 bio_aof exit id 8 ret 0
",
        );
        assert_eq!(batch.notes, []);
        assert_eq!(batch.lines, 9);
        assert_eq!(batch.events.iter().map(|e| e.kind.index()).collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6]);
        let Kind::CallEnter { op: Op::Fdatasync, stack, .. } = batch.events[0].kind else { panic!() };
        assert!(batch.names.get(stack).ends_with(b"(/usr/bin/valkey-server)"));
        assert_eq!(
            batch.events[2].kind,
            Kind::BioAddFolio { id: 8, bio: 0x762, offset: 1424, len: 4096, dev: crate::event::Dev::UNKNOWN, ino: 0 }
        );
    }

    #[test]
    fn comms_that_look_like_events() {
        for (line, comm, kind) in [
            ("1 2 fsync fsync", "fsync", 0),
            ("1 2 a fsync fsync", "a fsync", 0),
            ("1 2 exit id 3 ret 0 fsync", "exit id 3 ret 0", 0),
            ("1 2 fsync exit id 3 ret 0", "fsync", 6),
            ("1 2 a fsync exit id 3 ret 0", "a fsync", 6),
            ("1 2 start start id 1 start 0 end 9 datasync 0 path /p", "start", 2),
            ("1 2 a start id 1 start id 2 start 0 end 9 datasync 0 path /p", "a start id 1", 2),
            ("1 2 wl start id 1 start 0 end 9 datasync 0 path /a fsync", "wl", 2),
            ("1 2  fsync", "", 0),
            ("1 2 4 5 6 msync", "4 5 6", 0),
        ] {
            assert_eq!(comm_and_kind(line), (comm.to_owned(), kind), "{line}");
        }
    }

    #[test]
    fn exits_in_each_spelling() {
        for (line, ret) in [
            ("1 2 wl fsync_exit", None),
            ("1 2 wl fsync_exit ret -5", Some(-5)),
            ("1 2 wl exit_fsync ret 0", Some(0)),
            ("1 2 wl sys_exit_fsync ret 0", Some(0)),
            ("1 2 wl fsync exit", None),
            ("1 2 wl fsync exit ret 0", Some(0)),
            ("1 2 wl fsync ret 0", Some(0)),
        ] {
            assert_eq!(one(line.as_bytes()).1, Kind::exit(Op::Fsync, ret), "{line}");
        }
    }

    #[test]
    fn paths_keep_their_bytes() {
        let (_, kind, batch) = one(b"1 2 wl start id 1 start 0 end 9 datasync 0 path /a b/\xff path exit id 1 ret 0 ");
        let Kind::SyncStart { path, .. } = kind else { panic!() };
        assert_eq!(batch.names.get(path), b"/a b/\xff path exit id 1 ret 0 ");
    }

    #[test]
    fn fields_that_the_thesis_does_not_have() {
        let (_, kind, batch) = one(b"1 2 wl start id 1 dev 254,16 ino 12 start 0 end 9 datasync 1 mode 3 path /p");
        let Kind::SyncStart { dev, ino, datasync: true, .. } = kind else { panic!() };
        assert_eq!((dev.to_string(), ino), ("254,16".to_owned(), 12));
        assert_eq!(batch.extras.len(), 1);
    }

    #[test]
    fn aligned_columns() {
        assert_eq!(comm_and_kind("252\t53\tbio_aof\tfdatasync"), ("bio_aof".to_owned(), 0));
        assert_eq!(comm_and_kind("252  53  bio_aof      bio_submit  id 1  bio 0x2"), ("bio_aof".to_owned(), 4));
    }

    #[test]
    fn other_lines_are_noted_with_their_number() {
        let batch = parse(
            b"Attaching 8 probes...\n1 2 wl fsync\n\n    f+1\nLost 7 events\nhello\n1 2 wl bio_complete 0x44\n    g+1\n@n[1]: 2\n@h:\n[4, 8)  3 |@@@|\n\n",
        );
        let why: Vec<_> = batch.notes.iter().map(|Note { line, kind, .. }| (*line, kind.clone())).collect();
        assert_eq!(why[0], (5, NoteKind::Lost { count: 7 }));
        let lines: Vec<_> = why[1..].iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [6, 7, 8]);
        assert_eq!(batch.lines, 12);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for line in [
            "1 2 wl bio_add_folio id 1 bio 0x1 start 0 len -4096",
            "1 2 wl bio_add_folio id 1 bio 0x1 start 9223372036854775807 len 4096",
            "99999999999999999999 2 wl fsync",
            "1 99999999999 wl fsync",
            "1 2 wl exit id 18446744073709551616 ret 0",
            "1 2 wl start id 1 start 0 end 9 datasync 2 path /p",
            "1 2 a-name-of-16-byte fsync",
            "1 2 wl exit id 7 ret 0 1 2 wl exit id 7 ret 0",
            "1 2 wl fsync id 7 bio 0xff",
            "1 2 wl bio_submit id 7 bio 0xff 41756190615 0",
        ] {
            let batch = parse(line.as_bytes());
            assert_eq!((batch.has_whole_events(), batch.notes.len()), (false, 1), "{line}");
        }
        assert_eq!(one(b"1 2 wl exit id 18446744073709551614 ret 0").1, Kind::end(u64::MAX - 1, 0));
    }

    #[test]
    fn a_torn_line_says_what_it_was_about() {
        let torn = |id, bio, fact| Kind::Torn { id, bio, fact };
        let any = || torn(NO_ID, 0, TornFact::Any);
        let lines: [(&str, &[Kind]); 15] = [
            ("5 7 wl bio_add_folio id 3 bio 0xff start 0 len 96\n", &[torn(3, 0xff, TornFact::Pages)]),
            ("5 7 wl bio_add_folio id 3 bio 0xff sta\n", &[torn(3, 0xff, TornFact::Pages)]),
            // The last number may have had more digits.
            ("5 7 wl bio_add_folio id 3 bio 0xf\n", &[torn(3, 0, TornFact::Pages)]),
            ("5 7 wl bio_submit id 3\n", &[torn(NO_ID, 0, TornFact::Pages)]),
            ("5 7 wl exit id 3 re\n", &[torn(3, 0, TornFact::Request)]),
            ("5 7 wl fsync_exit r\n", &[torn(NO_ID, 0, TornFact::Call)]),
            ("5 7 wl bio_comp\n", &[torn(NO_ID, 0, TornFact::Any)]),
            // The rows show it: the bio never completes.
            ("5 7 wl bio_complete bi\n", &[]),
            (
                "5 7 wl bio_submit id 3 bio 0xff6 8 wl bio_submit id 4 bio 0xfe\n",
                &[torn(3, 0, TornFact::Pages), torn(4, 0, TornFact::Pages)],
            ),
            // A stack line is joined to it, or it has lost its thread.
            ("5        0x7f\n", &[any()]),
            ("5 7        0x7f\n", &[any()]),
            ("123456789 wl fsync\n", &[any()]),
            ("123456789 w\n", &[any()]),
            // The text of a program.
            ("5 wl fsync\n", &[]),
            ("12345678 w\n", &[]),
        ];
        for (line, want) in lines {
            let batch = parse(line.as_bytes());
            assert_eq!(batch.notes.len(), 1, "{line}");
            assert_eq!(batch.events.iter().map(|event| event.kind).collect::<Vec<_>>(), want, "{line}");
            let is_of_thread = |event: &Event| event.tid == 7;
            let names_thread = line.starts_with("5 7 wl");
            assert_eq!(batch.events.first().is_some_and(is_of_thread), names_thread && !want.is_empty(), "{line}");
        }
    }

    #[test]
    fn warnings_of_bpftrace_are_not_events() {
        let batch = parse(
            b"5 7 wl fsync\n/a/b.bt:23:21-28: WARNING: File exists\nAdditional Info - helper: map_update_elem, retcode: -17\n\
              \x20   @events[\"fsync\"] = count();\n\x20                      ~~~~~~~\n6 7 wl fsync_exit\nx: WARNING: no\n",
        );
        assert_eq!(batch.events.len(), 2);
        assert_eq!(batch.notes.iter().map(|note| note.line).collect::<Vec<_>>(), [7]);
        assert!(matches!(batch.events[0].kind, Kind::CallEnter { stack: NameId::NONE, .. }));
    }

    #[test]
    fn header_and_trailer_of_our_own_recorders() {
        let text = b"# syncline-log 1\n# script patched 1\n# clock boottime\n# comm hex\n# mountinfo\n\
            36 35 254:16 / /run/a\\040b rw,noatime shared:1 - ext4 /dev/vdb rw\n# end mountinfo\n\
            5 7 w\\x0al\\x00\\x00 fsync\n\n    main+1\n6 7 a b\\x00 start id 1 start 0 end 9 datasync 0 path /a\\012b\n\
            @events[start]: 100\n@events[fsync]: 3\n@other[start]: 5\n# end 99\n";
        let options = SourceOptions {
            escapes: crate::source::Escapes { comm_hex: true, path: PathEscape::Octal },
            ..SourceOptions::default()
        };
        let mut batch = Batch::default();
        BpftraceText.parse_lines(&options, text, &mut batch);
        let comms: Vec<_> = batch.events.iter().map(|e| batch.names.get(e.comm)).collect();
        assert_eq!(comms, [b"w\nl".as_slice(), b"a b"]);
        let Kind::SyncStart { path, .. } = batch.events[1].kind else { panic!() };
        assert_eq!(batch.names.get(path), b"/a\nb");
        let kinds: Vec<_> = batch.notes.iter().map(|note| note.kind.clone()).collect();
        let counted = |kind, count| NoteKind::Counted { kind, count };
        assert_eq!(kinds, [counted(2, 100), counted(0, 3), NoteKind::End]);
        assert!(BpftraceText.sniff(b"# syncline-log 1\n# script stacks 1\n") && describe(text).records_its_end);
        assert!(describe(b"Attaching 3 probes...\n\n# syncline-log 1\n").records_its_end);
        assert!(!describe(b"1 2 wl fsync\n# syncline-log 1\n").records_its_end);
    }

    #[test]
    fn a_name_that_is_too_long_is_of_two_lines() {
        let options = SourceOptions {
            escapes: crate::source::Escapes { comm_hex: true, path: PathEscape::Octal },
            ..SourceOptions::default()
        };
        let mut batch = Batch::default();
        let text = b"5 7 jbd2/loo6 7 jbd2/loop0-8 bio_complete bio 0xff11000000896e40 status 0\n\
            5 7 python\\x00\\x00 6 0 - bio_complete bio 0xff11000000896e40 status 0\n\
            5 7 python\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00 6 0 - bio_complete bio 0xff11000000896e40 status 0\n";
        BpftraceText.parse_lines(&options, text, &mut batch);
        assert_eq!((batch.events.len(), batch.notes.len()), (1, 2));
    }

    #[test]
    fn a_comment_ends_a_map_in_any_chunk() {
        let text = b"@us: \n[1]  3 |@@|\n# a note\n[2]  4 |@@|\n";
        let cut = BpftraceText.cut(text).unwrap();
        assert!(text[cut..].starts_with(b"# a note"));
        assert_eq!(parse(text).notes.iter().map(|note| note.line).collect::<Vec<_>>(), [4]);
        assert_eq!(parse(&text[cut..]).notes.len(), 1);
    }

    #[test]
    fn a_chunk_is_never_cut_before_a_stack_line() {
        assert_eq!(BpftraceText.cut(b"1 2 wl fsync\n    f+1\n    g+1\n"), None);
        assert_eq!(BpftraceText.cut(b"1 2 wl fsync\n1 2 wl fsync\n    f+1\n"), Some(13));
    }
}
