"""The trace: every field is defined by the official protos, and the tables equal those of Parquet."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import BUILTIN_CLOCK_BOOTTIME, Trace
from syncline import _core
from syncline.engine import open_trace
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.report import names as report_names
from syncline.report.run import run_query, run_report

from tests.coretools import DATA, RECORDINGS, ROOT, convert, core, recording, tables
from tests.reference import badinputs, loggen, thesis
from tests.sqltools import same

TABLES = ("sync", "bio", "call", "wait", "journal", "stack", "loss", "mark", "meta")
# Bad inputs that can still be read as logs, except for the very long ones, which would only take time here.
BAD_INPUTS = sorted(
    name
    for name in badinputs.INPUTS
    if name not in ("more_requests_wait_than_may", "more_than_the_window_holds")
    and not ((bad := badinputs.INPUTS[name]()).unreadable or bad.foreign)
    and bad.sync
)
# Parameters of the generator: each kind of defect, and some combinations.
DEFECTS: dict[str, dict[str, Any]] = {
    "hostile_names": {"names": "hostile", "threads": 30, "stacks": "mixed"},
    "processes": {"threads": 6, "processes": 2, "pid_is": "process", "p_ends_early": 0.3},
    "processes_that_lose": {"threads": 6, "processes": 3, "pid_is": "process", "lose_end": 0.3}
    | {"lose_call": 0.2, "lose_complete": 0.2, "syscall_exits": True, "lose_call_exit": 0.2},
    "lost": {"lose_call": 0.2, "lose_start": 0.2, "lose_end": 0.2, "lose_folio": 0.2}
    | {"lose_submit": 0.2, "lose_complete": 0.2, "p_ends_early": 0.5},
    "parallel": {"threads": 12, "files": 1, "max_bios": 6, "p_ends_early": 1.0, "background": 40},
    "devices": {"extra_pairs": True, "syscall_exits": True, "lose_complete": 0.3},
    "largest_ids": {"first_id": 2**64 - 100},
    "recorded_losses": {"bursts": 5, "garbage": 3, "double_complete": 0.2, "double_end": 0.2},
    "late": {"disorder_ns": 2 * 10**9, "cpus": 4},
    "ties": {"p_tie": 0.9, "p_empty": 0.5},
    "microseconds": {"time_unit": "us", "p_tie": 0.3},
}


def defective(name: str) -> tuple[bytes, Reading]:
    params = loggen.Params(requests=150, **DEFECTS[name])
    log = loggen.generate(params, random.Random(5)).log
    return log, Reading(time_unit=params.time_unit, pid_is=params.pid_is)


def generated(seed: int) -> tuple[bytes, Reading]:
    rng = random.Random(seed)
    params = loggen.random_params(rng)
    log = loggen.generate(params, rng).log
    return log, Reading(source="bpftrace", time_unit=params.time_unit, pid_is=params.pid_is)


def unknown_fields(message: Message, path: str = "") -> Iterator[str]:
    """Yields the paths of fields that the class of the message does not define, at any depth."""
    for field in UnknownFieldSet(message):
        yield f"{path}.{field.field_number}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                yield from unknown_fields(each, f"{path}.{field.name}")


@contextmanager
def both_engines(path: Path, reading: Reading, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Opens a log as columns and as a trace."""
    with (
        opened(str(path), reading, engine="duckdb", **options) as columns,
        opened(str(path), reading, engine="embedded", **options) as trace,
    ):
        yield columns, trace


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(v is not None, 0 if v is None else v) for v in row])


def assert_same_tables(path: Path, reading: Reading, **options: Any) -> None:
    with both_engines(path, reading, **options) as (columns, trace):
        assert trace.stats() == []
        for table in TABLES:
            want = run_query(columns, f"SELECT * FROM syncline_{table}")
            have = run_query(trace, f"SELECT * FROM syncline_{table}")
            assert have.columns == want.columns
            for left, right in zip(in_order(have.rows), in_order(want.rows), strict=True):
                assert dict(zip(have.columns, left, strict=True)) == dict(
                    zip(want.columns, right, strict=True)
                ), table


# ---------------------------------------------------------------- packets


@pytest.mark.parametrize("name", RECORDINGS)
def test_official_protos_define_every_field(name: str, tmp_path: Path) -> None:
    check_packets(convert(tmp_path, recording(name), "out.pftrace").read_bytes())


@pytest.mark.parametrize("name", DEFECTS)
def test_official_protos_define_every_field_of_a_generated_log(name: str, tmp_path: Path) -> None:
    log, reading = defective(name)
    options = {"time_unit": reading.time_unit, "pid_is": reading.pid_is}
    check_packets(convert(tmp_path, log, "out.pftrace", **options).read_bytes())


def check_packets(data: bytes) -> list[Any]:
    """Decodes a trace, and checks that each packet refers only to earlier definitions."""
    trace = Trace.FromString(data)
    assert list(unknown_fields(trace)) == []
    first = trace.packet[0]
    assert first.clock_snapshot.primary_trace_clock == BUILTIN_CLOCK_BOOTTIME
    assert first.sequence_flags & first.SEQ_INCREMENTAL_STATE_CLEARED
    tracks: set[int] = set()
    # Threads without a process have their descriptors at the end, in the order of the time that they waited.
    threads = {
        packet.track_descriptor.uuid
        for packet in trace.packet
        if packet.track_descriptor.description.startswith("It was in syncs for ")
    }
    interned: dict[str, set[int]] = {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            interned = {}
        for field, entries in packet.interned_data.ListFields():
            for entry in entries:
                seen = interned.setdefault(field.name, set())
                assert entry.iid not in seen, f"{field.name} {entry.iid} is there twice"
                seen.add(entry.iid)
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks
            assert not descriptor.parent_uuid or descriptor.parent_uuid in tracks
            tracks.add(descriptor.uuid)
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in tracks | threads
            assert set(event.extra_counter_track_uuids) <= tracks
            assert set(event.category_iids) <= interned["event_categories"]
            assert not event.name_iid or event.name_iid in interned["event_names"]
            for note in event.debug_annotations:
                assert note.name or note.name_iid in interned["debug_annotation_names"]
                if note.HasField("string_value_iid"):
                    assert note.string_value_iid in interned["debug_annotation_string_values"]
    return list(trace.packet)


@pytest.mark.parametrize("name", [*RECORDINGS, *DEFECTS])
def test_slices_of_a_track_nest_and_flows_meet(name: str, tmp_path: Path) -> None:
    if name in DEFECTS:
        log, reading = defective(name)
        options = {"time_unit": reading.time_unit, "pid_is": reading.pid_is}
    else:
        log, options = recording(name), {}
    trace = Trace.FromString(convert(tmp_path, log, "out.pftrace", **options).read_bytes())
    open_slices: dict[int, int] = {}
    started: set[int] = set()
    ended: list[int] = []
    # trace_processor orders packets by time, then by position.
    for packet in sorted(trace.packet, key=lambda packet: packet.timestamp):
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        # Flows from 2^63 on are those of commits.
        flows = {flow for flow in event.flow_ids if flow < 1 << 63}
        # A request with more than eight bios has arrows to three of them.
        assert len(flows) <= 8
        started |= flows
        ended += event.terminating_flow_ids
        if event.type == event.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + 1
        elif event.type == event.TYPE_SLICE_END:
            open_slices[event.track_uuid] -= 1
            assert open_slices[event.track_uuid] >= 0
    assert not any(open_slices.values())
    assert len(set(ended)) == len(ended)
    assert started <= set(ended)


def test_a_gzipped_trace_has_the_same_bytes(tmp_path: Path) -> None:
    plain = convert(tmp_path, recording("small4.log"), "a.pftrace")
    packed = convert(tmp_path, recording("small4.log"), "a.pftrace.gz")
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    with open_trace(packed) as engine:
        assert engine.stats() == []
        assert engine.query("SELECT COUNT(*) FROM slice").rows[0][0] > 300


@pytest.mark.parametrize("to", ["a.pftrace", "a.pftrace.gz", "a.parquet"])
def test_two_conversions_are_identical(to: str, tmp_path: Path) -> None:
    for name in ("bg.log.gz", "small4-torn.log"):
        first = convert(tmp_path, recording(name), to).read_bytes()
        assert convert(tmp_path, recording(name), to).read_bytes() == first


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_trace_of_a_recording_has_the_same_tables(name: str) -> None:
    assert_same_tables(DATA / name, Reading())


@pytest.mark.parametrize("name", DEFECTS)
def test_the_trace_of_a_defective_log_has_the_same_tables(name: str, tmp_path: Path) -> None:
    log, reading = defective(name)
    (tmp_path / "in.log").write_bytes(log)
    assert_same_tables(tmp_path / "in.log", reading)


@pytest.mark.parametrize("seed", range(40))
def test_the_trace_of_a_generated_log_has_the_same_tables(seed: int, tmp_path: Path) -> None:
    log, reading = generated(seed)
    (tmp_path / "in.log").write_bytes(log)
    with (
        suppress(_core.CoreError)
        if not thesis.parse(log, thesis.Losses("log"))[0]
        else nullcontext()
    ):
        assert_same_tables(tmp_path / "in.log", reading)


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_the_trace_of_a_bad_input_has_the_same_tables(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.log").write_bytes(badinputs.INPUTS[name]().data)
    assert_same_tables(tmp_path / "in.log", Reading(source="bpftrace"))


@pytest.mark.parametrize("window", [0, 10**6])
def test_the_trace_of_a_log_with_late_events_has_the_same_tables(
    window: int, tmp_path: Path
) -> None:
    # Late events are used in the order of arrival. Requests may be odd, but they are the same in both outputs.
    params = loggen.Params(requests=4000, threads=6, cpus=3, disorder_ns=3 * 10**9)
    (tmp_path / "in.log").write_bytes(loggen.generate(params, random.Random(1)).log)
    assert_same_tables(tmp_path / "in.log", Reading(window_ns=window))


def test_devices_are_named_as_in_the_run_directory(tmp_path: Path) -> None:
    run = str(ROOT / "tests" / "data" / "several-recorders" / "run")
    out = tmp_path / "out.pftrace"
    Reading().convert([run], str(out))
    check_packets(out.read_bytes())
    bios = (
        "SELECT DISTINCT SUBSTR(COALESCE(parent.name, track.name), 1, 17),"
        " extract_arg(arg_set_id, 'debug.device'), extract_arg(arg_set_id, 'debug.dev')"
        " FROM slice JOIN track ON track.id = track_id"
        " LEFT JOIN track AS parent ON parent.id = track.parent_id WHERE category = 'syncline.bio'"
    )
    names = "SELECT key, value FROM syncline_meta WHERE key LIKE 'device_name.%' ORDER BY key"
    with opened(str(out), Reading(), "embedded") as trace, opened(run, Reading()) as log:
        assert [*map(tuple, run_query(trace, bios).rows)] == [
            ("Disk vdb (254,16)", "vdb", "254,16")
        ]
        for engine in (trace, log):
            assert [*map(tuple, run_query(engine, names).rows)] == [
                ("device_name.254,0", "vda"),
                ("device_name.254,16", "vdb"),
                ("device_name.254,32", "vdc"),
            ]
            phases = run_report(engine, "phases")
            assert {tuple(row[2:4]) for row in phases.rows} == {("254,16", "vdb")}


def test_traces_and_tables_have_the_same_marks(tmp_path: Path) -> None:
    first = 41_753_000_000
    marks = tmp_path / "marks.csv"
    marks.write_text(f"time,name,duration\n{first},a;'b\",250000000\n{first + 100_000_000},é,\n")
    assert_same_tables(DATA / "small4.log", Reading(marks=str(marks)))


def log_of_distinct_names() -> bytes:
    """A log in which each call has another stack, and each request another path."""
    rng = random.Random(5)
    lines = loggen.generate(loggen.Params(requests=300), rng).log.splitlines(keepends=True)
    number = itertools.count(1)
    for at, line in enumerate(lines):
        if line.startswith(b"  "):
            lines[at] = line.replace(b"+", b"_%d+" % next(number))
        elif b" path /" in line:
            lines[at] = line.rstrip(b"\n") + b".%d\n" % next(number)
    return b"".join(lines)


def test_a_trace_that_forgets_its_interned_strings_has_the_same_tables(tmp_path: Path) -> None:
    log = tmp_path / "in.log"
    log.write_bytes(log_of_distinct_names())
    options = {"device_names": {254 << 20: "vda", 8 << 20: "sda"}}
    want = core(tmp_path, log.read_bytes(), **options)
    assert len({row["stack"] for row in want["sync"]}) > 200
    assert len({row["path"] for row in want["sync"]}) > 200

    trace = convert(tmp_path, log.read_bytes(), "t.pftrace", max_idle_name_bytes=0, **options)
    clears = [
        packet
        for packet in check_packets(trace.read_bytes())
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED
    ]
    assert len(clears) > 3
    convert_trace(str(trace), f"{tmp_path}/back/")
    assert tables(tmp_path / "back") == want
    assert_same_tables(log, Reading(), max_idle_name_bytes=0)


def counter_values(data: bytes) -> list[tuple[str, str, int, int]]:
    """Returns (names of the tracks of its device, name, time, value) of each counter value of a trace."""
    names: dict[int, tuple[str, int]] = {}
    defaults: list[int] = []
    found = []
    for packet in Trace.FromString(data).packet:
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            defaults = []
        if packet.HasField("trace_packet_defaults"):
            events = packet.trace_packet_defaults.track_event_defaults
            defaults = list(events.extra_counter_track_uuids)
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = (
                packet.track_descriptor.name,
                packet.track_descriptor.parent_uuid,
            )
        event = packet.track_event
        tracks = event.extra_counter_track_uuids or defaults
        for track, value in zip(tracks, event.extra_counter_values, strict=False):
            name, parent = names[track]
            found.append((f"{names.get(parent, ('', 0))[0]} {name}", name, packet.timestamp, value))
    return found


@pytest.mark.parametrize("forgets", [False, True])
def test_the_counters_of_each_device(forgets: bool, tmp_path: Path) -> None:
    params = loggen.Params(requests=300, threads=8, p_error=0)
    # Every second bio goes to another device.
    devices = itertools.cycle((b" dev 8,0", b" dev 8,16"))
    lines = [
        line.rstrip(b"\n") + next(devices) + b"\n" if b" bio_submit " in line else line
        for line in loggen.generate(params, random.Random(3)).log.splitlines(keepends=True)
    ]
    options = {"max_idle_name_bytes": 0} if forgets else {}
    trace = convert(tmp_path, b"".join(lines), "t.pftrace", **options)
    counters = counter_values(trace.read_bytes())
    in_flight = ("all in flight", "bytes in flight")
    with opened(str(trace), Reading(), engine="embedded") as engine:
        bios = run_query(engine, "SELECT dev, ts_ns, dur_ns, bytes FROM syncline_bio").rows
        read = run_query(
            engine,
            "SELECT t.name, c.ts, CAST(c.value AS INT) FROM counter AS c"
            " JOIN counter_track AS t ON t.id = c.track_id"
            # The UI hides these.
            " WHERE extract_arg(t.source_arg_set_id, 'builtin_counter_type') IS NULL",
        ).rows
    assert sorted(map(tuple, read)) == sorted(counter[1:] for counter in counters)
    for dev in ("8,0", "8,16"):
        own = [(ts, ts + dur, size or 0) for at, ts, dur, size in bios if at == dev]
        times = sorted(time for bio in own for time in bio[:2])
        assert len(own) > 50
        for name, weight in zip(in_flight, (lambda size: 1, int), strict=True):
            found = [
                (ts, value)
                for at, which, ts, value in counters
                if dev in at and which.endswith(name)
            ]
            assert sorted(ts for ts, _ in found) == times
            for ts, value in found:
                if times.count(ts) == 1:
                    flying = (weight(size) for start, end, size in own if start <= ts < end)
                    assert value == sum(flying), (dev, name, ts)


# ---------------------------------------------------------------- reports


@pytest.mark.parametrize("name", [*RECORDINGS, *DEFECTS])
def test_every_report_is_the_same_in_both_engines(name: str, tmp_path: Path) -> None:
    log, reading = defective(name) if name in DEFECTS else (recording(name), Reading())
    path = tmp_path / "in.log"
    path.write_bytes(log)
    with both_engines(path, reading) as (columns, trace):
        for report in report_names():
            want, have = run_report(columns, report), run_report(trace, report)
            assert have.columns == want.columns, report
            assert len(have.rows) == len(want.rows), report
            for left, right in zip(have.rows, want.rows, strict=True):
                assert same(left, right), (report, left, right)
