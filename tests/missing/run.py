"""Converts recordings that lack something, and compares them with the whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from syncline import _core

from tests.missing import drops, lists, oracle
from tests.missing.drops import Loss
from tests.missing.lists import Entry
from tests.missing.oracle import Violation
from tests.missing.recordings import Recording


@dataclass(frozen=True)
class Plan:
    """How much is tried with each recording."""

    ends: int
    singles: int
    """About how many single events."""
    random: int
    """How many random shares of random kinds."""
    neighbours: int = 0
    """About how many pairs of neighbouring bounds of a thread."""
    pairs: int = 0
    """How many pairs of events."""
    gaps: int = 0
    """How many pieces of consecutive events."""
    seed: int = 0
    has_kinds: bool = True
    """Whether each kind and the ids of each kind are tried."""

    def losses(self, recording: Recording) -> Iterator[Loss]:
        share = self.singles / max(1, len(recording.events))
        if self.has_kinds:
            yield from drops.kinds(recording)
            yield from drops.ids(recording)
        yield from drops.ends(recording, self.ends)
        yield from drops.single(recording, share, self.seed)
        bounds = sum(event.kind in drops.BOUNDS for event in recording.events)
        yield from drops.neighbours(recording, self.neighbours / max(1, bounds), self.seed)
        yield from drops.pairs(recording, self.pairs, self.seed)
        yield from drops.gaps(recording, self.gaps, self.seed)
        yield from drops.random_kinds(recording, self.random, self.seed)


# Files in memory: thousands are written.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

QUICK = Plan(ends=5, singles=25, random=0, neighbours=12, pairs=6, gaps=6)
RANDOM = Plan(ends=0, singles=0, random=6, has_kinds=False)
ALL = Plan(ends=40, singles=10**6, random=150, neighbours=10**6, pairs=150, gaps=100)


@dataclass
class Result:
    """What the losses of some recordings have shown."""

    tried: list[Loss] = field(default_factory=list)
    refused: list[Loss] = field(default_factory=list)
    violations: list[tuple[Loss, Violation]] = field(default_factory=list)
    """Those that no list covers."""
    covered: dict[Entry, list[tuple[Loss, Violation]]] = field(default_factory=dict)
    """By the line of a list that covers them. A limit comes before what is known."""

    def add(self, loss: Loss, violation: Violation, reasons: set[str]) -> None:
        for entry in (*lists.limits(), *lists.known()):
            if entry.covers(loss, violation) and entry.is_shown(reasons):
                self.covered.setdefault(entry, []).append((loss, violation))
                return
        self.violations.append((loss, violation))


def try_all(recording: Recording, plan: Plan, folder: Path, result: Result) -> None:
    """Adds the results of a recording."""
    whole = oracle.convert(folder, recording.text(recording.events), recording.source)
    for loss in plan.losses(recording):
        result.tried.append(loss)
        try:
            part = oracle.convert(folder, recording.text(loss.events), recording.source)
        except _core.CoreError:
            # It says that there is no sync in it.
            result.refused.append(loss)
            continue
        for violation in oracle.compare(whole, part, loss.span):
            result.add(loss, violation, {row["reason"] for row in part["loss"]})
