"""The report `groups`: against the reference implementation, and on groups that were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.engine.columns import open_columns
from syncline.inputs import Reading, opened
from syncline.report import run_report, sql_root

from tests import known_truth, sqltools
from tests.coretools import ROOT, tables
from tests.reference import groups as reference

Row = dict[str, Any]
DATA = ROOT / "tests" / "data"


def report(path: Path) -> list[Row]:
    with opened(str(path), Reading()) as engine:
        found = run_report(engine, "groups")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def check(folder: Path) -> list[Row]:
    """Compares the report with the reference."""
    of_run = tables(folder)
    expected = reference.groups(of_run)
    rows = report(folder)
    names = [row["number"] or row["kind"] for row in rows]
    assert names == [*expected]
    covered = reference.covered(of_run)
    whole = sum(row["dur_ns"] for row in covered)
    background = [bio for bio in of_run["bio"] if bio["sync_id"] is None]
    for name, row in zip(names, rows, strict=True):
        members = expected[name]
        assert row["syncs"] == len(members)
        assert row["share"] == pytest.approx(len(members) / len(covered))
        assert row["time_share"] == pytest.approx(sum(one["dur_ns"] for one in members) / whole)
        sizes = [one["bytes"] for one in members]
        assert (row["min_bytes"], row["max_bytes"]) == (min(sizes), max(sizes))
        lengths = [one["writeback_ns"] for one in members]
        assert (row["writeback_min_ns"], row["writeback_max_ns"]) == (min(lengths), max(lengths))
        assert row["writeback_avg_ns"] == pytest.approx(sum(lengths) / len(lengths))
        assert row["bios_avg"] == pytest.approx(sum(one["bios"] for one in members) / len(members))
        longest = max(members, key=lambda one: (one["dur_ns"], -one["sync_id"]))
        assert row["sync_id"] == longest["sync_id"]
        for column, others, recorded in (
            ("commit_share", of_run["journal"], of_run["journal"]),
            ("others_share", background, of_run["bio"]),
        ):
            if not recorded or name == "empty":
                assert row[column] is None
            else:
                met = sum(reference.meets(one, others) for one in members)
                assert row[column] == pytest.approx(met / len(members)), (name, column)
        phase = reference.main_phase(of_run, members)
        assert row["main_phase"] == (phase and phase[0])
        assert row["phase_share"] == pytest.approx(phase and phase[1])
    return rows


RECORDINGS = {
    "tracecmd/small4.dat": 2,
    "ftrace/sqlite_wal_full.trace.txt.gz": 1,
    "dynamic-events/ext4-both.txt.gz": 2,
    "thesis/small4.log": 1,
    "thesis/sqlite_rj_full.log": 2,
    "thesis/empty.log": 0,
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    _core.convert([str(DATA / name)], f"{tmp_path}/tables/")
    rows = check(tmp_path / "tables")
    assert sum(row["kind"] == "group" for row in rows) == RECORDINGS[name]


@pytest.mark.parametrize("case", ["neighbour-buffered", "postgres", "four-files"])
def test_a_recording_with_a_known_truth_agrees_with_the_reference(
    case: str, tmp_path: Path
) -> None:
    known_truth.converted(case, tmp_path)
    rows = check(tmp_path / f"{case}.tables")
    if case == "neighbour-buffered":
        # The neighbour's pages were written back during the sync that is far from the others.
        group, far = rows
        assert (group["kind"], far["kind"], far["syncs"]) == ("group", "others", 1)
        assert far["writeback_min_ns"] > 2 * group["writeback_max_ns"]
        assert far["others_share"] == 1 > group["others_share"]


def two_lines(slow: int) -> sqltools.Run:
    """30 syncs of 4 to 128 KiB, whose latency is 10 ns a byte; each third one takes `slow` times as long, during a commit."""
    run = sqltools.Run()
    at = 1_000_000
    for number in range(30):
        size = 4096 << (number // 3 % 6)
        is_slow = number % 3 == 0
        length = size * 10 * (slow if is_slow else 1)
        run.add(
            at,
            length + 1000,
            **{"bytes": size, "bios": 1, "folios": size // 4096, "ranges": 1},
            **{"writeback_ns": length, "before_submit_ns": 100, "after_complete_ns": 890},
            path=f"/{number}",
        )
        if is_slow:
            commit = {"commit_id": len(run.journal) + 1, "ts_ns": at + 150, "dur_ns": 50}
            of_journal = {"tid": 9, "comm": "jbd2/vda-8", "kind": "commit"}
            run.journal.append(commit | of_journal | {"transaction_id": number})
        at += 2 * length + 10_000
    return run


@pytest.mark.parametrize(("slow", "found"), [(1, 1), (8, 2)])
def test_two_lines_are_two_groups(slow: int, found: int, tmp_path: Path) -> None:
    folder = sqltools.write_parquet(two_lines(slow), tmp_path / "run")
    with open_columns(folder, sql=sql_root() / "tables" / "duckdb") as engine:
        table = run_report(engine, "groups")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["kind"] for row in rows] == ["group"] * found
    if found == 2:
        assert [row["syncs"] for row in rows] == [20, 10]
        assert [row["commit_share"] for row in rows] == [0, 1]
        assert rows[1]["differs"] == "a commit during its writeback 100 % (elsewhere 0 %)"
        assert [(row["min_bytes"], row["max_bytes"]) for row in rows] == [(4096, 131072)] * 2
        assert rows[1]["writeback_min_ns"] == 4096 * 80


def both(run: sqltools.Run, folder: Path) -> list[Row]:
    rows = report(sqltools.write_parquet(run, folder / "run"))
    trace = sqltools.write_trace(run, folder / "t.pftrace")
    with opened(str(trace), Reading(), engine="embedded") as engine:
        assert run_report(engine, "groups").as_dicts() == rows
    return rows


def written(run: sqltools.Run, at: int, **columns: Any) -> Row:
    size = {"bytes": 4096, "bios": 1, "folios": 1, "ranges": 1, "writeback_ns": 900}
    times = {"before_submit_ns": 50, "after_complete_ns": 50}
    return run.add(at, 1000, **(size | times | columns))


def test_a_sync_of_a_file_system_without_an_id_is_not_empty(tmp_path: Path) -> None:
    """Flusher threads may have written for it. Its second request has no call of its own; that of a patched kernel has an id."""
    run = sqltools.Run()
    for number in range(3):
        written(run, 10_000 * (number + 1))
    first = run.add(50_000, 1000, op="sync", id=None)
    run.add(51_100, 1000, call=False, call_sync_id=first["sync_id"], id=None)
    run.add(60_000, 1000, op="sync", id=7)
    found = {row["kind"]: row["syncs"] for row in both(run, tmp_path)}
    assert found == {"group": 3, "empty": 1}


def test_a_commit_of_another_device_is_none_of_a_request(tmp_path: Path) -> None:
    """Three syncs of 8,0 while the journal of 8,0 commits, and three of 8,1, whose commits are not recorded."""
    run = sqltools.Run()
    for number, dev in enumerate(["8,0"] * 3 + ["8,1"] * 3):
        at = 10_000 * (number + 1)
        written(run, at, dev=dev, path=f"/{number}", bytes=4096 if dev == "8,0" else 1 << 20)
        run.journal.append(
            {"commit_id": number + 1, "ts_ns": at, "dur_ns": 1000, "dev": "8,0", "kind": "commit"}
            | {"tid": 9, "comm": "jbd2/sda-8", "transaction_id": number}
        )
    found = {row["min_bytes"]: row["commit_share"] for row in both(run, tmp_path)}
    assert found == {4096: 1, 1 << 20: None}


def test_what_is_not_known_of_a_request_does_not_set_it_apart(tmp_path: Path) -> None:
    """Four small syncs waited for a commit. Of three of the four large ones it is not known, and one did not. Empty ones have no bios."""
    run = sqltools.Run()
    for number in range(4):
        written(run, 10_000 * (number + 1), bios=2, journal_ns=10)
        known = {"journal_ns": 0} if number == 3 else {}
        written(run, 100_000 * (number + 1), bytes=1 << 20, bios=2, **known)
        run.add(1_000_000 + 10_000 * number, 1000, journal_ns=10)
    found = {row["min_bytes"]: row["differs"] for row in both(run, tmp_path)}
    # 4 of 5 of which it is known elsewhere, and none of 1; nobody has a different number of bios.
    assert found[1 << 20] == "waited for a commit 0 % (elsewhere 100 %)"
    assert found[4096] == found[0] == "waited for a commit 100 % (elsewhere 80 %)"
