"""What a person wants to know first of a diff: the time in syncs, its phases, and the files and threads that changed it.

These are means over the runs of a side. None is tested for significance.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.report.answer import with_unknown

from . import statistics
from .contributors import changed_most
from .run import Run, Side

__all__ = ["Answer", "Change", "answer"]

_KINDS = ("file", "thread")


@dataclass(frozen=True)
class Change:
    """A figure of both sides, per run. None: it is not known, or not of every run."""

    base: float | None
    new: float | None


@dataclass(frozen=True)
class Answer:
    """The figures, per run. Times are in ns.

    `phases`: time by phase, of base and of new; None if a run of the side does not record phases.
    `groups`: kind, name and time in syncs of what changed most. Several of a kind, or none.
    """

    syncs: Change
    time: Change
    phases: tuple[dict[str, float] | None, dict[str, float] | None]
    groups: list[tuple[str, str, Change]]


def answer(base: Side, new: Side) -> Answer:
    """Collects the figures."""
    return Answer(
        syncs=Change(_figure(base, "syncs"), _figure(new, "syncs")),
        time=Change(_figure(base, "sync_time_sum"), _figure(new, "sync_time_sum")),
        phases=(_phases(base), _phases(new)),
        groups=[
            (kind, name, Change(of_base, of_new))
            for kind in _KINDS
            for name, of_base, of_new in changed_most(base, new, kind, "time_ns", "both")
        ],
    )


def _figure(side: Side, metric: str) -> float | None:
    figures = [run.figures.get((metric, "all")) for run in side.runs]
    return statistics.mean([figure.value if figure else None for figure in figures])


def _phases(side: Side) -> dict[str, float] | None:
    """Returns the mean time by phase over the runs, the longest first, then what no phase covers."""
    runs = side.runs
    if not all(run.phases for run in runs if _may_have_syncs(run)):
        return None
    names = {name for run in runs for name in run.phases}
    means = {name: sum(run.phases.get(name, 0) for run in runs) / len(runs) for name in names}
    longest = dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))
    return with_unknown(longest, _figure(side, "sync_time_sum"))


def _may_have_syncs(run: Run) -> bool:
    figure = run.figures.get(("syncs", "all"))
    return figure is None or figure.value != 0
