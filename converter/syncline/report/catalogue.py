"""Finds the reports, and reads what the head comment of each says of it.

A report is a file of sql/reports/: a head comment, then one SELECT. The comment is a title, what
the report answers, and the columns:

    -- Title.
    --
    -- Text.
    --
    -- Columns:
    --   name  unit  What it is.
    --               More of what it is.
    SELECT ...
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from syncline.folders import folder

__all__ = ["UNITS", "Column", "Report", "UnknownReport", "load", "names", "sql_root"]

# What a column may hold: it says how people are shown it. Machines get the plain value.
UNITS = {
    "text": "text, a name or a path, which a narrow terminal shortens in the middle",
    "prose": "text to read, which a narrow terminal wraps",
    "id": "a number that names something",
    "count": "a number of things",
    "ns": "a length of time, in ns",
    "time": "a time of the trace's clock, in ns",
    "bytes": "bytes",
    "share": "a part of 1",
    "bar": "a part of 1, of which a bar shows more than the figure",
    "ratio": "a plain number",
    "tree": "text, indented by the column `depth`",
    "unit": "whatever the column `unit` says in that row",
}

_COLUMN = re.compile(r"  (?P<name>\w+) +(?P<unit>\w+) +(?P<text>\S.*)")


class UnknownReport(Exception):
    """No report of that name; the text says which there are."""


@dataclass(frozen=True)
class Column:
    """A column of a report."""

    name: str
    unit: str
    text: str


@dataclass(frozen=True)
class Report:
    """A report: its SQL and what its head comment says."""

    name: str
    title: str
    description: str
    columns: tuple[Column, ...]
    sql: str

    def unit(self, column: str) -> str:
        """The unit of a column; text for one that the head comment does not know."""
        return next((known.unit for known in self.columns if known.name == column), "text")


@functools.cache
def sql_root() -> Path:
    """The folder with perfetto/, duckdb/ and reports/, of the package or of the checkout."""
    return folder("sql", "reports")


def names() -> list[str]:
    """The names of all reports: the summary first, the others by the alphabet."""
    found = sorted(file.stem for file in (sql_root() / "reports").glob("*.sql"))
    return sorted(found, key=lambda name: name != "summary")


@functools.cache
def load(name: str) -> Report:
    """Reads a report.

    Raises:
        UnknownReport: there is none of that name.
    """
    known = names()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise UnknownReport(f"no report '{name}'. {hint}The reports are: {', '.join(known)}.")
    return parse(name, (sql_root() / "reports" / f"{name}.sql").read_text(encoding="utf-8"))


def parse(name: str, sql: str) -> Report:
    """Reads the head comment of a report."""
    head = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        head.append(line[2:].removeprefix(" "))
    start = head.index("Columns:") if "Columns:" in head else len(head)
    columns: list[Column] = []
    for line in head[start + 1 :]:
        if match := _COLUMN.fullmatch(line):
            columns.append(Column(**match.groupdict()))
        elif columns and line.strip():
            last = columns.pop()
            columns.append(Column(last.name, last.unit, f"{last.text} {line.strip()}"))
    title, _, description = "\n".join(head[:start]).strip().partition("\n\n")
    return Report(name, " ".join(title.split()), description.strip(), tuple(columns), sql)
