"""The report `bystanders`: against the reference implementation, in both engines."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from syncline.inputs import Reading, opened
from syncline.report.run import run_query, run_report

from tests import known_truth, sqltools, test_neighbours
from tests.coretools import ROOT, tables
from tests.reference import bystanders
from tests.sqltools import Run
from tests.test_phases import Machine

DATA = ROOT / "tests" / "data"
RECORDINGS = [
    *("dynamic-events/ext4.dat.gz", "dynamic-events/ext4-both.txt.gz"),
    *("dynamic-events/xfs.txt.gz", "dynamic-events/f2fs.txt.gz", "dynamic-events/btrfs.txt.gz"),
    *("tracecmd/small4.dat", "thesis/parallel4.log", "thesis/sqlite_wal_full.log"),
]


def report(path: Path | str, engine: str) -> list[dict[str, Any]]:
    with opened(str(path), Reading(), engine=engine) as opened_engine:
        found = run_report(opened_engine, "bystanders")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def key_of(row: dict[str, Any]) -> bystanders.Key:
    """The key of a row. Without requests, its path follows from its bios."""
    who = row["comm"], row["process"], row["cgroup"], row["writers"]
    return row["kind"], *who, row["path"] if row["kind"] == "sync" else None


def check(source: Path, folder: Path) -> set[str]:
    """Compares the report with the reference. Returns the kinds of bystanders."""
    for output in ("tables/", "out.pftrace"):
        Reading().convert([str(source)], f"{folder}/{output}")
    rows = report(folder / "tables", "duckdb")
    assert report(folder / "out.pftrace", "embedded") == rows
    of_run = tables(folder / "tables")
    expected = bystanders.delays(of_run)
    sums: Counter[bystanders.Key] = Counter()
    syncs: Counter[bystanders.Key] = Counter()
    for lengths in expected.values():
        for key, ns in lengths.items():
            sums[key] += ns
            syncs[key] += 1
    keys = [key_of(row) for row in rows]
    assert dict(zip(keys, (row["ahead_ns"] for row in rows), strict=True)) == sums
    assert dict(zip(keys, (row["syncs"] for row in rows), strict=True)) == syncs
    if not expected:
        return set()
    times = {
        row["sync_id"]: row["ts_ns"] + row["dur_ns"] - row["start_ns"]
        for row in bystanders.slowest(of_run["sync"])
    }
    for key, row in zip(keys, rows, strict=True):
        assert row["of_syncs"] == len(times)
        assert row["share"] == pytest.approx(row["ahead_ns"] / sum(times.values()))
        lengths = {sync_id: lengths.get(key, 0) for sync_id, lengths in expected.items()}
        assert row["max_ns"] == max(lengths.values()) == lengths[row["sync_id"]]
    return {kind for kind, *_ in keys}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    # The thesis format names no device.
    assert ("itself" in check(DATA / name, tmp_path)) == (not name.startswith("thesis/"))


def test_logs_that_were_made_up_agree_with_the_reference(tmp_path: Path) -> None:
    kinds = set()
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        log = folder / "made.txt"
        log.write_text(Machine(seed).log())
        kinds |= check(log, folder)
    assert kinds >= {"itself", "sync", "background"}


DISK, OTHER_DISK = "254,16", "254,32"


def bio(comm: str, dev: str, sector: int, *at: int, of: int = 0) -> list[dict[str, Any]]:
    """A bio that is submitted, issued and completed at these times."""
    submit, issue, complete = at
    base = {"source": "trace-dat", "dev": dev, "sector": sector}
    mine = base | {"comm": comm, "tid": 1 if of else 100 + sector, "id": of, "bio": hex(sector)}
    of_block = base | {"comm": "swapper", "tid": 0, "bytes": 4096, "rwbs": "WS"}
    return [
        mine | {"ts_ns": submit - 1, "event": "bio_add_folio", "start": 0, "len": 4096},
        mine | {"ts_ns": submit, "event": "bio_submit"},
        of_block | {"ts_ns": issue, "event": "block_rq_issue"},
        of_block | {"ts_ns": complete, "event": "bio_complete", "bio": hex(sector)},
    ]


def test_only_what_was_issued_before_the_bio_that_a_sync_waits_for_is_ahead(tmp_path: Path) -> None:
    """A sync waits for its bio from 120 to 300, and from 150 to 160 for a flush, which splits the time at the device."""
    own = {"source": "trace-dat", "tid": 1, "comm": "db", "id": 7}
    whole = {"start": 0, "end": 2**63 - 1, "datasync": 0, "dev": DISK, "fs": "ext4", "ino": 12}
    events = [
        own | whole | {"ts_ns": 100, "event": "sync_start", "path": "/f"},
        *bio("db", DISK, 8, 120, 130, 300, of=7),
        # The sync does not wait for this one, because the other one completes later.
        *bio("db", OTHER_DISK, 16, 121, 122, 140, of=7),
        own | {"ts_ns": 150, "event": "flush_start"},
        own | {"ts_ns": 160, "event": "flush_end"},
        *bio("early", DISK, 24, 110, 125, 170),
        *bio("ahead of the flush", DISK, 32, 135, 140, 290),
        *bio("late", DISK, 40, 161, 165, 295),
        *bio("other disk", OTHER_DISK, 48, 110, 118, 280),
        own | {"ts_ns": 310, "event": "sync_end", "ret": 0},
    ]
    events.sort(key=lambda event: event["ts_ns"])
    log = tmp_path / "made.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert check(log, tmp_path) == {"itself", "background"}
    rows = report(tmp_path / "tables", "duckdb")
    assert {row["comm"]: (row["syncs"], row["ahead_ns"]) for row in rows} == {
        None: (1, 180),
        # In the queue, at the device, in the flush, and again at the device.
        "early": (1, 5 + 20 + 10 + 10),
        # Issued after the bio, before the flush.
        "ahead of the flush": (1, 10),
        # A flush is of every device of the sync.
        "other disk": (1, 10),
    }


MAPPED, OTHER_MAPPED = "253,0", "253,1"


def redirected(comm: str, dev: str, sector: int, to: tuple[str, int] | None, *at: int, of: int = 0) -> list[dict[str, Any]]:  # fmt: skip
    """A bio of a device mapper. `to`: where it is redirected one ns after its submit, and issued, if that is recorded."""
    base, submit, issue, complete = bio(comm, dev, sector, *at, of=of)
    if to is None:
        return [base, submit, complete]
    place = {"dev": to[0], "sector": to[1]}
    remap = issue | place | {"event": "block_bio_remap", "ts_ns": submit["ts_ns"] + 1}
    remap |= {"from_dev": dev, "from_sector": sector}
    return [base, submit, remap, issue | place, complete]


def test_bios_meet_at_the_device_below(tmp_path: Path) -> None:
    """A sync waits for its bio on a device mapper from 120 to 300. The disk below gets it at 130."""
    own = {"source": "trace-dat", "tid": 1, "comm": "db", "id": 7}
    whole = {"start": 0, "end": 2**63 - 1, "datasync": 0, "dev": MAPPED, "fs": "ext4", "ino": 12}
    events = [
        own | whole | {"ts_ns": 100, "event": "sync_start", "path": "/f"},
        *redirected("db", MAPPED, 8, (DISK, 1008), 120, 130, 300, of=7),
        *bio("disk", DISK, 24, 110, 125, 170),
        *bio("disk later", DISK, 32, 112, 131, 290),
        *bio("other disk", OTHER_DISK, 48, 110, 118, 280),
        *redirected("other mapping", OTHER_MAPPED, 56, (DISK, 2056), 105, 110, 150),
        # It was submitted first, and the disk gets it later.
        *redirected("kept above", OTHER_MAPPED, 64, (DISK, 2064), 101, 140, 290),
        *redirected("other leg", MAPPED, 72, (OTHER_DISK, 1072), 105, 111, 290),
        # Where the disk meets these is not known.
        *redirected("no remap, same", MAPPED, 80, None, 112, 113, 200),
        *redirected("no remap, other", OTHER_MAPPED, 88, None, 112, 113, 250),
        own | {"ts_ns": 310, "event": "sync_end", "ret": 0},
    ]
    events.sort(key=lambda event: event["ts_ns"])
    log = tmp_path / "made.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert check(log, tmp_path) == {"itself", "background"}
    rows = report(tmp_path / "tables", "duckdb")
    # A bio counts once, though it was at two devices.
    assert {row["comm"]: (row["bios"], row["ahead_ns"]) for row in rows} == {
        None: (1, 180),
        "disk": (1, 170 - 125),
        "other mapping": (1, 150 - 120),
        "no remap, same": (1, 200 - 120),
    }
    with opened(str(tmp_path / "tables"), Reading()) as engine:
        where = "SELECT comm, dev, below FROM syncline_bio WHERE below IS NOT NULL"
        assert set(run_query(engine, where).rows) == {
            ("db", MAPPED, DISK),
            ("other mapping", OTHER_MAPPED, DISK),
            ("kept above", OTHER_MAPPED, DISK),
            ("other leg", MAPPED, OTHER_DISK),
        }


@pytest.mark.parametrize("case", ["forced-syncfs", "forced-freeze", "stacked"])
def test_a_commit_whose_bios_were_issued_later_is_not_ahead(case: str, tmp_path: Path) -> None:
    """On a device that takes 20 ms for each write, a journal's bios are ahead of the bio of a sync only if they were there before it."""
    check(known_truth.unpacked(case, tmp_path), tmp_path)
    of_run = tables(tmp_path / "tables")
    syncs = {row["sync_id"]: row for row in bystanders.slowest(of_run["sync"])}
    journals = {row["tid"] for row in of_run["journal"]}
    # A device mapper hands its bios to no driver, so a bio is there from its submit.
    bios = [row for row in of_run["bio"] if row["dev"] and row["dur_ns"]]
    met = 0
    for sync_id, sync in syncs.items():
        end = sync["ts_ns"] + sync["dur_ns"]
        own = [row["ts_ns"] for row in bios if row["sync_id"] == sync_id]
        flushes = [row["ts_ns"] for row in of_run["wait"] if row["sync_id"] == sync_id]
        last = max([*own, *flushes], default=0)
        met += any(
            row["ts_ns"] < last < row["ts_ns"] + row["dur_ns"]
            for row in bios
            if row["tid"] in journals and row["ts_ns"] < end
        )
    found = [
        row["syncs"] for row in report(tmp_path / "tables", "duckdb") if row["kind"] == "journal"
    ]
    assert sum(found) <= met < len(syncs)


# Recordings with a neighbour that says itself when it wrote.
NEIGHBOURS = [
    "neighbour-direct",
    "neighbour-patched",
    "postgres-neighbour",
    "queue-1",
    "queue-4",
    "queue-31",
]


def neighbour_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest row that is not of the syncs' own work."""
    return next(row for row in rows if row["kind"] not in ("itself", "commit"))


def written(truth: dict[str, Any]) -> list[tuple[int, int]]:
    return [(start, start + length) for start, length in truth["neighbour"]["writes_start_dur_ns"]]


def overlap(spans: list[tuple[int, int]], start: int, end: int) -> int:
    """The time from start to end that the spans cover."""
    covered, reached = 0, start
    for since, until in sorted(spans):
        covered += max(0, min(until, end) - max(since, reached))
        reached = max(reached, min(until, end))
    return covered


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_the_neighbour_is_named_with_what_it_cost(case: str, tmp_path: Path) -> None:
    found = known_truth.converted(case, tmp_path)
    neighbour = neighbour_of(report(tmp_path / f"{case}.tables", "duckdb"))
    assert (neighbour["kind"], neighbour["comm"]) == ("background", "neighbour")
    truth = found.truth["neighbour"]
    assert (neighbour["process"], neighbour["cgroup"]) == (truth["comm"], truth["cgroup"])
    assert 1 <= neighbour["threads"] <= len(found.truth["neighbour"]["tids"])
    key = ("background", "neighbour", "neighbour", truth["cgroup"], None, None)
    delays = bystanders.delays(found.tables)
    assert neighbour["ahead_ns"] == sum(of_sync.get(key, 0) for of_sync in delays.values())
    syncs = {row["sync_id"]: row for row in found.tables["sync"]}
    for sync_id, of_sync in delays.items():
        row = syncs[sync_id]
        # Its bios are inside of its calls of write().
        most = overlap(written(found.truth), row["start_ns"], row["ts_ns"] + row["dur_ns"])
        assert of_sync.get(key, 0) <= most, sync_id


def test_on_a_device_for_one_bio_each_bio_ahead_costs_its_service_time(tmp_path: Path) -> None:
    found = known_truth.converted("queue-1", tmp_path)
    neighbour = neighbour_of(report(tmp_path / "queue-1.tables", "duckdb"))
    service_ns = found.truth["device"]["request_us"] * 1000
    slow = bystanders.slowest(found.tables["sync"])
    # One of those that are ahead when a wait begins is already being served.
    waits = sum(bystanders.waits_of(sync, found.tables) for sync in slow)
    assert neighbour["bios"] > waits
    assert neighbour["ahead_ns"] >= (neighbour["bios"] - waits) * service_ns


def test_what_a_commit_wrote_for_other_files(tmp_path: Path) -> None:
    """Before each sync, another file gets data, which the commit writes. In `group-4` the journal writes no data."""
    for case, size in (("commit-others", 6 * 16384), ("group-4", 0)):
        run = known_truth.unpacked(case, tmp_path)
        for output in ("tables/", "out.pftrace"):
            Reading().convert([str(run)], f"{tmp_path}/{case}.{output}")
        rows = report(tmp_path / f"{case}.tables", "duckdb")
        assert report(tmp_path / f"{case}.out.pftrace", "embedded") == rows
        found = {row["kind"]: row["others_bytes"] for row in rows}
        assert found.pop("commit") == size
        assert not {*found.values()} - {None}


def test_the_block_that_ends_a_commit_is_of_the_journal_on_older_kernels_too(
    tmp_path: Path,
) -> None:
    """They print it as FWFS, without the mark for metadata. Its bytes are no data of a file, and leave none unknown."""
    made = tmp_path / "new"
    Reading().convert([str(known_truth.unpacked("commit-others", tmp_path))], f"{made}/")
    older = shutil.copytree(made, tmp_path / "older")
    bios = parquet.read_table(made / "syncline_bio.parquet")
    flags = bios["rwbs"].to_pylist()
    assert "FWFSM" in flags
    column = pyarrow.array([text and text.replace("FWFSM", "FWFS") for text in flags])
    place = bios.schema.get_field_index("rwbs")
    bios = bios.set_column(
        place, bios.schema.field(place), column.cast(bios.schema.field(place).type)
    )
    parquet.write_table(bios, older / "syncline_bio.parquet")
    for name, unmarked in (
        ("bystanders", "others_bytes"),
        ("whose-data", "bytes"),
        ("journal", "log_bytes"),
    ):
        with opened(str(made), Reading()) as one, opened(str(older), Reading()) as other:
            expected, found = run_report(one, name), run_report(other, name)
        assert found.rows == expected.rows, name
        assert any(row[found.columns.index(unmarked)] for row in found.rows)


def test_behind_a_flusher_thread_is_who_made_the_data_dirty(tmp_path: Path) -> None:
    run = known_truth.unpacked("neighbour-buffered", tmp_path)
    truth = json.loads((run / "truth.json").read_text())["neighbour"]
    # Each write of the neighbour fills folios that are clean or dirty already.
    lines = [json.loads(line) for line in (run / "writers.jsonl").read_text().splitlines()]
    mine = [line for line in lines if line["tid"] in truth["tids"]]
    assert {line["comm"] for line in mine} == {truth["comm"]}
    assert 0 < sum(line["folios"] for line in mine) * 4096 <= truth["bytes"]
    assert check(run, tmp_path) >= {"itself", "background"}
    rows = report(tmp_path / "out.pftrace", "embedded")
    [flushed] = [row for row in rows if row["writers"] is not None]
    assert (flushed["writers"], flushed["path"]) == (truth["comm"], truth["path"])
    assert flushed["comm"].startswith("kworker/")
    # Not the group of the flusher thread.
    assert flushed["cgroup"] == truth["cgroup"]
    bios = tables(tmp_path / "tables")["bio"]
    of_file = [row for row in bios if row["path"] == truth["path"]]
    assert {row["writers"] for row in of_file} == {truth["comm"]}
    assert 0 < flushed["bytes"] <= sum(row["bytes"] for row in of_file) <= truth["bytes"]
    # No bio of the neighbour was submitted before it began to write, or is still open.
    span = max(row["ts_ns"] + row["dur_ns"] for row in of_file) - truth["start_ns"]
    assert 0 < flushed["ahead_ns"] <= span
    # Journal and metadata have no file.
    assert {row["writers"] for row in bios if row["ino"] is None and row["sync_id"] is None} == {
        None
    }


def test_processes_and_control_groups_are_those_of_the_recorder(tmp_path: Path) -> None:
    run = known_truth.unpacked("neighbour-buffered", tmp_path)
    tasks = json.loads((run / "tasks.json").read_text())
    groups = {pid: name for name, pids in tasks["cgroups"].items() for pid in pids}
    threads = dict(tasks["threads"])
    for output in ("tables/", "out.pftrace"):
        Reading().convert([str(run)], f"{tmp_path}/{output}")
    sources = (("tables", "duckdb"), ("out.pftrace", "embedded"), ("out.pftrace", "duckdb"))
    for table in ("sync", "bio"):
        query = f"SELECT {table}_id, tid, pid, process, cgroup FROM syncline_{table} ORDER BY 1"
        found = []
        for path, engine in sources:
            with opened(str(tmp_path / path), Reading(), engine=engine) as opened_engine:
                found.append([tuple(row) for row in run_query(opened_engine, query).rows])
        assert found[0] == found[1] == found[2]
        assert len({process for *_, process, _ in found[0]} - {None}) > (table == "bio")
        for _, tid, pid, process, cgroup in found[0]:
            assert pid == threads[tid]
            assert process == tasks["processes"].get(str(pid))
            assert cgroup == groups.get(pid)


def test_short_commands_are_in_the_group_of_their_name(tmp_path: Path) -> None:
    """Ahead of `db` are commands of one loop, two of which the recorder missed, and of two loops."""
    run = Run()
    own = test_neighbours.sync(run, "db", 1000, 9000)
    test_neighbours.bio(run, "db", 1050, 8000, 8900, sync_id=own)
    commands = [("dd", "/loop"), ("dd", None), ("dd", None)]
    commands += [("cp", "/a"), ("cp", "/b"), ("cp", None)]
    for number, (who, group) in enumerate(commands):
        at = 2000 + 1000 * number
        test_neighbours.bio(run, who, at, at, at + 200, cgroup=group)
    # A flusher thread works for any group, so others of its name say nothing about it.
    test_neighbours.bio(run, "kworker/u4:1", 1000, 1000, 1100, cgroup="/")
    test_neighbours.bio(run, "kworker/u4:1", 1200, 1200, 1300, writers="dd", writers_cgroup=None)
    rows = report(sqltools.write_parquet(run, tmp_path / "tables"), "duckdb")
    assert report(sqltools.write_trace(run, tmp_path / "t.pftrace"), "embedded") == rows
    found = {(row["comm"], row["cgroup"]): row["ahead_ns"] for row in rows if row["comm"]}
    assert found == {
        ("dd", "/loop"): 600,
        ("cp", "/a"): 200,
        ("cp", "/b"): 200,
        ("cp", None): 200,
        ("kworker/u4:1", None): 50,
        ("kworker/u4:1", "/loop"): 100,
    }


@pytest.mark.parametrize("name", ["fsync", "exact", "a, b", 'näme \\"x\\"', "7"])
def test_a_writer_with_any_name_is_in_the_trace_as_in_the_tables(name: str, tmp_path: Path) -> None:
    run = known_truth.unpacked("neighbour-buffered", tmp_path)
    (run / "tasks.json").unlink()
    lines = [json.loads(line) for line in (run / "writers.jsonl").read_text().splitlines()]
    (run / "writers.jsonl").write_text(
        "".join(json.dumps(line | {"comm": name}) + "\n" for line in lines)
    )
    for output in ("tables/", "out.pftrace"):
        Reading().convert([str(run)], f"{tmp_path}/{output}")
    query = "SELECT writers, COUNT(*) FROM syncline_bio GROUP BY 1 ORDER BY 1"
    found = []
    for path, engine in (("tables", "duckdb"), ("out.pftrace", "embedded")):
        with opened(str(tmp_path / path), Reading(), engine=engine) as opened_engine:
            found.append(sorted(map(tuple, run_query(opened_engine, query).rows), key=str))
    assert found[0] == found[1]
    assert {writers for writers, _ in found[0]} == {None, name}


@pytest.mark.parametrize("case", ["neighbour-none", "postgres"])
def test_without_a_neighbour_none_is_named(case: str, tmp_path: Path) -> None:
    known_truth.converted(case, tmp_path)
    rows = report(tmp_path / f"{case}.tables", "duckdb")
    assert {row["kind"] for row in rows} == {"itself", "commit"}
