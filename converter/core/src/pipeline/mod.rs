//! Takes the merged batches of a run to one of three ends: rows by pairing, the low-level log, or the table of writes.

mod adopted;
mod beginning;
pub(crate) mod low_level;
pub(crate) mod pairing;
mod run_facts;
pub(crate) mod writes;

use crate::error::Result;
use crate::input::tally::InputTally;
use crate::merge::MergedBatch;
use crate::options::Options;
use crate::source::NoteKind;
use crate::summary::Summary;

/// The stages after `merge`. Its methods are called for each batch, not for each event.
pub(crate) trait Pipeline {
    /// Whether the output holds all events, also those that no report uses, with the tracer's names and fields.
    fn keeps_all_events(&self) -> bool;

    /// Whether the output is of the events of writes only.
    fn keeps_writes(&self) -> bool {
        false
    }

    /// Whether the output holds operations on files.
    fn keeps_file_ops(&self) -> bool {
        false
    }

    /// Takes a batch. It may keep `merged.batch` and leave another batch instead.
    fn add_batch(&mut self, merged: &mut MergedBatch, tally: &InputTally) -> Result<()>;

    /// The tracer reports that it lost events at this time.
    fn add_lost_events(&mut self, _ts: i64, _text: &str) -> Result<()> {
        Ok(())
    }

    /// An input has been read to its end. `missing` are the events that its log lacks.
    fn end_input(&mut self, input: usize, tally: &InputTally, missing: &[NoteKind]) -> Result<()>;

    /// Processes the events that still wait. Adds their losses to the summary.
    fn flush(&mut self, summary: &mut Summary) -> Result<()>;

    /// Completes the output and the summary.
    fn finish(&mut self, inputs: &FinishedInputs<'_>, summary: &mut Summary) -> Result<()>;
}

/// All inputs, read to their end.
pub(crate) struct FinishedInputs<'a> {
    pub(crate) options: &'a Options,
    pub(crate) tallies: &'a [InputTally],
    /// Facts that the inputs state about themselves.
    pub(crate) facts: &'a [(&'static str, String)],
}
