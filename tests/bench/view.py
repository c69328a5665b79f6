"""Measures the first view of `syncline open --offline`: from the address to a page that shows it.

    make bench                               runs it last
    python tests/bench/view.py --requests 20000

Each run opens the same trace twice, in the UI alone and with Syncline's plugin and first view, one after the other. The ratio says
what Syncline adds, also on a busy machine, which the seconds do not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.page import LOG_BYTES, SYNCLINE  # noqa: E402
from tests.ui import browser  # noqa: E402

# The limits on two idle cores, by the number of syncs: seconds from the address to the first view.
MAX_S = {20_000: 5, 160_000: 15}
Open = Callable[[], AbstractContextManager[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=float, nargs="*", default=list(MAX_S))
    parser.add_argument("--times", type=int, default=3, help="number of times each is opened")
    options = parser.parse_args()
    if reason := browser.missing():
        sys.exit(reason)
    for requests in map(int, options.requests):
        with tempfile.TemporaryDirectory(prefix="syncline-bench-") as folder:
            bench(Path(folder), requests, options.times)


def bench(folder: Path, requests: int, times: int) -> None:
    log, trace = folder / "bench.log", folder / "bench.pftrace"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "tests.reference.loggen", "--bulk"]
        subprocess.run([*command, str(requests * LOG_BYTES)], stdout=out, cwd=ROOT, check=True)
    subprocess.run([SYNCLINE, "convert", "-q", str(log), "-o", str(trace)], check=True)
    log.unlink()
    print(f"{requests:,} requests, a trace of {trace.stat().st_size / 1e6:.0f} MB")
    ways: dict[str, Open] = {
        "the UI alone": lambda: browser.stock(trace),
        "open --offline": lambda: browser.opened("--offline", trace),
    }
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(times):
        for way, opened in ways.items():
            seconds[way].append(first_view(opened))
    best = {way: tuple(map(min, zip(*found, strict=True))) for way, found in seconds.items()}
    for way, (wall, cpu) in best.items():
        print(f"  {way:16} {wall:6.1f} s, {cpu:6.1f} s of CPU")
    alone, ours = best.values()
    ratios = [ours[0] / alone[0] for ours, alone in zip(*reversed(seconds.values()), strict=True)]
    print(f"  {'ratio':16} {statistics.median(ratios):6.2f} x, {ours[1] / alone[1]:6.2f} x the CPU")
    if limit := MAX_S.get(requests):
        print(f"  {'limit':16} {limit:6.1f} s: {ours[0] / limit:.2f} x of it")


def first_view(opened: Open) -> tuple[float, float]:
    """Returns the seconds until the first view, and the CPU seconds of the browser and its server."""
    # The browser is started before, and what it compiles is not kept from one context to the next.
    browser.drive("about:blank", [], blank=True)
    before = cpu_seconds()
    start = time.perf_counter()
    with opened() as page:
        browser.drive(page, [])
        return time.perf_counter() - start, cpu_seconds() - before


def cpu_seconds() -> float:
    """Returns the CPU time of all processes below this one, also of those that have ended."""
    children: dict[int, list[tuple[int, float]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append((int(folder.name), ticks))
    found, open_ = 0.0, [os.getpid()]
    own = os.times()
    while open_:
        for pid, ticks in children.get(open_.pop(), []):
            found += ticks
            open_.append(pid)
    return found / os.sysconf("SC_CLK_TCK") + own.children_user + own.children_system


if __name__ == "__main__":
    main()
