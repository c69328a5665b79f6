//! Slices of sync calls, of their requests, of the phases and waits of a request, and of commits.

use super::PerfettoTrace;
use super::fields::{Category, colour, counters, failed, flows, head, row, row_values, value};
use super::proto::event;
use crate::error::Result;
use crate::event::{NO_ID, Op};
use crate::names::Names;
use crate::rows::derived::{KnownCall, RequestPlace, Written, column, derive_call, derive_request, tid_of_track};
use crate::rows::{Call, Commit, Missing, Request, Value, WaitInterval, columns, values};
use crate::sink::{Group, GroupRequest};

/// One bit for each column that the slice of a whole wait says.
const WAIT_TIMES: u64 = 1 << column::<WaitInterval>("ts_ns") | 1 << column::<WaitInterval>("dur_ns");

/// Columns of a request that are always written.
const SHOWN: [usize; 5] = [
    column::<Request>("bytes"),
    column::<Request>("bios"),
    column::<Request>("syscall_ns"),
    column::<Request>("stack"),
    column::<Request>("confidence"),
];

impl PerfettoTrace {
    /// Writes the slice of a call with those of its requests inside.
    pub(super) fn group_slices(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let first = group.call.map(|c| (c.tid, c.pid, c.comm));
        let Some(task) =
            first.or_else(|| group.requests.first().map(|r| (r.request.tid, r.request.pid, r.request.comm)))
        else {
            return Ok(());
        };
        if let Some(call) = group.call {
            self.note_call(call, names)?;
        }
        group.requests.iter().try_for_each(|r| self.note_request(r.request, names))?;
        let process = group.call.map(|c| c.process).or_else(|| group.requests.first().map(|r| r.request.process));
        if let Some(process) = process.filter(|process| process.is_some()) {
            self.process_track(task.1, process, names)?;
        }
        let paired = group.call.and_then(|c| group.requests.iter().find(|r| Some(r.request.sync_id) == c.sync_id));
        // A call without a recorded exit is drawn around the request that it was paired with.
        let call = group.call.map(|c| {
            let end = c.dur().map_or_else(|| paired.map_or(c.enter, |r| extent(r.request).1), |dur| c.enter + dur);
            (c, end.max(c.enter))
        });
        let spans = group.requests.iter().map(|r| extent(r.request));
        let fits_call =
            |start, end| call.is_none_or(|(c, call_end)| start >= c.enter && (end <= call_end || start >= call_end));
        let mut reached = i64::MIN;
        let nests = spans.clone().all(|(start, end)| {
            let follows = start >= reached;
            reached = end;
            follows && fits_call(start, end)
        });
        if !nests {
            // The times run backwards, or the call may not belong to these requests: each slice goes on a free track.
            let mut known_call = None;
            if let Some((call, end)) = call {
                let track = self.task_lane(task, call.enter, end, names)?;
                known_call = self.begin_call(call, track, task.0, paired.is_some(), names)?;
                self.end(end, track, &[])?;
            }
            for r in group.requests {
                let (start, end) = extent(r.request);
                let track = self.task_lane(task, start, end, names)?;
                self.request_slice(r, track, task.0, known_call, names)?;
            }
            return Ok(());
        }
        let start = call.map(|(c, _)| c.enter).into_iter().chain(spans.clone().map(|(start, _)| start)).min();
        let end = call.map(|(_, end)| end).into_iter().chain(spans.map(|(_, end)| end)).max();
        let track = self.task_lane(task, start.unwrap_or_default(), end.unwrap_or_default(), names)?;
        let (mut open_call, mut known_call) = (None, None);
        if let Some((call, end)) = call {
            known_call = self.begin_call(call, track, task.0, paired.is_some(), names)?;
            open_call = Some(end);
        }
        for r in group.requests {
            // Requests after the end of a call whose exit was not recorded are drawn after it, not inside.
            if let Some(end) = open_call
                && extent(r.request).0 >= end
                && Some(r.request.sync_id) != group.call.and_then(|c| c.sync_id)
            {
                self.end(end, track, &[])?;
                open_call = None;
            }
            self.request_slice(r, track, task.0, known_call, names)?;
        }
        match open_call {
            Some(end) => self.end(end, track, &[]),
            None => Ok(()),
        }
    }

    /// Begins the slice of a call on a track of the thread `tid`. The caller ends it. Returns the call if its request can be derived from it.
    fn begin_call(
        &mut self,
        call: &Call,
        track: u64,
        tid: u32,
        has_request: bool,
        names: &Names,
    ) -> Result<Option<KnownCall>> {
        let is_open = call.dur().is_none();
        let values: [Value; columns::CALL.len()] = values(call);
        let mut written = Written::new(&values);
        derive_call(&mut written, &self.known, tid_of_track(tid));
        if call.sync_id.is_some() && !has_request {
            // Nothing is derived for a request by a call of another group.
            written.make_full();
        }
        let left_out = written.left_out();
        self.event(call.enter, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Call, interner.static_event_name(call.op.name()));
            row_values(b, &values, left_out, ids.call, (interner, ids, names));
            if is_open {
                value(b, ids.open, Value::Int(1), interner, names);
            }
        })?;
        let stack = values[const { column::<Call>("stack") }];
        Ok(left_out.and(call.sync_id).map(|sync_id| KnownCall {
            sync_id,
            op: call.op.name(),
            ts: call.enter,
            dur: call.dur(),
            stack,
        }))
    }

    fn request_slice(
        &mut self,
        r: &GroupRequest<'_>,
        track: u64,
        tid: u32,
        known_call: Option<KnownCall>,
        names: &Names,
    ) -> Result<()> {
        let request = r.request;
        let (start, end) = extent(request);
        let counter = self.syncs_in_flight;
        let name = self.request_name(request, names);
        // A phase is drawn only where both its bounds are known and inside the request.
        let inside = |from: Option<i64>, to: Option<i64>| {
            from.zip(to).filter(|&(from, to)| start <= from && from <= to && to <= end)
        };
        let before = request.before_submit().and_then(|_| inside(Some(start), request.first_submit));
        let data = request.writeback().and_then(|_| inside(request.first_submit, request.last_complete));
        let after = request.after_complete().and_then(|_| inside(request.last_complete, Some(end)));
        // If the times run backwards, the last phase is dropped: phases must not overlap.
        let after = after.filter(|&(from, _)| before.is_none_or(|(_, to)| to <= from));
        let values: [Value; columns::SYNC.len()] = values(request);
        let known_call = known_call.filter(|call| call.sync_id == request.sync_id);
        let bios = self.bio_sums.remove(&request.sync_id);
        let place = RequestPlace { slice: (start, end), tid: tid_of_track(tid), call: known_call, bios };
        let mut written = Written::new(&values);
        derive_request(&mut written, &self.known, &place);
        // A person who clicks on the slice sees its arguments only.
        for column in SHOWN {
            written.keep(column);
        }
        let call_ts = request.call.map(|call| call.enter);
        let may_leave_out = known_call.is_none_or(|call| call_ts == Some(call.ts));
        if !may_leave_out || bios.unwrap_or_default().count != r.bio_ids.len() as u64 {
            written.make_full();
        }
        let left_out = written.left_out();
        // A request without an id and a file system is taken for a call-only one.
        let says_start = request.id == NO_ID && !request.fs.is_some() && request.start.is_some();
        let is_counted = request.start.is_some() || request.call_only;
        self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Sync, name);
            colour(b, request.failure().is_some());
            if before.is_none() {
                flows(b, r.bio_ids);
            }
            if is_counted {
                counters(b, &[(counter, u64::from(request.in_flight.0))]);
            }
            let columns = if says_start { ids.sync.with(const { column::<Request>("start_ns") }) } else { ids.sync };
            row_values(b, &values, left_out, columns, (interner, ids, names));
            if let Some(ts) = call_ts.filter(|_| left_out.is_none() || known_call.is_none()) {
                value(b, ids.call_ts, Value::Int(ts), interner, names);
            }
        })?;
        let phases = [("before submit", before), ("writeback", data), ("after completion", after)];
        let mut reached = start;
        for (name, phase) in phases {
            let Some((from, to)) = phase else { continue };
            self.wait_slices(request, (reached, from), track, names)?;
            self.phase_slice(name, (from, to), r, track, names)?;
            reached = to;
        }
        self.wait_slices(request, (reached, end), track, names)?;
        let in_flight = [(counter, u64::from(request.in_flight.1))];
        self.end(end, track, if is_counted { &in_flight } else { &[] })
    }

    fn phase_slice(
        &mut self,
        name: &'static str,
        (from, to): (i64, i64),
        r: &GroupRequest<'_>,
        track: u64,
        names: &Names,
    ) -> Result<()> {
        self.event(from, track, event::SLICE_BEGIN, |b, interner, _| {
            head(b, Category::Phase, interner.static_event_name(name));
            if name == "before submit" {
                flows(b, r.bio_ids);
            }
        })?;
        self.wait_slices(r.request, (from, to), track, names)?;
        self.end(to, track, &[])
    }

    /// Writes the parts of waits between `from` and `to`. A wait that crosses the end of a phase is drawn in several slices, which
    /// `syncline_wait` joins.
    fn wait_slices(&mut self, request: &Request, (from, to): (i64, i64), track: u64, names: &Names) -> Result<()> {
        let mut open: Vec<i64> = Vec::new();
        for wait in &request.waits {
            let (start, end) = (wait.start.max(from), wait.end.min(to));
            // A wait of duration 0 on a border is drawn on both sides of it.
            if start > end || start == end && wait.start < wait.end {
                continue;
            }
            while let Some(until) = open.pop_if(|until| *until <= start) {
                self.end(until, track, &[])?;
            }
            // Slices of a track must nest, so a wait cannot outlast the one around it.
            let end = open.last().map_or(end, |&until| end.min(until));
            // The slice says the times of a wait that it draws as a whole.
            let left_out = if (start, end) == (wait.start, wait.end) { WAIT_TIMES } else { 0 };
            self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
                head(b, Category::Wait, interner.static_event_name(wait.wait.name()));
                row(b, wait, ids.wait.without(left_out), interner, names);
            })?;
            open.push(end);
        }
        while let Some(until) = open.pop() {
            self.end(until, track, &[])?;
        }
        Ok(())
    }

    /// Writes a commit of a journal on the track of its thread. One whose start or end is missing has duration 0.
    pub(super) fn commit_slice(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        let end = commit.end.unwrap_or(commit.start);
        let track = self.task_lane((commit.tid, commit.pid, commit.comm), commit.start, end, names)?;
        self.event(commit.start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Commit, interner.static_event_name("commit"));
            row(b, commit, ids.commit, interner, names);
        })?;
        self.end(end, track, &[])
    }

    fn request_name(&mut self, request: &Request, names: &Names) -> u64 {
        let missing = request.missing().filter(|m| *m != Missing::Bio);
        let ino = if request.path.is_some() { 0 } else { request.ino };
        let key = (request.fs, call_only(request), request.path, ino, missing.map(|m| m as u8), request.failure());
        let Self { event_names, interner, .. } = self;
        *event_names
            .requests
            .entry(key)
            .or_insert_with(|| interner.event_name(&format_request_name(request, missing, names)))
    }
}

/// Returns start and end of the slice of a request.
fn extent(request: &Request) -> (i64, i64) {
    let start = request.start.unwrap_or(request.first_event);
    (start, request.end.unwrap_or(request.last_event).max(start))
}

/// Returns the op of a call-only request.
fn call_only(request: &Request) -> Option<Op> {
    request.call.filter(|_| request.call_only).map(|call| call.op)
}

/// Formats the name of a request. The file comes first: it is what the thread waits for, and what a narrow slice still shows.
fn format_request_name(request: &Request, missing: Option<Missing>, names: &Names) -> String {
    let fs = names.text(request.fs);
    let function = match call_only(request) {
        Some(op) => op.name().to_owned(),
        None if fs.is_empty() => "sync_file".to_owned(),
        None => format!("{fs}_sync_file"),
    };
    let name = if request.path.is_some() {
        let path = names.text(request.path);
        let file = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&path);
        format!("{file} ({function})")
    } else if request.ino != 0 {
        format!("inode {} ({function})", request.ino)
    } else {
        function
    };
    let missing = match missing {
        Some(Missing::Start) => ", start not recorded",
        Some(Missing::End) => ", end not recorded",
        Some(Missing::Bio) | None => "",
    };
    name + missing + &failed(request.failure())
}
