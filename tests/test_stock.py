"""Requests and bios of stock tracepoints, which have no request id, against the ids in the same recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests import coretools
from tests.coretools import ROOT

SMALL4 = ROOT / "tests" / "data" / "tracecmd" / "small4.dat"
WITH_IDS = {"sync_start", "sync_end", "bio_add_folio", "bio_submit", "bio_complete"}
DEV = "254,16"
Event = dict[str, Any]


def events_of(recording: Path, folder: Path) -> list[Event]:
    _core.convert([str(recording)], f"{folder}/all.events.jsonl")
    return [json.loads(line) for line in (folder / "all.events.jsonl").open()]


def tables(events: list[Event], folder: Path, name: str = "in") -> dict[str, coretools.Rows]:
    log = folder / f"{name}.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    _core.convert([str(log)], f"{folder}/{name}/")
    return coretools.tables(folder / name)


def losses(result: dict[str, coretools.Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


def test_without_the_patch_the_same_requests_are_found(tmp_path: Path) -> None:
    """Each thread submits the only page of its file itself, so inference must find everything."""
    events = events_of(SMALL4, tmp_path)
    exact = tables(events, tmp_path, "exact")
    stock = tables([e for e in events if e["event"] not in WITH_IDS], tmp_path, "stock")
    assert losses(exact) == {"duplicate": 300}
    assert losses(stock) == {}

    def known(row: Event) -> tuple[Any, ...]:
        return tuple(row[key] for key in ("op", "tid", "dev", "ino", "fs", "bytes", "bios", "ret"))

    by_ino = [sorted(result["sync"], key=lambda row: row["ino"]) for result in (exact, stock)]
    assert len(by_ino[0]) == 100
    for a, b in zip(*by_ino, strict=True):
        assert known(a) == known(b)
        assert (a["confidence"], b["confidence"]) == ("exact", "inferred")
        assert (b["id"], b["path"], b["folios"], b["ranges"]) == (None,) * 4
        # Times of the call are the same. The tracepoints of the file system and of the patch differ by a few µs.
        assert (a["ts_ns"], a["syscall_ns"]) == (b["ts_ns"], b["syscall_ns"])
        assert abs(a["start_ns"] - b["start_ns"]) < 2_000_000
        assert abs(a["writeback_ns"] - b["writeback_ns"]) < 2_000_000

    queued = [
        e for e in events if e["event"] == "block_bio_queue" and "W" in e["rwbs"] and e["nr_sector"]
    ]
    size = sum(e["nr_sector"] * 512 for e in queued)
    for result in (exact, stock):
        assert sum(row["bytes"] for row in result["bio"]) == size
        assert sum(row["direction"] == "write" for row in result["bio"]) == len(queued)
        assert all(row["dur_ns"] > 0 for row in result["bio"])
        journal = {row["comm"] for row in result["bio"] if row["origin"] == "background"}
        assert journal == {"jbd2/vdb-8"}


def call(ts: int, tid: int, *inside: Event, op: str = "fsync") -> list[Event]:
    common = {"tid": tid, "comm": "a", "source": "trace-dat"}
    middle = [common | event for event in inside]
    end = max([ts, *(event["ts_ns"] for event in inside)]) + 10
    return [
        common | {"ts_ns": ts, "event": f"sys_enter_{op}"},
        *middle,
        common | {"ts_ns": end, "event": f"sys_exit_{op}", "ret": 0},
    ]


def start(ts: int, name: str = "ext4_sync_file_enter", **more: Any) -> Event:
    return {"ts_ns": ts, "event": name, "fs": name.split("_", 1)[0], "dev": DEV, "ino": 5} | more


def end(ts: int, name: str = "ext4_sync_file_exit") -> Event:
    return {"ts_ns": ts, "event": name, "ret": 0}


def block(ts: int, name: str, sector: int, size: int, dev: str = DEV, **more: Any) -> Event:
    common = {"ts_ns": ts, "tid": 99, "comm": "x", "source": "trace-dat"}
    return (
        common | {"event": name, "dev": dev, "sector": sector, "bytes": size, "rwbs": "WS"} | more
    )


def test_merged_and_split_bios_keep_their_bytes(tmp_path: Path) -> None:
    events = call(
        100, 1,
        start(110, datasync=0),
        block(120, "block_bio_queue", 0, 4096, tid=1), block(121, "block_bio_queue", 8, 4096, tid=1),
        block(122, "block_bio_queue", 64, 8192, tid=1),
        # The first two bios complete as one request, the third in two parts.
        block(200, "block_rq_complete", 0, 8192), block(210, "block_rq_complete", 72, 4096),
        block(220, "block_rq_complete", 64, 4096),
        end(230),
    )  # fmt: skip
    result = tables(events, tmp_path)
    (row,) = result["sync"]
    assert (row["bytes"], row["bios"], row["writeback_ns"]) == (16384, 3, 100)
    assert (row["before_submit_ns"], row["after_complete_ns"]) == (10, 10)
    assert sorted((bio["sector"], bio["bytes"], bio["dur_ns"]) for bio in result["bio"]) == [
        (0, 4096, 80),
        (8, 4096, 79),
        (64, 8192, 98),
    ]
    assert losses(result) == {}


def test_bios_of_other_threads_are_background_writeback(tmp_path: Path) -> None:
    events = call(
        100, 1, start(110, datasync=0), block(120, "block_bio_queue", 0, 512, tid=2), end(130)
    )
    events += [block(300, "block_bio_queue", 8, 512, tid=1)]
    result = tables(events, tmp_path)
    assert [(row["origin"], row["sync_id"]) for row in result["bio"]] == [("background", None)] * 2
    assert (result["sync"][0]["bytes"], result["sync"][0]["confidence"]) == (0, "exact")
    assert losses(result) == {"never_completed": 2}


def test_the_amount_is_unknown_without_events_of_bios(tmp_path: Path) -> None:
    result = tables(call(100, 1, start(110, datasync=1), end(130), op="fdatasync"), tmp_path)
    (row,) = result["sync"]
    assert [row[key] for key in ("bytes", "bios", "folios", "ranges", "writeback_ns")] == [None] * 5
    assert (row["datasync"], row["dur_ns"], row["syscall_ns"], row["incomplete"]) == (
        True,
        30,
        40,
        None,
    )


@pytest.mark.parametrize(
    ("name", "datasync"), [("xfs_file_fsync", None), ("btrfs_sync_file", False)]
)
def test_a_request_without_an_end_event_ends_with_its_call(
    name: str, datasync: bool | None, tmp_path: Path
) -> None:
    start_event = start(110, name, **({} if datasync is None else {"datasync": int(datasync)}))
    result = tables(
        call(100, 1, start_event, block(150, "block_bio_queue", 0, 512, tid=1)), tmp_path
    )
    (row,) = result["sync"]
    assert (row["dur_ns"], row["ret"], row["confidence"]) == (60, 0, "inferred")
    assert row["datasync"] is datasync
    # A recording of ext4 may hold ends. Then a missing one is a loss.
    ended = call(10, 1, start(20, datasync=0), end(30))
    result = tables([*ended, *call(100, 1, start(110, datasync=0))], tmp_path, "lost")
    assert [row["incomplete"] for row in result["sync"]] == [None, "end"]
    assert losses(result) == {"end_missing": 1}
    # Without any, the calls say when the syncs ended.
    (row,) = tables(call(100, 1, start(110, datasync=0)), tmp_path, "unrecorded")["sync"]
    assert (row["dur_ns"], row["syscall_ns"], row["confidence"]) == (20, 20, "inferred")


SYNC = "ext4_sync_file_{}: dev 254,16 ino {} "


def enter(ino: int) -> str:
    return SYNC.format("enter", ino) + "parent 2 datasync 0 "


def leave(ino: int) -> str:
    return SYNC.format("exit", ino) + "ret 0"


def ring_buffer(folder: Path, *events: tuple[float, str]) -> dict[str, coretools.Rows]:
    """The tables of a text of the ring buffer. All events are of one thread; a completion may be of any."""
    lines = [f"              wl-262     [000] ..... {ts:12.6f}: {event}\n" for ts, event in events]
    return text_tables(folder, "# tracer: nop\n#\n" + "".join(lines))


def text_tables(folder: Path, text: str) -> dict[str, coretools.Rows]:
    (folder / "trace.txt").write_text(text)
    _core.convert([str(folder / "trace.txt")], f"{folder}/text/")
    return coretools.tables(folder / "text")


def bounds(result: dict[str, coretools.Rows]) -> list[tuple[Any, ...]]:
    """Inode, length and what is missing of each request."""
    return [(row["ino"], row["dur_ns"], row["incomplete"]) for row in result["sync"]]


def test_the_next_start_of_a_thread_says_that_an_end_was_lost(tmp_path: Path) -> None:
    """A thread is in one sync function at a time."""
    for second in (14, 13):
        # The next sync is of another file, or of the same one.
        events = [(20.5, enter(13)), (30.5, enter(second)), (30.502, leave(second))]
        result = ring_buffer(tmp_path, *events)
        assert bounds(result) == [(13, None, "end"), (second, 2_000_000, None)]
        assert losses(result) == {"end_missing": 1}


def test_an_end_of_another_file_is_of_a_request_whose_start_was_lost(tmp_path: Path) -> None:
    result = ring_buffer(tmp_path, (20.5, enter(13)), (30.502, leave(14)))
    assert bounds(result) == [(13, None, "end"), (14, None, "start")]
    assert losses(result) == {"end_missing": 1, "start_missing": 1}
    # The inode has the same number, but on another device.
    other = "ext4_sync_file_exit: dev 254,32 ino 13 ret 0"
    result = ring_buffer(tmp_path, (20.5, enter(13)), (30.502, other))
    assert [(row["dev"], row["incomplete"]) for row in result["sync"]] == [
        ("254,16", "end"),
        ("254,32", "start"),
    ]


def test_a_recording_that_is_there_twice_has_each_sync_once(tmp_path: Path) -> None:
    once = [(20.5, enter(13)), (20.502, leave(13)), (20.503, enter(13)), (20.504, leave(13))]
    result = ring_buffer(tmp_path, *once, *once)
    assert bounds(result) == [(13, 2_000_000, None), (13, 1_000_000, None)]
    # Time goes back where the recording begins again, so each of its four events is there already.
    assert losses(result) == {"duplicate": 4}


def test_a_late_start_does_not_lengthen_a_sync(tmp_path: Path) -> None:
    """Lines of another thread have moved the reorder window on when the start comes."""
    line = "              wl-{} [000] ..... {:12.6f}: {}\n"
    # The window moves with each chunk of 1 MB.
    filler = "".join(line.format(7, 100 + number / 1000, enter(99)) for number in range(12_000))
    text = (
        line.format(262, 90.5, enter(13))
        + filler
        + line.format(262, 80.0, enter(13))
        + filler
        + line.format(262, 112.5, leave(13))
    )
    result = text_tables(tmp_path, "# tracer: nop\n#\n" + text)
    own = [row for row in result["sync"] if row["ino"] == 13]
    assert [(row["start_ns"], row["dur_ns"]) for row in own] == [(90_500_000_000, 22_000_000_000)]
    assert losses(result)["late_event"] >= 1


@pytest.mark.parametrize("inodes", [(13, 13, 13, 13), (13, 14, 13, 14)])
def test_each_start_is_a_sync_where_no_ends_are_recorded(
    inodes: tuple[int, ...], tmp_path: Path
) -> None:
    events = [(20.5 + number / 10, enter(ino)) for number, ino in enumerate(inodes)]
    result = ring_buffer(tmp_path, *events)
    assert bounds(result) == [(ino, None, "end") for ino in inodes]
    assert losses(result) == {"ends_not_recorded": 4}


@pytest.mark.parametrize("start_of", [enter, "xfs_file_fsync: dev 254:16 ino {:#x}".format])
def test_a_sync_whose_end_is_unknown_has_the_bios_until_the_next(
    start_of: Any, tmp_path: Path
) -> None:
    def bio(ts: float, sector: int, done: float) -> list[tuple[float, str]]:
        return [
            (ts, f"block_bio_queue: 254,16 WS {sector} + 8 [wl]"),
            (done, f"block_rq_complete: 254,16 WS () {sector} + 8 [0]"),
        ]

    events = [(20.0, start_of(13)), *bio(20.0003, 8, 20.0013)]
    events += [(20.1, start_of(14)), *bio(20.1003, 16, 20.1023), *bio(20.1030, 24, 20.1040)]
    # Nothing has been in flight for long: the thread may have left the sync, and writes something else.
    events += bio(20.19, 80, 20.191)
    result = ring_buffer(tmp_path, *events)
    assert [(row["ino"], row["bytes"], row["bios"]) for row in result["sync"]] == [
        (13, 4096, 1),
        (14, 8192, 2),
    ]
    assert {(row["confidence"], row["incomplete"]) for row in result["sync"]} == {
        ("inferred", "end")
    }
    assert [(row["sector"], row["sync_id"]) for row in result["bio"]] == [
        (8, 1), (16, 2), (24, 2), (80, None)
    ]  # fmt: skip
    assert losses(result) == {"ends_not_recorded": 2}


def test_the_ends_of_one_file_system_do_not_stand_for_those_of_another(tmp_path: Path) -> None:
    events = [(20.0, enter(13)), (20.1, leave(13)), (20.2, enter(13))]
    events += [(20.0 + number, "xfs_file_fsync: dev 254:32 ino 0x5") for number in (1, 2)]
    result = ring_buffer(tmp_path, *events)
    assert losses(result) == {"end_missing": 1, "ends_not_recorded": 2}


def test_the_end_of_a_sync_of_f2fs_says_whether_it_is_for_data(tmp_path: Path) -> None:
    of = "dev = (254,16), ino = 4, "
    begin = f"f2fs_sync_file_enter: {of}pino = 3, i_mode = 0x81a4, i_size = 12288, i_nlink = 1, i_blocks = 32, i_advise = 0x0"
    for datasync, why in ((1, "cp_reason: no needed"), (0, "checkpoint is not needed")):
        finish = f"f2fs_sync_file_exit: {of}{why}, datasync = {datasync}, ret = 0"
        (row,) = ring_buffer(tmp_path, (20.0, begin), (20.1, finish))["sync"]
        assert (row["datasync"], row["incomplete"]) == (datasync == 1, None)
        # Also if the start was lost.
        (row,) = ring_buffer(tmp_path, (20.1, finish))["sync"]
        assert (row["datasync"], row["ino"], row["incomplete"]) == (datasync == 1, 4, "start")


def test_a_log_write_of_the_syncing_thread_ends_with_its_flush(tmp_path: Path) -> None:
    """xfs writes its log with FUA in the thread of the sync. The device has no FUA, so a flush follows."""
    events = call(
        100, 1,
        start(110, "xfs_file_fsync"),
        block(120, "block_bio_queue", 64, 3072, rwbs="FWFSM", tid=1),
        block(140, "block_rq_issue", 64, 3072, rwbs="WSM"),
        block(150, "block_rq_complete", 64, 3072, rwbs="WSM"),
        block(190, "block_rq_complete", 64, 0, rwbs="WSM"),
    )  # fmt: skip
    result = tables(events, tmp_path)
    (row,), (bio,) = result["sync"], result["bio"]
    assert (row["writeback_ns"], row["bytes"], row["bios"]) == (70, 3072, 1)
    assert [bio[key] for key in ("dur_ns", "queue_ns", "device_ns")] == [70, 20, 50]
    assert losses(result) == {}


def test_a_bio_remapped_by_a_device_mapper_is_one_bio(tmp_path: Path) -> None:
    events = call(
        100, 1,
        start(110, datasync=0, dev="253,0"),
        block(120, "block_bio_queue", 0, 4096, "253,0", tid=1),
        block(121, "block_bio_remap", 2048, 4096, DEV, from_dev="253,0", from_sector=0, tid=1),
        block(122, "block_bio_queue", 2048, 4096, DEV, tid=1),
        block(200, "block_rq_complete", 2048, 4096, DEV),
        block(201, "block_rq_complete", 0, 4096, "253,0"),
        end(230),
    )  # fmt: skip
    result = tables(events, tmp_path)
    assert [(bio["dev"], bio["bytes"], bio["dur_ns"]) for bio in result["bio"]] == [
        ("253,0", 4096, 81)
    ]
    assert result["sync"][0]["bytes"] == 4096
    assert losses(result) == {"remapped": 1}


@pytest.mark.parametrize("with_ids", [False, True])
def test_a_redirected_bio_is_issued_to_the_device_below(with_ids: bool, tmp_path: Path) -> None:
    """From a volume to a device mapper below it, with another sector, and from there to a disk and to its mirror."""
    volume, crypt, mirror, ino = "253,1", "253,0", "254,32", {"start": 0, "len": 4096}
    of = {"id": 9, "bio": "0xff8"}
    submit: list[Event] = [block(120, "block_bio_queue", 8, 4096, volume, tid=1)]
    complete = [block(200, "block_rq_complete", 8, 4096, volume)]
    if with_ids:
        own = {"tid": 1, "comm": "a", "source": "trace-dat"} | of
        submit = [
            own | ino | {"ts_ns": 119, "event": "bio_add_folio"},
            own | {"ts_ns": 120, "event": "bio_submit", "dev": volume, "sector": 8},
        ]
        complete = [own | {"ts_ns": 200, "event": "bio_complete", "tid": 0}]
    whole = {"id": 9, "start": 0, "end": 2**63 - 1, "datasync": 0, "dev": volume}
    begin = start(110, "sync_start", fs="ext4") | whole if with_ids else start(110, dev=volume)
    events = call(
        100, 1,
        begin,
        *submit,
        block(121, "block_bio_remap", 64, 4096, crypt, from_dev=volume, from_sector=8, tid=1),
        block(130, "block_bio_remap", 2064, 4096, DEV, from_dev=crypt, from_sector=64, tid=3),
        block(131, "block_bio_remap", 2064, 4096, mirror, from_dev=crypt, from_sector=64, tid=3),
        # Another bio on the disk, and the two copies of this one.
        block(132, "block_rq_issue", 64, 4096, DEV),
        block(150, "block_rq_issue", 2064, 4096, DEV),
        block(155, "block_rq_issue", 2064, 4096, mirror),
        *complete,
        (end(230) | {"event": "sync_end", "id": 9}) if with_ids else end(230),
    )  # fmt: skip
    result = tables(events, tmp_path)
    others = [row for row in result["bio"] if row["is_request"]]
    (bio,) = [row for row in result["bio"] if not row["is_request"]]
    assert [(row["dev"], row["sector"]) for row in others] == (
        # A bio that is not recorded, and the copy, which is a request on another disk.
        [] if with_ids else [(DEV, 64), (mirror, 2064)]
    )
    columns = ("dev", "below", "sector", "dur_ns", "queue_ns", "device_ns", "requeues", "parts")
    assert [bio[key] for key in columns] == [volume, DEV, 8, 80, 30, 50, None, None]
    phases = {row["phase"]: row["dur_ns"] for row in result["phase"]}
    assert (phases["queue"], phases["device"]) == (30, 50)


@pytest.mark.parametrize("is_read_between", [False, True])
def test_a_partition_below_a_device_mapper(is_read_between: bool, tmp_path: Path) -> None:
    """The kernel names the whole disk as the target, first with the sector in the partition, then with that of the disk."""
    volume, partition, other = "253,1", "254,17", "254,18"
    read = [
        # Another thread does the same meanwhile, with a bio that is not recorded.
        block(121, "block_bio_remap", 512, 4096, DEV, from_dev=other, from_sector=64, tid=2),
    ]
    events = call(
        100, 1,
        start(110, dev=volume),
        block(120, "block_bio_queue", 8, 4096, volume, tid=1),
        block(121, "block_bio_remap", 64, 4096, DEV, from_dev=volume, from_sector=8, tid=1),
        *(read if is_read_between else []),
        block(122, "block_bio_remap", 2112, 4096, DEV, from_dev=partition, from_sector=64, tid=1),
        # Somebody else's bio at this sector of the disk.
        block(130, "block_rq_issue", 64, 4096, DEV),
        block(135, "block_rq_issue", 512, 4096, DEV),
        block(150, "block_rq_issue", 2112, 4096, DEV),
        block(200, "block_rq_complete", 8, 4096, volume),
        end(230),
    )  # fmt: skip
    result = tables(events, tmp_path)
    others = [row for row in result["bio"] if row["is_request"]]
    (bio,) = [row for row in result["bio"] if not row["is_request"]]
    # The requests of bios that are not recorded.
    assert [(row["dev"], row["sector"]) for row in others] == [(DEV, 64), (DEV, 512)]
    columns = ("dev", "below", "sector", "queue_ns", "device_ns")
    assert [bio[key] for key in columns] == [volume, DEV, 8, 30, 50]
    below = {
        row["key"]: row["value"] for row in result["meta"] if row["key"].startswith("device_on.")
    }
    want = {f"device_on.{volume}": partition, f"device_on.{partition}": DEV}
    assert below == want | ({f"device_on.{other}": DEV} if is_read_between else {})


def test_a_patched_kernel_names_the_disk_of_a_partition(tmp_path: Path) -> None:
    """`bio_submit` has the number of the disk and the sector in the partition."""
    partition, own = (
        "254,17",
        {"tid": 1, "comm": "a", "source": "trace-dat", "id": 9, "bio": "0xff8"},
    )
    whole = {"id": 9, "start": 0, "end": 2**63 - 1, "datasync": 0, "dev": partition}
    events = call(
        100, 1,
        start(110, "sync_start", fs="ext4") | whole,
        own | {"ts_ns": 119, "event": "bio_add_folio", "start": 0, "len": 4096},
        own | {"ts_ns": 120, "event": "bio_submit", "dev": DEV, "sector": 8},
        block(121, "block_bio_remap", 2056, 4096, DEV, from_dev=partition, from_sector=8, tid=1),
        # Somebody else's bio at this sector of the disk.
        block(130, "block_rq_issue", 8, 4096, DEV),
        block(150, "block_rq_issue", 2056, 4096, DEV),
        own | {"ts_ns": 200, "event": "bio_complete", "tid": 0},
        end(230) | {"event": "sync_end", "id": 9},
    )  # fmt: skip
    result = tables(events, tmp_path)
    (bio,) = result["bio"]
    columns = ("dev", "below", "sector", "queue_ns", "device_ns", "parts")
    assert [bio[key] for key in columns] == [DEV, None, 8, 30, 50, None]


def test_reads_belong_to_no_sync(tmp_path: Path) -> None:
    events = call(100, 1, start(110, datasync=0), end(130))
    events += [
        block(140, "block_bio_queue", 0, 4096, rwbs="R"),
        block(150, "block_rq_complete", 0, 4096, rwbs="R"),
    ]
    result = tables(events, tmp_path)
    (bio,) = result["bio"]
    columns = ("direction", "bytes", "dur_ns", "origin", "sync_id")
    assert [bio[key] for key in columns] == ["read", 4096, 10, None, None]
    assert losses(result) == {}
