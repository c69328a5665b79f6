"""Two sides of runs, compared."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from syncline.comparison import output
from syncline.comparison.compare import compare
from syncline.comparison.comparison import Comparison as Found
from syncline.comparison.find_runs import Named
from syncline.comparison.metrics import KINDS
from syncline.comparison.policy import Policy, PolicyError, read
from syncline.comparison.sides import collect
from syncline.reading import Reading

from .error import Error, of_user
from .run import Run

__all__ = ["Comparison", "diff"]

_Side = str | os.PathLike[str] | Run


def diff(
    base: _Side | Iterable[_Side],
    new: _Side | Iterable[_Side],
    *,
    policy: str | os.PathLike[str] | None = None,
    by: Iterable[str] = KINDS,
    seed: int = 1,
) -> Comparison:
    """Compares two sides and says what got worse, as `syncline diff` does.

    Args:
        base, new: an INPUT, a run that is open, a folder of runs, a stored baseline, or several of these. The more runs a
            side has, the more certain is the verdict.
        policy: a file that says which metrics matter; by default, that of the program.
        by: the kinds of groups that are compared too: `file`, `thread`, `stack`.
        seed: of the random resampling.

    Raises:
        Error: a side cannot be read, or has no runs.
    """
    kinds = [*by]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise Error(f"no kind '{unknown[0]}'", f"the kinds are: {', '.join(KINDS)}")
    with of_user():
        try:
            rules = Policy() if policy is None else read(Path(policy))
            sides = [
                collect(name, Named(_paths(side), None, None), Reading())
                for name, side in (("base", base), ("new", new))
            ]
            if empty := next((side.name for side in sides if not side.runs), None):
                raise Error(
                    f"the side {empty} has no runs",
                    "see docs/reference/diff.md on what a side may be",
                )
            return Comparison(compare(sides[0], sides[1], rules, seed=seed, by=kinds))
        except PolicyError as error:
            raise Error(error.message, error.hint) from None


class Comparison:
    """The result of a diff: a verdict, and a row for each metric."""

    def __init__(self, found: Found) -> None:
        """Takes the result. Use `syncline.diff`."""
        self._found = found

    @property
    def verdict(self) -> str:
        """`regression`, `no regression` or `can't tell`."""
        return self._found.verdict

    @property
    def reason(self) -> str:
        """Why there is no verdict at all; empty if there is one."""
        return self._found.no_verdict or ""

    @property
    def data(self) -> dict[str, Any]:
        """What `syncline diff --format json` prints: verdict, method, warnings, contributors, and `rows` with their own verdicts."""
        found: dict[str, Any] = json.loads(output.render("json", self._found, everything=True))
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each metric and scope, with both values, the change, its interval and its verdict."""
        found: list[dict[str, Any]] = self.data["rows"]
        return found

    def __str__(self) -> str:
        return output.render("table", self._found)

    def __repr__(self) -> str:
        return f"<syncline.Comparison: {self.verdict}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(output.render('table', self._found))}</pre>"


def _paths(side: _Side | Iterable[_Side]) -> list[str]:
    given = [side] if isinstance(side, (str, os.PathLike, Run)) else [*side]
    filtered = next((one for one in given if isinstance(one, Run) and one.is_filtered), None)
    if filtered is not None:
        raise Error(
            f"{filtered.path} is open with a filter, and a diff reads it whole",
            "compare outputs of `convert`, which keep the filter, or use `syncline diff --comm ...`",
        )
    return [one.path if isinstance(one, Run) else os.fspath(one) for one in given]
