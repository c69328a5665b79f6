"""Bios of threads that may be in a sync without a start in the log. The expected values are reasoned from the lines: whether such a bio is of the
sync is not known, so it is neither `sync` nor `background`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from syncline import _core
from syncline.cli.group import cli
from syncline.inputs import Reading, opened
from syncline.report.run import run_query

from tests import invariants
from tests.coretools import ROOT, Rows, core
from tests.test_commands import ok
from tests.test_own_trace import read_back

CALL = (0, "wl-7", "sys_enter_fsync: fd: 0x3")
START = (100, "wl-7", "ext4_sync_file_enter: dev 8,0 ino 13 parent 2 datasync 0")
WRITE = (200, "wl-7", "block_bio_queue: 8,0 WS 1000 + 8 [wl]")
FLUSH = (1300, "wl-7", "block_bio_queue: 8,0 FWS 0 + 0 [wl]")
BIOS = [
    WRITE,
    (210, "wl-7", "block_rq_issue: 8,0 WS 4096 () 1000 + 8 [wl]"),
    (1000, "<idle>-0", "block_rq_complete: 8,0 WS () 1000 + 8 [0]"),
    (1100, "jbd2/sda-8-5", "block_bio_queue: 8,0 WS 2000 + 8 [jbd2/sda-8]"),
    (1200, "<idle>-0", "block_rq_complete: 8,0 WS () 2000 + 8 [0]"),
    FLUSH,
    (1310, "kworker/0:1H-90", "block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/0:1H]"),
    (3000, "<idle>-0", "block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]"),
    (3002, "<idle>-0", "block_rq_complete: 8,0 WS () 0 + 0 [0]"),
]
END = (3100, "wl-7", "ext4_sync_file_exit: dev 8,0 ino 13 ret 0")
RETURN = (3110, "wl-7", "sys_exit_fsync: 0x0")
NEXT = (5000, "wl-7", "ext4_sync_file_enter: dev 8,0 ino 13 parent 2 datasync 0")
NEXT_END = (5900, "wl-7", "ext4_sync_file_exit: dev 8,0 ino 13 ret 0")

Line = tuple[int, str, str]


def log_of(*lines: Line) -> bytes:
    """Text of the ring buffer, with times in microseconds after 20 s."""
    texts = [
        f"{task:>24} [000] .....    {20 + us // 10**6}.{us % 10**6:06}: {event}\n"
        for us, task, event in sorted(lines, key=lambda line: line[0])
    ]
    return ("# tracer: nop\n#\n" + "".join(texts)).encode()


def converted(folder: Path, *lines: Line) -> dict[str, Rows]:
    rows = core(folder, log_of(*lines))
    invariants.check(rows)
    return rows


def origins(rows: dict[str, Rows]) -> list[tuple[int, str, str | None]]:
    """The thread, direction and origin of each bio."""
    return [(row["tid"], row["direction"], row["origin"]) for row in rows["bio"]]


def of_thread(origin: str | None) -> list[tuple[int, str, str | None]]:
    """The bios of `BIOS`. Those of the thread of the journal are of no sync in any case."""
    return [(5, "write", "background"), (7, "flush", origin), (7, "write", origin)]


WITH_CALL = [CALL, START, *BIOS, END, RETURN]


def test_a_whole_sync(tmp_path: Path) -> None:
    rows = converted(tmp_path, *WITH_CALL)
    assert sorted(origins(rows)) == of_thread("sync")
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["bios"], sync["incomplete"]) == (4096, 1, None)


@pytest.mark.parametrize(
    "lost",
    [
        # The end says that there was a sync, and the call since when at the earliest.
        [START],
        [START, RETURN],
        # Without the call, any bio before the end may be of the sync.
        [CALL, START],
        [CALL, START, RETURN],
        # The exit says it too. A file system without these tracepoints leaves no more.
        [CALL, START, END],
        [START, END],
        # Whether the call has returned is not known.
        [START, END, RETURN],
    ],
)
@pytest.mark.parametrize("has_begun", [False, True])
def test_without_the_start_it_is_not_known_whether_bios_are_of_the_sync(
    lost: list[Line], has_begun: bool, tmp_path: Path
) -> None:
    lines = [line for line in WITH_CALL if line not in lost]
    before: list[Line] = [(us - 10000, *rest) for us, *rest in (START, END)] if has_begun else []  # type: ignore[misc]
    rows = converted(tmp_path, *before, *lines)
    assert sorted(origins(rows), key=str) == sorted(of_thread(None), key=str)
    assert all(row["sync_id"] is row["path"] is row["ino"] is None for row in rows["bio"])
    for sync in rows["sync"][int(has_begun) :]:
        assert (sync["bytes"], sync["bios"], sync["writeback_ns"]) == (None, None, None)


@pytest.mark.parametrize("next_event", [NEXT, (5000, "wl-7", "sys_enter_fsync: fd: 0x3"), None])
def test_a_thread_that_makes_a_sync_later_was_in_none(
    next_event: Line | None, tmp_path: Path
) -> None:
    """A direct write between two syncs. The log ends, or the next sync begins: nothing says that the thread was in one."""
    later = [next_event] if next_event else []
    rows = converted(tmp_path, (-900, *START[1:]), (-800, *END[1:]), *BIOS, *later)
    assert sorted(origins(rows)) == of_thread("background")


def test_a_bio_that_completes_after_the_end(tmp_path: Path) -> None:
    """Its row is written when more is known than at the decision."""
    late = (8000, "<idle>-0", "block_rq_complete: 8,0 WS () 1000 + 8 [0]")
    rows = converted(tmp_path, WRITE, END, NEXT, NEXT_END, late)
    assert origins(rows) == [(7, "write", None)]
    # The sync that was in the log from start to end has no bio.
    assert [(row["bios"], row["incomplete"]) for row in rows["sync"]] == [
        (None, "start"),
        (0, None),
    ]


def test_bios_of_other_threads_are_background(tmp_path: Path) -> None:
    """A write of a thread that was in a sync after it, not before."""
    other = (150, "backup-9", "block_bio_queue: 8,0 WS 5000 + 8 [backup]")
    done = (900, "<idle>-0", "block_rq_complete: 8,0 WS () 5000 + 8 [0]")
    rows = converted(tmp_path, other, done, *BIOS, END)
    found = sorted(origins(rows), key=str)
    assert found == sorted([*of_thread(None), (9, "write", "background")], key=str)


def test_where_nothing_says_that_a_sync_has_ended(tmp_path: Path) -> None:
    """xfs has no event of the end. More than 10 ms after its bios are complete, the thread may have left the sync, or not."""

    def bio(us: int, sector: int) -> list[Line]:
        where = f"WS {sector} + 8 [wl]"
        return [
            (us, "wl-7", f"block_bio_queue: 8,0 {where}"),
            (us + 100, "<idle>-0", f"block_rq_complete: 8,0 WS () {sector} + 8 [0]"),
        ]

    start = "xfs_file_fsync: dev 8:0 ino 0xd"
    lines = [(0, "wl-7", start), *bio(10, 1000), (1000, "wl-7", start), *bio(1010, 2000)]
    rows = converted(tmp_path, *lines, *bio(20000, 3000))
    assert [
        (row["sector"], row["origin"]) for row in sorted(rows["bio"], key=lambda row: row["ts_ns"])
    ] == [
        (1000, "sync"),
        (2000, "sync"),
        (3000, None),
    ]


def test_a_trace_says_the_same(tmp_path: Path) -> None:
    log, trace = tmp_path / "log.txt", tmp_path / "t.pftrace"
    log.write_bytes(log_of(*(line for line in WITH_CALL if line != START)))
    _core.convert([str(log)], str(trace))
    assert sorted(origins(read_back(tmp_path, trace)), key=str) == sorted(of_thread(None), key=str)
    query = "SELECT tid, direction, origin, path FROM syncline_bio ORDER BY ts_ns"
    shown = CliRunner().invoke(cli, ["query", str(trace), query, "--format", "csv"])
    assert shown.stdout == "tid,direction,origin,path\n7,write,,\n5,write,background,\n7,flush,,\n"


def test_what_only_the_block_layer_reports_of_a_sync_with_an_id(tmp_path: Path) -> None:
    """The patch reports the bios of files. So another one is of another kind, unless the patch's events of it may be lost."""
    bio = "bio=0xff11000000896e40"
    start = "sync_start: id=4 start=0 end=9 datasync=0 dev=8,0 ino=13 op=fsync fs=ext4 path=/d/f"
    submit = f"bio_submit: id=4 {bio} dev=8,0 sector=5000 bytes=4096 opf=0x801 origin=sync"
    lines: list[Line] = [
        (0, "wl-7", start),
        (10, "wl-7", f"bio_add_folio: id=4 {bio} start=0 len=4096 dev=8,0 ino=13"),
        (20, "wl-7", submit),
        (30, "<idle>-0", f"bio_complete: {bio} status=0"),
        *BIOS[:3],
        (3100, "wl-7", "sync_end: id=4 ret=0"),
    ]
    rows = converted(tmp_path, *lines)
    assert [row["origin"] for row in rows["bio"] if row["sector"] == 1000] == ["background"]
    # A completion of no known bio.
    rows = converted(tmp_path, *lines, (1001, "<idle>-0", f"bio_complete: {bio[:-2]}80 status=0"))
    assert [row["origin"] for row in rows["bio"] if row["sector"] == 1000] == [None]


@pytest.mark.parametrize("output", ["t.pftrace", "tables/"])
def test_origins_are_not_known_where_no_syncs_are_recorded(output: str, tmp_path: Path) -> None:
    # blktrace records no syncs, so it does not show whether a bio is of one.
    found = ROOT / "tests" / "data" / "blktrace"
    inputs = [str(found / f"small1.blktrace.{cpu}") for cpu in (0, 1)]
    ok("convert", *inputs, "-o", f"{tmp_path}/{output}")
    path = tmp_path / output.rstrip("/")
    with opened(str(path), Reading()) as engine:
        sql = "SELECT COUNT(*) AS bios, COUNT(origin) AS known FROM syncline_bio WHERE direction = 'write'"
        (row,) = run_query(engine, sql).as_dicts()
    assert row["bios"] > 0
    assert row["known"] == 0
