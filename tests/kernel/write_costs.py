#!/usr/bin/env python3
"""Writes a file in chunks, and prints the cost of each as a table for `syncline model predict`.

write_costs.py DIR KIND [SCENARIO...]     KIND: cached, synchronized, direct, library

The scenarios are those of CAWL, in the size of the limits of dirty page cache: A, C without a delay, B, D with one; A, B rewrite the last
quarter of what was written, C, D three quarters. `sequential` and `delayed` rewrite nothing. `1KiB` writes 1 MiB in chunks of 1 KiB.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

MIB = 1024 * 1024
# Name -> size of all, of a chunk, delay in s, share that is rewritten.
SCENARIOS = {
    "sequential": (320 * MIB, 4 * MIB, 0, 0),
    "delayed": (320 * MIB, 4 * MIB, 0.2, 0),
    "A": (240 * MIB, 4 * MIB, 0, 0.25),
    "B": (240 * MIB, 4 * MIB, 0.2, 0.25),
    "C": (480 * MIB, 4 * MIB, 0, 0.75),
    "D": (480 * MIB, 4 * MIB, 0.2, 0.75),
    "large": (64 * MIB, 4 * MIB, 0, 0),
    "1KiB": (MIB, 1024, 0, 0),
    "512B": (MIB // 16, 512, 0, 0),
}
FLAGS = {"cached": 0, "synchronized": os.O_SYNC, "direct": os.O_DIRECT | os.O_SYNC}
# What the model calls a kind, if it has another name here.
KINDS = {"direct": "direct_synchronized"}


def dirty_bytes() -> int:
    """Returns what is dirty or under writeback, of the whole machine."""
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    pages = int(counters["nr_dirty"]) + int(counters["nr_writeback"])
    return pages * os.sysconf("SC_PAGE_SIZE")


def opened(path: Path, kind: str, data: mmap.mmap) -> tuple[Callable[[int, int], None], Callable[[], None]]:  # fmt: skip
    """Returns a function that writes bytes at a place, and one that closes the file."""
    if kind != "library":
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | FLAGS[kind], 0o600)
        view = memoryview(data)

        def write(offset: int, size: int) -> None:
            if os.pwrite(file, view[:size], offset) != size:
                raise OSError("a short write")

        return write, lambda: os.close(file)
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    library.fwrite.restype = ctypes.c_size_t
    library.fwrite.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
    library.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
    library.fclose.argtypes = [ctypes.c_void_p]
    stream = library.fopen(os.fsencode(path), b"w")
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    position = 0

    def put(offset: int, size: int) -> None:
        nonlocal position
        if offset != position:
            library.fseek(stream, offset, os.SEEK_SET)
        if library.fwrite(address, 1, size, stream) != size:
            raise OSError("a short write")
        position = offset + size

    return put, lambda: library.fclose(stream)


def run(folder: Path, kind: str, name: str) -> None:
    """Runs a scenario and prints its rows."""
    total, chunk, delay_s, rewrite = SCENARIOS[name]
    data = mmap.mmap(-1, max(chunk, 4096))
    data.write(b"x" * len(data))
    path = folder / "data"
    os.sync()
    time.sleep(1)
    write, close = opened(path, kind, data)
    rows, offset, written = [], 0, 0
    while written < total:
        # A delay is computation: it uses the CPU.
        until = time.perf_counter() + delay_s
        while time.perf_counter() < until:
            pass
        start = time.perf_counter_ns()
        write(offset, chunk)
        end = time.perf_counter_ns()
        rows.append((start, end - start, offset, dirty_bytes() if chunk >= MIB else ""))
        written += chunk
        offset += chunk - int(chunk * rewrite)
    close()
    os.sync()
    path.unlink()
    for start, duration, place, dirty in rows:
        print(
            f"{start},{duration},{KINDS.get(kind, kind)},data,{place},{chunk},{dirty},{kind} {name}"
        )
    sys.stdout.flush()


def main() -> None:
    """Prints the table."""
    folder, kind, *names = sys.argv[1:]
    print("start_ns,duration_ns,kind,path,offset_bytes,size_bytes,dirty_bytes,scenario")
    for name in names or SCENARIOS:
        run(Path(folder), kind, name)


main()
