"""What the block layer does besides plain writes and reads: discards, zeroes, appends to zones; and which bios are of one request.

The expected values follow from the printed events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.report.run import run_report

from tests.coretools import tables
from tests.reference import blktrace
from tests.reference.blktrace import COMPLETE, DISCARD, ISSUE, QUEUE, SYNC, WRITE, Record, World

Rows = dict[str, list[dict[str, Any]]]
# Time in us, task, name and data of an event.
Event = tuple[float, str, str, str]
SOURCES = ("ftrace", "perf", "low-level log", "trace")
ENTER = "ext4_sync_file_enter", "dev 8,0 ino 13 parent 2 datasync 0"
EXIT = "ext4_sync_file_exit", "dev 8,0 ino 13 ret 0"
QUEUED, ISSUED, COMPLETED = "block_bio_queue", "block_rq_issue", "block_rq_complete"


def text(events: list[Event], source: str) -> str:
    lines = []
    for us, task, name, data in events:
        seconds = f"{20 + us / 1e6:.6f}"
        if source == "perf":
            comm, tid = task.rsplit("-", 1)
            group = name.split("_", 1)[0]
            lines.append(f"{comm:>16} {tid:>5} [000] {seconds}: {group:>11}:{name}: {data}\n")
        else:
            lines.append(f"{task:>23} [000] ..... {seconds}: {name}: {data}\n")
    return ("" if source == "perf" else "# tracer: nop\n#\n") + "".join(lines)


def rows_of(folder: Path, events: list[Event], source: str = "ftrace") -> Rows:
    """The tables of events that are read from a source."""
    log = folder / "log.txt"
    log.write_text(text(events, source))
    if source == "low-level log":
        _core.convert([str(log)], f"{folder}/log.events.jsonl")
        log = folder / "log.events.jsonl"
    if source == "trace":
        _core.convert([str(log)], f"{folder}/log.pftrace")
        convert_trace(f"{folder}/log.pftrace", f"{folder}/out/")
    else:
        _core.convert([str(log)], f"{folder}/out/")
    rows = tables(folder / "out")
    # A row comes when all of it is known.
    return {**rows, "bio": sorted(rows["bio"], key=lambda row: row["bio_id"])}


def report(folder: Path, name: str) -> list[dict[str, Any]]:
    with opened(f"{folder}/out", Reading()) as engine:
        table = run_report(engine, name)
        return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def discard_ahead(rwbs: str) -> list[Event]:
    """A discard of 4 GiB holds the disk for 899.99 ms, and the write of a sync waits for it."""
    return [
        (0, "fstrim-900", QUEUED, f"8,0 {rwbs} 100000 + 8388608 [fstrim]"),
        (10, "fstrim-900", ISSUED, f"8,0 {rwbs} 4294967296 () 100000 + 8388608 [fstrim]"),
        (100, "wl-559", *ENTER),
        (200, "wl-559", QUEUED, "8,0 WS 1000 + 8 [wl]"),
        (210, "wl-559", ISSUED, "8,0 WS 4096 () 1000 + 8 [wl]"),
        (900_000, "swapper/0-0", COMPLETED, f"8,0 {rwbs} () 100000 + 8388608 [0]"),
        (901_000, "swapper/0-0", COMPLETED, "8,0 WS () 1000 + 8 [0]"),
        (901_100, "wl-559", *EXIT),
    ]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("rwbs", "direction"),
    [("DS", "discard"), ("DES", "discard"), ("WZS", "zeroes"), ("NS", "unknown")],
)
def test_what_moves_no_data_holds_the_device(
    rwbs: str, direction: str, source: str, tmp_path: Path
) -> None:
    rows = rows_of(tmp_path, discard_ahead(rwbs), source)
    held, write = rows["bio"]
    columns = ("direction", "rwbs", "bytes", "queue_ns", "device_ns", "sync_id", "origin")
    assert tuple(held[key] for key in columns) == (
        *(direction, rwbs, 4 << 30, 10_000, 899_990_000, None, None),
    )
    assert tuple(write[key] for key in columns) == (
        *("write", "WS", 4096, 10_000, 900_790_000, 1, "sync"),
    )
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["bios"]) == (4096, 1)
    assert [row for row in rows["loss"] if row["severity"] == "loss"] == []
    (other,) = (row for row in report(tmp_path, "bystanders") if row["kind"] != "itself")
    # From the submit of the write to the end of the discard.
    assert (other["kind"], other["comm"], other["ahead_ns"]) == (direction, "fstrim", 899_800_000)
    device = {(row["part"], row["comm"]): row for row in report(tmp_path, "device")}
    whole, part = device["all", None], device["other", None]
    assert (whole["bytes"], whole["requests"], whole["busy_ns"]) == (4096, 2, 900_990_000)
    assert (part["bytes"], part["requests"], part["busy_ns"]) == (None, 1, 899_990_000)


def test_a_discard_of_blktrace_is_a_row(tmp_path: Path) -> None:
    discard = WRITE | SYNC | DISCARD
    records = [
        Record(at, 0, number, action, n, 100_000, 1 << 20, 7, 8 << 20, 0)
        for n, (at, number, action) in enumerate(
            [(100, 1, QUEUE | discard), (110, 7, ISSUE | discard), (900, 8, COMPLETE | discard)], 1
        )
    ]
    paths = blktrace.write(tmp_path, World([records]).files())
    _core.convert(paths, f"{tmp_path}/out/")
    (bio,) = tables(tmp_path / "out")["bio"]
    assert (bio["direction"], bio["rwbs"], bio["bytes"]) == ("discard", "DS", 1 << 20)
    assert (bio["queue_ns"], bio["dur_ns"]) == (10, 800)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("at", [524_288, 524_800])
def test_an_append_to_a_zone_is_written_data(at: int, source: str, tmp_path: Path) -> None:
    """The device chooses the place in the zone, and the completion names it."""
    events: list[Event] = [
        (0, "wl-559", *ENTER),
        (100, "wl-559", QUEUED, "8,0 ZAS 524288 + 64 [wl]"),
        (110, "wl-559", ISSUED, "8,0 ZAS 32768 () 524288 + 64 [wl]"),
        (1000, "swapper/0-0", COMPLETED, f"8,0 ZAS () {at} + 64 [0]"),
        (2100, "wl-559", *EXIT),
    ]
    rows = rows_of(tmp_path, events, source)
    (bio,) = rows["bio"]
    assert (bio["direction"], bio["rwbs"], bio["bytes"]) == ("write", "ZAS", 32768)
    assert (bio["dur_ns"], bio["sync_id"]) == (900_000, 1)
    assert (rows["sync"][0]["bytes"], rows["sync"][0]["bios"]) == (32768, 1)
    assert [row for row in rows["loss"] if row["severity"] == "loss"] == []


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("rwbs", "has_bytes"), [("WZS", True), ("DS", True), ("NS", False)])
def test_what_a_sync_writes_without_data_is_none_of_its_bytes(
    rwbs: str, has_bytes: bool, source: str, tmp_path: Path
) -> None:
    """An operation without a name may be an append to a zone, so the bytes of its sync are not known."""
    events: list[Event] = [
        (100, "wl-559", *ENTER),
        (110, "wl-559", QUEUED, f"8,0 {rwbs} 1008 + 1024 [wl]"),
        (120, "wl-559", ISSUED, f"8,0 {rwbs} 524288 () 1008 + 1024 [wl]"),
        (1000, "swapper/0-0", COMPLETED, f"8,0 {rwbs} () 1008 + 1024 [0]"),
        (1110, "wl-559", QUEUED, "8,0 WS 9008 + 8 [wl]"),
        (1120, "wl-559", ISSUED, "8,0 WS 4096 () 9008 + 8 [wl]"),
        (2000, "swapper/0-0", COMPLETED, "8,0 WS () 9008 + 8 [0]"),
        (2100, "wl-559", *EXIT),
    ]
    rows = rows_of(tmp_path, events, source)
    (sync,) = rows["sync"]
    known = (4096, 1, 890_000, None) if has_bytes else (None, None, None, "bio")
    assert tuple(sync[key] for key in ("bytes", "bios", "writeback_ns", "incomplete")) == known
    assert [bio["sync_id"] for bio in rows["bio"]] == [None, 1]


def test_requests_of_one_microsecond_are_two(tmp_path: Path) -> None:
    """Two CPUs issue one write each, then one CPU issues two reads. The places are not adjacent."""
    events: list[Event] = []
    for at, rwbs in ((0, "WS"), (1000, "R")):
        for sector in (1000, 9000):
            events.append((at, "fio-559", QUEUED, f"8,0 {rwbs} {sector} + 8 [fio]"))
        for sector in (1000, 9000):
            events.append((at + 1, "fio-559", ISSUED, f"8,0 {rwbs} 4096 () {sector} + 8 [fio]"))
        for end, sector in ((101, 1000), (201, 9000)):
            events.append((at + end, "swapper/0-0", COMPLETED, f"8,0 {rwbs} () {sector} + 8 [0]"))
    rows_of(tmp_path, events)
    device = {(row["part"], row["comm"]): row for row in report(tmp_path, "device")}
    # Both are there for 100 us, and one for 100 us more.
    for part, times in ((("all", None), 2), (("sync", None), 1), (("read", None), 1)):
        row = device[part]
        assert (row["requests"], row["max_depth"]) == (2 * times, 2)
        assert (row["busy_ns"], row["depth"]) == (200_000 * times, 1.5)


def test_adjacent_requests_of_one_microsecond_are_two(tmp_path: Path) -> None:
    """The second request has two merged bios. Both are issued at once, and end apart."""
    events: list[Event] = [
        *(
            (at, "fio-559", QUEUED, f"8,0 WS {sector} + {count} [fio]")
            for at, (sector, count) in enumerate(((1000, 8), (1008, 4), (1012, 4)))
        ),
        (10, "fio-559", ISSUED, "8,0 WS 4096 () 1000 + 8 [fio]"),
        (10, "fio-559", ISSUED, "8,0 WS 4096 () 1008 + 8 [fio]"),
        (110, "swapper/0-0", COMPLETED, "8,0 WS () 1000 + 8 [0]"),
        (210, "swapper/0-0", COMPLETED, "8,0 WS () 1008 + 8 [0]"),
    ]
    rows_of(tmp_path, events)
    whole = next(row for row in report(tmp_path, "device") if row["part"] == "all")
    # 100 us with both, and 100 us with the second one.
    assert (whole["bios"], whole["requests"], whole["max_depth"]) == (3, 2, 2)
    assert (whole["busy_ns"], whole["depth"]) == (200_000, 1.5)


def test_merged_bios_and_others_of_the_same_moment(tmp_path: Path) -> None:
    """Two bios are merged, by different threads; two more requests are issued in the same microsecond, one of them a read."""
    events: list[Event] = [
        *((0, f"{comm}", QUEUED, f"8,0 {rwbs} {sector} + 8 [x]") for comm, rwbs, sector in (
            ("one-1", "WS", 1000), ("two-2", "WS", 1008), ("one-1", "WS", 5000), ("one-1", "R", 1016),
        )),
        (1, "one-1", ISSUED, "8,0 WS 8192 () 1000 + 16 [x]"),
        (1, "one-1", ISSUED, "8,0 WS 4096 () 5000 + 8 [x]"),
        (1, "one-1", ISSUED, "8,0 R 4096 () 1016 + 8 [x]"),
        (11, "swapper/0-0", COMPLETED, "8,0 WS () 1000 + 16 [0]"),
        (11, "swapper/0-0", COMPLETED, "8,0 WS () 5000 + 8 [0]"),
        (11, "swapper/0-0", COMPLETED, "8,0 R () 1016 + 8 [0]"),
    ]  # fmt: skip
    rows_of(tmp_path, events)
    device = {(row["part"], row["comm"]): row for row in report(tmp_path, "device")}
    requests = {key: row["requests"] for key, row in device.items()}
    assert requests == {
        ("all", None): 3,
        ("sync", None): 2,
        ("read", None): 1,
        ("thread", "one"): 3,
        ("thread", "two"): 1,
    }
    assert device["all", None]["max_depth"] == 3


def test_a_flush_before_a_write_keeps_the_device_busy(tmp_path: Path) -> None:
    """The device flushes for 5 ms, then it writes for 1 ms."""
    events: list[Event] = [
        (0, "wl-559", QUEUED, "8,0 FWS 1000 + 8 [wl]"),
        (10, "kworker/0:1H-90", ISSUED, "8,0 FF 0 () 0 + 0 [kworker/0:1H]"),
        (5000, "swapper/0-0", COMPLETED, "8,0 FF () 0 + 0 [0]"),
        (5010, "kworker/0:1H-90", ISSUED, "8,0 WS 4096 () 1000 + 8 [kworker/0:1H]"),
        (6010, "swapper/0-0", COMPLETED, "8,0 WS () 1000 + 8 [0]"),
    ]
    (bio,) = rows_of(tmp_path, events)["bio"]
    assert (bio["queue_ns"], bio["device_ns"]) == (5_010_000, 1_000_000)
    whole = next(row for row in report(tmp_path, "device") if row["part"] == "all")
    assert (whole["busy_ns"], whole["flush_ns"], whole["queue_ns"]) == (6_010_000, 5_010_000, None)
    # The flush is no request of the bio.
    assert (whole["requests"], whole["depth"], whole["max_depth"]) == (1, 1, 1)
