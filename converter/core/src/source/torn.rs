//! Torn lines: a line that ends before the last field of its format, or that another one is joined to. Its values are not used, but what it
//! names says what is not known now.

use memchr::memmem;

use super::batch::Batch;
use super::cursor::{Cursor, whole};
use super::dynamic_events::DynamicEvent;
use super::event_names::{BlockEvent, EventName};
use super::tracepoints::Tracepoint;
use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::SourceOptions;

/// The facts that a torn line of an event hides. It hides none if the rows show the loss anyway.
pub(super) fn facts_of(event: Option<EventName>) -> &'static [TornFact] {
    use EventName as E;
    match event {
        // It may have been any event of a format with few.
        None => &[TornFact::Any],
        Some(E::AddFolio | E::Submit | E::Block(BlockEvent::Submit)) => &[TornFact::Pages],
        Some(E::Enter(_) | E::Exit(_)) => &[TornFact::Call],
        Some(
            E::Start | E::FsStart | E::End | E::StartWithoutId | E::EndWithoutId | E::WaitStart(_) | E::WaitEnd(_),
        ) => &[TornFact::Request],
        Some(_) => &[],
    }
}

pub(super) fn facts_of_tracepoint(tracepoint: Tracepoint) -> &'static [TornFact] {
    match tracepoint {
        Tracepoint::RawEnter | Tracepoint::RawExit => &[TornFact::Call],
        Tracepoint::Dynamic(_) => &[TornFact::Request, TornFact::Pages],
        Tracepoint::Named(event) => facts_of(Some(event)),
    }
}

/// The texts before the values of an event in a line of JSON.
pub(super) struct JsonKeys {
    /// The begin of a line, which shows where another one is joined to it.
    pub(super) begin: &'static [u8],
    pub(super) ts: &'static [u8],
    pub(super) tid: &'static [u8],
    pub(super) pid: &'static [u8],
    pub(super) event: &'static [u8],
    pub(super) id: &'static [u8],
    pub(super) bio: &'static [u8],
    /// The ids precede the name, so a line that has a name and no `tid` is of a log that has none.
    pub(super) ids_are_first: bool,
    /// The facts that a line of an event of this name hides.
    pub(super) facts: fn(&[u8]) -> &'static [TornFact],
}

/// As `facts_of`, by the name of an event.
pub(super) fn facts_of_name(name: &[u8]) -> &'static [TornFact] {
    match EventName::parse_any(name) {
        _ if DynamicEvent::from_name(name).is_some() => &[TornFact::Request, TornFact::Pages],
        Some(event) => facts_of(Some(event)),
        None => &[],
    }
}

/// Says of a torn line of JSON what it was about, as far as it names that.
#[cold]
pub(super) fn json_line(keys: &JsonKeys, line: &[u8], options: &SourceOptions, batch: &mut Batch) {
    let mut begins: Vec<usize> = memmem::find_iter(line, keys.begin).filter(|&at| at > 0).collect();
    begins.push(line.len());
    let mut from = 0;
    for to in begins {
        if json_event(keys, &line[from..to], options, batch).is_none() {
            batch.torn_unknown(options);
        }
        from = to;
    }
}

fn json_event(keys: &JsonKeys, line: &[u8], options: &SourceOptions, batch: &mut Batch) -> Option<()> {
    // A value that nothing follows may be cut off.
    let value = |key: &[u8]| {
        let rest = &line[memmem::find(line, key)? + key.len()..];
        Some(&rest[..rest.iter().position(|b| matches!(b, b',' | b']' | b'}' | b'"'))?])
    };
    let number = |key: &[u8]| value(key).and_then(|text| whole(text, Cursor::decimal));
    let task = |key: &[u8]| number(key).and_then(|id| u32::try_from(id).ok()).filter(|&id| i32::try_from(id).is_ok());
    let ts = i64::try_from(number(keys.ts)?).ok()?.checked_mul(options.time_unit_ns)?;
    let (tid, pid) = (task(keys.tid), task(keys.pid));
    // A line may name both, so one that is cut off before its thread is of any.
    tid.or(pid.filter(|_| keys.ids_are_first && value(keys.event).is_some()))?;
    let facts = value(keys.event).map_or_else(|| facts_of(None), keys.facts);
    let id = number(keys.id).unwrap_or(NO_ID);
    let bio = value(keys.bio).and_then(|bio| whole(bio, Cursor::hex).or_else(|| whole(bio, Cursor::decimal)));
    let (tid, pid) = (tid.unwrap_or(UNKNOWN_TASK), pid.unwrap_or(UNKNOWN_TASK));
    let event = Event { ts, tid, pid, comm: NameId::NONE, line: 0, kind: Kind::Other };
    for &fact in facts {
        batch.torn(&event, Kind::Torn { id, bio: bio.unwrap_or(0), fact }, options);
    }
    Some(())
}
