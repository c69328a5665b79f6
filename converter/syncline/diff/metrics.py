"""What can be compared: which way is worse, how much of a change matters, what the gate watches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BLOCK_METRICS",
    "BLOCK_SUMS",
    "DEFAULT_GATE",
    "GROUP_METRICS",
    "KINDS",
    "NO_DIRECTION",
    "Bounds",
    "Group",
    "Tolerance",
    "bounds",
    "default_tolerance",
    "figure",
    "grows",
    "measure_of",
    "summed",
    "total",
]

Worse = Literal["higher", "lower", "both", "none"]

KINDS = ("file", "thread", "stack")

# Of the summary, with the scope `all`; what else it has is shown, and judged by --all.
DEFAULT_GATE = (
    "syncs",
    "empty_share",
    "syscall_latency_avg",
    "syscall_latency_p50",
    "syscall_latency_p90",
    "syscall_latency_p99",
    "writeback_latency_avg",
    "writeback_latency_p99",
    "writeback_amount_avg",
    "writeback_amount_sum",
    "sync_wall_time",
    "*_per_mark",
)

# Neither more nor less of it is worse, or one request alone makes it.
NO_DIRECTION = (
    "runs",
    "unique_files",
    "parallelism",
    "attribution_share",
    "incomplete",
    "unmatched_calls",
    "background_bios",
    "background_bytes",
    "losses",
    "marks",
    "*_max",
)

# What sql/diff/blocks.sql cuts into blocks of time: those of which the blocks add up, and others.
BLOCK_SUMS = (
    "syncs",
    "syscall_latency_sum",
    "writeback_latency_sum",
    "writeback_amount_sum",
    "sync_time_sum",
    "sync_wall_time",
)
BLOCK_METRICS = (
    *BLOCK_SUMS,
    "empty_share",
    *(f"{name}_{part}" for name in ("syscall_latency", "writeback_latency") for part in ("avg", "p50", "p90", "p99")),
    *(f"writeback_amount_{part}" for part in ("avg", "p50", "p99")),
)  # fmt: skip


@dataclass(frozen=True)
class Tolerance:
    """The smallest change that matters: a part of the base, or in the metric's own unit."""

    amount: float
    relative: bool = True


def default_tolerance(metric: str) -> Tolerance:
    """5 %; 10 % for a tail, of which few requests tell; two percentage points for a share."""
    if metric.endswith("_share"):
        return Tolerance(0.02, relative=False)
    return Tolerance(0.1 if metric.endswith(("_p99", "_p999")) else 0.05)


# What a longer run has not more of; of any other metric it has.
_OF_A_REQUEST = ("_avg", "_p50", "_p90", "_p99", "_p999", "_share", "parallelism")


def grows(metric: str) -> bool:
    """Whether a run that was cut off has less of it for that alone: counts, sums, the largest."""
    return not metric.endswith(_OF_A_REQUEST)


# A row of sql/diff/groups.sql, or several of them added up.
Group = Mapping[str, float]

# Metrics of a group, with their unit: a sum, or (of what, over what).
GROUP_METRICS: dict[str, tuple[str, str, str | None]] = {
    "syncs": ("count", "syncs", None),
    "empty_share": ("share", "empty", "whole"),
    "syscall_latency_avg": ("ns", "syscall_ns", "syscalls"),
    "syscall_latency_sum": ("ns", "syscall_ns", None),
    "writeback_latency_avg": ("ns", "writeback_ns", "writebacks"),
    "writeback_latency_sum": ("ns", "writeback_ns", None),
    "writeback_amount_avg": ("bytes", "whole_bytes", "whole"),
    "writeback_amount_sum": ("bytes", "bytes", None),
    "sync_time_sum": ("ns", "time_ns", None),
}
# A sum over requests none of which has a known value is no zero.
_KNOWN_BY = {
    "empty": "whole",
    "syscall_ns": "syscalls",
    "writeback_ns": "writebacks",
    "time_ns": "times",
    "bytes": "amounts",
}


def figure(metric: str, group: Group | None) -> float | None:
    """A metric of a group; a group that is not there has no requests, and no averages."""
    _, part, whole = GROUP_METRICS[metric]
    if whole is None:
        return summed(part, group)
    return group[part] / group[whole] if group and group[whole] else None


def summed(column: str, group: Group | None) -> float | None:
    """A sum or count of a group: 0 without requests, None where it is known of none of them."""
    if group is None:
        return 0.0
    if group["syncs"] and not group[_KNOWN_BY.get(column, "syncs")]:
        return None
    return float(group[column])


# Between these a figure lies, or is not known.
Bounds = tuple[float | None, float | None]


def bounds(metric: str, group: Group | None, perhaps: Group | None) -> Bounds:
    """A metric of a group to which some of the requests of another may belong."""
    value = figure(metric, group)
    if value is None or perhaps is None:
        return value, value
    unit, part, whole = GROUP_METRICS[metric]
    if whole is None or group is None:
        return value, value + perhaps[part]
    # Each bound has what moves the figure its way, and nothing of what moves it back. Of an average both may be one request.
    counted = unit == "share"
    low = group[part] / (group[whole] + perhaps[whole] - (perhaps[part] if counted else 0))
    high = (group[part] + perhaps[part]) / (group[whole] + (perhaps[part] if counted else 0))
    return low, high


def total(groups: Iterable[Group]) -> Group | None:
    """Groups added up; None for none."""
    sums: dict[str, float] = {}
    for group in groups:
        for name, value in group.items():
            sums[name] = sums.get(name, 0) + value
    return sums or None


def measure_of(metric: str) -> tuple[str, str, str]:
    """What a metric's change is told by, group for group: (column of a group, its unit, its name)."""
    if metric.startswith("syscall_latency"):
        return "syscall_ns", "ns", "syscall latency, summed"
    if metric.startswith("writeback_latency"):
        return "writeback_ns", "ns", "writeback latency, summed"
    if metric.startswith("writeback_amount"):
        return "bytes", "bytes", "bytes written back"
    if metric.startswith("empty"):
        return "empty", "count", "empty syncs"
    if metric.startswith("syncs"):
        return "syncs", "count", "syncs"
    return "time_ns", "ns", "time in syncs, summed"
