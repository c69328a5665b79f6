"""Blocks of time: how many a single run of each side is divided into."""

from __future__ import annotations

import math

from . import statistics
from .run import Run

__all__ = ["TESTED", "block_count"]

# Fewer requests in a block make its figures meaningless.
_MIN_REQUESTS = 5
_COUNTS = (24, 16, 12, 8)
# Metrics whose neighbouring blocks must not be correlated.
TESTED = ("syncs", "sync_time_sum", "syscall_latency_avg", "writeback_latency_avg")
# One-sided 1 % quantile of the standard normal: the test is repeated for several metrics and counts.
_MAX_CORRELATION = 2.326


def block_count(base: Run, new: Run, notes: list[str]) -> int | None:
    """Returns the largest number of blocks that are not correlated; None, with a note, if there is none."""
    requests = min(run.number("known.syncs") or 0 for run in (base, new))
    if not base.blocks or not new.blocks:
        return None
    candidates = [count for count in _COUNTS if requests >= count * _MIN_REQUESTS]
    for count in candidates:
        if not any(_is_correlated(run.blocks[count], count) for run in (base, new)):
            return count
    if candidates:
        notes.append(
            "blocks of time are correlated with the block before, whatever their length:"
            " the runs do not show how much chance contributes (record several runs of each side)"
        )
    else:
        notes.append(
            f"{requests} requests in a run are too few to divide it into blocks of time:"
            f" {_COUNTS[-1] * _MIN_REQUESTS} are needed (or several runs of each side)"
        )
    return None


def _is_correlated(blocks: dict[str, list[float | None]], count: int) -> bool:
    return any(
        statistics.autocorrelation(blocks[metric]) > _MAX_CORRELATION / math.sqrt(count)
        for metric in TESTED
    )
