"""Adds runs to a dataset: converts each, describes it, and publishes its partition and then its entry."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from syncline import _core, interruptible, scratch
from syncline.engine.columns import import_duckdb
from syncline.engine.run_files import TABLES
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Progress, Reading
from syncline.report import run_query, run_report
from syncline.report.metadata import count_runs, read_meta, time_span, value
from syncline.report.opening import open_tables
from syncline.report.run import SqlEngine

from . import index, layout
from .layout import Entry, TableFile
from .store import FolderStore, Store

__all__ = ["Described", "Made", "Outcome", "create", "ingest", "remove_dead"]

_CHUNK = 1 << 22
_DAY_NS = 86_400 * 10**9
# Keys of syncline_meta that an entry keeps.
_RECORDED = ("source", "recorder", "kernel", "request_filter")


@dataclass(frozen=True)
class Described:
    """What the user says of the runs."""

    host: str | None = None
    # ns since 1970.
    started_ns: int | None = None
    facts: dict[str, str] = field(default_factory=dict)
    # Replace a run that is in the dataset and differs.
    replace: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of an input: `added`, `replaced` or `present`."""

    status: str
    entry: Entry


def create(store: Store) -> Made | None:
    """Makes a dataset of a folder that does not exist or is empty, or of a part of a bucket.

    Returns what `discard` removes again; None if there is a dataset.

    Raises:
        InputError: the folder holds something else, or the dataset has another version.
    """
    made: Made | None = None
    try:
        store.read(layout.MARKER)
    except FileNotFoundError:
        made = Made(store)
        if isinstance(store, FolderStore):
            folder = Path(store.root)
            # Another command may be writing the marker, or have written it since.
            if not _is_empty(folder) and not (folder / layout.MARKER).is_file():
                raise InputError(
                    f"{store.url} is not a dataset, and holds other files",
                    "name a folder that does not exist yet",
                ) from None
            made.folders = [path for path in (folder, *folder.parents) if not path.exists()]
        store.write(layout.MARKER, layout.marker())
    except NotADirectoryError:
        raise InputError(f"{store.url} is not a folder", "name a folder") from None
    index.check_dataset(store)
    return made


@dataclass
class Made:
    """A new dataset, and the folders that did not exist before it."""

    store: Store
    folders: list[Path] = field(default_factory=list)

    def discard(self) -> None:
        """Removes the dataset if no run has been added to it, by this command or by another one."""
        store = self.store
        with store.locked([]):
            if store.sizes(layout.ENTRIES):
                return
            if isinstance(store, FolderStore):
                try:
                    # Another command may be converting a run.
                    store.owned(layout.STAGING).rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    return
            store.remove(layout.MARKER)
        with contextlib.suppress(OSError):
            for folder in self.folders:
                folder.rmdir()


def _is_empty(folder: Path) -> bool:
    """Returns whether a folder does not exist, or has nothing but a marker that is being written."""
    if not folder.is_dir():
        return not folder.exists()
    return all(
        file.name.startswith(f".{layout.MARKER}.") and file.suffix == ".part"
        for file in folder.iterdir()
    )


def remove_dead(store: Store) -> None:
    """Removes what killed commands have left in the folder for partitions that are being written."""
    if isinstance(store, FolderStore):
        staging = store.owned(layout.STAGING)
        scratch.remove_dead(staging)
        for folder in staging.glob("removed-*"):
            shutil.rmtree(folder, ignore_errors=True)


def ingest(
    run: Input,
    store: Store,
    reading: Reading,
    described: Described,
    progress: Progress | None = None,
) -> Outcome:
    """Adds one run to a dataset, unless it is there.

    Raises:
        InputError: the input is not a run, or is in the dataset and differs.
        CoreError, EngineError.
    """
    input_id = _input_id(run)
    # On the disk of the dataset, so that a rename publishes the partition.
    parent = store.owned(layout.STAGING) if isinstance(store, FolderStore) else None
    if parent is not None:
        _core.create_folder(str(parent))
    with scratch.folder(parent) as folder:
        tables = folder / "tables"
        run.write_tables(f"{tables}/", reading, progress)
        entry = _entry(run, tables, input_id, described)
        # Two that replace the same run at once would each remove what the other has written.
        names = layout.identities(entry.file)
        while True:
            with store.locked(names) as check:
                found = _same_run(store, entry)
                # Those that are replaced are also of other identities.
                wanted = names.union(*map(layout.identities, found))
                if wanted == names:
                    return _publish(store, tables, entry, described, found, check)
            names = wanted


def _publish(
    store: Store,
    tables: Path,
    entry: Entry,
    described: Described,
    found: list[str],
    check: Callable[[], None],
) -> Outcome:
    """Publishes a partition and its entry, in this order.

    Args:
        found: the entries of the same run.
        check: fails if another command may be changing them.
    """
    present = [_read(store, name) for name in found]
    equal = [one for one in present if not _changes(one, entry, described)]
    if equal and not described.replace:
        damage = index.problem(store, equal[0]) or interruptible.call(
            lambda: index.changed_file(store, equal[0])
        )
        if not damage and len(present) == 1:
            return Outcome("present", equal[0])
        # The partition was deleted or damaged, or the run is there twice. So it is written again.
    if present and not equal and not described.replace:
        changes = "; ".join(_changes(present[0], entry, described))
        raise InputError(
            f"{entry.name} is in the dataset as {present[0].run}, and differs: {changes}",
            "to replace it, use the same command with --replace",
        )
    entry = _with_kept(entry, present, described)
    entry = replace(entry, replaces=sorted(one.file for one in present if one.file != entry.file))
    data = layout.serialized(entry)
    (tables / layout.ENTRY).write_bytes(data)
    moved = [one.partition for one in present if one.partition != entry.partition]
    # A kill between these two leaves the old entry with files of other sizes, which readers leave out and name.
    store.publish(tables, entry.partition)
    check()
    store.write(f"{layout.ENTRIES}/{entry.file}", data)
    # If another command has replaced the run since the first check, it may use what is removed here.
    check()
    for one in present:
        if one.file != entry.file:
            store.remove(f"{layout.ENTRIES}/{one.file}")
    for partition in moved:
        store.remove(partition)
    return Outcome("replaced" if present else "added", entry)


def _with_kept(entry: Entry, present: list[Entry], described: Described) -> Entry:
    """Returns the entry with what the user said of the run that it replaces, and does not say now."""
    if not present:
        return entry
    old = present[0]
    kept: dict[str, Any] = {"facts": old.facts | entry.facts}
    if described.host is None:
        kept["host"] = old.host
    if described.started_ns is None:
        kept |= {"started_ns": old.started_ns, "day": old.day}
    return replace(entry, **kept)


def _same_run(store: Store, entry: Entry) -> list[str]:
    """Returns the names of the entries with the same rows, or of the same input."""
    wanted = layout.identities(entry.file)
    return sorted(name for name in store.sizes(layout.ENTRIES) if layout.identities(name) & wanted)


def _read(store: Store, name: str) -> Entry:
    try:
        entry = layout.parse(store.read(f"{layout.ENTRIES}/{name}"))
        if entry.file != name:
            raise ValueError(f"it is the entry {entry.file}")
        return entry
    except ValueError as error:
        raise InputError(
            f"{store.url}/{layout.ENTRIES}/{name} is damaged: {error}",
            "remove it, and ingest again",
        ) from None


def _changes(old: Entry, new: Entry, described: Described) -> list[str]:
    """Returns what an ingest would change. The name and the form of the input do not count.

    What the user does not say now is kept.
    """
    changes = []
    if described.host is not None and old.host != new.host:
        changes.append(f"the host is {shown(old.host)} there instead of {new.host}")
    if described.started_ns is not None and old.started_ns != new.started_ns:
        changes.append(
            f"the day is {shown(old.day)} there instead of {new.day}, or the time differs"
        )
    for key, told in described.facts.items():
        if old.facts.get(key) != told:
            changes.append(f"{key} is {shown(old.facts.get(key))} there instead of {told}")
    if old.rows_id != new.rows_id:
        changes.append(
            "its rows there were made with other options, or by another version of Syncline"
        )
    return changes


def shown(fact: str | None) -> str:
    """Returns a fact for a message."""
    return "unknown" if fact is None else fact


def _input_id(run: Input) -> str:
    """Identifies the bytes of an input: a file, or the files of a folder with their names."""
    sums = hashlib.sha256()
    files = run.content()
    for file in files:
        if len(files) > 1:
            sums.update(f"{file.name} {file.stat().st_size}\n".encode())
        interruptible.call(lambda file=file: _add(sums.update, file))
    return sums.hexdigest()


def _add(update: Callable[[bytes], Any], file: Path) -> None:
    with file.open("rb") as stream:
        while data := stream.read(_CHUNK):
            update(data)


def _sha256(file: Path) -> str:
    sums = hashlib.sha256()
    _add(sums.update, file)
    return sums.hexdigest()


def _entry(run: Input, tables: Path, input_id: str, described: Described) -> Entry:
    """Describes the converted tables of a run."""
    checksums, files = _table_files(tables)
    rows = {table: one.rows for table, one in files.items()}
    # Tables of an earlier version are fewer.
    rows_id = layout.identity(checksums, [table for table in TABLES if table in files], rows)
    # A partition of another dataset brings what the user said there.
    before = _carried(Path(run.path, layout.ENTRY))
    with open_tables(tables) as engine:
        meta = read_meta(engine)
        figures = [list(row) for row in run_report(engine, "summary").rows]
        manifest = run.facts
        span = time_span(engine, meta, manifest, count_runs(engine))
        lost = _lost(engine) if "loss" in files else None
    recorded = {key: found for key in _RECORDED if (found := value(meta, key))}
    for key in ("kernel", "route"):
        if key not in recorded and manifest.get(key):
            recorded[key] = str(manifest[key])
    started = described.started_ns
    if started is None:
        started = before.started_ns if before else span["first_realtime_ns"]
    host = described.host or (before.host if before else None)
    host = host or value(meta, "host") or manifest.get("host")
    if host is not None:
        try:
            layout.check_host(host)
        except ValueError as error:
            raise InputError(f"{run.path}: {error}: {host}", "name it: --host NAME") from None
    name = before.name if before else Path(run.path).resolve().name
    events = value(meta, "events")
    return Entry(
        run=layout.run_id(_stem(name), rows_id),
        name=name,
        host=host,
        started_ns=started,
        day=_day(started),
        duration_ns=span["duration_ns"],
        schema_version=int(value(meta, "schema_version") or 0),
        syncline_version=metadata.version("syncline"),
        recorded=recorded,
        facts=(before.facts if before else {}) | described.facts,
        events=int(events) if events and events.isdigit() else None,
        lost=lost,
        rows_id=rows_id,
        input_id=before.input_id if before else input_id,
        tables=files,
        figures=figures,
    )


def _stem(name: str) -> str:
    """Returns the name of an input without its endings."""
    stem, _, _ = name.partition(".")
    return stem or name


def _carried(file: Path) -> Entry | None:
    """Returns the entry in a partition, if the input is one."""
    try:
        return layout.parse(file.read_bytes())
    except (OSError, ValueError):
        return None


def _day(started_ns: int | None) -> str | None:
    if started_ns is None:
        return None
    try:
        return datetime.fromtimestamp(started_ns // 10**9, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return None


def _lost(engine: SqlEngine) -> int:
    sql = "SELECT COALESCE(SUM(count), 0) FROM syncline_loss WHERE severity = 'loss'"
    return int(run_query(engine, sql).rows[0][0] or 0)


def _table_files(folder: Path) -> tuple[str, dict[str, TableFile]]:
    """Returns the checksums of the rows, as the tables hold them, and the files.

    Raises:
        InputError: the tables hold no checksums, or a file cannot be read.
    """
    duckdb = import_duckdb()
    found: dict[str, TableFile] = {}
    with duckdb.connect() as db:
        try:
            for table in TABLES:
                file = folder / layout.table_name(table)
                if not file.is_file():
                    continue
                name = str(file)
                (rows,) = db.execute(
                    "SELECT num_rows FROM parquet_file_metadata(?)", [name]
                ).fetchone()
                columns = db.execute("DESCRIBE SELECT * FROM read_parquet(?)", [name]).fetchall()
                types = {column: kind for column, kind, *_ in columns}
                found[table] = TableFile(file.stat().st_size, rows, _sha256(file), types)
            checksums = db.execute(
                "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'syncline.checksums'",
                [str(folder / layout.table_name("sync"))],
            ).fetchone()
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"the tables of the run cannot be read: {reason}", "convert the log again"
            ) from None
    if not checksums:
        raise InputError(
            "the tables of the run hold no checksums: an earlier Syncline wrote them",
            "ingest the log or the trace that they were made from",
        )
    return str(checksums[0]), found
