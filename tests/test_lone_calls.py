"""Inputs that hold sync calls and nothing of what file systems do in them: the calls are requests, as in a log of strace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests import coretools
from tests.reference import perfdata, tracedat
from tests.reference.perfdata import PerfShape
from tests.reference.tracedat import Event, Shape, World

# Two calls of thread 4234: 30 ms, and 20 ms from 100 ms after the begin of the first.
TIMES = (112.123420, 112.153420, 112.223420, 112.243420)


def ring_buffer(*events: str, tid: int = 4234) -> str:
    """A text of the ring buffer with an event at each of the times."""
    head = f"        filebeat-{tid}  [023] .... "
    return "".join(f"{head}{ts:.6f}: {event}\n" for ts, event in zip(TIMES, events, strict=False))


def perf(*events: str) -> str:
    lines = zip(TIMES, events, strict=True)
    return "".join(f"filebeat  4234 [003]   {ts:.6f}: {event}\n" for ts, event in lines)


def btetto(*events: str) -> str:
    common = "('track_event', ('name', 'fsync'), ('type', '{}'), ('ts', {}), ('pid', 4234), ('tid', 4234), ('thread_name', 'filebeat'){})"
    lines = []
    for ts, phase in zip(TIMES, events, strict=True):
        tuple_ = common.format(phase, round(ts * 10**9), ", ('ret', 0)" if phase == "END" else "")
        value = tuple_.replace("(", "[").replace(")", "]").replace("'", '"')
        lines.append('{"type": "value", "data": ' + value + "}\n")
    return "".join(lines)


TEXTS = {
    "ftrace": ring_buffer(*["sys_fsync(fd: 3)", "sys_fsync -> 0x0"] * 2),
    "trace-cmd": ring_buffer(*["sys_enter_fsync:       fd: 0x00000003", "sys_exit_fsync:        0x0"] * 2),
    "perf": perf(*["syscalls:sys_enter_fsync: fd: 0x00000003", " syscalls:sys_exit_fsync: 0x0"] * 2),
    "bpftrace": "".join(
        f"{round(ts * 10**9)} 4234 filebeat {event}\n"
        for ts, event in zip(TIMES, ("fsync", "fsync_exit ret 0") * 2, strict=True)
    ),
    "btetto": btetto("BEGIN", "END", "BEGIN", "END"),
    "strace": "4234 112.123420 fsync(3</f>) = 0 <0.030000>\n4234 112.223420 fsync(3</f>) = 0 <0.020000>\n",
}  # fmt: skip


def tables(folder: Path, *inputs: str | bytes) -> dict[str, coretools.Rows]:
    files = []
    for number, data in enumerate(inputs):
        files.append(folder / f"in{number}")
        files[-1].write_bytes(data.encode() if isinstance(data, str) else data)
    _core.convert([str(file) for file in files], f"{folder}/out/")
    return coretools.tables(folder / "out")


def losses(result: dict[str, coretools.Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


@pytest.mark.parametrize("name", TEXTS)
def test_calls_alone_are_requests(name: str, tmp_path: Path) -> None:
    result = tables(tmp_path, TEXTS[name])
    first, second = result["sync"]
    assert (second["ts_ns"] - first["ts_ns"]) == 100_000_000
    assert [(row["dur_ns"], row["syscall_ns"]) for row in result["sync"]] == [
        (30_000_000, 30_000_000),
        (20_000_000, 20_000_000),
    ]
    for row in result["sync"]:
        assert (row["op"], row["tid"], row["ret"], row["incomplete"]) == ("fsync", 4234, 0, None)
        assert (row["bytes"], row["bios"], row["fs"], row["confidence"]) == (None, None, None, "unknown")  # fmt: skip
    assert [(row["sync_id"], row["unmatched"]) for row in result["call"]] == [
        (1, False),
        (2, False),
    ]
    assert losses(result) == {"call_only": 2}


ENTER, EXIT = "sys_fsync(fd: 3)", "sys_fsync -> 0x0"
LAST = "        wl-7  [023] .... 113.000000: {}\n"


@pytest.mark.parametrize(
    "event",
    [
        "ext4_sync_file_enter: dev 254,16 ino 13 parent 2 datasync 0 ",
        "ext4_sync_file_exit: dev 254,16 ino 13 ret 0",
        "xfs_file_fsync: dev 254:16 ino 0x13",
        "sync_start: id=1 start=0 end=1 datasync=0 dev=254,16 ino=13 path=/a",
        "bio_submit: id=0 bio=0xff dev=254,16 sector=8 bytes=4096 opf=0x1",
        "fsync_enter: (ext4_sync_file+0x4/0x90) dev=266338320 ino=7 gen=1 datasync=0",
    ],
)
def test_a_request_of_another_thread_leaves_the_calls_unmatched(event: str, tmp_path: Path) -> None:
    """They are of a file system that the recorder does not follow, even if the first event of a request comes after them."""
    calls = ring_buffer(ENTER, EXIT, ENTER, EXIT)
    for inputs in ((calls + LAST.format(event),), (LAST.format(event), calls)):
        result = tables(tmp_path, *inputs)
        assert losses(result)["unmatched_call"] == 2
        assert "call_only" not in losses(result)
        assert not [row for row in result["sync"] if row["tid"] == 4234]
        assert [row["unmatched"] for row in result["call"]] == [True, True]


def test_events_that_say_nothing_of_requests_do_not_count(tmp_path: Path) -> None:
    others = (
        "block_bio_queue: 254,16 WS 8 + 8 [wl]",
        "jbd2_start_commit: dev 254,16 transaction 5 sync 0",
        "sched_waking: comm=wl pid=7 prio=120 target_cpu=000",
    )
    text = ring_buffer(ENTER, EXIT) + "".join(map(LAST.format, others))
    assert len(tables(tmp_path, text)["sync"]) == 1


@pytest.mark.parametrize("kind", ["trace.dat", "perf.data"])
def test_a_header_says_that_requests_are_recorded(kind: str, tmp_path: Path) -> None:
    """It has the formats of the events that were recorded."""
    ms = 1_000_000

    def call(name: str, ts: int, **fields: Any) -> Event:
        return Event(40 * 10**9 + ts, 0, 7, f"syscalls:{name}", {"__syscall_nr": 74} | fields)

    events = [call("sys_enter_fsync", 0, fd=3), call("sys_exit_fsync", 30 * ms, ret=0)]
    world = World(events, {7: "wl"}, [], 1)
    starts = tuple(name for name in tracedat.EVENTS if name.startswith(("wb_tracer", "ext4")))
    starts += tuple(name for name in tracedat.EVENTS if name.endswith("fsync_enter"))
    for undescribed, found in (((), []), (starts, [30 * ms])):
        if kind == "trace.dat":
            data = tracedat.file(world, Shape(undescribed=undescribed))
        else:
            data = perfdata.file(world, PerfShape(undescribed=undescribed))
        result = tables(tmp_path, data)
        assert [row["dur_ns"] for row in result["sync"]] == found
        reason = "call_only" if found else "unmatched_call"
        assert losses(result) == {reason: 1}


def test_our_own_scripts_record_requests(tmp_path: Path) -> None:
    log = f"# syncline-log 1\n# script stock.bt\n{TEXTS['bpftrace']}# end {round(TIMES[-1] * 10**9) + 5}\n"
    assert losses(tables(tmp_path, log)) == {"unmatched_call": 2}


def test_calls_without_a_return(tmp_path: Path) -> None:
    # No return at all is recorded: the log cannot hold any.
    result = tables(tmp_path, ring_buffer(ENTER, ENTER, ENTER))
    assert [(row["dur_ns"], row["incomplete"]) for row in result["sync"]] == [(None, "end")] * 3
    assert losses(result) == {"call_only": 3, "ends_not_recorded": 3}
    # One is missing.
    result = tables(tmp_path, ring_buffer(ENTER, EXIT, ENTER))
    assert [row["incomplete"] for row in result["sync"]] == [None, "end"]
    assert losses(result) == {"call_only": 2, "end_missing": 1}


def test_too_many_calls_do_not_wait_for_the_end(tmp_path: Path) -> None:
    """After 65,536 calls without a request, the next calls are requests too, until one shows that requests are recorded."""
    count = 65_600
    lines = [f"{1000 + n} 5 wl fsync\n{1000 + n} 5 wl fsync_exit ret 0\n" for n in range(count)]
    start = f"{9000 + count} 6 wl start id 3 start 0 end 1 datasync 0 path /f\n"
    after = f"{9100 + count} 5 wl fsync\n{9200 + count} 5 wl fsync_exit ret 0\n"
    result = tables(tmp_path, "".join([*lines, start, after]))
    assert losses(result) == {"call_only": count, "unmatched_call": 1, "end_missing": 1}
    # One less than that: all of them wait, and are unmatched.
    result = tables(tmp_path, "".join([*lines[:65_536], start, after]))
    assert losses(result) == {"unmatched_call": 65_537, "end_missing": 1}


def test_calls_alone_are_numbered_as_they_return(tmp_path: Path) -> None:
    text = ring_buffer(ENTER, "", EXIT).replace(": \n", ": x: a=1\n")
    other = "        filebeat-9  [023] .... "
    text += f"{other}112.133420: {ENTER}\n{other}112.143420: {EXIT}\n"
    result = tables(tmp_path, text)
    assert [(row["tid"], row["dur_ns"]) for row in result["sync"]] == [
        (9, 10_000_000),
        (4234, 100_000_000),
    ]
    assert [row["sync_id"] for row in result["sync"]] == [1, 2]
