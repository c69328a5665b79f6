"""Waits for commits where a recording holds commits and no waits: what is inferred, against recordings that hold both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.report.run import run_query

from tests import coretools
from tests.known_truth import unpacked
from tests.reference import inferred_waits as reference

Row = dict[str, Any]

# Each route to a commit: of its own sync, shared with other threads, of another thread, none (overwrites in place).
CASES = (
    *("forced-fsync", "forced-freeze", "forced-sync", "forced-syncfs", "stacked", "empty"),
    *("group-4", "group-staggered", "four-files", "neighbour-direct", "delay-ext4"),
    *("postgres", "postgres-neighbour", "commit-timer", "fdatasync-in-place", "fsync-in-place"),
)


def low_level_log(recording: Path, folder: Path) -> list[Row]:
    Reading().convert([str(recording)], f"{folder}/low.events.jsonl")
    return [json.loads(line) for line in (folder / "low.events.jsonl").open()]


def as_stock(log: list[Row], bios: bool, states: bool) -> list[Row]:
    """The events that a recording of stock tracepoints would hold: of the sync functions, bios, commits, the scheduler."""
    found: list[Row] = []
    inside: dict[int, Row] = {}
    written: dict[str, Row] = {}
    for event in log:
        name = event["event"]
        common = {key: event[key] for key in ("ts_ns", "tid", "comm", "source") if key in event}
        if name == "fsync_enter" and "ext4" in event["fs"]:
            file = {"dev": device(event["dev"]), "ino": event["ino"]}
            inside[event["tid"]] = file
            start = {"event": "ext4_sync_file_enter", "fs": "ext4", "datasync": event["datasync"]}
            found.append(common | start | file)
        elif name == "fsync_exit" and event["tid"] in inside:
            end = {"event": "ext4_sync_file_exit", "ret": event["ret"]}
            found.append(common | end | inside.pop(event["tid"]))
        elif name == "bio" and bios and event["bytes"] and event["opf"] & 0xFF == 1:
            place = {"dev": device(event["dev"]), "sector": event["sector"], "bytes": event["bytes"], "rwbs": "WS"}  # fmt: skip
            written[event["bio"]] = place
            found.append(common | {"event": "block_bio_queue"} | place)
        elif name == "bio_end" and event["bio"] in written and event.get("remaining", 1) <= 1:
            found.append(common | {"event": "block_rq_complete"} | written.pop(event["bio"]))
        elif name.startswith("jbd2_") or (states and name.startswith("sched_")):
            found.append(event)
    return found


def device(number: int) -> str:
    return f"{number >> 20},{number & 0xFFFFF}"


def tables(log: list[Row], folder: Path) -> dict[str, coretools.Rows]:
    (folder / "in.events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in log))
    _core.convert([f"{folder}/in.events.jsonl"], f"{folder}/out/")
    return coretools.tables(folder / "out")


def commits_waited_for(result: dict[str, coretools.Rows]) -> dict[tuple[int, int], int | None]:
    """The transaction that each sync of ext4 waited for last, by its thread and its end."""
    last = {}
    for wait in sorted(result["wait"], key=lambda wait: wait["ts_ns"]):
        if wait["wait"] == "commit wait":
            last[wait["sync_id"]] = wait["transaction_id"]
    return {
        (row["tid"], row["ts_ns"] + row["dur_ns"]): last.get(row["sync_id"])
        for row in result["sync"]
        if row["fs"] == "ext4" and row["dur_ns"] is not None and row["ino"] is not None
    }


@pytest.mark.parametrize("bios", [True, False])
@pytest.mark.parametrize("states", [True, False])
def test_waits_are_inferred_that_were_recorded(bios: bool, states: bool, tmp_path: Path) -> None:
    waited, right, wrong, missed = 0, 0, 0, 0
    for case in CASES:
        recording = unpacked(case, tmp_path)
        log = low_level_log(recording, tmp_path)
        Reading().convert([str(recording)], f"{tmp_path}/exact/")
        truth = commits_waited_for(coretools.tables(tmp_path / "exact"))
        stock = as_stock(log, bios, states)
        result = tables(stock, tmp_path)
        assert reference.of_tables(result, stock) == {
            wait["sync_id"]: (wait["ts_ns"], wait["ts_ns"] + wait["dur_ns"], wait["transaction_id"])
            for wait in result["wait"]
        }
        found = commits_waited_for(result)
        # sync_file_range and sync have no tracepoint of their own.
        assert found.keys() <= truth.keys()
        for key, transaction in found.items():
            waited += truth[key] is not None
            right += transaction is not None and transaction == truth[key]
            wrong += transaction is not None and transaction != truth[key]
            missed += transaction is None and truth[key] is not None
        assert {row["confidence"] for row in result["wait"]} <= {"inferred"}
        check_waits(result)
    assert waited > 100
    # A thread that was woken by its commit shows it. Otherwise a commit may happen to end just before a flush does.
    assert wrong == 0 if states else wrong <= waited * 0.03
    assert missed <= waited * 0.1
    assert right >= waited - missed - wrong


def check_waits(result: dict[str, coretools.Rows]) -> None:
    """An inferred wait is a part of its commit, inside of its request and after its last bio."""
    syncs = {row["sync_id"]: row for row in result["sync"]}
    commits = {row["commit_id"]: row for row in result["journal"]}
    for wait in result["wait"]:
        sync, commit = syncs[wait["sync_id"]], commits[wait["commit_id"]]
        end = wait["ts_ns"] + wait["dur_ns"]
        assert commit["dev"] == sync["dev"]
        assert commit["ts_ns"] <= wait["ts_ns"] < end == commit["ts_ns"] + commit["dur_ns"]
        assert sync["start_ns"] <= wait["ts_ns"]
        assert end <= sync["ts_ns"] + sync["dur_ns"]
        if sync["bios"]:
            assert wait["ts_ns"] >= sync["ts_ns"] + sync["dur_ns"] - sync["after_complete_ns"]
        assert sync["confidence"] == "inferred"


# One sync of 10.1 ms from 5415.3075 s on, whose commit lasts 8.93 ms and ends 30 us before it.
BEGIN = (5415.307515, 5881, "ext4_sync_file_enter: dev 259,0 ino 16 parent 2 datasync 0")
END = (5415.317606, 5881, "ext4_sync_file_exit: dev 259,0 ino 16 ret 0")
COMMIT = (
    (5415.308643, 582, "jbd2_start_commit: dev 259,0 transaction 23 sync 0"),
    (5415.308669, 582, "jbd2_commit_locking: dev 259,0 transaction 23 sync 0"),
    (5415.308728, 582, "jbd2_commit_flushing: dev 259,0 transaction 23 sync 0"),
    (5415.308742, 582, "jbd2_commit_logging: dev 259,0 transaction 23 sync 0"),
    (5415.317576, 582, "jbd2_end_commit: dev 259,0 transaction 23 sync 0 head 10"),
)
STEPS = [("commit locking", 85), ("commit flushing", 14), ("commit logging", 8834)]
Event = tuple[float, int, str]


def bio(submit: float, complete: float) -> tuple[Event, ...]:
    return (
        (submit, 5881, "block_bio_queue: 259,0 WS 8000 + 8 [test]"),
        (submit, 5881, "block_rq_issue: 259,0 WS 4096 () 8000 + 8 [test]"),
        (complete, 0, "block_rq_complete: 259,0 WS () 8000 + 8 [0]"),
    )


def text(*events: Event, perf: bool = False) -> str:
    lines = []
    for ts, tid, event in sorted(events, key=lambda event: event[0]):
        system = event.split("_")[0]
        if perf:
            lines.append(f"x  {tid} [002]  {ts:.6f}: {system}:{event}\n")
        else:
            lines.append(f"            x-{tid}   [002] ...1  {ts:.6f}: {event}\n")
    return "".join(lines)


def of_text(folder: Path, *events: Event, perf: bool = False) -> dict[str, coretools.Rows]:
    return coretools.core(folder, text(*events, perf=perf).encode())


def named(result: dict[str, coretools.Rows]) -> list[tuple[str, int]]:
    return [(row["phase"], row["dur_ns"] // 1000) for row in result["phase"]]


@pytest.mark.parametrize("perf", [False, True])
def test_a_commit_that_ends_just_before_the_sync_was_waited_for(perf: bool, tmp_path: Path) -> None:
    result = of_text(tmp_path, BEGIN, *COMMIT, END, perf=perf)
    (wait,), (sync,) = result["wait"], result["sync"]
    assert wait == {
        "sync_id": 1, "number": 1, "wait": "commit wait", "ts_ns": 5415308643000, "dur_ns": 8933000,
        "transaction_id": 23, "commit_id": 1, "confidence": "inferred",
    }  # fmt: skip
    assert (sync["confidence"], sync["journal_ns"]) == ("inferred", None)
    assert named(result) == [*STEPS, ("residue", 1158)]


def test_only_the_time_after_the_last_bio_is_spent_on_the_commit(tmp_path: Path) -> None:
    result = of_text(tmp_path, BEGIN, *bio(5415.3076, 5415.3096), *COMMIT, END)
    assert named(result) == [
        ("before submit", 85), ("device", 2000), ("commit logging", 7976), ("after completion", 30), ("residue", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "events",
    [
        # Another device.
        (BEGIN, *((ts, tid, event.replace("259,0", "259,1")) for ts, tid, event in COMMIT), END),
        # It ends after the sync.
        (BEGIN, *COMMIT, (5415.317570, *END[1:])),
        # It ended before the sync began.
        ((5415.3176, *BEGIN[1:]), *COMMIT, END),
        # The last bio is complete after it.
        (BEGIN, *bio(5415.3076, 5415.3176), *COMMIT, END),
        # The completion of the bio was lost.
        (BEGIN, *bio(5415.3076, 5415.3176)[:2], *COMMIT, END),
        # The sync lasted for longer than it can have waited.
        (BEGIN, *COMMIT, (5415.34, *END[1:])),
        (BEGIN, *bio(5415.3076, 5415.31755), *COMMIT, END),
        # Its start is not in the log.
        (BEGIN, *COMMIT[1:], END),
    ],
)
def test_other_commits_were_not_waited_for(events: tuple[Event, ...], tmp_path: Path) -> None:
    result = of_text(tmp_path, *events)
    assert (result["wait"], len(result["sync"])) == ([], 1)
    assert not [name for name, _ in named(result) if "commit" in name]


def test_the_last_of_several_commits_was_waited_for(tmp_path: Path) -> None:
    before = [(ts - 0.01, tid, event.replace(" 23 ", " 22 ")) for ts, tid, event in COMMIT]
    result = of_text(tmp_path, (5415.3, *BEGIN[1:]), *before, *COMMIT, END)
    assert [row["transaction_id"] for row in result["wait"]] == [23]


def test_a_thread_that_was_not_woken_by_the_commit_did_not_wait_for_it(tmp_path: Path) -> None:
    def blocked(until: float) -> tuple[Event, ...]:
        def switch(prev: int, after: int) -> str:
            return f"sched_switch: prev_comm=x prev_pid={prev} prev_prio=120 prev_state=D ==> next_comm=x next_pid={after} next_prio=120"

        return (
            (5415.3086, 5881, switch(5881, 0)),
            (until, 582, "sched_waking: comm=x pid=5881 prio=120 target_cpu=000"),
            (until + 0.000005, 0, switch(0, 5881)),
        )

    woken = of_text(tmp_path, BEGIN, *COMMIT, *blocked(5415.317580), END)
    assert [row["transaction_id"] for row in woken["wait"]] == [23]
    # It may have run for long since then.
    woken = of_text(tmp_path, BEGIN, *COMMIT, *blocked(5415.317580), (5415.34, *END[1:]))
    assert [row["transaction_id"] for row in woken["wait"]] == [23]
    for until, end in ((5415.3175, 5415.317606), (5415.3187, 5415.319)):
        result = of_text(tmp_path, BEGIN, *COMMIT, *blocked(until), (end, *END[1:]))
        assert result["wait"] == []


def test_recorded_waits_are_all_waits(tmp_path: Path) -> None:
    """A patched kernel and probes report the wait. If they report none, there was none."""
    start = "sync_start: id=190 start=0 end=9 datasync=0 dev=259,0 ino=16 path=/a"
    patched = (5415.307515, 5881, start), (5415.317606, 5881, "sync_end: id=190 ret=0")
    probes = (
        (5415.307515, 5881, "fsync_enter: (ext4_sync_file+0x4/0x90) dev=271581184 ino=16 gen=1 datasync=0"),
        (5415.317606, 5881, "fsync_exit: (vfs_fsync+0x4/0x90 <- ext4_sync_file) ret=0"),
    )  # fmt: skip
    for begin, end in (patched, probes):
        result = of_text(tmp_path, begin, *COMMIT, end)
        assert ([row["dev"] for row in result["sync"]], result["wait"]) == (["259,0"], [])


def test_a_trace_keeps_the_confidence(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(text(BEGIN, *bio(5415.3076, 5415.3096), *COMMIT, END))
    _core.convert([f"{tmp_path}/in.txt"], f"{tmp_path}/out.pftrace")
    _core.convert([f"{tmp_path}/in.txt"], f"{tmp_path}/out/")
    expected = {row["confidence"] for row in coretools.tables(tmp_path / "out")["wait"]}
    assert expected == {"inferred"}
    with (
        opened(f"{tmp_path}/out.pftrace", Reading(), engine="embedded") as trace,
        opened(f"{tmp_path}/out.pftrace", Reading(), engine="duckdb") as read_back,
        opened(f"{tmp_path}/out", Reading()) as columns,
    ):
        for table in ("wait", "phase", "journal", "sync"):
            sql = f"SELECT * FROM syncline_{table}"
            rows = run_query(columns, sql).rows
            assert rows
            assert run_query(trace, sql).rows == rows
            assert run_query(read_back, sql).rows == rows
