"""Errors as messages: what is wrong, where, and what to type next."""

from __future__ import annotations

import os
import sys
import traceback

import click

OK, REGRESSION, WRONG_USE, BAD_INPUT, TOO_MUCH_LOST, CANNOT_TELL, INTERRUPTED = (
    0,
    1,
    2,
    3,
    4,
    5,
    130,
)
# As sysexits.h has it: no fault of Syncline's own may look like a regression.
FAULT = 70

# Classes of `syncline._core.CoreError`; an output that cannot be written is the user's to mend.
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
        """Prints to stderr."""
        say(f"error: {self.message}", self.hint)


def say(message: str, hint: str | None = None) -> None:
    """A message on stderr, with what to type next."""
    click.echo(message, err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)


def code_of(error: Exception) -> int | None:
    """Says what is wrong with an input, and returns the exit code; None for an error of another kind."""
    from syncline._core import CoreError
    from syncline.engine import EngineError, SqlError
    from syncline.inputs import InputError

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
        say("interrupted; nothing was left half written")
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # `syncline report ... | head`: what the reader wanted it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        code = code_of(error)
        if code is None:
            traceback.print_exc()
            say("error: a fault of Syncline's own", "report it with the lines above")
            return FAULT
        return code
