"""Writes of a stock kernel's events: `write_enter` and `write_exit` say the place of each, and what was dirty after it.

A call is paired only if no other call can have its return. Else it is not used, and counted.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.errors import InputError
from syncline.recordings import Filter

from .writes import Write, Writes, kind_of_flags

__all__ = ["from_events"]

_PAGE_BYTES = 4096
# Flags of an iocb: IOCB_DSYNC and IOCB_SYNC, IOCB_APPEND, IOCB_DIRECT.
_DURABLE, _APPEND, _DIRECT = 0x2 | 0x4, 0x10, 1 << 17
_NAMES = ("n0", "n1", "n2", "n3")
_WITHOUT_RETURN = "calls whose return is not in the recording"
_WITHOUT_ENTRY = "returns of calls whose start is not in the recording"
_LOSS = "calls during which events were lost"
_DOUBTFUL = "calls that begin in another of their thread whose return is not in the recording"

_Row = Mapping[str, Any]


@dataclass
class _Open:
    """A call without its return so far."""

    entry: _Row
    # A synchronized write calls a sync function, which is no sync of its own.
    is_part: bool
    # Its return may be that of an earlier call.
    is_doubtful: bool


class _Pairing:
    """Pairs entries and returns. A thread has a stack of calls: a write to a loop device may write to the file below it."""

    def __init__(self, unused: Counter[str]) -> None:
        self._unused = unused
        self._open: dict[int, list[_Open]] = {}

    def pairs(self, rows: Iterable[_Row]) -> Iterator[tuple[_Row, _Row]]:
        """Returns entries with their returns, in the order of the returns."""
        for row in rows:
            if row["part"] == "loss":
                # A return, and the entry of the next call, may be among what was lost.
                self._drop_all(_LOSS)
            elif row["part"] == "entry":
                self._enter(row)
            elif (entry := self._leave(row)) is not None:
                yield entry, row
        self._drop_all(_WITHOUT_RETURN)

    def _drop_all(self, why: str) -> None:
        for calls in self._open.values():
            self._drop(calls, why)
        self._open.clear()

    def _drop(self, calls: list[_Open], why: str) -> None:
        if dropped := sum(not one.is_part for one in calls):
            self._unused[why] += dropped

    def _enter(self, row: _Row) -> None:
        calls = self._open.setdefault(row["tid"], [])
        is_part = bool(calls) and _is_part(row, calls[-1].entry)
        # A file system does not call itself otherwise: the return of the call before was not recorded.
        is_doubtful = not is_part and any(one.entry["dev"] == row["dev"] for one in calls)
        if is_doubtful:
            self._drop(calls, _WITHOUT_RETURN)
            calls.clear()
        calls.append(_Open(row, is_part, is_doubtful))

    def _leave(self, row: _Row) -> _Row | None:
        calls = self._open.get(row["tid"], [])
        at = max(
            (n for n, one in enumerate(calls) if one.entry["kind"] == row["kind"]), default=None
        )
        if at is None:
            self._unused[_WITHOUT_ENTRY] += 1
            return None
        self._drop(calls[at + 1 :], _WITHOUT_RETURN)
        call = calls[at]
        del calls[at:]
        if call.is_part:
            return None
        if call.is_doubtful:
            self._unused[_DOUBTFUL] += 1
            return None
        names = (call.entry["comm"], row["comm"])
        if None not in names and names[0] != names[1]:
            # Another process got the thread id.
            self._unused[_WITHOUT_RETURN] += 1
            self._unused[_WITHOUT_ENTRY] += 1
            return None
        return call.entry


def _is_part(row: _Row, outer: _Row) -> bool:
    is_durable = outer["kind"] == "write" and bool(outer["ki_flags"] & _DURABLE)
    same = ("dev", "ino", "gen")
    return row["kind"] == "fsync" and is_durable and all(row[key] == outer[key] for key in same)


def from_events(rows: Iterable[_Row], chosen: Filter, lost: int) -> Writes:
    """Returns the writes and syncs of events, which `sql/write_model/probes.sql` selects, in the order of their starts.

    Args:
        rows: the events, in their order.
        chosen: which writes are used, by thread name, path and device.
        lost: how many events the recorder lost.

    Raises:
        InputError: no write is left, or the filter needs what the events do not say.
    """
    if chosen != Filter(comm=chosen.comm, path=chosen.path, device=chosen.device):
        raise InputError(
            "only --comm, --path and --device select writes in the events of a kernel",
            "leave out the other filters",
        )
    unused: Counter[str] = Counter()
    # With the numbers of their rows: equal times have an order.
    writes: list[tuple[int, int, Write]] = []
    paths: dict[tuple[str, ...], str] = {}
    devices: set[str] = set()
    limits: list[tuple[int, int]] = []
    # With their devices.
    of_all: list[tuple[str, Write]] = []

    def calls() -> Iterator[_Row]:
        for number, row in enumerate(rows):
            if row["part"] == "limits":
                limits.append((row["background_thresh"], row["dirty_thresh"]))
            else:
                yield {**row, "number": number}

    for entry, returned in _Pairing(unused).pairs(calls()):
        start, duration = entry["ts_ns"], returned["ts_ns"] - entry["ts_ns"]
        if entry["kind"] == "sync_inodes":
            of_all.append((entry["dev"], Write(start, duration, "sync", "", 0, 0)))
        elif returned["ret"] < 0:
            unused["calls that failed, or that ended later (asynchronous I/O)"] += 1
        else:
            file = (entry["dev"], entry["ino"], entry["gen"])
            if file not in paths:
                paths[file] = _path(entry, set(paths.values()))
            if not _is_chosen(entry, paths[file], chosen):
                unused["calls that the filter left out"] += 1
                continue
            devices.add(entry["dev"])
            write = _write(entry, returned, paths[file])
            writes.append((start, entry["number"], write))
    if others := sum(device not in devices for device, _ in of_all):
        unused["syncs of file systems without a write that is used"] = others
    notes = [f"not used: {number:,} {reason}" for reason, number in unused.most_common()]
    if lost:
        notes.insert(0, f"the recorder lost {lost:,} events, so writes may be missing")
    found = [one for *_, one in sorted(writes, key=lambda one: one[:2])]
    if not any(one.kind != "sync" for one in found):
        raise InputError("no write can be used" + (f": {'; '.join(notes)}" if notes else ""), "use another filter, or none")  # fmt: skip
    if len(devices) > 1:
        notes.append(f"the writes are to {len(devices)} file systems, and the model has one device: --device selects one")  # fmt: skip
    # sync() looks at all file systems.
    found += [one for device, one in of_all if device in devices]
    known = [round(statistics.median(values)) * _PAGE_BYTES for values in zip(*limits, strict=True)]
    return Writes(
        sorted(found, key=lambda one: one.start_ns), notes, (known[0], known[1]) if known else None
    )


def _write(row: _Row, returned: _Row, path: str) -> Write:
    start, duration = row["ts_ns"], returned["ts_ns"] - row["ts_ns"]
    if row["kind"] == "fsync":
        return Write(start, duration, "sync", path, 0, 0)
    flags = row["ki_flags"]
    kind = kind_of_flags(is_direct=bool(flags & _DIRECT), is_synchronized=bool(flags & _DURABLE))
    offset = row["file_size"] if flags & _APPEND else row["offset"]
    dirty = None
    if returned["nr_dirty"] is not None and returned["nr_writeback"] is not None:
        dirty = max(0, returned["nr_dirty"] + returned["nr_writeback"]) * _PAGE_BYTES
    return Write(start, duration, kind, path, offset, returned["ret"], dirty)


def _path(row: _Row, known: set[str]) -> str:
    """Returns the path in the file system, as far as its names were recorded. No two files have the same."""
    names: list[str] = []
    for column in _NAMES:
        if row[column] in (None, "/"):
            break
        names.append(row[column])
    is_whole = len(names) < len(_NAMES) and row[_NAMES[len(names)]] == "/"
    path = ("/" if is_whole else ".../") + "/".join(reversed(names))
    return path if names and path not in known else f"{path} (inode {row['ino']}, generation {row['gen']})"  # fmt: skip


def _is_chosen(row: _Row, path: str, chosen: Filter) -> bool:
    return (
        (chosen.comm is None or row["comm"] == chosen.comm)
        and (chosen.path is None or path.startswith(chosen.path))
        and (chosen.device is None or row["dev"] == str(chosen.device))
    )
