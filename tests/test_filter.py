"""Which requests a filter keeps: those that SQL selects from the unfiltered tables, with their bios, in every output."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from syncline import _core
from syncline.cli.group import cli
from syncline.engine.columns import open_columns
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.record import processes
from syncline.recordings import Filter
from syncline.report.catalogue import sql_root
from syncline.report.run import run_query

from tests import coretools
from tests.reference import loggen

ROOT = Path(__file__).parents[1]
DATA = coretools.DATA
Row = dict[str, Any]

CASES: list[tuple[str, Filter, Callable[[Row], bool]]] = [
    ("small4.log", Filter(comm="wl"), lambda row: row["comm"] == "wl"),
    ("small4.log", Filter(comm="nobody"), lambda row: False),
    ("small4.log", Filter(min_latency_ns=5_000_000), lambda row: (row["dur_ns"] or 0) >= 5_000_000),
    (
        "sqlite_rj_full.log",
        Filter(path="/test.db-", min_latency_ns=1_000_000),
        lambda row: (row["path"] or "").startswith("/test.db-") and row["dur_ns"] >= 1_000_000,
    ),
    ("bg.log.gz", Filter(device=254 << 20), lambda row: row["dev"] == "254,0"),
    ("bg.log.gz", Filter(device=7 << 20), lambda row: row["dev"] == "7,0"),
    ("sync.log", Filter(min_latency_ns=2_000_000), lambda row: (row["dur_ns"] or 0) >= 2_000_000),
]


@pytest.mark.parametrize(("log", "request_filter", "keeps"), CASES)
def test_a_filter_keeps_the_requests_that_sql_selects(
    log: str, request_filter: Filter, keeps: Callable[[Row], bool], tmp_path: Path
) -> None:
    for name, options in {"all": {}, "some": {"filter": request_filter.for_core()}}.items():
        _core.convert([str(DATA / log)], f"{tmp_path}/{name}/", **options)
    whole, filtered = coretools.tables(tmp_path / "all"), coretools.tables(tmp_path / "some")
    kept = [row for row in whole["sync"] if keeps(row)]

    def in_order(rows: list[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: str(row.get("bio_id") or row.get("sync_id")))

    assert in_order(filtered["sync"]) == in_order(kept)
    ids = {row["sync_id"] for row in kept}
    bios = [row for row in whole["bio"] if row["sync_id"] is None or row["sync_id"] in ids]
    assert in_order(filtered["bio"]) == in_order(bios)
    assert {row["sync_id"] for row in filtered["call"]} <= {*ids, None}
    losses = {loss["reason"]: loss["count"] for loss in filtered["loss"]}
    unmatched_calls = sum(row["unmatched"] for row in whole["call"]) - sum(
        row["unmatched"] for row in filtered["call"]
    )
    left_out = losses.get("filtered_out", 0) + losses.get("filter_unknown", 0)
    assert left_out == len(whole["sync"]) - len(kept) + unmatched_calls


def test_a_filter_keeps_the_same_requests_in_traces_and_tables(tmp_path: Path) -> None:
    reading = Reading(filter=Filter(min_latency_ns=4_000_000))
    sql = "SELECT sync_id, dur_ns, bytes, bios FROM syncline_sync ORDER BY 1"
    rows = {}
    for engine in ("duckdb", "auto"):
        target = f"{tmp_path}/run" + ("/" if engine == "duckdb" else ".pftrace")
        reading.convert([str(DATA / "small4.log")], target)
        with opened(target, Reading(), engine) as columns:
            rows[engine] = [tuple(row) for row in run_query(columns, sql).rows]
    assert rows["duckdb"] == rows["auto"]
    assert 0 < len(rows["auto"]) < 100


def run_directory(folder: Path, log: str, tasks: dict[str, Any], filter: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "events.log").write_bytes((DATA / log).read_bytes())
    (folder / "tasks.json").write_text(json.dumps(tasks))
    manifest = {
        "inputs": [{"file": "events.log", "source": "bpftrace"}],
        "filter_at_conversion": filter,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def tids(log: str) -> list[int]:
    lines = [fields.split() for fields in (DATA / log).read_text(errors="replace").splitlines()]
    return sorted({int(fields[1]) for fields in lines if len(fields) > 3 and fields[3] == "start"})


def test_threads_have_the_processes_of_their_recording(tmp_path: Path) -> None:
    one, two, *rest = tids("small4.log")
    tasks = {
        # Another process reused the id of the last thread.
        "threads": [[one, 40], [two, 40], *[[tid, 50] for tid in rest], [rest[-1], 60]],
        "processes": {"40": "saver", "50": "other"},
    }
    run = run_directory(tmp_path / "run", "small4.log", tasks, {})
    Reading().convert([str(run)], f"{tmp_path}/out/")
    for row in coretools.tables(tmp_path / "out")["sync"]:
        expected = {one: (40, "saver"), two: (40, "saver"), rest[-1]: (None, None)}
        assert (row["pid"], row["process"]) == expected.get(row["tid"], (50, "other"))
    Reading().convert([str(run)], f"{tmp_path}/run.pftrace")
    with opened(f"{tmp_path}/run.pftrace", Reading(), "embedded") as trace:
        named = trace.query(
            "SELECT process.pid, process.name, COUNT(*) FROM thread_track"
            " JOIN thread USING (utid) JOIN process USING (upid) GROUP BY 1, 2 ORDER BY 1"
        ).rows
        assert [tuple(row) for row in named] == [(40, "saver", 2), (50, "other", len(rest) - 1)]
        same = run_query(trace, "SELECT DISTINCT pid, process FROM syncline_sync ORDER BY 1").rows
        assert {tuple(row) for row in same} == {(None, None), (40, "saver"), (50, "other")}


def test_overlapping_syncs_of_a_known_process_are_of_their_thread(tmp_path: Path) -> None:
    """A thread track cannot hold slices that overlap."""
    # Late events make the times of a call and its request run backwards.
    params = loggen.Params(requests=4000, threads=6, cpus=3, disorder_ns=3 * 10**9)
    data = loggen.generate(params, random.Random(1)).log
    numbers = {int(line.split()[1]) for line in data.splitlines() if b" start id " in line}
    tasks = {"threads": [[tid, 40] for tid in sorted(numbers)], "processes": {"40": "saver"}}
    run = run_directory(tmp_path / "run", "small4.log", tasks, {})
    (run / "events.log").write_bytes(data)
    reading = Reading(window_ns=10**6)
    trace = tmp_path / "run.pftrace"
    reading.convert([str(run)], str(trace))
    reading.convert([str(run)], f"{tmp_path}/tables/")
    convert_trace(str(trace), f"{tmp_path}/trace/")
    rows = coretools.tables(tmp_path / "tables")
    assert coretools.tables(tmp_path / "trace") == rows
    expected = Counter((row["tid"], row["pid"]) for row in rows["sync"])
    with opened(str(trace), Reading(), "embedded") as engine:
        found = engine.query(
            "INCLUDE PERFETTO MODULE slices.with_context;"
            "SELECT tid, pid, COUNT(*), COUNT(DISTINCT track_id) > 1 FROM thread_slice"
            " WHERE category = 'syncline.sync' GROUP BY tid, pid"
        ).rows
    assert {(tid, pid): count for tid, pid, count, _ in found} == expected
    assert any(has_lanes for *_, has_lanes in found)


def test_the_filter_of_a_recording_is_applied_when_it_is_read(tmp_path: Path) -> None:
    one, *rest = tids("small4.log")
    tasks = {"threads": [[one, 40], *[[tid, 50] for tid in rest[:-1]]], "processes": {}}
    run = run_directory(tmp_path / "run", "small4.log", tasks, {"pid": 40})

    def report(*more: str) -> tuple[str, str]:
        done = CliRunner().invoke(
            cli, ["query", str(run), "SELECT COUNT(*), COUNT(DISTINCT tid) FROM syncline_sync", "--format", "csv", *more]
        )  # fmt: skip
        assert done.exit_code == 0
        return done.stdout, done.stderr

    table, output = report()
    assert table.splitlines()[1:] == ["25,1"]
    assert "only requests of pid 40 are included: 50 others" in output
    assert "and 25 for which the log does not record what the filter selects by" in output
    # A filter of the conversion replaces that of the recording.
    assert report("--pid", "50")[0].splitlines()[1:] == ["50,2"]
    summary = Reading().convert([str(run)], f"{tmp_path}/low.events.jsonl")
    assert summary["events_by_kind"]["sync_start"] == 100


def test_recordings_with_different_filters_are_not_converted_together(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {}
    runs = [
        str(run_directory(tmp_path / str(pid), "small1.log", tasks, {"pid": pid})) for pid in (1, 2)
    ]
    done = subprocess.run(
        [sys.executable, "-c", "from syncline.cli import main; main()", "convert", *runs, "-o", f"{tmp_path}/x.csv"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "were made with different filters" in done.stderr
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "LOG", "-o", "x.events.jsonl", "--path", "/a"], "--path has no effect on"),
        (["report", "TRACE", "--min-latency", "1ms"], "--min-latency would have no effect"),
        (["report", "LOG", "--device", "nowhere"], "nowhere: No such file"),
        (["report", "LOG", "--pid", "0"], "0 is not in the range"),
    ],
)
def test_a_filter_without_effect_is_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = str(DATA / "small1.log")
    monkeypatch.chdir(tmp_path)
    _core.convert([log], "x.pftrace")
    names = {"LOG": log, "TRACE": "x.pftrace"}
    done = CliRunner().invoke(cli, [names.get(argument, argument) for argument in arguments])
    assert done.exit_code == 2
    assert message in done.output


def test_bios_of_file_system_threads_are_background_writeback(tmp_path: Path) -> None:
    """A thread of a file system writes with an id that no event starts. Its submits have `origin=other`."""
    common = {"tid": 9, "comm": "btrfs-transacti", "source": "trace-dat"}
    submit = {"event": "bio_submit", "id": 7, "bio": "0x10", "dev": "254,0", "sector": 8}
    events = [
        {"event": "bio_add_folio", "id": 7, "bio": "0x10", "start": 0, "len": 4096},
        submit | {"origin": "other"},
        {"event": "bio_complete", "bio": "0x10"},
        # The next bio of the same id is known without a folio.
        submit | {"bio": "0x20", "origin": "other"},
        {"event": "bio_complete", "bio": "0x20"},
        {"event": "bio_add_folio", "id": 8, "bio": "0x30", "start": 0, "len": 512},
        submit | {"id": 8, "bio": "0x30", "origin": "sync"},
    ]
    log = tmp_path / "in.events.jsonl"
    lines = [{"ts_ns": 100 + at, **common, **event} for at, event in enumerate(events)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _core.convert([str(log)], f"{tmp_path}/out/")
    with open_columns(str(tmp_path / "out"), sql=sql_root() / "tables" / "duckdb") as columns:
        bios = columns.query(
            "SELECT id, origin, bytes, incomplete FROM syncline_bio ORDER BY ts_ns"
        ).rows
        assert [tuple(row) for row in bios] == [
            (7, "background", 4096, None),
            (7, "background", None, None),
            # Its request has no start, so the log may lack its first folios.
            (8, "sync", None, "end"),
        ]
        requests = columns.query("SELECT id, incomplete FROM syncline_sync").rows
        assert [tuple(row) for row in requests] == [(8, "start")]


def test_a_control_group_selects_the_processes_in_it(tmp_path: Path) -> None:
    one, two, *rest = tids("small4.log")
    tasks = {
        "threads": [[one, 40], [two, 50], *[[tid, 60] for tid in rest]],
        "processes": {},
        # That of process 60 is not known.
        "cgroups": {
            "/kubepods.slice/kubepods-pod1.slice/cri-containerd-3f1a7c.scope": [40],
            "/kubepods.slice-not": [50],
        },
    }
    run = run_directory(tmp_path / "run", "small4.log", tasks, {"cgroup": "3f1a7"})

    def tids_of(*more: str) -> tuple[list[str], str]:
        sql = "SELECT DISTINCT tid FROM syncline_sync ORDER BY 1"
        done = CliRunner().invoke(cli, ["query", str(run), sql, "--format", "csv", *more])
        assert done.exit_code == 0
        return done.stdout.splitlines()[1:], done.stderr

    assert tids_of()[0] == [str(one)]
    assert "only requests of cgroup 3f1a7 are included: 25 others" in tids_of()[1]
    assert "and 50 for which the log does not record what the filter selects by" in tids_of()[1]
    assert tids_of("--cgroup", "/kubepods.slice")[0] == [str(one)]
    assert tids_of("--cgroup", "/kubepods.slice/")[0] == [str(one)]
    assert tids_of("--cgroup", "/kubepods.slice-not")[0] == [str(two)]
    assert tids_of("--cgroup", "kubepods")[0] == sorted([str(one), str(two)], key=int)


def test_a_file_of_an_unknown_format_is_named(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", "small1.log", {}, {})
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["inputs"].append({"file": "new.log", "source": "newer"})
    (run / "manifest.json").write_text(json.dumps(manifest))
    done = CliRunner().invoke(cli, ["report", str(run), "files"])
    assert done.exit_code == 0
    assert f"{run}/new.log (newer) is not read" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0::/user.slice/a.scope\n", "/user.slice/a.scope"),
        ("0::/\n", "/"),
        ("12:cpuset:/c\n1:name=systemd:/docker/abc\n0::/\n", "/docker/abc"),
        ("4:memory,cpu:/docker/abc\n", "/docker/abc"),
        ("", "/"),
    ],
)
def test_the_control_group_of_a_process(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup").write_text(text)
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path / "cgroup")
    assert processes.cgroup(7) == expected


# What the UI shows: slices, arrows, counters and tracks.
TIMELINE = (
    "SELECT ts, dur, depth, name, category, extract_arg(arg_set_id, 'debug.bio_id') FROM slice"
    " WHERE category <> 'syncline.meta' ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT a.ts, a.name, b.ts, b.name FROM flow JOIN slice AS a ON a.id = slice_out"
    " JOIN slice AS b ON b.id = slice_in ORDER BY 1, 2, 3, 4",
    "SELECT ts, value, track.name FROM counter JOIN track ON track.id = track_id ORDER BY 1, 3, 2",
    "SELECT DISTINCT track.name FROM slice JOIN track ON track.id = track_id ORDER BY 1",
)
# Begin and end of a time that holds some of the syncs of a log, in ns.
PARTS = {
    "thesis/small4-slowdisk.log": (1_000_000_000, 2_000_000_000),
    "thesis/bg.log.gz": (1_000_000_000, 2_000_000_000),
    "dynamic-events/run": (2_500_000_000, 3_900_000_000),
    "strace/small4.log": (188_000_000, 238_000_000),
}


@pytest.mark.parametrize("log", PARTS)
def test_a_time_of_a_log_and_of_its_trace(log: str, tmp_path: Path) -> None:
    since, until = PARTS[log]
    path = ROOT / "tests/data" / log
    selected = Filter(since_ns=since, until_ns=until)
    Reading().convert([str(path)], f"{tmp_path}/whole.pftrace")
    Reading().convert([str(path)], f"{tmp_path}/whole/")
    Reading(filter=selected).convert([str(path)], f"{tmp_path}/log.pftrace")
    Reading(filter=selected).convert([str(path)], f"{tmp_path}/part/")
    convert_trace(
        f"{tmp_path}/whole.pftrace", f"{tmp_path}/trace.pftrace", filter=selected.for_core()
    )
    whole, part = coretools.tables(tmp_path / "whole"), coretools.tables(tmp_path / "part")
    (first,) = [int(row["value"]) for row in whole["meta"] if row["key"] == "first_ts_ns"]

    def is_in(row: Row) -> bool:
        begin = row["ts_ns"] - first
        return begin < until and begin + (row["dur_ns"] or 0) >= since

    syncs = [row for row in whole["sync"] if is_in(row)]
    assert 0 < len(syncs) < len(whole["sync"])
    by_id = {row["sync_id"]: row for row in syncs}
    assert {row["sync_id"]: row for row in part["sync"]} == by_id
    bios = [
        row
        for row in whole["bio"]
        if (is_in(row) if row["sync_id"] is None else row["sync_id"] in by_id)
    ]
    assert sorted(row["bio_id"] for row in part["bio"]) == sorted(row["bio_id"] for row in bios)
    for name in ("journal", "write_wait", "file_op"):
        assert part[name] == [row for row in whole[name] if is_in(row)]
    losses = {row["reason"]: row["count"] for row in part["loss"]}
    unmatched = [row for row in whole["call"] if row["unmatched"] and not is_in(row)]
    assert losses["filtered_out"] == len(whole["sync"]) - len(syncs) + len(unmatched)

    # The part of the trace is the trace of the part.
    tables = ("sync", "bio", "call", "wait", "journal", "phase", "loss", "mark")
    found = []
    for name in ("log", "trace"):
        with opened(f"{tmp_path}/{name}.pftrace", Reading(), "embedded") as engine:
            rows = [engine.query(sql).rows for sql in TIMELINE]
            rows += [
                run_query(engine, f"SELECT * FROM syncline_{table} ORDER BY 1, 2, 3").rows
                for table in tables
            ]
            found.append(rows)
    for one, other in zip(*found, strict=True):
        assert one == other
    # Such a trace can be read again, and a part of it can be taken.
    again = Filter(comm="nobody")
    convert_trace(f"{tmp_path}/trace.pftrace", f"{tmp_path}/again.pftrace", filter=again.for_core())
    with opened(f"{tmp_path}/again.pftrace", Reading(), "duckdb") as engine:
        facts = dict(run_query(engine, "SELECT key, value FROM syncline_meta").rows)
        assert run_query(engine, "SELECT COUNT(*) FROM syncline_sync").rows == [(0,)]
    assert facts["request_filter"].endswith("after the first event, comm nobody")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--since", "2s", "--until", "2s"), "--until is not after --since"),
        (("--cgroup", "x"), "already converted: --cgroup"),
        (("--window", "1s", "--since", "1s"), "already converted: --window"),
    ],
)
def test_a_part_that_cannot_be_shown_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    Reading().convert([str(DATA / "small4.log")], f"{tmp_path}/x.pftrace")
    run = CliRunner().invoke(cli, ["open", "--no-browser", *arguments, f"{tmp_path}/x.pftrace"])
    assert run.exit_code == 2
    assert words in run.output


def test_a_trace_without_a_filter_is_not_written_again(tmp_path: Path) -> None:
    Reading().convert([str(DATA / "small4.log")], f"{tmp_path}/x.pftrace")
    with pytest.raises(_core.CoreError, match="the input is a trace"):
        convert_trace(f"{tmp_path}/x.pftrace", f"{tmp_path}/y.pftrace")
    assert not Path(f"{tmp_path}/y.pftrace").exists()
