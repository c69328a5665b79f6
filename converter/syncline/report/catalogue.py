"""Finds the reports, and parses the head comment of each.

A report is a file of sql/reports/: a head comment, then one SELECT. The comment has a title, a
description, the columns that a narrow terminal keeps, the most important first, and the columns:

    -- Title.
    --
    -- Text.
    --
    -- Narrow: names of columns
    --
    -- Columns:
    --   name  unit  Description.
    --               Continued description.
    SELECT ...
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from syncline.folders import folder

__all__ = [
    "EACH_RUN",
    "UNITS",
    "Column",
    "Report",
    "UnknownReport",
    "load",
    "names",
    "read_sql",
    "sql_root",
]

# Unit of a column -> description. It decides how a value is formatted for people; programs get the plain value.
UNITS = {
    "text": "text, a name or a path; shortened in the middle on a narrow terminal",
    "prose": "sentences; wrapped on a narrow terminal",
    "id": "a number that identifies something",
    "count": "a count",
    "ns": "a duration in ns",
    "time": "a time of the trace's clock in ns",
    "bytes": "bytes",
    "share": "a fraction of 1",
    "bar": "a fraction of 1, also drawn as a bar",
    "ratio": "a plain number",
    "tree": "text, indented by the column `depth`",
    "unit": "the unit that the column `unit` of the row names",
}

# Reports whose rows are of one run each, in the order of the runs. They may be computed run by run.
EACH_RUN = frozenset(
    {
        *("bystanders", "device", "durability", "groups", "journal"),
        *(
            "neighbours",
            "parallel",
            "phases",
            "scatter",
            "threads",
            "unsynced",
            "whose-data",
            "writeback",
        ),
    }
)

_NARROW = re.compile(r"^Narrow: ([a-z0-9_\s]+?)(?:\n\n|\Z)", re.M)
_COLUMN = re.compile(r"  (?P<name>\w+) +(?P<unit>\w+) +(?P<text>\S.*)")


class UnknownReport(Exception):
    """There is no report of that name; the message lists the reports."""


@dataclass(frozen=True)
class Column:
    """A column of a report."""

    name: str
    unit: str
    text: str


@dataclass(frozen=True)
class Report:
    """A report: its SQL and the contents of its head comment."""

    name: str
    title: str
    description: str
    columns: tuple[Column, ...]
    sql: str
    # The columns that a narrow terminal keeps, the most important first.
    narrow: tuple[str, ...] = ()

    def unit(self, column: str) -> str:
        """Returns the unit of a column; text if the head comment does not list it."""
        return next((known.unit for known in self.columns if known.name == column), "text")


@functools.cache
def sql_root() -> Path:
    """Returns the folder with tables/, reports/ and the rest of sql/, in the package or in the checkout."""
    return folder("sql", "reports")


def read_sql(folder: str, name: str) -> str:
    """Returns the content of a file of SQL."""
    return (sql_root() / folder / f"{name}.sql").read_text(encoding="utf-8")


def rows_of_tsv(name: str) -> list[list[str]]:
    """Returns the columns of each line of a .tsv file of sql/findings/."""
    lines = (sql_root() / "findings" / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def names() -> list[str]:
    """Returns the names of all reports: the summary first, the others in alphabetical order."""
    found = sorted(file.stem for file in (sql_root() / "reports").glob("*.sql"))
    return sorted(found, key=lambda name: name != "summary")


@functools.cache
def load(name: str) -> Report:
    """Reads a report.

    Raises:
        UnknownReport: there is no report of that name.
    """
    known = names()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise UnknownReport(f"no report '{name}'. {hint}The reports are: {', '.join(known)}.")
    return parse(name, read_sql("reports", name))


def parse(name: str, sql: str) -> Report:
    """Parses the head comment of a report."""
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
    text = "\n".join(head[:start])
    narrow = _NARROW.search(text)
    title, _, description = _NARROW.sub("", text).strip().partition("\n\n")
    return Report(
        name,
        " ".join(title.split()),
        description.strip(),
        tuple(columns),
        sql,
        tuple(narrow[1].split()) if narrow else (),
    )
