"""Formats the SQL files in place: `python tests/sqlfmt.py`. With `--check` it only reports.

syntaqlite parses SQLite; its PerfettoSQL is a plugin that must be built together with Perfetto. So
this script formats only each SELECT, and leaves the statements around it (CREATE OR REPLACE ... AS,
INCLUDE) unchanged.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import syntaqlite

SQL = Path(__file__).parents[1] / "sql"
WIDTH = 80

# Folders whose files consist of a head comment and one SELECT.
_SELECTS = (
    *("advice", "answer", "diff", "evidence", "flamegraph"),
    *("inspect", "page", "plugin", "reports", "timeline"),
)
# A SELECT: a report without its head comment, or the body of a CREATE ... AS.
_REPORT = re.compile(r"\A(?P<head>(?:--[^\n]*\n)+)(?P<body>.*)\Z", re.S)
_BODY = re.compile(
    r"(?P<head>^CREATE OR REPLACE (?:VIEW|PERFETTO VIEW|PERFETTO TABLE) .*?\bAS\n)(?P<body>.*?);\n(?=\n|\Z)",
    re.M | re.S,
)


def formatted(text: str, *, report: bool) -> str:
    """Returns the formatted text of a SQL file."""
    with syntaqlite.Syntaqlite() as sq:

        def tidy(match: re.Match[str]) -> str:
            body = sq.format_sql(match["body"], line_width=WIDTH).rstrip()
            return f"{match['head']}{body}\n"

        return (_REPORT if report else _BODY).sub(tidy, text)


def files() -> list[Path]:
    return sorted(SQL.rglob("*.sql"))


def complaints(file: Path) -> list[str]:
    """Returns the formatting errors of a file."""
    text = file.read_text()
    errors = [
        f"{file}:{number}: {len(line)} columns, at most {WIDTH} are allowed"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH
    ]
    if formatted(text, report=file.parent.name in _SELECTS) != text:
        errors.append(f"{file}: not formatted (python tests/sqlfmt.py)")
    return errors


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for file in files():
            file.write_text(formatted(file.read_text(), report=file.parent.name in _SELECTS))
    errors = [error for file in files() for error in complaints(file)]
    print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
