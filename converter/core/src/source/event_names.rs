//! Names of events: those of the writeback tracepoints and of syscalls as the thesis's script prints them, those of stock
//! tracepoints, and those of blktrace.

use std::borrow::Cow;

use super::cursor::{Cursor, whole};
use crate::event::bio_flags::BioFlags;
use crate::event::{CommitStep, Op, WaitKind};

/// Fields that every event of the low-level log may have, whatever its name: those of its head, and the exact bytes of a text.
pub(super) const COMMON_FIELDS: [&[u8]; 11] = [
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

/// A sync function that has returned, in the low-level log of a recorder that reports nothing before.
pub(super) const SYNC_DONE: &[u8] = b"sync_done";

/// A request that has completed, in the low-level log of a recorder that reports nothing before.
pub(super) const BLOCK_REPORT: &[u8] = b"block_report";

/// Returns the name of an extra field in the low-level log: `data_NAME` where NAME is already in use.
pub(super) fn extra_key(name: &[u8]) -> Cow<'_, [u8]> {
    if COMMON_FIELDS.contains(&name) { [b"data_", name].concat().into() } else { name.into() }
}

/// Returns the file system that the name of a tracepoint begins with.
pub(super) fn file_system(name: &[u8]) -> &'static [u8] {
    const NAMES: [&[u8]; 4] = [b"ext4", b"f2fs", b"btrfs", b"xfs"];
    NAMES.into_iter().find(|fs| name.starts_with(fs)).unwrap_or_default()
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

/// A step of a bio or a request through the block layer.
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
    /// A sync function has returned, by a recorder that reports nothing before.
    Done,
    /// A request has completed, by a recorder that reports nothing before.
    BlockReport,
    /// A commit of the journal's thread, on a stock kernel.
    CommitStart,
    CommitEnd,
    CommitStep(CommitStep),
    /// A handle of a journal is closed.
    HandleEnd,
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

/// Makes a function that finds a tracepoint by its name, with its system in tracefs.
macro_rules! tracepoints {
    ($find:ident, $names:ident: $($system:literal { $($name:literal => $event:expr,)* })*) => {
        #[inline]
        fn $find(name: &[u8]) -> Option<(EventName, &'static str)> {
            Some(match name {
                $($($name => ($event, $system),)*)*
                _ => return None,
            })
        }

        #[cfg(test)]
        pub(super) const $names: &[&[u8]] = &[$($($name,)*)*];
    };
}

// Tracepoints of the patch, besides those of waits, as bpftrace prints them too.
tracepoints! { patched, PATCHED:
    "wb_tracer" {
        b"bio_add_folio" => EventName::AddFolio,
        b"bio_submit" => EventName::Submit,
        b"bio_complete" => EventName::Complete,
        b"sync_start" => EventName::Start,
        b"sync_end" => EventName::End,
        b"sync_fs_start" => EventName::FsStart,
        b"sync_fs_end" => EventName::End,
        b"wb_start" => EventName::WbStart,
        b"wb_end" => EventName::WbEnd,
    }
}

// Tracepoints of every kernel, besides those of syscalls.
tracepoints! { stock, STOCK:
    "ext4" {
        b"ext4_sync_file_enter" => EventName::StartWithoutId,
        b"ext4_sync_file_exit" => EventName::EndWithoutId,
        b"ext4_fc_commit_start" => EventName::FastCommitStart,
        b"ext4_fc_commit_stop" => EventName::FastCommitStop,
    }
    "f2fs" {
        b"f2fs_sync_file_enter" => EventName::StartWithoutId,
        b"f2fs_sync_file_exit" => EventName::EndWithoutId,
    }
    "btrfs" {
        b"btrfs_sync_file" => EventName::StartWithoutId,
    }
    "xfs" {
        b"xfs_file_fsync" => EventName::StartWithoutId,
    }
    "jbd2" {
        b"jbd2_start_commit" => EventName::CommitStart,
        b"jbd2_end_commit" => EventName::CommitEnd,
        b"jbd2_commit_locking" => EventName::CommitStep(CommitStep::Locking),
        b"jbd2_commit_flushing" => EventName::CommitStep(CommitStep::Flushing),
        b"jbd2_commit_logging" => EventName::CommitStep(CommitStep::Logging),
        b"jbd2_handle_stats" => EventName::HandleEnd,
    }
    "sched" {
        b"sched_switch" => EventName::Switch,
        b"sched_waking" => EventName::Wake,
    }
    "lock" {
        b"contention_begin" => EventName::LockWait,
        b"contention_end" => EventName::LockWaitEnd,
    }
    "writeback" {
        b"writeback_start" => EventName::WorkStart,
        b"writeback_written" => EventName::WorkEnd,
        b"balance_dirty_pages" => EventName::Throttle,
    }
    "block" {
        b"block_bio_queue" => EventName::Block(BlockEvent::Submit),
        b"block_io_start" => EventName::Block(BlockEvent::Insert),
        b"block_rq_insert" => EventName::Block(BlockEvent::Insert),
        b"block_rq_issue" => EventName::Block(BlockEvent::Issue),
        b"block_io_done" => EventName::Block(BlockEvent::Done),
        b"block_rq_complete" => EventName::Block(BlockEvent::Complete),
        b"block_bio_complete" => EventName::Block(BlockEvent::BioComplete),
        b"block_bio_remap" => EventName::Block(BlockEvent::Remap),
    }
}

impl EventName {
    #[inline]
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"start" => Some(Self::Start),
            b"exit" => Some(Self::End),
            _ => match patched(name) {
                Some((event, _)) => Some(event),
                None => Self::parse_wait(name).or_else(|| Self::parse_call(name)),
            },
        }
    }

    /// Like `parse`, but also accepts names of stock tracepoints and of blktrace, which do not occur in bpftrace's text.
    pub(super) fn parse_any(name: &[u8]) -> Option<Self> {
        match stock(name) {
            Some((event, _)) => Some(event),
            None if name == MARKER => Some(Self::Mark),
            None if name == SYNC_DONE => Some(Self::Done),
            None if name == BLOCK_REPORT => Some(Self::BlockReport),
            None => Self::parse(name).or_else(|| Self::of_action(name).map(Self::Block)),
        }
    }

    /// The system of a tracepoint in tracefs.
    pub(super) fn system(self, name: &[u8]) -> &'static str {
        match (self, stock(name)) {
            (_, Some((_, system))) => system,
            (Self::Enter(_) | Self::Exit(_), _) => "syscalls",
            (Self::Mark, _) => "ftrace",
            // Of the patch, also for a wait.
            _ => "wb_tracer",
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

    /// `Kind::index` of its event, for the names that `parse` knows.
    pub(super) fn kind_index(self) -> Option<usize> {
        Some(match self {
            Self::Enter(_) => 0,
            Self::Exit(_) => 1,
            Self::Start | Self::FsStart => 2,
            Self::AddFolio => 3,
            Self::Submit => 4,
            Self::Complete => 5,
            Self::End => 6,
            Self::WbStart => 7,
            Self::WbEnd => 8,
            Self::WaitStart(_) => 13,
            Self::WaitEnd(_) => 14,
            _ => return None,
        })
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
