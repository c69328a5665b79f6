"""Recordings against the kernel's own counters: tests/data/devices/README.md."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline.reading import Reading
from syncline.render import answer as rendered

from tests.coretools import tables
from tests.test_answer import read

ARCHIVE = Path(__file__).parent / "data/devices/devices.tar.xz"
CASES = ("btrfs-dup", "btrfs-raid1", "btrfs-raid5", "xfs-external-log", "ext4-without-journal", "loop")  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("devices")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for case in CASES:
        Reading().convert([str(folder / case)], f"{folder}/{case}.tables/")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_each_device_wrote_and_flushed_what_the_kernel_counted(case: str, runs: Path) -> None:
    found: dict[str, Counter[str]] = {}
    for bio in tables(runs / f"{case}.tables")["bio"]:
        # With RAID5, the bios of a sync are never submitted: btrfs writes stripes instead, which are rows too.
        if case == "btrfs-raid5" and bio["incomplete"] == "start":
            continue
        of = found.setdefault(bio["dev"], Counter())
        of["bytes"] += bio["bytes"] or 0
        # A device without FUA flushes after each bio that asks for it, and before each that asks for a flush.
        of["flushes"] += bio["rwbs"].startswith("F") + ("WF" in bio["rwbs"])
    kernel = json.loads((runs / case / "counters.json").read_text())
    assert {dev: dict(of) for dev, of in found.items()} == {
        dev: {name: of[name] for name in ("bytes", "flushes")} for dev, of in kernel.items()
    }


def test_a_sync_without_a_journal_waits_for_metadata(runs: Path) -> None:
    spent: Counter[str] = Counter()
    for row in tables(runs / "ext4-without-journal.tables")["phase"]:
        spent[row["phase"]] += row["dur_ns"]
    # Before the waits were recorded, 13 to 26 % was not explained.
    assert spent["metadata wait"] > 0.1 * spent.total()
    assert spent["residue"] < 0.07 * spent.total()


def test_the_flush_that_a_sync_waits_for_is_a_bio_of_it(runs: Path) -> None:
    found: dict[str, Any] = tables(runs / "ext4-without-journal.tables")
    flushes = Counter(bio["sync_id"] for bio in found["bio"] if bio["direction"] == "flush")
    waits = Counter(wait["sync_id"] for wait in found["wait"] if wait["wait"] == "flush")
    assert None not in flushes
    assert flushes == waits


def test_the_mirrors_of_a_raid_are_no_bios_of_a_sync(runs: Path) -> None:
    found = tables(runs / "btrfs-raid1.tables")
    of_sync = [bio for bio in found["bio"] if bio["sync_id"] and bio["direction"] == "write"]
    assert sum(bio["bytes"] for bio in of_sync) == sum(row["bytes"] for row in found["sync"])
    # Both disks hold the same, and btrfs submits what it writes to the second one last.
    assert {bio["dev"] for bio in of_sync} == {"254,32"}


def test_syncs_of_a_loop_device_are_not_those_of_the_program(runs: Path) -> None:
    said = rendered.sentences(read(runs / "loop.tables", "duckdb"))["total"]
    assert "32 syncs (and 64 by threads of the kernel) of 18 files by 2 threads waited " in said
    assert "These 64 by threads of the kernel, such as kworker, all of " in said
    assert "/image, waited " in said
    assert said.endswith("What follows covers both.")
