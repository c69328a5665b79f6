//! Errors, each with a hint on what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why an input cannot be used, and what to do about it. It is the inner error of `Error::Read`.
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

/// The beginning of a text that holds no event, from which whoever words the error may say what the text is.
#[derive(Debug)]
pub struct UnreadHead {
    /// The fault of the input. A caller that recognizes the text appends what it is.
    pub message: String,
    /// Empty if the text has events, of which none has to do with a sync.
    pub head: Box<[u8]>,
    /// The text is in a format that Syncline reads, as far as its beginning shows.
    pub is_detected: bool,
    /// The lines of such a text that are not of its format.
    pub other_text: Box<[u8]>,
}

/// The class of an error. The command line turns it into an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The caller asked for something that does not exist.
    Usage,
    /// The input cannot be read, or it is not of the expected format.
    Input,
    /// The output cannot be written.
    Output,
    /// The reader of a pipe has ended, so nobody wants the rest.
    Closed,
    /// More events were lost than the limit allows.
    Loss,
    /// The caller stopped the conversion.
    Interrupted,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{} is empty", input_name(path))]
    Empty { path: String },
    #[error("{path} is in no format that Syncline reads{detail}")]
    Foreign { path: String, detail: String, hint: String, unread: Option<Box<UnreadHead>> },
    #[error("{path}: {message}{detail}")]
    NoEvents { path: String, message: String, detail: String, hint: String, unread: Option<Box<UnreadHead>> },
    #[error("{first} and {second} are not on one clock: {}", describe_clocks(first, first_clock, second, second_clock))]
    Clocks { first: String, first_clock: String, second: String, second_clock: String },
    #[error(
        "{first} and {second} were recorded in different boots, {first_boot} and {second_boot}; the clock restarts with each boot"
    )]
    Boots { first: String, first_boot: String, second: String, second_boot: String },
    #[error(
        "{first} and {second} disagree by {:.1} s on the time of day at which the clock {clock} was 0", *apart_ns as f64 / 1e9
    )]
    TimeOfDay { first: String, second: String, clock: String, apart_ns: u64 },
    #[error("{path} does not say what time of day it was, so marks with times of day have no place in it")]
    MarksTimeOfDay { path: String },
    #[error("{of_processes} records process ids and {of_threads} thread ids: their calls cannot be matched")]
    MixedIds { of_processes: String, of_threads: String, hint: String },
    #[error("{path}: its events name their threads, so --pid-is process is wrong for it")]
    IdsOfThreads { path: String },
    #[error("{count} logs of one run, more than the {limit} that can be compared")]
    TooManyLogs { count: usize, limit: usize },
    #[error("{second} is the same log as {first}")]
    Twice { first: String, second: String },
    #[error("{path}: on the clock of the other inputs, some of its times are before that clock's zero")]
    BeforeZero { path: String },
    #[error("no input format is called '{name}'")]
    UnknownSource { name: String, known: String },
    #[error("'{text}' is neither a number of losses nor a percentage such as 0.1%, up to 100% (--max-loss)")]
    InvalidMaxLoss { text: String },
    #[error("cannot write {}: {source}", output_name(path))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error("cannot write {path}: another user made the symbolic link {link}")]
    ForeignLink { path: PathBuf, link: PathBuf },
    #[error("cannot write {path}: {message}")]
    NotHere { path: PathBuf, message: &'static str, hint: String },
    #[error("cannot write {path}: {message}")]
    Encode { path: PathBuf, message: String },
    #[error("the name '{path}' does not say which format to write")]
    UnknownSink { path: PathBuf, endings: String },
    #[error("{lost} of {total} events lost or unparsed, more than --max-loss {limit} allows: {reasons}")]
    TooMuchLoss { lost: u64, total: u64, limit: String, reasons: String },
    #[error("the reader failed on this input; this is a bug in Syncline")]
    Reader,
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("interrupted")]
    Interrupted,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

fn output_name(path: &Path) -> std::path::Display<'_> {
    if path == Path::new("-") { Path::new("standard output").display() } else { path.display() }
}

fn input_name(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

/// Two logs may have a clock of the same name that starts from a different zero in each of them.
fn describe_clocks(first: &str, first_clock: &str, second: &str, second_clock: &str) -> String {
    if first_clock == second_clock {
        format!("{first_clock} starts from a different zero in each log")
    } else {
        format!("{first} has {first_clock}, {second} has {second_clock}")
    }
}

impl Error {
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { .. }
            | Self::Empty { .. }
            | Self::Foreign { .. }
            | Self::NoEvents { .. }
            | Self::Clocks { .. }
            | Self::Boots { .. }
            | Self::TimeOfDay { .. }
            | Self::MarksTimeOfDay { .. }
            | Self::MixedIds { .. }
            | Self::TooManyLogs { .. }
            | Self::Twice { .. }
            | Self::BeforeZero { .. }
            | Self::Reader => ErrorClass::Input,
            Self::UnknownSource { .. }
            | Self::IdsOfThreads { .. }
            | Self::InvalidMaxLoss { .. }
            | Self::UnknownSink { .. }
            | Self::NotHere { .. } => ErrorClass::Usage,
            Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => ErrorClass::Closed,
            Self::Write { .. }
            | Self::NoFolder { .. }
            | Self::ForeignLink { .. }
            | Self::Encode { .. }
            | Self::Thread(_) => ErrorClass::Output,
            Self::TooMuchLoss { .. } => ErrorClass::Loss,
            Self::Interrupted => ErrorClass::Interrupted,
        }
    }

    /// The text that the error is about, if it may be of a tool whose output holds no event.
    pub fn unread(&self) -> Option<&UnreadHead> {
        match self {
            Self::Foreign { unread, .. } | Self::NoEvents { unread, .. } => unread.as_deref(),
            _ => None,
        }
    }

    /// Returns what to do next; `None` if there is nothing to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read { path, source } => return read_hint(path, source),
            Self::Empty { path } if path == "-" => "did the command before the pipe fail?".into(),
            Self::Empty { .. } => "was the recorder stopped before it had written anything?".into(),
            Self::Foreign { hint, .. } | Self::NoEvents { hint, .. } | Self::NotHere { hint, .. } | Self::MixedIds { hint, .. } => hint.clone(),
            Self::IdsOfThreads { .. } => "leave out --pid-is".into(),
            Self::Clocks { .. } => {
                "convert each on its own, or shift the times of one of them: `--offset FILE=-12.5s`, or 0 if both use one clock after all; \
                 a third input that records the time of day of its clock joins them, too: a recording of `syncline record`, files of blktrace, \
                 perf's text of `-k mono`"
                    .into()
            }
            Self::Boots { .. } => "convert each on its own".into(),
            Self::TimeOfDay { .. } => {
                "if they are of different boots, convert each on its own; if the time of day was set between them, \
                 shift the times of one of them: `--offset FILE=0`"
                    .into()
            }
            Self::MarksTimeOfDay { .. } => {
                "`syncline record` and strace -ttt record the time of day; for this log, write the marks as CSV with its own times: time_ns,name"
                    .into()
            }
            Self::TooManyLogs { .. } => "convert the logs of different times in commands of their own".into(),
            Self::Twice { .. } => "name each log once".into(),
            Self::BeforeZero { .. } => {
                "give another `--offset`: it is added to each time, and has a unit such as s or ms".into()
            }
            Self::UnknownSource { known, .. } => format!("use one of: {known}"),
            Self::UnknownSink { endings, .. } => {
                format!("end the name in {endings}, give a folder as `DIR/`, or use `--to FORMAT`")
            }
            Self::NoFolder { folder, .. } => format!("create it first: mkdir -p {}", folder.display()),
            Self::ForeignLink { .. } => "whoever made the link chooses what root overwrites: name the file itself".into(),
            Self::Thread(_) => "a limit on processes or memory is reached: see `ulimit -u`, `ulimit -v`".into(),
            Self::Write { path, .. } if path == Path::new("-") => return None,
            Self::Write { source, .. } if limit_hint(source).is_some() => return limit_hint(source),
            Self::Write { .. } | Self::Encode { .. } => "no incomplete file was left".into(),
            Self::TooMuchLoss { .. } => {
                "nothing was written; to convert it nevertheless, raise --max-loss or leave it out".into()
            }
            Self::Reader => "nothing was written; please report it with the part of the log that causes it".into(),
            Self::Interrupted | Self::InvalidMaxLoss { .. } => return None,
        })
    }
}

/// Returns what to do about an error that is of a limit and not of the file.
fn limit_hint(source: &io::Error) -> Option<String> {
    // The crate that names temporary files wraps the error of the system.
    let text = source.to_string();
    let hints = [
        ("(os error 24)", "allow more open files: ulimit -n 1024"),
        ("(os error 36)", "a name has at most 255 bytes, and a path 4,095"),
    ];
    hints.iter().find(|(of, _)| text.contains(of)).map(|(_, hint)| (*hint).to_owned())
}

fn read_hint(path: &str, source: &io::Error) -> Option<String> {
    if let Some(hint) = limit_hint(source) {
        return Some(hint);
    }
    if let Some(refused) = Refused::of(source) {
        return Some(refused.hint.clone());
    }
    Some(match source.kind() {
        io::ErrorKind::NotFound => "check the name; `-` reads standard input".into(),
        io::ErrorKind::UnexpectedEof => {
            let truncated = "the compressed file is cut off: copy it again";
            if path == "-" {
                return Some(truncated.into());
            }
            let is_zstd = Path::new(path).extension().is_some_and(|ending| ending == "zst");
            let tool = if is_zstd { "zstdcat" } else { "zcat" };
            format!(
                "{truncated}, or convert the part that it holds: `{tool} {path} 2>/dev/null | syncline convert - -o OUT`"
            )
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            "the file is damaged or of another format than its beginning says: copy it again".into()
        }
        io::ErrorKind::StorageFull => {
            "compressed and piped input is unpacked into a temporary file: free some space, or set TMPDIR".into()
        }
        _ => return None,
    })
}
