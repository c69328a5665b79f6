"""Parameters that a recording of writes shows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from . import estimate
from .estimate import Estimate
from .parameters import Parameters
from .predict import Outcome, Predicted, predict, relative_error
from .writes import Write, Writes

__all__ = ["fit"]

_SECOND_NS = 1e9
# Fewer writes say little.
_LEAST = 8
# Half an interval, as a share of the value: what is less sure is not taken.
_SURE = 0.5
# Of the cost of writes, for a bandwidth.
_CALL_SHARE = 0.5


def fit(parameters: Parameters, recorded: Writes) -> tuple[Parameters, list[str]]:
    """Returns the parameters with those replaced that the recording shows, and a sentence on each.

    The others stay. States are predicted with the old ones: which writes meet a flusher thread depends on the limits.
    """
    before = predict(parameters, recorded)
    found = _Found(parameters)
    for kind, what, call in (
        ("direct", "direct writes that are not synchronized", "direct_write_call_ns"),
        # The last one counts for the bandwidth: its writes are at the device when they return.
        ("direct_synchronized", "direct and synchronized writes", "sync_write_call_ns"),
    ):
        of_kind = [one for one in recorded.writes if one.kind == kind]
        found.line(of_kind, what, call, "device_write_bytes_per_s")
    free = _in_state(parameters, recorded, "free run")
    # Making pages costs more than writing to those that are dirty, so writes that do both say nothing.
    made = [one.write for one in free if one.made_bytes == one.write.size]
    again = [one.write for one in free if not one.made_bytes]
    found.line(made, "writes of new pages in free run", "write_call_ns", "page_cache_bytes_per_s")
    found.bandwidth(again, "writes of dirty pages in free run", "write_call_ns", "rewrite_bytes_per_s")  # fmt: skip
    if both := len(free) - len(made) - len(again):
        found.said.append(f"{both:,} writes in free run are not used: a part of each goes to new pages, and the rest to dirty ones")  # fmt: skip
    busy = [one.write for one in _in_state(parameters, recorded, "async run")]
    found.bandwidth(busy, "writes in async run", "write_call_ns", "reduced_bytes_per_s")
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
    )
    after = predict(fitted, recorded)
    found.said.append(
        f"median error of a write, and error of all together: {_errors(before)} with the old values, {_errors(after)} with the new ones"
    )
    notes = ("fitted to a recording by syncline model fit", *found.said)
    return replace(fitted, notes=notes), found.said


def _errors(outcome: Outcome) -> str:
    """Returns the median relative error of the writes of an outcome, and the relative error of their sum."""
    each = [relative_error(one.ns, one.write.duration_ns) for one in outcome.predicted]
    known = [one for one in each if one is not None]
    measured = sum(one.write.duration_ns for one in outcome.predicted)
    if not known or not measured:
        return "not known"
    whole = sum(one.ns for one in outcome.predicted) / measured - 1
    return f"{statistics.median(known):.0%} and {whole:+.0%}"


def _in_state(parameters: Parameters, recorded: Writes, state: str) -> list[Predicted]:
    """Returns the cached writes that begin and end in a state, as the old parameters predict it."""
    found, before = [], "free run"
    for one in predict(parameters, recorded).predicted:
        if one.write.kind == "cached" and before == one.state == state:
            found.append(one)
        before = one.state
    return found


class _Found:
    """Estimates by parameter, and a sentence on each."""

    def __init__(self, parameters: Parameters) -> None:
        self.estimates: dict[str, Estimate] = {}
        self.said: list[str] = []
        self._parameters = parameters

    def line(self, writes: Sequence[Write], what: str, call: str, bandwidth: str) -> None:
        """Adds the cost of a call and a bandwidth, from a line through the costs of writes."""
        if len(writes) < _LEAST:
            self.said.append(f"{self._kept(call, bandwidth)}: {len(writes)} {what}, {_LEAST} needed")  # fmt: skip
            return
        points = [(one.size, one.duration_ns) for one in writes]
        if len({size for size, _ in points}) == 1:
            # The cost of a call and that of the data cannot be distinguished.
            self.said.append(f"{call} stays: all {what} have one size")
            self.bandwidth(writes, what, call, bandwidth)
            return
        start, slope = estimate.line(points)
        if not _is_sure(slope):
            self.said.append(f"{self._kept(call, bandwidth)}: the time of {what} does not clearly grow with the size")  # fmt: skip
            return
        self.estimates[bandwidth] = slope.inverse(_SECOND_NS)
        if _is_sure(start):
            self.estimates[call] = start
            self.said.append(f"{call} and {bandwidth} are from {len(writes):,} {what}")
        else:
            self.said.append(f"{bandwidth} is from {len(writes):,} {what}; {call} stays: their times vary too much")  # fmt: skip

    def _kept(self, call: str, bandwidth: str) -> str:
        """Names what stays. Other writes may have given the bandwidth."""
        return f"{call} stays" if bandwidth in self.estimates else f"{call} and {bandwidth} stay"

    def bandwidth(self, writes: Sequence[Write], what: str, call: str, name: str) -> None:
        """Adds a bandwidth, from the mean time of a byte without the cost of the call."""
        used = [one for one in writes if one.size]
        if len(used) < _LEAST:
            self.said.append(f"{name} stays: {len(used)} {what}, {_LEAST} needed")
            return
        known = self.estimates.get(call)
        call_ns = known.value if known else getattr(self._parameters, call) or 0.0
        # Else an error in the cost of the call would be a large one in the bandwidth.
        if call_ns * len(used) > _CALL_SHARE * sum(one.duration_ns for one in used):
            size = sum(one.size for one in used) / len(used)
            self.said.append(f"{name} stays: {what} have {size:,.0f} bytes on average, so the call ({call}) is most of their cost")  # fmt: skip
            return
        average = estimate.mean([(one.duration_ns - call_ns) / one.size for one in used])
        if not _is_sure(average):
            self.said.append(f"{name} stays: the times of {what} vary too much")
            return
        self.estimates[name] = average.inverse(_SECOND_NS)
        self.said.append(f"{name} is from {len(used):,} {what}")


def _is_sure(found: Estimate) -> bool:
    """Returns whether a time is above 0, and its interval is small enough to be of use."""
    half = (found.interval.high - found.interval.low) / 2
    return found.value > 0 and half <= _SURE * found.value
