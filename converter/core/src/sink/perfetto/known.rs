//! Writes once for all rows, as instants on the track of the run, the values that most rows have, threads and processes.

use super::PerfettoTrace;
use super::bios::thread_name;
use super::fields::{head, value};
use crate::error::Result;
use crate::event::{NO_ID, UNKNOWN_TASK};
use crate::names::{NameId, Names};
use crate::rows::derived::{CommonRequest, KnownProcess, Thread, column};
use crate::rows::{Bio, Call, Request, Value};
use crate::trace_layout::Category;
use crate::trace_layout::fields::event;

impl PerfettoTrace {
    /// Says that values are left out.
    pub(super) fn begin_known(&mut self) -> Result<()> {
        let ts = self.first_ts;
        self.common_instant(ts, "rows", &[(self.names.full, Value::Int(0))], &Names::default())
    }

    /// Takes the values of a request that others may have too.
    pub(super) fn note_request(&mut self, request: &Request, names: &Names) -> Result<()> {
        self.note_thread(request.ts(), (request.tid, request.pid, request.comm), names)?;
        self.note_process(request.ts(), request.pid, (request.process, request.cgroup), names)?;
        self.note_id(request.ts(), Some(request.sync_id), request.id)?;
        if let Some(common) = self.known.request.decide(|| CommonRequest::of(request)) {
            let columns = self.names.sync;
            let values = [
                (columns.iid(const { column::<Request>("dev") }), common.dev),
                (columns.iid(const { column::<Request>("fs") }), common.fs),
                (columns.iid(const { column::<Request>("ret") }), common.ret),
                (columns.iid(const { column::<Request>("journal_ns") }), common.journal),
                (columns.iid(const { column::<Request>("flush_ns") }), common.flush),
            ];
            self.common_instant(request.ts(), "request", &values, names)?;
        }
        Ok(())
    }

    pub(super) fn note_call(&mut self, call: &Call, names: &Names) -> Result<()> {
        self.note_thread(call.enter, (call.tid, call.pid, call.comm), names)?;
        if let Some(ret) = self.known.call.decide(|| call.ret.filter(|&ret| ret == 0)) {
            let ret = (self.names.call.iid(const { column::<Call>("ret") }), Value::Int(ret));
            self.common_instant(call.enter, "call", &[ret], names)?;
        }
        Ok(())
    }

    pub(super) fn note_bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.note_thread(bio.ts(), (bio.tid, bio.pid, bio.comm), names)?;
        self.note_process(bio.ts(), bio.pid, (bio.process, bio.cgroup), names)?;
        self.note_id(bio.ts(), bio.sync_id, bio.id)?;
        if let Some(error) = self.known.bio.decide(|| bio.error.filter(|&error| error == 0).map(i64::from)) {
            let error = (self.names.bio.iid(const { column::<Bio>("error") }), Value::Int(error));
            self.common_instant(bio.ts(), "bio", &[error], names)?;
        }
        Ok(())
    }

    /// Takes what the id of a request is more than its `sync_id`. Ids of background writeback say nothing of it.
    fn note_id(&mut self, ts: i64, sync_id: Option<u64>, id: u64) -> Result<()> {
        if sync_id.is_none() && id != NO_ID {
            return Ok(());
        }
        let offset = || sync_id.filter(|_| id != NO_ID).map(|sync_id| id.wrapping_sub(sync_id) as i64);
        let Some(offset) = self.known.id_offset.decide(offset) else { return Ok(()) };
        let offset = (self.names.sync.iid(const { column::<Request>("id") }), Value::Int(offset));
        self.common_instant(ts, "id", &[offset], &Names::default())
    }

    /// Describes a thread the first time.
    fn note_thread(&mut self, ts: i64, (tid, pid, comm): (u32, u32, NameId), names: &Names) -> Result<()> {
        if tid == UNKNOWN_TASK || !self.known.has_room_for_thread(tid) {
            return Ok(());
        }
        let thread = Thread { pid: Value::task(pid), comm: Value::name(comm) };
        self.known.add_thread(tid, thread);
        let columns = self.names.bio;
        let values = [
            (columns.iid(const { column::<Bio>("tid") }), Value::Int(i64::from(tid))),
            (columns.iid(const { column::<Bio>("pid") }), thread.pid),
            (columns.iid(const { column::<Bio>("comm") }), thread.comm),
        ];
        let name = self.interner.event_name(&thread_name(tid, &names.text(comm)));
        self.known_instant(ts, Category::Thread, name, &values, names)
    }

    /// Describes a process the first time.
    fn note_process(&mut self, ts: i64, pid: u32, (process, cgroup): (NameId, NameId), names: &Names) -> Result<()> {
        let known = KnownProcess { name: Value::name(process), cgroup: Value::name(cgroup) };
        if pid == UNKNOWN_TASK || !self.known.add_process(pid, known) {
            return Ok(());
        }
        let columns = self.names.sync;
        let values = [
            (columns.iid(const { column::<Request>("pid") }), Value::Int(i64::from(pid))),
            (columns.iid(const { column::<Request>("process") }), known.name),
            (columns.iid(const { column::<Request>("cgroup") }), known.cgroup),
        ];
        let name = self.interner.event_name(&names.text(process));
        self.known_instant(ts, Category::Process, name, &values, names)
    }

    fn common_instant(&mut self, ts: i64, name: &'static str, values: &[(u64, Value)], names: &Names) -> Result<()> {
        let name = self.interner.static_event_name(name);
        self.known_instant(ts, Category::Common, name, values, names)
    }

    pub(super) fn known_instant(
        &mut self,
        ts: i64,
        category: Category,
        name: u64,
        values: &[(u64, Value)],
        names: &Names,
    ) -> Result<()> {
        let track = self.run_track()?;
        self.event(ts, track, event::INSTANT, |b, interner, _| {
            head(b, category, name);
            for &(column, v) in values {
                value(b, column, v, interner, names);
            }
        })
    }
}
