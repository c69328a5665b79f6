"""Mounts by device, and the part of a path that a mount adds."""

from __future__ import annotations

import contextlib
import os
import re
import select
from dataclasses import dataclass
from pathlib import Path

_MOUNTINFO = "/proc/self/mountinfo"
# File systems that keep nothing on a device, and so have nothing to sync.
_WITHOUT_SYNC = {
    "autofs", "bpf", "binfmt_misc", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "erofs", "fusectl", "hugetlbfs", "iso9660", "mqueue", "nsfs", "proc", "pstore", "ramfs",
    "rpc_pipefs", "securityfs", "selinuxfs", "squashfs", "sysfs", "tmpfs", "tracefs",
}  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """One line of /proc/PID/mountinfo."""

    # As in the kernel: major << 20 | minor.
    dev: int
    # The folder of the file system that is mounted, and where.
    root: str
    point: str
    kind: str
    options: str

    @property
    def subvolume(self) -> int | None:
        """The id of the btrfs subvolume that is mounted."""
        found = re.search(r"\bsubvolid=(\d+)", self.options)
        return int(found[1]) if found else None

    @property
    def upper(self) -> str | None:
        """The folder to which an overlay writes, as whoever mounted it sees it."""
        # The kernel escapes a comma in a path as it does a space.
        found = re.search(r"(?:^|,)upperdir=([^,]*)", self.options)
        return _plain(found[1]) if found and self.kind == "overlay" else None


def parse(mountinfo: str) -> list[Mount]:
    """Returns the mounts of a mountinfo text. Lines that are damaged are left out."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        columns, rest = before.split(" "), after.split(" ")
        if len(columns) < 6 or len(rest) < 3 or not re.fullmatch(r"\d+:\d+", columns[2]):
            continue
        major, minor = map(int, columns[2].split(":"))
        found.append(
            Mount(major << 20 | minor, _plain(columns[3]), _plain(columns[4]), rest[0], rest[2])
        )
    return found


def own() -> list[Mount]:
    """Returns the mounts that this process sees."""
    with contextlib.suppress(OSError):
        return parse(Path(_MOUNTINFO).read_text(errors="surrogateescape"))
    return []


def _plain(text: str) -> str:
    """Returns a path without the escapes of mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def within(path: str, root: str) -> str | None:
    """Returns the rest of a path below `root`, with its first slash; None if it is not below it."""
    if root == "/":
        return path
    return path[len(root) :] if path == root or path.startswith(f"{root}/") else None


def place(mounts: list[Mount], dev: int, path: str) -> str | None:
    """Returns where a path of a file system is mounted; None if it is not."""
    for mount in sorted(mounts, key=lambda mount: -len(mount.root)):
        if mount.dev == dev and (rest := within(path, mount.root)) is not None:
            return (mount.point.rstrip("/") + rest) or "/"
    return None


def place_in_overlay(mounts: list[Mount], path: str) -> str | None:
    """Returns where an overlay shows a path that is below the folder to which it writes; None without one."""
    for mount in mounts:
        rest = within(path, mount.upper) if mount.upper else None
        if rest and (found := place(mounts, mount.dev, rest)) is not None:
            return found
    return None


class MountWatch:
    """The types of mounted file systems, and whether something was mounted since they were last read."""

    def __init__(self) -> None:
        self._file = os.open(_MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLPRI)

    def types(self) -> set[str]:
        """Returns the types of mounted file systems that sync files."""
        with contextlib.suppress(OSError):
            return types(Path(_MOUNTINFO).read_text(errors="replace"))
        return set()

    def changed(self) -> bool:
        """Returns whether mounts have changed since the last call."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def types(mountinfo: str) -> set[str]:
    """Returns the types of file systems that sync files, by a mountinfo text."""
    found = set()
    for mount in parse(mountinfo):
        kind = mount.kind
        if kind.startswith("fuse") and kind != "fusectl":
            kind = "fuse"
        if kind not in _WITHOUT_SYNC:
            found.add(kind)
    return found
