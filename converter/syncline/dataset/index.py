"""Reads the index of a dataset: chooses runs by `--where`, and checks that their files are there."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncline import _core, interruptible
from syncline.engine import SqlError
from syncline.engine.columns import import_duckdb
from syncline.engine.statements import refuse_file_access
from syncline.errors import InputError
from syncline.report.catalogue import read_sql

from . import layout
from .layout import Entry
from .store import FolderStore, Store, is_url, open_store

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "Selection",
    "changed_file",
    "check_dataset",
    "create_runs",
    "damaged",
    "filtered",
    "passing",
    "problem",
    "read_entries",
    "runs_of",
    "select",
    "split",
    "unreadable",
    "verified",
]

# Requests to an object store at the same time.
_THREADS = 16
# Ends of the reasons that an ingest of the run repairs. A newer schema version and a link say themselves what to do.
_DAMAGE = ("deleted", "at ingest")
_REPAIRED = "an ingest of the same run repairs this"
# More is not compared with its checksums before each report: to read it would take longer than most of them.
_CHECKED_BYTES = 4 << 30
_VERIFY = "inspect DATASET --verify does that"
# Runs that a message names.
_NAMED = 3


@dataclass(frozen=True)
class Selection:
    """The runs of a dataset that a command reads."""

    entries: list[Entry]
    # Number of runs in the whole dataset.
    total: int
    # A sentence for each reason why runs are left out.
    left_out: list[str] = field(default_factory=list)


def check_dataset(store: Store) -> None:
    """Checks that this version can read the dataset.

    Raises:
        InputError: it is not a dataset, or has another version.
    """
    try:
        version = layout.check_marker(store.read(layout.MARKER))
    except FileNotFoundError:
        raise InputError(
            f"{store.url} is not a dataset: it holds no {layout.MARKER}",
            f"make one: syncline ingest RUN... --into {shlex.quote(store.url)}",
        ) from None
    except ValueError as error:
        raise InputError(
            f"{store.url}/{layout.MARKER} is damaged: {error}",
            f'write it again: {{"syncline_dataset": {layout.VERSION}}}',
        ) from None
    if version != layout.VERSION:
        raise InputError(
            f"{store.url} is a dataset of version {version}, and this Syncline reads version {layout.VERSION}",
            "use the Syncline that wrote it, or a newer one",
        )


def read_entries(store: Store) -> tuple[list[Entry], list[str]]:
    """Returns the runs of a dataset in the order of their starts, and a sentence for each entry that cannot be read.

    Raises:
        InputError: it is not a dataset, or the store does not answer.
    """
    check_dataset(store)
    names = sorted(name for name in store.sizes(layout.ENTRIES) if name.endswith(".json"))
    found: dict[str, Entry] = {}
    problems = []
    for name, entry in zip(names, _each(store, lambda one: _entry(store, one), names), strict=True):
        if isinstance(entry, Entry):
            found[name] = entry
        else:
            problems.append(f"{store.url}/{layout.ENTRIES}/{name} is damaged: {entry}")
    replaced = {name for entry in found.values() for name in entry.replaces if name != entry.file}
    entries = [entry for name, entry in found.items() if name not in replaced]
    entries, again = _each_once(entries)
    problems += [
        f"{store.url}/{layout.ENTRIES}/{one.file} is of the same run as {other.file}, which is read:"
        " two commands replaced the run at the same time, and an ingest of it leaves one"
        for one, other in again
    ]
    return sorted(entries, key=_order), problems


def _each_once(entries: list[Entry]) -> tuple[list[Entry], list[tuple[Entry, Entry]]]:
    """Divides entries into those of different runs, and those of a run that is there already, each with that one."""
    first: dict[str, Entry] = {}
    once, again = [], []
    for entry in entries:
        names = layout.identities(entry.file)
        other = next((first[name] for name in sorted(names) if name in first), None)
        if other is None:
            once.append(entry)
            first |= dict.fromkeys(names, entry)
        else:
            again.append((entry, other))
    return once, again


def _order(entry: Entry) -> tuple[float, str]:
    """Sorts by start. A run whose start is unknown comes last."""
    start = float("inf") if entry.started_ns is None else entry.started_ns
    return start, entry.run


def _each(store: Store, work: Any, values: Sequence[Any]) -> list[Any]:
    """Applies a function to values, several at a time if each waits for a network."""
    if not is_url(store.root):
        return [work(value) for value in values]

    def all_of_them() -> list[Any]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(work, values))

    return interruptible.call(all_of_them)


def _entry(store: Store, name: str) -> Entry | str:
    """Returns an entry, or what is wrong with it."""
    try:
        entry = layout.parse(store.read(f"{layout.ENTRIES}/{name}"))
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return entry if entry.file == name else f"it is the entry {entry.file}"


def select(store: Store, where: str | None = None, runs: Iterable[str] | None = None) -> Selection:
    """Chooses runs, and leaves out those that cannot be read.

    Args:
        where: SQL on the columns of `syncline_run`; None for all runs.
        runs: only these.

    Raises:
        InputError: no run is left, or the store does not answer.
        SqlError: `where` is not a condition on the columns.
    """
    entries, problems = read_entries(store)
    total = len(entries)
    if not entries:
        raise InputError(
            problems[0] if problems else f"{store.url} is a dataset without runs",
            f"syncline ingest RUN... --into {shlex.quote(store.url)}",
        )
    if runs is not None:
        wanted = set(runs)
        entries = [entry for entry in entries if entry.run in wanted]
    if where is not None:
        entries = filtered(store, entries, where)
    left_out = [*problems]
    if problems:
        left_out = [f"{_counted(len(problems))} left out: {_first(problems)}"]
    readable, reasons = _readable(store, entries)
    left_out += _left_out(reasons)
    readable, reasons, unknown = _undamaged(store, readable)
    left_out += _left_out(reasons)
    if unknown:
        left_out.append(unknown)
    if not readable:
        raise InputError(
            f"{store.url}: no run can be read: {'; '.join(left_out) or 'it holds none of these runs'}",
            f"ingest the runs again: syncline ingest --replace RUN... --into {shlex.quote(store.url)}",
        )
    return Selection(readable, total, left_out)


def _readable(store: Store, entries: list[Entry]) -> tuple[list[Entry], dict[str, list[str]]]:
    """Returns the runs whose files are there, and the partitions of the others by the reason."""
    readable = []
    reasons: dict[str, list[str]] = {}
    for entry, reason in zip(
        entries, _each(store, lambda one: problem(store, one), entries), strict=True
    ):
        if reason is None:
            readable.append(entry)
        else:
            reasons.setdefault(reason, []).append(entry.partition)
    return readable, reasons


def _undamaged(store: Store, entries: list[Entry]) -> tuple[list[Entry], dict[str, list[str]], str]:
    """Returns the runs without a file that has changed since it was written, the partitions of the others by the reason, and a sentence if that is
    not known.

    DuckDB does not notice a changed value. Each file holds a checksum of itself.
    """
    if not isinstance(store, FolderStore):
        return entries, {}, ""
    total = sum(table.bytes for entry in entries for table in entry.tables.values())
    if total > _CHECKED_BYTES:
        return entries, {}, f"the files are not compared with their checksums, because they have {total >> 30} GiB: {_VERIFY}"  # fmt: skip
    files = {
        Path(store.root, entry.partition, layout.table_name(table)): entry
        for entry in entries
        for table in entry.tables
    }
    changed = interruptible.call(lambda: _core.damaged_tables([*files]))
    reasons: dict[str, list[str]] = {}
    left = set()
    for file in changed:
        entry = files[file]
        if entry.partition not in left:
            left.add(entry.partition)
            reasons.setdefault(_corrupt(file.name), []).append(entry.partition)
    return [entry for entry in entries if entry.partition not in left], reasons, ""


def _corrupt(name: str) -> str:
    return f"{name} is corrupt: it is not what was written at ingest"


def unreadable(store: Store, entries: list[Entry]) -> list[str]:
    """Returns a sentence for each reason why files of runs cannot be read. `trend` needs only their entries, and counts them."""
    _, reasons = _readable(store, entries)
    return [
        f"{_counted(len(partitions))} counted by the index only, and reports leave"
        f" {'it' if len(partitions) == 1 else 'them'} out: {reason}: {_first(partitions)}"
        for reason, partitions in reasons.items()
    ]


def filtered(store: Store, entries: list[Entry], where: str) -> list[Entry]:
    """Returns the runs that pass a condition.

    Raises:
        InputError: none does.
        SqlError: it is not a condition on the columns.
    """
    found = passing(entries, where)
    if not found:
        raise InputError(f"no run of {store.url} passes --where {where}", _what_there_is(store))
    return found


def passing(entries: list[Entry], where: str) -> list[Entry]:
    """Returns the runs that pass a condition. The list may be empty.

    Raises:
        SqlError: it is not a condition on the columns.
    """
    chosen = _chosen(entries, where)
    return [entry for entry in entries if entry.run in chosen]


def split(path: str) -> tuple[str, str | None]:
    """Returns the dataset and the run that a path names: it may be the path of a partition."""
    root, host, rest = path.partition("/host=")
    _, _, run = rest.rstrip("/").partition("/run=")
    return (root, run) if host and run and "/" not in run else (path, None)


def runs_of(path: str, where: str | None) -> tuple[list[str], list[str]]:
    """Returns the partitions of the runs of a dataset that pass `where`, and why others are left out.

    Raises:
        InputError: it is not a dataset, no run passes, or the store does not answer.
    """
    root, run = split(path)
    store = open_store(root)
    selection = select(store, where, [run] if run else None)
    # A changed footer may look like another version of the tables, and a changed value like any other.
    whole, reasons = damaged(store, selection.entries)
    if not whole:
        raise InputError(
            f"{store.url}: no run can be read: {'; '.join(_left_out(reasons))}",
            f"ingest the runs again: syncline ingest RUN... --into {shlex.quote(store.url)}",
        )
    found = [f"{store.url}/{entry.partition}" for entry in whole]
    return found, [*selection.left_out, *_left_out(reasons)]


def damaged(store: Store, entries: list[Entry]) -> tuple[list[Entry], dict[str, list[str]]]:
    """Returns the runs whose files are those of the ingest, and the partitions of the others by the reason. It reads all files."""
    whole = []
    reasons: dict[str, list[str]] = {}
    changed = _each(store, lambda one: changed_file(store, one), entries)
    for entry, name in zip(entries, changed, strict=True):
        if name is None:
            whole.append(entry)
        else:
            reasons.setdefault(_corrupt(name), []).append(entry.partition)
    return whole, reasons


def verified(path: str, where: str | None, run: str | None = None) -> tuple[list[str], int]:
    """Compares runs with what was ingested.

    Returns a sentence for each run, or entry of the index, that is not as it was, and the number of those that are.

    Args:
        run: only this one.

    Raises:
        InputError: it is not a dataset, no run passes, or the store does not answer.
    """
    store = open_store(path)
    entries, problems = read_entries(store)
    if where is not None:
        entries = filtered(store, entries, where)
    entries = [entry for entry in entries if run in (None, entry.run)]
    if run is not None and not entries:
        raise InputError(f"{path} has no entry of the run {run}", f"ingest it: syncline ingest RUN --into {shlex.quote(path)}")  # fmt: skip
    readable, missing = _readable(store, entries)
    whole, changed = damaged(store, readable)
    found = [] if run else problems
    for reasons in (missing, changed):
        found += [f"{one}: {reason}" for reason, names in reasons.items() for one in names]
    return found, len(whole)


def _left_out(reasons: dict[str, list[str]]) -> list[str]:
    """Returns a sentence for each reason why runs are left out."""
    return [
        f"{_counted(len(partitions))} left out: {reason}: {_first(partitions)}"
        + (f" ({_REPAIRED})" if reason.endswith(_DAMAGE) else "")
        for reason, partitions in reasons.items()
    ]


def _counted(runs: int) -> str:
    return "1 run is" if runs == 1 else f"{runs:,} runs are"


def _first(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def problem(store: Store, entry: Entry) -> str | None:
    """Returns why the partition of a run cannot be read; None if all its files have their sizes."""
    if entry.schema_version > _core.SCHEMA_VERSION:
        return (
            f"of schema version {entry.schema_version}, and this Syncline reads"
            f" {_core.SCHEMA_VERSION} (written by syncline {entry.syncline_version})"
        )
    if link := store.link(entry.partition):
        return (
            f"{link} is a symbolic link, and a dataset holds none: replace it by what it leads to"
        )
    sizes = store.sizes(entry.partition)
    files = {layout.table_name(name): table for name, table in entry.tables.items()}
    missing = [name for name in files if name not in sizes]
    if len(missing) == len(files):
        return "the partition was deleted"
    if missing:
        return f"{', '.join(missing)} was deleted"
    changed = [name for name, table in files.items() if sizes[name] != table.bytes]
    if changed:
        return f"{', '.join(changed)} is damaged: it has another size than at ingest"
    return None


def changed_file(store: Store, entry: Entry) -> str | None:
    """Returns a file of a partition whose content is not that of the ingest; None if all are as they were.

    It reads all files, so only an ingest does this.
    """
    for table, one in entry.tables.items():
        name = layout.table_name(table)
        sums = hashlib.sha256()
        for data in store.stream(f"{entry.partition}/{name}"):
            sums.update(data)
        if sums.hexdigest() != one.sha256:
            return name
    return None


def _chosen(entries: list[Entry], where: str) -> set[str]:
    """Returns the runs that pass a condition.

    Raises:
        SqlError: it is not a condition on the columns.
    """
    duckdb = import_duckdb()
    with duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
    ) as db:
        create_runs(db, entries)
        db.execute("SET enable_external_access = false")
        db.execute("SET lock_configuration = true")
        bare = f"SELECT run FROM syncline_run WHERE {where}"
        sql = f"SELECT run FROM syncline_run WHERE (\n{where}\n)"
        columns = [name for name, *_ in db.execute("DESCRIBE syncline_run").fetchall()]
        hint = f"a condition on a run, such as \"host = 'db1' AND day >= '2026-11-01'\"; the columns are: {', '.join(columns)}"
        try:
            if len(db.extract_statements(sql)) != 1:
                raise SqlError("--where is one condition, not several statements", hint)
            # A text such as `1=1) OR (1=1` needs the parentheses to be SQL, and one such as `true LIMIT 1` is SQL only without them.
            db.extract_statements(bare)
            refuse_file_access(db, sql)
            found = interruptible.call(lambda: db.execute(sql).fetchall(), cancel=db.interrupt)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise SqlError(f"--where {where}: {reason}", hint) from None
    chosen = {str(run) for (run,) in found}
    if not chosen <= {entry.run for entry in entries}:
        raise SqlError(f"--where {where} is not a condition", hint)
    return chosen


def create_runs(db: duckdb.DuckDBPyConnection, entries: list[Entry]) -> None:
    """Creates the table `syncline_run`."""
    db.execute(read_sql("commands/dataset", "run"))
    own = [name for name, *_ in db.execute("DESCRIBE syncline_run").fetchall()]
    facts = sorted({key for entry in entries for key in entry.facts})
    for fact in facts:
        # `layout.FACT` needs no quotes.
        db.execute(f"ALTER TABLE syncline_run ADD COLUMN {fact} VARCHAR")
    rows = [row_of(entry, own, facts) for entry in entries]
    if rows:
        marks = ", ".join("?" * (len(own) + len(facts)))
        db.executemany(f"INSERT INTO syncline_run VALUES ({marks})", rows)


def row_of(entry: Entry, columns: list[str], facts: list[str]) -> list[Any]:
    """Returns the row of a run in `syncline_run`."""
    values: list[Any] = []
    for name in columns:
        recorded = entry.recorded.get(name)
        values.append(getattr(entry, name) if hasattr(entry, name) else recorded)
    return values + [entry.facts.get(fact) for fact in facts]


def _what_there_is(store: Store) -> str:
    entries, _ = read_entries(store)
    hosts = sorted({entry.host for entry in entries if entry.host})
    days = sorted({entry.day for entry in entries if entry.day})
    return (
        f"it has {len(entries):,} runs: hosts {_first(hosts) or 'not known'}; days"
        + (f" {days[0]} to {days[-1]}" if days else " not known")
        + f'; list them: syncline query {shlex.quote(store.url)} "FROM syncline_run"'
    )
