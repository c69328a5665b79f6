//! Events of writes become the table of writes: the reorder window, and pairing.

use super::adopted::Adopted;
use super::{FinishedInputs, Pipeline};
use crate::error::Result;
use crate::event::probe::Probe;
use crate::event::write::WriteEvent;
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input::tally::InputTally;
use crate::location::Location;
use crate::losses::Reason;
use crate::merge::MergedBatch;
use crate::merge::reorder::Reorder;
use crate::merge::simultaneous::{Simultaneous, Use};
use crate::names::{NameId, Names};
use crate::pair::writes::WritePairer;
use crate::sink::WriteSink;
use crate::source::{Batch, NoteKind};
use crate::summary::Summary;

pub(crate) struct WritesPipeline<'a> {
    names: Names,
    adopted: Adopted,
    reorder: Reorder,
    simultaneous: Simultaneous,
    pairing: Pairing<'a>,
    /// For each input: events were lost after its last event.
    lost_last: Vec<bool>,
    /// The size of the passing names at which those that are not in use are forgotten.
    forget_at_bytes: usize,
    max_idle_name_bytes: usize,
}

impl<'a> WritesPipeline<'a> {
    pub(crate) fn new(sink: &'a mut dyn WriteSink, inputs: usize, max_idle_name_bytes: usize) -> Self {
        Self {
            names: Names::default(),
            adopted: Adopted::default(),
            reorder: Reorder::default(),
            simultaneous: Simultaneous::new(inputs),
            pairing: Pairing { pairer: WritePairer::default(), sink, newest: i64::MIN, late: 0, repeats: 0 },
            lost_last: vec![false; inputs],
            forget_at_bytes: max_idle_name_bytes,
            max_idle_name_bytes,
        }
    }

    fn push(&mut self, event: Event, location: Location) -> Result<()> {
        if event.ts < self.pairing.newest {
            return self.pairing.late(&event, &self.names);
        }
        self.simultaneous.observe(&event, location, location.line(), location.file());
        self.reorder.push(event, location);
        Ok(())
    }

    fn pair_older_than(&mut self, watermark: i64, max_waiting: usize) -> Result<()> {
        let Self { names, reorder, simultaneous, pairing, .. } = self;
        reorder.release(watermark, max_waiting, |event, location| {
            pairing.newest = pairing.newest.max(event.ts);
            simultaneous.event(event, location, location.file(), |event, _, what| pairing.event(&event, what, names))
        })
    }

    /// Forgets paths that nothing refers to, when there are many.
    fn forget_names(&mut self) {
        let Self { names, reorder, simultaneous, pairing, .. } = self;
        if names.passing_bytes() <= self.forget_at_bytes {
            return;
        }
        names.forget(|in_use| {
            reorder.visit_names(in_use);
            simultaneous.visit_names(in_use);
            pairing.pairer.visit_names(in_use);
        });
        self.forget_at_bytes = 2 * names.passing_bytes() + self.max_idle_name_bytes;
    }
}

/// The event that stands for a loss before an event of this time.
fn lost(ts: i64) -> Event {
    let kind = Kind::Probe(Probe::Write(WriteEvent::Lost));
    Event { ts, tid: UNKNOWN_TASK, pid: UNKNOWN_TASK, comm: NameId::NONE, line: 0, kind }
}

/// Whether a note says that events are missing at its place: an unreadable line may have been one.
fn is_loss(kind: &NoteKind) -> bool {
    matches!(kind, NoteKind::Lost { .. } | NoteKind::LostUncounted | NoteKind::Unparsed { .. })
}

/// The numbers of events that follow a loss, each once.
fn places_of_losses(batch: &Batch) -> Vec<usize> {
    let mut places: Vec<_> =
        batch.notes.iter().filter(|note| is_loss(&note.kind)).map(|note| note.after as usize).collect();
    places.dedup();
    places
}

impl Pipeline for WritesPipeline<'_> {
    fn keeps_all_events(&self) -> bool {
        false
    }

    fn keeps_writes(&self) -> bool {
        true
    }

    fn add_batch(&mut self, merged: &mut MergedBatch, tally: &InputTally) -> Result<()> {
        let (batch, input) = (&merged.batch, merged.input);
        let losses = if tally.source.may_hold_writes() { places_of_losses(batch) } else { Vec::new() };
        let mut losses = losses.into_iter().peekable();
        self.adopted.start_batch(batch);
        for (index, event) in batch.events.iter().enumerate() {
            let location = Location::new(input, merged.lines_before + u64::from(event.line));
            let is_after_loss = losses.next_if_eq(&index).is_some();
            if is_after_loss || self.lost_last[input] {
                self.lost_last[input] = false;
                self.push(lost(event.ts), location)?;
            }
            if !matches!(event.kind, Kind::Probe(Probe::Write(_))) {
                continue;
            }
            let mut event = *event;
            self.adopted.name(&mut event.comm, batch, &mut self.names);
            if let Kind::Probe(Probe::Write(WriteEvent::Start(call))) = &mut event.kind {
                self.adopted.path(&mut call.path, batch, &mut self.names);
            }
            self.push(event, location)?;
        }
        self.lost_last[input] |= losses.next().is_some();
        self.pair_older_than(merged.watermark, merged.max_waiting)?;
        self.forget_names();
        Ok(())
    }

    fn end_input(&mut self, input: usize, tally: &InputTally, _missing: &[NoteKind]) -> Result<()> {
        if std::mem::take(&mut self.lost_last[input]) {
            let newest = tally.span.map_or(i64::MIN, |(_, newest)| newest);
            return self.push(lost(newest), Location::new(input, tally.lines));
        }
        Ok(())
    }

    fn flush(&mut self, summary: &mut Summary) -> Result<()> {
        self.pair_older_than(i64::MAX, 0)?;
        let Self { names, simultaneous, pairing, .. } = self;
        simultaneous.finish(|event, _, what| pairing.event(&event, what, names))?;
        pairing.finish(names)?;
        for (reason, count) in [(Reason::LateEvent, pairing.late), (Reason::Duplicate, pairing.repeats)] {
            if count > 0 {
                summary.losses.add(reason, count, None);
            }
        }
        Ok(())
    }

    fn finish(&mut self, _inputs: &FinishedInputs<'_>, _summary: &mut Summary) -> Result<()> {
        self.pairing.sink.finish()
    }
}

/// The stages behind the reorder window.
struct Pairing<'a> {
    pairer: WritePairer,
    sink: &'a mut dyn WriteSink,
    /// Time of the newest event that was paired.
    newest: i64,
    late: u64,
    /// Events that an earlier input holds too.
    repeats: u64,
}

impl Pairing<'_> {
    fn event(&mut self, event: &Event, what: Use, names: &Names) -> Result<()> {
        let Kind::Probe(Probe::Write(write)) = event.kind else { return Ok(()) };
        if what != Use::Once {
            self.repeats += u64::from(write != WriteEvent::Lost);
            return Ok(());
        }
        let Self { pairer, sink, .. } = self;
        pairer.event(event, write, &mut |row| sink.row(row, names))
    }

    fn late(&mut self, event: &Event, names: &Names) -> Result<()> {
        let Kind::Probe(Probe::Write(write)) = event.kind else { return Ok(()) };
        self.late += u64::from(write != WriteEvent::Lost);
        let Self { pairer, sink, .. } = self;
        pairer.late(event, write, &mut |row| sink.row(row, names))
    }

    fn finish(&mut self, names: &Names) -> Result<()> {
        let Self { pairer, sink, .. } = self;
        pairer.finish(&mut |row| sink.row(row, names))
    }
}
