//! Columns that a trace does not repeat, because they follow from the slice of a row, its track, its call, its bios, or from what the trace
//! says once for all rows. The writer of a trace, its reader and the SQL in sql/tables/perfetto/ use these rules.
//!
//! The writer leaves out a value only if the rules derive the same one. If they derive a value, or may derive one from what the trace says
//! later, where the row has none, the row is written in full, and nothing is derived in it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Bio, Call, Confidence, Missing, Request, Row, Value};
use crate::event::Op;
use crate::event::bio_flags::Direction;
use crate::names::NameId;

/// Number of threads, and of processes, that a trace describes once. The rows of further ones hold all their values, so memory is bounded.
const MAX_DESCRIBED: usize = 1 << 14;
/// Number of rows in which a value must occur to become a default.
const MAX_UNDECIDED: u32 = 16;
/// Sizes from here on, which only a broken log has, are not summed: SQL cannot sum them without an overflow.
const MAX_BYTES: i64 = 1 << 40;
const PAGE_BYTES: i64 = 4096;

/// Returns the position of a column in its table.
///
/// # Panics
///
/// If the table has no such column. Callers evaluate it in a `const`, where that is an error of the compiler.
pub const fn column<R: Row>(name: &str) -> usize {
    let mut at = 0;
    while at < R::COLUMNS.len() {
        if is_equal(R::COLUMNS[at].0.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no such column")
}

const fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

/// A row while its columns are derived: one that is written, or one that is read.
pub trait Derive {
    fn get(&self, column: usize) -> Value;

    /// States the value that the rules derive.
    fn derive(&mut self, column: usize, value: Value);

    /// States that the rules derive no value yet, but may derive one later.
    fn may_derive(&mut self, column: usize);

    fn int(&self, column: usize) -> Option<i64> {
        match self.get(column) {
            Value::Int(value) => Some(value),
            Value::UInt(value) => i64::try_from(value).ok(),
            _ => None,
        }
    }
}

/// A row that is written, with the columns that can be left out.
pub struct Written<'a> {
    values: &'a [Value],
    left_out: u64,
    is_full: bool,
}

impl<'a> Written<'a> {
    pub fn new(values: &'a [Value]) -> Self {
        Self { values, left_out: 0, is_full: false }
    }

    pub fn make_full(&mut self) {
        self.is_full = true;
    }

    /// Writes a column although it can be derived.
    pub fn keep(&mut self, column: usize) {
        self.left_out &= !(1 << column);
    }

    /// Returns one bit for each column that need not be written; `None` if the row must be written in full.
    pub fn left_out(&self) -> Option<u64> {
        (!self.is_full).then_some(self.left_out)
    }
}

impl Derive for Written<'_> {
    #[inline]
    fn get(&self, column: usize) -> Value {
        self.values[column]
    }

    #[inline]
    fn derive(&mut self, column: usize, value: Value) {
        if value == self.values[column] {
            self.left_out |= 1 << column;
        } else if self.values[column] == Value::Null {
            self.is_full = true;
        }
    }

    #[inline]
    fn may_derive(&mut self, column: usize) {
        self.is_full |= self.values[column] == Value::Null;
    }
}

/// A row that is read. A value in the trace takes precedence over a derived one.
pub struct ReadRow<'a>(pub &'a mut [Value]);

impl Derive for ReadRow<'_> {
    fn get(&self, column: usize) -> Value {
        self.0[column]
    }

    fn derive(&mut self, column: usize, value: Value) {
        if self.0[column] == Value::Null {
            self.0[column] = value;
        }
    }

    fn may_derive(&mut self, _: usize) {}
}

/// A value that most rows have. The trace says it once, and leaves it out of each row that has it. The first rows decide which value it is,
/// or that there is none.
#[derive(Clone, Copy, Debug, Default)]
pub enum Common<T> {
    #[default]
    Undecided,
    /// The number of rows without one.
    Missed(u32),
    None,
    Is(T),
}

impl<T: Copy> Common<T> {
    /// Takes the value of a row. Returns it if it was decided now.
    #[inline]
    pub fn decide(&mut self, value: impl FnOnce() -> Option<T>) -> Option<T> {
        let missed = match *self {
            Self::Undecided => 0,
            Self::Missed(rows) => rows,
            Self::None | Self::Is(_) => return None,
        };
        let value = value();
        *self = match value {
            Some(value) => Self::Is(value),
            None if missed < MAX_UNDECIDED => Self::Missed(missed + 1),
            None => Self::None,
        };
        value
    }

    /// Derives columns of a row from it.
    fn derive<const N: usize>(self, row: &mut impl Derive, columns: [usize; N], values: impl FnOnce(T) -> [Value; N]) {
        match self {
            Self::Undecided | Self::Missed(_) => columns.into_iter().for_each(|column| row.may_derive(column)),
            Self::None => {}
            Self::Is(common) => {
                columns.into_iter().zip(values(common)).for_each(|(column, value)| row.derive(column, value));
            }
        }
    }
}

/// Values that most requests have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommonRequest {
    pub dev: Value,
    pub fs: Value,
    /// 0, or null.
    pub ret: Value,
    /// 0, or null if waits are not recorded.
    pub journal: Value,
    /// The same for flushes.
    pub flush: Value,
}

impl CommonRequest {
    /// Returns what a request says of others; `None` if its start is not known.
    pub fn of(request: &Request) -> Option<Self> {
        let zero = |value: Option<i64>| value.map_or(Value::Null, |_| Value::Int(0));
        request.fs.is_some().then(|| Self {
            dev: Value::dev(request.dev),
            fs: Value::Name(request.fs),
            ret: zero(request.ret),
            journal: zero(request.journal()),
            flush: zero(request.flush()),
        })
    }
}

/// Visits every name among values.
pub fn visit_names<'a>(values: impl IntoIterator<Item = &'a Value>, f: &mut dyn FnMut(NameId)) {
    for value in values {
        if let Value::Name(name) = value {
            f(*name);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thread {
    pub pid: Value,
    pub comm: Value,
}

/// Name and control group of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownProcess {
    pub name: Value,
    pub cgroup: Value,
}

/// Facts that a trace states once for all rows.
#[derive(Debug, Default)]
pub struct Known {
    pub request: Common<CommonRequest>,
    /// `ret` of calls.
    pub call: Common<i64>,
    /// `error` of bios.
    pub bio: Common<i64>,
    /// The difference of a request's id from its `sync_id`.
    pub id_offset: Common<i64>,
    threads: HashMap<u32, Thread, FixedState>,
    processes: HashMap<u32, KnownProcess, FixedState>,
}

impl Known {
    /// Whether a thread can be described: it is not yet.
    pub fn has_room_for_thread(&self, tid: u32) -> bool {
        self.threads.len() < MAX_DESCRIBED && !self.threads.contains_key(&tid)
    }

    /// Describes a thread. Returns whether it was new.
    pub fn add_thread(&mut self, tid: u32, thread: Thread) -> bool {
        if !self.has_room_for_thread(tid) {
            return false;
        }
        self.threads.insert(tid, thread);
        true
    }

    /// Describes a process. Returns whether it was new.
    pub fn add_process(&mut self, pid: u32, process: KnownProcess) -> bool {
        if self.processes.len() >= MAX_DESCRIBED || self.processes.contains_key(&pid) {
            return false;
        }
        self.processes.insert(pid, process);
        true
    }

    /// The name of a process that was described with one.
    pub fn process_name(&self, pid: u32) -> Option<NameId> {
        match self.processes.get(&pid)?.name {
            Value::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Visits every name.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        visit_names(self.processes.values().flat_map(|process| [&process.name, &process.cgroup]), f);
        visit_names(self.threads.values().map(|thread| &thread.comm), f);
        if let Common::Is(request) = &self.request {
            visit_names([&request.fs], f);
        }
    }
}

fn task_number(value: Value) -> Option<u32> {
    match value {
        Value::Int(number) => u32::try_from(number).ok(),
        _ => None,
    }
}

fn add(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    left?.checked_add(right?)
}

fn subtract(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    left?.checked_sub(right?)
}

/// Derives name and process of the thread whose number the row has.
fn derive_thread(row: &mut impl Derive, known: &Known, [tid, pid, comm]: [usize; 3]) {
    let Some(number) = task_number(row.get(tid)) else { return };
    if let Some(thread) = known.threads.get(&number) {
        row.derive(pid, thread.pid);
        row.derive(comm, thread.comm);
    } else {
        row.may_derive(pid);
        row.may_derive(comm);
    }
}

/// Derives name and control group of the process whose number the row has.
fn derive_process(row: &mut impl Derive, known: &Known, [pid, process, cgroup]: [usize; 3]) {
    let Some(number) = task_number(row.get(pid)) else { return };
    if let Some(of) = known.processes.get(&number) {
        row.derive(process, of.name);
        row.derive(cgroup, of.cgroup);
    } else {
        row.may_derive(process);
        row.may_derive(cgroup);
    }
}

/// Returns the number of the thread of a track: what SQL can say of it.
pub fn tid_of_track(tid: u32) -> Value {
    if tid < i32::MAX as u32 { Value::Int(i64::from(tid)) } else { Value::Null }
}

/// Derives the columns of a call on the track of the thread `tid`.
pub fn derive_call(row: &mut impl Derive, known: &Known, tid: Value) {
    const TID: usize = column::<Call>("tid");
    const PID: usize = column::<Call>("pid");
    const COMM: usize = column::<Call>("comm");
    const RET: usize = column::<Call>("ret");
    row.derive(TID, tid);
    derive_thread(row, known, [TID, PID, COMM]);
    known.call.derive(row, [RET], |ret| [Value::Int(ret)]);
}

/// Derives the columns of a bio. `dev` is the device of its track.
pub fn derive_bio(row: &mut impl Derive, known: &Known, dev: Value) {
    const SYNC_ID: usize = column::<Bio>("sync_id");
    const ID: usize = column::<Bio>("id");
    const ERROR: usize = column::<Bio>("error");
    const TID: usize = column::<Bio>("tid");
    const PID: usize = column::<Bio>("pid");
    const COMM: usize = column::<Bio>("comm");
    const FIRST: usize = column::<Bio>("first_offset");
    let sync_id = row.int(SYNC_ID);
    known.id_offset.derive(row, [ID], |offset| [sync_id.map_or(Value::UInt(0), |sync_id| id_of(sync_id, offset))]);
    let queue = row.int(const { column::<Bio>("queue_ns") });
    let dur = row.int(const { column::<Bio>("dur_ns") });
    row.derive(const { column::<Bio>("device_ns") }, Value::int(subtract(dur, queue)));
    if row.get(const { column::<Bio>("incomplete") }) != Value::Word(Missing::End.name()) {
        known.bio.derive(row, [ERROR], |error| [Value::Int(error)]);
    }
    row.derive(const { column::<Bio>("dev") }, dev);
    let bytes = row.int(const { column::<Bio>("bytes") });
    if let Some(bytes) = bytes.filter(|&bytes| row.get(ID) != Value::Null && is_size(bytes)) {
        row.derive(const { column::<Bio>("folios") }, Value::Int((bytes + PAGE_BYTES - 1) / PAGE_BYTES));
        row.derive(const { column::<Bio>("ranges") }, Value::Int(i64::from(bytes > 0)));
    }
    row.derive(const { column::<Bio>("last_offset") }, Value::int(add(row.int(FIRST), bytes)));
    derive_thread(row, known, [TID, PID, COMM]);
    derive_process(row, known, [PID, const { column::<Bio>("process") }, const { column::<Bio>("cgroup") }]);
    if sync_id.is_some() {
        row.derive(const { column::<Bio>("confidence") }, Value::Word(Confidence::Exact.name()));
    }
}

fn is_size(bytes: i64) -> bool {
    (0..MAX_BYTES).contains(&bytes)
}

/// Returns the id of a request; null if SQL, which has only signed integers, cannot add the offset.
fn id_of(sync_id: i64, offset: i64) -> Value {
    sync_id.checked_add(offset).map_or(Value::Null, |id| Value::UInt(id as u64))
}

/// Sums over the bios of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct BioSums {
    pub count: u64,
    /// Number of bios whose submit or completion is missing.
    incomplete: u64,
    /// From the first submit to the last completion.
    span: Option<(i64, i64)>,
    bytes: KnownSum,
    folios: KnownSum,
    ranges: KnownSum,
    offsets: Option<(i64, i64)>,
}

/// A sum, and the number of values in it.
#[derive(Clone, Copy, Debug, Default)]
struct KnownSum {
    sum: i64,
    count: u64,
}

impl KnownSum {
    fn add(&mut self, value: Option<i64>) {
        if let Some(value) = value.filter(|&value| is_size(value)) {
            self.sum = self.sum.wrapping_add(value);
            self.count += 1;
        }
    }

    fn of(self, count: u64) -> Value {
        if self.count == count { Value::Int(self.sum) } else { Value::Null }
    }
}

impl BioSums {
    /// Adds a bio by the values of its columns.
    pub fn add(&mut self, values: &[Value]) {
        let int = |column: usize| match values[column] {
            Value::Int(value) => Some(value),
            _ => None,
        };
        // A flush writes no data back.
        if values[const { column::<Bio>("direction") }] == Value::Word(Direction::Flush.name()) {
            return;
        }
        self.count += 1;
        let ts = int(const { column::<Bio>("ts_ns") });
        if let Some((ts, end)) = ts.zip(add(ts, int(const { column::<Bio>("dur_ns") }))) {
            let (first, last) = self.span.unwrap_or((ts, end));
            self.span = Some((first.min(ts), last.max(end)));
        } else {
            self.incomplete += 1;
        }
        self.bytes.add(int(const { column::<Bio>("bytes") }));
        self.folios.add(int(const { column::<Bio>("folios") }));
        self.ranges.add(int(const { column::<Bio>("ranges") }));
        let offsets = int(const { column::<Bio>("first_offset") }).zip(int(const { column::<Bio>("last_offset") }));
        if let Some((from, to)) = offsets {
            let (first, last) = self.offsets.unwrap_or((from, to));
            self.offsets = Some((first.min(from), last.max(to)));
        }
    }

    /// From the first submit to the last completion, if all are known.
    fn data(&self) -> Option<(i64, i64)> {
        self.span.filter(|_| self.incomplete == 0)
    }
}

/// The call of a request, as its slice in a trace states it.
#[derive(Clone, Copy, Debug)]
pub struct KnownCall {
    pub sync_id: u64,
    pub op: &'static str,
    pub ts: i64,
    pub dur: Option<i64>,
    pub stack: Value,
}

/// Where a request is in a trace.
pub struct RequestPlace {
    /// Start and end of its slice.
    pub slice: (i64, i64),
    /// Thread of its track.
    pub tid: Value,
    /// Its call, unless that was written in full.
    pub call: Option<KnownCall>,
    pub bios: Option<BioSums>,
}

/// Derives the columns of a request.
pub fn derive_request(row: &mut impl Derive, known: &Known, place: &RequestPlace) {
    const TID: usize = column::<Request>("tid");
    const PID: usize = column::<Request>("pid");
    const COMM: usize = column::<Request>("comm");
    const OP: usize = column::<Request>("op");
    const DEV: usize = column::<Request>("dev");
    const FS: usize = column::<Request>("fs");
    const ID: usize = column::<Request>("id");
    const RET: usize = column::<Request>("ret");
    let incomplete = row.get(const { column::<Request>("incomplete") });
    let has_start = incomplete != Value::Word(Missing::Start.name());
    let has_end = incomplete != Value::Word(Missing::End.name());

    row.derive(TID, place.tid);
    derive_thread(row, known, [TID, PID, COMM]);
    derive_process(row, known, [PID, const { column::<Request>("process") }, const { column::<Request>("cgroup") }]);
    row.derive(const { column::<Request>("confidence") }, Value::Word(Confidence::Exact.name()));
    if let Some(call) = place.call {
        row.derive(OP, Value::Word(call.op));
        row.derive(const { column::<Request>("stack") }, call.stack);
        if has_start && has_end {
            row.derive(const { column::<Request>("syscall_ns") }, Value::int(call.dur));
        }
    }
    if has_start {
        known.request.derive(row, [DEV, FS], |common| [common.dev, common.fs]);
    }
    if has_end {
        known.request.derive(row, [RET], |common| [common.ret]);
    }
    let has_fs = row.get(FS) != Value::Null;
    if has_fs {
        if let Some(sync_id) = row.int(const { column::<Request>("sync_id") }) {
            known.id_offset.derive(row, [ID], |offset| [id_of(sync_id, offset)]);
        }
        let is_data_sync = |op: Op| Value::Bool(op == Op::Fdatasync);
        if let Some(op) = [Op::Fsync, Op::Fdatasync].into_iter().find(|op| row.get(OP) == Value::Word(op.name())) {
            row.derive(const { column::<Request>("datasync") }, is_data_sync(op));
        }
    }
    if has_fs || place.bios.is_some() {
        derive_from_bios(row, place, has_start, has_end);
    }
    if has_start && has_end {
        derive_waits(row, known, place);
    }
}

fn derive_from_bios(row: &mut impl Derive, place: &RequestPlace, has_start: bool, has_end: bool) {
    let has_id = row.get(const { column::<Request>("id") }) != Value::Null;
    let sums = place.bios.unwrap_or_default();
    row.derive(const { column::<Request>("bios") }, Value::Int(sums.count as i64));
    row.derive(const { column::<Request>("bytes") }, sums.bytes.of(sums.count));
    if sums.count > 0 || has_id {
        row.derive(const { column::<Request>("folios") }, sums.folios.of(sums.count));
        row.derive(const { column::<Request>("ranges") }, sums.ranges.of(sums.count));
    }
    if let Some((first, last)) = sums.offsets {
        row.derive(const { column::<Request>("first_offset") }, Value::Int(first));
        row.derive(const { column::<Request>("last_offset") }, Value::Int(last));
    }
    if sums.count == 0 {
        if has_start && has_end {
            row.derive(const { column::<Request>("writeback_ns") }, Value::Int(0));
        }
        return;
    }
    let Some((submit, complete)) = sums.data() else { return };
    if has_start && has_end {
        row.derive(const { column::<Request>("writeback_ns") }, Value::int(complete.checked_sub(submit)));
    }
    let (start, end) = place.slice;
    let length = |ns: Option<i64>| Value::int(ns.filter(|&ns| ns >= 0));
    if has_start {
        row.derive(const { column::<Request>("before_submit_ns") }, length(submit.checked_sub(start)));
    }
    if has_end {
        row.derive(const { column::<Request>("after_complete_ns") }, length(end.checked_sub(complete)));
    }
}

/// Derives the times of waits for a request without any.
fn derive_waits(row: &mut impl Derive, known: &Known, place: &RequestPlace) {
    const JOURNAL: usize = column::<Request>("journal_ns");
    const FLUSH: usize = column::<Request>("flush_ns");
    known.request.derive(row, [JOURNAL, FLUSH], |common| [common.journal, common.flush]);
    if (row.int(JOURNAL), row.int(FLUSH)) != (Some(0), Some(0)) {
        return;
    }
    let (start, end) = place.slice;
    let other = match row.int(const { column::<Request>("bios") }) {
        None => None,
        Some(0) => end.checked_sub(start),
        Some(_) => {
            let before = row.int(const { column::<Request>("before_submit_ns") });
            add(before, row.int(const { column::<Request>("after_complete_ns") }))
        }
    };
    row.derive(const { column::<Request>("other_ns") }, Value::int(other));
}
