"""Which SQL statements a query may hold: those that read the tables, or define others in memory.

The SQL may come from someone else: a script, or a file in the repository for which a CI job compares runs.
"""

from __future__ import annotations

import re
import threading
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
# Statements of SQL that was used last: to parse a report takes an eighth of its time on a small run. So many texts of so many characters.
_KEPT = 100
_KEPT_LENGTH = 100_000
_kept: dict[str, list[duckdb.Statement]] = {}
_keeping = threading.Lock()
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
    """Returns the statements of SQL. They do not depend on the database, so that those of a report are parsed once for all runs.

    Raises:
        duckdb.Error: the SQL cannot be parsed.
    """
    with _keeping:
        statements = _kept.pop(sql, None)
    if statements is None:
        statements = db.extract_statements(sql)
    if len(sql) <= _KEPT_LENGTH:
        with _keeping:
            # The last of a dict is what was used last.
            _kept[sql] = statements
            if len(_kept) > _KEPT:
                del _kept[next(iter(_kept))]
    return statements


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
