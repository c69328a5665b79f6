"""perf.data: recordings against the text of `perf script`, generated files against their events, and bad files."""

from __future__ import annotations

import gzip
import json
import random
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import ROOT, convert, core
from tests.reference import perfdata, tracedat
from tests.reference.perfdata import PerfShape
from tests.reference.tracedat import Gap, World
from tests.test_commands import fails

DATA = ROOT / "tests" / "data" / "perf"
LOSSES = ("lost_by_tracer", "unparsed_line", "cut_off", "late_event")

Rows = list[dict[str, Any]]


def world(seed: int, requests: int = 40) -> World:
    return tracedat.world(random.Random(seed), requests=requests)


def comparable(rows: Rows) -> Rows:
    """The rows without what only one of the formats has, and with perf's name for the idle tasks."""
    left_out = ("pid", "example", "source")
    return [
        {
            key: "swapper" if (key, value) == ("comm", tracedat.IDLE) else value
            for key, value in row.items()
            if key not in left_out
        }
        for row in rows
    ]


def losses(result: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"] if row["reason"] in LOSSES}


def shown(folder: Path, data: bytes) -> list[str]:
    (folder / "in.data").write_bytes(data)
    return _core.convert([str(folder / "in.data")], f"{folder}/shown/")["unparsed"]


@pytest.mark.parametrize("name", ["stacks", "pipe"])
def test_a_recording_gives_the_rows_of_its_text(name: str, tmp_path: Path) -> None:
    data, text = (
        gzip.decompress((DATA / f"{name}.{kind}.gz").read_bytes()) for kind in ("data", "txt")
    )
    found, expected = core(tmp_path, data), core(tmp_path, text)
    for table in ("sync", "bio", "call", "wait", "journal", "loss"):
        rows = [[row | {"example": None} for row in of[table]] for of in (found, expected)]
        assert rows[0] == rows[1], table
    assert len(found["sync"]) == 40
    # The thread of the journal made ten commits, one after another.
    assert len({row["transaction_id"] for row in found["journal"]}) == 10
    assert {row["comm"] for row in found["journal"]} == {"jbd2/loop0-8"}
    assert (
        {row["dev"] for row in found["sync"]} == {"7,0"} == {row["dev"] for row in found["journal"]}
    )
    assert {row["pid"] for row in found["sync"]} != {None}
    if name == "stacks":
        assert {row["stack"].split(";")[-1] for row in found["sync"]} == {"[libc.so.6]"}
    meta = [{row["key"]: row["value"] for row in of["meta"]} for of in (found, expected)]
    for key in ("clock", "kernel", "host"):
        assert meta[0][key] == meta[1][key]
    # The text has µs of the time of day.
    if offset := meta[1].get("realtime_offset_ns"):
        assert abs(int(meta[0]["realtime_offset_ns"]) - int(offset)) < 1000
    logs = [
        [
            [row.get(key) for key in ("ts_ns", "tid", "pid", "comm", "event", "dev", "ret")]
            for row in map(
                json.loads, convert(tmp_path, log, "x.events.jsonl").read_text().splitlines()
            )
        ]
        for log in (data, text)
    ]
    assert logs[0] == logs[1]
    assert len(logs[0]) > 200


SHAPES = {
    "file": PerfShape(),
    "pipe": PerfShape(pipe=True, mixed_fields=True),
    "big endian": PerfShape(big_endian=True, mixed_fields=True, shuffled=True, clockid=1),
    "big endian pipe": PerfShape(big_endian=True, pipe=True, long=4),
    "ids later in a sample": PerfShape(ids="id", mixed_fields=True, attr_bytes=72),
    "groups of counters": PerfShape(group_read=True, shuffled=True, stale=True),
    "packed": PerfShape(packing=perfdata.COMPRESSED, rounds=7),
    "packed and padded": PerfShape(packing=perfdata.COMPRESSED2, rounds=5, pipe=True),
    "one round": PerfShape(rounds=1),
    "many rounds": PerfShape(rounds=60, mixed_fields=True),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_gives_the_rows_of_a_trace_dat_with_the_same_events(
    name: str, tmp_path: Path
) -> None:
    made = world(len(name))
    shape = replace(SHAPES[name], seed=len(name))
    found = core(tmp_path, perfdata.file(made, shape))
    expected = core(tmp_path, tracedat.file(made, tracedat.Shape(long=shape.long)))
    for table in ("sync", "bio", "call", "wait", "loss"):
        assert comparable(found[table]) == comparable(expected[table]), table
    assert len(found["sync"]) == 40
    # perf records the process of each thread.
    assert all(row["pid"] == perfdata.pid_of(row["tid"]) for row in found["sync"])
    meta = {row["key"]: row["value"] for row in found["meta"]}
    assert meta["source"] == "perf-data"
    assert meta["clock"] == ("local" if shape.clockid is None else "monotonic")
    assert (meta["kernel"], meta["recorder"]) == ("Linux 6.12.0-made", "perf 0.0.made")
    assert meta["host"] == "guest"
    if shape.clockid is not None:
        assert int(meta["realtime_offset_ns"]) == 1_700_000_000 * 10**9 + 7 - 5 * 10**9


@pytest.mark.parametrize("name", ["file", "big endian", "packed"])
def test_the_low_level_log_has_every_event_in_the_order_of_time(name: str, tmp_path: Path) -> None:
    made = world(5)
    logs, shape = [], SHAPES[name]
    other = tracedat.Shape(big_endian=shape.big_endian)
    for data in (perfdata.file(made, shape), tracedat.file(made, other)):
        text = convert(tmp_path, data, "out.events.jsonl").read_text()
        logs.append(comparable([json.loads(line) for line in text.splitlines()]))
    assert logs[0] == logs[1]
    assert len(logs[0]) == len(made.events)


def test_lost_events_are_counted_once(tmp_path: Path) -> None:
    made = world(2)
    first = made.events[0].cpu
    gaps = [Gap(first, 0, 9), Gap(made.events[30].cpu, 30, 4), Gap(made.events[60].cpu, 60, None)]
    with_gaps = replace(made, gaps=gaps)
    result = core(tmp_path, perfdata.file(with_gaps, PerfShape()))
    assert losses(result) == {"lost_by_tracer": 9 + 4 + 1}
    # perf's own counts at the end contain the same losses, and two that no record reported. A filter loses nothing.
    counted = struct.pack("<Q", 15)
    tail = ((perfdata.LOST_SAMPLES, 0, counted), (perfdata.LOST_SAMPLES, 1 << 15, counted))
    result = core(tmp_path, perfdata.file(with_gaps, PerfShape(tail=tail)))
    assert losses(result) == {"lost_by_tracer": 15 + 1}
    tail = ((perfdata.LOST_SAMPLES, 0, struct.pack("<Q", 13)),)
    result = core(tmp_path, perfdata.file(with_gaps, PerfShape(tail=tail)))
    assert losses(result) == {"lost_by_tracer": 13 + 1}


def test_stacks_of_calls_have_the_files_of_their_process(tmp_path: Path) -> None:
    made = world(3)
    call = next(event for event in made.events if "sys_enter_f" in event.name)
    pid, ts = perfdata.pid_of(call.tid), made.events[0].ts
    kernel = 0xFFFF_FFFF_8100_0000
    chain = [perfdata.KERNEL, kernel + 5, perfdata.USER, 0x1010, 0x5001, 0x9001]
    names = sorted({event.name for event in made.events if "sys_enter_f" in event.name})
    head = (
        (perfdata.MMAP, 0, perfdata.mapped("<", pid, 0x1000, 0x1000, "/lib/libc.so.6")),
        (perfdata.MMAP2, 0, perfdata.mapped("<", pid, 0x4000, 0x2000, "/opt/a b", is_second=True)),
        # Not code.
        (perfdata.MMAP, 1 << 13, perfdata.mapped("<", pid, 0x9000, 0x1000, "/data")),
        (perfdata.MMAP, 1, perfdata.mapped("<", 2**32 - 1, kernel, 4096, "[kernel.kallsyms]_text")),
    )
    shape = PerfShape(head=head, chains=dict.fromkeys(names, chain))
    rows = core(tmp_path, perfdata.file(made, shape))["sync"]
    stacks = {
        row["stack"] for row in rows if row["pid"] == pid and row["op"] in ("fsync", "fdatasync")
    }
    assert stacks == {"[unknown];[a b];[libc.so.6]"}
    log = convert(tmp_path, perfdata.file(made, shape), "out.events.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert {
        tuple(line["stack"]) for line in lines if line["pid"] == pid and line["event"] in ("sys_enter_fsync", "sys_enter_fdatasync")
    } == {("1010 [unknown] (/lib/libc.so.6)", "5001 [unknown] (/opt/a b)", "9001 [unknown] ([unknown])")}  # fmt: skip
    # The process runs another program from its first event on.
    comm = struct.pack("<II", pid, pid) + b"new\0"
    timed = ((ts - 1, perfdata.COMM, 1 << 13, comm),)
    rows = core(tmp_path, perfdata.file(made, replace(shape, timed=timed)))["sync"]
    stacks = {
        row["stack"] for row in rows if row["pid"] == pid and row["op"] in ("fsync", "fdatasync")
    }
    assert stacks == {"[unknown];[unknown];[unknown]"}


def test_a_thread_has_the_name_of_its_parent_until_it_gets_its_own(tmp_path: Path) -> None:
    made = world(4)
    starts = [event for event in made.events if event.name == "wb_tracer:sync_start"]
    tid = starts[0].tid
    of_thread = [event.ts for event in starts if event.tid == tid]
    pid, middle = perfdata.pid_of(tid), of_thread[len(of_thread) // 2] - 1
    before = starts[0].ts - 2 * 10**9
    timed = (
        (before, perfdata.COMM, 0, struct.pack("<II", 9000, 9001) + b"parent\0"),
        (before + 1, perfdata.FORK, 0, struct.pack("<IIIIQ", pid, 9000, tid, 9001, before + 1)),
        (middle, perfdata.COMM, 0, struct.pack("<II", pid, tid) + b"renamed\0"),
    )
    rows = core(tmp_path, perfdata.file(made, PerfShape(timed=timed, rounds=9)))["sync"]
    found = [(row["start_ns"] > middle, row["comm"]) for row in rows if row["tid"] == tid]
    assert set(found) == {(False, "parent"), (True, "renamed")}


GOOD = perfdata.file(world(1), PerfShape())
PIPE = perfdata.file(world(1), PerfShape(pipe=True))


def put(data: bytes, at: int, fmt: str, value: int) -> bytes:
    packed = struct.pack(fmt, value)
    return data[:at] + packed + data[at + len(packed) :]


def data_section(data: bytes) -> tuple[int, int]:
    return struct.unpack_from("<QQ", data, 40)


def without_features(data: bytes) -> bytes:
    """What perf leaves if it is killed: the size of the data is 0, and no feature follows them."""
    at, size = data_section(data)
    return put(data, 48, "<Q", 0)[: at + size]


REFUSED = {
    "killed": (without_features(GOOD), "killed", "kill -INT"),
    "cut off": (GOOD[: len(GOOD) // 2], "cut off", "copy it again"),
    "cut off in a feature": (GOOD[:-9], "it ends", "copy it again"),
    "only a header": (GOOD[:60], "it ends", "copy it again"),
    "cut off in the events' descriptions": (PIPE[:2000], "it ends", "copy it again"),
    "no formats": (perfdata.file(world(1), PerfShape(tracing_data=False)), "formats", "kill -INT"),
    "sampled": (perfdata.file(world(1), PerfShape(is_sampled=True)), "a sample of", "-F and -c"),
    "several files": (put(GOOD, 75, "B", 1), "--threads", "perf script"),
    "first version": (b"PERFFILE" + GOOD[8:], "2010", "newer perf"),
    "a record of size 0": (put(GOOD, data_section(GOOD)[0] + 6, "<H", 0), "has 0 bytes", "copy it"),
    "packed bytes that are damaged": (
        perfdata.file(world(1), PerfShape(packing=perfdata.COMPRESSED)).replace(
            b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"
        ),
        "unpacked",
        "copy it again",
    ),
    "no ids": (perfdata.file(world(1), PerfShape(ids="none", mixed_fields=True)), "do not name", "copy"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_used_is_refused(name: str, tmp_path: Path) -> None:
    data, said, hint = REFUSED[name]
    (tmp_path / "perf.data").write_bytes(data)
    message = fails(3, "convert", tmp_path / "perf.data", "-o", tmp_path / "x.pftrace")
    assert said in message
    assert hint in message
    assert [path.name for path in tmp_path.iterdir()] == ["perf.data"]


def test_a_pipe_that_was_cut_off_is_read_up_to_its_end(tmp_path: Path) -> None:
    whole = core(tmp_path, PIPE)
    part = core(tmp_path, PIPE[:-2000])
    assert losses(whole) == {}
    assert losses(part) == {"cut_off": 1}
    by_id = {row["id"]: row for row in whole["sync"]}
    kept = [row for row in part["sync"] if row["incomplete"] is None]
    assert 0 < len(kept) < len(by_id)
    # They are numbered as they end, which the missing ones do not.
    numbers = ("sync_id", "call_sync_id")
    for row in kept:
        expected = by_id[row["id"]]
        assert all(row[key] == expected[key] for key in expected if key not in numbers)


def test_a_sample_that_cannot_be_read_is_shown(tmp_path: Path) -> None:
    at, size = data_section(GOOD)
    first = GOOD.index(struct.pack("<IH", perfdata.SAMPLE, 1), at)
    assert at < first < at + size
    (message,) = shown(tmp_path, put(GOOD, first + 8, "<Q", 77))
    assert "no event with its id" in message
    # The size of its raw data: after ids, address, thread, time, CPU and period.
    (message,) = shown(tmp_path, put(GOOD, first + 8 + 48, "<I", 2**31))
    assert "shorter than the file says" in message
    (message,) = shown(tmp_path, put(GOOD, first + 8 + 52, "<H", 9999))
    assert "of another event" in message


def test_a_hostile_file_takes_no_time_or_memory(tmp_path: Path) -> None:
    """A process with many mappings has many children, and each changes its own."""
    made = world(1, requests=2)
    mappings = [
        (perfdata.MMAP, 0, perfdata.mapped("<", 7, 4096 * n, 4096, f"/m{n}")) for n in range(3000)
    ]
    forks = []
    for child in range(1000, 4000):
        forks.append((perfdata.FORK, 0, struct.pack("<IIIIQ", child, 7, child, 7, 0)))
        forks.append((perfdata.MMAP, 0, perfdata.mapped("<", child, 0, 4096, "/x")))
    chains = {"syscalls:sys_enter_fsync": [0x5001]}
    shape = PerfShape(head=(*mappings, *forks), chains=chains)
    assert len(core(tmp_path, perfdata.file(made, shape))["sync"]) == 2
