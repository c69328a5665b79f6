"""Charts of `syncline model predict`: what each call costs over the bytes written so far, and what is dirty over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from syncline.write_model.parameters import Parameters
from syncline.write_model.predict import Outcome, Predicted

from .chart import Axis, Chart, Line
from .human import count

__all__ = ["charts"]

# A share of the whole time.
_GAP = 0.02
# More scenarios than these make a picture that nobody scrolls through.
_MOST = 12


def charts(outcome: Outcome, parameters: Parameters) -> list[Chart]:
    """Returns a chart for each kind of call of the first scenarios, and one of what is dirty. The first chart says how many are left out."""
    scenarios: dict[str, list[Predicted]] = {}
    for one in outcome.predicted:
        # Without scenarios, all writes share the page cache.
        scenarios.setdefault(one.write.scenario or "", []).append(one)
    left_out = len(scenarios) - _MOST
    notes = [f"{count(left_out, 'more scenario')} not drawn."] if left_out > 0 else []
    found = []
    for name, calls in list(scenarios.items())[:_MOST]:
        of = f" ({name})" if name else ""
        kinds: dict[str, list[Predicted]] = {}
        for one in calls:
            kinds.setdefault(one.write.kind, []).append(one)
        for kind, own in kinds.items():
            found.append(_cost(kind, of, own, notes, is_plan=outcome.is_plan))
            notes = []
        if any(one.made_bytes is not None or one.dirty_bytes for one in calls):
            found.append(_dirty(f"What is dirty{of}", calls, parameters))
    return found


def _cost(kind: str, of: str, calls: list[Predicted], notes: list[str], *, is_plan: bool) -> Chart:
    """Figures 4 to 8 of the paper of the model: measured, predicted, and by the bandwidth of the device alone. Syncs write nothing
    themselves, so they are counted.
    """
    is_sync = kind == "sync"
    places = [float(at) for at in accumulate(1 if is_sync else one.write.size for one in calls)]
    lines = [Line("predicted", list(zip(places, (one.ns for one in calls), strict=True)))]
    if not is_sync:
        naive = zip(places, (one.naive_ns for one in calls), strict=True)
        lines.append(Line("size / bandwidth of the device", list(naive)))
    if not is_plan:
        measured = zip(places, (float(one.write.duration_ns) for one in calls), strict=True)
        lines.append(Line("measured", list(measured), "dots"))
    x = (
        Axis("syncs so far", "count")
        if is_sync
        else Axis(f"bytes of {kind} writes so far", "bytes")
    )
    what = "a sync" if is_sync else f"a {kind} write"
    return Chart(f"What {what} costs{of}", x, Axis("cost of a call", "ns", "log"), lines, notes)


def _dirty(title: str, calls: list[Predicted], parameters: Parameters) -> Chart:
    """What is dirty after each call, and the limits at which the kernel begins to write back and to hold writers back."""
    begin = calls[0].write.start_ns
    ends = [float(one.write.end_ns - begin) for one in calls]
    predicted = [(at, float(one.dirty_bytes)) for at, one in zip(ends, calls, strict=True)]
    recorded = [
        (at, float(one.write.dirty_bytes))
        for at, one in zip(ends, calls, strict=True)
        if one.write.dirty_bytes is not None
    ]
    lines = [Line("predicted", [(0.0, 0.0), *_broken(calls, predicted)])]
    if recorded:
        lines.append(Line("recorded", recorded, "dots"))
    most = max(value for _, value in [*predicted, *recorded])
    for name, limit in (
        ("background limit", parameters.background_limit_bytes),
        ("hard limit", parameters.hard_limit_bytes),
    ):
        # A limit that is far away would press the curve to the ground.
        if limit <= 4 * most:
            lines.append(Line(name, [(0.0, float(limit))], "level"))
    return Chart(title, Axis("time", "ns"), Axis("dirty", "bytes"), lines)


def _broken(
    calls: list[Predicted], points: list[tuple[float, float]]
) -> Iterator[tuple[float, float | None]]:
    """Breaks a line where no call runs for long, because the kernel writes back meanwhile, at first fast and then not at all."""
    longest_ns = points[-1][0] * _GAP
    for before, after, point in zip(calls, calls[1:], points, strict=False):
        yield point
        if after.write.start_ns - before.write.end_ns > longest_ns:
            yield point[0], None
    yield points[-1]
