//! The low-level log: all events, without pairing. It has the order of its input, or that of time if there are several inputs. An event
//! that several inputs hold has one line.

use std::collections::HashMap;

use super::{FinishedInputs, Pipeline};
use crate::error::Result;
use crate::input::tally::InputTally;
use crate::location::Location;
use crate::losses::Reason;
use crate::merge::MergedBatch;
use crate::merge::reorder::Reorder;
use crate::merge::simultaneous::{Simultaneous, Use};
use crate::sink::events_jsonl::EventsJsonl;
use crate::source::{Batch, NoteKind};
use crate::summary::Summary;

pub(crate) struct LowLevelPipeline<'a> {
    log: &'a mut EventsJsonl,
    has_single_input: bool,
    /// Events that wait. Their locations are a batch number and an index in that batch.
    reorder: Reorder,
    simultaneous: Simultaneous,
    /// The batches of the waiting events, by number.
    waiting: HashMap<usize, WaitingBatch>,
    next_number: usize,
    /// Events that an earlier input holds too.
    repeats: u64,
}

struct WaitingBatch {
    batch: Box<Batch>,
    source: &'static str,
    /// Index of its input.
    input: usize,
    /// Number of lines of its file before it.
    lines_before: u64,
    /// Events that have not been written yet.
    remaining: usize,
}

impl WaitingBatch {
    /// Writes the notes that precede the event `index` of the batch; its end if there is no such event.
    fn write_notes(&self, index: usize, log: &mut EventsJsonl) {
        let notes = &self.batch.notes;
        let first = notes.partition_point(|note| (note.after as usize) < index);
        for note in notes[first..].iter().take_while(|note| note.after as usize == index) {
            log.note(&note.kind, note.line_in_file(self.lines_before), self.source);
        }
    }
}

impl<'a> LowLevelPipeline<'a> {
    /// `inputs`: the number of inputs.
    pub(crate) fn new(log: &'a mut EventsJsonl, inputs: usize) -> Self {
        Self {
            log,
            has_single_input: inputs == 1,
            reorder: Reorder::default(),
            simultaneous: Simultaneous::new(inputs),
            waiting: HashMap::new(),
            next_number: 0,
            repeats: 0,
        }
    }

    /// Keeps a batch until its events are older than the watermark. A note waits with the event that it precedes, so the log shows
    /// between which events others were lost.
    fn hold(&mut self, batch: Box<Batch>, source: &'static str, input: usize, lines_before: u64) {
        for (index, event) in batch.events.iter().enumerate() {
            let location = Location::new(self.next_number, index as u64);
            self.simultaneous.observe(event, location, lines_before + u64::from(event.line), input);
            self.reorder.push(*event, location);
        }
        let remaining = batch.events.len();
        let held = WaitingBatch { batch, source, input, lines_before, remaining };
        if remaining > 0 {
            self.waiting.insert(self.next_number, held);
            self.next_number += 1;
        } else {
            held.write_notes(0, self.log);
        }
    }

    fn write_older_than(&mut self, watermark: i64) -> Result<()> {
        let Self { log, reorder, simultaneous, waiting, repeats, .. } = self;
        reorder.release(watermark, usize::MAX, |event, location| {
            let input = waiting.get(&location.file()).map_or(0, |held| held.input);
            simultaneous.event(event, location, input, |_, location, what| {
                *repeats += u64::from(what != Use::Once);
                write(log, waiting, location, what)
            })
        })
    }
}

/// Writes an event of a waiting batch, unless another input holds it too.
fn write(
    log: &mut EventsJsonl,
    waiting: &mut HashMap<usize, WaitingBatch>,
    location: Location,
    what: Use,
) -> Result<()> {
    let Some(held) = waiting.get_mut(&location.file()) else { return Ok(()) };
    let index = location.line() as usize;
    held.write_notes(index, log);
    if what == Use::Once {
        log.event(&held.batch, index, held.source)?;
    }
    held.remaining -= 1;
    if held.remaining == 0 {
        held.write_notes(held.batch.events.len(), log);
        waiting.remove(&location.file());
    }
    Ok(())
}

impl Pipeline for LowLevelPipeline<'_> {
    fn keeps_all_events(&self) -> bool {
        true
    }

    fn add_batch(&mut self, merged: &mut MergedBatch, tally: &InputTally) -> Result<()> {
        let source = tally.source.name();
        if self.has_single_input && merged.batch.watermark.is_none() {
            return self.log.batch(&merged.batch, source, merged.lines_before);
        }
        let batch = std::mem::take(&mut merged.batch);
        self.hold(batch, source, merged.input, merged.lines_before);
        self.write_older_than(merged.watermark)
    }

    fn end_input(&mut self, _input: usize, tally: &InputTally, missing: &[NoteKind]) -> Result<()> {
        for note in missing {
            self.log.note(note, 0, tally.source.name());
        }
        Ok(())
    }

    fn flush(&mut self, summary: &mut Summary) -> Result<()> {
        self.write_older_than(i64::MAX)?;
        let Self { log, simultaneous, waiting, repeats, .. } = self;
        simultaneous.finish(|_, location, what| {
            *repeats += u64::from(what != Use::Once);
            write(log, waiting, location, what)
        })?;
        if *repeats > 0 {
            summary.losses.add(Reason::Duplicate, *repeats, None);
        }
        Ok(())
    }

    fn finish(&mut self, _inputs: &FinishedInputs<'_>, _summary: &mut Summary) -> Result<()> {
        self.log.finish()
    }
}
