"""Markdown: a heading and a table, values formatted for people."""

from __future__ import annotations

import re

from syncline.printable import printable
from syncline.report import Report, Table

from . import human

__all__ = ["escaped", "render"]

_ESCAPES = str.maketrans({char: f"\\{char}" for char in "|\\*`[]~"} | {"<": "&lt;", "&": "&amp;"})
# Within a word, an underscore has no meaning.
_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)")


def render(table: Table, report: Report | None = None) -> str:
    """Renders a table with all rows, as GitHub shows it."""
    columns, rows = human.cells(table, report)
    lines = [f"## {escaped(report.title)}", ""] if report else []
    lines.append(_line([escaped(human.header(name, unit)) for name, unit in columns]))
    lines.append(_line(["---:" if unit in human.RIGHT else "---" for _, unit in columns]))
    for row in rows:
        lines.append(
            _line([_cell(cell, unit) for cell, (_, unit) in zip(row, columns, strict=True)])
        )
    if not rows:
        lines += ["", escaped(human.no_rows(table))]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def escaped(text: str) -> str:
    """Escapes characters that have a meaning in Markdown, and those that are not printable."""
    return _UNDERSCORE.sub(r"\_", printable(text).translate(_ESCAPES))


def _cell(text: str, unit: str) -> str:
    bare = escaped(text.strip())
    # Markdown ignores leading blanks.
    return "&nbsp;" * (len(text) - len(text.lstrip())) + bare if unit == "tree" else bare
