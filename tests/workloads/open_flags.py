#!/usr/bin/env python3
"""Writes that are durable when they return, without a sync call: O_SYNC, O_DSYNC, O_DIRECT, or a flag of the write."""

import mmap
import os

from workload import Run, main, pattern

OPEN = {
    "sync": os.O_SYNC,
    "dsync": os.O_DSYNC,
    "direct": os.O_DIRECT,
    "direct-dsync": os.O_DIRECT | os.O_DSYNC,
}


def body(run: Run) -> None:
    flag, size = run.text("flag"), run.number("size")
    kind = {"sync": "sync_write", "rwf-sync": "sync_write", "direct": ""}.get(flag, "dsync_write")
    per_write = {"rwf-sync": os.RWF_SYNC, "rwf-dsync": os.RWF_DSYNC}.get(flag, 0)
    fd = run.open(run.dir / flag, os.O_RDWR | os.O_CREAT | OPEN.get(flag, 0))
    # O_DIRECT requires aligned memory. An anonymous mapping is aligned.
    buffer = mmap.mmap(-1, size)
    buffer.write(pattern(size))
    with run.timed():
        for n in range(run.number("writes")):
            done = os.pwritev(fd, [buffer], n * size, per_write)
            run.wrote(done)
            if kind:
                run.count(kind)
        if not kind:
            # O_DIRECT leaves the data in the cache of the disk and the file size in memory.
            run.sync(fd)
    os.close(fd)


main(
    body,
    __doc__,
    writes=20,
    size=4096,
    flag=("sync", "dsync", "direct", "direct-dsync", "rwf-sync", "rwf-dsync"),
)
