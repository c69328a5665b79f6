"""What `syncline diff` alarms at and what it finds, in many diffs; docs/reference/diff.md has the tables.

    python tests/bench/diff.py                 all of it (half an hour on one core)
    python tests/bench/diff.py --diffs 20      a look
    python tests/bench/diff.py --real FOLDER   equal sides out of the runs in a folder, too

Runs are those of tests/difftools.py: logs of the generator, through the whole house. They are drawn once,
without noise between runs; noise is then one factor a run on all its times, exact as times are what it scales.
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

from syncline.diff.compare import Comparison, compare  # noqa: E402
from syncline.diff.policy import Policy  # noqa: E402
from syncline.diff.sides import Run, collect  # noqa: E402

from tests.difftools import READING, Source, draw, side  # noqa: E402

SOURCE = Source(noise=0.0)
# What is planted, the figure that has to show it, and for each noise with how many runs to begin.
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
FOUND = 0.9


def slower(run: Run, factor: float) -> Run:
    """The run with all its times longer by a factor."""
    figures = {
        key: dataclasses.replace(one, value=one.value * factor)
        if one.unit == "ns" and one.value is not None
        else one
        for key, one in run.figures.items()
    }
    groups = {
        kind: {
            name: {
                column: value * factor if column.endswith("_ns") else value
                for column, value in group.items()
            }
            for name, group in of_kind.items()
        }
        for kind, of_kind in run.groups.items()
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
    """Diffs of so many runs of each side, drawn anew for each; `new is base`: of one source."""
    dice = random.Random(seed)
    for _ in range(count):
        if new is base:
            drawn = dice.sample(base, 2 * runs)
        else:
            drawn = [*dice.sample(base, runs), *dice.sample(new, runs)]
        drawn = [slower(run, dice.lognormvariate(0, noise)) for run in drawn]
        yield compare(side("base", drawn[:runs]), side("new", drawn[runs:]), policy or Policy())


# What a project may list as its gate: little beside much that is not in it.
NARROW = Policy(metrics=("syncs", "syscall_latency_avg"))


def alarm(comparison: Comparison) -> bool:
    return any(row.verdict == "regression" for row in comparison.rows)


def error(share: float, count: int) -> float:
    """The standard error of a share."""
    return math.sqrt(max(share * (1 - share), 1 / count) / count)


def say(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def equal_sides(pool: list[Run], count: int) -> None:
    say("equal sides: runs of each", "noise", "diffs", "regression", "can't tell")
    sizes = [(3, 0.03), (4, 0.03), (5, 0.01), (5, 0.03), (5, 0.1), (8, 0.03)]
    for runs, noise, policy in [(*one, Policy()) for one in sizes] + [
        (runs, 0.03, NARROW) for runs in (3, 5, 8)
    ]:
        found = list(diffs(pool, pool, runs, noise, count, seed=runs, policy=policy))
        share = sum(map(alarm, found)) / count
        unclear = sum(one.verdict == "can't tell" for one in found) / count
        say(
            f"{runs}, a gate of two" if policy.narrow else runs,
            f"{noise:.0%}",
            count,
            f"{share:.1%} ± {error(share, count):.1%}",
            f"{unclear:.0%}",
        )


def equal_blocks(folder: Path, count: int) -> None:
    runs = draw(SOURCE.changed(requests=600), folder, range(5000, 5000 + 2 * count), blocks=True)
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    alarms = sum(alarm(compare(side("base", [a]), side("new", [b]), Policy())) for a, b in pairs)
    share = alarms / count
    say("one run of each, by blocks", "0 %", count, f"{share:.1%} ± {error(share, count):.1%}", "")


def shows(comparison: Comparison, metric: str) -> bool:
    return any(
        row.verdict == "regression" and not row.kind and row.metric == metric
        for row in comparison.rows
    )


def power(pool: list[Run], folder: Path, count: int) -> None:
    say("planted", "noise", "runs of each", "diffs", "regression of that figure", "exit code 1")
    for what, (source, metric, noises) in PLANTED.items():
        other = draw(source, folder, range(10_000, 10_080))
        for noise, least in noises.items():
            for runs in SIZES[SIZES.index(least) :]:
                found = list(diffs(pool, other, runs, noise, count, seed=runs))
                share = sum(shows(one, metric) for one in found) / count
                alarms = sum(map(alarm, found)) / count
                say(what, f"{noise:.0%}", runs, count, f"{share:.0%}", f"{alarms:.0%}")
                if alarms >= FOUND:
                    break


def real(folder: str, count: int) -> None:
    """Equal sides out of real repeated runs, dealt to two sides again and again."""
    runs = collect("side", [folder], READING).runs
    half = len(runs) // 2
    dice = random.Random(1)
    found = []
    for _ in range(count):
        dealt = dice.sample(runs, 2 * half)
        found.append(compare(side("base", dealt[:half]), side("new", dealt[half:]), Policy()))
    share = sum(map(alarm, found)) / count
    unclear = sum(one.verdict == "can't tell" for one in found) / count
    say(f"real: {folder}, {half} runs of each", "its own", count, f"{share:.1%}", f"{unclear:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--diffs", type=int, default=200, help="diffs a line")
    parser.add_argument(
        "--real", action="append", default=[], help="a folder of runs of one source"
    )
    parser.add_argument("--part", choices=["equal", "blocks", "power", "real"], help="one of it")
    options = parser.parse_args()
    begun = time.monotonic()
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
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
