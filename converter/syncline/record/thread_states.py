"""When threads that sync get a CPU, and which locks they wait for: events of these threads, in a buffer of their own.

Events of all threads are recorded as long as the machine switches threads rarely, because only then nothing is missing of a thread that is
new: a thread that syncs is known a moment after its first sync, and the kernel follows nobody to a worker of io_uring. From the first moment
on in which it switches more often than that, only threads that sync are followed. Then their parents are too, whose next children the kernel
follows from their first instruction on: a server that begins a process for each connection, a shell that runs one program after another.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
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
# How many threads are remembered before those are looked for that have ended.
_FORGET_FROM = 10_000
# Switches a second up to which those of all threads are recorded, with about as many wake-ups: a megabyte a second.
_MOST_SWITCHES = 5_000
# How long switches are counted before the recording.
_COUNT_S = 0.05
_SWITCHES = re.compile(r"^ctxt (\d+)$", re.MULTILINE)
# init and kthreadd: everybody is their child at last.
_LAST_ANCESTOR = 2


class ThreadStates:
    """Records these events of all threads, or of those that `follow` names and of their relatives."""

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
        self.is_limited = False
        self._counted, self._counted_at = _switches(), time.monotonic()
        time.sleep(_COUNT_S)
        self.look()
        buffer.enable(list(events))
        # Triggers in an instance that is limited to threads see only these.
        self._counts = ring.instance
        with contextlib.suppress(RecordError):
            self._counts.trigger(_NEW_THREAD, _BY_PARENT)

    def look(self) -> None:
        """Follows only the threads that sync from now on, if the machine has switched threads often since the last look."""
        counted, now = _switches(), time.monotonic()
        since, self._counted = self._counted, counted
        passed_s, self._counted_at = now - self._counted_at, now
        is_rare = (
            counted is not None
            and since is not None
            and counted - since <= _MOST_SWITCHES * passed_s
        )
        if is_rare or self.is_limited:
            return
        self.is_limited = True
        with contextlib.suppress(RecordError):
            self._instance.set_threads(self._followed)

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
        if not self.is_limited:
            return
        with contextlib.suppress(RecordError):
            self._instance.set_threads(new)

    def forget_ended(self) -> None:
        """Forgets threads that have ended, so that memory does not grow for days. The kernel forgets them itself."""
        if len(self._followed) + len(self._parents) > _FORGET_FROM:
            self._followed = {tid for tid in self._followed if Path(f"/proc/{tid}").exists()}
            self._parents = {
                tid: parent for tid, parent in self._parents.items() if tid in self._followed
            }

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


def _switches() -> int | None:
    """How often the CPUs have switched threads since the machine began; None if it does not say."""
    with contextlib.suppress(OSError):
        if found := _SWITCHES.search(Path("/proc/stat").read_text()):
            return int(found[1])
    return None
