"""Traces as Perfetto reads them, and every report through both engines."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from syncline import _core
from syncline.engine import open_trace
from syncline.inputs import Reading, opened
from syncline.report import catalogue
from syncline.report.run import NAMESPACE, caveats, run_query, run_report

from tests.coretools import DATA, KEYS, RECORDINGS, SMALL, convert, core, recording
from tests.reference import loggen

MARKS = "time,name,duration\n{first},one,30000000\n{second},two\n"


def unknown(message: Any) -> int:
    """Fields that the official classes do not know, at any depth."""
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            count += sum(unknown(part) for part in (value if field.is_repeated else [value]))
    return count


@pytest.mark.parametrize("callstacks", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_the_official_classes_know_every_field(name: str, callstacks: bool, tmp_path: Path) -> None:
    out = convert(tmp_path, recording(name), "out.pftrace", callstacks=callstacks)
    trace = Trace.FromString(out.read_bytes())
    assert sum(unknown(packet) for packet in trace.packet) == 0
    assert trace.packet[0].clock_snapshot.primary_trace_clock
    assert {packet.trusted_packet_sequence_id for packet in trace.packet} == {1}


def same_tables(log: bytes, folder: Path, **options: Any) -> None:
    """The tables built from the trace are those that the core writes as columns."""
    want = core(folder, log, **options)
    trace = convert(folder, log, "out.pftrace", **options)
    package = (NAMESPACE, catalogue.sql_root() / "perfetto")
    with open_trace(trace, engine="embedded", packages=[package]) as engine:
        assert engine.stats() == []
        for table, key in KEYS.items():
            made = run_query(engine, f"SELECT * FROM syncline_{table}")
            rows = {row[key]: row for row in (dict(zip(made.columns, r, strict=True)) for r in made.rows)}
            assert rows.keys() == {row[key] for row in want[table]}, table
            for row in want[table]:
                for column, value in row.items():
                    if column == "id" and value >= 2**63:
                        value -= 2**64
                    assert rows[row[key]][column] == value, (table, row[key], column)
        overlaps = engine.query(
            "SELECT COUNT(*) FROM slice a JOIN slice b ON a.track_id = b.track_id AND a.id < b.id"
            " WHERE a.category = b.category AND a.category IN ('syncline.bio', 'syncline.sync')"
            " AND a.dur > 0 AND b.dur > 0 AND a.ts < b.ts + b.dur AND b.ts < a.ts + a.dur"
        )
        if len(want["bio"]) < 500:
            assert overlaps.rows == [(0,)], "a lane overlaps itself"


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_trace_holds_the_tables(name: str, tmp_path: Path) -> None:
    same_tables(recording(name), tmp_path)


@pytest.mark.parametrize("name", ["small4.log", "parallel4.log", "rename-aborted.log"])
def test_a_trace_of_processes_holds_the_tables(name: str, tmp_path: Path) -> None:
    same_tables(recording(name), tmp_path, pid_is="process")


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_a_trace_of_a_generated_log_holds_the_tables(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    params = loggen.random_params(rng)
    try:
        log = loggen.generate(params, rng).log
        same_tables(log, tmp_path, source="thesis", time_unit=params.time_unit, pid_is=params.pid_is)
    except ValueError:
        pytest.skip("these parameters contradict each other")
    except _core.CoreError as error:
        assert "no event" in error.args[0]


def close(a: Any, b: Any) -> bool:
    """Doubles differ in the last digits between the engines."""
    if isinstance(a, float) or isinstance(b, float):
        return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_report_is_equal_in_both_engines(name: str, tmp_path: Path) -> None:
    log = DATA / name
    plain = recording(name).splitlines()
    first = next(int(line.split()[0]) for line in plain if line[:1].isdigit())
    marks = tmp_path / "marks.csv"
    marks.write_text(MARKS.format(first=first, second=first + 40_000_000))
    for reading in (Reading(), Reading(marks=str(marks))):
        with opened(str(log), reading, "duckdb") as columns, opened(str(log), reading, "embedded") as trace:
            assert caveats(columns) == caveats(trace)
            for report in catalogue.names():
                ours, theirs = run_report(columns, report), run_report(trace, report)
                assert ours.columns == theirs.columns, report
                assert len(ours.rows) == len(theirs.rows), report
                for a, b in zip(ours.rows, theirs.rows, strict=True):
                    assert all(map(close, a, b)), (report, a, b)


def test_marks_given_to_a_report_count_like_marks_in_the_trace(tmp_path: Path) -> None:
    marks = tmp_path / "marks.csv"
    marks.write_text("time_ms,name\n41700,first\n41800,second\n")
    reading = Reading(marks=str(marks))
    trace = tmp_path / "small1.pftrace"
    log = str(DATA / "small1.log")
    Reading().convert([log], str(trace))
    answers = []
    for path, engine in ((log, "duckdb"), (log, "embedded"), (str(trace), "auto")):
        with opened(path, reading, engine) as made:
            answers.append(run_report(made, "marks").rows)
    assert answers[0] == answers[1] == answers[2]
    by_name = {row[1]: row[4] for row in answers[0]}
    # Counted in the log by hand: calls before and after 41.8 s.
    calls = [int(line.split()[0]) for line in recording("small1.log").splitlines() if line.endswith(b"wl fsync")]
    assert by_name == {
        "first": sum(ts < 41_800_000_000 for ts in calls),
        "second": sum(ts >= 41_800_000_000 for ts in calls),
    }


def test_a_gzipped_trace_is_the_same_trace(tmp_path: Path) -> None:
    import gzip

    plain = convert(tmp_path, recording("small4.log"), "out.pftrace").read_bytes()
    packed = convert(tmp_path, recording("small4.log"), "out.pftrace.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    with opened(f"{tmp_path}/out.pftrace.gz", Reading()) as engine:
        assert run_query(engine, "SELECT COUNT(*) FROM syncline_sync").rows == [(100,)]


def test_the_figures_of_small1_by_hand() -> None:
    """50 new files of one page, one fsync each, by one thread: sums taken from the lines of the log."""
    spans, bios, begun = [], [], {}
    for line in recording("small1.log").decode().splitlines():
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        ts, event = int(words[0]), words[3]
        if event == "fsync":
            begun["call"] = ts
        elif event == "bio_submit":
            begun["bio"] = ts
        elif event == "bio_complete":
            bios.append(ts - begun["bio"])
        elif event == "exit":
            spans.append(ts - begun["call"])
    with opened(str(DATA / "small1.log"), Reading()) as engine:
        metrics = {(row[0], row[1]): row[2] for row in run_report(engine, "summary").rows}
    assert metrics["syncs", "all"] == metrics["unique_files", "all"] == len(spans) == 50
    assert metrics["syscall_latency_sum", "all"] == sum(spans)
    assert math.isclose(metrics["syscall_latency_avg", "all"], sum(spans) / 50)
    assert math.isclose(metrics["writeback_latency_avg", "all"], sum(bios) / 50)
    assert metrics["writeback_amount_avg", "all"] == 4096
    assert metrics["empty_share", "all"] == 0
    # One thread: nothing is parallel.
    assert metrics["sync_wall_time", "comm:wl"] == metrics["sync_time_sum", "comm:wl"] == sum(spans)
