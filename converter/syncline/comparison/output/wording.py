"""Sentences and figures that all formats for people share: changes, intervals, the verdict, the method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from syncline.render import human

from ..comparison import CANT_TELL, CUT_OFF, Comparison, Row
from ..run import Side
from ..statistics import POWER

__all__ = [
    "change",
    "contributors",
    "headline",
    "interval",
    "method",
    "power",
    "scope",
    "side",
    "visible",
]

# Rows whose power is named; JSON has it of all.
_MOST_NAMED = 3


def scope(row: Row) -> str:
    """Returns the requests that the row covers."""
    if row.kind == "query":
        return "query"
    return f"{row.kind} {row.name}" if row.kind else row.name


def change(row: Row) -> str:
    """Returns the change of the mean."""
    return human.MISSING if row.change is None else _change_text(row, row.change)


def interval(row: Row) -> str:
    """Returns the interval of the change."""
    low, high = row.interval.low, row.interval.high
    if math.isinf(low) and math.isinf(high):
        return human.MISSING
    return f"{_change_text(row, low)} to {_change_text(row, high)}"


def _change_text(row: Row, value: float) -> str:
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    if row.relative:
        return f"{100 * value:+,.1f} %" if abs(value) < 10 else f"{100 * value:+,.0f} %"
    if row.unit == "share":
        return f"{100 * value:+.1f} pp"
    text = human.text(value, row.unit)
    return text if value < 0 else f"+{text}"


def side(one: Side) -> str:
    """Returns the inputs of a side and its number of runs."""
    names = ", ".join(one.inputs[:3]) + (" ..." if len(one.inputs) > 3 else "")
    return f"{names} ({len(one.runs)} run{'s' * (len(one.runs) != 1)})"


def headline(comparison: Comparison) -> str:
    """Returns the verdict on the whole diff in a sentence."""
    if comparison.no_verdict is not None:
        return f"No verdict: {comparison.no_verdict}."
    if comparison.same_runs:
        return "Nothing was compared: base and new are the same runs."
    gate = [row for row in comparison.rows if row.gate]
    counts = Counter(row.verdict for row in gate)
    if comparison.verdict == "regression":
        others = sum(row.verdict == "regression" for row in comparison.rows) - counts["regression"]
        outside = f", and {others} outside the gate" if others else ""
        return f"Regression: {counts['regression']} of the {_gate_rows(gate)} got worse{outside}."
    if comparison.verdict == CANT_TELL:
        if not gate and comparison.policy.has_listed_gate:
            return "Can't tell: the sides have no figure in common that the policy watches."
        if not gate:
            return "Can't tell: the sides have no figure in common that the gate watches."
        undecided = comparison.undecided()
        few = [row for row in undecided if row.reason == CUT_OFF or row.reason.startswith("too few")]  # fmt: skip
        if few:
            return f"Can't tell: {few[0].reason}."
        looks = (
            "may have got worse"
            if comparison.policy.cant_tell == "strict"
            else _too_noisy(undecided)
            if comparison.policy.cant_tell in ("power", "pass")
            else "looks worse, or has an unbounded interval"
            if len(undecided) == 1
            else "look worse, or have an unbounded interval"
        )
        rest = counts[CANT_TELL] - len(undecided)
        others = f", and {rest} more {'is' if rest == 1 else 'are'} open" if rest else ""
        return (
            f"Can't tell: {len(undecided)} of the {_gate_rows(gate)} {looks}{others};"
            " more runs give narrower intervals."
        )
    better = f"; {counts['improvement']} got better" if counts["improvement"] else ""
    unclear = sum(row.verdict == CANT_TELL and row.may_be_worse for row in gate)
    untold = f"; {unclear} cannot be told" if unclear else ""
    notable = sum(row.verdict == "notable" for row in comparison.rows)
    outside = f"; {notable} outside the gate got worse" if notable else ""
    return f"No regression found in the {_gate_rows(gate)}{better}{untold}{outside}."


def _too_noisy(undecided: list[Row]) -> str:
    one = len(undecided) == 1
    looks, varies = ("looks", "varies") if one else ("look", "vary")
    return f"{looks} worse than what would have been seen, or {varies} so much that a doubling may not be seen"


def visible(row: Row) -> str:
    """Returns the smallest change that the row would have shown."""
    return human.MISSING if row.visible is None else _change_text(row, row.visible)


def power(comparison: Comparison) -> str:
    """Returns what the comparison would have seen, the least certain first; empty if it is not known of any row."""
    rows = [
        row
        for row in comparison.rows
        if row.gate
        and row.visible is not None
        and row.verdict in (CANT_TELL, "no change", "improvement")
    ]
    # A figure that never varies shows what the tolerance says.
    rows = [row for row in rows if row.relative and row.interval.low != row.interval.high]
    if comparison.no_verdict is not None or comparison.same_runs or not rows:
        return ""
    rows.sort(key=lambda row: -abs(row.visible or 0))
    named = [f"{visible(row)} of {_named(row)}" for row in rows[:_MOST_NAMED]]
    rest = len(rows) - len(named)
    more = f", and less of {rest} more" if rest else ""
    return f"Would have seen, in {POWER:.0%} of cases: {', '.join(named)}{more}."


def _named(row: Row) -> str:
    return row.metric if row.name in ("all", "") else f"{row.metric} of {scope(row)}"


def _gate_rows(gate: list[Row]) -> str:
    return f"{len(gate)} row{'s' * (len(gate) != 1)} in the gate"


def method(comparison: Comparison) -> str:
    """Returns how the rows were judged, with the seed."""
    how = comparison.method
    if comparison.no_verdict is not None:
        return "The figures are shown as they were read; none was judged."
    alpha = _percent(1 - how.confidence)
    units = "blocks of time" if how.units == "blocks" else "runs"
    if how.base_units < 2 or how.new_units < 2:
        return "A single run does not show how much runs vary: docs/reference/diff.md says how many are needed."  # fmt: skip
    permutations = (
        f"all {how.permutations:,} permutations of the {units} (seed {how.seed} was not needed)"
        if how.exhaustive
        else f"{how.permutations - 1:,} permutations of the {units}, drawn with seed {how.seed}"
    )
    rows = "in any row"
    if comparison.policy.has_listed_gate:
        rows = (
            f"in the gate (rows: {how.gate_rows}), and at most {alpha} report any other row"
            f" (rows: {how.other_rows}) as notable"
        )
    elif how.gate_rows and how.other_alpha:
        rows += (
            f" ({_percent(how.gate_alpha)} in the {how.gate_rows} of the gate,"
            f" {_percent(how.other_alpha)} in {how.other_rows} others)"
        )
    return (
        f"{how.base_units} against {how.new_units} {units}. Each bound of an interval holds with"
        f" {how.confidence:.0%} confidence. Of diffs of equal sides, at most {alpha} report a regression"
        f" {rows}. Tested with {permutations}."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def contributors(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yields a heading and the lines of groups for each regression that has contributors."""
    for one in comparison.contributors:
        unit = one.measure.unit
        lines = []
        for kind, name, base, new in one.groups:
            a, b = human.text(base, unit), human.text(new, unit)
            lines.append(f"{kind} {human.text(name, 'text')}: {a} -> {b}")
        yield (
            f"Largest contributors to {one.row.metric} ({one.measure.text} per run; not tested)",
            lines,
        )
