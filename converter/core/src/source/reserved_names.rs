//! Names of events that have a meaning in the low-level log.

use std::borrow::Cow;

use super::event_names::EventName;
use super::{TORN_LINE, strace};

/// Returns the name of an unknown event in the low-level log: with the kind of event before it, where it would be read as a known event.
pub(super) fn other_event_name<'a>(kind: &str, name: &'a [u8]) -> Cow<'a, [u8]> {
    let is_reserved = EventName::parse_any(name).is_some()
        || strace::is_io_uring(name, b"")
        || matches!(name, b"lost_events" | b"missing_events" | b"cut_off" | b"unparsed_line" | TORN_LINE);
    if is_reserved { [kind.as_bytes(), b" ", name].concat().into() } else { name.into() }
}
