//! Finds which function a `}` ends, and which thread a line is of, in the order of the text.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::functions::{Logged, Role, entry, logged, returned, role_of};
use super::line::{Line, Named, Shape};
use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};
use crate::names::NameId;
use crate::source::batch::TORN_LINE;
use crate::source::{Batch, Extra, Note, NoteKind, StatefulPass};

const NO_TASK: &str = "nothing says which thread the function is of: record with the option funcgraph-proc";
const NOT_INSIDE: &str = "the functions of its thread are not one inside another here, so a line before it is missing";
const NOT_ITS_END: &str =
    "the function that it would end began at another time, or is another one, so lines before it are missing";
/// By how much the time between two lines may exceed the duration that the kernel prints. If it does by more, the function that ends began later
/// than the one that is open. It may be shorter by any time, because the clock of an entry is read after the begin of its duration.
const MAX_OLDER_NS: i64 = 2_000_000;
/// If it exceeds that by more than this, an interrupt came between the two clocks, or the lines between two short functions are missing.
const SURELY_SAME_NS: i64 = 50_000;
const ANY_FILE_SYSTEM: &[u8] = b"vfs_fsync_range";

/// Stands for the name of a function of which the log has the return only.
const BEGAN_BEFORE: &[u8] = b"the return of a function that began before the log";

/// The lines of functions of a chunk.
#[derive(Default)]
pub(super) struct Deferred {
    pub(super) lines: Vec<GraphLine>,
}

pub(super) struct GraphLine {
    number: u32,
    ts: i64,
    cpu: Option<u32>,
    tid: Option<u32>,
    comm: NameId,
    depth: u32,
    what: What,
}

enum What {
    Enter(NameId),
    Leaf {
        name: NameId,
        dur: i64,
        ret: Option<i64>,
    },
    Leave {
        name: NameId,
        dur: Option<i64>,
        ret: Option<i64>,
    },
    /// The thread that runs from then on.
    Switch {
        to: (NameId, u32),
    },
    /// Another recording begins.
    Head,
    Aside,
}

impl GraphLine {
    /// The head of a recording.
    pub(super) fn head(number: u32) -> Self {
        Self { number, ts: 0, cpu: None, tid: None, comm: NameId::NONE, depth: 0, what: What::Head }
    }

    pub(super) fn new(line: &Line<'_>, number: u32, names: &mut crate::names::Names) -> Self {
        let mut intern = |name: &[u8]| if name.is_empty() { NameId::NONE } else { names.intern(name) };
        let what = match line.shape {
            Shape::Enter(name) => What::Enter(intern(name)),
            Shape::Leaf { name, dur, ret } => What::Leaf { name: intern(name), dur, ret },
            Shape::Leave { name, dur, ret } => What::Leave { name: intern(name.unwrap_or_default()), dur, ret },
            Shape::Switch { to: Named { comm, tid }, .. } => What::Switch { to: (intern(comm), tid) },
            Shape::Event(_) | Shape::Aside => What::Aside,
        };
        let comm = intern(line.comm);
        Self { number, ts: line.ts.unwrap_or(0), cpu: line.cpu, tid: line.tid, comm, depth: line.depth, what }
    }
}

/// The functions that a thread is in.
#[derive(Default)]
struct Thread {
    /// The innermost last.
    open: Vec<Open>,
    /// All of them are known: the log does not begin within one.
    is_whole: bool,
}

impl Thread {
    fn is_in_sync(&self) -> bool {
        self.open.iter().any(|open| role_of(&open.name) == Role::Sync)
    }

    /// Takes note of a line before it is used. If a line before it is missing, returns what that may have been of.
    fn follow(&mut self, line: &GraphLine) -> Option<TornFact> {
        let is_leave = matches!(line.what, What::Leave { .. });
        let outer = if is_leave { Some(line.depth) } else { line.depth.checked_sub(1) };
        let before = self.open.len();
        // Functions that are deeper, or as deep as one that begins, have returned.
        while self.open.pop_if(|open| outer.is_none_or(|outer| open.depth > outer)).is_some() {}
        let is_inside = self.open.len() == before && self.open.last().map(|open| open.depth) == outer;
        let is_missing = self.is_whole && !is_inside;
        let in_sync = self.is_in_sync();
        self.is_whole = line.depth == 0 && !is_leave || self.is_whole && (is_inside || in_sync);
        if is_missing
            && !is_leave
            && let Some(depth) = outer
        {
            // It was entered, or this line would not be deeper.
            self.open.push(Open { depth, ts: None, name: Box::default() });
        }
        // Outside of a sync, it may have been the entry of one, or a return.
        is_missing.then_some(if in_sync { TornFact::Request } else { TornFact::Any })
    }
}

/// A function that a thread is in.
struct Open {
    depth: u32,
    /// `None` if its entry is not in the log.
    ts: Option<i64>,
    /// Empty if nothing follows from its return.
    name: Box<[u8]>,
}

/// The return of a function whose only line is that of its entry.
struct Ending {
    tid: u32,
    comm: Box<[u8]>,
    name: Box<[u8]>,
    ret: Option<i64>,
}

pub(super) struct Nesting {
    keep_extras: bool,
    threads: HashMap<u32, Thread, FixedState>,
    /// The thread that runs on a CPU.
    running: HashMap<u32, (u32, Box<[u8]>), FixedState>,
    /// There were lines since the last head.
    has_lines: bool,
    /// Returns that come after the last line, by their times and in the order of the lines.
    endings: BTreeMap<(i64, u64), Ending>,
    next_ending: u64,
}

impl Nesting {
    pub(super) fn new(keep_extras: bool) -> Self {
        Self {
            keep_extras,
            threads: HashMap::default(),
            running: HashMap::default(),
            has_lines: false,
            endings: BTreeMap::new(),
            next_ending: 0,
        }
    }

    /// Takes note of a line of the head: the first switch of a CPU says which thread ran there until then.
    pub(super) fn expect(&mut self, line: &Line<'_>) {
        if let (Shape::Switch { from, .. }, Some(cpu)) = (line.shape, line.cpu) {
            self.running.entry(cpu).or_insert_with(|| (from.tid, from.comm.into()));
        }
    }

    /// Whether the thread on some CPU is known.
    pub(super) fn knows_threads(&self) -> bool {
        !self.running.is_empty()
    }
}

/// Places the notes up to a line after the events so far. Returns the number of the first note after them.
fn place_notes(mut next: usize, line: u64, rebuilt: &Rebuilt, batch: &mut Batch) -> usize {
    while let Some(note) = batch.notes.get_mut(next).filter(|note| note.line <= line) {
        note.after = rebuilt.events.len() as u32;
        next += 1;
    }
    next
}

/// The events of a batch, as they are put in the order of their lines.
#[derive(Default)]
struct Rebuilt {
    keep_extras: bool,
    events: Vec<Event>,
    event_names: Vec<NameId>,
    extras: Vec<Extra>,
}

impl StatefulPass for Nesting {
    fn apply(&mut self, batch: &mut Batch) {
        let deferred = batch.deferred.take().and_then(|deferred| deferred.downcast::<Deferred>().ok());
        let Some(deferred) = deferred else { return };
        if !deferred.lines.is_empty() || !self.endings.is_empty() {
            self.merge(&deferred.lines, batch);
        }
        batch.deferred = Some(deferred);
    }

    fn finish(&mut self, batch: &mut Batch) {
        let mut rebuilt = Rebuilt { keep_extras: self.keep_extras, ..Rebuilt::default() };
        self.end_until(i64::MAX, 0, &mut rebuilt, batch);
        (batch.events, batch.event_names, batch.extras) = (rebuilt.events, rebuilt.event_names, rebuilt.extras);
    }
}

impl Nesting {
    /// Puts the events of functions between those that have been parsed, by their lines.
    fn merge(&mut self, lines: &[GraphLine], batch: &mut Batch) {
        let parsed = std::mem::take(&mut batch.events);
        let parsed_names = std::mem::take(&mut batch.event_names);
        let parsed_extras = std::mem::take(&mut batch.extras);
        let mut rebuilt = Rebuilt {
            keep_extras: self.keep_extras,
            events: Vec::with_capacity(parsed.len() + lines.len()),
            ..Rebuilt::default()
        };
        let (mut next, mut next_extra, mut notes) = (0, 0, 0);
        let mut parsed_until =
            |nesting: &mut Self, mut notes: usize, line: u64, rebuilt: &mut Rebuilt, batch: &mut Batch| {
                while let Some(event) = parsed.get(next).filter(|event| u64::from(event.line) < line) {
                    notes = place_notes(notes, u64::from(event.line), rebuilt, batch);
                    // A torn line has no time yet.
                    if !matches!(event.kind, Kind::Torn { .. }) {
                        nesting.end_until(event.ts, event.line, rebuilt, batch);
                    }
                    let at = rebuilt.events.len() as u32;
                    while let Some(extra) = parsed_extras.get(next_extra).filter(|extra| extra.event as usize == next) {
                        rebuilt.extras.push(Extra { event: at, ..*extra });
                        next_extra += 1;
                    }
                    rebuilt.event_names.extend(parsed_names.get(next));
                    rebuilt.events.push(*event);
                    next += 1;
                }
                notes
            };
        for line in lines {
            notes = parsed_until(self, notes, u64::from(line.number), &mut rebuilt, batch);
            notes = place_notes(notes, u64::from(line.number), &rebuilt, batch);
            if let Err(why) = self.line(line, &mut rebuilt, batch) {
                let (after, kind) = (rebuilt.events.len() as u32, NoteKind::unparsed(why.as_bytes(), why));
                let note = Note { after, line: u64::from(line.number), is_of_original_log: false, kind };
                batch.notes.insert(notes, note);
                notes += 1;
            }
        }
        notes = parsed_until(self, notes, u64::MAX, &mut rebuilt, batch);
        batch.notes[notes..].iter_mut().for_each(|note| note.after = rebuilt.events.len() as u32);
        (batch.events, batch.event_names, batch.extras) = (rebuilt.events, rebuilt.event_names, rebuilt.extras);
    }

    /// Adds the returns up to a time, in their order, at the line that shows that they are over.
    fn end_until(&mut self, ts: i64, line: u32, rebuilt: &mut Rebuilt, batch: &mut Batch) {
        while let Some(ending) = self.endings.first_entry().filter(|ending| ending.key().0 <= ts) {
            let ((ts, _), Ending { tid, comm, name, ret }) = ending.remove_entry();
            let comm = if comm.is_empty() { NameId::NONE } else { batch.names.intern(&comm) };
            let event = Event { ts, tid, pid: UNKNOWN_TASK, comm, line, kind: Kind::Other };
            rebuilt.end(&event, &name, ret, batch);
        }
    }

    /// Uses a line.
    ///
    /// # Errors
    /// Why something is missing.
    fn line(&mut self, line: &GraphLine, rebuilt: &mut Rebuilt, batch: &mut Batch) -> Result<(), &'static str> {
        if matches!(line.what, What::Head) {
            // What had begun in the recording before is not ended in this one. The threads of the first one are known from its head.
            if std::mem::take(&mut self.has_lines) {
                self.threads.clear();
                self.running.clear();
            }
            return Ok(());
        }
        self.has_lines = true;
        if let What::Switch { to } = line.what {
            let Some(cpu) = line.cpu else { return Ok(()) };
            let comm = batch.names.get(to.0).into();
            self.running.insert(cpu, (to.1, comm));
            return Ok(());
        }
        let running = || line.cpu.and_then(|cpu| self.running.get(&cpu));
        let (tid, comm) = match line.tid {
            Some(tid) => (tid, line.comm),
            None => match running() {
                Some((tid, comm)) if comm.is_empty() => (*tid, NameId::NONE),
                Some((tid, comm)) => (*tid, batch.names.intern(comm)),
                None => return Err(NO_TASK),
            },
        };
        self.end_until(line.ts, line.number, rebuilt, batch);
        let event = |ts| Event { ts, tid, pid: UNKNOWN_TASK, comm, line: line.number, kind: Kind::Other };
        let thread = self.threads.entry(tid).or_default();
        let missing = thread.follow(line);
        if let Some(fact) = missing {
            rebuilt.tear(&event(line.ts), fact, batch);
        }
        // overlayfs calls the function for any file system once more, for the file below.
        let is_inner = match line.what {
            What::Enter(name) | What::Leaf { name, .. } => {
                batch.names.get(name) == ANY_FILE_SYSTEM && thread.is_in_sync()
            }
            _ => false,
        };
        let open = &mut thread.open;
        match line.what {
            What::Enter(name) => {
                let mut name: Box<[u8]> = batch.names.get(name).into();
                if is_inner {
                    name = Box::default();
                } else {
                    rebuilt.begin(&event(line.ts), &name, batch);
                }
                open.push(Open { depth: line.depth, ts: Some(line.ts), name });
            }
            What::Leaf { .. } if is_inner => {}
            What::Leaf { name, dur, ret } => {
                let name: Box<[u8]> = batch.names.get(name).into();
                rebuilt.begin(&event(line.ts), &name, batch);
                if role_of(&name) != Role::None {
                    let comm = batch.names.get(comm).into();
                    self.next_ending += 1;
                    let at = (line.ts.saturating_add(dur), self.next_ending);
                    self.endings.insert(at, Ending { tid, comm, name, ret });
                }
            }
            What::Leave { name, dur, ret } => {
                let opened = open.pop_if(|open| open.depth == line.depth);
                let printed: Option<Box<[u8]>> = name.is_some().then(|| batch.names.get(name).into());
                let is_named_otherwise =
                    |open: &Open| printed.as_ref().is_some_and(|name| !open.name.is_empty() && *name != open.name);
                let begin = opened.as_ref().and_then(|open| open.ts);
                // By how much the open function is older than the one that ends.
                let older = begin.zip(dur).map_or(0, |(begin, dur)| line.ts.saturating_sub(begin).saturating_sub(dur));
                if older > MAX_OLDER_NS || opened.as_ref().is_some_and(is_named_otherwise) {
                    rebuilt.tear(&event(line.ts), TornFact::Any, batch);
                    return Err(NOT_ITS_END);
                }
                if older > SURELY_SAME_NS {
                    rebuilt.tear(&event(line.ts), TornFact::Request, batch);
                }
                match opened.map(|open| open.name).or(printed) {
                    Some(name) => rebuilt.end(&event(line.ts), &name, ret, batch),
                    None => rebuilt.other(&event(line.ts), b"funcgraph_exit", BEGAN_BEFORE, batch),
                }
            }
            What::Switch { .. } | What::Head | What::Aside => {}
        }
        if missing.is_some() { Err(NOT_INSIDE) } else { Ok(()) }
    }
}

impl Rebuilt {
    /// Adds the entry of a function, if that is of use.
    fn begin(&mut self, event: &Event, name: &[u8], batch: &mut Batch) {
        match entry(name, &mut batch.names) {
            Some(kind) => self.push(&Event { kind, ..*event }, logged(name, true, None), batch),
            None => self.other(event, b"funcgraph_entry", name, batch),
        }
    }

    /// Adds the return of a function, if that is of use.
    fn end(&mut self, event: &Event, name: &[u8], ret: Option<i64>, batch: &mut Batch) {
        if let Some(kind) = returned(name, ret) {
            self.push(&Event { kind, ..*event }, logged(name, false, ret), batch);
        }
    }

    /// Adds an event of a function that no report uses, or counts it by the name of the function.
    fn other(&mut self, event: &Event, word: &[u8], name: &[u8], batch: &mut Batch) {
        if self.keep_extras {
            let logged = Logged { event: word.to_vec(), fields: vec![(b"func", name.to_vec())] };
            self.push(&Event { kind: Kind::Other, ..*event }, logged, batch);
        } else {
            batch.other(|| name);
        }
    }

    /// Says that a line of a sync is missing.
    fn tear(&mut self, event: &Event, fact: TornFact, batch: &mut Batch) {
        if self.keep_extras {
            self.event_names.push(batch.names.intern(TORN_LINE));
        }
        self.events.push(Event { kind: Kind::Torn { id: NO_ID, bio: 0, fact }, ..*event });
    }

    fn push(&mut self, event: &Event, logged: Logged, batch: &mut Batch) {
        if self.keep_extras {
            self.event_names.push(batch.names.intern(&logged.event));
            for (key, value) in logged.fields {
                let (key, value) = (batch.names.intern(key), batch.names.intern(&value));
                self.extras.push(Extra { event: self.events.len() as u32, key, value });
            }
        }
        self.events.push(*event);
    }
}
