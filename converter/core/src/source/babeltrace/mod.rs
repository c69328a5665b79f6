//! The text of `babeltrace2` and of `babeltrace`, which print traces in the Common Trace Format: those of LTTng's kernel tracer, whose events are
//! mostly the kernel's tracepoints with other names for a few fields, and those that `perf data convert --to-ctf` writes, with the kernel's names.
//!
//! The thread of an event is in a context, which `lttng add-context` adds to a session. Losses go to standard error, with the range of time in
//! which they happened.
//!
//! ```text
//! [10:11:12.123456789] (+?.?????????) host syscall_entry_fsync: { cpu_id = 0 }, { procname = "wl", pid = 1, tid = 2 }, { fd = 3 }
//! [10:11:12.123460023] (+0.000003234) host block_rq_complete: { cpu_id = 0 }, { procname = "swapper/0", pid = 0, tid = 0 }, { dev = 8388608, sector = 64, nr_sector = 8, error = 0, rwbs = 33 }
//! [2026-11-30 10:11:12.123456789] syscalls:sys_enter_fsync: { cpu_id = 0 }, { perf_tid = 2, perf_pid = 1, _syscall_nr = 74, fd = 3 }
//! WARNING: Tracer discarded 3 events between [10:11:12.2] and [10:11:12.3] in trace "..." (UUID: ...) within stream "..." (stream class ID: 0, stream ID: 1).
//! ```

mod fields;
mod line;
mod names;

use std::sync::Arc;

use self::fields::Payload;
use self::line::{Clock, Line, is_joined, lost};
use self::names::Name;
use super::batch::TornTimes;
use super::time_of_day::{DAY_NS, Days};
use super::tracepoint_text::{Grammar, Task, TextDecoder, TextRecord};
use super::tracepoints::Tracepoint;
use super::{
    Batch, Explanation, InputTraits, Parse, Problem, Reader, Source, SourceOptions, StatefulPass, last_newline, lines,
};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::input_file::Input;

pub const NAME: &str = "babeltrace";

const BAD_LINE: &str =
    "it is not `[TIME] (+DELTA) HOST EVENT: { CONTEXT }, { FIELDS }`, as babeltrace2 prints an event";
const NO_TIME: &str = "it has no time";
const NO_THREAD: &str =
    "it does not name its thread, because the session has no such context (`lttng add-context --kernel --type tid`)";
const OTHER_CLOCK: &str = "its time is on another clock than those of the lines before it";
const OTHER_HOST: &str = "it is of another host than the lines before it";

pub struct Babeltrace;

impl Source for Babeltrace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "babeltrace2 prints lost events to standard error, so a text of its standard output alone shows none: \
         `babeltrace2 TRACE >FILE 2>&1` keeps them."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut used = lines(head).filter(|line| !line.trim_ascii().is_empty() && !is_warning(line));
        used.next().is_some_and(|line| Line::parse(line).is_some_and(|line| line.scopes().is_some()))
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let first = lines(input.head()).find_map(Line::parse);
        let clock = first.as_ref().map(|line| line.time.clock);
        let host: Box<[u8]> = first.as_ref().map(|line| line.host).unwrap_or_default().into();
        let mut facts = vec![("recorder", NAME.to_owned())];
        // The zone of a date is not printed. What a counter counts is in the trace and not in the text.
        facts.push(("clock", first.as_ref().map_or("unknown", |line| line.time.clock_name()).to_owned()));
        if !host.is_empty() {
            facts.push(("host", String::from_utf8_lossy(&host).into_owned()));
        }
        let parser = Arc::new(Parser { options: *options, clock, host });
        let mut reader = Reader::of_text(cut, parser, input);
        if clock == Some(Clock::OfDay) {
            // A clock that is set back may print a time before the midnight that the first one is after.
            reader.stateful_pass = Some(Box::new(TimesOfDay(Days::new(DAY_NS))));
        }
        reader.facts = facts;
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no event of a sync whose thread is known, and none of a device".to_owned()),
                hint: "record the calls with their threads: `lttng enable-event --kernel --syscall fsync,fdatasync,sync,syncfs,msync,sync_file_range`, \
                       then `lttng add-context --kernel --type tid --type pid --type procname`"
                    .to_owned(),
            }),
            Problem::NoThreadIds => {
                Some(Explanation { message: None, hint: "record it with `lttng add-context --kernel --type tid`".to_owned() })
            }
        }
    }
}

/// See `Lines::cut`: each line is a record.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |_, _| true)
}

/// A message of babeltrace2 that is no event.
fn is_warning(line: &[u8]) -> bool {
    lost(line).is_some() || line.starts_with(b"You should consider ") || line.starts_with(b"[warning] ")
}

/// Gives times of day a day.
struct TimesOfDay(Days);

impl StatefulPass for TimesOfDay {
    fn apply(&mut self, batch: &mut Batch) {
        let known = batch.events.iter_mut().filter(|event| event.ts != TornTimes::UNKNOWN);
        known.for_each(|event| event.ts = self.0.time(event.ts));
    }
}

/// `clock` and `host` are those of the first event. Threads of two hosts may have the same id.
struct Parser {
    options: SourceOptions,
    clock: Option<Clock>,
    host: Box<[u8]>,
}

impl Parse for Parser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let mut decoder = TextDecoder::new(&self.options, batch);
        let mut payload = Payload::default();
        for text in lines(chunk) {
            decoder.batch.lines += 1;
            if text.trim_ascii().is_empty() {
                continue;
            }
            if let Some(note) = lost(text) {
                decoder.batch.note(note);
            } else if is_warning(text) {
                // Advice after a loss, and warnings about how times are printed.
            } else if let Err(why) = self.line(text, &mut payload, &mut decoder) {
                decoder.batch.unparsed(text, why);
            }
        }
    }
}

impl Parser {
    fn line(&self, text: &[u8], payload: &mut Payload, decoder: &mut TextDecoder<'_>) -> Result<(), &'static str> {
        let Some(line) = Line::parse(text) else {
            // The rest of a torn line ends as an event does.
            if text.trim_ascii_end().ends_with(b" }") || text.starts_with(b"[") {
                decoder.batch.torn_unknown(self.options());
            }
            return Err(BAD_LINE);
        };
        if self.clock.is_some_and(|clock| clock != line.time.clock) {
            return Err(OTHER_CLOCK);
        }
        if line.host != &*self.host {
            return Err(OTHER_HOST);
        }
        let Some(ts) = line.time.ns else {
            decoder.batch.torn_unknown(self.options());
            return Err(NO_TIME);
        };
        let name = line.name();
        let scopes = line.scopes();
        let thread = line.thread(scopes.as_deref());
        let task = Task { ts, tid: thread.tid, pid: thread.pid, comm: &thread.comm };
        let (Some(scopes), false) = (scopes, is_joined(line.rest)) else {
            return Err(self.torn(&task, &name, line.rest, decoder));
        };
        if !payload.fill(&name, scopes.last().copied().unwrap_or_default()) {
            return Err(self.torn(&task, &name, line.rest, decoder));
        }
        let tracepoint = name.tracepoint.filter(|_| payload.is_usable(&name));
        if task.tid == UNKNOWN_TASK && tracepoint.is_some_and(needs_thread) {
            return Err(NO_THREAD);
        }
        let data = payload.data();
        let record = TextRecord { prefix: b"", name: &name.kernels, tracepoint, grammar: Grammar::Split, data };
        decoder.event(&task, &record).map(|_| ()).inspect_err(|_| {
            self.torn(&task, &name, line.rest, decoder);
        })
    }

    fn options(&self) -> &SourceOptions {
        &self.options
    }

    /// Says what a torn line was about.
    #[cold]
    fn torn(&self, task: &Task<'_>, name: &Name<'_>, rest: &[u8], decoder: &mut TextDecoder<'_>) -> &'static str {
        if task.tid == UNKNOWN_TASK && name.tracepoint.is_some_and(needs_thread) || is_joined(rest) {
            decoder.batch.torn_unknown(self.options());
        } else {
            decoder.torn(task, &[&name.kernels, b": ".as_slice()].concat());
        }
        BAD_LINE
    }
}

/// Whether an event says nothing without its thread.
fn needs_thread(tracepoint: Tracepoint) -> bool {
    tracepoint.is_call() || tracepoint.is_sync_without_id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Dev, Kind, NO_ID, Op};
    use crate::source::NoteKind;

    fn parse(text: &str) -> Batch {
        let first = lines(text.as_bytes()).find_map(Line::parse);
        let clock = first.as_ref().map(|line| line.time.clock);
        let host = first.map(|line| line.host).unwrap_or_default().into();
        let mut batch = Batch::default();
        let options = SourceOptions { keep_extras: false, ..SourceOptions::default() };
        Parser { options, clock, host }.parse(text.as_bytes(), &mut batch);
        batch
    }

    fn kinds(text: &str) -> Vec<(i64, u32, u32, Kind)> {
        parse(text).events.iter().map(|event| (event.ts, event.tid, event.pid, event.kind)).collect()
    }

    #[test]
    fn calls_of_lttng_and_of_perf() {
        let text = "\
[00:00:01.000000002] (+?.?????????) db1 syscall_entry_fsync: { cpu_id = 1 }, { procname = \"wal\", pid = 7, tid = 8 }, { fd = 3 }
[00:00:01.000000003] (+0.000000001) db1 syscall_exit_fsync: { cpu_id = 1 }, { procname = \"wal\", pid = 7, tid = 8 }, { ret = -5 }
[00:00:01.000000004] (+0.000000001) db1 syscalls:sys_enter_sync: { cpu_id = 1 }, { perf_ip = 0x7F, perf_tid = 9, perf_pid = 7, perf_callchain = [ [0] = 0xFF, [1] = 0x0 ], _syscall_nr = 162 }
";
        let exit = Kind::exit(Op::Fsync, Some(-5));
        assert_eq!(
            kinds(text),
            [
                (1_000_000_002, 8, 7, Kind::enter(Op::Fsync)),
                (1_000_000_003, 8, 7, exit),
                (1_000_000_004, 9, 7, Kind::enter(Op::Sync))
            ]
        );
    }

    #[test]
    fn flags_of_lttng_are_bits() {
        let text = "[5.000000001] (+?.?????????) h block_rq_issue: { cpu_id = 0 }, { dev = 8388624, sector = 64, nr_sector = 8, bytes = 4096, tid = 12, rwbs = 1569, comm = \"wl\" }\n";
        let batch = parse(text);
        let Kind::BlockIssue { dev, sector, bytes, flags } = batch.events[0].kind else { panic!("no issue") };
        assert_eq!((dev, sector, bytes), (Dev::new(8, 16), 64, 4096));
        assert_eq!(Some(flags), crate::event::bio_flags::BioFlags::of_rwbs(b"FWFS"));
        assert_eq!((batch.events[0].tid, batch.names.get(batch.events[0].comm)), (12, &b"wl"[..]));
    }

    #[test]
    fn a_call_without_its_thread_is_not_used() {
        let batch = parse("[00:00:01.000000002] (+?.?????????) db1 syscall_entry_fsync: { cpu_id = 1 }, { fd = 3 }\n");
        assert!(batch.events.is_empty() && batch.notes.len() == 1);
    }

    #[test]
    fn a_torn_line_says_what_it_was_about() {
        let text = "[1.000000002] (+?.?????????) syscall_entry_fsync: { cpu_id = 1 }, { procname = \"a\", pid = 7, tid = 8 }, { fd = 3\n";
        let batch = parse(text);
        assert!(matches!(batch.events[0].kind, Kind::Torn { id: NO_ID, .. }), "{:?}", batch.events);
        assert_eq!((batch.events[0].tid, batch.notes.len()), (8, 1));
    }

    #[test]
    fn what_the_tracer_discarded_is_counted() {
        let said = |text: &str| lost(text.as_bytes());
        let of = |count| Some(NoteKind::Lost { count });
        assert_eq!(said("WARNING: Tracer discarded 3 events between [1.0] and [2.0] in trace \"a\""), of(3));
        assert_eq!(said("[warning] Tracer discarded 1 event between [1.0]"), of(1));
        let uncounted = Some(NoteKind::LostUncounted);
        assert_eq!(said("WARNING: Tracer may have discarded events (unknown time range) in trace"), uncounted);
        assert_eq!(said("WARNING: Tracer discarded 2 packets between [1.0]"), uncounted);
        assert_eq!(said("Tracer discarded x events"), None);
    }

    #[test]
    fn a_work_of_lttng_that_does_not_say_why_is_not_used() {
        let text = "[1.000000002] (+?.?????????) h writeback_start: { cpu_id = 1 }, { procname = \"k\", pid = 7, tid = 7 }, { name = \"8:0\" }\n";
        let batch = parse(text);
        assert_eq!((batch.events.len(), batch.notes.len(), batch.dropped_events), (0, 0, 1));
    }
}
