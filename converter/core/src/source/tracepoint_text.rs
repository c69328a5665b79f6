//! Decodes tracepoints that are printed as text, as in the text of the ring buffer and of `perf script`. Each tracepoint has a
//! print format of its own.

use std::borrow::Cow;

use crate::event::{Dev, Event, Kind, Op};
use crate::names::NameId;
use crate::source::cursor::{Cursor, find, whole, word_len};
use crate::source::event_names::{Word, extra_key, is_background};
use crate::source::thesis::device;
use crate::source::tracepoints::{Field, Fields, Tracepoint};
use crate::source::{Batch, Extra, SourceOptions};

/// The kernel prints the tracepoints `sys_enter_CALL` and `sys_exit_CALL` as `sys_CALL`.
const ENTER: &[u8] = b"sys_enter_";
const EXIT: &[u8] = b"sys_exit_";

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
    pub(super) fn event(&mut self, of: &Task<'_>, said: &TextRecord<'_>) -> Result<bool, &'static str> {
        let point = said.point;
        let kind = match point {
            Some(point) => self.kind(point, said).ok_or_else(|| bad_data(point))?,
            None => Kind::Other,
        };
        if kind == Kind::Other && !self.options.keep_extras {
            self.batch.other(|| said.full_name());
            return Ok(false);
        }
        if self.options.keep_extras {
            self.extras(said, point, kind);
        }
        let (ts, tid, pid, comm) = (of.ts, of.tid, of.pid, self.comm(of.tid, of.comm));
        self.batch.events.push(Event { ts, tid, pid, comm, line: self.batch.lines as u32, kind });
        Ok(true)
    }

    #[inline]
    fn kind(&mut self, point: Tracepoint, said: &TextRecord<'_>) -> Option<Kind> {
        let mut slots = Slots::default();
        if !point.needs().is_empty() {
            each(said, &mut |key, value| slots.put(key, value))?;
        }
        point.kind(said.name, self.options.machine, &slots, &mut self.batch.names)
    }

    /// Stores the tracer's name of the event, and every field that the event has no field for.
    fn extras(&mut self, said: &TextRecord<'_>, point: Option<Tracepoint>, kind: Kind) {
        let Batch { names, extras, events, words, .. } = &mut *self.batch;
        let name = said.full_name();
        words.push(names.intern(&point.map_or_else(|| name.clone(), |point| point.word(&name, kind))));
        let event = events.len() as u32;
        let taken = point.map_or(&[][..], |point| point.fields(kind));
        let before = extras.len();
        let mut torn = false;
        let all = each(said, &mut |key, value| {
            if !taken.iter().any(|field| field.as_bytes() == key) {
                let value = shown(said.grammar, key, value);
                let key = names.intern(&extra_key(key));
                // A repeated field means that the line is torn.
                torn |= extras[before..].iter().any(|extra| extra.key == key);
                extras.push(Extra { event, key, value: names.intern(&value) });
            }
        });
        if all.is_none() || torn {
            extras.truncate(before);
            if !said.data.is_empty() && said.grammar != Grammar::Stack {
                let (key, value) = (names.intern(b"text"), names.intern(said.data));
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

fn bad_data(point: Tracepoint) -> &'static str {
    match point {
        Tracepoint::RawEnter => "the data of sys_enter is not `NR N (...)`",
        Tracepoint::RawExit => "the data of sys_exit is not `NR N = N`",
        Tracepoint::Of(word) => match word {
            Word::Start => {
                "the data of sync_start is not `id=N start=N end=N datasync=0 dev=MAJOR,MINOR ino=N path=REST`"
            }
            Word::FsStart => "the data of sync_fs_start is not `id=N dev=MAJOR,MINOR fs=NAME`",
            Word::End => "the data of sync_end is not `id=N ret=N`",
            Word::AddFolio => "the data of bio_add_folio is not `id=N bio=0xADDR start=N len=N`",
            Word::Submit => "the data of bio_submit is not `id=N bio=0xADDR dev=MAJOR,MINOR sector=N`",
            Word::Complete => "the data of bio_complete is not `bio=0xADDR`",
            Word::WbStart | Word::WbEnd | Word::WaitStart(_) | Word::WaitEnd(_) => "its data has no `id=N`",
            Word::Exit(_) => "the data of the call's exit is not one number",
            Word::Enter(_) => "the data of the call is not `ARG: VALUE`",
            Word::StartWithoutId => "its data has no `ino N`",
            Word::EndWithoutId => "its data has no `ret N`",
            Word::BlockSubmit | Word::BlockComplete => "its data is not `MAJOR,MINOR RWBS SECTOR + SECTORS [...]`",
            Word::BlockRemap => "its data is not `MAJOR,MINOR RWBS SECTOR + SECTORS <- (MAJOR,MINOR) SECTOR`",
        },
    }
}

/// An event as printed on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextRecord<'a> {
    /// The tracepoint's name is `prefix` followed by `name`.
    pub(super) prefix: &'static [u8],
    pub(super) name: &'a [u8],
    pub(super) point: Option<Tracepoint>,
    pub(super) grammar: Grammar,
    pub(super) data: &'a [u8],
}

/// Cache of recent event names that are followed by a colon, which saves the lookup on every line.
pub(super) struct Seen<'a>([Option<Known<'a>>; 64]);

#[derive(Clone, Copy)]
struct Known<'a> {
    name: &'a [u8],
    point: Option<Tracepoint>,
    shape: Shape,
}

impl<'a> Seen<'a> {
    pub(super) fn new() -> Self {
        Self([None; 64])
    }

    /// Looks up the name at the start of an event, if it is cached and followed by a colon.
    #[inline]
    fn known(&self, event: &[u8]) -> Option<Known<'a>> {
        let name = &event[..find(b':', event)?];
        self.0[Self::slot(name)?].filter(|known| known.name == name)
    }

    fn learn(&mut self, name: &'a [u8]) -> Known<'a> {
        let known = Known { name, point: Tracepoint::of(name), shape: Shape::of(name) };
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
    pub(super) fn of(event: &'a [u8], seen: &mut Seen<'a>) -> Option<Self> {
        let event = without_difference(event);
        if let Some(known) = seen.known(event) {
            return Some(Self::of_known(known, &event[known.name.len() + 1..]));
        }
        Self::of_other(event, seen)
    }

    #[inline]
    fn of_known(known: Known<'a>, data: &'a [u8]) -> Self {
        let data = data.trim_ascii_start();
        let data = data.strip_prefix(b"[FAILED TO PARSE]").map_or(data, <[u8]>::trim_ascii_start);
        let Known { name, point, shape } = known;
        Self { prefix: b"", name, point, grammar: shape.grammar(data), data }
    }

    fn of_other(event: &'a [u8], seen: &mut Seen<'a>) -> Option<Self> {
        let end = word_len(event);
        let (name, rest) = event.split_at(end);
        let call = name.strip_prefix(b"sys_").unwrap_or_default();
        Some(match rest {
            [b':', data @ ..] if end > 0 => Self::of_known(seen.learn(name), data),
            [b'(', data @ .., b')'] if !call.is_empty() => {
                let point = Op::from_name(call).map(|op| Tracepoint::Of(Word::Enter(op)));
                Self { prefix: ENTER, name: call, point, grammar: Grammar::HexArgs, data }
            }
            [b' ', b'-', b'>', b' ', data @ ..] if !call.is_empty() => {
                let point = Op::from_name(call).map(|op| Tracepoint::Of(Word::Exit(op)));
                Self { prefix: EXIT, name: call, point, grammar: Grammar::Ret, data }
            }
            b"<stack trace>" => Self::meaningless(b"", b"kernel_stack", Grammar::Stack, b""),
            b"<user stack trace>" => Self::meaningless(b"", b"user_stack", Grammar::Stack, b""),
            // Also `foo.isra.0 <-bar`, and `foo(a=1) <-bar` of `options/func-args`.
            _ if end > 0 && memchr::memmem::find(rest, b" <-").is_some() => {
                Self::meaningless(b"function", b"", Grammar::Free, event)
            }
            _ => return None,
        })
    }

    /// An event that is not a tracepoint that Syncline uses.
    pub(super) fn meaningless(prefix: &'static [u8], name: &'a [u8], grammar: Grammar, data: &'a [u8]) -> Self {
        Self { prefix, name, point: None, grammar, data }
    }

    fn full_name(&self) -> Cow<'a, [u8]> {
        if self.prefix.is_empty() { self.name.into() } else { [self.prefix, self.name].concat().into() }
    }
}

/// Strips `(+9)     `, the time since the previous event, of `trace-cmd report --ts-diff`.
#[inline]
fn without_difference(event: &[u8]) -> &[u8] {
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
    /// Free text.
    Free,
    /// One line per stack frame follows.
    Stack,
}

/// How the name of an event determines its grammar.
#[derive(Clone, Copy)]
enum Shape {
    Always(Grammar),
    /// This grammar, unless the fields are printed generically, starting with `__syscall_nr`.
    Call(Grammar),
    RawCall,
    Block,
    Any,
}

impl Shape {
    fn of(name: &[u8]) -> Self {
        match name {
            b"kernel_stack" | b"user_stack" => Self::Always(Grammar::Stack),
            b"tracing_mark_write" | b"print" | b"bprint" | b"bputs" | b"raw_data" => Self::Always(Grammar::Free),
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

    #[inline]
    fn grammar(self, data: &[u8]) -> Grammar {
        match self {
            Self::Always(grammar) => grammar,
            Self::Call(grammar) if !data.starts_with(b"__") => grammar,
            Self::RawCall if data.starts_with(b"NR ") => Grammar::Ret,
            Self::Block if data.first().is_some_and(u8::is_ascii_digit) => Grammar::Block,
            _ => Grammar::Any,
        }
    }
}

/// Passes each field to `emit`; `None` if the data do not follow the grammar.
#[inline]
fn each<'a>(said: &TextRecord<'a>, take: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let (name, data) = (said.name, said.data);
    match said.grammar {
        Grammar::Pairs => pairs(data, take),
        Grammar::Args | Grammar::HexArgs => args(data, take),
        Grammar::Ret if name == b"sys_enter" => {
            take(b"id", data.strip_prefix(b"NR ")?.split(|&b| b == b' ').next()?);
            Some(())
        }
        Grammar::Ret if name == b"sys_exit" => {
            let (id, ret) = split_at(data.strip_prefix(b"NR ")?, b" = ")?;
            take(b"id", id);
            take(b"ret", ret.trim_ascii_end());
            Some(())
        }
        Grammar::Ret => {
            take(b"ret", data.trim_ascii_end());
            Some(())
        }
        Grammar::Block => block(data, take),
        Grammar::Any => any(data, take),
        Grammar::Free | Grammar::Stack => None,
    }
}

/// For a short separator that occurs early; `memmem` is slower for these.
#[inline]
fn split_at<'a, const N: usize>(text: &'a [u8], by: &[u8; N]) -> Option<(&'a [u8], &'a [u8])> {
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
fn pairs<'a>(data: &'a [u8], take: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    if data.is_empty() {
        return Some(());
    }
    let mut begin = 0;
    let mut equals = key_len(data)?;
    loop {
        let (key, value) = (&data[begin..equals], equals + 1);
        if key == b"path" {
            take(key, &data[value..]);
            return Some(());
        }
        let mut end = value;
        loop {
            let Some(space) = find(b' ', &data[end..]).map(|n| end + n) else {
                take(key, &data[value..]);
                return Some(());
            };
            let next = &data[space + 1..];
            if next.is_empty() {
                take(key, &data[value..space]);
                return Some(());
            }
            // Text that is not a pair belongs to the value before it.
            if let Some(len) = key_len(next) {
                take(key, &data[value..space]);
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

fn args<'a>(data: &'a [u8], take: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let data = data.trim_ascii_end();
    if data.is_empty() {
        return Some(());
    }
    let mut rest = Some(data);
    while let Some(text) = rest {
        let (arg, after) = split_at(text, b", ").map_or((text, None), |(arg, after)| (arg, Some(after)));
        let (key, value) = split_at(arg, b": ")?;
        // With options/verbose the type precedes the name.
        let key = key.rsplit(|&b| b == b' ').next()?.trim_ascii_start();
        if !is_key(key) {
            return None;
        }
        take(key, value);
        rest = after;
    }
    Some(())
}

/// Parses block-layer data: `DEV RWBS [BYTES] [(CMD)] SECTOR + SECTORS [IOPRIO] [COMM or ERROR]`, and for a remap `<- (DEV) SECTOR`.
fn block<'a>(data: &'a [u8], take: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let (dev, rest) = split_at(data, b" ")?;
    device(dev)?;
    take(b"dev", dev);
    let (rwbs, rest) = split_at(rest, b" ")?;
    take(b"rwbs", rwbs);
    let rest = match split_at(rest, b"(").filter(|(before, _)| !before.contains(&b'+')) {
        Some((bytes, cmd)) => {
            if let Some(bytes) = bytes.strip_suffix(b" ") {
                take(b"bytes", bytes);
            }
            let (cmd, rest) = split_at(cmd, b") ")?;
            take(b"cmd", cmd);
            rest
        }
        None => rest,
    };
    let Some((sector, rest)) = split_at(rest, b" + ") else {
        // A split bio: its second part begins at another sector.
        let (sector, rest) = split_at(rest, b" / ")?;
        let (new, comm) = split_at(rest, b" [")?;
        take(b"sector", sector);
        take(b"new_sector", new);
        take(b"comm", comm.trim_ascii_end().strip_suffix(b"]")?);
        return Some(());
    };
    take(b"sector", sector);
    let (sectors, rest) = split_at(rest, b" ")?;
    take(b"nr_sector", sectors);
    if let Some(from) = rest.strip_prefix(b"<- (") {
        let (from_dev, from_sector) = split_at(from, b") ")?;
        take(b"old_dev", from_dev);
        let mut words = from_sector.split(|&b| b == b' ').filter(|word| !word.is_empty());
        take(b"old_sector", words.next()?);
        if let Some(bios) = words.next() {
            take(b"nr_bios", bios);
        }
        return Some(());
    }
    let (ioprio, last) = match rest.strip_prefix(b"[") {
        Some(last) => (None, last),
        None => split_at(rest, b" [").map(|(ioprio, last)| (Some(ioprio), last))?,
    };
    if let Some(ioprio) = ioprio {
        take(b"ioprio", ioprio);
    }
    let last = last.trim_ascii_end().strip_suffix(b"]")?;
    // Completions print an error here. A comm such as `-5` is unlikely, and losing it does no harm.
    let is_error = whole(last, Cursor::signed).is_some();
    take(if is_error { b"error" } else { b"comm" }, last);
    Some(())
}

/// Parses `key=value`; `key value`; `key = value, key: value`; `bdi NAME: key=value`.
fn any<'a>(data: &'a [u8], take: &mut impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let data = data.trim_ascii_end();
    let first = data.iter().position(|&b| b == b'=' || b == b' ')?;
    if data[first] == b'=' {
        return pairs(data, take);
    }
    if split_at(data, b" = ").is_some() || split_at(data, b", ").is_some() {
        let mut rest = Some(data);
        while let Some(text) = rest {
            let (pair, after) = split_at(text, b", ").map_or((text, None), |(pair, after)| (pair, Some(after)));
            let (key, value) = split_at(pair, b" = ").or_else(|| split_at(pair, b": "))?;
            let key = key.trim_ascii();
            if !is_key(key) {
                return None;
            }
            take(key, value.strip_prefix(b"(").and_then(|v| v.strip_suffix(b")")).unwrap_or(value));
            rest = after;
        }
        return Some(());
    }
    let mut words = data.split(|&b| b == b' ');
    while let Some(word) = words.next() {
        if word.is_empty() {
            continue;
        }
        let (key, value) = match split_at(word, b"=") {
            Some(pair) => pair,
            None => (word, words.next()?),
        };
        let key = key.strip_suffix(b":").unwrap_or(key);
        // btrfs prints its file system id first.
        if key.len() == word.len() - 1 && value.contains(&b'=') {
            take(b"fsid", key);
            let (key, value) = split_at(value, b"=")?;
            if !is_key(key) {
                return None;
            }
            take(key, value);
            continue;
        }
        if !is_key(key) {
            return None;
        }
        // The name of this field in the kernel.
        let name: &[u8] = if key == b"bdi" { b"name" } else { key };
        take(name, value.strip_suffix(b":").or_else(|| value.strip_suffix(b",")).unwrap_or(value));
    }
    Some(())
}

/// Parses a number in any print format.
#[inline]
fn number(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0x") {
        return whole(text, Cursor::hex);
    }
    whole(text, Cursor::decimal).or_else(|| whole(text, Cursor::signed).map(|value| value as u64))
}

/// Parses an address. The first version of the patch used `%px`: the kernel prints it without `0x`, trace-cmd with an `x` after it.
#[inline]
fn address(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0x") {
        let text = text.strip_suffix(b"x").filter(|text| text.len() > 2).unwrap_or(text);
        return whole(text, Cursor::hex);
    }
    whole(text, Cursor::hex_digits)
}

/// Formats a value for the low-level log, where numbers are decimal.
fn shown<'a>(grammar: Grammar, key: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    let value = if grammar == Grammar::HexArgs { Cow::Owned([b"0x", value].concat()) } else { value.into() };
    if value.starts_with(b"0x")
        && let Some(number) = number(&value)
    {
        return number.to_string().into_bytes().into();
    }
    match device(&value) {
        Some(dev) if key.ends_with(b"dev") => dev.to_string().into_bytes().into(),
        _ => value,
    }
}

/// The values of the fields that Syncline uses.
#[derive(Default)]
struct Slots<'a>([Option<&'a [u8]>; Field::COUNT]);

impl<'a> Slots<'a> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &'a [u8]) {
        if let Some(field) = Field::of(key) {
            self.0[field as usize] = Some(value);
        }
    }
}

impl Fields for Slots<'_> {
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        let text = self.0[field as usize]?;
        if field == Field::Bio {
            return address(text);
        }
        let value = number(text)?;
        // A 32-bit kernel prints a negative long without the upper 32 bits.
        let is_short = field == Field::Ret && (0xffff_f001..=0xffff_ffff).contains(&value);
        Some(if is_short { value | 0xffff_ffff << 32 } else { value })
    }

    #[inline]
    fn text(&self, field: Field) -> Option<&[u8]> {
        self.0[field as usize]
    }

    #[inline]
    fn dev(&self, field: Field) -> Option<Dev> {
        let text = self.0[field as usize]?;
        device(text).or_else(|| u32::try_from(whole(text, Cursor::decimal)?).ok().map(Dev))
    }

    fn is_background(&self) -> bool {
        let origin = self.text(Field::Origin).and_then(|origin| std::str::from_utf8(origin).ok());
        origin.is_some_and(|origin| !origin.starts_with(|c: char| c.is_ascii_digit()) && is_background(origin))
    }
}
