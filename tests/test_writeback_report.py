"""`report writeback`: the expected rows are reasoned from the lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_commands import ok

# Three bios of a sync: the second one begins where the first one ended, the third one elsewhere. One bio of the kernel, which is sequential to none.
LOG = """\
TIME PID COMM EVENT DATA
40000000000 7 wl fsync fd 3
40000001000 7 wl start id 1 start 0 end 9223372036854775807 datasync 0 dev 8,0 ino 13 fs ext4 path /m/f
40000002000 7 wl bio_add_folio id 1 bio 0xff01 start 0 len 4096
40000003000 7 wl bio_submit id 1 bio 0xff01 sector 8
40000004000 7 wl bio_add_folio id 1 bio 0xff02 start 4096 len 4096
40000005000 7 wl bio_submit id 1 bio 0xff02 sector 16
40000006000 7 wl bio_add_folio id 1 bio 0xff03 start 40960 len 9216
40000007000 7 wl bio_submit id 1 bio 0xff03 sector 80
40000013000 0 idle bio_complete bio 0xff01 status 0
40000025000 0 idle bio_complete bio 0xff02 status 0
40000037000 0 idle bio_complete bio 0xff03 status 0
40000038000 7 wl exit id 1 ret 0
40000039000 9 kworker/u8:1 bio_add_folio id 0 bio 0xff04 start 0 len 4096
40000040000 9 kworker/u8:1 bio_submit id 0 bio 0xff04 sector 800
40000090000 0 idle bio_complete bio 0xff04 status 0
"""

FORCED = {
    "path": "/m/f",
    "origin": "sync",
    "bytes": 17408,
    "share": 17408 / 21504,
    "bios": 3,
    "mean_bio_bytes": 5803,
    "sequential_share": 0.5,
    "syncs": 1,
    "median_ns": 20000,
}
BACKGROUND = {
    "path": None,
    "origin": "background",
    "bytes": 4096,
    "share": 4096 / 21504,
    "bios": 1,
    "mean_bio_bytes": 4096,
    "sequential_share": None,
    "syncs": None,
    "median_ns": 50000,
}


@pytest.mark.parametrize("kind", ["log", "trace"])
def test_forced_and_background_writeback_of_a_file(kind: str, tmp_path: Path) -> None:
    """The log is read by DuckDB, the trace by the trace processor."""
    log = tmp_path / "a.log"
    log.write_text(LOG)
    path = log
    if kind == "trace":
        path = tmp_path / "a.pftrace"
        ok("convert", "-q", log, "-o", path)
    rows = json.loads(ok("report", path, "writeback", "--format", "json"))["rows"]
    assert [{key: row[key] for key in FORCED} for row in rows] == [FORCED, BACKGROUND]
