"""What a terminal can show: its width, and colours. Files and pipes get neither line breaks nor colours."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import TextIO

__all__ = [
    "MODES",
    "background",
    "is_coloured",
    "is_light",
    "paint",
    "use_colour",
    "width",
    "wrapped",
]

MODES = ("auto", "always", "never")
# Foreground colours are those of the terminal's own palette, which its user has chosen.
_STYLES = {"bold": "1", "red": "1;31", "green": "32", "yellow": "33"}
# Colours whose sum of weighted parts is above this are light, so that black is read on them.
_LIGHT = 140_000

# The blank of a figure and its unit, which stay on one line.
_FIGURE = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|B|[KMGT]iB)\b|%)")
# A command, which stays on one line so that it can be copied. It ends where the sentence does.
_COMMAND = re.compile(r"`[^`]+`|\b(?:sudo )?syncline [a-z](?:[^,;()`]*?)(?=[,;()`]|\. |$)")
# Stands for a blank that is no place to break at. No text has it, because `printable` escapes it.
_HELD = "\ufdd0"

# Only the command line sets it: what Python code prints is a value.
_mode = "never"


def use_colour(mode: str) -> None:
    """Chooses one of MODES. `auto`: on a terminal that can show colours, unless NO_COLOR is set."""
    global _mode
    _mode = mode


def is_coloured(stream: TextIO | None = None) -> bool:
    """Returns whether what is printed to the stream, by default standard output, has colours."""
    if _mode != "auto":
        return _mode == "always"
    # See https://no-color.org: an empty value counts as none.
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Returns the text in bold, red, green or yellow."""
    if not text or not is_coloured(stream):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def is_light(colour: str) -> bool:
    """Returns whether black letters are easier to read on a colour, such as `#286a48`, than white ones."""
    red, green, blue = _parts(colour)
    return 299 * red + 587 * green + 114 * blue > _LIGHT


def _parts(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def background(text: str, colour: str) -> str:
    """Returns the text on a colour, such as `#286a48`, with black or white letters."""
    if not text or not is_coloured():
        return text
    red, green, blue = _parts(colour)
    letters = 30 if is_light(colour) else 97
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        on = f"48;2;{red};{green};{blue}"
    else:
        # The cube of 6 x 6 x 6 colours that nearly every terminal has.
        on = f"48;5;{16 + 36 * round(red / 51) + 6 * round(green / 51) + round(blue / 51)}"
    return f"\x1b[{letters};{on}m{text}\x1b[0m"


def width(stream: TextIO | None = None) -> int | None:
    """Returns the width of the stream, by default standard output; None if it is not a terminal."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    if stream is sys.stdout or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    # The other function asks standard output, which may be a file.
    return os.get_terminal_size(stream.fileno()).columns or None


def wrapped(
    line: str, room: int | None, whole: Iterable[str] = (), *, hang: int | None = None
) -> list[str]:
    """Breaks a line between words, so that a terminal does not break it within one. Without a width it stays whole.

    Args:
        whole: parts that are not broken either, such as paths with blanks. Figures and commands never are.
        hang: the indent of the lines that follow; by default a little more than that of the first, if it has one.
    """
    if room is None or len(line) <= room:
        return [line]
    indent = len(line) - len(line.lstrip())
    if hang is None:
        hang = indent + 2 if indent else 0
    held = _FIGURE.sub(_HELD, _COMMAND.sub(_hold, line))
    for part in whole:
        held = held.replace(part, part.replace(" ", _HELD))
    broken = textwrap.wrap(
        held,
        room,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(_HELD, " ") for part in broken]


def _hold(found: re.Match[str]) -> str:
    return found[0].replace(" ", _HELD)
