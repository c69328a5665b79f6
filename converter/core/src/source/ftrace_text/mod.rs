//! The text of the ring buffer: tracefs' `trace` and `trace_pipe`, and `trace-cmd report`.
//!
//! Latency format, `record-tgid`, stacks (`kernel_stack`, `user_stack`) and the function tracer's lines are read. The text does not name
//! its clock. A clock that does not count ns is refused.
//!
//! ```text
//! # tracer: nop
//! #
//! # entries-in-buffer/entries-written: 3407/3407   #P:2
//!               wl-262     [000] .....    20.527240: sys_fsync(fd: 3)
//!               wl-262     [000] .....    20.527285: sync_start: id=190 start=0 end=4095 datasync=0 dev=254,16 ino=13 path=/a b
//! CPU:1 [LOST 7 EVENTS]
//!           <idle>-0       [000] d.h..    20.534243: block_rq_complete: 254,16 WS () 272792 + 8 be,0,4 [0]
//! ```

pub(super) mod context;

use memchr::memchr;

use self::context::{Context, Time, context};
use super::cursor::{Cursor, whole};
use super::tracepoint_text::{Grammar, NameCache, Task, TextDecoder, TextRecord, cpus_of};
use super::tracepoints::Machine;
use super::{
    Batch, Extra, InputTraits, Lines, NoteKind, Reader, Source, SourceOptions, last_newline, lines, trim_line,
};
use crate::error::{Error, Refused, Result};
use crate::input_file::Input;

/// Start of a stack frame, after any blanks.
const FRAME: &[u8] = b"=> ";

/// A clock of ns exceeds this after its first second; a clock that counts events starts at 0.
const LEAST_COUNT_NS: i64 = 1_000_000_000;

pub struct FtraceText;

impl Source for FtraceText {
    fn name(&self) -> &'static str {
        "ftrace"
    }

    fn hidden_losses(&self) -> &'static str {
        "The head of `trace` counts what was overwritten, and `trace_pipe` prints `LOST n EVENTS` for a CPU. \
         If these lines were filtered out, or grep chose the events, a lost event may leave no gap. A \
         path that is cut short looks like a shorter one."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        // A piece may begin inside a stack.
        let mut lines = lines(head).filter(|line| !line.trim_ascii().is_empty()).skip_while(|line| is_frame(line));
        match lines.next() {
            Some(line) if line.starts_with(b"# tracer: ") || counts_cpus(line) => true,
            Some(line) if line.starts_with(b"#") => lines.find_map(of_event) == Some(true),
            Some(line) => context(line).is_some() || is_of_trace_cmd(line) || lost(line).is_some(),
            None => false,
        }
    }

    /// Names of threads are right-aligned.
    fn has_indent(&self, _head: &[u8]) -> bool {
        true
    }

    fn describe(&self, input: &Input) -> InputTraits {
        // The text of one CPU covers the same time as that of another as often as it follows it.
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
        let mut options = *options;
        let head = input.head();
        // The text does not name the kernel's clock.
        let mut clock = "unknown";
        if let Some(Time::Count(first)) = lines(head).find_map(context).map(|first| first.time) {
            // The kernel knows which of its clocks count ns; trace-cmd takes the clock `boot` for one that does not.
            if !lines(head).any(counts_cpus) || first < LEAST_COUNT_NS {
                let source = Refused::error(
                    "its clock does not count ns: it is counter, uptime, x86-tsc or a similar one",
                    "record with a clock that does: `echo boot >/sys/kernel/tracing/trace_clock`, `trace-cmd record -C boot`",
                );
                return Err(Error::Read { path: input.path.clone(), source });
            }
            clock = "unknown; its times are taken for ns";
        }
        let mut facts = vec![("clock", clock.to_owned())];
        if let Some(release) = lines(head).take_while(|line| line.starts_with(b"#")).find_map(release) {
            options.machine = Machine::of(&release);
            facts.push(("kernel", format!("Linux {release}")));
        }
        let mut reader = Reader::of_lines(self, input, &options);
        reader.facts = facts;
        Ok(reader)
    }
}

/// Returns whether the first line after the comments is an event; `None` for another comment.
fn of_event(line: &[u8]) -> Option<bool> {
    (!line.starts_with(b"#")).then(|| context(line).is_some())
}

impl Lines for FtraceText {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        // Stack lines belong to the event before them.
        last_newline(bytes, |_, after| !is_frame(after) && !FRAME.starts_with(after.trim_ascii_start()))
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

/// The stack lines that have been read.
struct Stack {
    /// Index of the event to which they belong, with `keep_extras`.
    event: Option<u32>,
    frames: Vec<u8>,
}

struct Parser<'a, 't> {
    decoder: TextDecoder<'a>,
    names: NameCache<'t>,
    stack: Option<Stack>,
}

impl<'t> Parser<'_, 't> {
    fn line(&mut self, line: &'t [u8]) {
        if let Some(found) = context(line) {
            self.end_stack();
            if let Err(why) = self.event(&found) {
                self.decoder.batch.unparsed(line, why);
                if let Time::Ns(ts) | Time::Count(ts) = found.time {
                    let task = Task { ts, tid: found.tid, pid: found.pid, comm: found.comm };
                    self.decoder.torn(&task, found.event);
                }
            }
        } else if is_frame(line) {
            let Some(stack) = &mut self.stack else {
                const WHY: &str = "a stack frame without a `<stack trace>` before it";
                return self.decoder.batch.unparsed(line, WHY);
            };
            if !stack.frames.is_empty() {
                stack.frames.push(b'\n');
            }
            stack.frames.extend_from_slice(frame_text(line));
        } else {
            self.end_stack();
            self.other(line);
        }
    }

    /// Handles lines that are not events.
    fn other(&mut self, line: &[u8]) {
        let line = trim_line(line);
        if line.is_empty() || is_of_trace_cmd(line) {
            return;
        }
        if line.starts_with(b"#") {
            if let Some(count) = overwritten(line) {
                self.decoder.batch.note(NoteKind::Lost { count });
            }
            return;
        }
        match lost(line) {
            Some(Some(0)) => {}
            Some(Some(count)) => self.decoder.batch.note(NoteKind::Lost { count }),
            Some(None) => self.decoder.batch.note(NoteKind::LostUncounted),
            None => {
                self.decoder.batch.unparsed(line, "it does not begin with `COMM-PID [CPU] TIME: `");
                // Names of threads are right-aligned. Other text is not of the recorder.
                if line.first() == Some(&b' ') {
                    self.decoder.batch.torn_unknown(self.decoder.options);
                }
            }
        }
    }

    #[inline]
    fn event(&mut self, context: &Context<'t>) -> Result<(), &'static str> {
        let (Time::Ns(ts) | Time::Count(ts)) = context.time else { return Err("its time does not fit 63 bits of ns") };
        let record = TextRecord::parse(context.event, &mut self.names).ok_or("no event follows its time")?;
        if record.grammar == Grammar::Stack {
            let event = self.decoder.options.keep_extras.then_some(self.decoder.batch.events.len() as u32);
            self.stack = Some(Stack { event, frames: Vec::new() });
        }
        let task = Task { ts, tid: context.tid, pid: context.pid, comm: context.comm };
        self.decoder.event(&task, &record)?;
        Ok(())
    }

    #[inline]
    fn end_stack(&mut self) {
        if let Some(Stack { event: Some(event), frames }) = self.stack.take() {
            let names = &mut self.decoder.batch.names;
            let (key, value) = (names.intern(b"stack"), names.intern(&frames));
            self.decoder.batch.extras.push(Extra { event, key, value });
        }
    }
}

/// The number of events that a comment says were written, and are no longer in the buffer.
pub(super) fn overwritten(line: &[u8]) -> Option<u64> {
    let (left, written) = entries(line)?;
    written.checked_sub(left).filter(|&count| count > 0)
}

/// Parses `# entries-in-buffer/entries-written: 3407/3407   #P:2`, and `# latency: 0 us, #3407/3407, ...` of the latency format.
fn entries(line: &[u8]) -> Option<(u64, u64)> {
    let counts = line.strip_prefix(b"# entries-in-buffer/entries-written: ").or_else(|| {
        let rest = line.strip_prefix(b"# latency: ")?;
        rest.get(memchr(b'#', rest)? + 1..)
    })?;
    let mut cursor = Cursor::new(counts);
    let left = cursor.decimal()?;
    cursor.literal(b"/")?;
    Some((left, cursor.decimal()?))
}

/// Kernel release from `# wakeup latency trace v1.1.5 on 6.12.0-1-amd64`.
fn release(line: &[u8]) -> Option<String> {
    let at = memchr::memmem::find(line, b" latency trace v")?;
    let (_, release) = std::str::from_utf8(&line[at..]).ok()?.split_once(" on ")?;
    Some(release.trim().to_owned())
}

/// Parses `CPU:1 [LOST 7 EVENTS]` of the kernel and `CPU:1 [7 EVENTS DROPPED]` of trace-cmd. Both may omit the number.
#[expect(clippy::option_option, reason = "no loss, a loss of unknown size, or a number")]
pub(super) fn lost(line: &[u8]) -> Option<Option<u64>> {
    let open = memchr(b'[', line)?;
    let (before, report) = (line[..open].trim_ascii(), line[open + 1..].trim_ascii_end().strip_suffix(b"]")?);
    let cpu = before.rsplit(|&b| b == b' ').next()?;
    if !cpu.is_empty() && whole(cpu.strip_prefix(b"CPU:")?, Cursor::decimal).is_none() {
        return None;
    }
    match report {
        b"LOST EVENTS" | b"EVENTS DROPPED" => Some(None),
        _ => {
            let count = match report.strip_prefix(b"LOST ") {
                Some(rest) => rest.strip_suffix(b" EVENTS").or_else(|| rest.strip_suffix(b" EVENT"))?,
                None => report.strip_suffix(b" EVENTS DROPPED")?,
            };
            whole(count, Cursor::decimal).map(Some)
        }
    }
}

/// Matches `cpus=2`, which follows the file's name if there are several files.
fn counts_cpus(line: &[u8]) -> bool {
    let word = line.trim_ascii().rsplit(|&b| b == b' ').next().unwrap_or_default();
    word.strip_prefix(b"cpus=").is_some_and(|count| whole(count, Cursor::decimal).is_some())
}

/// Returns whether trace-cmd prints this line between the events.
pub(super) fn is_of_trace_cmd(line: &[u8]) -> bool {
    let number = |rest: &[u8]| {
        let mut cursor = Cursor::new(rest);
        cursor.decimal().is_some()
    };
    counts_cpus(line)
        || line.strip_prefix(b"CPU ").is_some_and(|rest| number(rest) && rest.ends_with(b" is empty"))
        || line.strip_prefix(b"CPU:").is_some_and(|rest| number(rest) && contains(rest, b"[SUBBUFFER START]"))
        || line.strip_prefix(b"version = ").is_some_and(number)
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(text, needle).is_some()
}

fn is_frame(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(FRAME)
}

fn frame_text(line: &[u8]) -> &[u8] {
    line.trim_ascii().get(3..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::bio_flags::BioFlags;
    use crate::event::{Dev, Kind, NO_ID, Op, UNKNOWN_TASK, WaitKind};
    use crate::names::NameId;
    use crate::source::Note;

    fn parse(text: &[u8]) -> Batch {
        let mut batch = Batch::default();
        let options = SourceOptions { keep_extras: true, ..SourceOptions::default() };
        FtraceText.parse_lines(&options, text, &mut batch);
        batch
    }

    /// An event, its name in the low-level log, and its extra fields.
    fn one(event: &str) -> (Kind, String, String) {
        let batch = parse(format!("              wl-262     [000] .....    20.527240: {event}\n").as_bytes());
        assert_eq!(batch.notes, [], "{event}");
        assert_eq!(batch.events.len(), 1, "{event}");
        let name = |id| String::from_utf8_lossy(batch.names.get(id)).into_owned();
        let extras: Vec<_> = batch.extras.iter().map(|e| format!("{}={}", name(e.key), name(e.value))).collect();
        (batch.events[0].kind, name(batch.event_names[0]), extras.join(";"))
    }

    #[test]
    fn calls_as_the_kernel_and_trace_cmd_print_them() {
        let enter = Kind::enter(Op::Fsync);
        let exit = |ret| Kind::exit(Op::Fsync, Some(ret));
        for (event, want, word, extras) in [
            ("sys_fsync(fd: 1f)", enter, "sys_enter_fsync", "fd=31"),
            ("sys_fsync(unsigned int fd: 3)", enter, "sys_enter_fsync", "fd=3"),
            ("sys_enter_fsync:      fd: 0x0000001f", enter, "sys_enter_fsync", "fd=31"),
            ("sys_enter_fsync:       __syscall_nr=74 fd=0x3", enter, "sys_enter_fsync", "__syscall_nr=74;fd=3"),
            ("sys_fsync -> 0x0", exit(0), "sys_exit_fsync", ""),
            ("sys_fsync -> 0xfffffffffffffffb", exit(-5), "sys_exit_fsync", ""),
            ("sys_fsync -> 0xfffffffb", exit(-5), "sys_exit_fsync", ""),
            ("sys_exit_fsync:       0x0", exit(0), "sys_exit_fsync", ""),
            ("(+9)     sys_exit_fsync:       __syscall_nr=74 ret=-5", exit(-5), "sys_exit_fsync", "__syscall_nr=74"),
            (
                "sys_write(fd: 1, buf: 562e599ef600, count: c8)",
                Kind::Other,
                "sys_enter_write",
                "fd=1;buf=94757072074240;count=200",
            ),
            ("sys_write -> 0xc8", Kind::Other, "sys_exit_write", "ret=200"),
            ("sys_sync()", Kind::enter(Op::Sync), "sys_enter_sync", ""),
        ] {
            assert_eq!(one(event), (want, word.to_owned(), extras.to_owned()), "{event}");
        }
    }

    #[test]
    fn syscall_numbers_need_a_known_machine() {
        assert_eq!(one("sys_enter: NR 74 (3, 0, 0, 0, 0, 0)").0, Kind::Other);
        let text = b"              wl-262     [000] .....    20.527240: sys_enter: NR 74 (3, 0, 0, 0, 0, 0)\n\
            \x20             wl-262     [000] .....    20.527241: sys_exit: NR 74 = -5\n";
        for (machine, known) in [(Machine::X86_64, 2), (Machine::Arm64, 0)] {
            let options = SourceOptions { machine: Some(machine), ..SourceOptions::default() };
            let mut batch = Batch::default();
            FtraceText.parse_lines(&options, text, &mut batch);
            assert_eq!((batch.events.len(), batch.dropped_events), (known, 2 - known as u64));
            if known > 0 {
                assert_eq!(batch.events[1].kind, Kind::exit(Op::Fsync, Some(-5)));
            }
        }
    }

    #[test]
    fn paths_with_and_without_escapes() {
        for (event, want, fs_name) in [
            (
                r"sync_start: id=1 start=0 end=9 datasync=1 dev=254,16 ino=13 path=/a\012b path=/c ",
                r"/a\012b path=/c ",
                "ext4",
            ),
            (
                r"sync_start: id=1 start=0 end=9 datasync=1 dev=0,28 ino=13 op=fsync fs=btrfs path=/a\012b\134c",
                "/a\nb\\c",
                "btrfs",
            ),
        ] {
            let batch = parse(format!("              wl-262     [000] .....    20.527240: {event}\n").as_bytes());
            let Kind::SyncStart { id: 1, start: 0, end: 9, path, fs, ino: 13, datasync: true, .. } =
                batch.events[0].kind
            else {
                panic!("{event}")
            };
            assert_eq!(batch.names.get(path), want.as_bytes(), "{event}");
            assert_eq!(batch.names.get(fs), fs_name.as_bytes(), "{event}");
        }
    }

    #[test]
    fn events_of_the_patch() {
        let dev = Dev::new(254, 16);
        let submit = |background| Kind::BioSubmit {
            id: 7,
            bio: 0xff11_0000_0089_6e40,
            sector: 8,
            dev,
            background,
            bytes: 4096,
            flags: Some(BioFlags::SYNC),
        };
        for (event, want, extras) in [
            (
                "bio_add_folio:        id=7 bio=0xff11000000896e40x start=4096 len=512 dev=254,16 ino=13",
                Kind::BioAddFolio { id: 7, bio: 0xff11_0000_0089_6e40, offset: 4096, len: 512, dev, ino: 13 },
                "",
            ),
            (
                "bio_submit: id=7 bio=ff11000000896e40 dev=254,16 sector=8 bytes=4096 opf=0x801",
                submit(false),
                "bytes=4096;opf=2049",
            ),
            (
                "bio_submit: id=7 bio=0xff11000000896e40 dev=254,16 sector=8 bytes=4096 opf=0x801",
                submit(false),
                "bytes=4096;opf=2049",
            ),
            (
                "bio_submit: id=7 bio=0xff11000000896e40 dev=266338320 sector=8 bytes=4096 opf=0x801 origin=journal",
                submit(true),
                "bytes=4096;opf=2049;origin=journal",
            ),
            (
                "bio_complete: bio=0x4 status=-5",
                Kind::BioComplete { bio: 4, sector: -1, dev: Dev::UNKNOWN, error: Some(-5) },
                "status=-5",
            ),
            ("sync_end: id=18446744073709551614 ret=-5", Kind::end(u64::MAX - 1, -5), ""),
            (
                "wb_start: id=9 reason=periodic dev=254,16 ino=13 origin=background",
                Kind::WbStart { id: 9 },
                "reason=periodic;dev=254,16;ino=13;origin=background",
            ),
            (
                "commit_end: id=9 dev=254,16 tid=2 ret=0",
                Kind::WaitEnd { id: 9, wait: WaitKind::Commit, transaction: 2 },
                "dev=254,16;ret=0",
            ),
            (
                "commit_wait_start: id=9 dev=254,16 tid=2",
                Kind::WaitStart { id: 9, wait: WaitKind::CommitWait, transaction: 2 },
                "dev=254,16",
            ),
            (
                "fc_end: id=9 dev=254,16 tid=2 status=ok blocks=1",
                Kind::WaitEnd { id: 9, wait: WaitKind::FastCommit, transaction: 2 },
                "dev=254,16;status=ok;blocks=1",
            ),
            (
                "flush_start: id=9 dev=254,16",
                Kind::WaitStart { id: 9, wait: WaitKind::Flush, transaction: 0 },
                "dev=254,16",
            ),
            ("bh_complete: bio=0x4 bh=0x5 status=0", Kind::Other, "bio=4;bh=5;status=0"),
        ] {
            let (kind, _, have) = one(event);
            assert_eq!((kind, have.as_str()), (want, extras), "{event}");
        }
    }

    #[test]
    fn events_of_stock_kernels() {
        let dev = Dev::new(254, 16);
        let block = |sector, bytes| (dev, sector, bytes);
        let submit = |(dev, sector, bytes), rwbs: &str| Kind::BlockSubmit {
            dev,
            sector,
            bytes,
            flags: BioFlags::of_rwbs(rwbs.as_bytes()).unwrap(),
        };
        let complete = |(dev, sector, bytes), rwbs: &str, error| Kind::BlockComplete {
            dev,
            sector,
            bytes,
            flags: BioFlags::of_rwbs(rwbs.as_bytes()).unwrap(),
            error,
            is_bio: false,
        };
        let end = |dev, ino, datasync, ret| Kind::SyncEnd { id: NO_ID, ret, fs: NameId::NONE, dev, ino, datasync };
        for (event, want, extras) in [
            ("ext4_sync_file_exit: dev 254,16 ino 19 ret -5", end(dev, 19, None, -5), ""),
            (
                "f2fs_sync_file_exit: dev = (254,16), ino = 4, cp_reason: no needed, datasync = 1, ret = 0",
                end(dev, 4, Some(true), 0),
                "cp_reason=no needed",
            ),
            // Before 4.17.
            (
                "f2fs_sync_file_exit: dev = (254,16), ino = 4, checkpoint is not needed, datasync = 1, ret = 0",
                end(dev, 4, Some(true), 0),
                "need_cp=0",
            ),
            (
                "f2fs_sync_file_exit: dev = (254,16), ino = 4, checkpoint is needed, datasync = 0, ret = -5",
                end(dev, 4, Some(false), -5),
                "need_cp=1",
            ),
            (
                "f2fs_sync_file_exit: dev = (7,0), ino = 8, checkpoint is not needed, datasync = 0, ret = 0",
                end(Dev::new(7, 0), 8, Some(false), 0),
                "need_cp=0",
            ),
            (
                "block_bio_queue: 254,16 WS 274984 + 8 [a + b]",
                submit(block(274_984, 4096), "WS"),
                "rwbs=WS;nr_sector=8;data_comm=a + b",
            ),
            (
                "block_bio_queue: dev=266338320 sector=8 nr_sector=8 rwbs=FWFS comm=a b",
                submit(block(8, 4096), "FWFS"),
                "nr_sector=8;rwbs=FWFS;data_comm=a b",
            ),
            (
                "block_bio_queue: 254,16 RAM 8 + 8 [mkdir]",
                submit(block(8, 4096), "RAM"),
                "rwbs=RAM;nr_sector=8;data_comm=mkdir",
            ),
            (
                "block_rq_complete: 254,16 WSM () 8 + 16 0x2,0,4 [-5]",
                complete(block(8, 8192), "WSM", Some(-5)),
                "rwbs=WSM;cmd=;nr_sector=16;ioprio=0x2,0,4;error=-5",
            ),
            (
                "block_rq_complete: 254,16 WS () 8 + 16 [0]",
                complete(block(8, 8192), "WS", Some(0)),
                "rwbs=WS;cmd=;nr_sector=16;error=0",
            ),
            (
                "block_rq_complete: 254,16 FF () 18446744073709551615 + 0 none,0,0 [0]",
                complete(block(-1, 0), "FF", Some(0)),
                "rwbs=FF;cmd=;sector=18446744073709551615;nr_sector=0;ioprio=none,0,0;error=0",
            ),
            (
                "block_rq_issue: 254,16 WS 4096 () 8 + 8 be,0,4 [wl]",
                Kind::BlockIssue { dev, sector: 8, bytes: 4096, flags: BioFlags::of_rwbs(b"WS").unwrap() },
                "rwbs=WS;cmd=;nr_sector=8;ioprio=be,0,4;data_comm=wl",
            ),
            (
                "block_rq_complete: 254,16 WFSM () 8 + 8 [0]",
                Kind::BlockComplete {
                    dev,
                    sector: 8,
                    bytes: 4096,
                    flags: BioFlags::of_rwbs(b"WFSM").unwrap(),
                    error: Some(0),
                    is_bio: false,
                },
                "rwbs=WFSM;cmd=;nr_sector=8;error=0",
            ),
            (
                "block_rq_complete: 254,16 WSM () 3936488 + 0 0x2,0,3 [0]",
                complete(block(3_936_488, 0), "WSM", Some(0)),
                "rwbs=WSM;cmd=;nr_sector=0;ioprio=0x2,0,3;error=0",
            ),
            (
                "block_bio_remap: 254,16 W 100 + 8 <- (254,1) 36",
                Kind::BlockRemap {
                    dev,
                    sector: 100,
                    bytes: 4096,
                    from_dev: Dev::new(254, 1),
                    from_sector: 36,
                    flags: BioFlags::of_rwbs(b"W").unwrap(),
                },
                "rwbs=W;nr_sector=8",
            ),
            (
                "block_split: 254,16 W 100 / 120 [wl]",
                Kind::Other,
                "dev=254,16;rwbs=W;sector=100;new_sector=120;data_comm=wl",
            ),
        ] {
            let (mut kind, _, have) = one(event);
            if let Kind::SyncEnd { fs, .. } = &mut kind {
                *fs = NameId::NONE;
            }
            assert_eq!((kind, have.as_str()), (want, extras), "{event}");
        }
        let uuid = "6c7b62a1-0000-4e2f-8f10-3d6b3e1a2b3c";
        for (event, fs, want_dev, ino, datasync, extras) in [
            (
                "ext4_sync_file_enter: dev 254,16 ino 19 parent 2 datasync 1 ".to_owned(),
                "ext4",
                dev,
                19,
                true,
                "parent=2".to_owned(),
            ),
            (
                "f2fs_sync_file_enter: dev = (254,16), ino = 4, pino = 3, i_mode = 0x81a4, i_size = 12288".to_owned(),
                "f2fs",
                dev,
                4,
                false,
                "pino=3;i_mode=33188;i_size=12288".to_owned(),
            ),
            (
                "xfs_file_fsync: dev 254:16 ino 0x83 iflags 0x0".to_owned(),
                "xfs",
                dev,
                131,
                false,
                "iflags=0".to_owned(),
            ),
            // Before 5.15.
            ("xfs_file_fsync: dev 254:16 ino 0x83".to_owned(), "xfs", dev, 131, false, String::new()),
            // Before 4.13, and before 4.8 without the id of the file system.
            (
                format!("btrfs_sync_file: {uuid}: root = 5(FS_TREE), ino = 257, parent = 256, datasync = 1"),
                "btrfs",
                Dev::UNKNOWN,
                257,
                true,
                format!("fsid={uuid};root=5(FS_TREE);parent=256"),
            ),
            (
                "btrfs_sync_file: root = 5(FS_TREE), ino = 257, parent = 256, datasync = 1".to_owned(),
                "btrfs",
                Dev::UNKNOWN,
                257,
                true,
                "root=5(FS_TREE);parent=256".to_owned(),
            ),
            (
                format!("btrfs_sync_file: {uuid}: root=5(FS_TREE) ino=257 parent=256 datasync=1"),
                "btrfs",
                Dev::UNKNOWN,
                257,
                true,
                format!("fsid={uuid};root=5(FS_TREE);parent=256"),
            ),
        ] {
            let batch = parse(format!("              wl-262     [000] .....    20.527240: {event}\n").as_bytes());
            let Kind::SyncStart { id: NO_ID, path: NameId::NONE, fs: name, ino: number, dev, datasync: flag, .. } =
                batch.events[0].kind
            else {
                panic!("{event}")
            };
            assert_eq!((batch.names.get(name), number, dev, flag), (fs.as_bytes(), ino, want_dev, datasync), "{event}");
            assert_eq!(one(&event).2, extras);
        }
    }

    #[test]
    fn other_events_keep_their_fields_or_text() {
        for (event, word, extras) in [
            (
                "jbd2_drop_transaction: dev 254,16 transaction 145 sync 0",
                "jbd2_drop_transaction",
                "dev=254,16;transaction=145;sync=0",
            ),
            (
                "writeback_dirty_folio: bdi 254:16: ino=131074 index=0",
                "writeback_dirty_folio",
                "name=254:16;ino=131074;index=0",
            ),
            ("global_dirty_state:   dirty=10 writeback=0", "global_dirty_state", "dirty=10;writeback=0"),
            (
                "sb_mark_inode_writeback: dev 254,16 ino 1 state  mode 0100644",
                "sb_mark_inode_writeback",
                "dev=254,16;ino=1;state=;mode=0100644",
            ),
            (
                "sched_switch: prev_comm=a b prev_state=S ==> next_comm=c",
                "sched_switch",
                "prev_comm=a b;prev_state=S ==>;next_comm=c",
            ),
            ("writeback_pages_written: 12", "writeback_pages_written", "text=12"),
            ("tracing_mark_write: C|1|heap|4", "tracing_mark_write", "text=C|1|heap|4"),
            ("print: do_fsync: a", "print", "text=do_fsync: a"),
            ("do_fsync+0x10/0x20: a b", "do_fsync", "text=do_fsync+0x10/0x20: a b"),
            // A name that another recorder has for an event, or the log for a loss.
            ("sync_start.009327: a", "event sync_start", "text=sync_start.009327: a"),
            ("fsync: fd=3", "event fsync", "fd=3"),
            ("lost_events: count=3", "event lost_events", "count=3"),
            ("raw_data: # 2a 72", "raw_data", "text=# 2a 72"),
            ("vfs_fsync_range <-do_fsync", "function", "text=vfs_fsync_range <-do_fsync"),
            ("f.isra.0 <-g", "function", "text=f.isra.0 <-g"),
            ("f(file=0xff, start=0) <-g", "function", "text=f(file=0xff, start=0) <-g"),
            ("block_plug: [wl]", "block_plug", "text=[wl]"),
            ("x: [FAILED TO PARSE] a=1 b=0x10", "x", "a=1;b=16"),
            ("empty:", "empty", ""),
        ] {
            assert_eq!(one(event), (Kind::Other, word.to_owned(), extras.to_owned()), "{event}");
        }
    }

    #[test]
    fn losses_are_noted() {
        let batch = parse(
            b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 3400/3407   #P:2\n\
              ##### CPU 1 buffer started ####\ncpus=2\nCPU 0 is empty\n\nCPU:1 [LOST 9 EVENTS]\nCPU:0 [LOST EVENTS]\n\
              a.dat: CPU:1 [11 EVENTS DROPPED]\nCPU:1 [EVENTS DROPPED]\n[LOST 3 EVENTS]\nCPU:1 [SUBBUFFER START]\n",
        );
        let kinds: Vec<_> = batch.notes.iter().map(|Note { line, kind, .. }| (*line, kind.clone())).collect();
        let lost = |count| NoteKind::Lost { count };
        let unknown = NoteKind::LostUncounted;
        let want = [(3, lost(7)), (8, lost(9)), (9, unknown.clone()), (10, lost(11)), (11, unknown), (12, lost(3))];
        assert_eq!(kinds, want);
        assert_eq!((batch.events.len(), batch.lines), (0, 13));
    }

    #[test]
    fn unparsed_lines_are_noted() {
        for (line, why) in [
            ("hello", "it does not begin with"),
            (" => f", "without a `<stack trace>`"),
            ("              wl-262     [000] .....    20.527240: ", "no event follows"),
            ("              wl-262     [000] ..... 99999999999.000000: x: a=1", "63 bits"),
            ("              wl-262     [000] .....    20.527240: sync_end: id=x ret=0", "the data of sync_end"),
            (
                "              wl-262     [000] .....    20.527240: bio_add_folio: id=1 bio=0x2 start=0 len=-1",
                "bio_add_folio",
            ),
            ("              wl-262     [000] .....    20.527240: sync_end: id=1", "the data of sync_end"),
            ("              wl-262     [000] .....    20.527240: block_bio_queue: 254,16 WS 8 +", "RWBS"),
        ] {
            let batch = parse(format!("{line}\n").as_bytes());
            let [Note { line: 1, kind: NoteKind::Unparsed { why: message, .. }, .. }] = &batch.notes[..] else {
                panic!("{line}: {:?}", batch.notes)
            };
            assert!(message.contains(why), "{line}: {message}");
            assert_eq!((batch.has_whole_events(), batch.extras.len()), (false, 0));
            assert_eq!(batch.event_names.len(), batch.events.len());
        }
    }

    #[test]
    fn chunks_do_not_split_stacks() {
        let text = b"              wl-262     (    260) [000] .....    20.527240: sys_fsync(fd: 3)\n\
            \x20             wl-262     (    260) [000] .....    20.527241: <stack trace>\n => ftrace_syscall_enter\n => do_syscall_64\n\
            \x20         <idle>-0       (-------) [000] .....    20.527242: kernel_stack:         <stack trace >\n=> f (ffff)\n";
        let batch = parse(text);
        assert_eq!(batch.notes, []);
        let stacks: Vec<_> = batch.extras.iter().filter(|e| batch.names.get(e.key) == b"stack").collect();
        assert_eq!(stacks.iter().map(|e| e.event).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(batch.names.get(stacks[0].value), b"ftrace_syscall_enter\ndo_syscall_64");
        assert_eq!(batch.events.iter().map(|e| e.pid).collect::<Vec<_>>(), [260, 260, UNKNOWN_TASK]);
        let lines: Vec<usize> = (0..=text.len()).filter(|&n| FtraceText.cut(&text[..n]) == Some(n)).collect();
        assert_eq!(lines, [0; 0]);
        let cuts: std::collections::BTreeSet<_> = (0..=text.len()).filter_map(|n| FtraceText.cut(&text[..n])).collect();
        let starts: Vec<usize> = [b"20.527241", b"20.527242"]
            .iter()
            .map(|time| memchr::memmem::find(text, *time).unwrap_or_default())
            .map(|at| memchr::memrchr(b'\n', &text[..at]).unwrap_or_default() + 1)
            .collect();
        assert_eq!(cuts.into_iter().collect::<Vec<_>>(), starts);
    }

    #[test]
    fn format_is_detected_from_the_first_lines() {
        let event = "              wl-262     [000] .....    20.527240: x: a=1\n";
        for (head, want) in [
            ("# tracer: nop\n#\n".to_owned(), true),
            ("cpus=2\n".to_owned(), true),
            (event.to_owned(), true),
            (format!("# a comment\n{event}"), true),
            ("CPU:1 [LOST 9 EVENTS]\n".to_owned(), true),
            ("# a comment\n1 2 wl fsync\n".to_owned(), false),
            ("1 2 wl fsync\n".to_owned(), false),
            ("# syncline-log 1\n".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(FtraceText.sniff(head.as_bytes()), want, "{head}");
        }
    }
}
