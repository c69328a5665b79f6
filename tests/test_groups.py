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
