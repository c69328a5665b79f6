"""Puts the marks of `--marks` in place of those that a trace or columns hold."""

from __future__ import annotations

from syncline.engine.columns import ColumnsEngine

from .run import SqlEngine, run_query

__all__ = ["replace_marks", "span"]

# A high-level log alone has only its requests to tell.
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


def span(engine: SqlEngine) -> tuple[int | None, int | None]:
    """The first and the last time of the log, or of all runs."""
    first, last = run_query(engine, _SPAN).rows[0]
    return (first if isinstance(first, int) else None, last if isinstance(last, int) else None)


def replace_marks(engine: SqlEngine, marks: list[tuple[int, str, int | None]]) -> None:
    """Makes `syncline_mark` hold these (ts_ns, name, dur_ns or None) and no others.

    A mark without a length lasts until the next one, the last until the end of the log. With
    several runs each run gets all marks.

    Raises:
        EngineError: the engine has no tables of Syncline's.
    """
    marks = sorted(marks, key=lambda mark: mark[0])
    _, end = span(engine)
    ends = [mark[0] for mark in marks[1:]] + [marks[-1][0] if end is None else end]
    values = ", ".join(
        f"({number}, {ts}, {max(until - ts, 0) if dur is None else dur}, {_text(name)})"
        for number, ((ts, name, dur), until) in enumerate(zip(marks, ends, strict=True), 1)
    )
    columns = "column1 AS mark_id, column2 AS ts_ns, column3 AS dur_ns, column4 AS name"
    if engine.name == ColumnsEngine.name:
        engine.query(
            f"CREATE OR REPLACE VIEW syncline_mark AS SELECT {columns}, run"
            f" FROM (VALUES {values}) AS marks(column1, column2, column3, column4)"
            " CROSS JOIN (SELECT DISTINCT run FROM syncline_meta)"
        )
        return
    # The module must have run before, or it would replace them again.
    run_query(engine, "SELECT COUNT(*) FROM syncline_mark")
    engine.query(
        f"CREATE OR REPLACE PERFETTO TABLE syncline_mark AS SELECT {columns}, '' AS run"
        f" FROM (VALUES {values})"
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
