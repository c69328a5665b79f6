"""Repeats the program of one thread."""

from __future__ import annotations

from typing import Protocol

from .clock import Action, Clock
from .device import Device
from .journal import Journal
from .program import Kind, Program, Step

__all__ = ["Observer", "Walk"]


class Observer(Protocol):
    """Sees what a walk does. Times are ns from the start of the replay."""

    def expects_sync(self, sync: int, now: int, at: int) -> None:
        """A sync will start at a time, as is known now."""

    def starts_sync(self, sync: int, now: int) -> None:
        """A sync starts."""

    def ends_sync(self, sync: int, now: int) -> None:
        """A sync ends."""

    def completes(self, program: Program, request: int, now: int) -> None:
        """A request is complete."""


class Walk:
    """A program on its way. After the last step and the last completion it calls `then`."""

    def __init__(
        self,
        program: Program,
        clock: Clock,
        device: Device,
        journal: Journal | None,
        observer: Observer,
        then: Action,
        *,
        waits_for_tags: bool,
    ) -> None:
        """Args:
        journal: None for a program without waits for commits.
        waits_for_tags: whether the thread waits until a request is issued; a scheduler takes it at once.
        """
        self._waits_for_tags = waits_for_tags
        self._program = program
        self._clock = clock
        self._device = device
        self._journal = journal
        self._observer = observer
        self._then = then
        self._index = self._completed = self._submitted = 0
        # Whether the next step is scheduled already, or waits for a commit.
        self._is_held = False
        # The request of the step before, until it is issued.
        self._unissued: int | None = None
        self._is_repeated = False
        # Whether the requests are complete that the next step waits for with `drains`.
        self._is_drained = False

    def start(self, now: int) -> None:
        """Begins with the first step."""
        self._go_on(now)

    def repeat(self, now: int) -> None:
        """Begins again. The first step then comes as soon as an average one."""
        self._index = self._completed = self._submitted = 0
        self._is_repeated = True
        self._go_on(now)

    def _go_on(self, now: int) -> None:
        if self._is_held:
            return
        if self._index == len(self._program.steps):
            if self._completed == self._submitted:
                self._is_held = True
                self._clock.schedule(now, self._over)
            return
        step = self._program.steps[self._index]
        after_issue = step.after_issue and self._waits_for_tags
        if self._completed < step.completions or (after_issue and self._unissued is not None):
            return
        self._is_held = True
        if step.drains and not self._is_drained:
            self._is_drained = True
            self._device.drain(now, self._resume)
            return
        self._is_drained = False
        delay = step.delay_after_issue_ns if after_issue else step.delay_ns
        if self._is_repeated and self._index == 0:
            delay = self._program.pause_ns
        if step.kind is Kind.SYNC_START:
            self._observer.expects_sync(step.number, now, now + delay)
        self._clock.schedule(now + delay, self._do)

    def _over(self, now: int) -> None:
        self._is_held = False
        self._then(now)

    def _do(self, now: int) -> None:
        step = self._program.steps[self._index]
        self._index += 1
        self._is_held = False
        if step.kind is Kind.SUBMIT:
            self._submit(step, now)
        elif step.kind is Kind.SYNC_START:
            self._observer.starts_sync(step.number, now)
        elif step.kind is Kind.SYNC_END:
            self._observer.ends_sync(step.number, now)
        elif self._journal is not None:
            self._is_held = True
            self._journal.wait(now, self._resume, for_running=step.kind is Kind.RUNNING_COMMIT)
            return
        self._go_on(now)

    def _submit(self, step: Step, now: int) -> None:
        number = step.number
        self._submitted += 1
        self._unissued = number

        def on_issue(at: int) -> None:
            if self._unissued == number:
                self._unissued = None
                self._go_on(at)

        def on_end(at: int) -> None:
            self._completed += 1
            self._observer.completes(self._program, number, at)
            self._go_on(at)

        self._device.submit(number, now, on_issue, on_end)

    def _resume(self, now: int) -> None:
        self._is_held = False
        self._go_on(now)
