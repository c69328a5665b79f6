"""The result of `syncline model predict`: a row for each scenario, or for each write."""

from __future__ import annotations

from dataclasses import replace

from syncline import terminal
from syncline.printable import json_text, printable
from syncline.report import Column, Report, Table
from syncline.write_model.predict import Outcome, Predicted, Summary, relative_error

from .table import render as render_table

__all__ = [
    "EACH",
    "SUMMARY",
    "as_json",
    "each",
    "remarks",
    "render",
    "summary",
    "summary_for_people",
]

_SUMMARY = (
    ("scenario", "text", "Scenario of the table, or else the kind of the write."),
    ("writes", "count", "Number of writes and syncs."),
    ("bytes", "bytes", "What they wrote."),
    ("measured_ns", "ns", "Their costs together. Null for a plan, as all errors."),
    ("predicted_ns", "ns", "Predicted for that."),
    ("naive_ns", "ns", "Size over bandwidth of the device."),
    ("error", "share", "Mean of the relative errors of the writes, which have no sign."),
    ("naive_error", "share", "The same for the naive model."),
    ("median_error", "share", "Median of the relative errors of the writes."),
    (
        "total_error",
        "share",
        "Relative error of the costs together: above 0 if the prediction is too long.",
    ),
    ("naive_total_error", "share", "The same for the naive model."),
    ("improvement", "share", "By which share the error is smaller than the naive model's."),
)
_MEASURED = (
    *("measured_ns", "error", "naive_error", "median_error", "total_error", "naive_total_error"),
    *("improvement", "dirty_bytes"),
)
_EACH = (
    ("start_ns", "time", "Start of the call."),
    ("scenario", "text", "Scenario of the table, or else the kind of the write."),
    ("kind", "text", "cached, synchronized, direct, library; sync for a sync call."),
    ("path", "text", "File."),
    ("offset_bytes", "bytes", "Place in the file."),
    ("size_bytes", "bytes", "Size."),
    ("file_size_bytes", "bytes", "Size of the file before it. Null if unknown."),
    (
        "is_datasync",
        "count",
        "1: O_DSYNC or fdatasync; 0: O_SYNC or fsync. Null if nothing need be durable.",
    ),
    ("measured_ns", "ns", "What it took. Null for a plan."),
    ("predicted_ns", "ns", "What it should have taken."),
    (
        "predicted_commit_ns",
        "ns",
        "Of that, for a commit of the file system. Null if nothing need be durable, or if the parameters lack it.",
    ),
    ("naive_ns", "ns", "Size over bandwidth of the device."),
    ("error", "share", "Relative error of the prediction, without a sign."),
    ("state", "text", "State of page cache after it: free run, async run, throttle run."),
    ("predicted_dirty_bytes", "bytes", "What should be dirty after it."),
    ("dirty_bytes", "bytes", "What was. Null if it was not recorded."),
)
SUMMARY = Report("predict", "Predicted writes", "", tuple(Column(*one) for one in _SUMMARY), "SELECT NULL")  # fmt: skip
EACH = Report("predict", "Predicted writes", "", tuple(Column(*one) for one in _EACH), "SELECT NULL")  # fmt: skip


def summary(outcome: Outcome) -> Table:
    """Returns a row for each scenario."""
    return Table([name for name, _, _ in _SUMMARY], [_summary(one) for one in outcome.summaries])


def _summary(one: Summary) -> tuple[str | int | float | None, ...]:
    return (
        *(one.scenario, one.writes, one.size, one.measured_ns),
        *(round(one.predicted_ns), round(one.naive_ns)),
        *(one.error, one.naive_error, one.median_error),
        *(one.total_error, one.naive_total_error, one.improvement),
    )


def each(outcome: Outcome) -> Table:
    """Returns a row for each write."""
    return Table(
        [name for name, _, _ in _EACH],
        [_each(one, is_plan=outcome.is_plan) for one in outcome.predicted],
    )


def _each(one: Predicted, *, is_plan: bool) -> tuple[str | int | float | None, ...]:
    write = one.write
    return (
        *(write.start_ns, write.scenario or write.kind, write.kind, write.path),
        *(write.offset, write.size, write.file_size),
        int(write.is_datasync) if write.is_durable or write.kind == "sync" else None,
        *(None if is_plan else write.duration_ns, round(one.ns)),
        *(one.commit_ns, round(one.naive_ns)),
        None if is_plan else relative_error(one.ns, write.duration_ns),
        *(one.state, round(one.dirty_bytes), write.dirty_bytes),
    )


def render(outcome: Outcome, *, is_each: bool) -> str:
    """Renders the table, what the recording shows, and what the prediction assumes."""
    table, report = _for_people(outcome, each(outcome), EACH) if is_each else summary_for_people(outcome)  # fmt: skip
    lines = render_table(table, report).strip("\n").splitlines()[2:]
    lines.append("")
    width = terminal.width()
    lines += [part for line in remarks(outcome) for part in terminal.wrapped(line, width)]
    return "\n".join(lines) + "\n"


def summary_for_people(outcome: Outcome) -> tuple[Table, Report]:
    """Returns a row for each scenario, without the columns that a plan cannot have."""
    return _for_people(outcome, summary(outcome), SUMMARY)


def _for_people(outcome: Outcome, table: Table, report: Report) -> tuple[Table, Report]:
    return _without_measured(table, report) if outcome.is_plan else (table, report)


def _without_measured(table: Table, report: Report) -> tuple[Table, Report]:
    """Leaves out the columns that say what was measured, and how far the prediction is from it."""
    kept = [at for at, name in enumerate(table.columns) if name not in _MEASURED]
    rows = [tuple(row[at] for at in kept) for row in table.rows]
    columns = tuple(one for one in report.columns if one.name not in _MEASURED)
    return Table([table.columns[at] for at in kept], rows), replace(report, columns=columns)


def remarks(outcome: Outcome) -> list[str]:
    """Returns a line for each note and each assumption."""
    notes = [f"note: {printable(one)}" for one in outcome.notes]
    return notes + [f"assumed: {printable(one)}" for one in outcome.assumptions]


def as_json(outcome: Outcome) -> str:
    """Renders one object, with all writes."""
    tables = {"scenarios": summary(outcome), "writes": each(outcome)}
    head = {
        "rules": outcome.rules,
        "notes": outcome.notes,
        "assumptions": outcome.assumptions,
    }
    rows = {
        name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for name, table in tables.items()
    }
    return json_text(head | rows, indent=1) + "\n"
