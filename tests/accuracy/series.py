"""Series of runs whose changes are known: what `syncline trend` finds in them, and what other packages find.

ruptures, apache-otava and otava-test-data are compared if they are installed; nothing else needs them.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.comparison.comparison import Row as Judged
from syncline.comparison.policy import Policy
from syncline.trend.findings import Finding, find, judged, last_runs

from tests.accuracy.run import Row

TITLE = "trend"
RUNS = 40
# A place that is this far off is that change too: with a step of three spreads, chance moves it by two runs in 3 of 100.
_NEAR = 2


@dataclass(frozen=True)
class Case:
    """A kind of series."""

    name: str
    # The factor of each run by its index.
    level: Callable[[int], float]
    spread: float
    # Runs at which the level changes, and the kind of what Syncline should find; "" if nothing changes.
    places: tuple[int, ...] = ()
    kind: str = ""
    correlation: float = 0.0
    # "" without a target, else at most (no change) or at least (a change) this many of 100.
    target: int | None = None

    def series(self, seed: int) -> list[float]:
        dice = random.Random(f"{self.name} {seed}")
        noise = dice.gauss(0, 1)
        fresh = math.sqrt(1 - self.correlation**2)
        values = []
        for run in range(RUNS):
            values.append(100 * self.level(run) * math.exp(self.spread * noise))
            noise = self.correlation * noise + fresh * dice.gauss(0, 1)
        return values


def step(at: int, factor: float) -> Callable[[int], float]:
    return lambda run: factor if run >= at else 1.0


def episode(start: int, end: int, factor: float) -> Callable[[int], float]:
    return lambda run: factor if start <= run < end else 1.0


CASES = (
    Case("no change, 3 % noise", step(0, 1), 0.03, target=5),
    Case("no change, correlation 0.3", step(0, 1), 0.03, correlation=0.3, target=10),
    Case("no change, correlation 0.5", step(0, 1), 0.03, correlation=0.5, target=10),
    Case("+10 %, 3 % noise", step(20, 1.1), 0.03, (20,), "step", target=95),
    Case("+10 %, 5 % noise", step(20, 1.1), 0.05, (20,), "step"),
    Case("+10 % with 5 runs to go, 3 % noise", step(35, 1.1), 0.03, (35,), "step"),
    Case("+10 % twice, 3 % noise", lambda run: 1.1 ** ((run >= 13) + (run >= 26)), 0.03, (13, 26), "step"),
    Case("x2 for 4 and back, 10 % noise", episode(18, 22, 2), 0.1, (18, 22), "episode"),
    Case("x2 for 6 and back, 10 % noise", episode(18, 24, 2), 0.1, (18, 24), "episode", target=95),
    Case("x2 for 10 and back, 10 % noise", episode(18, 28, 2), 0.1, (18, 28), "episode"),
    Case("x2 for 6 and back, 20 % noise", episode(18, 24, 2), 0.2, (18, 24), "episode"),
    Case("x1.3 in the last two, 3 % noise", step(38, 1.3), 0.03, (38,), "step", target=90),
    Case("x1.3 in the last two, 5 % noise", step(38, 1.3), 0.05, (38,), "step", target=90),
    Case("x1.3 in the last two, 10 % noise", step(38, 1.3), 0.1, (38,), "step"),
    Case("+30 % in a straight line, 3 % noise", lambda run: 1 + 0.3 * run / 39, 0.03, (), "drift"),
)  # fmt: skip

_CRITERIA = Policy().criteria("", "all", "syscall_latency_avg", "ns", gate=True)
_LIKE = Judged("", "all", "syscall_latency_avg", "ns", None, None, [], [], _CRITERIA)


def findings(values: Sequence[float]) -> list[Finding]:
    return [judged(one, one.p, 0.05, 1) for one in find(values, "ns", _LIKE, 0.05)]


def places_of(found: Sequence[Finding]) -> list[int]:
    """Returns the runs at which findings say that the level changes."""
    return [
        at
        for one in found
        for at in ((one.start, one.end) if one.kind == "episode" else (one.start,))
        if one.kind != "drift"
    ]


def has_all(places: Sequence[int], truth: Sequence[int]) -> bool:
    return all(any(abs(place - at) <= _NEAR for place in places) for at in truth)


def is_found(case: Case, found: Sequence[Finding]) -> bool:
    """Returns whether the findings are of the kind, at the places, and for the worse."""
    kinds = [one for one in found if one.kind == case.kind and one.row.verdict == "regression"]
    return bool(kinds) and has_all(places_of(kinds), case.places)


def others() -> dict[str, Callable[[Sequence[float]], list[int]]]:
    """Returns the methods of installed packages, which return the runs at which the level changes."""
    found: dict[str, Callable[[Sequence[float]], list[int]]] = {}
    if importlib.util.find_spec("ruptures"):
        found["ruptures PELT, l2, BIC"] = functools.partial(_pelt, kernel="linear")
        found["ruptures PELT, rbf"] = functools.partial(_pelt, kernel="rbf")
    if importlib.util.find_spec("otava"):
        found["apache-otava 0.001"] = _otava
    return found


def _pelt(values: Sequence[float], kernel: str) -> list[int]:
    import numpy as np
    import ruptures

    logs = np.log(np.asarray(values))
    spread = 1.4826 * np.median(np.abs(np.diff(logs))) / math.sqrt(2) or 1e-9
    scaled = (logs / spread).reshape(-1, 1)
    # Twice log n for each change on the l2 cost, whose noise is 1. The cost of rbf is at most 1 a run.
    pen = 2 * math.log(len(values)) * (1 if kernel == "linear" else 0.5)
    places: Any = ruptures.KernelCPD(kernel=kernel, min_size=2, jump=1).fit(scaled).predict(pen=pen)
    return [int(at) for at in places[:-1]]


def _otava(values: Sequence[float]) -> list[int]:
    from otava.analysis import compute_change_points

    found, _ = compute_change_points([*values], max_pvalue=0.001)
    return [int(one.index) for one in found]


def rows(seed: int, count: int) -> Iterator[Row]:
    packages = others()
    for case in CASES:
        cells = dict.fromkeys(["trend", "trend --since-last 2", *packages], 0)
        for number in range(count):
            values = case.series(seed * 1000 + number)
            found = findings(values)
            last = last_runs(values, "ns", _LIKE, 2, 0.05)
            is_worse = not isinstance(last, str) and judged(last, last.p, 0.05, 1).row.verdict == "regression"  # fmt: skip
            cells["trend --since-last 2"] += is_worse
            cells["trend"] += is_found(case, found) if case.kind else bool(found)
            for name, method in packages.items():
                places = method(values)
                cells[name] += has_all(places, case.places) if case.places else bool(places)
        limit = None if case.target is None else case.target * count / 100
        most = not case.kind
        yield Row(
            f"{case.name}: {'alarms' if most else 'found'}",
            {name: str(value) for name, value in cells.items()},
            "" if limit is None else f"{'at most' if most else 'at least'} {limit:g}",
            limit is None or (cells["trend"] <= limit if most else cells["trend"] >= limit),
        )
    yield from _patterns(seed, max(1, count // 5), packages)


def _patterns(
    seed: int, count: int, packages: dict[str, Callable[[Sequence[float]], list[int]]]
) -> Iterator[Row]:
    """Yields the patterns of otava-test-data, each with its default noise and 50 runs."""
    if not importlib.util.find_spec("otava_test_data"):
        return
    from otava_test_data.generators import advanced, basic

    noisy: dict[str, tuple[Any, dict[str, Any]]] = {
        "constant": (basic.constant, {}),
        "normal noise": (basic.noise_normal, {}),
        "uniform noise": (basic.noise_uniform, {}),
        "outlier": (basic.outlier, {"sigma": 5.0}),
        "step": (basic.step_function, {"sigma": 5.0}),
        "regression and fix": (basic.regression_fix, {"sigma": 5.0}),
        "banding": (advanced.banding, {"sigma": 2.0}),
        "variance change": (advanced.variance_change, {}),
        "phase change": (advanced.phase_change, {"sigma": 2.0}),
        "multiple changes": (advanced.multiple_changes, {"sigma": 5.0}),
        "multiple outliers": (advanced.multiple_outliers, {"sigma": 5.0}),
        "multiple variance changes": (advanced.multiple_variance_changes, {}),
    }
    clean = {
        f"{name}, clean": (noisy[name][0], {"sigma": 0.0})
        for name in ("step", "multiple changes", "regression and fix", "banding", "outlier")
    }
    for name, (generate, options) in (noisy | clean).items():
        cells = dict.fromkeys(["trend", *packages], 0)
        truth: list[int] = []
        for number in range(count):
            made = generate(length=50, seed=seed % 10**6 * 1000 + number, **options)
            values = [float(value) for value in made.data]
            levels = ("step", "regression_start", "regression_end")
            truth = [one.index for one in made.change_points if one.change_type in levels]
            answers = {"trend": places_of(findings(values)) if truth else findings(values)}
            answers |= {package: method(values) for package, method in packages.items()}
            for package, places in answers.items():
                cells[package] += has_all(places, truth) if truth else bool(places)  # type: ignore[arg-type]
        what = f"found {len(truth)}" if truth else "alarms"
        values_of = {name: f"{value} of {count}" for name, value in cells.items()}
        yield Row(
            f"otava-test-data, {name}: {what}",
            {"trend": values_of.pop("trend"), "trend --since-last 2": ""} | values_of,
        )
