//! Slices of sync calls, of their requests, of the phases and waits of a request, of commits, and of waits in writes.

use super::bios::file_of;
use super::fields::{
    Columns, colour, coloured_head, counters, failed, flows, head, row, row_values, string_value, text_value, value,
};
use super::proto::{fixed64, uint};
use super::{PerfettoTrace, human};
use crate::error::Result;
use crate::event::{NO_ID, Op, WaitKind};
use crate::names::{NameId, Names};
use crate::rows::derived::{KnownCall, RequestPlace, Written, column, derive_call, derive_request, tid_of_track};
use crate::rows::{
    Call, Confidence, Missing, Phase, PhaseKind, PhaseSpan, Request, Value, WaitInterval, WriteWait, columns, values,
};
use crate::sink::{Group, GroupRequest};
use crate::trace_layout::fields::event;
use crate::trace_layout::{Category, flow_of_commit};

/// One bit for each column that the slice of a whole wait says.
const WAIT_TIMES: u64 = 1 << column::<WaitInterval>("ts_ns") | 1 << column::<WaitInterval>("dur_ns");
/// The bit of the column that only the later requests of a call say.
const CALL_SYNC_ID: u64 = 1 << column::<Request>("call_sync_id");
/// The bit of the column that only inferred waits say.
const WAIT_CONFIDENCE: u64 = 1 << column::<WaitInterval>("confidence");

/// A request has arrows to so many bios. If it has more, they lead to the first, the last and the slowest.
const MAX_ARROWS: usize = 8;
/// The first requests say more than the trace needs, for people, and later those that take at least twice the average so far: in all
/// requests, that would be a fifth of a trace.
const ALWAYS_SHOWN: u64 = 1000;

/// Columns of such a request that are written although they can be derived.
const SHOWN: [usize; 4] = [
    column::<Request>("bytes"),
    column::<Request>("bios"),
    column::<Request>("syscall_ns"),
    column::<Request>("stack"),
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
        let process = group.call.map(|c| c.process.name).or_else(|| group.requests.first().map(|r| r.request.process));
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
        // As `report threads` adds it up: a sync ends with its last request, and a call without one counts as a whole.
        let ended = group.requests.iter().filter_map(|r| Some((r.request.ts(), r.request.ts() + r.request.dur()?)));
        let from = ended.clone().map(|(start, _)| start).min();
        let (from, until) = from
            .zip(ended.map(|(_, end)| end).max())
            .or_else(|| call.map(|(c, end)| (c.enter, end)))
            .unwrap_or_default();
        let waited = until - from;
        self.note_slow(group, task, (from, waited), names);
        let fits_call =
            |start, end| call.is_none_or(|(c, call_end)| start >= c.enter && (end <= call_end || start >= call_end));
        let mut reached = i64::MIN;
        let nests = spans.clone().all(|(start, end)| {
            let follows = start >= reached;
            reached = end;
            follows && fits_call(start, end)
        });
        let result = self.group_on_tracks(group, task, call, paired.is_some(), nests, names);
        // Its track is known now.
        self.add_waited((task.0, task.1), waited);
        result
    }

    /// `call`: with the end of its slice.
    fn group_on_tracks(
        &mut self,
        group: &Group<'_>,
        task: (u32, u32, NameId),
        call: Option<(&Call, i64)>,
        is_paired: bool,
        nests: bool,
        names: &Names,
    ) -> Result<()> {
        let spans = group.requests.iter().map(|r| extent(r.request));
        if !nests {
            // The times run backwards, or the call may not belong to these requests: each slice goes on a free track.
            let mut known_call = None;
            if let Some((call, end)) = call {
                let track = self.task_lane(task, call.enter, end, names)?;
                known_call = self.begin_call(call, track, task.0, is_paired, names)?;
                self.end(end, track, &[])?;
            }
            for r in group.requests {
                let (start, end) = extent(r.request);
                let track = self.task_lane(task, start, end, names)?;
                self.request_slice(r, track, task.0, known_call, None, names)?;
            }
            return Ok(());
        }
        if let (Some((call, end)), [r]) = (call, group.requests)
            && is_call_alone(call, r.request, end)
        {
            let track = self.task_lane(task, call.enter, end, names)?;
            return self.request_slice(r, track, task.0, None, Some(call), names);
        }
        let start = call.map(|(c, _)| c.enter).into_iter().chain(spans.clone().map(|(start, _)| start)).min();
        let end = call.map(|(_, end)| end).into_iter().chain(spans.map(|(_, end)| end)).max();
        let track = self.task_lane(task, start.unwrap_or_default(), end.unwrap_or_default(), names)?;
        let (mut open_call, mut known_call) = (None, None);
        if let Some((call, end)) = call {
            known_call = self.begin_call(call, track, task.0, is_paired, names)?;
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
            self.request_slice(r, track, task.0, known_call, None, names)?;
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

    /// Writes the slice of a request. `alone` is its call if the slice stands for that too.
    fn request_slice(
        &mut self,
        r: &GroupRequest<'_>,
        track: u64,
        tid: u32,
        known_call: Option<KnownCall>,
        alone: Option<&Call>,
        names: &Names,
    ) -> Result<()> {
        let request = r.request;
        let (start, end) = extent(request);
        let counter = self.syncs_in_flight()?;
        let (name, file_colour) = self.request_name(request, names);
        // The UI draws an arrow from the end of a slice. So the arrows to its bios begin at the end of this phase, and the request has one to
        // the phase: a click on either shows them all.
        let first_submit =
            |span: &PhaseSpan| span.phase == PhaseKind::BeforeSubmit && Some(span.end) == request.first_submit;
        let before_submit = request.phases.iter().position(first_submit);
        let values: [Value; columns::SYNC.len()] = values(request);
        let known_call = known_call.filter(|call| call.sync_id == request.sync_id);
        let (bios, arrows) = self.bio_sums.remove(&request.sync_id).unzip();
        let place = RequestPlace { slice: (start, end), tid: tid_of_track(tid), call: known_call, bios };
        let mut written = Written::new(&values);
        derive_request(&mut written, &self.known, &place);
        // A person who clicks on the slice sees its arguments only.
        let is_shown = self.is_shown(request);
        for column in SHOWN.into_iter().filter(|_| is_shown) {
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
        let is_counted = (request.start.is_some() || request.call_only) && !request.is_report;
        let arrows = arrows.filter(|_| r.bio_ids.len() > MAX_ARROWS).map(|arrows| arrows.bio_ids().collect::<Vec<_>>());
        let arrows = arrows.as_deref().unwrap_or(r.bio_ids);
        let amount = if is_shown { self.amount(request) } else { None };
        let time = if is_shown { time_in_words(request) } else { None };
        self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::Sync, name);
            if request.failure().is_some() {
                colour(b, true);
            } else if file_colour != 0 {
                uint(b, event::CORRELATION_ID_STR_IID, file_colour);
            }
            flows(b, &arrows[..if before_submit.is_some() { arrows.len().min(1) } else { arrows.len() }]);
            if is_counted {
                counters(b, &[(counter, u64::from(request.in_flight.0))]);
            }
            if let Some(amount) = amount {
                string_value(b, ids.amount, amount);
            }
            if let Some(time) = time {
                text_value(b, ids.time, &time);
            }
            let columns = if says_start { ids.sync.with(const { column::<Request>("start_ns") }) } else { ids.sync };
            let is_first = request.call_sync_id == request.sync_id;
            let columns = if is_first { columns.without(CALL_SYNC_ID) } else { columns };
            row_values(b, &values, left_out, columns, (interner, ids, names));
            if let Some(call) = alone {
                value(
                    b,
                    ids.call.iid(const { column::<Call>("call_id") }),
                    Value::Int(call.call_id as i64),
                    interner,
                    names,
                );
            } else if let Some(ts) = call_ts.filter(|_| left_out.is_none() || known_call.is_none()) {
                value(b, ids.call_ts, Value::Int(ts), interner, names);
            }
        })?;
        self.phase_slices(request, before_submit, arrows, (start, end), track, names)?;
        let mut in_flight = [(counter, u64::from(request.in_flight.1)), (0, 0), (0, 0)];
        let device = request.device_at_end.and_then(|(dev, ..)| self.devices.place_of(dev));
        let Some((device, (_, bios, bytes))) = device.zip(request.device_at_end).filter(|_| is_counted) else {
            return self.end(end, track, if is_counted { &in_flight[..1] } else { &[] });
        };
        let [bios_track, bytes_track] = self.devices[device].counter_tracks;
        (in_flight[1], in_flight[2]) = ((bios_track, u64::from(bios)), (bytes_track, bytes));
        self.end(end, track, &in_flight)
    }

    /// Returns the iid of what a request wrote, for people: `20.8 MiB in 158 bios`.
    fn amount(&mut self, request: &Request) -> Option<u64> {
        let bytes = request.bytes()?;
        let Self { event_names, interner, .. } = self;
        Some(*event_names.amounts.entry((bytes, request.bios)).or_insert_with(|| {
            interner.text(&match request.bios {
                0 => "no bio".to_owned(),
                1 => format!("{} in 1 bio", human::size(bytes)),
                bios => format!("{} in {bios} bios", human::size(bytes)),
            })
        }))
    }

    /// Whether a request says more than the trace needs.
    fn is_shown(&mut self, request: &Request) -> bool {
        let dur = request.dur().unwrap_or_default();
        let (count, sum) = &mut self.written;
        let is_shown = *count < ALWAYS_SHOWN || i128::from(dur) * i128::from(*count) >= 2 * i128::from(*sum);
        (*count, *sum) = (*count + 1, sum.saturating_add(dur));
        is_shown
    }

    /// Writes the phases and the waits of a request. A wait is the slice around its phases; where it is the phase itself, nothing is inside.
    /// The residue is what neither covers, and inside of waits it has slices of its own. The slice of the phase `before_submit` has arrows
    /// to bios.
    fn phase_slices(
        &mut self,
        request: &Request,
        before_submit: Option<usize>,
        arrows: &[u64],
        extent: (i64, i64),
        track: u64,
        names: &Names,
    ) -> Result<()> {
        let mut waits = Waits { later: &request.waits, open: Vec::new(), extent, shown_until: i64::MIN };
        let mut residue = residue_of_waits(request).into_iter().peekable();
        for (index, span) in request.phases.iter().enumerate() {
            while let Some(piece) = residue.next_if(|piece| piece.start < span.start) {
                self.phase_slice(&mut waits, &piece, &[], track, names)?;
            }
            let arrows = if before_submit == Some(index) { arrows } else { &[] };
            self.phase_slice(&mut waits, span, arrows, track, names)?;
        }
        for piece in residue {
            self.phase_slice(&mut waits, &piece, &[], track, names)?;
        }
        self.begin_waits(&mut waits, i64::MAX, track, names)
    }

    fn phase_slice(
        &mut self,
        waits: &mut Waits<'_>,
        span: &PhaseSpan,
        arrows: &[u64],
        track: u64,
        names: &Names,
    ) -> Result<()> {
        self.begin_waits(waits, span.start, track, names)?;
        if waits.show(span) {
            return Ok(());
        }
        let columns = match self.names.phase {
            _ if !span.cpu.is_known() => Columns::default(),
            Some(columns) => columns,
            None => *self.names.phase.insert(Columns::of::<Phase>(&mut self.interner, &["sync_id", "number", "phase"])),
        };
        self.event(span.start, track, event::SLICE_BEGIN, |b, interner, _| {
            coloured_head(b, Category::Phase, span.phase.name(), interner);
            flows(b, arrows);
            if span.cpu.is_known() {
                row(b, &Phase::of(0, 0, span), columns, interner, names);
            }
        })?;
        self.end(span.end, track, &[])
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
            let times = if (start, end) == (wait.start, wait.end) { WAIT_TIMES } else { 0 };
            let is_exact = wait.confidence == Confidence::Exact;
            let left_out = times | if is_exact { WAIT_CONFIDENCE } else { 0 };
            self.event(start, track, event::SLICE_BEGIN, |b, interner, ids| {
                coloured_head(b, Category::Wait, wait.wait.name(), interner);
                // The slice of the commit has no flow to a wait that was not known at its end.
                if let Some(commit_id) = wait.commit_id.filter(|_| is_exact) {
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

    /// Writes a wait of a thread that writes, on its track.
    pub(super) fn write_wait_slice(&mut self, wait: &WriteWait, names: &Names) -> Result<()> {
        let track = self.task_lane((wait.tid, wait.pid, wait.comm), wait.start, wait.end, names)?;
        self.event(wait.start, track, event::SLICE_BEGIN, |b, interner, ids| {
            head(b, Category::WriteWait, interner.static_event_name(wait.slice_name()));
            row(b, wait, ids.write_wait, interner, names);
        })?;
        self.end(wait.end, track, &[])
    }

    /// Returns the iids of its name and of its colour; 0 if the UI makes a colour of the name.
    fn request_name(&mut self, request: &Request, names: &Names) -> (u64, u64) {
        let missing = request.missing().filter(|m| *m != Missing::Bio);
        let ino = if request.path.is_some() { 0 } else { request.ino };
        let key = (request.fs, call_only(request), request.path, ino, missing.map(|m| m as u8), request.failure());
        let Self { event_names, interner, .. } = self;
        *event_names.requests.entry(key).or_insert_with(|| {
            let name = interner.event_name(&format_request_name(request, missing, names));
            let path = names.text(request.path);
            let file = file_of(&path);
            // The UI leaves digits out, so files that have no letters would look alike.
            let is_number = !file.is_empty() && !file.contains(char::is_alphabetic);
            (name, if is_number { interner.colour(file) } else { 0 })
        })
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

/// Returns the residue inside of waits, in pieces that no wait begins or ends in.
fn residue_of_waits(request: &Request) -> Vec<PhaseSpan> {
    let (false, Some((start, end))) = (request.waits.is_empty(), request.phase_bounds()) else { return Vec::new() };
    // What waits cover, and how many of them, from each border to the next.
    let mut borders: Vec<(i64, i32)> =
        request.waits.iter().flat_map(|wait| [(wait.start, 1), (wait.end, -1)]).collect();
    borders.sort_unstable();
    let (mut pieces, mut reached, mut next, mut open) = (Vec::new(), start, 0, 0);
    for (from, to) in request.phases.iter().map(|span| (span.start, span.end)).chain([(end, end)]) {
        loop {
            while let Some((_, change)) = borders.get(next).filter(|(border, _)| *border <= reached) {
                (open, next) = (open + change, next + 1);
            }
            let until = borders.get(next).map_or(from, |&(border, _)| border.min(from));
            if until <= reached {
                break;
            }
            if open > 0 {
                pieces.push(PhaseSpan::new(PhaseKind::Residue, reached, until));
            }
            reached = until;
        }
        reached = to.max(reached);
    }
    pieces
}

/// Returns start and end of the slice of a request.
fn extent(request: &Request) -> (i64, i64) {
    let start = request.start.unwrap_or(request.first_event);
    (start, request.end.unwrap_or(request.last_event).max(start))
}

/// Returns where the time of a request went, for people: `1.0 ms before, 97.0 ms data, 22.2 ms after`.
fn time_in_words(request: &Request) -> Option<Vec<u8>> {
    let (before, after) = request.before_submit().zip(request.after_complete())?;
    let data = request.writeback()?;
    let mut text = Vec::with_capacity(64);
    for (ns, of) in [(before, " before, "), (data, " data, "), (after, " after")] {
        human::push_ms(&mut text, ns);
        text.extend_from_slice(of.as_bytes());
    }
    Some(text)
}

/// Whether the slice of a request says all of its call, which was all that was recorded. `end` is that of the call's slice.
fn is_call_alone(call: &Call, request: &Request, end: i64) -> bool {
    let Some(of) = request.call.filter(|_| request.call_only) else { return false };
    call.sync_id == Some(request.sync_id)
        && extent(request) == (call.enter, end)
        && call.dur().is_some()
        && call.dur() == request.syscall()
        && (call.op, call.enter, call.stack) == (of.op, of.enter, of.stack)
        && (call.tid, call.pid, call.comm, call.ret) == (request.tid, request.pid, request.comm, request.ret)
        && request.missing().is_none()
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
        format!("{} ({function})", file_of(&path))
    } else if request.ino != 0 {
        format!("inode {} ({function})", request.ino)
    } else {
        function
    };
    let missing = match missing {
        Some(Missing::Start) => ", start not recorded",
        Some(Missing::End) => ", end not recorded",
        Some(Missing::Call) => ", call not recorded",
        Some(Missing::Bio) | None => "",
    };
    name + missing + &failed(request.failure())
}
