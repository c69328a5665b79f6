"""Takes ten standard views of the timeline, to look at before and after a change.

    python -m tools.views [FOLDER] [NAME...]      # without FOLDER: build/views

Git ignores build/. `NAME` selects views.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.ui import browser

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests/data"
SIZE = (1600, 1000)
RUN = "SELECT start_ts, end_ts FROM trace_bounds"
SLOWEST = "(SELECT * FROM slice WHERE category = 'syncline.sync' ORDER BY dur DESC LIMIT 1)"
# The sync with the most bios.
LARGEST = (
    "(SELECT * FROM slice WHERE category = 'syncline.sync'"
    " ORDER BY extract_arg(arg_set_id, 'debug.bios') DESC, dur DESC LIMIT 1)"
)


def around(one: str) -> str:
    return f"SELECT ts - dur / 10, ts + dur * 11 / 10 FROM {one}"


def part(begin_ms: int, end_ms: int) -> str:
    return f"SELECT start_ts + {begin_ms}000000, start_ts + {end_ms}000000 FROM trace_bounds"


# By name: the log, and either None for what `syncline open` shows first, or a span and what is selected in it.
VIEWS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "1-first": ("thesis/parallel4.log", None),
    "2-large-sync": (
        "thesis/parallel4.log",
        {"span": around(LARGEST), "select": f"SELECT id FROM {LARGEST}"},
    ),
    "3-slow-disk": (
        "thesis/small4-slowdisk.log",
        {"span": part(722, 882), "select": "SELECT id FROM slice WHERE name GLOB 'small-2-0004*'"},
    ),
    "4-small-files": ("thesis/small4.log", {"span": RUN}),
    "5-background": ("thesis/bg.log.gz", {"span": RUN}),
    "6-background-sync": (
        "thesis/bg.log.gz",
        {"span": around(SLOWEST), "select": f"SELECT id FROM {SLOWEST}"},
    ),
    "7-phases": ("dynamic-events/ext4.dat.gz", None),
    "8-journal": ("dynamic-events/ext4.dat.gz", {"span": RUN}),
    "9-calls-only": ("strace/small4.log", {"span": RUN}),
    "10-bios-only": ("blktrace/small4.blkparse.txt.gz", {"span": RUN}),
}


def main(folder: Path, names: list[str]) -> None:
    """Takes the views."""
    if reason := browser.missing():
        sys.exit(reason)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (log, view) in VIEWS.items():
        if names and name not in names:
            continue
        shot = str(folder / f"{name}.png")
        with browser.opened("--offline", DATA / log) as page:
            if view is None:
                browser.drive(page, [], size=SIZE, shot=shot)
            else:
                address = f"{browser.tracks_only(page)}&hideSidebar=true"
                browser.drive(address, [{"name": name, "shot": shot} | view], size=SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build/views", sys.argv[2:])
