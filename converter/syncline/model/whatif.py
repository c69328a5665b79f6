"""What another queue depth would do to the syncs of a recording: the figures of several replays next to those measured.

A figure is given only where the recording bears it out: a model of the device predicts requests that it was not fitted
to, the replay at the recorded depth agrees with what was measured, and the recording has the depths that a replay needs.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .controller import Controller, Fixed
from .device import DISCIPLINES, dispatch_seen
from .program import Kind
from .replay import Model, Result, held_out, measured, replay
from .service import ENOUGH, TOLERANCE

__all__ = ["Outcome", "Setting", "whatif"]

# A replay draws the times in which threads wake up. Its figures are means of this many draws.
_DRAWS = 5
# Requests that are replayed for each setting, at most, if that is more than one draw. A million takes about a minute.
_MAX_REQUESTS = 100_000
# The average of few syncs is not exact itself. The check allows one standard error more, up to this share.
_CHANCE = 0.05
# A replay may issue this share of its requests at depths that the recording does not cover.
_UNCOVERED = 0.05


@dataclass(frozen=True)
class Setting:
    """The figures of one setting. Times are in ns.

    `kind`: `measured`, `check` (the replay at the recorded depth), or `what if`.
    `depth`: None if a controller sets it. `lead_ns`: how long before a sync the controller knows of it; 0 without one.
    `draws_ns`: latencies of all syncs in each draw, sorted; none if `unknown` says why there are no figures.
    `background_per_s`: bytes that threads without a sync wrote in a second; None if there are none.
    `background_ns`: when they had written what they wrote in the recording.
    """

    kind: str
    name: str
    depth: int | None
    draws_ns: list[list[int]]
    end_ns: float
    background_per_s: float | None
    background_ns: float | None
    lead_ns: int = 0
    unknown: str | None = None

    @property
    def latencies_ns(self) -> list[int]:
        """Returns the latencies of all draws together, sorted."""
        return sorted(latency for draw in self.draws_ns for latency in draw)

    @property
    def average_ns(self) -> float:
        """Returns the average latency."""
        return self._mean(lambda values: sum(values) / len(values))

    @property
    def max_ns(self) -> float:
        """Returns the latency of the slowest sync."""
        return self._mean(lambda values: values[-1])

    def percentile_ns(self, percent: float) -> float:
        """Returns a percentile of the latency, interpolated as in the reports.

        It is the mean over the draws. A percentile of all draws together lies elsewhere between the same values, because
        it interpolates between more of them.
        """

        def of(values: list[int]) -> float:
            place = (len(values) - 1) * percent / 100
            low = math.floor(place)
            high = min(low + 1, len(values) - 1)
            return values[low] + (values[high] - values[low]) * (place - low)

        return self._mean(of)

    def _mean(self, figure: Callable[[list[int]], float]) -> float:
        return sum(figure(draw) for draw in self.draws_ns) / len(self.draws_ns)


@dataclass(frozen=True)
class Outcome:
    """All settings, the measured one first and the check second, and what the model assumes, in sentences.

    `discipline`: the one that is replayed; None if it is not known.
    `unknown`: why the recording cannot answer at all, and what to do next.
    """

    model: Model
    discipline: str | None
    settings: list[Setting]
    assumptions: list[str] = field(default_factory=list)
    unknown: tuple[str, str] | None = None

    @property
    def answers(self) -> bool:
        """Returns whether a setting has figures that were not measured at its own depth."""
        return self.unknown is None and any(
            one.kind == "what if" and one.unknown is None for one in self.settings
        )


def whatif(
    model: Model, controllers: Sequence[Controller], discipline: str | None, *, is_known: bool
) -> Outcome:
    """Replays the recording at the recorded depth, and with each controller.

    Args:
        discipline: one of DISCIPLINES; None takes what the recording shows.
        is_known: the user has given the parallelism of the device.
    """
    settings = [_setting("measured", Fixed(model.depth), [measured(model)])]
    source = "as given"
    if discipline is None:
        discipline, source = _recorded(model)
    tried = [discipline] if discipline else list(DISCIPLINES)
    if (unknown := _unexplained(model, is_known=is_known)) is not None:
        return Outcome(model, discipline, settings, list(model.recording.notes), unknown)
    checks = {one: _check(model, one) for one in tried}
    real = settings[0]
    allowed = TOLERANCE + min(_standard_error(real), _CHANCE)
    agreeing = [one for one in tried if abs(_error(checks[one], real)) <= allowed]
    best = min(tried, key=lambda one: abs(_error(checks[one], real)))
    settings.append(checks[best])
    if not agreeing:
        said = (
            f"the replay at the recorded {real.name} is {100 * _error(checks[best], real):+.0f} % off for the average sync,"
            f" and more than {100 * allowed:.0f} % says that it lacks a cause"
        )
        return Outcome(
            model,
            discipline,
            settings,
            list(model.recording.notes),
            (said, "record the depths that you ask about, and compare them: syncline diff"),
        )
    for controller in controllers:
        settings.append(_what_if(model, controller, agreeing))
    assumptions = _assumptions(model, settings, is_known=is_known)
    with_notes = [one for one in controllers if one.notes()]
    for one in with_notes:
        of = f"{one.name}: " if len(with_notes) > 1 else ""
        assumptions += [f"{of}{note}" for note in one.notes()]
    if discipline is None:
        assumptions.append(
            "the scheduler is not recorded, and nothing that waited shows how requests are dispatched: figures are those on"
            f" which {', '.join(agreeing)} agree"
        )
    else:
        assumptions.append(f"requests are dispatched by {discipline}, {source}")
    if discipline == "sync-first" and (same := _same_order(model)):
        assumptions.append(same)
    return Outcome(model, discipline, settings, assumptions)


def _recorded(model: Model) -> tuple[str | None, str]:
    """Returns how requests were dispatched, and how that is known."""
    if model.recording.scheduler == "none":
        return "tags", "because the device has the scheduler none"
    seen = dispatch_seen(model.recording.requests)
    return seen, "because requests that waited were issued so"


def _unexplained(model: Model, *, is_known: bool) -> tuple[str, str] | None:
    """Returns why no model of the device can be used, and what to do; None if one can."""
    best = model.device
    if model.covered is None or best.error is None:
        return (
            f"the recording has {len(model.recording.requests):,} requests, which are too few or vary too much to test a model of the"
            " device on requests that it was not fitted to",
            "record a longer run of this load",
        )
    if best.holds:
        return None
    said = "; ".join(
        f"{one.name}: {one.contradicted or ('too few requests to tell' if one.error is None else f'off by {100 * one.error:.0f} %')}"
        for one in model.explanations
    )
    low, high = model.covered
    hint = (
        "leave out --parallelism, so that other models of the device are tried"
        if is_known
        else f"record the depths that you ask about, and compare them: syncline diff; this recording has from {low} to {high} requests at the"
        " device"
    )
    return (
        f"no model of the device explains the recording within {100 * TOLERANCE:.0f} %, out of sample ({said})",
        hint,
    )


def _check(model: Model, discipline: str) -> Setting:
    """Replays at the recorded depth, with service times that are not those of the same requests."""
    results = [
        replay(held_out(model, seed), Fixed(model.depth), discipline, seed)
        for seed in range(_draws(model))
    ]
    return _setting("check", Fixed(model.depth), results)


def _draws(model: Model) -> int:
    return max(1, min(_DRAWS, _MAX_REQUESTS // len(model.recording.requests)))


def _error(one: Setting, real: Setting) -> float:
    """Returns the relative error of the average."""
    return one.average_ns / real.average_ns - 1 if real.average_ns else 0.0


def _standard_error(one: Setting) -> float:
    """Returns how far chance moves the average of so many syncs, as a share of it."""
    if len(one.draws_ns[0]) < 2 or not one.average_ns:
        return 0.0
    deviation = statistics.stdev(one.draws_ns[0])
    return deviation / math.sqrt(len(one.draws_ns[0])) / one.average_ns


def _what_if(model: Model, controller: Controller, disciplines: Sequence[str]) -> Setting:
    """Replays with a controller, unless the recording does not tell what would happen."""
    found: dict[str, Setting] = {}
    for discipline in disciplines:
        # Only the times in which threads wake up are drawn.
        draws = _draws(model) if discipline == DISCIPLINES[0] else 1
        results = [replay(model, controller, discipline, seed) for seed in range(draws)]
        if (outside := _outside(model, controller, results)) is not None:
            return _setting("what if", controller, [], outside)
        found[discipline] = _setting("what if", controller, results)
    averages = [one.average_ns for one in found.values()]
    if max(averages) > (1 + TOLERANCE) * min(averages):
        said = ", ".join(
            f"{one.average_ns / 1e6:,.1f} ms with {name}" for name, one in found.items()
        )
        return _setting(
            "what if",
            controller,
            [],
            f"it depends on how requests are dispatched, which is not recorded (the average is {said}): name it with --dispatch",
        )
    return found[disciplines[0]]


def _outside(model: Model, controller: Controller, results: Sequence[Result]) -> str | None:
    """Returns a sentence if a replay needs depths that the recording does not have."""
    if model.covered is None:
        return None
    low, high = model.covered
    met = sum((result.depths for result in results), Counter[int]())
    below = Counter({depth: number for depth, number in met.items() if depth < low})
    above = Counter({depth: number for depth, number in met.items() if depth > high})
    few = f"the recording does not cover it, because fewer than {ENOUGH} requests found"
    if below.total() > _UNCOVERED * met.total():
        usual = below.most_common(1)[0][0]
        return f"{few} less than {low} at the device, themselves included: record at depth {usual}"
    if above.total() > _UNCOVERED * met.total():
        return f"{few} more than {high} at the device, themselves included: record at depth {controller.largest_depth}"
    return None


def _same_order(model: Model) -> str | None:
    """Returns a sentence if `sync-first` has nothing to prefer."""
    preferred = sum(request.is_sync for request in model.recording.requests)
    if 0 < preferred < len(model.recording.requests):
        return None
    which = "every request has" if preferred else "no request has"
    return f"{which} the flag REQ_SYNC (somebody waits for it), so sync-first issues requests in the order of fifo"


def _setting(
    kind: str, controller: Controller, results: Sequence[Result], unknown: str | None = None
) -> Setting:
    depth = controller.largest_depth if isinstance(controller, Fixed) else None
    if unknown is not None:
        return Setting(kind, controller.name, depth, [], 0, None, None, controller.lead_ns, unknown)
    has_background = any(result.background_end_ns is not None for result in results)
    end = sum(result.end_ns for result in results)
    ends = [result.background_end_ns for result in results if result.background_end_ns is not None]
    return Setting(
        kind,
        controller.name,
        depth,
        [sorted(result.latencies_ns) for result in results],
        end / len(results),
        1e9 * sum(result.background_bytes for result in results) / end if has_background and end else None,
        sum(ends) / len(ends) if ends else None,
        controller.lead_ns,
    )  # fmt: skip


# A journal of ext4 commits at least this often.
_COMMIT_INTERVAL_NS = 5_000_000_000


def _own_share(model: Model) -> float:
    """Returns the share of the time of syncs that their threads spend between all that a replay knows."""
    own = 0
    for program in model.threads:
        is_inside = False
        for step in program.steps:
            if is_inside:
                own += step.delay_after_issue_ns if step.after_issue else step.delay_ns
            if step.kind in (Kind.SYNC_START, Kind.SYNC_END):
                is_inside = step.kind is Kind.SYNC_START
    whole = sum(sync.end_ns - sync.start_ns for sync in model.recording.syncs)
    return own / whole if whole else 0.0


def _assumptions(model: Model, settings: Sequence[Setting], *, is_known: bool) -> list[str]:
    found = list(model.recording.notes)
    found.append(
        f"the device is {model.device.name}, {'as given' if is_known else 'which fits the recording best'}"
    )
    if model.drains:
        found.append(
            "a sync ends when all that was at the device is complete, as after a flush, which the recording does not have"
        )
    elif (share := _own_share(model)) > TOLERANCE:
        found.append(
            f"{100 * share:.0f} % of the time of syncs is neither a wait for a request nor for a commit: it stays unchanged"
        )
    reads = (
        "threads without a sync read as much as in the recording"
        if any(request.is_read for request in model.recording.requests)
        else "reads are not in this recording and take no time"
    )
    found.append(f"each request takes as long as it took; the device has one queue; {reads}")
    late = [
        one.name
        for one in settings[2:]
        if one.unknown is None and one.percentile_ns(50) > _COMMIT_INTERVAL_NS
    ]
    if late and model.commits:
        found.append(
            f"commits that a timer starts are those of the recording; syncs of {'; '.join(late)} take"
            " longer than its usual 5 s, so there would be more"
        )
    return found
