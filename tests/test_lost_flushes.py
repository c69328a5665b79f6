"""Flushes that lack an event: those that follow keep their own times, and what is not known is null.

The block layer flushes the cache of a device for one list of bios after the other, and ends the bios of a list, in their order, before the next
flush begins. The expected values follow from that and from the printed events.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.reference import flushes
from tests.test_block_operations import COMPLETED, ISSUED, QUEUED, Event, Rows, rows_of

WL, OTHER, IRQ, WORKER = "wl-559", "wm-560", "swapper/0-0", "kworker/0:1H-90"
Times = list[tuple[Any, ...]]


def asked(us: float, task: str = WL) -> Event:
    return us, task, QUEUED, f"8,0 FWS 0 + 0 [{task.split('-')[0]}]"


def issued(us: float) -> Event:
    return us, WORKER, ISSUED, "8,0 FF 0 () 0 + 0 [kworker/0:1H]"


def flushed(us: float) -> Event:
    return us, IRQ, COMPLETED, "8,0 FF () 18446744073709551615 + 0 [0]"


def ended(us: float) -> Event:
    return us, IRQ, COMPLETED, "8,0 WS () 0 + 0 [0]"


def one(us: float) -> list[Event]:
    """A flush that takes 251 us, 50 us of them in the queue."""
    return [asked(us), issued(us + 50), flushed(us + 250), ended(us + 251)]


def times(rows: Rows) -> Times:
    columns = ("dur_ns", "queue_ns", "incomplete", "confidence")
    return [tuple(bio[key] for key in columns) for bio in rows["bio"]]


def reasons(rows: Rows) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in rows["loss"]}


WHOLE = (251_000, 50_000, None, None)
LOST = (None, 50_000, "end", None)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        # Its end cannot be distinguished from that of a flush whose bio is not in the log.
        (1, (None, None, "end", None)),
        # Each bio that is issued ends, whatever is known of its request.
        (2, WHOLE),
        # Nothing else waited for the flush, so the next one begins after its end.
        (3, LOST),
    ],
)
def test_the_flush_after_a_loss_keeps_its_own_times(
    lost: int, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    second = [event for at, event in enumerate(one(1000)) if at != lost]
    rows = rows_of(tmp_path, [*one(100), *second, *one(2000), *one(3000)])
    assert times(rows) == [WHOLE, expected, WHOLE, WHOLE]


def test_a_flush_without_its_bio_is_a_request(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, [*one(100), *one(1000)[1:], *one(2000)])
    assert [bio["is_request"] for bio in rows["bio"]] == [False, True, False]
    assert [times(rows)[at] for at in (0, 2)] == [WHOLE, WHOLE]


def test_several_bios_end_with_one_flush_in_their_order(tmp_path: Path) -> None:
    rows = rows_of(
        tmp_path,
        [asked(100), asked(110, OTHER), issued(150), flushed(300), ended(301), ended(303)],
    )
    assert times(rows) == [
        (201_000, 50_000, None, None),
        (193_000, 40_000, None, None),
    ]


def test_a_bio_that_comes_too_late_for_a_flush_ends_with_the_next_one(tmp_path: Path) -> None:
    """The block layer chose the bios of the first request before the second bio came, and issued it after that. The next one begins at once."""
    rows = rows_of(
        tmp_path,
        [
            *(asked(100), asked(140, OTHER), issued(150), flushed(300), ended(301)),
            *(issued(340), flushed(600), ended(602)),
        ],
    )
    assert times(rows) == [
        (201_000, 50_000, None, None),
        (462_000, 200_000, None, None),
    ]


def test_one_end_for_two_bios_is_nobodys(tmp_path: Path) -> None:
    """One of both has lost its end, and nothing says which: the next flush, 10 ms later, is for a third bio."""
    rows = rows_of(
        tmp_path,
        [
            *(asked(100), asked(110, OTHER), issued(150), flushed(300), ended(301)),
            *one(10_000),
            *one(20_000),
        ],
    )
    assert [row[0] for row in times(rows)] == [None, None, None, 251_000]
    assert [row[2] for row in times(rows)] == ["end", "end", "end", None]
    assert reasons(rows)["flush_end_unknown"] == 3


def test_without_an_end_a_flush_is_inferred(tmp_path: Path) -> None:
    """The bio is complete a moment after the device has emptied its cache. No event says when."""
    rows = rows_of(tmp_path, [event for event in one(100) if event[2:] != ended(0)[2:]])
    assert times(rows) == [(250_000, 50_000, None, "inferred")]


def test_a_flush_that_ends_first_may_have_begun_before_the_log(tmp_path: Path) -> None:
    """The request that is done was issued before the log, and may be that of another bio, which ends before this one is issued."""
    rows = rows_of(tmp_path, [asked(100), flushed(120), ended(121), issued(150), flushed(400)])
    assert [(bio["is_request"], bio["dur_ns"], bio["confidence"]) for bio in rows["bio"]] == [
        (False, 21_000, "inferred"),
        (True, 250_000, None),
    ]


def patched(*events: Event) -> list[Event]:
    """A sync of the patch with one bio, which the block layer reports too, and other events after it."""
    return [
        (0, WL, "sync_start", "id=7 start=0 end=99 datasync=0 dev=8,0 ino=13 path=/a fs=ext4"),
        (10, WL, "bio_add_folio", "id=7 bio=ff110000008969c0 start=0 len=4096 dev=8,0 ino=13"),
        (20, WL, "bio_submit", "id=7 bio=ff110000008969c0 dev=8,0 sector=800 bytes=4096 opf=0x801"),
        (21, WL, QUEUED, "8,0 WS 800 + 8 [wl]"),
        (30, WL, ISSUED, "8,0 WS 4096 () 800 + 8 [wl]"),
        (300, IRQ, COMPLETED, "8,0 WS () 800 + 8 [0]"),
        (301, IRQ, "bio_complete", "bio=ff110000008969c0 status=0"),
        (310, WL, "sync_end", "id=7 ret=0"),
        *events,
    ]


def test_a_write_of_the_journal_without_its_submit_is_counted(tmp_path: Path) -> None:
    """Two bios were merged, and one of their submits is in the log. What the patch reports is complete."""
    jbd2 = "jbd2/sda-8-77"
    rows = rows_of(
        tmp_path,
        patched(
            (400, jbd2, QUEUED, "8,0 WSM 1000 + 8 [jbd2/sda-8]"),
            (410, jbd2, ISSUED, "8,0 WSM 8192 () 1000 + 16 [jbd2/sda-8]"),
            (700, IRQ, COMPLETED, "8,0 WSM () 1000 + 16 [0]"),
        ),
    )
    assert [(bio["sector"], bio["bytes"]) for bio in rows["bio"]] == [(800, 4096), (1000, 4096)]
    assert reasons(rows)["unmatched_complete"] == 1
    (sync,) = rows["sync"]
    assert (sync["bytes"], sync["incomplete"], sync["confidence"]) == (4096, None, "exact")


def test_a_sync_whose_only_submit_is_the_first_one_of_the_log_may_have_a_bio(
    tmp_path: Path,
) -> None:
    """A request is issued in the first sync, without a submit. The log has submits, so that of the sync may be the one that is lost."""
    enter, leave = "dev 8,0 ino 13 parent 2 datasync 0", "dev 8,0 ino 13 ret 0"
    rows = rows_of(
        tmp_path,
        [
            (0, WL, "ext4_sync_file_enter", enter),
            (100, WORKER, ISSUED, "8,0 WS 4096 () 1000 + 8 [kworker/0:1H]"),
            (150, OTHER, QUEUED, "8,0 WS 5000 + 8 [wm]"),
            (160, OTHER, ISSUED, "8,0 WS 4096 () 5000 + 8 [wm]"),
            (500, IRQ, COMPLETED, "8,0 WS () 1000 + 8 [0]"),
            (600, WL, "ext4_sync_file_exit", leave),
            (700, IRQ, COMPLETED, "8,0 WS () 5000 + 8 [0]"),
            (1000, WL, "ext4_sync_file_enter", enter),
            (1100, WL, "ext4_sync_file_exit", leave),
        ],
    )
    first, second = rows["sync"]
    assert (first["bios"], first["bytes"], first["incomplete"]) == (None, None, "bio")
    # Nothing is unknown in the second one.
    assert (second["bios"], second["bytes"], second["incomplete"]) == (0, 0, None)


# Many flushes, against the truth of tests/reference/flushes.py.


def printed(event: flushes.Event) -> Event:
    """The line of an event. Each bio is asked for by a thread of its own."""
    if event.name == "asked":
        return asked(event.us, f"w{event.bio}-{1000 + (event.bio or 0)}")
    return {"issued": issued, "flushed": flushed, "ended": ended}[event.name](event.us)


def wrong(rows: Rows, truth: list[flushes.Truth]) -> list[tuple[Any, ...]]:
    """Figures of bios that are marked exact and complete, and are not true. `tid` names the bio."""
    found = []
    for bio in rows["bio"]:
        if bio["is_request"] or bio["incomplete"] or bio["confidence"] == "inferred":
            continue
        of = truth[bio["tid"] - 1000]
        true = {"dur_ns": of.ended - of.asked, "queue_ns": of.issued - of.asked}
        true["device_ns"] = of.ended - of.issued
        found += [
            (bio["tid"], name, us, bio[name])
            for name, us in true.items()
            if bio[name] not in (None, us * 1000)
        ]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_flushes_are_those_of_the_block_layer(seed: int, tmp_path: Path) -> None:
    events, truth = flushes.flushes(random.Random(seed), 12)
    rows = rows_of(tmp_path, [printed(event) for event in events])
    assert wrong(rows, truth) == []
    known = [bio for bio in rows["bio"] if not bio["is_request"] and bio["dur_ns"] is not None]
    # Only where a bio comes too late for a flush, its end may not be known.
    late = any(
        of.asked < other.issued < of.issued and other.asked < of.asked
        for of in truth
        for other in truth
    )
    assert len(known) == len(truth) or late


@pytest.mark.parametrize("seed", range(60))
def test_a_flush_that_lacks_an_event_makes_no_figure_wrong(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events, truth = flushes.flushes(rng, 10)
    # Events at the beginning say that the log records them all. If the event of a bio is lost, its end looks like that of the next one.
    can_go = [at for at in range(8, len(events)) if events[at].name != "asked"]
    for at in sorted(rng.sample(can_go, rng.choice((1, 1, 2))), reverse=True):
        del events[at]
    rows = rows_of(tmp_path, [printed(event) for event in events])
    assert wrong(rows, truth) == []
