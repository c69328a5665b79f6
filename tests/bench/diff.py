"""Measures the error rates of `syncline diff` in many diffs: the tables of docs/reference/diff.md.

    python tests/bench/diff.py                 everything (half an hour on one core)
    python tests/bench/diff.py --diffs 20      a quick run
    python tests/bench/diff.py --real FOLDER   also compares the runs in a folder with each other

The runs come from tests/difftools.py: generated logs, converted and reported by Syncline. They are
generated once, without noise between runs. Noise is then one factor for each run, which multiplies
all its times.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "converter")]

from syncline.comparison.compare import Comparison, compare  # noqa: E402
from syncline.comparison.policy import Policy  # noqa: E402
from syncline.comparison.run import Run  # noqa: E402

from tests.difftools import READING, Source, collect, draw, side  # noqa: E402

SOURCE = Source(noise=0.0)
# Planted regressions: the source, the metric that must show it, and for each noise the first number of runs.
PLANTED = {
    "mean latency + 10 %": (
        SOURCE.changed(shift=1.1),
        "syscall_latency_avg",
        {0.01: 4, 0.03: 6, 0.05: 10, 0.1: 30},
    ),
    "share of empty syncs x 2": (SOURCE.changed(p_empty=0.2), "empty_share", {0.03: 3}),
    "one fsync more": (SOURCE.changed(requests=600), "syncs", {0.03: 3}),
}
SIZES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 40)
# Stop adding runs at this share of diffs with exit code 1.
ENOUGH = 0.9


def slower(run: Run, factor: float) -> Run:
    """Returns the run with all its times multiplied by a factor."""
    figures = {
        key: dataclasses.replace(figure, value=figure.value * factor)
        if figure.unit == "ns" and figure.value is not None
        else figure
        for key, figure in run.figures.items()
    }
    groups = {
        kind: {
            name: {
                column: value * factor if column.endswith("_ns") else value
                for column, value in group.items()
            }
            for name, group in groups_of_kind.items()
        }
        for kind, groups_of_kind in run.groups.items()
    }
    return dataclasses.replace(run, figures=figures, groups=groups)


def diffs(
    base: list[Run],
    new: list[Run],
    runs: int,
    noise: float,
    count: int,
    seed: int,
    policy: Policy | None = None,
) -> Iterator[Comparison]:
    """Yields diffs of `runs` runs on each side, drawn again for each diff.

    With `new is base`, both sides are drawn from one pool without repetition.
    """
    rng = random.Random(seed)
    for _ in range(count):
        if new is base:
            drawn = rng.sample(base, 2 * runs)
        else:
            drawn = [*rng.sample(base, runs), *rng.sample(new, runs)]
        drawn = [slower(run, rng.lognormvariate(0, noise)) for run in drawn]
        yield compare(side("base", drawn[:runs]), side("new", drawn[runs:]), policy or Policy())


# A gate of few metrics, as a project may configure it.
NARROW = Policy(metrics=("syncs", "syscall_latency_avg"))


def has_regression(comparison: Comparison) -> bool:
    return any(row.verdict == "regression" for row in comparison.rows)


def error(share: float, count: int) -> float:
    """Returns the standard error of a share."""
    return math.sqrt(max(share * (1 - share), 1 / count) / count)


def print_row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def equal_sides(pool: list[Run], count: int) -> None:
    print_row("equal sides: runs of each", "noise", "diffs", "regression", "can't tell")
    sizes = [(3, 0.03), (4, 0.03), (5, 0.01), (5, 0.03), (5, 0.1), (8, 0.03)]
    for runs, noise, policy in [(*size, Policy()) for size in sizes] + [
        (runs, 0.03, NARROW) for runs in (3, 5, 8)
    ]:
        comparisons = list(diffs(pool, pool, runs, noise, count, seed=runs, policy=policy))
        share = sum(map(has_regression, comparisons)) / count
        unclear = sum(diff.verdict == "can't tell" for diff in comparisons) / count
        print_row(
            f"{runs}, a gate of two" if policy.narrow else runs,
            f"{noise:.0%}",
            count,
            f"{share:.1%} ± {error(share, count):.1%}",
            f"{unclear:.0%}",
        )


def equal_blocks(folder: Path, count: int) -> None:
    runs = draw(SOURCE.changed(requests=600), folder, range(5000, 5000 + 2 * count), blocks=True)
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    alarms = sum(
        has_regression(compare(side("base", [a]), side("new", [b]), Policy())) for a, b in pairs
    )
    share = alarms / count
    print_row(
        "one run of each, by blocks", "0 %", count, f"{share:.1%} ± {error(share, count):.1%}", ""
    )


def shows_regression(comparison: Comparison, metric: str) -> bool:
    return any(
        row.verdict == "regression" and not row.kind and row.metric == metric
        for row in comparison.rows
    )


def power(pool: list[Run], folder: Path, count: int) -> None:
    print_row(
        "planted", "noise", "runs of each", "diffs", "regression of that metric", "exit code 1"
    )
    for name, (source, metric, noises) in PLANTED.items():
        other = draw(source, folder, range(10_000, 10_080))
        for noise, first_runs in noises.items():
            for runs in SIZES[SIZES.index(first_runs) :]:
                comparisons = list(diffs(pool, other, runs, noise, count, seed=runs))
                share = sum(shows_regression(diff, metric) for diff in comparisons) / count
                alarms = sum(map(has_regression, comparisons)) / count
                print_row(name, f"{noise:.0%}", runs, count, f"{share:.0%}", f"{alarms:.0%}")
                if alarms >= ENOUGH:
                    break


def real(folder: str, count: int) -> None:
    """Compares repeated runs of one workload, dealt at random to two sides."""
    runs = collect("side", [folder], READING).runs
    half = len(runs) // 2
    rng = random.Random(1)
    comparisons = []
    for _ in range(count):
        dealt = rng.sample(runs, 2 * half)
        comparisons.append(compare(side("base", dealt[:half]), side("new", dealt[half:]), Policy()))
    share = sum(map(has_regression, comparisons)) / count
    unclear = sum(diff.verdict == "can't tell" for diff in comparisons) / count
    print_row(
        f"real: {folder}, {half} runs of each", "its own", count, f"{share:.1%}", f"{unclear:.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--diffs", type=int, default=200, help="number of diffs for each row")
    parser.add_argument(
        "--real", action="append", default=[], help="a folder of runs of one workload"
    )
    parser.add_argument(
        "--part", choices=["equal", "blocks", "power", "real"], help="measures only this part"
    )
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="syncline-bench-") as scratch:
        pool = [] if options.part in ("blocks", "real") else draw(SOURCE, Path(scratch), range(120))
        if options.part in (None, "equal"):
            equal_sides(pool, options.diffs)
        if options.part in (None, "blocks"):
            equal_blocks(Path(scratch), options.diffs // 2)
        if options.part in (None, "power"):
            power(pool, Path(scratch), options.diffs // 2)
        for folder in options.real:
            real(folder, options.diffs)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
