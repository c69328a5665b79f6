"""Writes recorded pages as trace.dat, version 6: the format of trace-cmd (trace-cmd.dat(5))."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO

# The place of a further buffer, then its name.
_BUFFER = 3
_COPY_BYTES = 1 << 20
# FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE. A file system that cannot do it leaves the file unchanged.
_PUNCH_HOLE = 1 | 2
_libc = ctypes.CDLL(None)
_MAGIC = b"\x17\x08\x44tracing6\0"
_CPUSTAT, _TRACE_CLOCK, _UNAME, _VERSION = 2, 4, 5, 9


def write(
    path: Path,
    *,
    header_page: str,
    header_event: str,
    ftrace_formats: list[str],
    formats: dict[str, list[str]],
    comms: dict[int, str],
    clock: str,
    uname: str,
    version: str,
    stats: list[str],
    page_bytes: int,
    pages: list[Path],
    symbols: str = "",
    buffers: dict[str, list[Path]] | None = None,
) -> None:
    """Writes a file as a whole or not at all.

    `formats` holds the texts of `events/SYSTEM/EVENT/format` by system. `pages` is one file per CPU, in
    the order of the CPUs. `buffers` are further buffers by name, each with a file per CPU.
    `symbols` are lines of /proc/kallsyms, for events with addresses of functions.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as out:
            big_endian = sys.byteorder == "big"
            out.write(_MAGIC + struct.pack("=BBI", big_endian, struct.calcsize("l"), page_bytes))
            out.write(b"header_page\0" + _sized(header_page))
            out.write(b"header_event\0" + _sized(header_event))
            out.write(struct.pack("=I", len(ftrace_formats)))
            for text in ftrace_formats:
                out.write(_sized(text))
            out.write(struct.pack("=I", len(formats)))
            for system, texts in formats.items():
                out.write(system.encode() + b"\0" + struct.pack("=I", len(texts)))
                for text in texts:
                    out.write(_sized(text))
            out.write(struct.pack("=I", len(symbols.encode())) + symbols.encode())
            # No formats of trace_printk.
            out.write(struct.pack("=I", 0))
            out.write(_sized("".join(f"{pid} {comm}\n" for pid, comm in sorted(comms.items()))))
            out.write(struct.pack("=I", len(pages)))
            out.write(b"options  \0")
            for number, text in [
                (_TRACE_CLOCK, clock),
                (_UNAME, uname),
                (_VERSION, version),
                *((_CPUSTAT, text) for text in stats),
            ]:
                data = text.strip().encode() + b"\0"
                out.write(struct.pack("=HI", number, len(data)) + data)
            places = {}
            for name in buffers or {}:
                data = struct.pack("=Q", 0) + name.encode() + b"\0"
                out.write(struct.pack("=HI", _BUFFER, len(data)))
                places[name] = out.tell()
                out.write(data)
            out.write(struct.pack("=H", 0))
            _write_pages(out, page_bytes, pages)
            for name, files in (buffers or {}).items():
                at = out.tell()
                _write_pages(out, page_bytes, files)
                out.seek(places[name])
                out.write(struct.pack("=Q", at))
                out.seek(0, os.SEEK_END)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def punch_hole(file: int, at: int, size: int) -> None:
    """Frees a part of an open file, whose size stays."""
    _libc.fallocate(file, _PUNCH_HOLE, ctypes.c_long(at), ctypes.c_long(size))


def stats_texts(stats: dict[int, dict[str, int]]) -> list[str]:
    """Returns the counters of each CPU as the kernel writes them."""
    return [
        "\n".join([f"CPU: {cpu}", *(f"{key}: {value}" for key, value in counts.items())])
        for cpu, counts in stats.items()
    ]


def _sized(text: str) -> bytes:
    data = text.encode()
    return struct.pack("=Q", len(data)) + data


def _write_pages(out: BinaryIO, page_bytes: int, pages: list[Path]) -> None:
    out.write(b"flyrecord\0")
    at = out.tell() + 16 * len(pages)
    places = []
    for file in pages:
        at += -at % page_bytes
        places.append((at, file.stat().st_size))
        at += file.stat().st_size
    for place in places:
        out.write(struct.pack("=QQ", *place))
    for file, (offset, _) in zip(pages, places):
        out.write(b"\0" * (offset - out.tell()))
        with file.open("r+b") as stream:
            at = 0
            while data := stream.read(_COPY_BYTES):
                out.write(data)
                # Otherwise a recording would need twice its size on the disk, which may be full already.
                punch_hole(stream.fileno(), at, len(data))
                at += len(data)
