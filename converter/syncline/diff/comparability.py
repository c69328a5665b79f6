"""What is not alike on both sides, and so may be why the figures differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from syncline.frames import comparable_stacks, has_nameless
from syncline.report import run_query
from syncline.report.catalogue import sql_root

from .sides import Figure, Run, Side, listed

__all__ = ["differences", "glance", "same_runs"]

# Facts of a run, and what a person calls them.
_FACTS = {
    "time_unit": "units of time",
    "pid_is": "meanings of the PID column",
    "clock": "clocks",
    "source": "formats",
    "recorder": "recorders",
    "filter": "recorders' filters",
    "request_filter": "filters",
    "kernel": "kernels",
    "host": "hosts",
    "fs": "file systems",
    "mark": "marks",
    "tables": "tables",
}
_NONE_OF_IT = {"mark": "none", "fs": "none known", "request_filter": "all requests"}
# A part of one side's requests whose value is known that the other side does not have.
_KNOWN_APART = 0.05
_LENGTH_APART = 1.25
# How many times as long a time is that was read in the next smaller unit, and how far from that it may be.
_UNIT, _UNIT_APART = 1000, 3
_NAMES = 3


def differences(base: Side, new: Side) -> list[str]:
    """A sentence for each thing that differs between the sides, or between runs of one."""
    found = _same(base, new) + _of_one_time(base, new)
    for fact, word in _FACTS.items():
        sides = [_values(side, fact) for side in (base, new)]
        if sides[0] != sides[1] and (all(sides) or (fact in _NONE_OF_IT and any(sides))):
            a, b = _told(*sides, _NONE_OF_IT.get(fact, "not known"))
            found.append(f"{word} differ: {a} in base, {b} in new")
        elif fact != "fs" and fact != "mark":
            for side, values in zip((base, new), sides, strict=True):
                if len(values) > 1:
                    found.append(f"{word} differ within {side.name}: {listed(sorted(values))}")
                    break
    parts = (_known, _attribution, _lone_calls, _stacks, _lengths, _units)
    return found + [sentence for part in parts for sentence in part(base, new)]


def glance(engine: Any, name: str, summary: Iterable[tuple[Any, ...]]) -> Side:
    """An input as `differences` needs it, for whoever compares without a diff.

    Args:
        summary: the rows of that report.
    """
    run = Run(name)
    for metric, scope, value, unit, known, syncs in summary:
        run.figures[metric, scope] = Figure(value, unit, known, syncs)
    sql = (sql_root() / "diff" / "facts.sql").read_text(encoding="utf-8")
    for fact, value in run_query(engine, sql).rows:
        run.facts.setdefault(str(fact), []).append("" if value is None else str(value))
    stacks = run_query(engine, (sql_root() / "page" / "stack.sql").read_text(encoding="utf-8")).rows
    names = comparable_stacks(str(stack) for stack, *_ in stacks)
    nameless = sum(int(syncs) for stack, syncs, _ in stacks if has_nameless(names[str(stack)]))
    run.facts["nameless.stack"] = [str(nameless)]
    for fact in ("first_ts_ns", "last_ts_ns"):
        # Of several runs in one input it is not known which first is whose.
        if len(run.facts.get(fact, ())) > 1:
            del run.facts[fact]
    return Side(name, (name,), [run])


def same_runs(base: Side, new: Side) -> bool:
    """Whether both sides are the same runs, and no others."""
    return len(_in_common(base, new)) == len(base.runs) == len(new.runs)


def _in_common(base: Side, new: Side) -> list[tuple[str, str]]:
    theirs = {run.identity: run.name for run in base.runs if run.identity}
    return [(theirs[run.identity], run.name) for run in new.runs if run.identity in theirs]


def _same(base: Side, new: Side) -> list[str]:
    """Runs that both sides have."""
    both = _in_common(base, new)
    if not both:
        return []
    named = listed([old if old == name else f"{old} = {name}" for old, name in both])
    if same_runs(base, new):
        return [f"base and new are the same, so that nothing is compared: {named}"]
    return [f"base and new have runs in common, which hides what differs: {named}"]


def _of_one_time(base: Side, new: Side) -> list[str]:
    """Runs that are not the same, but of the same time of one machine: parts, or two recorders."""
    runs = {run.identity: run for side in (base, new) for run in side.runs if run.identity}
    pairs = [f"{a.name} and {b.name}" for a, b in combinations(runs.values(), 2) if _overlap(a, b)]
    if not pairs:
        return []
    return [
        "runs of one machine and of the same time count as several, though one may be a part of the"
        f" other: {listed(pairs)}"
    ]


def _overlap(a: Run, b: Run) -> bool:
    if a.facts.get("clock") != b.facts.get("clock"):
        return False
    spans = [(run.number("first_ts_ns"), run.number("last_ts_ns")) for run in (a, b)]
    (begin, end), (other, other_end) = spans
    if begin is None or end is None or other is None or other_end is None:
        return False
    boot = a.fact("boot_id")
    # Without a boot's name, times can be alike by chance, but not to the ns.
    return begin == other or (
        boot is not None and boot == b.fact("boot_id") and begin <= other_end and other <= end
    )


def _values(side: Side, fact: str) -> set[str]:
    return {value for run in side.runs for value in run.facts.get(fact, ()) if value}


def _told(a: set[str], b: set[str], none: str) -> tuple[str, str]:
    """Both, as short as they still differ: a kernel's release, unless only its build is another."""
    short = [{re.sub(r"^Linux version (\S+).*", r"\1", value) for value in side} for side in (a, b)]
    if short[0] != short[1]:
        a, b = short
    # Marks that both have say nothing.
    only_a, only_b = a - b, b - a
    if len(a) > _NAMES or len(b) > _NAMES:
        return (f"{listed(sorted(only_a))} alone" if only_a else "none of its own"), (
            f"{listed(sorted(only_b))} alone" if only_b else "none of its own"
        )
    return listed(sorted(a)) or none, listed(sorted(b)) or none


def _known(base: Side, new: Side) -> list[str]:
    """Figures that one side takes over more of its requests than the other."""
    found = []
    for metric in ("syscall_latency_avg", "writeback_latency_avg", "writeback_amount_avg"):
        shares = []
        for side in (base, new):
            figures = [run.figures.get((metric, "all")) for run in side.runs]
            syncs = sum(one.syncs or 0 for one in figures if one)
            shares.append(sum(one.known or 0 for one in figures if one) / syncs if syncs else None)
        a, b = shares
        if a is not None and b is not None and abs(a - b) > _KNOWN_APART:
            found.append(
                f"{metric.removesuffix('_avg')} is known of {a:.0%} of the requests in base, of {b:.0%} in new"
            )
    return found


def _total(side: Side, metric: str, scope: str = "all") -> float | None:
    """Of all runs that know it."""
    figures = [run.figures.get((metric, scope)) for run in side.runs]
    known = [one.value for one in figures if one and one.value is not None]
    return sum(known) if known else None


def _attribution(base: Side, new: Side) -> list[str]:
    """Recorders that know, and recorders that infer, which bio belongs to which request."""
    shares = []
    for side in (base, new):
        known = [run.figures.get(("attribution_share", "exact")) for run in side.runs]
        values = [one.value for one in known if one and one.value is not None]
        shares.append(sum(values) / len(values) if values else None)
    a, b = shares
    if a is None or b is None or abs(a - b) <= _KNOWN_APART:
        return []
    return [
        f"attribution is exact for {a:.0%} in base, for {b:.0%} in new: what is inferred may be another request's"
    ]


def _lone_calls(base: Side, new: Side) -> list[str]:
    """Calls that no request was seen of: on one side they may be the very requests of the other."""
    shares = []
    for side in (base, new):
        lone, syncs = _total(side, "unmatched_calls"), _total(side, "syncs")
        whole = (lone or 0) + (syncs or 0)
        shares.append(lone / whole if lone is not None and whole else None)
    a, b = shares
    if a is None or b is None or abs(a - b) <= _KNOWN_APART:
        return []
    return [
        f"lone calls, which no figure counts, are {a:.0%} of all calls and requests in base, {b:.0%} in new"
    ]


def _stacks(base: Side, new: Side) -> list[str]:
    """Stacks that one side has, or has names for, more often than the other."""
    found = []
    for fact, of, words in (
        ("known.stack", "known.syncs", "a stack is known of {} of the requests in base, of {} in new"),
        (
            "nameless.stack",
            "known.stack",
            "functions lack names in {} of the stacks in base, in {} in new: what differs by stack may be luck",
        ),
    ):  # fmt: skip
        counts = [
            [sum(run.number(name) or 0 for run in side.runs) for name in (fact, of)]
            for side in (base, new)
        ]
        if all(whole for _, whole in counts):
            a, b = (part / whole for part, whole in counts)
            if abs(a - b) > _KNOWN_APART:
                found.append(words.format(f"{a:.0%}", f"{b:.0%}"))
    return found


def _length(side: Side) -> float | None:
    """Of a run, in seconds, on average."""
    spans = [
        (run.number("last_ts_ns") or 0) - (run.number("first_ts_ns") or 0) for run in side.runs
    ]
    return sum(spans) / len(spans) / 1e9 if spans and all(spans) else None


def _units(base: Side, new: Side) -> list[str]:
    """A side whose log was converted with another unit of time than the one that it is in."""
    parts = []
    for side in (base, new):
        syncs = _total(side, "syncs")
        latency = _total(side, "syscall_latency_sum") or _total(side, "sync_time_sum")
        parts.append((_length(side), latency / syncs if latency and syncs else None))
    ratios = [a / b for a, b in zip(*parts, strict=True) if a and b]
    for power, longer, shorter in ((1, base, new), (-1, new, base)):
        apart = [ratio**power / _UNIT for ratio in ratios]
        if len(apart) > 1 and all(1 / _UNIT_APART < one < _UNIT_APART for one in apart):
            return [
                f"all times of {longer.name} are some {_UNIT:,} times those of {shorter.name}: is one of"
                " them converted with another --time-unit than its log is in?"
            ]
    return []


def _lengths(base: Side, new: Side) -> list[str]:
    a, b = _length(base), _length(new)
    if a and b and max(a, b) > _LENGTH_APART * min(a, b):
        return [
            f"a run lasts {a:.3g} s in base, {b:.3g} s in new: counts and sums are per run, not per second"
        ]
    return []
