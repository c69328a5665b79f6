"""Logs of applications as marks: --marks LOG."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from syncline.errors import InputError
from syncline.marks import read_marks
from syncline.unread import kinds_of

from tests.coretools import ROOT, tables
from tests.test_commands import run

MS = 10**6
S = 10**9
# `date -u -d 2026-11-29T09:19:17Z +%s`
AT = 1_795_943_957
# Two syncs, of 0.5 s from AT + 0.1 s and of 2 ms from AT + 3 s.
STRACE = f"""\
1000 {AT}.100000 fsync(3</srv/etcd/wal>) = 0 <0.500000>
1000 {AT + 3}.000000 fdatasync(3</srv/etcd/wal>) = 0 <0.002000>
"""
ETCD = (
    '{"level":"info","ts":"2026-11-29T09:00:00.000Z","msg":"became leader"}\n'
    '{"level":"warn","ts":"2026-11-29T09:19:17.600Z","caller":"wal/wal.go:802","msg":"slow fdatasync",'
    '"took":"500.2ms","expected-duration":"100ms"}\n'
    '{"level":"info","ts":"2026-11-29T09:19:18.500Z","msg":"compacted"}\n'
    '{"level":"info","ts":"2026-11-30T09:00:00.000Z","msg":"lost leader"}\n'
)


def _in(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _in("Europe/Berlin", monkeypatch)


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _in("UTC", monkeypatch)


def only(path: Path, line: str) -> tuple[int, str, int | None]:
    path.write_text(line + "\n")
    # 2026-12-01 00:00 UTC
    os.utime(path, (1_796_083_200, 1_796_083_200))
    found = read_marks(str(path))
    assert found.are_times_of_day
    ((ts, name, dur, number),) = found.rows
    assert number == 1
    return ts, name, dur


@pytest.mark.parametrize(
    ("line", "part_ns", "name"),
    [
        ("2026-11-29T09:19:17Z started", 0, "started"),
        ("2026-11-29T09:19:17.672Z started", 672 * MS, "started"),
        ("2026-11-29 09:19:17,672 UTC [102] LOG:  started", 672 * MS, "[102] LOG: started"),
        ("2026-11-29 06:19:17.672 -03 [102] LOG:  started", 672 * MS, "[102] LOG: started"),
        ("[2026-11-29T10:19:17.672+01:00][WARN ] started", 672 * MS, "[WARN ] started"),
        ("2026-11-29T14:49:17.672123456+0530 started", 672_123_456, "started"),
        ("1:M 29 Nov 2026 09:19:17.672 * started", 672 * MS, "* started"),
        ("1.2.3.4 - - [29/Nov/2026:09:19:17 +0000] GET /", 0, "GET /"),
        ("Nov 29 09:19:17 db1 etcd[12]: started", 0, "db1 etcd[12]: started"),
        ("Sun Nov 29 09:19:17 UTC 2026 started", 0, "started"),
        ("Sun Nov 29 09:19:17 2026: started", 0, "started"),
        ("W1129 09:19:17.672123   1 wal.go:802] started", 672_123_000, "1 wal.go:802] started"),
        ("W261129 09:19:17.672123 412 store.go:5 ⋮ [n2] started", 672_123_000, "412 store.go:5 ⋮ [n2] started"),
        (f"{AT}.672 started", 672 * MS, "started"),
        ('{"ts":"2026-11-29T09:19:17.672Z","msg":"started"}', 672 * MS, "started"),
        ('{"time":1795943957672,"msg":"started"}', 672 * MS, "started"),
        ('{"ts":1795943957.672,"msg":"started"}', 672 * MS, "started"),
        ('{"__REALTIME_TIMESTAMP":"1795943957672000","MESSAGE":"started"}', 672 * MS, "started"),
        ('{"t":{"$date":"2026-11-29T09:19:17.672+00:00"},"msg":"started"}', 672 * MS, "started"),
        # A CSV of times of day.
        ("2026-11-29T09:19:17Z,started", 0, "started"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("in_utc")
def test_a_line_is_a_mark_at_its_time_of_day(
    line: str, part_ns: int, name: str, tmp_path: Path
) -> None:
    assert only(tmp_path / "log", line) == (AT * S + part_ns, name, None)


@pytest.mark.parametrize(
    ("text", "length_ns"),
    [
        ("slow fdatasync took 1.25s", 1250 * MS),
        ('apply request took too long (1.28s), expected-duration "100ms"', 1280 * MS),
        ("duration: 123.456 ms  statement: COMMIT", 123_456_000),
        ("flushed, elapsed=1m2.5s", 62_500 * MS),
        ("flush took 850µs", 850_000),
        ("wal: sync duration of 1.2s, expected less than 1s", 1200 * MS),
        ("checkpoint complete: wrote 7 buffers; write=0.453 s, sync=0.305 s, total=1.220 s; x", 1220 * MS),
        ("slow operation observed for _txc_committed_kv, latency = 4.429s, txc = 0x1", 4429 * MS),
        ("disk slowness detected: syncdata on file 1.log has been ongoing for 8.5s", 8500 * MS),
        # What was expected, or is named otherwise, is no duration of the line.
        ("expected-duration 100ms", None),
        ("3 items took part", None),
        ("timeout of 5s", None),
    ],
)  # fmt: skip
def test_a_line_that_says_how_long_it_took_ends_at_its_time(
    text: str, length_ns: int | None, tmp_path: Path
) -> None:
    ts, name, dur = only(tmp_path / "log", f"2026-11-29T09:19:17.672Z {text}")
    assert name == " ".join(text.split())
    if length_ns is None:
        assert (ts, dur) == (AT * S + 672 * MS, None)
    else:
        # It is written up to 1 ms after what it is about.
        assert (ts + dur, dur) == (AT * S + 672 * MS, length_ns + MS)


@pytest.mark.parametrize(
    ("fields", "length_ns"),
    [
        ({"took": "1.25s"}, 1250 * MS),
        ({"duration_ms": 12.5}, 12_500_000),
        ({"durationMillis": 7}, 7 * MS),
        # So does MongoDB, where `attr` is what the line is about.
        ({"attr": {"type": "command", "durationMillis": 7}}, 7 * MS),
        ({"attr": {"attr": {}}}, None),
        # Nobody knows its unit.
        ({"duration": 7}, None),
        ({"expected-duration": "1s"}, None),
    ],
)
def test_durations_in_json(
    fields: dict[str, object], length_ns: int | None, tmp_path: Path
) -> None:
    line = json.dumps({"ts": "2026-11-29T09:19:17.672Z", "msg": "slow"} | fields)
    _, _, dur = only(tmp_path / "log", line)
    assert dur == (None if length_ns is None else length_ns + MS)
    # A time in whole seconds may be a second earlier.
    _, _, dur = only(tmp_path / "log", line.replace(".672Z", "Z"))
    assert dur == (None if length_ns is None else length_ns + S)


@pytest.mark.usefixtures("in_berlin")
def test_a_time_without_a_zone_is_local(tmp_path: Path) -> None:
    """Berlin is one hour ahead of UTC in November."""
    assert only(tmp_path / "log", "2026-11-29 10:19:17 started")[0] == AT * S
    assert only(tmp_path / "log", "2026-11-29 10:19:17 CET started")[0] == AT * S
    assert only(tmp_path / "log", "2026-11-29 10:19:17 INFO started")[0] == AT * S


@pytest.mark.usefixtures("in_berlin")
def test_a_zone_with_several_meanings_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("2026-11-29 10:19:17 IST started\n")
    with pytest.raises(InputError, match=r"log:1: the time zone IST has several meanings"):
        read_marks(str(log))


def test_a_time_without_a_year_is_not_later_than_the_file(tmp_path: Path) -> None:
    """The file is of 2026-12-01, so this line is of 2025."""
    ts, *_ = only(tmp_path / "log", "Dec 31 10:00:00 db1 etcd: started")
    # `date -u -d 2025-12-31T10:00:00Z +%s`
    assert ts == 1_767_175_200 * S


def test_lines_without_a_time_continue_the_one_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "2026-11-29T09:19:17Z panic\n  at a.go:1\n2026-11-29T09:19:18Z up\n2026-11-29T25:00:00Z no\n"
        "2026-11-29T09:19:19Z on\n"
    )
    assert read_marks(str(log)).untimed == 2
    assert [(mark.name, mark.line) for mark in read_marks(str(log)).rows] == [("panic", 1), ("up", 3), ("on", 5)]  # fmt: skip


# In tests/data/unread: samples of the tools' own lines, and when they say that something began and how long it took.
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("etcd.txt", [("slow fdatasync", 1_264_337_456), ("apply request took too long", 1281 * MS)]),
        ("redis.txt", [("* Asynchronous AOF fsync is taking too long (disk is busy?).", None)]),
        (
            "pg_checkpoints.txt",
            [("[102] LOG: checkpoint starting: time", None), ("[102] LOG: checkpoint complete:", 1221 * MS)],
        ),
    ],
)  # fmt: skip
def test_logs_of_databases(name: str, rows: list[tuple[str, int | None]]) -> None:
    found = read_marks(str(ROOT / "tests" / "data" / "unread" / name))
    assert found.are_times_of_day
    assert len(found.rows) == len(rows)
    for mark, (begin, length) in zip(found.rows, rows, strict=True):
        assert mark.name.startswith(begin)
        assert mark.dur_ns == length


@pytest.mark.usefixtures("in_berlin")
def test_the_times_of_cockroachdb_are_in_utc(tmp_path: Path) -> None:
    assert only(tmp_path / "log", "W261129 09:19:17.000000 412 store.go:5 started")[0] == AT * S


def test_each_log_that_is_to_be_marks_can_be_read_as_marks() -> None:
    """The command that a refusal names (`--marks LOG`) takes each kind of log for which it is named."""
    names = [
        path.name
        for path in (ROOT / "tests" / "data" / "unread").glob("*.txt")
        if any("--marks" in kind.record for kind in kinds_of(path.read_bytes()))
    ]
    assert len(names) >= 12
    for name in names:
        found = read_marks(str(ROOT / "tests" / "data" / "unread" / name))
        assert found.are_times_of_day, name
        assert found.untimed == 0, name


@pytest.mark.parametrize(
    "line",
    [
        # Go prints the year 1 where it has no time.
        "0001-01-01T00:00:00Z never",
        "9999-12-31T00:00:00Z later",
        '{"ts":"0001-01-01T00:00:00Z","msg":"never"}',
        '{"ts":9999999999999999999,"msg":"later"}',
        '{"ts":1e999,"msg":"later"}',
    ],
)
def test_a_time_of_no_age_is_none(line: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"2026-11-29T09:19:17Z a\n{line}\n2026-11-29T09:19:18Z b\n")
    found = read_marks(str(log))
    assert ([mark.name for mark in found.rows], found.untimed) == (["a", "b"], 1)


@pytest.mark.parametrize(
    "text", ["took 99999999999h", '{"duration_ms":1e300}', '{"duration_ms":1e999}']
)
def test_nothing_took_longer_than_since_1970(text: str, tmp_path: Path) -> None:
    line = f"2026-11-29T09:19:17Z {text}"
    if text.startswith("{"):
        line = '{"ts":"2026-11-29T09:19:17Z",' + text[1:]
    ts, _, dur = only(tmp_path / "log", line)
    assert (ts, dur) == (AT * S, None)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    log = tmp_path / "run.strace"
    log.write_text(STRACE)
    (tmp_path / "etcd.log").write_text(ETCD)
    return log


def test_syncs_are_counted_in_the_lines_that_they_are_about(recorded: Path) -> None:
    """The first sync ends at AT + 0.6 s, when the line says that it took 500.2 ms. The second sync comes after the last line of its time."""
    expected = [
        # It begins 501.2 ms before AT + 0.6 s. The other lasts from AT + 1.5 s until the end, at AT + 3.002 s.
        ("slow fdatasync", AT * S + 98_800_000, 501_200_000, 1, 500 * MS),
        ("compacted", AT * S + 1500 * MS, 1502 * MS, 1, 2 * MS),
    ]
    marks = str(recorded.parent / "etcd.log")
    trace = str(recorded.parent / "run.pftrace")
    assert run("convert", str(recorded), "-o", trace).returncode == 0
    for path in (str(recorded), trace):
        done = run("report", path, "marks", "--marks", marks, "--format", "json")
        # Two of the four lines are of other hours.
        note = (
            f"note: 2 lines of {marks} are marks; left out: 2 of another time than the recording\n"
        )
        assert (done.returncode, done.stderr) == (0, note)
        found = json.loads(done.stdout)["rows"]
        rows = [
            (row["name"], row["ts_ns"], row["dur_ns"], row["syncs"], row["syscall_sum_ns"])
            for row in found
        ]
        assert rows == expected
    # The tables hold them, too.
    folder = recorded.parent / "tables"
    assert run("convert", str(recorded), "-o", f"{folder}/", "--marks", marks).returncode == 0
    stored = [(row["name"], row["ts_ns"], row["dur_ns"]) for row in tables(folder)["mark"]]
    assert stored == [row[:3] for row in expected]


def test_a_log_of_another_day_is_loud(recorded: Path) -> None:
    marks = recorded.parent / "etcd.log"
    marks.write_text(ETCD.replace("2026-11-29T09:19", "2026-11-28T09:19"))
    trace = str(recorded.parent / "run.pftrace")
    assert run("convert", str(recorded), "-o", trace).returncode == 0
    for path in (str(recorded), trace):
        done = run("report", path, "marks", "--marks", str(marks), "--format", "json")
        assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, [])
        assert f"no line of {marks} is within the recording" in done.stderr
        assert "which is from 2026-11-29 09:19:17 UTC to 2026-11-29 09:19:20 UTC" in done.stderr
        assert "TZ=Europe/Berlin syncline" in done.stderr


def test_a_recording_without_a_time_of_day_takes_no_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "app-7 [000] ..... 100.000100: sys_fsync(fd: 3)\napp-7 [000] ..... 100.500000: sys_fsync -> 0x0\n"
    )
    (tmp_path / "etcd.log").write_text(ETCD)
    trace = tmp_path / "run.pftrace"
    assert run("convert", str(log), "-o", str(trace)).returncode == 0
    for path in (log, trace):
        done = run("report", str(path), "marks", "--marks", str(tmp_path / "etcd.log"))
        assert (done.returncode, done.stdout) == (3, "")
        assert "does not say what time of day it was" in done.stderr
        assert "time_ns,name" in done.stderr
