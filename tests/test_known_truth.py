"""Recordings whose truth the set-up forces: what Syncline says of them is what was set, and what the workload measured."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import known_truth
from tests.coretools import Rows
from tests.known_truth import Case
from tests.reference import phases
from tests.test_phases import assert_sums, by_request

PAGE = 4096
# dm-delay waits in ticks of the kernel (250 a second): up to a tick less than what was set, and less again if the tick at which it
# begins was late, as happens on an emulated CPU.
TICK_NS = 4_000_000
# The clocks of the workload and of the recording differ by the time in which the machine was suspended: not at all. They are
# read one after the other.
CLOCKS_NS = 1_000
SYNCS = ("fsync", "fdatasync", "dsync write")
# Calls that sync whole file systems.
WHOLE = ("sync", "syncfs", "freeze")
CASES = known_truth.names()
WITHOUT_SYNC = ("fua-write", "write-inode-lock", "write-inode-lock-xfs", "write-journal-space")
# btrfs and f2fs write more than the data of the file.
MORE_THAN_DATA = ("postgres", "forced-", "error", "empty-only", "syncs-")

Convert = Callable[[str], Case]


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """Converts a case once for all tests."""
    folder = tmp_path_factory.mktemp("known-truth")
    done: dict[str, Case] = {}

    def one(case: str) -> Case:
        if case not in done:
            done[case] = known_truth.converted(case, folder)
        return done[case]

    return one


def cases(*patterns: str) -> list[str]:
    found = [case for case in CASES if any(Path(case).match(pattern) for pattern in patterns)]
    assert found, patterns
    return found


def made(case: Case, *ops: str) -> Rows:
    """The calls that the workload made."""
    return [row for row in case.truth["calls"] if row["op"] in ops]


def of_workload(case: Case, table: str) -> Rows:
    """The rows of the workload's threads."""
    tids = {row["tid"] for row in case.truth["calls"]}
    return [row for row in case.tables[table] if row["tid"] in tids]


def of_device(case: Case) -> Rows:
    """The bios with data on the device under test."""
    bios = (row for row in case.tables["bio"] if row["direction"] != "flush")
    return [row for row in bios if row["dev"] == case.truth["device"]["dev"]]


def end(row: dict[str, Any]) -> int:
    return int(row["ts_ns"] + row["dur_ns"])


def pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def most_at_once(spans: list[tuple[int, int]]) -> int:
    edges = sorted([(start, 1) for start, _ in spans] + [(stop, -1) for _, stop in spans])
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_nothing_was_lost(convert: Convert, case: str) -> None:
    lost = {row["reason"] for row in convert(case).tables["loss"] if row["severity"] == "loss"}
    # There, the flusher thread still writes when the recording ends.
    assert lost == ({"never_completed"} if case in ("blocked-write", "write-throttled") else set())


@pytest.mark.parametrize("case", CASES)
def test_the_phases_of_each_sync_add_up(convert: Convert, case: str) -> None:
    one = convert(case)
    assert_sums(one.tables)
    events = [event for event in one.events if "ts_ns" in event]
    assert by_request(one.tables["phase"]) == phases.of_tables(one.tables, events)


@pytest.mark.parametrize(
    ("fs", "most"), [("ext4", 0.05), ("xfs", 0.1), ("f2fs", 0.1), ("btrfs", 0.1)]
)
def test_little_of_a_sync_is_not_explained(convert: Convert, fs: str, most: float) -> None:
    """The median of the residue's share of a sync, over the recordings of a file system. The kernel is a stock one."""
    shares = []
    for case in CASES:
        one = convert(case)
        lengths = {
            row["sync_id"]: row["ts_ns"] + row["dur_ns"] - row["start_ns"]
            for row in one.tables["sync"]
            if row["fs"] == fs and None not in (row["start_ns"], row["dur_ns"]) and row["bios"]
        }
        shares += [
            row["dur_ns"] / lengths[row["sync_id"]]
            for row in one.tables["phase"]
            if row["phase"] == "residue" and lengths.get(row["sync_id"])
        ]
    assert len(shares) >= 20
    assert statistics.median(shares) < most


# pgbench measures transactions, not calls.
@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("postgres")])
def test_each_sync_is_the_one_that_was_made(convert: Convert, case: str) -> None:
    """Thread, file, result and time: between the two moments at which the workload read the clock."""
    one = convert(case)
    found = of_workload(one, "sync")
    taken = 0
    for call in one.truth["calls"]:
        inside = [
            row
            for row in found
            if row["tid"] == call["tid"]
            and call["start_ns"] - CLOCKS_NS <= row["ts_ns"]
            and end(row) <= call["end_ns"] + CLOCKS_NS
        ]
        taken += len(inside)
        if call["op"] in WHOLE:
            # A request for each file system; the device under test has one of them.
            assert one.truth["device"]["dev"] in {row["dev"] for row in inside}, call
        elif case == "fua-write":
            # A write with FUA is durable without any sync.
            assert inside == [], call
        elif call["op"] in SYNCS:
            (row,) = inside
            # The recorder has no calls of durable writes.
            assert row["op"] == (None if call["op"] == "dsync write" else call["op"])
            assert row["path"] == call["path"]
            assert row["ret"] == -call["errno"]
            # btrfs and f2fs write by other threads, too.
            assert row["confidence"] == ("inferred" if case.startswith("syncs-") else "exact")
            assert row["incomplete"] is None
        else:
            assert inside == [], call
    assert taken == len(found)
    assert (taken == 0) == (case in WITHOUT_SYNC)


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.startswith(MORE_THAN_DATA)],
)
def test_each_sync_writes_what_was_dirty(convert: Convert, case: str) -> None:
    """In whole blocks of the file system, which are pages or smaller."""
    one = convert(case)
    for call in made(one, "fsync", "fdatasync"):
        (row,) = [
            row
            for row in of_workload(one, "sync")
            if row["tid"] == call["tid"] and call["start_ns"] <= end(row) <= call["end_ns"]
        ]
        assert call["dirty"] <= row["bytes"] <= pages(call["dirty"]), call
        assert (row["bios"] == 0) == (call["dirty"] == 0)


def test_a_recording_without_a_write(convert: Convert) -> None:
    """It does not show that bios were recorded, so their number may be unknown; it is not more than 0."""
    rows = of_workload(convert("empty-only"), "sync")
    assert len(rows) == 4
    assert not any(row["bios"] or row["bytes"] for row in rows)


def test_only_fsync_waits_for_the_journal_after_an_overwrite_in_place(convert: Convert) -> None:
    """It makes the new time of change durable too, which fdatasync leaves out."""
    assert all(row["journal_ns"] > 0 for row in of_workload(convert("fsync-in-place"), "sync"))
    assert all(row["journal_ns"] == 0 for row in of_workload(convert("fdatasync-in-place"), "sync"))


# --- devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("delay-*", "four-*", "forced-*", "group-*"))
def test_a_delayed_device_takes_at_least_its_delay(convert: Convert, case: str) -> None:
    one = convert(case)
    delay = one.truth["device"]["write_ms"] * 1_000_000
    assert delay == 20_000_000
    bios = of_device(one)
    assert len(bios) >= 6
    assert min(row["dur_ns"] for row in bios) >= delay - 2 * TICK_NS
    assert statistics.median(row["dur_ns"] for row in bios) >= delay - TICK_NS


@pytest.mark.parametrize(
    "case",
    cases("null-*", "queue-*", "neighbour-*", "cache*", "no-*", "f*-write", "blocked-*")
    + cases("direct-*", "*-in-place", "small-*", "rebuildable", "rename-*", "postgres*"),
)
def test_a_request_takes_at_least_the_time_that_was_set(convert: Convert, case: str) -> None:
    one = convert(case)
    lengths = [row["device_ns"] for row in of_device(one) if row["dur_ns"] is not None]
    assert len(lengths) >= 6
    assert min(lengths) >= one.truth["device"]["request_us"] * 1000


def in_device(case: Case) -> list[tuple[int, int]]:
    """From issue to completion of each request to the device, as the block layer says."""
    issued: dict[int, int] = {}
    spans = []
    for event in case.events:
        if event.get("dev") == case.truth["device"]["dev"]:
            if event["event"] == "block_rq_issue":
                issued[event["sector"]] = event["ts_ns"]
            elif event["event"] == "block_rq_complete":
                spans.append((issued.pop(event["sector"]), event["ts_ns"]))
    assert not issued
    return spans


@pytest.mark.parametrize("case", cases("queue-*", "neighbour-*"))
def test_the_queue_is_never_deeper_than_was_set(convert: Convert, case: str) -> None:
    one = convert(case)
    depth = one.truth["device"]["queue_depth"]
    most = most_at_once(in_device(one))
    assert most <= depth
    # The neighbour has more threads than the device takes requests.
    if case.startswith("queue-"):
        assert most == depth


@pytest.mark.parametrize("case", cases("queue-*"))
def test_a_bio_that_waits_for_its_turn_waits_for_those_of_others(
    convert: Convert, case: str
) -> None:
    """Between submit and issue of a sync's bio, the device has other requests nearly all of the time.

    Not all of it: a thread that waits for a free request has to wake up first, and others may be faster.
    """
    one = convert(case)
    depth = one.truth["device"]["queue_depth"]
    spans = in_device(one)
    waited = [row for row in of_device(one) if row["sync_id"] is not None]
    assert waited
    for row in waited:
        begun, issued = row["ts_ns"], row["ts_ns"] + row["queue_ns"]
        busy = sum(max(0, min(stop, issued) - max(start, begun)) for start, stop in spans)
        assert 0.6 * row["queue_ns"] * depth <= busy <= row["queue_ns"] * depth, row


# --- phases --------------------------------------------------------------------------------------


def phases_of(case: Case, sync: dict[str, Any]) -> dict[str, int]:
    """The time of each phase of a request, in ns."""
    phases: Counter[str] = Counter()
    for row in case.tables["phase"]:
        if row["sync_id"] == sync["sync_id"]:
            phases[row["phase"]] += row["dur_ns"]
    return dict(phases)


def with_cpu_wait(phases: dict[str, int], phase: str) -> int:
    """A thread that is woken has to wait for a CPU before it sees that what it waited for is over."""
    return phases.get(phase, 0) + phases.get("cpu wait", 0)


@pytest.mark.parametrize("case", cases("null-*", "*-in-place", "no-*", "cache", "cache-fua"))
def test_one_thread_waits_for_its_bio_and_then_for_two_of_the_journal(
    convert: Convert, case: str
) -> None:
    """Each sync writes one bio. Its commit writes the blocks of the transaction and, after them, the block that ends it."""
    one = convert(case)
    request = one.truth["device"]["request_us"] * 1000
    has_cache = one.truth["device"]["cache_mib"] > 0 and case != "no-barrier"
    rows = of_workload(one, "sync")
    assert len(rows) >= 6
    for row in rows:
        phases = phases_of(one, row)
        assert with_cpu_wait(phases, "device") >= request
        if row["journal_ns"]:
            assert phases["commit logging"] >= 2 * request
        else:
            assert not [phase for phase in phases if "commit" in phase]
            # Without a commit, the thread flushes the cache itself.
            if has_cache:
                assert with_cpu_wait(phases, "flush") >= request
            else:
                assert phases.get("flush", 0) < request / 4
        # One thread, so no commit was running before.
        assert "earlier commit" not in phases


def test_syncs_at_the_same_time_wait_for_the_commit_before_theirs(convert: Convert) -> None:
    for case in ("group-4", "group-staggered"):
        one = convert(case)
        found = [phases_of(one, row).get("earlier commit", 0) for row in of_workload(one, "sync")]
        assert max(found) >= 10_000_000
    one = convert("delay-ext4")
    assert not [row for row in of_workload(one, "sync") if "earlier commit" in phases_of(one, row)]


# --- neighbours ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", cases("queue-*", "neighbour-direct", "neighbour-patched", "postgres-neighbour")
)
def test_a_neighbour_that_writes_directly_is_named(convert: Convert, case: str) -> None:
    one = convert(case)
    neighbour = one.truth["neighbour"]
    bios = [row for row in of_device(one) if row["comm"] == neighbour["comm"]]
    assert {row["tid"] for row in bios} == set(neighbour["tids"])
    assert {row["pid"] for row in bios} == {neighbour["pid"]}
    assert sum(row["bytes"] for row in bios) == neighbour["bytes"]
    assert all(row["sync_id"] is None for row in bios)
    writes = sorted(neighbour["writes_start_dur_ns"])
    assert len(bios) == len(writes)
    for row, (start, length) in zip(
        sorted(bios, key=lambda row: row["ts_ns"]), writes, strict=True
    ):
        if len(neighbour["tids"]) == 1:
            assert start - CLOCKS_NS <= row["ts_ns"]
            assert end(row) <= start + length + CLOCKS_NS


def test_a_neighbour_whose_pages_a_flusher_thread_writes(convert: Convert) -> None:
    one = convert("neighbour-buffered")
    neighbour = one.truth["neighbour"]
    bios = [row for row in of_device(one) if row["sync_id"] is None]
    # Without folios: metadata.
    flushed = [row for row in bios if row["comm"].startswith("kworker/") and row["folios"]]
    assert 0 < sum(row["bytes"] for row in flushed) <= neighbour["bytes"]
    assert min(row["ts_ns"] for row in flushed) >= neighbour["start_ns"]
    assert not [row for row in bios if row["comm"] == neighbour["comm"]]


def test_without_a_neighbour_nobody_else_writes(convert: Convert) -> None:
    one = convert("neighbour-none")
    assert "neighbour" not in one.truth
    others = {row["comm"] for row in of_device(one) if row["sync_id"] is None}
    assert all(comm.startswith("jbd2/") for comm in others)


# --- commits -------------------------------------------------------------------------------------


def commits(case: Case) -> Rows:
    return [
        row
        for row in case.tables["journal"]
        if row["dev"] == case.truth["device"]["dev"] and row["incomplete"] is None
    ]


@pytest.mark.parametrize("case", cases("forced-*"))
def test_a_forced_commit_is_at_the_known_moment(convert: Convert, case: str) -> None:
    """The fdatasyncs of the other thread need no commit, so each commit is during a call that forces one."""
    one = convert(case)
    forcing = made(one, "fsync", "sync", "syncfs", "freeze", "thaw")
    found = commits(one)
    for row in found:
        assert [
            call
            for call in forcing
            if call["start_ns"] - CLOCKS_NS <= row["ts_ns"] <= call["end_ns"] + CLOCKS_NS
        ], row
    for call in forcing:
        if call["op"] != "thaw":
            assert [
                row
                for row in found
                if call["start_ns"] <= row["ts_ns"] and end(row) <= call["end_ns"] + TICK_NS
            ], call


@pytest.mark.parametrize("case", cases("group-4", "group-staggered"))
def test_a_group_of_syncs_shares_commits(convert: Convert, case: str) -> None:
    one = convert(case)
    threads, rounds = (one.truth["options"][key] for key in ("threads", "syncs"))
    found = commits(one)
    # At least one in each round, and fewer than syncs.
    assert rounds <= len(found) < threads * rounds
    of_commit = Counter(row["transaction_id"] for row in one.tables["wait"])
    assert set(of_commit) <= {row["transaction_id"] for row in found}
    assert max(of_commit.values()) >= 2


# --- durability ----------------------------------------------------------------------------------


def flushes(case: Case) -> Iterator[dict[str, Any]]:
    """Requests to the device that begin with a flush."""
    for event in case.events:
        if (
            event["event"] == "block_rq_issue"
            and event["dev"] == case.truth["device"]["dev"]
            and event["rwbs"].startswith("F")
        ):
            yield event


# Whether each sync makes the device flush its cache.
FLUSHES = {
    **dict.fromkeys(["cache", "cache-fua", "cache-xfs", "cache-fua-xfs", "cache-in-place"], True),
    **{"flush-write": True, "direct-no-sync": True, "fua-write": False},
    **{"no-cache": False, "no-barrier": False},
}


@pytest.mark.parametrize(("case", "flushed"), FLUSHES.items())
def test_flushes_are_issued_where_the_device_needs_them(
    convert: Convert, case: str, flushed: bool
) -> None:
    """A device without a volatile cache needs none, and a file system without barriers asks for none."""
    one = convert(case)
    syncs = len(made(one, *SYNCS))
    assert syncs >= 1
    found = list(flushes(one))
    if flushed:
        assert len(found) >= syncs
    else:
        assert found == []


def test_a_durable_write_with_fua_is_a_bio(convert: Convert) -> None:
    one = convert("fua-write")
    writes = made(one, "dsync write")
    bios = sorted(of_device(one), key=lambda row: row["ts_ns"])
    bios = [row for row in bios if row["tid"] == writes[0]["tid"]]
    assert [row["bytes"] for row in bios] == [PAGE] * len(writes)
    for row, call in zip(bios, writes, strict=True):
        assert call["start_ns"] <= row["ts_ns"]
        assert end(row) <= call["end_ns"]
    (name,) = {
        event["rwbs"]
        for event in one.events
        if event["event"] == "block_rq_issue" and event["tid"] == writes[0]["tid"]
    }
    assert "F" in name[1:], "not a write with FUA"


def test_a_flush_of_the_syncing_thread_takes_the_time_of_a_request(convert: Convert) -> None:
    """An overwrite in place needs no commit, so fdatasync flushes itself."""
    one = convert("cache-in-place")
    for row in of_workload(one, "sync"):
        assert row["journal_ns"] == 0
        assert row["flush_ns"] >= one.truth["device"]["request_us"] * 1000


# --- errors --------------------------------------------------------------------------------------


def test_each_descriptor_hears_of_an_error_once(convert: Convert) -> None:
    one = convert("error")
    assert [row["errno"] for row in made(one, "fdatasync")] == [0, 5, 0, 5, 0, 0, 0]
    rows = sorted(of_workload(one, "sync"), key=lambda row: row["ts_ns"])
    assert [row["ret"] for row in rows] == [0, -5, 0, -5, 0, 0, 0]
    (failed,) = [row for row in one.tables["bio"] if row["error"]]
    assert failed["error"] == -5
    assert failed["sync_id"] == rows[1]["sync_id"]
    assert failed["bytes"] == PAGE


# --- writes that wait ----------------------------------------------------------------------------


def test_a_write_that_takes_long_has_events_of_its_pauses(convert: Convert) -> None:
    """The kernel says how long write() pauses because too much is dirty: in ms, before each pause, in ticks."""
    one = convert("blocked-write")
    waits = [row for row in one.events if row["event"] == "balance_dirty_pages"]
    taken, long = 0, 0
    for call in made(one, "write"):
        inside = [row for row in waits if call["start_ns"] <= row["ts_ns"] <= call["end_ns"]]
        assert {row["tid"] for row in inside} <= {call["tid"]}
        taken += len(inside)
        pauses = sum(row["pause"] for row in inside) * 1_000_000
        length = call["end_ns"] - call["start_ns"]
        assert pauses <= length + len(inside) * TICK_NS
        if length > 100_000_000:
            long += 1
            assert pauses >= 0.6 * length
    assert taken == len(waits)
    assert long >= 1


# --- PostgreSQL ----------------------------------------------------------------------------------


def wal_syncs(case: Case) -> Rows:
    return [
        row for row in case.tables["sync"] if row["op"] == "fdatasync" and "/pg_wal/" in row["path"]
    ]


@pytest.mark.parametrize("case", cases("postgres*"))
def test_each_transaction_contains_a_sync_of_the_wal(convert: Convert, case: str) -> None:
    """pgbench measures its transactions by the time of day, in us."""
    one = convert(case)
    clocks = one.manifest["after"]["clocks_ns"]
    to_boottime = clocks["boottime"] - clocks["realtime"]
    syncs = wal_syncs(one)
    # Not all syncs of the WAL are of transactions.
    assert len(syncs) >= one.truth["wal_syncs"] >= 1
    options = one.truth["options"]
    transactions = one.truth["transactions_client_us_end_us"]
    assert len(transactions) == options["threads"] * options["syncs"]
    for _, latency, stop in transactions:
        until = stop * 1000 + to_boottime
        begun = until - latency * 1000
        # The clocks are read one after the other.
        assert [row for row in syncs if begun - 1e6 <= row["ts_ns"] and end(row) <= until + 1e6]


def test_the_wal_waits_for_the_neighbour(convert: Convert) -> None:
    """One request at a time: what the WAL waits for in the queue is what the neighbour has in the device."""
    one = convert("postgres-neighbour")
    bios = of_device(one)
    spans = [
        (row["ts_ns"] + row["queue_ns"], end(row))
        for row in bios
        if row["comm"] == one.truth["neighbour"]["comm"]
    ]
    of_wal = {row["sync_id"] for row in wal_syncs(one)}
    waited = cost = 0
    for row in bios:
        if row["sync_id"] in of_wal:
            begun, issued = row["ts_ns"], row["ts_ns"] + row["queue_ns"]
            waited += row["queue_ns"]
            cost += sum(max(0, min(stop, issued) - max(start, begun)) for start, stop in spans)
    assert waited > 0
    assert 0.5 * waited < cost <= waited


def test_the_wal_spends_the_time_of_the_neighbour_in_the_queue(convert: Convert) -> None:
    def queued(case: Case) -> float:
        syncs = wal_syncs(case)
        return sum(phases_of(case, row).get("queue", 0) for row in syncs) / len(syncs)

    assert queued(convert("postgres-neighbour")) > 5 * queued(convert("postgres"))
