//! Finds what an event means to Syncline from how a file describes it: by its name, its system and its fields.

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
    /// Its system in tracefs. `None` if the file does not say it, so that the name alone decides.
    pub(super) system: Option<&'a str>,
    /// It is ftrace's own event of a printed text.
    pub(super) is_print: bool,
    /// It has one of `PROBE_FIELDS`.
    pub(super) is_probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The event of a write, only with `keep_writes`.
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
        // Nothing but the recorder's group distinguishes it from an event of the kernel with the same name.
        let is_of_recorder = || system.is_none_or(|system| system.starts_with(RECORDER));
        if is_probe || is_on_tracepoint(name) && is_of_recorder() {
            let event = DynamicEvent::from_name(name).map(Tracepoint::Dynamic);
            return event.map_or(Meaning::Other, Meaning::Tracepoint);
        }
        // A marker is stored as `print`. Only the text of the ring buffer has the name of the function that wrote it.
        let known = if is_print { Some(MARK) } else { Tracepoint::from_name(name).filter(|known| *known != MARK) };
        known
            .filter(|tracepoint| system.is_none_or(|system| tracepoint.system(name) == system))
            .filter(|tracepoint| !tracepoint.is_raw() || machine.is_some())
            .map_or(Meaning::Other, Meaning::Tracepoint)
    }
}
