//! The low-level log: one JSON object an event. `source/events_jsonl.rs` reads it, `sink/events_jsonl.rs` writes it, and both do what
//! `table` says: it describes each event once.

mod codec;
mod object;
mod table;

pub(crate) use self::codec::LogWriter;
pub(super) use self::codec::{BAD_FIELD, Codec, Text, Unread};
pub(super) use self::object::{LogObject, text_of};
pub(crate) use self::table::{SYNC_PATH, write};
pub(super) use self::table::{has_field, may_have_written, read, read_torn};

/// First line of a low-level log of several recordings. Such a log cannot be read back: which recording is authoritative depends on their
/// clocks, ends and formats, and the lines do not hold these.
pub(crate) const SEVERAL_RECORDINGS: &str = r#"{"event":"several_recordings","source":"syncline"}"#;
