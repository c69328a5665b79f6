//! Events become rows: the reorder window, dedup, pairing, and the sink.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::adopted::{Adopted, adopt};
use super::beginning::Beginning;
use super::run_facts::{realtime_offset, run_facts};
use super::{FinishedInputs, Pipeline};
use crate::dedup::{Dedup, MAX_LOGS};
use crate::error::{Error, Result};
use crate::event::file_op::ProbedReturn;
use crate::event::probe::Probe;
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::input::grouping::{are_several, assign_lanes, assign_recordings};
use crate::input::open::{OpenInput, ids_are_processes};
use crate::input::tally::InputTally;
use crate::location::{Location, Locations};
use crate::losses::Reason;
use crate::merge::MergedBatch;
use crate::merge::reorder::Reorder;
use crate::merge::simultaneous::{Simultaneous, Use};
use crate::names::{NameId, Names};
use crate::options::Options;
use crate::pair::{Files, Out, Pairer, Writers};
use crate::recorder_tables::files::FileTable;
use crate::recorder_tables::threads::ThreadTable;
use crate::rows::Process;
use crate::sink::Sink;
use crate::source::{Batch, NoteKind};
use crate::stacks::Stacks;
use crate::stacks::symbols::Symbols;
use crate::summary::Summary;

pub(crate) struct PairingPipeline<'a> {
    adopter: Adopter<'a>,
    reorder: Reorder,
    simultaneous: Simultaneous,
    pairing: Pairing<'a>,
    /// The size of the passing names at which those that are not in use are forgotten.
    forget_at_bytes: usize,
    max_idle_name_bytes: usize,
    ids_are_processes: bool,
    /// Calls of several logs are distinguished by their threads.
    needs_thread_ids: bool,
}

impl<'a> PairingPipeline<'a> {
    pub(crate) fn new(options: &'a Options, inputs: &[OpenInput], sink: &'a mut dyn Sink) -> Result<Self> {
        let ids_are_processes = ids_are_processes(inputs, options.source_options.pid_is_process)?;
        let logs = assign_recordings(inputs);
        let count = logs.iter().max().map_or(0, |last| last + 1);
        if !ids_are_processes && count > MAX_LOGS {
            return Err(Error::TooManyLogs { count, limit: MAX_LOGS });
        }
        let formats: Vec<&'static str> = inputs.iter().map(|open| open.source.name()).collect();
        let locations =
            Arc::new(Locations { files: inputs.iter().map(|open| open.input.path.clone()).collect(), logs });
        let mut names = Names::default();
        let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
        for (pid, name) in options.thread_table.process_names() {
            processes.entry(pid).or_default().name = names.intern(name.as_bytes());
        }
        for (pid, cgroup) in options.thread_table.cgroups() {
            processes.entry(pid).or_default().cgroup = names.intern(cgroup.as_bytes());
        }
        let mut files = Files::default();
        for (dev, ino, generation, path) in options.file_table.paths() {
            files.see(dev, ino, generation, names.intern_passing(path.as_bytes()));
        }
        for ((dev, ino), (writers, cgroups)) in options.writer_table.texts(&options.thread_table) {
            let cgroups = cgroups.map_or(NameId::NONE, |cgroups| names.intern(cgroups.as_bytes()));
            files.see_writers(dev, ino, Writers { names: names.intern(writers.as_bytes()), cgroups });
        }
        Ok(Self {
            adopter: Adopter {
                names,
                stacks: Stacks::default(),
                adopted: Adopted::default(),
                thread_table: &options.thread_table,
                file_table: &options.file_table,
                symbols: &options.symbols,
            },
            reorder: Reorder::default(),
            simultaneous: Simultaneous::new(inputs.len()),
            pairing: Pairing {
                dedup: Dedup::new(Arc::clone(&locations), &formats, !ids_are_processes),
                pairer: Pairer::new(
                    ids_are_processes,
                    locations,
                    processes.into_iter().collect(),
                    files,
                    options.devices_below.clone(),
                ),
                beginning: Beginning::default(),
                has_begun: false,
                sink,
            },
            forget_at_bytes: options.max_idle_name_bytes,
            max_idle_name_bytes: options.max_idle_name_bytes,
            ids_are_processes,
            needs_thread_ids: !ids_are_processes && are_several(&assign_lanes(inputs)),
        })
    }

    /// Forgets stacks and paths that nothing refers to, when there are many. A log may have any number of them.
    fn forget_names(&mut self) {
        let Self { adopter, reorder, simultaneous, pairing, .. } = self;
        if adopter.stacks.raw_bytes() > self.max_idle_name_bytes {
            adopter.stacks.clear();
        }
        if adopter.names.passing_bytes() <= self.forget_at_bytes {
            return;
        }
        adopter.stacks.clear();
        adopter.names.forget(|in_use| {
            reorder.visit_names(in_use);
            simultaneous.visit_names(in_use);
            pairing.dedup.visit_names(in_use);
            pairing.beginning.visit_names(in_use);
            pairing.pairer.visit_names(in_use);
        });
        // Those that are in use are looked at again when there are twice as many.
        self.forget_at_bytes = 2 * adopter.names.passing_bytes() + self.max_idle_name_bytes;
    }

    /// Pairs the events that are older than the watermark, and the oldest ones while more than `max_waiting` wait.
    fn pair_older_than(&mut self, watermark: i64, max_waiting: usize) -> Result<()> {
        let Self { adopter, reorder, simultaneous, pairing, .. } = self;
        loop {
            let limit = pairing.dedup.next_review();
            let is_due = reorder.release_until(limit, watermark, max_waiting, |event, location| {
                simultaneous.event(event, location, location.file(), |event, location, what| {
                    pairing.event(&event, location, what, &adopter.names)
                })
            })?;
            let Some(at) = limit.filter(|_| is_due) else { return Ok(()) };
            pairing.dedup.review(at, || reorder.waiting());
            simultaneous.set_logs(pairing.dedup.log_of_files());
        }
    }
}

impl Pipeline for PairingPipeline<'_> {
    fn keeps_all_events(&self) -> bool {
        false
    }

    fn keeps_file_ops(&self) -> bool {
        self.pairing.sink.wants_file_ops()
    }

    fn add_batch(&mut self, merged: &mut MergedBatch, tally: &InputTally) -> Result<()> {
        let batch = &merged.batch;
        if self.needs_thread_ids {
            tally.check_thread_ids(batch, merged.lines_before)?;
        }
        self.pairing.dedup.observe(merged.input, &batch.events);
        if merged.records_requests {
            let Pairing { pairer, sink, .. } = &mut self.pairing;
            pairer.records_requests(&mut Out { names: &self.adopter.names, sink: &mut **sink })?;
        }
        self.adopter.start_batch(batch);
        for event in &batch.events {
            let event = self.adopter.adopt(*event, batch);
            let location = Location::new(merged.input, merged.lines_before + u64::from(event.line));
            self.simultaneous.observe(&event, location, location.line(), merged.input);
            if self.reorder.push(event, location) {
                self.pairing.late(&event, location, &self.adopter.names)?;
            }
        }
        self.pair_older_than(merged.watermark, merged.max_waiting)?;
        self.forget_names();
        Ok(())
    }

    fn add_lost_events(&mut self, ts: i64, text: &str) -> Result<()> {
        if self.pairing.has_begun { self.pairing.sink.loss(Reason::LostByTracer, ts, text) } else { Ok(()) }
    }

    fn end_input(&mut self, input: usize, _tally: &InputTally, _missing: &[NoteKind]) -> Result<()> {
        self.pairing.dedup.end_file(input);
        Ok(())
    }

    fn flush(&mut self, summary: &mut Summary) -> Result<()> {
        self.pair_older_than(i64::MAX, 0)?;
        let Self { adopter, simultaneous, pairing, .. } = self;
        simultaneous.finish(|event, location, what| pairing.event(&event, location, what, &adopter.names))?;
        self.pairing.finish(&self.adopter.names, summary)
    }

    fn finish(&mut self, inputs: &FinishedInputs<'_>, summary: &mut Summary) -> Result<()> {
        // The user's marks replace those of the application.
        let given = &inputs.options.marks;
        let marks = if given.is_empty() { self.pairing.pairer.marks(&self.adopter.names) } else { given.clone() };
        let mut of_threads = vec![("phases_seen".to_owned(), self.pairing.pairer.phases_seen())];
        of_threads.extend(self.pairing.pairer.cpu_before(&self.adopter.names));
        let prediction = &inputs.options.prediction;
        if let Some(first) = prediction.writes.first().filter(|_| !self.pairing.has_begun) {
            // Nothing but a table of writes was read.
            summary.first_ts = Some(first.ts);
            summary.last_ts = prediction.writes.iter().map(|write| write.ts.saturating_add(write.dur)).max();
            self.pairing.sink.begin(first.ts)?;
        }
        summary.predicted_writes = prediction.writes.len() as u64;
        let devices_below = self.pairing.pairer.devices_below();
        let facts = run_facts(inputs, self.ids_are_processes, (marks, of_threads, devices_below), summary)?;
        summary.realtime_offset_ns = realtime_offset(&facts.meta);
        summary.marks = facts.marks.len() as u64;
        let sink = &mut *self.pairing.sink;
        sink.finish(&facts, &summary.losses, &self.adopter.names)?;
        summary.left_out = sink.unweighted_requests();
        summary.filter = inputs.options.filter.describe();
        Ok(())
    }
}

/// The stages behind the reorder window.
struct Pairing<'a> {
    dedup: Dedup,
    beginning: Beginning,
    pairer: Pairer,
    has_begun: bool,
    sink: &'a mut dyn Sink,
}

impl Pairing<'_> {
    fn event(&mut self, event: &Event, location: Location, what: Use, names: &Names) -> Result<()> {
        if let Use::Repeat(partner) = what {
            self.dedup.count_repeat(event, location, partner);
            return Ok(());
        }
        if !self.has_begun {
            self.has_begun = true;
            self.sink.begin(event.ts)?;
        }
        let Self { dedup, beginning, pairer, sink, .. } = self;
        let mut out = Out { names, sink: &mut **sink };
        dedup.event(event, location, |fact| beginning.pass(fact, pairer, &mut out))
    }

    /// Counts a late event. `event` is called with it all the same.
    fn late(&mut self, event: &Event, location: Location, names: &Names) -> Result<()> {
        let Self { beginning, pairer, sink, .. } = self;
        let mut out = Out { names, sink: &mut **sink };
        // Late is what comes after later events have been paired.
        beginning.end(pairer, &mut out)?;
        pairer.late(event, location, &mut out)
    }

    /// Closes what is still open, and adds the losses and the number of requests to the summary.
    fn finish(&mut self, names: &Names, summary: &mut Summary) -> Result<()> {
        let Self { dedup, beginning, pairer, sink, .. } = self;
        let mut out = Out { names, sink: &mut **sink };
        dedup.finish(|fact| beginning.pass(fact, pairer, &mut out))?;
        beginning.end(pairer, &mut out)?;
        pairer.finish(&mut out)?;
        summary.add_losses(&self.dedup.losses);
        summary.add_losses(&self.pairer.losses);
        if let Some(losses) = self.sink.losses() {
            summary.add_losses(losses);
        }
        summary.requests = Some(self.pairer.request_count);
        Ok(())
    }
}

/// Replaces what an event knows by its batch only with what the whole run knows: names, folded stacks, processes.
struct Adopter<'a> {
    names: Names,
    stacks: Stacks,
    adopted: Adopted,
    thread_table: &'a ThreadTable,
    file_table: &'a FileTable,
    symbols: &'a Symbols,
}

impl Adopter<'_> {
    fn start_batch(&mut self, batch: &Batch) {
        self.adopted.start_batch(batch);
    }

    /// Returns an event of the current batch with names of the run. Its stack is folded: it will be compared and shown, no longer printed
    /// as recorded.
    fn adopt(&mut self, mut event: Event, batch: &Batch) -> Event {
        let Self { names, stacks, adopted, thread_table, file_table, symbols } = self;
        if event.pid == UNKNOWN_TASK && !thread_table.is_empty() {
            event.pid = thread_table.process_of(event.tid);
        }
        adopted.name(&mut event.comm, batch, names);
        match &mut event.kind {
            Kind::SyncStart { path, fs, .. } | Kind::SyncDone { path, fs, .. } => {
                adopted.path(path, batch, names);
                adopted.name(fs, batch, names);
            }
            Kind::Probe(Probe::SyncEnter { function, path, container_path, fs, dev, ino, generation, .. }) => {
                adopted.name(function, batch, names);
                adopted.name(fs, batch, names);
                let parts = batch.names.get(*path);
                let known = file_table.path_of(*dev, *ino, *generation, parts);
                *path = if known.is_empty() { NameId::NONE } else { names.intern_passing(&known) };
                let in_container = file_table.container_path_of(*dev, *ino, *generation, parts);
                *container_path = in_container.map_or(NameId::NONE, |path| names.intern_passing(&path));
            }
            Kind::Probe(Probe::FileCall(call)) => {
                for path in [&mut call.path, &mut call.to_path].into_iter().filter(|path| path.is_some()) {
                    // The name at the time of the event counts, not the one that the recorder found later.
                    let known = file_table.path_of(call.dev, 0, 0, batch.names.get(*path));
                    *path = names.intern_passing(&known);
                }
                adopted.name(&mut call.flags, batch, names);
            }
            Kind::Probe(Probe::FileReturn(ProbedReturn { dev, path, .. })) if path.is_some() => {
                *path = names.intern_passing(&file_table.path_of(*dev, 0, 0, batch.names.get(*path)));
            }
            Kind::Probe(Probe::WriteWaitStart { waited_for, .. }) => {
                adopted.name(&mut waited_for.holder_comm, batch, names);
            }
            Kind::CallEnter { stack, path, .. } => {
                adopted.path(path, batch, names);
                if stack.is_some() {
                    let raw = batch.names.get(*stack);
                    if symbols.is_empty() {
                        adopt(&mut adopted.stacks, stack, |_| stacks.fold(raw, names));
                    } else {
                        *stack = stacks.fold(&symbols.name(event.pid, raw), names);
                    }
                }
            }
            Kind::FileCall(call) => {
                adopted.path(&mut call.path, batch, names);
                adopted.path(&mut call.to_path, batch, names);
                adopted.name(&mut call.flags, batch, names);
                if call.stack.is_some() {
                    call.stack = stacks.fold(batch.names.get(call.stack), names);
                }
            }
            Kind::FileReturn(returned) => {
                adopted.path(&mut returned.path, batch, names);
                if returned.stack.is_some() {
                    returned.stack = stacks.fold(batch.names.get(returned.stack), names);
                }
            }
            Kind::Mark { name, .. } => adopted.name(name, batch, names),
            Kind::SyncEnd { fs, .. } => adopted.name(fs, batch, names),
            Kind::CallExit { stack, .. } if stack.is_some() => *stack = stacks.fold(batch.names.get(*stack), names),
            _ => {}
        }
        event
    }
}
