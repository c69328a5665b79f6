//! Makes the events of a table, in the order of its lines: a time of day does not say which day it is, and the times of another table begin anew.

use super::line::{Device, Row, Took};
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::{Asked, Dev, Event, Kind, NO_SECTOR, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::source::event_names::BLOCK_REPORT;
use crate::source::time_of_day::{DAY_NS, Days};
use crate::source::{Batch, Note, NoteKind, StatefulPass};

pub(super) const OTHER_CLOCK: &str = "its time is on another clock than those of the lines before it";
const OTHER_RUN: &str = "the times of another table begin anew, so it needs a file of its own";
const TOO_LONG: &str = "it took longer than a day";
const TOO_MANY_DISKS: &str = "its disk has no name as the kernel gives them, or there are too many of them";

/// The lines of a chunk, with their numbers.
#[derive(Default)]
pub(super) struct Deferred {
    pub(super) entries: Vec<(u32, Entry)>,
}

pub(super) enum Entry {
    Header,
    Lost(u64),
    Request(Request),
    Bad(NoteKind),
}

/// A row whose names are interned.
pub(super) struct Request {
    time: i64,
    comm: NameId,
    pid: u32,
    kind: Kind,
    /// For a note, if the row cannot be used.
    text: Box<[u8]>,
}

impl Entry {
    pub(super) fn bad(text: &[u8], why: &'static str) -> Self {
        Self::Bad(NoteKind::unparsed(text, why))
    }

    /// `names_threads`: the names of threads are those of the threads that began the requests.
    pub(super) fn row(row: &Row<'_>, text: &[u8], names_threads: bool, names: &mut Names) -> Self {
        let dev = match row.device {
            Device::Unknown => Some(Dev::UNKNOWN),
            Device::Name(name) => std::str::from_utf8(name).ok().and_then(Dev::named),
            Device::Number(major, minor) => Some(Dev::new(major, minor)),
        };
        let Some(dev) = dev else { return Self::bad(text, TOO_MANY_DISKS) };
        let comm = if row.comm.is_empty() || !names_threads { NameId::NONE } else { names.intern(row.comm) };
        let kind = match row.took {
            Took::Whole(ns) => Kind::BlockReport {
                dev,
                sector: NO_SECTOR,
                bytes: 0,
                asked: Asked::Way(Direction::Unknown),
                since_begin: Some(ns),
                since_issue: None,
            },
            Took::AtDevice { letters, has_flags, sector, bytes, queue, device } => {
                let flags = BioFlags::of_rwbs(letters);
                let asked = match (flags, has_flags) {
                    (Some(flags), true) => Asked::Flags(flags),
                    (Some(flags), false) => Asked::Way(flags.direction(bytes)),
                    (None, _) => Asked::Way(Direction::Unknown),
                };
                let since_begin = queue.map(|queue| queue + device);
                Kind::BlockReport { dev, sector, bytes, asked, since_begin, since_issue: Some(device) }
            }
        };
        let pid = row.pid.unwrap_or(UNKNOWN_TASK);
        Self::Request(Request { time: row.time, comm, pid, kind, text: text.into() })
    }
}

/// What the lines before say of a row.
pub(super) struct Table {
    keeps_extras: bool,
    /// The times of the input are times of day.
    is_of_day: bool,
    rows: Rows,
    days: Days,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    None,
    Some,
    /// A header has come after rows whose times are counted from the begin of their own table.
    OfOtherRun,
}

impl Table {
    pub(super) fn new(is_of_day: bool, keeps_extras: bool) -> Self {
        // A request may have begun before midnight, or before the first row, so the first row is on the second day.
        let days = Days::new(DAY_NS);
        Self { keeps_extras, is_of_day, rows: Rows::None, days }
    }

    fn request(&mut self, request: &Request, line: u32, batch: &mut Batch) -> Result<(), &'static str> {
        if self.rows == Rows::OfOtherRun {
            return Err(OTHER_RUN);
        }
        self.rows = Rows::Some;
        let &Request { time, comm, pid, kind, .. } = request;
        let ts = if self.is_of_day { self.days.time(time) } else { time + DAY_NS };
        let event = Event { ts, tid: UNKNOWN_TASK, pid, comm, line, kind };
        if event.since() < 0 {
            return Err(TOO_LONG);
        }
        if self.keeps_extras {
            let name = batch.names.intern(BLOCK_REPORT);
            batch.event_names.push(name);
        }
        batch.events.push(event);
        Ok(())
    }
}

impl StatefulPass for Table {
    fn apply(&mut self, batch: &mut Batch) {
        let Some(mut deferred) = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok()) else {
            return;
        };
        for (line, entry) in deferred.entries.drain(..) {
            match entry {
                Entry::Header if self.is_of_day || self.rows == Rows::None => {}
                Entry::Header => self.rows = Rows::OfOtherRun,
                Entry::Lost(count) => note(line, NoteKind::Lost { count }, batch),
                Entry::Bad(kind) => note(line, kind, batch),
                Entry::Request(request) => {
                    if let Err(why) = self.request(&request, line, batch) {
                        note(line, NoteKind::unparsed(&request.text, why), batch);
                    }
                }
            }
        }
        batch.deferred = Some(deferred);
    }
}

/// Adds a note about a line after the events before it.
fn note(line: u32, kind: NoteKind, batch: &mut Batch) {
    let after = batch.events.len() as u32;
    batch.notes.push(Note { after, line: u64::from(line), is_of_original_log: false, kind });
}
