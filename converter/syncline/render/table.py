"""A table for a terminal: values formatted for people, no wider than the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.control import strip_control_codes
from rich.text import Text

from syncline import terminal
from syncline.printable import printable
from syncline.report import Report, Table

from . import human

__all__ = ["render"]

# Maximum on a terminal. A file gets all rows.
_ROWS = 60
# Minimum width of a text column.
_LEAST = 16
# Width up to which a word in prose, and a name other than a path, are never broken.
_WORD = 40
_NAME = 24
# Width of a ruler in a file, at most.
_WIDE = 80
# The colours of verdicts of `diff` and of the report `durability`.
_VERDICTS = {
    "regression": "red",
    "can't tell": "yellow",
    "notable": "yellow",
    "improvement": "green",
    **dict.fromkeys(("failed", "lost before", "no flush"), "red"),
    "unknown": "yellow",
    "flush": "green",
}
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
    width = terminal.width() if width is None else width
    if rows is None and width is not None:
        rows = _ROWS
    columns, body = human.cells(table, report)
    if not columns:
        # The statement selects nothing, such as CREATE TABLE.
        return "No rows.\n"
    if not body and width is not None:
        # Which columns there would be, and which of them the window has no room for, tells the reader nothing.
        said = [report.title, "", human.no_rows(table)] if report else [human.no_rows(table)]
        return "".join(
            f"{part}\n"
            for line in said
            for part in terminal.wrapped(printable(line), width) or [""]
        )
    shown = body if rows is None else body[:rows]
    fields = [
        _Field(name, human.header(name, unit), unit, [row[index] for row in shown])
        for index, (name, unit) in enumerate(columns)
    ]
    notes = []
    if width is not None:
        left_out = _fit(fields, width, report.narrow if report else ())
        if left_out:
            notes.append(f"left out because the terminal is too narrow: {', '.join(left_out)}")
    if len(shown) < len(body):
        notes.append(f"{len(body) - len(shown):,} more rows")
    if notes:
        notes.append(f"{elsewhere} prints everything")

    console = Console(
        file=io.StringIO(),
        # Otherwise a notebook would get each line at once, and the text none.
        force_jupyter=False,
        force_terminal=terminal.is_coloured(),
        no_color=not terminal.is_coloured(),
        width=sum(field.width + _GAP for field in fields) + 1,
        highlight=False,
    )
    if report:
        for line in _lines(printable(report.title), width or 10_000, console):
            console.print(Text(line, style="bold"), soft_wrap=True)
        console.print()
    heads = [_lines(field.header, field.width, console) for field in fields]
    height = max(map(len, heads))
    heads = [[""] * (height - len(head)) + head for head in heads]
    console.print(Text("\n".join(_row(fields, heads)), style="bold"), soft_wrap=True)
    ruler = sum(field.width + _GAP for field in fields) - _GAP
    # A ruler says nothing, so it makes no line of a file longer than people's windows are.
    console.file.write("─" * (ruler if width is not None else min(ruler, _WIDE)) + "\n")
    # Rich's own tables take a millisecond a row.
    for cells in zip(*(field.shown(console) for field in fields), strict=True):
        console.file.writelines(f"{line}\n" for line in _row(fields, cells))
    if not body:
        console.print(Text(printable(human.no_rows(table))), soft_wrap=True)
    if notes:
        for line in _lines("; ".join(notes) + ".", width or _WIDE, console):
            console.print(Text(line), soft_wrap=True)
    text = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


class _Field:
    """A column with its cells and its width."""

    def __init__(self, name: str, header: str, unit: str, cells: list[str]) -> None:
        self.name = name
        self.header = header
        self.unit = unit
        self.cells = cells
        # A figure that is cut off would be a different figure.
        self.rigid = unit in human.RIGHT or unit == "bar"
        # The heading of a rigid column may wrap between words.
        words = header.split(" ") if self.rigid else [header]
        # The width of all that it says, and the width that it gets.
        self.whole = max(map(cell_len, [*words, *cells]))
        self.width = self.whole
        self.least = max(_LEAST, self._readable())

    def _readable(self) -> int:
        """Returns the width below which words would be broken, or a tree would lose its shape."""
        if self.unit == "prose":
            words = (word for cell in self.cells for word in cell.split())
            return min(max(map(cell_len, words), default=0), _WORD)
        if self.unit == "tree":
            indents = (len(cell) - len(cell.lstrip(" ")) for cell in self.cells)
            return min(self.whole, max(indents, default=0) + _LEAST, _WORD)
        # A name such as that of a loss is what the reader looks up.
        longest = max(map(cell_len, self.cells), default=0)
        return longest if longest <= _NAME and not any("/" in cell for cell in self.cells) else 0

    def is_empty(self) -> bool:
        return bool(self.cells) and all(cell == human.MISSING for cell in self.cells)

    def shown(self, console: Console) -> Iterator[list[str]]:
        """Returns the lines of each cell."""
        if self.unit == "prose":
            return (_lines(cell, self.width, console) for cell in self.cells)
        shorten = _tree if self.unit == "tree" else _path
        return ([shorten(strip_control_codes(cell), self.width)] for cell in self.cells)

    def pad(self, text: str) -> str:
        blanks = " " * (self.width - cell_len(text))
        if self.name == "verdict" and text in _VERDICTS:
            text = terminal.paint(text, _VERDICTS[text])
        return blanks + text if self.rigid and self.unit != "bar" else text + blanks


def _lines(text: str, width: int, console: Console) -> list[str]:
    """Wraps text between words."""
    text = strip_control_codes(text)
    if cell_len(text) <= width and "\n" not in text:
        return [text]
    return [line.plain.rstrip() for line in Text(text).wrap(console, width, overflow="fold")]


def _row(fields: list[_Field], cells: Sequence[list[str]]) -> list[str]:
    """Returns the lines of a row, whose cells may have different numbers of lines."""
    gap = " " * _GAP
    return [
        gap.join(field.pad(text) for field, text in zip(fields, texts, strict=True))
        for texts in zip_longest(*cells, fillvalue="")
    ]


def _fit(fields: list[_Field], width: int, narrow: Sequence[str]) -> list[str]:
    """Makes the fields fit: shortens text, then drops fields. Returns the headers of the dropped fields.

    Args:
        narrow: names of the fields that are kept longest, the most important first.
    """
    every = list(fields)
    # The most important first: what a report names, then from the left, then what says nothing new.
    rank = {name: place for place, name in enumerate(narrow)}
    texts: set[tuple[str, ...]] = set()
    says_nothing = set()
    for field in every:
        if field.is_empty() or (not field.rigid and tuple(field.cells) in texts):
            says_nothing.add(field)
        texts.add(tuple(field.cells))
    order = sorted(
        every,
        key=lambda field: (
            field in says_nothing,
            rank.get(field.name, len(rank)),
            every.index(field),
        ),
    )
    kept: set[_Field] = set(every)
    if not _shrink(every, width):
        kept = set()
        # A wide field that does not fit makes no room impossible for a narrower one behind it.
        for field in order:
            tried = [one for one in every if one in kept or one is field]
            if _shrink(tried, width):
                kept.add(field)
        kept = kept or {order[0]}
    fields[:] = [field for field in every if field in kept]
    _shrink(fields, width)
    return [field.header for field in every if field not in kept]


def _shrink(fields: list[_Field], width: int) -> bool:
    """Shortens text fields, the widest first. Returns False and changes nothing if that is not enough."""
    room = width - _GAP * (len(fields) - 1) - sum(field.whole for field in fields)
    sizes = {field: field.whole for field in fields if not field.rigid}
    while room < 0:
        wide = [field for field in sizes if sizes[field] > field.least]
        if not wide:
            return False
        widest = max(wide, key=lambda field: sizes[field])
        # Down to the next widest, so that fields of equal width shrink equally.
        less = [size for size in sizes.values() if size < sizes[widest]]
        goal = max([widest.least, sizes[widest] + room, *less])
        room += sizes[widest] - goal
        sizes[widest] = goal
    for field, size in sizes.items():
        field.width = size
    return True


def _path(text: str, size: int) -> str:
    """Shortens a path between its first folder and its last ones, of which as many stay as fit; other text in the middle."""
    if cell_len(text) <= size or not text.startswith("/") or ";" in text:
        return _middle(text, size)
    _, first, *parts = text.split("/")
    for number in range(len(parts)):
        end = "…/" + "/".join(parts[number:])
        for shown in (f"/{first}/{end}", end):
            if cell_len(shown) <= size:
                return shown
    # The end of a name that is too long differs more often than its beginning.
    return "…" + _tail(text, size - 1)


def _middle(text: str, size: int) -> str:
    """Shortens text in the middle."""
    if cell_len(text) <= size:
        return text
    head = set_cell_size(text, (size - 1) // 2).rstrip()
    return f"{head}…{_tail(text, size - 1 - cell_len(head))}"


def _tail(text: str, size: int) -> str:
    """Returns the end of a text that has room."""
    while cell_len(text) > size:
        text = text[1:]
    return text


def _tree(text: str, size: int) -> str:
    """Shortens text after its indent. The indent shrinks if it leaves no room for the name."""
    if cell_len(text) <= size:
        return text
    name = text.lstrip(" ")
    indent = min(len(text) - len(name), size - min(_LEAST, cell_len(name)))
    return " " * indent + _middle(name, size - indent)
