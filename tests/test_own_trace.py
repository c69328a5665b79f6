"""The core reads the traces that Syncline wrote: the rows are those of the log, and a trace that is damaged or foreign is never read wrongly."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest
from syncline import _core
from syncline.engine import EngineError, Value
from syncline.inputs import opened
from syncline.reading import Reading, convert_trace
from syncline.recordings import Filter
from syncline.report.run import run_query

from tests.coretools import DATA, ROOT, Rows, tables
from tests.test_commands import run
from tests.test_trace import DEFECTS, TABLES, assert_same_tables, defective, generated, in_order

FOLDERS = ROOT / "tests" / "data"
# Recordings that the tests of their format convert with options, or together with others, are read here unchanged.
FILES = sorted(
    path
    for path in FOLDERS.rglob("*")
    if path.is_file()
    and path.suffix not in (".md", ".py", ".bt", ".toml", ".pftrace")
    and "own-trace" not in path.parts
    and _core.detect_format(str(path))
)
RUNS = [FOLDERS / "several-recorders" / "run"]
# Written before a trace left out what can be derived.
ALL_ARGS = {
    "calls.pftrace.gz": DATA / "sync.log",
    "waits.pftrace.gz": FOLDERS / "dynamic-events" / "ext4-both.txt.gz",
}
# The columns of bios that these traces may hold.
# fmt: off
BIO_COLUMNS = {
    "bio_id", "sync_id", "id", "ts_ns", "dur_ns", "queue_ns", "device_ns", "error", "bio", "dev",
    "below", "sector", "bytes", "folios", "ranges", "first_offset", "last_offset", "direction",
    "is_request", "tid", "pid", "comm", "process", "cgroup", "writers", "writers_cgroup",
    "origin", "confidence", "incomplete",
}
# fmt: on


def converted(folder: Path, log: Path, reading: Reading) -> tuple[dict[str, Rows], Path]:
    """Returns the tables of a log, and its trace."""
    trace = folder / "t.pftrace"
    reading.convert([str(log)], str(trace))
    reading.convert([str(log)], f"{folder}/log/")
    return tables(folder / "log"), trace


def read_back(folder: Path, trace: Path) -> dict[str, Rows]:
    convert_trace(str(trace), f"{folder}/trace/")
    return tables(folder / "trace")


def assert_same_rows(folder: Path, log: Path, reading: Reading) -> None:
    want, trace = converted(folder, log, reading)
    assert read_back(folder, trace) == want


# ---------------------------------------------------------------- the rows are those of the log


@pytest.mark.parametrize("path", [*FILES, *RUNS], ids=lambda path: str(path.relative_to(FOLDERS)))
def test_the_rows_of_a_recording(path: Path, tmp_path: Path) -> None:
    try:
        want, trace = converted(tmp_path, path, Reading())
    except _core.CoreError as error:
        # No recording of syncs on its own.
        assert error.args[2] == "input"
        return
    have = read_back(tmp_path, trace)
    for table, rows in want.items():
        assert have[table] == rows, table


@pytest.mark.parametrize("name", DEFECTS)
def test_the_rows_of_a_log_with_defects(name: str, tmp_path: Path) -> None:
    log, reading = defective(name)
    (tmp_path / "in.log").write_bytes(log)
    assert_same_rows(tmp_path, tmp_path / "in.log", reading)


@pytest.mark.parametrize("seed", range(40))
def test_the_rows_of_a_random_log(seed: int, tmp_path: Path) -> None:
    log, reading = generated(seed)
    (tmp_path / "in.log").write_bytes(log)
    try:
        assert_same_rows(tmp_path, tmp_path / "in.log", reading)
    except _core.CoreError as error:
        assert error.args[2] == "input"


def test_the_rows_of_a_filtered_trace_with_marks(tmp_path: Path) -> None:
    (tmp_path / "marks.csv").write_text("ts_ns,name,dur_ns\n1,a,\n5,b,7\n")
    options = {
        "filter": Filter(comm="sqlite3").for_core(),
        "marks": [(1, "a", None), (5, "b", 7)],
    }
    for output in ("t.pftrace", "log/"):
        _core.convert([str(DATA / "sqlite_wal_full.log")], f"{tmp_path}/{output}", **options)
    want = tables(tmp_path / "log")
    assert want["mark"]
    assert read_back(tmp_path, tmp_path / "t.pftrace") == want


def summed(phases: Rows) -> Counter[Value]:
    """Returns the length of all phases of each request."""
    sums: Counter[Value] = Counter()
    for row in phases:
        sums[row["sync_id"]] += row["dur_ns"]
    return sums


@pytest.mark.parametrize("name", ALL_ARGS)
def test_the_rows_of_a_trace_with_all_arguments(name: str, tmp_path: Path) -> None:
    want, _ = converted(tmp_path, ALL_ARGS[name], Reading())
    have = read_back(tmp_path, FOLDERS / "own-trace" / name)
    # Its writer did not have all columns.
    for row in want["bio"]:
        row.update(dict.fromkeys(row.keys() - BIO_COLUMNS))
    for row in want["wait"]:
        row.update(commit_id=None)
    # It wrote full commits only, without what started them, and numbered them by their ends.
    want["journal"] = [row for row in want["journal"] if row["kind"] == "commit"]
    for row in want["journal"]:
        row.update(started_by=None, sync_id=None, syncs=None, status=None, reason=None)
    want["journal"].sort(key=lambda row: (row["ts_ns"] + (row["dur_ns"] or 0), row["ts_ns"]))
    for number, row in enumerate(want["journal"], 1):
        row["commit_id"] = number
    # Its slices may be of another layout, and its writer did not split the time of a bio.
    for table in have.keys() - {"loss", "meta", "phase"}:
        assert have[table] == want[table], table
    assert summed(have["phase"]) == summed(want["phase"])
    # The trace processor says the same of it.
    with (
        opened(str(FOLDERS / "own-trace" / name), Reading(), engine="duckdb") as columns,
        opened(str(FOLDERS / "own-trace" / name), Reading(), engine="embedded") as trace,
    ):
        for table in TABLES:
            have_rows, want_rows = (
                run_query(engine, f"SELECT * FROM syncline_{table}") for engine in (columns, trace)
            )
            assert have_rows.columns == want_rows.columns
            if table != "loss":
                assert in_order(have_rows.rows) == in_order(want_rows.rows), table


def test_a_request_without_id_and_file_system_is_no_call_only_one(tmp_path: Path) -> None:
    """The trace processor took its call for the request."""
    assert_same_tables(FOLDERS / "dynamic-events" / "ext4.txt.gz", Reading())
    converted(tmp_path, FOLDERS / "dynamic-events" / "ext4.txt.gz", Reading())
    rows = tables(tmp_path / "log")["sync"]
    started = [row for row in rows if row["start_ns"] is not None]
    assert any(row["id"] is None and row["fs"] is None for row in started)


# ---------------------------------------------------------------- what a user does


@pytest.mark.parametrize("ending", [".pftrace", ".pftrace.gz"])
def test_commands_need_no_trace_processor(ending: str, tmp_path: Path) -> None:
    log, trace = str(DATA / "small4.log"), f"{tmp_path}/small4{ending}"
    Reading().convert([log], trace)
    for command in (["report"], ["report", "files", "threads"], ["report", "losses"]):
        name, *reports = command
        of_trace, of_log = run(name, trace, *reports), run(name, log, *reports)
        assert of_trace.returncode == 0, of_trace.stderr
        # It ends with commands on the input.
        assert of_trace.stdout.replace(trace, log) == of_log.stdout
    svg = run("flamegraph", trace, "-o", f"{tmp_path}/a.folded")
    assert svg.returncode == 0, svg.stderr
    assert run("flamegraph", log, "-o", f"{tmp_path}/b.folded").returncode == 0
    assert (tmp_path / "a.folded").read_bytes() == (tmp_path / "b.folded").read_bytes()
    assert run("diff", log, trace).returncode == 0
    inspected = run("inspect", trace)
    assert inspected.returncode == 0
    assert "a trace, of bpftrace" in inspected.stdout
    for to in ("csv", "jsonl", "folded", "perf"):
        assert run("convert", log, "-o", f"{tmp_path}/log.{to}", "-q").returncode == 0
        result = run("convert", trace, "-o", f"{tmp_path}/trace.{to}", "-q")
        assert result.returncode == 0, result.stderr
        assert (tmp_path / f"log.{to}").read_bytes() == (tmp_path / f"trace.{to}").read_bytes()


def test_query_has_the_tables_of_perfetto_and_the_engine_can_be_chosen(tmp_path: Path) -> None:
    trace = f"{tmp_path}/t.pftrace"
    Reading().convert([str(DATA / "small4.log")], trace)
    assert run("query", trace, "SELECT COUNT(*) FROM slice").returncode == 0
    sql = "SELECT COUNT(*) AS n FROM syncline_sync"
    outputs = {run("query", trace, sql, "--engine", name).stdout for name in ("duckdb", "embedded")}
    assert len(outputs) == 1
    assert run("query", trace, "SELECT COUNT(*) FROM slice", "--engine", "duckdb").returncode != 0


def test_what_a_trace_cannot_become(tmp_path: Path) -> None:
    trace = f"{tmp_path}/t.pftrace"
    Reading().convert([str(DATA / "small4.log")], trace)
    for output in ("a.pftrace", "a.events.jsonl"):
        result = run("convert", trace, "-o", f"{tmp_path}/{output}")
        assert result.returncode == 2
        assert "the input is a trace" in result.stderr
    result = run("convert", trace, "--pid", "3", "-o", f"{tmp_path}/a.csv")
    assert result.returncode == 2
    assert "--pid would have no effect" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.pftrace"]


# ---------------------------------------------------------------- foreign and damaged traces


def refusal(trace: Path, folder: Path) -> str | None:
    """Returns why the core refuses a trace; None if it reads it."""
    try:
        convert_trace(str(trace), f"{folder}/refused/")
    except _core.CoreError as error:
        assert error.args[2] in ("foreign", "input")
        assert not (folder / "refused").exists()
        return str(error.args[0])
    return None


def test_a_trace_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    _, trace = converted(tmp_path, DATA / "empty.log", Reading())
    data = trace.read_bytes()
    cut = tmp_path / "cut.pftrace"
    for length in [*range(1, len(data), 197), *range(len(data) - 900, len(data), 7)]:
        cut.write_bytes(data[:length])
        assert refusal(cut, tmp_path), length
    packed = gzip.compress(data)
    for length in range(20, len(packed), 211):
        cut.write_bytes(packed[:length])
        assert refusal(cut, tmp_path), length


def test_a_trace_with_a_flipped_byte_is_refused(tmp_path: Path) -> None:
    _, trace = converted(tmp_path, DATA / "sync.log", Reading())
    data = trace.read_bytes()
    rng = random.Random(1)
    wrong = tmp_path / "wrong.pftrace"
    for _ in range(300):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        wrong.write_bytes(flipped)
        assert refusal(wrong, tmp_path)


def test_a_flipped_bit_in_the_packet_of_the_checksum_is_refused(tmp_path: Path) -> None:
    _, trace = converted(tmp_path, DATA / "sync.log", Reading())
    data = trace.read_bytes()
    # The name of the instant is interned in its packet, which is the last.
    last = data.rindex(b"checksum") - 48
    for bit in range(8 * last, 8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        trace.write_bytes(flipped)
        assert refusal(trace, tmp_path), (bit // 8 - len(data), bit % 8)


def test_two_traces_in_one_file_and_other_programs_traces_are_refused(tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    _, trace = converted(tmp_path, DATA / "sync.log", Reading())
    data = trace.read_bytes()
    system = Trace()
    packet = system.packet.add(timestamp=5, trusted_packet_sequence_id=7)
    packet.track_event.type = packet.track_event.TYPE_INSTANT
    other = tmp_path / "other.pftrace"
    for wrong in (
        data + data,
        data + system.SerializeToString(),
        system.SerializeToString() + data,
    ):
        other.write_bytes(wrong)
        assert "Syncline cannot read the rows" in (refusal(other, tmp_path) or "")
    with pytest.raises(_core.CoreError), opened(str(other), Reading(), engine="duckdb"):
        pass
    # The trace processor reads it all the same.
    Reading().convert([str(DATA / "small1.log")], str(trace))
    data = trace.read_bytes()
    other.write_bytes(data + system.SerializeToString())
    with opened(str(other), Reading()) as engine:
        assert engine.name != "duckdb"
        assert run_query(engine, "SELECT COUNT(*) FROM syncline_sync").rows[0][0] > 0


def test_a_trace_that_is_cut_off_has_the_message_of_the_trace_processor(tmp_path: Path) -> None:
    _, trace = converted(tmp_path, DATA / "sync.log", Reading())
    trace.write_bytes(trace.read_bytes()[:-9])
    with pytest.raises(EngineError, match=r"cut off|truncated|ends"), opened(str(trace), Reading()):
        pass


def messages(length_and_data: bytes) -> list[bytes]:
    """Divides a trace into its packets."""
    from google.protobuf.internal.decoder import _DecodeVarint32  # type: ignore[attr-defined]

    found, at = [], 0
    while at < len(length_and_data):
        size, data = _DecodeVarint32(length_and_data, at + 1)
        found.append(length_and_data[at : data + size])
        at = data + size
    return found


@pytest.mark.parametrize("log", ["small4.log", "bg.log.gz"])
def test_a_trace_without_one_of_its_packets_is_damaged(log: str, tmp_path: Path) -> None:
    """Those of small4.log are not compressed, most of those of bg.log.gz are."""
    _, trace = converted(tmp_path, DATA / log, Reading())
    packets = messages(trace.read_bytes())
    assert b"".join(packets) == trace.read_bytes()
    rng = random.Random(log)
    # Without the last packet, nothing holds a checksum, and without the first, not even a clock: a trace processor has messages for both.
    for gone in rng.sample(range(1, len(packets) - 1), min(len(packets) - 2, 12)):
        trace.write_bytes(b"".join(packets[:gone] + packets[gone + 1 :]))
        for engine in ("auto", "duckdb", "embedded"):
            with (
                pytest.raises(_core.CoreError, match="the trace is damaged"),
                opened(str(trace), Reading(), engine=engine),
            ):
                pass


def test_a_trace_processor_misses_a_request_that_is_gone(tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
    from syncline.report.run import caveats

    _, path = converted(tmp_path, DATA / "small1.log", Reading())
    trace = Trace.FromString(path.read_bytes())
    names = [one for packet in trace.packet for one in packet.interned_data.event_categories]
    sync = next(one.iid for one in names if one.name == "syncline.sync")
    requests = [
        index
        for index, packet in enumerate(trace.packet)
        if sync in packet.track_event.category_iids
    ]
    said = f"the trace holds {len(requests) - 1} of the {len(requests)} requests"
    # The checksum of a trace that is merged with another one is not looked at.
    merged = Trace()
    merged.packet.add(timestamp=5, trusted_packet_sequence_id=7)
    for is_damaged in (False, True):
        if is_damaged:
            del trace.packet[requests[-1]]
        path.write_bytes(merged.SerializeToString() + trace.SerializeToString())
        with opened(str(path), Reading(), engine="embedded") as engine:
            assert any(one.startswith(said) for one in caveats(engine)) == is_damaged
