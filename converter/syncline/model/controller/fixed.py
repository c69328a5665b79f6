"""One queue depth all the time."""

from __future__ import annotations

from .base import Control

__all__ = ["Fixed"]


class Fixed:
    """A fixed queue depth."""

    lead_ns = 0

    def __init__(self, depth: int) -> None:
        """Args:
        depth: the queue depth, from 1.
        """
        self.largest_depth = depth

    @property
    def name(self) -> str:
        """Returns the name for people."""
        return f"depth {self.largest_depth}"

    def begin(self, control: Control) -> None:
        """Sets the depth."""
        control.set_depth(self.largest_depth, 0)

    def opened(self, path: str | None, now: int) -> None:
        """Does nothing."""

    def synced(self, path: str | None, now: int) -> None:
        """Does nothing."""

    def ended(self, path: str | None, now: int) -> None:
        """Does nothing."""

    def notes(self) -> list[str]:
        """Returns nothing."""
        return []
