"""The device of a replay: how many requests it serves at once, and how long it serves each.

A device takes up to its queue depth of requests. It serves `parallelism` of them at once, in the order of their issue;
the others wait inside the device. The recording has the time from issue to completion, which contains that wait.
"""

from __future__ import annotations

import bisect
import heapq
import random
import statistics
from collections import deque
from collections.abc import Sequence

from .clock import Action, Clock
from .recording import Request

__all__ = [
    "DISCIPLINES",
    "Device",
    "estimate_parallelism",
    "most_at_once",
    "overheads",
    "services",
    "wake_times",
]

# Which request is issued next. tags: a thread that waits for a tag wakes up late, and a new request may take the tag before
# (the scheduler `none`). fifo: the one that was submitted first. sync-first: those with the flag S, then the others.
DISCIPLINES = ("tags", "fifo", "sync-first")


# The estimate of parallelism tries each number up to this one, then powers of two, on this many requests.
_ALL_TO = 32
_SAMPLE = 20_000
# A parallelism is refuted if this share of requests completes before its turn.
_EARLY = 0.02


def most_at_once(requests: Sequence[Request]) -> int:
    """Returns the most requests that were at the device at once."""
    steps = sorted(
        [(request.issue_ns, 1) for request in requests]
        + [(request.end_ns, -1) for request in requests],
    )
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def services(requests: Sequence[Request], parallelism: int) -> list[int]:
    """Returns the service time of each request in ns, if the device serves `parallelism` requests at once.

    It serves them in the order of their issue. A request that completed before its turn has a negative time.
    """
    found = [0] * len(requests)
    ends: list[int] = []
    for index in sorted(range(len(requests)), key=lambda index: requests[index].issue_ns):
        request = requests[index]
        begin = request.issue_ns
        if len(ends) == parallelism:
            begin = max(begin, heapq.heappop(ends))
        found[index] = request.end_ns - begin
        heapq.heappush(ends, request.end_ns)
    return found


def overheads(requests: Sequence[Request], depth: int) -> list[int]:
    """Returns the ns from submit to issue that each request would take with room at the device.

    This is what was recorded if fewer than `depth` requests were submitted and not complete; else the median of those.
    """
    ends: list[int] = []
    free: dict[int, int] = {}
    for index in sorted(range(len(requests)), key=lambda index: requests[index].submit_ns):
        request = requests[index]
        while ends and ends[0] <= request.submit_ns:
            heapq.heappop(ends)
        if len(ends) < depth:
            free[index] = request.issue_ns - request.submit_ns
        heapq.heappush(ends, request.end_ns)
    typical = round(statistics.median(free.values())) if free else 0
    return [free.get(index, typical) for index in range(len(requests))]


def wake_times(requests: Sequence[Request], depth: int) -> list[int]:
    """Returns times in ns from a completion to the issue of a request that waited for it, as many as completions.

    Where a new request took the place first, the one that waited would have needed longer. Such times are replaced by
    longer ones that were seen (the product-limit estimate of Kaplan and Meier).
    """
    issues = sorted((request.issue_ns, request.submit_ns) for request in requests)
    ends = sorted(request.end_ns for request in requests)
    submits = sorted(request.submit_ns for request in requests)
    # (ns from the completion to the issue, whether the request had waited)
    seen: list[tuple[int, bool]] = []
    # The n-th completion makes room for the issue that comes `depth` after it.
    for place, end in enumerate(ends[: len(issues) - depth]):
        issue, submit = issues[place + depth]
        waiting = bisect.bisect_right(submits, end) - (place + 1) > depth - 1
        if issue >= end and waiting:
            seen.append((issue - end, submit < end))
    return _uncensored(seen)


def _uncensored(seen: list[tuple[int, bool]]) -> list[int]:
    """Returns the times, with those that are only known to be longer spread over the longer ones."""
    weight = 1.0
    weights: list[tuple[int, float]] = []
    ordered = sorted(seen)
    for place, (time, is_known) in enumerate(ordered):
        left = len(ordered) - place
        if is_known or left == 1:
            share = weight / left
            weights.append((time, share))
            weight -= share
    found: list[int] = []
    reached = 0.0
    for time, share in weights:
        reached += share
        found += [time] * (round(reached * len(ordered)) - len(found))
    return found


def estimate_parallelism(requests: Sequence[Request]) -> int:
    """Returns the parallelism for which the service times of requests of one size are nearest to each other.

    With a parallelism that is too small, requests complete before their turn. With one that is too large, the service times
    contain waits. The right one makes the recorded completions most likely.
    """
    most = most_at_once(requests)
    candidates = {*range(1, min(most, _ALL_TO) + 1), *(2**n for n in range(most.bit_length())), most}  # fmt: skip
    sample = requests[:_SAMPLE]
    spreads = {number: _spread(sample, number) for number in sorted(candidates)}
    # All at once contradicts nothing.
    return min(spreads, key=lambda number: (spreads[number] is None, spreads[number] or 0.0))


def _spread(requests: Sequence[Request], parallelism: int) -> float | None:
    """Returns the standard deviation in ns of the service times of one size; None if requests complete before their turn."""
    by_size: dict[int, list[int]] = {}
    early = 0
    for request, service in zip(requests, services(requests, parallelism), strict=True):
        by_size.setdefault(request.size_bytes.bit_length(), []).append(service)
        early += service < 0
    if early > _EARLY * len(requests):
        return None
    return sum(statistics.pstdev(times) * len(times) for times in by_size.values()) / len(requests)


class Device:
    """Serves the requests of a replay."""

    def __init__(
        self,
        clock: Clock,
        requests: Sequence[Request],
        parallelism: int,
        discipline: str,
        *,
        service_ns: Sequence[int],
        overhead_ns: Sequence[int],
        wake_ns: Sequence[int],
        seed: int,
    ) -> None:
        """Args:
        parallelism: how many requests are served at once.
        discipline: one of DISCIPLINES.
        service_ns, overhead_ns: of each request.
        wake_ns: from a completion to the issue of a request that waited for it. A replay draws from these.
        """
        self._clock = clock
        self._requests = requests
        self._parallelism = parallelism
        self._discipline = discipline
        self._service_ns = service_ns
        self._overhead_ns = overhead_ns
        self._depth = 1
        self._wake_ns = wake_ns
        self._random = random.Random(seed)
        # Number of the request, and what to do at its issue and at its completion.
        self._queue: deque[tuple[int, Action, Action]] = deque()
        # With sync-first, those that nobody waits for.
        self._others: deque[tuple[int, Action, Action]] = deque()
        self._at_device = 0
        # When each of the last `parallelism` requests is done.
        self._ends: list[int] = []

    def set_depth(self, depth: int, now: int) -> None:
        """Changes the queue depth. Requests at the device stay there."""
        self._depth = depth
        self._fill(now)

    def submit(self, number: int, now: int, on_issue: Action, on_end: Action) -> None:
        """Submits a request."""
        entry = (number, on_issue, on_end)
        self._clock.schedule(now + self._overhead_ns[number], lambda at: self._enter(entry, at))

    def _enter(self, entry: tuple[int, Action, Action], now: int) -> None:
        if self._discipline == "tags" and self._at_device < self._depth:
            self._issue(entry, now)
            return
        is_other = self._discipline == "sync-first" and not self._requests[entry[0]].is_sync
        (self._others if is_other else self._queue).append(entry)
        if self._discipline != "tags":
            self._fill(now)

    def _fill(self, now: int) -> None:
        """Issues as many of those that wait as there is room for."""
        while (queue := self._queue or self._others) and self._at_device < self._depth:
            self._issue(queue.popleft(), now)

    def _issue(self, entry: tuple[int, Action, Action], now: int) -> None:
        number, on_issue, on_end = entry
        self._at_device += 1
        begin = now
        if len(self._ends) == self._parallelism:
            begin = max(now, heapq.heappop(self._ends))
        end = begin + self._service_ns[number]
        heapq.heappush(self._ends, end)
        self._clock.schedule(end, lambda at: self._complete(on_end, at))
        on_issue(now)

    def _complete(self, on_end: Action, now: int) -> None:
        self._at_device -= 1
        if self._discipline != "tags":
            self._fill(now)
        elif self._queue:
            woken = self._queue.popleft()
            wake_ns = self._random.choice(self._wake_ns) if self._wake_ns else 0
            # It may find that another one was faster. It then waits behind all others.
            self._clock.schedule(now + wake_ns, lambda at: self._enter(woken, at))
        on_end(now)
