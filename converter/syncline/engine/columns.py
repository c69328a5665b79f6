"""The same tables and queries without a trace processor: DuckDB on the columns that a run left.

A view reads Parquet where it lies, so a folder of a thousand runs needs no more memory than a query
over it. CSV and JSON lines are parsed once, into a table.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import EngineError, Result, SqlError, Value

if TYPE_CHECKING:
    import duckdb

__all__ = ["ColumnsEngine", "is_columns", "open_columns"]

log = logging.getLogger(__name__)

TABLES = ("sync", "bio", "call", "wait", "loss", "mark", "meta")
# Files first, then what is built on them. Each is a file of sql/duckdb/.
_SQL_BEFORE = ("macros", "columns")
_SQL_AFTER = (*TABLES, "stack", "parallel")

_PARQUET = (".parquet",)
_CSV = (".csv", ".csv.gz", ".csv.zst")
_JSONL = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_LOW_LEVEL = (".events.jsonl", ".events.jsonl.gz", ".events.jsonl.zst")

# Without these a table of requests answers nothing; any other column may be missing.
_REQUIRED = ("sync_id", "ts_ns", "bytes", "bios")

_MEMORY_LIMIT = 4 << 30
_GUESSES = ("Did you mean ", "Candidate bindings: ", "Candidate tables: ", "Candidate functions:")
_CONVERT = "Convert the log to a folder of tables: syncline convert LOG -o DIR/"


@dataclass
class _Run:
    """Files of one run by table; `log` is the path when all there is is a high-level log."""

    name: str
    files: dict[str, Path] = field(default_factory=dict)
    log: str | None = None


class ColumnsEngine:
    """DuckDB with the tables of one run, or of many. Close it, or use it in a `with`."""

    name = "duckdb"

    def __init__(self, db: duckdb.DuckDBPyConnection, path: Path, scratch: Path) -> None:
        self.path = path
        self.version = f"v{_duckdb().__version__}"
        self._db = db
        self._scratch = scratch
        self._lock = threading.Lock()
        self._closed = False

    def query(self, sql: str) -> Result:
        """Runs one or more statements; the last one's rows are the result.

        Raises:
            SqlError: the SQL is wrong (with DuckDB's own message).
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
        """What an engine could not import: columns are read whole or not at all."""
        return []

    def close(self) -> None:
        """Frees the engine and its temporary files; closing twice is fine."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._db.close()
                shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> ColumnsEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def is_columns(path: Path | str) -> bool:
    """Whether the path looks like something that `open_columns` reads; opens no file."""
    path = Path(path)
    if path.is_dir():
        return _is_run(path) or any(_is_run(child) or _is_log(child) for child in _children(path))
    return _is_log(path)


def open_columns(path: Path | str, *, sql: Path, memory_limit: int | None = None) -> ColumnsEngine:
    """Opens columns: a folder of tables, a high-level log, or a folder of many of these.

    Args:
        path: what `syncline convert` wrote: `DIR/`, `X.parquet`, `X.csv`, `X.jsonl` (the last two
            also compressed), or a folder with several of these, one a run.
        sql: the folder `sql/duckdb`.
        memory_limit: bytes; by default half of the machine's, and 4 GiB at most.

    Raises:
        EngineError: no such input, or one that is not Syncline's.
    """
    path = Path(path)
    runs = _find_runs(path)
    duckdb = _duckdb()
    scratch = Path(tempfile.mkdtemp(prefix="syncline-"))
    db = None
    try:
        db = duckdb.connect(
            config={
                "memory_limit": f"{memory_limit or _default_memory()}B",
                "temp_directory": str(scratch),
                # All that is needed is built in; nothing is to be fetched behind the user's back.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        for name in _SQL_BEFORE:
            _execute(db, sql / f"{name}.sql")
        db.execute("CREATE TABLE _syncline_lacks(run VARCHAR, columns VARCHAR)")
        for table in TABLES:
            _attach(db, path, table, runs)
        _attach_logs(db, runs)
        for name in _SQL_AFTER:
            _execute(db, sql / f"{name}.sql")
    except BaseException as error:
        if db is not None:
            db.close()
        shutil.rmtree(scratch, ignore_errors=True)
        if isinstance(error, duckdb.Error):
            # What comes after the first line is the SQL, and what its author could do.
            reason = str(error).partition("\n")[0].rstrip(".")
            if isinstance(error, duckdb.InvalidInputException):
                reason += ": is it cut off, or are there more columns in one row than in another?"
            raise EngineError(f"{path}: cannot read the columns: {reason}", _CONVERT) from error
        raise
    return ColumnsEngine(db, path, scratch)


def _duckdb() -> Any:
    # Imported late: it takes a tenth of a second, which a command without it should not pay.
    try:
        import duckdb
    except ImportError as error:
        raise EngineError(
            "the Python package duckdb is missing, which reads Parquet, CSV and JSON lines",
            "pip install duckdb",
        ) from error
    return duckdb


def _default_memory() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _MEMORY_LIMIT
    return min(_MEMORY_LIMIT, memory // 2)


def _children(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if not child.name.startswith("."))


def _is_run(path: Path) -> bool:
    return (path / "syncline_sync.parquet").is_file()


def _is_log(path: Path) -> bool:
    name = path.name.lower()
    return (
        name.endswith(_PARQUET + _CSV + _JSONL) and not name.endswith(_LOW_LEVEL) and path.is_file()
    )


def _find_runs(path: Path) -> list[_Run]:
    if path.is_dir():
        if _is_run(path):
            return [_folder_run("", path)]
        others = [table for table in TABLES if (path / f"syncline_{table}.parquet").is_file()]
        if others:
            raise EngineError(
                f"{path}: syncline_sync.parquet is missing; of the tables of a run it holds"
                f" {', '.join(others)} alone",
                _CONVERT,
            )
        children = [child for child in _children(path) if _is_run(child) or _is_log(child)]
        if not children:
            raise EngineError(
                f"{path}: no syncline_sync.parquet in this folder, nor runs below it", _CONVERT
            )
        stems = Counter(_stem(child) for child in children)
        return [
            _folder_run(name, child) if child.is_dir() else _log_run(name, child)
            for child in children
            # `a/` beside `a.csv`: the ending tells them apart.
            for name in [_stem(child) if stems[_stem(child)] == 1 else child.name]
        ]
    if not path.exists():
        raise EngineError(f"{path}: no such file or folder", "Check the path.")
    if path.name.lower().endswith(_LOW_LEVEL):
        raise EngineError(f"{path}: this is a low-level log, of events, not of requests", _CONVERT)
    if not _is_log(path):
        raise EngineError(f"{path}: not .parquet, .csv or .jsonl, nor a folder of these", _CONVERT)
    return [_log_run("", path)]


def _stem(path: Path) -> str:
    if path.is_file():
        for suffix in (*_PARQUET, *_CSV, *_JSONL):
            if path.name.lower().endswith(suffix):
                return path.name[: -len(suffix)]
    return path.name


def _folder_run(name: str, folder: Path) -> _Run:
    files = {table: folder / f"syncline_{table}.parquet" for table in TABLES}
    return _Run(name, {table: file for table, file in files.items() if file.is_file()})


def _log_run(name: str, file: Path) -> _Run:
    return _Run(name, {"sync": file}, log=str(file))


def _execute(db: duckdb.DuckDBPyConnection, file: Path) -> None:
    db.execute(file.read_text(encoding="utf-8"))


def _attach(db: duckdb.DuckDBPyConnection, path: Path, table: str, runs: list[_Run]) -> None:
    """Makes `_syncline_file_TABLE`: the rows of all files, typed, with the run of each."""
    described = db.execute(f"DESCRIBE _syncline_columns_{table}").fetchall()
    types = {name: kind for name, kind, *_ in described}
    files = [(run.files[table], run.name) for run in runs if table in run.files]
    parts = []
    for suffixes, read in ((_PARQUET, _read_parquet), (_CSV, _read_csv), (_JSONL, _read_json)):
        chosen = [(file, run) for file, run in files if file.name.lower().endswith(suffixes)]
        if chosen:
            source = read([file for file, _ in chosen], types)
            select = _typed(db, source, types, chosen)
            if read is not _read_parquet:
                name = f"_syncline_parsed_{table}_{suffixes[0][1:]}"
                db.execute(f"CREATE TABLE {name} AS {select}")
                select = f"SELECT * FROM {name}"
            parts.append(select)
    if not parts:
        parts = [f"SELECT *, '' AS run FROM _syncline_columns_{table}"]
    db.execute(f"CREATE VIEW _syncline_file_{table} AS " + " UNION ALL ".join(parts))
    if table == "sync":
        _check_requests(db, path)


def _typed(
    db: duckdb.DuckDBPyConnection,
    source: str,
    types: dict[str, str],
    files: list[tuple[Path, str]],
) -> str:
    """A SELECT of exactly the columns in `types`, and `run`."""
    present = {row[0] for row in db.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    missing = [name for name in _REQUIRED if name in types and name not in present]
    # Only requests come from a file that the user named; the other tables stand beside it.
    if "bios" in types and missing:
        raise EngineError(
            f"{files[0][0]}: not a high-level log: no column {', '.join(missing)}",
            "leave in all columns that `syncline convert LOG -o OUT.csv` writes (docs/tables.md says what"
            " they are), or give the log",
        )
    if "bios" in types and (lacks := [name for name in types if name not in present]):
        db.executemany(
            "INSERT INTO _syncline_lacks VALUES (?, ?)",
            [[run, ", ".join(lacks)] for _, run in files],
        )
    columns = ", ".join(
        f'CAST("{name}" AS {kind}) AS "{name}"'
        if name in present
        else f'CAST(NULL AS {kind}) AS "{name}"'
        for name, kind in types.items()
    )
    names = {run for _, run in files}
    if len(names) == 1:
        return f"SELECT {columns}, {_text(names.pop())} AS run FROM {source}"
    pairs = ", ".join(f"({_text(file)}, {_text(run)})" for file, run in files)
    return (
        f"SELECT {columns}, origin.run AS run FROM {source} AS source"
        f" JOIN (VALUES {pairs}) AS origin(file, run) ON origin.file = source.syncline_file"
    )


def _read_parquet(files: list[Path], types: dict[str, str]) -> str:
    return f"read_parquet({_files(files)}, union_by_name = true, filename = 'syncline_file')"


def _read_csv(files: list[Path], types: dict[str, str]) -> str:
    # As text, cast afterwards: no guess from the first lines what a column is. "" is an empty
    # text, and nothing at all is null.
    return (
        f"read_csv({_files(files)}, header = true, all_varchar = true, delim = ',', quote = '\"',"
        " escape = '\"', nullstr = '', allow_quoted_nulls = false, union_by_name = true,"
        " filename = 'syncline_file')"
    )


def _read_json(files: list[Path], types: dict[str, str]) -> str:
    columns = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in types.items())
    return (
        f"read_json({_files(files)}, format = 'newline_delimited', columns = {{{columns}}},"
        " filename = 'syncline_file')"
    )


def _files(files: Iterable[Path]) -> str:
    """A list of file names, none of which is a pattern."""
    escape = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})
    return "[" + ", ".join(_text(str(file).translate(escape)) for file in files) + "]"


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _check_requests(db: duckdb.DuckDBPyConnection, path: Path) -> None:
    # JSON lines have no header that could lack a column.
    row = db.execute(
        "SELECT COUNT(*) FROM _syncline_file_sync WHERE sync_id IS NULL OR ts_ns IS NULL"
    ).fetchone()
    if row and row[0]:
        raise EngineError(
            f"{path}: not a high-level log: {row[0]:,} rows without sync_id or ts_ns", _CONVERT
        )


def _attach_logs(db: duckdb.DuckDBPyConnection, runs: list[_Run]) -> None:
    db.execute("CREATE TABLE _syncline_log(run VARCHAR, path VARCHAR, tables VARCHAR)")
    parts = [
        [
            run.name,
            run.log,
            ", ".join(f"syncline_{table}" for table in TABLES if table in run.files),
        ]
        for run in runs
        if len(run.files) < len(TABLES)
    ]
    if parts:
        db.executemany("INSERT INTO _syncline_log VALUES (?, ?, ?)", parts)


def _plain(value: Any) -> Value:
    """DuckDB has more types than SQL results need here: dates, decimals, lists."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    return str(value)


def _sql_reason(message: str) -> str:
    """DuckDB's message without its guesses, which offer tables that are no one's business."""
    lines = message.splitlines()
    return "\n".join(line for line in lines if not line.startswith(_GUESSES))
