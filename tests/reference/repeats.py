"""Events that a log holds again, because a part of it is there twice: time goes back where such a part begins, or a line repeats the one
before it that no thread and no bio can have twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

# A call may return, and the thread make another one, within one time of a coarser clock.
COARSE_NS = 1_000_000
# Without its return, a call may be made twice within one time of a clock of µs.
MICROSECOND_NS = 1_000


def _same(event: Any) -> tuple[Any, ...]:
    """What makes two events the same. Names and stacks may be known in one place only."""
    fields = {key: value for key, value in event.fields.items() if key != "path"}
    # What a torn line held is not known, so it equals no other.
    line = event.line if event.kind == "torn" else None
    return (event.ts, event.kind, event.pid, repr(sorted(fields.items())), line)


def _parts(events: list[Any], names_threads: bool) -> Iterator[int]:
    part, last = 0, None
    returns = {event.fields["op"] for event in events if event.kind == "call_exit"}

    def returned_before(entry: Any) -> bool:
        is_fine = entry.ts % MICROSECOND_NS != 0
        return is_fine or entry.fields["op"] in returns

    for event in events:
        if event.kind == "torn":
            yield part
            continue
        if last is not None:
            cannot_recur = event.kind == "folio" or (
                event.kind == "call"
                and names_threads
                and event.ts % COARSE_NS != 0
                and returned_before(event)
            )
            is_again = cannot_recur and _same(event) == _same(last)
            part += event.ts < last.ts or is_again
        last = event
        yield part


def without(events: list[Any], names_threads: bool) -> tuple[list[Any], list[Any]]:
    """The events in the order of time, each as often as the part holds it that holds it most often; and the others."""
    part_of = dict(zip(map(id, events), _parts(events, names_threads), strict=True))
    used: list[Any] = []
    repeats: list[Any] = []
    in_order = sorted(events, key=lambda event: event.ts)
    for _, group in itertools.groupby(in_order, key=lambda event: event.ts):
        merged: list[Any] = []
        places: dict[tuple[Any, ...], list[Any]] = {}
        for _, of_part in itertools.groupby(group, key=lambda event: part_of[id(event)]):
            counts: dict[tuple[Any, ...], int] = {}
            own = []
            has_repeats = False
            for event in of_part:
                key = _same(event)
                number = counts[key] = counts.get(key, 0) + 1
                known = places.setdefault(key, [])
                if number <= len(known):
                    has_repeats = True
                    repeats.append(event)
                    own.append(known[number - 1])
                else:
                    known.append(event)
                    own.append(event)
            merged = _insert(merged, own) if has_repeats else merged + own
        used += merged
    return used, repeats


def _insert(merged: list[Any], own: list[Any]) -> list[Any]:
    """Adds the events of a part that are new, each after the one before it in its part."""
    result: list[Any] = []
    rest = list(merged)
    for event in own:
        if any(event is known for known in rest):
            at = next(at for at, known in enumerate(rest) if known is event)
            result += rest[: at + 1]
            del rest[: at + 1]
        elif not any(event is known for known in merged):
            result.append(event)
    return result + rest
