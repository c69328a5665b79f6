"""A flame graph in no particular format: the stacks, and what a reader needs to know about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from syncline.frames import ambiguous_weights
from syncline.render import human

from .stacks import BY, WEIGHTS, By, Stacks, Weight

__all__ = ["Picture", "Side"]


@dataclass(frozen=True)
class Side:
    """An input: its stacks and its losses as (reason, count)."""

    path: str
    stacks: Stacks
    losses: Sequence[tuple[str, int]] = ()
    caveats: Sequence[str] = ()
    # The filter of the requests in words; None without one.
    wanted: str | None = None
    # If no request passes it: sentences that say what it could have named.
    instead: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """A flame graph; with `base`, a differential one."""

    new: Side
    by: str
    weight: str
    base: Side | None = None
    normalize: bool = False
    # Percent of the total.
    hide_under: float | None = None
    # Added by `render`.
    remarks: list[str] = field(default_factory=list)

    @property
    def how(self) -> By:
        return BY[self.by]

    @property
    def what(self) -> Weight:
        return WEIGHTS[self.weight]

    def title(self) -> str:
        """Returns the title: the weight, the grouping and the inputs."""
        text = f"{self.what.text[0].upper()}{self.what.text[1:]} by {self.how.text}"
        if not self.base:
            return f"{text}: {short(self.new.path)}"
        return f"{text}: {' against '.join(distinct_names(self.new.path, self.base.path))}"

    def total_text(self, side: Side) -> str:
        """Returns the total with its unit: `492 ms in 100 requests`."""
        requests = human.text(side.stacks.known[self.weight], "count")
        if self.weight == "count":
            return f"{requests} requests"
        return (
            f"{human.text(side.stacks.total(self.weight), self.what.unit)} in {requests} requests"
        )

    def left_out(self, side: Side) -> int:
        """Returns the number of requests whose weight is not known."""
        return side.stacks.syncs - side.stacks.known[self.weight]

    def scale(self) -> float:
        """Returns the factor for the weights of the base."""
        if not (self.base and self.normalize):
            return 1.0
        total = self.base.stacks.total(self.weight)
        return self.new.stacks.total(self.weight) / total if total else 1.0

    def rows(self) -> list[tuple[tuple[str, ...], int, float | None]]:
        """Returns (frames, weight, weight of the base or None), sorted by frames."""
        new = {
            s.frames: s.sums[self.weight] for s in self.new.stacks.stacks if self.weight in s.sums
        }
        if not self.base:
            return [(frames, weight, None) for frames, weight in new.items() if weight > 0]
        scale = self.scale()
        old = {
            s.frames: s.sums[self.weight] * scale
            for s in self.base.stacks.stacks
            if self.weight in s.sums
        }
        both = sorted(new.keys() | old.keys())
        rows = [(frames, new.get(frames, 0), old.get(frames, 0.0)) for frames in both]
        return [row for row in rows if row[1] > 0 or row[2] > 0]

    def ambiguous_weights(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """Returns the weight in new and in base that may also belong to a frame, because functions lack names."""
        if not self.base or self.by != "stack":
            return {}
        # The outermost frame is the name of the thread.
        return ambiguous_weights(
            ((frames, new, base or 0) for frames, new, base in self.rows()), named=1
        )


def short(path: str, width: int = 32, folders: int = 0) -> str:
    """Shortens the name of an input for a title: without folders, or with the last ones."""
    name = (
        "standard input" if path == "-" else "/".join(PurePath(path).parts[-1 - folders :]) or path
    )
    half = width // 2 - 1
    return name if len(name) <= width else f"{name[:half]}…{name[-half:]}"


def distinct_names(a: str, b: str) -> tuple[str, str]:
    """Returns the names of two inputs, with as many folders as they need to differ."""
    for folders in range(max(len(PurePath(path).parts) for path in (a, b))):
        for width in (32, 56):
            names = short(a, width, folders), short(b, width, folders)
            if names[0] != names[1]:
                return names
    # The inputs are the same, or cannot be shortened.
    return (short(a), short(b)) if a == b else (a, b)
