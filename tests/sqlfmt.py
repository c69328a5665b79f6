"""Formats the SQL: `python tests/sqlfmt.py` in place, with `--check` only to say what it would do.

syntaqlite knows SQLite, and its PerfettoSQL is a plugin that must be built with Perfetto. So what
stands around a SELECT here (CREATE OR REPLACE ... AS, INCLUDE) is left as it is, and the SELECT
formatted alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import syntaqlite

SQL = Path(__file__).parents[1] / "sql"
WIDTH = 80

# Folders whose files are a head comment and one SELECT each.
_SELECTS = ("diff", "flamegraph", "inspect", "page", "reports")
# A SELECT: all of a report from the end of its head comment, or the body of a CREATE ... AS.
_REPORT = re.compile(r"\A(?P<head>(?:--[^\n]*\n)+)(?P<body>.*)\Z", re.S)
_BODY = re.compile(
    r"(?P<head>^CREATE OR REPLACE (?:VIEW|PERFETTO TABLE) .*?\bAS\n)(?P<body>.*?);\n(?=\n|\Z)",
    re.M | re.S,
)


def formatted(text: str, *, report: bool) -> str:
    """The text of a SQL file as it should be."""
    with syntaqlite.Syntaqlite() as sq:

        def tidy(match: re.Match[str]) -> str:
            body = sq.format_sql(match["body"], line_width=WIDTH).rstrip()
            return f"{match['head']}{body}\n"

        return (_REPORT if report else _BODY).sub(tidy, text)


def files() -> list[Path]:
    return sorted(SQL.rglob("*.sql"))


def complaints(file: Path) -> list[str]:
    """What is wrong with the file, if anything."""
    text = file.read_text()
    wrong = [
        f"{file}:{number}: {len(line)} columns, {WIDTH} allowed"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH
    ]
    if formatted(text, report=file.parent.name in _SELECTS) != text:
        wrong.append(f"{file}: not formatted (python tests/sqlfmt.py)")
    return wrong


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for file in files():
            file.write_text(formatted(file.read_text(), report=file.parent.name in _SELECTS))
    wrong = [complaint for file in files() for complaint in complaints(file)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
