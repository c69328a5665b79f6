"""Waits of threads that write to files: rows of `syncline_write_wait`, slices, and the report `slow-writes`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.report.catalogue import read_sql
from syncline.report.run import run_query, run_report

from tests import known_truth, sqltools
from tests.coretools import Rows, convert, core, tables
from tests.known_truth import Case
from tests.reference.write_waits import FIELDS, write_waits

MS = 1_000_000
DEV = 254 << 20 | 16
# Numbers of more than 18 digits are texts in a low-level log.
INODE = 0xFF00000000000000
LOCK = {"probe": "lock.contention_begin", "lock": str(INODE + 152), "at": 152, "host": str(INODE)}
REGULAR = {"mode": 0o100644, "ino": 13, "dev": DEV}
SYNC = {"ino": 13, "dev": DEV, "fs": "ext4"}


def events(*rows: tuple[int, int, str, dict[str, Any]]) -> bytes:
    """A low-level log: (ms, thread, event, fields)."""
    lines = [
        {
            "ts_ns": ms * MS,
            "tid": tid,
            "pid": tid,
            "comm": f"t{tid}",
            "event": event,
            "source": "trace.dat",
        }
        | (
            {"probe": "f+0x0/0x90"}
            if event.startswith(("journal_", "folio_", "fsync_", "write_pause"))
            else {}
        )
        | fields
        for ms, tid, event, fields in rows
    ]
    return "\n".join(map(json.dumps, lines)).encode()


def waits(folder: Path, log: bytes) -> list[tuple[Any, ...]]:
    rows = sorted(core(folder, log)["write_wait"], key=lambda row: row["ts_ns"])
    return [
        (row["ts_ns"] // MS, row["dur_ns"] / MS, row["tid"], row["wait"], row["confidence"])
        for row in rows
    ]


def lock(owner: int, **more: Any) -> dict[str, Any]:
    holders = {
        "holder": 21,
        "holder_comm": "plain",
        "holder_marked": 22,
        "holder_comm_marked": "marked",
    }
    return LOCK | REGULAR | {"owner": owner} | holders | more


@pytest.mark.parametrize(
    ("owner", "holder"),
    [(0xFF00, (21, "plain")), (0xFF02, (22, "marked")), (0xFF01, (None, None)), (0xFF03, (None, None)), (0, (None, None))],
)  # fmt: skip
def test_the_holder_of_a_lock_is_read_by_its_marks(
    tmp_path: Path, owner: int, holder: tuple[Any, Any]
) -> None:
    log = events((10, 7, "inode_lock", lock(owner)), (15, 7, "inode_lock_end", LOCK))
    (row,) = core(tmp_path, log)["write_wait"]
    assert (row["wait"], row["dur_ns"], row["ino"], row["dev"]) == (
        "inode lock",
        5 * MS,
        13,
        "254,16",
    )
    assert (row["holder_tid"], row["holder_comm"]) == holder


@pytest.mark.parametrize(
    "fields",
    [
        # Its address space is that of another inode, or memory that is no inode at all.
        {"host": str(INODE + 8)}, {"host": 0}, {"lock": 16},
        # A folder, a symbolic link.
        {"mode": 0o40755}, {"mode": 0o120777},
    ],
)  # fmt: skip
def test_the_lock_of_something_else_is_no_wait_for_a_file(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    log = events(
        (1, 9, "fsync_enter", SYNC), (2, 9, "fsync_exit", {"ret": 0}),
        (10, 7, "inode_lock", lock(0xFF00, **fields)), (15, 7, "inode_lock_end", LOCK | fields),
    )  # fmt: skip
    assert waits(tmp_path, log) == []


def test_only_waits_of_a_millisecond_have_a_row(tmp_path: Path) -> None:
    log = events((10, 7, "journal_handle", {}), (11, 7, "journal_handle_end", {}))
    assert waits(tmp_path, log) == [(10, 1, 7, "journal handle", "exact")]
    shorter = log.replace(b"11000000", b"10999999")
    assert waits(tmp_path, shorter) == []


def pause(ms: int, **more: Any) -> dict[str, Any]:
    return {"bdi": "254:16", "pause": ms, "dirtied": 32, "paused": 0} | more


def test_a_pause_ends_with_its_probe_or_is_as_long_as_was_chosen(tmp_path: Path) -> None:
    measured = events(
        (10, 7, "balance_dirty_pages", pause(8)), (19, 7, "write_pause_end", {}),
        # The same function, without a pause before.
        (40, 7, "write_pause_end", {}),
        (50, 8, "balance_dirty_pages", pause(8)), (60, 7, "write_pause_end", {}),
    )  # fmt: skip
    assert waits(tmp_path, measured) == [
        (10, 9, 7, "throttling", "exact"),
        (50, 8, 8, "throttling", "inferred"),
    ]
    # Nothing says when it ended, but the thread continues.
    inferred = events(
        (10, 7, "balance_dirty_pages", pause(8)), (16, 7, "balance_dirty_pages", pause(4)),
        (40, 7, "balance_dirty_pages", pause(0)), (50, 7, "balance_dirty_pages", pause(-3)),
    )  # fmt: skip
    assert waits(tmp_path, inferred) == [
        (10, 6, 7, "throttling", "inferred"),
        (16, 4, 7, "throttling", "inferred"),
    ]
    rows = core(tmp_path, measured)["write_wait"]
    assert {(row["dev"], row["bytes"]) for row in rows} == {("254,16", 32 * 4096)}


def test_further_pauses_of_one_check_have_no_bytes(tmp_path: Path) -> None:
    """The kernel says again what there was for the first one."""
    log = events(
        (10, 7, "balance_dirty_pages", pause(8)), (18, 7, "write_pause_end", {}),
        (19, 7, "balance_dirty_pages", pause(8, paused=12)), (27, 7, "write_pause_end", {}),
        (40, 7, "balance_dirty_pages", pause(8)), (48, 7, "write_pause_end", {}),
    )  # fmt: skip
    rows = sorted(core(tmp_path, log)["write_wait"], key=lambda row: row["ts_ns"])
    assert [row["bytes"] for row in rows] == [32 * 4096, None, 32 * 4096]


def test_a_file_system_without_a_disk_has_no_device(tmp_path: Path) -> None:
    for name in ("btrfs-1", "0:70x", ""):
        (row,) = core(tmp_path, events((10, 7, "balance_dirty_pages", pause(8, bdi=name))))[
            "write_wait"
        ]
        assert row["dev"] is None


def test_waits_in_a_sync_are_phases_of_it(tmp_path: Path) -> None:
    log = events(
        (10, 7, "sys_enter_fsync", {}), (11, 7, "folio_wait", SYNC), (14, 7, "folio_wait_end", {}),
        (20, 7, "fsync_enter", SYNC), (21, 7, "inode_lock", lock(0xFF00)), (25, 7, "inode_lock_end", LOCK),
        (26, 7, "folio_wait", SYNC), (29, 7, "folio_wait_end", {}), (30, 7, "fsync_exit", {"ret": 0}),
        (31, 7, "sys_exit_fsync", {"ret": 0}), (40, 7, "folio_wait", SYNC), (44, 7, "folio_wait_end", {}),
    )  # fmt: skip
    assert waits(tmp_path, log) == [(40, 4, 7, "page writeback", "exact")]


def test_flusher_threads_and_commits_are_no_writers(tmp_path: Path) -> None:
    work = {"sb_dev": "254:16", "reason": "background"}
    commit = {"dev": "254,16", "transaction": 5}
    log = events(
        (10, 7, "writeback_start", work), (11, 7, "folio_wait", SYNC), (15, 7, "folio_wait_end", {}), (16, 7, "writeback_written", work),
        (20, 8, "jbd2_start_commit", commit), (21, 8, "folio_wait", SYNC), (25, 8, "folio_wait_end", {}), (26, 8, "jbd2_end_commit", commit),
        (30, 7, "folio_wait", SYNC), (35, 7, "folio_wait_end", {}),
    )  # fmt: skip
    assert waits(tmp_path, log) == [(30, 5, 7, "page writeback", "exact")]


def test_of_nested_waits_for_page_cache_the_outer_one_counts(tmp_path: Path) -> None:
    log = events(
        (10, 7, "folio_wait", {}), (11, 7, "folio_wait", SYNC), (15, 7, "folio_wait_end", {}), (17, 7, "folio_wait_end", {}),
        # The end of the first one is missing.
        (20, 8, "folio_wait", {}), (21, 8, "folio_wait", SYNC), (22, 8, "folio_wait", SYNC), (25, 8, "folio_wait_end", {}),
    )  # fmt: skip
    assert waits(tmp_path, log) == [
        (10, 7, 7, "page writeback", "exact"),
        (22, 3, 8, "page writeback", "exact"),
    ]


def test_a_wait_without_an_end_does_not_end_with_a_later_one(tmp_path: Path) -> None:
    log = events(
        (10, 7, "journal_buffer", {"bit": 23}), (20, 7, "journal_buffer", {"bit": 23}), (24, 7, "journal_buffer_end", {}),
        (30, 8, "journal_handle", {}), (40, 8, "fsync_enter", SYNC), (41, 8, "fsync_exit", {"ret": 0}), (50, 8, "journal_handle_end", {}),
        (60, 9, "journal_space", {}),
    )  # fmt: skip
    assert waits(tmp_path, log) == [(20, 4, 7, "journal buffer", "exact")]


def test_the_same_wait_in_two_logs_is_one(tmp_path: Path) -> None:
    rows = [
        (10, 7, "journal_handle", {"data_tid": 5, "dev": DEV}),
        (15, 7, "journal_handle_end", {}),
    ]
    twice = events(*(row for row in rows for _ in range(2)))
    (row,) = core(tmp_path, twice)["write_wait"]
    assert (row["ts_ns"], row["dur_ns"], row["transaction_id"], row["dev"]) == (
        10 * MS,
        5 * MS,
        5,
        "254,16",
    )


def test_text_and_trace_dat_have_the_throttling(tmp_path: Path) -> None:
    """As the tracepoint prints it, and as the ring buffer holds it."""
    line = (
        "  dd-77 [000] ..... 1.000000: balance_dirty_pages: bdi 254:16: limit=9 setpoint=8 dirty=7 bdi_setpoint=6"
        " bdi_dirty=5 dirty_ratelimit=4 task_ratelimit=3 dirtied=32 dirtied_pause=32 paused=0 pause=12 period=12"
        " think=0 cgroup_ino=1\n"
    )
    (row,) = core(tmp_path, b"# tracer: nop\n" + line.encode())["write_wait"]
    assert (row["ts_ns"], row["dur_ns"], row["bytes"], row["dev"]) == (
        1000 * MS,
        12 * MS,
        32 * 4096,
        "254,16",
    )
    log = convert(tmp_path, b"# tracer: nop\n" + line.encode(), "out.events.jsonl").read_bytes()
    assert core(tmp_path, log)["write_wait"] == [row]


# --- recordings ----------------------------------------------------------------------------------

CASES = [name for name in known_truth.names() if name.startswith("write-")]
# The clocks of the workload and of the recording are read one after the other.
CLOCKS_NS = 1_000


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Case]]:
    folder = tmp_path_factory.mktemp("slow-writes")
    return {case: (folder / case, known_truth.converted(case, folder)) for case in CASES}


Converted = dict[str, tuple[Path, Case]]


def made(one: Case, *ops: str) -> Rows:
    return [row for row in one.truth["calls"] if row["op"] in ops]


def waits_in(one: Case, kind: str, call: dict[str, Any]) -> Rows:
    """The waits of a kind that are inside of a call of the workload."""
    return [
        row
        for row in one.tables["write_wait"]
        if row["wait"] == kind
        and row["tid"] == call["tid"]
        and call["start_ns"] - CLOCKS_NS <= row["ts_ns"]
        and row["ts_ns"] + row["dur_ns"] <= call["end_ns"] + CLOCKS_NS
    ]


def during(calls: Rows, ts: int) -> Rows:
    return [row for row in calls if row["start_ns"] - CLOCKS_NS <= ts <= row["end_ns"] + CLOCKS_NS]


def of_kind(one: Case, kind: str) -> Rows:
    """The waits of a kind, of the threads of the workload."""
    tids = {row["tid"] for row in one.truth["calls"]}
    return [row for row in one.tables["write_wait"] if row["wait"] == kind and row["tid"] in tids]


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_reference(converted: Converted, case: str) -> None:
    _, one = converted[case]
    rows = sorted(one.tables["write_wait"], key=lambda row: (row["ts_ns"], row["tid"], row["wait"]))
    expected = write_waits(one.events, one.tables["sync"], one.tables["call"], one.tables["bio"])
    assert [{key: row[key] for key in FIELDS} for row in rows] == expected
    assert rows


@pytest.mark.parametrize("case", CASES)
def test_a_trace_gives_the_rows_again(converted: Converted, case: str, tmp_path: Path) -> None:
    run, one = converted[case]
    convert_trace(str(trace_of(run)), f"{tmp_path}/again/")
    assert tables(tmp_path / "again")["write_wait"] == one.tables["write_wait"]


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("write-inode-lock")])
def test_a_write_waits_for_the_thread_that_has_the_lock(converted: Converted, case: str) -> None:
    _, one = converted[case]
    writes, holds = made(one, "write"), made(one, "direct write")
    (holder,) = {row["tid"] for row in holds}
    waiting = [(call, row) for call in writes for row in waits_in(one, "inode lock", call)]
    # Two writes on xfs got the lock before the other thread.
    assert len(of_kind(one, "inode lock")) == len(waiting) == (3 if "xfs" in case else 5)
    for call, row in waiting:
        (hold,) = during(holds, row["ts_ns"])
        # It gets the lock once the other thread has given it back, which is before its call returns.
        assert row["ts_ns"] + row["dur_ns"] <= hold["end_ns"] + (call["end_ns"] - call["start_ns"])
        found = (row["holder_tid"], row["holder_comm"])
        # On xfs, direct writes share the lock. The kernel does not name those who do.
        assert found == (holder, row["comm"]) or ("xfs" in case and found == (None, None))
        assert (row["path"], row["dev"]) == (call["path"], one.truth["device"]["dev"])


def test_a_write_waits_for_the_page_that_is_synced(converted: Converted) -> None:
    _, one = converted["write-page"]
    writes, syncs = made(one, "write"), made(one, "fdatasync")
    assert len(of_kind(one, "page writeback")) == len(writes) == 5
    for call in writes:
        (row,) = waits_in(one, "page writeback", call)
        assert during(syncs, row["ts_ns"])
        assert (row["path"], row["dev"]) == (call["path"], one.truth["device"]["dev"])
        # The page is under writeback until its bio is complete.
        completed = [bio["ts_ns"] + bio["dur_ns"] for bio in one.tables["bio"] if bio["dur_ns"]]
        assert any(row["ts_ns"] < ts <= row["ts_ns"] + row["dur_ns"] for ts in completed)


def test_a_change_waits_for_the_block_that_a_commit_writes(converted: Converted) -> None:
    _, one = converted["write-journal-buffer"]
    changes, syncs = made(one, "utime"), made(one, "fsync")
    (changer,) = {row["tid"] for row in changes}
    rows = [row for row in of_kind(one, "journal buffer") if row["tid"] == changer]
    assert rows
    assert rows == [row for call in changes for row in waits_in(one, "journal buffer", call)]
    for row in rows:
        assert row["dev"] == one.truth["device"]["dev"]
        assert during(syncs, row["ts_ns"])
        (commit,) = [
            each
            for each in one.tables["journal"]
            if each["ts_ns"] <= row["ts_ns"] <= each["ts_ns"] + each["dur_ns"]
        ]
        # A commit writes its blocks in its last step.
        assert row["ts_ns"] >= commit["ts_ns"] + commit["locking_ns"] + commit["flushing_ns"]


def test_a_change_waits_for_the_changes_of_the_transaction_before(converted: Converted) -> None:
    _, one = converted["write-journal-handle"]
    rows = of_kind(one, "journal handle")
    assert rows
    allocations = made(one, "allocate")
    for row in rows:
        assert row["dev"] == one.truth["device"]["dev"]
        # The commit waits for handles, while the other thread has one.
        (commit,) = [
            each
            for each in one.tables["journal"]
            if each["ts_ns"] <= row["ts_ns"] <= each["ts_ns"] + each["locking_ns"]
        ]
        assert row["transaction_id"] == commit["transaction_id"]
        assert during(allocations, row["ts_ns"])
    assert rows == [
        row for call in made(one, "utime") for row in waits_in(one, "journal handle", call)
    ]


def test_a_change_waits_for_room_in_a_small_journal(converted: Converted) -> None:
    _, one = converted["write-journal-space"]
    rows = of_kind(one, "journal space")
    assert rows
    assert rows == [
        row for call in made(one, "mkdir") for row in waits_in(one, "journal space", call)
    ]
    assert {row["dev"] for row in rows} == {one.truth["device"]["dev"]}


def test_a_write_pauses_as_long_as_the_kernel_makes_it(converted: Converted) -> None:
    _, one = converted["write-throttled"]
    rows = of_kind(one, "throttling")
    writes = made(one, "write")
    assert rows == [row for call in writes for row in waits_in(one, "throttling", call)]
    assert {row["confidence"] for row in rows} == {"exact"}
    pauses = {
        row["ts_ns"]: row["pause"] for row in one.events if row["event"] == "balance_dirty_pages"
    }
    long = 0
    for call in writes:
        inside = waits_in(one, "throttling", call)
        # The kernel waits in ticks of 4 ms.
        assert all(row["dur_ns"] >= (pauses[row["ts_ns"]] - 4) * MS for row in inside)
        taken, length = sum(row["dur_ns"] for row in inside), call["end_ns"] - call["start_ns"]
        assert taken <= length
        if length > 100 * MS:
            long += 1
            assert taken >= 0.6 * length
    assert long
    # What was written counts once, however often the kernel makes the thread pause for it.
    first = [row for row in rows if row["bytes"] is not None]
    assert long <= len(first) < len(rows)
    for call in writes:
        before = sum(one["bytes"] for one in writes if one["start_ns"] <= call["start_ns"])
        assert sum(row["bytes"] or 0 for row in rows if row["ts_ns"] <= call["end_ns"]) <= before


REPORTED = {
    "write-inode-lock": ("inode lock", "python3", 5),
    "write-page": ("page writeback", "python3", 5),
    "write-journal-buffer": ("journal buffer", "python3", None),
}


@pytest.mark.parametrize("case", REPORTED)
def test_the_report_says_for_whose_work_a_write_waited(converted: Converted, case: str) -> None:
    run, one = converted[case]
    kind, comm, waits = REPORTED[case]
    found = []
    for source, engine in ((run, "duckdb"), (trace_of(run), "embedded")):
        with opened(str(source), Reading(), engine) as sql:
            found.append(run_report(sql, "slow-writes").as_dicts())
            table = run_query(sql, "SELECT * FROM syncline_write_wait ORDER BY wait_id").rows
        rows = sorted(one.tables["write_wait"], key=lambda row: row["wait_id"])
        assert [row[:-1] for row in table] == [tuple(row.values()) for row in rows]
    assert found[0] == found[1]
    rows = [row for row in one.tables["write_wait"] if row["wait"] == kind]
    (row,) = [row for row in found[0] if (row["wait"], row["of_comm"]) == (kind, comm)]
    assert waits is None or row["waits"] == waits
    assert row["total_ns"] == sum(wait["dur_ns"] for wait in rows)
    assert row["max_ns"] == max(wait["dur_ns"] for wait in rows)
    assert row["median_ns"] == sorted(wait["dur_ns"] for wait in rows)[(len(rows) - 1) // 2]
    assert row["in_sync"] == (0 if kind == "inode lock" else row["waits"])
    # The plugin lists these syncs.
    with opened(str(trace_of(run)), Reading(), "embedded") as sql:
        run_query(sql, read_sql("views/plugin/tables", "slices"))
        listed = {
            wait["wait_id"]: run_query(
                sql,
                read_sql("views/plugin", "write-syncs").replace("$wait_id", str(wait["wait_id"])),
            ).as_dicts()
            for wait in one.tables["write_wait"]
        }
    assert len([syncs for syncs in listed.values() if syncs]) == sum(
        row["in_sync"] or 0 for row in found[0]
    )
    for syncs in listed.values():
        assert {sync["comm"] for sync in syncs} <= {comm}
        assert all(sync["slice_id"] is not None for sync in syncs)


def test_a_path_of_two_inodes_is_one_row(tmp_path: Path) -> None:
    """A rotated file: the median and the start of the longest wait are those of all waits for its path."""
    rotated = {"ino": 14}
    rows: list[tuple[int, int, str, dict[str, Any]]] = []
    for ms, fields in ((1, {}), (500, rotated)):
        rows += [
            (ms, 9, "fsync_enter", {**SYNC, "path": "/db/wal", **fields}),
            (ms + 1, 9, "fsync_exit", {"ret": 0}),
        ]
    for ms, length, fields in (
        *((100, 2, {}), (150, 2, {}), (200, 2, {}), (450, 30, {})),
        (510, 20, rotated),
    ):
        rows += [
            (ms, 7, "inode_lock", {**LOCK, **REGULAR, **fields}),
            (ms + length, 7, "inode_lock_end", LOCK),
        ]
    log, trace = tmp_path / "x.events.jsonl", tmp_path / "x.pftrace"
    log.write_bytes(events(*sorted(rows, key=lambda row: row[0])))
    Reading().convert([str(log)], str(trace))
    for source, engine in ((log, "duckdb"), (trace, "embedded")):
        with opened(str(source), Reading(), engine) as sql:
            (row,) = run_report(sql, "slow-writes").as_dicts()
        assert (row["path"], row["waits"], row["total_ns"]) == (".../db/wal", 5, 56 * MS)
        assert (row["median_ns"], row["max_ns"], row["at_ns"]) == (2 * MS, 30 * MS, 450 * MS)


def trace_of(run: Path) -> Path:
    trace = run.parent / f"{run.name}.pftrace"
    Reading().convert([str(run)], str(trace))
    return trace


def test_a_trace_has_them_on_the_track_of_their_thread(converted: Converted) -> None:
    run, one = converted["write-inode-lock"]
    with opened(str(trace_of(run)), Reading(), "embedded") as sql:
        found = run_query(
            sql,
            "SELECT slice.name AS name, thread.tid AS tid, slice.ts AS ts FROM slice"
            " JOIN thread_track ON thread_track.id = slice.track_id JOIN thread USING (utid)"
            " WHERE category = 'syncline.write_wait' ORDER BY slice.ts",
        ).rows
        unnamed = run_query(
            sql,
            "SELECT tid, pid FROM thread_track JOIN thread USING (utid) JOIN process USING (upid)"
            " WHERE process.name IS NULL",
        ).rows
    # Also a process that only writes: the UI would call it by its number.
    assert unnamed == []
    rows = sorted(one.tables["write_wait"], key=lambda row: row["ts_ns"])
    assert found == [(f"write waits: {row['wait']}", row["tid"], row["ts_ns"]) for row in rows]


def test_a_holder_in_a_sync_without_an_end_may_have_been_in_it(tmp_path: Path) -> None:
    """Thread 9 begins a sync at 10 ms that has no end in the log. Before that, it was in none."""
    run = sqltools.Run()
    run.add(10 * MS, None, tid=9, dev="8,0", incomplete="end")
    for number, at in enumerate((5, 20), 1):
        wait = {
            "wait_id": number,
            "wait": "inode lock",
            "ts_ns": at * MS,
            "dur_ns": 2 * MS,
            "tid": 7,
        }
        names = {"comm": "w", "path": f"/{number}", "dev": "8,0", "ino": number}
        run.write_wait.append(wait | names | {"holder_tid": 9, "holder_comm": "db"})
    for path, engine in (
        (sqltools.write_parquet(run, tmp_path / "tables"), "duckdb"),
        (sqltools.write_trace(run, tmp_path / "t.pftrace"), "embedded"),
    ):
        with opened(str(path), Reading(), engine) as sql:
            rows = run_report(sql, "slow-writes").as_dicts()
        assert {row["path"]: row["in_sync"] for row in rows} == {"/1": 0, "/2": None}
