//! Measures the time of each stage on one log, in one thread.
//!
//! `cargo run --release --example stages -- LOG`; `tests/bench/run.py` runs it.
#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashMap;

use syncline_core::block::devices_below::DevicesBelow;
use syncline_core::dedup::Provenance;
use syncline_core::error::{Error, Result};
use syncline_core::event::Event;
use syncline_core::input_file::{Chunk, Input};
use syncline_core::location::{Location, Locations};
use syncline_core::losses::Losses;
use syncline_core::merge::reorder::{DEFAULT_WINDOW_NS, MAX_WAITING, Reorder};
use syncline_core::names::Names;
use syncline_core::options::Options;
use syncline_core::pair::{Files, Out, Pairer};
use syncline_core::sink::perfetto::PerfettoTrace;
use syncline_core::sink::{Group, RunFacts, Sink};
use syncline_core::source::{self, Batch, SOURCES, SourceOptions};

#[derive(Default)]
struct Count {
    requests: u64,
}

impl Sink for Count {
    fn group(&mut self, group: &Group<'_>, _: &Names) -> Result<()> {
        self.requests += group.requests.len() as u64;
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        Ok(())
    }
}

/// Batches per round: enough to measure a stage, few enough to stay in memory.
const BATCHES: usize = 64;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).expect("usage: stages LOG");
    let input = Input::open(&path)?;
    let source = source::detect(SOURCES, &path, input.head())?;
    let options = SourceOptions::default();

    let begun = Instant::now();
    let mut reader = source.open(input, &options)?;
    let mut chunk = Chunk::default();
    let mut bytes = 0;
    while reader.chunks.next(&mut chunk)? {
        bytes += chunk.bytes().len();
    }
    report("read", begun.elapsed().as_secs_f64(), bytes as f64 / 1e6, "MB");

    let (mut parse_s, mut reorder_s, mut pair_s, mut trace_s) = (0.0, 0.0, 0.0, 0.0);
    let mut reader = source.open(Input::open(&path)?, &options)?;
    let mut names = Names::default();
    let provenance = Provenance::of_single_log(Location::default());
    let mut reorder = Reorder::default();
    let mut newest = i64::MIN;
    let pairer = || {
        let locations = Arc::new(Locations::default());
        Pairer::new(false, locations, HashMap::default(), Files::default(), DevicesBelow::default())
    };
    let (mut counted, mut traced) = (pairer(), pairer());
    let mut count = Count::default();
    // Never committed, so removed at the end.
    let mut trace = PerfettoTrace::create(
        &std::env::temp_dir().join("stages.pftrace"),
        false,
        &[],
        Options::default().max_idle_name_bytes,
    )?;
    trace.begin(0)?;
    let mut events = 0;
    let mut batches: Vec<Batch> = (0..BATCHES).map(|_| Batch::default()).collect();
    let mut ready: Vec<Event> = Vec::new();
    let mut more = true;
    while more {
        let begun = Instant::now();
        let mut filled = 0;
        while filled < BATCHES && more {
            more = reader.chunks.next(&mut chunk)?;
            if more {
                batches[filled].clear();
                reader.parse.parse(chunk.bytes(), &mut batches[filled]);
                if let Some(pass) = &mut reader.stateful_pass {
                    pass.apply(&mut batches[filled]);
                }
                filled += 1;
            }
        }
        parse_s += begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        ready.clear();
        for batch in &batches[..filled] {
            events += batch.events.len();
            for event in &batch.events {
                let mut event = *event;
                event.names_mut(&mut |id| *id = names.intern(batch.names.get(*id)));
                reorder.push(event, Location::default());
            }
            newest = batch.events.iter().map(|e| e.ts).max().unwrap_or(newest).max(newest);
            let watermark = newest.saturating_sub(DEFAULT_WINDOW_NS);
            reorder.release(watermark, MAX_WAITING, |event, _| {
                ready.push(event);
                Ok::<_, Error>(())
            })?;
        }
        if !more {
            reorder.release_all(|event, _| {
                ready.push(event);
                Ok::<_, Error>(())
            })?;
        }
        reorder_s += begun.elapsed().as_secs_f64();

        let begun = Instant::now();
        for event in &ready {
            counted.event(event, &provenance, &mut Out { names: &names, sink: &mut count })?;
        }
        pair_s += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        for event in &ready {
            traced.event(event, &provenance, &mut Out { names: &names, sink: &mut trace })?;
        }
        trace_s += begun.elapsed().as_secs_f64();
    }
    let events = events as f64 / 1e6;
    report("read + parse", parse_s, events, "M events");
    report("names + reorder", reorder_s, events, "M events");
    report("pair", pair_s, count.requests as f64 / 1e6, "M requests");
    report("pair + trace", trace_s, count.requests as f64 / 1e6, "M requests");
    Ok(())
}

fn report(stage: &str, seconds: f64, amount: f64, unit: &str) {
    println!("{stage:18} {seconds:7.3} s  {:9.2} {unit}/s", amount / seconds);
}
