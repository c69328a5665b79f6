"""blktrace: recordings against output of blkparse, generated ones against a second reader and blkparse; bad input."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core

from tests.coretools import tables
from tests.reference import blktrace
from tests.reference.blktrace import Record, World
from tests.test_commands import fails, run

DATA = Path(__file__).parent / "data" / "blktrace"
RECORDINGS = {"small1": 1682, "small4": 1899, "rename": 1200, "uring": 1286}
BLKPARSE = shutil.which("blkparse")

Row = dict[str, Any]


def low_level(folder: Path, *inputs: str, **options: Any) -> list[Row]:
    """The lines of the low-level log, without `source`."""
    out = folder / "out.events.jsonl"
    _core.convert(list(inputs), str(out), **options)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line in lines:
        line.pop("source")
    return lines


def numbers(row: Row) -> Row:
    """Converts strings to numbers: numbers that JSON readers do not read exactly are written as strings."""
    names = ("comm", "name", "message", "data")
    return {
        key: int(value)
        if isinstance(value, str) and key not in names and re.fullmatch(r"-?\d{16,}", value)
        else value
        for key, value in row.items()
    }


def losses(summary: dict[str, Any]) -> dict[str, int]:
    return {loss["reason"]: loss["count"] for loss in summary["losses"]}


def in_order(rows: list[Row]) -> list[Row]:
    """Sorts rows by time, CPU and sequence, because tools differ in the order of equal times."""
    return sorted(rows, key=lambda row: (row["ts_ns"], row["cpu"], row.get("sequence", 0)))


def binary(name: str) -> list[str]:
    return [str(DATA / f"{name}.blktrace.{cpu}") for cpu in (0, 1)]


def text(name: str) -> str:
    return str(DATA / f"{name}.blkparse.txt.gz")


# Recordings.


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_record_is_what_the_second_reader_reads(tmp_path: Path, name: str) -> None:
    expected = blktrace.rows([Path(file).read_bytes() for file in binary(name)])
    found = [numbers(row) for row in low_level(tmp_path, *binary(name))]
    assert in_order(found) == in_order(expected)
    assert [row["ts_ns"] for row in found] == sorted(row["ts_ns"] for row in found)


def assert_printed(printed: list[Row], recorded: list[Row]) -> None:
    """Checks that text and records have the same events, and the records every field of the text."""
    events = [row for row in recorded if row["event"] not in ("process", "timestamp")]
    first_ns = min(row["ts_ns"] for row in events)
    for row in events:
        row["ts_ns"] -= first_ns
        if row["event"] == "m":
            row["tid"] = 0
            row.pop("comm", None)
    assert len(printed) == len(events)
    for found, expected in zip(in_order(events), in_order(printed), strict=True):
        for key, value in expected.items():
            if key == "bytes":
                # blkparse prints whole sectors.
                assert found[key] // 512 * 512 == value, (key, found, expected)
            elif key == "data":
                # blkparse prints dots for zeros at the end.
                assert found[key].startswith(value)
                assert not found[key][len(value) :].strip("0")
            else:
                assert found[key] == value, (key, found, expected)
        if expected["event"] in ("Q", "G", "M", "F", "I", "D", "A", "X", "B"):
            assert "comm" in expected or expected["event"] == "A"
            assert (
                expected.get("bytes", 0) > 0
                or found.get("bytes", 0) < 512
                or expected["event"] == "X"
            )


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_event_is_what_blkparse_printed(tmp_path: Path, name: str) -> None:
    printed, recorded = low_level(tmp_path, text(name)), low_level(tmp_path, *binary(name))
    assert len(printed) == RECORDINGS[name]
    assert_printed(printed, recorded)


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_field_of_the_text_is_read(tmp_path: Path, name: str) -> None:
    """Each field equals the one that the test splits off at white space."""
    whole = gzip.decompress(Path(text(name)).read_bytes()).decode()
    lines = [line for line in whole.splitlines() if re.match(r" *\d+,\d+ ", line)]
    rows = low_level(tmp_path, text(name))
    assert len(lines) == len(rows) == RECORDINGS[name]
    assert f"Events (bt): {RECORDINGS[name]} entries" in whole
    for line, row in zip(lines, rows, strict=True):
        device, cpu, sequence, time, pid, action, rwbs, *rest = line.split()
        assert [row["cpu"], row["sequence"], row["tid"]] == [int(cpu), int(sequence), int(pid)]
        assert [row["dev"], row["event"], row["rwbs"]] == [device, action, rwbs]
        assert row["ts_ns"] == int(time.replace(".", ""))
        if "+" in rest:
            assert [row["sector"], row["bytes"]] == [int(rest[0]), int(rest[2]) * 512]


def test_writes_are_bios(tmp_path: Path) -> None:
    """The statistics of blkparse have 460 queued writes, including one empty flush."""
    result = {}
    for kind, inputs in (("binary", binary("small4")), ("text", [text("small4")])):
        out = tmp_path / kind
        _core.convert(inputs, f"{out}/")
        result[kind] = tables(out)
        bios, meta = result[kind]["bio"], {row["key"]: row["value"] for row in result[kind]["meta"]}
        assert len(bios) == 460
        assert [bio["rwbs"] for bio in bios if bio["direction"] == "flush"] == ["FWS"]
        assert sum(bio["bytes"] for bio in bios) == 1836 * 1024
        assert all(bio["dur_ns"] > 0 and bio["dev"] == "254,16" for bio in bios)
        assert not result[kind]["loss"]
        assert meta["source"] == {"binary": "blktrace", "text": "blkparse"}[kind]
        assert meta["clock"] == {"binary": "monotonic", "text": "relative"}[kind]
    times = {
        kind: [(bio["dur_ns"], bio["sector"], bio["tid"]) for bio in output["bio"]]
        for kind, output in result.items()
    }
    assert sorted(times["binary"]) == sorted(times["text"])
    meta = {row["key"]: row["value"] for row in result["binary"]["meta"]}
    # The time of the first event is `Trace started at Fri Nov 20 17:49:57 2026` in the text.
    first = int(meta["first_ts_ns"]) + int(meta["realtime_offset_ns"])
    assert first // 10**9 == 1_795_196_997


# All files of a recording are one input.


def test_one_file_selects_the_whole_recording(tmp_path: Path) -> None:
    both = low_level(tmp_path, *binary("rename"))
    first, second = binary("rename")
    assert low_level(tmp_path, first) == low_level(tmp_path, second) == both
    assert low_level(tmp_path, second, first) == both
    assert low_level(tmp_path, first, first) == both


def test_empty_and_compressed_files_belong_to_the_recording(tmp_path: Path) -> None:
    expected = low_level(tmp_path, *binary("rename"))
    first, second = (Path(file).read_bytes() for file in binary("rename"))
    (tmp_path / "x.blktrace.0").write_bytes(b"")
    (tmp_path / "x.blktrace.1.gz").write_bytes(gzip.compress(first))
    (tmp_path / "x.blktrace.2").write_bytes(second)
    (tmp_path / "x.blktrace.3").write_bytes(b"")
    inputs = sorted(str(file) for file in tmp_path.glob("x.*"))
    assert low_level(tmp_path, *inputs) == expected
    for path in inputs:
        assert low_level(tmp_path, path) == expected


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    for cpu, file in zip((2, 4), binary("rename"), strict=True):
        shutil.copy(file, tmp_path / f"x.blktrace.{cpu}")
    summary = _core.convert([str(tmp_path / "x.blktrace.4")], str(tmp_path / "out.csv"))
    assert [line.split(": ", 1)[1] for line in summary["unparsed"]] == [
        "x.blktrace.0 to x.blktrace.1 (this file is missing, although files of higher CPUs exist: was it not copied?)",
        "x.blktrace.3 (this file is missing, although files of higher CPUs exist: was it not copied?)",
    ]


def test_a_file_with_another_name_is_standalone(tmp_path: Path) -> None:
    """`blktrace -o -` and `blkparse -d` write all CPUs into one file. No other files are read with it."""
    for file in binary("rename"):
        shutil.copy(file, tmp_path / Path(file).name)
    dump = tmp_path / "dump"
    dump.write_bytes(b"".join(Path(file).read_bytes() for file in binary("rename")))
    rows = low_level(tmp_path, str(dump))
    assert in_order(rows) == in_order(low_level(tmp_path, *binary("rename")))
    out = tmp_path / "out"
    _core.convert([str(dump)], f"{out}/")
    _core.convert(binary("rename"), f"{tmp_path}/both/")
    found, expected = tables(out), tables(tmp_path / "both")
    assert (found["bio"], found["loss"]) == (expected["bio"], expected["loss"])


@pytest.mark.skipif(not BLKPARSE, reason="blkparse is not installed: apt-get install blktrace")
def test_a_dump_of_blkparse_is_the_recording(tmp_path: Path) -> None:
    for file in binary("rename"):
        shutil.copy(file, tmp_path)
    subprocess.run([BLKPARSE, "-q", "-O", "-i", "rename", "-d", "dump"], cwd=tmp_path, check=True)
    found, expected = (
        low_level(tmp_path, str(tmp_path / "dump")),
        low_level(tmp_path, *binary("rename")),
    )
    # blkparse writes notes where it reads them, and times relative to the first event.
    first_ns = min(row["ts_ns"] for row in expected if "sequence" in row)
    found = [row for row in found if "sequence" in row]
    expected = [row | {"ts_ns": row["ts_ns"] - first_ns} for row in expected if "sequence" in row]
    for row in found + expected:
        row.pop("comm", None)
    assert in_order(found) == in_order(expected)


# Generated recordings.


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), cpus=st.integers(1, 12))
def test_generated_recordings_are_read(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cpus: int
) -> None:
    """Every version and byte order gives what the second reader reads."""
    folder = tmp_path_factory.mktemp("generated")
    world = blktrace.world(random.Random(seed), cpus=cpus, odd=True)
    expected = in_order(blktrace.rows(world.files()))
    for version, big_endian in ((7, False), (7, True), (8, False), (8, True)):
        files = world.files(version, big_endian)
        assert in_order(blktrace.rows(files)) == expected
        paths = blktrace.write(folder, files, f"v{version}{big_endian}")
        paths = [path for path in paths if Path(path).stat().st_size]
        assert in_order([numbers(row) for row in low_level(folder, paths[0])]) == expected


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_version_8_has_more_actions(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("generated")
    world = blktrace.world(random.Random(seed), odd=True, zeroes=True)
    paths = blktrace.write(folder, world.files(8))
    found = [numbers(row) for row in low_level(folder, *paths)]
    assert in_order(found) == in_order(blktrace.rows(world.files(8)))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), odd=st.booleans())
def test_the_low_level_log_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, seed: int, odd: bool
) -> None:
    """Read again, it has the same kinds of events and gives the same log."""
    folder = tmp_path_factory.mktemp("again")
    world = blktrace.world(random.Random(seed), odd=odd, zeroes=odd)
    paths = blktrace.write(folder, world.files(8))
    first, second = folder / "a.events.jsonl", folder / "b.events.jsonl"
    before = _core.convert([paths[0]], str(first))
    after = _core.convert([str(first)], str(second))
    assert before["events_by_kind"] == after["events_by_kind"]
    written = first.read_text().replace('"source":"blktrace"', '"source":"events-jsonl"')
    assert written == second.read_text()
    used = [r for records in world.cpus for r in records if blktrace.is_used(r)]
    counts = Counter(blktrace.ACTIONS[r.number] for r in used)
    kinds = {
        "Q": "block_submit",
        "I": "block_insert",
        "D": "block_issue",
        "C": "block_complete",
        "A": "block_remap",
    }
    for action, kind in kinds.items():
        assert before["events_by_kind"][kind] == counts[action]


@pytest.mark.skipif(not BLKPARSE, reason="blkparse is not installed: apt-get install blktrace")
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), cpus=st.integers(1, 4), big_endian=st.booleans())
def test_generated_recordings_are_what_blkparse_prints(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cpus: int, big_endian: bool
) -> None:
    folder = tmp_path_factory.mktemp("printed")
    world = blktrace.world(random.Random(seed), cpus=cpus)
    # blkparse prints no empty message.
    world = World(
        [
            [r for r in records if r.data or not r.category & blktrace.NOTIFY]
            for records in world.cpus
        ]
    )
    paths = blktrace.write(folder, world.files(7, big_endian))
    for options in ([], ["-t"], ["-q"], ["-s", "-v"]):
        done = subprocess.run(
            [BLKPARSE, *options, "-i", "x"], cwd=folder, capture_output=True, check=True
        )
        (folder / "x.txt").write_bytes(done.stdout)
        printed = low_level(folder, str(folder / "x.txt"))
        for row in printed:
            assert "-t" in options or "elapsed" not in row
            row.pop("elapsed", None)
        assert_printed(printed, low_level(folder, *paths))
        assert (
            _core.convert([str(folder / "x.txt")], str(folder / "y.events.jsonl"))["unparsed"] == []
        )


def test_a_thread_has_the_name_of_that_time(tmp_path: Path) -> None:
    """Thread ids are reused, and the idle threads of all CPUs have the same id."""

    def queued(time: int, cpu: int, pid: int, sequence: int) -> Record:
        write = blktrace.QUEUE | blktrace.WRITE
        return Record(time, cpu, 1, write, sequence=sequence, bytes=512, pid=pid)

    first = [
        blktrace.process(10, 0, 7, b"old"),
        queued(11, 0, 7, 1),
        blktrace.process(12, 0, 0, b"swapper/0"),
        queued(30, 0, 7, 2),
        queued(31, 0, 0, 3),
    ]
    second = [
        queued(9, 1, 8, 1),
        queued(12, 1, 7, 2),
        blktrace.process(20, 1, 7, b"new"),
        blktrace.process(21, 1, 0, b"swapper/1"),
        queued(32, 1, 0, 3),
    ]
    paths = blktrace.write(tmp_path, World([first, second]).files())
    rows = [row for row in low_level(tmp_path, *paths) if row["event"] == "Q"]
    assert [(row["ts_ns"], row.get("comm")) for row in rows] == [
        (9, None),
        (11, "old"),
        (12, "old"),
        (30, "new"),
        (31, "swapper/0"),
        (32, "swapper/1"),
    ]


def test_an_event_has_the_latest_name_of_its_thread(tmp_path: Path) -> None:
    """An event has the latest name before it by the times of the notes, or the first one read if all are later."""
    rng = random.Random(5)
    write = blktrace.QUEUE | blktrace.WRITE
    records, names = [], []
    for time in range(100, 700):
        if rng.random() < 0.5:
            tid, at = rng.choice((7, 8)), rng.randrange(130, 800)
            names.append((tid, at, f"n{len(names)}"))
            records.append(blktrace.process(at, 0, tid, names[-1][2].encode()))
        records.append(Record(time, 0, 1, write, bytes=512, pid=rng.choice((7, 8))))
    paths = blktrace.write(tmp_path, World([records]).files())
    rows = [row for row in low_level(tmp_path, *paths) if row["event"] == "Q"]
    assert len(rows) == 600

    def name_at(tid: int, ts: int) -> str:
        notes = [(at, comm) for thread, at, comm in names if thread == tid]
        # The last one read applies among notes with the same time.
        earlier = [name for name in reversed(notes) if name[0] <= ts]
        return max(earlier, key=lambda name: name[0])[1] if earlier else notes[0][1]

    assert [row["comm"] for row in rows] == [name_at(row["tid"], row["ts_ns"]) for row in rows]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_splits_and_merges_conserve_bytes(tmp_path: Path, parts: int) -> None:
    """Merged bios complete together and split bios in parts. All bytes are counted once."""
    rng = random.Random(parts)
    queue, write = blktrace.QUEUE | blktrace.WRITE, blktrace.COMPLETE | blktrace.WRITE
    records, time, total, sector, queued = [], 100, 0, 0, 0
    for _ in range(200):
        time += 10
        sizes = [8 * rng.randrange(1, 9) for _ in range(rng.randrange(1, 4))]
        at = sector
        for number, sectors in enumerate(sizes):
            action = "Q" if number == 0 else rng.choice("Q")
            fields = {"sector": at, "bytes": 512 * sectors, "pid": 9}
            records.append(Record(time, 0, blktrace.NUMBERS[action], queue, **fields))
            if number:
                records.append(Record(time + 1, 0, blktrace.NUMBERS["M"], queue, **fields))
            at += sectors
            queued += 1
        length = at - sector
        total += 512 * length
        cuts = sorted(rng.sample(range(1, length), min(parts - 1, length - 1)))
        for begin, end in zip([0, *cuts], [*cuts, length], strict=True):
            time += 10
            fields = {"sector": sector + begin, "bytes": 512 * (end - begin)}
            records.append(Record(time, 0, blktrace.NUMBERS["C"], write, **fields))
        sector = at + rng.choice([0, 8])
    records = [replace(record, sequence=n + 1) for n, record in enumerate(records)]
    paths = blktrace.write(tmp_path, World([records]).files())
    _core.convert(paths, f"{tmp_path}/out/")
    found = tables(tmp_path / "out")
    assert len(found["bio"]) == queued
    assert sum(bio["bytes"] for bio in found["bio"]) == total
    assert all(bio["incomplete"] is None for bio in found["bio"])
    assert not found["loss"]


# Bad input.


def test_gaps_in_sequence_numbers_are_lost_events(tmp_path: Path) -> None:
    records = blktrace.world(random.Random(5), cpus=1).cpus[0]
    events = [r for r in records if not r.category & blktrace.NOTIFY]
    notes = [r for r in records if r.category & blktrace.NOTIFY]
    kept = notes + events[2:10] + events[13:]
    paths = blktrace.write(tmp_path, World([kept]).files())
    summary = _core.convert(paths, str(tmp_path / "out.events.jsonl"))
    assert losses(summary) == {"lost_by_tracer": 5, "only_cpu": 1}
    lost = [json.loads(line) for line in (tmp_path / "out.events.jsonl").read_text().splitlines()]
    assert [row["count"] for row in lost if row["event"] == "lost_events"] == [2, 3]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_one_fault_costs_one_record(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("bad")
    data, kept, place = blktrace.damaged(random.Random(seed))
    (path,) = blktrace.write(folder, [data])
    rows = low_level(folder, path)
    events = [row for row in rows if row["event"] not in ("unparsed_line", "lost_events")]
    expected = [blktrace.row(record, []) for record in kept]
    assert in_order([numbers(row) for row in events]) == in_order(expected)
    (unparsed,) = [row for row in rows if row["event"] == "unparsed_line"]
    assert place in unparsed["text"]
    assert "x.blktrace.0" in unparsed["text"]


@pytest.mark.parametrize("action", ["Q", "G"])
def test_a_record_without_a_process_is_unparsed_in_every_output(
    action: str, tmp_path: Path
) -> None:
    """Records that no report uses are checked as strictly as the others."""
    records = blktrace.world(random.Random(5), cpus=1).cpus[0]
    at = next(n for n, r in enumerate(records) if blktrace.ACTIONS.get(r.number) == action)
    records[at] = replace(records[at], pid=2**32 - 1)
    paths = blktrace.write(tmp_path, World([records]).files())
    for out in ("out.events.jsonl", "out.jsonl"):
        assert losses(_core.convert(paths, str(tmp_path / out)))["unparsed_line"] == 1


def test_an_invalid_sector_is_no_write_in_the_low_level_log_either(tmp_path: Path) -> None:
    records = blktrace.world(random.Random(5), cpus=1).cpus[0]
    at = next(n for n, r in enumerate(records) if blktrace.is_used(r) and r.bytes)
    records[at] = replace(records[at], sector=2**64 - 1)
    paths = blktrace.write(tmp_path, World([records]).files())
    first, second = tmp_path / "a.events.jsonl", tmp_path / "b.events.jsonl"
    before = _core.convert(paths, str(first))["events_by_kind"]
    assert before == _core.convert([str(first)], str(second))["events_by_kind"]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_a_file_cut_anywhere_gives_its_whole_records(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    """All whole records are read, and the remaining bytes are reported."""
    folder = tmp_path_factory.mktemp("cut")
    records = blktrace.world(random.Random(seed), cpus=1).cpus[0]
    packed = [record.packed() for record in records]
    cut = data.draw(st.integers(49, sum(map(len, packed))))
    whole, used = 0, 0
    while whole < len(packed) and used + len(packed[whole]) <= cut:
        used += len(packed[whole])
        whole += 1
    (path,) = blktrace.write(folder, [b"".join(packed)[:cut]])
    if not whole:
        return
    rows = low_level(folder, path)
    unparsed = [row["text"] for row in rows if row["event"] == "unparsed_line"]
    assert len(rows) - len(unparsed) == whole
    assert unparsed == (
        [] if used == cut else [f"{cut - used} bytes from byte {used} of x.blktrace.0"]
    )


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    record = Record(1, 0, 1, blktrace.QUEUE | blktrace.WRITE, sequence=1, bytes=512)
    paths = blktrace.write(tmp_path, [record.packed(), record.packed(9)])
    with pytest.raises(
        _core.CoreError, match=r"x\.blktrace\.1: its records are of version 9"
    ) as failed:
        low_level(tmp_path, paths[0])
    assert "7 and 8" in str(failed.value)


def test_another_format_is_not_read_as_blktrace(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1 2 wl fsync\n")
    with pytest.raises(_core.CoreError, match="does not begin with a record"):
        low_level(tmp_path, str(tmp_path / "x"), source="blktrace")


GOOD = b"254,16   1        1     0.000000000  2967  Q  WS 274736 + 8 [wl]\n"


@pytest.mark.parametrize(
    "line",
    [
        b"254,16   1        1     0.000000000  2967  Q  WS 274736 + 8\n",
        b"254,16   1        1     0.000000000  2967  Q  WS 274736 + 8 [wl] x\n",
        b"254,16   1        1     0.00000000  2967  Q  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  2967  Y  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  2967  C  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  2967  U   N [wl]\n",
        b"254,16   1        1     0.000000000  2967  A  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  2967  X  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  99999999999  Q  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     99999999999.000000000  2967  Q  WS 274736 + 8 [wl]\n",
        b"254,16   1        1     0.000000000  2967  Q  WS 99999999999999999999 + 8 [wl]\n",
        b"Bad pc action 8\n",
        b"\xff\xfe\n",
    ],
)
def test_a_line_that_blkparse_does_not_print_is_unparsed(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "x.txt").write_bytes(GOOD + line + GOOD)
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.csv"))
    assert summary["events_by_kind"]["block_submit"] == 2
    assert losses(summary)["unparsed_line"] == 1
    assert re.match(r".*x\.txt:2: ", summary["unparsed"][0])


def test_records_that_blkparse_skipped_are_lost(tmp_path: Path) -> None:
    skips = b"Skips: 2 forward (1,234 -   0.1%)\n"
    (tmp_path / "x.txt").write_bytes(GOOD + b"\nEvents (sda): 1 entries\n" + skips)
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.csv"))
    assert losses(summary)["lost_by_tracer"] == 1234
    assert summary["unparsed"] == []


def test_the_command_converts_binary_and_text(tmp_path: Path) -> None:
    out = tmp_path / "out.events.jsonl"
    done = run("convert", *binary("small4"), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "1,912 events" in done.stderr
    data = b"".join(Path(file).read_bytes() for file in binary("small4"))
    done = run("convert", "-", "-o", str(out), stdin=data)
    assert "1,912 events" in done.stderr, done.stderr
    assert run("convert", text("small4"), "--from", "blkparse", "-o", str(out)).returncode == 0
    done = run("convert", binary("small4")[0], "--from", "blkparse", "-o", str(out))
    assert done.returncode == 3


@pytest.mark.parametrize("names", [("a", "b"), ("x/small4.blktrace.0", "y/small4.blktrace.1")])
def test_renamed_files_of_cpus_are_one_recording(names: tuple[str, str], tmp_path: Path) -> None:
    """Records contain their CPU. Threads may have moved from one CPU to another."""
    paths = []
    for cpu, name in enumerate(names):
        paths.append(tmp_path / name)
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_bytes((DATA / f"small4.blktrace.{cpu}").read_bytes())
    _core.convert([str(DATA / "small4.blktrace.0")], f"{tmp_path}/whole/")
    for order in (paths, paths[::-1]):
        _core.convert([str(path) for path in order], f"{tmp_path}/parts/")
        whole, parts = tables(tmp_path / "whole"), tables(tmp_path / "parts")
        keys = ("ts_ns", "tid", "sector", "bytes", "dur_ns")
        assert [[row[key] for key in keys] for row in parts["bio"]] == [
            [row[key] for key in keys] for row in whole["bio"]
        ]


def test_a_copy_under_the_number_of_another_cpu_is_refused(tmp_path: Path) -> None:
    for cpu in (0, 1):
        (tmp_path / f"x.blktrace.{cpu}").write_bytes((DATA / "small4.blktrace.0").read_bytes())
    message = fails(3, "convert", tmp_path / "x.blktrace.0", "-o", tmp_path / "x.csv")
    assert "x.blktrace.1 is the same log as" in message
    (tmp_path / "x.blktrace.1").write_bytes(b"hello, world\n")
    message = fails(3, "convert", tmp_path / "x.blktrace.0", "-o", tmp_path / "x.csv")
    assert "x.blktrace.1: it is not a file of blktrace" in message
    assert f"to the recording of {tmp_path}/x.blktrace.0, so it is read together with it" in message


# Files and lines that are missing.


@pytest.mark.parametrize("name", ["small1", "small4", "uring"])
@pytest.mark.parametrize("cpu", [0, 1])
def test_a_missing_file_of_a_cpu_is_noticed(name: str, cpu: int, tmp_path: Path) -> None:
    """Files of other CPUs name threads of this one, or have the time of the recording."""
    path = tmp_path / f"{name}.blktrace.{cpu}"
    shutil.copy(DATA / path.name, path)
    summary = _core.convert([str(path)], str(tmp_path / "out.events.jsonl"))
    other = {0: f"{name}.blktrace.1 or of a higher CPU", 1: f"{name}.blktrace.0"}[cpu]
    (line,) = summary["unparsed"]
    assert line.split(": ", 1)[1].startswith(f"{other} (this file is missing")
    assert losses(summary) == {"unparsed_line": 1}
    # Next to the empty file of CPU 7, those of 1 to 6 are missing, or those of 0 and of 2 to 6.
    (tmp_path / f"{name}.blktrace.7").write_bytes(b"")
    summary = _core.convert([str(path)], str(tmp_path / "out.events.jsonl"))
    assert losses(summary) == {"unparsed_line": 1 + cpu}


def test_a_recording_of_one_cpu_says_so(tmp_path: Path) -> None:
    """Nothing in this file shows that there was another CPU, but there was."""
    shutil.copy(DATA / "rename.blktrace.0", tmp_path)
    path = str(tmp_path / "rename.blktrace.0")
    assert losses(_core.convert([path], f"{tmp_path}/out/")) == {"only_cpu": 1}
    assert "only_cpu" in run("convert", path, "-o", f"{tmp_path}/again/").stderr
    # With the file of another CPU, even an empty one, it is whole; so is a file of all CPUs.
    (tmp_path / "rename.blktrace.1").write_bytes(b"")
    assert losses(_core.convert([path], f"{tmp_path}/out/")) == {}
    shutil.copy(DATA / "rename.blktrace.0", tmp_path / "all")
    assert losses(_core.convert([str(tmp_path / "all")], f"{tmp_path}/out/")) == {}


BLKPARSE_LINES = [
    f"254,16   {n % 2} {n // 2 + 1:8} {n / 1000:13.9f}   262  {action}  WS {274984 + 8 * (n // 4)} + 8 [{name}]"
    for n, (action, name) in enumerate([("Q", "wl"), ("G", "wl"), ("D", "wl"), ("C", "0")] * 10)
]


@pytest.mark.parametrize(
    ("without", "lost"),
    [
        ([], {}),
        ([9], {"lost_by_tracer": 1}),
        # Lost on both CPUs, on one for some time, and before the first and after the last line, which nothing shows.
        ([8, 9, 10, 11, 20, 22], {"lost_by_tracer": 6}),
        ([0, 1, 2, 3, 36, 37, 38, 39], {}),
        # A text of two kinds of action.
        ([n for n in range(40) if n % 4 in (1, 2)], {}),
    ],
)
def test_gaps_in_a_text_are_lost_events(
    without: list[int], lost: dict[str, int], tmp_path: Path
) -> None:
    lines = [line for n, line in enumerate(BLKPARSE_LINES) if n not in without]
    (tmp_path / "x.txt").write_text("\n".join(lines) + "\n")
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.events.jsonl"))
    assert losses(summary) == lost
    # The events that blkparse itself has skipped are the same ones.
    if lost:
        skips = "Skips: 1 forward (6 -   0.1%)\n"
        (tmp_path / "x.txt").write_text("\n".join(lines) + f"\n{skips}")
        summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.events.jsonl"))
        assert losses(summary) == {"lost_by_tracer": 6}


def test_lines_out_of_order_and_a_second_recording_are_no_gaps(tmp_path: Path) -> None:
    lines = [*BLKPARSE_LINES]
    lines[8], lines[12] = lines[12], lines[8]
    (tmp_path / "x.txt").write_text("\n".join(lines + BLKPARSE_LINES) + "\n")
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.events.jsonl"))
    assert losses(summary) == {}
    # A damaged number is not the number of so many events.
    damaged = BLKPARSE_LINES[9].replace(f"{5:8}", f"{5_000_005:8}", 1)
    assert damaged != BLKPARSE_LINES[9]
    (tmp_path / "x.txt").write_text(
        "\n".join([*BLKPARSE_LINES[:9], damaged, *BLKPARSE_LINES[10:]]) + "\n"
    )
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.events.jsonl"))
    assert losses(summary).get("lost_by_tracer", 0) <= 1


def test_a_gap_between_chunks_is_counted_once(tmp_path: Path) -> None:
    line = "254,16   0 {n:8} {t:13.9f}   262  Q  WS {sector} + 8 [wl]\n"
    text = "".join(line.format(n=n, t=n / 1000, sector=8 * n) for n in range(1, 60_001) if n % 997)
    assert len(text) > 3 << 20
    (tmp_path / "x.txt").write_text(text)
    summary = _core.convert([str(tmp_path / "x.txt")], str(tmp_path / "out.events.jsonl"))
    assert losses(summary) == {"lost_by_tracer": 60_000 // 997}


def test_a_remap_has_a_number_of_the_traced_disk(tmp_path: Path) -> None:
    """blkparse prints the remap of a bio of a partition under the partition, as the kernel does not change the bio's device since 5.12."""
    lines = []
    for number in range(1, 400, 4):
        at = number / 1e6
        lines += [
            f"259,1    0 {number:8} {at:14.9f}   697  A  WS {2048 + 8 * number} + 8 <- (259,1) {8 * number}",
            f"259,0    0 {number + 1:8} {at + 1e-7:14.9f}   697  Q  WS {2048 + 8 * number} + 8 [wl]",
            f"259,0    0 {number + 2:8} {at + 2e-7:14.9f}   697  D  WS {2048 + 8 * number} + 8 [wl]",
            f"259,0    0 {number + 3:8} {at + 3e-7:14.9f}     0  C  WS {2048 + 8 * number} + 8 [0]",
        ]
    log = tmp_path / "x.txt"
    log.write_text("\n".join(lines) + "\n")
    assert "lost_by_tracer" not in losses(_core.convert([str(log)], str(tmp_path / "a.csv")))
    # A missing remap is noticed, and so is another missing event.
    del lines[200], lines[101]
    log.write_text("\n".join(lines) + "\n")
    assert losses(_core.convert([str(log)], str(tmp_path / "b.csv")))["lost_by_tracer"] == 2
