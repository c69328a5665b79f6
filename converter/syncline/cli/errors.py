"""Turns errors into messages on stderr and exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

import click

OK = 0
REGRESSION = 1
WRONG_USE = 2
BAD_INPUT = 3
TOO_MUCH_LOST = 4
CANNOT_TELL = 5
# EX_SOFTWARE of sysexits.h: an internal error must not look like a regression.
INTERNAL_ERROR = 70
INTERRUPTED = 130

# By the class of a `syncline._core.CoreError`.
_CORE_CODES = {
    "usage": WRONG_USE,
    "output": WRONG_USE,
    "input": BAD_INPUT,
    "loss": TOO_MUCH_LOST,
    "interrupted": INTERRUPTED,
}


class Failure(click.ClickException):
    """An error with a hint and an exit code."""

    def __init__(self, message: str, hint: str | None = None, code: int = WRONG_USE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = code

    def show(self, file: object = None) -> None:
        """Prints the error to stderr."""
        say(f"error: {self.message}", self.hint)


def say(message: str, hint: str | None = None) -> None:
    """Prints a message to stderr. The hint says what to type next."""
    # A terminal that was closed must not end a recording before its data are written.
    with contextlib.suppress(OSError):
        click.echo(message, err=True)
        if hint:
            click.echo(f"hint: {hint}", err=True)


def code_of(error: Exception) -> int | None:
    """Prints an error of an input or an engine, and returns its exit code.

    Returns None for any other error, and prints nothing.
    """
    from syncline._core import CoreError
    from syncline.engine import EngineError, SqlError
    from syncline.errors import InputError

    if isinstance(error, CoreError):
        message, hint, kind = error.args
        say(f"error: {message}", hint)
        return _CORE_CODES[kind]
    if isinstance(error, EngineError | InputError):
        say(f"error: {error.message}", error.hint)
        return WRONG_USE if isinstance(error, SqlError) else BAD_INPUT
    return None


def run(cli: click.Group) -> int:
    """Runs the command line and returns its exit code."""
    try:
        code = cli.main(standalone_mode=False)
        return code if isinstance(code, int) else OK
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        say("interrupted; no partial file was left")
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # `syncline report ... | head`: the reader has what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        code = code_of(error)
        if code is None:
            traceback.print_exc()
            say("error: an internal error of Syncline", "report it together with the lines above")
            return INTERNAL_ERROR
        return code
