"""The history of a metric: its value in each run of a dataset, and the runs at which it changed."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

from syncline.comparison.comparison import Row
from syncline.comparison.policy import Policy
from syncline.comparison.verdicts import judge_all
from syncline.dataset.layout import Entry
from syncline.engine import EngineError
from syncline.errors import InputError

__all__ = ["Change", "Series", "changes_in", "history"]

# A run by itself may be an outlier, so a change lasts for at least two.
_LEAST = 2
# Orders of the runs that are drawn to find what chance does.
_DRAWN = 1999


@dataclass(frozen=True)
class Change:
    """A place in a series at which the metric changed."""

    # Index of the first run after it.
    at: int
    # With the means before and after it, the change, its interval and the verdict of a diff.
    row: Row
    # The chance that runs in any order differ as much at their best place.
    p: float


@dataclass(frozen=True)
class Series:
    """A metric of the runs of one host, in the order of their starts."""

    host: str | None
    # It is of one host, which may be unknown; else of all.
    is_of_host: bool
    metric: str
    scope: str
    unit: str
    # Runs in which the metric is known.
    entries: list[Entry]
    values: list[float]
    # Number of runs in which it is not known.
    unknown: int
    changes: list[Change] = field(default_factory=list)
    # Why no change can be found; empty if one can.
    too_few: str = ""

    def segment(self, at: int) -> tuple[int, int]:
        """Returns the first run of the part that begins at a change, and the run after its last one."""
        ends = [change.at for change in self.changes if change.at > at]
        return at, min([*ends, len(self.values)])


def history(
    entries: Sequence[Entry],
    metrics: Sequence[str],
    scope: str,
    policy: Policy,
    *,
    by_host: bool = True,
    seed: int = 1,
) -> tuple[list[Series], list[str]]:
    """Returns the series of each metric and host with their changes, and why runs are left out.

    Args:
        entries: the runs.
        metrics: names of the report `summary`.
        scope: of the summary, such as `all` or `op:fsync`.
        policy: which change matters, as for a diff.
        by_host: a series for each host; else one for all.

    Raises:
        InputError: no run has a metric.
        EngineError: ruptures is missing.
    """
    dated = [entry for entry in entries if entry.started_ns is not None]
    left_out = []
    if len(dated) < len(entries):
        names = ", ".join(entry.run for entry in entries if entry.started_ns is None)
        count = len(entries) - len(dated)
        left_out.append(
            (
                "1 run is left out, because its"
                if count == 1
                else f"{count:,} runs are left out, because their"
            )
            + f" time is not known: {names[:200]}"
            " (give it: syncline ingest RUN --into DATASET --started TIME --replace)"
        )
    dated.sort(key=lambda entry: (entry.started_ns or 0, entry.run))
    series = []
    for metric in metrics:
        known = {entry.run: _value(entry, metric, scope) for entry in dated}
        units = [found[1] for found in known.values() if found]
        if not units:
            raise _unknown(entries, metric, scope)
        hosts = sorted({entry.host for entry in dated}, key=str) if by_host else [None]
        for host in hosts:
            of_host = [entry for entry in dated if not by_host or entry.host == host]
            have = [entry for entry in of_host if known[entry.run]]
            values = [found[0] for entry in have if (found := known[entry.run])]
            if values:
                unknown = len(of_host) - len(have)
                series.append(Series(host, by_host, metric, scope, units[0], have, values, unknown))
    share = _Share(series, 1 - policy.confidence)
    return [_with_changes(one, policy, share, seed) for one in series], left_out


class _Share:
    """How the chance of a false alarm is shared.

    A series that is too short, or has one value in all runs, can give no false alarm, so it gets no share. Lengths do not depend on
    what was measured, so choosing by them is no test.
    """

    def __init__(self, series: Sequence[Series], alpha: float) -> None:
        self._whole = alpha
        self._lengths = [len(one.values) for one in series if min(one.values) < max(one.values)]
        tested = (length for length in sorted(set(self._lengths)) if length >= self.least(length))
        # The shortest series that can have a change. Without one, no series is tested.
        self.shortest = next(tested, math.inf)
        self.alpha = self._of(self.shortest)

    def _of(self, length: float) -> float:
        """Returns the share of each series if all of this length and longer ones are tested."""
        return self._whole / max(1, sum(one >= length for one in self._lengths))

    def least(self, length: int) -> int:
        """Returns how many runs a series of this length would need."""
        return _least_runs(self._of(length))


def _value(entry: Entry, metric: str, scope: str) -> tuple[float, str] | None:
    for name, of, value, unit, *_ in entry.figures:
        if (name, of) == (metric, scope) and value is not None:
            return float(value), str(unit)
    return None


def _unknown(entries: Sequence[Entry], metric: str, scope: str) -> InputError:
    names = list(dict.fromkeys(name for entry in entries for name, *_ in entry.figures))
    scopes = list(
        dict.fromkeys(of for entry in entries for name, of, *_ in entry.figures if name == metric)
    )
    if metric not in names:
        close = difflib.get_close_matches(metric, names, 1)
        return InputError(
            f"no run has a metric '{metric}'" + (f"; did you mean {close[0]}?" if close else ""),
            f"the metrics are those of the report summary: {', '.join(names)}",
        )
    return InputError(
        f"{metric} of {scope} is not known in any dated run",
        f"its scopes are: {', '.join(scopes)}; give undated runs a time: syncline ingest --started",
    )


def _with_changes(series: Series, policy: Policy, share: _Share, seed: int) -> Series:
    length = len(series.values)
    is_constant = min(series.values) == max(series.values)
    if length < share.shortest and not (is_constant and length >= _least_runs(share.alpha)):
        runs = "1 run" if length == 1 else f"{length} runs"
        return replace(series, too_few=f"{runs}; {share.least(length)} are needed")
    places = changes_in(series.values, share.alpha, seed) or []
    changes = []
    for number, at in enumerate(places):
        first = places[number - 1] if number else 0
        last = places[number + 1] if number + 1 < len(places) else len(series.values)
        before, after = series.values[first:at], series.values[at:last]
        changes.append(
            Change(at, _judged(series, before, after, policy, seed), _p(before, after, seed))
        )
    return replace(series, changes=changes)


def _judged(
    series: Series, before: list[float], after: list[float], policy: Policy, seed: int
) -> Row:
    """Compares the runs before and after a change, as a diff does."""
    base, new = sum(before) / len(before), sum(after) / len(after)
    criteria = policy.criteria("", series.scope, series.metric, series.unit, gate=True)
    row = Row("", series.scope, series.metric, series.unit, base, new, [*before], [*after], criteria)  # fmt: skip
    judge_all([row], (len(before), len(after)), policy, seed, blocks=False)
    return row


def changes_in(values: Sequence[float], alpha: float, seed: int = 1) -> list[int] | None:
    """Returns the indices at which the level of a series changes; None if it is too short.

    PELT (Killick et al., 2012) on the ranks of the values, by ruptures. Its penalty is what the best single change
    of the same values gains in 1 - alpha of all random orders. So a series without a change has one with the chance alpha at most.
    """
    numpy, ruptures = _import("numpy"), _import("ruptures")
    if len(values) < _least_runs(alpha):
        return None
    ranks = _ranks(numpy, values)
    gains = _random_gains(numpy, ranks, seed)
    penalty = float(numpy.quantile(gains, 1 - alpha, method="higher"))
    # Two changes together may exceed the penalty where neither does. Without this test, such pairs are false alarms.
    if _gains(numpy, ranks[None, :]).max() <= penalty * (1 + 1e-9):
        return []
    found = ruptures.KernelCPD(kernel="linear", min_size=_LEAST, jump=1)
    # A tie with what chance gives is no change.
    places = [int(at) for at in found.fit(ranks.reshape(-1, 1)).predict(pen=penalty * (1 + 1e-9))]
    places = places[:-1]
    # The least sure one is dropped first.
    while places:
        p, worst = max((_p(*_around(values, places, at), seed), at) for at in places)
        if p <= alpha:
            break
        places.remove(worst)
    scaled = numpy.log(values) if min(values) > 0 else numpy.asarray(values, dtype=float)
    for number, at in enumerate(places):
        before, after = _around(scaled, places, at)
        places[number] = at - len(before) + _place(numpy, numpy.concatenate([before, after]))
    return places


def _around(values: Any, places: list[int], at: int) -> tuple[Any, Any]:
    """Returns the values between a change and the one before, and between it and the next."""
    first = max([0, *(place for place in places if place < at)])
    last = min([len(values), *(place for place in places if place > at)])
    return values[first:at], values[at:last]


def _place(numpy: Any, values: Any) -> int:
    """Returns where the level changes: the distances to the medians of both parts have the least sum.

    Ranks say that there is a change, but they do not say how far a run at the border is from the others.
    """

    def distance(part: Any) -> float:
        return float(numpy.abs(part - numpy.median(part)).sum())

    places = range(_LEAST, len(values) - _LEAST + 1)
    return min(places, key=lambda at: distance(values[:at]) + distance(values[at:]))


def _least_runs(alpha: float) -> int:
    """Returns how long a series must be: sorted values are at least as rare as alpha, in both directions."""
    length = 2 * _LEAST
    while 2 / comb(length, length // 2) > alpha:
        length += 1
    return length


def _p(before: Sequence[float], after: Sequence[float], seed: int) -> float:
    """Returns in which share of random orders of two parts the best place gains as much as in their own order."""
    numpy = _import("numpy")
    ranks = _ranks(numpy, [*before, *after])
    observed = _gains(numpy, ranks[None, :]).max()
    gains = _random_gains(numpy, ranks, seed)
    return float((1 + (gains >= observed - 1e-9).sum()) / (1 + len(gains)))


def _ranks(numpy: Any, values: Sequence[float]) -> Any:
    """Returns the ranks of values; equal values have their mean rank."""
    array = numpy.asarray(values, dtype=float)
    _, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return ((2 * ends - counts + 1) / 2)[inverse]


def _random_gains(numpy: Any, ranks: Any, seed: int) -> Any:
    """Returns the gain of the best single change in random orders of the values."""
    dice = numpy.random.default_rng(seed)
    orders = dice.permuted(numpy.tile(ranks, (_DRAWN, 1)), axis=1)
    return _gains(numpy, orders).max(axis=1)


def _gains(numpy: Any, rows: Any) -> Any:
    """Returns by how much each place of a change reduces the sum of squares of each row."""
    length = rows.shape[1]
    left = numpy.arange(_LEAST, length - _LEAST + 1)
    sums = rows.cumsum(axis=1)
    before, whole = sums[:, left - 1], sums[:, -1:]
    centred = before - whole * left / length
    return centred**2 * length / (left * (length - left))


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EngineError(
            "trend needs the Python package ruptures", "pip install 'syncline[trend]'"
        ) from None
