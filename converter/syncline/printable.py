"""Escapes text that people or programs read: names come from a log, and may contain any character.

A control character can move the cursor of a terminal or change its title, and a direction mark can make
one name look like another.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["json_text", "printable"]

# A character that may be unprintable, so that most text needs no further look.
_SUSPECT = re.compile(r"[^ -~]")
# Python's names for bytes of a path that are not UTF-8.
_BYTES = range(0xDC80, 0xDD00)


def printable(text: str, keep: str = "") -> str:
    r"""Escapes each character that is not printable, as `\x1b` or `\u202e`, except those in `keep`."""

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        if char.isprintable() or char in keep:
            return char
        if ord(char) in _BYTES:
            return f"\\x{ord(char) - 0xDC00:02x}"
        return char.encode("unicode_escape").decode()

    return text if text.isprintable() else _SUSPECT.sub(escape, text)


def json_text(value: Any, indent: int | None = None) -> str:
    r"""Returns a value as JSON. Characters that are not printable are escaped (`\u001b`), which changes no value.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Outside of texts, JSON has only printable characters and the ends of lines.
    return _SUSPECT.sub(
        lambda match: (
            match[0] if match[0].isprintable() or match[0] == "\n" else json.dumps(match[0])[1:-1]
        ),
        text,
    )
