//! State across lines: unfinished calls, descriptor tables, thread names, days.
//!
//! Memory grows with live threads and open descriptors, not with the length of the log.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::args::{AT_FDCWD, has_flag};
use super::file_call::Named;
use super::head::prefixes;
use super::line::{Clock, Phase};
use super::parser::{DeferredLines, FileLine, Line, UNFINISHED_KEY};
use super::syscall::{Action, CallName, Known, NO_FD, Sharing, join};
use crate::event::file_op::{Creates, FileCall, FileOpKind, FileReturn, NO_FD as NO_DESCRIPTOR, NO_NUMBER, Naming};
use crate::event::{Event, Kind, Op, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::time_of_day::continue_over_midnight;
use crate::source::{Batch, ENTRY_TIME, Extra, SourceOptions, StatefulPass};

/// A clock with a coarser resolution cannot measure the duration of a call.
pub(super) const COARSE_NS: i64 = 1_000_000;
/// How much longer than a call strace takes between the lines of its two parts. It stops at each of them until the text is written, so a slow
/// disk or terminal delays it: by 52 ms with a slow reader of a pipe.
const MAX_DELAY_NS: i64 = 100_000_000;
/// How much the clock of the times may differ from that of the durations.
const MAX_CLOCK_ERROR_NS: i64 = 1_000_000;
/// How far the time must go back before what is known of files is out of date: further than a clock that is corrected.
const MAX_CORRECTION_NS: i64 = 1_000_000_000;
/// How many of the last lines can be recognized when they come again, 1 MB.
const REMEMBERED_LINES: usize = 1 << 16;
/// Character devices that no sync function exists for. A sync of one returns EINVAL.
const DEVICES: [&[u8]; 9] = [b"null", b"zero", b"full", b"random", b"urandom", b"tty", b"console", b"kmsg", b"ptmx"];
const EINVAL: i64 = 22;

#[derive(Clone)]
struct File {
    path: Option<Rc<[u8]>>,
    /// Writes to it are durable (O_SYNC, O_DSYNC).
    sync: bool,
    cloexec: bool,
}

type Files = HashMap<i32, File, FixedState>;
/// Names of folders that lead elsewhere, by a symbolic link or by `..`, and the folders that they are, as strace has shown for files below them.
type Links = HashMap<Box<[u8]>, Box<[u8]>, FixedState>;
/// A log that has more is not one of a few links.
const MOST_LINKS: usize = 4096;

/// An unfinished call, with the facts from its first line.
struct Pending {
    known: Known,
    call: CallName,
    action: Action,
    text: Option<Rc<[u8]>>,
    /// The file of the descriptor that is duplicated, or of the directory that a path is relative to.
    file: Option<File>,
    since: i64,
    /// Time of the next line of the log, of any thread.
    next: Option<i64>,
    /// Identifies the creation of a child.
    number: u64,
}

impl Pending {
    /// Whether a resumed line at a time is of this call: it has the call's name, and if it says how long the call lasted, that agrees with the
    /// times of both lines. strace prints nothing else while it is delayed in one of them, so it cannot have been delayed for longer than from the
    /// first part to the line after it, and from the line `before` the second part to that.
    fn is_resumed_by(&self, line: &Line, ts: i64, before: Option<i64>, clock: Clock) -> bool {
        if line.known != Some(self.known) || line.call != self.call {
            return false;
        }
        let Some(dur) = line.dur.filter(|_| clock != Clock::LineOrder) else { return true };
        // A duration of whole ms or s may be truncated to these.
        let unit = [1_000_000_000, 1_000_000].into_iter().find(|unit| dur % unit == 0).unwrap_or(1000);
        let slack = MAX_CLOCK_ERROR_NS + dur / 1000 + unit + 4 * line.resolution;
        let delay = ts.saturating_sub(self.since).saturating_sub(dur);
        let quiet = |from: Option<i64>, to: Option<i64>| {
            from.zip(to).map_or(MAX_DELAY_NS, |(from, to)| to.saturating_sub(from).max(0))
        };
        let max_delay = quiet(Some(self.since), self.next).saturating_add(quiet(before, Some(ts))).min(MAX_DELAY_NS);
        (-slack..=max_delay + slack).contains(&delay)
    }

    /// Returns whether the call creates a child.
    fn creates_child(&self) -> bool {
        matches!(self.action, Action::Clone(_))
    }
}

/// The first line of a call, for the low-level log, which has all that is known of a call at its return.
struct Entry {
    name: Box<[u8]>,
    ts: i64,
    fields: Vec<Field>,
}

/// Key and value.
type Field = (Box<[u8]>, Box<[u8]>);

struct Task {
    pid: u32,
    comm: Option<Rc<[u8]>>,
    /// Threads of a process share their table.
    files: Rc<RefCell<Files>>,
    /// The working directory, shared likewise. `None`: that in which the log begins, if no call has shown it.
    cwd: Rc<RefCell<Option<Rc<[u8]>>>>,
    /// What the names of folders mean, shared like the directory, because both depend on the root.
    links: Rc<RefCell<Links>>,
    pending: Option<Pending>,
    /// An unfinished operation on files. It may also be `pending`.
    file_op: Option<Pending>,
    /// Its last call that began; only for the low-level log.
    entry: Option<Entry>,
    /// End of its last sync call or operation on files.
    last_end: i64,
    /// `Pending::number` of the call that created it; 0 if unknown.
    born: u64,
    /// It has called exit. The current call still returns, then the thread is gone; with `-q` strace does not report its end.
    has_exited: bool,
    /// Its process has called exit_group. The threads of a process share this.
    process_has_exited: Rc<Cell<bool>>,
    /// The log has a call of it, so its next call begins in the log too.
    has_called: bool,
}

impl Task {
    fn unknown() -> Self {
        Self {
            pid: UNKNOWN_TASK,
            comm: None,
            files: Rc::default(),
            cwd: Rc::default(),
            links: Rc::default(),
            pending: None,
            file_op: None,
            entry: None,
            last_end: i64::MIN,
            born: 0,
            has_exited: false,
            process_has_exited: Rc::default(),
            has_called: false,
        }
    }

    /// Forgets what lines say that may be out of date, because some of them are missing: the files of descriptors, the working directory.
    fn forget_files(&self) {
        self.files.borrow_mut().clear();
        *self.cwd.borrow_mut() = None;
        self.links.borrow_mut().clear();
    }

    fn is_ending(&self) -> bool {
        self.has_exited || self.process_has_exited.get()
    }

    fn is_creating(&self) -> bool {
        self.pending.as_ref().is_some_and(Pending::creates_child)
    }

    /// Returns the thread a descriptor table of its own.
    fn unshare(&mut self) {
        let own = self.files.borrow().clone();
        self.files = Rc::new(RefCell::new(own));
    }

    /// Returns the thread a working directory of its own.
    fn unshare_cwd(&mut self) {
        let own = self.cwd.borrow().clone();
        self.cwd = Rc::new(RefCell::new(own));
        let own = self.links.borrow().clone();
        self.links = Rc::new(RefCell::new(own));
    }

    /// Makes the child `tid` of `parent`.
    fn child(parent: &Self, tid: u32, shared: Sharing, born: u64) -> Self {
        // Threads share the table and the directory even if CLONE_FILES and CLONE_FS are not printed.
        let Sharing { files, fs, thread } = shared;
        Self {
            pid: if thread { parent.pid } else { tid },
            comm: parent.comm.clone(),
            files: share(&parent.files, files || thread),
            cwd: share(&parent.cwd, fs || thread),
            links: share(&parent.links, fs || thread),
            pending: None,
            file_op: None,
            entry: None,
            last_end: i64::MIN,
            born,
            has_exited: false,
            process_has_exited: if thread { Rc::clone(&parent.process_has_exited) } else { Rc::default() },
            has_called: false,
        }
    }
}

/// Returns what a child has of its parent: the same, or a copy.
fn share<T: Clone>(of_parent: &Rc<RefCell<T>>, is_shared: bool) -> Rc<RefCell<T>> {
    if is_shared { Rc::clone(of_parent) } else { Rc::new(RefCell::new(of_parent.borrow().clone())) }
}

/// The threads of the log, and what is known of them.
#[derive(Default)]
struct Threads {
    by_tid: HashMap<u32, Task, FixedState>,
    creating_calls: usize,
    creators: BTreeSet<u32>,
    ending: usize,
    is_tree: bool,
}

/// Lines that the log repeats, because it was pasted with an overlap, or a part of it was appended to it. What they say of files is out of date:
/// a descriptor may have been closed since. So they are read as if the log began with them, and what was known before them holds again when they
/// are over.
struct Repeat {
    /// The threads as they are known where the lines begin.
    before: Threads,
    /// The time of the last line before them.
    until: i64,
    /// How many lines of that time are still to come again. The clock may be of whole seconds.
    left: usize,
}

impl Repeat {
    /// Whether it is over before a line of this time. Of the last time, lines that come in addition are new.
    fn is_over(&mut self, ts: i64) -> bool {
        if ts != self.until {
            return ts > self.until;
        }
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }
}

/// The times and threads of the last lines.
#[derive(Default)]
struct Remembered {
    lines: VecDeque<(i64, Option<u32>)>,
    /// How often each of them is there.
    counts: HashMap<(i64, Option<u32>), usize, FixedState>,
}

impl Remembered {
    fn push(&mut self, line: (i64, Option<u32>)) {
        if self.lines.len() == REMEMBERED_LINES
            && let Some(oldest) = self.lines.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.lines.push_back(line);
        *self.counts.entry(line).or_default() += 1;
    }

    fn contains(&self, line: (i64, Option<u32>)) -> bool {
        self.counts.contains_key(&line)
    }

    /// The number of the last lines that have this time.
    fn last_at(&self, time: i64) -> usize {
        self.lines.iter().rev().take_while(|&&(ts, _)| ts == time).count()
    }
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub(super) struct StraceState {
    clock: Clock,
    keep_extras: bool,
    keep_file_ops: bool,
    /// The log begins with the start of the program, so all threads descend from its first one. In a log that begins later, or of several
    /// programs, a thread that appears during a clone call need not be its child.
    is_tree: bool,
    by_tid: HashMap<u32, Task, FixedState>,
    /// The thread of lines without a PID.
    only_tid: u32,
    /// Number of child-creating calls: in total (`children`) and unfinished (`making`).
    children: u64,
    creating_calls: usize,
    /// The threads in unfinished child-creating calls, and some whose call has finished.
    creators: BTreeSet<u32>,
    /// Some file was opened with O_SYNC or O_DSYNC.
    has_sync_files: bool,
    /// The log has calls of close.
    has_closes: bool,
    /// Calls that end threads, whose end strace may not report.
    ending: usize,
    /// Time of the last line, and of the last one before this chunk.
    now: Option<i64>,
    before: Option<i64>,
    /// The last line is the first part of a call of this thread.
    begun: Option<u32>,
    /// Without times: how much longer than the lines between their halves the calls lasted that other lines interrupted.
    interrupted_ns: i64,
    remembered: Remembered,
    /// Time of the last line, whatever its call.
    newest: i64,
    repeat: Option<Repeat>,
}

impl StraceState {
    pub(super) fn new(clock: Clock, only_tid: u32, is_tree: bool, options: &SourceOptions) -> Self {
        let &SourceOptions { keep_extras, keep_file_ops, .. } = options;
        Self {
            clock,
            keep_extras,
            keep_file_ops,
            is_tree,
            by_tid: HashMap::default(),
            only_tid,
            children: 0,
            creating_calls: 0,
            creators: BTreeSet::new(),
            has_sync_files: false,
            has_closes: false,
            ending: 0,
            now: None,
            before: None,
            begun: None,
            interrupted_ns: 0,
            remembered: Remembered::default(),
            newest: i64::MIN,
            repeat: None,
        }
    }

    /// Replaces what is known of the threads.
    fn replace_threads(&mut self, with: Threads) -> Threads {
        let Threads { by_tid, creating_calls, creators, ending, is_tree } = with;
        Threads {
            by_tid: std::mem::replace(&mut self.by_tid, by_tid),
            creating_calls: std::mem::replace(&mut self.creating_calls, creating_calls),
            creators: std::mem::replace(&mut self.creators, creators),
            ending: std::mem::replace(&mut self.ending, ending),
            is_tree: std::mem::replace(&mut self.is_tree, is_tree),
        }
    }

    /// Finds out, by the time of the next line, where lines begin that the log has already, and where they end.
    fn follow_repeats(&mut self, line: &Line, ts: i64) {
        // A message of strace may have no time.
        if matches!(self.clock, Clock::Relative | Clock::LineOrder) || line.known.is_none() || is_stored(line) {
            return;
        }
        let last = self.repeat.as_ref().map_or(self.newest, |repeat| repeat.until);
        if let Some(repeat) = self.repeat.take_if(|repeat| repeat.is_over(ts)) {
            self.replace_threads(repeat.before);
        }
        if ts >= self.newest {
            self.newest = ts;
        } else {
            let is_repeated = self.remembered.contains((ts, line.tid));
            let is_far = self.newest - ts > MAX_CORRECTION_NS;
            self.newest = ts;
            if is_repeated || is_far {
                let before = self.replace_threads(Threads::default());
                if is_repeated {
                    // Lines that are repeated twice are out of date as before.
                    let before = self.repeat.take().map_or(before, |repeat| repeat.before);
                    let left = self.remembered.last_at(last);
                    self.repeat = Some(Repeat { before, until: last, left });
                } else {
                    self.repeat = None;
                }
            }
        }
        if self.repeat.is_none() {
            self.remembered.push((ts, line.tid));
        }
    }

    /// Returns the offset of the times of a chunk, given its first and last time.
    fn time_offset(&mut self, (first, last): (i64, i64)) -> i64 {
        let base = match (self.clock, self.now) {
            (Clock::Relative | Clock::LineOrder, Some(now)) => now,
            (Clock::Day, Some(now)) => continue_over_midnight(now, first) - first,
            _ => 0,
        };
        self.before = self.now.replace(base.saturating_add(last));
        base
    }

    /// Returns the thread of a line.
    fn tid_of(&mut self, line: &Line) -> u32 {
        if let Some(tid) = line.tid {
            // This PID belongs to the thread whose lines had no PID.
            if self.only_tid == UNKNOWN_TASK
                && self.creating_calls == 0
                && line.action != Action::Attached
                && !self.by_tid.contains_key(&tid)
            {
                self.only_tid = tid;
                if let Some(mut task) = self.by_tid.remove(&UNKNOWN_TASK) {
                    if task.comm.is_some() {
                        // It has called exec, so it is the leader of its process.
                        task.pid = tid;
                    }
                    self.insert(tid, task);
                }
            }
            return tid;
        }
        // strace omits the PID while there is only one thread.
        if std::mem::take(&mut self.ending) > 0 && self.by_tid.values().any(|task| !task.is_ending()) {
            let ending = self.by_tid.values().filter(|task| task.is_ending());
            self.creating_calls -= ending.filter(|task| task.is_creating()).count();
            self.by_tid.retain(|_, task| !task.is_ending());
        }
        if self.by_tid.len() == 1
            && let Some((&tid, _)) = self.by_tid.iter().next()
        {
            self.only_tid = tid;
        }
        self.only_tid
    }

    /// Registers a thread that runs before the call that creates it has returned.
    #[inline]
    fn register_running_child(&mut self, tid: u32) {
        if self.creating_calls > 0
            && self.is_tree
            && !self.by_tid.contains_key(&tid)
            && let Some(child) = self.only_child(tid)
        {
            self.by_tid.insert(tid, child);
        }
    }

    fn task(&mut self, tid: u32) -> &mut Task {
        self.register_running_child(tid);
        self.by_tid.entry(tid).or_insert_with(Task::unknown)
    }

    /// Returns the child of the only unfinished creating call. With two such calls the parent is unknown.
    fn only_child(&mut self, tid: u32) -> Option<Task> {
        let (mut parents, mut others) = (Vec::new(), Vec::new());
        for &creator in &self.creators {
            let is_creating = self.by_tid.get(&creator).is_some_and(Task::is_creating);
            (if is_creating { &mut parents } else { &mut others }).push(creator);
            if parents.len() > 1 {
                break;
            }
        }
        for creator in others {
            self.creators.remove(&creator);
        }
        let [parent] = parents.as_slice() else { return None };
        let parent = self.by_tid.get(parent)?;
        match parent.pending {
            Some(Pending { action: Action::Clone(shared), number, .. }) => {
                Some(Task::child(parent, tid, shared, number))
            }
            _ => None,
        }
    }

    /// Adds a task under a thread id.
    fn insert(&mut self, tid: u32, task: Task) {
        if task.is_creating() {
            self.creators.insert(tid);
        }
        self.by_tid.insert(tid, task);
    }

    /// A line was torn: it may have opened or closed any file of its process, and ended the call of its thread.
    #[cold]
    fn torn_line(&mut self, tid: Option<u32>) {
        let only = tid.filter(|tid| self.by_tid.contains_key(tid));
        for (_, task) in self.by_tid.iter_mut().filter(|(of, _)| only.is_none_or(|only| only == **of)) {
            task.forget_files();
            self.creating_calls -= usize::from(task.pending.take().is_some_and(|pending| pending.creates_child()));
            task.file_op = None;
            task.entry = None;
        }
    }

    fn line(&mut self, line: &Line, base: i64, deferred: &DeferredLines, batch: &mut Batch) {
        if line.action == Action::Torn {
            return self.torn_line(line.tid);
        }
        // The frequent case: writes that are not syncs. Whether a resumed write is a sync was determined when it began.
        let is_plain = !self.has_sync_files
            && matches!(line.action, Action::Write { says_sync: false, .. })
            && !(line.phase == Phase::Resumed && self.is_syncing(line.tid));
        let tid = self.tid_of(line);
        self.register_running_child(tid);
        let task = match self.by_tid.get_mut(&tid) {
            Some(task) => task,
            None => self.by_tid.entry(tid).or_insert_with(Task::unknown),
        };
        if line.known.is_some()
            && line.phase != Phase::Resumed
            && !is_stored(line)
            && let Some(pending) = task.pending.take()
        {
            self.creating_calls -= usize::from(pending.creates_child());
            if pending.known.is_known_when_resumed() {
                // Its return is not in the log, so other lines may be missing too.
                task.forget_files();
            }
        }
        if is_plain && !self.keep_extras && !self.keep_file_ops {
            task.has_called = true;
            batch.other_name(line.word);
            return;
        }
        let (ts, after) = (line.time.saturating_add(base), line.after.map(|after| after.saturating_add(base)));
        let (keep_extras, is_file_op) = (self.keep_extras, line.file_op != FileLine::None);
        let mut context = LineContext { line, tid, ts, after, deferred, keep_extras, is_file_op };
        if task.last_end > context.ts && task.last_end - context.ts <= line.resolution {
            // Printed times are truncated to the resolution of the clock.
            context.ts = task.last_end;
        }
        let has_called = task.has_called;
        task.has_called |= line.known.is_some();
        if self.keep_file_ops {
            let before = line.before.map(|before| before.saturating_add(base)).or(self.before);
            context.file_op(task, before, self.clock, batch);
            // The threads of a process that ends have made no call for that, and a thread that is killed has not either.
            if line.action == Action::Ended && !task.has_exited {
                context.is_file_op = true;
                context.end_of_thread(task, batch);
            }
        }
        if is_plain {
            return context.other(task, batch);
        }
        let is_resumed =
            line.phase == Phase::Resumed && !is_stored(line) && line.known.is_some_and(Known::is_known_when_resumed);
        let mut pending = task.pending.take_if(|_| is_resumed);
        self.creating_calls -= usize::from(pending.as_ref().is_some_and(Pending::creates_child));
        if is_resumed {
            // If the end of the pending call is lost, the next resumed line belongs to another call.
            let begins_in_log = pending.is_some() || has_called && line.known.is_some_and(Known::is_always_pending);
            let before = line.before.map(|before| before.saturating_add(base)).or(self.before);
            pending = pending.filter(|pending| pending.is_resumed_by(line, context.ts, before, self.clock));
            if pending.is_none() && begins_in_log {
                task.forget_files();
                task.entry = None;
            }
        }
        match line.action {
            Action::Sync { op, fd } => {
                context.sync(task, op, fd, pending.as_ref(), batch);
                if self.clock == Clock::LineOrder && line.phase == Phase::Resumed {
                    self.interrupted_ns += task.last_end.saturating_sub(context.ts).max(0);
                }
            }
            Action::Write { fd, says_sync } => {
                let is_sync = match &pending {
                    Some(pending) => matches!(pending.action, Action::Sync { .. }),
                    None => {
                        says_sync || self.has_sync_files && task.files.borrow().get(&fd).is_some_and(|file| file.sync)
                    }
                };
                if is_sync {
                    context.sync(task, Op::Write, fd, pending.as_ref(), batch);
                } else {
                    context.other(task, batch);
                }
            }
            // The lookup of the thread has already registered it as a child.
            Action::Attached | Action::Seen => {}
            Action::Stored { fd } => {
                let path = line.file.is_some().then(|| Rc::from(batch.names.get(line.file)));
                let files = Rc::clone(&task.files);
                self.returned(&files, fd, path.map(|path| File { path: Some(path), sync: false, cloexec: false }));
            }
            // The descriptor is free once the call begins; another thread may get it before the call returns.
            // It is closed even if close returns an error.
            Action::Close { first, last, unshare: false } if first == last => {
                self.has_closes = true;
                context.other(task, batch);
                task.files.borrow_mut().remove(&(first as i32));
            }
            action => {
                context.other(task, batch);
                self.other(&context, action, pending, batch);
            }
        }
    }

    /// Returns whether the thread is in a write that is a sync.
    fn is_syncing(&self, tid: Option<u32>) -> bool {
        let task = self.by_tid.get(&tid.unwrap_or(self.only_tid));
        let pending = task.and_then(|task| task.pending.as_ref());
        pending.is_some_and(|p| p.known == Known::Write && matches!(p.action, Action::Sync { .. }))
    }

    fn other(&mut self, context: &LineContext<'_>, action: Action, pending: Option<Pending>, batch: &mut Batch) {
        let line = context.line;
        let text = || line.name.is_some().then(|| Rc::from(batch.names.get(line.name)));
        match action {
            Action::Ended => {
                let pending = self.by_tid.remove(&context.tid).and_then(|task| task.pending);
                self.creating_calls -= usize::from(pending.as_ref().is_some_and(Pending::creates_child));
                return;
            }
            Action::Exit { all } => {
                let task = self.task(context.tid);
                task.has_exited = true;
                if all && task.pid != UNKNOWN_TASK {
                    task.process_has_exited.set(true);
                }
                self.ending += 1;
                return;
            }
            Action::Superseded { by } => {
                // The thread that calls exec continues under the PID of the process.
                if let Some(task) = self.by_tid.remove(&by) {
                    self.insert(context.tid, task);
                }
                return;
            }
            // An invalid range closes nothing. A resumed call closed its range when it began.
            Action::Close { first, last, .. } if first > last || line.ret.is_some_and(|ret| ret < 0) => return,
            Action::Close { first, last, unshare } => {
                let task = self.task(context.tid);
                if unshare {
                    task.unshare();
                }
                task.files.borrow_mut().retain(|&fd, _| !(first..=last).contains(&(fd as u32)));
                return;
            }
            Action::Cloexec { .. } if line.ret.is_some_and(|ret| ret < 0) => return,
            Action::Cloexec { first, last, on, unshare } => {
                let task = self.task(context.tid);
                if unshare {
                    task.unshare();
                }
                let mut files = task.files.borrow_mut();
                let in_range = files.iter_mut().filter(|(fd, _)| (first..=last).contains(&(**fd as u32)));
                in_range.for_each(|(_, file)| file.cloexec = on);
                return;
            }
            _ => {}
        }
        if line.phase == Phase::Begun {
            let mut number = 0;
            if matches!(action, Action::Clone(_)) {
                self.children += 1;
                self.creating_calls += 1;
                self.creators.insert(context.tid);
                number = self.children;
            }
            let task = self.task(context.tid);
            let file = referenced_file(action, task);
            context.begin(task, action, text(), file, number);
            return;
        }
        // A resumed line shows no more than the call's name.
        let (action, text, referenced, born) = match pending {
            Some(pending) => (pending.action, pending.text, pending.file, pending.number),
            None if line.phase == Phase::Resumed => (without_begin(action), None, None, 0),
            None => (action, text(), referenced_file(action, self.task(context.tid)), 0),
        };
        let Some(ret) = line.ret.filter(|ret| *ret >= 0) else { return };
        let fd = i32::try_from(ret).unwrap_or(NO_FD);
        let file = || line.file.is_some().then(|| Rc::from(batch.names.get(line.file)));
        let files = &Rc::clone(&self.task(context.tid).files);
        match action {
            Action::Open { sync, cloexec, .. } => {
                self.has_sync_files |= sync;
                let given = text.map(|path| match own_descriptor(&path) {
                    Some(fd) => files.borrow().get(&fd).and_then(|file| file.path.clone()),
                    None => Some(resolve_path(path, referenced)),
                });
                let path = file().or_else(|| given.flatten());
                self.returned(files, fd, Some(File { path, sync, cloexec }));
            }
            // It is duplicated to itself and was not closed meanwhile.
            Action::Dup { fd: same, .. } if same == fd && files.borrow().contains_key(&fd) => {}
            Action::Dup { cloexec, .. } => {
                let annotated = || file().map(|path| File { path: Some(path), sync: false, cloexec });
                let mut files = files.borrow_mut();
                match referenced.or_else(annotated) {
                    Some(file) => files.insert(fd, File { cloexec, ..file }),
                    None => files.remove(&fd),
                };
            }
            Action::Unshare { files, fs } => {
                let task = self.task(context.tid);
                if files {
                    task.unshare();
                }
                if fs {
                    task.unshare_cwd();
                }
            }
            Action::Chdir { dir } => {
                let path = match text {
                    Some(path) => Some(resolve_path(path, referenced)),
                    // strace has cut the name off.
                    None if dir == AT_FDCWD => None,
                    None => referenced.and_then(|file| file.path),
                };
                *self.task(context.tid).cwd.borrow_mut() = path;
            }
            Action::Returns => self.returned(files, fd, None),
            Action::Clone(shared) => self.register_child(context.tid, ret, shared, born),
            Action::Exec => {
                let task = self.task(context.tid);
                task.pid = context.tid;
                task.comm = text.or(task.comm.take());
                task.unshare();
                task.files.borrow_mut().retain(|_, file| !file.cloexec);
            }
            Action::Named => self.task(context.tid).comm = text,
            _ => {}
        }
    }

    /// Notes the file of a descriptor that a call has returned, `None` if it is no file or not known. The kernel returns no descriptor that is
    /// open: if one was not closed, calls are missing, and other files may have been opened and closed in them.
    fn returned(&self, files: &RefCell<Files>, fd: i32, file: Option<File>) {
        let mut files = files.borrow_mut();
        if self.has_closes && files.contains_key(&fd) {
            files.clear();
        }
        match file {
            Some(file) => files.insert(fd, file),
            None => files.remove(&fd),
        };
    }

    /// Registers the child of a returned call. The child may already have run.
    fn register_child(&mut self, parent: u32, child: i64, shared: Sharing, born: u64) {
        let Some(child) = u32::try_from(child).ok().filter(|child| *child > 0) else { return };
        let known = self.by_tid.get(&child);
        if born > 0 && known.is_some_and(|task| task.born == born) {
            return;
        }
        self.children += 1;
        let number = self.children;
        let mut task = Task::child(self.task(parent), child, shared, number);
        // A child that ran before its parent was known may have opened files. An earlier thread with the same PID is gone.
        if let Some(known) = self.by_tid.remove(&child)
            && !known.is_ending()
            && born > 0
            && known.born == 0
        {
            if !Rc::ptr_eq(&task.files, &known.files) {
                task.files.borrow_mut().extend(known.files.borrow().iter().map(|(fd, file)| (*fd, file.clone())));
            }
            task.pending = known.pending;
            task.file_op = known.file_op;
            task.entry = known.entry;
            task.last_end = known.last_end;
            task.pid = if known.pid == UNKNOWN_TASK { task.pid } else { known.pid };
            task.comm = known.comm.or(task.comm);
        }
        self.by_tid.insert(child, task);
    }
}

/// A resumed call whose start is not in the log. Some calls can be used without it.
fn without_begin(action: Action) -> Action {
    match action {
        Action::Open { .. } | Action::Returns => action,
        _ => Action::Other,
    }
}

/// The facts besides its result that the return of a sync call shows.
#[derive(Clone, Copy)]
struct CallExit {
    stack: NameId,
    untimed: bool,
    entry_lost: bool,
}

/// The less sure of two ways in which files are known.
fn weaker(one: Naming, other: Naming) -> Naming {
    match (one, other) {
        (Naming::Unknown, _) | (_, Naming::Unknown) => Naming::Unknown,
        (Naming::Followed, _) | (_, Naming::Followed) => Naming::Followed,
        (Naming::Shown, Naming::Shown) => Naming::Shown,
    }
}

/// Whether a line adds to the call of the line before it.
fn is_stored(line: &Line) -> bool {
    matches!(line.action, Action::Stored { .. })
}

/// Whether a path is that of a character device that no sync of it succeeds. A sync that does is of another file, whose descriptor had the
/// number of the device's.
fn is_device(path: &[u8]) -> bool {
    path.strip_prefix(b"/dev/").is_some_and(|name| DEVICES.contains(&name) || name.starts_with(b"pts/"))
}

/// The descriptor whose file a name below /proc means: `/proc/self/fd/3`.
fn own_descriptor(path: &[u8]) -> Option<i32> {
    let number =
        [&b"/proc/self/fd/"[..], b"/proc/thread-self/fd/", b"/dev/fd/"].iter().find_map(|at| path.strip_prefix(*at))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Notes what the name of a folder means, by the name with which a program opened a file or a folder, and by that which the kernel gives it.
fn learn_link(links: &mut Links, given: &[u8], shown: &[u8], flags: &[u8]) {
    if given == shown {
        // No part of it is a link any more.
        return while let Some((at, _)) = link_above(links, given) {
            links.remove(&given[..at]);
        };
    }
    let has = |flag| has_flag(flags, flag);
    let (folder, real) = if has(b"O_DIRECTORY") {
        (Some(given), Some(shown))
    } else if has(b"O_NOFOLLOW") || has(b"O_CREAT") && has(b"O_EXCL") || without_dots(given) == shown {
        // The last part is no link. Otherwise it may be one to a file of the same name.
        (folder_of(given), folder_of(shown))
    } else {
        return;
    };
    let (Some(folder), Some(real)) = (folder, real) else { return };
    if folder == real || !folder.starts_with(b"/") || !real.starts_with(b"/") || shown.ends_with(b" (deleted)") {
        return;
    }
    if links.len() == MOST_LINKS {
        links.clear();
    }
    links.insert(folder.into(), real.into());
}

fn folder_of(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at])
}

/// A path from the root without `..`, if no part of it is a link.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut parts = Vec::new();
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        if part == b".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.iter().flat_map(|part| [&b"/"[..], part].concat()).collect()
}

/// The name of a file whose folder is named by way of a link. A link that is the last part of a name is meant itself.
fn without_links(links: &Links, path: &[u8]) -> Option<Vec<u8>> {
    let (at, folder) = link_above(links, path)?;
    Some([folder, &path[at..]].concat())
}

/// The deepest folder above a path that is known to lead elsewhere: the length of its name, and the folder that it is.
fn link_above<'a>(links: &'a Links, path: &[u8]) -> Option<(usize, &'a [u8])> {
    if links.is_empty() {
        return None;
    }
    let mut folders = path.iter().enumerate().rev().filter(|(at, byte)| *at > 0 && **byte == b'/').map(|(at, _)| at);
    folders.find_map(|at| Some((at, &**links.get(&path[..at])?)))
}

/// The file that a call refers to when it begins. Another thread may close it before the call returns.
fn referenced_file(action: Action, task: &Task) -> Option<File> {
    match action {
        Action::Open { dir: AT_FDCWD, .. } | Action::Chdir { dir: AT_FDCWD } => {
            let cwd = task.cwd.borrow().clone();
            cwd.map(|path| File { path: Some(path), sync: false, cloexec: false })
        }
        Action::Dup { fd, .. } | Action::Open { dir: fd, .. } | Action::Chdir { dir: fd } => {
            task.files.borrow().get(&fd).cloned()
        }
        _ => None,
    }
}

/// Returns the path, resolved against `dir` if it is relative.
fn resolve_path(path: Rc<[u8]>, dir: Option<File>) -> Rc<[u8]> {
    match dir {
        Some(File { path: Some(dir), .. }) if !path.starts_with(b"/") => {
            // `..` stays: it may lead elsewhere if the folder is a symbolic link.
            let steps = path.split(|&b| b == b'/').filter(|step| !step.is_empty() && *step != b".");
            steps.fold(dir.to_vec(), |folder, step| join(&folder, step)).into()
        }
        _ => path,
    }
}

/// A line, and action all of its events have in common.
struct LineContext<'a> {
    line: &'a Line,
    tid: u32,
    ts: i64,
    /// Time of the line after it, if the chunk has one.
    after: Option<i64>,
    deferred: &'a DeferredLines,
    keep_extras: bool,
    /// It is an event as an operation on files.
    is_file_op: bool,
}

impl LineContext<'_> {
    fn event(&self, task: &mut Task, ts: i64, kind: Kind, suffix: &[u8], extras: bool, batch: &mut Batch) {
        let line = self.line;
        let comm = match &task.comm {
            _ if line.comm.is_some() => line.comm,
            Some(comm) => batch.names.intern(comm),
            None => NameId::NONE,
        };
        if self.keep_extras {
            let word = if suffix.is_empty() {
                line.word
            } else {
                let word = [batch.names.get(line.word), suffix].concat();
                batch.names.intern(&word)
            };
            batch.event_names.push(word);
            let fields = if extras { self.fields() } else { &[] };
            match kind {
                _ if line.phase == Phase::Begun => self.keep_entry(task, batch),
                Kind::CallEnter { .. } if line.phase == Phase::Whole => self.keep_entry(task, batch),
                Kind::CallExit { .. } => self.add_entry(task, fields, batch),
                _ if line.phase == Phase::Resumed => self.add_entry(task, fields, batch),
                _ => {}
            }
            let event = batch.events.len() as u32;
            batch.extras.extend(fields.iter().map(|&(key, value)| Extra { event, key, value }));
        }
        batch.events.push(Event { ts, tid: self.tid, pid: task.pid, comm, line: line.number, kind });
    }

    /// The fields of the line that only the low-level log shows.
    fn fields(&self) -> &[(NameId, NameId)] {
        let (from, to) = self.line.extras;
        &self.deferred.extras[from as usize..to as usize]
    }

    /// Keeps what the first line of a call shows.
    fn keep_entry(&self, task: &mut Task, batch: &Batch) {
        let own = |name| Box::from(batch.names.get(name));
        let fields = self.fields().iter().map(|&(key, value)| (own(key), own(value)));
        let fields = fields.filter(|(key, _)| **key != *UNFINISHED_KEY).collect();
        task.entry = Some(Entry { name: own(self.line.word), ts: self.ts, fields });
    }

    /// Adds the time and the fields of the first line of a call to its return. `fields` are those of the return, which take precedence.
    fn add_entry(&self, task: &mut Task, fields: &[(NameId, NameId)], batch: &mut Batch) {
        // If the return of that call is lost, this is the return of another one.
        let Some(entry) = task.entry.take().filter(|entry| *entry.name == *batch.names.get(self.line.word)) else {
            return;
        };
        let event = batch.events.len() as u32;
        let is_own = |key: &[u8], batch: &Batch| fields.iter().any(|&(own, _)| batch.names.get(own) == key);
        let time = (Box::from(ENTRY_TIME), Box::from(entry.ts.to_string().as_bytes()));
        for (key, value) in std::iter::once(time).chain(entry.fields) {
            if !is_own(&key, batch) {
                let (key, value) = (batch.names.intern(&key), batch.names.intern(&value));
                batch.extras.push(Extra { event, key, value });
            }
        }
    }

    /// Adds what the line has of an operation on files. `before` is the time of the line before it.
    fn file_op(&self, task: &mut Task, before: Option<i64>, clock: Clock, batch: &mut Batch) {
        let line = self.line;
        if line.known.is_some() && line.phase != Phase::Resumed && !is_stored(line) {
            // The thread is in another call, so that one has returned, or its return is not in the log.
            task.file_op = None;
        }
        let (op, entry_lost) = match line.file_op {
            FileLine::None => return,
            FileLine::Call(index) => {
                let args = &self.deferred.file_calls[index as usize];
                let (fd, path, mut naming) = Self::resolve(task, args.file, batch);
                let (_, to_path, to_naming) = Self::resolve(task, args.to, batch);
                if matches!(args.op, FileOpKind::Rename | FileOpKind::Unlink | FileOpKind::Symlink) {
                    // A link of one of these names leads elsewhere now, or nowhere.
                    let mut links = task.links.borrow_mut();
                    for name in [path, to_path] {
                        links.remove(batch.names.get(name));
                    }
                }
                if args.op == FileOpKind::Rename || args.op == FileOpKind::Link {
                    naming = weaker(naming, to_naming);
                }
                if args.op == FileOpKind::Open && line.file.is_some() {
                    let (_, given, _) = Self::named(task, args.file, batch);
                    let [given, shown, flags] = [given, line.file, args.flags].map(|name| batch.names.get(name));
                    learn_link(&mut task.links.borrow_mut(), given, shown, flags);
                }
                if args.op == FileOpKind::Exit {
                    naming = Naming::Shown;
                }
                // A call in two parts has its stack below the second one.
                let stack = if line.phase == Phase::Whole { line.stack } else { NameId::NONE };
                let call = FileCall {
                    op: args.op,
                    creates: args.creates,
                    naming,
                    fd,
                    path,
                    to_path,
                    flags: args.flags,
                    stack,
                    offset: args.offset,
                    len: args.len,
                };
                self.event(task, self.ts, Kind::FileCall(call), b"", false, batch);
                if args.op == FileOpKind::Exit {
                    return;
                }
                if line.phase == Phase::Begun {
                    task.file_op = self.pending(Action::Other, None, None, 0);
                    return;
                }
                (args.op, false)
            }
            FileLine::Return { op, is_certain } => {
                let begun = task.file_op.take().filter(|begun| begun.is_resumed_by(line, self.ts, before, clock));
                match begun {
                    Some(begun) => return self.file_return(task, op, Some(begun.since), false, batch),
                    None if is_certain => (op, true),
                    None => return,
                }
            }
        };
        self.file_return(task, op, None, entry_lost, batch);
    }

    fn end_of_thread(&self, task: &mut Task, batch: &mut Batch) {
        let call = FileCall {
            op: FileOpKind::Exit,
            creates: Creates::NotAsked,
            naming: Naming::Shown,
            fd: NO_DESCRIPTOR,
            path: NameId::NONE,
            to_path: NameId::NONE,
            flags: self.line.name,
            stack: NameId::NONE,
            offset: NO_NUMBER,
            len: NO_NUMBER,
        };
        self.event(task, self.ts, Kind::FileCall(call), b"", true, batch);
    }

    /// `since`: when it began, if that was on another line.
    fn file_return(&self, task: &mut Task, op: FileOpKind, since: Option<i64>, entry_lost: bool, batch: &mut Batch) {
        let line = self.line;
        let lasted = line.dur.unwrap_or(NO_NUMBER);
        let end = match (since, line.dur) {
            _ if entry_lost => self.ts,
            (Some(since), Some(dur)) => since.saturating_add(dur),
            (Some(_), None) => self.ts,
            (None, dur) => self.ts.saturating_add(dur.unwrap_or(0)),
        };
        let is_coarse = line.has_cut_dur || line.resolution > COARSE_NS;
        let untimed = line.dur.is_none() && (line.phase == Phase::Whole || is_coarse);
        let stack = if line.phase == Phase::Whole { NameId::NONE } else { line.stack };
        let path = if op == FileOpKind::Open { line.file } else { NameId::NONE };
        let kind =
            Kind::FileReturn(FileReturn { op, untimed, entry_lost, path, stack, ret: line.ret, lasted, created: None });
        self.event(task, end, kind, b"", false, batch);
        if !entry_lost {
            task.last_end = task.last_end.max(end);
        }
    }

    /// Returns the descriptor and the path of a file, and how they are known.
    fn resolve(task: &Task, file: Named, batch: &mut Batch) -> (i32, NameId, Naming) {
        let (fd, path, naming) = Self::named(task, file, batch);
        let is_no_name = !file.path.is_some() || file.fd == NO_FD;
        match without_links(&task.links.borrow(), batch.names.get(path)).filter(|_| !is_no_name) {
            Some(path) => (fd, batch.names.intern(&path), weaker(naming, Naming::Followed)),
            None => (fd, path, naming),
        }
    }

    /// The same, with the name that the program gives it, links and all.
    fn named(task: &Task, file: Named, batch: &mut Batch) -> (i32, NameId, Naming) {
        let Named { fd, shown, path } = file;
        if fd == AT_FDCWD && shown.is_some() {
            // Calls such as rename() name no folder, so strace says only here which it is.
            *task.cwd.borrow_mut() = Some(batch.names.get(shown).into());
        }
        let own_fd = if fd == AT_FDCWD { NO_DESCRIPTOR } else { fd };
        let followed = |batch: &mut Batch| {
            let path = match fd {
                AT_FDCWD => task.cwd.borrow().clone(),
                _ => task.files.borrow().get(&fd).and_then(|file| file.path.clone()),
            };
            path.map_or(NameId::NONE, |path| batch.names.intern(&path))
        };
        if !path.is_some() {
            return match (shown.is_some(), fd) {
                (true, _) => (own_fd, shown, Naming::Shown),
                (false, NO_FD | AT_FDCWD) => (NO_DESCRIPTOR, NameId::NONE, Naming::Unknown),
                _ => {
                    let path = followed(batch);
                    (own_fd, path, if path.is_some() { Naming::Followed } else { Naming::Unknown })
                }
            };
        }
        if fd == NO_FD {
            // The text of a symbolic link.
            return (NO_DESCRIPTOR, path, Naming::Shown);
        }
        if let Some(fd) = own_descriptor(batch.names.get(path)) {
            let path = task.files.borrow().get(&fd).and_then(|file| file.path.clone());
            let path = path.map_or(NameId::NONE, |path| batch.names.intern(&path));
            return (NO_DESCRIPTOR, path, if path.is_some() { Naming::Followed } else { Naming::Unknown });
        }
        if batch.names.get(path).starts_with(b"/") {
            return (NO_DESCRIPTOR, path, Naming::Shown);
        }
        let (folder, naming) =
            if shown.is_some() { (shown, Naming::Shown) } else { (followed(batch), Naming::Followed) };
        if !folder.is_some() {
            return (NO_DESCRIPTOR, path, Naming::Followed);
        }
        let names = &batch.names;
        let folder = File { path: Some(names.get(folder).into()), sync: false, cloexec: false };
        let whole = resolve_path(names.get(path).into(), Some(folder));
        (NO_DESCRIPTOR, batch.names.intern(&whole), naming)
    }

    fn sync(&self, task: &mut Task, op: Op, fd: i32, pending: Option<&Pending>, batch: &mut Batch) {
        let line = self.line;
        let exit = CallExit { stack: line.stack, untimed: false, entry_lost: false };
        if line.phase == Phase::Resumed {
            // strace measures the duration around the call, and with a monotonic clock.
            let end = match (pending, line.dur) {
                (Some(pending), Some(dur)) => pending.since.saturating_add(dur),
                _ => self.ts,
            };
            let untimed = line.dur.is_none() && (line.has_cut_dur || line.resolution > COARSE_NS);
            return self.exit(task, end, op, CallExit { untimed, entry_lost: pending.is_none(), ..exit }, batch);
        }
        let path = if line.name.is_some() {
            line.name
        } else {
            let files = task.files.borrow();
            let path = files.get(&fd).and_then(|file| file.path.as_ref());
            let path = path.filter(|path| line.ret == Some(-EINVAL) || !is_device(path));
            path.map_or(NameId::NONE, |path| batch.names.intern(path))
        };
        self.event(task, self.ts, Kind::CallEnter { op, stack: line.stack, path, call_only: true }, b"", true, batch);
        if line.phase == Phase::Begun {
            return self.begin(task, Action::Sync { op, fd }, None, None, 0);
        }
        if line.ret.is_some() {
            let end = line.dur.map_or(self.ts, |dur| self.ts.saturating_add(dur));
            let untimed = line.dur.is_none();
            self.exit(task, end, op, CallExit { stack: NameId::NONE, untimed, ..exit }, batch);
        }
    }

    /// Remembers a call that a later line resumes.
    fn begin(&self, task: &mut Task, action: Action, text: Option<Rc<[u8]>>, file: Option<File>, number: u64) {
        if let Some(pending) = self.pending(action, text, file, number) {
            task.pending = Some(pending);
        }
    }

    fn pending(&self, action: Action, text: Option<Rc<[u8]>>, file: Option<File>, number: u64) -> Option<Pending> {
        let known = self.line.known?;
        let (call, since, next) = (self.line.call, self.ts, self.after);
        Some(Pending { known, call, action, text, file, since, next, number })
    }

    fn exit(&self, task: &mut Task, ts: i64, op: Op, exit: CallExit, batch: &mut Batch) {
        // Without a result the call did not return: the thread is gone.
        let Some(ret) = self.line.ret else { return };
        let CallExit { stack, untimed, entry_lost } = exit;
        let kind = Kind::CallExit { op, ret: Some(ret), stack, untimed, entry_lost };
        self.event(task, ts, kind, b"_exit", false, batch);
        task.last_end = task.last_end.max(ts);
    }

    /// Appends an event that only the low-level log shows.
    #[inline]
    fn other(&self, task: &mut Task, batch: &mut Batch) {
        if self.keep_extras {
            self.other_event(task, batch);
        } else if !self.is_file_op {
            batch.other_name(self.line.word);
        }
    }

    fn other_event(&self, task: &mut Task, batch: &mut Batch) {
        self.event(task, self.ts, Kind::Other, b"", true, batch);
        if let (Action::Write { .. }, Some(ret)) = (self.line.action, self.line.ret) {
            let (key, value) = (batch.names.intern(b"ret"), batch.names.intern(ret.to_string().as_bytes()));
            batch.extras.push(Extra { event: batch.events.len() as u32 - 1, key, value });
        }
    }
}

impl StatefulPass for StraceState {
    /// Each line at the start of the input names its thread, at least one thread is known, and the first time is not before the last one.
    fn is_continued_by(&self, head: &[u8]) -> bool {
        let Some(first) = prefixes(head).next().map(|prefix| prefix.time) else { return false };
        let is_later =
            first.is_none_or(|first| first.clock != Clock::Unix || self.now.is_none_or(|now| now <= first.ns));
        first.map_or(Clock::LineOrder, |first| first.clock) == self.clock
            && is_later
            && prefixes(head).all(|prefix| prefix.tid.is_some())
            && prefixes(head).any(|prefix| prefix.tid.is_some_and(|tid| self.by_tid.contains_key(&tid)))
    }

    fn apply(&mut self, batch: &mut Batch) {
        let Some(deferred) = batch.deferred.take().and_then(|deferred| deferred.downcast::<DeferredLines>().ok())
        else {
            return;
        };
        let base = deferred.times.map_or(0, |times| self.time_offset(times));
        if let Some(first) = deferred.first_line
            && let Some(tid) = self.begun.take()
            && let Some(task) = self.by_tid.get_mut(&tid)
        {
            let begun = task.pending.iter_mut().chain(&mut task.file_op);
            begun.for_each(|begun| _ = begun.next.get_or_insert(base.saturating_add(first)));
        }
        let mut notes = 0;
        for line in &deferred.lines {
            // Positions notes, which the parser added without events, among the events.
            while let Some(note) = batch.notes.get_mut(notes).filter(|note| note.line < u64::from(line.number)) {
                note.after = batch.events.len() as u32;
                notes += 1;
            }
            self.follow_repeats(line, line.time.saturating_add(base));
            self.line(line, base.saturating_add(self.interrupted_ns), &deferred, batch);
        }
        let last = deferred.lines.last().filter(|line| line.phase == Phase::Begun && line.after.is_none());
        self.begun = last.map(|line| line.tid.unwrap_or(self.only_tid)).or(self.begun);
        let events = batch.events.len() as u32;
        batch.notes[notes..].iter_mut().for_each(|note| note.after = events);
        batch.deferred = Some(deferred);
    }
}
