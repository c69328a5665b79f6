//! The interned data of a trace, and its tracks.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Stop, rebuild};
use crate::names::{NameId, Names};
use crate::rows::derived::tid_of_track;
use crate::rows::file_op::FileOp;
use crate::rows::{Bio, Call, Commit, Phase, PhaseKind, Request, Row, Type, Value, WaitInterval, WriteWait};
use crate::trace_layout::fields::{descriptor, interned};
use crate::trace_layout::wire::{Damaged, Fields, Wire};
use crate::trace_layout::{CATEGORIES, Category};

/// The meaning of an annotation, by its name. A column may be one of several tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnnotationName {
    /// The column of each table, and what it holds.
    columns: [Option<(u8, Content)>; TABLES],
    pub(super) single: Option<Single>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Single {
    CallTs,
    Open,
    MarkId,
    Unsubmitted,
    OriginUnknown,
    Full,
    /// The call that the slice of a request stands for too.
    CallId,
    /// The uuid of a track.
    Track,
    /// It says nothing that a row holds.
    Unused,
}

const TABLES: usize = 8;

/// A table whose rows are slices.
pub(super) trait Table: Row {
    const NUMBER: usize;
}

impl Table for Request {
    const NUMBER: usize = 0;
}

impl Table for Bio {
    const NUMBER: usize = 1;
}

impl Table for Call {
    const NUMBER: usize = 2;
}

impl Table for WaitInterval {
    const NUMBER: usize = 3;
}

impl Table for Commit {
    const NUMBER: usize = 4;
}

impl Table for WriteWait {
    const NUMBER: usize = 5;
}

impl Table for FileOp {
    const NUMBER: usize = 6;
}

impl Table for Phase {
    const NUMBER: usize = 7;
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Text,
    /// A word of this program.
    Word,
    /// `major,minor`.
    Device,
    /// `0x` and digits.
    Address,
    Number,
}

fn column<R: Row>(name: &str) -> Option<(u8, Content)> {
    // Its name before schema version 3.
    let name = if name == "residue_ns" { "other_ns" } else { name };
    let at = R::COLUMNS.iter().position(|(column, _)| *column == name)?;
    let content = match (R::COLUMNS[at].1, name) {
        (Type::Text, "dev" | "below") => Content::Device,
        (Type::Text, "bio") => Content::Address,
        (
            Type::Text,
            "op" | "wait" | "rwbs" | "direction" | "confidence" | "cpu_confidence" | "incomplete" | "kind"
            | "started_by" | "status" | "reason",
        ) => Content::Word,
        (Type::Text, _) => Content::Text,
        _ => Content::Number,
    };
    Some((u8::try_from(at).ok()?, content))
}

impl AnnotationName {
    fn of(name: &str) -> Self {
        let single = match name {
            "call_ts_ns" => Some(Single::CallTs),
            "open" => Some(Single::Open),
            "mark_id" => Some(Single::MarkId),
            "unsubmitted" => Some(Single::Unsubmitted),
            "origin_unknown" => Some(Single::OriginUnknown),
            "full" => Some(Single::Full),
            "call_id" => Some(Single::CallId),
            "track" => Some(Single::Track),
            "device" | "text" | "amount" | "time" => Some(Single::Unused),
            _ => None,
        };
        let columns = [
            column::<Request>(name),
            column::<Bio>(name),
            column::<Call>(name),
            column::<WaitInterval>(name),
            column::<Commit>(name),
            column::<WriteWait>(name),
            column::<FileOp>(name),
            column::<Phase>(name),
        ];
        Self { columns, single }
    }

    /// Returns the column of a table that the annotation is.
    #[inline]
    pub(super) fn column<T: Table>(&self) -> Option<(usize, Content)> {
        self.columns[T::NUMBER].map(|(at, content)| (usize::from(at), content))
    }
}

/// The name of slices, and what it says. Most names are those of many slices.
struct EventName {
    text: Box<str>,
    /// The word of this program that it is.
    word: Option<&'static str>,
    /// The phase or the wait that it is.
    phase: Option<PhaseKind>,
    /// The file that it says as the name of a bio, with or without a size before it; `None` until it is asked for.
    file: Option<(usize, NameId)>,
}

/// The strings that packets refer to by number.
#[derive(Default)]
pub(super) struct Interned {
    categories: Vec<Option<Category>>,
    event_names: Vec<EventName>,
    annotation_names: Vec<AnnotationName>,
    strings: HashMap<u64, (NameId, Option<&'static str>), FixedState>,
}

impl Interned {
    /// Adds the entries of `InternedData`.
    pub(super) fn add(&mut self, data: &[u8], names: &mut Names) -> Result<(), Stop> {
        for field in Fields(data) {
            let (field, entry) = field?;
            let (mut iid, mut text) = (0, None);
            for part in Fields(entry.bytes()?) {
                match part? {
                    (interned::IID, value) => iid = value.int()?,
                    (interned::NAME, value) => text = Some(value.text()?),
                    _ => return Err(Stop::FOREIGN),
                }
            }
            let text = text.ok_or(Stop::DAMAGED)?;
            match field {
                interned::EVENT_CATEGORIES => {
                    let known = CATEGORIES.iter().find(|(_, name)| *name == text);
                    let (category, _) = known.ok_or(Stop::FOREIGN)?;
                    push(&mut self.categories, iid, Some(*category))?;
                }
                interned::EVENT_NAMES => {
                    let (word, phase) = (rebuild::word(text), PhaseKind::of_name(text));
                    push(&mut self.event_names, iid, EventName { text: text.into(), word, phase, file: None })?;
                }
                interned::DEBUG_ANNOTATION_NAMES => push(&mut self.annotation_names, iid, AnnotationName::of(text))?,
                interned::DEBUG_ANNOTATION_STRING_VALUES => {
                    let string = (names.intern_passing(text.as_bytes()), rebuild::word(text));
                    if self.strings.insert(iid, string).is_some() {
                        return Err(Stop::DAMAGED);
                    }
                }
                // Colours.
                interned::CORRELATION_ID_STR => {}
                _ => return Err(Stop::FOREIGN),
            }
        }
        Ok(())
    }

    pub(super) fn category(&self, iid: u64) -> Result<Category, Damaged> {
        get(&self.categories, iid)?.ok_or(Damaged)
    }

    pub(super) fn event_name(&self, iid: u64) -> Result<&str, Damaged> {
        get(&self.event_names, iid).map(|name| &*name.text)
    }

    /// Returns the word of this program that is the name of an event.
    pub(super) fn event_word(&self, iid: u64) -> Result<&'static str, Stop> {
        get(&self.event_names, iid)?.word.ok_or(Stop::FOREIGN)
    }

    /// Returns the phase or the wait that is the name of an event.
    pub(super) fn phase(&self, iid: u64) -> Result<PhaseKind, Stop> {
        get(&self.event_names, iid)?.phase.ok_or(Stop::FOREIGN)
    }

    /// Returns the file of its request that the name of a bio says, after so many words: the size of the bio, or that it is a flush.
    pub(super) fn file_of_bio(&mut self, iid: u64, words: usize, names: &mut Names) -> Result<NameId, Damaged> {
        let name = position(iid).and_then(|at| self.event_names.get_mut(at)).ok_or(Damaged)?;
        match name.file {
            Some((before, file)) if before == words => Ok(file),
            _ => {
                let file = names.intern_passing(file_of_bio(&name.text, words).as_bytes());
                name.file = Some((words, file));
                Ok(file)
            }
        }
    }

    #[inline]
    pub(super) fn annotation_name(&self, iid: u64) -> Result<&AnnotationName, Damaged> {
        get(&self.annotation_names, iid)
    }

    /// Returns the value of an argument of a column that holds texts.
    pub(super) fn text_of(&self, iid: u64, content: Content, names: &Names) -> Result<Value, Stop> {
        let (name, word) = *self.strings.get(&iid).ok_or(Damaged)?;
        match content {
            Content::Device => rebuild::dev(&names.text(name)).map(Value::Dev).ok_or(Stop::FOREIGN),
            Content::Word => word.map(Value::Word).ok_or(Stop::FOREIGN),
            Content::Text => Ok(Value::Name(name)),
            Content::Address => {
                let number = names.text(name).strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                number.map(Value::Address).ok_or(Stop::FOREIGN)
            }
            Content::Number => Err(Stop::DAMAGED),
        }
    }
}

/// The writer numbers the entries 1, 2, 3...
fn push<T>(entries: &mut Vec<T>, iid: u64, entry: T) -> Result<(), Damaged> {
    entries.push(entry);
    if iid == entries.len() as u64 { Ok(()) } else { Err(Damaged) }
}

fn get<T>(entries: &[T], iid: u64) -> Result<&T, Damaged> {
    position(iid).and_then(|at| entries.get(at)).ok_or(Damaged)
}

/// Returns where the entry with a number is, or the track with a uuid.
fn position(number: u64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

/// The file of its request that the name of a bio has behind the size.
fn file_of_bio(name: &str, words: usize) -> &str {
    let file = name.splitn(words + 1, ' ').nth(words).unwrap_or_default();
    let notes = [", submit not recorded", ", completion not recorded", ", failed: "];
    notes.iter().filter_map(|note| file.find(note)).min().map_or(file, |at| &file[..at])
}

/// A track with what it says of the slices on it, and its open slices.
pub(super) struct Track<S> {
    /// Its descriptor follows.
    is_announced: bool,
    /// The device that its name says.
    device: Option<Value>,
    pub(super) tid: Value,
    pub(super) dev: Value,
    pub(super) open: Vec<S>,
}

/// Tracks by uuid: 1, 2, 3... in the order of their descriptors.
pub(super) struct Tracks<S>(Vec<Track<S>>);

impl<S> Default for Tracks<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Tracks<S> {
    /// Adds the track of a `TrackDescriptor`.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), Stop> {
        let (mut uuid, mut name, mut parent, mut tid) = (0, "", 0, Value::Null);
        for field in Fields(data) {
            match field? {
                (descriptor::UUID, value) => uuid = value.int()?,
                (descriptor::NAME, value) => name = value.text()?,
                (descriptor::PARENT_UUID, value) => parent = value.int()?,
                (descriptor::THREAD, value) => tid = thread_of(value)?,
                (
                    descriptor::PROCESS
                    | descriptor::COUNTER
                    | descriptor::CHILD_ORDERING
                    | descriptor::DESCRIPTION
                    | descriptor::SIBLING_ORDER_RANK
                    | descriptor::SIBLING_MERGE_BEHAVIOR
                    | descriptor::SIBLING_MERGE_KEY,
                    _,
                ) => {}
                _ => return Err(Stop::FOREIGN),
            }
        }
        if uuid <= self.0.len() as u64 {
            // The thread of the track is known already.
            let is_announced = &mut self.get(uuid)?.is_announced;
            return if std::mem::take(is_announced) { Ok(()) } else { Err(Stop::DAMAGED) };
        }
        if uuid != self.0.len() as u64 + 1 {
            return Err(Stop::DAMAGED);
        }
        // Before schema version 6, the group of a device had the other name.
        let device = ["Disk ", "Block I/O "].iter().find_map(|word| name.strip_prefix(word)).map(device_of);
        let above = if parent == 0 { None } else { Some(self.get(parent)?) };
        // Most rows of bios are at the top level, and the others below their device.
        let dev = above.as_ref().and_then(|above| above.device).or(device).unwrap_or(Value::Null);
        // A track below that of a thread is of the thread too.
        let tid = if tid == Value::Null { above.map_or(Value::Null, |above| above.tid) } else { tid };
        self.0.push(Track { is_announced: false, device, tid, dev, open: Vec::new() });
        Ok(())
    }

    /// Adds the track of a thread whose descriptor follows.
    pub(super) fn add_thread(&mut self, uuid: u64, tid: Value) -> Result<(), Stop> {
        if uuid != self.0.len() as u64 + 1 {
            return Err(Stop::DAMAGED);
        }
        let (device, dev) = (None, Value::Null);
        self.0.push(Track { is_announced: true, device, tid, dev, open: Vec::new() });
        Ok(())
    }

    pub(super) fn get(&mut self, uuid: u64) -> Result<&mut Track<S>, Damaged> {
        position(uuid).and_then(|at| self.0.get_mut(at)).ok_or(Damaged)
    }

    /// The open slices of all tracks.
    pub(super) fn open(&self) -> impl Iterator<Item = &S> {
        self.0.iter().flat_map(|track| &track.open)
    }
}

fn thread_of(value: Wire<'_>) -> Result<Value, Stop> {
    for field in Fields(value.bytes()?) {
        if let (descriptor::THREAD_TID, value) = field? {
            return Ok(u32::try_from(value.int()?).map_or(Value::Null, tid_of_track));
        }
    }
    Ok(Value::Null)
}

/// Returns the device of the name of its group: what is between the last parentheses.
fn device_of(name: &str) -> Value {
    let number = name.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')'));
    number.and_then(|(number, _)| rebuild::dev(number)).map_or(Value::Null, Value::Dev)
}
