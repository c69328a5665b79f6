"""Turns errors into messages on stderr and exit codes."""

from __future__ import annotations

import errno
import io
import resource
import signal
import sys
import traceback

import click

from syncline import interruptible
from syncline.printable import printable

OK = 0
REGRESSION = 1
WRONG_USE = 2
# The same code: the caller chose the output.
OUTPUT_ERROR = 2
BAD_INPUT = 3
TOO_MUCH_LOST = 4
CANNOT_TELL = 5
# EX_SOFTWARE of sysexits.h: an internal error must not look like a regression.
INTERNAL_ERROR = 70
INTERRUPTED = 128 + signal.SIGINT

# By the class of a `syncline._core.CoreError`.
_CORE_CODES = {
    "usage": WRONG_USE,
    "output": OUTPUT_ERROR,
    "input": BAD_INPUT,
    "foreign": BAD_INPUT,
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
    if hint:
        text += f"\nhint: {printable(hint)}"
    sys.stderr.write(text + "\n")


def code_of(error: Exception) -> int | None:
    """Prints an error of an input, an engine or the machine, and returns its exit code.

    Returns None for any other error, and prints nothing.
    """
    from syncline._core import CoreError
    from syncline.engine import EngineError, SqlError
    from syncline.errors import InputError

    if isinstance(error, CoreError):
        message, hint, kind = error.args
        if kind != "closed":
            say(f"error: {message}", hint)
        return _CORE_CODES[kind]
    if isinstance(error, EngineError | InputError):
        # SQL and its errors have lines.
        say(f"error: {error.message}", error.hint, lines=isinstance(error, EngineError))
        return WRONG_USE if isinstance(error, SqlError) else BAD_INPUT
    if isinstance(error, OSError) and error.errno is not None:
        where = f": {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        say(f"error: {reason}{where}", _os_hint(error))
        return OUTPUT_ERROR
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        say(
            "error: no thread can be started: the limit on processes is reached",
            "raise it: ulimit -u, or pids.max of the control group",
        )
        return OUTPUT_ERROR
    if isinstance(error, UnicodeDecodeError):
        say("error: the input is damaged: a name in it is not UTF-8", "convert the log again")
        return BAD_INPUT
    if isinstance(error, UnicodeEncodeError):
        say(
            f"error: the name {error.object} is not UTF-8",
            "rename it; or connect a log to standard input: syncline ... - < FILE",
        )
        return WRONG_USE
    if isinstance(error, MemoryError) and len(error.args) == 2:
        say(f"error: {error.args[0]}", error.args[1])
        return OUTPUT_ERROR
    if isinstance(error, MemoryError):
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        is_limited = limit != resource.RLIM_INFINITY
        say(
            f"error: not enough memory: the address space is limited to {limit >> 10:,} kB (ulimit -v)"
            if is_limited
            else "error: not enough memory",
            "ulimit -v unlimited"
            if is_limited
            else "close other programs, or use a larger machine",
        )
        return OUTPUT_ERROR
    return None


def _os_hint(error: OSError) -> str | None:
    """Returns what to do about an error of the system."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files: ulimit -n 1024"
    if error.errno == errno.EAGAIN:
        return "the limit on processes may be reached: ulimit -u"
    if error.errno == errno.ENAMETOOLONG:
        return "a name has at most 255 bytes, and a path 4,095"
    return "temporary files are in TMPDIR, or else in /tmp"


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
