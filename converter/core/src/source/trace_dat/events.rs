//! Which records are events that Syncline pairs, and where their fields stand.

use super::format::{Field, Format, Layout};
use super::page::Shape;
use crate::event::{Dev, Kind, NO_ID, NO_SECTOR, Op};
use crate::names::{NameId, Names};
use crate::source::thesis::whole_fs;
use crate::source::words::{Word, is_background, writes_data};

/// A number in a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    at: usize,
    size: usize,
    signed: bool,
}

impl Number {
    pub(super) fn of(field: &Field) -> Option<Self> {
        match field.layout {
            Layout::Number { signed } => Some(Self { at: field.offset, size: field.size, signed }),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn unsigned(self, shape: Shape, record: &[u8]) -> Option<u64> {
        shape.number(record, self.at, self.size)
    }

    #[inline]
    pub(super) fn signed(self, shape: Shape, record: &[u8]) -> Option<i64> {
        let value = self.unsigned(shape, record)?;
        let unused = 64 - 8 * self.size as u32;
        Some(if self.signed { (value << unused) as i64 >> unused } else { value as i64 })
    }
}

/// Bytes of a field that is text; `None` beyond the end of the record.
pub(super) fn text<'a>(field: &Field, shape: Shape, record: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = match field.layout {
        Layout::Text | Layout::Bytes => record.get(field.offset..field.offset.checked_add(field.size)?)?,
        Layout::DataLoc | Layout::RelLoc => {
            let place = shape.number(record, field.offset, 4)?;
            let base = if field.layout == Layout::RelLoc { field.offset + 4 } else { 0 };
            let from = base + (place & 0xffff) as usize;
            record.get(from..from + (place >> 16) as usize)?
        }
        Layout::Number { .. } => return None,
    };
    Some(bytes.split(|&b| b == 0).next().unwrap_or_default())
}

/// Where the block layer says what it does.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    dev: Number,
    sector: Number,
    nr_sector: Number,
    rwbs: Field,
}

/// What a record becomes.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    CallEnter(Op),
    CallExit {
        op: Op,
        ret: Number,
    },
    SyncStart {
        id: Number,
        start: Number,
        end: Number,
        datasync: Number,
        dev: Number,
        ino: Number,
        path: Field,
        fs: Option<Field>,
    },
    /// A pass over a whole file system, for sync() or syncfs().
    SyncFsStart {
        id: Number,
        dev: Number,
        fs: Field,
    },
    BioAddFolio {
        id: Number,
        bio: Number,
        offset: Number,
        len: Number,
    },
    BioSubmit {
        id: Number,
        bio: Number,
        dev: Number,
        sector: Number,
        /// Where it stands, and its values that mean a sync.
        origin: Option<(Number, Vec<u64>)>,
    },
    BioComplete {
        bio: Number,
    },
    SyncEnd {
        id: Number,
        ret: Number,
    },
    WbStart {
        id: Number,
    },
    WbEnd {
        id: Number,
    },
    /// A file system's own tracepoint, without an id. Not all tell `datasync`.
    StartWithoutId {
        fs: &'static str,
        dev: Option<Number>,
        ino: Number,
        datasync: Option<Number>,
    },
    EndWithoutId {
        ret: Number,
    },
    BlockSubmit(Blocks),
    BlockComplete(Blocks),
    BlockRemap {
        to: Blocks,
        from_dev: Number,
        from_sector: Number,
    },
    /// No event of Syncline's.
    Other,
    /// One of Syncline's, without this field.
    Lacks(&'static str),
}

impl Blocks {
    /// Of a write with data; anything else is no event of Syncline's.
    fn kind(&self, shape: Shape, record: &[u8], make: impl FnOnce(Dev, i64, u64) -> Option<Kind>) -> Option<Kind> {
        let bytes = self.nr_sector.unsigned(shape, record)?.checked_mul(512)?;
        if !writes_data(text(&self.rwbs, shape, record)?, bytes) {
            return Some(Kind::Other);
        }
        let dev = Dev(self.dev.unsigned(shape, record)? as u32);
        make(dev, i64::try_from(self.sector.unsigned(shape, record)?).ok()?, bytes)
    }
}

impl Plan {
    pub(super) fn of(format: &Format) -> Self {
        Self::known(format).unwrap_or_else(Self::Lacks)
    }

    /// An error is the name of a field that is needed and not there.
    fn known(format: &Format) -> Result<Self, &'static str> {
        let number = |name: &'static str| format.field(name).and_then(Number::of).ok_or(name);
        let field = |name: &'static str| format.field(name).cloned().ok_or(name);
        Ok(match (format.system.as_str(), format.name.as_str()) {
            ("syscalls", name) => {
                if let Some(call) = name.strip_prefix("sys_enter_") {
                    return Ok(Op::from_name(call.as_bytes()).map_or(Self::Other, Self::CallEnter));
                }
                match name.strip_prefix("sys_exit_").and_then(|call| Op::from_name(call.as_bytes())) {
                    Some(op) => Self::CallExit { op, ret: number("ret")? },
                    None => Self::Other,
                }
            }
            ("wb_tracer", "sync_start") => Self::SyncStart {
                id: number("id")?,
                start: number("start")?,
                end: number("end")?,
                datasync: number("datasync")?,
                dev: number("dev")?,
                ino: number("ino")?,
                path: field("path")?,
                fs: field("fs").ok(),
            },
            ("wb_tracer", "sync_fs_start") => {
                Self::SyncFsStart { id: number("id")?, dev: number("dev")?, fs: field("fs")? }
            }
            ("wb_tracer", "sync_end" | "sync_fs_end") => Self::SyncEnd { id: number("id")?, ret: number("ret")? },
            ("wb_tracer", "bio_add_folio") => Self::BioAddFolio {
                id: number("id")?,
                bio: number("bio")?,
                offset: number("start").or_else(|_| number("offset"))?,
                len: number("len")?,
            },
            ("wb_tracer", "bio_submit") => Self::BioSubmit {
                id: number("id")?,
                bio: number("bio")?,
                dev: number("dev")?,
                sector: number("sector")?,
                origin: format.symbols.get("origin").and_then(|values| {
                    let of_syncs = values.iter().filter(|(_, name)| !is_background(name)).map(|(value, _)| *value);
                    Some((number("origin").ok()?, of_syncs.collect()))
                }),
            },
            ("wb_tracer", "bio_complete") => Self::BioComplete { bio: number("bio")? },
            ("ext4", "ext4_sync_file_enter") => Self::StartWithoutId {
                fs: "ext4",
                dev: Some(number("dev")?),
                ino: number("ino")?,
                datasync: Some(number("datasync")?),
            },
            ("f2fs", "f2fs_sync_file_enter") => {
                Self::StartWithoutId { fs: "f2fs", dev: Some(number("dev")?), ino: number("ino")?, datasync: None }
            }
            ("xfs", "xfs_file_fsync") => {
                Self::StartWithoutId { fs: "xfs", dev: Some(number("dev")?), ino: number("ino")?, datasync: None }
            }
            ("btrfs", "btrfs_sync_file") => Self::StartWithoutId {
                fs: "btrfs",
                dev: None,
                ino: number("ino")?,
                datasync: Some(number("datasync")?),
            },
            ("ext4", "ext4_sync_file_exit") | ("f2fs", "f2fs_sync_file_exit") => {
                Self::EndWithoutId { ret: number("ret")? }
            }
            ("block", name @ ("block_bio_queue" | "block_rq_complete" | "block_bio_remap")) => {
                let blocks = Blocks {
                    dev: number("dev")?,
                    sector: number("sector")?,
                    nr_sector: number("nr_sector")?,
                    rwbs: field("rwbs")?,
                };
                match name {
                    "block_bio_queue" => Self::BlockSubmit(blocks),
                    "block_rq_complete" => Self::BlockComplete(blocks),
                    _ => Self::BlockRemap {
                        to: blocks,
                        from_dev: number("old_dev")?,
                        from_sector: number("old_sector")?,
                    },
                }
            }
            ("wb_tracer", "wb_start" | "commit_start") => Self::WbStart { id: number("id")? },
            ("wb_tracer", "wb_end" | "commit_end") => Self::WbEnd { id: number("id")? },
            _ => Self::Other,
        })
    }

    /// Fields that the event has a place for.
    pub(super) fn fields(&self, name: &str) -> &'static [&'static str] {
        match self {
            Self::Other | Self::Lacks(_) => &[],
            Self::BioAddFolio { .. } => &["id", "bio", "start", "offset", "len"],
            Self::StartWithoutId { .. } => &["dev", "ino", "datasync"],
            Self::EndWithoutId { .. } => &["ret"],
            Self::BlockSubmit(_) | Self::BlockComplete(_) => &["dev", "sector", "bytes"],
            Self::BlockRemap { .. } => &["dev", "sector", "bytes", "old_dev", "old_sector"],
            _ => Word::of(name.as_bytes()).map_or(&[], Word::fields),
        }
    }

    pub(super) fn is_other(&self) -> bool {
        matches!(self, Self::Other)
    }

    /// The event of a record; `None` where a field lies beyond its end.
    pub(super) fn kind(&self, shape: Shape, record: &[u8], names: &mut Names) -> Option<Kind> {
        let unsigned = |number: &Number| number.unsigned(shape, record);
        let signed = |number: &Number| number.signed(shape, record);
        let dev = |number: &Number| unsigned(number).map(|dev| Dev(dev as u32));
        Some(match self {
            Self::CallEnter(op) => Kind::enter(*op),
            Self::CallExit { op, ret } => Kind::exit(*op, Some(signed(ret)?)),
            Self::SyncStart { id, start, end, datasync, dev: device, ino, path, fs } => Kind::SyncStart {
                id: unsigned(id)?,
                start: unsigned(start)?,
                end: unsigned(end)?,
                path: names.intern(text(path, shape, record)?),
                fs: match fs {
                    Some(fs) => names.intern(text(fs, shape, record)?),
                    // The first patch knew one file system.
                    None => names.intern(b"ext4"),
                },
                ino: unsigned(ino)?,
                dev: dev(device)?,
                datasync: unsigned(datasync)? != 0,
                by_thread: false,
            },
            Self::SyncFsStart { id, dev: device, fs } => {
                whole_fs(unsigned(id)?, dev(device)?, names.intern(text(fs, shape, record)?))
            }
            Self::BioAddFolio { id, bio, offset, len } => Kind::BioAddFolio {
                id: unsigned(id)?,
                bio: unsigned(bio)?,
                offset: unsigned(offset)?,
                len: unsigned(len)?,
            },
            Self::BioSubmit { id, bio, dev: device, sector, origin } => Kind::BioSubmit {
                id: unsigned(id)?,
                bio: unsigned(bio)?,
                dev: dev(device)?,
                // -1 of a flush.
                sector: i64::try_from(unsigned(sector)?).unwrap_or(NO_SECTOR),
                background: match origin {
                    Some((origin, of_syncs)) => !of_syncs.contains(&unsigned(origin)?),
                    None => false,
                },
            },
            Self::BioComplete { bio } => {
                Kind::BioComplete { bio: unsigned(bio)?, sector: NO_SECTOR, dev: Dev::UNKNOWN }
            }
            Self::SyncEnd { id, ret } => Kind::SyncEnd { id: unsigned(id)?, ret: signed(ret)? },
            Self::WbStart { id } => Kind::WbStart { id: unsigned(id)? },
            Self::WbEnd { id } => Kind::WbEnd { id: unsigned(id)? },
            Self::StartWithoutId { fs, dev: device, ino, datasync } => Kind::SyncStart {
                id: NO_ID,
                start: 0,
                end: i64::MAX as u64,
                path: NameId::NONE,
                fs: names.intern(fs.as_bytes()),
                ino: unsigned(ino)?,
                dev: device.as_ref().map_or(Some(Dev::UNKNOWN), dev)?,
                datasync: datasync.as_ref().map_or(Some(0), unsigned)? != 0,
                by_thread: true,
            },
            Self::EndWithoutId { ret } => Kind::SyncEnd { id: NO_ID, ret: signed(ret)? },
            Self::BlockSubmit(blocks) => {
                blocks.kind(shape, record, |dev, sector, bytes| Some(Kind::BlockSubmit { dev, sector, bytes }))?
            }
            Self::BlockComplete(blocks) => {
                blocks.kind(shape, record, |dev, sector, bytes| Some(Kind::BlockComplete { dev, sector, bytes }))?
            }
            Self::BlockRemap { to, from_dev, from_sector } => to.kind(shape, record, |to, sector, bytes| {
                let (from_dev, from_sector) = (dev(from_dev)?, i64::try_from(unsigned(from_sector)?).ok()?);
                Some(Kind::BlockRemap { dev: to, sector, bytes, from_dev, from_sector })
            })?,
            Self::Other => Kind::Other,
            Self::Lacks(_) => return None,
        })
    }
}
