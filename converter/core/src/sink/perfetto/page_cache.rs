//! Tracks of the write model: what was and what should have been dirty, the state of page cache, and each write with its predicted cost.

use super::PerfettoTrace;
use super::fields::{head, named_number, named_text};
use super::human::{push_ms, size};
use super::tracks::Lanes;
use crate::error::Result;
use crate::sink::{PredictedWrite, Prediction};
use crate::trace_layout::Category;
use crate::trace_layout::fields::event;

const MEASURED: &str =
    "What was dirty or under writeback in the whole machine at the end of a write, as far as it was recorded.";
const PREDICTED: &str = "What the model says is dirty at the end of a write. Between two writes, the track shows the value of the earlier one. \
     A scenario begins with nothing dirty.";
const STATES: &str = "The state of page cache that the model has at the ends of these writes: free run, async run (the flusher thread writes \
     back) or throttle run (the kernel limits writers).";
const WRITES: &str = "Each recorded write, as long as it took. Its arguments say what it should have cost.";

/// A time in which all writes end in one state of page cache.
struct StateSpan<'a> {
    scenario: &'a Option<String>,
    state: &'a str,
    start: i64,
    end: i64,
}

impl PerfettoTrace {
    /// Writes the tracks of all predicted writes.
    pub(super) fn page_cache_tracks(&mut self, prediction: &Prediction) -> Result<()> {
        let Prediction { rules, writes } = prediction;
        if writes.is_empty() {
            return Ok(());
        }
        let description =
            format!("Costs of writes by the model of page cache, with the rules `{rules}`: syncline model predict.");
        let group = self.group_track(None, 0, "Page cache", &description)?;
        if writes.iter().any(|write| write.dirty_bytes.is_some()) {
            let track = self.counter_track(group, 0, "Dirty pages (measured)", Some("bytes"), MEASURED)?;
            for write in writes {
                if let Some(dirty) = write.dirty_bytes {
                    self.counter(end_of(write), track, dirty as u64)?;
                }
            }
        }
        let track = self.counter_track(group, 1, "Dirty pages (predicted)", Some("bytes"), PREDICTED)?;
        let mut scenario = None;
        for write in writes {
            if scenario != Some(&write.scenario) {
                scenario = Some(&write.scenario);
                self.counter(write.ts, track, 0)?;
            }
            self.counter(end_of(write), track, write.predicted_dirty_bytes as u64)?;
        }
        let track = self.group_track(Some(group), 2, "State of page cache (predicted)", STATES)?;
        for span in states(writes) {
            self.event(span.start, track, event::SLICE_BEGIN, |b, interner, _| {
                head(b, Category::PageCacheState, interner.event_name(span.state));
            })?;
            self.end(span.end, track, &[])?;
        }
        self.predicted_writes(group, writes)
    }

    fn predicted_writes(&mut self, group: u64, writes: &[PredictedWrite]) -> Result<()> {
        let mut lanes = Lanes::default();
        for write in writes {
            let end = end_of(write);
            let track = if let Some(uuid) = lanes.find_free(write.ts, end) {
                uuid
            } else {
                let uuid = self.merged_track(group, 3, "Writes", "predicted writes", WRITES)?;
                lanes.add(uuid, end);
                uuid
            };
            self.bound_interned()?;
            let name = name_of(write);
            self.event(write.ts, track, event::SLICE_BEGIN, |b, interner, _| {
                head(b, Category::PredictedWrite, interner.event_name(&name));
                arguments(b, write);
            })?;
            self.end(end, track, &[])?;
        }
        Ok(())
    }
}

fn end_of(write: &PredictedWrite) -> i64 {
    write.ts.saturating_add(write.dur)
}

/// Returns the times of each state, in their order. One lasts until the first write of another state, or of another scenario, begins.
fn states(writes: &[PredictedWrite]) -> Vec<StateSpan<'_>> {
    let mut spans: Vec<StateSpan<'_>> = Vec::new();
    for write in writes {
        match spans.last_mut() {
            Some(last) if *last.scenario == write.scenario && last.state == write.state => {
                last.end = last.end.max(end_of(write));
                continue;
            }
            // Within a scenario, page cache has a state also between writes.
            Some(last) if *last.scenario == write.scenario => last.end = write.ts,
            Some(last) => last.end = last.end.min(write.ts),
            None => {}
        }
        spans.push(StateSpan { scenario: &write.scenario, state: &write.state, start: write.ts, end: end_of(write) });
    }
    spans
}

/// Returns the name of a slice, such as `cached 64 KiB wal`.
fn name_of(write: &PredictedWrite) -> String {
    let file = write.path.rsplit('/').next().unwrap_or_default();
    match u64::try_from(write.bytes) {
        Ok(bytes) if write.kind != "sync" => format!("{} {} {file}", write.kind, size(bytes)),
        _ if write.path.is_empty() => format!("{} of all files", write.kind),
        _ => format!("{} {file}", write.kind),
    }
}

fn arguments(b: &mut Vec<u8>, write: &PredictedWrite) {
    let mut costs = b"measured ".to_vec();
    push_ms(&mut costs, write.dur);
    costs.extend_from_slice(b", predicted ");
    push_ms(&mut costs, write.predicted_ns);
    if let Some(commit_ns) = write.predicted_commit_ns.filter(|&ns| ns > 0) {
        costs.extend_from_slice(b" (commit ");
        push_ms(&mut costs, commit_ns);
        costs.push(b')');
    }
    costs.extend_from_slice(b", size over bandwidth ");
    push_ms(&mut costs, write.naive_ns);
    // For people.
    named_text(b, "time", &costs);
    named_number(b, "predicted_ns", write.predicted_ns);
    if let Some(commit_ns) = write.predicted_commit_ns {
        named_number(b, "predicted_commit_ns", commit_ns);
    }
    named_number(b, "naive_ns", write.naive_ns);
    named_text(b, "state", write.state.as_bytes());
    named_number(b, "predicted_dirty_bytes", write.predicted_dirty_bytes);
    if let Some(dirty) = write.dirty_bytes {
        named_number(b, "dirty_bytes", dirty);
    }
    named_text(b, "kind", write.kind.as_bytes());
    named_text(b, "path", write.path.as_bytes());
    named_number(b, "offset_bytes", write.offset);
    named_number(b, "size_bytes", write.bytes);
    if let Some(scenario) = &write.scenario {
        named_text(b, "scenario", scenario.as_bytes());
    }
}
