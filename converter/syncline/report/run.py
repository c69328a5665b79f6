"""Runs a report, or any query on Syncline's tables, on any engine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from syncline.engine import EngineError, Result, Value
from syncline.engine.columns import ColumnsEngine

from . import catalogue

__all__ = ["NAMESPACE", "Table", "caveats", "include", "run_query", "run_report"]

# Of the PerfettoSQL package; an engine on a trace has to be opened with it.
NAMESPACE = "dev.syncline"

_TABLE = re.compile(r"\bsyncline_([a-z]+)\b", re.I)


class SqlEngine(Protocol):
    """What reports need of an engine."""

    name: str

    def query(self, sql: str) -> Result: ...

    def stats(self) -> list[tuple[str, str, int]]: ...


@dataclass(frozen=True)
class Table:
    """The answer to a report or a query."""

    columns: list[str]
    rows: list[tuple[Value, ...]]


def include(engine: SqlEngine, sql: str) -> None:
    """Builds the tables that the SQL names, and no others: a trace builds each from its slices.

    Raises:
        EngineError: the engine was opened without Syncline's package.
    """
    if engine.name == ColumnsEngine.name:
        return
    modules = {file.stem for file in (catalogue.sql_root() / "perfetto").glob("*.sql")}
    wanted = sorted(modules & {name.lower() for name in _TABLE.findall(sql)})
    if wanted:
        engine.query("".join(f"INCLUDE PERFETTO MODULE {NAMESPACE}.{name};\n" for name in wanted))


def run_query(engine: SqlEngine, sql: str) -> Table:
    """Runs any SQL; Syncline's tables are there when it names them.

    Raises:
        EngineError: the SQL is wrong.
    """
    include(engine, sql)
    result = engine.query(sql)
    return Table(result.columns, result.rows)


def run_report(engine: SqlEngine, name: str) -> Table:
    """Runs a report.

    Raises:
        UnknownReport: there is none of that name.
        EngineError: it cannot run, or the trace is not Syncline's.
    """
    report = catalogue.load(name)
    _check_trace(engine)
    return run_query(engine, report.sql)


def _check_trace(engine: SqlEngine) -> None:
    # Any trace has slices, so without this a foreign one would be a run with no syncs.
    if engine.name == ColumnsEngine.name:
        return
    if not run_query(engine, "SELECT 1 FROM syncline_meta LIMIT 1").rows:
        raise EngineError(
            "this trace was not written by Syncline: it holds no facts of a run",
            "Convert the log: syncline convert LOG -o OUT.pftrace",
        )


# What a loss is a part of, for "85 of 100 bios"; of all events, if not named here.
_BASE = {
    "never_completed": ("bios", "SELECT COUNT(*) FROM syncline_bio"),
    "never_submitted": ("bios", "SELECT COUNT(*) FROM syncline_bio"),
    "start_missing": ("requests", "SELECT COUNT(*) FROM syncline_sync"),
    "end_missing": ("requests", "SELECT COUNT(*) FROM syncline_sync"),
    "unparsed_line": (
        "lines",
        "SELECT SUM(CAST(value AS BIGINT)) FROM syncline_meta WHERE key = 'lines'",
    ),
}
_EVENTS = (
    "events",
    "SELECT SUM(CAST(value AS BIGINT)) FROM syncline_meta WHERE key = 'events'",
)


def caveats(engine: SqlEngine) -> list[str]:
    """What the reader of any report has to know: one sentence for each thing that is missing."""
    found = []
    for name, severity, count in engine.stats():
        kind = "data loss" if severity == "data_loss" else severity
        found.append(f"Perfetto could not import all of the trace: {name} ({kind}) {count:,} times")
    losses = run_query(
        engine,
        "SELECT reason, MIN(meaning) AS meaning, CAST(SUM(count) AS BIGINT) AS count,"
        " COUNT(DISTINCT run) AS runs FROM syncline_loss"
        " WHERE severity = 'loss' AND count > 0 GROUP BY reason ORDER BY 3 DESC, reason",
    ).rows
    for reason, meaning, count, runs in losses:
        noun, sql = _BASE.get(str(reason), _EVENTS)
        total = run_query(engine, sql).rows[0][0]
        # Events that the tracer lost are not among those that the log holds.
        beside = "beside" if reason == "lost_by_tracer" else "of"
        part = f"{count:,} {beside} {int(total):,} {noun}" if total else f"{count:,}"
        where = f" in {runs:,} runs" if isinstance(runs, int) and runs > 1 else ""
        found.append(f"{part}{where}: {reason}" + (f": {meaning}" if meaning else ""))
    logs = run_query(engine, "SELECT COUNT(*) FROM syncline_meta WHERE key = 'tables'").rows[0][0]
    if logs:
        found.append(
            "a high-level log holds requests alone: its bios, calls, marks and losses are not known"
            " (syncline convert LOG -o DIR/ keeps them)"
        )
    return found
