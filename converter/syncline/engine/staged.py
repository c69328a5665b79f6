"""Splits a query into steps, each of which creates a table that the later ones read.

Before it plans anything, SQLite, the SQL of a trace processor, copies a table of WITH for each of its uses, together with the tables that
this one uses in turn. So a chain of tables that each use the one before twice doubles the work at each link: planning the report
`neighbours` for a small trace took six times as long as all the rest. A table that would be copied a lot is therefore created first.

DuckDB plans well, but it runs all of a query at once, and what its tables of WITH, sorts and joins hold has to fit the memory together. So
`neighbours` of 10^7 requests ran out of 3.5 GB, while none of its tables that are materialized needs as much by itself. Its steps are kept in
a file, where DuckDB compresses them to a fifth; as temporary tables they took the memory that the next step needed. Spark puts the text
of a table in each place that reads it, and ran out of 4 GB while it planned `neighbours` of 27 small runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .macros import SPAN

__all__ = ["STEP", "STEPS_DATABASE", "Staged", "staged", "staged_for_memory"]

# How the names of these tables begin.
STEP = "_syncline_step_"
# The database of DuckDB that keeps these tables in a file.
STEPS_DATABASE = "_syncline_steps"
# What follows the tables of WITH.
_REST = ""
# A table is created if it is used more than once and stands for at least so many selects, because creating one takes about as long as
# planning these.
_MOST_COPIED = 12
_KEPT = 100

_BRACKET = re.compile(rf"{SPAN}|(?P<bracket>[()])")
_BLANK = r"(?:\s|--[^\n]*\n|/\*[\s\S]*?\*/)*"
_WITH = re.compile(rf"{_BLANK}WITH\b(?!\s+RECURSIVE\b)", re.I)
_TABLE = re.compile(
    rf"{_BLANK}(?P<head>(?P<name>[a-z_]\w*){_BLANK}(?:\([\w\s,]*\){_BLANK})?AS{_BLANK}(?:(?:NOT\s+)?MATERIALIZED{_BLANK})?)\(",
    re.I,
)
_MATERIALIZED = re.compile(rf"\bAS{_BLANK}MATERIALIZED{_BLANK}\(", re.I)
_COMMA = re.compile(rf"{_BLANK},")
_WORD = re.compile(rf"{SPAN}|(?P<word>\w+)")


@dataclass(frozen=True)
class Staged:
    """The statements that create tables, the query that reads them, and the statements that remove them."""

    before: str
    query: str
    after: str


@dataclass(frozen=True)
class _With:
    """A table of WITH: its name, its whole text, how often its body has each word, and whether it is materialized."""

    name: str
    text: str
    words: dict[str, int]
    is_materialized: bool


@lru_cache(_KEPT)
def staged(sql: str) -> Staged:
    """Returns the steps of one SELECT, whose macros are expanded. A text that does not begin with WITH stays whole."""
    tables, rest = _split(sql)
    # The selects that SQLite plans for each use of a table.
    selects: dict[str, int] = {}
    created: set[str] = set()
    for at, table in enumerate(tables):
        used = {name: count for name, count in table.words.items() if name in selects}
        selects[table.name] = table.words.get("select", 1) + sum(
            selects[name] * count for name, count in used.items()
        )
        later = [one.words for one in tables[at + 1 :]] + [_words(rest)]
        uses = sum(words.get(table.name, 0) for words in later)
        if uses > 1 and selects[table.name] >= _MOST_COPIED:
            created.add(table.name)
            selects[table.name] = 1
    return _in_steps(sql, tables, rest, created, "TABLE")


@lru_cache(_KEPT)
def staged_for_memory(sql: str, *, in_file: bool) -> Staged:
    """Returns the steps of one SELECT for DuckDB or Spark: each creates a table that is materialized.

    Args:
        in_file: the tables are those of the database STEPS_DATABASE, as for DuckDB; else they are temporary.
    """
    tables, rest = _split(sql)
    created = {table.name for table in tables if table.is_materialized}
    if in_file:
        return _in_steps(sql, tables, rest, created, "OR REPLACE TABLE", f"{STEPS_DATABASE}.{STEP}")
    return _in_steps(sql, tables, rest, created, "OR REPLACE TEMP TABLE")


def _in_steps(
    sql: str, tables: list[_With], rest: str, created: set[str], kind: str, prefix: str = STEP
) -> Staged:
    """Returns the query after a step for each table in `created`; without any, the query alone. A table is removed after its last use."""
    if not created:
        return Staged("", sql, "")
    # The tables whose steps each text reads, those of tables that are copied into it included.
    reads: dict[str, set[str]] = {}
    texts = [(table.name, table.words) for table in tables] + [(_REST, _words(rest))]
    for name, words in texts:
        used = [one for one in reads if one in words]
        reads[name] = {one for one in used if one in created}
        reads[name] |= {one for other in used if other not in created for one in reads[other]}
    ends = [name for name, _ in texts if name in created or name == _REST]
    # The definition of each table in the WITH of later steps.
    defined: dict[str, str] = {}
    before, after = [], []
    for table in tables:
        defined[table.name] = table.text
        if table.name in created:
            step = f"{prefix}{table.name}"
            before.append(
                f"CREATE {kind} {step} AS\n{_with(defined)}\nSELECT * FROM {table.name};\n"
            )
            after.append(f"DROP TABLE IF EXISTS {step};\n")
            defined[table.name] = f"{table.name} AS (SELECT * FROM {step})"
            later = set().union(*(reads[name] for name in ends[ends.index(table.name) + 1 :]))
            for gone in sorted((created & defined.keys()) - later - {table.name}):
                before.append(f"DROP TABLE {prefix}{gone};\n")
                # With what reads it, and is read no more either.
                for name in [one for one in defined if one == gone or (one not in created and gone in reads[one])]:  # fmt: skip
                    del defined[name]
    return Staged("".join(before), f"{_with(defined)}\n{rest}", "".join(after))


def _with(defined: dict[str, str]) -> str:
    # SQLite does not look at a table that is not used.
    return "WITH\n" + ",\n".join(defined.values())


def _split(sql: str) -> tuple[list[_With], str]:
    """Returns the tables of the outermost WITH, and the text behind them. No tables if the text has another form."""
    found = _WITH.match(sql)
    if not found:
        return [], sql
    at = found.end()
    tables = []
    while True:
        head = _TABLE.match(sql, at)
        end = head and _closed(sql, head.end())
        if head is None or end is None:
            return [], sql
        body = sql[head.end() : end]
        is_materialized = _MATERIALIZED.search(sql, head.start(), head.end()) is not None
        text = f"{head['head']}({body}\n)"
        tables.append(_With(head["name"].lower(), text, _words(body), is_materialized))
        comma = _COMMA.match(sql, end + 1)
        if not comma:
            return tables, sql[end + 1 :]
        at = comma.end()


def _closed(sql: str, at: int) -> int | None:
    """Returns where the bracket closes whose content begins at `at`."""
    depth = 1
    for found in _BRACKET.finditer(sql, at):
        if found["bracket"]:
            depth += 1 if found["bracket"] == "(" else -1
            if not depth:
                return found.start()
    return None


def _words(sql: str) -> dict[str, int]:
    """Returns how often a text has each word. A table may seem to be used more often than it is, because a column has its name."""
    counts: dict[str, int] = {}
    for found in _WORD.finditer(sql):
        if found["word"]:
            word = found["word"].lower()
            counts[word] = counts.get(word, 0) + 1
    return counts
