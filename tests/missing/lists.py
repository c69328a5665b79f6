"""The tables next to this file: what formats cannot show, and what is wrong today."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tests.missing.drops import Loss
from tests.missing.oracle import Violation

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A line of `limits.tsv` or `known.tsv`."""

    facts: tuple[str, ...]
    """Recordings with these facts (`recordings.FACTS`), or of these names."""
    missing: tuple[str, ...]
    """Kinds of events (`kinds.PATTERNS`), `beginning`, `rest`, or `id`. Several are missing together."""
    scope: str
    """How much of it is missing (`Loss.missing`): `all` is more than `name`, and `one` may be the `first`; or `any`. Of `id`: the kind of event."""
    seen_in: str
    """The plan that shows a known fault: `quick`, which the tests run, or only `all`."""
    columns: tuple[str, ...]
    """Which figures may differ, as patterns. With `>0`, not to 0: what is left says that something was there."""
    shown: str
    """What the user sees of it: see the head of `limits.tsv`."""
    reason: str

    def is_shown(self, reasons: set[str]) -> bool:
        """Whether the output has the reason that the line promises."""
        return not self.shown.startswith("loss ") or self.shown.removeprefix("loss ") in reasons

    def covers(self, loss: Loss, violation: Violation) -> bool:
        return (
            not {loss.recording.facts, loss.recording.name}.isdisjoint(self.facts)
            and self.is_of(loss)
            and any(self._allows(column, violation) for column in self.columns)
        )

    def is_of(self, loss: Loss) -> bool:
        """Whether what the entry names is missing."""
        scopes = {"one": ("one", "first"), "name": ("name", "all")}.get(self.scope, (self.scope,))
        gone = {kind for kind, scope in loss.missing if self.scope == "any" or scope in scopes}
        return gone.issuperset(self.missing)

    @staticmethod
    def _allows(column: str, violation: Violation) -> bool:
        pattern, above, _ = column.partition(">")
        return fnmatchcase(violation.column, pattern) and not (above and violation.actual == 0)


@cache
def read(name: str) -> tuple[Entry, ...]:
    """The lines of a table."""
    with (HERE / f"{name}.tsv").open(encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return tuple(
            Entry(
                tuple(row["facts"].split(", ")),
                tuple(row["missing"].split(" + ")),
                row["scope"],
                row.get("seen in", "all"),
                tuple(row["columns"].split(", ")),
                row.get("shown", ""),
                row["reason"],
            )
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        )


def limits() -> tuple[Entry, ...]:
    """What a format cannot show."""
    return read("limits")


def known() -> tuple[Entry, ...]:
    """What is wrong today."""
    return read("known")
