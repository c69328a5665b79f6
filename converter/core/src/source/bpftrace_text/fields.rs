//! Finds the event of a line and decodes its DATA: key-value pairs, in the exact form that the thesis prints or in any order.

use memchr::memchr;

use crate::event::{Dev, Kind, NO_ID, NO_SECTOR};
use crate::names::NameId;
use crate::source::cursor::{Cursor, whole};
use crate::source::event_names::{EventName, errno_of_status};
use crate::source::low_level_log::has_field;
use crate::source::values::{device, sane_range, whole_fs, whole_sectors};

/// Maximum width of the COMM column, with the spaces that align it.
const COMM_COLUMN_BYTES: usize = 64;
/// Maximum number of pairs in DATA. No tracer prints as many; it bounds the work on a hostile line.
const MAX_PAIRS: usize = 32;

/// The key-value pairs of DATA, in any order.
#[derive(Default)]
struct Fields<'a> {
    id: Option<u64>,
    bio: Option<u64>,
    start: Option<u64>,
    end: Option<u64>,
    len: Option<u64>,
    datasync: Option<bool>,
    ret: Option<i64>,
    dev: Dev,
    ino: u64,
    transaction: u64,
    sector: Option<i64>,
    fs: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    extras: [(&'a [u8], &'a [u8]); MAX_PAIRS],
    extras_len: usize,
}

/// Decoded DATA. Names are still bytes of the line.
pub(super) struct Data<'a> {
    pub(super) kind: Kind,
    pub(super) path: Option<&'a [u8]>,
    pub(super) fs: Option<&'a [u8]>,
    pub(super) is_exit: bool,
    pub(super) extras: Vec<(&'a [u8], &'a [u8])>,
}

/// Finds the event name. COMM may contain anything, event names too: the event is the leftmost name whose remaining line is
/// exactly the data of that event.
pub(super) fn find_event(rest: &[u8], comm_bytes: usize) -> Result<(&[u8], &[u8], Data<'_>), &'static str> {
    let mut why = None;
    let mut from = 0;
    while let Some(separator) = memchr(b' ', &rest[from..]).map(|n| from + n).or_else(|| find_tab(rest, from)) {
        if separator > COMM_COLUMN_BYTES.max(comm_bytes) || rest[..separator].trim_ascii().len() > comm_bytes {
            break;
        }
        let after = &rest[separator + 1..];
        let name_len = after.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(after.len());
        let (name, data) = after.split_at(name_len);
        if let Some(event) = EventName::parse(name) {
            match parse_data(event, data) {
                Some(data) => return Ok((&rest[..separator], name, data)),
                // The first event name is most likely the intended one, so its error is reported.
                None => why = why.or(Some(bad_data(event))),
            }
        }
        from = separator + 1;
    }
    Err(why.unwrap_or("no event that Syncline knows"))
}

/// Finds an event of background writeback or of a file that is opened, written or renamed. Returns `None` if the line is not of
/// that form. The comm must not contain one of these names after a space.
pub(super) fn find_other_event(rest: &[u8]) -> Option<(&[u8], &[u8], Data<'_>)> {
    const NAMES: [&[u8]; 9] = [
        b"writeback_start",
        b"writeback_written",
        b"writeback_inode",
        b"open",
        b"unlink",
        b"rename_from",
        b"rename_to",
        b"write",
        b"close",
    ];
    let mut from = 0;
    loop {
        let separator = from + memchr(b' ', &rest[from..])?;
        let (name, data) = split_word(&rest[separator + 1..]);
        if NAMES.contains(&name) {
            let fields = parse_pairs(data, |key| key == b"path")?;
            let mut extras = fields.extras[..fields.extras_len].to_vec();
            extras.extend(fields.path.map(|path| (&b"path"[..], path)));
            let data = Data { kind: Kind::Other, path: None, fs: None, is_exit: false, extras };
            return Some((&rest[..separator], name, data));
        }
        from = separator + 1;
    }
}

fn find_tab(rest: &[u8], from: usize) -> Option<usize> {
    memchr(b'\t', &rest[from..]).map(|n| from + n)
}

fn bad_data(event: EventName) -> &'static str {
    match event {
        EventName::AddFolio => "the data of bio_add_folio is not `id N bio 0xADDR start N len N`",
        EventName::Submit => "the data of bio_submit is not `id N bio 0xADDR`",
        EventName::Complete => "the data of bio_complete is not `bio 0xADDR`",
        EventName::FsStart => "the data of sync_fs_start is not `id N dev MAJOR,MINOR fs NAME`",
        EventName::WbStart | EventName::WbEnd | EventName::WaitStart(_) | EventName::WaitEnd(_) => {
            "its data has no `id N`"
        }
        EventName::Start => "the data of start is not `id N start N end N datasync 0|1 path REST`",
        EventName::End => "the data of exit is not `id N ret N`",
        EventName::Enter(_) | EventName::Exit(_) => "the data of the syscall is not `KEY NUMBER` pairs",
        _ => "not an event of this format",
    }
}

fn parse_data(event: EventName, data: &[u8]) -> Option<Data<'_>> {
    if let Some((kind, [])) = parse_fast_data(event, data) {
        return Some(Data { kind, path: None, fs: None, is_exit: false, extras: Vec::new() });
    }
    if event == EventName::Start
        && let Some((kind, path)) = parse_fast_start(data)
    {
        return Some(Data { kind, path, fs: None, is_exit: false, extras: Vec::new() });
    }
    parse_general_data(event, data)
}

/// Decodes data in the exact form that the thesis prints, and returns the text after it.
#[inline]
pub(super) fn parse_fast_data(event: EventName, data: &[u8]) -> Option<(Kind, &[u8])> {
    let mut cursor = Cursor::new(data);
    let kind = match event {
        EventName::AddFolio => {
            cursor.literal(b" id ")?;
            let id = request_id(cursor.decimal()?)?;
            cursor.literal(b" bio ")?;
            let bio = cursor.hex()?;
            cursor.literal(b" start ")?;
            let offset = cursor.decimal()?;
            cursor.literal(b" len ")?;
            let len = cursor.decimal()?;
            sane_range(offset, len)?;
            whole_sectors(len)?;
            Kind::BioAddFolio { id, bio, offset, len, dev: Dev::UNKNOWN, ino: 0 }
        }
        EventName::Submit => {
            cursor.literal(b" id ")?;
            let id = request_id(cursor.decimal()?)?;
            cursor.literal(b" bio ")?;
            Kind::BioSubmit {
                id,
                bio: cursor.hex()?,
                sector: NO_SECTOR,
                dev: Dev::UNKNOWN,
                background: false,
                bytes: 0,
                flags: None,
            }
        }
        EventName::Complete => {
            cursor.literal(b" bio ")?;
            Kind::BioComplete { bio: cursor.hex()?, sector: NO_SECTOR, dev: Dev::UNKNOWN, error: None }
        }
        EventName::End => {
            cursor.literal(b" id ")?;
            let id = request_id(cursor.decimal()?)?;
            cursor.literal(b" ret ")?;
            Kind::end(id, cursor.signed()?)
        }
        EventName::Enter(op) => Kind::enter(op),
        EventName::Exit(op) => Kind::exit(op, None),
        _ => return None,
    };
    Some((kind, cursor.rest))
}

fn parse_fast_start(data: &[u8]) -> Option<(Kind, Option<&[u8]>)> {
    let mut cursor = Cursor::new(data);
    cursor.literal(b" id ")?;
    let id = request_id(cursor.decimal()?)?;
    cursor.literal(b" start ")?;
    let start = cursor.decimal()?;
    cursor.literal(b" end ")?;
    let end = cursor.decimal()?;
    cursor.literal(b" datasync ")?;
    let datasync = parse_flag(cursor.decimal()?)?;
    cursor.literal(b" path ")?;
    if has_line(cursor.rest) {
        return None;
    }
    let path = (!cursor.rest.is_empty()).then_some(cursor.rest);
    Some((sync_start(id, start, end, datasync, Dev::UNKNOWN, 0), path))
}

fn sync_start(id: u64, start: u64, end: u64, datasync: bool, dev: Dev, ino: u64) -> Kind {
    Kind::SyncStart { id, start, end, path: NameId::NONE, fs: NameId::NONE, ino, dev, datasync, by_thread: false }
}

fn parse_general_data(event: EventName, data: &[u8]) -> Option<Data<'_>> {
    if let EventName::Enter(op) = event {
        // `fsync exit`, `fsync exit ret 0`, `fsync ret 0`.
        let words = data.trim_ascii();
        let exit = words.strip_prefix(b"exit").filter(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        let mut decoded = match exit {
            Some(rest) => parse_call_pairs(EventName::Exit(op), rest)?,
            None => parse_call_pairs(event, words)?,
        };
        decoded.is_exit = matches!(decoded.kind, Kind::CallExit { .. });
        return Some(decoded);
    }
    if let EventName::Exit(_) = event {
        return parse_call_pairs(event, data);
    }
    let fields = parse_pairs(data, |key| has_field(event, key))?;
    let kind = match event {
        EventName::AddFolio => {
            let (offset, len) = (fields.start?, fields.len?);
            sane_range(offset, len)?;
            whole_sectors(len)?;
            Kind::BioAddFolio { id: fields.id?, bio: fields.bio?, offset, len, dev: fields.dev, ino: fields.ino }
        }
        EventName::Submit => Kind::BioSubmit {
            id: fields.id?,
            bio: fields.bio?,
            sector: fields.sector.unwrap_or(NO_SECTOR),
            dev: fields.dev,
            background: false,
            bytes: 0,
            flags: None,
        },
        EventName::Complete => {
            let sector = fields.sector.unwrap_or(NO_SECTOR);
            if fields.bio.is_none() && !(fields.dev.is_known() && sector != NO_SECTOR) {
                return None;
            }
            let status = fields.extras[..fields.extras_len].iter().find(|(key, _)| *key == b"status");
            // The kernel prints no zero before a number, so a line with one is damaged.
            let is_whole = |status: &[u8]| matches!(status, b"0") || !matches!(status, [b'0', ..] | [b'-', b'0', ..]);
            let status = status.map(|&(_, status)| status).filter(|status| is_whole(status));
            let error = status.and_then(|status| errno_of_status(whole(status, Cursor::signed)?));
            Kind::BioComplete { bio: fields.bio.unwrap_or(0), sector, dev: fields.dev, error }
        }
        EventName::Start => {
            fields.path.filter(|path| !has_line(path))?;
            sync_start(fields.id?, fields.start?, fields.end?, fields.datasync?, fields.dev, fields.ino)
        }
        EventName::End => Kind::end(fields.id?, fields.ret?),
        EventName::FsStart => whole_fs(fields.id?, fields.dev, NameId::NONE),
        EventName::WbStart => Kind::WbStart { id: fields.id? },
        EventName::WbEnd => Kind::WbEnd { id: fields.id? },
        EventName::WaitStart(wait) => Kind::WaitStart { id: fields.id?, wait, transaction: fields.transaction },
        EventName::WaitEnd(wait) => Kind::WaitEnd { id: fields.id?, wait, transaction: fields.transaction },
        _ => return None,
    };
    Some(Data {
        kind,
        path: fields.path.filter(|p| !p.is_empty()),
        fs: fields.fs,
        is_exit: false,
        extras: fields.extras[..fields.extras_len].to_vec(),
    })
}

/// Decodes the pairs of a syscall. Values must be numbers: a comm that equals a syscall name must not swallow the text after it.
fn parse_call_pairs(event: EventName, data: &[u8]) -> Option<Data<'_>> {
    let mut ret = None;
    let mut extras = Vec::new();
    let mut words = data.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    while let Some(key) = words.next() {
        let value = words.next()?;
        let twice = extras.iter().any(|(k, _)| *k == key) || key == b"ret" && ret.is_some();
        // `start` is the name of a field too.
        if twice || key != b"start" && EventName::parse(key).is_some() {
            return None;
        } else if key == b"ret" {
            ret = Some(whole(value, Cursor::signed)?);
        } else if !is_name(key) || matches!(key, b"id" | b"bio") {
            return None;
        } else {
            whole(value, Cursor::signed).or_else(|| whole(value, Cursor::hex).map(|_| 0))?;
            extras.push((key, value));
        }
        if extras.len() > MAX_PAIRS {
            return None;
        }
    }
    let kind = match event {
        EventName::Enter(op) if ret.is_none() => Kind::enter(op),
        EventName::Enter(op) | EventName::Exit(op) => Kind::exit(op, ret),
        _ => return None,
    };
    Some(Data { kind, path: None, fs: None, is_exit: false, extras })
}

/// Parses key-value pairs. All keys but those of fields of the event become extras.
fn parse_pairs(data: &[u8], is_field: impl Fn(&[u8]) -> bool) -> Option<Fields<'_>> {
    let mut fields = Fields::default();
    let mut seen: [&[u8]; MAX_PAIRS] = [b""; MAX_PAIRS];
    let mut rest = data;
    for index in 0..=MAX_PAIRS {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(fields);
        }
        let (key, after) = split_word(rest);
        let is_used = is_field(key);
        if is_used && key == b"path" {
            fields.path = Some(after.get(1..).unwrap_or_default());
            return Some(fields);
        }
        let (value, after) = split_word(after.trim_ascii_start());
        // A repeated key means that the line is torn.
        if value.is_empty() || seen.contains(&key) {
            return None;
        }
        *seen.get_mut(index)? = key;
        match key {
            // A comm may contain an event name. The event is then further right.
            _ if !is_used => {
                let is_event_name =
                    key != b"start" && EventName::parse(key).is_some() || EventName::parse(value).is_some();
                if is_event_name || !is_name(key) {
                    return None;
                }
                *fields.extras.get_mut(fields.extras_len)? = (key, value);
                fields.extras_len += 1;
            }
            b"id" => fields.id = Some(request_id(whole(value, Cursor::decimal)?)?),
            b"bio" => fields.bio = Some(whole(value, Cursor::hex)?),
            b"start" => fields.start = Some(whole(value, Cursor::decimal)?),
            // A signed format prints "to the end" as -1.
            b"end" => {
                let signed = || whole(value, Cursor::signed).map(|end| end as u64);
                fields.end = Some(whole(value, Cursor::decimal).or_else(signed)?);
            }
            b"len" => fields.len = Some(whole(value, Cursor::decimal)?),
            b"datasync" => fields.datasync = Some(parse_flag(whole(value, Cursor::decimal)?)?),
            b"ret" => fields.ret = Some(whole(value, Cursor::signed)?),
            b"sector" => fields.sector = Some(whole(value, Cursor::signed)?),
            b"ino" => fields.ino = whole(value, Cursor::decimal)?,
            b"transaction" => fields.transaction = whole(value, Cursor::decimal)?,
            b"dev" => fields.dev = device(value)?,
            b"fs" => fields.fs = Some(value),
            _ => return None,
        }
        rest = after;
    }
    None
}

/// Returns whether `key` can be a field name of the tracer: letters, digits and `_`. Anything else comes from another line that
/// was torn into this one.
fn is_name(key: &[u8]) -> bool {
    key.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') && !key[0].is_ascii_digit()
}

/// Rejects `NO_ID`, which means "no id". No kernel counts that far.
fn request_id(id: u64) -> Option<u64> {
    (id != NO_ID).then_some(id)
}

fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(text.len()))
}

fn parse_flag(value: u64) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Whether another line is joined to a path: `/a/b41754134953 559 wl bio_submit id 420 bio 0xff1100`.
fn has_line(path: &[u8]) -> bool {
    if memchr(b' ', path).is_none() {
        return false;
    }
    let words: Vec<&[u8]> = path.split(|&b| b == b' ').collect();
    let is_number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    words.windows(4).any(|words| {
        // The time follows the path without a blank.
        words[0].last().is_some_and(u8::is_ascii_digit) && is_number(words[1]) && EventName::parse(words[3]).is_some()
    })
}
