"""Finds differences between the sides that may explain why their figures differ, and words them as warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from syncline import _core
from syncline.frames import comparable_stacks, has_nameless
from syncline.report import run_query
from syncline.report.answer import phases
from syncline.report.catalogue import read_sql

from .measure import read_groups
from .names import first_names
from .run import Figure, Run, Side

__all__ = ["differences", "glance", "same_runs"]

# Fact of a run -> its name in a warning.
_FACTS = {
    "time_unit": "units of time",
    "pid_is": "meanings of the PID column",
    "clock": "clocks",
    "source": "formats",
    "recorder": "recorders",
    "filter": "recorders' filters",
    "request_filter": "filters",
    "slower_than_ns": "thresholds of slow calls, in ns,",
    "kernel": "kernels",
    "host": "hosts",
    "fs": "file systems",
    "mark": "marks",
    "tables": "tables",
}
# Facts that differ even if only one side has a value, and the text for the side without one.
_WITHOUT_VALUE = {
    "mark": "none",
    "fs": "none known",
    "request_filter": "all requests",
    "slower_than_ns": "all calls",
}
# Largest difference between two shares, of known values for example, without a warning.
_MAX_SHARE_DIFFERENCE = 0.05
_MAX_LENGTH_RATIO = 1.25
# Ratio of a unit of time to the next smaller one, and the factor by which a ratio may miss it.
_UNIT_RATIO, _UNIT_MARGIN = 1000, 3
_MAX_VALUES = 3


def differences(base: Side, new: Side) -> list[str]:
    """Returns a sentence for each difference between the sides, or between the runs of one side."""
    found = _common_runs(base, new) + _simultaneous_runs(base, new)
    for fact, label in _FACTS.items():
        sides = [_values(side, fact) for side in (base, new)]
        if sides[0] != sides[1] and (all(sides) or (fact in _WITHOUT_VALUE and any(sides))):
            without = _WITHOUT_VALUE.get(fact, "not known")
            found.append(f"{label} differ: {_difference_text(*sides, without)}")
        elif fact != "fs" and fact != "mark":
            for side, values in zip((base, new), sides, strict=True):
                if len(values) > 1:
                    found.append(
                        f"{label} differ within {side.name}: {first_names(sorted(values))}"
                    )
                    break
    checks = (_known_shares, _attribution, _unmatched_calls, _stacks, _lengths, _units)
    return found + [sentence for check in checks for sentence in check(base, new)]


def glance(engine: Any, name: str, summary: Iterable[tuple[Any, ...]]) -> Side:
    """Reads only what `differences` and the answer of a diff need from an input.

    Args:
        summary: the rows of the report `summary`.
    """
    run = Run(name)
    for metric, scope, value, unit, known, syncs in summary:
        run.figures[metric, scope] = Figure(value, unit, known, syncs)
    for fact, value in run_query(engine, read_sql("commands/diff", "facts")).rows:
        run.facts.setdefault(str(fact), []).append("" if value is None else str(value))
    stacks = run_query(engine, read_sql("views/page", "stack")).rows
    names = comparable_stacks(str(stack) for stack, *_ in stacks)
    nameless = sum(int(syncs) for stack, syncs, _ in stacks if has_nameless(names[str(stack)]))
    run.facts["nameless.stack"] = [str(nameless)]
    run.phases = phases(engine)
    run.groups = read_groups(engine)
    for fact in ("first_ts_ns", "last_ts_ns"):
        # If the input holds several runs, the first and the last time cannot be assigned to one of them.
        if len(run.facts.get(fact, ())) > 1:
            del run.facts[fact]
    return Side(name, (name,), [run])


def same_runs(base: Side, new: Side) -> bool:
    """Returns whether both sides consist of the same runs."""
    return len(_in_both(base, new)) == len(base.runs) == len(new.runs)


def _in_both(base: Side, new: Side) -> list[tuple[str, str]]:
    of_base = {run.identity: run.name for run in base.runs if run.identity}
    return [(of_base[run.identity], run.name) for run in new.runs if run.identity in of_base]


def _common_runs(base: Side, new: Side) -> list[str]:
    pairs = _in_both(base, new)
    if not pairs:
        return []
    names = first_names([old if old == name else f"{old} = {name}" for old, name in pairs])
    if same_runs(base, new):
        return [f"base and new are the same runs, so nothing is compared: {names}"]
    return [f"base and new have runs in common, which hides differences: {names}"]


def _simultaneous_runs(base: Side, new: Side) -> list[str]:
    """Different runs that overlap in time on one machine: parts of one run, or two recorders of it."""
    runs = {run.identity: run for side in (base, new) for run in side.runs if run.identity}
    pairs = [f"{a.name} and {b.name}" for a, b in combinations(runs.values(), 2) if _overlap(a, b)]
    if not pairs:
        return []
    return [
        "runs of one machine that overlap in time are counted as several runs, but one may be a part"
        f" of the other: {first_names(pairs)}"
    ]


def _overlap(a: Run, b: Run) -> bool:
    if a.facts.get("clock") != b.facts.get("clock"):
        return False
    spans = [(run.number("first_ts_ns"), run.number("last_ts_ns")) for run in (a, b)]
    (begin, end), (other, other_end) = spans
    if begin is None or end is None or other is None or other_end is None:
        return False
    boot = a.fact("boot_id")
    # Without a boot id, times of two boots may overlap, but they do not begin at the same ns.
    return begin == other or (
        boot is not None and boot == b.fact("boot_id") and begin <= other_end and other <= end
    )


def _values(side: Side, fact: str) -> set[str]:
    found = {value for run in side.runs for value in run.facts.get(fact, ()) if value}
    # A run that was converted earlier has the name that its format had.
    return {_core.EARLIER_SOURCES.get(one, one) for one in found} if fact == "source" else found


def _difference_text(base: set[str], new: set[str], without: str) -> str:
    # Shows the release of a kernel, or its full version if only the builds differ.
    short = [
        {re.sub(r"^Linux version (\S+).*", r"\1", value) for value in side} for side in (base, new)
    ]
    if short[0] != short[1]:
        base, new = short
    if len(base) > _MAX_VALUES or len(new) > _MAX_VALUES:
        # Values that both sides have are left out.
        only = (("base", sorted(base - new)), ("new", sorted(new - base)))
        return "; ".join(f"only {side} has {first_names(names)}" for side, names in only if names)
    return (
        f"{first_names(sorted(base)) or without} in base, {first_names(sorted(new)) or without} in new"
    )  # fmt: skip


def _known_shares(base: Side, new: Side) -> list[str]:
    """Metrics that one side knows of a larger share of its requests."""
    found = []
    for metric in ("syscall_latency_avg", "writeback_latency_avg", "writeback_amount_avg"):
        shares = []
        for side in (base, new):
            figures = [run.figures.get((metric, "all")) for run in side.runs]
            syncs = sum(one.syncs or 0 for one in figures if one)
            shares.append(sum(one.known or 0 for one in figures if one) / syncs if syncs else None)
        a, b = shares
        if a is not None and b is not None and abs(a - b) > _MAX_SHARE_DIFFERENCE:
            found.append(
                f"{metric.removesuffix('_avg')} is known for {a:.0%} of the requests in base, for {b:.0%} in new"
            )
    return found


def _total(side: Side, metric: str, scope: str = "all") -> float | None:
    """Sums a metric over the runs that know it."""
    figures = [run.figures.get((metric, scope)) for run in side.runs]
    known = [one.value for one in figures if one and one.value is not None]
    return sum(known) if known else None


def _attribution(base: Side, new: Side) -> list[str]:
    """Recorders that record which request a bio belongs to, compared with recorders for which it is inferred."""
    shares = []
    for side in (base, new):
        known = [run.figures.get(("attribution_share", "exact")) for run in side.runs]
        values = [one.value for one in known if one and one.value is not None]
        shares.append(sum(values) / len(values) if values else None)
    a, b = shares
    if a is None or b is None or abs(a - b) <= _MAX_SHARE_DIFFERENCE:
        return []
    return [
        f"attribution is exact for {a:.0%} in base, for {b:.0%} in new: inferred bios may belong to another request"
    ]


def _unmatched_calls(base: Side, new: Side) -> list[str]:
    """Calls without a recorded request: they may be calls whose requests the other side has recorded."""
    shares = []
    for side in (base, new):
        unmatched, syncs = _total(side, "unmatched_calls"), _total(side, "syncs")
        whole = (unmatched or 0) + (syncs or 0)
        shares.append(unmatched / whole if unmatched is not None and whole else None)
    a, b = shares
    if a is None or b is None or abs(a - b) <= _MAX_SHARE_DIFFERENCE:
        return []
    return [
        f"unmatched calls, which no figure includes, are {a:.0%} of all calls and requests in base, {b:.0%} in new"
    ]


def _stacks(base: Side, new: Side) -> list[str]:
    """Differences in the shares of requests with a stack, and of stacks with all names."""
    found = []
    for fact, of, text in (
        ("known.stack", "known.syncs", "a stack is known for {} of the requests in base, for {} in new"),
        (
            "nameless.stack",
            "known.stack",
            "functions lack names in {} of the stacks in base, in {} in new: differences by stack may be caused by that",
        ),
    ):  # fmt: skip
        counts = [
            [sum(run.number(name) or 0 for run in side.runs) for name in (fact, of)]
            for side in (base, new)
        ]
        if all(whole for _, whole in counts):
            a, b = (part / whole for part, whole in counts)
            if abs(a - b) > _MAX_SHARE_DIFFERENCE:
                found.append(text.format(f"{a:.0%}", f"{b:.0%}"))
    return found


def _mean_length(side: Side) -> float | None:
    """Returns the mean length of a run in seconds."""
    spans = [
        (run.number("last_ts_ns") or 0) - (run.number("first_ts_ns") or 0) for run in side.runs
    ]
    return sum(spans) / len(spans) / 1e9 if spans and all(spans) else None


def _units(base: Side, new: Side) -> list[str]:
    """A side whose log was converted with the wrong unit of time."""
    parts = []
    for side in (base, new):
        syncs = _total(side, "syncs")
        latency = _total(side, "syscall_latency_sum") or _total(side, "sync_time_sum")
        parts.append((_mean_length(side), latency / syncs if latency and syncs else None))
    ratios = [a / b for a, b in zip(*parts, strict=True) if a and b]
    for power, longer, shorter in ((1, base, new), (-1, new, base)):
        errors = [ratio**power / _UNIT_RATIO for ratio in ratios]
        if len(errors) > 1 and all(1 / _UNIT_MARGIN < one < _UNIT_MARGIN for one in errors):
            return [
                f"all times of {longer.name} are about {_UNIT_RATIO:,} times those of {shorter.name}:"
                " was one of them converted with the wrong --time-unit?"
            ]
    return []


def _lengths(base: Side, new: Side) -> list[str]:
    a, b = _mean_length(base), _mean_length(new)
    if a and b and max(a, b) > _MAX_LENGTH_RATIO * min(a, b):
        return [
            f"a run lasts {a:.3g} s in base, {b:.3g} s in new: counts and sums are per run, not per second"
        ]
    return []
