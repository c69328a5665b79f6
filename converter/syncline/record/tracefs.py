"""A tracing instance of our own: events, clock and buffer, without a touch of what else is traced on the machine."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from syncline.record.errors import RecordError

FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_PREFIX = "syncline-"


def find(root: Path = Path("/")) -> Path | None:
    """Where tracefs is mounted, as far as this user can see."""
    for name in FOLDERS:
        folder = root / name[1:]
        with contextlib.suppress(PermissionError):
            if (folder / "instances").is_dir():
                return folder
    return None


def clean_up(tracefs: Path) -> list[str]:
    """Removes instances of recorders that are no longer there (killed); returns their names."""
    gone = []
    for folder in tracefs.glob(f"instances/{_PREFIX}*"):
        owner = re.fullmatch(rf"{_PREFIX}(\d+)-(\d+)", folder.name)
        if owner and _started(int(owner[1])) != owner[2]:
            Instance(tracefs, folder).remove()
            gone.append(folder.name)
    return gone


def _started(pid: int) -> str | None:
    """Start time of a process in clock ticks: with its number it names the process for good."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _put(file: Path, text: str) -> None:
    # Never made where it is not there.
    out = os.open(file, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(out, text.encode())
    finally:
        os.close(out)


class Instance:
    """`instances/NAME` of tracefs. Every change is undone by `remove`."""

    def __init__(self, tracefs: Path, folder: Path) -> None:
        self.tracefs = tracefs
        self.folder = folder

    @classmethod
    def create(cls, tracefs: Path, *, clock: str, buffer_kb: int) -> Instance:
        """A new instance, off.

        Raises:
            RecordError: it cannot be made, or has not the clock.
        """
        folder = tracefs / "instances" / f"{_PREFIX}{os.getpid()}-{_started(os.getpid())}"
        try:
            folder.mkdir()
        except OSError as error:
            raise RecordError(
                f"cannot make a tracing instance: {error.strerror}",
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
        """Sets one of its files.

        Raises:
            RecordError: the kernel refuses.
        """
        try:
            _put(self.folder / name, value)
        except OSError as error:
            hint = "give it less memory: --buffer" if name == "buffer_size_kb" else ""
            raise RecordError(f"cannot set {name} to {value}: {error.strerror}", hint) from None

    def enable(self, events: list[str]) -> list[str]:
        """Turns on those of the events (`system/name`) that this kernel has, and returns them."""
        there = [event for event in events if (self.folder / "events" / event / "enable").exists()]
        for event in there:
            self.write(f"events/{event}/enable", "1")
        return there

    def formats(self, events: list[str]) -> dict[str, list[str]]:
        """Texts of the events' formats by system."""
        texts: dict[str, list[str]] = {}
        for event in events:
            text = (self.folder / "events" / event / "format").read_text()
            texts.setdefault(event.partition("/")[0], []).append(text)
        return texts

    def stats(self) -> dict[int, dict[str, int]]:
        """The kernel's counts for each CPU: entries, overrun, dropped events, read events."""
        found = {}
        for file in sorted(self.folder.glob("per_cpu/cpu*/stats")):
            numbers = re.findall(r"^([a-z ]+): (\d+)$", file.read_text(), re.MULTILINE)
            found[int(file.parent.name[3:])] = {key: int(value) for key, value in numbers}
        return found

    def remove(self) -> None:
        """Undoes all of it."""
        with contextlib.suppress(OSError):
            _put(self.folder / "tracing_on", "0")
        with contextlib.suppress(OSError):
            _put(self.folder / "events" / "enable", "0")
        # A reader that was killed a moment ago may still hold it.
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)
