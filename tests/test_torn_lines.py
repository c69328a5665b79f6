"""Torn lines: none of their values is used, and what depends on them is not marked as certain."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path

import pytest
from syncline import _core

from tests.cut_logs import RECORDINGS, convert
from tests.test_commands import ok
from tests.torn_lines import faults, random_tears, whole_tables, whole_text, wrong_figures

TORN = list(RECORDINGS)
FOLIO = b"100000020000 7 wl bio_add_folio id 1 bio 0xff11000000896e40 start 0 len 4096"
LOG = (
    b"100000000000 7 wl fsync",
    b"100000010000 7 wl start id 1 start 0 end 9 datasync 0 path /d/f",
    FOLIO,
    b"100000030000 7 wl bio_submit id 1 bio 0xff11000000896e40",
    b"100001000000 0 swapper/0 bio_complete bio 0xff11000000896e40",
    b"100001010000 7 wl exit id 1 ret 0",
)


@pytest.mark.parametrize("seed", range(4))
def test_a_line_that_ends_early_gives_no_wrong_figure(seed: int, tmp_path: Path) -> None:
    tears = random_tears(random.Random(seed), TORN, ("short",))
    for tear in itertools.islice(tears, 40):
        # What is left of the exit is the entry.
        if tear.text().splitlines()[tear.line].endswith(b" fsync"):
            continue
        try:
            found = faults(tear, tmp_path)
        except _core.CoreError as error:
            assert error.args[-1] == "input", tear
            continue
        assert not found, (tear, found)


@pytest.mark.parametrize("length", [12, 13, 14, 15, 20, 30, 40, 60, len(FOLIO) - 2])
def test_a_folio_whose_line_is_torn_is_not_left_out_silently(length: int, tmp_path: Path) -> None:
    """Whatever is left of the line: the request and its bio do not say that they have no page cache, or only 96 bytes of it."""
    torn = [line[:length] if line == FOLIO else line for line in LOG]
    tables, lost = convert(tmp_path, [b"".join(line + b"\n" for line in torn)])
    (sync,) = tables["sync"]
    assert (sync["confidence"], sync["folios"], sync["ranges"]) == ("inferred", None, None)
    (bio,) = tables["bio"]
    assert (bio["confidence"], bio["bytes"], bio["folios"]) == ("inferred", None, None)
    # The bio is submitted without any folio, too.
    assert lost == {"unparsed_line": 1, "folios_missing": 1}


BTETTO = (
    (1000, "fsync", "BEGIN", []),
    (2000, "ext4_sync_file", "BEGIN", [["dev", 1048576], ["ino", 12]]),
    (3000, "block_bio_queue", "INSTANT", [["dev", 1048576], ["sector", 8], ["nr_sector", 8], ["rwbs", "WS"]]),
    (9000, "block_rq_complete", "INSTANT", [["dev", 1048576], ["sector", 8], ["nr_sector", 8], ["rwbs", "WS"]]),
    (10000, "ext4_sync_file", "END", [["ret", 0]]),
    (11000, "fsync", "END", [["ret", 0]]),
)  # fmt: skip


def btetto_line(ts: int, name: str, phase: str, pairs: list[list[object]]) -> bytes:
    ids: list[list[object]] = [["pid", 7], ["tid", 8], ["thread_name", "wl"]]
    if name == "block_rq_complete":
        ids = []
    data = ["track_event", ["name", name], ["type", phase], ["ts", ts], *ids, *pairs]
    return b'{"type": "value", "data": ' + json.dumps(data, separators=(",", ":")).encode() + b"}\n"


@pytest.mark.parametrize("torn", range(len(BTETTO)))
@pytest.mark.parametrize("joined", [False, True])
def test_an_event_for_btetto_is_torn_at_any_byte(torn: int, joined: bool, tmp_path: Path) -> None:
    """Two syncs of the same thread. A line of the first one is torn, and no figure of either is certain and wrong."""
    log = [btetto_line(*event) for event in BTETTO]
    log += [btetto_line(ts + 100_000, *rest) for ts, *rest in BTETTO]
    whole, _ = convert(tmp_path, [b"".join(log)])
    figures = ("ts_ns", "dur_ns", "start_ns", "syscall_ns", "bytes", "bios", "writeback_ns")
    expected = [(1000, 9_000, 2000, 10_000, 4096, 1, 6000)]
    expected.append((101_000, 9_000, 102_000, 10_000, 4096, 1, 6000))
    assert [tuple(row[name] for name in figures) for row in whole["sync"]] == expected
    for length in range(1, len(log[torn]) - 1):
        short = log[torn][:length] + (b"" if joined else b"\n")
        tables, lost = convert(tmp_path, [b"".join([*log[:torn], short, *log[torn + 1 :]])])
        assert lost["unparsed_line"] == 1, length
        for row in tables["sync"]:
            if row["confidence"] == "exact" and row["incomplete"] is None:
                assert all(
                    value in (None, *(of_whole[at] for of_whole in expected))
                    for at, value in enumerate(row[name] for name in figures)
                ), (length, row)
        assert all(row["origin"] != "background" for row in tables["bio"]), length


@pytest.mark.parametrize("length", [40, 60, 80])
def test_an_object_of_json_that_another_is_joined_to_is_torn(length: int, tmp_path: Path) -> None:
    """The first of the two is the folio of the bio, and the second is whole."""
    objects = [
        json.dumps({"type": "printf", "data": f"{line.decode()}\n"}).encode() for line in LOG
    ]
    joined = objects[2][:length] + objects[3]
    tables, lost = convert(tmp_path, [b"\n".join([*objects[:2], joined, *objects[4:], b""])])
    (sync,) = tables["sync"]
    assert (sync["confidence"], sync["folios"], sync["ranges"]) == ("inferred", None, None)
    assert lost["unparsed_line"] == 1


def test_when_a_call_began_whose_line_is_torn_is_not_known(tmp_path: Path) -> None:
    later = [
        line.replace(b"1000", b"1010", 1).replace(b" id 1", b" id 2").replace(b"6e40", b"6f00")
        for line in LOG
    ]
    damaged = (
        *(b"1010000", b"101000000000 7", b"101000000000 7 wl fsy", b"101000000000sync"),
        # A stack line is joined to what is left of it.
        *(b"10        f+1", b"101000000000        f+1", b"101000000000 7        f+1"),
        # Bytes in its middle are gone, or the rest of another time precedes it.
        *(b"101000000000 wl fsync", b"10100000 7 wl fsync", b"1101000000000 7 wl fsync"),
    )
    for torn in damaged:
        lines = [*LOG, torn, *later[1:]]
        tables, lost = convert(tmp_path, [b"".join(line + b"\n" for line in lines)])
        second = tables["sync"][1]
        assert (second["op"], second["syscall_ns"], second["dur_ns"]) == (None, None, None)
        assert second["confidence"] == "inferred"
        assert lost == {"unparsed_line": 1, "call_missing": 1}


def test_a_call_of_another_thread_by_a_torn_line_is_counted(tmp_path: Path) -> None:
    """strace pads a PID of fewer than five digits, so the rest of a torn line has become a part of this one."""
    lines = (
        b"2816  1795196977.471516 fsync(3) = 0 <0.004285>",
        b"282816  1795196977.477297 fsync(3) = 0 <0.002434>",
        b"282817 1795196977.487297 fsync(3) = 0 <0.002434>",
    )
    tables, lost = convert(tmp_path, [b"".join(line + b"\n" for line in lines)])
    assert [row["tid"] for row in tables["call"]] == [2816, 282817]
    assert lost["unparsed_line"] == 1


def test_a_torn_line_may_have_been_the_end_of_a_sync(tmp_path: Path) -> None:
    """Nothing says since when a thread is in it, so whether its bio is of the sync is not known."""
    lines = [
        b"   other-9     [000] .....  100.000000: ext4_sync_file_enter: dev 8,0 ino 12 parent 2 datasync 0",
        b"   other-9     [000] .....  100.000010: ext4_sync_file_exit: dev 8,0 ino 12 ret 0",
        b"      wl-7     [000] .....  100.000100: block_bio_queue: 8,0 WS 1000 + 8 [wl]",
        b"  <idle>-0     [000] .....  100.000200: block_rq_complete: 8,0 WS () 1000 + 8 [0]",
    ]
    for torn in (b"", b"      wl-7     [000] .....  100.000300: ext4_sync_fi"):
        tables, _ = convert(tmp_path, [b"".join(line + b"\n" for line in lines) + torn])
        (bio,) = tables["bio"]
        assert bio["origin"] == (None if torn else "background"), torn


def test_a_low_level_log_keeps_what_a_torn_line_leaves_open(tmp_path: Path) -> None:
    torn = [line[:30] if line == FOLIO else line for line in LOG]
    log = tmp_path / "x.log"
    log.write_bytes(b"".join(line + b"\n" for line in torn))
    _core.convert([str(log)], str(tmp_path / "x.events.jsonl"))
    again, _ = convert(tmp_path, [(tmp_path / "x.events.jsonl").read_bytes()])
    direct, _ = convert(tmp_path, [log.read_bytes()])
    assert again["sync"] == direct["sync"]
    assert again["bio"] == direct["bio"]


def test_every_format_says_which_losses_it_would_not_show() -> None:
    assert set(_core.HIDDEN_LOSSES) == set(_core.SOURCES)
    assert all(text.endswith(".") for text in _core.HIDDEN_LOSSES.values())
    text = ok("inspect", "tests/data/thesis/small4.log")
    assert "not shown by bpftrace" in text
    assert "nothing here can say that none is missing" in " ".join(text.split())


def test_a_second_recording_without_durations_is_told(tmp_path: Path) -> None:
    """Its lines give no result, so each is counted, and the reason says what to do."""
    line = "262   {}.{:06} {} = {}{}\n"
    calls = (('openat(AT_FDCWD, "/srv/a", O_WRONLY)', 3), ("fsync(3)", 0), ("close(3)", 0))
    first = "".join(
        line.format(1_600_000_000 + n, i * 1000, call, ret, " <0.000100>")
        for n in range(40)
        for i, (call, ret) in enumerate(calls)
    )
    second = "".join(
        line.format(1_700_000_000, i * 1000, call, ret, "") for i, (call, ret) in enumerate(calls)
    )
    log = tmp_path / "two.strace"
    log.write_text(first + second)
    summary = _core.convert([str(log)], f"{tmp_path}/out/")
    assert "record with -T" in "".join(summary["unparsed"])
    lost = {row["reason"]: row["count"] for row in summary["losses"]}
    assert lost["duration_missing"] == 1


TIME = re.compile(rb"(?<![\d.,])(\d{2,})(?=\.\d{6,9}\b)|(?<!\d)\d{11,}(?!\d)")
"""Seconds with a fraction, or ns."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("thesis/small4.log", "joined"),
        ("ftrace/small4.trace.txt.gz", "joined"),
        ("dynamic-events/ext4-both.txt.gz", "joined"),
        ("perf/stacks.txt.gz", "joined"),
        ("strace/small4.log", "joined"),
        ("strace/small4.log", "cut"),
        ("bpftrace-json/btetto-0.27.json.gz", "joined"),
        ("events:thesis/small4.log", "joined"),
    ],
)
def test_a_time_far_from_those_around_it_is_not_used(name: str, kind: str, tmp_path: Path) -> None:
    """The digits of a torn line are joined to those of the next one, or two digits are gone."""
    events = (100, 140)
    text = whole_text(name, events)
    lines = text.splitlines(keepends=True)
    timed = [at for at, line in enumerate(lines) if TIME.search(line)]
    whole = whole_tables(name, events)
    known = whole[1].get("unparsed_line", 0)
    for at in random.Random(name + kind).sample(timed[1:-1], 3):
        digits = TIME.search(lines[at])[0]  # type: ignore[index]
        damaged = digits[:3] + digits if kind == "joined" else digits[2:]
        line = lines[at].replace(digits, damaged, 1)
        torn = convert(tmp_path, [b"".join([*lines[:at], line, *lines[at + 1 :]])])
        assert not wrong_figures(whole, torn), (at, line)
        rows = [row for table in torn[0].values() for row in table]
        assert all((row.get("dur_ns") or 0) < 3_600_000_000_000 for row in rows), (at, line)
        # An event that no report uses is not looked at.
        assert torn[1].get("unparsed_line", 0) - known in (0, 1), (at, line)


def test_a_low_level_log_of_a_damaged_time_gives_the_same_rows(tmp_path: Path) -> None:
    later = [line.replace(b"1000", b"2000", 1).replace(b" id 1", b" id 2") for line in LOG]
    lines = [*LOG[:-1], b"17" + LOG[-1], *later]
    log = tmp_path / "x.log"
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    direct, lost = convert(tmp_path, [log.read_bytes()])
    assert [row["incomplete"] for row in direct["sync"]] == ["end", None]
    assert lost["unparsed_line"] == lost["end_missing"] == 1
    # The line may be the rests of two, so nothing of its threads is certain before their next events.
    assert direct["sync"][0]["confidence"] == "inferred"
    _core.convert([str(log)], str(tmp_path / "x.events.jsonl"))
    again, lost_again = convert(tmp_path, [(tmp_path / "x.events.jsonl").read_bytes()])
    assert (again["sync"], again["bio"], again["call"]) == (
        direct["sync"],
        direct["bio"],
        direct["call"],
    )
    assert lost_again["unparsed_line"] == 1
