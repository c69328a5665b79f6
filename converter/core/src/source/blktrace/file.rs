//! One file of a recording, with the search for the other files of the recording. Bytes that are not a record are skipped and
//! reported as messages.

use std::io;
use std::path::{Path, PathBuf};

use super::record::Shape;
use crate::error::{Error, Refused, Result};
use crate::input_file::{Input, Store};

/// Size of the longest possible record, plus the magic of the next one.
const MAX_RECORD_BYTES: usize = 64 + u16::MAX as usize + 4;
/// The notification with the wall-clock time is among the first records of a file.
const HEAD_BYTES: usize = 1 << 16;
/// Replaces the magic where a chunk holds a message instead of a record.
pub(super) const MESSAGE_MAGIC: [u8; 4] = [0; 4];
pub(super) const MESSAGE_HEADER_BYTES: usize = 16;
/// Reasons why bytes are not a record.
pub(super) const REASONS: [&str; 4] = [
    "these bytes are not a record of blktrace: the file is damaged",
    "a record whose data are shorter than its recorded length",
    "the file ends within a record: it is cut off",
    "a record of a version that Syncline does not read",
];
const GARBAGE: u32 = 0;
const SHORT_DATA: u32 = 1;
const CUT_OFF: u32 = 2;
const FOREIGN: u32 = 3;
/// Used instead of a reason: the sequence numbers show that this many records are missing.
pub(super) const LOST: u32 = 4;
/// Used instead of a reason: files of CPUs below the highest one are missing.
pub(super) const NO_FILE: u32 = 5;
pub(super) const NO_FILE_REASON: &str = "this file is missing, although files of higher CPUs exist: was it not copied?";
/// Used instead of a reason: a file of a CPU above the highest one is missing.
pub(super) const NO_HIGHER_FILE: u32 = 6;
pub(super) const NO_HIGHER_FILE_REASON: &str =
    "this file is missing: it names threads of the other files, or has the time of the recording; was it not copied?";
/// Used instead of a reason: the only file is that of CPU 0.
pub(super) const ONLY_FILE: u32 = 7;

/// Splits the name of a per-CPU file into the recording's name and the CPU.
fn split_name(path: &Path) -> Option<(&str, u32)> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (recording, cpu) = name.rsplit_once(".blktrace.")?;
    let all_digits = !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit());
    Some((recording, cpu.parse().ok().filter(|_| all_digits)?))
}

/// Lists all files of the recording to which a per-CPU file belongs: CPU, path, and whether the file is empty.
fn siblings(path: &Path) -> Vec<(u32, PathBuf, bool)> {
    let Some((recording, _)) = split_name(path) else { return Vec::new() };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut found = Vec::new();
    for entry in folder.unwrap_or(Path::new(".")).read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named = path.file_name() == Some(&name);
        let file = if is_named { path.to_path_buf() } else { path.with_file_name(&name) };
        if let Some((name, cpu)) = split_name(&file)
            && name == recording
            && let Ok(meta) = file.metadata()
            && meta.is_file()
        {
            found.push((cpu, !is_named, file.clone(), meta.len() == 0));
        }
    }
    // An uncompressed copy may exist next to a compressed file. The file that the user named wins.
    found.sort();
    found.dedup_by_key(|(cpu, ..)| *cpu);
    found.into_iter().map(|(cpu, _, file, empty)| (cpu, file, empty)).collect()
}

/// Returns the files that are read together with a per-CPU file, ordered by CPU: all non-empty files of its recording. blkparse
/// does the same.
pub(in crate::source) fn parts(path: &str) -> Vec<String> {
    let full = siblings(Path::new(path)).into_iter().filter(|(.., empty)| !empty);
    full.filter_map(|(_, file, _)| file.to_str().map(str::to_owned)).collect()
}

/// Returns the highest CPU that has a file, the number of files, and the name of the file that would follow. `None` if the path is
/// not that of a file of one CPU.
pub(super) fn last_file(path: &str) -> Option<(u32, usize, String)> {
    let files = siblings(Path::new(path));
    let (cpu, file, _) = files.last()?;
    let name = format!("{}.blktrace.{}", split_name(file)?.0, cpu + 1);
    Some((*cpu, files.len(), name))
}

/// Returns the names of missing per-CPU files below the highest CPU that has one.
pub(super) fn missing_files(path: &str) -> Vec<String> {
    let mut next = 0;
    let mut found = Vec::new();
    for (cpu, file, _) in siblings(Path::new(path)) {
        let name = |cpu: u32| split_name(&file).map_or_else(String::new, |(of, _)| format!("{of}.blktrace.{cpu}"));
        match cpu - next {
            0 => {}
            1 => found.push(name(next)),
            _ => found.push(format!("{} to {}", name(next), name(cpu - 1))),
        }
        next = cpu.saturating_add(1);
    }
    found
}

/// One file of the recording, and the read position in it.
pub(super) struct File {
    /// File name without the folder.
    name: String,
    store: Store,
    shape: Shape,
    /// File offset of the buffer.
    at: u64,
    buffer: Vec<u8>,
    taken: usize,
    pub(super) read_bytes: usize,
    /// Length and time of the next record.
    pub(super) head: Option<(usize, i64)>,
}

impl File {
    /// Opens a file. `named_path` is the file of the recording that the user named.
    pub(super) fn open(input: Input, named_path: &str) -> Result<Self> {
        let path = input.path.clone();
        let fail = |source| Error::Read { path: path.clone(), source };
        let shape = Shape::of(input.head()).ok_or_else(|| {
            let hint = if path == named_path {
                "leave out `--from`: the format is detected from the file itself".to_owned()
            } else {
                format!(
                    "its name belongs to the recording of {named_path}, so it is read together with it: copy it again, or move it away"
                )
            };
            fail(Refused::error("it is not a file of blktrace: it does not begin with a record", hint))
        })?;
        if shape.header_bytes().is_none() {
            return Err(fail(Refused::error(
                format!("its records are of version {}, and Syncline reads versions 7 and 8", shape.version),
                "print it with the blkparse that came with its blktrace: `blkparse -i NAME > NAME.txt`, and convert that",
            )));
        }
        let store = input.into_store().map_err(fail)?;
        let name = Path::new(&path).file_name().map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned());
        Ok(Self { name, store, shape, at: 0, buffer: Vec::new(), taken: 0, read_bytes: HEAD_BYTES, head: None })
    }

    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// File offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.at + self.taken as u64
    }

    /// Buffers at least `bytes` bytes, or fewer at the end of the file.
    fn ensure_buffered(&mut self, bytes: usize) -> io::Result<()> {
        let end = self.at + self.buffer.len() as u64;
        if self.rest().len() >= bytes || end >= self.store.len() {
            return Ok(());
        }
        self.at += self.taken as u64;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.store.append(end, self.read_bytes.max(bytes) as u64, &mut self.buffer)
    }

    /// Advances to the next record and keeps it until `take`. Reports bytes that are not a record in `messages`.
    pub(super) fn advance(&mut self, messages: &mut Vec<u8>) -> io::Result<()> {
        self.head = None;
        loop {
            self.ensure_buffered(MAX_RECORD_BYTES)?;
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(());
            }
            let why = match Shape::of(rest) {
                None => GARBAGE,
                Some(shape) => match shape.header_bytes() {
                    None => FOREIGN,
                    Some(header) if rest.len() < header => CUT_OFF,
                    Some(header) => {
                        let len = header + shape.pdu_bytes(rest);
                        match rest.get(len..) {
                            // No record follows, but one begins within the data: the data are shorter than the recorded length.
                            Some(next)
                                if len > header && !is_record_start(next) && self.has_record_within(header, len) =>
                            {
                                SHORT_DATA
                            }
                            Some(_) => {
                                // An invalid time is reported when the record is parsed.
                                self.head = Some((len, shape.u64(rest, 8) as i64));
                                return Ok(());
                            }
                            // The buffer holds as many bytes as the longest record, except at the end of the file.
                            None if self.has_record_within(header, len) => SHORT_DATA,
                            None => CUT_OFF,
                        }
                    }
                },
            };
            self.skip(why, messages)?;
        }
    }

    /// Returns whether a record begins in this range, relative to the read position.
    fn has_record_within(&self, from: usize, to: usize) -> bool {
        let to = self.rest().len().min(to + 3);
        memchr::memmem::find(&self.rest()[from..to], &self.shape.magic()).is_some()
    }

    /// Skips bytes that are not a record, up to the next magic.
    fn skip(&mut self, why: u32, messages: &mut Vec<u8>) -> io::Result<()> {
        let from = self.position();
        let finder = memchr::memmem::Finder::new(&self.shape.magic()).into_owned();
        self.taken += 1;
        loop {
            if let Some(at) = finder.find(self.rest()) {
                self.taken += at;
                break;
            }
            // The last bytes of the buffer may be the start of a magic.
            let is_last = self.at + self.buffer.len() as u64 >= self.store.len();
            self.taken = if is_last { self.buffer.len() } else { self.buffer.len() - 3.min(self.rest().len()) };
            if is_last {
                break;
            }
            self.ensure_buffered(MAX_RECORD_BYTES)?;
        }
        let text = format!("{} bytes from byte {from} of {}", self.position() - from, self.name);
        write_message(messages, why, text.len() as u64, text.as_bytes());
        Ok(())
    }

    pub(super) fn take(&mut self) {
        if let Some((len, _)) = self.head.take() {
            self.taken += len;
        }
    }
}

/// Returns whether `bytes` begin with a record or are the end of the file.
fn is_record_start(bytes: &[u8]) -> bool {
    bytes.len() < 4 || Shape::of(bytes).is_some()
}

/// Writes a message between the records of a chunk.
pub(super) fn write_message(out: &mut Vec<u8>, code: u32, number: u64, text: &[u8]) {
    out.extend_from_slice(&MESSAGE_MAGIC);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(text);
}
