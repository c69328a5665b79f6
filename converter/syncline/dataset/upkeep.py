"""Removes runs from a dataset, and finds what has no entry in its index.

A run is in a dataset if it has an entry, so an entry is removed first. A kill in between leaves a partition that Syncline does not read,
but a plain reader of the Parquet files does.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.errors import InputError

from . import index, layout
from .layout import Entry
from .store import Store

__all__ = ["Removed", "orphans", "remove", "remove_orphans", "runs"]


@dataclass(frozen=True)
class Removed:
    """What a command removed: a partition, and its size in bytes, as far as it was still there."""

    partition: str
    bytes: int


def runs(store: Store, names: list[str], where: str | None) -> list[Entry]:
    """Returns the runs that have one of the names, or pass a condition.

    Raises:
        InputError: there is no such run, or the store does not answer.
        SqlError: `where` is not a condition on the columns.
    """
    entries, _ = index.read_entries(store)
    if where is not None:
        entries = index.filtered(store, entries, where)
    if not names:
        return entries
    found = {entry.run: entry for entry in entries} | {entry.partition: entry for entry in entries}
    for name in names:
        if name.rstrip("/") not in found:
            raise InputError(f"{store.url} has no run {name}", f"syncline dataset ls {store.url}")
    return list({found[name.rstrip("/")].run: found[name.rstrip("/")] for name in names}.values())


def orphans(store: Store) -> list[str]:
    """Returns the partitions without an entry, which plain readers of the files count as runs.

    A command that is adding a run has published its partition, and not yet its entry.
    """
    # Partitions first: one that appears between the two has an entry soon, or is found the next time.
    there = store.partitions()
    entries, _ = index.read_entries(store)
    return sorted(set(there) - {entry.partition for entry in entries})


def remove(store: Store, entry: Entry) -> Removed:
    """Removes a run: its entry, and then its partition.

    Raises:
        InputError: another command is changing it, or the store does not answer.
    """
    with store.locked(layout.identities(entry.file)) as check:
        check()
        size = sum(store.sizes(entry.partition).values())
        store.remove(f"{layout.ENTRIES}/{entry.file}")
        check()
        store.remove(entry.partition)
    return Removed(entry.partition, size)


def remove_orphans(store: Store) -> list[Removed]:
    """Removes the partitions that still have no entry when no other command changes them.

    Raises:
        InputError: another command is changing one of them, or the store does not answer.
    """
    found = []
    for partition in orphans(store):
        name = partition.rpartition("/run=")[2]
        # The claims of an ingest of this run have the identity of its rows.
        with store.locked({f"rows-{layout.rows_of(name)}"}) as check:
            if partition in orphans(store):
                check()
                size = sum(store.sizes(partition).values())
                store.remove(partition)
                found.append(Removed(partition, size))
    return found
