//! Decodes tracepoints that are printed as text, as in the text of the ring buffer and of `perf script`. Each tracepoint has a
//! print format of its own.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use crate::event::{Dev, Event, Kind, NO_ID, Op, TornFact};
use crate::names::NameId;
use crate::source::cursor::{Cursor, find, whole, word_len};
use crate::source::dynamic_events::{self, DynamicEvent, ProbeFields};
use crate::source::event_names::{BlockEvent, EventName, MARKER, extra_key, is_background};
use crate::source::markers;
use crate::source::reserved_names::other_event_name;
use crate::source::torn::facts_of_tracepoint;
use crate::source::tracepoints::{Field, Fields, Tracepoint, of_print};
use crate::source::values::{device, whole_sectors};
use crate::source::write_events::WriteEventName;
use crate::source::{Batch, Extra, SourceOptions};

/// `TASK_COMM_LEN`. A longer name in brackets is another line, which was joined to it.
const COMM_BYTES: usize = 16;
/// The kernel prints the tracepoints `sys_enter_CALL` and `sys_exit_CALL` as `sys_CALL`.
const ENTER: &[u8] = b"sys_enter_";
const EXIT: &[u8] = b"sys_exit_";

/// A marker of the application.
const MARK: Tracepoint = Tracepoint::Named(EventName::Mark);
/// The CPUs of the events in the head of a text. An event has its CPU in brackets, as in ` [003] `. `None` if no event has one.
pub(super) fn cpus_of(head: &[u8]) -> Option<Vec<u32>> {
    let cpu_of = |line: &[u8]| {
        let mut words = line.split(|&b| b == b' ' || b == b'\t');
        words.find_map(|word| whole(word.strip_prefix(b"[")?.strip_suffix(b"]")?, Cursor::decimal))
    };
    let events = head.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"#"));
    let cpus: BTreeSet<u32> = events.filter_map(cpu_of).filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    Some(cpus.into_iter().collect()).filter(|cpus: &Vec<u32>| !cpus.is_empty())
}

/// Time and thread of an event.
pub(super) struct Task<'a> {
    pub(super) ts: i64,
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) comm: &'a [u8],
}

/// Makes events from printed records.
pub(super) struct TextDecoder<'a> {
    pub(super) options: &'a SourceOptions,
    pub(super) batch: &'a mut Batch,
    /// Cache of the last comm of a few threads: its bytes, its length, its interned name.
    comms: [(u128, u8, NameId); 64],
}

impl<'a> TextDecoder<'a> {
    pub(super) fn new(options: &'a SourceOptions, batch: &'a mut Batch) -> Self {
        Self { options, batch, comms: [(0, 0, NameId::NONE); 64] }
    }

    /// Appends the event. Returns false if the event is not needed.
    #[inline]
    pub(super) fn event(&mut self, task: &Task<'_>, record: &TextRecord<'_>) -> Result<bool, &'static str> {
        let tracepoint = record.tracepoint;
        let SourceOptions { keep_extras, keep_writes, .. } = *self.options;
        let kind = if keep_writes && let Some(event) = write_event(record) {
            self.write(event, record).ok_or("a field of the write is missing, repeated or out of range")?
        } else {
            let kind = match tracepoint {
                Some(tracepoint) => self.kind(tracepoint, record).ok_or_else(|| bad_data(tracepoint))?,
                None => Kind::Other,
            };
            if keep_writes { Kind::Other } else { kind }
        };
        if kind == Kind::Other && !keep_extras && !(keep_writes && self.batch.needs_time()) {
            self.batch.other(|| record.full_name());
            return Ok(false);
        }
        if keep_extras {
            self.extras(record, tracepoint, kind);
        }
        let (ts, tid, pid, comm) = (task.ts, task.tid, task.pid, self.comm(task.tid, task.comm));
        self.batch.events.push(Event { ts, tid, pid, comm, line: self.batch.lines as u32, kind });
        Ok(true)
    }

    /// Says of a torn line what it was about, as far as it names that. `text` follows its time. Another line may be joined to it.
    #[cold]
    pub(super) fn torn(&mut self, task: &Task<'_>, text: &[u8]) {
        let name_len = text.iter().position(|b| matches!(b, b':' | b'(' | b' ')).unwrap_or(text.len());
        let is_whole_name = name_len < text.len();
        let name = &text[..name_len];
        let dynamic = || DynamicEvent::from_name(name).map(Tracepoint::Dynamic);
        let facts = match Tracepoint::from_name(name).or_else(dynamic) {
            Some(tracepoint) if is_whole_name => facts_of_tracepoint(tracepoint),
            // Entries are printed as `sys_NAME(`.
            _ if text.starts_with(b"sys_") => &[TornFact::Call],
            _ if is_whole_name => &[],
            _ => &[TornFact::Any],
        };
        let number = |key: &[u8], take: fn(&[u8]) -> Option<u64>| {
            let at = memchr::memmem::find(text, key)? + key.len();
            let len = word_len(&text[at..]);
            // The last number of the line may be cut off.
            take(&text[at..at + len]).filter(|_| at + len < text.len())
        };
        let id = number(b" id=", |id| whole(id, Cursor::decimal)).unwrap_or(NO_ID);
        let bio = number(b" bio=", parse_address).unwrap_or(0);
        let Task { ts, tid, pid, .. } = *task;
        let event = Event { ts, tid, pid, comm: NameId::NONE, line: 0, kind: Kind::Other };
        for &fact in facts {
            self.batch.torn(&event, Kind::Torn { id, bio, fact }, self.options);
        }
        if has_line(text) {
            self.batch.torn_unknown(self.options);
        }
    }

    fn write(&mut self, event: WriteEventName, record: &TextRecord<'_>) -> Option<Kind> {
        let mut fields = ProbeSlots::default();
        for_each_field(record, &mut |key, value| fields.put(key, value))?;
        if fields.is_torn { None } else { event.kind(&fields, &mut self.batch.names) }
    }

    #[inline]
    fn kind(&mut self, tracepoint: Tracepoint, record: &TextRecord<'_>) -> Option<Kind> {
        if let Tracepoint::Dynamic(event) = tracepoint {
            let mut fields = ProbeSlots::default();
            for_each_field(record, &mut |key, value| fields.put(key, value))?;
            if fields.is_torn || event == DynamicEvent::Submit && !fields.get("end_io").is_some_and(is_whole_symbol) {
                return None;
            }
            return event.kind(&fields, &mut self.batch.names);
        }
        let mut slots = FieldSlots::default();
        if tracepoint == MARK {
            slots.put(Field::Buf.name().as_bytes(), record.data);
        } else if !tracepoint.required_fields().is_empty() {
            let parsed = for_each_field(record, &mut |key, value| slots.put(key, value));
            if parsed.is_none() {
                let Tracepoint::Named(event) = tracepoint else { return None };
                return of_print(event)?(record.data);
            }
        }
        let kind = tracepoint.kind(record.name, self.options.machine, &slots, &mut self.batch.names)?;
        if slots.is_torn.get() {
            return None;
        }
        match kind {
            Kind::BioAddFolio { len, .. } => whole_sectors(len)?,
            Kind::SyncStart { .. } if slots.text(Field::Path).is_some_and(has_line) => return None,
            _ => {}
        }
        Some(kind)
    }

    /// Stores the tracer's name of the event, and every field that the event has no field for.
    fn extras(&mut self, record: &TextRecord<'_>, tracepoint: Option<Tracepoint>, kind: Kind) {
        let Batch { names, extras, events, event_names, .. } = &mut *self.batch;
        let name = record.full_name();
        let name = match tracepoint {
            Some(tracepoint) => tracepoint.log_name(&name, kind),
            None if record.grammar == Grammar::Probe => name,
            None => other_event_name("event", &name),
        };
        event_names.push(names.intern(&name));
        let event = events.len() as u32;
        let is_stored = |key| tracepoint.is_some_and(|tracepoint| tracepoint.stores(kind, key));
        let before = extras.len();
        let mut torn = false;
        let parsed = for_each_field(record, &mut |key, value| {
            if !is_stored(key) {
                let is_name = record.grammar == Grammar::Probe && dynamic_events::is_text(key);
                let value = if is_name { value.into() } else { format_value(record.grammar, key, value) };
                let key = names.intern(&extra_key(key));
                // A repeated field means that the line is torn.
                torn |= extras[before..].iter().any(|extra| extra.key == key);
                extras.push(Extra { event, key, value: names.intern(&value) });
            }
        });
        if parsed.is_none() || torn {
            extras.truncate(before);
            if !record.data.is_empty() && record.grammar != Grammar::Stack {
                // A torn dynamic event must not be taken for the event of another recorder with its name.
                let key: &[u8] = if record.grammar == Grammar::Probe { b"probe" } else { b"text" };
                let (key, value) = (names.intern(key), names.intern(record.data));
                extras.push(Extra { event, key, value });
            }
        }
    }

    #[inline]
    fn comm(&mut self, tid: u32, comm: &[u8]) -> NameId {
        if comm.len() > 15 {
            return self.batch.names.intern(comm);
        }
        let mut bytes = [0; 16];
        bytes[..comm.len()].copy_from_slice(comm);
        let key = (u128::from_le_bytes(bytes), comm.len() as u8);
        let slot = &mut self.comms[tid as usize % 64];
        if (slot.0, slot.1) != key || !slot.2.is_some() {
            *slot = (key.0, key.1, self.batch.names.intern(comm));
        }
        slot.2
    }
}

/// Whether a function is printed to its end, as `NAME+0x0/0x140`, or as an address. It is the last field of its event.
fn is_whole_symbol(symbol: &[u8]) -> bool {
    symbol.first().is_some_and(u8::is_ascii_digit) || memchr::memmem::find(symbol, b"+0x").is_some()
}

/// Whether another line is joined to a text: it holds a CPU and a time, ` [000] .....    20.527240: `.
fn has_line(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, b" [") {
        rest = &rest[at + 2..];
        let mut cursor = Cursor::new(rest);
        let is_cpu = cursor.decimal().is_some() && cursor.literal(b"] ").is_some();
        if is_cpu && memchr::memmem::find(cursor.rest, b": ").is_some() {
            return true;
        }
    }
    false
}

/// Returns which event of writes this is.
fn write_event(record: &TextRecord<'_>) -> Option<WriteEventName> {
    if record.prefix.is_empty() { WriteEventName::parse(record.name, record.grammar == Grammar::Probe) } else { None }
}

fn bad_data(tracepoint: Tracepoint) -> &'static str {
    match tracepoint {
        Tracepoint::RawEnter => "the data of sys_enter is not `NR N (...)`",
        Tracepoint::RawExit => "the data of sys_exit is not `NR N = N`",
        Tracepoint::Dynamic(_) => {
            "its data is not `(FUNCTION) FIELD=VALUE ...` with each field of docs/reference/formats.md once, or a number is out of range"
        }
        Tracepoint::Named(word) => match word {
            EventName::Start => {
                "the data of sync_start is not `id=N start=N end=N datasync=0 dev=MAJOR,MINOR ino=N path=REST`"
            }
            EventName::FsStart => "the data of sync_fs_start is not `id=N dev=MAJOR,MINOR fs=NAME`",
            EventName::End => "the data of sync_end is not `id=N ret=N`",
            EventName::AddFolio => "the data of bio_add_folio is not `id=N bio=0xADDR start=N len=N`",
            EventName::Submit => "the data of bio_submit is not `id=N bio=0xADDR dev=MAJOR,MINOR sector=N`",
            EventName::Complete => "the data of bio_complete is not `bio=0xADDR`",
            EventName::WbStart | EventName::WbEnd | EventName::WaitStart(_) | EventName::WaitEnd(_) => {
                "its data has no `id=N`"
            }
            EventName::Exit(_) => "the data of the call's exit is not one number",
            EventName::Enter(_) => "the data of the call is not `ARG: VALUE`",
            EventName::StartWithoutId => "its data has no `ino N`",
            EventName::EndWithoutId => "its data has no `ret N`",
            EventName::Mark => "it has no text",
            EventName::CommitStart | EventName::CommitEnd | EventName::CommitStep(_) => {
                "its data has no `dev MAJOR,MINOR transaction N`"
            }
            EventName::HandleEnd => "its data has no `dev MAJOR,MINOR tid N` or no `dirtied_blocks N`",
            EventName::WorkStart => "its data has no `sb_dev MAJOR:MINOR` or no `reason=WORD`",
            EventName::FastCommitStart | EventName::FastCommitStop => "its data has no `dev MAJOR,MINOR`",
            EventName::Throttle => "its data has no `pause=N`",
            EventName::Switch => "its data has no `prev_pid=N prev_state=STATE next_pid=N`",
            EventName::Wake => "its data has no `pid=N`",
            EventName::Block(BlockEvent::Remap) => {
                "its data is not `MAJOR,MINOR RWBS SECTOR + SECTORS <- (MAJOR,MINOR) SECTOR`"
            }
            EventName::Block(_) => "its data is not `MAJOR,MINOR RWBS SECTOR + SECTORS [...]`",
            _ => "a field of its data is missing or out of range",
        },
    }
}

/// An event as printed on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextRecord<'a> {
    /// The tracepoint's name is `prefix` followed by `name`.
    pub(super) prefix: &'static [u8],
    pub(super) name: &'a [u8],
    pub(super) tracepoint: Option<Tracepoint>,
    pub(super) grammar: Grammar,
    pub(super) data: &'a [u8],
}

/// Cache of recent event names that are followed by a colon, which saves the lookup on every line.
pub(super) struct NameCache<'a>([Option<CachedName<'a>>; 64]);

#[derive(Clone, Copy)]
struct CachedName<'a> {
    name: &'a [u8],
    tracepoint: Option<Tracepoint>,
    rule: GrammarRule,
}

impl<'a> NameCache<'a> {
    pub(super) fn new() -> Self {
        Self([None; 64])
    }

    /// Looks up the name at the start of an event, if it is cached and followed by a colon.
    #[inline]
    fn lookup(&self, event: &[u8]) -> Option<CachedName<'a>> {
        let name = &event[..find(b':', event)?];
        self.0[Self::slot(name)?].filter(|known| known.name == name)
    }

    fn insert(&mut self, name: &'a [u8]) -> CachedName<'a> {
        let known = CachedName { name, tracepoint: Tracepoint::from_name(name), rule: GrammarRule::of(name) };
        if let Some(slot) = Self::slot(name) {
            self.0[slot] = Some(known);
        }
        known
    }

    #[inline]
    fn slot(name: &[u8]) -> Option<usize> {
        let (middle, last) = (name.get(name.len() / 2)?, name.last()?);
        Some((usize::from(*middle) * 5 + usize::from(*last) * 3 + name.len()) % 64)
    }
}

impl<'a> TextRecord<'a> {
    /// Parses `NAME: DATA`, `sys_CALL(ARG: HEX, ...)`, `sys_CALL -> 0xHEX`, `FUNCTION <-CALLER`, `<stack trace>`.
    #[inline]
    pub(super) fn parse(event: &'a [u8], cache: &mut NameCache<'a>) -> Option<Self> {
        let event = strip_time_difference(event);
        if let Some(known) = cache.lookup(event) {
            return Some(Self::from_cached(known, &event[known.name.len() + 1..]));
        }
        Self::parse_uncached(event, cache)
    }

    #[inline]
    fn from_cached(known: CachedName<'a>, data: &'a [u8]) -> Self {
        let data = data.trim_ascii_start();
        let data = data.strip_prefix(b"[FAILED TO PARSE]").map_or(data, <[u8]>::trim_ascii_start);
        let CachedName { name, tracepoint, rule } = known;
        if data.first() == Some(&b'(') {
            let tracepoint = DynamicEvent::from_name(name).map(Tracepoint::Dynamic);
            // The name is enough for a torn event whose place is damaged.
            if tracepoint.is_some() || is_place(data) {
                return Self { prefix: b"", name, tracepoint, grammar: Grammar::Probe, data };
            }
        }
        if let Some(text) = rule.marker(data) {
            return Self::marker(text);
        }
        Self { prefix: b"", name, tracepoint, grammar: rule.grammar(data), data }
    }

    fn parse_uncached(event: &'a [u8], cache: &mut NameCache<'a>) -> Option<Self> {
        let end = word_len(event);
        let (name, rest) = event.split_at(end);
        let rest = if rest.first() == Some(&b':') { rest } else { rest.trim_ascii_end() };
        let call = name.strip_prefix(b"sys_").unwrap_or_default();
        Some(match rest {
            [b':', data @ ..] if end > 0 => Self::from_cached(cache.insert(name), data),
            [b'(', data @ .., b')'] if !call.is_empty() => {
                let tracepoint = Op::from_name(call).map(|op| Tracepoint::Named(EventName::Enter(op)));
                Self { prefix: ENTER, name: call, tracepoint, grammar: Grammar::HexArgs, data }
            }
            [b' ', b'-', b'>', b' ', data @ ..] if !call.is_empty() => {
                let tracepoint = Op::from_name(call).map(|op| Tracepoint::Named(EventName::Exit(op)));
                Self { prefix: EXIT, name: call, tracepoint, grammar: Grammar::Ret, data }
            }
            // A record of `trace_marker_raw`: `# 2a buf: 72 61`.
            _ if end == 0 && event.starts_with(b"# ") => Self::other(b"", b"raw_data", Grammar::Free, event),
            b"<stack trace>" => Self::other(b"", b"kernel_stack", Grammar::Stack, b""),
            b"<user stack trace>" => Self::other(b"", b"user_stack", Grammar::Stack, b""),
            // Also `foo.isra.0 <-bar`, and `foo(a=1) <-bar` of `options/func-args`.
            _ if end > 0 && memchr::memmem::find(rest, b" <-").is_some() => {
                Self::other(b"function", b"", Grammar::Free, event)
            }
            _ if end > 0 && is_symbol_with_text(rest) => match markers::strip_writer(event) {
                Some(text) => Self::marker(text),
                None => Self::other(b"", name, Grammar::Free, event),
            },
            _ => return None,
        })
    }

    fn marker(text: &'a [u8]) -> Self {
        Self { prefix: b"", name: MARKER, tracepoint: Some(MARK), grammar: Grammar::Free, data: text }
    }

    /// An event that is not a tracepoint that Syncline uses.
    pub(super) fn other(prefix: &'static [u8], name: &'a [u8], grammar: Grammar, data: &'a [u8]) -> Self {
        Self { prefix, name, tracepoint: None, grammar, data }
    }

    fn full_name(&self) -> Cow<'a, [u8]> {
        if self.prefix.is_empty() { self.name.into() } else { [self.prefix, self.name].concat().into() }
    }
}

/// Returns whether this follows the name of a function that prints a text: `.isra.0: TEXT`, `+0x5a/0x150: TEXT`, ` [ext4]: TEXT`.
fn is_symbol_with_text(rest: &[u8]) -> bool {
    matches!(rest, [b'.' | b'+', ..] | [b' ', b'[' | b'<', ..]) && memchr::memmem::find(rest, b": ").is_some()
}

/// Strips `(+9)     `, the time since the previous event, of `trace-cmd report --ts-diff`.
#[inline]
fn strip_time_difference(event: &[u8]) -> &[u8] {
    let Some(rest) = event.strip_prefix(b"(+") else {
        // The first event has blanks instead.
        return event.strip_prefix(b"         ").unwrap_or(event);
    };
    let mut cursor = Cursor::new(rest);
    match (cursor.decimal(), cursor.literal(b")")) {
        (Some(_), Some(())) => cursor.rest.trim_ascii_start(),
        _ => event,
    }
}

/// The syntax of an event's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// `key=value key=value`; the value of `path` is the rest.
    Pairs,
    /// `key: value, key: value`
    Args,
    /// The same, with values in hex digits without a prefix.
    HexArgs,
    /// One value.
    Ret,
    /// `254,16 WS 4096 () 8 + 8 be,0,4 [wl]`
    Block,
    /// Detected from the text.
    Any,
    /// `(FUNCTION+0x4/0x90) key=value key="text"`, of a dynamic event.
    Probe,
    /// Names and values in turn, each ended by a NUL.
    Split,
    /// Free text.
    Free,
    /// One line per stack frame follows.
    Stack,
}

/// How the name of an event determines its grammar.
#[derive(Clone, Copy)]
enum GrammarRule {
    Always(Grammar),
    /// A text that the kernel or an application has printed.
    Print,
    /// This grammar, unless the fields are printed generically, starting with `__syscall_nr`.
    Call(Grammar),
    RawCall,
    Block,
    Any,
}

impl GrammarRule {
    fn of(name: &[u8]) -> Self {
        match name {
            b"kernel_stack" | b"user_stack" => Self::Always(Grammar::Stack),
            MARKER | b"raw_data" => Self::Always(Grammar::Free),
            b"print" | b"bprint" | b"bputs" => Self::Print,
            b"sync_start" | b"sync_end" | b"bio_add_folio" | b"bio_submit" | b"bio_complete" => {
                Self::Always(Grammar::Pairs)
            }
            _ if name.starts_with(b"sys_enter_") => Self::Call(Grammar::Args),
            _ if name.starts_with(b"sys_exit_") => Self::Call(Grammar::Ret),
            b"sys_enter" | b"sys_exit" => Self::RawCall,
            _ if name.starts_with(b"block_") => Self::Block,
            _ => Self::Any,
        }
    }

    /// Returns the text of an application's marker that is printed under this name.
    #[inline]
    fn marker(self, data: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Print => markers::of_print(data),
            // A module may print markers with trace_printk, in the form that tools for Android look for.
            Self::Any if data.starts_with(MARKER) => markers::strip_writer(data),
            _ => None,
        }
    }

    #[inline]
    fn grammar(self, data: &[u8]) -> Grammar {
        match self {
            Self::Always(grammar) => grammar,
            Self::Print => Grammar::Free,
            Self::Call(grammar) if !data.starts_with(b"__") => grammar,
            Self::RawCall if data.starts_with(b"NR ") => Grammar::Ret,
            Self::Block if data.first().is_some_and(u8::is_ascii_digit) => Grammar::Block,
            _ => Grammar::Any,
        }
    }
}

/// Passes each field to `emit`; `None` if the data do not follow the grammar.
#[inline]
fn for_each_field<'a>(record: &TextRecord<'a>, emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let (name, data) = (record.name, record.data);
    match record.grammar {
        Grammar::Pairs => parse_pairs(data, emit),
        Grammar::Args | Grammar::HexArgs => parse_args(data, emit),
        Grammar::Ret if name == b"sys_enter" => {
            emit(b"id", data.strip_prefix(b"NR ")?.split(|&b| b == b' ').next()?);
            Some(())
        }
        Grammar::Ret if name == b"sys_exit" => {
            let (id, ret) = split_once(data.strip_prefix(b"NR ")?, b" = ")?;
            emit(b"id", id);
            emit(b"ret", ret.trim_ascii_end());
            Some(())
        }
        Grammar::Ret => {
            emit(b"ret", data.trim_ascii_end());
            Some(())
        }
        Grammar::Block => parse_block(data, emit),
        Grammar::Probe => parse_probe(data, emit),
        Grammar::Any => parse_any(data, emit),
        Grammar::Split => parse_split(data, emit),
        Grammar::Free | Grammar::Stack => None,
    }
}

/// Passes on the fields of a source that has split them itself.
fn parse_split<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let mut rest = data;
    while !rest.is_empty() {
        let (key, after) = split_once(rest, b"\0")?;
        let (value, after) = split_once(after, b"\0")?;
        emit(key, value);
        rest = after;
    }
    Some(())
}

/// Returns whether data that begin with `(` begin as the kernel prints those of a dynamic event.
#[inline]
fn is_place(data: &[u8]) -> bool {
    data.get(1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Parses `(FUNCTION+0x4/0x90) key=value key="text"`, and `(CALLER+0x4/0x90 <- FUNCTION) ...` of a return. A text may contain anything.
fn parse_probe<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let (place, rest) = split_once(&data[1..], b")")?;
    // A torn line may hold anything. The names of the kernel's functions are ASCII.
    if !place.is_ascii() {
        return None;
    }
    emit(b"probe", place);
    let mut rest = rest.trim_ascii_start();
    while !rest.is_empty() {
        let len = key_len(rest)?;
        let (key, value) = (&rest[..len], &rest[len + 1..]);
        let (value, quote) = value.strip_prefix(b"\"").map_or((value, 0), |text| (text, 1));
        let ends_at = |at: usize| {
            let Some(after) = value.get(at + quote..) else { return false };
            (quote == 0 || value[at] == b'"')
                && (after.trim_ascii().is_empty() || after[0] == b' ' && key_len(&after[1..]).is_some())
        };
        let end = (0..=value.len()).find(|&at| ends_at(at))?;
        emit(key, &value[..end]);
        rest = value[end + quote..].trim_ascii_start();
    }
    Some(())
}

/// For a short separator that occurs early; `memmem` is slower for these.
#[inline]
fn split_once<'a, const N: usize>(text: &'a [u8], by: &[u8; N]) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = 0;
    loop {
        let at = from + find(by[0], &text[from..])?;
        if let Some(rest) = text[at..].strip_prefix(by) {
            return Some((&text[..at], rest));
        }
        from = at + 1;
    }
}

fn is_key(key: &[u8]) -> bool {
    key.first().is_some_and(|b| !b.is_ascii_digit()) && word_len(key) == key.len()
}

/// Parses `key=value` pairs. A value may contain spaces; a path is the rest of the line.
#[inline]
fn parse_pairs<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    if data.is_empty() {
        return Some(());
    }
    let mut begin = 0;
    let mut equals = key_len(data)?;
    loop {
        let (key, value) = (&data[begin..equals], equals + 1);
        if key == b"path" {
            emit(key, &data[value..]);
            return Some(());
        }
        let mut end = value;
        loop {
            let Some(space) = find(b' ', &data[end..]).map(|n| end + n) else {
                emit(key, &data[value..]);
                return Some(());
            };
            let next = &data[space + 1..];
            if next.trim_ascii_start().is_empty() {
                emit(key, &data[value..space]);
                return Some(());
            }
            // Text that is not a pair belongs to the value before it.
            if let Some(len) = key_len(next) {
                emit(key, &data[value..space]);
                (begin, equals) = (space + 1, space + 1 + len);
                break;
            }
            end = space + 1;
        }
    }
}

/// Length of a key that is followed by `=`.
#[inline]
fn key_len(text: &[u8]) -> Option<usize> {
    let len = word_len(text);
    (text.get(len) == Some(&b'=') && len > 0 && !text[0].is_ascii_digit()).then_some(len)
}

fn parse_args<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let data = data.trim_ascii_end();
    if data.is_empty() {
        return Some(());
    }
    let mut rest = Some(data);
    while let Some(text) = rest {
        let (arg, after) = split_once(text, b", ").map_or((text, None), |(arg, after)| (arg, Some(after)));
        let (key, value) = split_once(arg, b": ")?;
        // With options/verbose the type precedes the name.
        let key = key.rsplit(|&b| b == b' ').next()?.trim_ascii_start();
        if !is_key(key) {
            return None;
        }
        emit(key, value);
        rest = after;
    }
    Some(())
}

/// Parses block-layer data: `DEV RWBS [BYTES] [(CMD)] SECTOR + SECTORS [IOPRIO] [COMM or ERROR]`, and for a remap `<- (DEV) SECTOR`.
fn parse_block<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let (dev, rest) = split_once(data, b" ")?;
    device(dev)?;
    emit(b"dev", dev);
    let (rwbs, rest) = split_once(rest, b" ")?;
    emit(b"rwbs", rwbs);
    let rest = match split_once(rest, b"(").filter(|(before, _)| !before.contains(&b'+')) {
        Some((bytes, cmd)) => {
            if let Some(bytes) = bytes.strip_suffix(b" ") {
                emit(b"bytes", bytes);
            }
            let (cmd, rest) = split_once(cmd, b") ")?;
            emit(b"cmd", cmd);
            rest
        }
        None => rest,
    };
    let Some((sector, rest)) = split_once(rest, b" + ") else {
        // A split bio: its second part begins at another sector.
        let (sector, rest) = split_once(rest, b" / ")?;
        let (new, comm) = split_once(rest, b" [")?;
        emit(b"sector", sector);
        emit(b"new_sector", new);
        emit(b"comm", comm.trim_ascii_end().strip_suffix(b"]")?);
        return Some(());
    };
    emit(b"sector", sector);
    let (sectors, rest) = split_once(rest, b" ")?;
    emit(b"nr_sector", sectors);
    if let Some(from) = rest.strip_prefix(b"<- (") {
        let (from_dev, from_sector) = split_once(from, b") ")?;
        emit(b"old_dev", from_dev);
        let mut words = from_sector.split(|&b| b == b' ').filter(|word| !word.is_empty());
        emit(b"old_sector", words.next()?);
        if let Some(bios) = words.next() {
            emit(b"nr_bios", bios);
        }
        return Some(());
    }
    let (ioprio, last) = match rest.strip_prefix(b"[") {
        Some(last) => (None, last),
        None => split_once(rest, b" [").map(|(ioprio, last)| (Some(ioprio), last))?,
    };
    if let Some(ioprio) = ioprio {
        emit(b"ioprio", ioprio);
    }
    let last = last.trim_ascii_end().strip_suffix(b"]")?;
    // Completions print an error here. A comm such as `-5` is unlikely, and losing it does no harm.
    let is_error = whole(last, Cursor::signed).is_some();
    if last.len() > COMM_BYTES {
        return None;
    }
    emit(if is_error { b"error" } else { b"comm" }, last);
    Some(())
}

/// Parses `key=value`; `key value`; `key = value, key: value`; `bdi NAME: key=value`.
fn parse_any<'a>(data: &'a [u8], emit: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let data = data.trim_ascii_end();
    let first = data.iter().position(|&b| b == b'=' || b == b' ')?;
    if data[first] == b'=' {
        return parse_pairs(data, emit);
    }
    if split_once(data, b" = ").is_some() || split_once(data, b", ").is_some() {
        let mut rest = Some(data);
        while let Some(text) = rest {
            let (pair, after) = split_once(text, b", ").map_or((text, None), |(pair, after)| (pair, Some(after)));
            rest = after;
            // f2fs before 4.17.
            if let Some(need) = pair.strip_prefix(b"checkpoint is ") {
                emit(b"need_cp", if need == b"needed" { b"1" } else { b"0" });
                continue;
            }
            let (key, value) = split_once(pair, b" = ").or_else(|| split_once(pair, b": "))?;
            let mut key = key.trim_ascii();
            // btrfs prints its file system id first.
            if let Some((fsid, first)) = split_once(key, b": ") {
                emit(b"fsid", fsid);
                key = first;
            }
            if !is_key(key) {
                return None;
            }
            emit(key, value.strip_prefix(b"(").and_then(|v| v.strip_suffix(b")")).unwrap_or(value));
        }
        return Some(());
    }
    let mut words = data.split(|&b| b == b' ');
    while let Some(word) = words.next() {
        if word.is_empty() {
            continue;
        }
        let (key, value) = match split_once(word, b"=") {
            Some(pair) => pair,
            None => (word, words.next()?),
        };
        let key = key.strip_suffix(b":").unwrap_or(key);
        // btrfs prints its file system id first.
        if key.len() == word.len() - 1 && value.contains(&b'=') {
            emit(b"fsid", key);
            let (key, value) = split_once(value, b"=")?;
            if !is_key(key) {
                return None;
            }
            emit(key, value);
            continue;
        }
        if !is_key(key) {
            return None;
        }
        // The name of this field in the kernel.
        let name: &[u8] = if key == b"bdi" { b"name" } else { key };
        emit(name, value.strip_suffix(b":").or_else(|| value.strip_suffix(b",")).unwrap_or(value));
    }
    Some(())
}

/// Parses a number in any print format.
#[inline]
fn parse_number(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0x") {
        return whole(text, Cursor::hex);
    }
    whole(text, Cursor::decimal).or_else(|| whole(text, Cursor::signed).map(|value| value as u64))
}

/// Parses an address. The first version of the patch used `%px`: the kernel prints it without `0x`, trace-cmd with an `x` after it.
#[inline]
fn parse_address(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0x") {
        let text = text.strip_suffix(b"x").filter(|text| text.len() > 2).unwrap_or(text);
        return whole(text, Cursor::hex);
    }
    whole(text, Cursor::hex_digits)
}

/// Formats a value for the low-level log, where numbers are decimal.
fn format_value<'a>(grammar: Grammar, key: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    let value = if grammar == Grammar::HexArgs { Cow::Owned([b"0x", value].concat()) } else { value.into() };
    if value.starts_with(b"0x")
        && let Some(number) = parse_number(&value)
    {
        return number.to_string().into_bytes().into();
    }
    match device(&value) {
        Some(dev) if key.ends_with(b"dev") => dev.to_string().into_bytes().into(),
        _ => value,
    }
}

/// The fields of a dynamic event.
#[derive(Default)]
struct ProbeSlots<'a> {
    fields: [(&'a [u8], &'a [u8]); dynamic_events::MAX_FIELDS],
    count: usize,
    /// A field is repeated, or there are too many: the line consists of pieces of several.
    is_torn: bool,
}

impl<'a> ProbeSlots<'a> {
    fn put(&mut self, key: &'a [u8], value: &'a [u8]) {
        self.is_torn |= self.find(key).is_some();
        match self.fields.get_mut(self.count) {
            Some(slot) => {
                *slot = (key, value);
                self.count += 1;
            }
            None => self.is_torn = true,
        }
    }

    fn find(&self, field: &[u8]) -> Option<&'a [u8]> {
        self.fields[..self.count].iter().find(|(key, _)| *key == field).map(|(_, value)| *value)
    }

    fn get(&self, field: &str) -> Option<&'a [u8]> {
        self.find(field.as_bytes())
    }
}

impl ProbeFields for ProbeSlots<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        parse_number(self.get(field)?)
    }

    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        self.get(field).map(Cow::Borrowed)
    }

    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>> {
        self.text(field)
    }

    fn function(&self) -> Cow<'_, [u8]> {
        dynamic_events::probed_function(self.get("probe").unwrap_or_default()).into()
    }
}

/// The values of the fields that Syncline uses.
struct FieldSlots<'a> {
    texts: [Option<&'a [u8]>; Field::COUNT],
    /// A field is repeated, or the value of a number is not a number: the line consists of pieces of several.
    is_torn: Cell<bool>,
}

impl Default for FieldSlots<'_> {
    fn default() -> Self {
        Self { texts: [None; Field::COUNT], is_torn: Cell::new(false) }
    }
}

impl<'a> FieldSlots<'a> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &'a [u8]) {
        if let Some(field) = Field::of(key)
            && self.texts[field as usize].replace(value).is_some()
        {
            self.is_torn.set(true);
        }
    }
}

impl Fields for FieldSlots<'_> {
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        let text = self.texts[field as usize]?;
        if field == Field::Bio {
            return parse_address(text);
        }
        let Some(value) = parse_number(text) else {
            // The others may be words.
            if matches!(field, Field::Ino | Field::Opf | Field::Datasync | Field::Transaction) {
                self.is_torn.set(true);
            }
            return None;
        };
        // A 32-bit kernel prints a negative long without the upper 32 bits.
        let is_short = field == Field::Ret && (0xffff_f001..=0xffff_ffff).contains(&value);
        Some(if is_short { value | 0xffff_ffff << 32 } else { value })
    }

    #[inline]
    fn text(&self, field: Field) -> Option<&[u8]> {
        self.texts[field as usize]
    }

    #[inline]
    fn dev(&self, field: Field) -> Option<Dev> {
        let text = self.texts[field as usize]?;
        device(text).or_else(|| u32::try_from(whole(text, Cursor::decimal)?).ok().map(Dev))
    }

    fn is_background(&self) -> bool {
        let origin = self.text(Field::Origin).and_then(|origin| std::str::from_utf8(origin).ok());
        origin.is_some_and(|origin| !origin.starts_with(|c: char| c.is_ascii_digit()) && is_background(origin))
    }
}
