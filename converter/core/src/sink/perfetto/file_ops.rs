//! Operations on files, on a track for each thread. They have tracks of their own, because a durable write is a sync as well, and the slices
//! of both would hide each other.

use super::PerfettoTrace;
use super::fields::{Columns, colour, head, row, value};
use crate::error::Result;
use crate::names::Names;
use crate::rows::Value;
use crate::rows::file_op::FileOp;
use crate::trace_layout::Category;
use crate::trace_layout::fields::event;

impl PerfettoTrace {
    /// Writes an operation. One whose end is not known has duration 0.
    pub(super) fn file_op_slice(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        let end = op.start.saturating_add(op.dur.unwrap_or(0));
        let track = self.file_lane(op, end, names)?;
        // Interned with the first operation, so that a trace without any does not grow.
        let columns = match self.names.file_op {
            Some(columns) => columns,
            None => *self.names.file_op.insert(Columns::of::<FileOp>(&mut self.interner, &[])),
        };
        self.event(op.start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::FileOp, interner.static_event_name(op.op.name()));
            colour(b, op.ret.is_some_and(|ret| ret < 0));
            row(b, op, columns, interner, names);
            if op.dur.is_none() {
                value(b, ids.open, Value::Int(1), interner, names);
            }
        })?;
        self.end(end, track, &[])
    }

    /// Returns a track of the thread that is free for an operation.
    fn file_lane(&mut self, op: &FileOp, end: i64, names: &Names) -> Result<u64> {
        let key = (op.tid, op.pid);
        if let Some(uuid) = self.file_lanes.get_mut(&key).and_then(|lanes| lanes.find_free(op.start, end)) {
            return Ok(uuid);
        }
        let group = if let Some(group) = self.files_track {
            group
        } else {
            let description = "What programs did to files besides syncs: one track per thread. The name of a failed call has another colour.";
            let group = self.group_track(None, 0, "File operations", description)?;
            *self.files_track.insert(group)
        };
        let name = super::bios::thread_name(op.tid, &names.text(op.comm));
        let merge_key = format!("files {} {}", op.tid, op.pid);
        let uuid = self.merged_track(group, 0, &name, &merge_key, "Operations on files by the thread.")?;
        self.file_lanes.entry(key).or_default().add(uuid, end);
        Ok(uuid)
    }
}
