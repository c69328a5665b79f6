"""Single events that are missing, in logs that show by others that they were recorded: no figure takes the place of what is not known.

tests/missing drops events of whole recordings. The expected values here follow from the few lines of each log.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.recordings import InputHints
from syncline.report import run_query

from tests.coretools import Rows, core, tables

Tables = dict[str, Rows]

START = "start id {} start 0 end 9 datasync 0 dev 254,16 ino 12 path /d/f"


def line_format(events: list[tuple[int, str]]) -> bytes:
    """The line format of thread 7, at times in us."""
    head = "TIME PID COMM EVENT DATA\n"
    return (head + "".join(f"{us}000 7 wl {text}\n" for us, text in events)).encode()


def losses(converted: Tables) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in converted["loss"]}


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


# Calls.


def sync(at: int, number: int, entry: bool = True, exit_: bool = True) -> list[tuple[int, str]]:
    """A sync of 100 us in a call of 120 us."""
    events = [
        (at, "fsync"),
        (at + 10, START.format(number)),
        (at + 110, f"exit id {number} ret 0"),
        (at + 120, "fsync_exit ret 0"),
    ]
    return events[0 if entry else 1 : 4 if exit_ else 3]


def ring_buffer(events: list[tuple[int, str]]) -> bytes:
    """The same events as text of the ring buffer."""
    names = {"fsync": "sys_fsync(fd: 3)", "fsync_exit ret 0": "sys_fsync -> 0x0"}
    lines = ["# tracer: nop\n#\n"]
    for us, text in events:
        if text.startswith("start "):
            number = text.split()[2]
            text = f"sync_start: id={number} start=0 end=9 datasync=0 dev=254,16 ino=12 path=/d/f"
        elif text.startswith("exit "):
            text = f"sync_end: id={text.split()[2]} ret=0"
        lines.append(f"{'wl':>16}-7       [000] .....  0.{us:06}: {names.get(text, text)}\n")
    return "".join(lines).encode()


def low_level(events: list[tuple[int, str]]) -> bytes:
    """The same events as a low-level log."""
    names = {"fsync": "sys_enter_fsync", "fsync_exit ret 0": "sys_exit_fsync"}
    lines = []
    for us, text in events:
        event: dict[str, Any] = {"ts_ns": us * 1000, "tid": 7, "comm": "wl", "source": "trace-dat"}
        if text.startswith("start "):
            event |= {"event": "sync_start", "id": int(text.split()[2]), "start": 0, "end": 9}
            event |= {"datasync": 0, "dev": "254,16", "ino": 12, "fs": "ext4", "path": "/d/f"}
        elif text.startswith("exit "):
            event |= {"event": "sync_end", "id": int(text.split()[2]), "ret": 0}
        else:
            event |= {"event": names[text]} | ({"ret": 0} if "ret" in text else {})
        lines.append(json.dumps(event) + "\n")
    return "".join(lines).encode()


FORMATS = pytest.mark.parametrize("format_", [line_format, ring_buffer, low_level])


@FORMATS
def test_a_call_without_its_exit_has_no_duration(format_: Any, tmp_path: Path) -> None:
    events = sync(1000, 1) + sync(2000, 2, exit_=False) + sync(3000, 3)
    converted = core(tmp_path, format_(events))
    assert column(converted["call"], "dur_ns") == [120_000, None, 120_000]
    assert column(converted["sync"], "syscall_ns") == [120_000, None, 120_000]
    # The sync itself is known.
    assert column(converted["sync"], "dur_ns") == [110_000] * 3
    assert column(converted["sync"], "incomplete") == [None] * 3
    assert losses(converted) == {"exit_missing": 1}


@FORMATS
def test_a_log_that_ends_before_the_exit_of_a_call(format_: Any, tmp_path: Path) -> None:
    converted = core(tmp_path, format_(sync(1000, 1) + sync(2000, 2, exit_=False)))
    assert column(converted["call"], "dur_ns") == [120_000, None]
    assert losses(converted) == {"exit_missing": 1}


@FORMATS
def test_a_call_lasts_as_long_as_its_sync_in_a_log_without_exits(
    format_: Any, tmp_path: Path
) -> None:
    events = sync(1000, 1, exit_=False) + sync(2000, 2, exit_=False)
    converted = core(tmp_path, format_(events))
    assert column(converted["call"], "dur_ns") == [110_000, 110_000]
    assert column(converted["sync"], "syscall_ns") == [110_000, 110_000]
    assert losses(converted) == {}


def test_exits_of_a_process_that_may_be_of_either_call(tmp_path: Path) -> None:
    """Two threads of a process sync at once. Their exits say when one of them returned, not which."""
    first, second = sync(1000, 1), sync(1005, 2)
    log = line_format(sorted(first + second) + sync(3000, 3))
    converted = core(tmp_path, log, pid_is="process")
    assert column(converted["call"], "dur_ns") == [None, None, 120_000]
    assert column(converted["sync"], "syscall_ns") == [None, None, 120_000]
    assert column(converted["sync"], "confidence") == ["inferred", "inferred", "exact"]
    assert losses(converted) == {"unmatched_exit": 2, "exit_missing": 2}


def test_a_call_that_returned_at_an_unknown_time(tmp_path: Path) -> None:
    """A line of strace without -T says that the call returned, and not when. Its sync is in the other log."""
    events = [json.loads(line) for line in low_level(sync(1000, 1)).splitlines()]
    events[3]["untimed"] = True
    log = "".join(json.dumps(event) + "\n" for event in events).encode()
    converted = core(tmp_path, log)
    assert column(converted["call"], "dur_ns") == [None]
    assert column(converted["sync"], "syscall_ns") == [None]
    assert column(converted["sync"], "dur_ns") == [110_000]
    assert losses(converted) == {"duration_missing": 1}


def test_exits_of_other_calls_say_nothing(tmp_path: Path) -> None:
    """A recorder may record the exits of fdatasync only."""
    events = [(1000, "fdatasync"), (1100, "fdatasync_exit ret 0"), *sync(2000, 1, exit_=False)]
    converted = core(tmp_path, line_format(events))
    assert column(converted["call"], "dur_ns") == [100_000, 110_000]
    assert losses(converted) == {"unmatched_call": 1}


def test_exits_of_another_log_say_nothing(tmp_path: Path) -> None:
    """strace saw thread 8 only. That the other log has no exits is no loss."""
    (tmp_path / "a.log").write_bytes(
        line_format(sync(1_000_000, 1, exit_=False) + sync(2_000_000, 2, exit_=False))
    )
    (tmp_path / "b.log").write_text("8 1.500000 fsync(3) = 0 <0.000100>\n")
    logs = [str(tmp_path / name) for name in ("a.log", "b.log")]
    hints = {logs[1]: InputHints(offset_ns=0)}
    _core.convert(logs, f"{tmp_path}/out/", hints=hints)
    assert "exit_missing" not in losses(tables(tmp_path / "out"))


@FORMATS
@pytest.mark.parametrize("before", [0, 1])
def test_a_sync_whose_call_began_without_an_entry_has_no_duration(
    before: int, format_: Any, tmp_path: Path
) -> None:
    """Its call began earlier, at a time that is not known. `before`: the log does not begin in the call."""
    events = (sync(1000, 1) if before else []) + sync(2000, 2, entry=False) + sync(3000, 3)
    converted = core(tmp_path, format_(events))
    assert column(converted["sync"], "incomplete") == [None] * before + ["call", None]
    assert column(converted["sync"], "dur_ns") == [110_000] * before + [None, 110_000]
    assert column(converted["sync"], "syscall_ns") == [120_000] * before + [None, 120_000]
    assert losses(converted) == {"call_missing": 1}


def test_a_sync_without_a_call_is_exact(tmp_path: Path) -> None:
    """A write with O_DSYNC, and then an fsync whose entry was lost, and which found nothing to sync."""
    durable = [(1000, START.format(1)), (1100, "exit id 1 ret 0")]
    between = [(1200, "fsync"), (1210, "fsync_exit ret 0")]
    converted = core(tmp_path, line_format([*durable, *between, (1300, "fsync_exit ret 0")]))
    assert column(converted["sync"], "confidence") == ["exact"]
    assert losses(converted)["unmatched_exit"] == 1


def test_a_trace_has_the_calls_without_their_exits(tmp_path: Path) -> None:
    (tmp_path / "in.log").write_bytes(
        line_format(sync(1000, 1) + sync(2000, 2, exit_=False) + sync(3000, 3))
    )
    _core.convert([str(tmp_path / "in.log")], f"{tmp_path}/out.pftrace")
    sql = (
        "SELECT sync.sync_id, sync.ts_ns, sync.dur_ns, sync.op, syscall_ns, call.dur_ns, unmatched"
        " FROM syncline_sync AS sync JOIN syncline_call AS call USING (sync_id) ORDER BY sync.sync_id"
    )
    expected = [
        (1, 1_000_000, 110_000, "fsync", 120_000, 120_000, False),
        (2, 2_000_000, 110_000, "fsync", None, None, False),
        (3, 3_000_000, 110_000, "fsync", 120_000, 120_000, False),
    ]
    for engine in ("embedded", "duckdb"):
        with opened(f"{tmp_path}/out.pftrace", Reading(), engine=engine) as trace:
            assert run_query(trace, sql).rows == expected, engine


# Waits, commits, and what threads do: text of the ring buffer with dynamic events.

DEV = 254 << 20
ENTER = (
    f'fsync_enter: (ext4_sync_file+0x4/0x90) dev={DEV} ino=12 gen=1 start=0 end=9 datasync=0 fs="ext4"'
    ' n0="f" n1="/"'
)
LEAVE = "fsync_exit: (x+0x4/0x9 <- ext4_sync_file) ret=0"


def dynamic(*events: tuple[int, int, str]) -> bytes:
    """(us, thread, text)"""
    lines = [f"{'db':>16}-{tid:<7} [000] .....  0.{us:06}: {text}\n" for us, tid, text in events]
    return ("# tracer: nop\n#\n" + "".join(lines)).encode()


def bio(at: int, complete: int, number: int = 1, tid: int = 7) -> list[tuple[int, int, str]]:
    """A bio with one folio, from submit to completion."""
    address = f"0xff{number:02}40"
    return [
        (
            at - 1,
            tid,
            f"bio_add_folio: (f+0x4/0x9) bio={address} dev={DEV} ino=12 index=1 len=4096 off=0",
        ),
        (
            at,
            tid,
            f"bio: (f+0x4/0x9) bio={address} dev={DEV} sector={8 * number} bytes=4096 opf=2049"
            ' end_io="ext4_end_bio+0x0/0x131"',
        ),
        (
            complete,
            0,
            f"bio_end: (f+0x4/0x9) bio={address} status=0 remaining=1 private=0x0",
        ),
    ]


def begin(name: str, fields: str = "") -> str:
    return f"{name}: (f+0x4/0x9){fields}"


def end(name: str) -> str:
    return f"{name}_end: (f+0x4/0x9)"


def step(name: str, transaction: int = 5) -> str:
    head = " head 2" if name == "end_commit" else ""
    return f"jbd2_{name}: dev 254,0 transaction {transaction} sync 0{head}"


def switch(thread: int, state: str = "") -> str:
    """A switch from the thread in a state, or to it."""
    before, after = (thread, 0) if state else (0, thread)
    return (
        f"sched_switch: prev_comm=a prev_pid={before} prev_prio=120 prev_state={state or 'R'} ==>"
        f" next_comm=b next_pid={after} next_prio=120"
    )


def wake(thread: int) -> str:
    return f"sched_waking: comm=db pid={thread} prio=120 target_cpu=000"


def converted(folder: Path, events: list[tuple[int, int, str]]) -> Tables:
    return core(folder, dynamic(*sorted(events, key=lambda event: event[0])))


def sums(result: Tables, sync_id: int = 1) -> dict[str, int]:
    """How long a request was in each phase, in us."""
    found: dict[str, int] = defaultdict(int)
    for row in result["phase"]:
        if row["sync_id"] == sync_id:
            found[row["phase"]] += row["dur_ns"] // 1000
    return {phase: us for phase, us in found.items() if us}


@pytest.mark.parametrize("lost", ["begin", "end"])
def test_no_phase_takes_the_place_of_a_wait_with_one_end(lost: str, tmp_path: Path) -> None:
    """The wait was from 400 to 700. Its begin may have been at any time before 700, its end at any time after 400."""
    wait = [(400, 7, begin("wait_commit", " tid=5")), (700, 7, end("wait_commit"))]
    del wait[lost == "end"]
    result = converted(tmp_path, [(100, 7, ENTER), *bio(200, 300), *wait, (800, 7, LEAVE)])
    assert column(result["sync"], "journal_ns") == [None]
    assert losses(result) == {"unmatched_wait": 1}
    if lost == "begin":
        assert sums(result) == {"residue": 600, "after completion": 100}
    else:
        assert sums(result) == {"before submit": 100, "writeback": 100, "residue": 500}


def test_a_fast_commit_with_a_lost_wait_in_it_is_not_known(tmp_path: Path) -> None:
    """Two threads are in a fast commit, and one of them asked for a full commit, as the end of its wait shows."""
    other = "bio=0xff11000000896f40"
    result = converted(
        tmp_path,
        [
            # Submits are recorded.
            (
                50,
                9,
                f"bio: (submit_bio+0x4/0xa6) {other} dev=266338320 sector=8 bytes=4096 opf=2049 end_io=end_bio+0x0/0x1",
            ),
            (60, 0, f"bio_end: (bio_endio+0x4/0x103) {other} status=0"),
            (100, 8, ENTER.replace("ino=12", "ino=13")),
            (110, 8, begin("fc_commit")),
            (200, 7, ENTER),
            (210, 7, begin("fc_commit")),
            (500, 7, end("wait_commit")),
            (510, 7, end("fc_commit")),
            (520, 7, LEAVE),
            (600, 8, end("fc_commit")),
            (610, 8, LEAVE),
        ],
    )
    assert result["wait"] == []
    journal = {row["tid"]: row["journal_ns"] for row in result["sync"]}
    assert journal == {7: None, 8: 0}


COMMIT = {
    "start_commit": 210,
    "commit_locking": 220,
    "commit_flushing": 240,
    "commit_logging": 270,
    "end_commit": 390,
}


def waited_for(folder: Path, *lost: str) -> dict[str, int]:
    """The phases of a request that waits from 200 to 400 for a commit without some of its events."""
    commit = [(us, 99, step(name)) for name, us in COMMIT.items() if name not in lost]
    wait = [(200, 7, begin("wait_commit", " tid=5")), (400, 7, end("wait_commit"))]
    return sums(converted(folder, [(150, 7, ENTER), *commit, *wait, (400, 7, LEAVE)]))


def test_steps_of_a_commit_end_where_the_next_one_is_recorded(tmp_path: Path) -> None:
    whole = waited_for(tmp_path)
    before = {"residue": 50}
    start = {"commit start": 10}
    locking, flushing, logging = (
        {"commit locking": 30},
        {"commit flushing": 30},
        {"commit logging": 120},
    )
    # In the last 10 us, the commit is over, and the thread may be ready to run: that is not recorded.
    around = {"residue": 50 + 10}
    assert whole == around | start | locking | flushing | logging
    # A step that lacks one bound leaves its time to the wait as a whole.
    assert waited_for(tmp_path, "commit_flushing") == around | start | logging | {"commit wait": 60}
    assert waited_for(tmp_path, "commit_logging") == around | start | locking | {"commit wait": 150}
    assert waited_for(tmp_path, "end_commit") == before | start | locking | flushing | {
        "commit wait": 130
    }
    assert waited_for(tmp_path, "start_commit") == before | {"commit wait": 200}


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("", {"earlier commit": 60, "commit start": 40}),
        # It may have begun before the wait, or in it, and it may have ended at any time.
        ("start_commit", {"commit start": 20, "commit wait": 80}),
        ("end_commit", {"commit start": 20, "commit wait": 80}),
    ],
)
def test_an_earlier_commit_with_one_bound(
    lost: str, expected: dict[str, int], tmp_path: Path
) -> None:
    """The wait is from 200 to 500, the earlier commit from 220 to 280, its own from 300 on."""
    earlier = [(220, 99, step("start_commit", 4)), (280, 99, step("end_commit", 4))]
    events = [event for event in earlier if not (lost and lost in event[2])]
    own = [(300, 99, step("start_commit")), (310, 99, step("commit_locking"))]
    wait = [(200, 7, begin("wait_commit", " tid=5")), (500, 7, end("wait_commit"))]
    result = sums(converted(tmp_path, [(150, 7, ENTER), *events, *own, *wait, (500, 7, LEAVE)]))
    rest = {"residue": 50, "commit wait": 200 + expected.get("commit wait", 0)}
    if lost == "start_commit":
        # Until its end, nothing is known.
        expected = {"commit start": 20}
    assert result == expected | rest


def blocked(*events: tuple[int, int, str]) -> list[tuple[int, int, str]]:
    """A sync from 1100 to 1900 with a bio from 1200 to 1500, after one that shows all kinds of events of the scheduler."""
    shown = [
        (100, 7, ENTER),
        (110, 7, switch(7, "D")),
        (120, 0, wake(7)),
        (130, 0, switch(7)),
        (140, 7, LEAVE),
    ]
    return [*shown, (1100, 7, ENTER), *bio(1200, 1500), *events, (1900, 7, LEAVE)]


OUT, WAKE, IN = (1300, 7, switch(7, "D")), (1600, 0, wake(7)), (1700, 0, switch(7))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # Blocked from 1300 to 1600, ready until 1700; the bio was complete at 1500.
        ([OUT, WAKE, IN], {"writeback": 300, "completion": 100, "cpu wait": 100}),
        # It was seen running at 1100 and at 1700.
        ([WAKE, IN], {"residue": 600}),
        # It was blocked at 1300 and ran at 1700. When it was woken is not known.
        ([OUT, IN], {"writeback": 100, "residue": 400}),
        # It was ready at 1600, and ran at 1900.
        ([OUT, WAKE], {"writeback": 300, "completion": 100, "residue": 300}),
    ],
    ids=["whole", "no switch out", "no wake-up", "no switch in"],
)
def test_what_a_thread_does_is_not_known_without_an_event_of_the_scheduler(
    events: list[tuple[int, int, str]], expected: dict[str, int], tmp_path: Path
) -> None:
    result = sums(converted(tmp_path, blocked(*events)), 2)
    known = {"before submit": 100, "after completion": 200}
    if events == [WAKE, IN]:
        known = {"after completion": 200}
    if events == [OUT, WAKE]:
        known = {"before submit": 100}
    assert result == known | expected


def test_a_thread_that_is_woken_on_its_way_out_waits_for_a_cpu(tmp_path: Path) -> None:
    """The wake-up, on another CPU, comes before the switch: the thread could run from then on."""
    events = [(1580, 0, wake(7)), (1600, 7, switch(7, "D")), (1700, 0, switch(7))]
    assert sums(converted(tmp_path, blocked(*events)), 2) == {
        "before submit": 100,
        "writeback": 300,
        "cpu wait": 100,
        "after completion": 300,
    }


def test_a_log_without_wake_ups_loses_none(tmp_path: Path) -> None:
    """A thread then counts as blocked until it runs."""
    events = [(1100, 7, ENTER), *bio(1200, 1500), OUT, IN, (1900, 7, LEAVE)]
    assert sums(converted(tmp_path, events)) == {
        "before submit": 100,
        "writeback": 300,
        "completion": 200,
        "after completion": 200,
    }


def test_a_thread_in_a_call_may_ask_for_a_commit_in_a_sync(tmp_path: Path) -> None:
    """The begin of its sync function was lost. Nobody else is known to have started the commit."""
    request = begin("commit_request", f" dev={DEV} tid=5 expires=100 now=1")
    commit = [(us, 99, step(name)) for name, us in COMMIT.items()]
    for events, expected in (
        ([(100, 7, "sys_fsync(fd: 3)"), (110, 7, ENTER), (120, 7, request)], "sync"),
        ([(100, 7, "sys_fsync(fd: 3)"), (120, 7, request)], None),
        ([(120, 7, request)], "other"),
    ):
        result = converted(tmp_path, [*events, *commit, (500, 7, LEAVE)])
        assert column(result["journal"], "started_by") == [expected]
