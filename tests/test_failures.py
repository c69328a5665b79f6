"""Failures: syncs, calls and bios that end with an error, in every format, report and output."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.report.run import run_query, run_report

from tests import sqltools
from tests.coretools import DATA, ROOT, convert, recording, tables
from tests.sqltools import Run
from tests.test_commands import ok, run

TESTS = ROOT / "tests" / "data"
STRACE = TESTS / "strace" / "failed.log"
ERRORS = {"EIO": -5, "EINVAL": -22, "ENOSPC": -28}
# fsync and fdatasync, and writes to descriptors with O_SYNC: 6 and 7.
SYNC = re.compile(r"\d+ [\d.]+ (fsync|fdatasync|write(?=\([67]<))\(.*\) += (-?\d+)(?: (E\w+))?.*")


def syncs_of_strace() -> list[tuple[str, int]]:
    """Operation and result of each sync in the recording: a negative errno, or what the call returned."""
    matches = [SYNC.fullmatch(line) for line in STRACE.read_text().splitlines()]
    return [(m[1], ERRORS[m[3]] if m[3] else int(m[2])) for m in matches if m]


def failing(log: bytes, every: int, error: int) -> bytes:
    """The log with an error as the result of every n-th request."""
    count = iter(range(1, 10**6))

    def result(match: re.Match[bytes]) -> bytes:
        return match[1] + (str(error).encode() if next(count) % every == 0 else b"0")

    return re.sub(rb"( exit id \d+ ret )0", result, log)


def summary(path: Path, engine: str = "duckdb") -> dict[str, tuple[Any, ...]]:
    with opened(str(path), Reading(), engine) as made:
        return {row[0]: row[2:] for row in run_report(made, "summary").rows if row[1] == "all"}


def test_failed_calls_of_strace_are_failures_and_byte_counts_are_not(tmp_path: Path) -> None:
    truth = syncs_of_strace()
    failed = Counter(result for _, result in truth if result < 0)
    assert failed == {-5: 3, -22: 2, -28: 6}
    assert any(op == "write" and result == 100 for op, result in truth)
    _core.convert([str(STRACE)], f"{tmp_path}/out/")
    rows = tables(tmp_path / "out")["sync"]
    assert [(row["op"], row["ret"]) for row in rows] == truth
    figures = summary(STRACE)
    assert figures["failed_syncs"] == (11.0, "count", len(truth), len(truth))
    assert figures["failed_calls"][0] == 0
    assert figures["failed_bios"][0] is None
    messages = run("report", STRACE).stdout
    assert (
        f"11 of {len(truth)} syncs failed (ENOSPC 6, EIO 3, EINVAL 2): their data may not be durable"
        in messages
    )


def test_a_failed_sync_is_not_empty(tmp_path: Path) -> None:
    """Each fifth of 50 syncs without a bio fails."""
    log = tmp_path / "failed.log"
    log.write_bytes(failing(recording("empty.log"), 5, -5))
    ends = re.findall(rb" exit id \d+ ret (-?\d+)", log.read_bytes())
    failures = ends.count(b"-5")
    assert (len(ends), failures) == (51, 10)
    before, after = summary(DATA / "empty.log"), summary(log)
    assert before["empty_share"][0] == 50 / 51
    assert after["empty_share"] == (40 / 51, "share", 51, 51)
    assert (before["failed_syncs"][0], after["failed_syncs"][0]) == (0, 10)
    trace = Path(f"{tmp_path}/failed.pftrace")
    _core.convert([str(log)], str(trace))
    for path, engine in ((log, "duckdb"), (log, "embedded"), (trace, "auto")):
        with opened(str(path), Reading(), engine) as made:
            assert sum(row[3] for row in run_report(made, "empty").rows) == 40
            assert sum(row[2] for row in run_report(made, "files").rows) == 40
            assert sum(row[3] for row in run_report(made, "over-time").rows) == 40
            rows = run_report(made, "failures").rows
            assert [(row[0], row[1], row[2], row[6]) for row in rows] == [
                ("sync", "EIO", "fsync", 10)
            ]


def test_every_report_and_inspect_say_that_syncs_failed(tmp_path: Path) -> None:
    log = tmp_path / "failed.log"
    log.write_bytes(failing(recording("empty.log"), 5, -28))
    sentence = "10 of 51 syncs failed (ENOSPC 10): their data may not be durable"
    for report in ("summary", "losses", "latency"):
        assert sentence in run("report", log, report).stdout
    assert sentence in ok("inspect", log)
    (described,) = json.loads(ok("inspect", "--format", "json", log))["inputs"]
    assert described["failures"] == [
        {
            "what": "syncs",
            "failed": 10,
            "of": 51,
            "errors": [{"error": -28, "name": "ENOSPC", "count": 10}],
        }
    ]
    assert "Failures: none of 51 syncs." in ok("inspect", DATA / "empty.log")
    high_level = convert(tmp_path, log.read_bytes(), to="rows.csv")
    assert sentence in run("report", high_level).stdout


def test_a_query_of_the_tables_of_perfetto_counts_no_failures(tmp_path: Path) -> None:
    """It would build the tables of Syncline for the count, which takes as long as loading the trace."""
    log = tmp_path / "x.log"
    log.write_bytes(
        b"1000 7 wl start id 5 start 0 end 9 datasync 0 path /f\n1200 7 wl exit id 5 ret -5\n"
    )
    trace = tmp_path / "x.pftrace"
    run("convert", log, "-o", trace)
    sentence = "1 of 1 syncs failed (EIO 1)"
    for sql, counts in (("FROM slice", False), ("FROM syncline_bio", True)):
        done = run("query", "--engine", "embedded", trace, f"SELECT COUNT(*) {sql}")
        assert (sentence in done.stderr) == counts


def test_more_failed_syncs_are_a_regression(tmp_path: Path) -> None:
    for side, source, every in (("base", "base", 10**6), ("new", "same", 4)):
        (tmp_path / side).mkdir()
        for number in range(1, 6):
            name = f"run{number}.log"
            data = gzip.decompress((TESTS / "diff" / source / f"{name}.gz").read_bytes())
            (tmp_path / side / name).write_bytes(failing(data, every, -5))
    done = run("diff", "--format", "json", tmp_path / "base", tmp_path / "new")
    (row,) = [row for row in json.loads(done.stdout)["rows"] if row["metric"] == "failed_syncs"]
    assert done.returncode == 1, done.stderr
    assert (row["verdict"], row["gate"], row["base"]) == ("regression", True, 0)
    assert row["new"] > 0


def test_an_interrupted_call_has_its_error_and_an_unknown_result_has_none(tmp_path: Path) -> None:
    """xfs reports no end of a sync, so the end of the call is its end."""
    head = "# tracer: nop\n#\n"
    lines = []
    for number, ret in enumerate(["0xfffffffffffffe00", "0xfffffffffffffffc", "0x0"]):
        second = 10 + number
        lines += [
            f"  wl-7  [000] .....  {second}.000001: sys_fsync(fd: 3)",
            f"  wl-7  [000] .....  {second}.000002: xfs_file_fsync: dev 254:16 ino 0x83",
            f"  wl-7  [000] .....  {second}.000009: sys_fsync -> {ret}",
        ]
    rows = tables(convert(tmp_path, (head + "\n".join(lines) + "\n").encode()))
    assert [row["ret"] for row in rows["sync"]] == [-512, -4, 0]
    assert [row["ret"] for row in rows["call"]] == [-512, -4, 0]
    # The thesis's scripts may print an exit without a result.
    log = b"1000 7 wl fsync\n1100 7 wl start id 5 start 0 end 9 datasync 0 path /f\n1200 7 wl exit id 5 ret -5\n1300 7 wl fsync_exit\n"
    rows = tables(convert(tmp_path, log))
    assert (rows["sync"][0]["ret"], rows["call"][0]["ret"]) == (-5, None)


# Bios.


def ftrace_with_errors() -> tuple[str, Counter[str]]:
    """The text of a ring buffer in which each seventh completion of the block layer and of a bio fails."""
    text = gzip.decompress(
        (TESTS / "ftrace" / "sqlite_wal_full.trace.txt.gz").read_bytes()
    ).decode()
    count: Counter[str] = Counter()
    lines = []
    for line in text.splitlines():
        if "bio_complete: bio=" in line and "bh=" not in line:
            count["bio"] += 1
            if count["bio"] % 7 == 0:
                line = line.replace("status=0", "status=-5")
                count["failed bio"] += 1
        lines.append(line)
    return "\n".join([*lines, ""]), count


def test_errors_of_bio_complete(tmp_path: Path) -> None:
    text, count = ftrace_with_errors()
    assert count["failed bio"] > 3
    rows = tables(convert(tmp_path, text.encode()))["bio"]
    assert sum(row["error"] == -5 for row in rows if row["bio"]) == count["failed bio"]
    # The block layer's own events report no error in this text.
    assert {row["error"] for row in rows} == {0, -5}
    trace = convert(tmp_path, text.encode(), to="out.pftrace")
    with opened(str(trace), Reading(), "embedded") as made:
        table = run_query(
            made, "SELECT error, COUNT(*) FROM syncline_bio WHERE error < 0 GROUP BY 1"
        )
        assert table.rows == [(-5, count["failed bio"])]
        names = run_query(
            made,
            "SELECT COUNT(*), COUNT(DISTINCT extract_arg(arg_set_id, 'correlation_id')) FROM slice"
            " WHERE category = 'syncline.bio' AND name GLOB '*, failed: EIO'",
        )
        assert names.rows == [(count["failed bio"], 1)]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("C  WS 8 + 8 [0]", 0),
        ("C  WS 8 + 8 [-5]", -5),
        # blkparse prints the 16 bits of blktrace without their sign.
        ("C  WS 8 + 8 [65531]", -5),
        ("C  WS 8 + 8 (   12345) [65508]", -28),
    ],
)
def test_errors_that_blkparse_prints(tmp_path: Path, line: str, error: int) -> None:
    text = (
        "254,16   1        1     0.000000000  2967  Q  WS 8 + 8 [wl]\n"
        f"254,16   1        2     0.002927018     0  {line}\n"
    )
    for log in (text, convert(tmp_path, text.encode(), to="log.events.jsonl").read_text()):
        (row,) = tables(convert(tmp_path, log.encode()))["bio"]
        assert (row["error"], row["dur_ns"]) == (error, 2_927_018)


@pytest.mark.parametrize(
    ("status", "error"),
    [("", None), (" status 0", 0), (" status 10", -5), (" status 3", -28), (" status -5", -5)],
)
def test_a_status_that_bpftrace_prints(tmp_path: Path, status: str, error: int | None) -> None:
    """The scripts print `bi_status` as the kernel stores it, the patch an errno."""
    log = (
        "1000 7 wl start id 5 start 0 end 9 datasync 0 path /f\n1100 7 wl bio_add_folio id 5 bio 0x10 start 0 len 4096\n"
        f"1200 7 wl bio_submit id 5 bio 0x10\n1300 0 swapper bio_complete bio 0x10{status}\n1400 7 wl exit id 5 ret 0\n"
    )
    for text in (log, convert(tmp_path, log.encode(), to="log.events.jsonl").read_text()):
        assert [row["error"] for row in tables(convert(tmp_path, text.encode()))["bio"]] == [error]


def test_failed_bios_are_a_warning_and_a_figure(tmp_path: Path) -> None:
    text = gzip.decompress((TESTS / "blktrace" / "rename.blkparse.txt.gz").read_bytes()).decode()
    log = tmp_path / "disk.txt"
    # The first completion of each journal commit, which covers several bios.
    failed = re.sub(r"(C WSM \d+ \+ 80 )\[0\]", r"\1[65531]", text)
    log.write_text(failed)
    with opened(str(log), Reading(), "duckdb") as made:
        bios = run_query(
            made, "SELECT COUNT(*), SUM(CASE WHEN error = -5 THEN 1 ELSE 0 END) FROM syncline_bio"
        ).rows
        total, broken = bios[0]
    assert failed != text
    assert broken >= 10 * (failed.count("[65531]"))
    assert summary(log)["failed_bios"] == (broken, "count", total, total)
    assert f"{broken} of {total} bios failed (EIO {broken})" in run("report", log).stdout
    rows = list(csv.DictReader(io.StringIO(ok("report", "--format", "csv", log, "failures"))))
    assert sum(int(row["failed"]) for row in rows) == broken


def test_a_failed_bio_counts_whatever_its_direction(tmp_path: Path) -> None:
    """Of each direction, one bio fails, one does not, and the result of one is not known."""
    directions = ("write", "read", "flush", "discard", "zeroes", "unknown")
    made = Run()
    made.add(1000, 900)
    for number, direction in enumerate(directions):
        for place, error in enumerate((-5, 0, None)):
            made.bio.append(
                {
                    **{
                        "bio_id": 3 * number + place + 1,
                        "sync_id": None,
                        "ts_ns": 1100 + 10 * number,
                        "dur_ns": 5,
                    },
                    **{"dev": "8,0", "origin": "background", "bytes": 4096, "tid": 9, "comm": "x"},
                    **{"direction": direction, "error": error},
                }
            )
    expected = (len(directions), "count", 2 * len(directions), 3 * len(directions))
    assert summary(sqltools.write_parquet(made, tmp_path / "tables"))["failed_bios"] == expected
    trace = sqltools.write_trace(made, tmp_path / "t.pftrace")
    assert summary(trace, "embedded")["failed_bios"] == expected


def test_background_bytes_are_null_where_no_size_is_recorded(tmp_path: Path) -> None:
    """Probes on a stock kernel record the bios of other threads, but not their folios, and here not their size."""
    recorded = gzip.decompress((TESTS / "bpf" / "stock.log.gz").read_bytes())
    log = tmp_path / "stock.log"
    log.write_bytes(re.sub(rb" bytes \d+ opf", b" opf", recorded))
    _core.convert([str(log)], f"{tmp_path}/out/")
    background = [
        row
        for row in tables(tmp_path / "out")["bio"]
        if row["origin"] == "background" and row["direction"] == "write"
    ]
    known = [row["bytes"] for row in background if row["folios"]]
    assert len(known) < len(background)
    figures = summary(log)
    assert figures["background_bios"][0] == len(background)
    expected = (float(sum(known)) if known else None, "bytes", len(known), len(background))
    assert figures["background_bytes"] == expected


def test_background_bios_are_null_without_submits(tmp_path: Path) -> None:
    text = gzip.decompress((TESTS / "blktrace" / "small1.blkparse.txt.gz").read_bytes()).decode()
    log = tmp_path / "disk.txt"
    log.write_text(
        "".join(
            line for line in text.splitlines(keepends=True) if line[43:45].strip() in ("D", "C")
        )
    )
    trace = Path(f"{tmp_path}/disk.pftrace")
    _core.convert([str(log)], str(trace))
    for path, engine in ((log, "duckdb"), (log, "embedded"), (trace, "auto")):
        figures = summary(path, engine)
        assert (figures["background_bios"][0], figures["background_bytes"][0]) == (None, None)
        # It is how the log was recorded.
        assert figures["losses"][0] == 0
    assert "submits_missing" in run("report", log, "losses").stdout
