"""Builds the rows of a diff: a row for each metric that both sides know of a scope, a query key or a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from syncline.frames import PossibleMatches, has_nameless

from . import statistics
from .comparison import Row
from .metrics import (
    BLOCK_METRICS,
    BLOCK_SUMS,
    GROUP_METRICS,
    PHASE_METRICS,
    Bounds,
    Group,
    bounds,
    figure,
    total,
)
from .rules import Policy
from .run import Figure, Query, Run, Side

__all__ = ["RowBuilder"]

# Groups of each kind: this many by time, and as many by count. More rows make each verdict less certain.
_GROUPS = 6
_MIN_GROUP_REQUESTS = 10
# Metrics of a group that have a row. The other GROUP_METRICS follow from these, or are for rules.
_GROUP_ROWS = (
    "syncs",
    "empty_share",
    "syscall_latency_avg",
    "writeback_latency_avg",
    "writeback_amount_sum",
)
# Metrics that are 0 for a scope (an op, a process) that a run does not have.
_ZERO_IF_ABSENT = ("syncs", "sync_time_sum", "sync_wall_time")


class RowBuilder:
    """Builds the rows of both sides, and records which metrics have no row."""

    def __init__(
        self, base: Side, new: Side, policy: Policy, *, blocks: bool, block_count: int | None
    ) -> None:
        """Args:
        blocks: each side has a single run, and its samples are blocks of time.
        block_count: how many blocks; None if the runs cannot be divided.
        """
        self._sides = (base, new)
        self._policy = policy
        self._blocks = blocks
        self._block_count = block_count
        # Side, or both -> metrics that it does not know, which therefore have no row.
        self._unknown: dict[str, list[str]] = {}
        self._notes: list[str] = []
        # On rules of the gate that match nothing.
        self.warnings: list[str] = []

    def notes(self) -> list[str]:
        """Returns what has no row, and why."""
        return self._notes + [
            f"no row, because it is not known in {where}: {', '.join(metrics)}"
            for where, metrics in self._unknown.items()
        ]

    def summary_rows(self) -> Iterator[Row]:
        """Builds the rows of the report `summary`."""
        keys: dict[tuple[str, str], str] = {}
        for side in self._sides:
            for run in side.runs:
                keys |= {key: one.unit for key, one in run.figures.items() if key not in keys}
        for metric, scope in _in_order(keys, [run for side in self._sides for run in side.runs]):
            absent = 0.0 if scope != "all" and metric in _ZERO_IF_ABSENT else None
            values = [
                [_value(run.figures.get((metric, scope)), absent) for run in side.runs]
                for side in self._sides
            ]
            unit = keys[metric, scope]
            if not self._blocks:
                yield from self._row("", scope, metric, values, unit)
                continue
            whole = (values[0][0], values[1][0])
            parts: list[list[float | None]] = [[], []]
            if self._block_count and scope == "all" and metric in BLOCK_METRICS:
                parts = [self._block_values(side.runs[0], metric) for side in self._sides]
                if metric in BLOCK_SUMS and None not in whole:
                    # The blocks are equally long, so each is expected to have an equal part of the sum.
                    centres = tuple(
                        value / self._block_count for value in whole if value is not None
                    )
                    for row in self._row("", scope, metric, parts, unit, whole=whole):
                        row.centres = (centres[0], centres[1])
                        yield row
                    continue
            yield from self._row("", scope, metric, parts, unit, whole=whole)

    def phase_rows(self) -> Iterator[Row]:
        """Builds the rows of the time by phase. A phase that no run can show has none, and no note."""
        for metric, phases in PHASE_METRICS.items():
            values = [[run.phase_average(phases) for run in side.runs] for side in self._sides]
            if not any(value is not None for side in values for value in side):
                continue
            if self._blocks:
                whole = (values[0][0], values[1][0])
                yield from self._row("", "all", metric, [[], []], "ns", whole=whole)
            else:
                yield from self._row("", "all", metric, values, "ns")

    def query_rows(self, queries: Sequence[Query]) -> Iterator[Row]:
        """Builds a row for each key of the user's queries; all are in the gate."""
        for query in queries:
            runs = [[run.answers[query.digest] for run in side.runs] for side in self._sides]
            keys = {key: one.unit for side in runs for run in side for key, one in run.items()}
            for key, unit in keys.items():
                values = [[_value(run.get(key), None) for run in side] for side in runs]
                yield from self._row("query", "", key, values, unit, gate=True)

    def rule_rows(self) -> Iterator[Row]:
        """Builds the rows of rules with a pattern for files, threads or stacks."""
        for kind, pattern in self._policy.patterns():
            metrics = [
                metric
                for metric in GROUP_METRICS
                if any(
                    (rule.kind, rule.pattern) == (kind, pattern) and fnmatchcase(metric, rule.metric)
                    for rule in self._policy.rules
                )
            ]  # fmt: skip
            truncated = [run for run in self._runs() if kind in run.truncated_kinds]
            if truncated:
                self._notes.append(
                    f"{kind} {pattern}: {truncated[0].name} holds only the costliest {kind}s, and"
                    " this is their sum"
                )
            names = [name for run in self._runs() for name in run.groups.get(kind, {})]
            if not any(fnmatchcase(name, pattern) for name in names):
                self._note_unmatched_rule(kind, pattern, names)
                continue
            yield from self._group_rows(kind, pattern, pattern, metrics)

    def _note_unmatched_rule(self, kind: str, pattern: str, names: list[str]) -> None:
        self._notes.append(f"no row for {kind} {pattern}: nothing matches on either side")
        nameless = kind == "stack" and any(map(has_nameless, names))
        self.warnings.append(
            f"the rule for {kind} {pattern} watches nothing: it matches nothing on either side"
            + (", but stacks with missing names might match" if nameless else "")
        )
        for rule in list(self._policy.unused):
            if (rule.kind, rule.pattern) == (kind, pattern):
                self._policy.unused.discard(rule)

    def group_rows(self, kinds: Sequence[str]) -> Iterator[Row]:
        """Builds the rows of the costliest files, threads and stacks."""
        for kind in kinds:
            known = [
                sum(run.number(f"known.{kind}") or 0 for run in side.runs) for side in self._sides
            ]
            names = self._costliest(kind)
            if 0 in known:
                if names:
                    where = [s.name for s, n in zip(self._sides, known, strict=True) if not n]
                    self._notes.append(f"no rows by {kind}: not known in {' and '.join(where)}")
            # The rows of a single group would repeat those of the whole run.
            elif len(names) > 1:
                for name in names:
                    yield from self._group_rows(kind, name, None, _GROUP_ROWS)

    def _costliest(self, kind: str) -> list[str]:
        """Chooses groups from both sides together, so that the choice does not favour a verdict."""
        runs = [run.groups.get(kind, {}) for run in self._runs()]
        sums: dict[str, list[float]] = {}
        seen: dict[str, int] = {}
        for run in runs:
            for name, group in run.items():
                both = sums.setdefault(name, [0.0, 0.0])
                both[0] += group["time_ns"]
                both[1] += group["syncs"]
                seen[name] = seen.get(name, 0) + 1
        # A group of one run among many, or with few requests, cannot be compared.
        names = [
            name
            for name in sums
            if (self._blocks or seen[name] > 1) and sums[name][1] >= _MIN_GROUP_REQUESTS
        ]
        chosen: dict[str, None] = {}
        for column in (0, 1):
            ranked = sorted(names, key=lambda name: (-sums[name][column], name))
            chosen |= dict.fromkeys(ranked[:_GROUPS])
        return list(chosen)

    def _group_rows(
        self, kind: str, name: str, pattern: str | None, metrics: Iterable[str]
    ) -> Iterator[Row]:
        """Builds the rows of a group, or of the sum of all groups that match a pattern."""

        def select(groups: dict[str, Group]) -> Group | None:
            if pattern is None:
                return groups.get(name)
            return total(g for n, g in groups.items() if fnmatchcase(n, pattern))

        sums = [[select(run.groups.get(kind, {})) for run in side.runs] for side in self._sides]
        others = self._ambiguous_stacks(name, pattern) if kind == "stack" else set()
        ambiguous = [
            [total(g for n, g in run.groups.get(kind, {}).items() if n in others) for run in side.runs]
            for side in self._sides
        ]  # fmt: skip
        for metric in metrics:
            unit = GROUP_METRICS[metric][0]
            values = [[figure(metric, group) for group in side] for side in sums]
            if not self._blocks:
                for row in self._row(kind, name, metric, values, unit):
                    _set_possible(row, sums, ambiguous)
                    yield row
                continue
            whole = (values[0][0], values[1][0])
            parts: list[list[float | None]] = [[], []]
            cells = [self._cells(side.runs[0], kind, name, pattern) for side in self._sides]
            if cells[0] and cells[1]:
                parts = [[figure(metric, cell) for cell in side] for side in cells]
            for row in self._row(kind, name, metric, parts, unit, whole=whole):
                is_sum = GROUP_METRICS[metric][2] is None
                if self._block_count and parts[0] and is_sum and row.centres:
                    row.centres = (
                        row.centres[0] / self._block_count,
                        row.centres[1] / self._block_count,
                    )
                _set_possible(row, sums, ambiguous)
                yield row

    def _ambiguous_stacks(self, name: str, pattern: str | None) -> set[str]:
        """Returns the stacks with missing names whose requests may belong to this stack, or match the pattern."""
        names = {n for run in self._runs() for n in run.groups.get("stack", {})}
        if pattern is None:
            return set(PossibleMatches(names).of(name))
        inside = {one for one in names if fnmatchcase(one, pattern)}
        outside = names - inside
        found = set(filter(has_nameless, outside))
        matches = PossibleMatches(outside)
        return found.union(*(matches.of(one) for one in filter(has_nameless, inside)))

    def _block_values(self, run: Run, metric: str) -> list[float | None]:
        """Returns a value for each block; a sum is 0 in a block in which no request begins."""
        assert self._block_count
        values = run.blocks[self._block_count][metric]
        syncs = run.blocks[self._block_count]["syncs"]
        if metric in BLOCK_SUMS:
            return [0 if n is None else value for value, n in zip(values, syncs, strict=True)]
        return values

    def _cells(
        self, run: Run, kind: str, name: str, pattern: str | None
    ) -> list[Group | None] | None:
        """Returns the sums of a group in each block; None if the blocks hold only a part of it."""
        if not self._block_count:
            return None
        stored = run.group_blocks.get(self._block_count, {})
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
            for block in range(self._block_count)
        ]

    def _row(
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
        """Builds a row if both sides know the metric.

        Args:
            values: of each sample, base and new.
            whole: the figures of the sides, if the values are those of blocks; by default the means of the values.
        """
        base, new = whole or (statistics.mean(values[0]), statistics.mean(values[1]))
        criteria = self._policy.criteria(kind, name, metric, unit, gate=gate)
        if base is None or new is None:
            where = " nor in ".join(
                side.name for side, value in zip(self._sides, (base, new), strict=True) if value is None
            )  # fmt: skip
            if kind in ("", "query") and name in ("all", "") and criteria.worse != "none":
                self._unknown.setdefault(where, []).append(metric)
            elif criteria.gate:
                self._unknown.setdefault(where, []).append(f"{metric} of {kind} {name}")
            return
        centres = (base, new) if whole else None
        yield Row(kind, name, metric, unit, base, new, values[0], values[1], criteria, centres)

    def _runs(self) -> Iterator[Run]:
        for side in self._sides:
            yield from side.runs


def _set_possible(
    row: Row, sums: list[list[Group | None]], ambiguous: list[list[Group | None]]
) -> None:
    """Sets the possible values of a row: means over the runs of their lower and upper bounds."""
    counts = [sum(int(one["syncs"]) for one in side if one) for side in ambiguous]
    if not any(counts):
        return
    sides: list[tuple[float, float]] = []
    for groups, more in zip(sums, ambiguous, strict=True):
        each: list[Bounds] = [
            bounds(row.metric, group, one) for group, one in zip(groups, more, strict=True)
        ]
        low, high = (statistics.mean([one[index] for one in each]) for index in (0, 1))
        # Both sides of a row have a figure.
        assert low is not None
        assert high is not None
        sides.append((low, high))
    row.possible = (sides[0], sides[1])
    row.ambiguous_syncs = (counts[0], counts[1])


def _value(one: Figure | None, absent: float | None) -> float | None:
    return absent if one is None else one.value


def _in_order(keys: Iterable[tuple[str, str]], runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Sorts (metric, scope) by the order of the metrics in the summary, then by scope with `all` first."""
    order: dict[str, int] = {}
    for run in runs:
        for metric, _ in run.figures:
            order.setdefault(metric, len(order))
    return sorted(keys, key=lambda key: (order[key[0]], key[1] != "all", key[1]))
