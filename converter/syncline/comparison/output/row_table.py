"""The rows of a comparison as a table: which rows are shown, in which order, with which columns."""

from __future__ import annotations

from syncline.report import Column, Report, Table

from ..comparison import CANT_TELL, Comparison, Row
from . import wording

__all__ = ["rows_to_show", "table"]

# The most important verdict first.
_ORDER = ("regression", CANT_TELL, "notable", "improvement", "no change", "-")
_COLUMNS = (
    Column("scope", "text", "The requests that the metric covers."),
    Column("metric", "text", "Metric."),
    Column("gate", "text", "Whether the row is in the gate."),
    Column("base", "unit", "Mean over the runs of the base."),
    Column("new", "unit", "Mean over the new runs."),
    Column("change", "ratio", "Change of the mean."),
    Column("interval", "ratio", "Interval of the change."),
    Column("verdict", "text", "Verdict."),
    Column("reason", "prose", 'Why the verdict is "can\'t tell", or why a change does not count.'),
)

# What a narrow terminal keeps: a comparison without its verdict would be figures that the reader must judge alone.
_NARROW = ("metric", "verdict", "base", "new", "change", "scope", "interval")


def rows_to_show(comparison: Comparison, *, everything: bool) -> list[Row]:
    """Returns the gate and other rows that changed, or all rows; the most important first."""
    rows = [
        row
        for row in comparison.rows
        if everything or row.gate or row.verdict in ("regression", "notable", "improvement")
    ]
    return sorted(rows, key=lambda row: (_ORDER.index(row.verdict), not row.gate))


def table(rows: list[Row]) -> tuple[Table, Report]:
    """Returns the rows as the table of a report."""
    names = [column.name for column in _COLUMNS]
    body = [
        (
            wording.scope(row),
            row.metric,
            "gate" if row.gate else None,
            row.base,
            row.new,
            wording.change(row),
            wording.interval(row),
            row.verdict,
            row.reason,
            row.unit,
        )
        for row in rows
    ]
    report = Report("diff", "", "", _COLUMNS, "", _NARROW)
    # Columns without information: no row has a reason, or all rows are in the gate, or none.
    unused = ["reason"] if not any(row.reason for row in rows) else []
    unused += ["gate"] if len({row.gate for row in rows}) == 1 else []
    for name in unused:
        index = names.index(name)
        names.pop(index)
        body = [line[:index] + line[index + 1 :] for line in body]
    return Table([*names, "unit"], body), report
