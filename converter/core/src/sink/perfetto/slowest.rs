//! The slowest syncs, once more at the top level, where the threads of known processes are not: the UI shows those in closed groups.

use super::bios::{file_of, thread_name};
use super::fields::head;
use super::tracks::Lanes;
use super::{PerfettoTrace, human};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::names::{NameId, Names};
use crate::sink::Group;
use crate::trace_layout::Category;
use crate::trace_layout::fields::event;

const COUNT: usize = 20;
/// The UI sorts tracks by name, so it is above that of the syncs in flight.
const NAME: &str = "All threads: slowest syncs";

#[derive(Default)]
pub(super) struct Slowest {
    /// The slowest first.
    syncs: Vec<SlowSync>,
    /// Whether the process of any sync is known.
    has_process: bool,
}

struct SlowSync {
    start: i64,
    dur: i64,
    name: String,
}

impl PerfettoTrace {
    /// Notes a sync call of a task, which took `dur` from `start` on.
    pub(super) fn note_slow(
        &mut self,
        group: &Group<'_>,
        task: (u32, u32, NameId),
        (start, dur): (i64, i64),
        names: &Names,
    ) {
        let Slowest { syncs, has_process } = &mut self.slowest;
        *has_process |= task.1 != UNKNOWN_TASK;
        let place = syncs.partition_point(|sync| (-sync.dur, sync.start) <= (-dur, start));
        if dur > 0 && place < COUNT {
            syncs.truncate(COUNT - 1);
            syncs.insert(place, SlowSync { start, dur, name: name_of(group, task, dur, names) });
        }
    }

    /// Writes the slowest syncs, if the threads of any are in a closed group.
    pub(super) fn slowest_syncs(&mut self) -> Result<()> {
        let Slowest { mut syncs, has_process } = std::mem::take(&mut self.slowest);
        if !has_process {
            return Ok(());
        }
        syncs.sort_by_key(|sync| sync.start);
        let mut lanes = Lanes::default();
        for SlowSync { start, dur, name } in syncs {
            let end = start + dur;
            let track = if let Some(uuid) = lanes.find_free(start, end) {
                uuid
            } else {
                let description = format!(
                    "The {COUNT} syncs that took longest. Each is also on the track of its thread, in the group of its process, where its \
                     phases are."
                );
                let uuid = self.top_track(lanes.len() == 0, NAME, "slowest syncs", &description)?;
                lanes.add(uuid, end);
                uuid
            };
            self.event(start, track, event::SLICE_BEGIN, |b, interner, _| {
                head(b, Category::Slowest, interner.event_name(&name));
            })?;
            self.end(end, track, &[])?;
        }
        Ok(())
    }
}

/// Returns the name of a slice: `postgres 2070: fdatasync wal, 204 ms`.
fn name_of(group: &Group<'_>, (tid, pid, comm): (u32, u32, NameId), dur: i64, names: &Names) -> String {
    let request = group.requests.first().map(|r| r.request);
    let comm = names.text(comm);
    let number = if tid == UNKNOWN_TASK { pid } else { tid };
    let op = group.call.map(|call| call.op).or_else(|| request.and_then(|request| request.call).map(|call| call.op));
    let file = match request {
        // A call for several files is named by none of them.
        _ if group.requests.len() > 1 => String::new(),
        Some(request) if request.path.is_some() => format!(" {}", file_of(&names.text(request.path))),
        Some(request) if request.ino != 0 => format!(" inode {}", request.ino),
        _ => String::new(),
    };
    let comm = if comm.is_empty() { "thread" } else { &comm };
    format!("{}: {}{file}, {}", thread_name(number, comm), op.map_or("sync", |op| op.name()), human::duration(dur))
}
