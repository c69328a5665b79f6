//! Files, standard input, gzip and zstd, cut into chunks of whole records.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Small enough that a chunk, its events and the window stay in the cache of one core, large enough that taking a chunk costs nothing.
const CHUNK_BYTES: usize = 1 << 20;
/// A record may be this long before it is cut by force; it bounds the memory that a file without line ends can take.
const MAX_CHUNK_BYTES: usize = 64 << 20;
const HEAD_BYTES: usize = 1 << 16;
const MAX_HEAD_BYTES: usize = 8 << 20;

/// What some editors put before a text in UTF-8; no format begins so.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Reads one input. The path `-` is standard input.
pub struct Input {
    pub path: String,
    /// As the caller named it: another file may be read in the place of one that is empty.
    pub named: String,
    /// Bytes on disk, where known; for progress.
    pub total_bytes: Option<u64>,
    reader: Box<dyn Read + Send>,
    head: Vec<u8>,
    head_taken: usize,
    is_packed: bool,
    consumed: Arc<AtomicU64>,
    /// A plain file, which can be read at any place.
    plain: Option<File>,
}

/// The file itself, whatever leads to it.
pub fn file_of(path: &str) -> Option<PathBuf> {
    Path::new(path).canonicalize().ok()
}

/// An input that is read here and there.
pub struct Store {
    inner: Stored,
    len: u64,
}

enum Stored {
    File(File),
    Bytes(Vec<u8>),
}

impl Store {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Up to `len` bytes from `at`, fewer only at the end.
    pub fn read_at(&self, at: u64, len: u64) -> io::Result<Vec<u8>> {
        let mut buffer = Vec::new();
        self.append(at, len, &mut buffer)?;
        Ok(buffer)
    }

    /// As `read_at`, to the end of a buffer.
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

/// A buffer that is filled again and again; only `bytes()` is meant.
#[derive(Default)]
pub struct Chunk {
    buffer: Vec<u8>,
    len: usize,
    /// No record that comes later is older than this, in ns, where that is known.
    pub until: Option<i64>,
}

impl Chunk {
    /// A buffer for all of a chunk.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.until = None;
        self.buffer.clear();
        &mut self.buffer
    }

    /// The buffer is filled.
    pub fn end(&mut self) {
        self.len = self.buffer.len();
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Counts what is read from disk, before decompression.
struct Counting<R> {
    inner: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.consumed.fetch_add(n as u64, Ordering::Relaxed);
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
        let packed = input.is_packed;
        input.plain = plain.filter(|_| !packed);
        Ok(input)
    }

    pub fn from_bytes(path: &str, bytes: Vec<u8>) -> Result<Self> {
        Self::new(path, Some(bytes.len() as u64), Box::new(Cursor::new(bytes)))
    }

    fn new(path: &str, total_bytes: Option<u64>, raw: Box<dyn Read + Send>) -> Result<Self> {
        let fail = |source| Error::Read { path: path.to_owned(), source };
        let consumed = Arc::new(AtomicU64::new(0));
        let mut raw = Counting { inner: raw, consumed: Arc::clone(&consumed) };
        let mut magic = Vec::with_capacity(4);
        (&mut raw).take(4).read_to_end(&mut magic).map_err(fail)?;
        let (gzip, zstd) = (magic.starts_with(GZIP_MAGIC), magic.starts_with(ZSTD_MAGIC));
        let whole = Cursor::new(magic).chain(raw);
        let mut reader: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(HEAD_BYTES, whole)))
        } else if zstd {
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(fail)?)
        } else {
            Box::new(whole)
        };
        let mut head = Vec::with_capacity(HEAD_BYTES);
        loop {
            let before = head.len();
            (&mut reader).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(fail)?;
            // A first line that fills the head says little; what comes behind it may say more.
            let ended = head.len() - before < HEAD_BYTES;
            if ended || head.len() >= MAX_HEAD_BYTES || memchr::memchr(b'\n', &head[..before]).is_some() {
                break;
            }
            if before == 0 && memchr::memchr(b'\n', &head).is_some() {
                break;
            }
        }
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Self {
            path: path.to_owned(),
            named: path.to_owned(),
            total_bytes,
            reader,
            head,
            head_taken: 0,
            consumed,
            plain: None,
            is_packed: gzip || zstd,
        })
    }

    /// The same file, or a copy of it, packed or not, as far as their beginnings and their sizes tell.
    /// `of_threads`: two that did next to nothing may have the same few lines in files of their own.
    pub fn is_same_log(&self, other: &Self, of_threads: bool) -> bool {
        let surely_bytes = if of_threads { 4096 } else { 1 };
        let of_one_size = self.total_bytes.is_some() && self.total_bytes == other.total_bytes;
        let is_one = || file_of(&self.path).is_some_and(|file| file_of(&other.path) == Some(file));
        // How long a packed text is, or one from a pipe, is not known, but one that begins with the same times is the same; a binary file may begin with what
        // the kernel always says.
        let has_no_size = |input: &Self| input.is_packed || input.total_bytes.is_none();
        let of_text = (has_no_size(self) || has_no_size(other)) && !self.head.contains(&0);
        self.head == other.head
            && (of_one_size && (self.total_bytes >= Some(surely_bytes) || is_one())
                || of_text && self.head.len() as u64 >= surely_bytes)
    }

    /// The first bytes, for the sniffer; still to be read.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    pub fn consumed_bytes(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// All of it, to be read here and there. What is compressed or comes through a pipe goes to a file that nobody sees.
    pub fn into_store(mut self) -> io::Result<Store> {
        if let Some(file) = self.plain {
            let len = file.metadata()?.len();
            return Ok(Store { inner: Stored::File(file), len });
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

/// Cuts an input into chunks that end where a record ends.
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

    /// Fills `chunk` with whole records; false at the end. `cut(bytes)` says after how many bytes a record surely ends.
    pub fn next(&mut self, chunk: &mut Chunk, cut: impl Fn(&[u8]) -> Option<usize>) -> Result<bool> {
        let mut want = CHUNK_BYTES.max(self.carry.len() * 2);
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
    fn compression_is_told_by_content() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"a\nb\n").unwrap();
        let gz = gz.finish().unwrap();
        assert_eq!(chunks(gz.clone()).unwrap().concat(), b"a\nb\n");
        assert_eq!(chunks(zstd::encode_all(&b"a\nb\n"[..], 1).unwrap()).unwrap().concat(), b"a\nb\n");
        let cut = chunks(gz[..gz.len() - 9].to_vec()).unwrap_err();
        assert!(matches!(cut, Error::Read { .. }) && cut.hint().is_some(), "{cut}");
    }
}
