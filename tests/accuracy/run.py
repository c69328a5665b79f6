"""Measures how often Syncline is right where the truth is known, and prints a table: `make accuracy`.

    python -m tests.accuracy.run                     all rows, on the seeds of the documentation
    python -m tests.accuracy.run series --seed 1     one module, on seeds for development

A module of MODULES has `rows(seed, count)`, which yields rows as it measures them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import dataclass

# Each generates its cases, and knows their truth.
MODULES = ("series", "sides")
# Was used for no decision on the methods. Development used seeds below 100.
SEED = 20261130


@dataclass(frozen=True)
class Row:
    """A question to Syncline whose answer is known."""

    case: str
    # The column and its value, such as "found": "97 of 100".
    cells: dict[str, str]
    # What it should be, such as "at least 95"; empty without a target.
    target: str = ""
    is_met: bool = True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=MODULES, choices=[*MODULES, []])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=100, help="cases of each row")
    given = parser.parse_args()
    missed = 0
    for name in given.modules:
        module = importlib.import_module(f"tests.accuracy.{name}")
        print(f"\n{module.TITLE}, {given.count} cases a row, seed {given.seed}\n")
        is_first = True
        for row in module.rows(given.seed, given.count):
            if is_first:
                print(f"| case | {' | '.join(row.cells)} | target |\n|---|{'--:|' * len(row.cells)}---|")  # fmt: skip
                is_first = False
            target = row.target if row.is_met else f"{row.target}: **missed**"
            print(f"| {row.case} | {' | '.join(row.cells.values())} | {target} |", flush=True)
            missed += not row.is_met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
