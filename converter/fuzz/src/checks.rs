//! What holds for every input: the conservation rules of docs/reference/pairing.md, as a sink that panics.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use syncline_core::error::Result;
use syncline_core::event::bio_flags::Direction;
use syncline_core::event::file_op::{FileCall, FileReturn};
use syncline_core::event::probe::{BioRole, Probe};
use syncline_core::event::{Event, Kind, NO_ID, Op, UNKNOWN_TASK};
use syncline_core::input::open::OpenInput;
use syncline_core::input_file::{Chunk, Input};
use syncline_core::losses::{Losses, Reason};
use syncline_core::merge::clock::InputHints;
use syncline_core::names::Names;
use syncline_core::options::Options;
use syncline_core::rows::file_op::FileOp;
use syncline_core::rows::{Bio, Confidence, Missing, Request, Row, Value};
use syncline_core::sink::{Group, RunFacts, Sink};
use syncline_core::source::tracepoints::Machine;
use syncline_core::source::{Batch, Escapes, Lines, NoteKind, PathEscape, Reader, Source, SourceOptions, Stock};

/// The events that went in.
#[derive(Debug, Default)]
pub struct Ledger {
    pub kinds: [u64; Kind::COUNT],
    pub folio_bytes: u64,
    pub submit_bytes: u64,
    /// Submits of background writeback. Requests that their folios opened are withdrawn.
    pub background: u64,
    /// What probes report: bios that read, starts and ends of sync functions, folios, and the bytes of bios that write.
    pub probe_reads: u64,
    pub probe_starts: u64,
    pub probe_ends: u64,
    pub probe_folios: u64,
    pub probe_bytes: u64,
}

impl Ledger {
    pub fn add(&mut self, event: &Event) {
        // A torn line is no event.
        if let Kind::Torn { .. } = event.kind {
            return;
        }
        self.kinds[event.kind.index()] += 1;
        if let Kind::BioAddFolio { len, .. } = event.kind {
            self.folio_bytes += len;
        }
        if let Kind::BioSubmit { background, bytes, .. } = event.kind {
            self.background += u64::from(background);
            self.submit_bytes += bytes;
        }
        match event.kind {
            Kind::Probe(Probe::Read { .. }) => self.probe_reads += 1,
            Kind::Probe(Probe::SyncEnter { .. }) => self.probe_starts += 1,
            Kind::Probe(Probe::SyncExit { .. }) => self.probe_ends += 1,
            Kind::Probe(Probe::AddFolio { .. }) => self.probe_folios += 1,
            Kind::Probe(Probe::Submit { bytes, role, .. }) if has_data(role) => {
                self.probe_bytes += bytes;
            }
            _ => {}
        }
    }
}

/// Whether a submit writes data: a flush without data has a row of its own, whatever its size.
fn has_data(role: BioRole) -> bool {
    !matches!(role, BioRole::Read | BioRole::Flush | BioRole::SentFlush)
}

/// The sums of a request's bios, which its row must equal.
#[derive(Clone, Default)]
struct BiosOf {
    flushes: u64,
    count: u64,
    bytes: u64,
    folios: u64,
    first_submit: Option<i64>,
    last_complete: Option<i64>,
    submit_missing: bool,
    complete_missing: bool,
    completes: Vec<i64>,
}

/// All rows as text, to compare those of two conversions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedRows(pub Vec<String>);

impl CollectedRows {
    fn add(&mut self, row: &impl Row, names: &Names) {
        let mut text = String::new();
        row.visit(&mut |column, value| {
            let _ = match value {
                Value::Name(name) => write!(text, "{column}={:?} ", names.text(name)),
                value => write!(text, "{column}={value:?} "),
            };
        });
        self.0.push(text);
    }
}

impl Sink for CollectedRows {
    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.add(bio, names);
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        if let Some(call) = group.call {
            self.add(call, names);
        }
        for one in group.requests {
            self.add(one.request, names);
        }
        Ok(())
    }

    fn finish(&mut self, facts: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        self.0.extend(facts.marks.iter().map(|mark| format!("{mark:?}")));
        Ok(())
    }
}

/// Checks the rows and passes them to another sink.
pub struct Checker<'a> {
    inner: &'a mut dyn Sink,
    /// Events came in the order of time, so intervals are checked, too.
    ordered: bool,
    bios: BTreeSet<u64>,
    bios_of: HashMap<u64, BiosOf>,
    syncs: BTreeSet<u64>,
    calls: BTreeSet<u64>,
    last_end: BTreeMap<u32, i64>,
    bytes: u64,
    background_bytes: u64,
    /// Bytes of the bios without a folio, as their submits say.
    sized_bytes: u64,
    kinds: [u64; Kind::COUNT],
    unmatched_calls: u64,
    never_submitted: u64,
    flushes: u64,
    inferred_ends: u64,
    requests_done: u64,
    /// Rows of requests that the recorder reports when they are over.
    reports: u64,
    never_completed: u64,
    /// Bios that only a probe says were submitted, and whose completion is lost, too.
    lost_both: u64,
    start_missing: u64,
    end_missing: u64,
    call_only: u64,
    untimed: u64,
    completed_after_end: u64,
    /// Bios known only from events of the block layer, and their bytes.
    blocks: u64,
    block_bytes: u64,
    /// Bytes of the bios that probes report.
    probe_bytes: u64,
    probe_folios: u64,
    reported: HashMap<u32, u64>,
}

impl<'a> Checker<'a> {
    pub fn new(inner: &'a mut dyn Sink, ordered: bool) -> Self {
        Self {
            inner,
            ordered,
            bios: BTreeSet::new(),
            bios_of: HashMap::new(),
            syncs: BTreeSet::new(),
            calls: BTreeSet::new(),
            last_end: BTreeMap::new(),
            bytes: 0,
            background_bytes: 0,
            sized_bytes: 0,
            kinds: [0; Kind::COUNT],
            unmatched_calls: 0,
            never_submitted: 0,
            flushes: 0,
            inferred_ends: 0,
            requests_done: 0,
            reports: 0,
            never_completed: 0,
            lost_both: 0,
            start_missing: 0,
            end_missing: 0,
            call_only: 0,
            untimed: 0,
            completed_after_end: 0,
            blocks: 0,
            block_bytes: 0,
            probe_bytes: 0,
            probe_folios: 0,
            reported: HashMap::new(),
        }
    }

    fn request(&mut self, request: &Request, bio_ids: &[u64]) {
        assert!(self.syncs.insert(request.sync_id), "sync_id {} is there twice", request.sync_id);
        let of = self.bios_of.remove(&request.sync_id).unwrap_or_default();
        assert_eq!(bio_ids.len() as u64, request.bios + of.flushes, "bio_ids of {request:?}");
        assert!(bio_ids.iter().all(|id| self.bios.contains(id)), "a bio of {request:?} did not come before it");
        assert_eq!(of.count, request.bios, "bios of {request:?}");
        assert_eq!(
            (of.bytes, of.folios),
            (request.extent.bytes, request.extent.folios),
            "bytes, folios of {request:?}"
        );
        assert_eq!(of.first_submit, request.first_submit, "first submit of {request:?}");
        assert_eq!(of.last_complete, request.last_complete, "last completion of {request:?}");
        assert_eq!(
            (of.submit_missing, of.complete_missing),
            (request.submit_missing, request.complete_missing),
            "what is missing of {request:?}"
        );
        if request.call_only {
            return self.call_only_request(request);
        }
        self.bytes += request.extent.bytes;
        self.kinds[2] += u64::from(request.start.is_some());
        // An inferred end may be that of the call.
        let ends =
            if request.confidence == Confidence::Inferred { &mut self.inferred_ends } else { &mut self.kinds[6] };
        *ends += u64::from(request.end.is_some());
        // Some sync functions return nothing.
        assert!(request.ret.is_none() || request.end.is_some());
        assert!(request.end.is_none() || request.ret.is_some() || request.id == NO_ID);
        self.start_missing += u64::from(request.start.is_none());
        self.end_missing += u64::from(request.end.is_none());
        if let Some(end) = request.end {
            self.completed_after_end += of.completes.iter().filter(|&&complete| complete > end).count() as u64;
        }
        self.waits(request);
        if request.missing().is_none() && request.bios > 0 && !request.bios_unseen {
            let parts = [request.before_submit(), request.writeback(), request.after_complete()];
            let whole = request.end.zip(request.start).map(|(end, start)| end - start);
            let sum = parts.into_iter().sum::<Option<i64>>();
            // A part is null if a bio is older than the start, or completed after the end.
            assert!(sum.is_none() || sum == whole, "parts of {request:?}");
        }
        let waits = request.call.is_none_or(|call| !matches!(call.op, Op::Sync | Op::Syncfs | Op::SyncFileRange));
        let is_exact = request.missing().is_none() && request.confidence == Confidence::Exact;
        if is_exact && waits && request.ino != 0 && request.failure().is_none() {
            assert!(of.completes.iter().all(|&complete| Some(complete) <= request.end), "a bio outlives {request:?}");
        }
        let lengths = [request.before_submit(), request.after_complete()];
        assert!(lengths.into_iter().flatten().all(|ns| ns >= 0), "{request:?}");
        if let Some((start, end)) = request.phase_bounds() {
            let sum: i64 = request.phase_rows().map(|phase| phase.dur).sum();
            assert_eq!(sum, end - start, "phases of {request:?}");
        }
        if request.missing().is_none() && request.bios == 0 {
            assert_eq!(request.writeback(), (!request.bios_unseen).then_some(0));
        }
        if matches!(request.missing(), Some(Missing::Start | Missing::End)) {
            assert_eq!((request.dur(), request.syscall(), request.writeback()), (None, None, None));
        }
        if let Some((offset, end)) = request.extent.span {
            assert!(request.extent.ranges > 0 && offset < end);
        }
        if self.ordered {
            assert!(request.dur().is_none_or(|dur| dur >= 0), "{request:?}");
            assert!(request.writeback().is_none_or(|ns| ns >= 0), "{request:?}");
            // A start that comes after other events of its request is still its own.
            let first = request.start == Some(request.first_event);
            assert!(!first || request.before_submit().is_none_or(|ns| ns >= 0), "{request:?}");
            assert!(request.first_event <= request.last_event, "{request:?}");
        }
    }

    /// Waits are sorted and within their request.
    fn waits(&self, request: &Request) {
        let (start, end) = extent(request);
        let mut reached = i64::MIN;
        for (waited, number) in request.waits.iter().zip(1..) {
            assert_eq!((waited.sync_id, waited.number), (request.sync_id, number), "{request:?}");
            assert!(reached <= waited.start && waited.start <= waited.end, "{request:?}");
            reached = waited.start;
            if request.start.is_some() && request.end.is_some() {
                assert!(start <= waited.start && waited.end <= end, "{waited:?} is not in {request:?}");
            }
        }
        if self.ordered {
            let parts = [request.journal(), request.flush(), request.other()];
            assert!(
                parts.into_iter().flatten().all(|part| 0 <= part && part <= end - start),
                "{parts:?} of {request:?}"
            );
        }
    }

    fn call_only_request(&mut self, request: &Request) {
        self.call_only += 1;
        self.end_missing += u64::from(request.missing().is_some());
        assert!(request.missing().is_none_or(|missing| missing == Missing::End), "{request:?}");
        let Some(call) = request.call else { panic!("{request:?} has no call") };
        assert_eq!((request.start, request.end, request.first_event), (None, call.exit, call.enter));
        assert_eq!(request.dur(), call.exit.map(|exit| exit - call.enter));
        assert_eq!(request.syscall(), request.dur());
        assert_eq!((request.bytes(), request.writeback(), request.bios, request.extent.folios), (None, None, 0, 0));
        assert_eq!((request.before_submit(), request.after_complete()), (None, None));
        if self.ordered {
            assert!(request.dur().is_none_or(|dur| dur >= 0), "{request:?}");
        }
    }

    /// Checks that every event that went in has come out, or is counted with a reason.
    pub fn balance(&self, ledger: &Ledger, losses: &Losses) {
        let count = |reason| losses.get(reason).count;
        let of_folios = self.bytes + self.background_bytes - self.block_bytes - self.sized_bytes;
        // Where the size of a bio and its folios contradict each other, the size counts.
        let contradict = count(Reason::FoliosMissing) > 0;
        assert!(of_folios == ledger.folio_bytes || contradict && of_folios < ledger.folio_bytes, "bytes of folios");
        // The size of a bio with folios is theirs.
        let all_are_sized = ledger.kinds[3] == 0;
        assert!(
            self.sized_bytes == ledger.submit_bytes || !all_are_sized && self.sized_bytes < ledger.submit_bytes,
            "bytes of submits: {} of {}",
            self.sized_bytes,
            ledger.submit_bytes
        );
        assert!(self.bios_of.is_empty(), "bios of requests that never came: {:?}", self.bios_of.keys());
        let has_requests = [11, 18, 22, 23].iter().any(|&kind| ledger.kinds[kind] > 0);
        for (ids, what) in [(&self.syncs, "sync_id"), (&self.bios, "bio_id"), (&self.calls, "call_id")] {
            // Requests of the block layer are no rows if a file system reports their bios later in the log.
            let gaps = what == "sync_id" && ledger.background > 0 || what == "bio_id" && has_requests;
            assert!(gaps || ids.iter().copied().eq(1..=ids.len() as u64), "{what} has gaps: {ids:?}");
        }
        let [calls, exits, starts, _, submits, completes, ends, ..] = ledger.kinds;
        // A sync that is reported when it is over has both.
        let (starts, ends) = (starts + ledger.kinds[26], ends + ledger.kinds[26]);
        assert_eq!(self.kinds[0], calls, "calls");
        // An exit without an entry may say which requests have lost their call.
        let used_exits = self.kinds[1] + self.untimed + count(Reason::UnmatchedExit);
        assert!(
            used_exits <= exits && exits <= used_exits + count(Reason::CallMissing),
            "{used_exits} of {exits} exits"
        );
        assert_eq!(self.untimed, count(Reason::DurationMissing), "exits of unknown time");
        assert_eq!(self.call_only, count(Reason::CallOnly), "requests known by their call only");
        let duplicate = count(Reason::Duplicate);
        let used_starts = self.kinds[2] + count(Reason::DuplicateStart);
        // The outer one of nested sync functions begins the request.
        let all_starts = starts + ledger.probe_starts;
        assert!(
            // A start without an id is that of a request whose start with an id was lost.
            used_starts <= all_starts && used_starts + duplicate + ledger.probe_starts + self.start_missing >= starts,
            "{used_starts} of {starts} starts"
        );
        assert_eq!(self.kinds[3], ledger.kinds[3], "folios");
        assert_eq!(self.kinds[4], submits, "submits");
        let left_out = duplicate + count(Reason::Remapped);
        assert!(self.probe_bytes <= ledger.probe_bytes && self.probe_folios <= ledger.probe_folios, "bios of probes");
        assert!(left_out > 0 || self.probe_bytes == ledger.probe_bytes, "bytes of bios of probes");
        let [block_submits, block_completes] = [ledger.kinds[10] + ledger.probe_reads, ledger.kinds[11]];
        let rows = self.blocks + self.flushes;
        assert!(
            rows + duplicate + count(Reason::Remapped) >= block_submits && self.blocks <= block_submits,
            "block_bio_queue"
        );
        let reports = ledger.kinds[27];
        assert!(self.reports <= reports && self.reports + duplicate >= reports, "reports of requests");
        let unmatched = count(Reason::UnmatchedComplete);
        // The block layer says when the others ended.
        let by_request = count(Reason::EndedByRequest);
        assert!(self.kinds[5] <= completes + by_request && self.kinds[5] + unmatched >= completes, "completions");
        assert!(self.kinds[5] + unmatched <= completes + block_completes, "completions");
        let used_ends = self.kinds[6] + count(Reason::DuplicateEnd);
        // An end that came so late that it is before its start is only a late event.
        let some_without_id = used_starts != starts;
        assert!(
            used_ends <= ends && used_ends + self.inferred_ends + duplicate >= ends
                || ledger.probe_starts + ledger.probe_ends > 0
                    && used_ends <= ends + ledger.probe_ends
                    && used_ends + self.inferred_ends + duplicate >= ends
                || some_without_id
                || !self.ordered && used_ends < ends,
            "{used_ends} of {ends} ends"
        );
        assert_eq!(self.unmatched_calls, count(Reason::UnmatchedCall), "unmatched calls");
        assert_eq!(self.never_submitted, count(Reason::NeverSubmitted), "bios with no submit");
        assert!(count(Reason::SubmitsMissing) <= self.requests_done, "requests of a log without submits");
        // Requests whose bios a file system reports are in no row, and flushes are not counted here.
        let may_lack_rows = has_requests || self.flushes > 0;
        let never_completed = count(Reason::NeverCompleted);
        let most = self.never_completed + self.lost_both;
        assert!(
            (self.never_completed..=most).contains(&never_completed)
                || may_lack_rows && self.never_completed <= never_completed,
            "bios with no completion: {} of {never_completed}",
            self.never_completed
        );
        assert_eq!(self.start_missing, count(Reason::StartMissing), "requests with no start");
        let without_end = count(Reason::EndMissing) + count(Reason::EndsNotRecorded);
        assert_eq!(self.end_missing, without_end, "requests with no end");
        if self.ordered {
            assert_eq!(self.completed_after_end, count(Reason::CompletedAfterEnd), "completed after the end");
        }
        for (reason, tally) in losses.iter() {
            let reported = self.reported.get(&(reason as u32)).copied().unwrap_or_default();
            assert!(reported <= tally.count, "{} reported {reported} times, counted {}", reason.name(), tally.count);
        }
    }
}

/// Returns the interval of a request's slice in a trace.
fn extent(request: &Request) -> (i64, i64) {
    let start = request.start.unwrap_or(request.first_event);
    (start, request.end.unwrap_or(request.last_event).max(start))
}

impl Sink for Checker<'_> {
    fn begin(&mut self, first_ts: i64) -> Result<()> {
        self.inner.begin(first_ts)
    }

    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        assert!(self.bios.insert(bio.bio_id), "bio_id {} is there twice", bio.bio_id);
        *if bio.extent.of_probes { &mut self.probe_folios } else { &mut self.kinds[3] } += bio.extent.folios;
        let is_flush = bio.direction() == Direction::Flush;
        if bio.is_request || is_flush {
            // A log without bios has any number of requests; flushes are rows from their issue on.
            self.flushes += u64::from(is_flush);
            self.requests_done += u64::from(bio.complete.is_some());
            self.reports += u64::from(bio.is_report);
            self.block_bytes += bio.extent.bytes;
        } else if bio.id == NO_ID {
            self.block_bytes += bio.extent.bytes;
            if bio.extent.of_probes {
                // The size of a bio without a submit is that of its folios.
                self.probe_bytes += if bio.submit.is_some() { bio.extent.bytes } else { 0 };
            } else {
                self.blocks += 1;
            }
        } else {
            // Only the thread says whose bio without an id it is.
            assert!(bio.sync_id.is_none() || bio.id != 0 || bio.confidence == Confidence::Inferred, "{bio:?}");
            self.sized_bytes += if bio.extent.of_bios { bio.extent.bytes } else { 0 };
            self.kinds[4] += u64::from(bio.submit.is_some());
            self.kinds[5] += u64::from(bio.complete.is_some());
        }
        self.never_submitted += u64::from(bio.submit.is_none() && !bio.is_request);
        self.lost_both += u64::from(bio.extent.of_probes && bio.submit.is_none() && bio.complete.is_none());
        self.never_completed +=
            u64::from(bio.submit.is_some() && bio.complete.is_none() && !bio.is_request && !is_flush);
        if self.ordered {
            assert!(bio.dur().is_none_or(|dur| dur >= 0), "{bio:?}");
        }
        match bio.sync_id {
            None => self.background_bytes += bio.extent.bytes,
            // A flush without data writes nothing back.
            Some(id) if is_flush => self.bios_of.entry(id).or_default().flushes += 1,
            Some(id) => {
                let of = self.bios_of.entry(id).or_default();
                of.count += 1;
                of.bytes += bio.extent.bytes;
                of.folios += bio.extent.folios;
                of.first_submit = of.first_submit.into_iter().chain(bio.submit).min();
                of.last_complete = of.last_complete.into_iter().chain(bio.complete).max();
                of.submit_missing |= bio.submit.is_none();
                of.complete_missing |= bio.complete.is_none();
                of.completes.extend(bio.complete);
            }
        }
        self.inner.bio(bio, names)
    }

    fn wants_file_ops(&self) -> bool {
        self.inner.wants_file_ops()
    }

    fn file_op(&mut self, op: &FileOp, names: &Names) -> Result<()> {
        self.inner.file_op(op, names)
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        let Some(task) = group.call.map(|c| c.tid).or_else(|| group.requests.first().map(|r| r.request.tid)) else {
            panic!("a group of nothing");
        };
        if let Some(call) = group.call {
            assert!(self.calls.insert(call.call_id), "call_id {} is there twice", call.call_id);
            self.kinds[0] += 1;
            self.kinds[1] += u64::from(call.exit.is_some());
            self.untimed += u64::from(call.untimed);
            assert!(!call.untimed || call.exit.is_none(), "{call:?}");
            self.unmatched_calls += u64::from(call.sync_id.is_none());
            if let Some(id) = call.sync_id {
                let Some(own) = group.requests.iter().find(|r| r.request.sync_id == id) else {
                    panic!("the request of {call:?} is elsewhere");
                };
                let Some(of) = own.request.call else { panic!("{:?} does not know {call:?}", own.request) };
                assert_eq!((of.call_id, of.exit), (call.call_id, call.exit), "{call:?}");
                // Without the start, only the thread says that the end is of the call.
                let end = own.request.end.filter(|_| own.request.start.is_some());
                assert_eq!(call.request_end, end, "{call:?}");
            }
        }
        for r in group.requests {
            let own = group.call.filter(|c| c.sync_id == Some(r.request.sync_id)).map(|c| c.call_id);
            assert_eq!(r.request.call.map(|c| c.call_id), own, "the call of {:?}", r.request);
            self.request(r.request, r.bio_ids);
        }
        if self.ordered && task != UNKNOWN_TASK {
            let mut at = *self.last_end.get(&task).unwrap_or(&i64::MIN);
            if let Some(call) = group.call {
                assert!(call.enter >= at, "{call:?} begins before what came before it has ended ({at})");
                at = call.enter;
            }
            for r in group.requests {
                let (start, end) = extent(r.request);
                assert!(start >= at, "{:?} begins before what came before it has ended ({at})", r.request);
                at = end;
            }
            if let Some(exit) = group.call.and_then(|c| c.exit) {
                assert!(exit >= at, "{:?} exits before its requests have ended ({at})", group.call);
                at = exit;
            }
            self.last_end.insert(task, at);
        }
        self.inner.group(group, names)
    }

    fn loss(&mut self, reason: Reason, ts: i64, text: &str) -> Result<()> {
        *self.reported.entry(reason as u32).or_default() += 1;
        self.inner.loss(reason, ts, text)
    }

    fn unweighted_requests(&self) -> u64 {
        self.inner.unweighted_requests()
    }

    fn finish(&mut self, facts: &RunFacts, losses: &Losses, names: &Names) -> Result<()> {
        self.inner.finish(facts, losses, names)
    }
}

/// Discards everything.
pub struct Nowhere;

impl Sink for Nowhere {
    fn group(&mut self, _: &Group<'_>, _: &Names) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        Ok(())
    }
}

/// A batch with its names written out, so that batches can be compared.
#[derive(Debug, Default, PartialEq)]
pub struct Plain {
    events: Vec<String>,
    notes: Vec<(u64, u64, NoteKind)>,
    lines: u64,
}

impl Plain {
    pub fn add(&mut self, batch: &Batch) {
        let before = self.events.len() as u64;
        let name = |id| String::from_utf8_lossy(batch.names.get(id)).into_owned();
        let mut extras = batch.extras.iter().peekable();
        for (i, event) in batch.events.iter().enumerate() {
            let kind = match event.kind {
                Kind::CallEnter { op, stack, path, call_only } => {
                    format!("{op:?} {:?} {:?} {call_only}", name(stack), name(path))
                }
                Kind::FileCall(call) => {
                    let FileCall { op, creates, naming, fd, offset, len, .. } = call;
                    let texts = [call.path, call.to_path, call.flags, call.stack].map(name);
                    format!("{texts:?} {op:?} {creates:?} {naming:?} {fd} {offset} {len}")
                }
                Kind::FileReturn(FileReturn { op, untimed, entry_lost, path, stack, ret, lasted, created }) => {
                    format!("{op:?} {untimed} {entry_lost} {:?} {ret:?} {lasted} {created:?}", [path, stack].map(name))
                }
                Kind::CallExit { op, ret, stack, untimed, entry_lost } => {
                    format!("{op:?} {ret:?} {:?} {untimed} {entry_lost}", name(stack))
                }
                Kind::SyncStart { id, start, end, path, fs, ino, dev, datasync, by_thread } => {
                    format!("{id} {start} {end} {:?} {:?} {ino} {dev} {datasync} {by_thread}", name(path), name(fs))
                }
                Kind::SyncEnd { id, ret, fs, dev, ino, datasync } => {
                    format!("{id} {ret} {:?} {dev} {ino} {datasync:?}", name(fs))
                }
                Kind::SyncDone { dur, fs, path, ret } => format!("{dur} {:?} {ret:?}", [fs, path].map(name)),
                Kind::Probe(Probe::SyncEnter { path, fs, function, scope, dev, ino, generation, datasync, .. }) => {
                    let texts = [path, fs, function].map(name);
                    format!("{texts:?} {scope:?} {dev} {ino} {generation} {datasync:?}")
                }
                Kind::Mark { phase, name: text, key } => format!("{phase:?} {:?} {key}", name(text)),
                other => format!("{other:?}"),
            };
            let mut text = format!(
                "{} {} {} {:?} {:?} {kind}",
                event.ts,
                event.tid,
                event.pid,
                name(event.comm),
                batch.event_names.get(i).map_or_else(String::new, |&word| name(word))
            );
            while let Some(extra) = extras.next_if(|x| x.event as usize == i) {
                text = format!("{text} {:?}={:?}", name(extra.key), name(extra.value));
            }
            self.events.push(text);
        }
        assert!(extras.next().is_none(), "an extra of no event");
        for note in &batch.notes {
            assert!(u64::from(note.after) <= batch.events.len() as u64, "{note:?} is after the last event");
            let line = if note.is_of_original_log {
                0
            } else {
                assert!((1..=batch.lines).contains(&note.line), "{note:?} of {} lines", batch.lines);
                self.lines + note.line
            };
            self.notes.push((before + u64::from(note.after), line, note.kind.clone()));
        }
        self.lines += batch.lines;
    }
}

/// Checks that a source parses a text in pieces as it does at once.
pub fn check_source<S: Source + Lines>(source: &S, options: &SourceOptions, text: &[u8], piece: usize) {
    source.sniff(text);
    let mut batch = Batch::default();
    source.parse_lines(options, text, &mut batch);
    // A torn line may be pieces of several.
    let whole = batch.events.iter().filter(|event| !matches!(event.kind, Kind::Torn { .. }));
    // perf trace prints entry and exit of a call in one.
    let most = if source.name() == "perf-trace" { 2 } else { 1 };
    assert!(whole.count() as u64 <= most * batch.lines);
    assert!(batch.events.iter().all(|e| e.ts >= 0), "a time before all times");
    let mut whole = Plain::default();
    whole.add(&batch);

    let mut pieces = Plain::default();
    let (mut from, mut to) = (0, 0);
    while from < text.len() {
        to = text.len().min(to.max(from) + piece.max(1));
        let end = if to == text.len() {
            to
        } else {
            match source.cut(&text[from..to]) {
                Some(0) => panic!("a piece of nothing"),
                Some(len) => from + len,
                None => continue,
            }
        };
        batch.clear();
        source.parse_lines(options, &text[from..end], &mut batch);
        pieces.add(&batch);
        from = end;
    }
    for (a, b) in whole.events.iter().zip(&pieces.events) {
        assert_eq!(a, b, "in pieces of {piece}");
    }
    if source.name() == "blkparse" {
        // The numbers of the lines are compared from one piece to the next when the pieces are put together, which is not done here.
        for plain in [&mut whole, &mut pieces] {
            plain.notes.retain(|(.., kind)| !matches!(kind, NoteKind::Lost { .. }));
        }
    }
    for (a, b) in whole.notes.iter().zip(&pieces.notes) {
        assert_eq!(a, b, "in pieces of {piece}");
    }
    assert!(whole == pieces, "in pieces of {piece} there is more, or less");
}

/// Checks that the reader of a source gives the same events in pieces as at once.
pub fn check_reader(
    source: &'static dyn Source,
    cut: impl Fn(&[u8]) -> Option<usize>,
    options: &SourceOptions,
    text: &[u8],
    piece: usize,
) {
    source.sniff(text);
    let open = || Input::from_bytes("fuzz.12", text.to_vec()).and_then(|input| source.open(input, options));
    let (Ok(mut whole), Ok(mut pieces)) = (open(), open()) else { return };
    let read = |parts: &[&[u8]], reader: &mut Reader| {
        let (mut plain, mut batch, mut others) = (Plain::default(), Batch::default(), 0);
        for part in parts {
            batch.clear();
            reader.parse.parse(part, &mut batch);
            if let Some(pass) = &mut reader.stateful_pass {
                pass.apply(&mut batch);
            }
            assert!(batch.event_names.is_empty() || batch.event_names.len() == batch.events.len());
            assert!(batch.events.iter().all(|e| e.ts >= 0), "a time before all times");
            assert!(batch.notes.is_sorted_by_key(|note| note.after));
            assert!(batch.extras.is_sorted_by_key(|extra| extra.event));
            others += batch.dropped_events;
            plain.add(&batch);
        }
        (plain, others)
    };
    let at_once = read(&[text], &mut whole);
    let mut parts = Vec::new();
    let (mut from, mut to) = (0, 0);
    while from < text.len() {
        to = text.len().min(to.max(from) + piece.max(1));
        let end = if to == text.len() { Some(to) } else { cut(&text[from..to]).map(|len| from + len) };
        if let Some(end) = end {
            parts.push(&text[from..end]);
            from = end;
        }
    }
    let in_parts = read(&parts, &mut pieces);
    for (a, b) in at_once.0.events.iter().zip(&in_parts.0.events) {
        assert_eq!(a, b, "in pieces of {piece}");
    }
    assert!(at_once == in_parts, "in pieces of {piece}: {at_once:?} {in_parts:?}");
}

/// Checks what a source that reads whole files gives for each chunk, and calls `each` with the chunk and its events. Returns the number of
/// bytes that it read; `None` if it does not open the file.
pub fn check_file(
    source: &'static dyn Source,
    options: &SourceOptions,
    file: &[u8],
    mut each: impl FnMut(&Chunk, &Batch),
) -> Option<u64> {
    source.sniff(file);
    let input = Input::from_bytes("fuzz", file.to_vec()).ok()?;
    let mut reader = source.open(input, options).ok()?;
    let (mut chunk, mut batch, mut again) = (Chunk::default(), Batch::default(), Batch::default());
    let mut consumed = 0;
    while let Ok(true) = reader.chunks.next(&mut chunk) {
        let now = reader.chunks.consumed_bytes();
        assert!(now >= consumed && now <= file.len() as u64, "{now} bytes of {} after {consumed}", file.len());
        consumed = now;

        batch.clear();
        reader.parse.parse(chunk.bytes(), &mut batch);
        assert!(batch.events.iter().all(|event| event.ts >= 0), "a time before all times");
        assert!(batch.event_names.is_empty() || batch.event_names.len() == batch.events.len());
        assert!(batch.extras.iter().all(|extra| (extra.event as usize) < batch.events.len()));
        assert!(batch.extras.is_sorted_by_key(|extra| extra.event));
        assert!(batch.notes.iter().all(|note| note.after as usize <= batch.events.len()));
        assert!(batch.notes.is_sorted_by_key(|note| note.after));
        assert!(!batch.notes.iter().any(|note| note.kind == NoteKind::Lost { count: 0 }));
        each(&chunk, &batch);
        again.clear();
        reader.parse.parse(chunk.bytes(), &mut again);
        assert!(batch.events == again.events && batch.notes == again.notes, "a chunk is parsed in two ways");
    }
    Some(consumed)
}

/// The watermark of a file. Records of a damaged file may be older, but the watermark never falls.
pub struct Watermark(pub i64);

impl Default for Watermark {
    fn default() -> Self {
        Self(i64::MIN)
    }
}

impl Watermark {
    pub fn rise(&mut self, chunk: &Chunk) {
        assert!(chunk.watermark.is_some_and(|next| next >= self.0), "{:?} after {}", chunk.watermark, self.0);
        self.0 = chunk.watermark.unwrap_or(self.0);
    }
}

/// Two logs of one run, with an offset between their clocks.
pub struct TwoLogs<'a> {
    logs: [&'a [u8]; 2],
    pub options: Options,
}

impl<'a> TwoLogs<'a> {
    /// Splits an input at a line of dashes. Its last byte is the offset.
    pub fn of(data: &'a [u8]) -> Option<Self> {
        const MARK: &[u8] = b"\n----\n";
        let (offset, text) = data.split_last()?;
        let at = text.windows(MARK.len()).position(|window| window == MARK)?;
        // With an offset, the clocks of the logs do not matter.
        let hints = |offset_ns| InputHints { offset_ns: Some(offset_ns), ..InputHints::default() };
        let offset = i64::from(*offset as i8) * 1000;
        let options = Options {
            workers: 1,
            hints: [("0".to_owned(), hints(0)), ("1".to_owned(), hints(offset.max(0)))].into(),
            ..Options::default()
        };
        Some(Self { logs: [&text[..at], &text[at + MARK.len()..]], options })
    }

    /// Opens the first log (0) or the second (1).
    pub fn open(&self, number: usize) -> Option<OpenInput> {
        let input = Input::from_bytes(&number.to_string(), self.logs[number].to_vec()).ok()?;
        OpenInput::with_format(input, &self.options.sources, None).ok()
    }
}

/// Returns source options from a byte of the input.
pub fn source_options(byte: u8) -> SourceOptions {
    SourceOptions {
        time_unit_ns: if byte & 1 == 0 { 1 } else { 1000 },
        pid_is_process: byte & 2 != 0,
        keep_extras: byte & 4 != 0,
        // No output asks for both.
        keep_file_ops: byte & 4 == 0,
        keep_writes: false,
        escapes: Escapes {
            comm_hex: byte & 8 != 0,
            path: match byte >> 6 {
                0 | 1 => PathEscape::None,
                2 => PathEscape::Octal,
                _ => PathEscape::Hex,
            },
        },
        by_own_script: byte & 16 != 0,
        stock: (byte & 16 != 0).then_some(if byte & 128 == 0 { Stock::Functions } else { Stock::Tracepoints }),
        machine: (byte & 32 != 0).then_some(Machine::X86_64),
    }
}
