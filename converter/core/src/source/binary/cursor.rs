//! Reads numbers and strings in the byte order of a file.

use std::io;

use crate::error::Refused;

pub(in crate::source) const CUT_OFF: &str = "it ends, or a part of it does, where more should follow";

/// The error of a file that is damaged or incomplete.
pub(in crate::source) fn bad(why: impl Into<String>) -> io::Error {
    Refused::error(why, "the file is damaged, or was not copied whole: copy it again")
}

/// A position in the bytes of a file. Reading beyond the end is the error `CUT_OFF`.
pub(in crate::source) struct Cursor<'a> {
    pub(in crate::source) bytes: &'a [u8],
    pub(in crate::source) at: usize,
    pub(in crate::source) big_endian: bool,
}

impl<'a> Cursor<'a> {
    pub(in crate::source) fn take(&mut self, size: u64) -> io::Result<&'a [u8]> {
        let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size));
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| bad(CUT_OFF))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn number(&mut self, size: usize) -> io::Result<u64> {
        let bytes = self.take(size as u64)?;
        let fold = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Ok(if self.big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    pub(in crate::source) fn u16(&mut self) -> io::Result<u16> {
        self.number(2).map(|n| n as u16)
    }

    pub(in crate::source) fn u32(&mut self) -> io::Result<u32> {
        self.number(4).map(|n| n as u32)
    }

    pub(in crate::source) fn u64(&mut self) -> io::Result<u64> {
        self.number(8)
    }

    /// Reads a string up to its NUL.
    pub(in crate::source) fn string(&mut self) -> io::Result<String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = memchr::memchr(0, rest).ok_or_else(|| bad(CUT_OFF))?;
        self.at += end + 1;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    /// Reads a size that takes `size_bytes`, and as many bytes as it says.
    pub(in crate::source) fn sized(&mut self, size_bytes: usize) -> io::Result<&'a [u8]> {
        let size = self.number(size_bytes)?;
        self.take(size)
    }

    pub(in crate::source) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }
}
