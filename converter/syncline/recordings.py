"""A run directory of `syncline record`: which of its files are read, and what is known beside them."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from syncline import _core
from syncline.errors import InputError

# By which a run directory is known.
MANIFEST = "manifest.json"
# Threads with their processes, and the names of those.
TASKS = "tasks.json"
# Names for addresses in stacks that the tracer could not look up.
SYMBOLS = "symbols.json"


@dataclass(frozen=True)
class Filter:
    """Which requests are wanted; None is any."""

    pid: int | None = None
    comm: str | None = None
    # With what the path begins.
    path: str | None = None
    # Kernel's number: major << 20 | minor.
    device: int | None = None
    min_latency_ns: int | None = None

    def over(self, other: Filter) -> Filter:
        """This one; where it asks for nothing, what `other` asks for."""
        asked = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **asked)

    def for_core(self) -> tuple[Any, ...] | None:
        """As `_core.convert` takes it."""
        if self == Filter():
            return None
        return (self.pid, self.comm, self.path, self.device, self.min_latency_ns)


class Beside(NamedTuple):
    """What is known of a file and does not stand in it, as `_core.convert` takes it."""

    # CLOCK_REALTIME and CLOCK_BOOTTIME at the begin and at the end of the recording, of strace's times of day.
    clocks: list[int] | None = None
    boot_id: str | None = None
    # By the names of clocks, what is to be added to their times for ns since 1970.
    to_realtime_ns: dict[str, int] | None = None
    # What is to be added to its times, as the user says.
    offset_ns: int | None = None


@dataclass(frozen=True)
class Recording:
    """What is read of one INPUT that is a log."""

    files: list[str]
    # What the recorder was asked for, and has left to the conversion.
    filter: Filter = field(default_factory=Filter)
    threads: list[tuple[int, int]] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    # (process, address, text)
    frames: list[tuple[int, int, str]] = field(default_factory=list)
    # Of files.
    beside: dict[str, Beside] = field(default_factory=dict)


def is_recording(path: str | Path) -> bool:
    """Whether it is a run directory."""
    return Path(path, MANIFEST).is_file()


def recording_of(path: str) -> Recording:
    """The recording in a run directory; else the one file that is named.

    Raises:
        InputError: the run directory's manifest is broken, or names nothing that can be read.
    """
    if path == "-" or not is_recording(path):
        return Recording([path])
    manifest = Path(path, MANIFEST)
    tasks, symbols = Path(path, TASKS), Path(path, SYMBOLS)
    try:
        told = json.loads(manifest.read_text())
        inputs = [(one["file"], one["source"]) for one in told["inputs"]]
        left = Filter(**told.get("filter_at_conversion", {}))
        known = json.loads(tasks.read_text()) if tasks.is_file() else {}
        threads = [(int(tid), int(pid)) for tid, pid in known.get("threads", [])]
        found = json.loads(symbols.read_text()) if symbols.is_file() else []
        frames = [(int(pid), int(address), str(text)) for pid, address, text in found]
        processes = {int(pid): str(name) for pid, name in known.get("processes", {}).items()}
        boot_id = told.get("before", {}).get("boot_id")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{manifest} is no manifest of a recording: {type(error).__name__}: {error}",
            f"name the recording's files themselves: ls {shlex.quote(path)}",
        ) from None
    readable = [str(Path(path, file)) for file, source in inputs if source in _core.SOURCES]
    if not readable:
        named = ", ".join(f"{file} ({source})" for file, source in inputs) or "nothing"
        raise InputError(
            f"{path} is a recording that this version cannot convert: it holds {named}",
            "record again with another route: syncline record --route bpftrace",
        )
    beside = Beside(
        boot_id=str(boot_id) if boot_id else None,
        to_realtime_ns=_to_realtime_ns(told.get("before", {})),
    )
    return Recording(readable, left, threads, processes, frames, dict.fromkeys(readable, beside))


def _to_realtime_ns(machine: dict[str, Any]) -> dict[str, int]:
    clocks = machine.get("clocks_ns", {})
    realtime = clocks.get("realtime")
    others = {name: int(ns) for name, ns in clocks.items() if name != "realtime"}
    return {} if realtime is None else {name: int(realtime) - ns for name, ns in others.items()}


def facts_beside(path: str) -> dict[str, Any]:
    """What the manifest of a run directory tells of how and where it was recorded; nothing without one."""
    try:
        told = json.loads(Path(path, MANIFEST).read_text())
        facts = {"route": told.get("route"), "cannot_see": told.get("cannot_see")}
        before = told.get("before", {})
        facts |= {key: before.get(key) for key in ("boot_id", "host", "kernel")}
        facts["realtime_offset_ns"] = _to_realtime_ns(before).get("boottime")
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return {key: value for key, value in facts.items() if value not in (None, "")}


def clocks_beside(log: str) -> list[int] | None:
    """CLOCK_REALTIME and CLOCK_BOOTTIME at both ends of the recording that a log of strace lies in."""
    try:
        told = json.loads(Path(log).with_name(MANIFEST).read_text())
        ends = [told[end]["clocks_ns"] for end in ("before", "after")]
        if told["route"] != "strace":
            return None
        return [int(end[clock]) for end in ends for clock in ("realtime", "boottime")]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def joined(recordings: list[Recording]) -> Recording:
    """Several as one.

    Raises:
        InputError: they were to leave out different requests.
    """
    filters = {recording.filter for recording in recordings}
    if len(filters) > 1:
        raise InputError(
            "the recordings were made with different filters",
            "convert them one by one, or say which requests are wanted for all: --pid, --comm,"
            " --path, --device, --min-latency",
        )
    return Recording(
        [file for recording in recordings for file in recording.files],
        filters.pop() if filters else Filter(),
        [pair for recording in recordings for pair in recording.threads],
        {pid: name for recording in recordings for pid, name in recording.processes.items()},
        [frame for recording in recordings for frame in recording.frames],
        {file: known for recording in recordings for file, known in recording.beside.items()},
    )
