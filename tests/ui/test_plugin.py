"""Syncline's plugin in the Perfetto UI of `syncline open --offline`: what it shows is what the tables hold.

SYNCLINE_UI_SHOTS=FOLDER keeps the screenshots.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from syncline.inputs import Reading, opened
from syncline.report.inspect import why_empty
from syncline.ui import serve

from tests import known_truth
from tests.coretools import Rows, tables
from tests.ui import browser
from tests.ui.test_ui import HARMLESS
from tests.ui.test_view import LOGS

DATA = Path(__file__).parents[1] / "data"
SLOWEST = "SELECT {} FROM slice WHERE category = 'syncline.{}' ORDER BY dur DESC, id LIMIT 1"
WHOLE = "SELECT start_ts, end_ts FROM trace_bounds"
# Around the middle of the run, so that some syncs are outside.
PART = "SELECT start_ts + (end_ts - start_ts) * 6 / 10, start_ts + (end_ts - start_ts) * 8 / 10 FROM trace_bounds"
VIEWS = [
    {"name": "sync", "span": WHOLE, "select": SLOWEST.format("id", "sync"), "paint": True},
    {"name": "phase", "span": WHOLE, "select": SLOWEST.format("id", "phase")},
    {"name": "bio", "span": WHOLE, "select": SLOWEST.format("id", "bio")},
    {"name": "area", "span": PART, "area": r": bios of syncs$|^(\d+\. wl|python3) "},
    {"name": "syncs", "span": PART, "area": r"^(\d+\. wl|python3) ", "choose": "syncs"},
    {"name": "lane", "span": WHOLE, "area": r"^\S+ \d+: \S+ \S+ in \d+$", "only": 1},
    {"name": "slowest", "tab": "Slowest syncs", "row": 2},
    {"name": "empty", "span": "SELECT start_ts, start_ts + 1 FROM trace_bounds", "area": "Run"},
]
PAGES = [
    {"name": "page", "page": "/syncline"},
    {"name": "threads", "page": "/syncline", "click": "threads"},
]
NEXT, PREVIOUS = "dev.syncline.Sync#NextSlow", "dev.syncline.Sync#PreviousSlow"
MACROS = [
    [{"id": name, "args": []}]
    for name in (
        *(NEXT, NEXT, PREVIOUS),
        *(f"dev.syncline.Sync#ColourBy_{colour}" for colour in ("file", "latency", "phase")),
    )
]
QUERIES = {
    "sync": SLOWEST.format("extract_arg(arg_set_id, 'debug.sync_id')", "sync"),
    "bio": SLOWEST.format("extract_arg(arg_set_id, 'debug.sync_id')", "bio"),
    "part": PART,
}


@pytest.fixture(scope="module", params=["parallel4", "ext4"])
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Rows]]:
    """Opens a log, selects slices and areas, and returns what was seen and the rows of the log."""
    folder = tmp_path_factory.mktemp("plugin")
    log = LOGS[request.param]
    Reading().convert([str(log)], f"{folder}/tables/")
    views = [
        view | {"shot": browser.shot(f"{request.param}-plugin-{view['name']}")}
        for view in VIEWS + PAGES
    ]
    with browser.opened("--offline", log) as page:
        found = browser.drive(page, views[: -len(PAGES)], QUERIES, macros=MACROS)
        found["views"] += browser.drive(page, views[-len(PAGES) :])["views"]
    found["views"] = {view["name"]: view for view in found["views"]}
    return found, tables(folder / "tables")


def shown(ns: int) -> str:
    """A duration as the plugin shows it."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor * 0.9995:
            value = ns / factor
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    return f"{ns} ns"


def sums(rows: Rows, of: set[int]) -> Counter[str]:
    """The time of each phase of some syncs."""
    found: Counter[str] = Counter()
    for row in rows:
        if row["sync_id"] in of and row["dur_ns"] > 0:
            name = row["phase"].replace("residue", "not explained")
            found[name] += row["dur_ns"]
    return found


@pytest.mark.ui
class TestDetails:
    def test_no_error(self, seen: tuple[dict[str, Any], Any]) -> None:
        found, _ = seen
        assert found["dialogs"] == found["modals"] == []
        assert [text for text in found["console"] if not HARMLESS.search(text)] == []

    def test_a_sync_shows_its_row_and_its_phases(
        self, seen: tuple[dict[str, Any], dict[str, Rows]]
    ) -> None:
        found, rows = seen
        (text,) = found["views"]["sync"]["plugin"]
        sync_id = int(found["queries"]["sync"][0][0])
        (sync,) = [row for row in rows["sync"] if row["sync_id"] == sync_id]
        assert text.startswith(f"{sync['op']} {sync['path']}: {shown(sync['dur_ns'])}")
        assert f"{sync['comm']} {sync['tid']}" in text
        for name, ns in sums(rows["phase"], {sync_id}).items():
            assert f"{name} {shown(ns)} (" in text
        # The bar is to scale.
        boxes = found["views"]["sync"]["boxes"]
        phases = [row for row in rows["phase"] if row["sync_id"] == sync_id and row["dur_ns"] > 0]
        placed = [row for row in phases if row["ts_ns"] is not None]
        assert len(boxes) == len(placed)
        widest = max(placed, key=lambda row: row["dur_ns"])
        full = max(width for _, width in boxes) * sync["dur_ns"] / widest["dur_ns"]
        for (title, width), row in zip(sorted(boxes), sorted(boxes_of(placed)), strict=True):
            assert title == row[0]
            assert width == pytest.approx(max(row[1] / sync["dur_ns"] * full, 1), abs=1)

    def test_its_bios_waits_and_others(self, seen: tuple[dict[str, Any], dict[str, Rows]]) -> None:
        found, rows = seen
        (text,) = found["views"]["sync"]["plugin"]
        sync_id = int(found["queries"]["sync"][0][0])
        (sync,) = [row for row in rows["sync"] if row["sync_id"] == sync_id]
        bios = [row for row in rows["bio"] if row["sync_id"] == sync_id]
        assert f"Bios: {len(bios)}" in text
        for bio in bios:
            assert f"bio {bio['bio_id']}\t{shown(bio['ts_ns'] - sync['ts_ns'])}\t" in text
        end = sync["ts_ns"] + sync["dur_ns"]
        others = [
            row
            for row in rows["sync"]
            if row["sync_id"] != sync_id
            and row["dur_ns"] is not None
            and row["ts_ns"] < end
            and row["ts_ns"] + row["dur_ns"] > sync["ts_ns"]
        ]
        assert others
        assert f"Syncs in flight at the same time: {len(others)}" in text
        for wait in (row for row in rows["wait"] if row["sync_id"] == sync_id):
            assert f"{wait['wait']}\t{shown(wait['dur_ns'])}\t" in text
            if wait["transaction_id"] is not None:
                assert f"transaction {wait['transaction_id']}" in text

    def test_slices_inside_a_sync_and_its_bios_show_it_too(
        self, seen: tuple[dict[str, Any], dict[str, Rows]]
    ) -> None:
        found, rows = seen
        (phase,) = found["views"]["phase"]["plugin"]
        assert re.match(r"\w+ \S+: [\d.]+ .?s\n", phase)
        owner = found["queries"]["bio"][0][0]
        texts = found["views"]["bio"]["plugin"]
        if owner is None:
            (bio,) = [
                r for r in rows["bio"] if r["dur_ns"] == max(b["dur_ns"] or 0 for b in rows["bio"])
            ]
            assert texts[0].partition(": ")[2].startswith(shown(bio["dur_ns"]))
            meanwhile = [
                row
                for row in rows["sync"]
                if row["dur_ns"] is not None
                and row["ts_ns"] < bio["ts_ns"] + bio["dur_ns"]
                and row["ts_ns"] + row["dur_ns"] > bio["ts_ns"] + (bio["queue_ns"] or 0)
                and row["dev"] in (None, bio["dev"])
            ]
            assert f"Syncs in flight while the device had it: {len(meanwhile)}" in texts[0]
        else:
            (sync,) = [row for row in rows["sync"] if row["sync_id"] == int(owner)]
            assert str(sync["path"]) in texts[0]
        # The usual panel is still there.
        assert any("Start time" in text for text in found["views"]["sync"]["details"])


def boxes_of(phases: Rows) -> list[tuple[str, int]]:
    return [
        (
            f"{row['phase'].replace('residue', 'not explained')}: {shown(row['dur_ns'])}",
            row["dur_ns"],
        )
        for row in phases
    ]


@pytest.mark.ui
def test_an_area_counts_each_sync_once(seen: tuple[dict[str, Any], dict[str, Rows]]) -> None:
    found, rows = seen
    start, end = map(int, found["queries"]["part"][0])
    inside = [
        row
        for row in rows["sync"]
        if row["ts_ns"] < end and row["ts_ns"] + (row["dur_ns"] or 0) >= start
    ]
    assert 0 < len(inside) < len(rows["sync"])
    for view in ("area", "syncs"):
        (text,) = found["views"][view]["plugin"]
        assert f"syncs\t{len(inside):,} sync" in text
        time = sum(row["dur_ns"] or 0 for row in inside)
        assert f"time waited, added up\t{shown(time)}" in text
        assert f"longest\t{shown(max(row['dur_ns'] or 0 for row in inside))}" in text
        assert f"Files: {len({row['path'] for row in inside})}\n" in text
        assert f"Threads: {len({(row['comm'], row['tid']) for row in inside})}\n" in text
        for name, ns in sums(rows["phase"], {row["sync_id"] for row in inside}).items():
            assert f"{name} {shown(ns)} (" in text
    titles = [title for title, _ in found["views"]["syncs"]["boxes"]]
    stacks = Counter((row["stack"] or "no stack is recorded").split(";")[0] for row in inside)
    for frame, count in stacks.items():
        assert any(title.startswith(f"{frame}: {count} sync") for title in titles), (frame, titles)
    assert found["views"]["empty"]["plugin"] == ["No sync is in flight in this area."]


@pytest.mark.ui
def test_an_area_over_a_lane_has_the_syncs_of_its_thread(
    seen: tuple[dict[str, Any], dict[str, Rows]],
) -> None:
    found, rows = seen
    waits: Counter[tuple[str, int]] = Counter()
    for row in rows["sync"]:
        waits[row["comm"], row["tid"]] += row["dur_ns"] or 0
    # The first lane is of the thread that waited longest.
    comm, tid = min(waits, key=lambda one: (-waits[one], one[1]))
    drawn = [
        row
        for row in rows["sync"]
        if (row["comm"], row["tid"]) == (comm, tid) and row["dur_ns"] is not None
    ]
    assert 0 < len(drawn) < len(rows["sync"])
    (text,) = found["views"]["lane"]["plugin"]
    assert f"syncs\t{len(drawn):,} sync" in text
    assert "of\tthe selected lanes and tracks" in text
    assert "Threads: 1\n" in text
    assert f"{comm} {tid}\t" in text
    assert "of\tall threads" not in text


@pytest.mark.ui
def test_the_lanes_are_ordered_by_waiting(seen: tuple[dict[str, Any], dict[str, Rows]]) -> None:
    found, rows = seen
    waits: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in rows["sync"]:
        if row["dur_ns"] is not None:
            waits[row["comm"], row["tid"]].append(row["dur_ns"])
    ordered = sorted(waits.items(), key=lambda one: (-sum(one[1]), one[0][1]))
    expected = [
        f"{comm} {tid}: {shown(sum(lengths))} in {len(lengths)}" for (comm, tid), lengths in ordered
    ]
    lanes = [name for name in found["tracks"] if re.search(r" in \d+$", name)]
    assert lanes == expected
    painted = found["views"]["sync"]["painted"]
    for name in expected[:2]:
        assert max(n for path, n in painted.items() if path.endswith(name)) > 500, painted


@pytest.mark.ui
def test_a_row_of_the_slowest_syncs_leads_to_its_sync(
    seen: tuple[dict[str, Any], dict[str, Rows]],
) -> None:
    found, rows = seen
    known = [row for row in rows["sync"] if row["dur_ns"] is not None]
    slowest = sorted(known, key=lambda row: (-row["dur_ns"], row["sync_id"]))[:20]
    view = found["views"]["slowest"]
    assert [(row[0], row[1], row[3], row[4]) for row in view["rows"]] == [
        (str(row["sync_id"]), shown(row["dur_ns"]), row["path"], f"{row['comm']} {row['tid']}")
        for row in slowest
    ]
    third = slowest[2]
    assert view["selection"]["ts"] == str(third["start_ns"] or third["ts_ns"])
    first, last = map(int, view["window"])
    assert first <= third["ts_ns"] < third["ts_ns"] + third["dur_ns"] <= last
    assert 0.5 < third["dur_ns"] / (last - first) < 0.9
    assert view["drawer"].startswith(f"{third['op']} {third['path']}: {shown(third['dur_ns'])}")


@pytest.mark.ui
def test_keys_go_through_the_slowest_syncs(
    seen: tuple[dict[str, Any], dict[str, Rows]],
) -> None:
    found, rows = seen
    known = [row for row in rows["sync"] if row["dur_ns"] is not None]
    assert len(known) < 2000  # So that the slow ones are 20.
    slowest = sorted(known, key=lambda row: (-row["dur_ns"], row["sync_id"]))[:20]
    starts = [
        row["start_ns"] or row["ts_ns"]
        for row in sorted(slowest, key=lambda row: (row["ts_ns"], row["sync_id"]))
    ]
    assert [macro["error"] for macro in found["macros"]] == [None] * len(MACROS)
    # At first, the slowest one is selected.
    at = starts.index(int(found["start"]["selection"]["ts"]))
    visited = [int(macro["selection"]["ts"]) for macro in found["macros"][:3]]
    assert visited == [starts[(at + step) % 20] for step in (1, 2, 1)]


@pytest.mark.ui
def test_the_page_has_the_reports(seen: tuple[dict[str, Any], dict[str, Rows]]) -> None:
    found, rows = seen
    (text,) = found["views"]["page"]["plugin"]
    assert text.startswith("Where the time of all syncs went")
    for name, ns in sums(rows["phase"], {row["sync_id"] for row in rows["sync"]}).items():
        assert f"{name} {shown(ns)} (" in text
    (table,) = found["views"]["threads"]["tables"]
    columns = table[0]
    shown_syncs = Counter()
    for row in table[1:]:
        cells = dict(zip(columns, row, strict=True))
        if cells["tid"].isdigit():
            shown_syncs[cells["tid"]] += int(cells["syncs"].replace(",", ""))
    assert shown_syncs == Counter(str(row["tid"]) for row in rows["sync"])


@pytest.mark.ui
def test_waits_of_writes(tmp_path: Path) -> None:
    rows = known_truth.converted("write-page", tmp_path).tables
    run = tmp_path / "write-page"
    longest = SLOWEST.format("id", "write_wait")
    views = [
        {"name": "wait", "span": WHOLE, "select": longest},
        {"name": "area", "span": WHOLE, "area": "^python3 "},
        # Bios have no waits of writes.
        {"name": "bios", "span": WHOLE, "area": ": bios of syncs$"},
    ]
    with browser.opened("--offline", run) as page:
        found = browser.drive(page, views)
    wait, area, bios = ("".join(view["plugin"]) for view in found["views"])
    (row,) = sorted(rows["write_wait"], key=lambda row: -row["dur_ns"])[:1]
    assert wait.startswith(f"Write waits: page writeback: {shown(row['dur_ns'])}\n")
    assert f"thread\t{row['comm']} {row['tid']}\n" in wait
    assert f"file\t{row['path']}\n" in wait
    # The sync of the file that was in flight when the wait began.
    (sync,) = [
        sync
        for sync in rows["sync"]
        if sync["ino"] == row["ino"]
        and sync["ts_ns"] <= row["ts_ns"] < sync["ts_ns"] + sync["dur_ns"]
    ]
    assert "Syncs for whose work it waits: 1\n" in wait
    thread = f"{sync['comm']} {sync['tid']}\t{shown(sync['dur_ns'])}\t"
    assert f"{sync['op']} {sync['path']}\t{thread}" in wait
    lengths = [row["dur_ns"] for row in rows["write_wait"]]
    assert f"Waits of writes: {len(lengths)} waits, {shown(sum(lengths))}\n" in area
    named = f"{row['comm']} {row['tid']}\tpage writeback\t{len(lengths)}\t"
    assert f"{named}{shown(sum(lengths))}\t{shown(max(lengths))}\t" in area
    assert "Each sync counted once" in bios
    assert "Waits of writes" not in bios
    assert [text for text in found["console"] if not HARMLESS.search(text)] == []


@pytest.mark.ui
def test_it_is_silent_on_other_traces(tmp_path: Path) -> None:
    """On a trace that Syncline did not write, the plugin shows nothing and the UI has no errors."""
    builder = TraceProtoBuilder()
    for at, kind in ((10, 1), (2_000_000, 2)):
        packet = builder.add_packet()
        packet.timestamp = at
        packet.trusted_packet_sequence_id = 1
        packet.track_event.type = kind
        packet.track_event.name = "sync.example"
    trace = tmp_path / "other.pftrace"
    trace.write_bytes(builder.serialize())
    view = {"name": "one", "span": WHOLE, "select": "SELECT id FROM slice LIMIT 1"}
    with browser.opened("--offline", trace) as page:
        assert "20 slowest" not in browser.target(page)
        found = browser.drive(page, [view, {"name": "area", "span": WHOLE, "area": ".*"}])
    assert [view["plugin"] for view in found["views"]] == [[], []]
    assert [text for text in found["console"] if not HARMLESS.search(text)] == []
    assert not {name for name in found["tracks"] if "yncline" in name}


def test_without_a_built_plugin_the_ui_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("<html><head></head></html>")
    trace = tmp_path / "t.pftrace"
    trace.write_bytes(b"\n")
    monkeypatch.setattr(serve, "_PLUGIN", tmp_path / "none.js")
    with serve.OfflineServer(trace, trace.name, tmp_path) as server:
        assert "enablePlugins" not in server.ui_page
        from tests.ui.test_ui import Visitor

        ask = Visitor(server.server_port).ask
        assert ask("GET", "/", origin=None)[2] == (tmp_path / "index.html").read_bytes()
        assert ask("GET", "/syncline/plugin.js", origin=None)[0] == 404


@pytest.mark.ui
def test_a_report_without_rows_says_why() -> None:
    """The log of the thesis's format has no commits."""
    log = DATA / "thesis/small4-slowdisk.log"
    with browser.opened("--offline", log) as page:
        found = browser.drive(page, [{"name": "journal", "page": "/syncline", "click": "journal"}])
    with opened(str(log), Reading()) as engine:
        why = why_empty(engine, "journal")
    assert why
    assert f"No rows: {why}" in "".join(found["views"][0]["plugin"])


@pytest.mark.ui
def test_without_syncs_the_slowest_bios_are_listed() -> None:
    log = DATA / "blktrace/small4.blkparse.txt.gz"
    with browser.opened("--offline", log) as page:
        start = browser.drive(page, [], shot=browser.shot("no-syncs"))["start"]
    with opened(str(log), Reading()) as engine:
        ((bio,),) = engine.query("SELECT MAX(dur_ns) FROM syncline_bio").rows
    assert "Syncs" not in "".join(start["tabs"] + start["pinned"])
    first = start["drawer"].partition("file\n")[2].split("\t")[0]
    assert first == f"{bio / 1e6:.2f} ms"
