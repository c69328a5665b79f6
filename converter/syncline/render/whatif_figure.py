"""Charts of `syncline whatif`: latency and background writes by queue depth, and how the latencies are distributed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from syncline.model.whatif import Outcome, Setting

from .chart import Axis, Chart, Line

__all__ = ["charts"]


def _p99(one: Setting) -> float:
    return one.percentile_ns(99)


def _average(one: Setting) -> float:
    return one.average_ns


_FIGURES: tuple[tuple[str, Callable[[Setting], float]], ...] = (
    ("average", _average),
    ("p99", _p99),
)


def charts(outcome: Outcome) -> list[Chart]:
    """Returns the charts that have something to show. Settings without figures are named below the title."""
    told = [one for one in outcome.settings if one.unknown is None]
    untold = [one.name for one in outcome.settings if one.unknown is not None]
    notes = [f"No figures: {', '.join(untold)}."] if untold else []
    found = []
    controlled = [one for one in told if one.depth is None]
    # A chart by depth has room for one controller, as a level. Several have a chart of their own.
    by_depth = told if len(controlled) == 1 else [one for one in told if one.depth is not None]
    if any(one.kind == "what if" for one in by_depth):
        found.append(_latency(by_depth))
        if any(one.background_per_s is not None for one in by_depth):
            found.append(_background(by_depth))
    if len(controlled) > 1:
        found.append(_leads(told))
    found.append(_distribution(told))
    return [replace(found[0], notes=notes), *found[1:]]


def _depths(settings: list[Setting]) -> Axis:
    depths = sorted({one.depth for one in settings if one.depth is not None})
    return Axis("queue depth", "count", "log", tuple(depths))


def _latency(settings: list[Setting]) -> Chart:
    """Latency of a sync by queue depth: figure 5 of the paper of the controller. A controller, which has no depth of its own, is a level."""
    lines = []
    for name, figure in _FIGURES:
        predicted = [(float(one.depth), figure(one)) for one in _replayed(settings)]
        lines.append(Line(f"{name}, predicted", predicted))
        lines += [Line(f"{name}, measured", [(float(one.depth), figure(one))], "dots") for one in settings if one.kind == "measured" and one.depth]  # fmt: skip
        lines += [Line(f"{name}, {one.name}", [(0.0, figure(one))], "level") for one in settings if one.depth is None]  # fmt: skip
    latency = Axis("latency of a sync", "ns", "log")
    return Chart("Latency of a sync by queue depth", _depths(settings), latency, lines)


def _replayed(settings: list[Setting]) -> list[Setting]:
    found = [one for one in settings if one.kind == "what if" and one.depth is not None]
    return sorted(found, key=lambda one: one.depth or 0)


def _background(settings: list[Setting]) -> Chart:
    """What a low depth costs the others."""

    def points(kind: str, *, has_depth: bool = True) -> list[tuple[float, float]]:
        return sorted(
            (float(one.depth or 0), one.background_per_s)
            for one in settings
            if one.kind == kind
            and one.background_per_s is not None
            and (one.depth is not None) == has_depth
        )

    lines = [Line("predicted", points("what if")), Line("measured", points("measured"), "dots")]
    lines += [
        Line(one.name, [(0.0, one.background_per_s)], "level")
        for one in settings
        if one.depth is None and one.background_per_s is not None
    ]
    axis = Axis("bytes in a second", "bytes")
    title = "What threads without a sync write, by queue depth"
    return Chart(title, _depths(settings), axis, lines)


def _leads(settings: list[Setting]) -> Chart:
    """How much earlier a controller must know of a sync: figure 6 of its paper."""
    controlled = sorted((one for one in settings if one.depth is None), key=lambda one: one.lead_ns)
    lines = [
        Line(name, [(float(one.lead_ns), figure(one)) for one in controlled])
        for name, figure in _FIGURES
    ]
    lines += [
        Line("average, measured", [(0.0, one.average_ns)], "level")
        for one in settings
        if one.kind == "measured"
    ]
    return Chart(
        "Latency of a sync by how early its file is opened",
        Axis("from the opening to the sync", "ns"),
        Axis("latency of a sync", "ns", "log"),
        lines,
    )


def _distribution(settings: list[Setting]) -> Chart:
    """The share of syncs that are no slower than a latency: figure 10 of the paper of the controller."""
    lines = []
    for one in settings:
        # As in the table: the mean over the draws of the slowest, of the second slowest, and so on.
        values = [sum(same) / len(same) for same in zip(*one.draws_ns, strict=True)]
        points = [(value, (n + 1) / len(values)) for n, value in enumerate(values)]
        name = one.name if one.kind == "what if" else f"{one.kind}: {one.name}"
        if points:
            lines.append(Line(name, [(points[0][0], 0.0), *points], "steps"))
    return Chart(
        "Share of syncs that are no slower than a latency",
        Axis("latency of a sync", "ns", "log"),
        Axis("share of syncs", "share", ticks=(0, 0.25, 0.5, 0.75, 1)),
        lines,
    )
