"""Commits of a journal by its own thread: those of recordings against their text, in every format of tracepoints."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report import run_query

from tests.coretools import ROOT, convert, core
from tests.reference import perfdata, tracedat
from tests.reference.tracedat import Event, World

DATA = ROOT / "tests" / "data"
SAMPLES = ROOT / "kernel-patch" / "samples"
TRACECMD = DATA / "tracecmd"
JBD2 = re.compile(
    r"^ *(?P<comm>\S+)-(?P<tid>\d+) .*? (?P<s>\d+)\.(?P<us>\d{6}): +jbd2_(?P<edge>start|end)_commit: "
    r"+dev (?P<dev>\S+) transaction (?P<transaction>\d+) ",
    re.M,
)
PATCHED = re.compile(
    r"^ *(?P<comm>\S+)-(?P<tid>\d+) .*? (?P<s>\d+)\.(?P<us>\d{6}): +commit_(?P<edge>start|end): "
    r"+id=\d+ dev=(?P<dev>\S+) tid=(?P<transaction>\d+)",
    re.M,
)

Rows = list[dict[str, Any]]


def commits_of(text: str, line: re.Pattern[str] = JBD2) -> list[tuple[Any, ...]]:
    """(start and end in µs, thread, name, device, transaction) of each commit, by the text only."""
    found, open_ = [], {}
    for row in line.finditer(text):
        us = int(row["s"] + row["us"])
        key = (int(row["tid"]), row["comm"], row["dev"], int(row["transaction"]))
        if row["edge"] == "start":
            open_[key] = us
        else:
            found.append((open_.pop(key), us, *key))
    assert not open_
    return found


def as_text(rows: Rows, dev: str | None = None) -> list[tuple[Any, ...]]:
    assert not [row for row in rows if row["incomplete"]]
    return [
        (
            (row["ts_ns"] + 500) // 1000,
            (row["ts_ns"] + row["dur_ns"] + 500) // 1000,
            row["tid"],
            row["comm"],
            dev or row["dev"],
            row["transaction_id"],
        )
        for row in rows
    ]


@pytest.mark.parametrize(
    "name", ["small1.trace", "small1.trace_pipe", "sqlite_wal_full.trace", "uring.report"]
)
def test_commits_of_a_text_are_those_that_it_prints(name: str, tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "ftrace" / f"{name}.txt.gz").read_bytes())
    result = core(tmp_path, text)
    expected = commits_of(text.decode())
    assert len(expected) > 30
    assert as_text(result["journal"]) == expected
    # They belong to no request.
    assert all(row["journal_ns"] is None for row in result["sync"])
    assert result["wait"] == []


def test_commits_of_a_trace_dat_are_those_of_its_report(tmp_path: Path) -> None:
    text = gzip.decompress((TRACECMD / "small4.report.txt.gz").read_bytes()).decode()
    rows = core(tmp_path, (TRACECMD / "small4.dat").read_bytes())["journal"]
    expected = commits_of(text)
    assert len(expected) == 51
    assert as_text(rows) == expected


@pytest.mark.parametrize("name", ["ext4", "ext4-fast-commit", "ext4-journal", "xfs"])
def test_commits_of_a_patched_kernel_are_those_of_threads_of_their_own(
    name: str, tmp_path: Path
) -> None:
    text = (SAMPLES / f"{name}.trace.txt").read_text()
    result = core(tmp_path, text.encode())
    expected = commits_of(text, PATCHED)
    assert as_text(result["journal"], dev=expected[0][4]) == expected
    assert {row["dev"] for row in result["journal"]} == {None}
    assert not {row["tid"] for row in result["journal"]} & {row["tid"] for row in result["sync"]}


DEV = "254,16"


def events(*of: tuple[Any, ...], **more: Any) -> bytes:
    """A low-level log of (time, event, transaction[, thread])."""
    rows = [
        {"ts_ns": ts, "tid": tid[0] if tid else 7, "comm": "jbd2/a", "event": f"jbd2_{edge}_commit"}
        | {"source": "ftrace", "dev": DEV, "transaction": transaction}
        | more
        for ts, edge, transaction, *tid in of
    ]
    return "\n".join(map(json.dumps, rows)).encode()


def spans(result: dict[str, Rows]) -> list[tuple[Any, ...]]:
    keys = ("ts_ns", "dur_ns", "transaction_id", "incomplete")
    return [tuple(row[key] for key in keys) for row in result["journal"]]


def test_a_commit_with_one_end_is_incomplete(tmp_path: Path) -> None:
    log = events(
        (100, "end", 4), (200, "start", 5), (250, "end", 5),
        (300, "start", 6), (400, "start", 7), (450, "end", 8), (500, "start", 9),
    )  # fmt: skip
    assert spans(core(tmp_path, log)) == [
        (100, None, 4, "start"),
        (200, 50, 5, None),
        (300, None, 6, "end"),
        (400, None, 7, "end"),
        (450, None, 8, "start"),
        (500, None, 9, "end"),
    ]


def test_threads_commit_at_the_same_time(tmp_path: Path) -> None:
    log = events((100, "start", 5, 7), (110, "start", 5, 8), (120, "end", 5, 7), (130, "end", 5, 8))
    assert spans(core(tmp_path, log)) == [(100, 20, 5, None), (110, 20, 5, None)]


def test_a_commit_that_two_tracepoints_or_logs_record_is_one(tmp_path: Path) -> None:
    patched = [
        {"ts_ns": ts, "tid": 7, "event": event, "source": "ftrace", "id": 44, "transaction": 5}
        for ts, event in ((101, "commit_start"), (199, "commit_end"))
    ]
    rows = [*map(json.loads, events((100, "start", 5), (200, "end", 5)).splitlines()), *patched]
    rows.sort(key=lambda row: row["ts_ns"])
    result = core(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert spans(result) == [(100, 99, 5, None)]
    assert result["journal"][0]["dev"] == DEV
    assert {row["reason"]: row["count"] for row in result["loss"]} == {"duplicate": 2}


def test_the_low_level_log_gives_the_same_commits(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "ftrace" / "small1.trace.txt.gz").read_bytes())
    log = convert(tmp_path, text, "out.events.jsonl").read_bytes()
    lines = [line for line in log.splitlines() if b'"jbd2_end_commit"' in line]
    assert len(lines) == 50
    assert all({"dev", "transaction", "sync_commit", "head"} <= json.loads(line).keys() or b"sync" in line for line in lines)  # fmt: skip
    assert core(tmp_path, log)["journal"] == core(tmp_path, text)["journal"]


def test_perf_data_and_trace_dat_have_the_same_commits(tmp_path: Path) -> None:
    fields = {"dev": 254 << 20 | 16, "sync_commit": 0, "transaction": 9}
    made = World(
        [
            Event(1000, 0, 77, "jbd2:jbd2_start_commit", fields),
            Event(4000, 1, 77, "jbd2:jbd2_end_commit", fields | {"head": 3}),
        ],
        {77: "jbd2/vda-8"},
    )
    for data in (
        tracedat.file(made, tracedat.Shape()),
        perfdata.file(made, perfdata.PerfShape(pipe=True)),
        perfdata.file(made, perfdata.PerfShape(big_endian=True, shuffled=True)),
    ):
        (row,) = core(tmp_path, data)["journal"]
        assert (row["ts_ns"], row["dur_ns"], row["tid"]) == (1000, 3000, 77)
        assert (row["comm"], row["dev"], row["transaction_id"]) == ("jbd2/vda-8", "254,16", 9)


def test_a_trace_has_them_on_the_track_of_their_journal(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "ftrace" / "small1.trace.txt.gz").read_bytes())
    trace = convert(tmp_path, text, "x.pftrace")
    tables = core(tmp_path, text)
    with opened(str(trace), Reading(), "embedded") as engine:
        tracks = run_query(
            engine,
            "SELECT track.name, count(*) AS n FROM slice JOIN track ON track.id = slice.track_id"
            " WHERE category = 'syncline.commit' GROUP BY 1",
        ).rows
        assert tracks == [("Journal (254,16)", 50)]
        rows = run_query(engine, "SELECT * FROM syncline_journal").rows
    assert rows == [(*row.values(), "") for row in tables["journal"]]


def test_a_btetto_log_has_them(tmp_path: Path) -> None:
    """The events of `tracepoint:jbd2:*`, as btetto's scripts print them."""
    lines = [
        {"type": "value", "data": ["track_event", ["name", f"jbd2_{edge}_commit"], ["type", "INSTANT"], ["ts", ts],
         ["pid", 74], ["tid", 74], ["thread_name", "jbd2/a"], ["dev", 266338320], ["transaction", 5]]}
        for ts, edge in ((100, "start"), (300, "end"))
    ]  # fmt: skip
    head = {"type": "attached_probes", "data": {"probes": 2}}
    log = "\n".join(map(json.dumps, [head, *lines])).encode()
    (row,) = core(tmp_path, log)["journal"]
    assert (row["ts_ns"], row["dur_ns"], row["dev"], row["transaction_id"]) == (100, 200, DEV, 5)


CHANGES = f"""\
# tracer: nop
    app-10 [000] ..... 1.000000: jbd2_handle_stats: dev 254,16 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 1
    rm-11 [000] ..... 1.000010: jbd2_handle_stats: dev 254,16 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 2
    rm-11 [000] ..... 1.000011: jbd2_handle_stats: dev 254,16 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 0
    rm-11 [000] ..... 1.000012: jbd2_handle_stats: dev 254,16 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks -3
    rm-11 [000] ..... 1.000013: jbd2_handle_stats: dev 254,32 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 5
    kworker/u8:1-12 [000] ..... 1.000020: jbd2_handle_stats: dev 254,16 tid 7 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 1
    jbd2/vdb-8-99 [000] ..... 1.000100: jbd2_start_commit: dev {DEV} transaction 7 sync 0
    rm-11 [000] ..... 1.000110: jbd2_handle_stats: dev 254,16 tid 8 type 2 line_no 5 interval 0 sync 0 requested_blocks 8 dirtied_blocks 1
    jbd2/vdb-8-99 [000] ..... 1.000150: block_bio_queue: {DEV} WS 800 + 8 [jbd2/vdb-8]
    jbd2/vdb-8-99 [000] ..... 1.000200: jbd2_commit_logging: dev {DEV} transaction 7 sync 0
"""  # fmt: skip


BLOCKS = "".join(
    f"    jbd2/vdb-8-99 [000] ..... 1.0002{1 + n}0: block_bio_queue: {DEV} {rwbs} {900 + 8 * n} + 8 [jbd2/vdb-8]\n"
    f"    <idle>-0 [000] ..... 1.0003{1 + n}0: block_rq_complete: {DEV} {rwbs} () {900 + 8 * n} + 8 none,0,0 [0]\n"
    for n, rwbs in enumerate(["WSM"] * 5 + ["FWFSM"])
)
COMMIT_END = f"    jbd2/vdb-8-99 [000] ..... 1.000500: jbd2_end_commit: dev {DEV} transaction 7 sync 0 head 7\n"
# The journal writes a list first, then the blocks in the order in which handles were closed, and last what makes the commit whole.
CHANGERS = {800: None, 900: None, 908: "app", 916: "rm", 924: "rm", 932: None, 940: None}


def changers(folder: Path, lines: list[str]) -> dict[int, str | None]:
    return {row["sector"]: row["writers"] for row in core(folder, "".join(lines).encode())["bio"]}


def test_blocks_of_the_journal_have_who_changed_them(tmp_path: Path) -> None:
    text = (CHANGES + BLOCKS + COMMIT_END).encode()
    assert changers(tmp_path, [text.decode()]) == CHANGERS
    assert changers(tmp_path, [convert(tmp_path, text, "log.events.jsonl").read_text()]) == CHANGERS


def test_a_block_of_the_journal_has_nobody_else_if_an_event_is_lost(tmp_path: Path) -> None:
    """Nor if the recording ends early."""
    lines = (CHANGES + BLOCKS + COMMIT_END).splitlines(keepends=True)
    known = 0
    for at in range(2, len(lines)):
        for kept in (lines[:at] + lines[at + 1 :], lines[:at]):
            found = changers(tmp_path, kept)
            assert {
                sector: who
                for sector, who in found.items()
                if who not in (None, CHANGERS.get(sector))
            } == {}, lines[at]
            known += any(found.values())
    # What does not matter: handles without a change, of another journal, or of the next transaction; ends; and data.
    assert known > 5
