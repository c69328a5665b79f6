"""Turns errors into messages on stderr and exit codes."""

from __future__ import annotations

import io
import signal
import sys
import traceback

import click

from syncline import interruptible, terminal
from syncline.printable import printable

OK = 0
REGRESSION = 1
# The same code for other gates: a finding of `advise --fail-on`, a violated rule of `check`.
FOUND = 1
WRONG_USE = 2
# The same code: the caller chose the output.
OUTPUT_ERROR = 2
BAD_INPUT = 3
TOO_MUCH_LOST = 4
CANNOT_TELL = 5
# EX_SOFTWARE of sysexits.h: an internal error must not look like a regression.
INTERNAL_ERROR = 70
INTERRUPTED = 128 + signal.SIGINT

# By the kind of a `syncline.problems.Problem`.
_CODES = {
    "usage": WRONG_USE,
    "output": OUTPUT_ERROR,
    "input": BAD_INPUT,
    "loss": TOO_MUCH_LOST,
    "interrupted": INTERRUPTED,
    # The reader of standard output has ended: it has what it wanted.
    "closed": OK,
}


class Failure(click.ClickException):
    """An error with a hint and an exit code."""

    def __init__(self, message: str, hint: str | None = None, code: int = WRONG_USE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = code


class Terminated(SystemExit):
    """SIGTERM or SIGHUP ended the command. The code is the one that shells have for it."""

    def __init__(self, signal_number: int) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(self.exit_code)


def say(message: str, hint: str | None = None, *, lines: bool = False) -> None:
    """Prints a message to stderr. The hint says what to type next.

    Names in a message may come from a log, so what is not printable is escaped.

    Args:
        lines: the message has several lines.
    """
    text = printable(message, "\n" if lines else "")
    for mark, colour in (("error:", "red"), ("warning:", "yellow")):
        if text.startswith(mark):
            text = terminal.paint(mark, colour, sys.stderr) + text.removeprefix(mark)
    if hint:
        text += f"\n{terminal.paint('hint:', 'bold', sys.stderr)} {printable(hint)}"
    sys.stderr.write(text + "\n")


def code_of(error: Exception) -> int | None:
    """Prints an error of an input, an engine or the machine, and returns its exit code.

    Returns None for any other error, and prints nothing.
    """
    from syncline.problems import described

    problem = described(error)
    if problem is None:
        return None
    if problem.kind != "closed":
        say(f"error: {problem.message}", problem.hint, lines=problem.has_lines)
    return _CODES[problem.kind]


def reported(error: Exception, before: int) -> int:
    """Prints an error of one of several inputs, and returns the exit code of the first one.

    Args:
        before: the exit code so far.

    Raises:
        Exception: the error, if it is of no input, engine or machine.
    """
    code = code_of(error)
    if code is None:
        raise error
    return before or code


def run(cli: click.Group) -> int:
    """Runs the command line and returns its exit code."""
    try:
        return _run(cli)
    except (click.exceptions.Abort, KeyboardInterrupt):
        say(f"interrupted{_nothing_left()}")
        return INTERRUPTED
    except Terminated as error:
        say(f"terminated{_nothing_left()}")
        return error.exit_code


def _nothing_left() -> str:
    # Abandoned work may have an output that it cannot remove any more.
    return "" if interruptible.was_abandoned() else "; no partial file was left"


def _has_second_input(error: click.ClickException) -> bool:
    """Returns whether a command that takes one INPUT got several."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return False
    takes = [one.metavar for one in error.ctx.command.params if isinstance(one, click.Argument)]
    return takes == ["INPUT"] and error.message.startswith("Got unexpected extra argument")


def _run(cli: click.Group) -> int:
    from syncline.cli.group import Escaped

    try:
        try:
            code = cli.main(standalone_mode=False)
        except Escaped as escaped:
            raise escaped.__cause__ from None  # type: ignore[misc]
        return code if isinstance(code, int) else OK
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.Abort:
        raise
    except Failure as error:
        say(f"error: {error.message}", error.hint)
        return error.exit_code
    except click.ClickException as error:
        # The message of click has lines, and names what was typed.
        text = io.StringIO()
        error.show(text)
        if _has_second_input(error):
            text.write("hint: name one INPUT: this command reads one recording\n")
        sys.stderr.write(printable(text.getvalue(), "\n"))
        return error.exit_code
    except Exception as error:
        code = code_of(error)
        if code is None:
            traceback.print_exc()
            say("error: an internal error of Syncline", "report it together with the lines above")
            return INTERNAL_ERROR
        return code
