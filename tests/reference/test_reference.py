"""Checks the reference and the generator against each other, and the reference against recorded logs.

Expected numbers are counted by hand, known from the recorded workload (50 files of one page each),
or counted by a plain search in the log. None of them is output of the reference.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import assert_same, core

from . import badinputs, loggen, repeats, thesis

DATA = Path(__file__).resolve().parent.parent / "data" / "thesis"
RECORDINGS = sorted(path.name for path in DATA.glob("*.log*"))


def recording(name: str) -> bytes:
    data = (DATA / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def log(*lines: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def read(*lines: str, **options: str) -> thesis.Tables:
    """Returns the tables of a log of a few lines. Asserts that the core writes the same tables."""
    tables = thesis.read(log(*lines), **options)
    with tempfile.TemporaryDirectory() as folder:
        assert_same(tables, core(Path(folder), log(*lines), source="bpftrace", **options))
    return tables


def counts(tables: thesis.Tables) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables.loss}


def may_begin_within_a_bio(tables: thesis.Tables) -> bool:
    starts = {row["sync_id"] for row in tables.sync if row["incomplete"] == "start"}
    return any(row["bytes"] is None and row["sync_id"] in starts for row in tables.bio)


def check_invariants(tables: thesis.Tables, events: list[thesis.Event]) -> None:
    """Checks that every event is used or counted, and that bytes are conserved (docs/reference/pairing.md)."""
    kinds = Counter(event.kind for event in events)
    folios = [event for event in events if event.kind == "folio"]
    bytes_of_folios = sum(event.fields["len"] for event in folios)
    for column, total in (("bytes", bytes_of_folios), ("folios", kinds["folio"])):
        known = sum(row[column] or 0 for row in tables.bio)
        # The figures of a bio that the log may begin within are null, and those of one with a torn folio.
        is_torn = any(
            row["bytes"] is None and row["confidence"] == "inferred" for row in tables.bio
        )
        is_partial = is_torn or may_begin_within_a_bio(tables)
        assert known <= total if is_partial else known == total
    assert len([row for row in tables.bio if row["incomplete"] != "start"]) == kinds["submit"]
    assert len(tables.call) == kinds["call"]
    started = [row for row in tables.sync if row["start_ns"] is not None]
    assert len(started) + tables.count("duplicate_start") == kinds["start"]
    # A request without an id is call-only.
    ended = [row for row in tables.sync if row["ret"] is not None and row["id"] is not None]
    assert len(ended) + tables.count("duplicate_end") == kinds["end"]
    in_flight = [row for row in tables.bio if row["incomplete"] == "end"]
    assert tables.count("never_completed") == len(in_flight)
    submitted = kinds["submit"] - len(in_flight)  # the other completions had no submit
    assert submitted <= kinds["complete"] - tables.count("unmatched_complete")

    bios_of: dict[int, list[thesis.Row]] = {}
    for row in tables.bio:
        bios_of.setdefault(row["sync_id"], []).append(row)
    last_end: dict[int, int] = {}
    for row in sorted(started, key=lambda row: row["start_ns"]):
        bios = bios_of.get(row["sync_id"], [])
        # A bio without a folio in the log is of unknown size.
        for column in ("bytes", "folios"):
            assert row[column] is None or row[column] == sum(bio[column] for bio in bios)
        assert row["bios"] in (None, len(bios))
        if row["dur_ns"] is None:
            continue
        if row["tid"] is not None:  # threads of one process may sync concurrently
            assert row["start_ns"] >= last_end.get(row["tid"], 0)
            last_end[row["tid"]] = row["ts_ns"] + row["dur_ns"]
        if row["incomplete"] is None and bios and row["after_complete_ns"] is not None:
            phases = row["before_submit_ns"] + row["writeback_ns"] + row["after_complete_ns"]
            assert phases == row["ts_ns"] + row["dur_ns"] - row["start_ns"]


def parsed(data: bytes, time_unit: str = "ns") -> list[thesis.Event]:
    return thesis.parse(data, thesis.Losses("log"), time_unit)[0]


def used(data: bytes) -> list[thesis.Event]:
    """The events of a log in the order of time, without those that a part of it holds again."""
    return repeats.without(parsed(data), names_threads=True)[0]


# ---------------------------------------------------------------- recordings


@pytest.mark.parametrize("name", RECORDINGS)
def test_tables_of_a_recording_match_counts_of_its_lines(name: str) -> None:
    data = recording(name)

    def count(pattern: bytes) -> int:
        return len(re.findall(pattern, data, re.MULTILINE))

    tables = thesis.read(data)
    assert len(tables.sync) == count(rb" start id \d+ start ")
    assert len(tables.call) == count(rb"^\d+ \d+ \S+ f?(data|m)?sync$")
    assert sum(row["ret"] is not None for row in tables.sync) == count(rb" exit id ")
    assert len(tables.bio) == count(rb" bio_submit id ")
    complete = [row for row in tables.bio if row["incomplete"] is None]
    assert len(complete) + tables.count("unmatched_complete") == count(rb" bio_complete bio ")
    lengths = [
        int(length) for length in re.findall(rb" bio_add_folio .* len (\d+)$", data, re.MULTILINE)
    ]
    assert sum(row["bytes"] for row in tables.bio) == sum(lengths)
    assert sum(row["folios"] for row in tables.bio) == len(lengths)
    background = re.findall(rb" bio_add_folio id 0 .* len (\d+)$", data, re.MULTILINE)
    assert sum(row["bytes"] for row in tables.sync) == sum(lengths) - sum(map(int, background))
    with_data = set(re.findall(rb" bio_add_folio id (\d+) ", data)) - {b"0"}
    assert {row["id"] for row in tables.sync if row["bios"]} == set(map(int, with_data))
    paths = Counter(re.findall(rb" path (.*)$", data, re.MULTILINE))
    assert Counter(row["path"].encode() for row in tables.sync) == paths
    assert tables.lines == data.count(b"\n")
    assert tables.count("unparsed_line") == 0
    check_invariants(tables, parsed(data))
    assert thesis.read_file(DATA / name).sync == tables.sync


# requests, bios, bytes and losses that the workload and the recorder produced
WORKLOADS = {
    "small1.log": (50, 50, 50 * 4096, {}),
    "small4.log": (100, 100, 100 * 4096, {"never_completed": 15}),
    "small4-slowdisk.log": (100, 100, 100 * 4096, {}),
    "small4-torn.log": (100, 100, 100 * 4096, {"unmatched_complete": 1, "end_missing": 1}),
    "parallel4.log": (80, 80, 80 * 4096, {"never_completed": 1}),
    "empty.log": (51, 1, 4096, {}),
    "msync.log": (30, 59, 59 * 4096, {}),
    "odsync.log": (30, 30, 30 * 4096, {}),
    "append.log": (50, 51, 51 * 4096, {}),
    "rename.log": (40, 20, 20 * 4096, {}),
    "rename-aborted.log": (14, 7, 7 * 4096, {}),
    "unlinked.log": (10, 10, 10 * 4096, {}),
    "uring.log": (49, 49, 49 * 4096, {}),
    "sqlite_rj_full.log": (124, 111, 187 * 4096, {}),
    "sqlite_wal_full.log": (39, 69, 77 * 4096, {}),
    "sync.log": (0, 74, 2152 * 4096, {"never_completed": 36}),
    "bg.log.gz": (7, 980, 34109 * 4096, {"never_completed": 198}),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recording_has_the_requests_of_its_workload(name: str) -> None:
    requests, bios, size, losses = WORKLOADS[name]
    tables = thesis.read(recording(name))
    assert len(tables.sync) == requests
    assert len(tables.bio) == bios
    assert sum(row["bytes"] for row in tables.bio) == size
    assert counts(tables) == losses


def test_requests_of_small1_have_one_page_and_one_bio_each() -> None:
    tables = thesis.read(recording("small1.log"))
    for number, row in enumerate(tables.sync):
        assert (row["bytes"], row["folios"], row["bios"], row["ranges"]) == (4096, 1, 1, 1)
        assert (row["first_offset"], row["last_offset"]) == (0, 4096)
        assert (row["op"], row["datasync"], row["ret"]) == ("fsync", False, 0)
        assert row["path"] == f"/run/mnt/s1/small-0-{number:04}"
        assert (row["confidence"], row["incomplete"]) == ("exact", None)
        assert 0 < row["writeback_ns"] < row["dur_ns"] == row["syscall_ns"]


def test_first_request_of_small1_has_the_times_of_its_lines() -> None:
    lines = recording("small1.log").decode().split("\n")[2:]
    times = [int(line.split()[0]) for line in lines[:12] if not line.startswith(" ")][:6]
    call, start, _, submit, complete, end = times
    row = thesis.read(recording("small1.log")).sync[0]
    assert (row["ts_ns"], row["start_ns"], row["dur_ns"]) == (call, start, end - call)
    assert row["writeback_ns"] == complete - submit
    assert row["before_submit_ns"] == submit - start
    assert row["after_complete_ns"] == end - complete


def test_threads_of_parallel4_write_each_others_pages() -> None:
    rows = thesis.read(recording("parallel4.log")).sync
    assert {row["path"] for row in rows} == {"/run/mnt/parallel.dat"}
    assert Counter(row["tid"] for row in rows) == {506: 20, 507: 20, 508: 20, 509: 20}
    assert sum(row["bios"] == 0 for row in rows) == 3  # ids without a folio line
    assert all(row["writeback_ns"] == 0 for row in rows if row["bios"] == 0)
    assert sum(row["incomplete"] == "bio" for row in rows) == 1


def test_lost_completions_of_small4_are_reported_and_not_guessed() -> None:
    tables = thesis.read(recording("small4.log"))
    for row in tables.sync:
        assert row["dur_ns"] is not None  # start and end are in the log
        assert (row["incomplete"] == "bio") == (row["writeback_ns"] is None)
    assert Counter(row["incomplete"] for row in tables.sync) == {None: 85, "bio": 15}
    # No completion was paired with the wrong bio: each arrives within 4 ms, reuse of an address
    # takes longer.
    assert max(row["dur_ns"] for row in tables.bio if row["dur_ns"] is not None) < 4_000_000


def test_torn_end_makes_request_68_incomplete() -> None:
    # The recorder tore its end into `bio_complete bio 0x44`.
    tables = thesis.read(recording("small4-torn.log"))
    incomplete = [row for row in tables.sync if row["incomplete"]]
    assert [(row["id"], row["incomplete"]) for row in incomplete] == [(68, "end")]
    row = incomplete[0]
    assert (row["dur_ns"], row["ret"], row["writeback_ns"], row["after_complete_ns"]) == (None,) * 4
    assert (row["bytes"], row["before_submit_ns"]) == (4096, 9037492582 - 9037389758)
    lost = {row["reason"]: row for row in tables.loss}
    assert lost["unmatched_complete"]["example"].endswith(
        ":719: 9043876508 161 wl bio_complete bio 0x44"
    )
    assert lost["unmatched_complete"]["first_ts_ns"] == 9043876508


def test_directory_syncs_of_rename_aborted_have_no_bio() -> None:
    rows = thesis.read(recording("rename-aborted.log")).sync
    assert all(row["incomplete"] is None for row in rows)
    directories = [row for row in rows if row["path"] == "/run/mnt/cfg"]
    assert len(directories) == 7
    assert all((row["bios"], row["bytes"], row["writeback_ns"]) == (0, 0, 0) for row in directories)


def test_sqlite_requests_have_stack_and_op() -> None:
    rows = thesis.read(recording("sqlite_rj_full.log")).sync
    assert {row["op"] for row in rows} == {"fdatasync"}
    assert all(row["datasync"] for row in rows)
    assert rows[0]["stack"] == "__internal_syscall_cancel"
    rows = thesis.read(recording("sqlite_wal_full.log")).sync
    assert rows[4]["stack"] == "0x100000;__internal_syscall_cancel"


def test_requests_without_a_call_begin_at_their_start() -> None:
    for name in ("uring.log", "odsync.log"):
        for row in thesis.read(recording(name)).sync:
            assert row["op"] is row["stack"] is row["syscall_ns"] is None
            assert row["ts_ns"] == row["start_ns"]


def test_sync_log_has_only_background_bios() -> None:
    tables = thesis.read(recording("sync.log"))
    assert tables.sync == tables.call == []
    assert {(row["origin"], row["id"]) for row in tables.bio} == {("background", 0)}
    assert (
        {row["sync_id"] for row in tables.bio}
        == {row["confidence"] for row in tables.bio}
        == {None}
    )


def test_path_of_an_unlinked_file_keeps_its_space() -> None:
    rows = thesis.read(recording("unlinked.log")).sync
    assert [r["path"] for r in rows] == [f"/run/mnt/un linked-{i}.dat (deleted)" for i in range(10)]


# ---------------------------------------------------------------- one line


def event(line: str) -> tuple[str, str, dict[str, object]] | None:
    parsed_event = thesis.parse_line(line.encode())
    if parsed_event is None:
        return None
    return parsed_event.comm, parsed_event.kind, parsed_event.fields


@pytest.mark.parametrize(
    "comm",
    [
        "wl",
        "exit id 3",
        "a fsync",
        "fsync exit",
        "x fsync b",
        "x start id 1",
        "x bio_submit b",
        "5 6 wl fsync",
        "",
        " ",
        "15 bytes of it!",
    ],
)
def test_comm_ends_where_the_event_fits(comm: str) -> None:
    assert len(comm) <= 15
    bio = {"id": 7, "bio": 0xFF}
    start = {"id": 7, "start": 0, "end": 9, "datasync": True, "path": "/a fsync"}
    for tail, kind, fields in (
        ("fsync", "call", {"op": "fsync"}),
        ("sys_enter_msync fd 3", "call", {"op": "msync", "fd": "3"}),
        ("fsync exit ret 0", "call_exit", {"op": "fsync", "ret": 0}),
        ("fsync ret 0", "call_exit", {"op": "fsync", "ret": 0}),
        ("sync_file_range_exit", "call_exit", {"op": "sync_file_range"}),
        ("exit_sync ret -5", "call_exit", {"op": "sync", "ret": -5}),
        ("start id 7 start 0 end 9 datasync 1 path /a fsync", "start", start),
        ("sync_start id 7 start 0 end 9 datasync 1 path /a fsync", "start", start),
        ("bio_add_folio id 7 bio 0xff start 8 len 512", "folio", bio | {"start": 8, "len": 512}),
        ("bio_submit id 7 sector 5 bio 0xff", "submit", bio | {"sector": 5}),
        ("bio_complete bio 0xff", "complete", {"bio": 255}),
        ("exit id 7 ret -30", "end", {"id": 7, "ret": -30}),
        ("sync_end id 7 ret 0", "end", {"id": 7, "ret": 0}),
    ):
        assert event(f"1000 5 {comm} {tail}") == (comm, kind, fields)


def test_path_is_the_rest_of_the_line() -> None:
    for path in ("/a b/fsync start id 1", "/x path /y", " ", "", "start id 1 start 0", "/t "):
        line = f"1 5 wl start id 1 dev 254,16 ino 9 start 0 end -1 datasync 0 path {path}"
        parsed_event = event(line)
        assert parsed_event is not None
        fields = parsed_event[2]
        assert fields["path"] == path
        assert (fields["dev"], fields["ino"], fields["end"]) == ("254,16", 9, -1)


def test_frame_name_is_found_in_all_styles() -> None:
    for line, name in {
        "        __syscall_cancel_arch+46": "__syscall_cancel_arch",
        "        0x7ffff7df1ca8": "0x7ffff7df1ca8",
        "\t768c __GI_fdatasync+60 (/usr/lib64/libc.so.6)": "__GI_fdatasync",
        "  44b1   main+545    (/usr/bin/my app (1))": "main",
        "\t7f12 0x7f12 ([unknown])": "0x7f12",
        "\t7f12 [unknown] (/usr/lib/libsqlite3.so.0)": "[libsqlite3.so.0]",
        "        a::b(int, char const*)+12": "a::b(int, char const*)",
        "\t7f12 a::f(int) const+1 (/lib/x.so)": "a::f(int) const",
        "        operator++3": "operator+",
        "        a;b+1": "a:b",
    }.items():
        assert thesis.frame_name(line.encode()) == name


# ---------------------------------------------------------------- pairing rules


FOLIO = "bio_add_folio id {0} bio 0x{1} start {2} len 4096"


def start(t: int, tid: int, id: int) -> str:
    return f"{t} {tid} wl start id {id} start 0 end 9 datasync 0 path /f{id}"


def test_example_log_of_the_docs_gives_these_rows() -> None:
    # The log of docs/reference/formats.md; every number below is counted from it.
    tables = read(
        "TIME PID COMM EVENT DATA",
        "Attaching 8 probes...",
        "41753514022 559 wl fsync",
        "        __syscall_cancel_arch+46",
        "        save_small+74",
        "41753756756 559 wl start id 420 start 0 end 9223372036854775807 datasync 0 path /run/s-0",
        "41754134953 559 wl bio_add_folio id 420 bio 0xff11000000896c00 start 0 len 4096",
        "41754197016 559 wl bio_submit id 420 bio 0xff11000000896c00",
        "41756190615 0 swapper/0 bio_complete bio 0xff11000000896c00",
        "41784516317 559 wl exit id 420 ret 0",
    )
    assert tables.sync == [
        {
            "ts_ns": 41753514022,
            "dur_ns": 31002295,
            "tid": 559,
            "pid": None,
            "comm": "wl",
            "process": None,
            "cgroup": None,
            "op": "fsync",
            "datasync": False,
            "path": "/run/s-0",
            "container_path": None,
            "dev": None,
            "ino": None,
            "fs": "ext4",
            "id": 420,
            "ret": 0,
            "syscall_ns": 31002295,
            "writeback_ns": 1993599,
            "before_submit_ns": 440260,
            "after_complete_ns": 28325702,
            "journal_ns": None,
            "flush_ns": None,
            "other_ns": None,
            "cpu_wait_ns": None,
            "bytes": 4096,
            "folios": 1,
            "bios": 1,
            "ranges": 1,
            "first_offset": 0,
            "last_offset": 4096,
            "stack": "save_small;__syscall_cancel_arch",
            "confidence": "exact",
            "incomplete": None,
            "sync_id": 1,
            "start_ns": 41753756756,
            "call_sync_id": 1,
        }
    ]
    assert tables.bio == [
        {
            "bio_id": 1,
            "sync_id": 1,
            "id": 420,
            "ts_ns": 41754197016,
            "dur_ns": 1993599,
            "queue_ns": None,
            "device_ns": None,
            "error": None,
            "bio": "0xff11000000896c00",
            "dev": None,
            "sector": None,
            "bytes": 4096,
            "folios": 1,
            "ranges": 1,
            "first_offset": 0,
            "last_offset": 4096,
            "tid": 559,
            "pid": None,
            "comm": "wl",
            "origin": "sync",
            "confidence": "exact",
            "incomplete": None,
        }
    ]
    assert tables.call == [
        {
            "call_id": 1,
            "ts_ns": 41753514022,
            "dur_ns": 31002295,
            "tid": 559,
            "pid": None,
            "comm": "wl",
            "op": "fsync",
            "ret": None,
            "stack": "save_small;__syscall_cancel_arch",
            "sync_id": 1,
            "unmatched": False,
        }
    ]
    assert tables.loss == []


def test_listing_of_the_thesis_gives_this_row() -> None:
    tables = read(
        "252 53 bio_aof fdatasync",
        "\t768c __GI_fdatasync+60 (/usr/lib64/libc.so.6)",
        "\t44b1 bioProcessBackgroundJobs+545 (/usr/bin/valkey-server)",
        "\te168 start_thread+952 (/usr/lib64/libc.so.6)",
        "\t214c __GI___clone3+44 (/usr/lib64/libc.so.6)",
        "294 53 bio_aof start id 8 start 0 end 4294967295 datasync 1 path /var/appendonly.aof",
        "313 53 bio_aof bio_add_folio id 8 bio 0x762 start 1424 len 4096",
        "313 53 bio_aof bio_add_folio id 8 bio 0x762 start 5520 len 4096",
        "321 53 bio_aof bio_submit id 8 bio 0x762",
        "661 0 swapper/26 bio_complete bio 0x762",
        "856 53 bio_aof exit id 8 ret 0",
        time_unit="us",
    )
    (row,) = tables.sync
    assert (row["ts_ns"], row["dur_ns"], row["writeback_ns"]) == (252_000, 604_000, 340_000)
    assert (row["bytes"], row["ranges"], row["first_offset"], row["last_offset"]) == (
        8192,
        1,
        1424,
        9616,
    )
    assert row["stack"] == "__GI___clone3;start_thread;bioProcessBackgroundJobs;__GI_fdatasync"


def test_syscall_exit_ends_its_call_only() -> None:
    tables = read(
        "100 5 wl fsync",
        start(110, 5, 1),
        "150 5 wl exit id 1 ret -5",
        "160 5 wl fsync_exit ret -5",
        "200 5 wl fdatasync",  # on another file system
        "250 5 wl exit_fdatasync ret 0",
        start(300, 5, 2),  # an O_DSYNC write: the previous call has returned
        "320 5 wl exit id 2 ret 0",
        "330 6 wl sync exit",
    )
    first, second = tables.sync
    assert (first["dur_ns"], first["syscall_ns"], first["ret"]) == (50, 60, -5)
    assert (second["op"], second["ts_ns"], second["syscall_ns"]) == (None, 300, None)
    assert [(c["dur_ns"], c["ret"], c["unmatched"]) for c in tables.call] == [
        (60, -5, False),
        (50, 0, True),
    ]
    assert counts(tables) == {"unmatched_exit": 1, "unmatched_call": 1}


def test_new_call_closes_the_previous_call_of_its_thread() -> None:
    tables = read("100 5 wl fsync", "200 5 wl msync", start(210, 5, 1), "220 5 wl exit id 1 ret 0")
    assert tables.sync[0]["op"] == "msync"
    assert [call["unmatched"] for call in tables.call] == [True, False]


def test_new_start_means_that_the_previous_end_was_lost() -> None:
    tables = read(start(100, 5, 1), start(200, 5, 2), "300 5 wl exit id 2 ret 0")
    assert [row["incomplete"] for row in tables.sync] == ["end", None]
    assert counts(tables) == {"end_missing": 1}


def test_request_without_start_opens_at_its_first_event_with_an_inferred_call() -> None:
    tables = read(
        "100 5 wl fsync",
        "120 5 wl " + FOLIO.format(1, "a", 0),
        "130 5 wl bio_submit id 1 bio 0xa",
        "140 0 x bio_complete bio 0xa",
        "150 5 wl exit id 1 ret 0",
        "200 6 wl exit id 2 ret 0",
        "300 6 wl exit id 2 ret 0",
    )
    first, second = tables.sync
    assert (first["ts_ns"], first["dur_ns"], first["start_ns"]) == (100, None, None)
    assert (first["incomplete"], first["confidence"], first["op"]) == ("start", "inferred", "fsync")
    assert (first["syscall_ns"], first["writeback_ns"], first["before_submit_ns"]) == (None,) * 3
    # As its start is missing, a folio before the first one may be too.
    assert (first["after_complete_ns"], first["bytes"]) == (10, None)
    assert (second["ts_ns"], second["incomplete"], second["confidence"]) == (200, "start", "exact")
    assert counts(tables) == {"start_missing": 2, "duplicate_end": 1}
    # Only the thread says that the request is of this call, and the log has no exits.
    assert tables.call[0]["dur_ns"] is None


def test_completion_at_a_reused_address_belongs_to_the_last_submit() -> None:
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 5 wl bio_submit id 1 bio 0xa",
        "130 5 wl exit id 1 ret 0",  # its completion is lost
        start(200, 6, 2),
        "210 6 wl " + FOLIO.format(2, "a", 4096),
        "220 6 wl bio_submit id 2 bio 0xa",
        "230 0 x bio_complete bio 0xa",
        "240 0 x bio_complete bio 0xa",
        "250 6 wl exit id 2 ret 0",
    )
    assert [(bio["sync_id"], bio["dur_ns"], bio["incomplete"]) for bio in tables.bio] == [
        (1, None, "end"),
        (2, 10, None),
    ]
    # The second completion may be of a bio of the second request, and nothing else of that is in the log.
    assert [row["incomplete"] for row in tables.sync] == ["bio", "bio"]
    assert [row["bytes"] for row in tables.sync] == [4096, None]
    assert counts(tables) == {"never_completed": 1, "unmatched_complete": 1}


def test_bio_without_submit_is_never_submitted() -> None:
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 0 x bio_complete bio 0xa",
        "125 5 wl " + FOLIO.format(1, "b", 8192),
        "130 5 wl exit id 1 ret 0",
        "200 9 kworker " + FOLIO.format(0, "b", 0),  # another bio is filled at the address
        "210 9 kworker bio_submit id 0 bio 0xb",
        "220 0 x bio_complete bio 0xb",
    )
    (row,) = tables.sync
    assert (row["bytes"], row["bios"], row["incomplete"]) == (8192, 2, "bio")
    assert (row["writeback_ns"], row["before_submit_ns"], row["after_complete_ns"]) == (None,) * 3
    assert [(b["ts_ns"], b["dur_ns"], b["incomplete"], b["origin"]) for b in tables.bio] == [
        (110, None, "start", "sync"),
        (125, None, "start", "sync"),
        (210, 10, None, "background"),
    ]
    assert counts(tables) == {"never_submitted": 2}


def test_another_thread_may_submit_bios_of_a_request() -> None:
    tables = read(
        start(100, 5, 1),
        "110 9 kworker " + FOLIO.format(1, "a", 0),
        "120 9 kworker bio_submit id 1 bio 0xa",
        "130 0 x bio_complete bio 0xa",
        "140 5 wl exit id 1 ret 0",
    )
    assert (tables.sync[0]["bytes"], tables.sync[0]["incomplete"]) == (4096, None)
    assert (tables.bio[0]["tid"], tables.bio[0]["confidence"]) == (9, "exact")


def test_completion_up_to_a_minute_after_the_end_is_paired() -> None:
    minute = 60 * 10**9
    for late, complete in ((1, True), (minute, True), (minute + 1, False)):
        tables = read(
            start(100, 5, 1),
            "110 5 wl " + FOLIO.format(1, "a", 0),
            "120 5 wl bio_submit id 1 bio 0xa",
            "130 5 wl exit id 1 ret 0",
            f"{130 + late} 0 x bio_complete bio 0xa",
        )
        if complete:
            assert counts(tables) == {"completed_after_end": 1}
            # No call says whether it waits for its bios.
            row = tables.sync[0]
            assert (row["after_complete_ns"], row["confidence"]) == (None, "inferred")
        else:
            assert counts(tables) == {"unmatched_complete": 1, "never_completed": 1}
            assert tables.sync[0]["incomplete"] == "bio"


def test_folio_ends_the_bio_in_flight_at_its_address() -> None:
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 5 wl bio_submit id 1 bio 0xa",
        "130 5 wl " + FOLIO.format(1, "a", 4096),
        "140 0 x bio_complete bio 0xa",
        "150 5 wl exit id 1 ret 0",
    )
    assert [bio["incomplete"] for bio in tables.bio] == ["end", "start"]
    assert tables.sync[0]["after_complete_ns"] is None
    assert counts(tables) == {"never_completed": 1, "never_submitted": 1}


def test_completion_before_the_submit_is_unmatched() -> None:
    # It is a second record of the completion of the bio that had the address before.
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "115 0 x bio_complete bio 0xa",
        "120 5 wl bio_submit id 1 bio 0xa",
        "140 0 x bio_complete bio 0xa",
        "150 5 wl exit id 1 ret 0",
    )
    assert [(bio["ts_ns"], bio["dur_ns"]) for bio in tables.bio] == [(120, 20)]
    assert counts(tables) == {"unmatched_complete": 1}


def test_completion_without_a_submit_ends_the_bio() -> None:
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "115 0 x bio_complete bio 0xa",  # its submit is lost
        "120 5 wl " + FOLIO.format(1, "a", 4096),
        "130 5 wl bio_submit id 1 bio 0xa",
        "140 0 x bio_complete bio 0xa",
        "150 5 wl exit id 1 ret 0",
    )
    assert [(bio["ts_ns"], bio["incomplete"]) for bio in tables.bio] == [
        (110, "start"),
        (130, None),
    ]
    assert tables.sync[0]["after_complete_ns"] == 10
    assert counts(tables) == {"never_submitted": 1}


def test_id_open_on_two_threads_is_ambiguous_on_a_third() -> None:
    tables = read(
        start(100, 5, 1),
        start(101, 6, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "111 6 wl " + FOLIO.format(1, "a", 0),  # not added to the bio that thread 5 fills there
        "112 9 kworker " + FOLIO.format(1, "c", 0),  # may belong to either request
        "120 9 kworker exit id 1 ret 0",
    )
    assert [bio["sync_id"] for bio in tables.bio] == [1, 2, 3]
    assert [row["incomplete"] for row in tables.sync] == ["end", "end", "start"]


def test_end_on_another_thread_closes_the_only_request_with_its_id() -> None:
    tables = read(start(100, 5, 1), start(110, 6, 2), "120 0 torn exit id 1 ret 0")
    assert [(row["tid"], row["incomplete"]) for row in tables.sync] == [(5, None), (6, "end")]


def test_second_start_of_an_open_request_is_a_loss() -> None:
    tables = read(start(100, 5, 1), start(110, 5, 1), "120 5 wl exit id 1 ret 0", start(130, 5, 1))
    # After the end of a request its id may start another one.
    assert [(row["start_ns"], row["incomplete"]) for row in tables.sync] == [
        (100, None),
        (130, "end"),
    ]
    assert counts(tables) == {"duplicate_start": 1, "end_missing": 1}


def test_start_may_follow_the_first_event_of_its_request() -> None:
    # Lines of two CPUs with the same time are in the order in which the buffers are read.
    tables = read(
        "100 5 wl " + FOLIO.format(1, "a", 0),
        start(100, 5, 1),
        "110 5 wl bio_submit id 1 bio 0xa",
        "120 0 x bio_complete bio 0xa",
        "130 5 wl exit id 1 ret 0",
    )
    (row,) = tables.sync
    assert (row["incomplete"], row["dur_ns"], row["bytes"]) == (None, 30, 4096)
    assert tables.loss == []


@pytest.mark.parametrize(
    "next_line",
    [
        "200 5 wl fdatasync",
        "200 5 wl fsync_exit ret 0",
        start(200, 5, 2),
        "200 5 wl exit id 2 ret 0",
    ],
)
def test_next_event_of_a_thread_closes_its_open_request(next_line: str) -> None:
    tables = read(
        "90 5 wl fsync",
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 5 wl bio_submit id 1 bio 0xa",
        next_line,
        "210 0 x bio_complete bio 0xa",
        "220 5 wl exit id 1 ret 0",
    )
    first = tables.sync[0]
    assert (first["incomplete"], first["dur_ns"], first["op"]) == ("end", None, "fsync")
    # The late end opens another request, as any event does that names a closed request.
    last = tables.sync[-1]
    assert (last["id"], last["start_ns"], last["incomplete"]) == (1, None, "start")
    assert tables.bio[0]["dur_ns"] == 90


FOREIGN = ["200 5 wl " + FOLIO.format(2, "b", 0), "200 5 wl bio_submit id 2 bio 0xb"]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_an_event_with_another_id_between_events_of_a_request_has_a_damaged_id(
    foreign: str,
) -> None:
    tables = read(
        "90 5 wl fsync",
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 5 wl bio_submit id 1 bio 0xa",
        "150 0 x bio_complete bio 0xa",
        foreign,
        "205 5 wl " + FOLIO.format(1, "b", 4096),
        "210 5 wl bio_submit id 1 bio 0xb",
        "215 0 x bio_complete bio 0xb",
        "220 5 wl exit id 1 ret 0",
    )
    (row,) = tables.sync
    assert (row["id"], row["dur_ns"], row["confidence"]) == (1, 130, "inferred")
    assert counts(tables)["damaged_id"] == 1


@pytest.mark.parametrize("second", [*FOREIGN, "210 5 wl exit id 2 ret 0", start(210, 5, 3)])
def test_another_id_that_is_there_again_is_that_of_the_next_request(second: str) -> None:
    """So is one before the thread enters another sync function: the end of the first request was lost."""
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(1, "a", 0),
        "120 5 wl bio_submit id 1 bio 0xa",
        "130 0 x bio_complete bio 0xa",
        FOREIGN[0],
        second,
    )
    assert [row["id"] for row in tables.sync[:2]] == [1, 2]
    assert tables.sync[0]["incomplete"] == "end"
    assert tables.sync[1]["incomplete"] == "start"
    assert "damaged_id" not in counts(tables)


def test_a_bio_without_an_id_belongs_to_the_request_that_its_thread_is_in() -> None:
    tables = read(
        start(100, 5, 1),
        "110 5 wl " + FOLIO.format(0, "a", 0),
        "120 5 wl bio_submit id 0 bio 0xa",
        "125 6 kw " + FOLIO.format(0, "b", 0),
        "126 6 kw bio_submit id 0 bio 0xb",
        "130 0 x bio_complete bio 0xa",
        "135 0 x bio_complete bio 0xb",
        "140 5 wl exit id 1 ret 0",
    )
    (row,) = tables.sync
    assert (row["bytes"], row["bios"], row["confidence"]) == (4096, 1, "inferred")
    assert [bio["sync_id"] for bio in tables.bio] == [1, None]
    assert tables.loss == []


def test_request_after_the_exit_of_a_call_has_no_call() -> None:
    tables = read(
        "100 5 wl fsync",
        "110 5 wl fsync_exit ret 0",
        start(120, 5, 1),
        "130 5 wl exit id 1 ret 0",
        "200 6 wl fsync",  # its exit is not in the log, so it may still be open
        start(300, 6, 2),
        "310 6 wl exit id 2 ret 0",
    )
    assert [row["op"] for row in tables.sync] == [None, "fsync"]
    assert counts(tables) == {"unmatched_call": 1, "exit_missing": 1}


def test_completions_without_address_pair_by_device_and_sector() -> None:
    tables = read(
        start(100, 5, 1),
        *(f"{110 + i} 5 wl bio_submit id 1 bio 0x{i + 1} dev 254:16 sector 8" for i in range(2)),
        "113 5 wl bio_submit id 1 bio 0x9 dev 254,16 sector 16",
        "120 0 x bio_complete dev 254,16 sector 8",
        "130 0 x bio_complete dev 254,16 sector 8",
        "140 0 x bio_complete dev 254,17 sector 16",
        "150 5 wl exit id 1 ret 0",
    )
    assert [(b["dev"], b["sector"], b["dur_ns"]) for b in tables.bio] == [
        ("254,16", 8, 10),
        ("254,16", 8, 19),
        ("254,16", 16, None),
    ]
    losses = {"unmatched_complete": 1, "never_completed": 1, "folios_missing": 3}
    assert counts(tables) == losses


def test_end_after_the_next_start_is_not_a_duplicate() -> None:
    tables = read(start(100, 5, 1), start(200, 5, 2), "210 5 wl exit id 1 ret 0")
    assert [(row["id"], row["incomplete"]) for row in tables.sync] == [
        (1, "end"),
        (2, "end"),
        (1, "start"),
    ]
    assert counts(tables) == {"end_missing": 2, "start_missing": 1}


def test_ranges_merge_adjacent_folios_in_any_order() -> None:
    offsets = (8192, 0, 4096, 40960, 8192, 16384)
    lines = [f"{110 + i} 5 wl " + FOLIO.format(1, "a", o) for i, o in enumerate(offsets)]
    (row,) = read(start(100, 5, 1), *lines, "200 5 wl exit id 1 ret 0").sync
    assert (row["bytes"], row["folios"], row["ranges"]) == (6 * 4096, 6, 3)
    assert (row["first_offset"], row["last_offset"]) == (0, 45056)


def test_events_at_the_same_time_keep_the_file_order() -> None:
    lines = (
        start(100, 5, 1),
        "100 5 wl exit id 1 ret 0",
        start(100, 5, 2),
        "100 5 wl exit id 2 ret 0",
    )
    assert [row["dur_ns"] for row in read(*lines).sync] == [0, 0]


def test_threads_of_a_process_may_have_open_requests_concurrently() -> None:
    tables = read(
        "100 5 wl fsync",
        "101 5 wl fdatasync",
        start(110, 5, 1),
        start(120, 5, 2),  # both are open: two threads of one process
        "130 5 wl exit id 1 ret 0",
        "140 5 wl exit id 2 ret 0",
        pid_is="process",
    )
    assert [(row["tid"], row["pid"]) for row in tables.sync] == [(None, 5)] * 2
    assert [row["incomplete"] for row in tables.sync] == [None, None]
    # Either call may belong to the first request. The one that remains for the second is no surer.
    assert [row["confidence"] for row in tables.sync] == ["inferred", "inferred"]
    assert {row["sync_id"] for row in tables.call} == {1, 2}


def test_a_guess_holds_until_nothing_of_a_process_is_open() -> None:
    guessed = [
        "100 5 wl fsync",
        "101 5 wl fdatasync",
        start(110, 5, 1),
        start(120, 5, 2),
        "130 5 wl exit id 1 ret 0",
        "140 5 wl exit id 2 ret 0",
    ]
    exits = ["150 5 wl fsync_exit ret 0", "160 5 wl fdatasync_exit ret 0"]
    third = ["200 5 wl msync", start(210, 5, 3), "220 5 wl exit id 3 ret 0"]
    # Without exits, both calls are taken, and what is left is certain. With exits, the calls must have returned.
    for lines in (guessed + third, guessed + exits + third):
        assert [row["confidence"] for row in read(*lines, pid_is="process").sync] == [
            "inferred",
            "inferred",
            "exact",
        ]
    lines = guessed + exits[:1] + third + ["230 5 wl msync_exit ret 0"] + exits[1:]
    lines.sort(key=lambda line: int(line.split()[0]))
    lines.remove(exits[1])
    tables = read(*lines, "240 5 wl fdatasync_exit ret 0", pid_is="process")
    assert [row["confidence"] for row in tables.sync] == ["inferred"] * 3


def test_a_call_is_uncertain_if_its_exit_is() -> None:
    lines = [
        "100 5 wl fsync",
        start(110, 5, 1),
        "120 5 wl exit id 1 ret 0",
        "121 5 wl fsync",
        start(130, 5, 2),
        "140 5 wl exit id 2 ret 0",
        "150 5 wl fsync_exit ret 0",  # of either
        "160 5 wl fsync_exit ret 0",  # of the other one
        "170 5 wl fsync",
        start(180, 5, 3),
        "190 5 wl exit id 3 ret 0",
        "200 5 wl fsync_exit ret 0",
    ]
    tables = read(*lines, pid_is="process")
    assert [row["confidence"] for row in tables.sync] == ["inferred", "inferred", "exact"]
    # When each of the first two has returned is not known.
    assert [call["dur_ns"] for call in tables.call] == [None, None, 30]
    assert counts(tables) == {"unmatched_exit": 2, "exit_missing": 2}


def test_ambiguous_exit_of_a_process_is_unmatched() -> None:
    tables = read(
        "100 5 wl fsync",
        "101 5 wl fsync",
        "102 5 wl msync",
        "110 5 wl msync_exit ret 0",
        "120 5 wl fsync_exit ret 0",  # may belong to either fsync
        pid_is="process",
    )
    assert [call["dur_ns"] for call in tables.call] == [None, None, 8]
    assert counts(tables) == {"unmatched_exit": 1, "call_only": 3, "end_missing": 2}
    tables = read(
        "100 5 wl fsync",
        start(110, 5, 1),
        "120 5 wl fsync_exit ret 0",  # its entry was lost: the first call is still in its request
        "130 5 wl exit id 1 ret 0",
        "140 5 wl fsync_exit ret 0",
        pid_is="process",
    )
    assert [call["dur_ns"] for call in tables.call] == [40]
    assert counts(tables) == {"unmatched_exit": 1}


def test_call_of_a_process_waits_a_minute_for_its_request() -> None:
    minute = 60 * 10**9
    for wait, op in ((minute, "fsync"), (minute + 4 * 10**9, None)):
        tables = read("100 5 wl fsync", start(100 + wait, 5, 1), pid_is="process")
        assert tables.sync[0]["op"] == op


def test_lines_that_bpftrace_prints_itself_are_no_events() -> None:
    tables = read(
        "Attaching 1 probe...",
        "Attached 8 probes",
        "100 5 wl fsync",
        "",
        "        main+3",
        "Lost 7 events",
        "Lost 5 events",
        loggen.MAP_DUMP.decode(),
    )
    assert counts(tables) == {"lost_by_tracer": 12, "call_only": 1, "ends_not_recorded": 1}
    lost = tables.loss[0]
    # These lines have no time; they get that of the event before them.
    assert (lost["first_ts_ns"], lost["last_ts_ns"], lost["severity"]) == (100, 100, "loss")
    assert tables.call[0]["stack"] == "main"
    assert (tables.lines, tables.events) == (7 + 13, 1)


# ---------------------------------------------------------------- bad inputs


@pytest.mark.parametrize("name", badinputs.INPUTS)
def test_bad_input_has_the_expected_rows_and_losses(name: str) -> None:
    # The reference sorts the whole log and has no window, so these inputs need not be larger than one for it.
    shorter = {"count": 3_000} if "the_window" in name else {}
    bad = badinputs.INPUTS[name](**shorter)
    if bad.big:
        pytest.skip("too slow for the reference")
    if bad.unreadable:
        with pytest.raises((EOFError, OSError, ValueError)):
            thesis.read(bad.data)
        return
    tables = thesis.read(bad.data)
    # No event is late for it.
    expected = {reason: n for reason, n in bad.losses.items() if reason != "late_event"}
    assert counts(tables) == expected
    rows = (len(tables.sync), len(tables.bio), len(tables.call))
    assert rows == (bad.sync, bad.bio, bad.call)
    assert sum(row["bytes"] or 0 for row in tables.bio) == bad.bytes
    texts = [
        row[c] for row in tables.sync + tables.call for c in ("comm", "path", "stack") if c in row
    ]
    assert set(bad.shown) <= set(texts)


@pytest.mark.parametrize("seed", range(40))
def test_mangled_recordings_keep_the_invariants(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice([name for name in RECORDINGS if not name.endswith(".gz")])
    lines = recording(name).split(b"\n")
    for _ in range(rng.choice((1, 10, 100))):
        at = rng.randrange(len(lines))
        change = rng.randrange(4)
        if change == 0:
            del lines[at]
        elif change == 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif change == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif lines[at]:
            line = bytearray(lines[at])
            line[rng.randrange(len(line))] = rng.choice(b"0123456789 \x00\xffax\n")
            lines[at] = bytes(line)
    data = b"\n".join(lines)
    check_invariants(thesis.read(data), used(data))


# ---------------------------------------------------------------- generated logs


def without_numbers(tables: thesis.Tables | loggen.Truth) -> list[list[dict[str, Any]]]:
    """The rows of requests, bios and calls, each with its request instead of the request's number."""
    request_of = {row["sync_id"]: (row["tid"], row["pid"], row["id"]) for row in tables.sync}
    found = []
    for rows in (tables.sync, tables.bio, tables.call):
        changed = [
            {k: v for k, v in row.items() if k not in ("bio_id", "call_id")}
            | {
                name: request_of.get(row[name])
                for name in ("sync_id", "call_sync_id")
                if name in row
            }
            for row in rows
        ]
        found.append(sorted(changed, key=lambda row: repr(sorted(row.items()))))
    return found


def check_generated(generated: loggen.Generated) -> None:
    tables = thesis.read(
        generated.log, time_unit=generated.params.time_unit, pid_is=generated.params.pid_is
    )
    truth = generated.truth
    # An event whose id may be damaged opens its request later, so its numbers may be higher than in the truth.
    assert without_numbers(tables) == without_numbers(truth)
    assert counts(tables) == truth.losses
    assert tables.events == truth.events
    check_invariants(tables, parsed(generated.log, generated.params.time_unit))


@pytest.mark.parametrize("seed", range(300))
def test_reference_reproduces_the_truth_of_generated_logs(seed: int) -> None:
    rng = random.Random(seed)
    check_generated(loggen.generate(loggen.random_params(rng), rng))


# One difficulty at a time, at a high rate.
DIFFICULTIES = {
    "syscall_exits": {"syscall_exits": True},
    "unmatched": {"p_lone": 0.5},
    "empty": {"p_empty": 0.9},
    "one_file": {"files": 1, "threads": 8},
    "one_address": {"addresses": 1, "threads": 1, "max_bios": 4},
    "two_at_once": {"p_two_at_once": 1.0, "max_bios": 6},
    "dsync": {"dsync_threads": 3},
    "uring": {"uring_threads": 3},
    "background": {"background": 40},
    "ends_early": {"p_ends_early": 1.0},
    "helper": {"p_helper": 1.0},
    "disorder": {"disorder_ns": 2 * 10**9, "cpus": 4},
    "ties": {"p_tie": 0.9},
    "microseconds": {"time_unit": "us"},
    "processes_of_one_thread": {"pid_is": "process", "p_lone": 0.0},
    "hostile_names": {"names": "hostile", "threads": 30},
    "perf_stacks": {"stacks": "perf", "names": "hostile"},
    "blank_before_stack": {"blank_before_stack": True},
    "kernel_event_names": {"words": "kernel", "syscall_exits": True, "exit_style": "sys_exit_X"},
    "two_word_exits": {"names": "odd", "syscall_exits": True, "exit_style": "X exit"},
    "extra_pairs": {"extra_pairs": True},
    "map_dump": {"map_dump": True},
    "largest_ids": {"first_id": 2**64 - 100},
    "cut": {"cut_head": 0.4, "cut_tail": 0.3},
}
# One kind of loss at a time, and the reason under which it is counted.
LOSSES = {
    "lose_call": None,
    "lose_call_exit": None,
    "lose_start": "start_missing",
    "lose_end": "end_missing",
    "lose_folio": None,
    "lose_submit": "never_submitted",
    "lose_complete": "never_completed",
    "double_complete": "unmatched_complete",
    "double_end": "duplicate_end",
}


@pytest.mark.parametrize("name", DIFFICULTIES)
def test_generated_log_with_one_difficulty_gives_the_truth(name: str) -> None:
    for seed in range(3):
        params = loggen.Params(requests=100, **DIFFICULTIES[name])
        check_generated(loggen.generate(params, random.Random(seed)))


@pytest.mark.parametrize("name", LOSSES)
def test_generated_log_with_one_kind_of_loss_gives_the_truth(name: str) -> None:
    params = loggen.Params(requests=100, p_lone=0.0, syscall_exits=True, **{name: 0.3})
    generated = loggen.generate(params, random.Random(1))
    check_generated(generated)
    reason = LOSSES[name]
    if name.startswith("lose"):
        assert len(generated.truth.lost) > 5
    if reason:
        assert generated.truth.losses[reason] > 5


def test_lost_calls_leave_requests_without_a_call() -> None:
    params = loggen.Params(requests=100, p_lone=0.0, lose_call=0.3)
    generated = loggen.generate(params, random.Random(1))
    assert sum(row["op"] is None for row in generated.truth.sync) == len(generated.truth.lost) > 5


def test_lost_bursts_are_reported_with_their_true_count() -> None:
    generated = loggen.generate(loggen.Params(requests=100, bursts=5), random.Random(3))
    check_generated(generated)
    reported = sum(map(int, re.findall(rb"^Lost (\d+) events$", generated.log, re.MULTILINE)))
    assert reported == len(generated.truth.lost) == generated.truth.losses["lost_by_tracer"] > 10


def test_disorder_is_present_and_bounded() -> None:
    params = loggen.Params(requests=200, disorder_ns=10**8, cpus=4)
    times = [event.ts for event in parsed(loggen.generate(params, random.Random(1)).log)]
    newest = behind = 0
    for ts in times:
        newest = max(newest, ts)
        behind = max(behind, newest - ts)
    assert 10**7 < behind < 2 * 10**8


def test_request_may_end_before_its_bios() -> None:
    params = loggen.Params(requests=100, p_ends_early=1.0, max_bios=5)
    truth = loggen.generate(params, random.Random(1)).truth
    assert truth.losses["completed_after_end"] > 5
    assert any(row["after_complete_ns"] is None for row in truth.sync if row["bios"])


def test_requests_share_addresses_and_files() -> None:
    params = loggen.Params(requests=100, addresses=2, files=1, p_empty=0.0)
    truth = loggen.generate(params, random.Random(1)).truth
    assert len({row["bio"] for row in truth.bio}) < len(truth.bio) / 4
    assert len({row["path"] for row in truth.sync}) == 1
    spans = sorted((r["start_ns"], r["ts_ns"] + r["dur_ns"], r["tid"]) for r in truth.sync)
    assert any(a[1] > b[0] and a[2] != b[2] for a, b in itertools.pairwise(spans))


def test_threads_of_one_process_keep_exact_bios() -> None:
    """The thread of a call is then unknown. What follows from ids and addresses is still exact."""
    params = loggen.Params(requests=100, threads=6, processes=2, pid_is="process", lose_end=0.1)
    generated = loggen.generate(params, random.Random(2))
    tables = thesis.read(generated.log, pid_is="process")
    call_columns = {"ts_ns", "dur_ns", "op", "stack", "syscall_ns", "confidence"}
    for row, expected in zip(tables.sync, generated.truth.sync, strict=True):
        assert {c: v for c, v in row.items() if c not in call_columns} == {
            c: v for c, v in expected.items() if c not in call_columns
        }
    assert tables.bio == generated.truth.bio
    assert {row["confidence"] for row in tables.sync} == {"exact", "inferred"}


def test_same_seed_gives_the_same_log() -> None:
    def make() -> loggen.Generated:
        rng = random.Random(11)
        return loggen.generate(loggen.random_params(rng), rng)

    assert make().log == make().log
    assert make().truth == make().truth


def test_bulk_log_has_the_reported_sums() -> None:
    out = io.BytesIO()
    sums = loggen.bulk(1_500_000, 5, out, block_bytes=400_000)
    data = out.getvalue()
    tables = thesis.read(data)
    assert len(data) - sums["bytes"] < 100  # the two header lines
    assert 1_500_000 <= sums["bytes"] < 2_100_000
    assert tables.lines == sums["lines"]
    assert tables.events == sums["events"]
    assert len(tables.sync) == sums["requests"]
    assert len(tables.bio) == sums["bios"]
    assert len(tables.call) == sums["calls"]
    assert sum(row["bytes"] for row in tables.sync) == sums["folio_bytes"]
    assert counts(tables) == {"unmatched_call": sums["unmatched_calls"]}
    assert all(row["incomplete"] is None for row in tables.sync)
    assert len({row["id"] for row in tables.sync}) == len(tables.sync)


# ---------------------------------------------------------------- command lines


def run(*args: str) -> bytes:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", *args]
    return subprocess.run(command, cwd=root, check=True, capture_output=True).stdout


def test_command_lines_write_log_truth_and_tables(tmp_path: Path) -> None:
    truth_file, log_file = tmp_path / "truth.json", tmp_path / "log"
    log = run(
        *("tests.reference.loggen", "--seed", "7", "--requests", "30", "--set", "p_lone=0.3"),
        *("--set", "syscall_exits=true", "--truth", str(truth_file)),
    )
    log_file.write_bytes(log)
    truth = json.loads(truth_file.read_text())
    for table in ("sync", "bio", "call"):
        text = run("tests.reference.thesis", str(log_file), "--table", table).decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        assert list(rows[0]) == thesis.COLUMNS[table]
        expected = [
            {c: "" if v is None else json.dumps(v).strip('"') for c, v in row.items()}
            for row in truth[table]
        ]
        assert rows == expected
    text = run("tests.reference.thesis", str(log_file), "--table", "loss").decode()
    assert {r["reason"]: int(r["count"]) for r in csv.DictReader(io.StringIO(text))} == truth[
        "losses"
    ]


def test_option_random_equals_random_params() -> None:
    rng = random.Random(4)
    generated = loggen.generate(loggen.random_params(rng), rng)
    assert run("tests.reference.loggen", "--random", "--seed", "4") == generated.log


def test_parameters_without_a_unique_truth_are_rejected() -> None:
    for params in (
        loggen.Params(p_tie=0.1, disorder_ns=5),
        loggen.Params(p_helper=0.1, cut_head=0.1),
        loggen.Params(processes=2),
    ):
        with pytest.raises(ValueError, match=r"."):
            loggen.generate(dataclasses.replace(params), random.Random(1))
