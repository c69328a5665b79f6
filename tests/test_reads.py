"""Reads that the recorder reports: bios with thread and file, and writes that wait for the page that they change a part of."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from syncline.advice import Advice, advise
from syncline.inputs import Reading, opened
from syncline.reading import convert_trace
from syncline.record import file_paths, probes, tracefs
from syncline.report.run import run_report

from tests.coretools import Rows, core, tables
from tests.reference.write_waits import FIELDS, write_waits

DISK, PART = 254 << 20 | 16, 254 << 20 | 17
# What a page says of its file, and the inode of it. `mapping` and `own` are texts in a low-level log, because numbers have 18 digits at most.
MAPPING = "18446612682070000000"
FILE = {"mapping": MAPPING, "own": MAPPING, "mode": 0o100644, "dev": PART, "ino": 13, "gen": 1}
# Bits of a bio's `bi_opf`: REQ_OP_READ, and with them REQ_SYNC or REQ_RAHEAD.
SYNC, AHEAD = 1 << 11, 1 << 19


def events(*rows: tuple[int, int, str, dict[str, Any]]) -> bytes:
    """A low-level log: (ms, thread, event, fields)."""
    of_probe = ("read", "page_", "buffer_wait", "fsync_")
    lines = [
        {"ts_ns": ms * 1_000_000, "tid": tid, "pid": tid, "comm": f"t{tid}", "event": event, "source": "trace.dat"}
        | ({"probe": "f+0x0/0x90"} if event.startswith(of_probe) else {})
        | fields
        for ms, tid, event, fields in rows
    ]  # fmt: skip
    return "\n".join(map(json.dumps, lines)).encode()


def read(disk: int = DISK, sector: int = 800, size: int = 4096, **more: Any) -> dict[str, Any]:
    return {"disk": disk, "sector": sector, "bytes": size, "opf": SYNC} | FILE | more


def block(dev: str = "254,16", sector: int = 800, **more: Any) -> dict[str, Any]:
    return {"dev": dev, "sector": sector, "bytes": 4096, "rwbs": "RS"} | more


ISSUE, COMPLETE, REMAP = "block_rq_issue", "block_rq_complete", "block_bio_remap"
COLUMNS = ("ts_ns", "dur_ns", "queue_ns", "tid", "dev", "direction", "bytes", "ino", "sync_id", "confidence")  # fmt: skip
MS = 1_000_000


def facts(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS)


def test_a_read_is_a_bio_of_its_thread_and_file(tmp_path: Path) -> None:
    log = events((10, 7, "read", read()), (12, 8, ISSUE, block()), (17, 0, COMPLETE, block()))
    (bio,) = core(tmp_path, log)["bio"]
    assert facts(bio) == (
        10 * MS, 7 * MS, 2 * MS, 7, "254,16", "read", 4096, 13, None, None,
    )  # fmt: skip
    assert (bio["is_request"], bio["rwbs"], bio["writers"]) == (False, "RS", None)


@pytest.mark.parametrize(
    "page",
    [
        # Direct I/O: memory of a program, where the other fields are what happens to be there.
        {"mapping": "18446612682070000001", "own": "18446612682070000001"},
        {"mapping": "18446612682070000003", "own": "18446612682070000003"},
        # The page of a file says another address space, as one that is no longer in it does.
        {"own": "18446612682070000064"}, {"mapping": 0}, {"own": 0},
        # Metadata, in the page cache of the device or of an inode without a type.
        {"mode": 0o60660}, {"mode": 0},
    ],
)  # fmt: skip
def test_what_is_no_page_of_a_file_has_no_file(tmp_path: Path, page: dict[str, Any]) -> None:
    log = events((10, 7, "read", read(**page)), (12, 8, ISSUE, block()), (17, 0, COMPLETE, block()))
    (bio,) = core(tmp_path, log)["bio"]
    assert (bio["ino"], bio["path"], bio["tid"], bio["dur_ns"]) == (None, None, 7, 7 * MS)


def test_the_text_of_the_ring_buffer_has_the_same_read(tmp_path: Path) -> None:
    """It prints addresses in hexadecimal."""
    page = f"mapping={int(MAPPING):#x} own={int(MAPPING):#x} mode=33188 dev={PART} ino=13 gen=1"
    log = (
        "# tracer: nop\n"
        f" t7-7 [000] ..... 0.010000: read: (submit_bio+0x4/0xa6) disk={DISK} sector=800 bytes=4096 opf={SYNC} {page}\n"
        " t8-8 [001] ..... 0.012000: block_rq_issue: 254,16 RS 4096 () 800 + 8 none,0,0 [t8]\n"
        " <idle>-0 [001] d.h.. 0.017000: block_rq_complete: 254,16 RS () 800 + 8 none,0,0 [0]\n"
    )
    (bio,) = core(tmp_path, log.encode())["bio"]
    assert facts(bio) == (10 * MS, 7 * MS, 2 * MS, 7, "254,16", "read", 4096, 13, None, None)


def test_a_read_of_a_partition_is_at_the_disk(tmp_path: Path) -> None:
    place = {"dev": "254,16", "sector": 2848, "bytes": 4096, "rwbs": "RS", "from_dev": "254,17", "from_sector": 800}  # fmt: skip
    log = events(
        (10, 7, "read", read(disk=PART)), (11, 7, REMAP, place),
        (12, 8, ISSUE, block(sector=2848)), (17, 0, COMPLETE, block(sector=2848)),
    )  # fmt: skip
    (bio,) = core(tmp_path, log)["bio"]
    assert (bio["dev"], bio["below"], bio["dur_ns"], bio["queue_ns"]) == ("254,17", "254,16", 7 * MS, 2 * MS)  # fmt: skip


def test_a_read_in_a_sync_is_not_of_the_sync(tmp_path: Path) -> None:
    log = events(
        (10, 7, "fsync_enter", {"ino": 13, "dev": PART, "fs": "ext4"}),
        (11, 7, "read", read(opf=SYNC)), (12, 7, ISSUE, block()), (17, 0, COMPLETE, block()),
        (20, 7, "fsync_exit", {"ret": 0}),
    )  # fmt: skip
    found = core(tmp_path, log)
    assert [row["sync_id"] for row in found["bio"]] == [None]
    # Which bios are the sync's is known by the probes of its submits, which this log has none of.
    assert found["sync"][0]["bios"] is None


# --- writes that wait for a page -----------------------------------------------------------------

BUFFER = {"bit": 2, "dev": PART, "mapping": MAPPING, "own": MAPPING, "mode": 0o100644, "file_dev": PART, "ino": 13, "block": 100, "size": 4096}  # fmt: skip


def page_reads(folder: Path, log: bytes) -> Rows:
    found = core(folder, log)
    bios = {row["bio_id"]: row["sector"] for row in found["bio"]}
    return [row | {"sector": bios.get(row["bio_id"])} for row in found["write_wait"]]


def shown(rows: Rows) -> list[tuple[Any, ...]]:
    columns = ("ts_ns", "dur_ns", "tid", "wait", "ino", "sector", "confidence")
    return [tuple(row[name] for name in columns) for row in rows]


def test_a_write_on_ext4_waits_for_the_buffer_that_it_reads(tmp_path: Path) -> None:
    """However short: on a fast device, there are many short ones. Of two blocks of a page, each wait has its own bio."""
    log = events(
        (10, 7, "read", read(sector=800, size=1024)), (10, 7, "read", read(sector=806, size=1024)),
        (11, 7, "buffer_wait", BUFFER | {"block": 400, "size": 1024}),
        (12, 8, ISSUE, block(bytes=1024)), (12, 8, ISSUE, block(sector=806, bytes=1024)),
        (17, 0, COMPLETE, block(bytes=1024)), (18, 7, "buffer_wait_end", {}),
        (18, 7, "buffer_wait", BUFFER | {"block": 403, "size": 1024}),
        (19, 0, COMPLETE, block(sector=806, bytes=1024)), (19, 7, "buffer_wait_end", {}),
    )  # fmt: skip
    assert shown(page_reads(tmp_path, log)) == [
        (11 * MS, 7 * MS, 7, "page read", 13, 800, "exact"),
        (18 * MS, 1 * MS, 7, "page read", 13, 806, "exact"),
    ]
    short = log.replace(b"11000000", b"17999999").replace(b"18000000", b"18000001")
    assert [row["dur_ns"] for row in page_reads(tmp_path, short)][:1] == [2]


def test_a_write_on_xfs_waits_for_the_bio_that_it_submits_next(tmp_path: Path) -> None:
    page = FILE | {"opf": SYNC}
    log = events(
        (10, 7, "page_read", page), (11, 7, "read", read()), (12, 8, ISSUE, block()), (17, 0, COMPLETE, block()), (18, 7, "page_read_end", {}),
        # The same function reads metadata, or direct I/O.
        (20, 7, "page_read", page | {"mode": 0}), (28, 7, "page_read_end", {}),
        (30, 7, "page_read", page | {"mapping": "18446612682070000001"}), (38, 7, "page_read_end", {}),
    )  # fmt: skip
    assert shown(page_reads(tmp_path, log)) == [(10 * MS, 8 * MS, 7, "page read", 13, 800, "exact")]


def test_a_write_on_btrfs_waits_for_the_lock_of_the_page_that_it_reads(tmp_path: Path) -> None:
    log = events(
        (10, 7, "read", read()), (11, 7, "page_lock", FILE), (12, 8, ISSUE, block()), (17, 0, COMPLETE, block()), (18, 7, "page_lock_end", {}),
        # Somebody else has the lock: no read of this thread is in flight, or one of another file.
        (20, 7, "page_lock", FILE), (28, 7, "page_lock_end", {}),
        (30, 7, "read", read(sector=880)), (31, 7, "page_lock", FILE | {"ino": 14}), (32, 8, ISSUE, block(sector=880)),
        (37, 0, COMPLETE, block(sector=880)), (38, 7, "page_lock_end", {}),
        (40, 7, "read", read(sector=960)), (41, 9, "page_lock", FILE), (42, 8, ISSUE, block(sector=960)),
        (47, 0, COMPLETE, block(sector=960)), (48, 9, "page_lock_end", {}),
    )  # fmt: skip
    assert shown(page_reads(tmp_path, log)) == [(11 * MS, 7 * MS, 7, "page read", 13, 800, "exact")]


def test_without_a_bio_of_the_thread_a_wait_for_a_page_is_inferred(tmp_path: Path) -> None:
    """Reads are not recorded, or another thread reads the page."""
    wait = [(11, 7, "buffer_wait", BUFFER), (18, 7, "buffer_wait_end", {})]
    expected = [(11 * MS, 7 * MS, 7, "page read", 13, None, "inferred")]
    assert shown(page_reads(tmp_path, events(*wait))) == expected
    of_other = [(10, 9, "read", read()), (12, 8, ISSUE, block()), (17, 0, COMPLETE, block())]
    assert shown(page_reads(tmp_path, events(*of_other[:1], wait[0], *of_other[1:], wait[1]))) == expected  # fmt: skip


def test_a_buffer_of_metadata_or_in_a_sync_is_no_write_that_waits(tmp_path: Path) -> None:
    metadata = BUFFER | {"mode": 0o60660}
    sync = {"ino": 13, "dev": PART, "fs": "ext4"}
    log = events(
        (11, 7, "buffer_wait", metadata), (18, 7, "buffer_wait_end", {}),
        (20, 7, "fsync_enter", sync), (21, 7, "buffer_wait", BUFFER), (28, 7, "buffer_wait_end", {}), (29, 7, "fsync_exit", {"ret": 0}),
    )  # fmt: skip
    assert page_reads(tmp_path, log) == []


# --- the recorder --------------------------------------------------------------------------------


def test_the_kernel_drops_reads_unless_they_are_wanted() -> None:
    _, tracepoints = probes.load()
    without, with_reads = (dict(tracepoints.recorded(has_reads=wanted)) for wanted in (False, True))
    assert without == dict(tracepoints.everywhere)
    more = {event: with_reads[event] for event in with_reads if with_reads[event] != without[event]}
    assert more == {
        f"block/{event}": 'rwbs ~ "*W*" || rwbs ~ "*F*" || rwbs ~ "R*"'
        for event in (REMAP, ISSUE, "block_rq_requeue", COMPLETE)
    }
    patched = dict(tracepoints.recorded(has_reads=True, is_patched=True))
    assert set(patched) == {*with_reads, "block/block_bio_queue", "block/block_bio_complete"}
    assert all("R*" in patched[f"block/block_bio_{event}"] for event in ("queue", "complete"))


def test_a_file_that_is_only_read_has_a_path_and_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its histogram counts only the bios that read a file, also once it has been emptied."""
    event = tmp_path / "instance/events/g/read"
    event.mkdir(parents=True)
    row = "{ dev: 8388609, ino: 12, gen: 5 } hitcount: 3\n"
    (event / "hist").write_text(row)
    (event / "trigger").write_text("")
    monkeypatch.setattr(file_paths, "path_of", lambda *_: "/a/b")
    monkeypatch.setattr(
        file_paths, "_text", lambda path: "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" if "mount" in path else ""
    )  # fmt: skip
    monkeypatch.setattr(file_paths, "_SIZE", 1)
    texts: list[str] = []
    monkeypatch.setattr(tracefs.Instance, "trigger", lambda _self, _event, text: texts.append(text))
    instance = tracefs.Instance(tmp_path, tmp_path / "instance")
    paths = file_paths.FilePaths(instance, [], read={"g/read": "mode & 32768"})
    paths.poll()
    assert [text.removeprefix("hist:keys=dev,ino,gen:size=16384") for text in texts] == [
        " if mode & 32768",
        ":clear if mode & 32768",
    ]
    assert (paths.written_back, paths.syncs, paths.tids) == (set(), 0, set())
    paths.write(tmp_path / "files.jsonl")
    first = json.loads((tmp_path / "files.jsonl").read_text().splitlines()[0])
    assert first == {"dev": 8388609, "ino": 12, "generation": 5, "path": "/a/b"}


# --- recordings ----------------------------------------------------------------------------------

RECORDINGS = Path(__file__).parent / "data" / "reads" / "recordings.tar.xz"
# tests/kernel/jobs/reads.sh: the size of a page, that of an unaligned write, how many of them, and how long a read takes at the device.
PAGE, WRITE, WRITES, READ_NS = 4096, 4000, 12, 20 * MS
FILE_SYSTEMS = ("ext4", "xfs", "btrfs", "f2fs")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reads")
    with tarfile.open(RECORDINGS) as tar:
        tar.extractall(folder, filter="data")
    return folder


def converted(run: Path, folder: Path) -> dict[str, Rows]:
    Reading().convert([str(run)], f"{folder}/out/")
    return tables(folder / "out")


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_each_page_that_is_overwritten_in_part_is_read_once(
    recordings: Path, tmp_path: Path, fs: str
) -> None:
    """The writes follow each other, so each begins a page that the one before it has not touched. The others are cached by then."""
    found = converted(recordings / f"{fs}-cold-unaligned", tmp_path)
    pages = -(-WRITES * WRITE // PAGE)
    waits = [row for row in found["write_wait"] if row["wait"] == "page read"]
    assert len(waits) == pages == 12
    bios = {row["bio_id"]: row for row in found["bio"]}
    assert len({row["bio_id"] for row in waits}) == pages
    for wait in waits:
        assert (wait["confidence"], Path(wait["path"]).name) == ("exact", "data")
        bio = bios[wait["bio_id"]]
        assert (bio["direction"], bio["tid"], bio["ino"], bio["path"]) == ("read", wait["tid"], wait["ino"], wait["path"])  # fmt: skip
        assert bio["bytes"] == PAGE
        # It waits until the page is there. The device counts its time in ticks of an emulated clock.
        assert wait["ts_ns"] + wait["dur_ns"] >= bio["ts_ns"] + bio["dur_ns"]
        assert wait["dur_ns"] >= READ_NS / 2
    (reads,) = [one for one in advice_of(recordings / f"{fs}-cold-unaligned") if one.finding.name == "reads"]  # fmt: skip
    assert (reads.status, reads.cost_ns) == ("found", sum(row["dur_ns"] for row in waits))
    assert f"python3 on {waits[0]['path']}" in reads.seen


def advice_of(run: Path) -> list[Advice]:
    with opened(str(run), Reading()) as engine:
        return advise(engine)


@pytest.mark.parametrize("case", ["ext4-cold-aligned", "ext4-warm-unaligned"])
def test_whole_pages_and_cached_pages_are_not_read(
    recordings: Path, tmp_path: Path, case: str
) -> None:
    found = converted(recordings / case, tmp_path)
    assert [row for row in found["write_wait"] if row["wait"] == "page read"] == []
    (reads,) = [one for one in advice_of(recordings / case) if one.finding.name == "reads"]
    assert reads.status == "none"


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_waits_for_pages_are_those_of_the_reference(
    recordings: Path, tmp_path: Path, fs: str
) -> None:
    run = recordings / f"{fs}-cold-unaligned"
    found = converted(run, tmp_path)
    Reading().convert([str(run)], f"{tmp_path}/e.events.jsonl")
    log = [json.loads(line) for line in (tmp_path / "e.events.jsonl").read_text().splitlines()]
    rows = sorted(found["write_wait"], key=lambda row: (row["ts_ns"], row["tid"], row["wait"]))
    expected = write_waits(log, found["sync"], found["call"], found["bio"])
    assert [{key: row[key] for key in FIELDS} for row in rows] == expected


def test_a_trace_has_the_reads_and_the_waits_for_pages(recordings: Path, tmp_path: Path) -> None:
    run = recordings / "ext4-cold-unaligned"
    found = converted(run, tmp_path)
    Reading().convert([str(run)], f"{tmp_path}/t.pftrace")
    convert_trace(f"{tmp_path}/t.pftrace", f"{tmp_path}/again/")
    again = tables(tmp_path / "again")
    for table in ("bio", "write_wait"):
        assert again[table] == found[table]


def test_a_program_that_only_reads_is_the_neighbour(recordings: Path, tmp_path: Path) -> None:
    """dd reads 160 parts of 64 KiB in a pass, around the page cache, while the second half of the syncs is made."""
    run = recordings / "neighbour-ext4"
    bios = [row for row in converted(run, tmp_path)["bio"] if row["comm"] == "dd"]
    assert len(bios) % 160 == 0
    assert {(row["direction"], row["bytes"], row["path"]) for row in bios} == {
        ("read", 65536, None)
    }
    assert all(row["dur_ns"] and row["tid"] for row in bios)
    with opened(str(run), Reading()) as engine:
        rows = run_report(engine, "neighbours").as_dicts()
        ahead = run_report(engine, "bystanders").as_dicts()
        (cause,) = [one for one in advise(engine) if one.finding.name == "neighbour"]
    (dd,) = [row for row in rows if row["process"] == "dd"]
    assert (dd["kind"], dd["bytes"], dd["of_syncs"], dd["quiet_syncs"]) == ("reads", sum(row["bytes"] for row in bios), 50, 25)  # fmt: skip
    # It met the 25 syncs of the second half, and no other.
    assert 20 <= dd["syncs"] <= 25
    # What is left for something unrecorded is less than a tenth of it.
    assert sum(row["cost_ns"] for row in rows if row["kind"] == "unrecorded") < dd["cost_ns"] / 10
    assert dd["low_ns"] <= dd["cost_ns"] <= dd["high_ns"]
    assert abs(dd["cost_ns"] - dd["compared_ns"]) <= dd["compared_error_ns"]
    assert [row["comm"] for row in ahead if row["kind"] == "read"] == ["dd"]
    assert cause.status == "found"
