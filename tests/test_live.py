"""The line that `record` shows once a second. `tests/kernel/jobs/live.sh` measures what it costs."""

from __future__ import annotations

import io
import os
import pty
from typing import Any

import pytest
from syncline.cli import live_line
from syncline.record.file_paths import FilePaths
from syncline.record.live import line
from syncline.record.slow_syncs import Slow


def slow(dur_ms: float, tid: int = 7, comm: str = "wal") -> Slow:
    return Slow(0, round(dur_ms * 1e6), tid, comm)


def nobody(_tid: int) -> None:
    return None


@pytest.mark.parametrize(
    ("found", "count", "seconds", "expected"),
    [
        # 1 to 100 ms: half of them take 50 ms or less, and 99 of them 99 ms or less.
        ([slow(n) for n in range(100, 0, -1)], 100, 2.0, "50 syncs/s, p50 50 ms, p99 99 ms, slowest 100 ms by wal (7)"),
        ([slow(3)], 1, 1.0, "1.0 syncs/s, p50 3 ms, p99 3 ms, slowest 3 ms by wal (7)"),
        ([slow(1500, 8, "b"), slow(2)], 2, 1.0, "2.0 syncs/s, p50 2 ms, p99 1.5 s, slowest 1.5 s by b (8)"),
        # One of them was measured a second before.
        ([slow(2)] * 40, 41, 1.0, "41 syncs/s, p50 2 ms, p99 2 ms, slowest 2 ms by wal (7)"),
        # Only some were measured.
        ([slow(2), slow(4)], 5000, 1.0, "5,000 syncs/s, p50 2 ms, p99 4 ms of 2, slowest 4 ms by wal (7)"),
        ([], 0, 1.0, "0 syncs/s"),
    ],
)  # fmt: skip
def test_the_line_has_what_was_measured(
    found: list[Slow], count: int, seconds: float, expected: str
) -> None:
    assert line(found, count, seconds, nobody) == expected


def test_the_file_is_that_of_the_slowest_thread() -> None:
    text = line([slow(2, 7), slow(3, 8)], 2, 1.0, {7: "/a", 8: "/var/lib/db/wal"}.get)
    assert text.endswith("by wal (8) in db/wal")


class _Histograms:
    """Histograms of the syncs of files: (thread, device, inode)."""

    def __init__(self, *rows: tuple[int, int, int]) -> None:
        self.rows = rows

    def trigger(self, *_: Any) -> None:
        pass

    def histogram(self, _event: str) -> str:
        by_file = "".join(
            f"{{ dev: {dev}, ino: {ino}, gen: 0 }} hitcount: 1\n" for _, dev, ino in self.rows
        )
        by_thread = "".join(
            f"{{ common_pid: {tid}, dev: {dev}, ino: {ino} }} hitcount: 1\n"
            for tid, dev, ino in self.rows
        )
        return (
            "# trigger info: hist:keys=dev,ino,gen:vals=hitcount\n\n" + by_file
            + "\n# trigger info: hist:keys=common_pid,dev,ino:vals=hitcount\n\n" + by_thread
        )  # fmt: skip


def test_a_thread_that_syncs_several_files_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of them the slowest sync was of is not known."""
    monkeypatch.setattr(FilePaths, "_resolve", lambda _, dev, ino, gen: {"path": f"/{ino}"})
    rows = _Histograms((7, 1, 10), (8, 1, 11), (8, 1, 12), (9, 1, 10))
    files = FilePaths(rows, ["g/fsync_enter"])  # type: ignore[arg-type]
    files.poll()
    assert [files.only_file_of(tid) for tid in (7, 8, 9, 10)] == ["/10", None, "/10", None]
    rows.rows = ((7, 1, 10), (7, 2, 10))
    files.poll()
    assert files.only_file_of(7) is None


class TestLine:
    """The end of the terminal."""

    def shown(self, monkeypatch: pytest.MonkeyPatch, columns: int = 20) -> io.StringIO:
        out = io.StringIO()
        monkeypatch.setattr("sys.stderr", out)
        monkeypatch.setenv("COLUMNS", str(columns))
        return out

    def test_a_message_goes_above_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        out = self.shown(monkeypatch)
        shown = live_line.LiveLine()
        shown.show("5 syncs/s")
        shown.say("draining")
        shown.show("")
        assert out.getvalue().replace("\r\x1b[K", "|") == "|5 syncs/s|draining\n|5 syncs/s|"

    def test_it_fits_the_terminal_and_cannot_move_the_cursor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = self.shown(monkeypatch)
        live_line.LiveLine().show("x" * 100)
        live_line.LiveLine().show("a\nb\x1b[2J")
        first, second = out.getvalue().split("\r\x1b[K")[1:]
        assert len(first) < 20
        assert second.isprintable()

    def test_what_is_lost_is_shown_in_any_width(self, monkeypatch: pytest.MonkeyPatch) -> None:
        out = self.shown(monkeypatch, 30)
        live_line.LiveLine().show("41 syncs/s, p50 21.3 ms, p99 88 ms; 1 MB, 0 lost")
        assert out.getvalue() == "\r\x1b[K41 syncs/s, p5…; 1 MB, 0 lost"
        assert len(out.getvalue()) - len("\r\x1b[K") == 29

    def test_a_pipe_gets_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown(monkeypatch)
        assert not live_line.can_be_shown()
        leader, follower = pty.openpty()
        with os.fdopen(follower, "w") as terminal:
            monkeypatch.setattr("sys.stderr", terminal)
            assert live_line.can_be_shown()
            monkeypatch.setattr("sys.argv", ["syncline", "record", "--json"])
            assert not live_line.can_be_shown()
        os.close(leader)
