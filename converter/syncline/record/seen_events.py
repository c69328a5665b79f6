"""Which events occur in recorded pages: a look at some of them, without decoding their fields."""

from __future__ import annotations

import heapq
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import itemgetter

from syncline.record import ring_pages
from syncline.record.ring_buffer import RingBuffer

# Calls that return only when what they have begun is complete.
_WAITING_CALLS = ("fsync", "fdatasync", "syncfs", "sync")
# Number and thread are in the fields that all events have; the result is that of the exit of a call.
_EVENT_AND_THREAD = struct.Struct("=H2xi")
_RESULT = struct.Struct("=q")
_RESULT_AT = 16


@dataclass
class Seen:
    """The names of events, in the order of time."""

    names: set[str] = field(default_factory=set)
    # Those in a thread between entry and exit of a waiting call that returned 0.
    in_calls: set[str] = field(default_factory=set)
    # Sync calls that returned 0, such as "fsync".
    calls: set[str] = field(default_factory=set)


def look(ring: RingBuffer, limit: int, until_ns: int | None = None) -> Seen:
    """Looks at the first `limit` events of all CPUs, at most those before `until_ns`."""
    names: dict[int, str] = {}
    for event in ring.main.events:
        text = (ring.instance.folder / "events" / event / "format").read_text()
        if found := re.search(r"^ID: (\d+)$", text, re.MULTILINE):
            names[int(found[1])] = event.rpartition("/")[2]
    pages = [ring_pages.events(file, ring.page_bytes) for file in ring.main.pages]
    events: Iterable[tuple[int, bytes]] = islice(heapq.merge(*pages, key=itemgetter(0)), limit)
    if until_ns is not None:
        events = takewhile(lambda event: event[0] < until_ns, events)
    return seen_in(events, names)


def seen_in(events: Iterable[tuple[int, bytes]], names: dict[int, str]) -> Seen:
    """Returns what events in the order of time say, by the names of their numbers."""
    exits = {
        number: name.removeprefix("sys_exit_")
        for number, name in names.items()
        if name.startswith("sys_exit_")
    }
    entries = {
        number
        for number, name in names.items()
        if name in {f"sys_enter_{c}" for c in _WAITING_CALLS}
    }
    seen = Seen()
    # By thread that is in a waiting call.
    in_call: dict[int, set[str]] = {}
    for _, data in events:
        number, tid = _EVENT_AND_THREAD.unpack_from(data)
        if number not in names:
            continue
        name = names[number]
        seen.names.add(name)
        if number in entries:
            in_call[tid] = set()
        elif number in exits:
            inside = in_call.pop(tid, set())
            if len(data) >= _RESULT_AT + 8 and _RESULT.unpack_from(data, _RESULT_AT)[0] == 0:
                seen.calls.add(exits[number])
                seen.in_calls |= inside
        elif tid in in_call:
            in_call[tid].add(name)
    return seen
