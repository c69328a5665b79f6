//! The text of `perf script`: tracepoints, with or without call graphs.
//!
//! With `--header` it also gives the clock, the kernel, the host and the wall-clock offset. Times must be absolute (not `--reltime` or
//! `--deltatime`). Stack frames follow their event on indented lines. `perf_data` reads perf.data itself.
//!
//! ```text
//! # os release : 6.12.107+deb13-amd64
//! # clockid: monotonic (1)
//! # reference time: 2026-11-22 03:29:41.029531 = 1795318181.029531 (TOD) = 8.983160050 (monotonic)
//! wl     254 [000]    52.529894317:      syscalls:sys_enter_fsync: fd: 0x00000003
//!         ffffffffaf20e6a5 syscall_trace_enter+0xe5 ([kernel.kallsyms])
//!             7f62436e9b57 fsync+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!
//!               wl   254 [001]    52.531967:         block:block_bio_queue: 254,16 WS 274984 + 8 [wl]
//! swapper       0 [000]    52.533387: PERF_RECORD_LOST lost 3
//! ```

use memchr::memchr;

use super::cursor::{Cursor, whole, word_len};
use super::tracepoint_text::{Grammar, NameCache, Task, TextDecoder, TextRecord, cpus_of};
use super::tracepoints::Machine;
use super::{Batch, Extra, InputTraits, Lines, NoteKind, Reader, Source, SourceOptions, last_newline, lines};
use crate::error::{Error, Refused, Result};
use crate::event::{Kind, UNKNOWN_TASK};
use crate::input_file::Input;

pub const NAME: &str = "perf";
/// Maximum length of a comm with its padding; longer than any real one.
const MAX_COMM_COLUMN: usize = 64;
/// `TASK_COMM_LEN` without its NUL. Only threads of the kernel have longer names, without spaces.
const COMM_BYTES: usize = 15;
/// Addresses in the upper half belong to the kernel.
pub(super) const KERNEL: u64 = 1 << 63;
/// Maximum length of event modifiers; `:uppp` is the longest.
const MAX_FLAGS: usize = 5;
const PROBES: [&[u8]; 3] = [b"probe", b"sdt_", b"uprobe"];
const NANO: i64 = 1_000_000_000;

pub struct PerfScript;

impl Source for PerfScript {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "perf script prints losses only with `--show-lost-events`. Without it, a lost event leaves no gap, so \
         nothing here can say that none is missing."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        // A piece may begin inside a stack.
        let is_event = |line: &&[u8]| !line.trim_ascii().is_empty() && !matches!(line[0], b'#' | b'\t');
        let first = lines(head).find(is_event);
        facts(head).is_some() || first.is_some_and(|line| context(line).is_some())
    }

    /// Names of threads are right-aligned.
    fn has_indent(&self, _head: &[u8]) -> bool {
        true
    }

    fn describe(&self, input: &Input) -> InputTraits {
        InputTraits {
            is_part_of_recording: true,
            cpus: cpus_of(input.head()),
            ids_are_processes: Some(false),
            ..InputTraits::standalone()
        }
    }

    fn may_hold_writes(&self) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        // perf's records of threads that existed before it have no time.
        let first = lines(input.head()).filter_map(context).find(|line| !line.event.starts_with(b"PERF_RECORD_"));
        if first.is_some_and(|first| first.ts == Some(0)) {
            let source = Refused::error(
                "its times begin at 0: --reltime and --deltatime drop the time of the recording",
                "print it without these options: `perf script --header --ns -i perf.data > perf.txt`",
            );
            return Err(Error::Read { path: input.path.clone(), source });
        }
        let mut options = *options;
        // User space has no clock that equals perf's default clock.
        let mut header = facts(input.head())
            .unwrap_or_else(|| HeaderFacts { clock: Some("unknown".into()), ..HeaderFacts::default() });
        if let Some(release) = &header.release {
            options.machine = Machine::of(header.arch.as_deref().unwrap_or(release));
        }
        let mut reader = Reader::of_lines(self, input, &options);
        reader.facts.push(("clock", header.clock.take().unwrap_or_else(|| "local".into())));
        reader.facts.extend(header.release.map(|release| ("kernel", format!("Linux {release}"))));
        reader.facts.extend(header.host.map(|host| ("host", host)));
        reader.facts.extend(header.realtime_offset_ns.map(|offset| ("realtime_offset_ns", offset.to_string())));
        reader.facts.push(("recorder", NAME.into()));
        Ok(reader)
    }
}

/// The facts that `perf script --header` prints.
#[derive(Debug, Default, PartialEq, Eq)]
struct HeaderFacts {
    release: Option<String>,
    arch: Option<String>,
    host: Option<String>,
    clock: Option<String>,
    realtime_offset_ns: Option<i64>,
}

/// Parses the header. Returns `None` without one.
fn facts(head: &[u8]) -> Option<HeaderFacts> {
    let mut facts = HeaderFacts::default();
    let mut header = lines(head).take_while(|line| line.starts_with(b"#")).peekable();
    if header.peek()? != b"# ========" {
        return None;
    }
    for line in header {
        let Some((key, value)) = std::str::from_utf8(&line[1..]).ok().and_then(|line| line.split_once(':')) else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "os release" => facts.release = Some(value.into()),
            "arch" => facts.arch = Some(value.into()),
            "hostname" => facts.host = Some(value.into()),
            "clockid" => facts.clock = value.split(' ').next().map(Into::into),
            "reference time" => facts.realtime_offset_ns = parse_reference_time(value),
            _ => {}
        }
    }
    Some(facts)
}

/// Wall-clock offset from `2026-11-22 03:29:41.029531 = 1795318181.029531 (TOD) = 8.983160050 (monotonic)`.
fn parse_reference_time(text: &str) -> Option<i64> {
    let mut times = text.split(" = ").skip(1).map(|part| {
        let mut cursor = Cursor::new(part.as_bytes());
        parse_seconds(&mut cursor)
    });
    times.next()??.checked_sub(times.next()??)
}

/// Parses `S.FRACTION` as ns.
fn parse_seconds(cursor: &mut Cursor<'_>) -> Option<i64> {
    let whole = i64::try_from(cursor.decimal()?).ok()?;
    cursor.literal(b".")?;
    let before = cursor.rest.len();
    let fraction = i64::try_from(cursor.decimal()?).ok()?;
    let digits = u32::try_from(before - cursor.rest.len()).ok().filter(|&n| n <= 9)?;
    whole.checked_mul(NANO)?.checked_add(fraction * 10i64.pow(9 - digits))
}

impl Lines for PerfScript {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        // Stack lines belong to the event before them.
        last_newline(bytes, |_, after| {
            let line = &after[..memchr(b'\n', after).unwrap_or(after.len())];
            line.first() != Some(&b'\t') && (context(line).is_some() || line.starts_with(b"#"))
        })
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        let mut parser = Parser { decoder: TextDecoder::new(options, batch), names: NameCache::new(), stack: None };
        for line in lines(chunk) {
            parser.decoder.batch.lines += 1;
            parser.line(line);
        }
        parser.end_stack();
    }
}

/// The stack frames of the last event that have been read.
#[derive(Default)]
struct Stack {
    /// Index of the event in the batch, if it was kept.
    event: Option<usize>,
    frames: Vec<u8>,
    /// Only the frames of user space.
    user_frames: Vec<u8>,
}

struct Parser<'a, 't> {
    decoder: TextDecoder<'a>,
    names: NameCache<'t>,
    stack: Option<Stack>,
}

impl<'t> Parser<'_, 't> {
    fn line(&mut self, line: &'t [u8]) {
        // Most lines are stack frames of events that need no stack.
        if line.first() == Some(&b'\t') {
            if !matches!(self.stack, Some(Stack { event: None, .. })) {
                self.frame(line);
            }
        } else if let Some(found) = context(line) {
            self.end_stack();
            if let Err(why) = self.event(&found) {
                self.decoder.batch.unparsed(line, why);
                if let Some(ts) = found.ts {
                    let task = Task { ts, tid: found.tid, pid: found.pid, comm: found.comm };
                    // The name of its group precedes that of the event.
                    let text = memchr(b':', found.event).map_or(&b""[..], |colon| &found.event[colon + 1..]);
                    self.decoder.torn(&task, text);
                }
            }
        } else if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            self.end_stack();
        } else if line.starts_with(b"Processed ") && line.trim_ascii_end().ends_with(b"!") {
            // `Processed 9 events and lost 2 chunks!`: the number of lost events is unknown.
            self.decoder.batch.note(NoteKind::LostUncounted);
        } else {
            self.frame(line);
        }
    }

    fn frame(&mut self, line: &[u8]) {
        let Some((address, frame)) = parse_frame(line) else {
            self.decoder.batch.unparsed(line, "it does not begin with `COMM TID [CPU] TIME: `");
            // Names of threads are right-aligned. Other text is not of the recorder.
            if line.first() == Some(&b' ') {
                self.decoder.batch.torn_unknown(self.decoder.options);
            }
            return;
        };
        let Some(stack) = &mut self.stack else {
            return self.decoder.batch.unparsed(line, "a stack frame without an event before it");
        };
        push_line(&mut stack.frames, frame);
        if address & KERNEL == 0 {
            push_line(&mut stack.user_frames, frame);
        }
    }

    fn event(&mut self, context: &Context<'t>) -> Result<(), &'static str> {
        let ts = context.ts.ok_or("its time does not fit 63 bits of ns")?;
        if let Some(lost) = context.event.strip_prefix(b"PERF_RECORD_LOST") {
            let count = memchr::memmem::find(lost, b"lost ")
                .and_then(|at| whole(lost[at + 5..].trim_ascii_end(), Cursor::decimal));
            self.decoder.batch.note(count.map_or(NoteKind::LostUncounted, |count| NoteKind::Lost { count }));
            return Ok(());
        }
        let record = parse_record(context.event, &mut self.names).ok_or("no event follows its time")?;
        let task = Task { ts, tid: context.tid, pid: context.pid, comm: context.comm };
        let at = self.decoder.batch.events.len();
        let event = self.decoder.event(&task, &record)?.then_some(at);
        self.stack = Some(Stack { event, ..Stack::default() });
        Ok(())
    }

    fn end_stack(&mut self) {
        let Some(Stack { event: Some(event), frames, user_frames }) = self.stack.take() else { return };
        attach_stack(self.decoder.batch, event, &frames, &user_frames, self.decoder.options.keep_extras);
    }
}

/// Stores the stack of an event, one frame a line: the frames of user space for a sync call; all frames for any other event, with
/// `keep_extras`.
pub(super) fn attach_stack(batch: &mut Batch, event: usize, frames: &[u8], user_frames: &[u8], keep_extras: bool) {
    let Batch { events, extras, names, .. } = batch;
    match &mut events[event].kind {
        Kind::CallEnter { stack, .. } | Kind::CallExit { stack, .. } if !user_frames.is_empty() => {
            *stack = names.intern(user_frames);
        }
        _ if keep_extras && !frames.is_empty() => {
            let (key, value) = (names.intern(b"stack"), names.intern(frames));
            extras.push(Extra { event: event as u32, key, value });
        }
        _ => {}
    }
}

pub(super) fn push_line(to: &mut Vec<u8>, line: &[u8]) {
    if !to.is_empty() {
        to.push(b'\n');
    }
    to.extend_from_slice(line);
}

/// Address and text of an indented frame, such as `ffffffffaf625bcd __traceiter_block_bio_queue+0x2d ([kernel.kallsyms])`.
fn parse_frame(line: &[u8]) -> Option<(u64, &[u8])> {
    if !line.starts_with(b"\t") && !line.starts_with(b"   ") {
        return None;
    }
    let text = line.trim_ascii();
    let end = memchr(b' ', text)?;
    let digits = std::str::from_utf8(&text[..end]).ok()?;
    Some((u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?, text))
}

/// The columns before an event on its line.
#[derive(Debug, PartialEq, Eq)]
struct Context<'a> {
    comm: &'a [u8],
    tid: u32,
    pid: u32,
    /// `None` if it does not fit 63 bits.
    ts: Option<i64>,
    event: &'a [u8],
}

/// Parses the columns before an event. The comm is right-aligned in 16 columns, or not aligned where stacks are printed. It may
/// contain anything.
fn context(line: &[u8]) -> Option<Context<'_>> {
    if line.get(16) == Some(&b' ')
        && let Some(found) = parse_columns(line[..16].trim_ascii(), &line[17..])
    {
        return Some(found);
    }
    let spaces = memchr::memchr_iter(b' ', &line[..line.len().min(MAX_COMM_COLUMN)]);
    spaces
        .filter(|&at| line.get(at + 1).is_some_and(|b| *b == b' ' || b.is_ascii_digit()))
        .find_map(|at| parse_columns(line[..at].trim_ascii(), &line[at + 1..]))
}

/// Parses `254 [000]    52.529894317: EVENT`; with `-F +pid` it begins with `253/254`.
fn parse_columns<'a>(comm: &'a [u8], rest: &'a [u8]) -> Option<Context<'a>> {
    if comm.len() > COMM_BYTES && comm.contains(&b' ') {
        // Another line is joined to it.
        return None;
    }
    let mut cursor = Cursor::new(rest.trim_ascii_start());
    let (mut tid, mut pid) = (task_id(&mut cursor)?, UNKNOWN_TASK);
    if cursor.literal(b"/").is_some() {
        (pid, tid) = (tid, task_id(&mut cursor)?);
    }
    cursor.literal(b" ")?;
    cursor.rest = cursor.rest.trim_ascii_start();
    if cursor.literal(b"[").is_some() {
        cursor.decimal()?;
        cursor.literal(b"]")?;
        cursor.literal(b" ")?;
        cursor.rest = cursor.rest.trim_ascii_start();
    }
    let time = cursor.rest;
    let digits = time.iter().take_while(|b| b.is_ascii_digit()).count();
    let fraction = time.get(digits..)?.strip_prefix(b".")?.iter().take_while(|b| b.is_ascii_digit()).count();
    let end = digits + 1 + fraction;
    if digits == 0 || !matches!(fraction, 6 | 9) {
        return None;
    }
    let event = time[end..].strip_prefix(b": ")?.trim_ascii_start();
    let ts = parse_seconds(&mut Cursor::new(&time[..end]));
    Some(Context { comm, tid, pid, ts, event })
}

/// The kernel's thread ids end at 2^22, those of Perfetto at 2^31. An event of a CPU without a thread has -1.
fn task_id(cursor: &mut Cursor<'_>) -> Option<u32> {
    if cursor.literal(b"-1").is_some() {
        return Some(UNKNOWN_TASK);
    }
    cursor.decimal().and_then(|id| i32::try_from(id).ok()).map(|id| id as u32)
}

/// Parses `GROUP:NAME: DATA`. An event that is not a kernel tracepoint has no meaning here.
fn parse_record<'a>(event: &'a [u8], cache: &mut NameCache<'a>) -> Option<TextRecord<'a>> {
    // Sampled events begin with the count since the last sample.
    let digits = event.iter().take_while(|b| b.is_ascii_digit()).count();
    let event = if digits > 0 { event[digits..].strip_prefix(b" ")?.trim_ascii_start() } else { event };
    if event.starts_with(b"PERF_RECORD_") {
        // `PERF_RECORD_FORK(254:255):(253:253)`
        let (name, data) = event.split_at(word_len(event));
        let data = data.strip_prefix(b":").unwrap_or(data).trim_ascii_start();
        return Some(TextRecord::other(b"", name, Grammar::Free, data));
    }
    let name_len = event.iter().position(|b| *b == b' ').unwrap_or(event.len());
    let (name, data) = event.split_at(name_len);
    let full = name.strip_suffix(b":").unwrap_or(name);
    // Hardware events have modifiers after the colon. Probes have names that their creator chose.
    if let Some(colon) = memchr(b':', full).filter(|colon| full.len() - colon > MAX_FLAGS)
        && !PROBES.iter().any(|probe| full.starts_with(probe))
    {
        return TextRecord::parse(&event[colon + 1..], cache);
    }
    let data = data.trim_ascii_start();
    (!full.is_empty()).then(|| TextRecord::other(b"", full, Grammar::Free, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::bio_flags::BioFlags;
    use crate::event::{Dev, NO_ID, Op};

    fn parse(text: &str, keep_extras: bool) -> Batch {
        let mut batch = Batch::default();
        PerfScript.parse_lines(&SourceOptions { keep_extras, ..SourceOptions::default() }, text.as_bytes(), &mut batch);
        batch
    }

    fn name(batch: &Batch, id: crate::names::NameId) -> String {
        String::from_utf8_lossy(batch.names.get(id)).into_owned()
    }

    #[test]
    fn a_name_that_is_too_long_is_of_two_lines() {
        let joined = b"python3 253/254 [00python3 253/254 [000]    52.531967: x:y: a=1";
        assert_eq!(context(joined), None);
        let of_kernel = b"kworker/u8:2-events_unbound     254 [001]    52.531967: x:y: a=1";
        assert!(context(of_kernel).is_some());
    }

    #[test]
    fn columns_before_an_event() {
        for (line, comm, tid, pid, ns) in [
            ("              wl     254 [001]    52.531967: x:y: a=1", "wl", 254, UNKNOWN_TASK, 52_531_967_000),
            ("              wl     254 [001]    52.531967123: x:y: a=1", "wl", 254, UNKNOWN_TASK, 52_531_967_123),
            ("wl     254 [001]    52.531967123: x:y: a=1", "wl", 254, UNKNOWN_TASK, 52_531_967_123),
            ("a 12     254 [001]    52.531967: x:y: a=1", "a 12", 254, UNKNOWN_TASK, 52_531_967_000),
            ("kworker/1:2-ev     254/255    [001]    52.531967: x:y: a=1", "kworker/1:2-ev", 255, 254, 52_531_967_000),
            ("   [000] 1.000000     254    52.531967: x:y: a=1", "[000] 1.000000", 254, UNKNOWN_TASK, 52_531_967_000),
            (":-1      -1 [001]    52.531967: x:y: a=1", ":-1", UNKNOWN_TASK, UNKNOWN_TASK, 52_531_967_000),
        ] {
            let ts = Some(ns);
            assert_eq!(
                context(line.as_bytes()),
                Some(Context { comm: comm.as_bytes(), tid, pid, ts, event: b"x:y: a=1" }),
                "{line}"
            );
        }
        for line in [
            "",
            "\tffffffffaf625bcd f+0x2d ([kernel.kallsyms])",
            "              wl-254     [001] .....    52.531967: x: a=1",
            "254 1795196964.924525 fsync(3) = 0",
            "2694  1795196964.924525 fsync(3) = 0",
            "252 53 wl fdatasync",
            "253,0    1        1     0.000000000  1234  Q  WS 8 + 8 [wl]",
        ] {
            assert_eq!(context(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn events_and_their_stacks() {
        let text = "\
wl     254 [000]    52.5: syscalls:sys_enter_fsync: fd: 0x00000003
wl     254 [000]    52.500000001:      syscalls:sys_enter_fsync: fd: 0x00000003
\tffffffffaf20e6a5 syscall_trace_enter+0xe5 ([kernel.kallsyms])
\t    7f62436e9b57 fsync+0x7 (/usr/lib/libc.so.6)
\t    5623aa912d70 [unknown] (/opt/a b)

wl     254 [000]    52.500000002:  ext4:ext4_sync_file_exit: dev 254,16 ino 19 ret 0
\tffffffffaf20e6a5 ext4_sync_file+0xe5 ([kernel.kallsyms])

wl     254 [000]    52.500000003:     250000 cycles:u:      7f62436e9b57 fsync+0x7 (/usr/lib/libc.so.6)
wl     254 [000]    52.500000004: probe:sync_start: (ffffffffaf20e6a5) id=3
wl     254 [000]    52.500000005: PERF_RECORD_COMM exec: wl:254/254
wl     254 [000]    52.500000005: PERF_RECORD_FORK(254:255):(253:253)
wl     254 [000]    52.500000006: PERF_RECORD_LOST lost 3
wl     254 [000]    52.500000007:                  block:block_bio_queue: 254,16 WS 8 + 8 [wl]
Processed 9 events and lost 2 chunks!
";
        let batch = parse(text, true);
        let events: Vec<_> = batch
            .events
            .iter()
            .map(|event| {
                (event.ts % 10, name(&batch, batch.event_names[batch.events.iter().position(|e| e == event).unwrap()]))
            })
            .collect();
        let words = [
            "sys_enter_fsync",
            "ext4_sync_file_exit",
            "cycles:u",
            "probe:sync_start",
            "PERF_RECORD_COMM",
            "PERF_RECORD_FORK",
            "block_bio_queue",
        ];
        assert_eq!(events, [1, 2, 3, 4, 5, 5, 7].into_iter().zip(words.map(str::to_owned)).collect::<Vec<_>>());
        let Kind::CallEnter { op: Op::Fsync, stack, .. } = batch.events[0].kind else { panic!() };
        assert_eq!(
            name(&batch, stack),
            "7f62436e9b57 fsync+0x7 (/usr/lib/libc.so.6)\n5623aa912d70 [unknown] (/opt/a b)"
        );
        assert!(matches!(batch.events[1].kind, Kind::SyncEnd { id: NO_ID, ret: 0, ino: 19, .. }));
        assert_eq!(
            batch.events[6].kind,
            Kind::BlockSubmit {
                dev: Dev::new(254, 16),
                sector: 8,
                bytes: 4096,
                flags: BioFlags::of_rwbs(b"WS").unwrap()
            }
        );
        let stacks: Vec<_> = batch
            .extras
            .iter()
            .filter(|e| name(&batch, e.key) == "stack")
            .map(|e| (e.event, name(&batch, e.value)))
            .collect();
        assert_eq!(stacks, [(1, "ffffffffaf20e6a5 ext4_sync_file+0xe5 ([kernel.kallsyms])".to_owned())]);
        let notes: Vec<_> = batch.notes.iter().map(|note| (note.line, &note.kind)).collect();
        let why = "it does not begin with `COMM TID [CPU] TIME: `";
        let first = text.lines().next().unwrap().as_bytes();
        assert_eq!(
            notes,
            [
                (1, &NoteKind::Unparsed { text: first.into(), why }),
                (14, &NoteKind::Lost { count: 3 }),
                (16, &NoteKind::LostUncounted)
            ]
        );
    }

    #[test]
    fn header_has_clock_and_machine() {
        let head = b"# ========\n# captured on    : Sun Nov 22\n# hostname : guest\n# os release : 6.12.107+deb13-amd64\n# arch : x86_64\n\
            # cmdline : /usr/bin/perf record -k mono\n# clockid: monotonic (1)\n\
            # reference time: 2026-11-22 03:29:41.029531 = 1795318181.029531 (TOD) = 8.983160050 (monotonic)\n";
        let text = |text: &str| Some(text.to_owned());
        let want = HeaderFacts {
            release: text("6.12.107+deb13-amd64"),
            arch: text("x86_64"),
            host: text("guest"),
            clock: text("monotonic"),
            realtime_offset_ns: Some(1_795_318_181_029_531_000 - 8_983_160_050),
        };
        assert_eq!(facts(head), Some(want));
        assert_eq!(facts(b"# tracer: nop\n#\n"), None);
    }
}
