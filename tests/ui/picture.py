"""Creates the pictures in docs/images/.

    python -m tests.ui.picture

timeline.png: four threads save small files on a slow disk. One bio is selected, to show the arrow
from its request. html-report.png: PostgreSQL next to another process that writes to its disk.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from syncline.inputs import Reading, opened
from syncline.render.answer import sentences
from syncline.report import html

from tests.ui import browser

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/thesis/small4-slowdisk.log"
PICTURE = ROOT / "docs/images/timeline.png"
PAGE_RUNS = ROOT / "tests/data/known-truth/postgres.tar.xz"
PAGE_RUN = "postgres-neighbour"
PAGE_PICTURE = ROOT / "docs/images/html-report.png"
PAGE_SIZE = (1200, 1420)
VIEW = {
    "name": "timeline",
    "span": "SELECT start_ts + 630000000, start_ts + 1130000000 FROM trace_bounds",
    "select": "SELECT id FROM slice WHERE category = 'syncline.bio' AND name = 'wl 178'"
    " AND ts > (SELECT start_ts + 900000000 FROM trace_bounds) ORDER BY ts LIMIT 1",
    "shot": str(PICTURE),
    # Only the tracks, without the bars around them.
    "clip": {"x": 0, "y": 114, "width": 1280, "height": 487},
}


def main() -> None:
    """Takes the pictures."""
    if reason := browser.missing():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        with tarfile.open(PAGE_RUNS) as runs:
            runs.extractall(folder, filter="data")
        with opened(str(Path(folder, PAGE_RUN)), Reading()) as engine:
            page.write_bytes(html.page([html.describe(engine, PAGE_RUN, sentences=sentences)]))
        browser.visit(page, [{"shot": str(PAGE_PICTURE), "of": "window"}], size=PAGE_SIZE)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with browser.opened("--offline", LOG) as page:
        browser.drive(f"{browser.tracks_only(page)}&hideSidebar=true", [VIEW], size=(1280, 1200))


if __name__ == "__main__":
    main()
