//! Names of events: those of the writeback tracepoints and of syscalls as the thesis's script prints them, those of stock
//! tracepoints, and those of blktrace.

use std::borrow::Cow;

use super::cursor::{Cursor, whole};
use crate::event::bio_flags::BioFlags;
use crate::event::{CommitStep, Op, WaitKind};

/// Fields that every event of the low-level log has.
const COMMON_FIELDS: [&[u8]; 11] = [
    b"ts_ns",
    b"tid",
    b"pid",
    b"comm",
    b"event",
    b"source",
    b"event_hex",
    b"comm_hex",
    b"path_hex",
    b"stack_hex",
    b"fs_hex",
];

/// Parses the size of a bio, 32 bits in the kernel. 0 if it is not one.
pub(super) fn bio_size(text: &[u8]) -> u64 {
    whole(text, Cursor::decimal).filter(|&bytes| u32::try_from(bytes).is_ok()).unwrap_or(0)
}

/// The kernel's function that writes the markers of applications, as which the ring buffer prints them.
pub(super) const MARKER: &[u8] = b"tracing_mark_write";

/// Returns the name of an extra field in the low-level log: `data_NAME` where NAME is already in use.
pub(super) fn extra_key(name: &[u8]) -> Cow<'_, [u8]> {
    if COMMON_FIELDS.contains(&name) { [b"data_", name].concat().into() } else { name.into() }
}

/// Returns whether a bio with this `origin`, as a patched kernel names it, belongs to no sync.
pub(super) fn is_background(origin: &str) -> bool {
    !matches!(origin, "sync" | "range" | "syncfs")
}

/// Parses the flags of a bio that a recorder prints as `0x...` or as a number.
pub(super) fn bio_flags(opf: &[u8]) -> Option<BioFlags> {
    let bits = if opf.starts_with(b"0x") { whole(opf, Cursor::hex) } else { whole(opf, Cursor::decimal) }?;
    BioFlags::of_opf(bits)
}

/// Returns the error of a completion: 0 or a negative errno.
pub(super) fn errno(number: i64) -> Option<i32> {
    // blktrace stores 16 bits, which blkparse prints without their sign.
    let signed = if (0x8000..=0xffff).contains(&number) { number - 0x1_0000 } else { number };
    i32::try_from(signed).ok().map(|errno| -errno.saturating_abs().min(MAX_ERRNO))
}

/// Returns the error of a bio from the status that a recorder prints: a negative errno, or a `blk_status_t` as the kernel stores it.
pub(super) fn errno_of_status(status: i64) -> Option<i32> {
    // `blk_status_to_errno` of the kernel, from `BLK_STS_NOTSUPP` on. It makes EIO of every other status.
    const ERRNOS: [i32; 13] = [95, 110, 28, 67, 121, 52, 61, 84, 12, 5, 78, 11, 16];
    if status <= 0 {
        return errno(status);
    }
    // The kernel's type has one byte, so a larger number is damaged.
    let index = usize::from(u8::try_from(status).ok()?) - 1;
    Some(-ERRNOS.get(index).copied().unwrap_or(5))
}

/// The kernel returns no larger one.
const MAX_ERRNO: i32 = 4095;

/// What happens to a bio or a request in the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEvent {
    Submit,
    /// A request begins, or enters the queue of the scheduler.
    Insert,
    Issue,
    Complete,
    /// A request is done, all of it.
    Done,
    /// One bio is complete, on a device without requests of its own, such as that of a device mapper.
    BioComplete,
    Remap,
}

/// The meaning of an event name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventName {
    AddFolio,
    Submit,
    Complete,
    Start,
    End,
    /// For a whole file system, by sync() or syncfs().
    FsStart,
    WbStart,
    WbEnd,
    WaitStart(WaitKind),
    WaitEnd(WaitKind),
    /// From stock kernels, which record no request id.
    StartWithoutId,
    EndWithoutId,
    /// A commit of the journal's thread, on a stock kernel.
    CommitStart,
    CommitEnd,
    CommitStep(CommitStep),
    /// The scheduler gives a CPU to another thread, or wakes one.
    Switch,
    Wake,
    /// A thread begins to wait for a lock, or has it.
    LockWait,
    LockWaitEnd,
    /// A piece of work of a flusher thread.
    WorkStart,
    WorkEnd,
    /// A fast commit of ext4, by the thread of a sync.
    FastCommitStart,
    FastCommitStop,
    /// A thread that writes pauses, because too much page cache is dirty.
    Throttle,
    Block(BlockEvent),
    Enter(Op),
    Exit(Op),
    /// A marker that the application wrote to the ring buffer.
    Mark,
}

impl EventName {
    #[inline]
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"bio_add_folio" => Some(Self::AddFolio),
            b"bio_submit" => Some(Self::Submit),
            b"bio_complete" => Some(Self::Complete),
            b"start" | b"sync_start" => Some(Self::Start),
            b"exit" | b"sync_end" | b"sync_fs_end" => Some(Self::End),
            b"sync_fs_start" => Some(Self::FsStart),
            b"wb_start" => Some(Self::WbStart),
            b"wb_end" => Some(Self::WbEnd),
            _ => Self::parse_wait(name).or_else(|| Self::parse_call(name)),
        }
    }

    /// Like `parse`, but also accepts names of stock tracepoints and of blktrace, which do not occur in the thesis's format.
    pub(super) fn parse_any(name: &[u8]) -> Option<Self> {
        match name {
            b"ext4_sync_file_enter" | b"f2fs_sync_file_enter" | b"btrfs_sync_file" | b"xfs_file_fsync" => {
                Some(Self::StartWithoutId)
            }
            b"ext4_sync_file_exit" | b"f2fs_sync_file_exit" => Some(Self::EndWithoutId),
            b"jbd2_start_commit" => Some(Self::CommitStart),
            b"jbd2_end_commit" => Some(Self::CommitEnd),
            b"jbd2_commit_locking" => Some(Self::CommitStep(CommitStep::Locking)),
            b"jbd2_commit_flushing" => Some(Self::CommitStep(CommitStep::Flushing)),
            b"jbd2_commit_logging" => Some(Self::CommitStep(CommitStep::Logging)),
            b"ext4_fc_commit_start" => Some(Self::FastCommitStart),
            b"ext4_fc_commit_stop" => Some(Self::FastCommitStop),
            b"sched_switch" => Some(Self::Switch),
            b"sched_waking" => Some(Self::Wake),
            b"contention_begin" => Some(Self::LockWait),
            b"contention_end" => Some(Self::LockWaitEnd),
            b"writeback_start" => Some(Self::WorkStart),
            b"writeback_written" => Some(Self::WorkEnd),
            b"balance_dirty_pages" => Some(Self::Throttle),
            b"block_bio_queue" => Some(Self::Block(BlockEvent::Submit)),
            b"block_io_start" | b"block_rq_insert" => Some(Self::Block(BlockEvent::Insert)),
            b"block_rq_issue" => Some(Self::Block(BlockEvent::Issue)),
            b"block_io_done" => Some(Self::Block(BlockEvent::Done)),
            b"block_rq_complete" => Some(Self::Block(BlockEvent::Complete)),
            b"block_bio_complete" => Some(Self::Block(BlockEvent::BioComplete)),
            b"block_bio_remap" => Some(Self::Block(BlockEvent::Remap)),
            MARKER => Some(Self::Mark),
            _ => Self::parse(name).or_else(|| Self::of_action(name).map(Self::Block)),
        }
    }

    /// The event of an action of blktrace, by its letter.
    pub(super) fn of_action(letter: &[u8]) -> Option<BlockEvent> {
        match letter {
            b"Q" => Some(BlockEvent::Submit),
            b"I" => Some(BlockEvent::Insert),
            b"D" => Some(BlockEvent::Issue),
            b"C" => Some(BlockEvent::Complete),
            b"A" => Some(BlockEvent::Remap),
            _ => None,
        }
    }

    /// `Kind::index` of its event, as far as the name determines it.
    pub(super) fn kind_index(self) -> usize {
        match self {
            Self::Enter(_) => 0,
            Self::Exit(_) => 1,
            Self::Start | Self::FsStart | Self::StartWithoutId => 2,
            Self::AddFolio => 3,
            Self::Submit => 4,
            Self::Complete => 5,
            Self::End | Self::EndWithoutId => 6,
            Self::WbStart => 7,
            Self::WbEnd => 8,
            Self::Block(BlockEvent::Submit) => 10,
            Self::Block(BlockEvent::Complete | BlockEvent::BioComplete) => 11,
            Self::Block(BlockEvent::Remap) => 12,
            Self::WaitStart(_) => 13,
            Self::WaitEnd(_) => 14,
            Self::Mark => 15,
            Self::CommitStart => 16,
            Self::CommitEnd => 17,
            Self::Block(BlockEvent::Issue) => 18,
            Self::WorkStart | Self::WorkEnd | Self::FastCommitStart | Self::FastCommitStop | Self::Throttle => 19,
            Self::CommitStep(_) => 20,
            Self::Switch | Self::Wake | Self::LockWait | Self::LockWaitEnd => 21,
            Self::Block(BlockEvent::Insert) => 22,
            Self::Block(BlockEvent::Done) => 23,
        }
    }

    /// Fields of the low-level log that its event has a field for. `comm` and the like are on every event.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::AddFolio => &["id", "bio", "start", "len", "dev", "ino"],
            Self::Submit => &["id", "bio", "sector", "dev", "bytes_of"],
            Self::Complete => &["bio", "sector", "dev"],
            Self::Start => &["id", "id_of", "start", "end", "datasync", "dev", "ino", "fs", "path"],
            Self::End => &["id", "ret"],
            Self::FsStart => &["id", "dev", "fs", "start", "end", "datasync"],
            Self::WbStart | Self::WbEnd => &["id"],
            Self::WaitStart(_) | Self::WaitEnd(_) => &["id", "transaction"],
            Self::CommitStart | Self::CommitEnd | Self::CommitStep(_) => &["dev", "transaction"],
            Self::StartWithoutId => &["datasync", "dev", "ino", "fs"],
            Self::Block(BlockEvent::Done) => &["dev", "sector"],
            Self::Block(BlockEvent::Remap) => &["dev", "sector", "bytes", "from_dev", "from_sector"],
            Self::Block(_) => &["dev", "sector", "bytes"],
            Self::Enter(_) => &["stack"],
            Self::Exit(_) => &["ret"],
            Self::EndWithoutId => &["ret", "dev", "ino", "datasync"],
            // What they need are extra fields, from which they are decoded again.
            Self::Mark
            | Self::WorkStart
            | Self::WorkEnd
            | Self::FastCommitStart
            | Self::FastCommitStop
            | Self::Throttle
            | Self::Switch
            | Self::Wake
            | Self::LockWait
            | Self::LockWaitEnd => &[],
        }
    }

    fn parse_wait(name: &[u8]) -> Option<Self> {
        if let Some(wait) = name.strip_suffix(b"_start") {
            return WaitKind::from_event_name(wait).map(Self::WaitStart);
        }
        name.strip_suffix(b"_end").and_then(WaitKind::from_event_name).map(Self::WaitEnd)
    }

    fn parse_call(name: &[u8]) -> Option<Self> {
        if let Some(op) = Op::from_name(name) {
            return Some(Self::Enter(op));
        }
        if let Some(op) = name.strip_prefix(b"sys_enter_") {
            return Op::from_name(op).map(Self::Enter);
        }
        let op = name
            .strip_prefix(b"sys_exit_")
            .or_else(|| name.strip_prefix(b"exit_"))
            .or_else(|| name.strip_suffix(b"_exit"))
            .or_else(|| name.strip_suffix(b" exit"))?;
        Op::from_name(op).map(Self::Exit)
    }
}
