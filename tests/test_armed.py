"""Armed recordings without a kernel: what is cut off, what an occasion is, and which captures stay. `tests/kernel/jobs/armed.sh` records one."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from syncline.record import ring_pages, salvage, tracefs
from syncline.record.armed import Arming
from syncline.record.captures import KEY, Captures
from syncline.record.errors import RecordError
from syncline.record.occasions import LogLines, Signals, wait
from syncline.record.slow_syncs import SlowSyncs
from syncline.recordings import LEFT

from tests import once
from tests.test_commands import run as command

DATA = Path(__file__).parent / "data"
RUN = DATA / "dynamic-events" / "run"
PAGE = 4096


def page(time_ns: int) -> bytes:
    """A page without events that begins at a time."""
    return struct.pack("=QQ", time_ns, 0).ljust(PAGE, b"\0")


class TestPages:
    """Pages that are older than what is kept."""

    @pytest.mark.parametrize(
        ("from_ns", "kept"),
        [(0, 4), (10, 4), (19, 4), (20, 3), (39, 2), (40, 1), (10**9, 1)],
    )
    def test_pages_before_a_time_go_and_the_one_that_holds_it_stays(
        self, tmp_path: Path, from_ns: int, kept: int
    ) -> None:
        file = tmp_path / "pages"
        times = [10, 20, 30, 40]
        file.write_bytes(b"".join(map(page, times)))
        ring_pages.remove_before(file, from_ns, PAGE)
        assert file.read_bytes() == b"".join(map(page, times[-kept:]))
        assert ring_pages.first_time(file) == times[-kept]

    @pytest.mark.parametrize("flags", [0, 1 << 30, 1 << 31, 3 << 30])
    def test_overwritten_events_are_no_longer_lost(self, tmp_path: Path, flags: int) -> None:
        file = tmp_path / "pages"
        first = struct.pack("=QQ", 10, 40 | flags).ljust(PAGE, b"x")
        later = struct.pack("=QQ", 20, 40 | 3 << 30).ljust(PAGE, b"x")
        file.write_bytes(first + later)
        ring_pages.clear_lost(file)
        assert file.read_bytes() == struct.pack("=QQ", 10, 40).ljust(PAGE, b"x") + later

    def test_an_empty_file_stays_empty(self, tmp_path: Path) -> None:
        file = tmp_path / "pages"
        file.touch()
        ring_pages.remove_before(file, 5, PAGE)
        assert (file.read_bytes(), ring_pages.first_time(file)) == (b"", 0)


def rows(run: Path, table: str, tmp_path: Path) -> list[dict[str, Any]]:
    out = tmp_path / f"{run.name}-tables"
    if not out.exists():
        done = command("convert", str(run), "-o", f"{out}/")
        assert done.returncode == 0, done.stderr
    return once.read_rows(next(out.rglob(f"*{table}.parquet")))


@pytest.fixture(params=[0.2, 0.5, 0.8])
def captured(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    """A recording of which a part is known only, and from when on."""
    whole = [row for row in rows(RUN, "sync", tmp_path) if row["incomplete"] is None]
    first, last = whole[0]["ts_ns"], whole[-1]["ts_ns"]
    known_from = int(first + request.param * (last - first))
    run = tmp_path / "captured"
    shutil.copytree(RUN, run)
    manifest = json.loads((run / "manifest.json").read_text())
    for entry in manifest["inputs"]:
        entry["known_from_ns"] = known_from
    (run / "manifest.json").write_text(json.dumps(manifest))
    return run, known_from


def test_what_begins_after_the_first_known_event_is_as_in_the_whole_recording(
    captured: tuple[Path, int], tmp_path: Path
) -> None:
    run, known_from = captured
    unlike = {"sync_id", "call_sync_id", "earlier_sync_id"}
    whole, part = (
        [
            {key: value for key, value in row.items() if key not in unlike}
            for row in rows(one, "sync", tmp_path)
            if row["ts_ns"] >= known_from and row["incomplete"] is None
        ]
        for one in (RUN, run)
    )
    assert part
    assert part == whole
    assert all(
        row["ts_ns"] >= known_from or row["incomplete"] for row in rows(run, "sync", tmp_path)
    )
    assert all(row["ts_ns"] >= known_from for row in rows(run, "bio", tmp_path))


def test_what_was_overwritten_is_no_loss(captured: tuple[Path, int], tmp_path: Path) -> None:
    run, _ = captured
    reasons = {row["reason"] for row in rows(run, "loss", tmp_path) if row["severity"] == "loss"}
    whole = {row["reason"] for row in rows(RUN, "loss", tmp_path) if row["severity"] == "loss"}
    # Syncs and bios that were in flight at that time.
    at_the_edge = {"start_missing", "unmatched_exit", "unmatched_complete"}
    assert reasons - at_the_edge <= whole


@pytest.mark.parametrize("value", ["x", -1, 2**70, 1.5, True])
def test_a_manifest_with_an_impossible_time_is_damaged(tmp_path: Path, value: object) -> None:
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["inputs"][0]["known_from_ns"] = value
    (run / "manifest.json").write_text(json.dumps(manifest))
    done = command("inspect", str(run))
    assert (done.returncode, "is damaged" in done.stderr) == (3, True)


class TestLogLines:
    """The log of --when, as it grows, is rotated and is cut off."""

    def test_only_new_lines_count(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("slow fsync\n")
        lines = LogLines(str(log), re.compile("slow"))
        assert lines.read() == []
        with log.open("a") as out:
            out.write("fast\nslow")
            out.flush()
            assert lines.read() == []
            out.write(" sync\r\nx\n")
            out.flush()
            assert lines.read() == ["slow sync"]
        lines.close()

    @pytest.mark.parametrize("how", ["rotated", "truncated", "not there yet"])
    def test_a_log_that_begins_again_is_read_from_its_start(self, tmp_path: Path, how: str) -> None:
        log = tmp_path / "log"
        if how != "not there yet":
            log.write_text("a line that is longer than the next one\n")
        lines = LogLines(str(log), re.compile("slow"))
        if how == "rotated":
            with log.open("a") as out:
                out.write("slow 0\n")
            log.rename(tmp_path / "log.1")
        log.write_text("slow 1\n")
        assert lines.read() == (["slow 0", "slow 1"] if how == "rotated" else ["slow 1"])
        lines.close()

    def test_a_log_in_no_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RecordError, match="no such folder"):
            LogLines(str(tmp_path / "no" / "log"), re.compile("x"))


def test_a_signal_ends_the_wait() -> None:
    signals = Signals()
    with signals.handled():
        assert wait([signals.fd], None, 0) == set()
        os.kill(os.getpid(), 10)
        assert wait([signals.fd], None, 30) == {signals.fd}
        assert (signals.take(), signals.take()) == (True, False)


def test_standard_input_that_has_ended_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        lines = LogLines("-", re.compile("slow"))
        assert (lines.fd, lines.read()) == (reading, [])
        os.write(writing, b"slow\n")
        assert (lines.fd, lines.read()) == (reading, ["slow"])
        os.close(writing)
        assert (lines.read(), lines.fd) == ([], None)


def slow_syncs(
    tmp_path: Path, text: str, *, is_in_kernel: bool, comm: str | None = None
) -> SlowSyncs:
    """A watcher of a pipe that holds some text."""
    watch = SlowSyncs.__new__(SlowSyncs)
    (tmp_path / "pipe").write_text(text)
    watch.fd = os.open(tmp_path / "pipe", os.O_RDONLY)
    watch.is_in_kernel = is_in_kernel
    watch._limit_ns, watch._comm, watch._rest, watch._entered = 10**6, comm, b"", {}
    return watch


# A line of the guest, kernel 6.12.
BY_KERNEL = (
    "         python3-201     [001] ...4.    10.315686: syncline_slow_1_2: lat=1499463 tid=201\n"
)


def test_the_kernel_names_the_thread_and_the_time(tmp_path: Path) -> None:
    (slow,) = slow_syncs(tmp_path, BY_KERNEL + "  cut off", is_in_kernel=True).read()
    assert (slow.tid, slow.comm, slow.dur_ns, slow.end_ns) == (
        201,
        "python3",
        1_499_463,
        10_315_686_000,
    )
    assert slow_syncs(tmp_path, BY_KERNEL, is_in_kernel=True, comm="other").read() == []


def test_without_the_kernel_the_calls_are_compared(tmp_path: Path) -> None:
    head = "  a b-c-{tid}  [000] .....  {time:.6f}: sys_fsync"
    lines = [
        head.format(tid=1, time=5) + "(fd: 3)",
        head.format(tid=2, time=5.0001) + "(fd: 3)",
        # One that was entered before.
        head.format(tid=3, time=5.0002) + " -> 0x0",
        head.format(tid=2, time=5.0009) + " -> 0x0",
        head.format(tid=1, time=5.002) + " -> 0xfffffffffffffffb",
    ]
    found = slow_syncs(tmp_path, "\n".join(lines) + "\n", is_in_kernel=False).read()
    assert [(slow.tid, slow.comm, slow.dur_ns) for slow in found] == [(1, "a b-c", 2_000_000)]


class TestCaptures:
    """The folder of captures."""

    def capture(self, captures: Captures, name: str, size: int, dur_ns: int | None) -> None:
        folder = captures.folder / name
        folder.mkdir()
        (folder / "trace.dat").write_bytes(b"x" * size)
        slow = None if dur_ns is None else {"dur_ns": dur_ns}
        (folder / "manifest.json").write_text(json.dumps({KEY: {"slow": slow}}))

    def test_the_least_interesting_one_goes_first(self, tmp_path: Path) -> None:
        captures = Captures(tmp_path / "captures", 2_500)
        for name, dur_ns in (("a", 300), ("b", None), ("c", 200), ("d", 400)):
            self.capture(captures, name, 1_000, dur_ns)
        assert [one.folder.name for one in captures.make_room()] == ["b", "c"]
        assert [one.folder.name for one in captures.all()] == ["a", "d"]

    def test_one_stays_even_if_it_is_larger(self, tmp_path: Path) -> None:
        captures = Captures(tmp_path / "captures", 10)
        self.capture(captures, "a", 1_000, 5)
        assert captures.make_room() == []

    def test_what_is_no_capture_is_never_removed(self, tmp_path: Path) -> None:
        captures = Captures(tmp_path / "captures", 10)
        for name, text in (("a", "{"), ("b", "{}"), ("c", "[]")):
            self.capture(captures, name, 1_000, 5)
            (captures.folder / name / "manifest.json").write_text(text)
        self.capture(captures, "d", 1_000, 5)
        self.capture(captures, "e", 1_000, 6)
        assert [one.folder.name for one in captures.make_room()] == ["d"]

    def test_only_what_a_killed_recorder_left_is_removed(self, tmp_path: Path) -> None:
        captures = Captures(tmp_path / "captures", 10)
        pid, start = tracefs.owner()
        for name in (f".buffers-{pid}-{start}", f".buffers-{pid}-1", ".buffers-x-1", "a"):
            (captures.folder / name).mkdir()
        captures.remove_left(".buffers")
        left = {folder.name for folder in captures.folder.iterdir()}
        assert left == {f".buffers-{pid}-{start}", ".buffers-x-1", "a"}

    def test_a_recording_is_no_folder_of_captures(self, tmp_path: Path) -> None:
        (tmp_path / "manifest.json").touch()
        with pytest.raises(RecordError, match="is a recording"):
            Captures(tmp_path, 10)

    def test_two_in_one_second_have_two_names(self, tmp_path: Path) -> None:
        captures = Captures(tmp_path / "captures", 10)
        first = captures.new_folder("5ms")
        first.mkdir()
        assert captures.new_folder("5ms") != first


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--keep", "3s"], "--keep is of a recording that waits for something"),
        (["--slower-than", "1ms", "--", "true"], "runs no command"),
        (["--when", "x"], "--when needs --log"),
        (["--log", "x"], "--log is of a recording that waits"),
        (["--slower-than", "1ms", "--log", "x"], "--log needs --when"),
        (["--when", "(", "--log", "x"], "is no regular expression"),
        (["--slower-than", "1ms", "--force"], "--force is of a single recording"),
        (["--slower-than", "1ms", "--route", "bpftrace"], "cannot keep the newest events only"),
        (["--slower-than", "1"], "is not a duration"),
        (["--pressure", "many"], "--pressure"),
        (["--slower-than", "1ms", "--captures", "0"], "--captures"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_recorded(
    options: list[str], says: str, tmp_path: Path
) -> None:
    done = command("record", "-o", str(tmp_path / "captures"), *options)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "captures").exists()


def test_the_defaults_are_those_that_help_states() -> None:
    text = " ".join(command("record", "--help").stdout.split())
    arming = Arming()
    assert f"default: {arming.keep_s:g}s" in text
    assert f"default: {arming.after_s:g}s" in text
    assert f"default: {arming.disk_bytes >> 30}G" in text


class TestSalvage:
    """What a killed recorder has left. `tests/kernel/jobs/salvage.sh` kills one."""

    def left(self, tmp_path: Path, **facts: object) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        known = {"owner": [1, "1"], "events": [], "buffers": {"": []}, "trace_dat": {}} | facts
        (folder / LEFT).write_text(json.dumps(known))
        (folder / salvage.STATE).write_text(
            '{"known_until_ns": 5, "comms": {}, "stats": {}}\n"old"'
        )
        (folder / salvage.BEGUN).write_text("{}")
        return folder

    def test_a_folder_without_pages_is_refused(self, tmp_path: Path) -> None:
        done = command("record", "--resume", "-o", str(tmp_path))
        assert (done.returncode, "holds nothing that a recorder has left" in done.stderr) == (
            3,
            True,
        )
        assert command("record", "--resume").returncode == 2

    def test_a_report_says_how_to_make_a_recording_of_it(self, tmp_path: Path) -> None:
        done = command("report", str(self.left(tmp_path)))
        assert (done.returncode, "syncline record --resume -o" in done.stderr) == (3, True)

    def test_a_whole_recording_is_refused(self) -> None:
        done = command("record", "--resume", "-o", str(RUN))
        assert (done.returncode, "is a whole recording" in done.stderr) == (3, True)

    def test_a_recording_that_is_being_made_is_refused(self, tmp_path: Path) -> None:
        folder = self.left(tmp_path, owner=tracefs.owner())
        done = command("record", "--resume", "-o", str(folder))
        assert (done.returncode, "is still recorded" in done.stderr) == (3, True)

    @pytest.mark.parametrize(
        "facts",
        [{"owner": None}, {"buffers": {"": ["../x"]}}, {"buffers": {"": ["gone"]}}, {"trace_dat": 5}],
    )  # fmt: skip
    def test_damaged_facts_are_refused_and_stay(
        self, tmp_path: Path, facts: dict[str, object]
    ) -> None:
        folder = self.left(tmp_path, **facts)
        before = sorted(file.name for file in folder.iterdir())
        done = command("record", "--resume", "-o", str(folder))
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert sorted(file.name for file in folder.iterdir()) == before
