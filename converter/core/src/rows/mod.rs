//! The rows that pairing produces and every sink writes: requests, bios, calls, waits, commits. docs/reference/tables.md describes each column.

pub mod columns;
pub mod derived;
mod fields;
pub mod file_op;
pub mod write;

use self::fields::columns_of;
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::place::Place;
use crate::event::probe::{WaitedFor, WriteWaitKind};
use crate::event::{CommitStep, Dev, FastCommitReason, FastCommitStatus, NO_ID, NO_SECTOR, Op, UNKNOWN_TASK, WaitKind};
use crate::names::NameId;

/// Confidence in a relation. The order is from the surest to the least sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    #[default]
    Exact,
    Inferred,
    Unknown,
}

impl Confidence {
    pub const ALL: [Self; 3] = [Self::Exact, Self::Inferred, Self::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Inferred => "inferred",
            Self::Unknown => "unknown",
        }
    }
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Bool(bool),
    Name(NameId),
    Word(&'static str),
    /// A kernel address.
    Address(u64),
    Dev(Dev),
}

impl Value {
    pub(crate) fn int(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::Int)
    }

    fn id(id: u64) -> Self {
        if id == NO_ID { Self::Null } else { Self::UInt(id) }
    }

    pub(crate) fn name(name: NameId) -> Self {
        if name.is_some() { Self::Name(name) } else { Self::Null }
    }

    pub(crate) fn task(id: u32) -> Self {
        if id == UNKNOWN_TASK { Self::Null } else { Self::Int(i64::from(id)) }
    }

    pub(crate) fn dev(dev: Dev) -> Self {
        if dev.is_known() { Self::Dev(dev) } else { Self::Null }
    }
}

/// SQL type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int,
    UInt,
    Bool,
    Text,
}

/// A row of a table. `visit` passes one value for each of `COLUMNS`, in their order.
pub trait Row {
    const TABLE: &'static str;
    const COLUMNS: &'static [(&'static str, Type)];

    fn visit(&self, f: &mut impl FnMut(&'static str, Value));
}

/// The values of a row, in the order of its columns.
#[inline]
pub(crate) fn values<R: Row, const N: usize>(row: &R) -> [Value; N] {
    let mut values = [Value::Null; N];
    let mut at = 0;
    row.visit(&mut |_, v| {
        values[at] = v;
        at += 1;
    });
    values
}

/// Byte ranges of a file, in the order of `add`.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    runs: Vec<(u64, u64)>,
}

impl Ranges {
    pub fn add(&mut self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some((_, end)) if *end == offset => *end = offset + len,
            _ => self.runs.push((offset, offset + len)),
        }
    }

    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Joins adjacent and overlapping ranges. Returns their number, and the lowest offset with the end of the highest range.
    pub fn summary(&mut self) -> (u64, Option<(u64, u64)>) {
        if self.runs.len() > 1 {
            self.runs.sort_unstable();
            self.runs.dedup_by(|next, kept| {
                let joins = next.0 <= kept.1;
                if joins {
                    kept.1 = kept.1.max(next.1);
                }
                joins
            });
        }
        let span = self.runs.first().zip(self.runs.last()).map(|(first, last)| (first.0, last.1));
        (self.runs.len() as u64, span)
    }
}

/// The missing part of a request or a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Start,
    End,
    /// The entry of the call that a request was made in.
    Call,
    Bio,
}

impl Missing {
    pub const ALL: [Self; 4] = [Self::Start, Self::End, Self::Call, Self::Bio];

    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Call => "call",
            Self::Bio => "bio",
        }
    }
}

/// Name and control group of a process, `NONE` where they are not known.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub name: NameId,
    pub cgroup: NameId,
}

impl Default for Process {
    fn default() -> Self {
        Self { name: NameId::NONE, cgroup: NameId::NONE }
    }
}

/// The fields of a request's call that its row needs.
#[derive(Clone, Copy, Debug)]
pub struct CallOf {
    pub call_id: u64,
    pub op: Op,
    pub enter: i64,
    pub exit: Option<i64>,
    /// Its exit was lost: it lasted longer than its request.
    pub exit_lost: bool,
    pub stack: NameId,
}

/// Bytes, folios and ranges of a request or a bio.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub struct Extent {
    pub bytes: u64,
    pub folios: u64,
    pub ranges: u64,
    /// Offset of the first byte, and of the byte after the last one.
    pub span: Option<(u64, u64)>,
    /// `bytes` is the size of the bios, because not all of their folios are recorded.
    pub of_bios: bool,
    /// Neither the folios nor the size of a bio are recorded, so `bytes` lacks it.
    pub size_unknown: bool,
    /// Probes record folios, although they record no id of a request.
    pub of_probes: bool,
    /// Where in the file a folio is was not recorded, or not all folios are.
    pub offsets_unknown: bool,
    /// The log may begin within the bio, so its first folios may be missing.
    pub is_partial: bool,
}

impl Extent {
    /// A source without request ids records no folios either.
    fn folios_of(&self, id: u64) -> Value {
        if self.has_folios(id) { Value::Int(self.folios as i64) } else { Value::Null }
    }

    /// Takes note that neither all folios nor the size of a bio in it are recorded.
    pub fn lack_part(&mut self) {
        (self.of_bios, self.size_unknown, self.offsets_unknown) = (true, true, true);
    }

    fn has_folios(&self, id: u64) -> bool {
        (id != NO_ID || self.of_probes) && !self.of_bios && !self.is_partial
    }

    fn ranges_of(&self, id: u64) -> Value {
        if !self.has_folios(id) || self.offsets_unknown { Value::Null } else { Value::Int(self.ranges as i64) }
    }

    fn first_offset(&self) -> Value {
        Value::int(self.known_span().map(|(first, _)| first as i64))
    }

    fn last_offset(&self) -> Value {
        Value::int(self.known_span().map(|(_, last)| last as i64))
    }

    fn known_span(&self) -> Option<(u64, u64)> {
        self.span.filter(|_| !self.offsets_unknown && !self.is_partial)
    }
}

/// Time that the thread of a request spent on a commit or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitInterval {
    pub sync_id: u64,
    /// 1, 2, 3... within the request.
    pub number: u64,
    pub wait: WaitKind,
    pub start: i64,
    pub end: i64,
    /// Transaction of the journal; 0 if it is not recorded.
    pub transaction: u64,
    /// The commit that it waits for, if that is recorded.
    pub commit_id: Option<u64>,
    /// Inferred: no wait is recorded, and the commit says when the request must have waited.
    pub confidence: Confidence,
}

/// The kind of a phase: what a request spent a part of its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// Its thread could run, and no CPU did run it.
    CpuWait,
    /// Its thread waited for a lock.
    LockWait,
    /// Its thread waited, or made a commit, as its wait says.
    Wait(WaitKind),
    /// It waited for a commit while the journal was committing another transaction.
    EarlierCommit,
    /// It waited for a commit that had not begun.
    CommitStart,
    /// It waited for this step of the commit.
    CommitStep(CommitStep),
    /// A bio of it was in the queue of the block layer.
    Queue,
    /// A bio of it was with the driver and the device.
    Device,
    /// A bio of it was in flight, and nothing says when it was issued.
    Writeback,
    /// Its thread filled and submitted further bios.
    Submit,
    /// The bios that its thread waited for were complete, and it was not woken yet.
    Completion,
    /// It waited for writeback that somebody else had started.
    EarlierWriteback,
    BeforeSubmit,
    AfterCompletion,
    /// Nothing recorded explains it.
    Residue,
}

impl PhaseKind {
    /// All but those of waits, which have the names of the waits.
    const APART_FROM_WAITS: [Self; 16] = [
        Self::CpuWait,
        Self::LockWait,
        Self::EarlierCommit,
        Self::CommitStart,
        Self::CommitStep(CommitStep::Locking),
        Self::CommitStep(CommitStep::Flushing),
        Self::CommitStep(CommitStep::Logging),
        Self::Queue,
        Self::Device,
        Self::Writeback,
        Self::Submit,
        Self::Completion,
        Self::EarlierWriteback,
        Self::BeforeSubmit,
        Self::AfterCompletion,
        Self::Residue,
    ];

    /// Whether the thread waits for the work of another thread, which needs a CPU for it.
    pub(crate) fn needs_other_thread(self) -> bool {
        match self {
            Self::EarlierCommit | Self::CommitStart | Self::CommitStep(_) | Self::Completion => true,
            Self::Wait(wait) => matches!(wait, WaitKind::CommitWait | WaitKind::FastCommitWait),
            _ => false,
        }
    }

    /// Returns the phase of a name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let of_waits = WaitKind::ALL.into_iter().map(Self::Wait);
        Self::APART_FROM_WAITS.into_iter().chain(of_waits).find(|phase| phase.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::CpuWait => "cpu wait",
            Self::LockWait => "lock wait",
            Self::Wait(wait) => wait.name(),
            Self::EarlierCommit => "earlier commit",
            Self::CommitStart => "commit start",
            Self::CommitStep(CommitStep::Locking) => "commit locking",
            Self::CommitStep(CommitStep::Flushing) => "commit flushing",
            Self::CommitStep(CommitStep::Logging) => "commit logging",
            Self::Queue => "queue",
            Self::Device => "device",
            Self::Writeback => "writeback",
            Self::Submit => "submit",
            Self::Completion => "completion",
            Self::EarlierWriteback => "earlier writeback",
            Self::BeforeSubmit => "before submit",
            Self::AfterCompletion => "after completion",
            Self::Residue => "residue",
        }
    }
}

/// A thread that had a CPU while the thread of a request waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUser {
    /// 0: nobody, although the thread could run.
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    pub process: NameId,
    pub cgroup: NameId,
    /// The switch to it is recorded, and not only the one from it.
    pub confidence: Confidence,
}

impl CpuUser {
    pub const UNKNOWN: Self = Self {
        tid: UNKNOWN_TASK,
        pid: UNKNOWN_TASK,
        comm: NameId::NONE,
        process: NameId::NONE,
        cgroup: NameId::NONE,
        confidence: Confidence::Exact,
    };

    pub fn is_known(&self) -> bool {
        self.tid != UNKNOWN_TASK
    }

    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        [self.comm, self.process, self.cgroup].into_iter().for_each(f);
    }

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("cpu_tid", Value::task(self.tid));
        f("cpu_pid", Value::task(self.pid));
        f("cpu_comm", Value::name(self.comm));
        f("cpu_process", Value::name(self.process));
        f("cpu_cgroup", Value::name(self.cgroup));
        f("cpu_confidence", if self.is_known() { Value::Word(self.confidence.name()) } else { Value::Null });
    }
}

/// A part of a request that one phase explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    pub phase: PhaseKind,
    pub start: i64,
    pub end: i64,
    /// Who had the CPU in a wait for one.
    pub cpu: CpuUser,
}

impl PhaseSpan {
    pub const fn new(phase: PhaseKind, start: i64, end: i64) -> Self {
        Self { phase, start, end, cpu: CpuUser::UNKNOWN }
    }
}

/// A phase of a request. The residue is one of them, and the last one; it may consist of several pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub sync_id: u64,
    /// 1, 2, 3... within the request.
    pub number: u64,
    pub phase: PhaseKind,
    /// `None` for a residue in several pieces, and for one of length 0.
    pub start: Option<i64>,
    pub dur: i64,
    pub cpu: CpuUser,
}

impl Phase {
    pub fn of(sync_id: u64, number: u64, span: &PhaseSpan) -> Self {
        let PhaseSpan { phase, start, end, cpu } = *span;
        Self { sync_id, number, phase, start: Some(start), dur: end - start, cpu }
    }
}

/// One pass through a file system's sync function.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each marks another unknown part")]
pub struct Request {
    pub sync_id: u64,
    pub id: u64,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    pub process: NameId,
    /// Control group of its process.
    pub cgroup: NameId,
    pub fs: NameId,
    pub path: NameId,
    /// Its path in the container of the thread.
    pub container_path: NameId,
    pub dev: Dev,
    pub ino: u64,
    /// `None` if the start does not record it.
    pub datasync: Option<bool>,
    pub call: Option<CallOf>,
    /// The `sync_id` of the first request in the same call: its own if it is the only one, or in no call.
    pub call_sync_id: u64,
    /// It may have been made in a call whose entry is not in the log, and the op of that call, if it is known.
    pub call_missing: bool,
    pub lost_op: Option<Op>,
    /// Only its call was recorded. The columns of the file system's part are null.
    pub call_only: bool,
    pub first_event: i64,
    pub last_event: i64,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub ret: Option<i64>,
    pub first_submit: Option<i64>,
    pub last_complete: Option<i64>,
    pub submit_missing: bool,
    /// Some of its bios are requests of the block layer, which begin after the submit.
    pub has_requests: bool,
    pub complete_missing: bool,
    pub extent: Extent,
    pub bios: u64,
    /// Its source records no bios.
    pub bios_unseen: bool,
    /// A bio of it may be missing from the log altogether, so nothing is known of its bios as a whole.
    pub bio_lost: bool,
    pub confidence: Confidence,
    /// In the order of their starts. They may be nested.
    pub waits: Vec<WaitInterval>,
    /// The phases that explain its time, in the order of time and without overlap. The rest is the residue.
    pub phases: Vec<PhaseSpan>,
    /// Whether all waits for (the journal, flushes) are recorded.
    pub waits_known: (bool, bool),
    /// Whether it is known all the time what the scheduler did with its thread.
    pub knows_states: bool,
    /// Number of requests in flight right after this one's start and end.
    pub in_flight: (u32, u32),
    /// Its recorder reports it when it is over, so it is not known how many were in flight.
    pub is_report: bool,
    /// The device of its bios, and (bios, bytes) in flight on it right after its end, if bios were in flight until then.
    pub device_at_end: Option<(Dev, u32, u64)>,
}

impl Request {
    /// A request that is known only by the time of its first event.
    pub fn new(sync_id: u64, id: u64, first_event: i64) -> Self {
        Self {
            sync_id,
            id,
            tid: UNKNOWN_TASK,
            pid: UNKNOWN_TASK,
            comm: NameId::NONE,
            process: NameId::NONE,
            cgroup: NameId::NONE,
            fs: NameId::NONE,
            path: NameId::NONE,
            container_path: NameId::NONE,
            dev: Dev::UNKNOWN,
            ino: 0,
            datasync: None,
            call: None,
            call_sync_id: sync_id,
            call_missing: false,
            lost_op: None,
            call_only: false,
            first_event,
            last_event: first_event,
            start: None,
            end: None,
            ret: None,
            first_submit: None,
            last_complete: None,
            submit_missing: false,
            has_requests: false,
            complete_missing: false,
            extent: Extent::default(),
            bios: 0,
            bios_unseen: false,
            bio_lost: false,
            confidence: Confidence::Exact,
            waits: Vec::new(),
            phases: Vec::new(),
            waits_known: (false, false),
            knows_states: false,
            in_flight: (0, 0),
            is_report: false,
            device_at_end: None,
        }
    }

    /// Its start and end, between which its phases are; `None` if one of them is missing.
    pub fn phase_bounds(&self) -> Option<(i64, i64)> {
        self.start.zip(self.end)
    }

    /// Its phases, whose lengths add up to the time from its start to its end. None if one of these is missing.
    pub fn phase_rows(&self) -> impl Iterator<Item = Phase> {
        let sync_id = self.sync_id;
        let spans = self.phases.iter().zip(1..).map(move |(span, number)| Phase::of(sync_id, number, span));
        spans.chain(self.phase_bounds().map(|bounds| self.residue_phase(bounds)))
    }

    fn residue_phase(&self, (start, end): (i64, i64)) -> Phase {
        let (mut reached, mut dur, mut pieces) = (start, 0, None);
        for (from, to) in self.phases.iter().map(|span| (span.start, span.end)).chain([(end, end)]) {
            if from > reached {
                dur += from - reached;
                pieces = Some((pieces.map_or(reached, |(first, _)| first), from));
            }
            reached = to;
        }
        // One piece is as long as what it spans.
        let one = pieces.filter(|(first, last)| last - first == dur).map(|(first, _)| first);
        Phase {
            sync_id: self.sync_id,
            number: self.phases.len() as u64 + 1,
            phase: PhaseKind::Residue,
            start: one,
            dur,
            cpu: CpuUser::UNKNOWN,
        }
    }

    /// The negative errno with which it ended.
    pub fn failure(&self) -> Option<i64> {
        self.ret.filter(|&ret| ret < 0)
    }

    pub fn missing(&self) -> Option<Missing> {
        if self.call_only {
            // A call may have returned at an unknown time.
            (self.ret.is_none() && self.end.is_none()).then_some(Missing::End)
        } else if self.start.is_none() {
            Some(Missing::Start)
        } else if self.end.is_none() {
            Some(Missing::End)
        } else if self.call_missing {
            Some(Missing::Call)
        } else if self.submit_missing || self.complete_missing || self.bio_lost {
            Some(Missing::Bio)
        } else {
            None
        }
    }

    /// Whether all of its bios are recorded, although perhaps not from submit to completion.
    fn sees_bios(&self) -> bool {
        !self.bios_unseen && !self.bio_lost
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        let start = if self.call_only { Some(self.first_event) } else { self.start };
        start.zip(self.end)
    }

    /// Bytes written back for it; `None` if unknown.
    pub fn bytes(&self) -> Option<u64> {
        (self.sees_bios() && !self.extent.size_unknown).then_some(self.extent.bytes)
    }

    /// `ts_ns` of its row.
    pub fn ts(&self) -> i64 {
        self.call.map_or(self.start.unwrap_or(self.first_event), |c| c.enter)
    }

    pub fn dur(&self) -> Option<i64> {
        self.bounds().filter(|_| !self.call_missing).map(|(_, end)| end - self.ts())
    }

    pub fn syscall(&self) -> Option<i64> {
        let (_, end) = self.bounds()?;
        self.call.and_then(|c| c.exit.or((!c.exit_lost).then_some(end)).map(|end| end - c.enter))
    }

    pub fn writeback(&self) -> Option<i64> {
        self.bounds()?;
        if !self.sees_bios() {
            return None;
        }
        if self.bios == 0 {
            return Some(0);
        }
        if self.submit_missing || self.complete_missing {
            return None;
        }
        self.last_complete.zip(self.first_submit).map(|(last, first)| last - first)
    }

    /// `None` too if its first bio is older than its start, which came late.
    pub fn before_submit(&self) -> Option<i64> {
        if self.submit_missing || self.has_requests || self.bio_lost {
            return None;
        }
        self.first_submit.zip(self.start).map(|(submit, start)| submit - start).filter(|&ns| ns >= 0)
    }

    /// `None` too if it did not wait for its last bio, because nothing of it came after that completion.
    pub fn after_complete(&self) -> Option<i64> {
        if self.complete_missing || self.bio_lost {
            return None;
        }
        self.end.zip(self.last_complete).map(|(end, complete)| end - complete).filter(|&ns| ns >= 0)
    }

    /// Time spent waiting for a commit of the journal, or making one.
    pub fn journal(&self) -> Option<i64> {
        self.waited(self.waits_known.0, WaitKind::is_of_journal)
    }

    /// Time in cache flushes that its thread issued.
    pub fn flush(&self) -> Option<i64> {
        self.waited(self.waits_known.1, |wait| wait == WaitKind::Flush)
    }

    fn waited(&self, known: bool, of: impl Fn(WaitKind) -> bool) -> Option<i64> {
        self.bounds().filter(|_| known)?;
        Some(covered(self.waits.iter().filter(|waited| of(waited.wait)).map(|waited| (waited.start, waited.end))))
    }

    /// Time in which its thread was ready to run, and waited for a CPU.
    pub fn cpu_wait(&self) -> Option<i64> {
        self.phase_bounds().filter(|_| self.knows_states)?;
        let waits = self.phases.iter().filter(|span| span.phase == PhaseKind::CpuWait);
        Some(waits.map(|span| span.end - span.start).sum())
    }

    /// Time that was spent neither on data, nor on the journal, nor in a flush.
    pub fn other(&self) -> Option<i64> {
        if self.waits_known != (true, true) {
            return None;
        }
        let ((start, end), _) = self.bounds().zip(self.writeback())?;
        let data = self.first_submit.zip(self.last_complete);
        let waits = self.waits.iter().filter(|waited| waited.wait != WaitKind::Metadata);
        let waits = waits.map(|waited| (waited.start, waited.end));
        let mut spans: Vec<(i64, i64)> = waits.chain(data).map(|(from, to)| (from.max(start), to.min(end))).collect();
        spans.sort_unstable();
        Some(end - start - covered(spans.into_iter()))
    }
}

/// Length of the union of spans that are in the order of their starts.
fn covered(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let (mut sum, mut reached) = (0, i64::MIN);
    for (from, to) in spans {
        sum += (to - from.max(reached)).max(0);
        reached = reached.max(to);
    }
    sum
}

impl Row for Request {
    const TABLE: &'static str = "syncline_sync";
    const COLUMNS: &'static [(&'static str, Type)] = columns::SYNC;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("ts_ns", Value::Int(self.ts()));
        f("dur_ns", Value::int(self.dur()));
        f("tid", Value::task(self.tid));
        f("pid", Value::task(self.pid));
        f("comm", Value::name(self.comm));
        f("process", Value::name(self.process));
        f("cgroup", Value::name(self.cgroup));
        f("op", self.call.map(|c| c.op).or(self.lost_op).map_or(Value::Null, |op| Value::Word(op.name())));
        f("datasync", self.datasync.map_or(Value::Null, Value::Bool));
        f("path", Value::name(self.path));
        f("container_path", Value::name(self.container_path));
        f("dev", Value::dev(self.dev));
        f("ino", if self.ino == 0 { Value::Null } else { Value::Int(self.ino as i64) });
        f("fs", Value::name(self.fs));
        f("id", Value::id(self.id));
        f("ret", Value::int(self.ret));
        f("syscall_ns", Value::int(self.syscall()));
        f("writeback_ns", Value::int(self.writeback()));
        f("before_submit_ns", Value::int(self.before_submit()));
        f("after_complete_ns", Value::int(self.after_complete()));
        f("journal_ns", Value::int(self.journal()));
        f("flush_ns", Value::int(self.flush()));
        f("other_ns", Value::int(self.other()));
        f("cpu_wait_ns", Value::int(self.cpu_wait()));
        f("bytes", Value::int(self.bytes().map(|bytes| bytes as i64)));
        let sees_folios = self.sees_bios() || self.extent.folios > 0;
        f("folios", if sees_folios { self.extent.folios_of(self.id) } else { Value::Null });
        f("bios", if self.sees_bios() { Value::Int(self.bios as i64) } else { Value::Null });
        f("ranges", if sees_folios { self.extent.ranges_of(self.id) } else { Value::Null });
        f("first_offset", self.extent.first_offset());
        f("last_offset", self.extent.last_offset());
        f("stack", self.call.map_or(Value::Null, |c| Value::name(c.stack)));
        f("confidence", Value::Word(self.confidence.name()));
        f("incomplete", self.missing().map_or(Value::Null, |m| Value::Word(m.name())));
        f("sync_id", Value::Int(self.sync_id as i64));
        f("start_ns", Value::int(self.start));
        f("call_sync_id", Value::Int(self.call_sync_id as i64));
    }
}

impl Row for WaitInterval {
    const TABLE: &'static str = "syncline_wait";
    const COLUMNS: &'static [(&'static str, Type)] = columns::WAIT;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("sync_id", Value::Int(self.sync_id as i64));
        f("number", Value::Int(self.number as i64));
        f("wait", Value::Word(self.wait.name()));
        f("ts_ns", Value::Int(self.start));
        f("dur_ns", Value::Int(self.end - self.start));
        let is_known = self.transaction != 0;
        f("transaction_id", if is_known { Value::Int(self.transaction as i64) } else { Value::Null });
        f("commit_id", Value::int(self.commit_id.map(|id| id as i64)));
        f("confidence", Value::Word(self.confidence.name()));
    }
}

impl Row for Phase {
    const TABLE: &'static str = "syncline_phase";
    const COLUMNS: &'static [(&'static str, Type)] = columns::PHASE;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("sync_id", Value::Int(self.sync_id as i64));
        f("number", Value::Int(self.number as i64));
        f("phase", Value::Word(self.phase.name()));
        f("ts_ns", Value::int(self.start));
        f("dur_ns", Value::Int(self.dur));
        self.cpu.visit(f);
    }
}

/// Who makes a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitKind {
    /// The thread of the journal, which works for no request of its own.
    #[default]
    Full,
    /// The thread of a sync, of the inodes that changed only. It may give up.
    Fast,
}

impl CommitKind {
    pub const ALL: [Self; 2] = [Self::Full, Self::Fast];

    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "commit",
            Self::Fast => "fast commit",
        }
    }
}

/// The reason for which a commit was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartedBy {
    Sync,
    /// Its transaction had reached the age at which the journal commits it.
    Timer,
    /// A thread needed room in the journal.
    Space,
    Other,
}

impl StartedBy {
    pub const ALL: [Self; 4] = [Self::Sync, Self::Timer, Self::Space, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Timer => "timer",
            Self::Space => "space",
            Self::Other => "other",
        }
    }
}

/// A commit of a journal.
#[derive(Clone, Debug)]
pub struct Commit {
    pub commit_id: u64,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    pub dev: Dev,
    /// 0 if it is not recorded.
    pub transaction: u64,
    pub kind: CommitKind,
    /// `None` if it is not known.
    pub started_by: Option<StartedBy>,
    /// The request that started it.
    pub sync_id: Option<u64>,
    /// The requests that waited for it, sorted; `None` if waits are not recorded.
    pub waiters: Option<Vec<u64>>,
    /// How a fast commit ended, if it is recorded.
    pub status: Option<FastCommitStatus>,
    /// Why it was not eligible.
    pub reason: Option<FastCommitReason>,
    /// The end if the start is missing.
    pub start: i64,
    /// `None` if the start or the end is missing.
    pub end: Option<i64>,
    /// When its steps began, if that is recorded. The first one begins with it.
    pub steps: [Option<i64>; CommitStep::COUNT],
    pub missing: Option<Missing>,
}

impl Commit {
    /// From the begin of a step to the begin of the next one, or to the end of the commit.
    pub fn step(&self, step: CommitStep) -> Option<(i64, i64)> {
        let is_full = self.kind == CommitKind::Full;
        let step = step as usize;
        let begin = if step == 0 { Some(self.start) } else { self.steps[step] };
        let end = self.steps.get(step + 1).copied().unwrap_or(self.end);
        begin.zip(end).filter(|(begin, end)| is_full && end >= begin)
    }

    fn step_ns(&self, step: CommitStep) -> Value {
        Value::int(self.step(step).map(|(begin, end)| end - begin))
    }
}

impl Row for Commit {
    const TABLE: &'static str = "syncline_journal";
    const COLUMNS: &'static [(&'static str, Type)] = columns::JOURNAL;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("commit_id", Value::Int(self.commit_id as i64));
        f("kind", Value::Word(self.kind.name()));
        f("ts_ns", Value::Int(self.start));
        f("dur_ns", Value::int(self.end.map(|end| end - self.start)));
        f("tid", Value::task(self.tid));
        f("pid", Value::task(self.pid));
        f("comm", Value::name(self.comm));
        f("dev", Value::dev(self.dev));
        let is_known = self.transaction != 0;
        f("transaction_id", if is_known { Value::Int(self.transaction as i64) } else { Value::Null });
        f("started_by", self.started_by.map_or(Value::Null, |by| Value::Word(by.name())));
        f("sync_id", Value::int(self.sync_id.map(|id| id as i64)));
        f("syncs", Value::int(self.waiters.as_ref().map(|waiters| waiters.len() as i64)));
        f("status", self.status.map_or(Value::Null, |status| Value::Word(status.name())));
        f("reason", self.reason.map_or(Value::Null, |reason| Value::Word(reason.name())));
        f("locking_ns", self.step_ns(CommitStep::Locking));
        f("flushing_ns", self.step_ns(CommitStep::Flushing));
        f("logging_ns", self.step_ns(CommitStep::Logging));
        f("incomplete", self.missing.map_or(Value::Null, |missing| Value::Word(missing.name())));
    }
}

/// A wait of a thread that writes to a file and is in no sync.
#[derive(Clone, Debug)]
pub struct WriteWait {
    pub wait_id: u64,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    pub kind: WriteWaitKind,
    pub waited_for: WaitedFor,
    pub path: NameId,
    pub start: i64,
    pub end: i64,
    /// Inferred: the end is that of the pause which the kernel chose, or no bio of the thread reads the page.
    pub confidence: Confidence,
}

impl WriteWait {
    pub fn slice_name(&self) -> &'static str {
        match self.kind {
            WriteWaitKind::Throttling => "write waits: throttling",
            WriteWaitKind::InodeLock => "write waits: inode lock",
            WriteWaitKind::JournalHandle => "write waits: journal handle",
            WriteWaitKind::JournalSpace => "write waits: journal space",
            WriteWaitKind::JournalBuffer => "write waits: journal buffer",
            WriteWaitKind::PageWriteback => "write waits: page writeback",
            WriteWaitKind::PageRead => "write waits: page read",
        }
    }
}

impl Row for WriteWait {
    const TABLE: &'static str = "syncline_write_wait";
    const COLUMNS: &'static [(&'static str, Type)] = columns::WRITE_WAIT;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        let WaitedFor { dev, ino, transaction, holder, holder_comm, bytes, bio } = self.waited_for;
        let known = |number: u64| if number == 0 { Value::Null } else { Value::Int(number as i64) };
        f("wait_id", Value::Int(self.wait_id as i64));
        f("ts_ns", Value::Int(self.start));
        f("dur_ns", Value::Int(self.end - self.start));
        f("tid", Value::task(self.tid));
        f("pid", Value::task(self.pid));
        f("comm", Value::name(self.comm));
        f("wait", Value::Word(self.kind.name()));
        f("dev", Value::dev(dev));
        f("ino", known(ino));
        f("path", Value::name(self.path));
        f("bytes", known(bytes));
        f("transaction_id", known(transaction));
        f("holder_tid", known(u64::from(holder)));
        f("holder_comm", Value::name(holder_comm));
        f("bio_id", known(bio));
        f("confidence", Value::Word(self.confidence.name()));
    }
}

/// Which way the data of a bio go. Without known flags it writes, and so does one with folios.
pub fn direction_of(flags: Option<BioFlags>, folios: u64, bytes: u64) -> Direction {
    match flags {
        Some(flags) if folios == 0 => flags.direction(bytes),
        _ => Direction::Write,
    }
}

/// One block I/O request of the file system.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub struct Bio {
    pub bio_id: u64,
    /// The request that it belongs to; `None` for background writeback, and if that is not known.
    pub sync_id: Option<u64>,
    /// The commit in which its thread submitted it.
    pub commit_id: Option<u64>,
    /// A request of the block layer, whose bios are not in the log: it holds any number of them.
    pub is_request: bool,
    /// It belongs to no request that is known, and its thread may have been in one.
    pub origin_unknown: bool,
    /// The first that is known of the request is its issue, so that how long it was in the queue is not.
    pub queue_unknown: bool,
    pub id: u64,
    pub address: u64,
    pub dev: Dev,
    pub sector: i64,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    /// Name and control group of the process.
    pub process: NameId,
    pub cgroup: NameId,
    /// Who made the page cache dirty that it writes, and their control groups.
    pub writers: NameId,
    pub writers_cgroup: NameId,
    /// Where a partition or a device mapper redirected it; unknown if it did not, or if that is not recorded.
    pub below: Dev,
    pub first_event: i64,
    pub submit: Option<i64>,
    /// When the block layer handed it, or the first part of it, to the driver.
    pub issue: Option<i64>,
    /// From the first time to that, if the driver did not take it at once.
    pub requeue_ns: i64,
    pub requeues: u32,
    /// The number of requests that it was split into; 0 if that is not recorded.
    pub parts: u32,
    pub complete: Option<i64>,
    /// 0 or a negative errno; `None` if it is not recorded.
    pub error: Option<i32>,
    pub extent: Extent,
    /// `None` if they are not recorded.
    pub flags: Option<BioFlags>,
    /// Which way its data go, by a recorder that prints no flags.
    pub said: Option<Direction>,
    /// Its recorder reports it when it is over, so it is not known how many were in flight.
    pub is_report: bool,
    /// The file whose page cache a bio writes that belongs to no request. 0 for several, and if it is not known.
    pub ino: u64,
    pub path: NameId,
    /// Path and inode of the file of its request, as far as they are known when it ends. They are no columns of it.
    pub request_file: (NameId, u64),
    pub confidence: Confidence,
    /// (bios, bytes) in flight on its device right after its submit.
    pub in_flight_at_submit: (u32, u64),
    /// The same right after its completion.
    pub in_flight_at_complete: (u32, u64),
}

impl Bio {
    /// A bio that is known only by its first event.
    pub fn new(bio_id: u64, id: u64, first_event: i64) -> Self {
        Self {
            bio_id,
            sync_id: None,
            commit_id: None,
            is_request: false,
            origin_unknown: false,
            queue_unknown: false,
            id,
            address: 0,
            dev: Dev::UNKNOWN,
            sector: NO_SECTOR,
            tid: UNKNOWN_TASK,
            pid: UNKNOWN_TASK,
            comm: NameId::NONE,
            process: NameId::NONE,
            cgroup: NameId::NONE,
            writers: NameId::NONE,
            writers_cgroup: NameId::NONE,
            below: Dev::UNKNOWN,
            first_event,
            submit: None,
            issue: None,
            requeue_ns: 0,
            requeues: 0,
            parts: 0,
            complete: None,
            error: None,
            extent: Extent::default(),
            flags: None,
            said: None,
            is_report: false,
            ino: 0,
            path: NameId::NONE,
            request_file: (NameId::NONE, 0),
            confidence: Confidence::Exact,
            in_flight_at_submit: (0, 0),
            in_flight_at_complete: (0, 0),
        }
    }

    /// Where it was submitted to.
    pub fn place(&self) -> Place {
        Place { dev: self.dev, sector: self.sector }
    }

    pub fn ts(&self) -> i64 {
        self.submit.unwrap_or(self.first_event)
    }

    pub fn dur(&self) -> Option<i64> {
        self.submit.zip(self.complete).map(|(submit, complete)| complete - submit)
    }

    /// From the submit to the issue.
    pub fn queue(&self) -> Option<i64> {
        self.submit.zip(self.issue).filter(|_| !self.queue_unknown).map(|(submit, issue)| issue - submit)
    }

    /// Marks the row: whether it is of a sync is not known.
    pub fn forget_origin(&mut self) {
        (self.origin_unknown, self.ino, self.path) = (true, 0, NameId::NONE);
    }

    pub fn direction(&self) -> Direction {
        if let (None, Some(said)) = (self.flags, self.said) {
            return said;
        }
        let folios = match self.extent {
            Extent { of_bios: true, .. } => 0,
            // Folios of it are missing, so it has some.
            Extent { is_partial: true, folios, .. } => folios.max(1),
            Extent { folios, .. } => folios,
        };
        direction_of(self.flags, folios, self.extent.bytes)
    }

    /// The data that are in flight with it. A discard moves none.
    pub fn moved_bytes(&self) -> u64 {
        let moves = matches!(self.direction(), Direction::Write | Direction::Read | Direction::Unknown);
        if moves { self.extent.bytes } else { 0 }
    }

    /// From the issue to the completion.
    pub fn device(&self) -> Option<i64> {
        self.issue.zip(self.complete).map(|(issue, complete)| complete - issue).filter(|&ns| ns >= 0)
    }

    /// Its size; `None` if neither its folios nor its size are recorded, or if the log may lack some of the folios.
    pub fn bytes(&self) -> Option<i64> {
        // The block layer and probes say that a flush has no data. The patch may not say how large a bio is whose folios are lost.
        let is_flush = (self.address == 0 || self.extent.of_probes) && self.direction() == Direction::Flush;
        let is_known = self.extent.folios > 0 || self.extent.bytes > 0 || is_flush;
        (is_known && !self.extent.is_partial && !self.extent.size_unknown).then_some(self.extent.bytes as i64)
    }

    /// The negative errno with which it completed.
    pub fn failure(&self) -> Option<i64> {
        self.error.map(i64::from).filter(|&error| error < 0)
    }

    fn origin(&self) -> Value {
        match self.sync_id {
            Some(_) => Value::Word("sync"),
            None if self.is_request || self.origin_unknown || !self.direction().is_writeback() => Value::Null,
            None => Value::Word("background"),
        }
    }

    /// That a bio is of no request is certain, unless a line is torn.
    fn confidence_of_request(&self) -> Value {
        let is_certain = self.sync_id.is_none() && (self.is_request || self.confidence == Confidence::Exact);
        if is_certain { Value::Null } else { Value::Word(self.confidence.name()) }
    }

    pub fn missing(&self) -> Option<Missing> {
        if self.submit.is_none() {
            Some(Missing::Start)
        } else if self.complete.is_none() {
            Some(Missing::End)
        } else {
            None
        }
    }
}

columns_of! { Bio, "syncline_bio", columns::BIO, |bio| {
    bio_id: Number(bio_id);
    sync_id: MaybeNumber(sync_id);
    commit_id: MaybeNumber(commit_id);
    id: Id(id);
    ts_ns = Value::Int(bio.ts());
    dur_ns = Value::int(bio.dur());
    queue_ns = Value::int(bio.queue());
    device_ns = Value::int(bio.device());
    requeues = if bio.requeues > 0 { Value::Int(i64::from(bio.requeues)) } else { Value::Null };
    requeue_ns = if bio.requeues > 0 { Value::Int(bio.requeue_ns) } else { Value::Null };
    parts = if bio.parts > 1 { Value::Int(i64::from(bio.parts)) } else { Value::Null };
    error: Errno(error);
    bio: Address(address);
    dev: Device(dev);
    below: Device(below);
    sector: Sector(sector);
    bytes = Value::int(bio.bytes());
    folios = bio.extent.folios_of(bio.id);
    ranges = bio.extent.ranges_of(bio.id);
    first_offset = bio.extent.first_offset();
    last_offset = bio.extent.last_offset();
    direction = Value::Word(bio.direction().name());
    is_request = Value::Bool(bio.is_request);
    rwbs = bio.flags.map_or(Value::Null, |flags| Value::Word(flags.rwbs()));
    ino: Inode(ino);
    path: Name(path);
    tid: Task(tid);
    pid: Task(pid);
    comm: Name(comm);
    process: Name(process);
    cgroup: Name(cgroup);
    writers: Name(writers);
    writers_cgroup: Name(writers_cgroup);
    origin = bio.origin();
    confidence = bio.confidence_of_request();
    incomplete = bio.missing().map_or(Value::Null, |m| Value::Word(m.name()));
} }

/// One sync syscall.
#[derive(Clone, Debug)]
pub struct Call {
    pub call_id: u64,
    pub op: Op,
    pub tid: u32,
    pub pid: u32,
    pub comm: NameId,
    pub process: Process,
    pub stack: NameId,
    /// Path of its file, if the tracer records it with the call.
    pub path: NameId,
    /// No source that records requests recorded this call.
    pub call_only: bool,
    pub enter: i64,
    pub exit: Option<i64>,
    /// It returned at an unknown time.
    pub untimed: bool,
    /// Its exit was lost: it lasted longer than its request.
    pub exit_lost: bool,
    pub ret: Option<i64>,
    /// The request that it belongs to.
    pub sync_id: Option<u64>,
    /// End of that request.
    pub request_end: Option<i64>,
}

impl Call {
    pub fn dur(&self) -> Option<i64> {
        self.exit.or(self.request_end.filter(|_| !self.exit_lost)).map(|end| end - self.enter)
    }
}

impl From<&Call> for CallOf {
    fn from(call: &Call) -> Self {
        Self {
            call_id: call.call_id,
            op: call.op,
            enter: call.enter,
            exit: call.exit,
            exit_lost: call.exit_lost,
            stack: call.stack,
        }
    }
}

impl Row for Call {
    const TABLE: &'static str = "syncline_call";
    const COLUMNS: &'static [(&'static str, Type)] = columns::CALL;

    fn visit(&self, f: &mut impl FnMut(&'static str, Value)) {
        f("call_id", Value::Int(self.call_id as i64));
        f("ts_ns", Value::Int(self.enter));
        f("dur_ns", Value::int(self.dur()));
        f("tid", Value::task(self.tid));
        f("pid", Value::task(self.pid));
        f("comm", Value::name(self.comm));
        f("op", Value::Word(self.op.name()));
        f("ret", Value::int(self.ret));
        f("stack", Value::name(self.stack));
        f("sync_id", Value::int(self.sync_id.map(|id| id as i64)));
        f("unmatched", Value::Bool(self.sync_id.is_none()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_counted_once() {
        assert_eq!(covered([].into_iter()), 0);
        assert_eq!(covered([(0, 10), (2, 5), (8, 12), (20, 20), (30, 31)].into_iter()), 13);
    }

    #[test]
    fn adjacent_ranges_join_in_any_order() {
        let mut ranges = Ranges::default();
        for offset in [8192, 0, 4096, 40960, 45056, 40960] {
            ranges.add(offset, 4096);
        }
        ranges.add(1 << 40, 0);
        assert_eq!(ranges.summary(), (2, Some((0, 49152))));
        assert_eq!(Ranges::default().summary(), (0, None));
    }
}
