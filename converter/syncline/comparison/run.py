"""The data of a comparison: figures, runs and sides. Nothing here reads a file or compares."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

from syncline import _core

from .metrics import Group

__all__ = ["Figure", "Query", "Run", "Side"]


@dataclass(frozen=True)
class Figure:
    """A value of the report `summary`, or of a user's query."""

    value: float | None
    unit: str
    # Number of requests whose value is known, and of all requests; None for a plain count.
    known: int | None = None
    syncs: int | None = None


@dataclass(frozen=True)
class Query:
    """A file given with `--query`: SQL that returns the columns key and value, and optionally unit."""

    path: str
    sql: str

    @property
    def digest(self) -> str:
        """Identifies the text of the query in a baseline."""
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]


@dataclass
class Run:
    """What a diff needs of one run."""

    name: str
    # (metric, scope) -> figure, in the order of the summary.
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    # Kind -> name of the group -> its sums.
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)
    # Phase -> ns of all syncs. Empty if no phase is recorded.
    phases: dict[str, int] = field(default_factory=dict)
    facts: dict[str, list[str]] = field(default_factory=dict)
    caveats: list[str] = field(default_factory=list)
    # Digest of a query -> key -> answer.
    answers: dict[str, dict[str, Figure]] = field(default_factory=dict)
    # Number of blocks -> metric -> value in each block. Only a side of one run has them.
    blocks: dict[int, dict[str, list[float | None]]] = field(default_factory=dict)
    # Number of blocks -> (kind, name) -> sums in each block.
    group_blocks: dict[int, dict[tuple[str, str], list[Group | None]]] = field(default_factory=dict)
    # Kinds whose cheapest groups a baseline left out.
    truncated_kinds: tuple[str, ...] = ()

    def fact(self, name: str) -> str | None:
        """Returns the first value of a fact."""
        return next(iter(self.facts.get(name, ())), None)

    def number(self, name: str) -> int | None:
        """Returns a fact as a number; None if it is not one."""
        value = self.fact(name)
        return int(value) if value is not None and value.lstrip("-").isdigit() else None

    def phase_average(self, phases: Collection[str]) -> float | None:
        """Returns the time of an average sync in phases; None if the recording cannot show them, or has no sync."""
        seen = self.fact("phases_seen")
        # A high-level log has no such fact, but the phases that follow from its columns.
        shown = {*self.phases} if seen is None else {*seen.split(", ")}
        time = self.figures.get(("sync_time_sum", "all"))
        if not shown.intersection(phases) or time is None or not time.known:
            return None
        return sum(self.phases.get(phase, 0) for phase in phases) / time.known

    @property
    def identity(self) -> str | None:
        """Equal for all copies and formats of one run; None if nothing identifies it."""
        identity = self.fact("identity")
        if identity is None and self.number("first_ts_ns") is not None:
            # A run without a request is identified by its events.
            facts = (self.fact(name) for name in ("boot_id", "first_ts_ns", "last_ts_ns", "events"))
            identity = " ".join(fact or "-" for fact in facts)
        return identity

    @property
    def is_cut_off(self) -> bool:
        """Whether the log ends before the recording did."""
        return bool(self.number("loss.cut_off") or self.number("loss.recorder_ended"))

    @property
    def lost(self) -> int | None:
        """Number of losses; None if the input does not record them."""
        # A high-level log, or a folder without that table, records no losses.
        tables = self.fact("tables")
        if tables is not None and "syncline_loss" not in tables:
            return None
        return sum(
            int(values[0]) for name, values in self.facts.items() if name.startswith("loss.")
        )

    def too_much_lost(self, max_loss: str) -> str | None:
        """Returns a sentence if the run lost more than `max_loss` (`N` or `N%`) allows."""
        lost, events = self.lost, self.number("events") or 0
        if lost is None or _core.allows_loss(max_loss, lost, events):
            return None
        return f"{self.name}: {lost:,} of {lost + events:,} events are lost"


@dataclass
class Side:
    """`base` or `new`, with its runs."""

    name: str
    inputs: tuple[str, ...]
    runs: list[Run]
    # Found while the runs were read.
    warnings: list[str] = field(default_factory=list)
