"""Replays a recording at another queue depth: a simulation of discrete events.

Threads repeat their programs, the journal makes the commits that syncs ask for, and the device serves requests. Only the
waits for the device and for commits change; all other times are those of the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncline.errors import InputError

from . import device
from .clock import Clock
from .controller import Controller
from .device import Device
from .journal import Journal
from .program import CommitProgram, Program, commit_programs, thread_programs
from .recording import Recording
from .walk import Walk

__all__ = ["Model", "Result", "measured", "prepare", "replay"]

# A replay that takes this many times as long as the recording is given up.
_MAX_STRETCH = 1000


@dataclass(frozen=True)
class Model:
    """What does not depend on the queue depth. `service_ns` and `overhead_ns` are of each request.

    `depth`: the most requests that were at the device at once. `parallelism`: how many it serves at once.
    """

    recording: Recording
    threads: list[Program]
    commits: list[CommitProgram]
    depth: int
    parallelism: int
    service_ns: list[int]
    overhead_ns: list[int]
    wake_ns: list[int]


@dataclass(frozen=True)
class Result:
    """What a replay gives, or what was measured.

    `latencies_ns`: length of each sync, in the order of their starts.
    `end_ns`: when the last sync ended, from the start.
    `background_bytes`: what threads without a sync wrote until then.
    `background_end_ns`: when they had written what they wrote in the recording; None if they wrote nothing.
    """

    latencies_ns: list[int]
    end_ns: int
    background_bytes: int
    background_end_ns: int | None


def prepare(recording: Recording, parallelism: int | None = None) -> Model:
    """Prepares a recording.

    Args:
        parallelism: how many requests the device serves at once; by default as estimated from the recording.
    """
    requests = recording.requests
    parallelism = parallelism or device.estimate_parallelism(requests)
    depth = device.most_at_once(requests)
    return Model(
        recording,
        thread_programs(recording),
        commit_programs(recording),
        depth,
        parallelism,
        [max(service, 0) for service in device.services(requests, parallelism)],
        device.overheads(requests, depth),
        device.wake_times(requests, depth),
    )


def measured(model: Model) -> Result:
    """Returns what was measured, as `replay` counts it."""
    recording = model.recording
    start = recording.start_ns
    end = max(sync.end_ns for sync in recording.syncs)
    background = [
        recording.requests[step.number]
        for program in model.threads
        if not program.has_sync
        for step in program.steps
    ]
    return Result(
        [sync.end_ns - sync.start_ns for sync in recording.syncs],
        end - start,
        sum(request.written_bytes for request in background if request.end_ns <= end),
        max(
            (request.end_ns - start for request in background if not request.is_read), default=None
        ),
    )


def replay(model: Model, controller: Controller, discipline: str, seed: int = 1) -> Result:
    """Replays once.

    Args:
        controller: gives the queue depth at each moment.
        discipline: one of `device.DISCIPLINES`.
        seed: of the times that are drawn.

    Raises:
        InputError: the syncs do not end.
    """
    return _Replay(model, controller, discipline, seed).run()


class _Replay:
    """One replay. It is the observer of its walks, and the control of the controller."""

    def __init__(self, model: Model, controller: Controller, discipline: str, seed: int) -> None:
        self._model = model
        self._controller = controller
        self._clock = Clock()
        self._device = Device(
            self._clock,
            model.recording.requests,
            model.parallelism,
            discipline,
            service_ns=model.service_ns,
            overhead_ns=model.overhead_ns,
            wake_ns=model.wake_ns,
            seed=seed,
        )
        self._journal = Journal(self._clock, model.commits, self._walk_commit) if model.commits else None  # fmt: skip
        count = len(model.recording.syncs)
        self._starts, self._ends = [0] * count, [0] * count
        self._missing = count
        # Programs without a sync that have not been repeated once.
        self._first_passes = sum(not one.has_sync for one in model.threads)
        self._background_bytes = 0
        self._background_end: int | None = None

    def run(self) -> Result:
        recording = self._model.recording
        self._controller.begin(self)
        for program in self._model.threads:
            self._start(program)
        limit = _MAX_STRETCH * max(recording.end_ns - recording.start_ns, 1)
        done = self._clock.run(lambda: not self._missing and not self._first_passes, limit)
        if not done:
            raise InputError(
                f"{self._missing:,} syncs do not end in the replay of {self._controller.name}",
                "this is a fault of the model: please report it with the recording",
            )
        lengths = [end - start for start, end in zip(self._starts, self._ends, strict=True)]
        return Result(lengths, max(self._ends), self._background_bytes, self._background_end)

    def _start(self, program: Program) -> None:
        is_first = not program.has_sync

        def over(now: int) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                self._first_passes -= 1
                self._background_end = now
            if program.goes_on and (self._missing or self._first_passes):
                walk.repeat(now)

        walk = Walk(program, self._clock, self._device, self._journal, self, over)
        walk.start(0)

    def _walk_commit(self, program: Program, now: int, then: Callable[[int], None]) -> None:
        Walk(program, self._clock, self._device, None, self, then).start(now)

    def _path(self, sync: int) -> str | None:
        return self._model.recording.syncs[sync].path

    def expects_sync(self, sync: int, now: int, at: int) -> None:
        path = self._path(sync)
        self._clock.schedule(
            max(now, at - self._controller.lead_ns),
            lambda then: self._controller.opened(path, then),
        )

    def starts_sync(self, sync: int, now: int) -> None:
        self._starts[sync] = now
        self._controller.synced(self._path(sync), now)

    def ends_sync(self, sync: int, now: int) -> None:
        self._ends[sync] = now
        self._missing -= 1
        self._controller.ended(self._path(sync), now)

    def completes(self, program: Program, request: int, now: int) -> None:
        if self._missing and not program.has_sync and not program.is_commit:
            self._background_bytes += self._model.recording.requests[request].written_bytes

    def set_depth(self, depth: int, now: int) -> None:
        self._device.set_depth(depth, now)

    def schedule(self, at: int, action: Callable[[int], None]) -> None:
        self._clock.schedule(at, action)
