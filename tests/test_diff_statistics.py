"""The statistics of a diff: checked against published tables, against their definitions, and by simulation."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from syncline.comparison.statistics import (
    Permutations,
    adjusted,
    autocorrelation,
    difference_interval,
    least_p,
    mean,
    ratio_interval,
    runs_needed,
    student_quantile,
    visible_difference,
    visible_ratio,
)


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    # From a textbook table of Student's t. The last value is that of the normal distribution.
    [
        (0.95, 1, 6.314),
        (0.95, 4, 2.132),
        (0.975, 4, 2.776),
        (0.975, 10, 2.228),
        (0.995, 2, 9.925),
        (0.9995, 20, 3.850),
        (0.95, 100, 1.660),
        (0.975, math.inf, 1.960),
    ],
)
def test_quantiles_match_the_table_of_students_t(
    probability: float, freedom: float, value: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, abs=6e-4)


def test_means_ignore_unknown_values() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None


def test_the_interval_of_a_ratio_satisfies_fiellers_equation() -> None:
    # Fieller: at a bound r, (mean(new) - r mean(base)) / its standard error is Student's quantile.
    base, new = [98.0, 101.0, 103.0, 99.0, 97.0], [110.0, 113.0, 108.0, 118.0]
    interval = ratio_interval(base, new, 0.95)
    x, y = sum(base) / 5, sum(new) / 4
    a = sum((v - x) ** 2 for v in base) / 4 / 5
    b = sum((v - y) ** 2 for v in new) / 3 / 4
    at = a * (y / x) ** 2
    freedom = (at + b) ** 2 / (at**2 / 4 + b**2 / 3)
    t = student_quantile(0.95, freedom)
    for r in (interval.low, interval.high):
        assert abs(y - r * x) / math.sqrt(b + r * r * a) == pytest.approx(t)
    assert interval.low < y / x < interval.high


def test_a_visible_change_is_where_the_bound_would_pass_the_limit() -> None:
    base, new = [98.0, 101.0, 103.0, 99.0, 97.0], [97.0, 100.0, 96.0, 103.0]
    x, y = sum(base) / 5, sum(new) / 4
    a = sum((v - x) ** 2 for v in base) / 4 / 5
    b = sum((v - y) ** 2 for v in new) / 3 / 4 * (x / y) ** 2
    freedom = (a + b) ** 2 / (a**2 / 4 + b**2 / 3)
    t = student_quantile(0.95, freedom) + student_quantile(0.9, freedom)
    for limit in (1.05, 0.95):
        f = visible_ratio(base, new, 0.95, limit)
        assert f is not None
        # The definition: so many standard errors beyond the limit, on its far side.
        assert (f - limit) * x / math.sqrt(f * f * b + limit**2 * a) == pytest.approx(math.copysign(t, limit - 1))  # fmt: skip
        assert (f > limit) == (limit > 1)
    # Runs without variation show what is beyond the limit at all, and wild ones nothing.
    assert visible_ratio([5.0] * 3, [5.0] * 3, 0.95, 1.05) == 1.05
    assert visible_ratio([1.0, 100.0, 3.0], [1.0, 90.0, 2.0], 0.95, 1.05) is None
    assert visible_ratio([1.0], [1.0, 2.0], 0.95, 1.05) is None
    assert visible_difference([1.0, 1.0], [1.0, 1.0], 0.95) == 0


def test_intervals_without_variation_are_exact_and_unknown_ones_infinite() -> None:
    exact = ratio_interval([100.0] * 3, [200.0] * 3, 0.95)
    assert (exact.low, exact.high) == (2, 2)
    # The mean of 0.1 is not exact in binary, but equal values must have no spread.
    tenth = ratio_interval([0.1] * 7, [0.1] * 7, 0.95)
    assert (tenth.low, tenth.high) == (1, 1)
    for base, new in (([1.0], [1.0, 2.0]), ([1.0, None], [1.0, 2.0]), ([0.0, 0.0], [1.0, 2.0])):
        unknown = ratio_interval(base, new, 0.95)
        assert (unknown.low, unknown.high) == (-math.inf, math.inf)
    # With a base that may be 0, the ratio has no upper bound.
    assert ratio_interval([0.0, 0.0, 9.0], [5.0, 6.0, 7.0], 0.95).high == math.inf
    assert difference_interval([0.0, 0.0], [3.0, 3.0], 0.95).low == 3


def test_bounds_hold_with_their_confidence() -> None:
    dice = random.Random(3)
    rounds, missed_low, missed_high = 2000, 0, 0
    for _ in range(rounds):
        base = [dice.lognormvariate(0, 0.1) for _ in range(5)]
        new = [1.3 * dice.lognormvariate(0, 0.2) for _ in range(4)]
        truth = 1.3 * math.exp((0.2**2 - 0.1**2) / 2)
        interval = ratio_interval(base, new, 0.95)
        missed_low += interval.low > truth
        missed_high += interval.high < truth
    # 5 % are expected for each bound. 0.02 is four standard errors.
    assert missed_low / rounds < 0.07
    assert missed_high / rounds < 0.07


def test_sectioning_widens_the_interval_of_biased_parts() -> None:
    parts = ([9.0, 10.0, 11.0, 10.0], [10.0, 11.0, 9.0, 10.0])
    fair = ratio_interval(*parts, 0.95, (10.0, 10.0))
    biased = ratio_interval(*parts, 0.95, (20.0, 20.0))
    assert biased.high - biased.low > 2 * (fair.high - fair.low)


def test_autocorrelation_of_neighbouring_values() -> None:
    assert autocorrelation([1.0, 2.0] * 10) < -0.9
    assert autocorrelation([float(n) for n in range(20)]) > 0.8
    assert autocorrelation([5.0] * 9) == 0
    assert autocorrelation([None, 1.0]) == 0


def test_the_number_of_runs_needed_for_a_confidence() -> None:
    # 3 of 6 can be chosen in 20 ways, 4 of 8 in 70.
    assert least_p(3, 3) == 1 / 20
    assert runs_needed(0.05) == 3
    assert runs_needed(0.04) == 4
    assert runs_needed(0.01) == 5


def test_the_first_permutation_is_the_observed_one() -> None:
    few = Permutations(3, 2, seed=1)
    assert few.exhaustive
    assert few.new_units[0] == (3, 4)
    assert sorted(few.new_units) == sorted(itertools.combinations(range(5), 2))
    many = Permutations(10, 10, seed=1)
    assert not many.exhaustive
    assert many.new_units[0] == tuple(range(10, 20))
    assert many.new_units == Permutations(10, 10, seed=1).new_units
    assert many.new_units != Permutations(10, 10, seed=2).new_units


def test_p_values_of_small_samples() -> None:
    permutations = Permutations(3, 3, seed=1)
    # The first row differs more than in any other of the 20 permutations. The second has the same
    # noise on both sides. The third is constant.
    rows = [
        ([1.0, 2.0, 3.0], [10.0, 11.0, 12.0], 1),
        ([5.0, 6.0, 7.0], [7.0, 5.0, 6.0], 1),
        ([4.0, 4.0, 4.0], [4.0, 4.0, 4.0], 1),
    ]
    changed, noise, constant = adjusted(rows, permutations)
    assert changed.up == 1 / 20
    assert changed.down == 1
    assert noise.up > 0.5
    assert constant.up == constant.down == 1
    # With direction -1, higher is better, so the rise counts as `down`.
    assert adjusted([(*rows[0][:2], -1)], permutations)[0].down == 1 / 20
    # A second row that differs in the same runs does not raise the p-value.
    both = adjusted([rows[0], ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 1)], permutations)
    assert [one.up for one in both] == [1 / 20, 1 / 20]


def awkward_rows(dice: random.Random, units: int) -> list[list[float | None]]:
    """Returns rows like the figures of real runs: heavy tails, ties, zeros, gaps and correlated rows."""
    one = [dice.lognormvariate(0, 1.5) for _ in range(units)]
    return [
        one,
        [value * 1.01 + 1e-3 * dice.random() for value in one],
        [-value for value in one],
        [float(dice.randrange(3)) for _ in range(units)],
        [0.0] * (units - 1) + [7.0],
        [None if dice.random() < 0.3 else dice.random() for _ in range(units)],
        [100.0] * units,
        [dice.gauss(0, 1) for _ in range(units)],
    ]


@pytest.mark.parametrize("sizes", [(3, 3), (4, 4), (3, 5), (2, 5)])
@pytest.mark.parametrize("seed", range(5))
def test_equal_sides_raise_false_alarms_in_at_most_alpha(sizes: tuple[int, int], seed: int) -> None:
    # The limit holds exactly, not only on average: divide the same runs into two sides in every
    # possible way. At most 5 % of the ways may have a row with p <= 5 %, whatever the figures are.
    base, new = sizes
    units = range(base + new)
    rows = awkward_rows(random.Random(seed), base + new)
    permutations = Permutations(base, new, seed=1)
    assert permutations.exhaustive
    alarms = ways = 0
    for chosen in itertools.combinations(units, new):
        rest = [unit for unit in units if unit not in chosen]
        sides = [([row[u] for u in rest], [row[u] for u in chosen], 1) for row in rows]
        found = adjusted(sides, permutations)
        alarms += min(one.up for one in found) <= 0.05
        ways += 1
    assert alarms <= 0.05 * ways


def test_sampled_permutations_of_equal_sides_keep_alpha() -> None:
    dice = random.Random(11)
    permutations = Permutations(8, 8, seed=1)
    assert not permutations.exhaustive
    permutations.new_units = permutations.new_units[:500]
    rounds, alarms = 300, 0
    for _ in range(rounds):
        rows = awkward_rows(dice, 16)
        found = adjusted([(row[:8], row[8:], 1) for row in rows], permutations)
        alarms += min(one.up for one in found) <= 0.05
    # 15 are expected. More than 27 happen once in 700 such tests.
    assert alarms <= 27


def test_step_down_adjustment_finds_a_weaker_second_change() -> None:
    # A single-step adjustment would compare the second row with the first. Stepping down compares it with noise.
    dice = random.Random(2)
    noise = [([dice.gauss(0, 1) for _ in range(5)], [dice.gauss(0, 1) for _ in range(5)], 1)]
    first = ([1.0, 1.1, 1.2, 1.1, 1.0], [9.0, 9.1, 9.2, 9.1, 9.0], 1)
    second = ([2.0, 2.1, 2.2, 2.1, 2.0], [4.0, 4.3, 4.2, 4.1, 4.5], 1)
    found = adjusted([first, second, *noise], Permutations(5, 5, seed=1))
    assert found[0].up == 1 / 252
    assert found[0].up <= found[1].up <= 2 / 252
    assert found[2].up > found[1].up
