"""The device of a replay: which requests it gets, and when.

A device takes up to its queue depth of requests. How it serves those that it has is in `service`.
"""

from __future__ import annotations

import bisect
import heapq
import random
import statistics
from collections import Counter, deque
from collections.abc import Sequence

from .clock import Action, Clock
from .recording import Request
from .service import ENOUGH, Server

__all__ = [
    "DISCIPLINES",
    "Device",
    "dispatch_seen",
    "overheads",
    "wake_times",
]

# Which request is issued next. tags: a thread that waits for a tag wakes up late, and a new request may take the tag before
# (the scheduler `none`). fifo: the one that was submitted first. sync-first: those with the flag S, then the others.
DISCIPLINES = ("tags", "fifo", "sync-first")
# A discipline is seen if it explains this share of the choices.
_SEEN = 0.95


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


def dispatch_seen(requests: Sequence[Request]) -> str | None:
    """Returns the discipline that the recording shows; None if too few requests waited to tell.

    It is seen where several requests wait and one is issued: the oldest one, or the oldest of those that somebody waits for.
    """
    order = sorted(range(len(requests)), key=lambda index: requests[index].issue_ns)
    coming = sorted(order, key=lambda index: requests[index].submit_ns)
    place = 0
    # Requests that wait: (submit, index), of all and of those with the flag S.
    all_: list[tuple[int, int]] = []
    preferred: list[tuple[int, int]] = []
    issued: set[int] = set()
    # How many choices each discipline explains.
    explained = Counter[str]()
    choices = 0
    for index in order:
        at = requests[index].issue_ns
        while place < len(coming) and requests[coming[place]].submit_ns < at:
            entry = (requests[coming[place]].submit_ns, coming[place])
            heapq.heappush(all_, entry)
            if requests[coming[place]].is_sync:
                heapq.heappush(preferred, entry)
            place += 1
        for queue in (all_, preferred):
            while queue and queue[0][1] in issued:
                heapq.heappop(queue)
        if preferred and all_[0] != preferred[0]:
            choices += 1
            explained["fifo"] += requests[index].submit_ns == all_[0][0]
            explained["sync-first"] += requests[index].submit_ns == preferred[0][0]
        issued.add(index)
    if choices < ENOUGH:
        return None
    return next((name for name, count in explained.items() if count >= _SEEN * choices), None)


class Device:
    """Serves the requests of a replay."""

    def __init__(
        self,
        clock: Clock,
        requests: Sequence[Request],
        server: Server,
        discipline: str,
        *,
        overhead_ns: Sequence[int],
        wake_ns: Sequence[int],
        seed: int,
    ) -> None:
        """Args:
        server: what serves the requests that the device has.
        discipline: one of DISCIPLINES.
        overhead_ns: of each request.
        wake_ns: from a completion to the issue of a request that waited for it. A replay draws from these.
        """
        self._clock = clock
        self._requests = requests
        self._server = server
        self._discipline = discipline
        self._overhead_ns = overhead_ns
        self._depth = 1
        self._wake_ns = wake_ns
        self._random = random.Random(seed)
        # Number of the request, and what to do at its issue and at its completion.
        self._queue: deque[tuple[int, Action, Action]] = deque()
        # With sync-first, those that nobody waits for.
        self._others: deque[tuple[int, Action, Action]] = deque()
        self._at_device = 0
        # Requests at the device, by the order of their issue.
        self._held: set[int] = set()
        self._issued = 0
        # What is done when some requests are complete.
        self._drains: list[tuple[set[int], Action]] = []
        # How often a request was the n-th one at the device, when it was issued.
        self.depths: Counter[int] = Counter()

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
        self.depths[self._at_device] += 1
        self._issued += 1
        place = self._issued
        self._held.add(place)
        self._server.take(number, now, lambda at: self._complete(place, on_end, at))
        on_issue(now)

    def drain(self, now: int, then: Action) -> None:
        """Waits until all requests that are at the device now are complete."""
        if self._held:
            self._drains.append((set(self._held), then))
        else:
            then(now)

    def _complete(self, place: int, on_end: Action, now: int) -> None:
        self._at_device -= 1
        self._held.discard(place)
        over = []
        for held, then in self._drains:
            held.discard(place)
            if not held:
                over.append(then)
        self._drains = [one for one in self._drains if one[0]]
        if self._discipline != "tags":
            self._fill(now)
        elif self._queue:
            woken = self._queue.popleft()
            wake_ns = self._random.choice(self._wake_ns) if self._wake_ns else 0
            # It may find that another one was faster. It then waits behind all others.
            self._clock.schedule(now + wake_ns, lambda at: self._enter(woken, at))
        on_end(now)
        for then in over:
            then(now)
