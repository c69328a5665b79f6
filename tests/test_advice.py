"""`syncline advise`: against the reference implementation, against recordings with a known truth, in both engines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.advice import Advice, UnknownFinding, advise, catalogue, evidence, load, names
from syncline.inputs import Reading, opened
from syncline.report import run_report

from tests import alarms, known_truth
from tests.coretools import ROOT, tables
from tests.known_truth import Case
from tests.reference import advice as reference
from tests.reference import bystanders
from tests.test_commands import fails, ok
from tests.test_sql import RUNS, Both, opened_runs

Row = dict[str, Any]
DATA = ROOT / "tests" / "data"
CHECKED = [name for name in names() if load(name).report is not None]


def found(engine: Any) -> dict[str, Advice]:
    return {one.finding.name: one for one in advise(engine)}


def rows_of(engine: Any, name: str) -> list[Row]:
    table = evidence(engine, load(name))
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def check(folder: Path, of_run: dict[str, list[Row]]) -> dict[str, Advice]:
    """Compares the findings on a folder of tables with the reference. Returns them by name."""
    with opened(str(folder), Reading()) as engine:
        advice = found(engine)
        rows = {name: rows_of(engine, name) for name in CHECKED}
        neighbours = run_report(engine, "neighbours").as_dicts()
    of_syncs = sum(row["dur_ns"] is not None for row in of_run["sync"])
    for name, one in advice.items():
        if one.status == "not checked":
            continue
        assert one.of_syncs == of_syncs
        assert (one.status == "found") == bool(rows[name]) == bool(one.syncs)
        assert list(one.shown) == rows[name][:3]
        if name not in reference.FINDINGS:
            continue
        parts = reference.FINDINGS[name](of_run)
        given = [(row["sync_id"], row["from_ns"], row["until_ns"]) for row in rows[name]]
        assert sorted(given) == sorted(parts), name
        assert one.syncs == len({sync_id for sync_id, _, _ in parts})
        if any(since is not None for _, since, _ in parts):
            saved, wall = reference.cost(of_run, parts)
            assert one.cost_ns == saved, name
            assert one.share == pytest.approx(saved / wall)
            assert one.sum_ns == sum(until - since for _, since, until in parts if until)
        else:
            assert (one.cost_ns, one.share) == (None, None)
    direct = reference.direct_writes(of_run)
    notes = [f"process {key}; writes: {n}; bytes: {size}" for key, (n, size) in direct.items()]
    if advice["direct-io"].status != "not checked":
        assert sorted(row["note"] for row in rows["direct-io"]) == sorted(notes)
    if advice["background"].status != "not checked":
        shown = [(row["comm"], row["cost_ns"]) for row in rows["background"]]
        assert sorted(shown) == sorted(reference.background(of_run))
    if advice["neighbour"].status != "not checked":
        # The figures are those of the report.
        costs = [
            (row["process"], row["cost_ns"])
            for row in neighbours
            if row["kind"] in ("syncs", "writes", "reads")
            and row["syncs"] >= 3
            and row["share"] >= 0.05
        ]
        assert [(row["comm"], row["cost_ns"]) for row in rows["neighbour"]] == costs
    return advice


# --- recordings with a known truth ---------------------------------------------------------------


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Case, dict]]:
    """Converts a case once, and compares its findings with the reference."""
    folder = tmp_path_factory.mktemp("advice")
    done: dict[str, tuple[Case, dict[str, Advice]]] = {}

    def one(case: str) -> tuple[Case, dict[str, Advice]]:
        if case not in done:
            converted = known_truth.converted(case, folder)
            done[case] = converted, check(folder / f"{case}.tables", converted.tables)
        return done[case]

    return one


def made(case: Case, *ops: str) -> list[Row]:
    return [call for call in case.truth["calls"] if call["op"] in ops]


def time_of(calls: list[Row]) -> int:
    return sum(call["end_ns"] - call["start_ns"] for call in calls)


def test_syncs_of_what_is_not_dirty_are_empty(known: Callable) -> None:
    case, advice = known("empty")
    calls = [call for call in made(case, "fsync") if call["dirty"] == 0]
    assert len(calls) == 12
    assert advice["empty"].syncs == len(calls)
    # The workload read the clock before and after each call.
    assert 0.5 * time_of(calls) < advice["empty"].cost_ns <= time_of(calls)
    assert known("fsync-in-place")[1]["empty"].status == "none"
    # It does not show that bios were recorded.
    assert known("empty-only")[1]["empty"].status == "not checked"


def test_an_empty_sync_that_made_a_rename_durable_is_needed(known: Callable) -> None:
    for case in ("rename-then-file", "rename-then-folder"):
        assert sum(row["bios"] == 0 for row in known(case)[0].tables["sync"]) == 5
        assert known(case)[1]["empty"].status == "none"


def test_fdatasync_would_do_for_overwrites_in_place(known: Callable) -> None:
    case, advice = known("fsync-in-place")
    # Not the first one, whose block may be new.
    assert advice["fdatasync"].syncs == len(made(case, "fsync")) - 1 == 11
    waits = {row["sync_id"]: row["journal_ns"] for row in case.tables["sync"]}
    assert advice["fdatasync"].cost_ns == sum(list(waits.values())[1:])
    # What the same workload took with fdatasync is about the rest, on a CPU that is emulated.
    other = made(known("fdatasync-in-place")[0], "fdatasync")
    rest = time_of(made(case, "fsync")) - advice["fdatasync"].cost_ns
    assert 0.5 * time_of(other) < rest < 2 * time_of(other)
    assert known("fdatasync-in-place")[1]["fdatasync"].syncs == 0


@pytest.mark.parametrize(
    "case", ["delay-ext4", "null-ext4", "group-4", "four-files", "small-files"]
)
def test_fsync_of_a_file_that_grew_is_needed(known: Callable, case: str) -> None:
    assert known(case)[1]["fdatasync"].status == "none"


def test_small_files_in_a_row(known: Callable) -> None:
    case, advice = known("small-files")
    calls = made(case, "fsync")
    assert advice["small-files"].syncs == len(calls) == 16
    assert advice["small-files"].cost_ns == sum(row["dur_ns"] for row in case.tables["sync"])
    assert advice["small-files"].cost_ns <= time_of(calls)
    # Six are too few.
    assert known("rebuildable")[1]["small-files"].status == "none"
    assert known("null-ext4")[1]["small-files"].status == "none"


def test_a_log_of_the_block_layer_does_not_show_whether_there_were_syncs() -> None:
    said = ok("advise", Path(__file__).parent / "data" / "blktrace" / "small4.blkparse.txt.gz")
    assert "has no event of a sync, so whether there were syncs is not known" in " ".join(
        said.split()
    )
    assert "no sync request" not in said


def test_evidence_says_nothing_of_bytes_that_are_not_recorded() -> None:
    """strace records no bytes, so the note has only what is known of the file."""
    data = Path(__file__).parent / "data"
    text = ok("advise", data / "strace" / "small4.log")
    assert "None" not in text
    # Four threads sync 25 files each.
    assert "sync 7 at 2026-11-20 17:49:24.542266 UTC, 17.3 ms: one of 25 files in a row" in text
    sized = ok("advise", data / "thesis" / "small4.log")
    assert ": 4096 bytes; one of 25 files in a row" in sized


def test_a_file_that_is_synced_again_after_its_rename(known: Callable) -> None:
    case, advice = known("rename-then-file")
    again = [call for call in made(case, "fsync") if call["dirty"] == 0]
    assert advice["rename-file"].syncs == len(again) == 5
    assert 0.5 * time_of(again) < advice["rename-file"].cost_ns <= time_of(again)
    assert advice["rename-folder"].status == "none"
    for other in ("rename-then-folder", "rename-then-nothing"):
        assert known(other)[1]["rename-file"].status == "none"


def test_a_folder_that_is_not_synced_after_a_rename(known: Callable) -> None:
    case, advice = known("rename-then-nothing")
    # After the last one the recording ends.
    assert advice["rename-folder"].syncs == len(made(case, "rename")) - 1 == 4
    assert advice["rename-folder"].cost_ns is None
    assert known("rename-then-folder")[1]["rename-folder"].status == "none"


@pytest.mark.parametrize("case", ["neighbour-direct", "queue-1", "queue-4", "queue-31"])
def test_direct_writes_of_a_neighbour_that_never_syncs(known: Callable, case: str) -> None:
    converted, advice = known(case)
    neighbour = converted.truth["neighbour"]
    (row,) = advice["direct-io"].shown
    assert row["comm"] == neighbour["comm"]
    writes = len(neighbour["writes_start_dur_ns"])
    bytes_ = neighbour["bytes"]
    assert row["note"] == f"process {neighbour['pid']}; writes: {writes}; bytes: {bytes_}"


@pytest.mark.parametrize(
    "case", ["neighbour-direct", "neighbour-patched", "postgres-neighbour", "queue-1"]
)
def test_a_neighbour_on_the_same_device(known: Callable, case: str) -> None:
    converted, advice = known(case)
    (row,) = advice["neighbour"].shown
    truth = converted.truth["neighbour"]
    assert row["comm"] == truth["comm"]
    # It is not ahead for longer than its own writes took, once for each sync.
    writes = [(start, start + dur) for start, dur in truth["writes_start_dur_ns"]]
    (sync,) = (sync for sync in converted.tables["sync"] if sync["sync_id"] == row["sync_id"])
    assert any(
        start < sync["ts_ns"] + sync["dur_ns"] and sync["start_ns"] < end for start, end in writes
    )
    assert (
        0
        < advice["neighbour"].cost_ns
        <= sum(
            min(end, sync["ts_ns"] + sync["dur_ns"]) - max(start, sync["start_ns"])
            for sync in bystanders.slowest(converted.tables["sync"])
            for start, end in writes
            if start < sync["ts_ns"] + sync["dur_ns"] and sync["start_ns"] < end
        )
    )
    assert advice["background"].status == "none"


@pytest.mark.parametrize("case", ["neighbour-none", "forced-syncfs", "postgres"])
def test_no_other_program(known: Callable, case: str) -> None:
    assert known(case)[1]["neighbour"].status == "none"


@pytest.mark.parametrize("case", ["neighbour-none", "neighbour-buffered", "delay-xfs", "postgres"])
def test_no_direct_writes(known: Callable, case: str) -> None:
    assert known(case)[1]["direct-io"].status == "none"


def test_direct_writes_that_a_sync_of_another_file_flushes(known: Callable) -> None:
    """The file of a direct write is not recorded, so the finding does not say that its own was not synced."""
    case, advice = known("direct-no-sync")
    assert len(made(case, "direct write")) == 12
    assert advice["direct-io"].status == "none"


def test_a_neighbour_whose_page_cache_a_thread_of_the_kernel_writes(known: Callable) -> None:
    case, advice = known("neighbour-buffered")
    (row,) = advice["neighbour"].shown
    assert row["comm"] == "neighbour"
    # It was there for six of the syncs, and its dirty pages for a little longer.
    slow = sorted(case.tables["sync"], key=lambda row: -row["dur_ns"])
    assert 0.25 * sum(row["dur_ns"] for row in slow[:10]) < row["cost_ns"]
    for name in ("neighbour-buffered", "neighbour-none", "neighbour-direct", "postgres"):
        assert known(name)[1]["background"].status == "none"


def test_files_that_can_be_rebuilt(known: Callable) -> None:
    case, advice = known("rebuildable")
    assert advice["rebuildable"].syncs == len(made(case, "fsync")) == 6
    assert advice["rebuildable"].cost_ns == sum(row["dur_ns"] for row in case.tables["sync"])
    assert known("small-files")[1]["rebuildable"].status == "none"


def test_a_commit_of_a_neighbour(known: Callable) -> None:
    case, advice = known("forced-syncfs")
    one = advice["commit"]
    forcing = made(case, "syncfs")
    for row in one.shown:
        # The fdatasync waited for a commit that a syncfs of the other thread had begun.
        assert any(
            call["start_ns"] <= row["from_ns"] and row["until_ns"] <= call["end_ns"] + 4_000_000
            for call in forcing
        )
    assert one.syncs
    assert known("delay-ext4")[1]["commit"].status == "none"
    # Here it is another sync of the same process that committed: no wall time is lost to it.
    shared = known("four-files")[1]["commit"]
    assert shared.syncs > 0
    assert shared.cost_ns == 0 < shared.sum_ns


def test_reads_are_never_checked(known: Callable) -> None:
    assert known("cold-unaligned")[1]["reads"].status == "not checked"
    assert "no route" in load("reads").not_checked


# What fires in the recordings with a known truth: all of it, and nothing else.
FIRES = {
    "commit-timer": {"fdatasync"},
    "empty": {"empty"},
    "error": {"empty"},
    # A false alarm, as tests/alarms.tsv says.
    "fast-commit": {"fdatasync"},
    "forced-syncfs": {"commit"},
    "four-files": {"commit"},
    "fsync-in-place": {"fdatasync"},
    "group-4": {"commit"},
    "group-staggered": {"commit"},
    "neighbour-buffered": {"neighbour"},
    "neighbour-direct": {"direct-io", "neighbour"},
    "neighbour-patched": {"direct-io", "neighbour"},
    "postgres": {"empty", "rename-file"},
    "postgres-neighbour": {"empty", "rename-file", "direct-io", "neighbour"},
    "queue-1": {"direct-io", "neighbour"},
    "queue-4": {"direct-io", "neighbour"},
    "queue-31": {"direct-io"},
    "rebuildable": {"rebuildable"},
    "rename-then-file": {"rename-file"},
    "rename-then-nothing": {"rename-folder"},
    "small-files": {"small-files"},
    "write-journal-handle": {"commit"},
}


@pytest.mark.parametrize("case", known_truth.names())
def test_nothing_else_fires(known: Callable, case: str) -> None:
    advice = known(case)[1]
    assert {name for name, one in advice.items() if one.syncs} == FIRES.get(case, set())


# --- other recordings, and both engines ----------------------------------------------------------

OTHERS = {
    "thesis/small4.log": {"small-files"},
    "thesis/empty.log": {"empty"},
    "thesis/parallel4.log": set(),
    "thesis/rename.log": set(),
    "thesis/sqlite_wal_full.log": {"empty"},
    "strace/small4.log": {"small-files"},
    "strace/sqlite_wal_full.log": set(),
    "dynamic-events/xfs.txt.gz": set(),
    "dynamic-events/ext4.dat.gz": {"small-files", "commit"},
    "tracecmd/small4.dat": {"small-files"},
    "blktrace/small4.blktrace.0": set(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_recording_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    _core.convert([str(DATA / name)], f"{tmp_path}/tables/")
    advice = check(tmp_path / "tables", tables(tmp_path / "tables"))
    assert {name for name, one in advice.items() if one.syncs} == OTHERS[name]


@pytest.mark.parametrize(
    "case",
    ["empty", "fsync-in-place", "rename-then-nothing", "forced-syncfs", "neighbour-direct"],
)
def test_both_engines_give_equal_advice(case: str, tmp_path: Path) -> None:
    run = known_truth.unpacked(case, tmp_path)
    Reading().convert([str(run)], f"{tmp_path}/tables/")
    Reading().convert([str(run)], f"{tmp_path}/out.pftrace")
    sides = []
    for path, engine in ((tmp_path / "tables", "duckdb"), (tmp_path / "out.pftrace", "embedded")):
        with opened(str(path), Reading(), engine=engine) as opened_engine:
            sides.append(
                (advise(opened_engine), [rows_of(opened_engine, name) for name in CHECKED])
            )
    assert sides[0] == sides[1]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Both]]:
    with opened_runs(tmp_path_factory.mktemp("runs")) as get:
        yield get


@pytest.mark.parametrize("run", RUNS)
def test_made_up_runs_give_equal_advice(both: Callable, run: str) -> None:
    first, second = ((advise(engine), evidence_of(engine)) for engine in both(run).engines())
    assert first == second


def evidence_of(engine: Any) -> list[list[Row]]:
    return [rows_of(engine, name) for name in CHECKED]


# --- the command ---------------------------------------------------------------------------------


def test_every_finding_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "advice.md").read_text()
    columns = [column.name for column in load("empty").report.columns]
    for name in names():
        finding = load(name)
        assert f"\n### {name}\n" in page
        if finding.report is None:
            continue
        assert [column.name for column in finding.report.columns] == columns
        assert finding.seen
        assert finding.cost
        assert finding.instead
        assert finding.needs
        assert finding.not_checked
    files = {path.stem for path in (catalogue.catalogue.sql_root() / "advice").glob("*.sql")}
    assert files == set(CHECKED)


def test_formats(tmp_path: Path) -> None:
    log = DATA / "thesis" / "empty.log"
    text = ok("advise", log)
    assert "50 of 51 syncs found nothing to write" in text
    assert "Not checked:\n  fdatasync: it needs" in text
    document = json.loads(ok("advise", log, "--format", "json"))
    (first,) = [one for one in document["findings"] if one["status"] == "found"]
    assert (first["finding"], first["syncs"], len(first["evidence"])) == ("empty", 50, 3)
    rows = list(csv.DictReader(io.StringIO(ok("advise", log, log, "--format", "csv"))))
    assert [row["finding"] for row in rows[: len(rows) // 2]] == [
        one["finding"] for one in document["findings"]
    ]
    assert len(rows) == 2 * len(names())
    assert int(rows[0]["cost_ns"]) == first["cost_ns"]
    everything = list(
        csv.DictReader(io.StringIO(ok("advise", log, "--evidence", "empty", "--format", "csv")))
    )
    assert len(everything) == 50
    assert int(everything[0]["sync_id"]) == first["sync_id"]
    assert len(ok("advise", "--list").splitlines()) == len(names())


def test_what_cannot_be_done_is_an_error(tmp_path: Path) -> None:
    log = DATA / "thesis" / "empty.log"
    assert "Did you mean empty?" in fails(2, "advise", log, "--evidence", "emtpy")
    assert "no route records" in fails(2, "advise", log, "--evidence", "reads")
    assert "which the route" in fails(2, "advise", log, "--evidence", "commit")
    assert "one input" in fails(2, "advise", log, log, "--evidence", "empty")
    bad = tmp_path / "bad.log"
    bad.write_text("no log\n")
    assert str(bad) in fails(3, "advise", bad)
    with pytest.raises(UnknownFinding):
        load("nothing")


def test_a_bad_input_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.log"
    bad.write_text("no log\n")
    from tests.test_commands import run

    done = run("advise", bad, DATA / "thesis" / "empty.log")
    assert done.returncode == 3
    assert "50 of 51" in done.stdout


def test_the_page_says_how_often_the_findings_are_true(tmp_path: Path) -> None:
    """`python -m tests.alarms` writes the table. A finding in a new recording needs a line in alarms.tsv."""
    assert alarms.table(tmp_path) in alarms.PAGE.read_text()
