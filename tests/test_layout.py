"""What a trace shows to people: names, order, counters and arrows, against the rows of the log."""

from __future__ import annotations

import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syncline.engine import open_trace
from syncline.inputs import Reading

from tests.coretools import DATA, ROOT, Rows, tables

LOGS = {
    # Lost completions and syncs with many bios.
    "bg": DATA / "bg.log.gz",
    # Journal, background writeback.
    "ext4": ROOT / "tests/data/dynamic-events/ext4.dat.gz",
    "strace": ROOT / "tests/data/strace/small4.log",
    "blktrace": ROOT / "tests/data/blktrace/small4.blkparse.txt.gz",
    # Processes with threads.
    "postgres": ROOT / "tests/data/known-truth/postgres.tar.xz",
}
# Their recordings say the processes of the threads.
PROCESSES = {"postgres"}
SLICES = (
    "SELECT slice.*, track.name AS track, extract_arg(arg_set_id, 'debug.sync_id') AS sync_id,"
    " extract_arg(arg_set_id, 'debug.bio_id') AS bio_id,"
    " extract_arg(arg_set_id, 'debug.amount') AS amount,"
    " extract_arg(arg_set_id, 'debug.time') AS time,"
    " extract_arg(arg_set_id, 'debug.bio') AS address"
    " FROM slice JOIN track ON track.id = track_id"
)


class Seen:
    """A trace and the rows of its log."""

    def __init__(self, log: Path, folder: Path) -> None:
        Reading().convert([str(log)], f"{folder}/tables/")
        self.rows: dict[str, Rows] = tables(folder / "tables")
        trace = folder / "log.pftrace"
        Reading().convert([str(log)], str(trace))
        with open_trace(trace, engine="embedded") as engine:

            def rows(sql: str) -> Rows:
                result = engine.query(sql)
                return [dict(zip(result.columns, row, strict=True)) for row in result.rows]

            self.slices: dict[str, Rows] = defaultdict(list)
            for row in rows(SLICES):
                self.slices[row["category"]].append(row)
            self.flows = rows("SELECT slice_out, slice_in FROM flow")
            self.of_threads = rows(
                "INCLUDE PERFETTO MODULE slices.with_context;"
                "SELECT ts, dur, category, tid, pid FROM thread_slice"
            )
            self.threads = rows(
                "SELECT DISTINCT track.name, parent.name AS parent,"
                " extract_arg(track.source_arg_set_id, 'sibling_order_rank') AS rank"
                " FROM track LEFT JOIN track AS parent ON parent.id = track.parent_id"
                " WHERE track.name GLOB '[0-9]*. *'"
            )
            self.counters = rows(
                "SELECT t.name, c.ts, CAST(c.value AS INT) AS value FROM counter AS c"
                " JOIN track AS t ON t.id = c.track_id ORDER BY c.ts, c.id"
            )

    def by_id(self, table: str) -> dict[int, dict[str, Any]]:
        return {row[f"{table}_id"]: row for row in self.rows[table]}


@pytest.fixture(scope="module", params=LOGS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    log, folder = LOGS[request.param], tmp_path_factory.mktemp("layout")
    if log.suffixes == [".tar", ".xz"]:
        with tarfile.open(log) as archive:
            archive.extractall(folder, filter="data")
        log = folder / "postgres-neighbour"
    found = Seen(log, folder)
    found.log = request.param  # type: ignore[attr-defined]
    return found


def size(count: int) -> str:
    """As `ls -h` would, with one decimal place if it is not a whole number below 100."""
    value, units = float(count), iter(("KiB", "MiB", "GiB"))
    if value < 1024:
        return f"{count} B"
    while round(value, 1) >= 1024:
        value, unit = value / 1024, next(units)
    return (
        f"{value:.0f} {unit}"
        if value >= 100 or f"{value:.1f}"[-1] == "0"
        else f"{value:.1f} {unit}"
    )


def file_of(row: dict[str, Any]) -> str | None:
    if row["path"]:
        return row["path"].rsplit("/", 1)[-1]
    return f"inode {row['ino']}" if row["ino"] else None


def test_a_bio_is_named_by_its_size_and_file(seen: Seen) -> None:
    syncs, bios = seen.by_id("sync"), seen.by_id("bio")
    named = Counter()
    for drawn in seen.slices["syncline.bio"]:
        bio = bios[drawn["bio_id"]]
        file = file_of(syncs[bio["sync_id"]] if bio["sync_id"] else bio)
        thread = f"{bio['comm'] or ''} {bio['tid']}"
        name = drawn["name"].split(", ")[0]
        word = {"read": "read ", "flush": "flush ", "write": ""}[bio["direction"]]
        if bio["direction"] == "flush":
            # Null for a flush that probes report.
            assert (name, bio["bytes"] or 0) == (word + (file or thread), 0)
        elif bio["bytes"] is not None:
            assert name.startswith(word + size(bio["bytes"]) + " ")
        assert name.endswith(file or thread), (drawn["name"], file, thread)
        named[file is not None] += 1
    if seen.log in ("bg", "ext4"):
        assert named[True] > 10


def test_bios_are_on_the_track_of_their_cause(seen: Seen) -> None:
    bios = seen.by_id("bio")
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for drawn in seen.slices["syncline.bio"]:
        bio = bios[drawn["bio_id"]]
        cause = "sync" if bio["sync_id"] else (bio["comm"] or "").split("/")[0]
        found[drawn["track"].rpartition(": ")[2].partition(",")[0]][cause] += 1
        # The UI shows larger ones as negative numbers.
        assert not isinstance(drawn["address"], int) or 0 <= drawn["address"] < 1 << 63
    assert set(found.pop("bios of syncs", {"sync"})) == {"sync"}
    assert set(found.pop("journal", {"jbd2"})) == {"jbd2"}
    found.pop("bios not fully recorded", None)
    for causes in found.values():
        assert not {"sync", "jbd2"} & set(causes)
    if seen.log == "blktrace":
        assert "writeback" not in found


def waits(seen: Seen) -> Iterator[tuple[str, int]]:
    """Yields each sync with the time until its last request ended, and each call without a request with its length."""
    syncs: dict[int, Rows] = defaultdict(list)
    for row in seen.rows["sync"]:
        if row["dur_ns"] is not None:
            syncs[row["call_sync_id"]].append(row)
    paired = {row["call_sync_id"] for row in seen.rows["sync"]}
    for parts in syncs.values():
        until = max(row["ts_ns"] + row["dur_ns"] for row in parts)
        yield thread(parts[0]), until - min(row["ts_ns"] for row in parts)
    for row in seen.rows["call"]:
        if row["sync_id"] not in paired:
            yield thread(row), row["dur_ns"] or 0


def thread(row: dict[str, Any]) -> str:
    return f"{row['comm'] or 'thread'} {row['tid']}"


def test_threads_are_ordered_by_the_time_that_they_waited(seen: Seen) -> None:
    waited: Counter[str] = Counter()
    for thread, ns in waits(seen):
        waited[thread] += ns
    if seen.log in PROCESSES:
        # They are in the groups of their processes.
        assert seen.threads == []
        return
    places = sorted(seen.threads, key=lambda row: int(row["name"].partition(".")[0]))
    order = [re.split(r"\. | waited ", row["name"])[1] for row in places]
    times = [waited[name] for name in order]
    assert times == sorted(times, reverse=True)
    assert set(order) >= set(waited)
    # The UI sorts those at the top by name, and those in the group by rank.
    assert [row["parent"] for row in places[:6]] == [None] * len(places[:6])
    below = places[6:]
    assert {row["parent"] for row in below} <= {"More threads"}
    assert [row["rank"] for row in below] == sorted(row["rank"] for row in below)


def test_counters_count_what_is_known(seen: Seen) -> None:
    spans = [
        (row["ts_ns"], row["ts_ns"] + row["dur_ns"]) for row in seen.rows["bio"] if row["dur_ns"]
    ]
    lost = [row for row in seen.rows["bio"] if row["incomplete"] == "end"]
    most = max((sum(a <= start < b for a, b in spans) for start, _ in spans), default=0)
    found = [row for row in seen.counters if row["name"].endswith(": all in flight")]
    if found:
        assert found[-1]["value"] == 0
        # A completion is known to be lost when others have overtaken it.
        assert max(row["value"] for row in found) <= most + (16 if lost else 0)
    never = [row for row in seen.counters if row["name"] == "bios with no recorded completion"]
    assert (never[-1]["value"] if never else 0) == len(lost)
    for row in never:
        assert row["value"] == sum(bio["ts_ns"] <= row["ts"] for bio in lost if row["value"])


def test_arrows_lead_from_a_request_to_its_bios(seen: Seen) -> None:
    drawn = {row["id"]: row for rows in seen.slices.values() for row in rows}
    bios = {row["id"]: row for row in seen.slices["syncline.bio"]}
    reached: dict[int, set[int]] = defaultdict(set)
    for flow in seen.flows:
        begin, end = drawn[flow["slice_out"]], flow["slice_in"]
        if "syncline.commit" in (begin["category"], drawn[end]["category"]):
            continue
        if begin["category"] == "syncline.phase":
            assert (begin["name"], end in bios) == ("before submit", True)
            # The request has an arrow to the phase.
            assert {"slice_out": begin["parent_id"], "slice_in": begin["id"]} in seen.flows
            begin = drawn[begin["parent_id"]]
        assert begin["category"] == "syncline.sync"
        if end in bios:
            assert bios[end]["sync_id"] == begin["sync_id"]
            reached[begin["sync_id"]].add(bios[end]["bio_id"])
    for sync in seen.rows["sync"]:
        own = [row for row in seen.rows["bio"] if row["sync_id"] == sync["sync_id"]]
        expected = {row["bio_id"] for row in own}
        if len(own) > 8:
            first = min(own, key=lambda row: (row["ts_ns"], row["bio_id"]))
            last = max(own, key=lambda row: (row["ts_ns"], row["bio_id"]))
            slowest = max(row["dur_ns"] or 0 for row in own)
            assert {first["bio_id"], last["bio_id"]} <= reached[sync["sync_id"]]
            assert len(reached[sync["sync_id"]]) <= 3
            lengths = {row["bio_id"]: row["dur_ns"] for row in own}
            assert slowest in {lengths[bio] for bio in reached[sync["sync_id"]]}
        else:
            assert reached[sync["sync_id"]] == expected


def test_a_request_says_in_words_what_its_columns_say(seen: Seen) -> None:
    syncs = seen.by_id("sync")
    for drawn in seen.slices["syncline.sync"]:
        sync = syncs[drawn["sync_id"]]
        if sync["bytes"] is None:
            assert drawn["amount"] is None
        elif sync["bios"] == 0:
            assert drawn["amount"] == "no bio"
        else:
            number, _, noun = drawn["amount"].partition(" in ")[2].partition(" ")
            assert drawn["amount"].startswith(size(sync["bytes"]))
            assert (int(number), noun) == (sync["bios"], "bio" if sync["bios"] == 1 else "bios")
        parts = ("before_submit_ns", "writeback_ns", "after_complete_ns")
        if any(sync[part] is None for part in parts):
            assert drawn["time"] is None
            continue
        words = [part.split(" ms ") for part in drawn["time"].split(", ")]
        assert [word for _, word in words] == ["before", "data", "after"]
        for (text, _), part in zip(words, parts, strict=True):
            close = 0.051 if abs(sync[part]) >= 1e6 else 0.00051
            assert float(text) == pytest.approx(sync[part] / 1e6, abs=close)


def test_a_call_of_which_nothing_else_is_known_has_one_row(seen: Seen) -> None:
    if seen.log != "strace":
        return
    assert len(seen.slices["syncline.sync"]) == len(seen.rows["sync"]) > 0
    paired = sum(row["sync_id"] is not None for row in seen.rows["call"])
    assert len(seen.slices["syncline.call"]) == len(seen.rows["call"]) - paired


def test_threads_of_known_processes_are_thread_tracks(seen: Seen) -> None:
    """`thread_slice` has each call and each request of a known process with the tid and the pid of its row, and no others."""
    for category, table in (("call", "call"), ("sync", "sync")):
        drawn = seen.slices[f"syncline.{category}"]
        found = Counter(
            (row["ts"], row["tid"], row["pid"])
            for row in seen.of_threads
            if row["category"] == f"syncline.{category}"
        )
        rows = [row for row in seen.rows[table] if row["pid"] is not None]
        # The time of a sync is that of its call.
        at = "ts_ns" if category == "call" else "start_ns"
        known = Counter((row[at], row["tid"], row["pid"]) for row in rows)
        if seen.log in PROCESSES:
            # A call has no slice of its own where that of its request says it all.
            assert found == known if category == "sync" else found <= known
            assert found.total() == len(drawn)
        else:
            assert found == known == Counter()
    if seen.log in PROCESSES:
        assert len(seen.of_threads) > 100
    if seen.log == "bg":
        # The thesis's format does not say the processes.
        assert seen.threads
        assert seen.of_threads == []


def test_the_slowest_syncs_are_at_the_top_where_threads_are_not(seen: Seen) -> None:
    drawn = seen.slices["syncline.slowest"]
    if seen.log not in PROCESSES or not seen.rows["sync"]:
        assert drawn == []
        return
    times = sorted((ns for _, ns in waits(seen) if ns), reverse=True)[:20]
    assert sorted((row["dur"] for row in drawn), reverse=True) == times
    assert {row["track"] for row in drawn} == {"All threads: slowest syncs"}
    starts = {(thread(row), row["ts_ns"]) for row in seen.rows["sync"] + seen.rows["call"]}
    for row in drawn:
        assert (row["name"].partition(": ")[0], row["ts"]) in starts
    lanes: dict[int, int] = defaultdict(int)
    for row in sorted(drawn, key=lambda row: row["ts"]):
        assert row["ts"] >= lanes[row["track_id"]]
        lanes[row["track_id"]] = row["ts"] + row["dur"]
