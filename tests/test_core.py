"""The core against the reference, on recordings, generated logs and damaged logs."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core

from tests import coretools, invariants, once
from tests.coretools import RECORDINGS, SMALL, assert_same, convert, core, recording
from tests.reference import badinputs, loggen, repeats, thesis

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_tables_of_the_reference(name: str, tmp_path: Path) -> None:
    assert_same(thesis.read(recording(name), name=name), core(tmp_path, recording(name)))


@pytest.mark.parametrize("name", SMALL)
def test_a_recording_gives_its_golden_rows(name: str, tmp_path: Path) -> None:
    # The reference wrote the golden file (python -m tests.golden).
    golden = list(csv.DictReader((GOLDEN / f"{name}.csv").read_text().splitlines()))
    out = convert(tmp_path, recording(name), "out.csv")
    rows = sorted(csv.DictReader(out.read_text().splitlines()), key=lambda row: int(row["sync_id"]))
    assert rows == golden


@pytest.mark.parametrize("seed", range(200))
def test_a_generated_log_gives_its_truth(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    params = loggen.random_params(rng)
    try:
        generated = loggen.generate(params, rng)
    except ValueError:
        pytest.skip("these parameters contradict each other")
    options = {"time_unit": params.time_unit, "pid_is": params.pid_is}
    reference = thesis.read(generated.log, **options)
    try:
        tables = core(tmp_path, generated.log, source="bpftrace", **options)
    except _core.CoreError as error:
        assert error.args[2] == "input"
        assert not reference.sync
        assert not reference.call
        return
    assert_same(reference, tables)
    # An event whose id may be damaged opens its request later, so its number may be higher than in the truth.
    columns = sorted(generated.truth.sync[0].keys() - {"sync_id"}) if tables["sync"] else []
    sides = (tables["sync"], generated.truth.sync)
    found, truth = (sorted(repr([row[key] for key in columns]) for row in rows) for rows in sides)
    assert found == truth
    known = sum(row["bytes"] or 0 for row in tables["bio"])
    assert known == sum(row["bytes"] or 0 for row in generated.truth.bio)


def check_invariants(
    tables: dict[str, coretools.Rows], folio_bytes: int, threads: bool = True
) -> None:
    """Checks what is true for any input, however broken."""
    syncs, bios = tables["sync"], tables["bio"]
    known = sum(bio["bytes"] or 0 for bio in bios)
    # The size of a bio that the log may begin within is null, and that of one which a torn line may have been a folio of.
    may_be_torn = any(bio["bytes"] is None and bio["confidence"] == "inferred" for bio in bios)
    starts = {sync["sync_id"] for sync in syncs if sync["incomplete"] == "start"}
    may_begin_within = any(bio["bytes"] is None and bio["sync_id"] in starts for bio in bios)
    assert known <= folio_bytes if may_begin_within or may_be_torn else known == folio_bytes
    invariants.check(tables)
    assert len({bio["bio_id"] for bio in bios}) == len(bios)
    if threads:
        by_thread: dict[int, list[tuple[int, int]]] = {}
        for sync in syncs:
            if sync["dur_ns"] is not None:
                end = sync["ts_ns"] + sync["dur_ns"]
                start = sync["ts_ns"] if sync["start_ns"] is None else sync["start_ns"]
                by_thread.setdefault(sync["tid"], []).append((start, end))
        for spans in by_thread.values():
            spans.sort()
            for (_, end), (start, _) in itertools.pairwise(spans):
                assert end <= start


def folio_bytes(log: bytes) -> int:
    """The sum of all folio events, each used once, without pairing."""
    events, _ = repeats.without(thesis.parse(log, thesis.Losses("log"))[0], names_threads=True)
    return sum(event.fields["len"] for event in events if event.kind == "folio")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_invariants_hold_on_mangled_recordings(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = recording(data.draw(st.sampled_from(SMALL))).splitlines(keepends=True)
    lines = lines[: data.draw(st.integers(20, 400))]
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "double", "move", "cut", "swap"])):
            case "drop":
                lines[at] = b""
            case "double":
                lines[at] *= 2
            case "move":
                lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines[at])
                lines[at] = b""
            case "cut":
                lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))] + b"\n"
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
    log = b"".join(lines)
    try:
        tables = core(tmp_path_factory.mktemp("log"), log, source="bpftrace")
    except _core.CoreError as error:
        assert error.args[2] == "input"
        return
    check_invariants(tables, folio_bytes(log))


@pytest.mark.parametrize("name", RECORDINGS)
def test_invariants_hold_on_recordings(name: str, tmp_path: Path) -> None:
    check_invariants(core(tmp_path, recording(name)), folio_bytes(recording(name)))


@pytest.mark.parametrize("name", sorted(badinputs.INPUTS))
def test_bad_input_is_an_error_or_a_counted_loss(name: str, tmp_path: Path) -> None:
    bad = badinputs.INPUTS[name]()
    out = tmp_path / "out"
    source = tmp_path / "bad.log"
    source.write_bytes(bad.data)
    for force in (None, "bpftrace"):
        try:
            summary = _core.convert([str(source)], f"{out}/", source=force)
        except _core.CoreError as error:
            message, hint, kind = error.args
            assert kind == "input"
            assert "bad.log" in message
            assert hint
            assert not list(out.glob("*")) if out.exists() else True
            assert bad.unreadable or bad.foreign or not (bad.sync or bad.call or bad.bio)
            continue
        assert not bad.unreadable
        assert force or not bad.foreign
        losses = {loss["reason"]: loss["count"] for loss in summary["losses"]}
        for reason, count in (bad.losses or {}).items():
            assert losses.get(reason, 0) == count, (reason, losses)
        rows = {
            path.stem.removeprefix("syncline_"): once.count_rows(path)
            for path in out.glob("*.parquet")
        }
        for table in ("sync", "bio", "call"):
            if (expected := getattr(bad, table)) is not None:
                assert rows[table] == expected, table
        if losses.get("unparsed_line"):
            assert summary["unparsed"][0].startswith(f"{source}:")


@pytest.mark.parametrize("name", SMALL)
def test_the_low_level_log_loses_nothing(name: str, tmp_path: Path) -> None:
    round_trip(recording(name), tmp_path, {})


@pytest.mark.parametrize("seed", range(0, 120, 2))
def test_the_low_level_log_loses_nothing_of_a_generated_log(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    params = loggen.random_params(rng)
    try:
        log = loggen.generate(params, rng).log
    except ValueError:
        pytest.skip("these parameters contradict each other")
    round_trip(log, tmp_path, {"time_unit": params.time_unit, "pid_is": params.pid_is})


def round_trip(log: bytes, folder: Path, options: dict[str, str]) -> None:
    """log -> events -> tables is log -> tables, and events -> events is the same file."""
    try:
        events = convert(folder, log, "out.events.jsonl", source="bpftrace", **options)
    except _core.CoreError:
        pytest.skip("no event in it")
    lines = [json.loads(line) for line in events.read_bytes().splitlines()]
    parsed, _ = thesis.parse(log, thesis.Losses("log"), options.get("time_unit", "ns"))
    # What a torn line may have said is no event.
    events_of = [line for line in lines if "ts_ns" in line and line["event"] != "torn_line"]
    assert len(events_of) == len([event for event in parsed if event.kind != "torn"])
    direct = core(folder, log, source="bpftrace", **options)
    options.pop("time_unit", None)
    again = convert(folder, events.read_bytes(), "again.events.jsonl", "events", **options)
    # Only the source differs: it is the format of the input.
    assert (
        again.read_bytes().replace(b'"source":"events-jsonl"', b'"source":"bpftrace"')
        == events.read_bytes()
    )
    from_events = core(folder, events.read_bytes(), name="events", **options)
    for table in ("sync", "bio", "call"):
        assert from_events[table] == direct[table]
    assert [(loss["reason"], loss["count"]) for loss in from_events["loss"]] == [
        (loss["reason"], loss["count"]) for loss in direct["loss"]
    ]


@pytest.mark.parametrize(
    "name", ["small4.log", "sqlite_rj_full.log", "unlinked.log", "rename-aborted.log"]
)
def test_csv_jsonl_and_parquet_hold_the_same_rows(name: str, tmp_path: Path) -> None:
    expected = sorted(core(tmp_path, recording(name))["sync"], key=lambda row: row["sync_id"])
    for ending in ("csv", "jsonl", "parquet"):
        out = convert(tmp_path, recording(name), f"rows.{ending}")
        with once.database() as db:
            cursor = db.execute(f"SELECT * FROM '{out}' ORDER BY sync_id")
            columns = [column[0] for column in cursor.description]
            rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        assert columns == list(expected[0])
        assert rows == expected


def test_conversions_are_deterministic(tmp_path: Path) -> None:
    for to in ("a.pftrace", "a.csv", "a.jsonl", "a.folded", "a.perf", "a.events.jsonl"):
        first = convert(tmp_path, recording("bg.log.gz"), to).read_bytes()
        assert convert(tmp_path, recording("bg.log.gz"), to).read_bytes() == first


def collapse(text: str) -> dict[str, int]:
    """Folds stacks as stackcollapse-perf does: a header that ends in `N event:`, frames innermost first, a blank line."""
    stacks: dict[str, int] = {}
    comm, period, frames = "", 0, []
    for line in io.StringIO(text):
        line = line.rstrip("\n")
        if not line:
            key = ";".join([comm, *reversed(frames)])
            stacks[key] = stacks.get(key, 0) + period
            frames = []
        elif line.startswith("\t"):
            _, frame = line.split(None, 1)
            frames.append(frame.rsplit(" (", 1)[0])
        else:
            head, _, tail = line.rstrip().removesuffix(":").rpartition(": ")
            period = int(tail.split()[0])
            comm = head.rsplit(" ", 2)[0]
    return stacks


@pytest.mark.parametrize("by", _core.BY)
@pytest.mark.parametrize("weight", _core.WEIGHTS)
@pytest.mark.parametrize("name", ["small4.log", "sqlite_rj_full.log", "uring.log"])
def test_samples_have_the_weights_of_the_reference(
    name: str, weight: str, by: str, tmp_path: Path
) -> None:
    column = None if weight == "count" else weight if weight == "bytes" else f"{weight}_ns"
    expected: dict[str, int] = {}
    for row in thesis.read(recording(name)).sync:
        value = 1 if column is None else row[column]
        if not value:  # stackcollapse-perf.pl takes 0 for 1
            continue
        parts = [part for part in row["path"].split("/") if part]
        frames = row["stack"] or "[no stack]" if by == "stack" else ";".join(["/", *parts])
        key = f"{row['comm']};{frames}"
        expected[key] = expected.get(key, 0) + value
    perf = convert(tmp_path, recording(name), "out.perf", weight=weight, by=by).read_text()
    assert collapse(perf) == expected
    folded = convert(tmp_path, recording(name), "out.folded", weight=weight, by=by).read_text()
    assert {
        line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()
    } == expected


def test_lines_later_than_the_reorder_window_are_counted(tmp_path: Path) -> None:
    # The window applies once per chunk of 1 MB. Filler lines keep the late line out of the first chunk.
    filler = b"# no event, but a part of the file\n" * 40_000
    log = (
        b"1000000000 7 wl fsync\n9000000000 7 wl fsync\n"
        + filler
        + b"20000000000 7 wl fsync\n"
        + filler
    )
    source = tmp_path / "late.log"
    source.write_bytes(log + b"3000000000 7 wl fsync\n")
    late = {}
    for seconds in (1, 100):
        out = f"{tmp_path}/out/"
        losses = _core.convert([str(source)], out, window_ns=seconds * 10**9)["losses"]
        late[seconds] = sum(loss["count"] for loss in losses if loss["reason"] == "late_event")
        assert len(coretools.tables(Path(out))["call"]) == 4
    assert late == {1: 1, 100: 0}


def test_a_loss_shows_the_line_of_its_event(tmp_path: Path) -> None:
    lines = [
        "90 1 a exit id 4 ret 0",  # never started
        "100 1 a start id 5 start 0 end 9 datasync 0 path /f",
        "110 1 a bio_add_folio id 5 bio 0x1 start 0 len 4096",  # never submitted
        "120 1 a bio_add_folio id 5 bio 0x2 start 0 len 4096",
        "130 1 a bio_submit id 5 bio 0x2",  # never completed
        "140 0 b bio_complete bio 0x3",
        "150 1 a exit id 5 ret 0",
        "160 1 a exit id 5 ret 0",
        "what is this",
        "170 1 a fsync_exit",
        "Lost 3 events",
        "180 2 b fsync",
        "190 2 b fsync",
        "200 2 b start id 6 start 0 end 9 datasync 0 path /f",  # never ends
        "210 2 b start id 6 start 0 end 9 datasync 0 path /f",
        "220 2 b bio_add_folio id 6 bio 0x9 start 0 len 4096",
        "230 2 b bio_submit id 6 bio 0x9",
        "250 3 c start id 7 start 0 end 9 datasync 0 path /g",
        "260 3 c bio_add_folio id 7 bio 0x8 start 0 len 4096",
        "270 3 c bio_submit id 7 bio 0x8",
        "280 3 c exit id 7 ret 0",
        "290 0 d bio_complete bio 0x8",
    ]
    result = core(tmp_path, ("\n".join(lines) + "\n").encode())
    first = {row["reason"]: row["example"] for row in result["loss"]}
    log = tmp_path / "in.log"
    assert first == {
        "start_missing": f"{log}:1: the first event of request id 4",
        "never_submitted": f"{log}:3: bio_add_folio id 5 bio 0x1",
        "never_completed": f"{log}:5: bio_submit id 5 bio 0x2",
        "unmatched_complete": f"{log}:6: bio_complete bio 0x3",
        "duplicate_end": f"{log}:8: exit id 5",
        "unparsed_line": f"{log}:9: what is this",
        "unmatched_exit": f"{log}:10: fsync exit",
        "lost_by_tracer": f"{log}:11: Lost 3 events",
        "unmatched_call": f"{log}:12: fsync",
        "end_missing": f"{log}:14: start id 6",
        "duplicate_start": f"{log}:15: start id 6",
        "completed_after_end": f"{log}:22: bio_complete bio 0x8",
    }


def test_a_late_event_shows_its_line_and_file(tmp_path: Path) -> None:
    (tmp_path / "1.log").write_text("100 1 a fsync\n")
    # The window applies after each chunk of input, here 1 MB.
    empty = 1 << 20
    (tmp_path / "2.log").write_text(
        "200 1 a fdatasync\n300 1 a fsync\n" + "\n" * empty + "50 2 b fsync\n"
    )
    files = [str(tmp_path / f"{i}.log") for i in (1, 2)]
    _core.convert(files, f"{tmp_path}/out/", window_ns=10)
    loss = {row["reason"]: row for row in coretools.tables(tmp_path / "out")["loss"]}
    assert loss["late_event"]["example"] == f"{tmp_path}/2.log:{empty + 3}: call_enter"


def test_a_torn_first_line_does_not_turn_threads_into_processes(tmp_path: Path) -> None:
    """The lines of a low-level log, not only the first one, show whether its ids are threads or processes."""
    head = '"comm":"a","source":"bpftrace"'
    lines = [
        f'{{"ts_ns":90,"ti*:7,{head},"event":"fsync"}}',
        f'{{"ts_ns":100,"tid":7,{head},"event":"bio_submit","id":4,"bio":"0x1"}}',
        f'{{"ts_ns":200,"tid":7,{head},"event":"exit","id":5,"ret":0}}',
    ]
    out = coretools.convert(tmp_path, "\n".join(lines).encode(), "out.jsonl", "in.events.jsonl")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    # Rows of one thread are in order of time. Requests of a process would overlap.
    assert [(row["ts_ns"], row["id"]) for row in rows] == [(100, 4), (200, 5)]


def test_a_call_in_two_logs_is_one_and_in_two_pieces_is_two(tmp_path: Path) -> None:
    (tmp_path / "all.log").write_text("100 1 a fsync\n900 1 a fsync_exit ret 0\n")
    piece = "101 1 a fsync\n    main+1\n901 1 a fsync_exit ret 0\n"
    (tmp_path / "piece.log").write_text(piece)
    (tmp_path / "own.log").write_text(f"# syncline-log 1\n{piece}# end 950\n")
    _core.convert([f"{tmp_path}/all.log", f"{tmp_path}/own.log"], f"{tmp_path}/two/")
    tables = coretools.tables(tmp_path / "two")
    assert [(call["ts_ns"], call["dur_ns"], call["stack"]) for call in tables["call"]] == [
        (101, 799, "main")
    ]
    assert {loss["reason"]: loss["count"] for loss in tables["loss"]} == {
        "duplicate": 2,
        "unmatched_call": 1,
    }
    # As pieces of one log, the second call begins inside the first, and the only open call gets both exits.
    _core.convert([f"{tmp_path}/all.log", f"{tmp_path}/piece.log"], f"{tmp_path}/one/")
    tables = coretools.tables(tmp_path / "one")
    assert len(tables["call"]) == 2
    assert {loss["reason"]: loss["count"] for loss in tables["loss"]} == {
        "unmatched_exit": 1,
        "call_only": 2,
        "end_missing": 1,
    }


def test_the_core_checks_the_limit_on_losses() -> None:
    assert _core.allows_loss("1%", 1, 99)
    assert not _core.allows_loss("1%", 1, 98)
    assert _core.allows_loss("1", 1, 0)
    for text in ("much", "-1", "101%"):
        with pytest.raises(_core.CoreError, match="neither a number of losses"):
            _core.check_max_loss(text)
    assert _core.SYNC_CALLS == ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"]
