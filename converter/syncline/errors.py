"""Errors that any module may raise about what the user gave."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(Exception):
    """What is wrong and where; `hint` says what to type next."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
