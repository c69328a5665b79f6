"""The report `bystanders`, computed instant by instant from the tables, without SQL."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
# (kind, comm, process, cgroup, writers, path)
Key = tuple[str, str | None, str | None, str | None, str | None, str | None]
# A device, and the one below it to which a bio was redirected, if that is recorded.
At = tuple[str, str | None]
# From, until, before when a bio of somebody else must have been issued to be ahead, and where; empty if that is any device of the request.
Waiting = tuple[int, int, int, frozenset[At]]

_OWN_BIOS = ("queue", "device", "writeback")
_PHASES = (*_OWN_BIOS, "earlier writeback", "flush")


def slowest(syncs: Iterable[Row]) -> list[Row]:
    """Returns the slowest percent of the requests: at least 10, at most 100."""
    known = [row for row in syncs if None not in (row["start_ns"], row["dur_ns"], row["bios"])]
    known.sort(key=lambda row: (-_length(row), row["sync_id"]))
    return known[: max(10, min(100, len(known) // 100))]


def _length(row: Row) -> int:
    return row["ts_ns"] + row["dur_ns"] - row["start_ns"]


def delays(tables: dict[str, list[Row]]) -> dict[int, dict[Key, int]]:
    """Returns, by `sync_id` of the slowest requests, the ns in which each bystander was ahead."""
    bios = [row for row in tables["bio"] if None not in (row["dev"], row["dur_ns"])]
    journals = {row["tid"] for row in tables["journal"] if row["kind"] == "commit"}
    paths = {row["sync_id"]: row["path"] for row in tables["sync"]}
    only = _only_groups(tables)
    found = {}
    for sync in slowest(tables["sync"]) if bios else []:
        own = [bio for bio in bios if bio["sync_id"] == sync["sync_id"]]
        commit, waiting = _commit(sync, tables, bios)
        itself = _itself(sync, tables)
        mine = {bio["bio_id"] for bio in (*own, *commit)}
        devices = {bio["dev"] for bio in (*own, *commit)} | {sync["dev"]}
        devices |= {bio["below"] for bio in bios if bio["dev"] in devices} - {None}
        others = defaultdict(list)
        for bio in bios:
            if bio["bio_id"] not in mine and devices & {bio["dev"], bio["below"]}:
                others[_key(bio, journals, paths, only)].append(bio)
        lengths: dict[Key, int] = {}
        for key, spans in (
            (("itself", *[None] * 5), _covered(itself)),
            (("commit", *[None] * 5), _covered(waiting)),
            *((key, _ahead([*itself, *waiting], theirs)) for key, theirs in others.items()),
        ):
            if spans:
                lengths[key] = spans
        found[sync["sync_id"]] = lengths
    return found


def waits_of(sync: Row, tables: dict[str, list[Row]]) -> int:
    """Returns how often a request waits for the device: phases, and bios of its commits."""
    bios = [row for row in tables["bio"] if None not in (row["dev"], row["dur_ns"])]
    return len(_itself(sync, tables)) + len(_commit(sync, tables, bios)[1])


def _itself(sync: Row, tables: dict[str, list[Row]]) -> list[Waiting]:
    sync_end = sync["ts_ns"] + sync["dur_ns"]
    bios = [
        (min(bio["ts_ns"] + bio["dur_ns"], sync_end), bio)
        for bio in tables["bio"]
        if bio["sync_id"] == sync["sync_id"] and None not in (bio["dev"], bio["dur_ns"])
    ]
    flushes = [
        wait["ts_ns"]
        for wait in tables["wait"]
        if wait["sync_id"] == sync["sync_id"] and wait["wait"] == "flush"
    ]
    waiting: list[Waiting] = []
    for phase in tables["phase"]:
        if (
            phase["sync_id"] != sync["sync_id"]
            or phase["phase"] not in _PHASES
            or not phase["dur_ns"]
        ):
            continue
        start, end = phase["ts_ns"], phase["ts_ns"] + phase["dur_ns"]
        before = start
        places: frozenset[At] = frozenset()
        if phase["phase"] == "earlier writeback":
            before = end
        elif phase["phase"] == "flush":
            before = max((since for since in flushes if since <= start), default=start)
        elif begun := [(complete, bio) for complete, bio in bios if bio["ts_ns"] < end]:
            # The path follows the bio that completes last.
            last = max(complete for complete, _ in begun)
            awaited = [bio for complete, bio in begun if complete == last]
            before = max(map(_issue, awaited))
            places = frozenset(map(_at, awaited))
            if len({below or dev for dev, below in places}) > 1:
                places = frozenset()
        waiting.append((start, end, before, places))
    return waiting


def _only_groups(tables: dict[str, list[Row]]) -> dict[str, str]:
    """Returns the control group of each name whose processes are in one group, as far as known."""
    groups = defaultdict(set)
    for row in (*tables["sync"], *tables["bio"]):
        groups[_name(row)].add(row["cgroup"])
    for row in tables["bio"]:
        groups[row["writers"]].add(row["writers_cgroup"])
    return {
        name: min(known)
        for name, found in groups.items()
        if name is not None and len(known := found - {None}) == 1
    }


def _name(row: Row) -> str:
    return row["process"] if row["process"] is not None else row["comm"] or ""


def _key(bio: Row, journals: set[int], paths: dict[int, str], only: dict[str, str]) -> Key:
    thread = bio["comm"], bio["process"]
    group = bio["cgroup"] or only.get(_name(bio))
    if bio["sync_id"] is not None:
        return "sync", *thread, group, None, paths[bio["sync_id"]]
    if bio["direction"] in ("write", "flush") and bio["tid"] in journals:
        return "journal", *thread, None, bio["writers"], None
    if bio["writers"] is not None:
        group = bio["writers_cgroup"] or only.get(bio["writers"])
    elif (bio["comm"] or "").startswith("kworker/"):
        group = None
    kind = "background" if bio["direction"] in ("write", "flush") else bio["direction"]
    return kind, *thread, group, bio["writers"], None


def _commit(
    sync: Row, tables: dict[str, list[Row]], bios: list[Row]
) -> tuple[list[Row], list[Waiting]]:
    """Returns the bios of the commits that a request waits for, and when it waits for each."""
    commits: list[Row] = []
    waiting: list[Waiting] = []
    waits = [wait for wait in tables["wait"] if wait["sync_id"] == sync["sync_id"]]
    for journal in tables["journal"]:
        if journal["kind"] != "commit":
            continue
        its = [wait for wait in waits if wait["transaction_id"] == journal["transaction_id"]]
        if (
            not its
            or journal["transaction_id"] is None
            or journal["dur_ns"] is None
            or journal["dev"] not in (None, sync["dev"])
        ):
            continue
        since = min(wait["ts_ns"] for wait in its)
        until = max(wait["ts_ns"] + wait["dur_ns"] for wait in its)
        for bio in bios:
            start, end = bio["ts_ns"], bio["ts_ns"] + bio["dur_ns"]
            in_commit = journal["ts_ns"] <= start <= journal["ts_ns"] + journal["dur_ns"]
            if bio["tid"] == journal["tid"] and in_commit and end > since and start < until:
                commits.append(bio)
                waiting.append(
                    (max(start, since), min(end, until), _issue(bio), frozenset([_at(bio)]))
                )
    return commits, waiting


def _issue(bio: Row) -> int:
    return bio["ts_ns"] + (bio["queue_ns"] or 0)


def _at(bio: Row) -> At:
    return bio["dev"], bio["below"]


def _meet(one: At, other: At) -> bool:
    """Returns whether two bios are issued to one device, or may be: they were submitted to one, and a remap is not recorded."""
    (dev, below), (other_dev, other_below) = one, other
    if (below or dev) == (other_below or other_dev):
        return True
    return dev == other_dev and None in (below, other_below)


def _covered(waiting: list[Waiting]) -> int:
    edges = sorted({edge for start, end, *_ in waiting for edge in (start, end)})
    return sum(
        end - start
        for start, end in itertools.pairwise(edges)
        if any(since <= start and end <= until for since, until, *_ in waiting)
    )


def _ahead(waiting: list[Waiting], others: list[Row]) -> int:
    spans = [(_issue(bio), bio["ts_ns"] + bio["dur_ns"], _at(bio)) for bio in others]
    edges = {edge for start, end, *_ in waiting for edge in (start, end)}
    edges = sorted(edges | {edge for issue, complete, _ in spans for edge in (issue, complete)})
    total = 0
    for start, end in itertools.pairwise(edges):
        # Few edges are in a wait. Only these are compared with all bios.
        waits = [
            (before, places)
            for since, until, before, places in waiting
            if since <= start and end <= until
        ]
        if waits and any(
            issue <= start
            and end <= complete
            and issue < before
            and (not places or any(_meet(place, at) for place in places))
            for issue, complete, at in spans
            for before, places in waits
        ):
            total += end - start
    return total
