//! What can go wrong, each with what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Why an input cannot be read, and what to do about it; wrapped into the `io::Error` of `Error::Read`.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub message: String,
    pub hint: String,
}

impl Refused {
    pub fn error(message: impl Into<String>, hint: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self { message: message.into(), hint: hint.into() })
    }

    fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// Class of an error; the command line turns it into an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The caller asked for something that does not exist.
    Usage,
    /// The input cannot be read or is not what it was taken for.
    Input,
    /// The output cannot be written.
    Output,
    /// More was lost than allowed.
    Loss,
    /// The caller stopped the work.
    Interrupted,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{} is empty", input(path))]
    Empty { path: String },
    #[error("{path} is in no format that Syncline reads{detail}")]
    Foreign { path: String, detail: String },
    #[error("{path}: no event{}{detail}", in_lines(*lines))]
    NoEvents { path: String, lines: u64, detail: String, of_blocks: bool },
    #[error("{path}: none of its {lines} lines is a sync call{detail}")]
    NoCalls { path: String, lines: u64, detail: String },
    #[error("{first} and {second} are not on one clock: {}", clocks(first_clock, second_clock))]
    Clocks { first: String, first_clock: String, second: String, second_clock: String },
    #[error(
        "{first} and {second} are of different boots, {first_boot} and {second_boot}, of which each has a clock of its own"
    )]
    Boots { first: String, first_boot: String, second: String, second_boot: String },
    #[error("{first} and {second} tell different times of day of the clock {clock}, {:.1} s apart", *apart_ns as f64 / 1e9)]
    TimeOfDay { first: String, second: String, clock: String, apart_ns: u64 },
    #[error("{of_processes} tells of processes, and {of_threads} of threads: whose call is whose cannot be told")]
    ThreadTable { of_processes: String, of_threads: String },
    #[error("{second} is the same log as {first}")]
    Twice { first: String, second: String },
    #[error("{path}: moved to the clock of the other inputs, its times lie before that clock's zero")]
    BeforeZero { path: String },
    #[error("no input format is called '{name}'")]
    UnknownSource { name: String, known: String },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("cannot write {path}: {message}")]
    NotHere { path: PathBuf, message: &'static str, hint: String },
    #[error("cannot write {path}: {message}")]
    Encode { path: PathBuf, message: String },
    #[error("cannot tell from '{path}' what to write")]
    UnknownSink { path: PathBuf },
    #[error("{lost} of {total} events lost or unparsed, more than --max-loss {limit} allows{detail}")]
    TooMuchLoss { lost: u64, total: u64, limit: String, detail: String },
    #[error("the reader failed on this input; this is a fault of Syncline's")]
    Reader,
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("interrupted")]
    Interrupted,
}

/// An input as it is named in a sentence.
fn input(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Formats of records have no lines.
fn in_lines(lines: u64) -> String {
    if lines == 0 { " that has to do with a sync".to_owned() } else { format!(" in {lines} lines") }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Clocks of one name begin anew with each log.
fn clocks(first: &str, second: &str) -> String {
    if first == second {
        format!("{first} has a zero of its own in each log")
    } else {
        format!("that of the one is {first}, that of the other {second}")
    }
}

impl Error {
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { .. }
            | Self::Empty { .. }
            | Self::Foreign { .. }
            | Self::NoEvents { .. }
            | Self::NoCalls { .. }
            | Self::Clocks { .. }
            | Self::Boots { .. }
            | Self::TimeOfDay { .. }
            | Self::ThreadTable { .. }
            | Self::Twice { .. }
            | Self::BeforeZero { .. }
            | Self::Reader => ErrorClass::Input,
            Self::UnknownSource { .. } | Self::UnknownSink { .. } | Self::NotHere { .. } => ErrorClass::Usage,
            Self::Write { .. } | Self::NoFolder { .. } | Self::Encode { .. } | Self::Thread(_) => ErrorClass::Output,
            Self::TooMuchLoss { .. } => ErrorClass::Loss,
            Self::Interrupted => ErrorClass::Interrupted,
        }
    }

    /// What to type next, if there is anything.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { source, .. } if Refused::of(source).is_some() => Refused::of(source)?.hint.clone(),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the name; `-` reads standard input".into()
            }
            Self::Read { path, source } if source.kind() == io::ErrorKind::UnexpectedEof => {
                let whole = "the compressed file is cut off: copy it again";
                match Path::new(path).extension().and_then(|ending| ending.to_str()) {
                    _ if path == "-" => whole.into(),
                    ending => {
                        let tool = if ending == Some("zst") { "zstdcat" } else { "zcat" };
                        format!(
                            "{whole}, or recover what is there with `{tool} {path} 2>/dev/null | syncline convert - -o OUT`"
                        )
                    }
                }
            }
            Self::Read { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other
                ) =>
            {
                "the file is damaged or is not what it seems: copy it again".into()
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "what is compressed or comes through a pipe is unpacked into a temporary file: make room, or set TMPDIR".into()
            }
            Self::Read { .. } | Self::Interrupted => return None,
            Self::Reader => "nothing was written; please report it with the part of the log that it happens on".into(),
            Self::Empty { path } if path == "-" => "did the command before the pipe fail?".into(),
            Self::Empty { .. } => "was the recorder stopped before it had written anything?".into(),
            Self::Foreign { .. } => {
                "name its format to read it all the same: `--from` thesis, bpftrace-json, ftrace, perf, strace, blkparse or events-jsonl; \
                 docs/formats.md shows what each looks like"
                    .into()
            }
            Self::NoEvents { of_blocks: true, .. } => {
                "it tells of no write with data; record while something is written: `blktrace -d DEVICE -o NAME`".into()
            }
            Self::NoEvents { lines: 0, .. } => {
                "record these too: `trace-cmd record -e wb_tracer -e 'syscalls:sys_*_fsync'`, and so for other syscalls; \
                 docs/formats.md has them all"
                    .into()
            }
            Self::NoCalls { .. } => {
                "the program synced nothing, or the log lacks it (strace -f, and no -e that leaves it out); \
                 `syncline record` has routes that see more"
                    .into()
            }
            Self::Clocks { .. } => {
                "convert each on its own, or say what is to be added to the times of one: `--offset FILE=-12.5s`, 0 if they are of \
                 one clock all the same; a third input that tells the time of day of its clock joins them, too: what `syncline record` made, files of \
                 blktrace, perf's text of `-k mono`"
                    .into()
            }
            Self::Twice { .. } => "name each log once".into(),
            Self::ThreadTable { of_processes, .. } => format!(
                "convert {of_processes} on its own, or record it with thread ids: `tid` in bpftrace's tuples; \
                 without `--pid-is process` the ids of a log that does not tell are threads"
            ),
            Self::TimeOfDay { .. } => "convert each on its own if they are of different boots; if the time of day was set in between, say what is \
                 to be added to the times of one: `--offset FILE=0`"
                .into(),
            Self::BeforeZero { .. } => {
                "give another `--offset`: it is added to each time, in the unit that it names".into()
            }
            Self::Boots { .. } => "convert each on its own".into(),
            Self::NoEvents { .. } => "docs/formats.md shows what an event looks like".into(),
            Self::UnknownSource { known, .. } => format!("use one of: {known}"),
            Self::UnknownSink { .. } => {
                "end the name in .pftrace, .pftrace.gz, .parquet, .csv, .jsonl, .events.jsonl, .perf or \
                 .folded, give a folder as `DIR/`, or say `--to FORMAT`"
                    .into()
            }
            Self::NotHere { hint, .. } => hint.clone(),
            Self::NoFolder { folder, .. } => format!("make it first: mkdir -p {}", folder.display()),
            Self::Thread(_) => "the limit on processes or memory is reached: `ulimit -u`, `ulimit -v`".into(),
            Self::Write { .. } | Self::Encode { .. } => "nothing was left half written".into(),
            Self::TooMuchLoss { .. } => {
                "nothing was written; raise or drop --max-loss to convert it all the same".into()
            }
        })
    }
}
