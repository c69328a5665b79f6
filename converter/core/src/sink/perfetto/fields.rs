//! The fields of a track event: category and name, flows, extra counter values, and debug annotations.

use super::intern::Interner;
use super::proto::{Tag, bytes, fixed64, int, nested, small_pair, tagged, uint};
use crate::event::errno;
use crate::names::Names;
use crate::rows::derived::column;
use crate::rows::{Bio, Call, Commit, Request, Row, Value, WaitInterval, WriteWait};
use crate::trace_layout::fields::{annotation, event};
use crate::trace_layout::{Category, short_address};

/// Columns that have no annotation: they are the time, duration, track or presence of the slice, or follow from another column.
const IMPLIED_COLUMNS: &[&str] = &["ts_ns", "dur_ns", "start_ns", "unmatched", "origin", "direction", "is_request"];

/// The interned names of debug annotations: those of each table's columns, and single ones.
#[derive(Default)]
pub(super) struct AnnotationNames {
    pub(super) sync: Columns,
    pub(super) bio: Columns,
    pub(super) call: Columns,
    pub(super) wait: Columns,
    pub(super) commit: Columns,
    pub(super) write_wait: Columns,
    /// Interned when the first phase appears that has some.
    pub(super) phase: Option<Columns>,
    /// Interned when the first operation on files appears.
    pub(super) file_op: Option<Columns>,
    pub(super) call_ts: u64,
    pub(super) open: u64,
    pub(super) mark_id: u64,
    pub(super) text: u64,
    /// `Bio::is_request` of a bio.
    pub(super) unsubmitted: u64,
    /// `Bio::origin_unknown` of a bio.
    pub(super) origin_unknown: u64,
    /// Marks a row that holds all its values.
    pub(super) full: u64,
    /// For people: what was written, and where the time went.
    pub(super) amount: u64,
    pub(super) time: u64,
    /// The uuid of a track.
    pub(super) track: u64,
    /// Interned when the first device with a name appears; 0 before.
    pub(super) device: u64,
    /// As `device`, with the first bio whose recorder prints its direction and no flags.
    pub(super) direction: u64,
}

impl AnnotationNames {
    /// Interns all names but `device` and `direction`.
    pub(super) fn intern(interner: &mut Interner) -> Self {
        let sync = Columns::of::<Request>(interner, &[]);
        let bio = Columns::of::<Bio>(interner, &[]);
        let call = Columns::of::<Call>(interner, &["op"]);
        // A wait may be drawn in several slices, so its own time and duration are written too.
        let wait = Columns { skipped: 0, ..Columns::of::<WaitInterval>(interner, &[]) };
        let wait = wait.without(1 << column::<WaitInterval>("wait"));
        let commit = Columns::of::<Commit>(interner, &[]);
        let write_wait = Columns::of::<WriteWait>(interner, &[]);
        let single = interner.annotation_names([
            "call_ts_ns",
            "open",
            "mark_id",
            "text",
            "unsubmitted",
            "full",
            "amount",
            "time",
            "track",
            "origin_unknown",
        ]);
        Self {
            sync,
            bio,
            call,
            wait,
            commit,
            write_wait,
            phase: None,
            file_op: None,
            call_ts: single,
            open: single + 1,
            mark_id: single + 2,
            text: single + 3,
            unsubmitted: single + 4,
            full: single + 5,
            amount: single + 6,
            time: single + 7,
            track: single + 8,
            origin_unknown: single + 9,
            device: 0,
            direction: 0,
        }
    }
}

/// Returns what the name of a slice says of an error.
pub(super) fn failed(error: Option<i64>) -> String {
    error.map_or_else(String::new, |error| format!(", failed: {}", errno::name(error)))
}

/// Phases and waits with a colour that the UI would not give their name: it hashes the name, and some of the hashes look alike.
/// With these colours, no two are alike, also for those who do not see red, green or blue, and those that follow each other in a sync differ
/// the most (tests/test_colours.py). A step of a commit has the colour of the phase in which syncs wait for it.
pub(super) const COLOURS: [(&str, &str); 23] = [
    ("submit", "submit ct"),
    ("queue", "queue ld"),
    ("device", "device co"),
    ("writeback", "writeback eh"),
    ("completion", "completion sn"),
    ("earlier writeback", "earlier writeback ce"),
    ("earlier commit", "earlier commit mm"),
    ("commit start", "commit start px"),
    ("commit locking", "commit locking wa"),
    ("commit flushing", "commit flushing qj"),
    ("commit logging", "commit logging mg"),
    ("commit", "commit ke"),
    ("commit wait", "commit wait oz"),
    ("fast commit", "fast commit zj"),
    ("fast commit wait", "fast commit wait ws"),
    ("flush", "flush bt"),
    ("metadata wait", "metadata wait bn"),
    ("lock wait", "lock wait ij"),
    ("cpu wait", "cpu wait jl"),
    ("after completion", "after completion vp"),
    ("locking", "commit locking wa"),
    ("flushing", "commit flushing qj"),
    ("logging", "commit logging mg"),
];

/// Gives all requests and bios that failed one colour. The UI colours the others by name.
pub(super) fn colour(b: &mut Vec<u8>, has_failed: bool) {
    if has_failed {
        bytes(b, event::CORRELATION_ID_STR, b"failed");
    }
}

/// The head of a phase or of a wait.
pub(super) fn coloured_head(b: &mut Vec<u8>, category: Category, name: &'static str, interner: &mut Interner) {
    let (name, colour) = interner.coloured_event_name(name, &COLOURS);
    head(b, category, name);
    if colour != 0 {
        uint(b, event::CORRELATION_ID_STR_IID, colour);
    }
}

/// Adds an annotation with a text that is not interned.
pub(super) fn text_value(b: &mut Vec<u8>, name_iid: u64, text: &[u8]) {
    nested(b, event::DEBUG_ANNOTATIONS, |b| {
        uint(b, annotation::NAME_IID, name_iid);
        bytes(b, annotation::STRING_VALUE, text);
    });
}

/// Adds an annotation with a text. Neither name nor text is interned, so it is for few events.
pub(super) fn named_text(b: &mut Vec<u8>, name: &str, text: &[u8]) {
    nested(b, event::DEBUG_ANNOTATIONS, |b| {
        bytes(b, annotation::NAME, name.as_bytes());
        bytes(b, annotation::STRING_VALUE, text);
    });
}

/// The same with a number.
pub(super) fn named_number(b: &mut Vec<u8>, name: &str, number: i64) {
    nested(b, event::DEBUG_ANNOTATIONS, |b| {
        bytes(b, annotation::NAME, name.as_bytes());
        int(b, annotation::INT_VALUE, number);
    });
}

pub(super) fn head(b: &mut Vec<u8>, category: Category, name_iid: u64) {
    uint(b, event::CATEGORY_IIDS, category as u64);
    uint(b, event::NAME_IID, name_iid);
}

/// Starts a flow to each bio. The UI draws an arrow from the end of this slice to the start of the bio.
pub(super) fn flows(b: &mut Vec<u8>, bio_ids: &[u64]) {
    for &bio_id in bio_ids {
        fixed64(b, event::FLOW_IDS, bio_id);
    }
}

/// In place of the uuid of a counter track: it is a default of the sequence.
pub(super) const DEFAULT_TRACK: u64 = 0;

/// Adds values of counter tracks: (uuid of the track, value). Either none of the tracks is a default of the sequence, or they are all of them.
pub(super) fn counters(b: &mut Vec<u8>, values: &[(u64, u64)]) {
    for &(track, _) in values.iter().filter(|(track, _)| *track != DEFAULT_TRACK) {
        uint(b, event::EXTRA_COUNTER_TRACK_UUIDS, track);
    }
    for &(_, value) in values {
        int(b, event::EXTRA_COUNTER_VALUES, value as i64);
    }
}

fn columns<R: Row>() -> impl Iterator<Item = &'static str> {
    R::COLUMNS.iter().map(|(name, _)| *name)
}

/// The columns of a table as debug annotations.
#[derive(Clone, Copy, Default)]
pub(super) struct Columns {
    /// Iid of the first column's name; the others follow.
    first: u64,
    /// One bit for each column that has no annotation.
    skipped: u64,
}

impl Columns {
    /// `named` are the columns that the name of the slice says.
    pub(super) fn of<R: Row>(interner: &mut Interner, named: &[&str]) -> Self {
        let is_implied = |name| IMPLIED_COLUMNS.contains(&name) || named.contains(&name);
        let skipped = columns::<R>().enumerate().filter(|&(_, name)| is_implied(name)).map(|(i, _)| 1 << i).sum();
        Self { first: interner.annotation_names(columns::<R>()), skipped }
    }

    /// These columns without those of `left_out`, one bit each.
    pub(super) fn without(self, left_out: u64) -> Self {
        Self { skipped: self.skipped | left_out, ..self }
    }

    /// These columns with one that follows from others in all rows but this one.
    pub(super) fn with(self, column: usize) -> Self {
        Self { skipped: self.skipped & !(1 << column), ..self }
    }

    /// The iid of a column's name.
    pub(super) fn iid(self, column: usize) -> u64 {
        self.first + column as u64
    }
}

/// Adds an annotation for each column of a row that is not null.
pub(super) fn row<R: Row>(b: &mut Vec<u8>, row: &R, columns: Columns, interner: &mut Interner, names: &Names) {
    let mut at = 0;
    row.visit(&mut |_, v| {
        if v != Value::Null && columns.skipped >> at & 1 == 0 {
            value(b, columns.first + at, v, interner, names);
        }
        at += 1;
    });
}

/// Adds an annotation for each value that is not null and not left out. `left_out` is `None` for a row that holds all its values, which is said.
#[inline]
pub(super) fn row_values(
    b: &mut Vec<u8>,
    values: &[Value],
    left_out: Option<u64>,
    columns: Columns,
    (interner, ids, names): (&mut Interner, &AnnotationNames, &Names),
) {
    let mut rest = !(columns.skipped | left_out.unwrap_or_default()) & ((1 << values.len()) - 1);
    while rest != 0 {
        let at = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        value(b, columns.first + at as u64, values[at], interner, names);
    }
    if left_out.is_none() {
        value(b, ids.full, Value::Int(1), interner, names);
    }
}

/// Adds one annotation, unless its value is null.
#[inline]
pub(super) fn value(b: &mut Vec<u8>, name_iid: u64, value: Value, interner: &mut Interner, names: &Names) {
    if let Some((tag, v)) = wire(value, interner, names) {
        wire_value(b, name_iid, tag, v);
    }
}

/// Adds one annotation whose value is an interned string.
pub(super) fn string_value(b: &mut Vec<u8>, name_iid: u64, value_iid: u64) {
    wire_value(b, name_iid, const { Tag::of(annotation::STRING_VALUE_IID) }, value_iid);
}

#[inline]
fn wire_value(b: &mut Vec<u8>, name_iid: u64, tag: Tag, value: u64) {
    const OUTER: u8 = (event::DEBUG_ANNOTATIONS << 3 | 2) as u8;
    const NAME_IID: u8 = (annotation::NAME_IID << 3) as u8;
    // Iids of the names of columns take one byte, those of the last, rare names take two.
    if name_iid < 128 {
        small_pair(b, OUTER, [NAME_IID, name_iid as u8], tag, value);
    } else {
        long_name_value(b, name_iid, tag, value);
    }
}

#[cold]
#[inline(never)]
fn long_name_value(b: &mut Vec<u8>, name_iid: u64, tag: Tag, value: u64) {
    nested(b, event::DEBUG_ANNOTATIONS, |b| {
        uint(b, annotation::NAME_IID, name_iid);
        tagged(b, tag, value);
    });
}

/// Returns the field and the wire value of an annotation; `None` for null.
#[inline]
pub(super) fn wire(value: Value, interner: &mut Interner, names: &Names) -> Option<(Tag, u64)> {
    Some(match value {
        Value::Null => return None,
        Value::Int(v) => (const { Tag::of(annotation::INT_VALUE) }, v as u64),
        Value::UInt(v) => (const { Tag::of(annotation::UINT_VALUE) }, v),
        Value::Bool(v) => (const { Tag::of(annotation::BOOL_VALUE) }, u64::from(v)),
        Value::Name(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.string(v, names)),
        Value::Word(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.keyword(v)),
        Value::Address(v) => match short_address(v) {
            Some(short) => (const { Tag::of(annotation::POINTER_VALUE) }, short),
            None => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.text(&format!("0x{v:x}"))),
        },
        Value::Dev(v) => (const { Tag::of(annotation::STRING_VALUE_IID) }, interner.dev(v)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iid_of_a_name_may_take_two_bytes() {
        for (iid, iid_bytes) in [(1, &[1][..]), (127, &[127]), (128, &[128, 1]), (300, &[172, 2])] {
            for (value, value_bytes) in [(5, &[5][..]), (1 << 20, &[128, 128, 64])] {
                let mut have = Vec::new();
                wire_value(&mut have, iid, Tag::of(annotation::INT_VALUE), value);
                let tag = |field: u32| (field << 3) as u8;
                let inner = [&[tag(annotation::NAME_IID)], iid_bytes, &[tag(annotation::INT_VALUE)], value_bytes];
                let inner = inner.concat();
                let head = [tag(event::DEBUG_ANNOTATIONS) | 2, inner.len() as u8];
                assert_eq!(have, [&head[..], &inner].concat());
            }
        }
    }
}
