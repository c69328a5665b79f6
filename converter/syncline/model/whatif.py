"""What another queue depth would do to the syncs of a recording: the figures of several replays next to those measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from .controller import Controller, Fixed
from .replay import Model, Result, measured, replay

__all__ = ["Outcome", "Setting", "whatif"]

# A replay draws the times in which threads wake up. Its figures are those of this many draws together.
_DRAWS = 5
# Requests that are replayed for each setting, at most, if that is more than one draw. A million takes about a minute.
_MAX_REQUESTS = 100_000


@dataclass(frozen=True)
class Setting:
    """The figures of one setting. Times are in ns.

    `kind`: `measured`, `check` (the replay at the recorded depth), or `what if`.
    `latencies_ns`: of all syncs, sorted; of a replay, those of all its draws.
    `background_per_s`: bytes that threads without a sync wrote in a second; None if there are none.
    `background_ns`: when they had written what they wrote in the recording.
    """

    kind: str
    name: str
    latencies_ns: list[int]
    end_ns: float
    background_per_s: float | None
    background_ns: float | None

    @property
    def average_ns(self) -> float:
        """Returns the average latency."""
        return sum(self.latencies_ns) / len(self.latencies_ns)

    def percentile_ns(self, percent: float) -> float:
        """Returns a percentile of the latency, interpolated as in the reports."""
        place = (len(self.latencies_ns) - 1) * percent / 100
        low = math.floor(place)
        high = min(low + 1, len(self.latencies_ns) - 1)
        values = self.latencies_ns
        return values[low] + (values[high] - values[low]) * (place - low)


@dataclass(frozen=True)
class Outcome:
    """All settings, the measured one first and the check second, and what the model assumes, in sentences."""

    model: Model
    discipline: str
    settings: list[Setting]
    assumptions: list[str] = field(default_factory=list)


def whatif(
    model: Model, controllers: Sequence[Controller], discipline: str, *, is_known: bool
) -> Outcome:
    """Replays the recording at the recorded depth, and with each controller.

    Args:
        is_known: the user has given the parallelism of the device.
    """
    draws = max(1, min(_DRAWS, _MAX_REQUESTS // len(model.recording.requests)))
    settings = [_setting("measured", f"depth {model.depth}", [measured(model)])]
    for kind, controller in [
        ("check", Fixed(model.depth)),
        *(("what if", one) for one in controllers),
    ]:
        results = [replay(model, controller, discipline, seed) for seed in range(draws)]
        settings.append(_setting(kind, controller.name, results))
    assumptions = _assumptions(model, controllers, settings, is_known=is_known)
    for controller in controllers:
        assumptions += controller.notes()
    if discipline == "sync-first" and (same := _same_order(model)):
        assumptions.append(same)
    return Outcome(model, discipline, settings, assumptions)


def _same_order(model: Model) -> str | None:
    """Returns a sentence if `sync-first` has nothing to prefer."""
    preferred = sum(request.is_sync for request in model.recording.requests)
    if 0 < preferred < len(model.recording.requests):
        return None
    which = "every request has" if preferred else "no request has"
    return f"{which} the flag REQ_SYNC (somebody waits for it), so sync-first issues requests in the order of fifo"


def _setting(kind: str, name: str, results: Sequence[Result]) -> Setting:
    has_background = any(result.background_end_ns is not None for result in results)
    end = sum(result.end_ns for result in results)
    ends = [result.background_end_ns for result in results if result.background_end_ns is not None]
    return Setting(
        kind,
        name,
        sorted(latency for result in results for latency in result.latencies_ns),
        end / len(results),
        1e9 * sum(result.background_bytes for result in results) / end if has_background and end else None,
        sum(ends) / len(ends) if ends else None,
    )  # fmt: skip


# A journal of ext4 commits at least this often.
_COMMIT_INTERVAL_NS = 5_000_000_000


def _assumptions(
    model: Model, controllers: Sequence[Controller], settings: Sequence[Setting], *, is_known: bool
) -> list[str]:
    found = list(model.recording.notes)
    found.append(
        f"the device serves {model.parallelism} request{'s' * (model.parallelism != 1)} at once, "
        + ("as given" if is_known else "which fits the recording best")
    )
    deeper = [one for one in controllers if one.largest_depth > model.depth]
    if deeper and not is_known and model.parallelism >= model.depth:
        found.append(
            f"no more than {model.depth} request{'s were' if model.depth != 1 else ' was'} ever at the device, so it may serve more at once:"
            " the figures of larger depths are then too slow; --parallelism N says how many"
        )
    reads = (
        "threads without a sync read as much as in the recording"
        if any(request.is_read for request in model.recording.requests)
        else "reads are not in this recording and take no time"
    )
    found.append(f"each request takes as long as it took; the device has one queue; {reads}")
    late = [one.name for one in settings[2:] if one.percentile_ns(50) > _COMMIT_INTERVAL_NS]
    if late and model.commits:
        found.append(
            f"commits that a timer starts are those of the recording; syncs of {', '.join(late)} take"
            " longer than its usual 5 s, so there would be more"
        )
    return found
