"""The findings of `syncline advise`, from the tables, without SQL: which requests are evidence, and what they cost."""

from __future__ import annotations

import fnmatch
import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.reference import bystanders

Row = dict[str, Any]
Tables = dict[str, list[Row]]
# sync_id (None: not of a request), from, until.
Part = tuple[int | None, int | None, int | None]

PATTERNS = Path(__file__).parents[2] / "sql" / "findings" / "rebuildable.tsv"


def _commits(tables: Tables) -> list[Row]:
    """Those of the threads of journals."""
    return [row for row in tables["journal"] if row["kind"] == "commit"]


def end(row: Row) -> int | None:
    return None if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]


def whole(row: Row) -> Part:
    return row["sync_id"], row["ts_ns"], end(row)


def is_good(row: Row) -> bool:
    return row["incomplete"] is None and row["ret"] >= 0


def is_worker(row: Row) -> bool:
    return (row["comm"] or "").startswith("kworker/")


def of_kernel(tables: Tables) -> set[int]:
    """The syncs that are no evidence: threads of the kernel made them, and programs made others. A call has an op in one of its requests."""
    called = {row["call_sync_id"] for row in tables["sync"] if row["op"] is not None}
    found = {
        row["sync_id"]
        for row in tables["sync"]
        if row["call_sync_id"] not in called and is_kernel(row["comm"] or "")
    }
    return found if len(found) < len(tables["sync"]) else set()


def evident(tables: Tables) -> list[Row]:
    """The syncs that may be evidence."""
    kernel = of_kernel(tables)
    return [row for row in tables["sync"] if row["sync_id"] not in kernel]


def folder(path: str) -> str:
    return path.rsplit("/", 1)[0] if "/" in path else ""


def last_name(path: str | None) -> str | None:
    return None if path is None else path.rsplit("/", 1)[-1]


def folder_names(tables: Tables) -> set[str | None]:
    """The last names of folders of synced files: a path may lack its beginning."""
    paths = [row["path"] for row in tables["sync"] if row["path"] is not None]
    return {last_name(folder(path)) for path in paths}


def failed_at(tables: Tables, key: Any, rows: list[Row]) -> list[int]:
    """When a sync of a file, a bio of such a sync, or a background write of the file failed."""
    found = [end(row) or row["ts_ns"] for row in rows if (row["ret"] or 0) < 0]
    ids = {row["sync_id"] for row in rows}
    for bio in tables["bio"]:
        if (bio["error"] or 0) < 0 and (
            bio["sync_id"] in ids or (bio["ino"] is not None and (bio["dev"], bio["ino"]) == key)
        ):
            found.append(end(bio) or bio["ts_ns"])
    return found


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["ts_ns"], row["sync_id"]))


def grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    groups = defaultdict(list)
    for row in in_order(rows):
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def length_of(tables: Tables, sync: Row, phase: str) -> int:
    rows = (row for row in tables["phase"] if row["sync_id"] == sync["sync_id"])
    return sum(row["dur_ns"] for row in rows if row["phase"] == phase)


def needless(tables: Tables) -> list[Part]:
    journals = {row["tid"] for row in _commits(tables)}
    with_folios = any(row["folios"] is not None for row in tables["bio"])
    written = [
        row["ts_ns"]
        for row in tables["bio"]
        if row["sync_id"] is None
        and (row["folios"] or not with_folios)
        and row["tid"] not in journals
    ]
    folders = folder_names(tables)
    lengths = [
        bio["dur_ns"]
        for bio in tables["bio"]
        if bio["direction"] != "read" and bio["dur_ns"] is not None
    ]
    kernel = of_kernel(tables)
    files = defaultdict(list)
    for row in in_order(tables["sync"]):
        if row["op"] not in ("sync", "syncfs"):
            key = (row["dev"], row["ino"]) if row["ino"] is not None else row["path"]
            if key is not None:
                files[key].append(row)
    found = []
    for key, rows in files.items():
        failures = failed_at(tables, key, rows)
        for number, row in enumerate(rows[1:], 1):
            since = end(rows[number - 1])
            ends = [stop for each in rows[:number] if (stop := end(each)) is not None]
            following = rows[number + 1 : number + 2]
            if (
                row["bios"] == 0
                and is_good(row)
                and not is_worker(row)
                and row["sync_id"] not in kernel
                and since is not None
                and max(ends) <= row["ts_ns"]
                and not any(each["ts_ns"] < (end(row) or 0) for each in following)
                and not any(since <= at <= row["ts_ns"] for at in written)
                and not length_of(tables, row, "earlier writeback")
                and last_name(row["path"]) not in folders
                and not any(at <= (end(row) or 0) for at in failures)
                and (
                    row["journal_ns"] == 0
                    or (
                        row["journal_ns"] is None and (row["dur_ns"] or 0) < min(lengths, default=0)
                    )
                )
            ):
                found.append(whole(row))
    return found


def fdatasync(tables: Tables) -> list[Part]:
    bios = defaultdict(list)
    for bio in tables["bio"]:
        if bio["sync_id"] is None and bio["folios"] is None:
            bios[bio["tid"]].append(bio["ts_ns"])
    single = set()
    for commit in _commits(tables):
        if commit["dur_ns"] is not None and commit["tid"] is not None:
            last = commit["ts_ns"] + commit["dur_ns"]
            if sum(commit["ts_ns"] <= at <= last for at in bios[commit["tid"]]) == 3:
                single.add(commit["commit_id"])
    found = []
    for rows in grouped(tables["sync"], "dev", "ino", "path").values():
        known = None
        for row in rows:
            waits = [
                wait
                for wait in tables["wait"]
                if wait["sync_id"] == row["sync_id"] and wait["wait"] != "flush"
            ]
            of = {wait["commit_id"] for wait in waits} - {None}
            if (
                row["op"] == "fsync"
                and row["bios"]
                and is_good(row)
                and len(of) == 1
                and of <= single
                and not length_of(tables, row, "earlier commit")
                and known is not None
                and row["last_offset"] < known
            ):
                last = max(wait["ts_ns"] + wait["dur_ns"] for wait in waits)
                found.append((row["sync_id"], min(wait["ts_ns"] for wait in waits), last))
            known = max(filter(None, (known, row["last_offset"])), default=None)
    return found


def without_number(path: str | None) -> str | None:
    """A temporary name without its number."""
    stem = (path or "").rstrip("0123456789")
    return stem if stem.endswith("tmp") else path


def name_of(row: Row) -> str:
    """The name of a process; where that is not known, of its thread."""
    return next((name for name in (row["process"], row["comm"]) if name is not None), "")


def small_files(tables: Tables) -> list[Part]:
    folders = folder_names(tables)
    paths = [without_number(row["path"]) for row in tables["sync"]]

    def is_small(row: Row) -> bool:
        return (
            row["path"] is not None
            and paths.count(without_number(row["path"])) == 1
            and row["op"] in ("fsync", "fdatasync")
            and row["dur_ns"] is not None
            and 1 <= (row["bytes"] or 0) <= 1 << 16
        )

    groups: dict[str, set[str]] = defaultdict(set)
    for row in [*tables["sync"], *tables["bio"]]:
        groups[name_of(row)] |= {row["cgroup"]} - {None}
    for row in tables["bio"]:
        groups[row["writers"]] |= {row["writers_cgroup"]} - {None}

    def group_of(row: Row) -> str | None:
        """Its control group, or the only one that processes of its name have."""
        only = groups[name_of(row)]
        return next(iter(only)) if row["cgroup"] is None and len(only) == 1 else row["cgroup"]

    found = []
    singles: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for rows in grouped(tables["sync"], "tid", "pid").values():
        files = [row for row in rows if last_name(row["path"]) not in folders]
        if len(files) == 1 and files[0]["comm"] is not None:
            singles[files[0]["comm"], group_of(files[0])].append(files[0])
            continue
        for small, run in itertools.groupby(files, is_small):
            together = list(run)
            if small and len(together) >= 8:
                found += map(whole, together)
    # Commands that each sync one file: the row ends where the next one comes late, or before the end of the one before.
    for commands in singles.values():
        rows: list[Row] = []
        for row in [*in_order(commands), None]:
            since = end(rows[-1]) if rows else None
            follows = row is not None and is_small(row)
            if rows and not (follows and 0 <= row["ts_ns"] - since <= 10**9):
                if len(rows) >= 8:
                    found += map(whole, rows)
                rows = []
            if follows:
                rows.append(row)
    return found


def rename_file(tables: Tables) -> list[Part]:
    rows = [row for row in tables["sync"] if None not in (row["ino"], row["path"])]
    kernel = of_kernel(tables)
    return [
        whole(row)
        for same in grouped(rows, "dev", "ino").values()
        for former, row in itertools.pairwise(same)
        if row["bios"] == 0
        and is_good(row)
        and former["path"] != row["path"]
        and former["tid"] == row["tid"]
        and row["sync_id"] not in kernel
        and former["bios"]
    ]


def rename_folder(tables: Tables) -> list[Part]:
    rows = [row for row in tables["sync"] if None not in (row["ino"], row["path"])]
    kernel = of_kernel(tables)
    found = []
    for same in grouped(rows, "dev", "path").values():
        for row, following in itertools.pairwise(same):
            if row["sync_id"] in kernel:
                continue
            if row["ino"] == following["ino"] or not row["bios"] or not is_good(row):
                continue
            if row["path"].endswith(("-journal", "-wal")) or row["fs"] == "btrfs":
                continue
            between = [
                other
                for other in tables["sync"]
                if row["ts_ns"] < other["ts_ns"] < following["ts_ns"]
            ]
            if not any(
                other["op"] in ("sync", "syncfs")
                or other["path"] == folder(row["path"])
                or (
                    (other["dev"], other["ino"]) == (row["dev"], row["ino"])
                    and other["path"] not in (row["path"], None)
                )
                for other in between
            ):
                found.append((row["sync_id"], None, None))
    return found


_KERNEL = (
    *("kworker/*", "jbd2/*", "ext4lazyinit", "xfsaild/*", "xfs-*/*"),
    *("btrfs-*", "f2fs_*", "dmcrypt_write/*", "dm-*/*"),
    *("loop[0-9]*", "md[0-9]*", "drbd_*", "nfsd"),
    "kswapd[0-9]*",
    "kthreadd",
    "<idle>",
    *(
        "ksoftirqd/*",
        "irq/*",
        "migration/*",
        "rcu_sched",
        "rcu_preempt",
        "khugepaged",
        "kcompactd[0-9]*",
    ),
)


def direct_writes(tables: Tables) -> dict[int, tuple[int, int, set[str | None]]]:
    """Returns, by process, the number and the bytes of the direct writes that no sync of it follows, and the caches of their devices."""
    if not any(bio["folios"] is not None for bio in tables["bio"]):
        return {}
    journals = {row["tid"] for row in _commits(tables)}
    ends: dict[int, float] = {}
    for row in tables["sync"]:
        process = row["tid"] if row["pid"] is None else row["pid"]
        stop = end(row)
        ends[process] = max(ends.get(process, 0), float("inf") if stop is None else stop)
    found: dict[int, tuple[int, int, set[str | None]]] = {}
    meta = {row["key"]: row["value"] for row in tables["meta"]}
    for bio in tables["bio"]:
        process = bio["tid"] if bio["pid"] is None else bio["pid"]
        if (
            bio["sync_id"] is None
            and bio["folios"] is None
            and bio["rwbs"] is not None
            and "M" not in bio["rwbs"]
            and "WF" not in bio["rwbs"]
            and bio["bytes"]
            and bio["incomplete"] is None
            and bio["comm"] is not None
            and not is_kernel(bio["comm"])
            and bio["tid"] not in journals
            and ends.get(process, -1) < bio["ts_ns"]
        ):
            writes, size, caches = found.get(process, (0, 0, set()))
            cache = meta.get(f"device_cache.{bio['below'] or bio['dev']}")
            found[process] = writes + 1, size + bio["bytes"], caches | {cache}
    return found


def page_reads(tables: Tables) -> list[tuple[str | None, int, str]]:
    """Returns path, cost and note of the files of which a process changed parts of pages that were not cached."""
    size = {row["bio_id"]: row["bytes"] for row in tables["bio"]}
    waits = [
        row
        for row in tables["write_wait"]
        if row["wait"] == "page read" and row["comm"] and not is_kernel(row["comm"])
    ]
    found = []
    for key in {(row["pid"] or row["tid"], row["dev"], row["ino"]) for row in waits}:
        mine = [row for row in waits if (row["pid"] or row["tid"], row["dev"], row["ino"]) == key]
        if len(mine) < 10:
            continue
        read = [size[row["bio_id"]] for row in mine if row["bio_id"] in size]
        note = f"process {key[0]}; writes that waited: {len(mine)}"
        note += f"; bytes read: {sum(read)}" if read else ""
        found.append((mine[0]["path"], sum(row["dur_ns"] for row in mine), note))
    return found


def is_kernel(comm: str) -> bool:
    return any(fnmatch.fnmatchcase(comm, name) for name in _KERNEL)


def background(tables: Tables) -> list[tuple[str, int]]:
    """Threads of the kernel that write back, except for programs that do not sync, and of processes that sync."""
    own = _of_syncing(tables)
    programs = {row["process"] or row["comm"] for row in tables["sync"]}

    def counts(comm: str, writers: str | None) -> bool:
        is_flusher = comm.startswith("kworker/") and (writers is None or writers in programs)
        return comm in own or is_flusher

    return _ahead(tables, counts)


def _of_syncing(tables: Tables) -> set[str]:
    """Returns the names of threads that submitted bios of no sync, of processes that sync."""
    pids = {row["pid"] for row in tables["sync"]} - {None}
    return {bio["comm"] for bio in tables["bio"] if bio["pid"] in pids and bio["sync_id"] is None}


def _ahead(tables: Tables, counts: Callable[[str, str | None], bool]) -> list[tuple[str, int]]:
    """Returns names of threads and the ns in which their bios were ahead of the slowest syncs.

    The bios of a thread for different writers and files count apart.
    """
    slow = bystanders.slowest(tables["sync"])
    total = sum(row["ts_ns"] + row["dur_ns"] - row["start_ns"] for row in slow)
    sums: dict[bystanders.Key, int] = defaultdict(int)
    syncs: dict[bystanders.Key, int] = defaultdict(int)
    for delays in bystanders.delays(tables).values():
        for key, ns in delays.items():
            kind, comm, _, _, writers, _ = key
            if kind == "background" and comm and counts(comm, writers):
                sums[key] += ns
                syncs[key] += 1
    return [(key[1] or "", ns) for key, ns in sums.items() if ns >= total / 20 and syncs[key] >= 3]


def rebuildable(tables: Tables) -> list[Part]:
    lines = PATTERNS.read_text().splitlines()
    patterns = [line.split("\t") for line in lines if not line.startswith("#")]

    def reason(path: str) -> str:
        matching = (why for pattern, why in patterns if fnmatch.fnmatchcase(path, pattern))
        return next(matching, "-")

    return [
        whole(row)
        for row in evident(tables)
        if row["path"] is not None and not is_worker(row) and reason(row["path"]) != "-"
    ]


def commit(tables: Tables) -> list[tuple[int, int]]:
    """Syncs, and the ns of earlier commits that a sync of another thread started, or first waited for."""
    syncs = {row["sync_id"]: row for row in tables["sync"]}
    named = any(row["dev"] is None for row in tables["journal"])
    kernel = of_kernel(tables)
    found = []
    for phase in tables["phase"]:
        if phase["phase"] != "earlier commit" or not phase["dur_ns"]:
            continue
        if phase["sync_id"] in kernel:
            continue
        sync = syncs[phase["sync_id"]]
        begun = [
            row
            for row in _commits(tables)
            if row["dur_ns"] is not None
            and row["ts_ns"] <= phase["ts_ns"]
            and (named or row["dev"] == sync["dev"])
        ]
        if not begun:
            continue
        journal = max(begun, key=lambda row: row["ts_ns"])
        owner = journal["sync_id"]
        if owner is None and journal["started_by"] in (None, "sync"):
            waits = [
                (wait["ts_ns"], wait["sync_id"])
                for wait in tables["wait"]
                if wait["transaction_id"] is not None
                and wait["transaction_id"] == journal["transaction_id"]
                and syncs[wait["sync_id"]]["dev"] == sync["dev"]
            ]
            owner = min(waits, default=(0, None))[1]
        if owner is not None and (syncs[owner]["tid"], syncs[owner]["pid"]) != (
            sync["tid"],
            sync["pid"],
        ):
            found.append((sync["sync_id"], phase["dur_ns"]))
    return found


def cpu(tables: Tables) -> list[Part]:
    """The waits for a CPU of the programs that waited for one in a fifth of their syncs' time."""
    programs = defaultdict(list)
    for row in evident(tables):
        programs[row["process"] or row["comm"]].append(row)
    all_ns = sum(row["dur_ns"] or 0 for row in evident(tables))
    found: list[Part] = []
    for rows in programs.values():
        ids = {row["sync_id"] for row in rows}
        waits = [
            phase
            for phase in tables["phase"]
            if phase["phase"] == "cpu wait" and phase["dur_ns"] and phase["sync_id"] in ids
        ]
        waited = sum(phase["dur_ns"] for phase in waits)
        if waited * 5 >= sum(row["dur_ns"] or 0 for row in rows) and waited * 20 >= all_ns:
            found += map(whole, waits)
    return found


def append(tables: Tables) -> list[Part]:
    """The commits that calls of fdatasync waited for, if at least half of a file and thread did."""
    rows = [
        row
        for row in tables["sync"]
        if row["op"] == "fdatasync"
        and row["fs"] in ("ext4", "xfs")
        and None not in (row["path"], row["dur_ns"])
    ]
    commits = defaultdict(list)
    for phase in tables["phase"]:
        if phase["phase"].startswith("commit ") or phase["phase"] == "earlier commit":
            commits[phase["sync_id"]].append(phase)
    found: list[Part] = []
    for same in grouped(rows, "tid", "pid", "path").values():
        waiting = [row["sync_id"] for row in same if row["sync_id"] in commits]
        if len(same) >= 8 and 2 * len(waiting) >= len(same):
            for sync_id in waiting:
                parts = commits[sync_id]
                until = max(part["ts_ns"] + part["dur_ns"] for part in parts)
                found.append((sync_id, min(part["ts_ns"] for part in parts), until))
    return found


# Those whose cost is a part of the time of requests.
FINDINGS = {
    "needless": needless,
    "fdatasync": fdatasync,
    "small-files": small_files,
    "rename-file": rename_file,
    "rename-folder": rename_folder,
    "rebuildable": rebuildable,
    "cpu": cpu,
    "append": append,
}


def cost(tables: Tables, parts: list[Part]) -> tuple[int, int]:
    """Returns the wall time that the syncs would be shorter by without the parts, and the wall time in sync.

    It looks at each instant between two borders, process by process.
    """
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for sync_id, since, until in parts:
        if sync_id is not None and since is not None and until is not None:
            spans[sync_id].append((since, until))
    processes = defaultdict(list)
    for row in evident(tables):
        if row["dur_ns"]:
            owner = row["pid"] if row["pid"] is not None else ("comm", row["comm"])
            processes[owner].append(row)
    saved = wall = 0
    for rows in processes.values():
        borders = {border for row in rows for border in (row["ts_ns"], end(row))}
        borders |= {border for row in rows for span in spans[row["sync_id"]] for border in span}
        for since, until in itertools.pairwise(sorted(borders)):
            flying = [row for row in rows if row["ts_ns"] <= since and until <= (end(row) or 0)]
            if not flying:
                continue
            wall += until - since
            if all(
                any(start <= since and until <= stop for start, stop in spans[row["sync_id"]])
                for row in flying
            ):
                saved += until - since
    return saved, wall
