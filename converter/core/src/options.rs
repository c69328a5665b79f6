//! The options of a conversion.

use std::collections::HashMap;
use std::path::Path;

use crate::block::devices_below::DevicesBelow;
use crate::event::Dev;
use crate::losses::max_loss::MaxLoss;
use crate::merge::clock::InputHints;
use crate::merge::reorder::DEFAULT_WINDOW_NS;
use crate::recorder_tables::files::FileTable;
use crate::recorder_tables::threads::ThreadTable;
use crate::recorder_tables::writers::WriterTable;
use crate::sink::columns::Contents;
use crate::sink::filtered::Filter;
use crate::sink::samples::{By, Weight};
use crate::sink::{Mark, Prediction};
use crate::source::{SOURCES, Source, SourceOptions};
use crate::stacks::symbols::Symbols;

pub struct Options {
    /// Paths; `-` is standard input.
    pub inputs: Vec<String>,
    /// The formats that can be read, in the order in which detection asks them.
    pub sources: Vec<&'static dyn Source>,
    /// Name of the inputs' format; `None` to detect the format of each.
    pub source: Option<String>,
    pub source_options: SourceOptions,
    /// Reorder window, in ns.
    pub window_ns: i64,
    /// The caller's knowledge of inputs, by path.
    pub hints: HashMap<String, InputHints>,
    pub marks: Vec<Mark>,
    /// The clock of `marks`.
    pub marks_clock: MarksClock,
    /// Predicted writes, which a trace shows.
    pub prediction: Prediction,
    pub max_loss: Option<MaxLoss>,
    /// The requests that the output holds.
    pub filter: Filter,
    pub thread_table: ThreadTable,
    pub file_table: FileTable,
    pub writer_table: WriterTable,
    pub symbols: Symbols,
    /// Names of block devices, such as `sda`, each device once.
    pub device_names: Vec<(Dev, String)>,
    /// The devices below each device, as far as the recorder found them.
    pub devices_below: DevicesBelow,
    /// The write cache of each device, in the kernel's words: `write back`, or `write through` if it needs no flush.
    pub write_caches: Vec<(Dev, String)>,
    /// By control group: what limits it, in words.
    pub limits: Vec<(String, String)>,
    pub weight: Weight,
    pub by: By,
    /// Count the events that no report uses by the tracer's names for them.
    pub count_other_events: bool,
    /// This is a look at some inputs that will be converted together with others, so they may have no event of a sync.
    pub one_of_several: bool,
    /// Parser threads of each log; 0 for the number of cores.
    pub workers: usize,
    /// The part of a folder of tables that is written.
    pub table_contents: Contents,
    /// In CSV, a quote before each text that a spreadsheet would take for a formula.
    pub quotes_formulas: bool,
    /// Bytes of stacks and paths that are kept although nothing refers to them.
    pub max_idle_name_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            sources: SOURCES.to_vec(),
            source: None,
            source_options: SourceOptions::default(),
            window_ns: DEFAULT_WINDOW_NS,
            hints: HashMap::new(),
            marks: Vec::new(),
            marks_clock: MarksClock::Log,
            prediction: Prediction::default(),
            max_loss: None,
            filter: Filter::default(),
            thread_table: ThreadTable::default(),
            file_table: FileTable::default(),
            writer_table: WriterTable::default(),
            symbols: Symbols::default(),
            device_names: Vec::new(),
            devices_below: DevicesBelow::default(),
            write_caches: Vec::new(),
            limits: Vec::new(),
            weight: Weight::Count,
            by: By::Stack,
            count_other_events: false,
            one_of_several: false,
            workers: 0,
            table_contents: Contents::default(),
            quotes_formulas: false,
            max_idle_name_bytes: 2 << 20,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarksClock {
    /// The clock of the result.
    Log,
    /// Times of day, in ns since 1970. Marks outside the log are then left out, because an application writes its log for days.
    Realtime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    Perfetto,
    PerfettoGzip,
    Parquet,
    Tables,
    Csv,
    Jsonl,
    EventsJsonl,
    PerfScript,
    Folded,
    Writes,
}

impl OutputFormat {
    /// Names as in `--to`, with the endings that select the format. If one ending ends with another one, the longer one comes first.
    pub const ALL: &'static [(&'static str, &'static [&'static str], Self)] = &[
        ("pftrace.gz", &[".pftrace.gz", ".perfetto-trace.gz"], Self::PerfettoGzip),
        ("pftrace", &[".pftrace", ".perfetto-trace"], Self::Perfetto),
        ("tables", &[FOLDER], Self::Tables),
        ("parquet", &[".parquet"], Self::Parquet),
        ("csv", &[".csv"], Self::Csv),
        ("events.jsonl", &[".events.jsonl"], Self::EventsJsonl),
        ("jsonl", &[".jsonl"], Self::Jsonl),
        ("perf", &[".perf"], Self::PerfScript),
        ("folded", &[".folded"], Self::Folded),
    ];

    /// Formats that only Syncline itself reads, so that no name of an output selects them.
    const INTERNAL: &'static [(&'static str, Self)] = &[("writes", Self::Writes)];

    pub fn by_name(name: &str) -> Option<Self> {
        let internal = Self::INTERNAL.iter().find(|(known, _)| *known == name);
        if let Some((_, format)) = internal {
            return Some(*format);
        }
        Self::ALL.iter().find(|(known, ..)| *known == name).map(|(.., format)| *format)
    }

    /// Returns the format that the name of an output selects.
    pub fn of_path(path: &str) -> Option<Self> {
        if Path::new(path).is_dir() {
            return Some(Self::Tables);
        }
        let has_ending = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        Self::ALL.iter().find(|(_, endings, _)| has_ending(endings)).map(|(.., format)| *format)
    }

    /// Returns the first ending of each format that is written to a file.
    pub fn file_endings() -> String {
        let endings = Self::ALL.iter().map(|(_, endings, _)| endings[0]).filter(|ending| *ending != FOLDER);
        endings.collect::<Vec<_>>().join(", ")
    }

    /// Whether it can be written to standard output. Parquet is written with its index last, tables are several files.
    pub fn can_be_streamed(self) -> bool {
        !matches!(self, Self::Parquet | Self::Tables | Self::PerfettoGzip | Self::Writes)
    }
}

const FOLDER: &str = "/";

/// How far a conversion is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub read_bytes: u64,
    pub total_bytes: Option<u64>,
    pub events: u64,
}
