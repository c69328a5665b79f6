"""JSON: one object for each report, plain ns and bytes, one row a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from syncline.engine import Value
from syncline.printable import json_text
from syncline.report import Report, Table

__all__ = ["parts", "render"]


def render(table: Table, report: Report | None = None) -> str:
    """Renders `{"report": ..., "title": ..., "columns": [...], "rows": [...]}`, or only the rows of a query.

    Several reports become one object, with a key for each.
    """
    return "".join(parts(table.columns, [table.rows], report))


def parts(
    columns: Sequence[str],
    batches: Iterable[Sequence[tuple[Value, ...]]],
    report: Report | None = None,
) -> Iterator[str]:
    """Yields what `render` returns, batch by batch of the rows."""
    end = "\n"
    if report is not None:
        units = [{"name": name, "unit": report.unit(name)} for name in columns]
        head = json_text({"report": report.name, "title": report.title, "columns": units})
        yield f'{head[:-1]}, "rows": '
        end = "}\n"
    before = "[\n"
    for rows in batches:
        if rows:
            yield before + ",\n".join(
                json_text({name: _value(value) for name, value in zip(columns, row, strict=True)})
                for row in rows
            )
            before = ",\n"
    yield ("[]" if before == "[\n" else "\n]") + end


def _value(value: Value) -> Value:
    if isinstance(value, bytes):
        return value.hex()
    # JSON has no infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
