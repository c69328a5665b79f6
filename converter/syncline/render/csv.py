"""Comma-separated values: plain ns and bytes, null as an empty field."""

from __future__ import annotations

import csv
import io

from syncline.engine import Value
from syncline.report import Report, Table

__all__ = ["render"]


def render(table: Table, report: Report | None = None) -> str:
    """Renders a line with the column names, then a line for each row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_field(value) for value in row] for row in table.rows)
    return out.getvalue()


def _field(value: Value) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.hex() if isinstance(value, bytes) else value
