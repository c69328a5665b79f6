"""Waits for the end of a recording, and scans processes during the wait."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from syncline.record.processes import Maps, Tasks, all_processes, family

# Interval of the scans that look for new processes, and for new maps and threads of known ones.
_SCAN_AGAIN_S = 0.5
_POLL_S = 0.02
# Time that a command gets to exit after the signal that stops it.
_EXIT_WITHIN_S = 10


class StopSignal:
    """The signal that ends the recording, once it has arrived."""

    def __init__(self) -> None:
        self.number: int | None = None


@contextlib.contextmanager
def stop_signal() -> Iterator[StopSignal]:
    """Makes Ctrl-C, SIGTERM and the end of the terminal end the recording in an orderly way."""
    stop = StopSignal()

    def handle(number: int, _frame: object) -> None:
        stop.number = number

    numbers = [signal.SIGINT, signal.SIGTERM]
    # nohup makes a command ignore it.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Scanner:
    """Records threads and memory maps of processes while they run."""

    def __init__(self) -> None:
        self.maps = Maps()
        self.tasks = Tasks()
        self._known: set[int] = set()
        self._next = self._next_again = 0.0

    def scan_all(self) -> None:
        """Scans the processes that exist when the recording starts."""
        self._known = set(all_processes())
        self._scan(sorted(self._known))

    def scan_if_due(self, root: int | None) -> None:
        """Scans `root` and its descendants if a scan is due, and less often all new processes."""
        began = time.monotonic()
        if began < self._next:
            return
        again = began >= self._next_again
        if root is not None:
            self._scan(family(root), again)
        if again:
            self._next_again = began + _SCAN_AGAIN_S
            # A server that a command starts in the background is not its descendant.
            new = sorted(set(all_processes()) - self._known)
            self._scan(new)
            self._known.update(new)
        # Scans disturb what is measured. They use a fifth of one CPU at most, unless one is over 125 ms.
        now = time.monotonic()
        self._next = now + min(4 * (now - began), _SCAN_AGAIN_S)

    def _scan(self, pids: list[int], again: bool = True) -> None:
        self.maps.scan(pids, again)
        self.tasks.scan(pids, again)


def wait_for_end(
    child: subprocess.Popen[bytes] | None,
    pid: int | None,
    seconds: float | None,
    failure: Callable[[], str | None],
    stop: StopSignal,
    scanner: Scanner,
    look: Callable[[], str | None] = lambda: None,
) -> tuple[str, int | None]:
    """Waits until the recording ends.

    Args:
        child: the command; the recording ends when it exits.
        pid: a process; the recording ends when it exits.
        seconds: the maximum duration; None for no limit.
        failure: returns why a recorder has stopped early, or None.
        stop: the recording ends when its signal arrives.
        scanner: scans processes during the wait.
        look: called again and again during the wait; the recording ends when it returns a reason.

    Returns:
        The reason (`command`, `process`, `time`, `failure: ...`, that of `look`, or the name of a signal), and the
        exit code of the command.
    """
    root = child.pid if child is not None else pid
    until = time.monotonic() + seconds if seconds is not None else None
    while True:
        if child is not None and child.poll() is not None:
            return "command", child.returncode
        if stop.number is not None:
            return signal.Signals(stop.number).name, None
        if until is not None and time.monotonic() >= until:
            return "time", None
        if pid is not None and not Path(f"/proc/{pid}").exists():
            return "process", None
        if reason := failure():
            return f"failure: {reason}", None
        scanner.scan_if_due(root)
        if reason := look():
            return reason, None
        time.sleep(_POLL_S)


def end_child(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Stops a command with a signal, and kills it if it does not exit."""
    if child.poll() is None:
        child.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_EXIT_WITHIN_S)
        if child.poll() is None:
            child.kill()
            child.wait()
