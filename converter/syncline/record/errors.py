"""What can go wrong while recording."""

from __future__ import annotations


class RecordError(Exception):
    """A message, and what to type next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
