"""Removes runs from a dataset, and finds what has no entry in its index.

A run is in a dataset if it has an entry, so an entry is removed first. A kill in between leaves a partition that Syncline does not read,
but a plain reader of the Parquet files does.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from syncline.engine.run_files import TABLES
from syncline.errors import InputError

from . import index, layout
from .layout import Entry
from .store import Store

__all__ = ["Removed", "orphans", "remove", "remove_orphan", "runs"]


# A partition holds nothing else.
_OURS = frozenset({layout.ENTRY, *(layout.table_name(table) for table in TABLES)})


@dataclass(frozen=True)
class Removed:
    """What a command removed: a partition, and its size in bytes."""

    partition: str
    bytes: int


def runs(store: Store, names: list[str], where: str | None) -> list[Entry]:
    """Returns the runs that have one of the names, of those that pass a condition. Without names, the list may be empty.

    Raises:
        InputError: there is no run of a name, or the store does not answer.
        SqlError: `where` is not a condition on the columns.
    """
    entries, _ = index.read_entries(store)
    if where is not None:
        entries = index.passing(entries, where)
    if not names:
        return entries
    known = {name: entry for entry in entries for name in (entry.run, entry.partition)}
    found: dict[str, Entry] = {}
    for name in names:
        key = name.rstrip("/")
        for root in (store.url, store.root):
            key = key.removeprefix(f"{root}/")
        if key not in known:
            which = "no such run passes --where" if where is not None else "there is no such run"
            raise InputError(f"{store.url}: {name}: {which}", f"list them: syncline dataset ls {shlex.quote(store.url)}")  # fmt: skip
        found[known[key].run] = known[key]
    return list(found.values())


def orphans(store: Store) -> list[str]:
    """Returns the partitions without an entry, which plain readers of the files count as runs.

    A command that is adding a run has published its partition, and not yet its entry. A folder with other files than those of a run is
    somebody else's, and an entry that cannot be read is one all the same: an ingest of the partition repairs it.

    Raises:
        InputError: no run has an entry, so the index is lost and not the partitions.
    """
    # Partitions first: one that appears between the two has an entry soon, or is found the next time.
    there = store.partitions()
    index.check_dataset(store)
    named = {layout.run_of(file) for file in store.sizes(layout.ENTRIES)}
    entries, _ = index.read_entries(store)
    read = {entry.partition for entry in entries}
    damaged = named - {entry.run for entry in entries}
    found = sorted(
        one
        for one in set(there) - read
        if one.rpartition("/run=")[2] not in damaged and _is_ours(store, one)
    )
    if found and not named:
        raise InputError(
            f"{store.url} has {len(found):,} partitions and no entry: its index is lost",
            f"make it again: syncline ingest {shlex.quote(store.url)}/host=*/day=*/run=* --into {shlex.quote(store.url)}",
        )
    return found


def _is_ours(store: Store, partition: str) -> bool:
    files = set(store.sizes(partition))
    return files <= _OURS and layout.table_name("sync") in files


def remove(store: Store, entry: Entry) -> Removed | None:
    """Removes a run: its entry, and then its partition. Returns None if the run has changed since it was chosen, or is gone: it stays so.

    Raises:
        InputError: another command is changing it, it cannot be removed, or the store does not answer.
    """
    with store.locked(layout.identities(entry.file)) as check:
        check()
        try:
            there = store.read(f"{layout.ENTRIES}/{entry.file}")
        except FileNotFoundError:
            return None
        if there != layout.serialized(entry):
            return None
        # Else the entry would be gone, and the partition would not.
        store.check_removable(entry.partition)
        size = sum(store.sizes(entry.partition).values())
        store.remove(f"{layout.ENTRIES}/{entry.file}")
        check()
        store.remove(entry.partition)
    return Removed(entry.partition, size)


def remove_orphan(store: Store, partition: str) -> Removed | None:
    """Removes a partition, if it still has no entry when no other command changes it.

    Raises:
        InputError: another command is changing it, it cannot be removed, or the store does not answer.
    """
    name = partition.rpartition("/run=")[2]
    # The claims of an ingest of this run have the identity of its rows.
    with store.locked({f"rows-{layout.rows_of(name)}"}) as check:
        if partition not in orphans(store):
            return None
        check()
        store.check_removable(partition)
        size = sum(store.sizes(partition).values())
        store.remove(partition)
    return Removed(partition, size)
