"""A plain reference implementation of the pairing of writes in a stock kernel's events, and of what the write model uses of them.

It takes the events of a recording, as objects of the low-level log in its order, all at once.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

PAGE_BYTES = 4096
# Flags of an iocb: IOCB_SYNC, IOCB_DSYNC or it, IOCB_APPEND, IOCB_DIRECT.
SYNC, DURABLE, APPEND, DIRECT = 0x4, 0x2 | 0x4, 0x10, 1 << 17
NAMES = ("n0", "n1", "n2", "n3")
ENTRIES = {"write_enter": "write", "fsync_enter": "fsync", "sync_inodes": "sync_inodes"}
RETURNS = {"write_exit": "write", "fsync_exit": "fsync", "sync_inodes_end": "sync_inodes"}
NEEDED = {
    "write_enter": ("dev", "ino", "gen", "ki_flags"),
    "fsync_enter": ("dev", "ino", "gen"),
    "sync_inodes": ("dev",),
    "write_exit": ("ret",),
    "fsync_exit": ("ret",),
}
LOSS, NO_RETURN, NO_START, DOUBTFUL = "loss", "no return", "no start", "doubtful"
FAILED, FILTER, OTHER_DEVICE = "failed", "filter", "other device"


@dataclass
class Call:
    """A call, with what it returned once that is known."""

    kind: str
    entry: Row
    # A synchronized write calls a sync function, which is no sync of its own.
    is_part: bool = False
    # Its return may be that of an earlier call.
    is_doubtful: bool = False
    returned: Row | None = None

    @property
    def file(self) -> tuple[Any, ...]:
        return tuple(self.entry.get(name) for name in ("dev", "ino", "gen"))

    @property
    def flags(self) -> int:
        return int(self.entry.get("ki_flags", 0))

    @property
    def offset(self) -> int:
        return int(self.entry["file_size" if self.flags & APPEND else "offset"])

    @property
    def file_size(self) -> int | None:
        size = self.entry.get("file_size") if self.kind == "write" else None
        return None if size is None else int(size)

    @property
    def is_datasync(self) -> bool | None:
        if self.kind == "write":
            return not self.flags & SYNC if self.flags & DURABLE else None
        datasync = self.entry.get("datasync") if self.kind == "fsync" else None
        return None if datasync is None else int(datasync) != 0

    @property
    def ret(self) -> int:
        assert self.returned is not None
        return int(self.returned.get("ret", 0))

    @property
    def dirty_pages(self) -> int | None:
        assert self.returned is not None
        pages = [self.returned.get(name) for name in ("nr_dirty", "nr_writeback")]
        return None if None in pages else max(0, sum(int(number) for number in pages))

    @property
    def duration_ns(self) -> int:
        assert self.returned is not None
        return self.returned["ts_ns"] - self.entry["ts_ns"]

    @property
    def write_kind(self) -> str:
        if self.kind != "write":
            return self.kind
        if self.flags & DIRECT:
            return "direct_synchronized" if self.flags & DURABLE else "direct"
        return "synchronized" if self.flags & DURABLE else "cached"


@dataclass
class Paired:
    """Calls in the order of their returns, what is not used, and the limits of page cache in pages."""

    calls: list[Call] = field(default_factory=list)
    unused: Counter[str] = field(default_factory=Counter)
    limits: list[tuple[int, int]] = field(default_factory=list)


def in_order(log: list[Row]) -> list[Row]:
    """Returns the events in the order of time, those of one time in the order of the log. A loss has the time of the event that follows it."""
    # A log of user stacks has the return of a call under the same name. A torn line is a loss already, and has no event.
    log = [row for row in log if row["source"] != "bpftrace" and row["event"] != "torn_line"]
    times: list[int] = []
    after = max((row["ts_ns"] for row in log if "ts_ns" in row), default=0)
    for row in reversed(log):
        after = after if _is_loss(row) else row.get("ts_ns", after)
        times.append(after)
    times.reverse()
    return [log[at] for at in sorted(range(len(log)), key=lambda at: (times[at], at))]


def _is_loss(row: Row) -> bool:
    """An event that lacks a field is not known to be that event, either."""
    if row["event"] in ("lost_events", "unparsed_line"):
        return True
    needed = list(NEEDED.get(row["event"], ()))
    if row["event"] == "write_enter":
        needed.append("file_size" if int(row.get("ki_flags", 0)) & APPEND else "offset")
    return any(name not in row for name in needed)


def pair(log: list[Row]) -> Paired:
    found = Paired()
    threads: dict[Any, list[Call]] = {}

    def drop(calls: list[Call], why: str) -> None:
        found.unused[why] += sum(not call.is_part for call in calls)
        calls.clear()

    def drop_all(why: str) -> None:
        for calls in threads.values():
            drop(calls, why)

    for row in in_order(log):
        event = row["event"]
        calls = threads.setdefault(row.get("tid"), [])
        if _is_loss(row):
            # A return, and the entry of the next call, may be among what was lost.
            drop_all(LOSS)
        elif event == "global_dirty_state":
            background = row.get("background_thresh", row.get("bg_thresh"))
            found.limits.append((background, row.get("dirty_thresh", row.get("thresh"))))
        elif event in ENTRIES:
            call = Call(ENTRIES[event], row)
            call.is_part = bool(calls) and _is_part(call, calls[-1])
            # A file system does not call itself otherwise: the return of the call before was not recorded.
            call.is_doubtful = not call.is_part and any(one.file[0] == call.file[0] for one in calls)  # fmt: skip
            if call.is_doubtful:
                drop(calls, NO_RETURN)
            calls.append(call)
        elif event in RETURNS:
            places = [at for at, call in enumerate(calls) if call.kind == RETURNS[event]]
            if not places:
                found.unused[NO_START] += 1
                continue
            # Those that began in it have no return.
            inner = calls[places[-1] + 1 :]
            drop(inner, NO_RETURN)
            call = calls[places[-1]]
            del calls[places[-1] :]
            comms = {call.entry.get("comm"), row.get("comm")}
            if call.is_part:
                pass
            elif call.is_doubtful:
                found.unused[DOUBTFUL] += 1
            elif len(comms - {None}) == 2:
                # Another process got the thread id.
                found.unused[NO_RETURN] += 1
                found.unused[NO_START] += 1
            else:
                call.returned = row
                found.calls.append(call)
    drop_all(NO_RETURN)
    found.unused = +found.unused
    return found


def _is_part(call: Call, outer: Call) -> bool:
    is_durable = outer.kind == "write" and bool(outer.flags & DURABLE)
    return call.kind == "fsync" and is_durable and call.file == outer.file


def short_path(row: Row) -> str | None:
    """Returns the path as far as its names were recorded; None if none was."""
    names: list[str] = []
    for column in NAMES:
        name = row.get(column)
        if name == "/":
            return "/" + "/".join(reversed(names))
        if name is None:
            break
        names.append(name)
    return ".../" + "/".join(reversed(names)) if names else None


@dataclass
class Used:
    """What the write model uses: rows of `writes.Write`, the rest by reason, and the limits in bytes."""

    writes: list[tuple[Any, ...]]
    unused: Counter[str]
    limits_bytes: tuple[int, int] | None


def used(
    log: list[Row], comm: str | None = None, path: str | None = None, device: int | None = None
) -> Used:
    paired = pair(log)
    unused = Counter(paired.unused)
    paths: dict[tuple[Any, ...], str] = {}
    writes: list[tuple[int, int, tuple[Any, ...]]] = []
    numbers = {id(row): number for number, row in enumerate(in_order(log))}
    devices = set()
    for call in _of_files(paired.calls):
        if call.ret < 0:
            unused[FAILED] += 1
            continue
        name = paths.setdefault(call.file, _name(call, set(paths.values())))
        is_chosen = (
            comm in (None, call.entry.get("comm"))
            and name.startswith(path or "")
            and device in (None, call.file[0])
        )
        if not is_chosen:
            unused[FILTER] += 1
            continue
        devices.add(call.file[0])
        start = call.entry["ts_ns"]
        if call.kind == "fsync":
            row = (start, call.duration_ns, "sync", name, 0, 0, None, None, bool(call.is_datasync))
        else:
            dirty = None if call.dirty_pages is None else call.dirty_pages * PAGE_BYTES
            row = (start, call.duration_ns, call.write_kind, name, call.offset, call.ret, dirty)
            row += (call.file_size, bool(call.is_datasync))
        writes.append((start, numbers[id(call.entry)], row))
    # Those of a device come after the calls of the same time.
    last = len(numbers)
    for number, call in enumerate(paired.calls):
        if call.kind != "sync_inodes":
            continue
        if call.file[0] not in devices:
            unused[OTHER_DEVICE] += 1
            continue
        start = call.entry["ts_ns"]
        writes.append(
            (start, last + number, (start, call.duration_ns, "sync", "", 0, 0, None, None, False))
        )
    limits = [round(statistics.median(values)) * PAGE_BYTES for values in zip(*paired.limits, strict=True)]  # fmt: skip
    rows = [row for *_, row in sorted(writes, key=lambda one: one[:2])]
    return Used(rows, unused, (limits[0], limits[1]) if limits else None)


def _of_files(calls: list[Call]) -> Iterator[Call]:
    return (call for call in calls if call.kind != "sync_inodes")


def _name(call: Call, known: set[str]) -> str:
    """Returns the path of a file. No two files have the same."""
    path = short_path(call.entry)
    if path not in (None, "/") and path not in known:
        return str(path)
    _, ino, generation = call.file
    return f"{path or '.../'} (inode {ino}, generation {generation})"
