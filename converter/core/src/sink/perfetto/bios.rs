//! Slices of bios on the tracks of their device, with the counters of bios and bytes in flight.

use super::fields::{Category, colour, counters, failed, head, row_values, string_value, value};
use super::proto::{event, fixed64};
use super::{BioName, PerfettoTrace};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::names::Names;
use crate::rows::derived::{Written, column, derive_bio};
use crate::rows::{Bio, Missing, Value, columns, values};

impl PerfettoTrace {
    /// Writes a slice from submit to completion, or from the issue in a log without submits; an instant where one of the two is missing.
    pub(super) fn bio_slice(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.note_bio(bio, names)?;
        let device = self.device(bio.dev)?;
        let tracks = &self.devices[device];
        let (bios_track, bytes_track, name_iid) = (tracks.bios_in_flight, tracks.bytes_in_flight, tracks.name_iid);
        let (name, thread) = self.bio_name(bio, names);
        let values: [Value; columns::BIO.len()] = values(bio);
        let mut written = Written::new(&values);
        derive_bio(&mut written, &self.known, Value::dev(bio.dev), thread);
        if name_iid.is_some() {
            // The name of a device and its number belong together.
            written.keep(const { column::<Bio>("dev") });
        }
        let left_out = written.left_out();
        if let Some(sync_id) = bio.sync_id {
            self.bio_sums.entry(sync_id).or_default().add(&values);
        }
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
            colour(b, bio.failure().is_some());
            if bio.submit.is_some() {
                let (bios, bytes) = bio.in_flight_at_submit;
                counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
            }
            row_values(b, &values, left_out, ids.bio, (interner, ids, names));
            if bio.is_unsubmitted {
                value(b, ids.unsubmitted, Value::Int(1), interner, names);
            }
            if let Some(iid) = name_iid {
                string_value(b, ids.device, iid);
            }
        })?;
        let Some(end) = end else { return Ok(()) };
        let (bios, bytes) = bio.in_flight_at_complete;
        let in_flight = [(bios_track, u64::from(bios)), (bytes_track, bytes)];
        self.end(end, track, if bio.submit.is_some() { &in_flight } else { &[] })
    }

    /// Returns the iid of the slice's name, and what the trace says of the thread whose bios have it.
    fn bio_name(&mut self, bio: &Bio, names: &Names) -> BioName {
        let owner = if bio.tid == UNKNOWN_TASK { bio.pid } else { bio.tid };
        let missing = bio.missing();
        let Self { event_names, interner, known, .. } = self;
        let key = (bio.comm, owner, missing.map(|m| m as u8), bio.failure());
        *event_names.bios.entry(key).or_insert_with(|| {
            let missing = match missing {
                Some(Missing::Start) => ", submit not recorded",
                Some(_) => ", completion not recorded",
                None => "",
            };
            let name = thread_name(owner, &names.text(bio.comm)) + missing + &failed(bio.failure());
            (interner.event_name(&name), known.bio_thread(&name))
        })
    }
}

/// The name of a thread's bios.
pub(super) fn thread_name(tid: u32, comm: &str) -> String {
    match tid {
        UNKNOWN_TASK if comm.is_empty() => "bio".to_owned(),
        UNKNOWN_TASK => comm.to_owned(),
        _ => format!("{comm} {tid}"),
    }
}
