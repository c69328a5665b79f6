"""Lines whose time is damaged, as formats.md specifies: a line that is far from the line before it, while the next line is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.reference.thesis import Event

_FAR_NS = 3600 * 10**9
_NEAR_NS = 5 * 10**9
_FAR_AT_END_NS = 24 * _FAR_NS


def tear(events: list[Event], torn: Callable[[int], Event]) -> list[tuple[int, int]]:
    """Replaces the events of such lines in place by `torn(ts)`.

    Returns the number and the time of each line of which an event was whole.
    """
    found = []
    last: int | None = None
    at = 0
    while at < len(events):
        ts, line = events[at].ts, events[at].line
        if last is not None and abs(ts - last) <= _NEAR_NS:
            last, at = ts, at + 1
            continue
        end = at
        while end < len(events) and events[end].line == line:
            end += 1
        following = events[end:]
        after = next((one.ts for one in following if one.line != following[0].line), None)
        following_ts = following[0].ts if following else None
        if _is_damaged(ts, last, following_ts, after):
            near = next((one for one in (last, following_ts) if one is not None), ts)
            if any(event.kind != "torn" for event in events[at:end]):
                found.append((line, ts))
            for index in range(at, end):
                is_torn = events[index].kind == "torn"
                events[index] = replace(events[index], ts=near) if is_torn else torn(near)
                events[index].line = line
        else:
            last = ts
        at = end
    return found


def _is_damaged(ts: int, last: int | None, following: int | None, after: int | None) -> bool:
    def far(one: int, other: int) -> bool:
        return abs(one - other) > _FAR_NS

    def has_lost_digits(other: int) -> bool:
        """Whether the time has not as many digits as another one, and is not about that either."""
        return len(str(abs(ts))) != len(str(abs(other))) and abs(ts - other) > _NEAR_NS

    if last is not None and following is not None:
        if has_lost_digits(last) and has_lost_digits(following):
            return abs(following - last) <= _NEAR_NS or (
                far(ts, last) and far(ts, following) and not far(following, last)
            )
        return far(ts, last) and far(ts, following) and not far(following, last)
    if last is not None:
        # The last line: another recording may follow, but none whose times have as many digits.
        return has_lost_digits(last) and far(ts, last) and (ts < last or ts - last > _FAR_AT_END_NS)
    if following is None or after is None:
        return False
    return ts > following and far(ts, following) and far(ts, after) and not far(following, after)
