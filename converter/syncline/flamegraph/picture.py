"""What an exporter gets: the stacks, what they are, and what a reader has to know of them."""

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
    """An input: its stacks and the losses that they suffer from, (reason, count)."""

    path: str
    stacks: Stacks
    losses: Sequence[tuple[str, int]] = ()
    caveats: Sequence[str] = ()
    # What was asked for, of all requests; None without a filter.
    wanted: str | None = None


@dataclass(frozen=True)
class Picture:
    """A flame graph, not yet in any format. With `base` it is a differential one."""

    new: Side
    by: str
    weight: str
    base: Side | None = None
    normalize: bool = False
    # Percent of the whole.
    hide_under: float | None = None
    # What the exporter has to say.
    remarks: list[str] = field(default_factory=list)

    @property
    def how(self) -> By:
        return BY[self.by]

    @property
    def what(self) -> Weight:
        return WEIGHTS[self.weight]

    def title(self) -> str:
        """What is shown, and of which input."""
        text = f"{self.what.text[0].upper()}{self.what.text[1:]} by {self.how.text}"
        if not self.base:
            return f"{text}: {short(self.new.path)}"
        return f"{text}: {' against '.join(told_apart(self.new.path, self.base.path))}"

    def total_text(self, side: Side) -> str:
        """The whole with its unit: `492 ms in 100 requests`."""
        requests = human.text(side.stacks.known[self.weight], "count")
        if self.weight == "count":
            return f"{requests} requests"
        return (
            f"{human.text(side.stacks.total(self.weight), self.what.unit)} in {requests} requests"
        )

    def left_out(self, side: Side) -> int:
        """Requests whose weight is not known."""
        return side.stacks.syncs - side.stacks.known[self.weight]

    def scale(self) -> float:
        """What weights of the base are multiplied by."""
        if not (self.base and self.normalize):
            return 1.0
        total = self.base.stacks.total(self.weight)
        return self.new.stacks.total(self.weight) / total if total else 1.0

    def rows(self) -> list[tuple[tuple[str, ...], int, float | None]]:
        """(frames, weight, weight of the base or None), by the order of the frames."""
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

    def doubts(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """How much more a frame, with its callers, may be of new and of base: names of functions are missing."""
        if not self.base or self.by != "stack":
            return {}
        # The outermost is the name of the thread.
        return ambiguous_weights(((frames, new, base or 0) for frames, new, base in self.rows()), named=1)


def short(path: str, width: int = 32, folders: int = 0) -> str:
    """The name of an input without its folders, or with the last of them, and not too long for a title."""
    name = (
        "standard input" if path == "-" else "/".join(PurePath(path).parts[-1 - folders :]) or path
    )
    half = width // 2 - 1
    return name if len(name) <= width else f"{name[:half]}…{name[-half:]}"


def told_apart(a: str, b: str) -> tuple[str, str]:
    """The names of two inputs, with as much of them as they need to differ."""
    for folders in range(max(len(PurePath(path).parts) for path in (a, b))):
        for width in (32, 56):
            names = short(a, width, folders), short(b, width, folders)
            if names[0] != names[1]:
                return names
    # One and the same, or too long.
    return (short(a), short(b)) if a == b else (a, b)
