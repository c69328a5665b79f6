"""Which rows of a report are printed, and in which order: `--sort` and `--limit`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from .catalogue import Report
from .run import Table

__all__ = ["Choice", "UnknownColumn"]

# Units whose values read from the largest down. Texts, ids and times read upwards.
_FALLING = {"count", "ns", "bytes", "share", "bar", "ratio", "unit"}
_ORDERS = {"asc": False, "desc": True}


class UnknownColumn(Exception):
    """A report has no such column; the message lists its columns."""


@dataclass(frozen=True)
class Choice:
    """What was asked for.

    `sort`: a column, as reports or tables name it (`ahead_ns`, `ahead`), with `:asc` or `:desc` behind it if not the usual order is meant.
    `limit`: how many rows, at most.
    """

    sort: str | None = None
    limit: int | None = None

    def of(self, table: Table, report: Report) -> Table:
        """Returns the rows. Null comes last in either order.

        Raises:
            UnknownColumn: the report does not have the column.
        """
        rows = table.rows
        if self.sort is not None:
            index, is_falling = self._column(table.columns, report)
            known = [row for row in rows if row[index] is not None]
            known.sort(key=lambda row: _comparable(row[index]), reverse=is_falling)
            rows = known + [row for row in rows if row[index] is None]
        return replace(table, rows=rows[: self.limit])

    def _column(self, columns: list[str], report: Report) -> tuple[int, bool]:
        assert self.sort is not None
        name, _, order = self.sort.partition(":")
        if order and order not in _ORDERS:
            raise UnknownColumn(f"--sort {self.sort}: '{order}' is neither asc nor desc")
        wanted = name.strip().replace(" ", "_")
        found = next((one for one in (wanted, f"{wanted}_ns") if one in columns), None)
        if found is None:
            close = difflib.get_close_matches(wanted, columns, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UnknownColumn(
                f"report {report.name} has no column '{name}'.{hint} Its columns are: {', '.join(columns)}"
            )
        is_falling = _ORDERS[order] if order else report.unit(found) in _FALLING
        return columns.index(found), is_falling


def _comparable(value: Any) -> tuple[bool, Any]:
    """A column may hold texts and figures, which do not compare."""
    return isinstance(value, str), value
