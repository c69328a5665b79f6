"""Bios by the events of the block layer: FUA, split bios, issues, errors, and logs without submits.

The expected values are computed here from the lines that blkparse printed of real recordings.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import ROOT, convert, tables
from tests.reference import blktrace
from tests.reference.blktrace import COMPLETE, FUA, ISSUE, QUEUE, SYNC, WRITE, Record, World

BLKTRACE = ROOT / "tests" / "data" / "blktrace"
RECORDINGS = ["rename", "small1", "small4", "uring"]
LINE = re.compile(
    r" *(?P<dev>\d+,\d+) +\d+ +\d+ +(?P<s>\d+)\.(?P<ns>\d{9}) +\d+ +(?P<action>[A-Z]+) +(?P<rwbs>[A-Z]+)"
    r"(?: (?P<sector>\d+)(?: \+ (?P<sectors>\d+))?)?.*"
)


@dataclass
class Printed:
    """An event of a write, as blkparse printed it."""

    ts: int
    action: str
    rwbs: str
    sector: int
    sectors: int


def printed(text: str) -> list[Printed]:
    """The events of writes in blkparse's text."""
    events = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match and "W" in match["rwbs"] and match["sector"]:
            ts = int(match["s"]) * 10**9 + int(match["ns"])
            sectors = int(match["sectors"] or 0)
            events.append(
                Printed(ts, match["action"], match["rwbs"], int(match["sector"]), sectors)
            )
    return events


def blkparse_text(name: str) -> str:
    return gzip.decompress((BLKTRACE / f"{name}.blkparse.txt.gz").read_bytes()).decode()


def expected(events: list[Printed]) -> list[tuple[int, int, int, int]]:
    """Sector, submit, issue and end of each bio. No two writes of these recordings to one sector are in flight at once."""
    bios = []
    for at, bio in enumerate(events):
        if bio.action != "Q":
            continue
        after = events[at + 1 :]
        has_fua = "F" in bio.rwbs.split("W")[1]
        covering = [e for e in after if e.sector <= bio.sector < e.sector + e.sectors]
        issue = next(e for e in covering if e.action == "D")
        data = next(e for e in covering if e.action == "C")
        assert "F" not in data.rwbs
        flushed = [
            e for e in after if e.action == "C" and e.sectors == 0 and e.sector == bio.sector
        ]
        end = next(e for e in flushed if e.ts >= data.ts) if has_fua else data
        bios.append((bio.sector, bio.ts, issue.ts, end.ts))
    return bios


def found(bios: list[dict[str, Any]]) -> list[tuple[int, int, int, int]]:
    return [
        (b["sector"], b["ts_ns"], b["ts_ns"] + b["queue_ns"], b["ts_ns"] + b["dur_ns"])
        for b in sorted(bios, key=lambda b: b["bio_id"])
    ]


@pytest.mark.parametrize("name", RECORDINGS)
def test_bios_end_with_their_flush_on_a_device_without_fua(name: str, tmp_path: Path) -> None:
    text = blkparse_text(name)
    events = printed(text)
    truth = expected(events)
    rows = [
        row
        for row in tables(convert(tmp_path, text.encode()))["bio"]
        if row["direction"] == "write"
    ]
    assert found(rows) == truth
    # A third of the bios or so, and the flush takes longer than the data.
    fua = [b for b in events if b.action == "Q" and "F" in b.rwbs.split("W")[1]]
    assert len(fua) >= 40
    ends = {(sector, submit): end for sector, submit, _, end in truth}
    data = [
        next(e for e in events if e.action == "C" and e.sector == b.sector and e.ts > b.ts)
        for b in fua
    ]
    late = sum(ends[b.sector, b.ts] - c.ts for b, c in zip(fua, data, strict=True))
    assert late / len(fua) > 100_000
    for row in rows:
        assert row["queue_ns"] + row["device_ns"] == row["dur_ns"]
        assert row["error"] == 0
        assert row["incomplete"] is None


def test_a_command_without_sectors_is_no_write_in_the_low_level_log_either(tmp_path: Path) -> None:
    """The kernel prints the bytes of a command that is no read and no write, such as one of SCSI, and no sectors."""
    (tmp_path / "x.txt").write_text(
        "# tracer: nop\n"
        "    db-7   [000] .....  1.000100: block_bio_queue: 254,16 WS 800 + 8 [db]\n"
        "    db-7   [000] .....  1.000200: block_rq_issue: 254,16 WS 4096 (2a 00) 800 + 0 [db]\n"
        "    db-7   [000] .....  1.000300: block_rq_issue: 254,16 WS 4096 () 800 + 8 [db]\n"
        "    db-7   [000] .....  1.000700: block_rq_complete: 254,16 WS () 800 + 8 [0]\n"
    )
    log = tmp_path / "x.events.jsonl"
    _core.convert([str(tmp_path / "x.txt")], str(log))
    for source, folder in ((tmp_path / "x.txt", "direct"), (log, "again")):
        _core.convert([str(source)], f"{tmp_path}/{folder}/")
        (bio,) = tables(tmp_path / folder)["bio"]
        assert (bio["queue_ns"], bio["requeues"]) == (200_000, None)


@pytest.mark.parametrize("name", RECORDINGS)
def test_files_text_and_low_level_log_give_the_same_bios(name: str, tmp_path: Path) -> None:
    text = tables(convert(tmp_path, blkparse_text(name).encode(), to="text/"))
    _core.convert([str(BLKTRACE / f"{name}.blktrace.0")], f"{tmp_path}/files/")
    _core.convert([str(BLKTRACE / f"{name}.blktrace.0")], f"{tmp_path}/log.events.jsonl")
    _core.convert([f"{tmp_path}/log.events.jsonl"], f"{tmp_path}/again/")
    files, again = (tables(tmp_path / folder) for folder in ("files", "again"))
    assert files["bio"] == again["bio"]
    first = files["bio"][0]["ts_ns"] - text["bio"][0]["ts_ns"]
    # An interrupted task has no name in the text if blktrace wrote none.
    shifted = [row | {"ts_ns": row["ts_ns"] - first, "comm": None} for row in files["bio"]]
    assert [row | {"comm": None} for row in text["bio"]] == shifted


def write_world(folder: Path, records: list[Record]) -> list[str]:
    records = [replace(record, sequence=at) for at, record in enumerate(records, 1)]
    return blktrace.write(folder, World([records]).files())


def record(
    time: int, action: str, category: int, sector: int, sectors: int, **fields: Any
) -> Record:
    number = blktrace.NUMBERS[action]
    return Record(time, 0, number, category, sector=sector, bytes=512 * sectors, pid=7, **fields)


def test_a_device_with_fua_completes_once(tmp_path: Path) -> None:
    """The flag stays in the completion, also after a flush before the write, whose completion repeats."""
    fua, write = WRITE | SYNC | FUA, WRITE | SYNC
    rows = convert_world(tmp_path, [
        record(100, "Q", QUEUE | fua, 8, 8),
        record(110, "D", ISSUE | fua, 8, 8),
        record(150, "C", COMPLETE | fua, 8, 8),
        record(200, "Q", QUEUE | fua | blktrace.FLUSH, 16, 8),
        record(210, "D", ISSUE | fua, 16, 8),
        record(250, "C", COMPLETE | fua, 16, 8),
        record(251, "C", COMPLETE | fua, 16, 0),
        # The same sector again, without FUA.
        record(300, "Q", QUEUE | write, 8, 8),
        record(310, "D", ISSUE | write, 8, 8),
        record(350, "C", COMPLETE | write, 8, 8),
    ])  # fmt: skip
    assert [(row["sector"], row["dur_ns"]) for row in rows["bio"]] == [(8, 50), (16, 50), (8, 50)]
    assert not rows["loss"]


def convert_world(folder: Path, records: list[Record]) -> dict[str, list[dict[str, Any]]]:
    _core.convert(write_world(folder, records), f"{folder}/out/")
    return tables(folder / "out")


def test_a_flush_that_is_not_in_the_log_leaves_the_end_unknown(tmp_path: Path) -> None:
    rows = convert_world(tmp_path, [
        record(100, "Q", QUEUE | WRITE | FUA, 8, 8),
        record(110, "D", ISSUE | WRITE, 8, 8),
        record(150, "C", COMPLETE | WRITE, 8, 8),
        record(160, "Q", QUEUE | WRITE, 64, 8),
        record(170, "C", COMPLETE | WRITE, 64, 8),
    ])  # fmt: skip
    bios = {row["sector"]: row for row in rows["bio"]}
    assert bios[8]["incomplete"] == "end"
    assert (bios[8]["dur_ns"], bios[8]["queue_ns"], bios[8]["device_ns"]) == (None, 10, None)
    # No issue was recorded for the other bio.
    assert (bios[64]["dur_ns"], bios[64]["queue_ns"], bios[64]["device_ns"]) == (10, None, None)
    assert [row["reason"] for row in rows["loss"]] == ["never_completed"]


def test_merged_split_and_requeued_bios_have_their_issue(tmp_path: Path) -> None:
    rows = convert_world(tmp_path, [
        record(100, "Q", QUEUE | WRITE, 0, 8),
        record(101, "Q", QUEUE | WRITE, 8, 8),
        # The driver does not take the merged request at once.
        record(110, "D", ISSUE | WRITE, 0, 16),
        record(111, "R", blktrace.REQUEUE | WRITE, 0, 16),
        record(120, "D", ISSUE | WRITE, 0, 16),
        record(130, "Q", QUEUE | WRITE, 64, 16),
        record(131, "X", QUEUE | WRITE, 64, 8, data=struct.pack(">Q", 72)),
        record(140, "D", ISSUE | WRITE, 64, 8),
        record(141, "D", ISSUE | WRITE, 72, 8),
        record(150, "C", COMPLETE | WRITE, 0, 16),
        record(160, "C", COMPLETE | WRITE, 72, 8, error=2**16 - 28),
        record(170, "C", COMPLETE | WRITE, 64, 8),
    ])  # fmt: skip
    columns = ("sector", "queue_ns", "device_ns", "dur_ns", "error")
    assert [tuple(row[column] for column in columns) for row in rows["bio"]] == [
        (0, 20, 30, 50, 0),
        (8, 19, 30, 49, 0),
        (64, 10, 30, 40, -28),
    ]


# Split bios in the text of blkparse.


class Tracker:
    """What blkparse 1.3.0 does to completions: `log_track_split` and `fixup_complete` of blkparse.c.

    Every part of a split bio refers to the first part. A completion at the sector of a part is printed
    from the first sector of the bio. With `-t`, the bio is forgotten at its first completion.
    """

    def __init__(self, *, times: bool) -> None:
        self.times = times
        self.first_of: dict[int, int] = {}

    def split(self, sector: int, sectors: int) -> None:
        first = self.first_of.setdefault(sector, sector)
        self.first_of.setdefault(sector + sectors, first)

    def complete(self, sector: int, sectors: int) -> tuple[int, int]:
        first = self.first_of.get(sector, sector)
        if self.times:
            self.first_of = {s: f for s, f in self.first_of.items() if f != first}
        return first, sectors + sector - first


def blkparse(records: list[Record], *, times: bool) -> str:
    tracker, lines = Tracker(times=times), []
    for number, one in enumerate(records, 1):
        ts, action, sectors = (
            one.time - records[0].time,
            blktrace.ACTIONS[one.number],
            one.bytes // 512,
        )
        head = f"254,16   0 {number:8} {ts // 10**9:5}.{ts % 10**9:09} {one.pid:5}  {action} {blktrace.rwbs(one):>3} "
        if action == "X":
            tracker.split(one.sector, sectors)
            lines.append(f"{head}{one.sector} / {one.sector + sectors} [wl]")
        elif action == "C":
            sector, length = tracker.complete(one.sector, sectors)
            elapsed = f"({1234:8}) " if times else ""
            lines.append(f"{head}{sector} + {length} {elapsed}[{one.error}]")
        else:
            lines.append(f"{head}{one.sector} + {sectors} [wl]")
    return "\n".join(lines) + "\n"


def split_bio(
    time: int, sector: int, sizes: list[int], order: list[int], *, issues: bool
) -> list[Record]:
    """A bio that is split into parts of these sizes, which complete in this order."""
    write = WRITE | SYNC
    records = [record(time, "Q", QUEUE | write, sector, sum(sizes))]
    parts, at = [], sector
    for size in sizes:
        if at + size < sector + sum(sizes):
            records.append(record(time + 1, "X", QUEUE | write, at, size))
        if issues:
            records.append(record(time + 2, "D", ISSUE | write, at, size))
        parts.append((at, size))
        at += size
    done = [
        record(time + 10 + n, "C", COMPLETE | write, *parts[part]) for n, part in enumerate(order)
    ]
    return records + done


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("issues", [True, False])
def test_parts_of_split_bios_are_those_of_the_files(
    tmp_path: Path, times: bool, issues: bool
) -> None:
    """The printed completions are cumulative; the files of the same run are not."""
    records = [
        *split_bio(1000, 851968, [2560, 2560, 2560, 2560], [0, 1, 2, 3], issues=issues),
        *split_bio(2000, 100_000, [2560, 2560, 1880], [2, 0, 1], issues=issues),
        # blkparse remembers the parts: a bio at one of them, and one over two of them, that are not split.
        *split_bio(3000, 854_528, [2560], [0], issues=issues),
        *split_bio(4000, 851_968, [2560], [0], issues=issues),
    ]
    if issues:
        records += split_bio(5000, 851_968, [5120], [0], issues=issues)
    text = blkparse(records, times=times)
    if not times:
        cumulative = [line.split()[7:10] for line in text.splitlines() if "  C  " in line][:4]
        assert cumulative == [["851968", "+", str(2560 * n)] for n in range(1, 5)]
    from_text = tables(convert(tmp_path, text.encode(), to="text/"))
    from_files = convert_world(tmp_path, records)
    ends = [
        [
            (row["ts_ns"] - rows["bio"][0]["ts_ns"], row["sector"], row["bytes"], row["dur_ns"])
            for row in rows["bio"]
        ]
        for rows in (from_text, from_files)
    ]
    assert ends[0] == ends[1]
    assert not from_text["loss"]
    assert not from_files["loss"]
    bio = from_files["bio"][0]
    assert (bio["bytes"], bio["dur_ns"]) == (10240 * 512, 13)


# Logs without submits.


def without(data: bytes, actions: str) -> bytes:
    """The records of a file except those of these actions: what `blktrace -a` leaves out."""
    kept = [
        r
        for r in blktrace.records(data)
        if r.category & blktrace.NOTIFY or blktrace.ACTIONS[r.number] not in actions
    ]
    return b"".join(one.packed() for one in kept)


@pytest.mark.parametrize("kept", ["DC", "C"])
def test_completions_without_a_submit_are_not_nothing(tmp_path: Path, kept: str) -> None:
    text = "".join(
        line + "\n"
        for line in blkparse_text("small1").splitlines()
        if LINE.fullmatch(line) and line.split()[5] in kept
    )
    events = printed(text)
    requests = [e for e in events if e.action == "C" and e.sectors]
    rows = tables(convert(tmp_path, text.encode()))
    writes = [row for row in rows["bio"] if row["direction"] == "write"]
    assert len(writes) == len(requests) == 150
    # Each request of a flush is one too, where it is issued.
    flushes = [line.split() for line in text.splitlines() if line.split()[5:7] == ["D", "FN"]]
    issues = [int(words[3].replace(".", "")) for words in flushes]
    assert [row["ts_ns"] for row in rows["bio"] if row["direction"] == "flush"] == issues
    assert len(issues) == (100 if "D" in kept else 0)
    truth = []
    for end in requests:
        issued = [e for e in events if e.action == "D" and e.ts < end.ts and e.sector == end.sector]
        begin = issued[-1].ts if issued else end.ts
        truth.append((begin, end.sector, end.sectors * 512, end.ts - begin if issued else None))
    columns = ("ts_ns", "sector", "bytes", "device_ns")
    assert sorted(tuple(row[c] for c in columns) for row in writes) == sorted(truth)
    for row in writes:
        unknown = ("sync_id", "origin", "queue_ns", "confidence")
        assert [row[column] for column in unknown] == [None] * 4
        # It begins with its issue. Who made a request that was not issued in the log is not known.
        assert row["dur_ns"] == row["device_ns"]
        is_issued = row["device_ns"] is not None
        assert (row["tid"] is None, row["incomplete"]) == (
            (False, None) if is_issued else (True, "start")
        )
        assert (row["is_request"], row["error"]) == (True, 0)
    assert [(row["reason"], row["count"], row["severity"]) for row in rows["loss"]] == [
        ("submits_missing", len(rows["bio"]), "info")
    ]
    # It is how the log was recorded, and no loss.
    convert(tmp_path, text.encode(), to="none/", max_loss="0")


def test_completions_before_the_first_submit_are_not_rows(tmp_path: Path) -> None:
    """A log that records submits may begin with completions of bios that were in flight: that is no loss."""
    lines = [line for line in blkparse_text("small1").splitlines() if LINE.fullmatch(line)]
    at = next(n for n, line in enumerate(lines) if line.split()[5] == "C")
    rows = tables(convert(tmp_path, "\n".join([*lines[at:], ""]).encode()))
    queued = sum(line.split()[5] == "Q" for line in lines[at:])
    assert len(rows["bio"]) == queued > 100
    # No event of a sync is in it, so nothing says whose they are.
    assert {row["origin"] for row in rows["bio"]} == {None}
    assert [(row["reason"], row["severity"]) for row in rows["loss"]] == [
        ("other_completion", "info")
    ]


def test_requests_without_a_submit_are_rows_next_to_those_with_one(tmp_path: Path) -> None:
    """Every log begins while something is in flight, and an excerpt lacks any event."""
    text = """\
  8,80   1        1     1.000000000  3328  D  WS 1000 + 16 [fio]
  8,80   1        2     1.010000000     0  C  WS 1000 + 16 [0]
  8,80   1        3     1.020000000  3328  D  WS 2000 + 16 [fio]
  8,80   1        4     1.030000000     0  C  WS 2000 + 16 [0]
  8,80   1        5     1.040000000  3328  Q  WS 3000 + 16 [fio]
  8,80   1        6     1.040010000  3328  D  WS 3000 + 16 [fio]
  8,80   1        7     1.050000000     0  C  WS 3000 + 16 [0]
"""
    rows = tables(convert(tmp_path, text.encode()))
    columns = ("sector", "is_request", "queue_ns", "device_ns", "bytes", "comm")
    found = sorted(tuple(row[c] for c in columns) for row in rows["bio"])
    assert found == [
        (1000, True, None, 10_000_000, 8192, "fio"),
        (2000, True, None, 10_000_000, 8192, "fio"),
        (3000, False, 10_000, 9_990_000, 8192, "fio"),
    ]
    # The first one had been queued before the log. The second one may have been, or its submit was lost.
    losses = {row["reason"]: row["count"] for row in rows["loss"]}
    assert losses == {"other_completion": 1, "unmatched_complete": 1}


def test_a_part_of_a_request_without_a_submit_is_a_row(tmp_path: Path) -> None:
    """The request has 16 sectors, and only 8 of them were queued in the log."""
    rows = tables(
        convert(
            tmp_path,
            b"""\
  8,0    1        1     1.000000000     9  Q WSM 8 + 8 [jbd2]
  8,0    1        2     1.000010000     9  D WSM 8 + 16 [jbd2]
  8,0    1        3     1.000900000     0  C WSM 8 + 16 [0]
""",
        )
    )
    found = [(row["sector"], row["bytes"], row["is_request"], row["dur_ns"]) for row in rows["bio"]]
    assert sorted(found) == [(8, 4096, False, 900_000), (16, 4096, True, 890_000)]
    assert [(row["reason"], row["severity"]) for row in rows["loss"]] == [
        ("other_completion", "info")
    ]


# Requests, as most recipes for perf record them.

REQUESTS = """\
        writer   910 [001]   100.000000: ext4:ext4_sync_file_enter: dev 259,0 ino 12 parent 2 datasync 1
        writer   910 [001]   100.000100: block:block_rq_insert: 259,0 WS 4096 () 1000 + 8 [writer]
        writer   910 [001]   100.000110:  block:block_rq_issue: 259,0 WS 8192 () 1000 + 16 [writer]
       swapper     0 [001]   100.010110: block:block_rq_complete: 259,0 WS () 1000 + 16 [0]
        writer   910 [001]   100.011000: ext4:ext4_sync_file_exit: dev 259,0 ino 12 ret 0
   kworker/1:1   333 [001]   100.020100: block:block_rq_insert: 259,0 W 65536 () 9000 + 128 [kworker/1:1]
   kworker/1:1   333 [001]   100.020110:  block:block_rq_issue: 259,0 W 65536 () 9000 + 128 [kworker/1:1]
       swapper     0 [001]   100.050110: block:block_rq_complete: 259,0 W () 9000 + 128 [0]
"""


def test_requests_are_rows_with_their_thread_and_their_queue(tmp_path: Path) -> None:
    rows = tables(convert(tmp_path, REQUESTS.encode()))
    columns = ("sector", "ts_ns", "queue_ns", "device_ns", "bytes", "tid", "sync_id", "confidence")
    assert [tuple(row[c] for c in columns) for row in rows["bio"]] == [
        (1000, 100_000_100_000, 10_000, 10_000_000, 4096, 910, 1, "inferred"),
        # What was merged into it after it had entered the queue.
        (1008, 100_000_110_000, None, 10_000_000, 4096, 910, 1, "inferred"),
        (9000, 100_020_100_000, 10_000, 30_000_000, 65536, 333, None, None),
    ]
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["confidence"]) == (8192, "inferred")
    assert [(row["reason"], row["severity"]) for row in rows["loss"]] == [
        ("submits_missing", "info")
    ]


def test_a_request_that_is_only_issued_is_of_no_sync(tmp_path: Path) -> None:
    """Any thread may hand the request of another one to the driver."""
    text = "".join(line for line in REQUESTS.splitlines(True) if "rq_insert" not in line)
    rows = tables(convert(tmp_path, text.encode()))
    columns = ("sector", "ts_ns", "dur_ns", "queue_ns", "device_ns", "bytes", "tid", "sync_id")
    assert [tuple(row[c] for c in columns) for row in rows["bio"]] == [
        (1000, 100_000_110_000, 10_000_000, None, 10_000_000, 8192, 910, None),
        (9000, 100_020_110_000, 30_000_000, None, 30_000_000, 65536, 333, None),
    ]
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["bios"]) == (None, None)


def test_a_request_that_is_only_issued_has_no_end(tmp_path: Path) -> None:
    text = "".join(line for line in REQUESTS.splitlines(True) if "rq_issue" in line)
    rows = tables(convert(tmp_path, text.encode()))
    found = [(row["sector"], row["dur_ns"], row["incomplete"]) for row in rows["bio"]]
    assert found == [(1000, None, "end"), (9000, None, "end")]
    assert [(row["reason"], row["count"]) for row in rows["loss"]] == [("never_completed", 2)]


def test_the_begin_and_the_end_of_requests_of_new_kernels(tmp_path: Path) -> None:
    """`block_io_done` has no length, because nothing of the request is left."""
    text = """\
# tracer: nop
#
 writer-910 [001] ..... 100.000000: ext4_sync_file_enter: dev 259,0 ino 12 parent 2 datasync 1
 writer-910 [001] ..... 100.000100: block_io_start: 259,0 WS 4096 () 1000 + 8 be,0,4 [writer]
 <idle>-0   [001] d.h.. 100.010120: block_io_done: 259,0 WS 0 () 1000 + 0 be,0,4 [swapper/1]
 writer-910 [001] ..... 100.010200: ext4_sync_file_exit: dev 259,0 ino 12 ret 0
"""
    (bio,) = tables(convert(tmp_path, text.encode()))["bio"]
    columns = ("ts_ns", "dur_ns", "queue_ns", "device_ns", "bytes", "sync_id", "is_request")
    # Nothing says how large the request has become after its begin.
    assert tuple(bio[c] for c in columns) == (
        100_000_100_000, 10_020_000, None, None, None, 1, True,
    )  # fmt: skip
    # With the other events of the request, they say nothing new.
    both = text.replace(
        " <idle>-0   [001] d.h.. 100.010120",
        " writer-910 [001] ..... 100.000110: block_rq_issue: 259,0 WS 4096 () 1000 + 8 be,0,4 [writer]\n"
        " <idle>-0   [001] d.h.. 100.010110: block_rq_complete: 259,0 WS () 1000 + 8 be,0,4 [0]\n"
        " <idle>-0   [001] d.h.. 100.010120",
    )
    (bio,) = tables(convert(tmp_path, both.encode()))["bio"]
    assert tuple(bio[c] for c in columns) == (
        100_000_100_000, 10_010_000, 10_000, 10_000_000, 4096, 1, True,
    )  # fmt: skip


# Reads and flushes.


def test_reads_are_rows_and_of_no_sync(tmp_path: Path) -> None:
    rows = tables(
        convert(
            tmp_path,
            b"""\
# tracer: nop
#
 backup-700 [000] ..... 100.000000: block_bio_queue: 8,0 R 50000 + 2048 [backup]
 backup-700 [000] ..... 100.000010: block_rq_issue: 8,0 R 1048576 () 50000 + 2048 [backup]
 writer-910 [001] ..... 100.000100: ext4_sync_file_enter: dev 8,0 ino 12 parent 2 datasync 1
 writer-910 [001] ..... 100.000120: block_bio_queue: 8,0 RM 7000 + 8 [writer]
 writer-910 [001] ..... 100.000130: block_rq_issue: 8,0 RM 4096 () 7000 + 8 [writer]
 writer-910 [001] ..... 100.000150: block_bio_queue: 8,0 WS 50008 + 8 [writer]
 writer-910 [001] ..... 100.000210: block_rq_issue: 8,0 WS 4096 () 50008 + 8 [writer]
 <idle>-0   [001] d.h.. 100.000300: block_rq_complete: 8,0 RM () 7000 + 8 [0]
 <idle>-0   [001] d.h.. 100.900000: block_rq_complete: 8,0 R () 50000 + 2048 [0]
 <idle>-0   [001] d.h.. 100.901000: block_rq_complete: 8,0 WS () 50008 + 8 [0]
 writer-910 [001] ..... 100.901100: ext4_sync_file_exit: dev 8,0 ino 12 ret 0
""",
        )
    )
    columns = ("sector", "direction", "sync_id", "origin", "dur_ns", "device_ns", "rwbs")
    # A write to a sector that is being read is not complete with the read.
    assert sorted(tuple(row[c] for c in columns) for row in rows["bio"]) == [
        (7000, "read", None, None, 180_000, 170_000, "RM"),
        (50000, "read", None, None, 900_000_000, 899_990_000, "R"),
        (50008, "write", 1, "sync", 900_850_000, 900_790_000, "WS"),
    ]
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["bios"]) == (4096, 1)
    assert not rows["loss"]


def test_a_flush_without_data_lasts_until_its_own_completion(tmp_path: Path) -> None:
    """The request of the flush (`FN`) is complete a moment before the bio that asked for it."""
    rows = tables(
        convert(
            tmp_path,
            b"""\
259,0   11        1     0.000000000  1889  Q FWS [jbd2/dm-4-8]
259,0   11        2     0.000002000  1889  G FWS [jbd2/dm-4-8]
259,0   11        3     0.000009000   612  D  FN [kworker/11:1H]
259,0   11        4     0.100009000     0  C  FN 0 [0]
259,0   11        5     0.100010000     0  C  WS 0 [0]
259,0   11        6     0.200000000  1889  Q  WS 1000 + 8 [jbd2/dm-4-8]
259,0   11        7     0.200009000  1889  D  WS 1000 + 8 [jbd2/dm-4-8]
259,0   11        8     0.201009000     0  C  WS 1000 + 8 [0]
""",
        )
    )
    columns = ("direction", "dur_ns", "queue_ns", "device_ns", "bytes", "comm")
    assert [tuple(row[c] for c in columns) for row in rows["bio"]] == [
        ("flush", 100_010_000, 9_000, 100_001_000, 0, "jbd2/dm-4-8"),
        ("write", 1_009_000, 9_000, 1_000_000, 4096, "jbd2/dm-4-8"),
    ]
    assert not rows["loss"]


def test_each_queue_of_a_device_flushes_for_its_own_bios(tmp_path: Path) -> None:
    """The first flush is that of the journal's write, on the other queue. The bio without data is complete after the second one."""
    rows = tables(
        convert(
            tmp_path,
            b"""\
254,16   0        1     0.000000000  2891  Q FWFSM 3940144 + 8 [jbd2/vdb-8]
254,16   1        1     0.000400000  2967  Q FWS [wl]
254,16   0        2     0.000500000    37  D  FN [kworker/0:1H]
254,16   1        2     0.000600000    49  D  FN [kworker/1:1H]
254,16   0        3     0.000800000     0  C  FN 0 [0]
254,16   0        4     0.000820000    37  D WSM 3940144 + 8 [kworker/0:1H]
254,16   1        3     0.000900000     0  C  FN 0 [0]
254,16   1        4     0.000902000     0  C  WS 0 [0]
254,16   0        5     0.001000000     0  C WSM 3940144 + 8 [0]
254,16   0        6     0.001010000    37  D  FN [kworker/0:1H]
254,16   0        7     0.001200000     0  C  FN 0 [0]
254,16   0        8     0.001201000     0  C WSM 3940144 [0]
""",
        )
    )
    columns = ("direction", "dur_ns", "queue_ns", "device_ns", "error", "comm")
    assert sorted(tuple(row[c] for c in columns) for row in rows["bio"]) == [
        ("flush", 502_000, None, None, 0, "wl"),
        ("write", 1_201_000, 820_000, 381_000, 0, "jbd2/vdb-8"),
    ]
    assert not rows["loss"]


def test_a_flush_whose_issue_is_not_recorded_ends_with_its_own_completion(tmp_path: Path) -> None:
    rows = tables(
        convert(
            tmp_path,
            b"""\
254,16   0        1     0.000000000   559  Q  WS 1000 + 8 [wl]
254,16   0        2     0.000900000     0  C  WS 1000 + 8 [0]
254,16   0        3     0.001000000   559  Q FWS [wl]
254,16   0        4     0.002900000     0  C  FN 0 [-5]
254,16   0        5     0.002910000     0  C  WS 0 [-5]
""",
        )
    )
    columns = ("direction", "dur_ns", "queue_ns", "error")
    assert [tuple(row[c] for c in columns) for row in rows["bio"]] == [
        ("write", 900_000, None, 0),
        ("flush", 1_910_000, None, -5),
    ]
    assert not rows["loss"]


def test_the_end_of_a_write_with_data_ends_no_flush(tmp_path: Path) -> None:
    """A write with a flush before it ends with a completion without a length, which names its sector."""
    rows = tables(
        convert(
            tmp_path,
            b"""\
254,16   0        1     0.000000000    77  Q FWFSM 1000 + 8 [jbd2]
254,16   0        2     0.000010000    90  D  FN [kworker/0:1H]
254,16   0        3     0.001000000     0  C  FN 0 [0]
254,16   0        4     0.001010000    90  D WFSM 1000 + 8 [kworker/0:1H]
254,16   1        1     0.001100000   560  Q FWS [wl]
254,16   1        2     0.001110000    91  D  FN [kworker/1:1H]
254,16   0        5     0.001500000     0  C WFSM 1000 + 8 [0]
254,16   0        6     0.001501000     0  C WFSM 1000 [0]
254,16   1        3     0.006000000     0  C  FN 0 [0]
254,16   1        4     0.006002000     0  C  WS 0 [0]
""",
        )
    )
    assert [(row["direction"], row["dur_ns"], row["error"]) for row in rows["bio"]] == [
        ("write", 1_500_000, 0),
        ("flush", 4_902_000, 0),
    ]


def test_what_is_merged_into_a_request_is_not_of_the_thread_that_issues_it(tmp_path: Path) -> None:
    """dd begins a request, 512 sectors are merged into it, and the thread in a sync hands it to the driver."""
    log = b"""\
# tracer: nop
              wl-559 [000] .....   20.000000: ext4_sync_file_enter: dev 8,0 ino 13 parent 2 datasync 0
              wl-559 [000] .....   20.000100: block_rq_insert: 8,0 WS 4096 () 1000 + 8 [wl]
              dd-700 [001] .....   20.000150: block_rq_insert: 8,0 W 4096 () 9000 + 8 [dd]
              wl-559 [000] .....   20.000200: block_rq_issue: 8,0 WS 4096 () 1000 + 8 [wl]
              wl-559 [000] .....   20.000210: block_rq_issue: 8,0 W 266240 () 9000 + 520 [wl]
          <idle>-0 [000] .....   20.001000: block_rq_complete: 8,0 WS () 1000 + 8 [0]
          <idle>-0 [000] .....   20.003000: block_rq_complete: 8,0 W () 9000 + 520 [0]
              wl-559 [000] .....   20.003100: ext4_sync_file_exit: dev 8,0 ino 13 ret 0
"""
    (sync,) = tables(convert(tmp_path, log))["sync"]
    # A request begins some time after its bios were submitted.
    assert (sync["bytes"], sync["writeback_ns"], sync["before_submit_ns"]) == (4096, 900_000, None)


STOCK = """\
# tracer: nop
          wl-559 [000] .....   20.000000: ext4_sync_file_enter: dev {dev} ino 13 parent 2 datasync 0
{lines}
          wl-559 [000] .....   20.009100: ext4_sync_file_exit: dev {dev} ino 13 ret 0
"""


def stock(tmp_path: Path, dev: str, *lines: str) -> dict[str, list[dict[str, Any]]]:
    """Converts the events of a sync on a device, without their task."""
    task = "          wl-559 [000] .....   20."
    log = STOCK.format(dev=dev, lines="\n".join(task + line for line in lines))
    return tables(convert(tmp_path, log.encode()))


def test_the_end_of_a_request_is_not_that_of_the_flush_after_it(tmp_path: Path) -> None:
    """`block_io_done` follows the completion of the data too, on a device without FUA."""
    completions = (
        "001000: block_rq_complete: 254,16 WS () 1000 + 8 [0]",
        "009010: block_rq_complete: 254,16 WS () 1000 + 0 [0]",
    )
    dones = (
        "001001: block_io_done: 254,16 WS 0 () 1000 + 0 [wl]",
        "009011: block_io_done: 254,16 WS 0 () 1000 + 0 [wl]",
    )
    flush = (
        "001020: block_rq_issue: 254,16 FF 0 () 0 + 0 [wl]",
        "009000: block_rq_complete: 254,16 FF () 18446744073709551615 + 0 [0]",
    )
    begin = (
        "000100: block_bio_queue: 254,16 WFS 1000 + 8 [wl]",
        "000110: block_rq_issue: 254,16 WS 4096 () 1000 + 8 [wl]",
    )
    for ends, complete_ns in ((completions + dones + flush, 9_010_000), (dones, 9_011_000)):
        rows = stock(tmp_path, "254,16", *sorted(begin + ends))
        assert [(row["direction"], row["dur_ns"]) for row in rows["bio"]] == [
            ("write", complete_ns - 100_000)
        ]
        assert not rows["loss"]


def test_the_end_of_an_empty_flush_ends_no_write_at_the_first_sector(tmp_path: Path) -> None:
    """It has sector 0, as the superblock of some file systems."""
    rows = stock(
        tmp_path,
        "8,0",
        "000010: block_bio_queue: 8,0 WFSM 0 + 8 [umount]",
        "000020: block_rq_issue: 8,0 WFSM 4096 () 0 + 8 [umount]",
        "000100: block_bio_queue: 8,0 FWS 0 + 0 [wl]",
        "000110: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker]",
        "000600: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]",
        "000602: block_rq_complete: 8,0 WS () 0 + 0 [0]",
        "000603: block_io_done: 8,0 WS 0 () 0 + 0 [wl]",
        "004010: block_rq_complete: 8,0 WFSM () 0 + 8 [0]",
    )
    assert sorted((row["direction"], row["dur_ns"]) for row in rows["bio"]) == [
        ("flush", 502_000),
        ("write", 4_000_000),
    ]


def test_a_remap_to_a_partition_announces_nothing_there(tmp_path: Path) -> None:
    """The kernel names the disk with the sector of the partition, and then redirects the bio from there. Another bio may be at that sector."""
    rows = stock(
        tmp_path,
        "8,1",
        "000100: block_bio_queue: 253,0 WS 1000 + 8 [wl]",
        "000101: block_bio_remap: 8,0 WS 3048 + 8 <- (253,0) 1000",
        "000102: block_bio_remap: 8,0 WS 1053672 + 8 <- (8,2) 3048",
        "000103: block_bio_queue: 8,0 WS 1053672 + 8 [wl]",
        "001000: block_rq_complete: 8,0 WS () 1053672 + 8 [0]",
        "001002: block_bio_complete: 253,0 WS 1000 + 8 [0]",
        "002100: block_bio_remap: 8,0 WS 3048 + 8 <- (8,1) 1000",
        "002101: block_bio_queue: 8,0 WS 3048 + 8 [wl]",
        "004001: block_rq_complete: 8,0 WS () 3048 + 8 [0]",
    )
    assert [(row["dev"], row["sector"], row["dur_ns"]) for row in rows["bio"]] == [
        ("253,0", 1000, 902_000),
        ("8,0", 3048, 1_900_000),
    ]


def test_a_sync_without_a_bio_is_empty_only_where_its_bios_would_be_in_the_log(
    tmp_path: Path,
) -> None:
    """Only the disk below is recorded, or only requests, into which bios of anybody may have been merged."""
    bio = (
        "000200: block_bio_queue: 8,0 WS 1000 + 8 [other]",
        "001000: block_rq_complete: 8,0 WS () 1000 + 8 [0]",
    )
    request = (
        "000200: block_rq_insert: 8,0 W 4096 () 1000 + 8 [other]",
        "001000: block_rq_complete: 8,0 W () 1000 + 8 [0]",
    )
    for dev, lines, bios in (("8,1", bio, 0), ("253,0", bio, None), ("8,0", request, None)):
        log = STOCK.format(
            dev=dev, lines="\n".join(f"       other-300 [001] .....   20.{line}" for line in lines)
        )
        (sync,) = tables(convert(tmp_path, log.encode()))["sync"]
        assert (sync["bios"], sync["bytes"]) == (bios, bios), (dev, lines)


def test_one_request_answers_all_flushes_that_wait(tmp_path: Path) -> None:
    rows = tables(
        convert(
            tmp_path,
            b"""\
8,0   0        1     0.000000000    11  Q FWS [a]
8,0   0        2     0.000001000    12  Q FWS [b]
8,0   0        3     0.000002000    11  D  FN [a]
8,0   0        4     0.000003000    13  Q FWS [c]
8,0   0        5     0.005000000     0  C  FN 0 [0]
8,0   0        6     0.005001000     0  C  WS 0 [0]
8,0   0        7     0.005002000     0  C  WS 0 [0]
8,0   0        8     0.005003000     0  D  FN [swapper/0]
8,0   0        9     0.009000000     0  C  FN 0 [0]
""",
        )
    )
    found = [(row["comm"], row["queue_ns"], row["dur_ns"]) for row in rows["bio"]]
    # The completion of the last bio is not in the log. That of its request is, and comes a moment before.
    assert sorted(found) == [
        ("a", 2_000, 5_001_000),
        ("b", 1_000, 5_001_000),
        ("c", 5_000_000, None),
    ]


def test_the_flush_of_a_write_is_no_row_of_its_own(tmp_path: Path) -> None:
    """The request of a flush before or after a write belongs to the bio that asks for it."""
    rows = tables(
        convert(
            tmp_path,
            b"""\
8,0   0        1     0.000000000     9  Q FWFSM 800 + 8 [jbd2/sda-8]
8,0   0        2     0.000002000     9  D  FN [jbd2/sda-8]
8,0   0        3     0.005000000     0  C  FN 0 [0]
8,0   0        4     0.005001000     9  D WFSM 800 + 8 [kworker/0:1H]
8,0   0        5     0.009000000     0  C WFSM 800 + 8 [0]
""",
        )
    )
    found = [(row["direction"], row["queue_ns"], row["dur_ns"]) for row in rows["bio"]]
    assert found == [("write", 5_001_000, 9_000_000)]


def test_many_completions_without_a_submit_stream(tmp_path: Path) -> None:
    lines = [
        f"254,16   0 {n:8} {n:5}.000000000     0  C  WS {n * 8} + 8 [0]" for n in range(1, 10_001)
    ]
    rows = tables(convert(tmp_path, "\n".join([*lines, ""]).encode()))
    assert [row["sector"] for row in rows["bio"]] == [n * 8 for n in range(1, 10_001)]
    assert rows["loss"][0]["count"] == 10_000


def test_a_bio_whose_completion_was_lost_is_one_row(tmp_path: Path) -> None:
    lines = [
        (1, 1.0, "ext4_sync_file_enter: dev 254,16 ino 7 parent 2 datasync 0"),
        (1, 1.1, "block_bio_queue: 254,16 WS 8 + 8 [wl]"),
        (1, 1.2, "ext4_sync_file_exit: dev 254,16 ino 7 ret 0"),
        # More than the minute after which the bio is given up.
        (2, 70.0, "block_bio_queue: 254,16 WS 800 + 8 [wl]"),
        (9, 70.1, "block_rq_complete: 254,16 WS () 800 + 8 [0]"),
        # It is of no bio.
        (9, 70.2, "block_rq_complete: 254,16 WS () 8 + 8 [0]"),
    ]
    log = tmp_path / "trace.txt"
    log.write_text(
        "# tracer: nop\n#\n"
        + "".join(f"      wl-{tid} [000] ..... {ts:.6f}: {event}\n" for tid, ts, event in lines)
    )
    _core.convert([str(log)], f"{tmp_path}/out/")
    rows = tables(tmp_path / "out")
    found = [(row["sector"], row["sync_id"], row["incomplete"]) for row in rows["bio"]]
    assert sorted(found) == [(8, 1, "end"), (800, None, None)]
    losses = {row["reason"]: row["count"] for row in rows["loss"] if row["severity"] == "loss"}
    assert losses == {"never_completed": 1, "unmatched_complete": 1}


@pytest.mark.parametrize("has_end", [False, True])
def test_a_device_mapper_reports_the_end_of_its_bios(has_end: bool, tmp_path: Path) -> None:
    """The kernel completes a request of the disk, and then the bio of the device mapper, whose error may be another."""
    lines = [
        (1, 1.0, "ext4_sync_file_enter: dev 252,0 ino 7 parent 2 datasync 0"),
        (1, 1.1, "block_bio_queue: 252,0 WS 8 + 8 [wl]"),
        (1, 1.11, "block_bio_remap: 254,32 WS 300008 + 8 <- (252,0) 8"),
        (1, 1.12, "block_bio_queue: 254,32 WS 300008 + 8 [wl]"),
        (1, 1.13, "block_rq_issue: 254,32 WS 4096 () 300008 + 8 none,0,0 [wl]"),
        (9, 1.2, "block_rq_complete: 254,32 WS () 300008 + 8 none,0,0 [0]"),
        *([(9, 1.21, "block_bio_complete: 252,0 WS 8 + 8 [-5]")] if has_end else []),
        # An empty flush completes no write.
        (9, 1.22, "block_bio_complete: 252,0 FWS 0 + 0 [0]"),
        (1, 1.3, "ext4_sync_file_exit: dev 252,0 ino 7 ret 0"),
    ]
    log = tmp_path / "trace.txt"
    log.write_text(
        "# tracer: nop\n#\n"
        + "".join(f"      wl-{tid} [000] ..... {ts:.6f}: {event}\n" for tid, ts, event in lines)
    )
    _core.convert([str(log)], f"{tmp_path}/out/")
    rows = tables(tmp_path / "out")
    (bio,) = rows["bio"]
    columns = ("dev", "below", "sector", "dur_ns", "queue_ns", "error", "incomplete")
    ended = (110_000_000, 30_000_000, -5, None) if has_end else (None, 30_000_000, None, "end")
    assert tuple(bio[key] for key in columns) == ("252,0", "254,32", 8, *ended)
    losses = {row["reason"]: row["count"] for row in rows["loss"] if row["severity"] == "loss"}
    assert losses == ({} if has_end else {"never_completed": 1})


def ends_of(tmp_path: Path, *events: tuple[float, str]) -> dict[str, Any]:
    """The bios of events of the block layer: (sector, bytes) to the duration in ms and the error, and the losses."""
    log = tmp_path / "trace.txt"
    log.write_text(
        "# tracer: nop\n#\n"
        + "".join(f"      wl-1 [000] ..... {ts:.6f}: {event}\n" for ts, event in events)
    )
    _core.convert([str(log)], f"{tmp_path}/out/")
    rows = tables(tmp_path / "out")
    found: dict[str, Any] = {}
    for row in rows["bio"]:
        ended = row["dur_ns"] and row["dur_ns"] // 1_000_000
        found.setdefault((row["sector"], row["bytes"] // 512), []).append((ended, row["error"]))
    losses = {row["reason"]: row["count"] for row in rows["loss"] if row["severity"] == "loss"}
    return {"bios": found, "losses": losses}


def test_the_end_of_a_bio_that_was_split_is_that_of_its_rest(tmp_path: Path) -> None:
    """The kernel advances a bio past what it splits off, so its end names the rest. A later bio to the first part has its own end."""
    found = ends_of(
        tmp_path,
        (1.1, "block_bio_queue: 252,0 WS 8 + 16 [wl]"),
        (1.2, "block_bio_complete: 252,0 WS 16 + 8 [0]"),
        (2.1, "block_bio_queue: 252,0 WS 8 + 8 [wl]"),
        (2.11, "block_bio_complete: 252,0 WS 8 + 8 [-5]"),
    )
    assert found == {"bios": {(8, 16): [(100, 0)], (8, 8): [(10, -5)]}, "losses": {}}


def test_an_empty_flush_of_a_device_mapper_ends_no_write(tmp_path: Path) -> None:
    found = ends_of(
        tmp_path,
        (1.1, "block_bio_queue: 252,0 FWFS 0 + 8 [wl]"),
        (1.11, "block_bio_queue: 252,0 FWS 0 + 0 [wl]"),
        (1.15, "block_bio_complete: 252,0 FWS 0 + 0 [0]"),
        # Without FUA: the device mapper has flushed.
        (1.2, "block_bio_complete: 252,0 WS 0 + 8 [0]"),
    )
    # The flush is a bio of its own.
    assert found == {"bios": {(0, 8): [(100, 0)], (None, 0): [(40, 0)]}, "losses": {}}


def test_the_end_of_a_bio_is_not_that_of_one_inside_of_it(tmp_path: Path) -> None:
    found = ends_of(
        tmp_path,
        (1.1, "block_bio_queue: 252,0 WS 8 + 8 [wl]"),
        (1.11, "block_bio_queue: 252,0 WS 0 + 32 [wl]"),
        (1.12, "block_bio_queue: 252,0 WS 24 + 8 [wl]"),
        (1.2, "block_bio_complete: 252,0 WS 0 + 32 [0]"),
        (1.25, "block_bio_complete: 252,0 WS 8 + 8 [0]"),
        (1.32, "block_bio_complete: 252,0 WS 24 + 8 [0]"),
    )
    bios = {(8, 8): [(150, 0)], (0, 32): [(90, 0)], (24, 8): [(200, 0)]}
    assert found == {"bios": bios, "losses": {}}


# The rest of a split bio, which Linux 4.3 to 4.11 queue once more.


def block_event(form: str, us: int, name: str, sector: int, sectors: int, tid: int = 7) -> str:
    """An event of a write, as a recorder prints it."""
    letter = {"queue": "Q", "split": "X", "issue": "D", "complete": "C"}[name]
    if form == "blkparse":
        rest = f"{sector} / {sectors}" if name == "split" else f"{sector} + {sectors}"
        rest += " [0]" if name == "complete" else " [wl]"
        return f"  8,0    1        1     0.{us:06}000  {tid}  {letter}  WS {rest}"
    event = {
        "queue": f"block_bio_queue: 8,0 WS {sector} + {sectors} [wl]",
        "split": f"block_split: 8,0 WS {sector} / {sectors} [wl]",
        "issue": f"block_rq_issue: 8,0 WS {sectors * 512} () {sector} + {sectors} [wl]",
        "complete": f"block_rq_complete: 8,0 WS () {sector} + {sectors} [0]",
    }[name]
    if form == "ftrace":
        return f"              wl-{tid}     [001] ....   100.{us:06}: {event}"
    if form == "perf":
        return f"wl     {tid} [001]   100.{us:06}: block:{event}"
    kind, rest = event.split(": ", 1)
    pairs = [["dev", 8 << 20], ["sector", sector], ["nr_sector", sectors], ["rwbs", "WS"]]
    ids: list[list[Any]] = [["pid", tid], ["tid", tid], ["thread_name", "wl"]]
    data = ["track_event", ["name", kind], ["type", "INSTANT"], ["ts", us * 1000], *ids, *pairs]
    return json.dumps({"type": "value", "data": data}, separators=(",", ":")).replace(
        '{"type":"value","data":', '{"type": "value", "data": '
    )


FORMS = ("blkparse", "ftrace", "perf", "btetto")
# A bio of 256 sectors that is split twice. The device completes the last part first.
SPLIT = [
    (10, "queue", 1000, 256),
    (11, "split", 1000, 1100),
    (12, "queue", 1100, 156),
    (14, "issue", 1000, 100),
    (15, "split", 1100, 1200),
    (16, "queue", 1200, 56),
    (17, "issue", 1100, 100),
    (18, "issue", 1200, 56),
    (300, "complete", 1200, 56),
    (400, "complete", 1000, 100),
    (500, "complete", 1100, 100),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("has_splits", [True, False])
def test_the_rest_of_a_split_bio_counts_once(form: str, has_splits: bool, tmp_path: Path) -> None:
    # btetto's scripts do not print what it has no field for.
    events = [event for event in SPLIT if event[1] != "split" or (has_splits and form != "btetto")]
    log = "\n".join([*(block_event(form, *event) for event in events), ""]).encode()
    rows = tables(convert(tmp_path, log))
    (bio,) = rows["bio"]
    # In flight from the first queue to the last completion, 490 us, and in the queue for 4 us.
    assert (bio["sector"], bio["bytes"], bio["dur_ns"]) == (1000, 256 * 512, 490_000)
    assert (bio["queue_ns"], bio["parts"], bio["incomplete"]) == (4_000, 3, None)
    assert {row["reason"]: row["count"] for row in rows["loss"]}["duplicate"] == 2


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ((12, "queue", 1100, 156, 8), "another thread submits it"),
        ((12, "queue", 1100, 155), "it ends before the bio"),
        ((12, "queue", 1000, 256), "it begins with the bio"),
        ((600, "queue", 1100, 156), "the bio is complete"),
        ((5_100, "queue", 1100, 156), "it comes later than any split"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_another_bio_in_the_range_of_one_is_a_row(
    form: str, second: tuple[Any, ...], why: str, tmp_path: Path
) -> None:
    end = 9_000 if second[0] > 5_000 else 500
    events = [(10, "queue", 1000, 256), (14, "issue", 1000, 256), (end, "complete", 1000, 256)]
    log = [block_event(form, *event) for event in sorted([*events, second])]
    rows = tables(convert(tmp_path, "\n".join([*log, ""]).encode()))
    assert len(rows["bio"]) == 2, why
    assert "duplicate" not in {row["reason"] for row in rows["loss"]}
