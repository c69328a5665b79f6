"""Finds the files, threads and stacks that contribute most to what got worse. They are ranked, not tested for significance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from syncline.frames import PossibleMatches

from . import statistics
from .comparison import Comparison, Contributors
from .metrics import measure_of, summed

__all__ = ["contributors"]

_MAX_ROWS = 3
_MAX_GROUPS = 3
# A group with a smaller share of all changes is left out.
_MIN_SHARE = 0.02


def contributors(comparison: Comparison) -> Iterator[Contributors]:
    """Finds the groups that changed most for each of the worst regressions, one for each measure."""
    worst = [row for row in comparison.rows if row.verdict == "regression" and not row.kind]
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
        sides = [comparison.base.runs, comparison.new.runs]
        names = {name for runs in sides for run in runs for name in run.groups.get(kind, {})}
        sums: dict[str, tuple[float, float]] = {}
        for name in names:
            groups = [[run.groups.get(kind, {}).get(name) for run in runs] for runs in sides]
            base, new = (statistics.mean([summed(column, one) for one in side]) for side in groups)
            # If one side does not know the sum, it may not have changed.
            if base is not None and new is not None:
                sums[name] = (base, new)
        if len(names) < 2:
            continue
        sign = {"higher": 1, "lower": -1}.get(worse, 0)
        changes = {name: b - a for name, (a, b) in sums.items()}
        if kind == "stack":
            matches = PossibleMatches(sums)
            changes = {name: _least_change(name, sums, matches.of(name)) for name in changes}
        total = sum(map(abs, changes.values()))
        ranked = sorted(
            changes, key=lambda name: (-(changes[name] * sign or abs(changes[name])), name)
        )
        for name in ranked[:_MAX_GROUPS]:
            change = changes[name] * sign if sign else abs(changes[name])
            if total and change >= _MIN_SHARE * total:
                yield kind, name, sums[name][0], sums[name][1]


def _least_change(name: str, sums: dict[str, tuple[float, float]], others: list[str]) -> float:
    """Returns the least change of a stack if any of the other stacks are the same call path."""
    base, new = sums[name]
    if new < base:
        return min(0.0, new + sum(sums[one][1] for one in others) - base)
    return max(0.0, new - base - sum(sums[one][0] for one in others))
