"""Opens a dataset as the tables of docs/reference/tables.md. DuckDB reads only the partitions of the chosen runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from syncline.engine import EngineError
from syncline.engine.attach import as_pattern, create_tables, no_rows
from syncline.engine.columns import ColumnsEngine, open_attached
from syncline.engine.file_columns import FILE_COLUMNS
from syncline.engine.run_files import TABLES
from syncline.report.catalogue import sql_root

from . import index, layout, object_files
from .index import Selection
from .layout import Entry
from .store import ObjectStore, Store, is_url, open_store, store_reason

if TYPE_CHECKING:
    import duckdb

__all__ = ["by_columns", "facts_of_tables", "files_of", "open_dataset"]

# A report on each run reads runs together as long as they have no more requests than this.
_REQUESTS_AT_ONCE = 2_000_000


def open_dataset(
    url: str,
    where: str | None = None,
    *,
    allow_files: bool = False,
) -> ColumnsEngine:
    """Opens the runs of a dataset that pass `where`, or one of its partitions.

    Raises:
        InputError: it is not a dataset, no run passes, or the store does not answer.
        EngineError: the files cannot be read.
    """
    url, run = index.split(url)
    store = open_store(url)
    selection = index.select(store, where, [run] if run else None)

    def attach(db: duckdb.DuckDBPyConnection) -> None:
        if isinstance(store, ObjectStore):
            db.register_filesystem(object_files.filesystem(store, selection.entries))
        _attach(db, store, selection)

    groups = _groups(selection.entries)

    def show(db: duckdb.DuckDBPyConnection, group: int | None) -> None:
        runs = selection.entries if group is None else groups[group]
        _create_views(db, store, runs)

    return open_attached(
        # Only messages use it.
        store.url,  # type: ignore[arg-type]
        attach,
        show=show,
        groups=len(groups),
        folders=[store.root + "/"],
        allow_files=allow_files,
        left_out=tuple(selection.left_out),
        is_dataset=True,
        explain=lambda reason: _explained(store, selection, reason),
    )


def _groups(entries: list[Entry]) -> list[list[Entry]]:
    """Divides the runs into groups of about as many requests, in the order of the column `run`."""
    groups: list[list[Entry]] = []
    requests = 0
    for entry in sorted(entries, key=lambda entry: entry.run.encode()):
        if not groups or requests + entry.requests > _REQUESTS_AT_ONCE:
            groups.append([])
            requests = 0
        groups[-1].append(entry)
        requests += entry.requests
    return groups


def by_columns(entries: list[Entry], table: str) -> list[tuple[dict[str, str], list[Entry]]]:
    """Groups the runs by the columns that their files of a table have. Runs without a row there are left out.

    A group is read without opening its files to compare them.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Entry]] = {}
    for entry in entries:
        if table in entry.tables and entry.tables[table].rows:
            groups.setdefault(tuple(entry.tables[table].columns.items()), []).append(entry)
    return [(dict(columns), found) for columns, found in groups.items()]


def files_of(store: Store, entries: list[Entry], table: str) -> list[str]:
    """Returns the files of a table, as DuckDB and Spark name them."""
    return [f"{store.root}/{one.partition}/{layout.table_name(table)}" for one in entries]


def _attach(db: duckdb.DuckDBPyConnection, store: Store, selection: Selection) -> None:
    create_tables(
        db, sql_root() / "tables" / "duckdb", lambda: _create_files(db, store, selection.entries)
    )
    index.create_runs(db, selection.entries)


def _create_files(db: duckdb.DuckDBPyConnection, store: Store, entries: list[Entry]) -> None:
    _create_views(db, store, entries)
    lacks, logs = facts_of_tables(entries)
    if lacks:
        db.executemany("INSERT INTO _syncline_lacks VALUES (?, ?)", lacks)
    if logs:
        db.executemany("INSERT INTO _syncline_log VALUES (?, NULL, ?)", logs)


def _create_views(db: duckdb.DuckDBPyConnection, store: Store, entries: list[Entry]) -> None:
    """Makes the tables those of the runs."""
    for table in TABLES:
        parts = [
            _select(FILE_COLUMNS[table], columns, files_of(store, found, table))
            for columns, found in by_columns(entries, table)
        ]
        sql = " UNION ALL ".join(parts or [no_rows(table)])
        db.execute(f"CREATE OR REPLACE VIEW _syncline_file_{table} AS {sql}")


def _select(types: dict[str, str], columns: dict[str, str], files: list[str]) -> str:
    """Returns a SELECT of exactly the columns in `types`, and `run`, which is in the path."""
    parts = [
        f'"{name}"'
        if columns.get(name) == kind
        else f'CAST({f"{chr(34)}{name}{chr(34)}" if name in columns else "NULL"} AS {kind}) AS "{name}"'
        for name, kind in types.items()
    ]
    patterns = [file if is_url(file) else as_pattern(Path(file)) for file in files]
    names = ", ".join("'" + pattern.replace("'", "''") + "'" for pattern in patterns)
    return (
        f"SELECT {', '.join(parts)}, run FROM read_parquet([{names}], hive_partitioning = true,"
        " hive_types_autocast = false)"
    )


def facts_of_tables(entries: list[Entry]) -> tuple[list[list[str]], list[list[str]]]:
    """Returns what runs lack: (run, columns) and (run, the tables that it has)."""
    lacks, logs = [], []
    for entry in entries:
        missing = [
            name if table == "sync" else f"{table}.{name}"
            for table in TABLES
            if table in entry.tables
            for name in FILE_COLUMNS[table]
            if name not in entry.tables[table].columns
        ]
        if missing:
            lacks.append([entry.run, ", ".join(missing)])
        has = [f"syncline_{table}" for table in TABLES if table in entry.tables]
        if len(has) < len(TABLES):
            logs.append([entry.run, ", ".join(has)])
    return lacks, logs


def _explained(store: Store, selection: Selection, reason: str) -> EngineError:
    """Finds the file that made a query fail, by the checksums of the files."""
    if isinstance(store, ObjectStore) and "AWS Error" in reason:
        return EngineError(
            f"{store.url}: the object store does not answer: {store_reason(reason)}",
            "check the network and AWS_ENDPOINT_URL, then repeat the command",
        )
    for entry in selection.entries:
        try:
            name = index.changed_file(store, entry)
        except OSError as error:
            return EngineError(
                f"{store.url}/{entry.partition}: {(error.strerror or str(error)).lower()}",
                "repeat the command: it leaves out what was deleted meanwhile",
            )
        if name is not None:
            # DuckDB's advice is about its own options.
            said = reason.strip().partition("\n")[0]
            return EngineError(
                f"{store.url}/{entry.partition}/{name} is corrupt: it is not what was written at ingest ({said})",
                f"leave it out: --where \"run != '{entry.run}'\"; or ingest the run again:"
                f" syncline ingest --replace RUN --into {store.url}",
            )
    return EngineError(f"{store.url}: {reason}")
