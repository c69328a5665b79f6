//! Which of Syncline's events an event is that a file describes by its name, its system and its fields.

use super::dynamic_events::{DynamicEvent, is_on_tracepoint};
use super::event_names::EventName;
use super::tracepoints::{Machine, Tracepoint};
use super::write_events::{LIMITS_SYSTEM, WriteEventName};

const MARK: Tracepoint = Tracepoint::Named(EventName::Mark);
/// The prefix of the groups of the recorder's dynamic events.
const RECORDER: &str = "syncline_";

/// An event as a file describes it.
pub(super) struct Described<'a> {
    pub(super) name: &'a [u8],
    /// Its system in tracefs. `None` if the file does not say it: then the name decides.
    pub(super) system: Option<&'a str>,
    /// It is ftrace's own event of a printed text.
    pub(super) is_print: bool,
    /// It has one of `PROBE_FIELDS`.
    pub(super) is_probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// With `keep_writes`.
    Write(WriteEventName),
    Tracepoint(Tracepoint),
    /// No report uses it.
    Other,
}

impl Described<'_> {
    /// `machine` is that of the recording, whose syscall numbers it uses.
    pub(super) fn meaning(&self, machine: Option<Machine>, keep_writes: bool) -> Meaning {
        let &Self { name, system, is_print, is_probe } = self;
        if keep_writes
            && (is_probe || system.is_none_or(|system| system == LIMITS_SYSTEM))
            && let Some(write) = WriteEventName::parse(name, is_probe)
        {
            return Meaning::Write(write);
        }
        let is_of_recorder = || system.is_none_or(|system| system.starts_with(RECORDER));
        if is_probe || is_on_tracepoint(name) && is_of_recorder() {
            let event = DynamicEvent::from_name(name).map(Tracepoint::Dynamic);
            return event.map_or(Meaning::Other, Meaning::Tracepoint);
        }
        // A marker, which the text of the ring buffer names after its writer, is stored as `print`.
        let known = if is_print { Some(MARK) } else { Tracepoint::from_name(name).filter(|known| *known != MARK) };
        known
            .filter(|tracepoint| system.is_none_or(|system| tracepoint.system(name) == system))
            .filter(|tracepoint| !tracepoint.is_raw() || machine.is_some())
            .map_or(Meaning::Other, Meaning::Tracepoint)
    }
}
