"""The rules of a policy, and how each row is judged by them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from syncline.errors import InputError

from .metrics import (
    DEFAULT_GATE,
    GROUP_METRICS,
    NO_DIRECTION,
    PHASE_METRICS,
    Tolerance,
    Worse,
    default_tolerance,
)

__all__ = ["AMOUNT_UNITS", "Criteria", "Policy", "PolicyError", "Rule", "metric_hint"]

# Unit of an absolute tolerance -> (unit of the metrics that it fits, factor).
AMOUNT_UNITS = {
    "ns": ("ns", 1.0),
    "us": ("ns", 1e3),
    "µs": ("ns", 1e3),
    "ms": ("ns", 1e6),
    "s": ("ns", 1e9),
    "B": ("bytes", 1),
    "KiB": ("bytes", 1 << 10),
    "MiB": ("bytes", 1 << 20),
    "GiB": ("bytes", 1 << 30),
}


class PolicyError(InputError):
    """A policy has a key, a value or a name that is not valid."""


@dataclass(frozen=True)
class Rule:
    """One `[[diff.rule]]`: how the rows that it matches are judged."""

    metric: str
    worse: Worse | None = None
    tolerance: Tolerance | None = None
    # Unit of an absolute tolerance, or "%"; None for a plain number.
    unit: str | None = None
    confidence: float | None = None
    kind: str | None = None
    pattern: str | None = None
    # Where the rule is in the file, for messages.
    place: str = ""

    def matches(self, kind: str, name: str, metric: str) -> bool:
        """Returns whether the rule applies to a row. A rule without a pattern applies to the whole run."""
        if self.kind is None:
            return kind in ("", "query") and fnmatchcase(metric, self.metric)
        return (self.kind, self.pattern) == (kind, name) and fnmatchcase(metric, self.metric)


@dataclass(frozen=True)
class Criteria:
    """How one row is judged."""

    gate: bool
    worse: Worse
    tolerance: Tolerance
    confidence: float


@dataclass(frozen=True)
class Policy:
    """A whole policy; by default, that of a diff without a policy file."""

    confidence: float = 0.95
    tolerance: Tolerance | None = None
    min_runs: int = 1
    max_loss: str | None = None
    # When a "can't tell" in the gate makes the whole diff "can't tell". `power`: if the runs may not even show a doubling, or should
    # have shown one as large as this looks. `fail`: if the row looks worse, or its interval is unbounded, or the runs are too
    # few. `strict`: if the interval does not exclude a regression. `pass`: then too, as with `power`, but the exit code is 0.
    cant_tell: str = "power"
    metrics: tuple[str, ...] = DEFAULT_GATE
    rules: tuple[Rule, ...] = ()
    path: Path | None = None
    # Rules that have not matched a row yet. A rule that matches none is probably a mistake.
    unused: set[Rule] = field(default_factory=set, compare=False)

    @property
    def has_listed_gate(self) -> bool:
        """Whether the policy lists the gate: then no other row can fail a build."""
        return self.metrics is not DEFAULT_GATE

    def criteria(
        self, kind: str, name: str, metric: str, unit: str, *, gate: bool = False
    ) -> Criteria:
        """Returns how a row is judged: by the defaults, overridden by each rule that matches it.

        Args:
            gate: the row is in the gate even if no metric or rule puts it there.
        """
        in_gate = gate or (kind == "" and name == "all" and _matches_any(self.metrics, metric))
        # Phases are tested if somebody asks for them: each row more makes the other verdicts less certain.
        is_untested = _matches_any(NO_DIRECTION, metric) or (
            metric in PHASE_METRICS and not in_gate
        )
        has_direction = kind == "query" or not is_untested
        worse: Worse = "higher" if has_direction else "none"
        tolerance = default_tolerance(metric)
        if self.tolerance is not None and tolerance.relative:
            tolerance = self.tolerance
        confidence = self.confidence
        for rule in self.rules:
            if not rule.matches(kind, name if rule.kind else "", metric) or (
                kind == "" and name != "all"
            ):
                continue
            self.unused.discard(rule)
            _check_unit(rule, metric, unit)
            in_gate = True
            # For a metric without a direction, a rule means that higher is worse.
            worse = rule.worse or ("higher" if worse == "none" else worse)
            tolerance = rule.tolerance or tolerance
            confidence = rule.confidence or confidence
        return Criteria(in_gate and worse != "none", worse, tolerance, confidence)

    def patterns(self) -> list[tuple[str, str]]:
        """Returns each (kind, pattern) of the rules once."""
        return list(dict.fromkeys((r.kind, r.pattern) for r in self.rules if r.kind and r.pattern))

    def check_used(self, metrics: Iterable[str]) -> None:
        """Refuses metric names in rules and in the gate that match no metric.

        Raises:
            PolicyError: a name is probably misspelt.
        """
        known = sorted(set(metrics))
        for rule in sorted(self.unused, key=lambda rule: rule.place):
            valid = list(GROUP_METRICS) if rule.kind else known
            if not any(fnmatchcase(name, rule.metric) for name in valid):
                raise PolicyError(
                    f"{self.path}: {rule.place}: no metric '{rule.metric}'",
                    metric_hint(rule.metric, valid),
                )
        for name in self.metrics:
            if self.has_listed_gate and not any(fnmatchcase(m, name) for m in known):
                raise PolicyError(
                    f"{self.path}: diff.metrics: no metric '{name}'", metric_hint(name, known)
                )


def metric_hint(name: str, known: list[str]) -> str:
    """Returns the metric that was probably meant, and all metrics."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}the metrics are: {', '.join(known)}"


def _matches_any(patterns: Iterable[str], metric: str) -> bool:
    return any(fnmatchcase(metric, pattern) for pattern in patterns)


def _check_unit(rule: Rule, metric: str, unit: str) -> None:
    if rule.tolerance is None or rule.tolerance.relative or rule.unit not in AMOUNT_UNITS:
        return
    if AMOUNT_UNITS[rule.unit][0] != unit:
        raise PolicyError(
            f"{rule.place}: a tolerance in {rule.unit} for {metric}, which is in {unit}",
            "write a share of the base, like '5%', or a number in the metric's unit",
        )
