"""A sync without a bio is empty only if the log shows that its recorder follows bios."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import Rows, core, tables

SYNC = "{a} 7 db start id {n} start 0 end 9 datasync 0 path /f\n{c} 7 db exit id {n} ret 0\n"
# Half of the events that wait at most, since a sync has two.
HELD = 16_384 // 2


def syncs(count: int, first: int = 1) -> str:
    numbers = range(first, first + count)
    return "".join(SYNC.format(a=1000 * n, c=1000 * n + 500, n=n) for n in numbers)


def completion(ts: int) -> str:
    return f"{ts} 0 swapper/0 bio_complete bio 0x8\n"


def bios(rows: Rows) -> list[int | None]:
    return [row["bios"] for row in sorted(rows, key=lambda row: row["ts_ns"])]


@pytest.mark.parametrize("at", [500, 1700, 2_000_000])
def test_an_event_of_a_bio_anywhere_shows_that_bios_are_followed(at: int, tmp_path: Path) -> None:
    lines = [*syncs(3).splitlines(keepends=True), completion(at)]
    lines.sort(key=lambda line: int(line.split()[0]))
    [sync, *_] = rows = core(tmp_path, "".join(lines).encode())["sync"]
    assert bios(rows) == [0, 0, 0]
    assert (sync["bytes"], sync["before_submit_ns"], sync["incomplete"]) == (0, None, None)


def test_without_one_nothing_is_known_of_them(tmp_path: Path) -> None:
    rows = core(tmp_path, syncs(3).encode())["sync"]
    for row in rows:
        unknown = (
            "bios",
            "bytes",
            "folios",
            "writeback_ns",
            "before_submit_ns",
            "after_complete_ns",
        )
        assert {row[name] for name in unknown} == {None}
        assert (row["dur_ns"], row["confidence"], row["incomplete"]) == (500, "exact", None)


def test_how_long_it_is_waited_for_is_counted_in_events(tmp_path: Path) -> None:
    """So where a batch of the log ends decides nothing."""

    def found(before: int) -> list[int | None]:
        log = syncs(before) + completion(1000 * before + 700) + syncs(2, before + 1)
        return bios(core(tmp_path, log.encode())["sync"])

    assert found(HELD - 1) == [0] * (HELD + 1)
    # The last ones are settled when the next event comes.
    assert found(HELD + 10)[: HELD + 9] == [None] * (HELD + 9)
    assert found(HELD + 10)[-2:] == [0, 0]


def test_the_event_may_be_in_another_log(tmp_path: Path) -> None:
    for name, text in (("a.log", syncs(3)), ("b.log", completion(9_000_000))):
        (tmp_path / name).write_text(text)
    _core.convert([str(tmp_path / "a.log"), str(tmp_path / "b.log")], f"{tmp_path}/t/")
    assert bios(tables(tmp_path / "t")["sync"]) == [0, 0, 0]


@pytest.mark.parametrize(
    "event",
    [
        "block_rq_complete: 8,0 RA () 999 + 8 be,0,4 [0]",
        "block_bio_queue: 254,16 WS 270464 + 128 [wl]",
    ],
)
def test_an_event_of_the_block_layer_says_nothing_of_them(event: str, tmp_path: Path) -> None:
    """The syncs of the patch have ids, and bios belong to them by that: only the file system says which."""
    whole = "start=0 end=9223372036854775807 datasync=0 dev=254,16 ino=131075 path=/a"
    log = (
        f"              wl-2535  [001] .....   312.522976: sync_start: id=2594 {whole}\n"
        f"              wl-2535  [001] .....   312.524000: {event}\n"
        "              wl-2535  [001] .....   312.528230: sync_end: id=2594 ret=0\n"
    )
    assert bios(core(tmp_path, log.encode())["sync"]) == [None]
