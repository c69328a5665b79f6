"""Writes of a log of strace: finds the place of each write from the calls before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.errors import InputError

from .writes import Cut, Write, Writes

__all__ = ["from_calls"]

_OPENS = ("open", "openat", "openat2", "creat")
_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
_SYNCS = ("fsync", "fdatasync")
# Of all files.
_SYNCS_OF_ALL = ("sync", "syncfs")
_DELETES = ("unlink", "unlinkat")
# Their writes are in memory, which strace does not print.
_SUBMITS = ("io_submit", "io_uring_enter")
# The descriptor of a folder, its path if strace prints it (-y), and a name.
_NAME = re.compile(r'^(?:(AT_FDCWD|\d+)(?:<(.*?)>)?, )?"((?:[^"\\]|\\.)*)"')
_CLONES = ("clone", "clone3", "fork", "vfork")
# Sockets, pipes and character devices, as strace -yy prints them.
_NO_FILE = re.compile(r"\d+<(?:pipe|socket|anon_inode|TCP|UDP|UNIX|NETLINK)|\d+<[^>]*<char ")
_DURABLE = ("O_SYNC", "O_DSYNC")
_WITHOUT_RETURN = "calls whose return is not in the log"


@dataclass
class _Open:
    path: str
    flags: frozenset[str]
    position: int = 0


class _Reader:
    """Follows the descriptors of each process."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.cuts: list[Cut] = []
        self.has_deletions = False
        self.unused: Counter[str] = Counter()
        # Deleted files that are still open: they stay dirty until they are closed.
        self._deleted: set[str] = set()
        self._files: dict[tuple[int, int], _Open] = {}
        # The end of each file, as far as it was written here.
        self._ends: dict[str, int] = {}

    def read(self, row: Mapping[str, Any]) -> None:
        match row["part"]:
            case "entry":
                self.unused[_WITHOUT_RETURN] += 1
            case "return":
                self.unused["returns of calls whose start is not in the log"] += 1
            case _:
                self.unused[_WITHOUT_RETURN] -= row["has_entry"]
                self._complete(row["event"], row)

    def _complete(self, event: str, row: Mapping[str, Any]) -> None:
        process, args, result = row["pid"] or row["tid"], row["args"] or "", row["ret"]
        if result is None or result < 0:
            if event in (*_WRITES, *_SYNCS):
                self.unused["calls that failed"] += 1
            return
        found = re.match(r"(\d+)", args)
        number = int(found[1]) if found else -1
        if event in _OPENS:
            flags = frozenset(re.findall(r"O_[A-Z]+", args.rpartition('"')[2]))
            path = row["path"] or ""
            if path in self._deleted:
                self._deleted.discard(path)
                self.unused["deletions of an open file whose name was used again"] += 1
            if "O_TRUNC" in flags or event == "creat":
                self._cut(row, path, 0)
            self._files[process, result] = _Open(path, flags)
        elif event in _CLONES:
            for (owner, each), file in list(self._files.items()):
                if owner == process:
                    self._files.setdefault((result, each), file)
        elif event == "close":
            file = self._files.pop((process, number), None)
            if file is not None and file.path in self._deleted and not self._is_open(file.path):
                self._deleted.discard(file.path)
                self._cut(row, file.path, 0)
        elif event in ("dup", "dup2", "dup3") or (event == "fcntl" and "F_DUPFD" in args):
            if (file := self._files.get((process, number))) is not None:
                self._files[process, result] = file
        elif event == "lseek":
            if (file := self._files.get((process, number))) is not None:
                file.position = result
        elif event in _SUBMITS:
            self.unused["asynchronous submissions (io_submit, io_uring), which may be writes"] += 1
        elif event in ("ftruncate", "truncate", *_DELETES):
            self.has_deletions = True
            self._use_deletion(event, row, args, self._files.get((process, number)))
        elif event in _SYNCS_OF_ALL:
            if row["dur_ns"] is None:
                self.unused["calls without a duration (strace -T)"] += 1
            else:
                self.writes.append(Write(row["start_ns"], row["dur_ns"], "sync", "", 0, 0))
        elif event in (*_WRITES, *_SYNCS):
            self._use(event, row, args, self._files.get((process, number)))

    def _is_open(self, path: str) -> bool:
        return any(file.path == path for file in self._files.values())

    def _use_deletion(
        self, event: str, row: Mapping[str, Any], args: str, file: _Open | None
    ) -> None:
        opened = file.path if file is not None else None
        path = opened if event == "ftruncate" else _path(args)
        size = 0 if event in _DELETES else _size(args)
        if not path or size is None:
            self.unused["deletions and truncations whose file or size is not known"] += 1
        elif event in _DELETES and self._is_open(path):
            self._deleted.add(path)
        else:
            self._cut(row, path, size)

    def _cut(self, row: Mapping[str, Any], path: str, size: int) -> None:
        self._ends[path] = size
        self.cuts.append(Cut(row["start_ns"], path, size))

    def _use(self, event: str, row: Mapping[str, Any], args: str, file: _Open | None) -> None:
        if file is None or not file.path or file.path.startswith(("/dev/", "/proc/", "/sys/")):
            is_no_file = file is not None or _NO_FILE.match(args)
            reason = "calls on something else than a file" if is_no_file else "calls on a file that was opened before the log begins"  # fmt: skip
            self.unused[reason] += 1
            return
        if row["dur_ns"] is None:
            self.unused["calls without a duration (strace -T)"] += 1
            return
        size, offset = 0, 0
        if event in _SYNCS:
            kind = "sync"
        else:
            size = row["ret"]
            offset = self._place(event, args, file)
            if offset < 0:
                self.unused["calls whose place is not printed"] += 1
                return
            is_durable = any(flag in file.flags for flag in _DURABLE) or "RWF_DSYNC" in args or "RWF_SYNC" in args  # fmt: skip
            kind = "direct" if "O_DIRECT" in file.flags else "synchronized" if is_durable else "cached"  # fmt: skip
            self._ends[file.path] = max(self._ends.get(file.path, 0), offset + size)
            if event in ("write", "writev"):
                file.position = offset + size
        self.writes.append(Write(row["start_ns"], row["dur_ns"], kind, file.path, offset, size))

    def _place(self, event: str, args: str, file: _Open) -> int:
        """Returns where a write begins; -1 if unknown."""
        if event in ("write", "writev"):
            if "O_APPEND" in file.flags:
                file.position = self._ends.get(file.path, 0)
            return file.position
        words = args.rsplit(", ", 2)
        text = words[-2] if event == "pwritev2" else words[-1]
        return int(text) if text.isdigit() else -1


def _path(args: str) -> str | None:
    """Returns the path that the arguments of a call begin with, as an open has it; None if its folder is not printed."""
    named = _NAME.match(args)
    if named is None:
        return None
    number, folder, name = named.groups()
    if name.startswith("/") or (folder is None and number in (None, "AT_FDCWD")):
        return name
    return None if folder is None else f"{folder.rstrip('/')}/{name}"


def _size(args: str) -> int | None:
    """Returns the last argument; None if it is not a number."""
    last = args.rsplit(", ", 1)[-1]
    return int(last) if last.isdecimal() else None


def from_calls(rows: Iterable[Mapping[str, Any]]) -> Writes:
    """Returns the writes of calls, which `sql/write_model/calls.sql` selects, in the order of the log.

    Raises:
        InputError: no write to a file is in the log.
    """
    reader = _Reader()
    for row in rows:
        reader.read(row)
    notes = [
        f"not used: {number:,} {reason}"
        for reason, number in reader.unused.most_common()
        if number > 0
    ]
    if not any(one.kind != "sync" for one in reader.writes):
        raise InputError(
            "no write to a file is in the recording" + (f": {'; '.join(notes)}" if notes else ""),
            "record with: syncline record --writes -o run -- COMMAND",
        )
    return Writes(
        sorted(reader.writes, key=lambda one: one.start_ns),
        notes,
        cuts=sorted(reader.cuts, key=lambda one: one.time_ns),
        has_deletions=reader.has_deletions,
    )
