"""The history of a metric, as text and as a table for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from syncline.comparison.comparison import CANT_TELL
from syncline.printable import printable
from syncline.render.human import count, text
from syncline.report import Column, Report, Table

from .history import Change, Series

__all__ = ["REPORT", "as_table", "change_text", "render", "title"]

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 72
_COLUMNS = (
    ("host", "text", "Host; null if it is not known, or for all hosts together."),
    ("metric", "text", "Metric of the report summary."),
    ("scope", "text", "Its scope."),
    ("run", "text", "First run after the change."),
    ("day", "text", "Its day."),
    ("runs_before", "count", "Number of runs between the change before and this one."),
    ("runs_after", "count", "Number of runs from this change to the next."),
    ("before", "unit", "Mean of the runs before."),
    ("after", "unit", "Mean of the runs after."),
    ("unit", "text", "Unit of the two."),
    ("change", "ratio", "after / before - 1; after - before for a share, or if before is 0."),
    ("low", "ratio", "Lower end of its interval, which holds at the confidence of the policy."),
    ("high", "ratio", "Upper end."),
    ("p", "ratio", "Chance that runs in a random order differ as much at their best place."),
    ("verdict", "text", "regression, improvement, no change (smaller than the tolerance), can't tell, or - without a direction."),
    ("reason", "text", "Why the verdict is can't tell. Null for the others."),
)  # fmt: skip
REPORT = Report("trend", "Trend", "", tuple(Column(*column) for column in _COLUMNS), "SELECT NULL")


def as_table(found: Sequence[Series]) -> Table:
    """Returns a row for each change."""
    rows = []
    for series in found:
        for number, change in enumerate(series.changes):
            entry, row = series.entries[change.at], change.row
            start = series.changes[number - 1].at if number else 0
            _, end = series.segment(change.at)
            rows.append(
                (
                    *(series.host, series.metric, series.scope, entry.run, entry.day),
                    *(change.at - start, end - change.at, row.base, row.new, series.unit),
                    *(row.change, _finite(row.interval.low), _finite(row.interval.high)),
                    *(change.p, row.verdict, row.reason or None),
                )
            )
    return Table([name for name, *_ in _COLUMNS], rows)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def title(series: Series) -> str:
    """Returns what a series is of."""
    scope = "" if series.scope == "all" else f" of {series.scope}"
    host = f", {series.host or 'host not known'}" if series.is_of_host else ""
    return f"{series.metric}{scope}{host}"


def change_text(series: Series, change: Change) -> str:
    """Returns a sentence on a change."""
    row, entry = change.row, series.entries[change.at]
    word = "rose" if (row.new or 0) > (row.base or 0) else "fell"
    values = f"{text(row.base, series.unit)} to {text(row.new, series.unit)}"
    amount = ""
    if row.relative and row.change is not None:
        amount = f", {row.change:+.0%}"
        if math.isfinite(row.interval.low) and math.isfinite(row.interval.high):
            amount += f" ({row.interval.low:+.0%} to {row.interval.high:+.0%})"
    verdict = {"no change": "within the tolerance", "-": "neither better nor worse"}
    said = verdict.get(row.verdict, row.verdict)
    if row.verdict == CANT_TELL and row.reason:
        said += f", because {row.reason}"
    return f"{entry.day}: {word} from {values}{amount}, with the run {entry.run}: {said}"


def render(found: Sequence[Series], left_out: Sequence[str]) -> str:
    """Renders the history as text."""
    lines = [f"warning: {printable(one)}" for one in left_out]
    for series in found:
        first, last = series.entries[0], series.entries[-1]
        span = f"{count(len(series.values), 'run')} from {first.day} to {last.day}"
        unknown = f"; not known in {series.unknown:,} more" if series.unknown else ""
        low, high = min(series.values), max(series.values)
        lines += [
            "",
            f"{printable(title(series))}: {span}, lowest {text(low, series.unit)}, highest {text(high, series.unit)}{unknown}",
            f"  {_bars(series.values)}",
        ]
        if series.too_few:
            lines.append(f"  too few runs to find a change: {series.too_few}")
        elif not series.changes:
            lines.append("  no change found")
        lines += [f"  {printable(change_text(series, change))}" for change in series.changes]
    return "\n".join(lines).lstrip("\n") + "\n"


def _bars(values: Sequence[float]) -> str:
    """Draws the values as bars, from the lowest to the highest. A long series is shown as means of equal parts."""
    if len(values) > _WIDTH:
        cuts = [round(number * len(values) / _WIDTH) for number in range(_WIDTH + 1)]
        parts = [values[a:b] for a, b in pairwise(cuts)]
        values = [sum(part) / len(part) for part in parts]
    low, high = min(values), max(values)
    if low == high:
        return _BARS[3] * len(values)
    return "".join(_BARS[round((value - low) / (high - low) * 7)] for value in values)
