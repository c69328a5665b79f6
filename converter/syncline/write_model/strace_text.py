"""Arguments of calls as strace prints them: strings, and descriptors with their files."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Named", "annotation", "decode", "folder_of_process", "named_in", "normal"]

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
# `<`, `>` and `\` of a path are escaped.
_FILE = r"<((?:[^<>\\]|\\.)*)>"
_STRING = r'"((?:[^"\\]|\\.)*)"(\.\.\.)?'
# The descriptor of a folder, its path if strace prints it (-y), and a name.
_NAMED = re.compile(rf"(?:(AT_FDCWD|\d+)(?:{_FILE})?(?:\(deleted\))?, )?{_STRING}")
# A string may look like it.
_CWD = re.compile(rf'(?:"(?:[^"\\]|\\.)*"|[^"])*?\bAT_FDCWD{_FILE}')
_DESCRIPTOR = re.compile(rf"\d+{_FILE}(\(deleted\))?")


@dataclass(frozen=True)
class Named:
    """A file as an argument names it. `folder` is that of a relative name, `number` the folder's descriptor, each None if not printed."""

    name: str
    folder: str | None
    number: int | None


def decode(text: str) -> str:
    """Decodes `\\n`, `\\"`, `\\303`, `\\xc3` and the like. Bytes that are not UTF-8 become `\\xNN`, as in the low-level log."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(_byte, text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "backslashreplace")


def _byte(found: re.Match[bytes]) -> bytes:
    in_hex, octal, letter = found.groups()
    if in_hex:
        return bytes([int(in_hex, 16)])
    return bytes([int(octal, 8) & 0xFF]) if octal else _LETTERS.get(letter, letter)


def normal(path: str) -> str:
    """Returns a path without `.` and empty steps. `..` stays: it may lead elsewhere if the folder is a symbolic link."""
    steps = "/".join(step for step in path.split("/") if step not in ("", "."))
    return f"/{steps}" if path.startswith("/") else steps


def named_in(args: str) -> list[Named | None]:
    """Returns the files that arguments name; None for a name that is cut off."""
    found: list[Named | None] = []
    for number, folder, name, is_cut in _NAMED.findall(args):
        of = int(number) if number.isdecimal() else None
        found.append(None if is_cut else Named(decode(name), decode(folder) or None, of))
    return found


def folder_of_process(args: str) -> str | None:
    """Returns the working directory, if the arguments show it. They must not be those of a write."""
    found = _CWD.match(args)
    return decode(found[1]) if found else None


def annotation(args: str) -> tuple[str, bool] | None:
    """Returns the path of the descriptor with which arguments begin, and whether that name is deleted; None if no file is printed."""
    found = _DESCRIPTOR.match(args)
    path = decode(found[1]) if found else ""
    return (path, found[2] is not None) if found and path.startswith("/") else None
