"""What started each commit, who waited for it, and why a fast commit gave up: as the set-up of a recording forces it, and as the
reference implementation finds it in the events; in the tables, in a trace and in the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.report import run_query
from syncline.report.run import run_report

from tests import known_truth
from tests.coretools import convert as convert_bytes
from tests.coretools import core, tables
from tests.known_truth import Case
from tests.reference.journal import Journal, whose_data

FORCED = ("commit-timer", "commit-space", "fast-commit")
CASES = (*FORCED, "commit-others", "group-4", "group-staggered", "forced-freeze")

Recorded = Callable[[str], tuple[Case, Path]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A case, and the folder with its tables and its run directory. Each is converted once."""
    folder = tmp_path_factory.mktemp("journal")
    done: dict[str, Case] = {}

    def one(case: str) -> tuple[Case, Path]:
        if case not in done:
            done[case] = known_truth.converted(case, folder)
        return done[case], folder

    return one


def commits(case: Case, kind: str = "commit") -> list[dict[str, Any]]:
    """Those of the journal under test."""
    dev = case.truth["device"]["dev"]
    return [row for row in case.tables["journal"] if row["dev"] == dev and row["kind"] == kind]


@pytest.mark.parametrize("case", CASES)
def test_the_reference_finds_the_same(case: str, recorded: Recorded) -> None:
    one, _ = recorded(case)
    reference = Journal(one.events, one.tables["sync"], one.tables["wait"])
    found = {}
    for row in one.tables["journal"]:
        if row["kind"] == "commit":
            waited = {
                w["sync_id"] for w in one.tables["wait"] if w["commit_id"] == row["commit_id"]
            }
            assert len(waited) == row["syncs"]
            key = (row["dev"], row["transaction_id"])
            found[key] = (row["started_by"], row["sync_id"], sorted(waited))
    assert found == reference.commits()
    fast = [
        (row["ts_ns"], row["ts_ns"] + row["dur_ns"], row["sync_id"], row["status"], row["reason"])
        for row in one.tables["journal"]
        if row["kind"] == "fast commit"
    ]
    assert sorted(fast) == reference.fast_commits()


@pytest.mark.parametrize("case", CASES)
def test_a_bio_has_the_commit_in_which_its_thread_was(case: str, recorded: Recorded) -> None:
    one, folder = recorded(case)
    found = {row["bio_id"]: row["commit_id"] for row in one.tables["bio"]}
    # A commit without an end is the last one of its thread.
    whole = [row for row in one.tables["journal"] if row["incomplete"] is None]
    for bio in one.tables["bio"]:
        of_thread = [row for row in whole if row["tid"] == bio["tid"]]
        inside = [
            row["commit_id"]
            for row in of_thread
            if row["ts_ns"] <= bio["ts_ns"] <= row["ts_ns"] + row["dur_ns"]
        ]
        assert [found[bio["bio_id"]]] == (inside or [None])
    # All that a journal writes, it writes in commits. The recording lacks the start of one.
    journals = {row["tid"] for row in whole if row["kind"] == "commit"}
    outside = [b for b in one.tables["bio"] if b["tid"] in journals and b["commit_id"] is None]
    assert len(outside) == (2 if case == "forced-freeze" else 0)
    assert any(found.values())
    size = Counter[str]()
    for bio in one.tables["bio"]:
        if bio["commit_id"] is not None:
            size["log" if "M" in bio["rwbs"] else "data"] += bio["bytes"]
    trace = folder / f"{case}.of-bios.pftrace"
    Reading().convert([f"{folder}/{case}"], str(trace))
    for path, engine in ((trace, "embedded"), (folder / f"{case}.tables", "duckdb")):
        with opened(str(path), Reading(), engine=engine) as opened_engine:
            rows = run_query(opened_engine, "SELECT bio_id, commit_id FROM syncline_bio").rows
            table = run_report(opened_engine, "journal")
        assert dict(rows) == found
        sums = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for kind in ("data", "log"):
            assert sum(row[f"{kind}_bytes"] or 0 for row in sums) == size[kind]


def test_the_timer_commits_what_nobody_syncs(recorded: Recorded) -> None:
    """A file is created and not synced. The transaction is a second old before its commit begins, and nobody waits for that."""
    one, _ = recorded("commit-timer")
    found = commits(one)
    for call in one.truth["calls"]:
        if call["op"] == "create":
            after = [row for row in found if row["ts_ns"] > call["end_ns"]]
            assert after[0]["started_by"] == "timer"
            assert (after[0]["sync_id"], after[0]["syncs"]) == (None, 0)
            # The timer has whole seconds.
            assert 0.9e9 <= after[0]["ts_ns"] - call["start_ns"] <= 2.5e9
        else:
            during = [row for row in found if call["start_ns"] <= row["ts_ns"] <= call["end_ns"]]
            assert [row["started_by"] for row in during] == ["sync"]
            assert during[0]["syncs"] == 1


def test_a_full_journal_commits_for_room(recorded: Recorded) -> None:
    """Folders are created and not synced, in a journal that holds fewer of them; its timer would need an hour."""
    one, _ = recorded("commit-space")
    made = [call for call in one.truth["calls"] if call["op"] == "mkdir"]
    during = [
        row for row in commits(one) if made[0]["start_ns"] <= row["ts_ns"] <= made[-1]["end_ns"]
    ]
    assert len(during) >= 2
    assert {row["started_by"] for row in during} == {"space"}
    # Each began while a mkdir waited.
    for row in during:
        assert any(call["start_ns"] <= row["ts_ns"] <= call["end_ns"] for call in made)


def test_a_fast_commit_says_why_it_gave_up(recorded: Recorded) -> None:
    one, _ = recorded("fast-commit")
    syncs = {row["sync_id"]: row for row in one.tables["sync"]}
    fast = sorted(commits(one, "fast commit"), key=lambda row: row["ts_ns"])
    calls = [call for call in one.truth["calls"] if call["op"] == "fsync"]
    assert len(fast) == len(calls) == 9
    full = commits(one)
    for row, call in zip(fast, calls, strict=True):
        assert call["start_ns"] <= row["ts_ns"] <= row["ts_ns"] + row["dur_ns"] <= call["end_ns"]
        assert syncs[row["sync_id"]]["path"] == call["path"]
        assert row["reason"] == call["ineligible"]
        assert row["status"] == ("ineligible" if call["ineligible"] else "ok")
        # A full commit took its place, which the same request asked for.
        inside = [r for r in full if row["ts_ns"] <= r["ts_ns"] <= row["ts_ns"] + row["dur_ns"]]
        assert [r["sync_id"] for r in inside] == ([row["sync_id"]] if call["ineligible"] else [])


def test_a_commit_writes_the_data_of_another_file(recorded: Recorded) -> None:
    """Each commit that a sync waits for writes what the other file got since the one before: so many bytes."""
    one, folder = recorded("commit-others")
    block, syncs = (one.truth["options"][key] for key in ("block", "syncs"))
    with opened(str(folder / "commit-others.tables"), Reading(), "duckdb") as engine:
        table = run_report(engine, "whose-data")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    (other,) = [row for row in rows if row["kind"] == "other file"]
    # Nobody syncs the other file, so no event names it. It is known who wrote to it.
    assert (other["path"], other["writers"]) == (None, "python3")
    assert (other["bytes"], other["syncs"], other["commits"]) == (syncs * block, syncs, syncs)
    (itself,) = [row for row in rows if row["kind"] == "itself"]
    assert itself["bytes"] == syncs * 4096


@pytest.mark.parametrize("case", ["commit-others", "fast-commit", "group-4"])
def test_whose_data_is_that_of_the_reference(case: str, recorded: Recorded) -> None:
    one, folder = recorded(case)
    with opened(str(folder / f"{case}.tables"), Reading(), "duckdb") as engine:
        table = run_report(engine, "whose-data")
    found = {
        (row["kind"], row["path"], row["writers"]): (
            row["bios"],
            row["bytes"],
            row["commits"],
            row["syncs"],
        )
        for row in (dict(zip(table.columns, values, strict=True)) for values in table.rows)
    }
    assert found == whose_data(one.tables)


@pytest.mark.parametrize("case", ["fast-commit", "group-staggered"])
def test_a_trace_has_a_track_for_each_journal(
    case: str, recorded: Recorded, tmp_path: Path
) -> None:
    one, folder = recorded(case)
    trace = tmp_path / "x.pftrace"
    Reading().convert([str(folder / case)], str(trace))
    with opened(str(trace), Reading(), "embedded") as engine:
        rows = run_query(engine, "SELECT * FROM syncline_journal ORDER BY commit_id").rows
        waits = run_query(engine, "SELECT sync_id, commit_id FROM syncline_wait").rows
        steps = run_query(
            engine,
            "SELECT parent.name, slice.name, slice.dur FROM slice JOIN slice AS parent"
            " ON parent.id = slice.parent_id WHERE slice.category = 'syncline.commit_step'",
        ).rows
        # Arrows between the waits of requests and their commits, in either direction.
        flows = run_query(
            engine,
            "SELECT EXTRACT_ARG(wait.arg_set_id, 'debug.sync_id'), EXTRACT_ARG(made.arg_set_id, 'debug.commit_id')"
            " FROM flow JOIN slice AS wait ON wait.id IN (slice_out, slice_in) AND wait.category = 'syncline.wait'"
            " JOIN slice AS made ON made.id IN (slice_out, slice_in) AND made.category = 'syncline.commit'",
        ).rows
        tracks = run_query(
            engine,
            "SELECT DISTINCT track.name FROM slice JOIN track ON track.id = track_id"
            " WHERE category = 'syncline.commit'",
        ).rows
        names = ("journal", "whose-data")
        reports = [run_report(engine, name).rows for name in names]
    assert sorted(rows) == sorted((*row.values(), "") for row in one.tables["journal"])
    assert Counter(waits) == Counter((w["sync_id"], w["commit_id"]) for w in one.tables["wait"])
    assert Counter(flows) == Counter(pair for pair in waits if pair[1] is not None)
    assert {dev for (name,) in tracks for dev in [name.split("(")[1].rstrip(")")]} == {
        row["dev"] for row in one.tables["journal"]
    }
    lengths = [
        (name, row[f"{name}_ns"])
        for row in one.tables["journal"]
        for name in ("locking", "flushing", "logging")
        if row[f"{name}_ns"] is not None
    ]
    assert Counter((name, dur) for _, name, dur in steps) == Counter(lengths)
    # The trace is read back, and DuckDB reports the same.
    convert_trace(str(trace), f"{tmp_path}/again.tables/")
    assert tables(tmp_path / "again.tables")["journal"] == one.tables["journal"]
    assert tables(tmp_path / "again.tables")["wait"] == one.tables["wait"]
    with opened(str(folder / f"{case}.tables"), Reading(), "duckdb") as engine:
        assert [run_report(engine, name).rows for name in names] == reports


TEXT = """\
# tracer: nop
     sync-7       [000] .....   1.000100: ext4_fc_commit_start: dev 254,16 tid 9
     sync-7       [000] .....   1.000300: ext4_fc_commit_stop: dev 254,16 nblks 0, reason 1, fc = 3, ineligible = 1, agg_nblks 5, tid 9
     sync-7       [000] .....   1.000400: ext4_fc_commit_start: dev 254,16 tid 10
     sync-7       [000] .....   1.000900: ext4_fc_commit_stop: dev 254,16 nblks 1, reason 0, fc = 4, ineligible = 1, agg_nblks 6, tid 10
     sync-8       [000] .....   1.000950: ext4_fc_commit_stop: dev 254,16 nblks 1, reason 2, fc = 4, ineligible = 1, agg_nblks 6, tid 10
     sync-8       [000] .....   1.000960: ext4_fc_commit_start: dev 254,16 tid 11
"""


def assert_read_back(tmp_path: Path, log: bytes, rows: dict[str, Any]) -> None:
    """A trace holds the commits and the waits."""
    trace = convert_bytes(tmp_path, log, "back.pftrace")
    convert_trace(str(trace), f"{tmp_path}/back/")
    found = tables(tmp_path / "back")
    assert (found["journal"], found["wait"]) == (rows["journal"], rows["wait"])


def test_fast_commits_of_a_text_and_of_its_low_level_log(tmp_path: Path) -> None:
    converted = core(tmp_path, TEXT.encode())
    assert_read_back(tmp_path, TEXT.encode(), converted)
    rows = converted["journal"]
    keys = ("ts_ns", "dur_ns", "tid", "transaction_id", "status", "reason", "incomplete")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (1_000_100_000, 200_000, 7, 9, "ineligible", None, None),
        (1_000_400_000, 500_000, 7, 10, "ok", None, None),
        (1_000_950_000, None, 8, 10, "skipped", None, "start"),
        (1_000_960_000, None, 8, 11, None, None, "end"),
    ]
    assert {row["dev"] for row in rows} == {"254,16"}
    log = convert_bytes(tmp_path, TEXT.encode(), "out.events.jsonl").read_bytes()
    assert core(tmp_path, log)["journal"] == rows


DEV = 254 << 20 | 16
OTHER_DEV = 254 << 20 | 32


def log_of(*lines: tuple[float, str, str]) -> bytes:
    """A text of the ring buffer: (ms, thread, event)."""
    return "".join(
        f"{thread:>16}   [000] .....  {ms / 1000:.6f}: {event}\n" for ms, thread, event in lines
    ).encode()


def request(transaction: int, expires: int, now: int, dev: int = DEV) -> str:
    """A thread asks for a commit. The transaction is due at the tick `expires`."""
    place = "(__jbd2_log_start_commit+0x4/0xb0)"
    return f"commit_request: {place} dev={dev} tid={transaction} expires={expires} now={now}"


def commit(transaction: int, begin: float, end: float, dev: str = "254,16") -> list[Any]:
    text = f"dev {dev} transaction {transaction} sync 0"
    return [
        (begin, "jbd2-9", f"jbd2_start_commit: {text}"),
        (end, "jbd2-9", f"jbd2_end_commit: {text} head 3"),
    ]


ENTER = f"fsync_enter: (ext4_sync_file+0x4/0x90) dev={DEV} ino=5 gen=1 datasync=0"
EXIT = "fsync_exit: (do_fsync+0x3b/0x80 <- ext4_sync_file) ret=0"
WAIT_END = "wait_commit_end: (ext4_sync_file+0x7c/0x90 <- jbd2_log_wait_commit) ret=0"
TIMER = "commit_timer: (commit_timeout+0x4/0x20)"
ROOM = f"journal_handle: (wait_transaction_locked+0x4/0xd0) dev={DEV} tid=6"
ROOM_END = "journal_handle_end: (add_transaction_credits+0xd1/0x290 <- wait_transaction_locked)"
SPACE = f"journal_space: (__jbd2_log_wait_for_space+0x4/0x1d0) dev={DEV}"
SPACE_END = "journal_space_end: (start_this_handle+0x2e/0x5b0 <- __jbd2_log_wait_for_space)"


def wait(transaction: int) -> str:
    return f"wait_commit: (jbd2_log_wait_commit+0x4/0x17f) tid={transaction}"


def test_who_asks_first_starts_a_commit(tmp_path: Path) -> None:
    log = log_of(
        # A sync, which another one joins.
        *((100, "db-7", ENTER), (101, "db-7", request(5, 9000, 100)), (101.1, "db-7", wait(5))),
        *commit(5, 102, 110)[:1],
        *((103, "db-8", ENTER), (103.5, "db-8", wait(5)), *commit(5, 102, 110)[1:]),
        *((111, "db-7", WAIT_END), (111.2, "db-8", WAIT_END)),
        *((112, "db-7", EXIT), (112.5, "db-8", EXIT)),
        # A thread needs room, and a sync waits for the same commit. The old age does not matter.
        *((200, "cp-20", ROOM), (201, "cp-20", request(6, 100, 900))),
        *((202, "db-7", ENTER), (202.1, "db-7", request(6, 100, 901)), (202.2, "db-7", wait(6))),
        *commit(6, 203, 210),
        *((211, "cp-20", ROOM_END), (212, "db-7", WAIT_END), (213, "db-7", EXIT)),
        # The thread of a write finds that the transaction is due, and another that it is not.
        *((300, "cp-20", request(7, 2500, 2500)), *commit(7, 301, 310)),
        *((400, "freeze-30", request(8, 2501, 2500)), *commit(8, 401, 410)),
        # The counter of ticks wraps.
        *((450, "cp-20", request(9, 2**64 - 5, 3)), *commit(9, 451, 460)),
        # A thread waits for space, and for a page in this wait. Later it does not wait.
        *((470, "cp-20", SPACE), (470.1, "cp-20", "folio_wait: (f+0x4/0x9) dev=1 ino=2 index=3")),
        *(
            (470.9, "cp-20", "folio_wait_end: (f+0x9/0x9 <- g)"),
            (471, "cp-20", request(13, 9000, 1)),
        ),
        *(*commit(13, 472, 480), (481, "cp-20", SPACE_END)),
        *((482, "cp-20", request(14, 9000, 2)), *commit(14, 483, 490)),
        # Nobody asks: the timer has expired, or has not for seconds.
        *((500, "<idle>-0", TIMER), *commit(10, 501, 510)),
        *commit(11, 3500, 3510),
        # The first commit of another journal may have been asked for before.
        *((4000, "<idle>-0", TIMER), *commit(4, 4001, 4010, "254,32")),
        *((4100, "<idle>-0", TIMER), *commit(5, 4101, 4110, "254,32")),
        # A request for another journal does not count for this one.
        *((4200, "db-7", request(12, 9000, 100, OTHER_DEV)), *commit(12, 4201, 4210)),
    )
    found = core(tmp_path, log)
    assert_read_back(tmp_path, log, found)
    keys = ("dev", "transaction_id", "started_by", "sync_id", "syncs")
    assert [tuple(row[key] for key in keys) for row in found["journal"]] == [
        ("254,16", 5, "sync", 1, 2),
        ("254,16", 6, "space", None, 1),
        ("254,16", 7, "timer", None, 0),
        ("254,16", 8, "other", None, 0),
        ("254,16", 9, "timer", None, 0),
        ("254,16", 13, "space", None, 0),
        ("254,16", 14, "other", None, 0),
        ("254,16", 10, "timer", None, 0),
        ("254,16", 11, None, None, 0),
        ("254,32", 4, None, None, 0),
        ("254,32", 5, "timer", None, 0),
        ("254,16", 12, "timer", None, 0),
    ]
    ids = {row["transaction_id"]: row["commit_id"] for row in found["journal"][:2]}
    assert sorted((row["sync_id"], row["commit_id"]) for row in found["wait"]) == [
        (1, ids[5]),
        (2, ids[5]),
        (3, ids[6]),
    ]


def test_without_requests_for_commits_the_first_that_waits_starts_it(tmp_path: Path) -> None:
    log = log_of(
        *((100, "db-8", ENTER), (100.5, "db-7", ENTER), (101, "db-7", wait(5))),
        *((101.5, "db-8", wait(5)), *commit(5, 102, 110), (111, "db-8", WAIT_END)),
        *((111.5, "db-7", WAIT_END), (112, "db-8", EXIT), (112.5, "db-7", EXIT)),
        # It waits for a commit that has begun.
        *(commit(6, 201, 210)[0], (202, "db-7", ENTER), (203, "db-7", wait(6))),
        *(commit(6, 201, 210)[1], (211, "db-7", WAIT_END), (212, "db-7", EXIT)),
    )
    rows = core(tmp_path, log)["journal"]
    assert [(row["started_by"], row["sync_id"], row["syncs"]) for row in rows] == [
        ("sync", 2, 2),
        (None, None, 1),
    ]


def test_a_wait_that_ends_before_its_commit_belongs_to_it(tmp_path: Path) -> None:
    """The journal counts a commit as done before it reports the end."""
    log = log_of(
        *((100, "db-7", ENTER), (101, "db-7", wait(5)), commit(5, 102, 110)[0]),
        *((109, "db-7", WAIT_END), commit(5, 102, 110)[1], (112, "db-7", EXIT)),
        # This one waits for a transaction that is not committed in the recording.
        *(
            (200, "db-7", ENTER),
            (201, "db-7", wait(9)),
            (209, "db-7", WAIT_END),
            (212, "db-7", EXIT),
        ),
    )
    found = core(tmp_path, log)
    assert [row["commit_id"] for row in found["wait"]] == [1, None]
    assert found["journal"][0]["syncs"] == 1


def test_the_reason_of_a_fast_commit_ends_with_the_next_full_one(tmp_path: Path) -> None:
    def fast(ms: float, transaction: int, status: int) -> list[tuple[float, str, str]]:
        of = f"dev 254,16 nblks 0, reason {status}, fc = 1, ineligible = 1, agg_nblks 5"
        return [
            (ms, "db-7", f"ext4_fc_commit_start: dev 254,16 tid {transaction}"),
            (ms + 50, "db-7", f"ext4_fc_commit_stop: {of}, tid {transaction}"),
        ]

    def ineligible(ms: float, reason: int, dev: int = DEV) -> tuple[float, str, str]:
        place = "(ext4_fc_mark_ineligible+0x4/0x60)"
        return ms, "mv-20", f"fc_ineligible: {place} dev={dev} reason={reason}"

    log = log_of(
        *(ineligible(100, 0), ineligible(101, 6), ineligible(102, 7, OTHER_DEV)),
        # The full commit in its place ends before it does.
        *(fast(110, 5, 1)[0], *commit(5, 120, 150), fast(110, 5, 1)[1]),
        # Nothing is left of that reason, so it is not known.
        *fast(200, 6, 1),
        # What is done during a commit is for the next one.
        *(commit(6, 300, 310)[0], ineligible(305, 3), commit(6, 300, 310)[1], *fast(400, 7, 1)),
        # Another status has no reason.
        *(*fast(500, 8, 2), *fast(600, 9, 3), ineligible(690, 77), *fast(700, 10, 1)),
    )
    found = core(tmp_path, log)
    assert_read_back(tmp_path, log, found)
    rows = [row for row in found["journal"] if row["kind"] == "fast commit"]
    assert [(row["transaction_id"], row["status"], row["reason"]) for row in rows] == [
        (5, "ineligible", "rename dir"),
        (6, "ineligible", None),
        (7, "ineligible", "no memory"),
        (8, "skipped", None),
        (9, "failed", None),
        (10, "ineligible", None),
    ]
