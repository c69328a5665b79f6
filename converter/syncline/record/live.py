"""A line that says, once a second while a recording is made, what happens: enough to see that it records what it should, and no analysis.

The kernel measures each sync call, in a small buffer of its own, so that the events of the recording are not read twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from syncline.record import tracefs
from syncline.record.errors import RecordError
from syncline.record.recorders import Recorders
from syncline.record.slow_syncs import Slow, SlowSyncs
from syncline.run_directory import Filter

Show = Callable[[str], None]
_EVERY_S = 1.0
# The calls of a second are read up to this size, some 3,000 of them. The others are only counted, so that the line stays cheap.
_MOST_BYTES = 1 << 18
# Histograms are looked after as rarely as this.
_FORGET_EVERY_S = 60.0
_MOST_OF = 0.9
_LOST = ("overrun", "commit overrun", "dropped events")


class Live:
    """Shows the line, from its creation to `close`."""

    def __init__(self, recorders: Recorders, folder: Path, wanted: Filter, show: Show) -> None:
        """Begins to measure. Without a ring buffer, or on a kernel that cannot measure, nothing is shown."""
        self._recorders, self._folder, self._show = recorders, folder, show
        self._syncs: SlowSyncs | None = None
        mounted = tracefs.find()
        if recorders.ring is not None and mounted is not None:
            with contextlib.suppress(RecordError):
                self._syncs = SlowSyncs(mounted, 0, Filter(wanted.pid, wanted.comm), "live")
                if not self._syncs.is_in_kernel:
                    self.close()
        self._at = time.monotonic()
        self._forget_at = self._at + _FORGET_EVERY_S
        self._seen = 0

    def look_if_due(self) -> None:
        """Shows the line of the last second, if it is over."""
        now = time.monotonic()
        if self._syncs is None or now - self._at < _EVERY_S:
            return
        passed_s, self._at = now - self._at, now
        try:
            seen = self._syncs.seen()
            found = self._syncs.read(_MOST_BYTES)
            if now >= self._forget_at:
                self._forget_at = now + _FORGET_EVERY_S
                self._syncs.forget_ended()
            text = line(found, seen - self._seen, passed_s, self._file_of)
            self._seen = seen
            self._show(f"{text}; {self._recording()}")
        except (OSError, RecordError):
            # The recording itself says what is wrong.
            self.close()

    def _file_of(self, tid: int) -> str | None:
        dynamic = self._recorders.dynamic
        return dynamic.only_file_of(tid) if dynamic is not None else None

    def _recording(self) -> str:
        """Returns how much was recorded and lost, and how full the fullest buffer is."""
        ring = self._recorders.ring
        assert ring is not None
        size = sum(file.stat().st_size for buffer in ring.buffers for file in buffer.pages)
        lost, fill = 0, 0.0
        for buffer in ring.buffers:
            for numbers in buffer.instance.stats().values():
                lost += sum(numbers.get(key, 0) for key in _LOST)
                fill = max(fill, numbers.get("bytes", 0) / (buffer.buffer_kb * 1024))
        return f"{size / 1e6:.1f} MB, {lost:,} lost, buffer {fill:.0%}"

    def close(self) -> None:
        """Ends it, and removes the line. It may be called again."""
        if self._syncs is not None:
            self._syncs.close()
            self._syncs = None
            self._show("")


def line(
    found: Sequence[Slow], count: int, seconds: float, file_of: Callable[[int], str | None]
) -> str:
    """Words the syncs of some seconds: `count` of them ended, and `found` are those that were measured."""
    rate = count / seconds
    text = f"{rate:,.0f} syncs/s" if rate >= 10 or not count else f"{rate:.1f} syncs/s"
    if not found:
        return text
    durations = sorted(slow.dur_ns for slow in found)
    slowest = max(found, key=lambda slow: slow.dur_ns)
    # The least duration that so many of a hundred syncs do not exceed.
    p50, p99 = (durations[-(-len(durations) * share // 100) - 1] for share in (50, 99))
    # A few of those that were counted were measured a second earlier.
    of = f" of {len(found):,}" if len(found) < _MOST_OF * count else ""
    text += f", p50 {_ms(p50)}, p99 {_ms(p99)}{of}, slowest {_ms(slowest.dur_ns)} by {slowest.comm} ({slowest.tid})"
    file = file_of(slowest.tid)
    # A line has no room for a whole path.
    return f"{text} in {'/'.join(file.split('/')[-2:])}" if file else text


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3g} ms" if ns < 10**9 else f"{ns / 1e9:.3g} s"
