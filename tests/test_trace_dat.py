"""trace.dat: a real recording against `trace-cmd report`, generated files against their events, and bad files."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core

from tests.coretools import assert_same, convert, tables
from tests.reference import badtracedat, thesis, tracedat
from tests.reference.tracedat import Event, Shape, World
from tests.test_commands import left, run

DATA = Path(__file__).parent / "data" / "tracecmd"
SMALL4 = DATA / "small4.dat"


def low_level(folder: Path, data: bytes) -> list[dict[str, Any]]:
    """The lines of the low-level log."""
    log = convert(folder, data, "out.events.jsonl", name="in.dat")
    return [json.loads(line) for line in log.read_text().splitlines()]


# A recording.

NUMBER = r"\S+"
BDI = r"bdi (?P<name>\S+): "
RQ = r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) (?P<bytes>\d+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ (?P<nr_sector>\d+) \S+ \[(?P<data_comm>.+)\]"
STATE = BDI + r"ino=(?P<ino>\d+) state=\S* flags=\S*"
INODE = r"dev (?P<dev>\d+,\d+) ino (?P<ino>\d+) dirtied (?P<dirtied_when>\d+) state \S* mode (?P<mode>\d+)"
WORK = (
    BDI + r"sb_dev \S+ nr_pages=(?P<nr_pages>\d+) sync_mode=(?P<sync_mode>\d+)"
    r" kupdate=(?P<for_kupdate>\d+) range_cyclic=(?P<range_cyclic>\d+)"
    r" background=(?P<for_background>\d+) reason=\S+ cgroup_ino=(?P<cgroup_ino>\d+)"
)
SINGLE = (
    BDI + r"ino=(?P<ino>\d+) state=\S* dirtied_when=(?P<dirtied_when>\d+) age=\d+"
    r" index=(?P<writeback_index>\d+) to_write=(?P<nr_to_write>\d+) wrote=(?P<wrote>\d+)"
    r" cgroup_ino=(?P<cgroup_ino>\d+)"
)
INODE_WRITE = BDI + r"ino=(?P<ino>\d+) sync_mode=(?P<sync_mode>\d+) cgroup_ino=(?P<cgroup_ino>\d+)"
# How `trace-cmd report` prints fields. Flags, which it prints as names, are left out.
PRINTED = {
    "sys_enter_write": r"fd: (?P<fd>\S+), buf: (?P<buf>\S+), count: (?P<count>\S+)",
    "sys_exit_write": r"(?P<ret>\S+)",
    "sys_enter_fsync": r"fd: (?P<fd>\S+)",
    "sys_exit_fsync": r"(?P<ret>\S+)",
    "sync_start": r"id=(?P<id>\d+) start=(?P<start>\d+) end=(?P<end>\d+) datasync=(?P<datasync>\d) dev=(?P<dev>\S+) ino=(?P<ino>\d+) path=(?P<path>.*)",
    "sync_end": r"id=(?P<id>\d+) ret=(?P<ret>-?\d+)",
    "bio_add_folio": r"id=(?P<id>\d+) bio=(?P<bio>\w+)x start=(?P<start>\d+) len=(?P<len>\d+) dev=(?P<dev>\S+) ino=(?P<ino>\d+)",
    "bio_submit": r"id=(?P<id>\d+) bio=(?P<bio>\w+)x dev=(?P<dev>\S+) sector=(?P<sector>\d+) bytes=(?P<bytes>\d+) opf=(?P<opf>\S+)",
    "bio_complete": r"bio=(?P<bio>\w+)x status=(?P<status>\d+)",
    "ext4_sync_file_enter": r"dev (?P<dev>\S+) ino (?P<ino>\d+) parent (?P<parent>\d+) datasync (?P<datasync>\d) ?",
    "ext4_sync_file_exit": r"dev (?P<dev>\S+) ino (?P<ino>\d+) ret (?P<ret>\d+)",
    "jbd2_start_commit": r"dev (?P<dev>\S+) transaction (?P<transaction>\d+) sync (?P<sync_commit>\d)",
    "jbd2_end_commit": r"dev (?P<dev>\S+) transaction (?P<transaction>\d+) sync (?P<sync_commit>\d) head (?P<head>\d+)",
    "block_bio_queue": r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) (?P<sector>\d+) \+ (?P<nr_sector>\d+) \[(?P<data_comm>.+)\]",
    "block_rq_issue": RQ,
    "block_rq_insert": RQ,
    "block_rq_complete": r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ (?P<nr_sector>\d+) \S+ \[(?P<error>-?\d+)\]",
    "global_dirty_state": r"dirty=(?P<nr_dirty>\d+) writeback=(?P<nr_writeback>\d+) bg_thresh=(?P<background_thresh>\d+) thresh=(?P<dirty_thresh>\d+) limit=(?P<dirty_limit>\d+) dirtied=(?P<nr_dirtied>\d+) written=(?P<nr_written>\d+)",
    "writeback_mark_inode_dirty": STATE,
    "writeback_dirty_inode_start": STATE,
    "writeback_dirty_inode": STATE,
    "writeback_dirty_inode_enqueue": INODE,
    "sb_mark_inode_writeback": INODE,
    "sb_clear_inode_writeback": INODE,
    "writeback_dirty_folio": BDI + r"ino=(?P<ino>\d+) index=(?P<index>\d+)",
    "folio_wait_writeback": BDI + r"ino=(?P<ino>\d+) index=(?P<index>\d+)",
    "writeback_start": WORK,
    "writeback_written": WORK,
    "writeback_queue_io": BDI
    + r"older=(?P<older>\d+) age=(?P<age>\d+) enqueue=(?P<moved>\d+) reason=\S+ cgroup_ino=(?P<cgroup_ino>\d+)",
    "writeback_single_inode_start": SINGLE,
    "writeback_single_inode": SINGLE,
    "writeback_write_inode_start": INODE_WRITE,
    "writeback_write_inode": INODE_WRITE,
    "writeback_pages_written": r"(?P<pages>\d+)",
}
LINE = re.compile(
    r"\s*(?P<comm>.+)-(?P<tid>\d+)\s+\[\d+\]\s+\S+\s+(?P<s>\d+)\.(?P<us>\d+):\s+(?P<event>\w+):\s*(?P<rest>.*)"
)


@cache
def report() -> list[dict[str, Any]]:
    """The lines of trace-cmd's report: thread, time in µs, event and fields as printed."""
    lines = gzip.decompress((DATA / "small4.report.txt.gz").read_bytes()).decode().splitlines()
    assert lines[0] == "cpus=2"
    found = []
    for line in lines[1:]:
        row = LINE.fullmatch(line)
        assert row, line
        fields = re.fullmatch(PRINTED[row["event"]], row["rest"])
        assert fields, line
        found.append(
            {
                "tid": int(row["tid"]),
                "comm": row["comm"],
                "us": int(row["s"]) * 10**6 + int(row["us"]),
                "event": row["event"],
                "fields": fields.groupdict(),
            }
        )
    return found


def same_value(key: str, printed: str, found: Any) -> bool:
    if key == "dev" and isinstance(found, int):
        return printed == f"{found >> 20},{found & 0xFFFFF}"
    if isinstance(found, str):
        return printed == found
    base = 8 if key == "mode" else 0
    return int(printed, base) % 2**64 == found % 2**64


def test_every_event_is_what_trace_cmd_reports(tmp_path: Path) -> None:
    found, printed = low_level(tmp_path, SMALL4.read_bytes()), report()
    assert len(found) == len(printed) == 3377
    for row, expected in zip(found, printed, strict=True):
        assert (row["tid"], row["comm"], row["event"]) == (
            expected["tid"],
            expected["comm"],
            expected["event"],
        )
        assert (row["ts_ns"] + 500) // 1000 == expected["us"]
        for key, value in expected["fields"].items():
            assert same_value(key, value, row[key]), (key, value, row)


def test_its_requests_are_those_of_the_report(tmp_path: Path) -> None:
    starts: dict[int, dict[str, Any]] = {}
    ends: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[str, Any]] = {}  # the last of each thread
    call_by_id: dict[int, dict[str, Any]] = {}
    exits: dict[int, int] = {}  # by the time of the entry
    bytes_by_id: dict[int, int] = defaultdict(int)
    in_flight: dict[str, int] = {}
    submits: dict[int, list[int]] = defaultdict(list)
    completes: dict[int, list[int]] = defaultdict(list)
    for event in report():
        fields, us, tid = event["fields"], event["us"], event["tid"]
        match event["event"]:
            case "sys_enter_fsync":
                calls[tid] = event
            case "sys_exit_fsync":
                exits[calls[tid]["us"]] = us
            case "sync_start":
                starts[int(fields["id"])] = event
                call_by_id[int(fields["id"])] = calls[tid]
            case "sync_end":
                ends[int(fields["id"])] = event
            case "bio_add_folio":
                bytes_by_id[int(fields["id"])] += int(fields["len"])
            case "bio_submit":
                in_flight[fields["bio"]] = int(fields["id"])
                submits[int(fields["id"])].append(us)
            case "bio_complete":
                completes[in_flight.pop(fields["bio"])].append(us)
    assert not in_flight

    result = tables(convert(tmp_path, SMALL4.read_bytes(), name="in.dat"))
    assert {row["reason"]: row["count"] for row in result["loss"]} == {"duplicate": 300}
    result["bio"] = [row for row in result["bio"] if row["direction"] == "write"]
    bios = [row for row in result["bio"] if row["sync_id"] is not None]
    assert len(result["sync"]) == len(result["call"]) == len(bios) == 100
    # The other bios, which only the block layer's events show, belong to the journal.
    assert {row["comm"] for row in result["bio"] if row["sync_id"] is None} == {"jbd2/vdb-8"}
    assert {row["id"] for row in result["sync"]} == starts.keys() == ends.keys()
    meta = {row["key"]: row["value"] for row in result["meta"]}
    assert (meta["source"], meta["clock"]) == ("trace-dat", "local")
    assert meta["kernel"] == "Linux (none) 6.12.117-wbtrace x86_64"
    assert meta["recorder"].startswith("trace-cmd 3.3.1")
    for row in result["sync"]:
        number = row["id"]
        start, call = starts[number], call_by_id[number]
        assert (row["tid"], row["comm"]) == (start["tid"], start["comm"])
        assert row["path"] == start["fields"]["path"]
        assert row["dev"] == start["fields"]["dev"]
        assert row["ino"] == int(start["fields"]["ino"])
        assert (row["op"], row["datasync"], row["fs"]) == ("fsync", False, "ext4")
        assert (
            (row["bytes"], row["bios"], row["folios"])
            == (bytes_by_id[number], 1, 1)
            == (4096, 1, 1)
        )
        assert (row["confidence"], row["incomplete"], row["ret"]) == ("exact", None, 0)
        end, first, last = ends[number]["us"], min(submits[number]), max(completes[number])
        for column, us in {
            "ts_ns": call["us"],
            "start_ns": start["us"],
            "dur_ns": end - call["us"],
            "syscall_ns": exits[call["us"]] - call["us"],
            "before_submit_ns": first - start["us"],
            "writeback_ns": last - first,
            "after_complete_ns": end - last,
        }.items():
            # The report rounds times to µs.
            assert abs(row[column] - us * 1000) <= 1000, column


def test_the_low_level_log_of_a_recording_gives_the_same_requests(tmp_path: Path) -> None:
    direct = convert(tmp_path, SMALL4.read_bytes(), "direct.csv", name="in.dat")
    log = convert(tmp_path, SMALL4.read_bytes(), "log.events.jsonl", name="in.dat")
    again = convert(tmp_path, log.read_bytes(), "again.csv", name="in.events.jsonl")
    assert again.read_bytes() == direct.read_bytes()
    second = convert(tmp_path, log.read_bytes(), "second.events.jsonl", name="in.events.jsonl")
    source = b'"source":"%s"'
    assert second.read_bytes() == log.read_bytes().replace(
        source % b"trace-dat", source % b"events-jsonl"
    )


def test_a_compressed_or_piped_file_gives_the_same(tmp_path: Path) -> None:
    data = SMALL4.read_bytes()
    plain = convert(tmp_path, data, "plain.csv", name="in.dat").read_bytes()
    for name, packed in {
        "in.dat.gz": gzip.compress(data, 1),
        "in.dat.zst": tracedat.compressed("zstd", data),
    }.items():
        assert convert(tmp_path, packed, f"{name}.csv", name=name).read_bytes() == plain
    for name, piped in {"pipe": data, "pipe.gz": gzip.compress(data, 1)}.items():
        out = tmp_path / f"{name}.csv"
        assert run("convert", "-q", "-", "-o", out, stdin=piped).returncode == 0
        assert out.read_bytes() == plain


# Files of a known list of events.

PAIRED = {"sync_start", "bio_submit"}


def expected_log(world: World, shape: Shape) -> list[dict[str, Any]]:
    """The expected low-level log of a world."""
    lines = []
    for event in world.events:
        name = event.name.split(":")[1]
        line: dict[str, Any] = {"ts_ns": event.ts, "tid": event.tid}
        if event.tid in world.comms:
            line["comm"] = world.comms[event.tid]
        line |= {"event": name, "source": "trace-dat"}
        for key, value in event.fields.items():
            if key == "bio":
                value = f"0x{value:x}"
            elif key == "dev":
                value = f"{value >> 20},{value & 0xFFFFF}"
            elif key == "sector" and value == 2**64 - 1:
                continue
            elif isinstance(value, list):
                order = "big" if shape.big_endian else "little"
                value = b"".join((v % 2**32).to_bytes(4, order) for v in value).hex()
            line[key] = value
        if name == "bio_submit" and "bytes" in event.fields:
            # The patch reports the size of the bio, and other recorders that of its folios.
            line["bytes_of"] = "bio"
        lines.append(line)
    return lines


def as_text(world: World) -> bytes:
    """The events in the line format of the thesis, which the reference reads."""
    lines = []
    for event in world.events:
        name, data = event.name.split(":")[1], ""
        fields = dict(event.fields)
        if name.startswith("sys_"):
            if name == "sys_enter_write":
                continue
            name = name.removeprefix("sys_enter_")
            data = f"ret {fields['ret']}" if name.startswith("sys_exit_") else ""
        elif event.name.startswith("wb_tracer:"):
            if "bio" in fields:
                fields["bio"] = f"0x{fields['bio']:x}"
            if "dev" in fields:
                fields["dev"] = f"{fields['dev'] >> 20},{fields['dev'] & 0xFFFFF}"
            if fields.get("sector") == 2**64 - 1:
                fields["sector"] = -1
            data = " ".join(f"{key} {value}" for key, value in fields.items())
        else:
            continue
        comm = world.comms.get(event.tid, "")
        lines.append(f"{event.ts} {event.tid} {comm} {name} {data}".rstrip() + "\n")
    return "".join(lines).encode()


def check(world: World, shape: Shape, folder: Path) -> None:
    """Checks that a file gives its events in order of time, and their requests."""
    data = tracedat.file(world, shape)
    lines = low_level(folder, data)
    lost = [line for line in lines if line["event"] == "lost_events"]
    is_lost = [line["event"] == "lost_events" for line in lines]
    # Number of events before each loss.
    places = [n - sum(is_lost[:n]) for n, one in enumerate(is_lost) if one]
    lines = [line for line in lines if line["event"] != "lost_events"]
    assert lines == expected_log(world, shape)
    assert places == sorted(gap.before for gap in world.gaps)
    count = sum(1 if gap.count is None else gap.count for gap in world.gaps)
    assert sum(line.get("count", 1) for line in lost) == count

    result = tables(convert(folder, data, name="in.dat"))
    losses = {row["reason"]: row["count"] for row in result["loss"]}
    assert losses.get("lost_by_tracer", 0) == count
    result["loss"] = [row for row in result["loss"] if row["reason"] != "lost_by_tracer"]
    assert_same(thesis.read(as_text(world)), result)


shapes = st.builds(
    Shape,
    version=st.sampled_from((6, 7)),
    compression=st.sampled_from(("none", "zlib", "zstd")),
    big_endian=st.booleans(),
    long=st.sampled_from((4, 8)),
    page_bytes=st.sampled_from((1024, 4096, 65536)),
    chunk_pages=st.sampled_from((1, 2, 10)),
    count_in_size=st.booleans(),
    clock=st.sampled_from(("local", "boot", "mono")),
    offset=st.sampled_from((None, "0", "-12345", "0x1000", "99")),
    # Ticks of half a ns.
    tsc=st.sampled_from((None, None, (1 << 19, 20, 0), (1 << 19, 20, 1000))),
    seed=st.integers(0, 1000),
    shuffled=st.booleans(),
    rel_loc=st.booleans(),
    ino=st.sampled_from(("unsigned long", "u64", "unsigned int")),
    p_extend=st.sampled_from((0.0, 0.2)),
    p_discarded=st.sampled_from((0.0, 0.2)),
    p_length=st.sampled_from((0.0, 0.2, 1.0)),
    p_new_page=st.sampled_from((0.0, 0.1, 0.5)),
    stale=st.booleans(),
)


def with_gaps(world: World, rng: random.Random) -> World:
    """Adds reports of lost events. No event is missing, so that pairing does not change."""
    places = rng.sample(range(len(world.events)), 3)
    counts = (1, 4711, None)
    gaps = [
        tracedat.Gap(world.events[place].cpu, place, count)
        for place, count in zip(places, counts, strict=True)
    ]
    return replace(world, gaps=gaps)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    cpus=st.sampled_from((1, 2, 5)),
    first=st.sampled_from((10**6, 40 * 10**9, (1 << 60) + 7)),
    gaps=st.booleans(),
    buffers=st.booleans(),
    shape=shapes,
)
def test_every_encoding_of_events_gives_the_same(
    seed: int,
    cpus: int,
    first: int,
    gaps: bool,
    buffers: bool,
    shape: Shape,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rng = random.Random(seed)
    world = tracedat.world(rng, requests=10, cpus=cpus, first=first)
    if gaps:
        world = with_gaps(world, rng)
    if buffers:
        world = badtracedat.in_buffers(world)
    if shape.version == 6:
        shape = replace(shape, compression="none")
    if shape.tsc:
        shape = replace(shape, clock="x86-tsc")
    check(world, shape, tmp_path_factory.mktemp("dat"))


def test_stats_count_lost_events_if_a_page_has_no_count(tmp_path: Path) -> None:
    world = tracedat.world(random.Random(1))
    gaps = [tracedat.Gap(world.events[9].cpu, 9, 100), tracedat.Gap(world.events[30].cpu, 30, None)]
    stats = "overrun: 500\ncommit overrun: 0\ndropped events: 0"
    data = tracedat.file(replace(world, gaps=gaps), Shape(stats=stats))
    result = tables(convert(tmp_path, data, name="in.dat"))
    losses = {row["reason"]: row["count"] for row in result["loss"]}
    assert losses == {"lost_by_tracer": 500 * world.cpus}
    # The counts of pages are used if every page has one: the file may be part of a larger recording.
    data = tracedat.file(replace(world, gaps=gaps[:1]), Shape(stats=stats))
    result = tables(convert(tmp_path, data, name="in.dat"))
    assert {row["reason"]: row["count"] for row in result["loss"]} == {"lost_by_tracer": 100}


@pytest.mark.parametrize("seed", range(10))
def test_events_of_the_same_time_keep_their_order(seed: int, tmp_path: Path) -> None:
    world = tracedat.world(random.Random(seed), requests=20, cpus=4)
    # The clock counts 10 ms. A thread stays on its CPU, because only the CPU's order of events remains.
    step = 10**7
    events = [replace(e, ts=e.ts // step * step, cpu=e.tid % 4) for e in world.events]
    data = tracedat.file(replace(world, events=events), Shape(p_new_page=0.5, seed=seed))
    direct = convert(tmp_path, data, "direct.csv", name="in.dat")
    log = convert(tmp_path, data, "log.events.jsonl", name="in.dat")
    again = convert(tmp_path, log.read_bytes(), "again.csv", name="in.events.jsonl")
    assert again.read_bytes() == direct.read_bytes()


def test_events_of_a_cpu_that_go_back_in_time_are_late(tmp_path: Path) -> None:
    # Pages in the wrong order, which no kernel writes.
    class Backwards(tracedat.Writer):
        def pages(self, events: list[tuple[int, Event]], clock: Any) -> list[bytes]:
            return super().pages(events, clock)[::-1]

    world = tracedat.world(random.Random(2), requests=4000, cpus=2)
    data = Backwards(world, Shape()).file()
    result = tables(convert(tmp_path, data, name="in.dat"))
    losses = {row["reason"]: row["count"] for row in result["loss"]}
    assert losses["late_event"] > 1000
    assert len(low_level(tmp_path, data)) == len(world.events)


@pytest.mark.skipif(shutil.which("trace-cmd") is None, reason="trace-cmd is not installed")
@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("long", [4, 8])
def test_trace_cmd_reads_the_generated_files(
    version: int, big_endian: bool, long: int, tmp_path: Path
) -> None:
    rng = random.Random(version + long)
    world = tracedat.world(rng, first=(1 << 58) + 7 if big_endian else 10**6)
    shape = Shape(
        version=version,
        big_endian=big_endian,
        long=long,
        offset="0x1000",
        shuffled=True,
        p_extend=0.2,
        p_discarded=0.2,
        p_length=0.2,
        p_new_page=0.2,
        stale=True,
    )
    path = tmp_path / "generated.dat"
    path.write_bytes(tracedat.file(world, shape))
    text = subprocess.run(
        ["trace-cmd", "report", "-t", "-R", path], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"^\s*(.+)-(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+): (\w+):", text, re.MULTILINE)
    expected = [
        (world.comms[e.tid], e.tid, e.cpu, e.ts, e.name.split(":")[1]) for e in world.events
    ]
    assert [
        (comm, int(tid), int(cpu), int(s) * 10**9 + int(ns), name)
        for comm, tid, cpu, s, ns, name in found
    ] == expected


# Bad input.


@pytest.mark.parametrize("name", sorted(badtracedat.BAD))
@pytest.mark.parametrize("to", ["out/", "out.events.jsonl"])
def test_a_bad_file_is_an_error_or_a_counted_loss(name: str, to: str, tmp_path: Path) -> None:
    bad = badtracedat.BAD[name]()
    if to == "out.events.jsonl" and name == "no_event_of_a_sync":
        pytest.skip("a low-level log holds them")
    path = tmp_path / "bad.dat"
    path.write_bytes(bad.data)
    if not bad.said:
        summary = _core.convert([str(path)], f"{tmp_path}/{to}")
        losses = {row["reason"]: row["count"] for row in summary["losses"]}
        if to != "out/":
            bad.losses = {
                r: n for r, n in bad.losses.items() if r in ("unparsed_line", "lost_by_tracer")
            }
        assert losses == bad.losses
        assert not bad.shown or bad.shown in summary["unparsed"][0]
        return
    with pytest.raises(_core.CoreError) as caught:
        _core.convert([str(path)], f"{tmp_path}/{to}")
    message, hint, kind = caught.value.args
    assert kind == "input"
    assert str(path) in message
    assert bad.said in message
    assert (bad.hint or "copy it again") in hint
    assert not [entry for entry in left(tmp_path) if entry not in ("bad.dat", "out")]
    assert not (tmp_path / "out").exists() or not left(tmp_path / "out")


MEMORY = """
import pathlib, sys
from syncline import _core
for file in pathlib.Path(sys.argv[1]).iterdir():
    try:
        _core.convert([str(file)], f"{file}.csv")
    except _core.CoreError:
        pass
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_files_with_false_sizes_take_no_memory(tmp_path: Path) -> None:
    for name, make in badtracedat.BAD.items():
        (tmp_path / f"{name}.dat").write_bytes(make().data)
    # In a process of its own, because this one's peak includes earlier tests.
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 300_000


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from((badtracedat.V6, badtracedat.V7, badtracedat.ZLIB)),
    at=st.floats(0, 1, exclude_max=True),
)
def test_a_file_cut_anywhere_is_refused(
    shape: Shape, at: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = badtracedat.good(shape)
    cut = data[: max(len(tracedat.MAGIC), int(at * len(data)))]
    with pytest.raises(_core.CoreError) as caught:
        convert(tmp_path_factory.mktemp("cut"), cut, name="in.dat")
    message, hint, kind = caught.value.args
    assert (kind, "in.dat" in message, "copy it again" in hint) == ("input", True, True)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from((badtracedat.V6, badtracedat.V7, badtracedat.ZLIB)),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=4)),
        min_size=1,
        max_size=5,
    ),
)
def test_a_file_with_wrong_bytes_is_read_or_refused(
    shape: Shape, changes: list[tuple[float, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(badtracedat.good(shape))
    for at, new in changes:
        place = len(tracedat.MAGIC) + int(at * (len(data) - 20))
        data[place : place + len(new)] = new
    try:
        convert(tmp_path_factory.mktemp("wrong"), bytes(data), name="in.dat")
    except _core.CoreError as error:
        message, hint, kind = error.args
        assert kind == "input"
        assert "in.dat" in message
        assert hint


def test_another_format_is_not_read_as_trace_dat(tmp_path: Path) -> None:
    with pytest.raises(
        _core.CoreError, match=r"it is not a trace\.dat file: it does not begin like one"
    ):
        convert(tmp_path, b"1 2 wl fsync\n", source="trace-dat")


@pytest.mark.parametrize("clock", ["counter", "uptime", "x86-tsc", "ppc-tb", "s390-tod"])
def test_a_clock_that_counts_no_ns_is_refused(clock: str, tmp_path: Path) -> None:
    world = tracedat.world(random.Random(1))
    with pytest.raises(_core.CoreError, match=f"its clock, {clock}, counts"):
        convert(tmp_path, tracedat.file(world, Shape(clock=clock)), name="in.dat")


@pytest.mark.parametrize("version", [6, 7])
def test_a_recording_of_nothing_has_a_clock(version: int, tmp_path: Path) -> None:
    """With another log of the same clock, what is wrong is that it has no events."""
    shape = Shape(version, clock="boot")
    (empty := tmp_path / "empty.dat").write_bytes(tracedat.file(World([], {}, cpus=2), shape))
    (log := tmp_path / "stacks.log").write_text(
        "# syncline-log 1\n# clock boottime\n100 7 wl fsync\n"
    )
    with pytest.raises(_core.CoreError, match="no event"):
        _core.convert([str(empty), str(log)], f"{tmp_path}/out/")


def test_a_page_of_zeros_is_a_loss(tmp_path: Path) -> None:
    """A hole in a sparse copy, which trace-cmd does not report."""
    world = tracedat.world(random.Random(3), requests=60)
    whole = tracedat.file(world, Shape(clock="boot"))
    # The first page of the first event's CPU begins with the time of that event.
    at = whole.index(world.events[0].ts.to_bytes(8, "little"))
    for data, holes in ((whole, 0), (whole[:at] + bytes(4096) + whole[at + 4096 :], 1)):
        rows = tables(convert(tmp_path, data, name="in.dat"))["loss"]
        assert sum(row["count"] for row in rows if row["reason"] == "unparsed_line") == holes


def test_a_page_after_a_gap_keeps_its_unreadable_record_and_its_loss(tmp_path: Path) -> None:
    """The low-level log has the notes of a page in the order of their places, and none is left out."""
    world = tracedat.world(random.Random(1), cpus=1)
    (first,) = {event.cpu for event in world.events}
    whole = tracedat.file(replace(world, gaps=[tracedat.Gap(first, 1, 100)]), Shape())
    # The first event that cannot be read stands behind others of its page.
    data = re.sub(rb"(name: bio_submit\n.*?\bdev_t )dev;", rb"\1dew;", whole, flags=re.DOTALL)
    assert data != whole
    log = convert(tmp_path, data, "out.events.jsonl", name="in.dat")
    direct, again = (
        {row["reason"]: row["count"] for row in tables(convert(tmp_path, text, name=name))["loss"]}
        for text, name in ((data, "in.dat"), (log.read_bytes(), "in.events.jsonl"))
    )
    for reason in ("lost_by_tracer", "unparsed_line"):
        assert direct[reason] == again[reason] > 0
