"""When threads that sync get a CPU, and which locks they wait for: events of these threads, in a buffer of their own."""

from __future__ import annotations

import contextlib

from syncline.record.errors import RecordError
from syncline.record.ring_buffer import RingBuffer

_BUFFER = "threads"
# The share of the memory that the buffer gets.
_SHARE = 4


class ThreadStates:
    """Records these events of the threads that `follow` names, and of no other thread."""

    def __init__(self, ring: RingBuffer, events: tuple[str, ...], buffer_kb: int) -> None:
        """Adds the buffer to the ring buffer, which has `buffer_kb` for each CPU.

        Raises:
            RecordError: the kernel does not let it.
        """
        buffer = ring.add(_BUFFER, max(buffer_kb // _SHARE, 64))
        self._instance = buffer.instance
        self._followed: set[int] = set()
        # The children of a thread are recorded too.
        self._instance.write("options/event-fork", "1")
        self._instance.set_threads(set())
        buffer.enable(list(events))

    def follow(self, tids: set[int]) -> None:
        """Records these threads from now on, and the children that they will have."""
        if new := tids - self._followed:
            self._followed |= new
            with contextlib.suppress(RecordError):
                self._instance.set_threads(new)
