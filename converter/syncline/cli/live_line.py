"""A line at the end of the terminal that is written anew again and again, below the messages."""

from __future__ import annotations

import shutil
import sys

from syncline.cli.errors import say, wants_json
from syncline.printable import printable

_CLEAR = "\r\x1b[K"


def can_be_shown() -> bool:
    """Returns whether messages go to a terminal."""
    return sys.stderr.isatty() and not wants_json()


class LiveLine:
    """The line. Messages go above it."""

    def __init__(self) -> None:
        self._text = ""

    def show(self, text: str) -> None:
        """Shows another text, cut to the width of the terminal; none if it is empty."""
        if text or self._text:
            width = shutil.get_terminal_size().columns
            self._text = printable(text)
            sys.stderr.write(_CLEAR + _cut(self._text, width - 1))
            sys.stderr.flush()

    def say(self, message: str) -> None:
        """Prints a message above the line."""
        text = self._text
        self.show("")
        say(message)
        self.show(text)


def _cut(text: str, room: int) -> str:
    """Returns what fits of a text. What follows its last semicolon stays as long as it can."""
    if len(text) <= room:
        return text
    first, mark, last = text.rpartition("; ")
    left = room - len(mark) - len(last) - 1
    return f"{first[:left]}…{mark}{last}" if left > 0 else f"{text[: max(room - 1, 0)]}…"
