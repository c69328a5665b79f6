//! Output files that appear whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

enum Target {
    Stdout(io::Stdout),
    File(NamedTempFile),
    Gzip(Box<flate2::write::GzEncoder<NamedTempFile>>),
}

/// A buffered output. What was written appears under its name at `commit`, and is removed if that is never called.
pub struct Output {
    path: PathBuf,
    target: Option<Target>,
    buffer: Vec<u8>,
}

const BUFFER_BYTES: usize = 1 << 18;

impl Output {
    /// `-` is standard output. The file is made beside its final place, so that the rename cannot fail for want of room.
    pub fn create(path: &Path, gzip: bool) -> Result<Self> {
        let target = if path == Path::new("-") {
            Target::Stdout(io::stdout())
        } else {
            let file = beside(path).map_err(|source| Error::Write { path: path.to_owned(), source })?;
            if gzip {
                Target::Gzip(Box::new(flate2::write::GzEncoder::new(file, flate2::Compression::new(4))))
            } else {
                Target::File(file)
            }
        };
        Ok(Self { path: path.to_owned(), target: Some(target), buffer: Vec::with_capacity(BUFFER_BYTES * 2) })
    }

    /// Where the next bytes go. Call `spill` from time to time.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub fn spill(&mut self) -> Result<()> {
        if self.buffer.len() < BUFFER_BYTES { Ok(()) } else { self.write_out() }
    }

    fn write_out(&mut self) -> Result<()> {
        let result = match &mut self.target {
            Some(Target::Stdout(out)) => out.write_all(&self.buffer),
            Some(Target::File(file)) => file.as_file_mut().write_all(&self.buffer),
            Some(Target::Gzip(gzip)) => gzip.write_all(&self.buffer),
            None => Ok(()),
        };
        self.buffer.clear();
        result.map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    pub fn commit(&mut self) -> Result<()> {
        self.write_out()?;
        let fail = |source| Error::Write { path: self.path.clone(), source };
        match self.target.take() {
            Some(Target::Stdout(mut out)) => out.flush().map_err(fail),
            Some(Target::File(file)) => persist(file, &self.path),
            Some(Target::Gzip(gzip)) => persist(gzip.finish().map_err(fail)?, &self.path),
            None => Ok(()),
        }
    }
}

/// A temporary file in the folder of `path`.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    tempfile::Builder::new().prefix(&format!(".{name}.")).suffix(".part").permissions(permissions()).tempfile_in(folder)
}

/// As a plain `open` would give; the umask is applied by the kernel.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o666)
}

pub fn persist(file: NamedTempFile, path: &Path) -> Result<()> {
    file.persist(path).map(drop).map_err(|e| Error::Write { path: path.to_owned(), source: e.error })
}
