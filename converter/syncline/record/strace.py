"""strace: its command line, its process, and how it ended."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import re
import signal
import subprocess
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.log_copy import LogCopy
from syncline.record.sync_calls import SYNC_CALLS
from syncline.record.tracer import how_it_ended, stop_with_parent, which

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


class Strace:
    """strace and the command that it traces, or the process that it is attached to.

    It writes to a pipe, because it continues without a word if its log cannot be written.
    """

    def __init__(self, command: list[str], log: Path, is_attached: bool) -> None:
        """Starts it. `command` is the one of `strace_command` for `log`."""
        self.log = log
        self._is_attached = is_attached
        self._pipe = log.with_name(f".{log.name}.pipe")
        os.mkfifo(self._pipe, 0o600)
        self._copy = LogCopy(os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), log)
        try:
            # Only SIGKILL ends strace without a signal to the command that it has started: the kernel detaches it, and it runs on.
            self.process = subprocess.Popen(
                [str(self._pipe) if word == str(log) else word for word in command],
                preexec_fn=functools.partial(stop_with_parent, signal.SIGKILL, os.getpid()),
            )
        except OSError as error:
            self.finish()
            raise RecordError(
                f"cannot run {command[0]}: {error.strerror}",
                "check PATH, or give the full path of the program",
            ) from None

    def failure(self) -> str | None:
        """Returns why the log is no longer written although strace runs."""
        failed = self._copy.failed
        return f"{self.log.name}: {(failed.strerror or '').lower()}" if failed else None

    def finish(self) -> None:
        """Completes the log after strace has exited."""
        self._copy.finish()
        self._pipe.unlink(missing_ok=True)

    def early_end(self) -> str | None:
        """Returns how strace ended before what it traced; None if it ended with it. Call `finish` first.

        strace exits as its command did, so its exit code says nothing. A log that is whole ends with the end of a process.
        """
        code = self.process.returncode
        with self.log.open("rb") as log:
            if not os.fstat(log.fileno()).st_size:
                return how_it_ended("strace", code) if code else None
            with mmap.mmap(log.fileno(), 0, access=mmap.ACCESS_READ) as text:
                last = text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]
                is_whole = _ENDED.match(last) is not None
                if not self._is_attached:
                    first = re.match(rb"(\d+) ", text)
                    ended = first and re.search(
                        rb"^%s +[\d.]+ \+\+\+ .*" % first[1], text, re.MULTILINE
                    )
                    is_whole = is_whole and bool(ended) and _is_same_end(ended[0], code)
        if is_whole and (not self._is_attached or code == 0):
            return None
        return how_it_ended("strace", code)

    def runs_on(self) -> bool:
        """Returns whether the command of a strace that has exited still runs."""
        with self.log.open("rb") as log:
            found = re.match(rb"(\d+) ", log.read(32))
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{int(found[1])}/stat").read_text() if found else ""
            return stat.rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])
        return False

    def last_time(self) -> int | None:
        """Returns the time until which the log says all, in ns since 1970: when its last line was written."""
        with self.log.open("rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(max(0, size - (1 << 16)))
            # The last line may be torn.
            return (
                max(map(_written_at, log.read().rpartition(b"\n")[0].splitlines()), default=0)
                or None
            )


def _written_at(line: bytes) -> int:
    """Returns when a call ended, in ns since 1970: its line has its start and its length. 0 if the line has no time."""
    start = re.match(rb"\d+ +(\d+)\.(\d{6}) ", line)
    if start is None:
        return 0
    took = re.search(rb"<(\d+)\.(\d{6})>$", line)
    micros = sum(int(one[1]) * 10**6 + int(one[2]) for one in (start, took) if one)
    return micros * 1000


_ENDED = re.compile(rb"\d+ +[\d.]+ \+\+\+ (exited with|killed by) .* \+\+\+\n?$")


def _is_same_end(line: bytes, code: int) -> bool:
    """Returns whether strace exited as the end of the command in its log says."""
    if found := re.search(rb"exited with (\d+)", line):
        return code == int(found[1])
    found = re.search(rb"killed by (\w+)", line)
    name = found[1].decode() if found else ""
    known = name in signal.Signals.__members__
    # Real-time signals have no names here.
    return code == -signal.Signals[name] if known else bool(found) and code < 0
