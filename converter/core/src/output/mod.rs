//! Output files that appear complete or not at all. A separate thread writes them.

pub mod part;
pub mod path;
pub(crate) mod terminal;

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::output::part::{Access, CreatedFolders, Part};
use crate::output::path::{folder, resolve};
use crate::output::terminal::escape;

pub(crate) const BUFFER_BYTES: usize = 1 << 19;
/// Capacity of the channel to the writing thread, in buffers.
const BUFFERS: usize = 4;

/// Changes what is written, in the writing thread.
pub trait Pack: Send {
    /// Returns the bytes to write in place of a buffer, which holds whole records. All buffers but the last one are full.
    fn pack<'a>(&'a mut self, buffer: &'a [u8]) -> &'a [u8];
}

enum Target {
    /// Standard output, a device or a pipe, which no file can replace.
    Device(File),
    Terminal(File),
    File(Part),
    Gzip(Box<flate2::write::GzEncoder<Part>>),
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Device(device) => device.write_all(bytes),
            // A buffer ends with a whole record.
            Self::Terminal(terminal) => terminal.write_all(&escape(bytes)),
            Self::File(file) => file.write_all(bytes),
            Self::Gzip(gzip) => gzip.write_all(bytes),
        }
    }

    /// Completes the file, which still has its temporary name.
    fn finish(self) -> io::Result<Option<Part>> {
        match self {
            Self::Device(_) | Self::Terminal(_) => Ok(None),
            Self::File(file) => Ok(Some(file)),
            Self::Gzip(gzip) => gzip.finish().map(Some),
        }
    }
}

/// Returns the target for standard output, a device or a pipe.
fn device(file: File) -> Target {
    if file.is_terminal() { Target::Terminal(file) } else { Target::Device(file) }
}

/// Returns standard output as a file. `io::Stdout` ignores that it is closed.
fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// The writing thread. It ends when the channel is closed, or at the first error.
struct Writer {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<Option<Part>>>,
}

impl Writer {
    fn start(mut target: Target, mut pack: Option<Box<dyn Pack>>) -> io::Result<Self> {
        let (full, buffers) = sync_channel::<Vec<u8>>(BUFFERS);
        let (recycle, empty): (Sender<Vec<u8>>, _) = channel();
        let thread = thread::Builder::new().name("syncline-write".into()).spawn(move || {
            for mut buffer in buffers {
                target.write(pack.as_mut().map_or(&buffer[..], |pack| pack.pack(&buffer)))?;
                buffer.clear();
                let _ = recycle.send(buffer);
            }
            target.finish()
        })?;
        Ok(Self { full, empty, thread })
    }

    fn finish(self) -> io::Result<Option<Part>> {
        drop(self.full);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")))
    }
}

/// A buffered output. `commit` moves the file to its name; without `commit` the file is removed.
pub struct Output {
    path: PathBuf,
    writer: Option<Writer>,
    buffer: Vec<u8>,
    /// Checksum of the bytes that were written, if `sum` was called, and how many bytes of `buffer` are in it.
    crc: Option<(flate2::Crc, usize)>,
}

impl Output {
    /// Creates the file under a temporary name in the same folder, so that the rename stays in one file system. `-` is standard output.
    pub fn create(path: &Path, gzip: bool) -> Result<Self> {
        Self::create_with(path, gzip, Access::Usual, None)
    }

    /// Like `create`, but only the user can read the file.
    pub fn create_private(path: &Path) -> Result<Self> {
        Self::create_with(path, false, Access::Private, None)
    }

    /// Like `create`, but `pack` changes each buffer before it is written.
    pub fn create_packed(path: &Path, pack: Box<dyn Pack>) -> Result<Self> {
        Self::create_with(path, false, Access::Usual, Some(pack))
    }

    fn create_with(path: &Path, gzip: bool, access: Access, pack: Option<Box<dyn Pack>>) -> Result<Self> {
        let fail = |source| Error::Write { path: path.to_owned(), source };
        let path = &resolve(path)?;
        if path.is_dir() {
            let hint = format!("name a file in it, such as {}", path.join("NAME").display());
            return Err(Error::NotHere { path: path.clone(), message: "it is a folder", hint });
        }
        if cfg!(fuzzing) && path == Path::new("-") {
            // A thread for each input would take most of the time.
            return Ok(Self::in_memory());
        }
        let target = if path == Path::new("-") {
            device(standard_output().map_err(fail)?)
        } else if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            device(File::create(path).map_err(fail)?)
        } else {
            part::remove_dead(folder(path));
            let file = Part::create(path, access)?;
            if gzip {
                Target::Gzip(Box::new(flate2::write::GzEncoder::new(file, flate2::Compression::new(4))))
            } else {
                Target::File(file)
            }
        };
        let writer = Writer::start(target, pack).map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Some(writer),
            buffer: Vec::with_capacity(BUFFER_BYTES * 2),
            crc: None,
        })
    }

    /// An output that stays in memory: `into_bytes` returns it.
    pub fn in_memory() -> Self {
        Self { path: PathBuf::from("-"), writer: None, buffer: Vec::new(), crc: None }
    }

    /// Returns what has been written to an output in memory.
    pub fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Returns the buffer to append to. Call `spill` after each record.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Passes the buffer to the writing thread if it is full.
    #[inline]
    pub fn spill(&mut self) -> Result<()> {
        if self.buffer.len() < BUFFER_BYTES { Ok(()) } else { self.send_buffer() }
    }

    /// Starts a checksum of what is written.
    pub fn sum(&mut self) {
        self.crc = Some((flate2::Crc::new(), self.buffer.len()));
    }

    /// Returns the CRC-32 of what was written since `sum`; `None` without `sum`.
    pub fn checksum(&mut self) -> Option<u32> {
        let (crc, summed) = self.crc.as_mut()?;
        crc.update(&self.buffer[*summed..]);
        *summed = self.buffer.len();
        Some(crc.sum())
    }

    fn send_buffer(&mut self) -> Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        if let Some((crc, summed)) = &mut self.crc {
            crc.update(&self.buffer[*summed..]);
            *summed = 0;
        }
        let next = writer.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BUFFER_BYTES * 2));
        if writer.full.send(std::mem::replace(&mut self.buffer, next)).is_ok() {
            return Ok(());
        }
        // The thread has ended, so it has met an error, which `close` returns.
        self.close().map(drop)
    }

    fn close(&mut self) -> Result<Option<Part>> {
        let Some(writer) = self.writer.take() else { return Ok(None) };
        writer.finish().map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Writes the rest and moves the file to its name.
    pub fn commit(&mut self) -> Result<()> {
        self.send_buffer()?;
        match self.close()? {
            Some(file) => file.persist(&self.path),
            None => Ok(()),
        }
    }

    /// Writes the rest. The file keeps its temporary name.
    fn complete(mut self) -> Result<(PathBuf, Option<Part>)> {
        self.send_buffer()?;
        let part = self.close()?;
        Ok((std::mem::take(&mut self.path), part))
    }
}

/// Writes a set of files and the folders above them. If one cannot be written, none of them is there, and what had their names stays.
pub fn write_all(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    let mut folders: Option<CreatedFolders> = None;
    let mut complete = Vec::new();
    for (path, data) in files {
        match &mut folders {
            Some(folders) => folders.add(folder(path))?,
            None => folders = Some(CreatedFolders::create(folder(path))?),
        }
        let mut output = Output::create(path, false)?;
        output.buffer().extend_from_slice(data);
        complete.push(output.complete()?);
    }
    complete.into_iter().try_for_each(|(path, part)| part.map_or(Ok(()), |part| part.persist(&path)))
}

impl Drop for Output {
    /// Waits for the thread, so that the temporary file is removed when this returns.
    fn drop(&mut self) {
        let _ = self.close();
    }
}
