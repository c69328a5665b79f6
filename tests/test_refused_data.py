"""What the reports say after a device has refused data, on four file systems, against what the program found on the disk."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline.check import check, load_rules
from syncline.inputs import Reading, opened
from syncline.report.run import run_query, run_report

FOLDER = Path(__file__).parent / "data" / "refused"
# tests/workloads/failed_sync.py.
PAGE = 4096
# tests/workloads/failed_journal.py.
FILES = "/mnt/data/*"
# The syncs that flushed the device before all of their own data were complete.
FLUSHED_EARLY = """
    SELECT DISTINCT data.sync_id
    FROM syncline_bio AS data
    JOIN syncline_bio AS flush
      ON flush.sync_id = data.sync_id AND flush.ts_ns < data.ts_ns + data.dur_ns
    JOIN syncline_sync AS sync ON sync.sync_id = data.sync_id
    WHERE data.bytes > 0 AND flush.bytes = 0 AND sync.ret = 0
"""


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
@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs", "f2fs"])
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
    rules = tmp_path / "rules.toml"
    rules.write_text(f"[[rule]]\nkind = 'created-file-synced'\nfiles = '{FILES}'\nfolder = false\n")
    with opened(str(trace if engine == "embedded" else journals / fs), Reading(), engine) as found:
        rows: dict[str, list[dict[str, Any]]] = {
            name: run_report(found, name).as_dicts()
            for name in ("durability", "failures", "unsynced")
        }
        flushed_early = run_query(found, FLUSHED_EARLY).rows
        (rule,) = check(found, load_rules(str(rules)))
    assert ("sync", "", 0) in calls
    # btrfs returns 0 for an fsync of the file that was synced before, and does not accept another write to it.
    true = [file for call, file, ret in calls if call == "fsync" and ret == 0]
    assert set(true) == {"before"}
    # f2fs flushes the device while it still writes the inode.
    assert len(flushed_early) == (fs == "f2fs")
    verdict = "unknown" if flushed_early else "flush"
    verdicts = sorted((row["op"], row["verdict"], row["syncs"]) for row in rows["durability"])
    # sync() was not true, and its request says so, or that of f2fs, which returns nothing, has bios that failed.
    assert verdicts == [("fsync", verdict, len(true)), ("sync", "failed", 1)]
    failed: Counter[str] = Counter()
    for row in rows["failures"]:
        if row["what"] == "sync" and row["path"]:
            failed[Path(row["path"]).name] += row["failed"]
    assert failed == Counter(file for call, file, ret in calls if call == "fsync" and ret < 0)
    states = {Path(row["path"]).name: row["state"] for row in rows["unsynced"]}
    assert states == {name: "failed" if failed[name] else "synced" for name in on_disk}
    lost = {name for name, content in on_disk.items() if content is None}
    assert {Path(one.row["path"]).name for one in rule.shown if one.verdict == "violated"} == lost
    assert rule.files == {"ok": len(on_disk) - len(lost), "violated": len(lost)}
