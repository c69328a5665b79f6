"""The SQL: tables and reports give the same, correct rows in both engines.

A run is made by hand (tests/sqltools.py), written as a trace and as Parquet, and queried with
trace_processor and DuckDB. Comments derive the expected values.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from syncline.engine import Engine, EngineError, open_trace
from syncline.engine.columns import ColumnsEngine, open_columns
from syncline.formats import is_table_file, runs_in
from syncline.render import FORMATS, exporter, human, preface
from syncline.render.table import render as render_table
from syncline.report import (
    Column,
    Report,
    Table,
    UnknownReport,
    caveats,
    load,
    names,
    run_query,
    run_report,
    sql_root,
)
from syncline.report.catalogue import UNITS

from tests import sqltools
from tests.sqltools import FILES, NAMESPACE, SQL, Run, perfetto_tables, same

T = 1_000_000  # Not 0, which code might confuse with a missing time.


def one_run() -> Run:
    """Two threads of an unknown process; every kind of request.

    Time from T on, in ns; `=` in a call, and what each wrote:

        thread 1   r1 =====          r3 ==========          r6 =====
        thread 2      r2 =====                 r4 =?   r5 ===============
                   0  50 100 150     200       400 500 600 650   750     900
    """
    run = Run()
    save = "main;save;fsync"
    run.add(T, 100, bytes=4096, folios=1, bios=1, ranges=1, writeback_ns=40, stack=save)
    run.add(T + 50, 100, tid=2, stack="main;save")
    run.add(
        *(T + 200, 200),
        **{"op": "fdatasync", "datasync": True, "path": "/g", "stack": save, "writeback_ns": 100},
        **{"bytes": 12288, "folios": 3, "bios": 2, "ranges": 2},
        **{"first_offset": 0, "last_offset": 20480, "before_submit_ns": 20},
        after_complete_ns=70,
    )
    run.add(T + 500, None, tid=2, incomplete="end", bytes=4096, folios=1, bios=1, ranges=1)
    run.add(
        *(T + 600, 300),
        **{"tid": 2, "incomplete": "bio", "writeback_ns": None, "confidence": "inferred"},
        **{"bytes": 4096, "folios": 1, "bios": 1, "ranges": 1, "id": 2**64 - 1},
    )
    # io_uring: no syscall, and no path.
    run.add(T + 650, 100, call=False, path=None, dev="254,16", ino=7, comm="iou", datasync=None)
    run.call.append(
        {"call_id": 6, "ts_ns": T + 1000, "dur_ns": 5, "tid": 1, "comm": "app", "op": "syncfs"}
        | {"ret": -5, "stack": "main;other", "sync_id": None, "unmatched": True}
    )
    plain = {"id": 1001, "bio": "0xff1", "tid": 1, "comm": "app", "origin": "sync"}
    run.bio = [
        plain
        | {"bio_id": 1, "sync_id": 1, "ts_ns": T + 20, "dur_ns": 40, "bytes": 4096, "folios": 1}
        | {"ranges": 1, "first_offset": 0, "last_offset": 4096, "confidence": "exact"}
        | {"dev": "254,16", "sector": 8},
        plain
        | {"bio_id": 2, "sync_id": 5, "id": 2**64 - 1, "ts_ns": T + 620, "dur_ns": None}
        | {"bytes": 4096, "folios": 1, "ranges": 1, "confidence": "exact", "incomplete": "end"},
        plain
        | {"bio_id": 3, "sync_id": None, "id": 0, "ts_ns": T + 700, "dur_ns": 9, "bytes": 65536}
        | {"folios": 16, "ranges": 1, "origin": "background", "tid": 9, "comm": "kworker/u4:1"},
    ]
    run.loss = [
        {"reason": "never_completed", "severity": "loss", "count": 1, "first_ts_ns": T + 620}
        | {"last_ts_ns": T + 620, "example": None, "meaning": "The completion is not in the log."},
        {"reason": "unparsed_line", "severity": "loss", "count": 2, "first_ts_ns": None}
        | {"last_ts_ns": None, "example": "a.log:7: x | y", "meaning": "Not of the format."},
        {"reason": "unmatched_call", "severity": "info", "count": 1, "first_ts_ns": T + 1000}
        | {"last_ts_ns": T + 1000, "example": None, "meaning": "A call with no request."},
    ]
    run.meta |= {"lines": "50", "events": "45", "events.bio_submit": "3", "source": "bpftrace"}
    return run


def marked() -> Run:
    """one_run with marks: two that overlap, one without a request."""
    run = one_run()
    run.mark = [
        {"mark_id": 1, "ts_ns": T, "dur_ns": 450, "name": "load 1"},
        {"mark_id": 2, "ts_ns": T + 200, "dur_ns": 700, "name": "load 2"},
        {"mark_id": 3, "ts_ns": T + 5000, "dur_ns": 10, "name": "idle"},
    ]
    return run


def processes() -> Run:
    """Two processes with the same name and one without a name; threads are known."""
    run = Run()
    for pid, process, tid, ts in (
        *((10, "db", 11, 0), (10, "db", 12, 50), (20, "db", 21, 50), (30, None, 31, 60)),
        *((10, "db", 11, 300), (20, "db", 21, 1000), (30, None, 32, 110)),
    ):
        run.add(T + ts, 100, pid=pid, tid=tid, process=process, comm=f"t{tid}")
    return run


def process_ids() -> Run:
    """A log whose column is a process id: one process, and its requests overlap."""
    run = Run()
    for ts in (0, 50, 60, 400):
        run.add(T + ts, 100, tid=None, pid=10, process="db", comm="db")
    return run


def cut_off() -> Run:
    """No request is complete, also not in the only mark."""
    run = Run()
    run.add(T, None, incomplete="start", call=False, confidence="unknown")
    run.add(T + 100, None, incomplete="end", tid=2, stack="main;save")
    run.mark = [{"mark_id": 1, "ts_ns": T, "dur_ns": 500, "name": "load"}]
    return run


def odd_names() -> Run:
    """Unusual characters in names, which must not be split or change the order."""
    run = Run()
    for number, path in enumerate(("/a b", "/ä", "/a\nb", "/a'b|c", "/A", "/a", "", "[x]", "/😀")):
        stack = ("f;g", "f x;g", "f;g x", "f", "f(x);g", "ä;g", None, "f!;g", "f;g;f;g")[number]
        run.add(T + number * 100, 50, path=path, stack=stack, comm="w l;1")
    return run


def waits() -> Run:
    """Waits for journal and flush, as a patched kernel records them.

    r1 start 10, bio 20-50, commit wait 55-85, flush 90-95, end 100
    r2 start 210, fast commit 220-290 with a flush 230-240 and a bio 250-270, end 300
    r3 no wait: start 410, end 500; r4 one end of its wait is lost; r5 on a file system without recorded waits
    """
    run = Run()
    bio = {"bytes": 4096, "folios": 1, "bios": 1, "ranges": 1}
    times = {"before_submit_ns": 10, "writeback_ns": 30, "after_complete_ns": 50}
    run.add(T, 100, **bio, **times, journal_ns=30, flush_ns=5, other_ns=25)
    times = {"before_submit_ns": 40, "writeback_ns": 20, "after_complete_ns": 30}
    run.add(T + 200, 100, **bio, **times, journal_ns=70, flush_ns=10, other_ns=20)
    run.add(T + 400, 100, tid=2, journal_ns=0, flush_ns=0, other_ns=90)
    run.add(T + 600, 100, tid=2, flush_ns=0)
    run.add(T + 800, 100, tid=2, fs="btrfs", path="/b")
    run.bio = [
        {"bio_id": number, "sync_id": number, "id": 1000 + number, "ts_ns": ts, "dur_ns": length}
        | {"bytes": 4096, "folios": 1, "ranges": 1, "tid": 1, "comm": "app", "origin": "sync"}
        | {"confidence": "exact"}
        for number, ts, length in ((1, T + 20, 30), (2, T + 250, 20))
    ]
    run.meta["phases_seen"] = "before submit, writeback, after completion, commit wait, flush"
    plain = {"transaction_id": None, "number": 1, "confidence": "exact"}
    run.wait = [
        plain
        | {"sync_id": 1, "wait": "commit wait", "ts_ns": T + 55, "dur_ns": 30, "transaction_id": 7},
        plain | {"sync_id": 1, "number": 2, "wait": "flush", "ts_ns": T + 90, "dur_ns": 5},
        plain
        | {
            "sync_id": 2,
            "wait": "fast commit",
            "ts_ns": T + 220,
            "dur_ns": 70,
            "transaction_id": 8,
        },
        plain | {"sync_id": 2, "number": 2, "wait": "flush", "ts_ns": T + 230, "dur_ns": 10},
        plain
        | {"sync_id": 4, "wait": "flush", "ts_ns": T + 650, "dur_ns": 0, "confidence": "inferred"},
    ]
    journal = {
        "tid": 9,
        "kind": "commit",
        "pid": None,
        "comm": "jbd2/vda-8",
        "dev": "254,0",
        "incomplete": None,
    }
    run.journal = [
        journal | {"commit_id": 1, "ts_ns": T + 50, "dur_ns": 40, "transaction_id": 7},
        journal
        | {"commit_id": 2, "ts_ns": T + 500, "dur_ns": None, "transaction_id": 8}
        | {"incomplete": "end"},
        journal | {"commit_id": 3, "ts_ns": T + 700, "dur_ns": 0, "transaction_id": None},
    ]
    return run


def crowd() -> Run:
    """600 requests of 40 threads, one of them as long as the run, with equal times."""
    dice = random.Random(7)
    run = Run()
    clock = dict.fromkeys(range(1, 40), T)
    run.add(T + 5, 60_000, tid=99, bytes=4096, bios=1, writeback_ns=123)
    for _ in range(600):
        tid = dice.choice(list(clock))
        length = dice.choice((20, 50, 50, 100, 1000, 9000))
        bios = dice.choice((0, 0, 1, 3))
        run.add(
            *(clock[tid] + dice.choice((0, 0, 10, 300)), length),
            **{"tid": tid, "comm": f"w{tid % 5}", "path": f"/f{dice.randrange(20)}"},
            **{"bios": bios, "bytes": 4096 * bios * dice.randrange(1, 9), "ranges": bios},
            **{"writeback_ns": dice.randrange(1, length - 10) if bios else 0},
            stack=";".join(dice.choices("abcd", k=dice.randrange(1, 5))),
        )
        clock[tid] = run.sync[-1]["ts_ns"] + length
    run.sync.sort(key=lambda row: row["ts_ns"])
    run.call.sort(key=lambda row: row["ts_ns"])
    return run


def waiting() -> Run:
    """The crowd on two file systems. One has recorded waits; some lack one end."""
    dice = random.Random(8)
    run = crowd()
    for row in run.sync:
        if row["path"] in ("/f1", "/f2", "/f3"):
            row["fs"] = "btrfs"
            continue
        length = row["dur_ns"] - 10
        row["journal_ns"] = dice.choice((None, 0, dice.randrange(length), dice.randrange(length)))
        row["flush_ns"] = dice.choice((None, 0, 0, dice.randrange(length)))
    return run


def large() -> Run:
    """Threads of 60 names, and stacks of 256, 257 and 600 frames.

    The requests of name i take i * 10 ns, one after the other.
    """
    run = Run()
    at = T
    stacks = {depth: ";".join(f"f{n}" for n in range(depth)) for depth in (256, 257, 600)}
    odd = ['main;say "x";a\\b', ";main;;é;", "tab\there;[1,2]"]
    texts = [*stacks.values(), stacks[257], *odd]
    for number in range(1, 61):
        stack = texts[number - 1] if number <= len(texts) else None
        run.add(at, number * 10, tid=number, comm=f"name {number}", bytes=number, stack=stack)
        at += 1000
    return run


MINUTE = 2**36


def minutes() -> Run:
    """Long requests of two processes and an unknown one in ten minutes, some across several minutes."""
    run = Run()
    chosen = random.Random(7)
    ends: dict[int, int] = {}
    # Both sides of the limits of minutes too.
    starts = [MINUTE * n + d for n in range(1, 9) for d in (-1, 0, 1)]
    starts += [chosen.randrange(1, 10 * MINUTE) for _ in range(150)]
    for number, ts in enumerate(sorted(starts)):
        tid = next(tid for tid in itertools.count(1) if ends.get(tid, 0) < ts)
        length = chosen.choice([50, 70_000, chosen.randrange(MINUTE), 3 * MINUTE])
        ends[tid] = ts + length
        pid = (10, 20, None)[tid % 3]
        row = run.add(
            ts,
            None if number == 50 else length,
            tid=tid,
            pid=pid,
            process=pid and f"p{pid}",
            comm="many" if pid is None else f"t{tid}",
            path=f"/f{tid % 4}",
            incomplete="end" if number == 50 else None,
            call=number % 9 > 0,
        )
        row["bytes"] = chosen.choice([0, 4096, chosen.randrange(10**7)])
    return run


RUNS = {
    "empty": Run,
    "one": one_run,
    "waits": waits,
    "marked": marked,
    "processes": processes,
    "process_ids": process_ids,
    "cut_off": cut_off,
    "odd_names": odd_names,
    "crowd": crowd,
    "waiting": waiting,
    "large": large,
    "minutes": minutes,
}


class Both:
    """One run in both engines."""

    def __init__(self, name: str, folder: Path) -> None:
        self.run = RUNS[name]()
        trace = sqltools.write_trace(self.run, folder / f"{name}.pftrace")
        columns = sqltools.write_parquet(self.run, folder / name)
        self.trace = open_trace(
            trace, engine="embedded", packages=[(NAMESPACE, sql_root() / "tables" / "perfetto")]
        )
        self.columns = open_columns(columns, sql=sql_root() / "tables" / "duckdb")

    def engines(self) -> tuple[Engine, ColumnsEngine]:
        return self.trace, self.columns

    def report(self, name: str) -> list[dict]:
        """Returns the rows of a report, after checking that both engines agree."""
        ours, theirs = (run_report(engine, name) for engine in self.engines())
        assert ours.columns == theirs.columns
        assert same(ours.rows, theirs.rows)
        return [dict(zip(theirs.columns, row, strict=True)) for row in theirs.rows]

    def query(self, sql: str) -> list[tuple]:
        ours, theirs = (run_query(engine, sql) for engine in self.engines())
        assert ours.columns == theirs.columns
        assert same(ours.rows, theirs.rows)
        return theirs.rows

    def summary(self) -> dict[tuple[str, str], float | None]:
        return {(row["metric"], row["scope"]): row["value"] for row in self.report("summary")}

    def coverage(self) -> dict[tuple[str, str], tuple[int | None, int | None]]:
        """Returns (known, syncs) of each metric of the summary."""
        rows = self.report("summary")
        return {(row["metric"], row["scope"]): (row["known"], row["syncs"]) for row in rows}


@contextmanager
def opened_runs(folder: Path) -> Iterator[Callable[[str], Both]]:
    """Yields a function that returns a run of RUNS in both engines, and opens it at its first use."""
    opened: dict[str, Both] = {}

    def get(name: str) -> Both:
        if name not in opened:
            opened[name] = Both(name, folder)
        return opened[name]

    try:
        yield get
    finally:
        for one in opened.values():
            one.trace.close()
            one.columns.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Both]]:
    with opened_runs(tmp_path_factory.mktemp("runs")) as get:
        yield get


# Both engines agree.


@pytest.mark.parametrize("report", names())
@pytest.mark.parametrize("run", RUNS)
def test_reports_give_equal_rows(both, run: str, report: str) -> None:
    both(run).report(report)


@pytest.mark.parametrize("report", names())
def test_reports_match_no_patterns_that_spark_lacks(report: str) -> None:
    # `make spark-test` runs each report on Spark. This says it sooner.
    assert not re.search(r"\bGLOB\b|\bILIKE\b|\bREGEXP\b|~~~", load(report).sql)


KEYS = {"sync": "sync_id", "bio": "bio_id", "call": "call_id", "loss": "reason"} | {
    "mark": "mark_id",
    "meta": "key",
    "stack": "stack_id, depth",
    "parallel": "sync_id",
    "wait": "sync_id, number",
    "phase": "sync_id, number",
    "journal": "commit_id",
    "write_wait": "wait_id",
    "file_op": "op_id",
}


@pytest.mark.parametrize("table", KEYS)
@pytest.mark.parametrize("run", RUNS)
def test_tables_give_equal_rows(both, run: str, table: str) -> None:
    both(run).query(f"SELECT * FROM syncline_{table} ORDER BY {KEYS[table]}")


@pytest.mark.parametrize("table", FILES)
@pytest.mark.parametrize("run", RUNS)
def test_tables_hold_what_the_run_has(both, run: str, table: str) -> None:
    pair = both(run)
    given = []
    for row in pair.run.rows(table):
        full = {name: row.get(name) for name in FILES[table]} | {"run": ""}
        if (full.get("id") or 0) > 2**63 - 1:
            full["id"] -= 2**64  # SQL only has signed integers.
        given.append(tuple(full.values()))
    keys = [[*FILES[table]].index(key) for key in KEYS[table].split(", ")]
    got = pair.query(f"SELECT * FROM syncline_{table} ORDER BY {KEYS[table]}")
    assert got == sorted(given, key=lambda row: [row[key] for key in keys])


def test_a_folded_stack_is_split_into_frames(both) -> None:
    # Used first: main;save;fsync at T, main;save at T + 50, main;other (an unmatched call) at T + 1000.
    assert both("one").query(
        "SELECT stack_id, depth, frame, stack FROM syncline_stack ORDER BY stack_id, depth"
    ) == [
        (1, 0, "main", "main;save;fsync"),
        (1, 1, "save", "main;save;fsync"),
        (1, 2, "fsync", "main;save;fsync"),
        (2, 0, "main", "main;save"),
        (2, 1, "save", "main;save"),
        (3, 0, "main", "main;other"),
        (3, 1, "other", "main;other"),
    ]


def brute_force_parallel(run: Run) -> list[tuple[int, int, int, int]]:
    spans = [
        (row["ts_ns"], row["ts_ns"] + row["dur_ns"], row["sync_id"])
        for row in run.sync
        if row["dur_ns"]
    ]
    edges = sorted({edge for start, end, _ in spans for edge in (start, end)})
    parts = [
        (begin, end - begin, sum(start <= begin < stop for start, stop, _ in spans))
        for begin, end in itertools.pairwise(edges)
    ]
    rows = []
    for start, stop, sync_id in spans:
        inside = [(length, count) for begin, length, count in parts if start <= begin < stop]
        rows.append(
            (
                sync_id,
                max(count for _, count in inside),
                sum(length * count for length, count in inside),
                sum(length for length, count in inside if count > 1),
            )
        )
    return sorted(rows)


@pytest.mark.parametrize("run", ["one", "processes", "process_ids", "crowd"])
def test_parallel_requests_are_counted(both, run: str) -> None:
    got = both(run).query(
        "SELECT sync_id, parallel_max, parallel_ns, overlap_ns FROM syncline_parallel"
        " ORDER BY sync_id"
    )
    assert got == brute_force_parallel(both(run).run)


# Expected values, by hand. The requests of `one`, with the values that each metric covers:
#
#      dur  syscall  writeback  bytes  bios   incomplete
# r1   100  100      40         4096   1
# r2   100  100      0          0      0
# r3   200  200      100        12288  2
# r4   -    -        -          4096   1      end
# r5   300  300      -          4096   1      bio
# r6   100  -        0          0      0


def test_summary(both) -> None:
    got = both("one").summary()
    expected = {
        ("runs", "all"): 1,
        ("syncs", "all"): 6,
        ("syncs", "op:fsync"): 4,
        ("syncs", "op:fdatasync"): 1,
        ("syncs", "op:none"): 1,
        # /f, /g, and the one that is known only by its inode.
        ("unique_files", "all"): 3,
        # r2 and r6 of the five whose start and end were recorded.
        ("empty_share", "all"): 2 / 5,
        # 100, 100, 200, 300: between the two in the middle; p90 at 0.9 * 3 = 2.7, between 200
        # and 300; p99 at 2.97, p99.9 at 2.997.
        ("syscall_latency_avg", "all"): 175,
        ("syscall_latency_p50", "all"): 150,
        ("syscall_latency_p90", "all"): 270,
        ("syscall_latency_p99", "all"): 297,
        ("syscall_latency_p999", "all"): 299.7,
        ("syscall_latency_max", "all"): 300,
        ("syscall_latency_sum", "all"): 700,
        # 0, 0, 40, 100.
        ("writeback_latency_avg", "all"): 35,
        ("writeback_latency_p50", "all"): 20,
        ("writeback_latency_p90", "all"): 82,
        ("writeback_latency_p99", "all"): 98.2,
        ("writeback_latency_p999", "all"): 99.82,
        ("writeback_latency_max", "all"): 100,
        ("writeback_latency_sum", "all"): 140,
        # 0, 0, 4096, 4096, 12288: p99 at 3.96, between 4096 and 12288. The sum has r4, too.
        ("writeback_amount_avg", "all"): 4096,
        ("writeback_amount_p50", "all"): 4096,
        ("writeback_amount_p99", "all"): 4096 + 0.96 * 8192,
        ("writeback_amount_max", "all"): 12288,
        ("writeback_amount_sum", "all"): 24576,
        # app: [0, 150) of 100 + 100, [200, 400), [600, 900). iou: 100, inside the last one of app.
        ("sync_time_sum", "all"): 800,
        ("sync_time_sum", "comm:app"): 700,
        ("sync_time_sum", "comm:iou"): 100,
        ("sync_wall_time", "all"): 650,
        ("sync_wall_time", "comm:app"): 650,
        ("sync_wall_time", "comm:iou"): 100,
        ("parallelism", "all"): 800 / 650,
        ("parallelism", "comm:app"): 700 / 650,
        ("parallelism", "comm:iou"): 1,
        ("attribution_share", "exact"): 5 / 6,
        ("attribution_share", "inferred"): 1 / 6,
        ("attribution_share", "unknown"): 0,
        ("incomplete", "start"): 0,
        ("incomplete", "end"): 1,
        ("incomplete", "call"): 0,
        ("incomplete", "bio"): 1,
        ("unmatched_calls", "all"): 1,
        ("failed_syncs", "all"): 0,
        # The syncfs without a request. No result of a bio is recorded.
        ("failed_calls", "all"): 1,
        ("failed_bios", "all"): None,
        ("background_bios", "all"): 1,
        ("background_bytes", "all"): 65536,
        ("losses", "all"): 3,
    }
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        assert got[key] == pytest.approx(value), key


def test_summary_reports_how_many_requests_a_metric_covers(both) -> None:
    got = both("one").coverage()
    for metric in ("avg", "p50", "p90", "p99", "p999", "max", "sum"):
        # All but r4 and r6; all but r4 and r5.
        assert got[f"syscall_latency_{metric}", "all"] == (4, 6)
        assert got[f"writeback_latency_{metric}", "all"] == (4, 6)
    # Start and end were recorded: all but r4. The sum includes its bytes.
    for metric in ("avg", "p50", "p99", "max"):
        assert got[f"writeback_amount_{metric}", "all"] == (5, 6)
    assert got["writeback_amount_sum", "all"] == (6, 6)
    assert got["empty_share", "all"] == (5, 6)
    assert got["unique_files", "all"] == (6, 6)
    # app has r4, which has no end.
    for metric in ("sync_time_sum", "sync_wall_time", "parallelism"):
        assert got[metric, "all"] == (5, 6)
        assert got[metric, "comm:app"] == (4, 5)
        assert got[metric, "comm:iou"] == (1, 1)
    assert got["attribution_share", "exact"] == (6, 6)
    # Counts leave nothing out.
    for key in (("syncs", "all"), ("incomplete", "end"), ("losses", "all"), ("runs", "all")):
        assert got[key] == (None, None)
    # r1, r2, r3, and r3, r4, r5, r6: without a call r6, cut off r4, its bio lost r5.
    marked_ = both("marked").coverage()
    assert marked_["syscall_latency_per_mark", "all"] == (5, 7)
    assert marked_["writeback_latency_per_mark", "all"] == (5, 7)
    assert marked_["writeback_amount_per_mark", "all"] == (7, 7)
    assert marked_["sync_wall_time_per_mark", "all"] == (6, 7)
    assert marked_["syncs_per_mark", "all"] == (None, None)


def test_summary_of_waits_covers_the_known_ones(both) -> None:
    rows = both("waits").report("summary")
    found = [row for row in rows if "_wait_" in row["metric"]]
    assert [row["metric"] for row in found] == [
        f"{what}_wait_{part}"
        for what in ("journal", "flush")
        for part in ("avg", "p50", "p99", "sum")
    ]
    assert [(row["value"], row["unit"], row["known"], row["syncs"]) for row in found] == [
        # 30, 70, 0. The fourth lacks one end, the fifth is not recorded.
        (pytest.approx(100 / 3), "ns", 3, 5),
        (30.0, "ns", 3, 5),
        (pytest.approx(30 + 0.98 * 40), "ns", 3, 5),
        (100.0, "ns", 3, 5),
        # 5, 10, 0, 0
        (3.75, "ns", 4, 5),
        (2.5, "ns", 4, 5),
        (pytest.approx(5 + 0.97 * 5), "ns", 4, 5),
        (15.0, "ns", 4, 5),
    ]
    assert not [row for row in both("one").report("summary") if "_wait_" in row["metric"]]


def test_phases_add_up(both) -> None:
    rows = both("waits").report("phases")
    # In r1 and r2: before the first bio, in it, in the waits, after them. r3 and r5 have nothing but residue. r4 waits 0 ns, in its middle.
    expected = [
        ("residue", 2, 100, 50.0, 90),
        ("after completion", 3, 65, 10.0, 50),
        ("before submit", 3, 60, 10.0, 40),
        ("fast commit", 1, 60, 60.0, 60),
        ("commit wait", 1, 30, 30.0, 30),
        ("writeback", 1, 30, 30.0, 30),
        ("flush", 2, 15, 7.5, 10),
    ]
    keys = ("phase", "with_phase", "time_ns", "median_ns", "max_ns")
    ext4, btrfs = ([row for row in rows if row["fs"] == fs] for fs in ("ext4", "btrfs"))
    assert [tuple(row[key] for key in keys) for row in ext4] == expected
    assert {row["syncs"] for row in ext4} == {4}
    assert [row["share"] for row in ext4] == [row["time_ns"] / 360 for row in ext4]
    assert [tuple(row[key] for key in keys) for row in btrfs] == [("residue", 1, 90, 90.0, 90)]
    unseen = "cpu wait, lock wait, device, earlier writeback"
    found = [row["not_recorded"] for row in rows if row["phase"] == "residue"]
    assert found == [unseen, f"{unseen}, commit wait, flush"]
    assert not [row for row in rows if row["phase"] != "residue" and row["not_recorded"]]


def test_phases_of_a_log_without_phases_are_those_of_its_columns(tmp_path: Path) -> None:
    folder = sqltools.write_parquet(waits(), tmp_path, tables=["sync", "meta"])
    with open_columns(folder, sql=sql_root() / "tables" / "duckdb") as engine:
        rows = run_report(engine, "phases").rows
    # r1 and r2: 10 + 40, 30 + 20, 50 + 30. r3 and r4 have no bio.
    assert [row[5:8] for row in rows if row[1] == "ext4"] == [
        ("residue", 2, 180),
        ("after completion", 2, 80),
        ("before submit", 2, 50),
        ("writeback", 2, 50),
    ]


def test_summary_per_mark(both) -> None:
    got = both("marked").summary()
    # load 1, [0, 450): r1, r2, r3. load 2, [200, 900): r3, r4, r5, r6. idle: none. Averaged over 3 marks.
    assert got["marks", "all"] == 3
    assert got["syncs_per_mark", "all"] == pytest.approx(7 / 3)
    assert got["syscall_latency_per_mark", "all"] == pytest.approx((400 + 500) / 3)
    assert got["writeback_latency_per_mark", "all"] == pytest.approx((140 + 100) / 3)
    assert got["writeback_amount_per_mark", "all"] == pytest.approx((16384 + 20480) / 3)
    # [0, 150) and [200, 400); [200, 400) and [600, 900).
    assert got["sync_wall_time_per_mark", "all"] == pytest.approx((350 + 500) / 3)


def test_summary_of_processes(both) -> None:
    got = both("processes").summary()
    # db is two processes: 10 waits in [0, 150) and [300, 400), 20 in [50, 150) and [1000, 1100).
    assert got["sync_wall_time", "process:db"] == 250 + 200
    assert got["sync_time_sum", "process:db"] == 500
    # 30 has no name but those of its threads, t31 and t32: [60, 160) and [110, 210).
    assert got["sync_wall_time", "comm:t31"] == 150
    assert got["sync_time_sum", "comm:t31"] == 200
    # [0, 210), [300, 400), [1000, 1100).
    assert got["sync_wall_time", "all"] == 410


def union(rows: list[dict]) -> int:
    """Returns the time in which at least one request is in flight."""
    total = reached = 0
    for row in sorted(rows, key=lambda row: row["ts_ns"]):
        end = row["ts_ns"] + row["dur_ns"]
        total += max(0, end - max(reached, row["ts_ns"]))
        reached = max(reached, end)
    return total


def percentile(values: list[int], share: Fraction) -> float:
    values = sorted(values)
    place = (len(values) - 1) * share
    low = values[int(place)]
    return float(low + (values[min(int(place) + 1, len(values) - 1)] - low) * (place % 1))


def test_summary_of_many_minutes(both) -> None:
    got = both("minutes").summary()
    rows = [row for row in both("minutes").run.sync if row["dur_ns"] is not None]
    assert got["sync_wall_time", "all"] == union(rows)
    for scope, pid in (("process:p10", 10), ("process:p20", 20), ("comm:many", None)):
        of_one = [row for row in rows if row["pid"] == pid]
        assert got["sync_wall_time", scope] == union(of_one)
        assert got["sync_time_sum", scope] == sum(row["dur_ns"] for row in of_one)
    shares = {"p50": "0.5", "p90": "0.9", "p99": "0.99", "p999": "0.999"}
    for measure, column in (("syscall_latency", "syscall_ns"), ("writeback_amount", "bytes")):
        values = [row[column] for row in rows if row[column] is not None]
        for name, share in shares.items():
            if (f"{measure}_{name}", "all") in got:
                assert got[f"{measure}_{name}", "all"] == percentile(values, Fraction(share)), name
        assert got[f"{measure}_max", "all"] == max(values)


def test_files_of_many_minutes(both) -> None:
    rows = both("minutes").run.sync
    for got in both("minutes").report("files"):
        values = [row["syscall_ns"] for row in rows if row["path"] == got["path"]]
        known = [value for value in values if value is not None]
        assert (got["syncs"], got["latency_max_ns"]) == (len(values), max(known))
        assert got["latency_p99_ns"] == pytest.approx(
            percentile(known, Fraction("0.99")), rel=1e-12
        )


def test_summary_of_an_empty_run_has_no_figures_and_no_errors(both) -> None:
    got = both("empty").summary()
    assert got["syncs", "all"] == 0
    assert got["writeback_amount_sum", "all"] == 0
    assert got["sync_wall_time", "all"] == 0
    assert got["empty_share", "all"] is None
    assert got["syscall_latency_p99", "all"] is None
    assert both("empty").coverage()["empty_share", "all"] == (0, 0)


def test_nothing_complete_gives_counts_and_no_latency(both) -> None:
    got = both("cut_off").summary()
    assert got["syncs", "all"] == 2
    assert (got["incomplete", "start"], got["incomplete", "end"]) == (1, 1)
    assert got["syscall_latency_avg", "all"] is None
    assert got["empty_share", "all"] is None
    assert got["attribution_share", "unknown"] == 0.5
    # None of the requests has a known time, also not in the mark: null, not 0.
    taken = both("cut_off").coverage()
    for key in (
        *(("sync_time_sum", "all"), ("sync_wall_time", "all"), ("writeback_latency_sum", "all")),
        *(("syscall_latency_per_mark", "all"), ("writeback_latency_per_mark", "all")),
        ("sync_wall_time_per_mark", "all"),
    ):
        assert (got[key], taken[key]) == (None, (0, 2)), key
    (mark,) = both("cut_off").report("marks")
    assert (mark["syncs"], mark["bytes"]) == (2, 0)
    for column in ("syscall_sum_ns", "writeback_sum_ns", "wall_ns"):
        assert mark[column] is None
    keys = ("frame", "self_count", "total_syscall_ns", "self_syscall_ns", "self_writeback_ns")
    assert [tuple(row[key] for key in keys) for row in both("cut_off").report("stacks")] == [
        ("[no stack]", 1, None, None, None),
        # The frame has no own requests: 0.
        ("main", 0, None, 0, 0),
        ("save", 1, None, None, None),
    ]


def test_metrics_of_a_missing_column_are_null(tmp_path: Path) -> None:
    log = tmp_path / "few.csv"
    log.write_text("sync_id,ts_ns,bytes,bios\n1,5,4096,1\n2,9,0,0\n")
    with open_columns(log, sql=sql_root() / "tables" / "duckdb") as engine:
        rows = {row[:2]: (row[2], *row[4:]) for row in run_report(engine, "summary").rows}
    assert rows["attribution_share", "exact"] == (None, 0, 2)
    assert rows["unique_files", "all"] == (None, 0, 2)
    assert rows["writeback_amount_sum", "all"] == (4096, 2, 2)


def test_files(both) -> None:
    nothing = {"latency_sum_ns": None, "latency_avg_ns": None, "latency_p99_ns": None}
    outside = {"container_path": None}
    assert both("one").report("files") == [
        # r1, r2, r4, r5. p99 of 100, 100, 300 at 1.98.
        {"path": "/f", "syncs": 4, "empty": 1, "bytes": 12288, "latency_sum_ns": 500}
        | {"latency_avg_ns": 500 / 3, "latency_p99_ns": pytest.approx(296), "latency_max_ns": 300}
        | {"writeback_sum_ns": 40, "sync_time_sum_ns": 500, "threads": 2, "incomplete": 2}
        | outside,
        {"path": "/g", "syncs": 1, "empty": 0, "bytes": 12288, "latency_sum_ns": 200}
        | {"latency_avg_ns": 200, "latency_p99_ns": 200, "latency_max_ns": 200}
        | {"writeback_sum_ns": 100, "sync_time_sum_ns": 200, "threads": 1, "incomplete": 0}
        | outside,
        {"path": "inode 7 on 254,16", "syncs": 1, "empty": 1, "bytes": 0, "latency_max_ns": None}
        | nothing
        | {"writeback_sum_ns": 0, "sync_time_sum_ns": 100, "threads": 1, "incomplete": 0}
        | outside,
    ]


def test_the_writeback_of_a_file_is_unknown_if_only_empty_syncs_have_one(tmp_path: Path) -> None:
    log = tmp_path / "few.csv"
    log.write_text(
        "sync_id,ts_ns,bytes,bios,path,writeback_ns,incomplete\n"
        "1,5,4096,1,/cut,,end\n2,9,0,0,/cut,0,\n"
        "3,12,4096,1,/part,,end\n4,15,4096,1,/part,30,\n5,20,0,0,/empty,0,\n"
    )
    with open_columns(log, sql=sql_root() / "tables" / "duckdb") as engine:
        table = run_report(engine, "files")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    known = {row["path"]: row["writeback_sum_ns"] for row in rows}
    assert known == {"/cut": None, "/part": 30, "/empty": 0}


def test_threads(both) -> None:
    rows = both("one").report("threads")
    common = {"pid": None, "process": None, "run": ""}
    assert rows == [
        # r2, r5; r4 has no end. r2 shares [50, 100) with r1, r5 [650, 750) with r6.
        {"tid": 2, "comm": "app", "syncs": 3, "incomplete": 2, "bytes": 8192, "wall_ns": 400}
        | {"latency_sum_ns": 400, "sync_time_sum_ns": 400, "parallel_max": 2, "overlap_ns": 150}
        | {"parallel_avg": pytest.approx(550 / 400), "overlap_share": pytest.approx(150 / 400)}
        | common,
        {"tid": 1, "comm": "app", "syncs": 2, "incomplete": 0, "bytes": 16384, "wall_ns": 300}
        | {"latency_sum_ns": 300, "sync_time_sum_ns": 300, "parallel_max": 2, "overlap_ns": 50}
        | {"parallel_avg": pytest.approx(350 / 300), "overlap_share": pytest.approx(50 / 300)}
        | common,
        # r6, all of it while r5 was in flight.
        {"tid": 1, "comm": "iou", "syncs": 1, "incomplete": 0, "bytes": 0, "wall_ns": 100}
        | {"latency_sum_ns": None, "sync_time_sum_ns": 100, "parallel_max": 2, "overlap_ns": 100}
        | {"parallel_avg": 2, "overlap_share": 1}
        | common,
    ]


def test_threads_of_a_log_with_only_process_ids(both) -> None:
    # [0, 100), [50, 150), [60, 160), [400, 500): 400 in sum, 260 on the clock. In flight: 1 in
    # [0, 50), 2 in [50, 60), 3 in [60, 100), 2 in [100, 150), 1 in [150, 160) and in [400, 500).
    # Seen by each: 50 + 20 + 120 = 190; 20 + 120 + 100 = 240; 120 + 100 + 10 = 230; 100.
    (row,) = both("process_ids").report("threads")
    assert (row["tid"], row["pid"], row["syncs"]) == (None, 10, 4)
    assert (row["sync_time_sum_ns"], row["wall_ns"], row["parallel_max"]) == (400, 260, 3)
    assert row["parallel_avg"] == pytest.approx((190 + 240 + 230 + 100) / 400)
    assert row["overlap_ns"] == 50 + 100 + 90


def test_latency(both) -> None:
    # Syscalls: 100, 100, 200, 300. Writeback: 0, 0, 40, 100.
    keys = ("kind", "lower_ns", "upper_ns", "syncs", "share", "cumulative")
    assert [tuple(row[key] for key in keys) for row in both("one").report("latency")] == [
        ("syscall", 100, 200, 2, 0.5, 0.5),
        ("syscall", 200, 500, 2, 0.5, 1),
        ("writeback", 0, 1, 2, 0.5, 0.5),
        ("writeback", 20, 50, 1, 0.25, 0.75),
        ("writeback", 50, 100, 0, 0, 0.75),
        ("writeback", 100, 200, 1, 0.25, 1),
    ]


@pytest.mark.parametrize(
    ("ns", "bucket"),
    [
        *[(0, (0, 1)), (1, (1, 2)), (2, (2, 5)), (4, (2, 5)), (5, (5, 10)), (9, (5, 10))],
        *[(10, (10, 20)), (999_999, (500_000, 1_000_000)), (10**9, (10**9, 2 * 10**9))],
        (9 * 10**16, (5 * 10**16, 10**17)),
    ],
)
def test_bounds_of_the_latency_buckets(tmp_path: Path, ns: int, bucket: tuple[int, int]) -> None:
    run = Run()
    run.add(T, ns, syscall_ns=ns, writeback_ns=None)
    folder = sqltools.write_parquet(run, tmp_path)
    with open_columns(folder, sql=sql_root() / "tables" / "duckdb") as engine:
        (row,) = run_report(engine, "latency").rows
    assert row[1:3] == bucket


def test_amount(both) -> None:
    # 0, 0, 4096, 4096, 12288; r4 was cut off.
    keys = ("lower_bytes", "upper_bytes", "syncs", "bytes")
    rows = both("one").report("amount")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (0, 1, 2, 0),
        (4096, 8192, 2, 8192),
        (8192, 16384, 1, 12288),
    ]
    assert [row["share"] for row in rows] == [0.4, 0.4, 0.2]
    assert [row["cumulative"] for row in rows] == pytest.approx([0.4, 0.8, 1])
    assert [row["bytes_share"] for row in rows] == [0, 0.4, 0.6]


def test_scatter_has_only_complete_requests(both) -> None:
    rows = both("one").report("scatter")
    assert [row["sync_id"] for row in rows] == [1, 2, 3, 6]
    assert rows[2] == {"sync_id": 3, "op": "fdatasync", "comm": "app", "path": "/g"} | {
        "bytes": 12288,
        "ranges": 2,
        "bios": 2,
        "writeback_ns": 100,
        "syscall_ns": 200,
        "run": "",
    }


def test_stacks(both) -> None:
    # main;save;fsync: r1, r3. main;save: r2. None: r4, r5, r6, which have 300 ns of syscalls.
    keys = ("frame", "depth", "total_count", "total_syscall_ns", "total_writeback_ns")
    keys += ("total_bytes", "self_count", "self_syscall_ns", "self_bytes", "path")
    assert [tuple(row[key] for key in keys) for row in both("one").report("stacks")] == [
        ("[no stack]", 0, 3, 300, 0, 8192, 3, 300, 8192, "[no stack]"),
        ("main", 0, 3, 400, 140, 16384, 0, 0, 0, "main"),
        ("save", 1, 3, 400, 140, 16384, 1, 100, 0, "main;save"),
        ("fsync", 2, 2, 300, 140, 16384, 2, 300, 16384, "main;save;fsync"),
    ]


@pytest.mark.parametrize("run", ["odd_names", "crowd", "large"])
def test_stacks_are_a_tree(both, run: str) -> None:
    rows = both(run).report("stacks")
    callers: list[dict] = []
    for row in rows:
        # Each row follows its caller or a sibling.
        del callers[row["depth"] :]
        assert len(callers) == row["depth"]
        callers.append(row)
        assert row["path"] == ";".join(caller["frame"] for caller in callers)
    assert len({row["path"] for row in rows}) == len(rows)
    for weight in ("count", "syscall_ns", "writeback_ns", "bytes"):
        total = sum(row[f"total_{weight}"] for row in rows if row["depth"] == 0)
        assert total == sum(row[f"self_{weight}"] for row in rows)
    assert sum(row["self_count"] for row in rows) == len(both(run).run.sync)


def test_frames_of_deep_stacks_share_a_row(both) -> None:
    rows = {row["path"]: row for row in both("large").report("stacks")}
    below = ";".join(f"f{n}" for n in range(256))
    # f0: requests 1 to 4, of 10 to 40 ns. Request 1 has 256 frames, the others have more.
    assert (rows["f0"]["total_count"], rows["f0"]["total_syscall_ns"]) == (4, 100)
    assert (rows[below]["total_count"], rows[below]["self_count"]) == (4, 1)
    deeper = rows[f"{below};[deeper frames]"]
    assert (deeper["frame"], deeper["depth"]) == ("[deeper frames]", 256)
    assert (deeper["total_count"], deeper["self_count"], deeper["self_syscall_ns"]) == (3, 3, 90)
    assert max(row["depth"] for row in rows.values()) == 256


def test_the_summary_shows_the_largest_names(both) -> None:
    metrics = both("large").summary()
    shown = {scope for metric, scope in metrics if metric == "sync_time_sum"}
    assert shown == {"all", "others", *(f"comm:name {number}" for number in range(11, 61))}
    # The others: names 1 to 10, 550 ns together.
    assert metrics["sync_time_sum", "others"] == metrics["sync_wall_time", "others"] == 550
    assert metrics["parallelism", "others"] == 1
    assert metrics["sync_time_sum", "all"] == sum(range(10, 601, 10))
    assert both("large").coverage()["sync_time_sum", "others"] == (10, 10)
    scopes = {scope for metric, scope in both("crowd").summary() if metric == "sync_time_sum"}
    assert "others" not in scopes


def test_over_time(both) -> None:
    # From T to T + 650: 100 buckets of 10 would do, 100 of 5 would not.
    rows = both("one").report("over-time")
    assert [row["offset_ns"] for row in rows] == list(range(0, 651, 10))
    assert {row["width_ns"] for row in rows} == {10}
    filled = [row for row in rows if row["syncs"]]
    assert [row["offset_ns"] for row in filled] == [0, 50, 200, 500, 600, 650]
    assert [row["bytes"] for row in filled] == [4096, 0, 12288, 4096, 4096, 0]
    assert [row["empty"] for row in filled] == [0, 1, 0, 0, 0, 1]
    assert [row["syscall_max_ns"] for row in filled] == [100, 100, 200, None, 300, None]
    assert [row["writeback_avg_ns"] for row in filled] == [40, 0, 100, None, None, 0]


@pytest.mark.parametrize("run", [name for name in RUNS if name != "empty"])
def test_over_time_has_every_request_in_at_most_100_buckets(both, run: str) -> None:
    rows = both(run).report("over-time")
    assert 1 <= len(rows) <= 100
    assert sum(row["syncs"] for row in rows) == len(both(run).run.sync)


def test_empty(both) -> None:
    rows = both("one").report("empty")
    common = {"empty": 1, "share": 0.5, "syncs": 1, "empty_share": 1}
    none = {"empty": 0, "share": 0, "syncs": 1, "empty_share": 0, "latency_sum_ns": 0}
    # r2 has a group of its own by its stack; r4 was cut off.
    assert rows == [
        {"comm": "app", "op": "fsync", "path": "/f", "stack": "main;save", "latency_sum_ns": 100}
        | common,
        {"comm": "iou", "op": None, "path": None, "stack": None, "latency_sum_ns": None} | common,
        {"comm": "app", "op": "fdatasync", "path": "/g", "stack": "main;save;fsync"} | none,
        {"comm": "app", "op": "fsync", "path": "/f", "stack": "main;save;fsync"} | none,
        {"comm": "app", "op": "fsync", "path": "/f", "stack": None} | none,
    ]


def test_empty_of_a_run_without_an_empty_sync(tmp_path: Path) -> None:
    run = Run()
    run.add(T, 100, bios=1, bytes=4096)
    run.add(T + 200, 100, bios=1, bytes=4096, path="/g")
    run.add(T + 400, 100, bios=1, bytes=4096, path="/g")
    folder = sqltools.write_parquet(run, tmp_path)
    with open_columns(folder, sql=sql_root() / "tables" / "duckdb") as engine:
        table = run_report(engine, "empty")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    # Who syncs most comes first.
    assert [(row["path"], row["syncs"], row["share"]) for row in rows] == [
        ("/g", 2, 0),
        ("/f", 1, 0),
    ]


def test_losses_come_first(both) -> None:
    rows = both("one").report("losses")
    assert [(row["reason"], row["severity"], row["count"]) for row in rows] == [
        ("unparsed_line", "loss", 2),
        ("never_completed", "loss", 1),
        ("unmatched_call", "info", 1),
    ]


def test_marks(both) -> None:
    keys = ("name", "syncs", "empty", "incomplete", "bytes", "syscall_sum_ns", "writeback_sum_ns")
    rows = both("marked").report("marks")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("load 1", 3, 1, 0, 16384, 400, 140),
        ("load 2", 4, 1, 2, 20480, 500, 100),
        ("idle", 0, 0, 0, 0, 0, 0),
    ]
    assert [row["wall_ns"] for row in rows] == [350, 500, 0]


# Columns: files and folders.


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("run", ["one", "odd_names", "empty"])
def test_a_high_level_log_answers_as_the_folder_does(
    both, tmp_path: Path, run: str, suffix: str
) -> None:
    pair = both(run)
    log = sqltools.write_file(pair.run.sync, FILES["sync"], tmp_path / f"a log{suffix}")
    assert is_table_file(log)
    with open_columns(log, sql=sql_root() / "tables" / "duckdb") as engine:
        query = "SELECT * FROM syncline_sync ORDER BY sync_id"
        assert run_query(engine, query).rows == pair.query(query)
        # The run has a failure of a call, which the log does not hold, and phases.
        for report in set(names()) - {
            *("summary", "losses", "marks", "failures", "phases", "bystanders"),
            *("device", "durability", "journal", "groups", "neighbours", "whose-data"),
            "writeback",
        }:
            assert same(run_report(engine, report).rows, run_report(pair.columns, report).rows)
        groups, of_folder = (run_report(one, "groups") for one in (engine, pair.columns))
        unknown = {"commit_share", "others_share", "main_phase", "phase_share"}
        kept = [index for index, name in enumerate(groups.columns) if name not in unknown]
        assert same(*([[row[i] for i in kept] for row in of.rows] for of in (groups, of_folder)))
        # What the log does not hold is unknown, not zero.
        assert all(
            row[groups.columns.index(name)] is None for row in groups.rows for name in unknown
        )
        summary = {row[:2]: row[2] for row in run_report(engine, "summary").rows}
        for metric in (
            *("unmatched_calls", "failed_calls", "failed_bios"),
            *("background_bios", "background_bytes", "losses"),
        ):
            assert summary.pop((metric, "all")) is None
        whole = pair.summary()
        assert all(same(value, whole[key]) for key, value in summary.items())
        meta = dict(run_query(engine, "SELECT key, value FROM syncline_meta").rows)
        assert meta == {"source": "high-level log", "input": str(log), "tables": "syncline_sync"}
        assert any("high-level log" in caveat for caveat in caveats(engine))


def test_a_log_may_lack_columns(tmp_path: Path) -> None:
    log = tmp_path / "few.csv"
    log.write_text("sync_id,ts_ns,bytes,bios,path\n1,5,4096,1,007\n2,9,0,0,\n")
    with open_columns(log, sql=sql_root() / "tables" / "duckdb") as engine:
        query = "SELECT sync_id, path, syscall_ns, run FROM syncline_sync ORDER BY sync_id"
        # A path stays text, whatever it looks like.
        assert run_query(engine, query).rows == [(1, "007", None, ""), (2, None, None, "")]
        for report in names():
            run_report(engine, report)
        told = next(
            caveat for caveat in caveats(engine) if caveat.startswith("columns are missing")
        )
        assert "dur_ns, tid" in told
        assert told.endswith("incomplete requests cannot be distinguished from complete ones")


def test_runs_are_not_mixed(both, tmp_path: Path) -> None:
    one, crowd_ = both("one"), both("crowd")
    sqltools.write_parquet(one.run, tmp_path / "a [1]")
    sqltools.write_parquet(crowd_.run, tmp_path / "b")
    sqltools.write_file(one.run.sync, FILES["sync"], tmp_path / "b.csv")
    (tmp_path / "notes.txt").write_text("not a run")
    assert [run.name for run in runs_in(tmp_path)] == ["a [1]", "b", "b.csv"]
    with open_columns(tmp_path, sql=sql_root() / "tables" / "duckdb") as engine:
        rows = run_query(
            engine, "SELECT run, COUNT(*) FROM syncline_sync GROUP BY run ORDER BY run"
        ).rows
        assert rows == [("a [1]", 6), ("b", 601), ("b.csv", 6)]
        summary = {row[:2]: row[2] for row in run_report(engine, "summary").rows}
        parts = [one.summary(), crowd_.summary(), one.summary()]
        for metric in ("syncs", "sync_time_sum", "sync_wall_time", "writeback_amount_sum"):
            assert summary[metric, "all"] == sum(part[metric, "all"] for part in parts)
        assert summary["runs", "all"] == 3
        # Known for two runs, unknown for the log.
        assert summary["unmatched_calls", "all"] is None
        # Same times and ids, but requests of different runs never overlap.
        parallel = run_query(
            engine,
            "SELECT sync_id, parallel_max, parallel_ns, overlap_ns FROM syncline_parallel"
            " WHERE run = 'b' ORDER BY sync_id",
        ).rows
        assert parallel == brute_force_parallel(crowd_.run)
        threads = run_report(engine, "threads")
        run = threads.columns.index("run")
        mine = [row[:run] for row in threads.rows if row[run] == "a [1]"]
        assert same(mine, [row[:run] for row in run_report(one.columns, "threads").rows])
        for report in names():
            run_report(engine, report)


def test_marks_of_several_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sqltools.write_parquet(marked(), tmp_path / name)
    with open_columns(tmp_path, sql=sql_root() / "tables" / "duckdb") as engine:
        marks = run_report(engine, "marks")
        assert [(row[1], row[4], row[-1]) for row in marks.rows] == [
            (name, syncs, run)
            for run in ("a", "b")
            for name, syncs in (("load 1", 3), ("load 2", 4), ("idle", 0))
        ]
        summary = {row[:2]: row[2] for row in run_report(engine, "summary").rows}
        assert summary["syncs_per_mark", "all"] == pytest.approx(14 / 6)


def test_a_run_without_some_tables(tmp_path: Path) -> None:
    sqltools.write_parquet(one_run(), tmp_path, tables=["sync", "meta"])
    with open_columns(tmp_path, sql=sql_root() / "tables" / "duckdb") as engine:
        assert run_query(engine, "SELECT COUNT(*) FROM syncline_bio").rows == [(0,)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.parquet", None, "no such file"),
        ("folder", "", "no syncline_sync.parquet"),
        ("a.events.jsonl", "{}", "low-level log"),
        ("a.txt", "x", "not .parquet, .csv or .jsonl"),
        ("a.csv", "x,y\n1,2\n", "no column sync_id, ts_ns, bytes, bios"),
        ("b.csv", "", "b.csv"),
        ("a.jsonl", '{"x": 1}\n', "1 rows without sync_id or ts_ns"),
        ("b.jsonl", '{"sync_id": 1, "ts_ns": 5}\n{"sync_id": 2, "ts', "cannot read the columns"),
        ("a.parquet", "no parquet", "is damaged"),
        ("c.csv", "sync_id,ts_ns,bytes,bios\n1,soon,0,0\n", "cannot read the columns"),
    ],
)
def test_inputs_that_are_not_a_run_are_rejected(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif text is not None:
        path.write_text(text)
    with pytest.raises(EngineError) as caught:
        open_columns(path, sql=sql_root() / "tables" / "duckdb")
    assert message in caught.value.message
    assert caught.value.hint


def test_the_engine_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    folder = sqltools.write_parquet(Run(), tmp_path / "run")
    engine = open_columns(folder, sql=sql_root() / "tables" / "duckdb")
    assert list(scratch.iterdir())
    engine.close()
    engine.close()
    assert not list(scratch.iterdir())
    with pytest.raises(EngineError, match="closed"):
        engine.query("SELECT 1")
    shutil.rmtree(folder)
    with pytest.raises(EngineError):
        open_columns(folder, sql=sql_root() / "tables" / "duckdb")
    assert not list(scratch.iterdir())


def test_wrong_sql_is_an_error(both) -> None:
    for engine in both("one").engines():
        with pytest.raises(EngineError, match="SQL error"):
            run_query(engine, "SELECT nothing FROM syncline_sync")
    with pytest.raises(EngineError) as caught:
        run_query(both("one").columns, "SELECT * FROM syncs")
    assert "syncline_sync" in caught.value.hint


def test_values_of_other_types_are_text(both) -> None:
    engine = both("one").columns
    table = run_query(engine, "SELECT DATE '2026-01-02' AS d, 1.5::DECIMAL(4, 2) AS x, true AS b")
    assert table.rows == [("2026-01-02", "1.50", True)]


def test_a_foreign_trace_is_not_an_empty_run(tmp_path: Path) -> None:
    trace = sqltools.write_trace(Run(meta={}), tmp_path / "foreign.pftrace")
    with (
        open_trace(
            trace, engine="embedded", packages=[(NAMESPACE, sql_root() / "tables" / "perfetto")]
        ) as engine,
        pytest.raises(EngineError, match="not written by Syncline"),
    ):
        run_report(engine, "summary")


# Comments and docs match the SQL.


def parsed_docs() -> dict[str, list[str]]:
    """Returns the columns in docs/reference/tables.md by table: those of its generated table, or all in code type and in tables."""
    text = (SQL.parent / "docs" / "reference" / "tables.md").read_text()
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        table, _, rest = section.partition(":")
        rows = rest.partition("<!-- columns")[2].partition("<!-- end -->")[0]
        columns = re.findall(r"^\| ([a-z_]+) \|", rows, flags=re.M)[1:]
        in_words = re.findall(r"`([a-z_]+)`|^\| ([a-z_]+) \|", rest, flags=re.M)
        found[table.strip()] = columns or [code or cell for code, cell in in_words]
    return found


@pytest.mark.parametrize("table", list(perfetto_tables()), ids=lambda table: table.name)
def test_public_tables_are_documented(table: sqltools.PublicTable) -> None:
    if table.name.startswith("_"):
        return
    assert table.name == f"syncline_{table.module.rpartition('.')[2]}"
    assert table.comment
    assert table.columns
    for name, kind, comment in table.columns:
        assert comment.endswith("."), f"{table.name}.{name}: no comment"
        assert kind in ("LONG", "DOUBLE", "STRING", "BOOL", "TIMESTAMP", "DURATION")
        # The name has the unit.
        assert (kind in ("TIMESTAMP", "DURATION")) <= name.endswith("_ns")


def test_the_docs_name_every_column() -> None:
    docs = parsed_docs()
    for table in perfetto_tables():
        columns = [name for name, _, _ in table.columns if name != "run"]
        if table.name in ("syncline_stack", "syncline_parallel", "syncline_sync_call"):
            assert set(columns) <= set(docs[table.name])
        elif not table.name.startswith("_"):
            assert columns == docs[table.name]


def test_both_engines_have_the_same_columns(both) -> None:
    kinds = {"STRING": "VARCHAR", "BOOL": "BOOLEAN", "DOUBLE": "DOUBLE"}
    for table in perfetto_tables():
        if table.name.startswith("_"):
            continue
        described = both("one").columns.query(f"DESCRIBE {table.name}").rows
        assert [row[:2] for row in described] == [
            (name, kinds.get(kind, "BIGINT")) for name, kind, _ in table.columns
        ]


def test_every_frame_has_a_row(both) -> None:
    rows = both("large").query(
        "SELECT stack, depth, frame FROM syncline_stack ORDER BY stack_id, depth"
    )
    split: dict[str, list[str]] = {}
    for stack, depth, frame in rows:
        split.setdefault(stack, []).append(frame)
        assert depth == len(split[stack]) - 1
    deep = {stack for stack in split if stack.count(";") > 255}
    assert {row["stack"] for row in both("large").run.sync if row["stack"]} == split.keys()
    assert len(deep) == 2
    for stack, frames in split.items():
        whole = stack.split(";")
        assert frames == ([*whole[:256], "[deeper frames]"] if stack in deep else whole)


@pytest.mark.parametrize(
    "file", sorted((SQL / "tables" / "perfetto").glob("*.sql")), ids=lambda f: f.stem
)
def test_modules_follow_the_stdlib_conventions(file: Path) -> None:
    text = re.sub(r"--[^\n]*", "", file.read_text())
    assert file.read_text().startswith("-- "), "no comment at the head of the module"
    assert not re.search(r"\bDROP\b|\bCREATE (OR REPLACE )?(TABLE|VIEW)\b|__intrinsic|_viz", text)
    for kind, name in re.findall(r"CREATE OR REPLACE PERFETTO (TABLE|INDEX) (\w+)", text):
        assert re.fullmatch(r"_?syncline_[a-z_]+", name)
        assert kind == "TABLE" or name.startswith("_")
    for included in re.findall(r"INCLUDE PERFETTO MODULE (\S+);", text):
        package, _, module = included.rpartition(".")
        assert package == NAMESPACE
        assert (file.parent / f"{module}.sql").is_file()
        assert f"syncline_{module}" in text, f"{included} is not used"
    for used in set(re.findall(r"\bsyncline_([a-z]+)\b", text)) - {file.stem}:
        assert f"INCLUDE PERFETTO MODULE {NAMESPACE}.{used};" in text


@pytest.mark.parametrize("name", names())
def test_the_head_comment_describes_the_report(both, name: str) -> None:
    report = load(name)
    assert report.title.endswith(".")
    assert report.description
    table = run_report(both("one").columns, name)
    assert [column.name for column in report.columns] == table.columns
    for column in report.columns:
        assert column.unit in UNITS
        assert column.text.endswith(".")
        # The name has the unit, for readers of CSV.
        assert (column.unit in ("ns", "time")) == column.name.endswith("_ns")
        assert (column.unit == "bytes") == ("bytes" in column.name.split("_")[-1])


def test_the_sql_is_formatted() -> None:
    pytest.importorskip("syntaqlite")
    from tools import sqlfmt

    assert [complaint for file in sqlfmt.files() for complaint in sqlfmt.complaints(file)] == []


# Reports for people and for programs.


def test_unknown_reports_are_named() -> None:
    with pytest.raises(UnknownReport, match=r"no report 'threds'. Did you mean threads\?"):
        load("threds")
    assert names()[0] == "summary"


def test_caveats(both) -> None:
    for engine in both("one").engines():
        failed = (
            "1 of 1 calls without a request failed (EIO 1): their data may not be durable;"
            " the report failures lists them"
        )
        missing = [
            "2 of 50 lines: unparsed_line: Not of the format.",
            "1 of 3 bios: never_completed: The completion is not in the log.",
        ]
        # What failed is more serious than what is missing.
        assert caveats(engine) == [failed, *missing]
        assert caveats(engine, says_failures=False) == missing
    for engine in both("empty").engines():
        assert caveats(engine) == []


def test_warnings_precede_text_for_people_and_go_to_stderr_for_programs() -> None:
    for name in FORMATS:
        assert preface(name, []) == ("", "")
    assert preface("table", ["a", "b"]) == ("warning: a\nwarning: b\n\n", "")
    assert preface("md", ["a"]) == ("> **Warning:** a\n\n", "")
    assert preface("csv", ["a"]) == ("", "warning: a\n")
    assert preface("json", ["a"]) == ("", "warning: a\n")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"),
        (999, "ns", "999 ns"),
        (1000, "ns", "1 µs"),
        (1_234_567, "ns", "1.23 ms"),
        (12_345_678, "ns", "12.3 ms"),
        (999_600, "ns", "1 ms"),
        (-1500, "ns", "-1.5 µs"),
        (75_000_000_000, "ns", "75 s"),
        (5_000_000_000_000, "ns", "5,000 s"),
        (0, "bytes", "0 B"),
        (4096, "bytes", "4 KiB"),
        (68.23 * 1024, "bytes", "68.2 KiB"),
        (2**50, "bytes", "1,024 TiB"),
        (10.4, "count", "10.40"),
        (1234567, "count", "1,234,567"),
        (6.0, "count", "6"),
        (0.2345, "share", "23.4 %"),
        (3.509, "ratio", "3.51"),
        (41_753_514_022_559, "time", "41,753.514023 s"),
        (1234, "id", "1234"),
        (None, "ns", "-"),
        (1234567, "", "1234567"),
        ("a\x1b[31mb\nc", "text", "a\\x1b[31mb\\nc"),
        ("ä 😀", "text", "ä 😀"),
    ],
)
def test_values_for_people(value: float | str | None, unit: str, text: str) -> None:
    assert human.text(value, unit) == text


LONG = "/home/user/.mozilla/firefox/profile/storage/default/favicons.sqlite-wal"
SAMPLE = Report(
    "sample",
    "Sample: a few values.",
    "",
    (
        Column("path", "text", ""),
        Column("dur_ns", "ns", ""),
        Column("note", "text", ""),
        Column("syncs", "count", ""),
        Column("run", "text", ""),
    ),
    "",
)
SAMPLE_TABLE = Table(
    ["path", "dur_ns", "note", "syncs", "run"],
    [(LONG, 1_234_567, None, 1000, ""), ("a|b", None, None, 2, "")],
)


def test_csv_has_plain_values() -> None:
    rows = list(csv.reader(io.StringIO(exporter("csv")(SAMPLE_TABLE, SAMPLE))))
    assert rows == [
        ["path", "dur_ns", "note", "syncs", "run"],
        [LONG, "1234567", "", "1000", ""],
        ["a|b", "", "", "2", ""],
    ]


def test_json_has_plain_values() -> None:
    got = json.loads(exporter("json")(SAMPLE_TABLE, SAMPLE))
    assert (got["report"], got["columns"][1]) == ("sample", {"name": "dur_ns", "unit": "ns"})
    assert got["rows"][1] == {"path": "a|b", "dur_ns": None, "note": None, "syncs": 2, "run": ""}
    assert json.loads(exporter("json")(SAMPLE_TABLE, None)) == got["rows"]
    assert json.loads(exporter("json")(Table(["a"], []), SAMPLE))["rows"] == []
    infinite = exporter("json")(Table(["a", "b"], [(float("inf"), b"\x00")]), None)
    assert json.loads(infinite) == [{"a": None, "b": "00"}]


def test_markdown() -> None:
    assert exporter("md")(SAMPLE_TABLE, SAMPLE).splitlines() == [
        "## Sample: a few values.",
        "",
        "| path | dur | note | syncs |",
        "| --- | ---: | --- | ---: |",
        f"| {LONG} | 1.23 ms | - | 1,000 |",
        "| a\\|b | - | - | 2 |",
    ]


def test_a_table_in_a_file_is_whole() -> None:
    text = render_table(SAMPLE_TABLE, SAMPLE)
    assert LONG in text
    assert "1.23 ms" in text
    assert "\x1b" not in text
    assert "run" not in text


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_a_table_is_no_wider_than_the_terminal(both, width: int) -> None:
    text = render_table(SAMPLE_TABLE, SAMPLE, width=width)
    assert all(len(line) <= width for line in text.splitlines()[2:5])
    for name in names():
        report = load(name)
        table = run_report(both("odd_names").columns, name)
        lines = render_table(table, report, width=width, rows=5).splitlines()
        if not table.rows:
            # Without rows there is no table, and the terminal breaks its sentences.
            assert not any(set(line) <= {"─"} for line in lines if line), name
            continue
        head = next(number for number, line in enumerate(lines) if set(line) <= {"─"} and line)
        assert all(len(line) <= width for line in lines[2 : head + 2]), name


def test_a_narrow_table_keeps_numbers_and_the_end_of_a_path() -> None:
    text = render_table(SAMPLE_TABLE, SAMPLE, width=36)
    # The column without values is dropped first, and named.
    assert "left out because the terminal is too narrow: note;" in " ".join(text.split())
    row = text.splitlines()[4]
    assert re.search(r"^…favicons\.sqlite-wal +1\.23 ms +1,000$", row)


def test_a_table_on_a_terminal_is_short() -> None:
    table = Table(["a"], [(number,) for number in range(1000)])
    assert "940 more rows" in render_table(table, None, width=80)
    assert len(render_table(table, None).splitlines()) > 1000


def test_the_installed_duckdb_is_a_supported_version() -> None:
    assert 1 <= int(duckdb.__version__.split(".")[0]) < 3
