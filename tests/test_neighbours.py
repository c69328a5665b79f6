"""The report `neighbours`: on runs that were made by hand, and on recordings whose truth is known by A/B."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.report import run_query, run_report

from tests import sqltools
from tests.coretools import ROOT
from tests.reference import phases
from tests.sqltools import Run
from tests.test_commands import ok

Row = dict[str, Any]
RECORDINGS = ROOT / "tests" / "data" / "neighbours" / "recordings.tar.xz"
DISK = "8,0"
MS = 1_000_000
S = 1_000_000_000


def report(path: Path, engine: str = "duckdb") -> list[Row]:
    with opened(str(path), Reading(), engine=engine) as opened_engine:
        found = run_report(opened_engine, "neighbours")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def reported(run: Run, folder: Path) -> dict[tuple[Any, Any], Row]:
    """The rows of a run by process and control group, which are the same in both engines."""
    rows = report(sqltools.write_parquet(run, folder / "tables"))
    assert report(sqltools.write_trace(run, folder / "t.pftrace"), "embedded") == rows
    return {(row["process"], row["cgroup"]): row for row in rows}


def ways(row: Row) -> Row:
    """The ways that are not 0."""
    names = ("queue", "device", "commit_locking", "commit_data", "cache_flush", "cpu")
    return {name: row[f"{name}_ns"] for name in names if row[f"{name}_ns"]}


def sync(run: Run, who: str, start: int, end: int, tid: int = 1, **columns: Any) -> int:
    """Adds a sync of a process in a control group of the same name."""
    names = {"comm": who, "process": who, "cgroup": f"/{who}", "tid": tid, "dev": DISK, "bios": 1}
    return run.add(start, end - start, call=False, **(names | columns))["sync_id"]


def bio(run: Run, who: str, submit: int, issue: int, complete: int, **columns: Any) -> None:
    row = {
        "bio_id": len(run.bio) + 1,
        "sync_id": None,
        "ts_ns": submit,
        "dur_ns": complete - submit,
        "queue_ns": issue - submit,
        "device_ns": complete - issue,
        "dev": DISK,
        "tid": 100,
        "comm": who,
        "process": who,
        "cgroup": f"/{who}",
        "bytes": 4096,
        "origin": "background",
    }
    if columns.get("sync_id"):
        row["origin"] = "sync"
    run.bio.append(row | columns)


def test_a_bio_is_queued_while_the_device_works_for_a_neighbour(tmp_path: Path) -> None:
    """The bio of `db` is queued from 1050 to 1300; the device has a bio of `dd` from 950 to 1200."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "dd", 900, 950, 1200)
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    rows = reported(run, tmp_path)
    # `db` delays nobody: nobody else syncs.
    assert [*rows] == [("dd", "/dd")]
    row = rows["dd", "/dd"]
    assert (row["kind"], row["syncs"], row["of_syncs"], row["sync_id"]) == ("writes", 1, 1, own)
    assert ways(row) == {"queue": 1200 - 1050}
    assert row["cost_ns"] == row["low_ns"] == 150
    # From 1300 to 1380, the device works for nobody but the sync.
    assert row["high_ns"] == 400 - 80
    assert row["share"] == pytest.approx(150 / 400)
    # There are too few syncs for a comparison.
    assert (row["compared_ns"], row["bios"], row["bytes"]) == (None, 1, 4096)


def test_a_call_with_several_requests_is_one_sync(tmp_path: Path) -> None:
    """`db` calls sync, which has two requests at the device. Each is queued behind a bio of `dd`, for 50 and for 30."""
    run = Run()
    first = sync(run, "db", 1000, 1200, op="sync")
    second = sync(run, "db", 1300, 1500, op=None, call_sync_id=first)
    bio(run, "dd", 1000, 1010, 1100)
    bio(run, "db", 1050, 1100, 1180, sync_id=first)
    bio(run, "dd", 1300, 1310, 1400)
    bio(run, "db", 1370, 1400, 1480, sync_id=second)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["syncs"], row["of_syncs"], row["cost_ns"]) == (1, 1, 50 + 30)


@pytest.mark.parametrize(
    ("known", "unknown", "names"),
    [
        # The recorder saw two commands of the loop, and missed the others.
        (["/dd", "/dd"], 2, [("dd", "/dd")]),
        # Those that it missed may be in either group.
        (["/a", "/b"], 2, [("dd", "/a"), ("dd", "/b"), ("dd", None)]),
        # It saw none.
        ([], 3, [("dd", None)]),
    ],
)
def test_short_commands_are_in_the_group_of_their_name(
    known: list[str], unknown: int, names: list[Any], tmp_path: Path
) -> None:
    """A loop of `dd` syncs beside `db`. The commands of one loop are one neighbour of `db`, and none of themselves."""
    run = Run()
    own = sync(run, "db", 1000, 9000)
    bio(run, "db", 1050, 8000, 8900, sync_id=own)
    groups = [*known, *[None] * unknown]
    for number, group in enumerate(groups):
        at = 2000 + 1000 * number
        one = sync(run, "dd", at, at + 300, tid=20 + number, cgroup=group)
        bio(run, "dd", at, at + 10, at + 200, sync_id=one, cgroup=group)
    rows = reported(run, tmp_path)
    assert sorted((name for name in rows if name[0] == "dd"), key=str) == sorted(names, key=str)
    if len(names) == 1:
        # `db` waits for the bio of each from its submit on, because the device gets it next.
        assert rows[names[0]]["cost_ns"] == len(groups) * 200
        assert (rows[names[0]]["syncs"], rows[names[0]]["of_syncs"]) == (1, 1)
        assert rows["db", "/db"]["of_syncs"] == len(groups)


@pytest.mark.parametrize(
    ("cache", "blocks", "beside", "spared"),
    [
        # A commit of three blocks is all the sync's own: one request of two from 1310 to 1400, and the last one from 1500 to 1560.
        ("write through", 3, False, 90 + 60),
        # If it has four, somebody else may have changed one, so only the last one is surely the sync's.
        ("write through", 4, False, 60),
        # The device may empty its cache for the last one, of what others wrote.
        ("write back", 3, False, 90),
        # While the device has a bio of `dd` too, that may make each longer.
        ("write through", 3, True, 90),
    ],
)
def test_the_bound_leaves_out_what_a_sync_needs_of_its_commit(
    cache: str, blocks: int, beside: bool, spared: int, tmp_path: Path
) -> None:
    run = Run()
    run.meta[f"device_cache.{DISK}"] = cache
    own = sync(run, "db", 1000, 1900)
    bio(run, "dd", 900, 950, 1200)
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1250, "dur_ns": 400, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": own, "started_by": "sync"})
    of_journal = {"commit_id": 7, "tid": 9, "cgroup": "/"}
    for number in range(blocks - 1):
        # Bios of one request complete one after the other.
        bio(run, "jbd2/sda-8", 1300 + number, 1310, 1400 - number, rwbs="WSM", **of_journal)
    bio(run, "jbd2/sda-8", 1490, 1500, 1560, rwbs="FWFSM", **of_journal)
    if beside:
        bio(run, "dd", 1410, 1550, 1700)
    assert reported(run, tmp_path)["dd", "/dd"]["high_ns"] == 900 - spared


def test_a_large_bio_is_served_in_parts_between_others(tmp_path: Path) -> None:
    """`dd` has a bio at the device from 950 to 1390, in which one of `log` is served from 1100 to 1150, and that of `db` from 1300 to 1380."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "dd", 900, 950, 1390, bytes=1 << 20)
    bio(run, "log", 1090, 1100, 1150)
    # That another one is queued meanwhile changes nothing.
    bio(run, "log", 1120, 1385, 1388)
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    rows = reported(run, tmp_path)
    assert ways(rows["log", "/log"]) == {"queue": 50}
    assert ways(rows["dd", "/dd"]) == {"queue": 1300 - 1050 - 50}
    # The worse one comes first.
    assert [*rows] == [("dd", "/dd"), ("log", "/log")]


def test_without_issues_the_device_serves_one_bio_after_the_other(tmp_path: Path) -> None:
    """Those of `dd` complete at 1150 and 1200, that of `db` at 1380, so it is served from 1200 on."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    unissued = {"queue_ns": None, "device_ns": None}
    bio(run, "dd", 900, 0, 1150, **unissued)
    bio(run, "dd", 910, 0, 1200, **unissued)
    bio(run, "db", 1050, 0, 1380, sync_id=own, **unissued)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["syncs"], ways(row), row["cost_ns"]) == (1, {"queue": 1200 - 1050}, 150)


def test_who_discards_is_named_so(tmp_path: Path) -> None:
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "fstrim", 900, 950, 1200, direction="discard", rwbs="D", origin=None)
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    row = reported(run, tmp_path)["fstrim", "/fstrim"]
    assert (row["kind"], row["cost_ns"]) == ("discards", 150)


def test_a_bio_next_to_another_one_at_the_device_may_cost_nothing(tmp_path: Path) -> None:
    """The bio of `dd` is issued 20 after that of `db`. So it does not make it wait in the queue; 60 of its time is only a possible cost."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "db", 1050, 1060, 1380, sync_id=own)
    bio(run, "dd", 1070, 1080, 1140)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert ways(row) == {"device": 60}
    # The device works for nobody but the sync from 1060 to 1080, and from 1140 to 1380.
    assert (row["cost_ns"], row["low_ns"], row["high_ns"]) == (0, 0, 400 - 20 - 240)


def test_a_process_delays_neither_itself_nor_a_sync_that_runs(tmp_path: Path) -> None:
    """A second sync of `db` has the device before. `dd` has it while the sync has not yet submitted, from 1000 to 1050, and at its end."""
    run = Run()
    first = sync(run, "db", 900, 1250, tid=2)
    own = sync(run, "db", 1000, 1500)
    bio(run, "dd", 990, 995, 1050)
    bio(run, "db", 910, 1050, 1200, sync_id=first)
    bio(run, "db", 1050, 1200, 1400, sync_id=own)
    bio(run, "dd", 1390, 1400, 1500)
    row = reported(run, tmp_path)["dd", "/dd"]
    # The bio of the first sync is queued from 910 on. That of `dd` is queued from 990 on and comes before it, until 1050.
    assert (row["syncs"], row["sync_id"], ways(row)) == (1, first, {"queue": 60})


def test_each_of_two_that_sync_is_the_neighbour_of_the_other(tmp_path: Path) -> None:
    """The device has the bio of `a` from 1010 to 1110, then that of `b` until 1200, which was queued from 1020 on."""
    run = Run()
    first = sync(run, "a", 1000, 1300)
    second = sync(run, "b", 1000, 1300, tid=2)
    bio(run, "a", 1005, 1010, 1110, sync_id=first)
    bio(run, "b", 1020, 1110, 1200, sync_id=second)
    rows = reported(run, tmp_path)
    assert (rows["a", "/a"]["kind"], ways(rows["a", "/a"])) == ("syncs", {"queue": 90})
    assert (rows["b", "/b"]["kind"], ways(rows["b", "/b"])) == ("syncs", {})
    assert rows["a", "/a"]["of_syncs"] == rows["b", "/b"]["of_syncs"] == 1


def test_a_commit_belongs_to_the_process_whose_sync_started_it(tmp_path: Path) -> None:
    """`db` waits for commit 7 from 1100 to 1300. The journal writes for it: queued from 1110, at the device from 1120 to 1250."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    other = sync(run, "mail", 1000, 1390, tid=2)
    for sync_id, number in ((own, 1), (other, 1)):
        wait = {"sync_id": sync_id, "number": number, "wait": "commit wait"}
        run.wait.append(wait | {"ts_ns": 1100, "dur_ns": 200, "commit_id": 7, "confidence": "exact"})  # fmt: skip
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1105, "dur_ns": 190, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": other, "started_by": "sync"})
    bio(run, "jbd2/sda-8", 1110, 1120, 1250, commit_id=7, tid=9, cgroup="/")
    rows = reported(run, tmp_path)
    # The queued bio delays it too, because what it waits for is the commit of `mail`.
    assert ways(rows["mail", "/mail"]) == {"commit_data": 1250 - 1110}
    assert ("db", "/db") not in rows or ways(rows["db", "/db"]) == {}


def test_the_lower_bound_of_a_wait_for_a_commit_needs_a_queued_bio_of_it(tmp_path: Path) -> None:
    """`db` waits for commit 7 from 1100 to 1300. `dd` has the device from 1110 to 1200. A bio of the commit is queued from 1150, and at the device from 1200."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    wait = {"sync_id": own, "number": 1, "wait": "commit wait", "confidence": "exact"}
    run.wait.append(wait | {"ts_ns": 1100, "dur_ns": 200, "commit_id": 7})
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1105, "dur_ns": 190, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": own, "started_by": "sync"})
    bio(run, "dd", 1105, 1110, 1200)
    bio(run, "jbd2/sda-8", 1150, 1200, 1290, commit_id=7, tid=9, cgroup="/")
    row = reported(run, tmp_path)["dd", "/dd"]
    # The bio of dd is queued from 1105, and the device has no other one.
    assert (row["cost_ns"], row["low_ns"]) == (1200 - 1105, 1200 - 1150)
    # No bio of the sync itself is at the device, so all of it may be the neighbour's.
    assert row["high_ns"] == 400


def test_two_at_the_device_leave_no_lower_bound(tmp_path: Path) -> None:
    """The bio of `db` is queued from 1050 to 1300. `log` has the device from 960 to 1290, `dd` from 950 to 1200."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "dd", 900, 950, 1200)
    bio(run, "log", 900, 960, 1290)
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    rows = reported(run, tmp_path)
    # That of `log` was issued last, and nobody else has the device from 1200 on.
    assert (rows["log", "/log"]["cost_ns"], rows["log", "/log"]["low_ns"]) == (240, 90)
    assert ("dd", "/dd") not in rows or rows["dd", "/dd"]["cost_ns"] == 0


def test_data_in_a_commit_belong_to_their_writers(tmp_path: Path) -> None:
    """`db` starts commit 7. In it, the journal writes data of `dd` from 1120 to 1250, and the rest of the commit from 1250 to 1290."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    wait = {"sync_id": own, "number": 1, "wait": "commit wait", "confidence": "exact"}
    run.wait.append(wait | {"ts_ns": 1100, "dur_ns": 200, "commit_id": 7})
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1105, "dur_ns": 190, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": own, "started_by": "sync"})
    of_journal = {"commit_id": 7, "tid": 9, "cgroup": "/"}
    data = of_journal | {"ino": 33, "writers": "dd", "writers_cgroup": "/dd"}
    bio(run, "jbd2/sda-8", 1110, 1120, 1250, **data)
    bio(run, "jbd2/sda-8", 1110, 1250, 1290, **of_journal)
    assert {who: ways(row) for who, row in reported(run, tmp_path).items()} == {
        ("dd", "/dd"): {"commit_data": 130}
    }


def test_a_log_bio_is_for_the_sync_that_waits_for_the_log(tmp_path: Path) -> None:
    """`a` waits for the log from 1050 to 1250, `b` from 1240 to 1400. A worker writes the log from 1060 to 1200, and from 1245 to 1390."""
    run = Run()
    first = sync(run, "a", 1000, 1300, fs="xfs")
    second = sync(run, "b", 1100, 1450, tid=2, fs="xfs")
    for sync_id, start, end in ((first, 1050, 1250), (second, 1240, 1400)):
        wait = {"sync_id": sync_id, "number": 1, "wait": "commit wait", "confidence": "exact"}
        run.wait.append(wait | {"ts_ns": start, "dur_ns": end - start})
    bio(run, "kworker/0:1", 1055, 1060, 1200, cgroup="/")
    bio(run, "kworker/0:1", 1242, 1245, 1390, cgroup="/")
    rows = reported(run, tmp_path)
    # `b` begins to wait after the first bio. `a` still waits while the second one is queued, from 1242 on, and issued.
    assert ways(rows["b", "/b"]) == {"commit_data": 1250 - 1242}
    assert ways(rows["a", "/a"]) == {}


def quiet_and_busy(run: Run, busy: int) -> None:
    """20 syncs of 100 us. 5 s later 20 of 150 us, whose first ones are queued for 10 us behind a bio of `dd`."""
    for number in range(40):
        start = (number + 1) * S // 100
        length = 100_000
        if number >= 20:
            start += 5 * S
            length = 150_000
        own = sync(run, "db", start, start + length)
        bio(run, "db", start + 10_000, start + 20_000, start + length, sync_id=own)
        if 20 <= number < 20 + busy:
            bio(run, "dd", start + 9_000, start + 9_500, start + 20_000)


def test_the_cost_is_compared_with_syncs_while_it_was_quiet(tmp_path: Path) -> None:
    run = Run()
    quiet_and_busy(run, 20)
    row = reported(run, tmp_path)["dd", "/dd"]
    # Each was queued for 10 us behind a bio of dd.
    assert row["cost_ns"] == 20 * 10_000
    assert (row["compared_ns"], row["quiet_syncs"]) == (20 * 50_000, 20)
    # All lengths of a group are equal.
    assert row["compared_error_ns"] == 0
    # The device works for nobody but each sync for 130 us, longer than before. The bounds take its speed for constant; the comparison shows that it is not.
    assert (row["low_ns"], row["high_ns"]) == (20 * 10_000, 20 * 20_000)


@pytest.mark.parametrize(
    ("quiet", "columns", "least"),
    [
        # The fastest sync that met nobody took 91 us.
        (20, {}, 91_000),
        # With 19 of them, only the 30 us count in which the device worked for the sync.
        (19, {}, 30_000),
        # Those that met nobody are of another kind: more data, more bios, a commit, another call, another device.
        (20, {"bytes": 10_000}, 30_000),
        (20, {"bios": 10}, 30_000),
        (20, {"waits": True}, 30_000),
        (20, {"op": "fdatasync"}, 30_000),
        (20, {"dev": "8,16"}, 30_000),
        # How much they wrote is not known.
        (20, {"bytes": None}, 30_000),
    ],
)
def test_the_bound_leaves_out_the_fastest_sync_of_those_that_met_nobody(
    quiet: int, columns: Row, least: int, tmp_path: Path
) -> None:
    """Each takes 130 us or more next to `dd`, and 30 us of them are time of its own bio at the device."""
    run = Run()
    for number in range(quiet):
        start = (number + 1) * S // 100
        length = 91_000 + number
        row = {"bytes": 4096, "op": "fsync"} | columns
        waits = row.pop("waits", False)
        own = sync(run, "db", start, start + length, **row)
        if waits:
            wait = {"sync_id": own, "number": 1, "wait": "commit wait", "confidence": "exact"}
            run.wait.append(wait | {"ts_ns": start + 50_000, "dur_ns": 10_000})
    lengths = [130_000, 200_000, 80_000]
    for number, length in enumerate(lengths):
        start = 10 * S + number * S // 100
        own = sync(run, "db", start, start + length, bytes=4096, op="fsync")
        bio(run, "dd", start + 9_000, start + 9_500, start + 20_000)
        bio(run, "db", start + 10_000, start + 20_000, start + 50_000, sync_id=own)
    row = reported(run, tmp_path)["dd", "/dd"]
    # `dd` took nothing from a sync that was faster than that.
    assert row["high_ns"] == sum(max(length - least, 0) for length in lengths)


def test_too_few_syncs_are_not_compared(tmp_path: Path) -> None:
    run = Run()
    quiet_and_busy(run, 20)
    # 19 syncs are left of the quiet time.
    run.sync.pop(0)
    run.bio.pop(0)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["compared_ns"], row["compared_error_ns"], row["quiet_syncs"]) == (None, None, 19)


@pytest.mark.parametrize(("fs", "copies"), [("ext4", 0), ("btrfs", 0), ("btrfs", 1)])
def test_a_bio_is_queued_and_nothing_recorded_is_at_the_device(fs: str, copies: int, tmp_path: Path) -> None:  # fmt: skip
    """Metadata of `db` are queued for 8 ms, and others for 0.9 ms. btrfs writes copies of them, which older recordings lack."""
    run = Run()
    first = sync(run, "db", MS, 20 * MS, fs=fs)
    second = sync(run, "db", 30 * MS, 40 * MS, fs=fs)
    bio(run, "db", 2 * MS, 10 * MS, 15 * MS, sync_id=first, rwbs="WSM")
    bio(run, "db", 31 * MS, 31 * MS + 900_000, 36 * MS, sync_id=second)
    for _ in range(copies):
        bio(run, "db", 15 * MS, 15 * MS, 16 * MS, rwbs="WSM")
    rows = reported(run, tmp_path)
    if fs == "btrfs" and not copies:
        assert rows == {}
        return
    row = rows[None, None]
    assert (row["kind"], row["syncs"], row["sync_id"]) == ("unrecorded", 1, first)
    assert ways(row) == {"queue": 8 * MS}
    assert (row["low_ns"], row["high_ns"]) == (None, None)


@pytest.mark.parametrize("cache", [None, "write back", "write through"])
def test_a_device_without_a_cache_is_not_emptied(cache: str | None, tmp_path: Path) -> None:
    """The bio asks for a flush before it, and is queued for 8 ms. The kernel drops the flush if the device has no cache."""
    run = Run()
    if cache:
        run.meta[f"device_cache.{DISK}"] = cache
    own = sync(run, "db", MS, 20 * MS)
    bio(run, "db", 2 * MS, 10 * MS, 15 * MS, sync_id=own, rwbs="FWS")
    row = reported(run, tmp_path).get((None, None), {"cost_ns": 0})
    assert row["cost_ns"] == (8 * MS if cache == "write through" else 0)


class Phased(Run):
    """A run in which one sync, the first, has these phases: name, start and end."""

    given: tuple[tuple[str, int, int], ...] = ()
    which = 1

    def phases(self) -> dict[int, list[phases.Phase]]:
        return super().phases() | {
            self.which: [(name, start, end - start, None) for name, start, end in self.given]
        }


def test_data_that_a_limit_keeps_hold_up_a_commit_and_not_the_device(tmp_path: Path) -> None:
    """io.max keeps data of `dd` from 900 to 9000. `db` waits for its own bio from 1020 to 1090, and for handles of its commit from 1100 to 1300."""
    run = Phased()
    own = sync(run, "db", 1000, 1400)
    run.given = (("queue", 1020, 1040), ("device", 1040, 1090), ("commit locking", 1100, 1300))
    bio(run, "db", 1020, 1040, 1090, sync_id=own)
    bio(run, "kworker/0:1", 900, 9000, 9100, ino=33, writers="dd", writers_cgroup="/dd")
    assert ways(reported(run, tmp_path)["dd", "/dd"]) == {"commit_locking": 200}


def test_the_commit_that_a_sync_waits_for_is_its_own(tmp_path: Path) -> None:
    """`mail` started commit 7, for which `db` waits. The device writes it from 1120 to 1250, and data of `mail` from 1260 to 1280."""
    run = Phased()
    sync(run, "db", 1000, 1400)
    other = sync(run, "mail", 1000, 1390, tid=2)
    run.given = (("commit logging", 1105, 1300),)
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1105, "dur_ns": 190, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": other, "started_by": "sync"})
    bio(run, "jbd2/sda-8", 1115, 1120, 1250, commit_id=7, tid=9, cgroup="/")
    data = {"ino": 33, "writers": "mail", "writers_cgroup": "/mail"}
    bio(run, "kworker/0:1", 1260, 1260, 1280, **data)
    # Without mail, db would have waited for a commit of its own.
    assert ways(reported(run, tmp_path)["mail", "/mail"]) == {"commit_data": 20}


@pytest.mark.parametrize(
    ("started_by", "starter", "expected"),
    [
        ("sync", 1, 1),
        # It is not known for which sync: sync 2 is the first that waits for the transaction of commit 7.
        ("sync", None, 2),
        (None, None, 2),
        ("timer", None, None),
    ],
)
def test_the_sync_that_started_an_earlier_commit(
    started_by: str | None, starter: int | None, expected: int | None, tmp_path: Path
) -> None:
    """Commit 7 runs from 100 to 300, and commit 8 until 500. Sync 3 waits for the end of 7 from 150 on."""
    run = Phased()
    for tid in (1, 2, 3):
        sync(run, "db", 90, 590, tid=tid)
    run.given, run.which = (("earlier commit", 150, 300),), 3
    row = {"kind": "commit", "dev": DISK, "dur_ns": 200, "tid": 9}
    run.journal.append(row | {"commit_id": 7, "transaction_id": 17, "ts_ns": 100, "started_by": started_by, "sync_id": starter})  # fmt: skip
    run.journal.append(row | {"commit_id": 8, "transaction_id": 18, "ts_ns": 300, "started_by": "sync", "sync_id": 3})  # fmt: skip
    wait = {"number": 1, "wait": "commit wait", "confidence": "exact", "dur_ns": 10}
    run.wait.append(wait | {"sync_id": 1, "ts_ns": 102, "transaction_id": 17})
    run.wait.append(wait | {"sync_id": 2, "ts_ns": 101, "transaction_id": 17})
    paths = {
        "duckdb": sqltools.write_parquet(run, tmp_path / "tables"),
        "embedded": sqltools.write_trace(run, tmp_path / "t.pftrace"),
    }
    for engine, path in paths.items():
        with opened(str(path), Reading(), engine=engine) as opened_engine:
            found = run_query(opened_engine, "SELECT sync_id, ts_ns, dur_ns, transaction_id, starter_id FROM earlier_commits!()").rows  # fmt: skip
        assert [*map(tuple, found)] == ([] if expected is None else [(3, 150, 150, 17, expected)])


def test_an_earlier_commit_belongs_to_whose_sync_started_it(tmp_path: Path) -> None:
    """`db` waits from 1100 to 1500 for commit 7, which `mail` started. The device works for `dd` meanwhile, and then for nobody."""
    run = Phased()
    own = sync(run, "db", 1000, 2000)
    other = sync(run, "mail", 900, 1500, tid=2)
    run.given = (("earlier commit", 1100, 1500),)
    journal = {"commit_id": 7, "kind": "commit", "dev": DISK, "ts_ns": 950, "dur_ns": 550, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "sync_id": other, "started_by": "sync"})
    bio(run, "dd", 1050, 1050, 1300)
    bio(run, "mail", 910, 920, 940, sync_id=other)
    rows = reported(run, tmp_path)
    assert ways(rows["mail", "/mail"]) == {"commit_data": 400}
    assert (rows["mail", "/mail"]["low_ns"], rows["mail", "/mail"]["sync_id"]) == (400, own)
    assert ways(rows["dd", "/dd"]) == {}


def test_an_earlier_commit_of_an_inferred_starter_is_not_certain(tmp_path: Path) -> None:
    """The same, but the recording does not say who started commit 7. `mail` waited first; the timer may have been earlier."""
    run = Phased()
    sync(run, "db", 1000, 2000)
    other = sync(run, "mail", 960, 1500, tid=2)
    run.given = (("earlier commit", 1100, 1500),)
    journal = {"commit_id": 7, "kind": "commit", "dev": DISK, "ts_ns": 950, "dur_ns": 550, "tid": 9}
    run.journal.append(journal | {"comm": "jbd2/sda-8", "transaction_id": 17})
    wait = {"number": 1, "wait": "commit wait", "confidence": "exact", "dur_ns": 500}
    run.wait.append(wait | {"sync_id": other, "ts_ns": 970, "transaction_id": 17})
    row = reported(run, tmp_path)["mail", "/mail"]
    assert (row["commit_data_ns"], row["low_ns"]) == (400, 0)


def test_while_the_starter_of_a_commit_has_no_end_the_device_says_whom_it_is_for(
    tmp_path: Path,
) -> None:
    """`db` waits from 1100 to 1500 for commit 7 of `mail`, whose sync does not end. The device works for `dd` until 1300."""
    run = Phased()
    sync(run, "db", 1000, 2000)
    other = run.add(
        900,
        None,
        call=False,
        comm="mail",
        process="mail",
        cgroup="/mail",
        tid=2,
        dev=DISK,
        incomplete="end",
    )
    run.given = (("earlier commit", 1100, 1500),)
    journal = {"commit_id": 7, "kind": "commit", "dev": DISK, "ts_ns": 950, "dur_ns": 550, "tid": 9}
    run.journal.append(
        journal | {"comm": "jbd2/sda-8", "sync_id": other["sync_id"], "started_by": "sync"}
    )
    bio(run, "dd", 1050, 1050, 1300)
    rows = reported(run, tmp_path)
    assert ways(rows["dd", "/dd"]) == {"commit_data": 200}


def test_the_queued_bio_that_a_device_gets_next_holds_it(tmp_path: Path) -> None:
    """Nothing is at the device until 4 ms. `db` waits for the journal, whose bio comes next, then that of `dd`; or the other way."""
    for first, second, expected in (("db", "dd", {}), ("dd", "db", {"commit_data": 3 * MS})):
        run = Phased()
        own = sync(run, "db", 0, 10 * MS)
        run.given = (("earlier commit", 1 * MS, 4 * MS),)
        for who, issue in ((first, 4 * MS), (second, 6 * MS)):
            bio(run, who, MS, issue, issue + MS, sync_id=own if who == "db" else None)
        rows = reported(run, tmp_path / first)
        assert ways(rows["dd", "/dd"]) == expected


def test_the_sync_that_was_delayed_most_is_a_call(tmp_path: Path) -> None:
    """Each of two requests of a sync() is delayed by 60, and an fsync by 100."""
    run = Run()
    ids = []
    for number, (delay, of) in enumerate(((60, None), (60, 0), (100, None))):
        at = 1000 * (number + 1)
        ids.append(
            sync(
                run,
                "db",
                at,
                at + 500,
                op="sync",
                **({} if of is None else {"call_sync_id": ids[of]}),
            )
        )
        bio(run, "dd", at, at, at + 100 + delay)
        bio(run, "db", at + 100, at + 100 + delay, at + 400, sync_id=ids[-1])
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["cost_ns"], row["sync_id"], row["syncs"]) == (220, ids[0], 2)


@pytest.mark.parametrize(
    ("phase", "sure"),
    [
        ("earlier commit", 300),
        ("commit flushing", 300),
        # Open handles may be anybody's.
        ("commit locking", 0),
        # Without `dd`, the sync would wait for the blocks of its commit all the same.
        ("commit logging", 0),
        ("commit start", 0),
        ("lock wait", 0),
        ("cpu wait", 0),
    ],
)
def test_what_a_commit_waits_for_is_sure_while_one_alone_has_the_device(
    phase: str, sure: int, tmp_path: Path
) -> None:
    """`db` waits from 1050 to 1850. `dd` has the device from 950 on: alone until 1350, and next to `log` until 1650."""
    run = Phased()
    sync(run, "db", 1000, 2000)
    run.given = ((phase, 1050, 1850),)
    bio(run, "dd", 900, 950, 1650)
    bio(run, "log", 1340, 1350, 1700)
    rows = reported(run, tmp_path)
    # After `dd`, `log` has the device alone for 50.
    assert rows["dd", "/dd"]["low_ns"] == sure
    assert rows["log", "/log"]["low_ns"] == (50 if sure else 0)
    # One of the two is served at each moment.
    assert sum(rows[who, f"/{who}"]["cost_ns"] for who in ("dd", "log")) == 1700 - 1050


def test_a_long_time_before_the_first_bio_is_a_lock(tmp_path: Path) -> None:
    """The device works for `dd` until 4 ms. `db` is before its first bio for 2 ms, then runs, and is so again for 0.9 ms."""
    run = Phased()
    sync(run, "db", MS, 9 * MS)
    before = "before submit"
    run.given = ((before, MS, 3 * MS), ("submit", 3 * MS, 3_100_000), (before, 3_100_000, 4 * MS))
    bio(run, "dd", 0, 0, 4 * MS)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["syncs"], ways(row)) == (1, {"commit_data": 2 * MS})


def test_what_changes_metadata_unseen_has_no_upper_bound(tmp_path: Path) -> None:
    """`rm` needs room in the journal, so it writes metadata and flushes itself."""
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "rm", 900, 950, 1200, rwbs="WSM")
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    row = reported(run, tmp_path)["rm", "/rm"]
    assert (row["kind"], row["low_ns"], row["high_ns"]) == ("metadata", 150, None)


def test_a_bio_of_another_device_delays_nobody(tmp_path: Path) -> None:
    run = Run()
    own = sync(run, "db", 1000, 1400)
    bio(run, "dd", 900, 950, 1200, dev="8,16")
    bio(run, "db", 1050, 1300, 1380, sync_id=own)
    assert reported(run, tmp_path) == {}


def request(comm: str, tid: int, number: int, start: int, end: int, *at: int) -> list[Row]:
    """The events of a sync with one bio, which is submitted, issued and completed at these times."""
    submit, issue, complete = at
    own = {"source": "trace-dat", "tid": tid, "comm": comm, "id": number}
    whole = {"start": 0, "end": 2**63 - 1, "datasync": 0, "dev": DISK, "fs": "ext4", "ino": number}
    its = own | {"bio": hex(number), "dev": DISK, "sector": 8 * number}
    of_block = {
        "source": "trace-dat",
        "comm": "swapper",
        "tid": 0,
        "dev": DISK,
        "sector": 8 * number,
    }
    of_block |= {"bytes": 4096, "rwbs": "WS"}
    return [
        own | whole | {"ts_ns": start, "event": "sync_start", "path": f"/{comm}"},
        its | {"ts_ns": submit, "event": "bio_add_folio", "start": 0, "len": 4096},
        its | {"ts_ns": submit, "event": "bio_submit"},
        of_block | {"ts_ns": issue, "event": "block_rq_issue"},
        of_block | {"ts_ns": complete, "event": "bio_complete", "bio": hex(number)},
        own | {"ts_ns": end, "event": "sync_end", "ret": 0},
    ]


def test_a_filter_says_whose_wait_is_meant_and_hides_nobody(tmp_path: Path) -> None:
    """`a` has the device from 1010 to 1110; then `b`, whose bio was queued from 1020 on, until 1200; then `c`, queued from 1030 on."""
    events = [
        *request("a", 1, 1, 1000, 1300, 1005, 1010, 1110),
        *request("b", 2, 2, 1000, 1300, 1020, 1110, 1200),
        *request("c", 3, 3, 1000, 1300, 1030, 1200, 1250),
    ]
    events.sort(key=lambda event: event["ts_ns"])
    log = tmp_path / "made.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))

    def costs(*options: str) -> dict[str, tuple[int, ...]]:
        rows = json.loads(ok("report", log, "neighbours", "--format", "json", *options))["rows"]
        columns = ("syncs", "of_syncs", "cost_ns")
        return {row["process"]: tuple(row[column] for column in columns) for row in rows}

    # `a` delays `b` from 1020 to 1110, and `c` from 1030 on; `b` delays `c` from 1110 to 1200.
    assert costs() == {"a": (2, 2, 90 + 80), "b": (1, 2, 90), "c": (0, 2, 0)}
    assert costs("--comm", "c") == {"a": (1, 1, 80), "b": (1, 1, 90)}
    assert costs("--path", "/b") == {"a": (1, 1, 90), "c": (0, 1, 0)}
    said = ok("report", log, "--comm", "c")
    assert "1 sync of 1 file" in said
    # The worse one comes first.
    assert "Neighbours: b, which syncs, delayed 1 of 1 sync of others for 90 ns" in said
    assert "\n  a, which syncs, delayed 1 of 1 sync of others for 80 ns" in said
    assert "The filter chose whose wait is meant; it hides no neighbour." in said


# The wait of 70 syncs of a WAL next to a neighbour, less that of the same WAL without one.
TRUTH_S = {
    "ext4-write": ("dd", 1.79),
    "ext4-sync": ("python3", 2.02),
    "ext4-read": (None, 1.84),
    # The mean of two comparisons.
    "xfs-sync": ("python3", 2.44),
    "btrfs-sync": ("python3", 12.15),
}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    with tarfile.open(RECORDINGS) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("case", TRUTH_S)
def test_the_cost_of_a_neighbour_is_that_of_the_comparison_with_a_run_without_it(case: str, recordings: Path) -> None:  # fmt: skip
    process, truth_s = TRUTH_S[case]
    rows = report(recordings / f"{case}.pftrace")
    cgroup = process and "/neigh"
    (row,) = [row for row in rows if (row["process"], row["cgroup"]) == (process, cgroup)]
    assert row["cost_ns"] / 1e9 == pytest.approx(truth_s, rel=0.2)
    # Where it writes or syncs, the truth is between the bounds.
    if process:
        assert row["low_ns"] / 1e9 <= truth_s <= row["high_ns"] / 1e9
    if case != "ext4-sync":
        # It is the worst one.
        others = [one for one in rows if one["cgroup"] != "/wal" and one is not row]
        assert all(one["cost_ns"] < row["cost_ns"] for one in others)


def on_cpu(who: str | None, confidence: str = "exact", **columns: Any) -> Row:
    """The columns of a wait for a CPU that a process has, in a control group of the same name; nobody if it is None."""
    if who is None:
        return {"cpu_tid": 0, "cpu_comm": "<idle>", "cpu_confidence": "inferred"}
    names = {"cpu_comm": who, "cpu_process": who, "cpu_cgroup": f"/{who}"}
    return {"cpu_tid": 300, "cpu_pid": 300, "cpu_confidence": confidence, **names, **columns}


def waits_for_cpu(run: Phased, *users: Row) -> None:
    """`db` syncs from 1000 to 2000. From 1100 on it waits for a CPU that each of these has for 100."""
    sync(run, "db", 1000, 2000, pid=7)
    bio(run, "db", 1800, 1810, 1900, sync_id=1)
    starts = range(1100, 1100 + 100 * len(users), 100)
    waits = [("cpu wait", start, start + 100) for start in starts]
    run.given = (*waits, ("device", 1810, 1900))
    run.cpu_users = {(1, start): user for start, user in zip(starts, users, strict=True)}


def test_who_has_the_cpu_is_a_neighbour(tmp_path: Path) -> None:
    run = Phased()
    waits_for_cpu(
        run,
        on_cpu("burn"),
        # Its control group is that of the others of this name.
        on_cpu("burn", confidence="inferred", cpu_cgroup=None),
        # A worker may work for anybody, an idle CPU for nobody, and a program does not delay itself.
        on_cpu("kworker/0:1", cpu_cgroup="/"),
        on_cpu(None),
        on_cpu("db", cpu_tid=2),
        on_cpu("helper", cpu_pid=7),
        on_cpu("top", confidence="inferred"),
    )
    rows = reported(run, tmp_path)
    assert [
        (row["kind"], row["process"], row["cgroup"], row["cpu_ns"], row["cost_ns"], row["low_ns"])
        for row in rows.values()
    ] == [
        ("computes", "burn", "/burn", 200, 200, 100),
        ("computes", "top", "/top", 100, 100, 0),
    ]
    # The device works for nobody but the sync from 1810 to 1900.
    assert [(row["high_ns"], row["syncs"], row["sync_id"]) for row in rows.values()] == [(910, 1, 1)] * 2  # fmt: skip


# Where the group of the sync is not recorded, that of the bio of `db` is the only one of its name.
@pytest.mark.parametrize("cgroup", ["/db", None])
def test_nobody_is_to_blame_for_a_limit(cgroup: str | None, tmp_path: Path) -> None:
    """While cpu.max holds `db` back, somebody else has the CPU, but that may be no reason of the wait."""
    run = Phased()
    run.meta["limits.1"] = "/db\tcpu.max of /db: 20000 100000"
    run.meta["limits.2"] = "/d\tcpu.max of /d: 20000 100000"
    waits_for_cpu(run, on_cpu("burn"))
    run.sync[0]["cgroup"] = cgroup
    row = reported(run, tmp_path)["burn", "/burn"]
    assert (row["cost_ns"], row["low_ns"], row["high_ns"], row["syncs"]) == (0, 0, 910, 0)
    # Others' limits say nothing of `db`.
    del run.meta["limits.1"]
    assert reported(run, tmp_path / "free")["burn", "/burn"]["cost_ns"] == 100


def test_who_uses_the_device_has_its_wait_for_the_cpu_too(tmp_path: Path) -> None:
    """Its syncs show when it was active, so the bounds do not need the CPU."""
    run = Phased()
    waits_for_cpu(run, on_cpu("dd"), on_cpu("kworker/0:1", cpu_cgroup="/"))
    bio(run, "dd", 900, 950, 1250)
    row = reported(run, tmp_path)["dd", "/dd"]
    # The worker has the CPU from 1200 on, and the device works for `dd` until 1250.
    assert (row["kind"], row["cpu_ns"], row["low_ns"]) == ("writes", 100 + 50, 0)


def test_a_program_that_computes_does_not_hide_when_others_were_quiet(tmp_path: Path) -> None:
    """It has a CPU in each sync, so none would be left to compare with."""
    run = Phased()
    quiet_and_busy(run, 20)
    without = reported(run, tmp_path)["dd", "/dd"]
    run.given, run.which = (("cpu wait", S // 100, S // 100 + 10),), 1
    run.cpu_users = {(1, S // 100): on_cpu("top")}
    assert reported(run, tmp_path / "both")["dd", "/dd"] == without


@pytest.mark.parametrize(
    ("requests", "cost"),
    [
        # The first request has as many blocks as `db` needs: the list of them, and its own. The other two are there for `rm`. They are complete at
        # 1600, and until 1640 the journal looks at five blocks, three of which are there for `rm`.
        ((2, 2, 1), 200 + 40 * 3 // 5),
        # One request writes all blocks until 1400, so only what the journal does with each of them would take less time without `rm`.
        ((5,), 240 * 3 // 5),
    ],
)
def test_blocks_of_a_commit_belong_to_who_changed_them(
    requests: tuple[int, ...], cost: int, tmp_path: Path
) -> None:
    """`db` starts commit 7, which has a list, a block of `rm`, one of `db`, and two of `rm`. The device takes 100 for each request."""
    run = Phased()
    own = sync(run, "db", 1000, 1800)
    run.given = (("commit logging", 1250, 1700),)
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1200, "dur_ns": 500, "logging_ns": 450}
    run.journal.append(journal | {"tid": 9, "sync_id": own, "started_by": "sync"})
    of_journal = {"commit_id": 7, "tid": 9, "cgroup": "/"}
    changers = iter([None, "rm", "db", "rm", "rm"])
    for number, blocks in enumerate(requests):
        start = 1300 + 100 * number
        for changer in (next(changers) for _ in range(blocks)):
            whose = {"writers": changer, "writers_cgroup": changer and f"/{changer}"}
            bio(run, "jbd2/sda-8", 1290, start, start + 100, rwbs="WSM", **of_journal, **whose)
    bio(run, "jbd2/sda-8", 1640, 1640, 1690, rwbs="FWFSM", **of_journal)
    ((who, row),) = reported(run, tmp_path).items()
    assert (who, row["kind"], ways(row)) == (("rm", "/rm"), "metadata", {"commit_data": cost})
    # Whether `db` would have changed these blocks itself is not certain, and nothing shows how long it would have taken.
    assert (row["low_ns"], row["high_ns"], row["bios"]) == (0, 800, 3)


def test_the_journal_hands_all_blocks_over_at_once(tmp_path: Path) -> None:
    """It submits a list at 1300, a block of `db` at 1320, two of `rm` at 1350 and 1390, and hands them over then. The device takes them from 1400 on."""
    run = Phased()
    own = sync(run, "db", 1000, 1800)
    run.given = (("commit logging", 1250, 1500),)
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1200, "dur_ns": 500, "logging_ns": 450}
    run.journal.append(journal | {"tid": 9, "sync_id": own, "started_by": "sync"})
    for start, changer in ((1300, None), (1320, "db"), (1350, "rm"), (1390, "rm")):
        whose = {"writers": changer, "writers_cgroup": changer and f"/{changer}"}
        bio(run, "jbd2/sda-8", start, 1400, 1500, commit_id=7, tid=9, rwbs="WSM", **whose)
    # `db` alone would have waited until 1320 for that. All complete at once, and no last block is recorded.
    assert ways(reported(run, tmp_path)["rm", "/rm"]) == {"commit_data": 1390 - 1320}


def test_data_that_a_commit_writes_are_no_blocks_of_the_journal(tmp_path: Path) -> None:
    """The journal of `db` writes data of `dd` before it begins to log, at 1250."""
    run = Phased()
    own = sync(run, "db", 1000, 1800)
    run.given = (("commit flushing", 1200, 1250), ("commit logging", 1250, 1700))
    journal = {"commit_id": 7, "kind": "commit", "ts_ns": 1200, "dur_ns": 500, "logging_ns": 450}
    run.journal.append(journal | {"tid": 9, "sync_id": own, "started_by": "sync"})
    of_journal = {"commit_id": 7, "tid": 9, "cgroup": "/"}
    bio(run, "jbd2/sda-8", 1210, 1220, 1250, writers="dd", writers_cgroup="/dd", **of_journal)
    row = reported(run, tmp_path)["dd", "/dd"]
    assert (row["kind"], ways(row), row["low_ns"]) == ("writes", {"commit_data": 40}, 1250 - 1220)


def test_what_computes_takes_no_time_of_the_device(tmp_path: Path) -> None:
    """From 1300 to 1500, `db` waits for the device, which works for `dd`, then for itself; from 1500 to 1600 for a lock."""
    run = Phased()
    sync(run, "db", 1000, 2000, pid=7)
    bio(run, "dd", 1290, 1300, 1400)
    bio(run, "db", 1300, 1400, 1500, sync_id=1)
    bio(run, "dd", 1490, 1500, 1600)
    cpu = ("cpu wait", 1100, 1200)
    run.given = (cpu, ("queue", 1300, 1400), ("device", 1400, 1500), ("lock wait", 1500, 1600))
    run.cpu_users = {(1, 1100): on_cpu("burn")}
    rows = reported(run, tmp_path)
    # Whether the thread that has the lock waits for the device or for a CPU is not known.
    assert (rows["burn", "/burn"]["cost_ns"], rows["burn", "/burn"]["high_ns"]) == (100, 1000 - 200)
    assert rows["dd", "/dd"]["high_ns"] == 1000 - 100
