"""Runs work that a signal does not interrupt, so that Ctrl-C and SIGTERM still end a command at once.

Python runs signal handlers in the main thread, between two of its own instructions. While the main thread
is in a library (a query, a read from a pipe that nobody writes), a handler would wait until the library returns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from syncline import _core

__all__ = ["call", "remember", "was_abandoned", "write"]

_Result = TypeVar("_Result")

# How long cancelled work may take to remove its temporary files, and how often it is cancelled meanwhile: a query that
# has not begun ignores the first time.
_GRACE_S = 3.0
_AGAIN_S = 0.05

# How often waiting work looks for a signal whose exception was lost.
_POLL_S = 0.5

_abandoned = threading.Event()
_stops: list[BaseException] = []


def call(work: Callable[[], _Result], cancel: Callable[[], None] = lambda: None) -> _Result:
    """Runs `work` in a thread, and returns its result or raises its exception.

    If a signal handler raises an exception, the work is cancelled and the exception is raised. Work that does not
    end in three seconds is abandoned: it continues until the process ends.

    Args:
        work: what to run. In another thread than the main one, which gets no signals, it runs directly.
        cancel: makes the work end early. It is called from the main thread, perhaps several times.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[_Result] = []
    failures: list[BaseException] = []
    # Not Thread.join: if it is interrupted, it regards a running thread as finished (bpo-45274).
    done = threading.Event()

    def guarded() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)
        done.set()

    try:
        # A daemon, so that an interrupted program exits without waiting for it.
        threading.Thread(target=guarded, name="interruptible", daemon=True).start()
        while not done.wait(_POLL_S):
            if _stops:
                raise _stops[0]
    except BaseException:
        until = time.monotonic() + _GRACE_S
        cancel()
        while not done.wait(_AGAIN_S):
            if time.monotonic() > until:
                _abandoned.set()
                break
            cancel()
        raise
    if failures:
        raise failures[0]
    return results[0]


def remember(stop: BaseException) -> None:
    """Remembers the exception that a signal handler raises. `call` raises it if it was lost.

    Python ignores an exception that a signal handler raises while an object is deleted.
    """
    _stops.append(stop)


def was_abandoned() -> bool:
    """Returns whether some work was abandoned. A process must then exit without waiting for its threads."""
    return _abandoned.is_set()


def write(path: str, data: bytes) -> None:
    """Writes a file, or standard output (`-`), whole or not at all. A pipe may have a slow reader, or none.

    Raises:
        CoreError: it cannot be written.
    """
    call(lambda: _core.write(path, data))
