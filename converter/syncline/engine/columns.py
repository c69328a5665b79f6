"""The engine that needs no trace processor: DuckDB on the tables of one run or many.

Parquet is read by views, so a folder of a thousand runs needs no more memory than the query
itself. CSV and JSON lines are parsed once, into a table.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from syncline import interruptible, scratch

from .attach import COPIED_WHEN_NAMED, DERIVED, as_pattern, attach_runs, copy_view
from .errors import DAMAGED, EngineError, SqlError
from .expanded import expanded
from .file_columns import FILE_COLUMNS
from .reads import reads
from .result import Result, Value
from .run_files import CONVERT, RunFiles, find_runs
from .staged import STEPS_DATABASE
from .statements import NO_FILES, allowed_statements

if TYPE_CHECKING:
    import duckdb

    Show = Callable[[duckdb.DuckDBPyConnection, int | None], object]

__all__ = [
    "MEMORY_VARIABLE",
    "WITH_TABLES",
    "ColumnsEngine",
    "import_duckdb",
    "open_attached",
    "open_columns",
]

_Found = TypeVar("_Found")
# Rows.
_BATCH = 10_000
# Tables of more than this are large: reports run in steps, and DuckDB gives freed memory back early. The latter alone takes a twentieth less
# memory, and 8 % more CPU time on large tables, but 25 % more on small ones. Memory goes by rows, because a file may hold a million of them in
# half a megabyte; CSV and JSON do not say how many they hold.
_LARGE_ROWS = 1_000_000
_LARGE_BYTES = 32 * 1024 * 1024
_FREE_EARLY = "SET allocator_bulk_deallocation_flush_threshold = '1MB'"
# The memory that DuckDB may use, such as 2G.
MEMORY_VARIABLE = "SYNCLINE_MEMORY"
_SIZE = re.compile(r"(\d{1,12})([KMG]?)I?B?")
# In bytes. DuckDB counts what its operators hold, and the process has about 0.25 GB more, so it stays within 4 GB.
_MEMORY_LIMIT = 3_500_000_000
# Tables whose files may lack rows, or the values of columns.
_ROWS = ("sync", "bio", "call", "wait", "phase", "journal", "write_wait", "file_op")
# Engines that have the tables from the start. The others build each table from a trace when it is first used.
WITH_TABLES = ("duckdb", "spark")
_GUESSES = ("Did you mean ", "Candidate bindings: ", "Candidate tables: ", "Candidate functions:")


class ColumnsEngine:
    """DuckDB with the tables of one run, or of many. Close it, or use it in a `with`."""

    name = "duckdb"

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        path: Path,
        temporary: Path,
        *,
        allow_files: bool = False,
        absent: frozenset[str] = frozenset(),
        left_out: tuple[str, ...] = (),
        is_dataset: bool = False,
        explain: Callable[[str], EngineError] | None = None,
        show: Show | None = None,
        groups: int = 1,
        files: Iterable[Path] = (),
        is_copied: bool = False,
        is_large: bool = False,
    ) -> None:
        # A view that the next statement that names it copies.
        self._to_copy = COPIED_WHEN_NAMED if is_copied else None
        self._files = [*files]
        self.path = path
        self.is_dataset = is_dataset
        # What a query holds may not fit the memory.
        self.is_large = is_large
        # A sentence for each reason why runs are left out.
        self.left_out = left_out
        self.version = f"v{import_duckdb().__version__}"
        self._db = db
        self._temporary = temporary
        self._allow_files = allow_files
        self._absent = absent
        self._explain = explain
        self._show = show
        self._groups = groups
        self._lock = threading.Lock()
        self._closed = False
        # Whether DuckDB is running a query: an interrupted one may not have ended yet.
        self._working = False

    def query(self, sql: str) -> Result:
        """Runs one or more statements and returns the rows of the last one.

        Raises:
            SqlError: the SQL is wrong. The message is DuckDB's own.
            EngineError: the files cannot be read, the engine is closed, or the SQL names a column
                that was not to be read.
        """
        sql = expanded(sql, "duckdb")
        with self._open(sql):
            columns, rows = interruptible.call(lambda: self._run(sql), cancel=self._db.interrupt)
        return Result(columns, [tuple(map(_plain, row)) for row in rows])

    def fetch(self, sql: str, how: Callable[[duckdb.DuckDBPyRelation], _Found]) -> _Found | None:
        """Runs SQL, and returns the result of its last statement as `how` converts it: to Arrow, or a frame. None if it has no rows.

        No row becomes a value of Python on the way. The errors are those of `query`.
        """
        sql = expanded(sql, "duckdb")

        def run() -> _Found | None:
            *before, last = self._statements(sql)
            for statement in before:
                self._db.execute(statement)
            try:
                relation = self._db.sql(last)
            except import_duckdb().Error:
                # This error says the line too.
                self._db.execute(last)
                raise
            return None if relation is None else how(relation)

        with self._open(sql):
            return interruptible.call(lambda: self._work(run), cancel=self._db.interrupt)

    def batches(self, sql: str, *, each_run: bool = False) -> Iterator[Result]:
        """Yields the rows of one statement in batches, at least one, so that they need not fit the memory.

        The engine runs no other statement until the last batch. The errors are those of `query`.

        Args:
            each_run: the rows are those that it would give for each run, run by run. So it needs memory and temporary
                space for some runs of a dataset at a time.
        """
        sql = expanded(sql, "duckdb")
        show = self._show
        has_groups = self._groups > 1
        if show is None or not (each_run and has_groups):
            yield from self._batches(sql)
            return
        try:
            for group in range(self._groups):
                self._show_group(sql, show, group)
                yield from self._batches(sql)
        except (Exception, GeneratorExit):
            with contextlib.suppress(EngineError):
                self._show_group(sql, show, None)
            raise
        self._show_group(sql, show, None)

    def _show_group(self, sql: str, show: Show, group: int | None) -> None:
        with self._open(sql):
            interruptible.call(lambda: show(self._db, group), cancel=self._db.interrupt)

    def _batches(self, sql: str) -> Iterator[Result]:
        with self._open(sql):
            columns, rows = interruptible.call(
                lambda: self._run(sql, _BATCH), cancel=self._db.interrupt
            )
            while True:
                yield Result(columns, [tuple(map(_plain, row)) for row in rows])
                rows = interruptible.call(
                    lambda: self._work(lambda: self._db.fetchmany(_BATCH)),
                    cancel=self._db.interrupt,
                )
                if not rows:
                    break

    @contextmanager
    def _open(self, sql: str) -> Iterator[None]:
        """Holds the engine for a statement, and explains its errors."""
        if self._absent and (absent := self._absent & reads(sql)):
            raise EngineError(
                f"{self.path}: {', '.join(sorted(absent))}: not read, because no announced statement names it",
                "This is a fault of Syncline: please report it.",
            )
        with self._lock:
            if self._closed:
                raise EngineError(
                    f"{self.path}: the engine is closed", "Query inside the `with` block."
                )
            try:
                if self._to_copy and self._to_copy in sql.lower():
                    view, self._to_copy = self._to_copy, None
                    interruptible.call(lambda: copy_view(self._db, view), cancel=self._db.interrupt)
                yield
            except import_duckdb().Error as error:
                if isinstance(error, import_duckdb().PermissionException):
                    raise SqlError(_first_line(str(error)), NO_FILES) from error
                is_full = isinstance(error, import_duckdb().OutOfMemoryException)
                if is_full or "No space left on device" in str(error):
                    raise EngineError(
                        f"{self.path}: the query needs more memory or temporary space than it has:"
                        f" {_first_line(str(error))}",
                        f"allow it more memory: {MEMORY_VARIABLE}=8G; check the space in TMPDIR; or read fewer runs"
                        " of a dataset: --where",
                    ) from None
                if damaged := self._damaged_file(error):
                    raise EngineError(
                        f"{damaged} is damaged: {_first_line(str(error))}", DAMAGED
                    ) from None
                if self._explain and (_is_of_files(error) or "AWS Error" in str(error)):
                    raise self._explain(str(error)) from None
                if isinstance(error, import_duckdb().ProgrammingError | import_duckdb().DataError):
                    is_of_values = isinstance(
                        error, import_duckdb().DataError | import_duckdb().InvalidInputException
                    )
                    raise SqlError(_sql_reason(str(error)), is_of_values=is_of_values) from error
                raise EngineError(f"{self.path}: {error}") from error
            except (UnicodeDecodeError, RuntimeError) as error:
                if not _is_of_names(error):
                    raise
                raise EngineError(
                    f"{self.path} is damaged: a name in it is not UTF-8", DAMAGED
                ) from None

    def _damaged_file(self, error: Exception) -> Path | None:
        """Returns the Parquet file that cannot be read, if that may be why a query failed.

        The class of the error does not say it: it depends on which thread comes first to which part of the file.
        """
        if self._explain or not (
            _is_of_files(error) or isinstance(error, import_duckdb().DataError)
        ):
            return None
        for file in self._files:
            if file.suffix != ".parquet":
                continue
            try:
                self._db.execute(
                    f"SELECT MAX(hash(COLUMNS(*))) FROM read_parquet('{_quoted(file)}')"
                )
                self._db.fetchall()
            except (import_duckdb().Error, UnicodeDecodeError, RuntimeError):
                return file
        return None

    def _run(
        self, sql: str, max_rows: int | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Runs SQL. Returns the columns and the rows of its last statement.

        Args:
            max_rows: the rows behind these stay in the database, for `fetchmany`. None: all are returned.
        """

        def run() -> tuple[list[str], list[tuple[Any, ...]]]:
            statements = self._statements(sql)
            for statement in statements:
                self._db.execute(statement)
            columns = [column[0] for column in self._db.description or ()] if statements else []
            if not columns:
                return columns, []
            if max_rows is None:
                return columns, self._db.fetchall()
            return columns, self._db.fetchmany(max_rows)

        return self._work(run)

    def _statements(self, sql: str) -> list[Any]:
        return [sql] if self._allow_files else [*allowed_statements(self._db, sql)]

    def _work(self, work: Callable[[], _Found]) -> _Found:
        self._working = True
        try:
            return work()
        finally:
            self._working = False

    def stats(self) -> list[tuple[str, str, int]]:
        """Returns what the engine could not import: nothing, because a table is read as a whole."""
        return []

    def close(self) -> None:
        """Frees the engine and its temporary files. It may be called again."""
        with self._lock:
            if not self._closed:
                self._closed = True
                # Closing would wait for a query that does not react to an interrupt.
                if not self._working:
                    self._db.close()
                scratch.remove(self._temporary)

    def __enter__(self) -> ColumnsEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_columns(
    path: Path | str,
    *,
    sql: Path,
    memory_limit: int | None = None,
    allow_files: bool = False,
    named: frozenset[str] | None = None,
    runs: list[RunFiles] | None = None,
    is_fresh: bool = False,
) -> ColumnsEngine:
    """Opens a folder of tables, a high-level log, or a folder that holds several of these.

    Args:
        path: an output of `syncline convert`: `DIR/`, `X.parquet`, `X.csv`, `X.jsonl` (the last two
            also compressed), or a folder of these. Each of them is a run.
        sql: the folder `sql/tables/duckdb`.
        memory_limit: bytes; by default half of the machine's memory, at most 3.5 GB.
        allow_files: SQL may read and write other files too, and load extensions of DuckDB.
        named: the files hold only these tables and columns, as `reads` returns them; None if they hold all.
        runs: the files of the runs, if they are known; by default they are looked for.
        is_fresh: this process has just written the files, so they are not checked for damage.

    Raises:
        EngineError: the input does not exist, or Syncline did not write it.
    """
    path = Path(path)
    runs = find_runs(path) if runs is None else runs
    limit = memory_limit or _default_memory()
    # The tables and columns that the files do not hold.
    absent = frozenset[str]()
    if named is not None:
        absent = _not_named(named)
    return open_attached(
        path,
        lambda db: attach_runs(db, path, runs, sql, limit, absent, is_fresh=is_fresh),
        files=[file for run in runs for file in run.tables.values()],
        memory_limit=limit,
        allow_files=allow_files,
        absent=absent,
    )


def open_attached(
    path: Path,
    attach: Callable[[duckdb.DuckDBPyConnection], bool | None],
    *,
    files: Iterable[Path] = (),
    folders: Iterable[str] = (),
    memory_limit: int | None = None,
    allow_files: bool = False,
    absent: frozenset[str] = frozenset(),
    left_out: tuple[str, ...] = (),
    is_dataset: bool = False,
    explain: Callable[[str], EngineError] | None = None,
    show: Show | None = None,
    groups: int = 1,
) -> ColumnsEngine:
    """Opens a database to which `attach` adds the tables.

    Args:
        path: the INPUT, for messages.
        attach: called with an empty database. Returns whether the tables are in memory, because they have few rows.
        files: what SQL may read.
        folders: what SQL may read, with all that is in them; each ends in `/`.
        absent: tables and columns that were not read. SQL that names one is refused.
        left_out: a sentence for each reason why runs are left out.
        is_dataset: `attach` adds syncline_run too.
        explain: returns what is wrong with the files, when a query cannot read them.
        show: makes the tables those of a group of the runs, or of all (None).
        groups: the number of groups, in the order of the column `run`.

    The other arguments are those of `open_columns`.

    Raises:
        EngineError: the files cannot be read.
    """
    duckdb = import_duckdb()
    temporary = scratch.create()
    files = [*files]
    is_large = bool(folders) or _size(files) > _LARGE_BYTES
    db = None
    try:
        db = duckdb.connect(
            config={
                "memory_limit": f"{memory_limit or _default_memory()}B",
                "temp_directory": str(temporary),
                # Other programs use the disk too. DuckDB 2.0.0 exceeds this for large percentiles.
                "max_temp_directory_size": f"{shutil.disk_usage(temporary).free // 2}B",
                # No extension is needed, and none may be downloaded.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                # A name in SQL is a table, never a variable of this program.
                "python_enable_replacements": False,
            }
        )
        is_large = is_large or _rows(db, files) > _LARGE_ROWS
        if is_large:
            db.execute(_FREE_EARLY)
            db.execute(f"ATTACH '{temporary / 'steps.duckdb'}' AS {STEPS_DATABASE}")
        is_copied = interruptible.call(lambda: attach(db), cancel=db.interrupt)
        if not allow_files:
            interruptible.call(lambda: _confine(db, files, folders))
    except BaseException as error:
        if db is not None and not interruptible.was_abandoned():
            db.close()
        scratch.remove(temporary)
        if _is_of_names(error):
            raise EngineError(f"{path} is damaged: a name in it is not UTF-8", DAMAGED) from None
        if isinstance(error, duckdb.Error):
            if explain is not None:
                raise explain(_first_line(str(error))) from None
            # The other lines are our SQL and DuckDB's advice to its author.
            reason = _first_line(str(error)).rstrip(".")
            # Its advice on other errors of CSV names encodings, too.
            if any(
                words in str(error).lower()
                for words in ("invalid unicode", "byte sequence", "invalid utf")
            ):
                raise EngineError(
                    f"{path}: its text is not UTF-8",
                    "rewrite it, for example from Latin-1: iconv -f latin1 -t utf-8 FILE",
                ) from None
            if _is_of_files(error) and any(file.suffix == ".parquet" for file in files):
                raise EngineError(f"{path} is damaged: {reason}", DAMAGED) from None
            if isinstance(error, duckdb.InvalidInputException):
                reason += ": is the file cut off, or do its rows differ in the number of columns?"
            raise EngineError(f"{path}: cannot read the columns: {reason}", CONVERT) from error
        raise
    return ColumnsEngine(
        db,
        path,
        temporary,
        allow_files=allow_files,
        absent=absent,
        left_out=left_out,
        is_dataset=is_dataset,
        explain=explain,
        show=show,
        groups=groups,
        files=files,
        is_copied=bool(is_copied),
        is_large=is_large,
    )


def _quoted(file: Path) -> str:
    return as_pattern(file).replace("'", "''")


def _size(files: Iterable[Path]) -> int:
    """Returns how many bytes files have together. A missing one has none: the query says so."""
    size = 0
    for file in files:
        with contextlib.suppress(OSError):
            size += file.stat().st_size
    return size


def _rows(db: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> int:
    """Returns how many rows files of Parquet hold together, as they say themselves. A damaged one has none: the query says so."""
    names = [as_pattern(file) for file in files if file.suffix == ".parquet" and file.is_file()]
    if names:
        with contextlib.suppress(import_duckdb().Error):
            of_files = "SELECT CAST(SUM(num_rows) AS BIGINT) FROM parquet_file_metadata($names)"
            ((rows,),) = db.execute(of_files, {"names": names}).fetchall()
            return int(rows)
    return 0


def _not_named(named: frozenset[str]) -> frozenset[str]:
    """Returns the tables of rows, their columns, and the views derived from them that are not named."""
    absent = DERIVED - named
    for name in _ROWS:
        table = f"syncline_{name}"
        columns = {f"{table}.{column}" for column in FILE_COLUMNS[name]}
        if table not in named:
            absent |= {table}
        if f"{table}.*" not in named:
            absent |= {*columns, f"{table}.*"} - named
    return absent


def _confine(db: duckdb.DuckDBPyConnection, files: Iterable[Path], folders: Iterable[str]) -> None:
    """Lets SQL read the files of the runs, and no other file. It cannot be undone.

    DuckDB has one list for reading and writing, so `refuse_file_access` refuses statements that write.
    """
    # The views name files by patterns, and DuckDB checks both.
    names = sorted({name for file in files for name in (str(file), as_pattern(file))})
    db.execute("SET allowed_paths = $names", {"names": names})
    db.execute("SET allowed_directories = $names", {"names": [*folders]})
    for setting in ("enable_external_access = false", "lock_configuration = true"):
        db.execute(f"SET {setting}")


def import_duckdb() -> Any:
    """Returns the module duckdb.

    Raises:
        EngineError: it is missing.
    """
    # The import takes a tenth of a second, so it is done only when it is needed.
    # A signal in the middle of the import would abort the process: DuckDB's C++ code calls Python then.
    try:
        duckdb = sys.modules.get("duckdb")
        return duckdb or interruptible.call(lambda: importlib.import_module("duckdb"))
    except ImportError as error:
        raise EngineError(
            "the Python package duckdb, which reads Parquet, CSV and JSON lines, is missing",
            "pip install duckdb",
        ) from error


def _is_of_files(error: Exception) -> bool:
    """Returns whether a damaged file can be the reason of an error of DuckDB."""
    duckdb = import_duckdb()
    of_files = duckdb.IOException | duckdb.InvalidInputException | duckdb.InternalException
    # What its reader of Parquet's headers (Thrift) raises has no class of its own.
    return isinstance(error, of_files) or type(error) is duckdb.Error


def _is_of_names(error: BaseException) -> bool:
    """Returns whether the name of a column cannot become a text of Python."""
    is_of_binding = isinstance(error, RuntimeError) and "conversion error" in str(error)
    return isinstance(error, UnicodeDecodeError) or is_of_binding


def _default_memory() -> int:
    if given := os.environ.get(MEMORY_VARIABLE):
        found = _SIZE.fullmatch(given.strip().upper())
        if not found or not int(found[1]):
            raise EngineError(f"{MEMORY_VARIABLE}={given} is not a size", f"{MEMORY_VARIABLE}=2G")
        return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]
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


def _first_line(message: str) -> str:
    return message.partition("\n")[0]


def _sql_reason(message: str) -> str:
    """Removes the guesses of DuckDB, which name internal tables, from its message."""
    lines = message.splitlines()
    return "\n".join(line for line in lines if not line.startswith(_GUESSES))
