//! Losses as they occur, and the last packets of the trace: application marks, facts about the run, and the count of each loss.

use super::PerfettoTrace;
use super::fields::{head, named_text, text_value, value, wire};
use super::proto::{bytes, nested, tagged};
use super::tracks::Lanes;
use crate::error::Result;
use crate::losses::{LossCount, Losses, Reason};
use crate::names::Names;
use crate::rows::Value;
use crate::sink::{Mark, RunFacts};
use crate::trace_layout::fields::{annotation, event};
use crate::trace_layout::{CHECKSUM_KEY, Category};

/// Maximum number of instants of one reason. The loss summary has the whole count.
const MAX_LOSS_INSTANTS: u64 = 10_000;

impl PerfettoTrace {
    /// Writes an instant for a loss, up to a maximum number per reason.
    pub(super) fn loss_instant(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        let count = &mut self.loss_instants[reason as usize];
        *count += 1;
        if *count > MAX_LOSS_INSTANTS {
            return Ok(());
        }
        let track = if let Some(uuid) = self.losses_track {
            uuid
        } else {
            let description =
                "Records that are missing or were not used, by reason. The report `losses` explains each reason.";
            let recording = self.recording()?;
            let uuid = self.group_track(Some(recording), 0, "Losses", description)?;
            self.losses_track = Some(uuid);
            uuid
        };
        self.event(ts, track, event::INSTANT, |b, interner, ids| {
            head(b, Category::Loss, interner.event_name(reason.name()));
            text_value(b, ids.text, text.as_bytes());
        })
    }

    pub(super) fn mark_slices(&mut self, marks: &[Mark]) -> Result<()> {
        let mut lanes = Lanes::default();
        for (i, mark) in marks.iter().enumerate() {
            let end = mark.ts + mark.dur.unwrap_or(0);
            let track = if let Some(uuid) = lanes.find_free(mark.ts, end) {
                uuid
            } else {
                let description = "Application marks: from --marks, or from the markers in the log.";
                let uuid = self.top_track(lanes.len() == 0, "Marks", "marks", description)?;
                lanes.add(uuid, end);
                uuid
            };
            self.event(mark.ts, track, event::SLICE_BEGIN, |b, interner, ids| {
                head(b, Category::Mark, interner.event_name(&mark.name));
                let no_names = Names::default();
                value(b, ids.mark_id, Value::Int(i as i64 + 1), interner, &no_names);
            })?;
            self.end(end, track, &[])?;
        }
        Ok(())
    }

    /// Writes one instant per loss reason, the facts as one instant, and the checksum of all packets before its own. A trace without it is cut off.
    pub(super) fn run_instants(&mut self, facts: &RunFacts, losses: &Losses) -> Result<()> {
        let track = self.run_track()?;
        let ts = facts.first_ts.unwrap_or_default();
        let meta: Vec<(&str, &str)> = facts.meta.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        losses.iter().try_for_each(|(reason, count)| self.loss_summary(ts, track, reason, count))?;
        self.meta_instant(ts, track, "syncline", &[], &meta)?;
        let checksum = Value::int(self.out.checksum().map(i64::from));
        self.meta_instant(ts, track, "checksum", &[(CHECKSUM_KEY, checksum)], &[])
    }

    fn loss_summary(&mut self, ts: i64, track: u64, reason: Reason, loss: &LossCount) -> Result<()> {
        let mut values = vec![("count", Value::Int(loss.count as i64))];
        values.extend(loss.first_ts.map(|ts| ("first_ts_ns", Value::Int(ts))));
        values.extend(loss.last_ts.map(|ts| ("last_ts_ns", Value::Int(ts))));
        let mut texts =
            vec![("reason", reason.name()), ("severity", reason.severity().name()), ("meaning", reason.meaning())];
        texts.extend(loss.example.as_deref().map(|text| ("example", text)));
        self.meta_instant(ts, track, "loss_summary", &values, &texts)
    }

    fn meta_instant(
        &mut self,
        ts: i64,
        track: u64,
        name: &str,
        values: &[(&str, Value)],
        texts: &[(&str, &str)],
    ) -> Result<()> {
        let none = Names::default();
        self.event(ts, track, event::INSTANT, |b, interner, _| {
            head(b, Category::Meta, interner.event_name(name));
            for &(key, v) in values {
                nested(b, event::DEBUG_ANNOTATIONS, |b| {
                    bytes(b, annotation::NAME, key.as_bytes());
                    if let Some((tag, v)) = wire(v, interner, &none) {
                        tagged(b, tag, v);
                    }
                });
            }
            for &(key, text) in texts {
                named_text(b, key, text.as_bytes());
            }
        })
    }
}
