//! The text that blkparse prints from the files of blktrace: its default format, with or without `-t`.
//!
//! Each line is one record. Times are relative to the first record. Statistics follow the records; only the number of skipped events
//! is used from them. Custom formats (`-f`) are not read.
//!
//! ```text
//! 254,16   1        1     0.000000000  2967  Q  WS 274736 + 8 [wl]
//! 254,16   1        3     0.000050565  2967  P   N [wl]
//! 254,16   1        4     0.000067541  2967  U   N [wl] 1
//! 253,0    1        5     0.000068000  2967  A  WS 274736 + 8 <- (254,16) 1024
//! 254,16   1        6     0.002927018  2967  C  WS 274736 + 8 [0]
//! ```

mod sequences;
mod splits;

use memchr::{memchr, memrchr};

use self::splits::{Deferred, SplitBio, SplitBios};
use super::blktrace::Fields;
use super::block_event::{BlockFields, SECTOR_BYTES};
use super::cursor::{Cursor, whole};
use super::event_names::{EventName, errno};
use super::{Batch, Explanation, Lines, NoteKind, Problem, Reader, Source, SourceOptions, blktrace};
use crate::error::Result;
use crate::event::{Dev, Event, Kind, UNKNOWN_TASK};
use crate::input_file::Input;
use crate::names::NameId;

/// `TASK_COMM_LEN`. A longer name in brackets is another line, which was joined to it.
const COMM_BYTES: usize = 16;
/// blkparse prints this for a process without a name notification.
const NO_NAME: &[u8] = b"(null)";
/// Starts of the statistics lines after the events. Only the number of skipped events adds to what the events say.
const STATISTICS: [&[u8]; 14] = [
    b"Reads Queued:",
    b"Read Dispatches:",
    b"Reads Requeued:",
    b"Reads Completed:",
    b"Read Merges:",
    b"Read depth:",
    b"PC Read",
    b"IO unplugs:",
    b"Allocation wait:",
    b"Dispatch wait:",
    b"Completion wait:",
    b"Throughput (R/W):",
    b"Events (",
    b"Trace started at ",
];
const BAD_LINE: &str =
    "it is not `DEVICE CPU SEQUENCE TIME PID ACTION RWBS`, followed by what blkparse prints for the action";

pub struct Blkparse;

impl Source for Blkparse {
    fn name(&self) -> &'static str {
        "blkparse"
    }

    fn hidden_losses(&self) -> &'static str {
        "Events of a CPU have numbers, so a lost one leaves a gap, unless a filter or a mask has left gaps \
         everywhere. Events after the last one of a CPU leave none."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        lines.find(|line| !is_beside(line)).is_some_and(|line| Line::parse(line).is_some())
    }

    /// Numbers of devices are right-aligned.
    fn has_indent(&self, _head: &[u8]) -> bool {
        true
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let mut head = Batch::default();
        let mut numbers = Deferred::default();
        parse(&SourceOptions::default(), whole_lines(input.head()), &mut head, &mut numbers);
        let mut pass = SplitBios::default();
        pass.numbers.is_filtered = numbers.sequences.are_filtered(&head);
        let mut reader = Reader::of_lines(self, input, options);
        // blkparse subtracts the time of the first event from all times.
        reader.facts.push(("clock", "relative".to_owned()));
        reader.stateful_pass = Some(Box::new(pass));
        Ok(reader)
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        blktrace::explain(problem)
    }
}

impl Lines for Blkparse {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        memrchr(b'\n', bytes).map(|n| n + 1)
    }

    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        let mut deferred = Deferred::take(batch);
        parse(options, chunk, batch, &mut deferred);
        batch.deferred = Some(deferred);
    }
}

/// The lines of a head that are whole.
fn whole_lines(head: &[u8]) -> &[u8] {
    &head[..memrchr(b'\n', head).map_or(head.len(), |end| end + 1)]
}

fn parse(options: &SourceOptions, chunk: &[u8], batch: &mut Batch, deferred: &mut Deferred) {
    let mut at = 0;
    while at < chunk.len() {
        let end = memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |n| at + n);
        let line = chunk[at..end].strip_suffix(b"\r").unwrap_or(&chunk[at..end]).trim_ascii_start();
        at = end + 1;
        batch.lines += 1;
        if let Some(line) = Line::parse(line) {
            match line.action {
                // A message has no number.
                b"m" => {}
                b"A" => deferred.sequences.add_remap(line.cpu, line.sequence, batch),
                _ => deferred.sequences.add(line.dev, line.cpu, line.sequence, batch),
            }
            line.event(options, batch, deferred);
            continue;
        }
        let line = line.trim_ascii_end();
        if let Some(count) = skipped(line) {
            batch.note(NoteKind::Lost { count });
        } else if !line.is_empty() && !is_beside(line) {
            batch.unparsed(line, BAD_LINE);
        }
    }
}

/// Returns whether blkparse prints this line before or after the events.
fn is_beside(line: &[u8]) -> bool {
    if STATISTICS.iter().any(|begin| line.starts_with(begin)) || line.starts_with(b"Skips: ") {
        return true;
    }
    let is_input_line = line.starts_with(b"Input file ") && line.ends_with(b" added");
    // Matches `CPU0 (sda):`, `Total (sda):`, and, with -s, `fio (2967)` and `fio (2967, ...)`.
    let inside = line.strip_suffix(b"):").or_else(|| line.strip_suffix(b", ...)")).or_else(|| line.strip_suffix(b")"));
    let owner =
        inside.and_then(|text| memrchr(b'(', text).filter(|&at| at > 0 && text[at - 1] == b' ').map(|at| (text, at)));
    is_input_line
        || owner.is_some_and(|(text, at)| {
            line.starts_with(b"CPU") || line.starts_with(b"Total (") || text[at + 1..].iter().all(u8::is_ascii_digit)
        })
}

/// Number of events that blkparse missed: `Skips: 2 forward (1,234 -   0.1%)`.
fn skipped(line: &[u8]) -> Option<u64> {
    let text = line.strip_prefix(b"Skips: ")?;
    let (from, to) = (memchr(b'(', text)?, memchr(b'-', text)?);
    // The locale may group the digits.
    let digits: Vec<u8> = text.get(from..to)?.iter().copied().filter(u8::is_ascii_digit).collect();
    whole(&digits, Cursor::decimal).filter(|&count| count > 0)
}

/// The fields of an event line.
#[derive(Default)]
struct Line<'a> {
    dev: Dev,
    cpu: u64,
    sequence: u64,
    ts: i64,
    pid: u32,
    action: &'a [u8],
    rwbs: &'a [u8],
    sector: Option<i64>,
    sectors: Option<u64>,
    /// Device and sector from which a bio was remapped.
    from: Option<(Dev, i64)>,
    /// First sector of the second part of a split bio.
    new_sector: Option<u64>,
    /// Data of a SCSI command, and the length of its transfer.
    command: Option<(Option<u64>, &'a [u8])>,
    elapsed: Option<u64>,
    comm: Option<&'a [u8]>,
    error: Option<i64>,
    /// Number of unplugged requests.
    requests: Option<u64>,
    message: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    #[inline]
    fn parse(text: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(text);
        skip_spaces(&mut cursor);
        let dev = device(&mut cursor)?;
        let cpu = column(&mut cursor)?;
        let sequence = column(&mut cursor)?;
        let s = column(&mut cursor)?;
        cursor.literal(b".")?;
        let digits = cursor.rest.get(..9)?;
        let ns = whole(digits, Cursor::decimal)?;
        cursor.rest = &cursor.rest[9..];
        let ts = i64::try_from(s).ok()?.checked_mul(1_000_000_000)?.checked_add(ns as i64)?;
        let pid = column(&mut cursor)?;
        let pid = i32::try_from(pid).ok()? as u32;
        let action = letters(&mut cursor)?;
        let rwbs = letters(&mut cursor)?;
        // A space, then the details of the action.
        let rest = cursor.rest.strip_prefix(b" ").unwrap_or(cursor.rest);
        let mut line = Self { dev, cpu, sequence, ts, pid, action, rwbs, ..Self::default() };
        line.parse_details(rest)?;
        Some(line)
    }

    #[inline]
    fn parse_details(&mut self, rest: &'a [u8]) -> Option<()> {
        let mut cursor = Cursor::new(rest);
        match self.action {
            b"m" => {
                self.message = Some(rest);
                return Some(());
            }
            b"C" | b"R" => {
                // A SCSI command.
                if let Some(data) = hex_bytes(&mut cursor) {
                    self.command = Some((None, data));
                } else if cursor.rest.first() != Some(&b'[') {
                    self.sector_and_size(&mut cursor)?;
                    self.elapsed(&mut cursor)?;
                }
                cursor.literal(b"[")?;
                self.error = Some(cursor.signed()?);
                cursor.literal(b"]")?;
            }
            b"A" => {
                self.sector_and_size(&mut cursor)?;
                cursor.literal(b"<- (")?;
                let dev = device(&mut cursor)?;
                cursor.literal(b") ")?;
                self.from = Some((dev, cursor.decimal()? as i64));
            }
            b"X" => {
                self.sector = Some(cursor.decimal()? as i64);
                cursor.literal(b" / ")?;
                self.new_sector = Some(cursor.decimal()?);
                cursor.literal(b" ")?;
                self.name(&mut cursor, false)?;
            }
            b"P" | b"ZP" => self.name(&mut cursor, false)?,
            b"U" | b"UT" | b"ZU" => {
                self.name(&mut cursor, true)?;
                cursor.literal(b" ")?;
                self.requests = Some(cursor.decimal()?);
            }
            b"Q" | b"G" | b"I" | b"D" | b"M" | b"F" | b"S" | b"B" => {
                if cursor.rest.first().is_some_and(u8::is_ascii_digit) {
                    let number = cursor.decimal()?;
                    cursor.literal(b" ")?;
                    if cursor.literal(b"+ ").is_some() {
                        (self.sector, self.sectors) = (Some(number as i64), Some(cursor.decimal()?));
                        cursor.literal(b" ")?;
                        self.elapsed(&mut cursor)?;
                    } else {
                        self.command = Some((Some(number), hex_bytes(&mut cursor).unwrap_or_default()));
                    }
                } else {
                    self.elapsed(&mut cursor)?;
                }
                self.name(&mut cursor, false)?;
            }
            _ => return None,
        }
        cursor.rest = cursor.rest.trim_ascii_end();
        cursor.at_end()?;
        // blktrace stores the size in bytes as 32 bits.
        self.sectors.is_none_or(|sectors| sectors <= u64::from(u32::MAX) / SECTOR_BYTES).then_some(())
    }

    /// Parses `SECTOR + N ` or just `SECTOR `.
    fn sector_and_size(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        self.sector = Some(cursor.decimal()? as i64);
        cursor.literal(b" ")?;
        if cursor.literal(b"+ ").is_some() {
            self.sectors = Some(cursor.decimal()?);
            cursor.literal(b" ")?;
        }
        Some(())
    }

    /// Parses the elapsed time of `-t`: `(    1234) `.
    fn elapsed(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if cursor.literal(b"(").is_some() {
            skip_spaces(cursor);
            self.elapsed = Some(cursor.decimal()?);
            cursor.literal(b") ")?;
        }
        Some(())
    }

    /// Parses `[NAME]`, which may contain brackets. With `is_followed`, more text comes after it.
    fn name(&mut self, cursor: &mut Cursor<'a>, is_followed: bool) -> Option<()> {
        cursor.literal(b"[")?;
        let end = memrchr(b']', cursor.rest)?;
        if !is_followed && !cursor.rest[end + 1..].trim_ascii().is_empty() {
            return None;
        }
        if end > COMM_BYTES {
            return None;
        }
        self.comm = Some(&cursor.rest[..end]).filter(|comm| *comm != NO_NAME);
        cursor.rest = &cursor.rest[end + 1..];
        Some(())
    }

    #[inline]
    fn kind(&self) -> Kind {
        // A SCSI command has no place.
        let Some(event) = EventName::of_action(self.action).filter(|_| self.command.is_none()) else {
            return Kind::Other;
        };
        let block = BlockFields {
            dev: self.dev,
            sector: self.sector.filter(|&sector| sector >= 0),
            bytes: self.sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES),
            rwbs: self.rwbs,
            error: self.error.and_then(errno),
            from: self.from,
        };
        block.kind(event)
    }

    fn event(&self, options: &SourceOptions, batch: &mut Batch, deferred: &mut Deferred) {
        let kind = self.kind();
        if self.action == b"X"
            && let (Some(sector), Some(new_sector)) = (self.sector, self.new_sector)
        {
            SplitBio { dev: self.dev, sector, new_sector: new_sector as i64 }.defer(batch.events.len(), deferred);
        }
        if kind == Kind::Other && !options.keep_extras {
            batch.other(|| self.action);
            return;
        }
        if options.keep_extras {
            self.extras(kind, batch);
        }
        let comm = self.comm.map_or(NameId::NONE, |comm| batch.names.intern(comm));
        let line = batch.lines as u32;
        batch.events.push(Event { ts: self.ts, tid: self.pid, pid: UNKNOWN_TASK, comm, line, kind });
    }

    /// Stores the action and every field that the event has no field for, under the names that blktrace's own files use.
    fn extras(&self, kind: Kind, batch: &mut Batch) {
        let action = batch.names.intern(self.action);
        batch.event_names.push(action);
        let mut fields = Fields { event: batch.events.len() as u32, batch };
        if kind == Kind::Other {
            if self.dev.is_known() {
                fields.text("dev", self.dev.to_string().as_bytes());
            }
            if let Some(sector) = self.sector {
                fields.number("sector", sector);
            }
            if let Some(sectors) = self.sectors {
                fields.number("bytes", sectors.saturating_mul(SECTOR_BYTES));
            }
            if let Some((dev, sector)) = self.from {
                fields.text("from_dev", dev.to_string().as_bytes());
                fields.number("from_sector", sector);
            }
        }
        let numbers = [
            ("new_sector", self.new_sector),
            ("elapsed", self.elapsed),
            ("requests", self.requests),
            ("pc_bytes", self.command.and_then(|(bytes, _)| bytes)),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                fields.number(key, number);
            }
        }
        if let Some(error) = self.error {
            fields.number("error", error);
        }
        if let Some((_, data)) = self.command.filter(|(_, data)| !data.is_empty()) {
            let hex = data.iter().copied().filter(u8::is_ascii_hexdigit);
            fields.text("data", &b"0x".iter().copied().chain(hex).collect::<Vec<u8>>());
        }
        if let Some(message) = self.message {
            fields.text("message", message);
        } else {
            fields.text("rwbs", self.rwbs);
        }
        fields.number("cpu", self.cpu);
        if self.message.is_none() {
            fields.number("sequence", self.sequence);
        }
    }
}

fn skip_spaces(cursor: &mut Cursor<'_>) {
    let spaces = cursor.rest.iter().take_while(|&&b| b == b' ').count();
    cursor.rest = &cursor.rest[spaces..];
}

/// Parses a number after the spaces that align it.
#[inline]
fn column(cursor: &mut Cursor<'_>) -> Option<u64> {
    cursor.literal(b" ")?;
    skip_spaces(cursor);
    cursor.decimal()
}

/// Parses a word of letters after spaces.
#[inline]
fn letters<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    cursor.literal(b" ")?;
    skip_spaces(cursor);
    let len = cursor.rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (letters, rest) = cursor.rest.split_at(len);
    cursor.rest = rest;
    (1..=8).contains(&len).then_some(letters)
}

fn device(cursor: &mut Cursor<'_>) -> Option<Dev> {
    let major = cursor.decimal()?;
    cursor.literal(b",")?;
    let minor = cursor.decimal()?;
    (major < 1 << 12 && minor < 1 << 20).then(|| Dev::new(major as u32, minor as u32))
}

/// Parses bytes in hex, `(12 00 ..) `. Bytes after the dots are zero.
fn hex_bytes<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let inside = cursor.rest.strip_prefix(b"(")?;
    let end = memchr(b')', inside)?;
    let text = &inside[..end];
    if !text.iter().all(|&b| b.is_ascii_hexdigit() || b == b' ' || b == b'.') {
        return None;
    }
    cursor.rest = inside[end + 1..].strip_prefix(b" ")?;
    Some(text)
}
