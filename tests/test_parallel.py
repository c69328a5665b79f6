"""The report `parallel`: against a count at each instant, and on recordings whose threads and files are known."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from syncline.engine.columns import open_columns
from syncline.report import run_report, sql_root

from tests import known_truth, sqltools
from tests.coretools import file_name, tables
from tests.test_sql import RUNS

Row = dict[str, Any]
Scope = tuple[str, int | None, str | None]


def report(folder: Path) -> list[Row]:
    with open_columns(folder, sql=sql_root() / "tables" / "duckdb") as engine:
        found = run_report(engine, "parallel")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def scopes(sync: list[Row], marks: list[Row]) -> dict[Scope, list[Row]]:
    """The requests with a known end, by process and by mark."""
    rows = [row for row in sync if row.get("dur_ns") is not None]
    names: dict[int, str | None] = {}
    for pid in {row.get("pid") for row in rows} - {None}:
        of_pid = [row for row in rows if row.get("pid") == pid]
        found = [sorted({row.get(key) for row in of_pid} - {None}) for key in ("process", "comm")]
        names[pid] = next((name[0] for name in found if name), None)
    groups: dict[Scope, list[Row]] = defaultdict(list)
    for row in rows:
        pid = row.get("pid")
        groups["process", pid, names.get(pid, row.get("comm")) if pid else row["comm"]].append(row)
    for mark in marks:
        for row in rows:
            if mark["ts_ns"] <= row["ts_ns"] < mark["ts_ns"] + mark["dur_ns"]:
                groups["mark", mark["mark_id"], mark["name"]].append(row)
    return groups


def times(rows: list[Row]) -> tuple[Counter[int], Counter[str]]:
    """The time with each number of syncs in flight, and with syncs of one file only."""
    borders = {at for row in rows for at in (row["ts_ns"], row["ts_ns"] + row["dur_ns"])}
    at_once: Counter[int] = Counter()
    single: Counter[str] = Counter()
    for since, until in itertools.pairwise(sorted(borders)):
        flying = [
            file_name(row)
            for row in rows
            if row["ts_ns"] <= since and until <= row["ts_ns"] + row["dur_ns"]
        ]
        if flying:
            at_once[len(flying)] += until - since
        if len(set(flying)) == 1:
            single[flying[0]] += until - since
    return at_once, single


def check(folder: Path, sync: list[Row], marks: list[Row]) -> list[Row]:
    rows = report(folder)
    found: dict[Scope, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["scope"], row["id"], row["name"]].append(row)
    expected = scopes(sync, marks)
    assert found.keys() == expected.keys()
    for scope, members in expected.items():
        at_once, single = times(members)
        wall = sum(at_once.values())
        (total,) = [row for row in found[scope] if row["kind"] == "all"]
        assert total["syncs"] == len(members)
        assert total["time_sum_ns"] == sum(row["dur_ns"] for row in members)
        assert total["wall_ns"] == wall
        assert total["number"] == max(at_once, default=0)
        numbers = [row for row in found[scope] if row["kind"] == "at once"]
        assert [(row["number"], row["wall_ns"]) for row in numbers] == sorted(at_once.items())
        files = [row for row in found[scope] if row["kind"] == "without file"]
        # Those without a path may be of several files.
        del single["[unknown file]"]
        best = sorted(single.items(), key=lambda one: (-one[1], one[0]))[:5]
        assert [(row["path"], row["wall_ns"]) for row in files] == best
        for row in files:
            same = [one for one in members if file_name(one) == row["path"]]
            assert row["syncs"] == len(same)
            assert row["time_sum_ns"] == sum(one["dur_ns"] for one in same)
        for row in found[scope]:
            assert row["share"] == (pytest.approx(row["wall_ns"] / wall) if wall else None)
    return rows


@pytest.mark.parametrize("name", ["one", "marked", "processes", "process_ids", "crowd", "cut_off"])
def test_a_made_up_run_is_counted_at_each_instant(name: str, tmp_path: Path) -> None:
    run = RUNS[name]()
    check(sqltools.write_parquet(run, tmp_path / name), run.sync, run.mark)


def test_four_threads_with_a_file_each(tmp_path: Path) -> None:
    case = known_truth.converted("four-files", tmp_path)
    rows = check(tmp_path / "four-files.tables", case.tables["sync"], [])
    (total,) = [row for row in rows if row["kind"] == "all"]
    calls = case.truth["calls"]
    # All threads are in a sync most of the time, as the workload says of itself.
    assert total["number"] == case.truth["options"]["threads"] == 4
    borders = sorted({at for call in calls for at in (call["start_ns"], call["end_ns"])})
    wall = sum(
        until - since
        for since, until in itertools.pairwise(borders)
        if any(call["start_ns"] <= since and until <= call["end_ns"] for call in calls)
    )
    assert 0.9 * wall < total["wall_ns"] <= wall
    assert total["parallel_avg"] > 2
    # So no file costs much by itself.
    saved = [row["wall_ns"] for row in rows if row["kind"] == "without file"]
    assert sum(saved) < 0.5 * total["wall_ns"]


def test_one_thread_waits_for_each_file_by_itself(tmp_path: Path) -> None:
    case = known_truth.converted("small-files", tmp_path)
    rows = check(tmp_path / "small-files.tables", case.tables["sync"], [])
    files = [row for row in rows if row["kind"] == "without file"]
    lengths = sorted((row["dur_ns"] for row in case.tables["sync"]), reverse=True)
    assert [row["wall_ns"] for row in files] == lengths[:5]


def test_tables_of_a_run_are_those_of_its_log(tmp_path: Path) -> None:
    case = known_truth.converted("postgres", tmp_path)
    rows = check(tmp_path / "postgres.tables", tables(tmp_path / "postgres.tables")["sync"], [])
    assert {row["scope"] for row in rows} == {"process"}
    assert len({row["id"] for row in rows}) == len({row["pid"] for row in case.tables["sync"]})
