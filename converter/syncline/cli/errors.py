"""Errors as messages: what is wrong, where, and what to type next."""

from __future__ import annotations

import os
import sys

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


def run(cli: click.Group) -> int:
    """Runs the command line and returns its exit code."""
    from syncline._core import CoreError
    from syncline.engine import EngineError, SqlError
    from syncline.inputs import InputError

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
    except CoreError as error:
        message, hint, kind = error.args
        say(f"error: {message}", hint)
        return _CORE_CODES[kind]
    except (EngineError, InputError) as error:
        say(f"error: {error.message}", error.hint)
        return WRONG_USE if isinstance(error, SqlError) else BAD_INPUT
    except BrokenPipeError:
        # `syncline report ... | head`: what the reader wanted it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
