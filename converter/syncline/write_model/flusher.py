"""The flusher thread of the kernel: what it writes back, and when.

It writes what is dirty above the background limit. Below that, it looks for expired files at times, and writes all of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from .dirty_cache import Block, DirtyCache
from .parameters import Parameters

__all__ = ["Flusher"]

_SECOND_NS = 1e9
# vm.dirty_writeback_centisecs of a kernel whose settings nobody has changed.
_PERIOD_NS = 5 * _SECOND_NS
# A timer of the kernel is late by a tick, or less. So data that expires at the time of a look is written by it.
_TICK_NS = 1e6


@dataclass(slots=True)
class _Expired:
    """A file to write back: what was dirty at the time of the look, from `place` on."""

    file: Hashable
    look_ns: float
    place: float = -math.inf
    block: Block | None = None


class Flusher:
    """Writes back to one device."""

    def __init__(self, cache: DirtyCache, parameters: Parameters) -> None:
        self._cache = cache
        self._background_bytes = parameters.background_limit_bytes
        self._expire_ns = parameters.dirty_expire_ns
        self._per_ns = parameters.device_write_bytes_per_s / _SECOND_NS
        period_ns = parameters.dirty_writeback_ns
        self._period_ns = _PERIOD_NS if period_ns is None else period_ns
        # When its timer ends next, if anything is dirty.
        self._timer_ns = -math.inf
        # What it has found and not written back yet.
        self._expired: deque[_Expired] = deque()

    @property
    def is_busy(self) -> bool:
        """Returns whether it writes back now."""
        return self._cache.dirty_bytes >= self._background_bytes or self._next() is not None

    def run(self, start_ns: float, end_ns: float) -> float:
        """Writes back from a time to another one. Returns how many bytes."""
        now_ns, written = start_ns, 0.0
        while now_ns < end_ns and (oldest_ns := self._cache.oldest_ns()) is not None:
            most_bytes = (end_ns - now_ns) * self._per_ns
            if self._cache.dirty_bytes >= self._background_bytes:
                cleaned = self._cache.clean(most_bytes, is_by_age=True)
            elif (block := self._next()) is not None:
                cleaned = self._cache.clean_block(block, most_bytes)
            else:
                look_ns = max(now_ns, self._look(oldest_ns))
                if look_ns > end_ns or not self._find(look_ns):
                    break
                now_ns = look_ns
                continue
            if cleaned <= 0:
                break
            written += cleaned
            now_ns += cleaned / self._per_ns
            if self._cache.oldest_ns() is None:
                # It sets its timer only if it leaves something dirty.
                self._timer_ns = -math.inf
        return written

    def _look(self, oldest_ns: float) -> float:
        """Returns when it next finds an expired file."""
        if not self._period_ns:
            return math.inf
        if self._timer_ns < oldest_ns:
            # It ended when nothing was dirty. The next one begins when something is.
            self._timer_ns = oldest_ns + self._period_ns
        due_ns = oldest_ns + self._expire_ns - _TICK_NS
        # The looks before find nothing.
        idle = max(0, math.ceil((due_ns - self._timer_ns) / self._period_ns))
        return self._timer_ns + idle * self._period_ns

    def _find(self, look_ns: float) -> bool:
        """Looks for expired files. Returns whether there is one."""
        files = self._cache.expired(look_ns - self._expire_ns + _TICK_NS)
        self._expired.extend(_Expired(file, look_ns) for file in files)
        self._timer_ns = look_ns + self._period_ns
        return bool(files)

    def _next(self) -> Block | None:
        """Returns the next block of what it has found, in the order of the places in a file."""
        while self._expired:
            one = self._expired[0]
            if one.block is None or not one.block.is_live:
                # A write has replaced it, or it is clean.
                one.block = self._cache.next_block(one.file, one.place, one.look_ns)
            if one.block is not None:
                one.place = one.block.offset
                return one.block
            self._expired.popleft()
        return None
