"""The tables of syncsnoop: recordings against what the program did, generated tables, and damaged ones."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import Rows, core, syncs
from tests.reference import syncsnoop
from tests.reference.syncsnoop import SECOND
from tests.test_commands import run

DATA = Path(__file__).parent / "data/syncsnoop"
RECORDINGS = sorted(path.name for path in DATA.glob("*.txt"))
HEAD = "Tracing sync syscalls... Hit Ctrl-C to end.\nTIME      PID    COMM             EVENT\n"
ROW = "02:02:17  27933  sync             tracepoint:syscalls:sys_enter_sync\n"


def rows(tables: dict[str, Rows]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row[c] for c in ("ts_ns", "pid", "comm", "op")) for row in tables["sync"])


def expected(calls: list[syncsnoop.Call]) -> Counter[tuple[object, ...]]:
    return Counter((c.ts, c.pid, c.comm, c.op) for c in calls)


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_calls_of_the_second_reader(name: str, tmp_path: Path) -> None:
    text = (DATA / name).read_text()
    tables = core(tmp_path, text.encode())
    assert rows(tables) == expected(syncsnoop.read(text))
    assert set(losses(tables)) <= {"ends_not_recorded"}
    # Nothing says how long a call took, or what it did.
    for row in tables["sync"]:
        for column in ("dur_ns", "syscall_ns", "ret", "tid", "path", "fs", "bytes", "bios"):
            assert row[column] is None, column
        assert row["incomplete"] == "end"
        assert row["confidence"] == "unknown"


@pytest.mark.parametrize("name", ["libbpf.txt", "bpftrace.txt"])
def test_a_recording_has_the_calls_of_the_program(name: str, tmp_path: Path) -> None:
    """Writes with O_DSYNC are no calls that sync. A `sync` followed the program."""
    truth = [
        line.split("\t") for line in (DATA / name).with_suffix(".truth").read_text().splitlines()
    ]
    calls = Counter((comm, what) for _, comm, _, what, *_ in truth if what != "O_DSYNC")
    found = core(tmp_path, (DATA / name).read_bytes())["sync"]
    assert Counter((row["comm"], row["op"]) for row in found) == calls + Counter([("sync", "sync")])


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_table_gives_its_calls(seed: int, tmp_path: Path) -> None:
    text, calls = syncsnoop.generated(random.Random(seed))
    assert expected(syncsnoop.read(text)) == expected(calls)
    tables = core(tmp_path, text.encode())
    assert rows(tables) == expected(calls)
    assert set(losses(tables)) == {"ends_not_recorded"}


def test_a_table_that_is_cut_anywhere_gives_no_wrong_call(tmp_path: Path) -> None:
    text = (HEAD + ROW + ROW.replace("enter_sync", "enter_fdatasync")).encode()
    whole = rows(core(tmp_path, text))
    for end in range(1, len(text)):
        try:
            found = rows({"sync": syncs(tmp_path, text[:end])})
        except _core.CoreError as error:
            assert error.args[2] == "input"
            continue
        assert not found - whole, end


@pytest.mark.parametrize(
    "line",
    [
        ROW.replace("enter_sync", "enter_write"),
        ROW.replace("27933", "x"),
        ROW.replace("02:02:17", "02:02"),
        "06:35:01 postgres       2211   S 0       0          61.22 wal\n",
    ],
)
def test_a_line_that_is_not_used_is_counted(line: str, tmp_path: Path) -> None:
    tables = core(tmp_path, (HEAD + line + ROW).encode())
    assert losses(tables) == {"unparsed_line": 1, "ends_not_recorded": 1}
    assert len(tables["sync"]) == 1


def test_lost_events_are_a_loss(tmp_path: Path) -> None:
    text = HEAD + "Lost 7 events\n" + ROW + "Lost 3 events on CPU #1!\nPossibly lost 2 samples\n"
    assert losses(core(tmp_path, text.encode()))["lost_by_tracer"] == 12


def test_times_of_day_go_on_after_midnight(tmp_path: Path) -> None:
    text = HEAD + ROW.replace("02:02:17", "23:59:59") + ROW.replace("02:02:17", "00:00:01")
    assert [row["ts_ns"] for row in core(tmp_path, text.encode())["sync"]] == [
        86_399 * SECOND,
        86_401 * SECOND,
    ]


def test_the_low_level_log_gives_the_same(tmp_path: Path) -> None:
    for name in RECORDINGS:
        events = tmp_path / "x.events.jsonl"
        run("convert", str(DATA / name), "-o", str(events))
        assert {json.loads(line)["source"] for line in events.read_text().splitlines()} == {
            "syncsnoop"
        }
        assert rows(core(tmp_path, events.read_bytes())) == rows(
            core(tmp_path, (DATA / name).read_bytes())
        )
