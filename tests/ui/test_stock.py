"""What a shared trace shows in the Perfetto UI without Syncline: no plugin, no commands, no click.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened

from tests.ui import browser
from tests.ui.test_ui import HARMLESS

DATA = Path(__file__).parents[1] / "data"
# Threads whose process is not known; processes with a neighbour; more threads than fit; bios only.
INPUTS = ("small4-slowdisk", "postgres-neighbour", "many", "blktrace")
AT_TOP = 6
PROCESSES = {"postgres-neighbour"}
RUN = {"span": "SELECT start_ts, end_ts FROM trace_bounds", "paint": True, "name": "run"}


def recording(name: str, folder: Path) -> Path:
    if name == "postgres-neighbour":
        with tarfile.open(DATA / "known-truth/postgres.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        return folder / name
    if name == "many":
        log = folder / "many.strace"
        # Thread 100 + n is in a sync for n tenths of a second.
        lines = [f"{100 + n}  {1000 + n}.000000 fsync(3) = 0 <0.{n}00000>" for n in range(1, 10)]
        log.write_text("\n".join(lines) + "\n")
        return log
    return {
        "small4-slowdisk": DATA / "thesis/small4-slowdisk.log",
        "blktrace": DATA / "blktrace/small4.blkparse.txt.gz",
    }[name]


class Seen:
    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        log = recording(name, folder)
        trace = folder / f"{name}.pftrace"
        Reading().convert([str(log)], str(trace))
        with opened(str(trace), Reading()) as engine:
            self.calls = engine.query("SELECT tid, comm, dur_ns FROM syncline_sync_call").rows
            self.bios = engine.query("SELECT dev, COUNT(*) FROM syncline_bio GROUP BY dev").rows
        with browser.stock(trace) as page:
            self.found: dict[str, Any] = browser.drive(
                page, [RUN], shot=browser.shot(f"stock-{name}")
            )
        self.top: list[str] = [track["name"] for track in self.found["top"]]
        self.painted: dict[str, int] = self.found["views"][0]["painted"]


@pytest.fixture(scope="module", params=INPUTS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return Seen(request.param, tmp_path_factory.mktemp("stock"))


@pytest.mark.ui
class TestStock:
    def test_it_shows_no_error(self, seen: Seen) -> None:
        found = seen.found
        assert found["dialogs"] == found["modals"] == []
        assert found["failed"] == 0
        assert [text for text in found["console"] if not HARMLESS.search(text)] == []

    def test_threads_are_at_the_top_the_longest_first(self, seen: Seen) -> None:
        waited: Counter[str] = Counter()
        for tid, comm, dur in seen.calls:
            waited[f"{comm or 'thread'} {tid}"] += dur or 0
        shown = [name for name in seen.top if name[0].isdigit()]
        if seen.name in PROCESSES:
            # They are in the groups of their processes, and the slowest of their syncs are at the top.
            assert shown == []
            assert ("All threads: slowest syncs" in seen.top) == bool(waited)
            return
        of = [name.partition(". ")[2].partition(" waited ")[0] for name in shown]
        times = [waited[name] for name in of]
        # All that are left out waited less.
        assert times == sorted(waited.values(), reverse=True)[: len(of)]
        assert len(of) == min(len(waited), AT_TOP)
        assert [name.partition(".")[0] for name in shown] == [str(n + 1) for n in range(len(shown))]
        assert ("More threads" in seen.top) == (len(waited) > AT_TOP)

    def test_disks_are_below_them_and_drawn(self, seen: Seen) -> None:
        disks = [name for name in seen.top if name.startswith("Disk ")]
        last_thread = max((at for at, name in enumerate(seen.top) if name[0].isdigit()), default=0)
        assert all(seen.top.index(name) > last_thread for name in disks)
        for dev, _ in seen.bios:
            number = dev or "device unknown"
            assert any(f"({number})" in name for name in disks), (dev, disks)
            rows = [name for name in disks if f"({number})" in name]
            assert rows[0].endswith(": all in flight")
        if seen.name == "postgres-neighbour":
            assert [name.partition(": ")[2] for name in disks][:3] == [
                "all in flight",
                "bios of syncs",
                "journal",
            ]

    def test_what_is_at_the_top_is_drawn_without_a_click(self, seen: Seen) -> None:
        rows = {path.rsplit("/", 1)[-1]: count for path, count in seen.painted.items()}
        threads = [name for name in seen.top if name[0].isdigit()]
        for name in threads:
            assert rows[name] > 10, (name, rows)
        if "All threads: slowest syncs" in seen.top:
            assert rows["All threads: slowest syncs"] > 10, rows
        elif not threads:
            assert any(rows.get(name, 0) > 20 for name in seen.top if name.startswith("Disk "))
        # Only what is about the recording needs a click.
        closed = {track["name"] for track in seen.found["top"] if track["isSummary"]}
        if seen.name in PROCESSES:
            closed = {name for name in closed if not re.fullmatch(r".* \d+", name)}
        assert closed <= {"System", "More threads", "Recording", "File operations", "Page cache"}
