"""Errors of the engines."""

from __future__ import annotations

from pathlib import Path

# The hint for a trace that cannot be loaded.
DAMAGED = (
    "The file is damaged or incomplete: copy it again, or convert the log again (syncline convert)."
)


class EngineError(Exception):
    """An engine cannot do what it was asked.

    `message` says what is wrong and where. `hint` says what to type next; it may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def with_path(self, path: Path) -> EngineError:
        """Adds the path of the trace to the message, and returns the error."""
        if str(path) not in self.message:
            self.message = f"{path}: {self.message}"
        return self


class SqlError(EngineError):
    """The engine rejects the SQL.

    `reason` is the engine's own message, with the position in the SQL if the engine reports one. With `is_of_values`, the SQL is valid,
    and a value is not what it expects.
    """

    def __init__(self, reason: str, hint: str = "", *, is_of_values: bool = False) -> None:
        super().__init__(f"SQL error: {reason}", hint)
        self.reason = reason
        self.is_of_values = is_of_values


class OutOfMemory(EngineError):
    """The trace processor ran out of memory and has stopped."""
