"""Syncs as a person counts them: a call with all its requests is one."""

from __future__ import annotations

import csv
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report import run_report
from syncline.report.run import run_query

from tests.coretools import ROOT
from tests.test_commands import ok

Row = dict[str, Any]
RECORDING = ROOT / "tests" / "data" / "sync-calls" / "sync-loop.tar.xz"
ENGINES = {"trace": "embedded", "tables": "duckdb"}
COLUMNS = "sync_id, ts_ns, dur_ns, op, path, what, bytes, bios, incomplete, requests"


def rows(path: Path, engine: str, sql: str) -> list[Row]:
    with opened(str(path), Reading(), engine=engine) as engine_:
        return run_query(engine_, sql).as_dicts()


def outputs(log: Path, folder: Path) -> dict[str, Path]:
    """The same log as a trace and as tables."""
    made = {"trace": folder / "t.pftrace", "tables": folder / "tables"}
    for path in made.values():
        ok("convert", str(log), "-o", f"{path}/" if path.name == "tables" else str(path))
    return made


def calls(folder: Path, lines: str) -> list[Row]:
    """The syncs of a log in the thesis's format, which are the same in both engines. Requests and bytes are conserved."""
    log = folder / "x.log"
    log.write_text("TIME PID COMM EVENT DATA\n" + lines)
    found = {}
    for name, path in outputs(log, folder).items():
        engine = ENGINES[name]
        found[name] = rows(
            path, engine, f"SELECT {COLUMNS} FROM syncline_sync_call ORDER BY sync_id"
        )
        (sums,) = rows(path, engine, "SELECT COUNT(*) AS n, SUM(bytes) AS b FROM syncline_sync")
        assert sum(row["requests"] for row in found[name]) == sums["n"]
        assert sum(row["bytes"] or 0 for row in found[name]) == (sums["b"] or 0)
    assert found["trace"] == found["tables"]
    return found["tables"]


def request(start: int, id: int, path: str, *, writes: bool = False) -> str:
    """The lines of a request that takes 20 ns."""
    bio = f"bio 0xff1100000000{id:04x}"
    lines = [f"{start} 7 app start id {id} start 0 end 0 datasync 0 path {path}"]
    if writes:
        lines += [
            f"{start + 2} 7 app bio_add_folio id {id} {bio} start 0 len 4096",
            f"{start + 4} 7 app bio_submit id {id} {bio}",
            f"{start + 14} 0 swapper/0 bio_complete {bio}",
        ]
    return "\n".join([*lines, f"{start + 20} 7 app exit id {id} ret 0", ""])


def test_a_call_with_an_exit_is_one_sync(tmp_path: Path) -> None:
    # sync() from 1000 to 1100 makes two requests, and the second one writes 4096 bytes. The fsync after it makes one.
    log = (
        "1000 7 app sync\n" + request(1010, 1, "/a") + request(1040, 2, "/b", writes=True)
        + "1100 7 app sync_exit ret 0\n"
        + "2000 7 app fsync\n" + request(2010, 3, "/a", writes=True) + "2050 7 app fsync_exit ret 0\n"
    )  # fmt: skip
    whole, one = calls(tmp_path, log)
    assert whole == {
        "sync_id": 1,
        "ts_ns": 1000,
        "dur_ns": 100,
        "op": "sync",
        "path": None,
        "what": "whole file systems",
        # The ids say that no flusher thread wrote for it.
        "bytes": 4096,
        "bios": 1,
        "incomplete": None,
        "requests": 2,
    }
    # A call with one request lasts as long as that: from the entry of the call to the end of the request.
    assert (one["sync_id"], one["dur_ns"], one["path"], one["requests"]) == (3, 30, "/a", 1)


def test_without_exits_only_some_calls_make_several_requests(tmp_path: Path) -> None:
    # The second request of the fsync is a durable write: an fsync makes one. An msync makes one for each file.
    log = (
        "1000 7 app fsync\n" + request(1010, 1, "/a") + request(1040, 2, "/b")
        + "2000 7 app msync\n" + request(2010, 3, "/a") + request(2040, 4, "/b")
    )  # fmt: skip
    found = calls(tmp_path, log)
    assert [(row["sync_id"], row["op"], row["dur_ns"], row["what"], row["requests"]) for row in found] == [
        (1, "fsync", 30, None, 1),
        (2, None, 20, None, 1),
        (3, "msync", 60, "several files", 2),
    ]  # fmt: skip


def test_without_calls_each_request_is_a_sync(tmp_path: Path) -> None:
    found = calls(tmp_path, request(1010, 1, "/a") + request(1040, 2, "/b", writes=True))
    assert [(row["sync_id"], row["dur_ns"], row["requests"], row["bios"]) for row in found] == [
        (1, 20, 1, 0),
        (2, 20, 1, 1),
    ]


def test_requests_below_a_file_system_are_of_the_call(tmp_path: Path) -> None:
    # An fsync of a file on overlayfs syncs the file below it. The exit says that both are of one call.
    log = (
        "1000 7 app fsync\n" + request(1010, 1, "/merged/a") + request(1040, 2, "/upper/a", writes=True)
        + "1070 7 app fsync_exit ret 0\n"
    )  # fmt: skip
    (one,) = calls(tmp_path, log)
    assert (one["dur_ns"], one["requests"], one["bios"], one["what"]) == (70, 2, 1, "several files")


def test_a_call_that_has_not_returned_has_no_length(tmp_path: Path) -> None:
    # The log records exits of msync, and ends within the second one: more requests may have come.
    log = (
        "1000 7 app msync\n" + request(1010, 1, "/a") + "1050 7 app msync_exit ret 0\n"
        + "2000 7 app msync\n" + request(2010, 2, "/a") + request(2040, 3, "/b")
    )  # fmt: skip
    _, last = calls(tmp_path, log)
    assert (last["requests"], last["dur_ns"], last["incomplete"]) == (2, None, "end")


def test_a_lost_entry_leaves_one_sync(tmp_path: Path) -> None:
    # The exit of a sync() whose entry is not in the log: its requests are of one call, which began at an unknown time.
    log = (
        "500 7 app sync\n" + request(510, 1, "/a") + "540 7 app sync_exit ret 0\n"
        + request(1010, 2, "/a") + request(1040, 3, "/b") + "1070 7 app sync_exit ret 0\n"
    )  # fmt: skip
    _, lost = calls(tmp_path, log)
    assert (lost["sync_id"], lost["requests"], lost["dur_ns"], lost["incomplete"]) == (
        2,
        2,
        None,
        "call",
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sync-loop")
    with tarfile.open(RECORDING) as archive:
        archive.extractall(folder, filter="data")
    return folder / "sync-loop"


@pytest.fixture(scope="module")
def forms(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return outputs(recording / "run", tmp_path_factory.mktemp("forms"))


def truth(recording: Path) -> list[Row]:
    names = ("op", "pid", "tid", "comm", "path", "start_ns", "end_ns")
    lines = csv.reader((recording / "truth.tsv").read_text().splitlines(), delimiter="\t")
    return [dict(zip(names, line, strict=False)) for line in lines]


@pytest.mark.parametrize("form", ENGINES)
def test_the_recording_has_the_calls_of_the_programs(
    recording: Path, forms: dict[str, Path], form: str
) -> None:
    made = truth(recording)
    assert len(made) == 104
    found = rows(forms[form], ENGINES[form], "SELECT * FROM syncline_sync_call ORDER BY ts_ns")
    assert Counter(row["op"] for row in found) == Counter(row["op"] for row in made)
    # The program's clock is read before the entry and after the exit, with what the probes cost in between.
    ours = sorted((row["tid"], row["ts_ns"], row["syscall_ns"]) for row in found)
    theirs = sorted((int(row["tid"]), int(row["start_ns"]), int(row["end_ns"])) for row in made)
    offset = min(start - ts for (_, ts, _), (_, start, _) in zip(ours, theirs, strict=True))
    for (tid, ts, syscall_ns), (thread, start, end) in zip(ours, theirs, strict=True):
        assert tid == thread
        assert syscall_ns <= end - start
        assert abs(start - ts - offset) < 50_000_000
    whole = [row for row in found if row["op"] == "sync"]
    assert {row["what"] for row in whole} == {"whole file systems"}
    # 34 to 36 requests each; flusher threads wrote for them, so their amounts are not known.
    assert sum(row["requests"] for row in whole) == 420
    assert {row["bytes"] for row in whole} == {row["bios"] for row in whole} == {None}


@pytest.mark.parametrize("form", ENGINES)
def test_reports_count_calls(forms: dict[str, Path], form: str) -> None:
    with opened(str(forms[form]), Reading(), engine=ENGINES[form]) as engine:
        summary = {
            (row["metric"], row["scope"]): row for row in run_report(engine, "summary").as_dicts()
        }
        files = run_report(engine, "files").as_dicts()
        threads = run_report(engine, "threads").as_dicts()
        latency = run_report(engine, "latency").as_dicts()
    assert {scope: row["value"] for (metric, scope), row in summary.items() if metric == "syncs"} == {
        "all": 104,
        "op:fdatasync": 90,
        "op:fsync": 2,
        "op:sync": 12,
    }  # fmt: skip
    assert summary["requests", "all"]["value"] == 512
    # Only the 92 syncs of files are known to have written something or nothing.
    assert (summary["empty_share", "all"]["known"], summary["empty_share", "all"]["syncs"]) == (
        92,
        104,
    )
    assert [(row["path"].rpartition("/")[2], row["syncs"]) for row in files] == [
        ("0000000000000000.wal", 55),
        ("0000000000000001.wal", 37),
        ("[whole file systems]", 12),
    ]
    assert Counter(row["syncs"] for row in threads) == {92: 1, 1: 12}
    assert sum(row["syncs"] for row in latency if row["kind"] == "syscall") == 104


@pytest.mark.parametrize("form", ENGINES)
def test_the_answer_counts_calls(forms: dict[str, Path], form: str) -> None:
    said = ok("report", str(forms[form]))
    assert "104 syncs (512 requests) of 2 files, 12 of whole file systems, by 13 threads" in said
    assert "whole file systems, sync (12 threads): 504 ms" in said
    assert "without a known path" not in said


def test_a_table_without_the_column_is_read(tmp_path: Path) -> None:
    # Files of earlier versions do not say which requests are of one call. Each is then a sync.
    log = tmp_path / "x.log"
    log.write_text(
        "TIME PID COMM EVENT DATA\n1000 7 app sync\n" + request(1010, 1, "/a") + request(1040, 2, "/b")
        + "1100 7 app sync_exit ret 0\n"
    )  # fmt: skip
    made = tmp_path / "x.csv"
    ok("convert", str(log), "-o", str(made))
    sql = "SELECT sync_id, requests FROM syncline_sync_call ORDER BY sync_id"
    assert rows(made, "duckdb", sql) == [{"sync_id": 1, "requests": 2}]
    table = list(csv.DictReader(made.read_text().splitlines()))
    with made.open("w", newline="") as out:
        writer = csv.DictWriter(
            out, [name for name in table[0] if name != "call_sync_id"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(table)
    assert rows(made, "duckdb", sql) == [
        {"sync_id": 1, "requests": 1},
        {"sync_id": 2, "requests": 1},
    ]


def test_a_trace_gives_the_same_table_again(forms: dict[str, Path], tmp_path: Path) -> None:
    ok("convert", str(forms["trace"]), "-o", f"{tmp_path}/again/")
    sql = "SELECT sync_id, call_sync_id FROM syncline_sync ORDER BY sync_id"
    assert rows(tmp_path / "again", "duckdb", sql) == rows(forms["tables"], "duckdb", sql)


@pytest.mark.parametrize("form", ENGINES)
def test_what_a_filter_leaves_of_a_call_does_not_look_empty(
    recording: Path, tmp_path: Path, form: str
) -> None:
    """Each of the 12 calls of sync() has requests on the disk, but the first one, which has the call, is not among them."""
    made = tmp_path / ("t.pftrace" if form == "trace" else "tables")
    out = f"{made}/" if form == "tables" else str(made)
    ok("convert", str(recording / "run"), "--device", "254:16", "-o", out)
    left = rows(
        made, ENGINES[form], f"SELECT {COLUMNS} FROM syncline_sync_call WHERE comm = 'sync'"
    )
    assert [(row["op"], row["bytes"], row["bios"]) for row in left] == [(None, None, None)] * 12
    with opened(str(made), Reading(), engine=ENGINES[form]) as engine:
        assert "sync" not in {row["comm"] for row in run_report(engine, "empty").as_dicts()}
