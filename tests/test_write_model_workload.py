"""`syncline model predict --workload`: calls that nobody has made yet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline.errors import InputError
from syncline.render.write_model_figure import charts
from syncline.write_model.parameters import read
from syncline.write_model.predict import predict
from syncline.write_model.workload import EXAMPLE, planned
from syncline.write_model.writes import read_csv

from tests.test_commands import fails, ok, run
from tests.test_write_model_predict import HEAD, HOST, MACHINE

COMMITTING = replace(HOST, commit_ns=7_000_000, timestamp_granularity_ns=4_000_000.0)


def told(workload: str, *more: str) -> list[dict[str, str]]:
    text = ok("model", "predict", "--workload", workload, "--parameters", MACHINE, "--each", "--format", "csv", *more)  # fmt: skip
    return list(csv.DictReader(io.StringIO(text)))


def test_the_calls_of_a_workload() -> None:
    rows = told("write 4k x 5, fdatasync every 2; pause 1s; write 1.5 KiB * 2 to log dsync, fsync")
    calls = [(row["path"], row["kind"], row["offset_bytes"], row["size_bytes"]) for row in rows]
    page = ("file", "cached", *("{}", "4096"))
    writes = [(page[0], page[1], str(4096 * n), page[3]) for n in range(5)]
    sync = ("file", "sync", "0", "0")
    log = [("log", "synchronized", str(1536 * n), "1536") for n in range(2)]
    assert calls == [*writes[:2], sync, *writes[2:4], sync, writes[4], *log, ("log", "sync", "0", "0")]  # fmt: skip
    assert [row["is_datasync"] for row in rows if row["kind"] == "sync"] == ["1", "1", "0"]
    assert {row["measured_ns"] for row in rows} == {row["error"] for row in rows} == {""}
    # Each call begins when the one before has ended, and the pause is over.
    begin, pauses = 0, {7: 1_000_000_000}
    for number, row in enumerate(rows):
        begin += pauses.get(number, 0)
        # Times are rounded to ns, each by itself.
        assert abs(int(row["start_ns"]) - begin) <= number
        begin += int(row["predicted_ns"])


def test_a_sync_waits_for_what_is_dirty_and_the_device() -> None:
    """90 writes of 1 MiB at 2 GB/s and 1 us each, fewer than the background limit has room for; the device takes 100 MB/s."""
    *writes, sync = told("write 1m x 90, fsync")
    assert {int(row["predicted_ns"]) for row in writes} == {(1 << 20) // 2 + 1000}
    written = 90 << 20
    assert float(sync["predicted_ns"]) == pytest.approx(written / 100e6 * 1e9, rel=0.01)


@pytest.mark.parametrize("workload", [
    EXAMPLE, "write 1m x 400, pause 3ms every 7; pause 31s; write 4k x 50 random, fsync every 10",
    "write 64k x 100 direct sync; write 100 x 1000 library; sync", "write 4k x 300 to wal dsync overwrite, pause 2ms every 1",
])  # fmt: skip
def test_a_recording_of_what_is_predicted_is_predicted_so(workload: str) -> None:
    """If a program did it, and each call took what was predicted, the prediction from its recording is the same."""
    plan = predict(COMMITTING, planned(workload))
    table = [f"{HEAD},file_size_bytes,is_datasync"]
    for one in plan.predicted:
        write = one.write
        fields: list[Any] = [write.start_ns, write.duration_ns, write.kind, write.path]
        fields += [write.offset, write.size, write.file_size or 0, int(write.is_datasync)]
        table.append(",".join(map(str, fields)))
    measured = predict(COMMITTING, read_csv("x.csv", "\n".join(table)))
    assert len(measured.predicted) == len(plan.predicted)
    for one, other in zip(plan.predicted, measured.predicted, strict=True):
        # A pause is rounded to ns, and a limit may let a page more or less pass then.
        assert other.ns == pytest.approx(one.ns, rel=1e-3, abs=2000), one
        assert other.commits == pytest.approx(one.commits, abs=1e-3)
    assert not [note for note in measured.notes if "before an earlier call" in note]
    total = sum(row.error or 0 for row in measured.summaries)
    assert total == pytest.approx(0, abs=0.01)


def test_an_overwrite_waits_for_no_commit_and_an_append_for_one() -> None:
    for flags, commits in (("dsync overwrite", 0), ("dsync", 1), ("dsync random", 0)):
        found = predict(COMMITTING, planned(f"write 4k x 20 {flags}")).predicted
        assert {one.commits for one in found} == {commits}, flags


def test_random_places_are_in_the_file_and_the_same_each_time() -> None:
    rows = told("write 8k x 100 random direct")
    places = [int(row["offset_bytes"]) for row in rows]
    assert {place % 8192 for place in places} == {0}
    assert max(places) < 100 * 8192
    assert len({*places}) == 100
    assert places != sorted(places)
    assert rows == told("write 8k x 100 random direct")


def test_a_sync_of_its_own_phase_is_of_the_file_before_it(tmp_path: Path) -> None:
    for workload, paths in (
        ("write 1m x 3 to log; pause 5s; fsync", ["log"]),
        ("write 4k to a; write 4k to b; fsync; fsync of a;", ["b", "a"]),
        ("write 4k x 4 to a, fsync of b every 2", ["b", "b"]),
        ("write 4k to it's; write 4k to that's, fsync", ["that's"]),
        ("write 4k to 'a  b, c; d', fsync", ["a  b, c; d"]),
        ("write 4k to \"it's\", fdatasync of 'sync'", ["sync"]),
    ):
        assert [row["path"] for row in told(workload) if row["kind"] == "sync"] == paths, workload


def test_what_nobody_waited_for_is_said() -> None:
    said = run("model", "predict", "--workload", "write 4k x 250, fsync every 100", "--parameters", MACHINE).stdout  # fmt: skip
    assert f"note: {50 * 4096:,} bytes are dirty after the last call" in said
    said = run("model", "predict", "--workload", "write 100 x 5 library, fsync", "--parameters", MACHINE).stdout  # fmt: skip
    assert "the program must call fflush before" in said


def test_the_table_has_no_column_of_what_was_measured(tmp_path: Path) -> None:
    text = ok("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE)
    assert text.split("\n")[0].split() == ["scenario", "writes", "bytes", "predicted", "naive"]
    found = json.loads(
        ok("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, "--format", "json")
    )
    assert {row["measured_ns"] for row in found["scenarios"]} == {None}
    trace = tmp_path / "plan.pftrace"
    ok("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, "--trace", trace)
    assert trace.stat().st_size > 0


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("wrte 4k x 3", "'wrte 4k x 3' is not understood"),
        ("write 4k x 3, fsync every 0", "'fsync every 0' has a 0"),
        ("write 4k x 0", "'write 4k x 0' has a 0"),
        ("write 0 x 3", "a call of Linux writes 1 to 2,147,479,552 bytes, and not 0"),
        ("write 3g", "and not 3,221,225,472"),
        ("write 4k, write 8k", "'write 4k, write 8k' has two writes"),
        ("write 4k x 2000000", "2,000,000 calls, and at most 200,000"),
        ("write 1g x 2000", "2,000 GiB, and at most 100"),
        ("write 4k x 10, fsync every 20", "a step comes every 20 writes, and its phase has 10"),
        ("write 4k x " + "9" * 5000, "is not understood"),
        ("write 1" + "0" * 400 + "k", "is not understood"),
        ("write 4k x 10 to direct", "is not understood"),
        ("write 4k x 10 to 'a b, fsync", "is not understood"),
        ("write 4k x 10 to '', fsync", "is not understood"),
        ("write 4k x 3, pause 999999999min every 1", "pauses for 2,083,333 days, and at most 366"),
        ("fsync", "'fsync' has no write"),
        ("", "'' has no write"),
        ("write 4k library sync", "goes through the buffer of the C library, which has no sync writes"),
    ],
)  # fmt: skip
def test_what_is_no_workload_is_refused(workload: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(workload)
    assert message in caught.value.message
    assert caught.value.hint


def test_either_an_input_or_a_workload_is_given() -> None:
    assert "give either INPUT or --workload" in fails(
        2, "model", "predict", "--parameters", MACHINE
    )
    assert "give either INPUT or --workload" in fails(2, "model", "predict", "x.csv", "--workload", EXAMPLE, "--parameters", MACHINE)  # fmt: skip


def test_options_of_reading_are_refused() -> None:
    for option in (
        ("--from", "strace"),
        ("--marks", MACHINE),
        ("--comm", "db"),
        ("--where", "true"),
    ):
        done = run("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, *option)
        assert done.returncode == 2, option
        assert f"no log is read with --workload, so {option[0]} would have no effect" in done.stderr


def test_a_plan_has_a_picture_and_a_page(tmp_path: Path) -> None:
    picture, page = tmp_path / "plan.svg", tmp_path / "plan.html"
    workload = "write 1m x 300; write 4k x 20 to log dsync; write 64k x 50, fsync every 10"
    ok("model", "predict", "--workload", workload, "--parameters", MACHINE, "-o", picture, "--html", page)  # fmt: skip
    for text in (picture.read_text(), page.read_text()):
        for one in ("What a cached write costs", "What a synchronized write costs", "What a sync costs", "What is dirty"):  # fmt: skip
            assert f">{one}</text>" in text
        # Nothing was measured.
        assert ">measured<" not in text
    assert "assumed: one process writes to one device" in page.read_text()
    done = run("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, "-o", tmp_path / "plan.png")  # fmt: skip
    assert done.returncode == 2
    assert "the chart is an SVG" in done.stderr
    done = run("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, "--html", MACHINE)  # fmt: skip
    assert done.returncode == 2
    assert "it is an input of the same command" in done.stderr
    for outputs, message in (
        (("-o", picture, "--html", picture), "is written twice"),
        (
            ("--trace", tmp_path / "x.pftrace", "--html", tmp_path / "." / "x.pftrace"),
            "is written twice",
        ),
        (("--html", "-"), "the table is on standard output"),
        (("--html", ""), "the table is on standard output"),
    ):
        done = run("model", "predict", "--workload", EXAMPLE, "--parameters", MACHINE, *outputs)
        assert done.returncode == 2, outputs
        assert message in done.stderr, outputs


def test_the_line_of_what_is_dirty_is_broken_where_no_call_runs() -> None:
    outcome = predict(read(str(MACHINE)), planned("write 1m x 200; pause 5s; write 4k x 100"))
    (dirty,) = [one for one in charts(outcome, read(str(MACHINE))) if one.title == "What is dirty"]
    points = dirty.lines[0].points
    # 200 writes, the pause, 100 writes, and the start.
    assert [at for at, (_, value) in enumerate(points) if value is None] == [201]
    assert len(points) == 1 + 200 + 1 + 100
