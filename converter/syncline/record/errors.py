"""Errors of recording."""

from __future__ import annotations


class RecordError(Exception):
    """A recording fails. `hint` says what to type next; it may be empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RouteError(RecordError):
    """The recorders of a route do not start. Another route may."""


class NoRouteError(RecordError):
    """No route works here. The message has a line for each, with what it lacks."""


class OutputError(RecordError):
    """The folder of the recording cannot be written."""
