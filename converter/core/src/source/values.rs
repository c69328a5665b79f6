//! Values that several formats print alike, and limits of what a kernel prints.

use super::cursor::Cursor;
use crate::event::{Dev, Kind};
use crate::names::NameId;

/// Parses `MAJOR,MINOR` and `MAJOR:MINOR`.
pub(super) fn device(text: &[u8]) -> Option<Dev> {
    let mut cursor = Cursor::new(text);
    let major = cursor.decimal()?;
    cursor.literal(b",").or_else(|| cursor.literal(b":"))?;
    let minor = cursor.decimal()?;
    cursor.at_end()?;
    (major < 1 << 12 && minor < 1 << 20).then(|| Dev::new(major as u32, minor as u32))
}

/// Makes the start of a sync of a whole file system, by sync() or syncfs(). The request belongs to no single file.
pub(super) fn whole_fs(id: u64, dev: Dev, fs: NameId) -> Kind {
    let (path, end) = (NameId::NONE, i64::MAX as u64);
    Kind::SyncStart { id, start: 0, end, path, fs, ino: 0, dev, datasync: false, by_thread: false }
}

/// Rejects the length of a piece of page cache that a kernel does not print, because digits of it are missing: it writes whole sectors.
pub(super) fn whole_sectors(len: u64) -> Option<()> {
    len.is_multiple_of(512).then_some(())
}

/// Rejects ranges that no kernel prints: file offsets end at 2^63, and a folio is smaller than 2^40.
pub(super) fn sane_range(offset: u64, len: u64) -> Option<()> {
    (i64::try_from(offset.checked_add(len)?).is_ok() && len <= 1 << 40).then_some(())
}
