"""Turns errors into messages on stderr and exit codes."""

from __future__ import annotations

import io
import re
import signal
import sys
import traceback
from typing import Any

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

_IN_FILE = re.compile(r"([^\s:]+):(\d+): (.*)")
_IN_SQL = re.compile(r"\bLINE (\d+): (.*)")

# How a line begins that says what it is, and its colour.
_MARKS = {"error:": "red", "warning:": "yellow", "hint:": "bold"}

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
    """An error with a hint and an exit code. `has_lines`: the message has several lines."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        code: int = WRONG_USE,
        *,
        has_lines: bool = False,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = code
        self.has_lines = has_lines


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
    if wants_json():
        _say_json(message, hint)
        return
    text = printable(message, "\n" if lines else "")
    if hint:
        text += f"\nhint: {printable(hint)}"
    _write(text)


def _write(text: str) -> None:
    """Writes lines to stderr: no wider than the terminal, and with a colour for what they are."""
    room = terminal.width(sys.stderr)
    # What was typed may be a path with blanks.
    paths = [printable(word) for word in sys.argv[1:] if " " in word and "/" in word]
    lines = []
    for line in text.splitlines() or [""]:
        # A mark below a line of SQL shows a place in it.
        fixed = line.startswith("LINE ") or line.strip() == "^"
        shown = "\n".join(terminal.wrapped(line, None if fixed else room, paths))
        for mark, colour in _MARKS.items():
            if shown.startswith(mark):
                shown = terminal.paint(mark, colour, sys.stderr) + shown.removeprefix(mark)
        lines.append(f"{shown}\n")
    sys.stderr.write("".join(lines))


def wants_json() -> bool:
    """Returns whether `--json` was given, also to a command that refuses its other options. What follows `--` is another program's."""
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _say_json(message: str, hint: str | None, code: int | None = None) -> None:
    """Prints a message as one line of JSON, with the place in a file that it names, if it names one."""
    from syncline.printable import json_text

    kind = next(
        (one for one in ("error", "warning", "note") if message.startswith(f"{one}: ")), None
    )
    text = message.removeprefix(f"{kind}: ") if kind else message
    body: dict[str, Any] = {"message": text, "place": _place(text), "hint": hint or None}
    if code is not None:
        body = {"code": code, **body}
    sys.stderr.write(json_text({kind or "note": body}) + "\n")


def _place(text: str) -> dict[str, Any] | None:
    """Returns the file, the line and its text in a message of the form `...FILE:LINE: TEXT`, or of SQL (`LINE 2: TEXT`)."""
    if found := _IN_FILE.search(text):
        return {"file": found[1], "line": int(found[2]), "text": found[3]}
    if found := _IN_SQL.search(text):
        return {"file": None, "line": int(found[1]), "text": found[2]}
    return None


def say_error(message: str, hint: str | None, code: int, *, lines: bool = False) -> None:
    """Prints the error that ends a command, with its exit code where a program reads it."""
    if wants_json():
        _say_json(f"error: {message}", hint, code)
    else:
        say(f"error: {message}", hint, lines=lines)


def say_prepared(text: str) -> None:
    """Prints lines that are ready for a person, such as the warnings of a report."""
    if text and not wants_json():
        _write(text)
        return
    for line in text.splitlines():
        if line:
            say(line)


def code_of(error: Exception) -> int | None:
    """Prints an error of an input, an engine or the machine, and returns its exit code.

    Returns None for any other error, and prints nothing.
    """
    from syncline.problems import described

    problem = described(error)
    if problem is None:
        return None
    if problem.kind != "closed":
        say_error(problem.message, problem.hint, _CODES[problem.kind], lines=problem.has_lines)
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
    if wants_json():
        terminal.use_colour("never")
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
        say_error(error.message, error.hint, error.exit_code, lines=error.has_lines)
        return error.exit_code
    except click.ClickException as error:
        if wants_json():
            _say_json(
                f"error: {error.format_message()}", "syncline COMMAND --help", error.exit_code
            )
            return error.exit_code
        # The message of click has lines, and names what was typed.
        text = io.StringIO()
        error.show(text)
        if _has_second_input(error):
            text.write("hint: name one INPUT: this command reads one recording\n")
        _write(printable(text.getvalue(), "\n"))
        return error.exit_code
    except Exception as error:
        code = code_of(error)
        if code is None:
            traceback.print_exc()
            say_error(
                "an internal error of Syncline",
                "report it together with the lines above",
                INTERNAL_ERROR,
            )
            return INTERNAL_ERROR
        return code
