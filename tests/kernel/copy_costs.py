#!/usr/bin/env python3
"""Measures what a copy to page cache takes, by its size, what is done before it, and whether writeback runs. Prints a row for each write.

copy_costs.py DIR [TURNS]     as root, on a file system whose device is slow: limits of dirty page cache are set

Sizes and what precedes them come in random order, so that other work on the machine slows all down alike. `new` appends to a file, `recycled` does so in memory that the same file has just given back,
`dirty` rewrites pages that are dirty. Before a write is nothing,
200 ms of computation, 200 ms of sleep, or a look at the counters of memory, as write_costs.py has it. What is copied is memory that was
written, or zeros that never were: all their pages are one page of the kernel.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import time
from pathlib import Path

MIB = 1024 * 1024
SIZES = (64 * 1024, 256 * 1024, MIB, 4 * MIB, 16 * MIB)
REWRITTEN = 64 * MIB
DELAY_S = 0.2
VM = Path("/proc/sys/vm")


def compute() -> None:
    """Uses the CPU."""
    until = time.perf_counter() + DELAY_S
    while time.perf_counter() < until:
        pass


BEFORE = {
    "nothing": lambda: None,
    "computation": compute,
    "sleep": lambda: time.sleep(DELAY_S),
    "counters": lambda: Path("/proc/vmstat").read_text(),
}


def run(folder: Path, pages: str, writeback: str, repeats: int) -> None:
    """Measures all sizes in one setting, in random order with what precedes them and with what is copied."""
    # Without writeback, more than is ever dirty; else what makes it run all the time. Nobody is throttled.
    (VM / "dirty_bytes").write_text(str(3 << 30))
    (VM / "dirty_background_bytes").write_text(str(8 * MIB if writeback == "yes" else 2 << 30))
    data = mmap.mmap(-1, SIZES[-1])
    data.write(b"x" * len(data))
    sources = {"written": memoryview(data), "zeros": memoryview(bytes(SIZES[-1]))}
    path = folder / "data"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # What is rewritten, and what keeps the flusher thread busy.
    for place in range(0, REWRITTEN, SIZES[-1]):
        os.pwrite(file, sources["written"], place)
    end = REWRITTEN
    settings = [(before, "written") for before in BEFORE] + [("nothing", "zeros")]
    order = [(size, *setting) for size in SIZES for setting in settings for _ in range(repeats)]
    random.shuffle(order)
    for size, before, source in order:
        if pages == "recycled" and end > REWRITTEN + 2 * SIZES[-1]:
            os.ftruncate(file, REWRITTEN)
            end = REWRITTEN
        place = random.randrange(0, REWRITTEN - size + 1, 4096) if pages == "dirty" else end
        end += size if pages != "dirty" else 0
        BEFORE[before]()
        start = time.perf_counter_ns()
        os.pwrite(file, sources[source][:size], place)
        took = time.perf_counter_ns() - start
        print(f"{pages},{source},{before},{writeback},{size},{took}")
    sys.stdout.flush()
    # What is dirty is dropped.
    os.ftruncate(file, 0)
    os.close(file)
    path.unlink()


def main() -> None:
    """Prints the table."""
    folder, turns = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("pages,source,before,writeback,size_bytes,duration_ns")
    for _ in range(turns):
        for writeback in ("no", "yes"):
            for pages in ("new", "recycled", "dirty"):
                run(folder, pages, writeback, 2)


main()
