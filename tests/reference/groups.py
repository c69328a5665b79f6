"""The report `groups`, from the tables, without SQL: connected cells of a grid, found by a search from cell to cell."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

Row = dict[str, Any]
# Number of a group; "empty" or "others".
Name = int | str


def covered(tables: dict[str, list[Row]]) -> list[Row]:
    """Flusher threads may write for sync() and syncfs, so that nothing is known of those without an id and without bytes of their own."""
    ops = {row["sync_id"]: row["op"] for row in tables["sync"]}
    return [
        row
        for row in tables["sync"]
        if row["incomplete"] is None
        and None not in (row["bytes"], row["writeback_ns"], row["dur_ns"])
        and (
            row["bytes"]
            or row["id"] is not None
            or ops[row["call_sync_id"]] not in ("sync", "syncfs")
        )
    ]


def groups(tables: dict[str, list[Row]]) -> dict[Name, list[Row]]:
    """Returns the requests of each group."""
    rows = covered(tables)
    parts = 2 if len(rows) < 100 else 3 if len(rows) < 1000 else 4
    cells: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row["bytes"] and row["writeback_ns"]:
            # Halves are exact, so the octave is known without a logarithm.
            octave = row["bytes"].bit_length() - 1
            cells[octave, math.floor(math.log2(row["writeback_ns"] + 0.5) * parts)].append(row)
    dense = sorted(cell for cell, members in cells.items() if len(members) >= len(rows) / 400)
    found = []
    left = set(dense)
    for first in dense:
        if first not in left:
            continue
        left.discard(first)
        component, border = [first], [first]
        while border:
            x, y = border.pop()
            # Up to an octave more for the next octave of the amount, and as much less for the one before.
            near = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
            near += [(sign, sign * dy) for sign in (-1, 1) for dy in range(2, parts + 1)]
            for cell in [(x + dx, y + dy) for dx, dy in near]:
                if cell in left:
                    left.discard(cell)
                    component.append(cell)
                    border.append(cell)
        members = [row for cell in component for row in cells[cell]]
        if len(members) >= max(3, len(rows) / 50):
            found.append(members)
    # The sort keeps the order of the components where the sizes are equal.
    found.sort(key=len, reverse=True)
    named: dict[Name, list[Row]] = dict(enumerate(found, 1))
    grouped = {row["sync_id"] for members in found for row in members}
    empty = [row for row in rows if not row["bytes"]]
    others = [row for row in rows if row["bytes"] and row["sync_id"] not in grouped]
    return named | {name: of for name, of in (("empty", empty), ("others", others)) if of}


def meets(row: Row, others: list[Row]) -> bool:
    """Returns whether one of the others was in progress during the writeback of a request."""
    since = row["start_ns"] + row["before_submit_ns"]
    until = since + row["writeback_ns"]
    return any(
        other["dur_ns"] is not None
        and other["ts_ns"] <= until
        and other["ts_ns"] + other["dur_ns"] > since
        for other in others
    )


def main_phase(tables: dict[str, list[Row]], members: list[Row]) -> tuple[str, float] | None:
    """Returns the phase with most of the time, and its share."""
    ids = {row["sync_id"] for row in members}
    times: Counter[str] = Counter()
    for row in tables["phase"]:
        if row["sync_id"] in ids:
            times[row["phase"]] += row["dur_ns"]
    if not times:
        return None
    name = min(times, key=lambda phase: (-times[phase], phase))
    return name, times[name] / max(1, sum(times.values()))
