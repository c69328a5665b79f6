"""What all forms for people say alike: changes, intervals, the verdict, the method."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from syncline.render import human
from syncline.report import Column, Report, Table

from ..compare import CANT_TELL, CUT_OFF, Comparison, Row
from ..comparability import same_runs
from ..sides import Side

__all__ = [
    "change",
    "headline",
    "interval",
    "method",
    "moved",
    "of",
    "rows_to_show",
    "side",
    "table",
]

# What a reader looks for first.
_ORDER = ("regression", CANT_TELL, "notable", "improvement", "no change", "-")
_COLUMNS = (
    Column("of", "text", "What of."),
    Column("metric", "text", "Metric."),
    Column("gate", "text", "Whether the gate watches it."),
    Column("base", "unit", "Mean over the runs of the base."),
    Column("new", "unit", "Mean over the new runs."),
    Column("change", "ratio", "Of the mean."),
    Column("interval", "ratio", "Of the change."),
    Column("verdict", "text", "Verdict."),
    Column("why", "prose", "Why it cannot be told."),
)


def of(row: Row) -> str:
    """What the row is of."""
    if row.kind == "query":
        return "query"
    if not row.kind:
        return "whole" if row.name == "all" else row.name
    return f"{row.kind} {row.name}"


def change(row: Row) -> str:
    """The change of the mean."""
    return human.MISSING if row.change is None else _apart(row, row.change)


def interval(row: Row) -> str:
    """Its interval; nothing where nothing is known."""
    low, high = row.interval.low, row.interval.high
    if math.isinf(low) and math.isinf(high):
        return human.MISSING
    return f"{_apart(row, low)} to {_apart(row, high)}"


def _apart(row: Row, value: float) -> str:
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    if row.relative:
        return f"{100 * value:+,.1f} %" if abs(value) < 10 else f"{100 * value:+,.0f} %"
    if row.unit == "share":
        return f"{100 * value:+.1f} pp"
    text = human.text(value, row.unit)
    return text if value < 0 else f"+{text}"


def side(one: Side) -> str:
    """The inputs of a side and how many runs they are."""
    names = ", ".join(one.inputs[:3]) + (" ..." if len(one.inputs) > 3 else "")
    return f"{names} ({_runs(len(one.runs))})"


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"


def headline(comparison: Comparison) -> str:
    """The verdict of the whole, in a sentence."""
    if comparison.no_verdict is not None:
        return f"No verdict: {comparison.no_verdict}."
    if same_runs(comparison.base, comparison.new):
        return "Nothing was compared: base and new are the same."
    gate = [row for row in comparison.rows if row.gate]
    counts = Counter(row.verdict for row in gate)
    if comparison.verdict == "regression":
        others = sum(row.verdict == "regression" for row in comparison.rows) - counts["regression"]
        beside = f", and {others} beside them" if others else ""
        return f"Regression: {counts['regression']} of the {_watched(gate)} got worse{beside}."
    if comparison.verdict == CANT_TELL:
        if not gate and comparison.policy.narrow:
            return "Can't tell: of what the policy watches the sides have nothing in common."
        if not gate:
            return "Can't tell: the sides have no figure in common that the gate watches."
        unsure = comparison.unsure()
        few = [row for row in unsure if row.why == CUT_OFF or row.why.startswith("too few")]
        if few:
            return f"Can't tell: {few[0].why}."
        looks = (
            "may have got worse"
            if comparison.policy.cant_tell == "strict"
            else "look worse, or could be anything"
        )
        return (
            f"Can't tell: {len(unsure)} of the {_watched(gate)} {looks}; more runs narrow it down."
        )
    better = f"; {counts['improvement']} got better" if counts["improvement"] else ""
    room = sum(row.verdict == CANT_TELL and row.open for row in gate)
    wide = f"; the intervals of {room} leave room for one" if room else ""
    notable = sum(row.verdict == "notable" for row in comparison.rows)
    beside = f"; {notable} that it does not watch got worse" if notable else ""
    return f"No regression found in the {_watched(gate)}{better}{wide}{beside}."


def _watched(gate: list[Row]) -> str:
    return f"{len(gate)} figure{'s' * (len(gate) != 1)} that the gate watches"


def method(comparison: Comparison) -> str:
    """How it was judged, with the seed."""
    how = comparison.method
    if comparison.no_verdict is not None:
        return "The figures are as they were read; none was judged."
    percent = _percent(1 - how.confidence)
    units = "blocks of time" if how.units == "blocks" else "runs"
    if how.base_units < 2 or how.new_units < 2:
        return "One run of a side says nothing of chance: see docs/diff.md for how many are needed."
    ways = (
        f"all {how.arrangements:,} ways to deal them to two sides (seed {how.seed} was not needed)"
        if how.exhaustive
        else f"{how.arrangements - 1:,} ways to deal them to two sides, drawn with seed {how.seed}"
    )
    parts = (
        f" ({_percent(how.gate_alpha)} for the {how.gate_rows} of the gate,"
        f" {_percent(how.detail_alpha)} for {how.detail_rows} others)"
        if how.gate_rows and how.detail_alpha
        else ""
    )
    if comparison.policy.narrow:
        parts = f" of the gate ({how.gate_rows}), and as few say notable of any other ({how.detail_rows})"
    return (
        f"{how.base_units} against {how.new_units} {units}; each bound of an interval holds with"
        f" {how.confidence:.0%}; of diffs of equal sides at most {percent} say regression of any"
        f" row{parts}: judged by {ways}."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def rows_to_show(comparison: Comparison, everything: bool) -> list[Row]:
    """The gate and what else has changed, or all; what matters most first."""
    rows = [
        row
        for row in comparison.rows
        if everything or row.gate or row.verdict in ("regression", "notable", "improvement")
    ]
    return sorted(rows, key=lambda row: (_ORDER.index(row.verdict), not row.gate))


def table(rows: list[Row]) -> tuple[Table, Report]:
    """The rows as a table of the house."""
    names = [column.name for column in _COLUMNS]
    body = [
        (of(row), row.metric, "gate" if row.gate else None, row.base, row.new, change(row), interval(row), row.verdict, row.why, row.unit)
        for row in rows
    ]  # fmt: skip
    report = Report("diff", "", "", _COLUMNS, "")
    untold = ["why"] if not any(row.why for row in rows) else []
    # Where it says nothing: all are, or none is.
    untold += ["gate"] if len({row.gate for row in rows}) == 1 else []
    for name in untold:
        index = names.index(name)
        names.pop(index)
        body = [line[:index] + line[index + 1 :] for line in body]
    return Table([*names, "unit"], body), report


def moved(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """(a heading, lines) for each of what got worse most."""
    for one in comparison.moved:
        lines = []
        for kind, name, base, new in one.groups:
            a, b = human.text(base, one.unit), human.text(new, one.unit)
            lines.append(f"{kind} {human.text(name, 'text')}: {a} -> {b}")
        yield f"Moved most for {one.row.metric} ({one.measure}, per run; not judged)", lines
