"""The history of a metric, as text and as a table for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from syncline.comparison.comparison import CANT_TELL
from syncline.dataset.layout import Entry
from syncline.printable import printable
from syncline.render.human import count, text
from syncline.report import Column, Report, Table
from syncline.report.run import Value

from .findings import Finding
from .history import Series

__all__ = ["REPORT", "as_table", "finding_text", "last_text", "render", "title"]

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 72
_COLUMNS = (
    ("host", "text", "Host; null if it is not known, or for all hosts together."),
    ("metric", "text", "Metric of the report summary."),
    ("scope", "text", "Its scope."),
    ("kind", "text", "step, episode (the level returned), drift, or last (the answer to --since-last)."),
    ("run", "text", "First run of it."),
    ("day", "text", "Its day."),
    ("until_run", "text", "Last run of an episode, of a drift, or of the last runs. Null for a step, which lasts."),
    ("until_day", "text", "Its day."),
    ("runs_before", "count", "Number of runs that `before` is the level of. Of a drift, its runs."),
    ("runs_after", "count", "Number of runs that `after` is the level of. Of a drift, its runs."),
    ("before", "unit", "Level before (around an episode, at the begin of a drift): geometric mean; mean if a run is 0 or less."),
    ("after", "unit", "Level after (in an episode, at the end of a drift)."),
    ("unit", "text", "Unit of the two."),
    ("change", "ratio", "after / before - 1; after - before for a share, or if before is 0."),
    ("low", "ratio", "Lower end of its interval, which holds at the confidence of the policy."),
    ("high", "ratio", "Upper end."),
    ("p", "ratio", "Chance of such a finding in any of the series if nothing changes."),
    ("visible", "ratio", "Of the last runs: the smallest rise, like `change`, that they show in 8 of 10 cases. Null for the others."),
    ("verdict", "text", "regression, improvement, no change (smaller than the tolerance), can't tell, or - without a direction. Null if the last runs cannot be compared."),
    ("reason", "text", "Why the verdict is can't tell or null. Null for the others."),
)  # fmt: skip
REPORT = Report("trend", "Trend", "", tuple(Column(*column) for column in _COLUMNS), "SELECT NULL")


def as_table(found: Sequence[Series]) -> Table:
    """Returns a row for each finding."""
    rows: list[tuple[Value, ...]] = []
    for series in found:
        of = (series.host, series.metric, series.scope)
        for finding in [*series.findings, *([series.last] if series.last else [])]:
            row, first, last = finding.row, *_ends(series, finding)
            lasts = finding.kind == "step"
            rows.append(
                (
                    *(*of, finding.kind, first.run, first.day),
                    *((None, None) if lasts else (last.run, last.day)),
                    *(finding.base_runs, finding.new_runs, row.base, row.new, series.unit),
                    *(row.change, _finite(row.interval.low), _finite(row.interval.high)),
                    *(finding.p, finding.visible, row.verdict, row.reason or None),
                )
            )
        if series.last_unknown:
            empty = [None] * (len(_COLUMNS) - len(of) - 2)
            rows.append((*of, "last", *empty, series.last_unknown))
    return Table([name for name, *_ in _COLUMNS], rows)


def _ends(series: Series, finding: Finding) -> tuple[Entry, Entry]:
    return series.entries[finding.start], series.entries[finding.end - 1]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def title(series: Series) -> str:
    """Returns what a series is of."""
    scope = "" if series.scope == "all" else f" of {series.scope}"
    host = f", {series.host or 'host not known'}" if series.is_of_host else ""
    return f"{series.metric}{scope}{host}"


def finding_text(series: Series, finding: Finding) -> str:
    """Returns a sentence on a finding."""
    row, (first, last) = finding.row, _ends(series, finding)
    old, new = (text(value, series.unit) for value in (row.base, row.new))
    word = "rose" if (row.new or 0) > (row.base or 0) else "fell"
    amount = ""
    if row.relative and row.change is not None:
        amount = f", {row.change:+.0%}"
        if math.isfinite(row.interval.low) and math.isfinite(row.interval.high):
            amount += f" ({row.interval.low:+.0%} to {row.interval.high:+.0%})"
    runs = f"{count(finding.end - finding.start, 'run')}, {first.run} to {last.run}"
    days = f"{first.day} to {last.day}"
    said = {
        "step": f"{first.day}: {word} from {old} to {new}{amount}, with the run {first.run}",
        "episode": f"{days}: {word} from {old} to {new}{amount} and returned, an episode of {runs}",
        "drift": f"{days}: drifted from {old} to {new}{amount}, over {runs}",
        "last": f"the last {count(finding.new_runs, 'run')}: {new} after {old} in the {count(finding.base_runs, 'run')} before{amount}",
    }[finding.kind]
    verdict = {"no change": "within the tolerance", "-": "neither better nor worse"}
    judged = verdict.get(row.verdict, row.verdict)
    if row.verdict == CANT_TELL and row.reason:
        judged += f", because {row.reason}"
    if finding.visible is not None and row.verdict != "regression" and row.relative:
        judged += f"; {finding.visible:+.0%} would have been seen"
    return f"{said}: {judged}"


def last_text(series: Series) -> str:
    """Returns a sentence on the last runs; empty if they were not asked for."""
    if series.last:
        return finding_text(series, series.last)
    return f"the last runs cannot be compared: {series.last_unknown}" if series.last_unknown else ""


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
        elif not series.findings:
            lines.append("  no change found")
        if series.skipped:
            lines.append(f"  the {count(series.skipped, 'oldest run')} were not searched")
        said = [finding_text(series, finding) for finding in series.findings]
        lines += [f"  {printable(one)}" for one in (*said, last_text(series)) if one]
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
