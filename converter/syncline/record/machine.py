"""What must be known of the machine to read a recording elsewhere: kernel, mounts, devices, programs."""

from __future__ import annotations

import contextlib
import json
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# How often each clock is read beside another.
_TRIES = 9


def describe() -> dict[str, Any]:
    """Kernel, host and clocks, for the manifest."""
    boot_id = _text("/proc/sys/kernel/random/boot_id")
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "machine": platform.machine(),
        "host": platform.node(),
        "boot_id": boot_id,
        "command_line": _text("/proc/cmdline"),
        "clocks_ns": clocks(),
    }


def clocks() -> dict[str, int]:
    """All clocks at one moment, so that other recordings can be laid beside this one.

    Of several tries that counts in which the least time went by, since a busy machine may stop the reader between two clocks.
    """
    others = {"monotonic": time.CLOCK_MONOTONIC, "realtime": time.CLOCK_REALTIME}
    found = {"boottime": time.clock_gettime_ns(time.CLOCK_BOOTTIME)}
    for name, clock in others.items():
        tries = []
        for _ in range(_TRIES):
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            now = time.clock_gettime_ns(clock)
            after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            tries.append((after - before, now - (before + after) // 2))
        found[name] = found["boottime"] + min(tries)[1]
    return found


def devices() -> dict[str, dict[str, Any]]:
    """Block devices by `major:minor`: name, model, what they stand on, and what decides their speed."""
    found = {}
    for link in sorted(Path("/sys/dev/block").glob("*:*")):
        device = link.resolve()
        queue = device / "queue" if (device / "queue").is_dir() else device.parent / "queue"
        found[link.name] = {
            "name": device.name,
            "size_sectors": _number(device / "size"),
            "model": _text(device / "device" / "model"),
            "on": sorted(path.name for path in device.glob("slaves/*")),
            "rotational": _number(queue / "rotational"),
            "write_cache": _text(queue / "write_cache"),
            "fua": _number(queue / "fua"),
            "scheduler": _text(queue / "scheduler"),
            "nr_requests": _number(queue / "nr_requests"),
            "wbt_lat_usec": _number(queue / "wbt_lat_usec"),
        }
    return found


def mounts() -> str:
    """/proc/self/mountinfo: which file system with which options is where."""
    return _text("/proc/self/mountinfo") + "\n"


def _text(path: str | Path) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class Mapped:
    """A part of a file in a process's memory; `offset` is that of its start in the file."""

    start: int
    end: int
    offset: int
    file: str


# A program that has just been started still maps its libraries.
_LOOKS_WHILE_YOUNG = 8


class Maps:
    """Memory maps of a process and its children: with them an address of one that has died can be named."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, str]] = {}
        self._comms: dict[int, set[str]] = {}
        self._young: dict[int, int] = {}

    def look(self, family: list[int], again: bool = True) -> None:
        """Remembers what is mapped now, and what the threads are called; else only of young programs."""
        for pid in family:
            with contextlib.suppress(OSError):
                program = str(Path(f"/proc/{pid}/exe").readlink())
                if self._seen.get(pid, ("", ""))[0] != program:
                    self._young[pid] = _LOOKS_WHILE_YOUNG
                    self._comms.pop(pid, None)
                young = self._young.get(pid, 0)
                if not again and not young:
                    continue
                self._young[pid] = max(0, young - 1)
                maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
                code = [line for line in maps.splitlines() if "r-xp" in line and "/" in line]
                self._seen[pid] = (program, "\n".join(code))
                comms = self._comms.setdefault(pid, set())
                for task in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        comms.add((task / "comm").read_text(errors="replace").rstrip("\n"))

    def had(self, pid: int, comm: str) -> bool:
        """Whether a thread of the process was called so under the program whose maps are known."""
        return comm in self._comms.get(pid, ())

    def find(self, pid: int, address: int) -> Mapped | None:
        """What was mapped there, if the file is still the same."""
        for line in self._seen.get(pid, ("", ""))[1].splitlines():
            span, _, offset, _, inode, name = line.split(None, 5)
            start, end = (int(bound, 16) for bound in span.split("-"))
            if start <= address < end:
                with contextlib.suppress(OSError):
                    if Path(name).stat().st_ino == int(inode):
                        return Mapped(start, end, int(offset, 16), name)
                return None
        return None

    def write(self, folder: Path) -> None:
        """One file a process: its program on the first line, then its code as /proc/PID/maps has it."""
        if self._seen:
            folder.mkdir(exist_ok=True)
        for pid, (program, code) in self._seen.items():
            (folder / f"{pid}.maps").write_text(f"# {program}\n{code}\n")


class Tasks:
    """Which process each thread is of, and what the processes are called: an event has a thread's number alone."""

    def __init__(self) -> None:
        self._threads: set[tuple[int, int]] = set()
        self._names: dict[int, str] = {}

    def look(self, family: list[int], again: bool = True) -> None:
        """Remembers the threads of the processes; else only of new ones."""
        for pid in family:
            if not again and (pid, pid) in self._threads:
                continue
            with contextlib.suppress(OSError):
                tids = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
                self._threads.update((tid, pid) for tid in tids)
            self._name(pid)

    def look_at_saved(self, tracefs: Path) -> None:
        """Remembers what the kernel has noted of all threads that ran, once `record-tgid` is set."""
        with contextlib.suppress(OSError):
            pairs = [line.split() for line in (tracefs / "saved_tgids").read_text().splitlines()]
            found = {(int(tid), int(pid)) for tid, pid in pairs}
            for pid in {pid for _, pid in found - self._threads}:
                self._name(pid)
            self._threads |= found

    def _name(self, pid: int) -> None:
        comm = _text(f"/proc/{pid}/comm")
        if comm:
            self._names[pid] = comm

    def processes(self) -> dict[int, int]:
        """Of each thread; without those whose number was used by several."""
        found: dict[int, int] = {}
        twice = set()
        for tid, pid in self._threads:
            if found.setdefault(tid, pid) != pid:
                twice.add(tid)
        return {tid: pid for tid, pid in found.items() if tid not in twice}

    def write(self, file: Path, comms: dict[int, str]) -> None:
        """`comms` are names of threads; the first thread of a process has its name."""
        # The kernel's is newer: of a program that was only just started.
        names = self._names | {pid: comms[pid] for _, pid in self._threads if pid in comms}
        told = {
            "threads": sorted(self._threads),
            "processes": {str(pid): name for pid, name in sorted(names.items())},
        }
        file.write_text(json.dumps(told, separators=(",", ":")) + "\n")


def processes() -> list[int]:
    """All that there are."""
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def family(root: int) -> list[int]:
    """A process and all below it."""
    try:
        Path(f"/proc/{root}/task/{root}/children").read_bytes()
    except FileNotFoundError:
        # A kernel without CONFIG_PROC_CHILDREN, or it is gone.
        return _descendants(root)
    except OSError:
        pass
    found, at = [root], 0
    while at < len(found):
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{found[at]}/task").iterdir():
                with contextlib.suppress(OSError):
                    found.extend(int(child) for child in (task / "children").read_text().split())
        at += 1
    return found


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(folder.name))
    found, at = [root], 0
    while at < len(found):
        found.extend(children.get(found[at], []))
        at += 1
    return found
