"""Stacks of tasks that wait, as the kernel's log and /proc/PID/stack have them: what each task waits for, by the functions in its stack."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["SIGNS", "Task", "Wait", "said", "said_in_one_line", "tasks", "without_running"]

SIGNS = (
    r"\bINFO: task .+:\d+ blocked (?:in I/O wait )?for more than \d+",
    r"\btask:\S.* state:[A-Z] ",
    r"\bCall [Tt]race:\s*$",
    r"\[<[0-9a-f]+>\] \w[\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+",
    r"^\s*[A-Za-z_][\w.]*\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?\s*$",
)


@dataclass(frozen=True)
class Wait:
    """What a task waits for if one of the functions is in its stack. A name that ends in `*` stands for all that begin with it."""

    what: str
    functions: tuple[str, ...]


# The first entry that a stack has is the cause, because a wait is reached through its cause: a commit of the journal ends in `submit_bio_wait`.
WAITS = (
    Wait(
        "a commit of the journal of ext4",
        ("jbd2_log_wait_commit", "jbd2_complete_transaction", "log_wait_commit"),
    ),
    Wait(
        "a handle of the journal, as the transaction is locked for its commit or the journal is full",
        (
            "wait_transaction_locked",
            "wait_transaction_switching",
            "add_transaction_credits",
            "__jbd2_log_wait_for_space",
            "start_this_handle",
        ),
    ),
    Wait(
        "other threads that hold handles of the transaction to commit",
        ("jbd2_journal_wait_updates",),
    ),
    Wait(
        "the log of xfs to be written",
        ("xlog_force_lsn", "xfs_log_force*", "_xfs_log_force*", "xlog_wait*", "xlog_cil_force*"),
    ),
    Wait("space in the log of xfs", ("xlog_grant_head_wait", "xlog_grant_head_check")),
    Wait(
        "a transaction group of ZFS",
        ("txg_wait_synced*", "txg_wait_open*", "dmu_tx_wait", "txg_delay"),
    ),
    Wait("a commit of the intent log of ZFS", ("zil_commit*",)),
    Wait("I/O of ZFS", ("zio_wait",)),
    Wait(
        "something of ZFS, which its stack does not name",
        ("cv_wait_common", "__cv_wait*", "__cv_timedwait*"),
    ),
    Wait(
        "a commit of the log tree of btrfs",
        ("btrfs_sync_log", "wait_for_writer", "wait_log_commit", "btrfs_commit_transaction"),
    ),
    Wait(
        "data of btrfs that is being written",
        ("btrfs_wait_ordered*", "btrfs_start_ordered_extent*"),
    ),
    Wait("a checkpoint of f2fs", ("f2fs_issue_checkpoint", "f2fs_write_checkpoint")),
    Wait("the journal of bcachefs", ("bch2_journal_flush*",)),
    Wait(
        "the NFS server",
        (
            "rpc_wait_bit_killable",
            "rpc_run_task",
            "nfs_wb_all",
            "nfs_commit_inode*",
            "__nfs_commit_inode",
            "nfs_wait_on_request",
            "nfs_wait_bit_*",
            "nfs_file_fsync*",
        ),
    ),
    Wait("the cluster of Ceph", ("ceph_fsync*", "ceph_osdc_wait_request", "ceph_osdc_sync")),
    Wait(
        "the daemon of a FUSE file system",
        (
            "request_wait_answer",
            "__fuse_request_send",
            "__fuse_simple_request",
            "fuse_simple_request",
        ),
    ),
    Wait(
        "the software RAID below (md)",
        (
            "md_flush_request",
            "md_super_wait",
            "md_write_start",
            "raid5_get_active_stripe",
            "wait_barrier",
        ),
    ),
    Wait("the activity log of DRBD", ("drbd_al_begin_io*",)),
    Wait(
        "throttling of writeback by the block layer",
        ("rq_qos_wait", "wbt_wait", "__rq_qos_throttle"),
    ),
    Wait(
        "a free tag, as the queue of the device is full",
        ("blk_mq_get_tag", "__blk_mq_get_tag", "get_request_wait"),
    ),
    Wait("a flush of the device", ("blkdev_issue_flush", "__blkdev_issue_flush")),
    Wait("a bio that it has submitted, such as a flush", ("submit_bio_wait",)),
    Wait(
        "throttling, as too much page cache is dirty",
        ("balance_dirty_pages", "balance_dirty_pages_ratelimited*"),
    ),
    Wait(
        "writeback of the file's page cache",
        (
            "folio_wait_writeback",
            "wait_on_page_writeback",
            "__filemap_fdatawait_range",
            "filemap_fdatawait_range",
        ),
    ),
    Wait("a sync of the whole file system below overlayfs", ("ovl_sync_fs",)),
    Wait(
        "writeback of all that is dirty in a file system (sync, syncfs)",
        ("sync_inodes_sb", "wb_wait_for_completion", "bdi_sched_wait"),
    ),
    Wait("a metadata block that is being written, in order to change it", ("do_get_write_access",)),
    Wait("a buffer of metadata of xfs", ("xfs_buf_iowait",)),
    Wait(
        "a lock",
        ("rwsem_down_*", "__mutex_lock*", "mutex_lock*", "down_write", "down_read", "rt_mutex_*"),
    ),
    Wait(
        "a block or a folio that is read or written",
        (
            "bit_wait_io",
            "__wait_on_buffer",
            "__lock_buffer",
            "sleep_on_buffer",
            "sync_buffer",
            "folio_wait_bit*",
            "wait_on_page_bit*",
        ),
    ),
    Wait("I/O, and its stack does not say which", ("io_schedule*",)),
    Wait("another thread of its program, or its lock", ("futex_wait*", "do_futex")),
)
# Not the cause, but worth a word: it makes one fsync wait for the data of all files.
_OVERLAYFS = "ovl_sync_fs"

_BLOCKED = re.compile(
    r"INFO: task (?P<name>.+):(?P<pid>\d+) blocked (?:in I/O wait )?for more than (?P<seconds>\d+)\b"
)
_TASK = re.compile(r"\btask:(?P<name>\S.*?)\s+state:[A-Z]\b(?:.*?\bpid:\s*(?P<pid>\d+))?")
# Before Linux 5.10: `postgres        D    0  2211      1 0x00000080`.
_OLD_TASK = re.compile(
    r"^(?:.*?\] )?(?P<name>\S.{0,15}?)\s+D\s+[0-9a-f]+\s+(?P<pid>\d+)\s+\d+\s+0x"
)
# `cat /proc/2211/stack`, `==> /proc/2211/stack <==`, and `ps -o pid,comm,stack` have no common head.
_PROC = re.compile(r"/proc/(?P<pid>\d+)(?:/task/(?P<tid>\d+))?/(?:stack|wchan)\b")
_FRAME = re.compile(
    r"(?:^|[\]>(]|\s)\s*(?P<unsure>\? )?(?P<function>[A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+"
)
_HEAD = re.compile(r"\bCall [Tt]race:\s*$")
_INLINE = re.compile(r"^\s*(?:.*?\] )?\s*(?P<function>[a-z_]\w*) \S+\.[ch]:\d+ \[inline\]")
# What the kernel reports of a task that runs, such as `BUG: Bad page map in process postgres`. The stack in it is where it found out.
_RUNNING = re.compile(
    r"\bBUG: \w|\bWARNING: CPU: \d|\bOops: |\bKernel panic\b|\bgeneral protection fault\b"
    r"|\bpage allocation failure\b|\binvoked oom-killer\b|\brcu\w*: INFO: |\bINFO: rcu_"
)
_END = re.compile(r"</TASK>|-+\[ end ")
_MAX_TASKS = 8


@dataclass
class Task:
    """A task with its stack, innermost function first. `seconds`: for how long it was blocked at least, if the kernel says so."""

    name: str | None = None
    pid: int | None = None
    seconds: int | None = None
    functions: list[str] = field(default_factory=list)

    @property
    def wait(self) -> Wait | None:
        """What it waits for. None if its stack does not say."""
        return next((wait for wait in WAITS if any(map(self._has, wait.functions))), None)

    def _has(self, function: str) -> bool:
        # The compiler adds `.isra.0` and the like to a name.
        names = [name.partition(".")[0] for name in self.functions]
        if function.endswith("*"):
            return any(name.startswith(function[:-1]) for name in names)
        return function in names

    def deciding(self, wait: Wait) -> str:
        """The function in the stack that says it, the innermost one."""
        for name in self.functions:
            if any(Task(functions=[name])._has(function) for function in wait.functions):
                return name.partition(".")[0]
        return wait.functions[0]

    def said(self) -> str:
        """One line on the task."""
        who = self.name or ("a task" if self.pid is None else "task")
        if self.pid is not None:
            who += f" {self.pid}"
        if self.seconds is not None:
            who += f", blocked for more than {self.seconds:,} s"
        wait = self.wait
        if wait is not None:
            text = f"{who}: waits for {wait.what} (`{self.deciding(wait)}`)"
            if wait.functions != (_OVERLAYFS,) and self._has(_OVERLAYFS):
                text += f", for a sync of the whole file system below overlayfs (`{_OVERLAYFS}`)"
            return text
        if self.functions:
            return f"{who}: its stack does not say what it waits for"
        return f"{who}: its stack is not in the text"


def without_running(lines: list[str]) -> list[str]:
    """The lines without the stacks of tasks that run: these wait for nothing."""
    found = []
    is_running = has_frames = False
    for line in lines:
        is_stack = _FRAME.search(line) is not None or _HEAD.search(line) is not None
        if _RUNNING.search(line):
            is_running, has_frames = True, False
        elif any(one.search(line) for one in (_BLOCKED, _TASK, _OLD_TASK, _PROC)) or (
            has_frames and (not line.strip() or _END.search(line))
        ):
            is_running = False
        if is_running and is_stack:
            has_frames = True
        else:
            found.append(line)
    return found


def tasks(lines: list[str]) -> list[Task]:
    """The tasks of a text, in its order. A task that is reported again is there again."""
    found: list[Task] = []
    has_head = False
    for line in lines:
        if blocked := _BLOCKED.search(line):
            found.append(Task(blocked["name"], int(blocked["pid"]), int(blocked["seconds"])))
            has_head = True
        elif head := _TASK.search(line) or _OLD_TASK.search(line):
            pid = int(head["pid"]) if head["pid"] else None
            # The kernel says of a blocked task who it is twice.
            is_same = has_head and (pid is None or pid == found[-1].pid) and not found[-1].functions
            if not is_same:
                found.append(Task(head["name"], pid))
            has_head = True
        elif place := _PROC.search(line):
            found.append(Task(pid=int(place["tid"] or place["pid"])))
            has_head = True
        elif frame := _FRAME.search(line) or _INLINE.search(line):
            # `?` is a leftover on the stack, and not a caller.
            if frame.groupdict().get("unsure"):
                continue
            if not has_head:
                found.append(Task())
                has_head = True
            found[-1].functions.append(frame["function"])
        elif not line.strip() and found and found[-1].functions:
            # The stack of another task may follow, without a name.
            has_head = False
    return found


def said(lines: list[str]) -> str | None:
    """What the stacks in a text say, in lines. None if it has none."""
    found = tasks(lines)
    if not found:
        return None
    shown = _without_repeated(found)
    rows = [f"  {task.said()}" for task in shown[:_MAX_TASKS]]
    if len(shown) > _MAX_TASKS:
        rows.append(f"  and {len(shown) - _MAX_TASKS:,} more")
    end = "A stack is one moment and not a duration: it does not say since when the task waits there, or which file is slow."
    return "\n".join([f"{_kind(shown)}:", *rows, end])


def said_in_one_line(lines: list[str]) -> str | None:
    """What the stacks in a text say, in a line. None if it has none."""
    found = tasks(lines)
    if not found:
        return None
    shown = _without_repeated(found)
    more = f" and {len(shown) - 1:,} more" if len(shown) > 1 else ""
    return f"{_kind(shown)} ({shown[0].said()}{more})"


def _kind(found: list[Task]) -> str:
    if any(task.seconds is not None for task in found):
        return "the kernel's log of blocked tasks"
    return "the stacks of tasks that wait" if len(found) > 1 else "the stack of a task that waits"


def _without_repeated(found: list[Task]) -> list[Task]:
    """The tasks, each once for what it waits for: the kernel reports a task again while it is blocked."""
    last: dict[tuple[str | None, int | None, Wait | None], Task] = {}
    nameless = []
    for task in found:
        if task.pid is None:
            nameless.append(task)
        else:
            last[task.name, task.pid, task.wait] = task
    return [*last.values(), *nameless]
