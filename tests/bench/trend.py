"""Measures how often `syncline trend` finds a change, and how often it finds one where there is no change.

The table of docs/reference/datasets.md.
"""

from __future__ import annotations

import random

from syncline.trend.history import changes_in

SERIES = 200
WITHOUT_CHANGE = 1000
BEFORE = 20


def series(after: int, shift: float, seed: int) -> list[float]:
    """Returns runs with a spread of 1, whose last ones are higher."""
    dice = random.Random(seed)
    values = [dice.gauss(0, 1) for _ in range(BEFORE)]
    return values + [dice.gauss(shift, 1) for _ in range(after)]


def main() -> None:
    print("| runs after it | 2 x | 3 x | 5 x |\n|--:|--:|--:|--:|")
    for after in (2, 3, 5, 10, 20):
        cells = []
        for shift in (2.0, 3.0, 5.0):
            found = 0
            for seed in range(SERIES):
                places = changes_in(series(after, shift, seed), 0.05) or []
                # A place that is one run off is that change too.
                found += any(abs(place - BEFORE) <= 1 for place in places)
            cells.append(f"{100 * found / SERIES:.0f} %")
        print(f"| {after} | {' | '.join(cells)} |", flush=True)
    for length in (12, 30):
        alarms = 0
        for seed in range(WITHOUT_CHANGE):
            dice = random.Random(seed * 31 + length)
            values = [dice.gauss(0, 1) for _ in range(length)]
            alarms += bool(changes_in(values, 0.05))
        print(f"without a change, {length} runs: {100 * alarms / WITHOUT_CHANGE:.1f} %", flush=True)


if __name__ == "__main__":
    main()
