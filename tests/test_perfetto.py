"""Perfetto's system traces: the rows of a trace.dat that was transcoded, its events against the trace processor's, and bad traces."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TraceConfig, TracePacket
from syncline import _core
from syncline.cli.open import _add_system_trace, _first_of, _trace_of
from syncline.engine import open_trace
from syncline.inputs import opened
from syncline.kinds import resolve
from syncline.reading import Reading
from syncline.report import run_query

from tests.coretools import Rows, convert, tables
from tests.reference import perfettotrace, tracedat
from tests.reference.perfettotrace import Recording, to_bytes, transcode
from tests.test_commands import run
from tools import ftrace_protos

DATA = Path(__file__).parent / "data"
DATS = {
    # Syscalls, tracepoints of the patch, ext4, jbd2, writeback and the block layer.
    "small4": DATA / "tracecmd" / "small4.dat",
    # Dynamic events, in two buffers.
    "ext4": DATA / "dynamic-events" / "ext4.dat.gz",
    "run": DATA / "dynamic-events" / "run" / "trace.dat.gz",
}


@cache
def dat(name: str) -> bytes:
    data = DATS[name].read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@cache
def recording(name: str) -> Recording:
    return perfettotrace.read(dat(name))


@cache
def packets(name: str, generic: str = "described", compact: bool = False) -> list[TracePacket]:
    return transcode(recording(name), generic, compact)


def told(rows: dict[str, Rows]) -> dict[str, Any]:
    """All rows, without what names the input and its format."""
    kept = {
        table: [
            {key: value for key, value in row.items() if key not in ("example", "source")}
            for row in of_table
        ]
        for table, of_table in rows.items()
    }
    names = ("source", "input", "kernel", "recorder", "clock", "lines", "realtime_offset_ns")
    kept["meta"] = [row for row in kept["meta"] if not row["key"].startswith(names)]
    return kept


def rows_of(folder: Path, data: bytes, name: str, **options: Any) -> dict[str, Rows]:
    folder.mkdir()
    return tables(convert(folder, data, name=name, **options))


# ---------------------------------------------------------------- the same run in both formats


@pytest.mark.parametrize("generic", ["legacy", "described"])
@pytest.mark.parametrize("name", DATS)
def test_a_transcoded_recording_has_the_same_rows(name: str, generic: str, tmp_path: Path) -> None:
    own = rows_of(tmp_path / "dat", dat(name), "in.dat")
    assert own["sync"]
    for group in (False, True):
        made = to_bytes(transcode(recording(name), generic, with_groups=group))
        trace = rows_of(tmp_path / f"trace-{group}", made, "in.perfetto-trace")
        assert told(trace) == told(own)


@pytest.mark.parametrize("seed", range(6))
def test_any_run_has_the_same_rows(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    world = tracedat.world(rng, requests=20, cpus=rng.choice((1, 3, 7)))
    data = tracedat.file(world, tracedat.Shape(version=6, clock="boot"))
    own = rows_of(tmp_path / "dat", data, "in.dat")
    for generic in ("legacy", "described"):
        made = transcode(perfettotrace.read(data), generic, bundle_events=rng.choice((1, 7, 100)))
        trace = rows_of(tmp_path / generic, to_bytes(made), "in.perfetto-trace")
        assert told(trace) == told(own)


def test_what_a_trace_says_of_itself(tmp_path: Path) -> None:
    meta = {
        row["key"]: row["value"]
        for row in rows_of(tmp_path / "out", to_bytes(packets("small4")), "x")["meta"]
    }
    assert (meta["source"], meta["clock"]) == ("perfetto", "boottime")
    assert meta["kernel"] == "Linux 6.12.117-wbtrace x86_64"
    assert meta["recorder"] == "Perfetto v0.0 (transcoded)"


@pytest.mark.parametrize("packing", ["gzip", "zlib packets", "zstd packets", "pipe"])
def test_packed_traces_have_the_same_rows(packing: str, tmp_path: Path) -> None:
    plain = packets("ext4")
    expected = convert(tmp_path, to_bytes(plain), "plain.csv", name="plain").read_bytes()
    if packing == "gzip":
        data = gzip.compress(to_bytes(plain))
    elif packing == "pipe":
        out = tmp_path / "out.csv"
        assert run("convert", "-q", "-", "-o", out, stdin=to_bytes(plain)).returncode == 0
        assert out.read_bytes() == expected
        return
    else:
        made = []
        for at in range(0, len(plain), 9):
            inner = to_bytes(plain[at : at + 9])
            if packing == "zlib packets":
                made.append(TracePacket(compressed_packets=zlib.compress(inner)))
            else:
                packed = tracedat.compressed("zstd", inner)
                made.append(TracePacket(zstd_compressed_packets=packed))
        data = to_bytes(made)
    assert convert(tmp_path, data, "out.csv", name="packed").read_bytes() == expected


# ---------------------------------------------------------------- the scheduler


def scheduled(compact: bool) -> bytes:
    """Two threads of two CPUs, one of which switches before anything else is known of its CPU."""
    trace = Trace()
    trace.packet.add().system_info.utsname.machine = "x86_64"
    rows = [(100, 7, 2, 9), (200, 9, 0, 7), (350, 7, 1, 0)]
    for cpu in (0, 1):
        packet = trace.packet.add(trusted_packet_sequence_id=1)
        bundle = packet.ftrace_events
        bundle.cpu = cpu
        last = 0
        for ts, prev, state, following in rows:
            ts += cpu
            if compact:
                sched = bundle.compact_sched
                if not sched.intern_table:
                    sched.intern_table.extend(
                        ["swapper/0", "db", "", "", "", "", "", "db", "", "w"]
                    )
                sched.switch_timestamp.append(ts - last)
                sched.switch_prev_state.append(state)
                sched.switch_next_pid.append(following + cpu * 10 * (following > 0))
                sched.switch_next_prio.append(120)
                sched.switch_next_comm_index.append(following)
                last = ts
            else:
                event = bundle.event.add(timestamp=ts, pid=prev + cpu * 10)
                event.sched_switch.prev_pid = prev + cpu * 10
                event.sched_switch.prev_state = state
                event.sched_switch.next_pid = following + cpu * 10 * (following > 0)
                event.sched_switch.next_comm = ["", "", "", "", "", "", "", "db", "", "w"][
                    following
                ]
                event.sched_switch.next_prio = 120
        if cpu == 0:
            event = bundle.event.add(timestamp=50, pid=7)
            event.ext4_sync_file_enter.dev = 0xFE10
            event.ext4_sync_file_enter.ino = 13
        event = bundle.event.add(timestamp=300 + cpu, pid=7 + cpu * 10)
        event.ext4_sync_file_exit.dev = 0xFE10
        event.ext4_sync_file_exit.ino = 13
        event.ext4_sync_file_exit.ret = 0
    return trace.SerializeToString()


def test_compact_sched_names_the_thread_that_leaves(tmp_path: Path) -> None:
    lines = {}
    for compact in (False, True):
        log = convert(tmp_path, scheduled(compact), f"{compact}.events.jsonl", name=f"{compact}")
        lines[compact] = log.read_text().splitlines()
    # Compact sched does not say who left the second CPU first.
    unknown = [line for line in lines[False] if '"ts_ns":101,' in line]
    assert len(unknown) == 1
    without = [line for line in lines[False] if line not in unknown]
    # It is in the log as an event without a meaning.
    unread = [line for line in lines[True] if '"event":"event sched_switch"' in line]
    assert [json.loads(line)["ts_ns"] for line in unread] == [101]
    read = [line for line in lines[True] if line not in unread]

    def switches(lines: list[str]) -> list[tuple[Any, ...]]:
        rows = [json.loads(line) for line in lines]
        keys = ("ts_ns", "tid", "prev_pid", "prev_state", "next_pid")
        return [tuple(row.get(key) for key in keys) for row in rows]

    assert switches(read) == switches(without)


# ---------------------------------------------------------------- against the trace processor

# Fields that the low-level log has under another name, or in another unit.
RENAMED = {
    ("block", "nr_sector"),
    ("block", "errors"),
    ("bio_add_folio", "offset"),
}


def as_stored(value: Any) -> Any:
    """A value of the low-level log as the trace processor has it: with devices as programs see them, and signed."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\d+,\d+", value):
        major, minor = map(int, value.split(","))
        return perfettotrace.makedev(major << 20 | minor)
    if re.fullmatch(r"0x[0-9a-f]+|\d+", value):
        number = int(value, 0)
        return number - (1 << 64) if number >= 1 << 63 else number
    return value


@pytest.mark.parametrize(("name", "compact"), [("small4", False), ("ext4", False), ("ext4", True)])
def test_events_are_those_of_the_trace_processor(name: str, compact: bool, tmp_path: Path) -> None:
    """The engine that is embedded knows no descriptions of events, so the generic ones are legacy."""
    trace = tmp_path / "in.perfetto-trace"
    trace.write_bytes(to_bytes(packets(name, "legacy", compact)))
    assert compared_with_the_trace_processor(trace, compact, tmp_path) > 10_000


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs", "f2fs"])
def test_events_of_real_traces_are_those_of_the_trace_processor(fs: str, tmp_path: Path) -> None:
    trace = tmp_path / "in.perfetto-trace"
    trace.write_bytes(recorded(fs))
    assert compared_with_the_trace_processor(trace, True, tmp_path) > 5_000


def compared_with_the_trace_processor(trace: Path, compact: bool, tmp_path: Path) -> int:
    """Returns how many values of events are compared."""
    with open_trace(trace, engine="embedded") as engine:
        rows = engine.query(
            "SELECT f.id, f.ts, f.name, t.tid, a.key, coalesce(a.string_value, a.int_value) FROM ftrace_event f"
            " LEFT JOIN thread t USING (utid) LEFT JOIN args a USING (arg_set_id) ORDER BY f.id, a.id"
        ).rows
    theirs: dict[int, tuple[Any, dict[str, Any]]] = {}
    for number, ts, event, tid, key, value in rows:
        theirs.setdefault(number, ((ts, event, tid), {}))[1][key] = value
    log = convert(tmp_path, trace.read_bytes(), "out.events.jsonl", name="in")
    ours: dict[Any, list[dict[str, Any]]] = {}
    for line in log.read_text().splitlines():
        row = json.loads(line)
        event = row["event"].removeprefix("event ")
        ours.setdefault((row["ts_ns"], event, row.get("tid")), []).append(row)
    compared = 0
    for place, values in theirs.values():
        if place[1] in ("sys_enter", "sys_exit"):
            # In our log, the call has its name, where the trace has a number.
            calls = [(place[0], f"{place[1]}_{call}", place[2]) for call in ("fsync", "fdatasync")]
            (named,) = [call for call in calls if ours.get(call)]
            ours[named].pop(0)
            continue
        row = ours[place].pop(0)
        for key, value in values.items():
            if {(place[1], key), (place[1].split("_")[0], key)} & RENAMED:
                continue
            if compact and key.startswith("prev_"):
                # Ours has no name and no priority of the thread that leaves.
                assert key in ("prev_comm", "prev_prio") or row[key] == value
                continue
            has = row.get(f"data_{key}", row.get(key))
            assert as_stored(has) == as_stored(value), (place, key, row)
            compared += 1
    # A switch of which nobody knows the thread that leaves is an event without a meaning.
    left = [
        row["event"]
        for rows in ours.values()
        for row in rows
        if row["event"] != "event sched_switch"
    ]
    # The trace processor does not use what it knows of a CPU from other events before its first switch.
    assert not left or compact
    assert set(left) <= {"sched_switch", "sched_waking"}
    assert len(left) <= 4
    return compared


# ---------------------------------------------------------------- recorded by Perfetto


def recorded(fs: str) -> bytes:
    return gzip.decompress((DATA / "perfetto" / f"{fs}.perfetto-trace.gz").read_bytes())


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs", "f2fs"])
def test_the_syncs_are_those_that_the_program_made(fs: str, tmp_path: Path) -> None:
    """Each sync is within the call that the program timed, of the same thread and kind, and takes nearly all of its time."""
    truth = [line.split() for line in (DATA / "perfetto" / f"{fs}.truth").read_text().splitlines()]
    rows = rows_of(tmp_path / "out", recorded(fs), "in.perfetto-trace")
    syncs = sorted(rows["sync"], key=lambda row: (row["tid"], row["ts_ns"]))
    assert len(syncs) == len(truth) == 18
    calls = sorted((int(tid), int(begin), int(end), call) for tid, call, begin, end in truth)
    for sync, (tid, begin, end, call) in zip(syncs, calls, strict=True):
        assert (sync["tid"], sync["op"], sync["ret"]) == (tid, call, 0)
        assert begin <= sync["ts_ns"] <= sync["ts_ns"] + sync["dur_ns"] <= end
        assert sync["comm"] == "python3"
    # Between its look at the clock and the call, a thread of Python may wait for the others.
    timed = sum(end - begin for _, begin, end, _ in calls)
    assert 0.9 * timed < sum(sync["dur_ns"] for sync in syncs) < timed
    meta = {row["key"]: row["value"] for row in rows["meta"]}
    # The traces are of 2026-11-29, within their first two minutes and a half.
    begun = int(meta["first_ts_ns"]) + int(meta["realtime_offset_ns"])
    # `date -u -d 2026-11-29T23:40Z +%s`, and ten minutes later
    assert 1_795_995_600 < begun // 10**9 < 1_795_996_200
    assert not [row for row in rows["loss"] if row["severity"] == "loss"]


# ---------------------------------------------------------------- losses and bad traces


def losses(folder: Path, made: list[TracePacket]) -> dict[str, int]:
    rows = rows_of(folder, to_bytes(made), "in.perfetto-trace")["loss"]
    return {row["reason"]: row["count"] for row in rows}


def copy(made: list[TracePacket]) -> list[TracePacket]:
    return list(Trace.FromString(to_bytes(made)).packet)


def test_losses_are_counted(tmp_path: Path) -> None:
    made = copy(packets("ext4"))
    assert losses(tmp_path / "none", made) == {}
    bundles = [packet for packet in made if packet.HasField("ftrace_events")]
    bundles[5].ftrace_events.lost_events = True
    flagged = losses(tmp_path / "flagged", made)
    assert flagged["lost_by_tracer"] == 1
    for phase, overrun in ((1, 4), (2, 11)):
        stats = TracePacket(trusted_packet_sequence_id=3).ftrace_stats
        packet = TracePacket(trusted_packet_sequence_id=3)
        stats = packet.ftrace_stats
        stats.phase = phase
        stats.cpu_stats.add(cpu=0, overrun=overrun, dropped_events=overrun)
        made.append(packet)
    # Seven overwritten and seven dropped, of which the bundle has reported one.
    assert losses(tmp_path / "counted", made)["lost_by_tracer"] == 14


def test_dropped_packets_are_a_loss(tmp_path: Path) -> None:
    made = copy(packets("ext4"))
    bundles = [packet for packet in made if packet.HasField("ftrace_events")]
    # The first packet of a sequence has the flag, too.
    bundles[0].previous_packet_dropped = 1
    assert losses(tmp_path / "first", made) == {}
    bundles[4].previous_packet_dropped = 1
    later = {
        (packet.trusted_packet_sequence_id, packet.ftrace_events.cpu)
        for packet in bundles[4:]
        if packet.trusted_packet_sequence_id == bundles[4].trusted_packet_sequence_id
    }
    assert losses(tmp_path / "later", made)["lost_by_tracer"] == len(later)


def test_a_trace_that_is_cut_anywhere_is_counted_or_refused(tmp_path: Path) -> None:
    small = [*copy(packets("small4"))[:2], one_event(), one_event(cpu=1)]
    data = to_bytes(small)
    ends = {0}
    at = 0
    for packet in small:
        at += len(Trace(packet=[packet]).SerializeToString())
        ends.add(at)
    whole = 0
    for end in range(len(data)):
        try:
            log = convert(tmp_path, data[:end], f"{end}.csv", name="in", source="perfetto")
        except _core.CoreError as error:
            assert error.args[2] == "input", error
            assert error.args[1]
            continue
        whole += 1
        log.unlink()
    assert whole
    cut = rows_of(tmp_path / "cut", data[:-1], "cut")["loss"]
    (row,) = [row for row in cut if row["reason"] == "unparsed_line"]
    start = max(end for end in ends if end < len(data) - 1)
    assert row["count"] == 1
    assert f"the packet at byte {start}" in row["example"]
    assert len(ends) == 5


def test_damaged_packets_are_counted(tmp_path: Path) -> None:
    data = bytearray(to_bytes(packets("ext4")))
    rng = random.Random(5)
    found: Counter[str] = Counter()
    for number in range(24):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 20))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        try:
            rows = rows_of(tmp_path / f"{number}", bytes(damaged), "in", source="perfetto")
        except _core.CoreError as error:
            assert error.args[1]
            found["refused"] += 1
            continue
        found.update({row["reason"] for row in rows["loss"]})
    assert found["unparsed_line"]


def test_traces_without_ftrace_and_of_several_machines_are_refused(tmp_path: Path) -> None:
    made = copy(packets("small4"))
    without = [packet for packet in made if not packet.HasField("ftrace_events")]
    with pytest.raises(_core.CoreError, match=r"without events of ftrace"):
        convert(tmp_path, to_bytes(without), "a.csv", name="in", source="perfetto")
    made[-1].machine_id = 7
    with pytest.raises(_core.CoreError, match=r"several machines"):
        convert(tmp_path, to_bytes(made), "a.csv", name="in")


# ---------------------------------------------------------------- clocks and threads


def one_event(cpu: int = 0, **bundle: Any) -> TracePacket:
    """A sync of one CPU, in a packet."""
    packet = TracePacket(trusted_packet_sequence_id=9)
    packet.ftrace_events.cpu = cpu
    for key, value in bundle.items():
        setattr(packet.ftrace_events, key, value)
    for ts, name in ((1000, "ext4_sync_file_enter"), (1500, "ext4_sync_file_exit")):
        event = packet.ftrace_events.event.add(timestamp=ts, pid=77)
        getattr(event, name).dev = 0x10000801
        getattr(event, name).ino = 3
    event.ext4_sync_file_exit.ret = 0
    return packet


def sync_of(folder: Path, made: list[TracePacket]) -> tuple[dict[str, Any], str]:
    rows = rows_of(folder, to_bytes(made), "in")
    meta = {row["key"]: row["value"] for row in rows["meta"]}
    (sync,) = rows["sync"]
    return sync, meta["clock"]


def test_times_are_on_boottime(tmp_path: Path) -> None:
    sync, clock = sync_of(tmp_path / "plain", [one_event()])
    assert (sync["ts_ns"], clock, sync["dev"]) == (1000, "boottime", "8,65537")
    moment = {"ftrace_clock": 3, "ftrace_timestamp": 2000, "boot_timestamp": 7000}
    sync, clock = sync_of(tmp_path / "local", [one_event(**moment)])
    assert (sync["ts_ns"], clock) == (6000, "boottime")
    sync, clock = sync_of(tmp_path / "unrelated", [one_event(ftrace_clock=3)])
    assert (sync["ts_ns"], clock) == (1000, "local")
    snapshot = TracePacket()
    snapshot.clock_snapshot.clocks.add(clock_id=5, timestamp=400)
    snapshot.clock_snapshot.clocks.add(clock_id=6, timestamp=900)
    sync, clock = sync_of(tmp_path / "raw", [snapshot, one_event(ftrace_clock=4)])
    assert (sync["ts_ns"], clock) == (1500, "boottime")
    with pytest.raises(_core.CoreError, match="which clock"):
        convert(tmp_path, to_bytes([one_event(ftrace_clock=1)]), "a.csv", name="in")


def test_the_process_tree_names_threads_and_processes(tmp_path: Path) -> None:
    tree = TracePacket()
    tree.process_tree.threads.add(tid=77, tgid=70, name="flusher")
    tree.process_tree.processes.add(pid=70, cmdline=["/usr/bin/db"])
    sync, _ = sync_of(tmp_path / "out", [tree, one_event()])
    assert (sync["tid"], sync["pid"], sync["comm"]) == (77, 70, "flusher")


# ---------------------------------------------------------------- the commands


def test_commands_read_a_system_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.perfetto-trace"
    trace.write_bytes(to_bytes(packets("small4")))
    assert "fsync" in run("report", trace).stdout
    assert "perfetto" in run("inspect", trace).stdout
    out = tmp_path / "out.pftrace"
    assert run("convert", trace, "-o", out).returncode == 0
    # A trace of Syncline stays one, also behind the events of the system.
    assert not _core.is_system_trace(str(out))
    both = tmp_path / "both.pftrace"
    both.write_bytes(trace.read_bytes() + out.read_bytes())
    assert not _core.is_system_trace(str(both))
    assert _core.is_system_trace(str(trace))


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_open_shows_the_system_trace_on_the_same_timeline(packing: str, tmp_path: Path) -> None:
    trace = tmp_path / "in.perfetto-trace"
    data = (DATA / "perfetto" / "ext4.perfetto-trace.gz").read_bytes()
    trace.write_bytes(recorded("ext4") if packing == "plain" else data)
    query = """
        SELECT
          (SELECT COUNT(*) FROM sched) AS sched,
          (SELECT COUNT(*) FROM syncline_sync) AS syncs,
          (SELECT COUNT(*) FROM thread WHERE name = 'python3') AS threads,
          (SELECT SUM(value) FROM stats WHERE name GLOB 'sorter*') AS unsorted
    """
    with _trace_of(resolve(str(trace), None), Reading()) as (shown, name):
        assert name == "in.pftrace"
        assert _first_of(shown, None) is not None
        _add_system_trace(trace, shown)
        with opened(str(shown), Reading(), engine="embedded", perfetto=True) as engine:
            ((sched, syncs, threads, unsorted),) = run_query(engine, query).rows
    assert unsorted == 0
    # The program and its three threads are the same in both traces.
    assert (syncs, threads) == (18, 4)
    assert sched > 2000


def test_the_documented_configuration_is_one() -> None:
    page = (Path(__file__).parents[1] / "docs/reference/formats.md").read_text()
    text = page[page.index("duration_ms: 30000") :].split("```")[0]
    config = text_format.Parse(text, TraceConfig())
    (ftrace,) = [one.config for one in config.data_sources if one.config.name == "linux.ftrace"]
    assert "ext4/ext4_sync_file_enter" in ftrace.ftrace_config.ftrace_events
    assert ftrace.ftrace_config.compact_sched.enabled


def test_the_table_of_messages_is_current() -> None:
    assert ftrace_protos.TABLE.read_text() == ftrace_protos.table()
