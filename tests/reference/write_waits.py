"""A plain reference implementation of the waits of writes: docs/reference/slow-writes.md.

It takes the events of a recording, as objects of the low-level log, and the tables of syncs and calls. For each thread and each kind of
wait it lists when the waits begin and end, and searches the lists.
"""

from __future__ import annotations

import itertools
from typing import Any

Row = dict[str, Any]

MIN_NS = 1_000_000
KINDS = {
    "inode_lock": "inode lock",
    "journal_handle": "journal handle",
    "journal_space": "journal space",
    "journal_buffer": "journal buffer",
}
PAGES = ("folio_wait", "filemap_wait")
REGULAR, TYPE = 0o100000, 0o170000
# The fields that are compared. The path comes from other sources.
FIELDS = (
    "ts_ns", "dur_ns", "tid", "comm", "wait", "dev", "ino", "bytes", "transaction_id", "holder_tid", "holder_comm",
    "bio_id", "confidence",
)  # fmt: skip


def write_waits(
    log: list[Row],
    syncs: list[Row],
    calls: list[Row],
    bios: list[Row] = (),  # type: ignore[assignment]
) -> list[Row]:
    """Returns the rows in the order of their starts. Without bios, nobody knows by which one a page was read."""
    rows = []
    for tid in {event["tid"] for event in log if "tid" in event}:
        mine = [event for event in log if event.get("tid") == tid]
        busy = _in_syncs(tid, syncs, calls) + _at_other_work(mine)
        reads = _page_reads(mine, [bio for bio in bios if bio["tid"] == tid and bio["direction"] == "read"])  # fmt: skip
        for row in [*_pauses(mine, syncs, calls), *_of_functions(mine), *_pages(mine), *reads]:
            inside = any(start <= row["ts_ns"] < end for start, end in busy)
            if not inside and (row["dur_ns"] >= MIN_NS or row["wait"] == "page read"):
                rows.append(row)
    return sorted(rows, key=lambda row: (row["ts_ns"], row["tid"], row["wait"]))


def _in_syncs(tid: int, syncs: list[Row], calls: list[Row]) -> list[tuple[int, int]]:
    both = [*syncs, *(call for call in calls if call["op"] != "write")]
    of_thread = [row for row in both if row["tid"] == tid and row["dur_ns"] is not None]
    return [(row["ts_ns"], row["ts_ns"] + row["dur_ns"]) for row in of_thread]


def _at_other_work(mine: list[Row]) -> list[tuple[int, int]]:
    """What a flusher thread does for others, and commits."""
    spans = []
    for first, last in (
        ("writeback_start", "writeback_written"),
        ("jbd2_start_commit", "jbd2_end_commit"),
    ):
        starts = [event["ts_ns"] for event in mine if event["event"] == first]
        ends = [event["ts_ns"] for event in mine if event["event"] == last]
        spans += [
            (start, min((end for end in ends if end > start), default=1 << 63)) for start in starts
        ]
    return spans


def _row(event: Row, kind: str, end: int, confidence: str = "exact", **more: Any) -> Row:
    row = dict.fromkeys(FIELDS)
    row |= {
        "ts_ns": event["ts_ns"],
        "dur_ns": end - event["ts_ns"],
        "tid": event["tid"],
        "comm": event.get("comm"),
    }
    return row | {"wait": kind, "confidence": confidence} | more


def _pauses(mine: list[Row], syncs: list[Row], calls: list[Row]) -> list[Row]:
    pauses = [
        event for event in mine if event["event"] == "balance_dirty_pages" and event["pause"] > 0
    ]
    ends = [event["ts_ns"] for event in mine if event["event"] == "write_pause_end"]
    of_thread = [row["ts_ns"] for row in (*syncs, *calls) if mine and row["tid"] == mine[0]["tid"]]
    rows = []
    for event in pauses:
        start = event["ts_ns"]
        last = start + event["pause"] * 1_000_000
        # It has ended when the thread does something else.
        later = [other["ts_ns"] for other in pauses if other["ts_ns"] > start]
        later += [ts for ts in of_thread if ts > start]
        until = min(later, default=1 << 63)
        seen = [end for end in ends if start < end < until]
        disk = event.get("bdi", event.get("name", ""))
        dev = disk.replace(":", ",") if disk.replace(":", "").isdigit() and ":" in disk else None
        # In further pauses of one check, nothing was made dirty since: the event repeats the number of the first one.
        dirtied = event["dirtied"] if event["paused"] == 0 else 0
        more = {"dev": dev, "bytes": dirtied * 4096 or None}
        if seen:
            rows.append(_row(event, "throttling", seen[0], **more))
        else:
            rows.append(_row(event, "throttling", min(last, until), "inferred", **more))
    return rows


def _of_functions(mine: list[Row]) -> list[Row]:
    rows = []
    for name, kind in KINDS.items():
        used = [
            event
            for event in mine
            if event["event"] in (name, f"{name}_end")
            and (name != "inode_lock" or _is_of_file(event))
        ]
        for event, after in itertools.pairwise(used):
            if event["event"] == name and after["event"] == f"{name}_end":
                rows.append(_row(event, kind, after["ts_ns"], **_facts(event)))
    return rows


def _is_of_file(event: Row) -> bool:
    lock, host = (int(str(event[key]), 0) for key in ("lock", "host"))
    return lock - event["at"] == host and event.get("mode", REGULAR) & TYPE == REGULAR


def _device(number: int | None) -> str | None:
    return f"{number >> 20},{number & 0xFFFFF}" if number else None


def _facts(event: Row) -> Row:
    facts = {
        "dev": _device(event.get("dev")),
        "ino": event.get("ino"),
        "transaction_id": event.get("data_tid"),
    }
    owner = int(str(event.get("owner", 0)), 0)
    if owner > 7 and not owner & 1:
        suffix = "_marked" if owner & 2 else ""
        facts["holder_tid"], facts["holder_comm"] = (
            event[f"holder{suffix}"],
            event[f"holder_comm{suffix}"],
        )
    return facts


def _page_reads(mine: list[Row], reads: list[Row]) -> list[Row]:
    """Waits for a page that the thread changes a part of. `reads` are its bios that read."""
    rows = []
    for name in ("buffer_wait", "page_read", "page_lock"):
        used = [event for event in mine if event["event"] in (name, f"{name}_end")]
        for event, after in itertools.pairwise(used):
            is_pair = (event["event"], after["event"]) == (name, f"{name}_end")
            if not is_pair or not _is_page_of_file(event):
                continue
            dev, ino = event.get("file_dev", event["dev"]), event["ino"]
            at, end = event["ts_ns"], after["ts_ns"]
            own = [bio for bio in reads if bio["ino"] == ino and bio["dur_ns"] is not None]
            if name == "page_read":
                # It submits the bio itself, in the function that waits for it.
                own = [bio for bio in own if at <= bio["ts_ns"] <= end]
            else:
                own = [bio for bio in own if bio["ts_ns"] <= at < bio["ts_ns"] + bio["dur_ns"]]
            if "block" in event:
                own = [bio for bio in own if bio["sector"] == event["block"] * event["size"] // 512]
            if own or name != "page_lock":
                confidence = "exact" if own else "inferred"
                rows.append(_row(event, "page read", end, confidence, dev=_device(dev), ino=ino, bio_id=own[-1]["bio_id"] if own else None))  # fmt: skip
    return rows


def _is_page_of_file(event: Row) -> bool:
    if "mapping" not in event:
        return False
    mapping, own = (int(str(event[key]), 0) for key in ("mapping", "own"))
    return mapping == own and not mapping & 3 and event["mode"] & TYPE == REGULAR


def _pages(mine: list[Row]) -> list[Row]:
    """Waits for page cache. One that is in another is not counted."""
    rows: list[Row] = []
    open_waits: list[Row] = []
    for event in mine:
        if event["event"] in PAGES:
            open_waits.append(event)
        elif event["event"] in [f"{name}_end" for name in PAGES] and open_waits:
            first = open_waits.pop()
            if not open_waits:
                facts = {"dev": _device(first.get("dev")), "ino": first.get("ino")}
                rows.append(_row(first, "page writeback", event["ts_ns"], **facts))
    return rows
