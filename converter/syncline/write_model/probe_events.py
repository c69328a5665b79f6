"""Writes of a stock kernel's events: `write_enter` and `write_exit` say the place of each, and what was dirty after it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from syncline.errors import InputError
from syncline.recordings import Filter

from .writes import Write, Writes

__all__ = ["from_events"]

_PAGE_BYTES = 4096
# Flags of an iocb: IOCB_DSYNC and IOCB_SYNC, IOCB_APPEND, IOCB_DIRECT.
_DURABLE, _APPEND, _DIRECT = 0x2 | 0x4, 0x10, 1 << 17
_NAMES = ("n0", "n1", "n2", "n3")
_WHY_UNUSED = {
    "entry": "calls whose return is not in the recording",
    "return": "returns of calls whose start is not in the recording",
}


def from_events(rows: Iterable[Mapping[str, Any]], chosen: Filter, lost: int) -> Writes:
    """Returns the writes and syncs of events, which `sql/write_model/probes.sql` selects, in the order of their starts.

    Args:
        rows: the events.
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
    writes: list[Write] = []
    paths: dict[tuple[str, ...], str] = {}
    devices: set[str] = set()
    limits: list[tuple[int, int]] = []
    # With their devices.
    of_all: list[tuple[str, Write]] = []
    for row in rows:
        if row["part"] == "limits":
            limits.append((row["background_thresh"], row["dirty_thresh"]))
        elif row["part"] in _WHY_UNUSED:
            unused[_WHY_UNUSED[row["part"]]] += 1
        elif row["part"] == "sync all":
            of_all.append((row["dev"], Write(row["start_ns"], row["dur_ns"], "sync", "", 0, 0)))
        elif row["ret"] < 0:
            unused["calls that failed, or that ended later (asynchronous I/O)"] += 1
        else:
            file = (row["dev"], row["ino"], row["gen"])
            if file not in paths:
                paths[file] = _path(row, set(paths.values()))
            if not _is_chosen(row, paths[file], chosen):
                unused["calls that the filter left out"] += 1
                continue
            devices.add(row["dev"])
            writes.append(_write(row, paths[file]))
    if others := sum(device not in devices for device, _ in of_all):
        unused["syncs of file systems without a write that is used"] = others
    notes = [f"not used: {number:,} {reason}" for reason, number in unused.most_common()]
    if lost:
        notes.insert(0, f"the recorder lost {lost:,} events, so writes may be missing")
    if not any(one.kind != "sync" for one in writes):
        raise InputError("no write can be used" + (f": {'; '.join(notes)}" if notes else ""), "use another filter, or none")  # fmt: skip
    if len(devices) > 1:
        notes.append(f"the writes are to {len(devices)} file systems, and the model has one device: --device selects one")  # fmt: skip
    # sync() looks at all file systems.
    writes += [one for device, one in of_all if device in devices]
    known = [round(statistics.median(values)) * _PAGE_BYTES for values in zip(*limits, strict=True)]
    return Writes(
        sorted(writes, key=lambda one: one.start_ns), notes, (known[0], known[1]) if known else None
    )


def _write(row: Mapping[str, Any], path: str) -> Write:
    start, duration = row["start_ns"], row["dur_ns"]
    if row["part"] == "sync":
        return Write(start, duration, "sync", path, 0, 0)
    flags = row["ki_flags"]
    kind = "direct" if flags & _DIRECT else "synchronized" if flags & _DURABLE else "cached"
    offset = row["file_size"] if flags & _APPEND else row["offset"]
    dirty = None
    if row["nr_dirty"] is not None and row["nr_writeback"] is not None:
        dirty = max(0, row["nr_dirty"] + row["nr_writeback"]) * _PAGE_BYTES
    return Write(start, duration, kind, path, offset, row["ret"], dirty)


def _path(row: Mapping[str, Any], known: set[str]) -> str:
    """Returns the path in the file system, as far as its names were recorded. No two files have the same."""
    names: list[str] = []
    for column in _NAMES:
        if row[column] in (None, "/"):
            break
        names.append(row[column])
    is_whole = len(names) < len(_NAMES) and row[_NAMES[len(names)]] == "/"
    path = ("/" if is_whole else ".../") + "/".join(reversed(names))
    return path if names and path not in known else f"{path} (inode {row['ino']}, generation {row['gen']})"  # fmt: skip


def _is_chosen(row: Mapping[str, Any], path: str, chosen: Filter) -> bool:
    return (
        (chosen.comm is None or row["comm"] == chosen.comm)
        and (chosen.path is None or path.startswith(chosen.path))
        and (chosen.device is None or row["dev"] == str(chosen.device))
    )
