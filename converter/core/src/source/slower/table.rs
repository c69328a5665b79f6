//! Makes the events of a table, in the order of its lines: the file system and the unit of the times are in lines of their own, and a time of
//! day does not say which day it is.

use super::line::{Clock, Letter, Row, Said};
use super::path_of;
use crate::event::{Event, Kind, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::source::time_of_day::{DAY_NS, Days};
use crate::source::{Batch, Extra, Note, NoteKind, StatefulPass};

const MICRO: i64 = 1_000;
const NO_UNIT: &str = "no header (`ENDTIME_us,TASK,...`) before it says in which unit its time is";
pub(super) const OTHER_CLOCK: &str = "its time is on another clock than those of the lines before it";
const TOO_LONG: &str = "it took longer than the time until its end";

/// The lines of a chunk, with their numbers.
#[derive(Default)]
pub(super) struct Deferred {
    pub(super) entries: Vec<(u32, Entry)>,
}

pub(super) enum Entry {
    /// The file system whose calls follow.
    Tracing(NameId),
    Header,
    Csv {
        is_ns: bool,
    },
    Lost(u64),
    Row(Call),
    /// A row that is only counted. Its time is checked as that of any row is, and says where the day ends.
    Counted(Letter, When),
    Bad(NoteKind),
}

/// When a call ended, and how long it took.
pub(super) struct When {
    clock: Clock,
    time: u64,
    dur: u64,
    /// For a note, if the row cannot be used.
    text: Box<[u8]>,
}

impl When {
    fn of(row: &Row<'_>, text: &[u8]) -> Self {
        // Only a row whose time cannot be used becomes a note.
        let text = if row.clock == Clock::SinceBoot || row.dur > DAY_NS as u64 { text } else { b"" };
        Self { clock: row.clock, time: row.time, dur: row.dur, text: text.into() }
    }
}

/// A row whose names are interned.
pub(super) struct Call {
    when: When,
    comm: NameId,
    pid: u32,
    letter: Letter,
    bytes: NameId,
    offset: i64,
    ret: Option<i64>,
    path: NameId,
}

impl Entry {
    pub(super) fn said(said: &Said<'_>, names: &mut Names) -> Self {
        match said {
            Said::Tracing { fs, .. } => Self::Tracing(names.intern(&fs.to_ascii_lowercase())),
            Said::Header => Self::Header,
            Said::Csv { is_ns } => Self::Csv { is_ns: *is_ns },
        }
    }

    pub(super) fn bad(text: &[u8], why: &'static str) -> Self {
        Self::Bad(NoteKind::unparsed(text, why))
    }

    pub(super) fn row(row: &Row<'_>, text: &[u8], names: &mut Names) -> Self {
        let may_be_cut = row.file.len() >= row.letter.kept_of_name();
        Self::Row(Call {
            when: When::of(row, text),
            comm: if row.comm.is_empty() { NameId::NONE } else { names.intern(row.comm) },
            pid: row.pid,
            letter: row.letter,
            bytes: names.intern(row.bytes),
            offset: row.offset,
            ret: row.ret(),
            path: path_of(row.file, may_be_cut, names),
        })
    }

    pub(super) fn counted(row: &Row<'_>, text: &[u8]) -> Self {
        Self::Counted(row.letter, When::of(row, text))
    }
}

/// What the lines before say of a row.
pub(super) struct Table {
    keeps_extras: bool,
    /// The times of the input are times of day.
    is_of_day: bool,
    /// Empty if it is not known.
    fs: Box<[u8]>,
    /// The line before has named the file system, so the header that follows is of the same table.
    is_named: bool,
    /// ns of a unit of time in the table with commas.
    unit: Option<i64>,
    days: Days,
}

impl Table {
    pub(super) fn new(is_of_day: bool, keeps_extras: bool) -> Self {
        // A call may have begun before midnight, so the first row is on the second day.
        Self { keeps_extras, is_of_day, fs: Box::default(), is_named: false, unit: None, days: Days::new(DAY_NS) }
    }

    /// Another table begins. Nothing says that it is of the same file system.
    fn begin(&mut self, unit: Option<i64>) {
        self.unit = unit;
        if !self.is_named {
            self.fs = Box::default();
        }
    }

    /// When a call ended.
    fn end(&mut self, when: &When) -> Result<i64, &'static str> {
        let end = match (when.clock, self.is_of_day) {
            (Clock::OfDay, true) => self.days.time(i64::try_from(when.time).unwrap_or(0)),
            (Clock::SinceBoot, false) => {
                let unit = self.unit.ok_or(NO_UNIT)?;
                i64::try_from(when.time).ok().and_then(|time| time.checked_mul(unit)).ok_or(TOO_LONG)?
            }
            // The parser has left these out.
            _ => return Err(OTHER_CLOCK),
        };
        if i64::try_from(when.dur).is_ok_and(|dur| dur <= end) { Ok(end) } else { Err(TOO_LONG) }
    }

    fn call(&mut self, call: &Call, line: u32, batch: &mut Batch) {
        let ts = match self.end(&call.when) {
            Ok(ts) => ts,
            Err(why) => return note(line, NoteKind::unparsed(&call.when.text, why), batch),
        };
        let Call { comm, pid, letter, path, ret, .. } = *call;
        let dur = call.when.dur;
        let fs = if self.fs.is_empty() { NameId::NONE } else { batch.names.intern(&self.fs) };
        let kind = if letter.is_sync() { Kind::SyncDone { dur, fs, path, ret } } else { Kind::Other };
        if self.keeps_extras {
            extras(call, batch);
        }
        batch.events.push(Event { ts, tid: UNKNOWN_TASK, pid, comm, line, kind });
    }
}

impl StatefulPass for Table {
    fn apply(&mut self, batch: &mut Batch) {
        let Some(mut deferred) = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok()) else {
            return;
        };
        for (line, entry) in deferred.entries.drain(..) {
            match entry {
                Entry::Tracing(fs) => {
                    self.fs = batch.names.get(fs).into();
                    self.is_named = true;
                    continue;
                }
                Entry::Header => self.begin(None),
                Entry::Csv { is_ns } => self.begin(Some(if is_ns { 1 } else { MICRO })),
                Entry::Lost(count) => note(line, NoteKind::Lost { count }, batch),
                Entry::Bad(kind) => note(line, kind, batch),
                Entry::Row(call) => self.call(&call, line, batch),
                Entry::Counted(letter, when) => match self.end(&when) {
                    Ok(_) => batch.other(|| letter.name()),
                    Err(why) => note(line, NoteKind::unparsed(&when.text, why), batch),
                },
            }
            self.is_named = false;
        }
        batch.deferred = Some(deferred);
    }
}

/// Adds a note about a line after the events before it.
fn note(line: u32, kind: NoteKind, batch: &mut Batch) {
    let after = batch.events.len() as u32;
    batch.notes.push(Note { after, line: u64::from(line), is_of_original_log: false, kind });
}

/// What the low-level log has of a row beside what its event has.
fn extras(call: &Call, batch: &mut Batch) {
    let name = batch.names.intern(call.letter.name());
    batch.event_names.push(name);
    let event = batch.events.len() as u32;
    let offset_key: &[u8] = if call.when.clock == Clock::OfDay { b"offset_kb" } else { b"offset" };
    let mut add = |key: &[u8], value: NameId, names: &mut Names| {
        let key = names.intern(key);
        batch.extras.push(Extra { event, key, value });
    };
    add(b"bytes", call.bytes, &mut batch.names);
    let offset = batch.names.intern(call.offset.to_string().as_bytes());
    add(offset_key, offset, &mut batch.names);
    if !call.letter.is_sync() {
        let dur = batch.names.intern(call.when.dur.to_string().as_bytes());
        add(b"dur_ns", dur, &mut batch.names);
        if call.path.is_some() {
            add(b"path", call.path, &mut batch.names);
        }
    }
}
