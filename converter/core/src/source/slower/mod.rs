//! The tables of bcc's `ext4slower`, `xfsslower`, `btrfsslower`, `f2fsslower`, `zfsslower` and `nfsslower`, and of libbpf-tools' `fsslower`, which
//! has the same names: the calls to a file system that took longer than a threshold.
//!
//! A row is one call and is printed when it is over, so both ends of a sync are in it. `S` (bcc) and `F` (libbpf-tools) are passes through the
//! sync function of the file system, whatever call asked for it. The file is a base name, and the id is that of the process.
//!
//! ```text
//! Tracing ext4 operations slower than 10 ms
//! TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME
//! 06:35:01 postgres       2211   S 0       0          61.22 000000010000000000000001
//! ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE
//! 87847348,postgres,2211,S,0,0,61220,000000010000000000000001
//! ```

mod line;
mod table;

use std::sync::Arc;

use self::line::{Line, Said, header};
use self::table::{Deferred, Entry, OTHER_CLOCK, Table};
use super::{
    Batch, Explanation, InputTraits, Parse, Problem, Reader, Source, SourceOptions, TIME_RESOLUTION, last_newline,
    lines,
};
use crate::error::Result;
use crate::input_file::Input;
use crate::names::{NameId, Names};

const NAME: &str = "slower";
const TIME_OF_DAY: &str = "time_of_day";
/// Key of the threshold in `syncline_meta`, in ns, or `unknown`. Without it, all calls are in the table.
const SLOWER_THAN: &str = "slower_than_ns";
const UNKNOWN: &str = "unknown";

pub struct Slower;

impl Source for Slower {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "It has only the calls that took longer than the threshold of its tool. Nothing in it shows that a row is missing, unless the tool's \
         message about lost events is in the text."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(first) = lines(head).find(|line| !line.trim_ascii().is_empty()) else { return false };
        // A row of the table with commas does not say in which unit its time is, so it needs the header.
        header(first).is_some()
            || matches!(Line::parse(first), Ok(Line::Said(_) | Line::Row(line::Row { clock: line::Clock::OfDay, .. })))
    }

    fn describe(&self, _input: &Input) -> InputTraits {
        InputTraits { ids_are_processes: Some(true), ..InputTraits::standalone() }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let facts = facts(input.head());
        let is_of_day = facts.iter().any(|(key, value)| *key == "clock" && value == TIME_OF_DAY);
        let parser = Arc::new(Parser { keeps_extras: options.keep_extras, is_of_day });
        let mut reader = Reader::of_text(cut, parser, input);
        reader.stateful_pass = Some(Box::new(Table::new(is_of_day, options.keep_extras)));
        reader.facts = facts;
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        match problem {
            Problem::NoEvents { .. } => Some(Explanation {
                message: Some("it has no row of a sync (`S` or `F` in the column T)".to_owned()),
                hint: "lower the tool's threshold, for example `ext4slower 1`, or record all syncs: \
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

/// What the head says of the table: its clock, the threshold, and the tool.
fn facts(head: &[u8]) -> Vec<(&'static str, String)> {
    let (mut thresholds, mut fs, mut is_of_day, mut is_csv) = (Vec::new(), None, false, false);
    for line in lines(head) {
        is_csv |= header(line).is_some() && !is_of_day;
        let Ok(line) = Line::parse(line) else { continue };
        match line {
            Line::Said(Said::Tracing { fs: of, slower_than }) => {
                thresholds.push(slower_than);
                fs.get_or_insert(of);
            }
            Line::Said(Said::Header) => is_of_day |= !is_csv,
            Line::Row(row) => is_of_day |= row.clock == line::Clock::OfDay && !is_csv,
            _ => {}
        }
    }
    // The first table decides.
    let clock = if is_csv && !is_of_day { "monotonic" } else { TIME_OF_DAY };
    let mut facts = vec![("clock", clock.to_owned())];
    if clock == TIME_OF_DAY {
        facts.push((TIME_RESOLUTION, "1000000000".to_owned()));
    }
    match thresholds.iter().max() {
        None => facts.push((SLOWER_THAN, UNKNOWN.to_owned())),
        Some(0) => {}
        Some(most) => facts.push((SLOWER_THAN, most.to_string())),
    }
    if let Some(fs) = fs {
        facts.push(("recorder", format!("{}slower", String::from_utf8_lossy(fs).to_ascii_lowercase())));
    }
    facts
}

struct Parser {
    keeps_extras: bool,
    /// The times of the input are times of day.
    is_of_day: bool,
}

impl Parse for Parser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        let deferred = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok());
        let mut deferred = deferred.unwrap_or_default();
        deferred.entries.clear();
        for text in lines(chunk) {
            batch.lines += 1;
            let number = batch.lines as u32;
            let mut add = |entry| deferred.entries.push((number, entry));
            if text.trim_ascii().is_empty() || text == b"^C" {
                continue;
            }
            let rest = match header(text) {
                Some((said, rest)) => {
                    add(Entry::said(&said, &mut batch.names));
                    rest
                }
                None => text,
            };
            if rest.is_empty() {
                continue;
            }
            match Line::parse(rest) {
                Ok(Line::Said(said)) => add(Entry::said(&said, &mut batch.names)),
                Ok(Line::Lost(count)) => add(Entry::Lost(count)),
                Ok(Line::Row(row)) if (row.clock == line::Clock::OfDay) != self.is_of_day => {
                    add(Entry::bad(text, OTHER_CLOCK));
                }
                Ok(Line::Row(row)) if row.letter.is_sync() || self.keeps_extras => {
                    add(Entry::row(&row, text, &mut batch.names));
                }
                Ok(Line::Row(row)) => add(Entry::counted(&row, text)),
                Err(why) => add(Entry::bad(text, why)),
            }
        }
        batch.deferred = Some(deferred);
    }
}

/// `.../NAME` for the base name of a file: its folder is not known. The tools keep 31 bytes of a name (libbpf-tools) or the 32 to 40 that the
/// kernel stores in a folder's entry (bcc), so a longer one may have been cut, which `...` at its end says.
fn path_of(name: &[u8], may_be_cut: bool, names: &mut Names) -> NameId {
    // The root of a file system has no name, and its mount is not known.
    if name.is_empty() || name == b"/" {
        return NameId::NONE;
    }
    let end: &[u8] = if may_be_cut { b"..." } else { b"" };
    names.intern(&[b".../", name, end].concat())
}
