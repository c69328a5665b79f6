"""When threads that sync get a CPU, and which locks they wait for: events of these threads, in a buffer of their own.

A thread that syncs is known a moment after its first sync. So its parent is followed too, whose next children the kernel then follows from
their first instruction on: a server that begins a process for each connection, a shell that runs one program after another.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.ring_buffer import RingBuffer

_BUFFER = "threads"
# The share of the memory that the buffer gets.
_SHARE = 4
# New threads, also workers of io_uring, which the kernel follows with nobody.
_NEW_THREAD = "task/task_newtask"
_SIZE = 1 << 13
_BY_PARENT = f"hist:keys=common_pid,pid:size={_SIZE}"
_CHILD = re.compile(r"^\{ common_pid: *(\d+), pid: *(\d+) *\} hitcount:", re.MULTILINE)
# init and kthreadd: everybody is their child at last.
_LAST_ANCESTOR = 2


class ThreadStates:
    """Records these events of the threads that `follow` names, of their relatives, and of no other thread."""

    def __init__(self, ring: RingBuffer, events: tuple[str, ...], buffer_kb: int) -> None:
        """Adds the buffer to the ring buffer, which has `buffer_kb` for each CPU.

        Raises:
            RecordError: the kernel does not let it.
        """
        buffer = ring.add(_BUFFER, max(buffer_kb // _SHARE, 64))
        self._instance = buffer.instance
        self._followed: set[int] = set()
        # The parent of each thread that has begun since.
        self._parents: dict[int, int] = {}
        # The children of a thread are recorded too.
        self._instance.write("options/event-fork", "1")
        self._instance.set_threads(set())
        buffer.enable(list(events))
        # Triggers in an instance that is limited to threads see only these.
        self._counts = ring.instance
        with contextlib.suppress(RecordError):
            self._counts.trigger(_NEW_THREAD, _BY_PARENT)

    def follow(self, tids: set[int]) -> None:
        """Records these threads from now on, those that their parents have begun since, and the children that either will have."""
        if not (new := tids - self._followed):
            return
        self._look_at_children()
        parents = {parent for tid in new if (parent := self._parent_of(tid)) is not None}
        families = parents | tids
        new |= parents | {child for child, parent in self._parents.items() if parent in families}
        new -= self._followed
        self._followed |= new
        with contextlib.suppress(RecordError):
            self._instance.set_threads(new)

    def _look_at_children(self) -> None:
        found = _CHILD.findall(self._counts.histogram(_NEW_THREAD))
        self._parents.update((int(child), int(parent)) for parent, child in found)
        if len(found) > _SIZE // 2:
            with contextlib.suppress(RecordError):
                self._counts.trigger(_NEW_THREAD, f"{_BY_PARENT}:clear")

    def _parent_of(self, tid: int) -> int | None:
        """The thread that began a thread, or the parent of its process; None if it is not known, or not worth following."""
        parent = self._parents.get(tid)
        if parent is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name of the thread, in parentheses, may hold any character.
                after_name = (
                    Path(f"/proc/{tid}/stat").read_text(errors="replace").rpartition(")")[2]
                )
                parent = int(after_name.split()[1])
        is_own = parent == os.getpid()
        return None if parent is None or parent <= _LAST_ANCESTOR or is_own else parent
