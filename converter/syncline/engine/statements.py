"""Which SQL statements a query may hold: those that read the tables, or define others in memory.

The SQL may come from someone else: a script, or a file in the repository for which a CI job compares runs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from .errors import SqlError

if TYPE_CHECKING:
    import duckdb

__all__ = ["NO_FILES", "allowed_statements", "parsed", "refuse_file_access"]

# The hint for SQL that is refused.
NO_FILES = (
    "SQL may read INPUT only, and write nothing: redirect the result (syncline query INPUT SQL --format csv > FILE),"
    " or let SQL use all your files (syncline query --allow-files)"
)

# Names of DuckDB. It has more kinds of statements with each version, so that the rest is refused.
_ALLOWED = frozenset(
    (
        *("SELECT", "PRAGMA", "TRANSACTION", "ANALYZE", "VARIABLE_SET"),
        *("CREATE", "CREATE_FUNC", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "MERGE_INTO"),
    )
)
# DuckDB takes an eighth of the time of a report on a small run to parse it. So the statements of so many texts of SQL are kept.
_KEPT_TEXTS = 100
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+ANALYZE\b)?(\s*\([\w\s,]*\))?", re.I)


def allowed_statements(db: duckdb.DuckDBPyConnection, sql: str) -> list[duckdb.Statement]:
    """Returns the statements of SQL, which DuckDB then need not parse again.

    The errors are those of `refuse_file_access`.
    """
    statements = parsed(db, sql)
    for statement in statements:
        _refuse(db, statement)
    return statements


def parsed(db: duckdb.DuckDBPyConnection, sql: str) -> list[duckdb.Statement]:
    """Returns the statements of SQL. They do not depend on the database, so DuckDB parses a report once for all runs.

    Raises:
        duckdb.Error: the SQL cannot be parsed.
    """
    statements = _kept(sql)
    if not statements:
        statements[:] = db.extract_statements(sql)
    return statements


@lru_cache(_KEPT_TEXTS)
def _kept(sql: str) -> list[duckdb.Statement]:
    """Returns the list of the statements of this SQL, which `parsed` fills."""
    return []


def refuse_file_access(db: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuses statements that use files, load programs, or change settings.

    DuckDB itself refuses functions that read other files (`read_csv`) when it is confined.

    Raises:
        SqlError: names the statement.
        duckdb.Error: the SQL cannot be parsed.
    """
    allowed_statements(db, sql)


def _refuse(db: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> None:
    try:
        kind = statement.type.name
    except ValueError:
        kind = "this statement"
    if kind == "EXPLAIN" and (explained := _EXPLAIN.match(statement.query)):
        refuse_file_access(db, statement.query[explained.end() :])
    elif kind not in _ALLOWED:
        text = " ".join(statement.query.split())
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise SqlError(f"{kind.replace('_', ' ')} is not allowed: {shown}", NO_FILES)
