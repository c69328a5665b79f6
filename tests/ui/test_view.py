"""What the Perfetto UI shows first, and the macros of the extension server, in a real browser.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from syncline.inputs import Reading, opened
from syncline.ui import extension_server
from syncline.ui.macros import MACROS

from tests.ui import browser
from tests.ui.test_ui import HARMLESS

DATA = Path(__file__).parents[1] / "data"
# Bios and the time around them; phases, waits and a journal; calls only; bios only.
LOGS = {
    "parallel4": DATA / "thesis/parallel4.log",
    "ext4": DATA / "dynamic-events/ext4.dat.gz",
    "strace": DATA / "strace/small4.log",
    "blktrace": DATA / "blktrace/small4.blkparse.txt.gz",
}


def served(name: str) -> Any:
    return json.loads(extension_server.files()[name])


def result(log: Path, sql: str) -> list[tuple[Any, ...]]:
    with opened(str(log), Reading()) as engine:
        return engine.query(sql).rows


@pytest.fixture(scope="module", params=LOGS)
def seen(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    """Opens a log in the UI, and runs each macro of the extension server with the modules that it serves."""
    modules = served("modules/default/sql_modules")["sql_modules"]
    # v52 takes only the first part of the namespace.
    package = {"name": served("manifest")["namespace"].partition(".")[0], "modules": modules}
    log = LOGS[request.param]
    with browser.opened("--offline", log) as page:
        found = browser.drive(
            page,
            [],
            shot=browser.shot(f"{request.param}-first"),
            packages=[package],
            macros=[macro["run"] for macro in served("modules/default/macros")["macros"]],
        )
    return log, found


@pytest.mark.ui
class TestFirstView:
    def test_every_command_runs(self, seen: tuple[Path, dict[str, Any]]) -> None:
        _, found = seen
        assert [text for text in found["warnings"] if "ommand" in text] == []
        assert found["dialogs"] == found["modals"] == []
        assert [text for text in found["console"] if not HARMLESS.search(text)] == []

    def test_the_slowest_sync_is_selected(self, seen: tuple[Path, dict[str, Any]]) -> None:
        log, found = seen
        start = found["start"]
        assert start["sidebar"] is False
        slowest = result(
            log,
            "SELECT ts_ns, dur_ns, COALESCE(start_ns, ts_ns) FROM syncline_sync"
            " WHERE dur_ns IS NOT NULL ORDER BY dur_ns DESC, sync_id LIMIT 1",
        )
        if not slowest:
            assert start["selection"]["kind"] == "empty"
            assert not [name for name in start["pinned"] if name.endswith("slowest syncs")]
            return
        ((ts, dur, slice_ts),) = slowest
        assert start["selection"]["kind"] == "track_event"
        assert start["selection"]["ts"] == str(slice_ts)
        assert start["selection"]["dur"] == str(ts + dur - slice_ts)
        first, last = map(int, start["window"])
        assert first <= slice_ts < ts + dur <= last
        # It fills most of the window, with some time around it.
        assert 0.5 < dur / (last - first) < 0.9
        # Its panel is open.
        assert re.match(rf"\w+ \S+: {dur / 1e6:#.3g}".rstrip(".") + r" ms\n", start["drawer"])

    def test_the_pinned_tracks_answer(self, seen: tuple[Path, dict[str, Any]]) -> None:
        """From above: the slowest syncs, the inside of one, who used the disk, the journal, the latency over time."""
        log, found = seen
        ((syncs, bios, commits),) = result(
            log,
            "SELECT (SELECT COUNT(*) FROM syncline_sync_call WHERE dur_ns IS NOT NULL),"
            " (SELECT COUNT(*) FROM syncline_bio WHERE dur_ns > 0),"
            " (SELECT COUNT(*) FROM syncline_journal)",
        )
        expected = [
            *(["20 slowest syncs"] if syncs > 20 else ["Syncs"] if syncs else []),
            *(["Inside the selected sync"] if syncs else []),
            *(["Who used"] if bios else []),
            *(["Journal"] if commits else []),
            *(["Latency of syncs"] if syncs else []),
        ]
        pinned = found["start"]["pinned"]
        assert len(pinned) == len(expected)
        assert all(map(str.startswith, pinned, expected)), pinned
        assert expected


@pytest.mark.ui
def test_every_macro_runs(seen: tuple[Path, dict[str, Any]]) -> None:
    _, found = seen
    assert [macro["error"] for macro in found["macros"]] == [None] * len(MACROS)
    for macro, after in zip(MACROS, found["macros"], strict=True):
        tracks = [step[-1] for step in macro.steps if step[0].startswith("AddDebug")]
        for track in tracks:
            # With a pivot, there is a track for each value, and none without a row.
            shown = [name for name in after["pinned"] if name.startswith(track)]
            assert shown or track in ("Bios of", "Bios at")
        assert "Query result" in after["drawer"]
