"""The stacks of a flame graph, summed up by SQL (sql/flamegraph/) on any engine."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from syncline.frames import NO_CALL, NO_STACK, UNKNOWN_FILE, comparable, is_nameless, readable
from syncline.report.catalogue import sql_root
from syncline.report.run import SqlEngine, Table, check_trace, run_query

__all__ = ["BY", "WEIGHTS", "By", "Stack", "Stacks", "Weight", "query", "read"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Weight:
    """What the width of a frame is: a column of the queries, and the one that counts its known values."""

    text: str
    unit: str
    column: str
    known: str


# All weights that there are. Another one is a line here, its two columns in sql/flamegraph/by.sql, and its name in the
# options of cli/flamegraph.py, which a test compares with these. (The page draws its own: `WEIGHTS` of views/flame.js;
# `convert -o X.folded` knows those of the core.)
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
    """What is drawn alike; `sums` has the weights by name, without those of which no request tells."""

    frames: tuple[str, ...]
    sums: dict[str, int]
    # For formats that want a sample to be of some thread at some time.
    tid: int
    first_ts_ns: int

    def __add__(self, other: Stack) -> Stack:
        """What is drawn as one."""
        first = min(self, other, key=lambda one: one.first_ts_ns)
        names = [name for name in WEIGHTS if name in self.sums or name in other.sums]
        sums = {name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in names}
        return Stack(self.frames, sums, first.tid, first.first_ts_ns)


@dataclass
class Stacks:
    """All stacks of an input, and what they leave out, in requests."""

    stacks: list[Stack]
    syncs: int = 0
    # Weight to requests of which it is known.
    known: dict[str, int] = field(default_factory=dict)
    # Requests with no stack (no file) in the log.
    unrecorded: int = 0
    # Requests with frames that have no name, and those frames.
    nameless: int = 0
    nameless_frames: set[str] = field(default_factory=set)

    def total(self, weight: str) -> int:
        """The whole width."""
        return sum(stack.sums.get(weight, 0) for stack in self.stacks)


@dataclass(frozen=True)
class By:
    """What the frames are; `frames` makes them of a row, outermost first."""

    text: str
    frame_is: str
    palette: str
    # Columns of syncline_sync, each combination of which is a row.
    keys: tuple[str, ...]
    frames: Callable[[Row, bool], list[str]]
    # The column without which the picture says nothing.
    needs: str | None = None


def _stack_frames(row: Row, _numbers: bool) -> list[str]:
    return [row["comm"] or "", *(row["stack"] or NO_STACK).split(";")]


def _file_frames(row: Row, _numbers: bool) -> list[str]:
    path = row["path"]
    if not path:
        return [row["comm"] or "", UNKNOWN_FILE]
    root = ["/"] if path.startswith("/") else []
    return [row["comm"] or "", *root, *(part for part in path.split("/") if part)]


def _thread_frames(row: Row, numbers: bool) -> list[str]:
    comm = row["comm"] or "[no name]"
    process = row["process"] or comm
    if numbers:
        process += f" {row['pid']}" if row["pid"] is not None else ""
        comm += f" {row['tid']}" if row["tid"] is not None else ""
    return [process, *([comm] if comm != process else []), row["op"] or NO_CALL]


# The name on the command line, which is the query's, too.
BY = {
    "stack": By("call stack", "Function", "warm", ("comm", "stack"), _stack_frames, needs="stack"),
    "file": By("file", "File", "green", ("comm", "path"), _file_frames, needs="path"),
    "thread": By(
        "thread", "Thread", "blue", ("run", "process", "pid", "comm", "tid", "op"), _thread_frames
    ),
}


def read(engine: SqlEngine, by: str, *, compared: bool = False) -> Stacks:
    """Asks an engine for the stacks.

    Args:
        engine: with the tables of docs/tables.md.
        by: one of `BY`.
        compared: with another run, in which addresses and the numbers of threads are others: they are left out. Numbers
            of threads are where there are many runs, too.

    Raises:
        EngineError: the trace is not Syncline's.
    """
    check_trace(engine)
    table = run_query(engine, query(by))
    # There may be a row a file, and a million files: of each no more is kept than is needed.
    with _no_collection():
        return _stacks(table, by, compared=compared)


def query(by: str) -> str:
    """The SQL of a flame graph."""
    sql = (sql_root() / "flamegraph" / "by.sql").read_text(encoding="utf-8")
    return sql.replace("  :keys", "  " + ", ".join(BY[by].keys))


def _stacks(table: Table, by: str, *, compared: bool) -> Stacks:
    def rows() -> Iterator[Row]:
        return (dict(zip(table.columns, row, strict=True)) for row in table.rows)

    how = BY[by]
    numbers = not compared and len({row.get("run") for row in rows()}) <= 1
    names = readable({frame for row in rows() for frame in how.frames(row, numbers)})
    found = Stacks([], known=dict.fromkeys(WEIGHTS, 0))
    merged: dict[tuple[str, ...], Stack] = {}
    for row in rows():
        frames = tuple([names[frame] for frame in how.frames(row, numbers)])
        found.syncs += row["syncs"]
        for name, weight in WEIGHTS.items():
            found.known[name] += row[weight.known]
        if how.needs and row[how.needs] in (None, ""):
            found.unrecorded += row["syncs"]
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
def _no_collection() -> Iterator[None]:
    """Without Python's search for cycles: of a million rows there are none, and it takes longer than all else."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _stack(frames: tuple[str, ...], row: Row) -> Stack:
    # Events out of order (`late_event`) may make a length negative, and a width cannot be.
    sums = {name: max(0, row[one.column]) for name, one in WEIGHTS.items() if row[one.known]}
    return Stack(frames, sums, row["some_tid"] or 0, row["first_ts_ns"])
