//! Turns the values of a row's columns back into the row, which has other fields.
//!
//! A row that does not give the same values again is refused: nothing is read wrongly without notice.

use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::file_op::{FileOpKind, NO_FD};
use crate::event::probe::{WaitedFor, WriteWaitKind};
use crate::event::{Dev, FastCommitReason, FastCommitStatus, NO_ID, Op, UNKNOWN_TASK, WaitKind};
use crate::names::NameId;
use crate::rows::derived::column;
use crate::rows::file_op::FileOp;
use crate::rows::{
    Bio, Call, CallOf, Commit, CommitKind, Confidence, CpuUser, Extent, Missing, Phase, PhaseSpan, Process, Request,
    Row, StartedBy, Value, WaitInterval, WriteWait, columns, values,
};
use crate::trace_layout::sync_of_flow;

/// The position of a column in the table of a row.
macro_rules! at {
    ($row:ty, $name:literal) => {
        const { column::<$row>($name) }
    };
}
pub(super) use at;

/// Every word that a column may hold.
pub(super) fn word(text: &str) -> Option<&'static str> {
    let ops = Op::ALL.iter().map(|op| op.name());
    let waits = WaitKind::ALL.iter().map(|wait| wait.name());
    let confidences = Confidence::ALL.iter().map(|confidence| confidence.name());
    let missing = Missing::ALL.iter().map(|missing| missing.name());
    let kinds = CommitKind::ALL.iter().map(|kind| kind.name());
    let starts = StartedBy::ALL.iter().map(|by| by.name());
    let statuses = FastCommitStatus::ALL.iter().map(|status| status.name());
    let reasons = FastCommitReason::ALL.iter().map(|reason| reason.name());
    let of_commits = kinds.chain(starts).chain(statuses).chain(reasons);
    let write_waits = WriteWaitKind::ALL.iter().map(|kind| kind.name());
    let file_ops = FileOpKind::ALL.iter().map(|kind| kind.name());
    let mut words =
        ops.chain(waits).chain(confidences).chain(missing).chain(of_commits).chain(write_waits).chain(file_ops);
    let mut directions = Direction::ALL.iter().map(|direction| direction.name());
    words
        .find(|word| *word == text)
        .or_else(|| directions.find(|word| *word == text))
        .or_else(|| BioFlags::of_word(text).map(BioFlags::rwbs))
}

/// Returns the device of `major,minor`, or of a name.
pub(super) fn dev(text: &str) -> Option<Dev> {
    let Some((major, minor)) = text.split_once(',') else { return Dev::named(text) };
    let dev = Dev::new(major.parse().ok().filter(|&major: &u32| major < 1 << 12)?, minor.parse().ok()?);
    (dev.to_string() == text).then_some(dev)
}

fn int(value: Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

fn name(value: Value) -> NameId {
    match value {
        Value::Name(name) => name,
        _ => NameId::NONE,
    }
}

fn task(value: Value) -> u32 {
    int(value).and_then(|id| u32::try_from(id).ok()).unwrap_or(UNKNOWN_TASK)
}

pub(super) fn direction(value: Value) -> Option<Direction> {
    named(value, &Direction::ALL, Direction::name)
}

fn device(value: Value) -> Dev {
    match value {
        Value::Dev(dev) => dev,
        _ => Dev::UNKNOWN,
    }
}

fn id(value: Value) -> u64 {
    match value {
        Value::UInt(id) => id,
        _ => NO_ID,
    }
}

fn named<T: Copy>(value: Value, all: &[T], name: impl Fn(T) -> &'static str) -> Option<T> {
    let Value::Word(word) = value else { return None };
    all.iter().copied().find(|one| name(*one) == word)
}

fn extent(id: u64, [bytes, folios, ranges, first, last]: [Value; 5]) -> Extent {
    let span = int(first).zip(int(last)).map(|(first, last)| (first as u64, last as u64));
    let number = |value: Value| int(value).unwrap_or_default() as u64;
    let has_folios = int(folios).is_some();
    Extent {
        bytes: number(bytes),
        // Bios without known folios may have a known size of 0.
        folios: if has_folios { number(folios) } else { u64::from(int(bytes).is_some()) },
        ranges: number(ranges),
        span,
        of_bios: !has_folios,
        size_unknown: int(bytes).is_none(),
        of_probes: has_folios && id == NO_ID,
        offsets_unknown: has_folios && int(ranges).is_none(),
        is_partial: false,
    }
}

/// Returns the row if it has exactly these values.
fn checked<R: Row, const N: usize>(row: R, want: &[Value; N]) -> Option<R> {
    let have: [Value; N] = values(&row);
    (have == *want).then_some(row)
}

/// The first submit and the last completion of a request between start and end: `before`, `writeback` and `after` are the time between
/// them. `before` is null if the first submit is older than the start, `after` if the last completion is younger than the end.
fn data_bounds(
    (start, end): (i64, Option<i64>),
    (before, writeback, after): (Option<i64>, Option<i64>, Option<i64>),
) -> (Option<i64>, Option<i64>) {
    let mut submit = before.and_then(|ns| start.checked_add(ns));
    let mut complete = end.zip(after).and_then(|(end, ns)| end.checked_sub(ns));
    if let Some(writeback) = writeback {
        if complete.is_none() {
            let beyond = end.and_then(|end| end.checked_add(1));
            complete = submit.map_or(beyond, |submit| submit.checked_add(writeback));
        }
        submit = submit.or_else(|| complete?.checked_sub(writeback));
    }
    (submit, complete)
}

/// `slice` is start and end of its slice; `call_ts` the entry of its call.
pub(super) fn request<const N: usize>(
    v: &[Value; N],
    slice: (i64, i64),
    call_ts: Option<i64>,
    (waits, phases): (Vec<WaitInterval>, Vec<PhaseSpan>),
) -> Option<Request> {
    let mut v = *v;
    for at in [at!(Request, "before_submit_ns"), at!(Request, "after_complete_ns")] {
        // Traces of earlier versions say by how much a bio outlived its request.
        v[at] = Value::int(int(v[at]).filter(|&ns| ns >= 0));
    }
    let missing = named(v[at!(Request, "incomplete")], &Missing::ALL, Missing::name);
    let (has_start, has_end) = (missing != Some(Missing::Start), missing != Some(Missing::End));
    let id = id(v[at!(Request, "id")]);
    let fs = name(v[at!(Request, "fs")]);
    let call_only = has_start && v[at!(Request, "start_ns")] == Value::Null;
    let syscall = int(v[at!(Request, "syscall_ns")]);
    // A call may have returned at an unknown time.
    let is_open = call_only && syscall.is_none();
    let end = Some(slice.1).filter(|_| has_end && !is_open);
    let op = named(v[at!(Request, "op")], &Op::ALL, Op::name);
    // A call whose entry is not in the log may still have an op, from its exit.
    let call_missing = missing == Some(Missing::Call) || op.is_some() && call_ts.is_none();
    let enter = call_ts.filter(|_| op.is_some() && !call_missing);
    let before = int(v[at!(Request, "before_submit_ns")]);
    let after = int(v[at!(Request, "after_complete_ns")]);
    let lacks_bio = missing == Some(Missing::Bio);
    let bios = int(v[at!(Request, "bios")]);
    let writeback = int(v[at!(Request, "writeback_ns")]).filter(|_| bios != Some(0));
    let (first_submit, last_complete) = data_bounds((slice.0, end), (before, writeback, after));
    let start = Some(slice.0).filter(|_| has_start && !call_only);
    let row = Request {
        tid: task(v[at!(Request, "tid")]),
        pid: task(v[at!(Request, "pid")]),
        comm: name(v[at!(Request, "comm")]),
        process: name(v[at!(Request, "process")]),
        cgroup: name(v[at!(Request, "cgroup")]),
        fs,
        path: name(v[at!(Request, "path")]),
        container_path: name(v[at!(Request, "container_path")]),
        dev: device(v[at!(Request, "dev")]),
        ino: int(v[at!(Request, "ino")]).unwrap_or_default() as u64,
        datasync: match v[at!(Request, "datasync")] {
            Value::Bool(datasync) => Some(datasync),
            _ => None,
        },
        call: op.zip(enter).map(|(op, enter)| CallOf {
            call_id: 0,
            op,
            enter,
            exit: syscall.and_then(|ns| enter.checked_add(ns)),
            exit_lost: syscall.is_none() && !call_only,
            stack: name(v[at!(Request, "stack")]),
        }),
        call_sync_id: int(v[at!(Request, "call_sync_id")])? as u64,
        call_missing,
        lost_op: op.filter(|_| call_missing),
        call_only,
        last_event: slice.1,
        start,
        end,
        ret: int(v[at!(Request, "ret")]),
        first_submit,
        last_complete,
        submit_missing: lacks_bio && before.is_none(),
        has_requests: before.is_none() && first_submit.is_some(),
        complete_missing: lacks_bio && after.is_none(),
        extent: extent(
            id,
            [
                v[at!(Request, "bytes")],
                v[at!(Request, "folios")],
                v[at!(Request, "ranges")],
                v[at!(Request, "first_offset")],
                v[at!(Request, "last_offset")],
            ],
        ),
        bios: bios.unwrap_or_default() as u64,
        bios_unseen: bios.is_none(),
        confidence: named(v[at!(Request, "confidence")], &Confidence::ALL, Confidence::name)?,
        waits_known: (int(v[at!(Request, "journal_ns")]).is_some(), int(v[at!(Request, "flush_ns")]).is_some()),
        knows_states: int(v[at!(Request, "cpu_wait_ns")]).is_some(),
        waits,
        // A request without a start or an end has waits, and no phases.
        phases: if start.is_some() && end.is_some() { phases } else { Vec::new() },
        ..Request::new(int(v[at!(Request, "sync_id")])? as u64, id, slice.0)
    };
    checked(row, &v)
}

/// `ts` is the start of its slice.
pub(super) fn bio(v: &[Value; columns::BIO.len()], ts: i64, (is_request, origin_unknown): (bool, bool)) -> Option<Bio> {
    let missing = named(v[at!(Bio, "incomplete")], &Missing::ALL, Missing::name);
    let submit = Some(ts).filter(|_| missing != Some(Missing::Start));
    let id = id(v[at!(Bio, "id")]);
    let dur = int(v[at!(Bio, "dur_ns")]);
    let device_ns = int(v[at!(Bio, "device_ns")]);
    let mut complete = submit.zip(dur).and_then(|(submit, ns)| submit.checked_add(ns));
    let mut issue = submit.zip(int(v[at!(Bio, "queue_ns")])).and_then(|(submit, ns)| submit.checked_add(ns));
    let queue_unknown = is_request && submit.is_some() && issue.is_none() && device_ns.is_some();
    if queue_unknown {
        issue = complete.zip(device_ns).and_then(|(complete, ns)| complete.checked_sub(ns));
    }
    if submit.is_none() {
        issue = device_ns.map(|_| ts);
        complete = device_ns.and_then(|ns| ts.checked_add(ns));
    }
    let number = |value: Value| int(value).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
    let flags = match v[at!(Bio, "rwbs")] {
        Value::Word(rwbs) => BioFlags::of_word(rwbs),
        _ => None,
    };
    let mut row = Bio {
        is_request,
        origin_unknown,
        queue_unknown,
        submit,
        issue,
        requeue_ns: int(v[at!(Bio, "requeue_ns")]).unwrap_or_default(),
        requeues: number(v[at!(Bio, "requeues")]),
        parts: number(v[at!(Bio, "parts")]),
        complete,
        extent: extent(
            id,
            [
                v[at!(Bio, "bytes")],
                v[at!(Bio, "folios")],
                v[at!(Bio, "ranges")],
                v[at!(Bio, "first_offset")],
                v[at!(Bio, "last_offset")],
            ],
        ),
        flags,
        said: direction(v[at!(Bio, "direction")]).filter(|_| is_request && flags.is_none()),
        confidence: named(v[at!(Bio, "confidence")], &Confidence::ALL, Confidence::name).unwrap_or_default(),
        ..Bio::new(0, id, ts)
    };
    row.read_fields(v);
    checked(row, v)
}

pub(super) fn call<const N: usize>(v: &[Value; N], enter: i64) -> Option<Call> {
    let row = Call {
        call_id: int(v[at!(Call, "call_id")])? as u64,
        op: named(v[at!(Call, "op")], &Op::ALL, Op::name)?,
        tid: task(v[at!(Call, "tid")]),
        pid: task(v[at!(Call, "pid")]),
        comm: name(v[at!(Call, "comm")]),
        process: Process::default(),
        stack: name(v[at!(Call, "stack")]),
        path: NameId::NONE,
        call_only: false,
        enter,
        exit: int(v[at!(Call, "dur_ns")]).and_then(|ns| enter.checked_add(ns)),
        untimed: false,
        exit_lost: false,
        ret: int(v[at!(Call, "ret")]),
        sync_id: int(v[at!(Call, "sync_id")]).map(|id| id as u64),
        request_end: None,
    };
    checked(row, v)
}

pub(super) fn wait<const N: usize>(v: &[Value; N]) -> Option<WaitInterval> {
    let start = int(v[at!(WaitInterval, "ts_ns")])?;
    let row = WaitInterval {
        sync_id: int(v[at!(WaitInterval, "sync_id")])? as u64,
        number: int(v[at!(WaitInterval, "number")])? as u64,
        wait: named(v[at!(WaitInterval, "wait")], &WaitKind::ALL, WaitKind::name)?,
        start,
        end: start.checked_add(int(v[at!(WaitInterval, "dur_ns")])?)?,
        transaction: int(v[at!(WaitInterval, "transaction_id")]).unwrap_or_default() as u64,
        commit_id: int(v[at!(WaitInterval, "commit_id")]).map(|id| id as u64),
        confidence: named(v[at!(WaitInterval, "confidence")], &Confidence::ALL, Confidence::name)?,
    };
    checked(row, v)
}

/// Who had the CPU in a phase.
pub(super) fn cpu_user(v: &[Value; columns::PHASE.len()]) -> Option<CpuUser> {
    let user = CpuUser {
        tid: task(v[at!(Phase, "cpu_tid")]),
        pid: task(v[at!(Phase, "cpu_pid")]),
        comm: name(v[at!(Phase, "cpu_comm")]),
        process: name(v[at!(Phase, "cpu_process")]),
        cgroup: name(v[at!(Phase, "cpu_cgroup")]),
        ..CpuUser::UNKNOWN
    };
    if !user.is_known() {
        return Some(CpuUser::UNKNOWN);
    }
    let confidence = named(v[at!(Phase, "cpu_confidence")], &Confidence::ALL, Confidence::name)?;
    Some(CpuUser { confidence, ..user })
}

pub(super) fn commit<const N: usize>(v: &[Value; N], start: i64, flows: &[u64]) -> Option<Commit> {
    let end = int(v[at!(Commit, "dur_ns")]).and_then(|ns| start.checked_add(ns));
    let [locking, flushing, logging] =
        [at!(Commit, "locking_ns"), at!(Commit, "flushing_ns"), at!(Commit, "logging_ns")].map(|at| int(v[at]));
    let flushing_begin = locking.and_then(|ns| start.checked_add(ns));
    let before_end = end.zip(logging).and_then(|(end, ns)| end.checked_sub(ns));
    let logging_begin = flushing_begin.zip(flushing).and_then(|(begin, ns)| begin.checked_add(ns)).or(before_end);
    let row = Commit {
        commit_id: int(v[at!(Commit, "commit_id")])? as u64,
        tid: task(v[at!(Commit, "tid")]),
        pid: task(v[at!(Commit, "pid")]),
        comm: name(v[at!(Commit, "comm")]),
        dev: device(v[at!(Commit, "dev")]),
        transaction: int(v[at!(Commit, "transaction_id")]).unwrap_or_default() as u64,
        kind: named(v[at!(Commit, "kind")], &CommitKind::ALL, CommitKind::name)?,
        started_by: named(v[at!(Commit, "started_by")], &StartedBy::ALL, StartedBy::name),
        sync_id: int(v[at!(Commit, "sync_id")]).map(|id| id as u64),
        waiters: int(v[at!(Commit, "syncs")]).map(|_| flows.iter().map(|&flow| sync_of_flow(flow)).collect()),
        status: named(v[at!(Commit, "status")], &FastCommitStatus::ALL, FastCommitStatus::name),
        reason: named(v[at!(Commit, "reason")], &FastCommitReason::ALL, FastCommitReason::name),
        start,
        end,
        steps: [None, flushing_begin, logging_begin],
        missing: named(v[at!(Commit, "incomplete")], &Missing::ALL, Missing::name),
    };
    checked(row, v)
}

pub(super) fn write_wait<const N: usize>(v: &[Value; N], (start, end): (i64, i64)) -> Option<WriteWait> {
    let number = |at: usize| int(v[at]).unwrap_or_default() as u64;
    let row = WriteWait {
        wait_id: int(v[at!(WriteWait, "wait_id")])? as u64,
        tid: task(v[at!(WriteWait, "tid")]),
        pid: task(v[at!(WriteWait, "pid")]),
        comm: name(v[at!(WriteWait, "comm")]),
        kind: named(v[at!(WriteWait, "wait")], &WriteWaitKind::ALL, WriteWaitKind::name)?,
        waited_for: WaitedFor {
            dev: device(v[at!(WriteWait, "dev")]),
            ino: number(at!(WriteWait, "ino")),
            transaction: number(at!(WriteWait, "transaction_id")),
            holder: int(v[at!(WriteWait, "holder_tid")]).map_or(0, |tid| tid as u32),
            holder_comm: name(v[at!(WriteWait, "holder_comm")]),
            bytes: number(at!(WriteWait, "bytes")),
            bio: number(at!(WriteWait, "bio_id")),
        },
        path: name(v[at!(WriteWait, "path")]),
        start,
        end,
        confidence: named(v[at!(WriteWait, "confidence")], &Confidence::ALL, Confidence::name)?,
    };
    checked(row, v)
}

pub(super) fn file_op<const N: usize>(v: &[Value; N], start: i64) -> Option<FileOp> {
    let row = FileOp {
        op_id: int(v[at!(FileOp, "op_id")])? as u64,
        op: named(v[at!(FileOp, "op")], &FileOpKind::ALL, FileOpKind::name)?,
        tid: task(v[at!(FileOp, "tid")]),
        pid: task(v[at!(FileOp, "pid")]),
        comm: name(v[at!(FileOp, "comm")]),
        fd: int(v[at!(FileOp, "fd")]).map_or(NO_FD, |fd| fd as i32),
        path: name(v[at!(FileOp, "path")]),
        to_path: name(v[at!(FileOp, "to_path")]),
        flags: name(v[at!(FileOp, "flags")]),
        stack: name(v[at!(FileOp, "stack")]),
        created: match v[at!(FileOp, "created")] {
            Value::Bool(created) => Some(created),
            _ => None,
        },
        offset: int(v[at!(FileOp, "offset_bytes")]),
        bytes: int(v[at!(FileOp, "bytes")]),
        ret: int(v[at!(FileOp, "ret")]),
        start,
        dur: int(v[at!(FileOp, "dur_ns")]),
        confidence: named(v[at!(FileOp, "confidence")], &Confidence::ALL, Confidence::name)?,
        missing: named(v[at!(FileOp, "incomplete")], &Missing::ALL, Missing::name),
    };
    checked(row, v)
}
