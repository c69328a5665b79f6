"""One run that five recorders saw at once: what they tell must be the same, each alone and all together."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import ROOT, tables
from tests.reference import blktrace, tracedat
from tests.test_commands import fails, ok, run

DATA = ROOT / "tests" / "data" / "several-recorders"
TRUTH = json.loads((DATA / "truth.json").read_text())
WAYS = ["run", "ring.dat", "perf.txt.gz", "disk.blktrace.0", "strace.log"]
# What sees the file system, and what sees calls.
KERNEL = WAYS[:3]
CALLS = [*KERNEL, "strace.log"]
SYNCS = 40

Rows = list[dict[str, Any]]


def made(folder: Path, *ways: str) -> dict[str, Rows]:
    """The tables of some of them together, as the command makes them."""
    out = folder / "-".join(way.split(".")[0] for way in ways)
    ok("convert", "-q", *(DATA / way for way in ways), "-o", f"{out}/")
    return tables(out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Rows]]:
    return {way: made(tmp_path_factory.mktemp("alone"), way) for way in WAYS}


def by_thread(rows: Rows) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for row in sorted(rows, key=lambda row: row["ts_ns"]):
        found.setdefault(row["tid"], []).append(row)
    return found


def test_the_run_did_what_it_was_asked() -> None:
    assert TRUTH["syncs"] == {"fdatasync": SYNCS}
    assert TRUTH["files"] == SYNCS
    assert not TRUTH["errors"]


@pytest.mark.parametrize("way", CALLS)
def test_each_tells_every_call(way: str, alone: dict[str, dict[str, Rows]]) -> None:
    rows = alone[way]["sync"]
    assert Counter(row["op"] for row in rows) == {"fdatasync": SYNCS}
    # Four threads, ten files each.
    assert sorted(Counter(row["tid"] for row in rows).values()) == [SYNCS // 4] * 4
    assert {row["ret"] for row in rows} == {0}
    assert not {row["reason"] for row in alone[way]["loss"]} - {"call_only"}


def test_calls_take_as_long_by_each(alone: dict[str, dict[str, Rows]]) -> None:
    """Recorders in the kernel differ by their own work; strace stops each thread twice, which takes some 10 % here."""
    first = by_thread(alone["ring.dat"]["sync"])
    for way in CALLS:
        other = by_thread(alone[way]["sync"])
        assert first.keys() == other.keys()
        pairs = [(a, b) for tid in first for a, b in zip(first[tid], other[tid], strict=True)]
        apart = [b["syscall_ns"] - a["syscall_ns"] for a, b in pairs]
        total = sum(a["syscall_ns"] for a, _ in pairs)
        if way == "strace.log":
            assert 0 < sum(apart) < 0.2 * total
        else:
            # perf's first stack of a thread takes it some ms.
            assert abs(sum(apart)) < 0.02 * total
            assert sorted(map(abs, apart))[len(apart) // 2] < 200_000


def test_paths_are_those_of_the_workload(alone: dict[str, dict[str, Rows]]) -> None:
    names = {
        way: sorted(Path(row["path"]).name for row in alone[way]["sync"])
        for way in ("run", "strace.log")
    }
    assert names["run"] == names["strace.log"]
    assert len(set(names["run"])) == SYNCS
    # Stock tracepoints tell the inode, and so does bpftrace.
    inodes = [sorted(row["ino"] for row in alone[way]["sync"]) for way in KERNEL]
    assert inodes[0] == inodes[1] == inodes[2]


def test_bytes_are_the_same(alone: dict[str, dict[str, Rows]]) -> None:
    """A file of 200 bytes is one page; whose it is, is known exactly by bpftrace, and by thread from tracepoints."""
    for way in KERNEL:
        rows = alone[way]["sync"]
        assert {(row["bytes"], row["bios"]) for row in rows} == {(4096, 1)}, way
        want = "inferred"
        assert {row["confidence"] for row in rows} == {want}, way


def test_bios_are_those_of_the_block_layer(alone: dict[str, dict[str, Rows]]) -> None:
    """Four recorders, one list of writes: device and sector of each; the journal's belong to nobody's sync."""

    def writes(way: str) -> Counter[tuple[str, int]]:
        return Counter((row["dev"], row["sector"]) for row in alone[way]["bio"])

    want = writes("disk.blktrace.0")
    assert want.total() > 2 * SYNCS
    for way in KERNEL:
        assert writes(way) == want, way
    printed = alone["disk.blktrace.0"]["bio"]
    assert sum(row["bytes"] for row in printed) == sum(
        row["bytes"] for row in alone["ring.dat"]["bio"]
    )
    assert not [row for row in printed if row["sync_id"] is not None]


@pytest.mark.parametrize("seed", range(8))
def test_together_they_tell_each_thing_once(
    seed: int, alone: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    ways = random.Random(seed).sample(WAYS, len(WAYS))
    joint = made(tmp_path, *ways)
    told = {row["reason"]: row["count"] for row in joint["loss"]}
    bios = len(alone["run"]["bio"])
    # Calls and their exits by three more, requests by two more, bios by three more.
    assert told == {"duplicate": 3 * 2 * SYNCS + 2 * 2 * SYNCS + 3 * bios}
    assert_as(joint, alone["run"])


@pytest.mark.parametrize("ways", [*itertools.permutations(WAYS, 2)], ids=" ".join)
def test_any_two_tell_each_thing_once(
    ways: tuple[str, str], alone: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    # trace-cmd does not tell the time of day of its clock.
    if set(ways) == {"ring.dat", "strace.log"}:
        assert "--offset" in fails(
            3, "convert", *(DATA / way for way in ways), "-o", tmp_path / "x.csv"
        )
        return
    joint = made(tmp_path, *ways)
    assert not {row["reason"] for row in joint["loss"]} - {"duplicate", "call_only"}
    best = next((way for way in WAYS[:3] if way in ways), None)
    if best:
        assert_as(joint, alone[best])
    else:
        # blktrace and strace tell of nothing that the other does.
        assert len(joint["sync"]) == SYNCS
        assert len(joint["bio"]) == len(alone["disk.blktrace.0"]["bio"])
        assert {row["bytes"] for row in joint["sync"]} == {None}


def assert_as(joint: dict[str, Rows], best: dict[str, Rows]) -> None:
    """All that is counted is as the one tells it that sees most."""

    def counted(rows: Rows, *keys: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row[key] for key in keys) for row in rows)

    keys = ("tid", "op", "ino", "bytes", "bios", "folios", "ret", "incomplete", "confidence")
    assert counted(joint["sync"], *keys) == counted(best["sync"], *keys)
    assert counted(joint["bio"], "dev", "sector", "bytes") == counted(
        best["bio"], "dev", "sector", "bytes"
    )
    owned = [sum(row["sync_id"] is not None for row in of["bio"]) for of in (joint, best)]
    assert owned[0] == owned[1] == SYNCS
    for row in joint["sync"]:
        assert 0 < row["dur_ns"] <= row["syscall_ns"] + 3_000_000


def test_what_one_knows_and_the_other_not_is_joined(tmp_path: Path) -> None:
    """Tracepoints tell no path, strace no inode, perf the stack."""
    rows = made(tmp_path, "ring.dat", "strace.log", "perf.txt.gz")["sync"]
    assert all(row["ino"] and row["path"] and row["stack"] == "[libc.so.6]" for row in rows)
    assert len({row["path"] for row in rows}) == SYNCS


def test_the_report_is_the_same_on_both_engines(tmp_path: Path) -> None:
    files = [DATA / way for way in WAYS]
    ok("convert", "-q", *files, "-o", tmp_path / "x.pftrace")
    ok("convert", "-q", *files, "-o", f"{tmp_path}/x/")
    for report in ("files", "threads", "losses"):
        a, b = (
            run("report", "--format", "csv", tmp_path / name, report) for name in ("x", "x.pftrace")
        )
        assert a.returncode == 0, a.stderr
        assert a.stdout == b.stdout


# Clocks.


def test_clocks_are_joined_by_the_time_of_day(tmp_path: Path) -> None:
    said = ok("inspect", *(DATA / way for way in WAYS))
    assert "each log records the time of day" in said
    # By the offsets that each tells, calls by strace lie around those of the kernel.
    joint = {
        way: made(tmp_path, "disk.blktrace.0", way)["sync"] for way in ("ring.dat", "strace.log")
    }
    first, second = (by_thread(joint[way]) for way in ("ring.dat", "strace.log"))
    for tid, rows in first.items():
        for kernel, traced in zip(rows, second[tid], strict=True):
            assert -50_000_000 < traced["ts_ns"] - kernel["ts_ns"] < 100_000


def test_a_clock_that_nothing_is_known_of_needs_an_offset(tmp_path: Path) -> None:
    perf = tmp_path / "perf.txt"
    lines = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).splitlines(True)
    perf.write_bytes(b"".join(line for line in lines if not line.startswith(b"#")))
    out = tmp_path / "x"
    said = fails(3, "convert", DATA / "ring.dat", perf, "-o", f"{out}/")
    assert "not on one clock" in said
    assert "--offset" in said
    ok("convert", "-q", DATA / "ring.dat", perf, "--offset", f"{perf}=0", "-o", f"{out}/")
    assert len(tables(out)["sync"]) == SYNCS


@pytest.mark.parametrize(
    ("offset", "ns"), [("1.5s", 1_500_000_000), ("-2ms", -2_000_000), ("+7ns", 7), ("0", 0)]
)
def test_an_offset_is_added(offset: str, ns: int, tmp_path: Path) -> None:
    log = DATA / "strace.log"
    plain = made(tmp_path, "strace.log")["sync"]
    ok("convert", "-q", log, "--offset", f"{log}={offset}", "-o", f"{tmp_path}/moved/")
    moved = tables(tmp_path / "moved")
    assert [row["ts_ns"] for row in moved["sync"]] == [row["ts_ns"] + ns for row in plain]
    assert [row["dur_ns"] for row in moved["sync"]] == [row["dur_ns"] for row in plain]
    # Its clock is no longer the time of day.
    assert "realtime" not in {row["value"] for row in moved["meta"] if row["key"] == "clock"}


@pytest.mark.parametrize(
    ("offset", "code", "said"),
    [
        ("{log}=12", 2, "write LOG=-12.5s"),
        ("=1s", 2, "write LOG=-12.5s"),
        ("other.log=1s", 2, "none of the inputs"),
        ("{log}=-1000000000000s", 2, "longer than any clock"),
        ("{log}=-2000000000s", 3, "before that clock's zero"),
    ],
)
def test_offsets_that_cannot_be(offset: str, code: int, said: str, tmp_path: Path) -> None:
    log = DATA / "strace.log"
    told = fails(
        code, "convert", log, "--offset", offset.format(log=log), "-o", tmp_path / "x.pftrace"
    )
    assert said in told
    assert not list(tmp_path.iterdir())


def test_recordings_that_do_not_overlap_are_both_told(tmp_path: Path) -> None:
    """A log is believed only as long as it lasts."""
    ring = DATA / "ring.dat"
    ok(
        "convert",
        "-q",
        ring,
        DATA / "perf.txt.gz",
        "--offset",
        f"{ring}=1000s",
        "-o",
        f"{tmp_path}/x/",
    )
    joint = tables(tmp_path / "x")
    assert len(joint["sync"]) == 2 * SYNCS
    assert not joint["loss"]


@pytest.mark.parametrize("keep", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("end", [True, False])
def test_a_log_that_was_cut_off_hides_nothing(keep: float, end: bool, tmp_path: Path) -> None:
    """Its syncs are told by the log beside it, before its first word and after its last."""
    lines = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).decode().splitlines(True)
    head = [line for line in lines if line.startswith("#")]
    syncs = [n for n, line in enumerate(lines) if "sys_exit_fdatasync" in line]
    at = syncs[int(len(syncs) * keep)]
    perf = tmp_path / "perf.txt"
    perf.write_text("".join(head + (lines[:at] if end else lines[at:])))
    for files in ([perf, DATA / "ring.dat"], [DATA / "ring.dat", perf]):
        ok("convert", "-q", *files, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        whole = [row for row in joint["sync"] if row["incomplete"] is None]
        # The one in which it was cut may be torn.
        assert SYNCS - 2 <= len(whole) <= SYNCS
        assert len(joint["sync"]) <= SYNCS + 4
        assert {row["bytes"] for row in whole} == {4096}
        assert sum(row["op"] is None for row in joint["sync"]) <= 1


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("end", [True, False])
def test_a_blktrace_that_was_cut_off_hides_nothing(
    keep: float, end: bool, alone: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    """A binary log that is named first is believed until its last record, though the other is read further at once."""
    files = [blktrace.records((DATA / f"disk.blktrace.{cpu}").read_bytes()) for cpu in (0, 1)]
    times = sorted(record.time for records in files for record in records)
    # Where the disk is idle: what lies within 0.2 ms of an end is taken for the same, whoever tells it.
    at = int(len(times) * keep)
    near = range(max(1, at - 100), min(len(times), at + 100))
    cut = times[max(near, key=lambda n: times[n] - times[n - 1])]
    for cpu, records in enumerate(files):
        kept = [
            record
            for record in records
            if (record.time < cut) == end or record.category & blktrace.NOTIFY
        ]
        path = tmp_path / f"disk.blktrace.{cpu}"
        path.write_bytes(b"".join(record.packed() for record in kept))
    disk = tmp_path / "disk.blktrace.0"
    for ways in ([disk, DATA / "ring.dat"], [DATA / "ring.dat", disk]):
        ok("convert", "-q", *ways, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        assert {row["bytes"] for row in joint["sync"]} == {4096}
        assert len(joint["sync"]) == SYNCS
        assert len(joint["bio"]) == len(alone["ring.dat"]["bio"])


def test_requests_that_a_log_leaves_open_take_nothing_from_another(tmp_path: Path) -> None:
    """When the one log that tells of a thread's syncs is over, its thread may do anything."""
    text = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).decode()
    head, *events = re.split(r"(?m)^(?=\S.* \[\d+\] )", text)
    starts = [n for n, event in enumerate(events) if "ext4_sync_file_enter" in event]
    perf = tmp_path / "perf.txt"
    perf.write_text(head + "".join(events[: starts[SYNCS // 2] + 1]))
    for ways in ([perf, DATA / "disk.blktrace.0"], [DATA / "disk.blktrace.0", perf]):
        ok("convert", "-q", *ways, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        assert len(joint["sync"]) == SYNCS // 2 + 1
        assert {row["bytes"] for row in joint["sync"]} <= {0, 4096}
        assert len(joint["bio"]) == 173


@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_a_recording_are_as_the_whole(seed: int, tmp_path: Path) -> None:
    """`trace-cmd split` makes files of its own, one after the other; named in any order they tell the same."""
    rng = random.Random(seed)
    world = tracedat.world(rng, 30)
    # Each has something to tell.
    cuts = [len(world.events) * n // 4 + rng.randrange(-20, 20) for n in (1, 2, 3)]
    parts = [world.events[a:b] for a, b in itertools.pairwise([0, *cuts, len(world.events)])]
    paths = []
    for number, events in enumerate([world.events, *parts]):
        paths.append(tmp_path / f"{number}.dat")
        paths[-1].write_bytes(
            tracedat.file(replace(world, events=events), tracedat.Shape(clock="boot"))
        )
    whole, *pieces = paths
    ok("convert", "-q", whole, "-o", f"{tmp_path}/whole/")
    expected = tables(tmp_path / "whole")
    rng.shuffle(pieces)
    ok("convert", "-q", *pieces, "-o", f"{tmp_path}/pieces/")
    found = tables(tmp_path / "pieces")
    for table in ("sync", "bio"):
        assert found[table] == expected[table], table


def test_a_log_of_one_thread_leaves_the_others_theirs(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).decode()
    head, *events = re.split(r"(?m)^(?=\S.* \[\d+\] )", text)
    tid = next(event.split()[1] for event in events if "sys_enter_fdatasync" in event)
    perf = tmp_path / "perf.txt"
    perf.write_text(head + "".join(event for event in events if event.split()[1] == tid))
    for files in ([perf, DATA / "ring.dat"], [DATA / "ring.dat", perf]):
        ok("convert", "-q", *files, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        assert {(row["bytes"], row["bios"]) for row in joint["sync"]} == {(4096, 1)}
        assert len(joint["sync"]) == SYNCS
        # Completions come in whatever thread runs: what was left out of them is missed.
        assert {row["reason"] for row in joint["loss"]} <= {"duplicate", "never_completed"}


def test_events_of_all_are_in_the_low_level_log(tmp_path: Path) -> None:
    files = [str(DATA / way) for way in WAYS[1:]]
    out = tmp_path / "x.events.jsonl"
    _core.convert(files, str(out))
    first, *lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert first["event"] == "several_recordings"
    assert {line["source"] for line in lines} == {"trace-dat", "perf", "blktrace", "strace"}
    times = [line["ts_ns"] for line in lines]
    assert times == sorted(times)


def test_a_log_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.gz"
    copy.write_bytes((DATA / "perf.txt.gz").read_bytes())
    plain = tmp_path / "perf.txt"
    plain.write_bytes(gzip.decompress(copy.read_bytes()))
    of_perf = [(DATA / "perf.txt.gz", copy), (plain, copy), (copy, plain)]
    for first, second in ((DATA / "strace.log",) * 2, *of_perf):
        message = fails(3, "convert", first, second, "-o", tmp_path / "x.csv")
        assert f"{second} is the same log as {first}" in message
    assert not (tmp_path / "x.csv").exists()


def test_recordings_without_a_time_in_common_are_warned_of(
    alone: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    strace = DATA / "strace.log"
    starts = [min(row["ts_ns"] for row in alone[way]["sync"]) for way in ("ring.dat", "strace.log")]
    for offset, apart in (("0", True), (f"{starts[0] - starts[1]}ns", False)):
        words = ("convert", DATA / "ring.dat", strace, "--offset", f"{strace}={offset}")
        told = run(*words, "-o", tmp_path / "x.csv").stderr
        assert ("has ended" in told and "is --offset right?" in told) == apart
    assert (
        "has ended"
        not in run("convert", *(DATA / way for way in WAYS), "-o", tmp_path / "x.csv").stderr
    )
