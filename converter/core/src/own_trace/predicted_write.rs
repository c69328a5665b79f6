//! Arguments of a predicted write. `sink/perfetto/page_cache.rs` writes them.

use super::Stop;
use super::argument::{Argument, Value, arguments};
use crate::sink::PredictedWrite;

/// Returns a write that begins at `ts`, without its duration. `data` is the event from its first argument on.
pub(super) fn read(ts: i64, data: &[u8]) -> Result<PredictedWrite, Stop> {
    let mut write = PredictedWrite { ts, ..PredictedWrite::default() };
    for argument in arguments(data) {
        let Argument { name, value } = argument?;
        match (name, value) {
            // For people.
            ("time", Value::Text(_)) => {}
            ("state", Value::Text(text)) => text.clone_into(&mut write.state),
            ("kind", Value::Text(text)) => text.clone_into(&mut write.kind),
            ("path", Value::Text(text)) => text.clone_into(&mut write.path),
            ("scenario", Value::Text(text)) => write.scenario = Some(text.to_owned()),
            ("predicted_ns", Value::Number(number)) => write.predicted_ns = number,
            ("predicted_commit_ns", Value::Number(number)) => write.predicted_commit_ns = Some(number),
            ("naive_ns", Value::Number(number)) => write.naive_ns = number,
            ("predicted_dirty_bytes", Value::Number(number)) => write.predicted_dirty_bytes = number,
            ("dirty_bytes", Value::Number(number)) => write.dirty_bytes = Some(number),
            ("offset_bytes", Value::Number(number)) => write.offset = number,
            ("size_bytes", Value::Number(number)) => write.bytes = number,
            _ => return Err(Stop::FOREIGN),
        }
    }
    Ok(write)
}
