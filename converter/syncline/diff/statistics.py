"""The statistics of a diff, and nothing else: lists of numbers in, intervals and p-values out.

docs/diff.md says why these methods and cites them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from operator import itemgetter

__all__ = [
    "Adjusted",
    "Arrangements",
    "Interval",
    "adjusted",
    "autocorrelation",
    "difference_interval",
    "least_p",
    "mean",
    "ratio_interval",
    "runs_needed",
    "student_quantile",
]

# So many ways to deal the runs to two sides are all gone through; of more, so many are drawn.
EXHAUSTIVE = 2_000
DRAWN = 1_999
# And at least so many for each one that may stand out.
_DRAWN_EACH = 20
# Sums of the same numbers in another order differ by less; what differs by less is a tie.
_TIE = 1e-9

Values = Sequence[float | None]


@dataclass(frozen=True)
class Interval:
    """Bounds, each of which holds with the confidence asked for; infinite where nothing is known."""

    low: float
    high: float


UNKNOWN = Interval(-math.inf, math.inf)


def mean(values: Values) -> float | None:
    """Of the known values."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _spread(values: Values, centre: float | None = None) -> tuple[int, float, float] | None:
    """How many, their mean or `centre`, and the variance of that; None with fewer than two.

    About a centre that is not their mean they spread more: so a part's bias widens the interval.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    average = math.fsum(known) / len(known)
    if min(known) == max(known):
        # Equal values have no spread, whatever rounding their mean has.
        average = known[0]
    if centre is None or math.isclose(centre, average, rel_tol=_TIE):
        centre = average
    variance = math.fsum((value - centre) ** 2 for value in known) / (len(known) - 1)
    return len(known), centre, variance / len(known)


def _welch(n: int, a: float, m: int, b: float) -> float:
    """Welch's degrees of freedom for the sum of two variances of means."""
    if a + b == 0:
        return math.inf
    return (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))


def ratio_interval(
    base: Values, new: Values, confidence: float, centres: tuple[float, float] | None = None
) -> Interval:
    """Of mean(new) / mean(base): Fieller's interval, with Welch's degrees of freedom.

    Args:
        base, new: a value for each unit; None where it is not known.
        confidence: of each bound.
        centres: the figures of the whole sides, where the units are parts of them (sectioning).
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
    # All r with |y - r x| <= t sqrt(b + r^2 a).
    square = x * x - t * t * a
    if square <= 0:
        return UNKNOWN
    root = math.sqrt(max(x * x * y * y - square * (y * y - t * t * b), 0.0))
    return Interval((x * y - root) / square, (x * y + root) / square)


def difference_interval(
    base: Values, new: Values, confidence: float, centres: tuple[float, float] | None = None
) -> Interval:
    """Of mean(new) - mean(base): Welch's interval."""
    whole = centres or (None, None)
    spreads = _spread(base, whole[0]), _spread(new, whole[1])
    if spreads[0] is None or spreads[1] is None:
        return UNKNOWN
    (n, x, a), (m, y, b) = spreads
    if a + b == 0:
        return Interval(y - x, y - x)
    half = student_quantile(confidence, _welch(n, a, m, b)) * math.sqrt(a + b)
    return Interval(y - x - half, y - x + half)


def autocorrelation(values: Values) -> float:
    """Of neighbours; 0 where there is none to speak of."""
    known = [value for value in values if value is not None]
    if len(known) < 3 or min(known) == max(known):
        return 0.0
    centre = math.fsum(known) / len(known)
    apart = [value - centre for value in known]
    squares = math.fsum(value * value for value in apart)
    return math.fsum(a * b for a, b in pairwise(apart)) / squares


def least_p(base: int, new: int) -> float:
    """The smallest p-value that so many units can give: that of one way to deal them of all."""
    return 1 / math.comb(base + new, new)


def runs_needed(alpha: float) -> int:
    """How many units on each side can give a p-value of `alpha`."""
    count = 2
    while least_p(count, count) > alpha * (1 + _TIE):
        count += 1
    return count


class Arrangements:
    """Ways to deal the units of both sides to two sides of the same sizes; the real one is first."""

    def __init__(self, base: int, new: int, seed: int, alpha: float = 0.05) -> None:
        """`alpha` is the smallest p-value that somebody asks for."""
        self.base, self.new = base, new
        units = range(base + new)
        self.exhaustive = math.comb(base + new, new) <= EXHAUSTIVE
        real = tuple(range(base, base + new))
        self.chosen: list[tuple[int, ...]] = [real]
        if self.exhaustive:
            self.chosen += [chosen for chosen in combinations(units, new) if chosen != real]
        else:
            dice = random.Random(seed)
            drawn = max(DRAWN, math.ceil(_DRAWN_EACH / alpha) - 1)
            self.chosen += [tuple(dice.sample(units, new)) for _ in range(drawn)]

    def __len__(self) -> int:
        return len(self.chosen)


@dataclass(frozen=True)
class Adjusted:
    """p-values of one row, adjusted for all rows: that it went up, that it went down."""

    up: float
    down: float


def adjusted(
    rows: Sequence[tuple[Values, Values, int]], arrangements: Arrangements
) -> list[Adjusted]:
    """Westfall and Young's step-down maxT, once for what went up and once for what went down.

    With every unit of both sides from one source, the chance that any row has `up` <= alpha is at
    most alpha, exactly, however many rows there are and however they hang together.

    Args:
        rows: (base, new, sign): a value for each unit; sign -1 turns up and down round.
    """
    if not rows:
        return []
    scores = [[sign * score for score in _scores([*base, *new])] for base, new, sign in rows]
    # What never varies stands out in no arrangement.
    varied = [row for row in range(len(rows)) if any(scores[row])]
    takes = [_take(chosen) for chosen in arrangements.chosen]
    observed = {row: sum(takes[0](scores[row])) for row in varied}
    rising = sorted(varied, key=lambda row: observed[row])
    falling = rising[::-1]
    up, down = dict.fromkeys(varied, 0), dict.fromkeys(varied, 0)
    # In the order of the sums from here on, from the least.
    ordered = [scores[row] for row in rising]
    above = [observed[row] - _TIE for row in rising]
    below = [observed[row] + _TIE for row in falling]
    for take in takes:
        sums = [sum(take(row)) for row in ordered]
        # What is compared is the largest of a row and of all that stand out less.
        for row, most, least in zip(rising, accumulate(sums, max), above, strict=True):
            if most >= least:
                up[row] += 1
        for row, least, most in zip(falling, accumulate(reversed(sums), min), below, strict=True):
            if least <= most:
                down[row] += 1
    total = len(takes)
    ups, downs = _monotone(up, falling, total), _monotone(down, rising, total)
    return [Adjusted(ups.get(row, 1.0), downs.get(row, 1.0)) for row in range(len(rows))]


def _take(chosen: tuple[int, ...]) -> Callable[[Sequence[float]], Iterable[float]]:
    """Picks the units of an arrangement out of a row."""
    if len(chosen) == 1:
        return lambda row: (row[chosen[0]],)
    return itemgetter(*chosen)


def _monotone(counts: dict[int, int], order: list[int], total: int) -> dict[int, float]:
    """A row is never surer than one that stood out more."""
    shares = accumulate((counts[row] / total for row in order), max)
    return dict(zip(order, shares, strict=True))


def _scores(values: Values) -> list[float]:
    """The units' values on a scale that all rows share: centred, of length 1, missing ones 0.

    The sum over the new side is then a monotone function of the two-sample t. Latencies and amounts
    are skewed, and their changes are factors: logarithms, where there are any.
    """
    known = [value for value in values if value is not None]
    if not known or min(known) == max(known):
        return [0.0] * len(values)
    logs = min(known) > 0
    scaled = [value if value is None else math.log(value) if logs else value for value in values]
    centre = mean(scaled) or 0.0
    apart = [0.0 if value is None else value - centre for value in scaled]
    length = math.sqrt(math.fsum(value * value for value in apart))
    return [value / length for value in apart] if length else [0.0] * len(values)


# ---------------------------------------------------------------- Student's t


def student_quantile(probability: float, freedom: float) -> float:
    """The value below which Student's t lies with this probability (0.5 to 1)."""
    if probability <= 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while _student_below(high, freedom) < probability and high < 1e12:
        low, high = high, high * 2
    value = (low + high) / 2
    for _ in range(100):
        beyond = _student_below(value, freedom) - probability
        low, high = (low, value) if beyond > 0 else (value, high)
        # Newton's step, as long as it stays between the bounds.
        step = value - beyond / _student_density(value, freedom)
        step = step if low < step < high else (low + high) / 2
        if abs(step - value) <= 1e-12 * value:
            break
        value = step
    return value


def _student_density(t: float, freedom: float) -> float:
    if math.isinf(freedom):
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    tail = (freedom + 1) / 2 * math.log1p(t * t / freedom)
    return math.exp(front - tail) / math.sqrt(freedom * math.pi)


def _student_below(t: float, freedom: float) -> float:
    """P(T <= t), t >= 0."""
    if math.isinf(freedom):
        return 0.5 * math.erfc(-t / math.sqrt(2))
    return 1 - 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for step in range(1, 500):
        up = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        down = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for factor in (up, down):
            d = 1 / (1 + factor * d or tiny)
            c = 1 + factor / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a
