"""Runs a report, or any query on Syncline's tables, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from syncline import losses
from syncline.engine import DAMAGED, EngineError, Result, SqlError, Value
from syncline.engine.columns import WITH_TABLES, ColumnsEngine
from syncline.engine.expanded import expanded
from syncline.engine.staged import Staged, staged, staged_for_memory

from . import catalogue, covered, failures
from .sql_hints import hint
from .tables import NAMESPACE, SqlEngine, include, wanted

__all__ = [
    "NAMESPACE",
    "SqlEngine",
    "Table",
    "caveats",
    "check_trace",
    "fetch",
    "include",
    "keep",
    "read_failures",
    "run_query",
    "run_report",
    "run_report_in_batches",
    "statements",
]

_Fetched = TypeVar("_Fetched")

_NUMBERS = (
    "SELECT key, SUM(CAST(value AS BIGINT)) FROM syncline_meta"
    " WHERE key IN ('lines', 'events', 'requests') OR key LIKE 'events.%' GROUP BY key"
    " UNION ALL SELECT reason, SUM(count) FROM syncline_loss GROUP BY reason"
)
_REPORTED = ", ".join(f"'{reason}'" for reason in losses.REPORTED)
_LOST = (
    "SELECT reason, MIN(meaning) AS meaning, COUNT(DISTINCT run) AS runs FROM syncline_loss"
    f" WHERE (severity = 'loss' OR reason IN ({_REPORTED})) AND count > 0"
    " GROUP BY reason ORDER BY SUM(count) DESC, reason"
)
# The file systems of syncs that lack a bio.
_LACKING_BIOS = "SELECT DISTINCT fs FROM syncline_sync WHERE incomplete = 'bio'"
# No event says how btrfs spreads its data.
_STRIPES = (
    "; all are of btrfs: with RAID5 or RAID6 nothing is lost, because it submits stripes instead, as"
    " bios without a sync"
)
_COVERED = (
    "SELECT DISTINCT key, value FROM syncline_meta"
    f" WHERE key IN ({', '.join(map(repr, covered.KEYS))}) ORDER BY key, value"
)
# Columns that files lack, the number of runs that lack them, and of all runs.
_LACKING = (
    "SELECT value, COUNT(DISTINCT run), (SELECT COUNT(DISTINCT run) FROM syncline_meta)"
    " FROM syncline_meta WHERE key = 'missing_columns' GROUP BY value ORDER BY value"
)
_REQUEST_SLICES = "SELECT COUNT(*) FROM slice WHERE category = 'syncline.sync'"


@dataclass(frozen=True)
class Table:
    """The result of a report or a query.

    `why_empty`: why there are no rows, in sentences; empty if it is not known, or if there was nothing to show.
    """

    columns: list[str]
    rows: list[tuple[Value, ...]]
    why_empty: str = ""

    def as_dicts(self) -> list[dict[str, Any]]:
        """Returns the rows, keyed by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run_query(engine: SqlEngine, sql: str, *, is_of_user: bool = False) -> Table:
    """Runs any SQL. Syncline's tables that it names are built first.

    Args:
        is_of_user: the SQL is not Syncline's own, so a value that it does not expect is no damage.

    Raises:
        SqlError: the SQL is not valid; has a hint.
        EngineError: the input is damaged.
    """
    with _explained(engine, sql, is_of_user):
        include(engine, sql)
        result = engine.query(sql) if is_of_user else _in_steps(engine, sql)
    return Table(result.columns, result.rows)


def _in_steps(engine: SqlEngine, sql: str, head: str = "") -> Result:
    """Runs Syncline's own SQL. The last one of its steps begins with `head`."""
    with _steps(engine, sql) as steps:
        return engine.query(f"{steps.before}{head}{steps.query}")


@contextmanager
def _steps(engine: SqlEngine, sql: str) -> Iterator[Staged]:
    """Yields the steps of Syncline's own SQL: on a trace they take less time, on large tables less memory. Then removes their tables."""
    if isinstance(engine, ColumnsEngine) and engine.is_large:
        steps = staged_for_memory(expanded(sql, "duckdb"), in_file=True)
    elif engine.name == "spark":
        steps = staged_for_memory(expanded(sql, "spark"), in_file=False)
    elif engine.name in WITH_TABLES:
        steps = Staged("", sql, "")
    else:
        steps = staged(expanded(sql, "perfetto"))
    try:
        yield steps
    finally:
        if steps.after:
            # After an error this may fail too, and the first error is the one to show.
            with suppress(EngineError):
                engine.query(steps.after)


def fetch(
    engine: ColumnsEngine,
    sql: str,
    how: Callable[[Any], _Fetched],
    *,
    is_of_user: bool = False,
) -> _Fetched | None:
    """Runs any SQL with DuckDB, and returns its rows as `how` converts them: to Arrow, or a frame. None for SQL without rows.

    The errors are those of `run_query`.
    """
    with _explained(engine, sql, is_of_user):
        if is_of_user:
            return engine.fetch(sql, how)
        with _steps(engine, sql) as steps:
            return engine.fetch(f"{steps.before}{steps.query}", how)


@contextmanager
def _explained(engine: SqlEngine, sql: str, is_of_user: bool) -> Iterator[None]:
    try:
        yield
    except SqlError as error:
        if error.is_of_values and not is_of_user:
            raise _damaged(engine, error) from None
        error.hint = error.hint or hint(engine, sql, error.reason)
        raise


def keep(engine: SqlEngine, table: str, sql: str) -> None:
    """Creates a table with the result of a query, for queries that read it.

    Raises:
        SqlError: the SQL is not valid; has a hint.
    """
    kind = "TABLE" if engine.name == ColumnsEngine.name else "PERFETTO TABLE"
    head = f"CREATE OR REPLACE {kind} {table} AS\n"
    with _explained(engine, head + sql, is_of_user=False):
        include(engine, sql)
        _in_steps(engine, sql, head)


def run_report(engine: SqlEngine, name: str) -> Table:
    """Runs a report.

    Raises:
        UnknownReport: there is no report of that name.
        EngineError: the report cannot run, or the trace was not written by Syncline.
    """
    if name in catalogue.EACH_RUN and isinstance(engine, ColumnsEngine):
        batches = [*run_report_in_batches(engine, name)]
        return Table(batches[0].columns, [row for batch in batches for row in batch.rows])
    report = catalogue.load(name)
    check_trace(engine)
    return run_query(engine, report.sql)


def run_report_in_batches(engine: SqlEngine, name: str) -> Iterator[Table]:
    """Yields the rows of a report in batches, at least one. Other engines than DuckDB have one.

    The engine runs no other statement until the last batch. The errors are those of `run_report`.
    """
    if not isinstance(engine, ColumnsEngine):
        yield run_report(engine, name)
        return
    each_run = name in catalogue.EACH_RUN
    try:
        with _steps(engine, catalogue.load(name).sql) as steps:
            sql = f"{steps.before}{steps.query}"
            # Closed before the tables of the steps are removed, because the engine runs no other statement until then.
            with closing(engine.batches(sql, each_run=each_run)) as results:
                for result in results:
                    yield Table(result.columns, result.rows)
    except SqlError as error:
        raise (_damaged(engine, error) if error.is_of_values else error) from None


def _damaged(engine: SqlEngine, error: SqlError) -> EngineError:
    return EngineError(f"{engine.path} is damaged: {error.reason.partition(chr(10))[0]}", DAMAGED)


def check_trace(engine: SqlEngine) -> None:
    """Refuses a trace of another program: it would look like a run without syncs.

    Raises:
        EngineError: the trace was not written by Syncline.
    """
    if engine.name in WITH_TABLES:
        return
    if not run_query(engine, "SELECT 1 FROM syncline_meta LIMIT 1").rows:
        raise EngineError(
            f"{engine.path}: the trace was not written by Syncline, or is cut off: it has no metadata of a run",
            "Convert the log: syncline convert LOG -o OUT.pftrace",
        )


def read_failures(engine: SqlEngine) -> list[dict[str, Any]]:
    """Returns how many syncs, calls and bios failed, by kind. A kind whose results are not recorded is absent."""
    return failures.by_kind(run_query(engine, _failures()).rows)


def _failures() -> str:
    return catalogue.read_sql("commands/inspect", "failures")


def _edges() -> str:
    return catalogue.read_sql("commands/inspect", "edges")


def _values_of(key: str) -> str:
    return f"SELECT DISTINCT value FROM syncline_meta WHERE key = '{key}' ORDER BY value"


# These reports show who had bios at a device. Somebody who reads is missing from them if reads are not recorded.
_OF_DEVICES = ("device", "bystanders", "neighbours")


def lacks_reads(engine: SqlEngine, report: str) -> bool:
    """Whether a report is of what was at a device, and the input has no bio that reads."""
    return report in _OF_DEVICES and not run_query(engine, _reads()).rows[0][0]


def _reads() -> str:
    return catalogue.read_sql("commands/answer", "reads")


def statements(reports: Iterable[str]) -> list[str]:
    """Returns the SQL of reports and of what is said about them.

    Raises:
        UnknownReport: there is no report of one of the names.
    """
    facts = ("request_filter", "tables")
    said = [_NUMBERS, _LOST, _LACKING, _LACKING_BIOS, _edges(), _failures(), _reads()]
    said += [*map(_values_of, facts), _COVERED]
    return said + [catalogue.load(name).sql for name in reports]


def caveats(engine: SqlEngine, sql: str | None = None, *, says_failures: bool = True) -> list[str]:
    """Returns a sentence for each kind of failure, and for each reason why data is missing, to show above any report.

    Args:
        says_failures: False if the caller says them itself.
        sql: the only statement that will run, if it is known. If it names no table of Syncline, the
            tables of a trace are not built, and failures are not counted.
    """
    counts_failures = sql is None or engine.name in WITH_TABLES or bool(wanted(sql))
    # What failed is a finding about the machine, and the most serious one, so it comes before what is missing.
    found = [
        f"{failures.sentence(kind)}; the report failures lists them"
        for kind in (read_failures(engine) if says_failures and counts_failures else [])
        if kind["failed"]
    ]
    found += getattr(engine, "left_out", ())
    for name, severity, count in engine.stats():
        kind = "data loss" if severity == "data_loss" else severity
        found.append(f"Perfetto could not import all of the trace: {name} ({kind}) {count:,} times")
    numbers = run_query(engine, _NUMBERS).rows
    whole = {str(key): int(value) for key, value in numbers if value is not None}
    lost = run_query(engine, _LOST).rows
    # What the begin or the end of the recording cuts off is no loss. Its rows say what they lack.
    edges = run_query(engine, _edges()).rows if lost and counts_failures else []
    known = {reason for (reason,) in edges} | losses.said_anyway(whole)
    for reason, meaning, runs in [row for row in lost if row[0] not in known]:
        said = losses.sentence(str(reason), str(meaning or ""), whole, int(runs or 1))
        is_of_bios = reason == "never_submitted" and counts_failures
        if is_of_bios and [*run_query(engine, _LACKING_BIOS).rows] == [("btrfs",)]:
            said += _STRIPES
        found.append(said)
    filters = run_query(engine, _values_of("request_filter")).rows
    if engine.name not in WITH_TABLES and not filters:
        # A trace processor does not notice that packets are missing. With a filter, the number is that before it.
        held, stated = int(engine.query(_REQUEST_SLICES).rows[0][0]), whole.get("requests", 0)
        if held < stated:
            found.append(
                f"the trace holds {held:,} of the {stated:,} requests that it had when it was written: it is damaged, so convert the log again"
            )
    if filters:
        found.append(losses.filtered(" or ".join(str(wanted) for (wanted,) in filters), whole))
    found += covered.sentences(
        (str(key), str(value)) for key, value in run_query(engine, _COVERED).rows
    )
    lacking = run_query(engine, _LACKING).rows
    for columns, lack, runs in lacking:
        text = f"columns are missing and treated as unknown: {columns}"
        if int(runs or 1) > 1:
            text += f" (in {lack:,} of {runs:,} runs)"
        # In this column, null means complete.
        if "incomplete" in str(columns).split(", "):
            text += "; incomplete requests cannot be distinguished from complete ones"
        found.append(text)
    parts = run_query(engine, _values_of("tables")).rows
    for (tables,) in parts:
        if tables == "syncline_sync":
            found.append(
                "a high-level log holds only requests: bios, calls, marks and losses are not"
                " known (syncline convert LOG -o DIR/ keeps them)"
            )
        else:
            found.append(
                f"tables of a run are missing, it has only {tables}: the contents of the others"
                " are not known (syncline convert LOG -o DIR/ writes eight)"
            )
    return found
