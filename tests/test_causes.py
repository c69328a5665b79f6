"""Recordings of syncs whose cause the set-up forces: tests/data/causes/README.md."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from syncline.advice import Advice, advise
from syncline.inputs import Reading, opened
from syncline.render import answer as rendered
from syncline.report.answer import Answer
from syncline.report.answer import read as read_answer

from tests.coretools import tables

ARCHIVE = Path(__file__).parent / "data/causes/causes.tar.xz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("causes")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def read(run: Path) -> tuple[Answer, dict[str, Advice]]:
    Reading().convert([str(run)], f"{run}.tables/")
    with opened(f"{run}.tables", Reading()) as engine:
        return read_answer(engine), {one.finding.name: one for one in advise(engine)}


def test_a_limit_on_cpu_time_and_who_uses_it_up_are_named(runs: Path) -> None:
    answer, advice = read(runs / "cpu-max")
    cause = rendered.sentences(answer)["cause"]
    assert cause.startswith("Mostly a limit on CPU time (cpu.max of /limited: 20000 100000): ")
    # While the group may not run, nobody else needs both CPUs.
    assert answer.cpu_idle_ns > answer.phases["cpu wait"] / 2
    assert "burn.sh (" in cause
    assert "Next: raise the limit" in cause
    cpu = advice["cpu"]
    assert (cpu.status, cpu.syncs) == ("found", 24)
    assert all("limit: cpu.max of /limited: 20000 100000;" in row["note"] for row in cpu.shown)


def test_fsync_of_overwrites_is_found_in_a_recording(runs: Path) -> None:
    _, advice = read(runs / "fsync-prealloc")
    blocks = [k * 7 % 12 for k in range(24)]
    # Only in front of a block that was synced before, the file cannot have grown.
    behind = [max(blocks[:k], default=-1) > block for k, block in enumerate(blocks)]
    found = advice["fdatasync"]
    assert (found.status, found.syncs, found.of_syncs) == ("found", sum(behind), 24)


def test_the_states_of_threads_that_live_for_a_moment_are_recorded(runs: Path) -> None:
    Reading().convert([str(runs / "short-lived")], f"{runs}/short-lived.tables/")
    syncs = tables(runs / "short-lived.tables")["sync"]
    of_dd = [row for row in syncs if row["comm"] == "dd"]
    of_io_uring = [row for row in syncs if row["comm"].startswith("iou-wrk-")]
    assert (len(of_dd), len(of_io_uring)) == (30, 16)
    assert all(row["cpu_wait_ns"] is not None for row in of_dd + of_io_uring)
