"""Takes events out of a recording, by kind, one at a time, at random, in one piece, or at its beginning and end."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from tests.missing.kinds import GROUPS
from tests.missing.recordings import Event, Recording


@dataclass(frozen=True)
class Loss:
    """A recording without some of its events."""

    recording: Recording
    detail: str
    """Names the missing events in the message of a test."""
    events: tuple[Event, ...]
    missing: frozenset[tuple[str, str]]
    """The kinds that are missing, each with how much of it: `all` events, all with one `name`, the `first` one of a name, `one`, or `some`."""
    is_end: bool = False
    """Whether all that is missing was before or after what is left."""

    @property
    def what(self) -> str:
        """Names the missing kinds, so that tables can count losses of the same kind."""
        return ", ".join(f"{kind} ({scope})" for kind, scope in sorted(self.missing))

    @property
    def span(self) -> tuple[int, int] | None:
        """The times between which nothing is missing."""
        if not self.is_end or not self.events:
            return None
        times = [event.ts_ns for event in self.events]
        return min(times), max(times)


def without(recording: Recording, places: Collection[int], detail: str) -> Loss:
    """Without the events at these places."""
    left = tuple(event for at, event in enumerate(recording.events) if at not in places)
    kinds, names = ({getattr(event, key) for event in left} for key in ("kind", "name"))
    first: dict[str, int] = {}
    for at, event in enumerate(recording.events):
        first.setdefault(event.name, at)

    def scope(at: int) -> str:
        event = recording.events[at]
        if event.kind not in kinds:
            return "all"
        if event.name not in names:
            return "name"
        return "first" if first[event.name] == at else "one"

    missing = {(recording.events[at].kind, scope(at)) for at in places}
    counts = Counter(recording.events[at].kind for at in places)
    missing |= {(kind, "some") for kind, count in counts.items() if count > 1 and kind in kinds}
    return Loss(recording, detail, left, frozenset(missing))


def droppable(recording: Recording) -> list[str]:
    """The kinds of its events."""
    return [kind for kind in recording.kinds if kind not in ("note", "other")]


def kinds(recording: Recording) -> Iterator[Loss]:
    """Without all events of a kind, of each name of it, and of each group of kinds."""

    def of(condition: Callable[[Event], bool]) -> set[int]:
        return {at for at, event in enumerate(recording.events) if condition(event)}

    for kind in droppable(recording):
        places = of(lambda event: event.kind == kind)  # noqa: B023
        yield without(recording, places, f"all: {kind}")
        names = sorted({recording.events[at].name for at in places})
        for name in names if len(names) > 1 else ():
            yield without(recording, of(lambda event: event.name == name), f"all {name}")  # noqa: B023
    for group, members in GROUPS.items():
        places = of(lambda event: event.kind in members)  # noqa: B023
        if len({recording.events[at].kind for at in places}) > 1:
            yield without(recording, places, f"all: {group}")


def ends(recording: Recording, steps: int) -> Iterator[Loss]:
    """Without the beginning, and without the end, at `steps` places each."""
    events = recording.events
    for at in sorted({len(events) * step // (steps + 1) for step in range(1, steps + 1)} - {0}):
        missing = frozenset({("beginning", "all")})
        yield Loss(recording, f"the first {at} events", events[at:], missing, True)
        missing = frozenset({("rest", "all")})
        yield Loss(recording, f"all but the first {at} events", events[:at], missing, True)


def ids(recording: Recording) -> Iterator[Loss]:
    """Without the ids of all events, and of the events of each kind."""

    def strip(text: bytes) -> bytes:
        return re.sub(rb'\bid[ =]\d+ ?|"id":"?\d+"?,', b"", text)

    present = sorted({event.kind for event in recording.events if strip(event.text) != event.text})
    for kind in [*present, ""] if present else ():
        left = tuple(
            replace(event, text=strip(event.text)) if kind in ("", event.kind) else event
            for event in recording.events
        )
        yield Loss(
            recording, f"ids of {kind or 'all events'}", left, frozenset({("id", kind or "all")})
        )


def single(recording: Recording, share: float = 1, seed: int = 0) -> Iterator[Loss]:
    """Without one event, for a share of the events."""
    rng = random.Random(f"{recording.name} {seed}")
    for at, event in enumerate(recording.events):
        if event.kind != "note" and rng.random() < share:
            yield without(recording, {at}, f"event {at + 1}: {event.name}")


# The events that bound what a thread does.
BOUNDS = ("call entry", "call exit", "start", "end", "pass")


def neighbours(recording: Recording, share: float = 1, seed: int = 0) -> Iterator[Loss]:
    """Without two bounds of a thread that follow one another, such as the exit of a call and the entry of the next one; for a share of them."""
    rng = random.Random(f"{recording.name} {seed} neighbours")
    last: dict[int, int] = {}
    for at, event in enumerate(recording.events):
        if event.kind not in BOUNDS:
            continue
        before = last.get(event.tid)
        last[event.tid] = at
        if before is not None and rng.random() < share:
            names = f"{recording.events[before].name}, {event.name}"
            yield without(recording, {before, at}, f"events {before + 1} and {at + 1}: {names}")


def pairs(recording: Recording, count: int, seed: int = 0) -> Iterator[Loss]:
    """Without two events at random."""
    rng = random.Random(f"{recording.name} {seed} pairs")
    places = [at for at, event in enumerate(recording.events) if event.kind != "note"]
    for _ in range(count):
        chosen = sorted(rng.sample(places, 2))
        names = " and ".join(f"{at + 1} ({recording.events[at].name})" for at in chosen)
        yield without(recording, chosen, f"events {names}")


def gaps(recording: Recording, count: int, seed: int = 0) -> Iterator[Loss]:
    """Without a piece from the middle, as a tracer loses it whose buffer is full."""
    rng = random.Random(f"{recording.name} {seed} gaps")
    last = len(recording.events) - 1
    for _ in range(count):
        length = rng.randint(2, max(2, last // 4))
        first = rng.randint(1, last - length)
        places = range(first, first + length)
        yield without(recording, places, f"events {first + 1} to {first + length}")


def random_kinds(recording: Recording, count: int, seed: int = 0) -> Iterator[Loss]:
    """Without random shares of random kinds."""
    present = droppable(recording)
    for number in range(count):
        rng = random.Random(f"{recording.name} {seed} {number}")
        chosen = rng.sample(present, rng.randint(1, min(4, len(present))))
        share = rng.choice((1, 0.5, 0.1))
        places = {
            at
            for at, event in enumerate(recording.events)
            if event.kind in chosen and rng.random() < share
        }
        yield without(
            recording, places, f"seed {seed}.{number}: {share:.0%} of {', '.join(chosen)}"
        )
