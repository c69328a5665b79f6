"""The clock of a replay: actions in the order of their times."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

__all__ = ["Action", "Clock"]

# Is given the time, in ns from the start of the replay.
Action = Callable[[int], None]


class Clock:
    """Runs actions at their times; those of one time in the order in which they were scheduled."""

    def __init__(self) -> None:
        """Starts at 0."""
        self._actions: list[tuple[int, int, Action]] = []
        self._order = itertools.count()

    def schedule(self, at: int, action: Action) -> None:
        """Runs the action at a time in ns, which is not in the past."""
        heapq.heappush(self._actions, (at, next(self._order), action))

    def run(self, is_over: Callable[[], bool], limit: int) -> bool:
        """Runs actions until `is_over`. Returns False if none is left, or if the time exceeds `limit` before."""
        while not is_over():
            if not self._actions or self._actions[0][0] > limit:
                return False
            at, _, action = heapq.heappop(self._actions)
            action(at)
        return True
