//! Arguments of a predicted write. `sink/perfetto/page_cache.rs` writes them.

use super::Stop;
use super::wire::Fields;
use crate::sink::PredictedWrite;
use crate::sink::perfetto::proto::{annotation, event};

/// Returns a write that begins at `ts`, without its duration. `data` is the event from its first argument on.
pub(super) fn read(ts: i64, data: &[u8]) -> Result<PredictedWrite, Stop> {
    let mut write = PredictedWrite { ts, ..PredictedWrite::default() };
    for field in Fields(data) {
        let (event::DEBUG_ANNOTATIONS, value) = field? else { continue };
        let (mut key, mut text, mut number) = ("", None, None);
        for part in Fields(value.bytes()?) {
            match part? {
                (annotation::NAME, value) => key = value.text()?,
                (annotation::STRING_VALUE, value) => text = Some(value.text()?.to_owned()),
                (annotation::INT_VALUE, value) => number = Some(value.int()? as i64),
                _ => return Err(Stop::FOREIGN),
            }
        }
        match (key, text, number) {
            // For people.
            ("time", Some(_), None) => {}
            ("state", Some(text), None) => write.state = text,
            ("kind", Some(text), None) => write.kind = text,
            ("path", Some(text), None) => write.path = text,
            ("scenario", Some(text), None) => write.scenario = Some(text),
            ("predicted_ns", None, Some(number)) => write.predicted_ns = number,
            ("naive_ns", None, Some(number)) => write.naive_ns = number,
            ("predicted_dirty_bytes", None, Some(number)) => write.predicted_dirty_bytes = number,
            ("dirty_bytes", None, Some(number)) => write.dirty_bytes = Some(number),
            ("offset_bytes", None, Some(number)) => write.offset = number,
            ("size_bytes", None, Some(number)) => write.bytes = number,
            _ => return Err(Stop::FOREIGN),
        }
    }
    Ok(write)
}
