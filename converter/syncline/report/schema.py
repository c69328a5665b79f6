"""What there is to ask: tables with columns, units and the meaning of null, and reports with their columns."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from . import catalogue

__all__ = ["CONVENTIONS", "reports", "tables"]

CONVENTIONS = (
    "Times and durations are integers in ns, sizes are in bytes.",
    "Null means that a value is not known. It never stands for 0.",
    "`run` is the last column of every table: the name of the run in a folder of many, otherwise ''. Keys such as"
    " sync_id are unique within a run, so join with USING (run, sync_id).",
)
_RUN = "Name of the run in a folder of many, otherwise ''."
# The types that SQL sees, and the units that follow from a type.
_TYPES = {
    "timestamp": "BIGINT",
    "duration": "BIGINT",
    "int": "BIGINT",
    "uint": "BIGINT",
    "long": "BIGINT",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
    "string": "VARCHAR",
    "double": "DOUBLE",
}
_OF_TIME = ("timestamp", "duration")
_TABLE = re.compile(
    r"((?:^--[^\n]*\n)+)CREATE OR REPLACE PERFETTO (?:TABLE|VIEW) (syncline_\w+) ?\((.*?)^\) AS",
    re.M | re.S,
)
_COLUMN = re.compile(r"((?:^ *--[^\n]*\n)+) *(\w+) (\w+)", re.M)
_NULL = re.compile(r"\s*\b(Null .*)", re.S)


def tables() -> list[dict[str, Any]]:
    """Returns the tables, each with `name`, `description` and `columns`; a column has `null`, which says when it is null."""
    root = catalogue.sql_root()
    declared: dict[str, Any] = tomllib.loads((root / "columns.toml").read_text(encoding="utf-8"))
    found = []
    for file in sorted((root / "tables" / "perfetto").glob("*.sql")):
        text = file.read_text(encoding="utf-8")
        for comment, name, body in _TABLE.findall(text):
            if file.stem != name.removeprefix("syncline_"):
                continue
            units = declared.get(file.stem, {})
            columns = [
                _column(
                    column,
                    kind,
                    _words(said),
                    units.get(column) or declared["sync"].get(column, {}),
                )
                for said, column, kind in _COLUMN.findall(body)
            ]
            found.append({"name": name, "description": _words(comment), "columns": columns})
    return found


def _column(name: str, kind: str, said: str, declared: dict[str, Any]) -> dict[str, Any]:
    kind = kind.lower()
    if name == "run":
        said = _RUN
    meaning = _NULL.sub("", said) or said
    null = _NULL.search(said)
    of_time = "ns" if kind in _OF_TIME else None
    return {
        "name": name,
        "type": _TYPES[kind],
        "unit": declared.get("unit") or of_time,
        "meaning": meaning,
        "null": null[1] if null else "Never null.",
    }


def reports() -> list[dict[str, Any]]:
    """Returns the reports, each with the question that it answers and its columns."""
    return [
        {
            "name": name,
            "title": report.title,
            "description": report.description,
            "columns": [
                {"name": column.name, "unit": column.unit, "meaning": column.text}
                for column in report.columns
            ],
        }
        for name, report in ((name, catalogue.load(name)) for name in catalogue.names())
    ]


def _words(comment: str) -> str:
    return " ".join(
        line.strip().removeprefix("--").strip() for line in comment.splitlines()
    ).strip()
