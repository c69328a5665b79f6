"""One text that holds a part of itself again, because it was pasted with an overlap or appended to itself: each fact is used once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import Rows, core
from tests.missing.oracle import compare, convert
from tests.missing.recordings import Recording, recordings
from tests.test_commands import ok

TABLES = ("sync", "bio", "call", "wait", "phase", "journal")
CALL = (
    "              wl-7  [000] ..... 100.0{n}0001: sys_enter_fsync: fd: 0x3",
    "              wl-7  [000] ..... 100.0{n}1001: sync_start: id={n} start=0 end=9 datasync=0 dev=254,16 ino=12 path=/f",
    "              wl-7  [000] ..... 100.0{n}5001: sync_end: id={n} ret=0",
    "              wl-7  [000] ..... 100.0{n}6001: sys_exit_fsync: 0x0",
)
RING = [line.format(n=10 + n) for n in range(3) for line in CALL]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def duplicates(tables: dict[str, Rows]) -> int:
    return sum(row["count"] for row in tables["loss"] if row["reason"] == "duplicate")


def columns(rows: Rows, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("name", list(recordings()))
def test_a_text_that_overlaps_itself_gives_the_rows_of_the_recording(
    name: str, tmp_path: Path
) -> None:
    """Two pieces of a recording behind one another, the second one with the header and without."""
    recording: Recording = recordings()[name]
    events = recording.events
    whole = convert(tmp_path, recording.text(events), recording.source)
    rng = random.Random(name)
    cuts = [(0, len(events))]
    for _ in range(6):
        first = rng.randrange(len(events))
        # Single lines, and long parts.
        length = rng.choice([1, rng.randint(1, len(events))])
        cuts.append((first, min(first + length, len(events))))
    for first, last in cuts:
        for head in {b"", recording.head}:
            before, after = (
                b"".join(event.text for event in part) for part in (events[:last], events[first:])
            )
            log = recording.head + before + head + after + recording.tail
            found = convert(tmp_path, log, recording.source)
            assert not compare(whole, found), (first, last, head)


@pytest.mark.parametrize(("first", "last"), [(4, 8), (2, 7), (0, 12), (4, 5)])
def test_a_repeated_part_is_counted(first: int, last: int, tmp_path: Path) -> None:
    """Lines `first` to `last` are there twice. Each line is an event of a call or a request."""
    tables = core(tmp_path, text(RING[:last] + RING[first:]))
    # From its entry at .0xx0001 s to its exit at .0xx6001, and to its end at .0xx5001.
    expected = [(10 + n, 600_000, 500_000, "exact", None) for n in range(3)]
    assert (
        columns(tables["sync"], "id", "syscall_ns", "dur_ns", "confidence", "incomplete")
        == expected
    )
    assert len(tables["call"]) == 3
    assert duplicates(tables) == last - first


@pytest.mark.parametrize(
    ("at", "reason"), [(5, "duplicate_start"), (6, "duplicate_end"), (7, "unmatched_exit")]
)
def test_an_end_that_is_repeated_is_no_other_sync(at: int, reason: str, tmp_path: Path) -> None:
    tables = core(tmp_path, text(RING[: at + 1] + RING[at:]))
    assert columns(tables["sync"], "id", "syscall_ns") == [(10 + n, 600_000) for n in range(3)]
    assert [(row["reason"], row["count"]) for row in tables["loss"]] == [(reason, 1)]


def test_a_recording_that_is_there_three_times(tmp_path: Path) -> None:
    tables = core(tmp_path, text(RING * 3))
    assert columns(tables["sync"], "id", "syscall_ns") == [(10 + n, 600_000) for n in range(3)]
    assert duplicates(tables) == 2 * len(RING)


def test_the_later_piece_may_come_first(tmp_path: Path) -> None:
    tables = core(tmp_path, text(RING[4:] + RING[:8]))
    assert columns(tables["sync"], "id", "syscall_ns") == [(10 + n, 600_000) for n in range(3)]
    assert duplicates(tables) == 4


def test_equal_lines_of_a_coarse_clock_are_all_used(tmp_path: Path) -> None:
    """Of whole seconds: a thread makes the same call several times within one of them."""
    tables = core(tmp_path, text(["7  12:00:05 fsync(3) = 0", "7  12:00:05 fsync(3) = 0"]))
    assert len(tables["sync"]) == len(tables["call"]) == 2
    assert duplicates(tables) == 0


def test_entries_within_a_microsecond_are_all_used_without_returns(tmp_path: Path) -> None:
    """A loop syncs a clean file, and the recorder records no return: nothing says that a line is there twice."""
    entry = "              wl-7  [000] ..... 100.00000{}: sys_fsync(fd: 3)"
    entries = [entry.format(n) for n in (1, 1, 2, 2, 2, 3)]
    tables = core(tmp_path, text(entries))
    assert len(tables["sync"]) == len(tables["call"]) == 6
    assert duplicates(tables) == 0
    # With returns, the thread had returned between two of them.
    last = "              wl-7  [000] ..... 100.000005: sys_fsync -> 0x0"
    tables = core(tmp_path, text([*entries, last]))
    assert len(tables["call"]) == 3
    assert duplicates(tables) == 3


def test_starts_within_a_microsecond_are_no_duplicates_without_ends(tmp_path: Path) -> None:
    start = "              wl-7  [000] ..... 100.000001: ext4_sync_file_enter: dev 8,0 ino 12 parent 2 datasync 1"
    assert duplicates(core(tmp_path, text([start, start]))) == 0
    end = "              wl-7  [000] ..... 100.000002: ext4_sync_file_exit: dev 8,0 ino 12 ret 0"
    assert duplicates(core(tmp_path, text([start, start, end]))) == 1


def test_the_low_level_log_holds_a_repeated_part_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text(RING[:8] + RING[4:]))
    other = [line.replace("wl-7", "wl-8").replace("id=1", "id=2") for line in RING]
    (tmp_path / "b.txt").write_bytes(text(other))
    ok("convert", "a.txt", "b.txt", "-o", "both.events.jsonl", cwd=tmp_path)
    events = (tmp_path / "both.events.jsonl").read_text()
    # Eight lines of `a` and four of its second part; twelve of `b`.
    assert events.count('"tid":7') + events.count('"tid": 7') == 12
    assert events.count('"tid":8') + events.count('"tid": 8') == 12


STRACE = [
    '7  1795196979.000001 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0644) = 3 <0.000100>',
    "7  1795196979.100001 dup(3) = 4 <0.000010>",
    "7  1795196979.200001 close(3) = 0 <0.000010>",
    '7  1795196979.300001 openat(AT_FDCWD, "/d/b", O_RDWR|O_CREAT, 0644) = 3 <0.000100>',
    "7  1795196979.400001 fsync(3) = 0 <0.001000>",
    "7  1795196979.500001 fsync(4) = 0 <0.002000>",
]


@pytest.mark.parametrize(("first", "last"), [(1, 5), (1, 4), (0, 4), (2, 6), (4, 5), (0, 6)])
def test_descriptors_are_those_of_the_first_time(first: int, last: int, tmp_path: Path) -> None:
    """When `dup(3)` is read again, descriptor 3 is another file. After the repeated lines, 4 is /d/a as before."""
    tables = core(tmp_path, text(STRACE[:last] + STRACE[first:]))
    expected = [("/d/b", 1_000_000), ("/d/a", 2_000_000)]
    assert columns(tables["sync"], "path", "dur_ns") == expected


SECONDS = [
    '7  12:00:05 openat(AT_FDCWD, "/d/a", O_RDWR) = 3 <0.0001>',
    "7  12:00:06 fsync(3) = 0 <0.000300>",
    "7  12:00:07 close(3) = 0 <0.0001>",
    '7  12:00:08 openat(AT_FDCWD, "/d/b", O_RDWR) = 3 <0.0001>',
    "7  12:00:08 fsync(3) = 0 <0.000320>",
    "7  12:00:08 close(3) = 0 <0.0001>",
    '7  12:00:08 openat(AT_FDCWD, "/d/c", O_RDWR) = 3 <0.0001>',
    "7  12:00:09 fsync(3) = 0 <0.000330>",
]


@pytest.mark.parametrize("last", [4, 5, 6, 7])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_repeat_may_end_within_a_second(first: int, last: int, tmp_path: Path) -> None:
    """The lines of 12:00:08 that come after the repeated ones are new: what they say of descriptor 3 holds at 12:00:09."""
    tables = core(tmp_path, text(SECONDS[:last] + SECONDS[first:]))
    expected = [("/d/a", 300_000), ("/d/b", 320_000), ("/d/c", 330_000)]
    assert columns(tables["sync"], "path", "syscall_ns") == expected


def test_descriptors_of_an_earlier_recording_are_not_those_of_a_later_one(tmp_path: Path) -> None:
    """The later recording comes first in the text. No line of the other one says what its descriptor 3 is."""
    earlier = "7  1795190000.400001 fsync(3) = 0 <0.001000>"
    tables = core(tmp_path, text([*STRACE[:5], earlier]))
    assert columns(tables["sync"], "path") == [(None,), ("/d/b",)]
