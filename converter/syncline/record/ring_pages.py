"""Reads the events of sub-buffer pages, without their fields (Documentation/trace/ring-buffer-map.rst)."""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_PADDING, _EXTEND, _STAMP = 29, 30, 31
_DELTA_BITS = 27
# The low bits of `commit` are the length of the data.
_LENGTH = (1 << 20) - 1
_DATA = 16
# Two bits of `commit`: events before the page were lost, and their number is at its end.
_LOST = 3 << 30
_COPY_BYTES = 1 << 20


def events(file: Path, page_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Returns time in ns and bytes of each event in a file of pages, in the order of the file."""
    with file.open("rb") as pages:
        while len(page := pages.read(page_bytes)) == page_bytes:
            yield from page_events(page)


def first_time(file: Path) -> int:
    """Returns the time in ns of the first event in a file of pages; 0 if it has none."""
    with file.open("rb") as pages:
        head = pages.read(8)
    return struct.unpack("=Q", head)[0] if len(head) == 8 else 0


def clear_lost(file: Path) -> None:
    """Removes from the first page of a file that events before it were lost."""
    with file.open("r+b") as pages:
        head = pages.read(_DATA)
        if len(head) == _DATA:
            (commit,) = struct.unpack_from("=Q", head, 8)
            pages.seek(8)
            pages.write(struct.pack("=Q", commit & ~_LOST))


def remove_before(file: Path, ts_ns: int, page_bytes: int) -> None:
    """Removes the first pages of a file if all their events are before a time: the page after them begins at it or before."""
    with file.open("rb") as pages:
        kept = page = 0
        while True:
            pages.seek(page * page_bytes)
            head = pages.read(8)
            if len(head) < 8 or struct.unpack("=Q", head)[0] > ts_ns:
                break
            kept, page = page, page + 1
        if kept == 0:
            return
        part = file.with_name(f"{file.name}.part")
        pages.seek(kept * page_bytes)
        with part.open("wb") as out:
            shutil.copyfileobj(pages, out, _COPY_BYTES)
    part.replace(file)


def page_events(page: bytes) -> Iterator[tuple[int, bytes]]:
    """Returns time in ns and bytes of each event in a page."""
    time, commit = struct.unpack_from("=QQ", page)
    at, end = _DATA, min(_DATA + (commit & _LENGTH), len(page))
    # A bit field begins at the other end of the word on a big-endian machine.
    little = sys.byteorder == "little"
    while at + 8 <= end:
        header, word = struct.unpack_from("=II", page, at)
        kind, delta = (header & 31, header >> 5) if little else (header >> 27, header & 0x7FFFFFF)
        at += 4
        if kind == _EXTEND:
            time += delta + (word << _DELTA_BITS)
            at += 4
        elif kind == _STAMP:
            time = delta + (word << _DELTA_BITS)
            at += 4
        elif kind == _PADDING:
            if delta == 0:
                return
            time += delta
            at += word
        else:
            time += delta
            at, size = (at + 4, word - 4) if kind == 0 else (at, kind * 4)
            yield time, page[at : at + size]
            at += -(-size // 4) * 4
