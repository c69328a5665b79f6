#!/usr/bin/env python3
"""Writes a file in chunks, and prints the cost of each as a table for `syncline model predict`.

write_costs.py DIR KIND [SCENARIO...]     KIND: cached, synchronized, direct, library; synchronized-dsync, direct-dsync; fsync, fdatasync

`synchronized` and `direct` are O_SYNC, and `-dsync` is O_DSYNC. `fsync` and `fdatasync` call it after each write through page cache.

The scenarios are those of CAWL, in the size of the limits of dirty page cache: A, C without a delay, B, D with one; A, B rewrite the last
quarter of what was written, C, D three quarters. `sequential` and `delayed` rewrite nothing. `learned` is
`sequential` for a kernel that has learned the bandwidth of the device. `1KiB` writes 1 MiB in chunks of 1 KiB. `again`
is to a file that has all of its blocks. `expiry` writes 1 MiB each second.
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
    "learned": (320 * MIB, 4 * MIB, 0, 0),
    "delayed": (320 * MIB, 4 * MIB, 0.2, 0),
    "A": (240 * MIB, 4 * MIB, 0, 0.25),
    "B": (240 * MIB, 4 * MIB, 0.2, 0.25),
    "C": (480 * MIB, 4 * MIB, 0, 0.75),
    "D": (480 * MIB, 4 * MIB, 0.2, 0.75),
    "large": (64 * MIB, 4 * MIB, 0, 0),
    "1KiB": (MIB, 1024, 0, 0),
    "512B": (MIB // 16, 512, 0, 0),
    "expiry": (80 * MIB, MIB, 1, 0),
    "4KiB": (MIB // 4, 4096, 0, 0),
    "4KiB again": (MIB // 4, 4096, 0, 0),
    "64KiB": (2 * MIB, MIB // 16, 0, 0),
    "64KiB again": (2 * MIB, MIB // 16, 0, 0),
}
FLAGS = {
    "synchronized": os.O_SYNC,
    "synchronized-dsync": os.O_DSYNC,
    "direct": os.O_DIRECT | os.O_SYNC,
    "direct-dsync": os.O_DIRECT | os.O_DSYNC,
}
SYNCS = {"fsync": os.fsync, "fdatasync": os.fdatasync}
# What the model calls a kind, if it has another name here.
KINDS = {
    "direct": "direct_synchronized",
    "direct-dsync": "direct_synchronized",
    "synchronized-dsync": "synchronized",
    "fsync": "cached",
    "fdatasync": "cached",
}


def dirty_bytes() -> int:
    """Returns what is dirty or under writeback, of the whole machine."""
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    pages = int(counters["nr_dirty"]) + int(counters["nr_writeback"])
    return pages * os.sysconf("SC_PAGE_SIZE")


def opened(path: Path, kind: str, data: mmap.mmap) -> tuple[Callable[[int, int], None], Callable[[], None], Callable[[], None]]:  # fmt: skip
    """Returns a function that writes bytes at a place, one that syncs the file, and one that closes it."""
    if kind != "library":
        file = os.open(path, os.O_WRONLY | os.O_CREAT | FLAGS.get(kind, 0), 0o600)
        view = memoryview(data)

        def write(offset: int, size: int) -> None:
            if os.pwrite(file, view[:size], offset) != size:
                raise OSError("a short write")

        return write, lambda: SYNCS[kind](file), lambda: os.close(file)
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

    return put, lambda: None, lambda: library.fclose(stream)


def run(folder: Path, kind: str, name: str) -> None:
    """Runs a scenario and prints its rows."""
    total, chunk, delay_s, rewrite = SCENARIOS[name]
    data = mmap.mmap(-1, max(chunk, 4096))
    data.write(b"x" * len(data))
    path = folder / "data"
    file_size = total if name.endswith("again") else 0
    path.write_bytes(b"y" * file_size)
    os.sync()
    time.sleep(1)
    write, sync, close = opened(path, kind, data)
    rows, offset, written = [], 0, 0
    named = f"{kind} {name}"
    while written < total:
        # A delay is computation: it uses the CPU.
        until = time.perf_counter() + delay_s
        while time.perf_counter() < until:
            pass
        start = time.perf_counter_ns()
        write(offset, chunk)
        end = time.perf_counter_ns()
        dirty = dirty_bytes() if chunk >= MIB else ""
        rows.append((start, end - start, KINDS.get(kind, kind), offset, chunk, dirty, file_size))
        file_size = max(file_size, offset + chunk)
        if kind in SYNCS:
            start = time.perf_counter_ns()
            sync()
            end = time.perf_counter_ns()
            rows.append((start, end - start, "sync", 0, 0, "", file_size))
        written += chunk
        offset += chunk - int(chunk * rewrite)
    close()
    os.sync()
    path.unlink()
    is_datasync = int(kind in ("synchronized-dsync", "direct-dsync", "fdatasync"))
    for start, duration, called, place, size, dirty, before in rows:
        print(
            f"{start},{duration},{called},data,{place},{size},{dirty},{named},{before},{is_datasync}"
        )
    sys.stdout.flush()


def main() -> None:
    """Prints the table."""
    folder, kind, *names = sys.argv[1:]
    print("start_ns,duration_ns,kind,path,offset_bytes,size_bytes,dirty_bytes,scenario,file_size_bytes,is_datasync")  # fmt: skip
    for name in names or SCENARIOS:
        run(Path(folder), kind, name)


main()
