"""Replays a recording at another queue depth: a simulation of discrete events.

Threads repeat their programs, the journal makes the commits that syncs ask for, and the device serves requests. Only the
waits for the device and for commits change; all other times are those of the recording.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from syncline.errors import InputError

from . import device, service
from .clock import Clock
from .controller import Controller
from .device import Device
from .journal import Journal
from .program import CommitProgram, Program, commit_programs, flush_drains, thread_programs
from .recording import Recording
from .service import Explanation
from .walk import Walk

__all__ = ["Model", "Result", "held_out", "measured", "prepare", "replay"]

# A replay that takes this many times as long as the recording is given up.
_MAX_STRETCH = 1000


@dataclass(frozen=True)
class Model:
    """What does not depend on the queue depth. `service_ns` and `overhead_ns` are of each request.

    `depth`: the most requests that were at the device at once.
    `explanations`: what the models of the device say, the one that is used first.
    `drains`: whether syncs end with a flush that is not recorded.
    `covered`: from which to which depth requests were issued often enough; None if there are too few of them.
    """

    recording: Recording
    threads: list[Program]
    commits: list[CommitProgram]
    depth: int
    explanations: list[Explanation]
    covered: tuple[int, int] | None
    service_ns: list[int]
    overhead_ns: list[int]
    wake_ns: list[int]
    drains: bool

    @property
    def device(self) -> Explanation:
        """Returns the model of the device that is used."""
        return self.explanations[0]

    @property
    def parallelism(self) -> int:
        """Returns how many requests the device serves at once."""
        return self.device.parallelism


@dataclass(frozen=True)
class Result:
    """What a replay gives, or what was measured.

    `latencies_ns`: length of each sync, in the order of their starts.
    `end_ns`: when the last sync ended, from the start.
    `background_bytes`: what threads without a sync wrote until then.
    `background_end_ns`: when they had written what they wrote in the recording; None if they wrote nothing.
    `depths`: how often a request of a replay was the n-th one at the device, when it was issued.
    """

    latencies_ns: list[int]
    end_ns: int
    background_bytes: int
    background_end_ns: int | None
    depths: Counter[int] = field(default_factory=Counter, compare=False)


def prepare(
    recording: Recording,
    parallelism: int | None = None,
    *,
    also: Sequence[Recording] = (),
) -> Model:
    """Prepares a recording.

    Args:
        parallelism: how many requests the device serves at once; by default as estimated from the recording.
        also: other recordings of this device, such as one at another depth.
    """
    requests = recording.requests
    recordings = [requests, *(one.requests for one in also)]
    drains = any(flush_drains(one) for one in (recording, *also))
    depth = service.most_at_once(requests)
    explanations = service.explain(recordings, parallelism)
    return Model(
        recording,
        thread_programs(recording, drains=drains),
        commit_programs(recording),
        depth,
        explanations,
        service.covered(index for one in recordings for index in service.depths(one)),
        explanations[0].service_ns[: len(requests)],
        device.overheads(requests, depth),
        device.wake_times(requests, depth),
        drains,
    )


def held_out(model: Model, seed: int) -> Model:
    """Returns the model with service times that are not those of the requests: each is drawn from the other half of the time.

    So a replay does not repeat what it was fitted to.
    """
    requests = model.recording.requests
    middle = len(requests) // 2
    pools: dict[tuple[bool, int, bool], list[int]] = defaultdict(list)

    def of(number: int, *, is_first: bool) -> tuple[bool, int, bool]:
        return is_first, *service.class_of(requests[number])

    for number, time in enumerate(model.service_ns):
        pools[of(number, is_first=number < middle)].append(time)
    draw = random.Random(seed)
    drawn = [
        draw.choice(pools.get(of(number, is_first=number >= middle)) or [time])
        for number, time in enumerate(model.service_ns)
    ]
    return replace(model, service_ns=drawn)


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
        self._waits_for_tags = discipline == device.DISCIPLINES[0]
        self._device = Device(
            self._clock,
            model.recording.requests,
            service.server(
                model.device.kind,
                self._clock,
                model.recording.requests,
                model.service_ns,
                parallelism=model.parallelism,
                slope=model.device.slope,
            ),
            discipline,
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
        return Result(
            lengths,
            max(self._ends),
            self._background_bytes,
            self._background_end,
            self._device.depths,
        )

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

        walk = self._walk(program, self._journal, over)
        walk.start(0)

    def _walk_commit(self, program: Program, now: int, then: Callable[[int], None]) -> None:
        self._walk(program, None, then).start(now)

    def _walk(self, program: Program, journal: Journal | None, then: Callable[[int], None]) -> Walk:
        return Walk(
            program,
            self._clock,
            self._device,
            journal,
            self,
            then,
            waits_for_tags=self._waits_for_tags,
        )

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
