"""The one class of errors that the Python API raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from syncline.problems import Kind, described

__all__ = ["Error", "of_user"]


class Error(Exception):
    """Something that you can mend: an input, the SQL, an output, or the machine.

    It says what the command line would say, with parameters where that names options. A fault of Syncline itself is another exception.

    Attributes:
        message: what is wrong, and where.
        hint: what to do next; empty if nothing is known to help.
        kind: `usage`, `input`, `output`, `loss` or `interrupted`, from which the command line chooses its exit code.
    """

    def __init__(self, message: str, hint: str = "", kind: Kind = "usage") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


@contextmanager
def of_user() -> Iterator[None]:
    """Raises the errors of an input, an engine or the machine as `Error`."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        problem = described(error)
        if problem is None:
            raise
        # An option of the commands is a parameter here.
        hint = problem.hint.replace("`--from`", "`format=`")
        # What went on inside explains nothing that the message does not, and would be most of what a notebook shows.
        raise Error(problem.message, hint, problem.kind) from None
