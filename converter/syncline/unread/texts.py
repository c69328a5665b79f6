"""Recognizes the kinds of texts that hold no event, and says what is said of each."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from . import stacks
from .kinds import KINDS, PRINT, RECORD, RECORD_BESIDE, Kind

__all__ = ["Explanation", "explained", "kinds_of", "named"]


@dataclass(frozen=True)
class Explanation:
    """`message` follows what is wrong with the input. `has_lines`: it has several lines."""

    message: str
    hint: str
    has_lines: bool = False


_SIGNS = [(kind, re.compile("|".join(f"(?:{sign})" for sign in kind.signs))) for kind in KINDS]
# What terminals, mails and web pages put into a line or before it.
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_QUOTE = re.compile(r"^(?:> ?)+")
# A web page that joins the lines of the kernel's log leaves their times.
_JOINED = re.compile(r"(?<=\S) (?=\[ *\d+\.\d{6}\] )")
_MAX_LINE = 500


def explained(head: bytes, *, looks_like_log: bool = False) -> Explanation | None:
    """Says what a text is, by its beginning, and what records the rest. None if it is of no kind.

    Args:
        looks_like_log: a log, which holds no event. Its lines may quote those of other tools, which a traced program prints.
    """
    lines = _lines(head)
    found = _kinds_of(lines)
    if looks_like_log:
        # What follows is then the program's too.
        found = found[:1] if found and found[0].looks_like_log else []
    if not found:
        return None
    if len(found) > 1:
        said = "\n".join(_said(kind, lines) for kind in found)
        return Explanation(
            f"it has {len(found)} kinds of text:\n{said}", _hint(found), has_lines=True
        )
    (kind,) = found
    if kind.signs is stacks.SIGNS and (text := stacks.said(lines)) is not None:
        return Explanation(f"it is {text}", _hint(found), has_lines=True)
    return Explanation(
        f"it is {kind.what}. It says {kind.answers}, but not {kind.lacks}.", _hint(found)
    )


def named(text: bytes) -> list[str]:
    """What texts without events are in a text, such as the lines of a log that are not of its format: a line on each."""
    lines = _lines(text)
    return [_in_one_line(kind, lines) for kind in _kinds_of(lines)]


def kinds_of(head: bytes) -> list[Kind]:
    """The kinds of the texts in a text, by its beginning, in the order in which it shows them."""
    return _kinds_of(_lines(head))


def _said(kind: Kind, lines: list[str]) -> str:
    """What is said of one text among others."""
    if kind.signs is stacks.SIGNS and (text := stacks.said(lines)) is not None:
        first, *rest = text.split("\n")
        return "\n".join([f"  {first}", *(f"  {line}" for line in rest)])
    return f"  {kind.what}: it says {kind.answers}, but not {kind.lacks}"


def _in_one_line(kind: Kind, lines: list[str]) -> str:
    if kind.signs is stacks.SIGNS and (text := stacks.said_in_one_line(lines)) is not None:
        return text
    return f"{kind.what} ({kind.answers})"


def _hint(found: list[Kind]) -> str:
    """The one command that records what all of the texts lack."""
    commands = {kind.record for kind in found}
    if PRINT in commands:
        return f"print the trace again, without `--names`: `{PRINT}`"
    if len(commands) == 1:
        (command,) = commands
    else:
        command = RECORD_BESIDE if RECORD_BESIDE in commands else RECORD
    when = " while syncs are slow" if command == RECORD else ""
    return f"record the single events instead{when}: `{command}`"


def _kinds_of(lines: list[str]) -> list[Kind]:
    """Returns the kinds that lines show. If a line has the signs of several, the first of them is meant."""
    shown = (next((kind for kind, sign in _SIGNS if sign.search(line)), None) for line in lines)
    return list(dict.fromkeys(kind for kind in shown if kind))


def _lines(head: bytes) -> list[str]:
    """The lines of a text, without what pasting has done to them."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = head.decode("utf-16", "replace")
    else:
        text = head.decode("utf-8", "replace")
    if "\0" in text:
        return []
    if "&lt;" in text or "&gt;" in text or "&quot;" in text:
        text = html.unescape(text)
    text = _JOINED.sub("\n", _COLOUR.sub("", text.replace("\xa0", " ")))
    lines = [_QUOTE.sub("", line[:_MAX_LINE]).rstrip() for line in text.split("\n")]
    return stacks.without_running(lines)
