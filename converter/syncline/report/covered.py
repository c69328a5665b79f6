"""What a recorder leaves out by its own rule, which no loss counts, in sentences that stand above every report."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["KEYS", "UNKNOWN", "sentences"]

_SLOWER = "slower_than_ns"
_RESOLUTION = "time_resolution_ns"
_LATENCY_RESOLUTION = "latency_resolution_ns"
# From this unit on, times do not say which of several short things were at once.
_COARSE_NS = 1_000_000
# Keys of `syncline_meta`.
KEYS = (_SLOWER, _RESOLUTION, _LATENCY_RESOLUTION)
# The value of a key whose number the input does not say.
UNKNOWN = "unknown"


def sentences(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Words the facts of the runs: pairs of a key and a value. The largest value of a key covers all runs."""
    found = []
    values: dict[str, list[str]] = {}
    for key, value in facts:
        values.setdefault(key, []).append(value)
    if slower := values.get(_SLOWER):
        numbers = [int(value) for value in slower if value != UNKNOWN]
        least = f"{max(numbers) / 1e6:g} ms" if len(numbers) == len(slower) else "a threshold"
        found.append(
            f"only calls that took longer than {least} are recorded, so counts, shares and percentiles are of these calls and not of all"
        )
    unit = max((int(value) for value in values.get(_RESOLUTION, [])), default=0)
    if unit >= _COARSE_NS:
        found.append(
            f"times are known to {_duration(unit)}, so wall times and the number of syncs or requests at once mean nothing"
        )
    unit = max((int(value) for value in values.get(_LATENCY_RESOLUTION, [])), default=0)
    if unit >= _COARSE_NS:
        found.append(
            f"latencies are rounded down to {_duration(unit)}, so their sums and averages are too small"
        )
    return found


def _duration(ns: int) -> str:
    return f"{ns / 1e9:g} s" if ns >= 10**9 else f"{ns / 1e6:g} ms"
