//! The states of the threads of open requests, and the phases that the inputs can show.

use crate::collections::Map;
use crate::event::Dev;

/// Spans of one kind that are kept of a request. It loses the further ones, which become residue.
const MAX_SPANS: usize = 1 << 16;

/// How long a thread may take to leave its CPU once it is not to run any more.
const MAX_WAY_OUT_NS: i64 = 1_000_000;

/// Files whose last completion is kept.
const MAX_FILES: usize = 1 << 16;

/// The state of the thread of an open request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::pair) enum State {
    /// At the start of the request it runs, because it reports that.
    #[default]
    Running,
    Runnable,
    Blocked,
}

/// The state of a request's thread, and the wait that the thread is in.
#[derive(Debug, Default)]
pub(in crate::pair) struct Watch {
    pub(in crate::pair) state: State,
    /// Since when it has that; `None` at the start of the request.
    pub(in crate::pair) since: Option<i64>,
    /// When it was woken last while it ran.
    pub(in crate::pair) woken: Option<i64>,
    /// It left a CPU while it had none: a switch to it was lost, if the log records those.
    pub(in crate::pair) is_doubtful: bool,
    /// A switch from or to it was recorded during the request.
    pub(in crate::pair) has_switched: bool,
    pub(in crate::pair) lock_wait: Option<i64>,
    /// The outermost of the open waits for folios, and their number.
    pub(in crate::pair) folio_wait: i64,
    pub(in crate::pair) folio_waits: u32,
}

impl Watch {
    /// Returns the state before, and since when the thread had that. `start` is that of the request.
    pub(in crate::pair) fn change_state(&mut self, ts: i64, next: State, start: i64) -> (State, i64) {
        (std::mem::replace(&mut self.state, next), self.since.replace(ts).unwrap_or(start))
    }

    pub(in crate::pair) fn has_switched(&self) -> bool {
        self.has_switched
    }

    /// Whether the thread was woken on its way out, before the switch was recorded: on another CPU, so it could run at once.
    pub(in crate::pair) fn was_woken_before(&self) -> bool {
        self.woken.zip(self.since).is_some_and(|(woken, since)| since.saturating_sub(woken) <= MAX_WAY_OUT_NS)
    }
}

/// Which phases the inputs can show.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is another kind of event")]
pub(in crate::pair) struct PhasesSeen {
    pub(in crate::pair) states: bool,
    /// A switch to the thread of an open request. Some recorders see only the threads that leave a CPU.
    pub(in crate::pair) switches_in: bool,
    pub(in crate::pair) wakes: bool,
    pub(in crate::pair) locks: bool,
    pub(in crate::pair) folio_waits: bool,
    pub(in crate::pair) folio_wait_ends: bool,
    pub(in crate::pair) issues: bool,
    /// Starts of commits, whose order says which one a thread waits for.
    pub(in crate::pair) commits: bool,
    pub(in crate::pair) commit_steps: bool,
    pub(in crate::pair) metadata_waits: bool,
}

/// The last completion of a bio of each file, and the request that the bio was of.
#[derive(Debug, Default)]
pub(in crate::pair) struct FileCompletions(Map<(Dev, u64), (i64, Option<u64>)>);

impl FileCompletions {
    pub(in crate::pair) fn complete(&mut self, file: (Dev, u64), ts: i64, sync_id: Option<u64>) {
        if self.0.len() >= MAX_FILES {
            self.0.clear();
        }
        self.0.insert(file, (ts, sync_id));
    }

    /// The last completion of a bio of this file after `since`, if it was not of this request.
    pub(in crate::pair) fn of_others(&self, file: (Dev, u64), sync_id: u64, since: i64) -> Option<i64> {
        let &(ts, owner) = self.0.get(&file)?;
        (ts > since && owner != Some(sync_id)).then_some(ts)
    }
}

pub(in crate::pair) fn add<T>(spans: &mut Vec<T>, span: T) {
    if spans.len() < MAX_SPANS {
        spans.push(span);
    }
}
