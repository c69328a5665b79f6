"""Functions at offsets in an ELF file, by its symbol tables: what the core does, in Python, for a recorder that has no core."""

from __future__ import annotations

import bisect
import struct
from pathlib import Path
from typing import NamedTuple

_LOAD = 1
_SYMTAB, _DYNSYM = 2, 11
_FUNCTION = 2


class _Layout(NamedTuple):
    """Where the fields of a class of ELF are. A pattern skips those that are not needed."""

    # phoff, shoff, phentsize, phnum, shentsize, shnum
    head: str
    # type, offset, vaddr, filesz, in the order of `segment_at`
    segment: str
    segment_at: tuple[int, int, int, int]
    # type, offset, size, link, entsize
    section: str
    # name, info, shndx, value, size, in the order of `symbol_at`
    symbol: str
    symbol_at: tuple[int, int, int, int, int]


_LAYOUTS = {
    1: _Layout("28xII6xHHHH", "IIIIII", (0, 1, 2, 4), "4xI8xIII8xI", "IIIBBH", (0, 3, 5, 1, 2)),
    2: _Layout("32xQQ6xHHHH", "IIQQQQ", (0, 2, 3, 5), "4xI16xQQI12xQ", "IBBHQQ", (0, 1, 3, 4, 5)),
}


def functions_at(file: str, offsets: list[int]) -> list[str | None]:
    """Returns the functions at offsets, as `function+offset`; None for an offset without a symbol. Raises OSError."""
    data = Path(file).read_bytes()
    try:
        segments, functions = _parse(data)
    except (struct.error, ValueError, KeyError, IndexError):
        return [None] * len(offsets)
    starts = [start for start, _, _ in functions]
    return [_find(offset, segments, functions, starts) for offset in offsets]


def _find(
    offset: int,
    segments: list[tuple[int, int, int]],
    functions: list[tuple[int, int, bytes]],
    starts: list[int],
) -> str | None:
    for begin, address, size in segments:
        if begin <= offset < begin + size:
            at = offset - begin + address
            # Functions may contain others, but few do.
            for start, length, name in reversed(functions[: bisect.bisect_right(starts, at)]):
                if at - start < length:
                    return f"{name.decode(errors='replace')}+{at - start}"
            return None
    return None


def _parse(data: bytes) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, bytes]]]:
    """Returns the segments (offset, address, size), and the functions (address, size, name) in the order of their addresses."""
    if data[:4] != b"\x7fELF":
        raise ValueError("no ELF file")
    layout, order = _LAYOUTS[data[4]], {1: "<", 2: ">"}[data[5]]
    phoff, shoff, phentsize, phnum, shentsize, shnum = struct.unpack_from(order + layout.head, data)
    segments = []
    for i in range(phnum):
        fields = struct.unpack_from(order + layout.segment, data, phoff + i * phentsize)
        kind, begin, address, size = (fields[at] for at in layout.segment_at)
        if kind == _LOAD:
            segments.append((begin, address, size))
    sections = [
        struct.unpack_from(order + layout.section, data, shoff + i * shentsize)
        for i in range(shnum)
    ]
    functions = []
    for kind, begin, size, link, _ in sections:
        if kind not in (_SYMTAB, _DYNSYM):
            continue
        _, names, names_size, _, _ = sections[link]
        whole = size - size % struct.calcsize(order + layout.symbol)
        for fields in struct.iter_unpack(order + layout.symbol, data[begin : begin + whole]):
            name, info, section, address, length = (fields[at] for at in layout.symbol_at)
            if info & 15 == _FUNCTION and section and length and name < names_size:
                end = data.index(b"\0", names + name)
                functions.append((address, length, data[names + name : end]))
    return segments, sorted(functions)
