"""Sides of runs whose difference is known: what `syncline diff` finds, how it ends, and what it says that it would have seen.

A run is a set of latencies, of which its figures are computed here, so that no recording is converted.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterator
from statistics import median

from syncline.comparison.compare import compare
from syncline.comparison.comparison import Comparison
from syncline.comparison.comparison import Row as Judged
from syncline.comparison.rules import Policy
from syncline.comparison.run import Figure, Run, Side

from tests.accuracy.run import Row

TITLE = "diff"
SYNCS = 200
PHASES = "flush, queue, device"


def run(dice: random.Random, noise: float, factor: float = 1.0, syncs: int = SYNCS, flush: float = 1.0) -> Run:  # fmt: skip
    """Returns a run whose latencies are lognormal, times a factor of the run.

    Args:
        noise: standard deviation of the logarithm of that factor.
        factor: on all latencies.
        flush: on the flushes, which take a third of the time.
    """
    of_run = factor * math.exp(noise * dice.gauss(0, 1))
    writeback = [1e6 * of_run * math.exp(0.5 * dice.gauss(0, 1)) for _ in range(syncs)]
    shares = [dice.uniform(0.2, 0.45) for _ in range(syncs)]
    flushes = [flush * share * value for share, value in zip(shares, writeback, strict=True)]
    latency = [
        value * (1 - share) + part
        for value, share, part in zip(writeback, shares, flushes, strict=True)
    ]
    figures: dict[tuple[str, str], Figure] = {}

    def known(name: str, value: float, unit: str = "ns") -> None:
        figures[name, "all"] = Figure(value, unit, syncs, syncs)

    known("syncs", syncs, "count")
    known("failed_syncs", 0, "count")
    known("empty_share", sum(dice.random() < 0.1 for _ in range(syncs)) / syncs, "share")
    for name, values in (("syscall_latency", latency), ("writeback_latency", writeback)):
        ordered = sorted(values)
        known(f"{name}_avg", sum(values) / syncs)
        known(f"{name}_p50", median(values))
        for share in (90, 99):
            known(f"{name}_p{share}", ordered[min(syncs - 1, syncs * share // 100)])
    known("writeback_amount_avg", 4096, "bytes")
    known("writeback_amount_sum", 4096 * syncs, "bytes")
    known("sync_wall_time", sum(latency))
    known("sync_time_sum", sum(latency))
    other = (sum(latency) - sum(flushes)) / 2
    return Run(
        "run",
        figures,
        phases={"flush": int(sum(flushes)), "queue": int(other), "device": int(other)},
        facts={"phases_seen": [PHASES]},
    )


Make = Callable[[random.Random], Run]


def diff(dice: random.Random, runs: int, base: Make, new: Make, policy: Policy) -> Comparison:
    sides = [
        Side(name, (name,), [dataclasses.replace(make(dice), name=f"{name}{n}") for n in range(runs)])
        for name, make in (("base", base), ("new", new))
    ]  # fmt: skip
    return compare(*sides, dataclasses.replace(policy, unused=set()), by=())


def row_of(comparison: Comparison, metric: str) -> Judged:
    (found,) = [row for row in comparison.rows if (row.metric, row.name) == (metric, "all")]
    return found


def fails(comparison: Comparison) -> bool:
    return comparison.verdict == "regression"


def rows(seed: int, count: int) -> Iterator[Row]:
    yield from _equal(seed, count)
    yield from _changed(seed, count)
    yield from _power(seed, count)


def _cells(regressions: int, exits: int, before: int, inside: str = "") -> dict[str, str]:
    return {
        "regression": str(regressions),
        "exit code 5": str(exits),
        "with --cant-tell fail": str(before),
        "truth in the interval": inside,
    }


def _equal(seed: int, count: int) -> Iterator[Row]:
    for runs, noise in ((3, 0.03), (5, 0.03), (5, 0.1), (8, 0.03)):
        dice = random.Random(f"equal {runs} {noise} {seed}")
        make: Make = lambda dice, noise=noise: run(dice, noise)  # type: ignore[misc] # noqa: E731
        worse = unsure = before = inside = intervals = 0
        for _ in range(count):
            found = diff(dice, runs, make, make, Policy())
            worse += fails(found)
            unsure += found.verdict == "can't tell"
            old = dataclasses.replace(found, policy=Policy(cant_tell="fail"))
            before += old.verdict == "can't tell"
            for metric in ("syscall_latency_avg", "syscall_latency_p99"):
                interval = row_of(found, metric).interval
                intervals += 1
                inside += interval.low <= 0 <= interval.high
        limit = 0.05 * count + 2 * math.sqrt(0.05 * 0.95 * count)
        yield Row(
            f"equal, {runs} runs of each, {noise:.0%} noise",
            _cells(worse, unsure, before, f"{100 * inside / intervals:.0f} % of 90 %"),
            f"at most {0.05 * count:g} regressions",
            worse <= limit,
        )


def _changed(seed: int, count: int) -> Iterator[Row]:
    listed = Policy(metrics=("phase_flush_avg", "syncs"))
    cases: list[tuple[str, int, str, Make, Policy, int | None]] = [
        ("150 syncs become 180, 3 runs", 3, "syncs", lambda dice: run(dice, 0.03, syncs=180), Policy(), 100),
        ("+30 % of all latencies, 8 runs: p99", 8, "syscall_latency_p99", lambda dice: run(dice, 0.03, 1.3), Policy(), None),
        ("+30 % of all latencies, 8 runs: average", 8, "syscall_latency_avg", lambda dice: run(dice, 0.03, 1.3), Policy(), 95),
        ("flushes take twice as long, 5 runs, in the policy", 5, "phase_flush_avg", lambda dice: run(dice, 0.03, flush=2), listed, 95),
    ]  # fmt: skip
    for name, runs, metric, new, policy, target in cases:
        dice = random.Random(f"{name} {seed}")
        syncs = 150 if metric == "syncs" else SYNCS
        found = unsure = before = 0
        for _ in range(count):
            comparison = diff(dice, runs, lambda dice: run(dice, 0.03, syncs=syncs), new, policy)  # noqa: B023
            found += row_of(comparison, metric).verdict == "regression"
            unsure += comparison.verdict == "can't tell"
            old = dataclasses.replace(policy, cant_tell="fail")
            before += dataclasses.replace(comparison, policy=old).verdict == "can't tell"
        limit = None if target is None else target * count / 100
        yield Row(
            name,
            _cells(found, unsure, before),
            "" if limit is None else f"at least {limit:g} regressions",
            limit is None or found >= limit,
        )


def _power(seed: int, count: int) -> Iterator[Row]:
    """Yields how often a rise is seen that is as large as a comparison of equal sides said that it would see."""
    for runs, metric in ((4, "syscall_latency_avg"), (5, "syscall_latency_avg"), (5, "syscall_latency_p99"), (8, "syscall_latency_avg"), (8, "syscall_latency_p99")):  # fmt: skip
        dice = random.Random(f"power {runs} {metric} {seed}")
        make: Make = lambda dice: run(dice, 0.03)  # noqa: E731
        seen, sizes = 0, []
        for _ in range(count):
            said = row_of(diff(dice, runs, make, make, Policy()), metric).visible
            if said is None:
                continue
            sizes.append(said)
            planted: Make = lambda dice, said=said: run(dice, 0.03, 1 + said)  # type: ignore[misc] # noqa: E731
            found = diff(dice, runs, make, planted, Policy())
            seen += row_of(found, metric).verdict == "regression"
        yield Row(
            f"a rise of what {runs} runs of each say that they would see, {median(sizes):+.0%} of {metric}",
            _cells(seen, 0, 0),
            f"{0.8 * count:g}",
            seen >= 0.65 * count,
        )
