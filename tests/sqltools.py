"""Hand-made runs for the SQL tests: one set of rows, written as a trace and as Parquet.

The rows have the columns of docs/reference/tables.md. They are given, not computed by pairing. The trace has
the layout of docs/reference/trace-layout.md and is written by PyPI's `perfetto`, independently of the core.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_BOOTTIME,
    TracePacket,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from tests import once
from tests.reference import phases
from tools.columns import TYPES, load

Row = dict[str, Any]

SQL = Path(__file__).parents[1] / "sql"
NAMESPACE = "dev.syncline"

# Column types of the Parquet files, in order. `id` is unsigned in them; SQL shows it signed.
FILES: dict[str, dict[str, str]] = {
    table: {column.name: TYPES[column.type][1] for column in declared}
    for table, declared in load()[0].items()
}


@dataclass
class Run:
    """The rows of every table of a run. A column that a row lacks is null."""

    sync: list[Row] = field(default_factory=list)
    bio: list[Row] = field(default_factory=list)
    call: list[Row] = field(default_factory=list)
    wait: list[Row] = field(default_factory=list)
    journal: list[Row] = field(default_factory=list)
    write_wait: list[Row] = field(default_factory=list)
    file_op: list[Row] = field(default_factory=list)
    loss: list[Row] = field(default_factory=list)
    mark: list[Row] = field(default_factory=list)
    # Columns of phases, by sync and start.
    cpu_users: dict[tuple[int, int | None], Row] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=lambda: {"schema_version": "1"})

    def rows(self, table: str) -> list[Row]:
        if table == "meta":
            return [{"key": key, "value": value} for key, value in self.meta.items()]
        if table == "phase":
            return [
                {"sync_id": sync_id, "number": number, "phase": name, "ts_ns": ts, "dur_ns": length}
                | self.cpu_users.get((sync_id, ts), {})
                for sync_id, found in self.phases().items()
                for number, (name, ts, length, _) in enumerate(found, 1)
            ]
        if table == "bio":
            # Nothing else is said of most: they are bios that write.
            return [{"direction": "write", "is_request": False} | row for row in self.bio]
        return getattr(self, table)

    def phases(self) -> dict[int, list[phases.Phase]]:
        """The phases that follow from the bios and waits of each complete request."""
        tables = {
            table: [{name: row.get(name) for name in FILES[table]} for row in self.rows(table)]
            for table in ("sync", "bio", "wait")
        }
        return phases.of_tables(tables, [])

    def add(self, ts: int, length: int | None, *, call: bool = True, **columns: Any) -> Row:
        """Adds a request of `length` ns and its call: entry at ts, both end at ts + length.

        All other columns have a default, which `columns` overrides. With a call, the request
        starts 10 ns after its entry.
        """
        number = len(self.sync) + 1
        start = ts + 10 if call else ts
        row: Row = {
            "sync_id": number,
            "call_sync_id": number,
            "id": 1000 + number,
            "ts_ns": ts,
            "start_ns": start,
            "dur_ns": length,
            "tid": 1,
            "comm": "app",
            "op": "fsync" if call else None,
            "datasync": False,
            "path": "/f",
            "fs": "ext4",
            "ret": 0,
            "syscall_ns": length if call else None,
            "writeback_ns": 0,
            "bytes": 0,
            "folios": 0,
            "bios": 0,
            "ranges": 0,
            "confidence": "exact",
        }
        row |= columns
        if row.get("incomplete") in ("start", "end"):
            row |= {"dur_ns": None, "syscall_ns": None, "writeback_ns": None}
            row["start_ns" if row["incomplete"] == "start" else "ret"] = None
        if row.get("incomplete") == "call":
            row |= {"dur_ns": None, "syscall_ns": None}
        self.sync.append(row)
        if call:
            self.call.append(
                {key: row.get(key) for key in ("ts_ns", "tid", "pid", "comm", "op", "stack")}
                | {"call_id": len(self.call) + 1, "sync_id": number, "unmatched": False}
                | {"dur_ns": row["syscall_ns"], "ret": row["ret"]}
            )
        return row


def write_parquet(run: Run, folder: Path, tables: Iterable[str] = tuple(FILES)) -> Path:
    """Writes the run like `-o DIR/`."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        write_file(run.rows(table), FILES[table], folder / f"syncline_{table}.parquet")
    return folder


def write_file(rows: list[Row], types: dict[str, str], path: Path) -> Path:
    """Writes rows as Parquet, CSV or JSON lines, by the file name's ending."""
    formats = {".parquet": "PARQUET", ".csv": "CSV, HEADER", ".jsonl": "JSON"}
    with once.database() as db:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        db.execute(f"CREATE TEMP TABLE t ({columns})")
        if rows:
            marks = ", ".join("?" * len(types))
            db.executemany(
                f"INSERT INTO t VALUES ({marks})",
                [[row.get(name) for name in types] for row in rows],
            )
        db.execute(f"COPY t TO '{path}' (FORMAT {formats[path.suffix]})")
    return path


@dataclass
class _Slice:
    start: int
    end: int
    name: str
    category: str
    args: Row
    correlation: int | None = None


def write_trace(run: Run, path: Path) -> Path:
    """Writes the run as a trace."""
    writer = _TraceWriter()
    tracks: dict[Any, list[_Slice]] = {}
    calls = {call["sync_id"]: call for call in run.call if call["sync_id"] is not None}
    last = max((row["ts_ns"] + (row["dur_ns"] or 0) for row in run.sync), default=0)

    for call in run.call:
        end = call["ts_ns"] + (call["dur_ns"] or 0)
        args = {key: value for key, value in call.items() if key not in _NOT_ARGS["call"]}
        if call["dur_ns"] is None:
            args["open"] = 1
        tracks.setdefault(_thread(call), []).append(
            _Slice(call["ts_ns"], end, call["op"], "syncline.call", args, call["sync_id"])
        )
    for row in run.sync:
        args = {key: value for key, value in row.items() if key not in _NOT_ARGS["sync"]}
        call = calls.get(row["sync_id"])
        if call:
            args["call_ts_ns"] = call["ts_ns"]
        start = row["ts_ns"] if row["start_ns"] is None else row["start_ns"]
        end = start if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]
        tracks.setdefault(_thread(row), []).append(
            _Slice(start, end, "ext4_sync_file", "syncline.sync", args, row["sync_id"])
        )
    threads = {row["sync_id"]: _thread(row) for row in run.sync}
    for wait in run.wait:
        span = (wait["ts_ns"], wait["ts_ns"] + wait["dur_ns"])
        args = {key: value for key, value in wait.items() if key != "wait"}
        tracks[threads[wait["sync_id"]]].append(_Slice(*span, wait["wait"], "syncline.wait", args))
    for sync_id, found in run.phases().items():
        waits = [wait for wait in run.wait if wait["sync_id"] == sync_id]
        for name, ts, length, _ in found:
            # A wait is the phase itself where nothing else is inside of it.
            around = [w for w in waits if w["wait"] == name and w["ts_ns"] <= (ts or 0)]
            if name != "residue" and not any(ts < w["ts_ns"] + w["dur_ns"] for w in around):
                phase = _Slice(
                    ts, ts + length, name, "syncline.phase", run.cpu_users.get((sync_id, ts), {})
                )
                tracks[threads[sync_id]].append(phase)
    for commit in run.journal:
        args = {key: value for key, value in commit.items() if key not in _NOT_ARGS["journal"]}
        end = commit["ts_ns"] + (commit["dur_ns"] or 0)
        tracks[("commit", commit["commit_id"])] = [
            _Slice(commit["ts_ns"], end, "commit", "syncline.commit", args)
        ]
    for wait in run.write_wait:
        args = {key: value for key, value in wait.items() if key not in ("ts_ns", "dur_ns")}
        tracks[("write_wait", wait["wait_id"])] = [
            _Slice(wait["ts_ns"], wait["ts_ns"] + wait["dur_ns"], "w", "syncline.write_wait", args)
        ]
    for op in run.file_op:
        args = {key: value for key, value in op.items() if key not in ("ts_ns", "dur_ns")}
        if op["dur_ns"] is None:
            args["open"] = 1
        # A track of its own, so that operations at the same time need no order.
        tracks[("file_op", op["op_id"])] = [
            _Slice(
                op["ts_ns"],
                op["ts_ns"] + (op["dur_ns"] or 0),
                op["op"],
                "syncline.file_op",
                args,
            )
        ]
    for bio in run.bio:
        args = {key: value for key, value in bio.items() if key not in _NOT_ARGS["bio"]}
        whole = bio.get("incomplete") is None
        end = bio["ts_ns"] + (bio["dur_ns"] if whole else 0)
        # One lane per bio. No table depends on the lanes that the core would choose.
        tracks[("bio", bio["bio_id"])] = [
            _Slice(bio["ts_ns"], end, "bio", "syncline.bio", args, bio["sync_id"])
        ]
    for mark in run.mark:
        tracks[("mark", mark["mark_id"])] = [
            _Slice(
                mark["ts_ns"],
                mark["ts_ns"] + mark["dur_ns"],
                mark["name"],
                "syncline.mark",
                {"mark_id": mark["mark_id"]},
            )
        ]
    for key, slices in tracks.items():
        writer.track(key, slices)
    writer.run_facts(run, last)
    path.write_bytes(writer.builder.serialize())
    return path


_NOT_ARGS = {
    "sync": {"ts_ns", "dur_ns", "start_ns"},
    "call": {"ts_ns", "dur_ns", "op", "unmatched"},
    "bio": {"ts_ns", "dur_ns", "direction", "is_request"},
    "journal": {"ts_ns", "dur_ns"},
}


def _thread(row: Row) -> Any:
    tid, pid = row.get("tid"), row.get("pid")
    # Without a thread, requests of a process may overlap, so each has its own lane.
    lane = (row["ts_ns"], row.get("sync_id")) if tid is None else None
    return ("thread", pid, tid, row["comm"], lane)


class _TraceWriter:
    """Writes packets of one sequence. Names are not interned, which no table shows."""

    def __init__(self) -> None:
        self.builder = TraceProtoBuilder()
        self._uuid = 1
        self._processes: dict[int, int] = {}
        packet = self._packet(0)
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.clock_snapshot.primary_trace_clock = BUILTIN_CLOCK_BOOTTIME
        clock = packet.clock_snapshot.clocks.add()
        clock.clock_id = BUILTIN_CLOCK_BOOTTIME
        clock.timestamp = 0

    def _packet(self, ts: int) -> TracePacket:
        packet = self.builder.add_packet()
        packet.timestamp = ts
        packet.trusted_packet_sequence_id = 1
        return packet

    def _descriptor(self) -> Any:
        packet = self._packet(0)
        self._uuid += 1
        packet.track_descriptor.uuid = self._uuid
        return packet.track_descriptor

    def track(self, key: Any, slices: list[_Slice]) -> None:
        descriptor = self._descriptor()
        uuid = descriptor.uuid
        if key[0] != "thread":
            descriptor.name = str(key[0])
        else:
            _, pid, tid, comm, _ = key
            number = tid if pid is None else pid
            if number not in self._processes:
                parent = self._descriptor()
                parent.process.pid = number
                # No table uses this name.
                parent.process.process_name = comm
                self._processes[number] = parent.uuid
            if tid is None:
                descriptor.name = comm
                descriptor.parent_uuid = self._processes[number]
            else:
                descriptor.thread.pid = number
                descriptor.thread.tid = tid
                descriptor.thread.thread_name = comm
        open_: list[_Slice] = []
        for item in sorted(slices, key=lambda s: (s.start, -s.end)):
            while open_ and open_[-1].end <= item.start:
                self._event(uuid, open_.pop().end, TrackEvent.TYPE_SLICE_END)
            self._event(uuid, item.start, TrackEvent.TYPE_SLICE_BEGIN, item)
            open_.append(item)
        while open_:
            self._event(uuid, open_.pop().end, TrackEvent.TYPE_SLICE_END)

    def _event(self, uuid: int, ts: int, kind: int, item: _Slice | None = None) -> None:
        event = self._packet(ts).track_event
        event.type = kind
        event.track_uuid = uuid
        if item is None:
            return
        event.name = item.name
        event.categories.append(item.category)
        if item.correlation is not None:
            event.correlation_id = item.correlation
        for name, value in item.args.items():
            if value is None:
                continue
            annotation = event.debug_annotations.add()
            annotation.name = name
            if name == "bio":
                annotation.pointer_value = int(value, 16)
            elif isinstance(value, bool):
                annotation.bool_value = value
            elif isinstance(value, int) and value < 0:
                annotation.int_value = value
            elif isinstance(value, int):
                annotation.uint_value = value
            else:
                annotation.string_value = value

    def run_facts(self, run: Run, ts: int) -> None:
        descriptor = self._descriptor()
        descriptor.name = "Run"
        facts = [("syncline", dict(run.meta))] + [("loss_summary", loss) for loss in run.loss]
        for name, args in facts:
            item = _Slice(ts, ts, name, "syncline.meta", args)
            self._event(descriptor.uuid, ts, TrackEvent.TYPE_INSTANT, item)


def same(left: Any, right: Any) -> bool:
    """Returns whether rows are equal. Floats may differ in the last digits, because percentiles interpolate."""
    if isinstance(left, float) or isinstance(right, float):
        if left is None or right is None:
            return left is right
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@dataclass(frozen=True)
class PublicTable:
    """A documented table of a PerfettoSQL module."""

    module: str
    name: str
    comment: str
    columns: list[tuple[str, str, str]]  # name, type, comment
    select: str


_TABLE = re.compile(
    r"(?P<comment>(?:^--[^\n]*\n)*)^CREATE OR REPLACE PERFETTO (?:TABLE|VIEW) (?P<name>\w+)\s*"
    r"(?:\((?P<columns>.*?)^\)\s*)?AS\n(?P<select>.*?);\n",
    re.M | re.S,
)


def perfetto_tables() -> Iterator[PublicTable]:
    """Yields every table that sql/tables/perfetto/ creates, with its comments."""
    for file in sorted((SQL / "tables" / "perfetto").glob("*.sql")):
        for match in _TABLE.finditer(file.read_text()):
            columns = []
            comment: list[str] = []
            for line in (match["columns"] or "").splitlines():
                text = line.strip()
                if text.startswith("--"):
                    comment.append(text.removeprefix("--").strip())
                elif text:
                    name, kind = text.rstrip(",").split(None, 1)
                    columns.append((name, kind, " ".join(comment)))
                    comment = []
            yield PublicTable(
                f"{NAMESPACE}.{file.stem}",
                match["name"],
                match["comment"].replace("--", "").strip(),
                columns,
                match["select"],
            )
