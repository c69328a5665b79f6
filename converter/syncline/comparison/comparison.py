"""The result of a diff: rows with verdicts, the method, warnings and contributors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .metrics import Measure
from .rules import Criteria, Policy
from .run import Side
from .statistics import UNKNOWN, Interval

__all__ = ["CANT_TELL", "CUT_OFF", "Comparison", "Contributors", "Method", "Row"]

Verdict = Literal["regression", "notable", "improvement", "no change", "can't tell", "-"]
OverallVerdict = Literal["regression", "can't tell", "no regression"]
CANT_TELL: Literal["can't tell"] = "can't tell"
# Runs that show only more than this show nothing: a doubling.
_LARGEST_VISIBLE = 1.0
# Why a row has no verdict.
CUT_OFF = "a run is cut off: its counts and sums are not known"


@dataclass
class Row:
    """One metric of one scope, on both sides."""

    # "" for the report `summary`, else `query`, `file`, `thread` or `stack`.
    kind: str
    # A scope of the summary, a group, or the pattern of a rule.
    name: str
    metric: str
    unit: str
    base: float | None
    new: float | None
    # A value for each run, or for each block of time.
    base_values: list[float | None]
    new_values: list[float | None]
    criteria: Criteria
    # The figures of the whole sides, if the values are those of blocks.
    centres: tuple[float, float] | None = None
    # For a stack: the bounds of base and of new if requests of stacks with missing names belong to it.
    possible: tuple[tuple[float, float], tuple[float, float]] | None = None
    # Number of these requests in base and in new.
    ambiguous_syncs: tuple[int, int] = (0, 0)
    # Whether the change and its interval are new / base - 1; else they are new - base.
    relative: bool = True
    change: float | None = None
    interval: Interval = UNKNOWN
    # p-values, adjusted for all rows of the family: that the row got worse, that it got better.
    worse_p: float | None = None
    better_p: float | None = None
    verdict: Verdict = "-"
    reason: str = ""
    # The smallest change for the worse, like `change`, that the runs would probably have shown; None if none is sure.
    visible: float | None = None
    # Whether the interval leaves room for a regression.
    may_be_worse: bool = False
    # Whether a row that may be worse also looks worse, or nothing could have looked worse.
    is_suspect: bool = False

    @property
    def gate(self) -> bool:
        """Whether the row is in the gate."""
        return self.criteria.gate

    def refuse_verdict(self, reason: str) -> None:
        """Withdraws the verdict."""
        self.verdict, self.reason = CANT_TELL, reason
        self.may_be_worse = self.is_suspect = True
        self.visible = None

    @property
    def hides_visible(self) -> bool:
        """Whether a regression may be hidden that the runs should have shown, or they might not even show a doubling."""
        if self.visible is None or self.change is None:
            return True
        if self.relative and self.visible > _LARGEST_VISIBLE:
            return True
        sign = -1 if self.criteria.worse == "lower" else 1
        change = abs(self.change) if self.criteria.worse == "both" else sign * self.change
        return change >= sign * self.visible


@dataclass(frozen=True)
class Method:
    """How the rows were judged."""

    # The statistical samples: runs, or blocks of time within a single run of each side.
    units: Literal["runs", "blocks"]
    base_units: int
    new_units: int
    confidence: float
    seed: int
    permutations: int
    exhaustive: bool
    gate_alpha: float
    other_alpha: float
    gate_rows: int
    other_rows: int


@dataclass(frozen=True)
class Contributors:
    """The groups that changed most in the measure of a row that got worse."""

    row: Row
    measure: Measure
    # (kind, name, base, new), in the unit of the measure.
    groups: list[tuple[str, str, float, float]]


@dataclass
class Comparison:
    """The whole result of a diff."""

    base: Side
    new: Side
    rows: list[Row]
    method: Method
    policy: Policy
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contributors: list[Contributors] = field(default_factory=list)
    # Why no row has a verdict; `lost` if too many losses are the reason.
    no_verdict: str | None = None
    lost: bool = False
    # Both sides are the same runs.
    same_runs: bool = False

    @property
    def verdict(self) -> OverallVerdict:
        """The verdict on the whole diff, which determines the exit code."""
        if self.no_verdict is not None:
            return CANT_TELL
        if self.same_runs:
            return "no regression"
        if any(row.verdict == "regression" for row in self.rows):
            return "regression"
        gate = [row for row in self.rows if row.gate]
        if not gate or self.undecided():
            return CANT_TELL
        return "no regression"

    def undecided(self) -> list[Row]:
        """Returns the rows of the gate that make the whole diff "can't tell"."""
        counts = {
            "strict": lambda row: row.may_be_worse,
            "fail": lambda row: row.is_suspect,
        }.get(self.policy.cant_tell, lambda row: row.may_be_worse and row.hides_visible)
        return [row for row in self.rows if row.gate and row.verdict == CANT_TELL and counts(row)]
