"""The result of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Value = int | float | str | bytes | None

# The cell types of QueryResult (protos/perfetto/trace_processor/trace_processor.proto).
_CELL_NULL, _CELL_VARINT, _CELL_FLOAT64, _CELL_STRING, _CELL_BLOB = range(1, 6)


@dataclass(frozen=True)
class Result:
    """The rows of the last statement of a query. NULL is None."""

    columns: list[str]
    rows: list[tuple[Value, ...]]


def decode(reply: Any) -> Result:
    """Decodes a QueryResult proto.

    The iterator of the package `perfetto` cannot return two columns that have the same name.
    """
    columns = list(reply.column_names)
    rows: list[tuple[Value, ...]] = []
    for batch in reply.batch:
        # The cells of each type are in an array of their own, in the order of the rows.
        take = {
            _CELL_NULL: _none,
            _CELL_VARINT: iter(batch.varint_cells).__next__,
            _CELL_FLOAT64: iter(batch.float64_cells).__next__,
            _CELL_STRING: iter(_strings(batch.string_cells)).__next__,
            _CELL_BLOB: iter(batch.blob_cells).__next__,
        }
        cells = iter([take[kind]() for kind in batch.cells])
        rows.extend(zip(*[cells] * len(columns), strict=True))
    return Result(columns, rows)


def _none() -> None:
    return None


def _strings(cells: str | bytes) -> list[str]:
    # protobuf returns bytes where the text is not UTF-8. A path may be any bytes.
    text = cells.decode("utf-8", "backslashreplace") if isinstance(cells, bytes) else cells
    return text.split("\0")
