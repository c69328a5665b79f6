"""Run directories of `syncline record`: which files are read, and what the manifest adds to them."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from syncline import _core
from syncline.errors import InputError
from syncline.kinds import MANIFEST, is_recording

__all__ = [
    "MANIFEST",
    "SYMBOLS",
    "TASKS",
    "Filter",
    "InputHints",
    "Recording",
    "is_recording",
    "join_recordings",
    "manifest_facts",
    "read_recording",
    "strace_clocks",
]

# Threads with their processes, and the names of the processes.
TASKS = "tasks.json"
# Names for addresses in stacks that the tracer could not resolve.
SYMBOLS = "symbols.json"
# Block devices by `major:minor`.
DEVICES = "devices.json"


@dataclass(frozen=True)
class Filter:
    """Which requests are kept. None keeps all."""

    pid: int | None = None
    comm: str | None = None
    # The prefix of the path.
    path: str | None = None
    # As in the kernel: major << 20 | minor.
    device: int | None = None
    min_latency_ns: int | None = None

    def over(self, other: Filter) -> Filter:
        """Returns this filter, with the conditions of `other` where this one has none."""
        conditions = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **conditions)

    def for_core(self) -> tuple[Any, ...] | None:
        """Returns the argument `filter` of `_core.convert`."""
        if self == Filter():
            return None
        return (self.pid, self.comm, self.path, self.device, self.min_latency_ns)


class InputHints(NamedTuple):
    """What is known of a file but not recorded in it: the argument `hints` of `_core.convert`."""

    # For the times of day of strace: CLOCK_REALTIME and CLOCK_BOOTTIME in ns at the start of the
    # recording, then both at its end.
    clocks: list[int] | None = None
    boot_id: str | None = None
    # By clock, the ns to add to its times for ns since 1970.
    to_realtime_ns: dict[str, int] | None = None
    # The ns to add to the times of the file (`--offset`).
    offset_ns: int | None = None


@dataclass(frozen=True)
class Recording:
    """The files of one INPUT that is a log or a run directory."""

    files: list[str]
    # Conditions that the recorder could not apply and left to the conversion.
    filter: Filter = field(default_factory=Filter)
    # (thread, process)
    threads: list[tuple[int, int]] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    # (process, address, text)
    frames: list[tuple[int, int, str]] = field(default_factory=list)
    # Names such as `sda`, by the kernel's device number: major << 20 | minor.
    device_names: dict[int, str] = field(default_factory=dict)
    # By file.
    hints: dict[str, InputHints] = field(default_factory=dict)


def read_recording(path: str) -> Recording:
    """Reads the manifest of a run directory. Any other path is a recording of one file.

    Raises:
        InputError: the manifest is damaged, or names no file that can be read.
    """
    if path == "-" or not is_recording(path):
        return Recording([path])
    file = Path(path, MANIFEST)
    tasks_file, symbols_file, devices_file = (
        Path(path, name) for name in (TASKS, SYMBOLS, DEVICES)
    )
    try:
        manifest = json.loads(file.read_text())
        inputs = [(_plain(one["file"]), one["source"]) for one in manifest["inputs"]]
        remaining = Filter(**manifest.get("filter_at_conversion", {}))
        tasks = json.loads(tasks_file.read_text()) if tasks_file.is_file() else {}
        threads = [(int(tid), int(pid)) for tid, pid in tasks.get("threads", [])]
        processes = {int(pid): str(name) for pid, name in tasks.get("processes", {}).items()}
        symbols = json.loads(symbols_file.read_text()) if symbols_file.is_file() else []
        frames = [(int(pid), int(address), str(text)) for pid, address, text in symbols]
        devices = json.loads(devices_file.read_text()) if devices_file.is_file() else {}
        device_names = _device_names(devices)
        boot_id = manifest.get("before", {}).get("boot_id")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} is not a manifest of a recording: {type(error).__name__}: {error}",
            f"name the files of the recording instead: ls {shlex.quote(path)}",
        ) from None
    readable = [str(Path(path, name)) for name, source in inputs if source in _core.SOURCES]
    if not readable:
        found = ", ".join(f"{name} ({source})" for name, source in inputs) or "nothing"
        raise InputError(
            f"{path} is a recording that this version cannot convert: it holds {found}",
            "record again with another route: syncline record --route bpftrace",
        )
    hints = InputHints(
        boot_id=str(boot_id) if boot_id else None,
        to_realtime_ns=_to_realtime_ns(manifest.get("before", {})),
    )
    return Recording(
        readable,
        remaining,
        threads,
        processes,
        frames,
        device_names,
        dict.fromkeys(readable, hints),
    )


def _plain(name: str) -> str:
    """Returns the name of a file of the folder.

    Raises:
        ValueError: it leads out of the folder, which may be from someone else.
    """
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f"{name!r} is no file of this folder")
    return name


def _device_names(devices: dict[str, Any]) -> dict[int, str]:
    names = {}
    for number, device in devices.items():
        major, minor = map(int, number.split(":"))
        names[major << 20 | minor] = str(device["name"])
    return names


def join_recordings(recordings: list[Recording]) -> Recording:
    """Joins recordings that are converted together.

    Raises:
        InputError: they were recorded with different filters.
    """
    filters = {recording.filter for recording in recordings}
    if len(filters) > 1:
        raise InputError(
            "the recordings were made with different filters",
            "convert them one by one, or give one filter for all: --pid, --comm, --path, --device,"
            " --min-latency",
        )
    return Recording(
        [file for recording in recordings for file in recording.files],
        filters.pop() if filters else Filter(),
        [pair for recording in recordings for pair in recording.threads],
        {pid: name for recording in recordings for pid, name in recording.processes.items()},
        [frame for recording in recordings for frame in recording.frames],
        {dev: name for recording in recordings for dev, name in recording.device_names.items()},
        {file: hints for recording in recordings for file, hints in recording.hints.items()},
    )


def manifest_facts(path: str) -> dict[str, Any]:
    """Returns how and where a run was recorded, by its manifest; empty without one.

    The keys are route, cannot_see, boot_id, host, kernel and realtime_offset_ns.
    """
    try:
        manifest = json.loads(Path(path, MANIFEST).read_text())
        facts = {"route": manifest.get("route"), "cannot_see": manifest.get("cannot_see")}
        before = manifest.get("before", {})
        facts |= {key: before.get(key) for key in ("boot_id", "host", "kernel")}
        facts["realtime_offset_ns"] = _to_realtime_ns(before).get("boottime")
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return {key: value for key, value in facts.items() if value not in (None, "")}


def strace_clocks(log: str) -> list[int] | None:
    """Returns CLOCK_REALTIME and CLOCK_BOOTTIME in ns at the start and at the end of a recording.

    None if the log is not the one of a recording by strace.
    """
    try:
        manifest = json.loads(Path(log).with_name(MANIFEST).read_text())
        ends = [manifest[end]["clocks_ns"] for end in ("before", "after")]
        if manifest["route"] != "strace":
            return None
        return [int(end[clock]) for end in ends for clock in ("realtime", "boottime")]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _to_realtime_ns(machine: dict[str, Any]) -> dict[str, int]:
    clocks = machine.get("clocks_ns", {})
    realtime = clocks.get("realtime")
    others = {name: int(ns) for name, ns in clocks.items() if name != "realtime"}
    return {} if realtime is None else {name: int(realtime) - ns for name, ns in others.items()}
