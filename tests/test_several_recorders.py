"""One run that five recorders recorded at once: each separately, any two and all together give the same tables."""

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
RECORDINGS = ["run", "ring.dat", "perf.txt.gz", "disk.blktrace.0", "strace.log"]
# Recordings with events of the file system, and recordings with sync calls.
WITH_REQUESTS = RECORDINGS[:3]
WITH_CALLS = [*WITH_REQUESTS, "strace.log"]
SYNCS = 40
# What the block layer read, and flushed without data: lines `Q   R` and `Q FWS` of blkparse.
READS, FLUSHES = 8, 1

Rows = list[dict[str, Any]]


def convert_together(folder: Path, *recordings: str) -> dict[str, Rows]:
    """The tables of `syncline convert` for these recordings together."""
    out = folder / "-".join(recording.split(".")[0] for recording in recordings)
    ok("convert", "-q", *(DATA / recording for recording in recordings), "-o", f"{out}/")
    return tables(out)


@pytest.fixture(scope="module")
def separate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Rows]]:
    return {
        recording: convert_together(tmp_path_factory.mktemp("separate"), recording)
        for recording in RECORDINGS
    }


def writes_of(recording: dict[str, Rows]) -> Rows:
    return [row for row in recording["bio"] if row["direction"] == "write"]


def by_thread(rows: Rows) -> dict[int, Rows]:
    found: dict[int, Rows] = {}
    for row in sorted(rows, key=lambda row: row["ts_ns"]):
        found.setdefault(row["tid"], []).append(row)
    return found


def test_the_workload_did_what_it_was_asked() -> None:
    assert TRUTH["syncs"] == {"fdatasync": SYNCS}
    assert TRUTH["files"] == SYNCS
    assert not TRUTH["errors"]


@pytest.mark.parametrize("recording", WITH_CALLS)
def test_every_recorder_records_every_call(
    recording: str, separate: dict[str, dict[str, Rows]]
) -> None:
    rows = separate[recording]["sync"]
    assert Counter(row["op"] for row in rows) == {"fdatasync": SYNCS}
    # Four threads, ten files each.
    assert sorted(Counter(row["tid"] for row in rows).values()) == [SYNCS // 4] * 4
    assert {row["ret"] for row in rows} == {0}
    assert not {row["reason"] for row in separate[recording]["loss"]} - {"call_only"}


def test_recorders_agree_on_call_latency(separate: dict[str, dict[str, Rows]]) -> None:
    """Recorders in the kernel differ by their overhead. strace stops each thread twice, which adds some 10 % here."""
    first = by_thread(separate["ring.dat"]["sync"])
    for recording in WITH_CALLS:
        other = by_thread(separate[recording]["sync"])
        assert first.keys() == other.keys()
        pairs = [(a, b) for tid in first for a, b in zip(first[tid], other[tid], strict=True)]
        differences = [b["syscall_ns"] - a["syscall_ns"] for a, b in pairs]
        total = sum(a["syscall_ns"] for a, _ in pairs)
        if recording == "strace.log":
            assert 0 < sum(differences) < 0.2 * total
        else:
            # perf spends some ms on the first stack of a thread.
            assert abs(sum(differences)) < 0.02 * total
            assert sorted(map(abs, differences))[len(differences) // 2] < 200_000


def test_paths_and_inodes_are_those_of_the_workload(separate: dict[str, dict[str, Rows]]) -> None:
    names = {
        recording: sorted(Path(row["path"]).name for row in separate[recording]["sync"])
        for recording in ("run", "strace.log")
    }
    assert names["run"] == names["strace.log"]
    assert len(set(names["run"])) == SYNCS
    # Stock tracepoints and bpftrace record the inode.
    inodes = [
        sorted(row["ino"] for row in separate[recording]["sync"]) for recording in WITH_REQUESTS
    ]
    assert inodes[0] == inodes[1] == inodes[2]


def test_recorders_agree_on_the_amount(separate: dict[str, dict[str, Rows]]) -> None:
    """A file of 200 bytes is one page. Its bio is attributed to its request by thread."""
    for recording in WITH_REQUESTS:
        rows = separate[recording]["sync"]
        assert {(row["bytes"], row["bios"]) for row in rows} == {(4096, 1)}, recording
        expected = "inferred"
        assert {row["confidence"] for row in rows} == {expected}, recording


def test_bios_are_those_that_blktrace_recorded(separate: dict[str, dict[str, Rows]]) -> None:
    """Four recorders have the same writes, by device and sector. Writes of the journal belong to no sync request."""

    def writes(recording: str) -> Counter[tuple[str, int]]:
        return Counter((row["dev"], row["sector"]) for row in writes_of(separate[recording]))

    expected = writes("disk.blktrace.0")
    assert expected.total() > 2 * SYNCS
    for recording in WITH_REQUESTS:
        assert writes(recording) == expected, recording
    bios = separate["disk.blktrace.0"]["bio"]
    assert sum(row["bytes"] for row in bios) == sum(
        row["bytes"] for row in separate["ring.dat"]["bio"]
    )
    # Three of them have the reads and the flush too.
    for recording in ("ring.dat", "perf.txt.gz", "disk.blktrace.0"):
        others = Counter(row["direction"] for row in separate[recording]["bio"])
        assert (others["read"], others["flush"]) == (READS, FLUSHES), recording
    assert not [row for row in bios if row["sync_id"] is not None]


@pytest.mark.parametrize("seed", range(8))
def test_all_recordings_together_give_each_row_once(
    seed: int, separate: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    recordings = random.Random(seed).sample(RECORDINGS, len(RECORDINGS))
    joint = convert_together(tmp_path, *recordings)
    losses = {row["reason"]: row["count"] for row in joint["loss"]}
    bios = len(separate["run"]["bio"])
    # Three further recordings have the calls and their exits, two the requests, three the bios that write. Three have those that do not.
    others = READS + FLUSHES
    assert losses == {"duplicate": 3 * 2 * SYNCS + 2 * 2 * SYNCS + 3 * bios + 2 * others}
    assert_same_counts(joint, separate["run"])
    assert len(joint["bio"]) == bios + others


@pytest.mark.parametrize("recordings", [*itertools.permutations(RECORDINGS, 2)], ids=" ".join)
def test_any_two_recordings_give_each_row_once(
    recordings: tuple[str, str], separate: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    # trace-cmd does not record the offset of its clock from the time of day.
    if set(recordings) == {"ring.dat", "strace.log"}:
        assert "--offset" in fails(
            3, "convert", *(DATA / recording for recording in recordings), "-o", tmp_path / "x.csv"
        )
        return
    joint = convert_together(tmp_path, *recordings)
    assert not {row["reason"] for row in joint["loss"]} - {"duplicate", "call_only"}
    best = next((recording for recording in RECORDINGS[:3] if recording in recordings), None)
    if best:
        assert_same_counts(joint, separate[best])
    else:
        # blktrace and strace have no kind of event in common.
        assert len(joint["sync"]) == SYNCS
        assert len(joint["bio"]) == len(separate["disk.blktrace.0"]["bio"])
        assert {row["bytes"] for row in joint["sync"]} == {None}


def assert_same_counts(joint: dict[str, Rows], best: dict[str, Rows]) -> None:
    """The tables have the same counts as those of the recording with the most detail."""

    def counted(rows: Rows, *keys: str) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row[key] for key in keys) for row in rows)

    keys = ("tid", "op", "ino", "bytes", "bios", "folios", "ret", "incomplete", "confidence")
    assert counted(joint["sync"], *keys) == counted(best["sync"], *keys)
    keys = ("dev", "sector", "bytes")
    assert counted(writes_of(joint), *keys) == counted(writes_of(best), *keys)
    attributed = [
        sum(row["sync_id"] is not None for row in writes_of(side)) for side in (joint, best)
    ]
    assert attributed[0] == attributed[1] == SYNCS
    for row in joint["sync"]:
        assert 0 < row["dur_ns"] <= row["syscall_ns"] + 3_000_000


def test_a_request_has_the_fields_of_every_recording(tmp_path: Path) -> None:
    """Tracepoints record no path, and strace no inode. Only perf records stacks."""
    rows = convert_together(tmp_path, "ring.dat", "strace.log", "perf.txt.gz")["sync"]
    assert all(row["ino"] and row["path"] and row["stack"] == "[libc.so.6]" for row in rows)
    assert len({row["path"] for row in rows}) == SYNCS


@pytest.mark.parametrize("recording", ["ring.dat", "perf.txt.gz", "disk.blktrace.0"])
def test_a_bio_of_bpftrace_has_the_issue_of_another_recorder(
    recording: str, separate: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    """bpftrace records no issues here, but its bios are those of the block layer."""
    assert {row["queue_ns"] for row in separate["run"]["bio"]} == {None}

    def issues(rows: Rows) -> list[tuple[str, int, int]]:
        return sorted(
            (row["dev"], row["sector"] or 0, row["ts_ns"] + row["queue_ns"]) for row in rows
        )

    joint = convert_together(tmp_path, "run", recording)["bio"]
    assert issues(joint) == issues(separate[recording]["bio"])
    joint = [row for row in joint if row["direction"] == "write"]
    assert all(0 < row["device_ns"] < row["dur_ns"] for row in joint)


def test_the_report_is_the_same_on_both_engines(tmp_path: Path) -> None:
    files = [DATA / recording for recording in RECORDINGS]
    ok("convert", "-q", *files, "-o", tmp_path / "x.pftrace")
    ok("convert", "-q", *files, "-o", f"{tmp_path}/x/")
    for report in ("files", "threads", "losses"):
        a, b = (
            run("report", "--format", "csv", tmp_path / name, report) for name in ("x", "x.pftrace")
        )
        assert a.returncode == 0, a.stderr
        assert a.stdout == b.stdout


# Clocks.


def test_clocks_are_aligned_by_the_time_of_day(tmp_path: Path) -> None:
    output = ok("inspect", *(DATA / recording for recording in RECORDINGS))
    assert "each log records the time of day" in output
    # With both logs' offsets applied, strace's time of a call's entry is close to the kernel's, mostly before it.
    joint = {
        recording: convert_together(tmp_path, "disk.blktrace.0", recording)["sync"]
        for recording in ("ring.dat", "strace.log")
    }
    first, second = (by_thread(joint[recording]) for recording in ("ring.dat", "strace.log"))
    for tid, rows in first.items():
        for kernel, traced in zip(rows, second[tid], strict=True):
            assert -50_000_000 < traced["ts_ns"] - kernel["ts_ns"] < 100_000


def test_an_unknown_clock_needs_an_offset(tmp_path: Path) -> None:
    perf = tmp_path / "perf.txt"
    lines = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).splitlines(True)
    perf.write_bytes(b"".join(line for line in lines if not line.startswith(b"#")))
    out = tmp_path / "x"
    message = fails(3, "convert", DATA / "ring.dat", perf, "-o", f"{out}/")
    assert "not on one clock" in message
    assert "--offset" in message
    ok("convert", "-q", DATA / "ring.dat", perf, "--offset", f"{perf}=0", "-o", f"{out}/")
    assert len(tables(out)["sync"]) == SYNCS


@pytest.mark.parametrize(
    ("offset", "ns"), [("1.5s", 1_500_000_000), ("-2ms", -2_000_000), ("+7ns", 7), ("0", 0)]
)
def test_an_offset_is_added_to_the_times(offset: str, ns: int, tmp_path: Path) -> None:
    log = DATA / "strace.log"
    plain = convert_together(tmp_path, "strace.log")["sync"]
    ok("convert", "-q", log, "--offset", f"{log}={offset}", "-o", f"{tmp_path}/moved/")
    moved = tables(tmp_path / "moved")
    assert [row["ts_ns"] for row in moved["sync"]] == [row["ts_ns"] + ns for row in plain]
    assert [row["dur_ns"] for row in moved["sync"]] == [row["dur_ns"] for row in plain]
    # Its clock is no longer the time of day.
    assert "realtime" not in {row["value"] for row in moved["meta"] if row["key"] == "clock"}


@pytest.mark.parametrize(
    ("offset", "code", "expected"),
    [
        ("{log}=12", 2, "write LOG=-12.5s"),
        ("=1s", 2, "write LOG=-12.5s"),
        ("other.log=1s", 2, "is not one of the inputs"),
        ("{log}=-1000000000000s", 2, "longer than any clock"),
        ("{log}=-2000000000s", 3, "before that clock's zero"),
    ],
)
def test_an_impossible_offset_is_refused(
    offset: str, code: int, expected: str, tmp_path: Path
) -> None:
    log = DATA / "strace.log"
    message = fails(
        code, "convert", log, "--offset", offset.format(log=log), "-o", tmp_path / "x.pftrace"
    )
    assert expected in message
    assert not list(tmp_path.iterdir())


def test_recordings_that_do_not_overlap_are_both_used(tmp_path: Path) -> None:
    """A log is authoritative only between its first and its last event."""
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
def test_a_truncated_log_hides_no_sync_of_another_log(
    keep: float, end: bool, tmp_path: Path
) -> None:
    """Syncs before its first event and after its last one come from the other log."""
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
        # The request at the cut may be incomplete.
        assert SYNCS - 2 <= len(whole) <= SYNCS
        assert len(joint["sync"]) <= SYNCS + 4
        assert {row["bytes"] for row in whole} == {4096}
        assert sum(row["op"] is None for row in joint["sync"]) <= 1


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("end", [True, False])
def test_a_truncated_blktrace_hides_no_bio_of_another_log(
    keep: float, end: bool, separate: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    """A binary log that is given first is authoritative until its end, even if the other log is read ahead of it."""
    files = [blktrace.records((DATA / f"disk.blktrace.{cpu}").read_bytes()) for cpu in (0, 1)]
    times = sorted(record.time for records in files for record in records)
    # Cut where the disk is idle, because events within 0.2 ms of a log's end count as duplicates in either log.
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
    for recordings in ([disk, DATA / "ring.dat"], [DATA / "ring.dat", disk]):
        ok("convert", "-q", *recordings, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        assert {row["bytes"] for row in joint["sync"]} == {4096}
        assert len(joint["sync"]) == SYNCS
        assert len(joint["bio"]) == len(separate["ring.dat"]["bio"])


def test_an_open_request_of_a_log_gets_no_bio_after_the_end_of_that_log(tmp_path: Path) -> None:
    """After the end of the only log with sync requests, writes of a thread are not attributed to its open request."""
    text = gzip.decompress((DATA / "perf.txt.gz").read_bytes()).decode()
    head, *events = re.split(r"(?m)^(?=\S.* \[\d+\] )", text)
    starts = [n for n, event in enumerate(events) if "ext4_sync_file_enter" in event]
    perf = tmp_path / "perf.txt"
    perf.write_text(head + "".join(events[: starts[SYNCS // 2] + 1]))
    for recordings in ([perf, DATA / "disk.blktrace.0"], [DATA / "disk.blktrace.0", perf]):
        ok("convert", "-q", *recordings, "-o", f"{tmp_path}/x/")
        joint = tables(tmp_path / "x")
        assert len(joint["sync"]) == SYNCS // 2 + 1
        assert {row["bytes"] for row in joint["sync"]} <= {0, 4096}
        assert len(writes_of(joint)) == 173


@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_a_recording_give_the_tables_of_the_whole(seed: int, tmp_path: Path) -> None:
    """`trace-cmd split` writes consecutive standalone files. In any order they give the tables of the whole."""
    rng = random.Random(seed)
    world = tracedat.world(rng, 30)
    # No piece is empty.
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


def test_a_log_of_one_thread_hides_no_other_thread(tmp_path: Path) -> None:
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
        # Completions have the thread that they interrupted, so those of other threads are missing from this log.
        assert {row["reason"] for row in joint["loss"]} <= {"duplicate", "never_completed"}


def test_the_low_level_log_has_events_of_every_recording(tmp_path: Path) -> None:
    files = [str(DATA / recording) for recording in RECORDINGS[1:]]
    out = tmp_path / "x.events.jsonl"
    _core.convert(files, str(out))
    first, *lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert first["event"] == "several_recordings"
    assert {line["source"] for line in lines} == {"trace-dat", "perf", "blktrace", "strace"}
    times = [line["ts_ns"] for line in lines]
    assert times == sorted(times)


def test_the_same_log_given_twice_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.gz"
    copy.write_bytes((DATA / "perf.txt.gz").read_bytes())
    plain = tmp_path / "perf.txt"
    plain.write_bytes(gzip.decompress(copy.read_bytes()))
    perf_copies = [(DATA / "perf.txt.gz", copy), (plain, copy), (copy, plain)]
    for first, second in ((DATA / "strace.log",) * 2, *perf_copies):
        message = fails(3, "convert", first, second, "-o", tmp_path / "x.csv")
        assert f"{second} is the same log as {first}" in message
    assert not (tmp_path / "x.csv").exists()


def test_recordings_that_do_not_overlap_cause_a_warning(
    separate: dict[str, dict[str, Rows]], tmp_path: Path
) -> None:
    strace = DATA / "strace.log"
    starts = [
        min(row["ts_ns"] for row in separate[recording]["sync"])
        for recording in ("ring.dat", "strace.log")
    ]
    for offset, is_warned in (("0", True), (f"{starts[0] - starts[1]}ns", False)):
        arguments = ("convert", DATA / "ring.dat", strace, "--offset", f"{strace}={offset}")
        stderr = run(*arguments, "-o", tmp_path / "x.csv").stderr
        assert ("so nothing is joined" in stderr and "is --offset right?" in stderr) == is_warned
    assert (
        "so nothing is joined"
        not in run(
            "convert", *(DATA / recording for recording in RECORDINGS), "-o", tmp_path / "x.csv"
        ).stderr
    )
