"""Comma-separated values: plain ns and bytes, null as an empty field.

A file gets text unchanged, unless `quote_formulas` was called. On a terminal, characters that are not printable are escaped.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from syncline import _core
from syncline.engine import Value
from syncline.printable import printable
from syncline.report import Report, Table

__all__ = ["parts", "quote_formulas", "render"]


# The characters that a spreadsheet takes for the begin of a formula, as `convert` knows them too.
_FORMULA = tuple(_core.FORMULA_STARTS)
_quotes_formulas = False


def quote_formulas() -> None:
    """Writes a quote before a text that a spreadsheet would take for a formula, from now on."""
    global _quotes_formulas
    _quotes_formulas = True


def render(table: Table, report: Report | None = None) -> str:
    """Renders a line with the column names, then a line for each row."""
    return "".join(parts(table.columns, [table.rows], report))


def parts(
    columns: Sequence[str],
    batches: Iterable[Sequence[tuple[Value, ...]]],
    report: Report | None = None,
) -> Iterator[str]:
    """Yields what `render` returns, batch by batch of the rows."""
    text = printable if sys.stdout.isatty() else str
    yield _lines([tuple(map(text, columns))])
    for rows in batches:
        yield _lines([tuple(_field(value, text) for value in row) for row in rows])


def _lines(rows: Iterable[tuple[str | int | float, ...]]) -> str:
    lines = _Lines()
    # The writer quotes a field with one of the characters that end its lines.
    csv.writer(lines, lineterminator="\r\n").writerows(rows)
    return "".join(lines)


class _Lines(list[str]):
    """Collects lines, and ends each with a line feed only."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _field(value: Value, text: Callable[[str], str]) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, str):
        return text(f"'{value}" if _quotes_formulas and value.startswith(_FORMULA) else value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.hex() if isinstance(value, bytes) else value
