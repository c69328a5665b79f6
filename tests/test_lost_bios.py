"""Events of bios that are lost. The expected values are reasoned from the lines: what they do not say is null, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.report.run import caveats

from tests import invariants
from tests.coretools import Rows, convert, core, tables

BIO = "bio 0xff11000000896e40"
# The lines of two syncs with the same address of a bio, in microseconds after the first one.
SYNCS = {
    0: "7 wl fsync",
    10: "7 wl start id 1 start 0 end 9 datasync 0 path /d/f",
    20: f"7 wl bio_add_folio id 1 {BIO} start 0 len 4096",
    25: f"7 wl bio_add_folio id 1 {BIO} start 4096 len 4096",
    30: f"7 wl bio_submit id 1 {BIO}",
    1000: f"0 swapper/0 bio_complete {BIO}",
    1010: "7 wl exit id 1 ret 0",
    500000: "7 wl fsync",
    500010: "7 wl start id 2 start 0 end 9 datasync 0 path /d/f",
    500020: f"7 wl bio_add_folio id 2 {BIO} start 0 len 4096",
    500030: f"7 wl bio_submit id 2 {BIO}",
    501000: f"0 swapper/0 bio_complete {BIO}",
    501010: "7 wl exit id 2 ret 0",
}
BEGIN = 100_000_000_000


def without(*lost: int, until: int = 10**9) -> bytes:
    lines = [
        f"{BEGIN + 1000 * us} {line}"
        for us, line in SYNCS.items()
        if us not in lost and us <= until
    ]
    return "\n".join(["TIME PID COMM EVENT DATA", *lines, ""]).encode()


def losses(converted: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in converted["loss"]}


def checked(folder: Path, log: bytes) -> dict[str, Rows]:
    converted = core(folder, log)
    invariants.check(converted)
    return converted


def values(row: dict, *columns: str) -> tuple:
    return tuple(row[column] for column in columns)


SIZES = ("bytes", "folios", "ranges", "first_offset", "last_offset")
LENGTHS = ("before_submit_ns", "writeback_ns", "after_complete_ns")


def test_nothing_is_lost(tmp_path: Path) -> None:
    converted = checked(tmp_path, without())
    first, second = converted["sync"]
    assert values(first, *SIZES, "bios", "incomplete") == (8192, 2, 1, 0, 8192, 1, None)
    assert values(first, *LENGTHS) == (20_000, 970_000, 10_000)
    assert values(second, *SIZES, "bios", "incomplete") == (4096, 1, 1, 0, 4096, 1, None)
    assert not losses(converted)


def test_a_completion_after_the_sync_is_not_that_of_its_bio(tmp_path: Path) -> None:
    """The sync waited for its bio, so the completion half a second later is of another one at that address."""
    converted = checked(tmp_path, without(1000, 500020, 500030))
    first, second = converted["sync"]
    assert values(first, *SIZES, "bios", "incomplete") == (8192, 2, 1, 0, 8192, 1, "bio")
    assert values(first, *LENGTHS) == (20_000, None, None)
    # A bio of it may have completed, and nothing else of that is known.
    assert values(second, *SIZES, "bios", *LENGTHS) == (None,) * 9
    assert second["incomplete"] == "bio"
    assert losses(converted) == {"never_completed": 1, "unmatched_complete": 1}


def test_a_completion_before_any_bio_may_be_that_of_a_bio_without_events(tmp_path: Path) -> None:
    """Neither folios nor submits are recorded, or those of the first sync were lost: its completion may be of its bio."""
    converted = checked(tmp_path, without(20, 25, 30, 500020, 500030))
    for sync in converted["sync"]:
        assert values(sync, *SIZES, "bios", *LENGTHS) == (None,) * 9
        assert sync["incomplete"] == "bio"
    # A bio of somebody else, before the sync ends, does not say that the completions before it are of bios that began before the log.
    other = f"{BEGIN + 1_005_000} 9 jbd2 bio_submit id 0 bio 0xff11000000896f40\n".encode()
    converted = checked(tmp_path, without(20, 25, 30, until=1010) + other)
    (sync,) = converted["sync"]
    assert values(sync, "bytes", "bios", "writeback_ns", "incomplete") == (None, None, None, "bio")


def test_a_bio_without_its_folios_has_no_known_size(tmp_path: Path) -> None:
    converted = checked(tmp_path, without(20, 25, until=1010))
    (sync,), (bio,) = converted["sync"], converted["bio"]
    assert values(sync, *SIZES) == values(bio, *SIZES) == (None,) * 5
    assert values(sync, "bios", *LENGTHS) == (1, 20_000, 970_000, 10_000)
    assert losses(converted) == {"folios_missing": 1}


@pytest.mark.parametrize("lost", [(0, 10, 20), (0, 10, 20, 25)])
def test_a_bio_that_begins_before_the_log_has_no_known_size(
    lost: tuple[int, ...], tmp_path: Path
) -> None:
    """Neither has its sync."""
    converted = checked(tmp_path, without(*lost, until=1010))
    (sync,), (bio,) = converted["sync"], converted["bio"]
    assert values(sync, *SIZES) == values(bio, *SIZES) == (None,) * 5
    assert values(sync, "bios", "after_complete_ns", "incomplete") == (1, 10_000, "start")
    assert losses(converted) == {"start_missing": 1} | ({"folios_missing": 1} if 25 in lost else {})


def patch(size: int, folios: int) -> bytes:
    bio = "bio=0xff11000000896e40"
    add = f"bio_add_folio: id=1 {bio} start={{}} len=4096 dev=254,16 ino=12"
    events = [
        "sys_enter_fsync: fd: 0x00000003",
        "sync_start: id=1 start=0 end=9223372036854775807 datasync=0 dev=254,16 ino=12 path=/d/f",
        *(add.format(4096 * number) for number in range(folios)),
        f"bio_submit: id=1 {bio} dev=254,16 sector=8 bytes={size} opf=0x801",
        f"bio_complete: {bio} status=0",
        "sync_end: id=1 ret=0",
        "sys_exit_fsync: 0x0",
    ]
    lines = (f"  wl-7 [000] .....   100.0000{10 + n}: {event}\n" for n, event in enumerate(events))
    return "".join(lines).encode()


def test_the_size_of_a_bio_counts_if_folios_of_it_are_lost(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = checked(tmp_path / "whole", patch(12288, 3))
    assert values(whole["sync"][0], *SIZES) == (12288, 3, 1, 0, 12288)
    assert not losses(whole)
    converted = checked(tmp_path, patch(12288, 1))
    for table in ("sync", "bio"):
        assert values(converted[table][0], *SIZES) == (12288, None, None, None, None)
    assert losses(converted) == {"folios_missing": 1}


# ---------------------------------------------------------------- probes on a stock kernel


def probes(*lost: str, pages: int = 2) -> bytes:
    """Two syncs. The second one writes the last page of the first one again, and its bio has the same address. `lost`: the number of a sync,
    and one of its events."""
    bio = "bio=0xff11000006e4a300"
    lines = ["# tracer: nop"]
    for number, first, count, begin in ((1, 0, pages, 54.5), (2, pages - 1, 1, 54.6)):
        folios = [
            f"bio_add_folio: (bio_add_folio+0x4/0x3b) {bio} ino=78 index={first + n} len=4096 off=0"
            for n in range(count)
        ]
        events = [
            ("call", "sys_enter_fsync: fd: 0x00000003"),
            (
                "enter",
                'fsync_enter: (ext4_sync_file+0x4/0x219) dev=266338320 ino=78 gen=1 fs="ext4" n0="f0" n1="/"',
            ),
            *(("folio", folio) for folio in folios),
            (
                "bio",
                f"bio: (submit_bio+0x4/0xa6) {bio} dev=266338320 sector={192 + 8 * first} "
                f"bytes={4096 * count} opf=2049 end_io=ext4_end_bio+0x0/0x131",
            ),
            ("end", f"bio_end: (bio_endio+0x4/0xa6) {bio} status=0 remaining=1 private=0"),
            ("exit", "fsync_exit: (ext4_sync_file+0x100/0x219) ret=0"),
            ("return", "sys_exit_fsync: 0x0"),
        ]
        at = {"call": 0, "enter": 1, "folio": 2, "bio": 3, "end": 13, "exit": 14, "return": 15}
        lines += [
            f"  {'<idle>-0' if name == 'end' else 'app-215'} [000] ..... {begin + at[name] / 10000:.6f}: {event}"
            for name, event in events
            if f"{number} {name}" not in lost
        ]
    return "\n".join([*lines, ""]).encode()


def test_a_bio_of_a_probe_is_no_rest_of_one_whose_end_was_lost(tmp_path: Path) -> None:
    converted = checked(tmp_path, probes("1 end"))
    first, second = converted["sync"]
    assert values(first, *SIZES, "bios", "incomplete") == (8192, 2, 1, 0, 8192, 1, "bio")
    assert values(first, *LENGTHS) == (200_000, None, None)
    assert values(second, *SIZES, "bios", "incomplete") == (4096, 1, 1, 4096, 8192, 1, None)
    assert values(second, *LENGTHS) == (200_000, 1_000_000, 100_000)
    assert losses(converted) == {"never_completed": 1}


def test_a_bio_of_a_probe_without_its_submit_is_known_by_its_folios(tmp_path: Path) -> None:
    converted = checked(tmp_path, probes("2 bio", pages=1))
    first, second = converted["sync"]
    assert values(first, "bytes", *LENGTHS) == (4096, 200_000, 1_000_000, 100_000)
    assert values(second, "bytes", "bios", "incomplete") == (4096, 1, "bio")
    assert values(second, *LENGTHS) == (None, None, 100_000)
    assert losses(converted) == {"never_submitted": 1}


@pytest.mark.parametrize(("fs", "says"), [("ext4", False), ("btrfs", True)])
def test_a_warning_says_that_btrfs_may_have_submitted_stripes(
    fs: str, says: bool, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_bytes(probes("2 bio", pages=1).replace(b"ext4", fs.encode()))
    for output, engine in (("tables/", "duckdb"), ("x.pftrace", "embedded")):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}")
        with opened(f"{tmp_path}/{output}", Reading(), engine=engine) as opened_engine:
            (said,) = caveats(opened_engine)
        assert "never_submitted" in said
        assert ("RAID5" in said) == says


def test_a_bio_of_page_cache_without_its_folio_is_that_of_its_thread(tmp_path: Path) -> None:
    converted = checked(tmp_path, probes("2 folio", pages=1))
    second, bio = converted["sync"][1], converted["bio"][1]
    assert values(second, *SIZES, "bios") == (4096, None, None, None, None, 1)
    assert values(second, *LENGTHS, "confidence") == (200_000, 1_000_000, 100_000, "inferred")
    assert values(bio, "sync_id", *SIZES) == (2, 4096, None, None, None, None)
    assert losses(converted) == {"folios_missing": 1}


# ---------------------------------------------------------------- the block layer


def blkparse(*events: tuple[int, str]) -> bytes:
    """Events of one sector: microseconds after the first one, and the action."""
    lines = (
        f"  8,0    0 {number:8}     {1 + us // 10**6}.{us % 10**6:06}000  7  {action}  WS 8 + 8 [{'0' if action == 'C' else 'wl'}]\n"
        for number, (us, action) in enumerate(events, 1)
    )
    return "".join(lines).encode()


def writes(count: int, lost: int) -> list[tuple[int, str]]:
    """A second apart, each of a millisecond, with 10 us in the queue. The completion of one is lost."""
    begins = ((number, 10**6 * (number - 1)) for number in range(1, count + 1))
    return [
        (begin + us, action)
        for number, begin in begins
        for us, action in ((0, "Q"), (10, "D"), (1000, "C"))
        if (number, action) != (lost, "C")
    ]


@pytest.mark.parametrize(("count", "lost"), [(2, 1), (2, 2), (3, 1), (9, 2)])
def test_a_lost_completion_of_the_block_layer_is_not_that_of_the_next_bio(
    count: int, lost: int, tmp_path: Path
) -> None:
    out = convert(tmp_path, blkparse(*writes(count, lost)), source="blkparse")
    converted = tables(out)
    found = {
        row["bio_id"]: values(row, "queue_ns", "dur_ns", "incomplete") for row in converted["bio"]
    }
    expected = dict.fromkeys(range(1, count + 1), (10_000, 1_000_000, None))
    assert found == expected | {lost: (10_000, None, "end")}
    assert losses(converted)["never_completed"] == 1


def test_writes_in_flight_to_one_sector_end_in_their_order(tmp_path: Path) -> None:
    """Direct I/O may write a sector again before it is written, and nothing is lost here."""
    events = [(0, "Q"), (1, "D"), (10, "Q"), (11, "D"), (100, "C"), (105, "Q"), (106, "D")]
    events += [(110, "C"), (120, "C")]
    converted = tables(convert(tmp_path, blkparse(*events), source="blkparse"))
    lengths = [row["dur_ns"] for row in sorted(converted["bio"], key=lambda row: row["bio_id"])]
    assert lengths == [100_000, 100_000, 15_000]
    assert "never_completed" not in losses(converted)


def test_a_submit_that_was_held_back_says_when_its_thread_left_a_sync(tmp_path: Path) -> None:
    """The end of sync 10 is lost. The submit with id 4 is held back until the completion at its address shows that its id is right, 1 ms later. So
    the sync was over at the submit, and the completion 1.05 ms later is not that of its bio: the sync waits for it.
    """
    other = "bio 0xff11000000896f00"
    log = "".join(
        f"{BEGIN + 1000 * us} {line}\n"
        for us, line in (
            (0, "7 wl fsync"),
            (10, "7 wl start id 10 start 0 end 9 datasync 0 path /d/f"),
            (20, f"7 wl bio_add_folio id 10 {BIO} start 0 len 4096"),
            (30, f"7 wl bio_submit id 10 {BIO}"),
            (50, f"7 wl bio_submit id 4 {other}"),
            (1050, f"0 swapper/0 bio_complete {other}"),
            (1100, f"0 swapper/0 bio_complete {BIO}"),
        )
    )
    converted = checked(tmp_path, log.encode())
    (bio,) = (row for row in converted["bio"] if row["id"] == 10)
    assert values(bio, "dur_ns", "incomplete") == (None, "end")
    found = losses(converted)
    assert (found["never_completed"], found["unmatched_complete"]) == (1, 1)
