"""The process of a command: its standard streams, its signals, its end."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from syncline import interruptible, scratch
from syncline.cli.errors import OUTPUT_ERROR, Failure, Terminated

__all__ = ["catch_signals", "end", "open_streams"]

_STDIN, _STDOUT, _STDERR = 0, 1, 2
# A second signal ends the process at once, but not while the first one is likely to be still at work.
_PATIENCE_S = 5.0


class _StandardOutput(io.FileIO):
    """Standard output that ends a command with one message if it cannot be written."""

    def write(self, data: object) -> int | None:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            # Later writes, and the flush at the end of the process, have no effect.
            _discard(_STDOUT, os.O_WRONLY)
            if isinstance(error, BrokenPipeError):
                # `syncline report ... | head`: the reader has what it wanted. The command keeps its exit code.
                return memoryview(data).nbytes  # type: ignore[arg-type]
            raise cannot_write(error) from None


class _StandardError(io.FileIO):
    """Standard error. A message that cannot be written must not hide the exit code."""

    def write(self, data: object) -> int | None:
        with contextlib.suppress(OSError):
            return super().write(data)  # type: ignore[arg-type]
        return memoryview(data).nbytes  # type: ignore[arg-type]


def cannot_write(error: OSError) -> Failure:
    """Returns the failure of a command whose standard output cannot be written."""
    is_closed = error.errno == errno.EBADF
    reason = "it is closed" if is_closed else (error.strerror or str(error)).lower()
    return Failure(f"cannot write standard output: {reason}", code=OUTPUT_ERROR)


def open_streams() -> None:
    """Replaces the standard streams by those of this module. Closed ones are opened to /dev/null.

    If one stayed closed, the next file that is opened would get its number: the output of the command,
    for example, and every message would be written into it.
    """
    # A closed input reads as empty. A closed standard output is opened for reading only, so that writing to it still fails.
    for number, mode in ((_STDIN, os.O_RDONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _discard(number, mode)
    if sys.stdin is None:
        sys.stdin = open(_STDIN, closefd=False)  # noqa: SIM115
    # A file has UTF-8, as the files that the core writes.
    encoding = sys.stdout.encoding if sys.stdout and sys.stdout.isatty() else "utf-8"
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_StandardOutput(_STDOUT, "w", closefd=False)),
        encoding,
        "backslashreplace",
    )
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_StandardError(_STDERR, "w", closefd=False)),
        getattr(sys.stderr, "encoding", None) or "utf-8",
        "backslashreplace",
        line_buffering=True,
    )


def _discard(number: int, mode: int) -> None:
    null = os.open(os.devnull, mode)
    if null != number:
        os.dup2(null, number)
        os.close(null)


def catch_signals() -> None:
    """Makes signals raise an exception in the main thread, so that a command removes its temporary files.

    A signal that the caller ignores (nohup, a background job of a script) stays ignored.
    """
    first: list[float] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if first:
            if time.monotonic() - first[0] > _PATIENCE_S:
                scratch.remove_all()
                os._exit(128 + number)
            return
        first.append(time.monotonic())
        stop = KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)
        interruptible.remember(stop)
        raise stop

    show = sys.unraisablehook

    def show_others(lost: sys.UnraisableHookArgs) -> None:
        # A destructor lost the exception, which `interruptible` raises again.
        if not isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
            show(lost)

    sys.unraisablehook = show_others
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def end(code: int) -> NoReturn:
    """Ends the process with an exit code. No temporary folder is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    scratch.remove_all()
    if code in (0, *range(1, 6)) and not interruptible.was_abandoned():
        sys.exit(code)
    # The threads of an interrupted query would make the process wait, or would crash it.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
