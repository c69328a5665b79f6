"""Dynamic queue depth adaptation: a low depth while a sync is expected.

The depth is lowered when a file is opened whose name says that it is synced often, and restored when no sync has
started for some seconds (figure 7 of the paper).
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from .base import Control

__all__ = ["PATTERNS", "Paper"]

# Files of databases and documents, as in section V of the paper.
PATTERNS = ("*.db", "*.db-journal", "*.db-wal", "*.doc")


class Paper:
    """A low depth from the opening of a file on, until no sync has started for a while."""

    def __init__(
        self,
        depth: int,
        low: int = 1,
        *,
        patterns: Sequence[str] = PATTERNS,
        hold_ns: int = 5_000_000_000,
        lead_ns: int = 100_000_000,
        is_one_of_several: bool = False,
    ) -> None:
        """Args:
        depth, low: the queue depth, and the lowered one.
        patterns: names of files whose opening lowers it.
        hold_ns: time without a sync after which it is restored.
        lead_ns: time from the opening of a file to its sync. Recordings have no openings.
        is_one_of_several: others differ in this time, so the name has it.
        """
        self.largest_depth = max(depth, low)
        self._depth = depth
        self._low = low
        self._patterns = tuple(patterns)
        self._hold_ns = hold_ns
        self.lead_ns = lead_ns
        self._has_lead_in_name = is_one_of_several
        self._last = 0
        self._is_low = False
        # Syncs of files of the patterns that have not ended.
        self._running = 0
        # These three add up over all replays.
        self._has_lowered = False
        self._restored = self._restored_during_sync = 0
        # Times of all replays: with the low depth, and from the start to the end of the last sync.
        self._low_ns = self._whole_ns = 0
        self._lowered_at = self._ended_at = 0

    @property
    def name(self) -> str:
        """Returns the name for people."""
        lead = f", lead {self.lead_ns / 1e9:g} s" if self._has_lead_in_name else ""
        return f"paper, {self._depth} or {self._low}{lead}"

    def begin(self, control: Control) -> None:
        """Sets the normal depth."""
        self._add_up()
        self._control = control
        self._is_low = False
        self._running = 0
        control.set_depth(self._depth, 0)

    def opened(self, path: str | None, now: int) -> None:
        """Lowers the depth for a file of the patterns."""
        if self._fits(path):
            self._lower(now)

    def synced(self, path: str | None, now: int) -> None:
        """Keeps the depth low for another while."""
        if self._fits(path):
            self._running += 1
            if self._is_low:
                self._lower(now)

    def ended(self, path: str | None, now: int) -> None:
        """Counts the syncs that run."""
        self._running -= self._fits(path)
        self._ended_at = now

    def notes(self) -> list[str]:
        """Returns whether the patterns had no effect, and whether the depth was restored too early."""
        if not self._has_lowered:
            return [
                f"no file that is synced has a path like {' or '.join(self._patterns)}, so the controller never lowers the depth:"
                " --pattern GLOB names others"
            ]
        self._add_up()
        found = [f"the controller held the low depth for {100 * self._low_ns / max(1, self._whole_ns):.0f} % of the time"]  # fmt: skip
        if self._restored_during_sync:
            found.append(
                f"the controller restored the depth {self._restored:,} times in all replays, {self._restored_during_sync:,} of them while a sync of"
                f" such a file was running: none had started for {self._hold_ns / 1e9:g} s; --hold SECONDS sets another time"
            )
        return found

    def _add_up(self) -> None:
        """Adds the times of a replay that has ended."""
        if self._is_low:
            self._low_ns += max(0, self._ended_at - self._lowered_at)
        self._whole_ns += self._ended_at
        self._ended_at = 0
        self._is_low = False

    def _fits(self, path: str | None) -> bool:
        return path is not None and any(fnmatchcase(path, one) for one in self._patterns)

    def _lower(self, now: int) -> None:
        self._last = now
        if not self._is_low:
            self._is_low = self._has_lowered = True
            self._lowered_at = now
            self._control.set_depth(self._low, now)
        self._control.schedule(now + self._hold_ns, self._restore)

    def _restore(self, now: int) -> None:
        if self._is_low and now - self._last >= self._hold_ns:
            self._is_low = False
            self._low_ns += now - self._lowered_at
            self._ended_at = now
            self._restored += 1
            self._restored_during_sync += self._running > 0
            self._control.set_depth(self._depth, now)
