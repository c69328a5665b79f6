"""Text of perf: a recording against a plain reader, and bad lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import ROOT, convert, core, tables
from tests.reference import perf
from tests.test_commands import fails

TEXT = gzip.decompress((ROOT / "tests/data/several-recorders/perf.txt.gz").read_bytes())
FRAME = b"\t    7f62436e9b57 fdatasync+0x7 (/usr/lib/libc.so.6)\n"


def test_every_event_is_what_a_plain_reader_reads(tmp_path: Path) -> None:
    log = convert(tmp_path, TEXT, "out.events.jsonl")
    found = [json.loads(line) for line in log.read_text().splitlines()]
    expected = list(perf.read(TEXT.decode()))
    assert len(found) == len(expected) > 600
    calls = 0
    for row, sample in zip(found, expected, strict=True):
        key = (row["ts_ns"], row["tid"], row.get("pid"), row["comm"], row["event"])
        assert key == (sample.ts, sample.tid, sample.pid, sample.comm, sample.name)
        for field, value in (sample.fields or {}).items():
            assert str(row[field]) == str(value), (field, row)
        frames = sample.frames
        if sample.name.startswith(("sys_enter_", "sys_exit_")):
            calls += 1
            frames = [(address, text) for address, text in frames if address < 2**63]
        found_frames = row["stack"] if isinstance(row["stack"], list) else row["stack"].split("\n")
        assert found_frames == [text for _, text in frames], row
    assert calls == 80


def test_the_low_level_log_gives_the_same_requests(tmp_path: Path) -> None:
    log = convert(tmp_path, TEXT, "out.events.jsonl").read_bytes()
    tables = core(tmp_path, TEXT), core(tmp_path, log, name="again")
    assert tables[0]["sync"] == tables[1]["sync"]
    assert len(tables[0]["sync"]) == 40


def test_stacks_are_those_of_the_program(tmp_path: Path) -> None:
    for row in core(tmp_path, TEXT)["sync"]:
        frames = row["stack"].split(";")
        # perf had no names for the libc's functions.
        assert frames[-1] == "[libc.so.6]"
        assert not [frame for frame in frames if frame.startswith(("do_syscall", "entry_SYSCALL"))]


def test_a_long_log_is_read_in_chunks(tmp_path: Path) -> None:
    """The end of a chunk falls into a stack."""
    event = b"wl     254 [000]    %d.500000001:      syscalls:sys_%s_fdatasync: %s\n"
    pairs = 4000
    body = b"".join(
        event % (n, b"enter", b"fd: 0x00000003") + FRAME * 5 + b"\n" + event % (n, b"exit", b"0x0")
        for n in range(1, pairs)
    )
    result = core(tmp_path, body)
    assert len(body) > 2**20
    assert [row["reason"] for row in result["loss"]] == ["call_only"]
    assert len(result["call"]) == pairs - 1
    assert {row["stack"] for row in result["call"]} == {";".join(["fdatasync"] * 5)}


def test_the_clock_is_that_of_the_header(tmp_path: Path) -> None:
    meta = {row["key"]: row["value"] for row in core(tmp_path, TEXT)["meta"]}
    assert meta["clock"] == "monotonic"
    assert meta["kernel"] == "Linux 6.12.107+deb13-amd64"
    (reference,) = [
        line for line in TEXT.decode().splitlines() if line.startswith("# reference time:")
    ]
    _, day, perf_time = reference.split(" = ")
    day_us = int(day.split()[0].replace(".", ""))
    perf_ns = int(perf_time.split()[0].replace(".", ""))
    assert int(meta["realtime_offset_ns"]) == day_us * 1000 - perf_ns
    plain = b"".join(line for line in TEXT.splitlines(True) if not line.startswith(b"#"))
    meta = {row["key"]: row["value"] for row in core(tmp_path, plain)["meta"]}
    assert meta["clock"] == "unknown"
    assert "realtime_offset_ns" not in meta


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"wl 254 [000] 52.5: syscalls:sys_enter_fsync: fd: 0x3", "COMM TID [CPU] TIME"),
        (b"wl 254 [000] 99999999999.500000: a:bcdefg: x", "63 bits"),
        (b"wl 254 [000] 52.500000: block:block_bio_queue: 254,16 WS", "MAJOR,MINOR"),
        (b"wl 254 [000] 52.500000: ext4:ext4_sync_file_exit: dev 254,16 ino 3", "ret"),
    ],
)
def test_an_unparsed_line_is_shown_with_its_place(line: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(TEXT + line + b"\n")
    summary = _core.convert([str(tmp_path / "in")], f"{tmp_path}/out/")
    assert {loss["reason"]: loss["count"] for loss in summary["losses"]} == {"unparsed_line": 1}
    (shown,) = summary["unparsed"]
    assert f"in:{TEXT.count(10) + 1}: " in shown
    assert why in shown


def test_lost_events_are_counted(tmp_path: Path) -> None:
    lost = b"swapper       0 [000]    99.500000001: PERF_RECORD_LOST lost 3\nProcessed 9 events and lost 2 chunks!\n"
    result = core(tmp_path, TEXT + lost)
    assert [(row["reason"], row["count"]) for row in result["loss"]] == [("lost_by_tracer", 4)]


def test_times_that_begin_at_0_are_refused(tmp_path: Path) -> None:
    """`--reltime` and `--deltatime`. Records of threads that existed before perf have the time 0 and are accepted."""
    head, first, *rest = TEXT.partition(b"\next4lazyinit")
    cut = head + b"\nperf     1 [000]     0.000000000: PERF_RECORD_COMM: perf:1/1"
    whole = b"".join([cut, first, *rest])
    assert len(core(tmp_path, whole)["sync"]) == 40
    relative = (
        head + b"\nperf     1 [000]     0.000000000:      sched:sched_process_fork: x=1" + first
    )
    (tmp_path / "r.txt").write_bytes(relative + b"".join(rest))
    assert "--reltime" in fails(3, "convert", tmp_path / "r.txt", "-o", tmp_path / "x.csv")


def test_the_low_level_log_keeps_an_event_without_a_thread(tmp_path: Path) -> None:
    """perf prints -1 if a CPU has no thread, for example after its exit."""
    log, first = tmp_path / "perf.txt", tmp_path / "first.events.jsonl"
    log.write_text(
        "fio   100 [000]    52.529894317: block:block_bio_queue: 254,16 WS 800 + 8 [fio]\n"
        ":-1    -1 [000]    52.529994317: block:block_rq_complete: 254,16 WS () 800 + 8 [0]\n"
    )
    _core.convert([str(log)], str(first))
    for source in (log, first):
        _core.convert([str(source)], f"{tmp_path}/{source.stem}/")
        (bio,) = tables(tmp_path / source.stem)["bio"]
        assert (bio["tid"], bio["dur_ns"], bio["incomplete"]) == (100, 100_000, None)
