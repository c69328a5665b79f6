"""The statistics of a diff: computes intervals and p-values from lists of numbers.

docs/reference/diff.md explains the choice of methods and cites them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from operator import itemgetter

from syncline.student import student_quantile

__all__ = [
    "Adjusted",
    "Interval",
    "Permutations",
    "adjusted",
    "autocorrelation",
    "difference_interval",
    "least_p",
    "mean",
    "ratio_interval",
    "runs_needed",
    "student_quantile",
    "visible_difference",
    "visible_ratio",
]

# Up to this number, all permutations are tested. If there are more, a random sample is drawn.
EXHAUSTIVE = 2_000
DRAWN = 1_999
# The sample is at least this many times 1 / alpha.
_DRAWN_PER_ALPHA = 20
# Two sums that differ by less are equal: the order of the addends changes a sum by less than this.
_TIE = 1e-9

Values = Sequence[float | None]


@dataclass(frozen=True)
class Interval:
    """Two bounds. Each holds with the requested confidence. A bound is infinite if there is no information on it."""

    low: float
    high: float


UNKNOWN = Interval(-math.inf, math.inf)


def mean(values: Values) -> float | None:
    """Returns the mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _spread(values: Values, centre: float | None = None) -> tuple[int, float, float] | None:
    """Returns the number of known values, their mean or `centre`, and its variance; None with fewer than two values.

    Values vary more about a centre that is not their mean, so a bias of the parts widens the interval.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    average = math.fsum(known) / len(known)
    if min(known) == max(known):
        # Avoids a variance that is only the rounding error of the mean.
        average = known[0]
    if centre is None or math.isclose(centre, average, rel_tol=_TIE):
        centre = average
    variance = math.fsum((value - centre) ** 2 for value in known) / (len(known) - 1)
    return len(known), centre, variance / len(known)


def _welch(n: int, a: float, m: int, b: float) -> float:
    """Returns Welch's degrees of freedom for the sum of two variances of means."""
    if a + b == 0:
        return math.inf
    return (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))


def ratio_interval(
    base: Values, new: Values, confidence: float, centres: tuple[float, float] | None = None
) -> Interval:
    """Returns Fieller's interval for mean(new) / mean(base), with Welch's degrees of freedom.

    Args:
        base, new: a value for each unit; None where it is not known.
        confidence: of each bound.
        centres: the figures of the whole sides, if the units are parts of them (sectioning).
    """
    whole = centres or (None, None)
    spreads = _spread(base, whole[0]), _spread(new, whole[1])
    if spreads[0] is None or spreads[1] is None:
        return UNKNOWN
    (n, x, a), (m, y, b) = spreads
    if x <= 0:
        return UNKNOWN
    if a + b == 0:
        return Interval(y / x, y / x)
    ratio = y / x
    t = student_quantile(confidence, _welch(n, a * ratio * ratio, m, b))
    # The interval contains all r with |y - r x| <= t sqrt(b + r^2 a).
    square = x * x - t * t * a
    if square <= 0:
        return UNKNOWN
    root = math.sqrt(max(x * x * y * y - square * (y * y - t * t * b), 0.0))
    return Interval((x * y - root) / square, (x * y + root) / square)


def difference_interval(
    base: Values, new: Values, confidence: float, centres: tuple[float, float] | None = None
) -> Interval:
    """Returns Welch's interval for mean(new) - mean(base); the arguments are those of `ratio_interval`."""
    whole = centres or (None, None)
    spreads = _spread(base, whole[0]), _spread(new, whole[1])
    if spreads[0] is None or spreads[1] is None:
        return UNKNOWN
    (n, x, a), (m, y, b) = spreads
    if a + b == 0:
        return Interval(y - x, y - x)
    half = student_quantile(confidence, _welch(n, a, m, b)) * math.sqrt(a + b)
    return Interval(y - x - half, y - x + half)


# A change is visible if the runs show it in this share of cases. The spread is that of the same few runs, and so is uncertain: to show
# a change in 8 of 10 cases, aim at 9 (tests/accuracy/sides.py).
POWER = 0.8
_AIM = 0.9


def visible_ratio(
    base: Values,
    new: Values,
    confidence: float,
    limit: float,
    centres: tuple[float, float] | None = None,
) -> float | None:
    """Returns the ratio nearest to `limit` that would probably be shown to be beyond it; None if the runs vary too much for any.

    The new side is taken to be the base times a factor, with the spread that its own values have. With the factor f,
    (f - limit) x must exceed sqrt(f^2 b + limit^2 a) by the quantiles of the confidence and of _AIM.

    Args:
        limit: above 1 for a rise, below 1 for a fall; the others are those of `ratio_interval`.
    """
    whole = centres or (None, None)
    spreads = _spread(base, whole[0]), _spread(new, whole[1])
    if spreads[0] is None or spreads[1] is None:
        return None
    (n, x, a), (m, y, b) = spreads
    if x <= 0 or y <= 0:
        return None
    b *= (x / y) ** 2
    freedom = _welch(n, a, m, b)
    t = student_quantile(confidence, freedom) + student_quantile(_AIM, freedom)
    rest = x * x - t * t * b
    if rest <= 0:
        return None
    root = math.sqrt(max(x**4 - rest * (x * x - t * t * a), 0.0))
    found = limit * (x * x + math.copysign(root, limit - 1)) / rest
    return found if found > 0 else None


def visible_difference(
    base: Values, new: Values, confidence: float, centres: tuple[float, float] | None = None
) -> float | None:
    """Returns by how much more than the tolerance a difference must be to be shown; None with fewer than two values."""
    whole = centres or (None, None)
    spreads = _spread(base, whole[0]), _spread(new, whole[1])
    if spreads[0] is None or spreads[1] is None:
        return None
    (n, _, a), (m, _, b) = spreads
    freedom = _welch(n, a, m, b)
    t = student_quantile(confidence, freedom) + student_quantile(_AIM, freedom)
    return t * math.sqrt(a + b)


def autocorrelation(values: Values) -> float:
    """Returns the correlation of neighbouring values; 0 with fewer than three values, or if all are equal."""
    known = [value for value in values if value is not None]
    if len(known) < 3 or min(known) == max(known):
        return 0.0
    centre = math.fsum(known) / len(known)
    deviations = [value - centre for value in known]
    squares = math.fsum(value * value for value in deviations)
    return math.fsum(a * b for a, b in pairwise(deviations)) / squares


def least_p(base: int, new: int) -> float:
    """Returns the smallest p-value that a permutation test of these numbers of units can give."""
    return 1 / math.comb(base + new, new)


def runs_needed(alpha: float) -> int:
    """Returns how many units on each side are needed for a p-value of `alpha`."""
    count = 2
    while least_p(count, count) > alpha * (1 + _TIE):
        count += 1
    return count


class Permutations:
    """Assignments of the units of both sides to two sides of the same sizes. The actual one is first."""

    def __init__(self, base: int, new: int, seed: int, alpha: float = 0.05) -> None:
        """`alpha` is the smallest p-value that the caller needs."""
        self.base, self.new = base, new
        units = range(base + new)
        self.exhaustive = math.comb(base + new, new) <= EXHAUSTIVE
        actual = tuple(range(base, base + new))
        # The units on the new side, for each permutation.
        self.new_units: list[tuple[int, ...]] = [actual]
        if self.exhaustive:
            self.new_units += [chosen for chosen in combinations(units, new) if chosen != actual]
        else:
            dice = random.Random(seed)
            drawn = max(DRAWN, math.ceil(_DRAWN_PER_ALPHA / alpha) - 1)
            self.new_units += [tuple(dice.sample(units, new)) for _ in range(drawn)]

    def __len__(self) -> int:
        return len(self.new_units)


@dataclass(frozen=True)
class Adjusted:
    """p-values of one row, adjusted for all rows: that its values increased, that they decreased."""

    up: float
    down: float


def adjusted(
    rows: Sequence[tuple[Values, Values, int]], permutations: Permutations
) -> list[Adjusted]:
    """Computes Westfall and Young's step-down maxT, once for increases and once for decreases.

    If all units of both sides come from one distribution, the probability that any row has `up` <= alpha
    is at most alpha. This is exact for any number of rows and any correlation between them.

    Args:
        rows: (base, new, sign): a value for each unit; sign -1 swaps increase and decrease.
    """
    if not rows:
        return []
    scores = [[sign * score for score in _scores([*base, *new])] for base, new, sign in rows]
    # A row whose values are all equal is extreme in no permutation.
    varied = [row for row in range(len(rows)) if any(scores[row])]
    takes = [_picker(chosen) for chosen in permutations.new_units]
    observed = {row: sum(takes[0](scores[row])) for row in varied}
    rising = sorted(varied, key=lambda row: observed[row])
    falling = rising[::-1]
    up, down = dict.fromkeys(varied, 0), dict.fromkeys(varied, 0)
    # From here on, in ascending order of the observed sums.
    ordered = [scores[row] for row in rising]
    above = [observed[row] - _TIE for row in rising]
    below = [observed[row] + _TIE for row in falling]
    for take in takes:
        sums = [sum(take(row)) for row in ordered]
        # Step-down: compares with the maximum over the row and all rows that are less extreme.
        for row, most, least in zip(rising, accumulate(sums, max), above, strict=True):
            if most >= least:
                up[row] += 1
        for row, least, most in zip(falling, accumulate(reversed(sums), min), below, strict=True):
            if least <= most:
                down[row] += 1
    total = len(takes)
    ups, downs = _monotone(up, falling, total), _monotone(down, rising, total)
    return [Adjusted(ups.get(row, 1.0), downs.get(row, 1.0)) for row in range(len(rows))]


def _picker(chosen: tuple[int, ...]) -> Callable[[Sequence[float]], Iterable[float]]:
    """Returns a function that picks the chosen units out of a row."""
    if len(chosen) == 1:
        return lambda row: (row[chosen[0]],)
    return itemgetter(*chosen)


def _monotone(counts: dict[int, int], order: list[int], total: int) -> dict[int, float]:
    """Makes the p-values monotone: that of a row is at least that of any more extreme row."""
    shares = accumulate((counts[row] / total for row in order), max)
    return dict(zip(order, shares, strict=True))


def _scores(values: Values) -> list[float]:
    """Standardizes the values of the units, so that all rows share a scale: centred, of length 1, 0 if unknown.

    The sum over the new side is then a monotone function of the two-sample t. Latencies and amounts
    are skewed and change by factors, so their logarithms are used if all values are positive.
    """
    known = [value for value in values if value is not None]
    if not known or min(known) == max(known):
        return [0.0] * len(values)
    logs = min(known) > 0
    scaled = [value if value is None else math.log(value) if logs else value for value in values]
    centre = mean(scaled) or 0.0
    deviations = [0.0 if value is None else value - centre for value in scaled]
    length = math.sqrt(math.fsum(value * value for value in deviations))
    return [value / length for value in deviations] if length else [0.0] * len(values)
