"""A table for a terminal: values formatted for people, no wider than the terminal."""

from __future__ import annotations

import io
import shutil
import sys

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from syncline.printable import printable
from syncline.report import Report, Table

from . import human

__all__ = ["render"]

# Maximum on a terminal. A file gets all rows.
_ROWS = 60
# Minimum width of a text column.
_LEAST = 16
# Width between two columns: the line of the box and one blank of padding.
_GAP = 2


def render(
    table: Table,
    report: Report | None = None,
    *,
    width: int | None = None,
    rows: int | None = None,
    elsewhere: str = "--format csv",
) -> str:
    """Renders a table for people.

    Args:
        width: of the terminal; by default that of stdout. If stdout is not a terminal, nothing is
            shortened or left out.
        rows: maximum number; by default 60 on a terminal.
        elsewhere: the option that prints everything.
    """
    terminal = sys.stdout.isatty()
    if width is None and terminal:
        width = shutil.get_terminal_size().columns
    if rows is None and width is not None:
        rows = _ROWS
    columns, body = human.cells(table, report)
    shown = body if rows is None else body[:rows]
    fields = [
        _Field(human.header(name, unit), unit, [row[index] for row in shown])
        for index, (name, unit) in enumerate(columns)
    ]
    notes = []
    if width is not None:
        left_out = _fit(fields, width)
        if left_out:
            notes.append(f"left out because the terminal is too narrow: {', '.join(left_out)}")
    if len(shown) < len(body):
        notes.append(f"{len(body) - len(shown):,} more rows")
    if notes:
        notes.append(f"{elsewhere} prints everything")

    grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for field in fields:
        side = "right" if field.rigid and field.unit != "bar" else "left"
        grid.add_column(Text(field.header), justify=side, width=field.width)
    for cells in zip(*(field.shown() for field in fields), strict=True):
        grid.add_row(*cells)

    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=sum(field.width + _GAP for field in fields) + 1,
        highlight=False,
    )
    if report:
        console.print(Text(printable(report.title), style="bold"), soft_wrap=True)
        console.print()
    console.print(grid)
    if not body:
        console.print("No rows.")
    if notes:
        console.print(Text("; ".join(notes) + "."), soft_wrap=True)
    text = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


class _Field:
    """A column with its cells and its width."""

    def __init__(self, header: str, unit: str, cells: list[str]) -> None:
        self.header = header
        self.unit = unit
        self.cells = cells
        # A figure that is cut off would be a different figure.
        self.rigid = unit in human.RIGHT or unit == "bar"
        # The heading of a rigid column may wrap between words.
        words = header.split(" ") if self.rigid else [header]
        self.width = max(map(cell_len, [*words, *cells]))

    def is_empty(self) -> bool:
        return bool(self.cells) and all(cell == human.MISSING for cell in self.cells)

    def shown(self) -> list[Text]:
        if self.unit == "prose":
            return [Text(cell, overflow="fold") for cell in self.cells]
        shorten = _tree if self.unit == "tree" else _middle
        return [Text(shorten(cell, self.width), no_wrap=True) for cell in self.cells]


def _fit(fields: list[_Field], width: int) -> list[str]:
    """Makes the fields fit: shortens text, then drops fields. Returns the headers of the dropped fields."""
    left_out = []
    while not _shrink(fields, width) and len(fields) > 1:
        # Drops empty columns first, then from the right: reports have the most important columns first.
        drop = next((field for field in reversed(fields) if field.is_empty()), fields[-1])
        fields.remove(drop)
        left_out.append(drop.header)
    return left_out


def _shrink(fields: list[_Field], width: int) -> bool:
    """Shortens text fields, the widest first. Returns False and changes nothing if that is not enough."""
    room = width - _GAP * (len(fields) - 1) - sum(field.width for field in fields)
    sizes = {field: field.width for field in fields if not field.rigid}
    while room < 0:
        widest = max(sizes, key=lambda field: sizes[field], default=None)
        if widest is None or sizes[widest] <= _LEAST:
            return False
        # Down to the next widest, so that fields of equal width shrink equally.
        less = [size for size in sizes.values() if size < sizes[widest]]
        goal = max([_LEAST, sizes[widest] + room, *less])
        room += sizes[widest] - goal
        sizes[widest] = goal
    for field, size in sizes.items():
        field.width = size
    return True


def _middle(text: str, size: int) -> str:
    """Shortens text in the middle: the two ends of a path are the most informative."""
    if cell_len(text) <= size:
        return text
    head = set_cell_size(text, (size - 1) // 2).rstrip()
    tail = text
    while cell_len(tail) > size - 1 - cell_len(head):
        tail = tail[1:]
    return f"{head}…{tail}"


def _tree(text: str, size: int) -> str:
    """Shortens text after its indent. The indent shrinks if it leaves no room for the name."""
    if cell_len(text) <= size:
        return text
    name = text.lstrip(" ")
    indent = min(len(text) - len(name), size - min(_LEAST, cell_len(name)))
    return " " * indent + _middle(name, size - indent)
