//! The dynamic events (kprobe, fprobe) that `syncline record` defines on a stock kernel: their names and fields, shared by the text and the
//! binary form of the ring buffer and by the low-level log. docs/reference/formats.md lists them.

use std::borrow::Cow;

use super::event_names::errno_of_status;
use super::values::{device, sane_range};
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::file_op::{FileOpKind, NO_NUMBER, ProbedCall, ProbedReturn};
use crate::event::probe::{BioRole, FileBuffer, NO_OFFSET, Probe, SyncScope, WaitSite, WaitedFor, WriteWaitKind};
use crate::event::{Dev, FastCommitReason, Kind, NO_SECTOR};
use crate::names::{NameId, Names};

/// Page size where an offset is counted in pages. All kernels that the recorder supports have it, apart from some of arm64.
const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
/// The flag of a bio that shares the pages of another one (`BIO_CLONED`, from Linux 5.3 on). Those that file systems fill have it only on btrfs.
const BIO_CLONED: u64 = 1 << 1;
/// The names of a file and of the folders above it.
const MAX_NAMES: usize = 16;
/// More than the recorder gives an event.
pub(super) const MAX_FIELDS: usize = 32;
/// The kernel's number for work that sync() or syncfs() asked for (`WB_REASON_SYNC`).
const REASON_SYNC: u64 = 2;

/// Fields that only dynamic events have, as the kernel stores and as Syncline prints them.
pub(super) const PROBE_FIELDS: [&str; 4] = ["probe", "__probe_ip", "__probe_func", "__probe_ret_ip"];

/// Whether this is the name of an event on a tracepoint, which has none of `PROBE_FIELDS`.
pub(super) fn is_on_tracepoint(name: &[u8]) -> bool {
    matches!(name, b"inode_lock" | b"inode_lock_end")
}

/// Whether a field of a dynamic event is a text: a name, which may look like a number.
pub(super) fn is_text(key: &[u8]) -> bool {
    matches!(key, b"fs" | b"holder_comm" | b"holder_comm_marked")
        || key
            .strip_prefix(b"n")
            .or_else(|| key.strip_prefix(b"t"))
            .is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

/// The function of `FUNCTION+0x4/0x90`, and of `CALLER+0x4/0x90 <- FUNCTION`.
pub(super) fn probed_function(place: &[u8]) -> &[u8] {
    let arrow = memchr::memmem::find(place, b" <- ");
    function_name(arrow.map_or(place, |at| &place[at + 4..]))
}

/// A dynamic event that Syncline uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DynamicEvent {
    SyncEnter(SyncScope),
    SyncExit(SyncScope),
    AddFolio {
        is_page: bool,
    },
    Submit,
    Read,
    End,
    WaitStart(WaitSite),
    WaitEnd(WaitSite),
    WorkStart,
    WorkEnd,
    /// In the function that waits for one folio; else for those of a range.
    FolioWait,
    FolioWaitEnd,
    CommitRequest,
    CommitTimer,
    FastCommitIneligible,
    WriteWait(WriteWaitKind),
    WriteWaitEnd(WriteWaitKind),
    PageLock,
    PageLockEnd,
    FileCall(FileOpKind),
    FileReturn(FileOpKind),
}

/// The fields of a dynamic event. A value that is absent or of the wrong type is `None`.
pub(super) trait ProbeFields {
    /// A number; negative values are in two's complement.
    fn number(&self, field: &str) -> Option<u64>;
    fn text(&self, field: &str) -> Option<Cow<'_, [u8]>>;
    /// The name of a function of the kernel, with or without an offset.
    fn symbol(&self, field: &str) -> Option<Cow<'_, [u8]>>;
    /// The function that was probed, or its address.
    fn function(&self) -> Cow<'_, [u8]>;
}

impl DynamicEvent {
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"fsync_enter" => Self::SyncEnter(SyncScope::File),
            b"range_enter" => Self::SyncEnter(SyncScope::Range),
            b"syncfs_enter" => Self::SyncEnter(SyncScope::FileSystem),
            b"sync_inodes" => Self::SyncEnter(SyncScope::Data),
            b"sync_super" => Self::SyncEnter(SyncScope::Journal),
            b"fsync_exit" => Self::SyncExit(SyncScope::File),
            b"range_exit" => Self::SyncExit(SyncScope::Range),
            b"syncfs_exit" => Self::SyncExit(SyncScope::FileSystem),
            b"sync_inodes_end" => Self::SyncExit(SyncScope::Data),
            b"sync_super_end" => Self::SyncExit(SyncScope::Journal),
            b"bio_add_folio" => Self::AddFolio { is_page: false },
            b"bio_add_page" => Self::AddFolio { is_page: true },
            b"bio" => Self::Submit,
            b"read" => Self::Read,
            b"bio_end" => Self::End,
            b"writeback_work" => Self::WorkStart,
            b"writeback_work_end" => Self::WorkEnd,
            b"filemap_wait" | b"folio_wait" => Self::FolioWait,
            b"filemap_wait_end" | b"folio_wait_end" => Self::FolioWaitEnd,
            b"commit_request" => Self::CommitRequest,
            b"commit_timer" => Self::CommitTimer,
            b"fc_ineligible" => Self::FastCommitIneligible,
            b"page_lock" => Self::PageLock,
            b"page_lock_end" => Self::PageLockEnd,
            _ => match name.strip_suffix(b"_end") {
                Some(start) => match (write_wait(start), file_op(start)) {
                    (Some(kind), _) => Self::WriteWaitEnd(kind),
                    (None, Some(op)) => Self::FileReturn(op),
                    (None, None) => Self::WaitEnd(wait_site(start)?),
                },
                // The tracepoint of the kernel reports the begin of a pause.
                None => match (write_wait(name), file_op(name)) {
                    (Some(WriteWaitKind::Throttling), _) => return None,
                    (Some(kind), _) => Self::WriteWait(kind),
                    (None, Some(op)) => Self::FileCall(op),
                    (None, None) => Self::WaitStart(wait_site(name)?),
                },
            },
        })
    }

    /// Fields without which the event cannot be used.
    pub(super) fn required_fields(self) -> &'static [&'static str] {
        match self {
            Self::SyncEnter(SyncScope::File | SyncScope::Range) => &["ino"],
            Self::SyncEnter(_) | Self::WorkStart | Self::FastCommitIneligible | Self::WaitStart(WaitSite::Buffer) => {
                &["dev"]
            }
            Self::AddFolio { .. } => &["bio", "len"],
            Self::Submit => &["bio", "dev", "bytes"],
            Self::Read => &["disk", "sector", "bytes", "opf"],
            Self::End => &["bio"],
            Self::CommitRequest => &["dev", "tid"],
            Self::WriteWait(WriteWaitKind::InodeLock) => &["lock", "at", "host", "ino", "mode"],
            Self::WriteWaitEnd(WriteWaitKind::InodeLock) => &["lock", "at", "host"],
            Self::SyncExit { .. }
            | Self::WaitStart(_)
            | Self::WaitEnd(_)
            | Self::WorkEnd
            | Self::FolioWait
            | Self::FolioWaitEnd
            | Self::CommitTimer
            | Self::WriteWait(_)
            | Self::WriteWaitEnd(_)
            | Self::PageLock
            | Self::PageLockEnd
            | Self::FileCall(FileOpKind::Open | FileOpKind::Exit)
            | Self::FileReturn(_) => &[],
            Self::FileCall(_) => &["dev", "n0"],
        }
    }

    /// Decodes the event; `None` if a field is missing or out of range.
    pub(super) fn kind(self, fields: &impl ProbeFields, names: &mut Names) -> Option<Kind> {
        let number = |field| fields.number(field);
        let dev = |field| fields.number(field).map_or(Dev::UNKNOWN, |dev| Dev(dev as u32));
        Some(Kind::Probe(match self {
            Self::SyncEnter(scope) => {
                let whole_fs = scope.is_whole_fs();
                let ino = if whole_fs { 0 } else { number("ino")? };
                let function = fields.function();
                let fs = fields.text("fs").filter(|fs| !fs.is_empty());
                let fs = fs.unwrap_or_else(|| file_system_of(&function).into());
                Probe::SyncEnter {
                    scope,
                    dev: if whole_fs { Dev(number("dev")? as u32) } else { dev("dev") },
                    ino,
                    generation: number("gen").unwrap_or(0) as u32,
                    container_path: NameId::NONE,
                    path: path(fields, MAX_NAMES).map_or(NameId::NONE, |path| names.intern(&path)),
                    fs: if fs.is_empty() { NameId::NONE } else { names.intern(&fs) },
                    datasync: match scope {
                        SyncScope::Range => Some(true),
                        _ => number("datasync").map(|datasync| datasync as u32 != 0),
                    },
                    function: names.intern(&function),
                }
            }
            Self::SyncExit(scope) => Probe::SyncExit { scope, ret: number("ret").map(|ret| ret as i64) },
            Self::AddFolio { is_page } => {
                let len = number("len")?;
                // The place in the folio counts from its first page.
                let offset = number("index").and_then(|index| index.checked_mul(PAGE_BYTES));
                let offset = offset.and_then(|start| start.checked_add(number("off").unwrap_or(0)));
                let offset = offset.filter(|&offset| sane_range(offset, len).is_some());
                sane_range(0, len)?;
                Probe::AddFolio {
                    bio: number("bio")?,
                    dev: dev("dev"),
                    ino: number("ino").unwrap_or(0),
                    offset: offset.unwrap_or(NO_OFFSET),
                    len,
                    is_page,
                }
            }
            Self::Submit => {
                let bytes = u64::from(u32::try_from(number("bytes")?).ok()?);
                let end = fields.symbol("end_io");
                let flags = number("opf").and_then(BioFlags::of_opf);
                let role = match number("opf").map(|opf| opf & 0xff) {
                    // REQ_OP_WRITE, and REQ_OP_ZONE_APPEND of newer and of older kernels.
                    None | Some(1 | 7 | 13) if bytes > 0 => role_of(end.as_deref().unwrap_or_default()),
                    None | Some(1)
                        if end.as_ref().is_some_and(|end| function_name(end) == b"btrfs_end_empty_barrier") =>
                    {
                        BioRole::SentFlush
                    }
                    None | Some(1) => match end.as_deref().map(role_of) {
                        Some(role @ (BioRole::Copy | BioRole::Mirror)) => role,
                        _ if flags.is_some_and(|flags| flags.direction(0) == Direction::Flush) => BioRole::Flush,
                        _ => return Some(Kind::Other),
                    },
                    Some(_) => BioRole::Read,
                };
                let sector = number("sector").and_then(|sector| i64::try_from(sector).ok()).unwrap_or(NO_SECTOR);
                Probe::Submit { bio: number("bio")?, dev: Dev(number("dev")? as u32), sector, bytes, role, flags }
            }
            Self::Read => {
                let flags = number("opf").and_then(BioFlags::of_opf)?;
                let bytes = u64::from(u32::try_from(number("bytes")?).ok()?);
                if !flags.is_read() || bytes == 0 {
                    return Some(Kind::Other);
                }
                Probe::Read {
                    dev: Dev(number("disk")? as u32),
                    sector: i64::try_from(number("sector")?).ok()?,
                    bytes,
                    flags,
                    file: read_file(fields),
                }
            }
            Self::End => {
                let error = number("status").and_then(|status| errno_of_status(i64::from(status as u8)));
                let remaining = number("remaining").unwrap_or(0) as u32;
                let is_clone = number("flags").is_some_and(|flags| flags & BIO_CLONED != 0);
                let role = match fields.symbol("end_io").map(|end| role_of(&end)) {
                    None if is_clone => Some(BioRole::Copy),
                    role => role,
                };
                Probe::End { bio: number("bio")?, error, remaining, parent: number("private").unwrap_or(0), role }
            }
            Self::WaitStart(site) => {
                let transaction = number("tid").or_else(|| number("seq")).unwrap_or(0);
                let buffer = (site == WaitSite::Buffer).then(|| file_buffer(fields)).flatten();
                Probe::WaitStart { site, transaction, dev: dev("dev"), buffer }
            }
            Self::WaitEnd(site) => Probe::WaitEnd { site },
            Self::WorkStart => {
                return Some(work_start(
                    Dev(number("dev")? as u32),
                    number("reason"),
                    fields.text("reason").as_deref(),
                ));
            }
            Self::WorkEnd => Probe::WorkEnd,
            Self::FolioWait => Probe::FolioWait { dev: dev("dev"), ino: number("ino").unwrap_or(0) },
            Self::WriteWait(WriteWaitKind::InodeLock) => {
                // The lock of something else, or of a folder.
                if !is_of_inode(fields)? || number("mode")? & FILE_TYPE != REGULAR_FILE {
                    return Some(Kind::Other);
                }
                let (holder, holder_comm) = holder(fields);
                let waited_for = WaitedFor {
                    dev: dev("dev"),
                    ino: number("ino")?,
                    holder,
                    holder_comm: holder_comm.map_or(NameId::NONE, |comm| names.intern(&comm)),
                    ..WaitedFor::default()
                };
                Probe::WriteWaitStart { kind: WriteWaitKind::InodeLock, waited_for }
            }
            Self::WriteWait(WriteWaitKind::PageRead) => {
                let Some((dev, ino)) = read_file(fields) else { return Some(Kind::Other) };
                let waited_for = WaitedFor { dev, ino, ..WaitedFor::default() };
                Probe::WriteWaitStart { kind: WriteWaitKind::PageRead, waited_for }
            }
            Self::WriteWaitEnd(WriteWaitKind::InodeLock) if !is_of_inode(fields)? => return Some(Kind::Other),
            Self::WriteWait(kind) => {
                let transaction = number("tid").unwrap_or(0);
                Probe::WriteWaitStart {
                    kind,
                    waited_for: WaitedFor { dev: dev("dev"), transaction, ..WaitedFor::default() },
                }
            }
            Self::WriteWaitEnd(kind) => Probe::WriteWaitEnd { kind },
            Self::PageLock => match read_file(fields) {
                Some((dev, ino)) => Probe::PageLock { dev, ino },
                None => return Some(Kind::Other),
            },
            Self::PageLockEnd => Probe::PageLockEnd,
            Self::FileCall(op) => Probe::FileCall(file_call(op, fields, names)),
            Self::FileReturn(op) => match file_return(op, fields, names) {
                Some(returned) => Probe::FileReturn(returned),
                None => return Some(Kind::Other),
            },
            Self::FolioWaitEnd => Probe::FolioWaitEnd,
            Self::CommitRequest => Probe::CommitRequest {
                dev: Dev(number("dev")? as u32),
                transaction: u64::from(number("tid")? as u32),
                // Both count ticks, and may wrap.
                is_due: number("now")
                    .zip(number("expires"))
                    .map(|(now, expires)| now.wrapping_sub(expires) as i64 >= 0),
            },
            Self::CommitTimer => Probe::CommitTimer,
            Self::FastCommitIneligible => Probe::FastCommitIneligible {
                dev: Dev(number("dev")? as u32),
                reason: number("reason").and_then(|n| FastCommitReason::ALL.get(usize::try_from(n).ok()?).copied()),
            },
        }))
    }
}

/// Flags of an open, as the kernel numbers them on x86_64, with the access mode in the lowest two bits.
const OPEN_FLAGS: [(u64, &str); 12] = [
    (0o100, "O_CREAT"),
    (0o200, "O_EXCL"),
    (0o1000, "O_TRUNC"),
    (0o2000, "O_APPEND"),
    (0o4000, "O_NONBLOCK"),
    (0o4_000_000, "__O_SYNC"),
    (0o10_000, "O_DSYNC"),
    (0o40_000, "O_DIRECT"),
    (0o200_000, "O_DIRECTORY"),
    (0o400_000, "O_NOFOLLOW"),
    (0o2_000_000, "O_CLOEXEC"),
    (0o10_000_000, "O_PATH"),
];
const RENAME_FLAGS: [(u64, &str); 3] = [(1, "RENAME_NOREPLACE"), (2, "RENAME_EXCHANGE"), (4, "RENAME_WHITEOUT")];
const ALLOCATE_FLAGS: [(u64, &str); 5] = [
    (1, "FALLOC_FL_KEEP_SIZE"),
    (2, "FALLOC_FL_PUNCH_HOLE"),
    (8, "FALLOC_FL_COLLAPSE_RANGE"),
    (16, "FALLOC_FL_ZERO_RANGE"),
    (32, "FALLOC_FL_INSERT_RANGE"),
];
/// The bit of `f_mode` of a file that its open has created (`FMODE_CREATED`).
const CREATED: u64 = 1 << 20;
/// Flags of a write. Those that its file was opened with are among them.
const WRITE_FLAGS: [(u64, &str); 3] = [(2, "RWF_DSYNC"), (4, "RWF_SYNC"), (APPENDS, "RWF_APPEND")];
const APPENDS: u64 = 16;
/// Pointers above this one are errors.
const LAST_POINTER: u64 = u64::MAX - 4095;

fn file_op(name: &[u8]) -> Option<FileOpKind> {
    let name = name.strip_prefix(b"file_")?;
    FileOpKind::ALL.into_iter().find(|op| op.name().as_bytes() == name)
}

fn file_call(op: FileOpKind, fields: &impl ProbeFields, names: &mut Names) -> ProbedCall {
    let number = |field| fields.number(field);
    let mut name = |prefix| path_of(fields, prefix, MAX_NAMES).map_or(NameId::NONE, |path| names.intern(&path));
    let (path, to_path) = (name("n"), name("t"));
    let offset = match op {
        // Where append mode begins to write.
        FileOpKind::Write if number("ki_flags").is_some_and(|flags| flags & APPENDS != 0) => number("file_size"),
        _ => number("offset"),
    };
    let known = |number: Option<u64>| number.and_then(|n| i64::try_from(n).ok()).unwrap_or(NO_NUMBER);
    let flags = number("flags").or_else(|| number("ki_flags")).map(|flags| match op {
        FileOpKind::Open => open_flags(flags),
        FileOpKind::Write => joined(flags, &WRITE_FLAGS),
        FileOpKind::Rename => joined(flags, &RENAME_FLAGS),
        _ => joined(flags, &ALLOCATE_FLAGS),
    });
    ProbedCall {
        op,
        dev: number("dev").map_or(Dev::UNKNOWN, |dev| Dev(dev as u32)),
        path,
        to_path,
        flags: flags.filter(|flags| !flags.is_empty()).map_or(NameId::NONE, |flags| names.intern(flags.as_bytes())),
        offset: known(offset),
        len: known(number("len")),
    }
}

/// `None` for an open of something else than a file or a folder of a file system that is recorded.
fn file_return(op: FileOpKind, fields: &impl ProbeFields, names: &mut Names) -> Option<ProbedReturn> {
    let number = |field| fields.number(field);
    let ret = number("ret").map(|ret| match (op, u32::try_from(ret)) {
        // A pointer if it has succeeded, or a number of 32 bits.
        (FileOpKind::Mkdir, Ok(small)) => i64::from(small as i32),
        (FileOpKind::Mkdir, Err(_)) if ret < LAST_POINTER => 0,
        _ => ret as i64,
    });
    if op != FileOpKind::Open {
        return Some(ProbedReturn { op, dev: Dev::UNKNOWN, path: NameId::NONE, ret, created: None });
    }
    let file = number("file")?;
    if file >= LAST_POINTER {
        return Some(ProbedReturn { op, dev: Dev::UNKNOWN, path: NameId::NONE, ret: Some(file as i64), created: None });
    }
    Some(ProbedReturn {
        op,
        dev: Dev(number("dev")? as u32),
        path: path(fields, MAX_NAMES).map_or(NameId::NONE, |path| names.intern(&path)),
        ret: None,
        created: number("fmode").map(|mode| mode & CREATED != 0),
    })
}

fn open_flags(flags: u64) -> String {
    let access = ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"][(flags & 3) as usize];
    let more = joined(flags, &OPEN_FLAGS);
    // O_SYNC has the bits of both.
    let more = more.replace("__O_SYNC|O_DSYNC", "O_SYNC");
    if more.is_empty() { access.to_owned() } else { format!("{access}|{more}") }
}

fn joined(flags: u64, known: &[(u64, &'static str)]) -> String {
    let set: Vec<&str> = known.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    set.join("|")
}

/// The bits of `i_mode` that are the type of a file, and their value for a regular file.
const FILE_TYPE: u64 = 0o170_000;
const REGULAR_FILE: u64 = 0o100_000;
/// The bits of `page->mapping` that say that it is no address space (`PAGE_MAPPING_FLAGS`).
const MAPPING_MARKS: u64 = 3;

/// Whether a lock is that of an inode. The recorder takes any lock for one, at `at` bytes from the begin of its inode: then the address space
/// of the inode must say that its inode begins there.
fn is_of_inode(fields: &impl ProbeFields) -> Option<bool> {
    let inode = fields.number("lock")?.checked_sub(fields.number("at")?);
    Some(inode == Some(fields.number("host")?))
}

/// The file of the first page that a bio fills: device and inode. `mapping` is what the kernel keeps of the page: the address space of a file,
/// which the inode of a file says to be its own, or something of the memory of a program, which has marks in its lowest bits.
fn read_file(fields: &impl ProbeFields) -> Option<(Dev, u64)> {
    let mapping = fields.number("mapping").filter(|&mapping| mapping & MAPPING_MARKS == 0)?;
    let is_file = fields.number("own") == Some(mapping) && fields.number("mode")? & FILE_TYPE == REGULAR_FILE;
    is_file.then_some((Dev(fields.number("dev")? as u32), fields.number("ino")?))
}

/// The file whose page cache a buffer is in; `None` for metadata, which is in the page cache of a device.
fn file_buffer(fields: &impl ProbeFields) -> Option<FileBuffer> {
    let is_file = fields.number("own").is_some_and(|own| fields.number("mapping") == Some(own))
        && fields.number("mode")? & FILE_TYPE == REGULAR_FILE;
    let sector = || i64::try_from(fields.number("block")?.checked_mul(fields.number("size")? / SECTOR_BYTES)?).ok();
    is_file.then_some(FileBuffer {
        dev: Dev(fields.number("file_dev")? as u32),
        ino: fields.number("ino")?,
        sector: sector().unwrap_or(NO_SECTOR),
    })
}

/// Returns who holds a lock: thread and name. The lowest bits of the owner's address are marks. 1: readers hold it; the kernel
/// keeps the address of one, which may have left. 2: nobody may spin on it.
fn holder(fields: &impl ProbeFields) -> (u32, Option<Cow<'_, [u8]>>) {
    let (tid, comm) = match fields.number("owner") {
        None | Some(0..=7) => return (0, None),
        Some(owner) if owner & 1 != 0 => return (0, None),
        Some(owner) if owner & 2 != 0 => ("holder_marked", "holder_comm_marked"),
        Some(_) => ("holder", "holder_comm"),
    };
    let tid = fields.number(tid).and_then(|tid| u32::try_from(tid).ok()).filter(|&tid| i32::try_from(tid).is_ok());
    let Some(tid) = tid.filter(|&tid| tid != 0) else { return (0, None) };
    (tid, fields.text(comm).filter(|comm| !comm.is_empty()))
}

/// Makes the event of a pause. `pause` is its length in ms, `dirtied` what the thread made dirty before the check that pauses it, in
/// pages. `paused` is how long, in ms, this check has lasted already: its further pauses repeat `dirtied`.
pub(super) fn throttle(
    bdi: Option<&[u8]>,
    pause: Option<u64>,
    dirtied: Option<u64>,
    paused: Option<u64>,
) -> Option<Kind> {
    let pause = pause? as i64;
    if pause <= 0 {
        // Nothing is to be waited for.
        return Some(Kind::Other);
    }
    let waited_for = WaitedFor {
        // A disk has its numbers as its name; a file system of several disks, or of a network, has another one.
        dev: bdi.and_then(device).unwrap_or(Dev::UNKNOWN),
        bytes: dirtied
            .filter(|_| paused.unwrap_or(0) == 0)
            .and_then(|pages| pages.checked_mul(PAGE_BYTES))
            .unwrap_or(0),
        ..WaitedFor::default()
    };
    Some(Kind::Probe(Probe::Throttle { pause_ns: pause.checked_mul(1_000_000)?, waited_for }))
}

fn write_wait(name: &[u8]) -> Option<WriteWaitKind> {
    Some(match name {
        b"write_pause" => WriteWaitKind::Throttling,
        b"inode_lock" => WriteWaitKind::InodeLock,
        b"journal_handle" => WriteWaitKind::JournalHandle,
        b"journal_space" => WriteWaitKind::JournalSpace,
        b"journal_buffer" => WriteWaitKind::JournalBuffer,
        b"page_read" => WriteWaitKind::PageRead,
        _ => return None,
    })
}

/// Makes the start of a flusher thread's work. The ring buffer has the number of its reason, and a text of it the word.
pub(super) fn work_start(dev: Dev, number: Option<u64>, word: Option<&[u8]>) -> Kind {
    let for_sync = number == Some(REASON_SYNC) || word == Some(b"sync");
    Kind::Probe(Probe::WorkStart { dev, for_sync })
}

impl WaitSite {
    /// The name of the recorder's event where the wait begins.
    pub(super) fn event_name(self) -> &'static [u8] {
        match self {
            Self::Jbd2Commit => b"wait_commit",
            Self::Ext4FastCommit => b"fc_commit",
            Self::XfsLogForce => b"xlog_force",
            Self::BtrfsLog => b"btrfs_log",
            Self::BtrfsCommit => b"btrfs_commit",
            Self::F2fsFlush => b"f2fs_flush",
            Self::F2fsCheckpoint => b"f2fs_cp",
            Self::Flush => b"flush",
            Self::Buffer => b"buffer_wait",
        }
    }
}

fn wait_site(name: &[u8]) -> Option<WaitSite> {
    Some(match name {
        b"wait_commit" => WaitSite::Jbd2Commit,
        b"fc_commit" => WaitSite::Ext4FastCommit,
        b"xlog_force" => WaitSite::XfsLogForce,
        b"btrfs_log" => WaitSite::BtrfsLog,
        b"btrfs_commit" => WaitSite::BtrfsCommit,
        b"f2fs_flush" => WaitSite::F2fsFlush,
        b"f2fs_cp" => WaitSite::F2fsCheckpoint,
        b"flush" => WaitSite::Flush,
        b"buffer_wait" => WaitSite::Buffer,
        _ => return None,
    })
}

/// The file system whose sync function this is; empty for one of several.
pub(super) fn file_system_of(function: &[u8]) -> &'static [u8] {
    match function_name(function) {
        b"ext4_sync_file" => b"ext4",
        b"xfs_file_fsync" => b"xfs",
        b"btrfs_sync_file" => b"btrfs",
        b"f2fs_sync_file" => b"f2fs",
        _ => b"",
    }
}

/// The name of a function without what follows it: `ext4_end_bio+0x0/0x131 [ext4]`, `f.isra.0`.
pub(super) fn function_name(symbol: &[u8]) -> &[u8] {
    let end = symbol.iter().position(|b| matches!(b, b'+' | b' ' | b'.')).unwrap_or(symbol.len());
    &symbol[..end]
}

/// Functions of kernels that the recorder supports, by what their bio is.
const ROLES: &[(BioRole, &[&str])] = &[
    (
        BioRole::PageCache,
        &[
            "ext4_end_bio",
            "f2fs_write_end_io",
            "mpage_write_end_io",
            "xfs_end_bio",
            "iomap_writepage_end_bio",
            "iomap_ioend_writeback_end_bio",
            "ioend_writeback_end_bio",
        ],
    ),
    (
        BioRole::NotPageCache,
        &[
            "end_bio_bh_io_sync",
            "xlog_bio_end_io",
            "xfs_buf_bio_end_io",
            "btrfs_end_super_write",
            "end_swap_bio_write",
            "submit_bio_wait_endio",
            "iomap_dio_bio_end_io",
            "blkdev_bio_end_io",
            "blkdev_bio_end_io_async",
            "dio_bio_end_io",
            "dio_bio_end_aio",
            // btrfs writes stripes with parity, which hold the data of several bios that it does not submit.
            "raid_write_end_io",
        ],
    ),
    (BioRole::Original, &["btrfs_orig_write_end_io"]),
    (BioRole::Mirror, &["btrfs_clone_write_end_io"]),
    (
        BioRole::Copy,
        &[
            "clone_endio",
            "md_end_clone_io",
            "md_end_flush",
            "md_end_io_acct",
            "raid1_end_write_request",
            "raid10_end_write_request",
            "raid5_end_write_request",
        ],
    ),
    (BioRole::Chained, &["bio_chain_endio"]),
];

/// The names of all functions that say what a bio is, to find their addresses.
pub(super) fn end_functions() -> impl Iterator<Item = &'static str> {
    let of_btrfs = ["btrfs_simple_end_io", "btrfs_end_empty_barrier"];
    ROLES.iter().flat_map(|(_, functions)| functions.iter().copied()).chain(of_btrfs)
}

fn role_of(symbol: &[u8]) -> BioRole {
    let name = function_name(symbol);
    let known = ROLES.iter().find(|(_, functions)| functions.iter().any(|function| function.as_bytes() == name));
    match known {
        Some((role, _)) => *role,
        None if name.starts_with(b"btrfs_") => BioRole::MaybePart,
        None => BioRole::Unknown,
    }
}

/// Joins the names `n0` (the file), `n1` (its folder) and so on, up to `max_names`. The root of the file system is named `/`. A path that does
/// not reach it begins with `...`.
pub(super) fn path(fields: &impl ProbeFields, max_names: usize) -> Option<Vec<u8>> {
    path_of(fields, "n", max_names)
}

/// The same for names that begin with another letter.
fn path_of(fields: &impl ProbeFields, prefix: &str, max_names: usize) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    let mut reaches_root = false;
    for n in 0..max_names {
        let Some(name) = fields.text(&format!("{prefix}{n}")).filter(|name| !name.is_empty()) else { break };
        if name.as_ref() == b"/" {
            reaches_root = true;
            break;
        }
        names.push(name.into_owned());
    }
    if names.is_empty() {
        return reaches_root.then(|| b"/".to_vec());
    }
    let mut path = if reaches_root { Vec::new() } else { b"...".to_vec() };
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    Some(path)
}
