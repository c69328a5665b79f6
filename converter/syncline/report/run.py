"""Runs a report, or any query on Syncline's tables, on any engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from syncline import losses
from syncline.engine import EngineError, Result, SqlError, Value
from syncline.engine.columns import ColumnsEngine

from . import catalogue

__all__ = ["NAMESPACE", "Table", "caveats", "check_trace", "include", "run_query", "run_report"]

# Of the PerfettoSQL package; an engine on a trace has to be opened with it.
NAMESPACE = "dev.syncline"

_TABLE = re.compile(r"\bsyncline_([a-z]+)\b", re.I)


class SqlEngine(Protocol):
    """What reports need of an engine."""

    name: str
    path: Path

    def query(self, sql: str) -> Result: ...

    def stats(self) -> list[tuple[str, str, int]]: ...


@dataclass(frozen=True)
class Table:
    """The answer to a report or a query."""

    columns: list[str]
    rows: list[tuple[Value, ...]]


def modules() -> list[str]:
    """The tables, each without its `syncline_`."""
    return sorted(file.stem for file in (catalogue.sql_root() / "perfetto").glob("*.sql"))


def include(engine: SqlEngine, sql: str) -> None:
    """Builds the tables that the SQL names, and no others: a trace builds each from its slices.

    Raises:
        EngineError: the engine was opened without Syncline's package.
    """
    if engine.name == ColumnsEngine.name:
        return
    wanted = sorted({*modules()} & {name.lower() for name in _TABLE.findall(sql)})
    if wanted:
        engine.query("".join(f"INCLUDE PERFETTO MODULE {NAMESPACE}.{name};\n" for name in wanted))


def run_query(engine: SqlEngine, sql: str) -> Table:
    """Runs any SQL; Syncline's tables are there when it names them.

    Raises:
        SqlError: the SQL is wrong; with a hint.
    """
    try:
        include(engine, sql)
        result = engine.query(sql)
    except SqlError as error:
        from .sql_hints import hint

        error.hint = error.hint or hint(engine, sql, error.reason)
        raise
    return Table(result.columns, result.rows)


def run_report(engine: SqlEngine, name: str) -> Table:
    """Runs a report.

    Raises:
        UnknownReport: there is none of that name.
        EngineError: it cannot run, or the trace is not Syncline's.
    """
    report = catalogue.load(name)
    check_trace(engine)
    return run_query(engine, report.sql)


def check_trace(engine: SqlEngine) -> None:
    """Any trace has slices, so without this a foreign one would be a run with no syncs.

    Raises:
        EngineError: the trace is not Syncline's.
    """
    if engine.name == ColumnsEngine.name:
        return
    if not run_query(engine, "SELECT 1 FROM syncline_meta LIMIT 1").rows:
        raise EngineError(
            f"{engine.path}: the trace was not written by Syncline, or is cut off: it holds no facts of a run",
            "Convert the log: syncline convert LOG -o OUT.pftrace",
        )


def caveats(engine: SqlEngine) -> list[str]:
    """What the reader of any report has to know: one sentence for each thing that is missing."""
    found = []
    for name, severity, count in engine.stats():
        kind = "data loss" if severity == "data_loss" else severity
        found.append(f"Perfetto could not import all of the trace: {name} ({kind}) {count:,} times")
    numbers = run_query(
        engine,
        "SELECT key, SUM(CAST(value AS BIGINT)) FROM syncline_meta"
        " WHERE key IN ('lines', 'events', 'requests') OR key LIKE 'events.%' GROUP BY key"
        " UNION ALL SELECT reason, SUM(count) FROM syncline_loss GROUP BY reason",
    ).rows
    whole = {str(key): int(value) for key, value in numbers if value is not None}
    told = ", ".join(f"'{reason}'" for reason in losses.REPORTED)
    lost = run_query(
        engine,
        "SELECT reason, MIN(meaning) AS meaning, COUNT(DISTINCT run) AS runs FROM syncline_loss"
        f" WHERE (severity = 'loss' OR reason IN ({told})) AND count > 0 GROUP BY reason ORDER BY SUM(count) DESC, reason",
    ).rows
    for reason, meaning, runs in lost:
        found.append(losses.sentence(str(reason), str(meaning or ""), whole, int(runs or 1)))
    filters = run_query(
        engine, "SELECT DISTINCT value FROM syncline_meta WHERE key = 'request_filter' ORDER BY value"
    ).rows
    if filters:
        found.append(losses.filtered(" or ".join(str(wanted) for (wanted,) in filters), whole))
    lacking = run_query(
        engine,
        "SELECT DISTINCT value FROM syncline_meta WHERE key = 'missing_columns' ORDER BY value",
    ).rows
    for (columns,) in lacking:
        told = f"columns are missing, and taken for unknown: {columns}"
        # Null means complete there.
        if "incomplete" in str(columns).split(", "):
            told += "; requests that lack a half are not told from the others"
        found.append(told)
    parts = run_query(
        engine, "SELECT DISTINCT value FROM syncline_meta WHERE key = 'tables' ORDER BY value"
    ).rows
    for (tables,) in parts:
        if tables == "syncline_sync":
            found.append(
                "a high-level log holds requests alone: its bios, calls, marks and losses are not"
                " known (syncline convert LOG -o DIR/ keeps them)"
            )
        else:
            found.append(
                f"tables of a run are missing, all there is is {tables}: what the others would"
                " tell is not known (syncline convert LOG -o DIR/ writes seven)"
            )
    return found
