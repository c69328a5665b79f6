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
from syncline.advice import Advice, Place, UnknownFinding, advise, catalogue, evidence, load, names
from syncline.advice.catalogue import NEIGHBOURS
from syncline.advice.needs import NAMED
from syncline.inputs import Reading, opened
from syncline.report import run_query, run_report

from tests import known_truth
from tests.coretools import ROOT, tables
from tests.known_truth import Case
from tests.reference import advice as reference
from tests.test_commands import fails, ok
from tests.test_sql import RUNS, Both, opened_runs
from tools import alarms

Row = dict[str, Any]
DATA = ROOT / "tests" / "data"


def found(engine: Any) -> dict[str, Advice]:
    return {one.finding.name: one for one in advise(engine)}


def rows_of(engine: Any, name: str) -> list[Row]:
    table = evidence(engine, load(name))
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def length_of_call(requests: list[Row]) -> dict[int, int]:
    """The length of each call by its sync_id: from its first start to its last end."""
    spans: dict[int, tuple[int, int]] = {}
    for row in requests:
        since, until = row["ts_ns"], row["ts_ns"] + row["dur_ns"]
        first, last = spans.get(row["call_sync_id"], (since, until))
        spans[row["call_sync_id"]] = min(first, since), max(last, until)
    return {call: until - since for call, (since, until) in spans.items()}


def neighbours_of(engine: Any, advice: dict[str, Advice]) -> list[Row]:
    """The rows of the report `neighbours`, which the findings have computed. Where they say something of it, it is run once more."""
    statuses = {advice[name].status for name in ("neighbour", "unrecorded")}
    if "found" in statuses:
        return run_report(engine, "neighbours").as_dicts()
    if statuses == {"not checked"}:
        return []
    return run_query(engine, f"SELECT * FROM {NEIGHBOURS}").as_dicts()


def check(
    folder: Path, of_run: dict[str, list[Row]]
) -> tuple[dict[str, Advice], dict[str, list[Row]]]:
    """Compares the findings on a folder of tables with the reference. Returns them and their evidence by name."""
    with opened(str(folder), Reading()) as engine:
        advice = found(engine)
        # Evidence of what is not checked is shown nowhere.
        rows = {
            name: [] if advice[name].status == "not checked" else rows_of(engine, name)
            for name in names()
        }
        neighbours = neighbours_of(engine, advice)
    # A call may have several requests.
    timed = [row for row in reference.evident(of_run) if row["dur_ns"] is not None]
    of_syncs = len({row["call_sync_id"] for row in timed})
    for name, one in advice.items():
        if one.status == "not checked":
            continue
        assert one.of_syncs == of_syncs
        assert (one.status == "found") == bool(one.syncs)
        parts = reference.FINDINGS[name](of_run) if name in reference.FINDINGS else None
        if parts is not None:
            given = [(row["sync_id"], row["from_ns"], row["until_ns"]) for row in rows[name]]
            assert sorted(given) == sorted(parts), name
        if parts and parts[0][1] is not None and reference.cost(of_run, parts)[0] == 0:
            # Evidence that costs nothing is no finding.
            assert one.status == "none"
            continue
        assert (one.status == "found") == bool(rows[name])
        assert list(one.shown) == rows[name][:3]
        if parts is None:
            continue
        assert one.syncs == len({sync_id for sync_id, _, _ in parts})
        if any(since is not None for _, since, _ in parts):
            saved, wall = reference.cost(of_run, parts)
            assert one.cost_ns == saved, name
            assert one.share == pytest.approx(saved / wall)
            assert one.sum_ns == sum(until - since for _, since, until in parts if until)
        else:
            assert (one.cost_ns, one.share) == (None, None)
    direct = reference.direct_writes(of_run)
    notes = []
    for key, (writes, size, caches) in direct.items():
        cache = "".join(f"; cache of the device: {one}" for one in caches if len(caches) == 1 and one)  # fmt: skip
        notes.append(f"process {key}; writes: {writes}; bytes: {size}{cache}")
    if advice["direct-io"].status != "not checked":
        assert sorted(row["note"] for row in rows["direct-io"]) == sorted(notes)
    if advice["reads"].status != "not checked":
        shown = [(row["path"], row["cost_ns"], row["note"]) for row in rows["reads"]]
        assert sorted(shown) == sorted(reference.page_reads(of_run))
        one = advice["reads"]
        assert (one.cost_ns, one.share) == (sum(cost for _, cost, _ in shown) or None, None)
    if advice["background"].status != "not checked":
        shown = [(row["comm"], row["cost_ns"]) for row in rows["background"]]
        assert sorted(shown) == sorted(reference.background(of_run))
    if advice["neighbour"].status != "not checked":
        # The figures are those of the report.
        costs = [
            (row["process"], row["cost_ns"])
            for row in neighbours
            if row["kind"] in ("syncs", "writes", "reads", "discards")
            and row["syncs"] >= 3
            and row["share"] >= 0.05
        ]
        assert [(row["comm"], row["cost_ns"]) for row in rows["neighbour"]] == costs
    if advice["unrecorded"].status != "not checked":
        costs = [
            (row["sync_id"], row["cost_ns"])
            for row in neighbours
            if row["kind"] == "unrecorded" and row["syncs"] >= 3 and row["share"] >= 0.25
        ]
        assert [(row["sync_id"], row["cost_ns"]) for row in rows["unrecorded"]] == costs
        groups = {row["sync_id"]: row["cgroup"] for row in of_run["sync"]}
        for row in rows["unrecorded"]:
            group = groups[row["sync_id"]]
            said = row["note"].endswith(f" % of their time; control group {group}")
            assert said == (group not in (None, "/"))
    # A sum over syncs is a part of the lengths of all of them.
    for name in ("background", "neighbour", "unrecorded", "commit"):
        one = advice[name]
        assert one.wall_ns is None
        if one.status == "found":
            assert one.time_ns == sum(length_of_call(timed).values())
            assert one.share == pytest.approx((one.cost_ns or 0) / one.time_ns)
    if advice["commit"].status != "not checked":
        commits = reference.commit(of_run)
        assert sorted((row["sync_id"], row["cost_ns"]) for row in rows["commit"]) == sorted(commits)
        assert (advice["commit"].cost_ns or 0) == sum(cost for _, cost in commits)
    return advice, rows


# --- recordings with a known truth ---------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `known` puts what it converts: the tables of a case in CASE.tables."""
    return tmp_path_factory.mktemp("advice")


@pytest.fixture(scope="module")
def known(folder: Path) -> Callable[[str], tuple[Case, dict]]:
    """Converts a case once, and compares its findings with the reference."""
    done: dict[str, tuple[Case, dict[str, Advice]]] = {}

    def one(case: str) -> tuple[Case, dict[str, Advice]]:
        if case not in done:
            converted = known_truth.converted(case, folder)
            done[case] = converted, check(folder / f"{case}.tables", converted.tables)[0]
        return done[case]

    return one


def made(case: Case, *ops: str) -> list[Row]:
    return [call for call in case.truth["calls"] if call["op"] in ops]


def time_of(calls: list[Row]) -> int:
    return sum(call["end_ns"] - call["start_ns"] for call in calls)


def test_syncs_of_what_is_not_dirty_are_needless(known: Callable) -> None:
    case, advice = known("empty")
    calls = [call for call in made(case, "fsync") if call["dirty"] == 0]
    assert len(calls) == 12
    assert advice["needless"].syncs == len(calls)
    # The workload read the clock before and after each call.
    assert 0.5 * time_of(calls) < advice["needless"].cost_ns <= time_of(calls)
    assert known("fsync-in-place")[1]["needless"].status == "none"
    # It does not show that bios were recorded.
    assert known("empty-only")[1]["needless"].status == "not checked"


def test_an_empty_sync_that_made_a_rename_durable_is_needed(known: Callable) -> None:
    for case in ("rename-then-file", "rename-then-folder"):
        assert sum(row["bios"] == 0 for row in known(case)[0].tables["sync"]) == 5
        assert known(case)[1]["needless"].status == "none"


def test_fdatasync_would_do_for_overwrites_in_place(known: Callable) -> None:
    # It does, but each block is behind those that the recording shows, and an append in allocated blocks gives the same events.
    assert known("fsync-in-place")[1]["fdatasync"].status == "none"
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
    assert (
        "has no event of a sync or a sync call, so whether there were syncs is not known"
        in " ".join(said.split())
    )
    assert "no sync request" not in said


def test_evidence_says_nothing_of_bytes_that_are_not_recorded() -> None:
    """strace records no bytes, so the note has only what is known of the file."""
    data = Path(__file__).parent / "data"
    text = ok("advise", data / "strace" / "small4.log")
    assert "None" not in text
    assert "small-files: it needs" in " ".join(text.split())
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
    cache = converted.truth["device"]["write_cache"]
    assert row["note"] == (
        f"process {neighbour['pid']}; writes: {writes}; bytes: {bytes_}; cache of the device: {cache}"
    )


@pytest.mark.parametrize(
    "case", ["neighbour-direct", "neighbour-patched", "postgres-neighbour", "queue-1"]
)
def test_a_neighbour_on_the_same_device(known: Callable, case: str) -> None:
    converted, advice = known(case)
    (row,) = advice["neighbour"].shown
    truth = converted.truth["neighbour"]
    assert row["comm"] == truth["comm"]
    # It does not delay a sync of others for longer than its own writes took meanwhile.
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
            for sync in converted.tables["sync"]
            if None not in (sync["start_ns"], sync["dur_ns"]) and sync["comm"] != truth["comm"]
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
    case, advice = known("four-files")
    one = advice["commit"]
    tids = {row["sync_id"]: row["tid"] for row in case.tables["sync"]}
    assert len(set(tids.values())) == 4
    for row in one.shown:
        owner = int(row["note"].split(" of sync ")[1].split(" ")[0])
        assert tids[owner] != tids[row["sync_id"]]
    earlier = sum(row["dur_ns"] for row in case.tables["phase"] if row["phase"] == "earlier commit")
    assert 0 < one.cost_ns <= earlier
    assert known("delay-ext4")[1]["commit"].status == "none"
    # Each syncfs starts a commit itself before it waits for the next one, and nothing says whose the first one is.
    for other in ("forced-syncfs", "write-journal-handle"):
        assert known(other)[1]["commit"].status == "none"


def test_reads_are_not_checked_where_they_are_not_recorded(known: Callable) -> None:
    """This recording is older than the events of reads."""
    reads = known("cold-unaligned")[1]["reads"]
    assert reads.status == "not checked"
    assert (
        reads.reason
        == "it needs the reads of the thread before its write, which the route dynamic-events records"
    )


# What fires in the recordings with a known truth: all of it, and nothing else.
FIRES = {
    # Its driver takes only six of seven commands at once.
    "busy": {"unrecorded"},
    "cold-unaligned": {"cpu"},
    # dm-delay holds the bios back.
    "delay-patched": {"unrecorded"},
    "stacked": {"unrecorded"},
    "empty": {"needless"},
    "four-files": {"commit"},
    "group-4": {"commit"},
    "group-staggered": {"commit"},
    "neighbour-none": {"append"},
    "neighbour-buffered": {"append", "neighbour"},
    "neighbour-direct": {"append", "direct-io", "neighbour"},
    "neighbour-patched": {"append", "direct-io", "neighbour"},
    "postgres": {"needless", "rename-file"},
    "postgres-neighbour": {"cpu", "needless", "rename-file", "direct-io", "neighbour"},
    "queue-1": {"direct-io", "neighbour"},
    "queue-4": {"direct-io", "neighbour"},
    "queue-31": {"direct-io"},
    "rebuildable": {"rebuildable"},
    "rename-then-file": {"rename-file"},
    "rename-then-nothing": {"rename-folder"},
    "small-files": {"small-files"},
}


@pytest.mark.parametrize("case", known_truth.names())
def test_nothing_else_fires(known: Callable, case: str) -> None:
    advice = known(case)[1]
    assert {name for name, one in advice.items() if one.syncs} == FIRES.get(case, set())


# --- logs that are written by hand ---------------------------------------------------------------

HEAD = """\
# tracer: nop
#
#           TASK-PID  TGID  CPU#  |||||  TIMESTAMP  FUNCTION
"""
DEV = 254 << 20 | 16
# Flags of a bio: WS; with PREFLUSH and FUA; direct with FUA; direct.
WRITE, LAST, FUA, DIRECT = 2049, 395265, 198657, 2049 | 1 << 15


class Log:
    """Events of probes, in order. Times are in us."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.bios = 0

    def add(self, at: int, task: str, text: str) -> None:
        comm, tid = task.rsplit("-", 1)
        line = f"{comm:>16}-{tid} ( {tid}) [000] ..... {at / 1e6:.6f}: {text}"
        self.lines.append((at, line))

    def bio(self, at: int, task: str, flags: int, end: str, *, ino: int = 0, index: int = 0, status: int = 0, length: int = 100) -> None:  # fmt: skip
        self.bios += 1
        address = 0x1000 + 0x100 * self.bios
        if ino:
            self.add(at, task, f"bio_add_folio: (bio_add_folio+0x4/0x3b) bio={address:#x} ino={ino} index={index} len=4096 off=0")  # fmt: skip
        sector = 8 * (100 * ino + index) if ino else 900_000 + 8 * self.bios
        self.add(at, task, f"bio: (submit_bio+0x4/0xa6) bio={address:#x} dev={DEV} sector={sector} bytes=4096 opf={flags} end_io={end}+0x0/0x131")  # fmt: skip
        self.add(at + length, "<idle>-0", f"bio_end: (bio_endio+0x4/0x20) bio={address:#x} status={status} remaining=1")  # fmt: skip

    def sync(self, at: int, names: str, ino: int, indexes: tuple[int, ...] = (), *, task: str = "app-10", op: str = "fsync", commit: int = 0, ret: int = 0, status: int = 0, length: int = 100, called: bool = True) -> None:  # fmt: skip
        """A sync of 3000 us that writes blocks. `commit`: a transaction with one block of metadata. A thread of the kernel makes no call."""
        if called:
            self.add(at, task, f"sys_{op}(fd: 3)")
        named = " ".join(f'n{n}="{name}"' for n, name in enumerate(reversed(names.split("/"))))
        named += f' n{len(names.split("/"))}="/"'
        self.add(at + 3, task, f'fsync_enter: (ext4_sync_file+0x4/0x219) dev={DEV} ino={ino} gen=1 datasync={int(op == "fdatasync")} fs="ext4" {named}')  # fmt: skip
        for number, index in enumerate(indexes):
            self.bio(at + 10 + number, task, WRITE, "ext4_end_bio", ino=ino, index=index, status=status, length=length)  # fmt: skip
        if commit:
            self.add(at + 500, task, f"wait_commit: (jbd2_log_wait_commit+0x4/0x100) dev={DEV} tid={commit}")  # fmt: skip
            journal = "jbd2/vdb-8-99"
            self.add(at + 600, journal, f"jbd2_start_commit: dev 254,16 transaction {commit} sync 0")  # fmt: skip
            for number in range(3):
                flags = LAST if number == 2 else WRITE
                self.bio(at + 610 + 10 * number, journal, flags, "journal_end_buffer_io_sync")
            self.add(at + 2800, journal, f"jbd2_end_commit: dev 254,16 transaction {commit} sync 0 head 1")  # fmt: skip
            self.add(at + 2890, task, "wait_commit_end: (x <- jbd2_log_wait_commit) ret=0")
        self.add(at + 2990, task, f"fsync_exit: (ext4_file_fsync+0x4/0x10 <- ext4_sync_file) ino={ino} ret={ret}")  # fmt: skip
        if called:
            self.add(at + 3000, task, f"sys_{op} -> {ret & 0xFFFFFFFFFFFFFFFF:#x}")

    def switches(self, at: int, task: str, *, blocked_us: int, ready_us: int) -> None:
        """The thread leaves its CPU, is woken, and runs again."""
        comm, tid = task.rsplit("-", 1)
        idle, thread = "swapper/0", f"comm={comm} pid={tid} prio=120"
        self.add(at, task, f"sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state=D ==> next_comm={idle} next_pid=0 next_prio=120")  # fmt: skip
        self.add(at + blocked_us, "<idle>-0", f"sched_waking: {thread} target_cpu=000")
        self.add(at + blocked_us + ready_us, "<idle>-0", f"sched_switch: prev_comm={idle} prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={comm} next_pid={tid} next_prio=120")  # fmt: skip

    def text(self) -> str:
        ordered = sorted(self.lines, key=lambda line: line[0])
        return HEAD + "\n".join(line for _, line in ordered) + "\n"


def advice_of(tmp_path: Path, log: Log | str) -> tuple[dict[str, Advice], dict[str, list[Row]]]:
    """The findings of a log, which both engines and the reference agree on, and their evidence."""
    text, name = (log.text(), "x.txt") if isinstance(log, Log) else (log, "x.log")
    (tmp_path / name).write_text(text)
    _core.convert([str(tmp_path / name)], f"{tmp_path}/tables/")
    _core.convert([str(tmp_path / name)], f"{tmp_path}/out.pftrace")
    advice, rows = check(tmp_path / "tables", tables(tmp_path / "tables"))
    with opened(str(tmp_path / "out.pftrace"), Reading(), engine="embedded") as engine:
        # Equal advice says that there is none for the others: `advise` has run their SQL, too.
        assert found(engine) == advice
        for name, of_tables in rows.items():
            if of_tables:
                assert rows_of(engine, name) == of_tables, name
    return advice, rows


def test_only_overwrites_before_the_last_known_block_need_no_fsync(tmp_path: Path) -> None:
    log = Log()
    # Ten blocks; three of them again; the last one again, and appends, in which the size may be new.
    blocks: list[tuple[int, ...]] = [tuple(range(10)), (3,), (5,), (7,), (9,), (10,), (11,)]
    for number, indexes in enumerate(blocks):
        log.sync(1_000_000 + 10_000 * number, "d/a", 5, indexes, commit=7 + number)
    advice, rows = advice_of(tmp_path, log)
    assert [row["sync_id"] for row in sorted(rows["fdatasync"], key=lambda row: row["sync_id"])] == [2, 3, 4]  # fmt: skip
    # From the start of the wait to its end.
    assert advice["fdatasync"].cost_ns == 3 * 2_390_000


@pytest.mark.parametrize(
    ("op", "overwrites", "syncs"),
    [("fdatasync", 0, 10), ("fdatasync", 5, 5), ("fdatasync", 6, 0), ("fsync", 0, 0)],
)
def test_appends_that_each_wait_for_a_commit(
    op: str, overwrites: int, syncs: int, tmp_path: Path
) -> None:
    """Half of the syncs may do without: a record that ends in a block of the one before. An fsync commits the times of the file, too."""
    log = Log()
    for number in range(10):
        commit = 0 if number < overwrites else 7 + number
        log.sync(1_000_000 + 10_000 * number, "d/wal", 5, (number,), op=op, commit=commit)
    advice, rows = advice_of(tmp_path, log)
    assert len(rows["append"]) == advice["append"].syncs == syncs
    # From the start of the wait, at 500 us, to the end of the commit: switches are not recorded, so the rest has no name.
    assert advice["append"].cost_ns == (syncs * 2_300_000 or None)


@pytest.mark.parametrize(("ready_us", "syncs"), [(700, 10), (500, 0)])
def test_threads_that_wait_for_a_cpu_in_a_fifth_of_their_time(
    ready_us: int, syncs: int, tmp_path: Path
) -> None:
    """The thread is woken, and a CPU runs it `ready_us` later, of the 2990 us of a sync."""
    log = Log()
    for number in range(10):
        at = 1_000_000 + 10_000 * number
        log.sync(at, "d/a", 5, (number,))
        log.switches(at + 300, "app-10", blocked_us=1000, ready_us=ready_us)
    advice, rows = advice_of(tmp_path, log)
    assert len(rows["cpu"]) == advice["cpu"].syncs == syncs
    assert advice["cpu"].cost_ns == (syncs * ready_us * 1000 or None)


def test_a_commit_that_another_thread_began_is_found_without_its_steps(tmp_path: Path) -> None:
    """The second thread waits 1000 us for the commit of the first. Both are in a sync meanwhile."""
    log = Log()
    for number in range(3):
        at = 1_000_000 + 20_000 * number
        log.sync(at, "d/a", 5, (number,), commit=7 + 2 * number)
        log.sync(at + 1300, "d/b", 6, (number,), task="other-11", commit=8 + 2 * number)
        # Its own commit begins when that of the first has ended.
        for n, (when, line) in enumerate(log.lines):
            if f"start_commit: dev 254,16 transaction {8 + 2 * number} " in line:
                log.lines[n] = (at + 2820, line.replace(f"{when / 1e6:.6f}", f"{(at + 2820) / 1e6:.6f}"))  # fmt: skip
    advice, rows = advice_of(tmp_path, log)
    # From its wait at 1800 to the end of the commit at 2800.
    assert [row["cost_ns"] for row in rows["commit"]] == [1_000_000] * 3
    assert advice["commit"].status == "found"
    assert advice["commit"].cost_ns == 3_000_000
    assert all("(app, .../d/a)" in row["note"] or "(app, /d/a)" in row["note"] for row in rows["commit"])  # fmt: skip


@pytest.mark.parametrize(("flags", "status"), [(FUA, "none"), (DIRECT, "found")])
def test_direct_writes_with_fua_are_durable(flags: int, status: str, tmp_path: Path) -> None:
    log = Log()
    log.sync(1_000_000, "d/a", 5, (0,))
    for number in range(5):
        log.bio(1_010_000 + 1000 * number, "dd-20", flags, "iomap_dio_bio_end_io")
        # It writes zeros to tables of inodes of a new file system.
        log.bio(1_010_500 + 1000 * number, "ext4lazyinit-30", WRITE, "bio_complete_zero")
    advice, rows = advice_of(tmp_path, log)
    assert advice["direct-io"].status == status
    assert [row["comm"] for row in rows["direct-io"]] == (["dd"] if status == "found" else [])


@pytest.mark.parametrize(("comm", "status"), [("a/b-writer", "found"), ("jbd2/vda1-8", "none")])
def test_a_slash_in_a_name_does_not_make_a_thread_of_the_kernel(
    comm: str, status: str, tmp_path: Path
) -> None:
    log = Log()
    log.sync(1_000_000, "d/a", 5, (0,))
    log.bio(1_010_000, f"{comm}-30", DIRECT, "iomap_dio_bio_end_io")
    assert advice_of(tmp_path, log)[0]["direct-io"].status == status


@pytest.mark.parametrize(
    ("name", "files"),
    [
        # One folder, with a sync of the folder after each file; a folder for each file.
        ("d/f{}", 10),
        ("objects/{}/abc", 10),
        # One file that is replaced again and again.
        ("d/settings.tmp{}", 0),
    ],
)
def test_small_files_in_one_folder_or_several(name: str, files: int, tmp_path: Path) -> None:
    log = Log()
    for number in range(10):
        at = 1_000_000 + 20_000 * number
        log.sync(at, name.format(number), 100 + number, (0,), commit=7 + 2 * number)
        log.sync(at + 10_000, name.format(number).rsplit("/", 1)[0], 50, commit=8 + 2 * number)
    advice, rows = advice_of(tmp_path, log)
    assert len(rows["small-files"]) == files
    assert advice["small-files"].cost_ns == (files * 2_990_000 or None)


@pytest.mark.parametrize(
    ("commands", "gap_us", "files"),
    [
        (8, 20_000, 8),
        (7, 20_000, 0),
        # A sync lasts 2990 us: they overlap; a second passes until the next one, and 10 us more; less than that.
        (8, 2_000, 0),
        (8, 1_003_000, 0),
        (8, 1_002_000, 8),
    ],
)
def test_small_files_of_a_command_each(
    commands: int, gap_us: int, files: int, tmp_path: Path
) -> None:
    """As of a script that runs `dd conv=fsync` for each file. A command of another name does not end the row."""
    log = Log()
    for number in range(commands):
        at = 1_000_000 + gap_us * number
        log.sync(at, f"d/f{number}", 100 + number, (0,), task=f"dd-{200 + number}", commit=7 + number)  # fmt: skip
    log.sync(1_000_000 + 2 * gap_us + 1_000, "e/log", 90, (0,), task="other-300")
    advice, rows = advice_of(tmp_path, log)
    assert len(rows["small-files"]) == files
    assert {row["comm"] for row in rows["small-files"]} <= {"dd"}
    assert (advice["small-files"].cost_ns or 0) == files * 2_990_000


def test_files_are_not_small_because_their_size_is_not_recorded(tmp_path: Path) -> None:
    log = "".join(
        f'100 17000000{n:02}.0 write(3</d/f{n}.iso>, "x"..., 1073741824) = 1073741824 <0.5>\n'
        f"100 17000000{n:02}.6 fsync(3</d/f{n}.iso>) = 0 <0.003000>\n"
        for n in range(10)
    )
    advice, _ = advice_of(tmp_path, log)
    assert advice["small-files"].status == "not checked"
    assert "bytes" in advice["small-files"].reason


@pytest.mark.parametrize(("call", "status"), [("sync()", "none"), ("fsync(3)", "not checked")])
def test_a_sync_of_all_file_systems_lacks_no_path(call: str, status: str, tmp_path: Path) -> None:
    """It has no file, while strace without -y does not say which file a descriptor is."""
    log = "".join(f"100 17000000{n}.0 {call} = 0 <0.003000>\n" for n in range(10, 20))
    assert advice_of(tmp_path, log)[0]["rebuildable"].status == status


def test_a_folder_and_a_file_with_an_error_need_their_empty_syncs(tmp_path: Path) -> None:
    """SQLite syncs the folder after it has made a journal. After an error, a sync that finds nothing dirty has lost data."""
    log = Log()
    # It shows that waits for commits are recorded.
    log.sync(900_000, "d/c", 7, (0,), commit=7)
    for number in range(4):
        at = 1_000_000 + 20_000 * number
        # The first sync of b fails, and the kernel drops its pages.
        failed = -5 if number == 0 else 0
        log.sync(at, "d/a", 5, (0,) if number == 0 else ())
        log.sync(at + 4000, "d/b", 6, (0,) if number == 0 else (), ret=failed, status=10 if failed else 0)  # fmt: skip
        log.sync(at + 8000, "d", 50)
    advice, rows = advice_of(tmp_path, log)
    assert {row["path"].rsplit("/", 1)[-1] for row in rows["needless"]} == {"a"}
    assert advice["needless"].syncs == 3


THESIS = """\
TIME PID COMM EVENT DATA
1000000000 10 app fsync
1000001000 10 app start id 1 start 0 end 9223372036854775807 datasync 0 path /mnt/a
1000002000 10 app bio_add_folio id 1 bio 0xff1 start 0 len 4096
1000003000 10 app bio_submit id 1 bio 0xff1
1003003000 0 swapper/0 bio_complete bio 0xff1
1008000000 10 app exit id 1 ret 0
1020000000 10 app fsync
1020001000 10 app start id 2 start 0 end 9223372036854775807 datasync 0 path /mnt/a
{end} 10 app exit id 2 ret 0
"""


@pytest.mark.parametrize(
    ("end", "syncs"),
    [
        # A commit has a bio, and the fastest took 3 ms. So a sync of 8 ms may have had one: after ftruncate(), for example.
        (1_028_000_000, 0),
        (1_020_300_000, 1),
    ],
)
def test_without_waits_an_empty_sync_is_one_too_short_for_a_commit(
    end: int, syncs: int, tmp_path: Path
) -> None:
    advice, _ = advice_of(tmp_path, THESIS.format(end=end))
    assert advice["needless"].syncs == syncs


@pytest.mark.parametrize(("name", "status"), [("db-journal", "none"), ("db.tmp", "found")])
def test_the_journal_of_sqlite_is_deleted_and_not_replaced(
    name: str, status: str, tmp_path: Path
) -> None:
    log = Log()
    for number in range(4):
        log.sync(1_000_000 + 10_000 * number, f"d/{name}", 20 + number % 2, (0,))
    assert advice_of(tmp_path, log)[0]["rename-folder"].status == status


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("/tmp/scratch", 1),
        ("/home/a/.cache/b", 1),
        ("/tmp/x/node_modules/y", 1),
        # A database in a temporary folder, what an editor keeps for after a crash, a name that anybody may give.
        ("/tmp/tmp.pgdata/base/1/1259", 0),
        ("/var/tmp/vi.recover/recover.abc", 0),
        ("/srv/photos/bob.o", 0),
        ("/var/lib/app/sessions.cache", 0),
    ],
)
def test_paths_that_say_that_a_file_can_be_rebuilt(path: str, count: int, tmp_path: Path) -> None:
    log = f"100 1700000000.000000 fsync(3<{path}>) = 0 <0.003000>\n"
    assert advice_of(tmp_path, log)[0]["rebuildable"].syncs == count


@pytest.mark.parametrize(
    ("programs", "syncs", "of_syncs", "wall_us"),
    [
        # The second sync of the program is empty, and both last 2990 us: those of the loop device are not counted.
        (2, 1, 2, 2 * 2990),
        # On a server of NFS, the kernel makes all syncs: they are what there is. From sync_start on, each lasts 2987 us.
        (0, 2, 3, 3 * 2987),
    ],
)
def test_only_syncs_of_programs_count_if_there_are_some(
    programs: int, syncs: int, of_syncs: int, wall_us: int, tmp_path: Path
) -> None:
    log = Log()
    for number in range(programs):
        log.sync(1_000_000 + 10_000 * number, "d/a", 5, (0,) if number == 0 else (), length=5000)
    for number in range(3):
        log.sync(2_000_000 + 10_000 * number, "image", 7, (0,) if number == 0 else (), task="loop0-60", called=False, length=5000)  # fmt: skip
    advice, rows = advice_of(tmp_path, log)
    assert (advice["needless"].syncs, advice["needless"].of_syncs) == (syncs, of_syncs)
    assert advice["needless"].wall_ns == wall_us * 1000
    assert {row["comm"] for row in rows["needless"]} == {"app" if programs else "loop0"}
    assert advice["rebuildable"].of_syncs == of_syncs


# --- other recordings, and both engines ----------------------------------------------------------

OTHERS = {
    "thesis/small4.log": {"small-files"},
    "thesis/empty.log": {"needless"},
    "thesis/parallel4.log": set(),
    "thesis/rename.log": set(),
    # Its empty syncs took longer than the fastest bio, so one may have waited for a commit.
    "thesis/sqlite_wal_full.log": set(),
    # No sizes.
    "strace/small4.log": set(),
    "strace/sqlite_wal_full.log": set(),
    "dynamic-events/xfs.txt.gz": set(),
    "dynamic-events/ext4.dat.gz": {"small-files", "commit", "cpu"},
    "tracecmd/small4.dat": {"small-files"},
    "blktrace/small4.blktrace.0": set(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_recording_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    _core.convert([str(DATA / name)], f"{tmp_path}/tables/")
    advice, _ = check(tmp_path / "tables", tables(tmp_path / "tables"))
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
                (advise(opened_engine), [rows_of(opened_engine, name) for name in names()])
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
    return [rows_of(engine, name) for name in names()]


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        # A row stands for all syncs that the neighbour delayed, so the number of rows says nothing.
        ("neighbour", "dd used the device while syncs of others waited."),
        ("rebuildable", "3 of 9 syncs are of files that can probably be rebuilt: dd (2), dd (1)."),
    ],
)
def test_places_have_the_number_of_their_syncs(name: str, seen: str) -> None:
    places = (Place("dd", None, 2), Place("dd", None, 1))
    said = Advice(load(name), "found", syncs=3, of_syncs=9, places=places).seen
    assert said == seen


@pytest.mark.parametrize(
    ("syncs", "of_syncs", "begin"),
    [
        (1, 151, "1 of 151 syncs is of a file that"),
        (2, 1151, "2 of 1,151 syncs are of a file that"),
        (1, 1, "1 of 1 sync is of a file that"),
    ],
)
def test_one_sync_is_singular(syncs: int, of_syncs: int, begin: str) -> None:
    said = Advice(load("rename-file"), "found", syncs=syncs, of_syncs=of_syncs).seen
    assert said.startswith(begin)


def test_every_finding_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "advice.md").read_text()
    columns = [column.name for column in load("needless").report.columns]
    for name in names():
        finding = load(name)
        assert f"\n### {name}\n" in page
        assert [column.name for column in finding.report.columns] == columns
        assert finding.seen
        assert finding.cost
        assert finding.instead
        assert finding.needs
        assert set(finding.needs) <= NAMED, name
        assert finding.not_checked.startswith("it needs ")
        assert ", which " in finding.not_checked
    files = {path.stem for path in (catalogue.catalogue.sql_root() / "findings").glob("*.sql")}
    assert files == set(names())


def test_formats(tmp_path: Path) -> None:
    log = DATA / "thesis" / "empty.log"
    text = ok("advise", log)
    # Four of the fifty took longer than the only bio, so they may have waited for a commit.
    assert "46 of 51 syncs found nothing to write" in text
    assert "Not checked:\n  fdatasync: it needs" in text
    document = json.loads(ok("advise", log, "--format", "json"))
    (first,) = [one for one in document["findings"] if one["status"] == "found"]
    assert (first["finding"], first["syncs"], len(first["evidence"])) == ("needless", 46, 3)
    rows = list(csv.DictReader(io.StringIO(ok("advise", log, log, "--format", "csv"))))
    assert [row["finding"] for row in rows[: len(rows) // 2]] == [
        one["finding"] for one in document["findings"]
    ]
    assert len(rows) == 2 * len(names())
    assert int(rows[0]["cost_ns"]) == first["cost_ns"]
    everything = list(
        csv.DictReader(io.StringIO(ok("advise", log, "--evidence", "needless", "--format", "csv")))
    )
    assert len(everything) == 46
    assert int(everything[0]["sync_id"]) == first["sync_id"]
    assert len(ok("advise", "--list").splitlines()) == len(names())


def test_what_cannot_be_done_is_an_error(tmp_path: Path) -> None:
    log = DATA / "thesis" / "empty.log"
    assert "Did you mean needless?" in fails(2, "advise", log, "--evidence", "needles")
    assert "which the route" in fails(2, "advise", log, "--evidence", "reads")
    assert "which the route" in fails(2, "advise", log, "--evidence", "commit")
    assert "one input" in fails(2, "advise", log, log, "--evidence", "needless")
    bad = tmp_path / "bad.log"
    bad.write_text("no log\n")
    assert str(bad) in fails(3, "advise", bad)
    with pytest.raises(UnknownFinding):
        load("nothing")


def test_fail_on_makes_a_finding_an_error(tmp_path: Path) -> None:
    from tests.test_commands import run

    log = DATA / "thesis" / "empty.log"
    for names_, code, said in (
        # Of 51 syncs of this log, 50 are empty. It has neither a journal nor reads.
        ("needless", 1, f"needless is found in {log}"),
        (" reads , needless", 1, f"needless is found in {log}"),
        ("small-files", 0, ""),
        ("small-files,commit,reads", 5, f"reads is not checked in {log}; commit is not"),
    ):
        done = run("advise", log, "--fail-on", names_)
        assert done.returncode == code, names_
        assert said in done.stderr
        assert "46 of 51" in done.stdout
    # A finding in one of several inputs is enough, and an input that cannot be read is no pass.
    assert (
        run("advise", DATA / "thesis" / "small4.log", log, "--fail-on", "needless").returncode == 1
    )
    bad = tmp_path / "bad.log"
    bad.write_text("no log\n")
    assert run("advise", log, bad, "--fail-on", "small-files").returncode == 3
    message = fails(2, "advise", log, "--fail-on", "needless,needles")
    assert "Did you mean needless?" in message
    assert all(name in message for name in names())
    assert "names no finding" in fails(2, "advise", log, "--fail-on", ",")
    assert "no effect" in fails(2, "advise", log, "--fail-on", "needless", "--evidence", "needless")


def test_a_bad_input_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.log"
    bad.write_text("no log\n")
    from tests.test_commands import run

    done = run("advise", bad, DATA / "thesis" / "empty.log")
    assert done.returncode == 3
    assert "46 of 51" in done.stdout


def test_findings_of_runs_that_are_opened_together_are_those_of_each(
    known: Callable, folder: Path
) -> None:
    """tools/alarms.py opens many runs at once, which takes a fifth of the time. `known` opens each alone, as the command does."""
    alone = {
        case: {name: one.status for name, one in known(case)[1].items()}
        for case in known_truth.names()
    }
    assert alarms.statuses({case: folder / f"{case}.tables" for case in alone}) == alone


def test_the_page_says_how_often_the_findings_are_true(
    known: Callable, folder: Path, tmp_path: Path
) -> None:
    """`python -m tools.alarms` writes the table. A finding in a new recording needs a line in alarms.tsv."""

    def converted(name: str) -> Path | None:
        group, _, case = name.partition("/")
        if group != "known-truth":
            return None
        known(case)
        return folder / f"{case}.tables"

    assert alarms.table(tmp_path, converted) in alarms.PAGE.read_text()
