//! Sinks write what `assemble` made; they know neither pairing nor input format.

pub mod columns;
pub mod events_jsonl;
pub mod filtered;
pub mod perfetto;
pub mod rows;
pub mod samples;
pub mod threaded;

use crate::error::Result;
use crate::losses::{Losses, Reason};
use crate::names::Names;
use crate::rows::{Bio, Call, Request};

/// An application mark, from `--marks`.
#[derive(Clone, Debug)]
pub struct Mark {
    pub name: String,
    pub ts: i64,
    /// `None`: until the next mark, or the end of the log.
    pub dur: Option<i64>,
}

/// What is known of the whole run at its end.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    /// Keys and values of `syncline_meta`.
    pub meta: Vec<(String, String)>,
    /// With the end of each mark settled.
    pub marks: Vec<Mark>,
}

/// A call with the requests that were made in it, or one request without a call. On one thread groups come in the order of time.
pub struct Group<'a> {
    pub call: Option<&'a Call>,
    pub requests: &'a [GroupRequest<'a>],
}

pub struct GroupRequest<'a> {
    pub request: &'a Request,
    /// `bio_id` of each of its bios.
    pub bio_ids: &'a [u64],
}

pub trait Sink {
    /// The first event's time, before anything else.
    fn begin(&mut self, _first_ts: i64) -> Result<()> {
        Ok(())
    }

    /// A bio that is done, or known never to be.
    fn bio(&mut self, _bio: &Bio, _names: &Names) -> Result<()> {
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()>;

    /// One loss that has a time.
    fn loss(&mut self, _reason: Reason, _ts: i64, _text: &str) -> Result<()> {
        Ok(())
    }

    /// What the sink has left out on the way, with reasons.
    fn losses(&self) -> Option<&Losses> {
        None
    }

    /// Requests that this output has no place for.
    fn left_out(&self) -> u64 {
        0
    }

    /// Writes what comes last and closes the output.
    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()>;
}
