"""A tracing instance: events, clock and buffer that are separate from other tracing on the machine."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from syncline.record.errors import RecordError

FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_PREFIX = "syncline-"
_DROPPED = re.compile(r"^\s+Dropped: (\d+)", re.MULTILINE)


def find(root: Path = Path("/"), holds: str = "instances") -> Path | None:
    """Returns the mount point of tracefs, the first one that holds the folder `holds`.

    None if there is none that this user can read.
    """
    for name in FOLDERS:
        folder = root / name[1:]
        with contextlib.suppress(PermissionError):
            if (folder / holds).is_dir():
                return folder
    return None


def dropped_hits(histograms: str) -> int:
    """Returns how many hits histograms had no room for, by their text."""
    return sum(map(int, _DROPPED.findall(histograms)))


def remove_dead_instances(tracefs: Path) -> list[str]:
    """Removes the instances of recorders that were killed, and returns their names."""
    removed = []
    for folder in dead_instances(tracefs):
        Instance(tracefs, folder).remove()
        removed.append(folder.name)
    return removed


def dead_instances(tracefs: Path) -> list[Path]:
    """Returns the instances of recorders that were killed."""
    found = []
    for folder in tracefs.glob(f"instances/{_PREFIX}*"):
        of = re.fullmatch(rf"{_PREFIX}(\d+)-(\d+)(-\w+)?", folder.name)
        if of and not is_running(int(of[1]), of[2]):
            found.append(folder)
    return found


def owner() -> tuple[int, str]:
    """Returns what the names of this process's instances and events begin with: its id and start time."""
    return os.getpid(), _start_time(os.getpid()) or "0"


def is_running(pid: int, start: str) -> bool:
    """Returns whether the owner of an instance or of events still runs."""
    return _start_time(pid) == start


def _start_time(pid: int) -> str | None:
    """Returns the start time of a process in clock ticks. With the pid it is a unique id."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # One that was killed keeps its entry until its parent looks at it.
    return None if fields[0] in ("Z", "X") else fields[19]


def _write(file: Path, text: str, how: int = os.O_TRUNC) -> None:
    # Without O_CREAT: a file that does not exist is an error.
    out = os.open(file, os.O_WRONLY | how)
    try:
        os.write(out, text.encode())
    finally:
        os.close(out)


def append(file: Path, text: str) -> None:
    """Appends a line to a file of definitions. Without O_APPEND, it would remove everybody's. Raises OSError."""
    _write(file, f"{text}\n", os.O_APPEND)


class Instance:
    """`instances/NAME` of tracefs. `remove` undoes every change."""

    def __init__(self, tracefs: Path, folder: Path) -> None:
        self.tracefs = tracefs
        self.folder = folder

    @classmethod
    def create(cls, tracefs: Path, *, clock: str, buffer_kb: int, name: str = "") -> Instance:
        """Creates an instance in which tracing is off. `name` distinguishes several of one process.

        Raises:
            RecordError: it cannot be created, or the kernel lacks the clock.
        """
        pid, start = owner()
        suffix = f"-{name}" if name else ""
        folder = tracefs / "instances" / f"{_PREFIX}{pid}-{start}{suffix}"
        try:
            folder.mkdir()
        except OSError as error:
            raise RecordError(
                f"cannot create a tracing instance: {error.strerror}",
                "recording needs root and a kernel that is not locked down; see `syncline doctor`",
            ) from None
        instance = cls(tracefs, folder)
        try:
            instance.write("tracing_on", "0")
            instance.write("trace_clock", clock)
            instance.write("buffer_size_kb", str(buffer_kb))
        except BaseException:
            instance.remove()
            raise
        return instance

    def write(self, name: str, value: str) -> None:
        """Writes a value to one of its files.

        Raises:
            RecordError: the kernel rejects the value.
        """
        try:
            _write(self.folder / name, value)
        except OSError as error:
            hint = "use a smaller buffer: --buffer" if name == "buffer_size_kb" else ""
            raise RecordError(f"cannot set {name} to {value}: {error.strerror}", hint) from None

    def enable(self, events: list[str]) -> list[str]:
        """Enables the events (`system/name`) that this kernel has, and returns them."""
        available = [
            event for event in events if (self.folder / "events" / event / "enable").exists()
        ]
        for event in available:
            self.write(f"events/{event}/enable", "1")
        return available

    def set_filter(self, event: str, condition: str) -> None:
        """Keeps only the events that meet a condition.

        Raises:
            RecordError: the kernel rejects it.
        """
        self.write(f"events/{event}/filter", condition)

    def trigger(self, event: str, text: str) -> None:
        """Adds a trigger to an event. Others are kept.

        Raises:
            RecordError: the kernel rejects it.
        """
        try:
            _write(self.folder / "events" / event / "trigger", text, os.O_APPEND)
        except OSError as error:
            raise RecordError(f"cannot count {event}: {error.strerror}") from None

    def set_threads(self, tids: set[int]) -> None:
        """Adds threads to those that are traced. The first call excludes all others.

        Raises:
            RecordError: the kernel rejects them.
        """
        file = self.folder / "set_event_pid"
        try:
            # An empty list would be no limit, so it begins with an id that no thread has had for long.
            last = int(Path("/proc/sys/kernel/pid_max").read_text()) - 1
            _write(file, str(last), os.O_APPEND)
        except OSError as error:
            raise RecordError(f"cannot limit events to threads: {error.strerror}") from None
        for tid in tids:
            with contextlib.suppress(OSError):
                _write(file, str(tid), os.O_APPEND)

    def histogram(self, event: str) -> str:
        """Returns the text of all histograms of an event; empty if it cannot be read."""
        with contextlib.suppress(OSError):
            # A name of a thread may hold bytes that are no UTF-8.
            file = self.folder / "events" / event / "hist"
            return file.read_text(errors="surrogateescape")
        return ""

    def formats(self, events: list[str]) -> dict[str, list[str]]:
        """Returns the format texts of events by system."""
        texts: dict[str, list[str]] = {}
        for event in events:
            text = (self.folder / "events" / event / "format").read_text()
            texts.setdefault(event.partition("/")[0], []).append(text)
        return texts

    def stats(self) -> dict[int, dict[str, int]]:
        """Returns the counters of each CPU: entries, overrun, dropped events, read events, ..."""
        found = {}
        for file in sorted(self.folder.glob("per_cpu/cpu*/stats")):
            numbers = re.findall(r"^([a-z ]+): (\d+)$", file.read_text(), re.MULTILINE)
            found[int(file.parent.name[3:])] = {key: int(value) for key, value in numbers}
        return found

    def remove(self) -> None:
        """Stops tracing and removes the instance."""
        with contextlib.suppress(OSError):
            _write(self.folder / "tracing_on", "0")
        with contextlib.suppress(OSError):
            _write(self.folder / "events" / "enable", "0")
        # A reader that was just killed may still have it open.
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)
