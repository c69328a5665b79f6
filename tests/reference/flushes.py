"""Cache flushes as the block layer makes them, with the truth of each bio, to check what pairing says of them.

It follows block/blk-flush.c, as docs/reference/pairing.md describes it: a queue flushes for one list of bios after the other. A bio that asks
while a flush runs, or after the bios of the next one were chosen, waits for the one after that. It knows nothing of pairing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """`name` is `asked`, `issued`, `flushed` or `ended`; `bio` is None for those of the request."""

    us: int
    name: str
    bio: int | None = None


@dataclass
class Truth:
    """The times of a bio, in microseconds."""

    asked: int
    issued: int = 0
    ended: int = 0


def flushes(rng: random.Random, count: int) -> tuple[list[Event], list[Truth]]:
    """The events of some bios that ask one queue for a flush, and their times. No two events come at once."""
    now, arrivals = 100, []
    for _ in range(count):
        now += rng.choice((10, 60, 200, 400, 5000)) + rng.randrange(40)
        arrivals.append(now)
    truth = [Truth(at) for at in arrivals]
    events = [Event(at, "asked", bio) for bio, at in enumerate(arrivals)]
    free, left = 0, list(range(count))
    while left:
        # The queue chooses all bios that have asked as soon as it has nothing else to do.
        chosen_at = max(free, truth[left[0]].asked + 1)
        chosen = [bio for bio in left if truth[bio].asked < chosen_at]
        left = left[len(chosen) :]
        issued = chosen_at + rng.randrange(5, 60)
        flushed = issued + rng.randrange(80, 400)
        events += [Event(issued, "issued"), Event(flushed, "flushed")]
        free = flushed
        for bio in chosen:
            free += rng.randrange(1, 4)
            truth[bio].issued, truth[bio].ended = issued, free
            events.append(Event(free, "ended", bio))
        free += 2
    events.sort(key=lambda event: event.us)
    return events, truth
