"""How a device serves the requests that it holds: models, one of which a recording has to bear out.

A model says of each request how long the device worked on it. If the model is right, that time does not depend on how
many requests were at the device, so a fit to requests at some depths predicts it at the others. That error chooses the
model, and refuses all of them if none is right.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .clock import Clock
from .recording import Request

__all__ = [
    "ENOUGH",
    "TOLERANCE",
    "Explanation",
    "Server",
    "class_of",
    "covered",
    "depths",
    "explain",
    "most_at_once",
    "server",
    "services",
]

# A model is refused if its predictions are further off than this, out of sample.
TOLERANCE = 0.15
# From this many requests on, their mean says something.
ENOUGH = 20

# The estimate of parallelism tries each number of servers up to this one, then powers of two, on this many requests.
_ALL_TO = 32
_SAMPLE = 5_000
# A model is refuted if this share of requests contradicts its order.
_EARLY = 0.02
_NOT_NEAREST = 0.1
# A mean (without a tenth at both ends) counts in the error if it is known to this share of itself, or if it is wrong beyond all doubt.
_KNOWN_TO = 0.05
_STANDARD_ERRORS = 3
# Shared bandwidth lets requests overtake each other, so it fits more; it must fit this much better to be chosen.
_CLEARLY_BETTER = 0.3


@dataclass(frozen=True)
class Explanation:
    """What a model says of a recording.

    `service_ns`: time that the device worked on each request, at no distance.
    `slope`: ns for each sector of distance; 0 unless the model is `nearest`.
    `error`: the largest relative error of a mean, predicted from other depths or the other half of the time; None if the
    requests are too few to tell.
    `spread`: standard deviation of the service times of like requests, relative to their mean.
    `contradicted`: why no device of this kind completes requests in this order; None if it may.
    """

    kind: str
    parallelism: int
    service_ns: list[int]
    slope: float
    error: float | None
    spread: float
    contradicted: str | None = None

    @property
    def name(self) -> str:
        """Returns the name for people."""
        if self.kind == "nearest":
            return "one server that takes the nearest request first"
        if self.kind == "shared":
            return (
                "shared bandwidth"
                if self.parallelism == 1
                else f"bandwidth that more than {self.parallelism} requests share"
            )
        return "one server" if self.parallelism == 1 else f"{self.parallelism} equal servers"

    @property
    def holds(self) -> bool:
        """Returns whether the recording bears the model out."""
        return self.contradicted is None and self.error is not None and self.error <= TOLERANCE


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


def depths(requests: Sequence[Request]) -> list[int]:
    """Returns how many requests were at the device when each was issued, with itself."""
    found = [0] * len(requests)
    ends: list[int] = []
    for index in _by_issue(requests):
        while ends and ends[0] <= requests[index].issue_ns:
            heapq.heappop(ends)
        heapq.heappush(ends, requests[index].end_ns)
        found[index] = len(ends)
    return found


def _by_issue(requests: Sequence[Request]) -> list[int]:
    return sorted(range(len(requests)), key=lambda index: requests[index].issue_ns)


def services(requests: Sequence[Request], parallelism: int) -> list[int]:
    """Returns the service time of each request in ns, if the device serves `parallelism` requests at once.

    It serves them in the order of their issue. A request that completed before its turn has a negative time.
    """
    found = [0] * len(requests)
    ends: list[int] = []
    for index in _by_issue(requests):
        request = requests[index]
        begin = request.issue_ns
        if len(ends) == parallelism:
            begin = max(begin, heapq.heappop(ends))
        found[index] = request.end_ns - begin
        heapq.heappush(ends, request.end_ns)
    return found


def shares(requests: Sequence[Request], parallelism: int) -> list[int]:
    """Returns how long the device would serve each request alone, in ns, if n of them at once get `parallelism` / n each."""
    events = [(request.issue_ns, 1, index) for index, request in enumerate(requests)]
    events += [(request.end_ns, 0, index) for index, request in enumerate(requests)]
    begun = [0.0] * len(requests)
    found = [0] * len(requests)
    served, before, now = 0.0, 0, 0
    for at, is_issue, index in sorted(events):
        if now:
            served += (at - before) * min(1.0, parallelism / now)
        before = at
        now += 1 if is_issue else -1
        if is_issue:
            begun[index] = served
        else:
            found[index] = round(served - begun[index])
    return found


def seeks(requests: Sequence[Request]) -> tuple[list[int], list[float], float] | None:
    """Returns times and distances of one server that takes the nearest request, and the share that was not the nearest.

    None if the place of a request is not known.
    """
    if any(request.sector is None for request in requests):
        return None
    times, distances = [0] * len(requests), [0.0] * len(requests)
    order = sorted(range(len(requests)), key=lambda index: requests[index].end_ns)
    issues = _by_issue(requests)
    place = 0
    # Sectors of the requests at the device, sorted.
    held: list[int] = []
    head, free = None, 0
    farther = choices = 0
    for index in order:
        request = requests[index]
        sector = request.sector or 0
        begin = max(free, request.issue_ns)
        while place < len(issues) and requests[issues[place]].issue_ns <= begin:
            bisect.insort(held, requests[issues[place]].sector or 0)
            place += 1
        if head is not None:
            distances[index] = abs(sector - head)
            if len(held) > 1:
                choices += 1
                near = bisect.bisect_left(held, head)
                nearest = min(abs(one - head) for one in held[max(near - 1, 0) : near + 1])
                farther += nearest < distances[index]
        at = bisect.bisect_left(held, sector)
        if at < len(held) and held[at] == sector:
            del held[at]
        times[index] = request.end_ns - begin
        head, free = sector, request.end_ns
    return times, distances, farther / choices if choices else 0.0


def explain(
    recordings: Sequence[Sequence[Request]], parallelism: int | None = None
) -> list[Explanation]:
    """Returns what each model says of recordings of one device, the most likely one first.

    Args:
        parallelism: that of the device, if the user has given it; then only equal servers are tried.
    """  # fmt: skip
    at_issue = [depth for requests in recordings for depth in depths(requests)]
    flat = [request for requests in recordings for request in requests]
    times = [index / len(requests) for requests in recordings for index in range(len(requests))]

    def of(
        kind: str, number: int, found: list[int], distances: list[float], contradicted: str | None
    ) -> Explanation:
        slope = _slope(found, distances)
        base = [round(time - slope * far) for time, far in zip(found, distances, strict=True)]
        error = _error(flat, at_issue, times, found, distances)
        spread = _spread(flat, base)
        mean = statistics.fmean(found) or 1.0
        return Explanation(kind, number, base, slope, error, spread / mean, contradicted)

    nowhere = [0.0] * len(flat)
    most = max(most_at_once(requests) for requests in recordings)
    powers = {2**n for n in range(most.bit_length())}
    number = parallelism or _fitting(
        recordings, services, {*range(1, min(most, _ALL_TO) + 1), *powers, most}
    )
    found = [time for requests in recordings for time in services(requests, number)]
    early = sum(time < 0 for time in found) / len(found)
    said = f"{100 * early:.0f} % of requests complete before their turn" if early > _EARLY else None
    tried = [of("servers", number, [max(time, 0) for time in found], nowhere, said)]
    if parallelism is not None:
        return tried
    number = _fitting(recordings, shares, {*powers, number})
    found = [time for requests in recordings for time in shares(requests, number)]
    tried.append(of("shared", number, found, nowhere, None))
    seen = [known for requests in recordings if (known := seeks(requests)) is not None]
    if len(seen) == len(recordings):
        found = [time for own, _, _ in seen for time in own]
        distances = [far for _, own, _ in seen for far in own]
        farther = max(share for _, _, share in seen)
        said = f"{100 * farther:.0f} % of choices were not the nearest" if farther > _NOT_NEAREST else None  # fmt: skip
        tried.append(of("nearest", 1, found, distances, said))
    if any(one.holds for one in tried):
        # In the order of what they may fit: what needs no more freedom is the better explanation.
        best = next(one for one in tried if one.holds)
        for one in tried:
            if one.holds and one.spread < _CLEARLY_BETTER * best.spread:
                best = one
    else:
        best = min(tried, key=lambda one: (one.contradicted is not None, one.error is None, one.error))  # fmt: skip
    return [best, *(one for one in tried if one is not best)]


def _fitting(
    recordings: Sequence[Sequence[Request]],
    times_of: Callable[[Sequence[Request], int], list[int]],
    candidates: set[int],
) -> int:
    """Returns the parallelism for which the service times of requests of one size are nearest to each other.

    With a parallelism that is too small, requests complete before their turn. With one that is too large, the service times
    contain waits. The right one makes the recorded completions most likely.
    """
    samples = [requests[:_SAMPLE] for requests in recordings]
    flat = [request for requests in samples for request in requests]

    def spread(number: int) -> tuple[bool, float]:
        found = [time for requests in samples for time in times_of(requests, number)]
        is_early = sum(time < 0 for time in found) > _EARLY * len(found)
        # All at once contradicts nothing.
        return is_early, _spread(flat, found)

    return min(sorted(candidates), key=spread)


def class_of(request: Request) -> tuple[int, bool]:
    """Returns what requests have in common that should take equally long."""
    return request.size_bytes.bit_length(), request.is_read


def _spread(requests: Sequence[Request], found: Sequence[float]) -> float:
    """Returns the standard deviation in ns of the service times of one class."""
    of_class: dict[tuple[int, bool], list[float]] = defaultdict(list)
    for request, time in zip(requests, found, strict=True):
        of_class[class_of(request)].append(time)
    return sum(statistics.pstdev(some) * len(some) for some in of_class.values()) / len(requests)


def _slope(found: Sequence[float], distances: Sequence[float]) -> float:
    """Returns ns for each sector, by least squares; 0 if nothing has a distance."""
    if not any(distances):
        return 0.0
    return max(0.0, statistics.linear_regression(distances, found).slope)


def _error(
    requests: Sequence[Request],
    known: Sequence[int],
    times: Sequence[float],
    found: Sequence[float],
    distances: Sequence[float],
) -> float | None:
    """Returns the largest relative error of a mean that is predicted from all other depths, or from the other half of the time."""
    groups = _groups(known)
    halves = [[i for i, at in enumerate(times) if (at < 0.5) == is_first] for is_first in (True, False)]  # fmt: skip
    errors = []
    for divided in (groups, halves):
        if len(divided) < 2 or any(len(one) < ENOUGH for one in divided):
            continue
        for tested in divided:
            others = [index for one in divided if one is not tested for index in one]
            error = _of_group(requests, found, distances, others, tested)
            if error is not None:
                errors.append(error)
    return max(errors, default=None)


def _groups(known: Sequence[int]) -> list[list[int]]:
    """Returns the requests by depth: from each depth to less than the double, and on until they are enough."""
    of_depth: dict[int, list[int]] = defaultdict(list)
    for index, depth in enumerate(known):
        of_depth[depth].append(index)
    found: list[list[int]] = []
    own: list[int] = []
    first = 1
    for depth in sorted(of_depth):
        if own and depth >= 2 * first and len(own) >= ENOUGH:
            found.append(own)
            own = []
        first = first if own else depth
        own = own + of_depth[depth]
    if found and len(own) < ENOUGH:
        found[-1] += own
    else:
        found.append(own)
    return found


def _of_group(
    requests: Sequence[Request],
    found: Sequence[float],
    distances: Sequence[float],
    train: Sequence[int],
    tested: Sequence[int],
) -> float | None:
    """Returns the relative error of the mean of some requests, predicted from others; None if chance may explain it."""
    slope = _slope([found[index] for index in train], [distances[index] for index in train])
    trained, real = _by_class(requests, found, distances, train, slope), _by_class(requests, found, distances, tested, slope)  # fmt: skip
    common = [key for key in real if key in trained]
    count = sum(len(real[key]) for key in common)
    if count < ENOUGH:
        return None
    far = slope * statistics.fmean(distances[index] for index in tested)
    told = far + sum(_middle(trained[key]) * len(real[key]) for key in common) / count
    was = far + sum(_middle(real[key]) * len(real[key]) for key in common) / count
    if was <= 0:
        return math.inf
    error = abs(told / was - 1)
    spread = sum(statistics.pstdev(_kept(real[key])) * len(real[key]) for key in common) / count
    uncertain = spread / math.sqrt(count) / was
    return error if uncertain <= _KNOWN_TO or error > TOLERANCE + _STANDARD_ERRORS * uncertain else None  # fmt: skip


def _by_class(
    requests: Sequence[Request],
    found: Sequence[float],
    distances: Sequence[float],
    indices: Sequence[int],
    slope: float,
) -> dict[tuple[int, bool], list[float]]:
    of_class: dict[tuple[int, bool], list[float]] = defaultdict(list)
    for index in indices:
        of_class[class_of(requests[index])].append(found[index] - slope * distances[index])
    return of_class


def _kept(values: list[float]) -> list[float]:
    """Returns the values without the lowest and the highest tenth, because a busy host delays a few requests by far."""
    ordered = sorted(values)
    cut = len(ordered) // 10
    return ordered[cut : len(ordered) - cut]


def _middle(values: list[float]) -> float:
    return statistics.fmean(_kept(values))


class Server(Protocol):
    """The inside of a device in a replay."""

    def take(self, number: int, now: int, then: Callable[[int], None]) -> None:
        """Takes a request at its issue, and calls `then` at its completion."""


def server(
    kind: str,
    clock: Clock,
    requests: Sequence[Request],
    service_ns: Sequence[int],
    *,
    parallelism: int,
    slope: float,
) -> Server:
    """Returns a device of the kind of an explanation."""
    if kind == "shared":
        return _Shared(clock, service_ns, parallelism)
    if kind == "nearest":
        return _Nearest(clock, service_ns, [request.sector or 0 for request in requests], slope)
    return _Servers(clock, service_ns, parallelism)


class _Servers:
    """Serves `parallelism` requests at once, in the order of their issue."""

    def __init__(self, clock: Clock, service_ns: Sequence[int], parallelism: int) -> None:
        self._clock = clock
        self._service_ns = service_ns
        self._parallelism = parallelism
        # When each of the last `parallelism` requests is done.
        self._ends: list[int] = []

    def take(self, number: int, now: int, then: Callable[[int], None]) -> None:
        begin = now
        if len(self._ends) == self._parallelism:
            begin = max(now, heapq.heappop(self._ends))
        end = begin + max(self._service_ns[number], 0)
        heapq.heappush(self._ends, end)
        self._clock.schedule(end, then)


class _Shared:
    """Serves all at once: alone each gets all that it can use, and more than `parallelism` of them share."""

    def __init__(self, clock: Clock, service_ns: Sequence[int], parallelism: int) -> None:
        self._clock = clock
        self._service_ns = service_ns
        self._parallelism = parallelism
        self._order = itertools.count()
        # How long a request has been served that came at the start, and when that was so.
        self._served = 0.0
        self._before = 0
        self._held: list[tuple[float, int, Callable[[int], None]]] = []
        self._version = 0

    def take(self, number: int, now: int, then: Callable[[int], None]) -> None:
        self._go_on(now)
        due = self._served + max(self._service_ns[number], 0)
        heapq.heappush(self._held, (due, next(self._order), then))
        self._plan(now)

    def _rate(self) -> float:
        return min(1.0, self._parallelism / len(self._held)) if self._held else 0.0

    def _go_on(self, now: int) -> None:
        self._served += (now - self._before) * self._rate()
        self._before = now

    def _plan(self, now: int) -> None:
        """Schedules the next completion, which replaces the one that was planned before."""
        self._version += 1
        if self._held:
            left = max(0.0, self._held[0][0] - self._served)
            version = self._version
            at = now + math.ceil(left / self._rate())
            self._clock.schedule(at, lambda then: self._complete(version, then))

    def _complete(self, version: int, now: int) -> None:
        if version != self._version:
            return
        self._go_on(now)
        _, _, then = heapq.heappop(self._held)
        self._plan(now)
        then(now)


class _Nearest:
    """Serves one request at a time: the one whose address is nearest to the last one."""

    def __init__(
        self, clock: Clock, service_ns: Sequence[int], sectors: Sequence[int], slope: float
    ) -> None:
        self._clock = clock
        self._service_ns = service_ns
        self._sectors = sectors
        self._slope = slope
        self._head: int | None = None
        self._is_busy = False
        # Sector, number, and what to do at the completion, sorted.
        self._held: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = itertools.count()

    def take(self, number: int, now: int, then: Callable[[int], None]) -> None:
        entry = (self._sectors[number], number, then)
        bisect.insort(self._held, entry, key=lambda one: one[0])
        if not self._is_busy:
            self._begin(now)

    def _begin(self, now: int) -> None:
        head = self._held[0][0] if self._head is None else self._head
        near = bisect.bisect_left(self._held, head, key=lambda one: one[0])
        nearest = min(
            range(max(near - 1, 0), min(near + 1, len(self._held))),
            key=lambda place: abs(self._held[place][0] - head),
        )
        sector, number, then = self._held.pop(nearest)
        self._is_busy = True
        time = self._service_ns[number] + round(self._slope * abs(sector - head))
        self._head = sector

        def done(at: int) -> None:
            self._is_busy = False
            if self._held:
                self._begin(at)
            then(at)

        self._clock.schedule(now + max(time, 0), done)


def covered(known: Iterable[int]) -> tuple[int, int] | None:
    """Returns from which to which depth a recording has enough requests; None if it has too few.

    At the lower one or below, and at the upper one or above, there are enough to see what the device does.
    """
    ordered = sorted(known)
    if len(ordered) < ENOUGH:
        return None
    return ordered[ENOUGH - 1], ordered[-ENOUGH]
