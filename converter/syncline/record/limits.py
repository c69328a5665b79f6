"""The limits of control groups: what holds back the bios and the threads of a group although devices and CPUs are free."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

# Absent where the controller is not enabled for a group.
_FILES = ("io.max", "io.latency", "io.weight", "cpu.max", "cpu.weight")
_DEFAULTS = {"io.weight": "default 100", "cpu.max": "max 100000", "cpu.weight": "100"}


class Limits:
    """Reads the limits of the groups of recorded processes, and of the groups above them, when each is first seen and at the end."""

    def __init__(self, root: Path | None = None) -> None:
        """Reads below `root`, or below the first mount of control groups of version 2."""
        self._root = root if root is not None else _mount()
        self._begin: dict[str, dict[str, str]] = {}

    def see(self, group: str) -> None:
        """Reads the limits of a group and of those above it, unless they were read before."""
        if self._root is None or group in self._begin or not group.startswith("/"):
            return
        # The root of the hierarchy has no limits. Above the root of a namespace nothing can be read.
        found = self._read(group)
        if found is None:
            return
        self._begin[group] = found
        self.see(group.rpartition("/")[0] or "/")

    def write(self, file: Path) -> None:
        """Writes what was found, with the limits at the end; null for a group that is gone. Without any group, nothing."""
        found = {
            group: {"begin": begin, "end": self._read(group)}
            for group, begin in sorted(self._begin.items())
        }
        if found:
            file.write_text(json.dumps(found, indent=1) + "\n")

    def _read(self, group: str) -> dict[str, str] | None:
        """Returns what is not as the kernel sets it by itself; None if there is no such group."""
        folder = Path(f"{self._root}/{group}")
        if not folder.is_dir():
            return None
        found = {}
        for name in _FILES:
            with contextlib.suppress(OSError):
                text = (folder / name).read_text(errors="replace").strip()
                if text and text != _DEFAULTS.get(name):
                    found[name] = text
        return found


def _mount() -> Path | None:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            fields, _, source = line.partition(" - ")
            if source.startswith("cgroup2 "):
                return Path(fields.split(" ")[4])
    return None
