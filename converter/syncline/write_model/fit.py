"""Parameters that a recording of writes shows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from . import estimate
from .estimate import Estimate
from .parameters import Parameters
from .predict import Outcome, Predicted, predict, relative_error, signed_error
from .writes import Write, Writes

__all__ = ["fit"]

_SECOND_NS = 1e9
# Fewer writes say little.
_LEAST = 8
# Half an interval, as a share of the value: what is less sure is not taken.
_SURE = 0.5
# The largest share of the call in the cost of writes that still show a bandwidth.
_CALL_SHARE = 0.5
# A reader takes "direct and synchronized writes" for both kinds of writes.
_BOTH = "writes that are both direct and synchronized"


def fit(parameters: Parameters, recorded: Writes) -> tuple[Parameters, list[str]]:
    """Returns the parameters with those replaced that the recording shows, and a sentence on each.

    The others stay. States are predicted with the old ones: which writes meet a flusher thread depends on the limits.
    """
    new, said = _fitted(parameters, recorded)
    said += _errors_ahead(parameters, recorded)
    notes = ("fitted to a recording by syncline model fit", *said)
    return replace(new, notes=notes), said


def _fitted(parameters: Parameters, recorded: Writes) -> tuple[Parameters, list[str]]:
    before = predict(parameters, recorded)
    found = _Found(parameters, has_overhead=recorded.has_overhead)
    bandwidth = "device_write_bytes_per_s"
    # Synchronized ones first: when they return, the device has the data. Those that may wait for a commit say nothing of a call.
    for kind, what, call in (
        ("direct_synchronized", f"{_BOTH}{_without_commits(parameters)}", "sync_write_call_ns"),
        ("direct", "writes that are direct only", "direct_write_call_ns"),
    ):
        of_kind = [one.write for one in _of_kind(before, kind, 0, None)]
        if bandwidth in found.estimates:
            found.rest(call, of_kind, what, bandwidth)
        else:
            found.line(of_kind, what, call, bandwidth)
    committing = [one.write for one in _of_kind(before, "direct_synchronized", 1)]
    what = f"{_BOTH} that wait for a commit"
    if committing and bandwidth not in found.estimates:
        found.slope(committing, what, bandwidth)
    if parameters.commit_ns is not None:
        found.rest("commit_ns", committing, what, bandwidth, "sync_write_call_ns")
    free = [one for one in _in_state(before, "free run") if one.write.size]
    # Making pages costs more than writing to those that are dirty, so writes that do both say nothing.
    made = [one.write for one in free if one.made_bytes == one.write.size]
    again = [one.write for one in free if not one.made_bytes]
    found.line(made, "writes of new pages in free run", "write_call_ns", "page_cache_bytes_per_s")
    found.bandwidth(again, "writes of dirty pages in free run", "write_call_ns", "rewrite_bytes_per_s")  # fmt: skip
    busy = [one.write for one in _in_state(before, "async run")]
    found.bandwidth(busy, "writes in async run", "write_call_ns", "reduced_bytes_per_s")
    _fit_durable(found, recorded)
    said = found.said()
    if both := len(free) - len(made) - len(again):
        said.append(f"not used: writes in free run that go partly to new pages and partly to dirty ones ({both:,})")  # fmt: skip
    if recorded.limits_bytes is not None:
        background, hard = recorded.limits_bytes
        parameters = replace(parameters, background_limit_bytes=background, hard_limit_bytes=hard)
        said.append("background_limit_bytes and hard_limit_bytes are those that the kernel used")
    return found.replaced(parameters), said


def _errors_ahead(parameters: Parameters, recorded: Writes) -> list[str]:
    """Returns how far off the writes of the second half are, with the old values and with those that the first half shows.

    An error of the values with the writes that they were fitted to would say nothing of the next run.
    """
    middle = len(recorded.writes) // 2
    if middle < _LEAST:
        return [
            f"how far off predictions are with the new values is not known: {len(recorded.writes)} writes are too few to fit to one half of"
            " them and to predict the other half"
        ]
    half, _ = _fitted(parameters, replace(recorded, writes=recorded.writes[:middle]))
    later = {id(one) for one in recorded.writes[middle:]}
    before, after = (
        [one for one in predict(known, recorded).predicted if id(one.write) in later]
        for known in (parameters, half)
    )
    said = [
        "median error of a write of the second half, and error of all of these together:"
        f" {_errors(before)} with the old values, {_errors(after)} with values that are fitted to the first half only"
    ]
    if (_median_error(after) or 0.0) > (_median_error(before) or 0.0):
        said.append("warning: fitted values predict single writes that they were not fitted to worse than the old values do")  # fmt: skip
    return said


def _without_commits(parameters: Parameters) -> str:
    return "" if parameters.commit_ns is None else " that wait for no commit"


def _fit_durable(found: _Found, recorded: Writes) -> None:
    """Adds the costs of a call and of a commit that direct writes do not show: from synchronized writes, or else from syncs."""
    for name, commits in (("sync_write_call_ns", (0, None)), ("commit_ns", (1,))):
        known = found.replaced(found.parameters)
        if name in found.estimates or (name == "commit_ns" and known.commit_ns is None):
            continue
        outcome = predict(known, recorded)
        ending = " that wait for a commit" if name == "commit_ns" else _without_commits(known)
        for kind, what in (
            ("synchronized", "synchronized writes through page cache"),
            ("sync", "syncs"),
        ):
            if name not in found.estimates:
                found.residual(name, _of_kind(outcome, kind, *commits), f"{what}{ending}")


def _median_error(predicted: Sequence[Predicted]) -> float | None:
    each = [relative_error(one.ns, one.write.duration_ns) for one in predicted]
    known = [one for one in each if one is not None]
    return statistics.median(known) if known else None


def _errors(predicted: Sequence[Predicted]) -> str:
    """Returns the median relative error of some writes, and the relative error of their sum."""
    middle = _median_error(predicted)
    whole = signed_error(sum(one.ns for one in predicted), sum(one.write.duration_ns for one in predicted))  # fmt: skip
    if middle is None or whole is None:
        return "not known"
    return f"{middle:.0%} and {whole:+.0%}"


def _of_kind(outcome: Outcome, kind: str, *commits: float | None) -> list[Predicted]:
    """Returns the writes of a kind with data, or syncs, that wait for one of these numbers of commits."""
    return [
        one
        for one in outcome.predicted
        if one.write.kind == kind and (one.write.size or kind == "sync") and one.commits in commits
    ]


def _in_state(outcome: Outcome, state: str) -> list[Predicted]:
    """Returns the cached writes that begin and end in a predicted state."""
    found, before = [], "free run"
    for one in outcome.predicted:
        if one.write.kind == "cached" and before == one.state == state:
            found.append(one)
        before = one.state
    return found


class _Found:
    """Estimates by parameter, and for each parameter what it is from, or why the old value stays."""

    def __init__(self, parameters: Parameters, *, has_overhead: bool) -> None:
        self.estimates: dict[str, Estimate] = {}
        self.parameters = parameters
        self._has_overhead = has_overhead
        self._from: dict[str, str] = {}
        self._why: dict[str, str] = {}
        # Parameters whose interval is not known, with the reason.
        self._unbounded: dict[str, str] = {}

    def replaced(self, parameters: Parameters) -> Parameters:
        """Returns parameters with the values that were found."""
        intervals = {
            **parameters.intervals,
            **{name: one.interval for name, one in self.estimates.items()},
        }
        return replace(
            parameters,
            **{name: one.value for name, one in self.estimates.items()},
            intervals={n: one for n, one in intervals.items() if n not in self._unbounded},
        )

    def said(self) -> list[str]:
        """Returns a sentence for each parameter that was looked for."""
        names = dict.fromkeys([*self._why, *self._from])
        said = [
            f"{name} is from {self._from[name]}"
            if name in self._from
            else f"{name} stays: {self._why[name]}"
            for name in names
        ]
        return said + [f"{name} has no interval: {why}" for name, why in self._unbounded.items()]

    def _take(self, name: str, found: Estimate, writes: Sequence[Write], what: str) -> None:
        self.estimates[name] = found
        self._from[name] = f"{len(writes):,} {what}"

    def _depends(self, name: str, *others: str) -> None:
        """Notes that a parameter has no interval, if it is what others leave and their error is not known."""
        if old := [one for one in others if one not in self.estimates or one in self._unbounded]:
            self._unbounded[name] = (
                f"it depends on {' and '.join(old)}, whose error this recording does not show"
            )

    def _half_ns(self, name: str) -> float:
        """Returns half the interval of a time that was found; 0 if it was not."""
        found = self.estimates.get(name)
        return (found.interval.high - found.interval.low) / 2 if found else 0.0

    def _keep(self, why: str, *names: str) -> None:
        for name in names:
            before = self._why.get(name)
            self._why[name] = f"{before}; {why}" if before else why

    def _are_enough(self, writes: Sequence[Write], what: str, *names: str) -> bool:
        if len(writes) < _LEAST:
            self._keep(f"{len(writes)} {what}, {_LEAST} needed", *names)
        return len(writes) >= _LEAST

    def line(self, writes: Sequence[Write], what: str, call: str, bandwidth: str) -> None:
        """Adds the cost of a call and a bandwidth, from a line through the costs of writes."""
        if not self._are_enough(writes, what, call, bandwidth):
            return
        points = [(one.size, one.duration_ns) for one in writes]
        if len({size for size, _ in points}) == 1:
            # The cost of a call and that of the data cannot be distinguished.
            self._keep(f"all {what} have one size; record at least two sizes", call)
            self.bandwidth(writes, what, call, bandwidth)
            return
        start, slope = estimate.line(points)
        if not _is_sure(slope):
            self._keep(f"the time of {what} does not clearly grow with the size", call, bandwidth)
            return
        self._take(bandwidth, slope.inverse(_SECOND_NS), writes, what)
        if _is_sure(start):
            self._take(call, start, writes, what)
        else:
            self._keep(f"the times of {what} vary too much", call)

    def slope(self, writes: Sequence[Write], what: str, bandwidth: str) -> None:
        """Adds a bandwidth, from a line through the costs of writes that begin with something that has no parameter."""
        if not self._are_enough(writes, what, bandwidth):
            return
        if len({one.size for one in writes}) == 1:
            self._keep(f"all {what} have one size", bandwidth)
            return
        _, slope = estimate.line([(one.size, one.duration_ns) for one in writes])
        if _is_sure(slope):
            self._take(bandwidth, slope.inverse(_SECOND_NS), writes, what)
        else:
            self._keep(f"the time of {what} does not clearly grow with the size", bandwidth)

    def residual(self, name: str, predicted: Sequence[Predicted], what: str) -> None:
        """Adds a cost that is a term of each prediction, from what writes take besides the others."""
        writes = [one.write for one in predicted]
        if not self._are_enough(writes, what, name):
            return
        old = self._value(name)
        others = [one.ns - old for one in predicted]
        measured = [one.duration_ns for one in writes]
        if sum(others) > _CALL_SHARE * sum(measured):
            self._keep(f"{what} mostly take the time of something else", name)
            return
        rest = estimate.mean([took - other for took, other in zip(measured, others, strict=True)])
        if _is_sure(rest):
            self._take(name, rest, writes, what)
            self._unbounded[name] = "it is what all other parameters leave of these writes"
        else:
            self._keep(f"the times of {what} vary too much", name)

    def rest(self, name: str, writes: Sequence[Write], what: str, bandwidth: str, *known: str) -> None:  # fmt: skip
        """Adds a cost, from what writes take besides the time of their data and other costs."""
        if not self._are_enough(writes, what, name):
            return
        per_byte = _SECOND_NS / self._value(bandwidth)
        known_ns = sum(map(self._value, known))
        rest = estimate.mean([one.duration_ns - one.size * per_byte - known_ns for one in writes])
        found = self.estimates.get(bandwidth)
        slower = _SECOND_NS / found.interval.low - per_byte if found else 0.0
        size = sum(one.size for one in writes) / len(writes)
        rest = rest.wider(size * slower + sum(map(self._half_ns, known)))
        if _is_sure(rest):
            self._take(name, rest, writes, what)
            self._depends(name, bandwidth, *known)
        else:
            self._keep(f"the times of {what} vary too much, or the data is most of them", name)

    def _value(self, name: str) -> float:
        """Returns the new value of a parameter, or else the old one; 0 if there is none."""
        found = self.estimates.get(name)
        return found.value if found else getattr(self.parameters, name) or 0.0

    def bandwidth(self, writes: Sequence[Write], what: str, call: str, name: str) -> None:
        """Adds a bandwidth, from the mean time of a byte without the cost of the call."""
        used = [one for one in writes if one.size]
        if not self._are_enough(used, what, name):
            return
        if self._has_overhead and call not in self.estimates:
            self._keep(
                f"the recorder's own work in {what} is not known, because {call} is not", name
            )
            return
        call_ns = self._value(call)
        # Else an error in the cost of the call would be a large one in the bandwidth.
        if call_ns * len(used) > _CALL_SHARE * sum(one.duration_ns for one in used):
            size = sum(one.size for one in used) / len(used)
            self._keep(f"{what} have {size:,.0f} bytes on average, so the call ({call}) is most of their cost", name)  # fmt: skip
            return
        average = estimate.mean([(one.duration_ns - call_ns) / one.size for one in used])
        average = average.wider(self._half_ns(call) * sum(1 / one.size for one in used) / len(used))
        if _is_sure(average):
            self._take(name, average.inverse(_SECOND_NS), used, what)
            self._depends(name, call)
        else:
            self._keep(f"the times of {what} vary too much", name)


def _is_sure(found: Estimate) -> bool:
    """Returns whether a time is above 0, and its interval is small enough to be of use."""
    half = (found.interval.high - found.interval.low) / 2
    return found.value > 0 and half <= _SURE * found.value
