"""Writes the golden rows: `python -m tests.golden`. The reference computes them, never the core."""

from __future__ import annotations

import csv
from pathlib import Path

from tests import coretools
from tests.reference import thesis


def text(value: object) -> str:
    """Formats a value as the CSV of the high-level log does."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


for name in coretools.SMALL:
    path = Path(__file__).parent / f"{name}.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(thesis.COLUMNS["sync"])
        for row in thesis.read(coretools.recording(name)).sync:
            writer.writerow([text(value) for value in row.values()])
