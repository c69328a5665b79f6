//! Sinks: each writes the rows of the pairing stage in one output format. A sink knows neither input formats nor pairing.

pub mod columns;
pub mod csv;
pub mod events_jsonl;
pub mod filtered;
pub mod folded;
pub mod jsonl;
pub mod perf_script;
pub mod perfetto;
pub mod samples;
mod text;
pub mod threaded;

use crate::error::Result;
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::file_op::FileOp;
use crate::rows::write::WriteRow;
use crate::rows::{Bio, Call, Commit, Request, WriteWait};

/// An application mark: from `--marks`, or from the markers in the log.
#[derive(Clone, Debug)]
pub struct Mark {
    pub name: String,
    pub ts: i64,
    /// `None`: the mark lasts until the next one, or until the end of the log.
    pub dur: Option<i64>,
}

/// A recorded write with the cost that the write model predicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredictedWrite {
    pub ts: i64,
    pub dur: i64,
    /// Such as `cached` or `sync`.
    pub kind: String,
    pub path: String,
    pub offset: i64,
    pub bytes: i64,
    pub predicted_ns: i64,
    /// The part of `predicted_ns` for a commit of the file system; `None` if nothing need be durable, or if its cost is not known.
    pub predicted_commit_ns: Option<i64>,
    /// Size over bandwidth of the device.
    pub naive_ns: i64,
    /// State of page cache at the end of the write.
    pub state: String,
    /// The bytes that are predicted to be dirty then.
    pub predicted_dirty_bytes: i64,
    /// The bytes that were dirty then; `None` if they were not recorded.
    pub dirty_bytes: Option<i64>,
    /// Scenarios share no page cache, and follow one another.
    pub scenario: Option<String>,
}

/// The prediction of the write model for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// The name of its rules.
    pub rules: String,
    /// In the order of their starts.
    pub writes: Vec<PredictedWrite>,
}

/// Facts about the run that are known at its end.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    /// Keys and values of `syncline_meta`.
    pub meta: Vec<(String, String)>,
    /// Marks in the order of time, each with its duration.
    pub marks: Vec<Mark>,
    pub prediction: Prediction,
}

/// A sync call with the requests made in it, or one request without a call. The groups of one thread are in the order of time.
pub struct Group<'a> {
    pub call: Option<&'a Call>,
    pub requests: &'a [GroupRequest<'a>],
}

pub struct GroupRequest<'a> {
    pub request: &'a Request,
    /// The `bio_id` of each of its bios.
    pub bio_ids: &'a [u64],
}

pub trait Sink {
    /// Takes the time of the first event, before any other call.
    fn begin(&mut self, _first_ts: i64) -> Result<()> {
        Ok(())
    }

    /// Takes a bio that is completed, or whose completion cannot come any more.
    fn bio(&mut self, _bio: &Bio, _names: &Names) -> Result<()> {
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()>;

    /// Takes a commit of a journal that belongs to no request.
    fn commit(&mut self, _commit: &Commit, _names: &Names) -> Result<()> {
        Ok(())
    }

    /// Takes a wait of a thread that writes. Those of one thread are in the order of time, also relative to its groups.
    fn write_wait(&mut self, _wait: &WriteWait, _names: &Names) -> Result<()> {
        Ok(())
    }

    /// Whether the output holds operations on files. If not, the inputs are not searched for them.
    fn wants_file_ops(&self) -> bool {
        false
    }

    /// Takes an operation on files. Those of one thread are in the order of time.
    fn file_op(&mut self, _op: &FileOp, _names: &Names) -> Result<()> {
        Ok(())
    }

    /// Takes one loss whose time is known.
    fn loss(&mut self, _reason: Reason, _ts: i64, _text: &str) -> Result<()> {
        Ok(())
    }

    /// Returns the losses that the sink itself counted.
    fn losses(&self) -> Option<&Losses> {
        None
    }

    /// Returns the number of requests that the output lacks because their weight is not known.
    fn unweighted_requests(&self) -> u64 {
        0
    }

    /// Writes what comes last and closes the output.
    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()>;
}

/// Where the rows of the table of writes go.
pub trait WriteSink {
    /// Takes a call that has ended or is dropped. Calls come in the order in which they end.
    fn row(&mut self, row: &WriteRow, names: &Names) -> Result<()>;

    /// Closes the output.
    fn finish(&mut self) -> Result<()>;
}
