#!/usr/bin/env python3
"""Compares what each route of `syncline record` recorded of a workload with what the workload reports.

tests/kernel/compare_routes.py FOLDER      the folder with the results of jobs/routes.sh

Prints a Markdown table with a row per case: calls and requests for the files of the workload, bytes written back for them, losses,
and the time of the workload with the route as a multiple of the time without recording. A cell has one value if the routes agree.
Exits with 1 if the ring buffer lost or missed anything.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SYNCLINE = Path(sys.executable).parent / "syncline"
# Sync calls that have the same name in the report of a workload and in the kernel.
CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")


def truth_of(folder: Path) -> dict[str, Any] | None:
    """Returns the report of the workload, its last line; None if it failed."""
    lines = (folder / "truth.json").read_text().strip().splitlines()
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        return None
    return found


def query(tables: Path, sql: str) -> list[str]:
    done = subprocess.run(
        [SYNCLINE, "query", "--format", "csv", tables, sql],
        capture_output=True,
        text=True,
        check=True,
    )
    return list(csv.reader(io.StringIO(done.stdout)))[1]


def seen(run: Path, case: str) -> dict[str, int | None]:
    """Returns counts for the files in the folder of the workload, and all losses."""
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables"
        subprocess.run(
            [SYNCLINE, "convert", "-q", run, "-o", f"{tables}/"], capture_output=True, check=True
        )
        mine = f"path LIKE '/mnt/data/{case}/%' OR path = '/mnt/data/{case}'"
        requests, size, exact = query(
            tables,
            f"SELECT COUNT(*), CASE WHEN COUNT(bytes) < COUNT(*) THEN NULL ELSE COALESCE(SUM(bytes), 0) END, COALESCE(SUM(CASE WHEN confidence = 'exact' THEN 1 ELSE 0 END), 0) FROM syncline_sync WHERE {mine}",
        )
        # Calls of the threads that have requests for these files, including unmatched calls.
        (calls,) = query(
            tables,
            f"SELECT COUNT(*) FROM syncline_call WHERE tid IN (SELECT tid FROM syncline_sync WHERE {mine})",
        )
        (lost,) = query(
            tables, "SELECT COALESCE(SUM(count), 0) FROM syncline_loss WHERE severity = 'loss'"
        )
    return {
        "requests": int(requests),
        "bytes": int(size) if size else None,
        "exact": int(exact),
        "calls": int(calls),
        "lost": int(lost),
    }


def alike(values: list[str]) -> str:
    """Returns one value if all are the same."""
    return values[0] if len(set(values)) == 1 else " / ".join(values)


def main() -> int:
    folder = Path(sys.argv[1])
    cases = sorted(path for path in folder.iterdir() if (path / "none").is_dir())
    routes = sorted(
        {path.name for case in cases for path in case.iterdir()} - {"none"}, reverse=True
    )
    print(f"Columns with two values: {' / '.join(routes)}.\n")
    print("| case | calls (made) | requests (made) | KiB written back | lost | time |")
    print("|---|--:|--:|--:|--:|--:|")
    bad = 0
    for case in cases:
        without = truth_of(case / "none")
        cells: list[tuple[str, ...]] = []
        for route in routes:
            truth = truth_of(case / route)
            if truth is None or without is None:
                print(f"{case.name}: {route} failed: see {case / route}/said", file=sys.stderr)
                cells.append(("failed",) * 5)
                bad += 1
                continue
            try:
                found = seen(case / route / "run", case.name)
            except subprocess.CalledProcessError as error:
                reason = str(error.stderr or b"").strip()
                print(f"{case.name}: {route} cannot be converted: {reason}", file=sys.stderr)
                cells.append(("not converted",) * 5)
                bad += route == "ring-buffer"
                continue
            calls = sum(truth["syncs"].get(call, 0) for call in CALLS)
            ratio = truth["wall_ms"] / without["wall_ms"] if without["wall_ms"] else 0
            cells.append(
                (
                    f"{found['calls']} ({calls})",
                    f"{found['requests']} ({truth['requests']})",
                    "unknown" if found["bytes"] is None else f"{found['bytes'] / 1024:.0f}",
                    f"{found['lost']}",
                    f"{ratio:.1f}",
                )
            )
            missed = truth["exact"] and found["requests"] < truth["requests"]
            if route == "ring-buffer" and (found["lost"] or missed):
                bad += 1
        print(
            f"| {case.name} | {' | '.join(alike(list(column)) for column in zip(*cells, strict=True))} |"
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
