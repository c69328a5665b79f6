"""Run directories of `syncline record`: which files are read, and what the manifest adds to them."""

from __future__ import annotations

import json
import re
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from syncline import _core
from syncline.errors import InputError
from syncline.run_directory import (
    DEVICES,
    FILES,
    LEFT,
    LIMITS,
    MANIFEST,
    SYMBOLS,
    TASKS,
    WRITERS,
    Filter,
    is_in_cgroup,
)
from syncline.structured import parse_json, text, whole_number

__all__ = [
    "LEFT",
    "MANIFEST",
    "SYMBOLS",
    "TASKS",
    "Filter",
    "InputHints",
    "Recording",
    "is_in_cgroup",
    "join_recordings",
    "manifest_facts",
    "read_file",
    "read_recording",
    "read_run_directory",
    "strace_clocks",
]

# The version of the manifest. One without a version is as old as the first one.
_SCHEMA_VERSION = 1
# The times of CLOCK_BOOTTIME in a manifest between which a log has all that was recorded.
_KNOWN = ("known_from_ns", "known_until_ns")
# What is said of a group without any.
NO_LIMITS = "none"


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
    # The time of CLOCK_BOOTTIME from which all that was recorded is there: before it, a ring buffer has overwritten some.
    known_from_ns: int | None = None
    # The time of CLOCK_BOOTTIME from which the file says nothing, because its recorder ended early.
    known_until_ns: int | None = None
    # How many of the events that the file reports as lost were missed by probes.
    missed_by_probes: int = 0


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
    # Number of hardware queues, by `major,minor`, where it was recorded.
    hardware_queues: dict[str, int] = field(default_factory=dict)
    # The I/O scheduler, such as `none`, by `major,minor`, where it was recorded.
    schedulers: dict[str, str] = field(default_factory=dict)
    # The devices directly below each one, as far as they are known, by the kernel's device numbers.
    devices_below: dict[int, list[int]] = field(default_factory=dict)
    # What the kernel says of their write caches: `write back`, or `write through` if they need no flush.
    write_caches: dict[int, str] = field(default_factory=dict)
    # By file.
    hints: dict[str, InputHints] = field(default_factory=dict)
    # Tables of paths, which the core reads.
    file_tables: list[str] = field(default_factory=list)
    # Tables of who made files dirty, which the core reads too.
    writer_tables: list[str] = field(default_factory=list)
    # By process.
    cgroups: dict[int, str] = field(default_factory=dict)
    # What limits each control group, as text: its own limits, and those of the groups above it.
    limits: dict[str, str] = field(default_factory=dict)
    # Files of formats that this version does not know, as `NAME (FORMAT)`.
    unread: list[str] = field(default_factory=list)
    # The INPUT, as the user named it. Empty if it is of several.
    path: str = ""


def read_recording(path: str) -> Recording:
    """Reads a run directory, or a recording of one file. For a path of which it is not known which one it is.

    Raises:
        InputError: the manifest is damaged, or names no file that can be read.
    """
    is_file = path == "-" or not Path(path, MANIFEST).is_file()
    return read_file(path) if is_file else read_run_directory(path)


def read_file(path: str) -> Recording:
    """Returns the recording of one file. If it is in a run directory, its manifest says more of its clocks."""
    manifest = None if path == "-" else _manifest_of(path)
    if manifest is None:
        return Recording([path], path=path)
    return Recording([path], hints={path: _with_clocks(InputHints(), manifest, path)}, path=path)


def read_run_directory(path: str) -> Recording:
    """Reads the manifest of a run directory, and what else was recorded besides logs.

    Raises:
        InputError: the manifest is damaged, or names no file that can be read.
    """
    file = Path(path, MANIFEST)
    tasks_file, symbols_file, devices_file, limits_file = (
        Path(path, name) for name in (TASKS, SYMBOLS, DEVICES, LIMITS)
    )
    try:
        _member(path, MANIFEST)
        manifest = _object(_read(file))
        version = manifest.get("schema_version", _SCHEMA_VERSION)
        if version != _SCHEMA_VERSION or isinstance(version, bool):
            raise ValueError(
                f"its schema_version is {version!r}, and this version of Syncline reads {_SCHEMA_VERSION}"
            )
        inputs = [
            (_file_name(one["file"]), _source(text(one["source"])))
            for one in _list(manifest["inputs"])
        ]
        remaining = _filter(manifest.get("filter_at_conversion", {}))
        boot_id = manifest.get("before", {}).get("boot_id")
        for one in manifest["inputs"]:
            for key in _KNOWN:
                if one.get(key) is not None:
                    _time(one[key])
        hints = InputHints(
            boot_id=text(boot_id) if boot_id else None,
            to_realtime_ns=_to_realtime_ns(manifest.get("before", {})),
        )
        file = tasks_file
        tasks = _object(_read(file)) if _member(path, TASKS) else {}
        threads = [(_id(tid), _id(pid)) for tid, pid in tasks.get("threads", [])]
        processes = {_id(int(pid)): text(name) for pid, name in tasks.get("processes", {}).items()}
        cgroups = {
            _id(pid): text(name) for name, pids in tasks.get("cgroups", {}).items() for pid in pids
        }
        file = symbols_file
        symbols = _read(file) if _member(path, SYMBOLS) else []
        frames = [
            (_id(pid), whole_number(address, 2**64), text(name)) for pid, address, name in symbols
        ]
        file = devices_file
        devices = _object(_read(file)) if _member(path, DEVICES) else {}
        device_names, hardware_queues = _device_names(devices), _hardware_queues(devices)
        schedulers = _schedulers(devices)
        devices_below, write_caches = _devices_below(devices), _write_caches(devices)
        file = limits_file
        limits = _limits(_object(_read(file))) if _member(path, LIMITS) else {}
        for file in map(Path(path).joinpath, (*(name for name, _ in inputs), FILES, WRITERS)):
            _member(path, file.name)
    except _NoMember as error:
        raise InputError(
            f"cannot read {file}: {error}",
            f"a recording holds only files of its own: copy {file.name} into {shlex.quote(path)}, or remove it",
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} is damaged: {_reason(error)}",
            f"name the files of the recording instead: ls {shlex.quote(path)}",
        ) from None
    readable = [str(Path(path, name)) for name, source in inputs if source in _core.SOURCES]
    if not readable:
        found = ", ".join(f"{name} ({source})" for name, source in inputs) or "nothing"
        raise InputError(
            f"{path} is a recording that this version cannot convert: it holds {found}",
            "record again with another route: syncline record --route bpftrace",
        )
    return Recording(
        readable,
        remaining,
        threads,
        processes,
        frames,
        device_names,
        hardware_queues,
        schedulers,
        devices_below,
        write_caches,
        {name: _with_clocks(hints, manifest, name) for name in readable},
        _if_there(Path(path, FILES)),
        _if_there(Path(path, WRITERS)),
        cgroups,
        limits,
        [f"{path}/{name} ({source})" for name, source in inputs if source not in _core.SOURCES],
        path,
    )


def _with_clocks(hints: InputHints, manifest: Any, log: str) -> InputHints:
    """Adds what a manifest says of the times and the losses of a log."""
    name = Path(log).name
    return hints._replace(
        clocks=_strace_clocks(manifest),
        **{key: _known(key, manifest, name) for key in _KNOWN},
        missed_by_probes=_missed_by_probes(manifest, name),
    )


def _source(name: str) -> str:
    """The name of a format today."""
    return _core.EARLIER_SOURCES.get(name, name)


class _NoMember(Exception):
    """A run directory has no such file of its own."""


def _member(folder: str, name: str) -> bool:
    """Returns whether a file of a run directory exists.

    Raises:
        _NoMember: it leads out of the folder, where it may be a file that whoever made the folder cannot read; or it is no file, so
            that reading it might never end.
    """
    file = Path(folder, name)
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        if file.is_symlink():
            raise _NoMember("it is a symbolic link that leads nowhere") from None
        return False
    if Path(folder).resolve() not in file.resolve().parents:
        raise _NoMember("it is a symbolic link that leads out of the folder")
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise _NoMember(f"it is {kinds.get(stat.S_IFMT(mode), 'a device')} and not a file")
    return True


def _if_there(table: Path) -> list[str]:
    return [str(table)] if table.is_file() else []


def _device_names(devices: dict[str, Any]) -> dict[int, str]:
    return {_device_number(number): text(device["name"]) for number, device in devices.items()}


def _write_caches(devices: dict[str, Any]) -> dict[int, str]:
    return {
        _device_number(number): text(cache)
        for number, device in devices.items()
        if (cache := device.get("write_cache"))
    }


def _device_number(number: str) -> int:
    major, minor = map(int, number.split(":"))
    # The kernel has 12 bits for the major number, and 20 for the minor one.
    return whole_number(major, 2**12) << 20 | whole_number(minor, 2**20)


def _devices_below(devices: dict[str, Any]) -> dict[int, list[int]]:
    """Returns the devices directly below each one. A device has no entry unless all of them are known."""
    numbers = {device["name"]: _device_number(number) for number, device in devices.items()}
    found = {}
    for number, device in devices.items():
        # Before there was `partition`, `on` was empty for a partition.
        if (names := device.get("on")) or (names is not None and "partition" in device):
            below = [numbers.get(text(name)) for name in names]
            if None not in below:
                found[_device_number(number)] = below
    return found


def _limits(groups: dict[str, Any]) -> dict[str, str]:
    """Returns the limits of each group as text. Those of a group are limits of all groups below it."""
    own = {text(group): _own_limits(text(group), of) for group, of in groups.items()}
    found = {}
    for group in own:
        above = [group]
        while above[-1] != "/":
            above.append(above[-1].rpartition("/")[0] or "/")
        found[group] = "; ".join(limit for one in above for limit in own.get(one, ())) or NO_LIMITS
    return found


def _own_limits(group: str, of: dict[str, Any]) -> list[str]:
    begin, end = of["begin"], of["end"]
    found = []
    for name in sorted({*begin, *(end or {})}):
        texts = [
            _limit(text(at[name])) if name in at else "not set" for at in (begin, end or begin)
        ]
        changed = f", at the end {texts[1]}" if texts[0] != texts[1] else ""
        found.append(f"{name} of {group}: {texts[0]}{changed}")
    return found


def _limit(lines: str) -> str:
    """What a file of a group says: `8:0 rbps=max wbps=1024` is `wbps=1024 on 8:0`."""
    found = []
    for line in lines.splitlines():
        words = line.split()
        if ":" in words[0]:
            values = [word for word in words[1:] if not word.endswith("=max")]
            found.append(f"{' '.join(values)} on {words[0]}")
        else:
            found.append(line)
    return ", ".join(found)


def _hardware_queues(devices: dict[str, Any]) -> dict[str, int]:
    return {
        number.replace(":", ","): whole_number(count, 2**16, least=1)
        for number, device in devices.items()
        if (count := device.get("hardware_queues")) is not None
    }


def _schedulers(devices: dict[str, Any]) -> dict[str, str]:
    """Returns the scheduler in use, which sysfs prints in brackets: `[none] mq-deadline`."""
    return {
        number.replace(":", ","): words[0]
        for number, device in devices.items()
        if (words := re.findall(r"\[([^\]]+)\]", text(device.get("scheduler") or "")))
    }


def _read(file: Path) -> Any:
    return parse_json(file.read_bytes())


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_shown(value)} is not an object")
    return value


def _list(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is not a list")
    return [_object(one) for one in value]


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _id(value: object) -> int:
    """Returns the id of a thread or a process."""
    return whole_number(value, 2**32)


def _file_name(value: object) -> str:
    """Returns the name of a file in the run directory. Another one may be somebody else's."""
    name = text(value)
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f"{name!r} is not in this folder")
    return name


def _filter(values: dict[str, Any]) -> Filter:
    limits = {"pid": 2**32, "device": 2**32}
    limits |= dict.fromkeys(("min_latency_ns", "since_ns", "until_ns"), 2**63)
    return Filter(
        **{
            name: value
            if value is None
            else whole_number(value, limits[name])
            if name in limits
            else text(value)
            for name, value in values.items()
        }
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    if isinstance(error, KeyError):
        return f"it has no key {error}"
    # Python words these for the author of the code that fails.
    is_of_python = isinstance(error, AttributeError | TypeError)
    return "a value in it is of the wrong type" if is_of_python else str(error)


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
            " --min-latency, --cgroup",
        )
    return Recording(
        [file for recording in recordings for file in recording.files],
        filters.pop() if filters else Filter(),
        [pair for recording in recordings for pair in recording.threads],
        {pid: name for recording in recordings for pid, name in recording.processes.items()},
        [frame for recording in recordings for frame in recording.frames],
        {dev: name for recording in recordings for dev, name in recording.device_names.items()},
        {
            dev: number
            for recording in recordings
            for dev, number in recording.hardware_queues.items()
        },
        {dev: name for recording in recordings for dev, name in recording.schedulers.items()},
        {dev: below for recording in recordings for dev, below in recording.devices_below.items()},
        {dev: cache for recording in recordings for dev, cache in recording.write_caches.items()},
        # A run directory says more of a file than the file that is named besides.
        {
            file: hints
            for recording in sorted(recordings, key=lambda one: one.files != [one.path])
            for file, hints in recording.hints.items()
        },
        [table for recording in recordings for table in recording.file_tables],
        [table for recording in recordings for table in recording.writer_tables],
        {pid: name for recording in recordings for pid, name in recording.cgroups.items()},
        {group: limit for recording in recordings for group, limit in recording.limits.items()},
        [file for recording in recordings for file in recording.unread],
    )


def manifest_facts(path: str) -> dict[str, Any]:
    """Returns how and where a run was recorded, by its manifest; empty without one.

    The keys are route, cannot_see, boot_id, host, kernel and realtime_offset_ns.
    """
    try:
        manifest = _read(Path(path, MANIFEST))
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
    return _strace_clocks(_manifest_of(log))


def _manifest_of(log: str) -> Any:
    """Returns the manifest of the run directory that a log is in; None without one that can be read."""
    try:
        file = Path(log).with_name(MANIFEST)
        return _read(file) if file.is_file() else None
    except (OSError, ValueError):
        return None


def _strace_clocks(manifest: Any) -> list[int] | None:
    try:
        ends = [manifest[end]["clocks_ns"] for end in ("before", "after")]
        if manifest["route"] != "strace":
            return None
        return [_time(end[clock]) for end in ends for clock in ("realtime", "boottime")]
    except (ValueError, KeyError, TypeError):
        return None


def _known(key: str, manifest: Any, name: str) -> int | None:
    """Returns one of the times of CLOCK_BOOTTIME between which a log of a recording has all events; None if it has its first, or its last one."""
    try:
        ends = [one.get(key) for one in manifest["inputs"] if one["file"] == name]
        return _time(ends[0]) if ends and ends[0] is not None else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _missed_by_probes(manifest: Any, name: str) -> int:
    """Returns how many of the events that a log reports as lost were missed by probes, so that a larger buffer would not have kept them."""
    try:
        missed = [one.get("missed") for one in manifest["inputs"] if one["file"] == name]
        return whole_number(missed[0], 2**63) if missed and missed[0] is not None else 0
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0


def _to_realtime_ns(machine: dict[str, Any]) -> dict[str, int]:
    clocks = machine.get("clocks_ns", {})
    realtime = clocks.get("realtime")
    others = {text(name): _time(ns) for name, ns in clocks.items() if name != "realtime"}
    return {} if realtime is None else {name: _time(realtime) - ns for name, ns in others.items()}


def _time(value: object) -> int:
    """Returns a time in ns. The difference of two fits 64 bits."""
    return whole_number(value, 2**62)
