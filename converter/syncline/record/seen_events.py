"""Which events occur in recorded pages: a look at some of them, without decoding their fields."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from syncline.record.ring_buffer import RingBuffer

# Number of events that are looked at in all pages together.
_LOOK_AT = 200_000
_DATA_MAX, _PADDING, _EXTEND, _STAMP = 28, 29, 30, 31
# The low bits of `commit` are the length of the data.
_LENGTH = (1 << 20) - 1


def names(ring: RingBuffer) -> set[str]:
    """Returns the names of the events in the first pages of each CPU, all pages of a short recording."""
    wanted = {}
    for event in ring.main.events:
        text = (ring.instance.folder / "events" / event / "format").read_text()
        if found := re.search(r"^ID: (\d+)$", text, re.MULTILINE):
            wanted[int(found[1])] = event.rpartition("/")[2]
    seen: set[int] = set()
    each = _LOOK_AT // max(len(ring.main.pages), 1)
    for file in ring.main.pages:
        for count, event_id in enumerate(_ids(file, ring.page_bytes)):
            seen.add(event_id)
            if count >= each or len(seen) == len(wanted):
                break
    return {wanted[event_id] for event_id in seen if event_id in wanted}


def _ids(file: Path, page_bytes: int) -> Iterator[int]:
    with file.open("rb") as pages:
        while len(page := pages.read(page_bytes)) == page_bytes:
            yield from page_ids(page)


def page_ids(page: bytes) -> Iterator[int]:
    """Returns the id of each event in a sub-buffer page (Documentation/trace/ring-buffer-map.rst)."""
    (commit,) = struct.unpack_from("=Q", page, 8)
    at, end = 16, min(16 + (commit & _LENGTH), len(page))
    # A bit field begins at the other end of the word on a big-endian machine.
    little = sys.byteorder == "little"
    while at + 8 <= end:
        (header,) = struct.unpack_from("=I", page, at)
        kind, delta = (header & 31, header >> 5) if little else (header >> 27, header & 0x7FFFFFF)
        (word,) = struct.unpack_from("=I", page, at + 4)
        if kind in (_EXTEND, _STAMP):
            at += 8
        elif kind == _PADDING:
            if delta == 0:
                return
            at += 4 + word
        else:
            data = at + 8 if kind == 0 else at + 4
            yield struct.unpack_from("=H", page, data)[0]
            at += 4 + (-(-word // 4) * 4 if kind == 0 else kind * 4)
