"""What holds for the rows of every conversion, however much of the recording was lost."""

from __future__ import annotations

from collections import defaultdict

from tests.coretools import Rows

# Columns that are times and not lengths.
_TIMES = {"ts_ns", "start_ns", "first_ts_ns", "last_ts_ns"}
# These calls return only when their data are written, unless they fail.
_WAITING = {"fsync", "fdatasync", "msync", "write"}


def check(tables: dict[str, Rows]) -> None:
    """Raises an AssertionError with the row that breaks a rule."""
    for table in tables.keys() - {"meta"}:
        for row in tables[table]:
            for column, value in row.items():
                if column.endswith("_ns") and column not in _TIMES and value is not None:
                    assert value >= 0, (table, column, row)
    bios_of, phases_of = defaultdict(list), defaultdict(list)
    for bio in tables["bio"]:
        # A flush of a sync writes nothing back.
        if bio["direction"] != "flush":
            bios_of[bio["sync_id"]].append(bio)
        if None not in (bio["queue_ns"], bio["device_ns"], bio["dur_ns"]):
            assert bio["queue_ns"] + bio["device_ns"] == bio["dur_ns"], bio
        assert (bio["requeue_ns"] or 0) <= (bio["queue_ns"] or bio["requeue_ns"] or 0), bio
    for phase in tables["phase"]:
        phases_of[phase["sync_id"]].append(phase)
    for sync in tables["sync"]:
        _check_sync(sync, bios_of[sync["sync_id"]], phases_of[sync["sync_id"]])


def _check_sync(sync: dict, bios: Rows, phases: Rows) -> None:
    if sync["bios"] is not None:
        assert sync["bios"] == len(bios), sync
    if sync["bytes"] is not None:
        assert sync["bytes"] == sum(bio["bytes"] for bio in bios), sync
    if sync["incomplete"] == "call":
        # Its phases are known, but not how long it took.
        return
    if None in (sync["start_ns"], sync["dur_ns"]):
        assert not phases, sync
        return
    end = sync["ts_ns"] + sync["dur_ns"]
    assert sum(phase["dur_ns"] for phase in phases) == end - sync["start_ns"], (sync, phases)
    if sync["incomplete"] is not None:
        return
    parts = [sync[c] for c in ("before_submit_ns", "writeback_ns", "after_complete_ns")]
    if None not in parts:
        assert sum(parts) == end - sync["start_ns"], sync
    assert all(bio["incomplete"] is None for bio in bios), sync
    is_exact = sync["confidence"] == "exact" and (sync["ret"] or 0) >= 0
    if is_exact and (sync["op"] is None or sync["op"] in _WAITING):
        assert all(bio["ts_ns"] + bio["dur_ns"] <= end for bio in bios), (sync, bios)
