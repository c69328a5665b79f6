//! Slices of bios on the tracks of their device, with the counters of bios and bytes in flight.

use super::PerfettoTrace;
use super::fields::{Category, counters, head, row, string_value};
use super::proto::{event, fixed64, uint};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::names::Names;
use crate::rows::{Bio, Confidence, Missing};

impl PerfettoTrace {
    /// Writes a slice from submit to completion; an instant where one of the two is missing.
    pub(super) fn bio_slice(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        let device = self.device(bio.dev)?;
        let tracks = &self.devices[device].1;
        let (bios_track, bytes_track, name_iid) = (tracks.bios_in_flight, tracks.bytes_in_flight, tracks.name_iid);
        let name = self.bio_name(bio, names);
        let (track, end) = match (bio.submit, bio.complete) {
            (Some(submit), Some(complete)) => {
                let end = complete.max(submit);
                (self.bio_lane(device, bio, submit, end)?, Some(end))
            }
            _ => (self.incomplete_track(device)?, None),
        };
        let kind = if end.is_some() { event::SLICE_BEGIN } else { event::INSTANT };
        self.event(bio.ts(), track, kind, |b, interner, ids| {
            head(b, Category::Bio, name);
            if let Some(sync_id) = bio.sync_id {
                fixed64(b, event::TERMINATING_FLOW_IDS, bio.bio_id);
                uint(b, event::CORRELATION_ID, sync_id);
            }
            if bio.submit.is_some() {
                let (bios, bytes) = bio.in_flight_at_submit;
                counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
            }
            let columns = if bio.confidence == Confidence::Exact { ids.exact_bio } else { ids.bio };
            row(b, bio, columns, interner, names);
            if let Some(iid) = name_iid {
                string_value(b, ids.device, iid);
            }
        })?;
        let Some(end) = end else { return Ok(()) };
        self.event(end, track, event::SLICE_END, |b, _, _| {
            let (bios, bytes) = bio.in_flight_at_complete;
            counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
        })
    }

    fn bio_name(&mut self, bio: &Bio, names: &Names) -> u64 {
        let owner = if bio.tid == UNKNOWN_TASK { bio.pid } else { bio.tid };
        let missing = bio.missing();
        let Self { event_names, interner, .. } = self;
        *event_names.bios.entry((bio.comm, owner, missing.map(|m| m as u8))).or_insert_with(|| {
            let comm = names.text(bio.comm);
            let thread = if owner == UNKNOWN_TASK { comm.into_owned() } else { format!("{comm} {owner}") };
            let missing = match missing {
                Some(Missing::Start) => ", submit not recorded",
                Some(_) => ", completion not recorded",
                None => "",
            };
            interner.event_name(&(thread + missing))
        })
    }
}
