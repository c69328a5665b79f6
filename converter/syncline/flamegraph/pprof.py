"""pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), compressed: all weights in one file.

It is encoded here rather than with a protobuf library: it has only five small messages.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from .picture import Picture
from .stacks import WEIGHTS

__all__ = ["render"]

_UNITS = {"count": "count", "ns": "nanoseconds", "bytes": "bytes"}


def render(picture: Picture) -> bytes:
    """Renders all weights. `pprof -sample_index=NAME` selects one; the requested weight is the default."""
    texts: dict[str, int] = {"": 0}
    functions: dict[str, int] = {}
    used = [name for name in WEIGHTS if picture.new.stacks.known[name]]
    samples = []
    for stack in picture.new.stacks.stacks:
        ids = [functions.setdefault(frame, len(functions) + 1) for frame in stack.frames]
        values = [stack.sums.get(name, 0) for name in used]
        samples.append(_packed(1, reversed(ids)) + _packed(2, values))

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    out = bytearray()
    for name in used:
        out += _message(1, _number(1, text(name)) + _number(2, text(_UNITS[WEIGHTS[name].unit])))
    for sample in samples:
        out += _message(2, sample)
    for name, number in functions.items():
        # One location for each function: there are no addresses and no lines.
        out += _message(4, _number(1, number) + _message(4, _number(1, number)))
        out += _message(5, _number(1, number) + _number(2, text(name)) + _number(3, text(name)))
    comments = [picture.title(), *picture.new.caveats]
    out += b"".join(_number(13, text(comment)) for comment in comments)
    out += _number(14, text(picture.weight))
    # The string table is last, when all strings are known: the order of fields is free.
    for value in texts:
        out += _message(6, value.encode("utf-8", "replace"))
    # Without a time in the gzip header, the same input gives the same file.
    return gzip.compress(bytes(out), mtime=0)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
