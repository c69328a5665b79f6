"""What `syncline diff` says first: its figures against the tables of the runs, and its words."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.comparison.answer import Answer, Change
from syncline.comparison.contributors import changed_most
from syncline.comparison.output import answer as rendered
from syncline.comparison.run import Run, Side
from syncline.report.answer import UNKNOWN

from tests.coretools import ROOT, tables
from tests.test_commands import ok, run

DIFF = ROOT / "tests" / "data" / "diff"


def of_tables(log: Path, folder: Path) -> tuple[Counter[str], Counter[str], int]:
    """Returns the ns of a run by phase and by file, and the number of its syncs."""
    _core.convert([str(log)], f"{folder / log.name}.tables/")
    found = tables(folder / f"{log.name}.tables")
    phases: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for row in found["phase"]:
        phases[row["phase"]] += row["dur_ns"]
    for row in found["sync"]:
        files[row["path"]] += row["dur_ns"]
    return +phases, files, len(found["sync"])


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    return json.loads(run("diff", DIFF / "base", DIFF / "slower", "--format", "json").stdout)


def test_the_answer_is_the_means_of_the_tables(tmp_path: Path, compared: dict[str, Any]) -> None:
    answer = compared["answer"]
    files: dict[str, dict[str, float]] = {}
    for side, folder in (("base", "base"), ("new", "slower")):
        runs = [
            of_tables(log, tmp_path / folder) for log in sorted((DIFF / folder).glob("*.log.gz"))
        ]
        phases = sum((one[0] for one in runs), Counter())
        whole = sum(sum(one[1].values()) for one in runs) / len(runs)
        phases[UNKNOWN] = round(whole * len(runs)) - sum(phases.values())
        assert answer["phases_ns"][side] == {
            name: pytest.approx(ns / len(runs)) for name, ns in phases.items()
        }
        assert answer["sync_time_ns"][side] == pytest.approx(whole)
        assert answer["syncs"][side] == sum(one[2] for one in runs) / len(runs)
        for _, of_run, _ in runs:
            for path, ns in of_run.items():
                means = files.setdefault(path, {"base": 0.0, "new": 0.0})
                means[side] += ns / len(runs)
    largest = sorted((abs(means["new"] - means["base"]) for means in files.values()), reverse=True)
    shown = [group for group in answer["groups"] if group["kind"] == "file"]
    assert shown
    for group, change in zip(shown, largest, strict=False):
        means = files[group["name"]]
        assert group["sync_time_ns"] == {side: pytest.approx(ns) for side, ns in means.items()}
        assert abs(means["new"] - means["base"]) == pytest.approx(change)


def test_a_baseline_gives_the_answer_of_its_runs(tmp_path: Path, compared: dict[str, Any]) -> None:
    ok("baseline", "save", DIFF / "base", "-o", tmp_path / "base.json.gz")
    stored = run("diff", tmp_path / "base.json.gz", DIFF / "slower", "--format", "json")
    found = json.loads(stored.stdout)["answer"]
    assert found["phases_ns"] == compared["answer"]["phases_ns"]
    assert found["groups"] == compared["answer"]["groups"]


def test_the_answer_comes_before_the_rows(tmp_path: Path) -> None:
    files = [tmp_path / f"diff.{ending}" for ending in ("txt", "md")]
    run("diff", DIFF / "base", DIFF / "slower", *(word for path in files for word in ("-o", path)))
    for path in files:
        text = path.read_text()
        sentences = ("Time in syncs per run: ", "Phases that changed most (not tested): ", "Files ")
        places = [text.index(sentence) for sentence in sentences]
        assert places == sorted(places)
        assert places[-1] < text.index("syscall_latency_avg")
        assert len([line for line in text.splitlines() if line.startswith(("base  |", "new   |"))]) == 2  # fmt: skip


def test_unknown_figures_are_not_zero() -> None:
    unknown = Answer(
        syncs=Change(2, 1.5), time=Change(1e6, None), phases=({"commit": 1e6}, None), groups=[]
    )
    assert list(rendered.sentences(unknown)) == [
        "Time in syncs per run: 1 ms -> - (syncs: 2 -> 1.5)."
    ]
    assert list(rendered.bars(unknown))[1] == "new   phases not recorded"
    nothing = Answer(Change(None, None), Change(None, None), (None, None), [])
    assert not [*rendered.sentences(nothing), *rendered.bars(nothing)]


def test_what_a_baseline_left_out_did_not_change() -> None:
    sums = {"syncs": 1.0, "time_ns": 5.0, "times": 1.0}
    kept = Run("kept", groups={"file": {"a": sums, "b": sums}}, truncated_kinds=("file",))
    new = Run("new", groups={"file": {"a": {**sums, "time_ns": 9.0}, "c": sums}})
    sides = [Side(one.name, (), [one]) for one in (kept, new)]
    assert list(changed_most(*sides, "file", "time_ns", "both")) == [("b", 5.0, 0.0), ("a", 5.0, 9.0)]  # fmt: skip
