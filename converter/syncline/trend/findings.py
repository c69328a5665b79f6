"""What happened in a series: steps, episodes and drifts, and whether its last runs differ from those before."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from syncline.comparison.comparison import CANT_TELL, Row
from syncline.comparison.statistics import Interval
from syncline.comparison.verdicts import coincidence, judge
from syncline.student import student_below, student_quantile

from . import levels
from .levels import Costs, Fit, Part

__all__ = ["LEAST_RUNS", "Finding", "Kind", "Model", "find", "judged", "last_runs"]

Kind = Literal["step", "episode", "drift", "last"]

# Fewer runs do not show how much runs vary.
LEAST_RUNS = 8
# A level has returned if it differs from that before by less than this share of the jump.
_RETURNED = 1 / 3
# A count below this varies as chance events do, whatever the few runs show.
_SMALL_COUNT = 30
# "Would have seen": in this share of cases.
_POWER = 0.8
# The units of judge(), which only matter where permutations decide.
_MANY = (1000, 1000)


@dataclass(frozen=True)
class Finding:
    """A step, an episode, a drift, or the answer on the last runs."""

    kind: Kind
    # Index of its first run, and of the run after its last one. A step lasts until the next finding.
    start: int
    end: int
    # Number of runs that the levels before and after are of.
    base_runs: int
    new_runs: int
    # With the levels before and after, the change, its interval and the verdict.
    row: Row
    # The chance of such a finding where nothing changed.
    p: float
    # The smallest rise that these runs would have shown in 8 of 10 cases; None if not even a doubling is sure.
    visible: float | None = None


class Model:
    """The fit of a series, and the noise about it on the scale on which levels are compared."""

    def __init__(self, values: Sequence[float], unit: str, alpha: float) -> None:
        self.raw = values
        is_small = unit == "count" and min(values) >= 0 and max(values) < _SMALL_COUNT
        self.logs = min(values) > 0 and not is_small
        scaled = [*map(math.log, values)] if self.logs else [*values]
        # Of roots, the variance of a count of chance events is 1/4.
        roots = [math.sqrt(value + 3 / 8) for value in values] if is_small else scaled
        self.fitted = levels.without_outliers(roots)
        self.values = levels.without_outliers(scaled)
        self._least = 0.25 if is_small else 0.0
        self.fit: Fit = levels.fit(self.fitted, alpha, self._least)
        self.costs = Costs(self.values, self.fit.correlation)
        self._fit_costs = Costs(self.fitted, self.fit.correlation)
        used = sum(1 + part.is_drift for part in self.fit.parts) + (self.fit.correlation > 0)
        self.freedom = max(1, len(values) - used)
        self.squares = sum(_squares(self.costs, part) for part in self.fit.parts)
        self.least_variance = max(1.0, sum(values) / len(values)) if is_small else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of the noise that a run does not share with the run before."""
        return math.sqrt(max(self.squares / self.freedom, self.least_variance))

    def level(self, parts: Sequence[Part]) -> tuple[float, float]:
        """Returns the common level of parts, and its weight."""
        sums = [self.costs.sums(part.start, part.end) for part in parts]
        weight = math.fsum(one[0] for one in sums)
        equal = {value for part in parts for value in self.values[part.start : part.end]}
        return (equal.pop() if len(equal) == 1 else math.fsum(one[1] for one in sums) / weight), weight  # fmt: skip

    def gain_of(self, old: Sequence[Part], new: Sequence[Part]) -> float:
        """Returns how much less likely the series is with `new` parts in place of the `old` ones."""
        others = [part for part in self.fit.parts if part not in old]
        squares = sum(_squares(self._fit_costs, part) for part in (*others, *new))
        misfit = levels.misfit_of(
            self.fitted, squares, len(others) + len(new), self.fit.correlation, self._least
        )
        return misfit - self.fit.misfit

    def unscaled(self, value: float) -> float:
        """Returns a level in the metric's unit."""
        # exp(log(150)) is a little less than 150.
        return float(f"{math.exp(value):.12g}") if self.logs else value

    def is_constant(self, parts: Sequence[Part]) -> bool:
        """Returns whether all runs of parts have one value."""
        return len({value for part in parts for value in self.raw[part.start : part.end]}) == 1


def _squares(costs: Costs, part: Part) -> float:
    return costs.slope(part.start, part.end)[0] if part.is_drift else costs.level(part.start, part.end)  # fmt: skip


def find(values: Sequence[float], unit: str, criteria_row: Row, alpha: float) -> list[Finding]:
    """Returns what happened in a series, in the order of the runs.

    Args:
        criteria_row: a row of the metric, whose criteria say what matters.
    """
    model = Model(values, unit, alpha)
    parts = model.fit.parts
    found: list[Finding] = []
    # The parts whose common level the next one is compared with.
    before: list[Part] = []
    index = 0
    while index < len(parts):
        part = parts[index]
        if part.is_drift:
            if before:
                found += _jump(model, criteria_row, before, part, ends_at=part.end)
            found.append(_drift(model, criteria_row, part))
            before = [part]
        elif not before:
            before = [part]
        elif before[-1].is_drift:
            found += _jump(model, criteria_row, before, part, ends_at=part.end)
            before = [part]
        elif index + 1 < len(parts) and _returns(model, before, part, parts[index + 1]):
            after = parts[index + 1]
            found.append(_episode(model, criteria_row, before, part, after))
            before = [*before, after]
            index += 1
        else:
            found.append(_step(model, criteria_row, before, part))
            before = [part]
        index += 1
    return found


def _returns(model: Model, before: list[Part], part: Part, after: Part) -> bool:
    """Returns whether the level after a part is that before it."""
    if after.is_drift or part.end - part.start > sum(one.end - one.start for one in (*before, after)):  # fmt: skip
        return False
    old, level, new = (model.level(one)[0] for one in (before, [part], [after]))
    return (level - old) * (level - new) > 0 and abs(new - old) < _RETURNED * abs(level - old)


def _count(parts: Sequence[Part]) -> int:
    return sum(part.end - part.start for part in parts)


def _step(model: Model, like: Row, before: list[Part], part: Part) -> Finding:
    # Removing the step joins the part with that before it, not with an episode between.
    joined = Part(before[-1].start, part.end, is_drift=False) if before[-1].end == part.start else None  # fmt: skip
    if joined is None:
        near = next(one for one in model.fit.parts if one.end == part.start)
        joined = Part(near.start, part.end, is_drift=False)
        gain = model.gain_of([near, part], [joined])
    else:
        gain = model.gain_of([before[-1], part], [joined])
    return _compared(model, like, "step", before, [part], (part.start, part.end), gain)


def _episode(model: Model, like: Row, before: list[Part], part: Part, after: Part) -> Finding:
    near = next(one for one in model.fit.parts if one.end == part.start)
    gain = model.gain_of([near, part, after], [Part(near.start, after.end, is_drift=False)]) / 2
    return _compared(model, like, "episode", [*before, after], [part], (part.start, part.end), gain)


def _compared(
    model: Model,
    like: Row,
    kind: Kind,
    base: Sequence[Part],
    new: Sequence[Part],
    span: tuple[int, int],
    gain: float,
) -> Finding:
    old, old_weight = model.level(base)
    level, weight = model.level(new)
    row = _row(model, like, old, level, model.spread * math.sqrt(1 / old_weight + 1 / weight))
    p = levels.chance(gain)
    if model.is_constant(base) and model.is_constant(new):
        p = max(p, coincidence(_count(base), _count(new)))
    return Finding(kind, *span, _count(base), _count(new), row, p)


def _line(model: Model, part: Part) -> tuple[float, float, float]:
    """Returns the ends of the line of a drift, and the standard error of its rise."""
    _, slope, own = model.costs.slope(part.start, part.end)
    r, count = model.fit.correlation, part.end - part.start - 1
    weight, total, _ = model.costs.sums(part.start, part.end)
    ramp = (1 - r) * ((1 - r) * count * (count + 1) / 2 + r * count)
    first = (total - slope * ramp) / weight
    return first, first + slope * count, model.spread * count / math.sqrt(own)


def _drift(model: Model, like: Row, part: Part) -> Finding:
    first, last, error = _line(model, part)
    gain = model.gain_of([part], [replace(part, is_drift=False)])
    row = _row(model, like, first, last, error)
    runs = part.end - part.start
    return Finding("drift", part.start, part.end, runs, runs, row, levels.chance(gain))


def _jump(model: Model, like: Row, before: list[Part], part: Part, ends_at: int) -> list[Finding]:
    """Returns the step between a drift and its neighbour, if it is one of its own."""
    ends = []
    for one, end in ((before[-1], 1), (part, 0)):
        if one.is_drift:
            line = _line(model, one)
            # The end of a line is about twice as uncertain as a level of as many runs.
            weight = model.costs.sums(one.start, one.end)[0]
            ends.append((line[end], 2 * model.spread / math.sqrt(weight)))
        else:
            level, weight = model.level(before if end else [part])
            ends.append((level, model.spread / math.sqrt(weight)))
    error = math.hypot(ends[0][1], ends[1][1])
    jump = ends[1][0] - ends[0][0]
    p = levels.chance((jump / error) ** 2) if error else float(not jump)
    if p > 0.05:
        return []
    row = _row(model, like, ends[0][0], ends[1][0], error)
    return [Finding("step", part.start, ends_at, _count(before), _count([part]), row, p)]


def _row(model: Model, like: Row, old: float, new: float, error: float) -> Row:
    """Returns a row with the levels, the change and its interval."""
    base, level = model.unscaled(old), model.unscaled(new)
    row = replace(like, base=base, new=level)
    row.relative = row.criteria.tolerance.relative and base > 0
    margin: float = student_quantile(row.criteria.confidence, model.freedom) * error
    low, high = new - old - margin, new - old + margin
    if model.logs:
        low, high = (base * (math.exp(min(one, 700)) - 1) for one in (low, high))
    if row.relative:
        low, high = low / base, high / base
    row.change = level / base - 1 if row.relative else level - base
    row.interval = Interval(low, high)
    return row


def judged(found: Finding, p: float, alpha: float, series: int) -> Finding:
    """Returns a finding with its verdict.

    Args:
        p: its chance, adjusted for the number of series.
        series: how many there are.
    """
    row = replace(found.row, verdict="-", reason="")
    if row.criteria.worse != "none":
        is_up = (row.change or 0) > 0
        if row.criteria.worse == "both":
            row.worse_p, row.better_p = p, 1.0
        else:
            row.worse_p, row.better_p = (p, 1.0) if is_up != (row.criteria.worse == "lower") else (1.0, p)  # fmt: skip
        judge(row, alpha, _MANY, blocks=False)
        if row.verdict == CANT_TELL and p > alpha and row.reason.startswith("looks"):
            row.reason = f"one of {series} series may look so by chance (p = {p:.3f})"
    return replace(found, row=row, p=p)


def last_runs(
    values: Sequence[float], unit: str, like: Row, count: int, alpha: float
) -> Finding | str:
    """Compares the last `count` runs with the level of the runs before. Returns why not if it cannot.

    The question names the runs, so chance has one place instead of all, and fewer runs suffice than for a step anywhere.
    """
    if len(values) - count < LEAST_RUNS:
        return f"{len(values)} runs; {LEAST_RUNS} before the last {count} are needed"
    history = Model(values[:-count], unit, alpha)
    whole = copy.copy(history)
    base = history.fit.parts[-1]
    if base.is_drift:
        return f"the {base.end - base.start} runs before the last {count} drift"
    # The scale is that of the whole series, and so may be that of its new values.
    logs = history.logs and min(values) > 0
    if not logs and history.logs:
        return "a run is 0, and those before are not"
    new = [math.log(value) if logs else value for value in values[-count:]]
    costs = Costs(new, history.fit.correlation)
    weight, total, _ = costs.sums(0, count)
    level = new[0] if len({*new}) == 1 else total / weight
    whole.squares = history.squares + (costs.level(0, count) if count > 1 else 0.0)
    whole.freedom = history.freedom + count - 1
    old, old_weight = history.level([base])
    error = whole.spread * math.sqrt(1 / old_weight + 1 / weight)
    row = _row(whole, like, old, level, error)
    if error:
        p = max(1e-6, student_below(-abs(level - old) / error, whole.freedom))
    else:
        p = coincidence(base.end - base.start, count) if level != old else 1.0
    found = Finding("last", len(values) - count, len(values), base.end - base.start, count, row, p)
    return replace(found, visible=_visible(whole, row, error))


def _visible(model: Model, row: Row, error: float) -> float | None:
    """Returns the smallest change for the worse that the runs would have shown, as a share or an amount."""
    both = (student_quantile(one, model.freedom) for one in (row.criteria.confidence, _POWER))
    margin: float = sum(both) * error
    tolerance: float = row.criteria.tolerance.amount
    base = row.base or 0.0
    if not row.relative:
        return tolerance + (base * (math.exp(margin) - 1) if model.logs else margin)
    if not model.logs:
        return tolerance + margin / base
    # A rise r is seen if (1 + r) exp(-margin) > 1 + tolerance.
    return (1 + tolerance) * math.exp(margin) - 1 if margin < 700 else None
