"""The text of perf trace: recordings against a second reader, generated texts against what they were made of, and damaged ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import Rows, core, syncs
from tests.reference import perf_trace

DATA = Path(__file__).parent / "data/perf-trace"
RECORDINGS = sorted(path.name for path in DATA.glob("*.txt"))


def rows(tables: dict[str, Rows]) -> list[tuple[object, ...]]:
    columns = ("ts_ns", "op", "tid", "path", "syscall_ns", "ret")
    return sorted(tuple(row[column] for column in columns) for row in tables["sync"])


def expected(calls: list[perf_trace.Call]) -> list[tuple[object, ...]]:
    return sorted((c.entered, c.op, c.tid, c.path, c.dur, c.ret) for c in calls)


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_calls_of_the_second_reader(name: str, tmp_path: Path) -> None:
    text = (DATA / name).read_text()
    tables = core(tmp_path, text.encode())
    found, calls = rows(tables), perf_trace.read(text)
    if name != "boot.txt":
        assert found == expected(calls)
    # `threads.py` makes 19 syncs: 18 by three threads, and one of all file systems.
    count = 3 if name == "postgres.txt" else 19
    assert len(found) == len(calls) == count
    assert {row["confidence"] for row in tables["sync"]} == {"unknown"}
    assert all(row["bytes"] is None and row["bios"] is None for row in tables["sync"])


def test_an_exit_without_a_time_leaves_the_length_unknown(tmp_path: Path) -> None:
    """perf no longer knew the entries of two calls, whose exits therefore have no time."""
    tables = core(tmp_path, (DATA / "boot.txt").read_bytes())
    unknown = [row for row in tables["sync"] if row["syscall_ns"] is None]
    assert [(row["op"], row["incomplete"]) for row in unknown] == [("fdatasync", "end")] * 2
    assert losses(tables) == {"unparsed_line": 2, "end_missing": 2}


def generated(rng: random.Random) -> tuple[str, list[perf_trace.Call]]:
    """A text as perf prints it, and its calls: some are interrupted by the entry of another thread."""
    calls, lines = [], []
    clock = dict.fromkeys(range(201, 205), 1_000_000)
    names = {201: "wal", 202: "Web Content", 203: "kworker/u8:2", 204: None}
    for _ in range(rng.randrange(1, 40)):
        tid = rng.choice(list(clock))
        entered = clock[tid] + 1000 * rng.randrange(1, 50_000)
        dur = 1000 * rng.randrange(0, 900_000)
        clock[tid] = entered + dur
        op = rng.choice(["fsync", "fdatasync", "syncfs"])
        path = rng.choice([None, "/data/a b, c", "/data/wal"])
        ret = rng.choice([0, 0, 0, -5])
        calls.append(perf_trace.Call(op, tid, names[tid], path, entered, dur, ret))
        at, lasted = (f"{ns // 1_000_000}.{ns // 1000 % 1000:03}" for ns in (entered, dur))
        thread = f"{names[tid] or f':{tid}'}/{tid}"
        args = f"fd: 7{f'<{path}>' if path else ''}"
        result = "0" if ret == 0 else "-1 EIO (Input/output error)"
        if rng.random() < 0.4:
            lines.append((entered, f"{at:>10} (         ): {thread} {op}({args})      ..."))
            text = f"{at:>10} ({lasted:>6} ms): {thread}  ... [continued]: {op}())   = {result}"
        else:
            text = f"{at:>10} ({lasted:>6} ms): {thread} {op}({args})     = {result}"
        lines.append((entered + dur, text))
    return "".join(f"{line}\n" for _, line in sorted(lines, key=lambda each: each[0])), calls


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_text_gives_its_calls(seed: int, tmp_path: Path) -> None:
    text, calls = generated(random.Random(seed))
    assert expected(perf_trace.read(text)) == expected(calls)
    tables = core(tmp_path, text.encode())
    assert rows(tables) == expected(calls)
    assert losses(tables) == {}


def test_a_text_that_is_cut_anywhere_gives_no_wrong_call(tmp_path: Path) -> None:
    text = (DATA / "all.txt").read_bytes()[:1500]
    calls = rows({"sync": syncs(tmp_path, text)})
    whole = {(ts, op, tid): (dur, ret) for ts, op, tid, _, dur, ret in calls}
    for end in range(1, len(text)):
        try:
            found = rows({"sync": syncs(tmp_path, text[:end])})
        except _core.CoreError as error:
            assert error.args[2] == "input"
            continue
        for ts, op, tid, _, dur, ret in found:
            assert (dur, ret) in [(None, None), whole.get((ts, op, tid))], (end, ts, op)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("LOST 12 events!", "lost_by_tracer"),
        ("     1.000 (0.010 ms): wal/7 fsync(fd: 3", "unparsed_line"),
        ("     1.000 (0,010 ms): wal/7 fsync(fd: 3) = 0", "unparsed_line"),
        ("         ? (         ): wal/7  ... [continued]: fsync()) = 0", "unparsed_line"),
    ],
)
def test_what_is_not_used_is_counted(line: str, reason: str, tmp_path: Path) -> None:
    good = "     5.000 ( 0.010 ms): wal/7 fsync(fd: 3)    = 0\n"
    tables = core(tmp_path, f"{line}\n{good}".encode(), source="perf-trace")
    assert reason in losses(tables)
    assert rows(tables) == [(5_000_000, "fsync", 7, None, 10_000, 0)]


def test_msync_that_does_not_wait_is_no_sync(tmp_path: Path) -> None:
    lines = (
        f"     {n}.000 ( 0.010 ms): db/7 msync(start: 0x7f00, len: 4096, flags: {flags}) = 0\n"
        for n, flags in enumerate(["SYNC", "ASYNC", "SYNC|INVALIDATE"], 1)
    )
    tables = core(tmp_path, "".join(lines).encode())
    assert [row[0] for row in rows(tables)] == [1_000_000, 3_000_000]
