"""Attaches the files of runs to DuckDB as the tables of docs/reference/tables.md."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from syncline import _core, interruptible
from syncline.formats import TABLE_ENDINGS

from .errors import EngineError
from .expanded import expanded
from .file_columns import FILE_COLUMNS
from .run_files import CONVERT, TABLES, RunFiles
from .statements import parsed

if TYPE_CHECKING:
    import duckdb

# Views that are derived from other tables.
DERIVED = frozenset({"syncline_stack", "syncline_parallel", "syncline_sync_call"})
# Each is the name of a file in sql/tables/duckdb/, and, after `syncline_`, of a table of docs/reference/tables.md.
VIEWS = (*TABLES, "stack", "sync_call", "parallel")

# If the tables have no more rows than this together, DuckDB copies them into memory, and one thread runs the queries. Otherwise each query
# opens the files, binds views and shares its work between threads, which takes longer than the work. The size of the files does not say how
# many rows they have: 300,000 calls at equal distances take 30 kB.
_FEW_ROWS = 50_000
# The view that costs most to bind, and that reports name most, `summary` 13 times. Of few rows, a statement that names it copies it first.
COPIED_WHEN_NAMED = "syncline_sync_call"
# To count the rows of more files takes longer than a copy saves.
_FEW_FILES = 100
# More memory is not used for a copy: a few rows may have long stacks, and a damaged file more rows than it says.
_COPY_BYTES = 128 << 20

# The columns of requests, and the tables, that runs lack.
FACTS = {"_syncline_lacks": ("run", "columns"), "_syncline_log": ("run", "path", "tables")}

# Columns that a table of requests must have. Any other column may be missing.
REQUIRED = ("sync_id", "ts_ns", "bytes", "bios")


def attach_runs(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    runs: list[RunFiles],
    sql: Path,
    memory_limit: int,
    absent: frozenset[str] = frozenset(),
    *,
    is_fresh: bool = False,
) -> bool:
    """Creates the tables from the files of all runs. Returns whether their rows are few, and in memory.

    Args:
        db: an empty database.
        path: the INPUT, for messages.
        runs: the files.
        sql: the folder `sql/tables/duckdb`.
        memory_limit: bytes that the database may use.
        absent: tables that no SQL will name. They are not created.
        is_fresh: this process has just written the files, so they are not read once more to see whether they have changed.

    Raises:
        EngineError: a file does not hold requests.
        duckdb.Error: a file cannot be read.
    """
    tables = [name for name in VIEWS if f"syncline_{name}" not in absent]
    of_files = [table for table in tables if table in TABLES]
    is_copied = False

    def create_files() -> None:
        nonlocal is_copied
        if not is_fresh:
            check_damage(file for run in runs for file in run.tables.values())
            _check_checksums(db, runs)
        counts = _counts_of_rows(db, runs)
        if counts is not None and sum(counts.values()) <= _FEW_ROWS:
            filled = [_without_empty(run, counts) for run in runs]
            is_copied = _copied(db, path, filled, of_files, memory_limit)
        if not is_copied:
            _attach(db, path, runs, of_files, copy=False)
        _attach_logs(db, runs)

    create_tables(db, sql, create_files, tables)
    return is_copied


def copy_view(db: duckdb.DuckDBPyConnection, view: str) -> None:
    """Computes a view once, for all queries that follow. It stays as it is if that is not possible: a query says why."""
    import duckdb

    with contextlib.suppress(duckdb.Error):
        db.execute(f"CREATE OR REPLACE TABLE _{view} AS SELECT * FROM {view}")
        db.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM _{view}")


def create_tables(
    db: duckdb.DuckDBPyConnection,
    sql: Path,
    create_files: Callable[[], None],
    tables: Iterable[str] = VIEWS,
) -> None:
    """Creates the tables of docs/reference/tables.md.

    Args:
        db: an empty database.
        sql: the folder `sql/tables/duckdb`.
        create_files: creates `_syncline_file_TABLE` of each table. It may fill `_syncline_lacks` and `_syncline_log`.
        tables: those to create, without `syncline_`.
    """
    _execute(db, sql / "macros.sql")
    for table, columns in FACTS.items():
        db.execute(f"CREATE TABLE {table}({', '.join(f'{name} VARCHAR' for name in columns)})")
    create_files()
    for name in tables:
        _execute(db, sql / f"{name}.sql")


def check_damage(files: Iterable[Path]) -> None:
    """Raises EngineError if a Parquet file that Syncline wrote has changed: DuckDB does not notice a changed value."""
    ours = [file for file in files if file.name.lower().endswith(TABLE_ENDINGS["parquet"])]
    damaged = interruptible.call(lambda: _core.damaged_tables(ours))
    if damaged:
        more = (
            f", and so {'is' if len(damaged) == 2 else 'are'} {len(damaged) - 1:,} more"
            if damaged[1:]
            else ""
        )
        raise EngineError(
            f"{damaged[0]}: the file is damaged: it is not what Syncline wrote{more}",
            "Copy it again from where it is whole, or convert the log again.",
        )


def script(sql: Path, folder: str) -> str:
    """Returns SQL that creates the tables in a DuckDB of the user's own.

    Args:
        sql: the folder `sql/tables/duckdb`.
        folder: a folder of Parquet files that this version has written.
    """
    texts = [(sql / "macros.sql").read_text(encoding="utf-8")]
    for table, columns in FACTS.items():
        names = ", ".join(f"{name} VARCHAR" for name in columns)
        texts.append(f"CREATE OR REPLACE TABLE {table}({names});\n")
    for table in TABLES:
        names = ", ".join(f'"{name}"' for name in FILE_COLUMNS[table])
        file = as_literal(f"{folder.rstrip('/')}/syncline_{table}.parquet")
        texts.append(
            f"CREATE OR REPLACE VIEW _syncline_file_{table} AS SELECT {names}, '' AS run FROM read_parquet({file});\n"
        )
    texts += [
        expanded((sql / f"{name}.sql").read_text(encoding="utf-8"), "duckdb") for name in VIEWS
    ]
    return "".join(texts)


def as_literal(text: str) -> str:
    """Returns a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _check_checksums(db: duckdb.DuckDBPyConnection, runs: list[RunFiles]) -> None:
    """Raises EngineError if the tables of a folder are of several conversions."""
    folders = {run.tables["sync"].parent: run for run in runs if run.log is None}
    if not folders:
        return
    files = [file for run in folders.values() for file in run.tables.values()]
    found = db.execute(
        "SELECT file_name, decode(value) FROM parquet_kv_metadata(?)"
        " WHERE decode(key) = 'syncline.checksums'",
        [[as_pattern(file) for file in files]],
    ).fetchall()
    checksums = dict(found)
    for folder, run in folders.items():
        expected = checksums.get(str(run.tables["sync"]))
        others = [file.name for file in run.tables.values() if checksums.get(str(file)) != expected]
        if others:
            raise EngineError(
                f"{folder}: syncline_sync.parquet is of another conversion than {', '.join(others)}",
                f"Convert the log again: syncline convert LOG -o {shlex.quote(f'{folder}/')}",
            )


def _execute(db: duckdb.DuckDBPyConnection, file: Path) -> None:
    for statement in parsed(db, expanded(file.read_text(encoding="utf-8"), "duckdb")):
        db.execute(statement)


def _counts_of_rows(db: duckdb.DuckDBPyConnection, runs: list[RunFiles]) -> dict[str, int] | None:
    """Returns how many rows each file has; None if there are many files, or some that are not Parquet."""
    files = [file for run in runs for file in run.tables.values()]
    if len(files) > _FEW_FILES or not all(
        file.name.lower().endswith(TABLE_ENDINGS["parquet"]) for file in files
    ):
        return None
    counts = db.execute(
        "SELECT file_name, num_rows FROM parquet_file_metadata(?)",
        [[as_pattern(file) for file in files]],
    ).fetchall()
    return dict(counts)


def _without_empty(run: RunFiles, counts: dict[str, int]) -> RunFiles:
    """Returns a run without the files that have no rows: to read one takes as long as a few rows do. Most logs leave half of the tables empty.

    The file of requests stays, because its columns say what the run lacks.
    """
    tables = {
        table: file
        for table, file in run.tables.items()
        if table == "sync" or counts.get(str(file)) != 0
    }
    return replace(run, tables=tables)


def no_rows(table: str) -> str:
    """Returns a SELECT of no rows, with the columns that a file of `table` may have, and `run`."""
    columns = (f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in FILE_COLUMNS[table].items())
    return f"SELECT {', '.join(columns)}, '' AS run WHERE false"


def _copied(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    runs: list[RunFiles],
    tables: list[str],
    memory_limit: int,
) -> bool:
    """Copies the rows of all files, and lets one thread run the queries.

    Returns False if that is not possible. The rows may be too long, or there is a value that is wrong, which a query may not read.
    """
    import duckdb

    disk_limit = db.execute("SELECT current_setting('max_temp_directory_size')").fetchall()[0][0]
    _limit(db, min(memory_limit, _COPY_BYTES), "0B")
    db.execute("SET threads = 1")
    db.begin()
    try:
        _attach(db, path, runs, tables, copy=True)
        db.commit()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        db.rollback()
        db.execute("RESET threads")
        return False
    finally:
        _limit(db, memory_limit, disk_limit)
    return True


def _limit(db: duckdb.DuckDBPyConnection, memory_bytes: int, disk: str) -> None:
    db.execute(f"SET memory_limit = '{memory_bytes}B'")
    db.execute(f"SET max_temp_directory_size = '{disk}'")


def _attach(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    runs: list[RunFiles],
    tables: list[str],
    *,
    copy: bool,
) -> None:
    """Creates `_syncline_file_TABLE` of each of the tables: the rows of all files, with types and the name of the run.

    Args:
        copy: reads all rows into memory. Otherwise each query reads the columns that it names.
    """
    for table in tables:
        _attach_table(db, path, table, runs, copy=copy)


def _attach_table(
    db: duckdb.DuckDBPyConnection, path: Path, table: str, runs: list[RunFiles], *, copy: bool
) -> None:
    types = FILE_COLUMNS[table]
    files = [(run.tables[table], run.name) for run in runs if table in run.tables]
    parts = []
    for form, read in (("parquet", _read_parquet), ("csv", _read_csv), ("jsonl", _read_json)):
        endings = TABLE_ENDINGS[form]
        chosen = [(file, run) for file, run in files if file.name.lower().endswith(endings)]
        if chosen:
            source = read([file for file, _ in chosen], types)
            select = _typed(db, source, types, chosen)
            if read is not _read_parquet:
                name = f"_syncline_parsed_{table}_{form}"
                db.execute(f"CREATE TABLE {name} AS {select}")
                select = f"SELECT * FROM {name}"
            parts.append(select)
    if copy and not parts:
        # Half of the tables of most logs. A SELECT of no rows would take twice the time.
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        db.execute(f"CREATE TABLE _syncline_file_{table}({columns}, run VARCHAR)")
        return
    parts = parts or [no_rows(table)]
    kind = "TABLE" if copy else "VIEW"
    db.execute(f"CREATE {kind} _syncline_file_{table} AS " + " UNION ALL ".join(parts))
    if table == "sync":
        _check_requests(db, path)


def _typed(
    db: duckdb.DuckDBPyConnection,
    source: str,
    types: dict[str, str],
    files: list[tuple[Path, str]],
) -> str:
    """Returns a SELECT of exactly the columns in `types`, and `run`."""
    present = {*db.sql(f"SELECT * FROM {source}").columns}
    missing = [name for name in REQUIRED if name in types and name not in present]
    # Only the file of requests may be one that the user has named and edited.
    if "bios" in types and missing:
        raise EngineError(
            f"{files[0][0]}: not a high-level log: no column {', '.join(missing)}",
            "keep all columns that `syncline convert LOG -o OUT.csv` writes (see docs/reference/tables.md), or"
            " give the log",
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
    # Read as text and cast afterwards, so that DuckDB does not guess types from the first lines.
    # "" is an empty text; an empty cell is null.
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
    """Returns a SQL list of file names, with the characters of patterns escaped."""
    return "[" + ", ".join(_text(as_pattern(file)) for file in files) + "]"


def as_pattern(file: Path) -> str:
    """Returns the pattern that matches only this file."""
    return str(file).translate(str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"}))


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _check_requests(db: duckdb.DuckDBPyConnection, path: Path) -> None:
    # JSON lines have no header by which a missing column would be detected.
    row = db.execute(
        "SELECT COUNT(*) FROM _syncline_file_sync WHERE sync_id IS NULL OR ts_ns IS NULL"
    ).fetchone()
    if row and row[0]:
        raise EngineError(
            f"{path}: not a high-level log: {row[0]:,} rows without sync_id or ts_ns", CONVERT
        )


def _attach_logs(db: duckdb.DuckDBPyConnection, runs: list[RunFiles]) -> None:
    parts = [
        [
            run.name,
            run.log,
            ", ".join(f"syncline_{table}" for table in TABLES if table in run.tables),
        ]
        for run in runs
        if len(run.tables) < len(TABLES)
    ]
    if parts:
        db.executemany("INSERT INTO _syncline_log VALUES (?, ?, ?)", parts)
