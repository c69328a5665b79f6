"""The flusher thread of the kernel: what it writes back, and when.

It writes what is dirty above the background limit. Below that, it looks for expired files at times, and writes all of them.
"""

from __future__ import annotations

from collections import deque

from .dirty_cache import Block, DirtyCache
from .parameters import Parameters

__all__ = ["Flusher"]

_SECOND_NS = 1e9
# vm.dirty_writeback_centisecs of a kernel whose settings nobody has changed.
_PERIOD_NS = 5 * _SECOND_NS
# A timer of the kernel is late by a tick, or less. So data that expires at the time of a look is written by it.
_TICK_NS = 1e6


class Flusher:
    """Writes back to one device."""

    def __init__(self, cache: DirtyCache, parameters: Parameters) -> None:
        self._cache = cache
        self._background_bytes = parameters.background_limit_bytes
        self._expire_ns = parameters.dirty_expire_ns
        self._per_ns = parameters.device_write_bytes_per_s / _SECOND_NS
        period_ns = parameters.dirty_writeback_ns
        self._period_ns = _PERIOD_NS if period_ns is None else period_ns
        # When it looks for expired files. None while nothing is dirty.
        self._look_ns: float | None = None
        # What it has found and not written back yet.
        self._expired: deque[Block] = deque()

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
            elif (look_ns := self._look(oldest_ns)) is not None and look_ns <= end_ns:
                now_ns = max(now_ns, look_ns)
                self._expired.extend(self._cache.expired(now_ns - self._expire_ns + _TICK_NS))
                self._look_ns = now_ns + self._period_ns
                continue
            else:
                break
            if cleaned <= 0:
                break
            written += cleaned
            now_ns += cleaned / self._per_ns
        if self._cache.oldest_ns() is None:
            self._look_ns = None
        return written

    def _look(self, oldest_ns: float) -> float | None:
        """Returns when it looks next: first a period after something became dirty. None: never."""
        if not self._period_ns:
            return None
        if self._look_ns is None:
            self._look_ns = oldest_ns + self._period_ns
        return self._look_ns

    def _next(self) -> Block | None:
        while self._expired and not self._expired[0].is_live:
            self._expired.popleft()
        return self._expired[0] if self._expired else None
