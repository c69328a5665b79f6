"""What the Perfetto UI is given of sql/: the SELECTs of its macros, its first view, and the extension server."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from syncline import _core
from syncline.engine import Engine, find_web_dist, open_trace
from syncline.inputs import Reading, opened
from syncline.report.catalogue import sql_root
from syncline.ui import timeline, view
from syncline.ui.macros import MACROS

from tests.coretools import DATA, ROOT, Rows, tables
from tests.test_commands import fails, ok

# A log with bios and losses; one with phases, waits and journal; one with calls only; one with bios only.
LOGS = {
    "parallel4": DATA / "parallel4.log",
    "ext4": ROOT / "tests/data/dynamic-events/ext4.dat.gz",
    "strace": ROOT / "tests/data/strace/small4.log",
    "blktrace": ROOT / "tests/data/blktrace/small4.blkparse.txt.gz",
    "empty": DATA / "empty.log",
}
PREFIX = "dev.syncline."
COMMITTED = ROOT / "perfetto-ui-plugin/extension-server"


@pytest.fixture(scope="module", params=LOGS)
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, dict[str, Rows]]]:
    """A trace processor without Syncline's modules that has loaded a log, and the rows of the log."""
    folder = tmp_path_factory.mktemp("timeline")
    log = LOGS[request.param]
    reading = Reading()
    reading.convert([str(log)], f"{folder}/tables/")
    trace = folder / "log.pftrace"
    reading.convert([str(log)], str(trace))
    with open_trace(trace, engine="embedded") as engine:
        yield engine, tables(folder / "tables")


def rows(engine: Engine, name: str) -> Rows:
    """The rows of a SELECT of sql/views/timeline/, on tables that were built as in a UI without the modules."""
    sql = timeline.select(name)
    engine.query(timeline.inlined([sql]))
    result = engine.query(sql)
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


def known(found: dict[str, Rows]) -> Rows:
    """The syncs whose length is known, the longest first."""
    syncs = [row for row in found["sync"] if row["dur_ns"] is not None]
    return sorted(syncs, key=lambda row: (-row["dur_ns"], row["sync_id"]))


Seen = tuple[Engine, dict[str, Rows]]


def test_the_slowest_syncs(seen: Seen) -> None:
    engine, found = seen
    slices = rows(engine, "slowest")
    expected = known(found)[:20]
    assert [(row["ts"], row["dur"]) for row in slices] == [
        (row["ts_ns"], row["dur_ns"]) for row in expected
    ]
    for shown, sync in zip(slices, expected, strict=True):
        latency, unit, name = shown["name"].split(" ", 2)
        factor = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit]
        assert re.fullmatch(r"\d+(\.\d+)?", latency)
        assert 1 <= float(latency) < 1000
        assert float(latency) * factor == pytest.approx(sync["dur_ns"], rel=0.006)
        assert name == (Path(sync["path"]).name if sync["path"] else sync["op"] or "sync")


@pytest.fixture(scope="module")
def processor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    trace = tmp_path_factory.mktemp("processor") / "log.pftrace"
    Reading().convert([str(LOGS["empty"])], str(trace))
    with open_trace(trace, engine="embedded") as engine:
        yield engine


def name_of(engine: Engine, statement: str, table: str, values: str) -> str:
    """Runs a statement of sql/views/timeline/ on one row of values instead of the rows of a table."""
    sql = timeline.select(statement).rstrip().removesuffix(";")
    if table == "syncline_bio":
        none = "(SELECT 0 AS sync_id, NULL AS path, NULL AS process, NULL AS comm)"
        sql = sql.replace("LEFT JOIN syncline_sync AS sync", f"LEFT JOIN {none} AS sync")
        sql = sql.replace("FROM syncline_bio AS bio", f"FROM ({values}) AS bio")
    else:
        sql = sql.replace(f"FROM {table}", f"FROM ({values})")
    ((name,),) = engine.query(f"SELECT name FROM ({sql})").rows
    return str(name)


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (999, "999 ns"),
        (1_000, "1 µs"),
        (41_834, "41.8 µs"),
        (999_499, "999 µs"),
        (999_500, "1 ms"),
        (104_300_000, "104 ms"),
        # Was 1e+03 ms and 1.59e+03 ms.
        (999_500_000, "1 s"),
        (1_590_000_000, "1.59 s"),
        (1_234_000_000_000, "1234 s"),
    ],
)
def test_lengths_are_named_as_people_read_them(processor: Engine, ns: int, shown: str) -> None:
    values = f"SELECT 1 AS sync_id, 0 AS ts_ns, {ns} AS dur_ns, '/a/f' AS path, NULL AS what, 'fsync' AS op"
    assert name_of(processor, "slowest", "syncline_sync", values) == f"{shown} f"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (1023, "1023 B"),
        (4096, "4 KiB"),
        # Was 1.02e+03 KiB.
        (1_044_480, "1020 KiB"),
        (1_048_576, "1 MiB"),
        (1_069_547_520, "1020 MiB"),
        (1_610_612_736, "1.50 GiB"),
    ],
)
def test_sizes_are_named_as_people_read_them(processor: Engine, size: int, shown: str) -> None:
    values = (
        f"SELECT 1 AS bio_id, NULL AS sync_id, 0 AS ts_ns, 5 AS dur_ns, {size} AS bytes, '/f' AS path,"
        " 'write' AS direction, 'W' AS rwbs, NULL AS writers, 'wl' AS comm"
    )
    assert name_of(processor, "whose-data", "syncline_bio", values) == f"{shown} /f"


def test_who_used_the_disk(seen: Seen) -> None:
    """The rows of a user do not overlap, and in all they are the times between issue and completion."""
    engine, found = seen
    drawn: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows(engine, "disk"):
        drawn[row["name"]].append((row["ts"], row["ts"] + row["dur"]))
    for times in drawn.values():
        assert all(one[1] < other[0] for one, other in pairwise(sorted(times)))
    bios = [
        (row["ts_ns"] + (row["queue_ns"] or 0), row["ts_ns"] + row["dur_ns"])
        for row in found["bio"]
        if row["dur_ns"] and (row["queue_ns"] is not None or row["dev"] is None)
    ]
    whole = sorted(time for times in drawn.values() for time in times)
    assert bool(whole) == any(row["dur_ns"] for row in found["bio"])
    for start, end in bios:
        assert start >= end or any(a <= start and end <= b for a, b in whole)
    owners = {f"syncs of {row['process'] or row['comm']}" for row in found["sync"] if row["bios"]}
    assert {name.partition(",")[0] for name in drawn if name.startswith("syncs of ")} == owners


def test_the_table_links_to_the_slices(seen: Seen) -> None:
    engine, _ = seen
    table = rows(engine, "slowest-phases")
    slices = dict(
        engine.query(
            "SELECT id, extract_arg(arg_set_id, 'debug.sync_id') FROM slice WHERE category = 'syncline.sync'"
        ).rows
    )
    assert [slices[row["id"]] for row in table] == [row["sync_id"] for row in table]
    for row in table:
        assert row["slice_id"] == row["id"]
        assert None not in (row["ts"], row["dur"], row["track_id"])
    parts = rows(engine, "slowest-parts")
    # Each is within one of the syncs of the table.
    for part in parts:
        assert any(
            row["ts"] <= part["ts"] and part["ts"] + part["dur"] <= row["ts"] + row["dur"]
            for row in table
        )
    assert bool(parts) == any(row["phases"] for row in table)


def test_their_phases(seen: Seen) -> None:
    engine, found = seen
    lengths: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in found["phase"]:
        lengths[row["sync_id"]][row["phase"]] += row["dur_ns"]
    table = rows(engine, "slowest-phases")
    assert [row["sync_id"] for row in table] == [row["sync_id"] for row in known(found)[:20]]
    for row in table:
        of_sync = lengths[row["sync_id"]]
        if not any(of_sync.values()):
            assert row["phases"] is None
            continue
        phases = {name: ns for name, ns in of_sync.items() if ns > 0 and ns * 100 >= row["dur"]}
        parts = [part.split(" ms ") for part in row["phases"].split(", ")]
        names = [name.replace("not explained", "residue") for _, name in parts]
        rest = [name for name in names if name in ("other", "no recorded phase")]
        shown = names[: len(names) - len(rest)]
        assert set(shown) == {name for name, ns in phases.items() if ns >= 50_000}
        assert [phases[name] for name in shown] == sorted(
            (phases[name] for name in shown), reverse=True
        )
        phases["other"] = sum(of_sync.values()) - sum(phases.values())
        phases["no recorded phase"] = row["dur"] - sum(of_sync.values())
        assert set(rest) == {
            name for name in ("other", "no recorded phase") if phases[name] >= 50_000
        }
        for (text, _), name in zip(parts, names, strict=True):
            assert float(text) == pytest.approx(phases[name] / 1e6, abs=0.051)


def test_the_latency_is_that_of_the_last_sync_that_began(seen: Seen) -> None:
    engine, found = seen
    syncs = sorted(known(found), key=lambda row: (row["ts_ns"], row["sync_id"]))
    values = {row["ts"]: row["value"] for row in rows(engine, "latency")}
    assert values.keys() >= {row["ts_ns"] for row in syncs}
    begins = {row["ts_ns"]: row["dur_ns"] / 1e6 for row in syncs}
    for time, value in values.items():
        in_flight = any(row["ts_ns"] <= time < row["ts_ns"] + row["dur_ns"] for row in syncs)
        assert value == (pytest.approx(begins[time]) if in_flight else 0)
    # It ends at 0, and is 0 after each time at which no sync is in flight.
    if syncs:
        assert values[max(row["ts_ns"] + row["dur_ns"] for row in syncs)] == 0


def test_the_queue_is_split_by_flag_and_by_process(seen: Seen) -> None:
    engine, found = seen
    at_device = [
        (row, row["ts_ns"] + (row["queue_ns"] or 0), row["ts_ns"] + row["dur_ns"])
        for row in found["bio"]
        if row["dur_ns"] is not None and row["dur_ns"] > (row["queue_ns"] or 0)
    ]
    values: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows(engine, "queue-parts"):
        values[row["part"]].append((row["ts"], row["value"]))
    flags: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for bio, start, end in at_device:
        flag = "flags unknown" if bio["rwbs"] is None else "async"
        flag = "sync" if "S" in (bio["rwbs"] or "") else flag
        flags[f"{bio['dev'] or 'device unknown'} {flag}"].append((start, end))
    by_flag = {part: of for part, of in values.items() if " of " not in part}
    assert by_flag.keys() == flags.keys()
    for part, spans in flags.items():
        for ts, value in by_flag[part]:
            assert value == sum(start <= ts < end for start, end in spans), (part, ts)
    # Processes share all bios among them.
    for parts in (by_flag, {part: of for part, of in values.items() if " of " in part}):
        steps = {
            part: [b - a for (_, a), (_, b) in pairwise([(0, 0), *of])]
            for part, of in parts.items()
        }
        assert sum(step for of in steps.values() for step in of) == 0
        assert all(of[-1][1] == 0 for of in parts.values())


def test_empty_syncs(seen: Seen) -> None:
    engine, found = seen
    empty = [row for row in known(found) if row["bios"] == 0]
    assert sorted((row["ts"], row["dur"]) for row in rows(engine, "empty")) == sorted(
        (row["ts_ns"], row["dur_ns"]) for row in empty
    )
    by_file = rows(engine, "empty-files")
    assert sum(row["empty_syncs"] for row in by_file) == sum(
        row["bios"] == 0 for row in found["sync"]
    )
    assert sum(row["empty_time_ns"] or 0 for row in by_file) == sum(row["dur_ns"] for row in empty)


def test_whose_data(seen: Seen) -> None:
    engine, found = seen
    complete = [row for row in found["bio"] if row["dur_ns"] is not None]
    slices = rows(engine, "whose-data")
    assert sorted((row["ts"], row["dur"]) for row in slices) == sorted(
        (row["ts_ns"], row["dur_ns"]) for row in complete
    )
    # A track is made for each value, and null is not one.
    assert all(row["owner"] for row in slices)
    syncs = {row["sync_id"]: row for row in found["sync"]}
    for sync_id, sync in syncs.items():
        names = {sync["process"] or sync["comm"]}
        times = {row["ts_ns"] for row in complete if row["sync_id"] == sync_id}
        assert {row["owner"] for row in slices if row["ts"] in times} >= (names if times else set())
    table = rows(engine, "whose-data-table")
    # Without events of syncs, which bios are of the background is not known.
    unseen = not found["sync"]
    assert not unseen or {row["origin"] for row in table} <= {"write", "read", "flush"}
    assert sum(row["bios"] for row in table) == len(found["bio"])
    if all(row["bytes"] is not None for row in found["bio"]):
        assert sum(row["bytes"] for row in table) == sum(row["bytes"] for row in found["bio"])


def test_the_queue_returns_to_0(seen: Seen) -> None:
    engine, found = seen
    spans = [(row["ts_ns"], row["ts_ns"] + row["dur_ns"]) for row in found["bio"] if row["dur_ns"]]
    values = {row["ts"]: row["value"] for row in rows(engine, "queue")}
    assert values.keys() == {time for span in spans for time in span}
    for time, value in values.items():
        assert value == sum(start <= time < end for start, end in spans)


def test_latency_by_queue(seen: Seen) -> None:
    engine, found = seen
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in found["bio"]:
        if row["dur_ns"]:
            spans[row["dev"] or ""].append((row["ts_ns"], row["ts_ns"] + row["dur_ns"]))
    expected: dict[int, list[int]] = defaultdict(list)
    for sync in known(found):
        queue = sum(start < sync["ts_ns"] < end for start, end in spans[sync["dev"] or ""])
        expected[min(64, 1 << queue.bit_length() - 1) if queue else 0].append(sync["dur_ns"])
    table = {row["bios_from"]: row for row in rows(engine, "queue-latency")}
    assert {key: row["syncs"] for key, row in table.items()} == {
        key: len(lengths) for key, lengths in expected.items()
    }
    assert {key: row["max_ns"] for key, row in table.items()} == {
        key: max(lengths) for key, lengths in expected.items()
    }


@pytest.mark.parametrize("engine", ["duckdb", "embedded"])
@pytest.mark.parametrize("log", LOGS)
def test_the_first_view_is_the_slowest_sync(log: str, engine: str, tmp_path: Path) -> None:
    """Both engines find a slice that is in the trace."""
    trace = str(tmp_path / "log.pftrace")
    Reading().convert([str(LOGS[log])], trace)
    Reading().convert([str(LOGS[log])], f"{tmp_path}/tables/")
    syncs = known(tables(tmp_path / "tables"))
    with opened(trace, Reading(), engine, statements=[view.SLOWEST_SYNC]) as open_engine:
        if engine == "embedded":
            open_engine.query(timeline.inlined([view.SLOWEST_SYNC]))
        shown = view.slowest(open_engine.query(view.SLOWEST_SYNC).rows)
    if not syncs:
        assert shown is None
        return
    assert shown is not None
    assert (shown.start_ns, shown.length_ns) == (syncs[0]["ts_ns"], syncs[0]["dur_ns"])
    parameters = {name: int(value) for name, value in shown.parameters().items()}
    with open_trace(trace, engine="embedded") as trace_engine:
        ((first, last),) = trace_engine.query("SELECT start_ts, end_ts FROM trace_bounds").rows
        # The UI ignores a view that is not within the trace.
        assert first <= parameters["visStart"] <= shown.start_ns
        assert shown.start_ns + shown.length_ns <= parameters["visEnd"] <= last
        slices = trace_engine.query(
            "SELECT extract_arg(arg_set_id, 'debug.sync_id') FROM slice"
            f" WHERE ts = {parameters['ts']} AND dur = {parameters['dur']}"
        ).rows
    assert (syncs[0]["sync_id"],) in slices


def test_a_sync_that_is_named_is_shown_first(tmp_path: Path) -> None:
    trace = str(tmp_path / "log.pftrace")
    log = next(iter(LOGS.values()))
    Reading().convert([str(log)], trace)
    Reading().convert([str(log)], f"{tmp_path}/tables/")
    syncs = known(tables(tmp_path / "tables"))
    with opened(trace, Reading(), "duckdb") as engine:
        for sync in (syncs[1], syncs[-1]):
            shown = view.slowest(engine.query(view.select(sync["sync_id"])).rows)
            assert shown is not None
            assert (shown.start_ns, shown.length_ns) == (sync["ts_ns"], sync["dur_ns"])
        assert view.slowest(engine.query(view.select(10**9)).rows) is None


def test_the_sync_at_a_time_is_shown_first(tmp_path: Path) -> None:
    trace = str(tmp_path / "log.pftrace")
    Reading().convert([str(LOGS["parallel4"])], trace)
    Reading().convert([str(LOGS["parallel4"])], f"{tmp_path}/tables/")
    syncs = known(tables(tmp_path / "tables"))
    meta = {row["key"]: row["value"] for row in tables(tmp_path / "tables")["meta"]}
    first, last = int(meta["first_ts_ns"]), int(meta["last_ts_ns"])
    # Four syncs at once; between two of them; on the clock of the recording; after the last one; before the recording.
    middle = syncs[0]["ts_ns"] + syncs[0]["dur_ns"] // 2
    after = max(row["ts_ns"] + row["dur_ns"] for row in syncs) + 1
    with opened(trace, Reading(), "duckdb") as engine:

        def shown(at_ns: int) -> int | None:
            found = view.slowest(engine.query(view.select(at_ns=at_ns)).rows)
            return found and found.start_ns

        assert shown(middle - first) == syncs[0]["ts_ns"]
        assert middle - first <= last - first < middle, (
            "the clock does not begin with the recording"
        )
        assert shown(middle) == syncs[0]["ts_ns"]
        earliest = min(row["ts_ns"] for row in syncs)
        assert shown(0) == earliest
        assert shown(after - first) is None
        assert shown(last - first + 1) is None


def test_open_names_one_sync() -> None:
    log = ROOT / "tests" / "data" / "ftrace" / "small4.trace.txt.gz"
    said = fails(2, "open", "--offline", "--no-browser", "--sync", "1", "--at", "1s", log)
    assert "--sync and --at both name" in said
    said = fails(2, "open", "--offline", "--no-browser", "--at", "100min", log)
    assert "has no sync at this time or later" in said


def test_open_refuses_a_sync_that_is_not_there() -> None:
    said = fails(
        2,
        "open",
        "--offline",
        "--no-browser",
        "--sync",
        "100000",
        ROOT / "tests" / "data" / "ftrace" / "small4.trace.txt.gz",
    )
    assert "has no sync 100000 that is known from start to end" in said
    assert "hint: list them: syncline query " in said


def test_the_address_says_what_to_show_first() -> None:
    shown = view.Slowest(1000, 400, 1100, 250, 950, 2000)
    address = urlsplit(view.address("https://ui.example", "http://127.0.0.1:9001/x y", shown))
    assert (address.scheme, address.netloc, address.path) == ("https", "ui.example", "/")
    found = parse_qs(address.fragment.removeprefix("!/?"), strict_parsing=True)
    assert {name: found[name] for name in ("url", "hideSidebar", "ts", "dur")} == {
        "url": ["http://127.0.0.1:9001/x y"],
        "hideSidebar": ["true"],
        "ts": ["1100"],
        "dur": ["250"],
    }
    assert (found["visStart"], found["visEnd"]) == (["950"], ["1500"])
    names = [one["id"].rpartition(".")[2] for one in json.loads(found["startupCommands"][0])]
    assert names == [
        *("ExpandTracksByRegex", "RunQuery"),
        # The slowest syncs, their phases, who used the disk, the journal, the latency; the table of the slowest.
        *("AddDebugSliceTrack", "AddDebugSliceTrack", "AddDebugSliceTrack"),
        *("PinTracksByRegex", "AddDebugCounterTrack", "RunQueryAndShowTab"),
    ]
    # The plugin pins tracks of its own.
    address = urlsplit(view.address("https://ui.example", "http://a/x", shown, plugin=True))
    found = parse_qs(address.fragment.removeprefix("!/?"), strict_parsing=True)
    assert len(json.loads(found["startupCommands"][0])) == 1
    # Without such a sync, there is nothing to build tables for.
    address = urlsplit(view.address("https://ui.example", "http://127.0.0.1:9001/x"))
    found = parse_qs(address.fragment.removeprefix("!/?"), strict_parsing=True)
    assert found.keys() == {"url", "hideSidebar", "startupCommands"}
    assert len(json.loads(found["startupCommands"][0])) == 2


def test_every_select_is_used() -> None:
    files = {file.stem for file in (sql_root() / "views" / "timeline").glob("*.sql")}
    steps = {step[1] for macro in MACROS for step in macro.steps if step[1]}
    assert steps | {"first-view"} == files


def test_inlined_modules_are_the_modules(tmp_path: Path) -> None:
    """Without comments and INCLUDE, the tables have the same rows."""
    trace = tmp_path / "log.pftrace"
    Reading().convert([str(LOGS["ext4"])], str(trace))
    names = [f"syncline_{name.rpartition('.')[2]}" for name in timeline.modules()]
    # These two modules are parts of others.
    names = [name for name in names if name not in ("syncline_known", "syncline_related")]
    with (
        open_trace(trace, engine="embedded") as bare,
        opened(str(trace), Reading(), "embedded") as packed,
    ):
        bare.query(timeline.inlined(names))
        packed.query(timeline.included(names))
        for name in names:
            sql = f"SELECT * FROM {name}"
            assert bare.query(sql).rows == packed.query(sql).rows, name
    assert "INCLUDE" not in timeline.inlined(names)
    assert "--" not in timeline.inlined(names)


# The extension server


@pytest.fixture
def served(tmp_path: Path) -> dict[str, Any]:
    """The files that the command writes, by their path."""
    out = tmp_path / "out"
    ok("extension-server", "--out", out)
    return {
        str(file.relative_to(out)): json.loads(file.read_text())
        for file in out.rglob("*")
        if file.is_file()
    }


def test_the_committed_files_are_those_that_the_command_writes(tmp_path: Path) -> None:
    ok("extension-server", "--out", tmp_path)
    written = {file.relative_to(tmp_path): file.read_bytes() for file in files_of(tmp_path)}
    committed = {file.relative_to(COMMITTED): file.read_bytes() for file in files_of(COMMITTED)}
    assert committed == written, "type: make extension-server"


def files_of(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def allowed() -> set[str]:
    """The commands that the UI on this machine runs at startup."""
    web_dist = find_web_dist()
    assert web_dist is not None
    text = (web_dist / "frontend_bundle.js").read_text(encoding="utf-8")
    (found,) = re.findall(r"=\[((?:\"dev\.perfetto\.\w+\",?)+)\]", text)
    return set(re.findall(r"\"([\w.]+)\"", found))


def test_every_name_begins_with_the_namespace(served: dict[str, Any]) -> None:
    assert sorted(served) == ["manifest", "modules/default/macros", "modules/default/sql_modules"]
    manifest = served["manifest"]
    assert f"{manifest['namespace']}." == PREFIX
    assert {feature["name"] for feature in manifest["features"]} == {"macros", "sql_modules"}
    assert [module["id"] for module in manifest["modules"]] == ["default"]
    macros = served["modules/default/macros"]["macros"]
    sql = served["modules/default/sql_modules"]["sql_modules"]
    ids = [macro["id"] for macro in macros]
    assert len(set(ids)) == len(ids) == 5
    assert all(re.fullmatch(re.escape(PREFIX) + r"\w+", name) for name in ids)
    names = {module["name"] for module in sql}
    assert all(name.startswith(PREFIX) and name.count(".") == 2 for name in names)
    # What a module or a macro includes is served.
    texts = [module["sql"] for module in sql]
    texts += [text for macro in macros for step in macro["run"] for text in step["args"]]
    included = {name for text in texts for name in re.findall(r"PERFETTO MODULE ([\w.]+)", text)}
    assert included
    assert included <= names


def test_only_commands_that_are_stable(served: dict[str, Any]) -> None:
    stable = allowed()
    assert len(stable) >= 13
    runs = [macro["run"] for macro in served["modules/default/macros"]["macros"]]
    for run in [*runs, view.first_commands(view.Slowest(0, 1, 0, 1, 0, 1))]:
        for step in run:
            assert step["id"] in stable
            assert step["args"]
            assert all(isinstance(argument, str) for argument in step["args"])


def test_the_macros_run_on_the_modules_that_are_served(
    served: dict[str, Any], tmp_path: Path
) -> None:
    trace = tmp_path / "log.pftrace"
    Reading().convert([str(LOGS["ext4"])], str(trace))
    modules = served["modules/default/sql_modules"]["sql_modules"]
    package = tmp_path / "package"
    for module in modules:
        file = package / f"{module['name'].removeprefix(PREFIX)}.sql"
        file.parent.mkdir(exist_ok=True)
        file.write_text(module["sql"])
    for macro in served["modules/default/macros"]["macros"]:
        with open_trace(
            trace, engine="embedded", packages=[(PREFIX.rstrip("."), package)]
        ) as engine:
            runs = [step for step in macro["run"] if not step["id"].endswith("PinTracksByRegex")]
            counts = [len(engine.query(step["args"][0]).rows) for step in runs]
        # The first one builds tables. ext4 has no empty sync.
        assert all(counts[1:]) or macro["id"].endswith("EmptySyncs"), (macro["id"], counts)


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = fails(2, "extension-server", "--out", tmp_path / "file" / "x")
    assert "file" in message
    fails(2, "extension-server")


def test_a_first_view_that_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`syncline open` warns of a damaged trace. Traces of others are no reason to warn."""
    from syncline.cli import open as command

    whole, cut, others = (tmp_path / f"{name}.pftrace" for name in ("whole", "cut", "others"))
    _core.convert([str(DATA / "small4.log")], str(whole))
    cut.write_bytes(whole.read_bytes()[:-7])
    made = TraceProtoBuilder()
    packet = made.add_packet()
    packet.timestamp, packet.trusted_packet_sequence_id = 1, 1
    packet.track_event.name = "theirs"
    others.write_bytes(made.serialize())
    assert command._first_of(whole, None) is not None
    assert command._first_of(others, None) is None
    assert capsys.readouterr().err == ""
    assert command._first_of(cut, None) is None
    said = capsys.readouterr().err
    assert "warning: the slowest sync is not shown first: " in said
    assert f"{cut}: " in said
    assert "it is damaged or cut off" in said
