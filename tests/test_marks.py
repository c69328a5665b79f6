"""Marks that the application wrote to the ring buffer: a recording, and markers of every form."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import convert, tables
from tests.reference import tracedat
from tests.reference.tracedat import Event, Shape, World
from tests.test_commands import run

DATA = Path(__file__).parent / "data" / "marks"
FILES = ("marks.trace.txt.gz", "marks.report.txt.gz", "marks.dat.gz")
# (ts_ns, dur_ns or None for a moment, name)
Mark = tuple[int, int | None, str]
LINE = re.compile(r".*-(\d+) +\[\d+\] .*?(\d+)\.(\d{6}): tracing_mark_write: (.*)")


def recording(name: str) -> bytes:
    return gzip.decompress((DATA / name).read_bytes())


def written() -> list[Mark]:
    """The marks of the recording, from the text of the kernel. Times are in us."""
    begun: dict[str, list[tuple[int, str]]] = defaultdict(list)
    marks: list[Mark] = []
    for line in recording("marks.trace.txt.gz").decode().splitlines():
        if not (found := LINE.fullmatch(line)):
            continue
        tid, ts, text = found[1], int(found[2] + found[3]) * 1000, found[4]
        match text.split("|"):
            case ["B", _, name]:
                begun[tid].append((ts, name))
            case ["S", pid, name, cookie]:
                begun[pid + name + cookie].append((ts, name))
            case ["E", _]:
                since, name = begun[tid].pop()
                marks.append((since, ts - since, name))
            case ["F", pid, name, cookie]:
                since, name = begun[pid + name + cookie].pop()
                marks.append((since, ts - since, name))
            case ["I", _, name] | [name]:
                marks.append((ts, None, name))
            case ["C", *_]:
                pass
    assert len(marks) == 13
    return sorted(marks)


def rows_of(output: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output)["rows"]
    return found


def marks_of(folder: Path, data: bytes, name: str = "in") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tables(convert(folder, data, name=name))["mark"]
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_marks_of_a_recording_are_those_that_the_program_wrote(
    name: str, tmp_path: Path
) -> None:
    result = tables(convert(tmp_path, recording(name), name="in"))
    meta = {row["key"]: row["value"] for row in result["meta"]}
    # Nine begins and ends, those of the asynchronous mark, and three moments.
    assert meta["events.mark"] == "23"
    assert {row["reason"] for row in result["loss"]} <= {"completed_after_end", "never_completed"}
    found, expected = result["mark"], written()
    assert [row["name"] for row in found] == [mark[2] for mark in expected]
    last = int(meta["last_ts_ns"])
    for row, (ts, dur, _), after in zip(found, expected, [*expected[1:], (last,)], strict=True):
        until = after[0] - ts if dur is None else dur
        assert abs(row["ts_ns"] - ts) <= 1000
        assert abs(row["dur_ns"] - until) <= 2000


@pytest.mark.parametrize("name", FILES)
def test_the_low_level_log_has_the_marks(name: str, tmp_path: Path) -> None:
    direct = marks_of(tmp_path, recording(name))
    log = convert(tmp_path, recording(name), "log.events.jsonl", name="in")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    texts = [line for line in lines if line["event"] == "tracing_mark_write"]
    assert {line.get("text", line.get("buf")).split("|")[0].strip() for line in texts} >= {"B", "E"}
    assert marks_of(tmp_path, log.read_bytes(), "again") == direct


def test_the_reports_have_the_cost_of_each_mark(tmp_path: Path) -> None:
    log = tmp_path / "marks.dat"
    log.write_bytes(recording("marks.dat.gz"))
    trace = tmp_path / "marks.pftrace"
    assert run("convert", "-q", log, "-o", trace).returncode == 0
    reports = [
        rows_of(run("report", path, "marks", "--format", "json").stdout) for path in (log, trace)
    ]
    assert reports[0] == reports[1]
    syncs = {row["name"]: row["syncs"] for row in reports[0]}
    assert syncs["load"] == 3
    assert all(count >= 1 for name, count in syncs.items() if name.startswith("txn"))
    # The marks of --marks replace them.
    given = tmp_path / "marks.csv"
    given.write_text(f"time,name,duration\n{reports[0][0]['ts_ns']},mine,1000\n")
    done = run("report", log, "marks", "--marks", given, "--format", "json")
    assert [row["name"] for row in rows_of(done.stdout)] == ["mine"]


# Markers of other forms.


def text_of(*events: str, tid: int = 7) -> bytes:
    """Events of one thread, a second apart, after those of a sync."""
    sync = ("sys_fsync(fd: 3)", "sys_fsync -> 0x0")
    lines = [
        f"              wl-{tid}       [000] ..... {second:5d}.000000: {event}\n"
        for second, event in enumerate((*sync, *events), 1)
    ]
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("tracing_mark_write: a: b", "a: b"),
        ("tracing_mark_write+0x5a/0x150: a", "a"),
        ("print:                tracing_mark_write: a", "a"),
        ("print:                0xffffffff8115a0b0: a", "a"),
        ("bprint:               do_fsync: tracing_mark_write: I|1|a", "a"),
        ("do_fsync: tracing_mark_write: I|1|a", "a"),
        # What the kernel prints is no mark of the application.
        ("do_fsync: a", None),
        ("do_fsync.isra.0: a b", None),
        ("do_fsync+0x10/0x20: a b", None),
        ("print:                do_fsync: a", None),
        ("bprint:               do_fsync: a", None),
        ("bputs:                do_fsync: a", None),
        ("0x1: a", None),
        ("raw_data: # 2a 72 61", None),
        ("# 2a buf: 72 61", None),
        ("tracing_mark_write: C|7|heap|4096", None),
        ("tracing_mark_write: trace_event_clock_sync: parent_ts=3", None),
    ],
)
def test_printed_texts(event: str, name: str | None, tmp_path: Path) -> None:
    result = tables(convert(tmp_path, text_of(event)))
    assert [row["name"] for row in result["mark"]] == ([] if name is None else [name])
    assert not {row["reason"] for row in result["loss"]} - {"call_only"}


def test_marks_nest_and_torn_ones_are_counted(tmp_path: Path) -> None:
    mark = "tracing_mark_write: {}".format
    texts = ("E|7", "B|7|outer", "B|7|inner", "E|7", "E|7", "B|7|open", "S|7|x|1", "S|7|x|1")
    result = tables(convert(tmp_path, text_of(*map(mark, texts))))
    found = [(row["name"], row["ts_ns"] // 10**9, row["dur_ns"] // 10**9) for row in result["mark"]]
    # What is still open lasts to the end, at 10 s. The first `x` has neither an end nor a length.
    assert found == [("outer", 4, 3), ("inner", 5, 1), ("open", 8, 2), ("x", 10, 0)]
    losses = {row["reason"]: (row["count"], row["severity"]) for row in result["loss"]}
    assert losses["unmatched_mark"] == (4, "info")


def test_a_log_of_marks_alone_is_refused_and_adds_its_marks_to_another(tmp_path: Path) -> None:
    marks, log = tmp_path / "marks.txt", tmp_path / "log.txt"
    marks.write_bytes(text_of("tracing_mark_write: a").splitlines(keepends=True)[-1])
    log.write_bytes(text_of(tid=8))
    with pytest.raises(_core.CoreError, match="has nothing to do with a sync"):
        _core.convert([str(marks)], f"{tmp_path}/out.csv")
    _core.convert([str(marks), str(log)], f"{tmp_path}/out/")
    assert [row["name"] for row in tables(tmp_path / "out")["mark"]] == ["a"]


def test_a_marker_in_two_logs_is_one_mark(tmp_path: Path) -> None:
    for name in FILES[0], FILES[2]:
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    # They say nothing of their clock, or another one: both are on the same.
    paths = [str(tmp_path / name) for name in (FILES[0], FILES[2])]
    done = run("convert", "-q", *paths, "--offset", f"{paths[1]}=0", "-o", f"{tmp_path}/out/")
    assert done.returncode == 0, done.stderr
    assert len(tables(tmp_path / "out")["mark"]) == 13


# Generated files of trace-cmd, in each encoding.

WRITER = 0xFFFFFFFF81498A90
SYMBOLS = (
    b"ffffffff81498a80 t before\nffffffff81498a90 t tracing_mark_write\n"
    b"ffffffff81498c00 T trace_vbprintk\n"
)


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("symbols", [SYMBOLS, b""])
def test_prints_of_a_trace_dat(
    version: int, big_endian: bool, symbols: bytes, tmp_path: Path
) -> None:
    world = tracedat.world(random.Random(5), requests=2)
    tid, first = world.events[0].tid, world.events[0].ts
    prints = [
        Event(first + 10, 0, tid, "ftrace:print", {"ip": WRITER + 0x5A, "buf": "B|1|a\n"}),
        Event(first + 20, 0, tid, "ftrace:print", {"ip": WRITER + 0x300, "buf": "by the kernel\n"}),
        Event(first + 30, 0, tid, "ftrace:bprint", {"ip": WRITER, "fmt": 5, "buf": "args"}),
        Event(first + 40, 0, tid, "ftrace:print", {"ip": WRITER + 0x5A, "buf": "E|1\n"}),
    ]
    events = sorted([*world.events, *prints], key=lambda event: event.ts)
    world = World(events, world.comms, [], world.cpus)
    shape = Shape(version=version, big_endian=big_endian, symbols=symbols, shuffled=version == 7)
    result = tables(convert(tmp_path, tracedat.file(world, shape), name="in.dat"))
    found = [(row["ts_ns"], row["dur_ns"], row["name"]) for row in result["mark"]]
    expected = [(first + 10, 30, "a")]
    if not symbols:
        # Nothing says who printed the text, so it is taken for a marker.
        expected.append((first + 20, found[-1][1], "by the kernel"))
    assert found == expected
    assert "unparsed_line" not in {row["reason"] for row in result["loss"]}
    plain = replace(world, events=[event for event in events if event not in prints])
    without = tables(convert(tmp_path, tracedat.file(plain, Shape()), name="in.dat"))
    assert result["sync"] == without["sync"]
