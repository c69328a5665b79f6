"""Several logs of one run: no call, sync or bio vanishes or is there twice, whatever is cut, lost or measured by two clocks."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.cut_logs import (
    RECORDINGS,
    Cut,
    Tables,
    compare,
    convert,
    difference,
    usable_cuts,
    without_numbers,
)
from tests.test_commands import fails, ok

CALL = (
    "              wl-7  [000] ..... 100.0{n}0000: sys_enter_fsync: fd: 0x3",
    "              wl-7  [000] ..... 100.0{n}1000: sync_start: id={n} start=0 end=9 datasync=0 dev=254,16 ino=12 path=/f",
    "              wl-7  [000] ..... 100.0{n}5000: sync_end: id={n} ret=0",
    "              wl-7  [000] ..... 100.0{n}6000: sys_exit_fsync: 0x0",
)


def ring(first: int, last: int) -> bytes:
    """Some lines of a text of the ring buffer, in which each sync has four, by their numbers."""
    lines = [line.format(n=10 + n) for n in range(4) for line in CALL]
    return "".join(f"{line}\n" for line in lines[first:last]).encode()


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def columns(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def in_any_order(folder: Path, *texts: bytes) -> tuple[Tables, dict[str, int]]:
    """Converts some inputs in all orders of their names, which must not matter."""
    first, *others = (convert(folder, list(order)) for order in itertools.permutations(texts))
    for other in others:
        assert without_numbers(other[0]) == without_numbers(first[0])
        assert other[1] == first[1]
    return first


# Cuts of recordings.


@pytest.mark.parametrize("seed", range(8))
def test_pieces_of_a_recording_give_its_rows(seed: int, tmp_path: Path) -> None:
    """Two to four pieces, with and without headers, that overlap by some events, in any order."""
    rng = random.Random(seed)
    for cut in itertools.islice(usable_cuts(rng, list(RECORDINGS)), 40):
        try:
            found = difference(cut, tmp_path)
        except Exception as error:
            # A piece may hold no event, or none without the header.
            assert error.args[-1] == "input", cut
            continue
        assert not found.is_silent, (cut, found)


@pytest.mark.parametrize(
    "cuts",
    [
        [(0, 8), (4, 12), (8, 16)],
        [(0, 7), (5, 11), (9, 16)],
        [(4, 7), (5, 11), (9, 12)],
        [(0, 3), (2, 6), (5, 9), (8, 16)],
        [(0, 16), (3, 9), (5, 12)],
    ],
)
def test_texts_that_overlap_give_the_rows_of_the_whole(
    cuts: list[tuple[int, int]], tmp_path: Path
) -> None:
    first, last = min(a for a, _ in cuts), max(b for _, b in cuts)
    whole = convert(tmp_path, [ring(first, last)])
    found = in_any_order(tmp_path, *(ring(*cut) for cut in cuts))
    assert not compare(whole, found).unequal
    assert len(found[0]["call"]) == (last - first) // 4


def test_a_recorder_that_is_started_again_continues_its_log(tmp_path: Path) -> None:
    """The second log has a header of its own, and the end of the sync of the first."""
    head = "TIME PID COMM EVENT DATA"
    first = (
        "100000000000 7 wl fsync",
        "100000010000 7 wl start id 1 start 0 end 9 datasync 0 path /d/f",
    )
    second = (
        "100500000000 7 wl exit id 1 ret 0",
        "101000000000 7 wl fsync",
        "101000010000 7 wl start id 2 start 0 end 9 datasync 0 path /d/g",
        "101001010000 7 wl exit id 2 ret 0",
    )
    tables, lost = in_any_order(tmp_path, text(head, *first), text(head, *second))
    assert not lost
    assert columns(tables["sync"], "ts_ns", "op", "dur_ns", "syscall_ns") == [
        (100_000_000_000, "fsync", 500_000_000, 500_000_000),
        (101_000_000_000, "fsync", 1_010_000, 1_010_000),
    ]
    assert len(tables["call"]) == 2


def test_a_piece_that_begins_inside_a_time_keeps_the_order_of_the_log(tmp_path: Path) -> None:
    """Times are cut to µs. The exit comes before the entry of the next call, also where only one piece has both."""
    lines = (
        "  wl-7  [000] ..... 100.000000: sys_enter_fsync: fd: 0x3",
        "  wl-7  [000] ..... 100.000001: sync_start: id=1 start=0 end=9 datasync=0 dev=254,16 ino=12 path=/f",
        "  wl-7  [000] ..... 100.000002: sync_end: id=1 ret=0",
        "  wl-7  [000] ..... 100.000002: sys_exit_fsync: 0x0",
        "  wl-7  [000] ..... 100.000002: sys_enter_fsync: fd: 0x3",
        "  wl-7  [000] ..... 100.000002: sync_start: id=2 start=0 end=9 datasync=0 dev=254,16 ino=12 path=/f",
        "  wl-7  [000] ..... 100.000009: sync_end: id=2 ret=0",
        "  wl-7  [000] ..... 100.000010: sys_exit_fsync: 0x0",
    )
    whole = convert(tmp_path, [text(*lines)])
    assert columns(whole[0]["sync"], "dur_ns", "syscall_ns") == [(2000, 2000), (7000, 8000)]
    for begin, end in itertools.product(range(1, 7), range(2, 8)):
        if begin <= end:
            found = in_any_order(tmp_path, text(*lines[:end]), text(*lines[begin:]))
            assert not compare(whole, found).unequal, (begin, end)


def test_a_call_that_is_cut_off_by_overlapping_pieces_of_strace_keeps_its_path(
    tmp_path: Path,
) -> None:
    lines = (
        '7  1795132800.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.000010>',
        "8  1795132800.100000 read(0, <unfinished ...>",
        "7  1795132800.200000 fsync(3 <unfinished ...>",
        "8  1795132800.250000 <... read resumed>) = 0 <0.150000>",
        "7  1795132800.300000 <... fsync resumed>) = 0 <0.090000>",
        "7  1795132800.400000 fsync(3) = 0 <0.010000>",
    )
    expected = [
        ("/d/f", 1_795_132_800_200_000_000, 90_000_000),
        ("/d/f", 1_795_132_800_400_000_000, 10_000_000),
    ]
    for begin, end in itertools.product(range(1, 6), range(2, 6)):
        if begin <= end:
            tables, _ = in_any_order(tmp_path, text(*lines[:end]), text(*lines[begin:]))
            assert columns(tables["sync"], "path", "ts_ns", "dur_ns") == expected, (begin, end)


# Two recorders of one run.


def test_calls_of_two_recorders_may_have_equal_times(tmp_path: Path) -> None:
    """The second call has the same times in both logs, the first one does not, so two recorders have written them."""
    calls = (
        "  wl-2293  [000]   231.101752: sys_enter_fsync:      fd: 0x00000003",
        "  wl-2293  [000]   231.112590: sys_exit_fsync:       0x0",
        "  wl-2293  [000]   231.112906: sys_enter_fsync:      fd: 0x00000003",
        "  wl-2293  [000]   231.115050: sys_exit_fsync:       0x0",
    )
    both = (
        "  wl-2293  [000]   231.101753: sys_enter_fsync:      fd: 0x00000003",
        "  wl-2293  [000]   231.102075: sync_start: id=1958 start=0 end=9 datasync=0 dev=254,16 ino=123 path=/f",
        "  wl-2293  [000]   231.112569: sync_end:             id=1958 ret=0",
        "  wl-2293  [000]   231.112591: sys_exit_fsync:       0x0",
        "  wl-2293  [000]   231.112906: sys_enter_fsync:      fd: 0x00000003",
        "  wl-2293  [000]   231.112952: sync_start: id=1959 start=0 end=9 datasync=0 dev=254,16 ino=123 path=/f",
        "  wl-2293  [000]   231.115044: sync_end:             id=1959 ret=0",
        "  wl-2293  [000]   231.115050: sys_exit_fsync:       0x0",
    )
    tables, lost = in_any_order(tmp_path, text(*calls), text(*both))
    assert not lost
    assert len(tables["call"]) == 2
    assert columns(tables["sync"], "id", "op", "ts_ns", "dur_ns", "syscall_ns")[1] == (
        *(1959, "fsync", 231_112_906_000),
        *(2_138_000, 2_144_000),
    )


@pytest.mark.parametrize("skew_us", [-150, -20, 0, 20, 150])
def test_calls_and_requests_on_two_clocks_are_joined(skew_us: int, tmp_path: Path) -> None:
    """The calls are of one input, and the requests of another one, whose clock may be ahead or behind."""
    calls, requests = [], []
    for n in (1, 2):
        begin = n * 100_000
        for us, what in (
            (begin, "sys_enter_fsync: fd: 0x00000003"),
            (begin + 3000, "sys_exit_fsync: 0x0"),
        ):
            calls.append(f"  wl-7  [000] ..... 200.{us:06}: {what}")
        for us, what in (
            (
                begin + 10,
                f"sync_start: id={n} start=0 end=9 datasync=0 dev=254,16 ino=12 path=/d/f",
            ),
            (begin + 2990, f"sync_end: id={n} ret=0"),
        ):
            requests.append(f"  wl-7  [000] ..... 200.{us + skew_us:06}: {what}")
    tables, lost = in_any_order(tmp_path, text(*calls), text(*requests))
    assert not lost
    # By the clock of the requests, one begins before its call, or ends after it.
    is_seen = abs(skew_us) > 10
    assert (
        columns(tables["sync"], "op", "syscall_ns", "dur_ns", "incomplete", "confidence")
        == [("fsync", 3_000_000, (2990 + skew_us) * 1000, None, "inferred" if is_seen else "exact")]
        * 2
    )
    assert len(tables["call"]) == 2


def test_a_request_whose_end_is_lost_takes_no_call_from_the_next_one(tmp_path: Path) -> None:
    """The first request has no call and no end. The call begins just after it, and the request of the call follows."""
    start = "sync_start: id={} start=0 end=9 datasync=0 dev=254,16 ino=12 path=/d/f"
    calls = (
        "  wl-7  [000] ..... 200.000100: sys_enter_fsync: fd: 0x00000003",
        "  wl-7  [000] ..... 200.003000: sys_exit_fsync: 0x0",
    )
    requests = (
        f"  wl-7  [000] ..... 200.000050: {start.format(1)}",
        f"  wl-7  [000] ..... 200.000110: {start.format(2)}",
        "  wl-7  [000] ..... 200.002990: sync_end: id=2 ret=0",
    )
    tables, lost = in_any_order(tmp_path, text(*calls), text(*requests))
    assert columns(tables["sync"], "id", "op", "dur_ns", "incomplete") == [
        (1, None, None, "end"),
        (2, "fsync", 2_890_000, None),
    ]
    assert lost == {"end_missing": 1}


def test_folios_that_only_one_log_records_are_used(tmp_path: Path) -> None:
    """Both logs have the start and the end of the sync, one by the file system's own events."""
    folio = "bio_add_folio: id=1 bio=0xff11000000896e40 start=0 len=4096 dev=254,16 ino=12"
    first = (
        "  wl-7  [000] ..... 100.000005: ext4_sync_file_enter: dev 254,16 ino 12 parent 2 datasync 0",
        f"  wl-7  [000] ..... 100.000020: {folio}",
        "  wl-7  [000] ..... 100.001012: ext4_sync_file_exit:  dev 254,16 ino 12 ret 0",
    )
    second = (
        "  wl-7  [000] ..... 100.000000: sys_enter_fsync: fd: 0x00000003",
        "  wl-7  [000] ..... 100.000010: sync_start: id=1 start=0 end=9 datasync=0 dev=254,16 ino=12 path=/d/f",
        "  wl-7  [000] ..... 100.000030: bio_submit: id=1 bio=0xff11000000896e40 dev=254,16 sector=8 bytes=4096 opf=0x801",
        "  <idle>-0  [000] d.h.. 100.001000: bio_complete: bio=0xff11000000896e40 status=0",
        "  wl-7  [000] ..... 100.001010: sync_end: id=1 ret=0",
        "  wl-7  [000] ..... 100.001020: sys_exit_fsync: 0x0",
    )
    tables, lost = in_any_order(tmp_path, text(*first), text(*second))
    assert not lost
    assert columns(tables["sync"], "bytes", "folios", "bios", "incomplete") == [(4096, 1, 1, None)]


def test_a_duplicate_has_a_partner_and_what_has_none_is_a_loss(tmp_path: Path) -> None:
    """perf's text lacks a sync that the ring buffer has. The log with authority is the one that begins first."""
    ring_log, perf_log = [], ["# ========", "# clockid: boottime (4)", "# ========"]
    for n in range(5):
        for us, what in (
            (0, "sys_enter_fsync: fd: 0x00000003"),
            (10, "ext4_sync_file_enter: dev 254,16 ino 12 parent 2 datasync 0"),
            (900, "ext4_sync_file_exit: dev 254,16 ino 12 ret 0"),
            (1000, "sys_exit_fsync: 0x0"),
        ):
            at = f"200.{n}{us:05}"
            if n != 2:
                ring_log.append(f"  wl-7  [000] ..... {at}: {what}")
            group = "syscalls" if what.startswith("sys") else "ext4"
            perf_log.append(f"wl     7 [000]   {at}900:      {group}:{what}")
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, lines in zip(paths, (ring_log, perf_log), strict=True):
        path.write_bytes(text(*lines))
    for order in (paths, paths[::-1]):
        arguments = ("convert", "-q", *order, "--offset", f"{paths[1]}=0")
        ok(*arguments, "-o", f"{tmp_path}/out/")
        counts = {
            row["reason"]: (row["count"], row["example"])
            for row in parquet.read_table(tmp_path / "out/syncline_loss.parquet").to_pylist()
        }
        # Both logs have the call, its return, the start and the end of four syncs.
        assert counts["duplicate"] == (16, f"{paths[1]}:4: fsync, as {paths[0]}:1")
        # The start and the end of the fifth. Its call is kept.
        assert counts["superseded_event"][0] == 2
        assert set(counts) == {"duplicate", "superseded_event", "unmatched_call"}
        rows = parquet.read_table(tmp_path / "out/syncline_call.parquet").to_pylist()
        assert sorted(row["unmatched"] for row in rows) == [False] * 4 + [True]
        assert "more" in fails(4, *arguments, "--max-loss", "0", "-o", tmp_path / "x.csv")


# The order of the inputs.


def test_the_order_of_inputs_does_not_decide_their_formats(tmp_path: Path) -> None:
    """Lines of blkparse begin with spaces where the device number is short, as lines of a stack do."""
    thesis = text(
        "TIME PID COMM EVENT DATA",
        "272776674233 2393 wl fsync",
        "272776684233 2393 wl start id 1 start 0 end 9 datasync 0 path /d/f",
        "272779664233 2393 wl exit id 1 ret 0",
    )
    for dev in ("  8,0 ", "254,16"):
        blkparse = text(
            f"{dev}   0        1   272.777206591  2393  Q  WS 792576 + 8 [wl]",
            f"{dev}   0        2   272.777268965  2393  D  WS 792576 + 8 [wl]",
            f"{dev}   0        3   272.777777247     0  C  WS 792576 + 8 [0]",
        )
        found = [
            convert(tmp_path, list(order), needs_offset=True)
            for order in ([thesis, blkparse], [blkparse, thesis])
        ]
        assert without_numbers(found[0][0]) == without_numbers(found[1][0])
        for tables, lost in found:
            assert not lost
            assert columns(tables["bio"], "ts_ns", "dur_ns", "bytes") == [
                (272_777_206_591, 570_656, 4096)
            ]
            assert len(tables["sync"]) == 1


# One of two records of a fact is lost.

BOTH = (
    "  wl-7  [000] ..... 100.000000: sys_enter_fsync:      fd: 0x00000003",
    "  wl-7  [000] ..... 100.000005: ext4_sync_file_enter: dev 254,16 ino 12 parent 2 datasync 0",
    "  wl-7  [000] ..... 100.000010: sync_start:           id=1 start=0 end=9 datasync=0 dev=254,16 ino=12 path=/d/f",
    "  wl-7  [000] ..... 100.000020: bio_add_folio:        id=1 bio=0xff11000000896e40 start=0 len=4096 dev=254,16 ino=12",
    "  wl-7  [000] ..... 100.000030: bio_submit:           id=1 bio=0xff11000000896e40 dev=254,16 sector=8 bytes=4096 opf=0x801",
    "  wl-7  [000] ..... 100.000035: block_bio_queue:      254,16 WS 8 + 8 [wl]",
    "  <idle>-0  [000] d.h.. 100.000900: block_rq_complete:    254,16 WS () 8 + 8 0x2,0,4 [0]",
    "  <idle>-0  [000] d.h.. 100.001000: bio_complete:         bio=0xff11000000896e40 status=0",
    "  wl-7  [000] ..... 100.001010: sync_end:             id=1 ret=0",
    "  wl-7  [000] ..... 100.001012: ext4_sync_file_exit:  dev 254,16 ino 12 ret 0",
    "  wl-7  [000] ..... 100.001020: sys_exit_fsync:       0x0",
)


@pytest.mark.parametrize("lost_line", range(len(BOTH)))
@pytest.mark.parametrize("outer", ["ext4", "patch"])
def test_a_lost_event_makes_no_second_sync_and_no_second_bio(
    lost_line: int, outer: str, tmp_path: Path
) -> None:
    """The patch, ext4 and the block layer report the same. Either of the first two may report the outer function."""
    lines = list(BOTH)
    if outer == "patch":
        # sync_start before ext4_sync_file_enter, and sync_end after ext4_sync_file_exit.
        lines[1:3] = [
            lines[2].replace("100.000010", "100.000005"),
            lines[1].replace("100.000005", "100.000010"),
        ]
        lines[8:10] = [
            lines[9].replace("100.001012", "100.001010"),
            lines[8].replace("100.001010", "100.001012"),
        ]
    whole, _ = convert(tmp_path, [text(*lines)])
    del lines[lost_line]
    tables, _ = convert(tmp_path, [text(*lines)])
    assert len(whole["sync"]) == len(tables["sync"]) == 1
    assert len(whole["bio"]) == len(tables["bio"]) == 1
    assert tables["sync"][0]["bios"] == 1
    assert len(tables["call"]) == (lost_line != 0)
    is_marked = tables["sync"][0]["incomplete"] is not None
    assert is_marked or tables["sync"][0]["dur_ns"] == whole["sync"][0]["dur_ns"]


# Calls whose entry is not in the log.

HEAD = "TIME PID COMM EVENT DATA"
REQUEST = ("{} 7 {} start id {} start 0 end 9 datasync 0 path /d/f", "{} 7 {} exit id {} ret 0")


def sync(at: int, number: int, *, op: str = "", exit_op: str = "", comm: str = "wl") -> list[str]:
    """A sync of thread 7 that begins at `at` µs, with the entry or the exit of its call."""
    start, end = REQUEST
    lines = [f"{at * 1000} 7 {comm} {op}"] if op else []
    lines += [
        start.format((at + 10) * 1000, comm, number),
        end.format((at + 900) * 1000, comm, number),
    ]
    return lines + ([f"{(at + 920) * 1000} 7 {comm} {exit_op}_exit ret 0"] if exit_op else [])


def found_syncs(folder: Path, *syncs: list[str]) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    tables, lost = convert(folder, [text(HEAD, *itertools.chain(*syncs))])
    rows = sorted(tables["sync"], key=lambda row: row["sync_id"])
    return columns(rows, "op", "dur_ns", "syscall_ns", "incomplete"), lost


def test_an_exit_without_an_entry_takes_the_duration_from_its_request(tmp_path: Path) -> None:
    whole = ("fsync", 900_000, 920_000, None)
    called = {"op": "fsync", "exit_op": "fsync"}
    # At the beginning of the log, and later.
    assert found_syncs(tmp_path, sync(0, 1, exit_op="fsync"), sync(5000, 2, **called)) == (
        [("fsync", None, None, "call"), whole],
        {"call_missing": 1},
    )
    rows, lost = found_syncs(
        tmp_path, sync(0, 1, **called), sync(5000, 2, exit_op="fdatasync"), sync(9000, 3, **called)
    )
    assert rows == [whole, ("fdatasync", None, None, "call"), whole]
    assert lost == {"call_missing": 1}
    # Only the last request was in the call. All of them may have been in a call that syncs everything.
    without, later = sync(5000, 2), sync(9000, 3, exit_op="fsync")
    rows, lost = found_syncs(tmp_path, sync(0, 1, **called), without, later)
    assert rows == [whole, (None, 890_000, None, None), ("fsync", None, None, "call")]
    rows, lost = found_syncs(
        tmp_path, sync(0, 1, **called), without, sync(9000, 3, exit_op="syncfs")
    )
    assert rows == [whole, (None, None, None, "call"), (None, None, None, "call")]
    assert lost == {"call_missing": 2}


def test_the_first_request_of_a_thread_that_makes_calls_later_may_have_lost_its_own(
    tmp_path: Path,
) -> None:
    """The log has no exits, which would say it."""
    whole = ("fsync", 900_000, 900_000, None)
    doubtful, without = (None, None, None, "call"), (None, 890_000, None, None)
    called = sync(5000, 2, op="fsync")
    assert found_syncs(tmp_path, sync(0, 1), called) == ([doubtful, whole], {"call_missing": 1})
    # It begins long after the log: its call would be in the log.
    other = ["0 9 other bio_complete bio 0x5"]
    rows, _ = found_syncs(tmp_path, other, sync(2_000_000, 1), sync(2_005_000, 2, op="fsync"))
    assert rows == [without, whole]
    # A later request of the thread without a call has none.
    rows, lost = found_syncs(tmp_path, called, sync(9000, 3))
    assert (rows, lost) == ([whole, without], {})
    # Only another thread makes calls.
    elsewhere = [line.replace(" 7 wl", " 8 ab") for line in sync(5000, 2, op="fsync")]
    assert found_syncs(tmp_path, sync(0, 1), elsewhere)[0] == [doubtful, whole]
    assert found_syncs(tmp_path, sync(0, 1, comm="iou-wrk-6"), elsewhere)[0] == [without, whole]
    assert found_syncs(tmp_path, sync(0, 1), sync(2000, 3), elsewhere)[0] == [
        without,
        without,
        whole,
    ]


def test_requests_of_a_log_without_calls_have_none(tmp_path: Path) -> None:
    """io_uring and durable writes make no sync call. A log that says nothing of calls cannot say more."""
    rows, lost = found_syncs(tmp_path, *(sync(5000 * n, n + 1) for n in range(20)))
    assert (rows, lost) == ([(None, 890_000, None, None)] * 20, {})


def test_a_trace_says_what_the_tables_say_of_a_lost_call(tmp_path: Path) -> None:
    log, trace = tmp_path / "x.log", tmp_path / "x.pftrace"
    log.write_bytes(
        text(HEAD, *sync(0, 1, exit_op="fsync"), *sync(5000, 2, op="fsync", exit_op="fsync"))
    )
    ok("convert", "-q", log, "-o", trace)
    ok("convert", "-q", log, "-o", f"{tmp_path}/x/")
    sql = "SELECT ts_ns, dur_ns, op, syscall_ns, incomplete, start_ns, writeback_ns, ret FROM syncline_sync ORDER BY ts_ns"
    of_tables = ok("query", f"{tmp_path}/x/", sql)
    assert of_tables == ok("query", trace, sql)
    assert of_tables == ok("query", trace, sql, "--engine", "embedded")
    assert "call" in of_tables
    read_back = f"{tmp_path}/y/"
    ok("convert", "-q", trace, "-o", read_back)
    assert of_tables == ok("query", read_back, sql)


# Bios that the log begins within.

BIO = (
    "100000000000 7 wl fsync",
    "100000010000 7 wl start id 1 start 0 end 9 datasync 0 path /d/f",
    "100000020000 7 wl bio_add_folio id 1 bio 0xff11000000896e40 start 0 len 4096",
    "100000025000 7 wl bio_add_folio id 1 bio 0xff11000000896e40 start 4096 len 4096",
    "100000030000 7 wl bio_submit id 1 bio 0xff11000000896e40",
    "100000040000 7 wl bio_add_folio id 1 bio 0xff11000000896f00 start 8192 len 4096",
    "100000050000 7 wl bio_submit id 1 bio 0xff11000000896f00",
    "100001000000 0 swapper/0 bio_complete bio 0xff11000000896e40",
    "100001002000 0 swapper/0 bio_complete bio 0xff11000000896f00",
    "100001010000 7 wl exit id 1 ret 0",
)


@pytest.mark.parametrize("begin", [1, 2, 3, 4])
def test_the_size_of_a_bio_that_the_log_begins_within_is_unknown(
    begin: int, tmp_path: Path
) -> None:
    tables, _ = convert(tmp_path, [text(HEAD, *BIO[begin:])])
    sizes = columns(tables["bio"], "bytes", "folios", "ranges", "first_offset", "last_offset")
    # The second bio begins after the first submit, so it is whole. Before the start, nothing says that of the first one.
    first = (8192, 2, 1, 0, 8192) if begin == 1 else (None,) * 5
    assert sizes == [first, (4096, 1, 1, 8192, 12288)]
    assert columns(tables["bio"], "dur_ns") == [(970_000,), (952_000,)]
    assert [row["incomplete"] for row in tables["sync"]] == [None if begin == 1 else "start"]


def test_the_cuts_of_the_property_test_are_of_all_kinds() -> None:
    cuts = list(itertools.islice(usable_cuts(random.Random(1), list(RECORDINGS)), 400))
    assert {len(cut.ranges) for cut in cuts} == {2, 3, 4}
    assert {cut.name for cut in cuts} == set(RECORDINGS)
    assert any(all(cut.headers) for cut in cuts)
    assert any(not any(cut.headers) for cut in cuts)
    overlaps = [overlap(cut) for cut in cuts]
    assert 0 in overlaps
    assert max(overlaps) > 30


def overlap(cut: Cut) -> int:
    """The number of events that more than one piece has."""
    ranges = sorted(cut.ranges)
    return sum(max(0, a[1] - b[0]) for a, b in itertools.pairwise(ranges))
