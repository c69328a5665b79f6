"""What is not alike on both sides, and so may be why the figures differ."""

from __future__ import annotations

import re

from .sides import Side

__all__ = ["differences"]

# Facts of a run, and what a person calls them.
_FACTS = {
    "time_unit": "units of time",
    "pid_is": "meanings of the PID column",
    "clock": "clocks",
    "source": "formats",
    "recorder": "recorders",
    "filter": "recorders' filters",
    "kernel": "kernels",
    "host": "hosts",
    "fs": "file systems",
    "mark": "marks",
    "tables": "tables",
}
_NONE_OF_IT = {"mark": "none", "fs": "none known"}
# A part of one side's requests whose value is known that the other side does not have.
_KNOWN_APART = 0.05
_LENGTH_APART = 1.25
_NAMES = 3


def differences(base: Side, new: Side) -> list[str]:
    """A sentence for each thing that differs between the sides, or between runs of one."""
    found = []
    for fact, word in _FACTS.items():
        sides = [_values(side, fact) for side in (base, new)]
        if sides[0] != sides[1] and (all(sides) or (fact in _NONE_OF_IT and any(sides))):
            a, b = _told(*sides, _NONE_OF_IT.get(fact, "not known"))
            found.append(f"{word} differ: {a} in base, {b} in new")
        elif fact != "fs" and fact != "mark":
            for side, values in zip((base, new), sides, strict=True):
                if len(values) > 1:
                    found.append(f"{word} differ within {side.name}: {_listed(values)}")
                    break
    return found + _known(base, new) + _lengths(base, new)


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
        return (f"{_listed(only_a)} alone" if only_a else "none of its own"), (
            f"{_listed(only_b)} alone" if only_b else "none of its own"
        )
    return _listed(a) or none, _listed(b) or none


def _listed(values: set[str]) -> str:
    names = sorted(values)
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


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
        if a and b and abs(a - b) > _KNOWN_APART:
            found.append(
                f"{metric.removesuffix('_avg')} is known of {a:.0%} of the requests in base, of {b:.0%} in new"
            )
    return found


def _lengths(base: Side, new: Side) -> list[str]:
    lengths = []
    for side in (base, new):
        spans = [
            (run.number("last_ts_ns") or 0) - (run.number("first_ts_ns") or 0) for run in side.runs
        ]
        lengths.append(sum(spans) / len(spans) / 1e9 if spans and all(spans) else None)
    a, b = lengths
    if a and b and max(a, b) > _LENGTH_APART * min(a, b):
        return [
            f"a run lasts {a:.3g} s in base, {b:.3g} s in new: counts and sums are per run, not per second"
        ]
    return []
