"""Estimates with confidence intervals: of a mean, and of a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from syncline.student import student_quantile

from .parameters import Interval

__all__ = ["Estimate", "line", "mean", "mean_of_series"]

# Two-sided, 95 %.
_QUANTILE = 0.975
# Parts of a series whose means give its interval, because neighbouring values are alike.
_BATCHES = 10


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    value: float
    interval: Interval

    def inverse(self, factor: float = 1.0) -> Estimate:
        """Returns `factor` divided by the value: a bandwidth of a time for each byte.

        Raises:
            ValueError: the interval reaches 0, so the inverse has no bound.
        """
        if self.interval.low <= 0:
            raise ValueError("the time does not grow with the size")
        return Estimate(factor / self.value, Interval(factor / self.interval.high, factor / self.interval.low))  # fmt: skip

    def less(self, amount: float) -> Estimate:
        """Returns the estimate without an amount that is known."""
        return Estimate(self.value - amount, Interval(self.interval.low - amount, self.interval.high - amount))  # fmt: skip

    def wider(self, half: float) -> Estimate:
        """Returns the estimate with an interval that also holds an error of another value that it depends on."""
        return Estimate(self.value, Interval(self.interval.low - half, self.interval.high + half))

    def at_least(self, least: float) -> Estimate:
        """Returns the estimate with all values below `least` raised to it: a cost is not below 0."""
        low, high = max(least, self.interval.low), max(least, self.interval.high)
        return Estimate(max(least, self.value), Interval(low, high))


def mean(values: Sequence[float]) -> Estimate:
    """Returns the mean of two or more values."""
    count = len(values)
    value = math.fsum(values) / count
    variance = math.fsum((one - value) ** 2 for one in values) / (count - 1)
    half = student_quantile(_QUANTILE, count - 1) * math.sqrt(variance / count)
    return Estimate(value, Interval(value - half, value + half))


def mean_of_series(values: Sequence[float]) -> Estimate:
    """Returns the mean of values in the order of their times, 20 or more.

    Values that follow each other are alike: a device is slow for some time, and then fast. So the interval is that of the means of ten
    equal parts of the series.
    """
    size = len(values) // _BATCHES
    used = values[len(values) - size * _BATCHES :]
    parts = [math.fsum(used[at : at + size]) / size for at in range(0, len(used), size)]
    return mean(parts)


def line(points: Sequence[tuple[float, float]]) -> tuple[Estimate, Estimate]:
    """Returns the intercept and the slope of the line through three or more points, by least squares.

    Raises:
        ValueError: there are too few points, or all are at one place.
    """
    count = len(points)
    places = [x for x, _ in points]
    centre = math.fsum(places) / max(count, 1)
    spread = math.fsum((x - centre) ** 2 for x in places)
    if count < 3 or not spread:
        raise ValueError("a line needs three points at two sizes or more")
    level = math.fsum(y for _, y in points) / count
    slope = math.fsum((x - centre) * (y - level) for x, y in points) / spread
    start = level - slope * centre
    rest = math.fsum((y - start - slope * x) ** 2 for x, y in points) / (count - 2)
    quantile = student_quantile(_QUANTILE, count - 2)
    half = quantile * math.sqrt(rest / spread)
    half_start = quantile * math.sqrt(rest * (1 / count + centre * centre / spread))
    return (
        Estimate(start, Interval(start - half_start, start + half_start)),
        Estimate(slope, Interval(slope - half, slope + half)),
    )
