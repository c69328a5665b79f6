"""The metrics of a diff: which direction is worse, which change matters, and which rows the gate watches by default."""

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
    "PHASE_METRICS",
    "Bounds",
    "Group",
    "Measure",
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

# Metrics of the summary, of the scope `all`. All other metrics are judged too, and printed with --all.
DEFAULT_GATE = (
    "syncs",
    "failed_syncs",
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

# Metrics that are worse in neither direction, or that a single request determines.
NO_DIRECTION = (
    "runs",
    "requests",
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

_COMMITS = (
    "earlier commit",
    "commit start",
    "commit locking",
    "commit flushing",
    "commit logging",
    "commit wait",
    "commit",
    "fast commit",
    "fast commit wait",
)
# Metric -> the phases whose time it is the sum of, on average over the syncs. A recording shows all steps of a commit or none, and
# which of them a sync waits for is chance.
PHASE_METRICS: dict[str, tuple[str, ...]] = {
    "phase_cpu_wait_avg": ("cpu wait",),
    "phase_lock_wait_avg": ("lock wait",),
    "phase_flush_avg": ("flush",),
    "phase_commit_avg": _COMMITS,
    "phase_metadata_wait_avg": ("metadata wait",),
    "phase_device_avg": ("device",),
    "phase_queue_avg": ("queue",),
    "phase_writeback_avg": ("writeback",),
    "phase_submit_avg": ("submit",),
    "phase_earlier_writeback_avg": ("earlier writeback",),
    "phase_completion_avg": ("completion",),
    "phase_before_submit_avg": ("before submit",),
    "phase_after_completion_avg": ("after completion",),
}

# Metrics that sql/commands/diff/blocks.sql computes for each block of time. BLOCK_SUMS add up over the blocks.
BLOCK_SUMS = (
    "syncs",
    "failed_syncs",
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
    """The smallest change that matters: a share of the base, or an amount in the metric's unit."""

    amount: float
    relative: bool = True


def default_tolerance(metric: str) -> Tolerance:
    """Returns 2 percentage points for a share, 10 % for a tail percentile (few requests determine it), else 5 %."""
    if metric.endswith("_share"):
        return Tolerance(0.02, relative=False)
    return Tolerance(0.1 if metric.endswith(("_p99", "_p999")) else 0.05)


# Metrics of a single request: they do not grow with the length of a run. All others do.
_PER_REQUEST = ("_avg", "_p50", "_p90", "_p99", "_p999", "_share", "parallelism")


def grows(metric: str) -> bool:
    """Returns whether a metric grows with the length of a run: a count, a sum or a maximum."""
    return not metric.endswith(_PER_REQUEST)


# A row of sql/commands/diff/groups.sql, or the sum of several rows.
Group = Mapping[str, float]

# Metric of a group -> (unit, column, column that it is divided by or None for a sum).
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
# Column -> the column with its number of known values. A sum over requests without a known value is null, not 0.
_KNOWN_COUNT = {
    "empty": "whole",
    "syscall_ns": "syscalls",
    "writeback_ns": "writebacks",
    "time_ns": "times",
    "bytes": "amounts",
}


def figure(metric: str, group: Group | None) -> float | None:
    """Returns a metric of a group. A group that does not exist has 0 requests and no averages."""
    _, part, whole = GROUP_METRICS[metric]
    if whole is None:
        return summed(part, group)
    return group[part] / group[whole] if group and group[whole] else None


def summed(column: str, group: Group | None) -> float | None:
    """Returns a sum or count of a group: 0 without requests, None if no request has a known value."""
    if group is None:
        return 0.0
    if group["syncs"] and not group[_KNOWN_COUNT.get(column, "syncs")]:
        return None
    return float(group[column])


# The lowest and the highest value that a metric may have; None where it is not known.
Bounds = tuple[float | None, float | None]


def bounds(metric: str, group: Group | None, ambiguous: Group | None) -> Bounds:
    """Returns the range of a metric of `group` if any of the requests in `ambiguous` may belong to it."""
    value = figure(metric, group)
    if value is None or ambiguous is None:
        return value, value
    unit, part, whole = GROUP_METRICS[metric]
    if whole is None or group is None:
        return value, value + ambiguous[part]
    # Each bound adds only what moves the metric in its direction. A single request may move an average in both.
    is_share = unit == "share"
    low = group[part] / (group[whole] + ambiguous[whole] - (ambiguous[part] if is_share else 0))
    high = (group[part] + ambiguous[part]) / (group[whole] + (ambiguous[part] if is_share else 0))
    return low, high


def total(groups: Iterable[Group]) -> Group | None:
    """Adds groups up; None if there are none."""
    sums: dict[str, float] = {}
    for group in groups:
        for name, value in group.items():
            sums[name] = sums.get(name, 0) + value
    return sums or None


@dataclass(frozen=True)
class Measure:
    """The sum by which the groups that contribute to a change are ranked."""

    # The column of a group that is added up.
    column: str
    unit: str
    text: str


def measure_of(metric: str) -> Measure:
    """Returns the measure for the contributors to a change of `metric`."""
    if metric.startswith("syscall_latency"):
        return Measure("syscall_ns", "ns", "total syscall latency")
    if metric.startswith("writeback_latency"):
        return Measure("writeback_ns", "ns", "total writeback latency")
    if metric.startswith("writeback_amount"):
        return Measure("bytes", "bytes", "bytes written back")
    if metric.startswith("empty"):
        return Measure("empty", "count", "empty syncs")
    if metric.startswith("syncs"):
        return Measure("syncs", "count", "syncs")
    return Measure("time_ns", "ns", "total time in syncs")
