"""Creates the pictures in docs/images/.

    python -m tools.pictures

timeline.png: four threads save small files on a slow disk. One sync is selected, to show the arrow
to its bio and what a click shows. timeline-journal.png: three threads sync files of ext4 on a stock kernel, with
the phases of each sync and the bios of the journal. html-report.png: PostgreSQL next to another process that
writes to its disk.
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

ROOT = Path(__file__).parents[1]
LOG = ROOT / "tests/data/thesis/small4-slowdisk.log"
PICTURE = ROOT / "docs/images/timeline.png"
PAGE_RUNS = ROOT / "tests/data/known-truth/postgres.tar.xz"
PAGE_RUN = "postgres-neighbour"
PAGE_PICTURE = ROOT / "docs/images/html-report.png"
PAGE_SIZE = (1200, 1420)
JOURNAL_LOG = ROOT / "tests/data/dynamic-events/ext4.dat.gz"
JOURNAL_PICTURE = ROOT / "docs/images/timeline-journal.png"
# Only the tracks and the details, without the bars around them.
CLIP = {"x": 0, "y": 114, "width": 1280}
VIEW = {
    "name": "timeline",
    "span": "SELECT start_ts + 722000000, start_ts + 882000000 FROM trace_bounds",
    "select": "SELECT id FROM slice WHERE category = 'syncline.sync'"
    " AND name GLOB 'small-2-0004*' LIMIT 1",
    "shot": str(PICTURE),
    "clip": CLIP | {"height": 570},
}
SLOWEST = "(SELECT * FROM slice WHERE category = 'syncline.sync' ORDER BY dur DESC LIMIT 1)"
JOURNAL_VIEW = {
    "name": "journal",
    "span": f"SELECT ts - dur / 2, ts + dur * 3 / 2 FROM {SLOWEST}",
    "shot": str(JOURNAL_PICTURE),
    "clip": CLIP | {"height": 795},
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
    for log, view in ((LOG, VIEW), (JOURNAL_LOG, JOURNAL_VIEW)):
        with browser.opened("--offline", log) as page:
            address = f"{browser.tracks_only(page)}&hideSidebar=true"
            browser.drive(address, [view], size=(1280, 1200))


if __name__ == "__main__":
    main()
