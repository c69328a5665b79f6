"""What the reports say after a device has refused data, on four file systems, against what the program found on the disk."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report.run import run_report

FOLDER = Path(__file__).parent / "data" / "refused"
# tests/workloads/failed_sync.py.
PAGE = 4096


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refused")
    with tarfile.open(FOLDER / "recordings.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("engine", ["duckdb", "embedded"])
@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs", "f2fs"])
def test_a_second_sync_that_returns_0_has_lost_what_the_disk_has_not(
    fs: str, engine: str, runs: Path, tmp_path: Path
) -> None:
    calls = json.loads((runs / fs / "truth.json").read_text())["calls"]
    # The program wrote new pages, and the disk still has the old ones.
    untrue = [call for call in calls if call["ret"] == 0 and "old" in call.get("on_disk", ())]
    refused = [call for call in calls if call["ret"] < 0]
    assert [call["call"] for call in untrue] == ["again"]
    assert untrue[0]["cached"] == ["new"] * 4
    trace = tmp_path / "out.pftrace"
    if engine == "embedded":
        Reading().convert([str(runs / fs)], str(trace))
    with opened(str(trace if engine == "embedded" else runs / fs), Reading(), engine) as found:
        rows: dict[str, list[dict[str, Any]]] = {
            name: run_report(found, name).as_dicts() for name in ("durability", "failures")
        }
    assert {row["verdict"]: row["syncs"] for row in rows["durability"]} == {
        "lost before": len(untrue),
        "flush": len(calls) - len(untrue) - len(refused),
    }
    (lost,) = [row for row in rows["durability"] if row["verdict"] == "lost before"]
    assert lost["lost_bytes"] == untrue[0]["on_disk"].count("old") * PAGE
    (failed,) = [row for row in rows["failures"] if row["what"] == "sync"]
    assert (failed["error"], failed["failed"]) == ("EIO", len(refused))
    # It failed before the one that lies.
    assert failed["last_ts_ns"] < lost["first_ts_ns"]


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journals")
    with tarfile.open(FOLDER / "journal.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("engine", ["duckdb", "embedded"])
@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_nothing_is_called_durable_after_the_journal_has_failed(
    fs: str, engine: str, journals: Path, tmp_path: Path
) -> None:
    """sync() returns no error, and the disk has none of what was to be synced since."""
    calls = [
        tuple(call) for call in json.loads((journals / fs / "truth.json").read_text())["calls"]
    ]
    on_disk = json.loads((journals / fs / "on_disk.json").read_text())["on_disk"]
    assert on_disk == {"before": "old", "waiting": None, "refused": None}
    trace = tmp_path / "out.pftrace"
    if engine == "embedded":
        Reading().convert([str(journals / fs)], str(trace))
    with opened(str(trace if engine == "embedded" else journals / fs), Reading(), engine) as found:
        rows: dict[str, list[dict[str, Any]]] = {
            name: run_report(found, name).as_dicts()
            for name in ("durability", "failures", "unsynced")
        }
    assert ("sync", "", 0) in calls
    # The first fsync of `before` was true; sync() was not, and its request says so.
    verdicts = sorted((row["op"], row["verdict"], row["syncs"]) for row in rows["durability"])
    assert verdicts == [("fsync", "flush", 1), ("sync", "failed", 1)]
    failed = {Path(row["path"]).name: row["failed"] for row in rows["failures"] if row["what"] == "sync" and row["path"]}  # fmt: skip
    for name in on_disk:
        of_file = [ret for call, file, ret in calls if (call, file) == ("fsync", name) and ret < 0]
        assert failed[name] == len(of_file) > 0
    states = {Path(row["path"]).name: row["state"] for row in rows["unsynced"]}
    assert {states[name] for name, content in on_disk.items() if content is None} == {"failed"}
