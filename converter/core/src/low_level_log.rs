//! What the writer (`sink/events_jsonl.rs`) and the reader (`source/events_jsonl.rs`) of the low-level log share.

/// First line of a low-level log of several recordings. Such a log cannot be read back: which recording is authoritative depends on their
/// clocks, ends and formats, and the lines do not hold these.
pub(crate) const SEVERAL_RECORDINGS: &str = r#"{"event":"several_recordings","source":"syncline"}"#;
