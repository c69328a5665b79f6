"""The history of a metric: its value in each run of a dataset, and what happened to it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from syncline.comparison.comparison import Row
from syncline.comparison.policy import Policy
from syncline.dataset.layout import Entry
from syncline.errors import InputError

from .findings import LEAST_RUNS, Finding, find, judged, last_runs

__all__ = ["Series", "history"]

# The division of a series takes a time that grows with the square of its runs.
_MOST_RUNS = 300


@dataclass(frozen=True)
class Series:
    """A metric of the runs of one host, in the order of their starts."""

    host: str | None
    # It is of one host, which may be unknown; else of all.
    is_of_host: bool
    metric: str
    scope: str
    unit: str
    # Runs in which the metric is known.
    entries: list[Entry]
    values: list[float]
    # Number of runs in which it is not known.
    unknown: int
    findings: list[Finding] = field(default_factory=list)
    # Why nothing can be found; empty if it can.
    too_few: str = ""
    # Number of the oldest runs that were not looked at.
    skipped: int = 0
    # The answer on the last runs, or why there is none, if they were asked for.
    last: Finding | None = None
    last_unknown: str = ""


def history(
    entries: Sequence[Entry],
    metrics: Sequence[str],
    scope: str,
    policy: Policy,
    *,
    by_host: bool = True,
    last: int | None = None,
) -> tuple[list[Series], list[str]]:
    """Returns the series of each metric and host with what happened in them, and why runs are left out.

    Args:
        entries: the runs.
        metrics: names of the report `summary`.
        scope: of the summary, such as `all` or `op:fsync`.
        policy: which change matters, as for a diff.
        by_host: a series for each host; else one for all.
        last: also compare this many of the newest runs with those before.

    Raises:
        InputError: no run has a metric.
    """
    dated = [entry for entry in entries if entry.started_ns is not None]
    left_out = []
    if len(dated) < len(entries):
        names = ", ".join(entry.run for entry in entries if entry.started_ns is None)
        count = len(entries) - len(dated)
        left_out.append(
            (
                "1 run is left out, because its"
                if count == 1
                else f"{count:,} runs are left out, because their"
            )
            + f" time is not known: {names[:200]}"
            " (give it: syncline ingest RUN --into DATASET --started TIME --replace)"
        )
    dated.sort(key=lambda entry: (entry.started_ns or 0, entry.run))
    series = []
    for metric in metrics:
        known = {entry.run: _value(entry, metric, scope) for entry in dated}
        units = [found[1] for found in known.values() if found]
        if not units:
            raise _unknown(entries, metric, scope)
        hosts = sorted({entry.host for entry in dated}, key=str) if by_host else [None]
        for host in hosts:
            of_host = [entry for entry in dated if not by_host or entry.host == host]
            have = [entry for entry in of_host if known[entry.run]]
            values = [found[0] for entry in have if (found := known[entry.run])]
            if values:
                unknown = len(of_host) - len(have)
                series.append(Series(host, by_host, metric, scope, units[0], have, values, unknown))
    return _judged_all([_with_findings(one, policy, last) for one in series], policy), left_out


def _value(entry: Entry, metric: str, scope: str) -> tuple[float, str] | None:
    for name, of, value, unit, *_ in entry.figures:
        if (name, of) == (metric, scope) and value is not None:
            return float(value), str(unit)
    return None


def _unknown(entries: Sequence[Entry], metric: str, scope: str) -> InputError:
    names = list(dict.fromkeys(name for entry in entries for name, *_ in entry.figures))
    scopes = list(
        dict.fromkeys(of for entry in entries for name, of, *_ in entry.figures if name == metric)
    )
    if metric not in names:
        close = difflib.get_close_matches(metric, names, 1)
        return InputError(
            f"no run has a metric '{metric}'" + (f"; did you mean {close[0]}?" if close else ""),
            f"the metrics are those of the report summary: {', '.join(names)}",
        )
    return InputError(
        f"{metric} of {scope} is not known in any dated run",
        f"its scopes are: {', '.join(scopes)}; give undated runs a time: syncline ingest --started",
    )


def _with_findings(series: Series, policy: Policy, last: int | None) -> Series:
    length, alpha = len(series.values), 1 - policy.confidence
    criteria = policy.criteria("", series.scope, series.metric, series.unit, gate=True)
    like = Row("", series.scope, series.metric, series.unit, None, None, [], [], criteria)
    # Older runs than these cost time and say little about the newest.
    skipped = max(0, length - _MOST_RUNS)
    values = series.values[skipped:]
    if length < LEAST_RUNS:
        runs = "1 run" if length == 1 else f"{length} runs"
        return replace(series, too_few=f"{runs}; {LEAST_RUNS} are needed", last_unknown="too few runs")  # fmt: skip
    found = find(values, series.unit, like, alpha)
    latest: Finding | None = None
    unknown = ""
    if last is not None:
        answer = last_runs(values, series.unit, like, last, alpha)
        if isinstance(answer, str):
            unknown = answer
        else:
            latest = _moved(answer, skipped)
    return replace(
        series,
        findings=[_moved(one, skipped) for one in found],
        skipped=skipped,
        last=latest,
        last_unknown=unknown,
    )


def _moved(found: Finding, by: int) -> Finding:
    return replace(found, start=found.start + by, end=found.end + by)


def _judged_all(series: Sequence[Series], policy: Policy) -> list[Series]:
    """Gives each finding its verdict. Chances are adjusted for the number of series with Holm's method.

    What is found in a series does not depend on the others. Only the verdict on it does.
    """
    alpha = 1 - policy.confidence
    tested = [one for one in series if not one.too_few]
    order = sorted(tested, key=lambda one: min([1.0, *(found.p for found in one.findings)]))
    factors = {id(one): len(order) - rank for rank, one in enumerate(order)}
    by_last = sorted(tested, key=lambda one: one.last.p if one.last else 1.0)
    of_last = {id(one): len(by_last) - rank for rank, one in enumerate(by_last)}

    def judge(one: Series, found: Finding, factor: dict[int, int]) -> Finding:
        return judged(found, min(1.0, found.p * factor[id(one)]), alpha, len(tested))

    return [
        replace(
            one,
            findings=[judge(one, found, factors) for found in one.findings],
            last=judge(one, one.last, of_last) if one.last else None,
        )
        for one in series
    ]
