"""Reads the stacks of a flame graph, aggregated by SQL (sql/commands/flamegraph/) on any engine."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from syncline.frames import NO_CALL, NO_STACK, UNKNOWN_FILE, comparable, is_nameless, readable
from syncline.report.catalogue import read_sql
from syncline.report.run import Table, check_trace, run_query
from syncline.report.tables import SqlEngine

__all__ = ["BY", "WEIGHTS", "By", "Stack", "Stacks", "Weight", "query", "read"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Weight:
    """What the width of a frame shows: a column of the query, and the column that counts its known values."""

    text: str
    unit: str
    column: str
    known: str


# All weights. A new weight needs a line here, two columns in sql/commands/flamegraph/by.sql, and its name in the options of
# cli/flamegraph.py, which a test compares with these. (The HTML page has its own list, `WEIGHTS` in views/flame.js, and
# `convert -o X.folded` uses the list of the core.)
WEIGHTS = {
    "count": Weight("sync requests", "count", "syncs", "syncs"),
    "syscall": Weight("syscall latency", "ns", "syscall_ns", "syscall_known"),
    "writeback": Weight("writeback latency", "ns", "writeback_ns", "writeback_known"),
    "journal": Weight("wait for the journal", "ns", "journal_ns", "journal_known"),
    "flush": Weight("wait for cache flushes", "ns", "flush_ns", "flush_known"),
    "bytes": Weight("bytes written back", "bytes", "bytes", "bytes_known"),
}


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of frames; `sums` has its weights by name, without those that are not known for any request."""

    frames: tuple[str, ...]
    sums: dict[str, int]
    # For formats in which a sample needs a thread and a time.
    tid: int
    first_ts_ns: int

    def __add__(self, other: Stack) -> Stack:
        """Merges two stacks with the same frames."""
        first = min(self, other, key=lambda one: one.first_ts_ns)
        names = [name for name in WEIGHTS if name in self.sums or name in other.sums]
        sums = {name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in names}
        return Stack(self.frames, sums, first.tid, first.first_ts_ns)


@dataclass
class Stacks:
    """All stacks of an input, and the numbers of requests that they do not cover."""

    stacks: list[Stack]
    syncs: int = 0
    # Weight -> number of requests for which it is known.
    known: dict[str, int] = field(default_factory=dict)
    # Weight -> number of requests for which it is known and that have no stack (or file) in the log.
    unrecorded: dict[str, int] = field(default_factory=dict)
    # Requests with frames that lack a name, and these frames.
    nameless: int = 0
    nameless_frames: set[str] = field(default_factory=set)

    def total(self, weight: str) -> int:
        """Returns the total of a weight."""
        return sum(stack.sums.get(weight, 0) for stack in self.stacks)


@dataclass(frozen=True)
class By:
    """What the frames show; `frames` makes them from a row, outermost first."""

    text: str
    frame_is: str
    palette: str
    # Columns of syncline_sync that the query groups by.
    keys: tuple[str, ...]
    frames: Callable[[Row, bool], list[str]]
    # Returns whether the log does not record what the frames show.
    lacks: Callable[[Row], bool] = lambda _row: False


def _stack_frames(row: Row, _numbers: bool) -> list[str]:
    return [row["comm"] or "", *(row["stack"] or NO_STACK).split(";")]


def _lacks_stack(row: Row) -> bool:
    return not row["stack"]


def _lacks_file(row: Row) -> bool:
    return not row["path"] and None in (row["ino"], row["dev"])


def _file_frames(row: Row, _numbers: bool) -> list[str]:
    path = row["path"]
    if not path:
        inode = f"inode {row['ino']} on {row['dev']}"
        return [row["comm"] or "", UNKNOWN_FILE if _lacks_file(row) else inode]
    root = ["/"] if path.startswith("/") else []
    return [row["comm"] or "", *root, *(part for part in path.split("/") if part)]


def _thread_frames(row: Row, numbers: bool) -> list[str]:
    comm = row["comm"] or "[no name]"
    process = row["process"] or comm
    if numbers:
        process += f" {row['pid']}" if row["pid"] is not None else ""
        comm += f" {row['tid']}" if row["tid"] is not None else ""
    return [process, *([comm] if comm != process else []), row["op"] or NO_CALL]


# By name on the command line.
BY = {
    "stack": By("call stack", "Function", "warm", ("comm", "stack"), _stack_frames, _lacks_stack),
    "file": By("file", "File", "green", ("comm", "path", "dev", "ino"), _file_frames, _lacks_file),
    "thread": By(
        "thread", "Thread", "blue", ("run", "process", "pid", "comm", "tid", "op"), _thread_frames
    ),
}


def read(engine: SqlEngine, by: str, *, compared: bool = False) -> Stacks:
    """Reads the stacks from an engine.

    Args:
        engine: has the tables of docs/reference/tables.md.
        by: one of `BY`.
        compared: the stacks are compared with those of another run, so addresses and thread ids, which differ
            between runs, are left out. Thread ids are also left out if the input holds several runs.

    Raises:
        EngineError: the trace was not written by Syncline.
    """
    check_trace(engine)
    table = run_query(engine, query(by))
    # There may be a row for each of a million files.
    with _without_gc():
        return _stacks(table, by, compared=compared)


def query(by: str) -> str:
    """Returns the SQL of a flame graph."""
    sql = read_sql("commands/flamegraph", "by")
    # Not in the head comment, which says what it is.
    return re.sub(r"(?<!-- ):keys\b", ", ".join(BY[by].keys), sql)


def _stacks(table: Table, by: str, *, compared: bool) -> Stacks:
    def rows() -> Iterator[Row]:
        return (dict(zip(table.columns, row, strict=True)) for row in table.rows)

    how = BY[by]
    numbers = not compared and len({row.get("run") for row in rows()}) <= 1
    names = readable({frame for row in rows() for frame in how.frames(row, numbers)})
    none = dict.fromkeys(WEIGHTS, 0)
    found = Stacks([], known={**none}, unrecorded={**none})
    merged: dict[tuple[str, ...], Stack] = {}
    for row in rows():
        frames = tuple([names[frame] for frame in how.frames(row, numbers)])
        found.syncs += row["syncs"]
        is_unrecorded = how.lacks(row)
        for name, weight in WEIGHTS.items():
            found.known[name] += row[weight.known]
            found.unrecorded[name] += row[weight.known] if is_unrecorded else 0
        if by == "stack":
            without = {frame for frame in frames[1:] if is_nameless(comparable(frame))}
            found.nameless += row["syncs"] if without else 0
            found.nameless_frames |= without
            if compared:
                frames = (frames[0], *map(comparable, frames[1:]))
        one = _stack(frames, row)
        merged[frames] = merged[frames] + one if frames in merged else one
    found.stacks = [merged[frames] for frames in sorted(merged)]
    return found


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disables garbage collection: a million rows contain no cycles, and searching for them takes most of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _stack(frames: tuple[str, ...], row: Row) -> Stack:
    # Late events may make a duration negative, but a width cannot be negative.
    sums = {name: max(0, row[one.column]) for name, one in WEIGHTS.items() if row[one.known]}
    return Stack(frames, sums, row["some_tid"] or 0, row["first_ts_ns"])
