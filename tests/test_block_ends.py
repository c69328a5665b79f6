"""Which event of the block layer ends a bio, where that is not plain: stacks without copies or remaps, merges, the beginning, several flushes.

The expected values follow from the printed events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.test_block_operations import COMPLETED, ISSUED, QUEUED, SOURCES, Event, Rows, rows_of

REMAPPED, BIO_END = "block_bio_remap", "block_bio_complete"
BEGUN, DONE, INSERTED = "block_io_start", "block_io_done", "block_rq_insert"
WL, IRQ, WORKER = "wl-559", "swapper/0-0", "kworker/0:1H-90"


def sync(dev: str, *events: Event, until: int = 9000) -> list[Event]:
    """The events of a sync of the thread `wl`."""
    return [
        (0, WL, "ext4_sync_file_enter", f"dev {dev} ino 13 parent 2 datasync 0"),
        *events,
        (until, WL, "ext4_sync_file_exit", f"dev {dev} ino 13 ret 0"),
    ]


def counts(rows: Rows, severity: str = "loss") -> dict[str, int]:
    return {row["reason"]: row["count"] for row in rows["loss"] if row["severity"] == severity}


def bios(rows: Rows, *columns: str) -> list[tuple[Any, ...]]:
    in_order = sorted(rows["bio"], key=lambda bio: bio["bio_id"])
    return [tuple(bio[key] for key in columns) for bio in in_order]


@pytest.mark.parametrize("source", SOURCES)
def test_a_path_of_a_multipath_device_ends_the_bio(source: str, tmp_path: Path) -> None:
    """The kernel redirects the bio itself, and so does not report that it is queued on the path."""
    rows = rows_of(
        tmp_path,
        sync(
            "259,0",
            (100, WL, QUEUED, "259,0 WS 1000 + 8 [wl]"),
            (101, WL, REMAPPED, "259,1 WS 1000 + 8 <- (259,0) 1000"),
            (110, WL, ISSUED, "259,1 WS 4096 () 1000 + 8 [wl]"),
            (1000, IRQ, COMPLETED, "259,1 WS () 1000 + 8 [0]"),
            # Without FUA on the device, it ends with the flush.
            (1100, WL, QUEUED, "259,0 WFS 2000 + 8 [wl]"),
            (1101, WL, REMAPPED, "259,1 WFS 2000 + 8 <- (259,0) 2000"),
            (1110, WL, ISSUED, "259,1 WS 4096 () 2000 + 8 [wl]"),
            (1500, IRQ, COMPLETED, "259,1 WS () 2000 + 8 [0]"),
            (1510, WORKER, ISSUED, "259,1 FF 0 () 0 + 0 [kworker/0:1H]"),
            (1900, IRQ, COMPLETED, "259,1 FF () 0 + 0 [0]"),
            (1901, IRQ, COMPLETED, "259,1 WS () 2000 + 0 [0]"),
            (2000, WL, QUEUED, "259,0 FWS 0 + 0 [wl]"),
            (2001, WL, REMAPPED, "259,1 FWS 0 + 0 <- (259,0) 0"),
            (2010, WORKER, ISSUED, "259,1 FF 0 () 0 + 0 [kworker/0:1H]"),
            (3000, IRQ, COMPLETED, "259,1 FF () 0 + 0 [0]"),
            (3002, IRQ, COMPLETED, "259,1 WS () 0 + 0 [0]"),
        ),
        source,
    )
    columns = ("dev", "direction", "sector", "dur_ns", "queue_ns", "device_ns", "error")
    assert bios(rows, *columns) == [
        ("259,0", "write", 1000, 900_000, 10_000, 890_000, 0),
        ("259,0", "write", 2000, 801_000, 10_000, 791_000, 0),
        ("259,0", "flush", None, 1_002_000, 10_000, 992_000, 0),
    ]
    assert [bio["below"] for bio in rows["bio"][:2]] == ["259,1", "259,1"]
    (one,) = rows["sync"]
    assert (one["bytes"], one["bios"], one["incomplete"]) == (8192, 2, None)
    assert counts(rows) == {}


def test_copies_on_several_devices_do_not_end_the_bio(tmp_path: Path) -> None:
    """A mirror redirects a bio to two disks. It ends with its own event."""
    rows = rows_of(
        tmp_path,
        sync(
            "9,0",
            (100, WL, QUEUED, "9,0 WS 1000 + 8 [wl]"),
            (101, WL, REMAPPED, "8,0 WS 1000 + 8 <- (9,0) 1000"),
            (102, WL, REMAPPED, "8,16 WS 1000 + 8 <- (9,0) 1000"),
            (110, WL, ISSUED, "8,0 WS 4096 () 1000 + 8 [wl]"),
            (111, WL, ISSUED, "8,16 WS 4096 () 1000 + 8 [wl]"),
            (1000, IRQ, COMPLETED, "8,0 WS () 1000 + 8 [0]"),
            (5000, IRQ, COMPLETED, "8,16 WS () 1000 + 8 [0]"),
            (5001, IRQ, BIO_END, "9,0 WS 1000 + 8 [0]"),
        ),
    )
    assert bios(rows, "dev", "bytes", "dur_ns", "error") == [("9,0", 4096, 4_901_000, 0)]
    assert rows["sync"][0]["bytes"] == 4096


LVM: list[Event] = [
    (100, WL, QUEUED, "253,0 WS 1000 + 8 [wl]"),
    (105, WL, QUEUED, "8,0 WS 501000 + 8 [wl]"),
    (110, WL, ISSUED, "8,0 WS 4096 () 501000 + 8 [wl]"),
    (1000, IRQ, COMPLETED, "8,0 WS () 501000 + 8 [0]"),
    (1002, IRQ, BIO_END, "253,0 WS 1000 + 8 [0]"),
    (1100, WL, QUEUED, "253,0 FWS 0 + 0 [wl]"),
    (1105, WL, QUEUED, "8,0 FWS 0 + 0 [wl]"),
    (1110, WORKER, ISSUED, "8,0 FF 0 () 0 + 0 [kworker/0:1H]"),
    (3000, IRQ, COMPLETED, "8,0 FF () 0 + 0 [0]"),
    (3001, IRQ, COMPLETED, "8,0 WS () 0 + 0 [0]"),
    (3002, IRQ, BIO_END, "253,0 FWS 0 + 0 [0]"),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("names", [None, (QUEUED, COMPLETED)])
def test_a_stack_without_remaps_counts_bytes_once(
    names: tuple[str, ...] | None, source: str, tmp_path: Path
) -> None:
    """The file system is on 253,0, which has no requests of its own. So the thread's submits to 8,0 carry out those to 253,0."""
    events = [event for event in LVM if names is None or event[2] in names]
    rows = rows_of(tmp_path, sync("253,0", *events), source)
    (one,) = rows["sync"]
    assert (one["bytes"], one["bios"]) == (4096, 1)
    columns = ("dev", "below", "direction", "dur_ns", "queue_ns", "device_ns")
    if names is None:
        assert bios(rows, *columns) == [
            ("253,0", "8,0", "write", 902_000, 10_000, 892_000),
            ("253,0", None, "flush", 1_902_000, None, None),
        ]
        assert (one["writeback_ns"], one["incomplete"]) == (902_000, None)
    else:
        # The end of a bio of the device mapper is in no event.
        assert bios(rows, *columns) == [
            ("253,0", "8,0", "write", None, None, None),
            ("253,0", None, "flush", None, None, None),
        ]
        assert (one["writeback_ns"], one["incomplete"]) == (None, "bio")
    assert counts(rows, "info")["remapped"] == 2


@pytest.mark.parametrize("has_requests", [True, False])
def test_bytes_on_several_devices(has_requests: bool, tmp_path: Path) -> None:
    """btrfs does not name its device. Where only submits are recorded, one device may be on the other."""
    events: list[Event] = [
        (0, WL, "sys_enter_fsync", "fd: 0x3"),
        (10, WL, "btrfs_sync_file", "x: root=5(FS_TREE) ino=257 parent=256 datasync=0"),
        *(
            (100 + at, WL, QUEUED, f"8,{minor} WS 1000 + 8 [wl]")
            for at, minor in enumerate((0, 16))
        ),
        *(
            (110 + at, WL, ISSUED, f"8,{minor} WS 4096 () 1000 + 8 [wl]")
            for at, minor in enumerate((0, 16))
        ),
        *(
            (1000 + at, IRQ, COMPLETED, f"8,{minor} WS () 1000 + 8 [0]")
            for at, minor in enumerate((0, 16))
        ),
        (2000, WL, "sys_exit_fsync", "0x0"),
    ]
    if not has_requests:
        events = [event for event in events if event[2] not in (ISSUED, COMPLETED)]
    (one,) = rows_of(tmp_path, events)["sync"]
    assert (one["bytes"], one["bios"]) == ((8192, 2) if has_requests else (None, None))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("events", "of_sync", "sizes"),
    [
        # A request that begins with one bio grows until it is issued, and its end has no length.
        (
            [(100, WL, BEGUN, "8,0 WS 4096 () 5000 + 8 none,0,0 [wl]"),
             (1000, IRQ, DONE, "8,0 WS 0 () 5000 + 0 none,0,0 [swapper/0]")],
            (None, 1), [None],
        ),
        # It was merged to the front.
        (
            [(100, WL, BEGUN, "8,0 WS 4096 () 5008 + 8 none,0,0 [wl]"),
             (1000, IRQ, DONE, "8,0 WS 0 () 5000 + 0 none,0,0 [swapper/0]")],
            (None, 1), [None],
        ),
        (
            [(100, WL, BEGUN, "8,0 WS 4096 () 5000 + 8 none,0,0 [wl]"),
             (130, WL, ISSUED, "8,0 WS 106496 () 5000 + 208 none,0,0 [wl]"),
             (1000, IRQ, DONE, "8,0 WS 0 () 5000 + 0 none,0,0 [swapper/0]")],
            (106_496, 2), [4096, 102_400],
        ),
        # The completion shows that something was merged, and not whose it is.
        (
            [(100, WL, INSERTED, "8,0 WS 4096 () 5000 + 8 [wl]"),
             (1000, IRQ, COMPLETED, "8,0 WS () 5000 + 208 [0]")],
            (None, 1), [4096, 102_400],
        ),
        (
            [(100, WL, INSERTED, "8,0 WS 4096 () 5000 + 8 [wl]"),
             (1000, IRQ, COMPLETED, "8,0 WS () 5000 + 8 [0]")],
            (4096, 1), [4096],
        ),
    ],
)  # fmt: skip
def test_the_size_of_a_request_at_its_begin_is_not_its_last(
    events: list[Event],
    of_sync: tuple[int | None, int],
    sizes: list[int | None],
    source: str,
    tmp_path: Path,
) -> None:
    rows = rows_of(tmp_path, sync("8,0", *events), source)
    (one,) = rows["sync"]
    assert (one["bytes"], one["bios"]) == of_sync
    assert [size for (size,) in bios(rows, "bytes")] == sizes


def test_the_end_of_a_request_that_no_begin_shows_is_counted(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        [
            (100, WL, BEGUN, "8,0 WS 4096 () 5008 + 8 none,0,0 [wl]"),
            (1000, IRQ, DONE, "8,0 WS 0 () 5000 + 0 none,0,0 [swapper/0]"),
        ],
    )
    assert bios(rows, "sector", "dur_ns", "incomplete") == [(5008, None, "end")]
    assert counts(rows) == {"never_completed": 1}
    assert counts(rows, "info")["other_completion"] == 1


@pytest.mark.parametrize(
    "events",
    [
        # The request holds a bio of before the beginning.
        [
            (110, WL, QUEUED, "8,0 WS 1008 + 8 [wl]"),
            (120, WL, ISSUED, "8,0 WS 8192 () 1000 + 16 [wl]"),
            (1000, IRQ, COMPLETED, "8,0 WS () 1000 + 16 [0]"),
        ],
        [
            (90, WORKER, ISSUED, "8,0 WS 8192 () 3000 + 16 [kworker/0:1H]"),
            (110, WL, QUEUED, "8,0 WS 1008 + 8 [wl]"),
            (120, WL, ISSUED, "8,0 WS 4096 () 1008 + 8 [wl]"),
            # It completes after one that was submitted in the log.
            (900, IRQ, COMPLETED, "8,0 WS () 1008 + 8 [0]"),
            (1000, IRQ, COMPLETED, "8,0 WS () 3000 + 16 [0]"),
        ],
    ],
)
def test_what_was_in_flight_at_the_beginning_is_no_loss(
    events: list[Event], tmp_path: Path
) -> None:
    rows = rows_of(tmp_path, sync("8,0", *events))
    assert (rows["sync"][0]["bytes"], rows["sync"][0]["incomplete"]) == (4096, None)
    assert counts(rows) == {}
    assert counts(rows, "info")["other_completion"] == 1


@pytest.mark.parametrize("source", SOURCES)
def test_the_bios_of_a_sync_that_began_before_the_log_are_not_known(
    source: str, tmp_path: Path
) -> None:
    events: list[Event] = [
        (100, WL, QUEUED, "8,0 WS 1000 + 8 [wl]"),
        (110, WL, ISSUED, "8,0 WS 4096 () 1000 + 8 [wl]"),
        (1000, IRQ, COMPLETED, "8,0 WS () 1000 + 8 [0]"),
        (3100, WL, "ext4_sync_file_exit", "dev 8,0 ino 13 ret 0"),
    ]
    (one,) = rows_of(tmp_path, events, source)["sync"]
    assert (one["bytes"], one["bios"], one["incomplete"]) == (None, None, "start")


@pytest.mark.parametrize("source", SOURCES)
def test_an_end_without_a_length_that_nothing_waits_for_is_counted(
    source: str, tmp_path: Path
) -> None:
    """A write with a flush before it ends twice: that is no loss. Another one is that of a write that is not in the log."""
    whole: list[Event] = [
        (100, WL, QUEUED, "8,0 FWS 1000 + 8 [wl]"),
        (110, WORKER, ISSUED, "8,0 FF 0 () 0 + 0 [kworker/0:1H]"),
        (200, IRQ, COMPLETED, "8,0 FF () 0 + 0 [0]"),
        (210, WORKER, ISSUED, "8,0 WS 4096 () 1000 + 8 [kworker/0:1H]"),
        (900, IRQ, COMPLETED, "8,0 WS () 1000 + 8 [0]"),
        (901, IRQ, COMPLETED, "8,0 WS () 1000 + 0 [0]"),
    ]
    end: Event = (1000, IRQ, COMPLETED, "8,0 WS () 7000 + 0 [0]")

    def found(name: str, *events: Event) -> tuple[Any, ...]:
        (folder := tmp_path / name).mkdir()
        rows = rows_of(folder, sync("8,0", *events), source)
        return counts(rows), counts(rows, "info"), rows["sync"][0]["bytes"]

    assert found("whole", *whole) == ({}, {}, 4096)
    assert found("lost", *whole, end) == ({"unmatched_complete": 1}, {}, None)
    began: Event = (50, IRQ, COMPLETED, "8,0 WS () 7000 + 0 [0]")
    assert found("before", began, *whole) == ({}, {"other_completion": 1}, 4096)


def flushes(*ends: tuple[int, int]) -> list[Event]:
    """Two threads flush on two queues. `ends`: when a cache flush ends, and its error."""
    events: list[Event] = [
        (100, WL, QUEUED, "259,0 FWS 0 + 0 [wl]"),
        (110, WORKER, ISSUED, "259,0 FF 0 () 0 + 0 [kworker/0:1H]"),
        (1100, "db-560", QUEUED, "259,0 FWS 0 + 0 [db]"),
        (1110, "kworker/1:1H-91", ISSUED, "259,0 FF 0 () 0 + 0 [kworker/1:1H]"),
    ]
    for at, error in ends:
        events.append((at, IRQ, COMPLETED, f"259,0 FF () 18446744073709551615 + 0 [{error}]"))
        events.append((at + 2, IRQ, COMPLETED, f"259,0 WS () 0 + 0 [{error}]"))
    return sorted(events)


@pytest.mark.parametrize("source", SOURCES)
def test_the_ends_of_flushes_on_two_queues_are_not_known(source: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path, flushes((2000, 0), (6000, -5)), source)
    assert bios(rows, "dur_ns", "error", "incomplete") == [(None, None, "end")] * 2
    assert counts(rows) == {}
    assert counts(rows, "info") == {"flush_end_unknown": 2}


@pytest.mark.parametrize("source", SOURCES)
def test_the_ends_of_flushes_one_after_the_other_are_known(source: str, tmp_path: Path) -> None:
    """The first flush ends before the second one begins."""
    rows = rows_of(tmp_path, flushes((1000, 0), (6000, -5)), source)
    assert bios(rows, "dur_ns", "error") == [(902_000, 0), (4_902_000, -5)]
    assert counts(rows, "info") == {}


def test_the_ends_of_flushes_on_three_queues_are_not_known(tmp_path: Path) -> None:
    """Two other queues flush again and again while the first one does: none of these ends is that of the first flush for certain."""
    events: list[Event] = []
    for queue in range(3):
        events.append((100 + queue, f"db-{queue + 1}", QUEUED, "259,0 FWS 0 + 0 [db]"))
        events.append((110 + queue, WORKER, ISSUED, "259,0 FF 0 () 0 + 0 [kworker/0:1H]"))
    for turn in range(1, 5):
        for queue in (1, 2):
            at = 1000 * turn + 100 * queue
            events.append((at, IRQ, COMPLETED, "259,0 FF () 0 + 0 [0]"))
            events.append((at + 2, IRQ, COMPLETED, "259,0 WS () 0 + 0 [0]"))
            events.append((at + 10, f"db-{queue + 1}", QUEUED, "259,0 FWS 0 + 0 [db]"))
            events.append((at + 20, WORKER, ISSUED, "259,0 FF 0 () 0 + 0 [kworker/0:1H]"))
    rows = rows_of(tmp_path, events)
    assert {bio["dur_ns"] for bio in rows["bio"]} == {None}
