"""Which operations on files the kernel keeps: of a process, of threads with a name, of files below a path.

The conversion applies the filter too, so the kernel may keep more than is wanted, and never less. The return of a function has no path, so
`--path` leaves out only the begins, by the name of the last folder in it: a path in an event begins at the root of its file system.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.mounts import Mount
from syncline.record.ring_buffer import Buffer, RingBuffer
from syncline.run_directory import Filter

_BUFFER = "files"
# The share of the memory that the buffer of one process gets.
_SHARE = 4
# Rounds in which a process may have begun threads while its threads were listed.
_MOST_ROUNDS = 100
_LEVEL = re.compile(r"([nt])\d+")
# What a filter of the kernel cannot say in a text between quotation marks, or says of any text.
_SPECIAL = re.compile(r'["\\*?\[\]\x00-\x1f]')


def buffer_of_process(ring: RingBuffer, pid: int, buffer_kb: int) -> Buffer | None:
    """Returns a buffer for the events of one process and of what it starts; None if the kernel cannot limit one so.

    The kernel drops the events of all others before it looks at their fields.
    """
    buffer = ring.add(_BUFFER, max(buffer_kb // _SHARE, 64))
    try:
        # Before the threads are listed, so that the kernel follows also those which they begin meanwhile.
        buffer.instance.write("options/event-fork", "1")
        followed: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            new = _threads(pid) - followed
            if not new and followed:
                return buffer
            buffer.instance.set_threads(new)
            followed |= new
    except RecordError:
        pass
    ring.remove(buffer)
    return None


def _threads(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return set()


def narrowed(condition: str, wanted: Filter, fields: Iterable[str], mounts: Sequence[Mount]) -> str:
    """Returns a condition on an event, with what else the filter says of it.

    Args:
        condition: that of the probe; empty without one.
        wanted: the filter.
        fields: the fields of the event.
        mounts: what is mounted.
    """
    parts = (condition, _of_thread(wanted.comm), _of_path(wanted.path, fields, mounts))
    given = [part for part in parts if part]
    return " && ".join(f"({part})" for part in given) if len(given) > 1 else "".join(given)


def has_mount_below(mounts: Iterable[Mount], path: str) -> bool:
    """Returns whether files below a path may lack the last name of it in their file system, because one is mounted there or below."""
    return any(f"{mount.point}/".startswith(path) for mount in mounts)


def _of_thread(comm: str | None) -> str:
    return f'COMM == "{comm}"' if comm and not _SPECIAL.search(comm) else ""


def _of_path(path: str | None, fields: Iterable[str], mounts: Sequence[Mount]) -> str:
    levels = [field for field in fields if _LEVEL.fullmatch(field)]
    if path is None or not levels or has_mount_below(mounts, path):
        return ""
    name = path.rstrip("/").rpartition("/")[2]
    if not name or _SPECIAL.search(name):
        return ""
    is_whole = path.endswith("/")
    parts = [f'{level} == "{name}"' if is_whole else f'{level} ~ "{name}*"' for level in levels]
    # A path that is longer than the names in the event may have the folder above them. At the root, a name is `/`.
    last = {level[0]: level for level in sorted(levels, key=lambda level: int(level[1:]))}
    return " || ".join(parts + [f'{level} != "/"' for level in last.values()])
