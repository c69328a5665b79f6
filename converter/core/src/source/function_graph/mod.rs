//! The text of the tracer function_graph: which functions of the kernel ran one inside another, and for how long.
//!
//! The kernel prints it in tracefs' `trace` and `trace_pipe`, with columns that its options choose, and `trace-cmd report` in the columns of any
//! event. The functions in which a sync of a file system waits are those that the recorder's probes are on, so their entries and returns
//! become the events of these probes. A `}` does not name what it ends: `Nesting` finds that by the depth.
//!
//! ```text
//! # tracer: function_graph
//!  1034.100001 |   1)   wal-2211   |               |  ext4_sync_file() {
//!  1034.100003 |   1)   wal-2211   |               |    file_write_and_wait_range() {
//!  1034.101203 |   1)   wal-2211   | # 1200.100 us |    }
//!  1034.101212 |   1)   wal-2211   | * 14020.550 us|    jbd2_log_wait_commit();
//!  1034.115240 |   1)   wal-2211   | * 15239.000 us|  }
//!              wal-2211  [001]  1034.100001: funcgraph_entry:                   |  ext4_sync_file() {
//! ```

pub(super) mod functions;
mod line;
mod nesting;

use std::sync::Arc;

use self::line::{Shape, of_kernel, of_trace_cmd};
use self::nesting::{Deferred, GraphLine, Nesting};
use super::ftrace_text::context::{Context, Time, context};
use super::ftrace_text::{is_of_trace_cmd, lost, overwritten};
use super::tracepoint_text::{NameCache, Task, TextDecoder, TextRecord};
use super::{
    Batch, Explanation, InputTraits, NoteKind, Parse, Problem, Reader, Source, SourceOptions, last_newline, lines,
    trim_line,
};
use crate::error::{Error, Refused, Result};
use crate::event::UNKNOWN_TASK;
use crate::input_file::Input;

const NAME: &str = "function-graph";
const HEADER: &[u8] = b"# tracer: function_graph";
/// More lines than the head of a trace has before its first function.
const SNIFFED_LINES: usize = 64;
const BAD_LINE: &str = "it has neither a function nor an end of one, as the tracer function_graph prints them";
const NO_TIME: &str = "it has no time";
const NO_TASK: &str = "the event names no thread: record with the option funcgraph-proc";
const OPTIONS: &str = "have the kernel print times and threads (`cd /sys/kernel/tracing/options; echo 1 >funcgraph-abstime; echo 1 >funcgraph-proc`), \
     or record with `trace-cmd record -p function_graph -g ext4_sync_file`, whose report has them";

pub struct FunctionGraph;

impl Source for FunctionGraph {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It shows what was traced: a wait in a function that a filter, a limit of depth or inlining left out has no name. Nor does anything show that \
         the only line of a function (`NAME();`) is missing, or that its duration leaves out sleep, as with the kernel's option sleep-time off."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut used = lines(head).map(trim_line).filter(|line| !line.is_empty()).take(SNIFFED_LINES);
        let Some(first) = used.next() else { return false };
        // trace-cmd begins with the number of CPUs, and other events may come before the first function.
        let may_be_of_trace_cmd = context(first).is_some() || first.starts_with(b"cpus=");
        first.starts_with(HEADER)
            || of_kernel(first).is_some_and(|line| line.shape != Shape::Aside)
            || may_be_of_trace_cmd && std::iter::once(first).chain(used).any(is_of_trace_cmd_graph)
    }

    /// Columns are right-aligned.
    fn has_indent(&self, _head: &[u8]) -> bool {
        true
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { is_part_of_recording: true, ids_are_processes: Some(false), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let head = input.head();
        let of_functions: Vec<line::Line<'_>> = lines(head).filter_map(of_kernel).filter(is_of_function).collect();
        let is_all = |lacks: fn(&line::Line<'_>) -> bool| !of_functions.is_empty() && of_functions.iter().all(lacks);
        let mut nesting = Nesting::new(options.keep_extras);
        let mut has_lines = false;
        for line in lines(head) {
            // The next recording in the text has threads of its own.
            if has_lines && line.starts_with(HEADER) {
                break;
            }
            if let Some(graph) = of_kernel(line) {
                has_lines = true;
                nesting.expect(&graph);
            }
        }
        let missing = if is_all(|line| line.ts.is_none()) {
            Some("its lines have no time, so nothing says when a sync began")
        } else if is_all(|line| line.tid.is_none()) && !nesting.knows_threads() {
            Some("its lines name no thread, and no line says which one runs on a CPU")
        } else {
            None
        };
        if let Some(missing) = missing {
            return Err(Error::Read { path: input.path.clone(), source: Refused::error(missing, OPTIONS) });
        }
        let parser = Arc::new(Parser { options: *options });
        let mut reader = Reader::of_text(cut, parser, input);
        reader.stateful_pass = Some(Box::new(nesting));
        reader.facts.push(("clock", "unknown".to_owned()));
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no function that syncs a file".to_owned()),
                hint: "trace the one of the file system, for example with `echo ext4_sync_file >/sys/kernel/tracing/set_graph_function`"
                    .to_owned(),
            }),
            Problem::NoThreadIds => {
                Some(Explanation { message: None, hint: "set the option funcgraph-proc while it is recorded".to_owned() })
            }
        }
    }
}

/// See `Lines::cut`: each line is a record.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |_, _| true)
}

fn is_of_function(line: &line::Line<'_>) -> bool {
    matches!(line.shape, Shape::Enter(_) | Shape::Leaf { .. } | Shape::Leave { .. })
}

/// Whether trace-cmd prints such a line of a function.
fn is_of_trace_cmd_graph(line: &[u8]) -> bool {
    context(line).is_some_and(|found| of_trace_cmd(found.event).is_some())
}

struct Parser {
    options: SourceOptions,
}

impl Parse for Parser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let deferred = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok());
        let mut deferred = deferred.unwrap_or_default();
        deferred.lines.clear();
        let mut of_chunk = OfChunk {
            decoder: TextDecoder::new(&self.options, batch),
            names: NameCache::new(),
            deferred: &mut deferred,
        };
        for line in lines(chunk) {
            of_chunk.decoder.batch.lines += 1;
            of_chunk.line(trim_line(line));
        }
        batch.deferred = Some(deferred);
    }
}

struct OfChunk<'a, 't> {
    decoder: TextDecoder<'a>,
    names: NameCache<'t>,
    deferred: &'a mut Deferred,
}

impl<'t> OfChunk<'_, 't> {
    fn line(&mut self, line: &'t [u8]) {
        // Between the functions: how many of them had no room on the stack of the tracer, and what trace-cmd says of CPUs.
        if line.is_empty() || line.ends_with(b"------") || line.starts_with(b" (Overruns: ") || is_of_trace_cmd(line) {
            return;
        }
        if line.starts_with(b"#") {
            if line.starts_with(HEADER) {
                self.deferred.lines.push(GraphLine::head(self.decoder.batch.lines as u32));
            }
            if let Some(count) = overwritten(line) {
                self.decoder.batch.note(NoteKind::Lost { count });
            }
            return;
        }
        if let Some(count) = lost(line) {
            return match count {
                Some(0) => {}
                Some(count) => self.decoder.batch.note(NoteKind::Lost { count }),
                None => self.decoder.batch.note(NoteKind::LostUncounted),
            };
        }
        if let Some(found) = context(line) {
            return self.of_trace_cmd(line, &found);
        }
        let Some(graph) = of_kernel(line) else { return self.unparsed(line, BAD_LINE) };
        match (graph.shape, graph.ts, graph.tid) {
            (Shape::Event(text), Some(ts), Some(tid)) => {
                self.event(line, &Task { ts, tid, pid: UNKNOWN_TASK, comm: graph.comm }, text);
            }
            (Shape::Event(_), Some(_), None) => self.decoder.batch.unparsed(line, NO_TASK),
            (Shape::Aside, ..) => {}
            (Shape::Switch { .. }, ..) | (_, Some(_), _) => self.defer(&graph),
            (_, None, _) => self.unparsed(line, NO_TIME),
        }
    }

    fn of_trace_cmd(&mut self, line: &'t [u8], found: &Context<'t>) {
        let (Time::Ns(ts) | Time::Count(ts)) = found.time else {
            return self.unparsed(line, "its time does not fit 63 bits of ns");
        };
        match of_trace_cmd(found.event) {
            Some(graph) => self.defer(&line::Line { ts: Some(ts), tid: Some(found.tid), comm: found.comm, ..graph }),
            None if found.event.starts_with(b"funcgraph_e") => self.unparsed(line, BAD_LINE),
            None => {
                self.event(line, &Task { ts, tid: found.tid, pid: found.pid, comm: found.comm }, found.event);
            }
        }
    }

    /// An event that was recorded beside the functions.
    fn event(&mut self, line: &[u8], task: &Task<'_>, text: &'t [u8]) {
        let Some(record) = TextRecord::parse(text, &mut self.names) else { return self.unparsed(line, BAD_LINE) };
        if let Err(why) = self.decoder.event(task, &record) {
            self.decoder.batch.unparsed(line, why);
            self.decoder.torn(task, text);
        }
    }

    fn defer(&mut self, graph: &line::Line<'t>) {
        let batch = &mut *self.decoder.batch;
        let number = batch.lines as u32;
        let line = GraphLine::new(graph, number, &mut batch.names);
        self.deferred.lines.push(line);
    }

    fn unparsed(&mut self, line: &[u8], why: &'static str) {
        self.decoder.batch.unparsed(line, why);
        // It may have been of a function, unless it is text that somebody wrote around them.
        if line.contains(&b'|') || line.first().is_some_and(|first| first.is_ascii_digit() || *first == b' ') {
            self.decoder.batch.torn_unknown(self.decoder.options);
        }
    }
}
