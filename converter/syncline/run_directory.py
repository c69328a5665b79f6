"""A run directory as recorder and readers both know it: the names of its files, and the filter in its manifest.

It needs nothing but Python 3.9, because a recorder also runs where Syncline is not installed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = [
    "DEVICES",
    "FILES",
    "LEFT",
    "LIMITS",
    "MANIFEST",
    "SYMBOLS",
    "TASKS",
    "WRITERS",
    "Filter",
    "is_in_cgroup",
]

# The file that marks a run directory.
MANIFEST = "manifest.json"
# The file that a recording writes first: block devices by `major:minor`.
DEVICES = "devices.json"
# Threads with their processes, and the names of the processes.
TASKS = "tasks.json"
# Names for addresses in stacks that the tracer could not resolve.
SYMBOLS = "symbols.json"
# Limits of control groups on I/O and CPU, by the path of the group.
LIMITS = "limits.json"
# How to read the pages that a killed recorder has left.
LEFT = ".recorder.json"
# Paths of files by device, inode and generation, one JSON object a line.
FILES = "files.jsonl"
# Threads that made files dirty, by device and inode, one JSON object a line.
WRITERS = "writers.jsonl"


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
    # A control group with the groups below it, or a part of their names.
    cgroup: str | None = None
    # The begin and the end of a time, since the first event.
    since_ns: int | None = None
    until_ns: int | None = None

    def over(self, other: Filter) -> Filter:
        """Returns this filter, with the conditions of `other` where this one has none."""
        conditions = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **conditions)

    def for_core(self, cgroups: dict[int, str] | None = None) -> dict[str, Any] | None:
        """Returns the argument `filter` of `_core.convert`. `cgroups` are the control groups of processes."""
        if self == Filter():
            return None
        cgroup = None
        if self.cgroup is not None:
            known = (cgroups or {}).items()
            cgroup = (self.cgroup, {pid: is_in_cgroup(name, self.cgroup) for pid, name in known})
        return asdict(self) | {"cgroup": cgroup}


def is_in_cgroup(name: str, wanted: str) -> bool:
    """Returns whether a control group is the wanted one or below it.

    Args:
        name: the path of the group, as in /proc/PID/cgroup.
        wanted: a path, or a part of a name on it, such as the start of a container's id.
    """
    if wanted.startswith("/"):
        return name == wanted or name.startswith(wanted.rstrip("/") + "/")
    return any(wanted in part for part in name.split("/"))
