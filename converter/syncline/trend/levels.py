"""Divides a series into levels and drifts: the most likely model whose noise may depend on the noise of the run before.

docs/reference/datasets.md explains the method. tests/accuracy/series.py measures it, and the constants of `chance`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

__all__ = ["LEAST", "Costs", "Fit", "Part", "chance", "fit", "penalty", "without_outliers"]

# A run by itself may be an outlier, so a part lasts for at least two. Fewer runs than this show no slope.
LEAST = 2
_LEAST_SLOPE = 8
# The correlation of a run's noise with that of the run before.
_CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
_MOST_CHANGES = 10
# An isolated run counts as at most this many spreads away from its neighbours.
_CLIP = 3.0
# Series without a change gain more than _AT for each change in one of 20 cases, and in exp(_RATE) times fewer for each unit above.
# Fitted to 1,000 series of 8, 12, 20 and 40 runs without correlation, in which 2 to 4 of 100 have a change, and with 0.5, in
# which 5 to 9 have.
_AT, _RATE = 10.8, 0.45


@dataclass(frozen=True)
class Part:
    """Runs from `start` to before `end` that have one level, or one slope."""

    start: int
    end: int
    is_drift: bool


@dataclass(frozen=True)
class Fit:
    """The parts of a series, and the noise about them."""

    parts: list[Part]
    correlation: float
    # Twice the log likelihood is -(this) + a constant.
    misfit: float


class Costs:
    """The squares that a part leaves unexplained, for one correlation, in constant time for each part.

    The noise of a part is an autoregressive process that begins anew with the part. So the likelihood is a product over parts, and
    dynamic programming finds its maximum.
    """

    def __init__(self, values: Sequence[float], correlation: float) -> None:
        self.values = values
        self.r = correlation
        steps = [0.0, *(b - correlation * a for a, b in pairwise(values))]
        # Sums over the runs up to and with the index.
        self._w = list(accumulate(steps))
        self._ww = list(accumulate(one * one for one in steps))
        self._iw = list(accumulate(index * one for index, one in enumerate(steps)))

    def sums(self, start: int, end: int) -> tuple[float, float, float]:
        """Returns weight, weighted sum and sum of squares of a part."""
        r, first = self.r, self.values[start]
        last = end - 1
        first_weight = 1 - r * r
        weight = first_weight + (last - start) * (1 - r) ** 2
        total = first_weight * first + (1 - r) * (self._w[last] - self._w[start])
        squares = first_weight * first * first + self._ww[last] - self._ww[start]
        return weight, total, squares

    def level(self, start: int, end: int) -> float:
        """Returns the squares that one level leaves."""
        weight, total, squares = self.sums(start, end)
        return max(squares - total * total / weight, 0.0)

    def slope(self, start: int, end: int) -> tuple[float, float, float]:
        """Returns the squares that a line leaves, its slope, and the weight of that."""
        r, last = self.r, end - 1
        weight, total, squares = self.sums(start, end)
        count = last - start
        ramps = count * (count + 1) / 2
        ramp_squares = count * (count + 1) * (2 * count + 1) / 6
        cross = (1 - r) * ((1 - r) * ramps + r * count)
        own = (1 - r) ** 2 * ramp_squares + 2 * r * (1 - r) * ramps + r * r * count
        steps = self._w[last] - self._w[start]
        with_values = (1 - r) * (self._iw[last] - self._iw[start] - start * steps) + r * steps
        # What the level leaves of ramp and values.
        own -= cross * cross / weight
        with_values -= cross * total / weight
        slope = with_values / own
        return max(squares - total * total / weight - with_values * slope, 0.0), slope, own


def without_outliers(values: Sequence[float]) -> list[float]:
    """Moves runs that are far from both neighbours towards these, so that one odd run is no level."""
    if len(values) < 3:
        return [*values]
    spread = 1.4826 * median(abs(b - a) for a, b in pairwise(values)) / math.sqrt(2)
    found = []
    for index, value in enumerate(values):
        first = min(max(index - 1, 0), len(values) - 3)
        centre = median(values[first : first + 3])
        found.append(min(max(value, centre - _CLIP * spread), centre + _CLIP * spread))
    return found


def _most_changes(length: int) -> int:
    return max(1, min(_MOST_CHANGES, length // 5))


def _search(values: Sequence[float], correlation: float) -> list[tuple[float, list[Part]]]:
    """Returns the squares and the parts of the best model with 0, 1, 2 ... changes. A drift counts as one too."""
    costs, length = Costs(values, correlation), len(values)
    most = _most_changes(length)
    infinite = math.inf
    # best[k][end]: squares of the runs before `end` with k changes; back: where the last part begins and if it is a drift.
    best = [[infinite] * (length + 1) for _ in range(most + 1)]
    back: list[list[tuple[int, bool]]] = [[(0, False)] * (length + 1) for _ in range(most + 1)]
    for end in range(LEAST, length + 1):
        level = costs.level(0, end)
        best[0][end] = level
        if end >= _LEAST_SLOPE:
            best[1][end], back[1][end] = costs.slope(0, end)[0], (0, True)
        for start in range(LEAST, end - LEAST + 1):
            level = costs.level(start, end)
            line = costs.slope(start, end)[0] if end - start >= _LEAST_SLOPE else infinite
            for k in range(1, most + 1):
                before = best[k - 1][start]
                if before == infinite:
                    break
                whole = before + level
                if whole < best[k][end]:
                    best[k][end], back[k][end] = whole, (start, False)
                if k > 1 and line < infinite:
                    whole = best[k - 2][start] + line
                    if whole < best[k][end]:
                        best[k][end], back[k][end] = whole, (start, True)
    found = []
    for k in range(most + 1):
        if best[k][length] == infinite:
            break
        parts, end, left = [], length, k
        while end:
            start, is_drift = back[left][end]
            parts.append(Part(start, end, is_drift))
            left -= is_drift + (start > 0)
            end = start
        found.append((best[k][length], parts[::-1]))
    return found


def fit(values: Sequence[float], alpha: float, least_variance: float = 0.0) -> Fit:
    """Returns the parts of a series.

    Args:
        values: with spreads that do not depend on the level, and without outliers.
        alpha: the chance of a change where there is none.
        least_variance: of a run's noise, if it is known to vary, such as that of a small count.
    """
    each = penalty(alpha)
    found = []
    for correlation in _CORRELATIONS:
        for changes, (squares, parts) in enumerate(_search(values, correlation)):
            misfit = misfit_of(values, squares, len(parts), correlation, least_variance)
            found.append((misfit + changes * each, correlation, misfit, parts))
    # The first of equal ones has the fewest changes, because constant series fit without any.
    _, correlation, misfit, parts = min(found, key=lambda one: (one[0], one[1], len(one[3])))
    return Fit(parts, correlation, misfit)


def misfit_of(
    values: Sequence[float], squares: float, parts: int, correlation: float, least_variance: float
) -> float:
    """Returns minus twice the log likelihood."""
    length = len(values)
    # Rounding leaves squares where all runs of a part are equal.
    least = max(least_variance, 1e-18 * max(one * one for one in values), 1e-200)
    noise = length * math.log(max(squares / length, least))
    return noise - parts * math.log(1 - correlation**2)


def penalty(alpha: float) -> float:
    """Returns how much a change must gain in twice the log likelihood."""
    return _AT + math.log(0.05 / alpha) / _RATE


def chance(gain: float) -> float:
    """Returns in which share of series without a change the best model gains as much for each change."""
    # Series without a change do not show what happens once in a million times.
    return min(1.0, max(1e-6, 0.05 * math.exp(-_RATE * (gain - _AT))))
