"""Occasions to save what has been recorded, other than a slow sync: a line of a log, pressure on I/O, a signal."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from syncline.record.errors import RecordError

_PRESSURE = Path("/proc/pressure/io")
# The kernel compares the time in which a task waited for I/O with this time.
_WINDOW_US = 2_000_000
_READ_BYTES = 1 << 16
# A line without an end is cut to this, so that memory does not grow.
_LONGEST_LINE_BYTES = 1 << 16
_SHOWN = 120


class LogLines:
    """New lines of a log that match an expression. A log that was rotated, or that does not exist yet, is opened when it is there."""

    def __init__(self, log: str, pattern: re.Pattern[str]) -> None:
        """Begins at the end of the log; `-` is standard input.

        Raises:
            RecordError: the log cannot be read.
        """
        self._log = log
        self._pattern = pattern
        self._rest = b""
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        if log == "-":
            self._file = sys.stdin.fileno()
            os.set_blocking(self._file, False)
        else:
            try:
                self._open(at_end=True)
            except FileNotFoundError:
                if not Path(log).parent.is_dir():
                    raise RecordError(
                        f"cannot read {log}: there is no such folder", "name a log with --log"
                    ) from None
            except OSError as error:
                raise RecordError(f"cannot read {log}: {error.strerror}") from None

    @property
    def fd(self) -> int | None:
        """What to wait for; None if it has to be looked at again and again."""
        return self._file if self._log == "-" else None

    def _open(self, *, at_end: bool) -> None:
        self._file = os.open(self._log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._file)
        self._identity = (status.st_dev, status.st_ino)
        if at_end:
            os.lseek(self._file, 0, os.SEEK_END)

    def read(self) -> list[str]:
        """Returns the lines since the last time."""
        found = self._read()
        if self._log != "-":
            with contextlib.suppress(OSError):
                found += self._follow()
        return found

    def _read(self) -> list[str]:
        if self._file is None:
            return []
        found = []
        with contextlib.suppress(OSError):
            while data := os.read(self._file, _READ_BYTES):
                *lines, rest = (self._rest + data).split(b"\n")
                self._rest = rest[-_LONGEST_LINE_BYTES:]
                texts = (line.decode(errors="replace").rstrip("\r") for line in lines)
                found += [text for text in texts if self._pattern.search(text)]
            # Standard input has ended, and could be read for ever.
            if self._log == "-":
                self._file = None
        return found

    def _follow(self) -> list[str]:
        """Opens the file that has the name of the log now, if it is another one; or begins again, if it was cut off."""
        status = Path(self._log).stat()
        if (status.st_dev, status.st_ino) != self._identity:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            self._rest = b""
            self._open(at_end=False)
            return self._read()
        if self._file is not None and status.st_size < os.lseek(self._file, 0, os.SEEK_CUR):
            os.lseek(self._file, 0, os.SEEK_SET)
            self._rest = b""
            return self._read()
        return []

    @staticmethod
    def text(line: str) -> str:
        return f"the line '{line[:_SHOWN]}{'...' if len(line) > _SHOWN else ''}'"

    def close(self) -> None:
        if self._file is not None and self._log != "-":
            os.close(self._file)
        self._file = None


class Pressure:
    """The kernel's report that some task waited for I/O for more than a share of two seconds (Documentation/accounting/psi.rst)."""

    def __init__(self, share: float) -> None:
        """Raises RecordError: the kernel does not measure it."""
        self.share = share
        stall_us = round(share * _WINDOW_US)
        try:
            self.fd = os.open(_PRESSURE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise RecordError(
                f"cannot watch {_PRESSURE}: {error.strerror}",
                "the kernel measures pressure with CONFIG_PSI, and on some distributions only with psi=1 on its command line",
            ) from None
        try:
            os.write(self.fd, f"some {stall_us} {_WINDOW_US}\0".encode())
        except OSError as error:
            os.close(self.fd)
            raise RecordError(f"the kernel refuses to watch pressure: {error.strerror}") from None

    @property
    def text(self) -> str:
        return f"some task waited for I/O for {self.share:.0%} of two seconds"

    def close(self) -> None:
        os.close(self.fd)


class Signals:
    """SIGUSR1, as a file that can be read when it has arrived. So can it be for any other signal that Python handles."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.has_come = False

    def _note(self, _number: int, _frame: object) -> None:
        self.has_come = True

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handles them within the block."""
        before = signal.signal(signal.SIGUSR1, self._note)
        wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            signal.signal(signal.SIGUSR1, before)
            os.close(self.fd)
            os.close(self._write)

    def take(self) -> bool:
        """Returns whether SIGUSR1 has come since the last time."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 64):
                pass
        came, self.has_come = self.has_come, False
        return came


def wait(readable: list[int], pressure: int | None, seconds: float) -> set[int]:
    """Waits until one of these can be read, or until the kernel reports pressure. Returns which."""
    poll = select.poll()
    for fd in readable:
        poll.register(fd, select.POLLIN)
    if pressure is not None:
        poll.register(pressure, select.POLLPRI)
    return {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
