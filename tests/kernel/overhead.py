#!/usr/bin/env python3
"""Compares the time of a workload with each route of `syncline record` with its time without recording.

tests/kernel/overhead.py FOLDER      the folder with the results of jobs/routes.sh ROUTES xTIMES PATTERN...

Prints a Markdown table with a row per case and route: the median time of the workload as it reports itself, its ratio to the run without
recording of the same round (median, smallest and largest), and what was recorded and lost in all rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from compare_routes import seen, truth_of


def main() -> None:
    folder = Path(sys.argv[1])
    rounds: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.[0-9]*")):
        rounds[path.stem].append(path)
    print("| workload | route | time | ratio | events/s | exact requests | lost |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for case, paths in rounds.items():
        routes = sorted({route.name for path in paths for route in path.iterdir()} - {"none"})
        for route in ["none", *routes]:
            times, ratios, rates, exact, requests, lost = [], [], [], 0, 0, 0
            for path in paths:
                without, truth = truth_of(path / "none"), truth_of(path / route)
                if without is None or truth is None:
                    print(f"{path.name}: {route} failed", file=sys.stderr)
                    continue
                times.append(truth["wall_ms"])
                ratios.append(truth["wall_ms"] / without["wall_ms"])
                if route != "none":
                    found = seen(path / route / "run", case)
                    exact += found["exact"] or 0
                    requests += found["requests"] or 0
                    lost += found["lost"] or 0
                    rates += rate(path / route / "run", truth["wall_ms"])
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            cells = [case, f"`{route}`", f"{statistics.median(times) / 1000:.2f} s", ratio]
            if route == "none":
                cells[3:] = ["1", "", "", ""]
            else:
                cells += [
                    f"{statistics.median(rates):,.0f}" if rates else "",
                    f"{exact} of {requests}",
                    str(lost),
                ]
            print(f"| {' | '.join(cells)} |")


def rate(run: Path, wall_ms: float) -> list[float]:
    """Returns the events of a recording for each second of the workload, if the recorder counted them."""
    manifest = json.loads((run / "manifest.json").read_text())
    events = [entry["entries"] for entry in manifest["inputs"] if "entries" in entry]
    return [sum(events) / (wall_ms / 1000)] if events else []


if __name__ == "__main__":
    main()
