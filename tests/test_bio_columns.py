"""What a bio is for: `rwbs`, `ino` and `path` of syncline_bio.

The expected letters are those that the kernel and blkparse printed, or what the device was asked for besides.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.reading import convert_trace

from tests import known_truth
from tests.coretools import ROOT, Rows, convert, core, tables

FOLDERS = ROOT / "tests" / "data"
# Bits of `bi_opf`, from include/linux/blk_types.h of Linux 6.12.
SYNC, META, FUA, PREFLUSH, AHEAD = 11, 12, 17, 18, 19
QUEUED = re.compile(r" *\d+,\d+ +\d+ +\d+ +[\d.]+ +\d+ +Q +(F?W\w*) (\d+) \+ [1-9]\d* .*")


def letters(opf: int) -> str:
    after = ((FUA, "F"), (AHEAD, "A"), (SYNC, "S"), (META, "M"))
    return (
        ("F" if opf >> PREFLUSH & 1 else "")
        + "W"
        + "".join(c for bit, c in after if opf >> bit & 1)
    )


@pytest.mark.parametrize("name", ["rename", "small1", "small4", "uring"])
def test_the_flags_of_blktrace_are_those_that_blkparse_printed(name: str, tmp_path: Path) -> None:
    text = gzip.decompress((FOLDERS / "blktrace" / f"{name}.blkparse.txt.gz").read_bytes())
    queued = [QUEUED.fullmatch(line) for line in text.decode().splitlines()]
    want = [(int(match[2]), match[1]) for match in queued if match]
    assert {"WS", "FWFSM"} <= {rwbs for _, rwbs in want}
    _core.convert([str(FOLDERS / "blktrace" / f"{name}.blktrace.0")], f"{tmp_path}/files/")
    for rows in (core(tmp_path, text)["bio"], tables(tmp_path / "files")["bio"]):
        writes = [row for row in by_id(rows) if row["direction"] == "write"]
        assert [(row["sector"], row["rwbs"]) for row in writes] == want


def by_id(bios: Rows) -> Rows:
    return sorted(bios, key=lambda row: row["bio_id"])


@pytest.mark.parametrize(
    "name", ["ftrace/small4.trace", "dynamic-events/ext4-both", "dynamic-events/xfs"]
)
def test_the_flags_of_events_with_opf(name: str, tmp_path: Path) -> None:
    """Events of the patch and of probes, as text and by way of the low-level log."""
    text = gzip.decompress((FOLDERS / f"{name}.txt.gz").read_bytes())
    submits = re.findall(rb" bio(?:_submit)?: .*?bio=(?:0x)?(\w+) .*sector=(\d+) .*opf=(\w+)", text)
    want = {(int(sector), letters(int(opf, 0))) for _, sector, opf in submits}
    # The block layer prints the letters itself.
    queued = re.findall(r" block_bio_queue: \d+,\d+ (\w+) (\d+) ", text.decode())
    want |= {(int(sector), rwbs) for rwbs, sector in queued}
    log = convert(tmp_path, text, to="log.events.jsonl")
    _core.convert([str(log)], f"{tmp_path}/again/")
    rows = core(tmp_path, text)["bio"]
    assert tables(tmp_path / "again")["bio"] == rows
    # The block layer's own events have the requests of reads, whose bios no probe reports.
    rows = [row for row in rows if not row["is_request"]]
    # A flush has no place.
    found = {(row["sector"] or 0, row["rwbs"]) for row in rows if row["incomplete"] != "start"}
    assert found
    assert found <= want
    assert {rwbs for _, rwbs in found} >= {"WS"}


def test_bpftrace_prints_the_flags_in_hex_and_the_low_level_log_keeps_them(tmp_path: Path) -> None:
    log = (
        b"10 7 wl sync_start id 1 start 0 end 9 datasync 0 path /a\n"
        b"11 7 wl bio_add_folio id 1 bio 0x5 start 0 len 4096 dev 254,16 ino 13\n"
        b"12 7 wl bio_submit id 1 bio 0x5 dev 254,16 sector 8 bytes 4096 opf 0x69801\n"
        b"13 7 wl bio_complete bio 0x5\n"
        b"14 7 wl sync_end id 1 ret 0\n"
    )
    rows = core(tmp_path, log)
    assert [row["rwbs"] for row in rows["bio"]] == ["FWFSM"]
    text = convert(tmp_path, log, to="log.events.jsonl").read_text()
    (folio,) = [json.loads(line) for line in text.splitlines() if '"bio_add_folio"' in line]
    assert (folio["dev"], folio["ino"]) == ("254,16", 13)
    assert core(tmp_path, text.encode(), name="in.events.jsonl")["bio"] == rows["bio"]


@pytest.mark.parametrize(
    "case", ["cache", "cache-fua", "no-barrier", "no-cache", "flush-write", "fua-write"]
)
def test_the_flags_are_what_the_device_was_asked_for(case: str, tmp_path: Path) -> None:
    """A flush before the write is issued before it. FUA is a flag of what is issued, or a flush that follows."""
    one = known_truth.converted(case, tmp_path)
    device = one.truth["device"]
    has_cache, has_fua = device["write_cache"] == "write back", device["fua"] == "1"
    asked = [e for e in one.events if e["event"] == "block_rq_issue" and e["dev"] == device["dev"]]
    flushes = [e["ts_ns"] for e in asked if e["rwbs"] == "FF"]
    writes = [e for e in asked if "W" in e["rwbs"]]
    ends = {
        (e["sector"], e["ts_ns"])
        for e in one.events
        if e["event"] == "block_rq_complete" and "W" in e["rwbs"] and e["nr_sector"] == 0
    }
    flags: set[str] = set()
    for bio in one.tables["bio"]:
        if bio["dev"] != device["dev"]:
            continue
        if bio["direction"] == "flush":
            assert bio["rwbs"] == "FWS"
            # The block layer drops it if there is nothing to flush.
            stop = bio["ts_ns"] + bio["dur_ns"]
            assert any(bio["ts_ns"] < ts < stop for ts in flushes) == has_cache
            continue
        submit, issue, end = (
            bio["ts_ns"],
            bio["ts_ns"] + bio["queue_ns"],
            bio["ts_ns"] + bio["dur_ns"],
        )
        (write,) = [e for e in writes if e["ts_ns"] == issue]
        rwbs = bio["rwbs"]
        before, after = rwbs.split("W")
        flags.add(rwbs)
        # The kernel takes off what the device does not have or does not need.
        assert after.replace("F", "") == write["rwbs"].split("W")[1].replace("F", "")
        has_flush_before = any(submit <= ts <= issue for ts in flushes)
        assert has_flush_before == ("F" in before and has_cache), bio
        is_followed = any(issue < ts < end for ts in flushes) and any(
            sector == bio["sector"] and issue < ts <= end for sector, ts in ends
        )
        has_fua_flag = "F" in write["rwbs"].split("W")[1]
        assert has_fua_flag == ("F" in after and has_cache and has_fua), bio
        assert is_followed == ("F" in after and has_cache and not has_fua), bio
    assert (
        flags
        == {
            "cache": {"WS", "WSM", "FWFSM"},
            "cache-fua": {"WS", "WSM", "FWFSM"},
            "no-barrier": {"WS", "WSM"},
            "no-cache": {"WS", "WSM", "FWFSM"},
            "flush-write": flags,
            "fua-write": {"WFS"},
        }[case]
    )


@pytest.mark.parametrize("case", ["neighbour-buffered", "blocked-write"])
def test_background_writeback_has_the_inode_of_its_file(case: str, tmp_path: Path) -> None:
    one = known_truth.converted(case, tmp_path)
    by_worker = [row for row in one.tables["bio"] if (row["comm"] or "").startswith("kworker")]
    data = [row for row in by_worker if row["rwbs"] == "W"]
    (ino,) = {row["ino"] for row in data}
    written = sum(row["bytes"] for row in data)
    if case == "blocked-write":
        folios = [e for e in one.events if e["event"].startswith("bio_add_") and e["ino"] == ino]
        assert written == sum(e["len"] for e in folios)
    else:
        # Nothing else writes to page cache in the background. The rest is still dirty at the end.
        assert 0 < written <= one.truth["neighbour"]["bytes"]
    # It was never synced. Only a newer recorder has the paths of files that are written back.
    path = one.truth["neighbour"]["path"] if case == "neighbour-buffered" else None
    assert {row["path"] for row in data} == {path}
    others = [row for row in one.tables["bio"] if row not in data]
    assert {(row["ino"], row["path"]) for row in others} == {(None, None)}


HEAD = """{"dev":266338320,"ino":21,"generation":1,"path":"/data/one"}
{"dev":266338320,"ino":22,"generation":1,"path":"/data/old"}
{"dev":266338320,"ino":22,"generation":2,"path":"/data/new"}
"""


def probes(*events: str) -> bytes:
    """Events of a flusher thread, as the ring buffer prints them."""
    return "".join(
        f"  kworker/u8:1-9 [000] ..... 10.{at:06}: {event}\n" for at, event in enumerate(events, 1)
    ).encode()


def folio(ino: int, index: int = 0, bio: int = 16) -> str:
    return f"bio_add_folio: (f+0x4/0x3b) bio=0x{bio:x} ino={ino} index={index} len=4096 off=0 dev=266338320"


def submit(pages: int, end: str = "ext4_end_bio") -> str:
    what = f"dev=266338320 sector=8 bytes={pages * 4096} opf=1 end_io={end}+0x0/0x131"
    return f"bio: (submit_bio+0x4/0xa6) bio=0x10 {what}"


DONE = "bio_end: (bio_endio+0x4/0x103) bio=0x10 status=0"


@pytest.mark.parametrize(
    ("inodes", "end", "want"),
    [
        ([21, 21], "ext4_end_bio", (21, "/data/one")),
        ([23], "ext4_end_bio", (23, None)),
        # Two files had this number.
        ([22], "ext4_end_bio", (22, None)),
        ([21, 23], "f2fs_write_end_io", (None, None)),
        # The trees of btrfs, and its compressed data.
        ([1], "btrfs_simple_end_io", (None, None)),
        ([0], "btrfs_simple_end_io", (None, None)),
        ([], "end_bio_bh_io_sync", (None, None)),
    ],
)
def test_the_file_of_a_bio_without_a_request(
    inodes: list[int], end: str, want: tuple[int | None, str | None], tmp_path: Path
) -> None:
    (tmp_path / "files.jsonl").write_text(HEAD)
    events = [folio(ino, at) for at, ino in enumerate(inodes)]
    log = probes(*events, submit(max(len(inodes), 1), end), DONE)
    (tmp_path / "in.log").write_bytes(log)
    _core.convert(
        [f"{tmp_path}/in.log"], f"{tmp_path}/out/", file_tables=[f"{tmp_path}/files.jsonl"]
    )
    (row,) = tables(tmp_path / "out")["bio"]
    # The log shows no sync.
    assert row["origin"] is None
    assert (row["ino"], row["path"]) == want


def test_the_path_of_a_synced_file_is_that_of_its_background_writeback(tmp_path: Path) -> None:
    """Also in a trace that is read back."""
    start = "fsync_enter: (ext4_sync_file+0x4/0x17f) dev=266338320 ino=23 gen=5 start=0 end=9 datasync=0"
    names = 'fs="ext4" n0="wal" n1="db" n2="/"'
    log = probes(
        f"{start} {names}",
        "fsync_exit: (vfs_fsync_range+0x7c/0x82 <- ext4_sync_file) ret=0",
        folio(23),
        submit(1),
        DONE,
    )
    direct = core(tmp_path, log)["bio"]
    assert [(row["ino"], row["path"]) for row in direct] == [(23, ".../db/wal")]
    convert_trace(str(convert(tmp_path, log, to="t.pftrace")), f"{tmp_path}/again/")
    assert tables(tmp_path / "again")["bio"] == direct


def patched(*folios: tuple[int, int]) -> bytes:
    """Background writeback that the patch reports: (device's minor, inode) of each folio."""
    lines = ["10 9 kworker wb_start id 3 reason periodic dev 254,16 ino 13"]
    lines += [
        f"11 9 kworker bio_add_folio id 3 bio 0x5 start {at * 4096} len 4096 dev 254,{minor} ino {ino}"
        for at, (minor, ino) in enumerate(folios)
    ]
    lines += ["12 9 kworker bio_submit id 3 bio 0x5", "13 9 kworker bio_complete bio 0x5"]
    return "".join(line + "\n" for line in lines).encode()


@pytest.mark.parametrize(
    ("folios", "want"),
    [([(16, 13), (16, 13)], 13), ([(16, 13), (16, 14)], None), ([(16, 13), (17, 13)], None)],
)
def test_the_file_of_background_writeback_of_a_patched_kernel(
    folios: list[tuple[int, int]], want: Any, tmp_path: Path
) -> None:
    (row,) = core(tmp_path, patched(*folios))["bio"]
    assert (row["origin"], row["ino"], row["path"]) == ("background", want, None)


def test_no_bio_is_background_where_no_sync_can_be_recorded(tmp_path: Path) -> None:
    """The file itself says so, not only the SQL table. Nothing else of it changes."""
    writes = "".join(
        f"  8,0    1 {2 * at + 1} 0.{at:09d} 7 Q WS {8 * at} + 8 [wl]\n"
        f"  8,0    1 {2 * at + 2} 0.{at:09d} 0 C WS {8 * at} + 8 [0]\n"
        for at in range(20_000)
    )
    rows = core(tmp_path, writes.encode(), source="blkparse")
    assert {"syncs_recorded": "no"}.items() <= {r["key"]: r["value"] for r in rows["meta"]}.items()
    assert [row["sector"] for row in by_id(rows["bio"])] == [8 * at for at in range(20_000)]
    assert {(row["origin"], row["bytes"], row["tid"]) for row in rows["bio"]} == {(None, 4096, 7)}
    # A sync of the same thread is over before the write.
    both = ftrace_with_sync()
    assert [row["origin"] for row in core(tmp_path, both, source="ftrace")["bio"]] == ["background"]


def ftrace_with_sync() -> bytes:
    """A sync without a bio, and then a write of its thread."""
    events = (
        (10, "sys_fsync(fd: 0x3)"),
        (20, "ext4_sync_file_enter: dev 8,0 ino 12 parent 2 datasync 0 "),
        (30, "ext4_sync_file_exit: dev 8,0 ino 12 ret 0"),
        (40, "sys_fsync -> 0x0"),
        (50, "block_bio_queue: 8,0 WS 80 + 8 [wl]"),
        (60, "block_rq_complete: 8,0 WS () 80 + 8 [0]"),
        # It begins the next sync, so it was in none.
        (70, "sys_fsync(fd: 0x3)"),
        (80, "sys_fsync -> 0x0"),
    )
    return "".join(f"  wl-7 [000] ..... 10.{us:06d}: {text}\n" for us, text in events).encode()
