"""What sync requests wait for in addition to their data: commits and flushes, which the patched kernel records."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report import run_query

from tests import coretools
from tests.sqltools import same

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "kernel-patch" / "samples"
TEXT = re.compile(r" (?P<us>\d+\.\d{6}): (?P<event>\w+): (?P<data>.*)$", re.M)
JOURNAL = ("commit_wait", "fc", "fc_wait", "commit")
DEV = "254,16"


def spans_of(text: str) -> dict[int, dict[str, list[tuple[int, int]]]]:
    """(start, end) in ns, by request id and name of the event, parsed from the text only."""
    spans: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    open_: dict[tuple[int, str], int] = {}
    for line in TEXT.finditer(text):
        event, data = line["event"], line["data"]
        name, _, edge = event.rpartition("_")
        found = re.match(r"id=(\d+)", data)
        if found is None or edge not in ("start", "end"):
            continue
        ns = int(line["us"].replace(".", "")) * 1000
        if edge == "start":
            open_[int(found[1]), name] = ns
        else:
            spans[int(found[1])][name].append((open_.pop((int(found[1]), name)), ns))
    return spans


def union(spans: list[tuple[int, int]]) -> int:
    """Length of the union of the spans."""
    edges = sorted({edge for span in spans for edge in span})
    return sum(
        b - a
        for a, b in itertools.pairwise(edges)
        if any(start <= a and b <= end for start, end in spans)
    )


@pytest.mark.parametrize(
    "name", ["ext4", "ext4-fast-commit", "ext4-journal", "ext4-nojournal", "xfs", "f2fs"]
)
def test_waits_of_recordings_are_those_of_their_text(name: str, tmp_path: Path) -> None:
    log = SAMPLES / f"{name}.trace.txt"
    spans = spans_of(log.read_text())
    tables = coretools.tables(coretools.convert(tmp_path, log.read_bytes(), "t/", log.name))
    waits: dict[int, list[Any]] = defaultdict(list)
    for row in tables["wait"]:
        waits[row["sync_id"]].append(row)
    assert len(tables["sync"]) == 10
    for row in tables["sync"]:
        expected = spans[row["id"]]
        journal = [span for event in JOURNAL for span in expected[event]]
        assert row["journal_ns"] == union(journal)
        assert row["flush_ns"] == union(expected["flush"])
        found = sorted(
            (wait["ts_ns"], wait["ts_ns"] + wait["dur_ns"]) for wait in waits[row["sync_id"]]
        )
        assert found == sorted(journal + expected["flush"])
        if not row["incomplete"]:
            end = row["ts_ns"] + row["dur_ns"]
            data = (
                [(row["start_ns"] + row["before_submit_ns"], end - row["after_complete_ns"])]
                if row["bios"]
                else []
            )
            rest = (end - row["start_ns"]) - union(journal + expected["flush"] + data)
            assert row["other_ns"] == rest >= 0
    # Something waits in each recording, and the numbers of transactions increase.
    assert any(tables["wait"])
    if name in ("ext4", "xfs"):
        numbers = [row["transaction_id"] for row in tables["wait"] if row["wait"] == "commit wait"]
        assert numbers == sorted(numbers)
        assert len(numbers) >= 4


def test_waits_on_btrfs_are_unknown(tmp_path: Path) -> None:
    log = SAMPLES / "btrfs.trace.txt"
    tables = coretools.tables(coretools.convert(tmp_path, log.read_bytes(), "t/", log.name))
    assert {(row["journal_ns"], row["flush_ns"], row["other_ns"]) for row in tables["sync"]} == {
        (None,) * 3
    }
    assert [row for row in tables["loss"] if row["severity"] == "loss"] == []


def query(where: Path, sql: str) -> list[tuple[Any, ...]]:
    with opened(str(where), Reading(), perfetto=True) as engine:
        return run_query(engine, sql).rows


def event(ts: int, name: str, tid: int = 1, **fields: Any) -> dict[str, Any]:
    return {"ts_ns": ts, "tid": tid, "comm": "a", "event": name, "source": "trace-dat"} | fields


def start(ts: int, id_: int, tid: int = 1, fs: str = "ext4", ino: int = 12) -> dict[str, Any]:
    whole = {"id": id_, "start": 0, "end": 2**63 - 1, "datasync": 0, "dev": DEV, "fs": fs}
    return event(ts, "sync_start", tid, **whole) | ({"ino": ino, "path": "/f"} if ino else {})


def convert_events(events: list[dict[str, Any]], folder: Path) -> dict[str, list[dict[str, Any]]]:
    text = "\n".join(map(json.dumps, events)).encode()
    return coretools.tables(coretools.convert(folder, text, "t/", "x.events.jsonl"))


def row(tables: dict[str, Any], id_: int) -> tuple[Any, ...]:
    (found,) = (row for row in tables["sync"] if row["id"] == id_)
    return found["journal_ns"], found["flush_ns"], found["other_ns"]


def losses(tables: dict[str, Any]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


def test_a_wait_inside_another_is_counted_once(tmp_path: Path) -> None:
    tables = convert_events(
        [
            start(100, 7),
            event(110, "fc_start", id=7, transaction=3),
            event(120, "flush_start", id=7), event(130, "flush_end", id=7),
            event(140, "bio_add_folio", id=7, bio="0x1", start=0, len=4096),
            event(150, "bio_submit", id=7, bio="0x1", dev=DEV, sector=8),
            event(170, "bio_complete", tid=0, bio="0x1"),
            event(180, "fc_wait_start", id=7, transaction=3), event(190, "fc_wait_end", id=7),
            event(200, "fc_end", id=7),
            event(210, "commit_wait_start", id=7), event(260, "commit_wait_end", id=7, transaction=4),
            event(300, "sync_end", id=7, ret=0),
        ],
        tmp_path,
    )  # fmt: skip
    # Journal: 110-200 and 210-260. Flush: 120-130. Other: 200 - 140, because the flush, the wait and the bio are
    # inside the fast commit.
    assert row(tables, 7) == (140, 10, 60)
    assert [tuple(wait.values())[1:] for wait in tables["wait"]] == [
        (1, "fast commit", 110, 90, 3, None, "exact"),
        (2, "flush", 120, 10, None, None, "exact"),
        (3, "fast commit wait", 180, 10, 3, None, "exact"),
        (4, "commit wait", 210, 50, 4, None, "exact"),
    ]
    assert losses(tables) == {}


def test_unknown_waits_are_null_and_not_zero(tmp_path: Path) -> None:
    """Waits are unknown before the first wait event, and for file systems and passes without such events."""
    end = {"ret": 0}
    tables = convert_events(
        [
            start(100, 1), event(110, "sync_end", id=1, **end),
            start(200, 2), event(210, "flush_start", id=2), event(220, "flush_end", id=2), event(230, "sync_end", id=2, **end),
            start(300, 3), event(310, "sync_end", id=3, **end),
            start(400, 4, fs="btrfs"), event(410, "sync_end", id=4, **end),
            start(500, 5, fs="xfs"), event(510, "sync_end", id=5, **end),
            event(600, "sync_fs_start", id=6, dev=DEV, fs="xfs"), event(610, "sync_fs_end", id=6, **end),
            event(700, "sync_fs_start", id=8, dev=DEV, fs="ext4"), event(710, "sync_fs_end", id=8, **end),
            start(800, 9),
            event(890, "bio_add_folio", tid=2, id=0, bio="0x1", start=0, len=4096),
            event(900, "bio_submit", tid=2, id=0, bio="0x1", dev=DEV, sector=8, background=True),
            event(910, "bio_complete", tid=0, bio="0x1"),
        ],
        tmp_path,
    )  # fmt: skip
    assert {id_: row(tables, id_) for id_ in (1, 2, 3, 4, 5, 6, 8, 9)} == {
        1: (None, None, None),
        2: (0, 10, 20),
        3: (0, 0, 10),
        4: (None, None, None),
        5: (0, 0, 10),
        6: (None, 0, None),
        8: (0, 0, 10),
        9: (None, None, None),
    }
    assert losses(tables) == {"end_missing": 1}


def test_half_of_a_wait_is_a_loss_and_its_column_is_null(tmp_path: Path) -> None:
    end = {"ret": 0}
    tables = convert_events(
        [
            start(100, 1), event(110, "commit_wait_end", id=1), event(120, "sync_end", id=1, **end),
            start(200, 2), event(210, "flush_start", id=2), event(220, "sync_end", id=2, **end),
            start(300, 3), event(310, "flush_start", id=3), event(320, "commit_wait_start", id=3), event(330, "flush_end", id=3),
            event(340, "sync_end", id=3, **end),
            event(400, "commit_wait_start", id=44), event(410, "commit_wait_end", id=44),
            # The recording ends during this request.
            start(500, 5), event(510, "commit_wait_start", id=5),
        ],
        tmp_path,
    )  # fmt: skip
    assert row(tables, 1) == (None, 0, None)
    assert row(tables, 2) == (0, None, None)
    assert row(tables, 3) == (None, 20, None)
    assert row(tables, 5) == (None, None, None)
    assert losses(tables) == {"unmatched_wait": 5, "end_missing": 1}
    assert [(wait["wait"], wait["ts_ns"], wait["dur_ns"]) for wait in tables["wait"]] == [
        ("flush", 310, 20)
    ]


def test_a_wait_before_its_request_is_a_loss(tmp_path: Path) -> None:
    """A wait before the late start of its request does not count for it, but is reported as a loss."""
    tables = convert_events(
        [
            event(100, "bio_add_folio", id=1, bio="0x1", start=0, len=4096),
            event(110, "flush_start", id=1), event(120, "flush_end", id=1),
            start(130, 1),
            event(135, "commit_wait_start", id=1), event(145, "commit_wait_end", id=1),
            event(150, "bio_submit", id=1, bio="0x1", dev=DEV, sector=8),
            event(160, "bio_complete", tid=0, bio="0x1"),
            event(170, "sync_end", id=1, ret=0),
        ],
        tmp_path,
    )  # fmt: skip
    assert row(tables, 1) == (10, None, None)
    assert [(wait["wait"], wait["ts_ns"]) for wait in tables["wait"]] == [("commit wait", 135)]
    assert losses(tables) == {"unmatched_wait": 1}


def test_waits_of_other_threads_are_not_counted(tmp_path: Path) -> None:
    """The journal thread has its own id, a flusher thread working for syncfs that of the pass. Id 0 is no request."""
    tables = convert_events(
        [
            event(90, "wb_start", tid=4, id=50),
            event(95, "flush_start", tid=4, id=50), event(96, "flush_end", tid=4, id=50),
            start(100, 1),
            event(105, "flush_start", tid=3, id=1), event(108, "flush_end", tid=3, id=1),
            event(110, "commit_wait_start", id=1, transaction=2),
            event(120, "commit_start", tid=9, id=60, transaction=2),
            event(121, "bio_add_folio", tid=9, id=60, bio="0x2", start=0, len=4096),
            event(122, "bio_submit", tid=9, id=60, bio="0x2", dev=DEV, sector=8),
            event(125, "flush_start", tid=9, id=60), event(126, "flush_end", tid=9, id=60),
            event(128, "bio_complete", tid=0, bio="0x2"),
            event(130, "commit_end", tid=9, id=60),
            event(140, "commit_wait_end", id=1),
            event(150, "flush_start", tid=5, id=0), event(151, "flush_end", tid=5, id=0),
            event(160, "sync_end", id=1, ret=0),
            # A commit that began before the recording.
            event(170, "commit_end", tid=9, id=59),
        ],
        tmp_path,
    )  # fmt: skip
    assert row(tables, 1) == (30, 0, 30)
    assert len(tables["sync"]) == 1
    assert [bio["origin"] for bio in tables["bio"]] == ["background"]
    assert losses(tables) == {}


def test_a_commit_in_the_thread_of_a_request_belongs_to_the_request(tmp_path: Path) -> None:
    """f2fs makes its checkpoints this way. What the thread writes during the commit belongs to the request."""
    tables = convert_events(
        [
            start(100, 1, fs="f2fs"),
            event(110, "commit_start", id=1),
            event(120, "bio_add_folio", id=1, bio="0x2", start=0, len=4096),
            event(130, "bio_submit", id=1, bio="0x2", dev=DEV, sector=8),
            event(140, "bio_complete", tid=0, bio="0x2"),
            event(150, "commit_end", id=1, transaction=9),
            event(160, "sync_end", id=1, ret=0),
        ],
        tmp_path,
    )  # fmt: skip
    assert row(tables, 1) == (40, 0, 20)
    (sync,) = tables["sync"]
    assert (sync["bytes"], sync["incomplete"]) == (4096, None)
    assert [(wait["wait"], wait["transaction_id"]) for wait in tables["wait"]] == [("commit", 9)]


@pytest.mark.parametrize("name", ["ext4-fast-commit", "f2fs", "ext4-journal"])
def test_the_trace_and_the_log_have_the_same_waits(name: str, tmp_path: Path) -> None:
    """Also where a wait continues after the end of a phase and is drawn as several slices."""
    log = SAMPLES / f"{name}.trace.txt"
    first = coretools.convert(tmp_path, log.read_bytes(), "t/", log.name)
    trace = coretools.convert(tmp_path, log.read_bytes(), "t.pftrace", log.name)
    again = coretools.convert(tmp_path, log.read_bytes(), "t.events.jsonl", log.name)
    second = coretools.convert(tmp_path, again.read_bytes(), "u/", "t.events.jsonl")
    assert coretools.tables(first)["wait"] == coretools.tables(second)["wait"]
    sql = "SELECT sync_id, number, wait, ts_ns, dur_ns, transaction_id FROM syncline_wait ORDER BY sync_id, number"
    answers = [query(where, sql) for where in (first, trace)]
    assert answers[0]
    assert same(answers[0], answers[1])
    slices = query(
        trace, "SELECT COUNT(*), SUM(depth = 0) FROM slice WHERE category = 'syncline.wait'"
    )
    assert slices[0][0] >= len(answers[0])
    assert slices[0][1] == 0, "a wait stands in its request"
