"""Processes and threads during a recording: their names, memory maps and descendants."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from syncline.record.limits import Limits


@dataclass(frozen=True)
class Mapped:
    """A file that is mapped into a process. `offset` is the file offset of `start`."""

    start: int
    end: int
    offset: int
    file: str


# Number of scans of a program after its start, while it maps its libraries.
_SCANS_WHILE_YOUNG = 8
# How many threads are remembered before those of ended processes are looked for.
_FORGET_FROM = 20_000


class Maps:
    """Memory maps of processes, by which addresses can be resolved after a process has exited."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, str]] = {}
        self._comms: dict[int, set[str]] = {}
        self._young: dict[int, int] = {}

    def scan(self, pids: list[int], again: bool = True) -> None:
        """Records memory maps and thread names. Without `again`, only of programs just started."""
        for pid in pids:
            with contextlib.suppress(OSError):
                program = str(Path(f"/proc/{pid}/exe").readlink())
                if self._seen.get(pid, ("", ""))[0] != program:
                    self._young[pid] = _SCANS_WHILE_YOUNG
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

    def has_comm(self, pid: int, comm: str) -> bool:
        """Returns whether a thread of the process had this name while it ran the recorded program."""
        return comm in self._comms.get(pid, ())

    def comms(self) -> set[str]:
        """Returns the names of all threads that were seen."""
        return set().union(*self._comms.values())

    def find(self, pid: int, address: int) -> Mapped | None:
        """Returns the file that was mapped at an address; None if it has been replaced since."""
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
        """Writes a file per process: the program, then its executable maps as in /proc/PID/maps."""
        if self._seen:
            folder.mkdir(exist_ok=True)
        for pid, (program, code) in self._seen.items():
            (folder / f"{pid}.maps").write_text(f"# {program}\n{code}\n")


class Tasks:
    """The process of each thread, and the names of processes. An event records only a thread id."""

    def __init__(self) -> None:
        self._threads: set[tuple[int, int]] = set()
        self._names: dict[int, str] = {}
        self._cgroups: dict[int, str] = {}
        self.limits = Limits()

    def scan(self, pids: list[int], again: bool = True) -> None:
        """Records the threads of processes. Without `again`, only of new processes."""
        for pid in pids:
            if not again and (pid, pid) in self._threads:
                continue
            with contextlib.suppress(OSError):
                tids = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
                self._threads.update((tid, pid) for tid in tids)
            self._name(pid)

    def forget_ended(self) -> None:
        """Forgets threads of processes that have ended, if there are many, so that memory does not grow for days."""
        if len(self._threads) > _FORGET_FROM:
            running = set(all_processes())
            self._threads = {(tid, pid) for tid, pid in {*self._threads} if pid in running}
            self._names = {pid: name for pid, name in self._names.items() if pid in running}
            self._cgroups = {pid: group for pid, group in self._cgroups.items() if pid in running}

    def scan_threads(self, tids: Iterable[int]) -> None:
        """Records the processes of threads that still run."""
        for tid in tids:
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{tid}/status").read_text(errors="replace")
                if found := re.search(r"^Tgid:\s*(\d+)$", status, re.MULTILINE):
                    pid = int(found[1])
                    self._threads.add((tid, pid))
                    self._name(pid)

    def scan_saved_tgids(self, tracefs: Path) -> None:
        """Records the threads that the kernel has saved with the option `record-tgid`."""
        with contextlib.suppress(OSError):
            pairs = [line.split() for line in (tracefs / "saved_tgids").read_text().splitlines()]
            found = {(int(tid), int(pid)) for tid, pid in pairs}
            for pid in {pid for _, pid in found - self._threads} & {*all_processes()}:
                self._name(pid)
            self._threads |= found

    def _name(self, pid: int) -> None:
        comm = _comm(pid)
        if comm:
            self._names[pid] = comm
        group = cgroup(pid)
        if group:
            self._cgroups[pid] = group
            self.limits.see(group)

    def processes(self) -> dict[int, int]:
        """Returns the process of each thread, without thread ids that several processes have used."""
        found: dict[int, int] = {}
        ambiguous = set()
        for tid, pid in {*self._threads}:
            if found.setdefault(tid, pid) != pid:
                ambiguous.add(tid)
        return {tid: pid for tid, pid in found.items() if tid not in ambiguous}

    def write(self, file: Path, comms: dict[int, str]) -> None:
        """Writes threads and processes. `comms` are thread names, by thread id."""
        # The first thread of a process has its name. The kernel's record is newer than the scan.
        names = self._names | {pid: comms[pid] for _, pid in {*self._threads} if pid in comms}
        cgroups: dict[str, list[int]] = {}
        for pid, name in sorted(self._cgroups.items()):
            cgroups.setdefault(name, []).append(pid)
        tasks = {
            "threads": sorted({*self._threads}),
            "processes": {str(pid): name for pid, name in sorted(names.items())},
            "cgroups": cgroups,
        }
        file.write_text(json.dumps(tasks, separators=(",", ":")) + "\n")


def all_processes() -> list[int]:
    """Returns the ids of all processes."""
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def cgroup(pid: int) -> str:
    """Returns the path of a process's control group; empty if it has exited.

    Of several hierarchies, that of version 2 counts, else that of the service manager, else the first one.
    """
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/cgroup").read_text(errors="replace").splitlines()
        paths = {kind: path for _, kind, path in (line.split(":", 2) for line in lines)}
        # With both versions, that of version 2 may hold nothing but the root.
        best = [paths.get("", "/"), paths.get("name=systemd", "/"), *paths.values(), "/"]
        return next((path for path in best if path != "/"), "/")
    return ""


def family(root: int) -> list[int]:
    """Returns a process and all its descendants."""
    try:
        Path(f"/proc/{root}/task/{root}/children").read_bytes()
    except FileNotFoundError:
        # The kernel lacks CONFIG_PROC_CHILDREN, or the process has exited.
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


def _comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return ""
