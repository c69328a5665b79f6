"""Formats the SQL files in place: `python tools/sqlfmt.py`. With `--check` it only reports.

syntaqlite parses SQLite; its PerfettoSQL is a plugin that must be built together with Perfetto. So
this script formats only each SELECT, and leaves the statements around it (CREATE OR REPLACE ... AS,
INCLUDE) unchanged.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import syntaqlite

SQL = Path(__file__).parents[1] / "sql"
WIDTH = 80

# Folders whose files consist of a head comment and one SELECT.
_SELECTS = (
    *("answer", "diff", "evidence", "findings", "flamegraph"),
    *("check", "inspect", "page", "plugin", "reports", "rules", "timeline"),
)
# A SELECT: a report without its head comment, or the body of a CREATE ... AS.
_REPORT = re.compile(r"\A(?P<head>(?:--[^\n]*\n)+)(?P<body>.*)\Z", re.S)
_BODY = re.compile(
    r"(?P<head>^CREATE OR REPLACE (?:VIEW|PERFETTO VIEW|PERFETTO TABLE) .*?\bAS\n)(?P<body>.*?);\n(?=\n|\Z)",
    re.M | re.S,
)
# A clause that may fit on a line: its indentation, and what it is.
_CLAUSE = re.compile(
    r"( *)(GROUP BY|HAVING|ORDER BY|PARTITION BY|WHERE|WINDOW|(?:LEFT )?JOIN .*|.*\bOVER \(|\w+ AS \()$"
)
# A name, or a plain value, in a list.
_NAME = re.compile(r" *(?:'[^']*'|-?\w+(?:\.\w+)?),?")
_NO_NAMES = {"CASE", "END", "SELECT", "WITH"}
# A CASE, and a window, of a column.
_CASE = re.compile(r"(.*?)(CASE(?: \S+)? WHEN .*)(?<= )(END\b.*)")
_OVER = re.compile(r"(.*\bOVER \()(.*?)(\)(?: AS \w+)?,?)")
# The body of a macro: an expression or a SELECT, in parentheses.
_MACRO = re.compile(
    r"(?P<head>^CREATE PERFETTO MACRO .*?^RETURNS \w+\nAS\n)\((?P<body>.*?)\);\n(?=\n|\Z)",
    re.M | re.S,
)
# SQLite has neither calls of macros nor arguments of them. With letters of other alphabets instead, they look like names to it.
_NAMES = (
    ("\u01c3", re.compile(r"(?<=\w)!(?=\()"), "!"),
    ("\u01c2", re.compile(r"\$(?=[a-z_])"), "$"),
)


def joined(sql: str) -> str:
    """Writes a clause on one line where it fits: syntaqlite gives each column of GROUP BY a line of its own."""
    lines = sql.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        found = _CLAUSE.match(lines[number])
        if not found:
            continue
        depth = len(found[1])
        end = next(
            (at for at in range(number + 1, len(lines)) if _depth(lines[at]) <= depth), len(lines)
        )
        inner = lines[number + 1 : end]
        # What follows, such as `)` and the name of a column, stays with a bracket.
        end += lines[number].endswith("(")
        parts = [line.strip() for line in lines[number:end]]
        line = found[1] + " ".join(parts).replace("( ", "(").replace(" )", ")")
        is_short = len(line) <= WIDTH and not any(part.startswith("--") for part in parts)
        if inner and is_short:
            lines[number:end] = [line]
    return "\n".join(lines)


def filled(lines: list[str]) -> list[str]:
    """Writes names in a list one after the other: there is nothing to say of each."""
    found: list[str] = []
    is_list = False
    for line in lines:
        is_name = bool(_NAME.fullmatch(line)) and line.strip(" ,") not in _NO_NAMES
        fits = found and len(f"{found[-1]} {line.strip()}") <= WIDTH
        if is_list and is_name and fits and _depth(found[-1]) == _depth(line):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
        is_list = is_name and line.endswith(",")
    return found


def broken(line: str) -> list[str]:
    """Breaks a line that is too long: syntaqlite does not count the name of a column."""
    if len(line) <= WIDTH or line.lstrip().startswith("--"):
        return [line]
    indent = " " * _depth(line)
    if found := _CASE.fullmatch(line.strip()):
        parts = re.split(r" (?=WHEN |ELSE )", found[2])
        cases = [f"{indent}  {part.rstrip()}" for part in parts[1:]]
        return [f"{indent}{found[1]}{parts[0]}", *cases, f"{indent}{found[3]}"]
    if found := _OVER.fullmatch(line.strip()):
        parts = re.split(r" (?=ORDER BY )", found[2])
        return [
            f"{indent}{found[1]}",
            *(f"{indent}  {part}" for part in parts),
            f"{indent}{found[3]}",
        ]
    return [line]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def formatted(text: str, *, report: bool) -> str:
    """Returns the formatted text of a SQL file."""
    with syntaqlite.Syntaqlite() as sq:

        def tidied(sql: str) -> str:
            for letter, form, _ in _NAMES:
                sql = form.sub(letter, sql)
            sql = sq.format_sql(sql, line_width=WIDTH).rstrip()
            for letter, _, sign in _NAMES:
                sql = sql.replace(letter, sign)
            lines = [part for line in joined(sql).split("\n") for part in broken(line)]
            return "\n".join(filled(lines))

        def tidy(match: re.Match[str]) -> str:
            return f"{match['head']}{tidied(match['body'])}\n"

        def tidy_macro(match: re.Match[str]) -> str:
            body = match["body"].strip()
            is_query = body.startswith(("SELECT", "WITH"))
            sql = tidied(body if is_query else f"SELECT\n{body}").removesuffix(";")
            if not is_query:
                sql = textwrap.dedent(sql.removeprefix("SELECT").lstrip("\n")).strip()
            return f"{match['head']}(\n{textwrap.indent(sql, '  ')}\n);\n"

        text = _MACRO.sub(tidy_macro, text)
        return (_REPORT if report else _BODY).sub(tidy, text)


def is_report(file: Path) -> bool:
    """Returns whether a file consists of a head comment and one SELECT."""
    return file.parent.name in _SELECTS


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
    if formatted(text, report=is_report(file)) != text:
        errors.append(f"{file}: not formatted (python tools/sqlfmt.py)")
    return errors


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for file in files():
            file.write_text(formatted(file.read_text(), report=is_report(file)))
    errors = [error for file in files() for error in complaints(file)]
    print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
