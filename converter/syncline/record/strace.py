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


def strace_command(command: list[str], pid: int | None, log: Path) -> list[str]:
    """Returns the command that traces `command`, or the process `pid` without one, into `log`."""
    return [
        which("strace") or "strace", "-I", "2", "-f", "-ttt", "-T", "-yy", "-s", "256",
        # `?`: skip calls that this machine or this version of strace does not have.
        "-e", f"trace={','.join(f'?{call}' for call in _CALLS)}", "-o", str(log),
        *(command or ["-p", str(pid)]),
    ]  # fmt: skip
