#!/usr/bin/env python3
"""A process writes 128 KiB blocks at random offsets of a big file while another appends little and syncs periodically.

The periodic sync waits behind the writeback of the first process. background=0 runs it without that process.
"""

import os
import random
import signal
import time
from pathlib import Path

from workload import Run, main, pattern


def write_at_random(path: Path, size: int, block: int, kb_per_second: int, report: int) -> None:
    """Writes until SIGTERM, then reports the number of bytes to the parent."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    data = pattern(block, seed=2)
    choose = random.Random(1)
    written = 0
    begun = time.monotonic()
    fd = os.open(path, os.O_WRONLY)
    while not stop:
        written += os.pwrite(fd, data, choose.randrange(size // block) * block)
        if kb_per_second:
            time.sleep(max(0.0, begun + written / 1024 / kb_per_second - time.monotonic()))
    os.close(fd)
    os.write(report, str(written).encode())


def body(run: Run) -> None:
    size = run.number("mb") << 20
    big = run.dir / "background"
    os.close(run.open(big))
    os.truncate(big, size)
    readable, writable = os.pipe()
    child = 0
    if run.number("background"):
        child = os.fork()
        if child == 0:
            try:
                write_at_random(
                    big, size, run.number("block"), run.number("kb_per_second"), writable
                )
            finally:
                os._exit(0)
    fd = run.open(run.dir / "periodic")
    latencies = []
    with run.timed():
        for n in range(run.number("syncs")):
            time.sleep(run.number("period_ms") / 1000)
            run.write(fd, pattern(run.number("size"), seed=n))
            begun = time.monotonic_ns()
            run.sync(fd)
            latencies.append(round((time.monotonic_ns() - begun) / 1e6, 3))
    os.close(fd)
    if child:
        os.kill(child, signal.SIGTERM)
        background = int(os.read(readable, 100))
        os.waitpid(child, 0)
        run.more["background_bytes"] = background
    run.more["latencies_ms"] = latencies


main(
    body,
    __doc__,
    syncs=5,
    period_ms=2000,
    size=4096,
    background=1,
    mb=64,
    block=128 << 10,
    kb_per_second=0,
)
