"""Repeated runs for the tests of `syncline diff`: generated logs with noise between runs and planted changes.

A run is a log of tests/reference/loggen.py. Run-to-run noise is a factor on all its times, drawn once
for each run, as if the disk were a little slower that day. A shift is another such factor. Every run
passes through the whole pipeline: core, SQL, sides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from syncline.comparison import sides
from syncline.comparison.find_runs import Named
from syncline.comparison.run import Run, Side
from syncline.inputs import Reading

from tests.reference import loggen

READING = Reading(window_ns=5 * 10**9)
_TIME = re.compile(rb"^(\d+) ", re.M)


def collect(name: str, paths: Sequence[str], reading: Reading, **options: Any) -> Side:
    """Reads the runs of a side that paths name."""
    return sides.collect(name, Named([*paths], reading.source), reading, **options)


@dataclass(frozen=True)
class Source:
    """The distribution that runs are drawn from."""

    requests: int = 300
    threads: int = 4
    p_empty: float = 0.1
    # Run-to-run noise: the standard deviation of the logarithm of a run's times.
    noise: float = 0.03
    # A factor on all times, like a slower disk.
    shift: float = 1.0

    def log(self, seed: int) -> bytes:
        """Returns the log of a run; the same seed gives the same log."""
        dice = random.Random(seed)
        params = loggen.Params(
            requests=self.requests,
            threads=self.threads,
            files=6,
            p_empty=self.p_empty,
            p_lone=0.0,
            stack_pool=4,
            first_time=0,
        )
        factor = self.shift * random.Random(seed * 7919 + 1).lognormvariate(0, self.noise)
        made = loggen.generate(params, dice).log
        return _TIME.sub(lambda match: b"%d " % round(int(match[1]) * factor), made)

    def changed(self, **how: float) -> Source:
        return replace(self, **how)


def draw(source: Source, folder: Path, seeds: range, *, blocks: bool = False) -> list[Run]:
    """Draws runs from a source, read as a diff reads them."""
    runs = []
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        log = folder / f"run{seed}.log"
        log.write_bytes(source.log(seed))
        runs += collect("side", [str(log)], READING, blocks=blocks).runs
        log.unlink()
    return runs


def side(name: str, runs: list[Run]) -> Side:
    return Side(name, (name,), runs)
