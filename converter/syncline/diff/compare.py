"""Compares two sides: a row for each metric of each thing, and a verdict for each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from syncline import losses
from syncline.frames import Partners, has_nameless

from . import statistics
from .comparability import differences
from .metrics import (
    BLOCK_METRICS,
    BLOCK_SUMS,
    GROUP_METRICS,
    KINDS,
    Bounds,
    Group,
    Tolerance,
    bounds,
    figure,
    grows,
    measure_of,
    summed,
    total,
)
from .policy import Policy, Watch
from .sides import Figure, Query, Run, Side
from .statistics import Arrangements, Interval

__all__ = ["CANT_TELL", "CUT_OFF", "Comparison", "Method", "Moved", "Row", "compare"]

Verdict = Literal["regression", "notable", "improvement", "no change", "can't tell", "-"]
Whole = Literal["regression", "can't tell", "no regression"]
CANT_TELL: Literal["can't tell"] = "can't tell"
CUT_OFF = "a run is cut off: its counts and sums are not known"

# Of each kind, by time and by count; the more are looked at, the less can be said of each.
_GROUPS = 6
_GROUP_REQUESTS = 10
# Of a group; the other figures of GROUP_METRICS follow from these, or are for rules.
_DETAILS = (
    "syncs",
    "empty_share",
    "syscall_latency_avg",
    "writeback_latency_avg",
    "writeback_amount_sum",
)
# Of a scope (an op, a process) that a run does not have, these are 0.
_COUNTED = ("syncs", "sync_time_sum", "sync_wall_time")
# What the rows by file, thread and stack get of the chance of a false alarm.
_DETAIL_PART = 0.2
# Fewer requests in a block make figures of next to nothing.
_BLOCK_REQUESTS = 5
_BLOCKS = (24, 16, 12, 8)
# Metrics by which it is judged whether blocks hang together.
_BLOCK_TESTS = ("syncs", "sync_time_sum", "syscall_latency_avg", "writeback_latency_avg")
# One-sided 1 % of the standard normal: the test is repeated for several metrics and lengths.
_CORRELATED = 2.326
_MOVED_ROWS = 3
_MOVED_GROUPS = 3
# A thing that moved by less of what moved in all explains nothing.
_MOVED_LEAST = 0.02


@dataclass
class Row:
    """One metric of one thing, on both sides."""

    # "" for the whole run, `query`, or file, thread, stack.
    kind: str
    # What of: the scope of the summary, a group, or a rule's pattern.
    name: str
    metric: str
    unit: str
    base: float | None
    new: float | None
    base_values: list[float | None]
    new_values: list[float | None]
    watch: Watch
    # The figures of the whole sides, where the values are those of blocks.
    centres: tuple[float, float] | None = None
    # Of a stack: what base and new may be, if requests of stacks that lack names are its own.
    perhaps: tuple[tuple[float, float], tuple[float, float]] | None = None
    # How many requests these are, of base and of new.
    perhaps_syncs: tuple[int, int] = (0, 0)
    # Of new / base - 1, or of new - base, as `relative` says.
    relative: bool = True
    change: float | None = None
    interval: Interval = statistics.UNKNOWN
    # Adjusted for all rows of its family: that it got worse, that it got better.
    worse_p: float | None = None
    better_p: float | None = None
    verdict: Verdict = "-"
    why: str = ""
    # Whether the interval leaves room for a regression, and whether it looks like one, or nothing
    # could have looked like one.
    open: bool = False
    suspect: bool = False

    @property
    def gate(self) -> bool:
        """Whether the gate watches it."""
        return self.watch.gate


@dataclass(frozen=True)
class Method:
    """How the rows were judged."""

    units: Literal["runs", "blocks"]
    base_units: int
    new_units: int
    confidence: float
    seed: int
    arrangements: int
    exhaustive: bool
    gate_alpha: float
    detail_alpha: float
    gate_rows: int
    detail_rows: int


@dataclass(frozen=True)
class Moved:
    """What moved most for a row that got worse: (kind, name, base, new) in the measure's unit."""

    row: Row
    measure: str
    unit: str
    groups: list[tuple[str, str, float, float]]


@dataclass
class Comparison:
    """All that a diff found."""

    base: Side
    new: Side
    rows: list[Row]
    method: Method
    policy: Policy
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    # Why no row has a verdict; `lost` if it is that too much was lost.
    no_verdict: str | None = None
    lost: bool = False

    @property
    def verdict(self) -> Whole:
        """Of the whole diff: what the exit code says."""
        if self.no_verdict is not None:
            return CANT_TELL
        if any(row.verdict == "regression" for row in self.rows):
            return "regression"
        gate = [row for row in self.rows if row.gate]
        if not gate or self.unsure():
            return CANT_TELL
        return "no regression"

    def unsure(self) -> list[Row]:
        """Rows of the gate for which the whole has no verdict."""
        strict = self.policy.cant_tell == "strict"
        return [
            row
            for row in self.rows
            if row.gate and row.verdict == CANT_TELL and (row.open if strict else row.suspect)
        ]


def compare(
    base: Side,
    new: Side,
    policy: Policy,
    queries: Sequence[Query] = (),
    *,
    seed: int = 1,
    by: Sequence[str] = KINDS,
    max_loss: str | None = None,
) -> Comparison:
    """Compares two sides.

    Raises:
        PolicyError: a rule speaks of nothing that there is.
    """
    blocks = len(base.runs) == len(new.runs) == 1
    notes: list[str] = []
    count = _block_count(base.runs[0], new.runs[0], notes) if blocks else None
    maker = _Rows(base, new, policy, blocks, count)
    rows = [*maker.summary(), *maker.queries(queries), *maker.patterns(), *maker.groups(by)]
    policy.check_used(
        [metric for run in (*base.runs, *new.runs) for metric, _ in run.figures]
        + [row.metric for row in rows]
    )
    units = (count or 1, count or 1) if blocks else (len(base.runs), len(new.runs))
    comparison = Comparison(
        base, new, rows, _judge_all(rows, units, policy, seed, blocks=blocks), policy
    )
    comparison.warnings = [*_warnings(base, new, policy, blocks), *maker.watches_nothing]
    comparison.notes = [*maker.notes(), *notes]
    _refuse_cut_off(comparison)
    _refuse_verdicts(comparison, max_loss)
    comparison.moved = list(_moved(comparison))
    return comparison


# ---------------------------------------------------------------- rows


class _Rows:
    """Makes the rows of both sides, and keeps what had none."""

    def __init__(
        self, base: Side, new: Side, policy: Policy, blocks: bool, count: int | None
    ) -> None:
        self.sides = (base, new)
        self.policy = policy
        self.blocks = blocks
        self.count = count
        # Metrics without a row, by the sides that do not know them.
        self.unknown: dict[str, list[str]] = {}
        self.said: list[str] = []
        # Rules of the gate that have nothing to watch.
        self.watches_nothing: list[str] = []

    def row(
        self,
        kind: str,
        name: str,
        metric: str,
        values: list[list[float | None]],
        unit: str,
        *,
        whole: tuple[float | None, float | None] | None = None,
        gate: bool = False,
    ) -> Iterator[Row]:
        """A row, if both sides know something of it."""
        base, new = whole or (statistics.mean(values[0]), statistics.mean(values[1]))
        if base is None or new is None:
            where = " nor in ".join(
                side.name for side, value in zip(self.sides, (base, new), strict=True) if value is None
            )  # fmt: skip
            watch = self.policy.watch(kind, name, metric, unit, gate=gate)
            if kind in ("", "query") and name in ("all", "") and watch.worse != "none":
                self.unknown.setdefault(where, []).append(metric)
            elif watch.gate:
                self.unknown.setdefault(where, []).append(f"{metric} of {kind} {name}")
            return
        watch = self.policy.watch(kind, name, metric, unit, gate=gate)
        centres = (base, new) if whole else None
        yield Row(kind, name, metric, unit, base, new, values[0], values[1], watch, centres)

    def notes(self) -> list[str]:
        """What has no row, and why."""
        return self.said + [
            f"no row, as not known in {where}: {', '.join(metrics)}"
            for where, metrics in self.unknown.items()
        ]

    def summary(self) -> Iterator[Row]:
        """The metrics of the report `summary`."""
        keys: dict[tuple[str, str], str] = {}
        for side in self.sides:
            for run in side.runs:
                keys |= {key: one.unit for key, one in run.figures.items() if key not in keys}
        for metric, scope in _in_order(keys, [run for side in self.sides for run in side.runs]):
            missing = 0.0 if scope != "all" and metric in _COUNTED else None
            values = [
                [_value(run.figures.get((metric, scope)), missing) for run in side.runs]
                for side in self.sides
            ]
            unit = keys[metric, scope]
            if not self.blocks:
                yield from self.row("", scope, metric, values, unit)
                continue
            whole = (values[0][0], values[1][0])
            parts: list[list[float | None]] = [[], []]
            if self.count and scope == "all" and metric in BLOCK_METRICS:
                parts = [self.block_values(side.runs[0], metric) for side in self.sides]
                if metric in BLOCK_SUMS and None not in whole:
                    # Of equal blocks each has its part of the sum.
                    whole_part = tuple(value / self.count for value in whole if value is not None)
                    for row in self.row("", scope, metric, parts, unit, whole=whole):
                        row.centres = (whole_part[0], whole_part[1])
                        yield row
                    continue
            yield from self.row("", scope, metric, parts, unit, whole=whole)

    def block_values(self, run: Run, metric: str) -> list[float | None]:
        """A value a block; where nothing began nothing was waited for."""
        assert self.count
        values = run.blocks[self.count][metric]
        syncs = run.blocks[self.count]["syncs"]
        if metric in BLOCK_SUMS:
            return [0 if n is None else value for value, n in zip(values, syncs, strict=True)]
        return values

    def queries(self, queries: Sequence[Query]) -> Iterator[Row]:
        """The keys of the user's own queries; all are watched."""
        for query in queries:
            runs = [[run.answers[query.digest] for run in side.runs] for side in self.sides]
            keys = {key: one.unit for side in runs for run in side for key, one in run.items()}
            for key, unit in keys.items():
                values = [[_value(run.get(key), None) for run in side] for side in runs]
                yield from self.row("query", "", key, values, unit, gate=True)

    def patterns(self) -> Iterator[Row]:
        """What the rules say of files, threads and stacks by a pattern."""
        for kind, pattern in self.policy.patterns():
            wanted = [
                metric
                for metric in GROUP_METRICS
                if any(
                    (rule.kind, rule.pattern) == (kind, pattern) and fnmatchcase(metric, rule.metric)
                    for rule in self.policy.rules
                )
            ]  # fmt: skip
            cut = [run for side in self.sides for run in side.runs if kind in run.cut]
            if cut:
                self.said.append(
                    f"{kind} {pattern}: {cut[0].name} keeps the costliest of its {kind}s alone, of"
                    " which this is the sum"
                )
            if not any(
                fnmatchcase(name, pattern)
                for side in self.sides
                for run in side.runs
                for name in run.groups.get(kind, {})
            ):
                self.said.append(f"no row for {kind} {pattern}: nothing matches on either side")
                nameless = kind == "stack" and any(
                    has_nameless(name)
                    for side in self.sides
                    for run in side.runs
                    for name in run.groups.get(kind, {})
                )
                self.watches_nothing.append(
                    f"the rule for {kind} {pattern} watches nothing: it matches nothing on either side"
                    + (", where stacks without names may be any" if nameless else "")
                )
                for rule in list(self.policy.unused):
                    if (rule.kind, rule.pattern) == (kind, pattern):
                        self.policy.unused.discard(rule)
                continue
            yield from self.things(kind, pattern, pattern, wanted)

    def groups(self, by: Sequence[str]) -> Iterator[Row]:
        """The costliest files, threads and stacks of both sides together."""
        for kind in by:
            known = [
                sum(run.number(f"known.{kind}") or 0 for run in side.runs) for side in self.sides
            ]
            names = self.costliest(kind)
            if 0 in known:
                if names:
                    where = [s.name for s, n in zip(self.sides, known, strict=True) if not n]
                    self.said.append(f"no rows by {kind}: {' and '.join(where)} knows of none")
            # With one alone its rows are those of the whole run.
            elif len(names) > 1:
                for name in names:
                    yield from self.things(kind, name, None, _DETAILS)

    def costliest(self, kind: str) -> list[str]:
        """Chosen from both sides as one, so that the choice favours no verdict."""
        runs = [run.groups.get(kind, {}) for side in self.sides for run in side.runs]
        found: dict[str, list[float]] = {}
        seen: dict[str, int] = {}
        for run in runs:
            for name, group in run.items():
                sums = found.setdefault(name, [0.0, 0.0])
                sums[0] += group["time_ns"]
                sums[1] += group["syncs"]
                seen[name] = seen.get(name, 0) + 1
        # What one run of many has, or hardly ever happens, cannot be compared.
        names = [
            name
            for name in found
            if (self.blocks or seen[name] > 1) and found[name][1] >= _GROUP_REQUESTS
        ]
        chosen: dict[str, None] = {}
        for column in (0, 1):
            ranked = sorted(names, key=lambda name: (-found[name][column], name))
            chosen |= dict.fromkeys(ranked[:_GROUPS])
        return list(chosen)

    def things(
        self, kind: str, name: str, pattern: str | None, metrics: Iterable[str]
    ) -> Iterator[Row]:
        """The metrics of a group, or of all that match a pattern."""

        def of(groups: dict[str, Group]) -> Group | None:
            if pattern is None:
                return groups.get(name)
            return total(g for n, g in groups.items() if fnmatchcase(n, pattern))

        sums = [[of(run.groups.get(kind, {})) for run in side.runs] for side in self.sides]
        others = self.perhaps(name, pattern) if kind == "stack" else set()
        perhaps = [
            [total(g for n, g in run.groups.get(kind, {}).items() if n in others) for run in side.runs]
            for side in self.sides
        ]  # fmt: skip
        for metric in metrics:
            unit = GROUP_METRICS[metric][0]
            values = [[figure(metric, group) for group in side] for side in sums]
            if not self.blocks:
                for row in self.row(kind, name, metric, values, unit):
                    _doubt(row, sums, perhaps)
                    yield row
                continue
            whole = (values[0][0], values[1][0])
            parts: list[list[float | None]] = [[], []]
            cells = [self.cells(side.runs[0], kind, name, pattern) for side in self.sides]
            if cells[0] and cells[1]:
                parts = [[figure(metric, cell) for cell in side] for side in cells]
            for row in self.row(kind, name, metric, parts, unit, whole=whole):
                if self.count and parts[0] and GROUP_METRICS[metric][2] is None and row.centres:
                    row.centres = (row.centres[0] / self.count, row.centres[1] / self.count)
                _doubt(row, sums, perhaps)
                yield row

    def perhaps(self, name: str, pattern: str | None) -> set[str]:
        """Stacks of which requests may be this stack's, or match the pattern: names of functions are missing."""
        names = {n for side in self.sides for run in side.runs for n in run.groups.get("stack", {})}
        if pattern is None:
            return set(Partners(names).of(name))
        inside = {one for one in names if fnmatchcase(one, pattern)}
        outside = names - inside
        found = set(filter(has_nameless, outside))
        partners = Partners(outside)
        return found.union(*(partners.of(one) for one in filter(has_nameless, inside)))

    def cells(
        self, run: Run, kind: str, name: str, pattern: str | None
    ) -> list[Group | None] | None:
        """A group in each block; None if the blocks hold only a part of it."""
        if not self.count:
            return None
        stored = run.group_blocks.get(self.count, {})
        names = [
            one
            for one in run.groups.get(kind, {})
            if (one == name if pattern is None else fnmatchcase(one, pattern))
        ]
        if any((kind, one) not in stored for one in names):
            return None
        found = [stored[kind, one] for one in names]
        return [
            total(cells[block] for cells in found if cells[block] is not None)  # type: ignore[misc]
            for block in range(self.count)
        ]


def _doubt(row: Row, sums: list[list[Group | None]], perhaps: list[list[Group | None]]) -> None:
    """Tells a row what it may be, by the means over the runs."""
    counts = [sum(int(one["syncs"]) for one in side if one) for side in perhaps]
    if not any(counts):
        return
    sides: list[tuple[float, float]] = []
    for groups, more in zip(sums, perhaps, strict=True):
        each: list[Bounds] = [
            bounds(row.metric, group, one) for group, one in zip(groups, more, strict=True)
        ]
        low, high = (statistics.mean([one[place] for one in each]) for place in (0, 1))
        # As a row has a figure of both sides.
        assert low is not None
        assert high is not None
        sides.append((low, high))
    row.perhaps = (sides[0], sides[1])
    row.perhaps_syncs = (counts[0], counts[1])


def _value(one: Figure | None, missing: float | None) -> float | None:
    return missing if one is None else one.value


def _in_order(keys: Iterable[tuple[str, str]], runs: Sequence[Run]) -> list[tuple[str, str]]:
    """As the summary has them: by metric, each with its scopes."""
    order: dict[str, int] = {}
    for run in runs:
        for metric, _ in run.figures:
            order.setdefault(metric, len(order))
    return sorted(keys, key=lambda key: (order[key[0]], key[1] != "all", key[1]))


def _block_count(base: Run, new: Run, notes: list[str]) -> int | None:
    """How many blocks to cut two single runs into: the most that do not hang together."""
    requests = min(run.number("known.syncs") or 0 for run in (base, new))
    if not base.blocks or not new.blocks:
        return None
    fit = [count for count in _BLOCKS if requests >= count * _BLOCK_REQUESTS]
    for count in fit:
        if not any(_hangs_together(run.blocks[count], count) for run in (base, new)):
            return count
    if fit:
        notes.append(
            "what begins in one block of time depends on the block before, however long they are:"
            " the runs tell nothing of chance (record several runs of each side)"
        )
    else:
        notes.append(
            f"{requests} requests in a run are too few to cut it into blocks of time:"
            f" {_BLOCKS[-1] * _BLOCK_REQUESTS} are needed (or several runs of each side)"
        )
    return None


def _hangs_together(blocks: dict[str, list[float | None]], count: int) -> bool:
    return any(
        statistics.autocorrelation(blocks[metric]) > _CORRELATED / math.sqrt(count)
        for metric in _BLOCK_TESTS
    )


# ---------------------------------------------------------------- verdicts


def _judge_all(
    rows: list[Row], units: tuple[int, int], policy: Policy, seed: int, *, blocks: bool
) -> Method:
    """Gives every row its interval, p-values and verdict."""
    alpha = 1 - policy.confidence
    confidences = [row.watch.confidence for row in rows if row.watch.worse != "none"]
    strictest = min([alpha * _DETAIL_PART, *(1 - confidence for confidence in confidences)])
    arrangements = Arrangements(*units, seed, strictest)
    least = 1 / len(arrangements)
    gate = [row for row in rows if row.gate]
    details = [
        row
        for row in rows
        if not row.gate and row.watch.worse != "none" and not (blocks and row.kind in KINDS)
    ]
    gate_alpha = detail_alpha = alpha
    # What cannot fail a build takes nothing of the chance of a false alarm.
    if gate and details and not policy.narrow:
        # Told by the numbers of runs and rows alone, so that the data cannot choose.
        split = least <= alpha * _DETAIL_PART * (1 + 1e-9)
        gate_alpha, detail_alpha = (
            (alpha * (1 - _DETAIL_PART), alpha * _DETAIL_PART) if split else (alpha, 0.0)
        )
    for family, part in ((gate, gate_alpha), (details, detail_alpha)):
        _adjust(family, arrangements)
        for row in family:
            _judge(row, part, units, blocks)
    for row in rows:
        if policy.narrow and not row.gate and row.verdict == "regression":
            row.verdict = "notable"
        if row.watch.worse == "none":
            _measure(row)
        elif row.verdict == "-":
            _measure(row)
            row.verdict, row.why = CANT_TELL, "one run of each side: names may be the luck of a run"
    return Method(
        "blocks" if blocks else "runs",
        *units,
        policy.confidence,
        seed,
        len(arrangements),
        arrangements.exhaustive,
        gate_alpha,
        detail_alpha,
        len(gate),
        len(details),
    )


def _adjust(family: list[Row], arrangements: Arrangements) -> None:
    entries = []
    for row in family:
        if len(row.base_values) == arrangements.base and len(row.new_values) == arrangements.new:
            signs = {"higher": (1,), "lower": (-1,), "both": (1, -1)}[row.watch.worse]
            entries += [(row, sign) for sign in signs]
    if arrangements.base < 2 or arrangements.new < 2:
        return
    found = statistics.adjusted(
        [(row.base_values, row.new_values, sign) for row, sign in entries], arrangements
    )
    for (row, _), one in zip(entries, found, strict=True):
        row.worse_p = one.up if row.worse_p is None else min(row.worse_p, one.up)
        # Where any change is for the worse, none is for the better.
        row.better_p = 1.0 if row.watch.worse == "both" else one.down


def _measure(row: Row) -> None:
    """The change and its interval: a ratio, unless the tolerance or a base of 0 asks for a difference."""
    base, new = row.base, row.new
    assert base is not None
    assert new is not None
    row.relative = row.watch.tolerance.relative and base > 0
    row.change = _change(row, base, new)
    confidence = row.watch.confidence
    if row.relative:
        ratio = statistics.ratio_interval(row.base_values, row.new_values, confidence, row.centres)
        low = ratio.low - 1
        if low > -math.inf and min(v for v in row.new_values if v is not None) >= 0:
            # What is never negative cannot fall by more than all.
            low = max(low, -1.0)
        row.interval = Interval(low, ratio.high - 1)
        return
    row.interval = statistics.difference_interval(
        row.base_values, row.new_values, confidence, row.centres
    )
    if row.centres is not None and row.centres != (base, new):
        # A block's part of a sum, made whole again.
        scale = len(row.base_values)
        row.interval = Interval(row.interval.low * scale, row.interval.high * scale)


def _judge(row: Row, alpha: float, units: tuple[int, int], blocks: bool) -> None:
    _measure(row)
    tolerance = _allowed(row)
    # Turned so that up is worse.
    low, high = row.interval.low, row.interval.high
    if row.watch.worse == "lower":
        low, high = -high, -low
    row.open = high > tolerance or (row.watch.worse == "both" and low < -tolerance)
    alpha = min(alpha, 1 - row.watch.confidence) * (1 + 1e-9)
    assert row.change is not None
    apart = {"lower": -row.change, "both": abs(row.change)}.get(row.watch.worse, row.change)
    row.suspect = row.open and (
        apart > tolerance or math.isinf(high) or statistics.least_p(*units) > alpha
    )
    if math.isinf(low) and math.isinf(high):
        row.verdict, row.why = CANT_TELL, _nothing_known(row, units, blocks)
    elif -tolerance <= low and high <= tolerance:
        row.verdict = "no change"
    elif low > tolerance or (row.watch.worse == "both" and high < -tolerance):
        if row.worse_p is not None and row.worse_p <= alpha:
            row.verdict = "regression"
        else:
            row.verdict, row.why = CANT_TELL, _not_sure(row, alpha, units, "worse")
    elif high < -tolerance:
        if row.better_p is not None and row.better_p <= alpha:
            row.verdict = "improvement"
        else:
            row.verdict, row.why = CANT_TELL, _not_sure(row, alpha, units, "better")
    else:
        row.verdict = CANT_TELL
        row.why = "no worse, perhaps better" if not row.open else "too wide an interval"
    _beware_of_luck(row, tolerance)


def _beware_of_luck(row: Row, tolerance: float) -> None:
    """Takes a verdict back that symbolisation may have made: which functions had a name on which side."""
    if row.perhaps is None:
        return
    base, new = row.perhaps
    # Turned so that up is worse.
    low, high = _change(row, base[1], new[0]), _change(row, base[0], new[1])
    if row.watch.worse == "lower":
        low, high = -high, -low
    both = row.watch.worse == "both"
    stands = {
        "regression": low > tolerance or (both and high < -tolerance),
        "improvement": high < -tolerance,
        "no change": -tolerance <= low and high <= tolerance,
    }
    if stands.get(row.verdict, False):
        return
    if row.verdict in stands:
        sides = zip(("base", "new"), row.perhaps_syncs, strict=True)
        more = " and ".join(f"{count:,} more of {side}" for side, count in sides if count)
        row.why = f"functions lack names: {more} may be of this stack"
        row.verdict = CANT_TELL
    if high > tolerance or (both and low < -tolerance):
        row.open = row.suspect = True


def _change(row: Row, base: float, new: float) -> float:
    """On the scale of the row's change."""
    if not row.relative:
        return new - base
    if base:
        return new / base - 1
    return math.inf if new else 0.0


def _allowed(row: Row) -> float:
    """The tolerance on the scale of the row's change."""
    tolerance: Tolerance = row.watch.tolerance
    if row.relative or not tolerance.relative:
        return tolerance.amount
    return tolerance.amount * abs(row.base or 0)


def _nothing_known(row: Row, units: tuple[int, int], blocks: bool) -> str:
    if blocks:
        return "one run of each side, and no blocks of time to tell by"
    if min(units) < 2:
        return "too few runs: one run says nothing of the next"
    known = [sum(v is not None for v in values) for values in (row.base_values, row.new_values)]
    if min(known) < 2:
        return f"too few runs: known in {known[0]} and {known[1]} runs"
    return "too wide an interval"


def _not_sure(row: Row, alpha: float, units: tuple[int, int], word: str) -> str:
    if statistics.least_p(*units) > alpha:
        if alpha <= 0:
            return "too few runs for rows that no gate watches"
        needed = statistics.runs_needed(alpha)
        return f"too few runs: {needed} of each side are needed"
    p = row.worse_p if word == "worse" else row.better_p
    return f"looks {word}, but so would one of so many rows by chance" + (
        f" (p = {p:.3f})" if p is not None else ""
    )


# ---------------------------------------------------------------- what else is to be said


def _refuse_cut_off(comparison: Comparison) -> None:
    """A run that was cut off has less of all that is counted or summed, and nobody knows how much."""
    sides = (comparison.base, comparison.new)
    if not any(run.cut_off for side in sides for run in side.runs):
        return
    for row in comparison.rows:
        # Nobody knows what a query of one's own asks for.
        if row.watch.worse != "none" and (row.kind == "query" or grows(row.metric)):
            row.verdict, row.why = CANT_TELL, CUT_OFF
            row.open = row.suspect = True


def _refuse_verdicts(comparison: Comparison, max_loss: str | None) -> None:
    """Takes all verdicts back where a side cannot be trusted, or has fewer runs than are asked for."""
    sides = (comparison.base, comparison.new)
    option, max_loss = (
        (f"--max-loss {max_loss}", max_loss)
        if max_loss is not None
        else (f"the policy's max_loss of {comparison.policy.max_loss}", comparison.policy.max_loss)
    )
    why = "too few runs"
    if max_loss is not None:
        limit = losses.Limit.parse(max_loss)
        for side in sides:
            told = [told for run in side.runs if (told := run.too_much_lost(limit))]
            if told:
                more = f" (and {len(told) - 1} more runs)" if len(told) > 1 else ""
                comparison.lost, why = True, "too much lost"
                comparison.no_verdict = (
                    f"{side.name} lost more than {option} allows: {told[0]}{more}"
                )
                break
            if any(run.lost is None for run in side.runs):
                comparison.warnings.append(
                    f"{side.name}: a high-level log does not say what was lost; {option} cannot be checked"
                )
    few = [side for side in sides if len(side.runs) < comparison.policy.min_runs]
    if few and comparison.no_verdict is None:
        comparison.no_verdict = (
            f"too few runs: {few[0].name} has {len(few[0].runs)}, and the policy asks for"
            f" {comparison.policy.min_runs} of each side"
        )
    if comparison.no_verdict is not None:
        for row in comparison.rows:
            if row.watch.worse != "none":
                row.verdict, row.why = CANT_TELL, why
                row.open = row.suspect = True


def _warnings(base: Side, new: Side, policy: Policy, blocks: bool) -> list[str]:
    found = [*base.warnings, *new.warnings, *differences(base, new)]
    if blocks:
        found.append(
            "one run of each side: chance is judged by blocks of time within the runs, which cannot"
            " see how much one run differs from the next; what is found may be the luck of a run"
        )
    for side in (base, new):
        told: dict[str, int] = {}
        for run in side.runs:
            for caveat in run.caveats:
                told[caveat] = told.get(caveat, 0) + 1
        if len(told) <= 3:
            found += [
                f"{side.name}: {caveat}" + (f" (in {n} runs)" if n > 1 else "")
                for caveat, n in told.items()
            ]
        else:
            lossy = sum(bool(run.caveats) for run in side.runs)
            found.append(
                f"{side.name}: something is missing from {lossy} of {len(side.runs)} runs; syncline"
                " report INPUT losses says what"
            )
    return found


def _moved(comparison: Comparison) -> Iterator[Moved]:
    """For what got worse most: the files, threads and stacks that moved most."""
    worst = [row for row in comparison.rows if row.verdict == "regression" and not row.kind]
    worst.sort(key=lambda row: -abs(row.change or 0) if row.relative else -math.inf)
    seen: set[str] = set()
    for row in worst:
        column, unit, measure = measure_of(row.metric)
        if column in seen:
            continue
        seen.add(column)
        groups = list(_movers(comparison, column, row.watch.worse))
        if groups:
            yield Moved(row, measure, unit, groups)
        if len(seen) == _MOVED_ROWS:
            return


def _movers(
    comparison: Comparison, column: str, worse: str
) -> Iterator[tuple[str, str, float, float]]:
    for kind in ("stack", "file", "thread"):
        sides = [comparison.base.runs, comparison.new.runs]
        names = {name for runs in sides for run in runs for name in run.groups.get(kind, {})}
        sums = {}
        for name in names:
            groups = [[run.groups.get(kind, {}).get(name) for run in runs] for runs in sides]
            base, new = (statistics.mean([summed(column, one) for one in side]) for side in groups)
            # What one side does not know may not have moved.
            if base is not None and new is not None:
                sums[name] = (base, new)
        if len(names) < 2:
            continue
        way = {"higher": 1, "lower": -1}.get(worse, 0)
        apart = {name: b - a for name, (a, b) in sums.items()}
        if kind == "stack":
            partners = Partners(sums)
            apart = {name: _surely_apart(name, sums, partners.of(name)) for name in apart}
        all_of_it = sum(map(abs, apart.values()))
        ranked = sorted(apart, key=lambda name: (-(apart[name] * way or abs(apart[name])), name))
        for name in ranked[:_MOVED_GROUPS]:
            moved = apart[name] * way if way else abs(apart[name])
            if all_of_it and moved >= _MOVED_LEAST * all_of_it:
                yield kind, name, sums[name][0], sums[name][1]


def _surely_apart(name: str, sums: dict[str, list[float]], others: list[str]) -> float:
    """The least that a stack moved, whatever of the others is the same call path."""
    base, new = sums[name]
    if new < base:
        return min(0.0, new + sum(sums[one][1] for one in others) - base)
    return max(0.0, new - base - sum(sums[one][0] for one in others))
