//! Slices of bios on the tracks of their device, with the counters of bios and bytes in flight.

use std::fmt::Write as _;

use super::fields::{colour, counters, failed, head, row_values, string_value, value};
use super::human;
use super::proto::fixed64;
use super::{Arrows, PerfettoTrace};
use crate::error::Result;
use crate::event::bio_flags::Direction;
use crate::event::{NO_ID, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::rows::derived::{Written, column, derive_bio};
use crate::rows::{Bio, Missing, Value, columns, values};
use crate::trace_layout::Category;
use crate::trace_layout::fields::event;

/// Number of lost completions whose times a counter shows.
const MAX_INCOMPLETE: usize = 100_000;

/// The threads that write the journal of a file system, by the begin of their names.
const JOURNALS: [&[u8]; 4] = [b"jbd2/", b"btrfs-transacti", b"f2fs_ckpt", b"xfs-cil/"];

/// Why a bio was written, as far as is known: each has a track of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Sync,
    Journal,
    Unknown,
    Background,
    Read,
    Other,
}

impl Cause {
    pub(super) const COUNT: usize = 6;

    fn of(bio: &Bio, names: &Names) -> Self {
        match bio.direction() {
            Direction::Read => return Self::Read,
            Direction::Discard | Direction::Zeroes | Direction::Unknown => return Self::Other,
            Direction::Write | Direction::Flush => {}
        }
        if bio.sync_id.is_some() {
            return Self::Sync;
        }
        let comm = names.get(bio.comm);
        if JOURNALS.iter().any(|journal| comm.starts_with(journal)) {
            Self::Journal
        } else if bio.is_request || bio.origin_unknown || bio.id == NO_ID && bio.ino == 0 {
            // Nothing says which sync it is of, nor that it is of none.
            Self::Unknown
        } else {
            Self::Background
        }
    }
}

impl PerfettoTrace {
    /// Writes a slice from submit to completion, or from the issue in a log without submits; an instant where one of the two is missing.
    pub(super) fn bio_slice(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.note_bio(bio, names)?;
        let device = self.device(bio.dev)?;
        let tracks = &self.devices[device];
        let (bios_track, bytes_track, name_iid) = (tracks.bios_in_flight, tracks.bytes_in_flight, tracks.name_iid);
        let name = self.bio_name(bio, names);
        let values: [Value; columns::BIO.len()] = values(bio);
        let mut written = Written::new(&values);
        derive_bio(&mut written, &self.known, Value::dev(bio.dev));
        if name_iid.is_some() {
            // The name of a device and its number belong together.
            written.keep(const { column::<Bio>("dev") });
        }
        let left_out = written.left_out();
        if let Some(sync_id) = bio.sync_id {
            let (sums, arrows) = self.bio_sums.entry(sync_id).or_default();
            sums.add(&values);
            arrows.add(bio);
        }
        let begin = bio.submit.or(bio.issue.filter(|_| bio.is_request));
        let (track, end) = match (begin, bio.complete) {
            (Some(begin), Some(complete)) => {
                let end = complete.max(begin);
                (self.bio_lane(device, Cause::of(bio, names), begin, end)?, Some(end))
            }
            _ => (self.incomplete_track(device)?, None),
        };
        if let (Some(submit), None) = (bio.submit, bio.complete) {
            let lost = &mut self.devices[device].never_completed;
            if lost.len() < MAX_INCOMPLETE {
                lost.push(submit);
            }
        }
        let direction_iid = bio.said.map(|_| self.direction_name());
        let kind = if end.is_some() { event::SLICE_BEGIN } else { event::INSTANT };
        self.event(bio.ts(), track, kind, |b, interner, ids| {
            head(b, Category::Bio, name);
            if bio.sync_id.is_some() {
                fixed64(b, event::TERMINATING_FLOW_IDS, bio.bio_id);
            }
            colour(b, bio.failure().is_some());
            if bio.submit.is_some() && !bio.is_report {
                let (bios, bytes) = bio.in_flight_at_submit;
                counters(b, &[(bios_track, u64::from(bios)), (bytes_track, bytes)]);
            }
            row_values(b, &values, left_out, ids.bio, (interner, ids, names));
            if bio.is_request {
                value(b, ids.unsubmitted, Value::Int(1), interner, names);
            }
            if bio.origin_unknown {
                value(b, ids.origin_unknown, Value::Int(1), interner, names);
            }
            if let (Some(said), Some(name)) = (bio.said.filter(|_| bio.flags.is_none()), direction_iid) {
                value(b, name, Value::Word(said.name()), interner, names);
            }
            if let Some(iid) = name_iid {
                string_value(b, ids.device, iid);
            }
        })?;
        let Some(end) = end else { return Ok(()) };
        let (bios, bytes) = bio.in_flight_at_complete;
        let in_flight = [(bios_track, u64::from(bios)), (bytes_track, bytes)];
        self.end(end, track, if bio.submit.is_some() && !bio.is_report { &in_flight } else { &[] })
    }

    /// Returns the iid of the name of the direction, which other bios have with their flags.
    fn direction_name(&mut self) -> u64 {
        if self.names.direction == 0 {
            self.names.direction = self.interner.annotation_names(["direction"]);
        }
        self.names.direction
    }

    /// Returns the iid of the slice's name.
    fn bio_name(&mut self, bio: &Bio, names: &Names) -> u64 {
        let missing = bio.missing();
        let path = if bio.sync_id.is_some() { bio.request_file.0 } else { bio.path };
        let ino = match (path.is_some(), bio.sync_id) {
            (true, _) => 0,
            (false, Some(_)) => bio.request_file.1,
            (false, None) => bio.ino,
        };
        let owner = if bio.tid == UNKNOWN_TASK { bio.pid } else { bio.tid };
        let file = if path.is_some() || ino != 0 { File::Of(path, ino) } else { File::None(bio.comm, owner) };
        let size = (bio.extent.folios > 0 || bio.extent.bytes > 0).then_some(bio.extent.bytes);
        let direction = bio.direction();
        let key = (size, direction, file, missing.map(|m| m as u8), bio.failure());
        let Self { event_names, interner, .. } = self;
        *event_names.bios.entry(key).or_insert_with(|| {
            let mut name = match (size, direction) {
                (_, Direction::Flush) => "flush ".to_owned(),
                (Some(bytes), Direction::Read) => format!("read {} ", human::size(bytes)),
                (Some(bytes), Direction::Write) => human::size(bytes) + " ",
                (Some(bytes), Direction::Unknown) => format!("unnamed {} ", human::size(bytes)),
                (None, Direction::Unknown) => "unnamed ".to_owned(),
                (Some(bytes), direction) => format!("{} {} ", direction.name(), human::size(bytes)),
                (None, _) => String::new(),
            };
            match file {
                File::Of(path, _) if path.is_some() => name += file_of(&names.text(path)),
                File::Of(_, ino) => {
                    let _ = write!(name, "inode {ino}");
                }
                File::None(comm, owner) => name += &thread_name(owner, &names.text(comm)),
            }
            name += match missing {
                Some(Missing::Start | Missing::Call) => ", submit not recorded",
                Some(_) => ", completion not recorded",
                None => "",
            };
            interner.event_name(&(name + &failed(bio.failure())))
        })
    }

    /// Writes how many bios have no recorded completion: a value at the submit of each of them.
    pub(super) fn never_completed(&mut self, last_ts: i64) -> Result<()> {
        for device in 0..self.devices.len() {
            let mut lost = std::mem::take(&mut self.devices[device].never_completed);
            if lost.is_empty() {
                continue;
            }
            lost.sort_unstable();
            let track = self.never_completed_track(device)?;
            self.counter(lost[0], track, 0)?;
            for (before, &ts) in lost.iter().enumerate() {
                // Only the last of several at one time has the value after all of them.
                if lost.get(before + 1) != Some(&ts) {
                    self.counter(ts, track, before as u64 + 1)?;
                }
            }
            let in_flight = self.devices[device].counter_tracks;
            for track in in_flight {
                self.counter(last_ts.max(lost[lost.len() - 1]), track, 0)?;
            }
        }
        Ok(())
    }
}

/// What the name of a bio says besides its size.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum File {
    /// Path or else inode of the file.
    Of(NameId, u64),
    /// Name and number of the thread that submitted it.
    None(NameId, u32),
}

/// The last part of a path.
pub(super) fn file_of(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The name of a thread.
pub(super) fn thread_name(tid: u32, comm: &str) -> String {
    match tid {
        UNKNOWN_TASK if comm.is_empty() => "bio".to_owned(),
        UNKNOWN_TASK => comm.to_owned(),
        _ => format!("{comm} {tid}"),
    }
}

impl Arrows {
    /// Each of them once.
    pub(super) fn bio_ids(self) -> impl Iterator<Item = u64> {
        let [first, last, slowest] = [self.first, self.last, self.slowest].map(|bio| bio.map(|(_, bio_id)| bio_id));
        let is_new = slowest != first && slowest != last;
        first.into_iter().chain(last.filter(|_| last != first)).chain(slowest.filter(|_| is_new))
    }

    fn add(&mut self, bio: &Bio) {
        let begin = (bio.ts(), bio.bio_id);
        self.first = self.first.map_or(Some(begin), |first| Some(first.min(begin)));
        self.last = self.last.max(Some(begin));
        let dur = bio.dur().map(|dur| (dur, bio.bio_id));
        if dur.map(|(ns, _)| ns) > self.slowest.map(|(ns, _)| ns) {
            self.slowest = dur;
        }
    }
}
