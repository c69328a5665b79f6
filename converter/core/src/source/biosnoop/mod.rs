//! The tables of `biosnoop`, of bcc and libbpf-tools, and of bpftrace's `biosnoop.bt`: the requests of block devices, each when it is complete.
//!
//! A row has both ends of a request. bcc and libbpf-tools print how long the device took, and with `-Q` how long the request was in the queue of
//! the scheduler before; bpftrace prints the sum. The disk is a name, but for bpftrace since 0.23.
//!
//! ```text
//! TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
//! 0.000000    kworker        46      vdb     WS   266240     65536     0.012   0.476
//! TIME(ms)     DISK ID        COMM             PID    LAT(ms)
//!              MAJOR MINOR
//! 2812         254   16       kworker/0:0      9            5
//! ```

mod line;
mod table;

use std::sync::Arc;

use memchr::memmem;

use self::line::{Disk, Header, Line, Row, Took};
use self::table::{Deferred, Entry, OTHER_CLOCK, Table};
use super::{
    Batch, Explanation, InputTraits, Parse, Problem, Reader, Source, SourceOptions, TIME_RESOLUTION, last_newline,
    lines,
};
use crate::error::Result;
use crate::input_file::Input;

pub const NAME: &str = "biosnoop";
/// Key of the unit of the durations in `syncline_meta`, in ns.
const LATENCY_RESOLUTION: &str = "latency_resolution_ns";
/// libbpf-tools print up to four letters of what a request does, and bcc one.
const LIBBPF_COLUMNS: &[u8] = b" DISK    T    SECTOR ";
const OTHER_TOOL: &str =
    "its latency has another number of decimals than those of its table, so it is torn or of another tool";
const MILLI: u64 = 1_000_000;
const MICRO: u64 = 1_000;

pub struct Biosnoop;

impl Source for Biosnoop {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It has the requests that began after the tool, and nothing in it shows that a row is missing, unless the tool's message about lost events \
         is in the text, or that the tool was to leave some out (-d, -m, -c)."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut used = lines(head).filter(|line| !line.trim_ascii().is_empty());
        let first = used.find(|line| !matches!(Line::parse(line, None), Ok(Line::Beside)));
        first.is_some_and(|line| matches!(Line::parse(line, None), Ok(Line::Header(_) | Line::Row(_))))
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(true), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let seen = Seen::of(input.head());
        let is_of_day = seen.is_of_day();
        let has_flags = seen.has_flags();
        let parser =
            Arc::new(Parser { header: seen.header, has_flags, is_of_day, names_threads: seen.names_threads() });
        let facts = seen.facts();
        let mut reader = Reader::of_text(cut, parser, input);
        reader.stateful_pass = Some(Box::new(Table::new(is_of_day, options.keep_extras)));
        reader.facts = facts;
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no row of a request".to_owned()),
                hint: "record while something is written or read, or record what the requests are for, too: \
                       `sudo syncline record --for 30s --and-report`"
                    .to_owned(),
            }),
            Problem::NoThreadIds => None,
        }
    }
}

/// See `Lines::cut`: each line is a record.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |_, _| true)
}

/// What the head says of the table.
#[derive(Default)]
struct Seen<'a> {
    /// The last header before the first row.
    header: Option<Header>,
    row: Option<Row<'a>>,
    /// The header has the columns of libbpf-tools.
    is_libbpf: bool,
    /// A row has the name of an idle CPU and the id of a process.
    names_idle: bool,
}

impl<'a> Seen<'a> {
    fn of(head: &'a [u8]) -> Self {
        let mut seen = Self::default();
        for line in lines(head) {
            seen.is_libbpf |=
                seen.row.is_none() && line.starts_with(b"TIME") && memmem::find(line, LIBBPF_COLUMNS).is_some();
            match Line::parse(line, seen.header) {
                Ok(Line::Header(header)) if seen.row.is_none() => seen.header = Some(header),
                Ok(Line::Row(row)) => {
                    seen.names_idle |= row.comm.starts_with(b"swapper/") && row.pid.is_some_and(|pid| pid != 0);
                    seen.row.get_or_insert(row);
                }
                _ => {}
            }
        }
        seen
    }

    /// The number of decimals, which says of which tool the rows are: those of a torn row are fewer.
    fn has_flags(&self) -> Option<bool> {
        let of_row = self.row.and_then(|row| row.has_flags());
        if self.is_libbpf { Some(true) } else { of_row }
    }

    fn is_of_day(&self) -> bool {
        self.header.map_or_else(|| self.row.is_some_and(|row| row.is_of_day), |header| header == Header::OfDay)
    }

    /// Whether the name of a thread in a row is that of the thread that began the request. bpftrace 0.22.1 to 0.23.1 print the name of the thread
    /// that the completion has interrupted, which often is another one.
    fn names_threads(&self) -> bool {
        self.header != Some(Header::Millis(Disk::Number)) || !self.names_idle
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (clock, mut unit) = if self.is_of_day() { ("time_of_day", MILLI) } else { ("relative", MICRO) };
        let latency = match (self.row.map(|row| row.took), self.header) {
            (Some(Took::Whole(_)), _) | (None, Some(Header::Millis(_))) => {
                unit = MILLI;
                MILLI
            }
            (Some(Took::AtDevice { has_flags: false, .. }), _) => 10 * MICRO,
            _ => MICRO,
        };
        vec![
            ("clock", clock.to_owned()),
            (TIME_RESOLUTION, unit.to_string()),
            (LATENCY_RESOLUTION, latency.to_string()),
            ("recorder", NAME.to_owned()),
        ]
    }
}

struct Parser {
    header: Option<Header>,
    has_flags: Option<bool>,
    /// The times of the input are times of day.
    is_of_day: bool,
    names_threads: bool,
}

impl Parse for Parser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let deferred = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok());
        let mut deferred = deferred.unwrap_or_default();
        deferred.entries.clear();
        for text in lines(chunk) {
            batch.lines += 1;
            if text.trim_ascii().is_empty() || text == b"^C" {
                continue;
            }
            let entry = match Line::parse(text, self.header) {
                Ok(Line::Beside) => continue,
                Ok(Line::Header(_)) => Entry::Header,
                Ok(Line::Lost(count)) => Entry::Lost(count),
                Ok(Line::Row(row)) if row.is_of_day != self.is_of_day => Entry::bad(text, OTHER_CLOCK),
                Ok(Line::Row(row)) if row.has_flags() != self.has_flags => Entry::bad(text, OTHER_TOOL),
                Ok(Line::Row(row)) => Entry::row(&row, text, self.names_threads, &mut batch.names),
                Err(why) => Entry::bad(text, why),
            };
            deferred.entries.push((batch.lines as u32, entry));
        }
        batch.deferred = Some(deferred);
    }
}
