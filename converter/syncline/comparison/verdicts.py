"""Judges rows: the change, its interval, the p-values and the verdict of each."""

from __future__ import annotations

import math

from . import statistics
from .comparison import CANT_TELL, Method, Row
from .metrics import KINDS, Tolerance, default_tolerance
from .rules import Policy
from .statistics import Interval, Permutations

__all__ = ["coincidence", "judge", "judge_all"]

# The share of the chance of a false alarm that rows outside the gate get.
_OTHER_SHARE = 0.2
# Units of figures that may be the same in all runs. Those of time never are.
_COUNTED = ("count", "bytes")
# A small count may be the same in a few runs by chance, such as that of failed syncs.
_LEAST_RUNS, _LEAST_COUNT = 3, 30
# Tolerates rounding when a p-value is compared with alpha.
_ROUNDING = 1 + 1e-9


def judge_all(
    rows: list[Row], units: tuple[int, int], policy: Policy, seed: int, *, blocks: bool
) -> Method:
    """Sets the interval, the p-values and the verdict of every row.

    Args:
        units: number of runs or blocks of base and of new.
        blocks: the units are blocks.
    """
    alpha = 1 - policy.confidence
    confidences = [row.criteria.confidence for row in rows if row.criteria.worse != "none"]
    strictest = min([alpha * _OTHER_SHARE, *(1 - confidence for confidence in confidences)])
    permutations = Permutations(*units, seed, strictest)
    least = 1 / len(permutations)
    gate = [row for row in rows if row.gate]
    others = [
        row
        for row in rows
        if not row.gate and row.criteria.worse != "none" and not (blocks and row.kind in KINDS)
    ]
    gate_alpha = other_alpha = alpha
    # Rows that cannot fail a build do not share the chance of a false alarm with the gate.
    if gate and others and not policy.has_listed_gate:
        # Depends only on the numbers of runs and rows, so that the data cannot choose.
        can_split = least <= alpha * _OTHER_SHARE * _ROUNDING
        gate_alpha, other_alpha = (
            (alpha * (1 - _OTHER_SHARE), alpha * _OTHER_SHARE) if can_split else (alpha, 0.0)
        )
    for family, part in ((gate, gate_alpha), (others, other_alpha)):
        _set_p_values(family, permutations)
        for row in family:
            if not blocks:
                _trust_constants(row)
            _set_change(row)
            if statistics.least_p(*units) <= min(part, 1 - row.criteria.confidence) * _ROUNDING:
                row.visible = _visible(row)
            judge(row, part, units, blocks=blocks)
    for row in rows:
        if policy.has_listed_gate and not row.gate and row.verdict == "regression":
            row.verdict = "notable"
        if row.criteria.worse == "none":
            _set_change(row)
        elif row.verdict == "-":
            _set_change(row)
            row.verdict, row.reason = CANT_TELL, "one run of each side: names may differ by chance"
    return Method(
        units="blocks" if blocks else "runs",
        base_units=units[0],
        new_units=units[1],
        confidence=policy.confidence,
        seed=seed,
        permutations=len(permutations),
        exhaustive=permutations.exhaustive,
        gate_alpha=gate_alpha,
        other_alpha=other_alpha,
        gate_rows=len(gate),
        other_rows=len(others),
    )


def _set_p_values(family: list[Row], permutations: Permutations) -> None:
    entries = []
    for row in family:
        if len(row.base_values) == permutations.base and len(row.new_values) == permutations.new:
            signs = {"higher": (1,), "lower": (-1,), "both": (1, -1)}[row.criteria.worse]
            entries += [(row, sign) for sign in signs]
    if permutations.base < 2 or permutations.new < 2:
        return
    found = statistics.adjusted(
        [(row.base_values, row.new_values, sign) for row, sign in entries], permutations
    )
    for (row, _), one in zip(entries, found, strict=True):
        row.worse_p = one.up if row.worse_p is None else min(row.worse_p, one.up)
        # If both directions are worse, no change is an improvement.
        row.better_p = 1.0 if row.criteria.worse == "both" else one.down


def _trust_constants(row: Row) -> None:
    """Gives a count that is the same in all runs of a side, and another one in all runs of the other, the p-value of that coincidence.

    A rank test of three runs of each side cannot say more than 1 in 20, although a program that makes exactly 150 syncs a run
    and then exactly 180 does not do so by chance. If a run had one of the two numbers with any probability p, all runs would
    agree with p^m (1 - p)^n, which is largest at p = m / (m + n): 1 in 64 for three runs of each side.
    """
    sides = row.base_values, row.new_values
    known = [[value for value in values if value is not None] for values in sides]
    if (
        not row.gate
        or row.unit not in _COUNTED
        or any(len(values) < _LEAST_RUNS or len({*values}) != 1 for values in known)
        or known[0][0] == known[1][0]
        or max(known[0][0], known[1][0]) < _LEAST_COUNT
    ):
        return
    m, n = map(len, known)
    p = coincidence(m, n)
    is_up = known[1][0] > known[0][0]
    if row.worse_p is not None and is_up != (row.criteria.worse == "lower"):
        row.worse_p = min(row.worse_p, p)
    elif row.better_p is not None:
        row.better_p = min(row.better_p, p)


def coincidence(m: int, n: int) -> float:
    """Returns the largest chance by which m and n runs agree on two values."""
    return float((m / (m + n)) ** m * (n / (m + n)) ** n)


def _set_change(row: Row) -> None:
    """Sets the change and its interval: a ratio, or a difference if the tolerance is an amount or the base is 0."""
    base, new = row.base, row.new
    assert base is not None
    assert new is not None
    row.relative = row.criteria.tolerance.relative and base > 0
    row.change = _change(row, base, new)
    confidence = row.criteria.confidence
    if row.relative:
        ratio = statistics.ratio_interval(row.base_values, row.new_values, confidence, row.centres)
        low = ratio.low - 1
        if low > -math.inf and min(v for v in row.new_values if v is not None) >= 0:
            # Values that are never negative cannot fall by more than 100 %.
            low = max(low, -1.0)
        row.interval = Interval(low, ratio.high - 1)
        return
    row.interval = statistics.difference_interval(
        row.base_values, row.new_values, confidence, row.centres
    )
    if row.centres is not None and row.centres != (base, new):
        # Scales a block's part of a sum up to the whole sum.
        scale = len(row.base_values)
        row.interval = Interval(row.interval.low * scale, row.interval.high * scale)


def _visible(row: Row) -> float | None:
    """Returns the smallest change for the worse that the runs would probably have shown."""
    sign = -1 if row.criteria.worse == "lower" else 1
    tolerance, confidence = _tolerance(row), row.criteria.confidence
    if row.relative:
        ratio = statistics.visible_ratio(
            row.base_values, row.new_values, confidence, 1 + sign * tolerance, row.centres
        )
        return None if ratio is None else ratio - 1
    more = statistics.visible_difference(row.base_values, row.new_values, confidence, row.centres)
    if more is None:
        return None
    if row.centres is not None and row.centres != (row.base, row.new):
        more *= len(row.base_values)
    return sign * (tolerance + more)


def judge(row: Row, alpha: float, units: tuple[int, int], *, blocks: bool) -> None:
    """Sets the verdict of a row whose change, interval and p-values are set."""
    tolerance = _tolerance(row)
    both = row.criteria.worse == "both"
    low, high = _worse_is_up(row, row.interval.low, row.interval.high)
    row.may_be_worse = high > tolerance or (both and low < -tolerance)
    alpha = min(alpha, 1 - row.criteria.confidence) * _ROUNDING
    assert row.change is not None
    change = {"lower": -row.change, "both": abs(row.change)}.get(row.criteria.worse, row.change)
    row.is_suspect = row.may_be_worse and (
        change > tolerance or math.isinf(high) or statistics.least_p(*units) > alpha
    )
    if math.isinf(low) and math.isinf(high):
        row.verdict, row.reason = CANT_TELL, _reason_unbounded(row, units, blocks=blocks)
    elif -tolerance <= low and high <= tolerance:
        row.verdict, row.reason = "no change", _reason_tolerated(row, low, high)
    elif low > tolerance or (both and high < -tolerance):
        if row.worse_p is not None and row.worse_p <= alpha:
            row.verdict = "regression"
        else:
            row.verdict, row.reason = CANT_TELL, _reason_uncertain(row, alpha, units, "worse")
    elif high < -tolerance:
        if row.better_p is not None and row.better_p <= alpha:
            row.verdict = "improvement"
        else:
            row.verdict, row.reason = CANT_TELL, _reason_uncertain(row, alpha, units, "better")
    else:
        row.verdict = CANT_TELL
        row.reason = (
            "not worse, possibly better" if not row.may_be_worse else "the interval is too wide"
        )
    _check_possible(row, tolerance)


def _check_possible(row: Row, tolerance: float) -> None:
    """Withdraws a verdict that depends on which functions have names on which side."""
    if row.possible is None:
        return
    base, new = row.possible
    low, high = _worse_is_up(row, _change(row, base[1], new[0]), _change(row, base[0], new[1]))
    both = row.criteria.worse == "both"
    holds = {
        "regression": low > tolerance or (both and high < -tolerance),
        "improvement": high < -tolerance,
        "no change": -tolerance <= low and high <= tolerance,
    }
    if holds.get(row.verdict, False):
        return
    if row.verdict in holds:
        sides = zip(("base", "new"), row.ambiguous_syncs, strict=True)
        more = " and ".join(f"{count:,} more syncs in {side}" for side, count in sides if count)
        row.reason = f"functions lack names: {more} may have this stack"
        row.verdict, row.visible = CANT_TELL, None
    if high > tolerance or (both and low < -tolerance):
        row.may_be_worse = row.is_suspect = True


def _worse_is_up(row: Row, low: float, high: float) -> tuple[float, float]:
    """Mirrors an interval if lower values are worse."""
    return (-high, -low) if row.criteria.worse == "lower" else (low, high)


def _change(row: Row, base: float, new: float) -> float:
    """Returns the change on the scale of the row."""
    if not row.relative:
        return new - base
    if base:
        return new / base - 1
    return math.inf if new else 0.0


def _tolerance(row: Row) -> float:
    """Returns the tolerance on the scale of the row's change."""
    return _scaled(row.criteria.tolerance, row)


def _scaled(tolerance: Tolerance, row: Row) -> float:
    if row.relative or not tolerance.relative:
        return tolerance.amount
    return tolerance.amount * abs(row.base or 0)


def _reason_tolerated(row: Row, low: float, high: float) -> str:
    """Returns why a change does not count, if it would count without the policy."""
    tolerance, usual = row.criteria.tolerance, default_tolerance(row.metric)
    if row.relative and not usual.relative:
        return ""
    limit = _scaled(usual, row)
    if -limit <= high and low <= limit:
        return ""
    of = f"{100 * tolerance.amount:g} %" if tolerance.relative else "the policy"
    return f"within the tolerance of {of}"


def _reason_unbounded(row: Row, units: tuple[int, int], *, blocks: bool) -> str:
    if blocks:
        return "one run of each side, and no blocks of time to judge by"
    if min(units) < 2:
        return "too few runs: one run does not show how much runs vary"
    known = [sum(v is not None for v in values) for values in (row.base_values, row.new_values)]
    if min(known) < 2:
        return f"too few runs: known in {known[0]} runs of base and {known[1]} of new"
    return "the interval is too wide"


def _reason_uncertain(row: Row, alpha: float, units: tuple[int, int], direction: str) -> str:
    if statistics.least_p(*units) > alpha:
        if alpha <= 0:
            return "too few runs for rows outside the gate"
        needed = statistics.runs_needed(alpha)
        return f"too few runs: {needed} of each side are needed"
    p = row.worse_p if direction == "worse" else row.better_p
    return f"looks {direction}, but with so many rows one may do so by chance" + (
        f" (p = {p:.3f})" if p is not None else ""
    )
