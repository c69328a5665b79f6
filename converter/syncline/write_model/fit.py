"""Parameters that a recording of writes shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import estimate
from .estimate import Estimate
from .parameters import Parameters
from .predict import predict
from .writes import Write, Writes

__all__ = ["fit"]

_SECOND_NS = 1e9
# Fewer writes say little.
_LEAST = 8


def fit(parameters: Parameters, recorded: Writes) -> tuple[Parameters, list[str]]:
    """Returns the parameters with those replaced that the recording shows, and a sentence on each.

    The others stay. States are predicted with the old ones: which writes meet a flusher thread depends on the limits.
    """
    found = _Found()
    direct = [one for one in recorded.writes if one.kind == "direct"]
    found.line(direct, "direct writes", "sync_write_call_ns", "device_write_bytes_per_s")
    free = _in_state(parameters, recorded, "free run")
    found.line(free, "writes in free run", "write_call_ns", "page_cache_bytes_per_s")
    found.bandwidth(_in_state(parameters, recorded, "async run"), "writes in async run", "reduced_bytes_per_s")  # fmt: skip
    if recorded.limits_bytes is not None:
        background, hard = recorded.limits_bytes
        parameters = replace(parameters, background_limit_bytes=background, hard_limit_bytes=hard)
        found.said.append(
            "background_limit_bytes and hard_limit_bytes are those that the kernel used"
        )
    intervals = {name: one.interval for name, one in found.estimates.items()}
    fitted = replace(
        parameters,
        **{name: one.value for name, one in found.estimates.items()},
        intervals={**parameters.intervals, **intervals},
        notes=("fitted to a recording by syncline model fit", *found.said),
    )
    return fitted, found.said


def _in_state(parameters: Parameters, recorded: Writes, state: str) -> list[Write]:
    """Returns the writes that begin and end in a state, as the old parameters predict it."""
    found, before = [], "free run"
    for one in predict(parameters, recorded).predicted:
        if one.write.kind == "cached" and before == one.state == state:
            found.append(one.write)
        before = one.state
    return found


class _Found:
    """Estimates by parameter, and a sentence on each."""

    def __init__(self) -> None:
        self.estimates: dict[str, Estimate] = {}
        self.said: list[str] = []

    def line(self, writes: Sequence[Write], what: str, call: str, bandwidth: str) -> None:
        """Adds the cost of a call and a bandwidth, from a line through the costs of writes."""
        if len(writes) < _LEAST:
            self.said.append(f"{call} and {bandwidth} stay: {len(writes)} {what}, {_LEAST} needed")
            return
        points = [(one.size, one.duration_ns) for one in writes]
        if len({size for size, _ in points}) == 1:
            # The cost of a call and that of the data cannot be distinguished.
            self.said.append(f"{call} stays: all {what} have one size")
            self.bandwidth(writes, f"{what}, with their calls", bandwidth)
            return
        start, slope = estimate.line(points)
        if slope.interval.low <= 0:
            self.said.append(f"{call} and {bandwidth} stay: the time of {what} does not grow with the size")  # fmt: skip
            return
        self.estimates[call] = start.at_least(0)
        self.estimates[bandwidth] = slope.inverse(_SECOND_NS)
        self.said.append(f"{call} and {bandwidth} are from {len(writes):,} {what}")

    def bandwidth(self, writes: Sequence[Write], what: str, name: str) -> None:
        """Adds a bandwidth, from the mean time of a byte."""
        times = [one.duration_ns / one.size for one in writes if one.size]
        if len(times) < _LEAST:
            self.said.append(f"{name} stays: {len(times)} {what}, {_LEAST} needed")
            return
        average = estimate.mean(times)
        if average.interval.low <= 0:
            self.said.append(f"{name} stays: the times of {what} vary too much")
            return
        self.estimates[name] = average.inverse(_SECOND_NS)
        self.said.append(f"{name} is from {len(times):,} {what}")
