"""`syncline dataset`: what it lists, what it finds, and that what it removes is gone for every reader."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import duckdb
import pytest
from syncline.dataset import index, layout, upkeep
from syncline.dataset.store import FolderStore, open_store

from tests.coretools import DATA
from tests.test_commands import run
from tests.test_dataset import RUNS, bucket, changed, dataset, fails, ok, partition, partitions  # noqa: F401 (fixtures)


def listed(folder: Path | str, *options: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ok("dataset", "ls", folder, "--format", "csv", *options).stdout)))  # fmt: skip


def names_for_plain_readers(folder: Path) -> set[str]:
    """The runs that somebody sees who reads the Parquet files without Syncline."""
    files = f"{folder}/host=*/day=*/run=*/syncline_sync.parquet"
    with duckdb.connect() as db:
        try:
            return {name for (name,) in db.execute("SELECT DISTINCT run FROM read_parquet(?, hive_partitioning = true)", [files]).fetchall()}  # fmt: skip
        except duckdb.IOException:
            return set()


def test_the_list_has_what_the_index_knows(dataset: Path) -> None:  # noqa: F811
    rows = listed(dataset)
    entries, _ = index.read_entries(open_store(str(dataset)))
    assert [row["run"] for row in rows] == [entry.run for entry in entries]
    assert {row["host"] for row in rows} == {"db1", "db2"}
    assert all(row["facts"].startswith("format=") for row in rows)
    for row, entry in zip(rows, entries, strict=True):
        files = Path(dataset, entry.partition).glob("*.parquet")
        assert int(row["bytes"]) == sum(file.stat().st_size for file in files)
    assert {row["day"] for row in listed(dataset, "--where", "host = 'db2'")} == {"2026-11-02"}
    assert len(json.loads(ok("dataset", "ls", dataset, "--format", "json").stdout)["rows"]) == RUNS


def test_a_removed_run_is_gone_for_every_reader(changed: Path) -> None:  # noqa: F811
    small1 = partition(changed, "small1")
    kept = {one.name.removeprefix("run=") for one in partitions(changed)} - {small1.name.removeprefix("run=")}  # fmt: skip
    said = ok("dataset", "rm", changed, small1.name.removeprefix("run="), "--dry-run").stdout
    assert "would be removed: 1 run" in said
    assert len(names_for_plain_readers(changed)) == RUNS
    ok("dataset", "rm", changed, small1.name.removeprefix("run="))
    assert {row["run"] for row in listed(changed)} == kept
    assert names_for_plain_readers(changed) <= kept
    assert not small1.exists()
    # By the path of a partition, and by a condition; nothing is left in folders that are empty.
    empty = partition(changed, "empty")
    ok("dataset", "rm", changed, str(empty.relative_to(changed)))
    assert "removed: 1 run" in ok("dataset", "rm", changed, "--where", "host = 'db2'").stdout
    assert not (changed / "host=db2").exists()
    assert ok("dataset", "verify", changed).stdout.startswith(f"{changed}: 3 runs as at ingest, 0 not")  # fmt: skip


def test_what_a_kill_leaves_is_found_and_can_be_removed(changed: Path) -> None:  # noqa: F811
    """Between the entry and the partition, and while a folder is being removed."""
    (entry,) = (changed / "_runs").glob("small1-*.json")
    small1 = Path(changed, layout.parse(entry.read_bytes()).partition)
    entry.unlink()
    (changed / "_staging" / "removed-x-1").mkdir(parents=True)
    done = run("dataset", "verify", changed)
    assert done.returncode == 3
    assert f"{small1.relative_to(changed)} has no entry" in done.stderr
    assert "1 partition without an entry" in done.stdout
    assert small1.name.removeprefix("run=") in names_for_plain_readers(changed)
    ok("dataset", "rm", changed, "--without-entry", "--dry-run")
    assert small1.exists()
    ok("dataset", "rm", changed, "--without-entry")
    assert not small1.exists()
    assert not (changed / "_staging" / "removed-x-1").exists()
    assert run("dataset", "verify", changed).returncode == 0
    assert len(partitions(changed)) == RUNS - 1


def test_an_ingest_of_a_partition_without_an_entry_brings_the_run_back(changed: Path) -> None:  # noqa: F811
    (entry,) = (changed / "_runs").glob("small1-*.json")
    before = entry.read_bytes()
    entry.unlink()
    ok("ingest", "-q", Path(changed, layout.parse(before).partition), "--into", changed)
    assert run("dataset", "verify", changed).returncode == 0
    assert json.loads(entry.read_bytes())["facts"] == json.loads(before)["facts"]


def test_a_run_that_is_being_added_is_not_removed(
    changed: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its partition is published before its entry, and the lock of the ingest ends after both."""
    store = open_store(str(changed))
    (entry,) = (changed / "_runs").glob("small1-*.json")
    data = entry.read_bytes()
    entry.unlink()
    found = upkeep.orphans(store)
    locked = FolderStore.locked

    def publishing(self: FolderStore, names: object) -> object:
        entry.write_bytes(data)
        return locked(self, names)  # type: ignore[arg-type]

    monkeypatch.setattr(FolderStore, "locked", publishing)
    (orphan,) = found
    assert upkeep.remove_orphan(store, orphan) is None
    assert len(partitions(changed)) == RUNS


def test_nothing_outside_of_a_dataset_is_removed(changed: Path, tmp_path: Path) -> None:  # noqa: F811
    outside = tmp_path / "outside"
    shutil.copytree(partition(changed, "small1"), outside)
    (changed / "host=db9" / "day=2026-01-01").mkdir(parents=True)
    (changed / "host=db9" / "day=2026-01-01" / "run=x-0123456789ab").symlink_to(outside)
    done = fails(3, "dataset", "rm", changed, "--without-entry")
    assert "is a symbolic link" in done.stderr
    assert list(outside.iterdir())
    # What only looks like a partition, and a partition with a file of somebody else.
    for name in ("run=mine", "run=mine-0123456789ab"):
        mine = changed / "host=db9" / "day=2026-01-02" / name
        mine.mkdir(parents=True)
        (mine / "keep.txt").write_text("keep")
    fails(3, "dataset", "rm", changed, "--without-entry")
    assert len([*changed.glob("host=db9/*/*/keep.txt")]) == 2
    assert "there is no such run" in fails(3, "dataset", "rm", changed, "../../outside").stderr


def test_a_run_that_cannot_be_removed_stays_and_the_others_go(changed: Path) -> None:  # noqa: F811
    """Its partition is a link, so neither its entry nor what it leads to is removed."""
    small1 = partition(changed, "small1")
    moved = small1.rename(changed.parent / "moved")
    small1.symlink_to(moved)
    done = fails(3, "dataset", "rm", changed, "--where", "true")
    assert "is a symbolic link" in done.stderr
    assert f"removed: {RUNS - 1} runs" in done.stdout
    assert [row["run"] for row in listed(changed)] == [small1.name.removeprefix("run=")]
    assert list(moved.iterdir())


def test_a_folder_in_a_partition_is_not_removed_with_it(changed: Path) -> None:  # noqa: F811
    """Of a run that is chosen, and of a partition without an entry."""
    mine = partition(changed, "small1") / "mine"
    mine.mkdir()
    (mine / "keep.txt").write_text("keep")
    done = fails(3, "dataset", "rm", changed, "--where", "name = 'small1.log'")
    assert "holds the folder mine" in done.stderr
    (entry,) = (changed / "_runs").glob("small1-*.json")
    entry.unlink()
    assert "holds the folder mine" in fails(3, "dataset", "rm", changed, "--without-entry").stderr
    assert (mine / "keep.txt").read_text() == "keep"


def test_a_run_that_was_replaced_meanwhile_stays(changed: Path) -> None:  # noqa: F811
    store = open_store(str(changed))
    entry = next(one for one in index.read_entries(store)[0] if one.name == "small1.log")
    ok("ingest", "-q", DATA / "small1.log", "--into", changed, "--host", "db3", "--fact", "keep=yes", "--replace")  # fmt: skip
    assert upkeep.remove(store, entry) is None
    (left,) = (one for one in index.read_entries(store)[0] if one.name == "small1.log")
    assert left.facts["keep"] == "yes"
    assert run("dataset", "verify", changed).returncode == 0
    gone = upkeep.remove(store, left)
    assert gone is not None
    assert upkeep.remove(store, left) is None


def test_an_entry_that_cannot_be_read_makes_no_orphan(changed: Path) -> None:  # noqa: F811
    (entry,) = (changed / "_runs").glob("small1-*.json")
    entry.write_text("")
    done = run("dataset", "verify", changed)
    assert "is damaged" in done.stderr
    assert "has no entry" not in done.stderr
    ok("dataset", "rm", changed, "--without-entry")
    small1 = partition(changed, "small1")
    # As the hint says.
    entry.unlink()
    ok("ingest", "-q", small1, "--into", changed)
    assert run("dataset", "verify", changed).returncode == 0
    shutil.rmtree(changed / "_runs")
    assert "its index is lost" in fails(3, "dataset", "rm", changed, "--without-entry").stderr
    assert len(partitions(changed)) == RUNS


def test_a_path_of_a_partition_names_its_run(changed: Path) -> None:  # noqa: F811
    ok("dataset", "rm", changed, partition(changed, "small1"), "--dry-run")
    assert "removed: 1 run" in ok("dataset", "rm", changed, f"{partition(changed, 'small1')}/").stdout  # fmt: skip


def test_what_is_meant_must_be_said(changed: Path) -> None:  # noqa: F811
    assert "nothing says which runs are meant" in fails(2, "dataset", "rm", changed).stderr
    assert "give one of them" in fails(2, "dataset", "rm", changed, "--without-entry", "--where", "true").stderr  # fmt: skip
    assert "removed: 0 runs" in ok("dataset", "rm", changed, "--where", "host = 'x'").stdout
    some = partition(changed, "small1")
    assert "no such run passes" in fails(3, "dataset", "rm", changed, some.name.removeprefix("run="), "--where", "host = 'db1'").stderr  # fmt: skip
    assert "is not a dataset" in fails(3, "dataset", "ls", changed.parent).stderr
    assert len(partitions(changed)) == RUNS


def test_an_object_store_is_kept_in_the_same_way(bucket: str, dataset: Path) -> None:  # noqa: F811
    url = f"{bucket}/kept"
    ok("ingest", "-q", *(partition(dataset, name) for name in ("small1", "parallel4", "empty")), "--into", url)  # fmt: skip
    store = open_store(url)
    assert len(listed(url)) == len(store.partitions()) == 3
    entry = next(one for one in index.read_entries(store)[0] if one.name == "small1.log")
    store.remove(f"_runs/{entry.file}")
    assert "1 partition without an entry" in run("dataset", "verify", url).stdout
    ok("dataset", "rm", url, "--without-entry")
    ok("dataset", "rm", url, "--where", "name = 'empty.log'")
    (left,) = store.partitions()
    assert "run=parallel4-" in left
    assert run("dataset", "verify", url).returncode == 0
    assert not store.sizes("_claims")
