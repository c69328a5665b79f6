//! Makes rows of slices. A slice becomes a row when it ends, because only then are its values complete.

use super::interned::{Content, Single, Table, Track};
use super::rebuild::at;
use super::{Reader, Stop, predicted_write, rebuild};
use crate::event::WaitKind;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::losses::Reason;
use crate::names::NameId;
use crate::rows::derived::{
    Common, CommonRequest, KnownCall, KnownProcess, ReadRow, RequestPlace, Thread, column, derive_bio, derive_call,
    derive_request, visit_names,
};
use crate::rows::file_op::FileOp;
use crate::rows::{
    Bio, Call, CallOf, Commit, CommitKind, Confidence, CpuUser, Phase, PhaseKind, PhaseSpan, Process, Request, Value,
    WaitInterval, WriteWait, columns, direction_of,
};
use crate::sink::{Group, GroupRequest, Mark, PredictedWrite};
use crate::trace_layout::fields::{annotation, event};
use crate::trace_layout::wire::Fields;
use crate::trace_layout::{Category, whole_address};

/// Values of counters right after an event. A bio has the bios and the bytes in flight on its device, while a request has the requests in flight
/// and, if bios were in flight until its end, those of its device.
pub(super) type Counters = [Option<u64>; 3];

/// The begin of a slice, or an instant.
pub(super) struct Event<'a> {
    pub(super) ts: i64,
    pub(super) track: u64,
    pub(super) category: Category,
    pub(super) name: u64,
    pub(super) is_instant: bool,
    /// Flows of a commit.
    pub(super) flows: Vec<u64>,
    pub(super) counters: Counters,
    /// Its arguments: the `TrackEvent` from the first of them on.
    pub(super) data: &'a [u8],
}

/// The arguments of a slice that are not columns of its table.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(super) struct Singles {
    call_ts: Option<i64>,
    mark_id: Option<i64>,
    is_open: bool,
    is_full: bool,
    is_request: bool,
    origin_unknown: bool,
    call_id: Option<i64>,
    track: Option<i64>,
}

/// A slice that has not ended.
pub(super) enum Open {
    Call(Box<OpenCall>),
    Request(Box<OpenRequest>),
    Wait(Box<OpenWait>),
    Bio(Box<OpenBio>),
    Commit {
        values: Box<[Value; columns::JOURNAL.len()]>,
        ts: i64,
        flows: Vec<u64>,
    },
    /// A step of a commit. It keeps no values, because the columns of the commit have them.
    CommitStep,
    WriteWait {
        values: Box<[Value; columns::WRITE_WAIT.len()]>,
        ts: i64,
    },
    FileOp {
        values: Box<[Value; columns::FILE_OP.len()]>,
        ts: i64,
        is_open: bool,
    },
    Mark {
        mark_id: i64,
        mark: Mark,
    },
    PredictedWrite(Box<PredictedWrite>),
    /// It keeps no values, because they follow from the predicted writes.
    PageCacheState,
    /// It keeps no values, because the slice on the track of the thread has them.
    Slowest,
    Phase {
        phase: PhaseKind,
        ts: i64,
        cpu: CpuUser,
    },
}

pub(super) struct OpenCall {
    values: [Value; columns::CALL.len()],
    ts: i64,
    singles: Singles,
    /// The requests inside, which wait here because their values depend on the end of the call.
    requests: Vec<EndedRequest>,
}

pub(super) struct OpenWait {
    values: [Value; columns::WAIT.len()],
    wait: WaitKind,
    ts: i64,
    /// Up to here, its phases are known: from slices inside of it, or because the time between two of them is the phase of the wait itself.
    reached: i64,
}

pub(super) struct OpenBio {
    values: [Value; columns::BIO.len()],
    ts: i64,
    /// The file of its request, from the name of the slice.
    file: NameId,
    singles: Singles,
    at_submit: Counters,
}

pub(super) struct OpenRequest {
    values: [Value; columns::SYNC.len()],
    ts: i64,
    singles: Singles,
    waits: Vec<WaitInterval>,
    phases: Vec<PhaseSpan>,
    /// A wait is inside of a phase, as in some traces that hold all values.
    is_of_other_layout: bool,
    at_start: Counters,
}

impl OpenRequest {
    fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        visit_names(&self.values, f);
        self.phases.iter().for_each(|phase| phase.cpu.visit_names(f));
    }
}

struct EndedRequest {
    request: Box<OpenRequest>,
    end: i64,
    at_end: Counters,
    tid: Value,
}

impl Open {
    /// Visits the names of the slice, and those of the slices in it that have ended.
    pub(super) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        match self {
            Self::Call(call) => {
                visit_names(&call.values, f);
                call.requests.iter().for_each(|ended| ended.request.visit_names(f));
            }
            Self::Request(request) => request.visit_names(f),
            Self::Wait(wait) => visit_names(&wait.values, f),
            Self::Bio(bio) => {
                visit_names(&bio.values, f);
                f(bio.file);
            }
            Self::Commit { values, .. } | Self::FileOp { values, .. } => visit_names(&**values, f),
            Self::WriteWait { values, .. } => visit_names(&**values, f),
            Self::Phase { cpu, .. } => cpu.visit_names(f),
            Self::Mark { .. } | Self::PredictedWrite(_) | Self::PageCacheState | Self::Slowest | Self::CommitStep => {}
        }
    }
}

/// Which way the data of a bio go, by its other columns.
fn bio_direction(values: &[Value; columns::BIO.len()]) -> Direction {
    let flags = match values[at!(Bio, "rwbs")] {
        Value::Word(rwbs) => BioFlags::of_word(rwbs),
        _ => None,
    };
    let number = |column: usize| match values[column] {
        Value::Int(number) => number as u64,
        _ => 0,
    };
    let said = said_direction(values).filter(|_| flags.is_none());
    said.unwrap_or_else(|| direction_of(flags, number(at!(Bio, "folios")), number(at!(Bio, "bytes"))))
}

/// The direction of a bio whose recorder prints no flags.
fn said_direction(values: &[Value; columns::BIO.len()]) -> Option<Direction> {
    rebuild::direction(values[at!(Bio, "direction")])
}

/// Returns a number of bios or of requests.
fn number(counter: Option<u64>) -> u32 {
    counter.map_or(0, |value| u32::try_from(value).unwrap_or(u32::MAX))
}

/// A request, with its call if both are one slice.
struct RequestRead {
    call: Option<Call>,
    request: Request,
    bio_ids: Vec<u64>,
}

impl Reader<'_> {
    pub(super) fn begin_slice(&mut self, begin: &Event<'_>) -> Result<(), Stop> {
        let &Event { ts, track, category, name, is_instant, data, .. } = begin;
        if matches!(category, Category::CommitStep | Category::PageCacheState | Category::Slowest) {
            // Their values follow from other slices, but traces that hold all values have them as arguments too.
            only_arguments(data)?;
        }
        let open = match category {
            Category::Call => {
                let values = [Value::Null; columns::CALL.len()];
                let mut call = Box::new(OpenCall { values, ts, singles: Singles::default(), requests: Vec::new() });
                call.singles = self.arguments_into::<Call>(data, &mut call.values)?;
                // The name of a call's slice is its op.
                let op = self.interned.event_word(name)?;
                call.values[at!(Call, "op")] = Value::Word(op);
                Open::Call(call)
            }
            Category::Sync => {
                let mut request = Box::new(OpenRequest {
                    values: [Value::Null; columns::SYNC.len()],
                    ts,
                    singles: Singles::default(),
                    waits: Vec::new(),
                    phases: Vec::new(),
                    is_of_other_layout: false,
                    at_start: begin.counters,
                });
                request.singles = self.arguments_into::<Request>(data, &mut request.values)?;
                Open::Request(request)
            }
            Category::Wait => {
                let (mut values, _) = self.arguments::<WaitInterval, _>(data)?;
                let PhaseKind::Wait(wait) = self.interned.phase(name)? else { return Err(Stop::FOREIGN) };
                values[at!(WaitInterval, "wait")] = Value::Word(wait.name());
                self.tracks.get(track)?.end_phase_of_wait(ts, self.derives)?;
                Open::Wait(Box::new(OpenWait { values, wait, ts, reached: ts }))
            }
            Category::Bio => {
                let values = [Value::Null; columns::BIO.len()];
                let (file, singles, at_submit) = (NameId::NONE, Singles::default(), begin.counters);
                let mut bio = Box::new(OpenBio { values, ts, file, singles, at_submit });
                bio.singles = self.arguments_into::<Bio>(data, &mut bio.values)?;
                if bio.values[at!(Bio, "sync_id")] != Value::Null {
                    let words = match (bio_direction(&bio.values), bio.values[at!(Bio, "bytes")]) {
                        (Direction::Flush, _) => 1,
                        (_, Value::Null) => 0,
                        _ => 2,
                    };
                    bio.file = self.interned.file_of_bio(name, words, self.names)?;
                }
                Open::Bio(bio)
            }
            Category::Commit => {
                let flows = begin.flows.clone();
                Open::Commit { values: Box::new(self.arguments::<Commit, _>(data)?.0), ts, flows }
            }
            Category::CommitStep => Open::CommitStep,
            Category::WriteWait => Open::WriteWait { values: Box::new(self.arguments::<WriteWait, _>(data)?.0), ts },
            Category::FileOp => {
                let (values, singles) = self.arguments::<FileOp, _>(data)?;
                Open::FileOp { values: Box::new(values), ts, is_open: singles.is_open }
            }
            Category::Mark => {
                let mark_id = self.arguments::<Call, { columns::CALL.len() }>(data)?.1.mark_id.ok_or(Stop::DAMAGED)?;
                let name = self.interned.event_name(name)?.to_owned();
                Open::Mark { mark_id, mark: Mark { name, ts, dur: None } }
            }
            Category::PredictedWrite => Open::PredictedWrite(Box::new(predicted_write::read(ts, data)?)),
            Category::PageCacheState => Open::PageCacheState,
            Category::Slowest => Open::Slowest,
            Category::Phase => {
                let phase = self.interned.phase(name)?;
                self.tracks.get(track)?.end_phase_of_wait(ts, self.derives)?;
                let (values, _) = self.arguments::<Phase, { columns::PHASE.len() }>(data)?;
                let cpu = rebuild::cpu_user(&values).ok_or(NOT_REBUILT)?;
                Open::Phase { phase, ts, cpu }
            }
            Category::Track if is_instant => return self.thread_track(data),
            Category::Loss if is_instant => return self.loss(ts, name, data),
            Category::Meta if is_instant => return self.meta((ts, track), name, data),
            Category::Common if is_instant => return self.common(name, data),
            Category::Thread if is_instant => return self.thread(data),
            Category::Process if is_instant => return self.process(data),
            _ => return Err(Stop::FOREIGN),
        };
        match open {
            Open::Bio(_) if is_instant => self.end(open, ts, track, &Counters::default()),
            _ if is_instant => Err(Stop::FOREIGN),
            open => {
                self.tracks.get(track)?.open.push(open);
                Ok(())
            }
        }
    }

    fn loss(&mut self, ts: i64, name: u64, data: &[u8]) -> Result<(), Stop> {
        let name = self.interned.event_name(name)?;
        let reason = Reason::ALL.iter().copied().find(|reason| reason.name() == name).ok_or(Stop::FOREIGN)?;
        let mut text = "";
        for field in Fields(data) {
            let (event::DEBUG_ANNOTATIONS, value) = field? else { return Err(Stop::FOREIGN) };
            for part in Fields(value.bytes()?) {
                if let (annotation::STRING_VALUE, value) = part? {
                    text = value.text()?;
                }
            }
        }
        Ok(self.sink.loss(reason, ts, text)?)
    }

    pub(super) fn end_slice(&mut self, ts: i64, track: u64, counters: &Counters) -> Result<(), Stop> {
        let open = self.tracks.get(track)?.open.pop().ok_or(Stop::DAMAGED)?;
        self.end(open, ts, track, counters)
    }

    fn end(&mut self, open: Open, end: i64, track: u64, counters: &Counters) -> Result<(), Stop> {
        match open {
            Open::Call(call) => self.end_call(call, end, track),
            Open::Request(request) => self.end_request(request, end, track, counters),
            Open::Wait(wait) => self.end_wait(&wait, end, track),
            Open::Bio(mut bio) => self.end_bio(&mut bio, end, track, counters),
            Open::CommitStep | Open::PageCacheState | Open::Slowest => Ok(()),
            Open::PredictedWrite(mut write) => {
                write.dur = duration(write.ts, end)?;
                self.predicted_writes.push(*write);
                Ok(())
            }
            Open::Commit { mut values, ts, flows } => {
                values[at!(Commit, "ts_ns")] = Value::Int(ts);
                if values[at!(Commit, "incomplete")] == Value::Null {
                    values[at!(Commit, "dur_ns")] = Value::Int(duration(ts, end)?);
                }
                // Writers that did not name the kind wrote full commits only.
                let kind = &mut values[at!(Commit, "kind")];
                if *kind == Value::Null {
                    *kind = Value::Word(CommitKind::Full.name());
                }
                let commit = rebuild::commit(&values, ts, &flows).ok_or(NOT_REBUILT)?;
                Ok(self.sink.commit(&commit, self.names)?)
            }
            Open::WriteWait { mut values, ts } => {
                values[at!(WriteWait, "ts_ns")] = Value::Int(ts);
                values[at!(WriteWait, "dur_ns")] = Value::Int(duration(ts, end)?);
                let wait = rebuild::write_wait(&values, (ts, end)).ok_or(NOT_REBUILT)?;
                Ok(self.sink.write_wait(&wait, self.names)?)
            }
            Open::FileOp { mut values, ts, is_open } => {
                values[at!(FileOp, "ts_ns")] = Value::Int(ts);
                if !is_open {
                    values[at!(FileOp, "dur_ns")] = Value::Int(duration(ts, end)?);
                }
                let op = rebuild::file_op(&values, ts).ok_or(NOT_REBUILT)?;
                Ok(self.sink.file_op(&op, self.names)?)
            }
            Open::Mark { mark_id, mut mark } => {
                mark.dur = Some(duration(mark.ts, end)?);
                self.marks.push((mark_id, mark));
                Ok(())
            }
            Open::Phase { phase, ts, cpu } => {
                duration(ts, end)?;
                self.tracks.get(track)?.add_phase(PhaseSpan { cpu, ..PhaseSpan::new(phase, ts, end) })
            }
        }
    }

    fn end_call(&mut self, mut open: Box<OpenCall>, end: i64, track: u64) -> Result<(), Stop> {
        let OpenCall { values, ts, singles, requests } = &mut *open;
        let ts = *ts;
        let tid = self.tracks.get(track)?.tid;
        let dur = if singles.is_open { None } else { Some(duration(ts, end)?) };
        values[at!(Call, "ts_ns")] = Value::Int(ts);
        values[at!(Call, "dur_ns")] = Value::int(dur);
        let derives = self.derives && !singles.is_full;
        if derives {
            derive_call(&mut ReadRow(values), &self.known, tid);
        }
        values[at!(Call, "unmatched")] = Value::Bool(values[at!(Call, "sync_id")] == Value::Null);
        let call = rebuild::call(values, ts).ok_or(NOT_REBUILT)?;
        let stack = values[at!(Call, "stack")];
        self.last_call =
            call.sync_id.filter(|_| derives).map(|sync_id| KnownCall { sync_id, op: call.op.name(), ts, dur, stack });
        let requests: Vec<_> =
            std::mem::take(requests).into_iter().map(|ended| self.request(ended)).collect::<Result<_, _>>()?;
        // A request that is its own call has a group of its own.
        let (own_calls, requests): (Vec<_>, Vec<_>) = requests.into_iter().partition(|ended| ended.call.is_some());
        self.group(Some(&call), &requests)?;
        own_calls.iter().try_for_each(|one| self.group(one.call.as_ref(), std::slice::from_ref(one)))
    }

    fn group(&mut self, call: Option<&Call>, requests: &[RequestRead]) -> Result<(), Stop> {
        let requests: Vec<_> =
            requests.iter().map(|read| GroupRequest { request: &read.request, bio_ids: &read.bio_ids }).collect();
        Ok(self.sink.group(&Group { call, requests: &requests }, self.names)?)
    }

    fn end_request(
        &mut self,
        request: Box<OpenRequest>,
        end: i64,
        track: u64,
        counters: &Counters,
    ) -> Result<(), Stop> {
        let track = self.tracks.get(track)?;
        let ended = EndedRequest { request, end, at_end: *counters, tid: track.tid };
        match track.open.last_mut() {
            Some(Open::Call(call)) => {
                call.requests.push(ended);
                Ok(())
            }
            Some(_) => Err(Stop::FOREIGN),
            None => {
                let read = self.request(ended)?;
                self.group(read.call.as_ref(), std::slice::from_ref(&read))
            }
        }
    }

    fn request(&mut self, ended: EndedRequest) -> Result<RequestRead, Stop> {
        let EndedRequest { mut request, end, at_end, tid } = ended;
        let OpenRequest { values, ts, singles, waits, phases, is_of_other_layout, at_start } = &mut *request;
        let (ts, mut waits, phases) = (*ts, std::mem::take(waits), std::mem::take(phases));
        let Value::Int(sync_id) = values[at!(Request, "sync_id")] else { return Err(Stop::DAMAGED) };
        let call_sync_id = &mut values[at!(Request, "call_sync_id")];
        if *call_sync_id == Value::Null {
            *call_sync_id = Value::Int(sync_id);
        }
        let bios = self.bio_sums.remove(&(sync_id as u64));
        let call = self.last_call.filter(|call| call.sync_id == sync_id as u64);
        let derives = self.derives && !singles.is_full;
        if derives {
            let place = RequestPlace { slice: (ts, end), tid, call, bios };
            derive_request(&mut ReadRow(values), &self.known, &place);
        }
        let own_ts = singles.call_id.map(|_| ts);
        let call_ts = singles.call_ts.or(own_ts).or(call.filter(|_| derives).map(|call| call.ts));
        set_times(values, (ts, end), call_ts)?;
        waits.sort_by_key(|wait| wait.number);
        let phases = if *is_of_other_layout { Vec::new() } else { phases };
        let mut request = rebuild::request(values, (ts, end), call_ts, (waits, phases)).ok_or(NOT_REBUILT)?;
        let call = match singles.call_id {
            Some(call_id) => {
                let of = request.call.ok_or(Stop::DAMAGED)?;
                Some(Call { call_id: call_id as u64, ..call_of(&request, &of) })
            }
            None => None,
        };
        self.run.requests += 1;
        let (bio_ids, dev) = self.bio_ids.remove(&(sync_id as u64)).unzip();
        let mut bio_ids: Vec<u64> = bio_ids.unwrap_or_default();
        bio_ids.sort_unstable();
        request.in_flight = (number(at_start[0]), number(at_end[0]));
        request.device_at_end =
            dev.zip(at_end[1]).zip(at_end[2]).map(|((dev, bios), bytes)| (dev, number(Some(bios)), bytes));
        Ok(RequestRead { call, request, bio_ids })
    }

    /// Adds a wait to its request. A wait may have several slices.
    fn end_wait(&mut self, open: &OpenWait, end: i64, track: u64) -> Result<(), Stop> {
        let &OpenWait { mut values, wait: kind, ts, reached } = open;
        let times = [(at!(WaitInterval, "ts_ns"), ts), (at!(WaitInterval, "dur_ns"), duration(ts, end)?)];
        for (column, time) in times {
            if values[column] == Value::Null {
                values[column] = Value::Int(time);
            }
        }
        let confidence = &mut values[at!(WaitInterval, "confidence")];
        if *confidence == Value::Null {
            *confidence = Value::Word(Confidence::Exact.name());
        }
        let wait = rebuild::wait(&values).ok_or(NOT_REBUILT)?;
        let track = self.tracks.get(track)?;
        let is_in_phase = matches!(track.open.last(), Some(Open::Phase { .. })) && ts < end;
        track.add_phase(PhaseSpan::new(PhaseKind::Wait(kind), reached, end))?;
        let request = track.open_request()?;
        request.is_of_other_layout |= is_in_phase;
        if request.values[at!(Request, "sync_id")] != Value::Int(wait.sync_id as i64) {
            return Err(Stop::DAMAGED);
        }
        match request.waits.iter().find(|known| known.number == wait.number) {
            None => request.waits.push(wait),
            Some(known) if *known == wait => {}
            Some(_) => return Err(Stop::DAMAGED),
        }
        Ok(())
    }

    fn end_bio(&mut self, open: &mut OpenBio, end: i64, track: u64, counters: &Counters) -> Result<(), Stop> {
        let &mut OpenBio { ref mut values, ts, file, singles, at_submit } = open;
        let dev = self.tracks.get(track)?.dev;
        values[at!(Bio, "ts_ns")] = Value::Int(ts);
        if values[at!(Bio, "incomplete")] == Value::Null {
            values[at!(Bio, "dur_ns")] = Value::Int(duration(ts, end)?);
        }
        if self.derives && !singles.is_full {
            derive_bio(&mut ReadRow(values), &self.known, dev);
        } else if values[at!(Bio, "dev")] == Value::Null {
            values[at!(Bio, "dev")] = dev;
        }
        let has_owner = values[at!(Bio, "sync_id")] != Value::Null;
        let confidence = &mut values[at!(Bio, "confidence")];
        if has_owner && *confidence == Value::Null {
            *confidence = Value::Word(Confidence::Exact.name());
        }
        let direction = bio_direction(values);
        values[at!(Bio, "direction")] = Value::Word(direction.name());
        values[at!(Bio, "is_request")] = Value::Bool(singles.is_request);
        values[at!(Bio, "origin")] = match has_owner {
            true => Value::Word("sync"),
            false if singles.is_request || singles.origin_unknown || !direction.is_writeback() => Value::Null,
            false => Value::Word("background"),
        };
        let mut bio = rebuild::bio(values, ts, (singles.is_request, singles.origin_unknown)).ok_or(NOT_REBUILT)?;
        // Where the number of those in flight is not known, the slice has no values of counters.
        bio.is_report = singles.is_request && bio.submit.is_some() && at_submit[0].is_none();
        bio.request_file.0 = file;
        bio.in_flight_at_submit = (number(at_submit[0]), at_submit[1].unwrap_or_default());
        bio.in_flight_at_complete = (number(counters[0]), counters[1].unwrap_or_default());
        if let Some(sync_id) = bio.sync_id {
            self.bio_sums.entry(sync_id).or_default().add(values);
            let (ids, dev) = self.bio_ids.entry(sync_id).or_insert((Vec::new(), bio.dev));
            ids.push(bio.bio_id);
            *dev = bio.dev;
        }
        Ok(self.sink.bio(&bio, self.names)?)
    }

    /// Takes values that most rows have.
    fn common(&mut self, name: u64, data: &[u8]) -> Result<(), Stop> {
        let of_request = || self.arguments::<Request, { columns::SYNC.len() }>(data);
        match self.interned.event_name(name)? {
            "rows" => self.derives = true,
            "request" => {
                let (sync, _) = of_request()?;
                self.known.request = Common::Is(CommonRequest {
                    dev: sync[at!(Request, "dev")],
                    fs: sync[at!(Request, "fs")],
                    ret: sync[at!(Request, "ret")],
                    journal: sync[at!(Request, "journal_ns")],
                    flush: sync[at!(Request, "flush_ns")],
                });
            }
            "id" => self.known.id_offset = Common::Is(int(of_request()?.0[at!(Request, "id")])?),
            "call" => {
                let (call, _) = self.arguments::<Call, { columns::CALL.len() }>(data)?;
                self.known.call = Common::Is(int(call[at!(Call, "ret")])?);
            }
            "bio" => {
                let (bio, _) = self.arguments::<Bio, { columns::BIO.len() }>(data)?;
                self.known.bio = Common::Is(int(bio[at!(Bio, "error")])?);
            }
            _ => return Err(Stop::FOREIGN),
        }
        Ok(())
    }

    fn thread(&mut self, data: &[u8]) -> Result<(), Stop> {
        let (values, _) = self.arguments::<Bio, { columns::BIO.len() }>(data)?;
        let tid = u32::try_from(int(values[at!(Bio, "tid")])?).map_err(|_| Stop::DAMAGED)?;
        let thread = Thread { pid: values[at!(Bio, "pid")], comm: values[at!(Bio, "comm")] };
        let is_new = self.known.add_thread(tid, thread);
        if is_new { Ok(()) } else { Err(Stop::DAMAGED) }
    }

    /// Takes the thread of a track whose descriptor is at the end of the trace.
    fn thread_track(&mut self, data: &[u8]) -> Result<(), Stop> {
        let (values, singles) = self.arguments::<Bio, { columns::BIO.len() }>(data)?;
        let uuid = singles.track.and_then(|uuid| u64::try_from(uuid).ok()).ok_or(Stop::DAMAGED)?;
        self.tracks.add_thread(uuid, values[at!(Bio, "tid")])
    }

    fn process(&mut self, data: &[u8]) -> Result<(), Stop> {
        let (values, _) = self.arguments::<Request, { columns::SYNC.len() }>(data)?;
        let pid = u32::try_from(int(values[at!(Request, "pid")])?).map_err(|_| Stop::DAMAGED)?;
        let process = KnownProcess { name: values[at!(Request, "process")], cgroup: values[at!(Request, "cgroup")] };
        let is_new = self.known.add_process(pid, process);
        if is_new { Ok(()) } else { Err(Stop::DAMAGED) }
    }

    /// Returns the columns of a table that a slice has as arguments.
    fn arguments<T: Table, const N: usize>(&self, data: &[u8]) -> Result<([Value; N], Singles), Stop> {
        let mut values = [Value::Null; N];
        let singles = self.arguments_into::<T>(data, &mut values)?;
        Ok((values, singles))
    }

    /// Puts the columns of a table that a slice has as arguments into `values`.
    fn arguments_into<T: Table>(&self, data: &[u8], values: &mut [Value]) -> Result<Singles, Stop> {
        let mut singles = Singles::default();
        for field in Fields(data) {
            let (event::DEBUG_ANNOTATIONS, value) = field? else { return Err(Stop::FOREIGN) };
            let (mut name, mut found, mut text) = (0, None, None);
            for part in Fields(value.bytes()?) {
                let (field, value) = part?;
                match field {
                    annotation::NAME_IID => name = value.int()?,
                    annotation::BOOL_VALUE => found = Some(Value::Bool(value.int()? != 0)),
                    annotation::UINT_VALUE => found = Some(Value::UInt(value.int()?)),
                    annotation::INT_VALUE => found = Some(Value::Int(value.int()? as i64)),
                    annotation::POINTER_VALUE => found = Some(Value::Address(whole_address(value.int()?))),
                    // Only people read inline texts: those of columns are interned.
                    annotation::STRING_VALUE => found = Some(Value::Null),
                    annotation::STRING_VALUE_IID => text = Some(value.int()?),
                    _ => return Err(Stop::FOREIGN),
                }
            }
            let name = self.interned.annotation_name(name)?;
            let column = name.column::<T>();
            let value = match (found, text) {
                (_, Some(text)) => {
                    let content = column.map_or(Content::Text, |(_, content)| content);
                    self.interned.text_of(text, content, self.names)?
                }
                (Some(value), None) => value,
                (None, None) => return Err(Stop::DAMAGED),
            };
            match (column, name.single) {
                (Some((at, _)), _) => values[at] = value,
                (None, Some(single)) => singles.set(single, value)?,
                (None, None) => return Err(Stop::FOREIGN),
            }
        }
        Ok(singles)
    }
}

/// Phases of the request that is open on a track. Where no slice is inside of a wait, the wait itself is a phase. The residue is the time that no
/// phase covers, so it is not stored.
impl Track<Open> {
    fn open_request(&mut self) -> Result<&mut OpenRequest, Stop> {
        let open = self.open.iter_mut().rev().find_map(|open| match open {
            Open::Request(request) => Some(&mut **request),
            _ => None,
        });
        open.ok_or(Stop::FOREIGN)
    }

    /// Ends the phase that the innermost open wait is, because a slice begins inside of it.
    fn end_phase_of_wait(&mut self, ts: i64, derives: bool) -> Result<(), Stop> {
        match self.open.last_mut() {
            Some(Open::Wait(wait)) => {
                let phase = PhaseSpan::new(PhaseKind::Wait(wait.wait), wait.reached, ts);
                wait.reached = ts;
                self.add_phase(phase)
            }
            Some(Open::Phase { .. }) if derives => Err(Stop::FOREIGN),
            _ => Ok(()),
        }
    }

    /// Adds a phase to the request. The wait around it continues after it.
    fn add_phase(&mut self, span: PhaseSpan) -> Result<(), Stop> {
        if let Some(Open::Wait(wait)) = self.open.last_mut() {
            wait.reached = span.end;
        }
        let request = self.open_request()?;
        if span.start < span.end && span.phase != PhaseKind::Residue {
            request.phases.push(span);
        }
        Ok(())
    }
}

/// Refuses fields of an event that are no arguments.
fn only_arguments(data: &[u8]) -> Result<(), Stop> {
    for field in Fields(data) {
        let (event::DEBUG_ANNOTATIONS, _) = field? else { return Err(Stop::FOREIGN) };
    }
    Ok(())
}

const NOT_REBUILT: Stop = Stop::Refused("a row of it has values that do not agree");

impl Singles {
    fn set(&mut self, single: Single, value: Value) -> Result<(), Stop> {
        match single {
            Single::CallTs => self.call_ts = Some(int(value)?),
            Single::MarkId => self.mark_id = Some(int(value)?),
            Single::Open => self.is_open = int(value)? == 1,
            Single::Full => self.is_full = int(value)? == 1,
            Single::Unsubmitted => self.is_request = int(value)? == 1,
            Single::OriginUnknown => self.origin_unknown = int(value)? == 1,
            Single::CallId => self.call_id = Some(int(value)?),
            Single::Track => self.track = Some(int(value)?),
            Single::Unused => {}
        }
        Ok(())
    }
}

/// The call that the slice of a call-only request stands for.
fn call_of(request: &Request, of: &CallOf) -> Call {
    Call {
        call_id: of.call_id,
        op: of.op,
        tid: request.tid,
        pid: request.pid,
        comm: request.comm,
        process: Process { name: request.process, cgroup: request.cgroup },
        stack: of.stack,
        path: NameId::NONE,
        call_only: true,
        enter: of.enter,
        exit: of.exit,
        untimed: false,
        exit_lost: of.exit_lost,
        ret: request.ret,
        sync_id: Some(request.sync_id),
        request_end: request.end,
    }
}

fn int(value: Value) -> Result<i64, Stop> {
    match value {
        Value::Int(value) => Ok(value),
        _ => Err(Stop::DAMAGED),
    }
}

/// Returns the duration of a slice.
fn duration(start: i64, end: i64) -> Result<i64, Stop> {
    end.checked_sub(start).filter(|&ns| ns >= 0).ok_or(Stop::DAMAGED)
}

/// Sets the times of a request, as its slice and its call have them.
fn set_times(
    values: &mut [Value; columns::SYNC.len()],
    (start, end): (i64, i64),
    call_ts: Option<i64>,
) -> Result<(), Stop> {
    const WHOLE: [Value; 2] = [Value::Null, Value::Word("bio")];
    duration(start, end)?;
    let incomplete = values[at!(Request, "incomplete")];
    let is_null = |column: usize| values[column] == Value::Null;
    let call_only = is_null(at!(Request, "start_ns")) && is_null(at!(Request, "id")) && is_null(at!(Request, "fs"));
    let ts = call_ts.unwrap_or(start);
    values[at!(Request, "ts_ns")] = Value::Int(ts);
    values[at!(Request, "dur_ns")] = match (WHOLE.contains(&incomplete), call_only) {
        (false, _) => Value::Null,
        (true, true) => values[at!(Request, "syscall_ns")],
        (true, false) => Value::Int(end.checked_sub(ts).ok_or(Stop::DAMAGED)?),
    };
    let has_start = incomplete != Value::Word("start") && !call_only;
    values[at!(Request, "start_ns")] = if has_start { Value::Int(start) } else { Value::Null };
    Ok(())
}
