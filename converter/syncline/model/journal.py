"""The journal of a replay: one commit after the other, each when a sync asked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .clock import Action, Clock
from .program import CommitProgram, Program

__all__ = ["Journal"]


class Journal:
    """Makes commits. A sync that comes after the start of a commit waits for the next one.

    The n-th commit of the replay does what the n-th one of the recording did; after the last one they begin again.
    """

    def __init__(
        self,
        clock: Clock,
        commits: Sequence[CommitProgram],
        walk: Callable[[Program, int, Action], None],
    ) -> None:
        """Args:
        walk: repeats a program from a time on, and then calls the action.
        """
        self._clock = clock
        self._commits = commits
        self._walk = walk
        self._started = 0
        self._is_due = self._is_running = self._is_asked = False
        self._joined: list[Action] = []
        self._running: list[Action] = []
        for commit in commits:
            if commit.at_ns is not None:
                clock.schedule(commit.at_ns, self._ask)

    def wait(self, now: int, then: Action, *, for_running: bool) -> None:
        """Waits for the next commit that starts or, if asked, for the one that is being made."""
        if for_running and self._is_running:
            self._running.append(then)
            return
        self._joined.append(then)
        self._ask(now)

    def _ask(self, now: int) -> None:
        self._is_asked = True
        if not self._is_due and not self._is_running:
            self._is_due = True
            self._clock.schedule(now + self._next().delay_ns, self._start)

    def _next(self) -> CommitProgram:
        return self._commits[self._started % len(self._commits)]

    def _start(self, now: int) -> None:
        commit = self._next()
        self._started += 1
        self._is_due, self._is_running, self._is_asked = False, True, False
        self._running, self._joined = self._joined, []

        def over(at: int) -> None:
            self._clock.schedule(at + commit.end_delay_ns, self._end)

        self._walk(commit.program, now, over)

    def _end(self, now: int) -> None:
        self._is_running = False
        done, self._running = self._running, []
        for then in done:
            then(now)
        if self._is_asked:
            self._ask(now)
