//! Slices of sync calls, of their requests, of the phases and waits of a request, and of commits.

use super::PerfettoTrace;
use super::fields::{Category, colour, counters, failed, flows, head, row, row_values, value};
use super::journal::flow_of_commit;
use super::proto::{event, fixed64};
use crate::error::Result;
use crate::event::{NO_ID, Op, WaitKind};
use crate::names::Names;
use crate::rows::derived::{KnownCall, RequestPlace, Written, column, derive_call, derive_request, tid_of_track};
use crate::rows::{Call, Missing, PhaseKind, PhaseSpan, Request, Value, WaitInterval, columns, values};
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
        // The arrows to its bios begin where the first one is submitted.
        let first_submit =
            |span: &PhaseSpan| span.phase == PhaseKind::BeforeSubmit && Some(span.end) == request.first_submit;
        let before_submit = request.phases.iter().position(first_submit);
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
            if before_submit.is_none() {
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
        self.phase_slices(r, before_submit, (start, end), track, names)?;
        let in_flight = [(counter, u64::from(request.in_flight.1))];
        self.end(end, track, if is_counted { &in_flight } else { &[] })
    }

    /// Writes the phases and the waits of a request. A wait is the slice around its phases; where it is the phase itself, nothing is inside.
    /// The residue is what neither covers. The slice of the phase `before_submit` has the arrows to the bios.
    fn phase_slices(
        &mut self,
        r: &GroupRequest<'_>,
        before_submit: Option<usize>,
        extent: (i64, i64),
        track: u64,
        names: &Names,
    ) -> Result<()> {
        let mut waits = Waits { later: &r.request.waits, open: Vec::new(), extent, shown_until: i64::MIN };
        for (index, span) in r.request.phases.iter().enumerate() {
            self.begin_waits(&mut waits, span.start, track, names)?;
            if waits.show(span) {
                continue;
            }
            self.event(span.start, track, event::SLICE_BEGIN, |b, interner, _| {
                head(b, Category::Phase, interner.static_event_name(span.phase.name()));
                if before_submit == Some(index) {
                    flows(b, r.bio_ids);
                }
            })?;
            self.end(span.end, track, &[])?;
        }
        self.begin_waits(&mut waits, i64::MAX, track, names)
    }

    /// Begins the waits that have begun by a time, and ends those that have ended.
    fn begin_waits(&mut self, waits: &mut Waits<'_>, until: i64, track: u64, names: &Names) -> Result<()> {
        while let Some((wait, later)) = waits.later.split_first().filter(|(wait, _)| wait.start <= until) {
            waits.later = later;
            let (from, to) = waits.extent;
            let start = wait.start.max(from);
            self.end_waits(waits, start, track)?;
            // Slices of a track must nest, so a wait cannot outlast the one around it.
            let end = wait.end.min(to).min(waits.open.last().map_or(i64::MAX, |&(until, _)| until)).max(start);
            // The slice says the times of a wait that it draws as a whole.
            let left_out = if (start, end) == (wait.start, wait.end) { WAIT_TIMES } else { 0 };
            self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
                head(b, Category::Wait, interner.static_event_name(wait.wait.name()));
                if let Some(commit_id) = wait.commit_id {
                    fixed64(b, event::FLOW_IDS, flow_of_commit(commit_id, wait.sync_id));
                }
                row(b, wait, ids.wait.without(left_out), interner, names);
            })?;
            waits.open.push((end, wait.wait));
            waits.shown_until = i64::MIN;
        }
        self.end_waits(waits, until, track)
    }

    fn end_waits(&mut self, waits: &mut Waits<'_>, until: i64, track: u64) -> Result<()> {
        while let Some((end, _)) = waits.open.pop_if(|(end, _)| *end <= until) {
            self.end(end, track, &[])?;
            waits.shown_until = i64::MIN;
        }
        Ok(())
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

/// The waits of a request while its phases are drawn.
struct Waits<'a> {
    later: &'a [WaitInterval],
    /// The end of each open slice, the innermost last.
    open: Vec<(i64, WaitKind)>,
    /// Start and end of the slice of the request.
    extent: (i64, i64),
    /// Up to where the innermost slice is a phase itself, since its last part began.
    shown_until: i64,
}

impl Waits<'_> {
    /// Whether the innermost slice shows a phase, because it is that phase and nothing else is inside of it then.
    fn show(&mut self, span: &PhaseSpan) -> bool {
        let is_shown = self.open.last().is_some_and(|&(_, wait)| span.phase == PhaseKind::Wait(wait));
        // Two phases that follow each other would look like one.
        let is_apart = self.shown_until != span.start;
        self.shown_until = if is_shown && is_apart { span.end } else { i64::MIN };
        is_shown && is_apart
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
