"""The reports `device`, `journal` and `durability`: what the set-up of a recording forces, in both engines."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.recordings import Filter
from syncline.report.run import run_query, run_report

from tests import known_truth, sqltools
from tests.coretools import ROOT, Rows, tables
from tests.known_truth import Case
from tests.test_commands import run

DATA = ROOT / "tests" / "data"
T = 1_000_000
Row = dict[str, Any]
Found = dict[str, Rows]
REPORTS = ("device", "journal", "durability")


def reports(path: Path, engine: str) -> Found:
    found = {}
    with opened(str(path), Reading(), engine=engine) as opened_engine:
        for name in REPORTS:
            table = run_report(opened_engine, name)
            found[name] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Case, Found]]:
    """Converts a case once, and gives its reports from both engines, which are equal."""
    folder = tmp_path_factory.mktemp("known-truth")
    done: dict[str, tuple[Case, Found]] = {}

    def one(case: str) -> tuple[Case, Found]:
        if case not in done:
            converted = known_truth.converted(case, folder)
            Reading().convert([f"{folder}/{case}"], f"{folder}/{case}.pftrace")
            found = reports(folder / f"{case}.tables", "duckdb")
            assert reports(folder / f"{case}.pftrace", "embedded") == found
            done[case] = (converted, found)
        return done[case]

    return one


def verdicts(found: Found) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in found["durability"]:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + row["syncs"]
    return counts


@pytest.mark.parametrize(
    ("case", "want"),
    [
        # ext4 flushes before the last block of a commit, or at the end of a sync without a commit.
        ("cache", {"flush": 6}),
        ("cache-fua", {"flush": 6}),
        ("cache-xfs", {"flush": 6}),
        ("cache-in-place", {"flush": 6}),
        # The kernel asks for flushes all the same; the block layer drops them.
        ("no-cache", {"flush": 6}),
        ("no-barrier", {"no flush": 6}),
        # Direct I/O with O_DSYNC: the sync function of the write only flushes.
        ("flush-write", {"flush only": 6}),
        ("group-4-xfs", {"flush": 20}),
    ],
)
def test_what_makes_data_durable(case: str, want: dict[str, int], recorded: Any) -> None:
    assert verdicts(recorded(case)[1]) == want


def test_a_sync_after_a_failed_write_has_lost_the_data(recorded: Any) -> None:
    """The device refuses one write. Each open file hears of it once; then syncs return 0, and nothing is written again until the end."""
    one, found = recorded("error")
    calls = [call for call in one.truth["calls"] if call["op"] == "fdatasync"]
    failed = next(at for at, call in enumerate(calls) if call["errno"])
    rewritten = next(at for at, call in enumerate(calls) if at > failed and call["dirty"])
    unheard = [call for call in calls[failed:rewritten] if call["errno"] == 0]
    assert len(unheard) == 3
    (lost,) = [row for row in found["durability"] if row["verdict"] == "lost before"]
    assert lost["syncs"] == len(unheard)
    assert unheard[0]["start_ns"] <= lost["first_ts_ns"] <= unheard[0]["end_ns"]
    assert unheard[-1]["start_ns"] <= lost["last_ts_ns"] <= unheard[-1]["end_ns"]
    good = [call for call in calls if call["errno"] == 0]
    assert verdicts(found) == {"lost before": 3, "flush": len(good) - len(unheard)}


@pytest.mark.parametrize("case", ["queue-1", "queue-4", "queue-31"])
def test_the_queue_is_as_deep_as_the_device_allows(case: str, recorded: Any) -> None:
    one, found = recorded(case)
    depth = one.truth["device"]["queue_depth"]
    rows = {(row["part"], row["comm"]): row for row in found["device"]}
    whole = rows["all", None]
    assert whole["max_depth"] == depth
    assert 1 <= whole["depth"] <= depth
    neighbour = rows["thread", "neighbour"]
    writes = one.truth["neighbour"]
    assert neighbour["bytes"] == writes["bytes"]
    assert neighbour["bios"] == neighbour["requests"] == writes["bytes"] // writes["block"]
    # Each request takes at least the time that was set.
    assert whole["device_ns"] >= one.truth["device"]["request_us"] * 1000
    assert whole["busy_ns"] * depth >= whole["requests"] * one.truth["device"]["request_us"] * 1000
    threads = [row for (part, _), row in rows.items() if part == "thread"]
    for column in ("bios", "bytes", "requests", "flushes", "fua", "errors"):
        assert sum(row[column] for row in threads) == whole[column]
    # Merged bios are those that one issue handed to the driver.
    issued = {
        (e["sector"], e["ts_ns"])
        for e in one.events
        if e["event"] == "block_rq_issue" and "W" in e["rwbs"]
    }
    assert whole["requests"] == len(issued)


def test_a_stacked_device_shows_the_queue_of_the_device_below(recorded: Any) -> None:
    """The device mapper keeps each write for 20 ms, in ticks of 4 ms, and hands it to a fast disk, at the same sector."""
    one, found = recorded("stacked")
    dev = one.truth["device"]["dev"]
    below = {e["dev"] for e in one.events if e["event"] == "block_rq_issue"} - {dev}
    issues = [e for e in one.events if e["event"] == "block_rq_issue" and e["dev"] in below]
    bios = [row for row in one.tables["bio"] if row["dev"] == dev and row["direction"] == "write"]
    assert len(bios) >= 30
    for bio in bios:
        end, sector = bio["ts_ns"] + bio["dur_ns"], bio["sector"]
        (issue,) = (
            e
            for e in issues
            if bio["ts_ns"] <= e["ts_ns"] <= end
            and e["sector"] <= sector < e["sector"] + e["bytes"] // 512
        )
        assert (bio["queue_ns"], bio["device_ns"]) == (
            issue["ts_ns"] - bio["ts_ns"],
            end - issue["ts_ns"],
        )
    queue = sorted(bio["queue_ns"] for bio in bios)
    assert queue[len(queue) // 2] >= (one.truth["device"]["write_ms"] - 4) * T
    (whole,) = [row for row in found["device"] if (row["dev"], row["part"]) == (dev, "all")]
    assert whole["queue_ns"] > 4 * whole["device_ns"]
    phases = [row["phase"] for row in one.tables["phase"]]
    assert "writeback" not in phases
    assert {"queue", "device"} <= set(phases)


def below(path: Path, engine: str) -> dict[str, str | None]:
    with opened(str(path), Reading(), engine=engine) as opened_engine:
        table = run_report(opened_engine, "device")
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {row["dev"]: row["below"] for row in rows}


def test_the_devices_below_come_from_the_run_directory_or_from_remaps(tmp_path: Path) -> None:
    run = known_truth.unpacked("stacked", tmp_path)
    dev = "253,0"
    devices = json.loads((run / "devices.json").read_text())
    number = next(number for number, device in devices.items() if device["name"] == "vdb")

    def found() -> str | None:
        (folder := tmp_path / str(len(list(tmp_path.iterdir())))).mkdir()
        for output in ("tables/", "out.pftrace"):
            Reading().convert([str(run)], f"{folder}/{output}")
        # A trace that is read back, by the core and by a trace processor, and one that is filtered.
        convert_trace(f"{folder}/out.pftrace", f"{folder}/again/")
        convert_trace(
            f"{folder}/out.pftrace",
            f"{folder}/slow.pftrace",
            filter=Filter(min_latency_ns=1).for_core(),
        )
        results = [
            below(folder / "tables", "duckdb"),
            below(folder / "again", "duckdb"),
            below(folder / "out.pftrace", "embedded"),
            below(folder / "slow.pftrace", "embedded"),
        ]
        assert results == [results[0]] * len(results)
        return results[0][dev]

    assert found() == "vdb"
    # The kernel's own list is complete: a mirror may have got no bio yet.
    devices["253:0"]["on"] = ["vdb", "vdc"]
    (run / "devices.json").write_text(json.dumps(devices))
    assert found() == "vdb vdc"
    # Not all are known, so the remaps say it.
    devices["253:0"]["on"] = ["vdb", "vdz"]
    (run / "devices.json").write_text(json.dumps(devices))
    assert found() == "vdb"
    (run / "devices.json").unlink()
    assert found() == number.replace(":", ",")


@pytest.mark.parametrize(("partition", "want"), [({"partition": None}, ""), ({}, None)])
def test_a_device_on_no_other_is_not_unknown(
    partition: dict[str, None], want: str | None, tmp_path: Path
) -> None:
    """A recorder that did not distinguish partitions had an empty list for them too."""
    run = known_truth.unpacked("null-ext4", tmp_path)
    devices = json.loads((run / "devices.json").read_text())
    for device in devices.values():
        device |= partition
    (run / "devices.json").write_text(json.dumps(devices))
    for output in ("tables/", "out.pftrace"):
        Reading().convert([str(run)], f"{tmp_path}/{output}")
    found = below(tmp_path / "tables", "duckdb")
    assert below(tmp_path / "out.pftrace", "embedded") == found
    assert set(found.values()) == {want}


@pytest.mark.parametrize("case", ["postgres-neighbour", "neighbour-buffered"])
def test_sync_and_async_bios_are_those_with_and_without_the_flag(case: str, recorded: Any) -> None:
    one, found = recorded(case)
    rows = {row["part"]: row for row in found["device"] if row["part"] != "thread"}
    assert rows.keys() == {"all", "sync", "async"}
    for part, flag in (("sync", True), ("async", False)):
        bios = [row for row in one.tables["bio"] if ("S" in row["rwbs"]) == flag]
        # The block layer drops a flush of a device without a cache, and issues nothing.
        spans = {
            (row["ts_ns"] + (row["queue_ns"] or 0), row["ts_ns"] + row["dur_ns"]) for row in bios
        }
        # The device flushes before a write that asks for it.
        spans |= {
            (row["ts_ns"], row["ts_ns"] + row["queue_ns"] - (row["requeue_ns"] or 0))
            for row in bios
            if row["rwbs"].startswith("F") and row["direction"] == "write"
        }
        assert rows[part]["bios"] == len(bios)
        assert rows[part]["bytes"] == sum(row["bytes"] or 0 for row in bios)
        assert rows[part]["busy_ns"] == union(spans)


def union(spans: set[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


@pytest.mark.parametrize("case", ["group-4", "group-staggered", "forced-fsync", "forced-syncfs"])
def test_the_syncs_that_share_a_commit(case: str, recorded: Any) -> None:
    one, found = recorded(case)
    # The events of the journal and of its waits.
    starts = {e["transaction"]: e["ts_ns"] for e in one.events if e["event"] == "jbd2_start_commit"}
    waits: dict[int, list[int]] = {number: [] for number in starts}
    for event in one.events:
        if event["event"] == "wait_commit" and event["data_tid" if "data_tid" in event else "tid"]:
            number = int(event.get("data_tid", 0))
            if number in waits:
                waits[number].append(event["ts_ns"])
    begun = sum(1 for number, times in waits.items() if times and min(times) <= starts[number])
    rows = found["journal"]
    assert sum(row["commits"] for row in rows if row["kind"] == "commit") == len(starts)
    assert sum(row["commits"] for row in rows if row["started_by"] == "sync") == begun
    if case.startswith("group"):
        assert max(row["max_syncs"] for row in rows) == max(map(len, waits.values())) > 1
        assert sum(row["syncs"] for row in rows) == sum(map(len, waits.values()))


@pytest.mark.parametrize("case", ["cache", "group-4", "postgres"])
def test_the_steps_of_commits_are_between_their_events(case: str, recorded: Any) -> None:
    one, found = recorded(case)
    names = ("start_commit", "commit_locking", "commit_flushing", "commit_logging", "end_commit")
    times: dict[int, dict[str, int]] = {}
    for event in one.events:
        name = event["event"].removeprefix("jbd2_")
        if name in names:
            times.setdefault(event["transaction"], {})[name] = event["ts_ns"]
    rows = {row["transaction_id"]: row for row in one.tables["journal"]}
    assert rows.keys() == times.keys()
    for number, at in times.items():
        row = rows[number]
        assert row["locking_ns"] == at["commit_flushing"] - at["start_commit"]
        assert row["flushing_ns"] == at["commit_logging"] - at["commit_flushing"]
        assert row["logging_ns"] == at["end_commit"] - at["commit_logging"]
        assert row["locking_ns"] + row["flushing_ns"] + row["logging_ns"] == row["dur_ns"]
    total = sum(row["dur_ns"] for row in rows.values())
    steps = ("locking_ns", "flushing_ns", "logging_ns")
    of_report = sum(row["commits"] * row[step] for row in found["journal"] for step in steps)
    assert of_report == pytest.approx(total, abs=3 * len(rows))


def made(tmp_path: Path, fill: Callable[[sqltools.Run], None]) -> Found:
    """The reports of a run that is written by hand, as tables and as a trace."""
    run = sqltools.Run()
    fill(run)
    return reports(sqltools.write_parquet(run, tmp_path / "run"), "duckdb")


def bio(run: sqltools.Run, ts: int, length: int | None, rwbs: str | None, **columns: Any) -> None:
    row = {"bio_id": len(run.bio) + 1, "ts_ns": ts, "dur_ns": length, "rwbs": rwbs, "error": 0}
    row |= {"dev": "8,0", "sector": 8 * len(run.bio), "bytes": 4096, "origin": "background"}
    run.bio.append(row | columns)


@pytest.mark.parametrize(
    ("rwbs", "flush_at", "verdict"),
    [
        ("WS", T + 50, "flush"),
        # It may have begun before the data were complete; it ended before that, or after the sync.
        ("WS", T + 39, "unknown"),
        ("WS", T + 25, "no flush"),
        ("WS", T + 95, "no flush"),
        ("WFS", T + 39, "fua"),
        (None, T + 50, "unknown"),
    ],
)
def test_a_flush_covers_what_was_complete_before_it(
    rwbs: str | None, flush_at: int, verdict: str, tmp_path: Path
) -> None:
    def fill(run: sqltools.Run) -> None:
        sync = run.add(T, 100, bios=1, bytes=4096, dev="8,0", ino=5, journal_ns=0, flush_ns=0)
        bio(run, T + 20, 20, rwbs, sync_id=sync["sync_id"])
        bio(run, flush_at, 10, "FWFSM")
        bio(run, T + 50, 10, "FWFSM", dev="8,16")

    found = made(tmp_path, fill)
    assert verdicts(found) == {verdict: 1}


def test_what_the_recording_does_not_show_is_unknown(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        # Neither its waits, nor the bios of the journal that it waits for.
        for at, flush_ns in ((0, None), (1000, 0)):
            sync = run.add(T + at, 100, bios=1, bytes=4096, dev="8,0", ino=5, flush_ns=flush_ns)
            bio(run, T + at + 20, 20, "WS", sync_id=sync["sync_id"])
        run.wait.append(
            {"sync_id": 2, "number": 1, "wait": "commit wait", "ts_ns": T + 1050, "dur_ns": 20}
        )

    assert verdicts(made(tmp_path, fill)) == {"unknown": 2}


FILE: Row = {"dev": "8,0", "ino": 5}
# As long as a window of the report, in ns.
MINUTE = 2**36


def wait(run: sqltools.Run, sync: Row, name: str, at: int, length: int, commit: int | None) -> None:
    row = {"sync_id": sync["sync_id"], "number": 1, "wait": name, "ts_ns": at, "dur_ns": length}
    run.wait.append(row | {"commit_id": commit})


@pytest.mark.parametrize("minutes", [0, 1, 3])
@pytest.mark.parametrize(
    ("rwbs", "flush_at", "flush_ns", "verdict"),
    [
        # A flush after the data were complete, in the sync or before it.
        ("W", 1050, 0, "flush"),
        ("W", 60, 0, "flush"),
        # Before the data, while they were written, after the sync.
        ("W", 5, 0, "no flush"),
        ("W", 35, 0, "unknown"),
        ("W", 1095, 0, "no flush"),
        ("W", None, 0, "no flush"),
        # The recording has no waits, so it does not show whether the sync waited for a flush.
        ("W", None, None, "unknown"),
        # These data need no flush, and the sync asked for none.
        ("WF", None, 0, "no data"),
    ],
)
def test_data_that_others_wrote_are_those_of_the_sync(
    minutes: int,
    rwbs: str,
    flush_at: int | None,
    flush_ns: int | None,
    verdict: str,
    tmp_path: Path,
) -> None:
    """A flusher thread writes the file, complete at 40, and a sync of 1000 to 1100 finds nothing dirty."""

    def later(at: int) -> int:
        return T + at + (minutes * MINUTE if at >= 1000 else 0)

    def fill(run: sqltools.Run) -> None:
        bio(run, T + 20, 20, rwbs, ino=5)
        run.add(later(1000), 100, **FILE, journal_ns=0, flush_ns=flush_ns)
        if flush_at is not None:
            bio(run, later(flush_at), 10, "FWFSM")

    assert verdicts(made(tmp_path, fill)) == {verdict: 1}


@pytest.mark.parametrize("flush_ns", [0, None])
def test_sync_file_range_makes_nothing_durable_and_the_next_sync_does(
    flush_ns: int | None, tmp_path: Path
) -> None:
    """No file system flushes for it. A recording may not say so (null) or say that it did not wait (0)."""

    def fill(run: sqltools.Run) -> None:
        nothing = {"op": "sync_file_range", "journal_ns": flush_ns, "flush_ns": flush_ns}
        part = run.add(T, 100, **FILE, **nothing, bios=1, bytes=4096)
        bio(run, T + 20, 20, "WS", sync_id=part["sync_id"])
        whole = run.add(T + 200, 100, **FILE, op="fdatasync", journal_ns=80, flush_ns=0)
        wait(run, whole, "commit wait", T + 210, 80, 1)
        bio(run, T + 250, 30, "FWFSM", commit_id=1)

    assert verdicts(made(tmp_path, fill)) == {"no flush": 1, "flush": 1}


@pytest.mark.parametrize(
    ("rwbs", "at", "verdict"),
    [
        # The commit may have begun before the sync, whose transaction it holds.
        ("FWFSM", 50, "flush only"),
        ("FWFSM", -20, "flush only"),
        # A mount without barriers.
        ("WSM", 50, "no flush"),
        (None, 50, "unknown"),
        # Its bios are not recorded.
        ("WSM", None, "unknown"),
    ],
)
def test_a_folder_is_as_durable_as_the_commit(
    rwbs: str | None, at: int | None, verdict: str, tmp_path: Path
) -> None:
    def fill(run: sqltools.Run) -> None:
        sync = run.add(T, 100, **FILE, journal_ns=80, flush_ns=0)
        wait(run, sync, "commit wait", T + 15, 80, 1)
        if at is not None:
            bio(run, T + at, 30, rwbs, commit_id=1)

    assert verdicts(made(tmp_path, fill)) == {verdict: 1}


@pytest.mark.parametrize(("flush_at", "verdict"), [(60, "flush"), (30, "unknown")])
def test_another_thread_writes_the_data_of_a_sync(
    flush_at: int, verdict: str, tmp_path: Path
) -> None:
    """Two threads sync one file. What the first writes from 25 to 50 may be what the second, from 20 on, waits for."""

    def fill(run: sqltools.Run) -> None:
        first = run.add(T, 200, **FILE, bios=1, bytes=4096, journal_ns=0, flush_ns=0)
        run.add(T + 10, 100, **FILE, tid=2, journal_ns=0, flush_ns=0)
        bio(run, T + 25, 25, "WS", sync_id=first["sync_id"])
        bio(run, T + flush_at, 10, "FWFSM")
        # For the first one, in any case.
        bio(run, T + 130, 10, "FWFSM")

    want = {"flush": 2} if verdict == "flush" else {"flush": 1, verdict: 1}
    assert verdicts(made(tmp_path, fill)) == want


def test_nothing_written_and_no_waits_recorded_is_unknown(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        run.add(T, 100, **FILE)
        run.add(T + 200, 100, **FILE, journal_ns=0, flush_ns=0)
        # sync() goes over file systems without a device too.
        run.add(T + 400, 100, op="sync", dev="0,20", fs="sysfs", ino=None, path=None)

    assert verdicts(made(tmp_path, fill)) == {"unknown": 1, "no data": 2}


LATE_SYNC = """\
# tracer: nop
    app-10 [000] ..... 1.000000: sys_sync_file_range(fd: 3)
    app-10 [000] ..... 1.000010: range_enter: (__x64_sys_sync_file_range+0x4/0x219) dev=266338320 ino=5 gen=1 n0="a" n1="d" n2="/"
    app-10 [000] ..... 1.000020: bio_add_folio: (bio_add_folio+0x4/0x3b) bio=0x1100 ino=5 index=0 len=4096 off=0
    app-10 [000] ..... 1.000030: bio: (submit_bio+0x4/0xa6) bio=0x1100 dev=266338320 sector=51000 bytes=4096 opf=2049 end_io=ext4_end_bio+0x0/0x131
    <idle>-0 [000] ..... 1.000520: bio_end: (bio_endio+0x4/0x20) bio=0x1100 status=0 remaining=1
    app-10 [000] ..... 1.000600: range_exit: (x <- __x64_sys_sync_file_range) ret=0
    app-10 [000] ..... 1.000610: sys_sync_file_range -> 0x0
    app-10 [000] ..... 1.001000: sys_fdatasync(fd: 3)
    app-10 [000] ..... 1.001010: fsync_enter: (ext4_sync_file+0x4/0x219) dev=266338320 ino=5 gen=1 datasync=1 fs="ext4" n0="a" n1="d" n2="/"
    app-10 [000] ..... 1.001090: wait_commit: (jbd2_log_wait_commit+0x4/0x100) dev=266338320 tid=7
    jbd2/vdb-8-99 [000] ..... 1.001100: jbd2_start_commit: dev 254,16 transaction 7 sync 0
    jbd2/vdb-8-99 [000] ..... 1.001110: bio: (submit_bio+0x4/0xa6) bio=0x1300 dev=266338320 sector=900000 bytes=4096 opf=2049 end_io=journal_end_buffer_io_sync+0x0/0x131
    <idle>-0 [000] ..... 1.001210: bio_end: (bio_endio+0x4/0x20) bio=0x1300 status=0 remaining=1
    jbd2/vdb-8-99 [000] ..... 1.001220: bio: (submit_bio+0x4/0xa6) bio=0x1400 dev=266338320 sector=900008 bytes=4096 opf=395265 end_io=journal_end_buffer_io_sync+0x0/0x131
    <idle>-0 [000] ..... 1.002210: bio_end: (bio_endio+0x4/0x20) bio=0x1400 status=0 remaining=1
    jbd2/vdb-8-99 [000] ..... 1.002300: jbd2_end_commit: dev 254,16 transaction 7 sync 0 head 1
    app-10 [000] ..... 1.002390: wait_commit_end: (x <- jbd2_log_wait_commit) ret=0
    app-10 [000] ..... 1.002500: fsync_exit: (ext4_file_fsync+0x4/0x10 <- ext4_sync_file) ino=5 ret=0
    app-10 [000] ..... 1.002510: sys_fdatasync -> 0x0
"""


def test_the_flush_of_a_commit_covers_an_earlier_range(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(LATE_SYNC)
    for output in ("tables/", "out.pftrace"):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}")
    found = reports(tmp_path / "tables", "duckdb")
    assert reports(tmp_path / "out.pftrace", "embedded") == found
    assert [(row["verdict"], row["op"]) for row in found["durability"]] == [
        ("no flush", "sync_file_range"),
        ("flush", "fdatasync"),
    ]


@pytest.mark.parametrize("again", [False, True])
def test_a_failed_background_write_is_lost_until_it_is_repeated(
    again: bool, tmp_path: Path
) -> None:
    def fill(run: sqltools.Run) -> None:
        file = {"dev": "8,0", "ino": 5}
        bio(run, T, 20, "W", error=-5, ino=5, sector=800)
        if again:
            bio(run, T + 50, 20, "W", ino=5, sector=800)
        run.add(T + 100, 50, **file, journal_ns=0, flush_ns=0)
        run.add(T + 200, 50, dev="8,0", ino=6, journal_ns=0, flush_ns=0)

    # What was written again was never flushed.
    want = {"no flush": 1, "no data": 1} if again else {"lost before": 1, "no data": 1}
    assert verdicts(made(tmp_path, fill)) == want


def test_reads_are_no_data_that_a_sync_has_to_flush(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        read = {"direction": "read", "sector": 800}
        bio(run, T, 20, "R", ino=5, **read)
        # A read that fails loses nothing, and one that succeeds writes nothing again.
        bio(run, T, 20, "R", ino=6, error=-5, **read)
        bio(run, T, 20, "W", ino=7, error=-5, sector=1600)
        bio(run, T + 50, 20, "R", ino=7, direction="read", sector=1600)
        for ino in (5, 6, 7):
            run.add(T + 100 * ino, 50, dev="8,0", ino=ino, journal_ns=0, flush_ns=0)

    assert verdicts(made(tmp_path, fill)) == {"no data": 2, "lost before": 1}


@pytest.mark.parametrize(("error", "verdict"), [(0, "flush"), (-5, "no flush")])
def test_a_flush_that_failed_covers_nothing(error: int, verdict: str, tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        bio(run, T, 20, "W", ino=5)
        bio(run, T + 50, 20, "FF", direction="flush", error=error)
        run.add(T + 100, 50, op="fsync", dev="8,0", ino=5, journal_ns=0, flush_ns=0)

    assert verdicts(made(tmp_path, fill)) == {verdict: 1}


def test_reads_of_metadata_are_no_sign_of_a_journal(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        bio(run, T, 20, "RSM", direction="read")
        sync = run.add(T + 100, 50, bios=1, bytes=4096, dev="8,0", ino=5, journal_ns=20, flush_ns=0)
        bio(run, T + 110, 10, "WS", sync_id=sync["sync_id"])
        run.wait.append({"sync_id": sync["sync_id"], "number": 1, "wait": "commit wait", "ts_ns": T + 125, "dur_ns": 20})  # fmt: skip

    assert verdicts(made(tmp_path, fill)) == {"unknown": 1}


def test_a_later_part_of_sync_on_a_pseudo_file_system_has_no_data(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        call = run.add(T, 50, op="sync", dev="8,0", ino=None, path=None)
        part = {"op": None, "dev": "0,25", "fs": "tmpfs", "ino": None, "path": None, "start_ns": T}
        run.add(T + 50, 10, **part, call_sync_id=call["sync_id"])

    assert verdicts(made(tmp_path, fill))["no data"] == 1


@pytest.mark.parametrize(
    ("of_force", "kinds"), [("8,16", {"commit", "log force"}), ("8,0", {"commit"})]
)
def test_a_commit_without_a_device_hides_log_forces_of_its_own_journal_only(
    of_force: str, kinds: set[str], tmp_path: Path
) -> None:
    """The commit is of the file system whose sync waited for it."""

    def fill(run: sqltools.Run) -> None:
        for number, dev in enumerate(("8,0", of_force), 1):
            sync = run.add(T + 100 * number, 90, dev=dev, ino=5, journal_ns=50, flush_ns=0)
            wait = {
                "wait": "commit wait",
                "ts_ns": T + 100 * number,
                "dur_ns": 50,
                "confidence": "exact",
            }
            run.wait.append(
                {"sync_id": sync["sync_id"], "number": 1, "transaction_id": number, **wait}
            )
        run.wait[0]["commit_id"] = 1
        run.journal.append(
            {"commit_id": 1, "kind": "commit", "dev": None, "ts_ns": T + 100, "dur_ns": 50}
        )

    assert {row["kind"] for row in made(tmp_path, fill)["journal"]} == kinds


def test_a_fast_commit_of_an_unknown_sync_has_an_unknown_number_of_them(tmp_path: Path) -> None:
    def fill(run: sqltools.Run) -> None:
        sync = run.add(T, 90, dev="8,0", ino=5, journal_ns=50, flush_ns=0)
        for number, sync_id in enumerate((sync["sync_id"], None), 1):
            fast = {"kind": "fast commit", "dev": "8,0", "ts_ns": T + number, "dur_ns": 50}
            run.journal.append({"commit_id": number, "sync_id": sync_id, **fast})
            run.journal[-1]["started_by"] = None if sync_id is None else "sync"

    found = {row["started_by"]: row["syncs"] for row in made(tmp_path, fill)["journal"]}
    assert found == {"sync": 1, "unknown": None}


@pytest.mark.parametrize(
    ("op", "ino", "kind"), [("fsync", 5, "other file"), ("syncfs", None, "own file")]
)
def test_every_file_of_a_commit_is_that_of_syncfs(
    op: str, ino: int | None, kind: str, tmp_path: Path
) -> None:
    run = sqltools.Run()
    sync = run.add(T, 90, op=op, dev="8,0", ino=ino, journal_ns=50, flush_ns=0)
    run.wait.append({"sync_id": sync["sync_id"], "number": 1, "wait": "commit wait", "ts_ns": T + 20, "dur_ns": 50, "commit_id": 1})  # fmt: skip
    run.journal.append({"commit_id": 1, "kind": "commit", "dev": "8,0", "ts_ns": T + 20, "dur_ns": 50})  # fmt: skip
    bio(run, T + 30, 10, "WS", commit_id=1, ino=42)
    bio(run, T + 41, 10, "WSM", commit_id=1)
    with opened(str(sqltools.write_parquet(run, tmp_path / "run")), Reading()) as engine:
        found = {row["kind"]: row["bios"] for row in run_report(engine, "whose-data").as_dicts()}
    assert found == {kind: 1, "journal": 1}


@pytest.mark.parametrize(
    "name", ["dynamic-events/f2fs.txt.gz", "dynamic-events/btrfs.txt.gz", "tracecmd/small4.dat"]
)
def test_other_recordings_give_equal_rows(name: str, tmp_path: Path) -> None:
    _core.convert([str(DATA / name)], f"{tmp_path}/tables/")
    _core.convert([str(DATA / name)], f"{tmp_path}/out.pftrace")
    found = reports(tmp_path / "tables", "duckdb")
    assert reports(tmp_path / "out.pftrace", "embedded") == found
    assert found["device"]
    # None of these loses data.
    assert verdicts(found).keys() <= {"flush", "fua", "flush only", "no data", "unknown"}


REQUESTS = """\
# tracer: nop
    db-7   [000] .....  1.000100: block_bio_queue: 254,16 WS 800 + 8 [db]
    db-7   [000] .....  1.000110: block_bio_queue: 254,16 WS 1600 + 16 [db]
    db-7   [000] .....  1.000120: block_bio_queue: 254,16 W 2400 + 8 [db]
    db-7   [000] .....  1.000200: block_rq_issue: 254,16 WS 4096 () 800 + 8 [db]
    db-7   [000] .....  1.000300: block_rq_issue: 254,16 WS 4096 () 800 + 8 [db]
    db-7   [000] .....  1.000450: block_rq_issue: 254,16 WS 4096 () 800 + 8 [db]
    db-7   [000] .....  1.000500: block_rq_issue: 254,16 WS 4096 () 1600 + 8 [db]
    db-7   [000] .....  1.000510: block_rq_issue: 254,16 WS 4096 () 1608 + 8 [db]
    db-7   [000] .....  1.000530: block_rq_issue: 254,16 WS 4096 () 1608 + 8 [db]
    db-7   [000] .....  1.000600: block_rq_issue: 254,16 W 4096 () 2400 + 8 [db]
    db-7   [000] .....  1.000700: block_rq_complete: 254,16 WS () 800 + 8 [0]
    db-7   [000] .....  1.000800: block_rq_complete: 254,16 WS () 1600 + 8 [0]
    db-7   [000] .....  1.000810: block_rq_complete: 254,16 WS () 1608 + 8 [0]
    db-7   [000] .....  1.000900: block_rq_complete: 254,16 W () 2400 + 8 [0]
"""


def test_requests_that_the_driver_returns_and_bios_that_are_split(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(REQUESTS)
    for output in ("tables/", "out.pftrace"):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}")
    convert_trace(f"{tmp_path}/out.pftrace", f"{tmp_path}/again/")
    keys = ("sector", "queue_ns", "requeues", "requeue_ns", "parts")
    for folder in ("tables", "again"):
        rows = tables(tmp_path / folder)["bio"]
        assert [tuple(row[key] for key in keys) for row in rows] == [
            # Two times not taken, from the first issue to the third one.
            (800, 350_000, 2, 250_000, None),
            # The second half was not taken once. The bio is issued with its first half.
            (1600, 390_000, 1, 0, 2),
            (2400, 480_000, None, None, None),
        ]
    found = reports(tmp_path / "tables", "duckdb")
    assert reports(tmp_path / "out.pftrace", "embedded") == found
    figures = {
        (row["part"], row["splits"], row["requeues"], row["requeue_ns"]) for row in found["device"]
    }
    assert figures == {
        ("all", 1, 3, 250_000),
        ("sync", 1, 3, 250_000),
        ("async", 0, 0, 0),
        ("thread", 1, 3, 250_000),
    }


def test_a_flush_before_a_write_takes_the_time_of_a_request(recorded: Any) -> None:
    """The device has a cache and needs 5 ms for each request, so a flush needs 5 ms too."""
    one, found = recorded("cache")
    (row,) = [row for row in found["device"] if row["part"] == "all" and row["flushes"]]
    request_ns = one.truth["device"]["request_us"] * 1000
    assert request_ns <= row["flush_ns"] <= row["max_flush_ns"]
    lengths = [
        bio["queue_ns"] for bio in one.tables["bio"] if bio["rwbs"] and bio["rwbs"].startswith("F")
    ]
    assert len(lengths) >= 6
    assert row["max_flush_ns"] == max(lengths)


def test_a_driver_that_returns_every_seventh_command(recorded: Any) -> None:
    """The driver counts all commands. The layer above it waits before it issues one again, and returns the request itself meanwhile."""
    one, found = recorded("busy")
    dev = one.truth["device"]["dev"]
    issues: dict[int, list[int]] = defaultdict(list)
    for event in one.events:
        if event["event"] == "block_rq_issue" and event["dev"] == dev:
            issues[event["sector"]].append(event["ts_ns"])
    commands = sum(len(times) for times in issues.values())
    # Flushes have no place.
    del issues[0]
    requests = issues.values()
    (row,) = [row for row in found["device"] if (row["dev"], row["part"]) == (dev, "all")]
    assert row["requests"] == len(requests)
    assert row["requeues"] == sum(len(times) - 1 for times in requests) >= 3
    # Commands that are not recorded may shift the count by one.
    assert abs(row["requeues"] - commands // one.truth["device"]["every_nth"]) <= 1
    assert row["requeue_ns"] == sum(times[-1] - times[0] for times in requests) > 0
    assert row["bios"] > row["requests"]
    assert row["errors"] == 0
    # A flush ends before the request that asked for it is issued, and is not returned itself.
    assert row["max_flush_ns"] < max(times[-1] - times[0] for times in requests)


@dataclass
class _Request:
    """A request. Each thread submitted one bio of it. Times in us, the unit of the log."""

    issue: int
    end: int
    comms: list[str]


# The report has a window for every 2^36 ns, about a minute.
_WINDOW_US = 2**36 // 1000
_TIDS = {"one": 21, "two": 22}


def _requests(seed: int) -> list[_Request]:
    """Returns requests within four windows. Half of them begin soon after a border; some end in the next window."""
    random = Random(seed)
    found = []
    for number in range(60):
        window = _WINDOW_US * random.randrange(4)
        # The number keeps times apart: bios that are issued at the same time are of one request.
        issue = window + random.choice((0, random.randrange(_WINDOW_US))) + 1000 + number
        # A bio that takes longer than a minute counts as lost.
        length = random.choice((1, 50, 1000, _WINDOW_US // 2, _WINDOW_US - 10**7))
        comms = random.choice((["one"], ["two"], ["one", "two"]))
        found.append(_Request(issue, issue + length, comms))
    return found


def _ftrace(requests: list[_Request]) -> str:
    """Returns the log of requests. The bios of one request are next to each other on the device."""
    lines = []
    for number, request in enumerate(requests):
        sector, sectors = 1000 * number, 8 * len(request.comms)
        for place, comm in enumerate(request.comms):
            submit = f"block_bio_queue: 254,16 W {sector + 8 * place} + 8 [{comm}]"
            lines.append((request.issue - 500, f"{comm}-{_TIDS[comm]}", submit))
        issue = f"block_rq_issue: 254,16 W {512 * sectors} () {sector} + {sectors} [kworker/0:1]"
        lines.append((request.issue, "kworker/0:1-9", issue))
        complete = f"block_rq_complete: 254,16 W () {sector} + {sectors} [0]"
        lines.append((request.end, "<idle>-0", complete))
    return "# tracer: nop\n" + "".join(
        f"{task:>16} [000] ..... {at // 10**6:>6}.{at % 10**6:06}: {event}\n"
        for at, task, event in sorted(lines)
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_queue_over_minutes(seed: int, tmp_path: Path) -> None:
    requests = _requests(seed)
    (tmp_path / "x.txt").write_text(_ftrace(requests))
    for output in ("tables/", "out.pftrace"):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}")
    found = reports(tmp_path / "tables", "duckdb")["device"]
    assert reports(tmp_path / "out.pftrace", "embedded")["device"] == found
    rows = {(row["part"], row["comm"]): row for row in found}
    requests_of = {("all", None): requests, ("async", None): requests}
    for comm in _TIDS:
        requests_of["thread", comm] = [one for one in requests if comm in one.comms]
    assert rows.keys() == requests_of.keys()
    for part, own in requests_of.items():
        moments = sorted({at for one in own for at in (one.issue, one.end)})
        depths = [sum(one.issue <= at < one.end for one in own) for at in moments]
        busy_ns = 1000 * sum(
            until - at
            for (at, until), depth in zip(itertools.pairwise(moments), depths, strict=False)
            if depth
        )
        row = rows[part]
        assert row["requests"] == len(own)
        assert row["max_depth"] == max(depths)
        assert row["busy_ns"] == busy_ns
        at_device_ns = 1000 * sum(one.end - one.issue for one in own)
        assert row["depth"] == pytest.approx(at_device_ns / busy_ns)


def test_what_the_kernel_says_of_a_write_cache_is_a_fact(tmp_path: Path) -> None:
    run = known_truth.unpacked("null-ext4", tmp_path)
    devices = json.loads((run / "devices.json").read_text())
    for number, device in zip(devices, ("write back", "write through", None), strict=False):
        devices[number]["write_cache"] = device
    (run / "devices.json").write_text(json.dumps(devices))
    want = {
        f"device_cache.{number.replace(':', ',')}": device["write_cache"]
        for number, device in devices.items()
        if device["write_cache"]
    }
    for output, engine in (("tables/", "duckdb"), ("out.pftrace", "embedded")):
        Reading().convert([str(run)], f"{tmp_path}/{output}")
        with opened(f"{tmp_path}/{output}", Reading(), engine=engine) as opened_engine:
            sql = "SELECT key, value FROM syncline_meta WHERE key LIKE 'device_cache.%'"
            assert dict(run_query(opened_engine, sql).rows) == want


@pytest.mark.parametrize("report", ["device", "bystanders", "neighbours"])
def test_what_was_at_a_device_says_that_reads_are_not_recorded(report: str, tmp_path: Path) -> None:
    """Somebody who reads would be missing without a word. A bio that reads, or no row at all, needs none."""
    lines = [
        "  8,0    0        1     1.000000000     7  Q  WS 8 + 8 [wl]",
        "  8,0    0        2     1.000010000     7  D  WS 8 + 8 [wl]",
        "  8,0    0        3     1.001000000     0  C  WS 8 + 8 [0]",
    ]
    reading = [line.replace("WS 8", " R 88").replace(" 1.00", " 2.00") for line in lines]
    reading = [
        line.replace(f"        {n} ", f"        {n + 3} ") for n, line in enumerate(reading, 1)
    ]
    note = f"note: {report}: reads are not in this recording."
    for text, says in ((lines, report == "device"), (lines + reading, False)):
        (tmp_path / "a.txt").write_text("\n".join(text) + "\n")
        done = run("report", str(tmp_path / "a.txt"), report)
        assert done.returncode == 0
        assert (note in done.stderr) == says, (report, done.stderr)
