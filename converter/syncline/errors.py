"""Errors that any module may raise about an input of the user."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(Exception):
    """An input cannot be used. The message says what is wrong and where, `hint` what to type next."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
