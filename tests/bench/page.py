"""Measures the page of `report --html` for a million requests: time to write, size, time to open.

    make bench                          runs it last
    python tests/bench/page.py --requests 100000

Size and time to open are shown as ratios to their limits. Headless Chromium opens the page from
disk. The time to open lasts from the start of loading until everything is drawn; the best of some
runs counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.ui import browser  # noqa: E402

# The limits: seconds to open, and bytes of the page without its data.
MAX_OPEN_S, MAX_PAGE_BYTES = 3, 3_000_000
# Bytes of the generator's log for each request.
LOG_BYTES = 1582
SYNCLINE = Path(sys.executable).with_name("syncline")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=float, default=1e6)
    parser.add_argument("--times", type=int, default=5, help="number of times the page is opened")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as folder:
        bench(Path(folder), int(options.requests), options.times)


def bench(folder: Path, requests: int, times: int) -> None:
    log, tables, page = folder / "bench.log", folder / "tables", folder / "page.html"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "tests.reference.loggen", "--bulk"]
        subprocess.run([*command, str(requests * LOG_BYTES)], stdout=out, cwd=ROOT, check=True)
    subprocess.run([SYNCLINE, "convert", "-q", str(log), "-o", f"{tables}/"], check=True)
    log.unlink()
    start = time.perf_counter()
    subprocess.run([SYNCLINE, "report", str(tables), "--html", str(page)], check=True)
    write_s = time.perf_counter() - start
    data = json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])
    (side,) = data["sides"]
    print(f"page of {side['requests']:,} requests, written in {write_s:.1f} s from Parquet tables")
    size = page.stat().st_size
    page_bytes = size - len(json.dumps(data, separators=(",", ":")))
    print(
        f"{'page without data':24} {page_bytes / 1e6:8.2f} MB  {page_bytes / MAX_PAGE_BYTES:.2f} x the limit"
    )
    print(f"{'data':24} {(size - page_bytes) / 1e6:8.2f} MB")
    if reason := browser.missing():
        print(f"not opened: {reason}")
        return
    best = min(browser.visit(page, [])["opened_ms"] for _ in range(times)) / 1000
    print(f"{'open':24} {best:8.2f} s   {best / MAX_OPEN_S:.2f} x the limit")


if __name__ == "__main__":
    main()
