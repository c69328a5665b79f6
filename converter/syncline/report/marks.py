"""Replaces the marks of a trace or of columns with those of `--marks`."""

from __future__ import annotations

from syncline.engine.columns import WITH_TABLES
from syncline.errors import InputError
from syncline.reading import Reading

from .run import run_query
from .tables import SqlEngine

__all__ = ["STATEMENTS", "realtime_offset", "span", "use_marks"]

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

# The clocks of the runs, and what to add to their times for ns since 1970.
_CLOCKS = """
SELECT
  MAX(CASE WHEN key = 'clock' THEN value END),
  MAX(CASE WHEN key = 'realtime_offset_ns' THEN NULLIF(value, '') END)
FROM syncline_meta
GROUP BY run
"""

# Marks in one statement.
_ROWS_AT_ONCE = 1000

# The queries that are run on the tables of requests.
STATEMENTS = (_SPAN, _CLOCKS)


def span(engine: SqlEngine) -> tuple[int | None, int | None]:
    """Returns the first and the last time of the log, or of all runs."""
    first, last = run_query(engine, _SPAN).rows[0]
    return (first if isinstance(first, int) else None, last if isinstance(last, int) else None)


def realtime_offset(clock: object, recorded: object) -> int | None:
    """Returns what to add to times of a clock for ns since 1970: the offset that is recorded, except for a clock that has it already."""
    if clock == "realtime":
        return 0
    return None if recorded is None else int(str(recorded))


def use_marks(engine: SqlEngine, reading: Reading) -> None:
    """Replaces the rows of `syncline_mark` with those of `--marks`, and warns of those outside the recording.

    Raises:
        InputError: the file cannot be read, or its times of day have no place in the recording.
        EngineError: the engine does not have Syncline's tables.
    """
    marks = reading.marks_file()
    if marks is None:
        return
    first, last = span(engine)
    rows, offset = marks.for_core(), None
    if marks.are_times_of_day:
        offset = _realtime_offset(engine)
        rows = marks.within(first, last, offset)
    _replace(engine, rows)
    reading.check_marks(marks, len(rows), (first, last), offset)


def _realtime_offset(engine: SqlEngine) -> int:
    clocks = run_query(engine, _CLOCKS).rows
    if len(clocks) != 1:
        raise InputError(
            "marks with times of day are of one run, and the input has several",
            "select one with --where",
        )
    ((clock, recorded),) = clocks
    offset = realtime_offset(clock, recorded)
    if offset is None:
        raise InputError(
            "the input does not say what time of day it was, so marks with times of day have no place in it",
            "`syncline record` and strace -ttt record the time of day; for this input, write the marks as CSV"
            " with its own times: time_ns,name",
        )
    return offset


def _replace(engine: SqlEngine, marks: list[tuple[int, str, int | None]]) -> None:
    """Replaces the rows of `syncline_mark` with these marks (ts_ns, name, dur_ns or None).

    A mark without a duration lasts until the next mark, the last one until the end of the log. Each of
    several runs gets all marks.

    Raises:
        EngineError: the engine does not have Syncline's tables.
    """
    marks = sorted(marks, key=lambda mark: mark[0])
    _, end = span(engine)
    ends = [mark[0] for mark in marks[1:]] + [
        mark[0] if end is None else end for mark in marks[-1:]
    ]
    rows = [
        f"({number}, {ts}, {max(until - ts, 0) if dur is None else dur}, {_text(name)})"
        for number, ((ts, name, dur), until) in enumerate(zip(marks, ends, strict=True), 1)
    ]
    if not rows:
        # A table needs a row, so that its columns have types. No mark has this number.
        rows = ["(0, 0, 0, '')"]
    columns = "mark_id, ts_ns, dur_ns, name"
    if engine.name in WITH_TABLES:
        if engine.name == "duckdb":
            source = _table_of(engine, rows)
        else:
            source = f"(VALUES {', '.join(rows)}) AS marks({columns})"
        engine.query(
            f"CREATE OR REPLACE VIEW syncline_mark AS SELECT {columns}, run FROM {source}"
            " CROSS JOIN (SELECT DISTINCT run FROM syncline_meta) WHERE mark_id > 0"
        )
        return
    # Runs the module now: it would otherwise replace the marks when the table is first used.
    run_query(engine, "SELECT COUNT(*) FROM syncline_mark")
    engine.query(
        "CREATE OR REPLACE PERFETTO TABLE syncline_mark AS"
        " SELECT column1 AS mark_id, column2 AS ts_ns, column3 AS dur_ns, column4 AS name, '' AS run"
        f" FROM (VALUES {', '.join(rows)}) WHERE column1 > 0"
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
