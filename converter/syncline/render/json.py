"""JSON: one object for each report, plain ns and bytes, one row a line."""

from __future__ import annotations

import math

from syncline.engine import Value
from syncline.printable import json_text
from syncline.report import Report, Table

__all__ = ["render"]


def render(table: Table, report: Report | None = None) -> str:
    """Renders `{"report": ..., "title": ..., "columns": [...], "rows": [...]}`, or only the rows of a query.

    Several reports form a stream of objects, which jq reads.
    """
    rows = ",\n".join(
        json_text({name: _value(value) for name, value in zip(table.columns, row, strict=True)})
        for row in table.rows
    )
    body = f"[\n{rows}\n]" if rows else "[]"
    if report is None:
        return body + "\n"
    columns = [{"name": name, "unit": report.unit(name)} for name in table.columns]
    head = json_text({"report": report.name, "title": report.title, "columns": columns})
    return f'{head[:-1]}, "rows": {body}}}\n'


def _value(value: Value) -> Value:
    if isinstance(value, bytes):
        return value.hex()
    # JSON has no infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
