"""What a controller is given, and what it has to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Control", "Controller"]


class Control(Protocol):
    """What a controller may do."""

    def set_depth(self, depth: int, now: int) -> None:
        """Sets the queue depth."""

    def schedule(self, at: int, action: Callable[[int], None]) -> None:
        """Calls the action at a time in ns."""


class Controller(Protocol):
    """Sets the queue depth. Times are in ns from the start of the replay."""

    @property
    def name(self) -> str:
        """Returns the name for people."""

    @property
    def largest_depth(self) -> int:
        """Returns the largest depth that it sets."""

    @property
    def lead_ns(self) -> int:
        """Returns how long before a sync its file is opened."""

    def begin(self, control: Control) -> None:
        """Is called once, before the replay."""

    def opened(self, path: str | None, now: int) -> None:
        """A file is opened that will be synced."""

    def synced(self, path: str | None, now: int) -> None:
        """A sync of a file starts."""

    def ended(self, path: str | None, now: int) -> None:
        """A sync of a file ends."""

    def notes(self) -> list[str]:
        """Returns what a reader must know of its replays so far, in sentences."""
