"""Flame graphs: sums against the slow reference, each format with an independent reader, and the messages about missing data.

tests/ui/test_flamegraph_ui.py opens the SVGs in a browser.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from syncline import _core
from syncline.cli import flamegraph as command
from syncline.flamegraph import BY, FORMATS, WEIGHTS, Picture, exporter, read
from syncline.flamegraph.picture import Side, distinct_names
from syncline.flamegraph.stacks import query
from syncline.inputs import Reading, opened
from syncline.report import run_query
from syncline.report.catalogue import parse

from tests.coretools import DATA, RECORDINGS, convert, recording
from tests.reference import thesis
from tests.sqltools import same
from tests.test_commands import BIN, fails, left, ok, run
from tests.test_core import collapse
from tests.test_sql import RUNS, Both

ROOT = Path(__file__).parents[1]
COLUMNS = {
    "count": None,
    "syscall": "syscall_ns",
    "writeback": "writeback_ns",
    "journal": "journal_ns",
    "flush": "flush_ns",
    "bytes": "bytes",
}
# A log of a patched kernel, whose syncs wait for commits and flushes.
WAITS = Path(__file__).parents[1] / "kernel-patch" / "samples" / "ext4.trace.txt"
SVG = "{http://www.w3.org/2000/svg}"

Folded = dict[str, int]


def side(path: str | Path, by: str, *, compared: bool = False, engine: str = "auto") -> Side:
    with opened(str(path), Reading(), engine) as data:
        return Side(str(path), read(data, by, compared=compared))


def picture(path: str | Path, by: str = "stack", weight: str = "count", **rest: Any) -> Picture:
    return Picture(side(path, by), by, weight, **rest)


def differential(new: str | Path, base: str | Path, by: str, weight: str, **rest: Any) -> Picture:
    sides = [side(path, by, compared=True) for path in (new, base)]
    return Picture(sides[0], by, weight, sides[1], **rest)


def folded(text: str | bytes) -> Folded:
    """Parses lines `frames N`. No stack may occur twice."""
    text = text.decode() if isinstance(text, bytes) else text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert len(found) == len(text.splitlines())
    return {frames: int(weight) for frames, weight in found.items()}


@cache
def requests_of(name: str) -> list[dict[str, Any]]:
    """Returns the requests of a recording according to the reference."""
    return thesis.read(recording(name)).sync


def expected(requests: list[dict[str, Any]], by: str, weight: str) -> Folded:
    """Returns the frames and the sums of the known weights according to the reference."""
    want: Counter[str] = Counter()
    column = COLUMNS[weight]
    for row in requests:
        value = 1 if column is None else row[column]
        comm = row["comm"]
        if by == "stack":
            frames = [comm, row["stack"] or "[no stack]"]
        elif by == "file":
            path = row["path"]
            parts = [part for part in path.split("/") if part] if path else []
            frames = [comm, "/", *parts] if path else [comm, "[unknown file]"]
        else:
            frames = [comm, f"{comm} {row['tid']}", row["op"] or "[no call]"]
        # An unknown weight adds nothing, and a frame without weight is not drawn.
        want[";".join(frames)] += value or 0
    return {frames: value for frames, value in want.items() if value}


# Sums.


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("name", RECORDINGS)
def test_sums_match_the_reference(name: str, by: str) -> None:
    requests = side(DATA / name, by)
    for weight in WEIGHTS:
        output = exporter("folded")(Picture(requests, by, weight))
        assert folded(output) == expected(requests_of(name), by, weight), weight


@pytest.mark.parametrize("by", BY)
def test_totals_match_sql(by: str) -> None:
    for log in (DATA / "small4.log", DATA / "parallel4.log", DATA / "uring.log", WAITS):
        with opened(str(log), Reading()) as engine:
            stacks = read(engine, by)
            for weight, column in COLUMNS.items():
                known, total = run_query(
                    engine, f"SELECT COUNT({column or '*'}), SUM({column or 1}) FROM syncline_sync"
                ).rows[0]
                assert (stacks.known[weight], stacks.total(weight)) == (known, total or 0), weight
        assert stacks.syncs == stacks.known["count"]


def test_wait_sums_match_the_log(tmp_path: Path) -> None:
    """The sums are computed from the events in the text. `convert` writes the same stacks."""
    edges: Counter[str] = Counter()
    for us, event in re.findall(r" (\d+\.\d{6}): (\w+): id=[1-9]", WAITS.read_text()):
        edges[event] += int(us.replace(".", "")) * 1000
    journal = edges["commit_wait_end"] - edges["commit_wait_start"]
    flush = edges["flush_end"] - edges["flush_start"]
    assert min(journal, flush) > 0
    for weight, want in (("journal", journal), ("flush", flush)):
        output = exporter("folded")(picture(WAITS, "file", weight))
        assert sum(folded(output).values()) == want
        out = convert(
            tmp_path, WAITS.read_bytes(), f"{weight}.folded", WAITS.name, weight=weight, by="file"
        )
        assert out.read_bytes() == (output if isinstance(output, bytes) else output.encode())


def test_a_file_without_a_path_is_its_inode(tmp_path: Path) -> None:
    """perf records no paths. The inodes are those of the events in the text. `convert` writes the same stacks."""
    text = gzip.decompress((ROOT / "tests/data/perf/stacks.txt.gz").read_bytes()).decode()
    log = tmp_path / "perf.txt"
    log.write_text(text.replace(" ino 13 ", f" ino {2**64 - 13} "))
    events = re.findall(r"^ *(\S+) .*sync_file_enter: dev (\d+,\d+) ino (\d+)", text, re.MULTILINE)
    signed = {"13": "-13"}
    want = Counter(f"{comm};inode {signed.get(ino, ino)} on {dev}" for comm, dev, ino in events)
    assert {ino for _, _, ino in events} > {*signed}
    output = exporter("folded")(picture(log, "file"))
    assert folded(output) == want
    _core.convert([str(log)], str(tmp_path / "x.folded"), by="file")
    assert folded((tmp_path / "x.folded").read_bytes()) == want


def test_a_thread_without_a_name_is_said_to_have_none(tmp_path: Path) -> None:
    """strace records no names here. All sync calls of the log are counted."""
    log = ROOT / "tests/data/strace/rename.log"
    calls = len(re.findall(r"\b(?:fsync|fdatasync)\(", log.read_text()))
    output = exporter("folded")(picture(log, "file"))
    stacks = folded(output)
    assert {stack.split(";")[0] for stack in stacks} == {"[no name]"}
    assert sum(stacks.values()) == calls > 0
    _core.convert([str(log)], str(tmp_path / "x.folded"), by="file")
    assert folded((tmp_path / "x.folded").read_bytes()) == stacks


@pytest.mark.parametrize("by", _core.BY)
@pytest.mark.parametrize("weight", _core.WEIGHTS)
@pytest.mark.parametrize("name", ["rename.log", "sqlite_wal_full.log", "odsync.log"])
def test_folded_output_matches_convert(name: str, weight: str, by: str, tmp_path: Path) -> None:
    want = convert(tmp_path, recording(name), "out.folded", weight=weight, by=by).read_bytes()
    if want:
        assert exporter("folded")(picture(DATA / name, by, weight)) == want


def test_every_kind_of_input_gives_the_same_picture(tmp_path: Path) -> None:
    log = DATA / "sqlite_rj_full.log"
    want = {by: exporter("folded")(picture(log, by, "writeback")) for by in BY}
    for name in ("t.pftrace", "t/", "t.parquet", "t.csv", "t.jsonl"):
        _core.convert([str(log)], f"{tmp_path}/{name}")
        output = {
            by: exporter("folded")(picture(f"{tmp_path}/{name}", by, "writeback")) for by in BY
        }
        assert output == want, name


@pytest.mark.parametrize("run", RUNS)
def test_queries_give_equal_rows_in_both_engines(run: str, tmp_path: Path) -> None:
    both = Both(run, tmp_path)
    for by in BY:
        sql = query(by)
        rows = []
        for engine in both.engines():
            table = run_query(engine, sql)
            # The head comment documents the columns.
            described = [column.name for column in parse(by, sql).columns]
            assert [*BY[by].keys, *described] == table.columns
            rows.append(sorted(table.rows, key=repr))
        assert same(*rows)
        assert sum(dict(zip(table.columns, row, strict=True))["syncs"] for row in rows[0]) == len(
            both.run.sync
        )
    for engine in both.engines():
        engine.close()


def test_several_runs_are_summed_and_threads_are_shown_without_ids(tmp_path: Path) -> None:
    for name in ("small4.log", "small1.log"):
        _core.convert([str(DATA / name)], f"{tmp_path}/{name}.parquet")
    # Each of 4 threads syncs 25 files, and one thread of the other run syncs 50.
    assert folded(ok("flamegraph", tmp_path, "--by", "thread")) == {"wl;fsync": 150}
    by_stack = folded(ok("flamegraph", tmp_path))
    assert sum(by_stack.values()) == 150
    assert by_stack["wl;start_thread;small_thr;save_small;__syscall_cancel_arch"] == 16 + 24


def test_processes_and_threads_are_shown_with_their_ids(tmp_path: Path) -> None:
    both = Both("processes", tmp_path)
    stacks = read(both.columns, "thread")
    # Process 10 is db with threads 11 and 12. Process 20 is db with thread 21. Process 30 has only the names of its threads.
    assert {stack.frames: stack.sums["count"] for stack in stacks.stacks} == {
        ("db 10", "t11 11", "fsync"): 2,
        ("db 10", "t12 12", "fsync"): 1,
        ("db 20", "t21 21", "fsync"): 2,
        ("t31 30", "t31 31", "fsync"): 1,
        ("t32 30", "t32 32", "fsync"): 1,
    }
    compared = read(both.columns, "thread", compared=True)
    assert {stack.frames: stack.sums["count"] for stack in compared.stacks} == {
        ("db", "t11", "fsync"): 2,
        ("db", "t12", "fsync"): 1,
        ("db", "t21", "fsync"): 2,
        ("t31", "fsync"): 1,
        ("t32", "fsync"): 1,
    }


# Formats.


def test_perf_script_output_collapses_to_the_folded_stacks() -> None:
    for by in BY:
        graph = picture(DATA / "sqlite_rj_full.log", by, "syscall")
        assert collapse(exporter("perf")(graph).decode()) == folded(exporter("folded")(graph))


@pytest.mark.parametrize("name", ["small4.log", "uring.log"])
def test_speedscope_profiles_follow_the_schema_and_match_the_reference(name: str) -> None:
    by = "file"
    graph = picture(DATA / name, by, "bytes")
    file = json.loads(exporter("speedscope")(graph))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert file.keys() <= {
        "$schema",
        "name",
        "exporter",
        "activeProfileIndex",
        "shared",
        "profiles",
    }
    names = [frame["name"] for frame in file["shared"]["frames"]]
    assert len(set(names)) == len(names)
    weights = [weight for weight in WEIGHTS if graph.new.stacks.total(weight)]
    # Workers of io_uring make no sync call.
    assert ("syscall" in weights) == (name != "uring.log")
    assert len(file["profiles"]) == len(weights)
    assert weights[file["activeProfileIndex"]] == "bytes"
    for weight, profile in zip(weights, file["profiles"], strict=True):
        assert profile.keys() == {
            *("type", "name", "unit", "startValue", "endValue", "samples", "weights")
        }
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("none", "nanoseconds", "bytes")
        assert profile["startValue"] == 0
        assert profile["endValue"] == sum(profile["weights"])
        got = {
            ";".join(names[index] for index in sample): value
            for sample, value in zip(profile["samples"], profile["weights"], strict=True)
        }
        assert got == expected(requests_of(name), by, weight)


def profile_proto() -> Any:
    """Returns the class Profile of pprof's profile.proto, with the messages that are written and their published field numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    number, unsigned, text = kinds.TYPE_INT64, kinds.TYPE_UINT64, kinds.TYPE_STRING
    fields: dict[str, dict[str, tuple[Any, ...]]] = {
        "ValueType": {"type": (1, number), "unit": (2, number)},
        "Sample": {"location_id": (1, unsigned, "*"), "value": (2, number, "*")},
        "Line": {"function_id": (1, unsigned)},
        "Location": {"id": (1, unsigned), "line": (4, "Line", "*")},
        "Function": {"id": (1, unsigned), "name": (2, number), "system_name": (3, number)},
        "Profile": {
            "sample_type": (1, "ValueType", "*"),
            "sample": (2, "Sample", "*"),
            "location": (4, "Location", "*"),
            "function": (5, "Function", "*"),
            "string_table": (6, text, "*"),
            "comment": (13, number, "*"),
            "default_sample_type": (14, number),
        },
    }
    for name, parts in fields.items():
        message = file.message_type.add(name=name)
        for field, (field_number, kind, *repeated) in parts.items():
            made = message.field.add(name=field, number=field_number)
            made.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            made.type = kinds.TYPE_MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                made.type_name = f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


@pytest.mark.parametrize(
    ("name", "by"),
    [*(("small4.log", by) for by in BY), ("parallel4.log", "thread"), ("uring.log", "file")],
)
def test_pprof_profiles_match_the_reference(name: str, by: str) -> None:
    output = exporter("pprof")(picture(DATA / name, by, "writeback"))
    assert output == exporter("pprof")(picture(DATA / name, by, "writeback"))
    profile = profile_proto().FromString(gzip.decompress(output))
    text = profile.string_table
    assert text[0] == ""
    types = [(text[one.type], text[one.unit]) for one in profile.sample_type]
    # Unknown weights are omitted. The thesis's format does not record waits.
    known_types = [
        ("count", "count"),
        *([] if name == "uring.log" else [("syscall", "nanoseconds")]),
        *(("writeback", "nanoseconds"), ("bytes", "bytes")),
    ]
    assert types == known_types
    assert text[profile.default_sample_type] == "writeback"
    functions = {one.id: text[one.name] for one in profile.function}
    frames = {one.id: functions[one.line[0].function_id] for one in profile.location}
    assert 0 not in frames
    for index, (weight, _) in enumerate(types):
        got = {
            ";".join(frames[number] for number in reversed(sample.location_id)): sample.value[index]
            for sample in profile.sample
        }
        assert {k: v for k, v in got.items() if v} == expected(requests_of(name), by, weight)


# SVG.


def tree(stacks: Folded) -> dict[tuple[str, ...], int]:
    """Returns the weight of each frame and its callees, by the path of the frame. The path of the root is empty."""
    totals: Counter[tuple[str, ...]] = Counter()
    for stack, weight in stacks.items():
        frames = tuple(stack.split(";"))
        for depth in range(len(frames) + 1):
            totals[frames[:depth]] += weight
    return dict(totals)


def drawn(svg: bytes) -> list[tuple[str, str, int, int]]:
    """Returns (name, figures, left edge, width) of each frame, with edge and width in the unit of the weight."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert rect is not None
        match = re.fullmatch(r"(.*) \(([^(]*)\)", title.text or "", re.S)
        assert match, title.text
        x, width = (
            rect.attrib[f"{{http://github.com/jonhoo/inferno}}{name}"] for name in ("x", "w")
        )
        found.append((match[1].replace("\xa0", " "), match[2], int(x), int(width)))
    return found


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("weight", ["count", "syscall", "writeback", "bytes"])
@pytest.mark.parametrize("name", ["small4.log", "rename.log", "unlinked.log"])
def test_the_width_of_a_frame_is_its_weight(name: str, weight: str, by: str) -> None:
    graph = picture(DATA / name, by, weight)
    svg = exporter("svg")(graph)
    assert svg == exporter("svg")(graph)
    totals = tree(expected(requests_of(name), by, weight))
    want = sorted((path[-1] if path else "all", width) for path, width in totals.items())
    assert sorted((name, width) for name, _, _, width in drawn(svg)) == want


def test_titles_name_the_weight_and_its_total(tmp_path: Path) -> None:
    ok("flamegraph", DATA / "parallel4.log", "--weight", "writeback", "-o", tmp_path / "x.svg")
    root = ElementTree.fromstring((tmp_path / "x.svg").read_bytes())
    texts = {text.get("id"): text.text for text in root.iter(f"{SVG}text")}
    assert texts["title"] == "Writeback latency by call stack: parallel4.log"
    known = [
        row
        for row in thesis.read(recording("parallel4.log")).sync
        if row["writeback_ns"] is not None
    ]
    total = sum(row["writeback_ns"] for row in known)
    # The log lacks the completion of one request's bio, out of 80 requests.
    assert len(known) == 79
    assert texts["subtitle"] == (
        f"{total / 1e6:.1f} ms in 79 requests · 1 more not known · lost: never_completed 1"
    )
    # From 10,000 units on, figures have no decimals.
    figures = {name: text for name, text, _, _ in drawn((tmp_path / "x.svg").read_bytes())}
    assert figures["all"] == f"{total / 1e3:,.0f} µs, 100%"


def test_frames_under_the_given_share_are_hidden(tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    log = DATA / "sqlite_wal_full.log"
    arguments = ("flamegraph", log, "--by", "file", "--weight", "syscall")
    stacks = folded(ok(*arguments))
    done = run(*arguments, "--hide-under", "5%", "-o", out)
    totals = tree(stacks)
    limit = 0.05 * sum(stacks.values())
    want = sorted(path[-1] if path else "all" for path, width in totals.items() if width >= limit)
    assert sorted(name for name, *_ in drawn(out.read_bytes())) == want
    assert len(totals) - len(want) == 1
    assert "note: not shown: 1 frame under 5 % of the whole" in done.stderr


def test_a_hidden_thread_does_not_make_the_others_wider(tmp_path: Path) -> None:
    log = write(tmp_path, "x.log", [("main;a", 500)] * 98)
    log.write_text(
        log.read_text() + "9000000 9 w start id 990 start 0 end 9 datasync 0 path /g\n" * 2
    )
    graph = picture(log, hide_under=3)
    assert graph.new.stacks.syncs == 99
    got = [(name, width) for name, _, _, width in drawn(exporter("svg")(graph))]
    assert sorted(got) == [("a", 98), ("all", 99), ("db", 98), ("main", 98)]


# Differences.


def write(folder: Path, name: str, stacks: list[tuple[str, int]]) -> Path:
    """Writes a log with one sync for each (stack, duration in ns). The innermost frame of a stack is last."""
    lines = []
    clock = 1_000_000
    for number, (stack, duration_ns) in enumerate(stacks, 1):
        lines.append(f"{clock} 7 db fsync")
        lines += [f"        {frame}+1" for frame in reversed(stack.split(";"))]
        lines.append(f"{clock + 10} 7 db start id {number} start 0 end 9 datasync 0 path /f")
        lines.append(f"{clock + duration_ns} 7 db exit id {number} ret 0")
        clock += duration_ns + 1000
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Returns (new, base). In new, `a` takes twice the time, `b` the same and `x` half; `d` is new and `e` is gone."""
    new = [("main;a", 2000), ("main;b", 500), ("main;c;x", 250), ("main;d", 750)]
    base = [("main;a", 1000), ("main;b", 500), ("main;c;x", 500), ("main;c;e", 800)]
    return write(tmp_path, "new.log", new), write(tmp_path, "base.log", base)


def test_a_folded_difference_has_the_weights_of_both_sides(pair: tuple[Path, Path]) -> None:
    output = ok("flamegraph", pair[0], "--diff", pair[1], "--weight", "syscall")
    assert output.splitlines() == [
        "db;main;a 1000 2000",
        "db;main;b 500 500",
        "db;main;c;e 800 0",
        "db;main;c;x 500 250",
        "db;main;d 0 750",
    ]


def test_frames_of_a_difference_are_named_with_their_change(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "x.svg"
    done = run("flamegraph", pair[0], "--diff", pair[1], "--weight", "syscall", "-o", out)
    assert sorted((name, width) for name, _, _, width in drawn(out.read_bytes())) == sorted(
        [
            ("all", 3500),
            # 3500 against 2800.
            ("+25% db", 3500),
            ("+25% main", 3500),
            ("+100% a", 2000),
            ("= b", 500),
            # 250 against 1300.
            ("-81% c", 250),
            ("-50% x", 250),
            ("+new d", 750),
            # Below, the base with its own widths: `e` is gone.
            ("all", 2800),
            ("+25% db", 2800),
            ("+25% main", 2800),
            ("+100% a", 1000),
            ("= b", 500),
            ("-81% c", 1300),
            ("-50% x", 500),
            ("-100% e", 800),
        ]
    )
    assert "note: 800 ns of " in done.stderr
    assert "is in a stack that" in done.stderr
    assert "The lower graph shows it." in done.stderr
    # The command in the note of a format without a lower graph shows it as new.
    done = run("flamegraph", pair[0], "--diff", pair[1], "--weight", "syscall")
    typed = done.stderr.partition("exchange the two: syncline ")[2].splitlines()[0]
    ok(*shlex.split(typed), "--weight", "syscall", "-o", out)
    assert ("+new e", 800) in [(name, width) for name, _, _, width in drawn(out.read_bytes())]
    text = out.read_text()
    assert "Syscall latency by call stack: base.log against new.log" in text


def test_a_normalized_difference_compares_shares(pair: tuple[Path, Path]) -> None:
    output = ok("flamegraph", pair[0], "--diff", pair[1], "--weight", "syscall", "--normalize")
    base = {line.split()[0]: int(line.split()[1]) for line in output.splitlines()}
    # 2800 becomes 3500.
    assert base == {
        "db;main;a": 1250,
        "db;main;b": 625,
        "db;main;c;e": 1000,
        "db;main;c;x": 625,
        "db;main;d": 0,
    }
    # The total is unchanged, however the scaled weights are rounded.
    graph = differential(*pair, "stack", "syscall", normalize=True)
    assert {"= db", "= main", "+60% a"} <= {name for name, *_ in drawn(exporter("svg")(graph))}


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("name", ["small4.log", "sqlite_wal_full.log"])
def test_a_run_does_not_differ_from_itself(name: str, by: str) -> None:
    for normalize in (False, True):
        graph = differential(DATA / name, DATA / name, by, "syscall", normalize=normalize)
        lines = exporter("folded")(graph).decode().splitlines()
        assert lines
        assert all(line.split()[-1] == line.split()[-2] for line in lines)
        frames = [name for name, *_ in drawn(exporter("svg")(graph)) if name != "all"]
        assert frames
        assert all(frame.startswith("= ") for frame in frames)


def test_titles_distinguish_the_sides(tmp_path: Path) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "run.log", [("main;a", 500)])
    graph = differential(tmp_path / "after/run.log", tmp_path / "before/run.log", "stack", "count")
    assert graph.title() == "Sync requests by call stack: after/run.log against before/run.log"
    # If names were cut in the middle, where they differ, they would be equal.
    long = ["x" * 20 + char + "y" * 20 for char in "ab"]
    assert distinct_names(*long) == (long[0], long[1])
    assert distinct_names("a/run.log", "a/run.log") == ("run.log", "run.log")
    deep = distinct_names("z/one/a/run.log", "z/two/a/run.log")
    assert deep == ("one/a/run.log", "two/a/run.log")


def test_missing_function_names_are_not_a_difference(tmp_path: Path) -> None:
    """Both runs have the same workload. The new run lacks half of libc's names, and only `c` has really grown."""
    base = [("main;a;fsync", 100)] * 10 + [("main;b;fsync", 100)] * 4 + [("main;c", 100)] * 2
    new = [("main;a;fsync", 100)] * 5 + [("main;a;0x7f12", 100)] * 5
    new += [("main;b;0x7f13", 100), ("main;b;0x7f99", 100)] + [("main;b;fsync", 100)] * 2
    new += [("main;c", 100)] * 6 + [("main;[libc.so.6]", 100)]
    sides = write(tmp_path, "new.log", new), write(tmp_path, "base.log", base)
    # Addresses and library names have no offset.
    sides[0].write_text(re.sub(r"(0x\w+|\])\+1", r"\1", sides[0].read_text()))
    graph = differential(*sides, "stack", "count")
    assert sorted((name, width) for name, _, _, width in drawn(exporter("svg")(graph))) == sorted(
        [
            ("all", 21),
            ("+31% db", 21),
            ("+31% main", 21),
            # 10, or 11 with the request in libc.
            ("? a", 10),
            ("? fsync", 5),
            ("? [address]", 5),
            ("? b", 4),
            ("? fsync", 2),
            ("? [address]", 2),
            # 2 in base. 6 in new, or 7 with the request in libc.
            ("+≥200% c", 6),
            ("? [libc.so.6]", 1),
        ]
    )
    text = exporter("svg")(graph).decode()
    assert "? names missing" in text
    # A file name in brackets is not a missing function name.
    for side in sides:
        side.write_text(side.read_text().replace("/f", f"/d/[{side.name}]"))
    by_file = differential(*sides, "file", "count")
    assert "+new [new.log]" in {name for name, *_ in drawn(exporter("svg")(by_file))}
    assert "names missing" not in exporter("svg")(by_file).decode()


def test_addresses_of_two_runs_are_not_compared() -> None:
    graph = differential(DATA / "small4.log", DATA / "small1.log", "stack", "count")
    rows = {frames: (weight, base) for frames, weight, base in graph.rows()}
    # 84 of 100 requests in small4, and 26 of 50 in small1.
    assert rows["wl", *["[address]"] * 4] == (84, 26)


# Names.


def test_symbols_are_demangled(tmp_path: Path) -> None:
    log = recording("small1.log")
    for name, mangled in (
        (b"save_small", b"_ZN7rocksdb6DBImpl8WriteWALEv"),
        (b"small_thr", b"_RINvCs1234_7mycrate3fooAhj8_E"),
        (b"start_thread", b"core::ops::function::FnOnce::call_once::h0123456789abcdef"),
    ):
        log = log.replace(name, mangled)
    (tmp_path / "x.log").write_bytes(log)
    stacks = folded(ok("flamegraph", tmp_path / "x.log"))
    # c++filt writes [u8; 8: usize]. A `;` would separate frames.
    want = "wl;core::ops::function::FnOnce::call_once;mycrate::foo::<[u8: 8]>;rocksdb::DBImpl::WriteWAL();__syscall_cancel_arch"
    assert stacks[want] == 24


def test_addresses_are_shown_and_counted() -> None:
    done = run("flamegraph", DATA / "small4.log")
    stack = "wl;0x7ffff7e5a8bb;0x55555555567f;0x555555555584;0x7ffff7e6272e"
    assert folded(done.stdout)[stack] == 84
    words = "note: 84 of 100 requests come from 4 functions without a name: 0x555555555584,"
    assert words in done.stderr


# A comm has 15 bytes at most.
ODD = ["a 12", "b;c", "<img x='\"&>", "<script>", "]]>", "--", "x (y", "ü 1.5", "\x1b[31m"]


def test_names_with_special_characters_are_escaped(tmp_path: Path) -> None:
    lines = []
    for number, name in enumerate(ODD):
        ts = 1000 * (number + 1)
        lines.append(f"{ts} 7 # {name} fsync")
        lines.append(
            f"{ts + 10} 7 # {name} start id {number + 1} start 0 end 9 datasync 0 path /d/{name}"
        )
        lines.append(f"{ts + 50} 7 # {name} exit id {number + 1} ret 0")
    log = tmp_path / "--- <b> ]]>.log"
    log.write_text("\n".join(lines) + "\n")
    stacks = folded(ok("flamegraph", log, "--by", "file"))
    assert sum(stacks.values()) == len(ODD)
    assert {stack.count(";") for stack in stacks} == {3}
    ok("flamegraph", log, "--by", "file", "-o", tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_bytes()
    # Well-formed, and nothing but inferno's own script in it.
    root = ElementTree.fromstring(svg)
    assert len([*root.iter(f"{SVG}script")]) == 1
    names = {name for name, *_ in drawn(svg)}
    shown = {name.replace(";", ":").replace("\x1b", "\\x1b") for name in ODD}
    assert shown <= names
    assert {f"# {name}" for name in shown} <= names
    for form in FORMATS:
        assert exporter(form)(picture(log, "file"))


# Messages.


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("uring.log",), 3, "none of the 49 sync requests has a call stack"),
        (
            ("uring.log", "--by", "file", "--weight", "syscall"),
            3,
            "the syscall latency of all 49 sync requests is unknown",
        ),
        (("sync.log",), 3, "no sync request"),
        (("small1.log", "--diff", "uring.log"), 3, "uring.log: none of"),
        (
            ("small1.log", "--weight", "journal"),
            3,
            "the wait for the journal of all 50 sync requests is unknown",
        ),
        (("small1.log", "--diff", "small4.log", "-o", "x.pb.gz"), 2, "pprof holds only one"),
        (("small1.log", "-o", "x.png"), 2, ".speedscope.json"),
        (("small1.log", "--hide-under", "3%"), 2, "it is for .svg"),
        (("small1.log", "--hide-under", "much", "-o", "x.svg"), 2, "write 3%"),
        (("small1.log", "--normalize"), 2, "--diff"),
        (("small1.log", "--marks", "x.csv"), 2, "--marks"),
        (("small1.log", "--by", "op"), 2, "'thread'"),
        (("no-such.log",), 3, "no such file"),
    ],
)
def test_an_impossible_graph_is_refused_with_the_reason(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    logs = [DATA / word if word.endswith(".log") else word for word in arguments]
    assert words in fails(code, "flamegraph", *logs, cwd=tmp_path)
    assert left(tmp_path) == []


def test_a_total_of_zero_is_refused(tmp_path: Path) -> None:
    log = write(tmp_path, "x.log", [("main;a", 500)])
    # Without any event of a bio, nothing says that the recorder follows them.
    message = fails(3, "flamegraph", log, "--weight", "bytes")
    assert "the bytes written back of all 1 sync requests are unknown" in message
    with log.open("a") as lines:
        lines.write("2000000 0 swapper/0 bio_complete bio 0x8\n")
    message = fails(3, "flamegraph", log, "--weight", "bytes")
    assert "nothing to draw: the bytes written back of all 1 sync requests are 0" in message
    assert "--weight count" in message
    assert "are 0" in fails(
        3, "flamegraph", DATA / "small1.log", "--weight", "bytes", "--diff", log, "--normalize"
    )
    message = fails(3, "flamegraph", DATA / "small1.log", "--path", "/nothing")
    assert "no sync request passes the filter path /nothing" in message
    # Against a base of zero, every frame is new.
    output = ok("flamegraph", DATA / "small1.log", "--weight", "bytes", "--diff", log)
    assert {line.split()[-2] for line in output.splitlines()} == {"0"}


def test_without_stacks_the_hint_suggests_another_grouping() -> None:
    message = fails(3, "flamegraph", DATA / "uring.log")
    typed = message.partition("hint: draw something else: syncline ")[2]
    assert sum(folded(ok(*shlex.split(typed))).values()) == 49


def test_requests_without_a_stack_get_a_frame_and_are_counted(tmp_path: Path) -> None:
    log = write(tmp_path, "x.log", [("main;a", 500), ("main;b", 300)])
    more = (
        "9000000 9 db start id 90 start 0 end 9 datasync 0 path /g\n9000100 9 db exit id 90 ret 0\n"
    )
    log.write_text(log.read_text() + more)
    done = run("flamegraph", log)
    assert folded(done.stdout) == {"db;main;a": 1, "db;main;b": 1, "db;[no stack]": 1}
    assert (
        "note: 1 of 3 requests have no stack in the log: they are shown as [no stack]"
        in done.stderr
    )
    # The request has no call, so its latency is unknown, not 0.
    done = run("flamegraph", log, "--weight", "syscall")
    assert folded(done.stdout) == {"db;main;a": 500, "db;main;b": 300}
    assert "1 of 3 requests left out" in done.stderr
    # It is left out, so it is not shown as [no stack].
    assert "[no stack]" not in done.stderr
    assert "warning: 1 of 3 requests left out: their syscall latency is unknown" in done.stderr


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "x.svg"
    log.write_bytes(recording("small1.log"))
    assert "is an input" in fails(2, "flamegraph", log, "-o", log)
    assert log.read_bytes() == recording("small1.log")


def test_a_failed_command_leaves_no_output(tmp_path: Path) -> None:
    assert "mkdir -p" in fails(2, "flamegraph", DATA / "small1.log", "-o", tmp_path / "no/x.svg")
    assert "it is a folder" in fails(
        2, "flamegraph", DATA / "small1.log", "-o", tmp_path, "--to", "svg"
    )
    assert left(tmp_path) == []


def test_standard_input_and_output_work_like_files() -> None:
    log = recording("small4.log")
    want = ok("flamegraph", DATA / "small4.log", "--to", "svg").replace("small4.log", "NAME")
    output = ok("flamegraph", "-", "--to", "svg", stdin=log).replace("standard input", "NAME")
    assert re.sub(r"<!--NOTES.*?-->", "", output) == re.sub(r"<!--NOTES.*?-->", "", want)
    line = f"{BIN}/syncline flamegraph -q {DATA / 'bg.log.gz'} --by file | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_the_choices_of_the_command_match_the_package() -> None:
    assert tuple(BY) == command._BY
    assert tuple(WEIGHTS) == command._WEIGHTS
    assert tuple(FORMATS) == command._FORMATS
