//! Slices of bios on the tracks of their device, with the counters of bios and bytes in flight.

use super::PerfettoTrace;
use super::fields::{Category, colour, counters, failed, head, row, string_value, value};
use super::proto::{event, fixed64};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::names::Names;
use crate::rows::{Bio, Confidence, Missing, Value};

impl PerfettoTrace {
    /// Writes a slice from submit to completion, or from the issue in a log without submits; an instant where one of the two is missing.
    pub(super) fn bio_slice(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        let device = self.device(bio.dev)?;
        let tracks = &self.devices[device];
        let (bios_track, bytes_track, name_iid) = (tracks.bios_in_flight, tracks.bytes_in_flight, tracks.name_iid);
        let name = self.bio_name(bio, names);
        let begin = if bio.is_unsubmitted { bio.issue } else { bio.submit };
        let (track, end) = match (begin, bio.complete) {
            (Some(begin), Some(complete)) => {
                let end = complete.max(begin);
                (self.bio_lane(device, bio, begin, end)?, Some(end))
            }
            _ => (self.incomplete_track(device)?, None),
        };
        let kind = if end.is_some() { event::SLICE_BEGIN } else { event::INSTANT };
        self.event(bio.ts(), track, kind, |b, interner, ids| {
            head(b, Category::Bio, name);
            if bio.sync_id.is_some() {
                fixed64(b, event::TERMINATING_FLOW_IDS, bio.bio_id);
            }
            colour(b, bio.sync_id, bio.failure().is_some());
            if bio.submit.is_some() {
                let (bios, bytes) = bio.in_flight_at_submit;
                counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
            }
            let columns = if bio.confidence == Confidence::Exact { ids.exact_bio } else { ids.bio };
            row(b, bio, columns, interner, names);
            if bio.is_unsubmitted {
                value(b, ids.unsubmitted, Value::Int(1), interner, names);
            }
            if let Some(iid) = name_iid {
                string_value(b, ids.device, iid);
            }
        })?;
        let Some(end) = end else { return Ok(()) };
        self.event(end, track, event::SLICE_END, |b, _, _| {
            if bio.submit.is_some() {
                let (bios, bytes) = bio.in_flight_at_complete;
                counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
            }
        })
    }

    fn bio_name(&mut self, bio: &Bio, names: &Names) -> u64 {
        let owner = if bio.tid == UNKNOWN_TASK { bio.pid } else { bio.tid };
        let missing = bio.missing();
        let Self { event_names, interner, .. } = self;
        let key = (bio.comm, owner, missing.map(|m| m as u8), bio.failure());
        *event_names.bios.entry(key).or_insert_with(|| {
            let comm = names.text(bio.comm);
            let thread = match owner {
                UNKNOWN_TASK if comm.is_empty() => "bio".to_owned(),
                UNKNOWN_TASK => comm.into_owned(),
                _ => format!("{comm} {owner}"),
            };
            let missing = match missing {
                Some(Missing::Start) => ", submit not recorded",
                Some(_) => ", completion not recorded",
                None => "",
            };
            interner.event_name(&(thread + missing + &failed(bio.failure())))
        })
    }
}
