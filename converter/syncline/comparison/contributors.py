"""Finds the files, threads and stacks that contribute most to what got worse. They are ranked, not tested for significance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from syncline.frames import PossibleMatches

from . import statistics
from .comparison import Comparison, Contributors
from .metrics import measure_of, summed
from .run import Run, Side

__all__ = ["changed_most", "contributors"]

_MAX_ROWS = 3
_MAX_GROUPS = 3
# A group with a smaller share of all changes is left out.
_MIN_SHARE = 0.02


def contributors(comparison: Comparison) -> Iterator[Contributors]:
    """For each of the worst regressions, of which it takes one for each measure, finds the groups that changed most."""
    worst = [row for row in comparison.rows if row.verdict == "regression" and not row.kind]
    # A change from 0, or one that is judged as an amount, has no relative size, so it comes first.
    worst.sort(key=lambda row: -abs(row.change or 0) if row.relative else -math.inf)
    seen: set[str] = set()
    for row in worst:
        measure = measure_of(row.metric)
        if measure.column in seen:
            continue
        seen.add(measure.column)
        groups = list(_groups(comparison, measure.column, row.criteria.worse))
        if groups:
            yield Contributors(row, measure, groups)
        if len(seen) == _MAX_ROWS:
            return


def _groups(
    comparison: Comparison, column: str, worse: str
) -> Iterator[tuple[str, str, float, float]]:
    for kind in ("stack", "file", "thread"):
        for name, base, new in changed_most(comparison.base, comparison.new, kind, column, worse):
            yield kind, name, base, new


def changed_most(
    base_side: Side, new_side: Side, kind: str, column: str, worse: str
) -> Iterator[tuple[str, float, float]]:
    """Yields up to three groups of a kind, the one that got worse by most first.

    Each has its name and the sums of `column` per run, of base and of new. If there is only one group, nothing is yielded.

    Args:
        worse: `higher` or `lower`; anything else ranks changes in both directions.
    """
    sides = [base_side.runs, new_side.runs]
    names = {name for runs in sides for run in runs for name in run.groups.get(kind, {})}
    sums: dict[str, tuple[float, float]] = {}
    for name in names:
        base, new = (_mean(kind, name, column, runs) for runs in sides)
        # If one side does not know the sum, it may not have changed.
        if base is not None and new is not None:
            sums[name] = (base, new)
    if len(names) < 2:
        return
    sign = {"higher": 1, "lower": -1}.get(worse, 0)
    changes = {name: b - a for name, (a, b) in sums.items()}
    if kind == "stack":
        matches = PossibleMatches(sums)
        changes = {name: _least_change(name, sums, matches.of(name)) for name in changes}
    total = sum(map(abs, changes.values()))
    ranked = sorted(changes, key=lambda name: (-(changes[name] * sign or abs(changes[name])), name))
    for name in ranked[:_MAX_GROUPS]:
        change = changes[name] * sign if sign else abs(changes[name])
        if total and change >= _MIN_SHARE * total:
            yield name, sums[name][0], sums[name][1]


def _mean(kind: str, name: str, column: str, runs: list[Run]) -> float | None:
    """Returns the mean over the runs of a group's sum; None if a baseline left the group out."""
    if any(kind in run.truncated_kinds and name not in run.groups.get(kind, {}) for run in runs):
        return None
    return statistics.mean([summed(column, run.groups.get(kind, {}).get(name)) for run in runs])


def _least_change(name: str, sums: dict[str, tuple[float, float]], others: list[str]) -> float:
    """Returns the change of a stack that is certain, whichever of the `others` are the same call path."""
    base, new = sums[name]
    if new < base:
        return min(0.0, new + sum(sums[one][1] for one in others) - base)
    return max(0.0, new - base - sum(sums[one][0] for one in others))
