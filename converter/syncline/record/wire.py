"""What a recorder on a server and the `syncline` that has started it say to each other.

The recorder sends frames: parts of the files of a run directory, messages, and at the end the manifest or an error. It gets lines: the
request, then `beat` every few seconds, and `stop`. Each of them takes the other for gone after a time of silence, because a network may
end without a word.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

# It follows whatever the login shell has printed. A terminal in between would change its end of line.
MAGIC = b"\0syncline-recorder 1\n"
BEAT, STOP = b"beat\n", b"stop\n"
BEAT_EVERY_S = 3.0
GONE_AFTER_S = 30.0
# A part of a file, at an offset; and that a file is whole, which gets its name only then.
PART, WHOLE = b"p", b"w"
# A message; a sign of life; the line of what happens.
SAY, ALIVE, LINE = b"s", b"a", b"l"
# The last frame: the manifest, or why there is none.
MANIFEST, ERROR = b"m", b"e"
_KINDS = {PART, WHOLE, SAY, ALIVE, LINE, MANIFEST, ERROR}
# Kind, length of the name, length of the data, offset.
_HEAD = struct.Struct(">cHIQ")
MAX_DATA = 1 << 20
_NAME = re.compile(r"(maps/)?\.?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class WireError(Exception):
    """What arrived is no frame."""


class Frame(NamedTuple):
    """One of them. Not every kind has a name, data or an offset."""

    kind: bytes
    name: str = ""
    data: bytes = b""
    offset: int = 0

    def packed(self) -> bytes:
        name = self.name.encode()
        return _HEAD.pack(self.kind, len(name), len(self.data), self.offset) + name + self.data


def read(take: Callable[[int], bytes]) -> Frame | None:
    """Reads a frame. Returns None at the end of the stream, also if that is within a frame.

    Args:
        take: reads so many bytes, or fewer at the end of the stream.

    Raises:
        WireError: it is no frame, or names a file that is in no run directory.
    """
    head = take(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, name_size, size, offset = _HEAD.unpack(head)
    if kind not in _KINDS or (size > MAX_DATA and kind != MANIFEST):
        raise WireError(f"an unknown frame ({kind!r}, {size} bytes)")
    rest = take(name_size + size)
    if len(rest) < name_size + size:
        return None
    name = rest[:name_size].decode("ascii", "replace")
    # The other side may be in anybody's hands.
    if kind in (PART, WHOLE) and not _NAME.fullmatch(name):
        raise WireError(f"a file that no run directory has: {name}")
    return Frame(kind, name, rest[name_size:], offset)
