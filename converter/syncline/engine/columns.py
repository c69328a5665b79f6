"""The engine that needs no trace processor: DuckDB on the tables of one run or many.

Parquet is read by views, so a folder of a thousand runs needs no more memory than the query
itself. CSV and JSON lines are parsed once, into a table.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from syncline.kinds import is_columns
from syncline.scratch import scratch_folder

from .attach import attach_runs
from .errors import EngineError, SqlError
from .result import Result, Value
from .run_files import CONVERT, find_runs

if TYPE_CHECKING:
    import duckdb

__all__ = ["ColumnsEngine", "is_columns", "open_columns"]

# In bytes.
_MEMORY_LIMIT = 4 << 30
_GUESSES = ("Did you mean ", "Candidate bindings: ", "Candidate tables: ", "Candidate functions:")


class ColumnsEngine:
    """DuckDB with the tables of one run, or of many. Close it, or use it in a `with`."""

    name = "duckdb"

    def __init__(
        self, db: duckdb.DuckDBPyConnection, path: Path, scratch: contextlib.ExitStack
    ) -> None:
        self.path = path
        self.version = f"v{_duckdb().__version__}"
        self._db = db
        self._scratch = scratch
        self._lock = threading.Lock()
        self._closed = False

    def query(self, sql: str) -> Result:
        """Runs one or more statements and returns the rows of the last one.

        Raises:
            SqlError: the SQL is wrong. The message is DuckDB's own.
            EngineError: the files cannot be read, or the engine is closed.
        """
        with self._lock:
            if self._closed:
                raise EngineError(
                    f"{self.path}: the engine is closed", "Query inside the `with` block."
                )
            try:
                cursor = self._db.execute(sql)
                columns = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchall() if columns else []
            except _duckdb().Error as error:
                if isinstance(error, _duckdb().ProgrammingError | _duckdb().DataError):
                    raise SqlError(_sql_reason(str(error))) from error
                raise EngineError(f"{self.path}: {error}") from error
        return Result(columns, [tuple(map(_plain, row)) for row in rows])

    def stats(self) -> list[tuple[str, str, int]]:
        """Returns what the engine could not import: nothing, because a table is read as a whole."""
        return []

    def close(self) -> None:
        """Frees the engine and its temporary files. It may be called again."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._db.close()
                self._scratch.close()

    def __enter__(self) -> ColumnsEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_columns(path: Path | str, *, sql: Path, memory_limit: int | None = None) -> ColumnsEngine:
    """Opens a folder of tables, a high-level log, or a folder that holds several of these.

    Args:
        path: an output of `syncline convert`: `DIR/`, `X.parquet`, `X.csv`, `X.jsonl` (the last two
            also compressed), or a folder of these. Each of them is a run.
        sql: the folder `sql/duckdb`.
        memory_limit: bytes; by default half of the machine's memory, at most 4 GiB.

    Raises:
        EngineError: the input does not exist, or Syncline did not write it.
    """
    path = Path(path)
    runs = find_runs(path)
    duckdb = _duckdb()
    # Closed with the engine.
    scratch = contextlib.ExitStack()
    spill = scratch.enter_context(scratch_folder())
    db = None
    try:
        db = duckdb.connect(
            config={
                "memory_limit": f"{memory_limit or _default_memory()}B",
                "temp_directory": str(spill),
                # No extension is needed, and none may be downloaded.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        attach_runs(db, path, runs, sql)
    except BaseException as error:
        if db is not None:
            db.close()
        scratch.close()
        if isinstance(error, duckdb.Error):
            # The other lines are our SQL and DuckDB's advice to its author.
            reason = str(error).partition("\n")[0].rstrip(".")
            if isinstance(error, duckdb.InvalidInputException):
                reason += ": is the file cut off, or do its rows differ in the number of columns?"
            raise EngineError(f"{path}: cannot read the columns: {reason}", CONVERT) from error
        raise
    return ColumnsEngine(db, path, scratch)


def _duckdb() -> Any:
    # The import takes a tenth of a second, so it is done only when it is needed.
    try:
        import duckdb
    except ImportError as error:
        raise EngineError(
            "the Python package duckdb, which reads Parquet, CSV and JSON lines, is missing",
            "pip install duckdb",
        ) from error
    return duckdb


def _default_memory() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _MEMORY_LIMIT
    return min(_MEMORY_LIMIT, memory // 2)


def _plain(value: Any) -> Value:
    """Converts the types of DuckDB that `Value` has not (dates, decimals, lists) to text."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    return str(value)


def _sql_reason(message: str) -> str:
    """Removes the guesses of DuckDB, which name internal tables, from its message."""
    lines = message.splitlines()
    return "\n".join(line for line in lines if not line.startswith(_GUESSES))
