"""Dynamic events of stock kernels: recordings against the patch's events, and cases with known results."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import Rows, core, tables
from tests.reference import tracedat
from tests.reference.tracedat import Event, Shape, World
from tools.agreement import agreement

DATA = Path(__file__).parent / "data" / "dynamic-events"
FILE_SYSTEMS = ("ext4", "xfs", "btrfs", "f2fs")
DEV = 254 << 20 | 16
BIO = 0xFF11_0000_006D_0B40


def text_of(name: str) -> bytes:
    """A recording, decompressed."""
    return gzip.decompress((DATA / name).read_bytes())


# Against the patch.

# What the two kinds of events cannot agree on: docs/reference/pairing.md says why.
EXPLAINED = {
    # The probe is at the start of the function, the patch's event where it waits.
    *("length of flush", "length of commit wait"),
    # The patch adds a tree block as one folio, which the kernel does page by page.
    "folios of a request",
    # The patch has no events for these.
    "commit only by probes",
    # Recorded without the place of the page.
    "offsets of a request",
    # The fixtures are the beginnings of recordings.
    *("loss: end_missing", "loss: never_completed"),
}
ALLOWED = {
    "ext4": EXPLAINED - {"folios of a request", "commit only by probes", "offsets of a request"},
    "xfs": EXPLAINED - {"folios of a request", "commit only by probes", "offsets of a request"},
    "f2fs": EXPLAINED - {"folios of a request", "commit only by probes"},
    "btrfs": EXPLAINED - {"offsets of a request"},
}


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_probes_say_of_each_sync_what_the_patch_says(tmp_path: Path, fs: str) -> None:
    (recording := tmp_path / f"{fs}.txt").write_bytes(text_of(f"{fs}-both.txt.gz"))
    result = agreement(recording)
    assert set(result.differences) <= ALLOWED[fs], result.examples
    requests = result.requests[0]
    assert result.requests == (requests, requests)
    assert requests > 15
    for count, (of_patch, same) in result.sums.items():
        assert of_patch == same > 0, count
    # Only what f2fs and btrfs write besides the file itself is inferred.
    assert (result.inferred_bios == 0) == (fs in ("ext4", "xfs"))


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_the_patch_is_used_where_both_are_recorded(tmp_path: Path, fs: str) -> None:
    text = text_of(f"{fs}-both.txt.gz")
    probe = re.compile(rb"^.*: \w+: \(\w+.*\n", re.MULTILINE)
    both, patch = core(tmp_path, text), core(tmp_path, probe.sub(b"", text))
    assert len(patch["sync"]) > 15

    def facts(converted: dict[str, Rows]) -> Rows:
        # bio_id counts background bios too.
        return [{k: v for k, v in row.items() if k != "sync_id"} for row in converted["sync"]]

    assert facts(both) == facts(patch)
    assert both["wait"] == patch["wait"]
    losses = {row["reason"] for row in both["loss"] if row["severity"] == "loss"}
    assert losses <= {row["reason"] for row in patch["loss"]} | {"never_completed"}


@pytest.mark.parametrize("first", [0, 1])
def test_two_logs_with_a_half_each(tmp_path: Path, first: int) -> None:
    """The log of the patch is authoritative, whichever is named first."""
    text = text_of("xfs-both.txt.gz").decode().splitlines(keepends=True)
    is_probe = [re.search(r": \w+: \(\w+", line) is not None for line in text]
    is_patch = [
        re.search(r": (sync|bio|commit|flush|log|wb)_\w+: (id|bio)=", line) for line in text
    ]
    halves = [
        "".join(line for line, other in zip(text, is_probe, strict=True) if not other),
        "".join(line for line, other in zip(text, is_patch, strict=True) if not other),
    ]
    for name, half in zip("ab", halves, strict=True):
        (tmp_path / f"{name}.txt").write_text(half)
    logs = [str(tmp_path / f"{name}.txt") for name in "ab"]
    _core.convert(logs if first == 0 else logs[::-1], f"{tmp_path}/both/")
    _core.convert(logs[:1], f"{tmp_path}/patch/")
    both, patch = tables(tmp_path / "both"), tables(tmp_path / "patch")
    assert len(patch["sync"]) > 15
    columns = ("id", "ino", "bytes", "folios", "bios", "confidence", "journal_ns", "path")
    by_id = [sorted(log["sync"], key=lambda row: row["id"]) for log in (both, patch)]
    assert [[row[c] for c in columns] for row in by_id[0]] == [
        [row[c] for c in columns] for row in by_id[1]
    ]
    assert {row["reason"] for row in both["loss"]} >= {"duplicate"}


# Recordings of a stock kernel.


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_recordings_of_a_stock_kernel(tmp_path: Path, fs: str) -> None:
    """Each sync is of a new file of 9000 bytes, three pages; the names are in the events."""
    text = text_of(f"{fs}.txt.gz")
    converted = core(tmp_path, text)
    starts = re.findall(rb' fsync_enter: .* n0="(.*?)" .* ino=(\d+) ', text)
    assert Counter((row["path"], row["ino"]) for row in converted["sync"]) == Counter(
        (f".../a/b/{name.decode()}", int(ino)) for name, ino in starts
    )
    bios = defaultdict(list)
    for bio in converted["bio"]:
        if bio["direction"] == "write":
            bios[bio["sync_id"]].append(bio)
    whole = [row for row in converted["sync"] if row["incomplete"] is None]
    assert len(whole) >= 5
    for row in whole:
        data = [bio for bio in bios[row["sync_id"]] if bio["bytes"] == 3 * 4096]
        assert data, row
        assert row["bytes"] == sum(bio["bytes"] for bio in bios[row["sync_id"]])
        assert row["bytes"] == 3 * 4096 or fs in ("btrfs", "f2fs")
        assert row["ret"] == 0
        assert row["ts_ns"] <= row["start_ns"] <= data[0]["ts_ns"] < row["ts_ns"] + row["dur_ns"]
    names = {row["wait"] for row in converted["wait"]}
    assert names & {"commit wait", "commit", "flush"}


def without_texts(converted: dict[str, Rows], *left_out: str) -> dict[str, Rows]:
    """The tables without the columns in which forms of one recording differ."""
    return {
        table: [{k: v for k, v in row.items() if k not in ("example", *left_out)} for row in rows]
        for table, rows in converted.items()
        if table != "meta"
    }


def test_binary_and_text_give_equal_rows(tmp_path: Path) -> None:
    binary = core(tmp_path, text_of("ext4.dat.gz"), name="in.dat")
    text = core(tmp_path, text_of("ext4.report.txt.gz"))
    assert without_texts(binary) == without_texts(text)
    assert [row["bytes"] for row in binary["sync"]] == [3 * 4096] * 60
    assert {row["confidence"] for row in binary["sync"]} == {"exact"}
    assert {row["fs"] for row in binary["sync"]} == {"ext4"}
    assert all(row["other_ns"] is not None for row in binary["sync"])
    # Bios of the journal are known by the function that the kernel calls at their end.
    journal = [row for row in binary["bio"] if row["comm"].startswith("jbd2")]
    assert len(journal) > 100
    assert {row["origin"] for row in journal} == {"background"}
    assert [row["reason"] for row in binary["loss"] if row["severity"] == "loss"] == []


@pytest.mark.parametrize(
    "name", ["ext4.dat.gz", "ext4.report.txt.gz", "btrfs.txt.gz", "f2fs-both.txt.gz"]
)
def test_the_low_level_log_gives_equal_rows(tmp_path: Path, name: str) -> None:
    (source := tmp_path / "in").write_bytes(text_of(name))
    _core.convert([str(source)], f"{tmp_path}/a/")
    _core.convert([str(source)], f"{tmp_path}/low.events.jsonl")
    _core.convert([f"{tmp_path}/low.events.jsonl"], f"{tmp_path}/b/")
    first, second = tables(tmp_path / "a"), tables(tmp_path / "b")
    assert without_texts(first) == without_texts(second)
    assert len(first["sync"]) > 5


def probed(ts: int, name: str, **fields: Any) -> Event:
    place = {"__probe_ip": 9} if name != "fsync_exit" else {"__probe_func": 9, "__probe_ret_ip": 8}
    return Event(ts, 0, 1, f"syncline_7:{name}", place | fields)


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("big_endian", [False, True])
def test_addresses_of_functions_and_options_of_newer_tools(
    tmp_path: Path, version: int, big_endian: bool
) -> None:
    """The end of a bio is an address, whose name the kernel's symbols have."""
    journal, data, second = 0xFFFF_FFFF_8100_1000, 0xFFFF_FFFF_8100_2000, 10**9
    events = [
        probed(second, "fsync_enter", dev=DEV, ino=7, gen=1, n0="f", n1="/"),
        probed(second + 1, "bio_add_folio", bio=BIO, ino=7, index=1, len=4096, off=512),
        probed(second + 2, "bio", bio=BIO, dev=DEV, sector=8, bytes=4096, opf=1, end_io=data),
        probed(second + 3, "bio_add_folio", bio=1, ino=7, index=1, len=4096, off=0),
        probed(second + 4, "bio", bio=1, dev=DEV, sector=16, bytes=4096, opf=1, end_io=journal),
        probed(second + 5, "bio_end", bio=1, status=0),
        probed(second + 6, "bio_end", bio=BIO, status=0),
        probed(second + 7, "fsync_exit", ret=-5),
    ]
    symbols = f"{data:x} t ext4_end_bio\t[ext4]\n{journal:x} t end_bio_bh_io_sync\n".encode()
    # trace-cmd 3.4 writes BTF as option 23.
    shape = Shape(version, big_endian=big_endian, symbols=symbols, more_options=((23, b"\0" * 8),))
    log = tracedat.file(World(events, {1: "wl"}, cpus=1), shape)
    rows = core(tmp_path, log, name="in.dat")
    only(
        rows["sync"],
        bytes=4096,
        bios=1,
        first_offset=4608,
        path=".../f",
        ret=-5,
        confidence="exact",
    )
    assert sorted((row["bio"], row["origin"]) for row in rows["bio"]) == [
        ("0x1", "background"),
        (hex(BIO), "sync"),
    ]
    # Without symbols, a bio with folios of the file is taken for its data.
    log = tracedat.file(World(events, {1: "wl"}, cpus=1), replace(shape, symbols=b""))
    only(core(tmp_path, log, name="in.dat")["sync"], bytes=8192, bios=2)


# Paths.


def test_paths_come_from_the_table_of_files(tmp_path: Path) -> None:
    table = DATA / "ext4.files.jsonl"
    known = [json.loads(line) for line in table.read_text().splitlines()]
    data = text_of("ext4.dat.gz")
    converted = core(tmp_path, data, name="in.dat", file_tables=[str(table)])
    paths = {one["ino"]: one["path"] for one in known if "path" in one}
    assert len(converted["sync"]) == 60
    assert all(row["path"] == paths[row["ino"]] for row in converted["sync"])
    # Only the mount is known: the names lead to the same paths.
    (mounts := tmp_path / "mounts.jsonl").write_text(json.dumps(known[-1]) + "\n")
    assert "mount" in known[-1]
    by_mount = core(tmp_path, data, name="in.dat", file_tables=[str(mounts)])
    assert by_mount == converted
    # Nothing is known.
    alone = core(tmp_path, data, name="in.dat")
    assert all(
        row["path"] == "..." + paths[row["ino"]].removeprefix("/mnt/data") for row in alone["sync"]
    )


@pytest.mark.parametrize(
    ("tables", "first"),
    [
        ("file_tables", '{"dev": 1, "mount": "/", "root": "/"}'),
        ("writer_tables", '{"dev": 1, "ino": 2, "tid": 3, "comm": "a", "folios": 4}'),
    ],
)
def test_a_damaged_table_is_named(tables: str, first: str, tmp_path: Path) -> None:
    (table := tmp_path / "damaged.jsonl").write_text(f'{first}\n{{"dev"')
    with pytest.raises(_core.CoreError) as raised:
        core(tmp_path, text_of("ext4.txt.gz"), **{tables: [str(table)]})
    message, hint, kind = raised.value.args
    assert message.startswith(f"{table} is damaged: line 2: ")
    assert hint
    assert kind == "input"
    assert not (tmp_path / "out").exists()


# Cases. A case is a list of (thread, event); an event is a microsecond after the one before.

Case = list[tuple[int | str, str]]


def enter(ino: int = 7, function: str = "ext4_sync_file", dev: int = DEV, more: str = "") -> str:
    return f"fsync_enter: ({function}+0x4/0x90) dev={dev} ino={ino} gen=1 datasync=0{more}"


def leave(function: str = "ext4_sync_file", ret: int = 0) -> str:
    return f"fsync_exit: (vfs_fsync+0x4/0x90 <- {function}) ret={ret}"


def folio(index: int, ino: int = 7, bio: int = BIO, dev: int = DEV, length: int = 4096) -> str:
    place = f"ino={ino} index={index} len={length} off=0 dev={dev}"
    return f"bio_add_folio: (bio_add_folio+0x4/0x3b) bio=0x{bio:x} {place}"


def page(bio: int = BIO, length: int = 4096) -> str:
    return f"bio_add_page: (bio_add_page+0x4/0x8e) bio=0x{bio:x} page=0xffd4 len={length} off=0"


def submit(
    size: int, end: str = "ext4_end_bio", bio: int = BIO, sector: int = 8, opf: int = 2049
) -> str:
    what = f"dev={DEV} sector={sector} bytes={size} opf={opf} end_io={end}+0x0/0x131"
    return f"bio: (submit_bio+0x4/0xa6) bio=0x{bio:x} {what}"


def done(bio: int = BIO, more: str = "", status: int = 0) -> str:
    return f"bio_end: (bio_endio+0x4/0x103) bio=0x{bio:x} status={status}{more}"


def begin(name: str, fields: str = "") -> str:
    return f"{name}: (f+0x4/0x17f){fields}"


def end(name: str) -> str:
    return f"{name}_end: (g+0x7c/0x82 <- f) ret=0"


def converted(folder: Path, case: Case, **more: Any) -> dict[str, Rows]:
    """Converts a case. The first event is at 10 s; `comm` of a thread is `wl`, or the thread is COMM-TID."""
    lines = ["# tracer: nop", "#"]
    for number, (thread, event) in enumerate(case):
        name = thread if isinstance(thread, str) else f"wl-{thread}"
        lines.append(f"{name:>24} [000] .....    10.{number:06}: {event}")
    return core(folder, ("\n".join(lines) + "\n").encode(), **more)


def losses(rows: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in rows["loss"]}


def only(rows: Rows, **columns: Any) -> dict[str, Any]:
    """The only row, whose columns have these values."""
    assert len(rows) == 1, rows
    assert {name: rows[0][name] for name in columns} == columns
    return rows[0]


def block(event: str, sector: int, size: int, rwbs: str = "WS") -> str:
    """An event of a request: `block_rq_issue` or `block_rq_complete`."""
    first, last = (f"{size} () ", " [wl]") if event == "block_rq_issue" else ("() ", " [0]")
    return f"{event}: 254,16 {rwbs} {first}{sector} + {size // 512}{last}"


ISSUE, COMPLETE = "block_rq_issue", "block_rq_complete"


def test_a_bio_whose_end_is_lost_ends_with_its_request(tmp_path: Path) -> None:
    """Its address is used again by a later bio, whose end is that bio's own."""
    case: Case = [
        (1, enter()),
        (1, folio(0)),
        (1, submit(4096)),
        (1, block(ISSUE, 8, 4096)),
        (1, block(COMPLETE, 8, 4096)),
        (1, leave()),
        (1, enter(ino=9)),
        (1, folio(0, ino=9)),
        (1, submit(4096, sector=64)),
        (1, block(ISSUE, 64, 4096)),
        (1, block(COMPLETE, 64, 4096)),
        (1, done()),
        (1, leave()),
    ]
    rows = converted(tmp_path, case)
    first, second = rows["bio"]
    columns = ("dur_ns", "queue_ns", "device_ns", "confidence", "incomplete")
    assert [first[name] for name in columns] == [2000, 1000, 1000, "inferred", None]
    assert [second[name] for name in columns] == [3000, 1000, 2000, "exact", None]
    assert [row["writeback_ns"] for row in rows["sync"]] == [2000, 3000]
    assert [row["confidence"] for row in rows["sync"]] == ["inferred", "exact"]
    assert losses(rows) == {"ended_by_request": 1}


@pytest.mark.parametrize(
    "requests",
    [
        # Half of it is complete.
        [block(ISSUE, 8, 4096), block(COMPLETE, 8, 4096)],
        # Its data are, and the flush after them is not.
        [block(ISSUE, 8, 8192), block(COMPLETE, 8, 8192)],
        # Another device has the sectors.
        [block(ISSUE, 8, 8192), block(COMPLETE, 8, 8192).replace("254,16", "254,32")],
        [],
    ],
    ids=["half", "flush", "other-device", "none"],
)
def test_what_does_not_end_a_bio_leaves_its_end_unknown(
    requests: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fua = 1 << 17 if request.node.callspec.id == "flush" else 0
    case = [enter(), folio(0, length=8192), submit(8192, opf=2049 | fua), *requests, leave()]
    rows = converted(tmp_path, [(1, event) for event in case])
    only(rows["bio"], dur_ns=None, incomplete="end", confidence="exact")
    only(rows["sync"], writeback_ns=None, incomplete="bio")
    assert losses(rows)["never_completed"] == 1


def test_a_page_of_a_folio_counts_once(tmp_path: Path) -> None:
    # Kernels whose bio_add_folio calls bio_add_page report both.
    rows = converted(
        tmp_path,
        [
            (1, enter()),
            (1, folio(0)),
            (1, page()),
            (1, folio(1)),
            (1, page()),
            (1, page()),
            (1, submit(3 * 4096)),
            (9, done()),
            (1, leave()),
        ],
    )
    # The last page is one of its own. Where it is in the file is not recorded.
    only(rows["sync"], bytes=3 * 4096, folios=3, ranges=None, first_offset=None, confidence="exact")
    only(rows["bio"], bytes=3 * 4096, folios=3, dur_ns=1000)
    assert losses(rows) == {}


def test_a_folio_that_found_no_room_counts_in_the_next_bio(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter()),
            # A bio has room for 256 folios.
            *((1, folio(at)) for at in range(257)),
            (1, submit(256 * 4096)),
            (1, folio(256, bio=1)),
            (1, submit(4096, bio=1, sector=2056)),
            (9, done(1)),
            (9, done()),
            (1, leave()),
        ],
    )
    sync = only(rows["sync"], bytes=257 * 4096, folios=257, bios=2, ranges=1)
    assert (sync["first_offset"], sync["last_offset"], sync["incomplete"]) == (0, 257 * 4096, None)
    assert sorted(bio["last_offset"] for bio in rows["bio"]) == [256 * 4096, 257 * 4096]


def test_folios_of_a_read_at_the_same_address_are_left_out(tmp_path: Path) -> None:
    # The submit of the read is not recorded.
    rows = converted(
        tmp_path,
        [
            (2, folio(90, ino=3)),
            (1, enter()),
            (1, folio(0)),
            (1, submit(4096)),
            (9, done()),
            (1, leave()),
        ],
    )
    only(rows["sync"], bytes=4096, folios=1, first_offset=0, confidence="exact")
    # The completion of the read, or its submit, ends it.
    for event in (done(), submit(4096, opf=0)):
        rows = converted(
            tmp_path,
            [
                (2, folio(90, ino=3)),
                (2, event),
                (1, enter()),
                (1, folio(0)),
                (1, submit(4096)),
                (9, done()),
                (1, leave()),
            ],
        )
        only(rows["sync"], bytes=4096, folios=1, first_offset=0)


def test_sizes_that_do_not_fit_give_bytes_and_no_folios(tmp_path: Path) -> None:
    rows = converted(
        tmp_path, [(1, enter()), (1, folio(0)), (1, submit(512)), (9, done()), (1, leave())]
    )
    only(rows["sync"], bytes=512, folios=None, ranges=None, confidence="inferred")


@pytest.mark.parametrize(
    ("end", "may_be_of_the_sync"),
    [
        # Only writes are recorded, so it is that of a write whose submit was lost.
        (" flags=0x80", True),
        (" flags=0x80 end_io=ext4_end_bio+0x0/0x131", True),
        # A clone, a driver's own bio, the journal: no page cache of a file.
        (" flags=0x202", False),
        (" flags=0x80 end_io=crypt_endio+0x0/0x131", False),
        (" flags=0x80 end_io=end_bio_bh_io_sync+0x0/0x131", False),
    ],
)
def test_an_end_without_a_submit_may_be_of_a_bio_of_the_open_sync(
    end: str, may_be_of_the_sync: bool, tmp_path: Path
) -> None:
    """The folios and the submit of a bio are lost, and its end is not."""
    case: Case = [
        (1, enter()),
        (1, folio(0)),
        (1, submit(4096)),
        (9, done()),
        (9, done(5, end)),
        (1, leave()),
        # Nothing of this one is lost.
        (1, enter()),
        (1, folio(1)),
        (1, submit(4096)),
        (9, done()),
        (1, leave()),
    ]
    first, second = converted(tmp_path, case)["sync"]
    names = ("bios", "bytes", "writeback_ns", "incomplete")
    whole = (1, 4096, 1000, None)
    lacking = (None, None, None, "bio")
    assert tuple(first[name] for name in names) == (lacking if may_be_of_the_sync else whole)
    assert tuple(second[name] for name in names) == whole


def test_ends_of_reads_and_copies_are_of_no_sync(tmp_path: Path) -> None:
    """Their submits are recorded, although they are no rows."""
    case: Case = [
        (1, enter()),
        (1, folio(0)),
        (1, submit(4096)),
        (1, submit(4096, bio=5, opf=0)),
        (2, submit(4096, "crypt_endio", bio=6, sector=80)),
        (2, submit(4096, "clone_endio", bio=7, sector=80)),
        *((9, done(bio, " flags=0x80")) for bio in (5, 6, 7)),
        (9, done()),
        (1, leave()),
    ]
    only(converted(tmp_path, case)["sync"], bios=1, bytes=4096, incomplete=None)


def test_folios_of_a_bio_whose_submit_and_end_were_lost(tmp_path: Path) -> None:
    """The address is used again before the sync ends."""
    filled: Case = [(1, enter()), (1, folio(0))]
    again: Case = [
        (2, enter(ino=9)),
        (2, folio(0, ino=9)),
        (2, submit(4096, sector=16)),
        (9, done()),
        (2, leave()),
        (1, leave()),
    ]
    rows = converted(tmp_path, [*filled, *again])
    syncs = {row["tid"]: row for row in rows["sync"]}
    only([syncs[2]], bytes=4096, bios=1, incomplete=None)
    # Its folio was in a bio, and nothing else is known of that.
    only([syncs[1]], bytes=4096, bios=1, writeback_ns=None, incomplete="bio")
    assert losses(rows)["never_submitted"] == 1
    # What is not of its file may be of a bio that another thread submits.
    rows = converted(tmp_path, [(1, enter()), (1, folio(0, ino=3)), *again])
    syncs = {row["tid"]: row for row in rows["sync"]}
    only([syncs[1]], bytes=None, bios=None, incomplete="bio")
    only([syncs[2]], bytes=4096, bios=1, incomplete=None)


def test_the_thread_that_has_filled_a_bio_may_be_in_a_sync(tmp_path: Path) -> None:
    """Another thread submits it, as on f2fs. The start of the sync was lost."""
    bio: Case = [(1, folio(0)), (2, submit(4096, "f2fs_write_end_io")), (9, done())]
    other: Case = [(2, enter(ino=9)), (2, leave())]
    end: Case = [(1, leave())]
    assert [row["origin"] for row in converted(tmp_path, [*bio, *other, *end])["bio"]] == [None]
    # It begins a sync, so it was in none.
    whole: Case = [(1, enter()), (1, leave())]
    rows = converted(tmp_path, [*bio, *other, *whole])
    assert [row["origin"] for row in rows["bio"]] == ["background"]


def test_a_bio_of_another_file_is_inferred(tmp_path: Path) -> None:
    rows = converted(
        tmp_path, [(1, enter()), (1, folio(0, ino=8)), (1, submit(4096)), (9, done()), (1, leave())]
    )
    only(rows["sync"], bytes=4096, confidence="inferred")
    only(rows["bio"], confidence="inferred", origin="sync")
    # The same number on another device is another file.
    rows = converted(
        tmp_path, [(1, enter()), (1, folio(0, dev=1)), (1, submit(4096)), (9, done()), (1, leave())]
    )
    only(rows["sync"], bytes=4096, confidence="inferred")


@pytest.mark.parametrize(
    "function", ["end_bio_bh_io_sync", "xlog_bio_end_io", "xfs_buf_bio_end_io"]
)
def test_the_journal_is_no_data_of_a_sync(tmp_path: Path, function: str) -> None:
    rows = converted(
        tmp_path,
        [(1, enter()), (1, page()), (1, submit(4096, function)), (9, done()), (1, leave())],
    )
    only(rows["sync"], bytes=0, bios=0, writeback_ns=0, confidence="exact")
    only(rows["bio"], bytes=4096, origin="background", folios=None)


def test_a_bio_that_no_sync_submits_is_background(tmp_path: Path) -> None:
    case: Case = [(1, enter()), (2, folio(0)), (2, submit(4096)), (9, done()), (1, leave())]
    rows = converted(tmp_path, case)
    only(rows["sync"], bytes=0, bios=0)
    only(rows["bio"], origin="background", bytes=4096, folios=1)


def test_a_bio_is_of_the_sync_that_filled_it(tmp_path: Path) -> None:
    # A worker submits it.
    rows = converted(
        tmp_path, [(1, enter()), (1, folio(0)), (2, submit(4096)), (9, done()), (1, leave())]
    )
    only(rows["sync"], bytes=4096, bios=1, confidence="exact")


def test_each_sync_has_its_folios_of_a_bio_of_several(tmp_path: Path) -> None:
    end_io = "f2fs_write_end_io"
    rows = converted(
        tmp_path,
        [
            (1, enter(7)),
            (2, enter(8)),
            (1, folio(0, 7)),
            (2, folio(5, 8)),
            (2, folio(6, 8)),
            (3, folio(0, 9)),
            (2, submit(4 * 4096, end_io)),
            (9, done()),
            (1, leave()),
            (2, leave()),
        ],
    )
    assert [(row["ino"], row["bytes"], row["bios"]) for row in rows["sync"]] == [
        (7, 4096, 1),
        (8, 8192, 1),
    ]
    assert {row["confidence"] for row in rows["sync"]} == {"exact"}
    assert sorted((row["bytes"], row["dur_ns"], row["origin"]) for row in rows["bio"]) == [
        (4096, 1000, "background"),
        (4096, 1000, "sync"),
        (8192, 1000, "sync"),
    ]


def test_a_shared_bio_that_never_completes(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter(7)),
            (2, enter(8)),
            (1, folio(0, 7)),
            (2, folio(5, 8)),
            (2, submit(8192)),
            (1, leave()),
            (2, leave()),
        ],
    )
    assert [(row["bytes"], row["incomplete"]) for row in rows["sync"]] == [
        (4096, "bio"),
        (4096, "bio"),
    ]
    assert losses(rows)["never_completed"] == 2


# Completion in parts.


def test_a_bio_is_complete_with_its_last_part(tmp_path: Path) -> None:
    filled: Case = [(1, enter()), (1, folio(0)), (1, folio(1)), (1, submit(8192))]
    # The block layer has split off a part, which completes first, or last.
    child = done(1, f" remaining=1 private=0x{BIO:x}")
    for parts, part_ns in (
        ([child, done(more=" remaining=1")], 2000),
        ([done(more=" remaining=2"), child], 2000),
        ([done(more=" remaining=3"), child, child.replace("=0x1 ", "=0x2 ")], 3000),
    ):
        rows = converted(tmp_path, [*filled, *((9, part) for part in parts), (1, leave())])
        only(rows["bio"], dur_ns=part_ns, error=0)
        only(rows["sync"], bytes=8192, bios=1, incomplete=None)
    # One is missing.
    rows = converted(tmp_path, [*filled, (9, done(more=" remaining=2")), (1, leave())])
    only(rows["sync"], incomplete="bio")
    assert losses(rows)["never_completed"] == 1


def test_the_error_of_a_part_is_that_of_the_bio(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter()),
            (1, folio(0)),
            (1, submit(4096)),
            (9, done(more=" remaining=2", status=10)),
            (9, done(more=" remaining=1")),
            (1, leave(ret=-5)),
        ],
    )
    only(rows["bio"], error=-5)
    only(rows["sync"], ret=-5)


def test_a_bio_that_btrfs_writes_twice_counts_once(tmp_path: Path) -> None:
    """The sync writes its page once; its device writes the mirror too, which ends with its own completion."""
    clone, original = "btrfs_clone_write_end_io", "btrfs_orig_write_end_io"
    case: Case = [
        (1, enter(function="btrfs_sync_file")),
        (1, folio(0)),
        (1, submit(4096, clone, bio=1)),
    ]
    case += [(1, submit(4096, original, sector=16)), (9, done()), (9, done(1)), (9, done())]
    rows = converted(tmp_path, [*case, (1, leave())])
    mirror, bio = rows["bio"]
    only([bio], bytes=4096, dur_ns=3000, sector=16, sync_id=1)
    # From the third event to the sixth.
    only([mirror], bytes=4096, dur_ns=3000, sector=8, sync_id=None, origin="background", error=0)
    only(rows["sync"], bytes=4096, bios=1, fs="btrfs", incomplete=None)
    assert losses(rows) == {}
    # With the number of parts the events say it themselves.
    case[-3:] = [(9, done(more=" remaining=2")), (9, done(1)), (9, done(more=" remaining=1"))]
    rows = converted(tmp_path, [*case, (1, leave())])
    assert [bio["dur_ns"] for bio in rows["bio"]] == [3000, 3000]


def test_a_mirror_may_fail_before_the_bio_that_has_the_folios_is_submitted(tmp_path: Path) -> None:
    """That ends a part of this bio, whose folios still belong to it."""
    clone, original = "btrfs_clone_write_end_io", "btrfs_orig_write_end_io"
    case: Case = [
        (1, enter(function="btrfs_sync_file")),
        (1, folio(0)),
        (1, submit(4096, clone, bio=1)),
        (1, done(1, more=" remaining=1", status=10)),
        (1, done(more=" remaining=2")),
        (1, submit(4096, original, sector=16)),
        (9, done(more=" remaining=1", status=10)),
        (1, leave(ret=-5)),
    ]
    rows = converted(tmp_path, case)
    mirror, bio = rows["bio"]
    only([bio], bytes=4096, folios=1, sector=16, sync_id=1, error=-5, dur_ns=1000)
    only([mirror], bytes=4096, sector=8, sync_id=None, error=-5)
    only(rows["sync"], bytes=4096, folios=1, bios=1, incomplete=None, ret=-5)
    assert losses(rows) == {}
    # Its submit is lost.
    lost = converted(tmp_path, [*case[:5], *case[6:]])
    assert losses(lost)["never_submitted"] == 1


def test_a_mirror_is_on_its_own_device(tmp_path: Path) -> None:
    clone, original = "btrfs_clone_write_end_io", "btrfs_orig_write_end_io"
    other = submit(4096, clone, bio=1).replace(f"dev={DEV}", f"dev={DEV + 16}")
    rows = converted(
        tmp_path,
        [
            (1, enter(function="btrfs_sync_file")),
            (1, folio(0)),
            (1, other),
            (1, submit(4096, original)),
            (9, done(1, status=10)),
            (9, done()),
            (1, leave()),
        ],
    )
    mirror, bio = rows["bio"]
    assert (mirror["dev"], mirror["error"], mirror["comm"]) == ("254,32", -5, "wl")
    assert (bio["dev"], bio["error"], bio["sync_id"]) == ("254,16", 0, 1)


# What the kernel has for an empty write with REQ_PREFLUSH and REQ_SYNC.
FLUSH = 1 | 1 << 18 | 1 << 11
# It shows that bios with data are recorded.
OTHER: Case = [("x-5", submit(4096, "xfs_buf_bio_end_io", bio=7, sector=99)), (9, done(7))]


def test_a_flush_is_a_bio_that_writes_nothing(tmp_path: Path) -> None:
    """The thread of a sync waits in it. It is no bio of the writeback of the sync."""
    rows = converted(
        tmp_path,
        [
            *OTHER,
            (1, enter()),
            (1, begin("flush")),
            (1, submit(0, "submit_bio_wait_endio", opf=FLUSH, sector=0)),
            (9, "block_rq_issue: 254,16 FF 0 () 18446744073709551615 + 0 none,0,0 [kworker/0:1H]"),
            (9, "block_rq_complete: 254,16 FF () 18446744073709551615 + 0 none,0,0 [0]"),
            (9, "block_rq_complete: 254,16 WS () 0 + 0 none,0,0 [0]"),
            (9, done()),
            (1, end("flush")),
            (1, leave()),
        ],
    )
    want = {"direction": "flush", "sync_id": 1, "ts_ns": 10_000_004_000, "dur_ns": 4000}
    only(
        rows["bio"][1:],
        **want,
        queue_ns=None,
        bytes=0,
        rwbs="FWS",
        incomplete=None,
        origin="sync",
    )
    # From the second event to the eighth.
    only(rows["sync"], bios=0, bytes=0, flush_ns=6000, writeback_ns=0, incomplete=None)
    assert sum(row["dur_ns"] for row in rows["phase"] if row["phase"] == "flush") == 6000


def test_a_flush_of_no_sync_is_one_of_the_background(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            *OTHER,
            (1, enter()),
            ("kworker/0:1-5", submit(0, "submit_bio_wait_endio", opf=FLUSH)),
            ("kworker/0:1-5", done()),
            (1, leave()),
            # A driver flushes the device below.
            ("kworker/0:1-5", submit(0, "clone_endio", bio=1, opf=FLUSH)),
            (9, done(1)),
        ],
    )
    only(rows["bio"][1:], direction="flush", sync_id=None, origin="background", dur_ns=1000)
    only(rows["sync"], bios=0, bytes=0)
    assert losses(rows)["remapped"] == 1


def test_a_flush_whose_end_is_lost_leaves_its_sync_complete(tmp_path: Path) -> None:
    """The wait says how long the sync was in it. The kernel uses the address again, on the stack of the same thread."""
    flush: Case = [(1, begin("flush")), (1, submit(0, "submit_bio_wait_endio", opf=FLUSH))]
    rows = converted(
        tmp_path,
        [
            *((1, enter()), *flush, (1, end("flush")), (1, leave())),
            *((1, enter()), *flush, (9, done()), (1, end("flush")), (1, leave())),
        ],
    )
    assert [bio["dur_ns"] for bio in rows["bio"]] == [None, 1000]
    assert [row["incomplete"] for row in rows["sync"]] == [None, None]
    assert [row["flush_ns"] for row in rows["sync"]] == [2000, 3000]
    assert losses(rows) == {"never_completed": 1}


def test_metadata_that_a_sync_waits_for(tmp_path: Path) -> None:
    """Without a journal, the thread writes a block of metadata and waits for it. Other callers wait for other bits."""
    rows = converted(
        tmp_path,
        [
            (1, begin("buffer_wait", f" bit=2 dev={DEV}")),
            (1, end("buffer_wait")),
            (1, enter()),
            (1, begin("buffer_wait", f" bit=2 dev={DEV}")),
            (9, "nothing: x"),
            (1, end("buffer_wait")),
            # The block is on another device, so this file system does not have it.
            (1, begin("buffer_wait", f" bit=2 dev={DEV + 16}")),
            (1, end("buffer_wait")),
            *((1, begin("flush")), (1, end("flush"))),
            (1, leave()),
        ],
    )
    wait, flush = rows["wait"]
    only([wait], wait="metadata wait", ts_ns=10_000_003_000, dur_ns=2000)
    only([flush], wait="flush", dur_ns=1000)
    # It is no wait for a journal, and no flush.
    only(rows["sync"], journal_ns=0, flush_ns=1000, incomplete=None)
    phases = {row["phase"]: row["dur_ns"] for row in rows["phase"]}
    assert phases["metadata wait"] == 2000
    (seen,) = (row["value"] for row in rows["meta"] if row["key"] == "phases_seen")
    assert "metadata wait" in seen.split(", ")
    assert losses(rows) == {}


def test_what_a_driver_makes_of_a_bio_is_left_out(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter()),
            (1, folio(0)),
            (1, submit(4096)),
            (1, submit(4096, "clone_endio", bio=1)),
            (1, submit(2048, "bio_chain_endio", bio=2)),
            (9, done(1)),
            (9, done()),
            (1, leave()),
        ],
    )
    only(rows["sync"], bytes=4096, bios=1)
    assert (losses(rows)["remapped"], losses(rows)["other_completion"]) == (2, 1)


# Bounds.


def test_sync_functions_in_one_another_are_one_request(tmp_path: Path) -> None:
    # overlayfs: the program's file is on the overlay, its data are on ext4.
    overlay: Case = [
        (1, "sys_fsync(fd: 3)"),
        (1, enter(3, "ovl_fsync", dev=40, more=' fs="overlay" n0="f" n1="/"')),
        (1, enter(7, more=' n0="f" n1="upper" n2="/"')),
        (1, folio(0)),
        (1, submit(4096)),
        (9, done()),
        (1, leave()),
        (1, leave("ovl_fsync")),
        (1, "sys_fsync -> 0x0"),
    ]
    rows = converted(tmp_path, overlay)
    row = only(
        rows["sync"], ino=7, fs="ext4", path=".../f", dev="254,16", bytes=4096, confidence="exact"
    )
    # Only the table of files knows where the container has the file.
    files = [
        {"dev": DEV, "ino": 7, "generation": 1, "path": "/upper/f", "container_path": "/f"},
        {"dev": 40, "mount": "/merged", "root": "/"},
    ]
    (table := tmp_path / "files.jsonl").write_text("\n".join(map(json.dumps, files)) + "\n")
    in_container = converted(tmp_path, overlay, file_tables=[str(table)])
    only(in_container["sync"], path="/merged/f", container_path="/f", ino=7)
    assert (row["start_ns"], row["ts_ns"], row["dur_ns"]) == (10_000_001_000, 10_000_000_000, 7000)
    # vfs_fsync_range and the file system's function.
    rows = converted(
        tmp_path,
        [
            (1, enter(function="vfs_fsync_range")),
            (1, enter()),
            (1, leave()),
            (1, leave("vfs_fsync_range")),
        ],
    )
    only(rows["sync"], ino=7, fs="ext4", dur_ns=3000)


def test_a_lost_end_does_not_make_the_next_sync_a_part(tmp_path: Path) -> None:
    # The events of a kernel thread have no syscalls around them.
    rows = converted(
        tmp_path,
        [
            (1, enter(7)),
            (1, enter(8)),
            (1, folio(0, 8)),
            (1, submit(4096)),
            (9, done()),
            (1, leave()),
        ],
    )
    first, second = rows["sync"]
    assert (first["ino"], first["incomplete"], first["bytes"]) == (7, "end", None)
    assert (second["ino"], second["incomplete"], second["bytes"]) == (8, None, 4096)
    assert losses(rows)["end_missing"] == 1


def test_a_lost_end_of_an_outer_function(tmp_path: Path) -> None:
    overlay = enter(3, "ovl_fsync", dev=40)
    twice: Case = [(1, overlay), (1, enter(7)), (1, leave())]
    rows = converted(tmp_path, [*twice, *twice, (1, leave("ovl_fsync"))])
    assert [(row["ino"], row["incomplete"]) for row in rows["sync"]] == [(7, "end"), (7, None)]


def test_a_file_system_on_a_disk_syncs_no_other_file(tmp_path: Path) -> None:
    """The function of one file on a disk calls that of another neither on another disk nor on the same one."""
    other, on = 254 << 20 | 32, ' fs="ext4"'
    for inner in (
        enter(8, dev=other, more=on),
        enter(8, "xfs_file_fsync", dev=other, more=' fs="xfs"'),
        enter(8, "vfs_fsync_range", more=on),
    ):
        function = inner.split("(")[1].split("+")[0]
        rows = converted(tmp_path, [(1, enter(7, more=on)), (1, inner), (1, leave(function))])
        found = [(row["ino"], row["dur_ns"], row["incomplete"]) for row in rows["sync"]]
        assert found == [(7, None, "end"), (8, 1000, None)]
        assert losses(rows) == {"end_missing": 1}


def test_a_call_ends_the_sync_functions_in_it(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, "sys_fsync(fd: 3)"),
            (1, enter(3, "ovl_fsync", dev=40)),
            (1, enter(7)),
            (1, "sys_fsync -> 0x0"),
            (1, folio(0)),
            (1, submit(4096)),
            (9, done()),
        ],
    )
    only(rows["sync"], incomplete="end")
    only(rows["bio"], origin="background")


def test_a_log_that_begins_in_a_sync(tmp_path: Path) -> None:
    rows = converted(tmp_path, [(1, folio(0)), (1, submit(4096)), (9, done()), (1, leave())])
    only(rows["sync"], incomplete="start", bytes=None, bios=None, writeback_ns=None)
    # Whether the bio is of the sync, or was submitted before that, is not known.
    only(rows["bio"], origin=None, ino=None, path=None)
    assert losses(rows)["start_missing"] == 1


def test_a_sync_that_leaves_a_bio_without_a_submit(tmp_path: Path) -> None:
    """Nodes of f2fs (inode 1). Another thread may submit the bio, or the submit was lost and the sync has written it."""
    start, stop = enter(function="f2fs_sync_file"), leave()
    own: Case = [(1, start), (1, folio(0)), (1, submit(4096, "f2fs_write_end_io")), (9, done())]
    nodes = folio(5, ino=1, bio=BIO + 64)
    rows = converted(tmp_path, [*own, (1, nodes), (1, stop), (9, done(BIO + 64))])
    only(rows["sync"], incomplete="bio", bios=None, bytes=None, folios=None, after_complete_ns=None)
    assert losses(rows)["never_submitted"] == 1
    # With its submit it is a bio of the sync, which does not wait for it.
    write = submit(4096, "f2fs_write_end_io", BIO + 64, sector=16)
    rows = converted(tmp_path, [*own, (1, nodes), (1, write), (1, stop), (9, done(BIO + 64))])
    only(rows["sync"], incomplete=None, bios=2, bytes=8192, folios=2)
    assert losses(rows).keys() <= {"completed_after_end"}


def test_a_request_of_the_block_layer_before_the_first_bio_of_probes(tmp_path: Path) -> None:
    """The submit of the first bio was lost, so its request of the block layer looked like one of the sync. It is no row, as the log has bios."""
    what = "254,16 WS 4096 () 8 + 8 be,0,4 [wl]"
    case: Case = [
        (1, enter()),
        (1, folio(0)),
        (1, f"block_rq_insert: {what}"),
        (1, f"block_rq_issue: {what}"),
        (9, "block_rq_complete: 254,16 WS () 8 + 8 be,0,4 [0]"),
        (9, done()),
        (1, folio(1, bio=BIO + 64)),
        (1, submit(4096, bio=BIO + 64, sector=16)),
        (9, done(BIO + 64)),
        (1, leave()),
    ]
    rows = converted(tmp_path, case)
    assert sorted(row["bytes"] for row in rows["bio"]) == [4096, 4096]
    only(rows["sync"], bios=2, bytes=8192, incomplete="bio")


def test_a_log_that_ends_in_a_sync(tmp_path: Path) -> None:
    rows = converted(tmp_path, [(1, enter()), (1, folio(0)), (1, submit(4096))])
    only(rows["sync"], incomplete="end", dur_ns=None, writeback_ns=None)
    assert (losses(rows)["end_missing"], losses(rows)["never_completed"]) == (1, 1)


def test_without_events_of_bios_their_number_is_unknown(tmp_path: Path) -> None:
    rows = converted(tmp_path, [(1, enter()), (1, leave())])
    only(rows["sync"], bytes=None, bios=None, folios=None, writeback_ns=None)


PATCHED = f"id=4 bio=0x{BIO:x}"
PATCH = {
    "start": "sync_start: id=4 start=0 end=9 datasync=0 dev=254,16 ino=7 op=fsync fs=ext4 path=/d/f",
    "folio": f"bio_add_folio: {PATCHED} start=0 len=4096 dev=254,16 ino=7",
    "submit": f"bio_submit: {PATCHED} dev=254,16 sector=8 bytes=4096 opf=0x801 origin=sync",
    "complete": f"bio_complete: bio=0x{BIO:x} status=0",
    "end": "sync_end: id=4 ret=0",
}


@pytest.mark.parametrize("lost", [(), ("submit",), ("folio", "submit")])
def test_a_submit_of_the_patch_that_only_a_probe_reports(
    lost: tuple[str, ...], tmp_path: Path
) -> None:
    """The probe is some time later, so when the bio was submitted is not known. It is one bio."""
    case: Case = [
        (3, PATCH["submit"].replace("id=4", "id=0").replace(f"{BIO:x}", f"{BIO + 64:x}")),
        (1, PATCH["start"]),
        (1, PATCH["folio"]),
        (1, PATCH["submit"]),
        (1, submit(4096)),
        (9, done()),
        (9, PATCH["complete"]),
        (1, PATCH["end"]),
    ]
    rows = converted(
        tmp_path, [line for line in case if line[1] not in [PATCH[name] for name in lost]]
    )
    (bio,) = (row for row in rows["bio"] if int(row["bio"], 16) == BIO)
    assert (bio["incomplete"], bio["dur_ns"]) == (("start", None) if lost else (None, 3000))
    only(rows["sync"], incomplete="bio" if lost else None)
    assert losses(rows).get("never_submitted", 0) == (1 if lost else 0)


# Waits.


def waits(rows: dict[str, Rows]) -> list[tuple[str, int, int | None]]:
    return [(row["wait"], row["dur_ns"], row["transaction_id"]) for row in rows["wait"]]


def test_waits_have_the_names_of_the_patch(tmp_path: Path) -> None:
    for function, event, fields, want in (
        ("ext4_sync_file", "wait_commit", " tid=62", ("commit wait", 1000, 62)),
        ("xfs_file_fsync", "xlog_force", " seq=82 flags=1", ("commit wait", 1000, 82)),
        ("f2fs_sync_file", "f2fs_cp", "", ("commit wait", 1000, None)),
        ("f2fs_sync_file", "f2fs_flush", " ino=7", ("flush", 1000, None)),
        ("btrfs_sync_file", "btrfs_log", "", ("commit", 1000, None)),
        ("btrfs_sync_file", "btrfs_commit", " tid=9", ("commit", 1000, 9)),
        ("ext4_sync_file", "flush", f" dev={DEV}", ("flush", 1000, None)),
    ):
        rows = converted(
            tmp_path,
            [
                (1, enter(function=function)),
                (1, begin(event, fields)),
                (1, end(event)),
                (1, leave()),
            ],
        )
        assert waits(rows) == [want], event
        journal = 0 if want[0] == "flush" else 1000
        # btrfs submits its flushes as bios, and the log has no submit.
        flush = None if function == "btrfs_sync_file" else 1000 - journal
        only(rows["sync"], journal_ns=journal, flush_ns=flush)
    # Those of other threads are in no request, and no loss.
    rows = converted(tmp_path, [(1, enter()), (2, begin("flush")), (2, end("flush")), (1, leave())])
    assert waits(rows) == []
    assert "unmatched_wait" not in losses(rows)


def test_a_flush_in_the_function_that_waits_for_it_is_one(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter(function="f2fs_sync_file")),
            (1, begin("f2fs_flush")),
            (1, begin("flush")),
            (1, end("flush")),
            (1, end("f2fs_flush")),
            (1, leave()),
        ],
    )
    assert waits(rows) == [("flush", 3000, None)]


def test_a_flush_of_btrfs_lasts_until_its_bio_is_complete(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, enter(function="btrfs_sync_file")),
            (1, submit(0, "btrfs_end_empty_barrier", opf=264193)),
            (9, done()),
            (1, leave()),
        ],
    )
    assert waits(rows) == [("flush", 1000, None)]
    only(rows["sync"], flush_ns=1000)
    # Without any submit in the log, nothing says that there was none.
    sync: Case = [(1, enter(function="btrfs_sync_file")), (1, leave())]
    rows = converted(tmp_path, [(2, begin("flush")), (2, end("flush")), *sync])
    only(rows["sync"], flush_ns=None)
    # With one, of whatever thread, there was none.
    other: Case = [(2, submit(4096)), (9, done()), (2, begin("flush")), (2, end("flush"))]
    rows = converted(tmp_path, [*other, *sync])
    only(rows["sync"], flush_ns=0)


def test_the_three_ends_of_a_fast_commit(tmp_path: Path) -> None:
    fast = ("fc_commit", " tid=5")
    # Its own: it writes to the journal.
    own: Case = [
        (1, enter()),
        (1, begin(*fast)),
        (1, submit(4096, "end_bio_bh_io_sync")),
        (9, done()),
    ]
    rows = converted(tmp_path, [*own, (1, end("fc_commit")), (1, leave())])
    assert waits(rows) == [("fast commit", 3000, 5)]
    # A full commit, for which it waits.
    full: Case = [
        (1, enter()),
        (1, begin(*fast)),
        (1, begin("wait_commit", " tid=5")),
        (1, end("wait_commit")),
    ]
    rows = converted(tmp_path, [*full, (1, end("fc_commit")), (1, leave())])
    assert waits(rows) == [("commit wait", 1000, 5)]
    only(rows["sync"], journal_ns=1000)
    # Nothing to do.
    nothing: Case = [(1, enter()), (1, begin(*fast)), (1, end("fc_commit")), (1, leave())]
    rows = converted(tmp_path, [(2, submit(4096, bio=BIO + 64)), (9, done(BIO + 64)), *nothing])
    assert waits(rows) == []
    assert rows["sync"][0]["journal_ns"] == 0
    # A bio completes in it whose submit is not in the log, or no submit is: it may have written to the journal.
    for lost in ([*own[:2], *own[3:], *nothing[2:]], nothing):
        rows = converted(tmp_path, lost)
        assert waits(rows) == []
        only(rows["sync"], journal_ns=None, other_ns=None)
    # Another thread's.
    other: Case = [
        (2, enter(8)),
        (2, begin(*fast)),
        (2, submit(4096, "end_bio_bh_io_sync")),
        (1, enter()),
    ]
    other += [
        (1, begin(*fast)),
        (9, done()),
        (2, end("fc_commit")),
        (1, end("fc_commit")),
        (2, leave()),
        (1, leave()),
    ]
    rows = converted(tmp_path, other)
    assert sorted(waits(rows)) == [("fast commit", 5000, 5), ("fast commit wait", 3000, 5)]


def test_a_wait_without_its_end_is_a_loss(tmp_path: Path) -> None:
    rows = converted(tmp_path, [(1, enter()), (1, begin("wait_commit", " tid=5")), (1, leave())])
    only(rows["sync"], journal_ns=None, other_ns=None)
    assert losses(rows)["unmatched_wait"] == 1
    rows = converted(tmp_path, [(1, enter()), (1, end("wait_commit")), (1, leave())])
    only(rows["sync"], journal_ns=None)
    assert losses(rows)["unmatched_wait"] == 1


# Whole file systems, and workers.


def syncfs(name: str = "syncfs") -> list[str]:
    return [
        f"{name}_enter: (sync_filesystem+0x4/0x90) dev={DEV}",
        f"{name}_exit: (f+0x4/0x9 <- g) ret=0",
    ]


def test_a_flusher_writes_for_syncfs(tmp_path: Path) -> None:
    start, stop = syncfs()
    for reason, origin in (("2", "sync"), ("sync", "sync"), ("1", "background")):
        work = f"writeback_work: (wb_writeback+0x4/0x90) dev={DEV} reason={reason}"
        written: Case = [("kworker/u8:1-30", event) for event in (work, folio(0), submit(4096))]
        rows = converted(tmp_path, [(1, start), *written, (9, done()), (1, stop)])
        only(rows["bio"], origin=origin)
        only(rows["sync"], bytes=4096 if origin == "sync" else 0, ino=None, dev="254,16")
    # The tracepoints of the flusher, as the ring buffer prints them.
    rest = "sync_mode=0 kupdate=0 range_cyclic=0 background=0"
    for reason, device, origin in (
        ("sync", "254:16", "sync"),
        ("periodic", "254:16", "background"),
        # For all file systems at once. No sync waits for it.
        ("sync", "0:0", "background"),
        # For a sync that is not in the log.
        ("sync", "254:17", None),
    ):
        work = f"bdi 254:16: sb_dev {device} nr_pages=32 {rest} reason={reason} cgroup_ino=1"
        written = [
            ("kworker/u8:1-30", event)
            for event in (f"writeback_start: {work}", folio(0), submit(4096))
        ]
        ended = [("kworker/u8:1-30", f"writeback_written: {work}")]
        rows = converted(tmp_path, [(1, start), *written, *ended, (9, done()), (1, stop)])
        only(rows["bio"], origin=origin)
        only(rows["sync"], bytes=4096 if origin == "sync" else 0, ino=None, dev="254,16")
    # After it, the flusher works for nobody that is known. The begin of its work may be lost, so the sync may lack this bio.
    work = f"bdi 254:16: sb_dev 254:16 nr_pages=32 {rest} reason=sync cgroup_ino=1"
    later: Case = [
        ("kworker/u8:1-30", event)
        for event in (
            f"writeback_start: {work}",
            f"writeback_written: {work}",
            folio(0),
            submit(4096),
        )
    ]
    rows = converted(tmp_path, [(1, start), *later, (9, done()), (1, stop)])
    only(rows["bio"], origin=None, sync_id=None, ino=None)
    only(rows["sync"], bytes=None, bios=None, incomplete="bio")
    # Two syncs of the file system run, and it is not known for which one the kernel writes.
    work = f"writeback_work: (wb_writeback+0x4/0x90) dev={DEV} reason=2"
    written = [("kworker/u8:1-30", event) for event in (work, folio(0), submit(4096))]
    rows = converted(
        tmp_path, [(1, start), (2, start), *written, (9, done()), (1, stop), (2, stop)]
    )
    only(rows["bio"], origin="background")
    # What its own thread writes of the file system is exact.
    rows = converted(
        tmp_path, [(1, start), (1, folio(0)), (1, submit(4096)), (9, done()), (1, stop)]
    )
    only(rows["sync"], bytes=4096, confidence="exact")


def test_folios_of_a_flusher_whose_submit_is_lost_are_of_the_sync_that_waits(
    tmp_path: Path,
) -> None:
    start, stop = syncfs()
    work = f"writeback_work: (wb_writeback+0x4/0x90) dev={DEV} reason=2"
    written: Case = [("kworker/u8:1-30", event) for event in (work, folio(0))]
    other: Case = [
        (5, folio(0, bio=BIO + 64)),
        (5, submit(4096, bio=BIO + 64)),
        (9, done(BIO + 64)),
    ]
    rows = converted(tmp_path, [*other, (1, start), *written, (9, done()), (1, stop)])
    only(rows["sync"], bytes=4096, bios=1, incomplete="bio")
    assert losses(rows)["never_submitted"] == 1


# Which sync functions call which: events that are lost.

INODES = (f"sync_inodes: (sync_inodes_sb+0x4/0x90) dev={DEV}", "sync_inodes_end: (f+0x4/0x9 <- g)")
SUPER = (
    f'sync_super: (ext4_sync_fs+0x4/0x90) dev={DEV} fs="ext4" wait=1',
    "sync_super_end: (f+0x4/0x9 <- ext4_sync_fs) ret=0",
)


def of_syncfs() -> list[str]:
    """The events of a call, as the kernel makes it: journal, data, journal."""
    start, stop = f'syncfs_enter: (sync_filesystem+0x4/0x90) dev={DEV} fs="ext4"', syncfs()[1]
    return [
        "sys_syncfs(fd: 3)",
        *(start, *SUPER, *INODES, *SUPER, stop),
        "sys_syncfs -> 0x0",
    ]


def test_a_function_that_is_called_leaves_the_bounds_to_the_outer_one(tmp_path: Path) -> None:
    complete = of_syncfs()
    (whole,) = converted(tmp_path, [(1, event) for event in complete])["sync"]
    assert (whole["dur_ns"], whole["syscall_ns"], whole["ret"]) == (8000, 9000, 0)
    for lost in range(2, 8):
        case: Case = [
            (1, event) if at != lost else (2, "sys_read()") for at, event in enumerate(complete)
        ]
        (row,) = converted(tmp_path, case)["sync"]
        assert (row["dur_ns"], row["syscall_ns"], row["incomplete"]) == (8000, 9000, None), lost


def test_functions_whose_outer_one_has_no_start_are_parts_of_one_sync(tmp_path: Path) -> None:
    complete = of_syncfs()
    for with_call in (True, False):
        events = [complete[0], *complete[2:]] if with_call else complete[2:-1]
        rows = converted(tmp_path, [(1, event) for event in events])["sync"]
        assert len({row["call_sync_id"] for row in rows}) == 1
        assert [row["incomplete"] for row in rows] == [None, None, None, "start"]
        assert [row["confidence"] for row in rows[:3]] == ["inferred"] * 3


def test_a_function_that_calls_no_other_ends_before_the_next_one(tmp_path: Path) -> None:
    """sync() goes from one file system to the next, and the end of one of them is lost."""
    begins = [f"sync_inodes: (sync_inodes_sb+0x4/0x90) dev={dev}" for dev in (1, 2)]
    events = ["sys_sync()", begins[0], begins[1], INODES[1], "sys_sync -> 0x0"]
    rows = converted(tmp_path, [(1, event) for event in events])["sync"]
    assert [(row["dev"], row["incomplete"]) for row in rows] == [("0,1", "end"), ("0,2", None)]
    assert [row["dur_ns"] for row in rows] == [None, 1000]


# Calls whose entry is lost.


def test_all_requests_of_a_sync_without_its_entry_are_one_sync(tmp_path: Path) -> None:
    devices = range(1, 21)
    data = [
        event
        for dev in devices
        for event in (f"sync_inodes: (sync_inodes_sb+0x4/0x90) dev={dev}", INODES[1])
    ]
    # A write with O_DSYNC before it is in no call of it.
    before = [enter(), leave()]
    exits = ["sys_fsync(fd: 3)", enter(), leave(), "sys_fsync -> 0x0"]
    for first in ([], exits):
        events = [*first, *before, *data, *SUPER, *SUPER, "sys_sync -> 0x0"]
        rows = converted(tmp_path, [(1, event) for event in events])["sync"][-23:]
        assert rows[0]["call_sync_id"] == rows[0]["sync_id"]
        assert rows[0]["incomplete"] is None
        of_sync = rows[1:]
        assert {row["call_sync_id"] for row in of_sync} == {of_sync[0]["sync_id"]}
        assert {(row["incomplete"], row["dur_ns"]) for row in of_sync} == {("call", None)}


def test_the_data_of_a_file_system_again_are_of_the_next_sync(tmp_path: Path) -> None:
    """The exit of a call and the entry of the next one are lost, so the two calls look like one."""
    once = [*INODES, *SUPER, *SUPER]
    events = ["sys_sync()", *once, "sys_sync -> 0x0"]
    events += ["sys_sync()", *once, *once, "sys_sync -> 0x0"]
    rows = converted(tmp_path, [(1, event) for event in events])["sync"]
    assert [row["call_sync_id"] for row in rows] == [1, 1, 1, 4, 4, 4, 7, 7, 7]
    assert [row["incomplete"] for row in rows] == [None] * 6 + ["call"] * 3
    assert rows[3]["syscall_ns"] is None


def test_a_second_sync_in_a_call_for_one_is_of_another_call(tmp_path: Path) -> None:
    one = [enter(), leave()]
    whole = ["sys_fsync(fd: 3)", *one, "sys_fsync -> 0x0"]
    events = [*whole, *whole[:-1], *whole[1:]]
    rows = converted(tmp_path, [(1, event) for event in events])
    assert [row["call_sync_id"] for row in rows["sync"]] == [1, 2, 3]
    assert [row["syscall_ns"] for row in rows["sync"]] == [3000, None, None]
    assert [row["incomplete"] for row in rows["sync"]] == [None, None, "call"]
    assert rows["sync"][2]["op"] == "fsync"
    assert losses(rows)["exit_missing"] == losses(rows)["call_missing"] == 1


def test_the_first_call_of_a_log_may_lack_its_entry(tmp_path: Path) -> None:
    """Nothing has said by then whether the log records exits, and the log is older than a second."""
    events = [
        "sched_waking: comm=x pid=9 prio=120 target_cpu=000",
        enter(),
        leave(),
        "sys_fsync -> 0x0",
    ]
    lines = [
        f"{'wl-1':>24} [000] .....    1{number > 0:d}.{number:06}: {event}"
        for number, event in enumerate(events)
    ]
    log = "\n".join(["# tracer: nop", "#", *lines, ""]).encode()
    only(core(tmp_path, log)["sync"], incomplete="call", dur_ns=None, op="fsync")


def test_sync_of_all_inodes_is_a_request(tmp_path: Path) -> None:
    rows = converted(
        tmp_path,
        [
            (1, f"sync_inodes: (sync_inodes_sb+0x4/0x90) dev={DEV}"),
            (1, folio(0)),
            (1, submit(4096)),
            (9, done()),
            (1, "sync_inodes_end: (f+0x4/0x9 <- sync_inodes_sb)"),
        ],
    )
    only(rows["sync"], bytes=4096, ret=None, incomplete=None, dur_ns=4000)


def test_the_commit_of_a_file_system_in_sync_is_a_request(tmp_path: Path) -> None:
    begins = f'sync_super: (ext4_sync_fs+0x4/0x90) dev={DEV} fs="ext4" wait=1'
    ends = "sync_super_end: (sync_fs_one_sb+0x4/0x9 <- ext4_sync_fs) ret=-5"
    waits = [begin("wait_commit", " tid=3"), end("wait_commit")]
    rows = converted(tmp_path, [(1, event) for event in (begins, *waits, ends)])
    only(rows["sync"], ret=-5, dev="254,16", fs="ext4", ino=None, journal_ns=1000)
    # In syncfs() it is called by another function that is a request.
    start, stop = syncfs()
    rows = converted(tmp_path, [(1, event) for event in (start, begins, *waits, ends, stop)])
    only(rows["sync"], dur_ns=5000, ret=0, journal_ns=1000)


def test_sync_file_range_is_a_request_for_data(tmp_path: Path) -> None:
    begins = (
        f'range_enter: (sync_file_range+0x4/0x90) dev={DEV} ino=7 gen=1 fs="ext4" offset=0'
        ' nbytes=4096 flags=7 n0="f" n1="/"'
    )
    ends = "range_exit: (ksys_sync_file_range+0x4/0x9 <- sync_file_range) ret=0"
    case: Case = [
        (1, "sys_sync_file_range(fd: 3, offset: 0, nbytes: 1000, flags: 7)"),
        (1, begins),
        (1, folio(0)),
        (1, submit(4096)),
        (9, done()),
        (1, ends),
        (1, "sys_sync_file_range -> 0x0"),
    ]
    rows = converted(tmp_path, case)
    only(rows["sync"], bytes=4096, datasync=True, path=".../f", ino=7, confidence="exact")
    only(rows["sync"], op="sync_file_range", syscall_ns=6000, start_ns=10_000_001_000)


def test_a_worker_of_btrfs_writes_for_the_only_sync(tmp_path: Path) -> None:
    # Compressed data are no page cache of an inode.
    worker: Case = [
        ("kworker/u8:1-30", folio(0, ino=0)),
        ("kworker/u8:1-30", submit(4096, "btrfs_simple_end_io")),
    ]
    start, stop = enter(function="btrfs_sync_file"), leave()
    rows = converted(tmp_path, [(1, start), *worker, (9, done()), (1, stop)])
    only(rows["sync"], bytes=4096, confidence="inferred")
    rows = converted(tmp_path, [(1, start), (2, start), *worker, (9, done()), (1, stop), (2, stop)])
    only(rows["bio"], origin="background")
    # The trees are written by anyone, unless the sync is writing its log.
    trees: Case = [("kworker/u8:1-30", folio(0, ino=1)), worker[1], (9, done())]
    rows = converted(tmp_path, [(1, start), *trees, (1, stop)])
    only(rows["bio"], origin="background")
    rows = converted(
        tmp_path, [(1, start), (1, begin("btrfs_log")), *trees, (1, end("btrfs_log")), (1, stop)]
    )
    only(rows["bio"], origin="sync", confidence="inferred")


# Formats.


def test_names_hold_any_character(tmp_path: Path) -> None:
    names = ' n0="a b=c" n1="0x1f" n2="x n3=y" n3="/"'
    rows = converted(tmp_path, [(1, enter(more=names)), (1, leave())])
    only(rows["sync"], path=".../x n3=y/0x1f/a b=c")


@pytest.mark.parametrize(
    "event",
    [
        "bio: (submit_bio+0x4/0xa6) bio=0x1 sector=8",
        "bio_add_folio: (bio_add_folio+0x4/0x3b) bio=0x1 ino=7",
        "bio_end: (bio_endio+0x4/0x103) status=0",
        "fsync_enter: (ext4_sync_file+0x4/0x90) dev=1",
        "fsync_enter: (ext4_sync_file+0x4/0x90) dev=1 ino",
        "fsync_exit: (?fn_fsync+0x10/0x20 ret=-5",
        # Two halves of events.
        "bio: (submit_bio+0x4/0xa6) bio=0x1 dev=1 sector=8 bytes=4096 opf=1 en1528 bytes=4096",
    ],
)
def test_damaged_events_are_counted(tmp_path: Path, event: str) -> None:
    rows = converted(tmp_path, [(1, enter()), (1, event), (1, leave())])
    assert losses(rows)["unparsed_line"] == 1
    assert event.split(":")[0] in next(
        row["example"] for row in rows["loss"] if row["reason"] == "unparsed_line"
    )


def test_a_torn_event_of_no_use_stays_one(tmp_path: Path) -> None:
    """Its name is that of an event of the patch, whose fields it lacks."""
    head = "            wl-1 [000] ....."
    (log := tmp_path / "in.txt").write_text(
        f"# tracer: nop\n{head} 10.000001: {enter()}\n{head} 10.000002: wb_start: (f+0x ino=7\n"
        f"{head} 10.000003: {leave()}\n"
    )
    low = tmp_path / "low.events.jsonl"
    _core.convert([str(log)], str(low))
    for one in (log, low):
        _core.convert([str(one)], f"{tmp_path}/{one.stem}-tables/")
        rows = tables(tmp_path / f"{one.stem}-tables")
        assert losses(rows) == {}
        meta = {row["key"]: row["value"] for row in rows["meta"]}
        assert (meta["events.other"], meta["events.probe"]) == ("1", "2")


def test_events_of_others_with_the_same_names(tmp_path: Path) -> None:
    # A probe of the user, and a probe with the name of an event of the patch.
    rows = converted(
        tmp_path,
        [
            (1, enter()),
            (1, "wb_start: (f+0x4/0x90) ino=7 index=0"),
            (1, "mine: (g+0x1/0x2) a=1 b"),
            (1, leave()),
        ],
    )
    assert losses(rows) == {}
    only(rows["sync"], incomplete=None)
