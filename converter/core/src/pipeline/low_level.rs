//! The low-level log: all events, without pairing. It has the order of its input, or that of time if several logs are merged.

use std::collections::HashMap;

use super::{FinishedInputs, Pipeline};
use crate::error::Result;
use crate::input::tally::InputTally;
use crate::location::Location;
use crate::merge::MergedBatch;
use crate::merge::reorder::Reorder;
use crate::sink::events_jsonl::EventsJsonl;
use crate::source::{Batch, NoteKind};
use crate::summary::Summary;

pub(crate) struct LowLevelPipeline<'a> {
    log: &'a mut EventsJsonl,
    is_single_lane: bool,
    /// Events that wait. Their locations are a batch number and an index in that batch.
    reorder: Reorder,
    /// The batches of the waiting events, by number.
    waiting: HashMap<usize, WaitingBatch>,
    next_number: usize,
}

struct WaitingBatch {
    batch: Box<Batch>,
    source: &'static str,
    /// Events that have not been written yet.
    remaining: usize,
}

impl<'a> LowLevelPipeline<'a> {
    /// `is_single_lane`: the inputs are read one after the other.
    pub(crate) fn new(log: &'a mut EventsJsonl, is_single_lane: bool) -> Self {
        Self { log, is_single_lane, reorder: Reorder::default(), waiting: HashMap::new(), next_number: 0 }
    }

    /// Keeps a batch until its events are older than the watermark.
    fn hold(&mut self, batch: Box<Batch>, source: &'static str, lines_before: u64) {
        for note in &batch.notes {
            self.log.note(&note.kind, note.line_in_file(lines_before), source);
        }
        for (index, event) in batch.events.iter().enumerate() {
            self.reorder.push(*event, Location::new(self.next_number, index as u64));
        }
        let remaining = batch.events.len();
        if remaining > 0 {
            self.waiting.insert(self.next_number, WaitingBatch { batch, source, remaining });
            self.next_number += 1;
        }
    }

    fn write_older_than(&mut self, watermark: i64) -> Result<()> {
        let Self { log, reorder, waiting, .. } = self;
        reorder.release(watermark, usize::MAX, |_, location| {
            let Some(held) = waiting.get_mut(&location.file()) else { return Ok(()) };
            log.event(&held.batch, location.line() as usize, held.source)?;
            held.remaining -= 1;
            if held.remaining == 0 {
                waiting.remove(&location.file());
            }
            Ok(())
        })
    }
}

impl Pipeline for LowLevelPipeline<'_> {
    fn keeps_all_events(&self) -> bool {
        true
    }

    fn add_batch(&mut self, merged: &mut MergedBatch, tally: &InputTally) -> Result<()> {
        let source = tally.source.name();
        if self.is_single_lane && merged.batch.watermark.is_none() {
            return self.log.batch(&merged.batch, source, merged.lines_before);
        }
        let batch = std::mem::take(&mut merged.batch);
        self.hold(batch, source, merged.lines_before);
        self.write_older_than(merged.watermark)
    }

    fn end_input(&mut self, _input: usize, tally: &InputTally, missing: &[NoteKind]) {
        for note in missing {
            self.log.note(note, 0, tally.source.name());
        }
    }

    fn flush(&mut self, _summary: &mut Summary) -> Result<()> {
        self.write_older_than(i64::MAX)
    }

    fn finish(&mut self, _inputs: &FinishedInputs<'_>, _summary: &mut Summary) -> Result<()> {
        self.log.finish()
    }
}
