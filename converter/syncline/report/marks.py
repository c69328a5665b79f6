"""Replaces the marks of a trace or of columns with those of `--marks`."""

from __future__ import annotations

from syncline.engine.columns import WITH_TABLES

from .run import run_query
from .tables import SqlEngine

__all__ = ["STATEMENTS", "replace_marks", "span"]

# A high-level log has no times of its own, so its span is that of its requests.
_SPAN = """
SELECT
  COALESCE(
    MIN(CASE WHEN key = 'first_ts_ns' THEN CAST(NULLIF(value, '') AS BIGINT) END),
    (SELECT MIN(ts_ns) FROM syncline_sync)
  ),
  COALESCE(
    MAX(CASE WHEN key = 'last_ts_ns' THEN CAST(NULLIF(value, '') AS BIGINT) END),
    (SELECT MAX(ts_ns + COALESCE(dur_ns, 0)) FROM syncline_sync)
  )
FROM syncline_meta
"""

# Marks in one statement.
_ROWS_AT_ONCE = 1000

# The queries that are run on the tables of requests.
STATEMENTS = (_SPAN,)


def span(engine: SqlEngine) -> tuple[int | None, int | None]:
    """Returns the first and the last time of the log, or of all runs."""
    first, last = run_query(engine, _SPAN).rows[0]
    return (first if isinstance(first, int) else None, last if isinstance(last, int) else None)


def replace_marks(engine: SqlEngine, marks: list[tuple[int, str, int | None]]) -> None:
    """Replaces the rows of `syncline_mark` with these marks (ts_ns, name, dur_ns or None).

    A mark without a duration lasts until the next mark, the last one until the end of the log. Each of
    several runs gets all marks.

    Raises:
        EngineError: the engine does not have Syncline's tables.
    """
    marks = sorted(marks, key=lambda mark: mark[0])
    _, end = span(engine)
    ends = [mark[0] for mark in marks[1:]] + [marks[-1][0] if end is None else end]
    rows = [
        f"({number}, {ts}, {max(until - ts, 0) if dur is None else dur}, {_text(name)})"
        for number, ((ts, name, dur), until) in enumerate(zip(marks, ends, strict=True), 1)
    ]
    columns = "mark_id, ts_ns, dur_ns, name"
    if engine.name in WITH_TABLES:
        if engine.name == "duckdb":
            source = _table_of(engine, rows)
        else:
            source = f"(VALUES {', '.join(rows)}) AS marks({columns})"
        engine.query(
            f"CREATE OR REPLACE VIEW syncline_mark AS SELECT {columns}, run FROM {source}"
            " CROSS JOIN (SELECT DISTINCT run FROM syncline_meta)"
        )
        return
    # Runs the module now: it would otherwise replace the marks when the table is first used.
    run_query(engine, "SELECT COUNT(*) FROM syncline_mark")
    engine.query(
        "CREATE OR REPLACE PERFETTO TABLE syncline_mark AS"
        " SELECT column1 AS mark_id, column2 AS ts_ns, column3 AS dur_ns, column4 AS name, '' AS run"
        f" FROM (VALUES {', '.join(rows)})"
    )


def _table_of(engine: SqlEngine, rows: list[str]) -> str:
    """Returns the name of a table of the rows.

    A view that holds them would be bound again by each query: 100,000 marks took 3 GB of memory.
    """
    name = "_syncline_given_mark"
    engine.query(
        f"CREATE OR REPLACE TABLE {name}(mark_id BIGINT, ts_ns BIGINT, dur_ns BIGINT, name VARCHAR)"
    )
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        values = ", ".join(rows[first : first + _ROWS_AT_ONCE])
        engine.query(f"INSERT INTO {name} VALUES {values}")
    return name


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
