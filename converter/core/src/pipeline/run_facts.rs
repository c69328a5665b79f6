//! The facts of a run that a sink writes at its end: `syncline_meta` and the marks.

use std::path::Path;

use super::FinishedInputs;
use crate::SCHEMA_VERSION;
use crate::block::devices_below::DevicesBelow;
use crate::error::{Error, Result};
use crate::event::Kind;
use crate::options::MarksClock;
use crate::sink::{Mark, RunFacts};
use crate::summary::Summary;

pub(super) fn run_facts(
    inputs: &FinishedInputs<'_>,
    ids_are_processes: bool,
    (marks, of_threads, devices_below): (Vec<Mark>, Vec<(String, String)>, &DevicesBelow),
    summary: &Summary,
) -> Result<RunFacts> {
    let meta = meta(inputs, (ids_are_processes, of_threads, devices_below), summary);
    let marks = match inputs.options.marks_clock {
        MarksClock::Realtime if !inputs.options.marks.is_empty() => {
            let offset = realtime_offset(&meta)
                .ok_or_else(|| Error::MarksTimeOfDay { path: inputs.options.inputs.join(", ") })?;
            marks_of_day(marks, offset, summary)
        }
        _ => marks,
    };
    Ok(RunFacts {
        first_ts: summary.first_ts,
        last_ts: summary.last_ts,
        meta,
        marks: closed_marks(marks, summary.last_ts),
        prediction: inputs.options.prediction.clone(),
    })
}

/// What to add to the times of the result for ns since 1970, if known.
pub(super) fn realtime_offset(meta: &[(String, String)]) -> Option<i64> {
    let value = |wanted| meta.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
    if value("clock") == Some("realtime") { Some(0) } else { value("realtime_offset_ns")?.parse().ok() }
}

/// Moves marks from the time of day to the clock of the result, and drops those outside it.
fn marks_of_day(marks: Vec<Mark>, offset: i64, summary: &Summary) -> Vec<Mark> {
    let (Some(first), Some(last)) = (summary.first_ts, summary.last_ts) else { return Vec::new() };
    let moved = marks.into_iter().filter_map(|mark| {
        let ts = mark.ts.saturating_sub(offset);
        let is_inside = ts <= last && ts.saturating_add(mark.dur.unwrap_or(0)) >= first;
        // What began before the machine booted has no time on its clock.
        let cut = ts.saturating_neg().max(0);
        is_inside.then(|| Mark { ts: ts + cut, dur: mark.dur.map(|dur| dur - cut), ..mark })
    });
    moved.collect()
}

/// Keys and values of `syncline_meta`. A fact that an input records replaces the default for that key.
fn meta(
    inputs: &FinishedInputs<'_>,
    (ids_are_processes, of_threads, devices_below): (bool, Vec<(String, String)>, &DevicesBelow),
    summary: &Summary,
) -> Vec<(String, String)> {
    let options = inputs.options;
    let or_empty = |ts: Option<i64>| ts.map_or_else(String::new, |ts| ts.to_string());
    let defaults = [
        ("schema_version", SCHEMA_VERSION.to_string()),
        ("syncline_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("source", source_names(inputs)),
        ("input", file_names(inputs)),
        ("pid_is", if ids_are_processes { "process" } else { "thread" }.to_owned()),
        ("time_unit", if options.source_options.time_unit_ns == 1000 { "us" } else { "ns" }.to_owned()),
        ("clock", default_clock(inputs, summary).unwrap_or("unknown").to_owned()),
        ("first_ts_ns", or_empty(summary.first_ts)),
        ("last_ts_ns", or_empty(summary.last_ts)),
        ("lines", summary.lines.to_string()),
        ("events", summary.event_count().to_string()),
        ("requests", summary.requests.unwrap_or_default().to_string()),
    ];
    let mut meta: Vec<_> = defaults.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    meta.extend(of_threads);
    if !summary.records_syncs() {
        meta.push(("syncs_recorded".to_owned(), "no".to_owned()));
    }
    if let [tally] = inputs.tallies
        && tally.has_interrupted_calls
    {
        meta.push(("interrupted_calls".to_owned(), "yes".to_owned()));
    }
    if !options.filter.is_empty() {
        meta.push(("request_filter".to_owned(), options.filter.describe()));
    }
    if !options.prediction.writes.is_empty() {
        meta.push(("write_model_rules".to_owned(), options.prediction.rules.clone()));
        meta.push(("predicted_writes".to_owned(), options.prediction.writes.len().to_string()));
    }
    for (key, value) in inputs.facts {
        match meta.iter_mut().find(|(known, _)| known == key) {
            Some((_, default)) => default.clone_from(value),
            None => meta.push(((*key).to_owned(), value.clone())),
        }
    }
    meta.extend(options.device_names.iter().map(|(dev, name)| (format!("device_name.{dev}"), name.clone())));
    let below = devices_below.texts(&options.device_names);
    meta.extend(below.into_iter().map(|(dev, text)| (format!("device_on.{dev}"), text)));
    meta.extend(options.write_caches.iter().map(|(dev, cache)| (format!("device_cache.{dev}"), cache.clone())));
    // A key in a trace keeps no dot, and groups may have some in their names.
    let limits = options.limits.iter().zip(1..);
    meta.extend(limits.map(|((group, text), number)| (format!("limits.{number}"), format!("{group}\t{text}"))));
    let counts = Kind::NAMES.iter().zip(summary.events);
    meta.extend(counts.map(|(name, count)| (format!("events.{name}"), count.to_string())));
    meta
}

/// Returns the names of the inputs' formats, each once.
fn source_names(inputs: &FinishedInputs<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for tally in inputs.tallies {
        let name = tally.source.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// The names of the inputs, in the order in which they are used. Files that are read with another one follow.
fn file_names(inputs: &FinishedInputs<'_>) -> String {
    let file_name = |path: &String| {
        Path::new(path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned())
    };
    let place = |path: &String| inputs.tallies.iter().position(|tally| tally.path == *path).unwrap_or(usize::MAX);
    let mut paths: Vec<_> = inputs.options.inputs.iter().collect();
    paths.sort_by_key(|&path| (place(path), path));
    paths.into_iter().map(file_name).collect::<Vec<_>>().join(", ")
}

/// Returns the clock of the first format with a default clock. Inputs that `--offset` has shifted are on another clock.
fn default_clock(inputs: &FinishedInputs<'_>, summary: &Summary) -> Option<&'static str> {
    let inputs = inputs.tallies.iter().zip(&summary.inputs);
    inputs.filter(|(_, read)| read.clock.name.is_some()).find_map(|(tally, _)| tally.traits.default_clock)
}

/// Returns the marks in the order of time. A mark without a duration lasts until the next one, or until the last event.
fn closed_marks(mut marks: Vec<Mark>, last_ts: Option<i64>) -> Vec<Mark> {
    marks.sort_by_key(|mark| mark.ts);
    for index in 0..marks.len() {
        let end = marks.get(index + 1).map(|next| next.ts).or(last_ts);
        let mark = &mut marks[index];
        if mark.dur.is_none() {
            mark.dur = end.map(|end| (end - mark.ts).max(0));
        }
    }
    marks
}
