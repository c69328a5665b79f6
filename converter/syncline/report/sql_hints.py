"""Suggests corrections for SQL that an engine refused."""

from __future__ import annotations

import contextlib
import difflib
import re

from syncline.engine import EngineError
from syncline.engine.columns import WITH_TABLES

from .tables import SqlEngine, include, modules

__all__ = ["hint"]

# The error messages of trace_processor and DuckDB.
_TABLE = re.compile(r"no such table: (\S+)|Table with name (\S+) does not exist")
_COLUMN = re.compile(r'no such column: (\S+)|Referenced column "(.+?)"|column named "(.+?)"')
_FUNCTION = re.compile(r"no such function|Function with name \S+ does not exist")


def hint(engine: SqlEngine, sql: str, reason: str) -> str:
    """Returns the name that was probably meant, or the names that exist."""
    ours = [f"syncline_{name}" for name in modules()]
    tables = f"The tables are: {', '.join(ours)}; `syncline schema` lists their columns."
    if match := _TABLE.search(reason):
        known = {name: name for name in [*ours, *_perfetto_tables(engine)]}
        known |= {name.removeprefix("syncline_"): name for name in ours}
        if close := _close(_name(match), list(known)):
            return f"Did you mean {known[close]}? {tables}"
        if engine.name in WITH_TABLES:
            return f"{tables} Perfetto's own tables (slice, thread, ...) exist only on a trace."
        return tables
    if match := _COLUMN.search(reason):
        columns = _columns(engine, sql, [*ours, *_perfetto_tables(engine)])
        names = sorted({name for inner in columns.values() for name in inner})
        if close := _close(_name(match).rpartition(".")[2], names):
            return f"Did you mean {close}?"
        listed = [f"The columns of {table} are: {', '.join(c)}." for table, c in columns.items()]
        return " ".join(listed) or tables
    if _FUNCTION.search(reason):
        return (
            "A trace has the functions of SQLite and Perfetto, any other input those of DuckDB;"
            " percentile(x, p) with p from 0 to 100 exists in both."
        )
    return tables


def _name(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group)


def _close(name: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), known, 1)), None)


def _perfetto_tables(engine: SqlEngine) -> list[str]:
    """Returns Perfetto's tables that need no INCLUDE."""
    if engine.name in WITH_TABLES:
        return []
    with contextlib.suppress(EngineError):
        rows = engine.query("SELECT name FROM sqlite_master").rows
        return [str(name) for (name,) in rows if not str(name).startswith(("_", "syncline_"))]
    return []


def _columns(engine: SqlEngine, sql: str, tables: list[str]) -> dict[str, list[str]]:
    """Returns the columns of the tables that the SQL names."""
    found = {}
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    for table in tables:
        if table in words:
            with contextlib.suppress(EngineError):
                include(engine, table)
                found[table] = engine.query(f"SELECT * FROM {table} LIMIT 0").columns
    return found
