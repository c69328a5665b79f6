"""Says which marks are outside the time span of a recording, and what may be wrong with their times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from .mark import Mark

__all__ = ["complaint", "of_log"]


def complaint(
    marks: Sequence[Mark], first_ns: int, last_ns: int, path: str | os.PathLike[str]
) -> tuple[str, str] | None:
    """Returns an error message and a hint if marks are outside the log, which spans `first_ns` to `last_ns`.

    A mark that begins before the log may end within it, such as a page load that began before the first
    sync. It counts as outside only if another unit would move its begin into the log.
    """
    in_order = sorted(marks, key=lambda mark: mark.ts_ns)
    ends = [mark.ts_ns for mark in in_order[1:]] + [last_ns]
    outside = []
    for mark, until in zip(in_order, ends, strict=True):
        if first_ns <= mark.ts_ns <= last_ns:
            continue
        end = until if mark.dur_ns is None else mark.ts_ns + mark.dur_ns
        if mark.ts_ns > last_ns or end < first_ns or _other_unit([mark], first_ns, last_ns):
            outside.append(mark)
    if not outside:
        return None
    first = min(outside, key=lambda mark: mark.line)
    others = f", and {len(outside) - 1:,} more of {len(marks):,}," if len(outside) > 1 else ""
    message = (
        f"{path}:{first.line}: the mark '{first.name}' at {first.ts_ns} ns{others}"
        f" {'are' if others else 'is'} outside the log, which spans {first_ns} to {last_ns} ns"
    )
    hint = (
        "marks use the clock of the log (bpftrace's nsecs, CLOCK_BOOTTIME), and the unit of --time-unit"
        " or of the header (time_us)"
    )
    if change := _other_unit(outside, first_ns, last_ns):
        hint += f"; {change} they would be inside"
    return message, hint


def _other_unit(marks: Sequence[Mark], first_ns: int, last_ns: int) -> str:
    """Says by what to multiply or divide the times, if most marks are then inside the log; "" if no power of 1000 does that."""
    for power in (10**3, 10**6, 10**9):
        for change, scaled in (
            (f"multiplied by {power}", [mark.ts_ns * power for mark in marks]),
            (f"divided by {power}", [mark.ts_ns // power for mark in marks]),
        ):
            # A coarser unit rounds, which may move a mark at the first event before it.
            inside = sum(first_ns - power < ts < last_ns + power for ts in scaled)
            if 2 * inside > len(marks):
                return change
    return ""


def of_log(
    marks: Sequence[Mark], span_ns: tuple[int, int], path: str | os.PathLike[str]
) -> tuple[str, str]:
    """Returns an error message and a hint for an application's log of which no line is within the recording.

    Args:
        marks: of all lines with a time, in ns since 1970.
        span_ns: when the recording begins and ends, in ns since 1970.
    """
    first, last = (min(mark.ts_ns for mark in marks), max(mark.ts_ns for mark in marks))
    return (
        f"no line of {path} is within the recording, which is from {_time(span_ns[0])} to"
        f" {_time(span_ns[1])}; those with a time are from {_time(first)} to {_time(last)}",
        "if the log has the local time of another zone, name that zone: TZ=Europe/Berlin syncline ...",
    )


def _time(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"
