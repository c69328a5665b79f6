"""The command line of strace."""

from __future__ import annotations

from pathlib import Path

from syncline.record.sync_calls import SYNC_CALLS
from syncline.record.tracer import which

_CALLS = (
    *SYNC_CALLS,
    # To know the file of each descriptor.
    "open", "openat", "openat2", "creat", "close", "close_range", "dup", "dup2", "dup3", "fcntl",
    "clone", "clone3", "fork", "vfork", "execve", "prctl",
    "rename", "renameat", "renameat2", "pwritev2",
    # strace sees that these are used, but not the syncs that they start.
    "io_uring_setup", "io_uring_enter", "io_submit",
)  # fmt: skip

# What `syncline model` needs besides: each write, its place in the file, what makes dirty pages clean without writeback, and names.
_WRITES = (
    "write", "pwrite64", "writev", "pwritev", "lseek", "unlink", "unlinkat", "truncate", "ftruncate",
    "link", "linkat", "execveat", "chdir", "fchdir", "getcwd", "ioctl",
)  # fmt: skip


def strace_command(
    command: list[str], pid: int | None, log: Path, *, has_writes: bool = False
) -> list[str]:
    """Returns the command that traces `command`, or the process `pid` without one, into `log`.

    Args:
        has_writes: also traces all writes, with little of their data.
    """
    calls = (*_CALLS, *_WRITES) if has_writes else _CALLS
    return [
        which("strace") or "strace", "-I", "2", "-f", "-ttt", "-T", "-yy", "-s", "16" if has_writes else "256",
        # `?`: skip calls that this machine or this version of strace does not have.
        "-e", f"trace={','.join(f'?{call}' for call in dict.fromkeys(calls))}", "-o", str(log),
        *(command or ["-p", str(pid)]),
    ]  # fmt: skip
