"""Copies what a recorder writes to a pipe into its log.

strace and bpftrace ignore errors of their output, so without a copy of our own a disk that is full for two seconds would leave a
log with a hole that nothing shows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

_EVERY_S = 0.02
_PIPE_BYTES = 1 << 20
# A name of Python 3.10.
_F_SETPIPE_SZ = 1031
# Large enough for the manifest and the tables next to a log.
_RESERVE_BYTES = 1 << 20
_RESERVE = ".reserve"


class LogCopy:
    """Copies until `finish`. After an error, it reads on and keeps nothing, so that what is recorded does not wait."""

    def __init__(self, source: int, log: Path) -> None:
        """Takes over `source`, the end of a pipe that is read. Raises OSError."""
        self.failed: OSError | None = None
        self._source = source
        os.set_blocking(source, False)
        # Without a larger pipe, the recorder waits for the copy more often.
        with contextlib.suppress(OSError):
            fcntl.fcntl(source, _F_SETPIPE_SZ, _PIPE_BYTES)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._out = os.open(log, flags, 0o600)
        # The bytes that are written, and those of them that are whole lines.
        self._size = self._whole = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._copy, name=f"syncline-{log.name}", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Copies what is in the pipe, and ends. It may be called again."""
        if self._source < 0:
            return
        self._stop.set()
        self._thread.join()
        for fd in (self._source, self._out):
            os.close(fd)
        self._source = -1

    def _copy(self) -> None:
        is_last = False
        while True:
            self._copy_all()
            if is_last:
                return
            is_last = self._stop.wait(_EVERY_S)

    def _copy_all(self) -> None:
        # A pipe that nobody has opened yet is as empty as one that nobody writes to any more.
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._source, _PIPE_BYTES):
                if self.failed is None:
                    self._write(data)

    def _write(self, data: bytes) -> None:
        at = 0
        try:
            while at < len(data):
                at += os.write(self._out, data[at:])
        except OSError as error:
            self.failed = error
        if (newline := data.rfind(b"\n", 0, at)) >= 0:
            self._whole = self._size + newline + 1
        self._size += at
        if self.failed is not None:
            # The rest of the line is missing, so it is no line.
            with contextlib.suppress(OSError):
                os.ftruncate(self._out, self._whole)


class Reserve:
    """Room on the disk for what is written last: a recording whose disk becomes full still gets its manifest."""

    def __init__(self, folder: Path) -> None:
        """Allocates the file that keeps the room. Raises OSError if the disk has no room for it."""
        self._file = folder / _RESERVE
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, _RESERVE_BYTES)
        finally:
            os.close(fd)

    def release(self) -> None:
        self._file.unlink(missing_ok=True)
