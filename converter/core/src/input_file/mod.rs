//! Reads files and standard input, decompresses gzip and zstd, and cuts the bytes into chunks of whole records.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub mod pasted;
mod wrapped;

use self::pasted::{Pasted, Restored};
use self::wrapped::HEADER_BYTES;
use crate::error::{Error, Refused, Result};

/// Small enough that a chunk, its events and the reorder window stay in the cache of one core; large enough that the lock around the reader
/// costs nothing.
const CHUNK_BYTES: usize = 1 << 20;
/// A longer record is cut. This bounds the memory for a file without line ends.
const MAX_CHUNK_BYTES: usize = 64 << 20;
const HEAD_BYTES: usize = 1 << 16;
const MAX_HEAD_BYTES: usize = 8 << 20;

/// Some editors write it before UTF-8 text. No format begins with it.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
/// How many bytes of a log one byte of its gzip or zstd file holds.
const USUAL_COMPRESSION: u64 = 8;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// One input, opened. The path `-` is standard input.
pub struct Input {
    pub path: String,
    /// The path that the caller gave. `path` differs if another file is read instead of an empty one.
    pub requested_path: String,
    /// Size on disk, for progress; `None` if it is not known.
    pub total_bytes: Option<u64>,
    /// Bytes of a chunk of text, unless one line is longer.
    pub chunk_bytes: usize,
    /// The head is the whole input.
    pub is_whole_in_head: bool,
    reader: Box<dyn Read + Send>,
    head: Vec<u8>,
    head_taken: usize,
    /// How much of the head is left out.
    skipped: usize,
    /// Lines of the file before the first one that is given.
    lines_before: u64,
    is_compressed: bool,
    consumed: Arc<AtomicU64>,
    /// The file, if it is a regular uncompressed file, which can be read at any offset.
    plain: Option<File>,
    /// The changes of other tools that are undone in the text that `head` and `reader` give.
    undone: Vec<Pasted>,
}

/// Returns the absolute path of a file, with all links resolved.
pub fn canonical_path(path: &str) -> Option<PathBuf> {
    Path::new(path).canonicalize().ok()
}

/// An input that can be read at any offset.
pub struct Store {
    inner: Stored,
    len: u64,
}

enum Stored {
    File(File),
    Bytes(Vec<u8>),
}

impl Store {
    /// A file that is kept open, whatever becomes of its name.
    pub fn of_file(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { inner: Stored::File(file), len })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns `len` bytes from offset `at`, fewer only at the end.
    pub fn read_at(&self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let mut buffer = Vec::new();
        self.append(at, len, &mut buffer)?;
        Ok(buffer)
    }

    /// As `read_at`, appended to a buffer.
    pub fn append(&self, at: u64, len: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        let len = len.min(self.len.saturating_sub(at)) as usize;
        match &self.inner {
            Stored::Bytes(bytes) => {
                let at = at.min(self.len) as usize;
                buffer.extend_from_slice(&bytes[at..at + len]);
                Ok(())
            }
            Stored::File(file) => {
                let end = buffer.len();
                buffer.resize(end + len, 0);
                std::os::unix::fs::FileExt::read_exact_at(file, &mut buffer[end..], at)
            }
        }
    }
}

/// A reused buffer with one chunk. Its contents are `bytes()`; the buffer behind them may be longer.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// No record that comes later is older than this, in ns; `None` if the source does not know.
    pub watermark: Option<i64>,
}

impl Chunk {
    /// Empties the chunk and returns its buffer. Call `end` when the buffer holds the whole chunk.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.watermark = None;
        self.buffer.clear();
        &mut self.buffer
    }

    pub fn end(&mut self) {
        self.len = self.buffer.len();
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Counts the bytes that are read from disk, before decompression.
struct Counting<R> {
    inner: R,
    consumed: Arc<AtomicU64>,
    /// The size of the file when it was opened; 0 for what has no size.
    size: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let consumed = self.consumed.fetch_add(n as u64, Ordering::Relaxed);
        if n == 0 && !buffer.is_empty() && consumed < self.size {
            // Otherwise the rest would be lost without a word.
            return Err(Refused::error(
                "it became shorter while it was read",
                "if it is rotated by copying, convert the copy; while something writes to it, convert a copy",
            ));
        }
        Ok(n)
    }
}

impl Input {
    pub fn open(path: &str) -> Result<Self> {
        if path == "-" {
            return Self::new("-", None, Box::new(io::stdin()));
        }
        let fail = |source| Error::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_dir() {
            return Err(fail(io::Error::other("it is a folder")));
        }
        let total = meta.is_file().then_some(meta.len());
        let plain = if meta.is_file() { file.try_clone().ok() } else { None };
        let mut input = Self::new(path, total, Box::new(file))?;
        let is_compressed = input.is_compressed;
        input.plain = plain.filter(|_| !is_compressed);
        Ok(input)
    }

    pub fn from_bytes(path: &str, bytes: Vec<u8>) -> Result<Self> {
        Self::new(path, Some(bytes.len() as u64), Box::new(Cursor::new(bytes)))
    }

    fn new(path: &str, total_bytes: Option<u64>, raw: Box<dyn Read + Send>) -> Result<Self> {
        let fail = |source| Error::Read { path: path.to_owned(), source };
        let consumed = Arc::new(AtomicU64::new(0));
        let mut raw = Counting { inner: raw, consumed: Arc::clone(&consumed), size: total_bytes.unwrap_or(0) };
        let mut magic = Vec::with_capacity(HEADER_BYTES);
        (&mut raw).take(HEADER_BYTES as u64).read_to_end(&mut magic).map_err(fail)?;
        let (gzip, zstd) = (magic.starts_with(GZIP_MAGIC), magic.starts_with(ZSTD_MAGIC));
        let compressed_trace = wrapped::compressed_trace(&magic);
        let trace = compressed_trace.map(|at| magic.split_off(at));
        let header = magic.clone();
        let whole = Cursor::new(trace.unwrap_or(magic)).chain(raw);
        let mut reader: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(HEAD_BYTES, whole)))
        } else if zstd {
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(fail)?)
        } else if compressed_trace.is_some() {
            Box::new(Cursor::new(header).chain(wrapped::CompressedTrace::new(whole)))
        } else {
            Box::new(whole)
        };
        let page = wrapped::traces_of_page(reader).map_err(fail)?;
        reader = page.reader;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let is_whole_in_head = loop {
            let before = head.len();
            (&mut reader).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(fail)?;
            // If the first line fills the head, the next lines are needed to detect the format.
            let ended = head.len() - before < HEAD_BYTES;
            if ended || head.len() >= MAX_HEAD_BYTES || memchr::memchr(b'\n', &head[..before]).is_some() {
                break ended;
            }
            if before == 0 && memchr::memchr(b'\n', &head).is_some() {
                break false;
            }
        };
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Self {
            path: path.to_owned(),
            requested_path: path.to_owned(),
            total_bytes,
            chunk_bytes: CHUNK_BYTES,
            is_whole_in_head,
            reader,
            head,
            head_taken: 0,
            skipped: 0,
            consumed,
            plain: None,
            undone: Vec::new(),
            lines_before: page.lines_before,
            is_compressed: gzip || zstd || compressed_trace.is_some() || page.lines_before > 0,
        })
    }

    /// Undoes what has happened to the lines of a text. It must not have been read yet.
    pub fn undo(&mut self, pasted: Pasted) -> Result<()> {
        if pasted == Pasted::default() {
            return Ok(());
        }
        let len = self.head.len();
        let whole = Cursor::new(std::mem::take(&mut self.head));
        let inner = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        let mut reader = Restored::new(whole.chain(inner), pasted);
        // A text may become longer.
        let most = if self.is_whole_in_head { u64::MAX } else { len as u64 };
        (&mut reader)
            .take(most)
            .read_to_end(&mut self.head)
            .map_err(|source| Error::Read { path: self.path.clone(), source })?;
        self.reader = Box::new(reader);
        self.undone.push(pasted);
        Ok(())
    }

    /// Returns whether the other input is the same file or a copy of it, compressed or not. Compares heads and sizes.
    ///
    /// `is_single_thread`: both may hold one thread each. Two threads that did next to nothing may have the same few lines, so a small file
    /// is only the same if it is the same file on disk.
    pub fn is_same_log(&self, other: &Self, is_single_thread: bool) -> bool {
        let conclusive_bytes = if is_single_thread { 4096 } else { 1 };
        let same_size = self.total_bytes.is_some() && self.total_bytes == other.total_bytes;
        let same_file = || canonical_path(&self.path).is_some_and(|file| canonical_path(&other.path) == Some(file));
        // The size of a compressed or piped text is not known, but texts that begin with the same times are the same.
        // Binary files of different recordings may begin with the same bytes: the kernel's description of its events.
        let size_unknown = |input: &Self| input.is_compressed || input.total_bytes.is_none();
        let is_text_of_unknown_size = (size_unknown(self) || size_unknown(other)) && !self.head.contains(&0);
        self.head == other.head
            && (same_size && (self.total_bytes >= Some(conclusive_bytes) || same_file())
                || is_text_of_unknown_size && self.head.len() as u64 >= conclusive_bytes)
    }

    /// Number of decompressed bytes, estimated if the input is compressed; `u64::MAX` if nothing is known of it.
    pub fn estimated_bytes(&self) -> u64 {
        match self.total_bytes {
            _ if self.is_whole_in_head => self.head.len() as u64,
            Some(bytes) if self.is_compressed => bytes.saturating_mul(USUAL_COMPRESSION),
            Some(bytes) => bytes,
            None => u64::MAX,
        }
    }

    /// The first bytes, by which the format is detected. Reading the input returns them again.
    pub fn head(&self) -> &[u8] {
        &self.head[self.skipped..]
    }

    /// Leaves out the first bytes of the head. It must be called before the input is read.
    pub fn skip(&mut self, bytes: usize) {
        self.skipped = bytes.min(self.head.len());
        self.head_taken = self.skipped;
    }

    /// The number of lines that are left out before the first one.
    pub fn skipped_lines(&self) -> u64 {
        self.lines_before + memchr::memchr_iter(b'\n', &self.head[..self.skipped]).count() as u64
    }

    /// Returns how many bytes of the head, in whole lines, repeat the end of another text, whose last part is `tail`. All of them, if the
    /// input is nothing but a part of that end.
    pub fn repeated(&self, tail: &[u8]) -> usize {
        let head = self.head();
        let Some(first) = memchr::memchr(b'\n', head) else { return 0 };
        let finder = memchr::memmem::Finder::new(&head[..=first]);
        let begins = finder.find_iter(tail).filter(|&at| at == 0 || tail[at - 1] == b'\n');
        for rest in begins.map(|at| &tail[at..]) {
            if head.starts_with(rest) && rest.ends_with(b"\n") {
                return rest.len();
            }
            if self.is_whole_in_head && rest.starts_with(head) {
                return head.len();
            }
        }
        0
    }

    /// Returns the last bytes of the file, as many as a head has, decompressed. `None` if the file can be read only once. A compressed file
    /// is read whole.
    pub fn tail(&self) -> Option<Vec<u8>> {
        let tail = self.raw_tail()?;
        Some(self.undone.iter().fold(tail, |tail, pasted| pasted.undo(&tail)))
    }

    fn raw_tail(&self) -> Option<Vec<u8>> {
        if let Some(mut file) = self.plain.as_ref().and_then(|_| File::open(&self.path).ok()) {
            let len = file.metadata().ok()?.len();
            file.seek(SeekFrom::Start(len.saturating_sub(HEAD_BYTES as u64))).ok()?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail).ok()?;
            return Some(tail);
        }
        if !self.is_compressed || self.total_bytes.is_none() {
            return None;
        }
        let mut again = Self::open(&self.path).ok()?;
        let mut tail = std::mem::take(&mut again.head);
        loop {
            let kept = tail.len().saturating_sub(HEAD_BYTES);
            tail.drain(..kept);
            if (&mut again.reader).take(HEAD_BYTES as u64).read_to_end(&mut tail).ok()? == 0 {
                return Some(tail);
            }
        }
    }

    pub fn consumed_bytes(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Returns the whole input for reading at any offset. Compressed or piped input goes to an unnamed temporary file, unless it is small.
    pub fn into_store(mut self) -> io::Result<Store> {
        if let Some(file) = self.plain {
            return Store::of_file(file);
        }
        let mut head = std::mem::take(&mut self.head);
        let small = (&mut self.reader).take(MAX_HEAD_BYTES as u64).read_to_end(&mut head)? < MAX_HEAD_BYTES;
        if small {
            let len = head.len() as u64;
            return Ok(Store { inner: Stored::Bytes(head), len });
        }
        let mut file = tempfile::tempfile()?;
        io::Write::write_all(&mut file, &head)?;
        let len = head.len() as u64 + io::copy(&mut self.reader, &mut file)?;
        Ok(Store { inner: Stored::File(file), len })
    }

    fn read_some(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.head_taken < self.head.len() {
            let n = to.len().min(self.head.len() - self.head_taken);
            to[..n].copy_from_slice(&self.head[self.head_taken..self.head_taken + n]);
            self.head_taken += n;
            return Ok(n);
        }
        loop {
            match self.reader.read(to) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// Cuts an input into chunks that end with a record.
pub struct ChunkReader {
    input: Input,
    carry: Vec<u8>,
    ended: bool,
}

impl ChunkReader {
    pub fn new(input: Input) -> Self {
        Self { input, carry: Vec::new(), ended: false }
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Fills `chunk` with whole records. Returns false at the end of the input. `cut` is as in `Lines`.
    pub fn next(&mut self, chunk: &mut Chunk, cut: impl Fn(&[u8]) -> Option<usize>) -> Result<bool> {
        let mut want = self.input.chunk_bytes.max(self.carry.len() * 2);
        if self.input.is_whole_in_head {
            // One byte more shows that the input ends.
            want = want.min(self.carry.len() + self.input.head.len() - self.input.head_taken + 1);
        }
        if chunk.buffer.len() < want {
            chunk.buffer.resize(want, 0);
        }
        chunk.buffer[..self.carry.len()].copy_from_slice(&self.carry);
        chunk.len = self.carry.len();
        self.carry.clear();
        loop {
            while chunk.len < want && !self.ended {
                let n = self
                    .input
                    .read_some(&mut chunk.buffer[chunk.len..want])
                    .map_err(|source| Error::Read { path: self.input.path.clone(), source })?;
                self.ended = n == 0;
                chunk.len += n;
            }
            if self.ended {
                return Ok(chunk.len > 0);
            }
            if let Some(end) = cut(chunk.bytes()) {
                self.carry.extend_from_slice(&chunk.buffer[end..chunk.len]);
                chunk.len = end;
                return Ok(true);
            }
            if want >= MAX_CHUNK_BYTES {
                return Ok(true);
            }
            want *= 2;
            chunk.buffer.resize(want, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn chunks(bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let mut reader = ChunkReader::new(Input::from_bytes("test", bytes)?);
        let (mut chunk, mut all) = (Chunk::default(), Vec::new());
        while reader.next(&mut chunk, |b| memchr::memrchr(b'\n', b).map(|i| i + 1))? {
            all.push(chunk.bytes().to_vec());
        }
        Ok(all)
    }

    #[test]
    fn chunks_end_with_lines_and_lose_nothing() {
        let text: Vec<u8> = (0..300_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
        let parts = chunks(text.clone()).unwrap();
        assert!(parts.len() > 1);
        assert!(parts.iter().all(|p| p.ends_with(b"\n")));
        assert_eq!(parts.concat(), text);
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_kept_whole() {
        let mut text = vec![b'x'; 3 * CHUNK_BYTES];
        text.extend_from_slice(b"\nlast");
        assert_eq!(chunks(text.clone()).unwrap().concat(), text);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_no_end_of_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        // More than the head.
        let bytes = b"1 2 a line\n".repeat(MAX_HEAD_BYTES / 4);
        std::fs::write(&path, &bytes).unwrap();
        let mut reader = ChunkReader::new(Input::open(path.to_str().unwrap()).unwrap());
        File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
        let mut chunk = Chunk::default();
        let error = loop {
            match reader.next(&mut chunk, |bytes| Some(bytes.len())) {
                Ok(true) => {}
                Ok(false) => panic!("it ended without a word"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("it became shorter while it was read"), "{error}");
        // One that grows is read as far as it was written.
        std::fs::write(&path, &bytes).unwrap();
        let mut reader = ChunkReader::new(Input::open(path.to_str().unwrap()).unwrap());
        File::options().append(true).open(&path).unwrap().write_all(b"1 2 more\n").unwrap();
        let mut read = 0;
        while reader.next(&mut chunk, |bytes| Some(bytes.len())).unwrap() {
            read += chunk.bytes().len();
        }
        assert!(read >= bytes.len());
    }

    #[test]
    fn compression_is_detected_by_content() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"a\nb\n").unwrap();
        let gz = gz.finish().unwrap();
        assert_eq!(chunks(gz.clone()).unwrap().concat(), b"a\nb\n");
        assert_eq!(chunks(zstd::encode_all(&b"a\nb\n"[..], 1).unwrap()).unwrap().concat(), b"a\nb\n");
        let cut = chunks(gz[..gz.len() - 9].to_vec()).unwrap_err();
        assert!(matches!(cut, Error::Read { .. }) && cut.hint().is_some(), "{cut}");
    }
}
