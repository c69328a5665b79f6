"""Makes docs/images/timeline.png anew: four threads that save small files on a slow disk.

    python -m tests.ui.picture

One bio is selected, so that the arrow from its request shows.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.ui import browser

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/thesis/small4-slowdisk.log"
PICTURE = ROOT / "docs/images/timeline.png"
VIEW = {
    "name": "timeline",
    "span": "SELECT start_ts + 630000000, start_ts + 1130000000 FROM trace_bounds",
    "select": "SELECT id FROM slice WHERE category = 'syncline.bio' AND name = 'wl 178'"
    " AND ts > (SELECT start_ts + 900000000 FROM trace_bounds) ORDER BY ts LIMIT 1",
    "shot": str(PICTURE),
    # The tracks, without the bars around them.
    "clip": {"x": 0, "y": 114, "width": 1280, "height": 487},
}


def main() -> None:
    """Takes the picture."""
    if reason := browser.missing():
        sys.exit(reason)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with browser.opened("--offline", LOG) as page:
        browser.drive(f"{page}&hideSidebar=true", [VIEW], size=(1280, 1200))


if __name__ == "__main__":
    main()
